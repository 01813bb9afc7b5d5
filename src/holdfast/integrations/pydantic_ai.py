"""
Memory and conversations for Pydantic AI: `MemoryCapability` and `HoldfastConversationStore`.

    agent = Agent("openai:gpt-5", capabilities=[MemoryCapability(memory, user="ana")])
    await agent.run("What may I eat?", conversation_id="web-42")

What memory adds is in the request to the model alone: the history of a run does not hold it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..aio import AsyncMemory
from ..memory import Memory
from ..text import dataclass
from ..types import Message
from .common import AdapterMemory, ItemsOf, MemoryBlocks, StateChange, in_thread, missing_package

try:
    from pydantic import TypeAdapter
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.conversation_store import (
        ConversationConflict,
        ConversationEntry,
        ConversationRecord,
        ConversationStore,
    )
    from pydantic_ai.messages import (
        ModelMessage,
        ModelRequest,
        ModelResponse,
        SystemPromptPart,
        TextPart,
        UserContent,
        UserPromptPart,
    )
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.run import AgentRunResult
    from pydantic_ai.tools import RunContext
except ImportError as error:
    raise missing_package("Pydantic AI", "pydantic-ai", error) from error

__all__ = ["HoldfastConversationStore", "MemoryCapability"]

RECORD, ENTRY, PLACE = "r", "e/", "i/"  # items of a conversation; of the user: in which conversation an entry is
_RECORD, _ENTRY = TypeAdapter(ConversationRecord), TypeAdapter(ConversationEntry)


@dataclass
class MemoryCapability(AbstractCapability[Any]):
    """
    A capability that gives an agent memory.

    The user is *user*, a function of the run's context, or the ``user_id`` of its ``deps``; the conversation is the run's
    ``conversation_id``.  ``metadata={"idempotency_key": …}`` of a run names a turn with all its attempts.

    Args:
        memory: a `Memory` or an `AsyncMemory`.
        user: whose memory it is.
        org: the tenant.
        bot: the assistant.
        subject: whom or what the conversations are about, when that is not the user.
        budget_tokens: what memory may add to a request; ``Config.budget_tokens`` when not given.
        read: ``False`` to store only.
        write: ``False`` to read only.
    """

    memory: Memory | AsyncMemory
    user: str | Callable[[RunContext[Any]], str] | None = None
    org: str = "default"
    bot: str = "default"
    subject: str | None = None
    budget_tokens: int | None = None
    read: bool = True
    write: bool = True

    def __post_init__(self) -> None:
        self._members = AdapterMemory(
            self.memory,
            user=self.user if isinstance(self.user, str) else None,
            org=self.org,
            bot=self.bot,
            subject=self.subject,
            budget_tokens=self.budget_tokens,
            read=self.read,
            write=self.write,
        )
        self._blocks: MemoryBlocks | None = None

    async def for_run(self, ctx: RunContext[Any]) -> MemoryCapability:
        """Return the capability of one run, which asks the memory once."""
        return replace(self)

    async def before_run(self, ctx: RunContext[Any]) -> None:
        """Store what the user said, before the model is asked."""
        said = _text(ctx.prompt)
        if said:
            await in_thread(
                self._members.record, self._conversation(ctx), [(_key(ctx, 0), Message("user", said))], self._user(ctx)
            )

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Put what memory has for the question into the request."""
        if self._blocks is None:
            question = _text(ctx.prompt)
            self._blocks = await in_thread(
                self._members.blocks, self._conversation(ctx), question or None, self._user(ctx), turn=_key(ctx, 0)
            )
        return replace(request_context, messages=_with_memory(request_context.messages, self._blocks))

    async def after_run(self, ctx: RunContext[Any], *, result: AgentRunResult[Any]) -> AgentRunResult[Any]:
        """Store what the agent replied."""
        texts = [
            part.content
            for message in result.new_messages()
            if isinstance(message, ModelResponse)
            for part in message.parts
            if isinstance(part, TextPart) and part.content
        ]
        reply = "\n".join(texts) if texts else str(result.output)
        if reply:
            stored = [(_key(ctx, 1), Message("assistant", reply))]
            await in_thread(self._members.record, self._conversation(ctx), stored, self._user(ctx))
        return result

    def _user(self, ctx: RunContext[Any]) -> str:
        if callable(self.user):
            return self._members.checked_user(self.user(ctx))
        deps = ctx.deps
        named = deps.get("user_id") if isinstance(deps, Mapping) else getattr(deps, "user_id", None)
        return self._members.checked_user(named)

    def _conversation(self, ctx: RunContext[Any]) -> str:
        return ctx.conversation_id or ctx.run_id or "default"


def _key(ctx: RunContext[Any], number: int) -> str:
    named = (ctx.metadata or {}).get("idempotency_key") or ctx.run_id
    return f"pydantic-ai {named}:{number}"


def _text(prompt: str | Sequence[UserContent] | None) -> str:
    """Return the words of a prompt."""
    if prompt is None or isinstance(prompt, str):
        return prompt or ""
    texts = (part if isinstance(part, str) else getattr(part, "content", None) for part in prompt)
    return "\n".join(text for text in texts if isinstance(text, str))


def _with_memory(given: Sequence[ModelMessage], blocks: MemoryBlocks) -> list[ModelMessage]:
    """Return the messages with the stable block behind the system prompt, and the volatile one before the question."""
    messages = list(given)
    at = max((i for i, message in enumerate(messages) if _asks(message)), default=None)
    if at is None:
        return messages
    head: list[ModelMessage] = []
    first = messages[0]
    system = [part for part in first.parts if isinstance(part, SystemPromptPart)]
    if isinstance(first, ModelRequest) and system and len(system) < len(first.parts):
        head = [replace(first, parts=system)]
        messages[0] = replace(first, parts=[part for part in first.parts if not isinstance(part, SystemPromptPart)])
    elif system:
        head, messages, at = messages[:1], messages[1:], at - 1
    history: list[ModelMessage] = messages[:at] or [_message(said) for said in blocks.recent]
    stable, volatile = _block(blocks.stable), _block(blocks.volatile)
    return [*head, *stable, *history, *volatile, *messages[at:]]


def _asks(message: ModelMessage) -> bool:
    return isinstance(message, ModelRequest) and any(isinstance(part, UserPromptPart) for part in message.parts)


def _block(text: str) -> list[ModelMessage]:
    return [ModelRequest(parts=[UserPromptPart(text)])] if text else []


def _message(said: Mapping[str, Any]) -> ModelMessage:
    if said["role"] == "user":
        return ModelRequest(parts=[UserPromptPart(said["content"])])
    return ModelResponse(parts=[TextPart(said["content"])])


class HoldfastConversationStore(ConversationStore):
    """
    The conversations of one user with their messages as the framework has them, branches and forks included.

    ``delete`` erases the conversation, with what memory learned from it alone.  Erasing the conversation or the user erases
    what is stored here, and so does editing or forgetting a message of the conversation.  A fork has copies of its own.
    While the user pauses memory, conversations stay in this object.

    Args:
        memory: a `Memory` or an `AsyncMemory`.
        user: whose conversations these are.
        org: the tenant.
        bot: the assistant.
    """

    def __init__(self, memory: Memory | AsyncMemory, *, user: str, org: str = "default", bot: str = "default") -> None:
        self._members = AdapterMemory(memory, user=user, org=org, bot=bot)
        self._state = self._members.state("pydantic-ai")

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        """Return the record of a conversation, if there is one."""
        return await in_thread(self._record, conversation_id)

    async def read_records(self, *, scope: str | None = None, limit: int | None = None) -> list[ConversationRecord]:
        """Return the records, newest first."""
        return await in_thread(self._records, scope, limit)

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        """Store a record with its new entries, all or none."""
        await in_thread(self._write, record, list(new_entries), expected_revision)

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        """Erase a conversation, with what was learned from it alone."""
        await in_thread(self._delete, conversation_id, expected_revision)

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        """Return an entry of any conversation of the user."""
        return (await in_thread(self._chain, entry_id, 1))[0]

    async def read_history(self, head_id: str | None, *, limit: int | None = None) -> list[ConversationEntry]:
        """Return the entries up to one, oldest first."""
        return await in_thread(self._chain, head_id, limit)

    def _record(self, conversation_id: str) -> ConversationRecord | None:
        found = self._state.load_named(self._state.scope(conversation_id), [RECORD])
        return _RECORD.validate_json(found[RECORD]) if found else None

    def _records(self, scope: str | None, limit: int | None) -> list[ConversationRecord]:
        homes = [home for home in self._state.homes() if home.conversation]
        found = [raw for home in homes for raw in self._state.load_named(home, [RECORD]).values()]
        records = [_RECORD.validate_json(raw) for raw in found]
        kept = [record for record in records if scope is None or record.scope == scope]
        return sorted(kept, key=lambda record: record.updated_at, reverse=True)[:limit]

    def _write(self, record: ConversationRecord, new: list[ConversationEntry], expected: str | None) -> None:
        scope, known = self._state.scope(record.conversation_id), {entry.id for entry in new}
        own = {row.name.removeprefix(ENTRY) for row in self._state.load(scope, ENTRY, ENTRY + "~")}
        first = new[0].parent_id if new else record.head_id
        if first is not None and first not in own and first not in known:
            try:  # a fork: its conversation is whole when the one that it came from is erased
                new = [*self._chain(first, None), *new]
            except LookupError:
                raise ConversationConflict(record.conversation_id) from None

        def decide(items: ItemsOf) -> StateChange:
            stored = items(RECORD, RECORD + "\x01")
            revision = _RECORD.validate_json(stored[0].value).revision if stored else None
            if revision != expected:
                raise ConversationConflict(record.conversation_id)
            written = {ENTRY + entry.id: _ENTRY.dump_json(entry) for entry in new}
            return StateChange({**written, RECORD: _RECORD.dump_json(record)})

        places = {PLACE + entry.id: record.conversation_id.encode() for entry in new}
        if places:
            self._state.save(self._state.scope(), StateChange(places, keep=True))
        self._state.change(scope, decide)

    def _delete(self, conversation_id: str, expected: str) -> None:
        stored = self._record(conversation_id)
        if stored is None or stored.revision != expected:
            raise ConversationConflict(conversation_id)
        self._members.chat(conversation_id).clear()
        self._state.remove(self._state.scope(conversation_id))

    def _chain(self, entry_id: str | None, limit: int | None) -> list[ConversationEntry]:
        """Return the entries up to one, at most *limit*; those of one conversation are read at once."""
        found, entries, looked = list[ConversationEntry](), dict[str, ConversationEntry](), set[str]()
        while entry_id is not None and (limit is None or len(found) < limit):
            if entry_id not in entries:
                for home in self._homes_of(entry_id):
                    if home not in looked:
                        looked.add(home)
                        rows = self._state.load(self._state.scope(home), ENTRY, ENTRY + "~")
                        read = (_ENTRY.validate_json(row.value) for row in rows)
                        entries.update({entry.id: entry for entry in read})
                    if entry_id in entries:
                        break
                else:
                    raise LookupError(entry_id)
            found.append(entries[entry_id])
            entry_id = found[-1].parent_id
        return found[::-1]

    def _homes_of(self, entry_id: str) -> list[str]:
        """Return the conversations that may hold an entry, the likeliest first: forks of an erased one hold it, too."""
        named = self._state.load_named(self._state.scope(), [PLACE + entry_id])
        all_homes = (record.conversation_id for record in self._records(None, None))
        return [*(raw.decode() for raw in named.values()), *all_homes]
