"""
Nearness of documents to a question, by their vectors.

Up to `BIG` documents of a kind all vectors are held and compared exactly.  Of more, their signs are:
an eighth of the bytes, from which a cosine can be told within some .05, so that the documents that
may matter are few enough to read their vectors.  Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from ..text import NDArray, dataclass, np

Floats: TypeAlias = "NDArray[np.float64]"
Ints: TypeAlias = "NDArray[np.int64]"
Bools: TypeAlias = "NDArray[np.bool_]"
Codes: TypeAlias = "tuple[NDArray[np.int8], NDArray[np.float32]]"
"""Some vectors: int8 numbers, shape (k, dim), and a scale each, shape (k,); scale 0 where there is none."""

# Documents of one kind from which on their signs are compared first.
BIG: Final = 10_000
# So many of them, the nearest by sign against sign, are looked at by the question's numbers against signs;
# of these so many are compared exactly.  Of 17,700 texts the ten nearest were all among them, for each of 300 others.
BY_SIGN, NEAREST = 1024, 192
# Vectors of big scopes that are held: they say how far signs can be trusted.
SAMPLE: Final = 160
# The mean and deviation of fewer documents say little; unrelated ones are imagined up to this number.
FEW: Final = 20
# Vectors widened to float at a time: 768 kB at 384 numbers, which stay in the processor's cache.
_ROWS_AT_ONCE = 512


@dataclass(frozen=True, slots=True)
class Comparison:
    """
    The cosine of each of n documents with a question; meaningless where it is not ``present``.

    ``moments`` are mean and deviation over all that are present.
    """

    cosine: Floats
    present: Bools
    moments: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Vectors:
    """``codes[i] * scale[i]`` is the unit vector of document i; scale 0 where there is none yet."""

    codes: NDArray[np.int8]  # (n, dim)
    scale: NDArray[np.float32]  # (n,)

    @property
    def present(self) -> Bools:
        """Which documents have a vector, shape (n,)."""
        present: Bools = self.scale > 0
        return present

    @property
    def nbytes(self) -> int:
        """Return its size in bytes."""
        return self.codes.nbytes + self.scale.nbytes

    def cosines(self, question: NDArray[np.float32]) -> Floats:
        """Return the cosine of each document with a unit vector, shape (n,)."""
        return cosines((self.codes, self.scale), question)


@dataclass(frozen=True, slots=True)
class Signs:
    """
    The signs of n vectors, and of some of them, evenly spread, the vectors themselves.

    ``bits[w]`` holds the w-th 64 signs of each document; ``sample`` are the places of those whose
    vectors are in ``vectors``.
    """

    bits: NDArray[np.uint64]  # (words, n)
    present: Bools
    dim: int
    sample: Ints
    vectors: Codes

    @property
    def nbytes(self) -> int:
        """Return its size in bytes."""
        return self.bits.nbytes + self.present.nbytes + sum(part.nbytes for part in self.vectors)

    def estimates(self, question: NDArray[np.float32]) -> Floats:
        """Estimate the cosine of each document by its signs: those of two vectors differ by their angle's share."""
        asked = pack_signs(np.packbits(question >= 0)[None, :], self.dim)[:, 0]
        differing = np.zeros(self.bits.shape[1], np.uint16)
        for word, own in zip(self.bits, asked, strict=True):
            differing += np.bitwise_count(word ^ own)
        by_count: Floats = np.cos(np.arange(self.dim + 1) * (np.pi / self.dim))
        estimates: Floats = by_count[differing]
        return estimates

    def _closer(self, places: Ints, question: NDArray[np.float32]) -> NDArray[np.float32]:
        """The question's numbers against the signs of some documents: a finer measure, and a dearer one."""
        rows = np.ascontiguousarray(self.bits[:, places].T).view(np.uint8)
        ones = np.unpackbits(rows, axis=1, count=self.dim).astype(np.float32)
        return ones @ question

    def compare(self, question: NDArray[np.float32], also: Ints, read: Callable[[Ints], Codes]) -> Comparison:
        """
        Exact for the `NEAREST` by sign and for *also*, told from the signs for the rest.

        *read* gets vectors by place.  What signs are worth with this embedder and question is seen in
        the sample.
        """
        told = self.estimates(question)
        sampled = cosines(self.vectors, question)
        seen = told[self.sample]
        spread = float(seen.var())
        slope = float(((seen - seen.mean()) * (sampled - sampled.mean())).mean() / spread) if spread > 0 else 0.0
        cosine = np.where(self.present, sampled.mean() + slope * (told - seen.mean()), 0.0)
        unsure = float((sampled - cosine[self.sample]).var())
        here = cosine[self.present]
        moments = (float(here.mean()), float(np.sqrt(here.var() + unsure))) if len(here) else (0.0, 0.0)
        near = np.argpartition(told, -BY_SIGN)[-BY_SIGN:] if len(told) > BY_SIGN else np.arange(len(told))
        closer = self._closer(near, question)
        best = near[np.argpartition(closer, -NEAREST)[-NEAREST:]] if len(near) > NEAREST else near
        places = np.union1d(best, also)
        places = places[self.present[places]]
        cosine[self.sample] = sampled
        cosine[places] = cosines(read(places), question)
        return Comparison(cosine, self.present, moments)


def cosines(vectors: Codes, question: NDArray[np.float32]) -> Floats:
    """Return the cosine of each of k *vectors* with a unit vector, shape (k,)."""
    codes, scale = vectors
    size, dim = codes.shape
    product = np.empty(size, np.float32)
    wide = np.empty((min(size, _ROWS_AT_ONCE), dim), np.float32)
    for start in range(0, size, _ROWS_AT_ONCE):
        rows = wide[: min(_ROWS_AT_ONCE, size - start)]
        np.copyto(rows, codes[start : start + len(rows)])
        np.dot(rows, question, out=product[start : start + len(rows)])
    found: Floats = (product * scale).astype(np.float64)
    return found


def mean_and_deviation(values: Floats, unrelated: float = 0.0, few: int = FEW) -> tuple[float, float]:
    """Mean and deviation of cosines; below *few* of them, others between 0 and *unrelated* are imagined."""
    if not len(values):
        return 0.0, 0.0
    values = np.append(values, np.linspace(0.0, unrelated, max(0, few - len(values))))
    return float(values.mean()), float(values.std())


def compare_exactly(vectors: Vectors, question: NDArray[np.float32]) -> Comparison:
    """Compare every document exactly."""
    found, present = vectors.cosines(question), vectors.present
    return Comparison(found, present, mean_and_deviation(found[present], few=0))


def merge_comparisons(one: Comparison, other: Comparison) -> Comparison:
    """
    Merge the comparisons of two embedders that have seen different documents, while they are embedded anew.

    Cosines of two embedders are no more alike than their vectors, but both can be told in deviations
    from their means.  So those of the embedder that has seen fewer are put on the other's scale.
    """
    main, rest = (one, other) if one.present.sum() >= other.present.sum() else (other, one)
    if not rest.present.any():
        return main
    mean, deviation = rest.moments
    own_mean, own_deviation = main.moments
    moved = own_mean + (rest.cosine - mean) * (own_deviation / deviation if deviation > 0 else 0.0)
    return Comparison(
        np.where(main.present, main.cosine, np.where(rest.present, moved, 0.0)),
        main.present | rest.present,
        main.moments,
    )


def pack_signs(signs: NDArray[np.uint8], dim: int) -> NDArray[np.uint64]:
    """Rows of bytes, shape (n, ceil(dim / 8)), as words, shape (ceil(dim / 64), n)."""
    missing = -signs.shape[1] % 8
    whole = np.pad(signs, ((0, 0), (0, missing))) if missing else signs
    return np.ascontiguousarray(np.ascontiguousarray(whole).view(np.uint64).T)


def order_vectors(docs: Ints, places: Ints, rows: Sequence[tuple[int, float, bytes]], dim: int) -> Vectors:
    """
    Return stored vectors in the order of an index; *docs* ascends and *places* gives each one's position.

    Vectors of documents that are not there are passed over, and those of another width than *dim*.
    """
    scale = np.zeros(len(docs), np.float32)
    if not rows or not len(docs):
        return Vectors(np.zeros((len(docs), dim), np.int8), scale)
    numbers, weights, blobs = zip(*rows, strict=True)
    if set(map(len, blobs)) != {dim}:
        return order_vectors(docs, places, [row for row in rows if len(row[2]) == dim], dim)
    found = np.frombuffer(b"".join(blobs), np.int8).reshape(len(blobs), dim)
    wanted = np.array(numbers, np.int64)
    if len(wanted) == len(docs) and np.array_equal(wanted, docs) and np.array_equal(places, np.arange(len(docs))):
        return Vectors(found, np.array(weights, np.float32))
    slots = np.minimum(np.searchsorted(docs, wanted), len(docs) - 1)
    here = docs[slots] == wanted
    at = places[slots[here]]
    codes = np.zeros((len(docs), dim), np.int8)
    codes[at] = found if here.all() else found[here]
    scale[at] = np.array(weights, np.float32)[here]
    return Vectors(codes, scale)


def extend_vectors(held: Vectors, places: Ints, more: Vectors) -> Vectors:
    """Return *more* with vectors *held* for documents that are now at *places*."""
    codes, scale = more.codes, more.scale
    if not codes.flags.writeable:
        codes, scale = codes.copy(), scale.copy()
    here = held.present
    codes[places[here]], scale[places[here]] = held.codes[here], held.scale[here]
    return Vectors(codes, scale)


def fill_vectors(held: Vectors, places: Ints, size: int, wanted: Ints, found: Codes) -> Vectors:
    """Return vectors *held* for documents that are now at *places* of *size*, and those *found* for the places *wanted*."""
    codes, scale = np.zeros((size, held.codes.shape[1]), np.int8), np.zeros(size, np.float32)
    codes[places], scale[places] = held.codes, held.scale
    codes[wanted], scale[wanted] = found
    return Vectors(codes, scale)


def order_signs(signs: NDArray[np.uint8], signed: Bools, order: Ints, dim: int, read: Callable[[Ints], Codes]) -> Signs:
    """Rows of signs of documents, of which those *signed* are there, brought into *order*; *read* gets vectors by the places they then have."""
    present = signed[order]
    known = np.flatnonzero(present)
    sample = known[:: max(1, len(known) // SAMPLE)]
    return Signs(pack_signs(signs[order], dim), present, dim, sample, read(sample))


def extend_signs(
    held: Signs, places: Ints, size: int, at: Ints, signs: NDArray[np.uint8], read: Callable[[Ints], Codes]
) -> Signs:
    """
    Return *held* for documents that are now at *places* of *size*, with some further signs.

    Args:
        held: the signs of older documents.
        places: where each of those is now.
        size: the number of all documents.
        at: the places of further *signs*.
        signs: a row for each of these places.
        read: gets vectors by place; it is asked for those of the sample that are not held.
    """
    bits, present = np.zeros((len(held.bits), size), np.uint64), np.zeros(size, np.bool_)
    bits[:, places], present[places] = held.bits, held.present
    if len(at):
        bits[:, at], present[at] = pack_signs(signs, held.dim), True
    known = np.flatnonzero(present)
    sample = known[:: max(1, len(known) // SAMPLE)]
    before = np.full(size, -1)
    before[places[held.sample]] = np.arange(len(held.sample))
    slots = before[sample]
    codes, scale = np.zeros((len(sample), held.dim), np.int8), np.zeros(len(sample), np.float32)
    kept, missing = slots >= 0, slots < 0
    codes[kept], scale[kept] = held.vectors[0][slots[kept]], held.vectors[1][slots[kept]]
    codes[missing], scale[missing] = read(sample[missing])
    return Signs(bits, present, held.dim, sample, (codes, scale))
