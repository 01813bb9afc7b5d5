"""The door to what happened, across users: for those who follow many memories at once, and for operators."""

from __future__ import annotations

from collections.abc import Mapping

from .checks import checked_count
from .pipeline import Pipeline
from .reports import Event, News, UserKey
from .scope import SELF, Scope, checked_name

_PAGE = 500  # events that are read at once


class Events:
    """
    What happened; made by `Memory.events`.

    Events are rows, written in the transaction that changes something, so every process that opens the memory sees
    those of all others.  What happened to one user is at `User.events`.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    def changes(self) -> int:
        """Another number whenever somebody has written since the last call, in whatever process; cheap to ask."""
        return self._pipeline.store.changes()

    def news(self, heads: Mapping[UserKey, int], *, limit: int = 500) -> dict[UserKey, News]:
        """
        What happened to many users at once.

        Args:
            heads: by (org, user, bot), the number of the last event that is known of each; 0 for none.
            limit: at most so many events of each.

        Returns:
            The news of those about whom there is any, from one moment.
        """
        return self._pipeline.store.news(heads, limit=checked_count("limit", limit))

    def of_org(self, org: str = "default", *, before: int | None = None, limit: int = 100) -> list[Event]:
        """
        What happened to a tenant as a whole, newest first: keys made, set, revoked or removed; that somebody was erased.

        Whoever was erased is not named: nothing here is about a user.

        Args:
            org: the tenant.
            before: only what has a lower number.
            limit: at most so many.
        """
        return list(
            self._pipeline.store.events_of_org(checked_name("org", org), before, limit=checked_count("limit", limit))
        )


def concerns(event: Event, subject: str | None, conversation: str | None = None) -> bool:
    """
    Whether somebody who sees *subject* (``None``: all) and looks at *conversation* (``None``: all) is told of *event*.

    Facts about the user reach all of the user's subjects, and so does what happens to the user as a whole.
    """
    if subject is not None and event.subject not in ("", subject):
        if event.subject != SELF or not event.kind.startswith("fact."):
            return False
    return conversation is None or event.conversation in ("", conversation)


def after_number(pipeline: Pipeline, scope: Scope, after: int, limit: int, conversation: str | None) -> list[Event]:
    """What happened in a scope after a number, oldest first; see `User.events`."""
    found: list[Event] = []
    while len(found) < limit:
        news = _news(pipeline, scope, after)
        if news.lost:  # begin with the oldest that is kept
            news = _news(pipeline, scope, 0)
        found += [event for event in news.events if concerns(event, scope.subject, conversation)]
        if not news.events or news.events[-1].id == news.newest:
            break
        after = news.events[-1].id
    return found[:limit]


def before_number(pipeline: Pipeline, scope: Scope, before: int | None, limit: int) -> list[Event]:
    """What happened in a scope before a number, newest first; see `User.audit`."""
    found: list[Event] = []
    while len(found) < limit:
        part = _before(pipeline, scope, before)
        found += [event for event in part if concerns(event, scope.subject)]
        if len(part) < _PAGE:
            break
        before = part[-1].id
    return found[:limit]


def _news(pipeline: Pipeline, scope: Scope, after: int) -> News:
    return pipeline.store.read(scope, lambda view: view.news(after, limit=_PAGE))


def _before(pipeline: Pipeline, scope: Scope, number: int | None) -> list[Event]:
    return pipeline.store.read(scope, lambda view: view.events_before(number, limit=_PAGE))
