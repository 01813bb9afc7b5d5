"""Tell whoever wants to know how much was done and how long it took; nothing of what was said."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

Watcher = Callable[[str, str, float], None]
"""
Called with what was done, of which kind, and how much, by whatever thread did it; it must neither raise nor wait.

``message`` (of a role), ``event`` (of a kind) and ``summary`` (of a level) with how many; ``context``, ``search`` (of ``hit``
or ``empty``) and ``job`` (of a kind) with the seconds; ``job.done``, ``job.failed``, ``job.waiting`` with 1.  Of a job's kind,
too: ``claim``, ``takeover`` (from a worker whose lease had ended), ``lost`` (somebody else took it over) with 1, and ``busy``
with 1 at the beginning of an attempt and -1 at its end.

``context.tokens`` (of a section) with its tokens, ``context.prefix`` (``reused`` or ``changed``) with 1.  Of a model's name,
``own`` for those that users brought and ``other`` for those that nobody set up: ``tokens.input``, ``tokens.cached`` (input that
the provider had kept) and ``tokens.output`` with how many; ``model.failed`` of ``provider/kind`` with 1.
"""
P = ParamSpec("P")
T = TypeVar("T")


class Observed:
    """Those who want to know about the work of one memory."""

    def __init__(self) -> None:
        self.watchers: list[Watcher] = []

    def __call__(self, what: str, of: str, amount: float) -> None:
        for watcher in self.watchers:
            watcher(what, of, amount)

    def count(self, counted: Counter[tuple[str, str]]) -> None:
        """Tell of many things at once, by (what, of)."""
        if self.watchers:
            for (what, of), number in counted.items():
                self(what, of, number)


def timed(what: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """
    A decorator for methods of what has ``observed``: tells how long a call took, and of a list whether it holds anything.
    """

    def around(call: Callable[P, T]) -> Callable[P, T]:
        @wraps(call)
        def timing(*args: P.args, **named: P.kwargs) -> T:
            began = time.perf_counter()
            answer = call(*args, **named)
            of = ("hit" if answer else "empty") if isinstance(answer, list) else ""
            observed: Observed = getattr(args[0], "observed")  # noqa: B009  the method's own object
            observed(what, of, time.perf_counter() - began)
            return answer

        return timing

    return around
