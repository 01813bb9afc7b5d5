"""
Memory for LiveKit Agents: `MemoryAgent`.

    agent = MemoryAgent(memory, user="ana", conversation=room.name, instructions="You are a cook.")
    await AgentSession(llm=…, stt=…, tts=…).start(agent, room=room)

The model gets a copy of the chat context with what memory has; the session's own stays as it is.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from ..common import MemoryBlocks, missing_package
from .turns import VoiceMemory

try:
    from livekit.agents import Agent
    from livekit.agents.llm import ChatContext, ChatMessage
except ImportError as error:
    raise missing_package("LiveKit Agents", "livekit", error) from error

__all__ = ["MemoryAgent"]


class MemoryAgent(VoiceMemory, Agent):  # type: ignore[misc]
    """
    An agent with a memory; what is overridden calls ``super()``.

    Its arguments are those of `VoiceMemory`; others are passed on to LiveKit's agent.
    """

    _heard: Any = None  # the session whose messages are stored
    _leaving = False

    async def on_enter(self) -> None:
        """Begin to store what is said, from here on."""
        self._leaving = False
        self._listen(entering=True)

    async def on_exit(self) -> None:
        """Wait until all that was said is stored; once this agent's last words are said, another one has the session."""
        self._leaving = True
        await self._turns.flush()

    async def llm_node(self, chat_ctx: ChatContext, tools: Any, model_settings: Any) -> AsyncGenerator[Any, None]:
        """Ask the model, with what memory has."""
        self._listen()
        context = await self._with_memory(chat_ctx)
        async for chunk in Agent.default.llm_node(self, context, tools, model_settings):
            yield chunk

    def _listen(self, *, entering: bool = False) -> None:
        """Store what the session takes into its history: the user's words, and of a reply what was said."""
        session = self.session
        if self._heard is session:
            return
        self._stop_listening()
        self._heard = session
        session.on("conversation_item_added", self._heard_item)
        items = list(session.history.items)
        handoff = next((n for n in reversed(range(len(items))) if items[n].type == "agent_handoff"), None)
        if handoff is not None:
            items = items[handoff + 1 :]  # what came before was said to another agent
        elif entering:
            items = []
        for item in items:  # what came before the model was first asked
            self._added(item)

    def _heard_item(self, event: Any) -> None:
        if self._leaving and not self._is_active():
            self._stop_listening()
        else:
            self._added(event.item)

    def _is_active(self) -> bool:
        try:
            return self.session is self._heard
        except RuntimeError:  # it is another agent's turn
            return False

    def _stop_listening(self) -> None:
        if self._heard is not None:
            self._heard.off("conversation_item_added", self._heard_item)
            self._heard = None

    def _added(self, item: Any) -> None:
        if isinstance(item, ChatMessage) and item.role in ("user", "assistant"):
            key = f"livekit {item.id}"
            self._turns.said(item.role, item.text_content or "", key=key, interrupted=bool(item.interrupted))

    async def _with_memory(self, given: ChatContext) -> ChatContext:
        items = list(given.items)
        at = next((i for i in reversed(range(len(items))) if _role(items[i]) == "user"), None)
        question = "" if at is None else (items[at].text_content or "").strip()
        if at is None or not question:
            return given
        blocks = await self._turns.blocks(question)
        return ChatContext(_placed(items, at, blocks))


def _role(item: Any) -> str:
    return str(item.role) if isinstance(item, ChatMessage) else ""


def _placed(given: list[Any], at: int, blocks: MemoryBlocks) -> list[Any]:
    """Put the stable block behind the instructions, and the volatile one right before the question."""
    head = next((i for i, item in enumerate(given[:at]) if _role(item) in ("user", "assistant")), at)
    stable = [ChatMessage(role="user", content=[blocks.stable])] if blocks.stable else []
    recalled = [ChatMessage(role="user", content=[blocks.volatile])] if blocks.volatile else []
    return [*given[:head], *stable, *given[head:at], *recalled, *given[at:]]
