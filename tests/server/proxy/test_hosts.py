"""Chat programs that name their users and conversations in headers of their own."""

from __future__ import annotations

import pytest

from .test_clients import ask
from .test_memory import raw, said, user
from .upstream import plain


@pytest.mark.parametrize(
    ("headers", "who", "conversation"),
    [
        ({"X-OpenWebUI-User-Id": "u-1", "X-OpenWebUI-Chat-Id": "chat-9"}, "u-1", "chat-9"),
        ({"X-OpenWebUI-User-Email": "ana@example.com", "X-OpenWebUI-Chat-Id": "chat-9"}, "ana@example.com", "chat-9"),
        ({"X-OpenWebUI-User-Name": "J%C3%BCrgen", "X-OpenWebUI-User-Id": "u%2F1"}, "u/1", None),
        ({"X-LiteLLM-End-User-Id": "e-1", "X-LiteLLM-Session-Id": "s-1"}, "e-1", "s-1"),
        ({"X-LiteLLM-Customer-Id": "c-1", "X-LiteLLM-End-User-Id": "e-1"}, "c-1", None),
        ({"X-Memory-User": "ana", "X-OpenWebUI-User-Id": "u-1", "X-OpenWebUI-Chat-Id": "chat-9"}, "ana", "chat-9"),
        ({"X-Memory-Conversation": "c", "X-OpenWebUI-User-Id": "u-1", "X-OpenWebUI-Chat-Id": "chat-9"}, "u-1", "c"),
    ],
)
def test_the_headers_of_hosts_name_users_and_conversations(world, headers, who, conversation):
    answer = raw(world.with_key(world.key(), **headers))

    assert answer.headers["x-memory"].startswith("on")
    name = answer.headers["x-memory-conversation"]
    assert conversation in (None, name)
    assert len(world.stored(who, name)) == 2


def test_a_users_own_key_is_that_user_whatever_a_host_says(world):
    raw(world.with_key(world.key("user", user="ana"), **{"X-OpenWebUI-User-Id": "bo"}))

    assert [name for _, name, _ in world.memory.admin.users()] == ["ana"]


@pytest.mark.parametrize("name", ["X-Memory-User", "X-OpenWebUI-User-Id"])
def test_a_placeholder_that_was_not_filled_in_is_nobody(world, name):
    """Else everybody would be one user."""
    answer = raw(world.with_key(world.key(), **{name: "{{LIBRECHAT_USER_ID}}"}))

    assert answer.headers["x-memory"] == "off; reason=no-user"
    assert list(world.memory.admin.users()) == []


def test_an_edited_first_message_in_open_webui_takes_the_place_of_the_old_one(world):
    client = world.with_key(world.key(), **{"X-OpenWebUI-User-Id": "ana", "X-OpenWebUI-Chat-Id": "c"})
    ask(client, [user("My name is Ana.")])
    world.model.reply = lambda asked: plain("Hi Eva!")
    ask(client, [user("My name is Eva.")])
    ask(client, [user("My name is Eva."), said("Hi Eva!"), user("Bye.")])

    assert [text for _, text in world.stored()] == ["My name is Eva.", "Hi Eva!", "Bye.", "Hi Eva!"]
