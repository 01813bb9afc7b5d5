"""The ranking against a second account of it in plain loops, and what must hold of any memory."""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.embed import dequantize
from holdfast.recall.query import When
from holdfast.recall.rank import BEARING, BEARING_OF_WORDS, DEFAULTS, days_match, idf
from holdfast.testing.embedder import HashEmbedder
from holdfast.text.signals import HAS_NUMBER, IS_QUESTION, NAMES_TIME, signals
from holdfast.text.terms import dated_terms, terms

from .conftest import ANA, MONDAY, Desk

TALK = ANA.within("talk")
WORDS = (
    "garden tomato piano lesson sister wedding train Lisbon camera mountain tent river soup recipe winter coat dentist"
    " painting exhibition marathon knee doctor violin concert ticket passport visa beach kayak whale"
).split()
QUESTIONS = (
    "When did Ana go to the wedding in Lisbon?",
    "How many tickets did Ben buy for the concert?",
    "What did Ana and Ben eat by the river?",
    "Which mountain has the tent and the camera in March 2024?",
    "Where is the unheard word?",
    "Ana",
)


def chatter(seed: int, size: int) -> list[tuple[str, str]]:
    """Turns of Ana and Ben about the same few things, with questions, times and numbers among them."""
    pick = random.Random(seed)
    out = []
    for _ in range(size):
        words = " ".join(pick.choices(WORDS, k=pick.randint(2, 9)))
        words += pick.choice(["", "", "?", " yesterday", " 3 times", " last week we went", " and two of them?"])
        out.append((pick.choice(["Ana", "Ben"]), words))
    return out


def standard(values: list[float]) -> list[float]:
    mean = sum(values) / len(values)
    deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / len(values))
    return [(value - mean) / deviation if deviation else 0.0 for value in values]


def by_loops(turns, sessions, question, embedder):
    """
    Every turn's score as the recipe tells it, message by message, without an array.

    *turns* are (speaker, text, time); written from the description, not from the code.
    """
    n = len(turns)
    names = sorted({speaker for speaker, _, _ in turns})
    named = [name for name in names if re.search(rf"\b{name}\b", question, re.I)]
    stripped = " ".join(re.sub(r"\b(?:Ana|Ben)(?:'s)?\b", "", question).split())
    asked = Counter(terms(stripped) or terms(question))
    text = stripped if terms(stripped) else question
    docs = [dated_terms(words, at) for _, words, at in turns]
    lengths = [doc.total() for doc in docs]

    def bm25(counts, lengths, k1, b):
        mean, scores = sum(lengths) / len(lengths), [0.0] * len(lengths)
        for word, times in asked.items():
            holding = sum(1 for count in counts if count[word])
            weight = math.log(1 + (len(lengths) - holding + 0.5) / (holding + 0.5))
            for at, count in enumerate(counts):
                tf = count[word]
                scores[at] += times * weight * tf * (k1 + 1) / (tf + k1 * (1 - b + b * lengths[at] / mean))
        return scores

    words = standard(bm25(docs, lengths, 0.9, 0.4))
    share, meaning = 1.0, [0.0] * n
    if embedder is not None:
        share = embedder.thresholds.bm25_weight
        pairs = embedder.stored([words for _, words, _ in turns])
        cosines = [float(row @ embedder.embed([text])[0]) for row in pairs]
        meaning = standard(cosines)
    h = [share * a + (1 - share) * b for a, b in zip(words, meaning, strict=True)]

    def beside(values, at, step):
        other = at + step
        return values[other] if 0 <= other < n and sessions[other] == sessions[at] else 0.0

    members = {session: [at for at in range(n) if sessions[at] == session] for session in sessions}
    top = {s: sum(sorted((h[at] for at in m), reverse=True)[:3]) / min(3, len(m)) for s, m in members.items()}
    tops = standard([top[sessions[at]] for at in range(n)])
    near = [[i for i in range(at - 2, at + 3) if 0 <= i < n and sessions[i] == sessions[at]] for at in range(n)]
    windows = [sum((docs[i] for i in group), Counter()) for group in near]
    around = standard(bm25(windows, [sum(lengths[i] for i in group) for group in near], 1.2, 0.75))
    order = sorted(members)
    whole = bm25(
        [sum((docs[i] for i in members[s]), Counter()) for s in order],
        [sum(lengths[i] for i in members[s]) for s in order],
        1.2,
        0.75,
    )
    spread = standard([whole[order.index(sessions[at])] for at in range(n)])
    present = {word: sum(1 for doc in docs if doc[word]) for word in asked}
    rarest = min((count for count in present.values() if count), default=0)
    scores = []
    for at, (speaker, said, moment) in enumerate(turns):
        bits = signals(said)
        me = 1.0 if len(named) == 1 and speaker == named[0] else 0.0
        other = 1.0 if len(named) == 1 and speaker != named[0] else 0.0
        score = h[at] + 0.3 * (beside(h, at, -1) + beside(h, at, 1)) + 0.15 * (beside(h, at, -2) + beside(h, at, 2))
        score += 0.25 * tops[at] + 1.0 * me - 0.3 * other * max(h[at], 0)
        score += 0.25 * share * (around[at] + spread[at])
        asked_before = at > 0 and sessions[at - 1] == sessions[at] and signals(turns[at - 1][1]) & IS_QUESTION
        if asked_before and not bits & IS_QUESTION and turns[at - 1][0] != speaker:
            score += 0.3 * max(h[at - 1], 0)
        if any(docs[at][word] and present[word] == rarest for word in asked):
            score += 0.5
        score += (0.7 if bits & NAMES_TIME else 0.0) * (1 - other)
        score += (0.5 if at == 0 or sessions[at - 1] != sessions[at] else 0.0) * (1 - other)
        score -= (0.5 if bits & IS_QUESTION else 0.0) * (1 - other)
        if question.startswith("When"):
            score += 1.0 if bits & NAMES_TIME else 0.0
        elif "How many" in question:
            score += 1.0 if bits & HAS_NUMBER else 0.0
        if "March 2024" in question:
            score += 1.0 if moment < MONDAY + timedelta(days=28 + 10) else 0.4
        scores.append(score)
    return scores


class Stored(HashEmbedder):
    """The vectors as the store gives them back."""

    def stored(self, texts):
        from_store = [pair for text in texts for pair in _quantized(self.embed([text]))]
        return dequantize(from_store, self.dim)


def _quantized(rows):
    scale = float(np.abs(rows[0]).max()) / 127
    return [(scale, np.rint(rows[0] / scale).astype(np.int8).tobytes())]


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("embedder", [None, Stored()], ids=["words", "vectors"])
def test_scores_are_those_of_the_recipe_told_in_loops(question, embedder):
    desk, turns, sessions = Desk(embedder), [], []
    for day in range(6):
        said = chatter(day, 5 + 3 * day)
        at = MONDAY + timedelta(days=7 * day)
        desk.say(TALK, said, at=at)
        turns += [(speaker, text, at + timedelta(minutes=n)) for n, (speaker, text) in enumerate(said)]
        sessions += [day] * len(said)

    hits = desk.find(ANA, question, limit=1000, explain=True)

    found = {hit.seq: hit.score - hit.parts.get("bearing", 0.0) for hit in hits}
    expected = dict(enumerate(by_loops(turns, sessions, question, embedder), start=1))
    assert found == pytest.approx(expected, abs=1e-5)
    desk.store.close()


def test_bearing_moves_all_scores_alike(desk):
    desk.say(TALK, chatter(1, 30))

    for question in ("Where was the wedding?", "Explain quantum chromodynamics"):
        assert len({hit.parts["bearing"] for hit in desk.find(ANA, question, limit=100, explain=True)}) == 1


def test_a_question_about_the_memory_bears_on_it_more_than_another(desk):
    desk.say(TALK, chatter(1, 30))

    about = desk.find(ANA, "Where was the wedding with the camera?", limit=1)[0]
    other = desk.find(ANA, "Explain quantum chromodynamics", limit=1)[0]
    assert about.score > 0 > other.score


@pytest.mark.parametrize("bearing", [BEARING, BEARING_OF_WORDS])
def test_fewer_documents_are_judged_more_mildly_up_to_five_hundred(bearing):
    sizes = [bearing.of(0.5, 0.5, documents) for documents in (1, 10, 100, 500, 5000)]

    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == sizes[-2]


def test_a_rarer_word_tells_more():
    assert idf(1, 100) > idf(10, 100) > idf(100, 100) > 0


@pytest.mark.parametrize(
    ("when", "said", "score"),
    [
        (When(2024, 3, 4), "2024-03-04T12:00", 1.0),
        (When(2024, 3, 4), "2024-03-02T12:00", 1.0),
        (When(2024, 3, 4), "2024-03-15T00:00", 1.0),
        (When(2024, 3, 4), "2024-04-08T00:00", 0.4),
        (When(2024, 3, 4), "2024-05-01T00:00", 0.0),
        (When(None, 3, None), "2019-03-20T00:00", 1.0),
        (When(None, 12, None), "2024-01-03T00:00", 1.0),
        (When(None, 3, None), "2019-08-20T00:00", 0.0),
        (When(2024), "2024-12-31T23:59", 1.0),
        (When(2024), "2025-01-01T00:00", 0.0),
        (When(2024, 2, 31), "2024-02-28T00:00", 1.0),
    ],
)
def test_days_that_match(when, said, score):
    at = np.array([said], "datetime64[ms]")
    year = at.astype("datetime64[Y]").astype(np.int64) + 1970

    assert days_match(when, at.astype(np.int64), year).tolist() == [score]


@settings(max_examples=40)
@given(
    said=st.lists(st.text(min_size=0, max_size=30) | st.sampled_from(WORDS), max_size=25),
    question=st.text(max_size=30) | st.sampled_from(QUESTIONS) | st.sampled_from(WORDS),
    embedded=st.booleans(),
)
def test_scores_are_finite_and_the_sum_of_their_parts(said, question, embedded):
    desk = Desk(HashEmbedder() if embedded else None)
    if said:
        desk.say(TALK, said)

    hits = desk.find(ANA, question, limit=100, explain=True)

    assert len(hits) == (len(said) if question.strip() else 0)
    assert all(math.isfinite(hit.score) for hit in hits)
    assert all(sum(hit.parts.values()) == pytest.approx(hit.score, abs=1e-9) for hit in hits)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    desk.store.close()


def test_every_constant_counts():
    """A weight of 0 would be a component that nobody computes."""
    assert all(getattr(DEFAULTS, name) for name in DEFAULTS.__slots__)
