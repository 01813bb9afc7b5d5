"""
Endings: messages that end a known fact ("we canceled Vienna"), or put a new value in its place.

`rules` reads each message without knowing any fact.  Here the known facts are looked for: their values, next to words
that end things; events that end a kind of fact ("they let me go"); and, with `new_values`, corrections and new values.
So a retraction names a known value.  Words: ``patterns/ended_*.toml``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import product
from typing import Any

from ...scope import SELF
from ...text import expression, may_hold
from ...text.dates import on_other_days
from ...text.render import rest_of_list
from ...text.sentences import split_pieces
from ...text.terms import likely_languages
from ...types import Candidate, Message
from ..authorship import masked
from ..grammar import (
    FALLBACK,
    MAX_TEXT_CHARS,
    SENTENCE,
    TAIL_CHARS,
    ChangeSignal,
    PatternLanguage,
    Span,
    addresses_of,
    akin_expression,
    change_signals,
    cues,
    ending_cue,
    ending_expressions,
    ending_templates,
    english_cue,
    event_expressions,
    events_in,
    kind_expression,
    load_language,
    opposites,
    renewal,
    same_words,
    value_expression,
    without_fillers,
)
from ..mentions import is_said, subject_name
from ..rules import MAX_READ_CHARS
from ..second_look import NO_THING, OTHER, KnownValue, find_flaws
from ..slots import amounts_in_words, kind_words
from . import Reading, first_person, is_of_kin, is_of_other_sex, is_told_of_another, on_other_side
from .corrections import find_amendments, find_corrections, find_slips
from .new_values import find_kin, find_new_numbers, find_new_values, find_successors, said_name

JUST = 4  # a fact was just stated when it stands in one of so many messages before
OTHERS = "others/*"  # in `ends` of an event: what the message before stated of somebody else
DIRECTLY = 2  # "not any more" is about the message before, a reply between them
_LEAST_CHARS = 3
_PEOPLE = frozenset(("family/helper", "family/partner", "home/tenant"))
_WHOSE = expression(r"Their ([\w-]+) ")
_TOGETHER = frozenset(("work", "education"))  # what ends one fact of these ends all


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
    said = {(c.subject, c.category, c.value.casefold()) for c in stated if c.category != "medication"}
    replaced = {(c.subject, c.category, key) for c in stated for key in (c.key, "")}
    told = {c.text for c in stated if c.kind == "statement"}
    lost = [KnownValue(c.subject, c.category, c.key, c.value, False, c.text) for c in stated if c.category == "pets"]
    known = tuple(believed)
    wanted = [
        one
        for one in known
        # who says that they speak a language may have ended learning it
        if (one.key == "learning" or (one.subject, one.category, one.value.casefold()) not in said)
        and not (one.alone and (one.subject, one.category, "" if one.category == "dietary" else one.key) in replaced)
        and one.seq < message.seq
        and not (one.kind == "statement" and one.text in told)
        and (one.category != "appointment" or _is_meant(one, known, content))
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


def _is_meant(one: KnownValue, known: Sequence[KnownValue], content: str) -> bool:
    """Whether a message can mean this appointment: it names it, or none and it is the newest; of two meetings, by company or old day."""
    others = [other for other in known if other.category == "appointment" and other.key != one.key]
    kind, _, company = one.key.partition("_with_")
    if any(other.key.partition("_with_")[0] == kind for other in others):
        words = (*company.split("_"), *re.findall(r"[^\W\d_]{3,}", one.value))
        return any(is_said(word, content.partition(" to ")[0]) for word in words)
    said = [other for other in (one, *others) if any(is_said(name, content) for name in other.names)]
    return one in said or not (said or any(other.seq > one.seq for other in others))


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
    by_label = cache(partial(_by_label, rules, wanted))
    before = ""
    for span in split_pieces(text, MAX_TEXT_CHARS):
        reading = Reading(rules, message, without_fillers(rules, span.of(text)), span.start, others, by_label)
        ended = [reading.retract(place, one) for one in lost if (place := _named(reading, one)) is not None]
        known, latest = wanted, just
        if (
            before
            and english_cue("points_back").search(reading.text)
            and (meant := _brought_up(before, wanted, message.seq - 1))
        ):
            known = [meant.get((*one.address, one.value), one) for one in wanted]
            latest = list(meant.values())
            reading = replace(reading, by_label=cache(partial(_by_label, rules, known)))
        before = reading.text
        for candidate in (*_in_sentence(reading, known, latest, stated), *ended):
            what = (candidate.op, candidate.subject, candidate.category, candidate.key, candidate.value)
            found.setdefault(what, candidate)
    return [
        one
        for one in found.values()
        if not _is_stated_of_another(one, stated)
        and (rules.code == FALLBACK or not _is_of_another(one, message, rules))
    ]


def _brought_up(before: str, wanted: Sequence[KnownValue], seq: int) -> dict[tuple[str, ...], KnownValue]:
    """
    Return the facts that the sentence before names, as just stated in message *seq*: "Poor Rex. We had to let him go."

    None where it names two things, since "him" may be either.
    """
    named = [one for one in wanted if one.kind == "attribute" and any(_is_word_of(name, before) for name in one.names)]
    if len({one.words.casefold() for one in named}) != 1:
        return {}
    return {(*one.address, one.value): replace(one, seq=seq) for one in named}


def _is_word_of(name: str, text: str) -> bool:
    return may_hold(text, name) and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE) is not None


def _is_stated_of_another(new: Candidate, stated: Sequence[Candidate]) -> bool:
    """Whether the words of a new value were read as another's: "my eldest is Tess, she's 9" is no age of Milo's."""
    start, end = new.start, new.start + len(new.quote)
    return new.op == "assert" and any(
        (one.category, one.key) == (new.category, new.key)
        and one.subject != new.subject
        and one.start < end
        and start < one.start + len(one.quote)
        for one in stated
    )


def _is_of_another(candidate: Candidate, message: Message, rules: PatternLanguage) -> bool:
    """Whether the words are about someone else: "my brother has moved away"; English says so in its expressions."""
    if candidate.subject != SELF or candidate.category == "family" or candidate.key in ("is_pregnant", "due_date"):
        return False
    sentence = english_cue("sentence_break").split(message.content[: candidate.start + len(candidate.quote)])[-1]
    cue, third = cues(rules), ending_cue(rules.code, "third")
    last = max((found.start() for found in cue["writer"].finditer(sentence)), default=-1)
    if candidate.category == "pets":  # "my parents have no dog any more", but "my dog died"
        people = (found for found in cue["other"].finditer(sentence) if cue["person"].search(found.group()))
        return any(found.start() > last for found in people)
    trusted = ending_cue(rules.code, {"medication": "doctor", "allergy": "test"}.get(candidate.category, ""))
    if trusted is not None and trusted.search(message.content):
        return False
    if third and any(found.end() > last for found in third.finditer(sentence)):
        return True
    flaws = find_flaws(candidate, message, rules.code)
    return bool(flaws) and all(flaw == OTHER for flaw in flaws)


def _in_sentence(
    reading: Reading, wanted: Sequence[KnownValue], just: Sequence[KnownValue], stated: Sequence[Candidate]
) -> Iterator[Candidate]:
    """Yield what one sentence ends and puts in its place, each known value once."""
    sentences, latest = [one for one in wanted if one.kind == "statement"], just
    wanted, just = ([one for one in ones if one.kind == "attribute"] for ones in (wanted, just))
    corrected = list(find_amendments(reading, latest)) or list(find_corrections(reading, wanted, just))
    corrected = corrected or list(find_slips(reading, latest))
    yield from corrected
    done = {(c.subject, c.category, c.key) for c in corrected}
    rest = [one for one in wanted if one.address not in done]
    if not corrected:
        renewed = list(find_new_values(reading, [*rest, *sentences], just))
        yield from renewed
        rest = [one for one in rest if one.address not in {(c.subject, c.category, c.key) for c in renewed}]
        yield from find_new_numbers(reading, [*(one for one in rest if one.value[:1].isdecimal()), *sentences])
    ended = [
        (one, span)
        for one in rest
        if (span := _named(reading, one) or _by_its_kind(reading, one, rest, just)) is not None
    ]
    ended += _not_yet(ended, _by_event(reading, rest, just))
    ended += _with_the_animal(ended, rest)
    both = [*rest, *sentences]
    ended += [*_with_the_partner(reading, ended, both), *find_kin(reading, rest, stated)]
    yield from (reading.retract(span, one) for one, span in find_successors(reading, both, stated))
    ended += [(one, span) for one in sentences if (span := _named(reading, one)) is not None]
    ended += [(one, span) for one, span in _by_event(reading, sentences, latest) if one.kind == "statement"]
    ended += _not_yet(ended, _by_signal(reading, both))
    ended += [(one, span) for one, span in _by_its_opposite(reading, both) if (one, span) not in ended]
    ended += _not_yet(ended, _as_if_own(reading, both))
    ended += _of_one_statement(reading, ended, both)
    yield from _fewer_pets(reading, ended, rest)
    for one, span in ended:
        whole = f"{one.value} {one.text}"
        if not on_other_days(reading.text, whole) and not on_other_side(reading.text, whole):
            yield reading.retract(span, one)
            left = rest_of_list(one.text, one.names, reading.text) if one.kind == "statement" else ""
            if left:
                yield replace(reading.state(span, one, "", left), kind="statement")


def _not_yet(
    ended: Sequence[tuple[KnownValue, Span]], found: Iterable[tuple[KnownValue, Span]]
) -> list[tuple[KnownValue, Span]]:
    return [(one, span) for one, span in found if all(one is not other for other, _ in ended)]


def _as_if_own(reading: Reading, known: Sequence[KnownValue]) -> Iterator[tuple[KnownValue, Span]]:
    """Yield what ends of another by the words that end it of the user: "Ola got laid off" as "I got laid off"."""
    said = english_cue("who_did").match(reading.text) if reading.rules.code == FALLBACK else None
    subject = _whom(reading, said["who"]) if said is not None else None
    facts = [one for one in known if one.subject == subject and one.category not in ("identity", "family", "pets")]
    if said is None or not facts:
        return
    names = [re.escape(name) for name, whose in reading.others.items() if whose == subject]
    owner = re.compile(rf"^(?:Their )?(?:{'|'.join((re.escape(facts[0].subject), *names))}) ", re.IGNORECASE)
    own = {
        id(one): replace(one, subject=SELF, text=(bare := owner.sub("", one.text))[:1].upper() + bare[1:])
        for one in facts
    }
    values, text = list(own.values()), first_person(reading.text, said["who"])
    mine = replace(reading, text=text, by_label=cache(partial(_by_label, reading.rules, values)))
    attributes, statements = ([one for one in values if one.kind == kind] for kind in ("attribute", SENTENCE))
    latest = [one for one in values if one.seq]
    found = [*_by_event(mine, attributes, latest), *_by_event(mine, statements, latest), *_by_signal(mine, values)]
    found += [(one, span) for one in values if (span := _named(mine, one)) is not None]
    for one in facts:
        span = next((span for other, span in found if other is own[id(one)]), None)
        if span is not None:
            yield one, span


def _whom(reading: Reading, who: str) -> str | None:
    """Return the subject that a name or relation at the start of a sentence means, or "she", where only one is spoken of."""
    named = {whose for name, whose in reading.others.items() if name.casefold() == who.casefold()}
    others = reading.by_label().get(OTHERS, ())
    lately = [other for other in others if other.seq and 0 < reading.message.seq - other.seq <= DIRECTLY]
    if who.casefold() in ("he", "she", "they"):
        named = {one.subject for one in lately if not is_of_other_sex(reading.rules, reading.others, one.subject, who)}
    return named.pop() if len(named) == 1 else None


def _of_one_statement(
    reading: Reading, ended: Sequence[tuple[KnownValue, Span]], known: Sequence[KnownValue]
) -> list[tuple[KnownValue, Span]]:
    """Return the facts of the statements that end, which end with them: who quit Grounded is no barista there any more."""
    found = list[tuple[KnownValue, Span]]()
    for (one, span), other in product(ended, known):
        apart = other.category in _APART and not is_said(other.words, reading.text)
        new = english_cue("elsewhere_now").search(reading.message.content) if other.key == "works_as" else None
        apart = apart or new is not None
        if other.seq != one.seq or not one.seq or apart or any(other is that for that, _ in (*ended, *found)):
            continue
        if _holds(one, other) or _holds(other, one):
            found.append((other, span))
    return found


def _holds(whole: KnownValue, value: KnownValue) -> bool:
    """Whether a statement says the value of an attribute, and no other thing beside it: "Is a barista at Grounded"."""
    words = value.words.casefold()
    return (
        (whole.kind == "statement" or whole.category == "schedule")
        and (value.kind, value.subject) == ("attribute", whole.subject)
        and len(words) > _LEAST_CHARS
        and words in whole.text.casefold()
        and " and " not in whole.text
    )


_APART = frozenset("identity family home language health allergy pets".split())


def _languages(content: str, code: str | None, just: Sequence[KnownValue]) -> list[PatternLanguage]:
    """Return the languages to read *content* in: the likeliest that has words for endings, that of the facts just stated, English."""
    codes = [code] if code else likely_languages(content)
    known = [rules for rules in map(load_language, codes) if rules is not None and rules.ended][:2]
    if not code:
        codes = [*(likely_languages(just[-1].text)[:2] if just else ()), FALLBACK]
        known += [rules for rules in map(load_language, codes) if rules is not None and rules.ended]
    return list(dict.fromkeys(known))


def _named(reading: Reading, one: KnownValue) -> Span | None:
    """Return the words of a sentence that name a known value and end it."""
    folded, code, said = reading.text.casefold(), reading.rules.code, reading.said
    names: tuple[str, ...] = ()
    if any(map(folded.__contains__, one.stems)):
        names = tuple(name for name in _own_names(reading.rules, one) if name.casefold().rstrip("s") in folded)
    if said:
        names += tuple(form for name in (one.value, one.key, one.words) for form in said.get(name.casefold(), ()))
    called = same_words(code, one.words.casefold())
    if one.category == "medication":
        called = (*kind_words(code, one.key), *called, said_name(reading, one).casefold())
    names += tuple(name for name in called if name in folded)
    mortal = one.subject != SELF and (one.category not in ("identity", "life") or one.key == "age")
    if mortal and any(template.fits(reading.lowered) for template in ending_templates(code, "death", True, False)):
        whom = value_expression((*_people(reading, one), one.subject), reading.rules)
        gone = _search(reading, ending_expressions(code, "death", SELF, whom, (), reading.lowered))
        if gone is not None and not reading.stops(("death",), whom):
            return gone
    if not names:
        return None
    people, value = _people(reading, one), value_expression(names, reading.rules)
    category = SENTENCE if one.kind == "statement" else one.category
    if one.kind == "statement" and _PEOPLE & addresses_of(reading.rules.code, one.text):
        category = "family"  # people are not scrapped or replaced as things are
    if one.text.startswith(("Wears ", "Uses ")) and one.kind == "statement":
        category = "medication"  # a thing that is lost is worn again
    category = {"does_not_eat": "uneaten", "avoids": "uneaten", "dislikes": "disliked"}.get(one.key, category)
    alone = one.category in ("medication", "allergy") and one.subject != SELF
    alone = alone and len({other.subject for other in reading.by_label().get(_label_of(one), ())}) == 1
    expressions = ending_expressions(code, category, one.subject, value, people, reading.lowered, alone=alone)
    return _ending(reading, one, expressions, value)


def _people(reading: Reading, one: KnownValue) -> tuple[str, ...]:
    """Return the names of the person whom a known value is about, and "she" where the message before names no other."""
    named = tuple(sorted(name for name, subject in reading.others.items() if subject == one.subject))
    pronoun = english_cue("he_or_she").match(reading.text) if one.subject != SELF else None
    if pronoun and _whom(reading, pronoun[1]) == one.subject:
        named += (pronoun[1],)
    return named + same_words(reading.rules.code, one.subject)


def _by_signal(reading: Reading, known: Sequence[KnownValue]) -> Iterator[tuple[KnownValue, Span]]:
    """Yield the known values that a clause names beside words of change: "all my vinyl went to a charity shop"."""
    text, code = reading.text, reading.rules.code
    said = [(signal, span) for signal in change_signals(code) for span in signal.places(text, reading.lowered)]
    unless = ending_cue(code, "unchanged")
    if not said or (unless is not None and unless.search(text)):
        return
    for one in known:
        kinds = _kinds_for_signals(code, one)
        fitting = [(signal, span) for signal, span in said if signal.of & kinds]
        if not fitting:
            continue
        names = _heads(one, known)
        names += tuple(same for name in names for same in same_words(code, name.casefold()))
        names += tuple(
            form for name in (one.value, one.key, one.words) for form in reading.said.get(name.casefold(), ())
        )
        names = tuple(name for name in names if is_said(name, text) or (name.isalpha() and is_said(name[:4], text)))
        place = akin_expression(names, reading.rules)
        for named in place.finditer(text) if names else ():
            hits = [(span, one_of) for one_of, at in fitting if (span := _beside(reading, one, named, one_of, at))]
            if not hits:
                continue
            span, signal = hits[0]
            rest = place.sub(lambda name: " " * len(name[0]), text)[
                : span[1] if signal.first else named.end()
            ]  # "signed off by the physio", who is known
            if one.subject == SELF and is_told_of_another(reading.rules, rest):
                continue
            if not _keeps(reading, one, value_expression(names, reading.rules)):
                yield one, span
                break


def _by_its_opposite(reading: Reading, known: Sequence[KnownValue]) -> Iterator[tuple[KnownValue, Span]]:
    """Yield the known facts of which a sentence says what cannot be true with them: full time now, of a part-time job."""
    text = reading.text
    changed, unless = (ending_cue(reading.rules.code, name) for name in ("changed", "unchanged"))
    if changed is None or (unless is not None and unless.search(text)):
        return
    turned = changed.search(text) is not None
    for one in known:
        whole = one.text if one.kind == "statement" or not one.value else f"{one.text} {one.value}"
        for opposite in opposites(reading.rules.code, whole):
            said = [found for words in opposite.words if (found := words.search(text)) is not None]
            if not (turned or opposite.sure) or len(said) != 1 or (opposite.about and not opposite.about.search(text)):
                continue
            start, end = said[0].span()
            company = one.key.partition("_with_")[2].replace("_", " ")  # "Bob had to cancel"
            with_them = company != "" and is_said(company, text[:end])
            named = not opposite.named or with_them or any(is_said(n, text[: end + TAIL_CHARS]) for n in one.names)
            if not named or opposite.same.search(f"{text[:start]}; {text[end:]}"):
                continue
            if (with_them or _is_about(reading, one, end)) and reading.means(start, end):
                yield one, (start, end)
                break


def _is_about(reading: Reading, one: KnownValue, end: int) -> bool:
    """Whether a sentence up to *end* speaks of the one that a known value is about, be it as "she" just after."""
    whose = _WHOSE.match(one.text) if one.subject == SELF and one.kind == "statement" else None
    if one.subject == SELF and whose is None:
        text = re.sub(value_expression(one.names, reading.rules), "", reading.text[:end], flags=re.IGNORECASE)
        return not is_told_of_another(reading.rules, text)  # "Braces came off" is about nobody called Braces
    if _speaks_of(reading, one) or (whose is not None and _is_word_of(whose[1], reading.text)):
        return True
    return (
        one.seq >= reading.message.seq - DIRECTLY > 0
        and re.match(r"(?i)\W*(?:he|she|they)\b", reading.text) is not None
    )


def _beside(reading: Reading, one: KnownValue, named: re.Match[str], signal: ChangeSignal, at: Span) -> Span | None:
    """Return the words from a name to a signal, or from the signal to the name, when nothing between them parts the two."""
    text, topic = reading.text, ending_cue(reading.rules.code, "topic")
    span = min(named.start(), at[0]), max(named.end(), at[1])
    other = ending_cue(reading.rules.code, "named_other")
    if other and named[0][:1].islower() and " " not in named[0] and other.search(text[: named.start()]):
        return None  # "I ran the Paris marathon"
    if signal.first:
        fits = signal.gap.fullmatch(text, at[1], named.start()) is not None and reading.is_whole(one, named)
        fits = fits and (one.subject == SELF or _speaks_of(reading, one))
    else:
        whole = re.compile(rf"(?P<it>{re.escape(named[0])}).+", re.DOTALL).match(text, named.start())
        fits = signal.gap.fullmatch(text, named.end(), at[0]) is not None
        fits = fits and (topic is None or topic.search(text[: named.start()]) is not None)
        fits = fits and whole is not None and reading.is_whole(one, whole)
        fits = fits and (one.subject == SELF or _speaks_of(reading, one))
    return span if fits and reading.means(*span) and not reading.is_once(one, *span) else None


def _speaks_of(reading: Reading, one: KnownValue) -> bool:
    """Whether a sentence names the one that a known value is about."""
    names = one.names if one.category in ("family", "pets") else ()
    just = 0 < one.seq and reading.message.seq - one.seq <= DIRECTLY
    if just and not re.search(r"\b(?:my|our|his|her|their)\b|['’]s [a-z]", reading.text, re.IGNORECASE):
        return True  # "Ballet is out" after "My daughter does ballet"
    return any(_is_word_of(name, reading.text) for name in (one.subject, *names, *_people(reading, one)))


def _kinds_for_signals(code: str, one: KnownValue) -> frozenset[str]:
    """Return the kinds by which a signal may end a known value; none for what no everyday word of change may end."""
    if one.kind == "statement":
        if one.category == "history" or english_cue("not_held").search(one.text):
            return frozenset()
        return frozenset(("statement",)) | addresses_of(code, one.text)
    return frozenset((one.category, f"{one.category}/{one.key}")) if one.value != "false" else frozenset()


def _heads(one: KnownValue, known: Sequence[KnownValue]) -> tuple[str, ...]:
    """Return the names of a known value, and words of it that no other known value has: "vinyl" of "vinyl records"."""
    found = one.value.split() if one.kind == "attribute" and one.category in _HEADED else []
    if one.category == "medication":
        found = one.words.split()
    if one.kind == "statement" and (doing := english_cue("telling_verb").match(one.text)):
        found = [doing["verb"].lower()]
    if one.category == "goal" or one.category == "plan":
        found = [word for word in found if word[:1].isupper()]
    alone = [
        word
        for word in found
        if len(word) >= _LEAST_CHARS + 1
        and word.isalpha()
        and word.casefold() not in NO_THING
        and not any(other.address != one.address and is_said(word, f"{other.value} {other.text}") for other in known)
    ]
    return tuple(dict.fromkeys((*one.names, *alone)))


_HEADED = frozenset("possession tech hobby goal plan project health schedule work subscription medication".split())


def _own_names(rules: PatternLanguage, one: KnownValue) -> tuple[str, ...]:
    """Return the names of a known value, without the relation that a statement is about: "Their uncle" has not ended."""
    whose = _WHOSE.match(one.text) if one.kind == "statement" else None
    relations = rules.lexicons.get("relation")
    if whose is None or relations is None or relations.lookup(whose[1]) is None:
        return one.names
    return tuple(name for name in one.names if name.casefold() != whose[1].casefold())


def _ending(reading: Reading, one: KnownValue, expressions: Iterable[re.Pattern[str]], value: str) -> Span | None:
    """Return the words that end a known value, unless the sentence says something else of it."""
    found = next((found.span() for found in _matches(reading, expressions) if reading.is_whole(one, found)), None)
    return None if found is None or _keeps(reading, one, value) else found


def _keeps(reading: Reading, one: KnownValue, value: str) -> bool:
    kinds = (one.category, "any", *((f"own/{one.category}",) if one.subject == SELF else ()))
    return reading.stops(kinds, value)


def _by_its_kind(
    reading: Reading, one: KnownValue, known: Sequence[KnownValue], just: Sequence[KnownValue]
) -> Span | None:
    """Return the words that end a known value under the name of its kind: "my job", "the dog"."""
    nouns = reading.rules.ended.get("nouns", {})
    kind = nouns.get(f"{one.category}/{one.key}") or nouns.get(one.category)
    if one.category == "pets":
        kind = one.value if one.key == "has_pet" else _species(known).get(subject_name(one.value))
        kind = "|".join(map(re.escape, reading.said.get((kind or "").casefold(), ()))) or kind
    if not kind or one.subject != SELF:
        return None
    named = kind_expression(reading.rules.code, kind, "just" if one in just else "own")
    if not named.fits(reading.lowered):
        return None
    value = named.source
    alike = (other for other in known if other.subject == SELF and _group(other) == _group(one) and other is not one)
    if re.search(value, reading.text, re.IGNORECASE) is None or (one.category not in _TOGETHER and any(alike)):
        return None
    expressions = ending_expressions(reading.rules.code, one.category, SELF, value, (), reading.lowered)
    return _ending(reading, one, expressions, value)


def _group(one: KnownValue) -> tuple[str, str]:
    return (one.category, one.key if one.category in ("possession", "pets") else "")


def _species(known: Iterable[KnownValue]) -> dict[str, str]:
    return {one.subject: one.value for one in known if (one.category, one.key) == ("identity", "species")}


def _search(reading: Reading, expressions: Iterable[re.Pattern[str]]) -> Span | None:
    return next((match.span() for match in _matches(reading, expressions)), None)


def _matches(reading: Reading, expressions: Iterable[re.Pattern[str]]) -> Iterator[re.Match[str]]:
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


def _with_the_partner(
    reading: Reading, ended: Sequence[tuple[KnownValue, Span]], known: Sequence[KnownValue]
) -> Iterator[tuple[KnownValue, Span]]:
    """Yield what was said of a partner with whom it is over; who marries a girlfriend goes on with her."""
    parted = ending_cue(reading.rules.code, "parted")
    for one, span in ended if parted is not None and parted.search(reading.text) else ():
        if one.subject == SELF and one.category == "family" and one.key in _PARTNERS:
            subjects = {one.key, subject_name(one.value)}
            yield from ((other, span) for other in known if other.subject in subjects and other.category != "identity")


def _fewer_pets(
    reading: Reading, ended: Sequence[tuple[KnownValue, Span]], known: Sequence[KnownValue]
) -> Iterator[Candidate]:
    """Yield how many pets of a kind are left: one fewer after one died, or the number that "down to two cats" says."""
    lost = [(one, span) for one, span in ended if (one.category, one.key) == ("pets", "pet_named")]
    counts = [
        one for one in known if one.category == "pets" and one.key.startswith("how_many_") and one.value.isdecimal()
    ]
    species = _species(known) if counts else {}
    for count in counts:
        kind = count.key.removeprefix("how_many_").replace("_", " ")
        one_of = re.escape(kind.removesuffix("s"))
        left, span = int(count.value), (0, 0)
        for pet, place in lost:
            known_kind = species.get(subject_name(pet.value))
            if known_kind == kind.removesuffix("s") or (known_kind is None and len(counts) == 1):
                left, span = left - 1, place
        if not lost:
            told = next(_matches(reading, renewal(reading.rules.code, "count", one_of, reading.lowered)), None)
            said = told.groupdict().get("new") if told is not None else None
            if told is not None:
                span = told.span()
                left = (
                    left - 1
                    if said is None
                    else int(said)
                    if said.isdecimal()
                    else max(amounts_in_words(said), default=left)
                )
        if 0 < left < int(count.value):
            text = f"Has {left} {kind if left > 1 else kind.removesuffix('s')}."
            yield reading.state(span, count, str(left), text if reading.rules.code == FALLBACK else "")


def _by_event(
    reading: Reading, known: Sequence[KnownValue], just: Sequence[KnownValue]
) -> Iterator[tuple[KnownValue, Span]]:
    """Yield the known values that an event ends without naming them: "they let me go", "cancelled it"."""
    last = max((one.seq for one in just if one.kind == "attribute"), default=0)
    code, lowered, places = reading.rules.code, reading.lowered, {id(one): place for place, one in enumerate(known)}
    for number in events_in(code, lowered, ("now", "just") if just else ("now",)) if known else ():
        event, labels = reading.rules.ended["event"][number], reading.by_label()
        alike = {id(one): one for label in event["ends"] for one in labels.get(label, ()) if id(one) in places}
        own = [alike[one] for one in sorted(alike, key=places.__getitem__) if _ends(reading.rules, event, alike[one])]
        if not own:
            continue
        named = _names_of_event(reading, event, own)
        if OTHERS in event["ends"]:
            subjects = {one.subject for one in own}
            named = tuple(sorted(name for name, subject in reading.others.items() if subject in subjects))
        reach = DIRECTLY if {"any/*", OTHERS} & {*event["ends"]} else JUST
        recent = _one_thing([one for one in own if one in just and reading.message.seq - one.seq <= reach])
        if any(one.kind == "statement" for one in recent) and (len(recent) > 1 or recent[0].seq <= last):
            recent = []  # "it" may mean another thing
        span = _search(reading, event_expressions(code, number, "now", named, lowered))
        if span is None and recent:
            span, own = _search(reading, event_expressions(code, number, "just", named, lowered)), recent
            if span and _means_another(reading, span, own):
                continue  # "we had a cat called Tom, he died"
        own_kin = {name.casefold() for one in own for name in (one.key, *_called(code, one))}
        if span is None or is_of_kin(reading.rules, reading.text[: span[0]], own_kin):
            continue
        words = reading.text[slice(*span)].casefold()
        if OTHERS in event["ends"]:
            whom = {
                subject
                for name, subject in reading.others.items()
                if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", words)
            }
            alone = not whom and len({one.subject for one in own}) == 1
            own = [
                one
                for one in own
                if one.subject in whom
                or (alone and not is_of_other_sex(reading.rules, reading.others, one.subject, words))
            ]
        meant = [
            one
            for one in own
            if any(name.casefold() in words for name in _called(reading.rules.code, one))
            or (one.category == "family" and f"my {one.key.replace('_', ' ')}" in words)
        ]
        people = {one.value.casefold() for one in meant}
        own = [
            one
            for one in own
            if not meant
            or one in meant
            or one.value == "false"
            or one.value.casefold() in people | _STATUS
            or (one.key == "standing_request" and any(value in one.value.casefold() for value in people))
        ]
        yield from ((one, span) for one in own if not _keeps(reading, one, value_expression(one.names, reading.rules)))


def _names_of_event(reading: Reading, event: Mapping[str, Any], own: Sequence[KnownValue]) -> tuple[str, ...]:
    """Return the names that an event may say of the known values it ends."""
    if not event.get("named"):
        return ()
    whose = {*event["named"], SENTENCE}
    named = (one for one in own if {one.category, one.key, str(one.kind)} & whose)
    return tuple(sorted({name for one in named for name in _called(reading.rules.code, one)}))


def _called(code: str, one: KnownValue) -> tuple[str, ...]:
    """Return the names of a known value, and the everyday words for them: "grandad" for "grandfather"."""
    return (*one.names, *(same_words(code, one.words.casefold()) if one.category in ("family", "home") else ()))


def _means_another(reading: Reading, span: Span, recent: Sequence[KnownValue]) -> bool:
    """Whether the message itself names what "it" means: "I tried yoga but I gave it up" ends nothing known before."""
    antecedent = ending_cue(reading.rules.code, "antecedent")
    pronouns = [found.start() for found in english_cue("pronoun_thing").finditer(reading.text, *span)]
    before = reading.text[: pronouns[-1] if pronouns else span[1]]
    said = reading.message.content[: reading.offset] + before
    if antecedent is None or any(is_said(name, said) for one in recent for name in one.names):
        return False
    return antecedent.search(said) is not None


def _by_label(rules: PatternLanguage, known: Sequence[KnownValue]) -> dict[str, list[KnownValue]]:
    """Return by each label of `_ends` the facts that may have it, so that no event is held against every known fact."""
    found = dict[str, list[KnownValue]]()
    for one in known:
        labels = {f"{one.category}/{one.key}", f"{one.category}/*", f"{one.category}/{one.key}=false"}
        if one.kind == "statement":
            labels = {"statement/*", *addresses_of(rules.code, one.text)}
        elif one.key == "marital_status":
            labels.add(f"{one.key}/{one.value.casefold()}")
        elif one.key == "works_as" or one.value.casefold() in ("unemployed", "jobless"):
            labels |= {"education/studies", "work/none"}
        elif one.key in _UNEATEN:
            labels.add(_uneaten(one))
        elif one.category == "schedule":
            labels |= addresses_of(rules.code, one.text) & {"health/drinker"}
        labels.add("any/*")
        # events of the user end what is about the user, or the pregnancy of a partner
        own = one.subject == SELF or (one.key in ("is_pregnant", "due_date") and one.subject in _EXPECTING)
        own = own or (one.kind == "statement" and one.text.startswith("Their "))
        if one.subject != SELF and one.category not in ("identity", "family"):
            found.setdefault(OTHERS, []).append(one)
        for label in (*(labels if own else ()), _label_of(one)):
            found.setdefault(label, []).append(one)
    return found


def _label_of(one: KnownValue) -> str:
    """Return a label that all have who take the same medicine or are allergic to the same."""
    return f"allergic to {one.value.casefold().rstrip('s')}" if one.category == "allergy" else f"takes {one.key}"


def _one_thing(recent: Sequence[KnownValue]) -> list[KnownValue]:
    """Return the facts that "it" may mean: those of the last message that stated one, where they are of one kind."""
    last = max((one.seq for one in recent), default=0)
    latest = [one for one in recent if one.seq == last]
    named = {word for word in latest[0].words.casefold().split() if len(word) > _LEAST_CHARS} if latest else set()
    about_one = all(named & set(one.words.casefold().split()) for one in latest)
    return latest if len({one.category for one in latest}) < 2 or about_one else []


_EXPECTING = frozenset(("wife", "girlfriend", "partner", "fiancee", "fiancée"))
_PARTNERS = _EXPECTING | {"husband", "boyfriend", "spouse", "fiance", "fiancé"}
_STATUS = frozenset(("married", "engaged", "in a relationship"))
_UNEATEN = frozenset(("does_not_eat", "avoids"))


def _uneaten(one: KnownValue) -> str:
    """Return the label of what is not eaten or drunk: "food/dairy"; for alcohol, that of who does not drink it."""
    return (
        "health/drinks_alcohol=false"
        if english_cue("alcohol_word").fullmatch(one.value)
        else f"food/{one.value.casefold()}"
    )


def _ends(rules: PatternLanguage, event: Mapping[str, Any], one: KnownValue) -> bool:
    if "any/*" in event["ends"] or OTHERS in event["ends"]:
        return True
    if one.kind == "statement":
        return "statement/*" in event["ends"] or bool(addresses_of(rules.code, one.text) & set(event["ends"]))
    status = f"{one.key}/{one.value.casefold()}"
    if one.key == "marital_status" and (status in event["ends"] or one.value.casefold() not in _STATUS):
        return status in event["ends"]
    if one.value == "false":
        return f"{one.category}/{one.key}=false" in event["ends"]
    if one.key in _UNEATEN:
        return _uneaten(one) in event["ends"]
    if one.category == "schedule" and "health/drinker" in event["ends"]:
        return "health/drinker" in addresses_of(rules.code, one.text)
    if one.key == "works_as" and one.value.endswith("student") and "education/studies" in event["ends"]:
        return True
    if one.value.casefold() in ("unemployed", "jobless"):
        return "work/none" in event["ends"]
    if one.key == "lives_with" and not ({one.key, "partner"} & set(event.get("named", ()))):
        return False
    return f"{one.category}/{one.key}" in event["ends"] or f"{one.category}/*" in event["ends"]
