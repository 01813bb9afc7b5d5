"""
The memories that pages are looked at with.

`rich` holds the conversations of `holdfast demo` (Priya's trip, Elena's two pets, Tomasz's failing sync), somebody who
paused, somebody who opted out, and a job that failed permanently; `bare` holds nothing.  ``names`` is what the paths of
pages are made of.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from holdfast import Config, Memory
from holdfast.testing.fakes import FakeClock, HashEmbedder

NOW = datetime(2026, 11, 2, 9, tzinfo=UTC)
UNREADABLE = "unembeddable"


class Stubborn(HashEmbedder):
    """An embedder that one word brings to its knees, so that there is a job that failed."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if any(UNREADABLE in text for text in texts):
            raise RuntimeError("the embedder ran out of memory")
        return super().embed(texts)


@contextmanager
def opened(llm: object = None, path: str = ":memory:") -> Iterator[Memory]:
    """A memory whose clock stands at `NOW`, in which a job that fails is dead at once."""
    config = Config(job_attempts=1, job_backoff_ms=0, chunk_messages=10, users_may_set_prompts=True)
    with Memory(path, llm=llm, embedder=Stubborn(), clock=FakeClock(NOW), config=config) as memory:  # type: ignore[arg-type]
        yield memory


def bare(_memory: Memory) -> dict[str, str]:
    """Nothing: what is seen before anybody has said a word."""
    return {
        "user": "nobody",
        "conversation": "none",
        "org": "default",
        "bot": "default",
        "fact": "none",
        "chunk": "none",
    }


def rich(memory: Memory) -> dict[str, str]:
    """Tell the story; the names in it."""
    folder = resources.files("holdfast.cli") / "demo"
    for told in tomllib.loads((folder / "demo.toml").read_text(encoding="utf-8"))["conversation"]:
        chat = memory.conversation(told["id"], user=told["user"], subject=told.get("subject"))
        lines = (folder / told["file"]).read_text(encoding="utf-8").splitlines()
        chat.append([json.loads(line) for line in lines])
    memory.digest()
    priya = memory.conversation("web-42", user="priya")
    priya.record("My sister Asha lives in Leeds and I work as a nurse.", "Noted.")
    priya.record("Actually, I eat fish now, so I'm pescatarian.", "Good to know.")
    memory.conversation("c1", user="sam").record("I live in Oslo and I play the cello.", "Nice!")
    memory.conversation("c1", user="lee").record("I live in Rome.", "Lovely.")
    memory.digest()
    memory.user("priya").never_remember("health")
    memory.user("priya").remember(category="hobby", key="plays", value="the violin")
    memory.user("sam").pause()
    memory.user("lee").opt_out()
    memory.conversation("broken", user="tomasz").record(f"This is {UNREADABLE}.", "Is it?")
    memory.digest()
    (diet,) = memory.user("priya").facts("dietary")
    (job,) = memory.jobs("dead")
    return {
        "user": "priya",
        "conversation": "japan",
        "org": "default",
        "bot": "default",
        "fact": diet.id,
        "job": job.id,
        "chunk": memory.conversation("japan", user="priya").summaries(1)[0].id,
        "paused": "sam",
        "gone": "lee",
        "owner": "elena",
    }
