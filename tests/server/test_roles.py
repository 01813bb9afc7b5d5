"""Every route and every role: a role that the route names is let in, every other one is refused."""

from __future__ import annotations

from datetime import timedelta
from functools import cache

import pytest

from holdfast import Memory
from holdfast.server import compat
from holdfast.server.app import create_app
from holdfast.server.routing import Route

KEYS = {
    "operator": {},
    "app": {},
    "user": {"user": "ana"},
    "subject": {"user": "ana", "subject": "rex"},
}
# Paths that name no user are the operator's, but for these; docs/reference/routes.md has the roles of every route.
PUBLIC = ["/docs", "/healthz", "/language", "/llms.txt", "/openapi.json", "/readyz", "/sign-in", "/static/{file}"]
FOR_EVERY_KEY = ["/", "/mcp", "/sign-out", "/v1/jobs/{job_id}", "/v1/whoami"]
FOR_CHAT = [
    "/v1/chat/completions",
    "/v1/embeddings",
    "/v1/messages",
    "/v1/messages/count_tokens",
    "/v1/models",
    "/v1/models/{model}",
    "/v1/responses",
]
KEPT = [
    "/v1/responses/{response}" + rest for rest in ("", "/cancel", "/input_items")
]  # the model's server has no users
OF_OTHERS = {route.path for route in compat.table.routes if "app" in (route.roles or ())}  # their bodies name the users
OF_ONESELF = {route.path for route in compat.table.routes if "user" in (route.roles or ())}  # the key says whose
FOR_APPS = ["/v1/import", "/v1/jobs/{job_id}/cancel", "/v1/tokens", *KEPT, *OF_OTHERS]
FOR_ONESELF = ["/me", "/me/download", "/me/receipts", "/me/find"]
READ_BY_POST = ("/search", "/recall")
CHOICES = ("/consent", "/never", "/rating")
WHERE_ALLOWED = ("c/rebuild", "/x/restore", "/prompts/")  # for users: where a setting allows it; see test_own_work.py


@cache
def served() -> list[Route]:
    with Memory(embedder=None) as memory:
        return list(create_app(memory).state.table.routes)


def line(route: Route) -> str:
    return f"{route.method} {route.path}"


def path_of(pattern: str, user: str = "ana") -> str:
    named = {"user:name": user, "conversation:name": "c", "seq": "1", "name": "chunk_summary", "file": "style.css"}
    parts = [named.get(part[1:-1], "x") if part.startswith("{") else part for part in pattern.split("/")]
    return "/".join(parts) + ("?follow=false" if pattern.endswith("/events") else "")


def opened_for(role: str | None) -> list[str]:
    """The paths without a user in them that *role* may use; ``None``: without a key."""
    allowed = [route for route in served() if (route.roles is None if role is None else role in (route.roles or ()))]
    return sorted({route.path for route in allowed if "{user:name}" not in route.path})


def test_what_names_no_user_is_the_operators_but_for_a_short_list():
    assert opened_for(None) == PUBLIC
    assert opened_for("subject") == sorted(FOR_EVERY_KEY)
    assert opened_for("user") == sorted([*FOR_EVERY_KEY, *FOR_CHAT, *FOR_ONESELF, *OF_ONESELF])
    assert opened_for("app") == sorted(FOR_EVERY_KEY + FOR_CHAT + FOR_APPS)


def test_a_wider_role_may_do_what_a_narrower_one_may():
    """Only the page about oneself is for users alone."""
    order = list(KEYS)
    for route in served():
        held = [role in (route.roles or KEYS) for role in order]
        assert held == sorted(held, reverse=True) or route.path.startswith("/me"), line(route)


def test_the_pages_about_others_are_the_operators():
    pages = [route for route in served() if route.path.startswith("/dashboard")]
    assert pages
    assert {route.roles for route in pages} == {frozenset(["operator"])}


def test_a_subjects_key_reads_and_chooses_and_changes_nothing_else():
    for route in served():
        if "subject" in (route.roles or ()) and "{user:name}" in route.path and route.method != "GET":
            assert route.path.endswith((*READ_BY_POST, *CHOICES)), line(route)


@pytest.mark.parametrize("route", served(), ids=line)
def test_who_may(ask, route):
    """A role that the route names is let in, whatever the answer is; others are refused, and so is a request without a key."""
    method, path = route.method, path_of(route.path)
    if route.roles is None:
        assert ask(None).request(method, path).status_code == (200 if method == "GET" else 415)
        return
    stranger = ask(None).request(method, path, follow_redirects=False)
    assert stranger.status_code == (303 if route.page else 401)
    assert stranger.headers.get("location", "/sign-in").partition("?")[0] == "/sign-in"
    if path == "/mcp":
        return  # who is let in is seen in test_tools.py, with a client of that protocol
    for role, whose in KEYS.items():
        status = ask(role, **whose).request(method, path, follow_redirects=False).status_code
        if path == "/":
            continue  # where it leads is seen in pages/test_shell.py
        if role == "user" and route.roles & {"user"} and "{user:name}" in route.path:
            off = (
                any(part in path for part in WHERE_ALLOWED) and "/facts/" not in path and not path.endswith("rebuilds")
            )
            assert (status == 403) == off, (role, status)
            continue
        assert (status == 403) == (role not in route.roles), (role, status)
        assert status < 500
        assert status != 401


@pytest.mark.parametrize("route", [route for route in served() if "{user:name}" in route.path], ids=line)
def test_a_users_key_opens_nobody_elses_memory(ask, route):
    for role in ("user", "subject"):
        assert ask(role, **KEYS[role]).request(route.method, path_of(route.path, "bob")).status_code == 403


def test_what_opens_nothing(ask, memory, clock):
    """No key, half a key, one with another secret, one that was revoked, one that expired."""
    made = memory.admin.keys.create("app")
    late = memory.admin.keys.create("app", expires_at=clock() + timedelta(minutes=5))
    memory.admin.keys.revoke(made.about.id)
    clock.advance(seconds=301)
    forged = made.key[:-4] + "AAAA"
    for key in ("", "hf_", made.key[:20], forged, made.key, late.key, "x" * 10_000, "hf_ü"):
        header = f"Bearer {key}".encode()
        answer = ask(None).get("/v1/whoami", headers={"Authorization": header})
        assert (answer.status_code, answer.json()["code"]) == (401, "no-key"), key
        assert answer.headers["www-authenticate"] == "Bearer"


def test_a_key_is_bound_to_its_org_and_its_assistant(ask):
    acme = ask("app", org="acme", bot="b1")
    say = {"messages": [{"role": "user", "content": "I live in Porto."}]}
    assert acme.post("/v1/users/ana/conversations/c/messages?bot=b1", json=say).status_code == 201
    assert acme.get("/v1/users/ana/facts?bot=b2").status_code == 403
    assert acme.get("/v1/users/ana/facts", headers={"X-Holdfast-Org": "default"}).status_code == 403
    assert len(acme.get("/v1/users/ana/facts").json()["data"]) == 1  # its own assistant, without being told
    assert ask("app").get("/v1/users/ana/facts?bot=b1").json()["data"] == []
    operator = ask("operator").get("/v1/users/ana/facts?bot=b1", headers={"X-Holdfast-Org": "acme"})
    assert len(operator.json()["data"]) == 1


def test_an_export_goes_into_the_memory_that_the_key_opens(ask):
    """Whatever org the data name, it is the key's; another assistant's memory stays shut."""
    app, bound = ask("app"), ask("app", org="acme", bot="b1")
    say = {"messages": [{"role": "user", "content": "I live in Porto."}]}
    app.post("/v1/users/ana/conversations/c/messages", json=say)
    data = app.get("/v1/users/ana/export").json()

    assert bound.post("/v1/import", json=data).status_code == 403
    assert bound.post("/v1/import", json=data | {"bot": "b1"}).status_code == 201
    taken = ask("operator").get("/v1/users/ana/facts?bot=b1", headers={"X-Holdfast-Org": "acme"}).json()["data"]
    assert [fact["value"] for fact in taken] == ["Porto"]


def test_a_subjects_key_sees_that_subject_and_what_is_about_the_user(ask):
    app = ask("app")
    for subject, words in (("rex", "Rex weighs 12 kg."), ("tom", "Tom weighs 30 kg.")):
        body = {"messages": [{"role": "user", "content": words}]}
        app.post(f"/v1/users/ana/conversations/c?subject={subject}".replace("/c?", "/c/messages?"), json=body)
    rex = ask("subject", user="ana", subject="rex")
    assert rex.get("/v1/users/ana/facts?subject=tom").status_code == 403
    seen = rex.get("/v1/users/ana/conversations/c/messages").json()["data"]
    assert [message["content"] for message in seen] == ["Rex weighs 12 kg."]
    assert "30 kg" not in rex.get("/v1/users/ana/facts").text  # an id may hold any digits


def test_a_key_is_never_shown_again(ask, memory):
    operator = ask("operator")
    made = operator.post("/v1/keys", json={"role": "app", "name": "web"}).json()
    listed = operator.get("/v1/keys").text
    assert made["key"].split("_", 2)[2] not in listed
    assert made["about"]["id"] in listed
    assert made["key"] not in repr(memory.admin.keys.create("app"))
    assert operator.delete(f"/v1/keys/{made['about']['id']}").status_code == 204
    assert operator.delete(f"/v1/keys/{made['about']['id']}").status_code == 404


@pytest.mark.parametrize(
    "body",
    [
        {"role": "king"},
        {"role": "user"},
        {"role": "app", "user": "ana"},
        {"role": "subject", "user": "ana"},
        {"role": "app", "expires_at": "2020-01-01T00:00:00Z"},
        {"role": "app", "expires_at": "2030-01-01T00:00:00"},
        {"role": "app", "colour": "red"},
    ],
)
def test_a_key_that_makes_no_sense_is_not_made(ask, body):
    assert ask("operator").post("/v1/keys", json=body).status_code == 422
