"""
A memory provider for Hermes Agent.

What is known of the user goes into the system prompt when Hermes builds it, and stays there; what a question recalls goes
beside the question.  Turns are stored when Hermes says that they are complete.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agent.memory_provider import MemoryProvider

from holdfast import HoldfastError, Memory
from holdfast.integrations.common import AdapterMemory
from holdfast.types import Message

__all__ = ["HoldfastProvider", "register"]

USER = "me"  # as the `holdfast` command names the user of a store
SEARCH = {
    "name": "search_memory",
    "description": "Search what the user said in earlier sessions, and what is known of the user.",
    "parameters": {
        "type": "object",
        "properties": {"query": {"type": "string", "description": "What to look for: a few words or a question."}},
        "required": ["query"],
    },
}
MAX_HITS = 8
REWOUND = 200  # how many of the last messages are looked through after an undo


class _Stores:
    """The open memories of this process by their place: a gateway makes an agent, and so a provider, for each chat."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[str, tuple[Memory, int]] = {}

    def open(self, place: str) -> Memory:
        with self._lock:
            memory, uses = self._open.get(place) or (Memory(place), 0)
            self._open[place] = memory, uses + 1
            return memory

    def close(self, place: str) -> None:
        with self._lock:
            memory, uses = self._open.pop(place)
            if uses > 1:
                self._open[place] = memory, uses - 1
                return
        memory.close()


_stores = _Stores()


class HoldfastProvider(MemoryProvider):
    """
    Memory of every turn, in ``holdfast.db`` of Hermes' home folder, or the store that ``HOLDFAST_STORE`` names.

    The user is the one whom the platform names, the bot Hermes' profile, the conversation the session.
    """

    def __init__(self) -> None:
        self._place = ""
        self._session = ""
        self._members: AdapterMemory | None = None
        self._rewound = False

    @property
    def name(self) -> str:
        """The name in Hermes' configuration."""
        return "holdfast"

    def is_available(self) -> bool:
        """Whether the provider can be used: always, it needs no key."""
        return True

    def initialize(self, session_id: str, **named: Any) -> None:
        """Open the store; a subagent's turns and those of schedules are not stored."""
        self.shutdown()
        home = Path(str(named.get("hermes_home") or Path.home() / ".hermes"))
        self._place = os.environ.get("HOLDFAST_STORE") or str(home / "holdfast.db")
        self._session = session_id
        self._members = AdapterMemory(
            _stores.open(self._place),
            user=str(named.get("user_id") or named.get("user_id_alt") or USER),
            bot=str(named.get("agent_identity") or "default"),
            write=named.get("agent_context", "primary") == "primary",
        )

    def shutdown(self) -> None:
        """Close the store when no other provider of the process uses it."""
        if self._members is not None:
            self._members = None
            _stores.close(self._place)

    def system_prompt_block(self) -> str:
        """Return what is known of the user."""
        return self._opened().blocks(self._session, None).stable

    def prefetch(self, query: str, *, session_id: str = "") -> str:
        """Return what the question recalls."""
        return self._opened().blocks(session_id or self._session, query).volatile if query.strip() else ""

    def sync_turn(
        self,
        user_content: str,
        assistant_content: str,
        *,
        session_id: str = "",
        messages: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        """Store a turn that is complete; Hermes calls this in a thread of its own."""
        session = session_id or self._session
        if self._rewound and messages:
            self._rewound = False
            self._forget_undone(session, messages)
        said = (("user", user_content), ("assistant", assistant_content))
        self._opened().record(session, [(None, Message(role, text)) for role, text in said if text.strip()])

    def on_session_switch(
        self,
        new_session_id: str,
        *,
        parent_session_id: str = "",
        reset: bool = False,
        rewound: bool = False,
        **named: Any,
    ) -> None:
        """Go on in another session, or remember that the last turns of this one were undone."""
        self._session, self._rewound = new_session_id, rewound

    def on_session_end(self, messages: Sequence[Mapping[str, Any]]) -> None:
        """Let the last part of the conversation be summarized."""
        members = self._opened()
        if members.write and members.chat(self._session).load(last=1):
            members.chat(self._session).end()

    def on_memory_write(
        self, action: str, target: str, content: str, metadata: Mapping[str, Any] | None = None
    ) -> None:
        """Take what the agent notes about the user, too."""
        members = self._opened()
        if action == "add" and target == "user" and content.strip() and members.write:
            members.memory.user(members.checked_user(), bot=members.bot).remember(content)

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """Return the one tool, for questions of the agent's own."""
        return [SEARCH]

    def handle_tool_call(self, tool_name: str, args: Mapping[str, Any], **named: Any) -> str:
        """Answer a call of the tool, in JSON."""
        query = args.get("query")
        if tool_name != SEARCH["name"] or not isinstance(query, str) or not query.strip():
            return json.dumps({"error": "call search_memory with a query"})
        members = self._opened()
        try:
            hits = members.memory.user(members.checked_user(), bot=members.bot).search(query, limit=MAX_HITS)
        except HoldfastError as error:
            return json.dumps({"error": str(error)})
        return json.dumps({"results": [{"text": hit.text, "at": str(hit.at or "")} for hit in hits]})

    def backup_paths(self) -> list[str]:
        """Return the store when it is outside Hermes' home folder, whose backup has it otherwise."""
        place = os.environ.get("HOLDFAST_STORE", "")
        return [place] if place and "://" not in place else []

    def _opened(self) -> AdapterMemory:
        if self._members is None:
            raise RuntimeError("the memory is not open: Hermes calls initialize() first")
        return self._members

    def _forget_undone(self, session: str, messages: Sequence[Mapping[str, Any]]) -> None:
        """Erase what was stored behind the last question that Hermes still has before the present one."""
        asked = [message.get("content") for message in messages if message.get("role") == "user"]
        if not self._opened().write or len(asked) < 2:
            return
        chat = self._opened().chat(session)
        stored = chat.load(last=REWOUND)
        kept = [
            number for number, message in enumerate(stored) if (message.role, message.content) == ("user", asked[-2])
        ]
        behind = stored[kept[-1] + 1 :] if kept else []
        undone = next((number for number, message in enumerate(behind) if message.role == "user"), len(behind))
        for message in behind[undone:]:
            if message.seq is not None:
                chat.forget(message.seq)


def register(ctx: Any) -> None:
    """Give Hermes the provider."""
    ctx.register_memory_provider(HoldfastProvider())
