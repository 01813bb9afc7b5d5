"""
The port that a database fills: a `Driver` for one transaction, and a `Backend` for the database.

Everything else in this package is written once, in terms of the named queries in ``sql/``.  A database that speaks
SQL close to SQLite's or PostgreSQL's needs these two classes and a file for each query that it spells in its own way
(see `holdfast.store.queries`).  Register the backend under the scheme of its addresses, with
`holdfast.store.register` or as an entry point of the group ``holdfast.backends``; then run
`holdfast.testing.store_contract.StoreContract` on it.  A package declares the entry point in its ``pyproject.toml``:

    [project.entry-points."holdfast.backends"]
    mysql = "my_package:MySqlBackend"

A module is imported when its scheme is first used.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field
from importlib.metadata import EntryPoint, entry_points
from itertools import count
from typing import Any, ClassVar, Protocol, Self, TypeVar

from ..config import Config
from ..errors import ConfigError
from ..reports import Finding
from ..scope import Scope
from ..text import dataclass
from ..types import ErasureLevel
from .values import Scrubbed

T = TypeVar("T")
Row = tuple[Any, ...]


class Driver(Protocol):
    """One snapshot or one transaction of a database, as the views use it."""

    def run(self, name: str, args: Mapping[str, Any]) -> list[Row]:
        """Run the query *name* and return its rows."""

    def many(self, name: str, args: Iterable[Sequence[Any]]) -> list[Row]:
        """
        Run the query *name* once for each sequence of parameters and return all rows.

        A sequence gives the parameters in the order in which the SQL first names them.
        """


@dataclass(frozen=True, slots=True)
class DatabaseHealth:
    """
    The state of a database, as `Backend.health` finds it.

    ``about`` names versions and settings.  ``findings`` break a promise, ``notices`` do not; ``checked`` are the rules
    that were looked at for both.
    """

    about: Mapping[str, str]
    findings: tuple[Finding, ...] = ()
    notices: tuple[Finding, ...] = ()
    checked: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """One table: its columns in their order, and those of its key."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]

    def select(self) -> str:
        """Return the SQL for every row in the order of the keys, which is the same in every database."""
        return f"SELECT {', '.join(self.columns)} FROM {self.name} ORDER BY {', '.join(self.key)}"

    def insert(self, mark: str) -> str:
        """Return the SQL that inserts one row, with *mark* as the placeholder of a value."""
        return f"INSERT INTO {self.name} ({', '.join(self.columns)}) VALUES ({', '.join([mark] * len(self.columns))})"


class CopySource(Protocol):
    """One snapshot of a whole database, to copy from."""

    def count(self, table: Table) -> int:
        """Count the rows of a table."""

    def rows(self, table: Table) -> Iterator[Row]:
        """Return all rows of a table, by key."""


class CopyTarget(CopySource, Protocol):
    """One transaction on an empty database, to copy into."""

    def add(self, table: Table, rows: Sequence[Row]) -> None:
        """Insert rows."""


Progress = Callable[[int, int], None]
"""Is called with what is done and what there is to do."""


class Maintenance:
    """
    The work of an operator on the whole database at *location*, which need not be open.

    A backend overrides what it offers; the rest is refused with a reason.
    """

    def __init__(self, location: str) -> None:
        self.location = location

    def source(self) -> AbstractContextManager[CopySource]:
        """Open one snapshot to copy from."""
        raise ConfigError("this kind of database cannot be copied from", hint="export the users and import them")

    def target(self, replaces: Mapping[str, str] | None = None) -> AbstractContextManager[CopyTarget]:
        """
        Open one transaction to copy into; it is committed when nothing was raised.

        *replaces* has the SHA-256 of tables as they must be to be replaced; ``None``: the database must be empty.
        """
        raise ConfigError("this kind of database cannot be copied into", hint="export the users and import them")

    def initialize(self, role: str, password: str | None) -> StoreInit:
        """Create the schema, and a role with the rights that an application needs."""
        raise ConfigError("only a server's database is initialized; a file needs nothing", hint="postgresql://…")

    def owner_policies(self) -> str:
        """Return the statements by which users' own database roles read the rows of their user alone."""
        raise ConfigError("only a server's database has roles of users", hint="postgresql://…")

    def apply_owner_policies(self) -> None:
        """Run them."""
        raise ConfigError("only a server's database has roles of users", hint="postgresql://…")

    def grant_owner(self, role: str, user: str, org: str, *, revoke: bool) -> None:
        """Give a user's own role that user's rows to read, or take them away again."""
        raise ConfigError("only a server's database has roles of users", hint="postgresql://…")

    def scrub(self, words: Sequence[str], progress: Progress | None) -> ScrubReport:
        """Remove deleted rows from the disk and search its bytes for *words*."""
        raise ConfigError("this kind of database cannot be scrubbed", hint="ask its operator")

    def distribute(
        self, shards: int, *, dry_run: bool, progress: Callable[[str, int, int], None] | None
    ) -> Distribution:
        """Distribute the tables over the nodes of a cluster."""
        raise ConfigError("only a server's database can be spread over a cluster", hint="postgresql://…")


class Backend(ABC):
    """
    One open database.  Safe to call from any thread; every call raises `StoreClosed` after `close`.

    ``spread``: the rows of two users may be on two nodes, so one transaction must not change both.
    """

    spread = False
    maintenance: ClassVar[type[Maintenance]] = Maintenance

    @classmethod
    @abstractmethod
    def open(cls, location: str, config: Config) -> Self:
        """Connect to *location*, and create or upgrade its schema."""

    @abstractmethod
    def read(self, work: Callable[[Driver], T], scope: Scope | None = None) -> T:
        """Run *work* over one snapshot, of *scope*'s user or of all."""

    @abstractmethod
    def write(self, work: Callable[[Driver], T], scope: Scope | None = None) -> T:
        """
        Run *work* in one transaction, and return when it is on disk.

        Writes of one user run one after the other: what *work* reads stays true until it commits.  It may run on another
        thread, together with others in one commit, and again from the start after a conflict.  If it raises, what it
        wrote is undone and the error reaches the caller.
        """

    @abstractmethod
    def size_bytes(self) -> int:
        """Return the size on disk."""

    @abstractmethod
    def backup(self, path: str) -> None:
        """Copy the whole database into a new file at *path* while it is in use."""

    @abstractmethod
    def close(self) -> None:
        """Finish what was accepted and disconnect.  Harmless when repeated."""

    _changes = count(1)

    def changes(self) -> int:
        """
        Return another number whenever any process has committed since the last call.

        It may change without cause; the caller then looks in vain.  By default it always does.
        """
        return next(self._changes)

    def health(self) -> DatabaseHealth:
        """Examine the database itself, not the rows."""
        return DatabaseHealth({"version": type(self).__name__})

    def damage(self) -> list[Finding]:
        """Return the damage that the database finds in its own files."""
        return []

    def scrub(self, traces: Sequence[bytes]) -> Scrubbed:
        """Overwrite what deleted rows left on the disk, and search the bytes for *traces*."""
        return Scrubbed(why=f"{type(self).__name__} cannot search the bytes on its disk")


@dataclass(frozen=True, slots=True)
class StoreInit:
    """
    A PostgreSQL database that is ready: applications log in as ``role`` at ``address``.

    ``made``: the role was not there before; only then does the address hold its password.
    """

    role: str
    made: bool
    address: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class CopyReport:
    """A copy from one store to another: the rows of each table and, to compare, its SHA-256."""

    rows: Mapping[str, int]
    digests: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ScrubReport:
    """
    The result of `holdfast.store.scrub`: ``left`` says in a sentence each what it could not do, and who can.

    ``searched`` words were looked for in the bytes; ``found`` of them stand in ``files`` although no row says them.
    """

    searched: int = 0
    found: int = 0
    files: tuple[str, ...] = ()
    left: tuple[str, ...] = ()

    @property
    def level(self) -> ErasureLevel:
        """``E2`` when words were looked for, none was found, and nothing is left to do."""
        return "E2" if self.searched and not self.found and not self.left else "E1"


@dataclass(frozen=True, slots=True)
class Obstacle:
    """An obstacle to distributing a database over a cluster, and the fix."""

    what: str
    fix: str


@dataclass(frozen=True, slots=True)
class Placement:
    """
    One table of a database that is spread over a cluster.

    ``by`` is the column by which it is cut, ``""`` when it stands whole on every node; ``there``: it does already;
    ``sql`` is the statement that does it.
    """

    table: str
    by: str
    rows: int
    there: bool
    sql: str


@dataclass(frozen=True, slots=True)
class Distribution:
    """
    A database on a Citus cluster, table by table in the order in which they move.

    ``citus`` is the version, ``nodes`` how many hold rows; ``done``: every table is where it belongs.  With
    ``obstacles`` nothing was moved.
    """

    citus: str
    nodes: int
    done: bool
    tables: tuple[Placement, ...]
    obstacles: tuple[Obstacle, ...] = ()


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
