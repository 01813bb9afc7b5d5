"""
The ranking, every component apart, so that the parts of a hit add up to its score.

A document's match ``h`` is ``w z(BM25) + (1 - w) z(cosine)``: words and vectors, each measured in
deviations from the mean over all messages, so that neither scale matters.  A message then gains by
its neighbors, its session, its day, its speaker and its kind.  Facts and summaries are measured on
the messages' own scale and get a constant each.  Pure: arrays in, arrays out.

The constants are set by hand, with one digit where one is enough; docs/decisions/ranking.md says on
what they were tuned, what each is worth, and what was tried and left out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from difflib import SequenceMatcher
from functools import reduce
from itertools import islice
from typing import Final

from ..clock import DAY_MS
from ..reports import Ranked
from ..text import dataclass, np
from ..types import Hit
from .index import CONTEXT_K1, K1, B, Bools, Floats, Index, Ints, Match
from .query import Query, When
from .vectors import FEW, Comparison, mean_and_deviation


@dataclass(frozen=True, slots=True)
class Constants:
    """The weight of each component, in deviations of the match."""

    neighbor: float = 0.2  # a turn beside a match is likely about the same thing
    next_neighbor: float = 0.1  # and so, less, is the one after
    reply: float = 0.2  # between user and assistant only the reply is; other turns are other requests
    session: float = 0.25  # a session whose best three turns match is about the question
    day: float = 1.0  # it was said on the days that the question names
    speaker: float = 1.0  # a question about X is mostly answered in X's own words
    echo: float = -0.35  # the other speaker repeats the same words without the fact
    assistant_echo: float = -0.7  # an assistant does so at length
    around: float = 0.25  # the words may be spread over neighbouring turns, or over the session
    gathered: float = 1.0  # the turns around it hold the words of the question between them
    again: float = -0.3  # words that were said a moment ago are taken up, not told
    answer: float = 0.4  # an answer follows the other's matching question and need not repeat its words
    time: float = 0.7  # turns that place something in time report events; small talk does not
    opens: float = 0.5  # users open a session with their news
    question: float = -0.5  # a turn that ends in a question is rarely evidence
    asked: float = -1.0  # the same question, asked before, tells nothing
    kind: float = 1.0  # "when" wants a time, "how many" wants a number
    spread: float = -0.2  # several things are told in several sessions: less after better turns of the same one
    names: float = 0.8  # they have names
    personal: float = 0.6  # and are told in the first person
    standing: float = 2.5  # a wish for all replies bears on a question for help
    fact: float = 1.0  # a fact that matches as well as the turn it came from stands before it
    unsourced: float = 3.0  # what a turn's surroundings add, for a fact whose turn is not there
    others: float = -1.0  # a fact about somebody else than the question
    called: float = 2.0  # a question that uses another name of a fact means it
    summary: float = 1.0  # a summary that matches stands beside the turns it covers, not before them


DEFAULTS: Final = Constants()


# Of a question about a value so many turns stand newest first: those that hold the same words of it and are as
# near to one another as that, by meaning for what holds now, or with the same words in the same order.
NEWEST: Final = 5
NEWEST_LOOSE: Final = 3
WORDED: Final = 0.75  # a turn that holds this share of the question's words says the thing as the question does
ALIKE: Final = 0.5
FRAME: Final = 0.5
FRAME_WORDS: Final = 100  # a page is compared by its beginning
# A question that consists of the words of another one to this share is the same.
SAME_QUESTION: Final = 0.9
DATE_TERMS: Final = 3  # day, month and year, which the index holds of every message
# A fact answers one part of a question that joins several if it holds so much of it, and it is so much of the question.
FACT_SHARE: Final = 0.6
PART_SHARE: Final = 0.2
# For a question that asks for several things, so many better turns of the same session count.
CROWD: Final = 4
# Names and the first person are taken for granted to this share, so that scores stay as high as for other questions.
USUAL: Final = 0.4
# What a fact does not take over from the turn that it came from: its own match counts, and neither how many other turns
# its session has nor how replies should be is a reason for what it says.
OF_TURNS_ALONE: Final = frozenset(("words", "meaning", "asked", "spread", "standing"))
# What a cosine is worth to expect, in deviations, where a document has no vector yet: this share of
# the deviations of its words, at most so many.
EXPECTED_SHARE: Final = 0.5
EXPECTED_MOST: Final = 3.0

# Behind a gate: of the relevance that the best hit needs, what other facts need, and what other turns and summaries need.
REST, REST_OF_TURNS = 0.5, 0.1
# And of the best score, what a turn needs. Where even the best hit is less relevant than DOUBTFUL, a context recalls so few hits.
SHARE_OF_BEST, DOUBTFUL, FEW_IN_DOUBT = 0.2, 0.35, 8


@dataclass(frozen=True, slots=True)
class RawScores:
    """Unscaled evidence for the n documents of one kind; ``seen`` is ``None`` without a question vector."""

    words: Floats
    seen: Comparison | None


@dataclass(frozen=True, slots=True)
class ScoreScale:
    """Mean and deviation against which words and cosines are measured; a deviation of 0 mutes them."""

    words: tuple[float, float]
    cosine: tuple[float, float]


def idf(holding: int, total: int) -> float:
    """Return the rarity of a word that *holding* of *total* documents hold."""
    return float(np.log(1 + (total - holding + 0.5) / (holding + 0.5)))


def standardize(values: Floats, mean: float, deviation: float) -> Floats:
    """*values* in deviations from *mean*; all 0 where nothing deviates."""
    return (values - mean) / deviation if deviation > 0 else np.zeros(len(values))


def z_scores(values: Floats) -> Floats:
    """*values* in deviations from their own mean."""
    return standardize(values, float(values.mean()), float(values.std())) if len(values) else values


def bm25(index: Index, matches: list[Match], background: Index, holding: list[int]) -> Floats:
    """
    BM25 of each document of *index*, shape (n,), with the word statistics of *background*.

    *matches* are the words of the question in *index*; *holding* says of each of them how many
    documents of *background* hold it.
    """
    score = np.zeros(len(index))
    norm = index.norm if index is background else _norm_against(index, background)
    for match, count in zip(matches, holding, strict=True):
        weight = match.times_asked * idf(count, len(background)) * (K1 + 1)
        score[match.places] += weight * match.counts / (match.counts + norm[match.places])
    return score


def _norm_against(index: Index, background: Index) -> Floats:
    """Length terms of *index* measured by the mean length of *background*."""
    constant = K1 * (1 - B)
    norm: Floats = constant + (index.norm - constant) * index.mean_terms / background.mean_terms
    return norm


def measure_scale(raws: list[RawScores], unrelated: float = 0.0) -> ScoreScale:
    """
    Return the scale of a search, from the evidence of each kind, messages first.

    The messages alone set it unless they are fewer than 20; then all kinds do, and as many
    imagined documents as are missing, which hold no word of the question and whose cosine is
    between 0 and *unrelated*.  So a single message can score high, too.
    """
    base = raws[:1] if raws and len(raws[0].words) >= FEW else raws
    words = np.concatenate([raw.words for raw in base]) if base else np.zeros(0)
    seen = [raw.seen for raw in base if raw.seen is not None]
    words = np.append(words, np.zeros(max(0, FEW - len(words))))
    if len(seen) == 1 and np.count_nonzero(seen[0].present) >= FEW:
        cosine = seen[0].moments
    else:
        found = [compared.cosine[compared.present] for compared in seen]
        cosine = mean_and_deviation(np.concatenate([*found, np.zeros(0)]), unrelated)
    return ScoreScale((float(words.mean()), float(words.std())), cosine)


def combine_match(raw: RawScores, scale: ScoreScale, weight: float) -> dict[str, Floats]:
    """
    Return the two parts of the match, ``words`` and ``meaning``; *weight* is the share of the words, 0 to 1.
    """
    words = standardize(raw.words, *scale.words)
    if raw.seen is None:
        return {"words": words, "meaning": np.zeros(len(words))}
    meaning = standardize(raw.seen.cosine, *scale.cosine)
    expected = np.minimum(EXPECTED_SHARE * words, EXPECTED_MOST)
    return {"words": weight * words, "meaning": (1 - weight) * np.where(raw.seen.present, meaning, expected)}


def rank_messages(
    index: Index,
    query: Query,
    matches: list[Match],
    match: Mapping[str, Floats],
    weight: float,
    c: Constants = DEFAULTS,
) -> dict[str, Floats]:
    """
    Return every component of the score of each message; the score is their sum.

    *matches* are the words of the question in *index*, *match* is what `combine_match` made of them, and
    *weight* the share of the words in it.
    """
    layout = index.layout
    h = match["words"] + match["meaning"]
    before, after = layout.before(h, 1), layout.after(h, 1)
    parts = dict(match)
    if index.mixed:
        parts["neighbors"] = c.reply * after * index.user
    else:
        next_to_them = layout.before(h, 2) + layout.after(h, 2)
        parts["neighbors"] = c.neighbor * (before + after) + c.next_neighbor * next_to_them
    parts["session"] = c.session * z_scores(layout.top_mean(h, 3)[layout.session])
    if query.when is not None:
        parts["day"] = c.day * days_match(query.when, index.at_ms, index.year)
    other = _speaker_parts(parts, index, query, h, c)
    around, gathered = _score_surroundings(index, matches)
    parts["gathered"] = c.gathered * gathered
    parts["asked"] = c.asked * _same_question(index, matches) * np.maximum(h, 0)
    if not index.mixed:
        parts["around"] = c.around * weight * around
        parts["again"] = c.again * _repeated_share(index, matches) * np.maximum(h, 0)
    if index.peer:
        parts["answer"] = c.answer * index.answers * np.maximum(before, 0)
        parts["time"] = c.time * index.time * (1 - other)
        parts["opens"] = c.opens * index.opens * (1 - other)
        parts["question"] = c.question * index.question * (1 - other)
        if query.asks_when:
            parts["kind"] = c.kind * index.time
        elif query.asks_number:
            parts["kind"] = c.kind * index.number
    elif query.asks_advice:
        parts["standing"] = c.standing * index.standing * index.user
    if query.asks_several:
        _several_parts(parts, index, other, c)
    return parts


def _several_parts(parts: dict[str, Floats], index: Index, other: Floats, c: Constants) -> None:
    """Add what follows from a question for several things: *other* is 1 for the turns of those not asked about."""
    if index.peer:
        parts["names"] = c.names * (index.thing * (1 - other) - USUAL)
        parts["personal"] = c.personal * (index.personal * (1 - other) - USUAL)
    parts["spread"] = c.spread * index.layout.better(total(parts), CROWD)


def rank_facts(
    index: Index,
    query: Query,
    match: Mapping[str, Floats],
    messages: Index | None,
    told: Mapping[str, Floats],
    c: Constants = DEFAULTS,
) -> dict[str, Floats]:
    """
    Return every component of the score of each fact.

    A fact gets what their surroundings give to the best of the turns it came from: it is ranked as
    if it replaced them, and so before a turn that words the answer no better.  *told* are
    the components of the *messages*; ``None`` when there are none.
    """
    around = np.full(len(index), -np.inf)
    if messages is not None:
        support = total({name: part for name, part in told.items() if name not in OF_TURNS_ALONE})
        facts, turns = messages.of_sources(index.sources)
        np.maximum.at(around, facts, support[turns])
    alone = np.full(len(index), c.unsourced)
    if query.when is not None:
        alone += c.day * days_match(query.when, index.at_ms, index.year)
    return {**match, "source": np.where(np.isfinite(around), around, alone), "prior": np.full(len(index), c.fact)}


def word_weights(matches: Sequence[Match], documents: int) -> list[float]:
    """Return the weight of each word of the question, rare ones more."""
    return [match.times_asked * idf(len(match.places), documents) for match in matches]


def best_of_part(words: Sequence[int], matches: Sequence[Match], weights: Sequence[float], size: int) -> Bools:
    """Return which of *size* facts answer the part of a question that consists of *words*: the best that hold most of it."""
    asked, held = sum(weights[word] for word in words), np.zeros(size)
    for word in words:
        held[matches[word].places] += weights[word]
    most = held.max(initial=0.0)
    enough = asked > PART_SHARE * sum(weights) and most >= FACT_SHARE * asked
    best: Bools = (held == most) & enough
    return best


def rank_summaries(
    index: Index, query: Query, match: Mapping[str, Floats], c: Constants = DEFAULTS
) -> dict[str, Floats]:
    """Return every component of the score of each summary: the match, the days named, and a constant."""
    parts = {**match, "prior": np.full(len(index), c.summary)}
    if query.when is not None:
        parts["day"] = c.day * days_match(query.when, index.at_ms, index.year)
    return parts


def total(parts: Mapping[str, Floats]) -> Floats:
    """Return the sum of all parts, added one after the other in their order, as a check of a score would."""
    score: Floats = reduce(np.add, parts.values())
    return score


def _speaker_parts(parts: dict[str, Floats], index: Index, query: Query, h: Floats, c: Constants) -> Floats:
    """Add what follows from who spoke; returns 1 for the turns of those who were not asked about."""
    none = np.zeros(len(index))
    echo = c.echo if not index.mixed else c.assistant_echo
    if query.speaker is not None:
        asked = (
            (index.speaker == index.names.index(query.speaker)).astype(np.float64)
            if query.speaker in index.names
            else none
        )
    elif index.mixed and not query.asks_assistant:
        asked = index.user
    else:
        return none
    other: Floats = 1 - asked
    parts["speaker"] = c.speaker * asked
    parts["echo"] = echo * other * np.maximum(h, 0)
    return other


def _score_surroundings(index: Index, matches: list[Match]) -> tuple[Floats, Floats]:
    """
    Score the five turns around each message, and its session, against the question.

    BM25 of both, each in deviations, together; and the share of the question's words that the five
    turns hold between them, 0 to 1, rare words counting more.
    """
    layout = index.layout
    near, session = np.zeros(len(index)), np.zeros(len(layout.start))
    gathered, asked = np.zeros(len(index)), 0.0
    for match in matches:
        at, beside = layout.near(match.places, match.counts)
        telling = match.times_asked * idf(len(match.places), len(index))
        gathered[at] += telling
        asked += telling
        weight = match.times_asked * idf(len(at), len(index)) * (CONTEXT_K1 + 1)
        near[at] += weight * beside / (beside + index.near_norm[at])
        held = np.bincount(layout.session[match.places], match.counts, len(layout.start))
        weight = match.times_asked * idf(int(np.count_nonzero(held)), len(held)) * (CONTEXT_K1 + 1)
        session += weight * held / (held + index.session_norm)
    around: Floats = z_scores(near) + z_scores(session[layout.session])
    return around, gathered / (asked or 1.0)


def _same_question(index: Index, matches: list[Match]) -> Floats:
    """1 for each message that is a question and consists of the words of this one, shape (n,)."""
    said = np.zeros(len(index))
    for match in matches:
        said[match.places] += match.counts
    terms = (index.norm - K1 * (1 - B)) * index.mean_terms / (K1 * B) - DATE_TERMS
    same: Floats = index.question * (said >= SAME_QUESTION * terms) * (said > 0)
    return same


def _repeated_share(index: Index, matches: list[Match]) -> Floats:
    """Of the question's words in each message the share that one of the two turns before it held, 0 to 1."""
    held, repeated = np.zeros(len(index)), np.zeros(len(index))
    for match in matches:
        telling = idf(len(match.places), len(index))
        held[match.places] += telling
        repeated[index.layout.after_another(match.places)] += telling
    return np.divide(repeated, held, out=repeated, where=held > 0)


def newest_first(best: Sequence[int], index: Index, same: Bools) -> list[int]:
    """
    Return *best*, the first messages of a search, with those of one speaker that give one thing another value newest first.

    For questions about a value ("what is the budget?"), where an older turn words the question better than the newest.
    *same*, shape (k, k), says whether the second of two gives a value to what the first speaks of.  Each group keeps its
    places.
    """
    out, used = list(best), set[int]()
    for place, leader in enumerate(best):
        if place in used:
            continue
        group = [place] + [
            later
            for later in range(place + 1, len(best))
            if later not in used and index.speaker[best[later]] == index.speaker[leader] and same[place, later]
        ]
        used.update(group)
        newest = sorted((best[member] for member in group), key=lambda at: (-int(index.at_ms[at]), -at))
        for slot, member in zip(group, newest, strict=True):
            out[slot] = member
    return out


def frame_words(text: str) -> list[str]:
    """Return the first words of a text, by which `same_frame` compares it."""
    return [found[0].lower() for found in islice(re.finditer(r"\w+", text), FRAME_WORDS)]


def same_frame(one: Sequence[str], other: Sequence[str]) -> float:
    """Return the share of the words of the shorter text that the other has in the same order, 0 to 1."""
    blocks = SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks()
    return sum(block.size for block in blocks) / max(1, min(len(one), len(other)))


@dataclass(frozen=True, slots=True)
class Relevance:
    """
    The relevance of hits, 0 to 1, from the evidence of a search: does the question concern this memory at all?

    Deviations alone do not show it: some document always scores high.  So the best hit is judged, in
    logits, by ``match`` times the deviations of its own words and meaning, ``nearness`` times the largest
    cosine (0 at the embedder's ``recall_min``, 1 at its ``merge``), ``coverage`` times the largest share of
    the question's words in one document, ``stranger`` for a question about a person who was never
    mentioned, and ``offset``.  The best of few is less than the best of many, so below 500 documents
    ``fewer`` is added for each factor of e that there are less.  Every other hit loses ``gap`` for each
    deviation that it scores less than the best, a fact ``fact_gap``: the turns around an answer help to
    understand it, other facts do not.  What a caller sees of another turn is at most what its own words
    and meaning say, ``beside`` added, as turns around it may complete it; contexts take it with less.

    Fitted on LoCoMo, own questions against those about other people, half of these with the names of this
    memory put in their place, in memories of 6 to 700 messages; docs/decisions/ranking.md says how it
    holds elsewhere.
    """

    match: float
    nearness: float
    coverage: float
    offset: float
    fewer: float
    stranger: float = -3.3
    gap: float = 0.36
    fact_gap: float = 2.5
    beside: float = 1.5

    def best(self, match: float, nearness: float, coverage: float, stranger: bool, documents: int) -> float:
        """Return the relevance of the best hit, in logits."""
        fewer = self.fewer * max(0.0, math.log(500 / max(documents, 1)))
        found = self.match * match + self.nearness * nearness + self.coverage * coverage
        return found + self.stranger * stranger + self.offset + fewer

    def of(self, best: float, behind: float, fact: bool) -> float:
        """Return the relevance of a hit, 0 to 1, that scores *behind* deviations less than the best."""
        return share_of(best - (self.fact_gap if fact else self.gap) * max(behind, 0.0))


def recalled_beside(best: float, behind: float) -> float:
    """Return the relevance of a turn for a context, beside a best turn whose relevance is *best*, from 0 to 1."""
    sure = min(max(best, 1e-9), 1 - 1e-9)
    return RELEVANCE.of(math.log(sure / (1 - sure)), behind, fact=False)


def share_of(logits: float) -> float:
    """Return the probability of *logits*."""
    return 1 / (1 + math.exp(-logits))


RELEVANCE: Final = Relevance(match=0.25, nearness=9.5, coverage=4.8, offset=-6.8, fewer=0.7)
RELEVANCE_BY_WORDS: Final = Relevance(match=0.0, nearness=0.0, coverage=8.7, offset=-3.4, fewer=0.35)


# Documents that count towards the usual cosine before any is known, and the nearest ones, which do not.
_PRIOR, _NEAREST = 8, 3
# In English the usual cosine of a question to the texts of a memory is at most so many times ``recall_min``.
_USUAL = 4 / 3


def measure_nearness(cosines: Floats, recall_min: float, merge: float) -> Callable[[float], float]:
    """
    Return a measure of how near a document with some cosine is: 0 at the embedder's *recall_min*, 1 at its *merge*.

    In a language that an embedder knows little of, all texts are near each other: what is usual in this memory, whose
    documents have *cosines*, beyond what is usual in English is taken off.
    """
    others = np.sort(cosines)[:-_NEAREST]
    usual = (float(others.sum()) + _PRIOR * recall_min) / (len(others) + _PRIOR)
    excess = min(max(usual - _USUAL * recall_min, 0.0), 0.9)

    def near(cosine: float) -> float:
        beyond = (cosine - excess) / (1 - excess) - recall_min
        return min(max(beyond / max(merge - recall_min, 1e-6), 0.0), 1.0)

    return near


def covered(matches: list[Match], holding: list[int], background: int, size: int) -> Floats:
    """
    Return the share of the question's words that each document holds, 0 to 1, rare words counting more.

    *holding* says how many of the *background* documents hold each word, *size* how many documents
    *matches* speak of.
    """
    weights = [match.times_asked * idf(count, background) for match, count in zip(matches, holding, strict=True)]
    held = np.zeros(size)
    for match, weight in zip(matches, weights, strict=True):
        held[match.places] += weight
    return held / (sum(weights) or 1.0)


def days_match(when: When, at_ms: Ints, year: Ints) -> Floats:
    """
    1 for what was said from two days before to ten days after the days that a question names, .4
    for ten days before to five weeks after, shape (n,).

    A month without a year means the one of the document's year, or of the year before.
    """
    if when.span_ms is not None:
        return _within(at_ms, *when.span_ms)
    if when.month is None:
        return np.where(year == when.year, 1.0, 0.0)
    best = np.zeros(len(at_ms))
    years = {when.year} if when.year is not None else {*map(int, np.unique(year)), *map(int, np.unique(year - 1))}
    for candidate in years:
        if candidate is None:
            continue
        month = np.datetime64(f"{candidate:04d}-{when.month:02d}-{min(when.day or 1, 28):02d}")
        start = int(month.astype("datetime64[ms]").astype(np.int64))
        found = _within(at_ms, start, start + (1 if when.day else 31) * DAY_MS)
        if when.year is None:
            found = found * ((year == candidate) | (year == candidate + 1))
        best = np.maximum(best, found)
    return best


def _within(at_ms: Ints, start: int, end: int) -> Floats:
    near = (start - 10 * DAY_MS <= at_ms) & (at_ms <= end + 35 * DAY_MS)
    inside = (start - 2 * DAY_MS <= at_ms) & (at_ms <= end + 10 * DAY_MS)
    score: Floats = np.where(inside, 1.0, np.where(near, 0.4, 0.0))
    return score


def worth_recalling(hits: Sequence[Hit]) -> list[Hit]:
    """Return *hits* without the turns that score much less than the best, and few where the memory may know nothing of it."""
    hits = hits[:FEW_IN_DOUBT] if max((hit.relevance for hit in hits), default=1.0) < DOUBTFUL else hits
    best = max((hit.score for hit in hits), default=0.0)
    least = SHARE_OF_BEST * best if best > 0 else -np.inf  # scores are deviations, and may all be negative
    return [hit for hit in hits if hit.kind != "message" or hit.score >= least]


TIME = frozenset(("day", "newest", "opens", "time"))


def explain_ranking(hits: Sequence[Hit], passed: Sequence[Hit], threshold: float, limit: int) -> tuple[Ranked, ...]:
    """
    Return the hits of a search, best first, each with the groups of its parts, and whether a context would recall it.

    *passed* are those that the same search finds for a context, behind the gate of *threshold*.
    """
    ranked, kept = [], 0
    relevant, worth = ({(hit.kind, hit.id) for hit in found} for found in (passed, worth_recalling(passed)))
    for place, hit in enumerate(hits, 1):
        key, reason = (hit.kind, hit.id), ""
        if hit.kind == "summary":
            reason = "contexts hold summaries by themselves"
        elif key not in relevant:
            least = threshold * (REST if hit.kind == "fact" else REST_OF_TURNS)
            reason = f"relevance below {least if hit.relevance < least and passed else threshold:g}"
        elif key not in worth:
            doubt = place > FEW_IN_DOUBT and max(one.relevance for one in passed) < DOUBTFUL
            reason = (
                f"{FEW_IN_DOUBT} others are better" if doubt else f"less than {SHARE_OF_BEST:.0%} of the best score"
            )
        elif kept >= limit:
            reason = f"{limit:,} others are better"
        kept += not reason
        words, meaning = hit.parts.get("words", 0.0), hit.parts.get("meaning", 0.0)
        time = sum(value for name, value in hit.parts.items() if name in TIME)
        ranked.append(Ranked(place, hit, words, meaning, time, hit.score - words - meaning - time, not reason, reason))
    return tuple(ranked)
