"""
Embedders: texts in, unit vectors out.

The default one comes with the package and needs no network.  numpy does its arithmetic, or onnxruntime where the extra
``fast`` is installed.  Where its files are missing, `holdfast.embed.fetch.fetch` gets them; without any embedder, recall
works by words.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final, Literal

from ..errors import ConfigError
from ..text import NDArray, np
from .files import ModelState, state
from .minilm import MiniLM, Runtime, is_fast_installed
from .protocol import Embedder, Thresholds, dequantize, quantize

__all__ = [
    "BUILT_IN",
    "BuiltIn",
    "Embedder",
    "ModelState",
    "RememberingEmbedder",
    "Thresholds",
    "default_embedder",
    "dequantize",
    "quantize",
    "resolve",
    "state",
]

BuiltIn = Literal["default", "numpy", "fast"]

# What ``Memory(embedder=…)`` is unless given: the embedder in the package.
BUILT_IN: Final[BuiltIn] = "default"


def default_embedder(runtime: Runtime | None = None) -> Embedder | None:
    """
    Return the built-in embedder, one a process, which reads its file at the first text; None where it is missing.

    Without a *runtime* it computes by onnxruntime where that is installed, else by numpy.
    """
    found = state()
    runtime = runtime or ("onnxruntime" if is_fast_installed() else "numpy")
    return _shared(str(found.folder), runtime) if found.present else None


def resolve(embedder: Embedder | BuiltIn | None = BUILT_IN) -> Embedder | None:
    """
    Return the embedder for ``Memory(embedder=…)``: the built-in one by a name of `BuiltIn`, or ``None`` for no embedder.

    ``"default"`` computes by onnxruntime where the extra ``fast`` is installed, else by numpy; ``"fast"`` insists on the
    first, ``"numpy"`` on the second.

    Raises:
        ConfigError: it is neither of these nor an embedder, or the extra is not installed.
    """
    if embedder is None:
        return None
    if isinstance(embedder, str):
        if embedder == BUILT_IN:
            return default_embedder()
        if embedder == "numpy":
            return default_embedder("numpy")
        if embedder == "fast":
            if not is_fast_installed():
                raise ConfigError("onnxruntime is not installed", hint="pip install 'holdfast[fast]'")
            return default_embedder("onnxruntime")
        raise ConfigError(
            f"there is no embedder named {embedder!r}",
            hint='pass "default", "fast", "numpy", None to search by words alone, or an object with id, dim, thresholds '
            "and embed()",
        )
    if isinstance(embedder, Embedder) and not isinstance(embedder, type):
        return embedder
    raise ConfigError(
        f"a {type(embedder).__name__} is not an embedder",
        hint="it needs id, dim, thresholds and embed(texts); see holdfast.embed.Embedder",
    )


class RememberingEmbedder:
    """
    An embedder that gives the vectors of the last *most* texts without computing them again.

    The question of a context is the next message of its conversation. Texts are held as digests.
    """

    def __init__(self, embedder: Embedder, most: int = 512) -> None:
        self._inner, self._most = embedder, most
        self._held: OrderedDict[bytes, NDArray[np.float32]] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def id(self) -> str:
        """Return the embedder's id."""
        return self._inner.id

    @property
    def dim(self) -> int:
        """Return the width of its vectors."""
        return self._inner.dim

    @property
    def thresholds(self) -> Thresholds:
        """Return the embedder's thresholds."""
        return self._inner.thresholds

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row a text; see `Embedder.embed`."""
        keys = [hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in texts]
        with self._lock:
            found = {key: self._held[key] for key in keys if key in self._held}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        if missing:
            vectors = self._inner.embed(list(missing.values()))
            found |= {key: vector.copy() for key, vector in zip(missing, vectors, strict=True)}
        with self._lock:
            for key in keys:
                self._held[key] = found[key]
                self._held.move_to_end(key)
            while len(self._held) > self._most:
                self._held.popitem(last=False)
        return np.stack([found[key] for key in keys]) if keys else self._inner.embed([])

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._held.clear()


@cache
def _shared(folder: str, runtime: Runtime) -> Embedder:
    return MiniLM(Path(folder), runtime)
