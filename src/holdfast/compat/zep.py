"""
The client of Zep 4 over a `Memory`: ``from holdfast.compat.zep import Zep, AsyncZep``.

A user of Zep is a user, a thread a conversation, an episode a message, and an edge of the user's graph a fact.  An id
says whose it is, so no call looks through several users.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from .. import memory as doors
from ..conversation import Conversation
from ..errors import BadInput, NotFound
from ..integrations.common import AdapterMemory, FrameworkState, StateChange, in_thread
from ..scope import checked_name
from ..text import dataclass
from ..text.validate import checked_count
from ..types import Fact, Hit, Message
from ..user import User
from . import decode, encode

SPACE, PROFILE = "zep", "user"
GRAPH = "zep-graph"  # the conversation of what is added to a graph and belongs to no thread
DEFAULT_STORE = "holdfast.db"
CHARS_PER_TOKEN = 4
ROLES = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "system": "system",
    "tool": "tool",
}
KEPT = ("email", "first_name", "last_name", "metadata", "time_zone")
Row = dict[str, Any]


class ZepShapes:
    """The calls of Zep's API over a memory, with answers as mappings in the shape of its version 4."""

    def __init__(self, memory: doors.Memory, *, org: str = "default", bot: str = "default") -> None:
        self.memory = memory
        self._members = AdapterMemory(memory, org=org, bot=bot)
        self._state = FrameworkState(self._members, SPACE)

    # users

    def create_user(self, given: Row) -> Row:
        """Note who a user is; one that is there stays, with what is new."""
        user_id = given.get("user_id")
        name = secrets.token_hex(8) if user_id is None else checked_name("user_id", user_id)
        return self.update_user(encode(name), given)

    def update_user(self, user_uuid: str, given: Row) -> Row:
        """Note who a user is."""
        name, scope = self._owner(user_uuid), self._state.scope(None, self._owner(user_uuid))
        now = self.memory._clock().isoformat()
        held = {"created_at": now, **self._profile(name)}
        held |= {key: given[key] for key in KEPT if given.get(key) is not None}
        try:
            self._state.save(scope, StateChange({PROFILE: json.dumps(held).encode()}))
        except (TypeError, ValueError):
            raise BadInput("what is noted of a user must be what JSON can hold") from None
        return self._user_row(name)

    def get_user(self, user_uuid: str) -> Row:
        """Return a user that something is held about."""
        name = self._owner(user_uuid)
        if not self._profile(name) and not self._user(name).overview(limit=1):
            raise NotFound("there is no such user", hint="create one, or add messages first")
        return self._user_row(name)

    def list_users(self, page_size: int = 50, cursor: str | None = None) -> Row:
        """Return one page of the users."""
        org, bot = self._members.org, self._members.bot
        after, rows = (org, cursor, bot) if cursor else None, list[Row]()
        while page := self.memory.admin.users(limit=1_000, after=after):
            for key in page:
                if (key[0], key[2]) != (org, bot):
                    continue
                if len(rows) == page_size:
                    last = decode(rows[-1]["uuid"], 1) or ("",)
                    return {"items": rows, "next_cursor": last[0], "total_size": None}
                rows.append(self._user_row(key[1]))
            after = page[-1]
        return {"items": rows, "next_cursor": None, "total_size": None}

    def delete_user(self, user_uuid: str) -> Row:
        """Erase everything that is held of a user."""
        self._user(self._owner(user_uuid)).erase()
        return {"task": None}

    def user_of(self, given: Row) -> Row:
        """Return the user with the id that the program gave."""
        if not given.get("user_id"):
            raise NotFound("there is no such user", hint="name it by user_id; ids of threads say whose they are")
        return self.get_user(encode(checked_name("user_id", given["user_id"])))

    def _profile(self, name: str) -> Row:
        held = self._state.load_named(self._state.scope(None, name), [PROFILE])
        found: Row = json.loads(held.get(PROFILE, b"{}"))
        return found

    def _user_row(self, name: str) -> Row:
        held, own = self._profile(name), encode(name)
        row = {"uuid": own, "user_id": name, "graph_uuid": own, "disable_default_ontology": None}
        return row | {key: held.get(key) for key in (*KEPT, "created_at")}

    # threads

    def create_thread(self, given: Row) -> Row:
        """Begin a thread of a user; nothing is stored before its first message."""
        return self.get_thread(encode(self._owner(given.get("user_uuid")), secrets.token_hex(8)))

    def get_thread(self, thread_uuid: str) -> Row:
        """Return a thread."""
        chat, name = self._chat(thread_uuid), self._owner(thread_uuid)
        return self._thread_row(name, chat.id, chat.state())

    def list_threads(self, user_uuid: str | None, page_size: int = 50, cursor: str | None = None) -> Row:
        """Return one page of the threads of a user, the newest first."""
        name = self._owner(user_uuid)
        states = [state for state in self._user(name).overview() if state.conversation != GRAPH]
        return _page([self._thread_row(name, state.conversation, state) for state in states], page_size, cursor)

    def delete_thread(self, thread_uuid: str) -> Row:
        """Erase a thread and what rested only on it."""
        self._chat(thread_uuid).clear()
        return {"task": None}

    def add_messages(self, thread_uuid: str, given: Row, idempotency_key: str | None = None) -> Row:
        """Store messages; the same key stores the same messages once."""
        chat, messages = self._chat(thread_uuid), _messages(given.get("messages"))
        receipt = chat.append(messages, idempotency_key=idempotency_key)
        stored = chat.load(start_seq=receipt.seqs[0], limit=len(receipt.seqs)) if receipt.seqs else []
        context = self.thread_context(thread_uuid)["context"] if given.get("return_context") else None
        return {"context": context, "messages": [_message_row(thread_uuid, one) for one in stored], "task": None}

    def list_messages(
        self, thread_uuid: str, page_size: int = 50, cursor: str | None = None, newest: bool = False
    ) -> Row:
        """Return one page of the messages of a thread, the oldest first."""
        rows = [_message_row(thread_uuid, one) for one in self._chat(thread_uuid).load()]
        return _page(rows[::-1] if newest else rows, page_size, cursor)

    def thread_context(self, thread_uuid: str) -> Row:
        """Return what to know for the next reply: what is known, and what bears on the last message of the user."""
        chat = self._chat(thread_uuid)
        asked = [one.content for one in chat.load(last=10) if one.role == "user"]
        return {"context": self._context(self._owner(thread_uuid), chat.id, asked[-1] if asked else None)}

    def thread_summary(self, thread_uuid: str) -> Row:
        """Return the summaries of a thread as one text."""
        found = [one for one in self._chat(thread_uuid).summaries() if one.parent is None]
        last = found[-1].created_at.isoformat() if found else None
        row = {"uuid": thread_uuid, "thread_uuid": thread_uuid, "graph_uuid": encode(self._owner(thread_uuid))}
        more = dict.fromkeys(("relevance", "score", "last_summarized_episode_valid_at"))
        return (
            row
            | more
            | {"summary": "\n\n".join(one.text for one in found), "created_at": last, "last_summarized_at": last}
        )

    def _thread_row(self, name: str, conversation: str, state: Any) -> Row:
        at = () if state is None else (state.created_at, state.last_at)
        created, updated = [None if one is None else one.isoformat() for one in at] or (None, None)
        own = encode(name)
        row = {"uuid": encode(name, conversation), "thread_id": conversation, "user_uuid": own, "graph_uuid": own}
        return row | {"created_at": created, "updated_at": updated}

    # the graph of a user

    def graph(self, graph_uuid: str) -> Row:
        """Return the graph of a user: what is known of them."""
        name, own = self._owner(graph_uuid), encode(self._owner(graph_uuid))
        more = dict.fromkeys(("created_at", "updated_at", "description", "time_zone"))
        return {"uuid": own, "user_uuid": own, "graph_id": name, "name": name, "type": "user"} | more

    def graph_of(self, given: Row) -> Row:
        """Return the graph of the user that the program names."""
        return self.graph(str(self.user_of(given)["uuid"]))

    def graph_context(self, graph_uuid: str, given: Row) -> Row:
        """Return what to know for a question, as a text."""
        chars = given.get("max_characters")
        budget = None if chars is None else max(1, checked_count("max_characters", chars) // CHARS_PER_TOKEN)
        text = self._context(self._owner(graph_uuid), GRAPH, given.get("query"), budget)
        return {"context": text, "results": None, "truncated": False}

    def _context(self, name: str, conversation: str, question: Any, budget_tokens: int | None = None) -> str:
        members = AdapterMemory(self.memory, org=self._members.org, bot=self._members.bot, budget_tokens=budget_tokens)
        if question is not None and not isinstance(question, str):
            raise BadInput("the query must be text")
        found = members.blocks(conversation, question, name)
        return "\n\n".join(text for text in (found.stable, found.volatile) if text)

    def search(self, graph_uuid: str, kind: str, given: Row, page_size: int = 10, cursor: str | None = None) -> Row:
        """Return one page of the edges, episodes or thread summaries that answer a query, best first."""
        name = self._owner(graph_uuid)
        kinds: Any = {"edges": ("fact",), "episodes": ("message",), "thread-summaries": ("summary",)}[kind]
        most = _offset(cursor) + checked_count("page_size", page_size) + 1
        hits = self._user(name).search(given.get("query") or "", kinds=kinds, limit=most)
        make: Callable[[str, Hit], Row | None] = {"edges": self._edge_of_hit, "episodes": self._episode_of_hit}.get(
            kind, self._summary_of_hit
        )
        return _page([row for hit in hits if (row := make(name, hit)) is not None], page_size, cursor)

    def edges(self, graph_uuid: str, page_size: int = 50, cursor: str | None = None) -> Row:
        """Return one page of what is known of a user."""
        name = self._owner(graph_uuid)
        return _page([_edge_row(name, fact) for fact in self._user(name).facts()], page_size, cursor)

    def edge(self, graph_uuid: str, edge_uuid: str) -> Row:
        """Return one fact."""
        name, fact_id = self._fact_of(graph_uuid, edge_uuid)
        return _edge_row(name, self._user(name).fact(fact_id))

    def delete_edge(self, graph_uuid: str, edge_uuid: str) -> Row:
        """Erase a fact with its words."""
        name, fact_id = self._fact_of(graph_uuid, edge_uuid)
        self._user(name).forget(fact_id)
        return {"task": None}

    def add_episode(self, graph_uuid: str, given: Row, idempotency_key: str | None = None) -> Row:
        """Store a text of a user that belongs to no thread."""
        name, at = self._owner(graph_uuid), given.get("reference_time")
        message = {
            "role": "user",
            "content": given.get("data"),
            "reference_time": at,
            "metadata": given.get("metadata"),
        }
        thread = encode(name, GRAPH)
        stored = self.add_messages(thread, {"messages": [message]}, idempotency_key)["messages"]
        return {"episode": {**_episode(name), **stored[0], "source": "text"} if stored else None, "task": None}

    def episodes(self, graph_uuid: str, page_size: int = 50, cursor: str | None = None) -> Row:
        """Return one page of the messages of a user, conversation by conversation."""
        name, rows = self._owner(graph_uuid), list[Row]()
        for conversation in self._user(name).conversations():
            thread = encode(name, conversation)
            rows += [{**_episode(name), **_message_row(thread, one)} for one in self._chat(thread).load()]
        return _page(rows, page_size, cursor)

    def _edge_of_hit(self, name: str, hit: Hit) -> Row | None:
        try:
            fact = self._user(name).fact(hit.id)
        except NotFound:  # erased meanwhile
            return None
        return {**_edge_row(name, fact), "score": round(hit.score, 4), "relevance": round(hit.relevance, 4)}

    def _episode_of_hit(self, name: str, hit: Hit) -> Row | None:
        thread = encode(name, hit.conversation)
        found = self._chat(thread).load(start_seq=hit.seq, limit=1)
        if not found:
            return None
        scores = {"score": round(hit.score, 4), "relevance": round(hit.relevance, 4)}
        return {**_episode(name), **_message_row(thread, found[0]), **scores}

    def _summary_of_hit(self, name: str, hit: Hit) -> Row | None:
        thread = encode(name, hit.conversation)
        row = {"uuid": hit.id, "thread_uuid": thread, "graph_uuid": encode(name), "summary": hit.text}
        scores = {"score": round(hit.score, 4), "relevance": round(hit.relevance, 4)}
        at = None if hit.at is None else hit.at.isoformat()
        return row | scores | {"created_at": at, "last_summarized_at": at, "last_summarized_episode_valid_at": None}

    def _user(self, name: str) -> User:
        return self.memory.user(name, org=self._members.org, bot=self._members.bot)

    def _owner(self, given: object) -> str:
        """Return the user of an id of a user, a graph, or anything of theirs."""
        found = decode(str(given).split(".")[0], 1) if given else None
        if found is None:
            raise NotFound(f"there is nothing of the id {str(given)[:200]!r}", hint="ids come from create and lookup")
        return checked_name("user", found[0])

    def _chat(self, thread_uuid: str) -> Conversation:
        found = decode(thread_uuid, 2)
        if found is None:
            raise NotFound(
                f"there is no thread {str(thread_uuid)[:200]!r}", hint="ids of threads come from thread.create"
            )
        return self._members.chat(found[1], found[0])

    def _fact_of(self, graph_uuid: str, edge_uuid: str) -> tuple[str, str]:
        found = decode(edge_uuid, 1, tail=True)
        if found is None or found[0] != self._owner(graph_uuid):
            raise NotFound("there is no such edge", hint="search_edges returns the ids")
        return found[0], found[1]


def _messages(given: Any) -> list[Message]:
    if not isinstance(given, list | tuple) or not given:
        raise BadInput("messages must be a list of messages")
    found = []
    for each in given:
        one = _plain(each)
        role, content, name = one.get("role"), one.get("content"), one.get("name")
        if role not in ROLES or not isinstance(content, str):
            raise BadInput("a message needs a role and a content", hint=f"roles are {', '.join(ROLES)}")
        metadata = one.get("metadata")
        if metadata is not None and not isinstance(metadata, Mapping):
            raise BadInput("metadata must be a mapping")
        meta = {SPACE: dict(metadata)} if metadata else {}
        found.append(
            Message(ROLES[role], content, name=name or None, at=_time_of(one.get("reference_time")), meta=meta)
        )
    return found


def _plain(given: Any) -> Row:
    """Return a message that is a mapping, or an object of Zep's client."""
    if isinstance(given, Mapping):
        return dict(given)
    names = ("role", "content", "name", "metadata", "reference_time", "created_at")
    found = {name: getattr(given, name, None) for name in names}
    return found | {"reference_time": found["reference_time"] or found["created_at"]}


def _time_of(given: Any) -> datetime | None:
    if given is None or given == "":
        return None
    try:
        found = datetime.fromisoformat(str(given))
    except ValueError:
        raise BadInput("a time must be an ISO 8601 text") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _message_row(thread_uuid: str, message: Message) -> Row:
    at = None if message.at is None else message.at.isoformat()
    row = {
        "uuid": f"{thread_uuid}.{message.seq}",
        "thread_uuid": thread_uuid,
        "role": message.role,
        "name": message.name,
    }
    own = {"content": message.content, "metadata": message.meta.get(SPACE), "processed": True}
    return row | own | {"created_at": at, "reference_time": at}


def _episode(name: str) -> Row:
    """Return the fields that an episode has and a message has not."""
    own = encode(name)
    empty = ("document_id", "relevance", "role_name", "score", "source_description", "content_policy")
    return dict.fromkeys(empty) | {"graph_uuid": own, "user_uuid": own, "source": "message"}


def _edge_row(name: str, fact: Fact) -> Row:
    own = encode(name)
    said = [encode(name, one.conversation, tail=str(one.seq)) for one in fact.evidence]
    ended = None if fact.valid_to is None else fact.valid_to.isoformat()
    empty = ("hyperedge_uuid", "relevance", "score", "source_node_labels", "target_node_labels", "target_node_uuid")
    return dict.fromkeys(empty) | {
        "uuid": encode(name, tail=fact.id),
        "fact": fact.text,
        "name": f"{fact.category}_{fact.key}".upper().replace(" ", "_"),
        "attributes": {"category": fact.category, "key": fact.key, "value": fact.value},
        "scope": "entity",
        "created_at": fact.recorded_at.isoformat(),
        "valid_at": fact.valid_from.isoformat(),
        "invalid_at": ended,
        "expired_at": ended,
        "episode_uuids": list(dict.fromkeys(said)),
        "graph_uuid": own,
        "user_uuid": own,
        "source_node_uuid": own,
        "source_node_name": name if fact.subject == "self" else fact.subject,
        "target_node_name": fact.value,
    }


def _offset(cursor: str | None) -> int:
    if not cursor:
        return 0
    if not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 16):
        raise BadInput("this cursor is none", hint="pass the next_cursor of the page before")
    return int(cursor)


def _page(rows: list[Row], page_size: int, cursor: str | None) -> Row:
    start = _offset(cursor)
    end = start + checked_count("page_size", page_size)
    return {"items": rows[start:end], "next_cursor": str(end) if end < len(rows) else None, "total_size": len(rows)}


# The client in this process: answers as objects, as Zep's client returns them.


class Record:
    """An answer with its fields as attributes; ``uuid`` is ``uuid_``, as Zep's client has it."""

    def __init__(self, row: Row) -> None:
        for key, value in row.items():
            setattr(self, "uuid_" if key == "uuid" else key, _as_record(value) if key in _INNER else value)

    def __repr__(self) -> str:
        return f"Record({self.__dict__!r})"

    def model_dump(self) -> Row:
        """Return the fields as a mapping."""
        return dict(self.__dict__)


_INNER = ("messages", "episode")


def _as_record(value: Any) -> Any:
    if isinstance(value, list):
        return [_as_record(one) for one in value]
    return Record(value) if isinstance(value, dict) else value


@dataclass
class Pager:
    """One page of answers; iterating it reads the pages behind it, too."""

    items: list[Record]
    has_next: bool
    get_next: Callable[[], Pager]

    def __iter__(self) -> Iterator[Record]:
        page = self
        yield from page.items
        while page.has_next:
            page = page.get_next()
            yield from page.items


def _paged(call: Callable[..., Row], *given: Any, cursor: str | None = None, **more: Any) -> Pager:
    found = call(*given, cursor=cursor, **more)
    following = found["next_cursor"]
    items = [Record(row) for row in found["items"]]
    return Pager(items, following is not None, lambda: _paged(call, *given, cursor=following, **more))


def _sized(page_size: int | None) -> Row:
    return {} if page_size is None else {"page_size": page_size}


class _Calls:
    def __init__(self, shapes: ZepShapes) -> None:
        self._shapes = shapes


class ZepUsers(_Calls):
    """``client.user``."""

    def create(self, **given: Any) -> Record:
        """Note who a user is."""
        return Record(self._shapes.create_user(given))

    def get(self, user_uuid: str, **_: Any) -> Record:
        """Return a user."""
        return Record(self._shapes.get_user(user_uuid))

    def lookup(self, *, user_id: str | None = None, **_: Any) -> Record:
        """Return the user of an id of the program's own."""
        return Record(self._shapes.user_of({"user_id": user_id}))

    def list(self, *, page_size: int | None = None, cursor: str | None = None, **_: Any) -> Pager:
        """Return the users."""
        return _paged(self._shapes.list_users, cursor=cursor, **_sized(page_size))

    def update(self, user_uuid: str, **given: Any) -> Record:
        """Note who a user is."""
        return Record(self._shapes.update_user(user_uuid, given))

    def delete(self, user_uuid: str, **_: Any) -> Record:
        """Erase a user."""
        return Record(self._shapes.delete_user(user_uuid))


class ZepThreads(_Calls):
    """``client.thread``."""

    def create(self, *, user_uuid: str, **_: Any) -> Record:
        """Begin a thread."""
        return Record(self._shapes.create_thread({"user_uuid": user_uuid}))

    def get(self, thread_uuid: str, **_: Any) -> Record:
        """Return a thread."""
        return Record(self._shapes.get_thread(thread_uuid))

    def list(self, *, user_uuid: str, page_size: int | None = None, cursor: str | None = None, **_: Any) -> Pager:
        """Return the threads of a user."""
        return _paged(self._shapes.list_threads, user_uuid, cursor=cursor, **_sized(page_size))

    def delete(self, thread_uuid: str, **_: Any) -> Record:
        """Erase a thread."""
        return Record(self._shapes.delete_thread(thread_uuid))

    def add_messages(
        self, thread_uuid: str, *, messages: Sequence[Any], idempotency_key: str | None = None, **given: Any
    ) -> Record:
        """Store messages."""
        return Record(self._shapes.add_messages(thread_uuid, {**given, "messages": list(messages)}, idempotency_key))

    def list_messages(
        self, thread_uuid: str, *, page_size: int | None = None, cursor: str | None = None, order: Any = None, **_: Any
    ) -> Pager:
        """Return the messages of a thread."""
        more = {**_sized(page_size), "newest": order == "desc"}
        return _paged(self._shapes.list_messages, thread_uuid, cursor=cursor, **more)

    def get_context(self, thread_uuid: str, **_: Any) -> Record:
        """Return what to know for the next reply."""
        return Record(self._shapes.thread_context(thread_uuid))

    def get_summary(self, thread_uuid: str, **_: Any) -> Record:
        """Return the summary of a thread."""
        return Record(self._shapes.thread_summary(thread_uuid))


class ZepEdges(_Calls):
    """``client.graph.edge``."""

    def list(self, graph_uuid: str, *, page_size: int | None = None, cursor: str | None = None, **_: Any) -> Pager:
        """Return what is known of a user."""
        return _paged(self._shapes.edges, graph_uuid, cursor=cursor, **_sized(page_size))

    def get(self, graph_uuid: str, edge_uuid: str, **_: Any) -> Record:
        """Return one fact."""
        return Record(self._shapes.edge(graph_uuid, edge_uuid))

    def delete(self, graph_uuid: str, edge_uuid: str, **_: Any) -> Record:
        """Erase a fact."""
        return Record(self._shapes.delete_edge(graph_uuid, edge_uuid))


class ZepEpisodes(_Calls):
    """``client.graph.episode``."""

    def add(self, graph_uuid: str, *, data: str, idempotency_key: str | None = None, **given: Any) -> Record:
        """Store a text."""
        return Record(self._shapes.add_episode(graph_uuid, {**given, "data": data}, idempotency_key))

    def list(self, graph_uuid: str, *, page_size: int | None = None, cursor: str | None = None, **_: Any) -> Pager:
        """Return the messages of a user."""
        return _paged(self._shapes.episodes, graph_uuid, cursor=cursor, **_sized(page_size))


class ZepGraphs(_Calls):
    """``client.graph``: what is known of one user."""

    def __init__(self, shapes: ZepShapes) -> None:
        super().__init__(shapes)
        self.edge, self.episode = ZepEdges(shapes), ZepEpisodes(shapes)

    def get(self, graph_uuid: str, **_: Any) -> Record:
        """Return the graph."""
        return Record(self._shapes.graph(graph_uuid))

    def lookup(self, *, user_id: str | None = None, **_: Any) -> Record:
        """Return the graph of a user."""
        return Record(self._shapes.graph_of({"user_id": user_id}))

    def get_context(self, graph_uuid: str, *, query: str, **given: Any) -> Record:
        """Return what to know for a question."""
        return Record(self._shapes.graph_context(graph_uuid, {**given, "query": query}))

    def search_edges(
        self, graph_uuid: str, *, query: str, page_size: int = 10, cursor: str | None = None, **_: Any
    ) -> Pager:
        """Return the facts that answer a query."""
        return self._search(graph_uuid, "edges", query, page_size, cursor)

    def search_episodes(
        self, graph_uuid: str, *, query: str, page_size: int = 10, cursor: str | None = None, **_: Any
    ) -> Pager:
        """Return the messages that answer a query."""
        return self._search(graph_uuid, "episodes", query, page_size, cursor)

    def search_thread_summaries(
        self, graph_uuid: str, *, query: str, page_size: int = 10, cursor: str | None = None, **_: Any
    ) -> Pager:
        """Return the summaries that answer a query."""
        return self._search(graph_uuid, "thread-summaries", query, page_size, cursor)

    def _search(self, graph_uuid: str, kind: str, query: str, page_size: int, cursor: str | None) -> Pager:
        return _paged(self._shapes.search, graph_uuid, kind, {"query": query}, page_size=page_size, cursor=cursor)


class Zep:
    """
    Zep's client over a store of this machine: the key is not needed.

    Args:
        api_key: not used.
        memory: a `Memory`; the file that ``HOLDFAST_STORE`` names, or ``holdfast.db``, when not given.
        org: the tenant.
        bot: the assistant.
    """

    def __init__(
        self,
        api_key: str | None = None,
        *,
        memory: doors.Memory | None = None,
        org: str = "default",
        bot: str = "default",
        base_url: str | None = None,
        **_: Any,
    ) -> None:
        if base_url is not None:
            hint = "give base_url=… to Zep's own client: `holdfast serve` answers it under /api/v4"
            raise BadInput("this client asks no server", hint=hint)
        self._owned = memory is None
        place = os.environ.get("HOLDFAST_STORE", DEFAULT_STORE)
        shapes = ZepShapes(memory or doors.Memory(place, background=True), org=org, bot=bot)
        self._shapes = shapes
        self.user, self.thread, self.graph = ZepUsers(shapes), ZepThreads(shapes), ZepGraphs(shapes)

    def close(self) -> None:
        """Close the memory, unless it was given."""
        if self._owned:
            self._shapes.memory.close()


class AsyncZep:
    """Zep's client for asyncio; every call runs in a worker thread."""

    def __init__(self, *given: Any, **more: Any) -> None:
        self._sync = Zep(*given, **more)
        self.user, self.thread = _Awaited(self._sync.user), _Awaited(self._sync.thread)
        self.graph = _Awaited(self._sync.graph)

    def close(self) -> None:
        """Close the memory, unless it was given."""
        self._sync.close()


class _Awaited:
    """Calls whose results are awaited."""

    def __init__(self, calls: _Calls) -> None:
        self._calls = calls

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._calls, name)
        if isinstance(found, _Calls):
            return _Awaited(found)

        async def run(*given: Any, **more: Any) -> Any:
            return await in_thread(found, *given, **more)

        return run
