"""
The same front door elsewhere: awaited, and over HTTP from a server with a real socket.

The tests of the library run on all of them: what a `Memory` is for them is then one of these.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from holdfast import AsyncMemory, Memory
from holdfast.client import AsyncClient, Client

DOORS = ("AsyncMemory", "Client", "AsyncClient")


class Blocking:
    """An async door whose calls are waited for."""

    def __init__(self, door: Any, runner: asyncio.Runner) -> None:
        self._door, self._runner = door, runner

    def __repr__(self) -> str:
        return repr(self._door).removeprefix("Async")

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._door, name)
        if not callable(found):
            return self._shown(found)
        return lambda *args, **named: self._shown(found(*args, **named))

    def _shown(self, found: Any) -> Any:
        if inspect.iscoroutine(found):
            found = self._runner.run(found)
        return Blocking(found, self._runner) if type(found).__name__.startswith("Async") else found


@contextmanager
def opened(door: str, served: Callable[..., Any], **options: Any) -> Iterator[Any]:
    """What *door* makes of a memory with the *options* of `Memory`; *served* is the fixture."""
    with asyncio.Runner() as runner:
        if door == "AsyncMemory":
            memory = Blocking(AsyncMemory(**options), runner)
            yield memory
            memory.close()
            return
        with Memory(**options) as library, served(library) as address:
            key = library.admin.keys.create("operator").key
            if door == "Client":
                with Client(address, key=key) as client:
                    yield client
            else:
                awaited = Blocking(AsyncClient(address, key=key), runner)
                yield awaited
                awaited.close()
