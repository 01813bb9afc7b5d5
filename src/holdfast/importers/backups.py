"""
Backups of a memory: looked at, and put back without what was erased since.

`Memory.backup` makes them.  A backup is a whole store of one moment; nothing here changes it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace as changed_to
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..config import Config
from ..errors import BadInput, Conflict, StoreBusy, StoreCorrupt, StoreError
from ..memory import Memory
from ..reports import BackupReport, Finding
from ..store import is_address
from ..store.filelock import locked
from ..store.maintenance import digests_of, replace_all
from ..store.sqlite.connection import drop_manifest, read_manifest

_LOGS = ("-wal", "-shm")
_MAGIC = b"SQLite format 3\0"
_WORKING = "holdfast-working-"  # what the folder of a working copy begins with
_CHANGED = "it was damaged, or used as a memory, after it was made: take another, or `holdfast store copy` it as it is"
Ledgers = Sequence[Mapping[str, Any]]


def verify_backup(backup: str | os.PathLike[str], *, ledgers: Ledgers = ()) -> BackupReport:
    """
    Check a backup: whether it is what was written, keeps every rule, and what it holds that was erased since.

    A copy is looked at, beside the system's temporary files, so the backup stays as it is.

    Args:
        backup: the file.
        ledgers: what `Ledger.export` of newer copies returned.

    Raises:
        StoreError: it cannot be read, or is no memory.
        BadInput: a ledger is none.
    """
    source = _there(backup)
    with _worked_on(source) as copy:
        manifest = read_manifest(str(copy))
        changed = tuple(Finding("backup-table", name, _CHANGED) for name in manifest.differing)
        with _opened(copy) as memory:
            report = memory.doctor()
            replayed = [memory.admin.erasures.replay(ledger, dry_run=True) for ledger in ledgers]
            users = _count_users(memory)
    findings = changed + report.findings
    found = BackupReport(str(source), users, not findings, findings, tuple(replayed))
    return changed_to(found, rows=manifest.rows, made_at=manifest.made_at)


def restore_backup(
    backup: str | os.PathLike[str],
    to: str | os.PathLike[str],
    *,
    ledgers: Ledgers = (),
    replace: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> BackupReport:
    """
    Put a backup in place, after erasing in it what was erased since it was made.

    The ledger of the memory that is replaced is taken into account without being named.  A file that is replaced
    is kept beside the new one, under the name in ``replaced``, until you remove it; the rows of a database are not
    kept.  Nothing is in place before everything has succeeded, and then all of it at once.

    Args:
        backup: the file.
        to: where the memory shall be: a path, or the ``postgresql://`` address of a database.
        ledgers: what `Ledger.export` of newer copies returned, for when the newest file is lost.
        replace: put it in the place of a memory that is there.
        progress: called with rows done and rows to do while they go to a database.

    Raises:
        Conflict: there is a memory at *to*, and not *replace*; or a process has it open.
        StoreCorrupt: the backup is not what was written, or breaks a rule.
        StoreError: a file cannot be read or written; the role may not empty the database's tables.
        BadInput: a ledger is none.
    """
    source = _there(backup)
    if is_address(to):
        return _into_database(source, os.fspath(to), [*ledgers], replace, progress)
    return _into_file(source, Path(os.path.abspath(to)), [*ledgers], replace)


def _into_file(source: Path, target: Path, known: list[Mapping[str, Any]], replacing: bool) -> BackupReport:
    if source == target:
        raise BadInput("a backup cannot be put in its own place", hint="name another path")
    if target.exists() and not replacing:
        raise Conflict(f"there is a file at {target} already", hint="--replace puts the backup in its place")
    if target.exists():
        known.append(_ledger_of(target))
    with _worked_on(source, target.parent) as copy:
        found = _made_ready(source, copy, known)
        replaced = _put_in_place(copy, target)
    return changed_to(found, path=str(target), replaced=replaced)


def _into_database(
    source: Path,
    address: str,
    known: list[Mapping[str, Any]],
    replacing: bool,
    progress: Callable[[int, int], None] | None,
) -> BackupReport:
    """Made ready as a file first; then one transaction puts all rows into the database, or none."""
    was = None
    if replacing:  # before its ledger is read: what is erased after this moment is noticed
        was = digests_of(address, ("erasure", "ledger_key", "consent"))
    with Memory(address, config=Config(reembed=False)) as memory:
        place = memory.admin.stats().place
        if not replacing and memory.admin.users(limit=1):
            raise Conflict("the database holds a memory already", hint="--replace empties it first")
        if replacing:
            known.append(memory.admin.erasures.export())
    with _worked_on(source) as copy:
        found = _made_ready(source, copy, known)
        replace_all(str(copy), address, was, progress)
    return changed_to(found, path=place)


def _there(backup: str | os.PathLike[str]) -> Path:
    path = Path(os.path.abspath(backup))
    if not path.is_file():
        raise StoreError(f"there is no backup at {path}", hint="`holdfast store backup FILE` makes one")
    try:
        with path.open("rb") as file:
            begins = file.read(len(_MAGIC))
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}", hint="check its owner and its rights") from error
    if begins != _MAGIC:
        raise StoreCorrupt(f"{path} is not a backup: it is no SQLite file", hint="name what `store backup` wrote")
    return path


def _copied(source: Path, target: Path) -> None:
    try:
        descriptor = os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(descriptor, "wb") as writing, source.open("rb") as reading:
            shutil.copyfileobj(reading, writing, 2**20)
            writing.flush()
            os.fsync(writing.fileno())
    except OSError as error:
        hint = "check the folder and the space on its disk"
        raise StoreError(f"{source} could not be copied to {target}: {error.strerror}", hint=hint) from error


@contextmanager
def _worked_on(source: Path, beside: Path | None = None) -> Iterator[Path]:
    """
    A copy of the backup that may be changed, in a folder that is gone afterwards.

    It holds what was erased since, so those that a killed process left behind go first.
    """
    parent = beside or Path(tempfile.gettempdir())
    for left in parent.glob(f"{_WORKING}*/lock"):
        with suppress(StoreBusy, OSError), locked(str(left), timeout_ms=0):
            shutil.rmtree(left.parent)
    try:
        folder = tempfile.TemporaryDirectory(prefix=_WORKING, dir=parent)
    except OSError as error:
        raise StoreError(f"nothing can be written in {parent}: {error.strerror}", hint="check the folder") from error
    with folder, locked(f"{folder.name}/lock", timeout_ms=1_000):
        copy = Path(folder.name, "copy.db")
        _copied(source, copy)
        yield copy


@contextmanager
def _opened(path: Path) -> Iterator[Memory]:
    """The memory in a file, to be looked at or mended: no text is embedded anew for that."""
    with Memory(path, config=Config(reembed=False)) as memory:
        yield memory


def _count_users(memory: Memory) -> int:
    number, after = 0, None
    while page := memory.admin.users(limit=1000, after=after):
        number, after = number + len(page), page[-1]
    return number


def _ledger_of(path: Path) -> Mapping[str, Any]:
    """The ledger of the file that is there; a damaged one is not passed over in silence."""
    try:
        with _opened(path) as memory:
            ledger = memory.admin.erasures.export()
    except StoreCorrupt as error:
        raise StoreCorrupt(
            f"{path} is damaged, so its ledger of erasures cannot be read",
            hint="move it away, and name a ledger that was exported: --ledger FILE",
        ) from error
    if any(Path(f"{path}{end}").exists() for end in _LOGS):  # whoever closes a file last removes them
        raise Conflict(f"another process has {path} open", hint="stop the server and its workers first")
    return ledger


def _made_ready(source: Path, part: Path, ledgers: list[Mapping[str, Any]]) -> BackupReport:
    """Check the working copy, and erase in it what was erased since."""
    manifest = read_manifest(str(part))
    if manifest.differing:
        names = ", ".join(manifest.differing)
        raise StoreCorrupt(f"the backup is not what was written: {names} changed", hint=_CHANGED)
    drop_manifest(str(part))
    with _opened(part) as memory:
        report = memory.doctor()
        if not report.ok:
            words = ", ".join(sorted({finding.rule for finding in report.findings}))
            raise StoreCorrupt(f"the backup breaks rules: {words}", hint="take an older one")
        replayed = tuple(memory.admin.erasures.replay(ledger) for ledger in ledgers)
        users = _count_users(memory)
        rows = memory.admin.stats().rows
    return BackupReport(str(source), users, True, (), replayed, rows=rows, made_at=manifest.made_at)


def _put_in_place(part: Path, target: Path) -> str:
    """Rename the finished file; the name under which the one that was there is kept, or ``""``."""
    kept = ""
    try:
        if target.exists():
            kept = str(target.with_name(f"{target.name}.replaced-{datetime.now(UTC):%Y%m%dT%H%M%S}"))
            os.link(target, kept)
        os.replace(part, target)
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise StoreError(f"{target} could not be put in place: {error.strerror}", hint="check the folder") from error
    return kept
