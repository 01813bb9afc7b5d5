"""The same stories, with the same assertions, through everything that leads to the memory."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from starlette.testclient import TestClient

import holdfast
from holdfast import AsyncMemory, Memory
from holdfast.cli import main
from holdfast.client import AsyncClient, Client
from holdfast.server.app import create_app
from holdfast.testing.fakes import FakeClock
from tests import keeping

from ..elsewhere import Blocking
from .pages import Dashboard, Me
from .stories import CALLS, LACKS, STORIES, STORIES_LEFT_OUT, Command, Doors, Surface, Tools, reasons

DRIVERS = {
    "library": Doors,
    "async library": Doors,
    "client": Doors,
    "async client": Doors,
    "command": Command,
    "tools": Tools,
    "dashboard": Dashboard,
    "me": Me,
}


@pytest.fixture
def place(tmp_path, monkeypatch, served):
    """What the drivers are made of: a store, a clock that stands still, and whatever has to be closed again."""
    return Place(tmp_path, monkeypatch, served)


class Place:
    def __init__(self, folder, patch, served) -> None:
        self.folder, self.served = folder, served
        self.clock = FakeClock(datetime(2026, 1, 1, 9, tzinfo=UTC))
        self.options: dict[str, Any] = {"embedder": None, "clock": self.clock}
        self.path = folder / "chat.db"
        self._patch = patch

    @contextmanager
    def through(self, name: str) -> Iterator[Surface]:
        """The surface *name*, whole."""
        with ExitStack() as stack:
            memory = stack.enter_context(Memory(self.path, **self.options))
            make = getattr(self, "_" + name.replace(" ", "_"))
            yield Surface(name, make(memory, stack), Doors(memory), self.clock)

    def _library(self, memory, _stack):
        return Doors(memory)

    def _async_library(self, _memory, stack):
        runner = stack.enter_context(asyncio.Runner())
        door = Blocking(AsyncMemory(self.path, **self.options), runner)
        stack.callback(lambda: door.close())
        return Doors(door)

    def _client(self, memory, stack):
        address = stack.enter_context(self.served(memory))
        return Doors(stack.enter_context(Client(address, key=memory.admin.keys.create("operator").key)))

    def _async_client(self, memory, stack):
        address = stack.enter_context(self.served(memory))
        runner = stack.enter_context(asyncio.Runner())
        door = Blocking(AsyncClient(address, key=memory.admin.keys.create("operator").key), runner)
        stack.callback(lambda: door.close())
        return Doors(door)

    def _tools(self, memory, stack):
        return Tools(stack.enter_context(self.served(memory)), memory.admin.keys.create("user", user="ana").key)

    def _command(self, _memory, _stack):
        self._patch.setattr(holdfast, "Memory", partial(Memory, **self.options))
        self._patch.chdir(self.folder)
        return Command(self._run, self.folder)

    def _run(self, *words: str) -> Any:
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = main([*words, "--store", keeping.address(self.path), "--json"])
        assert code == 0, err.getvalue()
        return json.loads(out.getvalue())

    def _dashboard(self, memory, stack):
        return Dashboard(self._browser(memory, stack, "operator"))

    def _me(self, memory, stack):
        return Me(self._browser(memory, stack, "user", user="ana"))

    def _browser(self, memory, stack, role: str, **whose: str) -> TestClient:
        base = "http://127.0.0.1:7800"
        headers = {"Accept": "text/html,*/*;q=0.8", "Origin": base, "Sec-Fetch-Site": "same-origin"}
        browser = stack.enter_context(TestClient(create_app(memory), base_url=base, headers=headers))
        browser.post("/sign-in", data={"key": memory.admin.keys.create(role, **whose).key})
        return browser


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
@pytest.mark.parametrize("name", DRIVERS)
def test_a_story_ends_the_same_through_every_surface(name, story, place):
    if story.__name__ in STORIES_LEFT_OUT.get(name, {}):
        story_left_out(name, story, place)
        return
    with place.through(name) as at:
        story(at)
        assert at.own > 0, f"nothing of this story goes through {name}: say so in STORIES_LEFT_OUT"


def story_left_out(name, story, place):
    """It holds, and nothing of it is offered; else it stands in the table for nothing."""
    with place.through(name) as at:
        story(at)
        assert at.own == 0


@pytest.mark.parametrize("name", DRIVERS)
def test_a_surface_offers_a_call_or_the_table_says_why_not(name):
    offered = {call for call in CALLS if hasattr(DRIVERS[name], call)}
    assert offered | reasons(name).keys() == set(CALLS)
    assert offered & reasons(name).keys() == set()


def test_the_table_gives_a_reason_for_everything_it_leaves_out():
    assert LACKS.keys() | STORIES_LEFT_OUT.keys() <= DRIVERS.keys()
    for table in (*LACKS.values(), *STORIES_LEFT_OUT.values()):
        assert all(len(reason) > 20 for reason in table.values())
    left_out = {story for table in STORIES_LEFT_OUT.values() for story in table}
    assert left_out <= {story.__name__ for story in STORIES}


def test_every_call_is_told_in_a_story():
    told = {name for story in STORIES for name in story.__code__.co_names}
    assert set(CALLS) <= told
