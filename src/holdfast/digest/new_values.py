"""
New values of known facts: corrections ("not eggs, I meant hazelnuts"), and changes that do not say of what ("it's 100 now").

A `Reading` is one sentence of a message beside what is known; `endings` asks it what the sentence ends or replaces.
Words: ``patterns/ended_*.toml``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher

from ..scope import SELF
from ..text import dataclass, expression
from ..text.dates import with_date
from ..text.render import well_formed
from ..types import Candidate, Message
from .authorship import BLANK
from .clauses import judge
from .grammar import (
    FALLBACK,
    PatternLanguage,
    PatternSlot,
    contrast_expressions,
    correction,
    ending_cue,
    following_value,
    lexicon_words,
    renewal,
    stopping_expressions,
    switch_expressions,
)
from .mentions import subject_name, without_owner
from .rules import FACT_SOURCE
from .second_look import KnownValue
from .slots import amounts_in_words, is_no_dose, money_at, read_at, sentence_times

CONFIDENCE = 0.85
_NAME = expression(r"(?-i:[^\W\d_a-z])[^\W\d_]+")
_ALIKE = 0.7  # how much of two spellings of one name is the same, at least
_PAUSE = expression(r"\W*$|\s*[.,;:!?)*–—-]|\s+(?:but|it|i|that|sorry|at all)\b", re.IGNORECASE)
_DAY = expression(r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)day(?=s?\b)", re.IGNORECASE)
_NUMBER = expression(r"\d+(?:[.,]\d+)?")
_HABITS = frozenset(("schedule", "hobby", "preference", "appointment", "food"))
_KINDS = frozenset(("medication", "tech", "food", "preference", "allergy", "language", "hobby"))
_DENIED = expression(r"(?:n't|\b(?:no longer|not|never|used to|stopped|quit))\b[^.!?,;]*\Z", re.IGNORECASE)
_NO_VALUE = frozenset(
    "is am are was i'm im i it that this he she they we you the a an to of so well yes no not just all more one what how fine ok okay good sorry "
    "tonight today tomorrow yesterday again really please maybe probably never always still too either that's it's i'm "
    "he's she's they're we're you're who's there's i've we've they've "
    "there here gone done over dead true false wrong right only really very him her them me us been being going".split()
)

_UNIT = expression(r"([$€£¥]?)\d+(?:[.,]\d+)?((?: ?[^\W\d][\w%/-]*)*| ?[%€$£])")
_DAYS = expression(r"(?P<number>\d{1,3}) (?:days?|(?P<week>weeks?))", re.IGNORECASE)
_PARTS = frozenset("type stage grade phase level class version".split())
_MYSELF = frozenset("me myself mine ich mich mir yo mí mi moi io eu mim".split())

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Reading:
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

    def stops(self, kinds: tuple[str, ...], value: str) -> bool:
        """Whether the sentence says something else of the value, so that nothing ends."""
        expressions = stopping_expressions(self.rules.code, kinds, value)
        return any(regex.search(self.text) for regex in expressions)

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


def find_corrections(reading: Reading, known: Sequence[KnownValue], just: Sequence[KnownValue]) -> Iterator[Candidate]:
    """Yield the wrong values' ends and the right values of "not eggs, I meant hazelnuts" and "sorry, hazelnuts"."""
    cue, meant, denied = (ending_cue(reading.rules.code, name) for name in ("cue", "meant", "not"))
    if cue is None or meant is None or denied is None:
        return
    moved = list(_of_another_subject(reading, known, just))
    if moved:
        yield from moved
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
                yield from _put_right(reading, one, (min(match.start(), new[0]), max(match.end(), new[1])), new, known)
                break
            if put_right and (reading.rules.code != FALLBACK or _PAUSE.match(sentence, match.end())):
                yield reading.retract(match.span(), one)
                break
    if any(one.words and re.search(rf"(?<!\w){re.escape(one.words)}", sentence, re.IGNORECASE) for one in known):
        return
    renamed = list(_spelled_otherwise(reading, just))
    yield from renamed or _by_a_new_word(reading, just)


def _of_another_subject(
    reading: Reading, known: Sequence[KnownValue], just: Sequence[KnownValue]
) -> Iterator[Candidate]:
    """Yield what was just stated of the wrong one, as a fact about the right one: "that was about Otto, not Pixel"."""
    cue = ending_cue(reading.rules.code, "whose")
    for found in cue.finditer(reading.text) if cue is not None else ():
        right, wrong = (_subject_of(reading, found[name]) for name in ("right", "wrong"))
        named = found["of"] is not None or " " in found["right"] or right in (SELF, *reading.others.values())
        meant = [one for one in just if one.subject == wrong and not _is_name(one)]
        named_by_value = [one for one in known if one.subject == wrong and not _is_name(one) and one.words]
        said = [one for one in named_by_value if _is_in(one.words, reading.text)]
        last = max((one.seq for one in meant), default=0)
        wanted = said or [one for one in meant if one.seq == last]
        if right == wrong or not named or not reading.means(*found.span()):
            continue
        for one in wanted:
            yield reading.retract(found.span(), one)
            yield replace(reading.state(found.span(), one, one.value, one.text), subject=right, kind=one.kind)


def _subject_of(reading: Reading, words: str) -> str:
    """Return the subject that a name, "me" or "my sister" means."""
    name = words.casefold()
    if name in _MYSELF:
        return SELF
    bare, relations = without_owner(name), reading.rules.lexicons.get("relation")
    kin = relations.lookup(words.rpartition(" ")[2]) if relations is not None and " " in words else None
    return reading.others.get(name) or reading.others.get(bare) or subject_name(kin or bare)


def _is_name(one: KnownValue) -> bool:
    return one.category in ("pets", "family") or (one.category == "identity" and one.key in ("name", "species"))


def _is_in(words: str, sentence: str) -> bool:
    return words.casefold().rstrip("s") in sentence.casefold()


def _by_a_new_word(reading: Reading, just: Sequence[KnownValue]) -> Iterator[Candidate]:
    """Yield the right values of a correction that does not name the wrong one: "sorry, I meant hazelnuts"."""
    last = max((one.seq for one in just), default=0)
    recent = [one for one in just if one.seq == last and (one.words or one.value[:1].isdigit())]
    match = correction(reading.rules.code).search(reading.text) if recent else None
    if match is None or not reading.means(match.start(), match.end()):
        return
    counted = _counted(match["new"], recent)
    if counted is not None:
        yield reading.state(match.span(), *counted)
        return
    fitting = [one for one in recent if _fits(one, match["new"]) and not reading.text[match.end() :].strip(" .!)*")]
    if len({one.value.casefold() for one in fitting}) == 1:
        for one in fitting:
            yield from _put_right(reading, one, match.span(), match.span("new"))


def _counted(new: str, recent: Sequence[KnownValue]) -> tuple[KnownValue, str] | None:
    """Return the count that a correction repeats with its noun, and its number: "scratch that, four brothers"."""
    number, _, noun = new.strip(" .,;!").partition(" ")
    said = {int(number)} if number.isdigit() else amounts_in_words(number)
    counts = [one for one in recent if noun and one.key == f"how_many_{noun.casefold()}"]
    return (counts[0], str(max(said))) if counts and said else None


def _spelled_otherwise(reading: Reading, just: Sequence[KnownValue]) -> Iterator[Candidate]:
    """Yield the right spelling of a name that was just stated: "it's Mark with a k"."""
    cue = ending_cue(reading.rules.code, "spelling")
    if cue is None or not cue.search(reading.text):
        return
    for one in just:
        for word in _NAME.finditer(reading.text) if _NAME.fullmatch(one.value) else ():
            alike = SequenceMatcher(None, word[0].casefold(), one.value.casefold()).ratio()
            if _ALIKE <= alike < 1 and word[0] not in reading.others and reading.means(*word.span()):
                yield from _put_right(reading, one, word.span(), word.span(), just)
                break


def _put_right(
    reading: Reading, one: KnownValue, span: Span, new: Span, known: Sequence[KnownValue] = ()
) -> Iterator[Candidate]:
    """Yield the right value, and the end of the wrong one; what is known of a subject goes on under its right name."""
    value = _in_unit_of(reading, one, new)
    if not value:
        yield from _in_another_currency(reading, one, span, new)
        return
    unit = _UNIT.fullmatch(one.value)
    if unit is not None:  # "17.5 kg", "sorry, I meant 15.7"
        said = frozenset() if _NUMBER.search(value) else amounts_in_words(value)
        value = str(max(said)) if said else value  # of "twenty-five", not 20
        value = unit[1] + value + unit[2] if _NUMBER.fullmatch(value) else value
    diet = reading.rules.lexicons.get("diet") if one.category == "dietary" else None
    if diet is not None:
        right = diet.lookup(value)
        yield reading.retract(span, one)
        if right is not None:
            yield replace(reading.state(span, one, "true", f"Is {right}."), key=right)
        return
    if not one.alone:
        yield reading.retract(span, one)
    yield reading.state(span, one, value)
    if one.category == "pets" and subject_name(value) not in reading.others.values():
        for other in (other for other in known if other.subject == subject_name(one.value)):
            yield reading.retract(span, other)
            yield replace(reading.state(span, other, other.value, other.text), subject=subject_name(value))


def _currency_of(one: KnownValue) -> str:
    return one.key.removeprefix("max_").partition("_")[0]


def _in_another_currency(reading: Reading, one: KnownValue, span: Span, new: Span) -> Iterator[Candidate]:
    """Yield a budget under the key of the currency that a correction names, and the end of the old one."""
    amount = money_at(reading.text, max(0, new[0] - 1), new[1])
    if amount is not None and one.key == f"max_{_currency_of(one)}":
        yield reading.retract(span, one)
        text = f"Has a budget of {amount.value} {amount.kind}."
        yield replace(reading.state(span, one, amount.value, text), key=f"max_{amount.kind}")


def _in_unit_of(reading: Reading, one: KnownValue, new: Span) -> str:
    """Return a new value as the address keeps it, "1100" for "1100 euros"; empty for an amount of another currency."""
    value = reading.text[slice(*new)].strip(" .,;!'’")
    if one.category == "budget" and value[:1].isdigit():
        amount = money_at(reading.text, max(0, new[0] - 1), new[1])  # with the sign before it
        return amount.value if amount and amount.kind == _currency_of(one) else "" if amount else value
    days = _DAYS.fullmatch(value) if one.key.endswith("_days") else None
    return str(int(days["number"]) * (7 if days["week"] else 1)) if days else value


def _value_like(reading: Reading, one: KnownValue, start: int) -> Span | None:
    """Return the place of a new value that follows "not eggs, …"."""
    slot = reading.rules.ended.get("slots", {}).get(f"{one.category}/{one.key}")
    match = following_value(reading.rules.code).match(reading.text, start)
    if match is None:
        return None
    if slot is not None:
        at = match.start("new")
        found = read_at(reading.rules, PatternSlot(slot[0], slot[0], False), reading.text, at, lower_case=False)
        if found is None:
            return None
        within_word = reading.text[found.end : found.end + 1].isalpha() and found.end < match.end("new")
        return match.span("new") if within_word else (found.start, found.end)
    return match.span("new")


def _fits(one: KnownValue, new: str) -> bool:
    """Whether words can be another value of the kind of a known one: a name for a name, a number for a number."""
    new = new.strip(" .,;!'’")
    if one.value.isdigit() and " " not in new and (said := amounts_in_words(new)):
        return one.value not in map(str, said)  # "two. No, sorry, three"
    words = new.casefold().split()
    if (
        not words
        or all(word in _NO_VALUE for word in words)
        or words[0] in _NO_VALUE
        or new.casefold() == one.words.casefold()
    ):
        return False
    if words[0] in _PARTS and words[0] not in one.value.casefold():
        return False  # "type 1" is no condition
    named = one.value[:1].isupper() and one.category != "dietary"
    return new[:1].isdigit() == one.value[:1].isdigit() and (not named or new[:1].isupper() or new[:1].isdigit())


def find_new_values(reading: Reading, known: Sequence[KnownValue], just: Sequence[KnownValue]) -> Iterator[Candidate]:
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
        amount = money_at(reading.text, *match.span()) if kind == "budget" else None
        if amount is not None and amount.kind != _currency_of(one):
            yield from _in_another_currency(reading, one, match.span(), match.span("new"))
            continue
        if kind == "schedule" and _DENIED.search(reading.text[: match.start()]):
            continue
        if kind == "age_other" and (
            _NOBODY_TURNED.match(reading.text[: match.end()].rpartition(".")[2])
            or _is_namesake(reading, one, match.start())
        ):
            continue  # "turned 24 and saw my nan" leaves out "I"
        if _is_anothers(reading, one, match.start()) or reading.stops((f"new/{kind}",), r"(?!)"):
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


def _is_of_another_medicine(reading: Reading, one: KnownValue, match: re.Match[str]) -> bool:
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
    reading: Reading, one: KnownValue, known: Sequence[KnownValue], just: Sequence[KnownValue]
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


def _is_anothers(reading: Reading, one: KnownValue, start: int) -> bool:
    """Whether the words before a new value name what another person has: "the neighbor's dog is down to 27 kilos"."""
    of_others = ending_cue(reading.rules.code, "of_others")
    found = of_others.search(reading.text[:start]) if of_others else None
    of_relative = ending_cue(reading.rules.code, "of_relative") if one.subject == SELF else None
    return (of_relative is not None and of_relative.search(reading.text[:start]) is not None) or (
        found is not None
        and (one.subject == SELF or one.subject.casefold() == (found["what"] or one.subject).casefold())
    )


def _is_namesake(reading: Reading, one: KnownValue, start: int) -> bool:
    """Whether the words before a name make it another one of that name: "my niece Ella", where Ella is the daughter."""
    relations, words = reading.rules.lexicons.get("relation"), reading.text[:start].split()
    relation = relations.lookup(words[-1].casefold()) if relations and words else None
    return relation is not None and reading.others.get(relation) != one.subject


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
    reading: Reading, one: KnownValue, kind: str, known: Sequence[KnownValue], just: Sequence[KnownValue]
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


def _moved_to(reading: Reading, one: KnownValue, start: int) -> Iterator[Candidate]:
    """Yield the new time of an appointment."""
    at = reading.message.at
    for span in sentence_times(reading.text, at, reading.rules.code, ahead=True) if at is not None else ():
        if span.start >= start and span.to_ms > at.timestamp() * 1000 and span.relation == "at":  # type: ignore[union-attr]
            found = reading.state((start, span.end), one, with_date(span, at))  # type: ignore[arg-type]
            yield replace(found, lifetime="event", valid_to_ms=span.to_ms)
            return


def _switched(reading: Reading, one: KnownValue) -> Candidate | None:
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
