"""Holdfast's values as data that JSON can hold: the field names as they are, times in ISO 8601."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
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


def write_report(path: Path | None, report: Any) -> None:
    """Write a report as a JSON file; without a path, nothing."""
    if path is not None:
        path.write_text(json.dumps(report, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
