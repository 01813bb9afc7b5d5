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
    The store at *location*: a path, or ``":memory:"``.

    Raises:
        ConfigError: a database address that this version cannot open.
    """
    if isinstance(location, str) and "://" in location:
        kind = location.partition("://")[0]
        hint = "use a path, or :memory:; PostgreSQL comes in a later version"
        raise ConfigError(f"this version cannot open {kind}:// addresses", hint=hint)
    return SqliteStore(location, config)
