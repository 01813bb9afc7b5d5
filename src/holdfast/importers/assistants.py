"""
The exports of chat programs with an assistant: ChatGPT, Claude, Open WebUI, LibreChat, and lists of messages.

Of a conversation with branches the one that was read last is taken.  This module knows no store.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from .items import (
    DamagedItem,
    ImportedMessage,
    Item,
    LeftOut,
    Place,
    guarded,
    iso_time,
    read_each,
    role_of,
    text_of,
    title_of,
)

_TIMES = ("at", "created_at", "createdAt", "create_time", "reference_time", "timestamp", "date")
_OPENAI_LIST = ("list", "conversation.items")
OTHER_BRANCH = "on another branch: it was answered or edited again"


def read_messages(place: Place, document: Any) -> Iterator[Item]:
    """Read a list of messages in OpenAI's shape, or conversations that each have such a list."""
    if isinstance(document, Mapping) and document.get("object") in _OPENAI_LIST:
        rows = document["data"]  # often the newest first
        when = [(one.get("created_at") or 0) if isinstance(one, Mapping) else 0 for one in rows]
        for number in sorted(range(len(rows)), key=when.__getitem__):
            yield from guarded((*place, "data", number), rows[number], partial(_message, name=""))
        return
    talks = document if isinstance(document, list) else [document]
    if talks and isinstance(talks[0], Mapping) and "role" in talks[0]:
        yield from read_each(place, talks, partial(_message, name=""))
        return
    if (
        talks and isinstance(talks[0], Mapping) and isinstance(talks[0].get("data"), Mapping)
    ):  # of LangChain's file history

        def read(where: Place, message: Any) -> Iterator[Item]:
            yield from langchain_message(where, message["data"] | {"type": message["type"]}, "", None, "")

        yield from read_each(place, talks, read)
        return
    for number, talk in enumerate(talks):
        where = (*place, number) if isinstance(document, list) else place
        if not isinstance(talk, Mapping) or not isinstance(talk.get("messages"), list):
            yield DamagedItem(where, "it is no conversation: it has no list of messages")
            continue
        named = talk.get("id") or talk.get("conversation") or talk.get("title") or talk.get("thread_id")
        name = title_of(named) if named else ("" if len(talks) == 1 else f"conversation {number + 1}")
        owner = str(talk.get("user_id") or "")
        yield from read_each((*where, "messages"), talk["messages"], partial(_message, name=name, owner=owner))


def _message(place: Place, message: Any, name: str, owner: str = "") -> Iterator[Item]:
    if "role" not in message:
        kind = message.get("type")
        yield LeftOut(place, f"a {kind} item" if isinstance(kind, str) else "no message: it has no role")
        return
    line = {key: value for key, value in message.items() if key not in _TIMES}
    line["at"] = next((at for key in _TIMES if (at := iso_time(message.get(key))) is not None), None)
    content = message.get("content")
    if isinstance(content, list) and not all(
        isinstance(part, Mapping) and part.get("type") == "text" and isinstance(part.get("text"), str)
        for part in content
    ):
        line["content"] = text_of(content) or None
    if not line.get("content") and not line.get("tool_calls"):
        yield LeftOut(place, "a message without text")
        return
    if line["role"] == "norole":
        line["role"] = "user"
    yield ImportedMessage(place, ({"conversation": name} if name else {}) | line, owner)


def langchain_message(place: Place, message: Any, conversation: str, at: str | None, owner: str) -> Iterator[Item]:
    """Read one message of LangChain: its type, and its content."""
    text = text_of(message.get("content"))
    role = str(message.get("role")) if message["type"] == "chat" else message["type"].removesuffix("MessageChunk")
    if not text.strip():
        why = "a call of a tool" if message.get("tool_calls") else "a message without text"
        yield LeftOut(place, why)
        return
    line: dict[str, Any] = {"role": role_of(role), "content": text, "at": at}
    if conversation:
        line = {"conversation": title_of(conversation)} | line
    if line["role"] == "tool":
        line |= {"role": "system", "kind": "tool"}
    yield ImportedMessage(place, line | ({"name": message["name"]} if message.get("name") else {}), owner)


def read_claude(place: Place, document: Any) -> Iterator[Item]:
    """Read the conversations of a Claude export."""
    yield from read_each(place, document, _claude_talk, "conversation")


def _claude_talk(place: Place, talk: Any) -> Iterator[Item]:
    name = title_of(talk.get("name") or talk.get("uuid"), talk.get("uuid"))

    def read(where: Place, message: Any) -> Iterator[Item]:
        text = message.get("text") or text_of(message.get("content"))
        if not text:
            yield LeftOut(where, "a message without text")
            return
        role = "user" if message.get("sender") == "human" else "assistant"
        at = iso_time(message.get("created_at"))
        yield ImportedMessage(where, {"conversation": name, "role": role, "content": text, "at": at})

    yield from read_each((*place, "chat_messages"), talk["chat_messages"], read)


def read_chatgpt(place: Place, document: Any) -> Iterator[Item]:
    """Read the conversations of a ChatGPT export."""
    yield from read_each(place, document, _chatgpt_talk, "conversation")


def _chatgpt_talk(place: Place, talk: Any) -> Iterator[Item]:
    name = title_of(talk.get("title"), talk.get("conversation_id") or talk.get("id"))
    mapping = talk["mapping"]
    branch = _branch(mapping, talk.get("current_node"), "parent")
    for key in branch:
        where = (*place, "mapping", key)
        yield from guarded(
            where, (mapping[key] or {}).get("message") or {}, lambda at, one: _chatgpt_message(at, one, name)
        )
    taken = set(branch)
    for key, node in mapping.items():
        if key not in taken and isinstance(node, Mapping) and node.get("message"):
            yield LeftOut((*place, "mapping", key), OTHER_BRANCH)


def _chatgpt_message(place: Place, message: Any, name: str) -> Iterator[Item]:
    if not message:
        return
    content, about = message.get("content") or {}, message.get("metadata") or {}
    parts = content.get("parts") or ([content["text"]] if content.get("text") else [])
    text = "\n\n".join(part for part in parts if isinstance(part, str) and part.strip())
    if not text:
        yield LeftOut(place, f"a message without text ({content.get('content_type') or 'no content'})")
        return
    author = str((message.get("author") or {}).get("role"))
    role = author if author in ("user", "assistant", "system") else "tool"
    hidden = about.get("is_visually_hidden_from_conversation") or message.get("weight") == 0
    kind = "hidden" if hidden else role
    seconds = message.get("create_time")
    at = iso_time(seconds) if isinstance(seconds, int | float) and 0 < seconds < 4e9 else None
    line = {"conversation": name, "role": "system" if role == "tool" else role, "content": text, "at": at}
    yield ImportedMessage(place, line | ({"kind": kind} if kind not in ("user", "assistant") else {}))


def _branch(nodes: Mapping[str, Any], leaf: Any, parent: str) -> list[str]:
    """Return the keys of the current branch, first to last: other branches were answers that were made again."""
    path: list[str] = []
    seen: set[Any] = set()
    at = leaf if leaf in nodes else next(reversed(list(nodes)), None)
    while at is not None and at in nodes and at not in seen:
        seen.add(at)
        path.append(at)
        at = (nodes[at] or {}).get(parent)
    return path[::-1]


def read_openwebui(place: Place, document: Any) -> Iterator[Item]:
    """Read the chats of an Open WebUI export: every chat has its messages as a tree."""
    yield from read_each(place, document if isinstance(document, list) else [document], read_openwebui_chat, "chat")


def read_openwebui_chat(place: Place, row: Any) -> Iterator[Item]:
    """Read one chat of Open WebUI, from an export or from its database."""
    chat = row["chat"]
    name = title_of(chat.get("title") or row.get("title"), row.get("id"))
    owner = str(row.get("user_id") or "")
    history = chat.get("history") or {}
    nodes = history.get("messages") or {}
    if not nodes:
        nodes = {str(number): one for number, one in enumerate(chat.get("messages") or ())}
        branch, at_place = list(nodes), (*place, "chat", "messages")
    else:
        branch = _branch(nodes, history.get("currentId"), "parentId")
        at_place = (*place, "chat", "history", "messages")

    def read(where: Place, message: Any) -> Iterator[Item]:
        text = text_of(message.get("content"))
        if not text.strip():
            yield LeftOut(where, "a message without text")
            return
        line = {"conversation": name, "role": role_of(message["role"]), "content": text}
        yield ImportedMessage(where, line | {"at": iso_time(message.get("timestamp"))}, owner)

    for key in branch:
        yield from guarded((*at_place, key), nodes[key], read)
    for key in nodes.keys() - set(branch):
        yield LeftOut((*at_place, key), OTHER_BRANCH)


def read_librechat(place: Place, document: Any) -> Iterator[Item]:
    """Read a conversation that LibreChat exported, its messages flat or as a tree."""
    name = title_of(document.get("title"), document.get("conversationId"))
    flat: dict[str, tuple[Place, Any]] = {}
    broken: list[Item] = []
    _flatten((*place, _librechat_key(document)), document[_librechat_key(document)], None, flat, broken)
    yield from broken
    nodes = {key: {"parent": one.get("parentMessageId")} for key, (_at, one) in flat.items()}
    branch = _branch(nodes, _newest(flat), "parent")
    if len(branch) < len(flat) and not any(one.get("parentMessageId") in flat for _at, one in flat.values()):
        branch = list(flat)  # a flat list without parents is in the order in which it was said

    def read(where: Place, message: Any) -> Iterator[Item]:
        text = message.get("text") or text_of(message.get("content"))
        if message.get("error"):
            yield LeftOut(where, "an error instead of an answer")
        elif not text.strip():
            yield LeftOut(where, "a message without text")
        else:
            role = "user" if message["isCreatedByUser"] else "assistant"
            line = {"conversation": name, "role": role, "content": text, "at": iso_time(message.get("createdAt"))}
            yield ImportedMessage(where, line)

    for key in branch:
        yield from guarded(*flat[key], read)
    for key in flat.keys() - set(branch):
        yield LeftOut(flat[key][0], OTHER_BRANCH)


def _librechat_key(document: Mapping[str, Any]) -> str:
    return "messagesTree" if "messagesTree" in document else "messages"


def _flatten(
    place: Place, messages: Any, parent: str | None, into: dict[str, tuple[Place, Any]], broken: list[Item]
) -> None:
    """Put the messages of a tree into *into*, parents first; a child without a parent's name gets it."""
    waiting = [(place, messages, parent)]
    while waiting:
        where, level, above = waiting.pop(0)
        for number, message in enumerate(level or ()):
            at = (*where, number)
            if not isinstance(message, Mapping) or not message.get("messageId"):
                broken.append(DamagedItem(at, "it is no message: it has no messageId"))
                continue
            key = str(message["messageId"])
            into[key] = (at, {"parentMessageId": above, **message} if above else message)
            if message.get("children"):
                waiting.append(((*at, "children"), message["children"], key))


def _newest(flat: Mapping[str, tuple[Place, Any]]) -> str | None:
    """Return the key of the message that was said last."""
    keys = list(flat)
    return max(keys, key=lambda key: (str(flat[key][1].get("createdAt") or ""), keys.index(key)), default=None)
