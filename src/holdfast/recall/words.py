"""
The words of documents in memory, and the documents that hold a word.

The store keeps the words of a document as one text in its row (`holdfast.store.pack_words`).  Here the texts of many documents are joined,
and each word is known by a number of 64 bits, computed for all of them at once: a Python string for each would take longer than reading
them.  Words of up to eight bytes have different numbers; two longer ones have the same with a chance of some 1 in 10^19.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Numbers = NDArray[np.uint64]

_SPACE, _END = 32, 0
# An odd factor, and so one that keeps the numbers of different words of up to eight bytes different.
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_MIXER = np.uint64(0xD6E8FEB86659FD93)
_HALF = np.uint64(32)
_MASKS = np.array([(1 << 8 * count) - 1 for count in range(9)], np.uint64)  # by the number of bytes that are left
# Two blocks of words are joined when the older one is less than so many times the newer.
_GROWTH = 4


def _number_words(text: bytes, starts: Ints, ends: Ints) -> Numbers:
    """Return the number of each word, made of eight bytes after the other; *ends* are the places of the spaces behind them."""
    eight = np.ndarray((len(text),), np.dtype("<u8"), text + bytes(8), strides=(1,))
    left, which = ends - starts, np.arange(len(starts))
    numbers: Numbers = (eight[starts] & _MASKS[np.minimum(left, 8)]) * _FACTOR
    while True:
        longer = np.flatnonzero(left > 8)
        if not len(longer):
            return numbers
        starts, left, which = starts[longer] + 8, left[longer] - 8, which[longer]
        # Each block is mixed through before the next: else its last byte reaches two bytes of the number alone.
        before = numbers[which]
        before = (before ^ (before >> _HALF)) * _MIXER
        numbers[which] = (before ^ (before >> _HALF) ^ (eight[starts] & _MASKS[np.minimum(left, 8)])) * _FACTOR


@dataclass(frozen=True, slots=True)
class _Block:
    """
    The words of some documents that follow one another.

    ``text`` has a space behind each word and a zero behind each document; ``ends`` says of each document how many of the words
    are in it and in those before it; ``high`` are the highest 16 bits of the numbers, by which few are looked at.
    """

    text: bytes
    numbers: Numbers
    high: NDArray[np.uint16]
    ends: Ints

    @property
    def nbytes(self) -> int:
        return len(self.text) + self.numbers.nbytes + self.high.nbytes + self.ends.nbytes

    def join(self, newer: _Block) -> _Block:
        ends = np.concatenate((self.ends, newer.ends + len(self.numbers)))
        numbers, high = np.concatenate((self.numbers, newer.numbers)), np.concatenate((self.high, newer.high))
        return _Block(self.text + newer.text, numbers, high, ends)

    def find(self, sieve: NDArray[np.bool_]) -> Ints:
        """Return the places of the words whose highest 16 bits are in *sieve*."""
        return np.flatnonzero(sieve[self.high])

    def beginning(self, start: bytes) -> Iterator[bytes]:
        """Return each word that begins with *start*, once."""
        raw = np.frombuffer(self.text, np.uint8)
        at, _ = _cut(raw)
        which = np.arange(len(at))
        for place, byte in enumerate(start):
            which = which[at[which] + place < len(raw)]
            which = which[raw[at[which] + place] == byte]
        _, one = np.unique(self.numbers[which], return_index=True)
        for begin in at[which[one]].tolist():
            yield self.text[begin : self.text.index(b" ", begin)]


def _high(numbers: Numbers) -> NDArray[np.uint16]:
    """Return the highest 16 bits, which depend on all bytes of a word."""
    return (numbers >> np.uint64(48)).astype(np.uint16)


def _cut(raw: NDArray[np.uint8]) -> tuple[Ints, Ints]:
    """Return where each word of a block's text begins, and where the space behind it is."""
    ends = np.flatnonzero(raw == _SPACE)
    starts = np.append(0, ends[:-1] + 1) if len(ends) else ends
    return starts + (raw[starts] == _END), ends


def _pack(texts: Sequence[str]) -> _Block:
    text = " \0".join([*texts, ""]).encode()
    raw = np.frombuffer(text, np.uint8)
    starts, ends = _cut(raw)
    numbers = _number_words(text, starts, ends)
    return _Block(text, numbers, _high(numbers), np.flatnonzero(raw[ends + 1] == _END) + 1)


@dataclass(frozen=True, slots=True)
class Words:
    """The words of n documents, in blocks of which each is several times larger than the next: few are joined again when some are added."""

    blocks: tuple[_Block, ...] = ()

    @property
    def nbytes(self) -> int:
        """Return its size in bytes."""
        return sum(block.nbytes for block in self.blocks)

    def extend(self, texts: Sequence[str]) -> Words:
        """Return these words and those of further documents, a text each."""
        if not texts:
            return self
        blocks = [*self.blocks, _pack(texts)]
        while len(blocks) > 1 and len(blocks[-2].text) < _GROWTH * len(blocks[-1].text):
            newer = blocks.pop()
            blocks[-1] = blocks[-1].join(newer)
        return Words(tuple(blocks))

    def find(self, words: Iterable[str]) -> dict[str, tuple[Ints, Ints]]:
        """Return for each of *words* the documents that hold it, by their places among the n, ascending, and how often."""
        asked = dict.fromkeys(words)
        wanted = _pack([" ".join(asked)]).numbers
        sieve = np.zeros(1 << 16, np.bool_)
        sieve[_high(wanted)] = True
        found: dict[str, list[tuple[Ints, Ints]]] = {word: [] for word in asked}
        before = 0
        for block in self.blocks:
            at = block.find(sieve)
            numbers, documents = block.numbers[at], np.searchsorted(block.ends, at, "right") + before
            for word, number in zip(asked, wanted, strict=False):  # no word leaves an empty one
                found[word].append(_count(documents[numbers == number]))
            before += len(block.ends)
        none = np.zeros(0, np.int64)
        return {
            word: (
                np.concatenate([none, *(one[0] for one in parts)]),
                np.concatenate([none, *(one[1] for one in parts)]),
            )
            for word, parts in found.items()
        }

    def beginning(self, start: str) -> set[str]:
        """Return the words that begin with *start*."""
        return {word.decode() for block in self.blocks for word in block.beginning(start.encode())}


def _count(documents: Ints) -> tuple[Ints, Ints]:
    """Return each document once, and how often it is there; *documents* ascend."""
    first = np.flatnonzero(np.append(True, documents[1:] != documents[:-1])[: len(documents)])
    return documents[first], np.diff(np.append(first, len(documents)))
