"""How every test runs.  Fixtures live beside the tests that use them."""

import os

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
