"""kill -9 at random moments of a memory with a model: everything is read, told and put on record once."""

from __future__ import annotations

import os
import random
import re
import time
from collections.abc import Callable

import pytest

from holdfast import Config, Memory
from holdfast.jobs import model_client
from holdfast.llm.protocol import Request
from holdfast.testing.model import ScriptedModel, uneventful
from holdfast.text.render import parse_blocks

from .crowd import assert_sound, kill, spawn, told

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

CONFIG = Config(
    job_lease_ms=150,
    job_backoff_ms=0,
    model_timeout_s=0.1,
    extract_every_user_turns=3,
    rollup_summaries=2,
    max_memories=10_000,
)
ROUNDS, ROUNDS_WITHOUT_FULL = 8, 3
SEEN = re.compile(r"(\d+) user[^:]*: (I saw whale number (\S+) today\.)")


def read(request: Request) -> list[tuple[str, str, str]]:
    """``(message, words, number)`` of each whale in what is to be read."""
    items = dict(parse_blocks(request.text)).get("read", [])
    return [found.groups() for item in items for found in SEEN.finditer(item)]  # type: ignore[misc]


def facts(request: Request) -> str:
    rows = [f'nature,saw,whale {n},0.9,,add,asserted,event,{seq},"{words}"' for seq, words, n in read(request)]
    return "\n".join(rows) or "NONE"


def episodes(request: Request) -> str:
    return "\n".join(f"- The user saw whale number {n} today [{seq}]" for seq, _, n in read(request)) or "NONE"


@pytest.fixture(autouse=True)
def short_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    """The dead leave their claims soon."""
    monkeypatch.setattr(model_client, "LEASE_MARGIN_MS", 100)


def open_memory(path: str) -> Memory:
    model = ScriptedModel({"facts": facts, "episodes": episodes}, otherwise=uneventful)
    return Memory(path, llm=model, embedder=None, config=CONFIG)


def talk(path: str, writer: int) -> Callable[[int], None]:
    """A process that appends until it is killed, and reports what was acknowledged."""

    def body(pipe: int) -> None:
        memory = open_memory(path)
        for number in range(10_000):
            text = f"I saw whale number {writer}.{number} today."
            receipt = memory.conversation("a", user="ana").record(text, "Noted.", idempotency_key=f"{writer}.{number}")
            os.write(pipe, f"{receipt.seqs[0]} {text}\n".encode())
            time.sleep(0.01)

    return body


def digest(path: str) -> Callable[[int], None]:
    def body(pipe: int) -> None:
        memory = open_memory(path)
        while True:
            memory.digest()
            time.sleep(0.002)

    return body


def settled(path: str) -> Memory:
    """The file opened, the conversation ended, and all work done that is due."""
    memory = open_memory(path)
    memory.conversation("a", user="ana").end()
    until = time.monotonic() + 30
    while time.monotonic() < until:
        memory.digest()
        if not [job for job in memory.jobs() if job.state != "ready" or job.run_at_ms <= time.time() * 1000]:
            return memory
        time.sleep(0.02)
    raise AssertionError(memory.jobs())


def assert_told_once(memory: Memory, acknowledged: list[str]) -> None:
    """Each message gave one fact with one quote and one episode, each chunk one summary, and the calls are on record."""
    assert_sound(memory, {"a": acknowledged})
    chat, user = memory.conversation("a", user="ana"), memory.user("ana")
    said = sorted(m.seq for m in chat.load() if m.role == "user")
    whales = [fact for fact in user.facts(kind="attribute") if fact.key == "saw"]
    assert sorted(e.seq for fact in whales for e in fact.evidence) == said
    assert len({fact.value for fact in whales}) == len(whales) == len(said)
    assert sorted(fact.evidence[0].seq for fact in chat.episodes()) == said
    covered = [seq for s in chat.summaries(level=1) for seq in range(s.start_seq, s.end_seq + 1)]
    assert covered == [message.seq for message in chat.load()]
    assert not memory.jobs("dead")
    assert sum(used.calls for used in user.usage()) >= len(chat.summaries())


@pytest.mark.parametrize("file", range(2))
def test_random_kills_with_a_model_lose_and_double_nothing(tmp_path, file, full):
    path, rng = str(tmp_path / "chat.db"), random.Random(file)
    open_memory(path).close()
    acknowledged: list[str] = []
    for round_number in range(ROUNDS if full else ROUNDS_WITHOUT_FULL):
        crowd = [spawn(talk(path, 100 * file + round_number)), spawn(digest(path)), spawn(digest(path))]
        time.sleep(rng.uniform(0.1, 0.25))
        for pid, _ in rng.sample(crowd, len(crowd)):
            kill(pid)
        for _, reader in crowd:
            acknowledged += told(reader)
    memory = settled(path)
    assert_told_once(memory, acknowledged)
    memory.close()
    assert acknowledged
