"""
What must not be remembered: cards, social security and account numbers, passwords, keys.  Pure.

Detectors run in a fixed order and claim spans: what one has claimed, no later one sees, so a card is
not a phone number as well.  Everything that is derived from a message is made from its *masked*
text, in which every claimed character is a ``█``: offsets stay, and no word of it can reach the
index, a vector, a fact, a quote, a summary or a prompt that makes one of these.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..types import Detector, Message
from .credentials import key_spans, password_spans, pem_spans

MASK = "\u2588"
MOST_GROUPS = 7  # into which users cut the number of a card

_DIGITS = re.compile(r"(?<!\d)\d(?:[ \u00a0.\-]?\d)+(?!\d)")
_TWO_DIGITS = re.compile(r"\d\d")
_GROUP = re.compile(r"\d+")
_SSN = re.compile(r"(?<![\d-])(?!000|666|9\d\d)\d{3}([- \u2013])(?!00)\d{2}\1(?!0000)\d{4}(?![\d-])")
_SSN_NAMED = re.compile(
    r"\b(?:ssn|social security(?: number| no\.?| #)?)(?: is| =|:)? {0,2}((?!000|666|9\d\d)\d{3}(?!00)\d{2}(?!0000)\d{4})(?!\d)",
    re.IGNORECASE,
)
_IBAN = re.compile(r"(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?:[ \u00a0-]?[A-Z0-9]){11,30}")
# Characters of an account number by country; a country that is not here has none, so nothing is claimed for it.
_IBAN_CHARS: Mapping[str, int] = {
    country: chars
    for chars, countries in {
        15: "NO", 16: "BE", 18: "DK FI FO GL NL SD FK", 19: "MK SI", 20: "AT BA EE KZ LT LU XK MN",
        21: "CH HR LI LV", 22: "BG BH CR DE GB GE IE ME RS VA", 23: "AE GI IL IQ TL OM SO",
        24: "AD CZ ES MD PK RO SA SE SK TN VG", 25: "PT LY ST", 26: "IS TR", 27: "FR GR IT MC MR SM",
        28: "AL AZ BY CY DO GT HU LB NI PL SV", 29: "BR EG PS QA UA", 30: "JO KW MU YE", 31: "MT SC", 32: "LC", 33: "RU",
    }.items()
    for country in countries.split()
}  # fmt: skip
# First digits and lengths of the cards in use.
_CARDS = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|3[47]\d{13}"
    r"|3(?:0[0-59]|[689]\d)\d{11,16}|35\d{14,17}|6(?:011|4[4-9]\d|5\d\d|2\d\d|[0-3789]\d\d)\d{8,15}"
)


@dataclass(frozen=True, slots=True)
class Span:
    """One thing that was found: characters ``start`` to ``end``, end excluded."""

    start: int
    end: int
    kind: str


def find(text: str, detectors: Sequence[Detector] = ()) -> list[Span]:
    """What stands in *text* that must not be remembered, in its order, no two overlapping."""
    taken: list[Span] = []
    for kind, spans in _found(text, detectors):
        for start, end in spans:
            place = bisect(taken, start, key=lambda span: span.start)
            free = (place == 0 or taken[place - 1].end <= start) and (place == len(taken) or end <= taken[place].start)
            if 0 <= start < end <= len(text) and free:
                taken.insert(place, Span(start, end, kind))
    return taken


def _found(text: str, detectors: Sequence[Detector]) -> Iterator[tuple[str, Iterable[tuple[int, int]]]]:
    yield "private-key", pem_spans(text)
    yield "key", key_spans(text)
    if _TWO_DIGITS.search(text):
        yield "iban", _ibans(text)
        yield "card", _cards(text)
        yield "ssn", _ssns(text)
    yield "password", password_spans(text)
    for detector in detectors:
        yield detector.kind, detector.find(text)


def masked(text: str, detectors: Sequence[Detector] = ()) -> str:
    """*text* with every claimed character but line ends replaced; as long as before."""
    return _filled(text, find(text, detectors), lambda span, found: re.sub(r"[^\n]", MASK, found))


def told(text: str, detectors: Sequence[Detector] = ()) -> str:
    """*text* for users, and for storage when messages are redacted: ``[card removed]``."""
    return _filled(text, find(text, detectors), lambda span, found: f"[{span.kind} removed]")


def counted(text: str, detectors: Sequence[Detector] = ()) -> Counter[str]:
    """How often each kind was found."""
    return Counter(span.kind for span in find(text, detectors))


def masked_message(message: Message, detectors: Sequence[Detector] = ()) -> Message:
    """The message as everything that derives from it may read it."""
    content = masked(message.content, detectors)
    return message if content == message.content else replace(message, content=content)


def told_value(value: Any, detectors: Sequence[Detector] = ()) -> Any:
    """`told` for every text inside a JSON value: what tools were called with, parts of a message."""
    if isinstance(value, str):
        return told(value, detectors)
    if isinstance(value, list):
        return [told_value(item, detectors) for item in value]
    if isinstance(value, Mapping):
        return {key: told_value(item, detectors) for key, item in value.items()}
    return value


def _filled(text: str, spans: Sequence[Span], fill: Any) -> str:
    if not spans:
        return text
    parts, at = [], 0
    for span in spans:
        parts += [text[at : span.start], fill(span, text[span.start : span.end])]
        at = span.end
    return "".join([*parts, text[at:]])


def _cards(text: str) -> Iterator[tuple[int, int]]:
    """Whole groups of digits that together are a card's number with a right check digit."""
    for run in _DIGITS.finditer(text):
        groups = [(run.start() + g.start(), g.group()) for g in _GROUP.finditer(run.group())]
        first = 0
        while first < len(groups):
            last = _card_from(groups, first)
            if last:
                yield groups[first][0], groups[last - 1][0] + len(groups[last - 1][1])
            first = max(first + 1, last)


def _card_from(groups: Sequence[tuple[int, str]], first: int) -> int:
    """The end of the longest card's number that begins with group *first*; 0 when none does."""
    digits, found = "", 0
    for last in range(first, min(len(groups), first + MOST_GROUPS)):
        digits += groups[last][1]
        if len(digits) > 19:
            break
        if len(digits) >= 13:
            plain = "".join(str(int(ch)) for ch in digits)
            if _CARDS.fullmatch(plain) and len(set(plain)) > 1 and luhn(plain):
                found = last + 1
    return found


def luhn(digits: str) -> bool:
    """Whether the last digit checks the others (ISO/IEC 7812-1)."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        number = int(digit) * (2 if place % 2 else 1)
        total += number - 9 if number > 9 else number
    return total % 10 == 0


def _ibans(text: str) -> Iterator[tuple[int, int]]:
    for found in _IBAN.finditer(text):
        chars = _IBAN_CHARS.get(found.group()[:2], 0)
        places = [i for i, ch in enumerate(found.group()) if ch.isalnum()][:chars]
        following = text[found.start() + places[-1] + 1 :][:1] if places else ""
        if not chars or len(places) < chars or following.isalnum():
            continue
        account = "".join(found.group()[i] for i in places)
        number = "".join(str(int(ch, 36)) for ch in account[4:] + account[:4])
        if int(number) % 97 == 1:
            yield found.start(), found.start() + places[-1] + 1


def _ssns(text: str) -> Iterator[tuple[int, int]]:
    for found in _SSN.finditer(text):
        yield found.span()
    for found in _SSN_NAMED.finditer(text):
        yield found.span(1)
