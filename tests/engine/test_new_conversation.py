"""A new conversation begins with what was said before, with the rules alone."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from holdfast import Memory
from holdfast.context.result import Context
from holdfast.jobs import summaries
from holdfast.testing.fakes import FakeClock

LIMPS = [
    ("Luna has been limping on her left front leg since Friday.", "I'm sorry. Is it swollen?"),
    ("A little. She still eats well.", "Rest her for three days and give her no long walks."),
]
MAX = [("Max vomited twice in the kitchen yesterday.", "Give him rice and watch him for a day.")]
QUESTION = "Hi, we're back. Is she any better?"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(datetime(2026, 3, 2, 18, tzinfo=UTC))


@pytest.fixture
def memory(clock: FakeClock) -> Iterator[Memory]:
    with Memory(embedder=None, clock=clock) as memory:
        yield memory


def talk(memory: Memory, name: str, said: list[tuple[str, str]], **who: str) -> None:
    chat = memory.conversation(name, **({"user": "elena", "subject": "Luna"} | who))
    for user, assistant in said:
        chat.record(user, assistant)


def begin(memory: Memory, name: str = "new", question: str | None = QUESTION, **who: str) -> Context:
    return memory.conversation(name, **({"user": "elena", "subject": "Luna"} | who)).context(question)


def earlier(context: Context) -> str:
    return "\n".join(section.text for section in context.sections if section.name == "earlier")


@pytest.mark.parametrize("digested", [True, False])
def test_a_new_conversation_begins_with_the_one_before(memory: Memory, clock: FakeClock, digested: bool) -> None:
    talk(memory, "first", LIMPS)
    clock.advance(days=3)
    if digested:
        memory.digest()

    context = begin(memory)

    assert "[2026-03-02]" in earlier(context)
    assert "limping on her left front leg" in earlier(context)
    assert "Rest her for three days" in earlier(context)
    assert ("earlier", "first") in {(one.section, one.conversation) for one in context.sources}


def test_it_says_what_summaries_say_once_there_are_some(memory: Memory, clock: FakeClock) -> None:
    talk(memory, "first", LIMPS * 4)
    memory.conversation("first", user="elena", subject="Luna").end()
    memory.digest()
    clock.advance(days=3)

    context = begin(memory)

    summaries = memory.conversation("first", user="elena", subject="Luna").summaries()
    assert [one.id for one in context.sources if one.section == "earlier"] == [one.id for one in summaries]


def test_the_oldest_comes_first_and_all_are_dated(memory: Memory, clock: FakeClock) -> None:
    for number in range(4):
        talk(memory, f"visit {number}", [(f"Luna weighed {20 + number} kg at the clinic today.", "Good.")])
        clock.advance(days=10)

    lines = begin(memory).section("earlier").items

    assert [line[2:12] for line in lines] == ["2026-03-02", "2026-03-12", "2026-03-22", "2026-04-01"]


def test_nothing_of_others_is_shown(memory: Memory, clock: FakeClock) -> None:
    talk(memory, "first", LIMPS)
    talk(memory, "other", MAX, subject="Max")
    talk(memory, "general", [("I painted the kitchen yellow last week.", "Nice.")], subject="self")
    clock.advance(days=3)
    memory.digest()

    assert "Max" not in begin(memory).to_text()
    assert "yellow" not in earlier(begin(memory))
    assert "limping" not in earlier(begin(memory, subject="Max"))
    assert "limping" not in earlier(begin(memory, subject="self"))
    assert earlier(begin(memory, user="omar")) == ""
    assert earlier(begin(memory, bot="tutor")) == ""
    assert earlier(begin(memory, org="acme")) == ""


def test_incognito_conversations_neither_give_nor_get(memory: Memory, clock: FakeClock) -> None:
    secret = memory.conversation("secret", user="elena", subject="Luna", incognito=True)
    secret.record(*LIMPS[0])
    clock.advance(days=3)

    assert earlier(begin(memory)) == ""

    talk(memory, "first", LIMPS)

    hidden = memory.conversation("hidden", user="elena", subject="Luna", incognito=True)
    assert earlier(hidden.context(QUESTION)) == ""


@pytest.mark.parametrize("choice", ["pause", "opt_out"])
def test_a_paused_user_gets_nothing(memory: Memory, clock: FakeClock, choice: str) -> None:
    talk(memory, "first", LIMPS)
    clock.advance(days=3)
    getattr(memory.user("elena"), choice)()

    assert "limping" not in begin(memory).to_text()


def test_a_cleared_conversation_is_gone(memory: Memory, clock: FakeClock) -> None:
    talk(memory, "first", LIMPS)
    clock.advance(days=3)
    memory.digest()
    memory.conversation("first", user="elena", subject="Luna").clear()

    assert earlier(begin(memory)) == ""


def test_what_is_not_believed_any_more_is_left_out(memory: Memory, clock: FakeClock) -> None:
    talk(memory, "first", [("I live in Graz. We have a garden with three old apple trees.", "Lovely.")], subject="self")
    clock.advance(days=3)
    talk(memory, "second", [("I moved to Linz last week, I live in Linz now.", "Welcome.")], subject="self")
    clock.advance(days=3)

    said = earlier(begin(memory, subject="self"))

    assert "three old apple trees" in said
    assert "Linz" in said
    assert "Graz" not in said


def test_it_stays_the_same_while_the_conversation_goes_on(memory: Memory, clock: FakeClock) -> None:
    talk(memory, "first", LIMPS)
    clock.advance(days=3)
    begin(memory)

    for question in ("What did we say about walks?", "And her food?"):
        context = begin(memory, question=question)
        talk(memory, "new", [(question, "As before.")])
        clock.advance(minutes=2)

        assert context.prefix_changed_because is None


def test_a_conversation_that_goes_on_beside_does_not_move_the_prefix(memory: Memory, clock: FakeClock) -> None:
    talk(memory, "first", LIMPS)
    clock.advance(days=3)
    talk(memory, "new", [("Hello, we are back again.", "Welcome.")])
    before = begin(memory, question="And now?")
    assert "limping" in earlier(before)
    clock.advance(minutes=2)

    talk(memory, "beside", [("Luna sleeps in the hall these days.", "I see.")])
    clock.advance(minutes=2)
    context = begin(memory, question="What else?")

    assert "hall" not in earlier(context)
    assert "limping" in earlier(context)


def test_a_changed_earlier_conversation_is_named(memory: Memory, clock: FakeClock) -> None:
    talk(memory, "first", LIMPS)
    clock.advance(days=3)
    begin(memory)
    clock.advance(minutes=2)
    talk(memory, "second", [("Luna ran in the park again this morning.", "Great.")])

    context = begin(memory)

    assert context.prefix_changed_because == "what is known of earlier conversations changed"


@pytest.mark.parametrize("budget", [300, 800, 2000, 4000])
def test_it_keeps_to_its_share(memory: Memory, clock: FakeClock, budget: int) -> None:
    for number in range(12):
        text = f"On walk number {number} Luna met a brown dog called Bobby and they played near the old bridge."
        talk(memory, f"walk {number}", [(text, "That sounds like fun for both of them.")] * 4)
        memory.conversation(f"walk {number}", user="elena", subject="Luna").end()
        clock.advance(days=2)
    memory.digest()

    context = memory.conversation("new", user="elena", subject="Luna").context(QUESTION, budget_tokens=budget)

    tokens = sum(section.tokens for section in context.sections if section.name == "earlier")
    assert tokens <= 0.3 * budget
    assert (tokens > 0) is (budget >= 800)
    assert context.tokens <= budget


def test_the_open_end_of_an_earlier_conversation_is_summarized_once(memory, monkeypatch):
    summarize, calls = summaries.summarize_rest, []
    monkeypatch.setattr(summaries, "summarize_rest", lambda messages: calls.append(1) or summarize(messages))
    memory.conversation("first", user="ana").append([{"role": "user", "content": "My kiln broke in Faro last week."}])
    chat = memory.conversation("second", user="ana")

    shown = [chat.context("And now?").section("earlier") for _ in range(3)]
    memory.conversation("first", user="ana").append([{"role": "user", "content": "It is mended now, thanks to Rui."}])
    later = memory.conversation("third", user="ana").context("And now?").section("earlier")

    assert len(calls) == 2
    assert {one.text for one in shown} == {shown[0].text}
    assert "Faro" in shown[0].text
    assert "Rui" in later.text


def test_an_erased_word_is_not_kept_in_the_summary_of_an_open_end(memory):
    first, chat = memory.conversation("first", user="ana"), memory.conversation("second", user="ana")
    first.append([{"role": "user", "content": "My kiln broke in Faro last week."}])
    chat.context("And now?")

    first.clear()

    assert not memory._engine._rests._kept
    assert "Faro" not in str(chat.context("And now?").messages)


@pytest.mark.parametrize("change", ["clear", "forget", "edit"])
def test_a_word_that_another_process_erased_is_not_shown_from_the_summary_of_an_open_end(tmp_path, change):
    with Memory(tmp_path / "chat.db") as here, Memory(tmp_path / "chat.db") as there:
        here.conversation("first", user="ana").record("My kiln broke in Faro last week.", "I am sorry about your kiln.")
        chat = here.conversation("second", user="ana")
        assert "Faro" in str(chat.context("And now?").messages)
        other = there.conversation("first", user="ana")

        {"clear": other.clear, "forget": lambda: other.forget(1), "edit": lambda: other.edit(1, "My kiln broke.")}[
            change
        ]()

        assert "Faro" not in str(chat.context("And now?").messages)


def test_two_stores_do_not_share_what_is_kept_of_an_open_end(clock):
    shown = []
    for place in ("Faro", "Braga"):
        with Memory(clock=clock) as memory:
            memory.conversation("first", user="ana").append({"role": "user", "content": f"My kiln broke in {place}."})
            shown.append(str(memory.conversation("second", user="ana").context("And now?").messages))

    assert "Faro" in shown[0]
    assert "Braga" in shown[1]


def test_what_was_written_by_hand_is_no_earlier_conversation(memory: Memory, clock: FakeClock) -> None:
    talk(memory, "first", LIMPS)
    luna = memory.user("elena", subject="Luna")
    luna.remember("Luna is afraid of the vacuum cleaner.")
    clock.advance(days=3)
    before = begin(memory)
    luna.remember("Luna sleeps in the hall under the stairs.")
    after = begin(memory)

    assert "limping" in earlier(before)
    assert "vacuum" not in earlier(before)
    assert earlier(after) == earlier(before)


def test_seven_open_conversations_stand_the_same_before_and_after_the_first_message(memory, clock):
    for number in range(7):
        talk(memory, f"visit {number}", [(f"Luna weighed {20 + number} kg at the clinic today.", "Good.")])
        clock.advance(days=1)
    before = earlier(begin(memory))
    talk(memory, "new", [("She weighs 30 kg now.", "Noted.")])

    assert "26 kg" in before
    assert earlier(begin(memory)) == before
