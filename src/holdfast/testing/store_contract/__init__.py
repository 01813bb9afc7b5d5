"""
The promises of a store, as tests that any store can inherit.

    class TestMyStore(StoreContract):
        @pytest.fixture
        def store(self):
            store = MyStore(...)
            yield store
            store.close()

The tests name no database.  Register this package for pytest's detailed asserts in your conftest:
``pytest.register_assert_rewrite("holdfast.testing")``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest

from ...errors import StoreClosed
from ...store import Store
from .erasure import EraseContract, RemadeContract
from .memory import FactsContract, IndexContract, MemoryContract, SummariesContract
from .work import EventsContract, JobsContract, ModelsContract, VaultContract


class StoreContract(
    MemoryContract,
    FactsContract,
    SummariesContract,
    IndexContract,
    JobsContract,
    EraseContract,
    ModelsContract,
    RemadeContract,
    VaultContract,
    EventsContract,
):
    """The whole contract of a store; supply a ``store`` fixture that yields an empty one."""

    @pytest.fixture(autouse=True)
    def _sound_afterwards(self, store: Store) -> Iterator[None]:
        """Check the store's invariants after each test."""
        yield
        with suppress(StoreClosed):
            assert store.check() == []
