"""
Summaries by rules, without a model: chunk → level 1, several of level n → level n+1.

A level-1 summary is made of sentences that were said, each under the name of who said it, in the
order in which they were said.  A higher one says which themes and concerns come back, which go
together, and how the story went: first, later, now.  Nothing is inferred and nothing is reworded;
what is missing inside a sentence shows as "…".  The same messages give the same summary.

Each statement follows its speaker, ``[2026-03-14] Priya: …``; the date (UTC) appears where it
changes, because people say "yesterday".  Tools are named, their results are not quoted.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from ..text import dataclass, expression
from ..text.sentences import split_sentences
from ..text.terms import count_tokens, language_of, terms
from ..types import Message, RollingSummary, Story, StoryLine, StorySource, Summary
from .chunk import BLOCK_MESSAGES, count_exchanges, is_courtesy, labels_of, most_tokens, split_blocks
from .salience import (
    ASSISTANT,
    EMPTY,
    NAME,
    NEWS_SHARE,
    NEWS_WORDS,
    NUMBER,
    SENTENCE_WORDS,
    SUPPOSED,
    WORTH,
    ChatReading,
    SalienceWords,
    Unit,
    cosine,
    is_news,
    length_factor,
    load_salience_words,
    newest,
    own,
    read,
    select,
    shorten,
    size,
    speaker_of,
    themes,
    with_full_stop,
)

__all__ = ["SummaryDraft", "summarize_chunk", "summarize_level"]

# Words of a level-1 text: this share of what was said, between the bounds.
SHARE, LEAST_WORDS, MOST_WORDS = 0.62, 60.0, 105.0
# Of those words, at most so much for one side of a talk with an assistant.
USER_SHARE, ASSISTANT_SHARE = 0.8, 0.5
MIN_SENTENCE_SCORE = 0.45
CHUNK_ITEM_WORDS, LEAST_ITEM_WORDS = 18.0, 3.5
MAX_CONCERNS, MAX_ACTIONS = 3, 4
ASSISTANT_THEME_WEIGHT = 0.35
SAME = 0.6
FALLBACK_SENTENCES = 2
# Where the text is more than a third of what was said, it is chosen again with fewer words, down to a sentence.
LESS, LEAST_CHOSEN_WORDS = 0.85, 16.0
TOOL_WORDS = 12.0


def summarize_chunk(messages: Sequence[Message]) -> SummaryDraft:
    """
    Summarize *messages* in their own words: some 60 to 120 words of ordinary chat.

    ``themes`` are phrases that were used, ``concerns`` what users said of troubles and feelings,
    ``actions`` plans, decisions and advice with the name of who spoke.
    """
    reading = read(messages)
    most = most_tokens(sum(count_tokens(message.content) for message in messages))
    words = min(MOST_WORDS, max(LEAST_WORDS, SHARE * reading.total_words))
    text = _chunk_text(_chosen(reading, words), reading, messages)
    while count_tokens(text) > most and words >= LEAST_CHOSEN_WORDS:
        words *= LESS
        text = _chunk_text(_chosen(reading, words), reading, messages)
    draft = SummaryDraft(
        text=text,
        themes=_themes(reading),
        concerns=_concerns(reading),
        actions=_actions(reading),
        exchanges=count_exchanges(messages),
        source=SUMMARY_SOURCE,
    )
    return without_least_items(draft, most)


def _chosen(reading: ChatReading, words: float) -> list[Unit]:
    """Choose sentences of together some *words*; what one says again is said once."""
    news = newest(reading.units, words)
    said = {(unit.speaker, unit.text.casefold()): unit for unit in (*reversed(reading.units), *news)}
    units = sorted(said.values(), key=lambda unit: unit.place)
    speaking = len({unit.message for unit in reading.units}) or 1
    return select(
        units,
        words,
        first=news,
        per_message=max(2, math.ceil(8 / speaking)),
        least=MIN_SENTENCE_SCORE,
        enough_words=min(words, LEAST_WORDS),
        shares={"user": USER_SHARE, "assistant": ASSISTANT_SHARE} if reading.users and reading.has_assistant else {},
    )


def _chunk_text(chosen: Sequence[Unit], reading: ChatReading, messages: Sequence[Message]) -> str:
    """Format the chosen sentences and the used tools, in the order of the messages."""
    greeted = any(unit.role == "user" for unit in reading.units)  # where all is forgotten but "I see.", nothing is left
    units = chosen or [unit for unit in reading.units if greeted or not is_courtesy(unit.text)][:FALLBACK_SENTENCES]
    events: list[tuple[int, SpokenSentence, bool]] = [
        (unit.message, SpokenSentence(unit.date, unit.speaker, unit.text), False) for unit in units
    ]
    for index, tools in reading.tools.items():
        date = messages[index].at
        who = f"{speaker_of(messages[index])} {reading.words.labels['called']}".rstrip(":")
        events.append((index, SpokenSentence(date.date().isoformat() if date else "", who, ", ".join(tools)), True))
    events.sort(key=lambda event: event[0])
    merged: list[tuple[SpokenSentence, bool]] = []
    for _, statement, tool in events:
        if tool and merged and merged[-1][1] and merged[-1][0].speaker == statement.speaker:
            names = dict.fromkeys([*merged[-1][0].text.split(", "), *statement.text.split(", ")])
            merged[-1] = (SpokenSentence(merged[-1][0].date, statement.speaker, ", ".join(names)), True)
        else:
            merged.append((statement, tool))
    lines = format_sentences(
        SpokenSentence(s.date, s.speaker, shorten(s.text, TOOL_WORDS, reading.words) if tool else s.text)
        for s, tool in merged
    )
    return "\n".join(lines) or reading.words.labels["nothing"]


def _themes(reading: ChatReading) -> tuple[str, ...]:
    said = [
        (unit.message, unit.text.replace("…", " "), 1.0 if unit.role == "user" else ASSISTANT_THEME_WEIGHT)
        for unit in reading.units
        if "empty" not in unit.signs
    ]
    return themes(said, reading.words, {unit.speaker for unit in reading.units})


def _concerns(reading: ChatReading) -> tuple[str, ...]:
    """Return users' troubles and feelings, with a name where more than one user speaks."""

    named = len(reading.users) > 1

    def weight(unit: Unit) -> float:
        if unit.role != "user" or unit.signs & {"calm", "supposed"} or ("empty" in unit.signs and unit.words < 14):
            return 0.0
        if "other" in unit.signs and not unit.signs & {"problem", "alarm"}:
            return 0.0  # compassion
        if unit.words < LEAST_ITEM_WORDS + 2 * unit.question and "feeling" not in unit.signs:
            return 0.0
        if not reading.has_assistant and named and "self" not in unit.signs:
            return 0.0  # people who talk with one another also talk of the world
        found = 0.7 * ("feeling" in unit.signs) + 0.5 * ("problem" in unit.signs) + 0.8 * ("alarm" in unit.signs)
        own = 0.3 * ("self" in unit.signs) - 0.25 * unit.question
        return found + own + 0.1 * unit.score if found else 0.0

    return tuple(f"{unit.speaker}: {text}" if named else text for unit, text in _best(reading, weight, MAX_CONCERNS))


def _actions(reading: ChatReading) -> tuple[str, ...]:
    """Return users' plans, promises and decisions and the assistant's advice, with names."""

    def weight(unit: Unit) -> float:
        idle = unit.words < LEAST_ITEM_WORDS or ("empty" in unit.signs and unit.words < 10)  # "I will!"
        if unit.question or "supposed" in unit.signs or idle:
            return 0.0
        if unit.role == "assistant":
            advice = {"recommend", "alarm"} & unit.signs
            return 0.5 + 0.3 * unit.score if advice else 0.0
        if "self" not in unit.signs or not {"decision", "promise"} & unit.signs:
            return 0.0
        return 0.6 * ("decision" in unit.signs) + 0.6 * ("promise" in unit.signs) + 0.3 * unit.score

    return tuple(f"{unit.speaker}: {text}" for unit, text in _best(reading, weight, MAX_ACTIONS))


def _best(reading: ChatReading, weight: Callable[[Unit], float], most: int) -> list[tuple[Unit, str]]:
    """Return the weightiest units that differ from one another, a line each at most, oldest first."""
    ranked = sorted(((weight(unit), unit) for unit in reading.units), key=lambda pair: (-pair[0], pair[1].place))
    kept: list[Unit] = []
    for value, unit in ranked:
        if value <= 0 or len(kept) == most:
            break
        if all(cosine(unit.terms, other.terms) < SAME for other in kept):
            kept.append(unit)
    kept.sort(key=lambda unit: unit.place)
    return [(unit, with_full_stop(shorten(unit.text, CHUNK_ITEM_WORDS, reading.words))) for unit in kept]


SUMMARY_SOURCE = "rules 1"
STORY_SHOWN_TOKENS = 8_000  # of summaries that one call of a model makes a story of, the newest


@dataclass(frozen=True, slots=True)
class SummaryDraft:
    """A summary not yet stored: its text and lists, and ``source``, its author."""

    text: str
    themes: tuple[str, ...]
    concerns: tuple[str, ...]
    actions: tuple[str, ...]
    exchanges: int
    source: str


@dataclass(frozen=True, slots=True)
class SpokenSentence:
    """A sentence with its speaker and day (ISO, ``""`` when unknown)."""

    date: str
    speaker: str
    text: str


def format_sentences(statements: Iterable[SpokenSentence], day: str = "") -> list[str]:
    """
    Format a line for each run of sentences by one speaker on one day.

    A date is written where it changes; *day* is the last one written before.
    """
    lines: list[str] = []
    last = SpokenSentence("", "", "")
    for statement in statements:
        if lines and (statement.date, statement.speaker) == (last.date, last.speaker):
            lines[-1] += " " + with_full_stop(statement.text)
        else:
            stamp = f"[{statement.date}] " if statement.date and statement.date != day else ""
            who = f"{statement.speaker}: " if statement.speaker else ""
            lines.append(stamp + who + with_full_stop(statement.text))
        last, day = statement, statement.date or day
    return lines


REPEATED = 0.7  # the share of an item's words that the text has to hold for the item to add nothing


def summary_tokens(summary: SummaryDraft | Summary) -> int:
    """Count the tokens of a summary's text and lists."""
    items = (*summary.themes, *summary.concerns, *summary.actions)
    return count_tokens(summary.text) + sum(map(count_tokens, items))


def without_least_items(draft: SummaryDraft, most: int) -> SummaryDraft:
    """
    Return the draft with at most *most* tokens, as far as leaving out items of its lists can do that.

    Items that say nothing beyond the text go first, then themes, the longest actions and the longest concerns; of each
    list one item stays, so that a mood or an advice can be asked for by itself.  Contexts show the text alone.
    """
    said = set(terms(draft.text))

    def repeats(item: str) -> bool:
        words = terms(item.partition(": ")[2] or item)
        return bool(words) and sum(word in said for word in words) >= REPEATED * len(words)

    lists = {name: list(getattr(draft, name)) for name in ("actions", "concerns", "themes")}
    order = [(name, item) for name in ("actions", "concerns") for item in lists[name] if repeats(item)]
    order += [("themes", item) for item in reversed(lists["themes"][1:])]
    for name in ("actions", "concerns"):
        order += sorted(((name, item) for item in lists[name]), key=lambda pair: -len(pair[1]))
    tokens = summary_tokens(draft)
    for name, item in order:
        if tokens <= most:
            break
        if item in lists[name] and len(lists[name]) > 1:
            lists[name].remove(item)
            tokens -= count_tokens(item)
    themes, concerns, actions = (tuple(lists[name]) for name in ("themes", "concerns", "actions"))
    return replace(draft, themes=themes, concerns=concerns, actions=actions)


STORY_WORDS, LEVEL_ITEM_WORDS = 120.0, 20.0
STORY_SHARE = 0.5  # words of the story for each token that the summary may have; the rest is what comes back
MAX_THEMES, MAX_PAIRS = 5, 2
MAX_PARTS = 6
ALIKE = 0.34
MIN_STORY_SCORE = 0.4
LAST_OF_SERIES = 0.05  # what the newest of several sentences gains that say much the same
ADVISED = 0.5  # what a line of a story gains that says what was to be done: what was tried belongs to what came of it
_STAMP = expression(r"\[(\d{4}-\d{2}-\d{2})\]\s*")
_SPEAKER = expression(r"([^\n:]{1,60}): (?=\S)")
_LABEL = expression(r"([^\n:()]{1,30}) \(\d+(?:[–/]\d+)?\): ")


@dataclass(slots=True)
class _ChildLine:
    """One sentence of a child summary that the story may use."""

    child: int
    place: int
    statement: SpokenSentence
    terms: Counter[str]
    words: float
    score: float = 0.0
    worth: float = 0.0  # beside its words


def summarize_level(summaries: Sequence[Summary]) -> SummaryDraft:
    """
    Summarize adjacent *summaries* of one level, oldest first.

    ``themes`` are the children's themes that come back most, ``concerns`` those that come back or
    came last, ``actions`` the latest ones.  The text stays within some 200 words at any level.
    """
    children = sorted(summaries, key=lambda child: child.start_seq)
    words = load_salience_words(language_of(" ".join(child.text[:200] for child in children)[:400]))
    bags = [_bag(child, words) for child in children]
    counted = _recurring_themes(children, bags, words)
    concerns = _recurring_concerns(children, words)
    text = _level_text(children, counted, concerns, bags, words)
    draft = SummaryDraft(
        text=text or words.labels["nothing"],
        themes=tuple(theme for theme, _ in counted[:MAX_THEMES]),
        concerns=tuple(concern for concern, _ in concerns),
        actions=_latest_actions(children, words),
        exchanges=sum(child.exchanges for child in children),
        source=SUMMARY_SOURCE,
    )
    return without_least_items(draft, most_tokens(sum(map(summary_tokens, children))))


def _bag(child: Summary, words: SalienceWords) -> Counter[str]:
    return Counter(terms("\n".join((child.text, *child.themes, *child.concerns, *child.actions)), words.language))


def _recurring_themes(
    children: Sequence[Summary], bags: Sequence[Counter[str]], words: SalienceWords
) -> list[tuple[str, list[int]]]:
    """Return ``(theme, number of children with it)``, the most frequent first, then by appearance."""
    lines = [line for index, child in enumerate(children) for line in _offers(child, index, words)]
    across = themes(
        [(line.child, line.statement.text, 1.0) for line in lines], words, {line.statement.speaker for line in lines}
    )
    found: list[tuple[str, frozenset[str], list[int]]] = []
    for theme in [theme for child in children for theme in child.themes] + list(across):
        stems = frozenset(terms(theme, words.language))
        if not stems or any(stems <= other or other <= stems for _, other, _ in found):
            continue
        found.append((theme, stems, [i for i, bag in enumerate(bags) if all(stem in bag for stem in stems)]))
    order = sorted(range(len(found)), key=lambda i: (-len(found[i][2]), i))
    return [(found[i][0], found[i][2]) for i in order]


def _recurring_concerns(children: Sequence[Summary], words: SalienceWords) -> list[tuple[str, int]]:
    """Return ``(concern in its latest words, number of children with it)``: recurring ones, then the latest."""
    groups: list[tuple[str, Counter[str], set[int]]] = []
    for index, child in enumerate(children):
        for concern in (_item(each, child, words) for each in child.concerns):
            bag = Counter(terms(concern, words.language))
            near = max(range(len(groups)), key=lambda i: cosine(bag, groups[i][1]), default=None)
            if near is not None and cosine(bag, groups[near][1]) >= ALIKE:
                groups[near] = (concern, groups[near][1] + bag, groups[near][2] | {index})
            else:
                groups.append((concern, bag, {index}))
    order = sorted(range(len(groups)), key=lambda i: (-len(groups[i][2]), -max(groups[i][2]), i))
    return [(groups[i][0], len(groups[i][2])) for i in order[:MAX_CONCERNS]]


def _item(text: str, child: Summary, words: SalienceWords) -> str:
    """Return a concern or an action of *child*; ours are short enough."""
    return text if child.source == SUMMARY_SOURCE else with_full_stop(shorten(text, LEVEL_ITEM_WORDS, words))


def _latest_actions(children: Sequence[Summary], words: SalienceWords) -> tuple[str, ...]:
    """Return the last actions of the last children, in order, each once."""
    kept: list[tuple[str, Counter[str]]] = []
    for child in reversed(children):
        for action in reversed(child.actions):
            bag = Counter(terms(action, words.language))
            if len(kept) < MAX_ACTIONS and all(cosine(bag, other) < 0.6 for _, other in kept):
                kept.append((_item(action, child, words), bag))
    return tuple(action for action, _ in reversed(kept))


def _level_text(
    children: Sequence[Summary],
    counted: Sequence[tuple[str, list[int]]],
    concerns: Sequence[tuple[str, int]],
    bags: Sequence[Counter[str]],
    words: SalienceWords,
) -> str:
    labels, of = words.labels, len(children)
    lines: list[str] = []
    again = [(theme, at) for theme, at in counted[:MAX_THEMES] if len(at) > 1]
    if again:
        lines.append(f"{labels['recurring']}: " + ", ".join(f"{theme} ({len(at)}/{of})" for theme, at in again) + ".")
    pairs = _pairs(children, again, words)
    if pairs:
        lines.append(f"{labels['together']}: " + "; ".join(f"{a} + {b}" for a, b in pairs) + ".")
    lines += _story(children, counted, bags, words)
    for concern, count in concerns:
        if count > 1:
            lines.append(f"{labels['concern']} ({count}/{of}): {concern}")
    return "\n".join(lines)


def _pairs(
    children: Sequence[Summary], again: Sequence[tuple[str, list[int]]], words: SalienceWords
) -> list[tuple[str, str]]:
    """Return recurring themes that share a sentence more than once."""
    said = [
        set(terms(span.of(child.text), words.language)) for child in children for span in split_sentences(child.text)
    ]
    found = []
    for i, (a, _) in enumerate(again):
        for b, _ in again[i + 1 :]:
            both = set(terms(a, words.language)) | set(terms(b, words.language))
            times = sum(both <= sentence for sentence in said)
            if times > 1:
                found.append((times, a, b))
    found.sort(key=lambda pair: -pair[0])
    return [(a, b) for _, a, b in found[:MAX_PAIRS]]


def _story(
    children: Sequence[Summary],
    counted: Sequence[tuple[str, list[int]]],
    bags: Sequence[Counter[str]],
    words: SalienceWords,
) -> list[str]:
    """Format a line for each child (of many: for each of six groups), its best sentences in order."""
    weight = Counter({stem: float(len(at)) for theme, at in reversed(counted) for stem in terms(theme, words.language)})
    parts = _stretches(len(children))
    story_words = min(STORY_WORDS, max(LEAST_WORDS, STORY_SHARE * most_tokens(sum(map(summary_tokens, children)))))
    lines: list[str] = []
    day = ""
    taken: list[Counter[str]] = []
    for number, part in enumerate(parts):
        offers = [line for index in part for line in _offers(children[index], index, words)]
        share = story_words / len(parts)
        first = _newest(offers, share, words) if number == len(parts) - 1 and offers else ()
        chosen = _pick(offers, share, weight, taken, words, first=first)
        if not chosen:
            continue
        label = words.labels["first" if number == 0 else "now" if number == len(parts) - 1 else "later"]
        start, end = children[part[0]].start_seq, children[part[-1]].end_seq
        spoken = format_sentences((line.statement for line in chosen), day)
        lines += [f"{label} ({start}–{end}): {spoken[0]}", *spoken[1:]]
        day = next((line.statement.date for line in reversed(chosen) if line.statement.date), day)
    return lines


def _stretches(count: int) -> list[list[int]]:
    """Split *count* children, in order, into at most six parts of about the same size."""
    parts = min(count, MAX_PARTS)
    return [list(range(i * count // parts, (i + 1) * count // parts)) for i in range(parts)]


def _pick(
    offers: Sequence[_ChildLine],
    budget: float,
    weight: Counter[str],
    taken: list[Counter[str]],
    words: SalienceWords,
    least: float = MIN_STORY_SCORE,
    first: Sequence[_ChildLine] = (),
) -> list[_ChildLine]:
    """Pick *first*, then the sentences with most of the recurring themes and least of the earlier lines, at most one of them below *least*."""
    for line in offers:
        plain = own(line.statement.text)
        signs = words.signs(plain)
        line.score = sum(min(weight[term], 4.0) for term in line.terms) / (len(line.terms) + 4)
        line.score += sum(WORTH.get(sign, 0.0) for sign in signs) + NUMBER * any(ch.isdecimal() for ch in plain)
        line.score += NAME * any(word[:1].isupper() for word in plain.split()[1:] if word != "I")
        line.score *= ASSISTANT if line.statement.speaker == "assistant" else 1.0
        line.score += SUPPOSED * ("supposed" in signs) + EMPTY * ("empty" in signs) + line.worth
        line.score = line.score * length_factor(line.words - 2) - 0.4 * plain.endswith(("?", "？"))
    chosen = list(first)
    taken += [line.terms for line in chosen]
    total = sum(line.words for line in chosen)
    left = [line for line in offers if line not in chosen]
    while left:
        best = max(
            left, key=lambda line: (line.score - max((cosine(line.terms, t) for t in taken), default=0.0), -line.place)
        )
        left.remove(best)
        if chosen and (total + best.words > budget or best.score < least):
            continue
        chosen.append(best)
        taken.append(best.terms)
        total += best.words
    return sorted(chosen, key=lambda line: (line.child, line.place))


def _newest(offers: Sequence[_ChildLine], budget: float, words: SalienceWords) -> list[_ChildLine]:
    """
    Return the last statement of a user, which a line always has: it says how things are now.

    The last of a series, such as what is written down every day, only gains by it.
    """
    news: list[_ChildLine] = []
    helped = any(line.statement.speaker == "assistant" for line in offers)
    for line in reversed([line for line in offers if line.child == offers[-1].child]):
        said, spoken = line.statement.text, line.statement
        asked = spoken.speaker in ("", "assistant") or said.endswith(("?", "？"))
        if asked or line.worth < 0 or not is_news(words.signs(own(said)), helped):
            if news:
                break
            continue
        room = min(NEWS_WORDS, NEWS_SHARE * budget) - sum(each.words for each in news)
        if news and (line.words > room or spoken.date != news[-1].statement.date):
            break
        news.append(line)
    if news and any(line is not news[0] and cosine(line.terms, news[0].terms) >= SAME for line in offers):
        news[0].worth = max(news[0].worth, LAST_OF_SERIES)
        return []
    return news


def says_nothing(summary: Summary) -> bool:
    """Whether *summary* has no statement in it."""
    return summary.text in labels_of("nothing")


def _offers(child: Summary, index: int, words: SalienceWords) -> list[_ChildLine]:
    """Return the sentences of a child's text with speaker and date, without counting lines."""
    offers: list[_ChildLine] = []
    ours = child.source == SUMMARY_SOURCE
    date, in_story = "", child.level == 1 or not ours
    for raw in child.text.split("\n"):
        line = raw.strip()
        label = _LABEL.match(line) if ours and child.level > 1 else None
        if label and label[1] in labels_of("first", "later", "now"):
            line, in_story = line[label.end() :], True
        elif not in_story or (label and label[1] in labels_of("concern")):
            continue
        stamp = _STAMP.match(line)
        if stamp:
            date, line = stamp[1], line[stamp.end() :]
        named = _SPEAKER.match(line) if ours else None
        speaker = named[1] if named else ""
        line = line[named.end() :] if named else line
        for span in split_sentences(line):
            text = shorten(span.of(line), SENTENCE_WORDS, words)
            if any(ch.isalnum() for ch in text) and not is_courtesy(text) and not says_nothing(child):
                bag = Counter(terms(text, words.language))
                offers.append(_ChildLine(index, len(offers), SpokenSentence(date, speaker, text), bag, size(text) + 2))
    return offers


STORY_LINE_TOKENS = 50  # of a line that tells several conversations
LEAST_LINE_TOKENS = 25  # with less for each conversation, older ones share a line
STORY = -1  # the level of a line of a story where it stands in for summaries
SAID_BEFORE = -1.0  # what a sentence loses that an earlier line told
ASKED_EACH_TIME = -3.0  # and a question that several conversations ask
AGAIN = frozenset(("alarm", "problem"))  # what is told as often as it happens


@dataclass(slots=True)
class _Telling:
    """Shared by the lines of one story: how often sentences and stems come back, and what was said already."""

    words: SalienceWords
    times: Counter[str]
    weight: Counter[str]
    taken: list[Counter[str]]
    told: set[str]

    def worth(self, offer: _ChildLine) -> float:
        """Return what *offer* loses as a formula, such as "Should I change anything?" at every visit."""
        said = offer.statement.text.casefold()
        if said.endswith(("?", "？")):
            return ASKED_EACH_TIME if self.times[said] > 1 else 0.0
        return SAID_BEFORE if said in self.told and not AGAIN & self.words.signs(own(said)) else 0.0


def tell_story(talks: Sequence[Sequence[Summary]], most: int) -> tuple[StoryLine, ...]:
    """
    Condense *talks*, the summaries of conversations in their order, to at most *most* tokens.

    Each gets a line where there is room; otherwise the newest do, and older ones share one.  A line holds sentences of its summaries,
    those with the themes that come back and what weighs most first; what short lines leave, long ones get.
    """
    telling = _telling(talks)
    groups: list[Sequence[Sequence[Summary]]] = [[talk] for talk in talks]
    if len(talks) * LEAST_LINE_TOKENS > most or _level(_needs(groups, most, telling), most) < LEAST_LINE_TOKENS:
        groups = _grouped(talks, max(1, most // STORY_LINE_TOKENS))
    share = _level(_needs(groups, most, telling), most)
    told = [_story_line(group, share, telling) for group in groups]
    return tuple(line for line in told if line.text)


def _telling(talks: Sequence[Sequence[Summary]]) -> _Telling:
    every = [summary for talk in talks for summary in talk]
    words = load_salience_words(language_of(" ".join(one.text[:200] for one in every)[:400]))
    offers = [[offer for one in talk for offer in _offers(one, 0, words)] for talk in talks]
    times = Counter(said for talk in offers for said in {offer.statement.text.casefold() for offer in talk})
    stems = [
        {stem for offer in talk if times[offer.statement.text.casefold()] == 1 for stem in offer.terms}
        | {stem for one in said for theme in one.themes for stem in terms(theme, words.language)}
        for talk, said in zip(offers, talks, strict=True)
    ]
    counted = Counter(stem for talk in stems for stem in talk)
    weight = Counter({stem: float(min(often, 3)) for stem, often in counted.items() if often > 1})
    return _Telling(words, times, weight, [], set())


def _grouped(talks: Sequence[Sequence[Summary]], lines: int) -> list[Sequence[Sequence[Summary]]]:
    """Give half of the lines to the newest conversations, and the others to groups of older ones."""
    alone = len(talks) if len(talks) <= lines else (lines + 1) // 2
    older = talks[: len(talks) - alone]
    shared = min(lines - alone, len(older))
    groups = [older[i * len(older) // shared : (i + 1) * len(older) // shared] for i in range(shared)]
    return [*groups, *([talk] for talk in talks[len(older) :])]


def _needs(groups: Sequence[Sequence[Sequence[Summary]]], most: int, telling: _Telling) -> list[int]:
    """Return the tokens of each line where there is room for all that is worth telling."""
    trial = replace(telling, taken=[], told=set())
    return [count_tokens(_story_line(group, most, trial).dated) + 1 for group in groups]


def _level(needs: Sequence[int], most: int) -> int:
    """Return the most tokens for a line, with which all lines together have at most *most*."""
    left, lines = most, len(needs)
    for need in sorted(needs):
        if need * lines > left:
            return left // lines
        left, lines = left - need, lines - 1
    return most


def _story_line(talks: Sequence[Sequence[Summary]], most: int, telling: _Telling) -> StoryLine:
    """Condense one or several conversations to at most *most* tokens, their days included."""
    summaries = [summary for talk in talks for summary in talk]
    sources = tuple(StorySource(one.id, one.conversation, one.start_seq, one.end_seq) for one in summaries)
    times = [at for one in summaries for at in (one.first_at, one.last_at) if at]
    line = StoryLine("", min(times, default=None), max(times, default=None), sources)
    words = telling.words
    offers = [offer for index, one in enumerate(summaries) for offer in _offers(one, index, words)]
    advised = {_SPEAKER.sub("", action, count=1) for one in summaries for action in one.actions}
    for place, offer in enumerate(offers):
        offer.place = place
        offer.worth = ADVISED if offer.words > LEAST_ITEM_WORDS and offer.statement.text in advised else 0.0
        offer.worth += telling.worth(offer)
    budget = most * 0.75
    # Where there is room for all that the summaries say, only what says nothing is left out.
    least = 0.0 if sum(offer.words for offer in offers) <= budget else MIN_STORY_SCORE
    while budget >= LEAST_ITEM_WORDS:
        news = _newest(offers, budget, words) if len(talks) == 1 and offers else []
        chosen = _pick(offers, budget, telling.weight, list(telling.taken), words, least, news) if offers else []
        line = replace(line, text=" ".join(format_sentences(offer.statement for offer in chosen)))
        if count_tokens(line.dated) <= most:
            telling.taken += [offer.terms for offer in chosen]
            telling.told |= {offer.statement.text.casefold() for offer in chosen}
            return line
        budget *= 0.75
    cut = next((offer.statement.text for offer in (*_newest(offers, 0, words)[:1], *offers)), "") if offers else ""
    return replace(line, text=shorten(cut, LEAST_ITEM_WORDS * 2, words))


def shown_talks(talks: Sequence[Sequence[Summary]]) -> list[Sequence[Summary]]:
    """Return the newest conversations whose summaries one call makes a story of."""
    shown: list[Sequence[Summary]] = []
    tokens = 0
    for talk in reversed(talks):
        tokens += sum(count_tokens(summary.text) + 10 for summary in talk)
        if shown and tokens > STORY_SHOWN_TOKENS:
            break
        shown.append(talk)
    return shown[::-1]


def complete_story(
    lines: Iterable[StoryLine], talks: Sequence[Sequence[Summary]], most: int
) -> tuple[tuple[StoryLine, ...], tuple[StoryLine, ...]]:
    """
    Return a model's lines within *most* tokens, and lines by the rules for the summaries of *talks* that these do not cite.

    Where the model wrote too much its oldest lines go.
    """
    kept = sorted(lines, key=_first_of)

    def untold() -> list[list[Summary]]:
        cited = {one.summary for line in kept for one in line.sources}
        return [left for talk in talks if (left := [one for one in talk if one.id not in cited])]

    def used() -> int:
        return count_tokens("\n".join(line.dated for line in kept))

    while kept and used() > most - (min(STORY_LINE_TOKENS, most // 4) if untold() else 0):
        kept.pop(0)
    left = untold()
    return tuple(kept), tell_story(left, most - used() - 1) if left else ()


def in_order(*parts: Iterable[StoryLine]) -> tuple[StoryLine, ...]:
    """Return all lines in the order of time."""
    return tuple(sorted((line for part in parts for line in part), key=_first_of))


def _first_of(line: StoryLine) -> datetime:
    return line.first_at or EPOCH


def story_line_summary(story: Story, number: int, line: StoryLine) -> Summary:
    """Return a line of a story as a summary, to be shown among those of other conversations."""
    made = _summary(STORY, number, number, SummaryDraft(line.text, (), (), (), 0, story.source))
    return replace(
        made, id=story.id, first_at=line.first_at, last_at=line.last_at, created_at=story.created_at or EPOCH
    )


ROLL_UP = 3
EPOCH = datetime.fromtimestamp(0, UTC)
_KEPT = ("level", "start_seq", "end_seq", "exchanges", "text", "themes", "concerns", "actions")


def summarize_conversation(summaries: Sequence[Summary], messages: Sequence[Message]) -> tuple[str, str]:
    """Return ``(text, source)`` of one summary of *summaries*, oldest first, and the *messages* after them."""
    children = list(summaries)
    children += [_summary(1, block[0].seq, block[-1].seq, summarize_chunk(block)) for block in split_blocks(messages)]
    return (
        children[0].text if len(children) == 1 else summarize_level(children).text if children else ""
    ), SUMMARY_SOURCE


def summarize_rest(messages: Sequence[Message]) -> list[Summary]:
    """Summarize the end of a conversation that no stored summary covers; nothing where it holds courtesies alone."""
    said = [message for message in messages if message.content]
    if all(is_courtesy(message.content) for message in said):
        return []
    made = _summary(1, said[0].seq, said[-1].seq, summarize_chunk(said))
    return [replace(made, id="", conversation=said[0].conversation, first_at=said[0].at, last_at=said[-1].at)]


def extend_rolling_summary(before: RollingSummary, messages: Sequence[Message], through: int) -> RollingSummary:
    """
    Extend a rolling summary to the first *through* of *messages*.

    ``parts`` hold the summaries of whole blocks; the messages after them are read again.
    """
    parts = [_loaded(part) for part in before.parts] if before.source == SUMMARY_SOURCE else []
    closed = parts[-1].end_seq if parts else 0
    rest: list[Summary] = []
    for block in split_blocks(messages[closed:through]):
        draft = summarize_chunk(block)
        rest.append(_summary(1, closed + 1, closed + len(block), draft))
        closed += len(block)
        if len(block) >= BLOCK_MESSAGES:
            parts = _rolled_up([*parts, rest.pop()])
    children = [*parts, *rest]
    text = children[0].text if len(children) == 1 else summarize_level(children).text if children else ""
    return RollingSummary(text, through, SUMMARY_SOURCE, tuple(_dumped(part) for part in parts))


def _rolled_up(parts: list[Summary]) -> list[Summary]:
    """Replace every three parts of one level at the end by one of the next."""
    while len(parts) >= ROLL_UP and len({part.level for part in parts[-ROLL_UP:]}) == 1:
        last = parts[-ROLL_UP:]
        higher = _summary(last[0].level + 1, last[0].start_seq, last[-1].end_seq, summarize_level(last))
        parts = [*parts[:-ROLL_UP], higher]
    return parts


def _summary(level: int, start: int, end: int, draft: SummaryDraft) -> Summary:
    return Summary(
        id=f"{level} {start}-{end}",
        level=level,
        start_seq=start,
        end_seq=end,
        exchanges=draft.exchanges,
        text=draft.text,
        themes=draft.themes,
        concerns=draft.concerns,
        actions=draft.actions,
        block=0,
        version=1,
        children=(),
        created_at=EPOCH,
        source=draft.source,
    )


def _dumped(part: Summary) -> dict[str, Any]:
    return {name: list(value) if isinstance(value := getattr(part, name), tuple) else value for name in _KEPT}


def _loaded(data: Mapping[str, Any]) -> Summary:
    themes, concerns, actions = (tuple(data[name]) for name in ("themes", "concerns", "actions"))
    draft = SummaryDraft(data["text"], themes, concerns, actions, data["exchanges"], SUMMARY_SOURCE)
    return _summary(data["level"], data["start_seq"], data["end_seq"], draft)
