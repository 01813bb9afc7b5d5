"""
Summaries without a model: chunk → level 1, several of level n → level n+1.

A level-1 summary is made of sentences that were said, each under the name of who said it, in the
order in which they were said.  A higher one says which themes and concerns come back, which go
together, and how the story went: first, later, now.  Nothing is inferred and nothing is reworded;
what is missing inside a sentence shows as "…".  The same messages give the same summary.

Each statement stands under its speaker, ``[2026-03-14] Priya: …``; the date (UTC) stands where it
changes, because people say "yesterday".  Tools are named, their results are not quoted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ..types import Message
from .chunk import count_exchanges
from .draft import SOURCE, Statement, SummaryDraft, ended, lines_of
from .phrases import themes
from .plain import shorten
from .rollup import summarize_level
from .salience import Reading, Unit, cosine, read, select, speaker_of

__all__ = ["SummaryDraft", "summarize_chunk", "summarize_level"]

# Words of a level-1 text: this share of what was said, between the bounds.
SHARE, LEAST_WORDS, MOST_WORDS = 0.62, 60.0, 105.0
# Of those words, at most so much for one side of a talk with an assistant.
USER_SHARE, ASSISTANT_SHARE = 0.8, 0.5
LEAST_SCORE = 0.45
MAX_CONCERNS, MAX_ACTIONS, ITEM_WORDS, LEAST_ITEM_WORDS = 3, 4, 18.0, 3.5
ASSISTANT_THEME_WEIGHT = 0.35
SAME = 0.6
FALLBACK_SENTENCES = 2
TOOL_WORDS = 12.0


def summarize_chunk(messages: Sequence[Message]) -> SummaryDraft:
    """
    The story of *messages* in their own words: some 60 to 120 words of ordinary chat, never many more.

    ``themes`` are phrases that were used, ``concerns`` what users said of troubles and feelings,
    ``actions`` plans, decisions and advice with the name of who spoke.
    """
    reading = read(messages)
    budget = min(MOST_WORDS, max(LEAST_WORDS, SHARE * reading.total_words))
    speaking = len({unit.message for unit in reading.units}) or 1
    chosen = select(
        reading.units,
        budget,
        per_message=max(2, math.ceil(8 / speaking)),
        least=LEAST_SCORE,
        enough_words=LEAST_WORDS,
        shares={"user": USER_SHARE, "assistant": ASSISTANT_SHARE} if reading.users and reading.has_assistant else {},
    )
    return SummaryDraft(
        text=_text(chosen, reading, messages),
        themes=_themes(reading),
        concerns=_concerns(reading),
        actions=_actions(reading),
        exchanges=count_exchanges(messages),
        source=SOURCE,
    )


def _text(chosen: Sequence[Unit], reading: Reading, messages: Sequence[Message]) -> str:
    """The chosen sentences and the tools that were used, in the order of the messages."""
    units = list(chosen) or reading.units[:FALLBACK_SENTENCES]
    events: list[tuple[int, Statement, bool]] = [
        (unit.message, Statement(unit.date, unit.speaker, unit.text), False) for unit in units
    ]
    for index, tools in reading.tools.items():
        date = messages[index].at
        who = f"{speaker_of(messages[index])} {reading.words.labels['called']}".rstrip(":")
        events.append((index, Statement(date.date().isoformat() if date else "", who, ", ".join(tools)), True))
    events.sort(key=lambda event: event[0])
    merged: list[tuple[Statement, bool]] = []
    for _, statement, tool in events:
        if tool and merged and merged[-1][1] and merged[-1][0].speaker == statement.speaker:
            names = dict.fromkeys([*merged[-1][0].text.split(", "), *statement.text.split(", ")])
            merged[-1] = (Statement(merged[-1][0].date, statement.speaker, ", ".join(names)), True)
        else:
            merged.append((statement, tool))
    lines = lines_of(
        Statement(s.date, s.speaker, shorten(s.text, TOOL_WORDS, reading.words) if tool else s.text)
        for s, tool in merged
    )
    return "\n".join(lines) or reading.words.labels["nothing"]


def _themes(reading: Reading) -> tuple[str, ...]:
    said = [
        (unit.message, unit.text.replace("…", " "), 1.0 if unit.role == "user" else ASSISTANT_THEME_WEIGHT)
        for unit in reading.units
        if "empty" not in unit.signs
    ]
    return themes(said, reading.words, {unit.speaker for unit in reading.units})


def _concerns(reading: Reading) -> tuple[str, ...]:
    """What users said of troubles and feelings; with a name where more than one user speaks."""

    named = len(reading.users) > 1

    def weight(unit: Unit) -> float:
        if unit.role != "user" or unit.signs & {"calm", "supposed"} or ("empty" in unit.signs and unit.words < 14):
            return 0.0
        if unit.words < LEAST_ITEM_WORDS + 2 * unit.question and "feeling" not in unit.signs:
            return 0.0
        if not reading.has_assistant and named and "self" not in unit.signs:
            return 0.0  # people who talk with one another also talk of the world
        found = 0.7 * ("feeling" in unit.signs) + 0.5 * ("problem" in unit.signs)
        own = 0.3 * ("self" in unit.signs) - 0.25 * unit.question
        return found + own + 0.1 * unit.score if found else 0.0

    return tuple(f"{unit.speaker}: {text}" if named else text for unit, text in _best(reading, weight, MAX_CONCERNS))


def _actions(reading: Reading) -> tuple[str, ...]:
    """Plans, promises and decisions of users, advice of the assistant: by whom."""

    def weight(unit: Unit) -> float:
        if unit.question or "supposed" in unit.signs or ("empty" in unit.signs and unit.words < 10):
            return 0.0
        if unit.role == "assistant":
            return 0.5 + 0.3 * unit.score if "recommend" in unit.signs and unit.words >= LEAST_ITEM_WORDS else 0.0
        if "self" not in unit.signs or not {"decision", "promise"} & unit.signs:
            return 0.0
        return 0.6 * ("decision" in unit.signs) + 0.6 * ("promise" in unit.signs) + 0.3 * unit.score

    return tuple(f"{unit.speaker}: {text}" for unit, text in _best(reading, weight, MAX_ACTIONS))


def _best(reading: Reading, weight: Callable[[Unit], float], most: int) -> list[tuple[Unit, str]]:
    """The weightiest units that differ from one another, as said in at most a line, oldest first."""
    ranked = sorted(((weight(unit), unit) for unit in reading.units), key=lambda pair: (-pair[0], pair[1].place))
    kept: list[Unit] = []
    for value, unit in ranked:
        if value <= 0 or len(kept) == most:
            break
        if all(cosine(unit.terms, other.terms) < SAME for other in kept):
            kept.append(unit)
    kept.sort(key=lambda unit: unit.place)
    return [(unit, ended(shorten(unit.text, ITEM_WORDS, reading.words))) for unit in kept]
