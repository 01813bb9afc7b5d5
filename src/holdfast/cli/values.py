"""Holdfast's values as data that JSON can hold: the field names as they are, times in ISO 8601."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any


def plain(value: Any) -> Any:
    """
    *value* with dataclasses as objects, tuples as lists and times as text.

    ``changes`` of receipts and reports keep their facts whole.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: plain(getattr(value, item.name)) for item in dataclasses.fields(value)}
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value
