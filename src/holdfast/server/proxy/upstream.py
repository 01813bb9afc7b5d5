"""
The server behind the proxy: where it is, which key opens it, and what of a request and an answer goes through.

Keys of the two sides never meet: the client's key opens this server alone, the upstream's is never told to a client.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlencode

import httpx2

from ..settings import ServerSettings

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
        b"x-forwarded-for",
        b"x-forwarded-host",
        b"x-forwarded-proto",
        b"x-real-ip",
    )
)
_OURS = (b"x-memory", b"x-holdfast", b"sec-")
# What is between this server and the upstream.
_NOT_ANSWERED = _HOP_BY_HOP | frozenset((b"alt-svc", b"date", b"server", b"set-cookie", b"strict-transport-security"))
_OWN_QUERY = frozenset(("bot", "subject"))

Headers = list[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class Upstream:
    """A server that speaks OpenAI's protocol; ``base_url`` ends before ``/chat/completions``."""

    base_url: str
    key: str | None = field(default=None, repr=False)

    @property
    def takes_cache_key(self) -> bool:
        """Whether it is known to take ``prompt_cache_key``; servers that only speak the protocol may refuse it."""
        return httpx2.URL(self.base_url).host == "api.openai.com"

    def url(self, path: str, query: bytes) -> str:
        """The address of *path* there; what the query says to this server is left out."""
        asked = parse_qsl(query.decode("ascii", "replace"), keep_blank_values=True)
        rest = urlencode([(name, value) for name, value in asked if name not in _OWN_QUERY])
        return f"{self.base_url.rstrip('/')}{path}{'?' if rest else ''}{rest}"

    def headers(self, given: Iterable[tuple[bytes, bytes]]) -> Headers:
        """The headers with which a request of a client goes on."""
        kept = [
            (name, value)
            for name, value in given
            if name.lower() not in _NOT_FORWARDED and not name.lower().startswith(_OURS)
        ]
        own = [(b"accept-encoding", b"identity"), (VIA, b"1")]
        if self.key:
            own.append((b"authorization", f"Bearer {self.key}".encode()))
        return kept + own


def answered(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """The headers with which an answer goes back."""
    return [
        (name.lower(), value)
        for name, value in headers
        if name.lower() not in _NOT_ANSWERED and not name.lower().startswith(b"access-control-")
    ]


class Pool:
    """Connections to upstreams, kept open between requests; one pool for each event loop."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._client: httpx2.AsyncClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def client(self) -> httpx2.AsyncClient:
        """The client of the loop that runs."""
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            settings = self._settings
            self._client, self._loop = (
                httpx2.AsyncClient(
                    timeout=httpx2.Timeout(settings.upstream_timeout_s, connect=settings.upstream_connect_s),
                    limits=httpx2.Limits(
                        max_connections=settings.upstream_connections,
                        max_keepalive_connections=settings.upstream_connections,
                    ),
                    follow_redirects=False,
                ),
                loop,
            )
        return self._client

    async def close(self) -> None:
        """Close what is open."""
        client, self._client = self._client, None
        if client is not None and self._loop is asyncio.get_running_loop():
            await client.aclose()
