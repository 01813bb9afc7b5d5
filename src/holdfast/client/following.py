"""
The events of a user, one by one, sync and async.

A connection that breaks is made again with the number of the last event, so no event is left out and none comes twice.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator

import httpx2

from ..reports import Event
from .calls import RAW, Call
from .values import of_problem, value_of
from .wire import FIRST_WAIT_S, LONGEST_WAIT_S, AsyncWire, Wire

RESET = "reset"


class Frames:
    """Server-sent events, line by line; ``last`` is the number from which a lost connection goes on."""

    def __init__(self, after: int | None) -> None:
        self.last = after
        self.begin()

    def begin(self) -> None:
        """Start a new connection: an event that came only in part comes again."""
        self._id, self._kind, self._data = self.last, "", ""

    def take(self, line: str) -> Event | None:
        """Return the event that *line* completes, if it does."""
        if line:
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if name == "id" and value.isdecimal():
                self._id = int(value)
            elif name == "event":
                self._kind = value
            elif name == "data":
                self._data += value
            return None
        self.last, kind, data = self._id, self._kind, self._data
        self._kind, self._data = "", ""
        if kind == RESET:
            names = dict.fromkeys(("actor", "org", "user", "bot", "subject", "conversation", "ref"), "")
            found: Event = value_of(Event, {"id": self.last or 0, "at_ms": 0, "kind": RESET, **names})
            return found
        if not data:
            return None
        event: Event = value_of(Event, json.loads(data))
        return event


class _Line:
    """The retries of a stream; the same for both kinds."""

    def __init__(self, call: Call[RAW], after: int | None, follow: bool, retries: int) -> None:
        self.call, self.follow = call, follow
        self.frames = Frames(after)
        self._retries, self._failed = retries, 0

    def heard(self) -> None:
        """Note that the server has answered."""
        self._failed = 0
        self.frames.begin()

    def wait_s(self, error: httpx2.HTTPError | None) -> float | None:
        """Return the seconds until the next try; ``None`` when there is none."""
        self._failed += 1
        if error is not None and self._failed > self._retries:
            return None
        return float(min(LONGEST_WAIT_S, FIRST_WAIT_S * 2 ** min(self._failed, 10)))


class Following:
    """An iterator over events; made by `Client.events`.  ``last_id`` is the number of the last event."""

    def __init__(self, wire: Wire, call: Call[RAW], after: int | None, *, follow: bool) -> None:
        self._wire = wire
        self._line = _Line(call, after, follow, wire.retries)

    @property
    def last_id(self) -> int | None:
        """The number to continue from, with ``after=``."""
        return self._line.frames.last

    def __iter__(self) -> Iterator[Event]:
        line = self._line
        while True:
            failed: httpx2.HTTPError | None = None
            try:
                with self._wire.stream(line.call, line.frames.last) as answer:
                    if answer.status_code >= 300:
                        raise of_problem(answer.status_code, answer.read())
                    line.heard()
                    for text in answer.iter_lines():
                        if (event := line.frames.take(text)) is not None:
                            yield event
            except httpx2.HTTPError as error:
                failed = error
            if failed is None and not line.follow:
                return
            wait_s = line.wait_s(failed)
            if wait_s is None and failed is not None:
                raise self._wire.unreachable(failed) from failed
            time.sleep(wait_s or 0.0)


class AsyncFollowing:
    """The async iterator: ``async for event in client.events("ana")``."""

    def __init__(self, wire: AsyncWire, call: Call[RAW], after: int | None, *, follow: bool) -> None:
        self._wire = wire
        self._line = _Line(call, after, follow, wire.retries)

    @property
    def last_id(self) -> int | None:
        """The number to continue from, with ``after=``."""
        return self._line.frames.last

    async def __aiter__(self) -> AsyncIterator[Event]:
        line = self._line
        while True:
            failed: httpx2.HTTPError | None = None
            try:
                async with self._wire.stream(line.call, line.frames.last) as answer:
                    if answer.status_code >= 300:
                        raise of_problem(answer.status_code, await answer.aread())
                    line.heard()
                    async for text in answer.aiter_lines():
                        if (event := line.frames.take(text)) is not None:
                            yield event
            except httpx2.HTTPError as error:
                failed = error
            if failed is None and not line.follow:
                return
            wait_s = line.wait_s(failed)
            if wait_s is None and failed is not None:
                raise self._wire.unreachable(failed) from failed
            await asyncio.sleep(wait_s or 0.0)
