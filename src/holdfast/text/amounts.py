"""
Amounts: the numbers of a claim in one language against those of its quote in another.

Whole decimal numbers are compared, "7,5" being "7.5", and small ones written as words.  Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from .dates import date_words

_NUMBER = re.compile(r"\d+(?:[.,'\u00a0\u202f]\d+)*")
_DECIMAL = re.compile(r"\d{1,15}(?:\.\d{1,15})?")
_GROUPED = re.compile(r"\d{1,3}(?:[.']\d{3})+")
_THOUSANDS = (
    (r"k\b|thousand|tausend|mil\b|mille|mila|천|千", 1000),
    (r"만|万|萬", 10_000),
    (r"mill?i[oõó]n|milh|백만", 1_000_000),
)
_MANY = tuple((re.compile(rf"\s?(?:{words})", re.IGNORECASE), times) for words, times in _THOUSANDS)
_CLOCK = re.compile(r"[:.h]\d\d\b|\s?(?:[ap]\.?m\b|uhr|h\b|heures?|o'clock|시|時|点)", re.IGNORECASE)
_HALF = re.compile(r"hal[bf]|medi[ao]|demie?|mezz[ao]|meia|반|半|quart|viertel|cuarto", re.IGNORECASE)
# Words for a number beyond the table of a language; which number they mean is not read.
_GREATER = re.compile(
    r"(?:thir|for|fif|six|seven|eigh|nine)t(?:y|een)|fourteen|twenty|hundred|zehn\b|zwanzig|(?:drei|vier|fünf|sech|sieb|acht|neun)\w*(?:zig|ßig|ssig)"
    r"|hundert|veint|treint|\w+enta\b|dieci\w|cien\b|ciento|vingt|trent|quarant|cinquant|soixant|\bcent\b|quatorz|seize|dix-|vinte|trinta"
    r"|venti|sessant|settant|ottant|novant|열\s?[한두세네다여일아]|스물|스무|서른|마흔|쉰|예순|일흔|여든|아흔|[이삼사오육칠팔구]?십|백"
    r"|[一二三四五六七八九]?[十百][一二三四五六七八九]?",
    re.IGNORECASE,
)
_GREATEST = 100  # that such a word may mean
_MULTIPLES = (
    (
        2,
        r"twice|both|double|second|beide\w*|doppelt|zweit\w+|amb[ao]s|doble|pareja|segund\w+|deuxi\w+|entramb\w+|둘|쌍둥이|双子",
    ),
    (3, r"thrice|third|dritt\w+|tercer\w*|troisi\w+|terz\w|셋"),
    (4, r"fourth|viert\w+|cuart\w+|quatri\w+|넷"),
    (12, r"dozen|dutzend|docena|douzaine|dozzina|dúzia"),
)
_TIMES = tuple((number, re.compile(rf"(?<!\w)(?:{words})", re.IGNORECASE)) for number, words in _MULTIPLES)
_AMBIGUOUS = frozenset(("sei", "neuf", "second"))  # which are other words as well
_WIDE = ("zh", "ja", "ko")
_LEAST_PREFIX = 4  # letters of a number's word that may begin another: "dreijährig"


def holds_numbers(said: str, language: str, quoted: str, code: str, dates: Collection[int]) -> bool:
    """
    Whether every number that is *said* in *language* is *quoted*, in digits or words of the language *code*.

    The numbers of *dates* count where a date is said.
    """
    known = set(_known(quoted, code))
    dated = {str(number) for number in dates} if _is_dated(said, language, dates) else set()
    most = _GREATEST if _GREATER.search(quoted) else 1
    for number, clock in _numbers(said):
        readings = _readings(number)
        if clock:
            readings |= {
                str(int(one) + more) for one in readings if len(one) < 3 and one.isdigit() for more in (-12, 12)
            }
        if (
            readings & (known | dated)
            or number.strip("0") == ""
            or (number.isdigit() and len(number) < 4 and int(number) <= most)
        ):
            continue
        return False
    return all(str(number) in known | dated or number <= most for number in _spelled(said, language))


def says_number(number: str, text: str, code: str) -> bool:
    """Whether *text* holds a number that is given in digits, in digits or in words of its language."""
    return bool(_readings(number) & set(_known(text, code)))


def _known(quoted: str, code: str) -> Iterator[str]:
    """Yield the numbers that are quoted, in digits or words."""
    for found in _NUMBER.finditer(quoted):
        readings = _readings(found.group())
        yield from readings
        if _CLOCK.match(quoted, found.end()):
            yield from re.findall(r"\d+", found.group())
        for words, times in _MANY:
            if words.match(quoted, found.end()):
                yield from (_plain(f"{float(one) * times:.3f}") for one in readings if _DECIMAL.fullmatch(one))
    if _HALF.search(quoted):
        yield from ("0.5", "15", "30", "45")
    table = date_words()[code].numbers if code in date_words() else {}
    plain = quoted.casefold()
    heard = re.findall(r"\w+", plain)
    for word, value in table.items():
        starts = len(word) >= _LEAST_PREFIX and any(one.startswith(word) for one in heard)
        if word in heard or starts or (code in _WIDE and word in plain):
            yield _plain(str(value))
        if word in heard:  # "three thousand"
            ends = [found.end() for found in re.finditer(rf"\b{word}\b", plain)]
            yield from (
                _plain(f"{value * times:.3f}") for words, times in _MANY if any(words.match(plain, end) for end in ends)
            )
    yield from (str(number) for number, words in _TIMES if words.search(quoted))


def _numbers(said: str) -> Iterator[tuple[str, bool]]:
    """Yield each number that is said in digits, and whether it is of a clock."""
    for found in _NUMBER.finditer(said):
        clock = bool(_CLOCK.match(said, found.end())) or said[found.start() - 1 : found.start()] == ":"
        yield found.group(), clock


def _readings(number: str) -> set[str]:
    """Return what a number in digits may mean: 1.000 is one and a thousand; 10.11.2025 is also its parts."""
    plain = re.sub(r"[\u00a0\u202f]", "'", number.replace(",", "."))
    found = {_plain(plain)}
    if _GROUPED.fullmatch(plain):
        found.add(_plain(re.sub(r"[.']", "", plain)))
    elif plain.count(".") > 1:
        found |= {_plain(part) for part in plain.split(".")}
    return found


def _plain(number: str) -> str:
    whole, point, part = number.partition(".")
    whole, part = whole.lstrip("0") or "0", part if "." in part else part.rstrip("0")
    return f"{whole}.{part}" if point and part else whole


def _spelled(said: str, language: str) -> set[int]:
    """Return the numbers from two that are said as words; none where words have no spaces between them."""
    if language in _WIDE or language not in date_words():
        return set()
    table = date_words()[language].numbers
    heard = set(re.findall(r"\w+", said.casefold())) - _AMBIGUOUS
    return {int(value) for word, value in table.items() if word in heard and value >= 2 and value == int(value)}


def _is_dated(said: str, language: str, dates: Collection[int]) -> bool:
    """Whether a date is said: with a year or the name of a month."""
    if any(int(number[:9]) in dates and int(number[:9]) > 1000 for number in re.findall(r"\d+", said)):
        return True
    months = date_words()[language].months if language in date_words() else ()
    return bool(re.search(r"월|月|\d:\d\d|\d\s?[시時点]", said)) or any(
        re.search(rf"\b(?:{month})", said, re.IGNORECASE) for month in months
    )
