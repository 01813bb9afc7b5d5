"""What `with_memory` returns is a runnable, whatever it wraps: invoke, stream and batch, sync and async."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast import InMemoryMessages, Memory, Message, with_memory
from holdfast.errors import BadInput, ConfigError
from holdfast.integrations.calls.callable import MemoryRunnable

from .callables import last, later, later_words, words

WHOLE, PIECES = "I heard: hi there", ["I heard: ", "hi", "there"]
ANA = {"configurable": {"session_id": "s1", "user_id": "ana"}}


def whole(messages: Any) -> str:
    return f"I heard: {last(messages)}"


class Completions:
    """``create`` as OpenAI's client has it, with what it was asked."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def create(self, *, messages: Any, model: str, stream: bool = False, **more: Any) -> Any:
        self.asked.append({"model": model, "messages": list(messages), **more})
        if stream:
            return ({"choices": [{"delta": {"content": word}}]} for word in words(messages))
        return {"choices": [{"message": {"role": "assistant", "content": whole(messages)}}]}


class LaterCompletions(Completions):
    async def create(self, **given: Any) -> Any:
        if not given.get("stream"):
            return Completions.create(self, **given)

        async def chunks():
            for chunk in Completions.create(self, **given):
                yield chunk

        return chunks()


class Responses:
    """``create`` of the newer protocol."""

    def create(self, *, input: Any, model: str, stream: bool = False) -> Any:
        if stream:
            return ({"type": "response.output_text.delta", "delta": word} for word in words(input))
        return {"output_text": whole(input)}


class Runnable:
    """The four calls of LangChain's runnables, with their signatures."""

    def __init__(self) -> None:
        self.configs: list[Any] = []

    def invoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
        self.configs.append(config)
        return SimpleNamespace(type="ai", content=whole(input), tool_calls=[])

    async def ainvoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
        return self.invoke(input, config, **kwargs)

    def stream(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
        self.configs.append(config)
        for word in words(input):
            yield SimpleNamespace(type="AIMessageChunk", content=word)

    async def astream(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
        for chunk in self.stream(input, config, **kwargs):
            yield chunk


def client(completions: Any) -> Any:
    return SimpleNamespace(chat=SimpleNamespace(completions=completions))


def text_of(reply: Any) -> str:
    """Return the text of a reply or a chunk of any kind."""
    if isinstance(reply, dict):
        if "choices" in reply:
            choice = reply["choices"][0]
            return str((choice.get("message") or choice["delta"])["content"])
        return str(reply.get("output_text") or reply["delta"])
    return str(getattr(reply, "content", reply))


TARGETS = {
    "function": lambda: (whole, {}),
    "async function": lambda: (later, {}),
    "generator": lambda: (words, {}),
    "async generator": lambda: (later_words, {}),
    "client": lambda: (client(Completions()), {"model": "small"}),
    "async client": lambda: (client(LaterCompletions()), {"model": "small"}),
    "responses": lambda: (SimpleNamespace(responses=Responses()), {"model": "small"}),
    "runnable": lambda: (Runnable(), {}),
}


@pytest.fixture(params=TARGETS)
def wrapped(request: pytest.FixtureRequest) -> tuple[MemoryRunnable, InMemoryMessages, str]:
    call, options = TARGETS[request.param]()
    store = InMemoryMessages()
    return with_memory(call, store, **options), store, request.param


def said(store: InMemoryMessages, session: str = "s1") -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in store.load(session)]


def heard(text: str) -> list[tuple[str, str]]:
    return [("user", "hi there"), ("assistant", text)]


def test_invoke_returns_a_whole_reply_and_stores_it_once(wrapped):
    chat, store, kind = wrapped

    reply = text_of(chat.invoke("hi there", ANA))

    assert said(store) == heard(reply)
    assert reply == ("".join(PIECES) if "generator" in kind else WHOLE)


def test_ainvoke_does_the_same(wrapped):
    chat, store, _ = wrapped

    reply = text_of(asyncio.run(chat.ainvoke("hi there", ANA)))

    assert reply.startswith("I heard: hi")
    assert said(store) == heard(reply)


def test_stream_yields_chunks_and_stores_them_once_at_the_end(wrapped):
    chat, store, kind = wrapped
    if kind in ("async generator", "async client"):
        with pytest.raises(BadInput, match="use astream"):
            list(chat.stream("hi there", ANA))
        return

    stream = chat.stream("hi there", ANA)
    first = next(stream)
    assert said(store)[1:] == [] or "function" in kind
    chunks = [text_of(chunk) for chunk in (first, *stream)]

    assert chunks == ([WHOLE] if "function" in kind else PIECES)
    assert said(store) == heard("".join(chunks))


def test_astream_yields_chunks_from_everything(wrapped):
    chat, store, kind = wrapped

    async def talk() -> list[str]:
        return [text_of(chunk) async for chunk in chat.astream("hi there", ANA)]

    chunks = asyncio.run(talk())

    assert chunks == ([WHOLE] if "function" in kind else PIECES)
    assert said(store) == heard("".join(chunks))


def test_a_stream_that_is_cut_keeps_what_was_received(wrapped):
    chat, store, kind = wrapped
    if "function" in kind:
        return

    async def cut() -> None:
        stream = chat.astream("hi there", ANA)
        async for _ in stream:
            break
        await stream.aclose()

    asyncio.run(cut())

    assert said(store) == heard("I heard: ")
    assert store.load("s1")[-1].meta == {"incomplete": True}


def test_batch_keeps_the_order_of_a_session_and_answers_sessions_side_by_side():
    both = threading.Barrier(2, timeout=30)

    def model(messages: Any) -> str:
        if last(messages) == "one":
            both.wait()  # two sessions are here at a time
        return str(len(messages))

    chat = with_memory(model, store := InMemoryMessages(), None)
    sessions = [{"configurable": {"session_id": name}} for name in ("a", "b", "a", "b")]

    assert chat.batch(["one", "one", "two", "two"], sessions) == ["1", "1", "3", "3"]
    assert [content for _, content in said(store, "a")] == ["one", "1", "two", "3"]


def test_abatch_does_the_same(wrapped):
    chat, store, _ = wrapped

    replies = asyncio.run(chat.abatch(["hi there", "hi there"], [ANA, {"configurable": {"session_id": "s2"}}]))

    assert said(store, "s1") == said(store, "s2") == heard(text_of(replies[0]))


def test_batch_returns_errors_when_asked_to():
    def model(messages: Any) -> str:
        if last(messages) == "bad":
            raise TimeoutError("no answer")
        return "ok"

    chat = with_memory(model, InMemoryMessages())
    replies = chat.batch(["good", "bad"], return_exceptions=True)

    assert (replies[0], type(replies[1])) == ("ok", TimeoutError)
    with pytest.raises(TimeoutError):
        chat.batch(["bad"])
    with pytest.raises(BadInput, match="2 inputs have 1 configurations"):
        chat.batch(["a", "b"], [ANA])


@pytest.mark.parametrize(
    "config",
    [
        {"configurable": {"session_id": "s1"}},
        {"metadata": {"session_id": "s1"}},
        {"configurable": {}, "metadata": {"session_id": "s1"}},
        SimpleNamespace(configurable=None, metadata={"session_id": "s1"}),
    ],
)
def test_the_session_is_read_from_the_configuration(config):
    chat = with_memory(whole, store := InMemoryMessages(), None)

    chat.invoke("hi there", config)

    assert said(store) == heard(WHOLE)


@pytest.mark.parametrize(
    "session",
    [
        lambda config: config.metadata.get("tenant") or "default",
        lambda config: config["metadata"]["tenant"] if "metadata" in config else "default",
    ],
)
def test_the_session_may_be_found_by_a_function(session):
    chat = with_memory(whole, store := InMemoryMessages(), session)

    chat.invoke("hi there", {"metadata": {"tenant": "s1"}})
    chat.invoke("hi there")

    assert said(store, "s1") == said(store, "default") == heard(WHOLE)


def test_session_and_user_may_have_other_keys():
    with Memory(embedder=None) as memory:
        chat = with_memory(whole, memory, session_key="thread_id", user_key="member")
        chat.invoke("hi there", {"configurable": {"thread_id": "t-1", "member": "ana"}})

        assert [m.content for m in memory.conversation("t-1", user="ana").load()] == ["hi there", WHOLE]


@pytest.mark.parametrize("session", [None, lambda config: config["configurable"]["session_id"], lambda config: None])
def test_a_call_without_a_session_is_refused_when_there_is_no_default(session):
    chat = with_memory(whole, store := InMemoryMessages(), session)

    with pytest.raises(BadInput, match="session"):
        chat.invoke("hi there")

    assert store.load("default") == []


def test_a_runnable_is_given_its_configuration():
    chat = with_memory(runnable := Runnable(), InMemoryMessages())

    chat.invoke("hi there", ANA)
    list(chat.stream("again", ANA))

    assert runnable.configs == [ANA, ANA]


def test_a_client_is_asked_with_the_options_of_the_call():
    completions = Completions()
    chat = with_memory(client(completions), InMemoryMessages(), model="small", system="Be brief.")

    chat.invoke("hi there", temperature=0)
    chat.invoke("hi there again", model="large")

    assert [(one["model"], one.get("temperature")) for one in completions.asked] == [("small", 0), ("large", None)]
    assert completions.asked[0]["messages"][0] == {"role": "system", "content": "Be brief."}
    with pytest.raises(ConfigError, match="model= is for a client"):
        with_memory(whole, InMemoryMessages(), model="small")


def test_a_chain_gets_its_input_and_the_history_under_its_keys():
    seen: list[Any] = []

    def chain(given: Any) -> str:
        seen.append(given)
        return "ok"

    chat = with_memory(chain, InMemoryMessages(), input_key="question", history_key="history")
    chat.invoke({"question": "one", "tone": "kind"})
    chat.invoke("two")

    assert seen[0] == {"question": "one", "tone": "kind", "history": []}
    assert seen[1] == {
        "question": "two",
        "history": [{"role": "user", "content": "one"}, {"role": "assistant", "content": "ok"}],
    }
    with pytest.raises(ConfigError, match="input_key"):
        with_memory(chain, InMemoryMessages(), history_key="history")


@pytest.mark.parametrize(
    "given",
    [
        Message.human("hi there"),
        {"role": "user", "content": "hi there"},
        ("human", "hi there"),
        SimpleNamespace(type="human", content="hi there"),
        [SimpleNamespace(type="human", content="hi there")],
        SimpleNamespace(to_messages=lambda: [SimpleNamespace(type="human", content="hi there")]),
    ],
)
def test_an_input_may_be_a_message_of_any_kind(given):
    chat = with_memory(whole, store := InMemoryMessages(), "s1")

    chat.invoke(given)

    assert said(store) == heard(WHOLE)


def test_a_sync_call_within_an_event_loop_says_what_to_call():
    chat = with_memory(later, InMemoryMessages())

    async def talk() -> None:
        chat.invoke("hi there")

    with pytest.raises(BadInput, match="ainvoke"):
        asyncio.run(talk())


def test_messages_are_made_by_the_names_of_their_roles():
    made = [Message.human("a", name="Ana"), Message.ai("b"), Message.system("c")]

    assert [(one.role, one.content, one.name) for one in made] == [
        ("user", "a", "Ana"),
        ("assistant", "b", None),
        ("system", "c", None),
    ]
