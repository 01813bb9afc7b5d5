"""Lists as files: every row of a list as CSV or JSON, read page by page while it is sent."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from fastapi import Request
from starlette.responses import Response, StreamingResponse

from .layout import HEADERS

_FORMULA = (
    "=",
    "+",
    "-",
    "@",
    "\t",
    "\r",
    "＝",
    "＋",
    "－",
    "＠",
)  # what a cell begins with that a spreadsheet computes
TYPES = {"csv": "text/csv; charset=utf-8", "json": "application/json"}


def wanted_file(request: Request) -> str:
    """Return ``csv`` or ``json`` if the address asks for the list as such a file, else ``""``."""
    kind = request.query_params.get("as", "")
    return kind if kind in TYPES else ""


def list_file(kind: str, name: str, heads: tuple[str, ...], rows: Iterable[Mapping[str, Any]]) -> Response:
    """
    Return *rows* as a file to download.

    Args:
        kind: ``csv`` or ``json``.
        name: of the file, without its ending.
        heads: the keys of each row, in order.
        rows: read while they are sent.
    """
    lines = _csv_lines(heads, rows) if kind == "csv" else _json_lines(heads, rows)
    named = {"Content-Disposition": f'attachment; filename="{name}-{datetime.now(UTC):%Y-%m-%d}.{kind}"'}
    return StreamingResponse(lines, media_type=TYPES[kind], headers=HEADERS | named)


def _csv_lines(heads: tuple[str, ...], rows: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    yield b"\xef\xbb\xbf"  # spreadsheets take it for UTF-8 then
    yield _csv_line(heads)
    for row in rows:
        yield _csv_line(csv_cell(row[head]) for head in heads)


def _csv_line(cells: Iterable[str]) -> bytes:
    line = io.StringIO()
    csv.writer(line).writerow(cells)
    return line.getvalue().encode("utf-8", "backslashreplace")


def _json_lines(heads: tuple[str, ...], rows: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    before = "[\n"
    for row in rows:
        line = json.dumps({head: plain_value(row[head]) for head in heads}, ensure_ascii=False)
        yield (before + line).encode("utf-8", "backslashreplace")
        before = ",\n"
    yield b"[]\n" if before == "[\n" else b"\n]\n"


def plain_value(value: Any) -> Any:
    """Return a value as JSON has it; times in ISO 8601."""
    return value.astimezone(UTC).isoformat(timespec="seconds") if isinstance(value, datetime) else value


def csv_cell(value: Any) -> str:
    """Return the text of a cell; what a spreadsheet would compute begins with ``'``, which makes it text."""
    if value is None:
        return ""
    text = str(plain_value(value))
    return f"'{text}" if isinstance(value, str) and text.lstrip(" ").startswith(_FORMULA) else text
