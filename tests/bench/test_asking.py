"""A run through the front door: it finds what it should, stops, goes on, and says so."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from holdfast.bench.datasets import load_benchmark
from holdfast.bench.retrieval import (
    OURS,
    PEERS,
    BaselineRanker,
    RetrievalRun,
    RunState,
    build_report,
    code_digest,
    describe_run,
    format_silence,
    format_table,
    limit_questions,
    swap_names,
)
from holdfast.cli import main
from holdfast.errors import Conflict
from holdfast.testing.fakes import HashEmbedder

KILLED = """
import os, signal, sys
from pathlib import Path
from holdfast.bench.retrieval import RetrievalRun, RunState, describe_run
from holdfast.bench.datasets import load_benchmark

benchmark, stop = load_benchmark("tiny", []), int(sys.argv[2])
state = RunState(Path(sys.argv[1]), describe_run(benchmark, None))
real = state.put

def put(step, id, **found):
    if len(state) == stop:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(step, id, **found)

state.put = put
with RetrievalRun(benchmark, state, embedder=None, peers=("bm25",)) as run:
    run.fill()
    list(run.ask())
"""


def asked(folder: Path, *, peers=("bm25",), limit=None, embedder=None):
    benchmark = limit_questions(load_benchmark("tiny", []), limit)
    with RetrievalRun(
        benchmark, RunState(folder, describe_run(benchmark, embedder)), embedder=embedder, peers=peers
    ) as run:
        run.fill()
        return benchmark, list(run.ask())


def ranks(found):
    return [(one.question.id, one.ranked) for one in found]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return asked(tmp_path_factory.mktemp("whole"))


def test_every_question_is_asked_and_most_evidence_found(whole):
    benchmark, found = whole
    report = build_report(benchmark, found)
    ours = report["systems"][OURS]

    assert len(found) == report["questions"] == 32
    assert report["no_evidence"] == 4
    assert ours["turn"]["overall"]["R@10"]["value"] > 0.8
    assert ours["session"]["overall"]["R@5"]["value"] == 1.0  # there are three
    assert set(report["systems"]) == {OURS, "bm25"}
    assert 0 <= report["abstention_auroc"] <= 1


def test_table_shows_ours_by_category_and_the_peers_overall(whole):
    lines = format_table(build_report(*whole), "turn")

    assert [line.split()[0] for line in lines[1:7]] == ["assistant", "several", "single", "temporal", "update", OURS]
    assert lines[-2].startswith("bm25")
    assert "latest@5" in lines[0]


def test_same_seed_gives_the_same_report(whole):
    first, second = (build_report(*whole, seed=5) for _ in range(2))

    assert first == second
    assert build_report(*whole, seed=6)["systems"] != first["systems"]


@pytest.mark.parametrize("stop", [0, 2, 5, 20, 67])
def test_killed_run_goes_on_and_comes_to_the_same_end(tmp_path, whole, stop):
    """4 conversations, 2 × 32 rankings and 28 questions to others are 96 steps; the kill comes before one of them is written."""
    folder = tmp_path / "state"
    done = subprocess.run([sys.executable, "-c", KILLED, str(folder), str(stop)], env=os.environ, check=False)
    kept = (folder / "steps.jsonl").read_bytes() if stop else b""

    assert done.returncode == -signal.SIGKILL
    assert kept.count(b"\n") == stop
    assert ranks(asked(folder)[1]) == ranks(whole[1])
    assert (folder / "steps.jsonl").read_bytes().startswith(kept)  # nothing was done again
    steps = [json.loads(line) for line in (folder / "steps.jsonl").read_text(encoding="utf-8").splitlines()]
    assert max(Counter((row["step"], row["id"]) for row in steps).values()) == 1


def test_line_that_a_kill_cut_short_is_done_again(tmp_path, whole):
    asked(tmp_path)
    path = tmp_path / "steps.jsonl"
    path.write_bytes(path.read_bytes()[:-40])

    assert ranks(asked(tmp_path)[1]) == ranks(whole[1])


def test_state_of_another_run_is_not_gone_on_with(tmp_path):
    asked(tmp_path)
    with pytest.raises(Conflict, match="other data"):
        asked(tmp_path, limit=3)


def test_limit_takes_questions_at_even_distances():
    benchmark = limit_questions(load_benchmark("tiny", []), 8)

    assert [q.id for s in benchmark.samples for q in s.questions] == [
        "flat/q1", "flat/q5", "garden/q1", "garden/q5", "thesis/q1", "thesis/q5", "marathon/q1", "marathon/q5",
    ]  # fmt: skip
    assert [s.id for s in limit_questions(load_benchmark("tiny", []), 1).samples] == ["flat"]


def test_peers_rank_every_line_once():
    sample = load_benchmark("tiny", []).samples[0]
    plain = BaselineRanker(sample, HashEmbedder())
    for peer in PEERS:
        assert sorted(plain.rank(peer, "How high is the rent?")) == sorted(line.id for line in sample.lines)


def test_bm25_finds_the_rare_word():
    sample = load_benchmark("tiny", []).samples[0]

    assert plain_text(sample, BaselineRanker(sample, None).rank("bm25", "Who plays the tuba?")[0]).startswith(
        "The neighbour"
    )


def test_fusion_stands_between_its_parts():
    """What both put first is first; reciprocal ranks, not scores."""
    sample = load_benchmark("tiny", []).samples[0]
    plain = BaselineRanker(sample, HashEmbedder())
    question = "The neighbour above us plays the tuba at night. I bought earplugs."
    first = {peer: plain.rank(peer, question)[0] for peer in PEERS}

    assert len(set(first.values())) == 1


def test_cosine_needs_an_embedder():
    with pytest.raises(ValueError, match="embedder"):
        BaselineRanker(load_benchmark("tiny", []).samples[0], None).rank("cosine", "?")


def test_text_is_embedded_once_for_memory_and_peers(tmp_path):
    seen = Counter()

    class Counting(HashEmbedder):
        def embed(self, texts):
            seen.update(texts)
            return super().embed(texts)

    asked(tmp_path, embedder=Counting(), peers=PEERS)

    assert max(seen.values()) == 1


def plain_text(sample, id):
    return next(line.text for line in sample.lines if line.id == id)


def test_command_prints_tables_and_writes_the_report(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code = main(["bench", "--no-embedder", "--peer", "bm25", "--report", "r.json", "--runs", "runs.jsonl"])
    out = capsys.readouterr().out

    assert code == 0
    assert "by turn" in out
    assert "by session" in out
    assert json.loads(Path("r.json").read_text(encoding="utf-8"))["questions"] == 32
    rows = [json.loads(line) for line in Path("runs.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {"question_id", "ranked_ids", "score"} <= set(rows[0])
    assert len(rows) == 32


def test_a_run_by_other_code_is_not_shown_again(tmp_path, monkeypatch, capsys):
    """Who changes the ranking and measures again wants the new figures."""
    monkeypatch.chdir(tmp_path)
    command = ["bench", "--no-embedder", "--limit", "1"]
    assert main(command) == main(command) == 0
    assert "has changed" not in capsys.readouterr().err
    described, steps = Path("holdfast-bench/tiny/about.json"), Path("holdfast-bench/tiny/steps.jsonl")
    held = json.loads(described.read_text(encoding="utf-8"))

    described.write_text(json.dumps(held | {"code": "older"}), encoding="utf-8")
    assert main(command) == 0
    assert "the code has changed" in capsys.readouterr().err
    assert json.loads(described.read_text(encoding="utf-8")) == held

    described.write_text(json.dumps(held | {"code": "older"}), encoding="utf-8")
    steps.write_text(steps.read_text("utf-8") + '{"step": "answer memory", "id": "q1", "text": "Porto"}\n', "utf-8")
    assert main(command) == 1
    assert "--fresh" in capsys.readouterr().err
    assert main([*command, "--fresh"]) == 0


def test_the_digest_of_the_code_changes_with_a_module_and_a_pattern(tmp_path):
    for name, other in (("rank.py", "x = 2"), ("en.toml", "x = 3")):
        (tmp_path / name).write_text("x = 1", encoding="utf-8")
        before = code_digest(tmp_path)
        (tmp_path / name).write_text(other, encoding="utf-8")
        assert code_digest(tmp_path) != before


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["bench", "locomo"], "needs its data"),
        (["bench", "musique"], "no benchmark"),
        (["bench", "--peer", "colbert"], "no peer"),
        (["bench", "--peer", "cosine", "--no-embedder"], "needs an embedder"),
        (["bench", "beliefs", "--half", "third"], "no half"),
        (["bench", "beliefs", "--honest", "--digest-llm", "ollama:x"], "a model already"),
    ],
)
def test_command_says_what_cannot_be_run(tmp_path, monkeypatch, capsys, args, said):
    monkeypatch.chdir(tmp_path)

    assert main(args) == 2
    assert said in capsys.readouterr().err


def test_command_runs_the_belief_benchmark(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code = main(["bench", "beliefs", "--turns", "30", "--half", "development", "--json"])
    (found,) = json.loads(capsys.readouterr().out)["stories"]

    assert code == 0
    assert found["exchanges"] == 30
    assert found["rates"]["stale"]["end"] == 0
    assert set(found["rates"]) == {"stale", "contradicting", "merged", "lost", "junk"}


def test_command_lets_a_scripted_model_read_the_stories(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code = main(["bench", "beliefs", "--turns", "30", "--half", "development", "--honest"])

    assert code == 0
    assert "read by a scripted model without mistakes" in capsys.readouterr().out


def test_every_question_is_asked_of_another_users_memory_too(whole):
    benchmark, found = whole
    curve = build_report(benchmark, found)["silence"]

    assert [row["at"] for row in curve] == sorted(row["at"] for row in curve)
    assert all(low["evidence"] >= high["evidence"] for low, high in pairwise(curve))
    assert curve[3]["evidence"] > 0.9 > 0.3 > curve[3]["foreign"]
    assert len(format_silence(curve)) == len(curve) + 1


def test_names_of_one_talk_are_put_in_place_of_those_of_another():
    assert swap_names("Did Ann see ben's dog?", ("Ann", "Ben"), ("Eve", "Max")) == "Did Eve see Max's dog?"
    assert swap_names("Did Ann call Benedict?", ("Ann", "Ben"), ("Eve",)) == "Did Eve call Benedict?"
