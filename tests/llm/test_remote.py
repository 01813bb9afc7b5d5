"""Every provider's answers and faults, over a real connection, in our words."""

from __future__ import annotations

import gzip
import os
import threading
import time
import traceback
import tracemalloc
from dataclasses import replace

import pytest

from holdfast.llm import Answer, ModelError, Request, model
from holdfast.llm.remote import RemoteModel

from . import server
from .server import of

SECRET = "the-users-own-words"
KEY = "key-of-somebody"
ASKED = Request(layer="facts", system="Read the facts.", text=SECRET, prompt="abc", timeout_s=10)
NAMES = {"openai": "openai:gpt-5.1", "anthropic": "anthropic:claude-haiku-4-5", "google": "google:gemini-2.5-flash"}
SHAPES = {"openai": server.openai, "anthropic": server.anthropic, "google": server.google}
URLS = {"openai": "OPENAI_BASE_URL", "anthropic": "ANTHROPIC_BASE_URL", "google": "GOOGLE_GEMINI_BASE_URL"}


@pytest.fixture(params=sorted(NAMES))
def known(request, provider, monkeypatch):
    """``(provider's name, a model of it, the server)``, found as users do: by the environment."""
    monkeypatch.setenv(URLS[request.param], provider.url)
    made = model(NAMES[request.param], api_key=KEY)
    yield request.param, made, provider
    made.close()


@pytest.fixture
def compatible(provider):
    made = model("openai:qwen3", base_url=f"{provider.url}/v1", api_key=KEY)
    yield made
    made.close()


def failure(asked: RemoteModel, request: Request = ASKED) -> ModelError:
    with pytest.raises(ModelError) as failed:
        asked.ask(request)
    told = "".join(traceback.format_exception(failed.value))
    assert SECRET not in told
    assert KEY not in told
    return failed.value


def test_an_answer_with_what_it_used(known):
    name, asked, provider = known
    provider.replies = [SHAPES[name]()]

    answer = asked.ask(ASKED)
    assert replace(answer, cost=None) == Answer(
        "Porto", NAMES[name], input_tokens=40, output_tokens=3, cached_tokens=32
    )
    assert answer.cost == asked.price(40, 3, 32)
    assert 0 < asked.price(40, 3, 32) < asked.price(40, 3) < asked.price(4000, 3) < 1


def test_what_a_model_costs_that_nobody_priced_is_not_known(compatible, provider):
    provider.replies = [SHAPES["openai"]()]

    assert compatible.ask(ASKED).cost is None
    assert model("openai:gpt-that-never-was", api_key=KEY).price(1, 1) is None
    assert model("ollama:qwen3").price(1_000_000, 1_000_000) == 0
    assert model("ollama:qwen3-cloud").price(1, 1) is None


@pytest.mark.filterwarnings("ignore:Failed to extract usage")
@pytest.mark.parametrize("counts", [(7, 3, 512), (0, 0, 512), (-5, -3, -1), (10**15, 3, 0)])
def test_counts_that_cannot_be_true_break_no_call(provider, monkeypatch, counts):
    monkeypatch.setenv("OPENAI_BASE_URL", provider.url)
    status, headers, body = server.openai()
    names = (b"prompt_tokens", b"completion_tokens", b"cached_tokens")
    for name, was, count in zip(names, (40, 3, 32), counts, strict=True):
        body = body.replace(b'"%s": %d' % (name, was), b'"%s": %d' % (name, count))
    provider.replies = [(status, headers, body)]
    asked = model("openai:gpt-5.1", api_key=KEY)
    answer = asked.ask(ASKED)
    asked.close()

    assert answer.text == "Porto"
    assert answer.cached_tokens <= answer.input_tokens


def test_instructions_and_words_stay_apart(known):
    name, asked, provider = known
    provider.replies = [SHAPES[name]()]
    asked.ask(ASKED)

    body = provider.asked[0].body
    if name == "openai":
        assert [(m["role"], m["content"]) for m in body["messages"]] == [("system", ASKED.system), ("user", SECRET)]
        assert body["max_completion_tokens"] == 1024
    elif name == "anthropic":
        assert ASKED.system in str(body["system"])
        assert SECRET not in str(body["system"])
        assert SECRET in str(body["messages"])
        assert body["max_tokens"] == 1024
    else:
        assert ASKED.system in str(body["systemInstruction"])
        assert SECRET not in str(body["systemInstruction"])
        assert SECRET in str(body["contents"])
        assert body["generationConfig"]["maxOutputTokens"] == 1024
    settings = body.get("generationConfig", body)
    assert settings["temperature"] == 0


def test_where_an_answer_was_cut_or_refused_is_said(known):
    name, asked, provider = known
    cut = {"openai": "length", "anthropic": "max_tokens", "google": "MAX_TOKENS"}
    refused = {"openai": "content_filter", "anthropic": "refusal", "google": "SAFETY"}
    provider.replies = [SHAPES[name]("Por", cut[name]), SHAPES[name]("", refused[name])]

    assert asked.ask(ASKED).finish == "length"
    assert asked.ask(ASKED).finish == "refusal"


ERROR = {"error": {"message": f"you said {SECRET} with {KEY}", "type": "t", "code": None, "status": "X"}}


@pytest.mark.parametrize(
    ("status", "transient", "said"),
    [
        (400, False, "rejected the request (status 400) (another model may take it)"),
        (401, False, "refused the key (status 401) (check the key, and that it may use this model)"),
        (403, False, "refused the key (status 403) (check the key, and that it may use this model)"),
        (404, False, "is not known there (status 404) (check the name of the model and the address)"),
        (413, False, "failed (status 413)"),
        (408, True, "failed (status 408) (it is tried again)"),
        (429, True, "has reached its rate limit (status 429) (it is tried again)"),
        (500, True, "had an error of its own (status 500) (it is tried again)"),
        (503, True, "is unavailable (status 503) (it is tried again)"),
    ],
)
def test_every_status_says_whether_to_try_again(compatible, provider, status, transient, said):
    provider.replies = [of(ERROR, status)]
    failed = failure(compatible)

    assert str(failed) == f"openai:qwen3 {said}"
    assert failed.transient is transient
    assert len(provider.asked) == 1


@pytest.mark.parametrize("status", [401, 429, 500])
def test_providers_with_a_protocol_of_their_own_are_translated_alike(known, status):
    _, asked, provider = known
    google = {401: "UNAUTHENTICATED", 429: "RESOURCE_EXHAUSTED", 500: "INTERNAL"}[status]
    provider.replies = [of({"error": ERROR["error"] | {"status": google, "code": status}, "type": "error"}, status)]
    failed = failure(asked)

    assert failed.transient is (status != 401)
    assert f"(status {status})" in str(failed)
    assert len(provider.asked) == 1


@pytest.mark.parametrize(
    ("headers", "waits"),
    [({"Retry-After": "17"}, 17), ({"retry-after-ms": "1500"}, 1.5), ({}, None), ({"Retry-After": "soon"}, None)],
)
@pytest.mark.parametrize("status", [429, 503])
def test_how_long_to_wait_is_taken_from_the_provider(compatible, provider, status, headers, waits):
    provider.replies = [of(ERROR, status, **headers)]

    assert failure(compatible).retry_after_s == waits


def test_an_account_without_credit_is_not_asked_again(compatible, provider):
    provider.replies = [of({"error": {"message": "quota", "code": "insufficient_quota"}}, 429)]
    failed = failure(compatible)

    assert "has no credit left" in str(failed)
    assert not failed.transient


def test_nobody_there_is_said_with_the_question_that_helps():
    asked = model("openai:qwen3", base_url="http://127.0.0.1:1/v1")
    failed = failure(asked)
    asked.close()

    assert str(failed) == "openai:qwen3 cannot be reached (is the server running, and the address right?)"
    assert failed.transient


@pytest.mark.parametrize("reply", [server.dripping, lambda handler: time.sleep(1)], ids=["drip", "silence"])
def test_a_time_limit_is_for_the_whole_call(compatible, provider, reply):
    provider.replies = [reply]
    start = time.monotonic()
    failed = failure(compatible, Request("facts", "Read.", SECRET, "abc", timeout_s=0.4))

    assert time.monotonic() - start < 3
    assert "did not answer within 0.4 seconds" in str(failed)
    assert failed.transient


def test_a_connection_that_breaks_is_a_passing_failure(compatible, provider):
    provider.replies = [server.hanging_up]
    failed = failure(compatible)

    assert failed.transient
    assert "broke off" in str(failed)


def test_fifty_megabytes_are_not_read(compatible, provider):
    provider.replies = [server.openai(), server.endless]
    compatible.ask(ASKED)
    tracemalloc.start()
    failed = failure(compatible)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert "longer answer than allowed" in str(failed)
    assert peak < 20 * 2**20


def test_a_packed_answer_is_read_no_further_than_a_plain_one(compatible, provider):
    _, _, body = server.openai()
    bomb = gzip.compress(b" " * 50 * 2**20)
    packed = {"Content-Encoding": "gzip"}
    provider.replies = [(200, packed, gzip.compress(body)), (200, packed, bomb)]
    assert compatible.ask(ASKED).text == "Porto"
    tracemalloc.start()
    failed = failure(compatible)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert "longer answer than allowed" in str(failed)
    assert peak < 20 * 2**20
    assert provider.asked[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    ("packing", "body"), [("br", b"{}"), ("gzip", b"{}"), ("gzip", gzip.compress(b"{}", mtime=0)[:-9])]
)
def test_a_packed_answer_that_cannot_be_unpacked_is_a_passing_failure(compatible, provider, packing, body):
    provider.replies = [(200, {"Content-Encoding": packing}, body)]

    assert failure(compatible).transient


BODIES = [
    b"", b"Porto", b"{}", b"[]", b'"x"', b"null", b"7", b"\xff", b"[" * 100_000,
    b'{"choices": []}', b'{"choices": [{"message": {}}]}', b'{"choices": [null], "usage": 3}',
    b'{"content": [], "usage": {}}', b'{"content": [{"type": "text", "text": 5}], "usage": null}', b'{"content": 1}',
    b'{"candidates": []}', b'{"candidates": [{"content": {"parts": 5}}]}', b'{"candidates": [null]}',
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:Failed to extract usage")
def test_what_is_no_answer_is_empty_or_a_passing_failure(known):
    _, asked, provider = known
    for body in BODIES:
        provider.replies = [(200, {}, body)]
        try:
            said = asked.ask(ASKED).text
        except ModelError as error:
            said = "" if error.transient else "for good"
        assert said == "", body


def test_an_answer_without_text_is_empty(compatible, provider):
    provider.replies = [server.openai(None)]

    assert compatible.ask(ASKED).text == ""


def test_a_refusal_in_words_of_its_own_is_a_refusal(compatible, provider):
    provider.replies = [server.openai(None, refusal="I cannot help with that.")]

    assert compatible.ask(ASKED).finish == "refusal"


def test_usage_is_estimated_where_the_server_counts_nothing(compatible, provider):
    status, headers, body = server.openai()
    provider.replies = [(status, headers, body.replace(b'"usage"', b'"used"'))]
    answer = compatible.ask(ASKED)

    assert answer.estimated
    assert answer.input_tokens > 4
    assert answer.output_tokens > 0


def test_several_threads_ask_at_once(compatible, provider):
    def slow(handler):
        time.sleep(0.5)
        _, _, body = server.openai()
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    provider.replies = [slow]
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(compatible.ask(ASKED).text)) for _ in range(8)]
    start = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert answers == ["Porto"] * 8
    assert time.monotonic() - start < 3


def test_a_closed_model_opens_again_and_leaves_no_thread(compatible, provider):
    before = set(threading.enumerate())  # what other tests left to the garbage is not ours
    provider.replies = [server.openai()]
    for _ in range(2):
        assert compatible.ask(ASKED).text == "Porto"
        compatible.close()

    ours = [t for t in set(threading.enumerate()) - before if t.name.startswith("holdfast-openai")]
    for thread in ours:
        thread.join(timeout=5)  # it may be about to end
    assert not [t for t in ours if t.is_alive()]


def test_a_model_that_is_closed_lets_go_of_who_waits_for_it(compatible, provider):
    provider.replies = [lambda handler: time.sleep(2)]
    said = []
    waiting = threading.Thread(target=lambda: said.append(failure(compatible)))
    waiting.start()
    while not provider.asked:
        time.sleep(0.01)
    compatible.close()
    waiting.join(timeout=5)

    assert [str(failed) for failed in said] == ["openai:qwen3 was closed during the call (it is tried again)"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_asks_on_its_own(compatible, provider):
    provider.replies = [server.openai()]
    compatible.ask(ASKED)
    child = os.fork()
    if child == 0:
        os._exit(0 if compatible.ask(ASKED).text == "Porto" else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert compatible.ask(ASKED).text == "Porto"
