"""Facts are read again as if for the first time; the same reader finds the same, and all of it can be put back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import Fact, Memory
from holdfast.digest import rules
from holdfast.errors import NotFound

from .talks import LINES, USER, believed, ever, fact, opened


def said(memory: Memory, lines: list[str]) -> None:
    chat = memory.conversation("a", user=USER)
    for line in lines:
        memory._clock.advance(seconds=60)  # type: ignore[attr-defined]
        chat.record(line, "Noted.")
    memory.digest()


def test_the_same_reader_finds_the_same(examples: Callable[..., settings]) -> None:
    """Whatever range is read again: the same is believed, the same was believed, ids and all."""
    examples(50)(given(st.lists(st.sampled_from(LINES), min_size=1, max_size=8), st.data())(finds_the_same))()


def finds_the_same(lines: list[str], data: st.DataObject) -> None:
    with opened() as memory:
        said(memory, lines)
        chat = memory.conversation("a", user=USER)
        first = data.draw(st.integers(1, 2 * len(lines)))
        last = data.draw(st.integers(first, 2 * len(lines)))
        now, before = memory.user(USER).facts(), ever(memory)
        report = chat.rebuild("facts", start_seq=first, end_seq=last)
        assert {f.id for f in memory.user(USER).facts()} == {f.id for f in now}
        assert ever(memory) == before
        assert memory.doctor().findings == ()
        chat.restore(report.id)
        assert ever(memory) == before
        assert memory.doctor().findings == ()


@pytest.mark.parametrize(
    "lines",
    [
        ["We moved to Porto last week.", "I live in Lisbon.", "I no longer live in Porto.", "I live in Lisbon."],
        ["We moved to Porto last week.", "I no longer live in Porto.", "We moved to Porto last week."],
        ["I'm vegetarian.", "I eat fish now.", "I'm vegetarian."],
        ["I live in Lisbon.", "We moved to Porto last week.", "I live in Faro.", "I no longer live in Porto."],
    ],
)
def test_what_was_hard_to_find_again_is_found_again(lines: list[str]) -> None:
    with opened() as memory:
        said(memory, lines)
        before = ever(memory)
        for first in range(1, 2 * len(lines) + 1):
            memory.conversation("a", user=USER).rebuild("facts", start_seq=first)
            assert ever(memory) == before


def misread(monkeypatch: pytest.MonkeyPatch, deaf_to: str) -> None:
    """From now on the reader takes nothing from messages that hold these words."""
    real = rules.extract_facts

    def read(message: Any, **given: Any) -> Any:
        return [] if deaf_to in message.content else real(message, **given)

    monkeypatch.setattr(rules, "extract_facts", read)


def test_another_reading_is_what_it_would_have_been_and_can_be_undone(examples: Callable[..., settings]) -> None:
    """A reader that hears less: afterwards all is as if it had read from the start; restored, as before."""
    lines = st.lists(st.sampled_from(LINES), min_size=2, max_size=8)
    deaf_to = st.sampled_from(["Lisbon", "Porto", "Faro", "Spanish", "fish", "vegetarian"])
    examples(50)(given(lines, deaf_to, st.data())(reads_otherwise))()


def reads_otherwise(lines: list[str], deaf_to: str, data: st.DataObject) -> None:
    with pytest.MonkeyPatch.context() as patch, opened() as memory, opened() as fresh:
        said(memory, lines)
        now, chat = believed(memory), memory.conversation("a", user=USER)
        misread(patch, deaf_to)
        said(fresh, lines)
        report = chat.rebuild("facts")
        assert believed(memory) == believed(fresh)
        assert memory.doctor().findings == ()
        patch.undo()
        if data.draw(st.booleans()):
            chat.restore(report.id)
        else:
            chat.rebuild("facts")
        assert believed(memory) == now
        assert memory.doctor().findings == ()


def test_what_is_not_found_again_ends_as_rebuilt(monkeypatch: pytest.MonkeyPatch) -> None:
    with opened() as memory:
        said(memory, ["I live in Lisbon.", "I live in Porto."])
        user, chat = memory.user(USER), memory.conversation("a", user=USER)
        porto = fact(memory, "Porto")
        misread(monkeypatch, "Porto")
        report = chat.rebuild("facts", start_seq=3)

        assert believed(memory) == {("self", "home", "lives_in", "Lisbon")}
        (gone,) = [f for f in user.history("home") if f.id == porto.id]
        assert (gone.ended_because, gone.valid_to) == ("rebuilt", gone.valid_from)
        assert [f.value for f in report.before if isinstance(f, Fact)] == ["Porto"]
        assert report.after == ()
        assert "Porto" not in [h.text for h in user.search("Where do they live?", kinds=("fact",))]

        chat.restore(report.id)
        assert fact(memory, "Porto").id == porto.id
        assert memory.doctor().findings == ()


def test_what_was_done_by_hand_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    with opened() as memory:
        said(memory, ["I live in Lisbon.", "I speak Spanish.", "I'm allergic to peanuts."])
        user, chat = memory.user(USER), memory.conversation("a", user=USER)
        user.never_true(fact(memory, "Spanish").id)
        user.remember(category="things", key="boat", value="Kestrel")
        user.correct(fact(memory, "Lisbon").id, value="Sintra")
        before = believed(memory)
        chat.rebuild("facts")
        assert believed(memory) == before
        misread(monkeypatch, " ")
        chat.rebuild("facts")
        left = {value for *_, value in believed(memory)}
        assert {"Kestrel", "Sintra"} <= left
        assert "Spanish" not in left
        assert memory.doctor().findings == ()


def test_what_other_words_say_too_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    with opened() as memory:
        said(memory, ["I live in Lisbon.", "I speak Spanish.", "As I said, I live in Lisbon."])
        misread(monkeypatch, "Lisbon")
        memory.conversation("a", user=USER).rebuild("facts", start_seq=5)
        assert ("self", "home", "lives_in", "Lisbon") in believed(memory)
        assert memory.doctor().findings == ()


def test_a_later_word_still_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a better reader finds in old words takes its place in history, not the place of what was said since."""
    with pytest.MonkeyPatch.context() as patch, opened() as memory:
        misread(patch, "Lisbon")
        said(memory, ["I live in Lisbon.", "I live in Porto."])
        patch.undo()
        memory.conversation("a", user=USER).rebuild("facts", end_seq=2)
        assert believed(memory) == {("self", "home", "lives_in", "Porto")}
        history = [(f.value, f.ended_because) for f in memory.user(USER).history("home")]
        assert history == [("Lisbon", "replaced"), ("Porto", "")]
        assert memory.doctor().findings == ()


def test_refusals_of_the_range_are_those_of_the_new_reading() -> None:
    with opened() as memory:
        said(memory, ["My boss thinks that I live in Lisbon.", "I might be vegan."])
        before = memory.user(USER).rejected()
        memory.conversation("a", user=USER).rebuild("facts")
        assert [(r.reason, r.candidate.seq) for r in memory.user(USER).rejected()] == [
            (r.reason, r.candidate.seq) for r in before
        ]


def test_two_conversations_do_not_touch_one_another(monkeypatch: pytest.MonkeyPatch) -> None:
    with opened() as memory:
        said(memory, ["I live in Lisbon.", "I speak Spanish."])
        memory.conversation("b", user=USER).record("I speak Korean.", "Noted.")
        memory.conversation("b", user="bo").record("I speak Korean.", "Noted.")
        memory.digest()
        misread(monkeypatch, "I")
        memory.conversation("b", user=USER).rebuild("facts")
        assert {value for *_, value in believed(memory)} == {"Lisbon", "Spanish"}
        assert [f.value for f in memory.user("bo").facts()] == ["Korean"]


def test_a_range_behind_the_last_message_is_an_error():
    with Memory(embedder=None) as memory:
        chat = memory.conversation("a", user="ana")
        chat.record("I live in Oslo.", "Noted.")
        with pytest.raises(NotFound, match="no message 500"):
            chat.rebuild("facts", start_seq=500, end_seq=510)
