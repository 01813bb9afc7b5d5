"""The store contract runs in another project, with the package alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import holdfast

CONFTEST = """
import pytest

pytest.register_assert_rewrite("holdfast.testing")
"""
TESTS = """
import pytest

from holdfast.store import open_store
from holdfast.testing.message_contract import MessageLogContract
from holdfast.testing.store_contract import StoreContract


class TestTheirStore(StoreContract):
    @pytest.fixture
    def store(self):
        store = open_store(":memory:")
        yield store
        store.close()
"""


def test_a_project_of_somebody_else_runs_the_contract(tmp_path):
    (tmp_path / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    (tmp_path / "test_their_store.py").write_text(TESTS, encoding="utf-8")
    path = str(Path(holdfast.__file__).parent.parent)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-k",
        "events or times",
    ]

    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=120
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
