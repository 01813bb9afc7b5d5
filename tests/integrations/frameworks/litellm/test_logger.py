"""LiteLLM's SDK, its router and its proxy with `MemoryLogger`."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from urllib.error import URLError
from urllib.request import Request, urlopen

import litellm
import pytest
from litellm import CustomLLM

from holdfast import Memory, with_memory
from holdfast.errors import ConfigError, StoreUnavailable
from holdfast.integrations.common import AdapterMemory
from holdfast.integrations.litellm import MemoryLogger
from holdfast.testing.model import unreachable_url
from tests.integrations.frameworks.promises import ModelFails, Promises
from tests.server.proxy.upstream import serving, stream


class Parrot(CustomLLM):
    """Notes what it is asked, and repeats the last words of the user."""

    def __init__(self):
        super().__init__()
        self.seen, self.failures = [], 0

    def reply(self, messages, response):
        self.seen.append([dict(message) for message in messages])
        if self.failures:
            self.failures -= 1
            raise ModelFails("no model")
        said = [message["content"] for message in messages if message["role"] == "user"]
        response.choices[0].message.content = f"noted: {said[-1]}"
        return response

    def completion(self, model, messages, api_base, custom_prompt_dict, model_response, *args, **more):
        return self.reply(messages, model_response)

    async def acompletion(self, model, messages, api_base, custom_prompt_dict, model_response, *args, **more):
        return self.reply(messages, model_response)

    async def astreaming(self, model, messages, *args, **more):
        text = self.reply(messages, litellm.ModelResponse()).choices[0].message.content
        for word in (*text.split(" "), None):
            yield {
                "text": "" if word is None else word + " ",
                "is_finished": word is None,
                "finish_reason": "stop" if word is None else None,
                "index": 0,
                "tool_use": None,
                "usage": None,
            }


@pytest.fixture
def parrot(monkeypatch):
    parrot = Parrot()
    monkeypatch.setattr(litellm, "custom_provider_map", [{"provider": "parrot", "custom_handler": parrot}])
    litellm.utils.custom_llm_setup()
    yield parrot
    litellm.callbacks = []


async def complete(logger, text, *, user="ana", conversation="c1", key=None, messages=None, **more):
    litellm.callbacks = [logger]
    named = {"conversation_id": conversation, **({"idempotency_key": key} if key else {})}
    asked = [*(messages or []), {"role": "user", "content": text}]
    return await litellm.acompletion(model="parrot/m", messages=asked, user=user, metadata=named, **more)


# The first test: LiteLLM reports streams by a worker of one event loop, and those below start many.
def test_a_stream_is_stored_once(memory, parrot):
    async def hear():
        stream = await complete(MemoryLogger(memory), "What may I cook?", stream=True)
        words = [chunk.choices[0].delta.content or "" async for chunk in stream]
        for _ in range(200):
            if len(said(memory)) == 2:
                break
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.1)
        return "".join(words)

    assert asyncio.run(hear()).strip() == "noted: What may I cook?"
    assert said(memory) == [("user", "What may I cook?"), ("assistant", "noted: What may I cook?")]
    assert any("vegetarian" in message["content"] for message in parrot.seen[-1])


class TestLogger(Promises):
    @pytest.fixture(autouse=True)
    def provider(self, parrot):
        self.parrot = parrot

    def tell(self, path):
        self.parrot = Parrot()
        litellm.custom_provider_map = [{"provider": "parrot", "custom_handler": self.parrot}]
        litellm.utils.custom_llm_setup()
        super().tell(path)

    def talk(self, memory, text, *, user="ana", conversation="c1", key=None, fail=False, **options):
        self.parrot.failures = 9 if fail else 0
        logger = MemoryLogger(memory, **options)
        asyncio.run(complete(logger, text, user=user, conversation=conversation, key=key))
        return [message["content"] for message in self.parrot.seen[-1]]


@pytest.fixture
def memory():
    with Memory(embedder=None) as memory:
        memory.conversation("before", user="ana").record("I am a vegetarian.", "ok")
        yield memory


def said(memory, conversation="c1", user="ana"):
    return [(m.role, m.content) for m in memory.conversation(conversation, user=user).load()]


def test_memory_goes_behind_the_instructions_of_a_program_that_shows_its_history(memory, parrot):
    history = [
        {"role": "system", "content": "You cook."},
        {"role": "user", "content": "One?"},
        {"role": "assistant", "content": "noted: One?"},
    ]
    asyncio.run(complete(MemoryLogger(memory), "Two?", messages=history))

    texts = [message["content"] for message in parrot.seen[-1]]
    assert "vegetarian" in texts[1]
    assert [text for text in texts if "not instructions" not in text] == ["You cook.", "One?", "noted: One?", "Two?"]
    assert said(memory) == [("user", "Two?"), ("assistant", "noted: Two?")]


def test_what_a_router_tries_again_is_stored_once(memory, parrot):
    async def route():
        litellm.callbacks = [MemoryLogger(memory)]
        deployment = {"model_name": "m", "litellm_params": {"model": "parrot/m"}}
        router = litellm.Router([deployment], num_retries=2, retry_after=0)
        parrot.failures = 1
        asked = [{"role": "user", "content": "What may I cook?"}]
        await router.acompletion(model="m", messages=asked, user="ana", metadata={"conversation_id": "c1"})

    asyncio.run(route())
    assert len(parrot.seen) == 2
    assert parrot.seen[0] == parrot.seen[1]
    assert said(memory) == [("user", "What may I cook?"), ("assistant", "noted: What may I cook?")]


def test_a_call_that_names_no_user_passes_as_it_is(memory, parrot):
    asyncio.run(complete(MemoryLogger(memory), "Summarize this.", user=None))

    assert parrot.seen == [[{"role": "user", "content": "Summarize this."}]]
    assert memory.user("ana").conversations() == ["before"]


def test_a_virtual_key_names_the_user_where_only_keys_may(memory, parrot):
    async def ask(**keys):
        litellm.callbacks = [MemoryLogger(memory, **keys)]
        await litellm.acompletion(
            model="parrot/m",
            messages=[{"role": "user", "content": "I am a pilot."}],
            user="ana",
            litellm_session_id="s1",
            metadata={"user_api_key_user_id": "bo"},
        )

    asyncio.run(ask(user_from="key"))
    assert said(memory, "s1", "bo") == [("user", "I am a pilot."), ("assistant", "noted: I am a pilot.")]
    assert said(memory, "s1", "ana") == []
    asyncio.run(ask())
    assert len(said(memory, "s1", "ana")) == 2
    with pytest.raises(ConfigError, match="user_from"):
        MemoryLogger(memory, user_from="somebody")


def test_calls_without_async_are_wrapped(memory, parrot):
    def ask(messages):
        return litellm.completion(model="parrot/m", messages=messages)

    with_memory(ask, memory, user="ana", session="c1")("What may I cook?")

    assert any("vegetarian" in message["content"] for message in parrot.seen[-1])
    assert said(memory) == [("user", "What may I cook?"), ("assistant", "noted: What may I cook?")]


def test_a_call_passes_as_it_is_when_memory_fails(memory, parrot, monkeypatch, caplog):
    def fail(*args, **more):
        raise StoreUnavailable("I am a pilot.")

    monkeypatch.setattr(AdapterMemory, "record", fail)
    answer = asyncio.run(complete(MemoryLogger(memory), "I am a pilot."))

    assert answer.choices[0].message.content == "noted: I am a pilot."
    assert parrot.seen == [[{"role": "user", "content": "I am a pilot."}]]
    told = [record.getMessage() for record in caplog.records if record.name == "holdfast"]
    assert [text.rpartition(": ")[2] for text in told] == ["StoreUnavailable"]
    with pytest.raises(Exception, match="I am a pilot"):
        asyncio.run(complete(MemoryLogger(memory, on_error="raise"), "Two?"))
    with pytest.raises(ConfigError, match="on_error"):
        MemoryLogger(memory, on_error="hide")


CONFIG = """\
model_list:
  - model_name: m
    litellm_params: {model: openai/m-1, api_base: "ADDRESS", api_key: upstream-secret}
litellm_settings:
  callbacks: [memory_callback.logger]
"""
CALLBACK = """\
from holdfast import Memory
from holdfast.integrations.litellm import MemoryLogger

logger = MemoryLogger(Memory("chat.db", embedder=None))
"""


@contextmanager
def proxy(folder, model):
    """LiteLLM's proxy in front of a model, with the callback in its configuration."""
    (folder / "config.yaml").write_text(CONFIG.replace("ADDRESS", model.url))
    (folder / "memory_callback.py").write_text(CALLBACK)
    address = unreachable_url().removesuffix("/v1")
    env = {**os.environ, "LITELLM_MASTER_KEY": "sk-1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    command = [f"{os.path.dirname(sys.executable)}/litellm", "--config", "config.yaml", "--telemetry", "False"]
    command += ["--host", "127.0.0.1", "--port", address.rsplit(":", 1)[1]]
    with open(folder / "log", "w") as log:
        process = subprocess.Popen(command, cwd=folder, env=env, stdout=log, stderr=log)
    try:
        for _ in range(600):
            try:
                urlopen(f"{address}/health/liveliness", timeout=5).close()
                break
            except (URLError, OSError):
                assert process.poll() is None, (folder / "log").read_text()
                time.sleep(0.2)
        yield address
    finally:
        process.terminate()
        process.wait(30)


def test_the_proxy_of_litellm_remembers(tmp_path):
    with serving() as model, proxy(tmp_path, model) as address:

        def ask(text, session, user="ana", **more):
            body = {"model": "m", "user": user, "messages": [{"role": "user", "content": text}], **more}
            headers = {
                "Authorization": "Bearer sk-1",
                "x-litellm-session-id": session,
                "Content-Type": "application/json",
            }
            with urlopen(Request(f"{address}/v1/chat/completions", json.dumps(body).encode(), headers)) as answer:
                return answer.read()

        ask("I am a vegetarian.", "s1")
        model.reply = lambda asked: stream("Len", "tils.")
        ask("What may I cook?", "s2", stream=True)
        ask("What may I cook?", "s3", user="bo", stream=True)
        with Memory(tmp_path / "chat.db", embedder=None) as memory:
            for _ in range(500):
                if len(said(memory, "s3", "bo")) == 2:
                    break
                time.sleep(0.02)
            found = [said(memory, "s1"), said(memory, "s2"), said(memory, "s3", "bo")]

    assert found == [
        [("user", "I am a vegetarian."), ("assistant", "Noted!")],
        [("user", "What may I cook?"), ("assistant", "Lentils.")],
        [("user", "What may I cook?"), ("assistant", "Lentils.")],
    ]
    prompts = [asked.texts for asked in model.asked if asked.path.endswith("/chat/completions")]
    assert ["Is vegetarian" in json.dumps(texts) for texts in prompts] == [True, True, False]
