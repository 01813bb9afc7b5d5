"""How every test runs.  Fixtures live beside the tests that use them."""

import os

import pytest
from hypothesis import settings

# No deadline: how long an example takes says more about the machine's other work than about ours.
settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")

# Files whose tests fork the test process, and take longest.
FIRST = ("engine/test_kill.py", "engine/test_isolation.py", "engine/test_concurrency.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest tests go first: forking a process is cheapest while it is young, and no core idles at the end."""
    items.sort(key=lambda item: not item.path.as_posix().endswith(FIRST))
