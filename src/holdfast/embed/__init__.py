"""
Embedders: texts in, unit vectors out.

The default one comes with the package and needs no network.  Where its files are missing,
`holdfast.embed.fetch.fetch` gets them; without any embedder, recall works by words.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final, Literal

from ..errors import ConfigError
from .files import ModelState, state
from .minilm import MiniLM
from .protocol import Embedder, Thresholds, dequantize, quantize

__all__ = [
    "BUILT_IN",
    "BuiltIn",
    "Embedder",
    "ModelState",
    "Thresholds",
    "default_embedder",
    "dequantize",
    "quantize",
    "resolve",
    "state",
]

BuiltIn = Literal["default"]

# What ``Memory(embedder=…)`` is unless given: the embedder in the package.
BUILT_IN: Final[BuiltIn] = "default"


def default_embedder() -> Embedder | None:
    """Return the built-in embedder, one a process, which reads its file at the first text; None where it is missing."""
    found = state()
    return _shared(str(found.folder)) if found.present else None


def resolve(embedder: Embedder | BuiltIn | None = BUILT_IN) -> Embedder | None:
    """
    Return the embedder for ``Memory(embedder=…)``: ``"default"`` is the built-in one if installed, ``None`` no embedder.

    Raises:
        ConfigError: it is neither of these nor an embedder.
    """
    if embedder is None:
        return None
    if isinstance(embedder, str):
        if embedder == BUILT_IN:
            return default_embedder()
        raise ConfigError(
            f"there is no embedder named {embedder!r}",
            hint='pass "default", None to search by words alone, or an object with id, dim, thresholds and embed()',
        )
    if isinstance(embedder, Embedder) and not isinstance(embedder, type):
        return embedder
    raise ConfigError(
        f"a {type(embedder).__name__} is not an embedder",
        hint="it needs id, dim, thresholds and embed(texts); see holdfast.embed.Embedder",
    )


@cache
def _shared(folder: str) -> Embedder:
    return MiniLM(Path(folder))
