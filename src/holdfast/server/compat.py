"""
The routes of mem0's servers, of Zep's, and of LiteLLM's memory: their own clients work when their address is this one.

They are for programs that speak for users, which the bodies name; LiteLLM's are for users' keys as well.  What is not among
these routes is answered with 404.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Body, Header, Query, Request, Response

from ..compat import NAMES
from ..compat.litellm import KeyValueMemory
from ..compat.mem0 import Mem0Client
from ..compat.zep import ZepShapes
from ..errors import BadInput
from .gate import Grant, Quotas, quota_exceeded
from .routing import APP, OPERATOR, WHOLE_USER, RouteTable

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
    """Erase all users of this org and this bot."""
    return _mem0(request).reset()


def _zep(request: Request) -> ZepShapes:
    grant: Grant = request.state.grant
    return ZepShapes(request.app.state.memory, org=grant.org, bot=grant.bot)


ZEP, THREAD, GRAPH = "/api/v4", "/api/v4/threads/{thread_uuid:name}", "/api/v4/graphs/{graph_uuid:name}"


def _zep_route(method: str, path: str, answer: Callable[..., Row], name: str, summary: str) -> None:
    """
    Serve a call of `ZepShapes`, with the names in the path in their order.

    ``POST`` and ``PATCH`` give it the body as well; ``…/list`` and lists the size of a page and the cursor.
    """

    def plain(request: Request) -> Row:
        return answer(_zep(request), *request.path_params.values())

    def with_body(request: Request, body: Given) -> Row:
        return answer(_zep(request), *request.path_params.values(), body)

    def paged(request: Request, page_size: Size = 50, cursor: PageCursor = None) -> Row:
        return answer(_zep(request), *request.path_params.values(), page_size, cursor)

    call = paged if path.endswith("/list") else with_body if method in ("POST", "PATCH") else plain
    call.__name__, call.__doc__ = name, summary
    _add(method, path)(call)


EDGE, USER_OF_ZEP = GRAPH + "/edges/{edge_uuid:name}", ZEP + "/users/{user_uuid:name}"
for _route in (
    ("POST", ZEP + "/users", ZepShapes.create_user, "zep_create_user", "Note who a user is."),
    ("POST", ZEP + "/users/list", ZepShapes.list_users, "zep_list_users", "Return one page of the users."),
    ("POST", ZEP + "/users/lookup", ZepShapes.user_of, "zep_look_up_user", "Return the user of a program's own id."),
    ("GET", USER_OF_ZEP, ZepShapes.get_user, "zep_get_user", "Return a user."),
    ("PATCH", USER_OF_ZEP, ZepShapes.update_user, "zep_update_user", "Note who a user is."),
    ("DELETE", USER_OF_ZEP, ZepShapes.delete_user, "zep_delete_user", "Erase a user."),
    ("POST", ZEP + "/threads", ZepShapes.create_thread, "zep_create_thread", "Begin a thread."),
    ("GET", THREAD, ZepShapes.get_thread, "zep_get_thread", "Return a thread."),
    ("DELETE", THREAD, ZepShapes.delete_thread, "zep_delete_thread", "Erase a thread."),
    ("GET", THREAD + "/context", ZepShapes.thread_context, "zep_thread_context", "Return what the next reply needs."),
    ("GET", THREAD + "/summary", ZepShapes.thread_summary, "zep_thread_summary", "Return a thread's summary."),
    ("POST", ZEP + "/graphs/lookup", ZepShapes.graph_of, "zep_look_up_graph", "Return the graph of a user."),
    ("GET", GRAPH, ZepShapes.graph, "zep_get_graph", "Return the graph of a user."),
    ("POST", GRAPH + "/context", ZepShapes.graph_context, "zep_graph_context", "Return what a question needs."),
    ("POST", GRAPH + "/edges/list", ZepShapes.edges, "zep_list_edges", "Return one page of a user's facts."),
    ("GET", EDGE, ZepShapes.edge, "zep_get_edge", "Return one fact."),
    ("DELETE", EDGE, ZepShapes.delete_edge, "zep_delete_edge", "Erase a fact."),
    ("POST", GRAPH + "/episodes/list", ZepShapes.episodes, "zep_list_episodes", "Return one page of the messages."),
):
    _zep_route(*_route)


@_add("GET", ZEP + "/threads")
def zep_list_threads(request: Request, user_uuid: Name = None, page_size: Size = 50, cursor: PageCursor = None) -> Row:
    """Return one page of the threads of a user."""
    return _zep(request).list_threads(user_uuid, page_size, cursor)


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


@_add("POST", *(f"{GRAPH}/search/{kind}" for kind in ("edges", "episodes", "thread-summaries")))
def zep_search(request: Request, graph_uuid: str, body: Given, page_size: Size = 10, cursor: PageCursor = None) -> Row:
    """Return one page of what answers a query."""
    kind = request.url.path.rpartition("/")[2]
    return _zep(request).search(graph_uuid, kind, body, page_size, cursor)


@_add("POST", GRAPH + "/episodes")
def zep_add_episode(request: Request, graph_uuid: str, body: Given, idempotency_key: Key = None) -> Row | Response:
    """Store a text of a user that belongs to no thread."""
    return _counted(request, None, lambda: _zep(request).add_episode(graph_uuid, body, idempotency_key))


def _texts(request: Request, named: Any) -> KeyValueMemory:
    """Return the texts of the key's user, or of the one that an app names."""
    grant: Grant = request.state.grant
    if grant.user is not None and named not in (None, "", grant.user):
        raise BadInput("the key or a header speaks for another user", hint="leave user_id out")
    user = grant.user or (named if isinstance(named, str) else None)
    if not user:
        raise BadInput("it is not known whose memory this is", hint='name the user: "user_id" in the body or the query')
    return KeyValueMemory(request.app.state.memory, user=user, org=grant.org, bot=grant.bot)


LITELLM = "/v1/memory"


@_add("POST", LITELLM, roles=WHOLE_USER)
def memory_create(request: Request, body: Given) -> Row | Response:
    """Store a text under a new key."""
    texts = _texts(request, body.get("user_id"))
    return _counted(request, None, lambda: texts.create(body))


@_add("GET", LITELLM, roles=WHOLE_USER)
def memory_list(
    request: Request,
    key: Name = None,
    key_prefix: Name = None,
    search: Name = None,
    page: Annotated[int, Query(ge=1)] = 1,
    page_size: Annotated[int, Query(ge=1, le=500)] = 50,
    user_id: Name = None,
) -> Row:
    """Return one page of the texts."""
    return _texts(request, user_id).page(key, key_prefix, search, page, page_size)


@_add("GET", LITELLM + "/{key:name}", roles=WHOLE_USER)
def memory_get(request: Request, key: str, user_id: Name = None) -> Row:
    """Return the text under a key."""
    return _texts(request, user_id).get(key)


@_add("PUT", LITELLM + "/{key:name}", roles=WHOLE_USER)
def memory_put(request: Request, key: str, body: Given, user_id: Name = None) -> Row | Response:
    """Replace the text under a key, or store it."""
    texts = _texts(request, body.get("user_id") or user_id)
    return _counted(request, None, lambda: texts.put(key, body))


@_add("DELETE", LITELLM + "/{key:name}", roles=WHOLE_USER)
def memory_delete(request: Request, key: str, user_id: Name = None) -> Row:
    """Erase the text under a key."""
    return _texts(request, user_id).delete(key)
