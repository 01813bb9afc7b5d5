"""
One match of one pattern becomes claims: about whom, asserted or not, with which values, since when.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ..text.dates import TimeSpan
from ..types import Candidate, Message
from .grammar import Expression, Language, Pattern, Slot
from .modality import BLANK, Verdict, cues, judge
from .people import ME, People, Person
from .slots import Value, read_at, read_slot
from .timing import Held, times_of, when

SOURCE = "rules 1"

_TEMPLATE = re.compile(r"\{([a-z_]+)(?:\.(kind|version|said)|\*(\d+))?\}")
_RANGE = re.compile(r"([a-z_]+) (\d+)\.\.(\d+)")


@dataclass(frozen=True, slots=True)
class Piece:
    """One sentence of a message: its text, where it begins, and what holds for the whole message."""

    language: Language
    message: Message
    text: str
    offset: int
    lower_case: bool

    def times(self, *, ahead: bool) -> Sequence[TimeSpan]:
        """The times that the sentence names; with *ahead*, days without a year lie in the future."""
        return times_of(self.text, self.message.at, self.language.code, ahead=ahead)


@dataclass(frozen=True, slots=True)
class Match:
    """One match of one pattern, with what fills its slots."""

    pattern: Pattern
    slots: tuple[Slot, ...]
    found: re.Match[str]
    values: dict[str, list[Value]]


def filled(piece: Piece, pattern: Pattern, expression: Expression, found: re.Match[str]) -> Match | None:
    """The match with its values; None when a slot refuses what stands there."""
    values = {}
    for slot in expression.slots:
        values[slot.group] = read_slot(piece.language, slot, found, lower_case=piece.lower_case)
        if not values[slot.group] and found[slot.group] is not None:
            return None
    return Match(pattern, expression.slots, found, values) if _in_range(pattern.needs, values) else None


def claims(piece: Piece, people: People, match: Match) -> Iterator[Candidate]:
    """What one match of one pattern claims, once for each item of its list."""
    pattern, found, values = match.pattern, match.found, match.values
    person, start = _who(piece, people, pattern, found)
    if person is None or (pattern.needs == "other" and person.is_self):
        return
    if pattern.needs == "animal" and not people.animal:
        return
    end = _mended(piece, match, end_of(found, values))
    if pattern.needs == "animal":
        values["animal"] = [Value(people.animal, "species", start, start, said=people.animal)]
    verdict = judge(piece.language, piece.text, start, end, lead=pattern.lead, asked=pattern.asked)
    if verdict is None:
        return
    named = [people.name(value.value, _relation(values)) for value in values["name"]] if pattern.names else []
    negated = any(value for group, value in found.groupdict().items() if group.startswith("neg"))
    if negated and pattern.negated == "drop":
        return
    more = cues(piece.language).get("extends")
    tail = more.match(piece.text, end) if more else None
    end = tail.end() if tail else end
    start = min(start, found.start())
    held = Held(end=end)
    if piece.message.at is not None:
        held = when(
            piece.times(ahead=pattern.when in ("event", "plan")),
            piece.text,
            start,
            end,
            mode=pattern.when,
            at=piece.message.at,
            gap=cues(piece.language).get("event_gap"),
        )
    if pattern.when == "event" and not held.words:
        return
    for fields in _fields(pattern, values, piece.language.glue):
        fields["when"] = Value(held.words, "", start, held.end)
        candidate = _candidate(piece, pattern, person, verdict, fields, (start, held), negated)
        if BLANK in piece.text[start : held.end] or not (candidate.value or candidate.op == "retract"):
            continue
        yield candidate
        whose = next((somebody for somebody in named if somebody.label == fields["name"].value), None)
        yield from _also(piece.language, pattern, candidate, fields, whose)


def _relation(values: dict[str, list[Value]]) -> str:
    for group in ("human", "relation", "animal", "species"):
        if values.get(group):
            return values[group][0].value
    return ""


def _in_range(needs: str, values: dict[str, list[Value]]) -> bool:
    bounds = _RANGE.fullmatch(needs)
    if bounds is None:
        return True
    try:
        return int(bounds[2]) <= float(values[bounds[1]][0].value) <= int(bounds[3])
    except (ValueError, IndexError, KeyError):
        return False


def _who(piece: Piece, people: People, pattern: Pattern, found: re.Match[str]) -> tuple[Person | None, int]:
    """Whom the match is about, and where the words begin on which the judgement rests."""
    words = found.groupdict().get("who")
    if words is None and "who" not in found.re.groupindex:
        return ME, found.start()
    if words is None:
        person = people.topic(piece.text[: found.start()], cues(piece.language).get("topic"))
        return (None if person and not person.is_self and not pattern.others else person), found.start()
    if words.strip(" ,").lower() in str(piece.language.people.get("and", "")).split():
        openings = [o for o in cues(piece.language)["main_clause"].finditer(piece.text) if o.end() <= found.start()]
        between = piece.text[openings[-1].end() : found.start()] if openings else ""
        if not openings or cues(piece.language)["other_subject"].search(between):
            return None, found.start()
        return ME, openings[-1].start("who")
    people.mention(piece.text[: found.start("who")])
    person = people.whom(words)
    if person is not None and not person.is_self and not pattern.others:
        return None, found.start()
    return person, found.start("who")


def end_of(found: re.Match[str], values: dict[str, list[Value]]) -> int:
    """Where the quote ends: at the last value when a slot closes the match, else at its end."""
    closing = [group for group in values if found.end(group) == found.end() and values[group]]
    return values[closing[-1]][-1].end if closing else found.end()


def _mended(piece: Piece, match: Match, end: int) -> int:
    """Take the better word where the writer corrects himself: "I live in Lisbon, sorry, Porto"."""
    cue = cues(piece.language).get("mend")
    again = cue.match(piece.text, end) if cue else None
    closing = [slot for slot in match.slots if [v.end for v in match.values.get(slot.group, ())] == [end]]
    if again is None or not closing:
        return end
    better = read_at(piece.language, closing[-1], piece.text, again.end(), lower_case=piece.lower_case)
    if better is None:
        return end
    match.values[closing[-1].group] = [better]
    return better.end


def _fields(pattern: Pattern, values: dict[str, list[Value]], glue: str) -> Iterator[dict[str, Value]]:
    single = {group: items[0] for group, items in values.items() if items}
    many = next((group for group, items in values.items() if len(items) > 1), None)
    if many is None:
        yield single
        return
    joined: dict[str, Value] = {}
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


def _filled(template: str, fields: Mapping[str, Value]) -> str:
    def fill(hole: re.Match[str]) -> str:
        value = fields.get(hole[1])
        if value is None:
            return ""
        if hole[3]:
            return f"{float(value.value) * int(hole[3]):g}"
        return str(getattr(value, hole[2] or "value"))

    return re.sub(r"\s+([.,])", r"\1", re.sub(r"\s{2,}", " ", _TEMPLATE.sub(fill, template))).strip()


def _candidate(
    piece: Piece,
    pattern: Pattern,
    person: Person,
    verdict: Verdict,
    fields: Mapping[str, Value],
    span: tuple[int, Held],
    negated: bool,
) -> Candidate:
    held = span[1]
    start, end = piece.offset + span[0], piece.offset + held.end
    op: Literal["assert", "retract"] = "retract" if negated != (pattern.op == "retract") else "assert"
    text = _about(piece.language, person, _filled(pattern.text, fields))
    if op == "retract":
        text = str(piece.language.people.get("not", "No longer: {text}")).replace("{text}", text[:1].lower() + text[1:])
    return Candidate(
        kind=pattern.kind,  # type: ignore[arg-type]
        subject=person.subject,
        category=_filled(pattern.category, fields),
        key=_filled(pattern.key, fields).replace(" ", "_").lower(),
        value=_filled(pattern.value, fields) or (pattern.empty if op == "assert" else ""),
        text=text,
        confidence=round(pattern.confidence * verdict.weight, 3),
        seq=piece.message.seq,
        quote=piece.message.content[start:end],
        start=start,
        op=op,
        join=pattern.join,  # type: ignore[arg-type]
        modality=verdict.modality,
        lifetime=pattern.lifetime,  # type: ignore[arg-type]
        valid_from_ms=held.from_ms if op == "assert" else None,
        valid_to_ms=held.to_ms if op == "assert" else None,
        source=SOURCE,
    )


def _about(rules: Language, person: Person, text: str) -> str:
    """The sentence, with its subject in front when that is not the user: "Luna is allergic to …"."""
    if person.is_self:
        return text
    template = "named" if person.label else "related"
    label = person.label or rules.people.get("labels", {}).get(person.relation, person.relation)
    rest = text[:1].lower() + text[1:]
    return str(rules.people.get(template, "{label} {text}")).replace("{label}", label).replace("{text}", rest)


def _also(
    rules: Language, pattern: Pattern, first: Candidate, fields: Mapping[str, Value], named: Person | None
) -> Iterator[Candidate]:
    """
    What follows from the same words: liking coffee ends disliking it, a named dog is a dog.

    Such an implied retraction carries the modality ``negated``: it ends what it finds and means
    nothing when there is nothing to end.
    """
    if first.op == "retract" and pattern.op != "retract":
        return
    for entry in pattern.also:
        values = {name: _filled(entry[name], fields) for name in ("category", "key", "value") if name in entry}
        op: Literal["assert", "retract"] = "retract" if entry.get("op") == "retract" else "assert"
        if op == "assert" and not values.get("value", "x"):
            continue
        implied = "negated" if op == "retract" and first.modality == "asserted" else first.modality
        values["key"] = values.get("key", first.key).replace(" ", "_").lower()
        text = _filled(entry["text"], fields) if "text" in entry else first.text
        if named is not None and entry.get("subject") == "name":
            values["subject"], text = named.subject, _about(rules, named, text)
        yield replace(first, op=op, text=text, modality=implied, **values)  # type: ignore[arg-type]
