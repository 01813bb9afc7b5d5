"""kill -9 at every step of a rebuild and a backfill: each range is as it was or made again, and the next run ends it."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from holdfast import Config, Memory
from holdfast.jobs import model_client, rebuild
from holdfast.llm.protocol import Request
from holdfast.reconcile import erase, learn
from holdfast.store import Store, WriteView
from holdfast.testing.fakes import HashEmbedder
from holdfast.testing.model import ScriptedModel
from holdfast.text.render import parse_blocks
from tests import keeping
from tests.engine.crowd import dying_at, ended, settle, spawn, told

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

USER = "ana"
VIEW = [
    "rewrite_summary", "add_rebuild", "add_read_range", "remove_rejected", "remove_docs", "add_summary", "set_parent",
    "add_derivations", "add_docs", "save_user", "update_fact", "add_fact",
    "add_episode_range", "add_usage", "add_rejected", "want",
]  # fmt: skip
STEPS: list[tuple[Any, str]] = [
    *((WriteView, step) for step in VIEW),
    (Store, "write"),
    (Store, "read"),
    (ScriptedModel, "ask"),
    (rebuild.ModelReader, "read_facts"),
    (rebuild, "relearn"),
    (rebuild, "_replace_in_tree"),
    (rebuild, "is_undisturbed"),
    (rebuild, "_retire"),
    (rebuild, "undo_relearn"),
    (learn, "learn"),
    (learn, "withdraw_fact"),
    (learn, "reinstate"),
    (erase, "reactivate"),
    (model_client, "record"),
]


SAID = {0: "I live in Lisbon.", 2: "I speak Spanish.", 4: "I live in Faro."}
NOTED = re.compile(r"^\[?#?(\d+).*I live in Lisbon")


def answer(request: Request) -> str:
    """A model that hears of Lisbon and of a river, not of Faro nor of Spanish, and always tells the same."""
    read = next((items for name, items in parse_blocks(request.text) if name == "read"), [])
    if request.layer == "facts":
        seqs = [found[1] for line in read if (found := NOTED.match(line))]
        rows = [f'home,lives_in,Lisbon,0.95,,set,asserted,state,{seq},"I live in Lisbon"' for seq in seqs]
        rivers = [line for line in read if "We saw the river" in line]
        river = re.match(r"^\[?#?(\d+)", rivers[0]) if rivers else None
        rows += [f'note,river_{river[1]},river,0.95,,add,asserted,event,{river[1]},"We saw the river"'] if river else []
        return "\n".join(rows) or "NONE"
    if request.layer == "episodes":
        return "- Bought a violin in Vienna [3]" if "river" in request.text else "No facts to record"  # nobody said so
    return "SUMMARY: They walked along the river."


def opened(path: str, *, model: bool = True) -> Memory:
    llm = ScriptedModel(otherwise=answer) if model else None
    return Memory(path, embedder=HashEmbedder(), llm=llm, config=Config(job_lease_ms=150, job_backoff_ms=0))


def filled(path: str) -> None:
    """Rules alone have read and summarized it."""
    with opened(path, model=False) as memory:
        chat = memory.conversation("a", user=USER)
        for number in range(16):
            chat.record(SAID.get(number, f"Day {number} was fine. We saw the river."), "Nice.")
        chat.end()
        memory.digest()


def state(memory: Memory) -> list[Any]:
    """What a user sees, without ids and versions."""
    chat, user = memory.conversation("a", user=USER), memory.user(USER)
    told_now = [(s.level, s.start_seq, s.end_seq, s.text, s.source, s.stale) for s in chat.summaries()]
    believed = sorted((f.kind, f.category, f.value, f.text, f.source) for f in user.facts())
    return [told_now, believed, [m.content for m in chat.load()]]


def story(path: str, pipe: int) -> None:
    memory = opened(path)
    memory.backfill(USER, delay_ms=0)
    chat = memory.conversation("a", user=USER)
    for layer in ("summaries", "facts", "meta"):
        report = chat.rebuild(layer)
        assert report.errors == ()
        chat.restore(report.id)
    first = next((past.id for past in chat.rebuilds() if past.layer == "facts"), None)
    if first is not None:
        chat.restore(first)
    os.write(pipe, b"done\n")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, list[Any]]:
    """The file before, and what is seen after a backfill that nobody killed."""
    path = tmp_path_factory.mktemp("whole") / "chat.db"
    filled(str(path))
    before = path.read_bytes()
    with opened(str(path)) as memory:
        memory.backfill(USER, delay_ms=0)
        memory.digest()
        return before, state(memory)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(("target", "step"), STEPS, ids=lambda value: getattr(value, "__name__", value))
def test_a_killed_run_is_ended_by_the_next(
    tmp_path: Path, whole: tuple[bytes, list[Any]], target: Any, step: str, after: bool
) -> None:
    path, died = tmp_path / "chat.db", 0
    keeping.put(path, whole[0])
    for countdown in (1, 5):

        def doomed(pipe: int, countdown: int = countdown) -> None:
            with dying_at(target, step, countdown, after=after):
                story(str(path), pipe)

        pid, reader = spawn(doomed)
        told(reader)
        signalled = ended(pid)
        assert signalled in (0, signal.SIGKILL)
        died += signalled == signal.SIGKILL
        with settle(str(path)) as memory:
            assert memory.doctor().findings == ()
            said = [m.content for m in memory.conversation("a", user=USER).load()]
            assert said == whole[1][2]
    assert died
    with opened(str(path)) as memory:
        chat = memory.conversation("a", user=USER)
        report = memory.backfill(USER, delay_ms=0)
        assert report.errors == 0
        for layer in ("summaries", "facts", "meta"):
            chat.rebuild(layer)
        memory.digest()
        assert state(memory) == whole[1]
        assert memory.doctor().findings == ()
        assert memory.backfill(USER, delay_ms=0).created == 0
