"""A chat without an id is known by all that it shows, never by its last exchange; in doubt it is a new one."""

from __future__ import annotations

import pytest

from holdfast.server.proxy.chat import Continuation, continuation, digest_of
from holdfast.types import Message

from .test_clients import ask
from .test_memory import said, user
from .upstream import plain


def talk(*texts: str) -> list[Message]:
    """Messages of the user and the assistant in turn."""
    return [Message("assistant" if number % 2 else "user", text) for number, text in enumerate(texts)]


def same(sent: str, kept: str) -> bool:
    return sent == kept


def how(before: list[Message], new: str, kept: list[Message], **more: object) -> Continuation | None:
    return continuation(before, [Message("user", new)], kept, same, **more)  # type: ignore[arg-type]


LONG = talk("hi", "hello!", "I plant beans.", "Good.", "When?", "In May.")


@pytest.mark.parametrize(
    ("before", "new", "kept", "found"),
    [
        (talk("hi", "hello!"), "And now?", talk("hi", "hello!"), Continuation.NEXT),
        (LONG, "And peas?", LONG, Continuation.NEXT),
        ([Message("assistant", "Welcome!"), *LONG], "And peas?", LONG, Continuation.NEXT),
        (LONG, "And peas?", [*LONG, Message("user", "And peas?")], Continuation.AGAIN),
        (LONG, "And peas?", [*LONG, *talk("And peas?", "Too.")], Continuation.AGAIN),
        (talk("hi", "hello!"), "I plant beans.", LONG[:4], Continuation.AGAIN),
        (LONG[:4], "Where?", LONG, Continuation.EDITED),
        (LONG[:4], "When exactly?", [*LONG, *talk("Thanks", "Bye")], Continuation.EDITED),
        (LONG[2:], "And peas?", LONG, Continuation.WINDOW),
        (LONG[2:], "And peas?", [*LONG, *talk("And peas?", "Too.")], Continuation.WINDOW),
        ([*LONG[:5], Message("assistant", "In June.")], "Ok", [*LONG, Message("assistant", "In June.")], Continuation.NEXT),
        ([*LONG[:2], *talk("I fly kites.", "Oh.")], "Ok", [*LONG[:4], *talk("I fly kites.", "Oh.")], Continuation.NEXT),
        (talk("hi", "hello!"), "Something else", LONG, None),  # the same greeting opened another chat
        (talk("hi", "hello!"), "Something else", [*LONG, *talk("hi", "hello!")], None),  # the last exchange alone
        (LONG[4:], "And peas?", LONG, None),
        (talk("hi", "hey!", "When?", "In May."), "And peas?", LONG, None),
        (talk("I fly kites.", "Good.", "When?", "In May."), "And balloons?", LONG, None),
        (talk("We were talking", "Yes", "hi", "hello!"), "So?", talk("hi", "hello!"), None),
        (LONG[2:4], "Where?", LONG, None),
    ],
)  # fmt: skip
def test_all_that_is_shown_decides(before, new, kept, found):
    assert how(before, new, kept) is found


def test_history_from_before_the_memory_is_known_by_its_digest():
    older = talk("We were talking", "Yes")
    shown = [*older, *talk("hi", "hello!")]

    assert how(shown, "So?", talk("hi", "hello!"), brought=digest_of(older)) is Continuation.NEXT
    assert how(shown, "So?", talk("hi", "hello!"), brought=digest_of(talk("Another", "Yes"))) is None
    assert how(talk("hi", "hello!"), "So?", talk("hi", "hello!"), brought=digest_of(older)) is None


def run(client, world, turns, history=None):
    """Send the turns of one chat, each with the whole history; return it."""
    history = history if history is not None else []
    for asked, answer in turns:
        world.model.reply = lambda asked, answer=answer: plain(answer)
        history.append(user(asked))
        history.append(said(ask(client, list(history)).choices[0].message.content))
    return history


def chats(world):
    """The texts of each conversation."""
    return sorted([text for _, text in world.stored(conversation=n)] for n in world.memory.user("ana").conversations())


@pytest.fixture
def ana(world):
    return world.client(conversation=None)


def test_two_chats_with_the_same_first_exchange_stay_apart(world, ana):
    one = run(ana, world, [("hi", "hello!")])
    two = run(ana, world, [("hi", "hello!")])
    run(ana, world, [("I live in Porto.", "Noted!"), ("Where?", "Porto.")], one)
    run(ana, world, [("I fly kites.", "Nice!"), ("What?", "Kites.")], two)

    assert chats(world) == [
        ["hi", "hello!", "I fly kites.", "Nice!", "What?", "Kites."],
        ["hi", "hello!", "I live in Porto.", "Noted!", "Where?", "Porto."],
    ]


def test_turns_of_two_such_chats_in_any_order(world, ana):
    one, two = run(ana, world, [("hi", "hello!")]), run(ana, world, [("hi", "hello!")])
    for number in range(3):
        run(ana, world, [(f"one {number}", "Yes.")], one)
        run(ana, world, [(f"two {number}", "Yes.")], two)

    assert [text for texts in chats(world) for text in texts if text.startswith("one")] == ["one 0", "one 1", "one 2"]
    assert [sum(text.startswith("one") for text in texts) for texts in chats(world)] in ([3, 0], [0, 3])
    assert [len(texts) for texts in chats(world)] == [8, 8]


def test_words_of_one_chat_do_not_reach_the_model_in_another(world, ana):
    run(ana, world, [("hi", "hello!"), ("My secret is blue.", "Noted!")])
    run(ana, world, [("Good day", "hello!"), ("hi", "hello!"), ("What now?", "Well.")])

    assert chats(world) == [
        ["Good day", "hello!", "hi", "hello!", "What now?", "Well."],
        ["hi", "hello!", "My secret is blue.", "Noted!"],
    ]
    shown = [m["content"] for m in world.model.asked[-1].body["messages"] if m["role"] == "assistant"]
    assert shown == ["hello!", "hello!"]


def test_another_answer_is_asked_for_in_the_same_chat(world, ana):
    history = run(ana, world, [("hi", "hello!"), ("A number?", "One.")])
    history = run(ana, world, [("A number?", "Two.")], history[:2])
    run(ana, world, [("Thanks", "Bye")], history)

    assert chats(world) == [["hi", "hello!", "A number?", "Two.", "Thanks", "Bye"]]


def test_an_edited_input_stays_in_its_chat(world, ana):
    history = run(ana, world, [("hi", "hello!"), ("I plant beans.", "Good."), ("When?", "In May.")])
    history = run(ana, world, [("Where?", "Outside.")], history[:4])
    run(ana, world, [("Thanks", "Bye")], history)

    assert chats(world) == [["hi", "hello!", "I plant beans.", "Good.", "Where?", "Outside.", "Thanks", "Bye"]]


def test_a_window_is_known_while_it_shows_two_inputs(world, ana):
    history = run(ana, world, [(f"Line {number}.", f"Yes {number}.") for number in range(5)])
    run(ana, world, [("Line 5.", "Yes 5.")], history[-4:])
    assert len(chats(world)) == 1

    run(ana, world, [("Line 6.", "Yes 6.")], [user("Line 5."), said("Yes 5.")])
    assert len(chats(world)) == 2


OLDER = ["We were talking.", "Yes."]
TURNS = [("hi", "hello!"), ("I plant beans.", "Good."), ("When?", "In May.")]
TOLD = ["hi", "hello!", "I plant beans.", "Good.", "When?", "In May."]


def older():
    """The history of a chat that began before the memory, as its client shows it."""
    return [user(OLDER[0]), said(OLDER[1])]


@pytest.mark.parametrize("name", [None, "c-7"])
def test_a_chat_that_began_before_the_memory_is_stored_from_its_beginning(world, name):
    run(world.client(conversation=name), world, TURNS, older())

    assert chats(world) == [[*OLDER, *TOLD]]


@pytest.mark.parametrize("name", [None, "c-7"])
def test_a_client_may_keep_an_older_history_to_itself(world, name):
    run(world.client(conversation=name, **{"X-Memory-History": "new"}), world, TURNS, older())

    assert chats(world) == [TOLD]


def erase(world):
    world.memory.conversation("before", user="ana").append([user("I keep bees.")])
    world.memory.conversation("before", user="ana").forget(1)


def erase_all(world):
    world.memory.conversation("before", user="ana").append([user("I keep bees.")])
    world.memory.user("ana").erase()


def pause(world):
    world.memory.user("ana").pause()
    world.memory.user("ana").resume()


def store_nothing(world):
    ask(world.client(conversation="apart", **{"X-Memory-Store": "off"}), [user("Between us: I keep bees.")])


def remember_nothing(world):
    ask(world.client(conversation="apart", **{"X-Memory": "off"}), [user("Between us: I keep bees.")])


@pytest.mark.parametrize("withheld", [erase, erase_all, pause, store_nothing, remember_nothing])
@pytest.mark.parametrize("name", [None, "c-7"])
def test_no_history_brings_back_what_a_user_kept_from_the_memory(world, name, withheld):
    """Nobody can tell those words from others, so from then on only what is new is stored."""
    withheld(world)
    history = [*older(), user("I keep bees."), said("Nice.")]
    run(world.client(conversation=name), world, TURNS, history)

    assert TOLD in chats(world)
    assert not [text for texts in chats(world) for text in texts if text in OLDER or "bees" in text]
    ben = world.client(user="ben", conversation=name)
    run(ben, world, [("hi", "hello!")], older())
    told = [world.memory.conversation(one, user="ben").load() for one in world.memory.user("ben").conversations()]
    assert [[message.content for message in one] for one in told] == [[*OLDER, "hi", "hello!"]]


def test_a_copy_of_a_chat_does_not_bring_its_history_again(world):
    history = run(world.client(conversation="one"), world, TURNS[:2])
    run(world.client(conversation="copy"), world, [("And beets?", "In June.")], list(history))

    assert chats(world) == [["And beets?", "In June."], ["hi", "hello!", "I plant beans.", "Good."]]


def test_a_window_of_a_long_chat_is_no_history_from_before_it(world, ana):
    history = run(ana, world, [(f"Line {number}.", f"Yes {number}.") for number in range(12)])
    run(ana, world, [("C?", "Three.")], history[-2:])

    assert ["C?", "Three."] in chats(world)


def test_a_greeting_of_the_chat_program_is_no_history(world, ana):
    history = [said("Welcome, traveler!")]
    run(ana, world, [("hi", "hello!"), ("When?", "In May.")], history)

    assert chats(world) == [["hi", "hello!", "When?", "In May."]]


def test_two_windows_alike_are_nobodys(world, ana):
    tail = [("A?", "One."), ("B?", "Two.")]
    one = run(ana, world, [("I plant beans.", "Good."), *tail])
    run(ana, world, [("I fly kites.", "Good."), *tail])
    run(ana, world, [("C?", "Three.")], one[-4:])

    assert len(chats(world)) == 3
