"""
Backups of a memory: looked at, and put back without what was erased since.

`Memory.backup` makes them.  A backup is a whole store of one moment; nothing here changes it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .config import Config
from .errors import BadInput, Conflict, StoreCorrupt, StoreError
from .memory import Memory
from .reports import BackupReport, ReplayReport

_LOGS = ("-wal", "-shm")
Ledgers = Sequence[Mapping[str, Any]]


def verify_backup(backup: str | os.PathLike[str], *, ledgers: Ledgers = ()) -> BackupReport:
    """
    Check a backup: whether it opens, keeps every rule, and what it still holds that was erased since.

    A copy is looked at, beside the system's temporary files, so the backup stays as it is.

    Args:
        backup: the file.
        ledgers: what `Ledger.export` of newer copies returned.

    Raises:
        StoreError: it cannot be read, or is no memory.
        BadInput: a ledger is none.
    """
    source = _there(backup)
    with tempfile.TemporaryDirectory(prefix="holdfast-") as folder:
        copy = Path(folder) / "copy.db"
        _copied(source, copy)
        with _opened(copy) as memory:
            report = memory.doctor()
            replayed = [memory.ledger.replay(ledger, dry_run=True) for ledger in ledgers]
            people = _count_people(memory)
    return BackupReport(str(source), people, report.ok, report.findings, tuple(replayed))


def restore_backup(
    backup: str | os.PathLike[str],
    to: str | os.PathLike[str],
    *,
    ledgers: Ledgers = (),
    replace: bool = False,
) -> BackupReport:
    """
    Put a backup in place, after erasing in it what was erased since it was made.

    The ledger of the file that is replaced is taken into account without being named.  That file is kept beside
    the new one, under the name in ``replaced``, until you remove it.  Nothing is in place before everything
    has succeeded.

    Args:
        backup: the file.
        to: where the memory shall be.
        ledgers: what `Ledger.export` of newer copies returned, for when the newest file is lost.
        replace: put it in the place of a file that is there.

    Raises:
        Conflict: there is a file at *to*, and not *replace*; or a process has it open.
        StoreCorrupt: the backup breaks a rule.
        StoreError: a file cannot be read or written.
        BadInput: a ledger is none.
    """
    source, target = _there(backup), Path(os.path.abspath(to))
    if source == target:
        raise BadInput("a backup cannot be put in its own place", hint="name another path")
    if target.exists() and not replace:
        raise Conflict(f"there is a file at {target} already", hint="--replace puts the backup in its place")
    known = [*ledgers]
    if target.exists():
        known.append(_ledger_of(target))
    part = target.with_name(f"{target.name}.restoring-{os.getpid()}")
    try:
        _copied(source, part)
        replayed, people = _made_ready(part, known)
        replaced = _put_in_place(part, target)
    finally:
        for name in (part, *(Path(f"{part}{end}") for end in _LOGS)):
            with suppress(FileNotFoundError):
                name.unlink()
    return BackupReport(str(source), people, True, (), tuple(replayed), str(target), replaced)


def _there(backup: str | os.PathLike[str]) -> Path:
    path = Path(os.path.abspath(backup))
    if not path.is_file():
        raise StoreError(f"there is no backup at {path}", hint="`holdfast store backup FILE` makes one")
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
def _opened(path: Path) -> Iterator[Memory]:
    """The memory in a file, to be looked at or mended: nobody is embedded anew for that."""
    with Memory(path, config=Config(embed_anew=False)) as memory:
        yield memory


def _count_people(memory: Memory) -> int:
    number, after = 0, None
    while page := memory.people(limit=1000, after=after):
        number, after = number + len(page), page[-1]
    return number


def _ledger_of(path: Path) -> Mapping[str, Any]:
    """The ledger of the file that is there; a damaged one is not passed over in silence."""
    try:
        with _opened(path) as memory:
            ledger = memory.ledger.export()
    except StoreCorrupt as error:
        raise StoreCorrupt(
            f"{path} is damaged, so its ledger of erasures cannot be read",
            hint="move it away, and name a ledger that was exported: --ledger FILE",
        ) from error
    if any(Path(f"{path}{end}").exists() for end in _LOGS):  # whoever closes a file last removes them
        raise Conflict(f"another process has {path} open", hint="stop the server and its workers first")
    return ledger


def _made_ready(part: Path, ledgers: Ledgers) -> tuple[list[ReplayReport], int]:
    with _opened(part) as memory:
        report = memory.doctor()
        if not report.ok:
            words = ", ".join(sorted({finding.rule for finding in report.findings}))
            raise StoreCorrupt(f"the backup breaks rules: {words}", hint="take an older one")
        replayed = [memory.ledger.replay(ledger) for ledger in ledgers]
        return replayed, _count_people(memory)


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
