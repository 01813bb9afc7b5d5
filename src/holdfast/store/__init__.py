"""
Databases that hold memory: one protocol, and what implements it.

`open_store` picks the store that a location names.
"""

from __future__ import annotations

import os
from importlib import import_module

from ..clock import Clock, utc_now
from ..config import Config
from ..errors import ConfigError
from .events import Kept
from .protocol import Store
from .sqlite import SqliteStore
from .sqlstore import SqlStore

__all__ = ["SqliteStore", "Store", "is_address", "open_store"]


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


def is_address(location: str | os.PathLike[str]) -> bool:
    """Whether *location* names a server's database, and not a file."""
    return isinstance(location, str) and "://" in location


def _postgres(location: str, config: Config) -> SqlStore:
    """The PostgreSQL store; its driver is an optional extra."""
    try:
        store: SqlStore = import_module(f"{__package__}.postgres").PostgresStore(location, config)
    except ImportError as error:
        hint = "pip install 'holdfast[postgres]'"
        raise ConfigError(f"PostgreSQL needs a package that is not installed: {error.name}", hint=hint) from error
    return store
