"""
Documents of one kind as arrays, and packed as one value: what a search reads of them.

The store keeps each document in a row, its words as one text (`holdfast.store.pack_words`), and some hundred of them that follow one
another once more in a segment, because reading a row takes longer than reading what it says.  A segment is made from the rows alone, and
goes with each change to one of them.

Each word is known by a number of 64 bits, computed for many at once.  Words of up to eight bytes have different numbers; two longer ones
have the same with a chance of some 1 in 10^19.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain
from typing import Any, Final, TypeAlias

from ..text import NDArray, dataclass, np

Ints: TypeAlias = "NDArray[np.int64]"
Numbers: TypeAlias = "NDArray[np.uint64]"
Array: TypeAlias = "NDArray[Any]"

SEALED: Final = ("message", "summary")
"""The kinds of documents that are kept in segments; facts are few, and change."""
SIZE: Final = 512
"""The documents of a segment."""
NUMBERS: Final = ("doc", "seq", "session", "at", "sizes")
"""The columns of numbers; see `values.COLUMNS`."""

_SPACE, _END = 32, 0
# An odd factor, and so one that keeps the numbers of different words of up to eight bytes different.
_FACTOR = 0x9E3779B97F4A7C15
_MIXER = 0xD6E8FEB86659FD93
# Two blocks of words are joined when the older one is less than so many times the newer.
_GROWTH = 4


@cache
def _masks() -> Numbers:
    """Return what is kept of eight bytes, by the number of bytes that are left of a word."""
    return np.array([(1 << 8 * count) - 1 for count in range(9)], np.uint64)


def _number_words(text: bytes, starts: Ints, ends: Ints) -> Numbers:
    """Return the number of each word, made of eight bytes after the other; *ends* are the places of the spaces behind them."""
    eight = np.ndarray((len(text),), np.dtype("<u8"), text + bytes(8), strides=(1,))
    left, which = ends - starts, np.arange(len(starts))
    masks, half = _masks(), np.uint64(32)
    numbers: Numbers = (eight[starts] & masks[np.minimum(left, 8)]) * np.uint64(_FACTOR)
    while True:
        longer = np.flatnonzero(left > 8)
        if not len(longer):
            return numbers
        starts, left, which = starts[longer] + 8, left[longer] - 8, which[longer]
        # Each block is mixed through before the next: else its last byte reaches two bytes of the number alone.
        before = numbers[which]
        before = (before ^ (before >> half)) * np.uint64(_MIXER)
        numbers[which] = (before ^ (before >> half) ^ (eight[starts] & masks[np.minimum(left, 8)])) * np.uint64(_FACTOR)


def _cut(text: bytes) -> tuple[Ints, Ints]:
    """Return where each word of a text begins, and where the space behind it is; a document may begin with a zero."""
    raw = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero(raw == _SPACE)
    starts = np.append(0, ends[:-1] + 1) if len(ends) else ends
    return starts + (raw[starts] == _END), ends


@dataclass(frozen=True, slots=True)
class Block:
    """
    The words of ``size`` documents that follow one another.

    ``text`` has a space behind each word; the i-th is in the documents ``docs[starts[i] : starts[i + 1]]``, ascending, as often as
    ``counts`` says.  A word may be there several times, for documents that follow one another.
    """

    size: int
    text: bytes
    starts: NDArray[np.int32]
    docs: NDArray[np.int32]
    counts: Array

    @property
    def nbytes(self) -> int:
        return len(self.text) + self.starts.nbytes + self.docs.nbytes + self.counts.nbytes

    def beginning(self, start: bytes) -> Iterator[bytes]:
        """Return each word that begins with *start*, once."""
        raw = np.frombuffer(self.text, np.uint8)
        at, ends = _cut(self.text)
        which = np.arange(len(at))
        for place, byte in enumerate(start):
            which = which[at[which] + place < len(raw)]
            which = which[raw[at[which] + place] == byte]
        yield from dict.fromkeys(self.text[a:b] for a, b in zip(at[which].tolist(), ends[which].tolist(), strict=True))


def _high(numbers: Numbers) -> NDArray[np.uint16]:
    """Return the highest 16 bits, which depend on all bytes of a word."""
    return (numbers >> np.uint64(48)).astype(np.uint16)


def pack_texts(texts: Sequence[str]) -> Block:
    """Return the words of documents, a text each as `pack_words` makes it, every word once."""
    text = " \0".join([*texts, ""]).encode()
    begins, ends = _cut(text)
    said = _number_words(text, begins, ends)
    of_document = np.flatnonzero(np.frombuffer(text, np.uint8)[ends + 1] == _END) + 1
    order = np.argsort(said, kind="stable")
    docs = np.searchsorted(of_document, order, "right")
    said = said[order]
    fresh = _changes(said)
    first = np.flatnonzero(fresh | _changes(docs))
    words = np.flatnonzero(fresh)
    counts = np.diff(np.append(first, len(said)))
    starts = np.append(np.searchsorted(first, words), len(first))
    at = order[words]
    vocabulary = b"".join([text[a : b + 1] for a, b in zip(begins[at].tolist(), ends[at].tolist(), strict=True)])
    return Block(len(texts), vocabulary, starts.astype(np.int32), docs[first].astype(np.int32), _narrow(counts))


def _join_blocks(blocks: Sequence[Block]) -> Block:
    """Return blocks whose documents follow one another as one."""
    if len(blocks) == 1:
        return blocks[0]
    sizes, postings = _begins([block.size for block in blocks]), _begins([len(block.docs) for block in blocks])
    pairs = zip(blocks, sizes, postings, strict=True)
    starts, docs = zip(*((block.starts[:-1] + at, block.docs + before) for block, before, at in pairs), strict=True)
    end = np.array([sum(len(block.docs) for block in blocks)], np.int32)
    return Block(
        sum(block.size for block in blocks),
        b"".join([block.text for block in blocks]),
        np.concatenate([*starts, end]),
        np.concatenate(docs),
        np.concatenate([block.counts for block in blocks]),
    )


def _begins(sizes: Sequence[int]) -> list[int]:
    """Return how many come before each of several runs."""
    return [0, *np.cumsum(sizes).tolist()][: len(sizes)]


def _changes(values: Array) -> NDArray[np.bool_]:
    """Say of each value whether it differs from the one before it, as the first does."""
    return np.append(True, values[1:] != values[:-1])[: len(values)]


def _narrow(values: Array) -> Array:
    """Return numbers from 0 on in the fewest bytes that hold them all."""
    return values.astype(np.min_scalar_type(int(values.max()) if len(values) else 0))


@dataclass(frozen=True, slots=True)
class _Numbered:
    """A block with the numbers of its words; ``high`` are the highest 16 bits of them, by which few are looked at."""

    block: Block
    numbers: Numbers
    high: NDArray[np.uint16]

    @property
    def nbytes(self) -> int:
        return self.block.nbytes + self.numbers.nbytes + self.high.nbytes

    def join(self, newer: _Numbered) -> _Numbered:
        numbers, high = np.concatenate((self.numbers, newer.numbers)), np.concatenate((self.high, newer.high))
        return _Numbered(_join_blocks((self.block, newer.block)), numbers, high)


def _number(text: bytes) -> Numbers:
    return _number_words(text, *_cut(text))


@dataclass(frozen=True, slots=True)
class Words:
    """The words of n documents, in blocks of which each is several times larger than the next: few are joined again when some are added."""

    blocks: tuple[_Numbered, ...] = ()

    @property
    def nbytes(self) -> int:
        """Return its size in bytes."""
        return sum(block.nbytes for block in self.blocks)

    def extend(self, more: Block) -> Words:
        """Return these words and those of further documents."""
        numbers = _number(more.text)
        blocks = [*self.blocks, _Numbered(more, numbers, _high(numbers))]
        while len(blocks) > 1 and blocks[-2].nbytes < _GROWTH * blocks[-1].nbytes:
            newer = blocks.pop()
            blocks[-1] = blocks[-1].join(newer)
        return Words(tuple(blocks))

    def find(self, words: Iterable[str]) -> dict[str, tuple[Ints, Ints]]:
        """Return for each of *words* the documents that hold it, by their places among the n, ascending, and how often."""
        asked = list(dict.fromkeys(words))
        wanted = _number("".join([f"{word} " for word in asked]).encode())
        sieve = np.zeros(1 << 16, np.bool_)
        sieve[_high(wanted)] = True
        none = np.zeros(0, np.int64)
        found: dict[str, list[tuple[Ints, Ints]]] = {word: [(none, none)] for word in asked}
        before = 0
        for numbered in self.blocks:
            block, at = numbered.block, np.flatnonzero(sieve[numbered.high])
            numbers = numbered.numbers[at]
            for word, number in zip(asked, wanted, strict=True):
                places = _ranges(block.starts, at[numbers == number])
                found[word].append(
                    (block.docs[places].astype(np.int64) + before, block.counts[places].astype(np.int64))
                )
            before += block.size
        return {
            word: (np.concatenate([docs for docs, _ in parts]), np.concatenate([counts for _, counts in parts]))
            for word, parts in found.items()
        }

    def beginning(self, start: str) -> set[str]:
        """Return the words that begin with *start*."""
        return {word.decode() for one in self.blocks for word in one.block.beginning(start.encode())}


def _ranges(starts: Array, at: Ints) -> Ints:
    """Return all places from ``starts[i]`` up to ``starts[i + 1]``, for each i of *at*."""
    first, lengths = starts[at].astype(np.int64), starts[at + 1] - starts[at]
    return np.repeat(first - np.append(0, np.cumsum(lengths)[:-1])[: len(at)], lengths) + np.arange(lengths.sum())


@dataclass(frozen=True, slots=True)
class Segment:
    """
    n documents by number, as `ReadView.columns` gives them.

    ``said`` holds each different text once, and ``said_at`` the place of each document's; ``signs`` are the signs of vectors, a row of
    bytes for each document, 0 bytes wide where there are none; ``signed`` says which documents have them.
    """

    numbers: Mapping[str, Ints]
    said: tuple[str, ...]
    said_at: Ints
    refs: tuple[str, ...]
    words: Block
    signs: NDArray[np.uint8]
    signed: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.said_at)

    def signs_of(self, width: int) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
        """Return the signs of vectors of so many bytes, and of which documents they are."""
        if self.signs.shape[1] == width:
            return self.signs, self.signed
        return np.zeros((len(self), width), np.uint8), np.zeros(len(self), np.bool_)

    def without_signs(self) -> Segment:
        """Return the same documents as if none had a vector."""
        return replace(self, signs=self.signs[:, :0], signed=np.zeros(len(self), np.bool_))


def number_distinct(values: Sequence[Any]) -> tuple[tuple[Any, ...], Ints]:
    """Return the distinct *values* in order of appearance, and the number of each value among them."""
    number = {value: at for at, value in enumerate(dict.fromkeys(values))}
    return tuple(number), np.fromiter(map(number.__getitem__, values), np.int64, len(values))


def pack_columns(columns: Mapping[str, Sequence[Any]]) -> Segment:
    """Return documents as arrays; *columns* as of `ReadView.columns`, ``signs`` may be missing."""
    size = len(columns["doc"])
    said, said_at = number_distinct(columns["said"])
    signs, signed = stack_signs(columns.get("signs") or (None,) * size)
    return Segment(
        {name: np.array(columns[name], np.int64) for name in NUMBERS},
        said,
        said_at,
        tuple(columns["ref"]),
        pack_texts(columns["words"]),
        signs,
        signed,
    )


def stack_signs(given: Sequence[bytes | None]) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Return a row for each of the signs of vectors, and which are there; those of another width than most are not."""
    widths = Counter([len(sign) for sign in given if sign is not None])
    width = widths.most_common(1)[0][0] if widths else 0
    signed = np.array([sign is not None and len(sign) == width for sign in given], np.bool_)
    whole = b"".join([sign if sign is not None and len(sign) == width else bytes(width) for sign in given])
    return np.frombuffer(whole, np.uint8).reshape(len(given), width), signed


@cache
def _nothing() -> Segment:
    """Return no documents."""
    return pack_columns({name: () for name in (*NUMBERS, "said", "ref", "words")})


def join_segments(parts: Sequence[Segment]) -> Segment:
    """Return segments that follow one another as one, without signs."""
    if len(parts) <= 1:
        return parts[0] if parts else _nothing()
    said, at = number_distinct([text for part in parts for text in part.said])
    begins = _begins([len(part.said) for part in parts])
    size = sum(map(len, parts))
    return Segment(
        {name: np.concatenate([part.numbers[name] for part in parts]) for name in NUMBERS},
        said,
        at[np.concatenate([part.said_at + begin for part, begin in zip(parts, begins, strict=True)])],
        tuple(chain.from_iterable(part.refs for part in parts)),
        _join_blocks([part.words for part in parts]),
        np.zeros((size, 0), np.uint8),
        np.zeros(size, np.bool_),
    )


# A packed segment: a line of JSON, {"size", "said", "refs", "arrays": [[type, length, least], ...]}, and the arrays one after another.
# Numbers are kept above the least of their column, in the fewest bytes.


def encode(segment: Segment) -> bytes:
    """Return a segment as one value."""
    words = segment.words
    often = np.flatnonzero(words.counts > 1)
    columns: list[Array] = [segment.numbers[name] for name in NUMBERS]
    columns += [segment.said_at, np.diff(words.starts), words.docs, often, words.counts[often]]
    lows = [int(column.min()) if len(column) else 0 for column in columns]
    arrays = [_narrow(column.astype(np.int64) - low) for column, low in zip(columns, lows, strict=True)]
    arrays += [np.packbits(segment.signed), segment.signs.ravel(), np.frombuffer(words.text, np.uint8)]
    kinds = [
        (array.dtype.newbyteorder("<").str, len(array), low)
        for array, low in zip(arrays, [*lows, 0, 0, 0], strict=True)
    ]
    head = {
        "size": len(segment),
        "said": segment.said,
        "refs": segment.refs if any(segment.refs) else (),
        "arrays": kinds,
    }
    line = json.dumps(head, ensure_ascii=False, separators=(",", ":")).encode()
    return b"\n".join(
        [line, b"".join(np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes() for array in arrays)]
    )


def decode(data: bytes) -> Segment:
    """Return the segment that `encode` packed."""
    at = data.index(b"\n") + 1
    head = json.loads(data[:at])
    size: int = head["size"]
    arrays: list[Array] = []
    for kind, length, low in head["arrays"]:
        array: Array = np.frombuffer(data, kind, length, at)
        at += array.nbytes
        arrays.append(array.astype(np.int64) + low if len(arrays) < _WIDENED else array)
    *numbers, said_at, lengths, docs, often, more, bits, signs, text = arrays
    counts = np.ones(len(docs), np.int64)
    counts[often] = more
    starts = np.append(0, np.cumsum(lengths)).astype(np.int32)
    return Segment(
        dict(zip(NUMBERS, numbers, strict=True)),
        tuple(head["said"]),
        said_at,
        tuple(head["refs"] or ("",) * size),
        Block(size, text.tobytes(), starts, docs.astype(np.int32), _narrow(counts)),
        signs.reshape(size, -1 if size else 0),
        np.unpackbits(bits, count=size).astype(np.bool_),
    )


_WIDENED: Final = len(NUMBERS) + 5
