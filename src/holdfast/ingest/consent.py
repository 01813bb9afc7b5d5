"""
Consent: may a text be stored, and may it be used?  Pure.

A user chooses for everything (subject ``""``) and may choose more strictly for one subject.  Where
nothing was chosen, memory is active.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..store import ConsentRow
from ..text.terms import terms
from ..types import Candidate, ConsentState

INCOGNITO = "incognito"
_STRICTNESS: tuple[ConsentState, ...] = ("active", "paused", "opted-out")


def effective_consent(chosen: Iterable[ConsentRow], subject: str | None) -> ConsentState:
    """
    Return the strictest state that was chosen for *subject*; ``None`` means the user as a whole.

    Only what was chosen for all subjects and for this very one counts.
    """
    mine = {row.state for row in chosen if row.subject in ("", subject)}
    return max((state for state in _STRICTNESS if state in mine), key=_STRICTNESS.index, default="active")


def matches_blocked_topic(candidate: Candidate, topics: Iterable[str]) -> bool:
    """Whether a claim is of a blocked topic: its category, or all words of the topic."""
    said: set[str] | None = None
    for topic in topics:
        if topic == candidate.category:
            return True
        if said is None:
            words = (
                candidate.category,
                candidate.key.replace("_", " "),
                candidate.value,
                candidate.text,
                candidate.quote,
            )
            said = set(terms(" ".join(words)))
        wanted = set(terms(topic))
        if wanted and wanted <= said:
            return True
    return False
