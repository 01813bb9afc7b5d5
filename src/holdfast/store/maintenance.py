"""
Work on a whole database: copy it to another, initialize, scrub or distribute it.

A copy moves rows table by table in the order of their keys, out of one snapshot and into one transaction, and reads
them back before that commits: the same number of rows with the same SHA-256, or nothing is there.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..errors import ConfigError, StoreCorrupt
from .port import (
    CopyReport,
    CopySource,
    CopyTarget,
    Distribution,
    Maintenance,
    Progress,
    Row,
    ScrubReport,
    StoreInit,
    Table,
    backend_class,
    is_address,
)
from .queries import tables

BATCH_ROWS = 1_000

_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=lambda value: {"bytes": bytes(value).hex()})


def maintenance(location: str | os.PathLike[str]) -> Maintenance:
    """Return the operator's work on the database at *location*."""
    return backend_class(location).maintenance(location if isinstance(location, str) else os.fspath(location))


def initialize(location: str, role: str = "holdfast_app", password: str | None = None) -> StoreInit:
    """
    Prepare a PostgreSQL database: the schema up to date, and a role with the least rights that applications need.

    Safe to run again, as after an upgrade.

    Args:
        location: ``postgresql://…`` of a role that may create tables, and roles unless *role* is there.
        role: what applications log in as; created when it is not there.
        password: of a role that is created; a random one when not given.

    Raises:
        StoreError: the login may not do it, or *role* is one that row level security does not hold.
        ConfigError: *location* is no address, or the driver is not installed.
    """
    return maintenance(location).initialize(role, password)


def owner_policies(location: str, *, apply: bool = False) -> str:
    """
    Return the SQL by which users' own database roles read the rows of their user and no others, and apply it.

    Safe to run again, as after an upgrade.

    Args:
        location: ``postgresql://…`` of the role that owns the tables and may create roles.
        apply: run it as well.

    Raises:
        StoreError: the login may not do it, or the tables are spread over a cluster.
        ConfigError: *location* is no address, or the driver is not installed.
    """
    work = maintenance(location)
    sql = work.owner_policies()
    if apply:
        work.apply_owner_policies()
    return sql


def grant_owner(location: str, role: str, user: str, *, org: str = "default", revoke: bool = False) -> None:
    """
    Give a user's own database role the rows of that user to read; `owner_policies` must have been applied.

    Args:
        location: ``postgresql://…`` of the role that owns the tables.
        role: the user's own role, which exists.
        user: the user.
        org: the tenant.
        revoke: take them away again.

    Raises:
        StoreError: there is no such role, or row level security does not hold it.
        ConfigError: *location* is no address, or the driver is not installed.
    """
    maintenance(location).grant_owner(role, user, org, revoke=revoke)


def scrub(location: str, words: Sequence[str] = (), progress: Progress | None = None) -> ScrubReport:
    """
    Remove deleted rows from the disk: rewrite every table, empty the log, and search the bytes for *words*.

    A file is rewritten by the process itself, whatever its size (`Config.scrub_mb` is for erasures).  On PostgreSQL
    each table is locked while it is rewritten, and only a superuser may remove the log and search the files.

    Args:
        location: a path, or ``postgresql://…`` of the role that owns the tables.
        words: the words that must be gone, as they were written; searched for in the bytes of the files.
        progress: called with what is done and what there is to do, in steps and then in bytes.

    Raises:
        StoreError: there is no memory, or the role does not own its tables.
    """
    return maintenance(location).scrub(words, progress)


def distribute(
    location: str, *, shards: int = 32, dry_run: bool = False, progress: Callable[[str, int, int], None] | None = None
) -> Distribution:
    """
    Distribute a PostgreSQL database over the nodes of its Citus cluster, all rows of one user on the same node.

    Nothing is moved while the report names an obstacle.  Each table moves in one transaction, with as many rows after
    as before; after an interruption call again: what has moved stays.

    Args:
        location: ``postgresql://…`` of the role that owns the tables, on the coordinator.
        shards: into how many parts the tables are cut; cannot be changed by calling again.
        dry_run: only report what would be done.
        progress: called with a table, the rows that have moved, and the rows to move.

    Raises:
        StoreError: the server is no cluster, or the login may not do it.
        BadInput: *shards* is not from 1 to 4096.
        ConfigError: *location* is no address, or the driver is not installed.
    """
    return maintenance(location).distribute(shards, dry_run=dry_run, progress=progress)


def copy(
    source: str | os.PathLike[str], target: str | os.PathLike[str], progress: Progress | None = None
) -> CopyReport:
    """
    Copy the memory at *source* to *target*, which must be empty; either is a path or ``postgresql://…``.

    Rows written to *source* meanwhile are not copied.  *progress* is called with rows done and rows to do,
    each counted twice: once when it is written, once when it is read back.

    Raises:
        Conflict: there is a memory at *target* already.
        StoreError: one of the two cannot be opened, or what arrived is not what was sent; *target* is as it was.
        ConfigError: they are the same, or not addresses of memories.
    """
    places = [os.fspath(place) if is_address(place) else os.path.abspath(place) for place in (source, target)]
    if ":memory:" in (os.fspath(source), os.fspath(target)) or places[0] == places[1]:
        raise ConfigError("copy from one memory on disk to another", hint="name two paths or addresses")
    with maintenance(places[0]).source() as old, maintenance(places[1]).target() as new:
        return _copied(old, new, progress)


def replace_all(source: str, address: str, was: Mapping[str, str] | None, progress: Progress | None) -> CopyReport:
    """
    Replace the database at *address* by the memory in the file *source*, in one transaction.

    Args:
        source: the path of a file.
        address: ``postgresql://…``
        was: the digests (`digests_of`) of the memory that is there and is replaced; ``None``: there must be none.
        progress: as of `copy`.

    Raises:
        Conflict: there is a memory, or it is in use, or it is no longer as it *was*; nothing has changed.
        StoreError: the role may not do it, or what arrived is not what was sent; nothing has changed.
    """
    with maintenance(source).source() as old, maintenance(address).target(was) as new:
        return _copied(old, new, progress)


def digests_of(location: str, names: Collection[str]) -> dict[str, str]:
    """Return the SHA-256 of some tables of the memory at *location*."""
    by_name = {table.name: table for table in tables()}
    with maintenance(location).source() as side:
        return {name: digest_of(side, by_name[name]) for name in names}


def digest_of(side: CopySource, table: Table) -> str:
    """Return the SHA-256 of one table."""
    digest = hashlib.sha256()
    for _ in _digested(side.rows(table), digest):
        pass
    return digest.hexdigest()


def _copied(old: CopySource, new: CopyTarget, progress: Progress | None) -> CopyReport:
    """Copy every row, and compare the two table by table."""
    report = progress or (lambda done, total: None)
    total, done = 2 * sum(old.count(table) for table in tables()), 0
    rows, digests = {}, {}
    for table in tables():
        digest = hashlib.sha256()
        rows[table.name] = 0
        for batch in _batches(_digested(old.rows(table), digest)):
            new.add(table, batch)
            rows[table.name] += len(batch)
            report(done := done + len(batch), total)
        digests[table.name] = digest.hexdigest()
    for table in tables():
        digest = hashlib.sha256()
        for batch in _batches(_digested(new.rows(table), digest)):
            report(done := done + len(batch), total)
        if digest.hexdigest() != digests[table.name]:
            raise StoreCorrupt(f"the rows of {table.name} did not arrive as they were sent", hint="copy again")
    return CopyReport(rows, digests)


def _batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    batch: list[Row] = []
    for row in rows:
        batch.append(row)
        if len(batch) == BATCH_ROWS:
            yield batch
            batch = []
    if batch:
        yield batch


def _digested(rows: Iterable[Row], digest: Any) -> Iterator[Row]:
    for row in rows:
        digest.update(line_of(row))
        yield row


def line_of(row: Row) -> bytes:
    """Return a row as bytes: the same whichever database it comes from, and different for any other row."""
    return (_JSON.encode(row) + "\n").encode()
