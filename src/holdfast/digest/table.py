"""
The rows of an answer that should be CSV, and whatever a model makes of that.

Wanted is one row a line; what comes is wrapped in prose and fences, as JSON, as a Markdown table,
with semicolons or tabs, with columns in another order under a header, with quotation marks that never
close, with a last row that was cut off.  Whatever can be read is read; of the rest is told what it was.
Pure, and total: no text makes it raise.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..text.clean import storable

COLUMNS = (
    "category",
    "fact_key",
    "fact_value",
    "confidence",
    "subject",
    "op",
    "modality",
    "lifetime",
    "message",
    "quote",
)
MAX_ROWS = 200
MAX_LINE_CHARS = 4_000
MAX_FAILURES = 500  # brackets that open nothing: each is tried once, and nobody means so many
LEAST_CELLS = 4

_ALIASES = {
    "category": "category type kind",
    "fact_key": "fact_key key factkey attribute predicate slot",
    "fact_value": "fact_value value factvalue object content fact statement memory text",
    "confidence": "confidence conf score certainty",
    "subject": "subject who about entity",
    "op": "op join operation action change",
    "modality": "modality mode",
    "lifetime": "lifetime duration validity",
    "message": "message seq msg number message_number message_id turn line n",
    "quote": "quote quotation evidence words source verbatim",
}
_NAMES = {alias: name for name, aliases in _ALIASES.items() for alias in aliases.split()}
_DELIMITERS = (",", ";", "\t", "|")
_CONFIDENCE = r"(?:[01]?[.,]\d+|[01]|\d{1,3} ?%|high|medium|low)"
_MARK = re.compile(r"^(?:[-*•]|\d{1,3}[.)])\s+")


@dataclass(frozen=True, slots=True)
class Rows:
    """
    What was read: ``rows`` by column name, and ``problems``, why each line that looked like one was dropped.

    ``empty``: the form was kept and holds no row (a header alone, an empty list).
    """

    rows: list[dict[str, str]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    empty: bool = False


def read_rows(text: str, *, cut: bool = False) -> Rows:
    """
    Every row that can be read from *text*.

    Args:
        text: the answer, without code fences.
        cut: it was cut off, so that its last line is not to be trusted.
    """
    stripped = text.strip()
    if "{" in stripped or stripped.startswith("["):
        found = _from_json(stripped)
        if found.rows or found.empty:
            return found
    return _from_lines(stripped, cut=cut)


def _from_json(text: str) -> Rows:
    decoder = json.JSONDecoder()
    rows: list[dict[str, str]] = []
    problems: list[str] = []
    empty = False
    place = min((at for at in (text.find("["), text.find("{")) if at >= 0), default=-1)
    failures = 0
    while 0 <= place < len(text) and len(rows) < MAX_ROWS and failures < MAX_FAILURES:
        try:
            value, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            end = place + 1
            failures += 1
        else:
            made = list(_records(value))
            rows += made
            empty = empty or (not made and _hollow(value))
        place = min((at for at in (text.find("[", end), text.find("{", end)) if at >= 0), default=-1)
    if len(rows) >= MAX_ROWS:
        problems.append(f"too-many: only the first {MAX_ROWS} rows are read")
    return Rows(rows[:MAX_ROWS], problems, empty and not rows)


def _hollow(value: object, depth: int = 0) -> bool:
    """Whether a JSON value holds lists and objects and nothing in them."""
    inside = list(value.values()) if isinstance(value, dict) else value
    return isinstance(inside, list) and depth < 4 and all(_hollow(item, depth + 1) for item in inside)


def _records(value: object, depth: int = 0) -> Iterator[dict[str, str]]:
    if depth > 4:
        return
    if isinstance(value, list):
        if value and all(isinstance(cell, str | int | float) for cell in value) and len(value) >= LEAST_CELLS:
            yield from _row([_cell(cell) for cell in value], COLUMNS)
            return
        for item in value:
            yield from _records(item, depth + 1)
    elif isinstance(value, dict):
        named = {_NAMES.get(_snake(str(key)), ""): _cell(cell) for key, cell in value.items()}
        named.pop("", None)
        if "category" in named and "fact_value" in named:
            yield named
        else:
            for item in value.values():
                if isinstance(item, list | dict):
                    yield from _records(item, depth + 1)


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else storable(str(value)).strip()  # an escape may stand for what no store holds


def _snake(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.strip().lower()).strip("_")


def _from_lines(text: str, *, cut: bool) -> Rows:
    lines = _joined([line.strip() for line in text.splitlines() if line.strip()])
    rows: list[dict[str, str]] = []
    problems: list[str] = []
    order: Sequence[str] = COLUMNS
    headed = False
    delimiter = _delimiter(lines)
    for number, line in enumerate(lines):
        if re.fullmatch(r"[\s|:+-]+", line):
            continue  # the rule under the head of a Markdown table
        cells = _cells(line, delimiter)
        header = _header(cells)
        if header:
            order, headed = header, True
            continue
        last = number == len(lines) - 1
        if len(cells) < LEAST_CELLS:
            if last and cut and rows:
                problems.append("cut-off: the last row is incomplete")
            continue
        if cut and last and len(cells) < len(order):
            problems.append("cut-off: the last row is incomplete")
            continue
        if len(rows) >= MAX_ROWS:
            problems.append(f"too-many: only the first {MAX_ROWS} rows are read")
            break
        made = list(_row(cells, order)) or list(_mended(line, delimiter))
        rows += made
        if not made:
            problems.append("not-a-row: a line is neither a row nor left out")
    return Rows(rows, problems, headed and not rows and not problems)


def _joined(lines: list[str]) -> list[str]:
    """Lines of a quoted cell that holds a line feed as one line; a quotation mark that never closes joins nothing."""
    out: list[str] = []
    index = 0
    while index < len(lines):
        line = lines[index][:MAX_LINE_CHARS]
        if line.count('"') % 2 and index + 1 < len(lines) and lines[index + 1].count('"') % 2:
            following = lines[index + 1]
            starts_row = re.match(r'^"?[\w ]{2,40}"?\s*[,;|\t]', following) and len(following.split(",")) > LEAST_CELLS
            if not starts_row:
                line = f"{line} {following}"[:MAX_LINE_CHARS]
                index += 1
        out.append(line)
        index += 1
    return out


def _delimiter(lines: Sequence[str]) -> str:
    """The one of the known delimiters that makes most cells in most lines; a comma when none does."""

    def weight(mark: str) -> tuple[int, int]:
        counts = [len(_cells(line, mark)) for line in lines[:50]]
        return sum(count >= LEAST_CELLS for count in counts), -_DELIMITERS.index(mark)

    return max(_DELIMITERS, key=weight)


def _cells(line: str, delimiter: str) -> list[str]:
    if delimiter == "|":
        line = line.strip().strip("|")
    line = _MARK.sub("", line)
    try:
        cells = next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])
    except csv.Error:
        cells = line.split(delimiter)
    return [cell.strip() for cell in cells]


def _header(cells: Sequence[str]) -> list[str] | None:
    """The column names, when the cells are a head: at least three known names, and nothing like a confidence."""
    names = [_NAMES.get(_snake(cell), "") for cell in cells]
    known = [name for name in names if name]
    return names if len(known) >= 3 and len(known) * 2 > len(names) and "category" in known else None


def _row(cells: Sequence[str], order: Sequence[str]) -> Iterator[dict[str, str]]:
    """One row when the cell that should be a confidence is one; the last column takes what is left over."""
    if len(cells) > len(order):
        cells = [*cells[: len(order) - 1], ", ".join(cells[len(order) - 1 :])]
    row = {name: cell for name, cell in zip(order, cells, strict=False) if name}
    if re.fullmatch(_CONFIDENCE, row.get("confidence", ""), re.IGNORECASE):
        yield row


def _mended(line: str, delimiter: str) -> Iterator[dict[str, str]]:
    """A row whose value holds the delimiter or a lone quotation mark: its confidence shows where the value ends."""
    mark = re.escape(delimiter)
    shape = re.compile(
        rf"\s*\"?([\w /-]{{2,40}})\"?\s*{mark}\s*\"?([\w /.-]{{0,60}})\"?\s*{mark}(.{{1,600}}?){mark}\s*\"?({_CONFIDENCE})\"?\s*"
        rf"(?:{mark}(.*))?$",
        re.IGNORECASE,
    )
    found = shape.match(_MARK.sub("", line))
    if not found:
        return
    rest = [cell.strip() for cell in (found[5] or "").split(delimiter)]
    head = [found[1], found[2], found[3], found[4]]
    cells = [cell.strip().strip('"').strip() for cell in (*head, *rest)]
    free = len(COLUMNS) - 1
    if len(cells) > len(COLUMNS):
        cells = [*cells[:free], f"{delimiter} ".join(cells[free:])]
    yield dict(zip(COLUMNS, cells, strict=False))


def confidence_of(cell: str) -> float:
    """A confidence from 0 to 1 out of ``0.9``, ``0,9``, ``90 %`` or ``high``; 0 for anything else."""
    words: Mapping[str, float] = {"high": 0.9, "medium": 0.7, "low": 0.4}
    text = cell.strip().lower()
    if text in words:
        return words[text]
    try:
        number = float(text.rstrip(" %").replace(",", "."))
    except ValueError:
        return 0.0
    number = number / 100 if number > 1 else number
    return number if 0.0 <= number <= 1.0 else 0.0
