"""Chats as chat programs make them: asked again, edited, branched, tried again, several at once; each is stored once."""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast import Memory
from holdfast.server.gate import Grant, Quotas, ServerSettings
from holdfast.server.proxy.chat import ChatMemory, ProxiedChat, branches_of, children, way_to
from holdfast.server.proxy.request import memory_options, read
from holdfast.server.proxy.shapes import CHAT, MESSAGES, RESPONSES
from holdfast.types import Message

from .test_clients import ask
from .test_memory import said, user
from .upstream import Reply, plain

WHOLE = {"X-Memory-History": "whole"}


def everything(world, conversation: str = "c") -> list[tuple[str, bool]]:
    chat = world.memory.conversation(conversation, user="ana")
    return [(message.content, bool(message.meta.get("abandoned"))) for message in chat.load(abandoned=True)]


def answering(world, *texts: str) -> None:
    left = list(texts)
    world.model.reply = lambda asked: plain(left.pop(0) if len(left) > 1 else left[0])


def test_an_edited_first_message_takes_the_place_of_the_old_one(world):
    client = world.client(**WHOLE)
    answering(world, "Hi Ana!", "Hi Eva!", "Eva.")
    ask(client, [user("My name is Ana.")])
    ask(client, [user("My name is Eva.")])
    ask(client, [user("My name is Eva."), said("Hi Eva!"), user("Who am I?")])

    assert [text for _, text in world.stored()] == ["My name is Eva.", "Hi Eva!", "Who am I?", "Eva."]
    assert [fact.value for fact in world.memory.user("ana").facts()] == ["Eva"]
    assert "Ana" not in " ".join(world.model.asked[-1].texts)


def test_a_client_that_shows_no_history_any_more_leaves_nothing_behind(world):
    """It may have been started anew, and its user goes on under the same name."""
    client = world.client()
    answering(world, "Hi Ana!", "Good.", "Fine.")
    ask(client, [user("My name is Ana.")])
    ask(client, [user("My name is Ana."), said("Hi Ana!"), user("I plant beans.")])
    ask(client, [user("I live in Porto.")])

    stored = ["My name is Ana.", "Hi Ana!", "I plant beans.", "Good.", "I live in Porto.", "Fine."]
    assert [text for _, text in world.stored()] == stored
    assert {"Ana", "Porto"} <= {fact.value for fact in world.memory.user("ana").facts()}


def test_after_an_erased_end_the_next_message_leaves_nothing_behind(world):
    client, chat = world.client(), world.memory.conversation("c", user="ana")
    answering(world, "Hi Ana!")
    ask(client, [user("My name is Ana.")])
    for number in range(6):
        ask(client, [user(f"Line {number}.")])
    for seq in range(3, 15):
        chat.forget(seq)
    ask(client, [user("I live in Porto.")])

    assert [text for _, text in world.stored()] == ["My name is Ana.", "Hi Ana!", "I live in Porto.", "Hi Ana!"]
    assert not any(left_behind for _, left_behind in everything(world))


def test_the_same_words_after_the_answer_are_said_anew():
    with Memory(embedder=None) as memory:
        turns = ChatMemory(memory, Quotas(memory.admin.keys, ServerSettings()))
        first = turns.flight("ana", "Yes.")

        assert turns.flight("ana", "Yes.") is first
        first.reply = Message("assistant", "No.")
        again = turns.flight("ana", "Yes.")
        assert again is not first
        assert turns.flight("ana", "Yes.") is again


@pytest.mark.parametrize("follows", [-1, 1, 7, True, "1", None])
def test_a_mark_that_cannot_be_leads_nowhere(follows):
    tree = [Message("user", "One.", seq=1, meta={"follows": follows}), Message("assistant", "Two.", seq=2)]

    assert [one.seq for one in way_to(tree, 2)] == [1, 2]
    assert [one.seq for one in children(tree, 0)] == [1]
    assert [[one.seq for one in way] for way in branches_of(tree)] == [[1, 2]]


def test_an_answer_that_the_user_changed_is_the_one_that_counts(world):
    client = world.client()
    answering(world, "One.", "Good.")
    ask(client, [user("A number?")])
    ask(client, [user("A number?"), said("Seven."), user("Thanks.")])

    assert [text for _, text in world.stored()] == ["A number?", "Seven.", "Thanks.", "Good."]
    assert ("One.", True) in everything(world)


def test_a_branch_that_the_user_returns_to_is_in_use_again(world):
    client = world.client(**WHOLE)
    answering(world, "Hi!", "Good.", "Nice!", "In May.")
    ask(client, [user("Hello.")])
    opening = [user("Hello."), said("Hi!")]
    ask(client, [*opening, user("I plant beans.")])
    ask(client, [*opening, user("I fly kites.")])
    ask(client, [*opening, user("I plant beans."), said("Good."), user("When?")])

    assert [text for _, text in world.stored()] == ["Hello.", "Hi!", "I plant beans.", "Good.", "When?", "In May."]
    assert everything(world)[4:6] == [("I fly kites.", True), ("Nice!", True)]


@pytest.mark.parametrize("conversation", ["c", None])
def test_one_idempotency_key_stores_one_exchange(world, conversation):
    client = world.client(conversation=conversation)
    answering(world, "One.", "Two.", "Three.")
    for _ in range(3):
        ask(client, [user("A number?")], extra_headers={"Idempotency-Key": "k-1", "X-Stainless-Retry-Count": "1"})

    (name,) = world.memory.user("ana").conversations()
    assert [text for _, text in world.stored(conversation=name)] == ["A number?", "Three."]
    ask(client, [user("A number?")], extra_headers={"Idempotency-Key": "k-2"})
    assert sum(len(world.stored(conversation=n)) for n in world.memory.user("ana").conversations()) == 4


@pytest.mark.parametrize("conversation", ["c", None])
def test_five_at_once_store_one_exchange(world, conversation):
    client = world.client(conversation=conversation)
    all_asked = threading.Barrier(5)

    def reply(asked) -> Reply:
        all_asked.wait(20)
        return plain("One.")

    world.model.reply = reply
    with ThreadPoolExecutor(5) as pool:
        answers = list(pool.map(lambda _: ask(client, [user("A number?")]).choices[0].message.content, range(5)))

    assert answers == ["One."] * 5
    (name,) = world.memory.user("ana").conversations()
    assert world.memory.conversation(name, user="ana").load(abandoned=True)[1:][0].content == "One."
    assert [text for _, text in world.stored(conversation=name)] == ["A number?", "One."]
    assert len(everything(world, name)) == 2


def test_of_three_questions_at_once_each_answer_says_which_is_its_own(world):
    client, all_asked = world.client(), threading.Barrier(3)

    def reply(asked) -> Reply:
        all_asked.wait(20)
        return plain(f"About {asked.texts[-1]}")

    world.model.reply = reply
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda name: ask(client, [user(name)]), ("bees", "kites", "beans")))
    world.model.reply = lambda asked: plain("About tea")
    ask(client, [user("tea")])

    stored = {message.seq: message for message in world.memory.conversation("c", user="ana").load()}
    answered = {message.meta.get("answers", seq - 1): message for seq, message in stored.items() if seq in (4, 5, 6, 8)}
    assert sorted(answered) == [1, 2, 3, 7]
    assert all(answer.content == f"About {stored[seq].content}" for seq, answer in answered.items())
    assert "answers" not in stored[8].meta


@pytest.mark.parametrize("history", ["store", "whole, store"])
def test_an_older_history_is_taken_in_when_the_client_wants_it(world, history):
    client = world.client(**{"X-Memory-History": history})
    history = [user("I live in Porto."), said("Noted!"), user("I plant beans."), said("Good.")]
    ask(client, [*history, user("When?")])

    texts = ["I live in Porto.", "Noted!", "I plant beans.", "Good.", "When?", "Noted!"]
    assert [text for _, text in world.stored()] == texts
    assert [fact.value for fact in world.memory.user("ana").facts() if fact.value == "Porto"] == ["Porto"]
    ask(client, [*history, user("When?"), said("Noted!"), user("Where?")])
    assert [text for _, text in world.stored()] == [*texts, "Where?", "Noted!"]


def test_in_a_chain_an_earlier_response_begins_a_branch(world):
    number = iter(range(1, 9))

    def reply(asked) -> Reply:
        from .test_responses import whole  # noqa: PLC0415 - its fixture would answer here, too

        count = next(number)
        return whole(f"Answer {count}.", number=count)

    world.model.reply = reply
    client = world.client(conversation=None)
    first = client.responses.create(model="m-1", input="Hello.")
    for text in ("I plant beans.", "I fly kites."):
        client.responses.create(model="m-1", input=text, previous_response_id=first.id)

    (name,) = world.memory.user("ana").conversations()
    assert [text for _, text in world.stored(conversation=name)] == ["Hello.", "Answer 1.", "I fly kites.", "Answer 3."]


@dataclass
class Node:
    """A message in the program's tree."""

    role: str
    text: str
    parent: Node | None = None
    children: list[Node] = field(default_factory=list)
    name: str = ""  # of the response that an answer came in

    def way(self) -> list[Node]:
        return [*(self.parent.way() if self.parent is not None else []), *([self] if self.text else [])]


def as_chat(before: list[Node], asked: Node) -> dict[str, Any]:
    return {"messages": [{"role": one.role, "content": one.text} for one in (*before, asked)]}


def as_blocks(before: list[Node], asked: Node) -> dict[str, Any]:
    """Texts and lists of blocks in turns, as programs mix them."""
    said = [
        {"role": one.role, "content": [{"type": "text", "text": one.text}] if number % 3 else one.text}
        for number, one in enumerate((*before, asked))
    ]
    return {"messages": said, "system": "You are Bo."}


def as_items(before: list[Node], asked: Node) -> dict[str, Any]:
    kinds = {"user": "input_text", "assistant": "output_text"}
    return {
        "input": [
            {"role": one.role, "content": [{"type": kinds[one.role], "text": one.text}]} for one in (*before, asked)
        ]
    }


def as_references(before: list[Node], asked: Node) -> dict[str, Any]:
    said = [{"role": one.role, "content": one.text} for one in (*before, asked)]
    references = [{"type": "item_reference", "id": f"msg_{one.name}"} for one in (*before, asked)]
    return {"input": [b if a["role"] == "assistant" else a for a, b in zip(said, references, strict=True)]}


def as_chain(before: list[Node], asked: Node) -> dict[str, Any]:
    """Nothing but what is new: the model's server holds the rest."""
    return {"input": asked.text} | ({"previous_response_id": before[-1].name} if before else {})


STYLES = {
    "chat": (CHAT, as_chat),
    "messages": (MESSAGES, as_blocks),
    "responses": (RESPONSES, as_items),
    "references": (RESPONSES, as_references),
    "chain": (RESPONSES, as_chain),
}


@dataclass
class Program:
    """A chat program with one memory behind it, without the HTTP between: each request is begun, answered and stored."""

    memory: Memory
    user: str
    chance: random.Random
    names: bool
    style: str = "chat"
    older: bool = False  # some chats began before the memory was turned on
    chats: list[Node] = field(default_factory=list)
    at: dict[int, Node] = field(default_factory=dict)
    number: int = 0

    def __post_init__(self) -> None:
        self.turns = ChatMemory(self.memory, Quotas(self.memory.admin.keys, ServerSettings()))
        self.grant = Grant(None, "default", "default", None, None)

    def begin(self, chat: int, before: list[Node], asked: Node, key: str = "") -> ProxiedChat:
        shape, write = STYLES[self.style]
        whose = {"metadata": {"user_id": self.user}} if shape is MESSAGES else {"user": self.user}
        body = json.dumps(whose | write(before, asked)).encode()
        headers = {"x-memory-conversation": f"c{chat}", "x-memory-history": "whole"} if self.names else {}
        headers |= {"x-memory-recall": "off"} | ({"idempotency-key": key} if key else {})
        request = read(body, shape)
        options = memory_options(request.fields, headers, self.grant, shape)
        turn = ProxiedChat("off")
        turn.flight = self.turns.flight(self.user, chat if self.names else 0, options.request or body)
        self.turns.begin(request, options, self.grant, turn)
        return turn

    def end(self, turn: ProxiedChat, answer: str) -> str:
        """Answer; return the name of the response."""
        name = self.text("resp") if STYLES[self.style][0] is RESPONSES else ""
        items = [f"msg_{name}"] if name else []
        self.turns.finish(turn, Message("assistant", answer), None, whole=True, name=name, items=items)
        return name

    def text(self, words: str) -> str:
        self.number += 1
        return f"{words} {self.number}."

    def ask(self, chat: int, parent: Node, text: str) -> None:
        """Ask, sometimes twice under one key or several times at once, and go on from the answer."""
        known = [one for one in parent.children if one.text == text]
        asked = known[0] if known else Node("user", text, parent)
        answer = Node("assistant", self.text("Answer"), asked)
        kind = self.chance.random()
        if kind < 0.2:  # tried again: the first answer was lost on the way
            key = self.text("key")
            self.end(self.begin(chat, parent.way(), asked, key), answer.text)
            answer.name = self.end(self.begin(chat, parent.way(), asked, key), answer.text)
        elif kind < 0.4:
            turns = [self.begin(chat, parent.way(), asked) for _ in range(3)]
            answer.name = self.chance.choice([self.end(turn, answer.text) for turn in turns])
        elif kind < 0.5:  # the model failed, and the user tried again
            self.begin(chat, parent.way(), asked)
            answer.name = self.end(self.begin(chat, parent.way(), asked), answer.text)
        else:
            answer.name = self.end(self.begin(chat, parent.way(), asked), answer.text)
        if not known:
            parent.children.append(asked)
        asked.children.append(answer)
        self.at[chat] = answer

    def begun(self, last: Node) -> Node:
        """Return the end of what was said in a new chat before the memory was turned on."""
        while self.older and self.chance.random() < 0.6:
            for role, text in (("user", self.text("Older")), ("assistant", self.text("Reply"))):
                last.children.append(Node(role, text, last))
                last = last.children[-1]
        return last

    def step(self) -> None:
        if not self.chats or (len(self.chats) < 3 and self.chance.random() < 0.2):
            self.chats.append(Node("root", ""))
            self.ask(len(self.chats) - 1, self.begun(self.chats[-1]), self.text("Hello"))
            return
        chat = self.chance.randrange(len(self.chats))
        way = self.at[chat].way()
        asked = [node for node in way if node.role == "user"]
        first = 0 if self.names else 2  # without a name, an early edit may as well be another chat
        kind = self.chance.random()
        if kind < 0.5 or len(asked) <= first:
            self.ask(chat, way[-1], self.text("Line"))
        elif kind < 0.7:  # another answer
            node = self.chance.choice(asked[first:])
            self.ask(chat, node.parent, node.text)
        elif kind < 0.9:  # other words
            node = self.chance.choice(asked[first:])
            self.ask(chat, node.parent, self.text("Edited"))
        else:  # back to another branch
            ends = [node for node in nodes(self.chats[chat]) if node.role == "assistant"]
            node = self.chance.choice([end for end in ends if len(end.way()) > 2 * first])
            self.ask(chat, node, self.text("Back"))


def test_a_first_request_that_failed_is_known_again_beside_a_chat_of_the_same_millisecond():
    now = datetime(2026, 1, 1, tzinfo=UTC)
    with Memory(embedder=None, clock=lambda: now) as memory:
        for number in range(20):
            program = Program(memory, f"user {number}", random.Random(number), names=False)
            program.end(program.begin(0, [], Node("user", "Hello.")), "Yes.")
            program.begin(1, [], Node("user", "Hi."))
            program.end(program.begin(1, [], Node("user", "Hi.")), "No.")

            said = [stored_ways(memory, program.user, name)[1] for name in memory.user(program.user).conversations()]
            assert sorted(said) == [("Hello.", "Yes."), ("Hi.", "No.")]


def nodes(root: Node) -> list[Node]:
    return [found for child in root.children for found in (child, *nodes(child))]


def stored_ways(memory: Memory, user: str, name: str) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
    """The way to each stored message, and the way that is in use."""
    chat = memory.conversation(name, user=user)
    tree = chat.load(abandoned=True)
    ways = [tuple(one.content for one in way_to(tree, message.seq)) for message in tree]
    return ways, tuple(message.content for message in chat.load())


@pytest.mark.parametrize("names", [True, False], ids=["with ids", "without ids"])
@pytest.mark.parametrize(
    ("style", "older"), [*((style, False) for style in STYLES), ("chat", True), ("messages", True), ("responses", True)]
)
def test_whatever_a_chat_program_does_the_stored_tree_is_its_own(style, older, names, full):
    """300 random walks, with ids and without; a few of the other ways to show a chat, and as many with --full."""
    with Memory(embedder=None) as memory:
        for seed in range(150 if full or (style, older) == ("chat", False) else 30):
            user = f"user {seed}"
            program = Program(memory, user, random.Random(seed), names, style, older)
            for _ in range(9):
                program.step()
            trees = [sorted(tuple(one.text for one in node.way()) for node in nodes(root)) for root in program.chats]
            in_use = [tuple(node.text for node in program.at[chat].way()) for chat in range(len(trees))]
            found = [stored_ways(memory, user, name) for name in memory.user(user).conversations()]

            assert sorted(sorted(ways) for ways, _ in found) == sorted(trees), (seed, names)
            assert sorted(live for _, live in found) == sorted(in_use), (seed, names)
            assert set(Counter(way[-1] for ways, _ in found for way in ways).values()) == {1}
        assert memory.doctor().ok
