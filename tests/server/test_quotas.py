"""How many messages may be stored a day and a month, by one key and by all of an org, in all processes together."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from holdfast import Memory
from holdfast.server.app import create_app
from holdfast.server.gate import ServerSettings
from holdfast.testing.fakes import FakeClock
from holdfast.types import ApiKey

from .conftest import BASE

NOON = datetime(2026, 1, 30, 12, tzinfo=UTC)
PATH = "/v1/users/ana/conversations/c/messages"
TWO = {"messages": [{"role": "user", "content": "Nice weather."}] * 2}
DAY_S = 24 * 3600


def key(name: str, org: str = "acme") -> ApiKey:
    return ApiKey(name, "app", org, None, None, None, "", NOON)


@pytest.fixture
def clock():
    return FakeClock(NOON)


def client_of(memory: Memory, role: str = "app", **limits: int) -> TestClient:
    headers = {"Authorization": f"Bearer {memory.admin.keys.create(role).key}"}
    return TestClient(create_app(memory, ServerSettings(**limits)), base_url=BASE, headers=headers)


def test_a_key_stores_as_many_as_it_may_and_begins_anew_at_midnight(memory, clock):
    def take(name, number):
        return memory.admin.keys.count_messages(key(name), number, day=3)

    assert [take("a", 2), take("a", 2), take("a", 1)] == [0, DAY_S // 2 + 1, 0]
    assert take("b", 3) == 0
    clock.advance(hours=12)
    assert take("a", 3) == 0


def test_a_month_ends_where_the_next_begins(memory, clock):
    spend = memory.admin.keys.count_messages
    assert spend(key("a"), 5, day=9, org_month=6) == 0
    assert spend(key("b"), 2, day=9, org_month=6) == int(1.5 * DAY_S) + 1
    assert spend(key("b"), 1, day=9, org_month=6) == 0
    clock.advance(days=2)
    assert spend(key("b"), 6, day=9, org_month=6) == 0
    told = {(one.key, one.period): one.messages for one in memory.admin.keys.message_counts("acme")}
    assert (told["", "2026-01"], told["", "2026-02"]) == (6, 6)
    clock.advance(days=60)
    spend(key("a"), 1, org_month=6)
    assert {one.period for one in memory.admin.keys.message_counts("acme")} == {"2026-04"}


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["acme", "other"]), st.integers(1, 5)), max_size=30))
def test_what_was_let_through_never_exceeds_either_limit(asked):
    with Memory(embedder=None, clock=FakeClock(NOON)) as memory:
        through = [
            (name, org, number)
            for name, org, number in asked
            if memory.admin.keys.count_messages(key(name, org), number, day=7, org_day=10) == 0
        ]
        told = {
            (org, one.key): one.messages for org in ("acme", "other") for one in memory.admin.keys.message_counts(org)
        }
    for org in ("acme", "other"):
        assert sum(number for _, whose, number in through if whose == org) == told.get((org, ""), 0) <= 10
        for name in "ab":
            mine = sum(number for who, whose, number in through if (who, whose) == (name, org))
            assert mine == told.get((org, name), 0) <= 7


@pytest.mark.parametrize(
    "limit", ["messages_per_day", "org_messages_per_day", "messages_per_month", "org_messages_per_month"]
)
def test_too_many_are_refused_whole(memory: Memory, limit):
    client = client_of(memory, **{limit: 3})
    assert [client.post(PATH, json=TWO).status_code for _ in range(2)] == [201, 429]
    refused = client.post(PATH, json=TWO)
    assert refused.headers["content-type"] == "application/problem+json"
    assert (refused.json()["code"], 0 < int(refused.headers["retry-after"]) <= 2 * DAY_S) == ("quota", True)
    assert len(client.get(PATH).json()["data"]) == 2
    other = {"Authorization": f"Bearer {memory.admin.keys.create('app', org='other').key}"}
    assert client.post(PATH, json=TWO, headers=other).status_code == 201


def test_what_stores_nothing_counts_for_nothing(memory: Memory):
    client = client_of(memory, messages_per_day=4)
    for _ in range(3):
        client.post(PATH, json=TWO, headers={"Idempotency-Key": "once"})
    one = {"messages": TWO["messages"][:1]}
    assert client.post(PATH, json=one, headers={"Idempotency-Key": "once"}).json()["code"] == "key-reused"
    memory.user("bo").pause()
    client.post(PATH.replace("ana", "bo"), json=TWO)

    assert client.post(PATH, json=TWO).status_code == 201
    assert client.post(PATH, json=TWO).status_code == 429


def test_an_import_counts_its_messages(memory: Memory):
    memory.conversation("c", user="ana").record("I live in Porto.", "Nice.")
    data = memory.user("ana").export()
    client = client_of(memory, messages_per_day=3)

    assert client.post("/v1/users/bo/import", json=data).status_code == 204
    assert client.post("/v1/users/cy/import", json=data).json()["code"] == "quota"
    assert client.post("/v1/import", json={**data, "user": "cy"}).status_code == 429
    assert client.post("/v1/users/bo/import", json=data).status_code == 429


def test_a_restart_forgets_nothing_and_processes_count_together(tmp_path):
    path = tmp_path / "chat.db"
    with Memory(path, embedder=None) as first, Memory(path, embedder=None) as second:
        assert client_of(first, org_messages_per_month=5).post(PATH, json=TWO).status_code == 201
        assert client_of(second, org_messages_per_month=5).post(PATH, json=TWO).status_code == 201
    with Memory(path, embedder=None) as again:
        assert client_of(again, org_messages_per_month=5).post(PATH, json=TWO).status_code == 429


def spending(path, _number):
    with Memory(path, embedder=None) as memory:
        return sum(memory.admin.keys.count_messages(key("a"), 1, day=50, org_month=70) == 0 for _ in range(20))


def test_processes_at_the_same_time_let_exactly_so_many_through(tmp_path):
    path = str(tmp_path / "chat.db")
    Memory(path, embedder=None).close()
    with multiprocessing.get_context("fork").Pool(4) as pool:
        through = pool.starmap(spending, [(path, number) for number in range(4)])

    assert sum(through) == 50


def test_threads_at_the_same_time_let_exactly_so_many_through(memory):
    with ThreadPoolExecutor(8) as threads:
        taken = list(
            threads.map(lambda n: memory.admin.keys.count_messages(key("ab"[n % 2]), 1, day=30, org_day=40), range(100))
        )

    assert taken.count(0) == 40


def test_limits_and_counts_are_shown():
    limits = {"messages_per_day": 1_234, "org_messages_per_month": 98_765}
    with Memory(embedder=None) as memory:
        operator = client_of(memory, "operator", **limits)
        operator.post(PATH, json=TWO)
        told = operator.get("/v1/quotas").json()
        page = operator.get("/dashboard/settings").text

    assert (told["day"], told["month"], told["org_day"], told["org_month"]) == (1_234, None, None, 98_765)
    assert [one["messages"] for one in told["spent"]] == [2, 2]
    assert "1,234" in page
    assert "98,765" in page
    assert page.count("2 stored") == 2


def test_messages_that_are_not_stored_for_any_reason_do_not_count(memory, monkeypatch):
    client = client_of(memory, messages_per_day=2)
    client = TestClient(client.app, base_url=BASE, headers=client.headers, raise_server_exceptions=False)

    def break_down(*_args, **_named):
        raise RuntimeError("broken")

    with monkeypatch.context() as broken:
        broken.setattr("holdfast.conversation.Conversation.append", break_down)
        assert client.post(PATH, json=TWO).status_code == 500
    assert client.post(PATH, json=TWO).status_code == 201
