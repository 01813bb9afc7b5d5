"""Background work is listed whole, by pages or by user, and one job is read by its id."""

import pytest

from holdfast import Memory
from holdfast.errors import NotFound


def test_jobs_are_listed_whole_and_by_pages():
    with Memory(embedder=None) as memory:
        for number in range(7):
            memory.conversation(f"c{number}", user=f"user {number}").record("Hello.")
            memory.conversation(f"c{number}", user=f"user {number}").end()
        whole = memory.jobs()
        pages, after = [], None
        while page := memory.jobs(limit=3, after=after):
            pages += page
            after = page[-1].id

    assert pages == whole
    assert len(whole) >= 7


def test_one_job_is_read_by_its_id_and_the_jobs_of_one_user_by_the_user():
    with Memory(embedder=None) as memory:
        for name in ("ana", "bo"):
            memory.conversation("c", user=name).record("Hello.", "Hello!")
            memory.conversation("c", user=name, subject="mia").record("Hello.", "Hello!")
        every, of_ana = memory.jobs(), memory.admin.jobs_of_user("ana")

        assert {job.subject for job in of_ana} == {"self", "mia"}
        assert of_ana == [job for job in every if job.user == "ana"]
        assert [memory.admin.job(job.id) for job in every] == every
        assert memory.admin.jobs_of_user("cy") == []
        with pytest.raises(NotFound, match="job_nobody"):
            memory.admin.job("job_nobody")
