"""
Memory and sessions for Google's Agent Development Kit: a tool, `HoldfastMemoryService` and `HoldfastSessionService`.

    agent = LlmAgent(…, tools=[HoldfastMemoryTool(memory)])
    runner = Runner(…, memory_service=HoldfastMemoryService(memory), session_service=HoldfastSessionService(memory))

The user is ADK's ``user_id``, the assistant its ``app_name``, the conversation its session.  ``holdfast:///path/chat.db``
names both services where ADK takes an address.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, unquote

from ..aio import AsyncMemory
from ..errors import BadInput, ConfigError
from ..memory import Memory
from ..scope import Scope
from ..types import Hit, Message
from .common import AdapterMemory, FrameworkState, ItemsOf, StateChange, in_thread, missing_package

try:
    from google.adk.errors.already_exists_error import AlreadyExistsError
    from google.adk.errors.session_not_found_error import SessionNotFoundError
    from google.adk.events.event import Event
    from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
    from google.adk.memory.memory_entry import MemoryEntry
    from google.adk.models.llm_request import LlmRequest
    from google.adk.sessions.base_session_service import (
        BaseSessionService,
        GetSessionConfig,
        ListSessionsResponse,
    )
    from google.adk.sessions.session import Session
    from google.adk.sessions.state import State
    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.tool_context import ToolContext
    from google.genai import types
except ImportError as error:
    raise missing_package("Google ADK", "google-adk", error) from error

__all__ = ["HoldfastMemoryService", "HoldfastMemoryTool", "HoldfastSessionService"]

SCHEME = "holdfast"
EVERYBODY = "shared"
HEAD, EVENT, STATE = "h", "e/", "s"
LAST_EVENT = "e0"


def _opened(memory: Memory | AsyncMemory | None, uri: str | None) -> Memory | AsyncMemory:
    """Return the memory, or open the one that an address of ADK names."""
    if memory is not None:
        return memory
    if uri is None:
        raise ConfigError("there is no memory", hint="pass a Memory, or uri='holdfast:///path/chat.db'")
    scheme, _, place = uri.partition("://")
    if scheme == SCHEME and place.startswith(("postgresql:", "postgres:")):
        return Memory(place.replace(":", "://", 1).replace(":////", "://", 1))
    return Memory(unquote(place) if scheme == SCHEME and place else ":memory:" if scheme == SCHEME else uri)


class _ByApp:
    """The memory of each app: its name is the assistant's."""

    def __init__(self, memory: Memory | AsyncMemory, org: str, space: str, **options: Any) -> None:
        self._memory, self._org, self._space, self._options = memory, org, space, options
        self._found: dict[str, tuple[AdapterMemory, FrameworkState]] = {}

    def of(self, app_name: str) -> tuple[AdapterMemory, FrameworkState]:
        if app_name not in self._found:
            members = AdapterMemory(self._memory, org=self._org, bot=app_name, **self._options)
            self._found[app_name] = (members, members.state(self._space))
        return self._found[app_name]


class HoldfastMemoryService(BaseMemoryService):
    """
    A memory service: sessions are read for facts, and a search finds facts, summaries and messages.

    Args:
        memory: a `Memory` or an `AsyncMemory`.
        uri: instead of it, ``holdfast:///path/chat.db``.
        org: the tenant.
        limit: how many memories a search returns.
    """

    def __init__(
        self,
        memory: Memory | AsyncMemory | None = None,
        *,
        uri: str | None = None,
        org: str = "default",
        limit: int = 10,
        **_: Any,
    ) -> None:
        self._apps = _ByApp(_opened(memory, uri), org, "adk.memory")
        self._limit = limit

    async def add_session_to_memory(self, session: Session) -> None:
        """Store what was said in a session; an event that is stored already is skipped."""
        await self.add_events_to_memory(
            app_name=session.app_name, user_id=session.user_id, events=session.events, session_id=session.id
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store what was said in some events, each once by its id."""
        members, _ = self._apps.of(app_name)
        await in_thread(members.record, session_id or "default", list(map(_keyed, _spoken(events))), user_id)

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Add facts by hand."""
        await in_thread(self._remember, app_name, user_id, [_text(entry.content) for entry in memories])

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """Return what bears on *query*, best first; facts have an id for `delete_memory`."""
        return await in_thread(self._search, app_name, user_id, query)

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Forget a fact with the words it rests on, or everything of the user."""
        await in_thread(self._forget, app_name, user_id, memory_id)

    def _remember(self, app_name: str, user_id: str, texts: Sequence[str]) -> None:
        members, _ = self._apps.of(app_name)
        user = members.memory.user(members.checked_user(user_id), org=members.org, bot=members.bot)
        if user.status().state == "active":
            for text in texts:
                if text.strip():
                    user.remember(text)

    def _search(self, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        members, _ = self._apps.of(app_name)
        if not query.strip():
            return SearchMemoryResponse()
        user = members.memory.user(members.checked_user(user_id), org=members.org, bot=members.bot)
        own = {fact.id for fact in user.facts() if fact.only_in}  # they hold in one conversation, this asks in any
        wanted = self._limit
        while True:
            hits = user.search(query, limit=wanted)
            # The question itself may be stored already, before it is answered.
            kept = [hit for hit in hits if hit.id not in own and (hit.kind != "message" or hit.text != query)]
            if len(kept) >= self._limit or len(hits) < wanted:
                return SearchMemoryResponse(memories=list(map(_entry, kept[: self._limit])))
            wanted *= 4

    def _forget(self, app_name: str, user_id: str, memory_id: str | None) -> None:
        members, _ = self._apps.of(app_name)
        user = members.memory.user(members.checked_user(user_id), org=members.org, bot=members.bot)
        user.erase() if memory_id is None else user.forget(memory_id)


class HoldfastSessionService(BaseSessionService):
    """
    A session service: each session is a conversation of the user, its events are kept as ADK gives them.

    State under ``user:`` is the user's, under ``app:`` of all users of the app.  Erasing the conversation or the user erases
    the session; editing or forgetting one of its messages does, too.

    Args:
        memory: a `Memory` or an `AsyncMemory`.
        uri: instead of it, ``holdfast:///path/chat.db``.
        org: the tenant.
        learn: ``False`` to keep sessions only; otherwise what is said is stored as messages, too, and read for facts.
    """

    def __init__(
        self,
        memory: Memory | AsyncMemory | None = None,
        *,
        uri: str | None = None,
        org: str = "default",
        learn: bool = True,
        **_: Any,
    ) -> None:
        self._apps = _ByApp(_opened(memory, uri), org, "adk.session")
        self._learn = learn

    async def create_session(
        self,
        *,
        app_name: str,
        user_id: str,
        state: dict[str, Any] | None = None,
        session_id: str | None = None,
    ) -> Session:
        """Begin a session."""
        name = session_id.strip() if session_id and session_id.strip() else str(uuid.uuid4())
        return await in_thread(self._create, app_name, user_id, dict(state or {}), name)

    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Session | None:
        """Return a session with its events, or those that *config* asks for."""
        return await in_thread(self._get, app_name, user_id, session_id.strip(), config)

    async def list_sessions(self, *, app_name: str, user_id: str | None = None) -> ListSessionsResponse:
        """Return the sessions of a user without their events, oldest first."""
        if user_id is None:
            raise BadInput("the sessions of all users are not listed together", hint="name the user_id")
        return ListSessionsResponse(sessions=await in_thread(self._list, app_name, user_id))

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Erase a session with all that was learned from it alone."""
        await in_thread(self._delete, app_name, user_id, session_id.strip())

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        """Return the state of a user in all sessions."""
        return await in_thread(self._shared, app_name, user_id)

    async def append_event(self, session: Session, event: Event) -> Event:
        """Store an event, once by its id, and apply its changes to the state."""
        if event.partial:
            return event
        event = await super().append_event(session, event)
        await in_thread(self._append, session, event)
        session.last_update_time = event.timestamp
        return event

    def _scope(self, app_name: str, user_id: str, session_id: str | None) -> tuple[FrameworkState, Scope]:
        _, state = self._apps.of(app_name)
        return state, state.scope(session_id, user_id)

    def _create(self, app_name: str, user_id: str, given: dict[str, Any], session_id: str) -> Session:
        state, scope = self._scope(app_name, user_id, session_id)
        own = self._share(app_name, user_id, given)
        head = {"id": session_id, "state": own, "time": time.time(), "next": 0}
        there = False

        def change(items: ItemsOf) -> StateChange:
            nonlocal there
            there = bool(items(HEAD, HEAD + "\x01"))
            return StateChange({} if there else {HEAD: _dump(head)})

        state.change(scope, change)
        if there:
            raise AlreadyExistsError(f"Session with id {session_id} already exists.")
        found = self._get(app_name, user_id, session_id, None)
        assert found is not None, "it was just stored"
        return found

    def _get(self, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None) -> Session | None:
        state, scope = self._scope(app_name, user_id, session_id)
        rows = state.load(scope)
        head = next((json.loads(row.value) for row in rows if row.name == HEAD), None)
        if head is None:
            return None
        events = [Event.model_validate_json(row.value) for row in rows if row.name.startswith(EVENT)]
        if config and config.after_timestamp is not None:
            events = [event for event in events if event.timestamp >= config.after_timestamp]
        if config and config.num_recent_events is not None:
            events = events[len(events) - min(len(events), config.num_recent_events) :]
        return self._session(app_name, user_id, head, events)

    def _session(self, app_name: str, user_id: str, head: Mapping[str, Any], events: list[Event]) -> Session:
        merged = dict(head["state"])
        merged |= {State.APP_PREFIX + key: value for key, value in self._shared(app_name, EVERYBODY, "app").items()}
        merged |= {State.USER_PREFIX + key: value for key, value in self._shared(app_name, user_id).items()}
        return Session(
            app_name=app_name,
            user_id=user_id,
            id=head["id"],
            state=merged,
            events=events,
            last_update_time=head["time"],
        )

    def _list(self, app_name: str, user_id: str) -> list[Session]:
        _, state = self._apps.of(app_name)
        heads = []
        for scope in state.homes(user_id):
            heads += [json.loads(row.value) for row in state.load(scope, HEAD, HEAD + "\x01") if scope.conversation]
        return [
            self._session(app_name, user_id, head, []) for head in sorted(heads, key=lambda h: (h["time"], h["id"]))
        ]

    def _delete(self, app_name: str, user_id: str, session_id: str) -> None:
        state, scope = self._scope(app_name, user_id, session_id)
        state.remove(scope)
        members, _ = self._apps.of(app_name)
        members.chat(session_id, user_id).clear()

    def _append(self, session: Session, event: Event) -> None:
        members, state = self._apps.of(session.app_name)
        scope = state.scope(session.id, session.user_id)
        delta = dict(event.actions.state_delta) if event.actions and event.actions.state_delta else {}
        text = event.model_dump_json(exclude_none=True, by_alias=True).encode()
        seen = f"i/{quote(event.id, safe='')}"
        found = new = False

        def change(items: ItemsOf) -> StateChange:
            nonlocal found, new
            head = next((json.loads(row.value) for row in items(HEAD, HEAD + "\x01")), None)
            found, new = head is not None, not items(seen, seen + "\x01")
            if head is None or not new:
                return StateChange({})
            own = {
                key: value for key, value in delta.items() if not key.startswith((State.APP_PREFIX, State.USER_PREFIX))
            }
            number = head["next"]
            head |= {"state": head["state"] | own, "time": event.timestamp, "next": number + 1}
            return StateChange({HEAD: _dump(head), f"{EVENT}{number:012}": text, seen: b""})

        state.change(scope, change)
        if not found:
            raise SessionNotFoundError(f"Session {session.id} not found.")
        if new:
            self._share(session.app_name, session.user_id, delta)
            if self._learn:
                members.record(session.id, list(map(_keyed, _spoken([event]))), session.user_id)

    def _share(self, app_name: str, user_id: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Store the part of a state that is the user's or the app's; return the session's own."""
        own = {}
        shared: dict[tuple[str, str], dict[str, Any]] = {}
        for key, value in given.items():
            if key.startswith(State.APP_PREFIX):
                shared.setdefault((EVERYBODY, "app"), {})[key[len(State.APP_PREFIX) :]] = value
            elif key.startswith(State.USER_PREFIX):
                shared.setdefault((user_id, "user"), {})[key[len(State.USER_PREFIX) :]] = value
            elif not key.startswith(State.TEMP_PREFIX):
                own[key] = value
        for (user, kind), values in shared.items():
            state, scope = self._scope(app_name, user, None)
            name = f"{STATE}/{kind}"

            def change(items: ItemsOf, name: str = name, values: dict[str, Any] = values) -> StateChange:
                before: dict[str, Any] = next((json.loads(row.value) for row in items(name, name + "\x01")), {})
                return StateChange({name: _dump(before | values)})

            state.change(scope, change)
        return own

    def _shared(self, app_name: str, user_id: str, kind: str = "user") -> dict[str, Any]:
        state, scope = self._scope(app_name, user_id, None)
        name = f"{STATE}/{kind}"
        return next((dict(json.loads(row.value)) for row in state.load(scope, name, name + "\x01")), {})


class HoldfastMemoryTool(BaseTool):
    """
    Gives each request of an agent what memory knows, in place of ADK's ``preload_memory``; the model never calls it.

    What changes seldom goes at the end of the system instruction, so that providers can cache it; what was recalled for the
    question goes right before the question.  Neither becomes an event of the session.

    Args:
        memory: a `Memory` or an `AsyncMemory`.
        uri: instead of it, ``holdfast:///path/chat.db``.
        org: the tenant.
        budget_tokens: what memory may cost; ``Config.budget_tokens`` when not given.
    """

    def __init__(
        self,
        memory: Memory | AsyncMemory | None = None,
        *,
        uri: str | None = None,
        org: str = "default",
        budget_tokens: int | None = None,
    ) -> None:
        super().__init__(name="holdfast_memory", description="Adds what memory knows to the request.")
        self._apps = _ByApp(_opened(memory, uri), org, "adk.memory", budget_tokens=budget_tokens)

    async def process_llm_request(self, *, tool_context: ToolContext, llm_request: LlmRequest) -> None:
        """Add memory to a request."""
        session = tool_context.session
        members, _ = self._apps.of(session.app_name)
        question = _text(tool_context.user_content)
        blocks = await in_thread(members.blocks, session.id, question, session.user_id)
        if blocks.stable:
            llm_request.append_instructions([blocks.stable])
        if blocks.volatile:
            said = types.Content(role="user", parts=[types.Part(text=blocks.volatile)])
            asked = [n for n, one in enumerate(llm_request.contents) if one.role == "user" and _text(one)]
            llm_request.contents.insert(asked[-1] if asked else len(llm_request.contents), said)


def _dump(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, default=str).encode("utf-8", "surrogatepass")


def _entry(hit: Hit) -> MemoryEntry:
    return MemoryEntry(
        id=hit.id if hit.kind == "fact" else None,
        author="memory" if hit.kind != "message" else None,
        content=types.Content(role="user", parts=[types.Part(text=hit.text)]),
        timestamp=hit.at.isoformat() if hit.at else None,
        custom_metadata={"kind": hit.kind, "relevance": hit.relevance},
    )


def _text(content: types.Content | None) -> str:
    parts = content.parts if content is not None and content.parts else []
    return "\n".join(part.text for part in parts if part.text and not part.thought)


def _spoken(events: Sequence[Event]) -> list[tuple[str, Message]]:
    """Return ``(id, message)`` for each event in which something was said."""
    said = []
    for event in events:
        text = "" if event.partial else _text(event.content)
        if text.strip():
            role = "user" if event.author == "user" else "assistant"
            said.append((event.id, Message(role, text)))
    return said


def _keyed(one: tuple[str, Message]) -> tuple[str, Message]:
    return f"adk {one[0]}", one[1]
