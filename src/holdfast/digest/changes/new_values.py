"""
New values of known facts, from changes that do not say of what: "it's 100 now", "bumped it up to two a day".

Words: ``patterns/ended_*.toml``.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache, partial

from ...scope import SELF
from ...text import expression
from ...text.dates import with_date
from ...text.render import well_formed
from ...types import Candidate
from ..grammar import (
    PatternSlot,
    Span,
    ending_cue,
    english_cue,
    renewal,
    switch_expressions,
)
from ..mentions import subject_name
from ..second_look import KnownValue
from ..slots import (
    AMOUNT,
    NO_AMOUNT,
    amounts_in_words,
    is_like_amount,
    is_no_dose,
    money_at,
    place_of,
    read_at,
    sentence_times,
)
from . import (
    ISO_DAY,
    NAME,
    NUMBER,
    Reading,
    is_anothers,
    is_in,
    is_namesake,
    is_of_other_sex,
    is_told_of_another,
    speaks_of_kin,
)
from .corrections import currency_of, in_another_currency

_DAY = expression(r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)day(?=s?\b)", re.IGNORECASE)
_DENIED = expression(r"(?:n't|\b(?:no longer|not|never|used to|stopped|quit))\b[^.!?,;]*\Z", re.IGNORECASE)


def find_new_values(reading: Reading, known: Sequence[KnownValue], just: Sequence[KnownValue]) -> Iterator[Candidate]:
    """Yield the new values of known facts that a sentence gives without saying of what: "bumped it up to 100"."""
    of_another = cache(partial(is_told_of_another, reading.rules, reading.text))
    for one in known:
        switched = _switched(reading, one) or _find_new_home(reading, one)
        if switched is not None and one.kind == "attribute":
            yield switched
            continue
        kind = _kind_of_value(one)
        if kind == "medication" and one.subject == SELF and of_another() and _names_a_person(reading, one):
            continue  # "my neighbour takes twice as much ramipril"
        instead = list(_swapped(reading, one)) if kind == "medication" else []
        scaled = _scaled(reading, one, known, just) if kind == "medication" and not instead else None
        if instead or scaled is not None:
            yield from instead or filter(None, [scaled])
            continue
        words = said_name(reading, one) if kind == "medication" else one.subject if kind == "age_other" else one.words
        if kind in ("appointment", "schedule"):
            named = "" if one.category == "appointment" else min(one.names, key=len, default="")
            words = (named or one.key.partition("_with_")[0]).replace("_", " ")
        patterns = [*renewal(reading.rules.code, kind, words, reading.lowered, one.key.replace("_", " "))]
        if not patterns or not _is_topic(reading, one, kind, known, just):
            continue
        match = next((found for pattern in patterns if (found := pattern.search(reading.text))), None)
        if match is None or not reading.means(match.start(), match.end()):
            continue
        called = (one.words, one.key, *one.names, words)
        dosed = kind == "medication" and not _is_of_another_medicine(reading, one, match)
        if kind == "medication" and (not dosed or is_no_dose(reading.text, match, one.value, called)):
            continue
        amount = money_at(reading.text, *match.span()) if kind == "budget" else None
        if amount is not None and amount.kind != currency_of(one):
            yield from in_another_currency(reading, one, match.span(), match.span("new"))
            continue
        before = reading.text[: match.start()]
        apart = kind == "schedule" and (_DENIED.search(before) or english_cue("beside_it").search(reading.text))
        if kind == "age_other" and _is_no_age_of(reading, one, match):
            continue  # "turned 24 and saw my nan" leaves out "I"
        kin = kind == "schedule" and is_namesake(reading.rules, reading.others, one.subject, before)
        other = is_anothers(reading.rules, one.subject, before)
        if apart or kin or other or reading.stops((f"new/{kind}",), r"(?!)"):
            continue
        if kind == "appointment":
            yield from _moved_to(reading, one, match.start())
            continue
        new = next(filter(None, (match["new"], match.groupdict().get("new_")))).strip(" .,;!")
        if kind in ("age", "age_other", "how_many") and not new.isdecimal():
            new = str(max(amounts_in_words(new), default=new))
        if new.casefold() != one.value.casefold() and (
            kind != "favorite" or not english_cue("no_value").fullmatch(new.casefold().split()[0])
        ):
            stated = reading.state(match.span(), one, _in_same_unit(new, one.value, kind))
            yield from _on_another_day(reading, one, match.span(), new) if kind == "schedule" else [stated]


def _is_no_age_of(reading: Reading, one: KnownValue, match: re.Match[str]) -> bool:
    rules, before, others = reading.rules, reading.text[: match.start()], reading.others
    return (
        english_cue("nobody_turned").match(reading.text[: match.end()].rpartition(".")[2]) is not None
        or is_namesake(reading.rules, reading.others, one.subject, before)
        or is_of_other_sex(rules, others, one.subject, match[0])
        or speaks_of_kin(rules, others, one.subject, before)
    )


def find_new_numbers(reading: Reading, known: Sequence[KnownValue]) -> Iterator[Candidate]:
    """Yield the facts whose number a sentence changes: "kitchen budget's 9500 now", "second year now" after the first."""
    numbers = [found for found in AMOUNT.finditer(reading.text) if not NO_AMOUNT.match(reading.text, found.end())]
    cue, ordinal = (ending_cue(reading.rules.code, name) for name in ("renumbered", "ordinal"))
    unless = ending_cue(reading.rules.code, "unchanged")
    if unless is not None and unless.search(reading.text):
        return
    changed = cue is not None and cue.search(reading.text) is not None
    nth = ordinal.search(reading.text) if ordinal is not None else None
    if not (changed and len(numbers) == 1) and nth is None:
        return
    for one in known:
        if is_anothers(reading.rules, one.subject, reading.text) or one.category in (
            "identity",
            "medication",
            "allergy",
        ):
            continue
        if one.subject == SELF and is_told_of_another(reading.rules, reading.text):
            continue
        before = ordinal.search(one.text) if nth is not None and ordinal is not None else None
        if (
            nth is not None
            and before is not None
            and (before["of"] or before["of_"]) == (nth["of"] or nth["of_"]).lower()
        ):
            if one.subject != SELF and not _names_subject(reading, one):
                continue
            if before[0].casefold() != nth[0].casefold() and reading.means(*nth.span()):
                yield from _renumbered(reading, one, nth.span(), before[0], nth[0].lower())
            continue
        old = list(AMOUNT.finditer(one.text)) if changed and len(numbers) == 1 else []
        if len(old) != 1 or not any(is_in(name, reading.text) for name in one.names if len(name) > 3):
            continue
        new, named = numbers[0], NAME.findall(one.text, 1) if one.kind == "statement" else ()
        if not all(is_in(name, reading.text) for name in named):
            continue  # "in Porto, in house 1" is not what "in Lisbon, in house 2" changes
        if is_like_amount(old[0], new) and reading.means(*new.span()):
            yield from _renumbered(reading, one, new.span(), old[0]["number"], new["number"])


def find_kin(
    reading: Reading, known: Sequence[KnownValue], stated: Sequence[Candidate]
) -> Iterator[tuple[KnownValue, Span]]:
    """Yield the medicine in whose place a sentence puts another: of the same kind, or the only one; so with preferences."""
    cue, lately = ending_cue(reading.rules.code, "swapped"), ending_cue(reading.rules.code, "lately")
    for new in stated:
        kind = new.value.rpartition(" ")[2].casefold()
        if new.key != "prefers" or kind == new.value or not (lately and lately.search(reading.text)):
            continue
        for one in known:  # "I prefer aisle seats these days"
            if (one.subject, one.key) == (new.subject, "prefers") and one.value.casefold().endswith(f" {kind}"):
                if one.value.casefold() != new.value.casefold():
                    yield one, (max(0, new.start - reading.offset), len(reading.text))
    for new in stated:
        start = new.start - reading.offset
        if new.category != "medication" or not 0 <= start < len(reading.text) or not (cue and cue.search(reading.text)):
            continue
        old = [
            one for one in known if (one.subject, one.category) == (new.subject, "medication") and one.key != new.key
        ]
        groups = [{*group.split()} for group in reading.rules.ended["kin"]]
        kin = [one for one in old if any({one.key, new.key} <= group for group in groups)]
        if len(old) == 1 and not all(any(key in group for group in groups) for key in (old[0].key, new.key)):
            kin = old  # the only one, and nothing says that it is for something else
        yield from ((one, (start, start + len(new.quote))) for one in kin)


def find_successors(
    reading: Reading, known: Sequence[KnownValue], stated: Sequence[Candidate]
) -> Iterator[tuple[KnownValue, Span]]:
    """Yield the only known fact in whose place a sentence of change puts another: "Is with O2." after "Is with Vodafone."."""
    code, text = reading.rules.code, reading.text
    changed, added, instead = (ending_cue(code, name) for name in ("changed", "added", "in_place"))
    if changed is None or added is None or instead is None or not changed.search(text) or added.search(text):
        return
    swapped = instead.search(text) is not None
    for new, start in ((one, one.start - reading.offset) for one in stated):
        place, end = place_of(code, new.text), min(len(text), start + len(new.quote))
        same = [(one, place_of(code, one.text)) for one in known if place and one.subject == new.subject]
        old = [one for one, other in same if place and other and other[0] == place[0] and other[1] != place[1]]
        if swapped and not place and new.category in ("hobby", "language"):
            old = [one for one in known if one.address == (new.subject, new.category, new.key)]
        if new.category == "tech" and not (old and _is_whole_switch(reading, old[0])):
            continue
        if 0 <= start < end and len(old) == 1 and old[0].value != new.value and reading.means(start, end):
            yield old[0], (start, end)


def _is_whole_switch(reading: Reading, old: KnownValue) -> bool:
    """Whether all moved to a tool, from the *old* one where the message names one that was left."""
    part, leaves = (ending_cue(reading.rules.code, name) for name in ("in_part", "leaves"))
    content = reading.message.content
    if part is None or leaves is None or part.search(content):
        return False
    left = [found["what"].casefold() for found in leaves.finditer(content)]
    return not left or any(name.casefold() in one or one in name.casefold() for name in old.names for one in left)


def _find_new_home(reading: Reading, one: KnownValue) -> Candidate | None:
    """Return where another lives now: "Huda's in London now" after Dubai."""
    cue = ending_cue(reading.rules.code, "elsewhere") if one.subject != SELF and one.key == "lives_in" else None
    if cue is None:
        return None
    for found in cue.finditer(reading.text):
        who = found["who"].casefold()
        if (reading.others.get(who.title()) or reading.others.get(who) or subject_name(who)) != one.subject:
            continue
        new = read_at(reading.rules, PatternSlot("place", "place", False), reading.text, found.end(), lower_case=False)
        if new is not None and new.value.casefold() != one.value.casefold() and reading.means(found.start(), new.end):
            if found["sure"] or english_cue("for_good_now").match(reading.text, new.end):
                return reading.state((found.start(), new.end), one, new.value)
    return None


def _renumbered(reading: Reading, one: KnownValue, span: Span, old: str, new: str) -> Iterator[Candidate]:
    text = one.text.replace(old, new, 1)
    kept = one.kind == "statement" or old not in one.value
    yield reading.retract(span, one)
    yield replace(reading.state(span, one, "" if kept else one.value.replace(old, new, 1), text), kind=one.kind)


def _names_subject(reading: Reading, one: KnownValue) -> bool:
    people = (one.subject, *(name for name, subject in reading.others.items() if subject == one.subject))
    return any(is_in(name, reading.text) for name in people)


def _names_a_person(reading: Reading, one: KnownValue) -> bool:
    named = re.compile(re.escape(said_name(reading, one)), re.IGNORECASE)  # "Ramipril is 10 now" names none
    return is_told_of_another(reading.rules, named.sub(lambda name: " " * len(name[0]), reading.text))


def _swapped(reading: Reading, one: KnownValue) -> Iterator[Candidate]:
    """Yield the end of a medicine and the one taken in its place: "trocou a losartana por anlodipino"."""
    slot = reading.rules.ended.get("slots", {}).get("new medicine")
    drugs = reading.rules.lexicons.get("drug")
    name = said_name(reading, one) if slot and one.subject == SELF else ""
    patterns = renewal(reading.rules.code, "swap", name, reading.lowered) if name else ()
    for match in (found for pattern in patterns if (found := pattern.search(reading.text))):
        name = next((words for key, words in match.groupdict().items() if key.startswith("new") and words), "")
        dose = next((words for key, words in match.groupdict().items() if key.startswith("dose") and words), "")
        key = (drugs.lookup(name.casefold()) if drugs else None) or name.casefold()
        if key == one.key or not reading.means(*match.span()):
            continue
        yield reading.retract(match.span(), one)
        said = well_formed(slot[1].replace("{}", f"{name} {dose}".strip()))
        yield replace(reading.state(match.span(), one, dose or slot[2], said), key=key)
        return


_NAMED_MEDICINE = expression(r"(?<=\s)(?!(?:Dosis|Tabletten?|Pillen?|Kapseln?|Tropfen|Dose)\b)[A-ZÄÖÜ][\w-]{4,}")


def _is_of_another_medicine(reading: Reading, one: KnownValue, match: re.Match[str]) -> bool:
    """Whether a new dose is one of another medicine or patient: "jetzt nehme ich Candesartan 8" after Ramipril."""
    if one.subject != SELF and english_cue("i_take").search(match[0]):
        return True
    new = "new" if match["new"] else "new_"
    before = reading.text[match.start() : match.start(new)]
    known = {name.casefold() for name in (one.words, one.key, *one.names, said_name(reading, one))}
    drugs = reading.rules.lexicons.get("drug")
    listed = [found[0] for found in drugs.one.finditer(before)] if drugs else []
    named = {(drugs.lookup(word) if drugs else None) or word for word in (*listed, *_NAMED_MEDICINE.findall(before))}
    return any(word.casefold() not in known for word in named)


_FACTORS = {
    "doubled": 2.0, "double": 2.0, "double the": 2.0, "twice the": 2.0, "twice as much": 2.0, "tripled": 3.0, "triple the": 3.0,
    "halved": 0.5, "halve": 0.5, "half": 0.5, "half the": 0.5, "half as much": 0.5, "cut in half": 0.5,
}  # fmt: skip

_TIMES = {"a single": "once", "one": "once", "half an": "once", "half a": "once", "two": "twice", "three": "three times"}  # fmt: skip


def said_name(reading: Reading, one: KnownValue) -> str:
    """Return the name by which a message calls a medicine: "levo" for levothyroxine, "iron" for iron supplements."""
    said = reading.text.casefold()
    spelled = reading.said.get(one.words.casefold(), ())
    names = (
        name for name in (one.words, *one.names, *spelled) if re.search(rf"(?<!\w){re.escape(name.casefold())}", said)
    )
    known = next((name for name in names if re.search(rf"{re.escape(name.casefold())}(?!\w)", said)), "")
    short = (word for word in re.findall(r"\w{4,}", said) if one.words.casefold().startswith(word))
    return known or next((word for word in short if not english_cue("no_short_name").fullmatch(word)), one.words)


def _scaled(
    reading: Reading, one: KnownValue, known: Sequence[KnownValue], just: Sequence[KnownValue]
) -> Candidate | None:
    """Return the new dose in "my doctor doubled it" or "my ramipril got halved", and the new times a day, from the known one."""
    old, name = NUMBER.search(one.value), said_name(reading, one)
    often = _taken_as_often(reading, one, name)
    if often is not None or old is None:
        return often
    for way in ("scaled", "scaled_passive", "scaled_amount", "scaled_twice"):
        cue = ending_cue(reading.rules.code, way)
        match = cue.search(reading.text) if cue is not None else None
        if match is None or not _is_topic(reading, one, "medication", known, just):
            continue
        what = (match["what"] or "").casefold()
        bare = what.rpartition(" ")[0] if what.endswith((" dose", " dosage", " tablets", " pills")) else what
        named = bare in ("", "dose", "dosage", one.words.casefold(), name.casefold()) or what[:4] in ("tabl", "pill")
        if one.subject == SELF and english_cue("his_or_hers").search(match[0]):
            continue
        topic = ending_cue(reading.rules.code, "topic_medication")
        if not what and (topic is None or topic.search(reading.message.content) is None):
            continue  # "they doubled it" may be the rent
        if (
            not named
            or is_anothers(reading.rules, one.subject, reading.text[: match.start()])
            or not reading.means(match.start(), match.end())
        ):
            continue
        number = float(old[0].replace(",", ".")) * _FACTORS[match["how"].lower()]
        return reading.state(match.span(), one, NUMBER.sub(f"{number:g}", one.value, count=1))
    return None


def _taken_as_often(reading: Reading, one: KnownValue, name: str) -> Candidate | None:
    """Return the value with the new times a day in "only one naproxen a day from now on"."""
    for pattern in renewal(reading.rules.code, "how_often", name, reading.lowered):
        match = pattern.search(reading.text)
        if (
            match is None
            or not reading.means(*match.span())
            or is_anothers(reading.rules, one.subject, reading.text[: match.start()])
        ):
            continue
        times = _TIMES[match["times"].lower()] if match["times"] else match["times_"].lower()
        often = f"{times} a {match['per'] or match['per_']}"
        if times == "once" and (match["times"] or "").startswith("half"):
            often = f"half a tablet {often}"
        dose = english_cue("how_often").sub("", one.value).strip(" ,") if one.value != "takes it" else ""
        value = f"{dose} {often}".strip()
        return None if value == one.value else reading.state(match.span(), one, value, f"Takes {one.words} {value}.")
    return None


_KINDS_OF_VALUES = dict(
    pair.split("=")
    for pair in "work/earns=pay work/works_hours=hours finance/rent=rent health/weight=weight schedule/wakes_at=clock schedule/sleeps_at=clock".split()
)


def _kind_of_value(one: KnownValue) -> str:
    """Return which of the tables ``[ended.renew]`` reads a new value of this fact; empty for none."""
    if one.kind == "statement":
        return "schedule" if len(re.findall(r"\b[A-Z]\w+days\b", one.text)) == 1 else ""
    if one.category == "appointment":
        return "schedule" if one.value.endswith("days") else "appointment"  # a meeting of every week
    if (one.category, one.key) == ("identity", "age"):
        return "age" if one.subject == SELF else "age_other"
    if one.key.startswith("how_many_"):
        return "how_many"
    if one.category == "budget" and "_for_" in one.key:
        return ""  # its purpose is named with it
    return _KINDS_OF_VALUES.get(f"{one.category}/{one.key}") or (
        one.category if one.category in ("medication", "favorite", "schedule", "budget") else ""
    )


def _is_topic(
    reading: Reading, one: KnownValue, kind: str, known: Sequence[KnownValue], just: Sequence[KnownValue]
) -> bool:
    """Whether a sentence without its name is about this fact: it was just stated, or its kind is named and it is alone."""
    if kind == "age_other" and NAME.search(reading.text, 1) and not _names_subject(reading, one):
        return False  # "my eldest is Tess, she's 9" says nothing of Milo
    content = reading.message.content.casefold()
    if one.category == "medication" and one.words and said_name(reading, one).casefold() in content:
        return True
    if kind in ("appointment", "schedule"):
        return one in just or any(name.casefold() in content for name in one.names)
    same = [other for other in known if _kind_of_value(other) == kind and other.address != one.address]
    recent = [other for other in same if other in just]
    if one in just and not recent:
        return True
    topic = ending_cue(reading.rules.code, f"topic_{kind}")
    return not same and topic is not None and topic.search(reading.message.content) is not None


def _on_another_day(reading: Reading, one: KnownValue, span: Span, new: str) -> Iterator[Candidate]:
    day, to = _DAY.findall(one.text)[:1], new.rstrip("s").capitalize()
    whose = re.match(r"Their (\w+)", one.text)
    meant = whose is None or re.search(rf"\b{whose[1]}\b", reading.text, re.IGNORECASE)
    return _renumbered(reading, one, span, day[0], to) if meant and day and day[0] != to else iter(())


def _moved_to(reading: Reading, one: KnownValue, start: int) -> Iterator[Candidate]:
    """Yield the new time of an appointment."""
    at = reading.message.at
    for span in sentence_times(reading.text, at, reading.rules.code, ahead=True) if at is not None else ():
        if span.start >= start and span.to_ms > at.timestamp() * 1000 and span.relation in ("at", "until"):  # type: ignore[union-attr]
            value = english_cue("until_word").sub("in " if span.grain == "month" else "on ", with_date(span, at))  # type: ignore[arg-type]
            found = reading.state((start, span.end), one, value)
            yield replace(found, lifetime="event", valid_to_ms=span.to_ms)
            return
    day, old = english_cue("day_of_month").search(reading.text, start), ISO_DAY.search(one.value)
    if day is not None and old is not None and 1 <= int(day[1]) <= monthrange(int(old[1]), int(old[2]))[1]:
        moved = datetime(int(old[1]), int(old[2]), int(day[1]), tzinfo=UTC)
        value = f"on {moved.day} {moved:%B} ({moved:%Y-%m-%d})"
        end = int((moved + timedelta(days=1)).timestamp() * 1000)
        yield replace(reading.state((start, day.end()), one, value), lifetime="event", valid_to_ms=end)


def _switched(reading: Reading, one: KnownValue) -> Candidate | None:
    """Return the new value in "we went from Oslo to Bergen", when Oslo is the known one."""
    slots = reading.rules.ended.get("slots", {}) if one.alone and one.subject == SELF else {}
    slot = slots.get(f"{one.category}/{one.key}") or slots.get(one.category)
    if slot is None:
        return None
    there = one.words.casefold() in reading.text.casefold()
    code, lowered = reading.rules.code, reading.lowered
    expressions = [*switch_expressions(code, "find", one.words, lowered)] if there else []
    expressions += switch_expressions(code, one.category, "", lowered)
    for regex in expressions:
        for match in regex.finditer(reading.text):
            place = PatternSlot(slot[0], slot[0], False)
            new = read_at(reading.rules, place, reading.text, match.end(), lower_case=False)
            if new is None or new.value.casefold() in (one.value.casefold(), one.key):
                continue
            if reading.means(match.start(), new.end):
                found = reading.state(
                    (match.start(), new.end), one, new.value, well_formed(slot[1].replace("{}", new.value))
                )
                return replace(found, key=new.value, value="true") if one.category == "dietary" else found
    return None


_IN_THOUSANDS = expression(r"\d ?k\b", re.IGNORECASE)


def _in_same_unit(new: str, old: str, kind: str) -> str:
    """Return a bare number with the unit that the old value has: "85" after "92 kilos"."""
    if kind in ("pay", "rent", "budget"):
        number = new.strip("$€£").removesuffix("k").replace(",", "")
        before = NUMBER.search(old)
        if kind == "pay" and before and number.isdecimal() and float(before[0].replace(",", "")) >= 100 * float(number):
            number += "000"  # "it's 55 now" after 50k
        thousands = new.endswith("k") and not _IN_THOUSANDS.search(old)
        return NUMBER.sub(f"{number}000" if thousands else number, old, count=1)
    if kind in ("weight", "hours") and NUMBER.fullmatch(new):
        return NUMBER.sub(new, old, count=1)
    return new
