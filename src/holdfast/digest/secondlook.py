"""
A second look at what a model claims to have read, by rules that know the language.

The quote is there and the user wrote it; is the claim in it?  Four mistakes can be seen without a model:
the words suppose, report or ask; they are about somebody else; the claim's words came from another
speaker; its numbers stand nowhere.  Where the language is not known only the last two are looked at.
Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from ..clock import from_ms
from ..scope import SELF
from ..text.dates import find_times
from ..text.sentences import pieces
from ..text.terms import likely_languages, terms
from ..types import Candidate, Message
from .grammar import MAX_TEXT_CHARS, Language, language
from .modality import judge, masked
from .vocabulary import folded

SUPPOSED = "not-asserted: by the words around them the words are {modality}"
OF_OTHERS = "about-someone-else: the words are about another person, and the claim is about the user"
BY_OTHERS = "said-by-others: what is claimed stands in what another speaker said, not in the user's words"
NUMBER = "number-not-said: the claim holds a number that the message does not"

# What is said of these people is also a fact about the user: that they have them.
_OF_THE_USER = frozenset({"family", "pets", "contact"})
_SMALL = 31
_DIGITS = re.compile(r"\d+")
_GROUPED = re.compile(r"(?<=\d)[.,'\u00a0\u202f ](?=\d)")
_YES_CHARS = 60


def misread(
    candidate: Candidate, message: Message, before: Message | None, window: Sequence[Message], code: str | None = None
) -> str:
    """
    Why the claim cannot be what the words say; empty when nothing speaks against it.

    Args:
        candidate: with its quote at its place in *message*.
        message: the user's message that it quotes.
        before: the message directly before that one.
        window: all messages that the model saw.
        code: the language (ISO 639-1), when detection should not decide.
    """
    if candidate.modality == "asserted" and candidate.op == "assert":
        for rules in _rules_for(message.content, code):
            modality = _modality(rules, candidate, message)
            if modality:
                return SUPPOSED.format(modality=modality)
            if _about_others(rules, candidate, message):
                return OF_OTHERS
    if _from_others(candidate, message, before, window):
        return BY_OTHERS
    return NUMBER if _invents_number(candidate, message, before) else ""


def _rules_for(text: str, code: str | None) -> list[Language]:
    codes = [code] if code else likely_languages(text[:2000])[:1]
    return [rules for rules in map(language, codes) if rules]


def _sentence(candidate: Candidate, text: str) -> tuple[str, int, int]:
    """The sentence that holds the quote's beginning, and the quote's bounds within it."""
    start, end = candidate.start, candidate.start + len(candidate.quote)
    for span in pieces(text, MAX_TEXT_CHARS):
        if span.start <= start < span.end:
            return span.of(text), start - span.start, min(end, span.end) - span.start
    return text[start:end], 0, end - start


def _modality(rules: Language, candidate: Candidate, message: Message) -> str:
    sentence, start, end = _sentence(candidate, masked(message.content, rules))
    verdict = judge(rules, sentence, start, end, lead=False, asked=candidate.category == "account")
    return "" if verdict is None or verdict.modality == "asserted" else verdict.modality


def _about_others(rules: Language, candidate: Candidate, message: Message) -> bool:
    """Whether a claim about the user rests on a clause whose subject is a person of theirs and nobody else."""
    if candidate.subject != SELF or candidate.kind != "attribute" or candidate.category in _OF_THE_USER:
        return False
    people = rules.people
    own, she = str(people.get("own", "")), f"{people.get('she', '')} {people.get('he', '')}".split()
    relations = rules.lexicons.get("relation")
    if not own or relations is None:
        return False
    sentence, start, _ = _sentence(candidate, folded(message.content))
    clause = sentence[start:].casefold()
    possessed = list(re.finditer(rf"(?<!\w)(?:{own})\s*", clause))
    others = [found for found in possessed if relations.one.match(clause, found.end())]
    plain = re.sub(rf"(?<!\w)(?:{own})(?!\w)", " ", clause)
    words = set(re.findall(r"[^\W\d_]+(?:['’][^\W\d_]+)?", plain))
    if words & set(str(people.get("me", "")).split()):
        return False
    return bool(others and others[0].start() == 0) or bool(words & set(she) and not possessed)


def _from_others(candidate: Candidate, message: Message, before: Message | None, window: Sequence[Message]) -> bool:
    """Whether words of the claim were said, and said by others only; a question that was answered may lend them."""
    said = _claimed(candidate)
    if not said:
        return False
    mine = frozenset().union(*(_terms(m.content) for m in window if m.role == "user"), _terms(message.content))
    foreign = said - mine
    theirs = frozenset().union(*(_terms(m.content) for m in window if m.role != "user"))
    if before is not None and before.role != "user":
        theirs |= _terms(before.content)
        asked = before.content.rstrip(" \n\"')*_").endswith(("?", "？"))
        if asked and len(message.content) <= _YES_CHARS and foreign <= _terms(before.content[-400:]):
            return False
    return bool(foreign & theirs) and 2 * len(foreign & theirs) >= len(said)


def _claimed(candidate: Candidate) -> frozenset[str]:
    value = candidate.value or candidate.text
    return _terms(candidate.key if value in ("true", "false") else value)


@lru_cache(maxsize=256)
def _terms(text: str) -> frozenset[str]:
    return frozenset(terms(text[:20_000].replace("_", " ")))


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
