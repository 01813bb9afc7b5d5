"""Ctrl-C in the middle of background work: the next run takes it up at once."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from holdfast import Config, Memory
from holdfast.testing.fakes import HashEmbedder


class Stopped(HashEmbedder):
    """Somebody presses Ctrl-C while it works, the first time."""

    stopped = False

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if not self.stopped:
            self.stopped = True
            raise KeyboardInterrupt
        return super().embed(texts)


def test_a_job_that_is_stopped_with_ctrl_c_waits_for_nobody(tmp_path: Path) -> None:
    """Otherwise whoever comes next waits until the lease of the program that is gone has ended."""
    embedder = Stopped()
    with Memory(tmp_path / "chat.db", embedder=embedder, config=Config(job_lease_ms=3_600_000)) as memory:
        memory.conversation("c", user="ana").record("The garden needs water.")
        with pytest.raises(KeyboardInterrupt):
            memory.digest()

        assert {(job.state, job.attempt, job.reason) for job in memory.jobs()} == {("ready", 0, "")}
        assert "embed" in {job.kind for job in memory.jobs()}

    with Memory(tmp_path / "chat.db", embedder=embedder) as again:
        again.digest()
        assert "embed" not in {job.kind for job in again.jobs()}
        assert again.doctor().ok
