"""
Changes of what is known: what a message ends (`endings`), puts right (`corrections`), or gives a new value (`new_values`).

A `Reading` is one sentence of a message beside what is known; the functions below it say whom a sentence is about.  Words: ``patterns/ended_*.toml``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from ...scope import SELF
from ...text import dataclass, expression, plainly_lowered
from ...types import Candidate, Message
from ..authorship import BLANK
from ..clauses import judge
from ..grammar import PatternLanguage, cues, ending_cue, english_cue, lexicon_words, stopping_expressions
from ..mentions import subject_name, without_owner
from ..rules import FACT_SOURCE
from ..second_look import KnownValue

CONFIDENCE = 0.85
NUMBER = expression(r"\d+(?:[.,]\d+)?")
NAME = expression(r"\b[A-Z][\w-]+")
ISO_DAY = expression(r"\((\d{4})-(\d\d)-\d\d\)")
_HABITS = frozenset(("behavioral", "schedule", "hobby", "preference", "appointment", "food"))
_KINDS = frozenset(("medication", "tech", "food", "preference", "allergy", "language", "hobby"))


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


def is_in(words: str, sentence: str) -> bool:
    return words.casefold().rstrip("s") in sentence.casefold()


def is_told_of_another(rules: PatternLanguage, text: str) -> bool:
    """Whether the person that a sentence mentions last is neither the user nor a doctor or nurse of the user."""
    said = cues(rules)
    if "carer" not in said:
        return False
    for carer in (said["carer"], _DR):
        text = carer.sub(lambda one: " " * len(one[0]), text)
    people = [
        found.start()
        for found in said["person"].finditer(text)
        if not english_cue("carers").fullmatch(found[0]) and not text[: found.start()][-1:].isalpha()
    ]
    named = [found for found in said["other"].finditer(text) if not _SOMEONE.match(found[0])]
    own = (
        found.start()
        for found in _OWN.finditer(text)
        if not any(re.fullmatch(r"\s(?:[\w-]+ ){0,2}", text[found.end() : at]) for at in people if at > found.end())
    )
    return max((*people, *(found.start() for found in named)), default=-1) > max(own, default=-1)


_DR = expression(r"\b(?:dr|doctor|prof)\.? (?-i:[A-Z])[\w-]+", re.IGNORECASE)
_SOMEONE = expression(r"(?:he|she|they|you|who|it)\b", re.IGNORECASE)  # "they've doubled it" says nothing of whom
_OWN = expression(r"\b(?:i|i['’]?(?:m|ve|d|ll)|me|we|we['’](?:re|ve)|us|my|our)\b", re.IGNORECASE)


def is_of_other_sex(rules: PatternLanguage, others: Mapping[str, str], subject: str, words: str) -> bool:
    """Whether a pronoun cannot mean the one a fact is about: "he stopped it" after "my mum takes metformin"."""
    kin = {subject} | {name for name, whose in others.items() if whose == subject}
    female, male = (set(str(rules.people.get(sex, "")).split()) for sex in ("female", "male"))
    said = set(_WORDS.findall(words.casefold()))
    return bool(kin & female and "he" in said) or bool(kin & male and "she" in said)


_WORDS = expression(r"[^\W\d_]+")


def speaks_of_kin(rules: PatternLanguage, others: Mapping[str, str], subject: str, before: str) -> bool:
    """Whether the words before a pronoun are about a relative of another: "his sister Nora can eat it, she's 8"."""
    relations = rules.lexicons.get("relation")
    found = (
        [relations.lookup(kin["kin"].casefold()) for kin in english_cue("their_kin").finditer(before)]
        if relations
        else []
    )
    return any(kin is not None and others.get(kin) != subject for kin in found)


def is_namesake(rules: PatternLanguage, others: Mapping[str, str], subject: str, before: str) -> bool:
    """Whether the words before a name make it another one of that name: "my niece Ella", where Ella is the daughter."""
    relations, words = rules.lexicons.get("relation"), before.split()
    relation = relations.lookup(words[-1].casefold()) if relations and words else None
    return relation is not None and others.get(relation) != subject


_AS_I_SAY = (
    (r"(?<!\w)(?:my )?{who}(?: has|['’]?s been)(?!\w)", "i have"),
    (r"(?<!\w)(?:my )?{who}['’]?s(?!\w)", "i'm"),
    (r"(?<!\w)(?:my )?{who}(?!\w)", "i"),
    (r"(?<!\w)doesn['’]?t(?!\w)", "don't"),
    (r"(?<!\w)(?:his|her|their)(?!\w)", "my"),
)


def first_person(text: str, who: str) -> str:
    """Return a sentence about another as the user would say it, each character at its place: "   I got laid off"."""
    for source, own in _AS_I_SAY:
        said = re.compile(source.format(who=re.escape(who)), re.IGNORECASE)
        text = said.sub(partial(_in_width, own), text)
    return _THIRD_S.sub(r"\1 ", text)  # "i eats meat"


_THIRD_S = expression(
    r"(?<=\bi )(?!(?:was|is|as|has|does|goes|always|this|us|perhaps|sometimes)\b)([a-z]{2,}[^\Ws])s(?= )", re.IGNORECASE
)


def _in_width(words: str, found: re.Match[str]) -> str:
    return words.rjust(len(found[0]))


def is_of_kin(rules: PatternLanguage, before: str, but: set[str]) -> bool:
    """Whether words name another as who something happened to, none of *but*: "Marek's parents", "my roommate is"."""
    last = _LAST_PERSON.search(before)
    return (
        last is not None
        and last["who"].casefold() not in but
        and cues(rules)["person"].fullmatch(last["who"]) is not None
    )


_LAST_PERSON = expression(
    r"(?P<who>[\w-]+?)(?:['’]s|['’]re| is| are| was| were| has| have| just| went| goes| got| been| now)*\s+$",
    re.IGNORECASE,
)


def is_anothers(rules: PatternLanguage, subject: str, before: str) -> bool:
    """Whether the words before a new value name what another person has: "the neighbor's dog is down to 27 kilos"."""
    of_others = ending_cue(rules.code, "of_others")
    found = of_others.search(before) if of_others else None
    of_relative = ending_cue(rules.code, "of_relative") if subject == SELF else None
    return (of_relative is not None and of_relative.search(before) is not None) or (
        found is not None and (subject == SELF or subject.casefold() == (found["what"] or subject).casefold())
    )


def subject_of(rules: PatternLanguage, others: Mapping[str, str], words: str) -> str:
    """Return the subject that a name, "me" or "my sister" means."""
    name = words.casefold()
    if english_cue("myself").fullmatch(name):
        return SELF
    bare, relations = without_owner(name), rules.lexicons.get("relation")
    kin = relations.lookup(words.rpartition(" ")[2]) if relations is not None and " " in words else None
    return others.get(name) or others.get(bare) or subject_name(kin or bare)


_SIDE = expression(
    r"\b(left|right) (?=(?:eye|ear|knee|arm|leg|hand|foot|shoulder|hip|ankle|wrist|elbow|side|breast|lung|kidney|thumb|thigh|calf|heel|toe)s?\b)",
    re.IGNORECASE,
)


def on_other_side(text: str, fact: str) -> bool:
    """Whether a sentence is about the right eye and a fact about the left one."""
    said, known = ({side.casefold() for side in _SIDE.findall(words)} for words in (text, fact))
    return bool(said and known) and not said & known
