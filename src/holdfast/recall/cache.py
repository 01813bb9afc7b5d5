"""Indexes of users who were searched lately, kept in memory; never an outdated one."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

from ..store.protocol import Partition, UserRow
from .index import Index

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

    An entry is good for the user's counters it was read with, in one and the same snapshot, so a
    change by another process makes it void.  Safe to use from any thread.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._entries: OrderedDict[Key, _Entry] = OrderedDict()
        self._nbytes = 0
        self._lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        """What is held now."""
        return self._nbytes

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Key, stamp: UserRow) -> Index | None:
        """The index under *key*, if it was read when the user's counters were *stamp*."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None or entry.stamp != stamp:
                return None
            self._entries.move_to_end(key)
            return entry.index

    def put(self, key: Key, stamp: UserRow, index: Index) -> None:
        """Keep *index*, unless it alone exceeds the limit."""
        entry = _Entry(stamp, index, index.nbytes)
        with self._lock:
            if old := self._entries.pop(key, None):
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
