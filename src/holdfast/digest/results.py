"""
Results of tests: values with the day of their sample, several in a sentence or in a pasted report, in any language.

A result belongs to whoever stands in front of it ("Luna's T4", "my ALT"), else to the subject of the conversation;
the user's own need "my", or a report that nobody else is named in.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from importlib.resources import files

from ..clock import from_ms, to_ms
from ..scope import SELF
from ..text.dates import TimeSpan
from ..text.sentences import split_pieces
from .mentions import ME, MentionedPerson, Mentions

MAX_PIECE = 600
CATEGORY = "health"

_UNIT = r"%|[mµμunp]?g/[dm]?l|[mµμunp]?mol/l|[mkµμ]?i?u/m?l|mm ?hg|kg|kilos?|lbs?|pounds|g\b|°\s?[cf]"
_VALUE = re.compile(
    rf"(?<![A-Za-zÀ-ÿ0-9_.,/])\d{{1,4}}(?:[.,]\d{{1,3}})?(?:/\d{{2,3}})?(?:\s?(?P<unit>{_UNIT})(?!\w))?"
    r"(?![\d:/]|[.,]\d|\s?[-–]\s?\d|\s?(?:am|pm|uhr|times|points?|hours?|days?|weeks?|months?|years?|minutes?|pages?|tablets?|pills?|mg\b"
    r"|percent higher|higher|lower|more|less|stunden|tage|wochen|días|horas|jours|heures)\b)",
    re.IGNORECASE,
)
_COPULA = (
    r"\b(?:was|is|are|were|at|came|back|as|of|in|levels?|values?|results?|readings?|now|currently|only|about|around|still|measured|test|"
    r"and|then|to|from|it|lag|lagen|liegt|ist|war|bei|beträgt|betrug|wert|danach|und|fue|es|era|estaba|está|en|de|del|a|al|nivel|valor|y|luego|"
    r"était|est|à|taux|le|la|el|il|puis|et|è|stato|stata|di|e|poi|foi|é|estava|do|da|um|depois|went|rose|fell|dropped|climbed|increased|decreased|improved|up|down|stieg|sank|auf|von|subió|bajó|passé)\b"
)
_GLUE = re.compile(
    rf"(?:{_COPULA}|[\s:=|,;()*_>~→\-–—]|로|으로|에는|에|는|은|이|가|의|수치|결과|が|は|の|で|に|値|是|为|的|了)*",
    re.IGNORECASE,
)
_CLAIMS_NOTHING = re.compile(
    r"\b(?:normal(?:e|er|es|ly)?|reference|target|goal|ideal|average|usual|maximum|max\.|minimum|min\.|healthy|range|should|would|zielwert|referenz\w*|"
    r"objetivo|objectif)\W+(?:\w+\W+){0,2}$|정상 ?$|正常 ?$",
    re.IGNORECASE,
)
_FIRST_PERSON = re.compile(
    r"(?:\b(?:my|our|mein\w*|unser\w*|mi|mis|nuestr\w+|mon|ma|mes|notre|mio|mia|miei|mie|meu|minha|meus|minhas)\s+"
    r"(?:(?:last|latest|new|first|fasting|resting|letzter?|neuer?|letztes|neues|último|última|dernier|dernière|ultimo|ultima|nivel|niveau|taux|livello"
    r"|nível|valor|de|di|du)\s+)*|(?<![가-힣])(?:제|내|저의|나의|私の|僕の|我的)\s?)$",
    re.IGNORECASE,
)
_OWNER = re.compile(
    r"(?P<who>(?:\b(?:my|our|the) )?[\w]+)(?:['’]s?)\s+(?:(?:last|latest|new|first|fasting)\s+)*$", re.IGNORECASE
)
_OF_WHOM = re.compile(r"\s+(?:of|de|von|di|da|do|del)\s+[^\W\d_]+")
_PRONOUN = re.compile(r"\b(?P<who>her|his|its|their)\s+(?:(?:last|latest|new|first|fasting)\s+)*$", re.IGNORECASE)
_YEAR = re.compile(r"\d{4}|\d{1,2}[./]\d{1,2}[./]\d{2}")
_PLACES = {"weight": (0, 999), "temperature": (30, 112)}
_NEEDS_UNIT = frozenset(("weight",))
_WEIGHT_UNITS = re.compile(r"kg|kilos?|lbs?|pounds|g\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TestResult:
    """One value: what was measured, as the user calls it, its place in the message, whose it is, and its day."""

    key: str
    name: str
    value: str
    start: int
    end: int
    person: MentionedPerson
    at_ms: int | None


@dataclass(frozen=True, slots=True)
class _Piece:
    text: str
    offset: int
    dates: Sequence[TimeSpan]
    used: list[TimeSpan] = field(default_factory=list)  # of what was measured before in the sentence


@lru_cache(maxsize=1)
def _table() -> tuple[re.Pattern[str], re.Pattern[str], dict[str, str]]:
    data = tomllib.loads((files(__package__) / "patterns" / "results.toml").read_text(encoding="utf-8"))
    keys: dict[str, str] = {}
    for key, names in data["names"].items():
        for name in names.split("|") if "|" in names else names.split():
            keys.setdefault(name.strip(), key)
    longest = sorted(keys, key=lambda name: -len(name))
    exact = [name for name in longest if name.isascii() and name != name.lower()]
    loose = [name for name in longest if name not in exact]
    names = re.compile(
        rf"(?<![A-Za-zÀ-ÿ0-9])(?:{'|'.join(map(re.escape, exact))})(?![A-Za-zÀ-ÿ0-9])"
        rf"|(?<![A-Za-zÀ-ÿ0-9])(?i:{'|'.join(re.escape(n) for n in loose if n[0] < '぀')})(?![a-zà-ÿ0-9])"
        rf"|(?:{'|'.join(re.escape(n) for n in loose if n[0] >= '぀')})"
    )
    return (
        names,
        re.compile(data["report"]["heading"], re.IGNORECASE),
        {name.casefold(): key for name, key in keys.items()},
    )


def may_hold_results(text: str) -> bool:
    """Whether a text names something that is measured, and a number."""
    return any(map(str.isdigit, text)) and _table()[0].search(text) is not None


def read_results(
    text: str,
    people: Mentions,
    at: datetime | None,
    times: Callable[[str], Sequence[TimeSpan]],
) -> Iterator[TestResult]:
    """
    Yield the results that a message states.

    Args:
        text: the message, with what is not the user's own words blanked.
        people: whom it may be about.
        at: when it was sent; a day without a year is the last one before.
        times: finds the times that a sentence names.
    """
    if not may_hold_results(text):
        return
    names, heading, _ = _table()
    pieces = [_Piece(span.of(text), span.start, times(span.of(text))) for span in split_pieces(text, MAX_PIECE)]
    report = heading.search(text) is not None
    held: TimeSpan | None = None
    own: MentionedPerson | None = None
    for piece in pieces:
        found = [one for one in names.finditer(piece.text)]
        heads = heading.search(piece.text) is not None or not found
        if heads and piece.dates and report:
            before = [span for span in piece.dates if not found or span.start < found[0].start()]
            held = before[0] if before else held
        if not found or piece.text.rstrip().endswith(("?", "？")):
            own = own if found == [] else None
            continue
        own = _owner(piece.text, *found[0].span(), people, own, report)
        for at_name, name in enumerate(found):
            here = _owner(piece.text, *name.span(), people, own, report)
            end = found[at_name + 1].start() if at_name + 1 < len(found) else len(piece.text)
            if here is not None and not _CLAIMS_NOTHING.search(piece.text[: name.start()]):
                yield from _values(piece, name, end, here, held, at)


def _owner(
    text: str, start: int, end: int, people: Mentions, before: MentionedPerson | None, report: bool
) -> MentionedPerson | None:
    """Return whose result begins at a place; None when that is not known."""
    prefix = text[:start]
    if _FIRST_PERSON.search(prefix):
        return ME
    whose = _OWNER.search(prefix)
    if whose is not None:
        return people.whom(whose["who"])
    near = prefix + (_OF_WHOM.match(text, end) or [""])[0]
    others = {person.subject: person for name in people.names if (person := _named(people, name, near)) is not None}
    if others:
        return next(iter(others.values())) if len(others) == 1 else None
    pronoun = _PRONOUN.search(prefix)
    if pronoun is not None:
        return people.whom(pronoun["who"])
    if not people.of_user:
        return people.patient()
    return before if before is not None else ME if report else None


def _named(people: Mentions, name: str, text: str) -> MentionedPerson | None:
    if name.casefold() == SELF or not re.search(rf"(?<![^\W_]){re.escape(name)}s?(?![a-zà-ÿ])", text, re.IGNORECASE):
        return None
    person = people.whom(name)
    return None if person is None or person.is_self else person


def _values(
    piece: _Piece,
    name: re.Match[str],
    end: int,
    person: MentionedPerson,
    held: TimeSpan | None,
    at: datetime | None,
) -> Iterator[TestResult]:
    """Yield the values behind one name: the first, and further ones that have days of their own."""
    key = _table()[2][name.group().casefold()]
    dates = [span for span in piece.dates if span.relation == "at" and span not in piece.used]
    last, found = name.end(), list[re.Match[str]]()
    of_whom = _OF_WHOM.match(piece.text, last)
    last = of_whom.end() if of_whom else last
    for value in _VALUE.finditer(piece.text, last, end):
        if any(span.start <= value.start() < span.end for span in dates):
            continue
        between = piece.text[last : value.start()]
        for span in reversed([one for one in dates if last <= one.start and one.end <= value.start()]):
            between = between[: span.start - last] + between[span.end - last :]
        o_clock = between.strip().lower() == "at" and value.group().isdigit()
        if o_clock or not _GLUE.fullmatch(between) or not _fits(key, value):
            break
        found.append(value)
        last = value.end()
    days = _days(piece, found, dates, name, end)
    if None in days[1:] or (len(days) > 1 and days[0] is None):
        found, days = found[:1], days[:1]
    for value, day in zip(found, days, strict=True):
        start = piece.offset + name.start()
        stop = piece.offset + max(value.end(), day.end if day is not None and day.start >= name.start() else 0)
        if day is not None and day.start > name.start():
            piece.used.append(day)
        taken = _past(day if day is not None else held, at)
        yield TestResult(key, name.group(), value.group().strip(), start, stop, person, taken)


def _days(
    piece: _Piece, values: Sequence[re.Match[str]], dates: Sequence[TimeSpan], name: re.Match[str], end: int
) -> list[TimeSpan | None]:
    """Return the day of each value: those in front of the values when the first one has one there, else those behind."""
    if not values:
        return []
    lead = next((span for span in reversed(dates) if span.end <= values[0].start()), None)
    starts, ends = [value.start() for value in values], [value.end() for value in values]
    if lead is not None:
        begins = [lead.start, *ends[:-1]]
        slots = list(zip(begins, starts, strict=True))
        return [next((s for s in reversed(dates) if a <= s.start and s.end <= b), None) for a, b in slots]
    slots = list(zip(ends, [*starts[1:], end], strict=True))
    found = [next((span for span in dates if a <= span.start and span.end <= b), None) for a, b in slots]
    return [
        one if one and _is_near(piece.text[a : one.start]) else None for one, (a, _) in zip(found, slots, strict=True)
    ]


def _is_near(between: str) -> bool:
    return len(between) <= 20 and not re.search(r"[.;!?\d]|\b(?:and|und|y|et|e)\b", between)


def _fits(key: str, value: re.Match[str]) -> bool:
    if key == "blood_pressure":
        return "/" in value.group()
    if "/" in value.group().split(" ")[0].split("g")[0].split("m")[0]:
        return False
    unit = value["unit"] or ""
    if key in _NEEDS_UNIT and not _WEIGHT_UNITS.fullmatch(unit):
        return False
    if key not in _NEEDS_UNIT and _WEIGHT_UNITS.fullmatch(unit):
        return False
    low, high = _PLACES.get(key, (0, 9999))
    number = re.match(r"\d+", value.group())
    return number is not None and low <= int(number.group()) <= high


def _past(span: TimeSpan | None, at: datetime | None) -> int | None:
    """Return when a sample was taken: a day without a year that is still to come is the one of the year before."""
    if span is None or at is None:
        return None
    if span.from_ms <= to_ms(at):
        return span.from_ms
    if _YEAR.search(span.words) or span.grain not in ("day", "month"):
        return None
    first = from_ms(span.from_ms)
    try:
        return to_ms(first.replace(year=first.year - 1))
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class CareEvent:
    """A vaccination, neutering or operation: done on a day, or due on one."""

    kind: str
    what: str
    due: bool
    start: int
    end: int
    person: MentionedPerson
    day: TimeSpan
    said_at: datetime


_CLAUSE = re.compile(r"[,;]|\b(?:and|but|und|aber|y|pero|et|mais|ma|mas)\b", re.IGNORECASE)
_OF_USER = re.compile(
    r"\b(?:i|i['’]ve|i['’]m|me|my|ich|mich|meine?|bin|yo|me|mi|fui|je|j['’]ai|mon|ma|mio|mia|sono|minha|meu|eu)\b|제가|저는|나는|내|私|我",
    re.IGNORECASE,
)
_NEVER_DONE = re.compile(
    r"\b(?:not|never|cancel\w*|skipp\w*|missed|refus\w*|postponed|wants?|would|could|should|if|maybe|might|read|article|story|dream\w*"
    r"|nicht|kein\w*|abgesagt|soll\w*|no|nunca|ne|pas|jamais|annul\w*|non|mai|não)\b|n['’]t\b|않|안 |못|ない|没|未|不",
    re.IGNORECASE,
)
_KIN = re.compile(r"\b(?:my|our)\s+(?P<who>\w+)\s+(?:was|is|had|has|got|needs)\b", re.IGNORECASE)
_STRANGER = re.compile(r"^(?P<who>[A-Z][a-z]+) (?:was|is|had|has|got|needs|wurde|fue|est|a été|è)\b")
_POSSESSOR = re.compile(r"(?P<who>(?:\b(?:my|our|the) )?\w+)['’]s\s")
_BARE_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")


@lru_cache(maxsize=1)
def _care() -> dict[str, dict[str, re.Pattern[str]]]:
    data = tomllib.loads((files(__package__) / "patterns" / "results.toml").read_text(encoding="utf-8"))
    return {
        kind: {name: re.compile(words, re.IGNORECASE) for name, words in one.items()}
        for kind, one in data["care"].items()
    }


def may_hold_care(text: str) -> bool:
    """Whether a text names a vaccination, a neutering or an operation."""
    return any(one["is"].search(text) for one in _care().values())


def read_care(
    text: str, people: Mentions, at: datetime, times: Callable[..., Sequence[TimeSpan]]
) -> Iterator[CareEvent]:
    """Yield what was done or is due, where a sentence names its day; see `read_results`."""
    for span in split_pieces(text, MAX_PIECE):
        piece = span.of(text)
        if piece.rstrip().endswith(("?", "？")) or _NEVER_DONE.search(piece):
            continue
        for kind, one in _care().items():
            found = one["is"].search(piece)
            if found is None:
                continue
            due = one["due"].search(piece) is not None
            day = _day_of(piece, found, at, times(piece, ahead=due), due=due)
            person = _cared_for(piece, found.start(), people)
            if person is None or day is None:
                continue
            start, end = min(found.start(), day.start), max(found.end(), day.end)
            if len(_CLAUSE.findall(piece[start:end])) > 1:
                continue
            against = one["against"].search(piece) if "against" in one else None
            what = next(filter(None, against.groups()), "").lower() if against else ""
            if kind == "operation":
                what = _TRAILING.sub("", piece[found.start() : day.start]) or found.group()
            yield CareEvent(kind, what, due, span.start + start, span.start + end, person, day, at)
            break


_TRAILING = re.compile(r"(?:\s+(?:on|in|at|from|back|am|im|el|en|le|il|nel|em))*\s*$", re.IGNORECASE)


def _day_of(piece: str, found: re.Match[str], at: datetime, times: Sequence[TimeSpan], *, due: bool) -> TimeSpan | None:
    """Return the day nearest to a word: one to come of what is due, a past one of what was done."""
    days = [day for day in times if day.relation == "at"]
    year = _BARE_YEAR.search(piece) if not days else None
    if year is not None:
        first, last = datetime(int(year.group()), 1, 1, tzinfo=UTC), datetime(int(year.group()) + 1, 1, 1, tzinfo=UTC)
        days = [TimeSpan(year.start(), year.end(), year.group(), to_ms(first), to_ms(last), "year")]
    if not days:
        return None
    day = min(days, key=lambda day: abs(day.start - found.end()))
    if due:
        return day if day.to_ms > to_ms(at) else None
    past = _past(day, at)
    return None if past is None else replace(day, from_ms=past, to_ms=past + day.to_ms - day.from_ms)


def _cared_for(piece: str, start: int, people: Mentions) -> MentionedPerson | None:
    kin, owner, stranger = _KIN.search(piece), _POSSESSOR.search(piece[:start]), _STRANGER.search(piece)
    if kin is not None and people.relation(kin["who"]) is not None:
        return people.whom(f"my {kin['who']}")
    if owner is not None:
        return people.whom(owner["who"])
    others = {person.subject: person for name in people.names if (person := _named(people, name, piece)) is not None}
    if others:
        return next(iter(others.values())) if len(others) == 1 else None
    if stranger is not None and stranger["who"].lower() not in _PRONOUNS:
        return None
    if not people.of_user:
        return people.patient()
    before = piece[:start].rpartition(",")[2][-60:]
    return ME if _OF_USER.search(before) else None


_PRONOUNS = frozenset(
    "she he it they i we ich wir je nous yo eu io sie er es ella él elle il lei lui this that".split()
)
