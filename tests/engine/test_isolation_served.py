"""
Nobody reads another over the network: the walks of test_isolation through HTTP, with keys of every role, and through MCP.

Whose key it is changes from call to call: the operator's, an app's, an app's of one assistant, the user's own, that of
one subject.  Users knock at each other's doors with their own keys; assistants look things up.
"""

from __future__ import annotations

import asyncio
import itertools
from urllib.parse import quote

import httpx
import httpx2
import mcp
import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test
from mcp.client.streamable_http import streamable_http_client

from holdfast import Memory
from holdfast.client import Client
from holdfast.errors import HoldfastError
from holdfast.server import gate, schemas

from .test_isolation import PLACES, SOMEBODY, WALK, Walk, words
from .test_isolation_erasing import ErasingWalk

SEE = frozenset(
    "load summaries episodes learned recall rebuilds state facts fact history search rejected conversations profile status".split()
)
MEND = frozenset("edit forget clear remember correct restore never_true export erase pause resume".split())
DOORS = ("facts", "conversations", "profile", "rejected", "consent", "export", "history?category=home")


class Current:
    """The memory of the example that runs, for a server that outlives it."""

    def __init__(self, first) -> None:
        self.memory = first

    def __getattr__(self, name):
        return getattr(self.memory, name)

    @property
    def admin(self):
        return AdminDoor(lambda: self.memory.admin)


class Door:
    def __init__(self, find) -> None:
        self._find = find

    def __getattr__(self, name):
        return getattr(self._find(), name)


class AdminDoor(Door):
    @property
    def keys(self):
        return Door(lambda: self._find().keys)


class Keyring:
    """A door whose every call is made with the key of another role that may make it."""

    def __init__(self, walk, user, subject, opened) -> None:
        self._walk, self._user, self._subject, self._opened = walk, user, subject, opened

    def __getattr__(self, name):
        roles = ["operator", "app", "app of the bot"]
        if name in SEE | MEND:
            roles += ["user", "user of the bot"]
        if name in SEE and self._subject is not None:
            roles += ["subject"]
        role = roles[next(self._walk.turn) % len(roles)]
        return getattr(self._opened(self._walk.client(role, self._user, self._subject)), name)


class Served:
    """Mixed into a walk: its users use clients of a server at `address`, which serves `current`."""

    current: Current
    address: str
    http: httpx2.Client

    def reached(self, memory):
        self.current.memory = self.engine = memory
        self.turn, self.made = itertools.count(), {}
        return self.client("operator", ("default", "", ""), None)

    def teardown(self) -> None:
        if hasattr(self, "library"):
            self.engine.close()

    def key(self, role, owner, subject) -> str:
        org, user, bot = owner
        whose = {"org": "default" if role == "operator" else org}
        if role.endswith("bot"):
            whose["bot"] = bot
        if role.startswith(("user", "subject")):
            whose["user"] = user
        if role.startswith("subject"):
            whose["subject"] = subject
        wanted = (role, *sorted(whose.items()))
        if wanted not in self.made:
            self.made[wanted] = self.engine.admin.keys.create(role.split()[0], **whose).key
        return self.made[wanted]

    def client(self, role, user, subject) -> Client:
        return Client(self.address, key=self.key(role, user, subject), http=self.http)

    def chat(self, owner, subject, conversation):
        org, user, bot = owner
        return Keyring(
            self,
            owner,
            subject,
            lambda client: client.conversation(conversation, user=user, org=org, bot=bot, subject=subject),
        )

    def somebody(self, owner, subject):
        org, user, bot = owner
        return Keyring(self, owner, subject, lambda client: client.user(user, org=org, bot=bot, subject=subject))

    @rule(
        who=SOMEBODY, whom=SOMEBODY, role=st.sampled_from(["app of the bot", "user of the bot", "subject of the bot"])
    )
    def knocks(self, who, whom, role):
        """A key opens its own memory and no other; who is refused learns nothing."""
        owner, (org, user, bot) = self.cast[who], self.cast[whom]
        headers = {"Authorization": f"Bearer {self.key(role, owner, 'b')}", "X-Holdfast-Org": quote(org, safe="")}
        own = (owner[0], user if role.startswith("app") else owner[1], owner[2]) == (org, user, bot)
        for door in DOORS:
            path = f"{self.address}/v1/users/{quote(user, safe='')}/{door}{'&' if '?' in door else '?'}bot={quote(bot)}"
            answer = self.http.get(path, headers=headers)
            subjects_export = role.startswith("subject") and door == "export"
            assert (answer.status_code == 200) == (own and not subjects_export), (answer.status_code, path)
            if not own:
                assert words(answer.text) == set()

    @rule(who=SOMEBODY, place=PLACES, by=st.sampled_from(["user of the bot", "app"]))
    def assists(self, who, place, by):
        """What an assistant's tools tell is this user's, whatever it writes into their arguments."""
        user = self.cast[who]
        subject, conversation = self.at(place)
        self.memory.digest()
        told = asyncio.run(self.by_tools(user, subject, conversation, by))
        allowed = self.own(user, subject) | self.lived(user)
        assert words(told) <= allowed
        assert {home.lower() for home in self.home.get(user, [])[-1:]} <= words(told["list_memories"])

    async def by_tools(self, owner, subject, conversation, by):
        org, user, bot = (quote(name, safe="") for name in owner)
        headers = {"Authorization": f"Bearer {self.key(by, owner, subject)}", "X-Holdfast-Org": org}
        if by == "app":
            headers["X-Holdfast-User"] = user
        about = "" if subject is None else f"&subject={quote(subject, safe='')}"
        other = {"user": "a", "user_id": "a", "org": "a", "bot": "a"}
        calls = {
            "list_memories": {"limit": 1000},
            "search_memory": {"query": "Where do I live, what was lovely?", "limit": 50},
            "memory_history": {"category": "home"},
            "get_context": {"query": "Where do I live?", "conversation": conversation},
        }
        async with httpx.AsyncClient(headers=headers) as http:
            transport = streamable_http_client(f"{self.address}/mcp?bot={bot}{about}", http_client=http)
            async with mcp.Client(transport) as client:
                found = {}
                for name, arguments in calls.items():
                    answer = await client.call_tool(name, arguments | other)
                    assert not answer.is_error, answer.content
                    found[name] = str(answer.structured_content)
                return found


def walking(walk, current, address, http, **more):
    return type("ServedWalk", (Served, walk), {"current": current, "address": address, "http": http, **more})


@pytest.fixture(scope="module")
def place(served):
    with Memory(embedder=None) as first:
        current = Current(first)
        with served(current) as address, httpx2.Client() as http:
            yield current, address, http
            current.memory = first


SERVED = settings(WALK, max_examples=12, stateful_step_count=25)


def test_nobody_reads_another(place):
    run_state_machine_as_test(walking(Walk, *place), settings=SERVED)


def test_nobody_is_touched_by_anothers_erasure(place):
    run_state_machine_as_test(walking(ErasingWalk, *place), settings=settings(SERVED, max_examples=8))


def any_user(patch):
    """A gate that does not look whose the key is."""
    whole = gate.grant
    patch.setattr(
        gate,
        "grant",
        lambda key, route, names, headers, query: whole(
            type(key)(**{**{n: getattr(key, n) for n in key.__slots__}, "user": names.get("user", key.user)}),
            route, names, headers, query,
        ),
    )  # fmt: skip


def any_bot(patch):
    """A door that opens the default assistant's memory for all."""
    user = schemas.Caller.user
    patch.setattr(
        schemas.Caller,
        "user",
        lambda self: user(type(self)(self.memory, type(self.grant)(**{**slots(self.grant), "bot": "default"}))),
    )


def names_stripped(patch):
    """Names that lose their blanks on the way."""
    patch.setattr(gate, "unquote", lambda text, errors="": httpx2.URL(f"http://x/{text}").path[1:].strip())


def slots(value):
    return {name: getattr(value, name) for name in value.__slots__}


@pytest.mark.parametrize("plant", [any_user, any_bot, names_stripped])
def test_every_planted_leak_is_found(place, plant, monkeypatch):
    """The walk is worth as much as the bugs that it finds."""
    plant(monkeypatch)
    patient = settings(SERVED, max_examples=60, report_multiple_bugs=False, derandomize=True, phases=(Phase.generate,))
    parts = {any_user: 1, any_bot: 2, names_stripped: 0}
    with pytest.raises((AssertionError, HoldfastError, IndexError)):
        run_state_machine_as_test(walking(Walk, *place, differs=parts[plant]), settings=patient)
