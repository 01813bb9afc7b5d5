"""
New values of known facts: corrections ("not eggs, I meant hazelnuts"), and changes that do not say of what ("it's 100 now").

A `Reading` is one sentence of a message beside what is known; `endings` asks it what the sentence ends or replaces.
Words: ``patterns/ended_*.toml``.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from difflib import SequenceMatcher
from functools import cache, partial

from ..scope import SELF
from ..text import dataclass, expression, may_hold, plainly_lowered
from ..text.dates import with_date
from ..text.render import in_same_unit, put_in_place, well_formed
from ..types import Candidate, Message
from .authorship import BLANK
from .clauses import judge
from .grammar import (
    FALLBACK,
    PatternLanguage,
    PatternSlot,
    Span,
    contrast_expressions,
    correction,
    ending_cue,
    english_cue,
    following_value,
    lexicon_words,
    renewal,
    stopping_expressions,
    switch_expressions,
)
from .mentions import subject_name
from .rules import FACT_SOURCE
from .second_look import KnownValue
from .slots import (
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
from .speakers import is_anothers, is_namesake, is_of_other_sex, is_told_of_another, speaks_of_kin, subject_of

CONFIDENCE = 0.85
_NAME = expression(r"(?-i:[^\W\d_a-z])[^\W\d_]+")
_ALIKE = 0.7  # how much of two spellings of one name is the same, at least
_PAUSE = expression(r"\W*$|\s*[.,;:!?)*–—-]|\s+(?:but|it|i|that|sorry|at all)\b", re.IGNORECASE)
_DAY = expression(r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)day(?=s?\b)", re.IGNORECASE)
_NUMBER = expression(r"\d+(?:[.,]\d+)?")
_HABITS = frozenset(("behavioral", "schedule", "hobby", "preference", "appointment", "food"))
_KINDS = frozenset(("medication", "tech", "food", "preference", "allergy", "language", "hobby"))
_DENIED = expression(r"(?:n't|\b(?:no longer|not|never|used to|stopped|quit))\b[^.!?,;]*\Z", re.IGNORECASE)

_UNIT = expression(r"([$€£¥]?)\d+(?:[.,]\d+)?((?: ?[^\W\d][\w%/-]*)*| ?[%€$£])")
_DAYS = expression(r"(?P<number>\d{1,3}) (?:days?|(?P<week>weeks?))", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Reading:
    """One sentence of a message that is read for endings, and the names of others."""

    rules: PatternLanguage
    message: Message
    text: str
    offset: int
    others: Mapping[str, str]
    by_label: Callable[[], Mapping[str, Sequence[KnownValue]]]

    @property
    def lowered(self) -> str | None:
        """The sentence as the words that expressions need are looked for in it."""
        return plainly_lowered(self.text)

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
        beside = ending_cue(self.rules.code, "beside")
        if self.is_once(one, *found.span()) or self.is_once(one, found.start(), found.end("it")):
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

    def is_once(self, one: KnownValue, start: int, end: int) -> bool:
        """Whether a doing is left out one time only: "yoga was cancelled today", but not "I quit yoga today"."""
        habit, for_good = ending_cue(self.rules.code, "passing_habit"), ending_cue(self.rules.code, "for_good")
        doing = one.category in _HABITS or (
            one.kind == "statement" and english_cue("habit").match(one.text) is not None
        )
        once = english_cue("today_no").search(f"{self.text[:start]}|{self.text[start:end]}") if habit else None
        if habit is None or not doing or (once is None and habit.match(self.text, end) is None):
            return False
        return for_good is None or for_good.search(self.text, start, end) is None

    def stops(self, kinds: tuple[str, ...], value: str) -> bool:
        """Whether the sentence says something else of the value, so that nothing ends."""
        expressions = stopping_expressions(self.rules.code, kinds, value, self.lowered)
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
    for one in [one for one in known if put_right or one in just]:
        number = _NUMBER.match(one.value) if one in just and one.kind == "attribute" else None
        named = [word for word in (one.words, number[0] if number else "") if word and _is_in(word, sentence)]
        if not named:
            continue
        for regex in (source for word in named for source in contrast_expressions(reading.rules.code, word)):
            match = regex.search(sentence)
            begin = min(match.start(), signal.start() if signal else match.start()) if match is not None else 0
            if match is None or not reading.means(begin, match.end()):
                continue
            own = one.category not in ("family", "pets", "appointment") and one.subject == SELF
            if own and is_told_of_another(reading.rules, sentence[: match.start()]):
                continue  # "my wife is at Roche, not Novartis"
            new = _value_like(reading, one, match.end()) if "new" not in match.groupdict() else match.span("new")
            while new and (begun := cue.match(sentence, *new)) and begun.end() < new[1]:  # "oops Genk not Gent"
                new = new[1] - len(sentence[begun.end() : new[1]].lstrip(" ,:;-")), new[1]
            if new is not None and _fits(one, sentence[slice(*new)]) and not cue.fullmatch(sentence, *new):
                yield from _put_right(reading, one, (min(match.start(), new[0]), max(match.end(), new[1])), new, known)
                break
            if new is not None and cue.fullmatch(sentence, *new):
                continue  # "sorry, not eggs, hazelnuts": the next expression finds what comes after
            if put_right and (reading.rules.code != FALLBACK or _PAUSE.match(sentence, match.end())):
                yield reading.retract(match.span(), one)
                break
    said = (re.escape(one.words) for one in known if one.words and may_hold(sentence, one.words)) if just else ()
    if not just or any(re.search(rf"(?<!\w){words}", sentence, re.IGNORECASE) for words in said):
        return
    renamed = list(_spelled_otherwise(reading, just))
    yield from renamed or _by_a_new_word(reading, just)


def find_slips(reading: Reading, just: Sequence[KnownValue]) -> Iterator[Candidate]:
    """Yield the facts of the message before with another number or name in them: "wait no it was 2020", "tim not tom"."""
    cue, last = ending_cue(reading.rules.code, "cue"), max((one.seq for one in just), default=0)
    put_right, text = cue is not None and cue.search(reading.text) is not None, reading.text
    found = [(one, put_in_place(one.text, text, one.value, put_right=put_right)) for one in just if one.seq == last]
    slips = [(one, slip) for one, slip in found if slip is not None and reading.means(slip.start, slip.end)]
    if any(is_told_of_another(reading.rules, text[: slip.start]) for _, slip in slips):
        slips = [(one, slip) for one, slip in slips if one.subject != SELF or _is_name(one)]
    for one, slip in slips if len({slip.old for _, slip in slips}) == 1 else ():
        span, old = (slip.start, slip.end), re.compile(rf"(?<![^\W_]){re.escape(slip.old)}(?![^\W_])", re.IGNORECASE)
        if one.kind == "attribute" and one.value == slip.old and _is_name(one):
            yield from _put_right(reading, one, span, span, just)
            continue
        key, value, words = (old.sub(slip.new, of) for of in (one.key, one.value, one.text))
        yield reading.retract(span, one)
        stated = replace(reading.state(span, one, value, words), kind=one.kind)
        yield replace(stated, key=key if key == one.key else key.casefold())


def _of_another_subject(
    reading: Reading, known: Sequence[KnownValue], just: Sequence[KnownValue]
) -> Iterator[Candidate]:
    """Yield what was just stated of the wrong one, as a fact about the right one: "that was about Otto, not Pixel"."""
    cue = ending_cue(reading.rules.code, "whose")
    for found in cue.finditer(reading.text) if cue is not None else ():
        right, wrong = (subject_of(reading.rules, reading.others, found[name]) for name in ("right", "wrong"))
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
        moved = reading.state(match.span(), *counted)
        day = _ISO_DAY.search(moved.value) if counted[0].category == "appointment" else None
        end = datetime.strptime(day[0], "(%Y-%m-%d)").replace(tzinfo=UTC) + timedelta(days=1) if day else None
        yield replace(moved, lifetime="event", valid_to_ms=int(end.timestamp() * 1000)) if end else moved
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
    if counts and said:
        return counts[0], str(max(said))
    timed = [
        one
        for one in recent
        if one.category in ("appointment", "schedule") and english_cue("at_clock").search(one.value)
    ]
    return (
        (timed[0], english_cue("at_clock").sub(f"at {new.strip(' .,;!')}", timed[0].value))
        if len(timed) == 1 and english_cue("at_clock").match(f"at {new}")
        else None
    )


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
    if one.category in ("pets", "family") and subject_name(value) not in reading.others.values():
        for other in (other for other in known if other.subject == subject_name(one.value)):
            yield reading.retract(span, other)
            text = re.sub(rf"\b{re.escape(one.value)}\b", value, other.text)
            yield replace(reading.state(span, other, other.value, text), subject=subject_name(value))


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
    lasts = english_cue("lasts").search
    if (lasts(new) is None) != (lasts(one.value) is None) and new[:1].isdigit() and " " in new:
        return one.key.endswith("_days")  # two weeks are no weight
    words = new.casefold().split()
    if not words or english_cue("no_value").fullmatch(words[0]) or new.casefold() == one.words.casefold():
        return False
    if english_cue("cut_word").fullmatch(words[-1]):
        return False
    if english_cue("part_word").fullmatch(words[0]) and words[0] not in one.value.casefold():
        return False  # "type 1" is no condition
    named = one.value[:1].isupper() and one.category != "dietary"
    return new[:1].isdigit() == one.value[:1].isdigit() and (not named or new[:1].isupper() or new[:1].isdigit())


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
        if instead:
            yield from instead
            continue
        scaled = _scaled(reading, one, known, just) if kind == "medication" else None
        if scaled is not None:
            yield scaled
            continue
        words = said_name(reading, one) if kind == "medication" else one.subject if kind == "age_other" else one.words
        if kind in ("appointment", "schedule"):
            words = min(one.names, key=len, default="") if kind == "schedule" else one.key.partition("_with_")[0]
            words = words.replace("_", " ")
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
        if amount is not None and amount.kind != _currency_of(one):
            yield from _in_another_currency(reading, one, match.span(), match.span("new"))
            continue
        before = reading.text[: match.start()]
        apart = kind == "schedule" and (_DENIED.search(before) or english_cue("beside_it").search(reading.text))
        if kind == "age_other" and _is_no_age_of(reading, one, match):
            continue  # "turned 24 and saw my nan" leaves out "I"
        if apart or is_anothers(reading.rules, one.subject, before) or reading.stops((f"new/{kind}",), r"(?!)"):
            continue
        if kind == "appointment":
            yield from _moved_to(reading, one, match.start())
            continue
        new = next(filter(None, (match["new"], match.groupdict().get("new_")))).strip(" .,;!")
        if kind in ("age", "age_other", "how_many") and not new.isdigit():
            new = str(max(amounts_in_words(new), default=new))
        if new.casefold() != one.value.casefold() and (
            kind != "favorite" or not english_cue("no_value").fullmatch(new.casefold().split()[0])
        ):
            stated = reading.state(match.span(), one, in_same_unit(new, one.value, kind))
            yield from _on_another_day(reading, one, match.span(), new) if kind == "schedule" else [stated]


def _is_no_age_of(reading: Reading, one: KnownValue, match: re.Match[str]) -> bool:
    rules, before, others = reading.rules, reading.text[: match.start()], reading.others
    return (
        english_cue("nobody_turned").match(reading.text[: match.end()].rpartition(".")[2]) is not None
        or is_namesake(rules, others, one.subject, before)
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
        if len(old) != 1 or not any(_is_in(name, reading.text) for name in one.names if len(name) > 3):
            continue
        new, named = numbers[0], _NAME.findall(one.text, 1) if one.kind == "statement" else ()
        if not all(_is_in(name, reading.text) for name in named):
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
        if 0 <= start < end and len(old) == 1 and old[0].value != new.value and reading.means(start, end):
            yield old[0], (start, end)


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


_NAME = expression(r"\b[A-Z][\w-]+")


def _names_subject(reading: Reading, one: KnownValue) -> bool:
    people = (one.subject, *(name for name, subject in reading.others.items() if subject == one.subject))
    return any(_is_in(name, reading.text) for name in people)


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
    old, name = _NUMBER.search(one.value), said_name(reading, one)
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
        return reading.state(match.span(), one, _NUMBER.sub(f"{number:g}", one.value, count=1))
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
    if (one.category, one.key) == ("identity", "age"):
        return "age" if one.subject == SELF else "age_other"
    if one.key.startswith("how_many_"):
        return "how_many"
    if one.category == "budget" and "_for_" in one.key:
        return ""  # its purpose is named with it
    return _KINDS_OF_VALUES.get(f"{one.category}/{one.key}") or (
        one.category if one.category in ("medication", "favorite", "appointment", "schedule", "budget") else ""
    )


def _is_topic(
    reading: Reading, one: KnownValue, kind: str, known: Sequence[KnownValue], just: Sequence[KnownValue]
) -> bool:
    """Whether a sentence without its name is about this fact: it was just stated, or its kind is named and it is alone."""
    if kind == "age_other" and _NAME.search(reading.text, 1) and not _names_subject(reading, one):
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
    day, old = english_cue("day_of_month").search(reading.text, start), _ISO_DAY.search(one.value)
    if day is not None and old is not None and 1 <= int(day[1]) <= monthrange(int(old[1]), int(old[2]))[1]:
        moved = datetime(int(old[1]), int(old[2]), int(day[1]), tzinfo=UTC)
        value = f"on {moved.day} {moved:%B} ({moved:%Y-%m-%d})"
        end = int((moved + timedelta(days=1)).timestamp() * 1000)
        yield replace(reading.state((start, day.end()), one, value), lifetime="event", valid_to_ms=end)


_ISO_DAY = expression(r"\((\d{4})-(\d\d)-\d\d\)")


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
