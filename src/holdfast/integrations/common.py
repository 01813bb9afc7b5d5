"""
The work of every adapter with a memory: context before a turn, messages after it, the framework's own state in between.

An adapter names users and conversations as its framework does.  What it adds to a prompt is in two blocks: one that stays
the same from turn to turn, to be put first, and one for this question, to be put last.  Neither is ever stored.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import threading
import unicodedata
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, Generic, ParamSpec, TypeVar

from ..aio import AsyncMemory
from ..context.assemble import Until
from ..conversation import Conversation
from ..errors import BadInput, ConfigError, KeyReused
from ..memory import Memory
from ..scope import MAX_NAME_CHARS, SELF, Scope, checked_name
from ..store import END_OF_NAMES, ConsentRow, ItemRow, ReadView, UserRow, WriteView, effective_consent
from ..text import dataclass
from ..text.validate import replace_unstorable
from ..types import Message

log = logging.getLogger("holdfast")

HASHED_NAME_PREFIX = "~"
ITEM = "item"
"""The key of a message's meta that holds the framework's own form of it."""
TEXT = {"$holdfast": "content"}
"""Takes the place of a message's text in that form, so that the text is stored once and an edit reaches it."""
MAX_HELD = 1_000  # conversations whose state is held in this process because their users paused memory
VOLATILE = ("recalled",)

P = ParamSpec("P")
T = TypeVar("T")


def missing_package(framework: str, extra: str, error: ImportError) -> ConfigError:
    """Return the error for a framework that is not installed; it says how to install it."""
    return ConfigError(
        f"{framework} is not installed, or too old: {error.name or error}", hint=f"pip install 'holdfast[{extra}]'"
    )


def conversation_name(framework_id: object) -> str:
    """Return the name of the conversation for a framework's id; an id that cannot be a name is hashed."""
    name = str(framework_id)
    if not name:
        raise BadInput("the conversation has no id", hint="give the framework's thread or session an id")
    valid = len(name) <= MAX_NAME_CHARS and not any(unicodedata.category(char) in ("Cc", "Cs") for char in name)
    if valid and not name.startswith(HASHED_NAME_PREFIX):
        return name
    return HASHED_NAME_PREFIX + hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()


def short_key(*parts: object) -> str:
    """Return an idempotency key from *parts*; a long one is hashed."""
    key = " ".join(str(part) for part in parts)
    clean = len(key) <= MAX_NAME_CHARS and not any(unicodedata.category(char) in ("Cc", "Cs") for char in key)
    return key if clean else hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


_SWITCHES: ContextVar[tuple[bool, bool]] = ContextVar("holdfast_switches", default=(True, True))


@contextmanager
def memory_switches(*, read: bool = True, write: bool = True) -> Iterator[None]:
    """
    Switch reading or writing off for the calls of adapters in the block, and in the tasks and threads that it starts.

        with memory_switches(write=False):
            agent.invoke(…)
    """
    token = _SWITCHES.set((read, write))
    try:
        yield
    finally:
        _SWITCHES.reset(token)


async def in_thread(call: Callable[P, T], *args: P.args, **more: P.kwargs) -> T:
    """Run *call* in a worker thread, to its end even when the caller is canceled: a write is never half known."""
    return await asyncio.shield(asyncio.to_thread(call, *args, **more))


@dataclass(frozen=True, slots=True)
class MemoryBlocks:
    """
    The parts of a prompt that come from memory.

    ``stable`` goes first and changes only when a fact or a summary does; ``volatile`` goes right before the question;
    ``recent`` are the last messages of the conversation, for frameworks that do not hold them.
    """

    stable: str
    volatile: str
    recent: tuple[dict[str, Any], ...]


class AdapterMemory:
    """
    A memory as an adapter uses it, for one org and bot.

    Args:
        memory: a `Memory`, or an `AsyncMemory`, which the first call opens.
        user: whose memory it is where the framework names no user.
        org: the tenant.
        bot: the assistant.
        subject: whom or what the conversations are about, when that is not the user.
        budget_tokens: what the context may cost; ``Config.budget_tokens`` when not given.
        read: ``False`` to store only.
        write: ``False`` to read only.
    """

    def __init__(
        self,
        memory: Memory | AsyncMemory,
        *,
        user: str | None = None,
        org: str = "default",
        bot: str = "default",
        subject: str | None = None,
        budget_tokens: int | None = None,
        read: bool = True,
        write: bool = True,
    ) -> None:
        if not isinstance(memory, Memory | AsyncMemory):
            raise ConfigError(f"a {type(memory).__name__} is not a memory", hint='pass Memory("chat.db")')
        self._memory = memory
        self.user = None if user is None else checked_name("user", user)
        self.org, self.bot = checked_name("org", org), checked_name("bot", bot)
        self.subject, self.budget_tokens = subject, budget_tokens
        self._read, self._write = read, write

    @property
    def read(self) -> bool:
        """Whether memory is shown to the model, here and now."""
        return self._read and _SWITCHES.get()[0]

    @property
    def write(self) -> bool:
        """Whether what is said is stored, here and now."""
        return self._write and _SWITCHES.get()[1]

    @property
    def memory(self) -> Memory:
        """The memory; an `AsyncMemory` is opened, so call this in a worker thread."""
        return self._memory._sync if isinstance(self._memory, AsyncMemory) else self._memory

    def checked_user(self, user: object = None) -> str:
        """
        Return the user that the framework names, else the adapter's own.

        Raises:
            BadInput: there is neither.
        """
        named = self.user if user is None or user == "" else str(user)
        if named is None:
            raise BadInput(
                "it is not known whose memory this is",
                hint='pass user="…" to the adapter, or name the user in the call',
            )
        return checked_name("user", named)

    def chat(self, conversation: object, user: object = None) -> Conversation:
        """Return the conversation of the framework's id."""
        return self.memory.conversation(
            conversation_name(conversation),
            user=self.checked_user(user),
            org=self.org,
            bot=self.bot,
            subject=self.subject,
        )

    def seq_of(self, conversation: object, key: str, user: object = None) -> int | None:
        """Return the number of the message that was stored under an idempotency key; ``None`` when there is none."""
        scope = self.chat(conversation, user)._scope
        found = self.memory._engine.store.read(scope, lambda view: view.idempotency(short_key(key)))
        return None if found is None else found[1]

    def blocks(
        self, conversation: object, question: str | None, user: object = None, *, turn: str | None = None
    ) -> MemoryBlocks:
        """
        Return what the prompt gets from memory for *question*, stored already or not.

        Nothing when the user does not want memory used.  *turn* is the key of a message of this turn: when it was stored
        by an earlier attempt, that message and what follows it are not shown.
        """
        if not self.read:
            return MemoryBlocks("", "", ())
        chat = self.chat(conversation, user)
        asked = question if question and question.strip() else None
        stored = asked is not None and _ends_with(chat, "user", asked)
        first = None if turn is None or asked is None or stored else self.seq_of(conversation, turn, user)
        context = chat.context(
            None if stored else asked,
            budget_tokens=self.budget_tokens,
            strategy=None if first is None else Until(first),
        )
        stable = [str(message["content"]) for message in context.messages[: context.stable_messages]]
        volatile = [section.text for section in context.sections if section.name in VOLATILE and section.text]
        said = [dict(m) for m in context.messages[context.stable_messages :] if m.get("content") not in volatile]
        if asked is not None and said and (said[-1]["role"], said[-1].get("content")) == ("user", asked):
            said.pop()
        recent = tuple(
            {"role": m["role"], "content": m["content"]}
            for m in said
            if m["role"] in ("user", "assistant") and isinstance(m.get("content"), str) and m["content"]
        )
        return MemoryBlocks("\n\n".join(stable), "\n\n".join(volatile), recent)

    def record(
        self, conversation: object, messages: Iterable[tuple[str | None, Message]], user: object = None
    ) -> list[int]:
        """
        Store ``(key, message)`` pairs in order, each once; return the numbers of those that were new.

        A key that was used before means that the message is stored already, whatever it says now.  What repeats the
        unanswered end of the conversation is the same turn, tried again, and not stored either.
        """
        if not self.write:
            return []
        chat, new = self.chat(conversation, user), list[int]()
        for key, message in messages:
            if message.role == "user" and _ends_with(chat, "user", message.content):
                continue
            try:
                receipt = chat.append(message, idempotency_key=None if key is None else short_key(key))
            except KeyReused:
                log.debug("a message of conversation %s is stored already", chat.id)
                continue
            if not receipt.duplicate:
                new += receipt.seqs
        return new

    def state(self, space: str) -> FrameworkState:
        """Return the store of a framework's own state."""
        return FrameworkState(self, space)


def _ends_with(chat: Conversation, role: str, text: str) -> bool:
    """Whether the last message of a conversation is this one; a turn that is tried again begins so."""
    last = chat.load(last=1)
    return bool(last) and (last[0].role, last[0].content) == (role, replace_unstorable(text))


# The framework's own form of a message, beside its text.


def with_item(role: str, text: str, item: Any, **more: Any) -> Message:
    """Return a message that also holds the framework's own form of it, *item*; its text is stored once."""
    text = replace_unstorable(text)
    return Message(role, text, meta={ITEM: _swap(item, text, TEXT) if text else item, **more})


def item_of(message: Message) -> Any:
    """Return the framework's own form of a stored message; ``None`` when another program stored it."""
    found = message.meta.get(ITEM)
    return None if found is None else _swap(found, TEXT, message.content)


def _swap(value: Any, old: Any, new: Any) -> Any:
    if value == old:
        return new
    if isinstance(value, str):
        return replace_unstorable(value)
    if isinstance(value, Mapping):
        return {key: _swap(inner, old, new) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_swap(inner, old, new) for inner in value]
    return value


# The framework's own state: checkpoints, transcripts, files.


@dataclass(slots=True)
class StateChange:
    """Items to write by name, of which those in ``keep`` stay as they are when they exist, and ranges to delete before."""

    write: Mapping[str, bytes]
    keep: bool = False
    remove: Sequence[tuple[str, str]] = ()
    expires_at: int | None = None


ItemsOf = Callable[[str, str], list[ItemRow]]
"""Returns the items whose names are from the first to before the second."""


@dataclass(slots=True)
class HeldState(Generic[T]):
    """State that is in this process alone, and the user's epoch and choices at its last use."""

    rows: T
    epoch: int
    chosen: list[ConsentRow]

    def is_erased(self, epoch: int, chosen: list[ConsentRow]) -> bool:
        """
        Whether more than a choice has raised the epoch since, which only an erasure does.

        When both may have happened, it counts as erased: the state is then what is stored.
        """
        if self.epoch in (0, epoch):  # 0: nothing was stored of the user
            return False
        return chosen == self.chosen or epoch != self.epoch + 1


def _standing(view: ReadView) -> tuple[int, list[ConsentRow]]:
    return view.user().epoch, list(view.consent())


class FrameworkState:
    """
    Opaque values by name, in a conversation or of a user as a whole.

    They are erased with the conversation, or the user.  While the user pauses memory nothing is written: the state goes on
    in this process, so that the agent works.  A conversation that went on so stays in the process to its end; what is of
    the user as a whole is as it was stored when the user resumes.
    """

    def __init__(self, members: AdapterMemory, space: str) -> None:
        self._members, self._space = members, space
        self._held: OrderedDict[Scope, HeldState[dict[str, ItemRow]]] = OrderedDict()
        self._lock = threading.Lock()

    def scope(self, conversation: object = None, user: object = None) -> Scope:
        """Return the scope of a conversation's state, or of a user's when no conversation is named."""
        members = self._members
        scope = Scope(members.org, members.bot, members.checked_user(user), SELF, "")
        return scope if conversation is None else scope.within(conversation_name(conversation))

    def load(
        self, scope: Scope, first: str = "", stop: str = END_OF_NAMES, *, limit: int | None = None
    ) -> list[ItemRow]:
        """Return the items whose names are from *first* to before *stop*, by name, without those that expired."""
        engine = self._members.memory._engine
        now_ms = engine.now_ms()
        held = self._held_rows(scope)
        if held is not None:
            found = [row for name, row in sorted(held.items()) if first <= name < stop]
        else:
            found = engine.store.read(scope, lambda view: view.items(self._space, first, stop, limit=limit))
        return [row for row in found if row.expires_at is None or row.expires_at > now_ms][:limit]

    def load_named(self, scope: Scope, names: Sequence[str]) -> dict[str, bytes]:
        """Return the values of those of *names* that exist, from one snapshot."""
        held = self._held_rows(scope)
        if held is not None:
            return {name: held[name].value for name in names if name in held}

        def look(view: ReadView) -> dict[str, bytes]:
            found = (view.items(self._space, name, name + "\x01", limit=1) for name in names)
            return {row.name: row.value for rows in found for row in rows}

        return self._members.memory._engine.store.read(scope, look)

    def touch(self, scope: Scope, row: ItemRow, expires_at: int | None) -> None:
        """Give an item another time to expire."""
        row = replace(row, expires_at=expires_at)
        held = self._held_rows(scope)
        if held is not None:
            held[row.name] = row
        else:
            self._members.memory._engine.store.write(scope, lambda view: view.save_item(row))

    def homes(self, user: object = None) -> list[Scope]:
        """Return the scopes of a user that hold state of this kind."""
        scope = self.scope(None, user)
        places = self._members.memory._engine.store.read(scope, lambda view: view.item_homes(self._space))
        stored = [scope.within(conversation) for subject, conversation in places if subject == SELF]
        mine = [one for one in list(self._held) if one.user_key == scope.user_key]
        held = [one for one in mine if self._held_rows(one) is not None]
        return sorted({*stored, *held}, key=_conversation)

    def save(self, scope: Scope, change: StateChange) -> None:
        """Carry out a change in one transaction."""
        self.change(scope, lambda items: change)

    def change(self, scope: Scope, decide: Callable[[ItemsOf], StateChange]) -> None:
        """
        Carry out in one transaction what *decide* makes of the items that are there.

        *decide* may be called again, so it must touch nothing else.
        """
        engine = self._members.memory._engine
        now_ms = engine.now_ms()

        def work(view: WriteView) -> bool:
            if effective_consent(view.consent(), scope.subject) != "active":
                return False
            change = decide(lambda first, stop: view.items(self._space, first, stop))
            if view.user() == UserRow():
                view.save_user(UserRow(epoch=now_ms), now_ms)
            for first, stop in change.remove:
                view.remove_items(self._space, first, stop)
            if change.expires_at is not None:
                view.remove_expired_items(self._space, now_ms)
            for name, value in change.write.items():
                if not (change.keep and view.items(self._space, name, name + "\x01", limit=1)):
                    view.save_item(ItemRow(self._space, name, value, now_ms, now_ms, change.expires_at))
            return True

        if self._held_rows(scope) is not None or not engine.store.write(scope, work):
            self._hold(scope, decide, now_ms)

    def remove(self, scope: Scope, first: str = "", stop: str = END_OF_NAMES) -> None:
        """Delete a range of items, also while memory is paused."""
        if self._held_rows(scope) is not None:
            self._hold(scope, lambda items: StateChange({}, remove=((first, stop),)), 0)
        self._members.memory._engine.store.write(scope, lambda view: view.remove_items(self._space, first, stop))

    def forget_held(self, scope: Scope) -> None:
        """Drop what is held of the conversation, or of all that the scope covers; it was erased."""
        with self._lock:
            _drop_covered(self._held, scope)

    def _held_rows(self, scope: Scope) -> dict[str, ItemRow] | None:
        """Return what is held; nothing when it was erased meanwhile, or is the user's, who has resumed."""
        if scope not in self._held:
            return None
        epoch, chosen = self._members.memory._engine.store.read(scope, _standing)
        with self._lock:
            held = self._held.get(scope)
            if held is None:
                return None
            resumed = not scope.conversation and effective_consent(chosen, scope.subject) == "active"
            if resumed or held.is_erased(epoch, chosen):
                del self._held[scope]
                return None
            held.epoch, held.chosen = epoch, chosen
            return held.rows

    def _hold(self, scope: Scope, decide: Callable[[ItemsOf], StateChange], now_ms: int) -> None:
        """Carry out a change in this process alone."""
        engine = self._members.memory._engine
        stored, standing = engine.store.read(scope, lambda view: (view.items(self._space), _standing(view)))
        engine.eraser.holders.add(self)
        with self._lock:
            held = self._held.setdefault(scope, HeldState({row.name: row for row in stored}, *standing)).rows
            self._held.move_to_end(scope)
            change = decide(lambda first, stop: [row for name, row in sorted(held.items()) if first <= name < stop])
            for first, stop in change.remove:
                for name in [name for name in held if first <= name < stop]:
                    del held[name]
            for name, value in change.write.items():
                before = held.get(name)
                if before is None:
                    held[name] = ItemRow(self._space, name, value, now_ms, now_ms, change.expires_at)
                elif not change.keep:
                    held[name] = replace(before, value=value, updated_at=now_ms, expires_at=change.expires_at)
            while len(self._held) > MAX_HELD:
                self._held.popitem(last=False)


class HeldMessages:
    """
    Messages in a framework's form that are in this process alone, by conversation.

    They are there while a user pauses memory or nothing may be stored, and go when the conversation or the user is erased.
    """

    def __init__(self, members: AdapterMemory) -> None:
        self._members = members
        self._held: OrderedDict[Scope, HeldState[list[Any]]] = OrderedDict()
        self._lock = threading.Lock()

    def is_needed(self, user: object = None) -> bool:
        """Whether messages stay in this process: the user does not want memory, or nothing may be stored."""
        members = self._members
        name = members.checked_user(user)
        found = members.memory.user(name, org=members.org, bot=members.bot, subject=members.subject)
        return not members.write or found.status().state != "active"

    def of(self, conversation: object, user: object = None) -> list[Any]:
        """Return the messages of a conversation; what is added to the list is held."""
        engine = self._members.memory._engine
        scope = self._members.chat(conversation, user)._scope
        epoch, chosen = engine.store.read(scope, _standing)
        engine.eraser.holders.add(self)
        with self._lock:
            held = self._held.get(scope)
            if held is None or held.is_erased(epoch, chosen):
                held = self._held[scope] = HeldState([], epoch, chosen)
            held.epoch, held.chosen = epoch, chosen
            self._held.move_to_end(scope)
            while len(self._held) > MAX_HELD:
                self._held.popitem(last=False)
            return held.rows

    def forget_held(self, scope: Scope) -> None:
        """Drop what is held of all that the scope covers; it was erased."""
        with self._lock:
            _drop_covered(self._held, scope)


def _drop_covered(held: OrderedDict[Scope, Any], scope: Scope) -> None:
    for one in list(held):
        covered = scope.conversation in (None, one.conversation) and scope.subject in (None, one.subject)
        if covered and one.user_key == scope.user_key:
            del held[one]


def _conversation(scope: Scope) -> str:
    return scope.conversation or ""


def snapshot(members: AdapterMemory, scope: Scope, work: Callable[[ReadView], T]) -> T:
    """Run *work* over one snapshot of the scope's user."""
    return members.memory._engine.store.read(scope, work)
