"""What breaks on the way: answers that are lost, servers that are busy or gone, and which error each becomes."""

from __future__ import annotations

import asyncio
import socket
import threading
import time

import httpx2
import pytest

from holdfast import HoldfastError, Memory, errors, strategies
from holdfast.client import AsyncClient, Client, NotAllowed, TooOften, Unreachable
from holdfast.client.calls import of_problem, value_of
from holdfast.context.classic import as_strategy, strategy_text
from holdfast.errors import BadInput, Conflict, KeyReused, NotFound, StoreBusy, TooLarge
from holdfast.integrations.calls.strategies import KINDS
from holdfast.llm.protocol import ModelError
from holdfast.reports import RebuildReport
from holdfast.server.gate import ServerSettings
from holdfast.server.routing import problem_of
from holdfast.types import Fact, Summary


class Losing(httpx2.HTTPTransport):
    """A network that loses the first answers: the server did what it was asked, and nobody hears of it."""

    def __init__(self, losses: int, error: type[httpx2.TransportError] = httpx2.ReadError) -> None:
        super().__init__()
        self.left, self.error, self.sent = losses, error, 0

    def handle_request(self, request):
        self.sent += 1
        if issubclass(self.error, httpx2.ConnectError) and self.left:
            self.left -= 1
            raise self.error("nobody")
        answer = super().handle_request(request)
        if self.left:
            answer.read()
            self.left -= 1
            raise self.error("lost")
        return answer


@pytest.fixture
def losing(library, address):
    """``losing(2)``: a client whose first two answers are lost."""

    opened = []

    def make(losses, error=httpx2.ReadError, **options):
        transport = Losing(losses, error)
        http = httpx2.Client(transport=transport)
        opened.append(http)
        return Client(address, key=library.admin.keys.create("operator").key, http=http, **options), transport

    yield make
    for http in opened:
        http.close()


def test_a_message_whose_answer_is_lost_is_stored_once(losing, library):
    client, network = losing(2)
    receipt = client.conversation("lost", user="lea").record("I live in Porto.", "Noted.")
    assert (receipt.seqs, receipt.duplicate, network.sent) == ((1, 2), True, 3)
    assert len(library.conversation("lost", user="lea").load()) == 2

    client, network = losing(1)
    assert client.user("lea").remember("I eat fish.").op == "confirmed"
    assert len(library.conversation("(by hand)", user="lea").load()) == 1


def test_what_would_be_done_twice_is_not_sent_again(losing, library):
    """Making a key: its answer is lost, and the caller decides."""
    client, network = losing(1)
    with pytest.raises(Unreachable, match="no answer"):
        client.admin.keys.create("app", name="twice?")
    assert network.sent == 1
    assert len([key for key in library.admin.keys.list() if key.name == "twice?"]) == 1


def test_what_never_reached_the_server_is_sent_again_whatever_it_is(losing, library):
    client, network = losing(2, httpx2.ConnectError)
    assert client.admin.keys.create("app", name="third time").key
    assert network.sent == 3
    assert len([key for key in library.admin.keys.list() if key.name == "third time"]) == 1


def test_it_gives_up_after_a_while(losing):
    client, network = losing(99, retries=1)
    with pytest.raises(Unreachable):
        client.user("lea").facts()
    assert network.sent == 2


def test_nobody_there_and_nobody_answering(library):
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        port = deaf.getsockname()[1]
        with Client(f"http://127.0.0.1:{port}", key="hf_x", retries=0) as client, pytest.raises(Unreachable):
            client.doctor()

        async def awaited():
            async with AsyncClient(f"http://127.0.0.1:{port}", key="hf_x", retries=1) as client:
                await client.doctor()

        with pytest.raises(Unreachable):
            asyncio.run(awaited())
        deaf.listen()
        began = time.monotonic()
        with Client(f"http://127.0.0.1:{port}", key="hf_x", retries=0, timeout_s=0.2) as client:
            with pytest.raises(Unreachable):
                client.doctor()
        assert time.monotonic() - began < 5


def answering(*answers):
    """A server that gives fixed answers, one a connection; ``(address, requests)``."""
    listener, requests = socket.create_server(("127.0.0.1", 0)), []

    def run():
        for answer in answers:
            connection, _ = listener.accept()
            requests.append(connection.recv(65_536))
            connection.sendall(answer)
            connection.close()
        listener.close()

    threading.Thread(target=run, daemon=True).start()
    return f"http://127.0.0.1:{listener.getsockname()[1]}", requests


BUSY = b"HTTP/1.1 503 Busy\r\nRetry-After: 0\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
FULL = b"HTTP/1.1 429 Slow\r\nRetry-After: 99\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
AWAY = b"HTTP/1.1 307 Away\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
GOOD = b'HTTP/1.1 200 OK\r\nContent-Length: 36\r\nConnection: close\r\n\r\n{"ok":true,"findings":[],"new":"x"}  '


def test_a_busy_server_is_asked_again_when_it_says(library):
    address, requests = answering(BUSY, BUSY, GOOD)
    with Client(address, key="hf_x") as client:
        assert client.doctor().ok  # and a field of a later version is passed over
    assert len(requests) == 3


def test_who_is_told_to_wait_long_decides_for_himself():
    address, requests = answering(FULL)
    with Client(address, key="hf_x") as client, pytest.raises(TooOften):
        client.doctor()
    assert len(requests) == 1


def test_a_key_goes_to_no_other_address():
    address, _ = answering(AWAY)
    with Client(address, key="hf_x") as client, pytest.raises(HoldfastError, match="307"):
        client.doctor()


@pytest.mark.parametrize("url", ["127.0.0.1:7800", "ftp://x", "", "http://"])
def test_an_address_that_is_none_is_refused(url):
    with pytest.raises(BadInput):
        Client(url, key="hf_x")


@pytest.mark.parametrize("key", ["", " ", "ключ", "a\nb", None])
def test_a_key_that_is_none_is_refused(key):
    with pytest.raises(BadInput):
        Client("http://127.0.0.1", key=key)


def test_what_a_key_may_not_is_said(memory, library, address):
    user = Client(address, key=library.admin.keys.create("user", user="ana").key)
    for call in (
        user.doctor,
        user.user("bob").facts,
        user.conversation("c", user="ana").context,
        user.user("ana", org="acme").facts,
    ):
        with pytest.raises(NotAllowed) as caught:
            call()
        assert caught.value.code == "forbidden"
    with Client(address, key="hf_nobody") as client, pytest.raises(NotAllowed) as caught:
        client.doctor()
    assert caught.value.code == "no-key"
    user.close()


def test_too_many_requests_are_an_error_of_their_own(library, served):
    with served(library, ServerSettings(requests_per_minute=10)) as address:
        with Client(address, key=library.admin.keys.create("app").key, retries=0) as client:
            client.user("ana").status()
            with pytest.raises(TooOften):
                client.user("ana").status()


@pytest.mark.parametrize(
    "error",
    [kind("what happened", hint="what to do") for kind in vars(errors).values()
     if isinstance(kind, type) and issubclass(kind, HoldfastError)] + [ModelError("no answer")],
    ids=lambda error: type(error).__name__,
)  # fmt: skip
def test_every_error_arrives_as_itself(error):
    answer = problem_of(error)
    found = of_problem(answer.status_code, bytes(answer.body))
    assert (type(found), found.code, found.message, found.hint) == (type(error), error.code, error.message, error.hint)


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"null", b"\xff"])
def test_an_answer_of_somebody_else_is_an_error_that_says_so(body):
    assert of_problem(502, body).message == "the server answered 502"


def test_errors_of_the_library_are_those_of_the_client(memory, library):
    chat, ana = memory.conversation("errors", user="ana"), memory.user("ana")
    chat.append({"role": "user", "content": "Hello."}, idempotency_key="k")
    cases = [
        (BadInput, lambda: chat.append(7)),
        (BadInput, lambda: chat.append([])),
        (BadInput, lambda: chat.record("x", idempotency_key="schlüssel")),
        (BadInput, lambda: memory.user("")),
        (BadInput, lambda: memory.conversation("c\x00", user="ana")),
        (BadInput, lambda: ana.remember()),
        (BadInput, lambda: ana.remember(category="a", value="b")),
        (BadInput, lambda: ana.prompts.get("x")),
        (BadInput, lambda: ana.usage(by=["secret"])),
        (BadInput, lambda: memory.import_({})),
        (BadInput, lambda: memory.import_([])),
        (BadInput, lambda: chat.context("q", count=len)),
        (BadInput, lambda: chat.context("q", strategy=strategies.Summary(summarize=lambda before, new: "x"))),
        (BadInput, lambda: chat.rebuild("facts", start_seq=5, end_seq=2)),
        (TooLarge, lambda: chat.record("x" * (library.config.max_message_chars + 1))),
        (KeyReused, lambda: chat.append({"role": "user", "content": "Other."}, idempotency_key="k")),
        (NotFound, lambda: ana.fact("none")),
        (NotFound, lambda: ana.fact("../..")),
        (NotFound, lambda: chat.forget(99)),
        (NotFound, lambda: chat.restore("none")),
        (NotFound, lambda: memory.cancel("none")),
        (Conflict, lambda: ana.import_(ana.export())),
    ]
    for kind, call in cases:
        with pytest.raises(kind) as caught:
            call()
        assert type(caught.value) is kind
        assert len(str(caught.value)) > 15


def test_every_strategy_of_the_library_can_be_sent():
    for name in set(strategies.__all__) - {"KINDS", "Strategy", "summarize_with"}:
        one = getattr(strategies, name)(memory_role="system")
        assert as_strategy(strategy_text(one, KINDS), KINDS) == one
    wide = strategies.Layered(exchanges=3, side_by_side=True, character=False)
    assert as_strategy(strategy_text(wide, KINDS)) == wide

    class Own:
        name = "own"

    with pytest.raises(BadInput, match="Own"):
        strategy_text(Own(), KINDS)


def test_of_two_kinds_of_values_the_one_that_fits_is_made():
    """What was rebuilt are summaries or facts; both have ids and texts."""
    data = {"layer": "facts", "before": [{name: None for name in Summary.__dataclass_fields__}], "after": []}
    assert isinstance(value_of(RebuildReport, data).before[0], Summary)
    data["before"] = [{name: None for name in Fact.__dataclass_fields__} | {"evidence": []}]
    assert isinstance(value_of(RebuildReport, data).before[0], Fact)


def test_one_client_serves_many_threads_and_tasks(memory, library, address):
    def work(number):
        for turn in range(10):
            memory.conversation(f"t{number}", user="crowd").record(f"Line {number}.{turn}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    async def awaited():
        async with AsyncClient(address, key=library.admin.keys.create("app").key) as client:
            chats = [client.conversation(f"a{number}", user="crowd") for number in range(20)]
            await asyncio.gather(*(chat.record("Hello.") for chat in chats))
            return await asyncio.gather(*(chat.load() for chat in chats))

    assert [len(messages) for messages in asyncio.run(awaited())] == [1] * 20
    assert all(len(library.conversation(f"t{number}", user="crowd").load()) == 10 for number in range(8))


def test_the_five_lines_of_the_readme_run_on_a_server(address, library):
    """Only the first line differs."""
    key = library.admin.keys.create("app").key
    for memory in (Memory(embedder=None), Client(address, key=key)):
        chat = memory.conversation("readme", user="five")
        chat.record("I'm vegetarian.", "Noted!")
        chat.record("Actually, I eat fish now.", "Good to know!")
        assert "pescatarian" in str(chat.context("What should I cook?").messages)
        assert [fact.key for fact in memory.user("five").facts()] == ["pescatarian"]
        memory.close()


def test_busy_is_told_after_the_last_try():
    body = b'{"code": "store-busy", "title": "The store is busy"}'
    busy = BUSY.replace(b"Length: 0", b"Length: %d" % len(body)) + body
    address, requests = answering(busy, busy, busy)
    with Client(address, key="hf_x") as client, pytest.raises(StoreBusy):
        client.doctor()
    assert len(requests) == 3
