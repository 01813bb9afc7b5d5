"""
JSON of the server → the values and the errors of the front door; and back.

    HoldfastError
    ├── NotAllowed      the key opens nothing, or not this
    ├── TooOften        the key asked more often than it may
    └── Unreachable     no answer came: no server listens, the connection broke, it took too long

Every other problem is the error that the library raises for it.
"""

from __future__ import annotations

import dataclasses
import json
import types
from collections.abc import Mapping
from datetime import date, datetime
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from .. import errors
from ..errors import BadInput, HoldfastError
from ..llm import protocol as models
from ..types import Message


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


def refuse_function(name: str, given: object) -> None:
    """
    Refuse a function, which cannot be sent.

    Raises:
        BadInput: there is one.
    """
    if given is not None:
        raise BadInput(f"{name} cannot be sent to a server", hint="leave it out; the server counts by its estimate")


class NotAllowed(HoldfastError):
    """The key opens nothing, or not this; ``code`` says which: ``no-key``, ``forbidden``, ``wrong-host``…"""

    code = "forbidden"


class TooOften(HoldfastError):
    """The key asked more often than it may, or its quota is spent."""

    code = "too-often"


class Unreachable(HoldfastError):
    """
    No answer came: the server does not listen, the connection broke, or it took too long.

    A call that changes something may have been done nevertheless; with an idempotency key it can be repeated.
    """

    code = "unreachable"


_CLASSES: dict[str, type[HoldfastError]] = {
    found.code: found
    for home in (errors, models)
    for found in vars(home).values()
    if isinstance(found, type) and issubclass(found, HoldfastError)
}


def of_problem(status: int, body: bytes) -> HoldfastError:
    """Return the error for an answer of *status*."""
    problem = _parse_problem(body)
    title = str(problem.get("title") or f"the server answered {status}")
    code, message = str(problem.get("code") or "http"), str(problem.get("detail") or title)
    error = of_code(code, message, str(problem.get("hint") or ""), status=status)
    if isinstance(error, NotAllowed) and problem.get("detail"):
        error.message = f"{title}: {message}"
    return error


def of_code(code: str, message: str, hint: str = "", *, status: int = 500) -> HoldfastError:
    """Return the error for a code; the root class where it is one of the server's own."""
    kind = _CLASSES.get(code)
    if kind is None:
        kind = NotAllowed if status in (401, 403, 421) else TooOften if status == 429 else HoldfastError
    error = kind(message, hint=hint)
    error.code = code
    return error


def _parse_problem(body: bytes) -> dict[str, Any]:
    try:
        problem = json.loads(body)
    except ValueError:
        return {}
    return problem if isinstance(problem, dict) else {}
