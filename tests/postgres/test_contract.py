"""The PostgreSQL store keeps the contract."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.store import Store, open_store
from holdfast.testing.store_contract import StoreContract


class TestPostgres(StoreContract):
    @pytest.fixture
    def store(self, address: str) -> Iterator[Store]:
        store = open_store(address)
        yield store
        store.close()
