"""What Prometheus reads: right names, right numbers, nobody's name."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from holdfast.server.app import create_app
from holdfast.server.settings import ServerSettings

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
    memory.digest()
    found = samples(operator)

    assert value(found, "turns_total", role="user") == value(found, "turns_total", role="assistant") == 1
    assert value(found, "facts_written_total", op="new") == 1
    assert value(found, "context_build_seconds_count") == 1
    assert value(found, "recall_seconds_count") == 3
    assert value(found, "recall_requests_total", outcome="hit") >= 2
    assert value(found, "jobs_total", kind="extract", outcome="done") == 1
    assert value(found, "job_duration_seconds_count", kind="extract") == 1
    route = "/v1/users/{user:name}/search"
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
    key = {"Authorization": f"Bearer {memory.access.create('operator').key}"}
    one, two = (TestClient(create_app(memory), base_url=BASE, headers=key) for _ in range(2))
    one.get("/healthz")
    assert value(samples(one), "http_requests_total", method="GET", route="/healthz", status="200") == 1
    assert not [name for name, _ in samples(two) if name == "holdfast_http_requests_total"]


@pytest.mark.parametrize("keys", [1, 3])
def test_an_org_may_ask_only_so_often_whatever_its_keys(memory, keys):
    app = create_app(memory, ServerSettings(requests_per_minute=1_000_000, org_requests_per_minute=60))
    made = [{"Authorization": f"Bearer {memory.access.create('app').key}"} for _ in range(keys)]
    client = TestClient(app, base_url=BASE)
    answers = [client.get("/v1/whoami", headers=made[number % keys]) for number in range(12)]
    assert {answer.status_code for answer in answers} == {200, 429}
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert (refused.json()["code"], int(refused.headers["retry-after"]) >= 1) == ("too-often", True)
    other = {"Authorization": f"Bearer {memory.access.create('app', org='other').key}"}
    assert client.get("/v1/whoami", headers=other).status_code == 200
