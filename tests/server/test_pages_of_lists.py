"""A page of a list costs the store a page, however long the list is."""

from __future__ import annotations

import pytest

from holdfast.store.sqlite.connection import ApswDriver

from .test_again import ANA, CHAT, walked

ITEMS, PAGE = 40, 3


@pytest.fixture
def rows_read(monkeypatch):
    """The number of rows that each query of the last requests gave."""
    found: list[int] = []
    for name in ("run", "many"):
        query = getattr(ApswDriver, name)

        def counted(self, *args, query=query):
            rows = query(self, *args)
            found.append(len(rows))
            return rows

        monkeypatch.setattr(ApswDriver, name, counted)
    return found


@pytest.fixture
def app(ask, memory, clock):
    """The client of an app whose user has many of everything."""
    chat = memory.conversation("web-42", user="ana")
    for number in range(ITEMS):
        clock.advance(seconds=60)
        chat.record(f"I live in Town{number}. My neighbour number {number} is called Tim{number}.", "Noted.")
        memory.conversation(f"talk {number:02}", user="ana").record("Hello.", "Hi.")
        memory.user("ana").remember(category="things", key=f"thing {number:02}", value="red")
    memory.digest()
    return ask("app")


@pytest.mark.parametrize(
    ("path", "least"),
    [
        (f"{ANA}/facts", ITEMS),
        (f"{ANA}/history", ITEMS),
        (f"{ANA}/conversations", ITEMS),
        (f"{ANA}/overview", ITEMS),
        (f"{CHAT}/summaries", 5),
        (f"{CHAT}/learned", ITEMS),
        (f"{CHAT}/episodes", 0),
    ],
)
def test_a_page_reads_no_more_rows_than_it_shows(app, rows_read, path, least):
    rows_read.clear()
    everything = walked(app, path, PAGE)
    most = max(rows_read)
    whole = app.get(f"{path}?limit=1000").json()["data"]

    assert everything == whole
    assert len(whole) >= least
    assert most <= PAGE + 1
