"""Events are counted by day, org, bot and kind, across users."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from holdfast import Memory
from holdfast.errors import BadInput
from holdfast.testing.fakes import FakeClock


def test_messages_of_ranges_are_counted_one_by_one_and_facts_by_hand_not_at_all() -> None:
    clock = FakeClock(datetime(2026, 3, 1, 23, 59, tzinfo=UTC))
    with Memory(clock=clock) as memory:
        chat = memory.conversation("web", user="ana")
        chat.append([{"role": "user", "content": f"Hello {number}."} for number in range(9)])
        chat.record("One.", "Two.")
        memory.user("ana").remember(category="hobby", key="plays", value="the violin")
        memory.conversation("web", user="bo").record("Three.", "Four.")
        clock.advance(seconds=120)
        memory.conversation("web", user="bo", org="acme", bot="vet").record("Five.", "Six.")
        memory.digest()
        found = memory.admin.activity(since=date(2026, 3, 1))
        said = {(one.day, one.org, one.bot): (one.count, one.users) for one in found if one.kind == "message.added"}
        assert said == {
            (date(2026, 3, 1), "default", "default"): (13, 2),
            (date(2026, 3, 2), "acme", "vet"): (2, 1),
        }
        only = memory.admin.activity(since=date(2026, 3, 1), until=date(2026, 3, 1), user="bo")
        assert [(one.count, one.users) for one in only if one.kind == "message.added"] == [(2, 1)]
        assert [one.kind for one in memory.admin.newest_events("fact.added")] == ["fact.added"]
        assert {event.user for event in memory.admin.newest_events()} == {"ana", "bo"}
        memory.user("ana").erase()
        assert {event.user for event in memory.admin.newest_events()} == {"bo"}
        with pytest.raises(BadInput):
            memory.admin.activity(since=date(2026, 3, 2), until=date(2026, 3, 1))
