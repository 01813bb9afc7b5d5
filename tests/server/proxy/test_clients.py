"""The unmodified client of OpenAI, sync and async, against the proxy: what it sends and gets is what it would without."""

from __future__ import annotations

import asyncio
import json

import httpx2
import openai
import pytest

from .upstream import DONE, Reply, event, plain, stream

HELLO = [{"role": "user", "content": "I live in Porto."}]
TOOLS = [{"type": "function", "function": {"name": "find", "parameters": {"type": "object", "properties": {}}}}]


def ask(client, messages=HELLO, **more):
    return client.chat.completions.create(model="m-1", messages=messages, **more)


def test_a_plain_answer_comes_back_and_both_sides_are_stored(world):
    answer = ask(world.client()).choices[0].message.content

    assert answer == "Noted!"
    assert world.stored() == [("user", "I live in Porto."), ("assistant", "Noted!")]
    assert [fact.value for fact in world.memory.user("ana").facts()] == ["Porto"]


def test_a_stream_comes_back_word_by_word(world):
    world.model.reply = lambda asked: stream("No", "ted", "!")

    words = [chunk.choices[0].delta.content for chunk in ask(world.client(), stream=True)]

    assert words == ["", "No", "ted", "!", None]
    assert world.stored() == [("user", "I live in Porto."), ("assistant", "Noted!")]  # before the client saw its end


def test_words_arrive_while_the_model_still_speaks(world):
    world.model.reply = lambda asked: stream("a", "b", "c", wait_s=0.15)

    sent = []
    for chunk in ask(world.client(), stream=True):
        if chunk.choices[0].delta.content:
            sent.append(len(world.model.sent))

    assert sent[0] < 6  # the first word came before the model had said its last
    assert len(world.model.sent) == 6


def test_the_async_client_works_too(world):
    async def both():
        headers = {"X-Memory-User": "ana", "X-Memory-Conversation": "c"}
        async with openai.AsyncOpenAI(base_url=world.url, api_key=world.key(), default_headers=headers) as client:
            first = await ask(client)
            world.model.reply = lambda asked: stream("So", "on")
            second = await ask(client, [{"role": "user", "content": "When do we meet?"}], stream=True)
            return first.choices[0].message.content, [c.choices[0].delta.content async for c in second]

    assert asyncio.run(both()) == ("Noted!", ["", "So", "on", None])
    assert len(world.stored()) == 4


def test_parallel_tool_calls_and_their_results_pass_and_are_stored(world):
    calls = [{"id": f"t{n}", "type": "function", "function": {"name": "find", "arguments": '{"n":1}'}} for n in (1, 2)]
    world.model.reply = lambda asked: (
        plain(None, tool_calls=calls) if len(asked.body["messages"]) < 3 else plain("Two.")
    )
    client = world.client()

    said = ask(client, tools=TOOLS).choices[0].message
    results = [{"role": "tool", "tool_call_id": call.id, "content": "found"} for call in said.tool_calls]
    history = [*HELLO, said.model_dump(exclude_none=True), *results]
    answer = ask(client, history, tools=TOOLS, parallel_tool_calls=True)

    assert [call.id for call in said.tool_calls] == ["t1", "t2"]
    assert answer.choices[0].message.content == "Two."
    roles = [role for role, _ in world.stored()]
    assert roles == ["user", "assistant", "tool", "tool", "assistant"]
    assert world.memory.conversation("c", user="ana").load()[1].meta["tool_calls"] == calls
    order = [message["role"] for message in world.model.asked[1].body["messages"]]
    assert order[-3:] == ["assistant", "tool", "tool"]  # nothing stands between a call and its results


def test_tool_calls_in_a_stream_are_put_together_for_the_store_alone(world):
    def piece(**call):
        return event({"tool_calls": [{"index": 0} | call]})

    pieces = [
        piece(id="t1", type="function", function={"name": "find", "arguments": '{"a'}),
        piece(function={"arguments": '":1}'}),
        event({}, "tool_calls"),
        DONE,
    ]
    world.model.reply = lambda asked: Reply(pieces, kind="text/event-stream")

    chunks = list(ask(world.client(), tools=TOOLS, stream=True))

    assert [c.choices[0].delta.tool_calls[0].function.arguments for c in chunks[:2]] == ['{"a', '":1}']
    (call,) = world.memory.conversation("c", user="ana").load()[1].meta["tool_calls"]
    assert call == {"id": "t1", "type": "function", "function": {"name": "find", "arguments": '{"a":1}'}}


def test_of_several_choices_the_first_is_stored(world):
    world.model.reply = lambda asked: plain("One.", "Two.", "Three.")

    assert [choice.message.content for choice in ask(world.client(), n=3, logprobs=True).choices][2] == "Three."
    assert world.model.asked[0].body["n"] == 3
    assert world.model.asked[0].body["logprobs"] is True

    mixed = [event({"content": "B"}, index=1), event({"content": "A"}), event({}, "stop"), DONE]
    world.model.reply = lambda asked: Reply(mixed, kind="text/event-stream")
    list(ask(world.client(), [{"role": "user", "content": "Again?"}], n=2, stream=True))
    assert [text for role, text in world.stored() if role == "assistant"] == ["One.", "A"]


@pytest.mark.parametrize(
    ("status", "kind", "headers"),
    [
        (401, openai.AuthenticationError, {}),
        (400, openai.BadRequestError, {}),
        (429, openai.RateLimitError, {"Retry-After": "17", "X-RateLimit-Remaining-Requests": "0"}),
        (500, openai.InternalServerError, {}),
    ],
)
def test_errors_of_the_model_come_back_as_they_are(world, status, kind, headers):
    body = b'{"error" : {"message":"No.","type":"t","param":null,"code":"c-1"}}'
    world.model.reply = lambda asked: Reply([body], status=status, headers=headers)

    with pytest.raises(kind) as raised:
        ask(world.client())

    answer = raised.value.response
    assert (answer.status_code, answer.content, raised.value.code) == (status, body, "c-1")
    assert {name: answer.headers[name] for name in headers} == headers
    assert world.stored() == [("user", "I live in Porto.")]


def test_what_failed_and_is_tried_again_is_stored_once(world):
    replies = [Reply([b"{}"], status=500), Reply([b"{}"], status=503), plain("Noted!")]
    world.model.reply = lambda asked: replies[len(world.model.asked) - 1]

    ask(world.client().with_options(max_retries=2))

    assert len(world.model.asked) == 3
    assert world.stored() == [("user", "I live in Porto."), ("assistant", "Noted!")]


def test_a_stream_that_breaks_off_breaks_off_for_the_client_too(world):
    world.model.reply = lambda asked: stream("No", "t all", end=False, cut=True)

    with pytest.raises((openai.APIConnectionError, httpx2.RemoteProtocolError)):
        list(ask(world.client(), stream=True))

    assert world.stored_soon(2)[1] == ("assistant", "Not all")
    assert world.memory.conversation("c", user="ana").load()[1].meta == {"incomplete": True}


def test_a_client_that_leaves_stops_the_model_and_what_it_heard_is_kept(world):
    world.model.reply = lambda asked: stream(*["word "] * 200, wait_s=0.02)
    client = world.client()

    answer = ask(client, stream=True)
    heard = [next(answer) for _ in range(5)]
    answer.close()
    client.close()

    assert world.model.gone.wait(5)
    assert len(world.model.sent) < 100
    role, text = world.stored_soon(2)[1]
    assert (role, text.count("word") >= len(heard) - 1) == ("assistant", True)
    assert world.memory.conversation("c", user="ana").load()[1].meta == {"incomplete": True}


def test_a_client_that_leaves_before_the_first_word_stops_the_model_too(world):
    world.model.reply = lambda asked: Reply([b"x"] * 400, wait_s=0.02)
    with pytest.raises(openai.APITimeoutError):
        ask(world.client().with_options(timeout=1.5))

    assert world.model.gone.wait(6)
    assert world.stored() == [("user", "I live in Porto.")]


def test_nobody_at_the_other_end_is_told_as_a_gateway_would(serve, unused_port):
    world = serve(upstream_base_url=f"http://127.0.0.1:{unused_port}/v1")

    with pytest.raises(openai.InternalServerError) as raised:
        ask(world.client())

    assert (raised.value.status_code, raised.value.code) == (502, "upstream")
    assert "holdfast" in str(raised.value.body)


def test_a_model_that_says_nothing_is_given_up(serve):
    world = serve(upstream_timeout_s=0.2)
    world.model.reply = lambda asked: Reply([b"{}"], wait_s=1)

    with pytest.raises(openai.InternalServerError) as raised:
        ask(world.client())

    assert (raised.value.status_code, raised.value.code) == (504, "upstream-late")


def test_a_server_without_a_model_says_so(serve):
    world = serve(upstream_base_url=None)

    with pytest.raises(openai.NotFoundError, match="no model behind it"):
        ask(world.client())
    with pytest.raises(openai.NotFoundError, match="no model behind it"):
        world.client().models.list()


def test_models_are_the_upstreams(world):
    listed = {"object": "list", "data": [{"id": "org/m-1", "object": "model", "created": 1, "owned_by": "x"}]}
    world.model.reply = lambda asked: Reply([json.dumps(listed if asked.path.endswith("models") else {}).encode()])
    client = world.client()

    assert [model.id for model in client.models.list()] == ["org/m-1"]
    client.models.retrieve("org/m-1")
    assert [asked.path for asked in world.model.asked] == ["/v1/models", "/v1/models/org%2Fm-1"]
    assert {asked.headers["authorization"] for asked in world.model.asked} == {"Bearer upstream-secret"}


def test_a_server_that_is_its_own_upstream_ends_the_circle(serve, unused_port):
    world = serve()
    again = serve(upstream_base_url=world.url, upstream_key=world.key(), memory=world.memory)

    with pytest.raises(openai.InternalServerError) as raised:
        ask(again.client())

    assert (raised.value.status_code, raised.value.code) == (508, "upstream-loop")
    assert world.model.asked == []


@pytest.mark.parametrize(
    "name", ["..%2fadmin", "..", "a%2f..%2f..%2fadmin", "..%252fadmin", "..%5cadmin", "%2fadmin", "a%00"]
)
def test_the_name_of_a_model_leads_nowhere_else_at_the_upstream(world, name):
    with httpx2.Client(headers={"Authorization": f"Bearer {world.key()}"}) as client:
        answer = client.get(f"{world.url}/models/{name}")

    assert answer.status_code in (404, 405)
    assert world.model.asked == []


def test_the_operators_key_goes_out_without_the_clients_organization(world):
    world.model.reply = lambda asked: Reply([b"{}"])
    client = world.client()
    client.with_options(organization="org-theirs", project="proj-theirs").models.list()

    assert "openai-organization" not in {name.lower() for name in world.model.asked[0].headers}
    assert "openai-project" not in {name.lower() for name in world.model.asked[0].headers}
