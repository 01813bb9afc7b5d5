"""
Processes that use one file at the same time and may be killed at any moment.

They are forked from the test's own process, so that hundreds of them start in milliseconds; each
opens the file for itself.  What a process was told is stored ("acknowledged") it writes to a pipe,
which outlives it.
"""

from __future__ import annotations

import contextlib
import gc
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

from holdfast import Config, Memory
from holdfast.testing.fakes import HashEmbedder

CONFIG = Config(job_lease_ms=150, job_backoff_ms=0, workers=1)

STATEMENTS = (
    "I'm vegetarian.",
    "Actually I eat fish now.",
    "I live in Lisbon.",
    "We moved to Porto last week.",
    "I speak Spanish.",
    "I speak Korean.",
    "I'm allergic to peanuts.",
    "My dog is called Luna.",
    "What a lovely morning it is.",
    "Could you look that up for me?",
)


def open_memory(path: str) -> Memory:
    return Memory(path, embedder=HashEmbedder(), config=CONFIG)


def spawn(body: Callable[[int], None]) -> tuple[int, int]:
    """Run *body* in a forked process with the write end of a pipe; returns (pid, read end)."""
    gc.collect()
    reader, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writer)
        return pid, reader
    code = 1
    try:
        os.close(reader)
        body(writer)
        code = 0
    except BaseException:  # noqa: BLE001 - the child must never return into the test
        traceback.print_exc(file=sys.stderr)
    finally:
        os._exit(code)


def kill(pid: int) -> int:
    """SIGKILL, and the status it ended with."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    return os.waitpid(pid, 0)[1]


def ended(pid: int) -> int:
    """Wait for a process; the signal that ended it, or 0 when it came to its end."""
    status = os.waitpid(pid, 0)[1]
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def told(reader: int) -> list[str]:
    """The complete lines that a process wrote before it ended."""
    data = b""
    while part := os.read(reader, 65536):
        data += part
    os.close(reader)
    return [line.decode() for line in data.split(b"\n")[:-1]]


def talk(path: str, seed: int, conversation: str) -> Callable[[int], None]:
    """A process that appends exchanges and reports each one that was acknowledged."""

    def body(pipe: int) -> None:
        rng = random.Random(seed)
        chat = open_memory(path).conversation(conversation, user="ana")
        for number in range(10_000):
            text = f"{rng.choice(STATEMENTS)} ({seed}.{number})"
            receipt = chat.record(text, "Noted.", idempotency_key=f"{seed}.{number}")
            os.write(pipe, f"{receipt.seqs[0]} {text}\n".encode())

    return body


def digest(path: str) -> Callable[[int], None]:
    """A process that does background work until it is killed."""

    def body(pipe: int) -> None:
        memory = open_memory(path)
        while True:
            memory.digest()
            time.sleep(0.002)

    return body


def deaths(step: int, countdowns: tuple[int, ...], *, full: bool) -> list[list[tuple[int, bool]]]:
    """
    ``(countdown, after)`` of each death in a file: at which call of a step, and whether the call has been made.

    Before and after take turns, and every other step begins with the other: so each step dies before and after a call and at
    each countdown, and each countdown before and after calls.  With *full* a second file has each step die in the other ways.
    """
    lives = [[(countdown, (step + first + n) % 2 == 1) for n, countdown in enumerate(countdowns)] for first in (0, 1)]
    return lives if full else lives[:1]


@contextlib.contextmanager
def dying_at(target: Any, name: str, countdown: int, *, after: bool) -> Iterator[None]:
    """Within this process: the *countdown*-th call of ``target.name`` kills it, before or after it ran."""
    real, left = getattr(target, name), [countdown]

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        left[0] -= 1
        doomed = left[0] == 0  # of this call: others may run at the same time
        if doomed and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        result = real(*args, **kwargs)
        if doomed:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(target, name, wrapper)
    try:
        yield
    finally:
        setattr(target, name, real)


def settle(path: str, within_seconds: float = 60.0) -> Memory:
    """Open the file and finish all background work, waiting for the leases of the dead to run out."""
    memory = open_memory(path)
    end = time.monotonic() + within_seconds
    while time.monotonic() < end:
        memory.digest()
        due = [job for job in memory.jobs() if job.state != "ready" or job.run_at_ms <= time.time() * 1000]
        if not due:
            return memory
        time.sleep(0.02)
    raise AssertionError(f"work is still pending after {within_seconds} s: {memory.jobs()}")


def assert_sound(memory: Memory, acknowledged: dict[str, list[str]]) -> None:
    """Nothing acknowledged is lost or doubled, every message is covered at most once, no gaps, no orphans."""
    report = memory.doctor()
    assert report.ok, report.findings
    for conversation, lines in acknowledged.items():
        stored = {m.seq: m.content for m in memory.conversation(conversation, user="ana").load()}
        assert sorted(stored) == list(range(1, len(stored) + 1))
        said = [text for text in stored.values() if text != "Noted."]
        assert len(said) == len(set(said)), "a message was stored twice"
        for line in lines:
            seq, text = line.split(" ", 1)
            assert stored.get(int(seq)) == text, f"acknowledged message {seq} of {conversation} is not there"
