"""
How much of the evidence of questions is in the contexts that are built for them, per category.

    python benchmarks/context_dev.py --corpus X.corpus.jsonl --gold X.gold.jsonl [--budget 2000] [--embedder default|none]

Files are those of `recall_dev.py`.  Each conversation becomes one user's, is digested by rules, and every question is asked in a new conversation at
its own time.  Printed are, for each category:

evidence   share of the turns that hold the answer and stand in the context: recalled, word for word in a summary, or as a fact that quotes them
all        share of questions of which all such turns do
tokens     of the context; "used": the share of the budget; "silent": the share of contexts that recall nothing

Questions without evidence (asked about what was never said) have no `evidence`; what matters there is how many are silent.
`--swap` asks each conversation the questions of the others, with the names of its own speakers put in: nothing of that was ever said.
"""

from __future__ import annotations

import argparse
import re
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from recall_dev import Record, Remembered, as_message, moment, read

from holdfast import Config, Memory, Message
from holdfast.context.result import Context
from holdfast.embed import default_embedder
from holdfast.testing.fakes import FakeClock
from holdfast.text.render import parse_line

COLUMNS = ("evidence", "all", "tokens", "used", "silent")


def fill(memory: Memory, clock: FakeClock, talks: dict[str, list[Record]]) -> None:
    """Store and digest conversations, one user each."""
    for name, turns in talks.items():
        chat = memory.conversation(name, user=name)
        rows = [as_message(turn, turns[0]["speaker"]) for turn in turns]
        go_to(clock, moment(turns[-1]["time"]))
        for start in range(0, len(rows), 100):
            chat.append(
                [
                    Message(row["role"], row["content"], name=row.get("name"), at=datetime.fromisoformat(row["at"]))
                    for row in rows[start : start + 100]
                ]
            )
    memory.digest()


def go_to(clock: FakeClock, at: datetime) -> None:
    """Move the clock to *at*; it may go back."""
    clock.advance(seconds=(at - clock()).total_seconds())


def other_questions(gold: list[Record], talks: dict[str, list[Record]]) -> Iterator[Record]:
    """Every question, asked of the next conversation under the names of its speakers."""
    names = list(talks)
    for question in gold:
        if question["conv"] not in talks:
            continue
        other = names[(names.index(question["conv"]) + 1) % len(names)]
        text = question["question"]
        mine, theirs = (list(dict.fromkeys(turn["speaker"] for turn in talks[at])) for at in (question["conv"], other))
        for old, new in zip(mine, theirs, strict=False):
            text = re.sub(rf"\b{re.escape(old)}\b", new, text, flags=re.IGNORECASE)
        yield question | {"conv": other, "question": text, "gold_ids": [], "question_date": talks[other][-1]["time"]}


def folded(text: str) -> str:
    """Return the words of *text* without marks."""
    return re.sub(r"[\W_]+", " ", text).strip().casefold()


def measures(
    context: Context, gold: Sequence[str], turns: list[Record], quoted: Mapping[str, Sequence[int]]
) -> list[float]:
    """Measure one context; *turns* are those of its user, in order, *quoted* the messages that each fact quotes."""
    seqs = {one.start_seq for one in context.sources if one.section == "recalled" and one.kind == "message"}
    seqs |= {seq for one in context.sources if one.kind == "fact" for seq in quoted.get(one.id, ())}
    told = [folded(parse_line(line)) for name in ("earlier", "summaries") for line in context.section(name).items]
    shown = {turns[seq - 1]["id"] for seq in seqs}
    by_id = {turn["id"]: f" {folded(turn['text'])} " for turn in turns} if told else {}
    shown |= {one for one in gold if any(by_id.get(one, "?") in f" {text} " for text in told)}
    found = [one in shown for one in gold]
    share = [float(np.mean(found)), float(all(found))] if gold else [np.nan, np.nan]
    return [
        *share,
        context.tokens,
        context.tokens / context.budget_tokens,
        float(not context.section("recalled").items),
    ]


def run(args: argparse.Namespace) -> None:
    corpus, gold = read(args.corpus), read(args.gold)
    embedder = None if args.embedder == "none" else default_embedder()
    remembered = Remembered(embedder, args.vectors) if embedder else None
    talks: dict[str, list[Record]] = defaultdict(list)
    for turn in corpus:
        talks[turn["conv"]].append(turn)
    clock = FakeClock(datetime(2020, 1, 1, tzinfo=UTC))
    filled = args.store is not None and args.store.exists()
    results: dict[str, list[list[float]]] = defaultdict(list)
    spent: list[float] = []
    with Memory(
        str(args.store or ":memory:"), clock=clock, embedder=remembered, config=Config(durable=False)
    ) as memory:
        if not filled:
            fill(memory, clock, talks)
        quoted = {
            fact.id: [quote.seq for quote in fact.evidence] for name in talks for fact in memory.user(name).facts()
        }
        asked = list(other_questions(gold, talks)) if args.swap else [one for one in gold if one["conv"] in talks]
        for question in asked[:: args.every]:
            go_to(clock, moment(question.get("question_date") or talks[question["conv"]][-1]["time"]))
            start = time.perf_counter()
            context = memory.conversation("new", user=question["conv"]).context(
                question["question"], budget_tokens=args.budget, note=False
            )
            spent.append((time.perf_counter() - start) * 1e3)
            kind = question["category"] + ("" if question["gold_ids"] else ", no evidence")
            results[kind].append(measures(context, question["gold_ids"], talks[question["conv"]], quoted))
    if remembered:
        remembered.save()
    report(results, args.exclude)
    print(f"{float(np.median(spent)):.1f} ms a context, median of {len(spent)}")


def report(results: dict[str, list[list[float]]], excluded: list[str]) -> None:
    print(f"{'category':32}{'n':>5}  " + "".join(f"{name:>10}" for name in COLUMNS))
    rows = {"all": [row for kind, found in results.items() if kind not in excluded for row in found]}
    for name, found in [*sorted(results.items()), *rows.items()]:
        table = np.array(found)
        held = ~np.isnan(table[:, 0])
        means = [float(table[held, at].mean()) if held.any() else float("nan") for at in (0, 1)]
        print(
            f"{name:32}{len(found):5}  " + "".join(f"{value:10.3f}" for value in [*means, *table[:, 2:].mean(axis=0)])
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--gold", type=Path, required=True)
    parser.add_argument("--budget", type=int, default=2000)
    parser.add_argument("--embedder", choices=("default", "none"), default="default")
    parser.add_argument("--exclude", action="append", default=[], help="category left out of the last line")
    parser.add_argument("--every", type=int, default=1, help="ask only every n-th question")
    parser.add_argument("--swap", action="store_true", help="ask what was never said")
    parser.add_argument("--store", type=Path, help="file that keeps the digested memory between runs")
    parser.add_argument("--vectors", type=Path, help="file that keeps embeddings between runs")
    run(parser.parse_args())


if __name__ == "__main__":
    main()
