"""``If-Match``: a change that is made only while the thing still is what the caller saw."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Annotated

from fastapi import Header

from ..conditions import only_if_fact, only_if_prompt
from ..types import Fact

IfMatch = Annotated[
    str | None,
    Header(max_length=1_000, description="Only if it still is what this `ETag` names; without it, whatever it is."),
]


def fact_matches(fact_id: str, if_match: str | None, tag: Callable[[Fact], str]) -> AbstractContextManager[None]:
    """Within it the fact is changed only if *if_match* names its *tag*, seen in the same transaction; else `Changed`."""
    return nullcontext() if if_match is None else only_if_fact(fact_id, lambda fact: names(if_match, tag(fact)))


def prompt_matches(name: str, if_match: str | None, tag: Callable[[str], str]) -> AbstractContextManager[None]:
    """The same of a prompt."""
    return nullcontext() if if_match is None else only_if_prompt(name, lambda words: names(if_match, tag(words)))


def names(if_match: str, tag: str) -> bool:
    """Whether the header names the tag, or stands for any."""
    return not {"*", tag}.isdisjoint(part.strip() for part in if_match.split(","))
