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

from ..errors import StoreClosed
from ..store.protocol import Store
from .contract_erase import EraseContract
from .contract_events import EventsContract
from .contract_jobs import JobsContract
from .contract_knowledge import FactsContract, IndexContract, SummariesContract
from .contract_memory import MemoryContract
from .contract_models import ModelsContract
from .contract_remade import RemadeContract
from .contract_vault import VaultContract


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
    """Everything that is asked of a store; supply a ``store`` fixture that yields an empty one."""

    @pytest.fixture(autouse=True)
    def _sound_afterwards(self, store: Store) -> Iterator[None]:
        """After each test, no promise of the store may be broken."""
        yield
        with suppress(StoreClosed):
            assert store.check() == []
