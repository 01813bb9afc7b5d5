"""Tables of abuse: names and pages that are not ours, cookies from elsewhere, bodies without measure, other users's names."""

from __future__ import annotations

import itertools
import json

import apsw
import pytest
from starlette.testclient import TestClient

from holdfast import Memory
from holdfast.server.app import create_app
from holdfast.server.gate import ServerSettings
from holdfast.testing.fakes import HashEmbedder

from .conftest import BASE
from .test_roles import path_of

HOSTS = {
    "127.0.0.1:7800": 200,
    "127.0.0.1:1": 200,  # where a port is forwarded, the name says another one
    "[::1]": 200,
    "memory.example.org": 200,
    "MEMORY.example.ORG:443": 200,
    "memory.example.org.": 421,
    "localhost.": 421,
    "localhost:": 421,
    "localhost:x": 421,
    "localhost:7800:7800": 421,
    "localhost:-1": 421,
    "localhost:7800@evil.test": 421,
    "evil.test@localhost:7800": 421,
    "localhost/": 421,
    "localhost?": 421,
    "localhost\\evil.test": 421,
    "localhost, evil.test": 421,
    "localhost evil.test": 421,
    "http://localhost": 421,
    "[127.0.0.1]": 421,
    "[localhost]": 421,
    "::1": 421,
    "[::1": 421,
    "[::1]]": 421,
    "[::1].evil.test": 421,
    "[::ffff:127.0.0.1]": 421,
    "0:0:0:0:0:0:0:1": 421,
    "127.1": 421,
    "2130706433": 421,
    "0x7f000001": 421,
    "127.0.0.1.nip.test": 421,
    "sub.memory.example.org": 421,
    "memory.example.org.evil.test": 421,
    "xmemory.example.org": 421,
    "\u217aocalhost": 421,
    "": 421,
    " ": 421,
}
OWN, ALLOWED = BASE, "https://chat.example"
ORIGINS = [
    None,
    OWN,
    ALLOWED,
    "null",
    "https://evil.test",
    "http://127.0.0.1:7801",
    "https://127.0.0.1:7800",
    f"{OWN}.evil.test",
]
SITES = [None, "same-origin", "same-site", "cross-site", "none"]
TYPES = ["application/x-www-form-urlencoded", "text/plain", "application/json", "multipart/form-data; boundary=x"]


@pytest.fixture
def settings():
    return ServerSettings(allowed_hosts=("memory.example.org",), allowed_origins=(ALLOWED,), max_body_bytes=2**20)


@pytest.mark.parametrize(("host", "status"), HOSTS.items())
def test_no_spelling_of_another_name_is_taken_for_our_own(ask, host, status):
    for path in ("/healthz", "/sign-in", "/static/style.css"):
        assert ask(None).get(path, headers={"Host": host.encode()}).status_code == status


def state(path) -> list[object]:
    """Everything in the store but what reading notes: when something was used last, and the keys of the test itself."""
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    tables = [row[0] for row in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")]
    left_out = {"api_key", "holdfast_migration"}
    found = [(table, db.execute(f'SELECT * FROM "{table}"').fetchall()) for table in tables if table not in left_out]
    db.close()
    return found


@pytest.fixture
def world(tmp_path, settings):
    """A memory in a file, its application, and a signed-in browser's cookie of a user."""
    path = tmp_path / "memory.db"
    with Memory(path, embedder=HashEmbedder()) as memory:
        chat = memory.conversation("c", user="ana")
        chat.record("I live in Porto.", "Noted.")
        memory.digest()
        client = TestClient(create_app(memory, settings), base_url=BASE, raise_server_exceptions=False)
        cookies = {
            role: memory.admin.keys.create(role, **({"user": "ana"} if role == "user" else {})).key
            for role in ("operator", "user")
        }
        yield memory, client, cookies, path
        client.close()


def allowed_by_origin(method: str, origin: str | None, site: str | None) -> bool:
    """The rule in other words: a cookie counts for what only reads and is not embedded elsewhere, or from our own page."""
    if method == "GET":
        return origin in (None, OWN) and site in (None, "none", "same-origin")
    return (origin is None and site == "same-origin") or (origin == OWN and site in (None, "same-origin"))


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
def test_a_cookie_counts_from_our_own_pages_alone(world, method):
    """Each method x origin x site x content type, on the API (where no cookie counts at all) and on pages."""
    _memory, client, cookies, path = world
    before, seen = state(path), 0
    for origin, site, kind in itertools.product(ORIGINS, SITES, TYPES):
        headers = {"Cookie": f"holdfast_key={cookies['user']}", "Content-Type": kind}
        headers |= {} if origin is None else {"Origin": origin}
        headers |= {} if site is None else {"Sec-Fetch-Site": site}
        for address in ("/v1/users/ana", "/v1/users/ana/facts", "/v1/users/ana/consent", "/v1/keys"):
            answer = client.request(method, address, headers=headers, content=b"{}", follow_redirects=False)
            assert answer.status_code in (401, 403, 405), (origin, site, kind, address)
            seen += 1
        page = client.request(method, "/me", headers=headers, content=b"", follow_redirects=False)
        let_in = page.status_code not in (303, 401, 403)
        if not allowed_by_origin(method, origin, site):
            assert not let_in, (origin, site, kind, page.status_code)
    assert seen == len(ORIGINS) * len(SITES) * len(TYPES) * 4
    assert state(path) == before


@pytest.mark.parametrize(
    "origin", ["null", "https://evil.test", ALLOWED, f"{OWN}.evil.test", "http://localhost.evil.test:7800"]
)
def test_no_form_of_another_page_changes_anything(world, origin):
    """Every page route that changes something, as a form that a page elsewhere sends with the user's cookie."""
    _memory, client, cookies, path = world
    before = state(path)
    forms = [route for route in client.app.state.table.routes if route.page and route.method == "POST"]
    assert forms
    for route in forms:
        for role in ("operator", "user"):
            headers = {"Cookie": f"holdfast_key={cookies[role]}", "Origin": origin, "Sec-Fetch-Site": "cross-site"}
            answer = client.post(path_of(route.path), headers=headers, data={"sure": "yes"}, follow_redirects=False)
            assert answer.status_code == 403, route.path
    assert state(path) == before


def test_reading_changes_nothing(world):
    """Every GET there is, with a key and in a browser: the store holds the same afterwards."""
    memory, client, cookies, path = world
    before = state(path)
    for route in client.app.state.table.routes:
        if route.method != "GET" or {"mcp", "events"} & set(route.path.split("/")):
            continue
        for headers in (
            {"Authorization": f"Bearer {cookies['operator']}"},
            {"Cookie": f"holdfast_key={cookies['user']}", "Sec-Fetch-Site": "none", "Accept": "text/html"},
        ):
            assert client.get(path_of(route.path), headers=headers, follow_redirects=False).status_code < 500, (
                route.path
            )
    assert state(path) == before
    assert memory.doctor().ok


@pytest.mark.parametrize("preflight", [ALLOWED, "https://evil.test", "null"])
def test_scripts_of_other_pages_are_told_nothing(ask, preflight):
    answer = ask(None).options(
        "/v1/users/ana/facts", headers={"Origin": preflight, "Access-Control-Request-Method": "DELETE"}
    )
    open_to = answer.headers.get("access-control-allow-origin")
    assert open_to == (ALLOWED if preflight == ALLOWED else None)
    assert "*" not in str(answer.headers)
    assert "access-control-allow-credentials" not in answer.headers


def nested(depth: int, kind: str) -> bytes:
    opened, closed = {"list": (b"[", b"]"), "object": (b'{"a":', b"}")}[kind]
    return opened * depth + (b"1" if kind == "object" else b"") + closed * depth


BODIES = {
    "a deep list": nested(100_000, "list"),
    "a deep object": nested(100_000, "object"),
    "a list that never ends": b"[" * 500_000,
    "a deep content": b'{"messages":[{"role":"user","content":' + nested(50_000, "list") + b"}]}",
    "a less deep content": b'{"messages":[{"role":"user","content":' + nested(400, "list") + b"}]}",
    "a deep meta": b'{"messages":[{"role":"user","content":"x","m":' + nested(50_000, "object") + b"}]}",
    "a less deep meta": b'{"messages":[{"role":"user","content":"x","m":' + nested(400, "object") + b"}]}",
    "a number of 100,000 digits": b'{"messages":[{"role":"user","content":"x","n":' + b"9" * 100_000 + b"}]}",
    "a number beyond all": b'{"messages":[{"role":"user","content":"x","n":1e999999}]}',
    "no number": b'{"messages":[{"role":"user","content":"x","n":NaN}]}',
    "a name of a megabyte": b'{"messages":[{"role":"user","content":"x","name":"' + b"a" * 900_000 + b'"}]}',
    "a key of a megabyte": b'{"messages":[{"role":"user","content":"x","' + b"a" * 900_000 + b'":1}]}',
    "many keys": b'{"messages":[{"role":"user","content":"x"'
    + b"".join(b',"k%d":1' % n for n in range(80_000))
    + b"}]}",
    "the same key twice": b'{"messages":[{"role":"user","content":"x"}],"messages":[]}',
    "half a surrogate": b'{"messages":[{"role":"user","content":"\\ud800"}]}',
    "UTF-16": '{"messages":[{"role":"user","content":"x"}]}'.encode("utf-16"),
    "UTF-7": b"+AHsAIg-",
    "a NUL": b'{"messages":[{"role":"user","content":"a\\u0000b"}]}',
    "a prototype": b'{"__proto__":{"x":1},"constructor":{"prototype":{}},"messages":[{"role":"user","content":"x"}]}',
    "an object to be revived": b'{"messages":[{"role":"user","content":"x","lc":1,"type":"secret","id":["OPENAI_API_KEY"],"__reduce__":"os"}]}',
}


@pytest.mark.parametrize("what", BODIES)
@pytest.mark.parametrize(
    "address",
    ["/v1/users/ana/conversations/c/messages", "/v1/users/ana/search", "/v1/import", "/mcp", "/v1/chat/completions"],
)
def test_no_body_breaks_the_server(ask, address, what):
    app = ask("app")
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "X-Holdfast-User": "ana",
    }
    with app:
        answer = app.post(address, content=BODIES[what], headers=headers)
        assert answer.status_code < 500 or answer.json()["code"].startswith("no-upstream"), answer.text[:300]
        assert app.get("/v1/users/ana/conversations/c/messages").status_code == 200


@pytest.mark.parametrize("size", [201, 10_000, 60_000])
def test_a_long_name_is_refused_wherever_it_stands(ask, size):
    name, app = "n" * size, ask("operator")
    answers = [
        app.get(f"/v1/users/{name}/facts"),
        app.get("/v1/users/ana/facts", headers={"X-Holdfast-Org": name}),
        app.get(f"/v1/users/ana/conversations/{name}/messages"),
        app.get("/v1/users/ana/facts", params={"bot": name}),
        app.get("/v1/users/ana/facts", params={"subject": name}),
        app.post("/v1/keys", json={"role": "app", "name": name}),
        app.post("/v1/tokens", json={"user": name}),
    ]
    assert {answer.status_code for answer in answers} <= {413, 414, 422}
    assert all(name not in answer.text for answer in answers)


WAYS = [
    ("an org in the header", {"headers": {"X-Holdfast-Org": "other"}}),
    ("an org in the header, encoded", {"headers": {"X-Holdfast-Org": "%6fther"}}),
    ("an org in the query", {"params": {"org": "other"}}),
    ("a user in the header", {"headers": {"X-Holdfast-User": "bob"}}),
    ("a user in the query", {"params": {"user": "bob"}}),
    ("another bot", {"params": {"bot": "other"}}),
    ("another bot, named last", {"params": [("bot", "default"), ("bot", "other")]}),
    ("another bot, named first", {"params": [("bot", "other"), ("bot", "default")]}),
]


@pytest.mark.parametrize(("way", "sent"), WAYS, ids=[way for way, _ in WAYS])
def test_no_way_of_naming_leads_to_somebody_elses_memory(ask, memory, way, sent):
    """Whatever a key's request says beside its path, it sees its own memory or nothing."""
    canaries = {}
    for org, user, bot in itertools.product(("default", "other"), ("ana", "bob"), ("default", "other")):
        canaries[org, user, bot] = f"canary-{org}-{user}-{bot}"
        memory.conversation("c", user=user, org=org, bot=bot).record(f"The word is {canaries[org, user, bot]}.")
    own = canaries["default", "ana", "default"]
    for asks in (ask("user", user="ana", bot="default"), ask("app", bot="default")):
        for address in (
            "/v1/users/ana/conversations/c/messages",
            "/v1/users/ana/export",
            "/v1/users/ana/conversations",
        ):
            answer = asks.get(address, **sent)
            assert not [word for word in canaries.values() if word != own and word in answer.text], (way, address)
        found = asks.post("/v1/users/ana/search", json={"query": "which word is it"}, **sent)
        assert not [word for word in canaries.values() if word != own and word in found.text]
    body = {"messages": [{"role": "user", "content": "x"}], "org": "other", "user": "bob", "bot": "other"}
    assert ask("app").post("/v1/users/ana/conversations/c/messages", json=body).status_code == 422


def test_an_operator_names_the_org_of_a_user_in_the_query_too(ask, memory):
    """What was meant for one tenant is never written to another."""
    body = {"messages": [{"role": "user", "content": "I use PostgreSQL."}]}
    operator = ask("operator")

    assert operator.post("/v1/users/ana/conversations/c/messages", json=body, params={"org": "acme"}).status_code == 201
    assert [fact.text for fact in memory.user("ana", org="acme").facts()] == ["Uses PostgreSQL."]
    assert memory.user("ana").facts() == []
    assert ask("app").get("/v1/users/ana/facts", params={"org": "acme"}).status_code == 403


def test_a_key_that_ended_opens_nothing_on_any_route(ask, memory):
    app = ask("operator")
    key = app.headers["authorization"].removeprefix("Bearer ")
    routes = [route for route in app.app.state.table.routes if route.roles is not None]
    memory.admin.keys.revoke(key.split("_")[1])
    for route in routes:
        answer = app.request(route.method, path_of(route.path), content=json.dumps({}), follow_redirects=False)
        assert answer.status_code in (303, 401), route.path
