"""The address and key of a model, from its name, given values and the usual environment variables."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Literal

from ..errors import BadInput, ConfigError
from ..types import Secret
from .guard import Endpoint, Guard

Retention = Literal["24h", "in_memory"]

_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,199}")
_KEY = re.compile(r"[!-~]{0,4096}")
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
