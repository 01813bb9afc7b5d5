"""
What falls because it holds words that only erased messages said.

A model tells things in words of its own, which it may take from anywhere in what it was shown, not only
from the message that it quotes: a name from the sentence before, an answer from the question.  So after
the quotes have gone, every fact and every refused claim is searched for words that no message says any
more.  Words that everybody uses do not count.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator

from ..ingest.redact import MASK
from ..reconcile.agree import FILLERS, MARK_OF
from ..reconcile.erase import Fallen, drop_fact
from ..store.protocol import FactRow, ReadView, WriteView

LEAST_CHARS = 4  # shorter words count when they are written like a name or hold a digit
WIDE = 0x2E80
_RUN = re.compile(r"\w+")
_PAGE = 500


def telling_words(text: str) -> frozenset[str]:
    """The words of *text* that could give something away: names, numbers, long words, signs; pairs of wide characters."""
    found = {sign for sign in text if unicodedata.category(sign)[0] in "SC" and not sign.isspace()}
    for run in _RUN.findall(text):
        low = run.casefold()
        if any(ord(ch) >= WIDE for ch in run):
            found.update(low[at : at + 2] for at in range(max(1, len(low) - 1)))
        elif low in FILLERS or low in MARK_OF:
            continue
        elif len(low) >= LEAST_CHARS or run[0].isupper() or any(ch.isdigit() for ch in run):
            found.add(low)
    return frozenset(found - {MASK})


def words_of(text: str) -> frozenset[str]:
    """As `telling_words`, whatever the word."""
    runs = [run.casefold() for run in _RUN.findall(text)]
    return telling_words(text) | frozenset(runs)


def lose_borrowed(view: WriteView, gone: Iterable[str], fallen: Fallen, now_ms: int) -> None:
    """
    Drop the user's facts and refused claims that hold a word which no message says any more.

    Args:
        view: of the user, inside the transaction in which the messages have changed already.
        gone: the contents that were erased.
        fallen: what went is added to it.
        now_ms: when.
    """
    everybody = view.at(None, None)
    lost = frozenset[str]().union(*map(telling_words, gone))
    held = [(row, _held(row) & lost) for row in everybody.facts_ever()]
    held = [(row, words) for row, words in held if words]
    refused = list(_refused(view, lost))
    doubted = set().union(*(words for _, words in held), *(words for *_, words in refused))
    if not doubted:
        return
    for content in _contents(view):
        doubted -= words_of(content)
        if not doubted:
            return
    for row, words in held:
        current = everybody.fact(row.fact.id) if words & doubted else None
        if current is not None:
            drop_fact(everybody, current, fallen, now_ms, revive=True)
    for here, seq, words in refused:
        if words & doubted:
            fallen.count("refused", here.remove_rejected(seq, seq))


def _held(row: FactRow) -> frozenset[str]:
    fact = row.fact
    return words_of(fact.value if fact.kind == "attribute" else f"{fact.text} {fact.value}")


def _refused(view: WriteView, lost: frozenset[str]) -> Iterator[tuple[WriteView, int, frozenset[str]]]:
    for row in view.at(None, None).conversations():
        here = view.at(row.subject, row.conversation)
        for one in here.rejected(limit=2**62):
            claim = one.candidate
            words = words_of(f"{claim.value} {claim.text} {claim.quote}") & lost
            if words:
                yield here, claim.seq, words


def _contents(view: ReadView) -> Iterator[str]:
    """What every message of the user says now."""
    for row in view.at(None, None).conversations():
        here = view.at(row.subject, row.conversation)
        for first in range(1, row.next_seq, _PAGE):
            yield from (m.content for m in here.messages(start_seq=first, limit=_PAGE))
