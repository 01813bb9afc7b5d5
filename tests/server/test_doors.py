"""Every public call of the doors is reached from outside by a route or a tool, or there is a reason why not."""

from __future__ import annotations

import asyncio

import holdfast
from holdfast.server.app import routes
from holdfast.server.mcp import MemoryOwner, tools

# The client has its own code for these calls, so that their routes do not name them.
BY_HAND = {
    "Memory.import_": "POST /v1/import",
    "Memory.digest": "POST /v1/digest",
    "Memory.backfill": "POST /v1/backfill",
    "Conversation.append": "POST /v1/users/{user:name}/conversations/{conversation:name}/messages",
    "Conversation.record": "POST /v1/users/{user:name}/conversations/{conversation:name}/messages",
    "User.rejected_page": "GET /v1/users/{user:name}/rejected",
    "User.events": "GET /v1/users/{user:name}/events",
    "User.last_event": "GET /v1/users/{user:name}/events",
    "Admin.users": "GET /v1/users",
    "Admin.job": "GET /v1/jobs/{job_id}",
    "Admin.jobs_of_user": "GET /v1/jobs",
    "ApiKeys.create": "POST /v1/keys",
    "ApiKeys.message_counts": "GET /v1/quotas",
    "ApiKeys.list": "GET /v1/keys",
    "ApiKeys.revoke": "DELETE /v1/keys/{key_id}",
    "ApiKeys.check": "GET /v1/whoami",
    "ProviderKeys.set": "PUT /v1/users/{user:name}/provider-keys",
    "ProviderKeys.list": "GET /v1/users/{user:name}/provider-keys",
    "ProviderKeys.remove": "DELETE /v1/users/{user:name}/provider-keys/{key_id}",
    "Events.news": "GET /v1/users/{user:name}/events",
    "Events.of_org": "GET /v1/audit",
}
TOOLS = {
    "get_context": "Conversation.context",
    "get_story": "User.story",
    "list_memories": "User.facts",
    "memory_history": "User.history",
    "search_memory": "User.search",
    "add_memory": "User.remember",
    "update_memory": "User.correct",
    "delete_memory": "User.forget",
}
WHY_NOT = {
    "Memory.conversation": "opens a door: the path names the conversation",
    "Memory.user": "opens a door: the path names the user",
    "Memory.config": "belongs to whoever starts the server; what it limits is told by refusals and GET /budgets",
    "Admin.reload": "belongs to whoever starts the server, who sends it SIGHUP",
    "Memory.close": "belongs to whoever starts the server",
    "Memory.backup": "writes a file on the machine of the store, and holds everybody",
    "Admin.activity": "is what the home page and the plots count; a route of its own would scan the events of all users",
    "Admin.containing": "is what the palette asks; a route of its own would look through everybody",
    "Admin.newest_events": "is what the home page lists; GET /audit and the events of users tell the same",
    "Admin.backlog": "is what /metrics tells",
    "Admin.call_times": "is what the page Metrics shows; GET /metrics has histograms of the same calls",
    "Memory.admin": "opens a door",
    "Admin.provider_keys": "opens a door: GET, PUT and DELETE /provider-keys, of the org and of users",
    "Admin.keys": "opens a door: GET, POST and DELETE /keys",
    "Admin.observe": "belongs to whoever starts the server: GET /metrics is made of it",
    "Admin.size_bytes": "is told by GET /metrics",
    "Admin.events": "opens a door: GET /audit, and the events of users",
    "Admin.prompts": "opens a door: GET, PUT and DELETE /prompts/{name}, of the org and of its bots",
    "Admin.operations": "is where jobs that requests ordered stand: GET /jobs/{job_id}",
    "Events.changes": "is what streams of events look at",
    "ApiKeys.is_valid": "is what open streams ask about their keys",
    "ApiKeys.count_messages": "is what a server counts messages by",
    "Admin.erasures": "belongs to whoever restores backups",
    "ProviderKeys.upstream": "gives the key itself",
    "ProviderKeys.rotate": "belongs to whoever holds the master key",
    "ApiKeys.copy": "makes what a browser holds while it is signed in: POST /sign-in",
    "Conversation.id": "stands in the path",
    "User.prompts": "opens a door: GET, PUT and DELETE {u}/prompts/{name}",
}
DOORS = ("Memory", "Conversation", "User", "Prompts", "Admin", "ApiKeys", "ProviderKeys", "Events")
CALLS = [f"{door}.{name}" for door in DOORS for name in vars(getattr(holdfast, door)) if not name.startswith("_")]


def test_every_call_of_every_door_is_reached_or_has_a_reason_why_not():
    named = {door.call.__qualname__ for route in routes().routes for door in route.doors}

    assert sorted([*named, *BY_HAND, *WHY_NOT]) == sorted(CALLS)


def test_routes_that_name_no_call_are_there():
    assert set(BY_HAND.values()) <= {f"{route.method} {route.path}" for route in routes().routes}


def test_the_seven_tools_stand_for_calls_of_the_doors(memory):
    listed = asyncio.run(tools(memory, lambda _context: MemoryOwner("ana")).list_tools())

    assert sorted(tool.name for tool in listed) == sorted(TOOLS)
    assert set(TOOLS.values()) <= set(CALLS)
