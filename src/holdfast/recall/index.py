"""
One person's documents of one kind as arrays, ready to be ranked.

Built from the store's rows once and kept by the cache; nothing here changes afterwards.  Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..store.protocol import DocRow
from ..text.signals import HAS_NUMBER, IS_QUESTION, NAMES_TIME
from .query import ROLE_NAMES

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

# BM25 of single documents, and of their neighbourhoods and sessions, as the recipe was tuned.
K1, B = 0.9, 0.4
CONTEXT_K1, CONTEXT_B = 1.2, 0.75
# Nobody writes four times as long as the other in a talk between equals.
_PEER_LENGTH_RATIO = 4.0
# Speakers with a smaller share of the messages do not decide what kind of talk it is.
_PEER_SHARE = 0.1


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

    def cosines(self, question: NDArray[np.float32]) -> Floats:
        """The cosine of each document with a unit vector, shape (n,)."""
        product: Floats = ((self.codes.astype(np.float32) @ question) * self.scale).astype(np.float64)
        return product


@dataclass(frozen=True, slots=True)
class Layout:
    """
    Which documents stand next to each other.

    ``session`` numbers the sessions from 0 in order, ``start`` is the first document of each;
    ``same[k - 1]`` says of each document from the k-th on whether the one k before is in its session.
    """

    session: Ints
    start: Ints
    same: tuple[Floats, Floats]

    def before(self, values: Floats, distance: int) -> Floats:
        """For each document the value *distance* (1 or 2) turns before it, 0 outside its session."""
        out = np.zeros(len(values))
        if len(values) > distance:
            out[distance:] = values[:-distance] * self.same[distance - 1]
        return out

    def after(self, values: Floats, distance: int) -> Floats:
        """For each document the value *distance* (1 or 2) turns after it, 0 outside its session."""
        out = np.zeros(len(values))
        if len(values) > distance:
            out[:-distance] = values[distance:] * self.same[distance - 1]
        return out

    def near(self, values: Floats) -> Floats:
        """The sum over five turns, two on each side, within the session."""
        near: Floats = values + self.before(values, 1) + self.after(values, 1)
        near += self.before(values, 2) + self.after(values, 2)
        return near

    def by_session(self, values: Floats) -> Floats:
        """The sum over each session, shape (sessions,)."""
        total: Floats = np.add.reduceat(values, self.start) if len(values) else np.zeros(0)
        return total

    def top_mean(self, values: Floats, best: int) -> Floats:
        """The mean of the *best* largest values of each session, of fewer where it is shorter."""
        if not len(values):
            return np.zeros(0)
        left = values.copy()
        total = np.zeros(len(self.start))
        for _ in range(best):
            top = np.maximum.reduceat(left, self.start)
            at = np.flatnonzero(left == top[self.session])
            at = at[np.append(True, np.diff(self.session[at]) > 0)]  # one of equals
            total += np.where(np.isfinite(top), top, 0.0)
            left[at] = -np.inf
        mean: Floats = total / np.minimum(np.diff(np.append(self.start, len(values))), best)
        return mean


@dataclass(frozen=True, slots=True)
class Index:
    """
    n documents in the order of (conversation, seq), so that neighbours and sessions lie together.

    ``peer``: a talk between named people of like length; ``mixed``: users' and assistants' turns
    together.  ``norm``, ``near_norm`` and ``session_norm`` are BM25's length terms,
    k1 (1 - b + b L / mean L), of a document, of five neighbours and of a session.
    """

    rows: tuple[DocRow, ...]
    docs: Ints  # document numbers, ascending
    places: Ints  # where each of them stands in the order above
    layout: Layout
    conversations: tuple[tuple[str, str], ...]  # (subject, name)
    conversation: Ints  # index into conversations
    seq: Ints
    names: tuple[str, ...]
    speaker: Ints  # index into names
    user: Floats  # 1 for the turns of users, 0 for others, as are the flags below
    at_ms: Ints
    year: Ints
    question: Floats
    time: Floats
    number: Floats
    opens: Floats  # first of its session
    answers: Floats  # follows another speaker's question and is none
    peer: bool
    mixed: bool
    mean_terms: float
    norm: Floats
    near_norm: Floats
    session_norm: Floats
    vectors: Vectors | None

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def nbytes(self) -> int:
        """Roughly what it occupies: some 140 bytes a document in arrays, 600 in its row, and the vector."""
        vectors = self.vectors.codes.nbytes + self.vectors.scale.nbytes if self.vectors else 0
        return 4096 + 740 * len(self.rows) + vectors

    def find(self, numbers: Ints) -> tuple[Ints, Bools]:
        """Places of document *numbers*, and which of them are here at all."""
        if not len(self.docs):
            return np.zeros(len(numbers), np.int64), np.zeros(len(numbers), np.bool_)
        slots = np.minimum(np.searchsorted(self.docs, numbers), len(self.docs) - 1)
        return self.places[slots], self.docs[slots] == numbers


def build(rows: Sequence[DocRow], vectors: Iterable[tuple[int, float, bytes]] = (), *, dim: int = 0) -> Index:
    """
    Lay out the documents of one kind and one person.

    Args:
        rows: in any order.
        vectors: ``(doc, scale, int8 bytes)``; one of another width than *dim* is left out.
        dim: the numbers of a vector; 0 says that there is no embedder.
    """
    ordered = _in_order(rows)
    docs = np.array([row.doc for row in ordered], np.int64)
    places = np.argsort(docs, kind="stable")
    layout = _layout(ordered)
    people: dict[str, int] = {}
    speaker = np.array([people.setdefault(row.speaker, len(people)) for row in ordered], np.int64)
    talks: dict[tuple[str, str], int] = {}
    talk = np.array([talks.setdefault((row.subject, row.conversation), len(talks)) for row in ordered], np.int64)
    user = np.array([row.role == "user" for row in ordered], np.float64)
    equals = not any(name.lower() in ROLE_NAMES for name in people)
    signals = np.array([row.signals for row in ordered], np.int64)
    question = _flag(signals, IS_QUESTION)
    at_ms = np.array([row.at for row in ordered], np.int64)
    lengths = np.array([row.terms for row in ordered], np.float64)
    opens = np.zeros(len(ordered))
    opens[layout.start] = 1.0
    return Index(
        rows=tuple(ordered),
        docs=docs[places],
        places=places,
        layout=layout,
        conversations=tuple(talks),
        conversation=talk,
        seq=np.array([row.seq for row in ordered], np.int64),
        names=tuple(people),
        speaker=speaker,
        user=user,
        at_ms=at_ms,
        year=at_ms.astype("datetime64[ms]").astype("datetime64[Y]").astype(np.int64) + 1970,
        question=question,
        time=_flag(signals, NAMES_TIME),
        number=_flag(signals, HAS_NUMBER),
        opens=opens,
        answers=layout.before(question, 1) * (1 - question) * np.diff(speaker, prepend=-1).astype(bool),
        peer=equals and _alike(ordered, speaker),
        mixed=not equals and 0 < user.sum() < len(ordered),
        mean_terms=_mean(lengths),
        norm=_norm(lengths, K1, B),
        near_norm=_norm(layout.near(lengths), CONTEXT_K1, CONTEXT_B),
        session_norm=_norm(layout.by_session(lengths), CONTEXT_K1, CONTEXT_B),
        vectors=_matrix(docs, vectors, dim) if dim else None,
    )


def _flag(signals: Ints, bit: int) -> Floats:
    return ((signals & bit) > 0).astype(np.float64)


def _in_order(rows: Sequence[DocRow]) -> list[DocRow]:
    """By conversation (the one that began first, first), then by message number."""
    began: dict[tuple[str, str], int] = {}
    for row in rows:
        key = (row.subject, row.conversation)
        began[key] = min(row.doc, began.get(key, row.doc))
    return sorted(rows, key=lambda row: (began[row.subject, row.conversation], row.seq, row.doc))


def _layout(ordered: Sequence[DocRow]) -> Layout:
    """Sessions are runs: one that others interrupt counts as two."""
    keys = [(row.subject, row.conversation, row.session) for row in ordered]
    fresh = np.array([at == 0 or keys[at] != keys[at - 1] for at in range(len(keys))], np.bool_)
    session = np.cumsum(fresh) - 1
    same = ((session[1:] == session[:-1]).astype(np.float64), (session[2:] == session[:-2]).astype(np.float64))
    return Layout(session.astype(np.int64), np.flatnonzero(fresh), same)


def _alike(ordered: Sequence[DocRow], speaker: Ints) -> bool:
    """Whether those who speak at all often write at a like length."""
    if not len(ordered):
        return False
    chars = np.array([row.chars for row in ordered], np.float64)
    turns = np.bincount(speaker)
    means = np.bincount(speaker, chars) / turns
    means = means[turns >= _PEER_SHARE * len(ordered)]
    return not len(means) or bool(means.max() <= _PEER_LENGTH_RATIO * means.min())


def _mean(lengths: Floats) -> float:
    return float(lengths.mean()) if len(lengths) and lengths.any() else 1.0


def _norm(lengths: Floats, k1: float, b: float) -> Floats:
    norm: Floats = k1 * (1 - b + b * lengths / _mean(lengths))
    return norm


def _matrix(docs: Ints, vectors: Iterable[tuple[int, float, bytes]], dim: int) -> Vectors:
    place = {int(doc): at for at, doc in enumerate(docs)}
    codes = np.zeros((len(docs), dim), np.int8)
    scale = np.zeros(len(docs), np.float32)
    known = [(place[doc], weight, blob) for doc, weight, blob in vectors if doc in place and len(blob) == dim]
    if known:
        at = [item[0] for item in known]
        codes[at] = np.frombuffer(b"".join(item[2] for item in known), np.int8).reshape(len(known), dim)
        scale[at] = [item[1] for item in known]
    return Vectors(codes, scale)
