"""``If-Match``: a change that is made only while the thing still is what the caller saw."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

from fastapi import Header

from ..errors import Changed
from ..person import Person

IfMatch = Annotated[
    str | None,
    Header(max_length=1_000, description="Only if it still is what this `ETag` names; without it, whatever it is."),
]

# Who looks and who changes take turns, person by person; so many pairs of people may have to wait for each other.
_TURNS = tuple(threading.Lock() for _ in range(64))


@contextmanager
def unchanged(whose: Person, if_match: str | None, tag: Callable[[], str]) -> Iterator[None]:
    """
    Let nobody of this server change the person's facts or prompts meanwhile, and see that *if_match* names *tag*.

    Raises:
        Changed: it names something else.
    """
    with _TURNS[hash(repr(whose)) % len(_TURNS)]:
        if if_match is not None:
            wanted = {part.strip() for part in if_match.split(",")}
            if "*" not in wanted and tag() not in wanted:
                raise Changed("it has changed meanwhile", hint="read it again, then decide")
            if "*" in wanted:
                tag()  # something has to be there
        yield
