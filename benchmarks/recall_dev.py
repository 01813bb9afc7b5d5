"""
How well search finds the evidence of questions, per category, over corpora of conversations.

    python benchmarks/recall_dev.py --corpus X.corpus.jsonl --gold X.gold.jsonl [--embedder default|none]

corpus  {conv, id, session, seq, time, speaker, text} a line; each conversation becomes one user's.
gold    {question_id, conv, category, question, gold_ids[], question_date?} a line.

Everything runs through the product: messages are prepared and appended to a store, embedded, and
searched.  Printed are R@k (the share of a question's evidence among the first k), nDCG@10, and
B@1000: the share inside a context of 1,000 tokens (4 characters each) filled from the top.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.clock import to_ms
from holdfast.config import Config
from holdfast.embed import Embedder, default_embedder, quantize
from holdfast.ingest.append import WorkSettings, append, prepare
from holdfast.recall.index import IndexCache
from holdfast.recall.query import ROLE_NAMES
from holdfast.recall.search import search
from holdfast.scope import Scope
from holdfast.store import Store, WriteView, open_store
from holdfast.types import Hit

Record = dict[str, Any]
COLUMNS = ("R@5", "R@10", "R@50", "nDCG@10", "B@1000")
COMPONENTS = (
    "words meaning neighbors session day speaker echo gathered around again answer time opens question asked kind names personal spread standing"
).split()
CONFIG = Config(durable=False)


@dataclass
class Remembered:
    """An embedder that keeps what it made in a file, so that a second run starts at once."""

    inner: Embedder
    path: Path | None
    known: dict[str, NDArray[np.float32]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.id, self.dim, self.thresholds = self.inner.id, self.inner.dim, self.inner.thresholds
        if self.path and self.path.exists():
            with np.load(self.path) as stored:
                self.known = dict(zip(stored["keys"].tolist(), stored["rows"], strict=True))

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        keys = [hashlib.sha256(text.encode()).hexdigest() for text in texts]
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in self.known}
        if missing:
            self.known.update(zip(missing, self.inner.embed(list(missing.values())), strict=True))
        return np.stack([self.known[key] for key in keys])

    def save(self) -> None:
        if self.path:
            np.savez(self.path, keys=np.array(list(self.known)), rows=np.stack(list(self.known.values())))


def read(path: Path) -> list[Record]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def moment(text: str | None) -> datetime:
    at = datetime.fromisoformat(text or "2024-01-01")
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def as_message(turn: Record, first_speaker: str) -> Record:
    speaker = turn["speaker"]
    if speaker.lower() in ROLE_NAMES:
        return {"role": speaker.lower(), "content": turn["text"], "at": moment(turn["time"]).isoformat()}
    role = "user" if speaker == first_speaker else "assistant"
    return {"role": role, "name": speaker, "content": turn["text"], "at": moment(turn["time"]).isoformat()}


def fill(store: Store, scope: Scope, turns: list[Record], embedder: Remembered | None, config: Config = CONFIG) -> None:
    """Store one conversation with its vectors."""
    now = moment(turns[-1]["time"])
    prepared = prepare(
        [as_message(turn, turns[0]["speaker"]) for turn in turns], now=now, max_chars=CONFIG.max_message_chars
    )
    store.write(
        scope,
        lambda view: append(view, prepared, config, WorkSettings(embed=False), key=None, digest="", now_ms=to_ms(now)),
    )
    if embedder is None:
        return
    rows = quantize(embedder.embed([turn["text"] for turn in turns]))

    def add(view: WriteView) -> None:
        docs = sorted(view.unembedded(embedder.id, limit=len(turns)), key=lambda doc: doc.seq)
        assert len(docs) == len(rows)
        view.add_vectors((doc, embedder.id, *row) for doc, row in zip(docs, rows, strict=True))

    store.write(scope, add)


def spread(corpus: list[Record]) -> list[Record]:
    """A minute of silence wherever the corpus begins a session, for corpora that give days but no times."""
    out, minutes = [], 0
    for before, turn in zip([None, *corpus], corpus, strict=False):
        same = before is not None and before["conv"] == turn["conv"]
        minutes = minutes + (before["session"] != turn["session"]) if before and same else 0
        out.append(turn | {"time": (moment(turn["time"]) + timedelta(minutes=minutes)).isoformat()})
    return out


def measures(question: Record, ids: list[str], turns: dict[str, Record]) -> list[float]:
    gold = set(question["gold_ids"])
    hits = [identifier in gold for identifier in ids]
    ideal = sum(1 / math.log2(rank + 2) for rank in range(min(10, len(gold))))
    spent = found = 0
    for identifier, hit in zip(ids, hits, strict=True):
        turn = turns[identifier]
        spent += math.ceil(len(f"[{(turn['time'] or '')[:10]}] {turn['speaker']}: {turn['text']}\n") / 4)
        if spent > 1000:
            break
        found += hit
    gain = sum(hit / math.log2(rank + 2) for rank, hit in enumerate(hits[:10]))
    return [*(sum(hits[:k]) / len(gold) for k in (5, 10, 50)), gain / ideal, found / len(gold)]


def run(args: argparse.Namespace) -> None:
    corpus, gold = read(args.corpus), read(args.gold)
    if args.users_only:
        corpus = [turn for turn in corpus if turn["speaker"] == "user"]
    config = replace(CONFIG, chunk_gap_minutes=1) if args.given_sessions else CONFIG
    if args.given_sessions:
        corpus = spread(corpus)
    embedder = None if args.embedder == "none" else default_embedder()
    if embedder is None and args.embedder != "none":
        sys.exit("the default embedder is not installed")
    remembered = Remembered(embedder, args.vectors) if embedder else None
    talks: dict[str, list[Record]] = defaultdict(list)
    for turn in corpus:
        talks[turn["conv"]].append(turn)
    store, cache = open_store(":memory:", CONFIG), IndexCache(1_000_000_000)
    for name, turns in talks.items():
        fill(store, Scope("bench", "bench", name, conversation=name), turns, remembered, config)
    by_id = {turn["id"]: turn for turn in corpus}
    results: dict[str, list[list[float]]] = defaultdict(list)
    spent_ms, runs, ablated = [], [], Ablated()
    for question in gold:
        if not question["gold_ids"] or question["conv"] not in talks:
            continue
        turns = talks[question["conv"]]

        def ask(limit: int, explain: bool = False, question: Record = question) -> list[Hit]:
            return store.read(
                Scope("bench", "bench", question["conv"]),
                lambda view: search(
                    view,
                    question["question"],
                    now=moment(question.get("question_date")),
                    kinds=("message",),
                    limit=limit,
                    embedder=remembered,
                    cache=cache,
                    explain=explain,
                    newest_first=args.newest_first,
                ),
            )

        if args.ablate:
            without_each(ask(len(turns), True), question, turns, by_id, ablated)
        ids = [turns[hit.seq - 1]["id"] for hit in ask(300)]
        start = time.perf_counter()
        ask(10)
        spent_ms.append((time.perf_counter() - start) * 1e3)
        results[question["category"]].append(measures(question, ids, by_id))
        runs.append({"question_id": question["question_id"], "ranked_ids": ids})
    store.close()
    if remembered:
        remembered.save()
    if args.runs:
        args.runs.write_text("".join(json.dumps(row) + "\n" for row in runs), encoding="utf-8")
    report(results, args.exclude, spent_ms)
    for name, rows in ablated.items():
        kept = [row for category, row in rows if category not in args.exclude]
        line(f"without {name}", kept)


class Ablated(defaultdict[str, list[tuple[str, list[float]]]]):
    """For each component, the category and the measures of every question without it."""

    def __init__(self) -> None:
        super().__init__(list)


def without_each(
    hits: list[Hit], question: Record, turns: list[Record], by_id: dict[str, Record], into: Ablated
) -> None:
    """Rank once more without each component: the score is the sum of its parts, so nothing has to be searched again."""
    for name in COMPONENTS:
        ranked = sorted(hits, key=lambda hit, name=name: (hit.parts.get(name, 0.0) - hit.score, hit.seq))
        ids = [turns[hit.seq - 1]["id"] for hit in ranked[:300]]
        into[name].append((question["category"], measures(question, ids, by_id)))


def report(results: dict[str, list[list[float]]], excluded: list[str], spent_ms: list[float]) -> None:
    print(f"{'category':28}{'n':>5}  " + "".join(f"{name:>9}" for name in COLUMNS))
    for category in sorted(results):
        line(category, results[category])
    line(
        "all but " + ", ".join(excluded) if excluded else "all",
        [row for category, rows in results.items() if category not in excluded for row in rows],
    )
    print(
        f"search of a warm index, question vector given: median {median(spent_ms):.2f} ms over {len(spent_ms)} questions"
    )


def line(name: str, rows: list[list[float]]) -> None:
    print(f"{name:28}{len(rows):5}  " + "".join(f"{value:9.4f}" for value in np.mean(rows, axis=0)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--gold", type=Path, required=True)
    parser.add_argument("--embedder", choices=("default", "none"), default="default")
    parser.add_argument("--exclude", action="append", default=[], help="category left out of the last line")
    parser.add_argument("--users-only", action="store_true", help="store only what users said")
    parser.add_argument("--given-sessions", action="store_true", help="sessions as in the corpus, not by silence")
    parser.add_argument("--ablate", action="store_true", help="also without each component")
    parser.add_argument("--newest-first", action="store_true", help="present the newest of near-equal turns first")
    parser.add_argument("--vectors", type=Path, help="file that keeps embeddings between runs")
    parser.add_argument("--runs", type=Path, help="where to write the ranked ids, a line a question")
    run(parser.parse_args())


if __name__ == "__main__":
    main()
