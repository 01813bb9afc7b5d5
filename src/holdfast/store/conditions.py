"""
A change that is made only while something still is what somebody saw, looked at in the very transaction that changes it.

Whoever wants that says so around the call (`on_condition`); stores ask (`conditioned`) before the work of a transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

View = TypeVar("View")
T = TypeVar("T")


class _Condition:
    def __init__(self, check: Callable[[Any], None]) -> None:
        self.check, self.met = check, False


_wanted: ContextVar[_Condition | None] = ContextVar("holdfast_condition", default=None)


@contextmanager
def on_condition(check: Callable[[Any], None]) -> Iterator[None]:
    """Make the first change of a user's memory inside only if *check*, given the transaction's view, does not raise."""
    token = _wanted.set(_Condition(check))
    try:
        yield
    finally:
        _wanted.reset(token)


def conditioned(work: Callable[[View], T]) -> Callable[[View], T]:
    """*work* that looks at the caller's condition first; work that returns ``None`` has changed nothing yet."""
    condition = _wanted.get()
    if condition is None or condition.met:
        return work

    def looking(view: View) -> T:
        condition.check(view)
        answer = work(view)
        condition.met = answer is not None
        return answer

    return looking
