"""
A model by its name.

The package that reaches providers is loaded when a model is named, never before.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Literal

from ..errors import BadInput, ConfigError
from ..secret import Secret
from ..text.tokens import count_tokens
from .guard import Endpoint, Guard
from .protocol import Answer, ModelError, Request

if TYPE_CHECKING:
    from .remote import RemoteModel


def model(
    name: str, *, base_url: str | None = None, api_key: str | None = None, cache_retention: Retention = "24h"
) -> RemoteModel:
    """
    A model of a provider.

        model("anthropic:claude-haiku-5-5")
        model("openai:qwen3-coder", base_url="http://127.0.0.1:8000/v1")    # vLLM, LM Studio, a gateway, …

    Args:
        name: ``openai:``, ``anthropic:``, ``google:`` or ``ollama:`` and the provider's name of the model.
        base_url: another address; with ``openai:`` any server that speaks OpenAI's chat protocol.
        api_key: instead of the provider's environment variable.
        cache_retention: how long OpenAI may keep a cached prompt: ``24h`` or ``in_memory``.

    Raises:
        ConfigError: no such provider, or its package or its key is missing; the hint says what to do.
    """
    return from_address(located(name, base_url, api_key, cache_retention))


def from_address(address: Address) -> RemoteModel:
    """
    The model at an address.

    Raises:
        ConfigError: the package that reaches providers is missing.
    """
    try:
        remote = import_module(f"{__package__}.remote")
    except ImportError as error:
        hint = "pip install 'holdfast[llm]'"
        raise ConfigError(f"{address.name} needs a package that is not installed: {error.name}", hint=hint) from error
    made: RemoteModel = remote.RemoteModel(address)
    return made


Retention = Literal["24h", "in_memory"]

_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,199}")
_KEY = re.compile(r"[!-~]{0,4096}")
OLLAMA_URL = "http://127.0.0.1:11434/v1"
MAX_ANSWER_MB = 4


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider: the variables that may hold its key and its address, our default, and the provider's own address."""

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
    Where a model is asked.

    ``compatible``: some other server that speaks OpenAI's protocol, to which nothing that only OpenAI knows is
    sent.  ``way`` is how a key of somebody's own gets there: guarded, and to that endpoint alone.  The key stands in no
    text of this value.
    """

    provider: str
    model: str
    base_url: str | None
    api_key: str | None
    compatible: bool
    cache_retention: Retention = "24h"
    max_answer_bytes: int = MAX_ANSWER_MB * 2**20
    way: tuple[Endpoint, Guard] | None = None

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


def brought(
    provider: str,
    model: str,
    base_url: str | None,
    key: Secret,
    guard: Guard,
    cache_retention: Retention = "24h",
) -> Address:
    """
    The address of a key that somebody brought: nothing of it is taken from the environment, which is the operator's.

    Raises:
        BadInput: no such provider, or names or keys that cannot be sent.
        EndpointRefused: the key may not be sent there.
    """
    if provider not in PROVIDERS:
        raise BadInput(f"there is no provider {provider!r}", hint=f"use {', '.join(PROVIDERS)}; other servers: openai")
    if not isinstance(model, str) or _MODEL.fullmatch(model) is None:
        raise BadInput("this is no name of a model", hint="write it as the provider does")
    text = key.reveal()
    if not (text or provider == "ollama") or _KEY.fullmatch(text) is None:
        raise BadInput("this is no key", hint="letters, digits and signs without blanks, 4,096 at most")
    home = PROVIDERS[provider].home or OLLAMA_URL
    endpoint = guard.endpoint(_whole(provider, base_url) or home)
    compatible = provider == "ollama" or (provider == "openai" and endpoint.url != home)
    way = (endpoint, guard)
    return Address(provider, model, endpoint.url, text or None, compatible, cache_retention, way=way)


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


Messages = Sequence[Mapping[str, str]]
Function = Callable[[Messages], str | Answer]


@dataclass(frozen=True, slots=True)
class FunctionModel:
    """
    Calls ``function(messages)`` with a system and a user message in OpenAI's shape, a chat's turns between them.

    It returns text, or an `Answer` when it knows what the call used; tokens are estimated otherwise.
    """

    function: Function
    name: str

    def ask(self, request: Request) -> Answer:
        """
        See `LanguageModel`.

        Raises:
            ModelError: the function returned something else, or could not reach its model.
        """
        before = ({"role": role, "content": content} for role, content in request.before)
        system, text = {"role": "system", "content": request.system}, {"role": "user", "content": request.text}
        messages = ((system,) if request.system else ()) + (*before, text)
        try:
            said = self.function(messages)
        except OSError as error:  # refused connections and time-outs are among them
            raise ModelError(f"{self.name} failed: {type(error).__name__}", hint="it is tried again") from error
        if isinstance(said, Answer):
            return replace(said, model=said.model or self.name)
        if not isinstance(said, str):
            hint = "let it return the model's text, or a holdfast.llm.Answer"
            raise ModelError(f"{self.name} returned a {type(said).__name__}", hint=hint, transient=False)
        asked = sum(count_tokens(message["content"]) for message in messages)
        return Answer(said, self.name, input_tokens=asked, output_tokens=count_tokens(said), estimated=True)


def from_function(function: Function) -> FunctionModel:
    """
    A model out of a function; it is named ``function:`` and its own name.

    Raises:
        ConfigError: it is a coroutine function.
    """
    call = function if inspect.isroutine(function) else type(function).__call__
    if inspect.iscoroutinefunction(call):
        raise ConfigError("llm is an async function", hint="pass a plain one; it is called in threads")
    return FunctionModel(function, f"function:{getattr(function, '__name__', type(function).__name__)}")
