"""kill -9 at every step of an erasure: it happened or it did not, and what was acknowledged stays erased."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from holdfast import Memory
from holdfast.errors import NotFound
from holdfast.privacy import erasure
from holdfast.store import Store, WriteView
from holdfast.store.sqlite import backend
from tests import keeping

from .crowd import deaths, dying_at, ended, open_memory, settle, spawn, told

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

VIEW_STEPS = [
    "rewrite_message", "remove_fact", "remove_evidence", "remove_docs", "remove_summaries", "remove_rejected",
    "forget_idempotency_digests", "remove_prefixes", "release_jobs", "remove_conversation", "remove_user", "add_summary",
    "set_parent", "save_user",
]  # fmt: skip
STEPS: list[tuple[Any, str]] = [
    *((WriteView, step) for step in VIEW_STEPS),
    (Store, "write"),
    (Store, "scrub"),
    (backend, "_written_anew"),
    (backend, "_emptied"),
    (erasure, "replace_summaries"),
    (erasure, "summary_drafts"),
    (erasure, "delete_fact"),
    (erasure, "remove_unsupported"),
    (erasure, "remove_quotes"),
]
ERASURES = ["seq 1", "seq 2", "edit 5", "fact", "conversation b", "user"]


def fill(memory: Memory) -> None:
    """A talk with a canary for each erasure; ``Kanari4…`` in no message of its own is the edited one."""
    for name in ("a", "b"):
        chat = memory.conversation(name, user="ana")
        for number in range(7):
            chat.record(f"I live in Kanari{name}{number}, near the old harbour.", f"So Kanari{name}{number} it is.")
            chat.record("What a long and friendly week it was.", "Indeed it was.")
        chat.end()
    memory.digest()


def erase(memory: Memory, what: str) -> None:
    chat = memory.conversation("a", user="ana")
    kind, _, number = what.partition(" ")
    if kind == "seq":
        chat.forget(int(number))
    elif kind == "edit":
        chat.edit(int(number), "I live in Porto.")
    elif kind == "fact":
        user = memory.user("ana")
        facts = [fact for fact in user.history("home") if fact.value == "Kanaria6"]
        if facts:
            user.forget(facts[0].id)
    elif kind == "conversation":
        memory.conversation(number, user="ana").clear()
    else:
        memory.user("ana").erase()


def rows(path: Path) -> str:
    """Every row of every table."""
    return "\n".join(str(row) for found in keeping.rows(path).values() for row in found)


GONE = {
    "seq 1": "I live in Kanaria0,",
    "seq 2": "Kanaria0",
    "edit 5": "I live in Kanaria1,",
    "fact": "Kanaria6",
    "conversation b": "Kanarib",
    "user": "Kanari",
}


@pytest.mark.parametrize(("target", "step"), STEPS, ids=lambda value: getattr(value, "__name__", value))
def test_an_erasure_that_is_killed_is_whole_or_not_at_all(tmp_path: Path, target: Any, step: str, full: bool) -> None:
    for number, ways in enumerate(deaths(STEPS.index((target, step)), (1, 2, 4), full=full)):
        die_each_way(tmp_path / f"{number}.db", target, step, ways)


def die_each_way(path: Path, target: Any, step: str, ways: list[tuple[int, bool]]) -> None:
    with open_memory(str(path)) as memory:
        fill(memory)
    done: set[str] = set()
    for countdown, after in ways:

        def doomed(
            pipe: int, countdown: int = countdown, after: bool = after, done: frozenset[str] = frozenset(done)
        ) -> None:
            memory = open_memory(str(path))
            with dying_at(target, step, countdown, after=after):
                for what in ERASURES:
                    if what not in done:
                        with contextlib.suppress(NotFound):  # the killed one had come through
                            erase(memory, what)
                        os.write(pipe, f"{what}\n".encode())

        pid, reader = spawn(doomed)
        done |= set(told(reader))
        assert ended(pid) in (0, signal.SIGKILL)
        memory = settle(str(path))
        said = {m.content for m in memory.conversation("a", user="ana").load()}
        known = {fact.value for fact in memory.user("ana").history("home")}
        assert memory.doctor().findings == ()
        memory.close()
        everything = rows(path)
        assert [what for what in done if GONE[what] in everything] == []
        for number in (0, 1):  # the message and what was learned from it go together
            assert (f"I live in Kanaria{number}, near the old harbour." in said) == (f"Kanaria{number}" in known)
    assert done
