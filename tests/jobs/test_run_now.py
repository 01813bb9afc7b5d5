"""A waiting job is brought forward, a dead or cancelled one is revived; `stats` says where the store is and how large."""

from __future__ import annotations

import pytest

from holdfast import Config, Memory
from holdfast.errors import NotFound
from holdfast.llm.protocol import ModelError
from holdfast.testing.fakes import FakeClock
from holdfast.testing.model import ScriptedModel


def one_job(memory, kind):
    (job,) = (job for job in memory.jobs() if job.kind == kind)
    return job


def test_a_job_that_waits_for_later_runs_now():
    clock = FakeClock()
    with Memory(embedder=None, clock=clock) as memory:
        chat = memory.conversation("c", user="ana")
        chat.record("Hello.", "Hello!")
        job = one_job(memory, "chunk")
        assert memory.digest().jobs == 0 or one_job(memory, "chunk").run_at_ms > clock().timestamp() * 1000
        memory.run_now(job.id)

        assert one_job(memory, "chunk").run_at_ms <= clock().timestamp() * 1000


def test_a_dead_job_is_revived_by_retry_alone():
    def fails(request):
        raise ModelError("the model is broken")

    config = Config(job_attempts=1)
    with Memory(llm=ScriptedModel(otherwise=fails), embedder=None, clock=FakeClock(), config=config) as memory:
        chat = memory.conversation("c", user="ana")
        for number in range(12):
            chat.record(f"I moved to town number {number}.", "Nice.")
        memory.digest()
        dead = memory.jobs("dead")
        assert dead
        with pytest.raises(NotFound, match="retry"):
            memory.run_now(dead[0].id)
        assert dead[0].id in [job.id for job in memory.jobs("dead")]
        memory.retry(dead[0].id)

        assert dead[0].id in [job.id for job in memory.jobs("ready")]


def test_a_cancelled_job_is_revived_by_retry_alone_and_one_that_is_gone_by_nothing():
    with Memory(embedder=None, clock=FakeClock()) as memory:
        memory.conversation("c", user="ana").record("Hello.", "Hello!")
        job = one_job(memory, "chunk")
        memory.cancel(job.id)
        with pytest.raises(NotFound):
            memory.run_now(job.id)
        assert one_job(memory, "chunk").state == "cancelled"
        memory.retry(job.id)
        assert one_job(memory, "chunk").state == "ready"
        with pytest.raises(NotFound):
            memory.run_now("job_nobody")
        with pytest.raises(NotFound):
            memory.retry("job_nobody")


@pytest.mark.sqlite("the place is a file, and its size that of the file")
def test_the_store_tells_its_place_its_size_and_its_rows(tmp_path):
    path = tmp_path / "m.db"
    with Memory(path, embedder=None) as memory:
        memory.conversation("c", user="ana").record("Hello.", "Hello!")
        found = memory.admin.stats()

        assert (found.place, found.rows["message"], found.rows["user"]) == (str(path), 2, 1)
        assert found.bytes >= path.stat().st_size > 0
        assert found.schema.isdigit()
        assert "bytes" not in found.rows
