"""
Transcripts of the Claude Agent SDK in a memory: `HoldfastSessionStore`.

    options = ClaudeAgentOptions(session_store=HoldfastSessionStore(memory, user="ana"))

Every line of a transcript is kept as the SDK gives it, so that any machine can resume the session.  What user and
assistant say is also stored as messages of a conversation, and read for facts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote, unquote

from ...aio import AsyncMemory
from ...memory import Memory
from ...scope import Scope
from ...types import Message
from ..common import AdapterMemory, FrameworkState, ItemsOf, StateChange, conversation_name, in_thread, missing_package

try:
    from claude_agent_sdk import fold_session_summary
    from claude_agent_sdk.types import SessionStore
except ImportError as error:
    raise missing_package("the Claude Agent SDK", "claude-agent", error) from error

__all__ = ["HoldfastSessionStore"]

Key = Mapping[str, Any]
Entry = Mapping[str, Any]
MAIN = "main"
HEAD, LINE, SEEN = "h", "l", "u"


class HoldfastSessionStore(SessionStore):
    """
    A session store: each session is the conversation ``project_key/session_id`` of the user.

    Erasing the conversation, one of its messages, or the user erases the transcript.  While the user pauses memory, what
    comes is kept in this process alone.

    Args:
        memory: a `Memory` or an `AsyncMemory`.
        user: whose sessions these are; or a function from the ``project_key`` to the user.
        org: the tenant.
        bot: the assistant.
        learn: ``False`` to keep transcripts only.
    """

    def __init__(
        self,
        memory: Memory | AsyncMemory,
        *,
        user: str | Callable[[str], str],
        org: str = "default",
        bot: str = "default",
        learn: bool = True,
    ) -> None:
        self._members = AdapterMemory(memory, user=user if isinstance(user, str) else None, org=org, bot=bot)
        self._user_of = user if callable(user) else None
        self._state: FrameworkState = self._members.state("claude.transcript")
        self._learn = learn

    async def append(self, key: Key, entries: Sequence[Entry]) -> None:
        """Store lines of a transcript; one with a ``uuid`` that is there already is skipped."""
        if entries:
            await in_thread(self._append, key, list(entries))

    async def load(self, key: Key) -> list[Any] | None:
        """Return the lines of a transcript; ``None`` when there is none."""
        part = _part(key)
        rows = await in_thread(lambda: self._state.load(self._scope(key), f"{LINE}/{part}/", f"{LINE}/{part}0"))
        return [json.loads(row.value) for row in rows] or None

    async def list_sessions(self, project_key: str) -> list[Any]:
        """Return the sessions of a project, with the time of their last line."""
        heads = await in_thread(self._heads, project_key)
        return [{"session_id": head["session"], "mtime": head["mtime"]} for head in heads]

    async def list_session_summaries(self, project_key: str) -> list[Any]:
        """Return the SDK's own summaries of the sessions of a project."""
        return [
            {"session_id": head["session"], "mtime": head["mtime"], "data": head["summary"]}
            for head in await in_thread(self._heads, project_key)
        ]

    async def delete(self, key: Key) -> None:
        """Erase a session with all that was learned from it alone, or the transcript of one of its subagents."""
        await in_thread(self._delete, key)

    async def list_subkeys(self, key: Key) -> list[str]:
        """Return the subpaths of a session: the transcripts of its subagents."""
        rows = await in_thread(lambda: self._state.load(self._scope(key), f"{HEAD}/", f"{HEAD}0"))
        parts = [unquote(row.name.partition("/")[2]) for row in rows]
        return [part[1:] for part in parts if part != MAIN]

    def _conversation(self, key: Key) -> str:
        return conversation_name(f"{key['project_key']}/{key['session_id']}")

    def _scope(self, key: Key) -> Scope:
        return self._state.scope(self._conversation(key), self._user(key["project_key"]))

    def _user(self, project_key: str) -> str:
        return self._members.checked_user(self._user_of(project_key) if self._user_of else None)

    def _append(self, key: Key, entries: Sequence[Entry]) -> None:
        part, now_ms = _part(key), self._members.memory._engine.now_ms()

        def change(items: ItemsOf) -> StateChange:
            found = items(f"{HEAD}/{part}", f"{HEAD}/{part}\x01")
            head: dict[str, Any] = json.loads(found[0].value) if found else {"next": 0, "mtime": 0, "summary": None}
            written: dict[str, bytes] = {}
            new = []
            for entry in entries:
                uuid = entry.get("uuid")
                seen = f"{SEEN}/{part}/{quote(str(uuid), safe='')}"
                if uuid and (seen in written or items(seen, seen + "\x01")):
                    continue
                if uuid:
                    written[seen] = b""
                written[f"{LINE}/{part}/{head['next']:012}"] = json.dumps(entry, ensure_ascii=False).encode(
                    "utf-8", "surrogatepass"
                )
                head["next"] += 1
                new.append(entry)
            head |= {"project": key["project_key"], "session": key["session_id"]}
            head["mtime"] = max(now_ms, head["mtime"] + 1)
            if "subpath" not in key:
                before = head["summary"] and {
                    "session_id": key["session_id"],
                    "mtime": head["mtime"],
                    "data": head["summary"],
                }
                head["summary"] = fold_session_summary(before, dict(key), new)["data"]
            written[f"{HEAD}/{part}"] = json.dumps(head).encode()
            return StateChange(written)

        self._state.change(self._scope(key), change)
        if self._learn and "subpath" not in key:
            said = [(f"claude {entry['uuid']}", message) for entry in entries if (message := _said(entry))]
            self._members.record(self._conversation(key), said, self._user(key["project_key"]))

    def _heads(self, project_key: str) -> list[dict[str, Any]]:
        found = []
        for scope in self._state.homes(self._user(project_key)):
            for row in self._state.load(scope, f"{HEAD}/{MAIN}", f"{HEAD}/{MAIN}\x01"):
                head = json.loads(row.value)
                if head["project"] == project_key:
                    found.append(head)
        return found

    def _delete(self, key: Key) -> None:
        scope = self._scope(key)
        if "subpath" not in key:
            self._state.remove(scope)
            self._members.chat(self._conversation(key), self._user(key["project_key"])).clear()
            return
        part = _part(key)
        ranges = [(f"{kind}/{part}/", f"{kind}/{part}0") for kind in (LINE, SEEN)]
        for first, stop in [*ranges, (f"{HEAD}/{part}", f"{HEAD}/{part}\x01")]:
            self._state.remove(scope, first, stop)


def _part(key: Key) -> str:
    """Return the part of a name that says which transcript of the session it belongs to."""
    return quote(f"={key['subpath']}", safe="") if "subpath" in key else MAIN


def _said(entry: Entry) -> Message | None:
    """Return what a line says as a message; ``None`` for results of tools, notes of the program and subagents."""
    message = entry.get("message")
    if entry.get("type") not in ("user", "assistant") or not isinstance(message, Mapping) or not entry.get("uuid"):
        return None
    if entry.get("isMeta") or entry.get("isSidechain") or entry.get("isCompactSummary"):
        return None
    content = message.get("content")
    if isinstance(content, str):
        texts = [content]
    else:
        blocks = [block for block in content or () if isinstance(block, Mapping)]
        texts = [str(block.get("text", "")) for block in blocks if block.get("type") == "text"]
    text = "\n".join(text for text in texts if text.strip())
    return Message(str(entry["type"]), text) if text else None
