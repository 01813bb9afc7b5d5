"""Where a key may be sent: every way of writing a private address is refused, and the socket is what counts."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from ipaddress import ip_address

import httpx2
import pytest

from holdfast.errors import ConfigError, EndpointRefused
from holdfast.llm.guard import METADATA, Allowed, Guard, is_public, unwrapped
from holdfast.llm.guarded_http import AddressRefused, guarded_client
from holdfast.types import Secret

PUBLIC = [
    "https://api.openai.com/v1",
    "https://api.openai.com/v1/",
    "https://gateway.example:8443",
    "https://1.1.1.1/v1",
]
PUBLIC += ["https://[2606:4700:4700::1111]/v1", "https://a-b.example/v1beta/openai", "https://API.example:443/v1"]

REFUSED = """
http://api.openai.com/v1            no cleartext
https://127.0.0.1/v1                loopback
https://127.1/v1                    short
https://127.0.1/v1                  short
https://2130706433/v1               decimal
https://0x7f000001/v1               hex
https://0x7f.1/v1                   mixed
https://0177.0.0.1/v1               octal
https://017700000001/v1             octal
https://127.0.0.1./v1               trailing dot
https://127.0.0.01/v1               leading zero
https://0/v1                        zero
https://0.0.0.0/v1                  any
https://10.1.2.3/v1                 private
https://172.16.0.1/v1               private
https://172.31.255.255/v1           private
https://192.168.1.1/v1              private
https://100.64.0.1/v1               CGNAT
https://100.100.100.200/v1          metadata
https://169.254.169.254/latest      metadata
https://168.63.129.16/v1            metadata
https://192.0.0.192/v1              metadata
https://198.18.0.1/v1               benchmarks
https://192.0.2.1/v1                documents
https://224.0.0.1/v1                multicast
https://239.255.255.250/v1          multicast
https://255.255.255.255/v1          broadcast
https://240.0.0.1/v1                reserved
https://[::1]/v1                    loopback
https://[::]/v1                     any
https://[0:0:0:0:0:0:0:1]/v1        loopback in full
https://[::ffff:127.0.0.1]/v1       mapped
https://[::ffff:7f00:1]/v1          mapped
https://[::ffff:8.8.8.8]/v1         mapped, though public
https://[::127.0.0.1]/v1            compatible
https://[64:ff9b::7f00:1]/v1        NAT64
https://[64:ff9b::169.254.169.254]/ NAT64
https://[64:ff9b:1::1]/v1           NAT64 of one's own
https://[2002:7f00:1::]/v1          6to4
https://[2002:808:808::]/v1         6to4
https://[2001:0:7f00:1::]/v1        Teredo
https://[fe80::1]/v1                link-local
https://[fc00::1]/v1                unique local
https://[fd00:ec2::254]/v1          metadata
https://[fec0::1]/v1                site-local
https://[ff02::1]/v1                multicast
https://[2001:db8::1]/v1            documents
https://[::1%25eth0]/v1             zone
https://localhost/v1                name
https://LOCALHOST/v1                name
https://localhost./v1               name
https://foo.localhost/v1            name
https://metadata.google.internal/   name
https://printer.local/v1            name
https://db/v1                       one label
https://nas.lan/v1                  name
https://router.home.arpa/v1         name
https://user@api.openai.com/v1      user
https://user:pass@api.openai.com/   user
https://api.openai.com@127.0.0.1/   user
https://127.0.0.1#@api.openai.com/  fragment
https://api.openai.com#@127.0.0.1/  fragment
https://api.openai.com/v1?x=1       query
https://api.openai.com\\@127.0.0.1/ backslash
https://api.openai.com\\.evil.test/ backslash
https://api.openai.com/../admin     path
https://api.openai.com/./v1         path
https://api.openai.com//evil.test   path
https://api.openai.com/%2e%2e/x     path
https://api.openai.com%2f.evil/     percent
https://127.0.0.1%2f@evil.test/     percent
https://１２７.０.０.１/v1            full width
https://①②⑦.0.0.1/v1               circled
https://ｌocalhost/v1                full width
https://bücher.example/v1           IDN
https://api。openai。com/v1          ideographic dots
https://api.openai.com:22/v1        port
https://api.openai.com:25/v1        port
https://api.openai.com:80/v1        port
https://api.openai.com:0/v1         port
https://api.openai.com:99999/v1     port
https://api.openai.com:/v1          port
https://api.openai.com:4 43/v1      port
https://-bad.example/v1             label
https://a..b.example/v1             label
https://.example/v1                 label
//api.openai.com/v1                 scheme
file:///etc/passwd                  scheme
gopher://api.openai.com/            scheme
ftp://api.openai.com/v1             scheme
unix:///var/run/docker.sock         scheme
javascript:alert(1)                 scheme
https:api.openai.com/v1             scheme
https:///v1                         host
https://                            host
api.openai.com/v1                   scheme
""".strip().splitlines()
URLS = [line.split("  ")[0].split(" ", 1)[0] if " 43" not in line else line[:32].strip() for line in REFUSED]
BROKEN = [
    "",
    " ",
    "https://api.openai.com/v1\n",
    " https://api.openai.com/v1",
    "https://api.openai.com/\r\nX: 1",
    "https://a\0b.example/",
]


@pytest.mark.parametrize("url", PUBLIC)
def test_public_addresses_pass(url):
    found = Guard().endpoint(url)
    assert found.url == url.rstrip("/")
    assert (found.scheme, found.host == found.host.lower()) == ("https", True)


@pytest.mark.parametrize("url", URLS + BROKEN)
def test_what_is_private_or_can_be_read_in_two_ways_is_refused(url):
    with pytest.raises(EndpointRefused):
        Guard().endpoint(url)


@pytest.mark.parametrize("url", URLS + BROKEN)
def test_what_an_operator_allows_opens_nothing_else(url):
    with pytest.raises(EndpointRefused):
        Guard.of(["ollama.example:11434", "203.0.113.7", "10.200.0.0/16"]).endpoint(url)


@pytest.mark.parametrize(
    ("allowed", "url"),
    [
        ("localhost", "http://localhost:11434/v1"),
        ("localhost:11434", "http://localhost:11434/v1"),
        ("127.0.0.1", "http://127.0.0.1:8000"),
        ("127.0.0.0/8", "http://127.0.0.1:8000"),
        ("[::1]:8000", "http://[::1]:8000/v1"),
        ("10.0.0.0/8", "https://10.1.2.3/v1"),
        ("fd00::/8", "https://[fd00::5]/v1"),
        ("ollama.internal", "http://ollama.internal:80/v1"),
    ],
)
def test_the_operator_allows_private_hosts_and_networks(allowed, url):
    assert Guard.of([allowed]).endpoint(url).url == url


@pytest.mark.parametrize(
    ("allowed", "url"),
    [
        ("localhost:11434", "http://localhost:6379/v1"),
        ("127.0.0.1:11434", "http://127.0.0.1:6379/v1"),
        ("localhost", "http://127.0.0.1:11434/v1"),
        ("10.0.0.0/8", "https://192.168.0.1/v1"),
        ("10.0.0.0/8", "http://ollama.internal/v1"),
        ("0.0.0.0/0", "https://169.254.169.254/v1"),
        ("169.254.169.254", "http://169.254.169.254/v1"),
        ("fd00::/8", "https://[fd00:ec2::254]/v1"),
        ("127.0.0.0/8", "http://2130706433/"),
        ("127.0.0.0/8", "http://user@127.0.0.1/"),
    ],
)
def test_what_is_allowed_is_that_and_not_more(allowed, url):
    with pytest.raises(EndpointRefused):
        Guard.of([allowed]).endpoint(url)


@pytest.mark.parametrize(
    "text", ["", "*", "https://localhost", "10.0.0.0/99", "localhost:", "a b", "10.0.0.1/8", "127.1", "x/y"]
)
def test_what_is_no_host_and_no_network_cannot_be_allowed(text):
    with pytest.raises(ConfigError):
        Allowed.of(text)


def test_only_the_open_internet_is_public():
    public = ["8.8.8.8", "1.1.1.1", "2606:4700:4700::1111", "64:ff9b::808:808"]
    assert all(is_public(ip_address(text)) for text in public)
    assert not any(is_public(address) for address in METADATA)
    assert unwrapped(ip_address("64:ff9b::7f00:1")) == ip_address("127.0.0.1")


# -- at the socket ----------------------------------------------------------------------------------------------------


class Trap:
    """Listens on addresses of this machine and counts who comes; a table says what names stand for."""

    def __init__(self) -> None:
        self.came: list[str] = []
        self.sockets = []
        first = self._listen("127.0.0.1", 0)
        self.port = first.getsockname()[1]
        for address in ("127.0.0.2", "127.0.0.3", "::1"):
            self._listen(address, self.port)

    def _listen(self, address: str, port: int) -> socket.socket:
        listener = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen()
        self.sockets.append(listener)
        threading.Thread(target=self._take, args=(listener, address), daemon=True).start()
        return listener

    def _take(self, listener: socket.socket, address: str) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            self.came.append(address)
            with connection:
                connection.recv(65_536)
                connection.sendall(self.answer)

    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"

    def close(self) -> None:
        for listener in self.sockets:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()


@pytest.fixture
def trap() -> Iterator[Trap]:
    found = Trap()
    yield found
    found.close()


def asked(guard: Guard, url: str, key: str = "k", path: str = "/chat") -> httpx2.Response:
    """One request by a client for the base address *url*."""

    async def ask() -> httpx2.Response:
        endpoint = guard.endpoint(url)
        async with guarded_client(endpoint, guard, "openai", Secret(key), timeout=5.0) as client:
            return await client.post(endpoint.url + path if path.startswith("/") else path, json={})

    return asyncio.run(ask())


def names(table: dict[str, list[str]]) -> Callable[[str, int], list[str]]:
    return lambda host, port: table[host]


PRIVATE = ["127.0.0.1", "127.0.0.2", "::1", "::ffff:127.0.0.1", "::ffff:7f00:2", "0.0.0.0", "::", "10.0.0.1"]
PRIVATE += [
    "192.168.0.1",
    "169.254.169.254",
    "100.64.0.1",
    "fe80::1",
    "fe80::1%lo",
    "64:ff9b::7f00:1",
    "2002:7f00:1::1",
]


@pytest.mark.parametrize("address", PRIVATE)
def test_a_name_that_stands_for_a_private_address_is_not_connected_to(trap, address):
    guard = Guard(resolve=names({"evil.example": [address]}))
    with pytest.raises(httpx2.ConnectError) as caught:
        asked(guard, f"https://evil.example:{trap.port}/v1")

    assert isinstance(caught.value.__cause__, AddressRefused)
    assert trap.came == []


@pytest.mark.parametrize("answers", [["8.8.8.8", "127.0.0.1"], ["127.0.0.1", "8.8.8.8"], ["2606:4700::1", "::1"]])
def test_one_private_address_among_public_ones_spoils_them(trap, answers):
    guard = Guard(resolve=names({"mixed.example": answers}))
    with pytest.raises(httpx2.ConnectError):
        asked(guard, f"https://mixed.example:{trap.port}/v1")
    assert trap.came == []


def test_a_name_that_changes_its_mind_is_caught_when_it_is_connected_to(trap):
    """The first answer is public and looked at; the second one is private, and the connection that it is for is not made."""
    turns = iter([["127.0.0.2"], ["127.0.0.1"], ["127.0.0.1"]])
    guard = Guard.of(["127.0.0.2", "rebind.example:1"])
    guard = replace(guard, resolve=lambda host, port: next(turns))
    url = f"http://rebind.example:{trap.port}"
    endpoint = Guard.of([f"rebind.example:{trap.port}"]).endpoint(url)

    async def ask() -> list[object]:
        got: list[object] = []
        async with guarded_client(endpoint, guard, "openai", Secret("k"), timeout=5.0) as client:
            for _ in range(3):
                try:
                    got.append((await client.post(url + "/chat", json={})).status_code)
                except httpx2.ConnectError as error:
                    got.append(type(error.__cause__))
        return got

    assert asyncio.run(ask()) == [200, AddressRefused, AddressRefused]
    assert trap.came == ["127.0.0.2"]


def test_an_allowed_name_is_asked_at_the_address_that_was_looked_at_under_its_own_name(trap):
    seen = []
    guard = replace(Guard.of([f"ollama.internal:{trap.port}"]), resolve=names({"ollama.internal": ["127.0.0.3"]}))

    async def ask() -> httpx2.Response:
        endpoint = guard.endpoint(f"http://ollama.internal:{trap.port}/v1")
        async with guarded_client(endpoint, guard, "ollama", Secret("k"), timeout=5.0) as client:
            client.event_hooks["request"].append(lambda request: _noted(seen, request))
            return await client.post(endpoint.url + "/chat", json={})

    assert asyncio.run(ask()).status_code == 200
    assert trap.came == ["127.0.0.3"]
    assert seen == [f"ollama.internal:{trap.port}"]


async def _noted(seen: list[str], request: httpx2.Request) -> None:
    seen.append(request.headers["host"])


def test_a_redirect_is_not_followed(trap):
    trap.answer = (
        b"HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.2:%d/\r\nContent-Length: 0\r\n"
        b"Connection: close\r\n\r\n" % trap.port
    )
    answer = asked(Guard.of(["127.0.0.1"]), f"http://127.0.0.1:{trap.port}")
    assert answer.status_code == 307
    assert trap.came == ["127.0.0.1"]


@pytest.mark.parametrize("other", ["http://127.0.0.2:{port}/", "http://127.0.0.1:1/", "https://127.0.0.1:{port}/"])
def test_a_key_goes_to_no_other_origin_than_its_own(trap, other):
    with pytest.raises(httpx2.ConnectError):
        asked(Guard.of(["127.0.0.0/8"]), f"http://127.0.0.1:{trap.port}", path=other.format(port=trap.port))
    assert trap.came == []


@pytest.mark.parametrize(
    "variable", ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"]
)
def test_a_proxy_of_the_environment_is_not_used(trap, monkeypatch, variable):
    monkeypatch.setenv(variable, f"http://127.0.0.2:{trap.port}")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    assert asked(Guard.of(["127.0.0.1"]), f"http://127.0.0.1:{trap.port}").status_code == 200
    with pytest.raises(httpx2.ConnectError):
        asked(Guard(resolve=names({"evil.example": ["127.0.0.1"]})), f"https://evil.example:{trap.port}")
    assert trap.came == ["127.0.0.1"]


def test_an_unknown_name_is_no_connection(trap):
    def nobody(host: str, port: int) -> list[str]:
        raise socket.gaierror(-2, "Name or service not known")

    with pytest.raises(httpx2.ConnectError, match="not known"):
        asked(Guard(resolve=nobody), f"https://gone.example:{trap.port}")
