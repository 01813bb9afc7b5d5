"""What is repeated, what has changed meanwhile, and lists in pages."""

from __future__ import annotations

import base64
from urllib.parse import quote

import pytest

from .test_roles import path_of, served

ANA = "/v1/users/ana"
CHAT = f"{ANA}/conversations/web-42"


def test_a_fact_by_hand_is_stored_once_under_one_key(ask, memory):
    app, headers = ask("app"), {"Idempotency-Key": "k1"}
    first = app.post(f"{ANA}/facts", json={"text": "I live in Porto."}, headers=headers)
    again = app.post(f"{ANA}/facts", json={"text": "I live in Porto."}, headers=headers)
    other = app.post(f"{ANA}/facts", json={"text": "I live in Faro."}, headers=headers)

    assert [first.json()["op"], again.json()["op"]] == ["new", "confirmed"]
    assert again.json()["fact"]["id"] == first.json()["fact"]["id"]
    assert len(again.json()["fact"]["evidence"]) == 1
    assert (other.status_code, other.json()["code"]) == (422, "key-reused")
    assert app.post("/v1/users/bob/facts", json={"text": "I live in Faro."}, headers=headers).json()["fact"]


def test_what_was_erased_does_not_come_back_under_its_key(ask):
    app, headers = ask("app"), {"Idempotency-Key": "k1"}
    fact = app.post(f"{ANA}/facts", json={"text": "I live in Porto."}, headers=headers).json()["fact"]
    app.delete(f"{ANA}/facts/{fact['id']}")
    again = app.post(f"{ANA}/facts", json={"text": "I live in Porto."}, headers=headers).json()

    assert (again["op"], again["fact"]) == ("rejected", None)
    assert app.get(f"{ANA}/facts").json()["data"] == []


@pytest.mark.parametrize("key", ["", "x" * 201])
def test_a_key_that_is_none_is_refused(ask, key):
    answer = ask("app").post(f"{ANA}/facts", json={"text": "I eat fish."}, headers={"Idempotency-Key": key})
    assert answer.status_code == 422


def test_a_prompt_that_somebody_else_changed_is_not_lost(ask):
    app, path = ask("app"), f"{ANA}/prompts/chunk_summary"
    mine = app.get(path).headers["etag"]
    theirs = app.put(path, json={"text": "Write a haiku."}, headers={"If-Match": mine})
    lost = [
        app.put(path, json={"text": "Write a sonnet."}, headers={"If-Match": mine}),
        app.delete(path, headers={"If-Match": mine}),
    ]

    assert [answer.status_code for answer in lost] == [412, 412]
    assert {answer.json()["code"] for answer in lost} == {"changed"}
    assert app.get(path).json() == "Write a haiku."
    assert theirs.headers["etag"] == app.get(path).headers["etag"]
    either = f"{mine}, {theirs.headers['etag']}"
    assert app.delete(path, headers={"If-Match": either}).headers["etag"] == mine
    assert app.put(path, json={"text": "Write."}, headers={"If-Match": "*"}).status_code == 200
    assert app.put(path, json={"text": "Write!"}).status_code == 200  # without it: whatever it is


def test_a_fact_is_only_changed_as_it_was_seen(ask):
    app = ask("app")
    fact = app.post(f"{ANA}/facts", json={"text": "I live in Porto."}).json()["fact"]
    path = f"{ANA}/facts/{fact['id']}"
    tag = app.get(path).headers["etag"]
    app.post(f"{path}/never-true", headers={"If-Match": tag})

    for method, place, body in (
        ("PATCH", path, {"value": "Faro"}),
        ("POST", f"{path}/never-true", None),
        ("POST", f"{path}/restore", None),
        ("DELETE", path, None),
    ):
        assert app.request(method, place, json=body, headers={"If-Match": tag}).status_code == 412, place
    assert app.delete(f"{ANA}/facts/none", headers={"If-Match": "*"}).status_code == 404
    assert app.delete(path, headers={"If-Match": "*"}).status_code == 200


def test_a_pause_ends_only_where_there_is_one(ask):
    app = ask("app")
    for state, then in (("opted-out", "opted-out"), ("paused", "active"), ("active", "active")):
        app.put(f"{ANA}/consent", json={"state": state})
        resumed = app.put(f"{ANA}/consent", json={"state": "active", "only_if": "paused"}).json()
        assert resumed["state"] == then
    assert app.put(f"{ANA}/consent", json={"state": "opted-out"}).json()["receipt"]["level"]
    assert app.put(f"{ANA}/consent", json={"state": "active"}).json()["receipt"] is None


def walked(client, path, limit=2):
    """All items of a list, page by page."""
    found, cursor = [], ""
    while cursor is not None:
        more = f"&cursor={cursor}" if cursor else ""
        page = client.get(f"{path}{'&' if '?' in path else '?'}limit={limit}{more}").json()
        assert len(page["data"]) <= limit
        found += page["data"]
        cursor = page["next_cursor"]
    return found


def test_every_list_joins_without_a_gap(ask, memory, clock):
    app, operator = ask("app"), ask("operator")
    chat = memory.conversation("web-42", user="ana")
    for number in range(40):
        clock.advance(seconds=60)
        chat.record(f"I live in Town{number % 7}. I think I work at Firm{number}.", "Noted.")
    memory.digest()
    for name in ("a/b", "é", "%", "Z"):
        memory.conversation("c", user=name, org=name, bot=name).record("Hello.", "Hi.")
    app.put(f"{ANA}/prompts/chunk_summary", json={"text": "Write."})
    app.delete(f"{ANA}/prompts/chunk_summary")
    app.put(f"{ANA}/prompts/chunk_summary", json={"text": "Tell."})
    user = memory.user("ana")

    assert [s["id"] for s in walked(app, f"{CHAT}/summaries")] == [s.id for s in chat.summaries()]
    towns = [fact.id for fact in user.history("home")]
    assert [fact["id"] for fact in walked(app, f"{ANA}/history?category=home", 3)] == towns
    assert len(towns) > 7
    refused = [str(one.candidate.seq) + one.reason for one in user.rejected(limit=1000)]
    shown = [str(one["candidate"]["seq"]) + one["reason"] for one in walked(app, f"{ANA}/rejected", 5)]
    assert shown == refused
    assert len(refused) > 5
    everybody = [(one["org"], one["user"], one["bot"]) for one in walked(operator, "/v1/users")]
    assert everybody == memory.admin.users()
    keys = [key["id"] for key in walked(operator, "/v1/keys?all_orgs=true")]
    assert keys == [key.id for key in memory.admin.keys.list()]
    assert [one["version"] for one in walked(app, f"{ANA}/prompts/chunk_summary/versions")] == [1, 2, 3]


LISTS = [path_of(r.path) for r in served() if "Page" in getattr(r.options.get("response_model"), "__name__", "")]


@pytest.mark.parametrize("path", LISTS)
def test_a_cursor_that_is_none_of_ours_breaks_nothing(ask, path):
    operator = ask("operator")
    deep = base64.urlsafe_b64encode(b"[" * 4_000).decode()
    for cursor in ("x", "%%%", "é", "eyJhIjoxfQ", "W10", "MQ", "bnVsbA", "WzEsMiwzXQ", "TmFO", deep):
        answer = operator.get(f"{path}?category=c&cursor={quote(cursor)}")
        assert answer.status_code in (200, 422), (cursor, answer.text)


def test_budgets_and_usage_are_told(ask, memory):
    app, operator = ask("app"), ask("operator")
    memory.conversation("web-42", user="ana").record("Hello.")
    body = {"model": "own:m", "input_tokens": 900, "output_tokens": 100, "cached_tokens": 50, "cost": 0.25}
    assert app.post(f"{CHAT}/usage", json=body).status_code == 204
    assert app.post(f"{CHAT}/usage", json=body | {"cost": -1}).status_code == 422

    (used,) = app.get(f"{ANA}/usage?by=model&by=day").json()["data"]
    assert (used["model"], used["cost"], used["input_tokens"], used["layer"]) == ("own:m", 0.25, 900, "")
    (all_used,) = operator.get("/v1/usage?by=user&user=ana").json()["data"]
    assert (all_used["user"], all_used["calls"]) == ("ana", 1)
    assert operator.get("/v1/usage?by=user&user=bob").json()["data"] == []
    assert operator.get("/v1/budgets").json()["all"] is None
    assert app.get(f"{ANA}/usage?by=secret").status_code == 422
