"""
Endings: messages that end a known fact ("we canceled Vienna"), or put a new value in its place.

`rules` reads each message without knowing any fact.  Here the known facts are looked for: their values, next to words
that end things; events that end a kind of fact ("they let me go"); corrections ("not eggs, I meant hazelnuts"); and new
values of what was just stated ("it's 100 now").  So a retraction names a known value.  Words: ``patterns/ended_*.toml``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Any

from ..scope import SELF
from ..text import dataclass, expression
from ..text.dates import with_date
from ..text.render import well_formed
from ..text.sentences import split_pieces
from ..text.terms import likely_languages
from ..types import Candidate, Message
from .authorship import BLANK, masked
from .clauses import judge
from .grammar import (
    FALLBACK,
    MAX_TEXT_CHARS,
    SENTENCE,
    PatternLanguage,
    PatternSlot,
    contrast_expressions,
    correction,
    ending_cue,
    ending_expressions,
    event_expressions,
    following_value,
    kind_words,
    lexicon_words,
    load_language,
    renewal,
    same_words,
    stopping_expressions,
    switch_expressions,
    value_expression,
)
from .mentions import subject_name
from .rules import FACT_SOURCE, MAX_READ_CHARS, sentence_times
from .second_look import OTHER, KnownValue, find_flaws
from .slots import is_no_dose, read_at

CONFIDENCE = 0.85
JUST = 4  # a fact was just stated when it stands in one of so many messages before
_LEAST_CHARS = 3
_NAME = expression(r"(?-i:[^\W\d_a-z])[^\W\d_]+")
_PEOPLE = frozenset(("family/helper", "family/partner", "home/tenant"))
_TAIL_CHARS = 40  # of a sentence, in which closing words that say nothing are looked for
_WHOSE = expression(r"Their ([\w-]+) ")
_ALIKE = 0.7  # how much of two spellings of one name is the same, at least
_PAUSE = expression(r"\W*$|\s*[.,;:!?)*–—-]|\s+(?:but|it|i|that|sorry|at all)\b", re.IGNORECASE)
_DAY = expression(r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)day(?=s?\b)", re.IGNORECASE)
_NUMBER = expression(r"\d+(?:[.,]\d+)?")
_HABITS = frozenset(("schedule", "hobby", "preference", "appointment", "food"))
_KINDS = frozenset(("medication", "tech", "food", "preference", "allergy", "language", "hobby"))
_TOGETHER = frozenset(("work", "education"))  # what ends one fact of these ends all
_NO_VALUE = frozenset(
    "is am are was i'm im i it that this he she they we you the a an to of so well yes no not just all more one what how fine ok okay good sorry "
    "tonight today tomorrow yesterday again really please maybe probably never always still too either that's it's i'm "
    "there here gone done over dead true false wrong right only really very him her them me us been being going".split()
)


@dataclass(frozen=True, slots=True)
class _Reading:
    """One sentence of a message that is read for endings, and the names of others."""

    rules: PatternLanguage
    message: Message
    text: str
    offset: int
    others: Mapping[str, str]
    by_label: Mapping[str, Sequence[KnownValue]]

    @property
    def said(self) -> Mapping[str, tuple[str, ...]]:
        """The words of lexicons in the sentence, by their canonical spelling."""
        return lexicon_words(self.rules.code, self.text)

    def retract(self, span: tuple[int, int], one: KnownValue) -> Candidate:
        """Return the end of a known value; the characters are those of the sentence."""
        words = one.words or one.key.replace("_", " ")
        if one.kind == "statement":
            return replace(self._candidate(span, one, "", one.text, ends=True), kind="statement")
        return self._candidate(span, one, one.value, f"No longer: {words}.", ends=True)

    def state(self, span: tuple[int, int], one: KnownValue, value: str, text: str = "") -> Candidate:
        """Return the claim that the address of a known value holds *value* now."""
        text = text or (one.text.replace(one.value, value) if one.value and one.value in one.text else "")
        return self._candidate(
            span, one, value, text or f"{one.key.replace('_', ' ').capitalize()}: {value}.", ends=False
        )

    def means(self, start: int, end: int) -> bool:
        """Whether the words are said as true, for more than a while, by the user."""
        dated = ending_cue(self.rules.code, "dated")
        asked = dated is not None and dated.search(self.text) is not None
        verdict = judge(self.rules, self.text, start, end, lead=False, asked=asked)
        if verdict is None or verdict.modality != "asserted" or verdict.weight != 1 or BLANK in self.text[start:end]:
            return False
        passing, nearly = ending_cue(self.rules.code, "passing"), ending_cue(self.rules.code, "nearly")
        resumed = ending_cue(self.rules.code, "resumed")
        if resumed and resumed.match(self.text, end):
            return False
        return not (passing and passing.match(self.text, end)) and not (nearly and nearly.search(self.text[:start]))

    def is_whole(self, one: KnownValue, found: re.Match[str]) -> bool:
        """Whether a match names the value itself, and ends it for good: "sold the Volvo", not "the Volvo keys"."""
        beside, habit = ending_cue(self.rules.code, "beside"), ending_cue(self.rules.code, "passing_habit")
        if habit and one.category in _HABITS and habit.match(self.text, found.end()):
            return False
        within = ending_cue(self.rules.code, "within")
        if found.start("it") == found.start() and within and within.search(self.text[: found.start()]):
            return False
        named = ending_cue(self.rules.code, "named_other")
        if named and one.value[:1].islower() and named.search(self.text[: found.start("it")]):
            return False  # "the Boston marathon"
        portion = ending_cue(self.rules.code, "portion")
        if portion and one.category in _KINDS and portion.search(self.text[: found.start("it")]):
            return False  # "dropped a pill", "a message in Slack"
        whose = ending_cue(self.rules.code, "theirs")
        if one.subject == SELF and whose and whose.search(self.text[: found.start("it")]):
            return False
        return not (found.end("it") == found.end() and beside and beside.match(self.text, found.end()))

    def _candidate(self, span: tuple[int, int], one: KnownValue, value: str, text: str, *, ends: bool) -> Candidate:
        start, end = self.offset + span[0], self.offset + span[1]
        return Candidate(
            kind="attribute",
            subject=one.subject,
            category=one.category,
            key=one.key,
            value=value,
            text=text,
            confidence=CONFIDENCE,
            seq=self.message.seq,
            quote=self.message.content[start:end],
            start=start,
            op="retract" if ends else "assert",
            join="",
            modality="negated" if ends else "asserted",
            lifetime="state",
            valid_from_ms=None,
            valid_to_ms=None,
            source=FACT_SOURCE,
        )


def find_endings(
    message: Message,
    extracted: Iterable[Candidate],
    believed: Iterable[KnownValue],
    *,
    others: Mapping[str, str] | None = None,
    language_code: str | None = None,
) -> list[Candidate]:
    """
    Return a retraction for each known value that *message* ends, and new values of known facts, in the order of the words.

    Args:
        message: one message; nothing is found in any role but ``user``.
        extracted: the claims that were read in it; an address that they wrote to is left alone.
        believed: from `known_values`.
        others: names and relations, each with its subject.
        language_code: ISO 639-1, when detection should not decide.
    """
    if message.role != "user":
        return []
    content = message.content[:MAX_READ_CHARS]
    stated = [c for c in extracted if c.op == "assert" and c.modality == "asserted"]
    said = {(c.subject, c.category, c.value.casefold()) for c in stated}
    replaced = {(c.subject, c.category, key) for c in stated for key in (c.key, "")}
    told = {c.text for c in stated if c.kind == "statement"}
    lost = [KnownValue(c.subject, c.category, c.key, c.value, False, c.text) for c in stated if c.category == "pets"]
    wanted = [
        one
        for one in believed
        if (one.subject, one.category, one.value.casefold()) not in said
        and not (one.alone and (one.subject, one.category, "" if one.category == "dietary" else one.key) in replaced)
        and one.seq < message.seq
        and not (one.kind == "statement" and one.text in told)
    ]
    if not wanted and not lost:
        return []
    text = masked(content)
    just = [one for one in wanted if 0 < message.seq - one.seq <= JUST and one.seq]
    for rules in _languages(content, language_code, just):
        found = _found_in(rules, message, text, wanted, lost, others or {}, stated)
        if found:
            return sorted(found, key=lambda candidate: (candidate.start, candidate.op == "assert"))
    return []


def _found_in(
    rules: PatternLanguage,
    message: Message,
    text: str,
    wanted: Sequence[KnownValue],
    lost: Sequence[KnownValue],
    others: Mapping[str, str],
    stated: Sequence[Candidate],
) -> list[Candidate]:
    """Return what the words of one language end, each once; *lost* is what the message itself states and may end."""
    just = [one for one in wanted if 0 < message.seq - one.seq <= JUST and one.seq]
    found: dict[tuple[str, str, str, str, str], Candidate] = {}
    by_label = _by_label(rules, wanted)
    for span in split_pieces(text, MAX_TEXT_CHARS):
        reading = _Reading(rules, message, _plain(rules, span.of(text)), span.start, others, by_label)
        ended = [reading.retract(place, one) for one in lost if (place := _named(reading, one)) is not None]
        for candidate in (*_in_sentence(reading, wanted, just, stated), *ended):
            what = (candidate.op, candidate.subject, candidate.category, candidate.key, candidate.value)
            found.setdefault(what, candidate)
    return [one for one in found.values() if rules.code == FALLBACK or not _is_of_another(one, message, rules.code)]


def _plain(rules: PatternLanguage, sentence: str) -> str:
    """Return a sentence without the words around it that say nothing; every other character keeps its place."""
    lead, tail = ending_cue(rules.code, "lead"), ending_cue(rules.code, "tail")
    start = lead.match(sentence) if lead else None
    if start is not None:
        sentence = " " * start.end() + sentence[start.end() :]
    last = sentence[-_TAIL_CHARS:]
    return sentence[: -len(last)] + tail.sub("", last, count=1) if tail and last else sentence


def _is_of_another(candidate: Candidate, message: Message, code: str) -> bool:
    """Whether the words are about someone else: "my brother has moved away"; English says so in its expressions."""
    if candidate.subject != SELF or candidate.category in ("family", "pets"):
        return False
    doctor = ending_cue(code, "doctor") if candidate.category == "medication" else None
    if doctor is not None and doctor.search(message.content):
        return False
    flaws = find_flaws(candidate, message, code)
    return bool(flaws) and all(flaw == OTHER for flaw in flaws)


_DENIED = expression(r"(?:n't|\b(?:no longer|not|never|used to|stopped|quit))\b[^.!?,;]*\Z", re.IGNORECASE)
_EACH = expression(
    r"\b(?:(?:every|each) ((?:mon|tues|wednes|thurs|fri|satur|sun)day)|((?:mon|tues|wednes|thurs|fri|satur|sun)day)s)\b"
)


def _on_other_days(text: str, one: KnownValue) -> bool:
    """Whether a sentence speaks of other days of the week than a value: not on Fridays any more, and still on Mondays."""
    said, known = ({a or b for a, b in _EACH.findall(words.casefold())} for words in (text, f"{one.value} {one.text}"))
    return bool(said) and bool(known) and not said & known


def _in_sentence(
    reading: _Reading, wanted: Sequence[KnownValue], just: Sequence[KnownValue], stated: Sequence[Candidate]
) -> Iterator[Candidate]:
    """Yield what one sentence ends and puts in its place, each known value once."""
    sentences = [one for one in wanted if one.kind == "statement"]
    latest = just
    wanted, just = ([one for one in ones if one.kind == "attribute"] for ones in (wanted, just))
    corrected = list(_corrected(reading, wanted, just))
    yield from corrected
    done = {(c.subject, c.category, c.key) for c in corrected}
    rest = [one for one in wanted if one.address not in done]
    if not corrected:
        renewed = list(_renewed(reading, rest, just))
        yield from renewed
        rest = [one for one in rest if one.address not in {(c.subject, c.category, c.key) for c in renewed}]
    ended = [
        (one, span)
        for one in rest
        if (span := _named(reading, one) or _by_its_kind(reading, one, rest, just)) is not None
    ]
    ended += [
        (one, span) for one, span in _by_event(reading, rest, just) if all(one is not other for other, _ in ended)
    ]
    ended += _with_the_animal(ended, rest)
    ended += _by_its_kin(reading, rest, stated)
    ended += [(one, span) for one in sentences if (span := _named(reading, one)) is not None]
    ended += [(one, span) for one, span in _by_event(reading, sentences, latest) if one.kind == "statement"]
    yield from (reading.retract(span, one) for one, span in ended if not _on_other_days(reading.text, one))


def _languages(content: str, code: str | None, just: Sequence[KnownValue]) -> list[PatternLanguage]:
    """Return the languages to read *content* in: the likeliest that has words for endings, that of the facts just stated, English."""
    codes = [code] if code else likely_languages(content)
    known = [rules for rules in map(load_language, codes) if rules is not None and rules.ended][:2]
    if not code:
        codes = [*(likely_languages(just[-1].text)[:1] if just else ()), FALLBACK]
        known += [rules for rules in map(load_language, codes) if rules is not None and rules.ended]
    return list(dict.fromkeys(known))


Span = tuple[int, int]


def _named(reading: _Reading, one: KnownValue) -> Span | None:
    """Return the words of a sentence that name a known value and end it."""
    lowered = reading.text.casefold()
    names = tuple(name for name in _own_names(reading.rules, one) if name.casefold().rstrip("s") in lowered)
    names += tuple(form for name in (one.value, one.key) for form in reading.said.get(name.casefold(), ()))
    called = kind_words(reading.rules.code, one.key) if one.category == "medication" else ()
    called += same_words(reading.rules.code, one.words.casefold())
    names += tuple(name for name in called if name in lowered)
    people = tuple(sorted(name for name, subject in reading.others.items() if subject == one.subject))
    people += same_words(reading.rules.code, one.subject)
    if one.subject != SELF and (one.category not in ("identity", "life") or one.key == "age"):
        whom = value_expression((*people, one.subject), reading.rules)
        gone = _search(reading, ending_expressions(reading.rules.code, "death", SELF, whom, ()))
        if gone is not None and not _stops(reading, ("death",), whom):
            return gone
    if not names:
        return None
    value = value_expression(names, reading.rules)
    category = SENTENCE if one.kind == "statement" else one.category
    if one.kind == "statement" and _PEOPLE & _addresses_of(reading.rules.code, one.text):
        category = "family"  # people are not scrapped or replaced as things are
    if one.text.startswith(("Wears ", "Uses ")) and one.kind == "statement":
        category = "medication"  # a thing that is lost is worn again
    category = {"does_not_eat": "uneaten", "avoids": "uneaten", "dislikes": "disliked"}.get(one.key, category)
    takers = {other.subject for other in reading.by_label.get(f"takes {one.key}", ())}
    alone = one.category == "medication" and one.subject != SELF and len(takers) == 1
    expressions = ending_expressions(reading.rules.code, category, one.subject, value, people, alone=alone)
    return _ending(reading, one, expressions, value)


def _own_names(rules: PatternLanguage, one: KnownValue) -> tuple[str, ...]:
    """Return the names of a known value, without the relation that a statement is about: "Their uncle" has not ended."""
    whose = _WHOSE.match(one.text) if one.kind == "statement" else None
    relations = rules.lexicons.get("relation")
    if whose is None or relations is None or relations.lookup(whose[1]) is None:
        return one.names
    return tuple(name for name in one.names if name.casefold() != whose[1].casefold())


def _ending(reading: _Reading, one: KnownValue, expressions: Iterable[re.Pattern[str]], value: str) -> Span | None:
    """Return the words that end a known value, unless the sentence says something else of it."""
    found = next((found.span() for found in _matches(reading, expressions) if reading.is_whole(one, found)), None)
    return None if found is None or _keeps(reading, one, value) else found


def _keeps(reading: _Reading, one: KnownValue, value: str) -> bool:
    kinds = (one.category, "any", *((f"own/{one.category}",) if one.subject == SELF else ()))
    return _stops(reading, kinds, value)


def _stops(reading: _Reading, kinds: tuple[str, ...], value: str) -> bool:
    expressions = stopping_expressions(reading.rules.code, kinds, value)
    return any(regex.search(reading.text) for regex in expressions)


def _by_its_kind(
    reading: _Reading, one: KnownValue, known: Sequence[KnownValue], just: Sequence[KnownValue]
) -> Span | None:
    """Return the words that end a known value under the name of its kind: "my job", "the dog"."""
    nouns = reading.rules.ended.get("nouns", {})
    kind = nouns.get(f"{one.category}/{one.key}") or nouns.get(one.category)
    if one.category == "pets":
        kind = one.value if one.key == "has_pet" else _species(known).get(subject_name(one.value))
        kind = "|".join(map(re.escape, reading.said.get((kind or "").casefold(), ()))) or kind
    if not kind or one.subject != SELF:
        return None
    value = rf"(?<!\w)(?:{nouns['just' if one in just else 'own']}){nouns['like']}(?:{kind})(?!\w)"
    value = value.replace(" ", r"\s+")
    alike = (other for other in known if other.subject == SELF and _group(other) == _group(one) and other is not one)
    if re.search(value, reading.text, re.IGNORECASE) is None or (one.category not in _TOGETHER and any(alike)):
        return None
    return _ending(reading, one, ending_expressions(reading.rules.code, one.category, SELF, value, ()), value)


def _by_its_kin(
    reading: _Reading, known: Sequence[KnownValue], stated: Sequence[Candidate]
) -> Iterator[tuple[KnownValue, Span]]:
    """Yield the medicine in whose place a sentence puts another: of the same kind, or the only one."""
    cue = ending_cue(reading.rules.code, "swapped")
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


def _group(one: KnownValue) -> tuple[str, str]:
    return (one.category, one.key if one.category in ("possession", "pets") else "")


def _species(known: Iterable[KnownValue]) -> dict[str, str]:
    return {one.subject: one.value for one in known if (one.category, one.key) == ("identity", "species")}


def _search(reading: _Reading, expressions: Iterable[re.Pattern[str]]) -> Span | None:
    return next((match.span() for match in _matches(reading, expressions)), None)


def _matches(reading: _Reading, expressions: Iterable[re.Pattern[str]]) -> Iterator[re.Match[str]]:
    for regex in expressions:
        yield from (match for match in regex.finditer(reading.text) if reading.means(*match.span()))


def _with_the_animal(
    ended: Sequence[tuple[KnownValue, Span]], known: Sequence[KnownValue]
) -> Iterator[tuple[KnownValue, Span]]:
    """Yield what ends with a pet that has gone: that there is such an animal, where it was the only one."""
    named = [(one, span) for one, span in ended if (one.category, one.key) == ("pets", "pet_named")]
    for one, span in named:
        own = subject_name(one.value)
        yield from ((other, span) for other in known if other.subject == own and other is not one)
    species = _species(known)
    left = [one.value for one in known if one.category == "pets" and one.key == "pet_named"]
    for one, span in named:
        kind = species.get(subject_name(one.value))
        if kind and [name for name in left if species.get(subject_name(name)) == kind] == [one.value]:
            yield from ((other, span) for other in known if other.category == "pets" and other.value == kind)


def _by_event(
    reading: _Reading, known: Sequence[KnownValue], just: Sequence[KnownValue]
) -> Iterator[tuple[KnownValue, Span]]:
    """Yield the known values that an event ends without naming them: "they let me go", "cancelled it"."""
    last = max((one.seq for one in just if one.kind == "attribute"), default=0)
    places = {id(one): place for place, one in enumerate(known)}
    for number, event in enumerate(reading.rules.ended.get("event", ())):
        alike = {id(one): one for label in event["ends"] for one in reading.by_label.get(label, ())}
        own = [one for one in alike.values() if id(one) in places and _ends(reading.rules, event, one)]
        if not own:
            continue
        own.sort(key=lambda one: places[id(one)])
        whose = {*event.get("named", ()), SENTENCE}
        named = tuple(
            sorted({name for one in own if {one.category, one.key, str(one.kind)} & whose for name in one.names})
            if event.get("named")
            else ()
        )
        recent = _one_thing([one for one in own if one in just])
        if any(one.kind == "statement" for one in recent) and (len(recent) > 1 or recent[0].seq <= last):
            recent = []  # "it" may mean another thing
        span = _search(reading, event_expressions(reading.rules.code, number, "now", named))
        if span is None and recent:
            span, own = _search(reading, event_expressions(reading.rules.code, number, "just", named)), recent
            meant_here = ending_cue(reading.rules.code, "antecedent") if span else None
            if span and meant_here and meant_here.search(reading.text[: span[0]]):
                continue  # "we had a cat called Tom, he died"
        if span is None:
            continue
        words = reading.text[slice(*span)].casefold()
        meant = [one for one in own if any(name.casefold() in words for name in one.names) or _relation(one, words)]
        people = {one.value.casefold() for one in meant}
        own = [one for one in own if not meant or one in meant or one.value.casefold() in people | _STATUS]
        yield from ((one, span) for one in own if not _keeps(reading, one, value_expression(one.names, reading.rules)))


def _by_label(rules: PatternLanguage, known: Sequence[KnownValue]) -> dict[str, list[KnownValue]]:
    """Return by each label of `_ends` the facts that may have it, so that no event is held against every known fact."""
    found = dict[str, list[KnownValue]]()
    for one in known:
        labels = {f"{one.category}/{one.key}", f"{one.category}/*", f"{one.category}/{one.key}=false"}
        if one.kind == "statement":
            labels = {"statement/*", *_addresses_of(rules.code, one.text)}
        elif one.key == "marital_status":
            labels.add(f"{one.key}/{one.value.casefold()}")
        elif one.key == "works_as" or one.value.casefold() in ("unemployed", "jobless"):
            labels |= {"education/studies", "work/none"}
        # events of the user end what is about the user, or the pregnancy of a partner
        own = one.subject == SELF or (one.key in ("is_pregnant", "due_date") and one.subject in _PARTNERS)
        for label in (*(labels if own else ()), f"takes {one.key}"):
            found.setdefault(label, []).append(one)
    return found


def _one_thing(recent: Sequence[KnownValue]) -> list[KnownValue]:
    """Return the facts that "it" may mean: those of the last message that stated one, where they are of one kind."""
    last = max((one.seq for one in recent), default=0)
    latest = [one for one in recent if one.seq == last]
    kinds = {one.category for one in latest}
    named = {word for word in latest[0].words.casefold().split() if len(word) > _LEAST_CHARS} if latest else set()
    about_one = all(named & set(one.words.casefold().split()) for one in latest)
    return latest if len(kinds) < 2 or about_one else []


_PARTNERS = frozenset(("wife", "girlfriend", "partner", "fiancee", "fiancée"))
_STATUS = frozenset(("married", "engaged", "in a relationship"))


def _relation(one: KnownValue, words: str) -> bool:
    return one.category == "family" and f"my {one.key.replace('_', ' ')}" in words


def _ends(rules: PatternLanguage, event: Mapping[str, Any], one: KnownValue) -> bool:
    if one.kind == "statement":
        return "statement/*" in event["ends"] or bool(_addresses_of(rules.code, one.text) & set(event["ends"]))
    if one.key == "marital_status" and one.value.casefold() not in _STATUS:
        return f"{one.key}/{one.value.casefold()}" in event["ends"]
    if one.value == "false":
        return f"{one.category}/{one.key}=false" in event["ends"]
    if one.key == "works_as" and one.value.endswith("student") and "education/studies" in event["ends"]:
        return True
    if one.value.casefold() in ("unemployed", "jobless"):
        return "work/none" in event["ends"]
    if one.key == "lives_with" and not ({one.key, "partner"} & set(event.get("named", ()))):
        return False
    return f"{one.category}/{one.key}" in event["ends"] or f"{one.category}/*" in event["ends"]


@lru_cache(maxsize=1024)
def _addresses_of(code: str, sentence: str) -> frozenset[str]:
    """Return the addresses at which a statement would be if it were an attribute: "family/partner" of "Is dating Ravi."."""
    rules = load_language(code)
    kinds: Mapping[str, str] = rules.ended.get("sentence", {}) if rules is not None else {}
    return frozenset(address for address, source in kinds.items() if re.search(source, sentence))


def _corrected(reading: _Reading, known: Sequence[KnownValue], just: Sequence[KnownValue]) -> Iterator[Candidate]:
    """Yield the wrong values' ends and the right values of "not eggs, I meant hazelnuts" and "sorry, hazelnuts"."""
    cue, meant, denied = (ending_cue(reading.rules.code, name) for name in ("cue", "meant", "not"))
    if cue is None or meant is None or denied is None:
        return
    sentence, signal = reading.text, cue.search(reading.text)
    put_right = signal is not None
    for one in known:
        number = _NUMBER.match(one.value) if one in just and one.kind == "attribute" else None
        named = [word for word in (one.words, number[0] if number else "") if word and _is_in(word, sentence)]
        if not named or not (put_right or one in just):
            continue
        for regex in (source for word in named for source in contrast_expressions(reading.rules.code, word)):
            match = regex.search(sentence)
            begin = min(match.start(), signal.start() if signal else match.start()) if match is not None else 0
            if match is None or not reading.means(begin, match.end()):
                continue
            new = _value_like(reading, one, match.end()) if "new" not in match.groupdict() else match.span("new")
            if new is not None and _fits(one, sentence[slice(*new)]) and not cue.fullmatch(sentence, *new):
                yield from _put_right(reading, one, (min(match.start(), new[0]), max(match.end(), new[1])), new)
                break
            if put_right and (reading.rules.code != FALLBACK or _PAUSE.match(sentence, match.end())):
                yield reading.retract(match.span(), one)
                break
    if any(one.words and one.words.casefold() in sentence.casefold() for one in known):
        return
    renamed = list(_spelled_otherwise(reading, just))
    yield from renamed or _by_a_new_word(reading, just)


def _is_in(words: str, sentence: str) -> bool:
    return words.casefold().rstrip("s") in sentence.casefold()


def _by_a_new_word(reading: _Reading, just: Sequence[KnownValue]) -> Iterator[Candidate]:
    """Yield the right values of a correction that does not name the wrong one: "sorry, I meant hazelnuts"."""
    last = max((one.seq for one in just), default=0)
    recent = [one for one in just if one.seq == last and (one.words or one.value[:1].isdigit())]
    match = correction(reading.rules.code).search(reading.text) if recent else None
    if match is None or not reading.means(match.start(), match.end()):
        return
    fitting = [one for one in recent if _fits(one, match["new"]) and not reading.text[match.end() :].strip(" .!)*")]
    if len({one.value.casefold() for one in fitting}) == 1:
        for one in fitting:
            yield from _put_right(reading, one, match.span(), match.span("new"))


def _spelled_otherwise(reading: _Reading, just: Sequence[KnownValue]) -> Iterator[Candidate]:
    """Yield the right spelling of a name that was just stated: "it's Mark with a k"."""
    cue = ending_cue(reading.rules.code, "spelling")
    if cue is None or not cue.search(reading.text):
        return
    for one in just:
        for word in _NAME.finditer(reading.text) if _NAME.fullmatch(one.value) else ():
            alike = SequenceMatcher(None, word[0].casefold(), one.value.casefold()).ratio()
            if _ALIKE <= alike < 1 and word[0] not in reading.others and reading.means(*word.span()):
                yield from _put_right(reading, one, word.span(), word.span())
                break


def _put_right(reading: _Reading, one: KnownValue, span: Span, new: Span) -> Iterator[Candidate]:
    value = reading.text[slice(*new)].strip(" .,;!'’")
    if not one.alone:
        yield reading.retract(span, one)
    yield reading.state(span, one, value)


def _value_like(reading: _Reading, one: KnownValue, start: int) -> Span | None:
    """Return the place of a new value that follows "not eggs, …"."""
    slot = reading.rules.ended.get("slots", {}).get(f"{one.category}/{one.key}")
    match = following_value(reading.rules.code).match(reading.text, start)
    if match is None:
        return None
    if slot is not None:
        at = match.start("new")
        found = read_at(reading.rules, PatternSlot(slot[0], slot[0], False), reading.text, at, lower_case=False)
        return (found.start, found.end) if found is not None else None
    return match.span("new")


def _fits(one: KnownValue, new: str) -> bool:
    """Whether words can be another value of the kind of a known one: a name for a name, a number for a number."""
    new = new.strip(" .,;!'’")
    words = new.casefold().split()
    if (
        not words
        or all(word in _NO_VALUE for word in words)
        or words[0] in _NO_VALUE
        or new.casefold() == one.words.casefold()
    ):
        return False
    named = one.value[:1].isupper() and one.category != "dietary"
    return new[:1].isdigit() == one.value[:1].isdigit() and (not named or new[:1].isupper() or new[:1].isdigit())


def _renewed(reading: _Reading, known: Sequence[KnownValue], just: Sequence[KnownValue]) -> Iterator[Candidate]:
    """Yield the new values of known facts that a sentence gives without saying of what: "bumped it up to 100"."""
    for one in known:
        switched = _switched(reading, one)
        if switched is not None:
            yield switched
            continue
        kind = _kind_of_value(one)
        scaled = _scaled(reading, one, known, just) if kind == "medication" else None
        if scaled is not None:
            yield scaled
            continue
        words = one.subject if kind == "age_other" else one.words
        if kind in ("appointment", "schedule"):
            words = one.key.replace("_", " ") if kind == "appointment" else min(one.names, key=len, default="")
        pattern = renewal(reading.rules.code, kind, words) if kind else None
        if pattern is None or not _is_topic(reading, one, kind, known, just):
            continue
        match = pattern.search(reading.text)
        if match is None or not reading.means(match.start(), match.end()):
            continue
        if kind == "medication" and (
            _is_of_another_medicine(reading, one, match)
            or is_no_dose(reading.text, match, one.value, (one.words, one.key, *one.names))
        ):
            continue
        if kind == "schedule" and _DENIED.search(reading.text[: match.start()]):
            continue
        if kind == "age_other" and _NOBODY_TURNED.match(reading.text[: match.end()].rpartition(".")[2]):
            continue  # "turned 24 and saw my nan" leaves out "I"
        if _is_anothers(reading, one, match.start()) or _stops(reading, (f"new/{kind}",), r"(?!)"):
            continue
        if kind == "appointment":
            yield from _moved_to(reading, one, match.start())
            continue
        new = next(filter(None, (match["new"], match.groupdict().get("new_")))).strip(" .,;!")
        if new.casefold() != one.value.casefold() and (
            kind != "favorite" or new.casefold().split()[0] not in _NO_VALUE
        ):
            if kind == "schedule":
                yield reading.retract(match.span(), one)  # a habit is one of several
            yield reading.state(match.span(), one, _in_same_unit(new, one.value, kind))


_I_TAKE = expression(r"\b(?:nehme|prends|tomo|prendo|i take|i'm (?:now )?on|i am (?:now )?on)\b", re.IGNORECASE)
_NAMED_MEDICINE = expression(r"(?<=\s)(?!(?:Dosis|Tabletten?|Pillen?|Kapseln?|Tropfen|Dose)\b)[A-ZÄÖÜ][\w-]{4,}")


def _is_of_another_medicine(reading: _Reading, one: KnownValue, match: re.Match[str]) -> bool:
    """Whether a new dose is one of another medicine or patient: "jetzt nehme ich Candesartan 8" after Ramipril."""
    if one.subject != SELF and _I_TAKE.search(match[0]):
        return True
    new = "new" if match["new"] else "new_"
    before = reading.text[match.start() : match.start(new)]
    known = {name.casefold() for name in (one.words, one.key, *one.names)}
    drugs = reading.rules.lexicons.get("drug")
    listed = [found[0] for found in drugs.one.finditer(before)] if drugs else []
    named = {(drugs.lookup(word) if drugs else None) or word for word in (*listed, *_NAMED_MEDICINE.findall(before))}
    return any(word.casefold() not in known for word in named)


_FACTORS = {"doubled": 2.0, "tripled": 3.0, "halved": 0.5}
_HIS_OR_HERS = expression(r"(?i)\w['’]s (?!has )|\b(?:his|her)\b")


def _scaled(
    reading: _Reading, one: KnownValue, known: Sequence[KnownValue], just: Sequence[KnownValue]
) -> Candidate | None:
    """Return the new dose in "my doctor doubled it", from the known one."""
    cue, old = ending_cue(reading.rules.code, "scaled"), _NUMBER.search(one.value)
    match = cue.search(reading.text) if cue is not None and old is not None else None
    if match is None or old is None or not _is_topic(reading, one, "medication", known, just):
        return None
    what = (match["what"] or "").casefold()
    named = what.removesuffix(" dose") in ("", "dose", "dosage", one.words.casefold()) or what[:4] in ("tabl", "pill")
    if one.subject == SELF and _HIS_OR_HERS.search(match[0]):
        return None
    topic = ending_cue(reading.rules.code, "topic_medication")
    if not what and (topic is None or topic.search(reading.message.content) is None):
        return None  # "they doubled it" may be the rent
    if not named or _is_anothers(reading, one, match.start()) or not reading.means(match.start(), match.end()):
        return None
    number = float(old[0].replace(",", ".")) * _FACTORS[match["how"].lower()]
    return reading.state(match.span(), one, _NUMBER.sub(f"{number:g}", one.value, count=1))


def _is_anothers(reading: _Reading, one: KnownValue, start: int) -> bool:
    """Whether the words before a new value name what another person has: "the neighbor's dog is down to 27 kilos"."""
    of_others = ending_cue(reading.rules.code, "of_others")
    found = of_others.search(reading.text[:start]) if of_others else None
    of_relative = ending_cue(reading.rules.code, "of_relative") if one.subject == SELF else None
    return (of_relative is not None and of_relative.search(reading.text[:start]) is not None) or (
        found is not None
        and (one.subject == SELF or one.subject.casefold() == (found["what"] or one.subject).casefold())
    )


_NOBODY_TURNED = expression(r"\W*(?:(?:just|so|finally|btw|lol|omg|hey) )*turned\b", re.IGNORECASE)


def _kind_of_value(one: KnownValue) -> str:
    """Return which of the tables ``[ended.renew]`` reads a new value of this fact; empty for none."""
    address = f"{one.category}/{one.key}"
    kinds = {
        "work/earns": "pay",
        "work/works_hours": "hours",
        "finance/rent": "rent",
        "health/weight": "weight",
        "schedule/wakes_at": "clock",
        "schedule/sleeps_at": "clock",
    }
    kinds["identity/age"] = "age" if one.subject == SELF else "age_other"
    if one.category == "budget" and "_for_" in one.key:
        return ""  # its purpose is named with it
    return kinds.get(address) or (
        one.category if one.category in ("medication", "favorite", "appointment", "schedule", "budget") else ""
    )


def _is_topic(
    reading: _Reading, one: KnownValue, kind: str, known: Sequence[KnownValue], just: Sequence[KnownValue]
) -> bool:
    """Whether a sentence without its name is about this fact: it was just stated, or its kind is named and it is alone."""
    content = reading.message.content.casefold()
    if one.category == "medication" and one.words and one.words.casefold() in content:
        return True
    if one.category in ("appointment", "schedule"):
        return one in just or any(name.casefold() in content for name in one.names)
    same = [other for other in known if _kind_of_value(other) == kind and other.address != one.address]
    recent = [other for other in same if other in just]
    if one in just and not recent:
        return True
    topic = ending_cue(reading.rules.code, f"topic_{kind}")
    return not same and topic is not None and topic.search(reading.message.content) is not None


def _in_same_unit(new: str, old: str, kind: str) -> str:
    """Return a bare number with the unit that the old value has: "85" after "92 kilos"."""
    if kind == "schedule":
        return _DAY.sub(new.rstrip("s").capitalize(), old)
    if kind in ("pay", "rent", "budget"):
        number = new.strip("$€£").removesuffix("k").replace(",", "")
        before = _NUMBER.search(old)
        if kind == "pay" and before and number.isdigit() and float(before[0].replace(",", "")) >= 100 * float(number):
            number += "000"  # "it's 55 now" after 50k
        return _NUMBER.sub(f"{number}000" if new.endswith("k") else number, old, count=1)
    if kind in ("weight", "hours") and _NUMBER.fullmatch(new):
        return _NUMBER.sub(new, old, count=1)
    return new


def _moved_to(reading: _Reading, one: KnownValue, start: int) -> Iterator[Candidate]:
    """Yield the new time of an appointment."""
    at = reading.message.at
    for span in sentence_times(reading.text, at, reading.rules.code, ahead=True) if at is not None else ():
        if span.start >= start and span.to_ms > at.timestamp() * 1000 and span.relation == "at":  # type: ignore[union-attr]
            found = reading.state((start, span.end), one, with_date(span, at))  # type: ignore[arg-type]
            yield replace(found, lifetime="event", valid_to_ms=span.to_ms)
            return


def _switched(reading: _Reading, one: KnownValue) -> Candidate | None:
    """Return the new value in "we went from Oslo to Bergen", when Oslo is the known one."""
    slots = reading.rules.ended.get("slots", {})
    slot = slots.get(f"{one.category}/{one.key}") or slots.get(one.category)
    if slot is None or not one.alone or one.subject != SELF:
        return None
    there = one.words.casefold() in reading.text.casefold()
    expressions = switch_expressions(reading.rules.code, "find", one.words) if there else ()
    expressions = (*expressions, *switch_expressions(reading.rules.code, one.category, ""))
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
