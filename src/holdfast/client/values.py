"""JSON of the server → the values of the front door, by their annotations; and back."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from datetime import date, datetime
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from ..context.assemble import Strategy
from ..errors import BadInput
from ..integrations import strategies
from ..types import Message

_STRATEGIES: dict[type, tuple[str, str | None]] = {
    strategies.Layered: ("layered", "exchanges"),
    strategies.Buffer: ("buffer", None),
    strategies.Window: ("window", "exchanges"),
    strategies.TokenBuffer: ("token_buffer", "tokens"),
    strategies.Summary: ("summary", "exchanges"),
    strategies.SummaryBuffer: ("summary_buffer", "tokens"),
}


def value_of(kind: Any, data: Any) -> Any:
    """
    Return *data* as a value of the type *kind*.

    Fields that this version does not know are passed over; those that are missing have their defaults.
    """
    origin, inside = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _one_of(inside, data)
    if kind is Any or origin is Literal or data is None:
        return data
    if origin in (list, tuple):
        items = [value_of(inside[0], item) for item in data]
        return items if origin is list else tuple(items)
    if origin is not None and issubclass(origin, Mapping):
        return {name: value_of(inside[1], item) for name, item in data.items()}
    if kind is datetime:
        return datetime.fromisoformat(data)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        known = _fields(kind)
        return kind(**{name: value_of(known[name], item) for name, item in data.items() if name in known})
    return data


def _one_of(kinds: tuple[Any, ...], data: Any) -> Any:
    """Return the value of the union's dataclass whose fields the data have, or of its only type beside None."""
    if data is None:
        return None
    some = [kind for kind in kinds if kind is not type(None)]
    if len(some) > 1 and isinstance(data, dict):
        some.sort(key=lambda kind: -len(_fields(kind).keys() & data.keys()))
    return value_of(some[0], data)


@cache
def _fields(kind: type) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def plain(value: Any) -> Any:
    """Return *value* as JSON can hold it."""
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def message_body(message: Message, *, dated: bool) -> dict[str, Any]:
    """Return a message as it is sent; its time only where the caller gave one."""
    body: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.name is not None:
        body["name"] = message.name
    if dated:
        body["at"] = plain(message.at)
    if message.meta:
        body["meta"] = dict(message.meta)
    return body


def strategy_body(strategy: Strategy | None) -> dict[str, Any] | None:
    """
    Return a strategy as it is sent.

    Raises:
        BadInput: it is not one of the library's own, or has a function in it.
    """
    if strategy is None:
        return None
    name, size = _STRATEGIES.get(type(strategy), ("", None))
    if not name or getattr(strategy, "summarize", None) is not None:
        raise BadInput(
            f"the strategy {type(strategy).__name__} cannot be sent to a server",
            hint="use one of holdfast.strategies, without summarize",
        )
    body: dict[str, Any] = {"name": name, "memory_role": strategy.memory_role}
    if isinstance(strategy, strategies.Layered):
        body |= {"side_by_side": strategy.side_by_side, "character": strategy.character}
    return body if size is None else {**body, size: getattr(strategy, size)}


def refuse_function(name: str, given: object) -> None:
    """
    Refuse a function, which cannot be sent.

    Raises:
        BadInput: there is one.
    """
    if given is not None:
        raise BadInput(f"{name} cannot be sent to a server", hint="leave it out; the server counts by its estimate")
