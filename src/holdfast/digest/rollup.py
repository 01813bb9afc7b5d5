"""
Several summaries of one level made into one of the next: what comes back, and how it went.

The text says, where there is something to say:

    Recurring: raw food (3 of 3), Luna (2 of 3).
    Together: raw food + itching.
    First (1–10): [2026-01-12] Mia: She scratches all night.
    assistant: Try another food for six weeks.
    Later (11–24): [2026-02-02] Mia: …
    Now (25–36): …
    Concern (2 of 3): She scratches all night.

Its sentences are taken from the children word for word and in their order.  The size does not grow
with the level: each level spends the same words on ever longer stretches of time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ..text.sentences import split
from ..text.terms import language_of, terms
from ..types import Summary
from .draft import SOURCE, Statement, SummaryDraft, ended, lines_of
from .lexicon import Lexicon, labels_of, lexicon
from .phrases import themes
from .plain import own, shorten, size
from .salience import ASSISTANT, NAME, NUMBER, SENTENCE_WORDS, SUPPOSED, WORTH, cosine, length_factor

STORY_WORDS, ITEM_WORDS = 120.0, 20.0
MAX_THEMES, MAX_CONCERNS, MAX_ACTIONS, MAX_PAIRS = 5, 3, 4, 2
MAX_PARTS = 6
ALIKE = 0.34
LEAST_SCORE = 0.4
_STAMP = re.compile(r"\[(\d{4}-\d{2}-\d{2})\]\s*")
_SPEAKER = re.compile(r"([^\n:]{1,60}): (?=\S)")
_LABEL = re.compile(r"([^\n:()]{1,30}) \(\d+(?:[–/]\d+)?\): ")


@dataclass(slots=True)
class _Line:
    """One sentence of a child on offer for the story."""

    child: int
    place: int
    statement: Statement
    terms: Counter[str]
    words: float
    score: float = 0.0


def summarize_level(summaries: Sequence[Summary]) -> SummaryDraft:
    """
    One summary of *summaries*, which stand next to each other on one level, oldest first.

    ``themes`` are the children's themes that come back most, ``concerns`` those that come back or
    came last, ``actions`` the latest ones.  The text stays within some 200 words at any level.
    """
    children = sorted(summaries, key=lambda child: child.start_seq)
    words = lexicon(language_of(" ".join(child.text[:200] for child in children)[:400]))
    bags = [_bag(child, words) for child in children]
    counted = _recurring_themes(children, bags, words)
    concerns = _recurring_concerns(children, words)
    text = _text(children, counted, concerns, bags, words)
    return SummaryDraft(
        text=text or words.labels["nothing"],
        themes=tuple(theme for theme, _ in counted[:MAX_THEMES]),
        concerns=tuple(concern for concern, _ in concerns),
        actions=_latest_actions(children, words),
        exchanges=sum(child.exchanges for child in children),
        source=SOURCE,
    )


def _bag(child: Summary, words: Lexicon) -> Counter[str]:
    return Counter(terms("\n".join((child.text, *child.themes, *child.concerns, *child.actions)), words.language))


def _recurring_themes(
    children: Sequence[Summary], bags: Sequence[Counter[str]], words: Lexicon
) -> list[tuple[str, list[int]]]:
    """``(theme, children that speak of it)``, those that come back most first, then as they came up."""
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


def _recurring_concerns(children: Sequence[Summary], words: Lexicon) -> list[tuple[str, int]]:
    """``(concern in its latest words, how many children hold it)``: what comes back, then what came last."""
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


def _item(text: str, child: Summary, words: Lexicon) -> str:
    """A concern or an action of *child*; our own are short enough as they are."""
    return text if child.source == SOURCE else ended(shorten(text, ITEM_WORDS, words))


def _latest_actions(children: Sequence[Summary], words: Lexicon) -> tuple[str, ...]:
    """The last actions of the last children, in order, each once."""
    kept: list[tuple[str, Counter[str]]] = []
    for child in reversed(children):
        for action in reversed(child.actions):
            bag = Counter(terms(action, words.language))
            if len(kept) < MAX_ACTIONS and all(cosine(bag, other) < 0.6 for _, other in kept):
                kept.append((_item(action, child, words), bag))
    return tuple(action for action, _ in reversed(kept))


def _text(
    children: Sequence[Summary],
    counted: Sequence[tuple[str, list[int]]],
    concerns: Sequence[tuple[str, int]],
    bags: Sequence[Counter[str]],
    words: Lexicon,
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
    children: Sequence[Summary], again: Sequence[tuple[str, list[int]]], words: Lexicon
) -> list[tuple[str, str]]:
    """Recurring themes that are spoken of in the same sentence more than once."""
    said = [set(terms(span.of(child.text), words.language)) for child in children for span in split(child.text)]
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
    words: Lexicon,
) -> list[str]:
    """A line a child (of many: of each of six stretches of them), its best sentences in their order."""
    weight = Counter({stem: float(len(at)) for theme, at in reversed(counted) for stem in terms(theme, words.language)})
    parts = _stretches(len(children))
    lines: list[str] = []
    day = ""
    taken: list[Counter[str]] = []
    for number, part in enumerate(parts):
        offers = [line for index in part for line in _offers(children[index], index, words)]
        chosen = _pick(offers, STORY_WORDS / len(parts), weight, taken, words)
        if not chosen:
            continue
        label = words.labels["first" if number == 0 else "now" if number == len(parts) - 1 else "later"]
        start, end = children[part[0]].start_seq, children[part[-1]].end_seq
        told = lines_of((line.statement for line in chosen), day)
        lines += [f"{label} ({start}–{end}): {told[0]}", *told[1:]]
        day = next((line.statement.date for line in reversed(chosen) if line.statement.date), day)
    return lines


def _stretches(count: int) -> list[list[int]]:
    """*count* children dealt, in order, to at most six parts of about the same size."""
    parts = min(count, MAX_PARTS)
    return [list(range(i * count // parts, (i + 1) * count // parts)) for i in range(parts)]


def _pick(
    offers: Sequence[_Line], budget: float, weight: Counter[str], taken: list[Counter[str]], words: Lexicon
) -> list[_Line]:
    """The sentences of one part that say most of what comes back and least of what was told before."""
    for line in offers:
        plain = own(line.statement.text)
        line.score = sum(min(weight[term], 4.0) for term in line.terms) / (len(line.terms) + 4)
        line.score += sum(WORTH.get(sign, 0.0) for sign in words.signs(plain))
        line.score += NUMBER * any(ch.isdigit() for ch in plain)
        line.score += NAME * any(word[:1].isupper() for word in plain.split()[1:] if word != "I")
        line.score *= ASSISTANT if line.statement.speaker == "assistant" else 1.0
        line.score += SUPPOSED * ("supposed" in words.signs(plain))
        line.score = line.score * length_factor(line.words - 2) - 0.4 * plain.endswith(("?", "？"))
    chosen: list[_Line] = []
    left, total = list(offers), 0.0
    while left:
        best = max(
            left, key=lambda line: (line.score - max((cosine(line.terms, t) for t in taken), default=0.0), -line.place)
        )
        left.remove(best)
        if chosen and (total + best.words > budget or best.score < LEAST_SCORE):
            continue
        chosen.append(best)
        taken.append(best.terms)
        total += best.words
    return sorted(chosen, key=lambda line: (line.child, line.place))


def _offers(child: Summary, index: int, words: Lexicon) -> list[_Line]:
    """The sentences of a child's text with who said them and when; lines that count are left out."""
    offers: list[_Line] = []
    ours = child.source == SOURCE
    date, told = "", child.level == 1 or not ours
    for raw in child.text.split("\n"):
        line = raw.strip()
        label = _LABEL.match(line) if ours and child.level > 1 else None
        if label and label[1] in labels_of("first", "later", "now"):
            line, told = line[label.end() :], True
        elif not told or (label and label[1] in labels_of("concern")):
            continue
        stamp = _STAMP.match(line)
        if stamp:
            date, line = stamp[1], line[stamp.end() :]
        named = _SPEAKER.match(line) if ours else None
        speaker = named[1] if named else ""
        line = line[named.end() :] if named else line
        for span in split(line):
            text = shorten(span.of(line), SENTENCE_WORDS, words)
            if any(ch.isalnum() for ch in text):
                bag = Counter(terms(text, words.language))
                offers.append(_Line(index, len(offers), Statement(date, speaker, text), bag, size(text) + 2))
    return offers
