"""
HTTP connections that reach only addresses that the guard has checked.

A name is resolved once: the socket connects to the checked address, while the certificate and the ``Host`` are those of
the name.  No proxy of the environment is used, no redirect is followed, and there is one origin and one key.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable, Sequence
from typing import Any

import httpcore2
import httpx2

from ..errors import EndpointRefused
from ..types import Secret, Upstream
from .guard import Endpoint, Guard

# The header of each provider's key, and the prefix of its value.
KEY_HEADERS = {"anthropic": ("x-api-key", ""), "google": ("x-goog-api-key", "")}
BEARER = ("authorization", "Bearer ")
# The headers that a request may carry.  SDKs add others from the operator's environment, with the operator's keys.
_SENT = frozenset(
    "accept accept-encoding connection content-encoding content-length content-type host transfer-encoding user-agent "
    "anthropic-beta anthropic-version idempotency-key openai-beta x-client-request-id x-goog-api-client "
    "x-holdfast-via".split()
)


class AddressRefused(httpcore2.ConnectError):
    """The guard refuses the address."""


class _Backend(httpcore2.AnyIOBackend):
    """A network backend that connects to checked addresses only."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """
        Raises:
            AddressRefused: the name resolves to an address that may not be used.
        """
        until = None if timeout is None else asyncio.get_running_loop().time() + timeout
        try:
            async with asyncio.timeout_at(until):
                found = await asyncio.to_thread(self._guard.addresses, host, port)
        except EndpointRefused as error:
            raise AddressRefused(error.message) from error
        except TimeoutError:
            raise httpcore2.ConnectTimeout("the name was not found in time") from None
        except (OSError, UnicodeError):
            raise httpcore2.ConnectError("the name is not known") from None
        for number, address in enumerate(found, 1):
            left = None if until is None else max(0.01, until - asyncio.get_running_loop().time())
            try:
                stream = await super().connect_tcp(address, port, left, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                if number == len(found):
                    raise
                continue
            await self._check_peer(stream, host, port)
            return stream
        raise httpcore2.ConnectError("the name has no address")

    async def _check_peer(self, stream: httpcore2.AsyncNetworkStream, host: str, port: int) -> None:
        """Check the address that the socket really reached."""
        try:
            self._guard.check(host, port, str(stream.get_extra_info("server_addr")[0]))
        except EndpointRefused as error:
            await stream.aclose()
            raise AddressRefused(error.message) from error

    async def connect_unix_socket(self, *args: Any, **kwargs: Any) -> httpcore2.AsyncNetworkStream:
        """
        Raises:
            AddressRefused: always.
        """
        raise AddressRefused("a file is not the address of a model")


class GuardedTransport(httpx2.AsyncHTTPTransport):
    """A transport to one origin, with one key, over checked connections."""

    def __init__(
        self, endpoint: Endpoint, guard: Guard, provider: str, key: Secret, *, verify: ssl.SSLContext | None = None
    ) -> None:
        context = verify or httpx2.create_ssl_context()
        super().__init__(verify=context, trust_env=False)
        self._pool = httpcore2.AsyncConnectionPool(ssl_context=context, network_backend=_Backend(guard))
        self._endpoint, self._provider, self._key = endpoint, provider, key

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """
        Raises:
            httpx2.ConnectError: the request is for another origin than the one that the key belongs to.
        """
        url = request.url
        port = url.port or {"https": 443, "http": 80}.get(url.scheme)
        if (url.scheme, url.host.strip("[]").lower(), port) != (
            self._endpoint.scheme, self._endpoint.host, self._endpoint.port
        ):  # fmt: skip
            raise httpx2.ConnectError("a key is sent to its own address only", request=request)
        name, before = KEY_HEADERS.get(self._provider, BEARER)
        for header in [header for header in request.headers if header.lower() not in _SENT]:
            del request.headers[header]
        if self._key:
            request.headers[name] = before + self._key.reveal()
        return await super().handle_async_request(request)


def guarded_client(endpoint: Endpoint, guard: Guard, provider: str, key: Secret, **options: Any) -> httpx2.AsyncClient:
    """Return a client for one endpoint and one key; *options* go to `httpx2.AsyncClient`."""
    transport = GuardedTransport(endpoint, guard, provider, key)
    return httpx2.AsyncClient(transport=transport, trust_env=False, follow_redirects=False, **options)


def upstream_client(upstream: Upstream, allowed: Sequence[str], **options: Any) -> httpx2.AsyncClient:
    """
    Return a client for what `ProviderKeys.upstream` returned; *allowed* is ``Config.allow_private_endpoints``.

    Raises:
        EndpointRefused: the operator no longer allows the address.
    """
    guard = Guard.of(allowed)
    return guarded_client(guard.endpoint(upstream.base_url), guard, upstream.provider, upstream.key, **options)
