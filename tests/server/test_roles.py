"""Every route and every role: who may, in a table that a new route must join."""

from __future__ import annotations

from datetime import timedelta

import pytest

from holdfast.server.app import create_app

# o operator, a app, u user (about themselves), s subject; - nobody needs a key.  What follows the first empty line are
# pages: who has no key is asked to sign in.
TABLE = """
GET    /healthz                                                        -
GET    /readyz                                                         -
GET    /openapi.json                                                   -
GET    /llms.txt                                                       -
GET    /mcp                                                            oaus
POST   /mcp                                                            oaus
DELETE /mcp                                                            oaus
POST   /v1/chat/completions                                            oau
GET    /v1/models                                                      oau
GET    /v1/models/{model}                                              oau
GET    /v1/whoami                                                      oaus
GET    /v1/keys                                                        o
POST   /v1/keys                                                        o
DELETE /v1/keys/{key_id}                                               o
GET    /v1/provider-keys                                               o
PUT    /v1/provider-keys                                               o
DELETE /v1/provider-keys/{key_id}                                      o
GET    /v1/users/{user:name}/provider-keys                             oau
PUT    /v1/users/{user:name}/provider-keys                             oau
DELETE /v1/users/{user:name}/provider-keys/{key_id}                    oau
POST   /v1/tokens                                                      oa
GET    /v1/jobs                                                        o
GET    /v1/jobs/{job_id}                                               oaus
POST   /v1/jobs/{job_id}/retry                                         o
POST   /v1/jobs/{job_id}/cancel                                        oa
GET    /v1/doctor                                                      o
GET    /v1/users                                                      o
POST   /v1/jobs/{job_id}/run                                           o
GET    /v1/stats                                                       o
POST   /v1/users/{user:name}/explain                                   oa
POST   /v1/users/{user:name}/prompts/{name}/drafts                     oa
POST   /v1/users/{user:name}/prompts/{name}/activate                   oa
POST   /v1/users/{user:name}/prompts/{name}/preview                    oa
GET    /v1/metrics                                                     o
GET    /v1/budgets                                                     o
GET    /v1/quotas                                                      o
POST   /v1/backfill                                                    o
POST   /v1/digest                                                      o
GET    /v1/usage                                                       o
POST   /v1/import                                                      oa
GET    /metrics                                                        o
GET    /v1/audit                                                       o
GET    /v1/users/{user:name}/events                                    oaus
GET    /v1/users/{user:name}/audit                                     oau
GET    /v1/users/{user:name}/conversations                             oaus
POST   /v1/users/{user:name}/conversations/{conversation:name}/messages        oa
GET    /v1/users/{user:name}/conversations/{conversation:name}/messages        oaus
PATCH  /v1/users/{user:name}/conversations/{conversation:name}/messages/{seq}  oau
DELETE /v1/users/{user:name}/conversations/{conversation:name}/messages/{seq}  oau
POST   /v1/users/{user:name}/conversations/{conversation:name}/context         oa
GET    /v1/users/{user:name}/conversations/{conversation:name}/summaries       oaus
GET    /v1/users/{user:name}/conversations/{conversation:name}/episodes        oaus
POST   /v1/users/{user:name}/conversations/{conversation:name}/recall          oaus
POST   /v1/users/{user:name}/conversations/{conversation:name}/usage           oa
POST   /v1/users/{user:name}/conversations/{conversation:name}/rebuild         oa
GET    /v1/users/{user:name}/conversations/{conversation:name}/rebuilds        oaus
POST   /v1/users/{user:name}/conversations/{conversation:name}/rebuilds/{rebuild_id}/restore  oa
POST   /v1/users/{user:name}/conversations/{conversation:name}/end             oa
DELETE /v1/users/{user:name}/conversations/{conversation:name}                 oau
GET    /v1/users/{user:name}/facts                                     oaus
POST   /v1/users/{user:name}/facts                                     oau
DELETE /v1/users/{user:name}/facts                                     oau
GET    /v1/users/{user:name}/facts/{fact_id}                           oaus
PATCH  /v1/users/{user:name}/facts/{fact_id}                           oau
DELETE /v1/users/{user:name}/facts/{fact_id}                           oau
POST   /v1/users/{user:name}/facts/{fact_id}/never-true                oau
POST   /v1/users/{user:name}/facts/{fact_id}/restore                   oau
GET    /v1/users/{user:name}/history                                   oaus
GET    /v1/users/{user:name}/rejected                                  oaus
GET    /v1/users/{user:name}/profile                                   oaus
POST   /v1/users/{user:name}/consolidate                               oa
POST   /v1/users/{user:name}/backfill                                  oa
POST   /v1/users/{user:name}/prune                                     oa
POST   /v1/users/{user:name}/import                                    oa
POST   /v1/users/{user:name}/search                                    oaus
GET    /v1/users/{user:name}/consent                                   oaus
PUT    /v1/users/{user:name}/consent                                   oaus
POST   /v1/users/{user:name}/never                                     oaus
DELETE /v1/users/{user:name}/never                                     oaus
GET    /v1/users/{user:name}/prompts/{name}                            oa
PUT    /v1/users/{user:name}/prompts/{name}                            oa
DELETE /v1/users/{user:name}/prompts/{name}                            oa
GET    /v1/users/{user:name}/prompts/{name}/versions                   oa
GET    /v1/users/{user:name}/usage                                     oa
GET    /v1/users/{user:name}/metrics                                   oa
GET    /v1/users/{user:name}/export                                    oau
DELETE /v1/users/{user:name}                                           oau
GET    /v1/users/{user:name}/overview                                  oaus
GET    /v1/users/{user:name}/conversations/{conversation:name}         oaus
GET    /v1/users/{user:name}/conversations/{conversation:name}/learned oaus

GET    /docs                                                           -
GET    /                                                               oaus
GET    /sign-in                                                        -
GET    /dashboard/import                                               o
POST   /dashboard/import                                               o
GET    /dashboard/import/{import_id}                                   o
POST   /dashboard/import/{import_id}                                   o
GET    /dashboard/export                                               o
GET    /dashboard/recall                                               o
GET    /dashboard/jobs                                                 o
POST   /dashboard/jobs                                                 o
GET    /dashboard/prompts                                              o
GET    /dashboard/prompts/{name}                                       o
POST   /dashboard/prompts/{name}                                       o
GET    /dashboard/metrics                                              o
GET    /dashboard/settings                                             o
POST   /dashboard/settings                                             o
POST   /sign-in                                                        -
POST   /sign-out                                                       oaus
GET    /static/{file}                                                  -
GET    /me                                                             u
POST   /me                                                             u
GET    /me/download                                                    u
GET    /dashboard/conversations                                        o
GET    /dashboard/conversations/{user:name}                            o
GET    /dashboard/conversations/{user:name}/{conversation:name}        o
POST   /dashboard/conversations/{user:name}/{conversation:name}        o
GET    /dashboard/users                                               o
GET    /dashboard/users/{user:name}                                   o
POST   /dashboard/users/{user:name}                                   o
GET    /dashboard/users/{user:name}/fact                              o
POST   /dashboard/users/{user:name}/fact                              o
"""
ROWS = [tuple(line.split()) for line in TABLE.strip().splitlines() if line]
PAGES = {tuple(line.split()[:2]) for line in TABLE.strip().partition("\n\n")[2].splitlines()}
ROLES = {
    "o": ("operator", {}),
    "a": ("app", {}),
    "u": ("user", {"user": "ana"}),
    "s": ("subject", {"user": "ana", "subject": "rex"}),
}


def path_of(pattern: str, user: str = "ana") -> str:
    named = {"user:name": user, "conversation:name": "c", "seq": "1", "name": "chunk_summary", "file": "style.css"}
    parts = [named.get(part[1:-1], "x") if part.startswith("{") else part for part in pattern.split("/")]
    return "/".join(parts) + ("?follow=false" if pattern.endswith("/events") else "")


def test_every_route_stands_in_the_table(memory):
    served = create_app(memory).state.table.routes
    assert sorted((route.method, route.path) for route in served) == sorted(row[:2] for row in ROWS)
    assert {(route.method, route.path) for route in served if route.page} == PAGES


@pytest.mark.parametrize(("method", "pattern", "may"), ROWS, ids=[" ".join(row[:2]) for row in ROWS])
def test_who_may(ask, method, pattern, may):
    """A role that may is let in, whatever it is told there; the others are refused, and nobody without a key enters."""
    path = path_of(pattern)
    page = (method, pattern) in PAGES
    if may == "-":
        assert ask(None).request(method, path).status_code == (200 if method == "GET" else 415)
        return
    stranger = ask(None).request(method, path, follow_redirects=False)
    assert stranger.status_code == (303 if page else 401)
    assert stranger.headers.get("location", "/sign-in").partition("?")[0] == "/sign-in"
    if path == "/mcp":
        return  # who is let in is seen in test_tools.py, with a client of that protocol
    for letter, (role, whose) in ROLES.items():
        status = ask(role, **whose).request(method, path, follow_redirects=False).status_code
        if path == "/":
            continue  # where it leads is seen in pages/test_shell.py
        assert (status == 403) == (letter not in may), (role, status)
        assert status < 500
        assert status != 401


@pytest.mark.parametrize("pattern", [row[:2] for row in ROWS if "{user:name}" in row[1]], ids=" ".join)
def test_a_users_key_opens_nobody_elses_memory(ask, pattern):
    method, path = pattern
    for role, whose in (ROLES["u"], ROLES["s"]):
        assert ask(role, **whose).request(method, path_of(path, "bob")).status_code == 403


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
    assert "30" not in rex.get("/v1/users/ana/facts").text


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
