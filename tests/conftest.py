"""How every test runs.  Fixtures live beside the tests that use them."""

import itertools
import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

# No deadline: how long an example takes says more about the machine's other work than about ours.
settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")

# Words in the names of files whose tests fork, kill or walk for long.
LONG = ("test_kill", "test_isolation", "test_concurrency", "races", "test_poisoning", "test_model_faults", "test_power")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """
    The longest tests go first, the same number to each worker: forking a process is cheapest while it is young, and no
    core idles at the end.  Workers begin with equal parts of the list.
    """
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    long = [item for item in items if any(word in item.path.name for word in LONG)]
    short = [item for item in items if not any(word in item.path.name for word in LONG)]
    items[:] = [
        item
        for worker in range(workers)
        for item in (
            *long[worker::workers],
            *short[worker * len(short) // workers : (worker + 1) * len(short) // workers],
        )
    ]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--store",
        choices=("sqlite", "postgres"),
        default="sqlite",
        help="what every Memory of the tests is kept in; postgres starts a real server a process",
    )


@pytest.fixture(scope="session")
def _lender(request: pytest.FixtureRequest) -> Iterator[Any]:
    if request.config.getoption("--store") == "sqlite":
        yield None
        return
    from tests.postgres.lending import Lender  # noqa: PLC0415  only these runs need a server

    lender = Lender()
    yield lender
    lender.close()


@pytest.fixture(autouse=True)
def _kept_in_postgres(_lender: Any, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """With ``--store postgres``, whatever file a test opens is a database of a real server."""
    if _lender is None:
        yield
        return
    if mark := request.node.get_closest_marker("sqlite"):
        pytest.skip(f"of SQLite alone: {mark.args[0]}")
    from holdfast.store.postgres import PostgresStore  # noqa: PLC0415  only these runs need a server

    numbers, lent = itertools.count(), []

    def opened(location: str | os.PathLike[str], config: Any) -> PostgresStore:
        path = os.fspath(location)
        if path != ":memory:":
            return PostgresStore(_lender.of_path(os.path.abspath(path)), config)
        lent.append(f"memory {next(numbers)}")
        return PostgresStore(_lender.at(lent[-1]), config)

    monkeypatch.setattr("holdfast.memory.open_store", opened)
    yield
    for name in lent:
        _lender.give_back(name)
    _lender.drop_files()
