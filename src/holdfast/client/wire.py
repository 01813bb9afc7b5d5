"""
Sending calls, sync and async: retries where that is safe, pages, waiting for jobs, and the events of a user.

Functions that know no network decide; `Wire` and `AsyncWire` only carry it out.
A stream of events that breaks is opened again with the number of the last event, so none is left out and none comes twice.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any

import httpx2

from ..errors import BadInput, Conflict, HoldfastError, StoreClosed
from ..reports import Event
from .calls import RAW, Call, T, Unreachable, of_code, of_problem, part, plain, value_of

FIRST_WAIT_S, LONGEST_WAIT_S = 0.2, 10.0
JOB_WAIT_S = 20.0
SILENT_S = 45.0  # a server shows every 15 seconds that a stream is open
PAGE = 1_000
RESET = "reset"
NEVER_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)

Progress = Callable[[int, int], None]


class Sender:
    """The address, the key and the patience that both wires share."""

    def __init__(self, url: str, key: str, timeout_s: float, retries: int) -> None:
        address = httpx2.URL(url)
        if address.scheme not in ("http", "https") or not address.host:
            raise BadInput("the address of a server begins with http:// or https://", hint="http://127.0.0.1:7800")
        self.url = str(address).rstrip("/")
        self._key, self._timeout_s, self.retries = key, timeout_s, retries

    def request(self, call: Call[Any]) -> dict[str, Any]:
        """Return the arguments for httpx2."""
        headers = {"Authorization": f"Bearer {call.key or self._key}", **call.headers}
        options: dict[str, Any] = {"json": plain(call.body)} if call.body is not None else {}
        timeout = httpx2.Timeout(self._timeout_s + call.wait_s, connect=self._timeout_s)
        return {
            "method": call.method,
            "url": self.url + call.target,
            "headers": headers,
            "timeout": timeout,
            "follow_redirects": False,  # a key goes to no other address
            **options,
        }

    def streamed(self, call: Call[Any], last: int | None) -> dict[str, Any]:
        """Return the arguments for a stream of events, which continues after *last* and may be silent for a while."""
        found = self.request(call)
        if last is not None:
            found["headers"] = {**found["headers"], "Last-Event-ID": str(last)}
        return found | {"timeout": httpx2.Timeout(self._timeout_s, read=SILENT_S)}

    def wait_s(self, call: Call[Any], attempt: int, outcome: httpx2.Response | httpx2.HTTPError) -> float | None:
        """Return the seconds to wait before the next try; ``None`` when there is none."""
        if attempt >= self.retries:
            return None
        if isinstance(outcome, httpx2.HTTPError):
            again = isinstance(outcome, NEVER_SENT) or call.repeatable
            return FIRST_WAIT_S * 2**attempt * random.uniform(0.5, 1.0) if again else None
        asked = outcome.headers.get("retry-after", "")
        if outcome.status_code not in (429, 503) or not asked.isdecimal():
            return None
        return float(asked) if int(asked) <= LONGEST_WAIT_S else None  # it did nothing, so anything may be repeated

    def result(self, call: Call[T], answer: httpx2.Response) -> T:
        """
        Return the value of an answer.

        Raises:
            HoldfastError: it is a problem.
        """
        if answer.status_code >= 300:
            raise of_problem(answer.status_code, answer.content)
        found: T = value_of(call.returns, answer.json() if answer.content else None)
        return found

    def unreachable(self, error: Exception) -> HoldfastError:
        """Return the error for a failed connection."""
        if isinstance(error, RuntimeError):
            return StoreClosed("this client was closed", hint="open another one")
        what = str(error) or type(error).__name__
        return Unreachable(f"no answer from {self.url}: {what}", hint="does `holdfast serve` run there?")


def job_call(job: dict[str, Any]) -> Call[RAW]:
    """Ask for a job again, when it is over or after a while."""
    return Call("GET", f"/v1/jobs/{part(job['id'])}", RAW, query={"wait_s": JOB_WAIT_S}, wait_s=JOB_WAIT_S)


def over(job: dict[str, Any], progress: Progress | None) -> bool:
    """
    Whether a job is done.

    Raises:
        HoldfastError: it failed, or was cancelled.
    """
    if progress is not None and job["done"]:
        progress(job["done"], job["total"])
    if job["state"] == "failed":
        raise of_code(job["code"], job["reason"])
    if job["state"] in ("cancelled", "dead", "interrupted"):
        raise Conflict(f"the job {job['id']} was ended before it was done", hint="what it made stays; ask again")
    return bool(job["state"] == "done")


class Wire(Sender):
    """Calls over one `httpx2.Client`."""

    def __init__(self, url: str, key: str, *, timeout_s: float, retries: int, http: httpx2.Client | None) -> None:
        super().__init__(url, key, timeout_s, retries)
        self._http, self._owned = http or httpx2.Client(), http is None

    def send(self, call: Call[T]) -> T:
        """Send one call and return its answer."""
        attempt = 0
        while True:
            outcome: httpx2.Response | httpx2.HTTPError
            try:
                outcome = self._http.request(**self.request(call))
            except httpx2.HTTPError as error:
                outcome = error
            except RuntimeError as error:
                raise self.unreachable(error) from error
            wait_s = self.wait_s(call, attempt, outcome)
            if wait_s is None:
                break
            time.sleep(wait_s)
            attempt += 1
        if isinstance(outcome, httpx2.HTTPError):
            raise self.unreachable(outcome) from outcome
        return self.result(call, outcome)

    def do(self, call: Call[RAW]) -> None:
        """Send a call whose answer is not needed."""
        self.send(call)

    def stream(self, call: Call[RAW], last: int | None) -> AbstractContextManager[httpx2.Response]:
        """Open the answer of a call that is a stream."""
        return self._http.stream(**self.streamed(call, last))

    def pages(self, call: Call[RAW], kind: type[T], most: int | None = None) -> list[T]:
        """Return all items of a list, or the first *most*."""
        found: list[T] = []
        cursor = call.query.get("cursor")
        while most is None or len(found) < most:
            size = PAGE if most is None else min(PAGE, most - len(found))
            page = self.send(call.with_query(limit=size, cursor=cursor))
            found += [value_of(kind, item) for item in page["data"]]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        return found

    def finish(self, call: Call[RAW], kind: type[T], progress: Progress | None = None) -> T:
        """Wait for the job that a call starts, and return its report."""
        job = self.send(call)
        while not over(job, progress):
            job = self.send(job_call(job))
        report: T = value_of(kind, job["report"])
        return report

    def close(self) -> None:
        """Close the connections."""
        if self._owned:
            self._http.close()


class AsyncWire(Sender):
    """The same over one `httpx2.AsyncClient`."""

    def __init__(self, url: str, key: str, *, timeout_s: float, retries: int, http: httpx2.AsyncClient | None) -> None:
        super().__init__(url, key, timeout_s, retries)
        self._http, self._owned = http or httpx2.AsyncClient(), http is None

    async def send(self, call: Call[T]) -> T:
        """Send one call and return its answer."""
        attempt = 0
        while True:
            outcome: httpx2.Response | httpx2.HTTPError
            try:
                outcome = await self._http.request(**self.request(call))
            except httpx2.HTTPError as error:
                outcome = error
            except RuntimeError as error:
                raise self.unreachable(error) from error
            wait_s = self.wait_s(call, attempt, outcome)
            if wait_s is None:
                break
            await asyncio.sleep(wait_s)
            attempt += 1
        if isinstance(outcome, httpx2.HTTPError):
            raise self.unreachable(outcome) from outcome
        return self.result(call, outcome)

    async def do(self, call: Call[RAW]) -> None:
        """Send a call whose answer is not needed."""
        await self.send(call)

    def stream(self, call: Call[RAW], last: int | None) -> AbstractAsyncContextManager[httpx2.Response]:
        """Open the answer of a call that is a stream."""
        return self._http.stream(**self.streamed(call, last))

    async def pages(self, call: Call[RAW], kind: type[T], most: int | None = None) -> list[T]:
        """Return all items of a list, or the first *most*."""
        found: list[T] = []
        cursor = call.query.get("cursor")
        while most is None or len(found) < most:
            size = PAGE if most is None else min(PAGE, most - len(found))
            page = await self.send(call.with_query(limit=size, cursor=cursor))
            found += [value_of(kind, item) for item in page["data"]]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        return found

    async def finish(self, call: Call[RAW], kind: type[T], progress: Progress | None = None) -> T:
        """Wait for the job that a call starts, and return its report."""
        job = await self.send(call)
        while not over(job, progress):
            job = await self.send(job_call(job))
        report: T = value_of(kind, job["report"])
        return report

    async def close(self) -> None:
        """Close the connections."""
        if self._owned:
            await self._http.aclose()


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
