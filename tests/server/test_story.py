"""The main path over HTTP: what is said is kept, believed, found, shown, mended and erased."""

from __future__ import annotations

from urllib.parse import quote

import pytest

ANA = "/v1/users/ana"
CHAT = f"{ANA}/conversations/web-42"


def say(app, *texts):
    answer = app.post(f"{CHAT}/messages", json={"messages": [{"role": "user", "content": text} for text in texts]})
    assert answer.status_code == 201, answer.text
    return answer.json()


def test_what_is_said_is_believed_and_shown_to_the_model(ask, clock):
    app = ask("app")
    receipt = say(app, "I'm vegetarian.")
    clock.advance(seconds=30)
    changed = say(app, "Actually, I eat fish now.")

    assert [c["op"] for c in receipt["changes"]] == ["new"]
    assert [(c["op"], c["previous"]["key"]) for c in changed["changes"]] == [("replaced", "vegetarian")]
    assert [f["key"] for f in app.get(f"{ANA}/facts").json()["data"]] == ["pescatarian"]
    assert [f["key"] for f in app.get(f"{ANA}/history?category=dietary").json()["data"]] == [
        "vegetarian",
        "pescatarian",
    ]
    context = app.post(f"{CHAT}/context", json={"query": "What should I cook?", "budget_tokens": 500}).json()
    assert "pescatarian" in str(context["messages"])
    assert context["tokens"] <= 500


def test_the_same_key_stores_once(ask):
    app = ask("app")
    body = {"messages": [{"role": "user", "content": "I live in Porto."}]}
    first = app.post(f"{CHAT}/messages", json=body, headers={"Idempotency-Key": "k1"})
    again = app.post(f"{CHAT}/messages", json=body, headers={"Idempotency-Key": "k1"})
    other = app.post(
        f"{CHAT}/messages", json={"messages": [{"role": "user", "content": "No."}]}, headers={"Idempotency-Key": "k1"}
    )

    assert (first.json()["seqs"], again.json()["seqs"], again.json()["duplicate"]) == ([1], [1], True)
    assert (other.status_code, other.json()["code"]) == (422, "key-reused")


def test_messages_come_in_pages_that_join_without_a_gap(ask):
    app = ask("app")
    say(app, *[f"Message {number}" for number in range(1, 26)])

    found, cursor = [], ""
    while cursor is not None:
        page = app.get(f"{CHAT}/messages?limit=10" + (f"&cursor={cursor}" if cursor else "")).json()
        found += [message["seq"] for message in page["data"]]
        cursor = page["next_cursor"]
    assert found == list(range(1, 26))


def test_facts_come_in_pages_that_nothing_shifts(ask):
    """A fact that is forgotten between two pages neither repeats nor hides another one."""
    app = ask("app")
    for number in range(9):
        app.post(f"{ANA}/facts", json={"category": "favorite", "key": f"thing{number}", "value": str(number)})
    first = app.get(f"{ANA}/facts?limit=4").json()
    app.delete(f"{ANA}/facts/{first['data'][0]['id']}")
    rest = app.get(f"{ANA}/facts?limit=100&cursor={first['next_cursor']}").json()

    assert [f["key"] for f in first["data"] + rest["data"]] == [f"thing{number}" for number in range(9)]


def test_a_user_mends_what_is_remembered(ask):
    app = ask("app")
    say(app, "I live in Porto.")
    user = ask("user", user="ana")
    (fact,) = user.get(f"{ANA}/facts").json()["data"]
    tag = user.get(f"{ANA}/facts/{fact['id']}").headers["etag"]

    corrected = user.patch(f"{ANA}/facts/{fact['id']}", json={"value": "Lisbon"}, headers={"If-Match": tag})
    late = user.patch(f"{ANA}/facts/{fact['id']}", json={"value": "Faro"}, headers={"If-Match": tag})

    assert corrected.status_code == 200
    assert late.status_code == 412
    assert "Lisbon" in str(app.post(f"{CHAT}/context", json={"query": "Where do I live?"}).json()["messages"][0])


def test_a_pause_holds_and_an_erasure_is_told_truly(ask):
    app, user = ask("app"), ask("user", user="ana")
    say(app, "I live in Porto.")
    assert user.put(f"{ANA}/consent", json={"state": "paused"}).json()["state"] == "paused"
    assert say(app, "I live in Faro.")["skipped"] == "paused"

    receipt = user.delete(ANA).json()

    assert receipt["level"] == "E2"
    assert receipt["rows"]["facts"] == 1
    assert user.get(f"{ANA}/facts").json()["data"] == []


def test_an_export_is_taken_back_unchanged(ask):
    app = ask("app")
    say(app, "I'm vegetarian.", "I live in Porto.")
    data = app.get(f"{ANA}/export").json()
    before = app.get(f"{ANA}/facts").json()
    app.delete(ANA)

    assert app.post("/v1/import", json=data).status_code == 201
    assert app.get(f"{ANA}/facts").json() == before


def test_prompts_are_put_in_own_words_and_back(ask):
    app = ask("app")
    path = f"{ANA}/prompts/chunk_summary"
    ours = app.get(path)
    assert app.put(path, json={"text": "Write a haiku."}, headers={"If-Match": ours.headers["etag"]}).status_code == 200
    assert app.put(path, json={"text": "No."}, headers={"If-Match": ours.headers["etag"]}).status_code == 412
    assert app.get(path).json() == "Write a haiku."
    app.delete(path)
    assert app.get(path).json() == ours.json()
    assert [version["text"] for version in app.get(f"{path}/versions").json()["data"]] == ["Write a haiku.", ""]


def test_jobs_are_seen_and_steered(ask):
    app, operator = ask("app"), ask("operator")
    roles = ("user", "assistant")
    messages = [{"role": roles[number % 2], "content": f"Message {number}"} for number in range(30)]
    app.post(f"{CHAT}/messages", json={"messages": messages})
    waiting = operator.get("/v1/jobs").json()["data"]
    assert waiting
    assert operator.post(f"/v1/jobs/{waiting[0]['id']}/cancel").status_code == 204
    assert operator.get("/v1/jobs?state=cancelled").json()["data"][0]["id"] == waiting[0]["id"]
    assert operator.post(f"/v1/jobs/{waiting[0]['id']}/retry").status_code == 204
    assert operator.post("/v1/digest").json()["failed"] == 0
    assert app.get(f"{CHAT}/summaries").json()["data"]


def test_a_token_is_a_key_for_a_while(ask, clock):
    app = ask("app")
    say(app, "I live in Porto.")
    token = app.post("/v1/tokens", json={"user": "ana", "minutes": 30}).json()["key"]
    holder = ask(None)
    headers = {"Authorization": f"Bearer {token}"}

    assert holder.get(f"{ANA}/facts", headers=headers).status_code == 200
    assert holder.get("/v1/users/bob/facts", headers=headers).status_code == 403
    clock.advance(seconds=31 * 60)
    assert holder.get(f"{ANA}/facts", headers=headers).status_code == 401


@pytest.mark.parametrize("name", ["a/b", "ü", "a b", "100%", "%2F", "?", "a;b", "日本"])
def test_any_name_can_stand_in_a_path(ask, name):
    app = ask("app")
    path = f"/v1/users/{quote(name, safe='')}"
    app.post(
        f"{path}/conversations/{quote(name, safe='')}/messages",
        json={"messages": [{"role": "user", "content": "I live in Porto."}]},
    )
    assert [f["value"] for f in app.get(f"{path}/facts").json()["data"]] == ["Porto"]
    assert app.get(f"{path}/conversations").json()["data"] == [name]
