"""A served memory in front of a model's server that answers what a test wants."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import openai
import pytest

from holdfast import Memory
from holdfast.server.app import create_app
from holdfast.server.gate import ServerSettings
from holdfast.server.serve import make_server

from .upstream import Fake, serving


@dataclass(frozen=True)
class World:
    """One server, the model behind it, and clients for its users."""

    memory: Memory
    model: Fake
    url: str
    clients: list[Any]

    def key(self, role: str = "app", **whose: str) -> str:
        return self.memory.admin.keys.create(role, **whose).key  # type: ignore[arg-type]

    def client(self, user: str | None = "ana", conversation: str | None = "c", **headers: str) -> openai.OpenAI:
        """An app's client, unmodified but for its address and its headers."""
        named = {"X-Memory-User": user, "X-Memory-Conversation": conversation}
        return self.with_key(self.key(), **{k: v for k, v in named.items() if v is not None}, **headers)

    def with_key(self, key: str, **headers: str) -> openai.OpenAI:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        made = openai.OpenAI(base_url=self.url, api_key=key, max_retries=0, default_headers=sent, timeout=20)
        self.clients.append(made)
        return made

    def stored(self, user: str = "ana", conversation: str = "c", **whose: str) -> list[tuple[str, str]]:
        """Roles and texts."""
        chat = self.memory.conversation(conversation, user=user, **whose)
        return [(message.role, message.content) for message in chat.load()]

    def stored_soon(self, count: int, **whose: str) -> list[tuple[str, str]]:
        """The same, once there are so many, or after twenty seconds."""
        until = time.monotonic() + 20
        while len(found := self.stored(**whose)) < count and time.monotonic() < until:
            time.sleep(0.01)
        return found


@contextmanager
def served(memory: Memory, settings: ServerSettings) -> Iterator[str]:
    """The address of *memory*, served over a real socket."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    settings = replace(settings, port=listener.getsockname()[1])
    running = make_server(create_app(memory, settings), settings)
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        while not running.started:
            time.sleep(0.005)
        yield f"http://127.0.0.1:{settings.port}/v1"
    finally:
        running.should_exit = True
        thread.join(timeout=20)
        listener.close()


@pytest.fixture
def model() -> Iterator[Fake]:
    with serving() as fake:
        yield fake


Serve = Callable[..., World]


@pytest.fixture
def serve(model: Fake) -> Iterator[Serve]:
    """``serve(**settings)``: a fresh memory, served."""
    with contextmanager(_worlds)(model) as make:
        yield make


def _worlds(model: Fake) -> Iterator[Serve]:
    open_worlds: list[tuple[Any, World]] = []

    def make(memory: Memory | None = None, **settings: Any) -> World:
        memory = memory if memory is not None else Memory(embedder=None)
        own = {"upstream_base_url": model.url, "upstream_key": "upstream-secret"} | settings
        context = served(memory, ServerSettings(**own))
        world = World(memory, model, context.__enter__(), [])
        open_worlds.append((context, world))
        return world

    yield make
    for context, world in open_worlds:
        for client in world.clients:
            client.close()
        context.__exit__(None, None, None)
        world.memory.close()


@pytest.fixture
def world(serve: Serve) -> World:
    return serve()
