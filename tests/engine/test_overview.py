"""How far conversations have come, what was learned where."""

from __future__ import annotations

from datetime import UTC, datetime


def test_a_conversation_tells_how_far_it_has_come(memory):
    chat = memory.conversation("c", user="ana")
    assert chat.state() is None
    for n in range(12):
        chat.record(f"Point {n} about the garden.", "Noted.")
    new = chat.state()
    assert (new.messages, new.summarized, new.waiting, new.subject) == (24, 0, 24, "self")
    memory.digest()
    assert (chat.state().summarized, chat.state().read, chat.state().waiting) == (20, 24, 4)


def test_the_overview_lists_the_newest_first_and_keeps_subjects_apart(memory):
    for name, subject, day in (("a", None, 2), ("vet", "rex", 3), ("b", None, 1)):
        at = datetime(2026, 1, day, tzinfo=UTC)
        memory.conversation(name, user="ana", subject=subject).record("Hello.", at=at)
    memory.conversation("other", user="bo").record("Hello.")

    told = [(state.conversation, state.subject) for state in memory.user("ana").overview()]

    assert told == [("vet", "rex"), ("a", "self"), ("b", "self")]
    assert [state.conversation for state in memory.user("ana", subject="rex").overview()] == ["vet"]


def test_what_was_learned_is_told_with_what_is_past_and_by_range(memory):
    chat = memory.conversation("c", user="ana")
    for text in ("I'm vegetarian.", "I live in Porto.", "I eat fish now."):
        chat.record(text, "Noted.")

    assert [(fact.key, fact.live) for fact in chat.learned()] == [
        ("vegetarian", False), ("lives_in", True), ("pescatarian", True),
    ]  # fmt: skip
    assert [fact.key for fact in chat.learned(start_seq=2, end_seq=4)] == ["lives_in"]
    assert memory.conversation("d", user="ana").learned() == []
    assert memory.conversation("c", user="ana", subject="rex").learned() == []
