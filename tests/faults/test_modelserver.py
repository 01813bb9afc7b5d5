"""The stand-in for a provider does what it is told, so that what is tested with it means something."""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.request

import pytest

from holdfast.testing.model import ModelServer, ServerAnswer, unreachable_url

QUESTION = {
    "model": "any",
    "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": [{"text": "Hello?"}]}],
}


def ask(url: str, body: object = QUESTION, path: str = "/chat/completions", timeout: float = 5.0):
    request = urllib.request.Request(url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=timeout) as response:
        return json.loads(response.read())


def test_a_list_of_answers_is_used_up_and_requests_are_kept():
    with ModelServer(["first", ServerAnswer("second", finish="length", cached_tokens=3)]) as server:
        said = [ask(server.url)["choices"][0] for _ in range(3)]

    assert [(one["message"]["content"], one["finish_reason"]) for one in said] == [
        ("first", "stop"),
        ("second", "length"),
        ("NONE", "stop"),
    ]
    assert [(asked.path, asked.system, asked.text) for asked in server.asked] == [
        ("/v1/chat/completions", "Be brief.", "Hello?")
    ] * 3


def test_the_responses_endpoint_has_its_own_shape():
    with ModelServer(lambda asked: asked.text.upper()) as server:
        answer = ask(server.url, {"model": "any", "instructions": "Shout.", "input": "hello"}, "/responses")

    assert answer["output"][0]["content"][0]["text"] == "HELLO"
    assert answer["status"] == "completed"
    assert server.asked[0].system == "Shout."


def test_a_status_comes_with_its_headers():
    with ModelServer([ServerAnswer(status=429, headers={"Retry-After": "7"})]) as server:
        with pytest.raises(urllib.error.HTTPError) as refused:
            ask(server.url)

    assert refused.value.code == 429
    assert refused.value.headers["Retry-After"] == "7"
    assert json.loads(refused.value.read())["error"]["code"] == "rate_limit_exceeded"


@pytest.mark.parametrize("reset", [False, True])
def test_a_body_can_break_off(reset):
    with ModelServer([ServerAnswer("words " * 2000, cut=20, reset=reset)]) as server:
        with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
            ask(server.url)


def test_a_drip_is_slower_than_patience_and_closing_ends_it():
    with ModelServer([ServerAnswer("words", drip_s=0.05), ServerAnswer(wait_s=60)]) as server:
        began = time.monotonic()
        with pytest.raises(TimeoutError):
            ask(server.url, timeout=0.02)
        with pytest.raises(TimeoutError):
            ask(server.url, timeout=0.1)

    assert time.monotonic() - began < 5


def test_nobody_listens_where_connections_are_refused():
    with pytest.raises(urllib.error.URLError, match="refused"):
        ask(unreachable_url())


def test_after_closing_connections_are_refused():
    server = ModelServer()
    server.close()
    server.close()

    with pytest.raises(urllib.error.URLError, match="refused"):
        ask(server.url)
