"""
Answers of a model, their judges and scores: from our context, from the whole conversation, and from nothing.

The same model with the same instructions answers in all three cases, so that what is compared is what it was shown.
Every answer and every verdict is written down at once; a run that is stopped asks for none of them again.
"""

from __future__ import annotations

import hashlib
import math
import re
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from functools import cache
from importlib import resources
from statistics import mean
from typing import Any, Literal

from ..llm.protocol import LanguageModel, ModelError, Request
from ..text import dataclass
from ..text.render import render_block, render_line
from ..text.terms import count_tokens, stemmer
from .datasets import Benchmark, Question, Sample
from .retrieval import OVERALL, Mean, ProgressCallback, RetrievalRun, RunState, StepRecord, averages, no_progress

Arm = Literal["holdfast", "full context", "no memory"]
ARMS: tuple[Arm, ...] = ("holdfast", "full context", "no memory")
FULL_TOKENS = 120_000  # more than that few models take; the oldest messages are left out, and how many is reported
TRIES = 5
LONGEST_WAIT_S = 60.0
NOTHING_READ = "nothing could be read from the verdict"


@dataclass(frozen=True, slots=True)
class AnsweredQuestion:
    """A question with the answer, the figures and the failure of each arm."""

    question: Question
    answers: dict[str, str] = field(default_factory=dict)
    figures: dict[str, dict[str, float]] = field(default_factory=dict)
    shown_tokens: dict[str, int] = field(default_factory=dict)
    cut_lines: int = 0
    failed: dict[str, str] = field(default_factory=dict)


class AnswerRun:
    """A run that has a model answer the questions of a benchmark."""

    def __init__(
        self,
        run: RetrievalRun,
        state: RunState,
        model: LanguageModel,
        *,
        judge: LanguageModel | None = None,
        own_judge: str | None = None,
        budget_tokens: int = 4000,
        parallel: int = 4,
        progress: ProgressCallback = no_progress,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self._run, self._state, self._progress = run, state, progress
        self._model, self._judge, self._own = model, judge or model, own_judge
        self._budget, self._parallel, self._wait = budget_tokens, parallel, wait
        name = run.benchmark.name
        said = load_prompts()["answer"]
        self._system = said.get(name, said["default"])

    def about(self) -> StepRecord:
        """Return the models that answer and judge, with every instruction word for word."""
        used: dict[str, Judge] = {}
        for sample in self._run.benchmark.samples:
            for question in sample.questions:
                for judge in judges_for(self._run.benchmark.name, question, self._own):
                    used[f"{judge.figure} {judge.digest}"] = judge
        return {
            "model": self._model.name,
            "judge": self._judge.name,
            "budget_tokens": self._budget,
            "answer_prompt": self._system,
            "judge_prompts": {name: judge.system for name, judge in sorted(used.items())},
        }

    def answers(self) -> Iterator[AnsweredQuestion]:
        """Answer every question in order; a question without an answer counts as wrong, with the reason."""
        tasks = [(s, q) for s in self._run.benchmark.samples for q in s.questions]
        with ThreadPoolExecutor(self._parallel) as pool:
            for start in range(0, len(tasks), self._parallel):
                # Contexts are made one after another, because the memory's clock is that of the question.
                made = [(s, q, self._contexts(s, q)) for s, q in tasks[start : start + self._parallel]]
                for done in pool.map(lambda task: self._answered(*task), made):
                    self._progress("answering", start + 1, len(tasks))
                    yield done
        self._progress("answering", len(tasks), len(tasks))

    def _contexts(self, sample: Sample, question: Question) -> dict[Arm, tuple[str, int]]:
        """Build the contexts of the arms that have no answer yet: text, and the number of lines left out."""
        made: dict[Arm, tuple[str, int]] = {}
        for arm in ARMS:
            if self._state.get(self._answer_step(arm), question.id) is None:
                made[arm] = self._shown(arm, sample, question)
        return made

    def _shown(self, arm: Arm, sample: Sample, question: Question) -> tuple[str, int]:
        if arm == "no memory":
            return "", 0
        if arm == "holdfast":
            self._run.clock.now = question.at
            name = f"{sample.id} asked" if sample.apart else sample.id
            chat = self._run.memory.conversation(name, user=sample.id)
            return chat.context(question.question, budget_tokens=self._budget).to_text(), 0
        left = FULL_TOKENS
        kept: list[str] = []
        for one in reversed(sample.lines):
            left -= count_tokens(one.rendered)
            if left < 0:
                break
            kept.append(one.rendered.rstrip("\n"))
        return render_block("conversation", kept[::-1]), len(sample.lines) - len(kept)

    def _answer_step(self, arm: Arm) -> str:
        budget = f" {self._budget}" if arm == "holdfast" else ""
        return f"answer: {arm}{budget}, {self._model.name}"

    def _answered(self, sample: Sample, question: Question, contexts: dict[Arm, tuple[str, int]]) -> AnsweredQuestion:
        done = AnsweredQuestion(question)
        cut = 0
        for arm in ARMS:
            step = self._answer_step(arm)
            try:
                row = self._state.get(step, question.id) or self._answer(step, question, *contexts[arm])
                figures = score_by_rule(self._run.benchmark.name, question, row["text"], self._own)
                for judge in judges_for(self._run.benchmark.name, question, self._own):
                    figures[judge.figure] = self._judged(judge, step, question, row["text"])
            except ModelError as error:
                if not error.transient:
                    raise
                done.failed[arm] = str(error)
                done.figures[arm] = _zero_figures(self._run.benchmark.name, question, self._own)
                continue
            done.answers[arm], done.figures[arm], done.shown_tokens[arm] = row["text"], figures, row["shown_tokens"]
            cut = max(cut, row["cut"])
        return AnsweredQuestion(question, done.answers, done.figures, done.shown_tokens, cut, done.failed)

    def _answer(self, step: str, question: Question, shown: str, cut: int) -> StepRecord:
        asked_at = f"The question is asked on {question.at:%A, %d %B %Y, %H:%M}."
        memory = shown or "There is no memory of any conversation."
        text = f"{memory}\n\n{asked_at}\nQuestion: {render_line(question.question)}"
        said = self._ask(self._model, self._system, text)
        return self._state.put(step, question.id, text=said, shown_tokens=count_tokens(shown), cut=cut)

    def _judged(self, judge: Judge, answer_step: str, question: Question, answer: str) -> float:
        step = f"{judge.figure} {judge.digest} of {answer_step}, {self._judge.name}"
        row = self._state.get(step, question.id)
        if row is None:
            replies = [self._ask(self._judge, judge.system, text) for text in judge_prompts(judge, question, answer)]
            figure = parse_verdict(judge, question, replies)
            if figure is None:
                raise ModelError(NOTHING_READ, hint="run again, or take another judge")
            row = self._state.put(step, question.id, value=figure, said=replies)
        return float(row["value"])

    def _ask(self, model: LanguageModel, system: str, text: str) -> str:
        """Ask the model; retry transient errors with growing waits."""
        request = Request("chat", system, text, prompt="bench", max_output_tokens=1024)
        for attempt in range(1, TRIES + 1):
            try:
                return model.ask(request).text.strip()
            except ModelError as error:
                if not error.transient or attempt == TRIES:
                    raise
                self._wait(min(LONGEST_WAIT_S, error.retry_after_s or 2.0**attempt))
        raise AssertionError("the last attempt returns or raises")


def _zero_figures(benchmark: str, question: Question, own: str | None) -> dict[str, float]:
    """Return the figures of a question without an answer."""
    names: Sequence[str] = [judge.figure for judge in judges_for(benchmark, question, own)]
    return dict.fromkeys([*score_by_rule(benchmark, question, "", own), *names], 0.0)


SOUND = "sound keys"  # the overall figure without questions whose key is known to be wrong
BY_TYPE = "mean of types"  # LongMemEval's second figure: every type of question counts the same


def build_answer_report(
    benchmark: Benchmark, answered: Iterable[AnsweredQuestion], wrong: Mapping[str, str], *, seed: int = 0
) -> dict[str, Any]:
    """
    Build the report as data.

    Args:
        benchmark: what was asked; separate categories are in no overall figure.
        answered: from `Answering.answers`.
        wrong: questions with a wrong key, from `wrong_gold`.
        seed: of the resampling for intervals.

    Returns:
        ``{"arms": {arm: {category: {figure: {"value", "low", "high", "n"}}}}, "shown_tokens": {arm: mean},
        "failed": {arm: {id: why}}, "cut_lines", "known_wrong": {id: why}}``.
    """
    every = list(answered)
    ids = {one.question.id for one in every}
    return {
        "arms": {arm: _arm_figures(benchmark, every, arm, wrong, seed) for arm in ARMS},
        "shown_tokens": {arm: _mean_context_tokens(every, arm) for arm in ARMS},
        "failed": {arm: {one.question.id: one.failed[arm] for one in every if arm in one.failed} for arm in ARMS},
        "cut_lines": max((one.cut_lines for one in every), default=0),
        "known_wrong": {id: why for id, why in wrong.items() if id in ids},
        "answers": [
            {
                "question_id": one.question.id,
                "gold": one.question.answer,
                "answers": one.answers,
                "figures": one.figures,
            }
            for one in every
        ],
    }


def _mean_context_tokens(answered: Sequence[AnsweredQuestion], arm: str) -> float:
    return mean([one.shown_tokens[arm] for one in answered if arm in one.shown_tokens] or [0])


def _arm_figures(
    benchmark: Benchmark, answered: Sequence[AnsweredQuestion], arm: str, wrong: Mapping[str, str], seed: int
) -> dict[str, Any]:
    rows = [(one.question.category, one.figures[arm]) for one in answered]
    apart = (*benchmark.apart, *(("abstention",) if benchmark.name == "longmemeval" else ()))
    found = averages(rows, apart, seed=seed)
    if benchmark.name == "longmemeval":  # abstention is in its overall figure, and in none of the types
        found[OVERALL] = averages(rows, seed=seed)[OVERALL]
        types = [row["correct"].value for name, row in found.items() if name not in (OVERALL, "abstention")]
        found |= {BY_TYPE: {"correct": Mean(mean(types), mean(types), mean(types), len(types))}} if types else {}
    sound = [one for one in answered if one.question.id not in wrong]
    if len(sound) < len(answered):
        kept = averages([(one.question.category, one.figures[arm]) for one in sound], apart, seed=seed)
        found |= {SOUND: kept[OVERALL]} if OVERALL in kept else {}
    return {
        category: {
            name: {"value": figure.value, "low": figure.low, "high": figure.high, "n": figure.n}
            for name, figure in row.items()
        }
        for category, row in found.items()
    }


def format_answer_table(report: Mapping[str, Any]) -> list[str]:
    """Format the report as lines of text: a block for each arm, its overall figures with their intervals."""
    lines = []
    for arm, rows in report["arms"].items():
        figures = list(dict.fromkeys(name for row in rows.values() for name in row))
        head = f"{arm}, {report['shown_tokens'][arm]:,.0f} tokens"
        lines.append(f"{head:30}{'n':>5}  " + "".join(f"{name:>18}" for name in figures))
        last = [name for name in (OVERALL, BY_TYPE, SOUND) if name in rows]
        for name in [*(name for name in rows if name not in last), *last]:
            row = rows[name]
            n = max(figure["n"] for figure in row.values())
            cells = (_cell(row[figure]) if figure in row else "-" for figure in figures)
            lines.append(f"{name:30}{n:5}  " + "".join(f"{cell:>18}" for cell in cells))
        lines.append("")
    return lines[:-1]


def _cell(figure: Mapping[str, float]) -> str:
    return f"{figure['value']:.3f} ±{(figure['high'] - figure['low']) / 2:.3f}"


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
