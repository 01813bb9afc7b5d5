"""Clients that read no further than the last words, and streams that end with an error: what was delivered is stored."""

from __future__ import annotations

import time
from contextlib import nullcontext

import anthropic
import openai
import pytest

from .test_memory import said, user
from .upstream import DONE, STREAM, Reply, answer, event, named_events

RUNS = 8


def closed_at(world, kind, name, text, *, last, wait_s=0.002):
    """Ask as a user called *name*, and close the connection at the event called *last*; return what was heard and the id."""
    world.model.reply = lambda asked: answer(asked, "Well, ", "noted", "!", wait_s=wait_s)
    heard, response = "", ""
    if kind == "messages":
        client = anthropic.Anthropic(base_url=world.url[:-3], api_key=world.key(), max_retries=0)
        sent = {"model": "m-1", "max_tokens": 9, "stream": True, "messages": [user(text)]}
        with client, client.messages.create(**sent, extra_headers={"X-Memory-User": name}) as stream:
            for one in stream:
                heard += one.delta.text if one.type == "content_block_delta" else ""
                if one.type == last:
                    break
    elif kind == "responses":
        with world.client(name, None).responses.create(model="m-1", input=text, stream=True) as stream:
            for one in stream:
                heard += one.delta if one.type == "response.output_text.delta" else ""
                response = one.response.id if one.type == "response.created" else response
                if one.type == last:
                    break
    else:
        sent = {"model": "m-1", "messages": [user(text)], "stream": True}
        with world.client(name, None).chat.completions.create(**sent) as stream:
            for one in stream:
                heard += one.choices[0].delta.content or ""
                if one.choices[0].finish_reason:
                    break
    return heard, response


def go_on(world, kind, name, text, heard, response):
    """Send the next message at once, with the whole history or the id of the response."""
    world.model.reply = lambda asked: answer(asked, "And noted!")
    if kind == "messages":
        client = anthropic.Anthropic(base_url=world.url[:-3], api_key=world.key(), max_retries=0)
        shown = [user(text), said(heard), user("I like jazz.")]
        with client:
            client.messages.create(model="m-1", max_tokens=9, messages=shown, extra_headers={"X-Memory-User": name})
    elif kind == "responses":
        world.client(name, None).responses.create(model="m-1", input="I like jazz.", previous_response_id=response)
    else:
        shown = [user(text), said(heard), user("I like jazz.")]
        world.client(name, None).chat.completions.create(model="m-1", messages=shown)


@pytest.mark.parametrize(
    ("kind", "last"),
    [
        ("chat", "finish_reason"),
        ("messages", "message_delta"),
        ("messages", "message_stop"),
        ("responses", "response.output_text.done"),
        ("responses", "response.completed"),
    ],
)
def test_an_answer_is_stored_when_its_client_leaves_at_the_last_words(world, kind, last):
    """However close together the end, the client's leaving, and its next request are."""
    for number in range(RUNS):
        name = f"u{number}"
        heard, response = closed_at(world, kind, name, "I play golf.", last=last, wait_s=0.001 * (number % 3))
        go_on(world, kind, name, "I play golf.", heard, response)

        (chat,) = world.memory.user(name).conversations()
        stored = world.memory.conversation(chat, user=name).load()
        assert [message.content for message in stored] == [
            "I play golf.",
            "Well, noted!",
            "I like jazz.",
            "And noted!",
        ], name
        assert last.endswith("text.done") or not stored[1].meta.get("incomplete"), name


def failing(kind):
    """A stream that says something, and then that it failed."""
    if kind == "chat":
        error = b'data: {"error": {"message": "overloaded", "type": "server_error"}}\n\n'
        return [event({"content": "Half "}), event({"content": "of it"}), error, DONE]
    if kind == "responses":
        error = {"type": "error", "code": "server_error", "message": "overloaded", "param": None, "sequence_number": 9}
        place = {"item_id": "msg_1", "output_index": 0, "content_index": 0, "logprobs": [], "sequence_number": 1}
        deltas = [{"type": "response.output_text.delta", "delta": word, **place} for word in ("Half ", "of it")]
        return named_events(*deltas, error)
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    deltas = [{"type": "text_delta", "text": word} for word in ("Half ", "of it")]
    return named_events(*({"type": "content_block_delta", "index": 0, "delta": one} for one in deltas), error)


@pytest.mark.parametrize("kind", ["chat", "messages", "responses"])
def test_what_came_before_an_error_in_a_stream_is_stored(world, kind):
    """Most clients raise at the error, and close the connection."""
    world.model.reply = lambda asked: Reply(failing(kind), kind=STREAM, wait_s=0.001)
    for number in range(RUNS):
        name = f"u{number}"
        with nullcontext() if kind == "responses" else pytest.raises((openai.APIError, anthropic.APIError)):
            if kind == "messages":
                client = anthropic.Anthropic(base_url=world.url[:-3], api_key=world.key(), max_retries=0)
                sent = {"model": "m-1", "max_tokens": 9, "stream": True, "messages": [user("Talk.")]}
                with client, client.messages.create(**sent, extra_headers={"X-Memory-User": name}) as stream:
                    list(stream)
            elif kind == "responses":
                list(world.client(name, "c").responses.create(model="m-1", input="Talk.", stream=True))
            else:
                list(
                    world.client(name, "c").chat.completions.create(model="m-1", messages=[user("Talk.")], stream=True)
                )
        until = time.monotonic() + 5
        while not (chats := world.memory.user(name).conversations()) and time.monotonic() < until:
            time.sleep(0.01)
        stored = world.memory.conversation(chats[0], user=name).load()
        if len(stored) < 2:
            time.sleep(0.5)
            stored = world.memory.conversation(chats[0], user=name).load()
        assert [(m.content, m.meta.get("incomplete")) for m in stored] == [("Talk.", None), ("Half of it", True)], name
