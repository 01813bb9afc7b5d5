"""
Databases that hold memory: one protocol, and what implements it.

`open_store` picks the store that a location names.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence

from ..clock import Clock, utc_now
from ..config import Config
from ..errors import ConfigError, StoreError
from .copying import copy
from .events import Kept
from .extras import is_address, of_extra
from .outcomes import Distribution, ScrubReport, StoreInit
from .protocol import Store
from .sqlite import SqliteStore
from .sqlstore import SqlStore

__all__ = ["SqliteStore", "Store", "copy", "distribute", "initialize", "is_address", "open_store", "scrub"]


def open_store(location: str | os.PathLike[str], config: Config, clock: Clock = utc_now) -> Store:
    """
    The store at *location*: a path, ``":memory:"``, or a ``postgresql://`` address; *clock* dates what happens there.

    Raises:
        ConfigError: a database address that this version cannot open.
    """
    if is_address(location):
        location = str(location)
        kind = location.partition("://")[0]
        if kind not in ("postgresql", "postgres"):
            raise ConfigError(f"there is no store for {kind}:// addresses", hint="use a path, or postgresql://…")
        store: SqlStore = _postgres(location, config)
    else:
        store = SqliteStore(location, config)
    store.clock, store.kept = clock, Kept(config.event_rows, config.event_days)
    return store


def initialize(location: str, role: str = "holdfast_app", password: str | None = None) -> StoreInit:
    """
    Make a PostgreSQL database ready: the schema up to date, and a role with the least that applications need.

    Safe to run again, as after an upgrade.

    Args:
        location: ``postgresql://…`` of a role that may create tables, and roles unless *role* is there.
        role: what applications log in as; made when it is not there.
        password: of a role that is made; a random one when not given.

    Raises:
        StoreError: the login may not do it, or *role* is one that row level security does not hold.
        ConfigError: *location* is no address, or the driver is not installed.
    """
    if not is_address(location):
        raise ConfigError("only a server's database is made ready; a file needs nothing", hint="postgresql://…")
    ready: StoreInit = of_extra("postgresroles").initialize(location, role, password)
    return ready


def scrub(location: str, words: Sequence[str] = (), progress: Callable[[int, int], None] | None = None) -> ScrubReport:
    """
    Take what was deleted off the disk: write every table anew, empty the log, and look whether *words* still stand.

    A file is done by the process itself, whatever its size (`Config.scrub_mb` is for erasures).  On PostgreSQL each table
    is locked while it is written anew, and only a superuser may remove the log and search the files.

    Args:
        location: a path, or ``postgresql://…`` of the role that owns the tables.
        words: what must stand nowhere, as it was written; searched for in the bytes of the files.
        progress: called with what is done and what there is to do, in steps and then in bytes.

    Raises:
        StoreError: there is no memory, or the role does not own its tables.
    """
    if is_address(location):
        report: ScrubReport = of_extra("postgresscrub").scrub(location, words, progress)
        return report
    if not os.path.exists(location):
        raise StoreError(f"there is no memory at {location}", hint="check the path")
    store = SqliteStore(location, Config(scrub_mb=sys.maxsize))
    try:
        sought = list(dict.fromkeys(words))
        found = store.scrub([word.encode() for word in sought])
    finally:
        store.close()
    files = (os.path.abspath(location),) if found.found else ()
    return ScrubReport(found.searched, found.found, files, (found.why,) if found.why and not found.found else ())


def distribute(
    location: str, *, shards: int = 32, dry_run: bool = False, progress: Callable[[str, int, int], None] | None = None
) -> Distribution:
    """
    Spread a PostgreSQL database over the nodes of its Citus cluster, each user's rows together on one of them.

    Nothing is moved while anything stands in the way; the report says what. Each table moves in one transaction, with as
    many rows after as before; whoever was interrupted calls again, and what has moved stays.

    Args:
        location: ``postgresql://…`` of the role that owns the tables, on the coordinator.
        shards: into how many parts the tables are cut; cannot be changed by calling again.
        dry_run: only say what would be done.
        progress: called with a table, the rows that have moved, and the rows to move.

    Raises:
        StoreError: the server is no cluster, or the login may not do it.
        BadInput: *shards* is not from 1 to 4096.
        ConfigError: *location* is no address, or the driver is not installed.
    """
    if not is_address(location):
        raise ConfigError("only a server's database can be spread over a cluster", hint="postgresql://…")
    report: Distribution = of_extra("cluster").distribute(location, shards=shards, dry_run=dry_run, progress=progress)
    return report


def _postgres(location: str, config: Config) -> SqlStore:
    store: SqlStore = of_extra("postgres").PostgresStore(location, config)
    return store
