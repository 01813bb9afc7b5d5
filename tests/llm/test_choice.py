"""The values of ``Memory(llm=…)``, and the errors for those that cannot be used."""

from __future__ import annotations

import subprocess
import sys

import pytest

from holdfast import Config, Memory
from holdfast.errors import ConfigError
from holdfast.llm import Answer, ModelError, Request, model, model_of
from holdfast.llm.guard import PROVIDERS, find_address
from holdfast.testing.model import ModelServer

ASKED = Request(layer="facts", system="Read.", text="I moved.", prompt="abc")


@pytest.fixture(autouse=True)
def no_keys(monkeypatch):
    for provider in PROVIDERS.values():
        for variable in (*provider.keys, *provider.urls):
            monkeypatch.delenv(variable, raising=False)


class Scripted:
    name = "scripted:1"

    def ask(self, request: Request) -> Answer:
        return Answer("Porto", self.name)


def test_an_object_with_a_name_and_ask_is_taken_as_it_is():
    scripted = Scripted()

    assert model_of(scripted, Config()) is scripted
    assert model_of(None, Config()) is None


def test_a_function_gets_messages_and_its_tokens_are_estimated():
    seen = []

    def answer(messages):
        seen.extend(messages)
        return "home,lives_in,Porto,0.9"

    asked = model_of(answer, Config())

    assert asked.name == "function:answer"
    assert asked.ask(ASKED) == Answer(
        "home,lives_in,Porto,0.9", "function:answer", input_tokens=5, output_tokens=11, estimated=True
    )
    assert seen == [{"role": "system", "content": "Read."}, {"role": "user", "content": "I moved."}]


def test_a_function_that_counts_says_so_with_an_answer():
    asked = model_of(lambda messages: Answer("x", "", input_tokens=7, output_tokens=1), Config())

    assert asked.ask(ASKED) == Answer("x", "function:<lambda>", input_tokens=7, output_tokens=1)


@pytest.mark.parametrize(("raised", "transient"), [(ConnectionRefusedError(), True), (TimeoutError(), True)])
def test_a_function_that_reaches_nobody_is_a_passing_failure(raised, transient):
    def broken(messages):
        raise raised

    with pytest.raises(ModelError, match=type(raised).__name__) as failed:
        model_of(broken, Config()).ask(ASKED)
    assert failed.value.transient is transient


def test_a_function_that_returns_no_text_is_told_what_to_return():
    with pytest.raises(ModelError, match=r"returned a dict.*return the model's text") as failed:
        model_of(lambda messages: {"choices": []}, Config()).ask(ASKED)
    assert not failed.value.transient


async def coroutine(messages):
    return ""


@pytest.mark.parametrize(
    ("llm", "said"),
    [
        (
            "gpt-5",
            r"'gpt-5' is not a model name \(write provider:model; providers are openai, anthropic, google, ollama",
        ),
        ("openai:", "is not a model name"),
        ("mistral:large", "is not a model name"),
        ("openai:gpt-5-mini", r"needs a key and there is none \(set OPENAI_API_KEY, or pass llm=holdfast.llm.model"),
        ("anthropic:claude-haiku-5-5", "set ANTHROPIC_API_KEY"),
        ("google:gemini-3-flash", "set GOOGLE_API_KEY"),
        (coroutine, "async function"),
        (Scripted, "a type is not a model"),
        (42, "a int is not a model"),
    ],
)
def test_what_cannot_be_a_model_is_refused_with_the_fix(llm, said):
    with pytest.raises(ConfigError, match=said):
        Memory(llm=llm, embedder=None)


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("", "http://127.0.0.1:11434/v1"),
        ("192.168.1.7:11434", "http://192.168.1.7:11434/v1"),
        ("http://gpu:11434/", "http://gpu:11434/v1"),
        ("https://gpu/v1/", "https://gpu/v1/"),
    ],
)
def test_ollama_is_found_where_its_own_variable_says(monkeypatch, given, url):
    monkeypatch.setenv("OLLAMA_HOST", given)

    assert find_address("ollama:llama3.2").base_url == url


def test_ollama_is_asked_like_any_compatible_server(monkeypatch):
    with ModelServer(["Porto"]) as server:
        monkeypatch.setenv("OLLAMA_BASE_URL", server.url)
        asked = model("ollama:llama3.2")
        answer = asked.ask(ASKED)
        asked.close()

    (seen,) = server.asked
    assert (answer.text, answer.model, answer.cost) == ("Porto", "ollama:llama3.2", 0)
    assert (seen.body["model"], seen.body["max_tokens"], seen.body["temperature"]) == ("llama3.2", 1024, 0)
    assert (seen.system, seen.text) == ("Read.", "I moved.")


def test_the_key_of_openai_is_sent_to_no_other_server(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "the key")

    assert find_address("openai:gpt-5-mini").api_key == "the key"
    assert find_address("openai:qwen3", base_url="http://gpu/v1").api_key is None
    assert find_address("openai:qwen3", base_url="http://gpu/v1", api_key="other").api_key == "other"


def test_no_text_of_a_model_holds_its_key():
    asked = model("anthropic:claude-haiku-5-5", api_key="very secret")

    assert "very secret" not in f"{asked!r} {asked.address!r} {asked.name}"


def test_the_package_of_the_providers_is_loaded_for_nobody_else():
    program = (
        "import sys, holdfast; holdfast.Memory(llm=lambda messages: '', embedder=None).close(); "
        "sys.exit(', '.join({'pydantic_ai', 'openai', 'httpx2', 'pydantic'} & set(sys.modules)) or 0)"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_missing_package_is_named_with_the_command_that_gets_it():
    program = (
        "import sys; sys.modules['pydantic_ai'] = None\n"
        "from holdfast import Memory\n"
        "try: Memory(llm='ollama:llama3.2')\n"
        "except Exception as error: sys.exit(f'{type(error).__name__}: {error}')"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", timeout=60)
    assert "ConfigError: ollama:llama3.2 needs a package that is not installed" in done.stderr
    assert "pip install 'holdfast[llm]'" in done.stderr
