"""
A question benchmark run through the front door: every conversation stored, every question searched.

What is finished is written down at once (`RunState`), so that a run can be stopped and go on.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from .. import __version__
from ..config import Config
from ..embed.protocol import Embedder
from ..errors import Conflict
from ..memory import Memory
from ..recall.rank import REST, recalled_beside
from ..text import dataclass
from ..text.terms import terms
from .datasets import Benchmark, ChatLine, Question, Sample

OURS = "holdfast"
DEPTH = 500  # hits that are asked for: enough to fill a context of 4,000 tokens, or 50 sessions
BATCH = 200
DIGEST_STEP_S = 2.0
StepRecord = dict[str, Any]
Peer = Literal["bm25", "cosine", "rrf"]
PEERS: tuple[Peer, ...] = ("bm25", "cosine", "rrf")
_K1, _B, _RRF_K = 1.2, 0.75, 60
Floats = NDArray[np.float64]
COLUMNS = {
    "turn": ("R@5", "R@10", "R@50", "hit@5", "all@10", "nDCG@10", "MRR", "B@1000", "B@4000", "latest@5"),
    "session": ("R@5", "R@10", "hit@1", "hit@5", "all@10", "nDCG@10", "MRR"),
}
DEPTHS = (1, 5, 10, 20, 50)
BUDGETS_TOKENS = (500, 1000, 2000, 4000)
OVERALL = "overall"
RESAMPLES = 1000
Row = dict[str, float]
THRESHOLDS = (0.1, 0.2, 0.3, 0.35, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


class ProgressCallback(Protocol):
    """Called with the current step and its progress."""

    def __call__(self, doing: str, done: int, total: int) -> None: ...


def no_progress(doing: str, done: int, total: int) -> None:
    """Ignore progress."""


@dataclass
class RunClock:
    """The clock of a run's memory: the time of the stored messages, then of the questions."""

    now: datetime

    def __call__(self) -> datetime:
        return self.now


@dataclass(frozen=True, slots=True)
class RankedQuestion:
    """A question with the ranking of each system: ids of lines, best first."""

    question: Question
    sample: Sample
    ranked: dict[str, list[str]] = field(default_factory=dict)
    score: float | None = None
    took_ms: float | None = None
    relevance: Relevances | None = None


def limit_questions(benchmark: Benchmark, limit: int | None) -> Benchmark:
    """Keep at most *limit* questions, taken at even distances, and the conversations that they need."""
    every = [question for sample in benchmark.samples for question in sample.questions]
    if limit is None or limit >= len(every):
        return benchmark
    kept = {every[place * len(every) // limit].id for place in range(limit)}
    samples = (replace(s, questions=tuple(q for q in s.questions if q.id in kept)) for s in benchmark.samples)
    return replace(benchmark, samples=tuple(sample for sample in samples if sample.questions))


def describe_run(benchmark: Benchmark, embedder: Embedder | None, model: str = "") -> StepRecord:
    """Return the values that two runs must share to be the same run."""
    return {
        "benchmark": benchmark.name,
        "data": benchmark.digest,
        "embedder": embedder.id if embedder else None,
        "model": model,
        "version": __version__,
        "code": code_digest(Path(__file__).parent.parent),
    }


def code_digest(package: Path) -> str:
    """Return 16 hex digits that change with any module, pattern, or query of *package*: what was found by other code is out of date."""
    found = hashlib.sha256()
    for path in sorted(path for path in package.rglob("*") if path.suffix in (".py", ".toml", ".sql", ".md")):
        found.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes())
    return found.hexdigest()[:16]


def repeatable(folder: Path, about: StepRecord) -> bool:
    """Whether *folder* holds the run that *about* describes, made by other code and without a call of a model."""
    described, steps = folder / "about.json", folder / "steps.jsonl"
    if about["model"] or not described.exists():
        return False
    held = json.loads(described.read_text(encoding="utf-8"))
    made = {line.partition('"step": "')[2].partition('"')[0] for line in _lines(steps)}
    return held != about and held | {"code": about["code"]} == about and made <= {"", "stored", "foreign", OURS, *PEERS}


def _lines(path: Path) -> list[str]:
    """Return the lines of a file; none where there is no file."""
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


class RetrievalRun:
    """A run of one benchmark; the memory is open inside ``with``."""

    def __init__(
        self,
        benchmark: Benchmark,
        state: RunState,
        *,
        embedder: Embedder | None,
        peers: Sequence[Peer] = (),
        progress: ProgressCallback = no_progress,
        llm: Any = None,
    ) -> None:
        self.benchmark, self._state, self._progress = benchmark, state, progress
        self._embedder = CachedEmbedder(embedder) if embedder is not None else None
        self._peers = tuple(peer for peer in peers if self._embedder is not None or peer == "bm25")
        self.clock = RunClock(benchmark.samples[0].lines[-1].at)
        more = {"llm": llm} if llm is not None else {}
        self.memory = Memory(
            state.memory,
            embedder=self._embedder,
            clock=self.clock,
            config=Config(durable=False, index_cache_mb=256),
            **more,
        )

    def __enter__(self) -> RetrievalRun:
        return self

    def __exit__(self, *_: object) -> None:
        self.memory.close()

    def fill(self) -> None:
        """Store all conversations and run their background work."""
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
                part = [line_message(line) for line in lines[start : start + BATCH]]
                chat.append(part, idempotency_key=f"{conversation} {start}")
            if sample.apart:
                chat.end()

    def _digest(self, sample: Sample, before: int, total: int) -> None:
        while True:
            report = self.memory.digest(timeout_s=DIGEST_STEP_S)
            if not report.jobs:
                return
            self._progress("digesting", before, total)

    def ask(self) -> Iterator[RankedQuestion]:
        """Search for every question, with each peer too; finished searches come from the state."""
        total = sum(len(sample.questions) for sample in self.benchmark.samples)
        done = 0
        for sample in self.benchmark.samples:
            plain: BaselineRanker | None = None
            for question in sample.questions:
                row = self._state.get(OURS, question.id) or self._search(sample, question)
                ranked = {OURS: [sample.lines[place].id for place in row["ranked"]]}
                for peer in self._peers:
                    found = self._state.get(peer, question.id)
                    if found is None:
                        plain = plain or BaselineRanker(sample, self._embedder)
                        places = _places(sample, plain.rank(peer, question.question)[:DEPTH])
                        found = self._state.put(peer, question.id, ranked=places)
                    ranked[peer] = [sample.lines[place].id for place in found["ranked"]]
                done += 1
                self._progress("asking", done, total)
                relevance = self._relevances(sample, question, row) if question.evidence else None
                yield RankedQuestion(question, sample, ranked, row["score"], row["ms"], relevance)

    def _search(self, sample: Sample, question: Question) -> StepRecord:
        """Search with `User.search` at the question's time, messages only."""
        self.clock.now = question.at
        numbers = line_places(sample)
        user = self.memory.user(sample.id)
        started = time.perf_counter()
        hits = user.search(question.question, limit=DEPTH, kinds=("message",))
        took_ms = (time.perf_counter() - started) * 1e3
        places = [numbers[hit.conversation, hit.seq] for hit in hits]
        best = hits[0].relevance if hits else 0.0
        first = [round(recalled_beside(best, hits[0].score - hit.score), 4) for hit in hits[:10]]  # as contexts see it
        return self._state.put(OURS, question.id, ranked=places, score=best, ms=round(took_ms, 3), relevance=first)

    def _relevances(self, sample: Sample, question: Question, row: StepRecord) -> Relevances:
        """Return how relevant the hits were, and the best of another user's memory to the same question."""
        values: list[float] = row["relevance"]
        ids = [sample.lines[place].id for place in row["ranked"][: len(values)]]
        found = self._state.get("foreign", question.id) or self._ask_other(sample, question)
        return Relevances(
            values[0] if values else 0.0,
            tuple(value for id, value in zip(ids, values, strict=True) if id in question.evidence),
            found["plain"],
            found["swapped"],
        )

    def _ask_other(self, sample: Sample, question: Question) -> StepRecord:
        """Ask the memory of the next user with whom this one shares no name; once more with the names of that memory."""
        samples = self.benchmark.samples
        at = samples.index(sample)
        others = (*samples[at + 1 :], *samples[:at])
        names = sample.names
        other = next((one for one in others if not set(names) & set(one.names)), None)
        found: dict[str, float | None] = {"plain": None, "swapped": None}
        if other is not None:
            self.clock.now = question.at
            user = self.memory.user(other.id)
            asked = {"plain": question.question}
            if names and other.names:
                asked["swapped"] = swap_names(question.question, names, other.names)
            for name, text in asked.items():
                hits = user.search(text, limit=1, kinds=("message",))
                found[name] = round(hits[0].relevance, 4) if hits else 0.0
        return self._state.put("foreign", question.id, **found)


def swap_names(question: str, names: Sequence[str], others: Sequence[str]) -> str:
    """Put *others* in the place of *names*, in turn."""
    said = re.compile(r"(?<!\w)(" + "|".join(map(re.escape, names)) + r")(?!\w)", re.IGNORECASE)
    place = {name.lower(): number for number, name in enumerate(names)}
    return said.sub(lambda found: others[place[found[1].lower()] % len(others)], question)


def _conversations(sample: Sample) -> Iterator[tuple[str, list[ChatLine]]]:
    """Yield the conversations of a sample with their lines."""
    by_conversation: dict[str, list[ChatLine]] = {}
    for line in sample.lines:
        by_conversation.setdefault(sample.conversation(line), []).append(line)
    yield from by_conversation.items()


def line_places(sample: Sample) -> dict[tuple[str, int], int]:
    """Map ``(conversation, seq)`` to the line's place in the sample."""
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


def line_message(line: ChatLine) -> dict[str, Any]:
    message = {"role": line.role, "content": line.text, "at": line.at}
    return message if line.speaker == line.role else message | {"name": line.speaker}


class RunState:
    """
    The folder of one run.

    Raises:
        Conflict: the folder holds a run of other data or with other options.
    """

    def __init__(self, folder: Path, about: StepRecord) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        described = folder / "about.json"
        if described.exists() and json.loads(described.read_text(encoding="utf-8")) != about:
            raise Conflict(
                f"{folder} holds a run of other data or other code, or with another embedder or model",
                hint="start again with --fresh, or name another folder with --state",
            )
        described.write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
        self._path = folder / "steps.jsonl"
        self._lock = threading.Lock()
        self._done = {(str(row["step"]), str(row["id"])): row for row in self._rows()}

    @property
    def memory(self) -> Path:
        """Return the path of the memory's file."""
        return self.folder / "memory.db"

    def get(self, step: str, id: str) -> StepRecord | None:
        """Return the record of a finished step; ``None`` when it is still to do."""
        return self._done.get((step, id))

    def put(self, step: str, id: str, **found: Any) -> StepRecord:
        """Record a finished step; it is on disk when this returns.  Safe to call from several threads."""
        row = {"step": step, "id": id, **found}
        with self._lock, self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
            self._done[step, id] = row
        return row

    def __len__(self) -> int:
        return len(self._done)

    def _rows(self) -> list[StepRecord]:
        """Read the finished steps; remove a line that a kill cut short from the file."""
        if not self._path.exists():
            return []
        text = self._path.read_bytes()
        whole = text[: text.rfind(b"\n") + 1]
        if whole != text:
            self._path.write_bytes(whole)
        return [json.loads(line) for line in whole.decode().splitlines()]


@dataclass
class CachedEmbedder:
    """An embedder with a cache, so that memory and peers embed a text once."""

    inner: Embedder
    known: dict[str, NDArray[np.float32]] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """Return the id of the inner embedder."""
        return self.inner.id

    def __post_init__(self) -> None:
        self.dim, self.thresholds = self.inner.dim, self.inner.thresholds

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row a text."""
        missing = [text for text in dict.fromkeys(texts) if text not in self.known]
        if missing:
            self.known.update(zip(missing, self.inner.embed(missing), strict=True))
        return np.stack([self.known[text] for text in texts])


class BaselineRanker:
    """A ranker of one sample's lines without a memory."""

    def __init__(self, sample: Sample, embedder: Embedder | None) -> None:
        self._ids = [line.id for line in sample.lines]
        self._counts = [Counter(terms(line.text)) for line in sample.lines]
        lengths = np.array([sum(count.values()) for count in self._counts], dtype=np.float64)
        self._norm = _K1 * (1 - _B + _B * lengths / max(1.0, float(lengths.mean())))
        self._containing = Counter(term for count in self._counts for term in count)
        self._embedder = embedder
        self._vectors = embed_in_batches(embedder, [line.text for line in sample.lines]) if embedder else None

    def rank(self, peer: Peer, question: str) -> list[str]:
        """
        Rank the ids of all lines, best first; equal ones in the order of the conversation.
        """
        if peer == "rrf":
            ranks = [
                np.argsort(np.argsort(-scores, kind="stable"))
                for scores in (self._bm25(question), self._cosine(question))
            ]
            scores = sum((1 / (_RRF_K + 1 + rank) for rank in ranks), np.zeros(len(self._ids)))
        else:
            scores = self._bm25(question) if peer == "bm25" else self._cosine(question)
        return [self._ids[place] for place in np.argsort(-scores, kind="stable")]

    def _bm25(self, question: str) -> Floats:
        scores = np.zeros(len(self._ids))
        for term in set(terms(question)):
            among = self._containing[term]
            if not among:
                continue
            rarity = np.log(1 + (len(self._ids) - among + 0.5) / (among + 0.5))
            times = np.array([count[term] for count in self._counts], dtype=np.float64)
            scores += rarity * times * (_K1 + 1) / (times + self._norm)
        return scores

    def _cosine(self, question: str) -> Floats:
        if self._embedder is None or self._vectors is None:
            raise ValueError("cosine and rrf need an embedder")
        vector = self._embedder.embed([question])[0]
        return np.asarray(self._vectors @ vector, dtype=np.float64)


def embed_in_batches(embedder: Embedder, texts: Sequence[str], batch: int = 64) -> NDArray[np.float32]:
    rows = [embedder.embed(texts[start : start + batch]) for start in range(0, len(texts), batch)]
    return np.concatenate(rows)


def build_report(
    benchmark: Benchmark, asked: Iterable[RankedQuestion], wrong: Mapping[str, str] | None = None, *, seed: int = 0
) -> dict[str, Any]:
    """
    Build the report as data.

    Args:
        benchmark: what was asked.
        asked: from `Asking.ask`.
        wrong: questions whose key is known to be wrong, and why; they count, and are listed.
        seed: of the resampling for intervals.

    Returns:
        ``{"benchmark", "data", "questions", "no_evidence", "systems": {name: {"turn": {category:
        {figure: {"value", "low", "high", "n"}}}, "session": …}}, "abstention_auroc", "silence", "search_ms",
        "known_wrong"}``.
    """
    rows: dict[str, dict[str, list[tuple[str, Row]]]] = {}
    answerable, unanswerable, took = list[float](), list[float](), list[float]()
    ids: set[str] = set()
    relevances: list[Relevances | None] = []
    without = 0
    lines_of = {sample.id: {line.id: line for line in sample.lines} for sample in benchmark.samples}
    for one in asked:
        question, lines = one.question, lines_of[one.sample.id]
        ids.add(question.id)
        without += not question.evidence
        if one.score is not None:
            (unanswerable if question.abstain or not question.evidence else answerable).append(one.score)
        relevances.append(one.relevance if question.category not in benchmark.apart else None)
        took += [one.took_ms] if one.took_ms is not None else []
        for system, ranked in one.ranked.items():
            by_level = rows.setdefault(system, {"turn": [], "session": []})
            by_level["turn"].append((question.category, ranking_row(question, ranked, lines)))
            by_level["session"].append((question.category, session_row(question, ranked, lines)))
    abstention = auroc(answerable, unanswerable)
    told = [found for found in relevances if found is not None]
    return {
        "benchmark": benchmark.name,
        "data": benchmark.digest,
        "conversations": len(benchmark.samples),
        "messages": sum(len(sample.lines) for sample in benchmark.samples),
        "questions": len(ids),
        "no_evidence": without,
        "left_out_of_overall": list(benchmark.apart),
        "systems": {
            system: {
                level: _means_as_data(averages(found, benchmark.apart, seed=seed)) for level, found in by_level.items()
            }
            for system, by_level in rows.items()
        },
        "abstention_auroc": abstention,
        "silence": silence_curve(told, REST) if any(one.foreign is not None for one in told) else [],
        "known_wrong": {one: why for one, why in (wrong or {}).items() if one in ids},
        "search_ms": {"median": median(took), "p95": _percentile(took, 0.95)} if took else None,
    }


def _percentile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, math.ceil(share * len(values)) - 1)]


def _means_as_data(means: dict[str, dict[str, Mean]]) -> dict[str, Any]:
    return {
        category: {
            figure: {"value": mean.value, "low": mean.low, "high": mean.high, "n": mean.n}
            for figure, mean in row.items()
        }
        for category, row in means.items()
    }


def format_table(report: dict[str, Any], level: str) -> list[str]:
    """Format the figures of one level as lines of text: ours by category, the peers' overall."""
    systems = report["systems"]
    columns = [name for name in COLUMNS[level] if any(name in row for row in systems[OURS][level].values())]
    rows = [(category, systems[OURS][level][category]) for category in systems[OURS][level] if category != OVERALL]
    lines = [f"{'by ' + level:26}{'n':>5}  " + "".join(f"{name:>9}" for name in columns)]
    lines += [_table_line(name, row, columns) for name, row in rows]
    overall = f"overall{', ' if report['left_out_of_overall'] else ''}" + ", ".join(
        f"without {name}" for name in report["left_out_of_overall"]
    )
    for system, levels in systems.items():
        row = levels[level].get(OVERALL)
        if row:
            lines.append(_table_line(system, row, columns))
            if system == OURS:
                lines.append(_interval(row, columns))
    return [*lines, f"(the last lines: {overall})"]


def format_silence(rows: Sequence[Mapping[str, float]]) -> list[str]:
    """Format the curve of true and false recall as lines of text."""
    names = {
        "at": "relevance",
        "evidence": "evidence kept",
        "foreign": "recalled falsely",
        "swapped": "names swapped in",
    }
    shown = [name for name in names if name in rows[0]]
    lines = ["".join(f"{names[name]:>18}" for name in shown)]
    return lines + ["".join(f"{row[name]:18.3f}" for name in shown) for row in rows]


def _table_line(name: str, row: dict[str, Any], columns: Sequence[str]) -> str:
    n = max(figure["n"] for figure in row.values())
    return f"{name:26}{n:5}  " + "".join(f"{row[c]['value']:9.3f}" if c in row else f"{'-':>9}" for c in columns)


def _interval(row: dict[str, Any], columns: Sequence[str]) -> str:
    """Format half the width of each interval."""
    cells = "".join(
        f"{'±' + format((row[c]['high'] - row[c]['low']) / 2, '.3f'):>9}" if c in row else f"{'-':>9}" for c in columns
    )
    return f"{'  95 % interval':31}  {cells}"


@dataclass(frozen=True, slots=True)
class Mean:
    """An average over questions, with the bounds of its 95 % confidence interval."""

    value: float
    low: float
    high: float
    n: int


def ranking_row(question: Question, ranked: Sequence[str], lines: Mapping[str, ChatLine]) -> Row:
    """
    Score one question by turn.

    Args:
        question: with its evidence; a question without any gives an empty row.
        ranked: ids of lines, best first; repeated ones count once.
        lines: every line of the conversation by id.

    Returns:
        ``R@k`` (share of the evidence among the first k), ``hit@k`` (any of it), ``all@k`` (all of it),
        ``nDCG@10``, ``MRR``, ``B@b`` and ``Ball@b`` (share, and whether all of it, inside a context of b
        tokens filled from the top; 4 characters a token), ``latest@k`` where a value changed: whether
        the new one is among the first k and above the old.
    """
    ids = list(dict.fromkeys(ranked))
    costs = [math.ceil(len(lines[one].rendered) / 4) if one in lines else 0 for one in ids]
    row = _row(set(question.evidence), ids, costs)
    if row and question.latest:
        row |= _latest(question, ids)
    return row


def session_row(question: Question, ranked: Sequence[str], lines: Mapping[str, ChatLine]) -> Row:
    """Score one question by session: a session ranks where its first turn does."""
    ids = list(dict.fromkeys(lines[one].session for one in ranked if one in lines))
    lengths: dict[str, int] = defaultdict(int)
    for line in lines.values():
        lengths[line.session] += len(line.rendered)
    return _row(set(question.sessions), ids, [math.ceil(lengths[one] / 4) for one in ids])


def _row(wanted: set[str], ids: Sequence[str], costs: Sequence[int]) -> Row:
    if not wanted:
        return {}
    found = [one in wanted for one in ids]
    row: Row = {}
    for depth in DEPTHS:
        hits = sum(found[:depth])
        row[f"R@{depth}"] = hits / len(wanted)
        row[f"hit@{depth}"] = float(hits > 0)
        row[f"all@{depth}"] = float(hits == len(wanted))
    ideal = sum(1 / math.log2(place + 2) for place in range(min(10, len(wanted))))
    row["nDCG@10"] = sum(hit / math.log2(place + 2) for place, hit in enumerate(found[:10])) / ideal
    row["MRR"] = next((1 / (place + 1) for place, hit in enumerate(found) if hit), 0.0)
    for budget in BUDGETS_TOKENS:
        inside = _inside(found, costs, budget)
        row[f"B@{budget}"] = inside / len(wanted)
        row[f"Ball@{budget}"] = float(inside == len(wanted))
    return row


def _inside(found: Sequence[bool], costs: Sequence[int], budget: int) -> int:
    """Count the wanted lines that fit: the context ends at the first that does not."""
    spent = inside = 0
    for hit, cost in zip(found, costs, strict=True):
        spent += cost
        if spent > budget:
            break
        inside += hit
    return inside


def _latest(question: Question, ids: Sequence[str]) -> Row:
    place = {one: rank for rank, one in enumerate(ids)}
    never = len(ids) + 1
    best = min(place.get(one, never) for one in question.latest)
    old = min((place.get(one, never) for one in question.stale if one not in question.latest), default=never)
    return {f"latest@{depth}": float(best < depth and best < old) for depth in (5, 10)}


def averages(
    rows: Iterable[tuple[str, Row]], apart: Sequence[str] = (), *, seed: int = 0
) -> dict[str, dict[str, Mean]]:
    """
    Return means by category and overall, each with its interval.

    Args:
        rows: ``(category, figures)`` of each question; those without figures are not counted.
        apart: categories that the overall figure leaves out.
        seed: of the resampling; the same one gives the same intervals.
    """
    groups: dict[str, list[Row]] = {OVERALL: []}
    for category, row in rows:
        if row:
            groups.setdefault(category, []).append(row)
            if category not in apart:
                groups[OVERALL].append(row)
    names = [OVERALL, *sorted(name for name in groups if name != OVERALL)]
    return {name: _means(groups[name], seed) for name in names if groups[name]}


def _means(rows: Sequence[Row], seed: int) -> dict[str, Mean]:
    out = {}
    for figure in dict.fromkeys(name for row in rows for name in row):
        values = np.array([row[figure] for row in rows if figure in row])
        picks = np.random.default_rng(seed).integers(0, len(values), (RESAMPLES, len(values)))
        low, high = np.percentile(values[picks].mean(axis=1), (2.5, 97.5))
        out[figure] = Mean(float(values.mean()), float(low), float(high), len(values))
    return out


@dataclass(frozen=True, slots=True)
class Relevances:
    """
    How relevant the hits of one question were.

    ``evidence`` are those of the lines that answer it, among the first ten, ``best`` is that of its best hit. ``foreign`` and
    ``swapped`` are those of the best hit when another user's memory is asked, and when it is asked with that user's names.
    """

    best: float
    evidence: tuple[float, ...] = ()
    foreign: float | None = None
    swapped: float | None = None


def silence_curve(asked: Sequence[Relevances], rest: float) -> list[Row]:
    """
    Return for each least relevance what is kept of true recall, and what is recalled falsely.

    Args:
        asked: one for each question with evidence.
        rest: of the relevance that the best hit must have, what the others must have.

    Returns:
        Rows of ``at``, ``evidence`` (the share kept of the evidence among the first ten), ``foreign`` and ``swapped`` (the
        share of questions that recall anything of another user; left out when nothing was asked).
    """
    rows = []
    for at in THRESHOLDS:
        kept = [[value >= at * rest and one.best >= at for value in one.evidence] for one in asked]
        row = {"at": at, "evidence": _share([value for values in kept for value in values])}
        for name in ("foreign", "swapped"):
            found = [value for one in asked if (value := getattr(one, name)) is not None]
            row |= {name: _share([value >= at for value in found])} if found else {}
        rows.append(row)
    return rows


def _share(found: Sequence[bool]) -> float:
    return sum(found) / len(found) if found else 0.0


def auroc(with_answer: Sequence[float], without: Sequence[float]) -> float | None:
    """
    Measure how well a score separates questions that memory can answer from those that it cannot.

    Returns:
        The chance that one with an answer scores above one without (ties count half); .5 is no
        better than a coin.  None when either kind is missing.
    """
    if not with_answer or not without:
        return None
    above = sum((a > b) + (a == b) / 2 for a in with_answer for b in without)
    return above / (len(with_answer) * len(without))
