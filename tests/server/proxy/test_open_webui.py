"""The filter function of Open WebUI, called as Open WebUI calls it, with a served memory behind it."""

from __future__ import annotations

import asyncio
import runpy
from pathlib import Path

import pytest

from holdfast import Memory
from holdfast.server.gate import ServerSettings
from holdfast.testing.model import unreachable_url

from .conftest import served

FILE = Path(__file__).parents[3] / "deploy/open-webui/holdfast_filter.py"
ANA = {"id": "u-1", "name": "Ana", "valves": {"remember": True}}


@pytest.fixture
def memory():
    with Memory(embedder=None) as opened:
        yield opened


@pytest.fixture
def filtered(memory):
    with served(memory, ServerSettings()) as address:
        made = runpy.run_path(str(FILE))["Filter"]()
        made.valves.url, made.valves.key = address.removesuffix("/v1"), memory.admin.keys.create("app").key
        yield made


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def chat(made, text: str, answer: str, chat_id: str, ident: str = "m-1", who=ANA, **more):
    """One exchange: the request that the model gets, after which Open WebUI shows the answer."""
    about = {"chat_id": chat_id, **more}
    body = {"model": "m", "messages": [{"role": "system", "content": "You are Bo."}, user(text)]}
    sent = asyncio.run(made.inlet(body, __user__=who, __metadata__=about))
    done = {"messages": [user(text), {"role": "assistant", "content": answer, "id": ident}], "chat_id": chat_id}
    asyncio.run(made.outlet(done, __user__=who, __metadata__=about))
    return sent["messages"]


def test_what_was_said_in_one_chat_is_known_in_the_next(memory, filtered):
    chat(filtered, "I live in Porto.", "Noted!", "one")
    sent = chat(filtered, "Where do I live?", "In Porto.", "two", "m-2")

    assert sent[0] == {"role": "system", "content": "You are Bo."}
    assert sent[-1] == user("Where do I live?")
    assert any("Porto" in str(message["content"]) for message in sent[1:-1])
    assert [m.content for m in memory.conversation("two", user="u-1").load()] == ["Where do I live?", "In Porto."]


def test_an_answer_that_is_shown_twice_is_stored_once(memory, filtered):
    for _ in range(2):
        chat(filtered, "I live in Porto.", "Noted!", "one")

    assert len(memory.conversation("one", user="u-1").load()) == 2


@pytest.mark.parametrize("more", [{"task": "title_generation"}, {"who": {**ANA, "valves": {"remember": False}}}])
def test_titles_and_users_who_do_not_want_it_leave_no_trace(memory, filtered, more):
    assert len(chat(filtered, "I live in Porto.", "Noted!", "one", **more)) == 2
    assert list(memory.admin.users()) == []


def test_a_chat_goes_on_without_a_server(filtered):
    filtered.valves.url = unreachable_url().removesuffix("/v1")
    assert len(chat(filtered, "I live in Porto.", "Noted!", "one")) == 2
