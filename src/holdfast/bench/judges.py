"""
The scoring of answers by the rules of each benchmark, as figures from 0 to 1.  Pure.

A judge is asked with instructions of ``data/judging.toml`` (or others, word for word) and reads a number out of what a
model says; a rule counts without asking anybody.
"""

from __future__ import annotations

import hashlib
import math
import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal

from ..text.render import render_block
from ..text.terms import stemmer
from .questions import Question

Reads = Literal["label", "yes", "score", "order"]

_LABEL = re.compile(r"\b(CORRECT|WRONG|INCORRECT)\b", re.I)
_SCORE = re.compile(r'(?:score"?\s*[:=]\s*"?)(1(?:\.0+)?|0?\.5|0(?:\.0+)?)\b', re.I)
_WORD = re.compile(r"[a-z0-9]+")
_ARTICLES = frozenset(("a", "an", "the", "and"))
NOTHING = ("no information available", "not mentioned")


@cache
def load_prompts() -> Mapping[str, Mapping[str, str]]:
    """Load all instructions: ``answer`` by benchmark, ``judge`` by name."""
    text = (resources.files(__package__) / "data" / "judging.toml").read_text(encoding="utf-8")
    return {kind: {name: said.strip() for name, said in table.items()} for kind, table in tomllib.loads(text).items()}


@dataclass(frozen=True, slots=True)
class Judge:
    """A way to judge: the name of its figure, its instructions, and the form of its reply."""

    figure: str
    system: str
    reads: Reads

    @property
    def digest(self) -> str:
        """Return 12 hex digits of the instructions."""
        return hashlib.sha256(self.system.encode()).hexdigest()[:12]


def judges_for(benchmark: str, question: Question, own: str | None = None) -> tuple[Judge, ...]:
    """
    Return the judges of the answers to *question*; none where a rule decides.

    Args:
        benchmark: its name.
        question: its category decides.
        own: instructions in place of ours; what they make the model say is read in the same way.
    """
    said = load_prompts()["judge"]
    if benchmark == "beam":
        extra = (Judge("order", said["order"], "order"),) if question.category == "event_ordering" else ()
        return (Judge("rubric", own or said["rubric"], "score"), *extra)
    if benchmark == "longmemeval":
        return (Judge("correct", own or said[_kind(question)], "yes"),)
    if question.abstain:
        return ()
    if own:
        return (Judge("own", own, "label"),)
    return Judge("generous", said["generous"], "label"), Judge("strict", said["strict"], "label")


def _kind(question: Question) -> str:
    if question.abstain:
        return "abstention"
    return {
        "temporal-reasoning": "temporal",
        "knowledge-update": "update",
        "single-session-preference": "preference",
    }.get(question.category, "equivalent")


def judge_prompts(judge: Judge, question: Question, answer: str) -> list[str]:
    """Render the prompts for a judge: one for each line of a rubric, otherwise one."""
    base = render_block("question", [question.question])
    given = render_block("answer", [answer])
    if judge.reads == "score":
        lines = question.rubric or (question.answer,)
        return ["\n".join((base, render_block("criterion", [line]), given)) for line in lines]
    if judge.reads == "order":
        events = [f"{number}. {line}" for number, line in enumerate(question.rubric, 1)]
        return ["\n".join((base, render_block("events", events), given))]
    return ["\n".join((base, render_block("right_answer", [question.answer]), given))]


def parse_verdict(judge: Judge, question: Question, replies: Sequence[str]) -> float | None:
    """Parse replies to a figure from 0 to 1; ``None`` when a reply has no verdict."""
    if judge.reads == "score":
        scores = [_SCORE.findall(reply) for reply in replies]
        return sum(float(found[-1]) for found in scores) / len(scores) if all(scores) else None
    reply = replies[0]
    if judge.reads == "order":
        numbers = [int(number) for number in re.findall(r"\d+", reply)]
        return score_ordering(len(question.rubric), numbers) if numbers else None
    if judge.reads == "yes":
        word = re.search(r"\b(yes|no)\b", reply, re.I)
        return float(word[1].lower() == "yes") if word else None
    labels = _LABEL.findall(reply)
    return float(labels[-1].upper() == "CORRECT") if labels else None


def score_by_rule(benchmark: str, question: Question, answer: str, own: str | None = None) -> dict[str, float]:
    """
    Compute the figures that need no judge.

    Of LoCoMo and REALTALK the F1 of stemmed words as LoCoMo defines it; questions without an answer are right when the
    answer says so, and all figures are that one.
    """
    if benchmark in ("beam", "longmemeval"):
        return {}
    if question.abstain:
        right = float(any(words in answer.lower() for words in NOTHING))
        return dict.fromkeys(("f1", "own") if own else ("f1", "generous", "strict"), right)
    return {"f1": locomo_f1(question, answer)}


def locomo_f1(question: Question, answer: str) -> float:
    """
    Score as LoCoMo does: the mean over the best match of several answers, the part before ``;`` of an open one.
    """
    if question.category.startswith("1-"):
        wanted = [part.strip() for part in question.answer.split(",")]
        given = [part.strip() for part in answer.split(",")]
        return sum(max(f1(part, one) for part in given) for one in wanted) / len(wanted)
    right = question.answer.split(";")[0].strip() if question.category == "3-open-domain" else question.answer
    return f1(answer, right)


def f1(answer: str, right: str) -> float:
    """Return the harmonic mean of precision and recall over stemmed words, without articles."""
    given, wanted = Counter(_stems(answer)), Counter(_stems(right))
    same = sum((given & wanted).values())
    if not same:
        return 0.0
    precision, recall = same / sum(given.values()), same / sum(wanted.values())
    return 2 * precision * recall / (precision + recall)


def _stems(text: str) -> list[str]:
    plain = text.lower().replace(",", "").replace("'", "")
    words = [word for word in _WORD.findall(plain) if word not in _ARTICLES]
    return list(map(stemmer("porter"), words))


def score_ordering(count: int, numbers: Sequence[int]) -> float:
    """
    Score an order of events as BEAM does: Kendall's tau-b from 0 to 1, times the F1 of the events named.

    Args:
        count: events there are, numbered from 1 in the right order.
        numbers: those that the answer names, in its order; 0 for what is none of them.
    """
    right = [str(number) for number in range(1, count + 1)]
    seen: set[int] = set()
    given = []
    for place, number in enumerate(numbers):
        known = 1 <= number <= count and number not in seen
        given.append(str(number) if known else f"other {place}")
        seen |= {number} if known else set()
    hits = len(seen)
    if not hits:
        return 0.0
    precision, recall = hits / len(given), hits / count
    every = list(dict.fromkeys([*right, *given]))
    ranks = [[order.index(one) if one in order else len(every) for one in every] for order in (right, given)]
    tau = kendall(*ranks)
    return 0.0 if tau is None else (tau + 1) / 2 * (2 * precision * recall / (precision + recall))


def kendall(first: Sequence[int], second: Sequence[int]) -> float | None:
    """Return Kendall's tau-b of two rankings of the same things; ``None`` when one of them is all ties."""
    agree = ties_first = ties_second = pairs = 0
    for a in range(len(first)):
        for b in range(a):
            one, other = first[a] - first[b], second[a] - second[b]
            pairs += 1
            ties_first += not one
            ties_second += not other
            agree += (one * other > 0) - (one * other < 0)
    under = math.sqrt((pairs - ties_first) * (pairs - ties_second))
    return agree / under if under else None
