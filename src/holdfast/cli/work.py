"""Background work, done in the foreground with progress."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ..clock import from_ms
from ..reports import DigestReport
from ..types import Job
from .plain import CommandError
from .progress import Progress
from .words import count

if TYPE_CHECKING:
    from ..memory import Memory

DOING = {
    "extract": "reading facts",
    "read": "reading facts with the model",
    "chunk": "summarising",
    "embed": "preparing search",
    "upkeep": "tidying up",
}


def digest_all(memory: Memory, *, show: bool) -> DigestReport:
    """
    Do everything that is due, and wait for what another process holds now.

    A worker that was killed holds its job until its lease ends, at most a minute later; then the
    job is done here.
    """
    waiting: list[Job] = []
    with Progress("Learning", show=show, watch=lambda: _held(waiting) or _doing(memory)):
        report = memory.digest()
        held = {(job.id, job.fence) for job in memory.jobs("running")}
        while held:
            waiting = [job for job in memory.jobs("running") if (job.id, job.fence) in held]
            if not waiting:
                break
            time.sleep(0.2)
            report += memory.digest()
    return report


def raise_if_failed(report: DigestReport) -> int:
    """
    0, when no job failed.

    Raises:
        CommandError: some did; what they were about is kept, and they run again.
    """
    if report.failed:
        raise CommandError(
            "jobs-failed",
            f"{count(report.failed, 'job')} failed",
            hint="`holdfast jobs` shows why, and when they run again",
        )
    return 0


def due(job: Job) -> bool:
    """Whether a job could run now."""
    return job.state == "ready" and job.run_at_ms <= datetime.now(UTC).timestamp() * 1000


def _doing(memory: Memory) -> str:
    jobs = memory.jobs()
    running = sorted({DOING.get(job.kind, job.kind) for job in jobs if job.state == "running"})
    waiting = sum(due(job) for job in jobs)
    words = ", ".join(running) or "waiting"
    return f"{words}, {waiting:,} jobs to go" if waiting else words


def _held(jobs: list[Job]) -> str:
    if not jobs:
        return ""
    until = from_ms(max(job.lease_until_ms for job in jobs))
    return f"waiting for what process {jobs[0].worker.split('-')[0]} holds until {until:%H:%M:%S} UTC at most"
