"""The stream of events over a real socket: complete, in order, resumable, and over when it has to be."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import httpx
import pytest

from holdfast import Config, Memory
from holdfast.server.app import create_app
from holdfast.server.events import EventFeed
from holdfast.server.gate import ServerSettings
from holdfast.server.serve import make_server

WRITER = """
import sys
from holdfast import Memory
with Memory(sys.argv[1], embedder=None) as memory:
    chat = memory.conversation(sys.argv[2], user="ana")
    for number in range(30):
        chat.append({"role": "user", "content": f"number {number}"})
"""
SAY = {"messages": [{"role": "user", "content": "I live in Porto."}]}
ONE = "/v1/users/ana"


class Served:
    """A server in a thread of this process."""

    def __init__(self, memory: Memory, path: str) -> None:
        self.memory, self.path = memory, path
        self.app = create_app(memory, ServerSettings(port=0, streams=30))
        self._server = make_server(self.app, ServerSettings(port=0))
        self._thread = threading.Thread(target=self._server.run)
        self._clients: list[httpx.Client] = []
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)
        self.port = self._server.servers[0].sockets[0].getsockname()[1]

    def key(self, role: Any = "operator", **whose: Any) -> str:
        return self.memory.admin.keys.create(role, **whose).key

    def client(self, key: str | None = None) -> httpx.Client:
        headers = {"Authorization": f"Bearer {key or self.key()}"}
        self._clients.append(httpx.Client(base_url=f"http://127.0.0.1:{self.port}", headers=headers, timeout=20))
        return self._clients[-1]

    def leave(self) -> None:
        self._server.should_exit = True

    def stop(self) -> None:
        self.leave()
        self._thread.join()
        for client in self._clients:
            client.close()


@pytest.fixture
def served(tmp_path) -> Iterator[Served]:
    path = tmp_path / "memory.db"
    with Memory(path, embedder=None, config=Config(event_rows=256)) as memory:
        running = Served(memory, str(path))
        yield running
        running.stop()


def frames(lines: Iterator[str]) -> Iterator[dict[str, str]]:
    """Each event with its fields; a heartbeat is ``{}``, a number without an event has only ``id``."""
    found: dict[str, str] = {}
    for line in lines:
        if line:
            name, _, value = line.partition(": ")
            found |= {name: value} if name else {}
        else:
            yield found
            found = {}


@contextmanager
def stream(client: httpx.Client, path: str = ONE + "/events", **options: Any) -> Iterator[Iterator[dict[str, str]]]:
    with client.stream("GET", path, **options) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        told = frames(answer.iter_lines())
        assert "retry" in next(told)
        yield told


def kinds(told: Iterator[dict[str, str]], until: str) -> list[str]:
    found = []
    for frame in told:
        if "event" in frame:
            found.append(frame["event"])
        if frame.get("event") == until:
            return found
    return found


def test_what_happens_is_told_as_it_happens(served):
    client = served.client()
    with stream(client) as told:
        assert client.post(ONE + "/conversations/c/messages", json=SAY).status_code == 201
        frame = next(frame for frame in told if frame.get("event") == "fact.added")
    event = json.loads(frame["data"])
    assert event["id"] == int(frame["id"])
    assert (event["user"], event["subject"], event["kind"]) == ("ana", "self", "fact.added")
    assert event["ref"].startswith("fact_")
    assert "Porto" not in frame["data"]


def test_a_connection_that_is_cut_is_resumed_without_gap_or_repetition(served):
    """Two other processes write while the connection is cut again and again."""
    client, known, refs, cuts = served.client(), 0, [], 0
    others = [subprocess.Popen([sys.executable, "-c", WRITER, served.path, name]) for name in ("a", "b")]
    while len(refs) < 60:
        headers = {"Last-Event-ID": str(known)} if known else {}
        with stream(client, ONE + "/events?after=0", headers=headers) as told:
            for count, frame in enumerate(told):
                if frame.get("event") == "message.added":
                    event = json.loads(frame["data"])
                    refs.append((event["conversation"], event["ref"]))
                assert int(frame.get("id", known)) >= known
                known = int(frame.get("id", known))
                if count == 7 or len(refs) == 60:
                    cuts += 1
                    break  # leaves the stream: the socket is closed in the middle
    assert [other.wait() for other in others] == [0, 0]
    assert cuts > 3
    assert sorted(refs) == sorted((name, str(number)) for name in ("a", "b") for number in range(1, 31))


def test_only_what_concerns_the_conversation_and_the_subject(served):
    client = served.client()
    for subject, name in (("rex", "c"), ("tom", "c"), (None, "c"), (None, "d")):
        query = "" if subject is None else f"?subject={subject}"
        client.post(f"{ONE}/conversations/{name}/messages{query}", json=SAY)
    path = ONE + "/events?after=0&follow=false&conversation=c"
    with stream(served.client(served.key("subject", user="ana", subject="rex")), path) as told:
        events = [json.loads(frame["data"]) for frame in told if "data" in frame]
    assert {(event["subject"], event["conversation"]) for event in events} <= {
        ("rex", "c"),
        ("self", ""),
        ("self", "c"),
    }
    assert {event["kind"][:5] for event in events if event["subject"] == "self"} == {"fact."}


def test_what_is_not_on_record_any_more_is_said_to_be_missing(served):
    client, ana = served.client(), served.memory.user("ana")
    client.post(ONE + "/conversations/c/messages", json=SAY)
    first = ana.last_event()
    for _ in range(600):
        ana.never_remember("x")
    with stream(client, f"{ONE}/events?after={first}&follow=false") as told:
        assert [(frame.get("event"), frame["id"]) for frame in told] == [("reset", str(ana.last_event()))]
    with stream(client) as told:
        ana.erase()
        assert next(told)["event"] == "reset"
        client.post(ONE + "/conversations/c/messages", json=SAY)
        assert "fact.added" in kinds(told, "fact.added")


def test_silence_is_filled(served):
    served.app.state.tail.heartbeat_s = 0.05
    with stream(served.client()) as told:
        assert [next(told) for _ in range(3)] == [{}, {}, {}]


@pytest.mark.parametrize("how", ["revoked", "expired", "stopped"])
def test_a_stream_ends_at_once_with_its_key_and_with_the_server(served, how):
    ends = timedelta(seconds=1.5) if how == "expired" else None
    made = served.memory.admin.keys.create("app", expires_at=ends)
    with stream(served.client(made.key)) as told:
        if how == "revoked":
            served.memory.admin.keys.revoke(made.about.id)
        elif how == "stopped":
            served.leave()
        began = time.monotonic()
        assert list(told) == []
        assert time.monotonic() - began < 12  # and not with the next heartbeat


def test_a_key_that_is_revoked_while_its_stream_begins_ends_it(served, monkeypatch):
    """After the request was let in, and before the first look for events."""
    made, events = served.memory.admin.keys.create("app"), type(served.memory.admin.events)
    read, changes = EventFeed.read, events.changes

    async def revoking(self, user, after, **more):
        found = await read(self, user, after, **more)
        if served.memory.admin.keys.is_valid(made.about.id):
            served.memory.admin.keys.revoke(made.about.id)
        return found

    monkeypatch.setattr(EventFeed, "read", revoking)
    monkeypatch.setattr(events, "changes", lambda self: (time.sleep(0.3), changes(self))[1])
    with stream(served.client(made.key)) as told:
        began = time.monotonic()
        assert list(told) == []
        assert time.monotonic() - began < 12  # and not with the next heartbeat


def test_a_stream_that_is_never_silent_looks_at_its_key_as_well(served, monkeypatch):
    """Should the news of a revocation be lost, the stream ends with its next look at the key, whatever else it tells."""
    made, ended = served.memory.admin.keys.create("app"), threading.Event()
    served.app.state.tail.heartbeat_s = 2
    monkeypatch.setattr(EventFeed, "_end", lambda self, keys: None)

    def talk() -> None:
        while not ended.wait(0.05):
            served.memory.conversation("c", user="ana").append(SAY["messages"][0])

    talking = threading.Thread(target=talk)
    talking.start()
    try:
        with stream(served.client(made.key)) as told:
            assert any("event" in frame for frame in told)
            served.memory.admin.keys.revoke(made.about.id)
            began = time.monotonic()
            assert all(frame != {} for frame in told)  # it was never silent
            assert time.monotonic() - began < 20
    finally:
        ended.set()
        talking.join()


def test_many_who_listen_cost_one_look(served, monkeypatch):
    """However many listen to however many users, the store is asked once a look, not once a listener."""
    client, asked = served.client(), []
    news = type(served.memory.admin.events).news
    monkeypatch.setattr(
        type(served.memory.admin.events),
        "news",
        lambda self, heads, **more: (asked.append(len(heads)), news(self, heads, **more))[1],
    )
    opened = [client.stream("GET", f"/v1/users/u{number % 5}/events") for number in range(20)]
    lines = [each.__enter__().iter_lines() for each in opened]  # a stream closes with its iterator
    assert all(next(each).startswith("retry") for each in lines)
    time.sleep(0.5)
    asked.clear()
    for number in range(5):
        client.post(f"/v1/users/u{number}/conversations/c/messages", json=SAY)
    time.sleep(1)
    assert served.app.state.tail.count == 20
    for each in opened:
        each.__exit__(None, None, None)
    assert 0 < len(asked) <= 11  # ten looks a second at most, and each listener is served from what was found
    until = time.monotonic() + 5
    while served.app.state.tail.count and time.monotonic() < until:
        time.sleep(0.05)
    assert served.app.state.tail.count == 0


def test_there_may_be_only_so_many(served):
    client = served.client()
    opened = [client.stream("GET", ONE + "/events") for _ in range(30)]
    for each in opened:
        each.__enter__()
    refused = client.get(ONE + "/events")
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
    for each in opened:
        each.__exit__(None, None, None)


@pytest.mark.parametrize("number", ["x", "-1", "9" * 30, "1.5", "\u0661"])
def test_a_number_of_somebody_else_is_refused(served, number):
    given = number.encode()
    assert served.client().get(ONE + "/events", headers={"Last-Event-ID": given}).status_code == 422


def test_the_audit_says_who_did_it(ask, memory):
    app, user = ask("app"), ask("user", user="ana")
    app.post(ONE + "/conversations/c/messages", json=SAY)
    (fact,) = user.get(ONE + "/facts").json()["data"]
    user.patch(f"{ONE}/facts/{fact['id']}", json={"value": "Faro"})
    who = {client.get("/v1/whoami").json()["id"]: name for name, client in (("app", app), ("user", user))}
    found, cursor = [], ""
    while cursor is not None:
        page = user.get(f"{ONE}/audit?limit=3{cursor and '&cursor=' + cursor}").json()
        found, cursor = found + page["data"], page["next_cursor"]
    assert [event["id"] for event in found] == [event.id for event in memory.user("ana").audit(limit=1000)]
    did = {event["kind"]: who.get(event["actor"]) for event in found}
    assert (did["message.added"], did["fact.corrected"]) == ("app", "user")
    assert user.get(ONE + "/audit?cursor=x").status_code == 422


def test_an_org_is_told_of_its_keys_and_of_erasures_but_not_of_whom(ask):
    operator, app = ask("operator"), ask("app")
    app.post("/v1/users/anastasia/conversations/c/messages", json=SAY)
    made = operator.post("/v1/keys", json={"role": "app"}).json()["about"]["id"]
    operator.delete(f"/v1/keys/{made}")
    app.delete("/v1/users/anastasia")
    page = operator.get("/v1/audit?limit=3").json()
    assert [(event["kind"], event["ref"]) for event in page["data"]] == [
        ("erased", "user"), ("key.revoked", made), ("key.made", made),
    ]  # fmt: skip
    assert page["data"][0]["actor"] == app.get("/v1/whoami").json()["id"]
    assert "anastasia" not in operator.get("/v1/audit").text
    assert operator.get("/v1/audit", headers={"X-Holdfast-Org": "other"}).json()["data"] == []


def test_a_head_request_ends(ask):
    assert ask("app").head(ONE + "/events").status_code == 200


def test_a_page_names_the_stream_that_goes_on_where_the_page_ends(ask, memory):
    app, operator = ask("app"), ask("operator")
    app.post(ONE + "/conversations/c/messages", json=SAY)
    page = operator.get("/dashboard/users/ana")
    address = re.search(r'data-events="([^"]+)"', page.text)[1].replace("&amp;", "&")
    assert f"after={memory.user('ana').last_event()}" in address
    with stream(operator, address + "&follow=false") as told:
        assert list(told) == []
    memory.user("ana").pause()
    with stream(operator, address + "&follow=false") as told:
        assert [frame["event"] for frame in told] == ["consent.changed"]
