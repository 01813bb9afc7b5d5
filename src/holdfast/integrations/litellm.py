"""
Memory for LiteLLM, its SDK and its proxy: `MemoryLogger`.

    litellm.callbacks = [MemoryLogger(memory)]
    await litellm.acompletion(model="…", messages=[…], user="ana", metadata={"conversation_id": "web-42"})

What memory adds is in the request to the model alone.  Calls that name no user pass as they are: a callback sees every call of
its process, and some of them are nobody's.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from ..aio import AsyncMemory
from ..errors import ConfigError, HoldfastError
from ..memory import Memory
from ..text import dataclass
from ..text.validate import joined_text
from ..types import Message
from .common import AdapterMemory, MemoryBlocks, in_thread, missing_package

try:
    from litellm.integrations.custom_logger import CustomLogger
except ImportError as error:
    raise missing_package("LiteLLM", "litellm", error) from error

__all__ = ["MemoryLogger"]

log = logging.getLogger("holdfast")

MAX_TURNS = 10_000  # calls under way, of which some never come back
COMPLETIONS = ("completion", "acompletion")


@dataclass(frozen=True, slots=True)
class _Turn:
    """A call under way: whose it is."""

    user: str
    conversation: str
    key: str | None


class MemoryLogger(CustomLogger):  # type: ignore[misc]
    """
    A callback that gives chat completions a memory.

    A call names its user with ``user``, its conversation with ``metadata["conversation_id"]`` or LiteLLM's session, and with
    ``metadata["idempotency_key"]`` the turn.

    Args:
        memory: a `Memory` or an `AsyncMemory`.
        user_from: ``"request"``: the request names the user, else the virtual key of LiteLLM's proxy does.  ``"key"``: the
            virtual key alone does; choose it where keys belong to users, who could otherwise name another one.
        conversation: the conversation of calls that name none.
        org: the tenant.
        bot: the assistant.
        subject: whom or what the conversations are about, when that is not the user.
        budget_tokens: what memory may add to a prompt; ``Config.budget_tokens`` when not given.
        read: ``False`` to store only.
        write: ``False`` to read only.
        on_error: ``"pass"``: a memory that fails costs no reply; the call passes as it is, its turn is not stored, and the log
            has the kind of the error.  ``"raise"``: the call fails.
    """

    def __init__(
        self,
        memory: Memory | AsyncMemory,
        *,
        user_from: Literal["request", "key"] = "request",
        conversation: str = "default",
        org: str = "default",
        bot: str = "default",
        subject: str | None = None,
        budget_tokens: int | None = None,
        read: bool = True,
        write: bool = True,
        on_error: Literal["pass", "raise"] = "pass",
    ) -> None:
        super().__init__()
        if user_from not in ("request", "key"):
            raise ConfigError(f"user_from is {user_from!r}", hint='it is "request" or "key"')
        if on_error not in ("pass", "raise"):
            raise ConfigError(f"on_error is {on_error!r}", hint='it is "pass" or "raise"')
        self._members = AdapterMemory(
            memory,
            org=org,
            bot=bot,
            subject=subject,
            budget_tokens=budget_tokens,
            read=read,
            write=write,
        )
        self._user_from, self._conversation, self._on_error = user_from, conversation, on_error
        self._turns: OrderedDict[str, _Turn] = OrderedDict()

    async def async_pre_call_deployment_hook(self, kwargs: dict[str, Any], call_type: Any) -> dict[str, Any] | None:
        """Store what the user said, and put what memory has into the messages."""
        messages = kwargs.get("messages")
        turn = self._turn_of(kwargs)
        if turn is None or _named(call_type) not in COMPLETIONS or not messages:
            return None
        at = next((i for i in reversed(range(len(messages))) if messages[i].get("role") == "user"), None)
        question = "" if at is None else _text(messages[at])
        if at is None or not question:
            return None
        try:
            if at == len(messages) - 1:  # otherwise a tool was called meanwhile
                await self._record(turn, 0, Message("user", question))
            blocks = await in_thread(self._members.blocks, turn.conversation, question, turn.user)
        except HoldfastError as error:
            self._failed(error)
            return None
        self._remember(kwargs, turn)
        return {**kwargs, "messages": _with_memory(messages, at, blocks)}

    async def async_post_call_success_deployment_hook(self, request_data: Any, response: Any, call_type: Any) -> None:
        """Store a reply that came whole, before the caller has it."""
        await self._finish(request_data, response)

    async def async_log_success_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        """Store a reply that was streamed, once it is whole."""
        await self._finish(kwargs, response_obj)

    async def _finish(self, call: Mapping[str, Any], response: Any) -> None:
        choices = getattr(response, "choices", None) or ()
        message = getattr(choices[0], "message", None) if choices else None
        if message is None:
            return  # a piece of a stream
        turn = self._turns.pop(str(call.get("litellm_call_id")), None)
        if turn is None:
            return  # stored already, or nobody's
        reply = _text({"content": message.content})
        if reply and not getattr(message, "tool_calls", None):
            try:
                await self._record(turn, 1, Message("assistant", reply))
            except HoldfastError as error:
                self._failed(error)

    def _failed(self, error: HoldfastError) -> None:
        """Say that a call goes on without memory, or raise the error."""
        if self._on_error == "raise":
            raise error
        log.warning("a call of LiteLLM goes on without memory: %s", type(error).__name__)

    async def _record(self, turn: _Turn, number: int, message: Message) -> None:
        key = None if turn.key is None else f"litellm {turn.key}:{number}"
        await in_thread(self._members.record, turn.conversation, [(key, message)], turn.user)

    def _remember(self, call: Mapping[str, Any], turn: _Turn) -> None:
        self._turns[str(call.get("litellm_call_id"))] = turn
        while len(self._turns) > MAX_TURNS:
            self._turns.popitem(last=False)

    def _turn_of(self, call: Mapping[str, Any]) -> _Turn | None:
        """Return whose turn a call is; ``None`` when it names no user."""
        given = {**(call.get("litellm_metadata") or {}), **(call.get("metadata") or {})}
        of_request = (call.get("user"), given.get("user_id"), given.get("user_api_key_end_user_id"))
        of_key = given.get("user_api_key_user_id")
        user = of_key if self._user_from == "key" else next((name for name in (*of_request, of_key) if name), None)
        if not user:
            return None
        sessions = (given.get("conversation_id"), call.get("litellm_session_id"), given.get("session_id"))
        conversation = next((name for name in sessions if name), self._conversation)
        key = given.get("idempotency_key")
        return _Turn(str(user), str(conversation), None if key is None else str(key))


def _named(call_type: Any) -> str:
    return str(getattr(call_type, "value", call_type))


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content.strip()
    parts = content if isinstance(content, list) else ()
    return joined_text(p["text"] for p in parts if isinstance(p, Mapping) and isinstance(p.get("text"), str)).strip()


def _with_memory(given: Sequence[Any], at: int, blocks: MemoryBlocks) -> list[Any]:
    """Put the stable block behind the instructions, and the volatile one right before the question."""
    head = next((i for i, message in enumerate(given) if message.get("role") not in ("system", "developer")), at)
    stable = [{"role": "user", "content": blocks.stable}] if blocks.stable else []
    recalled = [{"role": "user", "content": blocks.volatile}] if blocks.volatile else []
    earlier = list(blocks.recent) if at == head else []
    return [*given[:head], *stable, *earlier, *given[head:at], *recalled, *given[at:]]
