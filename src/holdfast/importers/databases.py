"""
The databases of other programs, read as they are: mem0, LangGraph, LangChain, the OpenAI Agents SDK, and Open WebUI.

A file is opened for reading only, and no code of the other program is run.  This module knows no store.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import BadInput
from ..text import expression
from .assistants import langchain_message, read_openwebui_chat
from .decode import fields_of, unpack, unpickle
from .items import (
    NOBODY,
    SHAPE_ERRORS,
    DamagedItem,
    ImportedMessage,
    Item,
    LeftOut,
    Place,
    guarded,
    iso_time,
    memory_item,
    role_of,
    text_of,
    time_of,
    title_of,
)
from .memories import markdown_items, names_facts, read_fact_row, read_mem0_memory

SQLITE_MAGIC = b"SQLite format 3\0"
_SCOPE = expression(r"(?:^|&)user_id=([^&]*)")
_NO_USER = "it does not say whose memory it is: import the vector store instead"
_MEM0_STATE = ("history", "messages")


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """
    Open a database for reading.

    Raises:
        BadInput: it is damaged, or another program holds it.
    """
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            yield connection
    except sqlite3.Error as error:
        raise BadInput(
            f"the database cannot be read: {error}", hint="stop the program that uses it, or name a copy of the file"
        ) from error


def tables_of(path: Path) -> set[str]:
    """Return the names of a database's tables."""
    with opened(path) as connection:
        return {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def _rows(connection: sqlite3.Connection, query: str) -> Iterator[dict[str, Any]]:
    for row in connection.execute(query):
        yield dict(row)


def _each_row(
    place: Place, rows: Iterator[dict[str, Any]], read: Callable[[Place, Any], Iterator[Item]], key: str
) -> Iterator[Item]:
    for row in rows:
        yield from guarded((*place, "row", row[key]), row, read, "row")


def read_mem0_history(place: Place, path: Path) -> Iterator[Item]:
    """
    Read mem0's ``history.db``: the last messages of each user, and what is remembered after every change.

    Its memories name no user.  Those since the oldest message are of the one user whose messages there are; where there are
    messages of several, nobody is given any; all others are of `NOBODY`.
    """
    with opened(path) as connection:
        tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
        since: dict[str, str] = {}
        if "messages" in tables:
            query = "SELECT session_scope, MIN(created_at) FROM messages GROUP BY session_scope"
            for scope, at in connection.execute(query):
                since[_mem0_owner(scope)] = min(str(at or ""), since.get(_mem0_owner(scope), str(at or "")))
            query = "SELECT rowid AS n, * FROM messages ORDER BY session_scope, created_at, n"
            yield from _each_row((*place, "messages"), _rows(connection, query), _mem0_message, "n")
        newest: dict[str, tuple[Place, dict[str, Any]]] = {}
        query = "SELECT rowid AS n, * FROM history ORDER BY COALESCE(updated_at, created_at), n"
        for row in _rows(connection, query):
            newest.pop(row["memory_id"], None)
            newest[row["memory_id"]] = ((*place, "history", "row", row["n"]), row)
        for where, row in newest.values():
            yield from guarded(where, row, partial(_mem0_change, since=since), "memory")


def _mem0_change(place: Place, row: Any, since: Mapping[str, str]) -> Iterator[Item]:
    if row["event"] == "DELETE" or row["is_deleted"]:
        yield LeftOut(place, "a memory that was deleted")
    elif len(since) > 1:
        yield LeftOut(place, _NO_USER)
    else:
        at = time_of(row["updated_at"] or row["created_at"])
        owner, oldest = next(iter(since.items()), ("", ""))
        first = time_of(oldest)
        theirs = owner and at is not None and first is not None and at >= first
        yield memory_item(place, row["new_memory"], id=row["memory_id"], at=at, of=owner if theirs else NOBODY)


def _mem0_owner(scope: Any) -> str:
    found = _SCOPE.search(str(scope or ""))
    return found[1] if found else str(scope or "")


def _mem0_message(place: Place, row: Any) -> Iterator[Item]:
    scope = str(row["session_scope"] or "")
    line = {"conversation": title_of(f"mem0 {scope}"), "role": role_of(row["role"]), "content": row["content"]}
    line |= {"at": iso_time(row["created_at"])} | ({"name": row["name"]} if row.get("name") else {})
    if not row["content"]:
        yield LeftOut(place, "a message without text")
        return
    yield ImportedMessage(place, line, _mem0_owner(scope))


def read_qdrant(place: Place, path: Path) -> Iterator[Item]:
    """Read mem0's memories from a collection of Qdrant's local mode, ``collection/NAME/storage.sqlite``."""

    def read(where: Place, row: Any) -> Iterator[Item]:
        point = fields_of(unpickle(row["point"]))
        payload = point["payload"]
        if "data" not in payload:
            yield LeftOut(where, "a point that is no memory of mem0")
            return
        yield from read_mem0_memory(where, payload | {"id": payload.get("id") or str(point.get("id") or "")})

    with opened(path) as connection:
        yield from _each_row((*place, "points"), _rows(connection, "SELECT rowid AS n, point FROM points"), read, "n")


def read_faiss(place: Place, document: Any) -> Iterator[Item]:
    """Read mem0's memories beside a FAISS index: its texts, as JSON or as the pickle of older versions."""
    docstore = document["docstore"] if isinstance(document, Mapping) else document[0]
    for key, payload in docstore.items():
        yield from guarded(
            (*place, "docstore", key), {"id": key, **(payload or {})}, read_mem0_memory, "memory of mem0"
        )


def read_openai_agents(place: Place, path: Path) -> Iterator[Item]:
    """Read the sessions of the OpenAI Agents SDK: every session is a conversation."""

    def read(where: Place, row: Any) -> Iterator[Item]:
        item = json.loads(row["message_data"])
        if item.get("type", "message") != "message" or "role" not in item:
            yield LeftOut(where, f"a {item.get('type')} item")
            return
        text = text_of(item.get("content"))
        if not text.strip():
            yield LeftOut(where, "a message without text")
            return
        line = {"conversation": title_of(row["session_id"]), "role": role_of(item["role"]), "content": text}
        yield ImportedMessage(where, line | {"at": iso_time(row["created_at"])})

    query = "SELECT id, session_id, message_data, created_at FROM agent_messages ORDER BY session_id, id"
    with opened(path) as connection:
        yield from _each_row((*place, "agent_messages"), _rows(connection, query), read, "id")


def read_langchain(place: Place, path: Path) -> Iterator[Item]:
    """Read the table of LangChain's ``SQLChatMessageHistory``, which names no times."""

    def read(where: Place, row: Any) -> Iterator[Item]:
        message = json.loads(row["message"])
        yield from langchain_message(where, message["data"] | {"type": message["type"]}, row["session_id"], None, "")

    with opened(path) as connection:
        query = "SELECT id, session_id, message FROM message_store ORDER BY session_id, id"
        yield from _each_row((*place, "message_store"), _rows(connection, query), read, "id")


def read_langgraph_store(place: Place, path: Path) -> Iterator[Item]:
    """Read the items of LangGraph's ``SqliteStore``: their texts, of the user who is the namespace's second label."""

    def read(where: Place, row: Any) -> Iterator[Item]:
        labels = str(row["prefix"]).split(".")
        owner = ".".join(labels[1:]) if len(labels) > 1 else labels[0]
        text = _store_text(json.loads(row["value"]))
        if text is None:
            yield LeftOut(where, "an item without text")
            return
        at = time_of(row["updated_at"] or row["created_at"])
        yield from markdown_items(where, text, id=f"{row['prefix']}/{row['key']}", at=at, of=owner, title=row["key"])

    query = "SELECT rowid AS n, prefix, key, value, created_at, updated_at FROM store ORDER BY prefix, key"
    with opened(path) as connection:
        yield from _each_row((*place, "store"), _rows(connection, query), read, "n")


def _store_text(value: Any) -> str | None:
    """Return the text of an item: under the names that programs use, within a langmem memory, or the only one there is."""
    if isinstance(value, str):
        return value
    if not isinstance(value, Mapping):
        return None
    for key in ("content", "memory", "text", "data", "value", "fact"):
        if key in value and (found := _store_text(value[key])) is not None:
            return found
    texts = [one for one in value.values() if isinstance(one, str)]
    return texts[0] if len(texts) == 1 else None


def read_langgraph_checkpoints(place: Place, path: Path) -> Iterator[Item]:
    """
    Read the threads of LangGraph's ``SqliteSaver``: the messages of each newest checkpoint.

    A message has the time of the first checkpoint that has it.
    """
    query = (
        "SELECT rowid AS n, thread_id, checkpoint_id, type, checkpoint, metadata FROM checkpoints"
        " WHERE checkpoint_ns = '' ORDER BY thread_id, checkpoint_id"
    )
    with opened(path) as connection:
        thread, times, last = None, dict[str, str | None](), None
        for row in _rows(connection, query):
            if row["thread_id"] != thread:
                yield from _thread(last, times)
                thread, times = row["thread_id"], {}
            where: Place = (*place, "checkpoints", "row", row["n"])
            state, problem = _checkpoint(row)
            last = (where, row, state, problem)
            for message in _messages_in(state):
                times.setdefault(str(message.get("id")), state.get("ts"))
        yield from _thread(last, times)


def _thread(last: Any, times: Mapping[str, str | None]) -> Iterator[Item]:
    if last is None:
        return
    where, row, state, problem = last
    if problem:
        yield DamagedItem(where, problem)
        return
    messages = _messages_in(state)
    if not messages:
        yield LeftOut(where, "a thread without messages")
    try:
        owner = str(json.loads(row["metadata"] or b"{}").get("user_id") or "")
    except (ValueError, AttributeError):
        owner = ""
    for number, message in enumerate(messages):
        at = _time_or_none(times.get(str(message.get("id"))))
        read = partial(langchain_message, conversation=row["thread_id"], at=at, owner=owner)
        yield from guarded((*where, "message", number), message, read)


def _time_or_none(value: Any) -> str | None:
    try:
        return iso_time(value)
    except SHAPE_ERRORS:
        return None


def _checkpoint(row: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Return the content of a checkpoint, or the problem with it."""
    kind, raw = row["type"], row["checkpoint"]
    try:
        if kind in ("json", "msgpack"):
            found = json.loads(raw) if kind == "json" else unpack(raw)
            return (found, "") if isinstance(found, dict) else ({}, "the checkpoint is none")
    except (ValueError, TypeError, RecursionError) as error:
        return {}, f"the checkpoint cannot be read: {error}"
    return {}, f"the checkpoint is stored as {kind}, which is encrypted or may run code"


def _messages_in(state: Mapping[str, Any]) -> list[dict[str, Any]]:
    values = state.get("channel_values")
    found = values.get("messages") if isinstance(values, dict) else None
    messages = []
    for one in found if isinstance(found, list) else []:
        if isinstance(one, dict) and isinstance(one.get("kwargs"), dict):  # LangChain's JSON: its class is its kind
            path = one.get("id")
            last = str(path[-1]) if isinstance(path, list) and path else ""
            one = {"type": last.removesuffix("Message").lower()} | one["kwargs"]
        if isinstance(one, dict) and "content" in one:
            kind = str(one.get("class") or "").removesuffix("Message").lower()
            messages.append({"type": kind} | one)
    return messages


def read_openwebui_db(place: Place, path: Path) -> Iterator[Item]:
    """Read the database of Open WebUI: its chats, and what users let it remember."""

    def chat(where: Place, row: Any) -> Iterator[Item]:
        yield from read_openwebui_chat(where, row | {"chat": json.loads(row["chat"])})

    def memory(where: Place, row: Any) -> Iterator[Item]:
        at = time_of(row["updated_at"] or row["created_at"])
        yield memory_item(where, row["content"], id=str(row["id"]), at=at, of=str(row["user_id"] or ""))

    with opened(path) as connection:
        query = "SELECT rowid AS n, id, user_id, title, chat FROM chat ORDER BY user_id, created_at, id"
        yield from _each_row((*place, "chat"), _rows(connection, query), chat, "n")
        if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'memory'").fetchone():
            query = "SELECT rowid AS n, * FROM memory ORDER BY user_id, created_at"
            yield from _each_row((*place, "memory"), _rows(connection, query), memory, "n")


def read_typed_facts(place: Place, path: Path) -> Iterator[Item]:
    """Read the tables of a chatbot of one's own: typed facts, and the turns of its sessions, by their columns."""

    def turn(where: Place, row: Any) -> Iterator[Item]:
        line = {"conversation": title_of(row["session_id"]), "role": role_of(row["role"]), "content": row["content"]}
        at = row.get("created_at") or row.get("at") or row.get("timestamp")
        yield ImportedMessage(where, line | {"at": iso_time(at)}, str(row["session_id"]))

    with opened(path) as connection:
        for table in sorted(tables_of(path)):
            columns = _columns(connection, table)
            query = f"SELECT rowid AS row_number, * FROM {_quoted(table)} ORDER BY rowid"
            if names_facts(columns):
                yield from _each_row((*place, table), _rows(connection, query), read_fact_row, "row_number")
            elif columns >= _TURN:
                yield from _each_row((*place, table), _rows(connection, query), turn, "row_number")


_TURN = {"session_id", "role", "content"}


def holds_typed_facts(path: Path) -> bool:
    """Whether a table of the database has the columns of typed facts."""
    with opened(path) as connection:
        return any(names_facts(_columns(connection, table)) for table in tables_of(path))


def _columns(connection: sqlite3.Connection, table: str) -> set[str]:
    return {str(row[1]).casefold() for row in connection.execute(f"PRAGMA table_info({_quoted(table)})")}


def _quoted(table: str) -> str:
    return '"' + table.replace('"', '""') + '"'


DATABASES: dict[str, tuple[str, Callable[[Place, Path], Iterator[Item]]]] = {
    "agent_messages": ("openai-agents", read_openai_agents),
    "message_store": ("langchain", read_langchain),
    "checkpoints": ("langgraph-checkpoints", read_langgraph_checkpoints),
    "store": ("langgraph-store", read_langgraph_store),
    "history": ("mem0-history", read_mem0_history),
    "points": ("mem0-qdrant", read_qdrant),
    "chat": ("openwebui-db", read_openwebui_db),
}
"""By a table that a database has: the kind of file, and its reader.  One file may hold several."""
