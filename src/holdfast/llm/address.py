"""Where a model is asked, and with which key: from its name, what was given, and the usual environment variables."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal

from ..errors import ConfigError

Retention = Literal["24h", "in_memory"]

OLLAMA_URL = "http://127.0.0.1:11434/v1"
MAX_ANSWER_MB = 4


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider: the variables that may hold its key, and its address."""

    name: str
    keys: tuple[str, ...]
    urls: tuple[str, ...] = ()
    url: str = ""


PROVIDERS = {
    provider.name: provider
    for provider in (
        Provider("openai", ("OPENAI_API_KEY",), ("OPENAI_BASE_URL",)),
        Provider("anthropic", ("ANTHROPIC_API_KEY",), ("ANTHROPIC_BASE_URL",)),
        Provider("google", ("GOOGLE_API_KEY", "GEMINI_API_KEY"), ("GOOGLE_GEMINI_BASE_URL",)),
        Provider("ollama", (), ("OLLAMA_BASE_URL", "OLLAMA_HOST"), OLLAMA_URL),
    )
}


@dataclass(frozen=True, slots=True)
class Address:
    """
    Where a model is asked.

    ``compatible``: some other server that speaks OpenAI's protocol, to which nothing that only OpenAI knows is
    sent.  The key stands in no text of this value.
    """

    provider: str
    model: str
    base_url: str | None
    api_key: str | None
    compatible: bool
    cache_retention: Retention = "24h"
    max_answer_bytes: int = MAX_ANSWER_MB * 2**20

    @property
    def name(self) -> str:
        """As it was spelled: ``provider:model``."""
        return f"{self.provider}:{self.model}"

    @property
    def local(self) -> bool:
        """Whether it is a model of one's own Ollama, which nobody is paid for."""
        return (
            self.provider == "ollama" and not self.model.endswith("-cloud") and "//ollama.com" not in str(self.base_url)
        )

    def __repr__(self) -> str:
        return f"Address({self.name!r})"


def located(
    name: str, base_url: str | None = None, api_key: str | None = None, cache_retention: Retention = "24h"
) -> Address:
    """
    What *name* stands for, with key and address from the environment where none are given.

    Raises:
        ConfigError: no such provider, or its key is missing.
    """
    known, _, wanted = name.partition(":")
    if known not in PROVIDERS or not wanted:
        raise ConfigError(
            f"{name!r} names no model",
            hint=f"write provider:model; providers are {', '.join(PROVIDERS)}; any other server: openai: with a base_url",
        )
    if cache_retention not in ("24h", "in_memory"):
        raise ConfigError(f"{cache_retention!r} is no cache retention", hint="use 24h or in_memory")
    provider = PROVIDERS[known]
    compatible = known == "ollama" or (known == "openai" and base_url is not None)
    key = api_key or _first(provider.keys) if base_url is None or not compatible else api_key
    if not key and not compatible:
        raise ConfigError(
            f"{name} needs a key and there is none",
            hint=f"set {provider.keys[0]}, or pass llm=holdfast.llm.model({name!r}, api_key=…)",
        )
    url = base_url or _first(provider.urls) or provider.url or None
    return Address(known, wanted, _whole(known, url), key, compatible, cache_retention)


def _first(variables: tuple[str, ...]) -> str | None:
    return next((value for variable in variables if (value := os.environ.get(variable, "").strip())), None)


def _whole(provider: str, url: str | None) -> str | None:
    """The address with its scheme; OLLAMA_HOST is commonly without, and without the path of the protocol."""
    if url is None:
        return None
    url = url if "://" in url else f"http://{url}"
    if provider == "ollama" and not url.rstrip("/").endswith("/v1"):
        url = f"{url.rstrip('/')}/v1"
    return url
