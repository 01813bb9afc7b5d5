"""
Times named in a text ("last weekend"), resolved against the moment it was written.

Absolute ("3 May 2024", "2019") and relative ("two weeks ago", "next Tuesday at 5pm") alike become a
range in milliseconds UTC, end excluded, with the words unchanged.  Days begin at midnight in
the time zone of ``at``.  The words themselves are data (``datewords.toml``).  Where a day or
month names no year, the tense of the sentence decides between the last one and the next.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from datetime import datetime, timedelta
from functools import cache
from importlib import resources
from typing import Any, Literal

from ..clock import from_ms, to_ms
from . import dataclass, expression
from .sentences import split_pieces

_HOLE = expression(r"\{(\w+)\}")
_ISO = expression(r"(?<![\w/-])(\d{4})-(\d{1,2})-(\d{1,2})(?![\w/])")
_NUMERIC = expression(r"(?<![\w/.])(\d{1,2})([/.])(\d{1,2})\2(\d{4}|\d{2})(?![\w/])")
_MAX_PIECE_CHARS = 600
_HALF_A_YEAR_MS = 183 * 86_400_000
_OPENING = expression(r"\w+\s+")
_NEXT = expression(r"(?:next|this coming|nächst\w+|kommend\w+|prochain\w*|próxim\w+|prossim\w+)\b", re.IGNORECASE)
_MAX_COUNT = {
    "minute": 100_000,
    "hour": 10_000,
    "day": 10_000,
    "week": 2_000,
    "weekend": 100,
    "month": 1_000,
    "year": 120,
}


@dataclass(frozen=True, kw_only=True)
class DateWords:
    """The time words of one language; ``datewords.toml`` explains each field."""

    units: Mapping[str, str]
    numbers: Mapping[str, float]
    days: Mapping[str, int]
    weekdays: tuple[str, ...]
    months: tuple[str, ...]
    seasons: tuple[str, ...] = ("", "", "", "")
    ordinal: str = ""
    phrases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    past: str = r"(?!)"
    since: str = ""
    until: str = ""
    since_after: str = ""
    until_after: str = ""
    length: str = ""
    lasting: str = ""
    relative: str = ""
    hour_after: str = ""
    day_first: bool = True
    spaced: bool = True


@cache
def date_words() -> Mapping[str, DateWords]:
    """Return the time words of each language by its code; the file is read once, at the first text."""
    data = tomllib.loads((resources.files(__package__) / "datewords.toml").read_text(encoding="utf-8"))
    return {code: DateWords(**{name: _frozen(value) for name, value in words.items()}) for code, words in data.items()}


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _frozen(item) for key, item in value.items()}
    return tuple(value) if isinstance(value, list) else value


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """
    A time, ``from_ms`` to ``to_ms`` (excluded), named by characters ``start`` to ``end`` (excluded).

    ``grain`` is how exact the words are; ``relation`` is ``since`` or ``until`` when they bound
    something, ``for`` when they measure how long it has lasted ("for three years").
    """

    start: int
    end: int
    words: str
    from_ms: int
    to_ms: int
    grain: Grain
    relation: Relation = "at"


def find_times(text: str, at: datetime, language: str = "en", *, ahead: bool = False) -> list[TimeSpan]:
    """
    Return the times that *text* names, in order, without overlaps.

    Args:
        text: what was written.
        at: when, with a time zone.
        language: ISO 639-1; words of a language that is not known are not found.
        ahead: the text speaks of what is to come, so a day or month without a year is the next one.
    """
    grammar = _grammar(language)
    spans: list[TimeSpan] = []
    for sentence in split_pieces(text, _MAX_PIECE_CHARS):
        piece = text[sentence.start : sentence.end]
        for span in _in_sentence(piece, at, grammar, ahead):
            spans.append(replace(span, start=span.start + sentence.start, end=span.end + sentence.start))
    return spans


def _in_sentence(text: str, at: datetime, grammar: _Grammar | None, ahead: bool) -> list[TimeSpan]:
    spans: list[TimeSpan] = []
    for span in _written_out(text, at, grammar.words if grammar else None):
        _take(spans, span)
    if grammar and grammar.worth.search(text):
        past = False if ahead else True if grammar.past.search(text) else None
        for rule, regex in grammar.phrases:
            for found in regex.finditer(text):
                named = _read(rule, found, at, False if _NEXT.match(found.group()) else past, grammar.words)
                if named is not None and not (rule == "for" and _is_length(found.group(), text, grammar.words)):
                    named = _related(text, named, grammar)
                    if named.relation == "since" and named.from_ms > to_ms(at):  # what has begun lies behind us
                        before = _read(rule, found, at, True, grammar.words)
                        named = replace(before, relation="since") if before else named
                    _take(spans, named)
    joined = _with_clock(text, sorted(spans, key=lambda span: span.start), at)
    if grammar is None or grammar.hour_after is None:
        return joined
    return [_with_hour(text, span, grammar.hour_after) if span.grain == "day" else span for span in joined]


def _is_length(phrase: str, text: str, words: DateWords) -> bool:
    """Whether a phrase says how long something takes, not since when: "a trip for ten days"."""
    if not words.length or text.strip() == phrase or not re.match(words.length, phrase, re.IGNORECASE):
        return False
    return not (words.lasting and re.search(words.lasting, text, re.IGNORECASE))


def has_guessed_year(span: TimeSpan, at: datetime, language: str) -> bool:
    """Whether a day or month without a year lies so far back that the coming one may be meant."""
    words = date_words().get(language)
    if words is None or re.search(r"(?:19|20)\d\d", span.words) or to_ms(at) - span.from_ms < _HALF_A_YEAR_MS:
        return False
    named = set(re.findall(r"\w+", span.words.casefold()))
    return any(named & set(names.split()) for names in words.months)


# A count that is another one tomorrow needs the day on which it was right: "nine weeks pregnant".
COUNTS_ON = expression(
    r"\b(?:days?|weeks?|months?) (?:pregnant|along|old|sober|clean|postpartum|smoke-free|in remission)\b"
    r"|\b(?:embarazada|enceinte|incinta|grávida) (?:de|di|da|al|à) [\w ]{1,12}(?:semanas?|meses|mes|semaines?|mois|settiman[ae]|mes[ei]|mês)\b"
    r"|\b(?:woche|monat) schwanger\b|\b(?:wochen|monate) alt\b|怀孕[^。，]{0,6}[周週月]|임신 ?\d+ ?(?:주|개월)|妊娠\d+(?:週|か月|ヶ月)",
    re.IGNORECASE,
)


def days_counted(text: str) -> int:
    """Return the days that a count which goes on has reached: 238 for "is 34 weeks pregnant"; 0 without one.  English alone."""
    counted = COUNTS_ON.search(text)
    length = _LENGTH.search(text, max(counted.start() - 15, 0)) if counted else None
    return _days_of(length) if length else 0


def dated(text: str, at: datetime | None, language: str, *, told: str = "") -> str:
    """
    Return *text* with the date behind each word such as "tomorrow" or "next week", counted from *at*.

    With *told*, also behind the days that those words name: whether "on Saturday" is past shows there.
    """
    words = date_words().get(language)
    if at is None or at.tzinfo is None or words is None:
        return text
    out, done = [], 0
    days = {span.words.casefold(): span for span in find_times(told, at, language) if span.grain == "day"}
    for span in find_times(text, at, language):
        plain = span.words.casefold()
        relative = plain.startswith(tuple(words.days)) or (words.relative and re.search(words.relative, plain))
        if span.relation == "at" and (relative or plain in days) and not _ISO.search(text[span.end : span.end + 13]):
            out += [text[done : span.end], f" ({_date_of_span(days.get(plain, span), at)})"]
            done = span.end
    return "".join([*out, text[done:]])


def end_said(text: str, at: datetime, language: str = "en", *, prescribed: bool = False) -> int | None:
    """
    Return the end, in milliseconds, of what *text* says: "until Friday", "physio says no running for 6 weeks", "on nights this month".

    Running months are read in English alone, lengths in German, Spanish and French as well.  ``None`` where no end is named, where it is past or within the day, or where something
    begins then.

    Args:
        text: what was written of a state.
        at: when, with a time zone.
        language: ISO 639-1.
        prescribed: a length is how long to go on, as with a medicine, not how long it has been.
    """
    if language == "en":
        if _BEGINS_THEN.search(text):
            return None
        text = _ABOUT.sub(r"\1 ", _END_OF_THIS.sub(r"\1 this \2", text))
    spans = find_times(text, at, language, ahead=True)
    ends = [span.to_ms for span in spans if span.relation == "until" and span.grain not in ("minute", "hour")]
    if language == "en":
        ends = ends if _UNTIL.search(text) else []  # "by Friday" ends nothing
        ends += [span.to_ms for found in _UNTIL_DATE.finditer(text) for span in _written_out(found[1], at, None)]
        ends += [
            span.to_ms
            for span in find_times(text, at)
            if span.words.casefold().startswith("this ") and _RUNS_NOW.search(text)
        ]
        ends += [end for found in _LENGTH_AHEAD.finditer(text) if (end := _end_of(found, text, at, prescribed))]
    elif language in _LENGTHS_AHEAD:
        length, ahead, lasted = _LENGTHS_AHEAD[language]
        for found in length.finditer(text):
            clause, word = (
                re.split(r"[.;!?]", text[: found.start()])[-1] + re.split(r"[.;!?]", text[found.start() :])[0],
                found["n"].casefold(),
            )
            count = int(word) if word.isdecimal() else date_words()[language].numbers.get(word, 0)
            if count and (prescribed or ahead.search(clause)) and not lasted.search(clause):
                unit = next(days for start, days in _UNIT_STARTS.items() if found["unit"].casefold().startswith(start))
                ends.append(to_ms(midnight(at) + timedelta(days=count * unit + 1)))
    return max((end for end in ends if end > to_ms(at)), default=None)


def time_ahead(text: str, quote: str, at: datetime, language: str = "en", *, spare: float = 0) -> int | None:
    """
    Return when that is over which *text* sets at a time to come, in milliseconds: "is flying to Crete in May".

    None where no time to come is named.

    Args:
        text: what is to come.
        quote: the words that said so; a length in them is how long it takes: "on 12 May for two weeks".
        at: when, with a time zone.
        language: ISO 639-1; lengths are read in English alone.
        spare: the days that it may take where no length is said.
    """
    spans = [span for span in find_times(text, at, language, ahead=True) if span.relation == "at"]
    last = max((span for span in spans if span.from_ms > to_ms(at)), key=lambda span: span.to_ms, default=None)
    if last is None or last.grain in ("minute", "hour"):
        return None if last is None else last.to_ms
    long = next((days for found in _LENGTH.finditer(quote) if (days := _days_of(found))), 0) if language == "en" else 0
    return last.to_ms + round(max(long - 1, 0) if long else spare) * 86_400_000


_UNIT_STARTS = {"tag": 1, "d": 1, "jour": 1, "woche": 7, "sem": 7, "quincena": 15, "mona": 30, "mes": 30, "mois": 30}
# How a length is said, what makes it lie ahead, and what makes it lie behind.
_LENGTHS_AHEAD = {
    "de": (
        expression(
            r"\b(?P<n>\d{1,2}|[^\W\d_]+) (?P<unit>Tage?n?|Wochen?|Monate?n?)\b(?! (?:alt|her|später|zuvor|vorher))",
            re.IGNORECASE,
        ),
        expression(
            r"\b(?:krank ?geschrieben|krankgemeldet|auf Krücken|im Gips|in (?:Reha|Quarantäne|Elternzeit|Kur)|in der (?:Reha|Kur)|verreist|nicht da|weg|darf|dürfen|soll|muss|Bettruhe|Sportverbot|kein(?:en)? Sport|gesperrt|beurlaubt|noch|die nächsten)\b",
            re.IGNORECASE,
        ),
        expression(r"\b(?:seit|vor|war|waren|hatte|hatten|gewesen|gedauert|bisher|schon)\b", re.IGNORECASE),
    ),
    "es": (
        expression(
            r"\b(?P<n>\d{1,2}|[^\W\d_]+) (?P<unit>días?|semanas?|quincenas?|mes(?:es)?)\b(?! (?:antes|después|atrás))",
            re.IGNORECASE,
        ),
        expression(
            r"\b(?:de baja|con muletas|escayolad[oa]|enyesad[oa]|con yeso|en reposo|reposo|de viaje|fuera|en cuarentena|de permiso|no pued[oae]|teng[oa] que|tiene que|deb[oe]|los próximos|las próximas)\b",
            re.IGNORECASE,
        ),
        expression(r"\b(?:desde|hace|llev[oa]|llevamos|estuv\w+|era|fue|tuve|tuvo|duró|ya)\b", re.IGNORECASE),
    ),
    "fr": (
        expression(
            r"\b(?P<n>\d{1,2}|[^\W\d_]+) (?P<unit>jours?|semaines?|mois)\b(?! (?:avant|après|plus tard))", re.IGNORECASE
        ),
        expression(
            r"\b(?:en arrêt|arrêt (?:de travail|maladie)|arrêtée?|en congé|avec des béquilles|dans le plâtre|plâtrée?|une attelle|au repos|repos|en déplacement|absente?|en quarantaine|dois|doit|ne (?:peux|peut) pas|interdite?|les prochain(?:e?s))\b",
            re.IGNORECASE,
        ),
        expression(r"\b(?:depuis|il y a|était|étais|j'ai été|a duré|ça fait|déjà)\b", re.IGNORECASE),
    ),
}

_DAYS_IN = {"day": 1, "week": 7, "fortnight": 14, "month": 30}
_UNTIL_DATE = expression(r"\b(?:until|till)\b[^.,;]{0,40}?(\d{4}-\d\d-\d\d)", re.IGNORECASE)
_UNTIL = expression(r"\b(?:until|till?|through)\b", re.IGNORECASE)
_END_OF_THIS = expression(
    r"\b(until|till) (?:about |around )?(?:the )?end of (?:the|this) (week|month|year)\b", re.IGNORECASE
)
_ABOUT = expression(r"\b(until|till) (?:about |around |roughly |at least )?(?:the )?(?:end of )?(?=\w)", re.IGNORECASE)
# Until then something has not begun, or a range of days: "won't start until May", "Monday until Friday".
_BEGINS_THEN = expression(
    r"(?:n['’]t|\bnot|\bnever) (?:\w+ ){0,2}(?:start|begin|open|arrive|know|get|come|return|see|hear|finish|happen|leave|move|be (?:back|ready|done|there))\w*\b[^.,;]{0,40}\b(?:until|till)\b"
    r"|\b(?:mon|tues?|wed(?:nes)?|thurs?|fri|satur|sun)(?:day)?s? (?:until|till)\b",
    re.IGNORECASE,
)
_RUNS_NOW = expression(
    r"\b(?:is|are|am|i['’]?m|we['’]re|he['’]s|she['’]s) (?:on|off|at|with|staying|living|working|home|away|back|sleeping)\b|^(?:stays|works|lives|sleeps|working|staying|living|nights|days|on|off)\b"
    r"|\((?:only )?this \w+\)",
    re.IGNORECASE,
)
_LENGTH_AHEAD = expression(
    r"\bfor (?:the next |another |only |just )?(\d{1,2}|a couple of|[a-z]+) (day|week|fortnight|month)s?\b(?!,? (?:now|already|so far|straight|every|each|a (?:day|week|month|year|cycle)|per|at a time|running|in a row|out of|of (?:each|every|the|my)|when|whenever|if|it|before|(?:and )?then|after))",
    re.IGNORECASE,
)
_LENGTH = expression(r"\b(\d{1,2}|a couple of|[a-z]+)[ -](day|week|fortnight|month)s?\b", re.IGNORECASE)
_AHEAD = expression(
    r"\b(?:doctor|doc|gp|physio|vet|nurse|dentist|surgeon|specialist|must|mustn['’]?t|can['’]?t|cannot|not allowed|(?:need|needs|have|has) to|off (?:work|school|sport|sports|games|training|sick)|signed off|on furlough|grounded|suspended|banned|isolating|in (?:quarantine|isolation)"
    r"|on (?:\w+ )?leave|on (?:crutches|bed rest)|in a (?:cast|sling|boot|brace|splint)|laid up|out of action|away|staying|stays|working from|works from|for the next|another|from (?:today|tomorrow|(?:mon|tues|wednes|thurs|fri|satur|sun)day))\b",
    re.IGNORECASE,
)
_LASTED = expression(
    r"\b(?:been|(?:have|has|had)(?! to\b)|ha(?:ve|s|d)n['’]?t|(?:i|we|they)['’](?:ve|d)|was|were|did|didn['’]?t|used to|past|ago|since|lived|worked|stayed|travell?ed|studied|dated|played|suffered|waited|tried|used|visited"
    r"|lasted|met|went|took|spent)\b",
    re.IGNORECASE,
)


def _end_of(found: re.Match[str], text: str, at: datetime, prescribed: bool) -> int | None:
    """Return when a length that lies ahead is over, its last day included; ``None`` for one that has passed."""
    days = _days_of(found)
    clause = re.split(r"[.;!?]", text[: found.end()])[-1]
    if not days or _LASTED.search(clause) or not (prescribed or _AHEAD.search(clause)):
        return None
    return to_ms(midnight(at) + timedelta(days=days + 1))


def _days_of(length: re.Match[str]) -> int:
    """Return the days of a length; 0 where its first group is no number."""
    word = length[1].casefold()
    count = int(word) if word.isdecimal() else date_words()["en"].numbers.get(word, 0)
    return round(count * _DAYS_IN[length[2].casefold()])


def _date_of_span(span: TimeSpan, at: datetime) -> str:
    first = datetime.fromtimestamp(span.from_ms / 1000, at.tzinfo)
    if span.grain in ("year", "month"):
        return first.strftime("%Y" if span.grain == "year" else "%Y-%m")
    last = datetime.fromtimestamp((span.to_ms - 1) / 1000, at.tzinfo)
    days = dict.fromkeys((first.date().isoformat(), last.date().isoformat()))
    return " to ".join(days)


def _take(spans: list[TimeSpan], span: TimeSpan) -> None:
    """Keep *span* unless an earlier (and so longer or stronger) rule has its words."""
    if all(span.end <= other.start or span.start >= other.end for other in spans):
        spans.append(span)


def _written_out(text: str, at: datetime, words: DateWords | None) -> Iterator[TimeSpan]:
    """Find ``2024-05-03``, ``3.5.2024`` and, month first in English, ``5/3/2024``."""
    for found in _ISO.finditer(text):
        written = _day_span(found, at, int(found[1]), int(found[2]), int(found[3]))
        if written:
            yield written
    for found in _NUMERIC.finditer(text):
        first, second, year = int(found[1]), int(found[3]), int(found[4])
        day_first = words is None or words.day_first or found[2] == "." or first > 12
        day, month = (first, second) if day_first and second <= 12 else (second, first)
        span = _day_span(found, at, year + 2000 if year < 100 else year, month, day)
        if span:
            yield span


def _day_span(found: re.Match[str], at: datetime, year: int, month: int, day: int) -> TimeSpan | None:
    start = date_of(at, year, month, day)
    return _span(found, TimeRange(start, start + timedelta(days=1), "day")) if start else None


def _span(found: re.Match[str], time: TimeRange) -> TimeSpan | None:
    try:
        return TimeSpan(
            found.start(), found.end(), found.group(), to_ms(time.start), to_ms(time.end), time.grain, time.relation
        )
    except OverflowError:
        return None


def _read(rule: str, found: re.Match[str], at: datetime, past: bool | None, words: DateWords) -> TimeSpan | None:
    try:
        parts = _parts(found, at, past, words)
        time = RULES[rule](parts) if parts else None
        return _span(found, time) if time else None
    except (OverflowError, ValueError):  # a date outside the calendar: 31 February, the year 12000
        return None


def _related(text: str, span: TimeSpan, grammar: _Grammar) -> TimeSpan:
    """Apply ``since`` and ``until`` before the words or at their beginning ("until May")."""
    relations: tuple[tuple[Relation, re.Pattern[str] | None], ...] = (
        ("since", grammar.since),
        ("until", grammar.until),
    )
    opening = _OPENING.match(text, span.start, span.end)
    before = text[max(0, span.start - 30) : opening.end() if opening else span.start]
    for relation, regex in relations:
        if regex and (regex.search(text[: span.start]) or regex.search(before)):
            return replace(span, relation=relation)
    for relation, regex in (("since", grammar.since_after), ("until", grammar.until_after)):
        if regex and regex.search(text[span.end : span.end + 10]):
            return replace(span, relation=relation)
    return span


def _with_clock(text: str, spans: list[TimeSpan], at: datetime) -> list[TimeSpan]:
    """Join a day and the time of day beside it: "tomorrow at 5pm", "5pm tomorrow"."""
    joined: list[TimeSpan] = []
    for span in spans:
        previous = joined[-1] if joined else None
        if previous and span.start - previous.end <= 2 and not text[previous.end : span.start].strip(" ,"):
            day, clock = (previous, span) if previous.grain == "day" else (span, previous)
            if day.grain == "day" and clock.grain in ("minute", "hour"):
                shift = day.from_ms - to_ms(midnight(at))
                joined[-1] = TimeSpan(
                    previous.start, span.end, text[previous.start : span.end],
                    clock.from_ms + shift, clock.to_ms + shift, clock.grain, day.relation,
                )  # fmt: skip
                continue
        joined.append(span)
    return joined


def _with_hour(text: str, day: TimeSpan, hour: re.Pattern[str]) -> TimeSpan:
    """Return a day with the bare hour behind it, of morning or afternoon: "Friday at 3" is a time of that day."""
    found = hour.match(text, day.end)
    return replace(day, end=found.end(), words=day.words + found.group()) if found else day


@dataclass(frozen=True, slots=True)
class _Grammar:
    words: DateWords
    phrases: tuple[tuple[str, re.Pattern[str]], ...]
    worth: re.Pattern[str]
    past: re.Pattern[str]
    since: re.Pattern[str] | None
    until: re.Pattern[str] | None
    since_after: re.Pattern[str] | None
    until_after: re.Pattern[str] | None
    hour_after: re.Pattern[str] | None


_CLOCK = r"\d{1,2}(?:[:.]\d{2})? ?[ap](?:\.m\.|m\b)|\d{1,2}:\d{2}|noon|midday|midnight|\d{1,2} ?h ?\d{2}\b|\d{1,2} ?(?:uhr|h)\b"


@cache
def _grammar(language: str) -> _Grammar | None:
    """Compile the expressions of *language* on first use."""
    words = date_words().get(language)
    if words is None:
        return None
    holes = {
        "n": _either([*words.numbers, r"\d{1,5}(?:\.\d)?"], raw=True),
        "unit": _either(word for names in words.units.values() for word in names.split()),
        "dayname": _either(names.split(" ")[0] for names in words.weekdays),
        "weekday": _either(word for names in words.weekdays for word in names.split()),
        "month": _either(word for names in words.months for word in names.split())
        + (r"(?:\.(?=\s*\d))?" if words.spaced else ""),
        "season": _either(word for names in words.seasons for word in names.split()),
        "year": r"(?:19|20)\d{2}(?!\d)",
        "day": r"(?:3[01]|[12]\d|0?[1-9])(?!\d)",
        "clock": _CLOCK,
        "words": _either(words.days),
    }
    phrases: list[tuple[str, re.Pattern[str]]] = []
    for rule in RULES:
        for phrase in words.phrases.get(rule, ("{words}",) if rule == "days" else ()):
            source = _HOLE.sub(lambda hole: _filled_hole(hole[1], holes, words), phrase.replace(" ", r"\s+"))
            edges = (r"(?<![\w'-])", r"(?![\w'-](?<!-))") if words.spaced else ("", "")
            phrases.append((rule, re.compile(edges[0] + source + edges[1], re.IGNORECASE)))
    worth = "|".join([r"\d", *(holes[name] for name in ("unit", "weekday", "month", "season", "words")), "night|noon"])
    return _Grammar(
        words,
        tuple(phrases),
        re.compile(worth, re.IGNORECASE),
        re.compile(words.past, re.IGNORECASE),
        *(
            re.compile(source, re.IGNORECASE) if source else None
            for source in (words.since, words.until, words.since_after, words.until_after, words.hour_after)
        ),
    )


def _filled_hole(name: str, holes: Mapping[str, str], words: DateWords) -> str:
    ordinal = words.ordinal if name == "day" else ""
    return f"(?P<{name}>{holes[name]}){ordinal}"


def _either(words: Iterable[str], *, raw: bool = False) -> str:
    longest_first = sorted({word for word in words if word}, key=lambda word: (-len(word), word))
    body = "|".join(word if raw else re.escape(word) for word in longest_first)
    return "(?:" + body.replace(r"\ ", r"\s+").replace(" ", r"\s+") + ")" if body else "(?!)"


def _parts(found: re.Match[str], at: datetime, past: bool | None, words: DateWords) -> TimeParts | None:
    """Return the slots of a match as values; None for a count too large to mean anything."""
    held = {name: value.lower() for name, value in found.groupdict().items() if value is not None}
    number = re.sub(r"\s+", " ", held.get("n", "1"))
    n = words.numbers[number] if number in words.numbers else float(number)
    unit = next((unit for unit, names in words.units.items() if held.get("unit", "") in names.split()), "")
    if unit and n > _MAX_COUNT[unit]:
        return None
    phrase = re.sub(r"\s+", " ", held.get("words", ""))
    return TimeParts(
        at,
        past,
        n=n,
        unit=unit,
        weekday=_place(held.get("weekday") or held.get("dayname", ""), words.weekdays),
        month=_place(held.get("month", "").rstrip("."), words.months) + 1,
        season=_place(held.get("season", ""), words.seasons),
        year=int(held.get("year", 0)),
        day=words.days[phrase] if phrase else int(held.get("day", 0)),
        clock=held.get("clock", ""),
    )


def _place(word: str, names: tuple[str, ...]) -> int:
    return next((place for place, group in enumerate(names) if word in group.split()), 0)


Grain = Literal["minute", "hour", "day", "week", "weekend", "month", "season", "year"]
Relation = Literal["at", "since", "until", "for"]

_SEASON_START = (3, 6, 9, 12)


@dataclass(frozen=True, slots=True)
class TimeRange:
    """The result of a date rule, in local times."""

    start: datetime
    end: datetime
    grain: Grain
    relation: Relation = "at"


@dataclass(frozen=True, slots=True)
class TimeParts:
    """The values of the slots of a time phrase."""

    at: datetime
    past: bool | None  # the tense of the sentence: True past, False future, None silent
    n: float = 1
    unit: str = ""
    weekday: int = 0
    month: int = 0
    season: int = 0
    year: int = 0
    day: int = 0
    clock: str = ""


def midnight(at: datetime) -> datetime:
    return at.replace(hour=0, minute=0, second=0, microsecond=0)


def date_of(at: datetime, year: int, month: int, day: int) -> datetime | None:
    try:
        return midnight(at).replace(year=year, month=month, day=day)
    except ValueError:
        return None


def _monday(at: datetime) -> datetime:
    return midnight(at) - timedelta(days=at.weekday())


def month_of(at: datetime, distance: int) -> datetime:
    """Return the first day of the month *distance* months away."""
    count = at.year * 12 + at.month - 1 + distance
    return midnight(at).replace(year=count // 12, month=count % 12 + 1, day=1)


def _year(at: datetime, year: int) -> datetime:
    return midnight(at).replace(year=year, month=1, day=1)


def _calendar(at: datetime, unit: str, distance: int) -> TimeRange | None:
    """Return the whole day, week, weekend, month or year *distance* units away."""
    if unit == "day":
        start = midnight(at) + timedelta(days=distance)
        return TimeRange(start, start + timedelta(days=1), "day")
    if unit == "week":
        start = _monday(at) + timedelta(weeks=distance)
        return TimeRange(start, start + timedelta(weeks=1), "week")
    if unit == "weekend":
        start = _monday(at) + timedelta(weeks=distance, days=5)
        return TimeRange(start, start + timedelta(days=2), "weekend")
    if unit == "month":
        return TimeRange(month_of(at, distance), month_of(at, distance + 1), "month")
    if unit == "year":
        return TimeRange(_year(at, at.year + distance), _year(at, at.year + distance + 1), "year")
    return None


def _shifted(at: datetime, unit: str, count: float) -> datetime:
    """Move *at* by *count* units, backwards when negative."""
    if unit in ("minute", "hour"):
        return at + timedelta(**{f"{unit}s": count})
    if unit in ("day", "week", "weekend"):
        return at + timedelta(days=count * (1 if unit == "day" else 7))
    months = round(count * (12 if unit == "year" else 1))
    first = month_of(at, months)
    last_day = (month_of(first, 1) - timedelta(days=1)).day
    return at.replace(year=first.year, month=first.month, day=min(at.day, last_day))


def _away(parts: TimeParts, sign: int) -> TimeRange | None:
    """Resolve ``two weeks ago``: the unit at that distance; for weeks the seven days around it."""
    moment = _shifted(parts.at, parts.unit, sign * parts.n)
    if parts.unit == "minute":
        return TimeRange(moment, moment + timedelta(minutes=1), "minute")
    if parts.unit == "hour":
        return TimeRange(moment, moment + timedelta(hours=1), "hour")
    if parts.unit == "day" or parts.n < 1:
        return _calendar(moment, "day", 0)
    if parts.unit == "week":
        start = midnight(moment) - timedelta(days=3)
        return TimeRange(start, start + timedelta(weeks=1), "week")
    return _calendar(moment, parts.unit, 0)


def _lasting(parts: TimeParts) -> TimeRange:
    return TimeRange(_shifted(parts.at, parts.unit, -parts.n), parts.at, _grain(parts.unit), "for")


def _past_n(parts: TimeParts) -> TimeRange:
    return replace(_lasting(parts), relation="at")


def _grain(unit: str) -> Grain:
    return unit  # type: ignore[return-value]


def _weekday(parts: TimeParts, way: int) -> TimeRange | None:
    """Return the last (-1) or next (+1) such day, never today; 0 takes the tense of the sentence."""
    way = way or (-1 if parts.past else 1)
    distance = (parts.weekday - parts.at.weekday()) % 7
    if way < 0:
        distance = distance - 7
    return _calendar(parts.at, "day", distance or 7)


def _next_weekday(parts: TimeParts) -> TimeRange | None:
    """Resolve ``next Tuesday``, which is never tomorrow."""
    distance = (parts.weekday - parts.at.weekday()) % 7 or 7
    return _calendar(parts.at, "day", distance + 7 if distance == 1 else distance)


def _season(parts: TimeParts, way: int) -> TimeRange:
    year = parts.year or parts.at.year
    start = _season_start(parts, year)
    end = month_of(start, 3)
    if not parts.year:
        if way < 0 and end > parts.at:
            start = _season_start(parts, year - 1)
        elif way > 0 and start <= parts.at:
            start = _season_start(parts, year + 1)
    return TimeRange(start, month_of(start, 3), "season")


def _season_start(parts: TimeParts, year: int) -> datetime:
    return midnight(parts.at).replace(year=year, month=_SEASON_START[parts.season], day=1)


def _day(parts: TimeParts) -> TimeRange | None:
    if parts.year:
        start = date_of(parts.at, parts.year, parts.month, parts.day)
    else:
        start = _nearest(
            parts, [date_of(parts.at, parts.at.year + shift, parts.month, parts.day) for shift in (-1, 0, 1)]
        )
    return TimeRange(start, start + timedelta(days=1), "day") if start else None


def _nearest(parts: TimeParts, choices: list[datetime | None]) -> datetime | None:
    """Choose by tense: the last before now or the first from today on; without tense the closest."""
    known = [choice for choice in choices if choice]
    if not known:
        return None
    today = midnight(parts.at)
    if parts.past:
        return max((choice for choice in known if choice <= today), default=known[0])
    if parts.past is False:
        return min((choice for choice in known if choice >= today), default=known[-1])
    return min(known, key=lambda choice: (abs((choice - today).days), choice < today))


def _day_only(parts: TimeParts) -> TimeRange | None:
    choices: list[datetime | None] = []
    for distance in (-1, 0, 1):
        first = month_of(parts.at, distance)
        choices.append(date_of(first, first.year, first.month, parts.day))
    start = _nearest(parts, choices)
    return TimeRange(start, start + timedelta(days=1), "day") if start else None


def _month_named(parts: TimeParts) -> TimeRange:
    if parts.year:
        start = midnight(parts.at).replace(year=parts.year, month=parts.month, day=1)
    else:
        distance = (parts.month - parts.at.month) % 12
        start = month_of(parts.at, distance - 12 if parts.past and distance else distance)
    return TimeRange(start, month_of(start, 1), "month")


def _year_named(parts: TimeParts) -> TimeRange:
    return TimeRange(_year(parts.at, parts.year), _year(parts.at, parts.year + 1), "year")


def _clock(parts: TimeParts) -> TimeRange | None:
    found = re.match(r"(\d{1,2}) ?(?:[:.h] ?(\d{2}))?\s*([ap])?", parts.clock, re.IGNORECASE)
    if parts.clock.lower() in _NAMED_HOURS:
        hour, minute, half = _NAMED_HOURS[parts.clock.lower()], 0, None
    elif found:
        hour, minute, half = int(found[1]), int(found[2] or 0), found[3]
    else:
        return None
    if half and hour <= 12:
        hour = hour % 12 + (12 if half.lower() == "p" else 0)
    if hour > 23 or minute > 59:
        return None
    start = midnight(parts.at).replace(hour=hour, minute=minute)
    exact = found is not None and found[2] is not None
    return TimeRange(
        start, start + (timedelta(minutes=1) if exact else timedelta(hours=1)), "minute" if exact else "hour"
    )


def _last_night(parts: TimeParts) -> TimeRange:
    start = midnight(parts.at) - timedelta(hours=6)
    return TimeRange(start, start + timedelta(hours=12), "day")


_NAMED_HOURS = {"noon": 12, "midday": 12, "midnight": 0}

RULES: dict[str, Callable[[TimeParts], TimeRange | None]] = {
    "day": _day,
    "ago": lambda parts: _away(parts, -1),
    "ahead": lambda parts: _away(parts, 1),
    "for": _lasting,
    "past_n": _past_n,
    "season": lambda parts: _season(parts, 0),
    "last_season": lambda parts: _season(parts, -1),
    "this_season": lambda parts: _season(parts, 0),
    "next_season": lambda parts: _season(parts, 1),
    "last_night": _last_night,
    "days": lambda parts: _calendar(parts.at, "day", parts.day),
    "last_weekday": lambda parts: _weekday(parts, -1),
    "next_weekday": _next_weekday,
    "last": lambda parts: _calendar(parts.at, parts.unit, -1),
    "this": lambda parts: _calendar(parts.at, parts.unit, 0),
    "next": lambda parts: _calendar(parts.at, parts.unit, 1),
    "month_year": _month_named,
    "month": _month_named,
    "day_only": _day_only,
    "year": _year_named,
    "weekday": lambda parts: _weekday(parts, 0),
    "clock": _clock,
}


def with_date(span: TimeSpan, at: datetime) -> str:
    """Format the words with the date they mean: ``next Tuesday (2024-05-21)``."""
    zone = at.tzinfo
    first, last = from_ms(span.from_ms).astimezone(zone), from_ms(span.to_ms - 1).astimezone(zone)
    if span.relation == "for":
        return span.words
    if span.grain == "year":
        date = f"{first:%Y}"
    elif span.grain == "month":
        date = f"{first:%Y-%m}"
    elif span.grain in ("minute", "hour"):
        date = f"{first:%Y-%m-%d %H:%M}"
    else:
        date = f"{first:%Y-%m-%d}" if first.date() == last.date() else f"{first:%Y-%m-%d} to {last:%Y-%m-%d}"
    return span.words if date in span.words else f"{span.words} ({date})"


_EACH = expression(
    r"\b(?:(?:every|each) ((?:mon|tues|wednes|thurs|fri|satur|sun)day)|((?:mon|tues|wednes|thurs|fri|satur|sun)day)s)\b"
)


def on_other_days(text: str, value: str) -> bool:
    """Whether a sentence speaks of other days of the week than a value: not on Fridays any more, and still on Mondays."""
    said, known = ({a or b for a, b in _EACH.findall(words.casefold())} for words in (text, value))
    return bool(said) and bool(known) and not said & known
