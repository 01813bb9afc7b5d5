"""What passes through passes byte for byte; what is added stands where a client and a model expect it."""

from __future__ import annotations

import json

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.server.proxy.request import Unreadable, read, with_field

from .upstream import DONE, Reply, event, plain

STRANGE = (
    b'{ "model" :"m-1",\n "weird":[1.0, 1e400, 12345678901234567890, -0.0, "\\u00e9\\ud83d\\ude00", null],'
    b'"messages":[ {"role":"user","content":"Tell me \\u0061 story.","x_new":{"a" : 1}} ] ,"tools":[],"temperature":0.70}'
)


def post(world, body, user="ana", **headers):
    sent = {"Authorization": f"Bearer {world.key()}", "X-Memory-Conversation": "c", **headers}
    if user:
        sent["X-Memory-User"] = user
    return httpx.post(f"{world.url}/chat/completions", content=body, headers=sent, timeout=20)


def test_a_request_to_which_memory_adds_nothing_is_the_clients_own_bytes(world):
    post(world, STRANGE)

    assert world.model.asked[0].raw == STRANGE


def test_what_memory_adds_changes_no_other_byte(world):
    world.memory.user("ana").remember("Ana is allergic to peanuts.")

    post(world, STRANGE)

    sent = world.model.asked[0].raw
    before, _, after = STRANGE.partition(b' {"role"')
    assert sent.startswith(before + b" {")
    assert sent.endswith(b'{"role"' + after)
    assert "peanuts" in sent.decode()
    assert [m["role"] for m in json.loads(sent)["messages"]] == ["user"] * 2


@pytest.mark.parametrize(
    "body", [b"", b"not JSON", b"[]", b'{"model":"m"}', b'{"messages":[]}', b"\xff\xfe", b"[" * 5000]
)
def test_what_is_no_chat_request_is_the_upstreams_to_judge(world, body):
    world.model.reply = lambda asked: Reply([b'{"error":"what?"}'], status=422)

    answer = post(world, body)

    assert (answer.status_code, answer.content) == (422, b'{"error":"what?"}')
    assert answer.headers["x-memory"] == "off; reason=unreadable"
    assert world.model.asked[0].raw == body


@pytest.mark.parametrize("pieces", [1, 7, 10_000])
def test_every_byte_of_a_stream_arrives(world, pieces):
    """However the network cuts it, with comments, fields we do not know, and other line ends."""
    whole = (
        b": hello\r\n\r\n"
        + event({"content": "caf\u00e9", "new_field": [1.50]}, extra={"a": 1})
        + b"event: x\nid: 7\n\n"
    )
    whole += b"data: not JSON\n\n" + event({}, "stop", usage=None) + DONE
    cut = [whole[at : at + pieces] for at in range(0, len(whole), pieces)]
    world.model.reply = lambda asked: Reply(cut, kind="text/event-stream; charset=utf-8")

    answer = post(world, STRANGE)

    assert answer.content == whole
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert world.stored()[1] == ("assistant", "caf\u00e9")


def test_an_answer_that_we_cannot_read_passes_all_the_same(world):
    world.model.reply = lambda asked: Reply([b"\x1f\x8b not for us"], headers={"Content-Encoding": "br"})
    headers = {"Authorization": f"Bearer {world.key()}", "X-Memory-User": "ana"}
    with httpx.stream("POST", f"{world.url}/chat/completions", content=STRANGE, headers=headers) as answer:
        assert b"".join(answer.iter_raw()) == b"\x1f\x8b not for us"


def test_big_bodies_pass(world):
    text = "word " * 400_000
    world.model.reply = lambda asked: plain(text)

    answer = post(world, json.dumps({"model": "m", "messages": [{"role": "user", "content": text}]}))

    assert answer.json()["choices"][0]["message"]["content"] == text
    assert len(world.model.asked[0].raw) > 2_000_000
    too_big = json.dumps({"messages": [{"role": "user", "content": "x" * 9_000_000}]})
    assert post(world, too_big).status_code == 413


def test_headers_of_each_side_stay_there_and_all_others_pass(world):
    world.model.reply = lambda asked: Reply(
        [b"{}"],
        headers={
            "X-Request-Id": "r1",
            "openai-processing-ms": "7",
            "Set-Cookie": "a=b",
            "Access-Control-Allow-Origin": "*",
        },
    )
    passed = {"OpenAI-Beta": "b1", "X-Stainless-Lang": "python"}
    kept = {"Cookie": "c=d", "X-Forwarded-For": "10.0.0.1", "OpenAI-Project": "p1", "OpenAI-Organization": "o1"}

    answer = post(world, STRANGE, **passed, **kept)

    there = world.model.asked[0].headers
    assert (there["openai-beta"], there["x-stainless-lang"]) == ("b1", "python")
    assert there["authorization"] == "Bearer upstream-secret"
    assert there["host"] == world.model.url.split("/")[2]
    assert {*map(str.lower, kept), "x-memory-user", "x-memory-conversation"} & set(there) == set()
    assert (answer.headers["x-request-id"], answer.headers["openai-processing-ms"]) == ("r1", "7")
    assert {"set-cookie", "access-control-allow-origin"} & set(answer.headers) == set()


def test_a_query_passes_without_what_it_says_to_this_server(world):
    url = f"{world.url}/chat/completions?bot=b1&api-version=2026-01&empty="
    headers = {"Authorization": f"Bearer {world.key()}", "X-Memory-User": "ana", "X-Memory-Conversation": "c"}
    httpx.post(url, content=STRANGE, headers=headers)

    assert world.model.asked[0].path == "/v1/chat/completions?api-version=2026-01&empty="
    assert len(world.stored(bot="b1")) == 2


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
MESSAGE = st.fixed_dictionaries({"role": st.sampled_from(["user", "system", "assistant"]), "content": JSON})


@given(
    fields=st.dictionaries(st.text(), JSON, max_size=4),
    messages=st.lists(MESSAGE, min_size=1, max_size=5),
    places=st.lists(st.integers(0, 6), max_size=4),
    indent=st.sampled_from([None, 0, 3]),
    ascii_only=st.booleans(),
)
def test_messages_are_put_in_where_they_belong(fields, messages, places, indent, ascii_only):
    """For any JSON, however it is written: the result is the client's object with ours at their places."""
    given = {**fields, "messages": messages}
    request = read(json.dumps(given, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "replace"))
    given = json.loads(request.text)
    ours = [
        (min(place, len(messages)), {"role": "user", "content": f"ours {n} \u00e9"}) for n, place in enumerate(places)
    ]

    result = json.loads(with_field(request.with_messages(ours), request.opening, "prompt_cache_key", "k"))

    expected = []
    for index in range(len(messages) + 1):
        expected += [message for place, message in ours if place == index] + given["messages"][index : index + 1]
    assert result == {"prompt_cache_key": "k", **given, "messages": expected}


@given(st.binary(max_size=200) | st.text(alphabet='{}[]":,\\ mesag1\n', max_size=60).map(str.encode))
def test_whatever_comes_is_read_or_refused(body):
    try:
        request = read(body)
    except Unreadable:
        return
    assert request.messages == json.loads(body)["messages"]
