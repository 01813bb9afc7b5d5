"""
One user's documents of one kind as arrays, ready to be ranked.

Built from the store's rows, kept by the cache, and extended by what came since; one index never changes.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field, fields, replace
from functools import partial
from itertools import chain
from typing import TypeAlias

from ..embed.protocol import Embedder
from ..scope import SELF
from ..store import DocRow, FactRow, Partition, ReadView, UserRow
from ..store.segments import NUMBERS, Segment, Words, join_segments, number_distinct, pack_columns
from ..store.values import CHARS_SPAN, SEPARATOR, SIGNALS_SPAN
from ..text import NDArray, dataclass, np
from ..text.terms import (
    FIRST_PERSON,
    HAS_NUMBER,
    IS_QUESTION,
    NAMES_THING,
    NAMES_TIME,
    STANDING,
    terms,
    tools_asked_for,
)
from ..types import BY_HAND_CONVERSATION, HitKind
from .query import (
    NAME_KEYS,
    ROLE_NAMES,
    Hazards,
    Query,
    in_first_person,
    is_use_of,
    name_asked_of,
    names_asked_for,
    subjects_asked,
    work_asked_of,
)
from .vectors import BIG, Codes, Signs, Vectors, extend_signs, extend_vectors, fill_vectors, order_signs, order_vectors

Floats: TypeAlias = "NDArray[np.float64]"
Ints: TypeAlias = "NDArray[np.int64]"
Bools: TypeAlias = "NDArray[np.bool_]"

# BM25 of single documents, and of their neighbourhoods and sessions, as the recipe was tuned.
K1, B = 0.9, 0.4
CONTEXT_K1, CONTEXT_B = 1.2, 0.75
# Nobody writes four times as long as the other in a talk between equals.
_PEER_LENGTH_RATIO = 4.0
# Speakers with a smaller share of the messages do not decide what kind of talk it is.
_PEER_SHARE = 0.1
# So few vectors are read one by one.
_FEW_VECTORS = 64
# More messages than a conversation has.
_SEQ_SPAN = 1 << 40

SourceKey = tuple[str, str, int]
"""The subject, conversation and number of a message."""
NO_SOURCES: Mapping[str, Sequence[SourceKey]] = {}
NO_ALIASES: Mapping[str, Sequence[str]] = {}


@dataclass(frozen=True, slots=True)
class SessionLayout:
    """
    The order of documents within sessions.

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

    def near_all(self, values: Floats) -> Floats:
        """Return the sum over five turns, two on each side, within the session."""
        near: Floats = values + self.before(values, 1) + self.after(values, 1)
        near += self.before(values, 2) + self.after(values, 2)
        return near

    def near(self, places: Ints, values: Floats) -> tuple[Ints, Floats]:
        """
        Return where `near_all` is not 0, and its values there, when only *places* have *values* above 0.

        *places* ascend.
        """
        near = np.zeros(len(self.session))
        near[places] = values
        for distance in (1, 2):
            same = self.same[distance - 1]
            early = places < len(near) - distance
            near[places[early] + distance] += values[early] * same[places[early]]
            late = places >= distance
            near[places[late] - distance] += values[late] * same[places[late] - distance]
        at = np.flatnonzero(near)
        return at, near[at]

    def after_another(self, places: Ints) -> Ints:
        """Return those of *places*, ascending, that follow another of them by one or two turns in its session."""
        marked = np.zeros(len(self.session), np.bool_)
        marked[places] = True
        after = np.zeros(len(places), np.bool_)
        for distance in (1, 2):
            late = places >= distance
            before = places[late] - distance
            after[late] |= marked[before] & (self.same[distance - 1][before] > 0)
        return places[after]

    def by_session(self, values: Floats) -> Floats:
        """Return the sum over each session, shape (sessions,)."""
        total: Floats = np.add.reduceat(values, self.start) if len(values) else np.zeros(0)
        return total

    def better(self, values: Floats, most: int) -> Floats:
        """Count the larger values of its session for each document, equal ones once, at most *most*."""
        found = np.zeros(len(values))
        if not len(values):
            return found
        left = values.copy()
        for _ in range(most):
            top = np.maximum.reduceat(left, self.start)[self.session]
            found += values < top
            left[left == top] = -np.inf
        return found

    def top_mean(self, values: Floats, best: int) -> Floats:
        """Return the mean of the *best* largest values of each session, of fewer where it is shorter."""
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
class FactSources:
    """
    The messages that facts rest on, k pairs of a fact's place and a message's key.

    ``talk`` indexes ``talks``, the (subject, name) of their conversations.
    """

    place: Ints
    talks: tuple[tuple[str, str], ...]
    talk: Ints
    seq: Ints


@dataclass(frozen=True, slots=True)
class Index:
    """
    n documents in the order of (conversation, seq), so that neighbors and sessions lie together.

    ``peer``: a talk between named users of like length; ``mixed``: users' and assistants' turns
    together.  ``norm``, ``near_norm`` and ``session_norm`` are BM25's length terms,
    k1 (1 - b + b L / mean L), of a document, of five neighbors and of a session.
    """

    kind: str
    parts: tuple[Documents, ...]  # what it was made from
    docs: Ints  # document numbers
    sorted_docs: Ints  # the same, ascending
    places: Ints  # where each of those stands in the order above
    refs: tuple[str, ...]
    layout: SessionLayout
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
    standing: Floats
    thing: Floats
    personal: Floats
    opens: Floats  # first of its session
    answers: Floats  # follows another speaker's question and is none
    peer: bool
    mixed: bool
    mean_terms: float
    norm: Floats
    near_norm: Floats
    session_norm: Floats
    sources: FactSources
    aliases: tuple[tuple[tuple[str, ...], int], ...] = ()  # the terms of an alias, and the place of its fact
    subjects: tuple[tuple[str, frozenset[str]], ...] = ()  # of facts, with the terms that name each
    about: Ints = field(default_factory=lambda: np.zeros(0, np.int64))  # index into subjects
    called: tuple[str, ...] = ()  # what the user is called, by the facts
    vectors: tuple[Vectors | Signs, ...] = ()  # one for each embedder that is asked

    def __len__(self) -> int:
        return len(self.docs)

    @property
    def end(self) -> int:
        """Return the number after the last document's."""
        return int(self.sorted_docs[-1]) + 1 if len(self) else 0

    @property
    def nbytes(self) -> int:
        """Return the bytes that are held now."""
        held = [getattr(self, column.name) for column in fields(self)]
        held += [self.layout.session, self.layout.start, *self.layout.same]
        held += [column for part in self.parts for column in (part.said_at, *part.numbers.values())]
        arrays = {id(array): array.nbytes for array in held if isinstance(array, np.ndarray)}  # some are there twice
        refs = 8 * len(self) + sum(len(ref) + 57 for ref in self.refs if ref)
        others = (*self.vectors, *(part.words for part in self.parts))
        return 4096 + sum(arrays.values()) + refs + sum(other.nbytes for other in others)

    def rows(self, places: Ints) -> list[DocRow]:
        """Return the documents at *places*, as far as a search knows them."""
        columns = (self.conversation, self.docs, self.seq, self.layout.session, self.speaker, self.user, self.at_ms)
        found = []
        told = zip(places.tolist(), *(column[places].tolist() for column in columns), strict=True)
        for place, talk, doc, seq, session, speaker, user, at in told:
            subject, conversation = self.conversations[talk]
            ref, name, role = self.refs[place], self.names[speaker], "user" if user else ""
            found.append(DocRow(subject, self.kind, doc, conversation, seq, ref, session, name, role, at, 0, 0, 0))
        return found

    def of_sources(self, sources: FactSources) -> tuple[Ints, Ints]:
        """Of those *sources* that are messages of this index: the facts' places and the messages'."""
        known = {talk: number for number, talk in enumerate(self.conversations)}
        talk = np.array([known.get(name, -1) for name in sources.talks], np.int64)[sources.talk]
        here = self.conversation * _SEQ_SPAN + self.seq  # ascending, as the order is by these two
        wanted = talk * _SEQ_SPAN + sources.seq
        at = np.minimum(np.searchsorted(here, wanted), max(len(self) - 1, 0))
        found = (talk >= 0) & (here[at] == wanted) if len(self) else np.zeros(len(wanted), np.bool_)
        return sources.place[found], at[found]

    def find(self, numbers: Ints) -> tuple[Ints, Bools]:
        """Places of document *numbers*, and which of them are here at all."""
        if not len(self):
            return np.zeros(len(numbers), np.int64), np.zeros(len(numbers), np.bool_)
        slots = np.minimum(np.searchsorted(self.sorted_docs, numbers), len(self) - 1)
        return self.places[slots], self.sorted_docs[slots] == numbers


@dataclass(frozen=True, slots=True)
class Match:
    """One word of the question: how often it occurs in the documents that hold it."""

    times_asked: int
    places: Ints
    counts: Floats


@dataclass(frozen=True, slots=True)
class Documents:
    """The documents of one partition by number, as they were read; see `Segment`."""

    partition: Partition
    numbers: Mapping[str, Ints]
    said: tuple[str, ...]
    said_at: Ints  # index into said
    refs: tuple[str, ...]
    words: Words

    def extend(self, more: Segment) -> Documents:
        """Return these documents and newer ones."""
        if not len(more):
            return self
        said, at = number_distinct((*self.said, *more.said))
        said_at = np.concatenate((self.said_at, at[len(self.said) :][more.said_at]))
        numbers = {name: np.concatenate((self.numbers[name], more.numbers[name])) for name in NUMBERS}
        return Documents(self.partition, numbers, said, said_at, self.refs + more.refs, self.words.extend(more.words))


def join_documents(partition: Partition, segments: Sequence[Segment]) -> Documents:
    """Return the documents of a partition, as `ReadView.segments` gives them."""
    whole = join_segments(segments)
    return Documents(partition, whole.numbers, whole.said, whole.said_at, whole.refs, Words().extend(whole.words))


@dataclass(frozen=True, slots=True)
class _Ordered:
    """The documents of all partitions by (conversation, seq); see `Index`."""

    numbers: Mapping[str, Ints]
    refs: tuple[str, ...]
    talks: tuple[tuple[str, str], ...]
    talk: Ints
    names: tuple[str, ...]
    speaker: Ints
    user: Floats


def _order_documents(parts: Sequence[Documents]) -> _Ordered:
    distinct: list[tuple[str, str, str, str]] = []
    said_at = []
    for part in parts:
        said_at.append(part.said_at + len(distinct))
        for text in part.said:
            conversation, role, name = text.split(SEPARATOR, 2)
            distinct.append((part.partition.subject, conversation, role, name))
    said = _join(said_at)
    talks, talk = number_distinct([(subject, conversation) for subject, conversation, _, _ in distinct])
    names, speaker = number_distinct([name for *_, name in distinct])
    user = np.array([role == "user" for _, _, role, _ in distinct], np.float64)
    numbers = {name: _join([part.numbers[name] for part in parts]) for name in NUMBERS}
    refs = parts[0].refs if len(parts) == 1 else tuple(chain.from_iterable(part.refs for part in parts))
    talk = talk[said]
    position = talk * _SEQ_SPAN + numbers["seq"]
    if not _ascends(position):
        order = np.argsort(position, kind="stable")
        numbers = {name: values[order] for name, values in numbers.items()}
        refs, talk, said = tuple(map(refs.__getitem__, order.tolist())), talk[order], said[order]
    return _Ordered(numbers, refs, talks, talk, names, speaker[said], user[said])


def build(
    kind: str,
    parts: Sequence[Documents],
    *,
    sources: Mapping[str, Sequence[SourceKey]] = NO_SOURCES,
    aliases: Mapping[str, Sequence[str]] = NO_ALIASES,
) -> Index:
    """
    Lay out the documents of one kind and one user, without vectors.

    Args:
        kind: ``message``, ``fact`` or ``summary``.
        parts: the documents of each partition.
        sources: for the id of each fact, the messages it rests on.
        aliases: for the id of a fact, its other names.
    """
    rows = _order_documents(parts)
    docs, sizes, at_ms = rows.numbers["doc"], rows.numbers["sizes"], rows.numbers["at"]
    rest, signals = sizes // SIGNALS_SPAN, sizes % SIGNALS_SPAN
    chars, lengths = rest % CHARS_SPAN, (rest // CHARS_SPAN).astype(np.float64)
    by_hand = [name == BY_HAND_CONVERSATION for _, name in rows.talks]
    layout = _find_sessions(rows.talk, rows.numbers["session"], by_hand)
    question, equals = _flag(signals, IS_QUESTION), not any(name.lower() in ROLE_NAMES for name in rows.names)
    ordered = _ascends(docs)
    places = np.arange(len(docs)) if ordered else np.argsort(docs, kind="stable")
    return Index(
        kind=kind,
        parts=tuple(parts),
        docs=docs,
        sorted_docs=docs if ordered else docs[places],
        places=places,
        refs=rows.refs,
        layout=layout,
        conversations=rows.talks,
        conversation=rows.talk,
        seq=rows.numbers["seq"],
        names=rows.names,
        speaker=rows.speaker,
        user=rows.user,
        at_ms=at_ms,
        year=_years(at_ms),
        question=question,
        time=_flag(signals, NAMES_TIME),
        number=_flag(signals, HAS_NUMBER),
        standing=_flag(signals, STANDING),
        thing=_flag(signals, NAMES_THING),
        personal=_flag(signals, FIRST_PERSON),
        opens=_ones_at(layout.start, len(docs)),
        answers=layout.before(question, 1) * (1 - question) * np.diff(rows.speaker, prepend=-1).astype(bool),
        peer=equals and _similar_lengths(chars, rows.speaker),
        mixed=not equals and 0 < rows.user.sum() < len(docs),
        mean_terms=_mean(lengths),
        norm=_norm(lengths, K1, B),
        near_norm=_norm(layout.near_all(lengths), CONTEXT_K1, CONTEXT_B),
        session_norm=_norm(layout.by_session(lengths), CONTEXT_K1, CONTEXT_B),
        sources=_place_sources(rows.refs, sources),
        aliases=_place_aliases(rows.refs, aliases),
    )


def _ones_at(places: Ints, size: int) -> Floats:
    ones = np.zeros(size)
    ones[places] = 1
    return ones


def _ascends(values: Ints) -> bool:
    return bool((values[1:] >= values[:-1]).all())


def _join(columns: Sequence[Ints]) -> Ints:
    return columns[0] if len(columns) == 1 else np.concatenate([np.zeros(0, np.int64), *columns])


def _years(at_ms: Ints) -> Ints:
    return at_ms.astype("datetime64[ms]").astype("datetime64[Y]").astype(np.int64) + 1970


def _flag(signals: Ints, bit: int) -> Floats:
    return ((signals & bit) > 0).astype(np.float64)


def _find_sessions(talk: Ints, sitting: Ints, apart: Sequence[bool]) -> SessionLayout:
    """Return the sessions, runs of one sitting of one conversation; where it is *apart* each message is one."""
    fresh = np.append(True, (np.diff(talk) != 0) | (np.diff(sitting) != 0))[: len(talk)]
    if any(apart):
        fresh |= np.array(apart)[talk]
    session = np.cumsum(fresh) - 1
    same = ((session[1:] == session[:-1]).astype(np.float64), (session[2:] == session[:-2]).astype(np.float64))
    return SessionLayout(session.astype(np.int64), np.flatnonzero(fresh), same)


def _similar_lengths(chars: Ints, speaker: Ints) -> bool:
    """Whether those who speak at all often write at a like length."""
    if not len(speaker):
        return False
    turns = np.bincount(speaker)
    means = np.bincount(speaker, chars) / turns
    means = means[turns >= _PEER_SHARE * len(speaker)]
    return not len(means) or bool(means.max() <= _PEER_LENGTH_RATIO * means.min())


def _mean(lengths: Floats) -> float:
    return float(lengths.mean()) if len(lengths) and lengths.any() else 1.0


def _norm(lengths: Floats, k1: float, b: float) -> Floats:
    norm: Floats = k1 * (1 - b + b * lengths / _mean(lengths))
    return norm


def _place_sources(refs: Sequence[str], sources: Mapping[str, Sequence[SourceKey]]) -> FactSources:
    if not sources:
        return FactSources(np.zeros(0, np.int64), (), np.zeros(0, np.int64), np.zeros(0, np.int64))
    pairs = [(place, key) for place, ref in enumerate(refs) for key in sources.get(ref, ())]
    talks, talk = number_distinct([key[:2] for _, key in pairs])
    place, seq = [place for place, _ in pairs], [key[2] for _, key in pairs]
    return FactSources(np.array(place, np.int64), talks, talk, np.array(seq, np.int64))


def _place_aliases(
    refs: Sequence[str], aliases: Mapping[str, Sequence[str]]
) -> tuple[tuple[tuple[str, ...], int], ...]:
    """Return the terms of each alias with the place of its fact; an alias of stop words alone names nothing."""
    if not aliases:
        return ()
    named = ((tuple(terms(name, "en")), place) for place, ref in enumerate(refs) for name in aliases.get(ref, ()))
    return tuple(dict.fromkeys(one for one in named if one[0]))


Key = tuple[tuple[str, str, str], tuple[Partition, ...], tuple[str, ...]]
"""Whose (org, user, bot), which partitions, and whose vectors (ids of embedders)."""


@dataclass(frozen=True, slots=True)
class _Entry:
    stamp: UserRow
    index: Index
    nbytes: int


class IndexCache:
    """
    The least recently used indexes make room when all together exceed *max_bytes*.

    An entry is good for the user's counters it was read with, in one and the same snapshot, so that a
    change by another process is seen.  Safe to use from any thread.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._entries: OrderedDict[Key, _Entry] = OrderedDict()
        self._nbytes = 0
        self._lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        """Return the bytes that are held now."""
        return self._nbytes

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Key, stamp: UserRow) -> Index | None:
        """Return the index under *key*, if it was read when the user's counters were *stamp*."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None or entry.stamp != stamp:
                return None
            self._entries.move_to_end(key)
            return entry.index

    def find_older(self, key: Key, stamp: UserRow, kind: str) -> Index | None:
        """Return the index under *key*, if what has changed until the counters were *stamp* can be added to it."""
        with self._lock:
            entry = self._entries.get(key)
            return entry.index if entry is not None and _extends(stamp, entry.stamp, kind) else None

    def put(self, key: Key, stamp: UserRow, index: Index) -> None:
        """Keep *index*, unless it alone exceeds the limit or a later one is held."""
        with self._lock:
            old = self._entries.get(key)
            entry = _Entry(stamp, index, old.nbytes if old is not None and old.index is index else index.nbytes)
            if old is not None and old.stamp.epoch == stamp.epoch and old.stamp.version > stamp.version:
                return
            if old is not None:
                del self._entries[key]
                self._nbytes -= old.nbytes
            if entry.nbytes > self._max_bytes:
                return
            self._entries[key] = entry
            self._nbytes += entry.nbytes
            while self._nbytes > self._max_bytes:
                _, oldest = self._entries.popitem(last=False)
                self._nbytes -= oldest.nbytes

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._entries.clear()
            self._nbytes = 0


def _extends(now: UserRow, before: UserRow, kind: str) -> bool:
    """Whether documents and vectors of *kind* were only added between two states of the user's counters."""
    same = now.epoch == before.epoch and now.revision(kind) == before.revision(kind)
    return same and now.version >= before.version and now.next_doc >= before.next_doc


def read_index(
    view: ReadView, kind: HitKind, stamp: UserRow, embedders: Sequence[Embedder], cache: IndexCache | None
) -> Index:
    """Return the documents of one kind that the scope may search, from the cache where it has the current ones."""
    partitions = tuple(view.partitions((kind,)))
    key = (view.scope.user_key, partitions, tuple(embedder.id for embedder in embedders))
    index = cache.get(key, stamp) if cache is not None else None
    if index is None:
        older = cache.find_older(key, stamp, kind) if cache is not None else None
        index = _extend(view, older, embedders) if older is not None else None
        if index is None:  # one without documents is an index, too
            index = _read(view, kind, partitions, stamp, embedders)
        if cache is not None:
            cache.put(key, stamp, index)
    return index


def _read(
    view: ReadView, kind: str, partitions: Sequence[Partition], stamp: UserRow, embedders: Sequence[Embedder]
) -> Index:
    """Read the documents of some partitions, and their vectors."""
    # The number of documents of all kinds is known beforehand, and bounds that of one.
    signs_of = embedders[0].id if embedders and stamp.next_doc > BIG else ""
    parts = [(partition, view.segments(partition, signs_of=signs_of)) for partition in partitions]
    everywhere = view.at(view.scope.subject, None)  # as the cache is for all conversations
    rows = everywhere.facts() if kind == "fact" and any(segments for _, segments in parts) else []
    documents = [join_documents(partition, segments) for partition, segments in parts]
    index = build(kind, documents, sources=_fact_sources(rows), aliases=_fact_aliases(rows))
    index = _with_subjects(index, rows) if rows else index
    return replace(index, vectors=tuple(_load_vectors(view, index, parts, embedder) for embedder in embedders))


def _extend(view: ReadView, older: Index, embedders: Sequence[Embedder]) -> Index | None:
    """
    Return *older* with the documents and vectors that came since, as `_read` would return it.

    None where it must be read anew: the signs of many vectors are held otherwise than the vectors of fewer.
    """
    index = older
    if older.kind != "fact":  # whose revision rises with each new one
        parts = [part.extend(pack_columns(view.columns(part.partition, first=older.end))) for part in older.parts]
        if any(new is not old for new, old in zip(parts, older.parts, strict=True)):
            index = build(older.kind, parts)
    if not embedders:
        return index
    if len(index) > BIG and (len(older) <= BIG or len(embedders) > 1 or not isinstance(older.vectors[0], Signs)):
        return None
    places = np.arange(len(older)) if _begins(index.docs, older.docs) else index.find(older.docs)[0]
    pairs = zip(older.vectors, embedders, strict=True)
    return replace(index, vectors=tuple(_extend_vectors(view, index, held, by, places) for held, by in pairs))


def _begins(whole: Ints, start: Ints) -> bool:
    return np.array_equal(whole[: len(start)], start)


def _extend_vectors(
    view: ReadView, index: Index, held: Vectors | Signs, embedder: Embedder, places: Ints
) -> Vectors | Signs:
    """Return vectors of an older index, whose documents are now at *places*, with those that came since."""
    missing = np.ones(len(index), np.bool_)
    missing[places] = ~held.present
    first = int(index.docs[missing].min()) if missing.any() else index.end
    at = [part.partition for part in index.parts] if first < index.end else []
    if isinstance(held, Signs):
        found = [pack_columns(view.columns(partition, signs_of=embedder.id, first=first)) for partition in at]
        read = partial(read_vectors, view, index, embedder)
        docs, signs, signed = _join_signs(found, embedder.dim)
        return extend_signs(held, places, len(index), index.find(docs[signed])[0], signs[signed], read)
    if np.count_nonzero(missing) > _FEW_VECTORS:
        rows = [row for partition in at for row in view.vectors(partition, embedder.id, first=first)]
        return extend_vectors(held, places, order_vectors(index.sorted_docs, index.places, rows, embedder.dim))
    wanted = np.flatnonzero(missing)
    return fill_vectors(held, places, len(index), wanted, read_vectors(view, index, embedder, wanted))


def _load_vectors(
    view: ReadView, index: Index, parts: Sequence[tuple[Partition, Sequence[Segment]]], embedder: Embedder
) -> Vectors | Signs:
    """All vectors by one embedder, or their signs when they are many."""
    if len(index) > BIG and any(segment.signed.any() for _, segments in parts for segment in segments):
        docs, signs, signed = _join_signs([segment for _, segments in parts for segment in segments], embedder.dim)
        read = partial(read_vectors, view, index, embedder)
        return order_signs(signs, signed, np.argsort(index.find(docs)[0]), embedder.dim, read)
    rows = [row for partition, _ in parts for row in view.vectors(partition, embedder.id)]
    return order_vectors(index.sorted_docs, index.places, rows, embedder.dim)


def _join_signs(segments: Sequence[Segment], dim: int) -> tuple[Ints, NDArray[np.uint8], Bools]:
    """Return the documents of segments, a row of signs for each, and which of these are there."""
    width = -(-dim // 8)
    found = [segment.signs_of(width) for segment in segments]
    return (
        np.concatenate([np.zeros(0, np.int64), *(segment.numbers["doc"] for segment in segments)]),
        np.concatenate([np.zeros((0, width), np.uint8), *(signs for signs, _ in found)]),
        np.concatenate([np.zeros(0, np.bool_), *(signed for _, signed in found)]),
    )


def read_vectors(view: ReadView, index: Index, embedder: Embedder, places: Ints) -> Codes:
    """Return the vectors of the documents at *places*, in their order; scale 0 where there is none."""
    codes, scale = np.zeros((len(places), embedder.dim), np.int8), np.zeros(len(places), np.float32)
    slots = dict(zip(index.docs[places].tolist(), range(len(places)), strict=True))
    by_subject: dict[str, list[int]] = {}
    for doc, talk in zip(slots, index.conversation[places].tolist(), strict=True):
        by_subject.setdefault(index.conversations[talk][0], []).append(doc)
    for subject, docs in by_subject.items():
        for doc, weight, data in view.vectors_of(Partition(subject, index.kind), embedder.id, docs):
            if len(data) == embedder.dim:
                codes[slots[doc]], scale[slots[doc]] = np.frombuffer(data, np.int8), weight
    return codes, scale


def _fact_sources(rows: Sequence[FactRow]) -> dict[str, list[SourceKey]]:
    """For the id of each fact, the messages that stated it."""
    return {row.fact.id: [(e.home, e.conversation, e.seq) for e in row.fact.evidence] for row in rows}


def _fact_aliases(rows: Sequence[FactRow]) -> dict[str, tuple[str, ...]]:
    """For the id of each fact that has any, its other names."""
    return {row.fact.id: names for row in rows if (names := row.fact.aliases)}


def _with_subjects(index: Index, rows: Sequence[FactRow]) -> Index:
    """Return the facts with whom each is about, and the terms that name those: of ids, and of what the user calls them."""
    names = _names_of_subjects(rows)
    subject_of = {row.fact.id: row.fact.subject for row in rows}
    subjects, about = number_distinct([subject_of.get(ref, "") for ref in index.refs])
    own = (row.fact for row in rows if (row.fact.subject, row.fact.category) == (SELF, "identity"))
    return replace(
        index,
        subjects=tuple((one, frozenset(names.get(one, ()))) for one in subjects),
        about=about,
        called=tuple(fact.value for fact in own if fact.key in NAME_KEYS),
    )


def _names_of_subjects(rows: Sequence[FactRow]) -> dict[str, set[str]]:
    """Return for each subject of the facts the terms that name it."""
    names = {subject: set(terms(subject.replace("-", " "), "en")) for subject in {row.fact.subject for row in rows}}
    for fact in (row.fact for row in rows if row.fact.category in ("family", "pets")):
        for subject in {"-".join(fact.value.casefold().split()), fact.key} & names.keys():
            names[subject].update(terms(f"{fact.value} {fact.key if fact.category == 'family' else ''}", "en"))
    return names


def ids_at(view: ReadView, question: str, called: Callable[[str], Collection[tuple[str, str]]]) -> frozenset[str]:
    """
    Return the ids of the active facts that *question* asks for, by their address or the kind of a tool; an address without a key is a category.

    Whoever asks for "my job" asks for no job of another, but in a conversation about another for theirs as well; "what does Ann do?" asks for Ann's.
    """
    wanted, tools = (
        {address for name in names_asked_for(question) for address in called(name)},
        tools_asked_for(question),
    )
    other, hazards = work_asked_of(question), Hazards(question)
    rows = view.at(view.scope.subject, None).facts() if wanted or tools or other or hazards else ()
    names_of = _names_of_subjects(rows)
    theirs = {subject for subject, names in names_of.items() if other and other <= names} - {SELF}
    works = (row.fact.id for row in rows if row.fact.subject in theirs and row.fact.key in ("works_as", "works_at"))
    held = [row.fact for row in rows if row.fact.subject in (SELF, view.scope.subject)]
    found = (one.id for one in held if one.key and {(one.category, one.key), (one.category, "")} & wanted)
    bearing = (one.id for one in hazards.bearing([row.fact for row in rows], names_of, held))
    return frozenset((*found, *works, *bearing)).union(one.id for one in held if tools and is_use_of(one, tools))


def as_of_user(question: str, messages: Index, facts: Index | None) -> str:
    """
    Return *question* with what the user is called replaced by how the user signs, or by "I" where no name is signed.

    "What does Kate like?" is answered by what she says of herself, and few of her messages hold her own name.
    """
    if facts is None or not any(name in question for name in facts.called):
        return question
    users = {messages.names[at] for at in np.unique(messages.speaker[messages.user > 0]).tolist()}
    signed = [name for name in users if name.lower() not in ROLE_NAMES]
    if len(signed) > 1:
        return question
    for name in facts.called:
        words = terms(name, "en")
        another = any(subject != SELF and not held.isdisjoint(words) for subject, held in facts.subjects)
        if not another and name not in messages.names:
            question = in_first_person(question, name, signed[0] if signed else "")
    return question


def places_of_others(index: Index, matches: Sequence[Match], query: Query, question: str) -> Bools:
    """Return which facts are about another subject than those that *question* is about, and name none of them."""
    whose = name_asked_of(question)
    if whose is not None:  # a fact that says another's name, or none, is no answer
        others = np.ones(len(index), np.bool_)
        for word, match in zip(dict.fromkeys(query.terms), matches, strict=True):
            if whose and not whose.isdisjoint(word):
                others[match.places] = False
        return others
    asked = subjects_asked(question, query, index.subjects, own=SELF)
    if not asked or not len(index.about):
        return np.zeros(len(index), np.bool_)
    others = ~np.array([subject in asked for subject, _ in index.subjects])[index.about]
    names = asked.union(*(words for subject, words in index.subjects if subject in asked))
    for word, match in zip(dict.fromkeys(query.terms), matches, strict=True):
        if not names.isdisjoint(word):
            others[match.places] = False
    return others


def find_matches(index: Index, query: Query) -> list[Match]:
    """Return each distinct word of the question with the documents of *index* that hold it."""
    words = Counter(query.terms)
    asked = {term for alternatives in words for term in alternatives}
    found: dict[str, list[_Places]] = {term: [] for term in asked}
    for part in index.parts:
        for term, (at, counts) in part.words.find(asked).items():
            if len(at):
                found[term].append((_find_places(index, part, at), counts.astype(np.float64)))
    return [
        _join_alternatives(times, [one for term in word for one in found[term]], len(index))
        for word, times in words.items()
    ]


_Places = tuple[Ints, Floats]


def _find_places(index: Index, part: Documents, at: Ints) -> Ints:
    """Return where in *index* those documents of a part are that are the first, second, … of it."""
    return index.places[at] if len(index.parts) == 1 else index.find(part.numbers["doc"][at])[0]


def _join_alternatives(asked: int, found: Sequence[_Places], size: int) -> Match:
    """One word from the documents of its alternatives; where two meet in a document the larger count is taken."""
    if not found:
        return Match(asked, np.zeros(0, np.int64), np.zeros(0))
    if len(found) == 1 and _ascends(found[0][0]):
        return Match(asked, *found[0])
    all_counts = np.zeros(size)
    for places, counts in found:
        all_counts[places] = np.maximum(all_counts[places], counts)
    at = np.flatnonzero(all_counts)
    return Match(asked, at, all_counts[at])
