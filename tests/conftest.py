"""How every test runs, and the fixtures that many folders share; others live beside the tests that use them."""

import asyncio
import gc
import itertools
import os
import shutil
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import uvicorn.server
from hypothesis import settings

from holdfast import Config, Memory
from holdfast.store import Store, open_store
from holdfast.testing.fakes import FakeClock, HashEmbedder
from tests import keeping

# No deadline: how long an example takes says more about the machine's other work than about ours.
settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")


class _ShortSleeps:
    """The module `asyncio`, for uvicorn: it looks ten times a second whether it shall stop, and twenty times as often here."""

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio, name)

    @staticmethod
    async def sleep(delay: float) -> None:
        await asyncio.sleep(delay / 20)


uvicorn.server.asyncio = _ShortSleeps()  # type: ignore[assignment]

# Tests talk in few words: here ten messages make a chunk, however short they are.  What the default is, test_chunk.py holds.
Config.__init__.__kwdefaults__["chunk_tokens"] = 1  # type: ignore[attr-defined]

HERE = Path(__file__).parent
CLUSTER = "HOLDFAST_TEST_CITUS"  # the address of a database on a cluster, see citus/conftest.py
MEMORY, MEMORY_NEEDED = Path("/dev/shm"), 4 * 2**30
# Words in the names of files whose tests fork, kill or walk for long, or run a page of commands.
LONG = (
    "test_kill",
    "test_isolation",
    "test_concurrency",
    "races",
    "test_poisoning",
    "test_model_faults",
    "test_power",
    "test_disk_errors",
    "test_portable",
    "test_docs",
    "test_wire",
)


@pytest.fixture
def clock() -> FakeClock:
    """Monday, 5 January 2026, 9:00 UTC, until a test moves it."""
    return FakeClock()


@pytest.fixture
def memory(clock: FakeClock) -> Iterator[Memory]:
    """An empty memory with an embedder that needs no model."""
    with Memory(embedder=HashEmbedder(), clock=clock) as opened:
        yield opened


@pytest.fixture(scope="session")
def served() -> Callable[..., Any]:
    """``with served(memory) as address``: a server of it in a thread, with a real socket."""
    # imported here, as most tests need none of it
    app = import_module("holdfast.server.app")
    defaults = import_module("holdfast.server.gate").ServerSettings(requests_per_minute=10_000_000)

    @contextmanager
    def serve(memory: Any, settings: Any = defaults) -> Iterator[str]:
        config = uvicorn.Config(app.create_app(memory, settings), port=0, log_level="error")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            while not server.started:
                assert thread.is_alive()
                time.sleep(0.002)
            host, port = server.servers[0].sockets[0].getsockname()[:2]
            yield f"http://{host}:{port}"
        finally:
            server.should_exit = True
            thread.join()

    return serve


def pytest_xdist_auto_num_workers() -> int:
    """Half as many again as there are cores: tests wait for processes, servers, and databases much of the time."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores * 3 // 2


def pytest_configure() -> None:
    """
    Keep the files of tests in the machine's memory where there is room: a disk takes milliseconds to sync a commit.

    No test needs a real disk: a kill leaves what the system was given, and power cuts happen in a file system of our own.
    """
    if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > MEMORY_NEEDED:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """
    Of what runs twice and takes long, PostgreSQL gets a part.  Tests of a cluster are left out where there is none.

    The longest tests go first, the same number to each worker: forking a process is cheapest while it is young, and no
    core idles at the end.  Workers begin with equal parts of the list.
    """
    parted = config.getoption("--store") == "both" and not config.getoption("--full")
    chosen = {item for item in items if _has_cluster(item) and (not parted or _in_part(item))}
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = [item for item in items if item in chosen]
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


def pytest_collection_finish() -> None:
    """
    Thousands of collected tests are no garbage: none of them is looked at again.

    A test that forks collects what it can before; that took half a second each time.
    """
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say in one line that tests of a cluster were left out."""
    asked = [Path(arg.partition("::")[0]).absolute() for arg in config.args]
    if not os.environ.get(CLUSTER) and any(HERE.joinpath("citus").is_relative_to(path) for path in asked):
        terminalreporter.write_line(f"tests/citus left out: {CLUSTER} names no Citus cluster")


def _has_cluster(item: pytest.Item) -> bool:
    return bool(os.environ.get(CLUSTER)) or item.get_closest_marker("citus") is None


def _in_part(item: pytest.Item) -> bool:
    case = getattr(item, "callspec", None)
    on_server = case is not None and case.params.get("_kept_in") == "postgres"
    many = item.path.name.startswith(MANY_CASES)
    return not (on_server and many) or zlib.crc32(item.nodeid.encode()) % ONE_IN == 0


# What tests promise of memory here is shown on SQLite and on PostgreSQL; the contract of a store names its own.
BOTH = (
    "engine",
    "jobs",
    "privacy",
    "rebuild",
    "reconcile/test_consolidate",
    "reconcile/test_upkeep",
    "context/test_profile",
)
# Of the files that kill or race at every step, and of generated examples, PostgreSQL sees one case in so many; all with
# --full or --store postgres.
ONE_IN = 8
MANY_CASES = (
    "test_kill",
    "test_races",
    "test_concurrency",
    "test_isolation_served",
    "test_poisoning",
    "test_stories",
    "test_story_elsewhere",
    "test_profile",
    "test_erase_model",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--store",
        choices=("both", "sqlite", "postgres"),
        default="both",
        help="what the memories of the tests are kept in; both: in SQLite, and some once more in PostgreSQL",
    )
    parser.addoption("--full", action="store_true", help="crash and cancel as often as the docs say, not a few times")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """The tests of `BOTH` run twice; with ``--store postgres`` all that are not about a file run there."""
    asked = metafunc.config.getoption("--store")
    of_file = metafunc.definition.get_closest_marker("sqlite") is not None
    path = metafunc.definition.path.relative_to(HERE).as_posix()
    twice = path.startswith(BOTH)
    if asked == "postgres" and not of_file:
        metafunc.parametrize("_kept_in", ["postgres"], indirect=True)
    elif asked == "both" and twice and not of_file:
        metafunc.parametrize("_kept_in", ["sqlite", "postgres"], indirect=True)


@pytest.fixture(scope="session")
def full(request: pytest.FixtureRequest) -> bool:
    """Whether something shall happen as often as the figures in the docs say."""
    return bool(request.config.getoption("--full"))


@pytest.fixture
def examples(request: pytest.FixtureRequest, full: bool, _kept_in: None) -> Callable[..., settings]:
    """``examples(50)``: settings for 50 examples; on PostgreSQL one in `ONE_IN` of them, but all where it sees all cases."""
    in_part = keeping.lender is not None and not full and request.config.getoption("--store") == "both"

    def of(count: int, like: settings | None = None) -> settings:
        return settings(like or settings(), max_examples=max(5, count // ONE_IN) if in_part else count)

    return of


@pytest.fixture(scope="session")
def postgres() -> Iterator[Any]:
    """Lends databases of a real server, which starts when the first test asks."""
    from tests.postgres.lending import Lender  # noqa: PLC0415  most test processes need no server

    lender = Lender()
    yield lender
    lender.close()


@pytest.fixture(autouse=True)
def _kept_in(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """In PostgreSQL, whatever file a test opens is a database of a real server."""
    if getattr(request, "param", "sqlite") == "sqlite":
        yield
        return
    lender, numbers = request.getfixturevalue("postgres"), itertools.count()

    def opened(location: str | os.PathLike[str], config: Any, clock: Any) -> Store:
        path = os.fspath(location)
        name = f"memory {next(numbers)}" if path == ":memory:" else keeping.name_of(path)
        store = open_store(path if "://" in path else lender.at(name), config, clock)
        if path == ":memory:":  # it ends with its memory, and the next one gets the same database
            store.close = lambda: (Store.close(store), lender.give_back(name))  # type: ignore[method-assign]
        return store

    monkeypatch.setattr("holdfast.memory.open_store", opened)
    monkeypatch.setattr(keeping, "lender", lender)
    yield
    lender.give_back()
