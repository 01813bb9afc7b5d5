"""A PostgreSQL store that is spread over a cluster keeps the contract."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.store import Store, open_store
from holdfast.testing.store_contract import StoreContract

pytestmark = pytest.mark.citus


class TestOnACluster(StoreContract):
    @pytest.fixture
    def store(self, address: str) -> Iterator[Store]:
        store = open_store(address)
        assert store.spread
        yield store
        store.close()
