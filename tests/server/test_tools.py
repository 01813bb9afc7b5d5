"""The tools of the Model Context Protocol, called by the official client, in memory and over HTTP and a pipe."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import mcp
import pytest
import uvicorn
from mcp import StdioServerParameters

from holdfast.server.app import create_app
from holdfast.server.gate import ServerSettings
from holdfast.server.mcp import MemoryOwner, tools

NAMES = [
    "add_memory",
    "delete_memory",
    "get_context",
    "get_story",
    "list_memories",
    "memory_history",
    "search_memory",
    "update_memory",
]


def using(server: Any, work: Callable[[mcp.Client], Awaitable[Any]]) -> Any:
    """What *work* returns, with a client of *server*."""

    async def run() -> Any:
        async with mcp.Client(server) as client:
            return await work(client)

    return asyncio.run(run())


@pytest.fixture
def ana(memory):
    memory.conversation("main", user="ana").record("I live in Porto and I'm vegetarian.", "Noted!")
    memory.conversation("main", user="bob").record("I live in Oslo.", "Noted!")
    return tools(memory, lambda _context: MemoryOwner("ana"))


def test_eight_tools_say_what_they_do(ana):
    found = using(ana, lambda client: client.list_tools()).tools
    assert sorted(tool.name for tool in found) == NAMES
    for tool in found:
        assert tool.annotations.read_only_hint is not None, tool.name
        assert tool.output_schema, tool.name
        assert len(tool.description) > 40, tool.name
    assert [tool.name for tool in found if tool.annotations.destructive_hint] == ["delete_memory"]


def test_what_is_noted_is_found_replaced_and_erased(ana):
    async def work(client):
        noted = (await client.call_tool("add_memory", {"text": "I eat fish now."})).structured_content
        listed = (await client.call_tool("list_memories", {"category": "dietary"})).structured_content["result"]
        told = (await client.call_tool("memory_history", {"category": "dietary"})).structured_content["result"]
        fixed = await client.call_tool("update_memory", {"memory_id": noted["memory"]["id"], "value": "true"})
        gone = (await client.call_tool("delete_memory", {"memory_id": listed[0]["id"]})).structured_content
        left = (await client.call_tool("list_memories", {})).structured_content["result"]
        return noted, listed, told, fixed, gone, left

    noted, listed, told, fixed, gone, left = using(ana, work)
    assert (noted["op"], noted["previous"]["key"]) == ("replaced", "vegetarian")
    assert [(item["key"], item["quotes"]) for item in listed] == [("pescatarian", ["I eat fish"])]
    assert {item["key"] for item in told} == {"vegetarian", "pescatarian"}
    assert not fixed.is_error
    assert gone["level"] == "E2"
    assert "pescatarian" not in {item["key"] for item in left}


def test_a_mistake_is_told_in_words_that_help(ana):
    answer = using(ana, lambda client: client.call_tool("delete_memory", {"memory_id": "none"}))
    assert answer.is_error
    assert "list_memories" in answer.content[0].text
    empty = using(ana, lambda client: client.call_tool("search_memory", {"query": " "}))
    assert empty.is_error


def test_resources_and_prompts_are_there_for_one_user(ana):
    async def work(client):
        profile = await client.read_resource("memory://users/ana/profile")
        with pytest.raises(mcp.MCPError):
            await client.read_resource("memory://users/bob/profile")
        prompts = await client.list_prompts()
        recall = await client.get_prompt("recall", {"topic": "Porto"})
        return profile.contents[0].text, [prompt.name for prompt in prompts.prompts], recall.messages[0].content.text

    profile, prompts, recall = using(ana, work)
    assert "Porto" in profile
    assert "Oslo" not in profile
    assert prompts == ["recall", "what_do_you_know"]
    assert "Porto" in recall


def test_whose_memory_it_is_comes_from_the_key_over_http(memory, ana, unused_port):
    """A user's key opens that user; an app names the user in a header; neither can be steered by arguments."""
    settings = ServerSettings(port=unused_port)
    keys = {
        "user": memory.admin.keys.create("user", user="ana").key,
        "app": memory.admin.keys.create("app").key,
    }

    async def found(role: str | None, **headers: str) -> list[str] | str:
        if role:
            headers["Authorization"] = f"Bearer {keys[role]}"
        async with httpx.AsyncClient(headers=headers) as http:
            transport = mcp.client.streamable_http.streamable_http_client(
                f"http://127.0.0.1:{unused_port}/mcp", http_client=http
            )
            async with mcp.Client(transport) as client:
                answer = await client.call_tool("list_memories", {"user": "bob", "user_id": "bob"})
                if answer.is_error:
                    return str(answer.content[0].text)
                return [item["value"] for item in answer.structured_content["result"]]

    async def run() -> list[Any]:
        server = uvicorn.Server(uvicorn.Config(create_app(memory, settings), port=unused_port, log_level="warning"))
        task = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.02)
        try:
            mine = await found("user")
            theirs = await found("app", **{"X-Holdfast-User": "bob"})
            nobodys = await found("app")
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{unused_port}") as http:
                bearer = {"Authorization": f"Bearer {keys['user']}", "X-Holdfast-User": "bob"}
                assert (await http.post("/mcp", json={}, headers=bearer)).status_code == 403
                assert (await http.post("/mcp", json={})).status_code == 401
                assert (await http.post("/mcp", json={}, headers={"Origin": "http://evil.test"})).status_code == 403
            return [mine, theirs, nobodys]
        finally:
            server.should_exit = True
            await task

    mine, theirs, nobodys = asyncio.run(run())
    assert "Porto" in mine
    assert theirs == ["Oslo"]
    assert "X-Holdfast-User" in nobodys


def test_the_command_speaks_over_a_pipe(tmp_path):
    store = str(tmp_path / "chat.db")
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "holdfast", "mcp", "--store", store, "--user", "ana"], env=dict(os.environ)
    )

    async def work(client):
        await client.call_tool("add_memory", {"text": "I live in Porto."})
        return (await client.call_tool("list_memories", {})).structured_content["result"]

    assert [item["value"] for item in using(command, work)] == ["Porto"]


def test_a_resource_that_does_not_exist_is_refused_without_a_traceback_in_the_log(ana, capsys, caplog):
    async def work(client):
        with pytest.raises(mcp.MCPError) as caught:
            await client.read_resource("memory://facts/none")
        return caught.value

    assert "none" in str(using(ana, work))
    assert "Traceback" not in capsys.readouterr().err + caplog.text


def test_a_fact_that_is_found_has_the_address_that_its_history_needs(ana):
    async def work(client):
        found = (await client.call_tool("search_memory", {"query": "Where do I live?"})).structured_content["result"]
        fact = next(item for item in found if item["kind"] == "fact" and item["value"] == "Porto")
        address = {"category": fact["category"], "key": fact["key"]}
        return (await client.call_tool("memory_history", address)).structured_content["result"]

    assert [item["value"] for item in using(ana, work)] == ["Porto"]


def test_every_argument_of_a_tool_is_described(ana):
    for tool in using(ana, lambda client: client.list_tools()).tools:
        for name, schema in tool.input_schema["properties"].items():
            assert len(schema["description"]) > 15, (tool.name, name)


def test_the_story_of_a_subject_is_told_to_its_user_alone(memory):
    """Of any subject of the user, by name; a key of one subject hears of no other."""
    for month, subject, news in (
        ("may", "luna", "limps on the left leg after the walk to the harbour"),
        ("june", "luna", "limps less since the rest"),
        ("july", "luna", "runs in the park of Lindau again"),
    ):
        chat = memory.conversation(month, user="ana", subject=subject)
        chat.record(f"Luna {news}.", "Noted.")
        chat.end()
    memory.digest()

    def told(subject, owner):
        server = tools(memory, lambda _context: owner)
        answer = using(server, lambda client: client.call_tool("get_story", {"subject": subject}))
        return answer.structured_content["result"]

    assert "Lindau" in told("Luna", MemoryOwner("ana"))
    assert told(None, MemoryOwner("ana")) == ""
    assert told("Luna", MemoryOwner("bob")) == ""
    assert told("luna", MemoryOwner("ana", subject="max")) == ""
