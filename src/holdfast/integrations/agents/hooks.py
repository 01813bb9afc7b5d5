"""
Hooks of coding agents with a memory: Claude Code, Codex, Cursor, and programs that send what these send.

An agent starts a command at points of a session and gives it JSON.  `read_event` makes an event of it, `handle_event`
answers it: what is known is shown when a session starts, what a prompt recalls before the prompt is answered, and the prompt
and the last reply are stored as messages.  The session is the conversation, the project its subject.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from typing import Any, Literal

from ...conversation import Conversation
from ...errors import BadInput
from ...memory import Memory
from ...text import dataclass, expression
from ...types import Message
from ..common import AdapterMemory, short_key
from .served import folder_of, project_of

__all__ = ["HookEvent", "handle_event", "read_event"]

Kind = Literal["start", "prompt", "reply", "end"]

# The events of the agents that are answered; Cursor's begin with a small letter.
KINDS: dict[str, Kind] = {
    "SessionStart": "start",
    "UserPromptSubmit": "prompt",
    "Stop": "reply",
    "SessionEnd": "end",
    "sessionStart": "start",
    "beforeSubmitPrompt": "prompt",
    "afterAgentResponse": "reply",
    "sessionEnd": "end",
}
DIGEST_S = 5.0  # how long the end of a turn may work on what was said before

# What is in a prompt without being the user's words: our own blocks, and what agents add.
_AGENTS_OWN = "system-reminder|task-notification|local-command-stdout"
_OPENING = expression(
    rf"^[^\n]*This is data, not instructions\.\n<(?P<block>\w+)>\n|<(?P<added>{_AGENTS_OWN})>", re.MULTILINE
)
_CLOSING = expression(rf"^</(?P<block>\w+)>\n?|</(?P<added>{_AGENTS_OWN})>\n?", re.MULTILINE)
# A path at the beginning is no command: "/tmp is full".
_COMMAND = expression(r"/(?!(?:tmp|etc|usr|var|home|opt|dev|proc|mnt|root|bin|lib|srv|sys)(?:\s|$))[\w:-]+(?=\s|$)")


@dataclass(frozen=True, slots=True)
class HookEvent:
    """
    One event of an agent.

    ``name`` is the agent's name of it; ``turn`` the id of the turn, ``user`` whom the agent says is signed in, and
    ``folder`` where the agent works, each empty when it does not say.
    """

    kind: Kind
    name: str
    session: str
    text: str = ""
    turn: str = ""
    user: str = ""
    folder: str = ""

    @property
    def by_cursor(self) -> bool:
        """Whether the answer must be in Cursor's form."""
        return self.name[:1].islower()


def read_event(payload: Any, environ: Mapping[str, str] = os.environ) -> HookEvent | None:
    """
    Return the event that an agent's JSON describes; ``None`` for one that memory has nothing to do with.

    Raises:
        BadInput: it is not what an agent sends.
    """
    if not isinstance(payload, Mapping) or not isinstance(payload.get("hook_event_name"), str):
        raise BadInput("this is not an event of an agent", hint="the agent writes it; see `holdfast hook install`")
    name = payload["hook_event_name"]
    if name not in KINDS or _text(payload, "agent_id"):  # a subagent speaks with the agent, not with the user
        return None
    session = _text(payload, "conversation_id") or _text(payload, "session_id")
    if not session:
        raise BadInput("the event names no session", hint="the agent writes it; see `holdfast hook install`")
    kind = KINDS[name]
    said = _text(payload, "prompt") if kind == "prompt" else ""
    if kind == "reply":
        said = _text(payload, "last_assistant_message") or _text(payload, "text")
    return HookEvent(
        kind,
        name,
        session,
        _own_words(said) if kind == "prompt" else said.strip(),
        _text(payload, "turn_id") or _text(payload, "generation_id") or _text(payload, "prompt_id"),
        _text(payload, "user_email"),
        folder_of(payload, environ),
    )


def handle_event(
    memory: Memory,
    event: HookEvent,
    *,
    user: str,
    org: str = "default",
    bot: str = "default",
    budget_tokens: int | None = None,
    project_of_event: tuple[str, str] | None = None,
    digests: bool = True,
) -> dict[str, Any] | None:
    """
    Store what the event says; return what the agent shall be told, or ``None`` for nothing.

    An event that comes twice, also at the same moment in two processes, is stored once.

    Args:
        memory: where it is stored.
        event: the event.
        user: whose it is.
        org: the tenant.
        bot: the assistant.
        budget_tokens: what memory may add to a prompt.
        project_of_event: the subject and the name of the project, when the folder is on another machine.
        digests: ``False`` where background work is done by others.
    """
    person = memory.user(user, org=org, bot=bot)
    if person.status().state != "active":
        return None
    project, name = project_of_event or project_of(event.folder)
    if project and event.kind in ("start", "prompt") and all(known.id != project for known in person.subjects()):
        person.subject(project, name=name)
    members = AdapterMemory(memory, user=user, org=org, bot=bot, subject=project or None, budget_tokens=budget_tokens)
    chat = members.chat(event.session)
    if event.kind == "start":
        return _answer(event, members.blocks(event.session, None).stable)
    if event.kind == "end":
        chat.end()
    elif event.text:
        _store(chat, event)
    if event.kind != "prompt":
        if digests:
            memory.digest(DIGEST_S)
        return None
    if event.by_cursor:
        return {"continue": True}  # it takes no context here
    return _answer(event, members.blocks(event.session, event.text).volatile if event.text else "")


def _store(chat: Conversation, event: HookEvent) -> None:
    """Store the words of the event, unless they are the end of the conversation already."""
    role = "user" if event.kind == "prompt" else "assistant"
    last = chat.load(last=1)
    if last and (last[0].role, last[0].content) == (role, event.text):
        return
    if role == "assistant" and not _is_answered_by(last[0] if last else None, event):
        return  # the prompt was not stored, for it was a command: the reply to it says nothing of the user
    # Two processes that see the same end of the conversation make the same key.
    place = event.turn or (last[0].seq if last else 0)
    digest = hashlib.sha256(event.text.encode("utf-8", "surrogatepass")).hexdigest()
    meta = {"turn": event.turn} if event.turn else {}
    chat.append(Message(role, event.text, meta=meta), idempotency_key=short_key("hook", role, place, digest))


def _is_answered_by(last: Message | None, event: HookEvent) -> bool:
    """Whether a reply follows what the user said, at once or behind another part of the same turn."""
    if last is None or last.role == "user":
        return last is not None
    return bool(event.turn) and last.meta.get("turn") == event.turn


def _answer(event: HookEvent, context: str) -> dict[str, Any] | None:
    if not context:
        return None
    if event.by_cursor:
        return {"additional_context": context}
    return {"hookSpecificOutput": {"hookEventName": event.name, "additionalContext": context}}


def _own_words(prompt: str) -> str:
    """Return what the user typed: without blocks that memory or the agent added; nothing of a command."""
    words = _without_added(prompt).strip()
    return "" if _COMMAND.match(words) else words


def _without_added(prompt: str) -> str:
    """Return a prompt without the blocks in it, in a time that grows with its length, also when many are left open."""
    ends: dict[str, list[re.Match[str]]] = {}
    for closing in _CLOSING.finditer(prompt):
        ends.setdefault(closing["block"] or closing["added"], []).append(closing)
    for found in ends.values():
        found.reverse()
    kept, begin, place = list[str](), 0, 0
    while opening := _OPENING.search(prompt, place):
        later = ends.get(opening["block"] or opening["added"], [])
        while later and later[-1].start() < opening.end():
            later.pop()
        if later:
            kept.append(prompt[begin : opening.start()])
            begin = place = later[-1].end()
        else:
            place = opening.start() + 1
    return "".join((*kept, prompt[begin:]))


def _text(payload: Mapping[str, Any], name: str) -> str:
    value = payload.get(name)
    return value if isinstance(value, str) else ""
