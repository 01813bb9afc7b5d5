"""A backend is chosen by the scheme of an address, and others can add theirs: one on Python's own sqlite3."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any, Self, TypeVar

import pytest

from holdfast import Memory
from holdfast.config import Config
from holdfast.errors import BadInput, ConfigError, Conflict, HoldfastError, StoreClosed, StoreError
from holdfast.scope import Scope
from holdfast.store import Backend, Driver, Store, open_store, port, queries, register
from holdfast.testing.fakes import HashEmbedder
from holdfast.testing.store_contract import StoreContract

T = TypeVar("T")


class PlainDriver:
    """Named queries on a connection of the standard library."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db, self._sql = db, queries.load("sqlite")
        self.failure: HoldfastError | None = None

    def run(self, name: str, args: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        if self.failure is not None:
            raise self.failure
        try:
            return self._db.execute(self._sql[name], args).fetchall()
        except UnicodeEncodeError as error:
            raise BadInput("a text holds a lone surrogate") from error
        except sqlite3.IntegrityError as error:
            raise Conflict("another row is there") from error
        except sqlite3.Error as error:
            self.failure = StoreError(str(error))
            raise self.failure from error

    def many(self, name: str, args: Iterable[Sequence[Any]]) -> list[tuple[Any, ...]]:
        names = list(dict.fromkeys(queries.parameters(self._sql[name])))
        return [row for one in args for row in self.run(name, dict(zip(names, one, strict=True)))]


class PlainBackend(Backend):
    """One connection, and callers take turns."""

    def __init__(self, path: str) -> None:
        self._path, self._turn, self._inside = path, threading.Lock(), threading.local()
        self._db: sqlite3.Connection | None = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        if not self._db.execute("SELECT 1 FROM sqlite_schema").fetchall():
            for _, sql in queries.migrations("sqlite"):
                self._db.executescript(sql)

    @classmethod
    def open(cls, location: str, config: Config) -> Self:
        return cls(location.partition("://")[2])

    def read(self, work: Callable[[Driver], T], scope: Scope | None = None) -> T:
        return self._transaction("ROLLBACK", work)

    def write(self, work: Callable[[Driver], T], scope: Scope | None = None) -> T:
        return self._transaction("COMMIT", work)

    def _transaction(self, end: str, work: Callable[[Driver], T]) -> T:
        if getattr(self._inside, "a_call", False):
            raise StoreError("a store was called from within read() or write()")
        with self._turn:
            if self._db is None:
                raise StoreClosed("this store was closed before the call")
            driver, self._inside.a_call = PlainDriver(self._db), True
            self._db.execute("BEGIN")
            try:
                answer = work(driver)
                if driver.failure is not None:
                    raise driver.failure
                self._db.execute(end)
                return answer
            finally:
                self._inside.a_call = False
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")

    def size_bytes(self) -> int:
        return Path(self._path).stat().st_size

    def backup(self, path: str) -> None:
        if Path(path).exists():
            raise StoreError(f"there is a file at {path} already")
        shutil.copyfile(self._path, path)

    def close(self) -> None:
        with self._turn:
            if self._db is not None:
                self._db.close()
                self._db = None


@pytest.fixture
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(port, "_loaded", dict(port._loaded))
    register("plain", PlainBackend)


class TestPlainBackend(StoreContract):
    """A hundred lines of another's fill the port."""

    @pytest.fixture
    def store(self, tmp_path: Path, _plain: None) -> Iterator[Store]:
        store = open_store(f"plain://{tmp_path / 'plain.db'}")
        yield store
        store.close()


@pytest.mark.usefixtures("_plain")
def test_a_memory_lives_in_a_backend_of_others(tmp_path: Path) -> None:
    with Memory(f"plain://{tmp_path / 'plain.db'}", embedder=HashEmbedder()) as memory:
        memory.conversation("c", user="ana").record("I live in Lisbon.", "Noted.")
        memory.digest()

        assert [fact.value for fact in memory.user("ana").facts()] == ["Lisbon"]
        assert memory.doctor().ok


def test_an_entry_point_of_a_package_adds_a_scheme(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    entry = EntryPoint("plain", f"{__name__}:PlainBackend", port.GROUP)
    monkeypatch.setattr(port, "_loaded", {})
    monkeypatch.setattr(port, "entry_points", lambda **asked: EntryPoints([entry]).select(**asked))

    store = open_store(f"plain://{tmp_path / 'plain.db'}")
    assert type(store.backend).__name__ == "PlainBackend"
    store.close()


def test_an_unknown_scheme_names_the_known_ones_and_the_way_to_add_one() -> None:
    with pytest.raises(ConfigError, match=r"no store for mysql://.*postgresql://.*holdfast\.backends"):
        open_store("mysql://localhost/memory")
