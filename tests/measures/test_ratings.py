"""Users rate replies; the mean is the satisfaction."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from holdfast.errors import BadInput, Conflict, NotFound
from holdfast.server.app import create_app
from holdfast.server.metrics import Meters
from holdfast.server.proxy.request import memory_options


def satisfaction(memory):
    one = memory.user("ana").metrics().measure("satisfaction")
    return one.value, one.n


def test_satisfaction_is_the_mean_of_the_ratings(memory):
    chat = memory.conversation("a", user="ana")
    for text in ("Hi.", "What now?", "And then?"):
        chat.record(text, "Well.")
    chat.rate(True)
    chat.rate(False, seq=2)
    rated = chat.rate(0.5, seq=4)

    assert rated.meta["rating"] == 0.5
    assert [said.meta.get("rating") for said in chat.load()] == [None, 0.0, None, 0.5, None, 1.0]
    assert satisfaction(memory) == (0.5, 3)
    assert memory.doctor().findings == ()


def test_a_later_rating_takes_the_place_of_the_one_before(memory):
    chat = memory.conversation("a", user="ana")
    chat.record("Hi.", "Hello.")
    chat.rate(0)
    chat.rate(1)

    assert satisfaction(memory) == (1.0, 1)


def test_a_rating_is_erased_with_its_message_and_travels_with_an_export(memory, tmp_path):
    chat = memory.conversation("a", user="ana")
    chat.record("Hi.", "Hello.")
    chat.rate(True)
    data = memory.user("ana").export()
    chat.forget(2)
    assert satisfaction(memory) == (None, 0)
    memory.user("ana").erase()
    memory.import_(data)

    assert satisfaction(memory) == (1.0, 1)


@pytest.mark.parametrize("score", [2, -0.1, "up", None, float("nan")])
def test_only_a_score_from_0_to_1_is_a_rating(memory, score):
    chat = memory.conversation("a", user="ana")
    chat.record("Hi.", "Hello.")
    with pytest.raises(BadInput, match="from 0 to 1"):
        chat.rate(score)


def test_only_replies_can_be_rated(memory):
    chat = memory.conversation("a", user="ana")
    with pytest.raises(NotFound):
        chat.rate(True)
    chat.record("Hi.", "Hello.")
    with pytest.raises(BadInput, match="no reply"):
        chat.rate(True, seq=1)
    with pytest.raises(NotFound):
        chat.rate(True, seq=9)
    memory.user("ana").pause()
    with pytest.raises(Conflict):
        chat.rate(True)


def test_ratings_are_counted_for_prometheus_and_taken_over_http(memory):
    meters = Meters(memory)
    memory.conversation("a", user="ana").record("Hi.", "Hello.")
    key = memory.admin.keys.create("operator").key
    headers = {"Authorization": f"Bearer {key}"}
    client = TestClient(create_app(memory), base_url="http://127.0.0.1:7800", headers=headers)
    answer = client.put("/v1/users/ana/conversations/a/rating", json={"score": 1})

    assert (answer.status_code, answer.json()["meta"]["rating"]) == (200, 1.0)
    assert client.put("/v1/users/ana/conversations/a/rating", json={"score": 7}).status_code == 422
    assert 'holdfast_ratings_total{score="up"} 1.0' in meters.text().decode()


@pytest.mark.parametrize(("given", "score"), [("up", 1.0), ("Down", 0.0), ("0.25", 0.25), ("3", None), ("", None)])
def test_the_proxy_takes_a_rating_from_a_header(given, score):
    grant = type("Grant", (), {"user": "ana"})()

    assert memory_options({}, {"x-memory-rating": given}, grant).rating == score
