"""Values from plain JSON: each field is looked at against the type that its class declares."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from datetime import datetime
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from ..clock import from_ms
from ..errors import BadInput

LONG_AGO_MS, FAR_MS = -62_135_596_800_000, 253_402_300_799_999  # years 1 and 9999

T = TypeVar("T")
Data = Mapping[str, Any]


def made(kind: Callable[..., T], item: Data, **given: Any) -> T:
    """
    A value of the frozen class *kind*; what else stands in *item* is passed over, *given* goes first.

    A field that has a default may be missing, so that exports of earlier versions are read.  Lists become tuples, and milliseconds become times where the class wants those.

    Raises:
        BadInput: a field is missing, or holds what does not belong there.
    """
    values = dict(given)
    hints = _hints(kind)
    for field in fields(kind):  # type: ignore[arg-type]
        if field.name in given:
            continue
        if field.name not in item and (field.default, field.default_factory) != (MISSING, MISSING):
            continue
        if field.name not in item:
            raise BadInput(f"{kind.__name__}.{field.name} is missing")
        value = _taken(hints[field.name], item[field.name])
        if not _fits(hints[field.name], value) or (field.name == "id" and not value):
            raise BadInput(f"{kind.__name__}.{field.name} does not fit")
        values[field.name] = value
    return kind(**values)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _taken(hint: Any, value: Any) -> Any:
    if isinstance(value, list) and get_origin(hint) is tuple:
        return tuple(value)
    if value is not None and (hint is datetime or datetime in get_args(hint)):
        return from_ms(whole_ms(value))
    return value


def _fits(hint: Any, value: Any) -> bool:
    origin, inside = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(_fits(one, value) for one in inside)
    if origin is Literal:
        return isinstance(value, str) and value in inside
    if origin is tuple:
        return isinstance(value, tuple) and all(_fits(inside[0], one) for one in value)
    if origin is not None:
        return isinstance(value, origin)
    if hint in (int, float):
        number = int if hint is int else (int, float)
        return isinstance(value, number) and not isinstance(value, bool) and abs(value) < 2**63
    return isinstance(value, NoneType if hint is None else hint)


def listed(item: Data, name: str) -> Sequence[Any]:
    """The list of objects that stands under *name*."""
    found = item.get(name)
    if not isinstance(found, list) or not all(isinstance(one, Mapping) for one in found):
        raise BadInput(f"{name} must be a list of objects")
    return found


def text(item: Data, name: str) -> str:
    """The text that stands under *name*."""
    found = item.get(name)
    if not isinstance(found, str):
        raise BadInput(f"{name} must be text")
    return found


def whole(item: Data, name: str) -> int:
    """The whole number that stands under *name*."""
    found = item.get(name)
    if not _fits(int, found):
        raise BadInput(f"{name} must be a whole number")
    return int(item[name])


def whole_ms(value: object) -> int:
    """A time in milliseconds since 1970 UTC, from the year 1 to the year 9999."""
    if isinstance(value, bool) or not isinstance(value, int) or not LONG_AGO_MS <= value <= FAR_MS:
        raise BadInput("a time must be whole milliseconds since 1970")
    return value
