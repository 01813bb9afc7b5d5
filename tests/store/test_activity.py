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


def test_replies_are_counted_by_whether_their_context_began_as_the_one_before() -> None:
    clock = FakeClock(datetime(2026, 3, 1, 12, tzinfo=UTC))
    with Memory(clock=clock, embedder=None) as memory:
        for user, lines in (("ana", ["Hi.", "I live in Porto.", "Fine.", "Good."]), ("bo", ["Hi."])):
            chat = memory.conversation("web", user=user)
            for line in lines:
                chat.append({"role": "user", "content": line})
                chat.context()
                chat.append({"role": "assistant", "content": "Noted."})
        clock.advance(days=1)
        memory.conversation("web", user="ana").context()
        memory.conversation("web", user="ana").append({"role": "assistant", "content": "And you?"})
        found = memory.admin.activity(since=date(2026, 3, 1))
        counted = {(one.day.day, one.kind): (one.count, one.users) for one in found if one.kind.startswith("context.")}
        # Ana's second reply begins with what the first did not hold; her third and fourth, and tomorrow's, with the same.
        assert counted == {(1, "context.changed"): (1, 1), (1, "context.reused"): (2, 1), (2, "context.reused"): (1, 1)}
        assert not [one for one in memory.admin.activity(since=date(2026, 3, 1), user="bo") if "context" in one.kind]
