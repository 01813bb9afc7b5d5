"""Every place where turns can be kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import InMemoryMessages, JsonFileMessages, Memory, UserMessages


class Place:
    """Where turns are kept, and how to look at them."""

    def __init__(self, kind, where):
        self.kind, self.where = kind, where

    def said(self, session="default"):
        if isinstance(self.where, Memory):
            user = "default" if session in ("default", "mine") else f"session:{session}"
            messages = self.where.conversation(session, user=user).load()
        else:
            messages = self.where.load(session)
        return [(m.role, m.content) + (("incomplete",) if m.meta.get("incomplete") else ()) for m in messages]


@pytest.fixture(params=["memory", "in memory", "json files", "user"])
def place(request, tmp_path):
    if request.param in ("memory", "user"):
        with Memory(embedder=None) as memory:
            yield Place(request.param, memory if request.param == "memory" else UserMessages(memory, user="ana"))
    else:
        yield Place(request.param, InMemoryMessages() if request.param == "in memory" else JsonFileMessages(tmp_path))


# Tests of adapters need their frameworks, each in an environment of its own: `make integrations-latest` runs those.
# Pydantic AI is in the ordinary environment, so its tests run here, too.
FRAMEWORKS = Path(__file__).with_name("frameworks")
collect_ignore = [str(folder) for folder in FRAMEWORKS.glob("*") if folder.name != "pydantic_ai"]
