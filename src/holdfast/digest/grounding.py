"""
Grounding: is the quote really in the message, and are the words the user's own?

Every candidate passes `ground`, whether the rules or a model found it; a model's claims pass `second_look` before.
A rejection is a stable code, a colon, and words for users.  Pure.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from ..text.terms import fold_quotes
from ..types import Candidate, Evidence, Message
from .authorship import BLANK, kind_of_text, masked

NO_QUOTE = "no-quote: the candidate gives no words that it rests on"
NOT_IN_WINDOW = "not-in-window: the message it names was not among those read"
NOT_SAID_BY_USER = "not-said-by-user: the words stand in a message of role {role}"
NOT_THERE = "quote-not-found: the quoted words do not stand in that message"
AMBIGUOUS = "quote-ambiguous: the quoted words stand there {count} times, and the place given is none of them"
QUOTED = "not-own-words: the words stand inside {kind}"
INJECTED = "injected: the words were put into the prompt by the memory itself"
NOT_ASSERTED = "not-asserted: the words are {modality}"
LOW_CONFIDENCE = "low-confidence: {confidence:.2f} is below {least:.2f}"
INCOMPLETE = "incomplete: a fact needs a subject, a category, a key and a value"
MIN_INJECTED_CHARS = 12  # shorter lines ("ok", a name) are said by everybody


def ground(
    candidates: Iterable[Candidate],
    messages: Mapping[int, Message],
    *,
    min_confidence: float,
    injected: Collection[str] = (),
) -> tuple[list[tuple[Candidate, Evidence]], list[tuple[Candidate, str]]]:
    """
    Split *candidates* into grounded ones with their evidence and rejected ones with the reason.

    Args:
        candidates: in the order in which they shall be applied; the order is kept.
        messages: the window that was read, by message number.
        min_confidence: from 0 to 1; what is below is refused.
        injected: lines that the memory itself put into the prompt; text that repeats one is no evidence.

    Returns:
        ``(grounded, rejected)``.  A wrong ``start`` is mended when the quote occurs in the message
        exactly once.
    """
    grounded: list[tuple[Candidate, Evidence]] = []
    rejected: list[tuple[Candidate, str]] = []
    lines = frozenset(_normal_line(line) for line in injected if len(_normal_line(line)) >= MIN_INJECTED_CHARS)
    for candidate in candidates:
        message = messages.get(candidate.seq)
        reason = _unfit(candidate, message, min_confidence)
        start = candidate.start
        if not reason and message is not None:
            start, reason = _place(candidate, message)
        if not reason and message is not None:
            reason = _foreign(candidate, message, masked(message.content), start, lines)
        if reason or message is None:
            rejected.append((candidate, reason))
        else:
            mended = candidate if start == candidate.start else replace(candidate, start=start)
            grounded.append((mended, _evidence(mended, message)))
    return grounded, rejected


def _unfit(candidate: Candidate, message: Message | None, min_confidence: float) -> str:
    """Return why the candidate fails whatever the message says; empty when it may pass."""
    if message is None:
        return NOT_IN_WINDOW
    if message.role != "user":
        return NOT_SAID_BY_USER.format(role=message.role)
    if not candidate.quote.strip():
        return NO_QUOTE
    addressed = candidate.kind != "attribute" or candidate.op == "retract" or (candidate.key and candidate.value)
    if not candidate.subject or not candidate.category or not addressed:
        return INCOMPLETE
    if candidate.modality != "asserted" and not (candidate.modality == "negated" and candidate.op == "retract"):
        return NOT_ASSERTED.format(modality=candidate.modality)
    if not candidate.confidence >= min_confidence:  # also refuses NaN
        return LOW_CONFIDENCE.format(confidence=candidate.confidence, least=min_confidence)
    return ""


def _place(candidate: Candidate, message: Message) -> tuple[int, str]:
    """Return the start of the quote, or the reason why it cannot be found."""
    quote, content = candidate.quote, message.content
    if candidate.start >= 0 and content.startswith(quote, candidate.start):
        return candidate.start, ""
    first = content.find(quote)
    if first < 0:
        return -1, NOT_THERE
    if content.find(quote, first + 1) >= 0:
        return -1, AMBIGUOUS.format(count=content.count(quote))
    return first, ""


def _foreign(candidate: Candidate, message: Message, own: str, start: int, injected: Collection[str]) -> str:
    """Return why the words at *start* are not the user's own; empty when they are."""
    end = start + len(candidate.quote)
    blanked = own.count(BLANK, start, end) - message.content.count(BLANK, start, end)
    letters = sum(ch.isalnum() for ch in own[start:end])
    if blanked and (not letters or blanked * 2 > len(candidate.quote)):
        return QUOTED.format(kind=kind_of_text(message.content, start, end))
    if injected and any(line in injected for line in _lines_around(message.content, start, end)):
        return INJECTED
    return ""


def _lines_around(content: str, start: int, end: int) -> list[str]:
    """Return the quote and each line that it touches, normalized like `injected` lines."""
    first = content.rfind("\n", 0, start) + 1
    last = content.find("\n", end)
    block = content[first : len(content) if last < 0 else last]
    return [_normal_line(content[start:end]), *(_normal_line(line) for line in block.split("\n"))]


def _normal_line(line: str) -> str:
    """Normalize a line: without case, list marks, JSON quotes and surrounding white space."""
    return " ".join(fold_quotes(line).casefold().split()).strip("-*•\"' ,.")


def _evidence(candidate: Candidate, message: Message) -> Evidence:
    start = candidate.start
    return Evidence(
        conversation=message.conversation,
        seq=message.seq,
        role=message.role,
        quote=candidate.quote,
        start=start,
        end=start + len(candidate.quote),
        at=message.at,
    )


MAX_PLACES = 20
_SAME = {
    "‘": "'", "’": "'", "‚": "'", "‛": "'", "`": "'", "´": "'", "′": "'",
    "“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "「": '"', "」": '"', "『": '"', "』": '"',
    "–": "-", "—": "-", "‐": "-", "‑": "-", "−": "-", "…": "...",
}  # fmt: skip
_INVISIBLE = frozenset("\u200b\u200c\u200d\u2060\ufeff\u00ad\ufe0e\ufe0f")
_EDGES = " \t\"'.,;:!?。，、！？…*_"


def locate_quote(quote: str, content: str) -> tuple[int, int] | None:
    """
    Return ``(start, end)`` of *quote* in *content*; ``None`` when it is absent or holds no word.

    Of several places the first is taken that is the writer's own talk, else the first.
    """
    quote = quote.strip()
    if not any(ch.isalnum() for ch in quote):
        return None
    return _in_own_words([(at, at + len(quote)) for at in _find_all(quote, content)], content) or _folded(
        quote, content
    )


def _folded(quote: str, content: str) -> tuple[int, int] | None:
    wanted = "".join(_fold_with_places(quote)[0]).strip(_EDGES)
    if not any(ch.isalnum() for ch in wanted):
        return None
    characters, at = _fold_with_places(content)
    text = "".join(characters)
    found = []
    for start in _find_all(wanted, text):
        end = start + len(wanted)
        if _within_word(text, start, end):
            continue
        found.append((at[start], at[end - 1] + 1))
    return _in_own_words(found, content)


def _find_all(needle: str, text: str) -> list[int]:
    places: list[int] = []
    at = text.find(needle)
    while at >= 0 and len(places) < MAX_PLACES:
        places.append(at)
        at = text.find(needle, at + 1)
    return places


def _in_own_words(spans: list[tuple[int, int]], content: str) -> tuple[int, int] | None:
    if len(spans) < 2:
        return spans[0] if spans else None
    own = masked(content)
    return next((span for span in spans if BLANK not in own[span[0] : span[1]]), spans[0])


def _within_word(text: str, start: int, end: int) -> bool:
    """Whether the span begins or ends inside a word, in scripts with spaces."""

    def joined(left: str, right: str) -> bool:
        return left.isascii() and right.isascii() and left.isalnum() and right.isalnum()

    before = start > 0 and joined(text[start - 1], text[start])
    return before or (end < len(text) and joined(text[end - 1], text[end]))


def _fold_with_places(text: str) -> tuple[list[str], list[int]]:
    """Return the folded characters of *text*, and the place of each in *text*."""
    out: list[str] = []
    at: list[int] = []
    for place, char in enumerate(text):
        if char in _INVISIBLE:
            continue
        if char.isspace():
            if out and out[-1] != " ":
                out.append(" ")
                at.append(place)
            continue
        for piece in _SAME.get(char) or unicodedata.normalize("NFKC", char).casefold():
            out.append(" " if piece.isspace() else piece)
            at.append(place)
    return out, at
