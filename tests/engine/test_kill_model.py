"""kill -9 around every call of a model: no message lost, no chunk told twice, nothing learned twice, each call on record."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from holdfast import Config, Memory
from holdfast.jobs import model_client, model_reader, summaries
from holdfast.llm.protocol import Request
from holdfast.store import Store, WriteView
from holdfast.testing.fakes import HashEmbedder
from holdfast.testing.model import ScriptedModel
from holdfast.text.render import parse_blocks

from .crowd import assert_sound, deaths, dying_at, ended, spawn, told

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

STEPS: list[tuple[Any, str]] = [
    (ScriptedModel, "ask"),
    (model_client.ModelClient, "ask"),
    (model_client, "record"),
    (model_reader.ReadMessages, "_write"),
    (model_reader.ModelReader, "read_facts"),
    (summaries.CloseChunks, "_chunk_draft"),
    (summaries.CloseChunks, "_add_findings"),
    (model_reader.ModelReader, "read_episodes"),
    (model_reader.ModelReader, "summarize_level"),
    (model_reader.ModelReader, "learn"),
    *((WriteView, step) for step in ("add_episode_range", "add_fact", "add_summary", "renew", "finish")),
    *((WriteView, step) for step in ("add_read_range", "add_usage")),
    (Store, "write"),
    (Store, "claim_some"),
]
PLACES = ("Lisbon", "Porto", "Faro", "Braga", "Evora", "Sintra", "Tomar", "Leiria")
SAID = re.compile(r"^\[?#?(\d+).*?I walked to (\w+) (?:once|again)")


def answer(request: Request) -> str:
    """Each place that the prompt shows, once as a fact and once as an episode."""
    read = next((items for name, items in parse_blocks(request.text) if name == "read"), [])
    places = [(found[1], found[2]) for line in read if (found := SAID.match(line))]
    if request.layer == "facts":
        rows = [
            f'note,walk_{seq},{place},0.95,,set,asserted,event,{seq},"I walked to {place}"' for seq, place in places
        ]
        return "\n".join(rows) or "NONE"
    if request.layer == "episodes":
        return "\n".join(f"- Walked to {place} [{seq}]" for seq, place in places) or "No facts to record"
    return "SUMMARY: They walked a lot, and talked about it."


def opened(path: str) -> Memory:
    config = Config(job_lease_ms=150, job_backoff_ms=0, model_timeout_s=0.1)
    return Memory(path, embedder=HashEmbedder(), llm=ScriptedModel(otherwise=answer), config=config)


def finished(path: str, within_seconds: float = 30.0) -> Memory:
    """The memory with all its work done, the leases of the dead having run out."""
    memory, end = opened(path), time.monotonic() + within_seconds
    while time.monotonic() < end:
        memory.digest()
        if all(job.state == "ready" and job.run_at_ms > time.time() * 1000 for job in memory.jobs()):
            return memory
        time.sleep(0.02)
    raise AssertionError(f"work is still pending: {memory.jobs()}")


def text(number: int) -> str:
    return f"I walked to {PLACES[number % len(PLACES)]} {'again' if number >= len(PLACES) else 'once'} ({number})."


@pytest.mark.parametrize(("target", "step"), STEPS, ids=lambda value: getattr(value, "__name__", value))
def test_a_kill_around_a_call_loses_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: Any, step: str, full: bool
) -> None:
    monkeypatch.setattr(
        "holdfast.jobs.model_client.LEASE_MARGIN_MS", 100
    )  # so that the leases of the dead run out soon
    for number, ways in enumerate(deaths(STEPS.index((target, step)), (1, 3), full=full)):
        die_each_way(str(tmp_path / f"{number}.db"), target, step, ways)


def die_each_way(path: str, target: Any, step: str, ways: list[tuple[int, bool]]) -> None:
    acknowledged, answered, died = [], 0, 0

    def story(pipe: int) -> None:
        real = ScriptedModel.ask

        def heard(self: ScriptedModel, request: Request) -> Any:
            said = real(self, request)
            os.write(pipe, b"answered\n")
            return said

        memory = opened(path)
        ScriptedModel.ask = heard  # type: ignore[method-assign]
        chat = memory.conversation("a", user="ana")
        start = len(chat.load())
        for number in range(start // 2, start // 2 + 14):
            receipt = chat.record(text(number), "Noted.", idempotency_key=str(number))
            os.write(pipe, f"{receipt.seqs[0]} {text(number)}\n".encode())
        chat.end()
        memory.digest()

    for countdown, after in ways:

        def doomed(pipe: int, countdown: int = countdown, after: bool = after) -> None:
            with dying_at(target, step, countdown, after=after):
                story(pipe)

        pid, reader = spawn(doomed)
        lines = told(reader)
        acknowledged += [line for line in lines if line != "answered"]
        answered += lines.count("answered")
        died += ended(pid) == signal.SIGKILL
        finished(path).close()
    assert died
    with opened(path) as memory:
        chat = memory.conversation("a", user="ana")
        chat.end()
        memory.digest()
        assert_sound(memory, {"a": acknowledged})
        user, said = memory.user("ana"), len(chat.load()) // 2
        covered = [seq for s in chat.summaries(1) for seq in range(s.start_seq, s.end_seq + 1)]
        assert covered == list(range(1, 2 * said + 1))
        walks = [f.key for f in user.facts() if f.key.startswith("walk_")]
        assert len(walks) == len(set(walks))
        parse_tool_uses = [(f.text, e.seq) for f in chat.episodes() for e in f.evidence]
        assert len(parse_tool_uses) == len(set(parse_tool_uses))
        assert memory.jobs("dead") == []
        # a call is on record when it returns; those that the kills cut short may be missing, two at a time
        assert sum(usage.calls for usage in memory.usage()) >= answered - 2 * died
