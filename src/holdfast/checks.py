"""What the doors ask of plain arguments."""

from __future__ import annotations

from .errors import BadInput


def checked_query(query: object) -> str:
    """
    The words to search for.

    Raises:
        BadInput: not text, or nothing but blanks.
    """
    if not isinstance(query, str):
        raise BadInput(f"the query must be text, not {type(query).__name__}")
    if not query.strip():
        raise BadInput("the query is empty", hint="give a few words or a question")
    return query


def checked_count(what: str, value: object) -> int:
    """
    A whole number of at least 1.

    Raises:
        BadInput: anything else; says what was given.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise BadInput(f"{what} must be a whole number of at least 1, not {value!r}")
    return value
