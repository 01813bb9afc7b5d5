"""
Databases that hold memory: one protocol, and what implements it.

`open_store` picks the store that a location names.
"""

from __future__ import annotations

import os

from ..config import Config
from ..errors import ConfigError
from .protocol import Store
from .sqlite import SqliteStore

__all__ = ["SqliteStore", "Store", "open_store"]


def open_store(location: str | os.PathLike[str], config: Config) -> Store:
    """
    The store at *location*: a path, ``":memory:"``, or a ``postgresql://`` address.

    Raises:
        ConfigError: a database address that this version cannot open.
    """
    if isinstance(location, str) and "://" in location:
        kind = location.partition("://")[0]
        if kind not in ("postgresql", "postgres"):
            raise ConfigError(f"there is no store for {kind}:// addresses", hint="use a path, or postgresql://…")
        return _postgres(location, config)
    return SqliteStore(location, config)


def _postgres(location: str, config: Config) -> Store:
    """The PostgreSQL store; its driver is an optional extra."""
    try:
        from .postgres import PostgresStore  # noqa: PLC0415  an extra
    except ImportError as error:
        raise ConfigError("PostgreSQL needs its driver", hint="pip install 'holdfast[postgres]'") from error
    return PostgresStore(location, config)
