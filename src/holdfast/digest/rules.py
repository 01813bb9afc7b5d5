"""
Extraction of plainly stated facts by rules, without a model.

`extract_facts` reads one user message sentence by sentence.  For each pattern whose trigger word occurs it
matches (`grammar`), fills the slots (`slots`), resolves the subject (`mentions`), judges whether the sentence asserts it
(`clauses.judge`), and resolves its times.  The patterns are data (``patterns/*.toml``).  On request `clauses` reads what
no pattern reads.  The rules claim little rather than wrongly: summaries and search hold the rest.  Pure.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from ..scope import SELF
from ..text import dataclass, expression, plainly_lowered
from ..text.dates import TimeSpan, dated
from ..text.render import in_the_text, in_their_words, in_third, well_formed
from ..text.sentences import split_pieces, split_sentences
from ..text.terms import fold_quotes, likely_languages
from ..types import Candidate, Message
from .authorship import BLANK, masked
from .clauses import StatedClause, Verdict, clause_reader, judge, only_intends
from .grammar import FALLBACK, MAX_TEXT_CHARS, Expression, Pattern, PatternLanguage, PatternSlot, cues, load_language
from .mentions import ME, MentionedPerson, Mentions, SubjectNames
from .results import (
    MAX_PIECE,
    fields_of_care,
    may_hold_care,
    may_hold_results,
    read_care,
    read_results,
    result_sentence,
)
from .slots import (
    SlotValue,
    ValidTime,
    in_range,
    item_fields,
    quote_end,
    read_at,
    read_slot,
    resolve_valid_time,
    sentence_times,
)

MAX_ANSWER_CHARS = 80
MAX_READ_CHARS = 20_000  # what is longer is a document, not talk; its beginning is read
STATEMENT_CONFIDENCE = 0.8
# What is said of one being alone: whose it is must be sure where a language leaves the subject out.
_OF_ONE_BEING = frozenset("identity health allergy medication dietary food".split())
BELIEVED = 0.7  # "eat fish, so I guess I am …": what is only guessed does not count as the last word
UNMISTAKABLE = frozenset({"ko", "ja", "zh", "ru", "uk", "el", "ar", "he", "hi", "th"})  # known by their script

HIDDEN, _LETTER = "\u2588", "\ua66e"
"""A character of words that were blanked, and the letter that stands for it while a sentence is read."""

# Behind a statement.
_CHATTER = expression(r"(?:,? (?:lol|ha(?:ha)+|lmao|tbh|ngl|smh|rofl|xd))+(?=\.?$)", re.IGNORECASE)
# Where or what for, which is no fact beside what it is said of.
_WHERE = expression(r"\W*(?:at|for|from|in) (?:work|home|(?:my|our) job|the office|fun)\W*", re.IGNORECASE)
_CAPITAL = expression(r"[A-ZÀ-Þ]")


def extract_facts(
    message: Message,
    *,
    subject: str = SELF,
    others: SubjectNames | Mapping[str, str] | None = None,
    before: Message | None = None,
    earlier: Sequence[str] = (),
    language_code: str | None = None,
    statements: bool = False,
) -> list[Candidate]:
    """
    Extract the facts that *message* states, in the order in which they are said.

    Args:
        message: one message; only ``role``, ``content``, ``seq`` and ``at`` are looked at.
        subject: whom the conversation is about; "she" and "my dog" mean this one when it is not self.
        others: names (and relations) already known, each with its subject: ``{"Luna": "luna"}``, or `subject_names`.
        before: the message directly before this one; a short answer is read together with its question.
        earlier: what the user said before in this conversation, for whom it introduced.
        language_code: ISO 639-1, when detection should not decide.
        statements: also read what no pattern reads, as sentences (`clauses`).

    Returns:
        Candidates for `ground`, which refuses those that are not asserted and says why.  Empty for any role but ``user``.
    """
    if message.role != "user":
        return []
    content = message.content[:MAX_READ_CHARS]
    found: list[Candidate] = []
    names = others if isinstance(others, SubjectNames) else SubjectNames(others or {})
    spoken = [language_code] if language_code else likely_languages(content)
    for rules in _rules_for(content, language_code):
        people = Mentions(rules, subject, names)
        people.remember(earlier, before.content if before is not None and before.role != "user" else "", content)
        asked = before is not None and before.role != "user" and ("?" in before.content or "？" in before.content)
        said = () if asked else earlier[-1:]  # a question between asks of the user
        people.newcomer = max(map(people.turns_to, said), default=0)
        people.told = " ".join((*earlier[-1:], before.content if asked and before is not None else ""))
        clauses = statements and rules.code in spoken  # "Im Chor singe ich" is no English clause
        found = found or _read_in(rules, message, content, people, before, statements=clauses)
    if not (may_hold_results(content) or may_hold_care(content)) or not _rules_for(content, language_code):
        return found
    return _with_results(found, message, content, subject, names, language_code)


def _with_results(
    found: list[Candidate],
    message: Message,
    content: str,
    subject: str,
    names: SubjectNames,
    language_code: str | None,
) -> list[Candidate]:
    """Return what was read with results of tests and care, which take the place of what was read in the same words."""
    rules, text, at = _rules_for(content, language_code)[0], masked(content), message.at
    read: list[Candidate] = []
    sentences = list(split_pieces(text, MAX_PIECE))
    starts = [span.start for span in sentences]

    def add(start: int, end: int, **fields: Any) -> None:
        own = sentences[max(0, bisect_right(starts, start) - 1)]
        verdict = judge(rules, own.of(text), start - own.start, end - own.start, lead=False)
        if verdict is not None and verdict.modality == "asserted" and BLANK not in text[start:end]:
            quote = message.content[start:end]
            base = Candidate(
                "attribute", SELF, "health", "", "", "", 0.9, message.seq, quote, start, source=FACT_SOURCE
            )
            read.append(replace(base, **fields))

    for one in read_results(text, Mentions(rules, subject, names), at, partial(sentence_times, at=at, code=rules.code)):
        if one.key in ("weight", "temperature") and one.at_ms is None:
            continue
        words = _sentence_about(rules, one.person, result_sentence(one, rules.code))
        about: dict[str, Any] = {"subject": one.person.subject, "key": one.key, "value": one.value, "text": words}
        add(one.start, one.end, **about, valid_from_ms=one.at_ms)
    days = partial(sentence_times, at=at, code=rules.code)
    for care in read_care(text, Mentions(rules, subject, names), at, days) if at is not None else ():
        fields = fields_of_care(care)
        words = fields["text"] if rules.code == "en" else f"{text[care.start : care.end]}."
        add(
            care.start,
            care.end,
            **fields | {"text": _sentence_about(rules, care.person, words)},
            subject=care.person.subject,
        )
    keys = {one.key for one in read}
    booked = [one for one in found if one.category == "appointment"]
    read = [
        one
        for one in read
        if one.key != "operation" or one.category != "appointment" or not any(_overlap(one, other) for other in booked)
    ]  # the same appointment
    kept = [
        one
        for one in found
        if not (one.category in ("health", "appointment") and one.key in keys)
        and not (one.kind == "statement" and any(_overlap(one, result) for result in read))
    ]
    return sorted([*kept, *read], key=lambda one: one.start)


def _sentence_about(rules: PatternLanguage, person: MentionedPerson, words: str) -> str:
    """Return a sentence about whoever it is of; "Luna: T4 2,1" where no verb leads it."""
    if person.is_self or rules.code == "en":
        return _about(rules, person, words)
    return f"{person.label or person.relation}: {words.replace(': ', ' ', 1)}"


def _overlap(one: Candidate, other: Candidate) -> bool:
    return one.start < other.start + len(other.quote) and other.start < one.start + len(one.quote)


def _read_in(
    rules: PatternLanguage,
    message: Message,
    content: str,
    people: Mentions,
    before: Message | None,
    *,
    statements: bool = False,
) -> list[Candidate]:
    text = masked(content).replace(HIDDEN, _LETTER)  # what was blanked still stands in a list as a word
    lower_case = not _CAPITAL.search(re.sub(r"\bI\b", "", text))
    if before is not None and before.role != "user":
        people.mention(masked(before.content[-MAX_TEXT_CHARS:]))
    found: list[list[Candidate]] = [[]]
    for span in split_pieces(text, MAX_TEXT_CHARS):
        piece = _spoken(SentenceInMessage(rules, message, span.of(text), span.start, lower_case), people)
        if _search(rules, "kidding", piece.text):
            found[-1] = []
            continue
        plain = replace(piece, text=people.undescribed(piece.text))
        found.append(list(_read_piece(plain, people)))
        found[-1] += _read_piece(piece, people) if plain.text != piece.text else ()
        for clause in _continued(plain, people):
            found[-1] += _read_piece(clause, people)
        for start, end, lacking in people.parts_of_oneself(plain.text):
            part, first = lacking + plain.text[start:end], plain.offset + start
            found[-1] += _read_piece(replace(plain, text=part, offset=first - len(lacking), first=first), people)
        found[-1] = people.without_doubles(found[-1])
        if statements:
            found[-1] += _read_clauses(plain, people, found[-1])
        people.animal = next((c.value for c in found[-1] if (c.category, c.key) == ("pets", "has_pet")), people.animal)
        people.relative = next((c.value for c in found[-1] if (c.category, c.key) == ("family", "has")), "")
        another = people.turns_to(piece.text)
        people.newcomer = another or (0 if _search(rules, "writer", piece.text) else people.newcomer)
        people.mention(piece.text)
        people.told += f" {piece.text}"
        people.topic(piece.text, cues(rules).get("topic"))
    if statements and people.of_user:
        found.append(list(_read_list(rules, message, text)))
    candidates = [candidate for claimed in found for candidate in claimed]
    if not candidates and before is not None:
        candidates = list(_answer(rules, message, text, before, people, lower_case))
    return _settled(rules, [_unread(candidate) for candidate in candidates])


def _spoken(piece: SentenceInMessage, people: Mentions) -> SentenceInMessage:
    """Return the sentence with the pronoun that a note about the conversation's subject leaves out: "takes 5 mg"."""
    left_out = cues(piece.language).get("elided")
    found = left_out.match(piece.text) if left_out and people.pronoun else None
    if found is not None:
        start = found.end()
        before = " ".join([people.pronoun, *(verb for verb, words in found.groupdict().items() if words), ""])
    elif (own := people.left_out(piece.text)) is not None:
        start, before = own
    else:
        return piece
    text = f"{before}{piece.text[start].lower()}{piece.text[start + 1 :]}"
    offset = piece.offset + start
    return replace(piece, text=text, offset=offset - len(before), first=offset)


def _continued(piece: SentenceInMessage, people: Mentions) -> Iterator[SentenceInMessage]:
    """Yield the clauses that go on about whom the sentence began with, with a pronoun: "und (sie) hat Asthma"; English: `_goes_on`."""
    goes_on = cues(piece.language).get("goes_on")
    openings = list(goes_on.finditer(piece.text)) if goes_on else []
    person = people.begins_with(piece.text) if openings else None
    if person is None or person.is_self:
        return
    for found in openings:
        pronoun = f"{people.pronoun_of(person)} "
        offset, rest = piece.offset + found.end(), people.up_to_another(piece.text[found.end() :])
        people.last = person
        yield replace(piece, text=pronoun + rest, offset=offset - len(pronoun), first=offset)


def _unread(candidate: Candidate) -> Candidate:
    """Return the candidate with blanked words as they are in the message."""
    if _LETTER not in candidate.value + candidate.text:
        return candidate
    return replace(
        candidate, value=candidate.value.replace(_LETTER, HIDDEN), text=candidate.text.replace(_LETTER, HIDDEN)
    )


def _answer(
    rules: PatternLanguage, message: Message, text: str, before: Message, people: Mentions, lower_case: bool
) -> Iterator[Candidate]:
    """Read a short reply with the question it answers: "Where do you live?", "Lisbon."."""
    asked = [span.of(before.content) for span in split_sentences(before.content[-MAX_TEXT_CHARS:]) if span.end]
    question = fold_quotes(asked[-1]) if asked else ""
    reply = text.strip()
    if not question.rstrip().endswith(("?", "？")) or not reply or len(reply) > MAX_ANSWER_CHARS or "?" in reply:
        return
    start = text.index(reply)
    piece = SentenceInMessage(rules, message, reply, start, lower_case)
    for pattern in rules.answers:
        if pattern.question_expression.search(question):
            for form in pattern.fitting(plainly_lowered(reply)):
                found = form.regex.match(reply)
                match = fill_slots(piece, pattern, form, found) if found else None
                if match and not reply[quote_end(match.found, match.values) :].strip(" .!,"):
                    yield from claims_of_match(piece, people, match)
                    return


def may_state_facts(text: str, language_code: str | None = None) -> bool:
    """
    Whether *text* may state or change a fact: a cheap look at its words, for deciding when to extract.

    Errs towards True; small talk, thanks and bare questions give False.
    """
    content = text[:MAX_READ_CHARS]
    rules_for = _rules_for(content, language_code)
    straight = fold_quotes(content)
    return any(_might_state_in(rules, straight) for rules in rules_for) if rules_for else bool(content.strip())


def may_end_facts(text: str, language_code: str | None = None) -> bool:
    """Whether *text* may end or change a known fact, also one of another: "they doubled the metoprolol"."""
    content = fold_quotes(text[:MAX_READ_CHARS])
    spoken = _rules_for(content, language_code)
    return any(_search(rules, "ends" if "ends" in cues(rules) else "change", content) for rules in spoken)


def _might_state_in(rules: PatternLanguage, text: str) -> bool:
    if _search(rules, "always_states", text):
        return True
    if "first_person" in rules.modality and not any(_search(rules, cue, text) for cue in ("first_person", "left_out")):
        return False
    return _search(rules, "change", text) or any(
        word in rules.triggers and word not in rules.weak for word in rules.words(text)
    )


def _rules_for(text: str, code: str | None) -> list[PatternLanguage]:
    """Return the patterns to try: of the text's language, then English, as short texts mislead detection."""
    codes = [code] if code else [*likely_languages(text), FALLBACK]
    if codes[0] in UNMISTAKABLE:
        codes = codes[:1]
    return [rules for rules in map(load_language, dict.fromkeys(codes)) if rules]


def _search(rules: PatternLanguage, cue: str, text: str) -> bool:
    pattern = cues(rules).get(cue)
    return bool(pattern and pattern.search(text))


def _read_piece(piece: SentenceInMessage, people: Mentions) -> Iterator[Candidate]:
    patterns = piece.language.triggered(piece.text)
    anchors, lowered = piece.language.anchors(piece.text) if patterns else [], plainly_lowered(piece.text)
    for pattern in sorted(patterns, key=lambda pattern: not pattern.introduces):
        for form in pattern.fitting(lowered):
            for found in form.matches(piece.text, anchors):
                match = fill_slots(piece, pattern, form, found)
                while match is not None:
                    yield from claims_of_match(piece, people, match)
                    match = _next_item(piece, match)


def _read_clauses(piece: SentenceInMessage, people: Mentions, read: Sequence[Candidate]) -> list[Candidate]:
    """Read what no pattern read in a sentence, as statements in the third person."""
    reader = clause_reader(piece.language)
    if reader is None:
        return []

    def whom(words: str, place: int) -> MentionedPerson | None:
        people.mention(piece.text[:place])
        return ME if people.is_with_me(piece.text[:place]) else people.whom(words)

    taken = [(one.start - piece.offset, one.start - piece.offset + len(one.quote)) for one in read]
    found = []
    for clause in reader.read(piece.text, whom, taken, people.names):
        verdict = judge(piece.language, piece.text, clause.start, clause.end, lead=False)
        if verdict is None or verdict.modality != "asserted" or verdict.weight < 1:
            continue
        words = piece.text[clause.start : clause.end]
        said = piece.text[: clause.end] if people.of_user else words
        if BLANK in words or _LETTER in words or (clause.person.is_self and people.implied(said) is not ME):
            continue
        if any(_WHERE.fullmatch(words.replace(piece.text[start:end], "", 1)) for start, end in taken):
            continue
        found.append(people.beside_patient(_stated(piece, clause)))
    return found


def _read_list(rules: PatternLanguage, message: Message, text: str) -> Iterator[Candidate]:
    """Read a list that users write about themselves."""
    reader = clause_reader(rules)
    for one in reader.listed(text) if reader is not None else ():
        if BLANK in text[one.start : one.end] or _LETTER in text[one.start : one.end]:
            continue
        yield Candidate(
            kind="attribute",
            subject=SELF,
            category=one.category,
            key=one.key,
            value=one.value,
            text=one.text,
            confidence=STATEMENT_CONFIDENCE,
            seq=message.seq,
            quote=message.content[one.start : one.end],
            start=one.start,
            source=FACT_SOURCE,
        )


def _is_verb(rules: PatternLanguage, value: str) -> bool:
    """Whether a place that was written without a capital may be a verb."""
    reader = clause_reader(rules)
    return reader is not None and reader.is_verb(value.lower())


def _stated(piece: SentenceInMessage, clause: StatedClause) -> Candidate:
    at, held = piece.message.at, ValidTime(end=clause.end)
    ends: list[int] = []
    if at is not None:
        times = [span for span in piece.times(ahead=clause.time == "plan") if span.start < clause.end]
        held = resolve_valid_time(times, piece.text, clause.start, clause.start, mode=clause.time, at=at)
        coming = [
            span
            for span in times
            if span.relation == "at" and span.start >= clause.start and span.to_ms > at.timestamp() * 1000
        ]
        ends = [span.to_ms for span in coming] if clause.time == "plan" else []
    start = piece.place(clause.start)
    return Candidate(
        kind="statement",
        subject=clause.person.subject,
        category=clause.category,
        key="",
        value="",
        text=dated(_CHATTER.sub("", clause.text), at, piece.language.code),
        confidence=STATEMENT_CONFIDENCE,
        seq=piece.message.seq,
        quote=piece.message.content[start : piece.offset + clause.end],
        start=start,
        lifetime="event" if ends else "state",
        valid_from_ms=held.from_ms,
        valid_to_ms=max(ends) if ends else held.to_ms,
        source=FACT_SOURCE,
    )


def _settled(rules: PatternLanguage, found: list[Candidate]) -> list[Candidate]:
    """Keep each claim once, in the order of the words; of a single-fact category only the last."""
    last = {pattern.category for pattern in rules.patterns if pattern.keep_last}
    seen: dict[tuple[str, ...], Candidate] = {}
    for candidate in sorted(found, key=lambda c: (c.start, c.start + len(c.quote))):
        said = candidate.value or (candidate.text if candidate.kind == "statement" else "")
        address = (candidate.subject, candidate.category, candidate.key, said.casefold(), candidate.op)
        if address not in seen or seen[address].confidence < candidate.confidence:
            seen[address] = candidate
    kept = list(seen.values())
    final = {
        (c.subject, c.category): c
        for c in kept
        if c.category in last and c.op == "assert" and c.modality == "asserted" and c.confidence >= BELIEVED
    }
    return [
        c for c in kept
        if c.category not in last or c.kind == "statement" or c.op == "retract" or c.modality != "asserted" or final.get((c.subject, c.category), c) is c
    ]  # fmt: skip


FACT_SOURCE = "rules 1"

_NAMING = expression(r"\b(?:call|nam)(?:e|ing)\b", re.IGNORECASE)
_TEMPLATE = expression(r"\{([a-z_]+)(?:\.(kind|version|said|third)|\*(\d+))?\}")


@dataclass(frozen=True, slots=True)
class SentenceInMessage:
    """One sentence of a message, its offset, and the facts of the whole message."""

    language: PatternLanguage
    message: Message
    text: str
    offset: int
    lower_case: bool
    first: int = 0  # where it begins in the message, though a word was put before it

    def place(self, at: int) -> int:
        """Return the place in the message of a place in the sentence."""
        return max(self.first, self.offset + at)

    def times(self, *, ahead: bool) -> Sequence[TimeSpan]:
        """Find the times in the sentence; with *ahead*, days without a year lie in the future."""
        return sentence_times(self.text, self.message.at, self.language.code, ahead=ahead)


@dataclass(frozen=True, slots=True)
class PatternMatch:
    """One match of one pattern, with the values of its slots; ``first`` opened the list that it is an item of."""

    pattern: Pattern
    slots: tuple[PatternSlot, ...]
    found: re.Match[str]
    values: dict[str, list[SlotValue]]
    first: re.Match[str] | None = None


def fill_slots(
    piece: SentenceInMessage, pattern: Pattern, form: Expression, found: re.Match[str]
) -> PatternMatch | None:
    """Return the match with its values; None when a slot refuses its words."""
    values = {}
    for slot in form.slots:
        values[slot.group] = read_slot(piece.language, slot, found, lower_case=piece.lower_case)
        if not values[slot.group] and found[slot.group] is not None:
            return None
    return PatternMatch(pattern, form.slots, found, values) if in_range(pattern.needs, values) else None


def _next_item(piece: SentenceInMessage, match: PatternMatch) -> PatternMatch | None:
    """Return what the list of a match goes on with: "and lisinopril 10 mg"."""
    for form in match.pattern.next_items:
        ends = dict.fromkeys(
            (match.found.end(), quote_end(match.found, match.values))
        )  # an open slot goes on to a pause
        found = next(filter(None, (form.regex.match(piece.text, end) for end in ends)), None)
        item = fill_slots(piece, match.pattern, form, found) if found else None
        if item is not None:
            key = {
                hole[1]: match.values[hole[1]]
                for hole in _TEMPLATE.finditer(match.pattern.key)
                if hole[1] in match.values
            }
            return replace(item, values={**key, **item.values}, first=match.first or match.found)
    return None


def claims_of_match(piece: SentenceInMessage, people: Mentions, match: PatternMatch) -> Iterator[Candidate]:
    """Yield the claims of one match, one for each item of its list."""
    pattern, values, found = match.pattern, match.values, match.first or match.found
    person, start = _who(piece, people, pattern, found)
    if person is None or not _has_what_it_needs(piece, people, pattern, found, values, person):
        return
    end = _mended(piece, match, quote_end(match.found, values))
    values |= _brought_up(piece, people, pattern, start)
    verdict = judge(piece.language, piece.text, start, end, lead=pattern.starts_clause, asked=pattern.in_questions)
    if verdict is None:
        return
    if verdict.modality == "hypothetical" and _mentioned(piece, pattern, found):
        verdict = Verdict("asserted")
    named = [people.name(value.value, _relation(values)) for value in values["name"]] if pattern.introduces else []
    negated = any(value for group, value in found.groupdict().items() if group.startswith("neg"))
    if negated and pattern.negated == "drop":
        return
    more = cues(piece.language).get("extends")
    tail = more.match(piece.text, end) if more else None
    end = tail.end() if tail else end
    start = min(start, found.start())
    held = ValidTime(end=end)
    if piece.message.at is not None:
        held = resolve_valid_time(
            piece.times(ahead=pattern.time in ("event", "plan")),
            piece.text,
            start,
            end,
            mode=pattern.time,
            at=piece.message.at,
            gap=cues(piece.language).get("event_gap"),
        )
    if pattern.time == "event" and not held.words:
        return
    for fields in item_fields(pattern, values, piece.language.glue):
        fields["when"] = SlotValue(_FIRST_WORD.sub(lambda word: word[0].lower(), held.words), "", start, held.end)
        candidate = people.beside_patient(_candidate(piece, pattern, person, verdict, fields, (start, held), negated))
        if BLANK in piece.text[start : held.end] or not (candidate.value or candidate.op == "retract"):
            continue
        if pattern.key and not candidate.key:
            continue  # a removal without a key would end the whole category
        if (candidate.category, candidate.key, candidate.value) == ("identity", "name", person.label):
            continue  # they were introduced by it just now
        if candidate.category == "trip" and _is_verb(piece.language, candidate.value):
            continue  # "i'm going to pretend"
        if candidate.category == "family" and piece.text[end : end + 2] in ("'s", "’s") and not negated:
            continue  # "no children's books"
        yield candidate
        whose = next((somebody for somebody in named if somebody.label == fields["name"].value), None)
        yield from _also(piece.language, pattern, candidate, fields, whose)


def _has_what_it_needs(
    piece: SentenceInMessage,
    people: Mentions,
    pattern: Pattern,
    found: re.Match[str],
    values: Mapping[str, list[SlotValue]],
    person: MentionedPerson,
) -> bool:
    """Whether what was said before fits the `needs` of a pattern."""
    match pattern.needs:
        case "other":
            return not person.is_self
        case "animal":  # "I have a cat. My brother is here. He's called Paul"
            return bool(people.animal) and not people.last_is_relative
        case "relative" | "child":
            return bool(people.relative) if pattern.needs == "relative" else people.last_is_child
        case "alone":
            return not people.newcomer and not _search(piece.language, "newcomer", piece.text[: found.start()])
        case "user":
            return people.of_user
        case "unnamed":
            return not people.knows(values["species"][0].value)
    return True


def _brought_up(piece: SentenceInMessage, people: Mentions, pattern: Pattern, start: int) -> dict[str, list[SlotValue]]:
    """Return the slot of the animal or relative without a name that the sentence before brought up."""
    if pattern.needs == "animal":
        return {"animal": [SlotValue(people.animal, "species", start, start, said=people.animal)]}
    if pattern.needs == "relative":
        label = str(piece.language.people.get("labels", {}).get(people.relative, people.relative))
        return {"human": [SlotValue(people.relative, "human", start, start, said=label)]}
    return {}


def _relation(values: dict[str, list[SlotValue]]) -> str:
    for group in ("human", "relation", "animal", "species"):
        if values.get(group):
            return values[group][0].value
    return ""


def _who(
    piece: SentenceInMessage, people: Mentions, pattern: Pattern, found: re.Match[str]
) -> tuple[MentionedPerson | None, int]:
    """Return the subject of the match, and where the words to judge begin."""
    words = found.groupdict().get("who")
    at = found.start("who") if words else found.start()
    if people.is_anothers(piece.text[at:]):
        return None, at
    work = people.of_work() if pattern.category == "tech" else None
    if pattern.needs in ("patient", "work"):
        return people.patient() if pattern.needs == "patient" else people.of_work(), found.start()
    if words is None and "who" not in found.re.groupindex:
        if pattern.needs == "other":
            return people.last, found.start()
        elided = people.of_user or ("elided" in cues(piece.language) and pattern.about_others)
        if work or not elided:
            return work or ME, found.start()
        meant = people.implied(piece.text[: found.end()] if people.of_user else found[0], pattern.category)
        return (meant if pattern.about_others or meant is ME else None), found.start()
    if work and words and words.strip().casefold() in ("we", "our"):
        return work, found.start("who")
    if words is None:
        person = people.topic(piece.text[: found.start()], cues(piece.language).get("topic"))
        another = max(people.newcomer, _search(piece.language, "newcomer", piece.text[:at]))
        if person is ME and another and (another > 1 or pattern.category in _OF_ONE_BEING):
            alone = another > 1 and not _search(piece.language, "newcomer", piece.text[:at])
            return (people.meant if alone and pattern.about_others else None), at  # "my mother came. Has diabetes."
        return (None if person and not person.is_self and not pattern.about_others else person), found.start()
    if words.strip(" ,").lower() in str(piece.language.people.get("and", "")).split():
        return _goes_on(piece, people, pattern, found)
    people.mention(piece.text[:at])
    person = ME if people.is_with_me(piece.text[:at]) and not pattern.introduces else people.whom(words)
    if person is not None and not person.is_self and not pattern.about_others:
        return None, found.start()
    return person, found.start() if pattern.needs == "other" else at  # "the vet put her on …"


def _goes_on(
    piece: SentenceInMessage, people: Mentions, pattern: Pattern, found: re.Match[str]
) -> tuple[MentionedPerson | None, int]:
    """Return the subject of "and takes 5 mg", which the clause before names, and where that clause begins."""
    rules = cues(piece.language)

    def before(cue: str) -> re.Match[str] | None:
        if cue not in rules:
            return None
        openings = [one for one in rules[cue].finditer(piece.text) if one.end() <= found.start()]
        return openings[-1] if openings else None

    mine = before("main_clause")
    theirs = before("their_clause") if pattern.about_others and rules["their_verb"].match(found[0]) else None
    opening = max(filter(None, (mine, theirs)), key=lambda one: one.start("who"), default=None)
    if opening is None or rules["other_subject"].search(piece.text[opening.end() : found.start()]):
        return None, found.start()
    start = opening.start("who")
    if opening is mine:
        return ME, start
    people.mention(piece.text[:start])
    person = people.whom(opening["who"])
    return (None if person is None or person.is_self else person), start


def _mentioned(piece: SentenceInMessage, pattern: Pattern, found: re.Match[str]) -> bool:
    """Whether a plan mentions a person in passing, and so states them: "thinking of asking my friend Leslie"."""
    before = piece.text[: found.start()]
    named = pattern.in_questions and found.groupdict().get("who") and not _NAMING.search(before)
    return bool(named) and only_intends(piece.language, before)


# What may follow a word that puts another right: nothing that makes it the subject of a clause.
_IS_OVER = expression(
    r"\s*(?:$|[^\w\s]|(?:lol|haha|btw|actually|now|since|from|with|as|and|or|too|for|seit|jetzt|und|desde|ahora|y|depuis|maintenant|et|da|ora|e|agora)\b)",
    re.IGNORECASE,
)


def _mended(piece: SentenceInMessage, match: PatternMatch, end: int) -> int:
    """Take the corrected word: "I live in Lisbon, sorry, Porto"."""
    cue = cues(piece.language).get("mend")
    again = cue.match(piece.text, end) if cue else None
    closing = [slot for slot in match.slots if [v.end for v in match.values.get(slot.group, ())] == [end]]
    if again is None or not closing:
        return end
    better = read_at(piece.language, closing[-1], piece.text, again.end(), lower_case=piece.lower_case)
    if better is None or not _IS_OVER.match(piece.text, better.end):
        return end  # "I work at Tesco, no, Anna works there"
    match.values[closing[-1].group] = [better]
    return better.end


def _filled(template: str, fields: Mapping[str, SlotValue], sentence: str = "") -> str:
    def fill(hole: re.Match[str]) -> str:
        value = fields.get(hole[1])
        if value is None:
            return ""
        if hole[3]:
            return f"{float(value.value) * int(hole[3]):g}"
        if hole[2] == "third":
            verb, _, rest = value.value.partition(" ")
            return f"{in_third(verb).capitalize()} {in_their_words(rest)}"
        said = str(getattr(value, hole[2] or "value"))
        return in_the_text(said, sentence[: value.start], template) if sentence else said

    text = re.sub(r"\s+([.,。，])", r"\1", re.sub(r"\s{2,}", " ", _TEMPLATE.sub(fill, template))).strip()
    return well_formed(text)


def _candidate(
    piece: SentenceInMessage,
    pattern: Pattern,
    person: MentionedPerson,
    verdict: Verdict,
    fields: Mapping[str, SlotValue],
    span: tuple[int, ValidTime],
    negated: bool,
) -> Candidate:
    held = span[1]
    start, end = piece.place(span[0]), piece.offset + held.end
    op: Literal["assert", "retract"] = "retract" if negated != (pattern.op == "retract") else "assert"
    said = _filled(pattern.text, fields, piece.text if piece.language.code == FALLBACK else "")
    text, key = _about(piece.language, person, said), _filled(pattern.key, fields)
    key = key.replace(" ", "_").lower()
    if op == "retract":
        text = text if person.label else text[:1].lower() + text[1:]
        text = str(piece.language.people.get("not", "No longer: {text}")).replace("{text}", text)
    return Candidate(
        kind=pattern.kind,  # type: ignore[arg-type]
        subject=person.subject,
        category=_filled(pattern.category, fields),
        key="uses_tool" if key in _OF_ONE and _is_beside(piece.text[span[0] :]) else key,
        value=_filled(pattern.value, fields) or (pattern.default if op == "assert" else ""),
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
        source=FACT_SOURCE,
    )


_FIRST_WORD = expression(r"^(?:Last|On|This|Yesterday|Today|Two|Three|A)\b")  # of a time that begins a sentence
_OF_ONE = frozenset(("uses_database", "uses_cloud", "uses_os", "uses_editor"))
_BESIDE = expression(r"[^.;!?\n]*?\b(?:too|as well|besides|in addition|on top of that)\b", re.IGNORECASE)


def _is_beside(clause: str) -> bool:
    """Whether a tool is used beside another, which it so does not replace: "we use MySQL as well"."""
    return _BESIDE.match(clause) is not None


def _about(rules: PatternLanguage, person: MentionedPerson, text: str) -> str:
    """Put the subject in front of the sentence when it is not the user: "Luna is allergic to …"."""
    if person.is_self:
        return text
    template = "named" if person.label else "related"
    label = person.label or rules.people.get("labels", {}).get(person.relation, person.relation)
    rest = text[:1].lower() + text[1:]
    return str(rules.people.get(template, "{label} {text}")).replace("{label}", label).replace("{text}", rest)


def _also(
    rules: PatternLanguage,
    pattern: Pattern,
    first: Candidate,
    fields: Mapping[str, SlotValue],
    named: MentionedPerson | None,
) -> Iterator[Candidate]:
    """
    Yield implied claims: liking coffee ends disliking it, a named dog is a dog.

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
