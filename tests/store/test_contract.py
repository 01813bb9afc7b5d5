"""The SQLite store keeps the contract, in memory and on disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.store import Store, open_store
from holdfast.testing.store_contract import StoreContract


class TestInMemory(StoreContract):
    @pytest.fixture
    def store(self) -> Iterator[Store]:
        store = open_store(":memory:")
        yield store
        store.close()


class TestOnDisk(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Store]:
        store = open_store(tmp_path / "memory.db")
        yield store
        store.close()
