"""
Changes of what is known: what a message ends (`endings`), puts right (`corrections`), or gives a new value (`new_values`).

A `Reading` is one sentence of a message beside what is known.  Words: ``patterns/ended_*.toml``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ...scope import SELF
from ...text import dataclass, expression, plainly_lowered
from ...types import Candidate, Message
from ..authorship import BLANK
from ..clauses import judge
from ..grammar import PatternLanguage, ending_cue, english_cue, lexicon_words, stopping_expressions
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
