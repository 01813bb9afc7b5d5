"""Change a fact or a prompt only while it still is what somebody saw, whichever process changes it meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from .errors import Changed, NotFound
from .jobs.model_client import customized_prompt
from .store import ReadView
from .store.conditions import on_condition
from .types import Fact


def only_if_fact(fact_id: str, holds: Callable[[Fact], bool]) -> AbstractContextManager[None]:
    """
    The next change of the user's memory is made only if *holds* of this fact, looked at in the same transaction.

    Raises, out of that change:
        Changed: it does not.
        NotFound: there is no such fact.
    """

    def check(view: ReadView) -> None:
        row = view.fact(fact_id)
        if row is None:
            raise NotFound(f"there is no fact {fact_id!r} here", hint="facts() and history() list them")
        _must(holds(row.fact))

    return on_condition(check)


def only_if_prompt(name: str, holds: Callable[[str], bool]) -> AbstractContextManager[None]:
    """The same of the words in use for what a model shall do."""
    return on_condition(lambda view: _must(holds(customized_prompt(name, view.prompts()).task)))


def _must(holds: bool) -> None:
    if not holds:
        raise Changed("it has changed meanwhile", hint="read it again, then decide")
