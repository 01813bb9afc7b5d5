"""Users rebuild ranges of their own conversations and set their own prompts where the operator allows it."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from holdfast import Config, Memory
from holdfast.errors import Conflict
from holdfast.server import jobs
from holdfast.server.app import create_app
from holdfast.server.jobs import MOST_OPEN_OF_USER, Owner, Tasks
from holdfast.testing.model import ScriptedModel
from holdfast.types import BY_HAND_CONVERSATION

from .conftest import BASE

CHAT = "/v1/users/ana/conversations/c"


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory(embedder=None, config=Config(users_may_rebuild=True, users_may_set_prompts=True)) as opened:
        chat = opened.conversation("c", user="ana")
        for number in range(40):
            chat.record(f"On day {number} I walked {number + 3} kilometers to the old mill and back.", "Well done!")
        chat.end()
        opened.digest()
        opened.conversation("theirs", user="bo").record("I live in Faro.", "Noted.")
        yield opened


@pytest.fixture
def ana(memory: Memory) -> Iterator[TestClient]:
    key = memory.admin.keys.create("user", user="ana").key
    with TestClient(create_app(memory), base_url=BASE, headers={"Authorization": f"Bearer {key}"}) as client:
        yield client


def test_a_conversation_that_does_not_exist_is_not_rebuilt(ana: TestClient) -> None:
    for body in ({"layer": "summaries"}, {"layer": "facts", "dry_run": True}):
        answer = ana.post("/v1/users/ana/conversations/never/rebuild", json=body)
        assert (answer.status_code, answer.json()["code"]) == (404, "not-found")


def test_a_users_key_rebuilds_a_range_of_their_own(ana: TestClient, memory: Memory) -> None:
    estimate = ana.post(f"{CHAT}/rebuild", json={"layer": "summaries", "end_seq": 10, "dry_run": True})
    ordered = ana.post(f"{CHAT}/rebuild", json={"layer": "summaries", "start_seq": 1, "end_seq": 10})
    done = ana.get(ordered.headers["location"], params={"wait_s": 20}).json()

    assert estimate.status_code == 200
    assert (ordered.status_code, done["state"]) == (202, "done")
    assert memory.conversation("c", user="ana").summaries(1)[0].version == 2
    (made,) = ana.get(f"{CHAT}/rebuilds").json()["data"]
    assert ana.post(f"{CHAT}/rebuilds/{made['id']}/restore").status_code == 200
    assert memory.conversation("c", user="ana").summaries(1)[0].version == 1
    assert ana.post("/v1/users/bo/conversations/theirs/rebuild", json={"layer": "facts"}).status_code == 403


def test_a_rebuild_of_which_every_range_failed_has_failed() -> None:
    """It is not tried again by itself, so nothing says that it were."""
    refusing = ScriptedModel({"episodes": lambda request: "I'm sorry, but I can't help with that."})
    with Memory(embedder=None, llm=refusing, config=Config(users_may_rebuild=True)) as memory:
        chat = memory.conversation("c", user="ana")
        for number in range(5):
            chat.record(f"On day {number} I walked {number + 3} kilometers to the old mill.", "Well done!")
        chat.end()
        memory.digest()
        key = memory.admin.keys.create("user", user="ana").key
        with TestClient(create_app(memory), base_url=BASE, headers={"Authorization": f"Bearer {key}"}) as client:
            ordered = client.post(f"{CHAT}/rebuild", json={"layer": "episodes", "start_seq": 1, "end_seq": 10})
            ended = client.get(ordered.headers["location"], params={"wait_s": 20}).json()

    assert (ended["state"], ended["code"]) == ("failed", "not-rebuilt")
    assert "the model refused to answer" in ended["reason"]
    assert "tried again" not in ended["reason"]


def test_a_users_key_sets_prompts_of_their_own_alone(ana: TestClient, memory: Memory) -> None:
    assert ana.put("/v1/users/ana/prompts/episodes", json={"text": "Only walks."}).status_code == 200
    assert memory.user("ana").prompts.get("episodes") == "Only walks."
    assert ana.put("/v1/users/bo/prompts/episodes", json={"text": "Only walks."}).status_code == 403
    assert ana.put("/v1/prompts/episodes", json={"text": "Only walks."}).status_code == 403


def test_the_page_of_a_user_offers_every_prompt_that_is_used(ana: TestClient, memory: Memory) -> None:
    memory.user("ana").prompts.set("fact_extraction", "Only walks.")
    page = ana.get("/me").text
    playing = Memory(embedder=None, config=Config(users_may_set_prompts=True, character_facts=True))
    with playing, TestClient(create_app(playing), base_url=BASE) as client:
        key = playing.admin.keys.create("user", user="ana").key
        there = client.get("/me", headers={"Authorization": f"Bearer {key}"}).text

    assert "Story of several conversations" in page
    assert "The character that the assistant plays" not in page
    assert "The character that the assistant plays" in there
    form = {"do": "prompt", "prompt": "story", "text": "As a diary.", "version": "0"}
    assert ana.post("/me", data=form, headers={"Origin": BASE}, follow_redirects=False).status_code == 303
    assert memory.user("ana").prompts.get("story") == "As a diary."


def test_the_page_of_a_user_says_who_said_what_a_fact_rests_on(ana: TestClient, memory: Memory) -> None:
    fact = memory.user("ana").remember("Walks to the old mill", conversation="c", start_seq=1, end_seq=2).fact
    shown = ana.get("/me").text.partition(f'id="{fact.id}"')[2].partition('id="fact_')[0]

    assert re.search(r"the assistant said: <q[^>]*>Well done!", shown)
    assert re.search(r"you said: <q[^>]*>On day 0 I walked", shown)
    assert "Learned by" not in shown  # it was written here


def test_the_page_of_a_user_offers_it(ana: TestClient, memory: Memory) -> None:
    page = ana.get("/me").text
    assert "Your conversations" in page
    assert re.search(r"c: 80 messages", page)
    form = {"do": "rebuild", "chat": "c", "about": "self", "make": "chunk", "first": "1", "last": "10"}
    answer = ana.post("/me", data=form, headers={"Origin": BASE}, follow_redirects=False)

    assert (answer.status_code, "done=rebuilding" in answer.headers["location"]) == (303, True)
    assert memory.conversation("c", user="ana").summaries(1)[0].version == 2
    other = ana.post("/me", data=form | {"chat": "theirs"}, headers={"Origin": BASE})
    assert other.status_code == 404


def test_without_the_settings_it_is_refused_with_the_reason() -> None:
    with Memory(embedder=None) as memory:
        memory.conversation("c", user="ana").record("I live in Porto.", "Noted.")
        key = memory.admin.keys.create("user", user="ana").key
        client = TestClient(create_app(memory), base_url=BASE, headers={"Authorization": f"Bearer {key}"})
        for answer in (
            client.post(f"{CHAT}/rebuild", json={"layer": "facts"}),
            client.put("/v1/users/ana/prompts/episodes", json={"text": "Only walks."}),
        ):
            assert answer.status_code == 403
            assert "the operator allows it by users_may_" in answer.text
        assert "Your conversations" not in client.get("/me").text


def test_a_user_has_few_orders_open_at_a_time(memory: Memory) -> None:
    tasks, hold = Tasks(memory.admin.operations), threading.Event()

    def work(_step: object) -> None:
        assert hold.wait(30)

    mine = [tasks.order("rebuild", Owner("default", "ana"), work, role="user") for _ in range(MOST_OPEN_OF_USER)]
    with pytest.raises(Conflict, match="of your jobs"):
        tasks.order("rebuild", Owner("default", "ana", conversation="c"), work, role="user")
    others = [
        tasks.order("rebuild", Owner("default", "bo"), work, role="user"),
        tasks.order("rebuild", Owner("default", "ana"), work, role="operator"),
    ]
    hold.set()
    assert all(task.over.wait(30) for task in [*mine, *others])
    tasks.close()


def test_the_role_of_the_key_is_told_to_the_order(
    ana: TestClient, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "MOST_OPEN_OF_USER", 0)
    form = {"do": "rebuild", "chat": "c", "about": "self", "make": "chunk", "first": "1", "last": "10"}

    assert ana.post(f"{CHAT}/rebuild", json={"layer": "summaries"}).status_code == 409
    assert ana.post("/me", data=form, headers={"Origin": BASE}).status_code == 409


def test_the_page_leaves_the_conversation_of_facts_by_hand_out(ana: TestClient, memory: Memory) -> None:
    memory.user("ana").remember("I live in Porto.")
    memory.conversation("one", user="ana").record("I like tea.", None)
    page = ana.get("/me").text
    form = {"do": "rebuild", "chat": BY_HAND_CONVERSATION, "about": "self", "make": "facts", "first": "1", "last": "1"}

    assert f'value="{BY_HAND_CONVERSATION}"' not in page
    assert "one: 1 message, on " in page
    assert ana.post("/me", data=form, headers={"Origin": BASE}).status_code == 404
