"""One line for every request: what was asked and how it ended; no word, no name, no key."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from starlette.testclient import TestClient

from holdfast.integrations import telemetry
from holdfast.server.app import create_app
from holdfast.server.gate import ServerSettings
from holdfast.server.serve import log_to

from .conftest import BASE
from .test_serve import start

SAY = {"messages": [{"role": "user", "content": "I live in Porto."}]}
PATH = "/v1/users/ana%2F1/conversations/c-7/messages"


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """What a server would write to stderr with ``--log-format json``."""
    out = io.StringIO()
    loggers = [logging.getLogger(name) for name in ("holdfast", "uvicorn.error")]
    before = [(logger.level, logger.propagate) for logger in loggers]
    handler = log_to(out, "json")
    yield out
    for logger, (level, propagate) in zip(loggers, before, strict=True):
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = propagate


def lines(out: io.StringIO) -> list[dict]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_a_request_is_one_line_with_its_route_and_nothing_of_its_content(ask, logged):
    app = ask("app")
    answer = app.post(f"{PATH}?secret=blue", json=SAY, headers={"X-Request-Id": "r-1"})

    (line,) = lines(logged)
    assert answer.headers["x-request-id"] == line["request_id"] == "r-1"
    assert (line["method"], line["status"], line["level"]) == ("POST", 201, "info")
    assert line["route"] == "/v1/users/{user:name}/conversations/{conversation:name}/messages"
    assert line["duration_ms"] > 0
    assert len(line["scope"]) == 16
    assert line["key"]
    text = logged.getvalue()
    for word in ("ana", "Porto", "c-7", "blue", app.headers["Authorization"].split("_", 2)[-1]):
        assert word not in text


@pytest.mark.parametrize("given", ["", "x" * 65, "a b", 'a"b', "<script>"])
def test_an_id_that_does_not_fit_a_log_gets_another(ask, logged, given):
    answer = ask(None).get("/healthz", headers={"X-Request-Id": given})

    assert answer.headers["x-request-id"] == lines(logged)[0]["request_id"] != given
    assert len(lines(logged)[0]["request_id"]) == 16


@pytest.mark.parametrize(
    ("method", "path", "status", "route"),
    [
        ("GET", "/healthz", 200, "/healthz"),
        ("GET", "/v1/users/ana/facts", 401, "/v1/users/{user:name}/facts"),
        ("GET", "/nowhere/secret", 401, "-"),
        ("HEAD", "/healthz", 200, "/healthz"),
    ],
)
def test_what_is_refused_is_logged_too(ask, logged, method, path, status, route):
    ask(None).request(method, path)

    (line,) = lines(logged)
    assert (line["method"], line["status"], line["route"], line["scope"]) == (method, status, route, None)


def test_an_exception_is_logged_by_its_kind_and_place(memory, logged, monkeypatch):
    def broken(*args: object) -> None:
        raise RuntimeError("the secret is blue")

    monkeypatch.setattr(type(memory), "user", broken)
    client = TestClient(create_app(memory), base_url=BASE, raise_server_exceptions=False)
    key = memory.admin.keys.create("app").key
    assert client.get("/v1/users/ana/facts", headers={"Authorization": f"Bearer {key}"}).status_code == 500
    try:
        broken()
    except RuntimeError:
        logging.getLogger("uvicorn.error").exception("Exception in ASGI application")

    request, error = lines(logged)
    assert request["status"] == 500
    assert error["exception"][-1] == "RuntimeError"
    assert error["exception"][0].startswith("test_journal.py:")
    assert "blue" not in logged.getvalue()


def test_a_request_joins_the_trace_of_its_headers(memory):
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    telemetry.enable(tracer_provider=provider)
    try:
        key = memory.admin.keys.create("app").key
        client = TestClient(create_app(memory, ServerSettings(traced=True)), base_url=BASE)
        trace = "0af7651916cd43dd8448eb211c80319c"
        headers = {"Authorization": f"Bearer {key}", "traceparent": f"00-{trace}-b7ad6b7169203331-01"}
        assert client.post(PATH, json=SAY, headers=headers).status_code == 201
    finally:
        telemetry.disable()
        provider.shutdown()

    (span,) = exporter.get_finished_spans()
    assert f"{span.context.trace_id:032x}" == trace


@pytest.mark.parametrize("form", ["json", "console"])
def test_the_command_logs_to_stderr(tmp_path, form):
    running = start(tmp_path / "chat.db", "--log-format", form, "--telemetry")
    with running.client() as client:
        client.post("/v1/users/ana/conversations/c/messages", json=SAY)
    running.process.terminate()
    out, err = running.process.communicate(timeout=30)

    assert out == ""
    (line,) = err.splitlines()
    assert "/v1/users/{user:name}/conversations/{conversation:name}/messages" in line
    assert "201" in line
    if form == "json":
        assert json.loads(line)["status"] == 201
