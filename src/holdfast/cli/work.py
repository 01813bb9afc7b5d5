"""Background work, done in the foreground with progress."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from ..memory import Memory
from ..types import DigestReport, Job
from .progress import Progress

DOING = {"extract": "reading facts", "chunk": "summarising", "embed": "preparing search"}


def digest_all(memory: Memory, *, show: bool) -> DigestReport:
    """
    Do everything that is due, and wait for what another process holds now.

    A worker that was killed holds its job until its lease ends, at most a minute later; then the
    job is done here.
    """
    with Progress("Learning", show=show, watch=lambda: _doing(memory)):
        report = memory.digest()
        held = {(job.id, job.fence) for job in memory.jobs("running")}
        while held & {(job.id, job.fence) for job in memory.jobs("running")}:
            time.sleep(0.2)
            report += memory.digest()
    return report


def due(job: Job) -> bool:
    """Whether a job could run now."""
    return job.state == "ready" and job.run_at_ms <= datetime.now(UTC).timestamp() * 1000


def _doing(memory: Memory) -> str:
    jobs = memory.jobs()
    running = sorted({DOING.get(job.kind, job.kind) for job in jobs if job.state == "running"})
    waiting = sum(due(job) for job in jobs)
    words = ", ".join(running) or "waiting"
    return f"{words}, {waiting:,} jobs to go" if waiting else words
