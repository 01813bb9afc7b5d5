"""
A second look at what a model claims to have read, by rules that know the language.

The quote is there and the user wrote it; is the claim in it?  Four mistakes can be seen without a model:
the words suppose, report or ask; they are about somebody else; the claim's words came from another
speaker, from a quotation, or from what the memory itself showed; its numbers stand nowhere.  Where the
language is not known only the last two are looked at.  Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from ..clock import from_ms
from ..text.dates import find_times
from ..text.sentences import split
from ..text.terms import likely_languages
from ..types import Candidate, Message
from .whose import OTHER, affirms, claimed_terms, flaws, own_terms, terms_of

SUPPOSED = "not-asserted: by the words around them the words are {modality}"
OF_OTHERS = "about-someone-else: the words are about another person, and the claim is about the user"
BY_OTHERS = "said-by-others: what is claimed stands in what another says or is quoted with, not in the user's own words"
NUMBER = "number-not-said: the claim holds a number that the message does not"

_SMALL = 31
_DIGITS = re.compile(r"\d+")
_GROUPED = re.compile(r"(?<=\d)[.,'\u00a0\u202f ](?=\d)")
_YES_CHARS = 60


def misread(
    candidate: Candidate,
    message: Message,
    before: Message | None,
    window: Sequence[Message],
    believed: Collection[str] = (),
    code: str | None = None,
) -> str:
    """
    Why the claim cannot be what the words say; empty when nothing speaks against it.

    Args:
        candidate: with its quote at its place in *message*.
        message: the user's message that it quotes.
        before: the message directly before that one.
        window: all messages that the model saw.
        believed: what else it was shown: known facts, which are no news.
        code: the language (ISO 639-1), when detection should not decide.
    """
    if candidate.modality == "asserted":
        found = flaws(candidate, message, code)
        if found and all(found):
            return OF_OTHERS if OTHER in found else SUPPOSED.format(modality=found[0])
    if _from_others(candidate, message, before, window, believed, code):
        return BY_OTHERS
    invented = candidate.op == "assert" and _invents_number(candidate, message, before)
    return NUMBER if invented else ""


def _from_others(
    candidate: Candidate,
    message: Message,
    before: Message | None,
    window: Sequence[Message],
    believed: Collection[str],
    code: str | None,
) -> bool:
    """Whether words of the claim stand in what the model saw, but not where a user says so; a question may lend them."""
    said = claimed_terms(candidate)
    shown = [m.content for m in window] + [message.content] + ([before.content] if before else [])
    if candidate.op == "assert":
        shown += believed
    seen = said.intersection(frozenset[str]().union(*map(terms_of, shown)))
    foreign = seen - own_terms(candidate, [*window, message], code) if seen else seen
    if not foreign or 2 * len(foreign) < len(seen):
        return False
    return before is None or before.role == "user" or not _lent(candidate, message, before, foreign, code)


def _lent(candidate: Candidate, message: Message, before: Message, words: frozenset[str], code: str | None) -> bool:
    """Whether a question holds *words*, and the user's short reply takes them for its own."""
    last = [span.of(before.content) for span in split(before.content[-400:])][-1:]
    asked = last[0] if last and last[0].rstrip("\"')*_ ").endswith(("?", "？")) else ""
    if not asked or len(message.content) > _YES_CHARS or not words <= terms_of(asked):
        return False
    denied = candidate.op == "retract" or candidate.value.casefold() in ("false", "no")
    return denied or affirms(message.content, asked, code)


def _invents_number(candidate: Candidate, message: Message, before: Message | None) -> bool:
    """Whether the claim names a number that nobody said: neither in digits nor as a small one in words."""
    wanted = [int(number) for number in _DIGITS.findall(candidate.value or candidate.text) if len(number) < 19]
    if not wanted:
        return False
    known = numbers_said(message) | (numbers_said(before) if before is not None else frozenset())
    spelled = not _DIGITS.search(message.content)
    return any(number not in known and not (number <= _SMALL or (spelled and number <= 100)) for number in wanted)


def numbers_said(message: Message) -> frozenset[int]:
    """The numbers that a message names in digits, also as thousands, and those of the dates that it means."""
    text = message.content
    known = {int(n) for n in (*_DIGITS.findall(text), *_DIGITS.findall(_GROUPED.sub("", text))) if len(n) < 19}
    known |= {1000 * number for number in known}  # "5k", "5 thousand"
    if message.at is not None and message.at.tzinfo is not None:
        known |= {message.at.year + more for more in (-1, 0, 1)} | {message.at.month, message.at.day}
        for code in likely_languages(text[:400])[:1]:
            for span in find_times(text[:2000], message.at, code):
                known |= _date_numbers(span.from_ms) | _date_numbers(span.to_ms - 1)
    return frozenset(known)


def _date_numbers(at_ms: int) -> set[int]:
    at = from_ms(at_ms)
    return {at.year, at.month, at.day, at.hour, at.minute}
