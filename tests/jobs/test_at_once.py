"""Facts are known when `record` returns, also while background threads work for the same user."""

from __future__ import annotations

from holdfast import Memory


def test_a_fact_is_in_the_next_context_however_fast_the_messages_follow(tmp_path):
    with Memory(tmp_path / "m.db", background=True) as memory:
        for number in range(12):
            chat = memory.conversation("chat", user=f"user-{number}")
            chat.record("I'm vegetarian.", "Noted.")
            chat.record("How are you?", "Fine.")
            chat.record("I eat fish now.", "Noted.")

            assert "pescatarian" in str(chat.context("What can I eat?", strategy="facts/2").messages)
