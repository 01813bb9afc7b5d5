"""The npm package: its client, its middleware for the AI SDK, its plugin for OpenClaw, its types, and the examples of its page."""

from __future__ import annotations

import json
import multiprocessing
import os
import socket
import subprocess
import time
from contextlib import ExitStack

import pytest

from holdfast import Memory
from holdfast.server.gate import ServerSettings
from holdfast.testing.model import unreachable_url
from tests.integrations.frameworks.promises import ModelFails, Promises
from tests.project.test_docs import Server, blocks, missing
from tests.server.proxy.conftest import served

from .conftest import ROOT


class Program:
    """A program with the middleware, or the plugin, and the memories that it reaches, each served."""

    def __init__(self, node, script="middleware.mjs"):
        self.pid, self.stack = os.getpid(), ExitStack()
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen([*node.program, script], cwd=node.app, **pipes)
        self.places = {}

    def __call__(self, memory, text, *, user="ana", conversation="c1", **more):
        if id(memory) not in self.places:
            unlimited = ServerSettings(requests_per_minute=1_000_000, org_requests_per_minute=1_000_000)  # by one key
            address = self.stack.enter_context(served(memory, unlimited)).removesuffix("/v1")
            self.places[id(memory)] = {"address": address, "apiKey": memory.admin.keys.create("app").key}
        place = self.places[id(memory)]
        turn = {"address": place["address"], "apiKey": place["apiKey"], "text": text, "user": user} | more
        self.process.stdin.write(json.dumps(turn | {"conversation": conversation}) + "\n")
        self.process.stdin.flush()
        told = json.loads(self.process.stdout.readline())
        if "failed" in told:
            raise ModelFails(told["failed"])
        return told

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(20)
        self.stack.close()


@pytest.fixture
def program(node):
    running = Program(node)
    yield running
    running.close()


class TestMiddleware(Promises):
    script, in_python = "middleware.mjs", False

    @pytest.fixture(autouse=True)
    def started(self, node):
        self.node, self.program = node, Program(node, self.script)
        yield
        self.program.close()

    def talk(self, memory, text, **more):
        if os.getpid() != self.program.pid:  # in a process of its own, everything is its own
            self.program = Program(self.node, self.script)
        return self.program(memory, text, **more)["seen"][-1]

    def tell(self, path):
        super().tell(path)
        self.program.close()

    def tell_apart(self, path):
        process = multiprocessing.get_context("fork").Process(target=self.tell, args=(path,))
        process.start()
        process.join()

        assert process.exitcode == 0


class TestOpenClaw(TestMiddleware):
    """The plugin, whose hooks a program calls as OpenClaw does."""

    script = "openclaw.mjs"

    def talk(self, memory, text, *, read=True, write=True, **more):
        return super().talk(memory, text, settings={"read": read, "write": write}, **more)

    def test_who_speaks_is_the_sender_else_the_owner(self):
        with Memory(embedder=None) as memory:
            self.talk(memory, "I am a vegetarian.", user="bo")
            self.talk(memory, "I live in Porto.", user=None)
            self.talk(memory, "I play the cello.", user=None, context={"messageProvider": "telegram", "senderId": "7"})

            found = {user: [fact.text for fact in memory.user(user).facts()] for user in ("bo", "me", "telegram:7")}
            assert found == {"bo": ["Is vegetarian."], "me": ["Lives in Porto."], "telegram:7": ["Plays cello."]}

    @pytest.mark.parametrize("context", [{"trigger": "cron"}, {"inputProvenance": {"kind": "inter_session"}}])
    def test_what_no_user_said_is_not_stored(self, context):
        with Memory(embedder=None) as memory:
            assert self.talk(memory, "Run the backup.", context=context) == ["Run the backup."]
            assert self.said(memory) == []

    def test_a_reply_comes_without_a_server(self):
        with Memory(embedder=None) as memory:
            told = self.program(memory, "Hello.", settings={"baseURL": unreachable_url()})

            assert told["seen"] == [["Hello."]]
            assert len(told["errors"]) == 1


@pytest.fixture
def memory():
    with Memory(embedder=None) as memory:
        memory.conversation("before", user="ana").record("I am a vegetarian.", "ok")
        yield memory


def said(memory):
    return [(m.role, m.content) for m in memory.conversation("c1", user="ana").load()]


def test_memory_goes_behind_the_instructions_and_recall_before_the_question(program, memory):
    first = program(memory, "One?")
    history = [{"role": "user", "content": "One?"}, *first["messages"]]
    told = program(memory, "Two?", history=history)

    assert told["errors"] == []
    own = [text for text in told["seen"][0] if "not instructions" not in text]
    assert own == ["You cook.", "One?", "noted: One?", "Two?"]
    assert "vegetarian" in told["seen"][0][1]
    assert told["seen"][0][1] == first["seen"][0][1]


def test_a_stream_is_stored_before_its_end(program, memory):
    told = program(memory, "What may I cook?", stream=True)

    assert told["text"] == "noted: What may I cook?"
    assert said(memory) == [("user", "What may I cook?"), ("assistant", "noted: What may I cook?")]


@pytest.mark.parametrize("stream", [False, True])
def test_of_steps_with_tools_the_reply_is_stored(program, memory, stream):
    told = program(memory, "What may I cook at noon?", calls=True, stream=stream, key="turn-1")

    assert len(told["seen"]) == 2
    assert told["seen"][0][1] == told["seen"][1][1]
    assert said(memory) == [("user", "What may I cook at noon?"), ("assistant", "noted: What may I cook at noon?")]


def test_of_a_stream_that_is_stopped_what_was_heard_is_kept(program, memory):
    program(memory, "What may I cook?", stream=True, stop=True)

    for _ in range(200):
        if len(said(memory)) == 2:
            break
        time.sleep(0.02)
    time.sleep(0.5)  # and it is not stored again
    (_, _), (role, text) = said(memory)
    assert (role, text.startswith("noted: What")) == ("assistant", True)
    assert memory.conversation("c1", user="ana").load()[-1].meta == {"incomplete": True}


def test_of_a_stream_that_ends_with_an_error_what_was_heard_is_kept(program, memory):
    told = program(memory, "What may I cook?", stream=True, breaks=True)

    assert told["text"] == "noted: What may I cook?"
    assert said(memory) == [("user", "What may I cook?"), ("assistant", "noted: What may I cook?")]
    assert memory.conversation("c1", user="ana").load()[-1].meta == {"incomplete": True}


def test_a_memory_that_fails_does_not_cost_the_reply(program, memory):
    told = program(memory, "Hello.")
    program.places[id(memory)]["address"] = unreachable_url().removesuffix("/v1")
    lost = program(memory, "Hello again.")

    assert told["errors"] == []
    assert lost["text"] == "noted: Hello again."
    assert len(lost["errors"]) == 1


def test_who_names_no_user_is_told_so(program, memory):
    with pytest.raises(ModelFails, match="whose memory"):
        program(memory, "Hello.", user=None)


def test_a_message_that_comes_too_often_is_sent_again_in_time(node, memory):
    with served(memory, ServerSettings(requests_per_minute=60)) as address:
        key = memory.admin.keys.create("app").key
        told = node("busy.mjs", HOLDFAST_URL=address.removesuffix("/v1"), HOLDFAST_KEY=key)

    stored = memory.conversation("c", user="ana").load()
    assert [message.content for message in stored] == [f"message {n}" for n in range(8)]
    assert told == {"hurried": True}  # who has no time for the wait gets the error at once


def test_the_client_stores_and_reads(node, memory):
    with served(memory, ServerSettings()) as address, socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        key = memory.admin.keys.create("app").key
        where = {"HOLDFAST_URL": address.removesuffix("/v1"), "HOLDFAST_KEY": key}
        told = node("rest.mjs", **where, SILENT_URL=f"http://127.0.0.1:{silent.getsockname()[1]}")

    stored = memory.conversation("web/42 ü", user="ana/é").load()
    assert [(m.role, m.content, m.meta) for m in stored] == [
        ("user", "I am a vegetarian.", {}),
        ("assistant", "Noted!", {"n": 1}),
    ]
    assert [receipt["seqs"] for receipt in told["receipts"]] == [[1, 2]] * 3
    assert [receipt["duplicate"] for receipt in told["receipts"]] == [False, True, True]
    assert told["context"]["budget_tokens"] == 800
    assert "vegetarian" in json.dumps(told["context"]["messages"])
    assert "vegetarian" not in json.dumps(told["other"]["messages"])
    assert [message["content"] for message in told["messages"]] == ["I am a vegetarian.", "Noted!"]
    assert [message["seq"] for message in told["last"]] == [2]
    assert [fact["text"] for fact in told["facts"]] == ["Is vegetarian."]
    assert any("vegetarian" in hit["text"] for hit in told["found"])
    assert (told["reused"]["name"], told["reused"]["status"], told["reused"]["code"]) == (
        "HoldfastError",
        422,
        "key-reused",
    )
    assert (told["unknown"]["status"], told["unknown"]["code"]) == (404, "not-found")
    assert "whose memory" in told["unnamed"]["message"]
    assert told["late"]["name"] == "TimeoutError"


def test_the_types_hold(node):
    options = [
        "--noEmit",
        "--strict",
        "--skipLibCheck",
        "--module",
        "nodenext",
        "--target",
        "es2022",
        "--preserveSymlinks",
    ]
    done = subprocess.run(
        ["node_modules/.bin/tsc", *options, "app/types.ts"], cwd=node.app.parent, capture_output=True, text=True
    )

    assert done.returncode == 0, done.stdout


def test_what_is_published_is_what_the_package_names(node):
    done = subprocess.run(
        ["npm", "pack", "--dry-run", "--json"], cwd=ROOT / "npm", capture_output=True, text=True, check=True
    )
    (packed,) = json.loads(done.stdout)

    assert {file["path"] for file in packed["files"]} == {path.name for path in (ROOT / "npm").iterdir()}


def test_the_examples_of_the_page_run(node, tmp_path):
    found = blocks((ROOT / "docs/integrations/ai-sdk.md").read_text(encoding="utf-8"))
    server = Server.start(tmp_path)
    printed = ""
    try:
        for block in found:
            if block.kind == "js":
                (node.app / "example.mjs").write_text(block.text, encoding="utf-8")
                env = {**os.environ, "HOLDFAST_URL": server.address, "HOLDFAST_KEY": server.key}
                command = [*node.program, "example.mjs"]
                done = subprocess.run(command, cwd=node.app, env=env, capture_output=True, text=True, timeout=60)
                assert done.returncode == 0, done.stderr
                printed = done.stdout
            elif block.kind == "text":
                assert missing(block.text.splitlines(), printed) == [], printed
    finally:
        server.stop()

    assert sum(block.kind == "js" for block in found) == 2
