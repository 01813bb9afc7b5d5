"""
Safety of SQLite files across a fork.

SQLite's file locks belong to the process that took them, but a fork copies the memory in which
SQLite notes that it holds them.  A child that opened the same file would believe that it is
protected; when the parent closes, the child's log is deleted under it and its writes are lost.
So a child lets go of the connections it inherited, and refuses a file whose connections were in
use at the moment of the fork and cannot be let go.
"""

from __future__ import annotations

import os
import weakref
from typing import Protocol

from ...errors import StoreError

_in_use_by_parent: set[str] = set()


class Inheritable(Protocol):
    """A store as a fork sees it."""

    def settle(self) -> None:
        """Wait, for a short while, until the writer is idle."""

    def let_go_in_child(self) -> str | None:
        """Close what was idle; the path when something was in use."""


_open: weakref.WeakSet[Inheritable] = weakref.WeakSet()


def watch(store: Inheritable) -> None:
    """Have *store* let go in every child that is forked from now on."""
    _open.add(store)


def refuse_inherited(path: str) -> None:
    """
    Raises:
        StoreError: the parent was using *path* when this process was forked from it.
    """
    if os.path.realpath(path) in _in_use_by_parent:
        hint = "fork while nobody reads or writes, or start processes with spawn"
        raise StoreError(f"the parent process was using {path} at the moment of the fork", hint=hint)


def _before_fork() -> None:
    for store in list(_open):
        store.settle()


def _after_fork_in_child() -> None:
    for store in list(_open):
        path = store.let_go_in_child()
        if path is not None:
            _in_use_by_parent.add(os.path.realpath(path))
    _open.clear()


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(before=_before_fork, after_in_child=_after_fork_in_child)
