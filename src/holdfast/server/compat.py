"""
The routes of mem0's servers and of Zep's: their own clients work when their address is this one.

They are for programs that speak for users, which the bodies name; what is not among these routes is answered with 404.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Body, Header, Query, Request, Response

from ..compat.filters import NAMES
from ..compat.mem0 import Mem0Client
from ..compat.zep import ZepShapes
from ..errors import BadInput
from .gate import Grant, Quotas, quota_exceeded
from .routing import APP, OPERATOR, RouteTable

table = RouteTable()
Row = dict[str, Any]
Given = Annotated[dict[str, Any], Body()]
Name = Annotated[str | None, Query(max_length=512)]
Size = Annotated[int, Query(ge=1, le=1_000)]
PageCursor = Annotated[str | None, Query(max_length=1_000)]
Key = Annotated[str | None, Header(alias="Idempotency-Key", max_length=512)]

_ADD = (*NAMES, "metadata", "filters", "timestamp", "expiration_date", "infer")
_LOOK = (*NAMES, "filters", "top_k", "limit", "show_expired")
_UPDATE = ("text", "data", "metadata", "expiration_date")


def _add(method: str, *paths: str, roles: Any = APP) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that serves a handler under each of the paths; they are described by their own makers."""

    def take(call: Callable[..., Any]) -> Callable[..., Any]:
        for path in paths:
            table.add(method, path, roles, include_in_schema=False, response_model=None)(call)
        return call

    return take


def _mem0(request: Request) -> Mem0Client:
    grant: Grant = request.state.grant
    return Mem0Client(memory=request.app.state.memory, org=grant.org, bot=grant.bot)


def _picked(body: Row, names: tuple[str, ...]) -> Row:
    return {name: body[name] for name in names if body.get(name) is not None}


def _counted(request: Request, messages: Any, store: Callable[[], Row]) -> Row | Response:
    """Store messages within the quota of the key."""
    quotas: Quotas = request.app.state.quotas
    with quotas.counting(request.state.key, len(messages) if isinstance(messages, list) else 1) as wait_s:
        return quota_exceeded(wait_s) if wait_s else store()


@_add("GET", "/v1/ping/")
def memories_ping(request: Request) -> Row:
    """Say that the key is known, and whose it is."""
    grant: Grant = request.state.grant
    return {"status": "ok", "org_id": grant.org, "project_id": grant.bot, "user_email": None}


@_add("POST", "/v3/memories/add/", "/v1/memories/", "/memories")
def memories_add(request: Request, body: Given) -> Row | Response:
    """Store messages, and return the memories that they changed."""
    messages = body.get("messages")
    return _counted(request, messages, lambda: _mem0(request).add(messages, **_picked(body, _ADD)))


@_add("POST", "/v3/memories/", "/v2/memories/")
def memories_page(request: Request, body: Given, page: int = 1, page_size: int = 100) -> Row:
    """Return one page of the memories that filters mean."""
    return _mem0(request).get_all(page=page, page_size=page_size, **_picked(body, _LOOK))


@_add("GET", "/v1/memories/", "/memories")
def memories_list(
    request: Request, user_id: Name = None, agent_id: Name = None, app_id: Name = None, run_id: Name = None
) -> Row:
    """Return the memories of a user, an agent, an app or a run."""
    named = {"user_id": user_id, "agent_id": agent_id, "app_id": app_id, "run_id": run_id}
    return {"results": _mem0(request).get_all(page_size=10_000, **_picked(named, NAMES))["results"]}


@_add("POST", "/v3/memories/search/", "/v2/memories/search/", "/v1/memories/search/", "/search")
def memories_search(request: Request, body: Given) -> Row:
    """Return the memories that answer a question."""
    return dict(_mem0(request).search(body.get("query", ""), **_picked(body, (*_LOOK, "threshold"))))


@_add("DELETE", "/v1/memories/", "/memories")
def memories_clear(
    request: Request, user_id: Name = None, agent_id: Name = None, app_id: Name = None, run_id: Name = None
) -> Row:
    """Erase what is held of a user, an agent, an app or a run."""
    named = {"user_id": user_id, "agent_id": agent_id, "app_id": app_id, "run_id": run_id}
    return _mem0(request).delete_all(**_picked(named, NAMES))


@_add("GET", "/v1/memories/{memory_id:name}/", "/memories/{memory_id:name}")
def memories_get(request: Request, memory_id: str) -> Row:
    """Return a memory."""
    return _mem0(request).get(memory_id)


@_add("PUT", "/v1/memories/{memory_id:name}/", "/memories/{memory_id:name}")
def memories_update(request: Request, memory_id: str, body: Given) -> Row:
    """Replace the words of a memory, or what was given with it."""
    given = {name: body[name] for name in _UPDATE if name in body}
    return _mem0(request).update(memory_id, **given)


@_add("DELETE", "/v1/memories/{memory_id:name}/", "/memories/{memory_id:name}")
def memories_delete(request: Request, memory_id: str) -> Row:
    """Erase a memory with the words that it rests on."""
    return _mem0(request).delete(memory_id)


@_add("GET", "/v1/memories/{memory_id:name}/history/", "/memories/{memory_id:name}/history")
def memories_history(request: Request, memory_id: str) -> list[Row]:
    """Return what a memory said, from its first words to its last."""
    return _mem0(request).history(memory_id)


@_add("PUT", "/v1/batch/")
def memories_update_batch(request: Request, body: Given) -> Row:
    """Update several memories."""
    return _mem0(request).batch_update(body.get("memories", ()))


@_add("DELETE", "/v1/batch/")
def memories_delete_batch(request: Request, body: Given) -> Row:
    """Erase several memories."""
    return _mem0(request).batch_delete(body.get("memories", ()))


@_add("GET", "/v1/entities/")
def memories_owners(request: Request) -> Row:
    """Return the users, agents, apps and runs that have memories."""
    return _mem0(request).users()


@_add("DELETE", "/v2/entities/{kind:name}/{name:name}/")
def memories_forget_owner(request: Request, kind: str, name: str) -> Row:
    """Erase a user, an agent, an app or a run."""
    if f"{kind}_id" not in NAMES:
        raise BadInput("there is no such kind of entity", hint="use user, agent, app or run")
    return _mem0(request).delete_users(**{f"{kind}_id": name})


@_add("POST", "/reset", roles=OPERATOR)
def memories_reset(request: Request) -> Row:
    """Erase everybody of this org and this bot."""
    return _mem0(request).reset()


def _zep(request: Request) -> ZepShapes:
    grant: Grant = request.state.grant
    return ZepShapes(request.app.state.memory, org=grant.org, bot=grant.bot)


ZEP, THREAD, GRAPH = "/api/v4", "/api/v4/threads/{thread_uuid:name}", "/api/v4/graphs/{graph_uuid:name}"


@_add("POST", ZEP + "/users")
def zep_create_user(request: Request, body: Given) -> Row:
    """Note who a user is."""
    return _zep(request).create_user(body)


@_add("POST", ZEP + "/users/list")
def zep_list_users(request: Request, page_size: Size = 50, cursor: PageCursor = None) -> Row:
    """Return one page of the users."""
    return _zep(request).list_users(page_size, cursor)


@_add("POST", ZEP + "/users/lookup")
def zep_look_up_user(request: Request, body: Given) -> Row:
    """Return the user of an id of the program's own."""
    return _zep(request).user_of(body)


@_add("GET", ZEP + "/users/{user_uuid:name}")
def zep_get_user(request: Request, user_uuid: str) -> Row:
    """Return a user."""
    return _zep(request).get_user(user_uuid)


@_add("PATCH", ZEP + "/users/{user_uuid:name}")
def zep_update_user(request: Request, user_uuid: str, body: Given) -> Row:
    """Note who a user is."""
    return _zep(request).update_user(user_uuid, body)


@_add("DELETE", ZEP + "/users/{user_uuid:name}")
def zep_delete_user(request: Request, user_uuid: str) -> Row:
    """Erase a user."""
    return _zep(request).delete_user(user_uuid)


@_add("POST", ZEP + "/threads")
def zep_create_thread(request: Request, body: Given) -> Row:
    """Begin a thread."""
    return _zep(request).create_thread(body)


@_add("GET", ZEP + "/threads")
def zep_list_threads(request: Request, user_uuid: Name = None, page_size: Size = 50, cursor: PageCursor = None) -> Row:
    """Return one page of the threads of a user."""
    return _zep(request).list_threads(user_uuid, page_size, cursor)


@_add("GET", THREAD)
def zep_get_thread(request: Request, thread_uuid: str) -> Row:
    """Return a thread."""
    return _zep(request).get_thread(thread_uuid)


@_add("DELETE", THREAD)
def zep_delete_thread(request: Request, thread_uuid: str) -> Row:
    """Erase a thread."""
    return _zep(request).delete_thread(thread_uuid)


@_add("GET", THREAD + "/context")
def zep_thread_context(request: Request, thread_uuid: str) -> Row:
    """Return what to know for the next reply."""
    return _zep(request).thread_context(thread_uuid)


@_add("GET", THREAD + "/summary")
def zep_thread_summary(request: Request, thread_uuid: str) -> Row:
    """Return the summary of a thread."""
    return _zep(request).thread_summary(thread_uuid)


@_add("GET", THREAD + "/messages")
def zep_list_messages(
    request: Request, thread_uuid: str, page_size: Size = 50, cursor: PageCursor = None, order: str = "asc"
) -> Row:
    """Return one page of the messages of a thread."""
    return _zep(request).list_messages(thread_uuid, page_size, cursor, newest=order == "desc")


@_add("POST", THREAD + "/messages")
def zep_add_messages(request: Request, thread_uuid: str, body: Given, idempotency_key: Key = None) -> Row | Response:
    """Store messages of a thread."""
    shapes = _zep(request)
    return _counted(request, body.get("messages"), lambda: shapes.add_messages(thread_uuid, body, idempotency_key))


@_add("POST", ZEP + "/graphs/lookup")
def zep_look_up_graph(request: Request, body: Given) -> Row:
    """Return the graph of a user."""
    return _zep(request).graph_of(body)


@_add("GET", GRAPH)
def zep_get_graph(request: Request, graph_uuid: str) -> Row:
    """Return the graph of a user."""
    return _zep(request).graph(graph_uuid)


@_add("POST", GRAPH + "/context")
def zep_graph_context(request: Request, graph_uuid: str, body: Given) -> Row:
    """Return what to know for a question."""
    return _zep(request).graph_context(graph_uuid, body)


@_add("POST", *(f"{GRAPH}/search/{kind}" for kind in ("edges", "episodes", "thread-summaries")))
def zep_search(request: Request, graph_uuid: str, body: Given, page_size: Size = 10, cursor: PageCursor = None) -> Row:
    """Return one page of what answers a query."""
    kind = request.url.path.rpartition("/")[2]
    return _zep(request).search(graph_uuid, kind, body, page_size, cursor)


@_add("POST", GRAPH + "/edges/list")
def zep_list_edges(request: Request, graph_uuid: str, page_size: Size = 50, cursor: PageCursor = None) -> Row:
    """Return one page of what is known of a user."""
    return _zep(request).edges(graph_uuid, page_size, cursor)


@_add("GET", GRAPH + "/edges/{edge_uuid:name}")
def zep_get_edge(request: Request, graph_uuid: str, edge_uuid: str) -> Row:
    """Return one fact."""
    return _zep(request).edge(graph_uuid, edge_uuid)


@_add("DELETE", GRAPH + "/edges/{edge_uuid:name}")
def zep_delete_edge(request: Request, graph_uuid: str, edge_uuid: str) -> Row:
    """Erase a fact."""
    return _zep(request).delete_edge(graph_uuid, edge_uuid)


@_add("POST", GRAPH + "/episodes")
def zep_add_episode(request: Request, graph_uuid: str, body: Given, idempotency_key: Key = None) -> Row | Response:
    """Store a text of a user that belongs to no thread."""
    return _counted(request, None, lambda: _zep(request).add_episode(graph_uuid, body, idempotency_key))


@_add("POST", GRAPH + "/episodes/list")
def zep_list_episodes(request: Request, graph_uuid: str, page_size: Size = 50, cursor: PageCursor = None) -> Row:
    """Return one page of the messages of a user."""
    return _zep(request).episodes(graph_uuid, page_size, cursor)
