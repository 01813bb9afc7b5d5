"""A canary in every place where a secret is kept, and a day of use, with faults: none of them is heard of again."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import logging
import traceback
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import holdfast.llm
from holdfast import Config, Memory
from holdfast.llm.guarded_http import upstream_client
from holdfast.llm.protocol import ModelError, Request
from holdfast.llm.sealing import MASTER, keyring
from holdfast.server.app import create_app
from holdfast.server.gate import ServerSettings
from holdfast.testing.fakes import HashEmbedder
from holdfast.testing.model import ModelServer, ServerAnswer, ServerRequest

from .conftest import BASE
from .test_roles import path_of

MASTER_KEY = base64.b64encode(b"master canary: thirty-two bytes!").decode()
OPERATORS = "sk-canary-operators-own-9Qx2"
USERS, ORGS, REPLACED = "sk-canary-of-ana-7Lm3", "sk-canary-of-acme-4Vt8", "sk-canary-replaced-1Kz6"
UPSTREAM = "sk-canary-upstream-3Hw5"
GUESSED = "hf_canarycanary_typed-where-it-opens-nothing-5Rb0Zx8Nc2Wq7"
IDEMPOTENCY = "canary-idempotency-6Pd9"
BODY = "sk-canary-in-a-body-2Fj4"


def echo(asked: ServerRequest) -> ServerAnswer:
    """A provider that refuses, and repeats what it was sent, key and all."""
    return ServerAnswer(text=f"Incorrect API key provided: {json.dumps(dict(asked.headers))}", status=401)


class Day:
    """One memory and its server, with what was said about them wherever anybody could hear it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "memory.db"
        self.heard = io.StringIO()
        self.said: list[str] = []
        self.secrets = {MASTER_KEY, OPERATORS, USERS, ORGS, REPLACED, UPSTREAM, GUESSED, BODY}
        self.only_in_the_store = {IDEMPOTENCY}

    def say(self, *things: object) -> None:
        self.said += [thing if isinstance(thing, str) else repr(thing) for thing in things]

    def leaks(self, text: str) -> list[str]:
        """The secrets in a text: as they are, or as bytes in base64 or hexadecimal."""
        forms = {
            form: secret
            for secret in self.secrets
            for form in (secret, base64.b64encode(secret.encode()).decode()[:-4], secret.encode().hex())
        }
        forms["master canary: thirty"] = forms[b"master canary".hex()] = MASTER_KEY
        return sorted({secret for form, secret in forms.items() if form in text})

    def bytes_on_disk(self) -> str:
        return "".join(path.read_bytes().decode("latin-1") for path in sorted(self.path.parent.iterdir()))


@contextlib.contextmanager
def listening(heard: io.StringIO) -> Iterator[None]:
    """Every logger there is, at every level."""
    root, handler = logging.getLogger(), logging.StreamHandler(heard)
    before = root.level
    names = ["holdfast", "httpx2", "httpcore2", "openai", "anthropic", "google_genai", "uvicorn", "asyncio", "mcp"]
    levels = {name: logging.getLogger(name).level for name in names}
    root.addHandler(handler)
    for name in ("", *names):
        logging.getLogger(name or None).setLevel(logging.DEBUG)
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(before)
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Day]:
    found = Day(tmp_path_factory.mktemp("day"))
    with pytest.MonkeyPatch.context() as patch, listening(found.heard), ModelServer(echo) as server:
        patch.setenv(MASTER, MASTER_KEY)
        for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "HOLDFAST_UPSTREAM_API_KEY"):
            patch.setenv(variable, OPERATORS)
        usual = holdfast.llm.model("openai:usual", base_url=server.url, api_key=OPERATORS)
        config = Config(allow_private_endpoints=("127.0.0.1",))
        settings = ServerSettings(upstream_base_url=server.url, upstream_key=UPSTREAM)
        with Memory(found.path, llm=usual, embedder=HashEmbedder(), config=config) as memory:
            app = create_app(memory, settings)
            with TestClient(app, base_url=BASE, raise_server_exceptions=False) as client:
                spend(found, memory, client, server.url)
                look_around(found, memory, app, client)
            found.say(
                memory,
                memory.admin.provider_keys,
                usual,
                usual.address,
                settings,
                app,
                config,
                keyring(),
                keyring().masters,
            )
        usual.close()
        yield found


def spend(day: Day, memory: Memory, client: TestClient, url: str) -> None:
    """Keys of every role, a token, a browser, provider keys, chats; calls that work and calls that do not."""
    roles: list[tuple[Any, dict[str, str]]] = [
        ("operator", {}), ("app", {"org": "acme"}), ("user", {"user": "ana"}), ("subject", {"user": "ana", "subject": "rex"}),
    ]  # fmt: skip
    keys = [memory.admin.keys.create(role, **whose) for role, whose in roles]
    day.secrets |= {made.key for made in keys}
    day.say(keys, memory.admin.keys.list(), memory.admin.keys.check(keys[0].key))
    operator = {"Authorization": f"Bearer {keys[0].key}"}

    token = client.post("/v1/tokens", json={"user": "ana"}, headers=operator).json()["key"]
    made = client.post("/v1/keys", json={"role": "app", "name": "web"}, headers=operator).json()["key"]
    day.secrets |= {token, made}
    browser = client.post("/sign-in", data={"key": keys[0].key}, follow_redirects=False)
    day.secrets.add(browser.cookies["holdfast_key"])
    client.cookies.clear()
    day.browser = browser.cookies["holdfast_key"]  # type: ignore[attr-defined]
    day.keys = [keys[0].key, keys[2].key]  # type: ignore[attr-defined]

    ana, acme = {"user": "ana"}, {"org": "acme"}
    day.say(
        memory.admin.provider_keys.set("openai", "own", REPLACED, url, **ana),
        memory.admin.provider_keys.set("openai", "own", USERS, url, **ana),
    )
    day.say(memory.admin.provider_keys.set("anthropic", "ours", ORGS, url.removesuffix("/v1"), **acme))
    for user, org in (("ana", "default"), ("bob", "acme"), ("cy", "default")):
        chat = memory.conversation("c", user=user, org=org)
        for n, words in enumerate(
            ("I live in Porto.", "I have a dog.", "I work as a nurse.", "I like tea.", "I moved.")
        ):
            chat.append([{"role": "user", "content": words}], idempotency_key=f"{IDEMPOTENCY}-{user}-{n}")
        chat.end()
    day.say(memory.digest(), memory.jobs())
    headers = operator | {"Idempotency-Key": f"{IDEMPOTENCY}-http", "Content-Type": "application/json"}
    path = "/v1/users/ana/conversations/c/messages"
    bad = [b"{", b'{"messages": "%s"}' % BODY.encode(), json.dumps({"key": BODY, BODY: BODY}).encode()]
    answers = [client.post(path, content=body, headers=headers) for body in bad]
    answers += [client.put("/v1/users/ana/provider-keys", content=body, headers=headers) for body in bad]
    wrong = {"provider": "openai", "model": BODY + " x", "key": BODY, "base_url": f"https://{BODY}@localhost/"}
    answers += [client.put("/v1/users/ana/provider-keys", json=wrong, headers=operator)]
    answers += [client.post("/v1/chat/completions", json={"model": "m", "messages": []}, headers=operator)]
    for scheme in ("Bearer", "Basic", "bearer"):
        answers.append(client.get("/v1/whoami", headers={"Authorization": f"{scheme} {GUESSED}"}))
    answers.append(client.post("/sign-in", data={"key": GUESSED}, follow_redirects=False))
    answers.append(client.get("/me", headers={"Cookie": f"holdfast_key={GUESSED}"}, follow_redirects=False))
    client.cookies.clear()
    day.say(*(f"{answer.status_code} {dict(answer.headers)} {answer.text}" for answer in answers))


def look_around(day: Day, memory: Memory, app: Any, client: TestClient) -> None:
    """Every address that can be read, with each key and in a browser; and what objects and errors say."""
    ways = [{"Authorization": f"Bearer {key}"} for key in day.keys]  # type: ignore[attr-defined]
    ways += [{"Cookie": f"holdfast_key={day.browser}", "Accept": "text/html"}]  # type: ignore[attr-defined]
    for route in app.state.table.routes:
        if route.method == "GET" and not {"mcp", "events"} & set(route.path.split("/")):
            for way in ways:
                answer = client.get(path_of(route.path), headers=way, follow_redirects=False)
                day.say(f"{route.path}: {dict(answer.headers)} {answer.text}")
        elif not route.whole:
            way = ways[0] | {"Content-Type": "application/json"}
            if route.path.endswith(("/erase", "/reset", "{user:name}", "/sign-out")) or route.method == "DELETE":
                continue
            answer = client.request(
                route.method, path_of(route.path), headers=way, json={BODY: BODY}, follow_redirects=False
            )
            day.say(f"{route.path}: {answer.text}")
        client.cookies.clear()
    for user, org in (("ana", "default"), ("bob", "acme")):
        upstream = memory.admin.provider_keys.upstream(user=user, org=org)
        assert upstream is not None
        model = memory._engine.provider_keys.model(memory._engine.provider_keys.row(org, user))
        try:
            model.ask(Request("facts", "Read.", "I moved.", "abc", timeout_s=5))
        except ModelError as error:
            day.say("".join(traceback.format_exception(error)), error, repr(error), vars(error))
        allowed = memory.config.allow_private_endpoints
        day.say(
            upstream, model, memory.admin.provider_keys.list(user=user, org=org), upstream_client(upstream, allowed)
        )
        day.say(json.dumps(memory.user(user, org=org).export(), default=repr))
    day.say(memory.usage(by=["org", "user", "model"]), memory.doctor(), memory.jobs(), memory._engine.work.default)
    told = [event for org in ("default", "acme") for event in memory.admin.events.of_org(org, limit=1_000)]
    assert {"vault.set", "key.made"} <= {event.kind for event in told}
    day.say(told)
    memory.backup(day.path.parent / "copy.db")


def test_the_day_had_what_it_was_about(day):
    """The keys were sent where they belong, refused there, and every place was looked at."""
    reasons = "".join(day.said)
    assert "refused the key" in reasons
    assert "openai:own" in reasons
    assert "anthropic:ours" in reasons
    assert "/metrics" in reasons
    assert len(day.said) > 100
    assert len(day.secrets) >= 14
    assert len(day.heard.getvalue()) > 10_000


def test_no_secret_is_in_any_answer_error_page_or_text_of_an_object(day):
    assert [(secret, text[:200]) for text in day.said for secret in day.leaks(text)] == []


def test_no_secret_is_in_the_logs_at_any_level(day):
    lines = day.heard.getvalue().splitlines()
    assert [(secret, line[:300]) for line in lines for secret in day.leaks(line)] == []
    assert not any(IDEMPOTENCY in line for line in lines)


def test_no_secret_is_in_the_bytes_of_the_store_its_log_or_its_copy(day):
    assert {path.name for path in day.path.parent.iterdir()} >= {"memory.db", "copy.db"}
    assert day.leaks(day.bytes_on_disk()) == []


def test_the_search_finds_what_it_looks_for(day):
    """The canaries are looked for in every form; a store that kept one in plain text would be found out."""
    for told in (f"x{USERS}y", base64.b64encode(USERS.encode()).decode(), USERS.encode().hex()):
        assert day.leaks(told) == [USERS]


def test_a_key_that_is_compared_is_compared_in_the_same_time(memory):
    """The whole secret is hashed and compared by `hmac.compare_digest`; where a guess is wrong makes no difference."""
    made = memory.admin.keys.create("app", expires_at=timedelta(hours=1))
    first, last = made.key[:16] + "A" + made.key[17:], made.key[:-1] + ("A" if made.key[-1] != "A" else "B")
    assert memory.admin.keys.check(first) is memory.admin.keys.check(last) is None
    assert memory.admin.keys.check(made.key) is not None
