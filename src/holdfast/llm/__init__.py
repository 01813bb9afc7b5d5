"""
Models, seen from the stages as one small function: `Request` in, `Answer` out.

`model` names one at a provider; anything with a ``name`` and an ``ask`` is one as well, and so is a plain
function from messages to text.
"""

from __future__ import annotations

from typing import Any

from ..config import Config
from ..errors import ConfigError
from .protocol import Answer, BadAnswer, LanguageModel, ModelError, Request
from .providers import Function, from_address, from_function, model

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


def model_of(llm: Any, config: Config) -> LanguageModel | None:
    """
    What ``Memory(llm=…)`` means: ``None``, ``"provider:model"``, an object of the protocol, or a function.

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
