"""Whose memory a page is about when its path names nobody: the user, the org and the bot of the query."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from ...memory import Memory
from ...user import User
from ..schemas import Caller

MOST_OFFERED = 200


def user_of(asked: Caller) -> User | None:
    """The user that ``?user=`` names; ``None`` when it names nobody."""
    return asked.user() if asked.grant.user else None


def offered(memory: Memory, org: str) -> list[str]:
    """Names to choose from: the first users of an org."""
    names = dict.fromkeys(
        user for at, user, _ in memory.admin.users(limit=MOST_OFFERED, after=(org, "", "")) if at == org
    )
    return list(names)


def scope_of(asked: Caller, request: Request) -> dict[str, Any]:
    """What templates show of whose memory it is, and put into the fields of the form that chooses it."""
    grant = asked.grant
    return {
        "user": grant.user or "",
        "org": grant.org,
        "bot": grant.bot,
        "users": offered(asked.memory, grant.org),
        "query": dict(request.query_params),
    }


def share(number: float) -> str:
    """``61.0 %``."""
    return f"{number * 100:.1f} %"


def size(number: float) -> str:
    """Bytes in words: ``12.4 MB``."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if number < 1000 or unit == "GB":
            return f"{number:,.0f} {unit}" if unit == "bytes" else f"{number:,.1f} {unit}"
        number /= 1000
    raise AssertionError


def lasting(seconds: float) -> str:
    """A span of time in words: ``5 min``, ``3 d``."""
    for unit, span in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= span:
            return f"{seconds / span:,.0f} {unit}"
    return f"{seconds:.0f} s"
