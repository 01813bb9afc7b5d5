"""What a SQLite file and the disk under it must be for the promises to hold, and what its operator should know."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator

import apsw

from ..reports import Finding
from .health import Health
from .sqlitefile import MEMORY

FIXED = (3, 51, 3)  # the log of older ones can be damaged by two connections
LARGE_LOG_BYTES = 64 * 2**20
CHECKED = ("sqlite-version", "sqlite-settings", "sqlite-integrity", "file-rights", "disk-space", "large-log")


def health(db: apsw.Connection, path: str) -> Health:
    """Look at the library, at a connection to the file, and at the file."""
    version = apsw.sqlite_lib_version()
    journal, synchronous = db.pragma("journal_mode"), {1: "normal", 2: "full"}.get(int(db.pragma("synchronous")), "off")
    about = {"version": f"SQLite {version}", "journal": str(journal), "synchronous": synchronous}
    findings = []
    if tuple(map(int, version.split("."))) < FIXED:
        findings.append(Finding("sqlite-version", version, "pip install --upgrade apsw: this one can damage its log"))
    if not db.pragma("secure_delete") or synchronous == "off":
        findings.append(Finding("sqlite-settings", path, "open it again: a setting that we rely on was changed"))
    return Health(about, tuple(findings), () if path == MEMORY else tuple(_on_disk(path)), CHECKED)


def _on_disk(path: str) -> Iterator[Finding]:
    found = os.stat(path)
    if os.name == "posix" and found.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        yield Finding("file-rights", f"{path}: others may open it", f"chmod 600 {path}")
    free = shutil.disk_usage(os.path.dirname(path)).free
    if free < found.st_size:
        hint = "free some space: an erasure writes the file anew, and a backup is as large"
        yield Finding("disk-space", f"{free:,} bytes are free, the file has {found.st_size:,}", hint)
    log = os.path.getsize(f"{path}-wal") if os.path.exists(f"{path}-wal") else 0
    if log > LARGE_LOG_BYTES:
        hint = "end the process that holds an old snapshot; the log is cut back when it has gone"
        yield Finding("large-log", f"{log:,} bytes", hint)
