"""
Answers of a model and what judges say of them: from our context, from the whole conversation, from nothing.

The same model with the same instructions answers in all three cases, so that what is compared is what it was shown.
Every answer and every verdict is written down at once; a run that is stopped asks for none of them again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Literal

from ..llm.protocol import LanguageModel, ModelError, Request
from ..text.render import block, line
from ..text.tokens import count_tokens
from .asking import Asking, Progress, silent
from .judges import Judge, asked, by_rule, judges, prompts, read
from .questions import Question, Sample
from .state import Record, State

Arm = Literal["holdfast", "full context", "no memory"]
ARMS: tuple[Arm, ...] = ("holdfast", "full context", "no memory")
FULL_TOKENS = 120_000  # more than that few models take; the oldest messages are left out, and how many is reported
TRIES = 5
LONGEST_WAIT_S = 60.0
NOTHING_READ = "nothing could be read from the verdict"


@dataclass(frozen=True, slots=True)
class Answered:
    """One question with the answer of each arm, its figures, and why there is none where there is none."""

    question: Question
    answers: dict[str, str] = field(default_factory=dict)
    figures: dict[str, dict[str, float]] = field(default_factory=dict)
    shown_tokens: dict[str, int] = field(default_factory=dict)
    cut_lines: int = 0
    failed: dict[str, str] = field(default_factory=dict)


class Answering:
    """Asks the questions of one filled run with a model."""

    def __init__(
        self,
        run: Asking,
        state: State,
        model: LanguageModel,
        *,
        judge: LanguageModel | None = None,
        own_judge: str | None = None,
        budget_tokens: int = 4000,
        parallel: int = 4,
        progress: Progress = silent,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self._run, self._state, self._progress = run, state, progress
        self._model, self._judge, self._own = model, judge or model, own_judge
        self._budget, self._parallel, self._wait = budget_tokens, parallel, wait
        name = run.benchmark.name
        said = prompts()["answer"]
        self._system = said.get(name, said["default"])

    def about(self) -> Record:
        """Who answered and judged, with every instruction word for word."""
        used: dict[str, Judge] = {}
        for sample in self._run.benchmark.samples:
            for question in sample.questions:
                for judge in judges(self._run.benchmark.name, question, self._own):
                    used[f"{judge.figure} {judge.digest}"] = judge
        return {
            "model": self._model.name,
            "judge": self._judge.name,
            "budget_tokens": self._budget,
            "answer_prompt": self._system,
            "judge_prompts": {name: judge.system for name, judge in sorted(used.items())},
        }

    def answers(self) -> Iterator[Answered]:
        """Every question, in order; what the model could not be brought to answer counts as wrong, and says why."""
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
        """What each arm is still to be shown: text, and lines that were left out; nothing for what is answered."""
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
        return block("conversation", kept[::-1]), len(sample.lines) - len(kept)

    def _answer_step(self, arm: Arm) -> str:
        budget = f" {self._budget}" if arm == "holdfast" else ""
        return f"answer: {arm}{budget}, {self._model.name}"

    def _answered(self, sample: Sample, question: Question, contexts: dict[Arm, tuple[str, int]]) -> Answered:
        done = Answered(question)
        cut = 0
        for arm in ARMS:
            step = self._answer_step(arm)
            try:
                row = self._state.get(step, question.id) or self._answer(step, question, *contexts[arm])
                figures = by_rule(self._run.benchmark.name, question, row["text"], self._own)
                for judge in judges(self._run.benchmark.name, question, self._own):
                    figures[judge.figure] = self._judged(judge, step, question, row["text"])
            except ModelError as error:
                if not error.transient:
                    raise
                done.failed[arm] = str(error)
                done.figures[arm] = _nothing(self._run.benchmark.name, question, self._own)
                continue
            done.answers[arm], done.figures[arm], done.shown_tokens[arm] = row["text"], figures, row["shown_tokens"]
            cut = max(cut, row["cut"])
        return Answered(question, done.answers, done.figures, done.shown_tokens, cut, done.failed)

    def _answer(self, step: str, question: Question, shown: str, cut: int) -> Record:
        asked_at = f"The question is asked on {question.at:%A, %d %B %Y, %H:%M}."
        memory = shown or "There is no memory of any conversation."
        text = f"{memory}\n\n{asked_at}\nQuestion: {line(question.question)}"
        said = self._ask(self._model, self._system, text)
        return self._state.put(step, question.id, text=said, shown_tokens=count_tokens(shown), cut=cut)

    def _judged(self, judge: Judge, answer_step: str, question: Question, answer: str) -> float:
        step = f"{judge.figure} {judge.digest} of {answer_step}, {self._judge.name}"
        row = self._state.get(step, question.id)
        if row is None:
            replies = [self._ask(self._judge, judge.system, text) for text in asked(judge, question, answer)]
            figure = read(judge, question, replies)
            if figure is None:
                raise ModelError(NOTHING_READ, hint="run again, or take another judge")
            row = self._state.put(step, question.id, value=figure, said=replies)
        return float(row["value"])

    def _ask(self, model: LanguageModel, system: str, text: str) -> str:
        """The model's answer; what may pass is tried again, later and later."""
        request = Request("chat", system, text, prompt="bench", max_output_tokens=1024)
        for attempt in range(1, TRIES + 1):
            try:
                return model.ask(request).text.strip()
            except ModelError as error:
                if not error.transient or attempt == TRIES:
                    raise
                self._wait(min(LONGEST_WAIT_S, error.retry_after_s or 2.0**attempt))
        raise AssertionError("the last attempt returns or raises")


def _nothing(benchmark: str, question: Question, own: str | None) -> dict[str, float]:
    """The figures of a question that was not answered."""
    names: Sequence[str] = [judge.figure for judge in judges(benchmark, question, own)]
    return dict.fromkeys([*by_rule(benchmark, question, "", own), *names], 0.0)
