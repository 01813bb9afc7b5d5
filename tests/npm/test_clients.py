"""The unmodified npm clients, `openai` and the AI SDK, against the proxy: chat completions and responses."""

from __future__ import annotations

import pytest

from tests.server.proxy.upstream import Reply, answer

CLIENTS = [(script, api) for script in ("openai.mjs", "ai-sdk.mjs") for api in ("chat", "responses")]
CALL = {"name": "weather", "arguments": '{"city":"Porto"}'}


@pytest.fixture(params=CLIENTS, ids=" ".join)
def play(request, node, world):
    """``play(scenario)``: run it with this client."""
    script, api = request.param
    address = world.url.removesuffix("/v1")
    return lambda scenario: node(script, api, scenario, HOLDFAST_URL=address, HOLDFAST_KEY=world.key())


def test_a_plain_answer_is_stored_once(play, world):
    world.model.reply = lambda asked: answer(asked, "Noted!")

    assert play("plain") == {"text": "Noted!"}
    assert world.stored() == [("user", "I live in Porto."), ("assistant", "Noted!")]
    assert [fact.value for fact in world.memory.user("ana").facts()] == ["Porto"]


def test_a_stream_is_stored_once(play, world):
    world.model.reply = lambda asked: answer(asked, "No", "ted", "!")

    assert play("stream") == {"words": ["No", "ted", "!"]}
    assert world.stored() == [("user", "I live in Porto."), ("assistant", "Noted!")]


def test_a_call_of_a_tool_and_its_result_are_stored_once(play, world):
    def reply(asked):
        return answer(asked, "Sunny.") if len(world.model.asked) > 1 else answer(asked, call=CALL)

    world.model.reply = reply

    assert play("tools") == {"text": "Sunny."}
    assert len(world.model.asked) == 2
    stored = world.memory.conversation("c", user="ana").load()
    assert [message.role for message in stored] == ["user", "assistant", "tool", "assistant"]
    assert [call["id"] for call in stored[1].meta["tool_calls"]] == ["t1"]
    assert (stored[2].content, stored[2].meta["tool_call_id"]) == ("sunny in Porto", "t1")
    assert stored[3].content == "Sunny."


def test_two_turns_of_a_program_that_keeps_the_history_are_stored_once(play, world):
    world.model.reply = lambda asked: answer(asked, "Noted!" if len(world.model.asked) == 1 else "In Porto.")

    assert play("turns") == {"texts": ["Noted!", "In Porto."]}
    assert world.stored() == [
        ("user", "I live in Porto."),
        ("assistant", "Noted!"),
        ("user", "Where do I live?"),
        ("assistant", "In Porto."),
    ]


def test_a_program_that_stops_listening_stops_the_model_and_keeps_what_it_heard(play, world):
    world.model.reply = lambda asked: answer(asked, *["word "] * 200, wait_s=0.02)

    assert play("cancel")["words"][:5] == ["word "] * 5
    assert world.model.gone.wait(5)
    assert len(world.model.sent) < 150
    role, text = world.stored_soon(2)[1]
    assert (role, text.count("word") >= 4) == ("assistant", True)
    assert world.memory.conversation("c", user="ana").load()[1].meta["incomplete"] is True


@pytest.mark.parametrize("status", [400, 401, 429, 500])
def test_an_error_of_the_model_comes_back_as_it_is_and_the_question_is_stored_once(play, world, status):
    body = b'{"error":{"message":"No.","type":"t","param":null,"code":"c-1"}}'
    world.model.reply = lambda asked: Reply([body], status=status)

    told = play("error")

    assert (told["status"], told["code"]) == (status, "c-1")
    assert world.stored() == [("user", "I live in Porto.")]


def test_what_failed_and_is_tried_again_is_stored_once(play, world):
    world.model.reply = lambda asked: (
        Reply([b"{}"], status=500, headers={"retry-after-ms": "1"})
        if len(world.model.asked) < 3
        else answer(asked, "Noted!")
    )

    assert play("retry") == {"text": "Noted!"}
    assert len(world.model.asked) == 3
    assert world.stored() == [("user", "I live in Porto."), ("assistant", "Noted!")]
