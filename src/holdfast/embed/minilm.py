"""
all-MiniLM-L6-v2: 22 million weights, stored as int8 per row, computed in float32 by numpy or in int8 by onnxruntime.

numpy's vectors are those of the original (cosine .9994 in the mean, at worst .994); onnxruntime's are .994 of numpy's in
the mean and take a third of its time.  Neither depends on what else is embedded: onnxruntime, which scales the
activations of a whole batch, is given one text at a time.
"""

from __future__ import annotations

import logging
import os
import threading
import unicodedata
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from threadpoolctl import ThreadpoolController

from ..errors import ConfigError
from ..text import NDArray, expression, np
from .files import VOCABULARY_FILE, WEIGHTS_FILE
from .protocol import Thresholds

logger = logging.getLogger("holdfast")

Floats: TypeAlias = "NDArray[np.float32]"
Runtime = Literal["numpy", "onnxruntime"]

DIM, LAYERS, HEADS, MAX_TOKENS = 384, 6, 12, 256
HEAD_DIM = DIM // HEADS

# Texts of like length computed together.  More is slower: the numbers no longer fit the cache (tried 1 to 16).
BATCH = 4


class _Layer(NamedTuple):
    """One encoder layer; matrices lie so that ``rows @ matrix`` applies them."""

    qkv: Floats
    qkv_bias: Floats
    out: Floats
    out_bias: Floats
    out_norm: tuple[Floats, Floats]
    up: Floats
    up_bias: Floats
    down: Floats
    down_bias: Floats
    down_norm: tuple[Floats, Floats]


class _Model(NamedTuple):
    """Everything that is read from the files."""

    words: WordPiece
    table: NDArray[np.int8]  # (30522, DIM); expanded on look-up: 12 MB instead of 47
    table_scale: Floats  # (30522,)
    positions: Floats  # (512, DIM), the token type already added
    norm: tuple[Floats, Floats]
    layers: list[_Layer]
    session: Any = None  # onnxruntime's, which holds the layers then
    batch: int = BATCH  # texts computed together


def is_fast_installed() -> bool:
    """Return whether the packages of the extra ``fast`` are installed."""
    return all(find_spec(name) for name in ("onnxruntime", "onnx"))


class MiniLM:
    """
    The embedder of a folder that holds the model's two files; they are read at the first text.

    *runtime* does the arithmetic.  The vectors are near enough (cosine .994) to be found by one another: both have one id.
    """

    id = "all-MiniLM-L6-v2@1110a243/w8/384"
    dim = DIM
    # related, merge: calibrated on 90 pairs of statements.  recall_min: over a chat of 419 messages, .15 kept
    # the best message for 95 % of 150 questions and left out 55 % of all messages.
    thresholds = Thresholds(recall_min=0.15, related=0.28, merge=0.87, bm25_weight=0.3)

    def __init__(self, folder: Path, runtime: Runtime = "numpy") -> None:
        self.runtime: Runtime = runtime
        self._folder = folder
        self._model: _Model | None = None
        self._loading = threading.Lock()

    def embed(self, texts: Sequence[str]) -> Floats:
        """
        Return one row a text, shape (n, 384), of length 1; zeros for a text without words.

        A text counts up to its 254th token, some 200 words.

        Raises:
            ConfigError: the model's files are damaged or gone.
        """
        model = self._loaded()
        ids = [model.words.ids(text, MAX_TOKENS) for text in texts]
        rows = np.zeros((len(ids), DIM), np.float32)
        order = sorted((n for n in range(len(ids)) if ids[n]), key=lambda n: len(ids[n]))
        batches = [order[start : start + model.batch] for start in range(0, len(order), model.batch)]
        encode = partial(_forward if model.session is None else _run_session, model)
        for batch, made in zip(
            batches, _each(encode, [[ids[n] for n in batch] for batch in batches], model), strict=True
        ):
            rows[batch] = made
        return rows

    def _loaded(self) -> _Model:
        if self._model is None:
            with self._loading:
                if self._model is None:
                    self._model = self._read()
        return self._model

    def _read(self) -> _Model:
        model = _read(self._folder)
        if self.runtime == "numpy":
            return model
        try:
            exact = not _adds_bytes_exactly()
            return model._replace(session=_session(model, exact), layers=[], batch=BATCH if exact else 1)
        except ImportError as error:  # a wheel that does not fit this system
            logger.warning("onnxruntime cannot be loaded (%s); the embedder computes with numpy", error)
            self.runtime = "numpy"
            return model


def _read(folder: Path) -> _Model:
    """Read the files; encoder matrices become float32 and are transposed once, here."""
    try:
        words = WordPiece(folder / VOCABULARY_FILE)
        with open(folder / WEIGHTS_FILE, "rb") as file, np.load(file) as arrays:
            stored = {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        hint = "fetch it again with holdfast.embed.fetch.fetch(), or pass embedder=None to search by words alone"
        raise ConfigError(f"the embedding model in {folder} cannot be read: {error}", hint=hint) from error

    def matrix(*names: str) -> Floats:
        parts = [stored[n + ".weight"].astype(np.float32) * stored[n + ".weight.s"][:, None] for n in names]
        return np.ascontiguousarray(np.concatenate(parts).T)

    def bias(*names: str) -> Floats:
        return np.concatenate([stored[n + ".bias"] for n in names])

    def norm(name: str) -> tuple[Floats, Floats]:
        return stored[name + ".weight"], stored[name + ".bias"]

    layers = []
    for number in range(LAYERS):
        at = f"encoder.layer.{number}."
        qkv = [f"{at}attention.self.{part}" for part in ("query", "key", "value")]
        out, up, down = at + "attention.output", at + "intermediate.dense", at + "output"
        attention = (matrix(*qkv), bias(*qkv), matrix(out + ".dense"), bias(out + ".dense"), norm(out + ".LayerNorm"))
        feed = (matrix(up), bias(up), matrix(down + ".dense"), bias(down + ".dense"), norm(down + ".LayerNorm"))
        layers.append(_Layer(*attention, *feed))
    positions = matrix("embeddings.position_embeddings").T + stored["embeddings.token_type_embeddings.weight"][0]
    table = "embeddings.word_embeddings.weight"
    return _Model(words, stored[table], stored[table + ".s"], positions, norm("embeddings.LayerNorm"), layers)


def _each(
    encode: Callable[[Sequence[Sequence[int]]], Floats], batches: Sequence[Sequence[Sequence[int]]], model: _Model
) -> Iterable[Floats]:
    """Encode *batches*: numpy's one after another, onnxruntime's on all cores."""
    if model.session is None:
        return _in_turn(encode, batches)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if min(cores, len(batches)) < 2:
        return map(encode, batches)
    with ThreadPoolExecutor(min(cores, len(batches))) as pool:  # made anew each time: threads do not survive a fork
        return list(pool.map(encode, batches))


def _in_turn(
    encode: Callable[[Sequence[Sequence[int]]], Floats], batches: Sequence[Sequence[Sequence[int]]]
) -> Iterator[Floats]:
    for batch in batches:
        with _one_blas_thread():
            made = encode(batch)
        yield made


def _embedded(model: _Model, ids: Sequence[Sequence[int]]) -> tuple[Floats, Floats]:
    """Return the rows of token ids, shape (texts, tokens, DIM), and which tokens are no padding, shape (texts, tokens)."""
    count, width = len(ids), max(map(len, ids))
    tokens = np.zeros((count, width), np.int64)
    mask = np.zeros((count, width), np.float32)
    for row, some in enumerate(ids):
        tokens[row, : len(some)] = some
        mask[row, : len(some)] = 1
    x: Floats = model.table[tokens].astype(np.float32) * model.table_scale[tokens][..., None] + model.positions[:width]
    return x, mask


def _pooled(x: Floats, mask: Floats) -> Floats:
    """Return the mean over the tokens of each text, as a unit row."""
    mean = (x * mask[..., None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
    unit: Floats = mean / np.linalg.norm(mean, axis=1, keepdims=True)
    return unit


def _forward(model: _Model, ids: Sequence[Sequence[int]]) -> Floats:
    """Run texts of token ids through the encoder in numpy."""
    x, mask = _embedded(model, ids)
    count, width = mask.shape
    x = _normalize(x.reshape(count * width, DIM), model.norm)
    hide_padding = ((1 - mask) * np.float32(-1e4))[:, None, None, :]
    for layer in model.layers:
        x = _normalize(x + _attend(layer, x, hide_padding), layer.out_norm)
        x = _normalize(x + (_gelu(x @ layer.up + layer.up_bias) @ layer.down + layer.down_bias), layer.down_norm)
    return _pooled(x.reshape(count, width, DIM), mask)


def _attend(layer: _Layer, x: Floats, hide_padding: Floats) -> Floats:
    """Self-attention of 12 heads over *x*, shape (texts * tokens, DIM)."""
    count, width = hide_padding.shape[0], hide_padding.shape[-1]
    query, key, value = (
        (x @ layer.qkv + layer.qkv_bias).reshape(count, width, 3, HEADS, HEAD_DIM).transpose(2, 0, 3, 1, 4)
    )
    weight = query @ key.transpose(0, 1, 3, 2)
    weight *= np.float32(HEAD_DIM**-0.5)
    weight += hide_padding
    weight -= weight.max(axis=-1, keepdims=True)
    np.exp(weight, out=weight)
    weight /= weight.sum(axis=-1, keepdims=True)
    mixed = (weight @ value).transpose(0, 2, 1, 3).reshape(count * width, DIM)
    attended: Floats = mixed @ layer.out + layer.out_bias
    return attended


def _normalize(x: Floats, norm: tuple[Floats, Floats]) -> Floats:
    """Layer normalisation; *x* is used up."""
    x -= x.mean(axis=-1, keepdims=True)
    x /= np.sqrt(np.einsum("ij,ij->i", x, x)[:, None] / np.float32(DIM) + np.float32(1e-12))
    x *= norm[0]
    x += norm[1]
    return x


def _gelu(x: Floats) -> Floats:
    """
    ``x * Φ(x)``, computed as ``max(x, 0) - |x| * Φ(-|x|)`` with few temporaries; *x* is used up.

    Source: Abramowitz and Stegun 1964, 7.1.26, for the tail; the result is off by 5e-7 at most.
    """
    size = np.abs(x)
    t = size * np.float32(0.3275911 * 2**-0.5)
    t += np.float32(1)
    np.reciprocal(t, out=t)
    tail = t * np.float32(1.061405429 / 2)
    for term in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        tail += np.float32(term / 2)
        tail *= t
    tail *= size
    np.multiply(size, size, out=size)
    size *= np.float32(-0.5)
    tail *= np.exp(size, out=size)
    np.maximum(x, np.float32(0), out=x)
    x -= tail
    return x


# Who waits for its turn holds _NEXT, so that who has just had one cannot take the next as well.
_TURN, _NEXT = threading.Lock(), threading.Lock()


@contextmanager
def _one_blas_thread() -> Iterator[None]:
    """
    One BLAS thread, and one text batch at a time in the whole process.

    With the default of one BLAS thread per core, matrices this small spend their time waiting: 284 ms
    instead of 8 for a query on 4 cores.  The limit belongs to the process and to the thread that set
    it; another's request is passed over, and is lifted under it when the first is done.  So batches
    take turns.  That costs nothing, several at once were not faster, and a question waits for one
    batch of each background thread at most.
    """
    with _NEXT:
        _TURN.acquire()
    try:
        with _threadpools().limit(limits=1, user_api="blas"):
            yield
    finally:
        _TURN.release()


@cache
def _threadpools() -> ThreadpoolController:
    """Made once, when numpy has loaded its BLAS: looking for the libraries takes milliseconds."""
    return ThreadpoolController()


def _run_session(model: _Model, ids: Sequence[Sequence[int]]) -> Floats:
    """Run texts of token ids through the encoder in onnxruntime."""
    x, mask = _embedded(model, ids)
    (encoded,) = model.session.run(None, {"embedded": x, "mask": mask.astype(np.int32)})
    return _pooled(encoded, mask)


class _Graph:
    """
    A graph of onnxruntime's operations that grows node by node; weights are given beside it, so that they are held once.

    *exact* keeps matrices in float32; otherwise they are the int8 of the file, and so are activations, with a scale a text.
    """

    def __init__(self, exact: bool) -> None:
        self._onnx, self._runtime, self._exact = import_module("onnx"), import_module("onnxruntime"), exact
        self._weights: dict[str, NDArray[Any]] = {}
        self._nodes: list[Any] = []

    def weight(self, name: str, values: NDArray[Any]) -> str:
        """Add a constant; return *name*."""
        self._weights[name] = np.ascontiguousarray(values)
        return name

    def apply(self, kind: str, inputs: list[str], *outputs: str, **settings: object) -> str:
        """Add an operation; return the name of its first output."""
        domain = "" if kind in _STANDARD else "com.microsoft"
        self._nodes.append(self._onnx.helper.make_node(kind, inputs, list(outputs), domain=domain, **settings))
        return outputs[0]

    def multiply(self, x: str, at: str, matrix: Floats) -> str:
        """Add *x* times *matrix*."""
        if self._exact:
            return self.apply("MatMul", [x, self.weight(at + ".matrix", matrix)], at)
        return self.apply("DynamicQuantizeMatMul", [x, *self._bytes(at, matrix)], at)

    def attend(self, x: str, at: str, matrix: Floats, bias: Floats) -> str:
        """Add self-attention of 12 heads over *x*."""
        added = self.weight(at + ".bias", bias)
        if self._exact:
            return self.apply("Attention", [x, self.weight(at + ".matrix", matrix), added, "mask"], at, num_heads=HEADS)
        parts = [at + ".whole", at + ".step", at + ".middle"]
        whole, step, middle = parts
        self.apply("DynamicQuantizeLinear", [x], *parts)
        values, scale, zero = self._bytes(at, matrix)
        inputs = [whole, values, added, step, scale, "mask", middle, zero]
        return self.apply("QAttention", inputs, at, num_heads=HEADS)

    def _bytes(self, at: str, matrix: Floats) -> list[str]:
        """Add *matrix* as int8, as the file has it: a scale for each column, no shift."""
        scale = np.maximum(np.abs(matrix).max(axis=0), np.float32(1e-12)) / np.float32(127)
        parts = {
            ".matrix": np.rint(matrix / scale).astype(np.int8),
            ".scale": scale,
            ".zero": np.zeros(scale.shape, np.int8),
        }
        return [self.weight(at + name, values) for name, values in parts.items()]

    def session(self, inputs: dict[str, tuple[Any, list[str | int]]], output: str) -> Any:
        """Return an onnxruntime session of one core: *inputs* by name, each its type and shape, to *output*."""
        value, kinds = self._onnx.helper.make_tensor_value_info, self._onnx.TensorProto
        given = [value(name, getattr(kinds, kind), shape) for name, (kind, shape) in inputs.items()]
        outside = [self._outside(name, values) for name, values in self._weights.items()]
        made = [value(output, kinds.FLOAT, None)]
        graph = self._onnx.helper.make_graph(self._nodes, "holdfast", given, made, outside)
        sets = [self._onnx.helper.make_opsetid("", 17), self._onnx.helper.make_opsetid("com.microsoft", 1)]
        options = self._runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = (
            1  # a text is too short to be shared between cores
        )
        options.log_severity_level = 3
        held = [self._runtime.OrtValue.ortvalue_from_numpy(values) for values in self._weights.values()]
        options.add_external_initializers(list(self._weights), held)
        model = self._onnx.helper.make_model(graph, opset_imports=sets, ir_version=8).SerializeToString()
        return self._runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    def _outside(self, name: str, values: NDArray[Any]) -> Any:
        """Return the description of a weight that is not in the graph."""
        return self._onnx.TensorProto(
            name=name,
            dims=values.shape,
            data_type=self._onnx.helper.np_dtype_to_tensor_dtype(values.dtype),
            data_location=self._onnx.TensorProto.EXTERNAL,
            external_data=[self._onnx.StringStringEntryProto(key="location", value="memory")],
        )


# onnx's own operations; the others are onnxruntime's, each of which does what would take several of these.
_STANDARD = {"MatMul", "LayerNormalization", "DynamicQuantizeLinear"}


def _session(model: _Model, exact: bool) -> Any:
    """Return an onnxruntime session of the encoder: embedded tokens in, encoded tokens out."""
    graph = _Graph(exact)

    def add(x: str, more: str, at: str, norm: tuple[Floats, Floats], bias: Floats, output: str) -> str:
        named = {".weight": norm[0], ".bias": norm[1], ".more": bias}
        parts = [graph.weight(at + name, values) for name, values in named.items()]
        return graph.apply("SkipLayerNormalization", [more, x, *parts], output, epsilon=1e-12)

    inputs = ["embedded", graph.weight("norm.weight", model.norm[0]), graph.weight("norm.bias", model.norm[1])]
    x = graph.apply("LayerNormalization", inputs, "first", epsilon=1e-12)
    for number, layer in enumerate(model.layers):
        at, last = f"{number}.", number == LAYERS - 1
        out = graph.multiply(graph.attend(x, at + "attention", layer.qkv, layer.qkv_bias), at + "out", layer.out)
        x = add(x, out, at + "out.norm", layer.out_norm, layer.out_bias, at + "half")
        wide = [graph.multiply(x, at + "up", layer.up), graph.weight(at + "up.bias", layer.up_bias)]
        down = graph.multiply(graph.apply("BiasGelu", wide, at + "wide"), at + "down", layer.down)
        x = add(x, down, at + "down.norm", layer.down_norm, layer.down_bias, "encoded" if last else at + "whole")
    return graph.session({"embedded": ("FLOAT", ["texts", "tokens", DIM]), "mask": ("INT32", ["texts", "tokens"])}, x)


def _adds_bytes_exactly() -> bool:
    """
    Return whether products of bytes keep their value here.

    Processors without VNNI add two of them in 16 bits, which the largest do not fit in.
    """
    graph = _Graph(exact=False)
    product = graph.multiply("row", "product", np.ones((64, 16), np.float32))
    (found,) = graph.session({"row": ("FLOAT", [1, 64])}, product).run(None, {"row": np.ones((1, 64), np.float32)})
    return bool(np.allclose(found, 64, rtol=0.01))


CLS, SEP, UNKNOWN = 101, 102, 100

# What can still hold the first tokens of any text that users write.  A megabyte costs no more than this.
MAX_CHARS = 8_192
MAX_WORD_CHARS = 100
CACHED_WORDS, CACHED_WORD_CHARS = 20_000, 32

_ASCII_CONTROL = expression("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_HAN = expression(
    "([\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002ceaf\U0002f800-\U0002fa1f])"
)


class WordPiece:
    """A vocabulary file, one token a line, and the words seen so far."""

    def __init__(self, vocabulary: Path) -> None:
        lines = vocabulary.read_text(encoding="utf-8").split("\n")
        self._ids = {token: number for number, token in enumerate(lines) if token}
        self._cache: dict[str, list[int]] = {}

    def ids(self, text: str, limit: int) -> list[int]:
        """
        At most *limit* token ids of *text*, between the marks of start and end.

        Empty when the text has no word at all: blanks, control characters, lone surrogates.
        """
        text = text[:MAX_CHARS]
        text = _ASCII_CONTROL.sub("", text).lower() if text.isascii() else _normalized(text)
        found: list[int] = []
        for word in text.split():
            found += self._word(word)
            if len(found) >= limit - 2:
                break
        return [CLS, *found[: limit - 2], SEP] if found else []

    def _word(self, word: str) -> list[int]:
        known = self._cache.get(word)
        if known is None:
            known = [number for part in _parts(word) for number in self._pieces(part)]
            if len(word) <= CACHED_WORD_CHARS and len(self._cache) < CACHED_WORDS:
                self._cache[word] = known
        return known

    def _pieces(self, part: str) -> list[int]:
        """The longest known pieces of *part* from the left; one unknown if any stretch has none."""
        if len(part) > MAX_WORD_CHARS:
            return [UNKNOWN]
        found: list[int] = []
        start, prefix = 0, ""
        while start < len(part):
            end = len(part)
            while end > start and prefix + part[start:end] not in self._ids:
                end -= 1
            if end == start:
                return [UNKNOWN]
            found.append(self._ids[prefix + part[start:end]])
            start, prefix = end, "##"
        return found


def _normalized(text: str) -> str:
    """Return *text* without control characters and accents, lower-case, every Han character a separate word."""
    kept = []
    for char in text:
        category = unicodedata.category(char)
        if char in "\t\n\r" or category == "Zs":
            kept.append(" ")
        elif char != "\ufffd" and category not in ("Cc", "Cf", "Cs", "Co"):
            kept.append(char)
    spaced = _HAN.sub(r" \1 ", "".join(kept))
    return "".join(c for c in unicodedata.normalize("NFD", spaced) if unicodedata.category(c) != "Mn").lower()


def _parts(word: str) -> list[str]:
    """Return *word* cut around its punctuation, each mark a separate part."""
    parts: list[str] = []
    start = 0
    for at, char in enumerate(word):
        if _is_mark(char):
            parts += [word[start:at], char] if at > start else [char]
            start = at + 1
    return [*parts, word[start:]] if start < len(word) else parts


def _is_mark(char: str) -> bool:
    """Punctuation in BERT's sense: Unicode's, and every ASCII character that is no letter, digit or blank."""
    if char.isascii():
        return char.isprintable() and not char.isalnum() and char != " "
    return unicodedata.category(char).startswith("P")
