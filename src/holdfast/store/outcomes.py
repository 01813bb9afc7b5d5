"""Reports of the work on a whole database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..types import ErasureLevel


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
    """What was copied from one store to another: rows and, to compare, one SHA-256 a table."""

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
