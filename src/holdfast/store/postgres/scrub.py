"""
Remove deleted rows from a server's disk, as far as the login may, and search its bytes for words.

A deleted row stays in its table until that is written anew, its words in the planner's statistics until those are made
anew, and all of it in the server's log until the log's files are gone.  Each step says what it could not do.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import psycopg
from psycopg import errors
from psycopg.sql import SQL, Identifier

from ...errors import StoreError
from ..port import ScrubReport
from ..queries import tables
from .driver import Connection, connect, translated
from .schema import migrate

Progress = Callable[[int, int], None]
CHUNK_BYTES = 16 * 2**20
RELOAD_TIMEOUT_S = 10.0
REWRITE_PAUSES_S = (0.2, 0.5, 1.0)

_MAY = """
SELECT bool_and(pg_has_role(c.relowner, 'USAGE')), bool_or(u.rolsuper)
  FROM pg_class c, pg_roles u
 WHERE c.oid = ANY (%s::regclass[]) AND u.rolname = current_user
"""
_FILES = """
WITH RECURSIVE found (path, size, folder) AS (
    SELECT name, s.size, s.isdir FROM pg_ls_dir('.', true, false) name, pg_stat_file(name, true) s
    UNION ALL
    SELECT found.path || '/' || name, s.size, s.isdir
      FROM found, pg_ls_dir(found.path, true, false) name, pg_stat_file(found.path || '/' || name, true) s
     WHERE found.folder)
SELECT path, size FROM found WHERE NOT folder AND size > 0 ORDER BY path
"""
_STANDS = """
SELECT array_agg(position(word IN part) > 0 ORDER BY number)
  FROM (SELECT pg_read_binary_file(%s, %s, %s, true) OFFSET 0) AS read (part),
       unnest(%s::bytea[]) WITH ORDINALITY AS w (word, number)
"""
_FORGET = """
SELECT pg_clear_attribute_stats(n.nspname, c.relname, a.attname, false)
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
 WHERE c.oid = %s::regclass AND a.attnum > 0 AND NOT a.attisdropped
"""
_STATISTICS = (
    "the planner's statistics may hold words: run it as a superuser, or as the database's owner with PostgreSQL 18"
)
_LOG = "the server's log holds it until its files are written over: run it as a superuser"
_READER = "somebody reads an older state, so {} deleted rows had to stay: end long transactions, then run it again"
_KEPT = "{} files of the log are kept for a replica, a slot or the archive: they hold it until they go"
_UNREAD = "the files were not searched: only a superuser may read them"


def scrub(location: str, words: Sequence[str] = (), progress: Progress | None = None) -> ScrubReport:
    """
    See `holdfast.store.scrub`.

    Raises:
        StoreError: the role owns no tables of the memory.
    """
    connection = connect(location)
    left: list[str] = []
    try:
        migrate(connection)
        names = [table.name for table in tables()]
        owner, powerful = connection.execute(_MAY.encode(), (names,)).fetchall()[0]
        if not owner:
            hint = "use the address that `holdfast store init` was run with"
            raise StoreError("only the role that owns the tables may rewrite them", hint=hint)
        _write_anew(connection, names, left, progress or (lambda done, total: None))
        _drop_log(connection, left, powerful=powerful)
        found: dict[str, list[str]] = {}
        if words and powerful:
            sought = list(dict.fromkeys(words))
            found = _search(connection, sought, progress or (lambda done, total: None))
            found = {word: places for word, places in found.items() if not _said(connection, word)}
        elif words:
            left.append(_UNREAD)
    except psycopg.Error as error:
        raise translated(error) from error
    finally:
        connection.close()
    places = tuple(sorted({place for places in found.values() for place in places}))
    searched = len(set(words)) if powerful else 0
    return ScrubReport(searched=searched, found=len(found), files=places, left=tuple(left))


def _write_anew(connection: Connection, names: list[str], left: list[str], told: Progress) -> None:
    """Tables without their deleted rows, and without the words that statistics took from them."""
    stayed, total = 0, len(names) + 1
    pauses = iter(REWRITE_PAUSES_S)
    for number, name in enumerate(names):
        told(number, total)
        if not _forgotten(connection, name) and _STATISTICS not in left:
            left.append(_STATISTICS)
        stayed += _rewrite(connection, name, pauses)
    try:
        stayed += _rewrite(connection, "pg_statistic", pauses)
    except errors.InsufficientPrivilege:
        if _STATISTICS not in left:
            left.append(_STATISTICS)
    if stayed:
        left.append(_READER.format(stayed))
    told(total, total)


def _rewrite(connection: Connection, name: str, pauses: Iterator[float]) -> int:
    """
    Rewrite a table without its deleted rows; return how many had to stay because a reader may still need them.

    The server's own maintenance reads for moments only, so after a pause, while some are left, it is tried again.
    """
    notices: list[str] = []

    def keep(notice: psycopg.errors.Diagnostic) -> None:
        notices.append(notice.message_detail or "")

    analyze = "" if name == "pg_statistic" else "ANALYZE, "
    connection.add_notice_handler(keep)
    try:
        while True:
            notices.clear()
            connection.execute(SQL("VACUUM (FULL, " + analyze + "VERBOSE) {}").format(Identifier(name)))
            stayed = sum(int(dead[0]) for detail in notices if (dead := re.match(r"\d+", detail)))
            pause = next(pauses, None) if stayed else None
            if pause is None:
                return stayed
            time.sleep(pause)
    finally:
        connection.remove_notice_handler(keep)


def _forgotten(connection: Connection, name: str) -> bool:
    """Whether the statistics of a table could be deleted: ANALYZE leaves those of an empty one as they were."""
    try:
        if connection.info.server_version >= 180_000:
            connection.execute(_FORGET.encode(), (name,))
        else:
            connection.execute(b"DELETE FROM pg_catalog.pg_statistic WHERE starelid = %s::regclass", (name,))
    except errors.InsufficientPrivilege:
        return False
    return True


def _drop_log(connection: Connection, left: list[str], *, powerful: bool) -> None:
    """Go on to new files of the log, past those that were put aside to be used again, and remove the old ones."""
    if not powerful:
        left.append(_LOG)
        return
    with _removing(connection):
        newest = ""
        for _ in range(1 + int(connection.execute(b"SELECT count(*) FROM pg_ls_waldir()").fetchall()[0][0])):
            connection.execute(b"SELECT pg_logical_emit_message(false, 'holdfast', 'scrub')")
            (newest,) = connection.execute(b"SELECT pg_walfile_name(pg_switch_wal())").fetchall()[0]
        connection.execute(b"SELECT pg_logical_emit_message(false, 'holdfast', 'scrub')")
        connection.execute(b"CHECKPOINT")
    asked = b"SELECT count(*) FROM pg_ls_waldir() WHERE name ~ '^[0-9A-F]{24}$' AND name <= %s"
    kept = connection.execute(asked, (newest,)).fetchall()[0][0]
    if kept:
        left.append(_KEPT.format(kept))


@contextmanager
def _removing(connection: Connection) -> Iterator[None]:
    """Have the server remove old log files meanwhile instead of recycling them with their content."""
    (was,) = connection.execute(b"SELECT current_setting('wal_recycle')").fetchall()[0]
    if was == "off":
        yield
        return
    connection.execute(b"ALTER SYSTEM SET wal_recycle = off")
    connection.execute(b"SELECT pg_reload_conf()")
    _await_reload(connection, "off")
    try:
        yield
    finally:
        connection.execute(b"ALTER SYSTEM RESET wal_recycle")
        connection.execute(b"SELECT pg_reload_conf()")


def _await_reload(connection: Connection, value: str) -> None:
    """Wait until the server's processes know a new setting: they learn it one after another, after the call returned."""
    deadline = time.monotonic() + RELOAD_TIMEOUT_S
    while time.monotonic() < deadline:
        if connection.execute(b"SELECT current_setting('wal_recycle')").fetchall()[0][0] == value:
            time.sleep(0.1)  # this process knows it; the one that removes files was told in the same moment
            return
        time.sleep(0.02)


def _search(connection: Connection, words: list[str], told: Progress) -> dict[str, list[str]]:
    """``{word: files}``: every file of the server's data folder is read, on the server."""
    sought = [word.encode() for word in words]
    overlap = max(map(len, sought)) - 1
    files = connection.execute(_FILES.encode()).fetchall()
    total, done = sum(size for _, size in files), 0
    found: dict[str, list[str]] = {}
    for path, size in files:
        for start in range(0, size, CHUNK_BYTES):
            (stands,) = connection.execute(_STANDS.encode(), (path, start, CHUNK_BYTES + overlap, sought)).fetchall()[0]
            for word, here in zip(words, stands, strict=True):
                if here and path not in found.setdefault(word, []):
                    found[word].append(path)
            told(done := done + min(CHUNK_BYTES, size - start), total)
    return {word: places for word, places in found.items() if places}


def _said(connection: Connection, word: str) -> bool:
    """Whether some row says *word*: then its bytes are no residue."""
    with connection.transaction():
        connection.execute(b"SET LOCAL holdfast.across = 'on'")
        for table in tables():
            asked = SQL("SELECT 1 FROM {} t WHERE strpos(t::text, %s) > 0 LIMIT 1").format(Identifier(table.name))
            if connection.execute(asked, (word,)).fetchall():
                return True
    return False
