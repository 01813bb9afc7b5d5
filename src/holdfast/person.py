"""The door to what is held about one user."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from .checks import checked_count, checked_query
from .clock import to_ms
from .errors import BadInput
from .pipeline import HIT_KINDS, Pipeline, believed, facts_at
from .scope import Scope
from .types import Fact, FactKind, Hit, HitKind, Rejected


class Person:
    """What is held about one user; made by `Memory.person`."""

    def __init__(self, pipeline: Pipeline, scope: Scope) -> None:
        self._pipeline = pipeline
        self._scope = scope

    def __repr__(self) -> str:
        return f"Person({self._scope.user!r})"

    def facts(
        self,
        category: str | None = None,
        *,
        kind: FactKind | None = None,
        as_of: datetime | None = None,
        known_at: datetime | None = None,
    ) -> list[Fact]:
        """
        What is believed, by subject, category, key and value.

        Args:
            category: only this one.
            kind: only attributes, statements or episodes.
            as_of: what held at that time instead of now.
            known_at: as it was known at that time instead of now.
        """
        now_ms = self._pipeline.now_ms()
        if as_of is None and known_at is None:
            rows = self._pipeline.store.read(self._scope, lambda view: view.facts(category=category, kind=kind))
            return [row.fact for row in rows if believed(row, now_ms)]
        ever = self._pipeline.store.read(self._scope, lambda view: view.facts_ever(category=category))
        as_of_ms = now_ms if as_of is None else to_ms(as_of)
        held = facts_at(ever, as_of_ms, now_ms if known_at is None else to_ms(known_at))
        return [fact for fact in held if kind in (None, fact.kind)]

    def history(self, category: str, key: str | None = None) -> list[Fact]:
        """Every value that a category (or one of its keys) had, oldest first, with when each held."""
        rows = self._pipeline.store.read(self._scope, lambda view: view.facts_ever(category=category, key=key))
        return [row.fact for row in rows]

    def search(
        self,
        query: str,
        *,
        limit: int = 10,
        kinds: Sequence[HitKind] = HIT_KINDS,
        min_score: float | None = None,
        conversation: str | None = None,
        explain: bool = False,
    ) -> list[Hit]:
        """
        Find facts, messages and summaries, best first.

        Args:
            query: words or a question.
            limit: at most so many.
            kinds: which of ``fact``, ``message``, ``summary``.
            min_score: leave out what scores below; scores compare within one search only.
            conversation: only messages and summaries of this one.
            explain: give every hit the components of its score; they sum to it.

        Raises:
            BadInput: the query is empty or not text, or a kind is unknown.
        """
        if unknown := [kind for kind in kinds if kind not in HIT_KINDS]:
            raise BadInput(f"there is no kind {unknown[0]!r}", hint=f"use {', '.join(HIT_KINDS)}")
        return self._pipeline.search(
            self._scope,
            checked_query(query),
            limit=checked_count("limit", limit),
            kinds=tuple(kinds),
            min_score=min_score,
            conversation=conversation,
            explain=explain,
        )

    def rejected(self, *, limit: int = 100) -> list[Rejected]:
        """What was read but not believed, newest first, each with its reason."""
        return self._pipeline.store.read(self._scope, lambda view: view.rejected(limit=limit))

    def conversations(self) -> list[str]:
        """The ids of the user's conversations, by name."""
        rows = self._pipeline.store.read(self._scope, lambda view: view.conversations())
        return [row.conversation for row in rows]
