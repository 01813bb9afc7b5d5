"""Long work over HTTP: ordered once, asked after by those whose memory it is, told as things are now."""

from __future__ import annotations

import threading

import pytest

from holdfast import Memory
from holdfast.errors import BadInput, Conflict, KeyReused, NotFound
from holdfast.server.app import create_app
from holdfast.server.tasks import KEPT, MOST_OPEN, Tasks, Whose
from holdfast.testing.embedder import HashEmbedder

ANA = "/v1/users/ana"
CHAT = f"{ANA}/conversations/web-42"
OWNER = Whose("default", "ana", "default")


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
        tasks = Tasks()
        task = tasks.order("rebuild", OWNER, broken)
        assert task.over.wait(10)
        assert (task.state, task.code, task.reason) == ("failed", "bad-input", "no such model")
        surprise = tasks.order("rebuild", OWNER, lambda _step: {}["x"])
        assert surprise.over.wait(10)
        assert (surprise.state, surprise.code) == ("failed", "internal")
        tasks.close()


def test_a_job_is_ended_before_its_next_range(memory):
    tasks, reached, go_on = Tasks(), threading.Event(), threading.Event()

    def work(step):
        for number in range(1, 100):
            step(number, 100)
            reached.set()
            assert go_on.wait(10)
        return lambda _person: None

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


def test_orders_that_wait_are_bounded_and_old_ones_let_go_of():
    tasks, hold = Tasks(), threading.Event()

    def work(_step):
        assert hold.wait(30)
        return lambda _person: None

    orders = [tasks.order("rebuild", OWNER, work, key=str(number)) for number in range(MOST_OPEN)]
    with pytest.raises(Conflict):
        tasks.order("rebuild", OWNER, work)
    with pytest.raises(KeyReused):
        tasks.order("backfill", OWNER, work, key="1")
    hold.set()
    assert all(task.over.wait(30) for task in orders)
    for _ in range(KEPT):
        assert tasks.order("rebuild", OWNER, work).over.wait(10)
    with pytest.raises(NotFound):
        tasks.get(orders[0].id)
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
        return lambda _person: None

    task = app.state.tasks.order("rebuild", OWNER, work)
    assert started.wait(10)
    app.state.tasks.close()
    assert ended.is_set()
    assert task.state == "cancelled"
