"""
Facts that people state plainly, read without any model.

``read`` looks at one user message: sentence by sentence, at the patterns whose trigger words it
holds, at who is meant and whether it is asserted.  The patterns are data (``patterns/*.toml``); the
order of the steps is here.  It claims little rather than wrongly: what it cannot place, it leaves to
the summaries and to search.  Pure: no clock, no store.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ..scope import SELF
from ..text.dates import TimeSpan
from ..text.sentences import split
from ..text.terms import language_of
from ..types import Candidate, Message
from .grammar import MAX_TEXT_CHARS, Expression, Language, Pattern, folded, language
from .modality import BLANK, Verdict, cues, judge, masked
from .people import ME, People, Person
from .slots import Value, read_slot
from .timing import Held, times_of, when

SOURCE = "rules 1"
MAX_READ_CHARS = 20_000  # what is longer is a document, not talk; its beginning is read
FALLBACK = "en"
UNMISTAKABLE = frozenset({"ko", "ja", "zh", "ru", "uk", "el", "ar", "he", "hi", "th"})  # told by their script

_TEMPLATE = re.compile(r"\{([a-z_]+)(?:\.(kind|version|said)|\*(\d+))?\}")
_CAPITAL = re.compile(r"[A-ZÀ-Þ]")
_RANGE = re.compile(r"([a-z_]+) (\d+)\.\.(\d+)")


@dataclass(frozen=True, slots=True)
class _Piece:
    """One sentence of a message: its text, where it begins, and what holds for the whole message."""

    language: Language
    message: Message
    text: str
    offset: int
    lower_case: bool

    def times(self, *, ahead: bool) -> Sequence[TimeSpan]:
        """The times that the sentence names; with *ahead*, days without a year lie in the future."""
        return times_of(self.text, self.message.at, self.language.code, ahead=ahead)


def read(
    message: Message,
    *,
    subject: str = SELF,
    others: Mapping[str, str] | None = None,
    before: Message | None = None,
    language_code: str | None = None,
) -> list[Candidate]:
    """
    What *message* states, in the order in which it is said.

    Args:
        message: one message; only ``role``, ``content``, ``seq`` and ``at`` are looked at.
        subject: whom the conversation is about; "she" and "my dog" mean this one when it is not self.
        others: names (and relations) already known, each with its subject: ``{"Luna": "luna"}``.
        before: the message directly before this one; a short answer is read together with its question.
        language_code: ISO 639-1, when detection should not decide.

    Returns:
        Candidates for `ground`; those that are not asserted carry their modality and will be refused
        there, so that people can see why nothing was learned.  Empty for any role but ``user``.
    """
    if message.role != "user":
        return []
    content = message.content[:MAX_READ_CHARS]
    found: list[Candidate] = []
    for rules in _rules_for(content, language_code):
        found = found or _read_in(rules, message, content, People(rules, subject, others or {}), before)
    return found


def _read_in(
    rules: Language, message: Message, content: str, people: People, before: Message | None
) -> list[Candidate]:
    text = masked(content, rules)
    lower_case = not _CAPITAL.search(re.sub(r"\bI\b", "", text))
    if before is not None and before.role != "user":
        people.mention(masked(before.content[-MAX_TEXT_CHARS:], rules))
    found: list[list[Candidate]] = [[]]
    for start, end in _pieces(text):
        piece = _Piece(rules, message, text[start:end], start, lower_case)
        if _search(rules, "kidding", piece.text):
            found[-1] = []
            continue
        found.append(list(_read_piece(piece, people)))
        people.mention(piece.text)
        people.topic(piece.text, cues(rules).get("topic"))
    return _settled(rules, [candidate for claims in found for candidate in claims])


def might_state(text: str, language_code: str | None = None) -> bool:
    """
    Whether *text* may state or change a fact: a cheap look at its words, for deciding when to extract.

    Errs towards True; small talk, thanks and bare questions give False.
    """
    content = text[:MAX_READ_CHARS]
    rules_for = _rules_for(content, language_code)
    straight = folded(content)
    return any(_might_state_in(rules, straight) for rules in rules_for) if rules_for else bool(content.strip())


def _might_state_in(rules: Language, text: str) -> bool:
    if _search(rules, "always_states", text):
        return True
    if "first_person" in rules.modality and not _search(rules, "first_person", text):
        return False
    return _search(rules, "change", text) or any(word in rules.triggers for word in rules.words(text))


def _rules_for(text: str, code: str | None) -> list[Language]:
    """The patterns to try in turn: of the text's language, then English, as short texts mislead detection."""
    codes = [code] if code else [language_of(text), FALLBACK]
    if codes[0] in UNMISTAKABLE:
        codes = codes[:1]
    return [rules for rules in map(language, dict.fromkeys(codes)) if rules]


def _search(rules: Language, cue: str, text: str) -> bool:
    pattern = cues(rules).get(cue)
    return bool(pattern and pattern.search(text))


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    """Sentences, the overlong ones cut at a space: the work on each is bounded."""
    for span in split(text):
        start = span.start
        while span.end - start > MAX_TEXT_CHARS:
            cut = text.rfind(" ", start, start + MAX_TEXT_CHARS)
            end = cut if cut > start else start + MAX_TEXT_CHARS
            yield start, end
            start = end
        yield start, span.end


def _read_piece(piece: _Piece, people: People) -> Iterator[Candidate]:
    patterns = piece.language.triggered(piece.text)
    anchors = piece.language.anchors(piece.text) if patterns else []
    for pattern in sorted(patterns, key=lambda pattern: not pattern.names):
        for expression in pattern.compiled:
            for found in expression.matches(piece.text, anchors):
                values = _values(piece, expression, found)
                if values is not None:
                    yield from _claims(piece, people, pattern, found, values)


def _values(piece: _Piece, expression: Expression, found: re.Match[str]) -> dict[str, list[Value]] | None:
    """What fills the slots; None when one of them was refused."""
    values = {}
    for slot in expression.slots:
        values[slot.group] = read_slot(piece.language, slot, found, lower_case=piece.lower_case)
        if not values[slot.group] and found[slot.group] is not None:
            return None
    return values


def _claims(
    piece: _Piece, people: People, pattern: Pattern, found: re.Match[str], values: dict[str, list[Value]]
) -> Iterator[Candidate]:
    """What one match of one pattern claims, once for each item of its list."""
    if not _in_range(pattern.needs, values):
        return
    person, start = _who(piece, people, pattern, found)
    if person is None or (pattern.needs == "other" and person.is_self):
        return
    end = _end(found, values)
    verdict = judge(piece.language, piece.text, start, end, lead=pattern.lead, asked=pattern.asked)
    if verdict is None:
        return
    named = people.name(values["name"][0].value, _relation(values)) if pattern.names else None
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
            piece.times(ahead=pattern.when == "event"),
            piece.text,
            start,
            end,
            mode=pattern.when,
            at=piece.message.at,
            gap=cues(piece.language).get("event_gap"),
        )
    if pattern.when == "event" and not held.words:
        return
    for fields in _fields(pattern, values):
        fields["when"] = Value(held.words, "", start, held.end)
        candidate = _candidate(piece, pattern, person, verdict, fields, (start, held), negated)
        if BLANK in candidate.quote or not (candidate.value or candidate.op == "retract"):
            continue
        yield candidate
        yield from _also(piece.language, pattern, candidate, fields, named)


def _relation(values: dict[str, list[Value]]) -> str:
    for group in ("human", "relation", "species"):
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


def _who(piece: _Piece, people: People, pattern: Pattern, found: re.Match[str]) -> tuple[Person | None, int]:
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
        if not openings or _search(piece.language, "other_subject", between):
            return None, found.start()
        return ME, openings[-1].start("who")
    person = people.whom(words)
    if person is not None and not person.is_self and not pattern.others:
        return None, found.start()
    return person, found.start("who")


def _end(found: re.Match[str], values: dict[str, list[Value]]) -> int:
    """Where the quote ends: at the last value when a slot closes the match, else at its end."""
    closing = [group for group in values if found.end(group) == found.end() and values[group]]
    return values[closing[-1]][-1].end if closing else found.end()


def _fields(pattern: Pattern, values: dict[str, list[Value]]) -> Iterator[dict[str, Value]]:
    single = {group: items[0] for group, items in values.items() if items}
    many = next((group for group, items in values.items() if len(items) > 1), None)
    if many is None:
        yield single
    elif pattern.list == "join":
        items = values[many]
        joined = " and ".join(item.value for item in items)
        yield {**single, many: replace(items[0], value=joined, end=items[-1].end)}
    else:
        for item in values[many]:
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
    piece: _Piece,
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
        category=pattern.category,
        key=_filled(pattern.key, fields).replace(" ", "_").lower(),
        value=_filled(pattern.value, fields) or pattern.empty,
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


def _settled(rules: Language, found: list[Candidate]) -> list[Candidate]:
    """Each claim once, in the order of the words; of a category that holds one fact only the last."""
    last = {pattern.category for pattern in rules.patterns if pattern.last}
    seen: dict[tuple[str, ...], Candidate] = {}
    for candidate in sorted(found, key=lambda c: (c.start, c.start + len(c.quote))):
        address = (candidate.subject, candidate.category, candidate.key, candidate.value.casefold(), candidate.op)
        if address not in seen or seen[address].confidence < candidate.confidence:
            seen[address] = candidate
    kept = list(seen.values())
    final = {
        (c.subject, c.category): c for c in kept if c.category in last and c.op == "assert" and c.modality == "asserted"
    }
    return [
        c for c in kept
        if c.category not in last or c.op == "retract" or c.modality != "asserted" or final[c.subject, c.category] is c
    ]  # fmt: skip
