"""What the tests of this folder share: a server each test process, an empty database a test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .lending import Lender


@pytest.fixture
def address(postgres: Lender) -> Iterator[str]:
    """A database of the test's own, with the schema in it, as an application sees it."""
    yield postgres.at("mine")
    postgres.give_back()
