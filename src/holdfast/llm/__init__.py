"""
Language models, seen by the rest of the package as one call: a `Request` in, an `Answer` out.

`model` opens one by the name of its provider.  Any object with a ``name`` and an ``ask`` is a model too, and so is a
function from messages to text.  The package that reaches providers is loaded when a model is named, never before.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..config import Config
from ..errors import ConfigError
from ..text import dataclass
from ..text.terms import count_tokens
from .guard import Address, Retention, find_address
from .protocol import Answer, BadAnswer, LanguageModel, ModelError, Request

if TYPE_CHECKING:
    from .remote import RemoteModel

__all__ = [
    "Answer",
    "BadAnswer",
    "Function",
    "LanguageModel",
    "ModelError",
    "Request",
    "from_address",
    "model",
    "model_of",
]

Messages = Sequence[Mapping[str, str]]
Function = Callable[[Messages], str | Answer]


def model_of(llm: Any, config: Config) -> LanguageModel | None:
    """
    Return the model that ``Memory(llm=…)`` means: ``None``, ``"provider:model"``, a function or a model object.

    Raises:
        ConfigError: it is none of these, or the provider's package or key is missing.
    """
    if llm is None:
        return None
    if isinstance(llm, str):
        return model(llm, cache_retention=config.prompt_cache_retention)
    if isinstance(llm, LanguageModel) and not isinstance(llm, type) and isinstance(llm.name, str) and llm.name:
        return llm
    if callable(llm) and not isinstance(llm, type):
        return from_function(llm)
    raise ConfigError(
        f"a {type(llm).__name__} is not a model",
        hint='pass "provider:model", a function from messages to text, or an object with name and ask(request)',
    )


def model(
    name: str, *, base_url: str | None = None, api_key: str | None = None, cache_retention: Retention = "24h"
) -> RemoteModel:
    """
    Open a model of a provider.

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
    return from_address(find_address(name, base_url, api_key, cache_retention))


def from_address(address: Address) -> RemoteModel:
    """
    Open the model at an address.

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


@dataclass(frozen=True, slots=True)
class FunctionModel:
    """
    A function as a model: it is called with a system and a user message in OpenAI's format.

    It returns text, or an `Answer` when it knows how many tokens the call used; otherwise they are estimated.
    """

    function: Function
    name: str

    def ask(self, request: Request) -> Answer:
        """
        Call the function, with the earlier turns of a chat between the system and the user message.

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
        input_tokens = sum(count_tokens(message["content"]) for message in messages)
        return Answer(said, self.name, input_tokens=input_tokens, output_tokens=count_tokens(said), estimated=True)


def from_function(function: Function) -> FunctionModel:
    """
    Turn a function into a model named ``function:`` and its own name.

    Raises:
        ConfigError: it is a coroutine function.
    """
    call = function if inspect.isroutine(function) else type(function).__call__
    if inspect.iscoroutinefunction(call):
        raise ConfigError("llm is an async function", hint="pass a plain one; it is called in threads")
    return FunctionModel(function, f"function:{getattr(function, '__name__', type(function).__name__)}")
