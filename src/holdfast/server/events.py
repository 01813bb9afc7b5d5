"""``/v1/users/{user}/events`` and ``…/audit``: what happened, as a stream to follow and as pages to read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import asdict
from typing import Annotated

from fastapi import Header, Query, Request
from starlette.exceptions import HTTPException
from starlette.responses import StreamingResponse
from starlette.types import Send

from ..errors import BadInput
from ..events import concerns
from ..reports import Event, News
from .caller import NAMED, Asked, Cursor, Limit, Whose
from .gate import Grant
from .routing import OPERATOR, USER, WHOLE_USER, Table
from .shapes import Page
from .tail import Tail

table = Table()
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
    something in between is not on record any more.  A job that went through several states meanwhile is told by the
    last one.
    """

    media_type = "text/event-stream"

    def __init__(self, tail: Tail, grant: Grant, *, conversation: str | None, after: int | None, follow: bool) -> None:
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
                    await self._put(send, self._told(news))
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _put(self, send: Send, text: str) -> None:
        async with asyncio.timeout(SEND_S):
            await send({"type": "http.response.body", "body": text.encode(), "more_body": True})

    def _told(self, news: News | None) -> str:
        if news is None:
            return ": still here\n\n"
        if news.lost:
            return f"id: {news.newest}\nevent: reset\ndata: {{}}\n\n"
        wanted = [event for event in news.events if concerns(event, self._grant.subject, self._conversation)]
        frames = [
            f"id: {event.id}\nevent: {event.kind}\ndata: {json.dumps(asdict(event))}\n\n" for event in latest(wanted)
        ]
        if not wanted or wanted[-1].id != news.events[-1].id:
            frames.append(f"id: {news.events[-1].id}\n\n")  # what does not concern the client need not be read again
        return "".join(frames)


def latest(events: Sequence[Event]) -> list[Event]:
    """*events* without those of a job that the same job followed up."""
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
    dependencies=NAMED,
)
async def events_stream(
    request: Request,
    whose: Whose,
    conversation: Place = None,
    after: After = None,
    follow: Follow = True,
    last_event_id: Last = None,
) -> Stream:
    """What happens to the user, as it happens, in every process; goes on where a connection was lost."""
    known = after
    if last_event_id:
        if not last_event_id.isascii() or not last_event_id.isdecimal() or int(last_event_id) > 2**53:
            raise BadInput("Last-Event-ID is none of ours", hint="send back the id as it came")
        known = int(last_event_id)
    tail: Tail = request.app.state.tail
    if tail.count >= request.app.state.settings.streams:
        raise HTTPException(503, "Too many streams are open", headers={"Retry-After": "5"})
    head = getattr(request.state, "head", False)
    return Stream(tail, request.state.grant, conversation=conversation, after=known, follow=follow and not head)


@table.add("GET", ONE + "/audit", WHOLE_USER, response_model=Page[Event], dependencies=NAMED)
def audit_of_user(whose: Whose, cursor: Cursor = None, limit: Limit = 100) -> Page[Event]:
    """Who changed what and when, newest first; without a word of what was said."""
    return _page(whose.audit(before=_before(cursor), limit=limit + 1), limit)


@table.add("GET", "/v1/audit", OPERATOR, response_model=Page[Event])
def audit_of_org(asked: Asked, cursor: Cursor = None, limit: Limit = 100) -> Page[Event]:
    """What happened to the org as a whole, newest first: its keys, and that somebody was erased; nobody is named."""
    return _page(asked.memory.events.of_org(asked.grant.org, before=_before(cursor), limit=limit + 1), limit)


def _before(cursor: str | None) -> int | None:
    if cursor is None:
        return None
    if not cursor.isascii() or not cursor.isdecimal() or len(cursor) > 17:
        raise BadInput("this cursor is none of ours", hint="send back next_cursor as it came")
    return int(cursor)


def _page(found: list[Event], limit: int) -> Page[Event]:
    more = len(found) > limit
    return Page(data=found[:limit], next_cursor=str(found[limit - 1].id) if more else None)
