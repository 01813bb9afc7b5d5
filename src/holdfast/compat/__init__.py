"""
The classes of other memories over a `Memory`, so that a program changes an import and nothing else.

Where such a program names a thing without its user, the id says whose it is (`encode`, `decode`), so that no call looks
through others.  `matches` applies the filters of mem0: conditions on the names, the metadata and the times of memories.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..errors import BadInput

NAMES = ("user_id", "agent_id", "app_id", "run_id")
_JOINS = {"AND": all, "OR": any, "NOT": lambda found: not any(found)}

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda held, wanted: held == wanted,
    "ne": lambda held, wanted: held != wanted,
    "in": lambda held, wanted: held in wanted,
    "nin": lambda held, wanted: held not in wanted,
    "gt": lambda held, wanted: held > wanted,
    "gte": lambda held, wanted: held >= wanted,
    "lt": lambda held, wanted: held < wanted,
    "lte": lambda held, wanted: held <= wanted,
    "contains": lambda held, wanted: wanted in held,
    "icontains": lambda held, wanted: str(wanted).casefold() in str(held).casefold(),
}


def encode(*names: str, tail: str = "") -> str:
    """Return the id of what these names lead to, the user's first; *tail* is put behind them as it is."""
    packed = [base64.urlsafe_b64encode(name.encode()).decode().rstrip("=") for name in names]
    return ".".join([*packed, tail] if tail else packed)


def decode(given: object, names: int, *, tail: bool = False) -> tuple[str, ...] | None:
    """Return the names, and the tail, that `encode` was given; ``None`` when it is no such id."""
    found = str(given).split(".", names if tail else -1)
    if len(found) != names + tail or not all(found):
        return None
    try:
        packed = [base64.b64decode(one + "=" * (-len(one) % 4), b"-_", validate=True) for one in found[:names]]
        return (*(one.decode() for one in packed), *found[names:])
    except (binascii.Error, ValueError):
        return None


def names_in(filters: Mapping[str, Any]) -> list[dict[str, str]]:
    """
    Return whose memories the filters may be about: one mapping of names for each; the conditions come later.

    Raises:
        BadInput: they name nobody, or everybody.
    """
    own: dict[str, list[str]] = {}
    nested: list[dict[str, str]] = []
    for key, condition in filters.items():
        if key == "AND":
            for part in _parts(key, condition):
                for names in names_in(part) if _names_anybody(part) else []:
                    for name, value in names.items():
                        own.setdefault(name, []).append(value)
        elif key == "OR":
            nested += [names for part in _parts(key, condition) if _names_anybody(part) for names in names_in(part)]
        elif key in NAMES:
            own.setdefault(key, []).extend(_values(key, condition))
    for key in NAMES:
        if own.get(key):
            return [{key: value} for value in dict.fromkeys(own[key])]
    if not nested:
        raise BadInput(
            "filters must contain at least one of: user_id, agent_id, app_id, run_id",
            hint='write filters={"user_id": "…"}',
        )
    return nested


def _names_anybody(filters: Mapping[str, Any]) -> bool:
    inner = [part for key in ("AND", "OR") if key in filters for part in _parts(key, filters[key])]
    named = any(key in NAMES and _values(key, condition) for key, condition in filters.items())
    return named or any(_names_anybody(part) for part in inner)


def _values(key: str, condition: Any) -> list[str]:
    if condition == "*":
        if key == "user_id":
            raise BadInput("a search is about users that are named", hint="write the user's id instead of *")
        return []
    if isinstance(condition, Mapping):
        found = condition.get("in", [condition["eq"]] if "eq" in condition else [])
        return [str(value) for value in found] if isinstance(found, list | tuple) else []
    return [] if condition is None else [str(condition).strip()]


def matches(filters: Mapping[str, Any], fields: Mapping[str, Any]) -> bool:
    """Whether a memory with these *fields* is meant by the filters."""
    return all(_holds(key, condition, fields) for key, condition in filters.items())


def _holds(key: str, condition: Any, fields: Mapping[str, Any]) -> bool:
    if key in _JOINS:
        join: Callable[[Iterable[bool]], bool] = _JOINS[key]
        return join(matches(part, fields) for part in _parts(key, condition))
    held = fields.get(key, (fields.get("metadata") or {}).get(key))
    if condition == "*":
        return held is not None
    if key == "metadata" and isinstance(condition, Mapping):
        return matches(condition, held if isinstance(held, Mapping) else {})
    if not isinstance(condition, Mapping):
        return bool(held == condition) or (key in NAMES and held == str(condition).strip())
    return all(_compared(name, held, wanted) for name, wanted in condition.items())


def _compared(name: str, held: Any, wanted: Any) -> bool:
    if name not in _COMPARE:
        raise BadInput(f"there is no filter {name!r}"[:200], hint=f"use {', '.join(_COMPARE)}")
    try:
        return _COMPARE[name](held, wanted)
    except TypeError:  # there is nothing to compare, or it is of another kind
        return False


def _parts(key: str, condition: Any) -> list[Mapping[str, Any]]:
    parts = condition if isinstance(condition, list | tuple) else [condition]
    if not all(isinstance(part, Mapping) for part in parts):
        raise BadInput(f"{key} must be a list of filters")
    return list(parts)
