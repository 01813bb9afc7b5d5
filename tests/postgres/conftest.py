"""A real PostgreSQL server for the tests of this folder: one a test process, an empty database a test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .lending import Lender


@pytest.fixture(scope="session")
def lender() -> Iterator[Lender]:
    """The server."""
    lender = Lender()
    yield lender
    lender.close()


@pytest.fixture
def address(lender: Lender) -> Iterator[str]:
    """A database of the test's own, with the schema in it."""
    yield lender.at("mine")
    lender.give_back("mine")
