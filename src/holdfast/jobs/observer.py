"""
The observer of a memory's work: metrics, spans and logs read what it reports, and nothing of it is message text.

*Watchers* of one memory get a number for each piece of work; metrics are made of these.  *Tracers*, which hold for all
memories of the process, are context managers entered around each call; `holdfast.integrations.telemetry` makes spans of them.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import update_wrapper
from hashlib import sha256
from typing import Any, ClassVar, Concatenate, ParamSpec, Protocol, TypeVar

from ..scope import Scope
from ..text import dataclass

Watcher = Callable[[str, str, float], None]
"""
Called with what was done, of which kind, and how much, by the thread that did it; it must neither raise nor wait.

``message`` (of a role), ``event`` (of a kind) and ``summary`` (of a level) with how many.  ``search`` (of ``hit`` or
``empty``), ``context``, ``append`` and the other calls, and ``job`` (of a kind) with the seconds; ``job.done``,
``job.failed``, ``job.waiting`` with 1.  Of a job's kind also ``claim``, ``takeover`` (from a worker whose lease had ended)
and ``lost`` (another worker took it over) with 1, and ``busy`` with 1 at the beginning of an attempt and -1 at its end.
``indexed`` (of ``text``) with how many texts were embedded for search.

``context.tokens`` (of a section) with its tokens, ``context.prefix`` (``reused`` or ``changed``) with 1.  Of a model's name,
``own`` for those that users brought and ``other`` for unknown ones: ``tokens.input``, ``tokens.cached`` (input that the
provider had kept) and ``tokens.output`` with how many; ``model.failed`` of ``provider/kind`` with 1.
"""


@dataclass(slots=True)
class ObservedCall:
    """
    One call of the engine or of a model.

    ``details`` is what the call was given that says what it is about: a query, the id of a record, a model's name.
    ``result`` is set when it has returned.
    """

    name: str
    scope: Scope | None
    details: Mapping[str, Any]
    result: Any = None


Tracer = Callable[[ObservedCall], AbstractContextManager[None]]


class Observer:
    """The reports of one memory, and those who read them."""

    tracers: ClassVar[list[Tracer]] = []

    def __init__(self) -> None:
        self.watchers: list[Watcher] = []

    def report(self, what: str, of: str, amount: float) -> None:
        """Report one piece of work to every watcher."""
        for watcher in self.watchers:
            watcher(what, of, amount)

    def report_counts(self, counts: Counter[tuple[str, str]]) -> None:
        """Report several pieces of work, by (what, of)."""
        if self.watchers:
            for (what, of), number in counts.items():
                self.report(what, of, number)

    @contextmanager
    def call(self, name: str, scope: Scope | None, **details: Any) -> Iterator[ObservedCall]:
        """Enter the tracers around a call, and report how long it took if it succeeds."""
        call, began = ObservedCall(name, scope, details), time.perf_counter()
        if not self.tracers:
            yield call
        else:
            with ExitStack() as entered:
                for tracer in self.tracers:
                    entered.enter_context(tracer(call))
                yield call
        outcome = ("hit" if call.result else "empty") if isinstance(call.result, list) else ""
        self.report(name, outcome, time.perf_counter() - began)


class Observable(Protocol):
    """An object whose calls are observed."""

    @property
    def observer(self) -> Observer:
        """Its observer."""
        ...


S = TypeVar("S", bound=Observable)
P = ParamSpec("P")
T = TypeVar("T")
Method = Callable[Concatenate[S, Scope, P], T]


def observed(name: str, detail: str = "") -> Callable[[Method[S, P, T]], Method[S, P, T]]:
    """
    Decorate a method so that its observer sees each call.

    Args:
        name: the name of the call.
        detail: the name under which the argument behind the scope is among the details; left out when empty.
    """

    def decorate(method: Method[S, P, T]) -> Method[S, P, T]:
        def observe(self: S, scope: Scope, /, *args: P.args, **named: P.kwargs) -> T:
            details = {detail: next(iter(args), named.get(detail))} if detail else {}
            with self.observer.call(name, scope, **details) as call:
                call.result = result = method(self, scope, *args, **named)
                return result

        update_wrapper(observe, method)
        return observe

    return decorate


def store_id(scope: Scope) -> str:
    """Return the digest of org, bot and user by which spans and logs name a user's memory."""
    named = json.dumps([scope.org, scope.bot, scope.user])
    return sha256(named.encode("utf-8", "surrogatepass")).hexdigest()[:16]
