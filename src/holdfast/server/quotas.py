"""How many messages a key, and all keys of an org, may store a day and a month (UTC), in all processes together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from starlette.responses import Response

from ..access import Access
from ..errors import HoldfastError
from ..types import ApiKey
from .problems import problem
from .settings import ServerSettings


class Quotas:
    """The limits of *settings*, counted in the store; where none is set nothing is counted."""

    def __init__(self, access: Access, settings: ServerSettings) -> None:
        self._access = access
        self.limits = {
            "day": settings.messages_per_day,
            "month": settings.messages_per_month,
            "org_day": settings.org_messages_per_day,
            "org_month": settings.org_messages_per_month,
        }

    def take(self, key: ApiKey | None, messages: int) -> int:
        """0 when so many more messages may be stored, and then they count; else the seconds until there is room."""
        return 0 if key is None else self._access.spend(key, messages, **self.limits)

    def give_back(self, key: ApiKey | None, messages: int) -> None:
        """They were not stored after all."""
        self.take(key, -messages)

    @contextmanager
    def counting(self, key: ApiKey | None, messages: int) -> Iterator[int]:
        """Take them for what is done inside, and give them back when it is refused; the same number as `take`."""
        wait_s = self.take(key, messages)
        try:
            yield wait_s
        except HoldfastError:
            if not wait_s:
                self.give_back(key, messages)
            raise


def messages_in(export: Mapping[str, Any]) -> int:
    """How many messages an export holds; 0 for what is none, which is refused later."""
    talks = export.get("conversations")
    found = (talk.get("messages") for talk in talks if isinstance(talk, dict)) if isinstance(talks, list) else ()
    return sum(len(messages) for messages in found if isinstance(messages, list))


def refused(wait_s: int) -> Response:
    """The answer to messages that are too many."""
    when = "today" if wait_s <= 86_401 else "this month"
    hint = "the operator says how many a key and an org may store a day and a month"
    return problem(429, "quota", f"No more messages {when}", hint=hint, headers={"Retry-After": str(wait_s)})
