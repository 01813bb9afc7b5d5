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
from holdfast.recall.index import Match
from holdfast.recall.query import When
from holdfast.recall.rank import DEFAULTS, RELEVANCE, RELEVANCE_BY_WORDS, best_of_part, days_match, idf
from holdfast.testing.fakes import HashEmbedder
from holdfast.text.terms import (
    FIRST_PERSON,
    HAS_NUMBER,
    IS_QUESTION,
    NAMES_THING,
    NAMES_TIME,
    dated_terms,
    signals,
    terms,
)

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
    "Which concerts has Ben been to?",
    "What recipes and photos do Ana and Ben have in common?",
)
FORMS = ("{}", "I say {}", "{}", "in the hall of old Porto {}")
SEVERAL = ("How many", "Which concerts", "in common")


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


class ByLoops:
    """
    Every turn's score as the recipe tells it, message by message, without an array.

    *turns* are (speaker, text, time); written from the description, not from the code.
    """

    def __init__(self, turns, sessions, question):
        self.turns, self.sessions, self.question, self.n = turns, sessions, question, len(turns)
        names = sorted({speaker for speaker, _, _ in turns})
        self.named = [name for name in names if re.search(rf"\b{name}\b", question, re.I)]
        put = re.sub(r"\b(?:Ana|Ben)\b", "you", re.sub(r"\b(?:Ana|Ben)'s", "your", question))
        stripped = " ".join(re.sub(r"\b(?:Ana|Ben)(?:'s)?\b", "", question).split())
        self.asked = Counter(terms(stripped) or terms(question))
        self.text = put if terms(stripped) else question
        self.docs = [dated_terms(words.replace("went", "go"), at) for _, words, at in turns]
        self.lengths = [doc.total() for doc in self.docs]

    def bm25(self, counts, lengths, k1, b):
        mean, scores = sum(lengths) / len(lengths), [0.0] * len(lengths)
        for word, times in self.asked.items():
            holding = sum(1 for count in counts if count[word])
            weight = math.log(1 + (len(lengths) - holding + 0.5) / (holding + 0.5))
            for at, count in enumerate(counts):
                tf = count[word]
                scores[at] += times * weight * tf * (k1 + 1) / (tf + k1 * (1 - b + b * lengths[at] / mean))
        return scores

    def fused(self, embedder):
        """Words and meaning; the share of the words comes with it."""
        words = standard(self.bm25(self.docs, self.lengths, 0.9, 0.4))
        if embedder is None:
            return words, 1.0
        share = embedder.thresholds.bm25_weight
        pairs = embedder.stored([words for _, words, _ in self.turns])
        meaning = standard([float(row @ embedder.embed([self.text])[0]) for row in pairs])
        return [share * a + (1 - share) * b for a, b in zip(words, meaning, strict=True)], share

    def near(self, at, reach):
        """The places within *reach* turns in the same session."""
        around = range(at - reach, at + reach + 1)
        return [i for i in around if 0 <= i < self.n and self.sessions[i] == self.sessions[at]]

    def surroundings(self, h, share):
        """The session's best turns, and the words of the window and of the whole session."""
        members = {s: [at for at in range(self.n) if self.sessions[at] == s] for s in self.sessions}
        top = {s: sum(sorted((h[at] for at in m), reverse=True)[:3]) / min(3, len(m)) for s, m in members.items()}
        tops = standard([top[self.sessions[at]] for at in range(self.n)])
        groups = [self.near(at, 2) for at in range(self.n)]
        around = standard(self.bm25(*self.joined(groups), 1.2, 0.75))
        order = sorted(members)
        whole = self.bm25(*self.joined([members[s] for s in order]), 1.2, 0.75)
        spread = standard([whole[order.index(self.sessions[at])] for at in range(self.n)])
        context = [0.25 * t + 0.25 * share * (a + s) for t, a, s in zip(tops, around, spread, strict=True)]
        gathered = [self.told(group) / (self.told(range(self.n), asked=self.asked) or 1.0) for group in groups]
        return [c + g for c, g in zip(context, gathered, strict=True)]

    def told(self, places, asked=None):
        """How telling the words of the question are that the turns at *places* hold, or all of *asked*."""
        held = asked or [word for word in self.asked if any(self.docs[at][word] for at in places)]
        holding = {word: sum(1 for doc in self.docs if doc[word]) for word in held}
        return sum(
            self.asked[word] * math.log(1 + (self.n - count + 0.5) / (count + 0.5)) for word, count in holding.items()
        )

    def repeated(self, at):
        """The share of the question's words in a turn that one of the two turns before it held."""
        before = [i for i in self.near(at, 2) if i < at]
        held = {word: sum(1 for doc in self.docs if doc[word]) for word in self.asked if self.docs[at][word]}
        telling = {word: math.log(1 + (self.n - count + 0.5) / (count + 0.5)) for word, count in held.items()}
        again = sum(value for word, value in telling.items() if any(self.docs[i][word] for i in before))
        return again / sum(telling.values()) if telling else 0.0

    def joined(self, groups):
        counts = [sum((self.docs[i] for i in group), Counter()) for group in groups]
        return counts, [sum(self.lengths[i] for i in group) for group in groups]

    def priors(self, at, h, other):
        """What a turn is worth by its place and its form."""
        _, said, moment = self.turns[at]
        bits, opens = signals(said), at == 0 or self.sessions[at - 1] != self.sessions[at]
        score = (1 - other) * (
            (0.7 if bits & NAMES_TIME else 0.0) + (0.5 if opens else 0.0) - (0.5 if bits & IS_QUESTION else 0.0)
        )
        if not opens and signals(self.turns[at - 1][1]) & IS_QUESTION and not bits & IS_QUESTION:
            score += 0.4 * max(h[at - 1], 0) if self.turns[at - 1][0] != self.turns[at][0] else 0.0
        if self.question.startswith("When"):
            score += 1.0 if bits & NAMES_TIME else 0.0
        elif "How many" in self.question:
            score += 1.0 if bits & HAS_NUMBER else 0.0
        if "March 2024" in self.question:
            score += 1.0 if moment < MONDAY + timedelta(days=28 + 10) else 0.4
        return score

    def scores(self, embedder):
        h, share = self.fused(embedder)
        context = self.surroundings(h, share)
        several = any(form in self.question for form in SEVERAL)
        out = []
        for at, (speaker, _, _) in enumerate(self.turns):
            one = len(self.named) == 1
            me, other = float(one and speaker == self.named[0]), float(one and speaker != self.named[0])
            smooth = {0: 1.0, 1: 0.2, 2: 0.1}
            score = sum(smooth[abs(i - at)] * h[i] for i in self.near(at, 2))
            score += context[at] + 1.0 * me - (0.35 * other + 0.3 * self.repeated(at)) * max(h[at], 0)
            out.append(score + self.priors(at, h, other) + (self.lists(at) * (1 - other) - 0.56 if several else 0.0))
        return self.spread(out) if several else out

    def lists(self, at):
        """What a turn is worth to a question for several things by its form."""
        bits = signals(self.turns[at][1])
        return (0.8 if bits & NAMES_THING else 0.0) + (0.6 if bits & FIRST_PERSON else 0.0)

    def spread(self, scores):
        """Less for each better turn of the same session, up to four."""
        better = [
            len({round(scores[i], 9) for i in self.near(at, self.n) if scores[i] > scores[at] + 1e-9})
            for at in range(self.n)
        ]
        return [score - 0.2 * min(count, 4) for score, count in zip(scores, better, strict=True)]


def by_loops(turns, sessions, question, embedder):
    return ByLoops(turns, sessions, question).scores(embedder)


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
        said = [(who, FORMS[at % 4].format(text)) for at, (who, text) in enumerate(chatter(day, 5 + 3 * day))]
        at = MONDAY + timedelta(days=7 * day)
        desk.say(TALK, said, at=at)
        turns += [(speaker, text, at + timedelta(minutes=n)) for n, (speaker, text) in enumerate(said)]
        sessions += [day] * len(said)

    hits = desk.find(ANA, question, limit=1000, explain=True)

    found = {hit.seq: hit.score for hit in hits}
    expected = dict(enumerate(by_loops(turns, sessions, question, embedder), start=1))
    assert found == pytest.approx(expected, abs=1e-5)
    desk.store.close()


def test_a_question_about_the_memory_bears_on_it_more_than_another(desk):
    desk.say(TALK, chatter(1, 30))

    about = desk.find(ANA, "Where was the wedding with the camera?", limit=1)[0]
    other = desk.find(ANA, "Explain quantum chromodynamics", limit=1)[0]
    assert about.relevance > 0.5 > 0.2 > other.relevance


def test_a_question_about_somebody_never_mentioned_finds_nothing_relevant(desk):
    desk.say(TALK, ["My brother plays the piano", "Mina is afraid of thunder", *(text for _, text in chatter(1, 20))])

    def best(question):
        return desk.find(ANA, question, limit=1)[0].relevance

    assert best("What is Otto afraid of?") < best("What is Mina afraid of?") - 0.2
    assert best("What is Otto's favorite piano piece?") < best("What is my favorite piano piece?")
    assert best("What does Ana play on the piano?") > best("What does Otto play on the piano?")  # the user's own name


@pytest.mark.parametrize("relevance", [RELEVANCE, RELEVANCE_BY_WORDS])
def test_fewer_documents_are_judged_more_mildly_up_to_five_hundred(relevance):
    sizes = [relevance.best(3.0, 0.5, 0.5, False, documents) for documents in (1, 10, 100, 500, 5000)]

    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == sizes[-2]


def test_a_fact_beside_the_best_hit_loses_its_relevance_sooner_than_a_turn():
    for behind in (0.5, 1.0, 3.0):
        assert (
            RELEVANCE.of(2.0, behind, fact=True) < RELEVANCE.of(2.0, behind, fact=False) < RELEVANCE.of(2.0, 0.0, False)
        )


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


def test_the_best_fact_of_a_part_answers_it_if_it_holds_most_of_its_words():
    """Of three words the first names something else; the second and third are a part of their own."""
    matches = [
        Match(1, np.array([0]), np.ones(1)),
        Match(1, np.array([1, 2]), np.ones(2)),
        Match(1, np.array([2]), np.ones(1)),
    ]

    assert best_of_part([1, 2], matches, [2.0, 1.0, 1.0], 3).tolist() == [False, False, True]
    assert best_of_part([1], matches, [2.0, 1.0, 1.0], 3).tolist() == [False, True, True]
    assert not best_of_part([1], matches, [8.0, 1.0, 1.0], 3).any()  # a small part of the question
    assert not best_of_part([0, 1], matches, [1.0, 1.0, 1.0], 3).any()  # half of its words
