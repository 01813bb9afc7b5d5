"""The events of a user as a stream, and the audit log as pages."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated

from fastapi import Header, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import StreamingResponse
from starlette.types import Send

from ..errors import BadInput, HoldfastError, StoreClosed
from ..memory import Memory
from ..reports import Event, News, UserKey
from ..types import ApiKey
from ..user import User
from .gate import Grant
from .routing import OPERATOR, USER, WHOLE_USER, RouteTable
from .schemas import CallerDep, Cursor, Limit, Page, UserDep

table = RouteTable()
ONE = "/v1/users/{user:name}"
RETRY_MS = 2_000
SEND_S = 30.0  # a client that takes nothing for so long is let go; it can come back with its number
After = Annotated[
    int | None, Query(ge=0, le=2**53, description="The last number you know; else what comes from now on.")
]
Last = Annotated[str | None, Header(alias="Last-Event-ID", max_length=40, description="The same, as browsers send it.")]
Follow = Annotated[bool, Query(description="`false`: end after what has happened so far.")]
Place = Annotated[str | None, Query(max_length=200, description="Only this conversation, and the user as a whole.")]


class Stream(StreamingResponse):
    """
    Server-sent events of one user.

    ``id`` is the number to go on from, ``event`` the kind, ``data`` the `Event` as JSON.  ``event: reset`` says that
    something in between is not on record any more.  Of a job that went through several states meanwhile only the
    last one comes.
    """

    media_type = "text/event-stream"

    def __init__(
        self, tail: EventFeed, grant: Grant, *, conversation: str | None, after: int | None, follow: bool
    ) -> None:
        super().__init__((), headers={"X-Accel-Buffering": "no"})
        self._tail = tail
        self._grant = grant
        self._conversation = conversation
        self._after = after
        self._follow = follow

    async def stream_response(self, send: Send) -> None:
        """Send parts as things happen, until the client, the key or the server ends it."""
        grant = self._grant
        user = (grant.org, grant.user or "", grant.bot)
        async with self._tail.listening(user, grant.key) as listener:
            start = await listener.start(self._after)
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            await self._put(send, f"retry: {RETRY_MS}\nid: {start}\n\n")
            async with aclosing(listener.parts(start, follow=self._follow)) as parts:
                async for news in parts:
                    await self._put(send, self._format(news))
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _put(self, send: Send, text: str) -> None:
        async with asyncio.timeout(SEND_S):
            await send({"type": "http.response.body", "body": text.encode(), "more_body": True})

    def _format(self, news: News | None) -> str:
        if news is None:
            return ": still here\n\n"
        if news.lost:
            return f"id: {news.newest}\nevent: reset\ndata: {{}}\n\n"
        wanted = [event for event in news.events if event.concerns(self._grant.subject, self._conversation)]
        frames = [
            f"id: {event.id}\nevent: {event.kind}\ndata: {json.dumps(asdict(event))}\n\n" for event in latest(wanted)
        ]
        if not wanted or wanted[-1].id != news.events[-1].id:
            frames.append(f"id: {news.events[-1].id}\n\n")  # what does not concern the client need not be read again
        return "".join(frames)


def latest(events: Sequence[Event]) -> list[Event]:
    """Drop events of a job that a later one of the same job follows."""
    last = {event.ref: event.id for event in events if event.kind.startswith("job.")}
    return [event for event in events if last.get(event.ref, event.id) == event.id or not event.kind.startswith("job.")]


@table.add(
    "GET",
    ONE + "/events",
    USER,
    cookie=True,
    response_class=StreamingResponse,
    responses={
        200: {"description": "Server-sent events", "content": {"text/event-stream": {"schema": {"type": "string"}}}}
    },
)
async def events_stream(
    request: Request,
    user: UserDep,
    conversation: Place = None,
    after: After = None,
    follow: Follow = True,
    last_event_id: Last = None,
) -> Stream:
    """Stream what happens to the user, in every process; continues where a connection was lost."""
    known = after
    if last_event_id:
        if not last_event_id.isascii() or not last_event_id.isdecimal() or int(last_event_id) > 2**53:
            raise BadInput("Last-Event-ID is none of ours", hint="send back the id as it came")
        known = int(last_event_id)
    tail: EventFeed = request.app.state.tail
    if tail.count >= request.app.state.settings.streams:
        raise HTTPException(503, "Too many streams are open", headers={"Retry-After": "5"})
    head = getattr(request.state, "head", False)
    return Stream(tail, request.state.grant, conversation=conversation, after=known, follow=follow and not head)


@table.add("GET", ONE + "/audit", WHOLE_USER, door=User.audit)
def audit_of_user(user: UserDep, cursor: Cursor = None, limit: Limit = 100) -> Page[Event]:
    """List who changed what and when, newest first, without any text of messages."""
    return _page(user.audit(before=_before(cursor), limit=limit + 1), limit)


@table.add("GET", "/v1/audit", OPERATOR)
def audit_of_org(caller: CallerDep, cursor: Cursor = None, limit: Limit = 100) -> Page[Event]:
    """List what happened to the org, newest first: its keys and erasures, without names of users."""
    return _page(caller.memory.admin.events.of_org(caller.grant.org, before=_before(cursor), limit=limit + 1), limit)


def _before(cursor: str | None) -> int | None:
    if cursor is None:
        return None
    if not cursor.isascii() or not cursor.isdecimal() or len(cursor) > 17:
        raise BadInput("this cursor is none of ours", hint="send back next_cursor as it came")
    return int(cursor)


def _page(found: list[Event], limit: int) -> Page[Event]:
    more = len(found) > limit
    return Page(data=found[:limit], next_cursor=str(found[limit - 1].id) if more else None)


log = logging.getLogger("holdfast")

LOOK_S = 0.1
HEARTBEAT_S = 15.0
MOST_AT_ONCE = 500
RECENT = 512  # events of one user that listeners find without asking the store


class UserFeed:
    """The listeners of one user, and the user's latest events."""

    def __init__(self) -> None:
        self.head: int | None = None
        self.recent: deque[Event] = deque(maxlen=RECENT)
        self.listeners: set[Listener] = set()
        self._since = 0  # `recent` holds every event after this number

    def take(self, news: News) -> None:
        """Add news and wake the listeners."""
        if news.lost or not news.events:
            self.head = news.newest
            self.recent.clear()
        else:
            self._since = self._since if self.recent else self.head or 0
            self.recent.extend(news.events)
            if len(self.recent) == RECENT:
                self._since = self.recent[0].id - 1
            self.head = news.events[-1].id
        for listener in self.listeners:
            listener.woken.set()

    def after(self, number: int) -> list[Event]:
        """Return the known events after *number*; none when they may be incomplete."""
        if number < self._since:
            return []
        return [event for event in self.recent if event.id > number]


class Listener:
    """One open stream and its position."""

    def __init__(self, tail: EventFeed, user: UserKey, key: ApiKey | None) -> None:
        self.woken = asyncio.Event()
        self.key = key
        self._key_seen = time.monotonic()
        self._tail = tail
        self._user = user

    async def start(self, after: int | None) -> int:
        """Return the number to continue from: the given one, or that of the newest event."""
        newest = await self._head(self._user)
        if self.key is not None:
            await self._head(org_of(self.key))
            # A revocation from here on is an event that the looks find; this finds one before.
            await self._look_at_key()
        return newest if after is None else after

    async def _head(self, user: UserKey) -> int:
        """Return the number of the newest event; polling starts from it unless it has a position."""
        newest = (await self._tail.read(user, 0, limit=1)).newest
        group = self._tail.group(user)
        if group.head is None:
            group.head = newest
        return newest

    async def parts(self, after: int, *, follow: bool) -> AsyncGenerator[News | None]:
        """
        Yield what happens after a number, in parts; ``None`` as a heartbeat.

        Ends with the key, with the server, and where *follow* is not wanted with the newest event.
        """
        while self._may_go_on():
            self.woken.clear()
            group = self._tail.group(self._user)
            found = group.after(after)
            if found or (follow and group.head == after):  # what is not known here, the next look will bring
                news = News(after, tuple(found))
            else:
                news = await self._tail.read(self._user, after)
            if news.lost or news.events:
                yield news
                after = news.newest if news.lost else news.events[-1].id
                if time.monotonic() > self._key_seen + self._tail.heartbeat_s:
                    await self._look_at_key()
                continue
            if not follow:
                return
            try:
                async with asyncio.timeout(self._patience()):
                    await self.woken.wait()
            except TimeoutError:
                await self._look_at_key()
                if self._may_go_on():
                    yield None

    async def _look_at_key(self) -> None:
        """End the stream if its key is not valid any more."""
        self._key_seen = time.monotonic()
        if self.key is not None and not await run_in_threadpool(self._tail.memory.admin.keys.is_valid, self.key.id):
            self._tail.ended.add(self.key.id)

    def _may_go_on(self) -> bool:
        return not self._tail.closed and (self.key is None or self.key.id not in self._tail.ended)

    def _patience(self) -> float:
        """Return how long to wait for news: until a heartbeat is due, or the key expires."""
        if self.key is None or self.key.expires_at is None:
            return self._tail.heartbeat_s
        left = (self.key.expires_at - datetime.now(UTC)).total_seconds()
        return left + 0.01 if 0 < left < self._tail.heartbeat_s else self._tail.heartbeat_s


def org_of(key: ApiKey) -> UserKey:
    """Return the feed with the events of a key: that of its org."""
    return key.org, "", ""


class EventFeed:
    """All listeners of one process; ``count`` is how many there are."""

    def __init__(self, memory: Memory, *, look_s: float = LOOK_S, heartbeat_s: float = HEARTBEAT_S) -> None:
        self.memory = memory
        self.heartbeat_s = heartbeat_s
        self.closed = False
        self.count = 0
        self.ended: set[str] = set()
        self._look_s = look_s
        self._groups: dict[UserKey, UserFeed] = {}
        self._task: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def listening(self, user: UserKey, key: ApiKey | None) -> AsyncIterator[Listener]:
        """Open a listener to one user, and to the revocation of its key."""
        listener = Listener(self, user, key)
        joined = [user] if key is None else [user, org_of(key)]
        for each in joined:
            self._groups.setdefault(each, UserFeed()).listeners.add(listener)
        self.count += 1
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._watch())
        try:
            yield listener
        finally:
            self.count -= 1
            for each in joined:
                group = self._groups[each]
                group.listeners.discard(listener)
                if not group.listeners:
                    del self._groups[each]

    def group(self, user: UserKey) -> UserFeed:
        """Return the feed of a user, which has at least one listener."""
        return self._groups[user]

    async def read(self, user: UserKey, after: int, *, limit: int = MOST_AT_ONCE) -> News:
        """Read what happened after a number from the store."""
        ask: Callable[..., dict[UserKey, News]] = self.memory.admin.events.news
        found = await run_in_threadpool(ask, {user: after}, limit=limit)
        return found.get(user, News(after))

    def close(self) -> None:
        """End every stream, because the server stops."""
        self.closed = True
        for group in self._groups.values():
            for listener in group.listeners:
                listener.woken.set()

    async def _watch(self) -> None:
        """Poll for changes while there are listeners."""
        seen: int | None = None
        while self._groups and not self.closed:
            try:
                now = await run_in_threadpool(self.memory.admin.events.changes)
                if now != seen or any(group.head is None for group in self._groups.values()):
                    seen = now if await self._look() else None
            except StoreClosed:
                self.close()
            except HoldfastError as error:
                log.warning("events wait for the store: %s", error)
            await asyncio.sleep(self._look_s)

    async def _look(self) -> bool:
        """Deliver new events to their listeners; return whether nothing is left."""
        heads = {user: group.head or 0 for user, group in self._groups.items()}
        fresh = {user for user, group in self._groups.items() if group.head is None}
        found = await run_in_threadpool(self.memory.admin.events.news, heads, limit=MOST_AT_ONCE)
        whole = True
        for user in fresh:  # no number is known here yet: what happened before they came is not news
            if user in self._groups and self._groups[user].head is None:
                newest = found.pop(user, News(0)).newest
                self._groups[user].head = newest
        for user, news in found.items():
            if user in fresh or user not in self._groups:
                continue
            self._groups[user].take(news)
            whole = whole and (news.lost or self._groups[user].head == news.newest)
            if user[1:] == ("", ""):
                self._end({event.ref for event in news.events if event.kind == "key.revoked"})
        return whole and not fresh

    def _end(self, keys: set[str]) -> None:
        listeners = {listener for group in self._groups.values() for listener in group.listeners}
        held = {listener.key.id for listener in listeners if listener.key is not None}
        self.ended = (self.ended | keys) & held
