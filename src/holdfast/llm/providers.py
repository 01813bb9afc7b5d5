"""
A model by its name.

The package that reaches providers is loaded when a model is named, never before.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from ..errors import ConfigError
from .address import Address, Retention, located

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
