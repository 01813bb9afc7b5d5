"""Nobody's model reads what it keeps for another user: responses, conversations, and items are named by their own users alone."""

from __future__ import annotations

import json

import httpx
import openai
import pytest

from holdfast.errors import StoreBusy
from holdfast.server.proxy.reply import Owners

from .upstream import NUMBERS, Reply, answer, response

FORMS = ["response", "conversation", "conversation object", "item", "item without a type", "thoughts"]


def reply(asked):
    """Answer with a response of its own id, with thoughts in it, as a document or a stream."""
    if asked.body.get("stream"):
        return answer(asked, "Noted", "!")
    number = next(NUMBERS)
    made = response("Noted!", number=number)
    made["output"] = [{"type": "reasoning", "id": f"rs_{number}", "summary": []}, *made["output"]]
    return Reply([json.dumps(made).encode()])


@pytest.fixture(autouse=True)
def answers(world):
    world.model.reply = reply


def going_on(form, first):
    """The fields of a request that goes on from *first*, which was made in the conversation ``conv_ana``."""
    number = first.id.removeprefix("resp_")
    hello = {"role": "user", "content": "What did I say?"}
    item = {"item": "item_reference", "item without a type": None}.get(form)
    return {
        "response": {"input": "What did I say?", "previous_response_id": first.id},
        "conversation": {"input": "What did I say?", "conversation": "conv_ana"},
        "conversation object": {"input": "What did I say?", "conversation": {"id": "conv_ana"}},
        "thoughts": {"input": [{"type": "reasoning", "id": f"rs_{number}", "summary": []}, hello]},
    }.get(form, {"input": [{"type": item, "id": f"msg_{number}"}, hello]})


def begun(world, user="ana", **more):
    """A response for *user*, made with a program's key."""
    return world.client(user, None).responses.create(model="m-1", input="My secret is plums.", **more)


def own(world, user, **headers):
    return world.with_key(world.key("user", user=user), **headers)


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_a_users_key_goes_on_from_what_is_the_users_own_alone(world, serve, form, restarts):
    first = begun(world, conversation="conv_ana")
    if restarts:
        world = serve(world.memory)

    with pytest.raises(openai.PermissionDeniedError) as refused:
        own(world, "bo").responses.create(model="m-1", **going_on(form, first))
    assert refused.value.body["code"] == "unknown-reference"
    assert "send the earlier messages themselves" in refused.value.body["message"]
    assert len(world.model.asked) == 1
    assert world.memory.user("bo").conversations() == []

    own(world, "ana").responses.create(model="m-1", **going_on(form, first))
    assert len(world.model.asked) == 2


@pytest.mark.parametrize("form", FORMS)
def test_a_programs_key_goes_on_from_nothing_that_is_anothers(world, form):
    first = begun(world, conversation="conv_ana")

    with pytest.raises(openai.PermissionDeniedError):
        world.client("bo", None).responses.create(model="m-1", **going_on(form, first))
    world.client("ana", None).responses.create(model="m-1", **going_on(form, first))
    world.client("bo", None).responses.create(model="m-1", input="Hi.", previous_response_id="resp_unknown")
    world.client("bo", None, X_Memory="off").responses.create(model="m-1", **going_on(form, first))
    assert len(world.model.asked) == 4


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("headers", [{}, {"X-Memory-Store": "off"}, {"X-Memory": "off"}])
def test_a_chain_of_a_users_own_goes_on_with_and_without_memory(world, streams, headers):
    client = own(world, "bo", **headers)
    first = client.responses.create(model="m-1", input="Hi.", stream=streams)
    name = list(first)[-1].response.id if streams else first.id
    client.responses.create(model="m-1", input="And now?", previous_response_id=name)

    assert world.model.asked[-1].body["previous_response_id"] == name


def test_a_conversation_with_a_name_like_that_of_another_user_proves_nothing(world):
    """A user may give a conversation of the memory any name."""
    begun(world, conversation="conv_ana")
    client = own(world, "bo")
    client.responses.create(model="m-1", input="Hi.", extra_headers={"X-Memory-Conversation": "conv_ana"})

    for _ in range(2):
        with pytest.raises(openai.PermissionDeniedError):
            client.responses.create(model="m-1", input="And now?", conversation="conv_ana")


@pytest.mark.parametrize(
    "body",
    [
        b'{"model":"m-1","previous_response_id":"%s"}',
        b'{"model":"m-1","input":[],"previous_response_id":"%s"}',
        b'{"model":"m-1","input":"Hi.","previous_response_id":"%s","previous_response_id":null}',
        b'{"model":"m-1","input":"Hi.","Previous_Response_ID":"%s"}',
        b'{"model":"m-1","input":"Hi.","previous\\u005fresponse_id":"%s"}',
        b'{"model":"m-1","input":"Hi.","previous_response_id":"%s"} and more',
    ],
)
def test_no_form_of_a_request_gets_around_it(world, body):
    first = begun(world)
    headers = {"Authorization": f"Bearer {world.key('user', user='bo')}"}
    answer = httpx.post(f"{world.url}/responses", content=body.replace(b"%s", first.id.encode()), headers=headers)

    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "unknown-reference")
    assert len(world.model.asked) == 1


def test_what_the_store_cannot_say_is_refused_with_a_users_key(world, monkeypatch):
    def busy(*args):
        raise StoreBusy("the store is busy", hint="try again")

    monkeypatch.setattr(Owners, "_stored", busy)
    with pytest.raises(openai.InternalServerError) as raised:
        own(world, "bo").responses.create(model="m-1", input="Hi.", previous_response_id="resp_1")
    assert (raised.value.status_code, raised.value.body["code"]) == (503, "store-busy")
    assert world.model.asked == []
