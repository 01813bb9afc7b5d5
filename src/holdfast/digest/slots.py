"""
Slot values: the words of a value, cut out of the sentence and normalized.

A lexicon's word becomes its canonical spelling; a number word becomes digits; a name, a place or a
thing keeps its own words.  A slot that cannot find where its value ends refuses: no fact is better
than half a sentence as a value.  The numbers that a message says, in digits, words and dates, are read here,
too, and the time in which a statement holds (`resolve_valid_time`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache

from ..clock import from_ms
from ..text import dataclass, expression, remembered, spelled
from ..text.dates import TimeSpan, date_words, find_times, with_date
from ..text.sentences import NEXT_VERB
from ..text.terms import likely_languages
from ..types import Message
from .answers import numbers_in
from .grammar import OpenSlot, Pattern, PatternLanguage, PatternSlot, load_language, opposites

_TOKEN = expression(r"\S+")
_EDGE = "'\"*_~,;:-–—/ "
_VERSION = expression(
    r"\s*v?(\d+(?:\.\d+)*)(?![A-Za-z0-9_])(?!\s*(?:years?|months?|weeks?|days?|hours?|times|people|%))", re.IGNORECASE
)
_MONEY_NUMBER = expression(r"\d{1,3}(?:[ .,']\d{3})+(?!\d)(?:[.,]\d+)?|\d+(?:[.,]\d+)*")
_RANGE = expression(r"([a-z_]+) (\d+)\.\.(\d+)")
_MAX_ITEMS = 10


@dataclass(frozen=True, slots=True)
class SlotValue:
    """
    The value of a slot and its place in the sentence.

    ``kind`` is the kind of its lexicon or its currency, ``version`` the number behind a technology,
    ``said`` the unchanged words of a lexicon's entry ("vegetariana", not "vegetarian").
    """

    value: str
    kind: str
    start: int
    end: int
    version: str = ""
    said: str = ""


def read_slot(
    language: PatternLanguage, slot: PatternSlot, found: re.Match[str], *, lower_case: bool
) -> list[SlotValue]:
    """
    Return the values of *slot* in *found*; none when its words cannot be one.

    With *lower_case* the writer uses no capitals, so names and places need none.
    """
    text, start, end = found.string, found.start(slot.group), found.end(slot.group)
    if start < 0:
        return []
    lexicons = language.lexicons_of(slot.name)
    if lexicons:
        values = []
        for lexicon in lexicons:
            for item in lexicon.one.finditer(text, start, end):
                canonical = lexicon.lookup(item.group())
                if canonical:
                    values.append(_lexicon_value(language, text, lexicon.name, canonical, item))
        return sorted(_outermost(values), key=lambda value: value.start)
    spec = language.slots[slot.name]
    reader = _READERS.get(spec.kind, _read_words)
    if not slot.many:
        one = reader(language, spec, text, start, end, lower_case)
        return [one] if one and not _belongs_elsewhere(language, spec, one) else []
    values = []
    for first, last in _parts(language, text, start, end):
        if values and language.no_item.match(text, first):
            break  # "allergic to chicken and weighs 12 kg"
        one = reader(language, spec, text, first, last, lower_case)
        if one is None or len(values) >= _MAX_ITEMS or _belongs_elsewhere(language, spec, one):
            break
        if values and _is_doing(values[0]) and not _is_doing(one):
            break  # "preparing meals for friends and family": the joint stands inside the activity
        values.append(one)
        if text[one.end : last].strip(_EDGE):
            break
    return _with_shared_head(spec, values)


def _with_shared_head(spec: OpenSlot, values: list[SlotValue]) -> list[SlotValue]:
    """Complete the items of a list whose last one holds the noun of all: "action and sci-fi movies"."""
    words = values[-1].value.split(" ") if len(values) > 1 else []
    if len(words) < 2 or words[-1].lower() not in spec.heads:
        return values
    first = [
        value if " " in value.value or value.value.endswith("s") or _is_doing(value)  # "dramas and sci-fi films"
        else replace(value, value=f"{value.value} {words[-1]}")
        for value in values[:-1]
    ]  # fmt: skip
    return [*first, values[-1]]


def read_at(
    language: PatternLanguage, slot: PatternSlot, text: str, start: int, *, lower_case: bool
) -> SlotValue | None:
    """Return the value of *slot* that begins at *start* in *text*; None when there is none."""
    for lexicon in language.lexicons_of(slot.name):
        item = lexicon.one.match(text, start)
        canonical = lexicon.lookup(item.group()) if item else None
        if item and canonical:
            return _lexicon_value(language, text, lexicon.name, canonical, item)
    spec = language.slots.get(slot.name)
    found = re.compile(language.raw(spec), re.IGNORECASE).match(text, start) if spec else None
    if spec is None or found is None:
        return None
    value = _READERS.get(spec.kind, _read_words)(language, spec, text, start, found.end(), lower_case)
    return None if value is None or _belongs_elsewhere(language, spec, value) else value


def _belongs_elsewhere(language: PatternLanguage, spec: OpenSlot, value: SlotValue) -> bool:
    """Whether the words are known as another kind: "moved to Kubernetes" names no place."""
    first = value.value.split(",")[0]
    return any(
        lexicon.lookup(first) or lexicon.lookup(first.split(" ")[0])
        for name in spec.refuse_lexicons
        for lexicon in language.lexicons_of(name)
    )


def _is_doing(value: SlotValue) -> bool:
    return value.value.partition(" ")[0].endswith("ing")


def _lexicon_value(
    language: PatternLanguage, text: str, lexicon: str, canonical: str, item: re.Match[str]
) -> SlotValue:
    """Return a lexicon's word; for technology, with the version that follows it."""
    prefix, _, kind = lexicon.partition("_")
    end = item.end()
    if prefix == "tech":
        version = _VERSION.match(text, end)
        if version and kind in language.versioned:
            return SlotValue(f"{canonical} {version[1]}", kind, item.start(), version.end())
        if version:
            return SlotValue(canonical, kind, item.start(), version.end(), version[1], item.group())
    return SlotValue(canonical, kind or lexicon, item.start(), end, "", item.group())


def _outermost(values: list[SlotValue]) -> list[SlotValue]:
    """Keep the longest of overlapping values: ``gluten-free`` and not ``gluten``."""
    kept: list[SlotValue] = []
    for value in sorted(values, key=lambda v: (v.start - v.end, v.start)):
        if all(value.end <= other.start or value.start >= other.end for other in kept):
            kept.append(value)
    return kept


def _parts(language: PatternLanguage, text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """
    The items of a list.

    Commas make a list only when a joint closes it ("a, b and c"); in "a, b" what follows the comma
    is as likely the next clause.
    """
    stretch = text[start:end]
    if language.spaced and "," in stretch and not language.joint.search(stretch, stretch.index(",")):
        end = start + stretch.index(",")
    place = start
    for joint in re.finditer(language.separators, text[start:end], re.IGNORECASE):
        yield place, start + joint.start()
        place = start + joint.end()
    yield place, end


def _tokens(text: str, start: int, end: int) -> Iterator[tuple[str, int, int]]:
    for token in _TOKEN.finditer(text, start, end):
        first, last = token.span()
        while first < last and text[first] in _EDGE:
            first += 1
        while last > first and text[last - 1] in _EDGE:
            last -= 1
        if last == first:
            if token.group()[0] in "-–—":
                return
            continue
        yield text[first:last], first, last


def _read_words(
    language: PatternLanguage, spec: OpenSlot, text: str, start: int, end: int, lower_case: bool
) -> SlotValue | None:
    """Read a thing or an action: whole words up to the first that cannot belong to it."""
    if not language.spaced:
        return _read_unspaced(spec, text, start, end)
    words: list[tuple[str, int, int]] = []
    cut, most = spec.cut, spec.words
    for token, first, last in _tokens(text, start, end):
        word = token.lower()
        stem = word.partition("'")[0]
        if not words:
            if word in spec.drop:
                continue
            if word in spec.refuse or stem in spec.refuse:
                return None
            if spec.cut_doing and len(word) > 4 and word.endswith("ing"):
                cut, most = spec.cut_doing, spec.words + 4
        elif word in cut or stem in cut or (word in spec.joints and _clause_follows(spec, text, last)):
            if word in spec.restricts:
                return None
            break
        if word in spec.never:
            return None
        words.append((token, first, last))
        if len(words) > most:
            return None
        if text[last : last + 1] == "," and (not spec.commas or _clause_follows(spec, text, last + 1)):
            break
    return _whole(spec, text, words)


def _clause_follows(spec: OpenSlot, text: str, start: int) -> bool:
    following = _TOKEN.search(text, start)
    word = following.group().lower().strip(_EDGE) if following else ""
    return not word or word in spec.cut or word in spec.refuse or word.partition("'")[0] in spec.cut


def _whole(spec: OpenSlot, text: str, words: list[tuple[str, int, int]]) -> SlotValue | None:
    """Return the words as a value; None when there are none, they say too little, or the cut is wrong."""
    while words and words[-1][0].lower() in spec.drop:
        words.pop()
    if not words or not any(ch.isalpha() for token, _, _ in words for ch in token):
        return None
    lowered = [token.lower() for token, _, _ in words]
    first, last = words[0][1], words[-1][2]
    if lowered[-1] in spec.dangling or (len(lowered) == 1 and lowered[0] in spec.alone):
        return None
    if text[last : last + 1] == "," and len(lowered) > 2 and lowered[-2] in ("a", "an"):
        return None  # "a safe, …": the noun stands behind the comma
    value = re.sub(r"\s+", " ", text[first:last]) if spec.commas else " ".join(token for token, _, _ in words)
    if value.endswith("'s"):
        value, last = value[:-2], last - 2
    return SlotValue(value, "", first, last) if len(value) > 1 else None


def _read_unspaced(spec: OpenSlot, text: str, start: int, end: int) -> SlotValue | None:
    """Read a value in a script without spaces: all of it, unless it holds a forbidden word."""
    value = text[start:end].strip(_EDGE)
    if not value or any(word in value for word in spec.never) or any(value.startswith(word) for word in spec.refuse):
        return None
    for word in spec.cut:
        head, joint, _ = value.partition(word)
        value = head if joint and head else value
    if not 1 <= len(value) <= spec.words * 3:
        return None
    first = text.index(value, start)
    return SlotValue(value, "", first, first + len(value))


def _read_capitals(
    language: PatternLanguage, spec: OpenSlot, text: str, start: int, end: int, lower_case: bool
) -> SlotValue | None:
    """Read a name, place or company: capitalized words, with the small words that join them."""
    if not language.spaced:
        return _read_unspaced(spec, text, start, end)
    words: list[tuple[str, int, int]] = []
    for token, first, last in _tokens(text, start, end):
        word = token.lower()
        stops = token.endswith(".") and "." not in token[:-1] and word not in _SHORTENED
        if stops:
            token, word, last = token[:-1], word[:-1], last - 1
        if not words and word in spec.drop and not stops:
            lower_case = lower_case and word not in spec.capitals_after
            continue
        if not words and (word in spec.refuse or word.partition("'")[0] in spec.refuse):
            return None
        capital = token[0].isupper() or token[0].isdecimal()
        joins = bool(words) and word in _JOINING
        if word in spec.cut or not (capital or joins or (lower_case and token[0].isalpha())):
            break
        if word in spec.never:
            return None
        words.append((token, first, last))
        if len(words) > spec.words:
            return None
        if stops or (text[last : last + 1] == "," and not _region_follows(text, last + 1)):
            break
    while words and (words[-1][0].lower() in _JOINING or words[-1][0].isdecimal()):
        words.pop()
    if not words or not words[0][0][0].isalpha():
        return None
    if lower_case and words[0][0][0].islower() and len(words) > 2:
        return None
    first, last = words[0][1], words[-1][2]
    value = re.sub(r"\s+", " ", text[first:last])
    if value.lower().endswith("'s") and (spec.kind == "proper" or _owns(spec, text, last)):
        value, last = value[:-2], last - 2
    if value.islower() and lower_case:
        value = " ".join(word if word in _JOINING else word[:1].upper() + word[1:] for word in value.split(" "))
    return SlotValue(value, "", first, last) if len(value) > 1 else None


def _owns(spec: OpenSlot, text: str, place: int) -> bool:
    """Whether *place* continues the name before it: ``Lisbon's center``, not ``McDonald's since May``."""
    following = re.match(r" +([^\W_][\w-]*)", text[place:])
    return following is not None and following[1].lower() not in spec.cut


def _read_proper(
    language: PatternLanguage, spec: OpenSlot, text: str, start: int, end: int, lower_case: bool
) -> SlotValue | None:
    """Read a name known by its capital alone: "I'm Craig", not "I'm tired"."""
    return _read_capitals(language, spec, text, start, end, False)


_JOINING = frozenset("of the de la del da do dos di du van von der den and & le las los el al bin upon sur".split()) - {
    "and"
}
_SHORTENED = frozenset({"st.", "mt.", "ft.", "dr.", "jr.", "sr.", "mr.", "mrs.", "ms."})
_REGION = expression(
    r"\s+(?:the\s+)?[A-Z][\w.'-]+(?:\s+[A-Z][\w.'-]+){0,2}(?=\s*(?:$|[,.;:!?)]|\b(?:and|with|but|so|for|now|since|which|where|because)\b))"
)


def _region_follows(text: str, place: int) -> bool:
    """Whether a comma leads to a region: ``Portland, Oregon``."""
    return _REGION.match(text, place) is not None


def _read_number(
    language: PatternLanguage, spec: OpenSlot, text: str, start: int, end: int, lower_case: bool
) -> SlotValue | None:
    """Read a number in digits; number words become digits, ``12,500`` becomes ``12500``."""
    words = text[start:end].strip().lower()
    if words in language.numbers:
        return SlotValue(language.numbers[words], "", start, end)
    digits = re.sub(r"[,\s](?=\d{3}\b)", "", words)
    if re.fullmatch(r"\d+(?:[.,]\d+)?", digits):
        return SlotValue(digits.replace(",", "."), "", start, end)
    return None


def _read_raw(
    language: PatternLanguage, spec: OpenSlot, text: str, start: int, end: int, lower_case: bool
) -> SlotValue | None:
    """Return the words unchanged; the slot's expression chose them."""
    value = re.sub(r"\s+", " ", text[start:end].strip(_EDGE))
    return SlotValue(value, "", start, end) if value else None


_CURRENCIES = {
    "usd": "$ usd us$ dollar dollars bucks buck dólar dólares dolares dólars 달러 불 美元 美金 美刀 刀",
    "eur": "€ eur euro euros 유로 欧元 歐元",
    "gbp": "£ gbp pound pounds quid libra libras livre livres pfund 파운드 英镑 英鎊",
    "jpy": "¥ jpy yen 円 엔 日元 日圓",
    "krw": "₩ krw won 원 韩元 韓元 韩币",
    "cny": "cny rmb yuan 元 人民币 人民幣 块 块钱 위안",
    "twd": "twd nt$ 台币 台幣 新台币 新台幣",
    "inr": "₹ inr rupee rupees rs",
    "chf": "chf francs franken",
    "cad": "cad c$ ca$",
    "aud": "aud a$ au$",
    "brl": "brl r$ reais",
    "mxn": "mxn mx$ pesos",
    "sek": "sek kronor",
    "pln": "pln zł",
}
_CURRENCY_OF = {word: currency for currency, words in _CURRENCIES.items() for word in words.split()}
_SCALES = {
    **dict.fromkeys(("k", "grand", "thousand", "mil", "mille", "tausend", "천", "千"), 1_000),
    **dict.fromkeys(("만", "万", "萬", "w"), 10_000),
    **dict.fromkeys(("m", "million", "millions", "mio", "millionen", "millón", "millones", "백만", "百万"), 1_000_000),
    **dict.fromkeys(("억", "亿", "億"), 100_000_000),
}
_JOINED_UNITS = expression(
    "|".join(sorted((word for word in (*_SCALES, *_CURRENCY_OF) if not word.isascii()), key=lambda word: -len(word)))
)


def _units(word: str) -> list[str]:
    """Return the units in *word*: itself, or its parts where they are written together (``만원``: 만, 원)."""
    known = word in _SCALES or word in _CURRENCY_OF
    return [word] if known else _JOINED_UNITS.findall(word)


_MONEY_RANGE = expression(r"\d\s?(?:k|grand|thousand)?\s?(?:[-–]|to)\s?(?=[$€£]?\d)")


def _read_money(
    language: PatternLanguage, spec: OpenSlot, text: str, start: int, end: int, lower_case: bool
) -> SlotValue | None:
    return money_at(text, start, end, bare=spec.kind == "amount")


def money_at(text: str, start: int, end: int, *, bare: bool = False) -> SlotValue | None:
    """Read an amount: digits as the value, the currency's ISO code in lower case as the kind, none only where *bare*; of a range its upper end."""
    words = text[start:end].lower()
    span = _MONEY_RANGE.search(words)
    below, words = (words[: span.end()], words[span.end() :]) if span is not None else ("", words)
    number = _MONEY_NUMBER.search(words)
    if number is None:
        return None
    units = [unit for word in _around(number) for unit in _units(word)]
    amount = _scaled(number, units)
    currency = _currency([*units, *re.findall(r"[$€£¥₩₹]", below)])
    return SlotValue(amount, currency, start, end) if amount is not None and (currency or bare) else None


def _around(number: re.Match[str]) -> list[str]:
    """Return the words and signs before and behind a number."""
    rest = number.string[: number.start()] + " " + number.string[number.end() :]
    return re.findall(r"[^\W\d_]*[$€£¥₩₹]|[^\W\d_]+", rest)


def _scaled(number: re.Match[str], units: Iterable[str]) -> str | None:
    """Return a number as plain figures, times the scales among its *units*; ``None`` where it is none."""
    digits = re.sub(r"[ .,'](?=\d{3}(?:\D|$))", "", number.group()).replace(",", ".")
    if digits.count(".") > 1:
        return None
    amount = float(digits)
    for unit in units:
        amount *= _SCALES.get(unit, 1)
    return f"{amount:.2f}".rstrip("0").rstrip(".")


def _currency(units: Iterable[str]) -> str:
    return next((_CURRENCY_OF[unit] for unit in units if unit in _CURRENCY_OF), "")


def read_amount(text: str) -> tuple[str, str] | None:
    """
    Return the amount that all of *text* names, in plain figures, and its currency, which may be empty: of "$4.8k" ``("4800", "usd")``.

    Returns ``None`` for text that says anything else.
    """
    words = text.strip().lower()
    number = _MONEY_NUMBER.search(words)
    around = _around(number) if number is not None else re.findall(r"[^\W\d_]*[$€£¥₩₹]|[^\W\d_]+", words)
    if number is not None:
        units = [_units(word) for word in around]
        amount = _scaled(number, [unit for several in units for unit in several])
        left = words[: number.start()] + words[number.end() :]
        plain = all(units) and not re.search(r"\d", left)
        return (amount, _currency(unit for several in units for unit in several)) if amount and plain else None
    said = [word for word in around if word not in _CURRENCY_OF]
    counted = _number_words().keys() | _SCALE_OF.keys() | _LINKS
    amounts = amounts_in_words(" ".join(said)) if said and counted.issuperset(said) else ()
    return (str(max(amounts)), _currency(around)) if amounts else None


_LIMIT_KEY = expression(r"max_([a-z]{3})")


def limit_in_currency(key: str, value: str) -> tuple[str, str]:
    """Return the key and the figures of a limit in another currency than that of *key*: ``max_eur`` and 5000 of "5,000 euros"."""
    held = _LIMIT_KEY.fullmatch(key)
    amount = read_amount(value) if held else None
    return (f"max_{amount[1]}", amount[0]) if held and amount and amount[1] not in ("", held[1]) else (key, value)


_SCALE_WORDS = {
    10: "십 十",
    100: "hundred hundert cien ciento cent cents cento cem 백 百",
    1000: "thousand grand k tausend mil mille mila 천 千",
    10_000: "만 万 萬",
    1_000_000: "million millions mio millionen millón millones milione milioni milhão milhões",
}
_SCALE_OF = {word: scale for scale, words in _SCALE_WORDS.items() for word in words.split()}
_PHRASES = (
    ("a couple", 2),
    ("couple of", 2),
    ("a pair", 2),
    ("un par de", 2),
    ("un paio di", 2),
    ("half a dozen", 6),
    ("a dozen", 12),
)
_LINKS = frozenset("and und y e et".split())
_COMPOUND = expression(
    r"(?<=[a-zäöüß])(hundert|tausend|cento|mila|mille)|(hundert|tausend|cento|mila|mille)(?=[a-zäöüß])|(?<=[a-zäöüß]{3})(und)(?=[a-zäöüß]{4})|(?<=veint)i(?=[a-zéó]{2})"
)
_WIDE_DIGIT = expression(r"[一二两三四五六七八九十百千万萬일이삼사오육칠팔구십백천만]")
_AMOUNT_WORD = expression(r"\d+(?:[.,]\d+)?|[^\W\d_]+")


def amounts_in_words(text: str) -> frozenset[int]:
    """Return the numbers that words say, in whichever language: 3000 of "dreitausend", "tres mil" and "3 grand"."""
    plain = _COMPOUND.sub(lambda found: "e " if found[0] == "i" else f" {found[0]} ", text.casefold().replace("-", " "))
    plain = _WIDE_DIGIT.sub(lambda found: f" {found[0]} ", plain)
    spelled, found = _number_words(), {int(value) for words, value in _PHRASES if words in plain}
    total = part = 0.0
    link = ""
    for word in [*_AMOUNT_WORD.findall(plain), ""]:
        number = spelled.get(word)
        if number is None and word[:1].isdecimal():
            number = float(word.replace(",", "."))
        if number is not None:
            joins = (0 < number < part and part % 100 == 0) or (part in range(20, 100, 10) and number < 10)
            joins = joins or (link == "und" and part < 10 and number in range(20, 100, 10))
            part = part + number if joins else number
        elif (scale := _SCALE_OF.get(word, 0)) and (part or total or scale <= 10_000):
            part = (part or 1) * scale
            total, part = (total + part, 0.0) if scale >= 1000 else (total, part)
        elif word not in _LINKS:
            total = part = 0.0
        link = word
        found |= {int(value) for value in (total + part, part, total) if value >= 2 and value == int(value)}
    return frozenset(found)


_TENS_WORDS = (
    "twenty thirty forty fifty sixty seventy eighty ninety",
    "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig",
    "veinte treinta cuarenta cincuenta sesenta setenta ochenta noventa",
    "vingt trente quarante cinquante soixante septante huitante nonante",
    "venti trenta quaranta cinquanta sessanta settanta ottanta novanta",
    "vinte trinta quarenta cinquenta sessenta setenta oitenta noventa",
)


@cache
def _number_words() -> dict[str, float]:
    """Return the value of each number word, of all languages together."""
    found = {word: value for words in date_words().values() for word, value in words.numbers.items() if value >= 1}
    found |= {word: float(10 * ten) for words in _TENS_WORDS for ten, word in enumerate(words.split(), 2)}
    found |= {word: float(digit) for digit, word in enumerate("일이삼사오육칠팔구", 1)}
    return {word: number for word, number in found.items() if word not in _SCALE_OF and " " not in word}


Reader = Callable[[PatternLanguage, OpenSlot, str, int, int, bool], SlotValue | None]

_READERS: dict[str, Reader] = {
    "words": _read_words,
    "capitals": _read_capitals,
    "proper": _read_proper,
    "number": _read_number,
    "money": _read_money,
    "amount": _read_money,
    "raw": _read_raw,
}


def in_range(needs: str, values: dict[str, list[SlotValue]]) -> bool:
    """Whether the number in a slot lies in the range that *needs* names, as "age 1..120"; without one, true."""
    bounds = _RANGE.fullmatch(needs)
    if bounds is None:
        return True
    try:
        return int(bounds[2]) <= float(values[bounds[1]][0].value) <= int(bounds[3])
    except (ValueError, IndexError, KeyError):
        return False


def quote_end(found: re.Match[str], values: dict[str, list[SlotValue]]) -> int:
    """Return the end of the quote: of the last value when a slot closes the match, else of the match."""
    closing = [group for group in found.re.groupindex if values.get(group) and found.end(group) == found.end()]
    return values[closing[-1]][-1].end if closing else found.end()


# What goes up or down to a number, and is no dose: "my salary went up to 4000", "she's back to 13.6 kg".
_GOES = expression(
    r"(?i)\b(?:my|our|the|her|his|their|its|\w+['’]s) (?P<thing>(?:\w+ ){0,2}?\w+)(?: has| have| is| was|['’]s)?(?: just| now| recently| since)? "
    r"(?:went|gone|goes|going|came|come|rose|fell|dropped|jumped|climbed|shot|crept|got|is|was|back|up|down)\b"
)
_OF_A_DOSE = expression(
    r"(?i)\b(?:dos(?:e|age)|tablets?|pills?|meds?|medications?|medicines?|prescription|doctor|gp|vet|\w+ologist|\w+iatrist)\b"
)
_OTHER_UNIT = expression(
    r"(?i) ?(?:kg|kgs|kilos?|kilograms?|lbs?|pounds|stone|°|degrees?|%|per ?cent|€|\$|£|eur|euros?|dollars?|bucks|usd|quid|bpm|km|miles?|hours?|minutes)(?!\w)|%|°|€"
)
_AMOUNT = expression(r"\d+(?:[.,]\d+)?")
_MOST_TIMES = 3  # that a dose without a unit may grow at once


def is_no_dose(text: str, match: re.Match[str], taken: str, names: Iterable[str]) -> bool:
    """
    Whether a new number is not the dose of a medicine: of another thing, in another unit, or far from what is taken.

    Args:
        text: the sentence.
        match: its groups ``new`` and ``new_`` hold the number.
        taken: the dose that is known.
        names: those of the medicine.
    """
    new = "new" if match["new"] else "new_"
    if _OTHER_UNIT.match(text, match.end(new)):
        return True
    known = {name.casefold().replace("_", " ") for name in names}
    for found in _GOES.finditer(text, 0, match.start(new)):
        if not _OF_A_DOSE.search(found[0]) and not any(name and name in found["thing"].casefold() for name in known):
            return True
    now, old = _AMOUNT.search(match[new]), _AMOUNT.search(taken)
    if now is None or old is None or match[new].strip() != now[0]:
        return False
    times = float(now[0].replace(",", ".")) / (float(old[0].replace(",", ".")) or 1)
    return not 1 / _MOST_TIMES <= times <= _MOST_TIMES


def stated_numbers(message: Message) -> frozenset[int]:
    """Return the numbers of a message: digits, thousands, those of the dates it names, and those written as words."""
    return _numbers_of(message.content, message.at)


@remembered(256)
def _numbers_of(text: str, at: datetime | None) -> frozenset[int]:
    known = set(numbers_in([text]))
    known |= {1000 * number for number in known}  # "5k", "5 thousand"
    known |= _dated_numbers(text, at)
    known |= {int(number) for number in amounts_in_words(text[:20_000])}
    return frozenset(known)


def _dated_numbers(text: str, at: datetime | None) -> set[int]:
    found = set[int]()
    if at is not None and at.tzinfo is not None:
        for code in likely_languages(text[:400])[:1]:
            for ahead in (False, True):
                for span in find_times(text[:2000], at, code, ahead=ahead):
                    found |= _date_numbers(span.from_ms) | _date_numbers(span.to_ms - 1)
    return found


def numbers_said(message: Message) -> frozenset[int]:
    """Return the numbers of a message, and those of its day."""
    return stated_numbers(message) | _day_numbers(message)


_SOME_DAY = datetime(2000, 1, 1, tzinfo=UTC)  # for dates that name their year


def dates_said(message: Message) -> frozenset[int]:
    """Return the numbers of the dates that a message names, and those of its day."""
    return frozenset(_dated_numbers(message.content, message.at or _SOME_DAY)) | _day_numbers(message)


def _day_numbers(message: Message) -> frozenset[int]:
    at = message.at
    if at is None or at.tzinfo is None:
        return frozenset()
    return frozenset((at.year - 1, at.year, at.year + 1, at.month, at.day))


def _date_numbers(at_ms: int) -> set[int]:
    at = from_ms(at_ms)
    return {at.year, at.month, at.day, at.hour, at.minute}


_REACH_CHARS = 60  # a time further from the statement belongs to something else


@dataclass(frozen=True, slots=True)
class ValidTime:
    """The time in which a fact holds (milliseconds UTC, None: not said), with its words and their end."""

    from_ms: int | None = None
    to_ms: int | None = None
    end: int = 0
    words: str = ""


# "I work until 4:30": the end of a working day, not of the fact.
_HOUR_ALONE = expression(
    r"(?i)(?:\d{1,2}(?:[:.h]\d{2})?(?:\s*(?:am|pm|a\.m\.|p\.m\.|uhr|h|o'clock))?|noon|midnight)\W*"
)


def resolve_valid_time(
    times: Sequence[TimeSpan],
    text: str,
    start: int,
    end: int,
    *,
    mode: str,
    at: datetime,
    gap: re.Pattern[str] | None = None,
) -> ValidTime:
    """
    Resolve the times that a sentence names for the statement at characters *start* to *end*.

    Args:
        times: all times that the sentence names.
        text: the sentence.
        start: where the statement begins.
        end: where it ends; a time may follow within 60 characters of the same clause.
        mode: ``""`` (only "since", "for" and "until" bound it), ``"change"`` (it began at the time named:
            "we moved last week"), ``"event"`` (it happens at the time named and is over after it) or
            ``"plan"`` (it begins at a time to come, with no end named).
        at: when the message was written; its zone is used to show dates.
        gap: what may come between an event and its time, as a whole.
    """
    held = ValidTime(end=end)
    for span in times:
        between = text[end : max(end, span.start)]
        fits = mode == "event" and gap is not None and gap.fullmatch(between) is not None
        if span.start < start or len(between) > _REACH_CHARS or not (fits or _one_clause(between)):
            continue
        last = max(end, span.end)
        if mode == "event" and span.relation in ("at", "until"):
            if fits or gap is None:
                return ValidTime(span.from_ms if span.relation == "at" else None, span.to_ms, last, with_date(span, at))
            continue
        if mode == "plan" and span.to_ms > _ms(at):
            return ValidTime(None, None, last, with_date(span, at))
        if span.relation in ("since", "for") or (
            mode == "change" and span.relation == "at" and span.from_ms <= _ms(at)
        ):
            return ValidTime(span.from_ms, None, last, with_date(span, at))
        if span.relation == "until" and not mode and not _HOUR_ALONE.fullmatch(span.words):
            held = ValidTime(None, span.to_ms, last, with_date(span, at))
    return held


@remembered(32)  # the facts of one sentence share its times
def sentence_times(text: str, at: datetime | None, code: str, *, ahead: bool = False) -> tuple[TimeSpan, ...]:
    """Find the times of a sentence; none when its own time is unknown."""
    if at is None or at.tzinfo is None:
        return ()
    text = _TO_MONTH.sub("in ", text) if ahead else text  # "put off to September"
    return tuple(find_times(text, at, code, ahead=ahead))


_TO_MONTH = expression(
    r"(?i)\bto (?=(?:early |late |mid-)?(?:january|february|march|april|may|june|july|august|september|october|november|december)\b)"
)


def _one_clause(between: str) -> bool:
    return not any(mark in between for mark in ",;:.!?()") and NEXT_VERB.search(between) is None


def _ms(at: datetime) -> float:
    return at.timestamp() * 1000


def item_fields(pattern: Pattern, values: dict[str, list[SlotValue]], glue: str) -> Iterator[dict[str, SlotValue]]:
    """Yield the values of a match for each item of its list; items of one kind may be joined."""
    single = {group: items[0] for group, items in values.items() if items}
    many = next((group for group, items in values.items() if len(items) > 1), None)
    if many is None:
        yield single
        return
    joined: dict[str, SlotValue] = {}
    for item in values[many]:
        if item.kind not in pattern.joined:
            yield {**single, many: item}
        elif item.kind in joined:
            first = joined[item.kind]
            joined[item.kind] = replace(first, value=f"{first.value}{glue}{item.value}", end=item.end)
        else:
            joined[item.kind] = item
    for item in joined.values():
        yield {**single, many: item}


def is_like_amount(old: re.Match[str], new: re.Match[str]) -> bool:
    """Whether a number may be a new value of another: of the same unit, if both have one, and not far from it."""
    first, second = (float(found["number"].replace(",", "")) for found in (old, new))
    units = {(found["unit"] or found["sign"] or "").casefold()[:2] for found in (old, new)} - {""}
    return first != second and len(units) < 2 and 0.2 <= second / max(first, 0.01) <= 5


AMOUNT = expression(
    r"(?<![\w.,:/-])(?P<sign>[$€£]?)(?P<number>\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?)(?![\w:/]|-\w|[.,]\d)(?: ?(?P<unit>kg|kilos?|hours?|hrs?|euros?|pounds|dollars|km|miles))?"
)
NO_AMOUNT = expression(r" ?(?:am|pm|%|years?|weeks?|months?|days?|minutes?|times|people|o['’]clock)\b", re.IGNORECASE)


@remembered(4096)
def place_of(code: str, fact: str) -> tuple[tuple[str, ...], str] | None:
    """Return what a sentence says one thing of, and the thing: (with) and Vodafone of "Is with Vodafone."."""
    rules = load_language(code)
    for number, source in enumerate(rules.ended.get("frame", ()) if rules is not None else ()):
        if found := re.fullmatch(spelled(source, {}), fact):
            parts = (words.casefold() for name, words in found.groupdict().items() if name != "what" and words)
            return (str(number), *parts), found["what"].casefold()
    return None


def takes_place_of(code: str, fact: str, old: str) -> bool:
    """Whether a *fact* says what has taken the place of an *old* one: "Is with O2." of "Is with Vodafone."."""
    new, before = place_of(code, fact), place_of(code, old)
    if new is not None and before is not None:
        return new[0] == before[0] and new != before
    return any(words.search(fact) for one in opposites(code, old) if not one.sure for words in one.words)


@remembered(1024)
def kind_words(code: str, medicine: str) -> tuple[str, ...]:
    """Return what a medicine is called by its kind: "antibiotics" for "amoxicillin"."""
    rules = load_language(code)
    ended = rules.ended if rules is not None else {}
    kin = next((group for group in ended.get("kin", ()) if medicine in group.split()), "").split()
    for names, members in ended.get("kinds", {}).items():
        if medicine in members.split() or (members.startswith("kin of ") and members.removeprefix("kin of ") in kin):
            return tuple(names.split("|"))
    return ()
