"""
An event loop on a thread of its own, so that the asynchronous clients of providers can be called from any thread.

It starts with the first call and again in a forked process, and ends with `stop` or with its owner.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Loop:
    """Runs coroutines; each call waits for its own."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._process = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._last: Callable[[], Awaitable[None]] | None = None

    def run(self, work: Coroutine[Any, Any, T], last: Callable[[], Awaitable[None]]) -> T:
        """
        The result of *work*, which is cancelled when the waiting thread is interrupted.

        *last* is awaited when the loop stops.
        """
        future = asyncio.run_coroutine_threadsafe(work, self._running(last))
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    @property
    def inherited(self) -> bool:
        """Whether the loop was started before this process was forked, and so does not run in it."""
        return self._loop is not None and self._process != os.getpid()

    def _running(self, last: Callable[[], Awaitable[None]]) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or self.inherited:
                self._loop = asyncio.new_event_loop()
                self._process, self._last = os.getpid(), last
                self._thread = threading.Thread(target=self._serve, args=(self._loop,), name=self._name, daemon=True)
                self._thread.start()
            return self._loop

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
            left = asyncio.all_tasks(loop)
            for task in left:
                task.cancel()
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            if self._last is not None:
                loop.run_until_complete(self._last())
        finally:
            loop.close()

    def stop(self) -> None:
        """End the thread; a later call starts another one."""
        with self._lock:
            loop, thread, mine = self._loop, self._thread, not self.inherited
            self._loop = self._thread = None
        if loop is None or thread is None or not mine:
            return
        loop.call_soon_threadsafe(loop.stop)
        if thread is not threading.current_thread():
            thread.join()
