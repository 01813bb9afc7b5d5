"""
The words with which each language names times.

``WORDS[code]`` is one `DateWords`.  A language is added by adding an entry: the vocabularies are
given as ``word word …`` strings, the phrases as expressions in which ``{n}`` stands for a number,
``{unit}``, ``{weekday}`` (``{dayname}``: only the first word of each), ``{month}``, ``{season}``, ``{year}``, ``{day}`` (1 to 31, with its ordinal
ending) and ``{clock}`` for what their names say, and a space for any white space.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class DateWords:
    """
    One language.

    ``units``: day, week, month, year, hour, minute, weekend → their words.  ``numbers``: word → number.
    ``days``: phrases for a whole day → its distance from today in days.  ``weekdays`` and ``months``:
    seven and twelve strings, from Monday and January.  ``seasons``: spring, summer, autumn, winter.
    ``phrases``: rule → expressions; the rules are those of `holdfast.text.dates`.  ``past``: an
    expression found in sentences about the past.  ``day_first``: whether 3/5/2024 is 3 May.
    ``spaced``: whether words stand apart.
    """

    units: Mapping[str, str]
    numbers: Mapping[str, float]
    days: Mapping[str, int]
    weekdays: tuple[str, ...]
    months: tuple[str, ...]
    seasons: tuple[str, ...] = ("", "", "", "")
    ordinal: str = ""
    phrases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    past: str = r"(?!)"
    since: str = ""
    until: str = ""
    day_first: bool = True
    spaced: bool = True


ENGLISH = DateWords(
    units={
        "minute": "minute minutes min mins",
        "hour": "hour hours hr hrs",
        "day": "day days",
        "week": "week weeks wk wks",
        "weekend": "weekend weekends",
        "month": "month months",
        "year": "year years yr yrs",
    },
    numbers={
        "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
        "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30,
        "a couple of": 2, "a couple": 2, "couple of": 2, "a few": 3, "few": 3, "several": 4, "half a": 0.5, "half an": 0.5,
    },
    days={
        "the day before yesterday": -2, "day before yesterday": -2, "yesterday": -1, "today": 0, "this morning": 0,
        "this afternoon": 0, "this evening": 0, "tonight": 0, "tomorrow": 1, "tmrw": 1, "the day after tomorrow": 2,
        "day after tomorrow": 2,
    },
    weekdays=(
        "monday mon", "tuesday tues tue", "wednesday wed", "thursday thurs thur thu", "friday fri", "saturday", "sunday",
    ),
    months=(
        "january jan", "february feb", "march mar", "april apr", "may", "june jun", "july jul", "august aug",
        "september sept sep", "october oct", "november nov", "december dec",
    ),
    seasons=("spring", "summer", "fall autumn", "winter"),
    ordinal=r"(?:st|nd|rd|th)?",
    phrases={
        "ago": ("{n} {unit} ago", "{n} {unit} back", "{n} {unit} earlier"),
        "ahead": ("in {n} {unit}(?! of| row| time zones?)", "{n} {unit} from (?:now|today)", "within {n} {unit}"),
        "for": ("(?:for|over) (?:the (?:last|past) |about |almost |nearly |over |more than )?{n} {unit}(?: now)?",),
        "past_n": ("(?:in |over |during )?the (?:last|past) {n} {unit}", "(?:last|past) {n} {unit}"),
        "last": ("(?:last|the past|this past) {unit}",),
        "this": ("(?:this|the current|later this|earlier this) {unit}",),
        "next": ("(?:the )?(?:next|coming|following|upcoming) {unit}",),
        "last_night": ("last night|last evening",),
        "last_weekday": ("(?:last|this past) {weekday}",),
        "next_weekday": ("(?:next) {weekday}",),
        "weekday": (
            "(?:on |this |coming |this coming |by ){weekday}(?: morning| afternoon| evening| night)?",
            "{dayname}(?: morning| afternoon| evening| night)?",
        ),
        "last_season": ("last {season}",),
        "this_season": ("this {season}",),
        "next_season": ("next {season}",),
        "season": ("(?:in |during )?(?:the )?{season}(?: of|,)? {year}",),
        "day": (
            "(?:on )?(?:the )?{day}(?: of)? {month}(?:,? {year})?",
            "(?:on )?{month} (?:the )?{day}(?!\\d|:)(?:,? {year})?",
        ),
        "day_only": ("on the {day}(?= |[.,;!?]|$)(?! (?:floor|row|page|street|day|of|time|grade|anniversary))",),
        "month_year": ("(?:in |during |early |late |mid-?)?{month}(?: of|,)? {year}",),
        "month": ("(?:in|during|by|until|since|last|next|this|early|late|mid-?|end of|beginning of) {month}",),
        "year": ("(?:in|during|since|until|by|from|of|early|late|back in|year) {year}",),
        "clock": ("(?:at |around |by )?{clock}",),
    },
    past=r"\b(?:was|were|went|had|did|got|saw|met|bought|came|took|made|said|ago|last|left|began|started|moved|happened|"
    r"\w{3,}ed)\b",
    since=r"\b(?:ever )?since\s+(?:about |around |early |late |the )?$",
    until=r"\b(?:until|till|til|through|by)\s+(?:the )?$",
    day_first=False,
)  # fmt: skip

WORDS: dict[str, DateWords] = {"en": ENGLISH}
