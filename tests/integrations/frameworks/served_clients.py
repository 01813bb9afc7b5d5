"""What every client keeps that is given the address of a served memory and nothing else: subclass `ServedClient`."""

from __future__ import annotations

import pytest

from tests.server.proxy.conftest import model, serve, world
from tests.server.proxy.upstream import Reply, answer

__all__ = ["CALL", "HEADERS", "ServedClient", "model", "serve", "weather", "world"]

HEADERS = {"X-Memory-User": "ana", "X-Memory-Conversation": "c"}
CALL = {"name": "weather", "arguments": '{"city":"Porto"}'}
NO = b'{"type":"error","error":{"message":"No.","type":"invalid_request_error","param":null,"code":"c-1"}}'


def weather(city: str) -> str:
    """Return the weather of a city."""
    return f"sunny in {city}"


class ServedClient:
    """The scenarios; a subclass says how its program does them.  ``url`` ends in /v1."""

    def plain(self, url, key, text):
        """Return the reply to a text."""
        raise NotImplementedError

    def stream(self, url, key, text, stop_after=None):
        """Return the words of the reply; leave after so many."""
        raise NotImplementedError

    def tools(self, url, key, text):
        """Return the last reply of an agent that has `weather`."""
        raise NotImplementedError

    def turns(self, url, key, *texts):
        """Return the replies of one conversation whose history the program keeps."""
        raise NotImplementedError

    def status(self, error):
        """Return the status that the program's error tells."""
        return error.status_code

    def test_a_plain_answer_is_stored_once(self, world):
        world.model.reply = lambda asked: answer(asked, "Noted!")

        assert self.plain(world.url, world.key(), "I live in Porto.") == "Noted!"
        assert world.stored() == [("user", "I live in Porto."), ("assistant", "Noted!")]
        assert [fact.value for fact in world.memory.user("ana").facts()] == ["Porto"]

    def test_a_stream_is_stored_once(self, world):
        world.model.reply = lambda asked: answer(asked, "No", "ted", "!")

        assert "".join(self.stream(world.url, world.key(), "I live in Porto.")) == "Noted!"
        world.stored_soon(2)  # a program may stop reading at the last word
        assert world.stored() == [("user", "I live in Porto."), ("assistant", "Noted!")]
        assert "incomplete" not in world.memory.conversation("c", user="ana").load()[1].meta

    def test_a_call_of_a_tool_and_its_result_are_stored_once(self, world):
        def reply(asked):
            return answer(asked, "Sunny.") if len(world.model.asked) > 1 else answer(asked, call=CALL)

        world.model.reply = reply

        assert self.tools(world.url, world.key(), "How is the weather in Porto?") == "Sunny."
        assert len(world.model.asked) == 2
        stored = world.memory.conversation("c", user="ana").load()
        assert [message.role for message in stored] == ["user", "assistant", "tool", "assistant"]
        assert [call["id"] for call in stored[1].meta["tool_calls"]] == ["t1"]
        assert ("sunny in Porto" in stored[2].content, stored[2].meta["tool_call_id"]) == (True, "t1")
        assert stored[3].content == "Sunny."

    def test_turns_of_a_program_that_keeps_the_history_are_stored_once(self, world):
        world.model.reply = lambda asked: answer(asked, f"Answer {len(world.model.asked)}.")

        told = self.turns(world.url, world.key(), "I live in Porto.", "Where do I live?", "And tomorrow?")

        assert told == ["Answer 1.", "Answer 2.", "Answer 3."]
        assert [text for _, text in world.stored()] == [
            "I live in Porto.",
            "Answer 1.",
            "Where do I live?",
            "Answer 2.",
            "And tomorrow?",
            "Answer 3.",
        ]

    def test_a_program_that_stops_listening_stops_the_model_and_keeps_what_it_heard(self, world):
        world.model.reply = lambda asked: answer(asked, *["word "] * 200, wait_s=0.02)

        heard = self.stream(world.url, world.key(), "I live in Porto.", stop_after=5)

        assert "".join(heard).count("word") >= 4
        assert world.model.gone.wait(10)
        assert len(world.model.sent) < 150
        role, text = world.stored_soon(2)[1]
        assert (role, text.count("word") >= 4) == ("assistant", True)
        assert world.memory.conversation("c", user="ana").load()[1].meta["incomplete"] is True

    @pytest.mark.parametrize("status", [400, 401, 429, 500])
    def test_an_error_of_the_model_comes_back_and_the_question_is_stored_once(self, world, status):
        world.model.reply = lambda asked: Reply([NO], status=status, headers={"retry-after-ms": "1"})

        with pytest.raises(Exception) as told:  # noqa: PT011
            self.plain(world.url, world.key(), "I live in Porto.")

        assert self.status(told.value) == status
        assert world.stored() == [("user", "I live in Porto.")]

    def test_a_wrong_key_is_told_as_one(self, world):
        with pytest.raises(Exception) as told:  # noqa: PT011
            self.plain(world.url, "hf_wrong", "I live in Porto.")

        assert self.status(told.value) == 401
        assert not world.model.asked
