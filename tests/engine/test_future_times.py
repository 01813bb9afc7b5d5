"""A message is at most a day ahead of the memory's clock: one from the future would outlast all that is said later."""

from __future__ import annotations

from datetime import timedelta

import pytest

from holdfast import Memory
from holdfast.errors import BadInput
from holdfast.testing.fakes import FakeClock


def test_a_time_in_the_future_is_refused_with_the_message_that_has_it(memory: Memory, clock: FakeClock) -> None:
    chat = memory.conversation("c", user="ana")
    far = clock() + timedelta(days=1, minutes=1)

    with pytest.raises(BadInput, match="message 1: at lies more than a day in the future") as refused:
        chat.append(["I live in Lisbon.", {"role": "user", "content": "I have a dog.", "at": far.isoformat()}])
    with pytest.raises(BadInput, match="message 0: at lies"):
        chat.record("I live in Lisbon.", "Noted.", at=far)

    assert "leave at out" in refused.value.hint
    assert chat.load() == []


def test_clocks_may_differ_and_now_is_the_clock_of_the_memory(memory: Memory, clock: FakeClock) -> None:
    chat = memory.conversation("c", user="ana")
    soon = clock() + timedelta(hours=23)
    chat.record("I live in Lisbon.", at=soon)
    clock.advance(days=400)
    chat.record("I moved to Porto.", at=clock() - timedelta(days=1))

    assert [message.at for message in chat.load()] == [soon, clock() - timedelta(days=1)]
    assert [fact.value for fact in memory.user("ana").facts()] == ["Porto"]


def test_a_message_that_is_there_already_can_still_be_edited(memory: Memory, clock: FakeClock) -> None:
    chat = memory.conversation("c", user="ana")
    chat.record("I live in Lisbon.")
    clock.advance(days=-30)
    chat.edit(1, "I live in Faro.")

    assert [fact.value for fact in memory.user("ana").facts()] == ["Faro"]
