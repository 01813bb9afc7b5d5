"""
Problems of the server as the errors of the front door.

    HoldfastError
    ├── NotAllowed      the key opens nothing, or not this
    ├── TooOften        the key asked more often than it may
    └── Unreachable     no answer came: no server listens, the connection broke, it took too long

Every other problem is the error that the library raises for it.
"""

from __future__ import annotations

import json
from typing import Any

from .. import errors
from ..errors import HoldfastError
from ..llm import protocol as models


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
