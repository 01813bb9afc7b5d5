"""What a search reads of the store: indexes, unless they are in the cache, the question's words, single vectors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from ..embed.protocol import Embedder
from ..store.protocol import Partition, ReadView, UserRow
from ..types import HitKind
from .cache import IndexCache
from .index import NO_SOURCES, Columns, Floats, Index, Ints, SourceKey, build
from .query import Query
from .rank import Match
from .vectors import BIG, Codes, Signs, Vectors, arrange, arrange_signs

Postings = tuple[Ints, Floats]
"""The places of the documents that hold a word, and how often each does."""


def read_index(
    view: ReadView, kind: HitKind, stamp: UserRow, embedders: Sequence[Embedder], cache: IndexCache | None
) -> tuple[tuple[Partition, ...], Index]:
    """The scope's partitions of one kind and their arrays, from the cache where it has the current ones."""
    partitions = tuple(view.partitions((kind,)))
    key = (view.scope.user_key, partitions, tuple(embedder.id for embedder in embedders))
    index = cache.get(key, stamp) if cache is not None else None
    if index is None:
        # The number of documents of all kinds is known beforehand, and bounds that of one.
        signs_of = embedders[0].id if embedders and stamp.next_doc > BIG else ""
        parts = [(partition, view.columns(partition, signs_of=signs_of)) for partition in partitions]
        sources = _sources(view) if kind == "fact" and any(columns["doc"] for _, columns in parts) else NO_SOURCES
        index = build(kind, parts, sources=sources)
        index = replace(index, vectors=tuple(_held(view, index, parts, embedder) for embedder in embedders))
        if cache is not None:
            cache.put(key, stamp, index)
    return partitions, index


def _held(
    view: ReadView, index: Index, parts: Sequence[tuple[Partition, Columns]], embedder: Embedder
) -> Vectors | Signs:
    """All vectors by one embedder, or their signs when they are many."""
    if len(index) > BIG and any(sign is not None for _, columns in parts for sign in columns["signs"]):
        docs = np.array([doc for _, columns in parts for doc in columns["doc"]], np.int64)
        signs = [sign for _, columns in parts for sign in columns["signs"]]
        read = partial(read_vectors, view, index, embedder)
        return arrange_signs(signs, index.find(docs)[0], embedder.dim, read)
    rows = [row for partition, _ in parts for row in view.vectors(partition, embedder.id)]
    return arrange(index.sorted_docs, index.places, rows, embedder.dim)


def read_vectors(view: ReadView, index: Index, embedder: Embedder, places: Ints) -> Codes:
    """The vectors of the documents at *places*, in their order; scale 0 where there is none."""
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


def _sources(view: ReadView) -> dict[str, list[SourceKey]]:
    """For the id of each fact in sight, the messages that stated it."""
    return {row.fact.id: [(e.home, e.conversation, e.seq) for e in row.fact.evidence] for row in view.facts()}


def read_matches(view: ReadView, partitions: Sequence[Partition], index: Index, query: Query) -> list[Match]:
    """Each distinct word of the question with the documents of *index* that hold it."""
    words = Counter(query.terms)
    held: dict[str, Postings] = {}
    missing = []
    for term in sorted({term for alternatives in words for term in alternatives}):
        known = index.words.get(term)
        if known is None:
            missing.append(term)
        else:
            held[term] = known
    if missing:
        for term, found in _postings(view, partitions, index, missing).items():
            held[term] = found
            index.words.put(term, found)
    return [_match(asked, [held[term] for term in word], len(index)) for word, asked in words.items()]


def _postings(
    view: ReadView, partitions: Sequence[Partition], index: Index, terms: Sequence[str]
) -> dict[str, Postings]:
    found: dict[str, list[Postings]] = {term: [] for term in terms}
    for partition in partitions:
        rows = view.postings(partition, terms)
        if not rows:
            continue
        names, docs, counts = zip(*rows, strict=True)
        places, here = index.find(np.array(docs, np.int64))
        times = np.array(counts, np.float64)
        start = 0
        for term, size in Counter(names).items():  # rows come by term, so each is one run
            run, kept = slice(start, start + size), here[start : start + size]
            found[term].append((places[run][kept], times[run][kept]))
            start += size
    return {term: _ascending(runs) for term, runs in found.items()}


def _ascending(runs: Sequence[Postings]) -> Postings:
    """One word's documents in all partitions, by place."""
    if not runs:
        return np.zeros(0, np.int64), np.zeros(0)
    places = np.concatenate([places for places, _ in runs])
    times = np.concatenate([times for _, times in runs])
    if len(places) > 1 and (places[1:] < places[:-1]).any():
        order = np.argsort(places, kind="stable")
        return places[order], times[order]
    return places, times


def _match(asked: int, found: Sequence[Postings], size: int) -> Match:
    """One word from the documents of its alternatives; where two meet in a document the larger count is taken."""
    found = [pair for pair in found if len(pair[0])]
    if not found:
        return Match(asked, np.zeros(0, np.int64), np.zeros(0))
    if len(found) == 1:
        return Match(asked, *found[0])
    counts = np.zeros(size)
    for places, times in found:
        counts[places] = np.maximum(counts[places], times)
    at = np.flatnonzero(counts)
    return Match(asked, at, counts[at])
