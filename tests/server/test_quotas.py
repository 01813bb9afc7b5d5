"""How many messages may be stored a day, by one key and by all of an org."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from holdfast import Memory
from holdfast.server.app import create_app
from holdfast.server.quotas import Quotas
from holdfast.server.settings import ServerSettings
from holdfast.types import ApiKey

from .conftest import BASE

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
PATH = "/v1/users/ana/conversations/c/messages"


def key(name: str, org: str = "acme") -> ApiKey:
    return ApiKey(name, "app", org, None, None, None, "", NOON)


def test_a_key_stores_as_many_as_it_may_and_begins_anew_at_midnight():
    now = NOON
    quotas = Quotas(3, None, lambda: now)
    assert [quotas.take(key("a"), 2), quotas.take(key("a"), 2), quotas.take(key("a"), 1)] == [0, 12 * 3600 + 1, 0]
    assert quotas.take(key("b"), 3) == 0
    now += timedelta(hours=12)
    assert quotas.take(key("a"), 3) == 0


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["acme", "other"]), st.integers(1, 5)), max_size=40))
def test_what_was_let_through_never_exceeds_either_limit(asked):
    quotas, through = Quotas(7, 10, lambda: NOON), []
    for name, org, number in asked:
        if quotas.take(key(name, org), number) == 0:
            through.append((name, org, number))
    for org in ("acme", "other"):
        assert sum(number for _, whose, number in through if whose == org) <= 10
        for name in "ab":
            assert sum(number for who, whose, number in through if (who, whose) == (name, org)) <= 7


@pytest.mark.parametrize("limit", [{"messages_per_day": 3}, {"org_messages_per_day": 3}])
def test_too_many_are_refused_whole(memory: Memory, limit):
    app = create_app(memory, ServerSettings(**limit))
    client = TestClient(app, base_url=BASE, headers={"Authorization": f"Bearer {memory.access.create('app').key}"})
    two = {"messages": [{"role": "user", "content": "Nice weather."}] * 2}
    assert [client.post(PATH, json=two).status_code for _ in range(2)] == [201, 429]
    refused = client.post(PATH, json=two)
    assert (refused.json()["code"], 0 < int(refused.headers["retry-after"]) <= 86_401) == ("quota", True)
    assert len(client.get(PATH).json()["data"]) == 2
    other = {"Authorization": f"Bearer {memory.access.create('app', org='other').key}"}
    assert client.post(PATH, json=two, headers=other).status_code == 201
