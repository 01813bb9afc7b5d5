"""
The classes of other memories over a `Memory`, so that a program changes an import and nothing else.

Where such a program names a thing without its user, the id says whose it is (`encode`, `decode`), so that no call looks
through others.
"""

from __future__ import annotations

import base64
import binascii


def encode(*names: str, tail: str = "") -> str:
    """Return the id of what these names lead to, the user's first; *tail* is put behind them as it is."""
    packed = [base64.urlsafe_b64encode(name.encode()).decode().rstrip("=") for name in names]
    return ".".join([*packed, tail] if tail else packed)


def decode(given: object, names: int, *, tail: bool = False) -> tuple[str, ...] | None:
    """Return the names, and the tail, that `encode` was given; ``None`` when it is no such id."""
    found = str(given).split(".", names if tail else -1)
    if len(found) != names + tail or not all(found):
        return None
    try:
        packed = [base64.b64decode(one + "=" * (-len(one) % 4), b"-_", validate=True) for one in found[:names]]
        return (*(one.decode() for one in packed), *found[names:])
    except (binascii.Error, ValueError):
        return None
