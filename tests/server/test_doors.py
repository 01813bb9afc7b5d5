"""Every public call of the doors, and where it is reached from outside: a route, a tool, or the reason why not."""

from __future__ import annotations

import asyncio

import pytest

import holdfast
from holdfast.server.app import routes
from holdfast.server.mcp import MemoryOwner, tools

# door.call | route (below /v1; {u} a user, {c} a conversation) | tool of the Model Context Protocol
TABLE = """
Memory.conversation         | -                                             |
Memory.user                 | -                                             |
Memory.config               | -                                             |
Memory.close                | -                                             |
Memory.backup               | -                                             |
Admin.backlog               | -                                             |
Admin.job                   | GET /jobs/{job_id}                            |
Admin.jobs_of_user          | GET /jobs                                     |
Memory.admin                | -                                             |
Memory.import_              | POST /import                                  |
Memory.digest               | POST /digest                                  |
Memory.backfill             | POST /backfill                                |
Memory.jobs                 | GET /jobs                                     |
Memory.retry                | POST /jobs/{job_id}/retry                     |
Memory.cancel               | POST /jobs/{job_id}/cancel                    |
Memory.run_now              | POST /jobs/{job_id}/run                       |
Admin.stats                 | GET /stats                                    |
Memory.usage                | GET /usage                                    |
Admin.metrics               | GET /metrics                                  |
Memory.doctor               | GET /doctor                                   |
Admin.users                 | GET /users                                    |
Admin.provider_keys         | -                                             |
Admin.erasures              | -                                             |
Admin.events                | -                                             |
Admin.operations            | -                                             |
Admin.observe               | -                                             |
Admin.size_bytes            | -                                             |
Admin.keys                  | -                                             |
Events.changes              | -                                             |
Events.news                 | GET {u}/events                                |
Events.of_org               | GET /audit                                    |
ProviderKeys.set            | PUT {u}/provider-keys                         |
ProviderKeys.list           | GET {u}/provider-keys                         |
ProviderKeys.remove         | DELETE {u}/provider-keys/{key_id}             |
ProviderKeys.upstream       | -                                             |
ProviderKeys.rotate         | -                                             |
ApiKeys.create              | POST /keys                                    |
ApiKeys.copy                | -                                             |
ApiKeys.list                | GET /keys                                     |
ApiKeys.revoke              | DELETE /keys/{key_id}                         |
ApiKeys.check               | GET /whoami                                   |
ApiKeys.is_valid            | -                                             |
ApiKeys.count_messages      | -                                             |
ApiKeys.message_counts      | GET /quotas                                   |
Conversation.id             | -                                             |
Conversation.append         | POST {c}/messages                             |
Conversation.record         | POST {c}/messages                             |
Conversation.load           | GET {c}/messages                              |
Conversation.context        | POST {c}/context                              | get_context
Conversation.recall         | POST {c}/recall                               |
Conversation.record_usage   | POST {c}/usage                                |
Conversation.summaries      | GET {c}/summaries                             |
Conversation.episodes       | GET {c}/episodes                              |
Conversation.learned        | GET {c}/learned                               |
Conversation.state          | GET {c}                                       |
Conversation.end            | POST {c}/end                                  |
Conversation.edit           | PATCH {c}/messages/{seq}                      |
Conversation.forget         | DELETE {c}/messages/{seq}                     |
Conversation.clear          | DELETE {c}                                    |
Conversation.rebuild        | POST {c}/rebuild                              |
Conversation.rebuilds       | GET {c}/rebuilds                              |
Conversation.restore        | POST {c}/rebuilds/{rebuild_id}/restore        |
User.facts                  | GET {u}/facts                                 | list_memories
User.fact                   | GET {u}/facts/{fact_id}                       |
User.history                | GET {u}/history                               | memory_history
User.search                 | POST {u}/search                               | search_memory
User.explain                | POST {u}/explain                              |
User.profile                | GET {u}/profile                               |
User.rejected               | GET {u}/rejected                              |
User.rejected_page          | GET {u}/rejected                              |
User.conversations          | GET {u}/conversations                         |
User.overview               | GET {u}/overview                              |
User.remember               | POST {u}/facts                                | add_memory
User.correct                | PATCH {u}/facts/{fact_id}                     | update_memory
User.never_true             | POST {u}/facts/{fact_id}/never-true           |
User.restore                | POST {u}/facts/{fact_id}/restore              |
User.forget                 | DELETE {u}/facts/{fact_id}                    | delete_memory
User.clear                  | DELETE {u}/facts                              |
User.erase                  | DELETE {u}                                    |
User.pause                  | PUT {u}/consent                               |
User.resume                 | PUT {u}/consent                               |
User.opt_out                | PUT {u}/consent                               |
User.opt_in                 | PUT {u}/consent                               |
User.status                 | GET {u}/consent                               |
User.never_remember         | POST {u}/never                                |
User.allow                  | DELETE {u}/never                              |
User.events                 | GET {u}/events                                |
User.last_event             | GET {u}/events                                |
User.audit                  | GET {u}/audit                                 |
User.consolidate            | POST {u}/consolidate                          |
User.prune                  | POST {u}/prune                                |
User.prompts                | -                                             |
User.usage                  | GET {u}/usage                                 |
User.metrics                | GET {u}/metrics                               |
User.export                 | GET {u}/export                                |
User.import_                | POST {u}/import                               |
Prompts.get                 | GET {u}/prompts/{name}                        |
Prompts.set                 | PUT {u}/prompts/{name}                        |
Prompts.reset               | DELETE {u}/prompts/{name}                     |
Prompts.versions            | GET {u}/prompts/{name}/versions               |
Prompts.draft               | POST {u}/prompts/{name}/drafts                |
Prompts.activate            | POST {u}/prompts/{name}/activate              |
Prompts.preview             | POST {u}/prompts/{name}/preview               |
"""
WHY_NOT = {
    "Memory.conversation": "opens a door: the path names the conversation",
    "Memory.user": "opens a door: the path names the user",
    "Memory.config": "belongs to whoever starts the server; what it limits is told by refusals and GET /budgets",
    "Memory.close": "belongs to whoever starts the server",
    "Memory.backup": "writes a file on the machine of the store, and holds everybody",
    "Admin.backlog": "is what /metrics tells",
    "Memory.admin": "opens a door",
    "Admin.provider_keys": "opens a door: GET, PUT and DELETE /provider-keys, of the org and of users",
    "Admin.keys": "opens a door: GET, POST and DELETE /keys",
    "Admin.observe": "belongs to whoever starts the server: GET /metrics is made of it",
    "Admin.size_bytes": "is told by GET /metrics",
    "Admin.events": "opens a door: GET /audit, and the events of users",
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
ROWS = [[part.strip() for part in line.split("|")] for line in TABLE.strip().splitlines()]
DOORS = ("Memory", "Conversation", "User", "Prompts", "Admin", "ApiKeys", "ProviderKeys", "Events")


def test_every_call_of_every_door_stands_in_the_table():
    calls = [f"{door}.{name}" for door in DOORS for name in vars(getattr(holdfast, door)) if not name.startswith("_")]

    assert sorted(row[0] for row in ROWS) == sorted(calls)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_it_is_reached_or_the_reason_is_told(row):
    call, route, _ = row
    assert (route == "-") == (call in WHY_NOT)
    if route == "-":
        return
    method, path = route.split()
    path = path.replace("{c}", "/users/{user:name}/conversations/{conversation:name}")
    path = path.replace("{u}", "/users/{user:name}")

    assert (method, f"/v1{path}") in {(route.method, route.path) for route in routes().routes}


def test_the_seven_tools_stand_for_calls_of_the_doors(memory):
    listed = asyncio.run(tools(memory, lambda _context: MemoryOwner("ana")).list_tools())

    assert sorted(tool.name for tool in listed) == sorted(row[2] for row in ROWS if row[2])
