"""Background work is listed whole, or by pages."""

from holdfast import Memory


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
