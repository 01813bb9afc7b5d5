"""The modules of stores whose driver is an optional extra."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from ..errors import ConfigError


def is_address(location: str | os.PathLike[str]) -> bool:
    """Whether *location* names a server's database, and not a file."""
    return isinstance(location, str) and "://" in location


def of_extra(module: str) -> Any:
    """
    A module of this package that needs PostgreSQL's driver.

    Raises:
        ConfigError: it is not installed; the hint says how to get it.
    """
    try:
        return import_module(f"{__package__}.{module}")
    except ImportError as error:
        hint = "pip install 'holdfast[postgres]'"
        raise ConfigError(f"PostgreSQL needs a package that is not installed: {error.name}", hint=hint) from error
