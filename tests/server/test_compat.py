"""The requests that mem0's clients and Zep's send (2.2.1 and 4.0.1 as recorded, mem0 1.0 as its source has them), and OpenMemory's tools."""

from __future__ import annotations

import asyncio
import json

import mcp
import pytest

from holdfast.compat import encode
from holdfast.server.gate import ServerSettings
from holdfast.server.mcp import MemoryOwner, openmemory_tools

TOLD = [{"role": "user", "content": "I am a vegetarian."}, {"role": "assistant", "content": "Noted!"}]
ANA = {"filters": {"user_id": "ana"}}
ADDED = {"messages": TOLD, "user_id": "ana", "run_id": "r1"}


def sent(app, method, path, body=None):
    answer = app.request(method, path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.fixture
def app(ask, memory):
    """A client with an app's key in the header that mem0's clients send."""
    client = ask("app")
    client.headers["Authorization"] = client.headers["Authorization"].replace("Bearer", "Token")
    return client


@pytest.mark.parametrize(
    ("add", "search", "page"),
    [
        ("/v3/memories/add/", "/v3/memories/search/", "/v3/memories/?page=1&page_size=50"),
        ("/v1/memories/", "/v2/memories/search/", "/v2/memories/"),
        ("/memories", "/search", "/v3/memories/"),
    ],
)
def test_what_clients_of_mem0_send_is_answered_in_their_shapes(app, add, search, page):
    assert sent(app, "GET", "/v1/ping/")["org_id"] == "default"
    assert [row["event"] for row in sent(app, "POST", add, ADDED)["results"]] == ["ADD"]
    assert sent(app, "POST", add, ADDED) == {"results": []}
    known = sent(app, "POST", search, {"query": "vegetarian", **ANA})["results"][0]["id"]
    assert sent(app, "POST", page, ANA)["count"] == 1
    assert sent(app, "GET", "/v1/memories/?user_id=ana")["results"][0]["id"] == known
    assert sent(app, "PUT", f"/v1/memories/{known}/", {"text": "Eats fish"})["memory"] == "Eats fish"
    assert sent(app, "GET", f"/v1/memories/{known}/")["run_id"] == "r1"
    assert [row["event"] for row in sent(app, "GET", f"/v1/memories/{known}/history/")] == ["ADD", "UPDATE"]
    assert [row["name"] for row in sent(app, "GET", "/v1/entities/")["results"]] == ["ana"]
    assert "1" in sent(app, "DELETE", "/v1/batch/", {"memories": [{"memory_id": known}]})["message"]
    assert app.get(f"/v1/memories/{known}/").status_code == 404
    sent(app, "POST", add, {"messages": TOLD, "user_id": "bo"})
    sent(app, "DELETE", "/v2/entities/user/bo/")
    sent(app, "DELETE", "/v1/memories/?user_id=ana")
    assert sent(app, "POST", page, {"filters": {"OR": [{"user_id": "ana"}, {"user_id": "bo"}]}})["results"] == []


def test_what_clients_of_zep_send_is_answered_in_their_shapes(app):
    app.headers["Authorization"] = app.headers["Authorization"].replace("Token", "Api-Key")
    user = sent(app, "POST", "/api/v4/users", {"user_id": "ana", "first_name": "Ana"})
    own, graph = user["uuid"], f"/api/v4/graphs/{user['graph_uuid']}"
    thread = "/api/v4/threads/" + sent(app, "POST", "/api/v4/threads", {"user_uuid": own})["uuid"]
    added = sent(app, "POST", thread + "/messages", {"messages": TOLD, "return_context": True})

    assert "Is vegetarian." in added["context"]
    assert "Is vegetarian." in sent(app, "GET", thread + "/context")["context"]
    assert len(sent(app, "GET", thread + "/messages?page_size=1")["items"]) == 1
    edge = sent(app, "POST", graph + "/search/edges", {"query": "vegetarian"})["items"][0]
    assert edge["episode_uuids"] == [added["messages"][0]["uuid"]]
    assert sent(app, "GET", f"{graph}/edges/{edge['uuid']}")["fact"] == "Is vegetarian."
    assert sent(app, "POST", graph + "/search/episodes", {"query": "vegetarian"})["items"]
    assert sent(app, "POST", graph + "/search/thread-summaries", {"query": "vegetarian"})["items"] == []
    assert "vegetarian" in sent(app, "POST", graph + "/context", {"query": "food"})["context"]
    assert (
        sent(app, "POST", graph + "/episodes", {"data": "I have a dog.", "type": "text"})["episode"]["source"] == "text"
    )
    assert len(sent(app, "POST", graph + "/episodes/list", {})["items"]) == 3
    assert sent(app, "POST", "/api/v4/users/lookup", {"user_id": "ana"})["uuid"] == own
    assert [row["uuid"] for row in sent(app, "POST", "/api/v4/users/list", {})["items"]] == [own]
    assert sent(app, "GET", "/api/v4/threads?user_uuid=" + own)["total_size"] == 1
    sent(app, "DELETE", f"{graph}/edges/{edge['uuid']}")
    sent(app, "DELETE", thread)
    sent(app, "DELETE", "/api/v4/users/" + own)
    assert app.get("/api/v4/users/" + own).status_code == 404


BAD = [
    ("POST", "/v3/memories/add/", {"messages": TOLD}),
    ("POST", "/v3/memories/add/", {"messages": 3, "user_id": "ana"}),
    ("POST", "/v3/memories/add/", {"messages": TOLD, "user_id": {"a": 1}, "metadata": 3}),
    ("POST", "/v3/memories/add/", {"messages": TOLD, "filters": [1]}),
    ("POST", "/v3/memories/search/", {"query": 3, **ANA}),
    ("POST", "/v3/memories/search/", {"query": "home", "threshold": "x", **ANA}),
    ("POST", "/v3/memories/search/", {"query": "home", "top_k": "x", **ANA}),
    ("POST", "/v3/memories/search/", {"query": "home", "filters": {"user_id": "*"}}),
    ("POST", "/v3/memories/?page=0", ANA),
    ("PUT", "/v1/batch/", {"memories": [3]}),
    ("DELETE", "/v2/entities/owl/ana/", None),
    ("POST", "/api/v4/users", {"user_id": 3}),
    ("POST", f"/api/v4/threads/{encode('ana', 't')}/messages", {"messages": [3]}),
    ("POST", f"/api/v4/threads/{encode('ana', 't')}/messages", {}),
    ("POST", f"/api/v4/graphs/{encode('ana')}/search/edges", {"query": 3}),
    ("POST", f"/api/v4/graphs/{encode('ana')}/context", {"query": 3}),
    ("POST", f"/api/v4/graphs/{encode('ana')}/context", {"query": "x", "max_characters": "x"}),
]


@pytest.mark.parametrize(("method", "path", "body"), BAD)
def test_bad_bodies_are_refused(app, method, path, body):
    assert app.request(method, path, json=body).status_code == 422


def test_an_apps_key_for_one_bot_sees_that_bot_alone(ask):
    desk, shop = ask("app", bot="desk"), ask("app", bot="shop")
    known = sent(desk, "POST", "/v3/memories/add/", ADDED)["results"][0]["id"]

    assert sent(shop, "POST", "/v3/memories/", ANA)["results"] == []
    assert shop.get(f"/v1/memories/{known}/").status_code == 404
    assert sent(shop, "GET", "/v1/entities/")["results"] == []
    assert sent(desk, "GET", f"/v1/memories/{known}/")["user_id"] == "ana"


class TestQuota:
    """Messages count, whatever the shape in which they come."""

    @pytest.fixture
    def settings(self):
        return ServerSettings(messages_per_day=2)

    def test_messages_beyond_the_quota_are_refused(self, app):
        sent(app, "POST", "/v3/memories/add/", ADDED)

        assert app.post("/v3/memories/add/", json=ADDED).status_code == 429


def test_openmemorys_tools_speak_for_one_user(memory):
    async def run():
        found = {}
        for name in ("ana", "bo"):
            server = openmemory_tools(memory, lambda _context, name=name: MemoryOwner(name))
            async with mcp.Client(server) as client:
                tools = sorted(tool.name for tool in (await client.list_tools()).tools)
                if name == "ana":
                    await client.call_tool("add_memories", {"text": "I am a vegetarian."})
                searched = await client.call_tool("search_memory", {"query": "vegetarian"})
                listed = await client.call_tool("list_memories", {})
                ids = [row["id"] for row in found.get("ana", (0, {"results": []}))[1]["results"]]
                deleted = await client.call_tool("delete_memories", {"memory_ids": ids}) if ids else None
                texts = [one.content[0].text for one in (searched, listed)]
                found[name] = (tools, *map(json.loads, texts), deleted and deleted.content[0].text)
        return found

    found = asyncio.run(run())

    assert found["ana"][0] == [
        "add_memories",
        "delete_all_memories",
        "delete_memories",
        "list_memories",
        "search_memory",
    ]
    assert [row["memory"] for row in found["ana"][1]["results"]] == ["Is vegetarian."]
    assert found["bo"][1:] == (
        {"results": []},
        {"results": []},
        "Error: No accessible memories found with provided IDs",
    )
    assert [fact.text for fact in memory.user("ana").facts()] == ["Is vegetarian."]


def test_what_programs_of_litellm_send_is_answered_in_its_shape(app, memory):
    made = sent(app, "POST", "/v1/memory", {"key": "prefs", "value": "Wants metric units.", "user_id": "ana"})
    whose = "?user_id=ana"

    assert (made["key"], made["value"], made["user_id"], made["team_id"]) == (
        "prefs",
        "Wants metric units.",
        "ana",
        None,
    )
    assert app.post("/v1/memory", json={"key": "prefs", "value": "x", "user_id": "ana"}).status_code == 409
    changed = sent(app, "PUT", "/v1/memory/prefs" + whose, {"value": "Wants miles.", "metadata": {"tag": [1]}})
    assert changed["created_at"] == made["created_at"]
    assert sent(app, "PUT", "/v1/memory/prefs", {"metadata": "m", "user_id": "ana"})["value"] == "Wants miles."
    assert sent(app, "GET", "/v1/memory/prefs" + whose)["metadata"] == "m"
    sent(app, "PUT", "/v1/memory/team%2Fhome" + whose, {"value": "Meets in Porto."})
    assert sent(app, "GET", "/v1/memory/team%2Fhome" + whose)["value"] == "Meets in Porto."
    page = sent(app, "GET", "/v1/memory" + whose + "&key_prefix=team&page_size=1")
    assert ([row["key"] for row in page["memories"]], page["total"]) == (["team/home"], 1)
    assert sent(app, "GET", "/v1/memory" + whose)["total"] == 2
    assert sent(app, "GET", "/v1/memory" + whose + "&search=" + changed["memory_id"])["total"] == 1
    assert sent(app, "GET", "/v1/memory?user_id=bo") == {"memories": [], "total": 0}
    assert sent(app, "DELETE", "/v1/memory/prefs" + whose) == {"key": "prefs", "deleted": True}
    assert app.get("/v1/memory/prefs" + whose).status_code == 404
    assert not [fact for fact in memory.user("ana").history() if fact.key == "prefs"]  # nor any text that it replaced
    assert sent(app, "PUT", "/v1/memory/prefs" + whose, {"value": "x"})["metadata"] is None
    sent(app, "PUT", "/v1/memory/prefs" + whose, {"value": "y", "metadata": "of y"})
    memory.user("ana").forget(sent(app, "GET", "/v1/memory/prefs" + whose)["memory_id"])
    assert sent(app, "PUT", "/v1/memory/prefs" + whose, {"value": "z"})["metadata"] is None


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"key": "k", "value": "v"}, "whose memory"),
        ({"key": "k", "user_id": "ana"}, "value is missing"),
        ({"value": "v", "user_id": "ana"}, "key is missing"),
        ({"key": 1, "value": "v", "user_id": "ana"}, "key is missing"),
        ({"key": "k", "value": "v" * 20_000, "user_id": "ana"}, "at most"),
        ({"key": "k", "value": "v", "user_id": "ana", "metadata": "m" * 20_000}, "metadata"),
        ({"key": "k", "value": "v", "user_id": 7}, "whose memory"),
    ],
)
def test_a_text_that_cannot_be_stored_under_a_key_is_refused(app, memory, body, says):
    answer = app.post("/v1/memory", json=body)

    assert answer.status_code == 422
    assert says in answer.text
    assert not memory.user("ana").facts()


def test_a_users_key_has_its_own_texts_alone(ask, memory):
    client = ask("user", user="ana")
    sent(client, "PUT", "/v1/memory/prefs", {"value": "Wants metric units."})

    assert client.get("/v1/memory/prefs?user_id=bo").status_code == 422
    assert [fact.value for fact in memory.user("ana").facts()] == ["Wants metric units."]
    assert "metric" in str(memory.conversation("c", user="ana").context("Which units?").messages)


def test_a_text_of_a_user_who_pauses_memory_is_not_stored(app, memory):
    memory.user("ana").pause()
    answer = app.post("/v1/memory", json={"key": "k", "value": "v", "user_id": "ana"})

    assert answer.status_code == 409
    memory.user("ana").resume()
    assert sent(app, "GET", "/v1/memory?user_id=ana")["total"] == 0
