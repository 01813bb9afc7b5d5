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
        self._rewound = set[str]()  # sessions whose last turns were undone
        self._resumed = False  # nothing of the session was seen yet: its gateway may have undone turns before

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
        self._session, self._resumed = session_id, True
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
        if messages and (self._resumed or session in self._rewound):
            self._forget_undone(session, _questions(messages)[:-1])
        self._resumed = False
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
        self._session = new_session_id
        if rewound:
            self._rewound.add(new_session_id)

    def on_session_end(self, messages: Sequence[Mapping[str, Any]]) -> None:
        """Let the last part of the conversation be summarized."""
        members = self._opened()
        if self._session in self._rewound:
            self._forget_undone(self._session, _questions(messages))
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

    def _forget_undone(self, session: str, kept: Sequence[str]) -> None:
        """Erase the turns of a session behind those questions that Hermes still has."""
        undone, members = session in self._rewound, self._opened()
        self._rewound.discard(session)
        if not members.write:
            return
        chat = members.chat(session)
        stored = chat.load()
        asked = [(message.seq, message.content) for message in stored if message.role == "user"]
        stay = _staying([text for _, text in asked], kept, undone=undone)
        if stay < len(asked):
            first = asked[stay][0] or 0
            for seq in [message.seq or 0 for message in stored if (message.seq or 0) >= first]:
                chat.forget(seq)


def _questions(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what the user said in messages of Hermes."""
    return [str(message.get("content")) for message in messages if message.get("role") == "user"]


def _staying(stored: Sequence[str], kept: Sequence[str], *, undone: bool) -> int:
    """
    Return how many of the stored questions Hermes still has; all of them when what it has says nothing.

    Hermes has all of them from the first on, or, where it compressed its history, those at the end.  Only when it said
    that turns were undone do fewer, or none, count as undone.
    """
    if list(stored[: len(kept)]) == list(kept) and (kept or undone):
        return len(kept)
    if not undone or not kept:
        return len(stored)

    def alike(stay: int) -> int:
        pairs = zip(reversed(stored[:stay]), reversed(kept), strict=False)
        return next((number for number, (one, other) in enumerate(pairs) if one != other), min(stay, len(kept)))

    best = max(range(len(stored) + 1), key=lambda stay: (alike(stay), stay < len(stored), stay))
    return best if alike(best) else len(stored)


def register(ctx: Any) -> None:
    """Give Hermes the provider."""
    ctx.register_memory_provider(HoldfastProvider())
