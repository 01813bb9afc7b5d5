"""
Scrubbing after an erasure: rewrite the file, empty the log, and search the bytes for traces.

``secure_delete`` overwrites rows that are deleted, but not the copies that a page keeps where rows
were moved when it was filled or split: such copies were found in the bytes.  A file that is written
anew has none.  Until the write-ahead log is emptied, that still holds the pages as they were.
"""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import Any

import apsw

from ...config import Config
from ..values import Scrubbed

WAIT_S = 1.0  # for readers that hold the log
READER = "a reader holds the log: it is emptied when the file is next closed, or by `holdfast store scrub`"

Alone = Callable[[Callable[[apsw.Connection], Any]], Any]
Said = Callable[[bytes], bool]


def scrub_file(path: str, alone: Alone, said: Said, traces: Sequence[bytes], config: Config) -> Scrubbed:
    """
    Scrub the file at *path*; *alone* runs a function with the writing connection, *said* asks the rows.

    A file larger than ``Config.scrub_mb`` only has its log emptied: writing it anew takes as much
    memory as it is large, and keeps other writers waiting.
    """
    small = os.path.getsize(path) <= config.scrub_mb * 1_000_000
    if small:
        try:
            alone(_written_anew)
        except (apsw.BusyError, apsw.FullError, apsw.NoMemError):
            return Scrubbed(
                why="the file could not be written anew: `holdfast store scrub` when there is room and quiet"
            )
    if not _emptied(alone, config.busy_timeout_ms):
        return Scrubbed(why=READER)
    if not small:
        return Scrubbed(
            why="the file is larger than Config.scrub_mb: copies may stand in its free space until `holdfast store scrub`"
        )
    found = {trace for name in (path, path + "-wal", path + "-journal") for trace in _inside(name, traces)}
    return _told(traces, found, said)


def scrub_memory(alone: Alone, said: Said, traces: Sequence[bytes]) -> Scrubbed:
    """Scrub a database that has no file."""
    alone(_written_anew)
    image = alone(lambda db: db.serialize("main"))
    return _told(traces, {trace for trace in traces if trace in image}, said)


def _told(traces: Sequence[bytes], found: Collection[bytes], said: Said) -> Scrubbed:
    """Drop traces that a remaining row contains: these are no residue."""
    left = [trace for trace in traces if trace in found and not said(trace)]
    return Scrubbed(len(traces), len(left), "bytes of it still stand in the file" if left else "")


def _written_anew(db: apsw.Connection) -> None:
    db.execute("VACUUM")


def _emptied(alone: Alone, patience_ms: int) -> bool:
    """Whether the log could be copied into the file and cut to nothing; *patience_ms* is the connection's own."""

    def checkpoint(db: apsw.Connection) -> None:
        db.set_busy_timeout(0)
        try:
            db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        finally:
            db.set_busy_timeout(patience_ms)

    deadline = time.monotonic() + WAIT_S
    while True:
        try:
            alone(checkpoint)
            return True
        except apsw.BusyError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.01)


def _inside(path: str, traces: Sequence[bytes]) -> list[bytes]:
    with suppress(FileNotFoundError), open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size:
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as image:
                return [trace for trace in traces if image.find(trace) >= 0]
    return []
