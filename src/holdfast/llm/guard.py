"""
The address and key of a model, and the guard: endpoints of users are public, or allowed by the operator.

A user or an organization chooses the address, and the request leaves from the operator's network.  So the URL is
parsed strictly, with no form that two parsers could read differently, and the addresses of a name are checked again
when it is connected to (`holdfast.llm.guarded_http`), because a name can resolve to another address later.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Literal, TypeAlias

from ..errors import BadInput, ConfigError, EndpointRefused
from ..text import dataclass, expression
from ..types import Secret

IPAddress: TypeAlias = IPv4Address | IPv6Address
Resolve: TypeAlias = Callable[[str, int], Sequence[str]]
"""Resolves a name and a port to every address that the name has now."""

_URL = expression(
    r"(?P<scheme>https?)://(?P<host>[A-Za-z0-9](?:[A-Za-z0-9._-]{0,252})|\[[0-9A-Fa-f:.]{2,45}\])"
    r"(?::(?P<port>[0-9]{1,5}))?(?P<path>(?:/[A-Za-z0-9._~-]+)*/?)"
)
_ENTRY = expression(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>[0-9]{1,5}))?")
_LABEL = expression(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_NUMBER = expression(r"[0-9]+|0x[0-9a-f]*")
_LOCAL_NAMES = ("localhost", "local", "internal", "intranet", "lan", "home", "corp", "home.arpa", "localdomain")

# Addresses at which cloud machines hand out their credentials; no model is served there.
METADATA = frozenset(
    map(
        ip_address,
        ("169.254.169.254", "169.254.170.2", "100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254"),
    )
)
_NEVER_PUBLIC = [
    ip_network(net)
    for net in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
        "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24",
        "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3",
        "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
    )
]  # fmt: skip
_UNICAST = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")
_LEAST_PORT = 1_024


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A parsed base URL: ``url`` without a slash at its end; ``host`` in lower case, without brackets."""

    url: str
    scheme: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Allowed:
    """A private host or network that the operator allows, with any port when ``port`` is ``None``."""

    host: str | None
    network: tuple[int, int, int] | None
    port: int | None

    @classmethod
    def of(cls, text: str) -> Allowed:
        """
        Parse ``localhost:11434``, ``ollama.internal``, ``127.0.0.1``, ``[::1]:8000`` or ``10.0.0.0/8``.

        Raises:
            ConfigError: it is none of these.
        """
        try:
            if "/" in text:
                return cls(None, _span(text), None)
            found = _ENTRY.fullmatch(text)
            bare = text if found is None else found["host"].strip("[]").lower()
            port = int(found["port"]) if found is not None and found["port"] else None
            if ":" in bare or _is_number(bare):
                return cls(None, _span(bare), port)
            if found is not None and all(map(_LABEL.fullmatch, bare.split("."))):
                return cls(bare, None, port)
        except ValueError:
            pass
        raise ConfigError(
            f"{text!r} is neither a host nor a network",
            hint="write localhost:11434, ollama.internal, 127.0.0.1 or 10.0.0.0/8",
        )

    def covers(self, host: str, port: int, address: IPAddress | None) -> bool:
        """Whether this entry allows the host, or the network of its address."""
        if self.port not in (None, port):
            return False
        if self.network is None:
            return host == self.host
        version, low, high = self.network
        return address is not None and address.version == version and low <= int(address) <= high


@dataclass(frozen=True, slots=True)
class Guard:
    """The check of where a brought key may be sent; ``resolve`` is the system's resolver, or a test's."""

    allowed: tuple[Allowed, ...] = ()
    resolve: Resolve = lambda host, port: resolved(host, port)

    @classmethod
    def of(cls, allowed: Sequence[str]) -> Guard:
        """
        Build the guard that allows these private hosts and networks; see `Allowed.of`.

        Raises:
            ConfigError: one of them is neither a host nor a network.
        """
        return cls(tuple(Allowed.of(text) for text in allowed))

    def endpoint(self, url: str) -> Endpoint:
        """
        Parse *url* as the base URL for a brought key; nothing is resolved.

        Raises:
            EndpointRefused: it is ambiguous, not http(s), or private and not allowed.
        """
        found = _URL.fullmatch(url)
        if found is None or any(part in (".", "..") for part in found["path"].split("/")):
            hint = "write https://host/path, without user, query or fragment"
            raise EndpointRefused("this base_url is not a plain address", hint=hint)
        scheme, host = found["scheme"], found["host"].strip("[]").lower()
        port = int(found["port"] or (443 if scheme == "https" else 80))
        address = self._literal(host, bracketed=found["host"].startswith("["))
        inner = None if address is None else unwrapped(address)
        local = inner not in METADATA and any(entry.covers(host, port, inner) for entry in self.allowed)
        if scheme == "http" and not local:
            raise EndpointRefused("a key is sent over https only", hint=_HINT)
        if not local:
            self._public(host, port, address)
        if not 0 < port < 65_536:
            raise EndpointRefused(f"there is no port {port}")
        return Endpoint(url.rstrip("/"), scheme, host, port)

    def check(self, host: str, port: int, resolved_to: str) -> str:
        """
        Return *resolved_to*, an address of *host*, when it may be connected to.

        Raises:
            EndpointRefused: it is private and not allowed, or no address.
        """
        try:
            address: IPAddress = ip_address(resolved_to)
        except ValueError:
            raise EndpointRefused(f"{host} has an address that cannot be read") from None
        inner = unwrapped(address)
        if inner in METADATA:
            raise EndpointRefused(f"{host} resolves to an address that gives out credentials of this machine")
        if is_public(address) or any(entry.covers(host, port, inner) for entry in self.allowed):
            return str(address)
        raise EndpointRefused(f"{host} resolves to a private address", hint=_HINT)

    def addresses(self, host: str, port: int) -> list[str]:
        """
        Return the addresses of *host*, all of them checked; one refused address refuses the host.

        Raises:
            EndpointRefused: see `check`.
            OSError: the name is not known.
        """
        found = [self.check(host, port, address) for address in dict.fromkeys(self.resolve(host, port))]
        if not found:
            raise OSError(f"{host} has no address")
        return found

    def _literal(self, host: str, *, bracketed: bool) -> IPAddress | None:
        """Return the IP address that *host* spells, or ``None`` for a name."""
        if not bracketed and not _is_number(host):
            if not all(map(_LABEL.fullmatch, host.split("."))):
                raise EndpointRefused(f"{host!r} is not a host name")
            return None
        try:
            address: IPAddress = ip_address(host)
        except ValueError:
            address = IPv4Address(0)
        if bracketed != (address.version == 6) or (address.version == 4 and str(address) != host):
            raise EndpointRefused(f"{host!r} is not an address", hint="write an IPv4 address as four numbers")
        return address

    def _public(self, host: str, port: int, address: IPAddress | None) -> None:
        named = host.split(".")
        local = len(named) < 2 or any(host == name or host.endswith(f".{name}") for name in _LOCAL_NAMES)
        if (address is not None and not is_public(address)) or (address is None and local):
            raise EndpointRefused(f"{host} is a private address", hint=_HINT)
        if port != 443 and port < _LEAST_PORT:
            raise EndpointRefused(f"port {port} is not a port of a model", hint="443, or one from 1024 on")


_HINT = "the operator allows private hosts and networks with Config.allow_private_endpoints"


def resolved(host: str, port: int) -> list[str]:
    """Resolve a host with the system's resolver."""
    return [str(found[4][0]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


def unwrapped(address: IPAddress) -> IPAddress:
    """Return the IPv4 address that an IPv6 address wraps, or the address itself."""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address in _NAT64:
            return IPv4Address(int(address) & 0xFFFF_FFFF)
        if address.sixtofour is not None:
            return address.sixtofour
        if int(address) >> 32 == 0 and int(address) > 1:  # ::127.0.0.1, a deprecated form
            return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address


def is_public(address: IPAddress) -> bool:
    """Whether this address belongs to the public internet."""
    wrapped = unwrapped(address)
    if wrapped != address and (not isinstance(address, IPv6Address) or address not in _NAT64):
        return False  # mapped, 6to4, compatible: only attackers write these
    if wrapped in METADATA or any(wrapped.version == net.version and wrapped in net for net in _NEVER_PUBLIC):
        return False
    if isinstance(wrapped, IPv6Address) and (wrapped not in _UNICAST or wrapped.scope_id is not None):
        return False
    return wrapped.is_global and not wrapped.is_multicast


def _is_number(host: str) -> bool:
    """Whether a browser or a C library would read *host* as an IPv4 address in one of its many forms."""
    return _NUMBER.fullmatch(host.rstrip(".").rsplit(".", 1)[-1]) is not None


def _span(text: str) -> tuple[int, int, int]:
    net = ip_network(text)
    return net.version, int(net.network_address), int(net.broadcast_address)


Retention = Literal["24h", "in_memory"]

_MODEL = expression(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,199}")
_KEY = expression(r"[!-~]{0,4096}")
OLLAMA_URL = "http://127.0.0.1:11434/v1"
MAX_ANSWER_MB = 4


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider: the variables for its key and its address, our default address, and the provider's own."""

    name: str
    keys: tuple[str, ...]
    urls: tuple[str, ...] = ()
    url: str = ""
    home: str = ""


PROVIDERS = {
    provider.name: provider
    for provider in (
        Provider("openai", ("OPENAI_API_KEY",), ("OPENAI_BASE_URL",), home="https://api.openai.com/v1"),
        Provider("anthropic", ("ANTHROPIC_API_KEY",), ("ANTHROPIC_BASE_URL",), home="https://api.anthropic.com"),
        Provider(
            "google",
            ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
            ("GOOGLE_GEMINI_BASE_URL",),
            home="https://generativelanguage.googleapis.com",
        ),
        Provider("ollama", (), ("OLLAMA_BASE_URL", "OLLAMA_HOST"), OLLAMA_URL),
    )
}


@dataclass(frozen=True, slots=True)
class Address:
    """
    The server, model and key of a call.  The key is in no text of this value.

    ``compatible``: another server that speaks OpenAI's protocol; it is sent nothing that only OpenAI knows.
    ``guarded``: the only endpoint to which a key that a user or an organization brought is sent, and its guard.
    """

    provider: str
    model: str
    base_url: str | None
    api_key: str | None
    compatible: bool
    cache_retention: Retention = "24h"
    max_answer_bytes: int = MAX_ANSWER_MB * 2**20
    guarded: tuple[Endpoint, Guard] | None = None

    @property
    def name(self) -> str:
        """The provider and the model: ``provider:model``."""
        return f"{self.provider}:{self.model}"

    @property
    def local(self) -> bool:
        """Whether it is a model of a local Ollama, which costs nothing."""
        return (
            self.provider == "ollama" and not self.model.endswith("-cloud") and "//ollama.com" not in str(self.base_url)
        )

    def __repr__(self) -> str:
        return f"Address({self.name!r})"


def find_address(
    name: str, base_url: str | None = None, api_key: str | None = None, cache_retention: Retention = "24h"
) -> Address:
    """
    Return the address of the model *name*, with key and URL from the environment where none are given.

    Raises:
        ConfigError: there is no such provider, or its key is missing.
    """
    known, _, wanted = name.partition(":")
    if known not in PROVIDERS or not wanted:
        raise ConfigError(
            f"{name!r} is not a model name",
            hint=f"write provider:model; providers are {', '.join(PROVIDERS)}; any other server: openai: with a base_url",
        )
    if cache_retention not in ("24h", "in_memory"):
        raise ConfigError(f"{cache_retention!r} is not a cache retention", hint="use 24h or in_memory")
    provider = PROVIDERS[known]
    compatible = known == "ollama" or (known == "openai" and base_url is not None)
    key = api_key or _first(provider.keys) if base_url is None or not compatible else api_key
    if not key and not compatible:
        raise ConfigError(
            f"{name} needs a key and there is none",
            hint=f"set {provider.keys[0]}, or pass llm=holdfast.llm.model({name!r}, api_key=…)",
        )
    url = base_url or _first(provider.urls) or provider.url or None
    return Address(known, wanted, _complete(known, url), key, compatible, cache_retention)


def address_for_key(
    provider: str,
    model: str,
    base_url: str | None,
    key: Secret,
    guard: Guard,
    cache_retention: Retention = "24h",
) -> Address:
    """
    Return the address for a key that a user or an organization brought, without the operator's environment.

    Raises:
        BadInput: no such provider, or a name or key that cannot be sent.
        EndpointRefused: the key may not be sent there.
    """
    if provider not in PROVIDERS:
        raise BadInput(f"there is no provider {provider!r}", hint=f"use {', '.join(PROVIDERS)}; other servers: openai")
    if not isinstance(model, str) or _MODEL.fullmatch(model) is None:
        raise BadInput("this is not the name of a model", hint="write it as the provider does")
    text = key.reveal()
    if not (text or provider == "ollama") or _KEY.fullmatch(text) is None:
        raise BadInput("this is not a key", hint="letters, digits and signs without blanks, 4,096 at most")
    home = PROVIDERS[provider].home or OLLAMA_URL
    endpoint = guard.endpoint(_complete(provider, base_url) or home)
    compatible = provider == "ollama" or (provider == "openai" and endpoint.url != home)
    return Address(provider, model, endpoint.url, text or None, compatible, cache_retention, guarded=(endpoint, guard))


def _first(variables: tuple[str, ...]) -> str | None:
    return next((value for variable in variables if (value := os.environ.get(variable, "").strip())), None)


def _complete(provider: str, url: str | None) -> str | None:
    """Complete an address: OLLAMA_HOST commonly has neither a scheme nor the path of the protocol."""
    if url is None:
        return None
    url = url if "://" in url else f"http://{url}"
    if provider == "ollama" and not url.rstrip("/").endswith("/v1"):
        url = f"{url.rstrip('/')}/v1"
    return url
