"""
Follow what happens to many users at once: one look a tenth of a second for the whole process, however many listen.

Events are rows, so what another process does is seen as well.  A listener knows the number that it has told last and
goes on from there, whoever gave it; what it told once it never tells again, and it leaves nothing out without saying so.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from starlette.concurrency import run_in_threadpool

from ..errors import HoldfastError, StoreClosed
from ..memory import Memory
from ..reports import Event, News, UserKey
from ..types import ApiKey

log = logging.getLogger("holdfast")

LOOK_S = 0.1
HEARTBEAT_S = 15.0
MOST_AT_ONCE = 500
RECENT = 512  # events of one user that listeners find without asking the store


class Group:
    """Those who listen to one user, and the last things that happened there."""

    def __init__(self) -> None:
        self.head: int | None = None
        self.recent: deque[Event] = deque(maxlen=RECENT)
        self.listeners: set[Listener] = set()
        self._since = 0  # what followed this number stands in `recent`, all of it

    def take(self, news: News) -> None:
        """Hear of something."""
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
        """What is known to have followed *number*; nothing when that is not known here."""
        if number < self._since:
            return []
        return [event for event in self.recent if event.id > number]


class Listener:
    """One stream: who listens, and where it stands."""

    def __init__(self, tail: Tail, user: UserKey, key: ApiKey | None) -> None:
        self.woken = asyncio.Event()
        self.key = key
        self._key_seen = time.monotonic()
        self._tail = tail
        self._user = user

    async def start(self, after: int | None) -> int:
        """The number to go on from: the one that is given, or that of the newest event."""
        newest = await self._head(self._user)
        if self.key is not None:
            await self._head(org_of(self.key))
            # A revocation from here on is an event that the looks find; this finds one before.
            await self._look_at_key()
        return newest if after is None else after

    async def _head(self, user: UserKey) -> int:
        """The number of the newest event there; looks begin with it unless they know one already."""
        newest = (await self._tail.read(user, 0, limit=1)).newest
        group = self._tail.group(user)
        if group.head is None:
            group.head = newest
        return newest

    async def parts(self, after: int, *, follow: bool) -> AsyncGenerator[News | None]:
        """
        What happens after a number, in parts; ``None`` now and then, when nothing did.

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
        """Have the stream end when its key opens nothing any more; now and then, beside the news of its org."""
        self._key_seen = time.monotonic()
        if self.key is not None and not await run_in_threadpool(self._tail.memory.access.stands, self.key.id):
            self._tail.ended.add(self.key.id)

    def _may_go_on(self) -> bool:
        return not self._tail.closed and (self.key is None or self.key.id not in self._tail.ended)

    def _patience(self) -> float:
        """How long to wait for something to happen: until a sign of life is due, or the key expires."""
        if self.key is None or self.key.expires_at is None:
            return self._tail.heartbeat_s
        left = (self.key.expires_at - datetime.now(UTC)).total_seconds()
        return left + 0.01 if 0 < left < self._tail.heartbeat_s else self._tail.heartbeat_s


def org_of(key: ApiKey) -> UserKey:
    """Where the events of a key stand: those of its org as a whole."""
    return key.org, "", ""


class Tail:
    """All listeners of one process; ``count`` is how many there are."""

    def __init__(self, memory: Memory, *, look_s: float = LOOK_S, heartbeat_s: float = HEARTBEAT_S) -> None:
        self.memory = memory
        self.heartbeat_s = heartbeat_s
        self.closed = False
        self.count = 0
        self.ended: set[str] = set()
        self._look_s = look_s
        self._groups: dict[UserKey, Group] = {}
        self._task: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def listening(self, user: UserKey, key: ApiKey | None) -> AsyncIterator[Listener]:
        """A listener to one user, and to whether its key is revoked, as long as the context lasts."""
        listener = Listener(self, user, key)
        joined = [user] if key is None else [user, org_of(key)]
        for each in joined:
            self._groups.setdefault(each, Group()).listeners.add(listener)
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

    def group(self, user: UserKey) -> Group:
        """Those who listen to a user; there is at least one."""
        return self._groups[user]

    async def read(self, user: UserKey, after: int, *, limit: int = MOST_AT_ONCE) -> News:
        """What the store says happened after a number."""
        ask: Callable[..., dict[UserKey, News]] = self.memory.events.news
        found = await run_in_threadpool(ask, {user: after}, limit=limit)
        return found.get(user, News(after))

    def close(self) -> None:
        """End every stream at once: the server stops."""
        self.closed = True
        for group in self._groups.values():
            for listener in group.listeners:
                listener.woken.set()

    async def _watch(self) -> None:
        """Look for changes as long as anybody listens."""
        seen: int | None = None
        while self._groups and not self.closed:
            try:
                now = await run_in_threadpool(self.memory.events.changes)
                if now != seen or any(group.head is None for group in self._groups.values()):
                    seen = now if await self._look() else None
            except StoreClosed:
                self.close()
            except HoldfastError as error:
                log.warning("events wait for the store: %s", error)
            await asyncio.sleep(self._look_s)

    async def _look(self) -> bool:
        """Take what is new to those who listen; whether that was all there is."""
        heads = {user: group.head or 0 for user, group in self._groups.items()}
        fresh = {user for user, group in self._groups.items() if group.head is None}
        found = await run_in_threadpool(self.memory.events.news, heads, limit=MOST_AT_ONCE)
        whole = True
        for user in fresh:  # nobody has told a number here yet: what happened before they came is not news
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
