"""LiteLLM's ``/v1/memory``: texts of a user under keys, each of which is a fact here, found by questions like any other."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ..errors import BadInput, Conflict, NotFound
from ..integrations.common import AdapterMemory, FrameworkState, StateChange
from ..memory import Memory
from ..types import Fact

Row = dict[str, Any]
CATEGORY = "memory"
SPACE = "litellm"
MAX_METADATA_CHARS = 10_000


class KeyValueMemory:
    """
    The texts of one user under keys.

    Args:
        memory: the memory.
        user: whose texts they are.
        org: the tenant.
        bot: the assistant.
    """

    def __init__(self, memory: Memory, *, user: str, org: str = "default", bot: str = "default") -> None:
        members = AdapterMemory(memory, user=user, org=org, bot=bot)
        self._name = members.checked_user()
        self._user = memory.user(self._name, org=org, bot=bot)
        self._state = FrameworkState(members, SPACE)

    def create(self, body: Mapping[str, Any]) -> Row:
        """
        Store a text under a new key.

        Raises:
            Conflict: there is a text under the key.
        """
        key = _text(body, "key")
        if self._find(key) is not None:
            raise Conflict(f"Memory with key '{key}' already exists.", hint="PUT /v1/memory/{key} replaces it")
        return self._store(key, _text(body, "value"), body)

    def page(self, key: str | None, key_prefix: str | None, search: str | None, page: int, page_size: int) -> Row:
        """Return one page of the texts, the newest first; *search* is the beginning of a key, or an id."""
        found = self._user.facts(CATEGORY)
        if search is not None:
            found = [fact for fact in found if fact.key.startswith(search) or fact.id == search]
        elif key_prefix is not None:
            found = [fact for fact in found if fact.key.startswith(key_prefix)]
        elif key is not None:
            found = [fact for fact in found if fact.key == key]
        found.sort(key=lambda fact: (fact.recorded_at, fact.id), reverse=True)
        return {"memories": self._rows(found[(page - 1) * page_size : page * page_size]), "total": len(found)}

    def get(self, key: str) -> Row:
        """
        Return the text under a key.

        Raises:
            NotFound: there is none.
        """
        return self._rows([self._existing(key)])[0]

    def put(self, key: str, body: Mapping[str, Any]) -> Row:
        """
        Replace the text or the metadata under a key, or store them.

        Raises:
            BadInput: there is none, and no text is given.
        """
        fact = self._find(key)
        if fact is None or body.get("value") is not None:
            return self._store(key, _text(body, "value"), body, fact)
        self._note(fact, body, fact)
        return self._rows([fact])[0]

    def delete(self, key: str) -> Row:
        """
        Erase the text under a key, and the texts that it replaced.

        Raises:
            NotFound: there is none.
        """
        self._existing(key)
        for fact in self._user.history(CATEGORY):
            if fact.key == key:
                with suppress(NotFound):  # it went with an earlier one of the same words
                    self._user.forget(fact.id)
        self._state.save(self._state.scope(), StateChange({}, remove=[(key, key + "\x00")]))
        return {"key": key, "deleted": True}

    def _find(self, key: str) -> Fact | None:
        return next((fact for fact in self._user.facts(CATEGORY) if fact.key == key), None)

    def _existing(self, key: str) -> Fact:
        fact = self._find(key)
        if fact is None:
            raise NotFound(f"Memory with key '{key[:200]}' not found", hint="GET /v1/memory lists them")
        return fact

    def _store(self, key: str, value: str, body: Mapping[str, Any], old: Fact | None = None) -> Row:
        _checked(body.get("metadata"))
        change = self._user.remember(category=CATEGORY, key=key, value=value)
        if change.fact is None:
            raise Conflict(
                f"nothing is stored: {change.reason}", hint="the user may have paused memory, or refused this"
            )
        self._note(change.fact, body, old)
        return self._rows([change.fact])[0]

    def _note(self, fact: Fact, body: Mapping[str, Any], old: Fact | None = None) -> None:
        """Keep what the program gave with a text, and when its first words were stored."""
        held = self._held(fact.key) if old else {}  # what a forgotten text left goes with it
        held.setdefault("created_at", (old or fact).recorded_at.isoformat())
        if body.get("metadata") is not None:
            held["metadata"] = _checked(body["metadata"])
        self._state.save(self._state.scope(), StateChange({fact.key: json.dumps(held).encode()}))

    def _held(self, key: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._state.load_named(self._state.scope(), [key]).get(key, b"{}"))
        return found

    def _rows(self, facts: list[Fact]) -> list[Row]:
        held = self._state.load_named(self._state.scope(), [fact.key for fact in facts])
        return [self._row(fact, json.loads(held.get(fact.key, b"{}"))) for fact in facts]

    def _row(self, fact: Fact, held: Row) -> Row:
        at = fact.recorded_at.isoformat()
        return {
            "memory_id": fact.id,
            "key": fact.key,
            "value": fact.value,
            "metadata": held.get("metadata"),
            "user_id": self._name,
            "team_id": None,
            "created_at": held.get("created_at", at),
            "created_by": self._name,
            "updated_at": at,
            "updated_by": self._name,
        }


def _text(body: Mapping[str, Any], name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str) or not value.strip():
        raise BadInput(f"{name} is missing", hint=f'give "{name}" as text')
    return value


def _checked(metadata: Any) -> Any:
    length = len(json.dumps(metadata))
    if length > MAX_METADATA_CHARS:
        raise BadInput(f"the metadata are {length} characters long; at most {MAX_METADATA_CHARS} are kept")
    return metadata
