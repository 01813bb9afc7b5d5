"""
The server behind the proxy: its address, its key, and which headers pass in both directions.

Keys of the two sides never meet: the client's key opens this server alone, the upstream's is never shown to a client.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import field
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl, urlencode

import anyio
import httpx2

from ...errors import BadInput
from ...llm.guarded_http import upstream_client
from ...memory import Memory
from ...text import dataclass
from ...types import Upstream as BroughtUpstream
from ..gate import ServerSettings

PROVIDERS = {"openai": frozenset(("openai", "ollama")), "anthropic": frozenset(("anthropic",))}
THREADS = 32
MOST_CLIENTS = 200  # for so many keys connections are kept open
VIA = b"x-holdfast-via"
_HOP_BY_HOP = frozenset(
    (
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    )
)
# What is between the client and this server, or would tell the upstream of it.
_NOT_FORWARDED = _HOP_BY_HOP | frozenset(
    (
        b"accept-encoding",
        b"authorization",
        b"content-length",
        b"cookie",
        b"expect",
        b"forwarded",
        b"host",
        b"origin",
        b"referer",
        b"x-api-key",
        b"x-forwarded-for",
        b"x-forwarded-host",
        b"x-forwarded-proto",
        b"x-real-ip",
    )
)
# Headers about the client's key; beside the operator's key they would name a project that the client may not use.
_OF_KEY = frozenset((b"openai-organization", b"openai-project"))
_OURS = (b"x-memory", b"x-holdfast", b"sec-")
# What is between this server and the upstream.
_NOT_ANSWERED = _HOP_BY_HOP | frozenset((b"alt-svc", b"date", b"server", b"set-cookie", b"strict-transport-security"))
_OWN_QUERY = frozenset(("bot", "subject"))

Headers = list[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class UpstreamServer:
    """
    A server that speaks OpenAI's protocol, or Anthropic's; ``base_url`` ends before ``/chat/completions`` or ``/messages``.

    ``own``: it is that of a user or an org, who brought its key; then ``key`` is ``None``.
    """

    base_url: str
    key: str | None = field(default=None, repr=False)
    own: BroughtUpstream | None = None
    protocol: str = "openai"

    @property
    def takes_cache_key(self) -> bool:
        """Whether it takes ``prompt_cache_key``; servers that only speak the protocol may refuse it."""
        return _host(self.base_url) == "api.openai.com"

    def url(self, path: str, query: bytes) -> str:
        """Return the address of *path* there, without the query parameters meant for this server."""
        asked = parse_qsl(query.decode("ascii", "replace"), keep_blank_values=True)
        rest = urlencode([(name, value) for name, value in asked if name not in _OWN_QUERY])
        return f"{self.base_url.rstrip('/')}{path}{'?' if rest else ''}{rest}"

    def headers(self, given: Iterable[tuple[bytes, bytes]]) -> Headers:
        """Return the headers with which a client's request goes on."""
        dropped = _NOT_FORWARDED | (_OF_KEY if self.own is None else frozenset())
        kept = [
            (name, value) for name, value in given if name.lower() not in dropped and not name.lower().startswith(_OURS)
        ]
        own = [(b"accept-encoding", b"identity"), (VIA, b"1")]
        if self.key and self.protocol == "anthropic":
            own.append((b"x-api-key", self.key.encode()))
        elif self.key:
            own.append((b"authorization", f"Bearer {self.key}".encode()))
        return kept + own


@lru_cache(maxsize=1_000)
def _host(url: str) -> str:
    """Return the host of an address, which every chat asks for and which takes long to read."""
    return httpx2.URL(url).host


def answered(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Return the headers with which an answer goes back."""
    return [
        (name.lower(), value)
        for name, value in headers
        if name.lower() not in _NOT_ANSWERED and not name.lower().startswith(b"access-control-")
    ]


class Mask:
    """
    Replace the upstream's key by as many stars wherever a refusal quotes it.

    Providers tell which key they refuse, and the client is not the one whose key it is.
    """

    def __init__(self, upstream: UpstreamServer) -> None:
        key = upstream.key or (upstream.own.key.reveal() if upstream.own is not None else "")
        self._key = key.encode()
        self._held = b""

    def whole(self, text: bytes) -> bytes:
        """Mask a whole text."""
        return text.replace(self._key, b"*" * len(self._key)) if self._key else text

    def feed(self, chunk: bytes) -> bytes:
        """Mask the next piece and return what can go on; a key may span two pieces."""
        masked = self.whole(self._held + chunk)
        kept = max(0, len(masked) - max(0, len(self._key) - 1))
        self._held = masked[kept:]
        return masked[:kept]

    def end(self) -> bytes:
        """Return the rest."""
        return self._held


def upstream_of(
    memory: Memory, settings: ServerSettings, org: str, user: str | None, protocol: str = "openai"
) -> UpstreamServer | None:
    """
    Return the server for a user's chats: that of their own key, of their org's, else the one in the settings.

    A key of a provider with another protocol is for reading and summarizing; chats do not go there.  Without a server of
    Anthropic's, the one in the settings is asked, unless it is OpenAI's: many gateways speak both protocols.

    Raises:
        VaultLocked: there is a key of their own, and it cannot be opened; no other is used in its place.
        EndpointRefused: the operator does not allow its address any more.
        StoreError: the store cannot say whether there is one.
    """
    try:
        own = memory.admin.provider_keys.upstream(org=org, user=user)
    except BadInput:  # an invalid name has no key
        own = memory.admin.provider_keys.upstream(org=org)
    if own is not None and own.provider in PROVIDERS[protocol]:
        return UpstreamServer(_versioned(own.base_url, protocol), own=own, protocol=protocol)
    if protocol == "anthropic" and settings.anthropic_base_url:
        base = _versioned(settings.anthropic_base_url, protocol)
        return UpstreamServer(base, settings.anthropic_key, protocol=protocol)
    if not settings.upstream_base_url:
        return None
    found = UpstreamServer(settings.upstream_base_url, settings.upstream_key)
    return None if protocol == "anthropic" and found.takes_cache_key else found


def _versioned(base_url: str, protocol: str) -> str:
    """Return the base address with the version that Anthropic's clients add by themselves."""
    base = base_url.rstrip("/")
    return f"{base}/v1" if protocol == "anthropic" and not base.endswith("/v1") else base


@dataclass(slots=True, eq=False)
class _Client:
    """Connections for one key, shared by several requests; once ``retired``, the last of them closes it."""

    own: BroughtUpstream | None
    client: httpx2.AsyncClient
    users: int = 0
    retired: bool = False

    async def close_unused(self) -> None:
        if self.retired and not self.users:
            await self.client.aclose()


class Pool:
    """Connections to upstreams, kept open between requests; one pool for each event loop."""

    def __init__(self, settings: ServerSettings, allowed: Sequence[str] = ()) -> None:
        self._allowed = allowed
        self._options: dict[str, Any] = {
            "timeout": httpx2.Timeout(settings.upstream_timeout_s, connect=settings.upstream_connect_s),
            "limits": httpx2.Limits(
                max_connections=settings.upstream_connections, max_keepalive_connections=settings.upstream_connections
            ),
        }
        self._clients: OrderedDict[str, _Client] = OrderedDict()
        self._threads: anyio.CapacityLimiter | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @asynccontextmanager
    async def client(self, upstream: UpstreamServer) -> AsyncIterator[httpx2.AsyncClient]:
        """
        Return the client for *upstream* in the running loop; one for a user's own key goes to its address alone.

        Raises:
            EndpointRefused: the operator allows that address no longer.
        """
        self._enter()
        used, gone = self._taken(upstream.own)
        used.users += 1
        try:
            for one in gone:
                await one.close_unused()
            yield used.client
        finally:
            used.users -= 1
            with anyio.CancelScope(shield=True):
                await used.close_unused()

    def threads(self) -> anyio.CapacityLimiter:
        """
        Return the threads in which the memory works for chats.

        They are no others': when the store hangs, all of them may wait for it, and chats still pass.
        """
        self._enter()
        if self._threads is None:
            self._threads = anyio.CapacityLimiter(THREADS)
        return self._threads

    def _enter(self) -> None:
        """Drop what was made for another event loop."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._threads = loop, None
            self._clients.clear()

    def _taken(self, own: BroughtUpstream | None) -> tuple[_Client, list[_Client]]:
        """Return the client for a key, and the clients to close."""
        name = "" if own is None else own.id
        known, gone = self._clients.pop(name, None), []
        if known is not None and known.own != own:  # another key, or another address, since then
            gone.append(known)
            known = None
        if known is None and own is not None:
            known = _Client(own, upstream_client(own, self._allowed, **self._options))
        elif known is None:
            known = _Client(None, httpx2.AsyncClient(follow_redirects=False, **self._options))
        self._clients[name] = known
        if len(self._clients) > MOST_CLIENTS:
            gone.append(self._clients.popitem(last=False)[1])
        for one in gone:
            one.retired = True
        return known, gone

    async def close(self) -> None:
        """Close what is open."""
        clients = list(self._clients.values())
        self._clients.clear()
        if self._loop is asyncio.get_running_loop():
            for one in clients:
                await one.client.aclose()
