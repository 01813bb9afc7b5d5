"""Long work over HTTP: ordered once, asked after by those whose memory it is, told as things are now."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta

import pytest
from starlette.testclient import TestClient

from holdfast import Memory
from holdfast.errors import BadInput, Conflict, KeyReused, NotFound
from holdfast.server.app import create_app
from holdfast.server.jobs import INTERRUPTED_REASON, MOST_OPEN, SILENT_S, Owner, Tasks
from holdfast.testing.fakes import HashEmbedder

from .conftest import BASE

ANA = "/v1/users/ana"
CHAT = f"{ANA}/conversations/web-42"
OWNER = Owner("default", "ana", "default")


@pytest.fixture
def told(memory, clock):
    """A conversation with summaries and a fact."""
    chat = memory.conversation("web-42", user="ana")
    chat.record("I live in Porto.", "Noted!")
    for number in range(20):
        clock.advance(seconds=30)
        chat.record(f"The roses are item {number} on the list.", f"Noted, item {number}.")
    memory.digest()
    return chat


def finished(client, answer):
    """The job that an answer names, when it is over."""
    assert answer.status_code == 202, answer.text
    assert answer.headers["location"] == f"/v1/jobs/{answer.json()['id']}"
    job = client.get(answer.headers["location"], params={"wait_s": 20}).json()
    assert job["ended_at"] is not None
    return job


def test_a_range_is_made_again_by_a_job_and_put_back(ask, told):
    app = ask("app")
    wanted = {"layer": "summaries", "start_seq": 11, "end_seq": 20}
    before = app.get(f"{CHAT}/summaries?level=1").json()["data"]
    estimate = app.post(f"{CHAT}/rebuild", json=wanted | {"dry_run": True})
    assert (estimate.status_code, estimate.json()["ranges"], estimate.json()["dry_run"]) == (200, 1, True)
    assert app.get(f"{CHAT}/summaries?level=1").json()["data"] == before

    job = finished(app, app.post(f"{CHAT}/rebuild", json=wanted))
    after = app.get(f"{CHAT}/summaries?level=1").json()["data"]
    assert (job["state"], job["done"], job["total"], job["kind"]) == ("done", 1, 1, "rebuild")
    assert [told["id"] for told in job["report"]["before"]] == [before[1]["id"]]
    assert [told["id"] for told in job["report"]["after"]] == [after[1]["id"]]
    assert [told["version"] for told in after][:3] == [1, 2, 1]  # only that range

    (made,) = app.get(f"{CHAT}/rebuilds").json()["data"]
    assert made["id"] == job["report"]["id"]
    assert app.post(f"{CHAT}/rebuilds/{made['id']}/restore").status_code == 200
    assert app.get(f"{CHAT}/summaries?level=1").json()["data"][1]["id"] == before[1]["id"]
    assert app.post(f"{CHAT}/rebuilds/none/restore").status_code == 404


@pytest.mark.parametrize(
    ("wanted", "status"),
    [({"layer": "dreams"}, 422), ({"layer": "episodes"}, 422), ({"layer": "facts", "start_seq": 9, "end_seq": 3}, 422)],
)
def test_what_cannot_be_made_again_is_said_at_once(ask, told, wanted, status):
    assert ask("app").post(f"{CHAT}/rebuild", json=wanted).status_code == status


def test_the_vectors_of_a_range_are_made_anew(ask, told):
    app = ask("app")
    assert finished(app, app.post(f"{CHAT}/rebuild", json={"layer": "vectors"}))["state"] == "done"


def test_old_conversations_are_brought_up_to_date(ask, told):
    app, operator = ask("app"), ask("operator")
    estimate = app.post(f"{ANA}/backfill", json={"layers": ["summaries"], "dry_run": True})
    assert (estimate.status_code, estimate.json()["dry_run"]) == (200, True)
    assert finished(app, app.post(f"{ANA}/backfill", json={"layers": ["summaries"]}))["report"]["errors"] == 0
    everybody = operator.post("/v1/backfill", json={"limit": 5, "delay_ms": 0})
    assert finished(operator, everybody)["report"]["skipped"] > 0
    assert app.get(everybody.headers["location"]).status_code == 404  # it is about others, too


def test_sentences_are_merged_and_weak_ones_put_away_now(ask, memory):
    app = ask("app")
    for kids in ("kids", "children"):
        app.post(f"{ANA}/facts", json={"text": f"The {kids} dread the dentist."})
    assert app.post(f"{ANA}/consolidate", json={"dry_run": True}).status_code == 200
    job = finished(app, app.post(f"{ANA}/consolidate", json={}))
    assert job["report"] is not None
    assert app.post(f"{ANA}/prune", json={}).json()["active"] == len(app.get(f"{ANA}/facts").json()["data"])


def test_the_same_key_orders_once(ask, told):
    app, headers = ask("app"), {"Idempotency-Key": "again-1"}
    first = app.post(f"{CHAT}/rebuild", json={"layer": "summaries"}, headers=headers)
    finished(app, first)
    second = app.post(f"{CHAT}/rebuild", json={"layer": "summaries"}, headers=headers)
    other = app.post(f"{CHAT}/rebuild", json={"layer": "facts"}, headers=headers)

    assert first.json()["id"] == second.json()["id"]
    assert len(app.get(f"{CHAT}/rebuilds").json()["data"]) == 1
    assert (other.status_code, other.json()["code"]) == (422, "key-reused")


def test_a_job_is_told_to_those_whose_memory_it_is(ask, told):
    place = ask("app").post(f"{CHAT}/rebuild", json={"layer": "summaries"}).headers["location"]

    assert ask("user", user="ana").get(place).status_code == 200
    assert ask("app", bot="default").get(place).status_code == 200
    for role, whose in (
        ("user", {"user": "bob"}),
        ("subject", {"user": "ana", "subject": "rex"}),
        ("app", {"org": "acme"}),
        ("app", {"bot": "other"}),
    ):
        answer = ask(role, **whose).get(place)
        assert (answer.status_code, answer.json()["code"]) == (404, "not-found"), (role, whose)
        if role == "app":
            assert ask(role, **whose).post(f"{place}/cancel").status_code == 404


def test_a_report_tells_nothing_that_was_erased_since(ask, told):
    app = ask("app")
    place = app.post(f"{CHAT}/rebuild", json={"layer": "facts"}).headers["location"]
    job = app.get(place, params={"wait_s": 20})
    assert "Porto" in job.text

    app.delete(ANA)
    later = app.get(place)
    assert later.json()["state"] == "done"
    assert "Porto" not in later.text
    assert "roses" not in later.text


def test_a_job_of_the_store_is_told_to_operators(ask, memory):
    memory.conversation("c", user="ana").record("Hello.")
    (job, *_) = memory.jobs()
    assert ask("operator").get(f"/v1/jobs/{job.id}").json()["state"] == job.state
    assert ask("app").get(f"/v1/jobs/{job.id}").status_code == 404
    assert ask("operator").get("/v1/jobs/none").status_code == 404


def test_a_job_that_fails_says_why(clock):
    """A model that refuses: the range stays as it was, the report names it."""

    def broken(_messages):
        raise BadInput("no such model")

    with Memory(embedder=HashEmbedder(), clock=clock) as memory:
        chat = memory.conversation("c", user="ana")
        chat.append([{"role": "user", "content": f"Line {number}."} for number in range(20)])
        tasks = Tasks(memory.admin.operations)
        task = tasks.order("rebuild", OWNER, broken)
        assert task.over.wait(10)
        assert (task.state, task.code, task.reason) == ("failed", "bad-input", "no such model")
        surprise = tasks.order("rebuild", OWNER, lambda _step: {}["x"])
        assert surprise.over.wait(10)
        assert (surprise.state, surprise.code) == ("failed", "internal")
        tasks.close()


def test_a_job_is_ended_before_its_next_range(memory):
    tasks, reached, go_on = Tasks(memory.admin.operations), threading.Event(), threading.Event()

    def work(step):
        for number in range(1, 100):
            step(number, 100)
            reached.set()
            assert go_on.wait(10)
        return None

    running = [tasks.order("rebuild", OWNER, work) for _ in range(2)]
    waiting = tasks.order("rebuild", OWNER, work)
    assert reached.wait(10)
    tasks.cancel(waiting.id)
    assert waiting.state == "cancelled"
    for task in running:
        tasks.cancel(task.id)
    go_on.set()
    assert all(task.over.wait(10) for task in running)
    assert {task.state for task in running} == {"cancelled"}
    with pytest.raises(NotFound):
        tasks.cancel("none")
    tasks.close()


def test_orders_that_wait_are_bounded(memory):
    tasks, hold = Tasks(memory.admin.operations), threading.Event()

    def work(_step):
        assert hold.wait(30)
        return None

    orders = [tasks.order("rebuild", OWNER, work, key=str(number)) for number in range(MOST_OPEN)]
    with pytest.raises(Conflict):
        tasks.order("rebuild", OWNER, work)
    with pytest.raises(KeyReused):
        tasks.order("backfill", OWNER, work, key="1")
    hold.set()
    assert all(task.over.wait(30) for task in orders)
    tasks.close()


def test_when_the_server_ends_so_does_its_work(memory):
    app = create_app(memory)
    started, ended = threading.Event(), threading.Event()

    def work(step):
        started.set()
        try:
            for number in range(10_000):
                step(number, 10_000)
                ended.wait(0.01)
        finally:
            ended.set()
        return None

    task = app.state.tasks.order("rebuild", OWNER, work)
    assert started.wait(10)
    app.state.tasks.close()
    assert ended.is_set()
    assert (task.state, task.code) == ("interrupted", "interrupted")
    assert "same request again" in memory.admin.operations.get(task.id).reason


# What outlives a process.


def at_work(tasks, **more):
    """An order that works until it is told to go on, and the event that has it do so."""
    begun, go_on = threading.Event(), threading.Event()

    def work(step):
        step(3, 10)
        begun.set()
        while not go_on.wait(0.01):
            step(3, 10)
        return None

    task = tasks.order("rebuild", OWNER, work, **more)
    assert begun.wait(10)
    return task, go_on


@pytest.fixture
def two(tmp_path):
    """Two memories on one file, as two processes have them."""
    path = tmp_path / "chat.db"
    with Memory(path, embedder=None) as first, Memory(path, embedder=None) as second:
        first.conversation("web-42", user="ana").record("I live in Porto.", "Noted!")
        yield first, second


def client_of(memory):
    key = memory.admin.keys.create("app").key
    return TestClient(create_app(memory), base_url=BASE, headers={"Authorization": f"Bearer {key}"})


def test_a_job_and_its_report_are_told_after_a_restart(tmp_path):
    path = tmp_path / "chat.db"
    with Memory(path, embedder=None) as memory:
        chat = memory.conversation("web-42", user="ana")
        for number in range(12):
            chat.record(f"The roses are item {number} on the list.", "Noted.")
        memory.digest()
        before = finished(client_of(memory), client_of(memory).post(f"{CHAT}/rebuild", json={"layer": "summaries"}))
        merged = client_of(memory).post(f"{ANA}/consolidate", json={}).headers["location"]
        filled = client_of(memory).post(f"{ANA}/backfill", json={}).headers["location"]
        told = [client_of(memory).get(place, params={"wait_s": 20}).json() for place in (merged, filled)]
    with Memory(path, embedder=None) as again:
        app = client_of(again)
        assert app.get(f"/v1/jobs/{before['id']}").json() == before
        assert "roses" in str(before["report"]["after"])
        assert [app.get(place).json() for place in (merged, filled)] == told
        app.delete(ANA)
        assert app.get(f"/v1/jobs/{before['id']}").status_code == 404


def test_the_same_key_orders_once_across_a_restart(tmp_path):
    path, headers = tmp_path / "chat.db", {"Idempotency-Key": "once"}
    ids = []
    for _ in range(2):
        with Memory(path, embedder=None) as memory:
            memory.conversation("web-42", user="ana").append({"role": "user", "content": "I live in Porto."})
            answer = client_of(memory).post(f"{ANA}/backfill", json={}, headers=headers)
            ids.append(finished(client_of(memory), answer)["id"])
            other = client_of(memory).post(f"{ANA}/backfill", json={"limit": 3}, headers=headers)
            assert other.json()["code"] == "key-reused"
    assert ids[0] == ids[1]


def test_what_the_end_of_a_server_interrupted_says_so_and_may_be_ordered_again(two):
    first, second = two
    tasks = Tasks(first.admin.operations)
    task, _ = at_work(tasks, key="once", request={})
    tasks.close()

    told = client_of(second).get(f"/v1/jobs/{task.id}").json()
    assert (told["state"], told["code"], told["done"], told["total"]) == ("interrupted", "interrupted", 3, 10)
    assert "send the same request again" in told["reason"]
    anew = Tasks(second.admin.operations)
    again = anew.order("rebuild", OWNER, lambda _step: None, key="once", request={})
    assert again.over.wait(10)
    assert (again.id != task.id, again.state) == (True, "done")
    anew.close()


def test_what_died_without_a_word_counts_as_interrupted_after_a_while(two):
    first, second = two
    now = datetime.now(UTC)
    dead, watcher = Tasks(first.admin.operations, lambda: now), Tasks(second.admin.operations, lambda: now)
    task, go_on = at_work(dead)
    assert watcher.get(task.id).state == "running"
    now += timedelta(seconds=SILENT_S + 1)
    assert (watcher.get(task.id).state, watcher.get(task.id).reason) == ("interrupted", INTERRUPTED_REASON)
    assert [one.state for one in watcher.of(OWNER)] == ["interrupted"]
    go_on.set()
    dead.close()
    watcher.close()


def test_another_process_sees_how_far_a_job_is_and_can_end_it(two, monkeypatch):
    monkeypatch.setattr("holdfast.server.jobs.SAVE_S", 0.02)
    first, second = two
    tasks = Tasks(first.admin.operations)
    task, _ = at_work(tasks)
    app = client_of(second)
    soon = time.monotonic() + 10
    while app.get(f"/v1/jobs/{task.id}").json()["done"] != 3:
        assert time.monotonic() < soon
    assert app.post(f"/v1/jobs/{task.id}/cancel").status_code == 204
    told = app.get(f"/v1/jobs/{task.id}", params={"wait_s": 10}).json()

    assert (told["state"], task.state) == ("cancelled", "cancelled")
    tasks.close()


def test_whoever_follows_a_user_hears_how_far_the_work_is(memory, monkeypatch):
    monkeypatch.setattr("holdfast.server.jobs.SAVE_S", 0.0)
    memory.conversation("web-42", user="ana").record("Hello.")
    ana, tasks = memory.user("ana"), Tasks(memory.admin.operations)
    mark = ana.last_event()

    def work(step):
        for number in range(1, 4):
            step(number, 3)

    task = tasks.order("rebuild", OWNER, work)
    assert task.over.wait(10)
    told = [(event.kind, event.ref) for event in ana.events(after=mark) if event.ref == task.id]
    assert [kind for kind, _ in told] == ["job.queued", *["job.progress"] * 4, "job.done"]
    tasks.close()


def test_a_user_who_is_erased_meanwhile_leaves_no_row_and_no_event(memory, monkeypatch):
    monkeypatch.setattr("holdfast.server.jobs.SAVE_S", 0.0)
    memory.conversation("web-42", user="ana").record("Hello.")
    tasks = Tasks(memory.admin.operations)
    task, go_on = at_work(tasks)
    memory.user("ana").erase()
    go_on.set()
    assert task.over.wait(10)

    assert memory.admin.operations.get(task.id) is None
    assert memory.user("ana").audit() == []
    tasks.close()
