"""
Facts that people state plainly, read without any model.

``read`` looks at one user message: sentence by sentence, at the patterns whose trigger words it
holds, at who is meant and whether it is asserted.  The patterns are data (``patterns/*.toml``); the
order of the steps is here.  It claims little rather than wrongly: what it cannot place, it leaves to
the summaries and to search.  Pure: no clock, no store.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from ..scope import SELF
from ..text.sentences import pieces, split
from ..text.terms import likely_languages
from ..types import Candidate, Fact, Message
from .claims import SOURCE, Piece, claims, end_of, filled
from .grammar import MAX_TEXT_CHARS, Language, language
from .modality import cues, masked
from .people import UNIQUE, People, subject_name
from .vocabulary import folded

__all__ = ["SOURCE", "known_others", "might_state", "read"]

MAX_ANSWER_CHARS = 80
MAX_READ_CHARS = 20_000  # what is longer is a document, not talk; its beginning is read
FALLBACK = "en"
UNMISTAKABLE = frozenset({"ko", "ja", "zh", "ru", "uk", "el", "ar", "he", "hi", "th"})  # told by their script

_CAPITAL = re.compile(r"[A-ZÀ-Þ]")


def read(
    message: Message,
    *,
    subject: str = SELF,
    others: Mapping[str, str] | None = None,
    before: Message | None = None,
    language_code: str | None = None,
) -> list[Candidate]:
    """
    What *message* states, in the order in which it is said.

    Args:
        message: one message; only ``role``, ``content``, ``seq`` and ``at`` are looked at.
        subject: whom the conversation is about; "she" and "my dog" mean this one when it is not self.
        others: names (and relations) already known, each with its subject: ``{"Luna": "luna"}``.
        before: the message directly before this one; a short answer is read together with its question.
        language_code: ISO 639-1, when detection should not decide.

    Returns:
        Candidates for `ground`; those that are not asserted carry their modality and will be refused
        there, so that people can see why nothing was learned.  Empty for any role but ``user``.
    """
    if message.role != "user":
        return []
    content = message.content[:MAX_READ_CHARS]
    found: list[Candidate] = []
    for rules in _rules_for(content, language_code):
        found = found or _read_in(rules, message, content, People(rules, subject, others or {}), before)
    return found


def _read_in(
    rules: Language, message: Message, content: str, people: People, before: Message | None
) -> list[Candidate]:
    text = masked(content, rules)
    lower_case = not _CAPITAL.search(re.sub(r"\bI\b", "", text))
    if before is not None and before.role != "user":
        people.mention(masked(before.content[-MAX_TEXT_CHARS:], rules))
    found: list[list[Candidate]] = [[]]
    for span in pieces(text, MAX_TEXT_CHARS):
        piece = Piece(rules, message, span.of(text), span.start, lower_case)
        if _search(rules, "kidding", piece.text):
            found[-1] = []
            continue
        found.append(list(_read_piece(piece, people)))
        people.animal = next((c.value for c in found[-1] if (c.category, c.key) == ("pets", "has_pet")), people.animal)
        people.mention(piece.text)
        people.topic(piece.text, cues(rules).get("topic"))
    told = [candidate for claimed in found for candidate in claimed]
    if not told and before is not None:
        told = list(_answer(rules, message, text, before, people, lower_case))
    return _settled(rules, told)


def _answer(
    rules: Language, message: Message, text: str, before: Message, people: People, lower_case: bool
) -> Iterator[Candidate]:
    """A short reply read with the question that it answers: "Where do you live?", "Lisbon."."""
    asked = [span.of(before.content) for span in split(before.content[-MAX_TEXT_CHARS:]) if span.end]
    question = folded(asked[-1]) if asked else ""
    reply = text.strip()
    if not question.rstrip().endswith(("?", "？")) or not reply or len(reply) > MAX_ANSWER_CHARS or "?" in reply:
        return
    start = text.index(reply)
    piece = Piece(rules, message, reply, start, lower_case)
    for pattern in rules.answers:
        if pattern.question.search(question):
            for expression in pattern.compiled:
                found = expression.regex.match(reply)
                match = filled(piece, pattern, expression, found) if found else None
                if match and not reply[end_of(match.found, match.values) :].strip(" .!,"):
                    yield from claims(piece, people, match)
                    return


def known_others(facts: Iterable[Fact]) -> dict[str, str]:
    """
    The ``others`` of `read` from what is believed: names, and relations that mean one of them alone.

    Args:
        facts: the live facts of one user, of all subjects.
    """
    found: dict[str, str] = {}
    animals: dict[str, list[str]] = {}
    for fact in facts:
        if fact.subject != SELF:
            found.setdefault(fact.subject, fact.subject)
            if (fact.category, fact.key) == ("identity", "species"):
                animals.setdefault(fact.value, []).append(fact.subject)
        elif fact.category == "family" and not fact.key.startswith(("how_many", "has")):
            found[fact.value] = subject_name(fact.key if fact.key in UNIQUE else fact.value)
        elif (fact.category, fact.key) == ("pets", "pet_named"):
            found[fact.value] = subject_name(fact.value)
    for species, subjects in animals.items():
        if len(subjects) == 1:
            found.setdefault(species, subjects[0])
    return found


def might_state(text: str, language_code: str | None = None) -> bool:
    """
    Whether *text* may state or change a fact: a cheap look at its words, for deciding when to extract.

    Errs towards True; small talk, thanks and bare questions give False.
    """
    content = text[:MAX_READ_CHARS]
    rules_for = _rules_for(content, language_code)
    straight = folded(content)
    return any(_might_state_in(rules, straight) for rules in rules_for) if rules_for else bool(content.strip())


def _might_state_in(rules: Language, text: str) -> bool:
    if _search(rules, "always_states", text):
        return True
    if "first_person" in rules.modality and not _search(rules, "first_person", text):
        return False
    return _search(rules, "change", text) or any(
        word in rules.triggers and word not in rules.weak for word in rules.words(text)
    )


def _rules_for(text: str, code: str | None) -> list[Language]:
    """The patterns to try in turn: of the text's language, then English, as short texts mislead detection."""
    codes = [code] if code else [*likely_languages(text), FALLBACK]
    if codes[0] in UNMISTAKABLE:
        codes = codes[:1]
    return [rules for rules in map(language, dict.fromkeys(codes)) if rules]


def _search(rules: Language, cue: str, text: str) -> bool:
    pattern = cues(rules).get(cue)
    return bool(pattern and pattern.search(text))


def _read_piece(piece: Piece, people: People) -> Iterator[Candidate]:
    patterns = piece.language.triggered(piece.text)
    anchors = piece.language.anchors(piece.text) if patterns else []
    for pattern in sorted(patterns, key=lambda pattern: not pattern.names):
        for expression in pattern.compiled:
            for found in expression.matches(piece.text, anchors):
                match = filled(piece, pattern, expression, found)
                if match is not None:
                    yield from claims(piece, people, match)


def _settled(rules: Language, found: list[Candidate]) -> list[Candidate]:
    """Each claim once, in the order of the words; of a category that holds one fact only the last."""
    last = {pattern.category for pattern in rules.patterns if pattern.last}
    seen: dict[tuple[str, ...], Candidate] = {}
    for candidate in sorted(found, key=lambda c: (c.start, c.start + len(c.quote))):
        address = (candidate.subject, candidate.category, candidate.key, candidate.value.casefold(), candidate.op)
        if address not in seen or seen[address].confidence < candidate.confidence:
            seen[address] = candidate
    kept = list(seen.values())
    final = {
        (c.subject, c.category): c for c in kept if c.category in last and c.op == "assert" and c.modality == "asserted"
    }
    return [
        c for c in kept
        if c.category not in last or c.op == "retract" or c.modality != "asserted" or final[c.subject, c.category] is c
    ]  # fmt: skip
