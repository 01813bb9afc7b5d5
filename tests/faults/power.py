"""
Disks that fail, as file layers for SQLite: pass the name as ``SqliteBackend(..., vfs=name)``.

``PowerCut`` remembers what was written since each file's last sync, and can show the files as a
sudden loss of power might have left them.  ``FaultyDisk`` refuses a chosen write.
"""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw

_SECTOR_BYTES = 512

Write = tuple[int, bytes | None]
"""An offset and what was written there; ``None`` cuts the file off at the offset."""


class _File(apsw.VFSFile):
    """A real file that tells its disk what happens to it."""

    def __init__(self, disk: _Disk, filename: Any, flags: list[int]) -> None:
        super().__init__("", filename, flags)
        self._disk = disk
        self._name = os.path.basename(filename.filename() if hasattr(filename, "filename") else filename or "")

    def xWrite(self, data: Any, offset: int) -> None:
        self._disk.before(self._name, "write")
        super().xWrite(data, offset)
        self._disk.wrote(self._name, (offset, bytes(data)))

    def xTruncate(self, newsize: int) -> None:
        self._disk.before(self._name, "truncate")
        super().xTruncate(newsize)
        self._disk.wrote(self._name, (newsize, None))

    def xSync(self, flags: int) -> None:
        self._disk.before(self._name, "sync")
        self._disk.synced(self._name)  # the real disk is not asked: no real power is cut


class _Disk(apsw.VFS):
    """A file layer over the real one; subclasses decide what goes wrong."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(name, "")

    def xOpen(self, name: Any, flags: list[int]) -> _File:
        return _File(self, name, flags)

    def before(self, file: str, operation: str) -> None:
        """Called before *operation* changes the file; may raise."""

    def wrote(self, file: str, write: Write) -> None:
        """Called after bytes were handed to the operating system, which may still lose them."""

    def synced(self, file: str) -> None:
        """Called after everything written to the file has reached the disk."""


class PowerCut(_Disk):
    """
    Knows, at every moment, what is safe on the disk and what is only on its way.

    ``on_event`` is called before each write, truncation and sync: the moments between which the
    disk's state differs.  What it raises reaches SQLite as a failed operation.
    """

    def __init__(self, name: str, on_event: Callable[[], None] = lambda: None) -> None:
        super().__init__(name)
        self.on_event = on_event
        self._safe: dict[str, bytearray] = {}
        self._on_its_way: dict[str, list[Write]] = {}
        self._lock = threading.Lock()

    def before(self, file: str, operation: str) -> None:
        """See the base."""
        self.on_event()

    def wrote(self, file: str, write: Write) -> None:
        """See the base."""
        with self._lock:
            self._on_its_way.setdefault(file, []).append(write)

    def synced(self, file: str) -> None:
        """See the base."""
        with self._lock:
            safe = self._safe.setdefault(file, bytearray())
            for write in self._on_its_way.pop(file, []):
                _apply(safe, write)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        """A deleted file is gone at once: the worst that a power cut can do to a write-ahead log."""
        super().xDelete(filename, syncdir)
        with self._lock:
            self._safe.pop(os.path.basename(filename), None)
            self._on_its_way.pop(os.path.basename(filename), None)

    def after_cut(self, chance: random.Random) -> dict[str, bytes]:
        """
        The files as a cut at this moment may leave them: ``{file name: content}``.

        Every write since its file's last sync survives or not, each by itself; in half of the cuts
        writes are torn as well, between sectors of 512 bytes.
        """
        torn = chance.random() < 0.5
        survival = chance.choice((0.1, 0.5, 0.9))
        with self._lock:
            files = {name: bytearray(content) for name, content in self._safe.items()}
            for name, writes in self._on_its_way.items():
                content = files.setdefault(name, bytearray())
                for offset, data in writes:
                    for piece in _pieces(offset, data, torn):
                        if chance.random() < survival:
                            _apply(content, piece)
        return {name: bytes(content) for name, content in files.items()}


class FaultyDisk(_Disk):
    """
    Fails write, sync or truncation number ``fail_at`` (from 1) with *error*; later ones too if ``stays``.

    ``heal`` makes it work again.  ``operations`` counts what was asked for.
    """

    def __init__(self, name: str, *, fail_at: int = 0, error: type[apsw.Error] = apsw.FullError, stays: bool = False):
        super().__init__(name)
        self.operations = 0
        self.failed = 0
        self._fail_at = fail_at
        self._error = error
        self._stays = stays
        self._lock = threading.Lock()

    def heal(self) -> None:
        """There is room again; the disk is well."""
        self._fail_at = 0

    def break_from_now(self) -> None:
        """The next operation fails."""
        self._fail_at = self.operations + 1

    def before(self, file: str, operation: str) -> None:
        """See the base."""
        with self._lock:
            self.operations += 1
            if self._fail_at and (
                self.operations == self._fail_at or (self._stays and self.operations > self._fail_at)
            ):
                self.failed += 1
                raise self._error(f"{operation} number {self.operations} fails, as ordered")


def write_files(files: dict[str, bytes], folder: Path) -> None:
    """Put what `PowerCut.after_cut` returned into an empty *folder*."""
    for name, content in files.items():
        (folder / name).write_bytes(content)


def _apply(content: bytearray, write: Write) -> None:
    offset, data = write
    if data is None:
        del content[offset:]
        return
    if len(content) < offset:
        content.extend(bytes(offset - len(content)))
    content[offset : offset + len(data)] = data


def _pieces(offset: int, data: bytes | None, torn: bool) -> list[Write]:
    if data is None or not torn:
        return [(offset, data)]
    pieces: list[Write] = []
    start = 0
    while start < len(data):
        stop = min(len(data), start + _SECTOR_BYTES - (offset + start) % _SECTOR_BYTES)
        pieces.append((offset + start, data[start:stop]))
        start = stop
    return pieces
