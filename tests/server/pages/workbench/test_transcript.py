"""What a message taught stands beside it; what was forgotten leaves its number; versions are compared by words."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.server.pages.workbench.transcript import fact_badges, first_mentions, transcript_lines, word_diff


def told(chat, *texts):
    for text in texts:
        chat.record(text, "Noted.")


def test_a_badge_says_learned_replaced_confirmed_or_undone(memory):
    chat, user = memory.conversation("c", user="ana"), memory.user("ana")
    told(chat, "I'm vegetarian.", "I'm vegetarian, as I said.", "I eat fish now.", "I live in Porto.")
    user.never_true(next(fact.id for fact in user.facts() if fact.category == "home"))

    found = fact_badges(chat.learned(), "c")

    said = {seq: [(badge.kind, badge.fact.key) for badge in here] for seq, here in found.items()}
    assert said == {
        1: [("learned", "vegetarian")],
        3: [("confirmed", "vegetarian")],
        5: [("replaced", "pescatarian")],
        7: [("over", "lives_in")],
    }
    assert found[5][0].previous is not None
    assert found[5][0].previous.key == "vegetarian"
    assert [(seq, replaced) for seq, _, replaced in first_mentions(chat.learned(), "c")] == [
        (1, False),
        (5, True),
        (7, False),
    ]


def test_only_this_conversation_counts(memory):
    told(memory.conversation("a", user="ana"), "I live in Porto.")
    told(memory.conversation("b", user="ana"), "I live in Porto.")
    assert {
        seq: badge.kind for seq, (badge,) in fact_badges(memory.conversation("b", user="ana").learned(), "b").items()
    } == {1: "confirmed"}
    assert memory.conversation("b", user="ana").learned(start_seq=2) == []


def test_forgotten_messages_leave_their_numbers(memory):
    chat = memory.conversation("c", user="ana")
    told(chat, "One.", "Two.", "Three.")
    for seq in (1, 3, 4, 6):
        chat.forget(seq)
    shown = transcript_lines(chat.load(), 1, 6, {})
    assert [(line.start_seq, line.end_seq, line.message is not None) for line in shown] == [
        (1, 1, False), (2, 2, True), (3, 4, False), (5, 5, True), (6, 6, False),
    ]  # fmt: skip


def test_versions_differ_by_words():
    assert word_diff("Ana lives in Porto now.", "Ana lives in Lisbon now.") == [
        ("same", "Ana lives in "), ("gone", "Porto "), ("new", "Lisbon "), ("same", "now."),
    ]  # fmt: skip
    assert word_diff("a " * 5_000, "b") == [("gone", "a " * 5_000), ("new", "b")]


@given(st.text(max_size=200), st.text(max_size=200))
def test_both_versions_can_be_read_off_their_difference(before, after):
    said = word_diff(before, after)
    assert "".join(words for kind, words in said if kind != "gone").split() == after.split()
    gone = [words for kind, words in said if kind == "gone"]
    assert all(word in before.split() for words in gone for word in words.split())
