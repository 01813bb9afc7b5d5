"""Text primitives: validation, tokens, words, sentences, dates, safe rendering.  All pure."""

from __future__ import annotations

import re
from typing import cast


class _LazyExpression:
    """A regular expression that is compiled when it is first used."""

    def __init__(self, source: str, flags: int) -> None:
        self._source, self._flags = source, flags

    def __getattr__(self, name: str) -> object:
        if name.startswith("_"):
            raise AttributeError(name)
        compiled = re.compile(self._source, self._flags)
        for method in ("search", "match", "fullmatch", "finditer", "findall", "sub", "split", "pattern", "flags"):
            setattr(self, method, getattr(compiled, method))
        return getattr(compiled, name)


def expression(source: str, flags: int = 0) -> re.Pattern[str]:
    """
    Return a regular expression that is compiled when it is first used.

    Five hundred of them compiled at import were a third of the time that every command takes to start.
    """
    return cast("re.Pattern[str]", _LazyExpression(source, flags))
