"""
The classes of mem0 over a `Memory`: ``from holdfast.compat.mem0 import Memory, MemoryClient`` and their async twins.

What is added are messages of a conversation; what is returned are the facts that rest on them, in mem0's shape.  A
``user_id`` is a user, a ``run_id`` one of the user's conversations.  An id of a memory says whose it is, so no call
looks through several users.
"""

from __future__ import annotations

import functools
import hashlib
import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qsl, urlencode

from .. import memory as doors
from ..errors import BadInput, Conflict, NotFound
from ..integrations.common import AdapterMemory, FrameworkState, StateChange, in_thread, short_key
from ..reports import Receipt
from ..text import dataclass
from ..text.validate import checked_count, replace_unstorable
from ..types import BY_HAND_CONVERSATION, Fact, FactChange, Message
from ..user import User
from . import NAMES, decode, encode, matches, names_in

log = logging.getLogger("holdfast")

DEFAULT_STORE = "holdfast.db"
SPACE = "mem0"
PREFIX = "mem0?"
PLAIN = "mem0"
CATEGORY = "note"
MAX_PART = 20  # messages of one append; more of them would be an import, which is read in the background
EVENTS = {"new": "ADD", "joined": "ADD", "replaced": "UPDATE", "retracted": "DELETE", "confirmed": "NONE"}
_UNSET: Any = object()
_PROVIDERS = {"openai": "openai", "anthropic": "anthropic", "gemini": "google", "ollama": "ollama"}
Row = dict[str, Any]


class MemoryNotFoundError(NotFound, ValueError):
    """There is no memory with this id."""


@dataclass(frozen=True, slots=True)
class Names:
    """The user, run, agent and app of a call, by mem0's names."""

    user_id: str | None = None
    agent_id: str | None = None
    app_id: str | None = None
    run_id: str | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Names:
        """Return the names among *given*; numbers are taken as text."""
        found = {name: str(given[name]).strip() for name in NAMES if given.get(name) is not None}
        if empty := [name for name, value in found.items() if not value]:
            raise BadInput(f"{empty[0]} is empty", hint="leave it out, or give a name")
        if not found:
            raise BadInput("at least one of 'user_id', 'agent_id', 'run_id' is needed", hint="whose memory is it?")
        if found.get("user_id", "").startswith(PREFIX):
            raise BadInput(f"a user_id must not begin with {PREFIX!r}")
        return cls(**found)

    @property
    def owner(self) -> str:
        """The user; an agent, an app or a run that is named without one counts as a user."""
        if self.user_id:
            return self.user_id
        first = next(name for name in NAMES if getattr(self, name))
        return PREFIX + urlencode({first: getattr(self, first)})

    @property
    def conversation(self) -> str:
        """The name of the conversation; a run that is named alone gives it."""
        inner = {name: getattr(self, name) for name in NAMES[1:] if getattr(self, name)}
        if not inner:
            return PLAIN
        if list(inner) == ["run_id"] and not self.run_id.startswith(PLAIN):  # type: ignore[union-attr]
            return str(self.run_id)
        return PREFIX + urlencode(inner)

    @staticmethod
    def fields(owner: str, conversation: str) -> dict[str, str]:
        """Return mem0's names for a user and a conversation."""
        found = dict(parse_qsl(owner[len(PREFIX) :])) if owner.startswith(PREFIX) else {"user_id": owner}
        if conversation.startswith(PREFIX):
            return found | dict(parse_qsl(conversation[len(PREFIX) :]))
        inner = conversation not in (PLAIN, BY_HAND_CONVERSATION, "")
        return found | ({"run_id": conversation} if inner else {})


class Mem0Memory:
    """
    mem0's ``Memory``.

    Args:
        config: a mapping as mem0 takes it, of which ``llm`` is used and ``holdfast`` names the store; or a `holdfast.Memory`.
        org: the tenant.
        bot: the assistant.
    """

    def __init__(self, config: Any = None, *, org: str = "default", bot: str = "default") -> None:
        self._owned = not isinstance(config, doors.Memory)
        self._memory = config if isinstance(config, doors.Memory) else _opened(config)
        self._members = AdapterMemory(self._memory, org=org, bot=bot)
        self._state = FrameworkState(self._members, SPACE)

    @classmethod
    def from_config(cls, config_dict: Any) -> Mem0Memory:
        """Open a memory with mem0's configuration."""
        return cls(config_dict)

    def __enter__(self) -> Mem0Memory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the memory, unless it was given."""
        if self._owned:
            self._memory.close()

    def add(
        self,
        messages: Any,
        *,
        user_id: Any = None,
        agent_id: Any = None,
        app_id: Any = None,
        run_id: Any = None,
        metadata: Mapping[str, Any] | None = None,
        filters: Mapping[str, Any] | None = None,
        timestamp: Any = None,
        expiration_date: Any = None,
        infer: bool = True,
        **other: Any,
    ) -> dict[str, list[Row]]:
        """
        Store messages, each once, and return the memories that they changed.

        What repeats the end of the conversation is stored already: a program may add the whole chat after each turn.
        ``infer=False`` keeps each message as one memory, in its words.
        """
        _note_unused("add", other)
        given = {"user_id": user_id, "agent_id": agent_id, "app_id": app_id, "run_id": run_id}
        names = Names.of(_filters(filters, given))
        texts = _as_messages(messages, _time_of(timestamp))
        extra = {"metadata": _own(metadata), "expiration_date": _day(expiration_date)}
        if not infer:
            return {"results": self._kept(names, texts, extra, _time_of(timestamp))}
        changes = [change for receipt in self._appended(names, texts) for change in receipt.changes]
        self._note(names, [change.fact for change in changes if change.fact], extra)
        return {"results": [row for change in changes if (row := _result(names.owner, change))]}

    def _appended(self, names: Names, messages: list[Message]) -> Iterator[Receipt]:
        """Append the messages that the end of the conversation does not hold yet."""
        chat = self._members.chat(names.conversation, names.owner)
        stored = [(one.role, one.content) for one in chat.load(last=len(messages))] if messages else []
        given = [(one.role, one.content) for one in messages]
        known = max(size for size in range(len(stored) + 1) if stored[len(stored) - size :] == given[:size])
        state = chat.state()
        begin = 0 if state is None else state.messages
        fresh = messages[known:]
        for first in range(0, len(fresh), MAX_PART):
            part = fresh[first : first + MAX_PART]
            said = hashlib.sha256(json.dumps([(one.role, one.content) for one in part]).encode()).hexdigest()
            yield chat.append(part, idempotency_key=short_key("mem0", begin + first, said))

    def _kept(self, names: Names, messages: list[Message], extra: Row, at: datetime | None) -> list[Row]:
        """Keep each message as a memory in its words."""
        user, found = self._user(names.owner), []
        for message in messages:
            if not message.content.strip() or user.status().state != "active":
                continue
            key = hashlib.sha256(f"{names.conversation} {message.content}".encode()).hexdigest()[:16]
            change = user.remember(message.content, category=CATEGORY, key=key, value=message.content, at=at)
            if change.fact is None:
                continue
            self._note(names, [change.fact], {**extra, "names": names.conversation, "role": message.role})
            row = _result(names.owner, change) or _event(names.owner, change.fact, "NONE")
            found.append({**row, "memory": message.content, "role": message.role, "actor_id": message.name})
        return found

    def _note(self, names: Names, facts: Sequence[Fact], extra: Row) -> None:
        """Store the metadata that a program gave with facts, until they or the user are erased."""
        held = {key: value for key, value in extra.items() if value}
        if held and facts:
            change = {fact.id: json.dumps(held).encode() for fact in facts}
            self._state.save(self._state.scope(None, names.owner), StateChange(change))

    def get(self, memory_id: str) -> Row | None:
        """Return a memory as it is now; ``None`` when there is none of this id."""
        try:
            owner, fact = self._found(memory_id)
        except MemoryNotFoundError:
            return None
        return {**_shown(self._rows(owner, [fact])[0]), "id": memory_id}

    def get_all(
        self,
        *,
        filters: Mapping[str, Any] | None = None,
        top_k: int | None = 20,
        show_expired: bool = False,
        **other: Any,
    ) -> dict[str, list[Row]]:
        """Return the memories that match the filters, the newest first."""
        wanted, top_k = _filters(filters, other), other.pop("limit", top_k)
        _note_unused("get_all", other)
        rows = [row for owner in _owners(wanted) for row in self._rows(owner, self._user(owner).facts())]
        rows = [row for row in rows if _meant(row, wanted, show_expired)]
        rows.sort(key=lambda row: (row["created_at"], row["id"]), reverse=True)
        return {"results": [_shown(row) for row in rows[: _count(top_k)]]}

    def search(
        self,
        query: str,
        *,
        top_k: int | None = 20,
        filters: Mapping[str, Any] | None = None,
        threshold: float | None = 0.1,
        rerank: bool = False,
        show_expired: bool = False,
        **other: Any,
    ) -> dict[str, list[Row]]:
        """Return the memories that answer a question, best first; the score is how surely, from 0 to 1."""
        if not isinstance(query, str) or not query.strip():
            raise BadInput("Invalid query: must be a non-empty string.")
        wanted, most = _filters(filters, other), _count(other.pop("limit", top_k))
        _note_unused("search", other)
        rows = []
        for owner in _owners(wanted):
            user = self._user(owner)
            hits = user.search(query, kinds=("fact",), limit=max(most or 0, 20) * 4, min_relevance=threshold or 0.0)
            scores = {hit.id: hit.relevance for hit in hits}
            facts = [fact for fact in user.facts() if fact.id in scores] if scores else []
            for fact, row in zip(facts, self._rows(owner, facts), strict=True):
                rows.append({**row, "score": round(scores[fact.id], 4)})
        rows = [row for row in rows if _meant(row, wanted, show_expired)]
        rows.sort(key=lambda row: (-row["score"], row["id"]))
        return {"results": [_shown(row) for row in rows[:most]]}

    def update(
        self,
        memory_id: str,
        text: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        expiration_date: Any = _UNSET,
        data: Any = None,
        **other: Any,
    ) -> Row:
        """Replace the words or the metadata of a memory; its id stays."""
        _note_unused("update", other)
        words = text if text is not None else data
        if words is None and metadata is None and expiration_date is _UNSET:
            raise BadInput("At least one of text, metadata, or expiration_date must be provided.")
        owner, fact = self._found(memory_id)
        scope = self._state.scope(None, owner)
        held = json.loads(self._state.load_named(scope, [fact.id]).get(fact.id, b"{}"))
        if words is not None and words != fact.text:
            said = [said.conversation for said in fact.evidence if said.conversation != BY_HAND_CONVERSATION]
            held.setdefault("names", said[0] if said else PLAIN)
            fact = self._reworded(owner, fact, str(words))
        if metadata is not None:
            held["metadata"] = {**(held.get("metadata") or {}), **_own(metadata)}
        if expiration_date is not _UNSET:
            held["expiration_date"] = _day(expiration_date)
        if held:
            self._state.save(scope, StateChange({fact.id: json.dumps(held).encode()}))
        return {"message": "Memory updated successfully!"}

    def _reworded(self, owner: str, fact: Fact, words: str) -> Fact:
        """Change the words of a fact: write a new value at its address, or a new memory in its place."""
        user = self._user(owner)
        before, found, after = fact.text.partition(fact.value or fact.text)
        framed = found and words.startswith(before) and words.endswith(after) and len(words) > len(before + after)
        if fact.kind != "attribute" or framed or fact.category == CATEGORY:
            value = words[len(before) : len(words) - len(after)] if framed else words
            return _written(user.correct(fact.id, value=value))
        kept = _written(user.remember(words, category=CATEGORY, key=fact.id, value=words))
        user.never_true(fact.id)
        link = {fact.id: json.dumps({"now": kept.id}).encode()}
        self._state.save(self._state.scope(None, owner), StateChange(link))
        return kept

    def delete(self, memory_id: str, **_other: Any) -> Row:
        """Erase a memory with the words that it rests on."""
        self._forget(*self._found(memory_id))
        return {"message": "Memory deleted successfully!"}

    def _forget(self, owner: str, fact: Fact) -> None:
        """Erase a fact, the facts that it replaced, and their metadata."""
        scope = self._state.scope(None, owner)
        for version in self._versions(owner, fact):
            self._user(owner).forget(version.id)
            self._state.remove(scope, version.id, version.id + "\x01")

    def delete_all(
        self,
        user_id: Any = None,
        agent_id: Any = None,
        run_id: Any = None,
        app_id: Any = None,
        filters: Mapping[str, Any] | None = None,
    ) -> Row:
        """Erase what is held of a user, or of one of the user's runs or agents."""
        given = {"user_id": user_id, "agent_id": agent_id, "app_id": app_id, "run_id": run_id}
        names = Names.of(_filters(filters, given))
        fields = Names.fields(names.owner, names.conversation)
        user = self._user(names.owner)
        if fields == Names.fields(names.owner, PLAIN):
            user.erase()
            return {"message": "Memories deleted successfully!"}
        for state in user.overview():
            if matches(fields, Names.fields(names.owner, state.conversation)):
                self._members.chat(state.conversation, names.owner).clear()
        facts = user.facts()
        for fact, row in zip(facts, self._rows(names.owner, facts), strict=True):
            if any(matches(fields, one) for one in row["_names"]):
                self._forget(names.owner, fact)
        return {"message": "Memories deleted successfully!"}

    def history(self, memory_id: str) -> list[Row]:
        """Return what a memory said, from its first words to its last."""
        owner, fact = self._found(memory_id, live=False)
        versions = self._versions(owner, fact)
        links = [(None, versions[0]), *pairwise(versions)]
        rows = [_change_row(owner, memory_id, old, new) for old, new in links]
        if not fact.live:
            rows.append(_change_row(owner, memory_id, fact, None))
        return rows

    def _versions(self, owner: str, fact: Fact) -> list[Fact]:
        """Return a fact and what it replaced, the oldest first."""
        versions = [fact]
        while earlier := self._version_before(owner, versions[0]):
            versions.insert(0, earlier)
        return versions

    def _version_before(self, owner: str, fact: Fact) -> Fact | None:
        """Return the fact that this one replaced."""
        user = self._user(owner)
        if fact.category == CATEGORY and fact.key.startswith("fact_"):
            with suppress(NotFound):
                return user.fact(fact.key)
        past = user.history(fact.category, fact.key)
        return next((one for one in past if one.superseded_by == fact.id), None)

    def users(self) -> Row:
        """Return the users, agents, apps and runs that have memories of their own."""
        found = []
        for number, owner in enumerate(self._every_user(), start=1):
            (kind, name), *_ = Names.fields(owner, PLAIN).items()
            talks = self._user(owner).overview()
            times = [at for talk in talks for at in (talk.created_at, talk.last_at) if at is not None]
            first, last = (min(times).isoformat(), max(times).isoformat()) if times else (None, None)
            row = {"id": str(number), "name": name, "type": kind.removesuffix("_id")}
            found.append(
                {**row, "created_at": first, "updated_at": last, "total_memories": len(self._user(owner).facts())}
            )
        return {"count": len(found), "next": None, "previous": None, "results": found}

    def reset(self) -> Row | None:
        """Erase every user of this org and this bot."""
        for owner in self._every_user():
            self._user(owner).erase()
        return None

    def _every_user(self) -> list[str]:
        found, after = list[str](), None
        while page := self._memory.admin.users(limit=1_000, after=after):
            after = page[-1]
            found += [user for org, user, bot in page if (org, bot) == (self._members.org, self._members.bot)]
        return found

    def _user(self, owner: str) -> User:
        return self._memory.user(owner, org=self._members.org, bot=self._members.bot)

    def _found(self, given: str, *, live: bool = True) -> tuple[str, Fact]:
        """Return whose fact an id means now, and the fact: what has replaced the one that it named."""
        owner, fact_id = decode(given, 1, tail=True) or ("", "")
        if not owner:
            raise MemoryNotFoundError(f"Memory with id {str(given)[:200]} not found", hint="get_all() returns the ids")
        user, scope, seen = self._user(owner), self._state.scope(None, owner), set[str]()
        try:
            fact = user.fact(fact_id)
            while not fact.live and fact.id not in seen:
                seen.add(fact.id)
                held = json.loads(self._state.load_named(scope, [fact.id]).get(fact.id, b"{}"))
                follower = held.get("now") or fact.superseded_by
                if not follower:
                    break
                fact = user.fact(follower)
        except NotFound:
            raise MemoryNotFoundError(
                f"Memory with id {given[:200]} not found", hint="get_all() returns the ids"
            ) from None
        if live and not fact.live:
            raise MemoryNotFoundError(f"Memory with id {given[:200]} not found", hint="history() says what it was")
        return owner, fact

    def _rows(self, owner: str, facts: Sequence[Fact]) -> list[Row]:
        """Return facts in mem0's shape; ``_names`` are those of each conversation that states one."""
        held = self._state.load_named(self._state.scope(None, owner), [fact.id for fact in facts])
        return [_row(owner, fact, json.loads(held.get(fact.id, b"{}"))) for fact in facts]


def _row(owner: str, fact: Fact, held: Row) -> Row:
    said = [said.conversation for said in fact.evidence if said.conversation != BY_HAND_CONVERSATION]
    names = [Names.fields(owner, conversation) for conversation in dict.fromkeys(said or [held.get("names", PLAIN)])]
    times = [said.at for said in fact.evidence if said.at is not None] or [fact.recorded_at]
    row = {
        "id": encode(owner, tail=fact.id),
        "memory": fact.text,
        "hash": hashlib.md5(fact.text.encode(), usedforsecurity=False).hexdigest(),
        "metadata": held.get("metadata") or None,
        "created_at": min(times).isoformat(),
        "updated_at": max(times).isoformat(),
        **names[0],
        "categories": [fact.category],
        "_names": names,
    }
    return row | {key: held[key] for key in ("expiration_date", "role") if held.get(key)}


def _shown(row: Row) -> Row:
    return {key: value for key, value in row.items() if key != "_names"}


def _meant(row: Row, wanted: Mapping[str, Any], show_expired: bool) -> bool:
    if not show_expired and str(row.get("expiration_date", "9")) < datetime.now(UTC).date().isoformat():
        return False
    bare = {key: value for key, value in row.items() if key not in NAMES}
    return any(matches(wanted, {**bare, **names}) for names in row["_names"])


def _written(change: FactChange) -> Fact:
    """Return the fact of a change that was made."""
    if change.op == "rejected" or change.fact is None:
        raise Conflict(f"nothing was written: {change.reason}", hint="a user who paused memory is not written about")
    return change.fact


def _result(owner: str, change: FactChange) -> Row | None:
    event = EVENTS.get(change.op, "NONE")
    if change.fact is None or event == "NONE":
        return None
    row = _event(owner, change.fact, event)
    return row if change.previous is None else {**row, "previous_memory": change.previous.text}


def _event(owner: str, fact: Fact, event: str) -> Row:
    return {"id": encode(owner, tail=fact.id), "memory": fact.text, "event": event}


def _change_row(owner: str, given: str, old: Fact | None, new: Fact | None) -> Row:
    now = new or old
    assert now is not None
    event = "DELETE" if new is None else "ADD" if old is None else "UPDATE"
    changed = (now.valid_to or now.recorded_at) if new is None else now.recorded_at
    return {
        "id": f"{given}:{event.lower()}:{now.id}",
        "memory_id": given,
        "user_id": Names.fields(owner, PLAIN).get("user_id"),
        "input": [{"role": said.role, "content": said.quote} for said in now.evidence],
        "old_memory": old.text if old else None,
        "new_memory": new.text if new else None,
        "event": event,
        "created_at": now.recorded_at.isoformat(),
        "updated_at": changed.isoformat(),
        "is_deleted": new is None,
        "actor_id": None,
        "role": now.evidence[0].role if now.evidence else None,
    }


def _opened(config: Any) -> doors.Memory:
    """Open the store and the model that a configuration names; ignore its other keys."""
    given = dict(config) if isinstance(config, Mapping) else {}
    own = given.pop("holdfast", None)
    place = own if isinstance(own, str) else os.environ.get("HOLDFAST_STORE", DEFAULT_STORE)
    asked = given.pop("llm", None) or {}
    provider, model = asked.get("provider"), (asked.get("config") or {}).get("model")
    llm = f"{_PROVIDERS[provider]}:{model}" if provider in _PROVIDERS and model else None
    _note_unused("Memory", given)
    return doors.Memory(place, llm=llm, background=True)


def _note_unused(call: str, other: Mapping[str, Any]) -> None:
    if names := sorted(key for key, value in other.items() if value is not None):
        log.info("%s of mem0: %s is not used here", call, ", ".join(names)[:200])


def _as_messages(given: Any, at: datetime | None) -> list[Message]:
    """Return the messages that a program adds, without system instructions."""
    if isinstance(given, str):
        given = [{"role": "user", "content": given}]
    elif isinstance(given, Mapping):
        given = [given]
    elif not isinstance(given, list | tuple):
        raise BadInput("messages must be str, dict, or list[dict]", hint=f"not {type(given).__name__}")
    found = []
    for one in given:
        if not isinstance(one, Mapping) or not isinstance(one.get("role"), str):
            raise BadInput("a message must be a mapping with role and content")
        content = one.get("content")
        if isinstance(content, list):
            content = "\n".join(
                part["text"] for part in content if isinstance(part, Mapping) and isinstance(part.get("text"), str)
            )
        if one["role"] in ("user", "assistant") and isinstance(content, str) and content.strip():
            name = one.get("name")
            found.append(
                Message(
                    one["role"],
                    replace_unstorable(content),
                    name=name if isinstance(name, str) and name else None,
                    at=at,
                )
            )
    return found


def _time_of(timestamp: Any) -> datetime | None:
    if timestamp is None:
        return None
    try:
        if isinstance(timestamp, int | float):
            return datetime.fromtimestamp(timestamp, UTC)
        found = datetime.fromisoformat(str(timestamp))
    except (ValueError, OverflowError, OSError):
        raise BadInput("timestamp must be a Unix time or an ISO 8601 text") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _day(given: Any) -> str | None:
    if given is None:
        return None
    try:
        found = given if isinstance(given, date) else date.fromisoformat(str(given)[:10])
    except ValueError:
        raise BadInput("expiration_date must be a valid date in YYYY-MM-DD format.") from None
    return (found.date() if isinstance(found, datetime) else found).isoformat()


def _own(metadata: Mapping[str, Any] | None) -> Row:
    if metadata is None:
        return {}
    if not isinstance(metadata, Mapping):
        raise BadInput("metadata must be a mapping")
    found = {str(key): value for key, value in metadata.items() if key not in NAMES}
    try:
        json.dumps(found)
    except (TypeError, ValueError):
        raise BadInput("metadata must be what JSON can hold") from None
    return found


def _filters(filters: Mapping[str, Any] | None, other: Row) -> Mapping[str, Any]:
    """Return the filters; releases before 2 gave the names beside them."""
    if filters is not None and not isinstance(filters, Mapping):
        raise BadInput("filters must be a mapping", hint='write {"user_id": "…"}')
    beside = {name: other.pop(name) for name in NAMES if name in other}
    return {**(filters or {}), **{name: str(value).strip() for name, value in beside.items() if value is not None}}


def _owners(wanted: Mapping[str, Any]) -> list[str]:
    return list(dict.fromkeys(Names.of(names).owner for names in names_in(wanted)))


def _count(top_k: Any) -> int | None:
    if top_k is None:
        return None
    if isinstance(top_k, bool) or not isinstance(top_k, int) or top_k < 0:
        raise BadInput("Invalid top_k: must be a non-negative integer.")
    return top_k


class Mem0Client(Mem0Memory):
    """mem0's ``MemoryClient``, over a store of this machine: the key is not needed."""

    def __init__(self, api_key: str | None = None, host: str | None = None, client: Any = None, **more: Any) -> None:
        if host is not None or client is not None:
            raise BadInput(
                "this client asks no server",
                hint="give host=… to mem0ai's own MemoryClient: `holdfast serve` answers it",
            )
        super().__init__(more.pop("memory", None), **more)

    def add(self, messages: Any, options: Any = None, **given: Any) -> dict[str, list[Row]]:
        """Store messages, each once, and return the memories that they changed."""
        return super().add(messages, **_with(options, given))

    def search(self, query: str, options: Any = None, **given: Any) -> dict[str, list[Row]]:
        """Return the memories that answer a question, best first."""
        return super().search(query, **_with(options, given))

    def get_all(self, options: Any = None, *, page: int = 1, page_size: int = 100, **given: Any) -> Row:
        """Return one page of the memories, the newest first."""
        given = {"top_k": None, **_with(options, given)}
        page, page_size = given.pop("page", page), given.pop("page_size", page_size)
        page, page_size = checked_count("page", page), checked_count("page_size", page_size)
        rows = super().get_all(**given)["results"]
        start, end = (page - 1) * page_size, page * page_size
        address = "/v3/memories/?page={}&page_size={}".format
        following = address(page + 1, page_size) if end < len(rows) else None
        previous = address(page - 1, page_size) if page > 1 else None
        return {"count": len(rows), "next": following, "previous": previous, "results": rows[start:end]}

    def get(self, memory_id: str) -> Row:
        """Return a memory as it is now."""
        found = super().get(memory_id)
        if found is None:
            raise MemoryNotFoundError(
                f"Memory with id {str(memory_id)[:200]} not found", hint="get_all() returns the ids"
            )
        return found

    def update(self, memory_id: str, options: Any = None, **given: Any) -> Row:  # type: ignore[override]
        """Replace the words or the metadata of a memory, and return it."""
        super().update(memory_id, **_with(options, given))
        return self.get(memory_id)

    def delete_all(self, options: Any = None, **given: Any) -> Row:  # type: ignore[override]
        """Erase what is held of a user, or of one of the user's runs or agents."""
        return super().delete_all(**_with(options, given))

    def delete_users(self, user_id: Any = None, agent_id: Any = None, app_id: Any = None, run_id: Any = None) -> Row:
        """Erase a user, an agent, an app or a run; every user when none is named."""
        named = {"user_id": user_id, "agent_id": agent_id, "app_id": app_id, "run_id": run_id}
        if not any(named.values()):
            super().reset()
            return {"message": "All users, agents, apps and runs deleted."}
        self.delete_all(**{name: value for name, value in named.items() if value})
        return {"message": "Entity deleted successfully."}

    def reset(self) -> Row:
        """Erase every user."""
        super().reset()
        return {"message": "Client reset successful. All users and memories deleted."}

    def batch_update(self, memories: Sequence[Mapping[str, Any]]) -> Row:
        """Update several memories."""
        for one in _checked_batch(memories):
            self.update(one["memory_id"], **{key: value for key, value in one.items() if key != "memory_id"})
        return {"message": f"Successfully updated {len(memories)} memories"}

    def batch_delete(self, memories: Sequence[Mapping[str, Any]]) -> Row:
        """Erase several memories."""
        for one in _checked_batch(memories):
            self.delete(one["memory_id"])
        return {"message": f"Successfully deleted {len(memories)} memories"}


def _checked_batch(memories: Any) -> list[Row]:
    if not isinstance(memories, list | tuple) or not all(
        isinstance(one, Mapping) and "memory_id" in one for one in memories
    ):
        raise BadInput("memories must be a list of mappings with memory_id")
    return [dict(one) for one in memories]


def _with(options: Any, given: Row) -> Row:
    """Return the arguments of a call; mem0's own options are a model of pydantic."""
    if options is None:
        return given
    found = dict(options) if isinstance(options, Mapping) else options.model_dump(exclude_unset=True)
    return {**found, **given}


def _asynchronous(name: str, kind: type, calls: Sequence[str]) -> type:
    """Return the twin of a class whose *calls* run in a worker thread."""

    def begin(self: Any, *given: Any, **more: Any) -> None:
        self._sync = kind(*given, **more)

    def awaited(call: str) -> Callable[..., Any]:
        @functools.wraps(getattr(kind, call))
        async def run(self: Any, *given: Any, **more: Any) -> Any:
            return await in_thread(getattr(self._sync, call), *given, **more)

        return run

    async def enter(self: Any) -> Any:
        return self

    async def leave(self: Any, *_: object) -> None:
        await in_thread(self._sync.close)

    parts: dict[str, Any] = {call: awaited(call) for call in calls}
    parts |= {"__init__": begin, "__aenter__": enter, "__aexit__": leave, "__doc__": f"mem0's ``{name}``."}
    parts["close"] = lambda self: self._sync.close()
    return type(name, (), parts)


_CALLS = ("add", "get", "get_all", "search", "update", "delete", "delete_all", "history", "users", "reset")
Memory, MemoryClient = Mem0Memory, Mem0Client
AsyncMemory = _asynchronous("AsyncMemory", Mem0Memory, _CALLS)
AsyncMemory.from_config = classmethod(lambda cls, config_dict: cls(config_dict))  # type: ignore[attr-defined]
AsyncMemoryClient = _asynchronous(
    "AsyncMemoryClient", Mem0Client, (*_CALLS, "delete_users", "batch_update", "batch_delete")
)
