"""
A question benchmark run through the front door: every conversation stored, every question searched.

What is finished is written down at once (`State`), so that a run can be stopped and go on.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol

from .. import __version__
from ..config import Config
from ..embed.protocol import Embedder
from ..memory import Memory
from .peers import Peer, Plain, Remembered
from .questions import Benchmark, Line, Question, Sample
from .state import Record, State

OURS = "holdfast"
DEPTH = 500  # hits that are asked for: enough to fill a context of 4,000 tokens, or 50 sessions
BATCH = 200
DIGEST_STEP_S = 2.0


class Progress(Protocol):
    """Told what is being done, and how far it is."""

    def __call__(self, doing: str, done: int, total: int) -> None: ...


def silent(doing: str, done: int, total: int) -> None:
    """No progress is shown."""


@dataclass
class Clock:
    """The time that the memory of a run has: that of what is told, then of what is asked."""

    now: datetime

    def __call__(self) -> datetime:
        return self.now


@dataclass(frozen=True, slots=True)
class Asked:
    """One question, and what each system put where: ids of lines, best first."""

    question: Question
    sample: Sample
    ranked: dict[str, list[str]] = field(default_factory=dict)
    score: float | None = None
    took_ms: float | None = None


def limited(benchmark: Benchmark, limit: int | None) -> Benchmark:
    """At most *limit* questions, taken at even distances, and the conversations that they need."""
    every = [question for sample in benchmark.samples for question in sample.questions]
    if limit is None or limit >= len(every):
        return benchmark
    kept = {every[place * len(every) // limit].id for place in range(limit)}
    samples = (replace(s, questions=tuple(q for q in s.questions if q.id in kept)) for s in benchmark.samples)
    return replace(benchmark, samples=tuple(sample for sample in samples if sample.questions))


def about(benchmark: Benchmark, embedder: Embedder | None, model: str = "") -> Record:
    """What makes two runs the same run."""
    return {
        "benchmark": benchmark.name,
        "data": benchmark.digest,
        "embedder": embedder.id if embedder else None,
        "model": model,
        "version": __version__,
    }


class Asking:
    """One run of one benchmark; the memory is open inside ``with``."""

    def __init__(
        self,
        benchmark: Benchmark,
        state: State,
        *,
        embedder: Embedder | None,
        peers: Sequence[Peer] = (),
        progress: Progress = silent,
        llm: Any = None,
    ) -> None:
        self.benchmark, self._state, self._progress = benchmark, state, progress
        self._embedder = Remembered(embedder) if embedder is not None else None
        self._peers = tuple(peer for peer in peers if self._embedder is not None or peer == "bm25")
        self.clock = Clock(benchmark.samples[0].lines[-1].at)
        more = {"llm": llm} if llm is not None else {}
        self.memory = Memory(
            state.memory,
            embedder=self._embedder,
            clock=self.clock,
            config=Config(durable=False, index_cache_mb=256),
            **more,
        )

    def __enter__(self) -> Asking:
        return self

    def __exit__(self, *_: object) -> None:
        self.memory.close()

    def fill(self) -> None:
        """Store all conversations and do the work in the background."""
        total = sum(len(sample.lines) for sample in self.benchmark.samples)
        done = 0
        for sample in self.benchmark.samples:
            if self._state.get("stored", sample.id) is None:
                self.clock.now = sample.lines[-1].at
                self._store(sample)
                self._digest(sample, done, total)
                self._state.put("stored", sample.id, lines=len(sample.lines))
            done += len(sample.lines)
            self._progress("storing", done, total)

    def _store(self, sample: Sample) -> None:
        for conversation, lines in _conversations(sample):
            chat = self.memory.conversation(conversation, user=sample.id)
            for start in range(0, len(lines), BATCH):
                part = [_message(line) for line in lines[start : start + BATCH]]
                chat.append(part, idempotency_key=f"{conversation} {start}")
            if sample.apart:
                chat.end()

    def _digest(self, sample: Sample, before: int, total: int) -> None:
        while True:
            report = self.memory.digest(timeout_s=DIGEST_STEP_S)
            if not report.jobs:
                return
            self._progress("digesting", before, total)

    def ask(self) -> Iterator[Asked]:
        """Search for every question, with the peers beside; what was asked before comes from the state."""
        total = sum(len(sample.questions) for sample in self.benchmark.samples)
        done = 0
        for sample in self.benchmark.samples:
            plain: Plain | None = None
            for question in sample.questions:
                row = self._state.get(OURS, question.id) or self._search(sample, question)
                ranked = {OURS: [sample.lines[place].id for place in row["ranked"]]}
                for peer in self._peers:
                    found = self._state.get(peer, question.id)
                    if found is None:
                        plain = plain or Plain(sample, self._embedder)
                        places = _places(sample, plain.rank(peer, question.question)[:DEPTH])
                        found = self._state.put(peer, question.id, ranked=places)
                    ranked[peer] = [sample.lines[place].id for place in found["ranked"]]
                done += 1
                self._progress("asking", done, total)
                yield Asked(question, sample, ranked, row["score"], row["ms"])

    def _search(self, sample: Sample, question: Question) -> Record:
        """Ours: `Person.search` at the question's time, messages only."""
        self.clock.now = question.at
        numbers = _numbers(sample)
        person = self.memory.user(sample.id)
        started = time.perf_counter()
        hits = person.search(question.question, limit=DEPTH, kinds=("message",))
        took_ms = (time.perf_counter() - started) * 1e3
        places = [numbers[hit.conversation, hit.seq] for hit in hits]
        best = hits[0].score if hits else 0.0
        return self._state.put(OURS, question.id, ranked=places, score=best, ms=round(took_ms, 3))


def _conversations(sample: Sample) -> Iterator[tuple[str, list[Line]]]:
    """The conversations of a sample with their lines, as they are told."""
    told: dict[str, list[Line]] = {}
    for line in sample.lines:
        told.setdefault(sample.conversation(line), []).append(line)
    yield from told.items()


def _numbers(sample: Sample) -> dict[tuple[str, int], int]:
    """From ``(conversation, seq)`` to the line's place in the sample."""
    counted: dict[str, int] = {}
    out = {}
    for place, line in enumerate(sample.lines):
        name = sample.conversation(line)
        counted[name] = counted.get(name, 0) + 1
        out[name, counted[name]] = place
    return out


def _places(sample: Sample, ids: Sequence[str]) -> list[int]:
    place = {line.id: number for number, line in enumerate(sample.lines)}
    return [place[one] for one in ids]


def _message(line: Line) -> dict[str, Any]:
    message = {"role": line.role, "content": line.text, "at": line.at}
    return message if line.speaker == line.role else message | {"name": line.speaker}
