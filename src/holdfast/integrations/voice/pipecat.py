"""
Memory for Pipecat: `MemoryProcessor`.

    remember = MemoryProcessor(memory, user="ana", conversation="call-9")
    remember.listen(aggregators.assistant())
    Pipeline([transport.input(), stt, aggregators.user(), remember, llm, tts, transport.output(), aggregators.assistant()])

The model gets a copy of the context with what memory has; the context of the conversation stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...text.validate import joined_text
from ..common import MemoryBlocks, missing_package
from .turns import VoiceMemory

try:
    from pipecat.frames.frames import CancelFrame, EndFrame, Frame, LLMContextFrame
    from pipecat.processors.aggregators.llm_context import LLMContext
    from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
except ImportError as error:
    raise missing_package("Pipecat", "pipecat", error) from error

__all__ = ["MemoryProcessor"]


class MemoryProcessor(VoiceMemory, FrameProcessor):  # type: ignore[misc]
    """
    A processor between the aggregator of the user's words and the model.

    Its arguments are those of `VoiceMemory`; others are passed on to Pipecat's processor.
    """

    def listen(self, assistant: Any) -> None:
        """Store what *assistant*, the aggregator of the replies, has heard being said."""
        assistant.add_event_handler("on_assistant_turn_stopped", self._replied)

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        """Put what memory has into the context of a question, and pass every other frame on."""
        await super().process_frame(frame, direction)
        if isinstance(frame, LLMContextFrame) and direction == FrameDirection.DOWNSTREAM:
            context = await self._with_memory(frame.context, is_final=not getattr(frame, "speculation", False))
            changed = LLMContextFrame(context=context)
            if hasattr(frame, "speculation"):
                changed.speculation = frame.speculation
            frame = changed
        try:
            if isinstance(frame, EndFrame | CancelFrame):
                await self._turns.flush()
        finally:  # a call must end, whatever happens
            await self.push_frame(frame, direction)

    async def _with_memory(self, context: LLMContext, *, is_final: bool) -> LLMContext:
        messages = context.get_messages()
        at = next((i for i in reversed(range(len(messages))) if _role(messages[i]) == "user"), None)
        question = "" if at is None else _text(messages[at])
        if at is None or not question:
            return context
        if is_final and at == len(messages) - 1:  # otherwise a tool was called meanwhile
            self._turns.said("user", question)
        blocks = await self._turns.blocks(question)
        return LLMContext(_placed(messages, at, blocks), context.tools, context.tool_choice)

    async def _replied(self, aggregator: Any, message: Any) -> None:
        self._turns.said("assistant", message.content, interrupted=bool(message.interrupted))


def _role(message: Any) -> str:
    return str(message.get("role")) if isinstance(message, Mapping) else ""


def _text(message: Any) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content.strip()
    parts = content if isinstance(content, list) else ()
    return joined_text(p["text"] for p in parts if isinstance(p, Mapping) and isinstance(p.get("text"), str)).strip()


def _placed(given: Sequence[Any], at: int, blocks: MemoryBlocks) -> list[Any]:
    """Put the stable block behind the instructions, and the volatile one right before the question."""
    head = next((i for i, message in enumerate(given) if _role(message) not in ("system", "developer")), at)
    stable = [{"role": "user", "content": blocks.stable}] if blocks.stable else []
    recalled = [{"role": "user", "content": blocks.volatile}] if blocks.volatile else []
    return [*given[:head], *stable, *given[head:at], *recalled, *given[at:]]
