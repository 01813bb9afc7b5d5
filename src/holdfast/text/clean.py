"""Text that every database can hold and give back unchanged."""

from __future__ import annotations

import re
from collections.abc import Iterable

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def replace_unstorable(text: str) -> str:
    """
    *text* with NUL and lone surrogates replaced by U+FFFD, everything else as it was.

    These two are all that a database (PostgreSQL: NUL) or UTF-8 (surrogates) cannot hold.  They
    are replaced rather than refused, so that a garbled byte never costs a user's whole turn.
    """
    return _UNSTORABLE.sub("\ufffd", text) if _UNSTORABLE.search(text) else text


def joined_text(parts: Iterable[str]) -> str:
    """
    Return the text parts of one message as one text.

    A line break goes between two parts, except where white space already divides them: "I live in " and "Kyiv." are
    one sentence, which no reader of sentences would find on two lines.
    """
    text = ""
    for part in parts:
        text += part if not text or text[-1].isspace() or part[:1].isspace() else f"\n{part}"
    return text
