"""OpenAI's responses: another address for the official client, and nothing else."""

from __future__ import annotations

import json
import time

import openai
import pytest

from holdfast.server.proxy.chat import ProxiedChat

from .upstream import Reply, response

TOOLS = [{"type": "function", "name": "find", "parameters": {"type": "object", "properties": {}}}]


def whole(text: str | None, *calls: dict[str, str], **more: object) -> Reply:
    return Reply([json.dumps(response(text, *calls, **more)).encode()])


def events(given: dict[str, object], *words: str, end: bool = True, **more: object) -> Reply:
    """The same as a stream of events."""
    found = [{"type": "response.created", "response": {**given, "output": [], "status": "in_progress", "usage": None}}]
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0, "logprobs": []}
    found += [{"type": "response.output_text.delta", "delta": word, **place} for word in words]
    found += [
        {"type": "response.output_item.done", "output_index": number, "item": item}
        for number, item in enumerate(given["output"])  # type: ignore[arg-type, var-annotated]
    ]
    found += [{"type": "response.completed", "response": given}] if end else []
    parts = [
        f"event: {one['type']}\ndata: {json.dumps({**one, 'sequence_number': number})}\n\n".encode()
        for number, one in enumerate(found)
    ]
    return Reply(parts, kind="text/event-stream", **more)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def answers(world):
    """Every response has an id of its own."""
    world.model.reply = lambda asked: whole("Noted!", number=len(world.model.asked))


def shown(asked) -> list[str]:
    """The texts that the model got as input."""
    items = asked.body["input"]
    return [items] if isinstance(items, str) else [str(item.get("content", item.get("output"))) for item in items]


def test_a_plain_response_comes_back_and_both_sides_are_stored(world):
    answer = world.client().responses.create(model="m-1", input="I live in Porto.")

    assert answer.output_text == "Noted!"
    assert world.model.asked[0].path == "/v1/responses"
    assert world.stored() == [("user", "I live in Porto."), ("assistant", "Noted!")]
    assert [fact.value for fact in world.memory.user("ana").facts()] == ["Porto"]
    used = world.memory.conversation("c", user="ana").load()[-1].usage
    assert (used.input_tokens, used.output_tokens, used.cached_tokens) == (90, 3, 64)


def test_a_request_to_which_memory_adds_nothing_is_the_clients_own_bytes(world):
    sent = {"model": "m-1", "input": "Hi.", "temperature": 1.0}
    world.client().responses.create(**sent)

    assert world.model.asked[0].body == sent


def test_memory_is_shown_beside_a_text_and_beside_items(world):
    world.client().responses.create(model="m-1", input="I live in Porto.")
    other = world.client(conversation="d")
    other.responses.create(model="m-1", input="Where do I live?", instructions="You are Bo.")
    other.responses.create(
        model="m-1",
        input=[
            {"role": "developer", "content": "Be short."},
            {"role": "user", "content": [{"type": "input_text", "text": "And now?"}]},
        ],
    )

    text, items = world.model.asked[1].body, world.model.asked[2].body["input"]
    assert text["instructions"] == "You are Bo."
    assert text["input"][-1] == {"role": "user", "content": "Where do I live?"}
    assert any("Porto" in one for one in shown(world.model.asked[1])[:-1])
    assert items[0] == {"role": "developer", "content": "Be short."}
    assert items[-1]["content"] == [{"type": "input_text", "text": "And now?"}]
    assert any("Porto" in str(item["content"]) for item in items[1:-1])
    assert [text for _, text in world.stored(conversation="d")] == ["Where do I live?", "Noted!", "And now?", "Noted!"]


def test_a_stream_comes_back_and_is_stored_before_its_end(world):
    world.model.reply = lambda asked: events(response("Noted!"), "No", "ted", "!")

    kinds, text = [], ""
    for event in world.client().responses.create(model="m-1", input="I live in Porto.", stream=True):
        kinds.append(event.type)
        text += event.delta if event.type == "response.output_text.delta" else ""

    assert (kinds[0], kinds[-1], text) == ("response.created", "response.completed", "Noted!")
    assert world.stored() == [("user", "I live in Porto."), ("assistant", "Noted!")]


@pytest.mark.parametrize("streams", [False, True])
def test_calls_of_tools_and_their_results_are_stored_once(world, streams):
    calls = [{"call_id": f"t{n}", "name": "find", "arguments": '{"n":1}'} for n in (1, 2)]
    asking = response(None, *calls)
    world.model.reply = lambda asked: events(asking) if streams else whole(None, *calls)
    client = world.client()
    question = {"role": "user", "content": "Find both."}

    answer = client.responses.create(model="m-1", input=[question], tools=TOOLS, stream=streams)
    given = [event for event in answer][-1].response.output if streams else answer.output
    world.model.reply = lambda asked: whole("Two.", number=2)
    made = [item.model_dump(exclude_none=True) for item in given]
    results = [{"type": "function_call_output", "call_id": call["call_id"], "output": "found"} for call in calls]
    last = client.responses.create(model="m-1", input=[question, *made, *results], tools=TOOLS)

    assert last.output_text == "Two."
    assert [role for role, _ in world.stored()] == ["user", "assistant", "tool", "tool", "assistant"]
    stored = world.memory.conversation("c", user="ana").load()
    assert [call["id"] for call in stored[1].meta["tool_calls"]] == ["t1", "t2"]
    assert [message.meta["tool_call_id"] for message in stored[2:4]] == ["t1", "t2"]


def test_a_chain_of_responses_is_one_conversation_stored_once(world):
    client = world.client(conversation=None)
    first = client.responses.create(model="m-1", input="I live in Porto.")
    second = client.responses.create(model="m-1", input="I plant beans.", previous_response_id=first.id)
    client.responses.create(model="m-1", input="And peas.", previous_response_id=second.id)

    (name,) = world.memory.user("ana").conversations()
    said = [text for _, text in world.stored(conversation=name)]
    assert said == ["I live in Porto.", "Noted!", "I plant beans.", "Noted!", "And peas.", "Noted!"]
    assert [asked.body.get("previous_response_id") for asked in world.model.asked] == [None, first.id, second.id]


@pytest.mark.parametrize("named", ["c", None])
@pytest.mark.parametrize("streams", [False, True])
def test_earlier_answers_may_be_shown_by_reference(world, named, streams):
    """The AI SDK shows its model's earlier answers so, unless it is told not to store them."""
    client = world.client(conversation=named)
    call = {"call_id": "t1", "name": "find", "arguments": "{}"}
    made = [response("Noted!"), response(None, call, number=2), response("Two.", number=3), response("Bye.", number=4)]
    world.model.reply = lambda asked: (events if streams else lambda one: Reply([json.dumps(one).encode()]))(
        made[len(world.model.asked) - 1]
    )
    shown = [{"role": "user", "content": "I live in Porto."}]
    for item in ("msg_1", "fc_t1", "msg_3", None):
        list(client.responses.create(model="m-1", input=shown, stream=streams))
        shown += [{"type": "item_reference", "id": item}]
        shown += [{"type": "function_call_output", "call_id": "t1", "output": "2"}] if item == "fc_t1" else []
        shown += [{"role": "user", "content": f"And {item}?"}] if item != "fc_t1" else []

    (name,) = world.memory.user("ana").conversations()
    assert world.stored(conversation=name) == [
        ("user", "I live in Porto."),
        ("assistant", "Noted!"),
        ("user", "And msg_1?"),
        ("assistant", ""),
        ("tool", "2"),
        ("assistant", "Two."),
        ("user", "And msg_3?"),
        ("assistant", "Bye."),
    ]
    assert all(
        message.content or message.meta["tool_calls"] for message in world.memory.conversation(name, user="ana").load()
    )


def test_a_reference_to_what_is_not_stored_stands_for_an_answer(world):
    client = world.client()
    for _ in range(2):
        client.responses.create(
            model="m-1",
            input=[
                {"role": "user", "content": "I live in Porto."},
                {"type": "item_reference", "id": "rs_unknown"},
                {"type": "item_reference", "id": "msg_unknown"},
                {"role": "user", "content": "Where do I live?"},
            ],
            extra_headers={"X-Memory-History": "store"},
        )

    assert world.stored() == [
        ("user", "I live in Porto."),
        ("user", "Where do I live?"),
        ("assistant", "Noted!"),
    ]


def test_a_chain_is_known_again_after_a_restart(world, serve):
    first = world.client(conversation=None).responses.create(model="m-1", input="I live in Porto.")
    again = serve(world.memory)
    again.client(conversation=None).responses.create(model="m-1", input="Beans.", previous_response_id=first.id)

    (name,) = world.memory.user("ana").conversations()
    assert len(world.stored(conversation=name)) == 4


def test_in_a_chain_the_model_gets_what_it_does_not_hold_and_nothing_twice(world):
    world.client().responses.create(model="m-1", input="I live in Porto.")
    client = world.client(conversation=None)
    first = client.responses.create(model="m-1", input="Hello again.")
    second = client.responses.create(model="m-1", input="What now?", previous_response_id=first.id)
    assert any("Porto" in text for text in shown(world.model.asked[1]))
    assert not any("What you know" in text for text in shown(world.model.asked[2]))  # the model's server holds it
    assert not any("Hello again." == text for text in shown(world.model.asked[2]))

    world.memory.user("ana").remember("I keep bees.")
    client.responses.create(model="m-1", input="Tell me.", previous_response_id=second.id)
    assert any("bees" in text for text in shown(world.model.asked[3]))


def test_a_chain_goes_on_from_an_answer_that_was_made_twice(world):
    """Its client tried again; both answers are the same, and it goes on from the second."""
    client = world.client(conversation=None)
    for _ in range(2):
        again = client.responses.create(model="m-1", input="Hello.", extra_headers={"Idempotency-Key": "k-1"})
    client.responses.create(model="m-1", input="And now?", previous_response_id=again.id)

    (name,) = world.memory.user("ana").conversations()
    assert [text for _, text in world.stored(conversation=name)] == ["Hello.", "Noted!", "And now?", "Noted!"]


@pytest.mark.parametrize("restarts", [False, True])
def test_a_chain_goes_on_from_a_long_name(world, serve, restarts):
    world.model.reply = lambda asked: whole("Noted!", id="resp_" + f"{len(world.model.asked)}".rjust(300, "0"))
    client = world.client(conversation=None)
    first = client.responses.create(model="m-1", input="Hello.")
    client = serve(world.memory).client(conversation=None) if restarts else client
    client.responses.create(model="m-1", input="And now?", previous_response_id=first.id)
    client.responses.create(model="m-1", input="Elsewhere.", previous_response_id="resp_" + "9" * 300)

    assert sorted(len(world.stored(conversation=name)) for name in world.memory.user("ana").conversations()) == [2, 4]


def test_a_chain_goes_on_from_an_answer_without_text(world):
    silent = {**response(None), "usage": None}
    world.model.reply = lambda asked: Reply([json.dumps(silent).encode()])
    client = world.client(conversation=None)
    first = client.responses.create(model="m-1", input="Hello.")
    world.model.reply = lambda asked: whole("Noted!", number=2)
    client.responses.create(model="m-1", input="And now?", previous_response_id=first.id)

    (name,) = world.memory.user("ana").conversations()
    assert [text for _, text in world.stored(conversation=name)] == ["Hello.", "And now?", "Noted!"]


def test_memory_that_results_of_tools_held_back_is_shown_with_the_next_words(world):
    world.memory.user("ana").remember("I keep bees.")
    call = {"call_id": "t1", "name": "find", "arguments": "{}"}
    world.model.reply = lambda asked: whole(None, call, number=len(world.model.asked))
    client = world.client(conversation=None)
    first = client.responses.create(model="m-1", input="Find it.", tools=TOOLS)
    world.memory.user("ana").remember("I plant leeks.")
    world.model.reply = lambda asked: whole("Found.", number=len(world.model.asked))
    result = {"type": "function_call_output", "call_id": "t1", "output": "found"}
    second = client.responses.create(model="m-1", input=[result], previous_response_id=first.id)
    third = client.responses.create(model="m-1", input="And now?", previous_response_id=second.id)
    client.responses.create(model="m-1", input="And then?", previous_response_id=third.id)

    leeks = [any("leeks" in text for text in shown(asked)) for asked in world.model.asked]
    assert leeks == [False, False, True, False]


def test_memory_that_was_not_shown_does_not_count_as_shown():
    turn = ProxiedChat("degraded", shown="new", had="old")
    assert turn.held == "old"
    turn.state, turn.known = "on", True
    assert turn.held == "new"


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("status", ["failed", "cancelled", "in_progress"])
def test_an_answer_that_failed_is_stored_as_incomplete(world, streams, status):
    broken = response("Not", status=status)
    last = b"response.failed" if status == "failed" else b"response.completed"
    reply = events(broken, "Not") if streams else whole("Not", status=status)
    parts = [part.replace(b"response.completed", last) for part in reply.parts]
    world.model.reply = lambda asked: Reply(parts, kind=reply.kind)
    answer = world.client().responses.create(model="m-1", input="Hello.", stream=streams)
    assert not streams or list(answer)

    (_, said) = world.memory.conversation("c", user="ana").load()
    assert (said.content, said.meta.get("incomplete")) == ("Not", True)


def test_a_conversation_of_the_models_server_names_the_memorys(world):
    client = world.client(conversation=None)
    for text in ("I live in Porto.", "I plant beans."):
        client.responses.create(model="m-1", input=text, conversation="conv_1")

    assert len(world.stored(conversation="conv_1")) == 4


def test_a_client_that_leaves_stops_the_model_and_what_it_heard_is_kept(world):
    words = [f"w{number} " for number in range(400)]
    world.model.reply = lambda asked: events(response("".join(words)), *words, wait_s=0.02)
    heard = ""
    with world.client().responses.create(model="m-1", input="Talk.", stream=True) as stream:
        for event in stream:
            heard += event.delta if event.type == "response.output_text.delta" else ""
            if heard.count("w") > 3:
                break

    assert world.model.gone.wait(10)
    (_, answer) = world.stored_soon(2)[1]
    assert answer.startswith(heard[:6])
    until = time.monotonic() + 5
    while len(world.memory.conversation("c", user="ana").load()) < 2 and time.monotonic() < until:
        time.sleep(0.01)
    assert world.memory.conversation("c", user="ana").load()[-1].meta["incomplete"] is True


def test_errors_of_the_model_and_our_own_are_openais(world):
    error = {"error": {"message": "no such model", "type": "invalid_request_error", "param": None, "code": "x"}}
    world.model.reply = lambda asked: Reply([json.dumps(error).encode()], status=404)
    with pytest.raises(openai.NotFoundError) as raised:
        world.client().responses.create(model="m-9", input="Hi.")
    assert raised.value.body["message"] == "no such model"

    with pytest.raises(openai.AuthenticationError) as refused:
        world.with_key("hf_wrong").responses.create(model="m-1", input="Hi.")
    assert refused.value.body["code"] == "no-key"
    assert "key" in refused.value.body["message"]


def test_a_title_asked_for_as_a_response_leaves_no_trace(world):
    answer = world.client().responses.with_raw_response.create(
        model="m-1",
        instructions="Generate a concise title for the conversation. Respond only with the title, without quotes.",
        input="user: I live in Porto.\nassistant: Noted!",
    )

    assert answer.headers["x-memory"] == "off; reason=auxiliary; task=title"
    assert world.stored() == []


def test_a_response_that_the_models_server_keeps_is_read_with_a_key_of_a_program(world):
    client = world.client()
    client.responses.retrieve("resp_7")
    client.responses.delete("resp_7")
    assert [asked.path for asked in world.model.asked] == ["/v1/responses/resp_7", "/v1/responses/resp_7"]

    own = world.with_key(world.key("user", user="ana"))
    with pytest.raises(openai.PermissionDeniedError):
        own.responses.retrieve("resp_7")
    for name in ("..%2fmodels", "%2e%2e"):
        with pytest.raises(openai.NotFoundError):
            client.get(f"/responses/{name}", cast_to=object)
    assert len(world.model.asked) == 2
