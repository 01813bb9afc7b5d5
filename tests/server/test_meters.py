"""What Prometheus reads: right names, right numbers, nobody's name."""

from __future__ import annotations

import re
import time

import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from holdfast import Config, Memory
from holdfast.errors import StoreBusy
from holdfast.jobs.usage import CallTimes
from holdfast.llm.protocol import BadAnswer, ModelError
from holdfast.server.app import create_app
from holdfast.server.gate import ServerSettings
from holdfast.server.metrics import Latencies
from holdfast.testing.model import ScriptedModel
from holdfast.types import Price

from .conftest import BASE

SAY = {"messages": [{"role": "user", "content": "I live in Porto."}, {"role": "assistant", "content": "Nice."}]}


def samples(client: TestClient) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    answer = client.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    families = list(text_string_to_metric_families(answer.text))
    assert all(family.name.startswith("holdfast_") and family.documentation for family in families)
    return {(s.name, frozenset(s.labels.items())): s.value for family in families for s in family.samples}


def value(found, name: str, **labels: str) -> float:
    return found[f"holdfast_{name}", frozenset(labels.items())]


def test_what_was_done_is_counted(ask, memory):
    operator = ask("operator")
    operator.post("/v1/users/anastasia/conversations/secret-chat/messages", json=SAY)
    operator.post("/v1/users/anastasia/conversations/secret-chat/context", json={"query": "Where do I live?"})
    for query in ("Porto", "Porto", "qqqq"):
        operator.post("/v1/users/anastasia/search", json={"query": query})
    operator.get("/no/such/path")
    operator.post(
        "/v1/users/anastasia/conversations/other/messages", json={"messages": [{"role": "user", "content": "Thanks!"}]}
    )  # what states nothing is read by a job
    memory.digest()
    found = samples(operator)

    assert (value(found, "turns_total", role="user"), value(found, "turns_total", role="assistant")) == (2, 1)
    assert value(found, "facts_written_total", op="new") == 1
    assert value(found, "context_build_seconds_count") == 1
    assert value(found, "recall_seconds_count") == 3
    assert value(found, "recall_requests_total", outcome="hit") >= 2
    assert value(found, "jobs_total", kind="extract", outcome="done") == 1
    assert value(found, "job_duration_seconds_count", kind="extract") == 1
    route = "memory"
    assert value(found, "http_requests_total", method="POST", route=route, status="200") == 3
    assert value(found, "http_request_seconds_count", method="POST", route=route) == 3
    assert value(found, "http_requests_total", method="GET", route="none", status="404") == 1
    assert value(found, "store_bytes") > 0
    assert value(found, "jobs_open", state="dead") == 0
    assert value(found, "event_streams") == 0


def test_nobody_is_named_and_labels_stay_few(ask):
    operator = ask("operator", org="acme-corp")
    for number in range(30):
        operator.post(f"/v1/users/user{number}x/conversations/chat{number}x/messages", json=SAY)
        operator.get(f"/path{number}x")
        operator.request(f"VERB{number}", "/healthz")
    text = operator.get("/metrics").text
    assert not [word for word in ("user1x", "chat1x", "path1x", "VERB1", "acme-corp") if word in text]
    labels = [labels for name, labels in samples(operator) if name == "holdfast_http_requests_total"]
    assert len(labels) < 50


def test_two_servers_in_one_process_count_apart(memory):
    key = {"Authorization": f"Bearer {memory.admin.keys.create('operator').key}"}
    one, two = (TestClient(create_app(memory), base_url=BASE, headers=key) for _ in range(2))
    one.get("/healthz")
    assert value(samples(one), "http_requests_total", method="GET", route="health", status="200") == 1
    assert not [name for name, _ in samples(two) if name == "holdfast_http_requests_total"]


@pytest.mark.parametrize("keys", [1, 3])
def test_an_org_may_ask_only_so_often_whatever_its_keys(memory, keys):
    app = create_app(memory, ServerSettings(requests_per_minute=1_000_000, org_requests_per_minute=60))
    made = [{"Authorization": f"Bearer {memory.admin.keys.create('app').key}"} for _ in range(keys)]
    client = TestClient(app, base_url=BASE)
    answers = [client.get("/v1/whoami", headers=made[number % keys]) for number in range(12)]
    assert {answer.status_code for answer in answers} == {200, 429}
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert (refused.json()["code"], int(refused.headers["retry-after"]) >= 1) == ("too-often", True)
    other = {"Authorization": f"Bearer {memory.admin.keys.create('app', org='other').key}"}
    assert client.get("/v1/whoami", headers=other).status_code == 200


def test_what_contexts_come_to_is_counted_part_by_part(ask, memory):
    operator = ask("operator")
    operator.post("/v1/users/ana/conversations/c/messages", json=SAY)
    for _ in range(3):
        operator.post("/v1/users/ana/conversations/c/context", json={"query": "Where do I live?"})
    memory.conversation("c", user="ana").context("Looked at", note=False)
    found = samples(operator)

    assert value(found, "context_tokens_count", section="facts") == 3
    assert (
        value(found, "context_tokens_sum", section="facts") > value(found, "context_tokens_sum", section="recent") > 0
    )
    assert value(found, "context_prefix_reused_total") == 2


def test_tokens_of_models_are_counted_by_names_that_the_operator_set_up(clock):
    """The memory's own and those with a price; what an app calls its models is nobody's to read."""
    model = ScriptedModel(name="openai:gpt-tiny")
    config = Config(prices={"openai:gpt-big": Price(1, 2)}, job_attempts=2)
    with Memory(embedder=None, clock=clock, llm=model, config=config) as memory:
        operator = TestClient(create_app(memory), base_url=BASE)
        operator.headers["Authorization"] = f"Bearer {memory.admin.keys.create('operator').key}"
        operator.post("/v1/users/ana/conversations/c/messages", json=SAY)
        used = {"input_tokens": 100, "output_tokens": 10, "cached_tokens": 60}
        for name in ("openai:gpt-big", "anas-private-model"):
            operator.post("/v1/users/ana/conversations/c/usage", json={"model": name, **used})
        model.say("facts", ModelError("busy", transient=True), BadAnswer("no form"))
        operator.post("/v1/users/ana/conversations/c/end")
        operator.post("/v1/digest")
        clock.advance(hours=1)
        operator.post("/v1/digest")
        found = samples(operator)
        text = operator.get("/metrics").text

    for name in ("openai:gpt-big", "other"):
        assert value(found, "llm_tokens_total", direction="input", cached="no", model=name) == 40
        assert value(found, "llm_tokens_total", direction="input", cached="yes", model=name) == 60
        assert value(found, "llm_tokens_total", direction="output", cached="no", model=name) == 10
    assert value(found, "llm_errors_total", provider="openai", error_type="transient") == 1
    assert value(found, "llm_errors_total", provider="openai", error_type="bad-answer") == 1
    assert value(found, "llm_tokens_total", direction="input", cached="no", model="openai:gpt-tiny") > 0
    assert "anas-private-model" not in text


def test_latencies_outlive_their_process_and_are_bounded(tmp_path):
    path, now = tmp_path / "m.db", 500_000
    with Memory(path, embedder=None) as memory:
        kept = Latencies(memory.admin.call_times)
        for hour in range(now - 2 * kept.HOURS, now + 1):
            for _ in range(3):
                kept.take("context", 0.010, hour)
        for number in range(1000):
            kept.take("search", number / 1000, now)
        kept.flush()
    with Memory(path, embedder=None) as memory:
        kept = Latencies(memory.admin.call_times)
        hours = kept.percentiles("context", 0, (0.5, 0.95))
        assert sorted(hours) == list(range(now - kept.HOURS + 1, now + 1))  # a week
        assert hours[now] == [pytest.approx(0.010, rel=0.05)] * 2
        assert kept.percentiles("search", now, (0.5, 0.95))[now] == pytest.approx([0.5, 0.95], rel=0.05)
        assert kept.percentiles("append", 0, (0.5,)) == {}

        beside = Latencies(memory.admin.call_times)  # another process counts to the same hour
        for _ in range(3000):
            beside.take("search", 2.0, now)
        beside.flush()
        kept.take("append", 0.2, now)  # and what waits here counts at once
        assert kept.percentiles("search", now, (0.5,))[now] == [pytest.approx(2.0, rel=0.05)]
        assert kept.percentiles("append", now, (0.5,))[now] == [pytest.approx(0.2, rel=0.05)]
        assert len(memory.admin.call_times.since("search", now)[now]) < 100  # however many calls there were
        kept.take("search", 0.1, now + kept.HOURS)  # a week later
        kept.flush()
        assert list(memory.admin.call_times.since("search", 0)) == [now + kept.HOURS]


def test_latencies_wait_where_the_store_takes_none(tmp_path, monkeypatch):
    def refuse(*_given, **_named):
        raise StoreBusy("locked")

    with Memory(tmp_path / "m.db", embedder=None) as memory:
        kept = Latencies(memory.admin.call_times)
        kept.take("search", 0.3, 7)
        with monkeypatch.context() as broken:
            broken.setattr(CallTimes, "add", refuse)
            kept.flush()
        assert memory.admin.call_times.since("search", 0) == {}
        kept.flush()
        kept.flush()
        assert memory.admin.call_times.since("search", 0) == {7: {CallTimes.step_of(0.3): 1}}


def test_a_server_that_stops_keeps_its_latencies(tmp_path):
    """The next one, of the same memory, shows them on its page."""
    path = tmp_path / "m.db"
    with Memory(path, embedder=None) as memory, TestClient(create_app(memory), base_url=BASE):
        memory.conversation("c", user="ana").record("I live in Porto.")
        memory.user("ana").search("Porto")
    with Memory(path, embedder=None) as memory, TestClient(create_app(memory), base_url=BASE) as client:
        head = {"Authorization": f"Bearer {memory.admin.keys.create('operator').key}", "Accept": "text/html"}
        for _ in range(100):
            page = client.get("/dashboard/metrics", headers=head).text
            if 'id="latency"' in page:
                break
            time.sleep(0.05)
        plot = page[page.index('id="latency"') :].partition("</figure>")[0]
        assert len(re.findall(r"[\d.]+ ms", plot)) == 4  # median and 95th percentile, of search and of append
