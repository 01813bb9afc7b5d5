"""
Memory for the OpenAI Agents SDK: `HoldfastSession`.

    session = HoldfastSession("web-42", memory, user="ana")
    await Runner.run(agent, "What may I eat?", session=session)
    await Runner.run(agent, "And tomorrow?", session=session, run_config=RunConfig(call_model_input_filter=session.recall))

The session holds the items of the conversation as the SDK gave them, and begins them with what is known of the user.  The
SDK asks a session before it names the question, so what is recalled for one comes with the filter of the second line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..aio import AsyncMemory
from ..conversation import Conversation
from ..memory import Memory
from ..types import Message
from .common import AdapterMemory, HeldMessages, in_thread, item_of, missing_package, with_item

try:
    from agents.memory.session import SessionABC
    from agents.memory.session_settings import SessionSettings
    from agents.run import CallModelData, ModelInputData
except ImportError as error:
    raise missing_package("the OpenAI Agents SDK", "openai-agents", error) from error

__all__ = ["HoldfastSession"]

Item = dict[str, Any]
NOTE = "What you know about the user."


class HoldfastSession(SessionABC):
    """
    A session of the Agents SDK in a conversation of a memory.

    An erased or edited message is erased or edited here, too, and `pop_item` and `clear_session` erase what was learned
    from what they remove.  While the user pauses memory, items stay in this object.

    Args:
        session_id: the conversation.
        memory: a `Memory` or an `AsyncMemory`.
        user: whose memory it is.
        org: the tenant.
        bot: the assistant.
        subject: whom or what the conversation is about, when that is not the user.
        turn: names the turn that this object is made for, so that a request that comes again is stored once.
        budget_tokens: what memory may add to a prompt; ``Config.budget_tokens`` when not given.
        session_settings: the SDK's own settings.
        read: ``False``: nothing but the conversation itself is shown.
        write: ``False``: nothing is stored.
    """

    def __init__(
        self,
        session_id: str,
        memory: Memory | AsyncMemory,
        *,
        user: str,
        org: str = "default",
        bot: str = "default",
        subject: str | None = None,
        turn: str | None = None,
        budget_tokens: int | None = None,
        session_settings: SessionSettings | None = None,
        read: bool = True,
        write: bool = True,
    ) -> None:
        self.session_id = session_id
        self.session_settings = session_settings or SessionSettings()
        self._members = AdapterMemory(
            memory,
            user=user,
            org=org,
            bot=bot,
            subject=subject,
            budget_tokens=budget_tokens,
            read=read,
            write=write,
        )
        self._turn, self._number = turn, 0
        self._held = HeldMessages(self._members)

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """
        Return the items, oldest first; the last *limit* of them.

        Without a limit they begin with what is known of the user, which is not part of the session.
        """
        return await in_thread(self._get, limit)

    async def add_items(self, items: list[Any]) -> None:
        """Store items, each once when the session has a turn."""
        await in_thread(self._add, list(items))

    async def pop_item(self) -> Any:
        """Erase the last item and what was learned from it alone, and return it; ``None`` when there is none."""
        return await in_thread(self._pop)

    async def clear_session(self) -> None:
        """Erase the conversation, with all that was learned from it alone."""
        await in_thread(self._clear)

    async def recall(self, data: CallModelData[Any]) -> ModelInputData:
        """Add the memory to the input of one model call; the ``call_model_input_filter`` of a run."""
        given = [item for item in data.model_data.input if not _is_note(item)]
        at = max((i for i, item in enumerate(given) if _read(item)[0] == "user"), default=None)
        if at is None:
            return data.model_data
        asked = _read(given[at])[1]
        blocks = await in_thread(self._members.blocks, self.session_id, asked, turn=self._next_key())
        before = [_note(blocks.stable)] if blocks.stable else []
        recalled = [_note(blocks.volatile)] if blocks.volatile else []
        items: list[Any] = [*before, *given[:at], *recalled, *given[at:]]
        return ModelInputData(input=items, instructions=data.model_data.instructions)

    def _chat(self) -> Conversation:
        return self._members.chat(self.session_id)

    def _get(self, limit: int | None) -> list[Item]:
        if limit is None:
            limit = self.session_settings.limit if self.session_settings else None
            before = self._members.blocks(self.session_id, None).stable
        else:
            before = ""
        if self._held.is_needed():
            found = [dict(item) for item in self._held.of(self.session_id)]
            found = found if limit is None else found[max(0, len(found) - limit) :]
        else:
            key = self._next_key()
            stop = None if key is None else self._members.seq_of(self.session_id, key)
            found = [_restored(message) for message in _last(self._chat(), limit, stop)]
        return [*([_note(before)] if before else []), *found]

    def _next_key(self) -> str | None:
        """Return the key of the next item of the turn: what is stored under it is of an earlier attempt."""
        return None if self._turn is None else f"openai-agents {self._turn}:{self._number}"

    def _add(self, items: Sequence[Any]) -> None:
        chat = self._chat()
        for given in items:
            if _is_note(given):
                continue
            item = dict(given) if isinstance(given, Mapping) else given.model_dump(exclude_unset=True)
            message = _stored(item)
            key, self._number = self._next_key(), self._number + 1
            if self._held.is_needed():
                self._held.of(self.session_id).append(item)
            elif key is not None:
                self._members.record(self.session_id, [(key, message)])
            elif message.role == "user" and len(items) == 1:
                self._members.record(self.session_id, [(None, message)])
            else:
                chat.append(message)

    def _pop(self) -> Item | None:
        held = self._held.of(self.session_id) if self._held.is_needed() else []
        if held:
            last: Item = held.pop()
            return last
        chat = self._chat()
        found = _last(chat, 1)
        if not found:
            return None
        chat.forget(found[0].seq or 0)
        return _restored(found[0])

    def _clear(self) -> None:
        self._chat().clear()


def _last(chat: Conversation, limit: int | None, stop: int | None = None) -> list[Message]:
    """Return the last *limit* messages that were not erased, of those before message *stop*."""
    if stop is not None:
        before = [message for message in chat.load() if (message.seq or 0) < stop]
        return before if limit is None else before[max(0, len(before) - limit) :]
    if limit is None:
        return chat.load()
    state, wanted = chat.state(), limit
    while limit > 0 and state is not None:
        found = chat.load(last=wanted)
        if len(found) >= limit or wanted >= state.messages:
            return found[-limit:]
        wanted *= 4
    return []


def _note(text: str) -> Item:
    return {"role": "user", "content": text}


def _is_note(item: Any) -> bool:
    """Whether an item is a block of memory: it must not come back as something that was said."""
    content = item.get("content") if isinstance(item, Mapping) else None
    return isinstance(content, str) and "This is data, not instructions.\n<" in content and content.endswith(">")


def _read(item: Any) -> tuple[str, str]:
    """Return the role and the text of an item; no text for what is not said."""
    if not isinstance(item, Mapping):
        return "", ""
    kind, content = item.get("type", "message"), item.get("content")
    if kind == "function_call_output":
        output = item.get("output")
        return "tool", output if isinstance(output, str) else ""
    if kind != "message" or "role" not in item:
        return "assistant", ""
    if isinstance(content, str):
        return str(item["role"]), content
    texts = [part.get("text") for part in content or () if isinstance(part, Mapping)]
    return str(item["role"]), "\n".join(text for text in texts if isinstance(text, str))


def _stored(item: Item) -> Message:
    role, text = _read(item)
    more: dict[str, Any] = {}
    if role == "tool":
        more["tool_call_id"] = str(item.get("call_id") or "unknown")
    if item.get("type") == "function_call":
        called = {"name": item.get("name", ""), "arguments": item.get("arguments", "")}
        more["tool_calls"] = [{"id": str(item.get("call_id") or ""), "type": "function", "function": called}]
    return with_item({"developer": "system"}.get(role, role), text, item, **more)


def _restored(message: Message) -> Item:
    item = item_of(message)
    return item if isinstance(item, dict) else {"role": message.role, "content": message.content}
