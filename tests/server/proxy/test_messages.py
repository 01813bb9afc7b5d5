"""Anthropic's messages: another address for the official client, and nothing else; then embeddings and models."""

from __future__ import annotations

import json

import anthropic
import openai
import pytest

from .upstream import Reply

TOOLS = [{"name": "find", "input_schema": {"type": "object", "properties": {}}}]


def message(*blocks: dict[str, object], **more: object) -> dict[str, object]:
    usage = {"input_tokens": 20, "cache_read_input_tokens": 64, "cache_creation_input_tokens": 6, "output_tokens": 3}
    known = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m-1", "stop_reason": "end_turn"}
    return {**known, "stop_sequence": None, "usage": usage, "content": list(blocks), **more}


def text(words: str) -> dict[str, object]:
    return {"type": "text", "text": words}


def whole(*blocks: dict[str, object]) -> Reply:
    return Reply([json.dumps(message(*blocks)).encode()])


def events(*pieces: dict[str, object], **more: object) -> Reply:
    parts = [f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in pieces]
    return Reply(parts, kind="text/event-stream", **more)  # type: ignore[arg-type]


def stream(*words: str, calls: int = 0, end: bool = True, **more: object) -> Reply:
    """A text in pieces, then calls of a tool, as events."""
    started = message(usage={"input_tokens": 90, "output_tokens": 1})
    found: list[dict[str, object]] = [{"type": "message_start", "message": started}]
    found.append({"type": "content_block_start", "index": 0, "content_block": text("")})
    found += [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word}} for word in words
    ]
    found.append({"type": "content_block_stop", "index": 0})
    for number in range(1, calls + 1):
        block = {"type": "tool_use", "id": f"t{number}", "name": "find", "input": {}}
        piece = {"type": "input_json_delta", "partial_json": '{"n":1}'}
        found.append({"type": "content_block_start", "index": number, "content_block": block})
        found.append({"type": "content_block_delta", "index": number, "delta": piece})
        found.append({"type": "content_block_stop", "index": number})
    if end:
        delta = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
        found.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 3}})
        found.append({"type": "message_stop"})
    return events(*found, **more)


@pytest.fixture(autouse=True)
def answers(world):
    world.model.reply = lambda asked: whole(text("Noted!"))


@pytest.fixture
def connect(world):
    """``connect(conversation)``: Anthropic's client, unmodified but for its address and its headers."""

    def make(conversation: str | None = "c", user: str | None = "ana", key: str | None = None) -> anthropic.Anthropic:
        named = {"X-Memory-User": user, "X-Memory-Conversation": conversation}
        headers = {name: value for name, value in named.items() if value is not None}
        address = world.url.removesuffix("/v1")
        made = anthropic.Anthropic(
            base_url=address, api_key=key or world.key(), max_retries=0, default_headers=headers, timeout=20
        )
        world.clients.append(made)
        return made

    return make


def send(client, *messages, **more):
    said = [{"role": "user", "content": one} if isinstance(one, str) else one for one in messages]
    return client.messages.create(model="m-1", max_tokens=500, messages=said, **more)


def test_a_plain_message_comes_back_and_both_sides_are_stored(world, connect):
    answer = send(connect(), "I live in Porto.")

    assert answer.content[0].text == "Noted!"
    assert world.model.asked[0].path == "/v1/messages"
    assert world.stored() == [("user", "I live in Porto."), ("assistant", "Noted!")]
    used = world.memory.conversation("c", user="ana").load()[-1].usage
    assert (used.input_tokens, used.output_tokens, used.cached_tokens) == (90, 3, 64)


def test_the_key_of_this_server_goes_nowhere_and_the_models_key_is_sent(connect, serve, model):
    world = serve(upstream_base_url=None, anthropic_base_url=model.url.removesuffix("/v1"), anthropic_key="anthropic-k")
    model.reply = lambda asked: whole(text("Noted!"))
    key = world.key()
    with anthropic.Anthropic(base_url=world.url.removesuffix("/v1"), api_key=key) as client:
        send(client, "Hi.", metadata={"user_id": "ana"})

    headers = model.asked[0].headers
    assert headers["x-api-key"] == "anthropic-k"
    assert headers["anthropic-version"]
    assert key not in str(headers)
    assert len(world.memory.user("ana").conversations()) == 1  # the metadata name the user


def test_memory_is_shown_behind_the_instructions_and_before_the_question(world, connect):
    send(connect(), "I live in Porto.")
    send(connect("d"), "Where do I live?", system="You are Bo.")

    body = world.model.asked[1].body
    assert body["system"] == "You are Bo."
    assert body["messages"][-1] == {"role": "user", "content": "Where do I live?"}
    assert any("Porto" in str(one["content"]) for one in body["messages"][:-1])
    assert all(one["role"] in ("user", "assistant") for one in body["messages"])


def test_a_stream_comes_back_and_is_stored_before_its_end(world, connect):
    world.model.reply = lambda asked: stream("No", "ted", "!")

    with connect().messages.stream(
        model="m-1", max_tokens=500, messages=[{"role": "user", "content": "I live in Porto."}]
    ) as opened:
        words = list(opened.text_stream)

    assert words == ["No", "ted", "!"]
    assert world.stored() == [("user", "I live in Porto."), ("assistant", "Noted!")]
    used = world.memory.conversation("c", user="ana").load()[-1].usage
    assert (used.input_tokens, used.output_tokens) == (90, 3)


@pytest.mark.parametrize("streams", [False, True])
def test_calls_of_tools_and_their_results_are_stored_once(world, connect, streams):
    calls = [{"type": "tool_use", "id": f"t{n}", "name": "find", "input": {"n": 1}} for n in (1, 2)]
    world.model.reply = lambda asked: stream("Wait.", calls=2) if streams else whole(text("Wait."), *calls)
    client, question = connect(), {"role": "user", "content": "Find both."}
    if streams:
        with client.messages.stream(model="m-1", max_tokens=500, messages=[question], tools=TOOLS) as opened:
            answer = opened.get_final_message()
    else:
        answer = send(client, question, tools=TOOLS)
    made = [
        block.model_dump(exclude_none=True, include={"type", "id", "name", "input", "text"}) for block in answer.content
    ]
    results = [{"type": "tool_result", "tool_use_id": call["id"], "content": "found"} for call in calls]
    world.model.reply = lambda asked: whole(text("Two."))
    last = send(
        client, question, {"role": "assistant", "content": made}, {"role": "user", "content": results}, tools=TOOLS
    )

    assert last.content[0].text == "Two."
    assert [role for role, _ in world.stored()] == ["user", "assistant", "tool", "tool", "assistant"]
    stored = world.memory.conversation("c", user="ana").load()
    assert [call["id"] for call in stored[1].meta["tool_calls"]] == ["t1", "t2"]
    sent = world.model.asked[1].body["messages"]
    assert sent[-1]["content"] == results  # what follows a call is its result, and nothing of the memory
    assert sent[-2]["content"] == made


def test_a_history_that_is_sent_again_is_stored_once(world, connect):
    client = connect(None)
    send(client, "I live in Porto.")
    said = [{"role": "user", "content": "I live in Porto."}, {"role": "assistant", "content": [text("Noted!")]}]
    send(client, *said, {"role": "user", "content": [text("And I"), text(" plant beans.")]})

    (name,) = world.memory.user("ana").conversations()
    assert [one for _, one in world.stored(conversation=name)] == [
        "I live in Porto.", "Noted!", "And I plant beans.", "Noted!",
    ]  # fmt: skip


def test_a_client_that_leaves_stops_the_model_and_what_it_heard_is_kept(world, connect):
    words = [f"w{number} " for number in range(400)]
    world.model.reply = lambda asked: stream(*words, wait_s=0.02)
    with connect().messages.stream(
        model="m-1", max_tokens=500, messages=[{"role": "user", "content": "Talk."}]
    ) as opened:
        for word in opened.text_stream:
            if word.startswith("w3"):
                break

    assert world.model.gone.wait(10)
    assert world.stored_soon(2)[1][1].startswith("w0 w1 w2")
    assert world.memory.conversation("c", user="ana").load()[-1].meta["incomplete"] is True


def test_errors_of_the_model_and_our_own_are_anthropics(world, connect):
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "later"}}
    world.model.reply = lambda asked: Reply([json.dumps(error).encode()], status=529)
    with pytest.raises(anthropic.APIStatusError) as raised:
        send(connect(), "Hi.")
    assert (raised.value.status_code, raised.value.body) == (529, error)

    with pytest.raises(anthropic.AuthenticationError) as refused:
        send(connect(key="hf_wrong"), "Hi.")
    assert refused.value.body["type"] == "error"
    assert refused.value.body["error"]["type"] == "authentication_error"
    assert "key" in refused.value.body["error"]["message"]


def test_openais_own_address_is_not_asked_for_anthropics_messages(serve):
    world = serve(upstream_base_url="https://api.openai.com/v1")
    with anthropic.Anthropic(base_url=world.url.removesuffix("/v1"), api_key=world.key(), max_retries=0) as client:
        with pytest.raises(anthropic.NotFoundError) as raised:
            send(client, "Hi.")
    assert "ANTHROPIC_API_KEY" in raised.value.body["error"]["message"]


def test_tokens_are_counted_by_the_model(world, connect):
    world.model.reply = lambda asked: Reply([b'{"input_tokens": 7}'])
    counted = connect().messages.count_tokens(model="m-1", messages=[{"role": "user", "content": "Hi."}])

    assert counted.input_tokens == 7
    assert world.model.asked[0].path == "/v1/messages/count_tokens"
    assert world.memory.user("ana").conversations() == []


def test_embeddings_and_models_pass(world):
    found = {"object": "list", "model": "e-1", "usage": {"prompt_tokens": 1, "total_tokens": 1}}
    found["data"] = [{"object": "embedding", "index": 0, "embedding": [0.5, -0.5]}]
    world.model.reply = lambda asked: Reply([json.dumps(found).encode()])
    client = world.client()
    made = client.embeddings.create(model="e-1", input=["Porto"], encoding_format="float")

    assert made.data[0].embedding == [0.5, -0.5]
    assert world.model.asked[0].path == "/v1/embeddings"
    assert world.model.asked[0].headers["authorization"] == "Bearer upstream-secret"
    assert world.memory.user("ana").conversations() == []

    error = {"error": {"message": "no such model", "type": "invalid_request_error", "param": None, "code": None}}
    world.model.reply = lambda asked: Reply([json.dumps(error).encode()], status=404)
    with pytest.raises(openai.NotFoundError, match="no such model"):
        client.embeddings.create(model="e-9", input="Porto")


def test_anthropics_client_lists_the_models(connect, serve, model):
    world = serve(anthropic_base_url=model.url, anthropic_key="anthropic-k")
    listed = {"data": [{"type": "model", "id": "m-1", "display_name": "M", "created_at": "2026-01-01T00:00:00Z"}]}
    model.reply = lambda asked: Reply([json.dumps({**listed, "has_more": False}).encode()])
    with anthropic.Anthropic(base_url=world.url.removesuffix("/v1"), api_key=world.key()) as client:
        assert [one.id for one in client.models.list()] == ["m-1"]

    assert model.asked[0].headers["x-api-key"] == "anthropic-k"


@pytest.mark.parametrize("path", ["chat/completions", "responses", "embeddings", "models"])
def test_every_refusal_on_openais_routes_has_the_error_that_its_clients_read(world, path):
    client = world.with_key("hf_wrong")
    call = client.get if path == "models" else client.post
    with pytest.raises(openai.AuthenticationError) as raised:
        call(f"/{path}", cast_to=object)

    assert raised.value.body["code"] == "no-key"
    assert raised.value.body["message"].startswith("This key opens nothing")
