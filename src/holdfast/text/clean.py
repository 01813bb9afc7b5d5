"""Text that every database can hold and give back unchanged."""

from __future__ import annotations

import re

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def storable(text: str) -> str:
    """
    *text* with NUL and lone surrogates replaced by U+FFFD, everything else as it was.

    These two are all that a database (PostgreSQL: NUL) or UTF-8 (surrogates) cannot hold.  They
    are replaced rather than refused, so that a garbled byte never costs a user's whole turn.
    """
    return _UNSTORABLE.sub("\ufffd", text) if _UNSTORABLE.search(text) else text
