"""
Is the quote really there, and did the user say it?

Every candidate passes here before anything is believed, whoever read it: the rules or a model.  What
fails is returned with a reason: a stable code, a colon, and words for people.  Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from ..types import Candidate, Evidence, Message
from .modality import BLANK, own_words
from .vocabulary import folded

NO_QUOTE = "no-quote: the candidate gives no words that it rests on"
NOT_IN_WINDOW = "not-in-window: the message it names was not among those read"
NOT_SAID_BY_USER = "not-said-by-user: the words stand in a message of role {role}"
NOT_THERE = "quote-not-found: the quoted words do not stand in that message"
AMBIGUOUS = "quote-ambiguous: the quoted words stand there {count} times, and the place given is none of them"
QUOTED = "not-own-words: the words stand inside a quotation, code, a link or pasted text"
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
    Split *candidates* into those that stand, with their evidence, and those that do not, with a reason.

    Args:
        candidates: in the order in which they shall be applied; the order is kept.
        messages: the window that was read, by message number.
        min_confidence: from 0 to 1; what is below is refused.
        injected: lines that the memory itself put into the prompt; text that repeats one is no evidence.

    Returns:
        ``(grounded, rejected)``.  A wrong ``start`` is mended when the quote stands in the message
        exactly once.
    """
    grounded: list[tuple[Candidate, Evidence]] = []
    rejected: list[tuple[Candidate, str]] = []
    told: dict[int, str] = {}
    lines = frozenset(_plain(line) for line in injected if len(_plain(line)) >= MIN_INJECTED_CHARS)
    for candidate in candidates:
        message = messages.get(candidate.seq)
        reason = _unfit(candidate, message, min_confidence)
        start = candidate.start
        if not reason and message is not None:
            start, reason = _place(candidate, message)
        if not reason and message is not None:
            if candidate.seq not in told:
                told[candidate.seq] = own_words(message.content)
            reason = _foreign(candidate, message, told[candidate.seq], start, lines)
        if reason or message is None:
            rejected.append((candidate, reason))
        else:
            mended = candidate if start == candidate.start else replace(candidate, start=start)
            grounded.append((mended, _evidence(mended, message)))
    return grounded, rejected


def _unfit(candidate: Candidate, message: Message | None, min_confidence: float) -> str:
    """Why the claim cannot stand whatever the message says; empty when it may."""
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
    """Where the quote stands, or why that cannot be said."""
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
    """Why the words at *start* are not the user's own; empty when they are."""
    end = start + len(candidate.quote)
    blanked = own.count(BLANK, start, end) - message.content.count(BLANK, start, end)
    letters = sum(ch.isalnum() for ch in own[start:end])
    if blanked and (not letters or blanked * 2 > len(candidate.quote)):
        return QUOTED
    if injected and any(line in injected for line in _lines_around(message.content, start, end)):
        return INJECTED
    return ""


def _lines_around(content: str, start: int, end: int) -> list[str]:
    """The quote itself and each line that it touches, as `injected` lines are compared."""
    first = content.rfind("\n", 0, start) + 1
    last = content.find("\n", end)
    block = content[first : len(content) if last < 0 else last]
    return [_plain(content[start:end]), *(_plain(line) for line in block.split("\n"))]


def _plain(line: str) -> str:
    """A line without case, list marks, JSON quotes and the white space around them."""
    return " ".join(folded(line).casefold().split()).strip("-*•\"' ,.")


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
