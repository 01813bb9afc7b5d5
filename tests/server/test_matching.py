"""``If-Match`` holds across processes: of many who saw the same, one changes it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier

import pytest
from starlette.testclient import TestClient

from holdfast import Memory
from holdfast.errors import Changed, NotFound
from holdfast.server.app import create_app

from .conftest import BASE

ANA = "/v1/users/ana"
PROMPT = f"{ANA}/prompts/chunk_summary"
AT_ONCE = 4


@pytest.fixture
def clients(tmp_path):
    """Servers of one file, each with its own memory, as several processes have them."""
    path = tmp_path / "chat.db"
    memories = [Memory(path, embedder=None) for _ in range(AT_ONCE)]
    memories[0].conversation("c", user="ana").record("I live in Porto.", "Noted!")
    key = memories[0].admin.keys.create("app").key
    yield [
        TestClient(create_app(memory), base_url=BASE, headers={"Authorization": f"Bearer {key}"}) for memory in memories
    ]
    for memory in memories:
        memory.close()


def at_once(clients, call):
    """What *call* answers each client, all of them asking at the same moment."""
    ready = Barrier(len(clients))

    def ask(numbered):
        ready.wait(10)
        return call(*numbered)

    with ThreadPoolExecutor(len(clients)) as threads:
        return sorted(answer.status_code for answer in threads.map(ask, enumerate(clients)))


def test_of_many_who_saw_the_same_fact_one_corrects_it(clients):
    for round_ in range(5):
        (fact,) = clients[0].get(f"{ANA}/facts").json()["data"]
        path = f"{ANA}/facts/{fact['id']}"
        tag = {"If-Match": clients[1].get(path).headers["etag"]}
        told = at_once(
            clients,
            lambda n, client: client.patch(path, json={"value": f"Town{round_}{n}"}, headers=tag),  # noqa: B023
        )
        assert told == [200, *[412] * (AT_ONCE - 1)]


def test_of_many_who_saw_the_same_prompt_one_changes_it(clients):
    for round_ in range(5):
        tag = {"If-Match": clients[0].get(PROMPT).headers["etag"]}
        told = at_once(
            clients,
            lambda n, client: client.put(PROMPT, json={"text": f"Say {round_} {n}."}, headers=tag),  # noqa: B023
        )
        assert told == [200, *[412] * (AT_ONCE - 1)]
    assert len(clients[0].get(f"{PROMPT}/versions").json()["data"]) == 5


def test_a_fact_is_forgotten_only_as_it_was_seen(clients):
    (fact,) = clients[0].get(f"{ANA}/facts").json()["data"]
    path = f"{ANA}/facts/{fact['id']}"
    seen = clients[0].get(path).headers["etag"]
    clients[1].post(f"{path}/never-true")

    assert clients[0].delete(path, headers={"If-Match": seen}).status_code == 412
    now = clients[0].get(path).headers["etag"]
    assert clients[0].delete(path, headers={"If-Match": f'"other", {now}'}).status_code == 200
    assert clients[0].delete(path, headers={"If-Match": "*"}).status_code == 404


def test_a_change_is_made_only_of_the_version_that_was_seen(memory):
    memory.conversation("c", user="ana").record("I live in Porto.", "Noted!")
    ana = memory.user("ana")
    (fact,) = ana.facts()
    for change in (partial(ana.correct, value="Faro"), ana.never_true, ana.restore, ana.forget):
        with pytest.raises(Changed):
            change(fact.id, if_version="another")
        with pytest.raises(NotFound):
            change("none", if_version=fact.version)
    assert ana.facts() == [fact]

    assert ana.correct(fact.id, value="Lisbon", if_version=["another", fact.version]).op == "replaced"
    assert [fact.value for fact in ana.facts()] == ["Lisbon"]


def test_a_prompt_is_set_only_over_the_version_that_was_seen(memory):
    prompts = memory.user("ana").prompts
    with pytest.raises(Changed):
        prompts.set("chunk_summary", "No.", if_version=1)
    first = prompts.set("chunk_summary", "Write a haiku.", if_version=0)
    prompts.draft("chunk_summary", "Write a sonnet.")
    with pytest.raises(Changed):
        prompts.reset("chunk_summary", if_version=0)

    assert prompts.reset("chunk_summary", if_version=[0, first.version]).text == ""
    assert prompts.set("chunk_summary", "Write.", if_version=0).version == 4


def test_a_merged_fact_is_restored_only_as_it_was_seen():
    """Its separation from the others and its return are one change, and one look at its version."""
    ana = Memory().user("ana")
    for kids in ("kids", "children"):
        ana.remember(f"The {kids} dread the dentist.")
    ana.consolidate()
    merged, whole = next(fact for fact in ana.history() if fact.ended_because == "merged"), ana.facts()
    with pytest.raises(Changed):
        ana.restore(merged.id, if_version="another")
    assert ana.facts() == whole

    assert ana.restore(merged.id, if_version=merged.version).fact.live
    with pytest.raises(Changed):
        ana.restore(merged.id, if_version=merged.version)
