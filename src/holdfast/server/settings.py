"""The settings of one server, as one frozen value."""

from __future__ import annotations

from dataclasses import field

from ..text import dataclass

LOOPBACK = frozenset(("127.0.0.1", "::1", "localhost"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """
    Every setting of the server; the name carries the unit.

    ``allowed_hosts`` are the names under which the server may be asked for, without port; a request for another
    name is refused, so that a page elsewhere cannot reach the server by another name that points here.
    ``allowed_origins`` are the pages (``https://chat.example``) whose scripts may ask from a browser.

    ``requests_per_minute`` is of one key, ``org_requests_per_minute`` of all keys of one org; each process counts for
    itself.  ``messages_per_day`` and ``messages_per_month`` (UTC) are how many messages one key may store, ``org_messages_per_day``
    and ``org_messages_per_month`` all keys of one org; they are counted in the store, for all processes.  What models may use a day is `Config.budget_org` and `Config.budget_user`.  ``streams`` is how many streams of events may be open at a time.

    ``upstream_base_url`` is where chats go (``https://api.openai.com/v1``), opened by ``upstream_key``; ``None``: there
    is no such place.  ``anthropic_base_url`` and ``anthropic_key`` are the same for chats in Anthropic's protocol.  A memory that has not answered a chat after ``memory_timeout_s`` is left out of it.
    ``traced``: what `holdfast.integrations.telemetry` traces belongs to the trace that a request's headers name.
    ``threads``: how many threads of the process do background work, for ``/metrics`` to tell.
    """

    host: str = "127.0.0.1"
    port: int = 7800
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    max_body_bytes: int = 8 * 2**20
    body_timeout_s: float = 30.0
    max_upload_bytes: int = 512 * 2**20
    upload_timeout_s: float = 900.0
    header_timeout_s: float = 10.0
    max_head_bytes: int = 64 * 2**10
    stuck_timeout_s: float = 60.0
    requests_per_minute: int = 6_000
    org_requests_per_minute: int = 60_000
    messages_per_day: int | None = None
    org_messages_per_day: int | None = None
    messages_per_month: int | None = None
    org_messages_per_month: int | None = None
    streams: int = 2_000
    upstream_base_url: str | None = None
    upstream_key: str | None = field(default=None, repr=False)
    anthropic_base_url: str | None = None
    anthropic_key: str | None = field(default=None, repr=False)
    upstream_connect_s: float = 10.0
    upstream_timeout_s: float = 600.0
    upstream_connections: int = 200
    memory_timeout_s: float = 5.0
    traced: bool = False
    threads: int = 0

    @property
    def hosts(self) -> frozenset[str]:
        """The host names in use: the allowed ones, the address itself, and this machine's own when it is loopback."""
        own = LOOPBACK if self.host in LOOPBACK else {self.host}
        return frozenset(name.lower() for name in (*self.allowed_hosts, *own))

    @property
    def origins(self) -> frozenset[str]:
        """The origins in use: those that were allowed, the server's own, and its own behind a proxy that speaks TLS."""
        own = (f"http://{_bracketed(name)}:{self.port}" for name in self.hosts)
        behind = (f"https://{_bracketed(name.lower())}" for name in self.allowed_hosts)
        return frozenset((*self.allowed_origins, *own, *behind))


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
