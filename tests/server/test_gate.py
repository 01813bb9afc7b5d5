"""What passes the gate: names, pages, sizes, rates; and that every refusal is a problem that says what to do."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from holdfast.errors import (
    BadInput,
    Changed,
    ConfigError,
    Conflict,
    HoldfastError,
    KeyReused,
    NotFound,
    StoreBusy,
    StoreError,
    StoreFull,
    TooLarge,
)
from holdfast.llm.protocol import ModelError
from holdfast.server.app import create_app
from holdfast.server.gate import Rates, ServerSettings
from holdfast.server.routing import problem_of

from .conftest import BASE

HOSTS = {
    "127.0.0.1:7800": 200,
    "127.0.0.1": 200,
    "localhost:7800": 200,
    "LOCALHOST": 200,
    "[::1]:7800": 200,
    "memory.example.org": 200,
    "evil.test": 421,
    "evil.test:7800": 421,
    "127.0.0.1.evil.test": 421,
    "localhost.evil.test": 421,
    "evil.test#localhost": 421,
    "localhost@evil.test": 421,
    "0.0.0.0": 421,
    "127.0.0.2": 421,
    "": 421,
}
ORIGINS = {
    "https://chat.example": 200,
    "http://127.0.0.1:7800": 200,
    "http://localhost:7800": 200,
    "null": 403,
    "https://chat.example.evil.test": 403,
    "https://evil-chat.example": 403,
    "https://sub.chat.example": 403,
    "http://chat.example": 403,
    "https://chat.example:8443": 403,
    "https://chat.example/": 403,
    "https://chat.exampl\u0435": 403,
    "http://127.0.0.1:7801": 403,
    "": 403,
}


@pytest.fixture
def settings():
    return ServerSettings(
        allowed_hosts=("memory.example.org",), allowed_origins=("https://chat.example",), max_body_bytes=10_000
    )


@pytest.mark.parametrize(("host", "status"), HOSTS.items())
def test_only_names_that_are_its_own_are_answered(ask, host, status):
    assert ask(None).get("/healthz", headers={"Host": host}).status_code == status


@pytest.mark.parametrize(("origin", "status"), ORIGINS.items())
def test_only_pages_that_are_allowed_may_ask(ask, origin, status):
    answer = ask(None).get("/healthz", headers={"Origin": origin.encode()})
    assert answer.status_code == status
    assert answer.headers.get("access-control-allow-origin") == (origin if status == 200 else None)
    assert "access-control-allow-credentials" not in answer.headers


def test_a_browser_may_ask_beforehand(ask):
    asked = {"Origin": "https://chat.example", "Access-Control-Request-Method": "PATCH"}
    answer = ask(None).options("/v1/users/ana/facts/f1", headers=asked)
    assert answer.status_code == 204
    assert "PATCH" in answer.headers["access-control-allow-methods"]
    for name in ("Authorization", "X-Memory-User", "X-Memory-Rating"):
        assert name in answer.headers["access-control-allow-headers"].split(", ")


def test_a_body_that_is_too_long_is_not_read(ask):
    app = ask("app")
    path = "/v1/users/ana/conversations/c/messages"
    told = app.post(path, json={"messages": [{"role": "user", "content": "x" * 20_000}]})

    def drip():
        for _ in range(30):
            yield b"[" * 1_000

    untold = app.post(path, content=drip(), headers={"Content-Type": "application/json"})
    assert [answer.status_code for answer in (told, untold)] == [413, 413]
    assert told.headers["content-type"] == untold.headers["content-type"] == "application/problem+json"


def test_a_path_that_is_not_there_is_told_only_to_those_with_a_key(ask):
    assert ask(None).get("/v1/nothing").status_code == 401
    assert ask("user", user="ana").get("/v1/nothing").status_code == 404
    assert ask("user", user="ana").get("/nothing").status_code == 404
    answer = ask("operator").put("/v1/whoami")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD, OPTIONS")


def test_what_a_path_takes_and_what_its_answer_looks_like_can_be_asked(ask):
    """OPTIONS names the methods, HEAD the headers of what GET would send, without its body."""
    app = ask("app")
    assert app.options("/v1/users/ana/facts").headers["allow"] == "DELETE, GET, HEAD, OPTIONS, POST"
    head, got = (app.request(method, "/v1/users/ana/facts") for method in ("HEAD", "GET"))
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == str(len(got.content))
    assert app.head("/v1/users/ana/facts/none").status_code == 404
    assert ask(None).head("/v1/users/ana/facts").status_code == 401


def test_what_is_wrong_is_told_without_repeating_it(ask):
    app = ask("app")
    path = "/v1/users/ana/conversations/c/messages"
    for content in (b"", b"{", b"[]", b'{"messages": 1}', b'{"messages": [{"role": "bad-secret-role"}]}', b"\xff\xfe"):
        answer = app.post(path, content=content, headers={"Content-Type": "application/json"})
        assert answer.status_code == 422, content
        assert answer.json()["code"] == "bad-input"
        assert "secret" not in answer.text


def test_answers_are_not_kept_on_the_way_nor_guessed_at(ask):
    for answer in (ask(None).get("/healthz"), ask("app").get("/v1/users/ana/facts"), ask(None).get("/v1/whoami")):
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_key_that_asks_too_often_waits():
    now = [0.0]
    rates = Rates(60, lambda: now[0])
    assert [rates.take("a") for _ in range(7)].count(0.0) == 6  # a burst of a tenth
    assert rates.take("b") == 0.0
    now[0] += 1.0
    assert rates.take("a") == 0.0
    assert rates.take("a") == pytest.approx(1.0)


def test_too_many_requests_are_told_when_to_come_again(memory):
    client = TestClient(create_app(memory, ServerSettings(requests_per_minute=30)), base_url=BASE)
    headers = {"Authorization": f"Bearer {memory.admin.keys.create('app').key}"}
    answers = [client.get("/v1/whoami", headers=headers) for _ in range(5)]
    other = client.get("/v1/whoami", headers={"Authorization": f"Bearer {memory.admin.keys.create('app').key}"})

    assert [answer.status_code for answer in answers] == [200, 200, 200, 429, 429]
    assert int(answers[-1].headers["retry-after"]) >= 1
    assert other.status_code == 200


def test_a_page_of_messages_wants_a_cursor_of_ours(ask):
    app = ask("app")
    for cursor in ("x", "-1", "9" * 30, "1.5", "%"):
        answer = app.get("/v1/users/ana/conversations/c/messages", params={"cursor": cursor})
        assert (answer.status_code, answer.json()["code"]) == (422, "bad-input"), cursor


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (BadInput("x"), 422),
        (TooLarge("x"), 413),
        (NotFound("x"), 404),
        (Conflict("x"), 409),
        (KeyReused("x"), 422),
        (Changed("x"), 412),
        (ConfigError("x"), 422),
        (StoreBusy("x"), 503),
        (StoreFull("x"), 507),
        (StoreError("x"), 503),
        (ModelError("x"), 502),
        (HoldfastError("x"), 500),
    ],
)
def test_each_error_has_its_status(error, status):
    answer = problem_of(error)
    assert answer.status_code == status
    assert ("retry-after" in answer.headers) == (status in (503, 507))


def test_a_model_is_told_where_to_look(ask):
    """In the form of llms.txt: a title, a quotation, and links that lead somewhere."""
    told = ask(None).get("/llms.txt")
    lines = told.text.splitlines()
    assert told.headers["content-type"].startswith("text/plain")
    assert (lines[0], lines[2][:2]) == ("# Holdfast", "> ")
    links = [line.partition("](")[2].partition(")")[0] for line in lines if line.startswith("- [")]
    assert links == ["/openapi.json", "/mcp"]
    assert ask("app").get(links[0]).status_code == 200


def test_the_document_describes_every_route(ask):
    document = ask(None).get("/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    assert len(document["paths"]) > 25
    search = document["paths"]["/v1/users/{user}/search"]["post"]
    assert {p["name"] for p in search["parameters"]} == {"user", "bot", "subject", "X-Holdfast-Org"}
    assert search["security"] == [{"key": []}]
    assert "application/problem+json" in search["responses"]["4XX"]["content"]
    names = [method["operationId"] for path in document["paths"].values() for method in path.values()]
    assert len(names) == len(set(names))


def test_requests_with_keys_that_open_nothing_are_counted_by_address(memory):
    app = create_app(memory, ServerSettings(requests_per_minute=20))
    client = TestClient(app, base_url=BASE, headers={"Authorization": "Bearer hf_wrong"})

    assert [client.get("/v1/whoami").status_code for _ in range(3)] == [401, 401, 429]
    good = {"Authorization": f"Bearer {memory.admin.keys.create('app').key}"}
    assert client.get("/v1/whoami", headers=good).status_code == 200


def test_what_the_client_has_already_is_not_sent_again(memory, ask):
    change = memory.user("ana").remember("I live in Porto.")
    client, path = ask("app"), f"/v1/users/ana/facts/{change.fact.id}"
    tag = client.get(path).headers["etag"]

    known = client.get(path, headers={"If-None-Match": f'"other", W/{tag}'})
    assert (known.status_code, known.content, known.headers["etag"]) == (304, b"", tag)
    assert client.get(path, headers={"If-None-Match": '"other"'}).status_code == 200
