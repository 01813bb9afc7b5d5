"""
Backends by the scheme of their addresses.

Ours and those of others are found in the same way: an entry point of the group ``holdfast.backends`` names a class for
a scheme.  A package declares it so in its ``pyproject.toml``:

    [project.entry-points."holdfast.backends"]
    mysql = "my_package:MySqlBackend"

A module is imported when its scheme is first used.
"""

from __future__ import annotations

import os
from importlib.metadata import EntryPoint, entry_points

from ..errors import ConfigError
from .port import Backend

GROUP = "holdfast.backends"
FILE = ""
"""The scheme of a path."""

_OURS = {
    FILE: EntryPoint("", f"{__package__}.sqlite.backend:SqliteBackend", GROUP),
    "postgresql": EntryPoint("postgresql", f"{__package__}.postgres.backend:PostgresBackend", GROUP),
    "postgres": EntryPoint("postgres", f"{__package__}.postgres.backend:PostgresBackend", GROUP),
}
_loaded: dict[str, type[Backend]] = {}
_EXTRAS = {"postgresql": "postgres", "postgres": "postgres"}


def register(scheme: str, backend: type[Backend]) -> None:
    """Open addresses that begin with ``scheme://`` with *backend* in this process, in place of any other."""
    _loaded[scheme] = backend


def is_address(location: str | os.PathLike[str]) -> bool:
    """Whether *location* is an address with a scheme, and not a path."""
    return isinstance(location, str) and "://" in location


def backend_class(location: str | os.PathLike[str]) -> type[Backend]:
    """
    Return the backend for a path or an address.

    Raises:
        ConfigError: no backend is known for its scheme, or a package that it needs is not installed.
    """
    scheme = str(location).partition("://")[0] if is_address(location) else FILE
    if scheme in _loaded:
        return _loaded[scheme]
    entry = _OURS.get(scheme) or next(iter(entry_points(group=GROUP, name=scheme)), None)
    if entry is None:
        known = sorted({*_OURS, *_loaded, *entry_points(group=GROUP).names} - {FILE})
        schemes = ", ".join(f"{name}://" for name in known)
        hint = f"use a path, or one of {schemes}; a package adds one as an entry point of {GROUP}"
        raise ConfigError(f"there is no store for {scheme}:// addresses", hint=hint)
    try:
        backend: type[Backend] = entry.load()
    except ImportError as error:
        extra = _EXTRAS.get(scheme)
        hint = f"pip install 'holdfast[{extra}]'" if extra else f"install what the backend for {scheme}:// needs"
        raise ConfigError(f"{scheme}:// needs a package that is not installed: {error.name}", hint=hint) from error
    return _loaded.setdefault(scheme, backend)
