"""
Corrections: what a sentence puts right in what was just stated ("not eggs, I meant hazelnuts", "make that 12 days").

Words: ``patterns/ended_*.toml``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from difflib import SequenceMatcher
from functools import lru_cache

from ...scope import SELF
from ...text import dataclass, expression, may_hold
from ...text.dates import with_date
from ...types import Candidate
from ..grammar import (
    FALLBACK,
    PatternSlot,
    Span,
    contrast_expressions,
    correction,
    ending_cue,
    english_cue,
    following_value,
)
from ..mentions import subject_name
from ..second_look import KnownValue
from ..slots import (
    amounts_in_words,
    money_at,
    read_at,
    sentence_times,
)
from . import ISO_DAY, NAME, NUMBER, Reading, is_in, is_told_of_another, subject_of

_ALIKE = 0.7  # how much of two spellings of one name is the same, at least
_PAUSE = expression(r"\W*$|\s*[.,;:!?)*–—-]|\s+(?:but|it|i|that|sorry|at all)\b", re.IGNORECASE)
_UNIT = expression(r"([$€£¥]?)\d+(?:[.,]\d+)?((?: ?[^\W\d][\w%/-]*)*| ?[%€$£])")
_DAYS = expression(r"(?P<number>\d{1,3}) (?:days?|(?P<week>weeks?))", re.IGNORECASE)


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
        number = NUMBER.match(one.value) if one in just and one.kind == "attribute" else None
        named = [word for word in (one.words, number[0] if number else "") if word and is_in(word, sentence)]
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


def find_amendments(reading: Reading, just: Sequence[KnownValue]) -> Iterator[Candidate]:
    """Yield what half a sentence changes in what was stated last: "make that 12 days", "no, business class"."""
    cue, kinds = ending_cue(reading.rules.code, "amend"), ending_cue(reading.rules.code, "amend_kinds")
    said = cue.match(reading.text) if cue is not None else None
    if said is None or kinds is None:
        return
    for seq in sorted({one.seq for one in just}, reverse=True):
        found = [(one, pair) for one in just if one.seq == seq and (pair := _amended(reading, one, said, kinds))]
        for one, pair in found if len({pair for _, pair in found}) == 1 else ():
            yield from _with_amendment(reading, one, said.span("new"), *pair)
        if found:
            return


def _amended(reading: Reading, one: KnownValue, said: re.Match[str], kinds: re.Pattern[str]) -> tuple[str, str] | None:
    """Return the words of a known fact that half a sentence changes, and those in their place."""
    new, meant = said["new"], said["chosen"] or said["slip"] or said["tail"] or said["preferred"]
    if not meant or one.subject != SELF or one.category in _TOLD_WHOLE:
        return None
    if one.category == "budget":
        number, old = (NUMBER.search(words.replace(",", "")) for words in (new, one.value))
        amount = money_at(reading.text, *said.span("new"))
        like = number is not None and old is not None and 0.2 <= float(number[0]) / (float(old[0]) or 1) <= 5
        return (one.value, new) if like and (amount or (number and new[0].isdecimal() and " " not in new)) else None
    if new.isdecimal() and not (said["slip"] or "now" in said["tail"] or one.category in _PLANNED):
        return None  # "make it 8" of a story
    names = (said["chosen"] or said["slip"]) and (one.category in _PLANNED or one.kind == "statement")
    return _replacement(_ISO_TIME.sub("", one.text), new, kinds, reading.rules.numbers, names=bool(names))


_PLANNED = frozenset(("trip", "budget", "plan", "goal", "appointment"))

_TOLD_WHOLE = frozenset(("medication", "allergy", "identity", "health", "favorite"))

_ISO_TIME = expression(r" \(\d{4}-\d\d-\d\d[^)]*\)")


def _with_amendment(reading: Reading, one: KnownValue, span: Span, old: str, new: str) -> Iterator[Candidate]:
    """Yield a known fact with other words in place of *old*, and the end of what it said."""
    if one.category == "budget":
        yield from _put_right(reading, one, span, span)
        return
    text, value = (_ISO_TIME.sub("", words).replace(old, new, 1) for words in (one.text, one.value))
    days = _DAYS.fullmatch(new)
    if one.value.isdecimal() and (number := NUMBER.match(new)):
        value = str(int(days["number"]) * (7 if days["week"] else 1)) if days else number[0]
    at = reading.message.at
    times = sentence_times(text, at, reading.rules.code, ahead=True) if at else ()
    stated = reading.state(span, one, value, text)
    if len(times) == 1 and at and times[0].to_ms > at.timestamp() * 1000:
        dated = with_date(times[0], at)
        value, text = (words.replace(times[0].words, dated) if one.value else words for words in (value, text))
        stated = replace(reading.state(span, one, value, text), lifetime="event", valid_to_ms=times[0].to_ms)
    if not one.alone:
        yield reading.retract(span, one)
    yield replace(stated, kind=one.kind)


def find_slips(reading: Reading, just: Sequence[KnownValue]) -> Iterator[Candidate]:
    """Yield the facts of the message before with another number or name in them: "wait no it was 2020", "tim not tom"."""
    cue, last = ending_cue(reading.rules.code, "cue"), max((one.seq for one in just), default=0)
    put_right, text = cue is not None and cue.search(reading.text) is not None, reading.text
    found = [(one, _find_slip(one.text, text, one.value, put_right=put_right)) for one in just if one.seq == last]
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
        said = [one for one in named_by_value if is_in(one.words, reading.text)]
        last = max((one.seq for one in meant), default=0)
        wanted = said or [one for one in meant if one.seq == last]
        if right == wrong or not named or not reading.means(*found.span()):
            continue
        for one in wanted:
            yield reading.retract(found.span(), one)
            yield replace(reading.state(found.span(), one, one.value, one.text), subject=right, kind=one.kind)


def _is_name(one: KnownValue) -> bool:
    return one.category in ("pets", "family") or (one.category == "identity" and one.key in ("name", "species"))


def _by_a_new_word(reading: Reading, just: Sequence[KnownValue]) -> Iterator[Candidate]:
    """Yield the right values of a correction that does not name the wrong one: "sorry, I meant hazelnuts"."""
    last = max((one.seq for one in just), default=0)
    recent = [one for one in just if one.seq == last and (one.words or one.value[:1].isdecimal())]
    match = correction(reading.rules.code).search(reading.text) if recent else None
    if match is None or not reading.means(match.start(), match.end()):
        return
    counted = _counted(match["new"], recent)
    if counted is not None:
        moved = reading.state(match.span(), *counted)
        day = ISO_DAY.search(moved.value) if counted[0].category == "appointment" else None
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
    said = {int(number)} if number.isdecimal() else amounts_in_words(number)
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
        for word in NAME.finditer(reading.text) if NAME.fullmatch(one.value) else ():
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
        yield from in_another_currency(reading, one, span, new)
        return
    unit = _UNIT.fullmatch(one.value)
    if unit is not None:  # "17.5 kg", "sorry, I meant 15.7"
        said = frozenset() if NUMBER.search(value) else amounts_in_words(value)
        value = str(max(said)) if said else value  # of "twenty-five", not 20
        value = unit[1] + value + unit[2] if NUMBER.fullmatch(value) else value
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


def currency_of(one: KnownValue) -> str:
    return one.key.removeprefix("max_").partition("_")[0]


def in_another_currency(reading: Reading, one: KnownValue, span: Span, new: Span) -> Iterator[Candidate]:
    """Yield a budget under the key of the currency that a correction names, and the end of the old one."""
    amount = money_at(reading.text, max(0, new[0] - 1), new[1])
    if amount is not None and one.key == f"max_{currency_of(one)}":
        yield reading.retract(span, one)
        text = f"Has a budget of {amount.value} {amount.kind}."
        yield replace(reading.state(span, one, amount.value, text), key=f"max_{amount.kind}")


def _in_unit_of(reading: Reading, one: KnownValue, new: Span) -> str:
    """Return a new value as the address keeps it, "1100" for "1100 euros"; empty for an amount of another currency."""
    value = reading.text[slice(*new)].strip(" .,;!'’")
    if one.category == "budget" and value[:1].isdecimal():
        amount = money_at(reading.text, max(0, new[0] - 1), new[1])  # with the sign before it
        return amount.value if amount and amount.kind == currency_of(one) else "" if amount else value
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
    if english_cue("no_word").fullmatch(new):
        return False  # "sorry, autocorrect"
    if one.value.isdecimal() and " " not in new and (said := amounts_in_words(new)):
        return one.value not in map(str, said)  # "two. No, sorry, three"
    lasts = english_cue("lasts").search
    if (lasts(new) is None) != (lasts(one.value) is None) and new[:1].isdecimal() and " " in new:
        return one.key.endswith("_days")  # two weeks are no weight
    words = new.casefold().split()
    if not words or english_cue("no_value").fullmatch(words[0]) or new.casefold() == one.words.casefold():
        return False
    if english_cue("cut_word").fullmatch(words[-1]):
        return False
    if english_cue("part_word").fullmatch(words[0]) and words[0] not in one.value.casefold():
        return False  # "type 1" is no condition
    named = one.value[:1].isupper() and one.category != "dietary"
    return new[:1].isdecimal() == one.value[:1].isdecimal() and (not named or new[:1].isupper() or new[:1].isdecimal())


_NAMES = expression(r"(?<=[a-z] )(?:[A-Z]|[a-z]+[A-Z])[\w'’&-]*(?: [A-Z][\w'’&-]*)*")
_NAMED = expression(
    r"(?:(?P<how>from|to|in|at|with|by) )?(?:the )?(?P<name>(?:[A-Z]|[a-z]+[A-Z])[\w'’&-]*(?: [A-Z][\w'’&-]*)*)"
)
_FEW = {"one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8", "nine": "9", "ten": "10"}  # fmt: skip
_AT = expression(r" (?=at |on )")
_ONE_OF = {"children": "child", "people": "person", "kids": "kid"}
_MOST_TIMES = 5  # that a number may grow or shrink at once


@lru_cache(maxsize=16)
def _counts(words: tuple[str, ...]) -> re.Pattern[str]:
    number = "|".join(
        (r"\d{1,3}(?:,\d{3})+", r"\d+", *(re.escape(word) for word in sorted(words, key=len, reverse=True)))
    )
    return re.compile(
        rf"(?i)(?<![\w.,:/-])(?P<number>{number})(?![\w:/]|[.,]\d)(?:[ -](?P<noun>(?!of\b)[^\W\d_]+))?(?: of us)?"
    )


def _replacement(
    fact: str, new: str, kinds: re.Pattern[str], numbers: Mapping[str, str], *, names: bool
) -> tuple[str, str] | None:
    """
    Return the words of a fact that are of the kind of *new*, and their replacement: "10 days" and "12 days".

    None where it says nothing of that kind, says two things, or says *new* already.

    Args:
        fact: its sentence.
        new: the words of half a sentence: "12 days", "business class", "from Munich".
        kinds: words of which one takes the place of another, each kind a group.
        numbers: those written as words, and their digits.
        names: whether a name may take the place of a name.
    """
    parts = [kinds.fullmatch(part) for part in _AT.split(new)]
    if all(parts):
        kept = [(found.lastgroup, found[found.lastgroup or 0]) for found in kinds.finditer(fact)]
        wanted = [(part.lastgroup, part[part.lastgroup or 0]) for part in parts if part]
        both = [{(old, now) for kind, old in kept if kind == new_kind} for new_kind, now in wanted]
        changed = [pairs for pairs in both if any(old.casefold() != now.casefold() for old, now in pairs)]
        pairs = changed[0] if len(changed) == 1 and all(both) else set()
    elif (said := _NAMED.fullmatch(new)) is not None:
        held = [found for found in _NAMES.finditer(fact)] if names else []
        before = f"{said['how'] or ''} "
        pairs = {(one[0], said["name"]) for one in held if fact[: one.start()].removesuffix("the ").endswith(before)}
        pairs = pairs if len(held) == 1 else set()
    else:
        pairs = _counted_otherwise(fact, new, {**_FEW, **numbers})
    (old, now), *others = pairs or {("", "")}
    return (old, now) if not others and old.casefold() != now.casefold() else None


def _counted_otherwise(fact: str, new: str, numbers: Mapping[str, str]) -> set[tuple[str, str]]:
    """Return the counts of a fact of which *new* gives another number, of the same things where it names them."""
    count = _counts(tuple(numbers))
    pairs, said = set[tuple[str, str]](), count.fullmatch(new)
    if said is None:
        return pairs
    for one in count.finditer(fact):
        noun, same = ((_ONE_OF.get(word, word.rstrip("s")) for word in (found["noun"] or "",)) for found in (said, one))
        named, thing = next(noun).casefold(), next(same).casefold()
        if named and named != thing and not {named, thing} <= {"day", "week", "night"}:
            continue
        old, now = (float(numbers.get(n.lower(), n).replace(",", "")) for n in (one["number"], said["number"]))
        if not 1 / _MOST_TIMES <= now / (old or 1) <= _MOST_TIMES:
            continue
        digits = numbers.get(said["number"].lower(), said["number"]) if one["number"][0].isdecimal() else said["number"]
        pairs.add((one[0], f"{digits} {said['noun']}") if named else (one["number"], digits))
    return pairs


@dataclass(frozen=True, slots=True)
class _Slip:
    """A corrected number or name of a fact: the old and the new one, and the place of the new one in the sentence."""

    old: str
    new: str
    start: int
    end: int


_COUNT = expression(r"(?<![\w.,:-])\d+(?:[.,]\d+)?(?![\w-])")
_NOT = expression(
    r"(?P<new>\d+|[^\W\d_]+),?(?: and)? not (?:with |in |at |from |to )?(?P<old>\d+|[^\W\d_]+)(?=\W*$|[.,!;])",
    re.IGNORECASE,
)
_NOT_FIRST = expression(r"\bnot (?P<old>\d+|[^\W\d_]+),? (?:but )?(?P<new>\d+|[^\W\d_]+)\W*$", re.IGNORECASE)
_APART = expression(r" \w+ (?:before|after|ago|later|earlier|from)\b", re.IGNORECASE)
_WAS = expression(r"\bthe (?P<old>\d+) was\b", re.IGNORECASE)
_LIGHT = frozenset(
    "it it's its he's hes she's shes i'm im was is am i he she they mean meant no nope wait sorry actually make that that's thats in on at about around my not said "
    "should be have been of oh oops um uh the born number correction typo rather well just only hang hold ah haha lol bad mistake turned by from to wrong now instead today these days anymore again currently lately then here there too also yes yet".split()
)
# "A negative, sorry", of what has a word in common with the value that is known.
_PHRASE = expression(
    r"\W*(?:(?:it's|its|it is|that's|i meant|i mean|no|wait|sorry|actually|oops),? )*((?:[^\W_][\w'’-]*)(?: [^\W_][\w'’-]*){1,3}?)(?=\s*(?:[,.!;]|$| (?:actually|sorry|i mean|i meant)\b))",
    re.IGNORECASE,
)
_GOES_ON = frozenset("now if so and because years".split())
_ON_DAY = expression(r" ?\(\d{4}-\d\d-\d\d\)")


def _find_slip(fact: str, sentence: str, value: str = "", *, put_right: bool) -> _Slip | None:
    """
    Return the number or the name that a short correction puts in the place of one in *fact*.

    It says both ("tim not tom", "78, the 82 was in May"), or, where it is *put_right* by other words, a number of the
    same size with nothing else before it ("wait no it was 2020").
    """
    own = {word.casefold(): word for word in re.findall(r"[^\W_][\w'’-]*", _ON_DAY.sub("", fact))}
    for both in (_NOT, _NOT_FIRST):
        said = both.search(sentence)
        old = own.get(said["old"].casefold()) if said is not None else None
        if said is not None and old is not None and said["new"].casefold() not in own and _is_alike(old, said["new"]):
            new = said["new"].capitalize() if old[:1].isupper() else said["new"]
            return _Slip(old, new, *said.span("new"))
    phrase = _PHRASE.match(sentence) if put_right and " " in value and value in fact else None
    words, old_words = (phrase[1].split() if phrase else []), value.split()
    if phrase is not None and 1 < len(words) <= len(old_words) and phrase[1] != value and not _COUNT.search(phrase[1]):
        shared = any(new == old for new, old in zip(reversed(words), reversed(old_words), strict=False))
        if shared or words[0] == old_words[0]:
            return _Slip(value, phrase[1], *phrase.span(1))
    counts, known = list(_COUNT.finditer(sentence)), {one[0] for one in _COUNT.finditer(_ON_DAY.sub("", fact))}
    new_ones = [one for one in counts if one[0] not in known]
    before = re.findall(r"[^\W\d_][\w'’-]*", sentence[: new_ones[0].start()].casefold()) if new_ones else ["?"]
    was = _WAS.search(sentence)
    sure = put_right or (was is not None and was["old"] in known)
    if not sure or len(known) != 1 or len({one[0] for one in new_ones}) != 1:
        return None
    (old,), found = known, new_ones[0]
    if _APART.match(sentence, found.end()):
        return None  # "3 days before that I have an exam"
    follows = re.match(r" (?:years?|yrs?)? ?([^\W\d_]+)", sentence[found.end() :])
    light = all(word in _LIGHT or word in own for word in before)
    unit = follows is None or follows[1].casefold() in _LIGHT | own.keys() | _GOES_ON
    return _Slip(old, found[0], *found.span()) if light and unit and len(old) == len(found[0]) else None


def _is_alike(old: str, new: str) -> bool:
    """Whether two words can be one for another: two numbers, or two words of which the old one is a name or spelled alike."""
    if old.isdecimal() or new.isdecimal():
        return old.isdecimal() and new.isdecimal()
    alike = len(set(old.casefold()) & set(new.casefold())) * 2 >= len(set(old.casefold()))
    return new.casefold() not in _LIGHT and (old[:1].isupper() or alike)
