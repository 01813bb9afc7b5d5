"""kill -9 at every step of merging sentences and of taking them apart: either state, never half."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from holdfast import Config, Memory
from holdfast.reconcile import merging
from holdfast.store import Store, WriteView
from holdfast.testing.fakes import HashEmbedder
from tests import keeping

from .crowd import dying_at, ended, spawn, told

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

KIDS = [f"The {who} {what} long walks by the {where}." for who, what, where in (
    ("kids", "adore", "sea"), ("children", "adore", "sea"), ("children", "love", "sea"),
    ("kids", "adore", "river"), ("children", "adore", "river"), ("children", "love", "river"),
)]  # fmt: skip
SEA, RIVER = frozenset(KIDS[:3]), frozenset(KIDS[3:])
STEPS: list[tuple[Any, str]] = [
    *((WriteView, step) for step in ("update_fact", "add_fact", "add_docs", "add_derivations", "save_user", "add_evidence")),
    *((WriteView, step) for step in ("remove_fact", "remove_docs")),
    (Store, "write"),
    (merging, "index_fact"),
    (merging, "unindex_fact"),
    (merging, "split_fact"),
]  # fmt: skip


def opened(path: Path) -> Memory:
    return Memory(str(path), embedder=HashEmbedder(), config=Config(consolidate_similarity=0.75, job_lease_ms=150))


def states(memory: Memory) -> list[str]:
    """Of each of the two groups: ``merged`` or ``apart``; anything else fails."""
    live = [(fact.text, {said.quote for said in fact.evidence}) for fact in memory.user("ana").facts(kind="statement")]
    found = []
    for group in (SEA, RIVER):
        mine = [(text, quotes) for text, quotes in live if quotes & group]
        if mine == [(mine[0][0], group)]:
            found.append("merged")
        else:
            assert sorted((text, sorted(quotes)) for text, quotes in mine) == [(text, [text]) for text in sorted(group)]
            found.append("apart")
    return found


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(("target", "step"), STEPS, ids=lambda value: getattr(value, "__name__", value))
def test_a_merge_that_is_killed_is_whole_or_not_at_all(tmp_path: Path, target: Any, step: str, after: bool) -> None:
    origin = tmp_path / "origin.db"
    with opened(origin) as memory:
        for sentence in KIDS:
            memory.user("ana").remember(sentence)
        assert states(memory) == ["apart", "apart"]
    for countdown in (1, 2, 3, 5):
        path = tmp_path / f"{countdown}.db"
        keeping.duplicate(origin, path)

        def doomed(pipe: int, path: Path = path, countdown: int = countdown) -> None:
            memory = opened(path)
            with dying_at(target, step, countdown, after=after):
                os.write(pipe, f"{len(memory.user('ana').consolidate().merged)} merged\n".encode())
                for fact in memory.user("ana").history("note"):
                    if fact.ended_because == "merged":
                        change = memory.user("ana").restore(fact.id)
                        os.write(pipe, f"{fact.id} {change.op}\n".encode())

        pid, reader = spawn(doomed)
        acknowledged = told(reader)
        assert ended(pid) in (0, signal.SIGKILL)
        with opened(path) as memory:
            assert memory.doctor().findings == ()
            found = states(memory)
            if acknowledged[1:]:
                assert "apart" in found
            elif acknowledged:
                assert acknowledged == ["2 merged"]
            memory.user("ana").consolidate()
            states(memory)
            assert memory.doctor().findings == ()
