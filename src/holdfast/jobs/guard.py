"""What every piece of background work asks inside its transaction, before it writes."""

from __future__ import annotations

from ..scope import Scope
from ..store import WriteView
from ..types import Job
from .queue import FenceLost


def scope_of(job: Job) -> Scope:
    """The scope that the job row names; never read from anything a model said."""
    return Scope(job.org, job.bot, job.user, job.subject, job.conversation)


def still_mine(view: WriteView, job: Job, epoch: int) -> None:
    """
    Raise unless the claim holds and nothing was erased since the snapshot was taken.

    Raises:
        FenceLost: the work is discarded; the job is run again by whoever holds it, from what is
            stored then.
    """
    if not view.holds(job) or view.user().epoch != epoch:
        raise FenceLost
