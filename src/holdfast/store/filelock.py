"""
One writer at a time, across threads and processes, by a lock on a file.

On POSIX it is ``flock`` on a descriptor of its own, which also parts threads and which the system
lets go when a process dies, however it dies.  On Windows it is ``msvcrt.locking`` on the first
byte, which does the same.  Where there is neither, threads are kept apart and processes are not.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import StoreBusy

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

FIRST_WAIT_S, LONGEST_WAIT_S = 0.000_5, 0.02
_threads = threading.Lock()
_held: dict[str, threading.Lock] = {}
_descriptors: set[int] = set()


@contextmanager
def locked(path: str, *, timeout_ms: int) -> Iterator[None]:
    """
    Hold the lock file *path*, which is made when it is not there and never removed.

    Raises:
        StoreBusy: somebody held it for longer than *timeout_ms*.
    """
    deadline, wait_s = time.monotonic() + timeout_ms / 1000, FIRST_WAIT_S
    with _threads:
        mine = _held.setdefault(path, threading.Lock())
    if not mine.acquire(timeout=timeout_ms / 1000):
        raise _busy(path, timeout_ms)
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0), 0o600)
        _descriptors.add(fd)
        try:
            while not _try(fd):
                if time.monotonic() >= deadline:
                    raise _busy(path, timeout_ms)
                time.sleep(wait_s)
                wait_s = min(wait_s * 2, LONGEST_WAIT_S)
            yield
        finally:
            _descriptors.discard(fd)
            _release(fd)
    finally:
        mine.release()


def _busy(path: str, timeout_ms: int) -> StoreBusy:
    return StoreBusy(f"{path} was held for {timeout_ms} ms", hint="look for a process that hangs, or try again")


def _after_fork_in_child() -> None:
    """Forget the locks of the parent's other threads."""
    global _threads
    _threads = threading.Lock()
    _held.clear()
    for fd in _descriptors:
        os.close(fd)
    _descriptors.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


if sys.platform == "win32":

    def _try(fd: int) -> bool:
        os.lseek(fd, 0, os.SEEK_SET)
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _release(fd: int) -> None:
        os.lseek(fd, 0, os.SEEK_SET)
        try:
            msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)
        except OSError:
            pass  # it was never got
        os.close(fd)

else:

    def _try(fd: int) -> bool:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _release(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_UN)  # closing alone would not, while a forked child has the descriptor too
        os.close(fd)
