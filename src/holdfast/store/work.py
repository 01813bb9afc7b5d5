"""
The part of the waist that has to do with work: taking jobs up, what is to be done and how often models are asked, across
users, and what was ordered.

`holdfast.store.protocol` takes it up into its `Store`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ..figures import Backlog, Operation
from ..reports import UserKey
from ..scope import Scope
from ..types import Job
from .values import PaceRow


class OrderLooks(Protocol):
    """What a `Store` keeps of long work that was ordered."""

    def add_order(self, order: Operation, *, ended_before_ms: int) -> Operation:
        """
        Insert an order, or return the one that stands under the same ``once``, unless that was interrupted.

        Those of its org that ended before *ended_before_ms* are let go.
        """

    def save_order(self, order: Operation) -> bool | None:
        """What has become of it; whether somebody wants it to end, ``None`` when its row is gone."""

    def order(self, order_id: str) -> Operation | None:
        """The order of that id."""

    def orders(self, *, limit: int, of: UserKey | None = None) -> list[Operation]:
        """The newest first, of one user's or of all."""

    def stop_order(self, order_id: str) -> bool:
        """Have it end before its next part; ``False`` when it is over or there is none."""


class JobCalls(Protocol):
    """The third door of a `Store`: taking up and settling the jobs of all users."""

    def claim(
        self,
        *,
        now_ms: int,
        worker: str,
        lease_ms: int,
        kinds: Sequence[str] = (),
        user: Scope | None = None,
        ahead_ms: int = 0,
    ) -> Job | None:
        """
        Take one due job: ready and ``run_at <= now``, or running with an expired lease.

        The returned job carries its new fence; *attempt* has risen by one.  *user* limits the
        look to one user's jobs (and to one conversation's, when the scope names it); of those,
        ready ones that fall due within *ahead_ms* count as well, while leases end when they end.
        """

    def fail(self, job: Job, *, reason: str, run_at_ms: int, dead: bool) -> bool:
        """Put a claimed job back for *run_at_ms*, or aside as dead; ``False`` when the fence was lost."""

    def jobs(self, *, state: str | None = None, limit: int = 1000) -> list[Job]:
        """Jobs of all users, oldest first."""

    def retry(self, job_id: str, now_ms: int) -> bool:
        """Make a dead or cancelled job ready, its attempts forgotten; ``False`` when there is none."""

    def cancel(self, job_id: str) -> bool:
        """Stop a job from running (again); ``False`` when there is none that waits."""

    def next_due_ms(self) -> int | None:
        """When the earliest job is due or the earliest lease ends; ``None`` when nothing waits."""


class WorkLooks(OrderLooks, Protocol):
    """What a `Store` tells of the work of all users together."""

    def backlog(self, now_ms: int) -> tuple[Backlog, ...]:
        """Jobs that are not finished, counted by kind and state."""

    def pace(self, pace_id: str) -> PaceRow:
        """How often a provider's key is used; version 0 when nobody has used it."""

    def keep_pace(self, row: PaceRow, *, idle_before: int) -> bool:
        """
        Write what follows from the row whose version is one less; ``False`` when somebody else has changed it since.

        The first row of a key takes those away that were not used after *idle_before* (microseconds).
        """
