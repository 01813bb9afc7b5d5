"""
Node, the official npm clients, and a served memory.

``npm ci`` installs what package-lock.json lists, once, into build/npm.  ``HOLDFAST_NPM=folder`` takes Node and the packages
of another folder, as `make integrations-latest` does.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.server.proxy.conftest import model, serve, world

__all__ = ["model", "serve", "world"]

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
LISTS = ("package.json", "package-lock.json")
UNREACHABLE = ("EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ENOTFOUND", "ETIMEDOUT")


@pytest.fixture(scope="session")
def packages() -> Path:
    """The folder that holds node_modules."""
    if given := os.environ.get("HOLDFAST_NPM"):
        return Path(given)
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("Node and npm are not here; on Debian and Ubuntu: apt-get install nodejs npm")
    folder = ROOT / "build/npm"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the workers of a run share one installation
        _install(folder)
    return folder


def _install(folder: Path) -> None:
    wanted = "".join((HERE / name).read_text(encoding="utf-8") for name in LISTS)
    stamp = folder / "installed"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return
    for name in LISTS:
        shutil.copy(HERE / name, folder)
    command = ["npm", "ci", "--no-audit", "--no-fund", "--prefer-offline", "--fetch-timeout=60000"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    if done.returncode and any(code in done.stderr for code in UNREACHABLE):
        pytest.skip("the packages from npm are not here, and their registry cannot be reached")
    assert done.returncode == 0, done.stderr
    stamp.write_text(wanted, encoding="utf-8")


class Node:
    """Node in the folder of a program that has the clients and our package installed."""

    def __init__(self, packages: Path, app: Path) -> None:
        own = packages / "node_modules/.bin/node"
        self.program, self.app = [str(own) if own.exists() else "node"], app

    def __call__(self, script: str, *arguments: str, **environment: str) -> Any:
        """Run a script, and return the JSON that it prints."""
        command = [*self.program, script, *arguments]
        env = {**os.environ, **environment}
        done = subprocess.run(command, cwd=self.app, env=env, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture(scope="session")
def node(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Node:
    outer = tmp_path_factory.mktemp("node")
    (outer / "node_modules").symlink_to((packages / "node_modules").resolve())
    app = Path(shutil.copytree(HERE / "scripts", outer / "app"))
    shutil.copytree(ROOT / "npm", app / "node_modules/holdfast-memory")
    return Node(packages, app)
