"""
Read conversations from JSONL: one message a line, ``{"role", "content", "name"?, "at"?, "conversation"?}``.

A file is read twice: `survey` checks every line and learns what only the whole file tells, `blocks`
gives the messages.  What else a line holds is kept with the message.  This module knows no store.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import field
from datetime import UTC, datetime, timedelta
from typing import Any, BinaryIO, NoReturn

from ..clock import MAX_AHEAD, utc_now
from ..text import dataclass

ROLES = frozenset(("user", "assistant", "system", "tool", "human", "ai", "bot", "model", "developer", "function"))
MAX_NAME_CHARS = 200
BLOCK_LINES = 500
NOTED_STEP = timedelta(minutes=1)
"""A time that is so much earlier than the one before it is noted."""

_EXAMPLE = '{"role": "user", "content": "…"}'
_MEANT = {
    "role": ("from", "sender", "speaker", "author", "type"),
    "content": ("text", "message", "body", "value"),
    "at": ("timestamp", "time", "date", "created_at", "datetime"),
}


@dataclass(frozen=True, slots=True)
class ImportedLine:
    """One message; ``at`` is ``None`` when the line names no time, ``raw`` is the line as it was read."""

    number: int
    raw: bytes
    conversation: str
    message: dict[str, Any]
    at: datetime | None


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that cannot be used: the problem, and its fix."""

    number: int
    problem: str
    fix: str


@dataclass(slots=True)
class Survey:
    """
    The figures of a first reading; ``first_at`` has each conversation's earliest line with a time.

    ``until`` is the latest time that a line may have.  ``backwards`` counts the lines that are older than the one before
    them in their conversation, and ``backwards_at`` is the number of the first.
    """

    messages: int = 0
    undated: int = 0
    bad: list[BadLine] = field(default_factory=list)
    conversations: dict[str, int] = field(default_factory=dict)
    first_at: dict[str, datetime] = field(default_factory=dict)
    until: datetime = field(default_factory=lambda: utc_now() + MAX_AHEAD)
    backwards: int = 0
    backwards_at: int = 0


@dataclass(frozen=True, slots=True)
class Block:
    """
    Consecutive messages of one conversation.

    ``start`` is the place of the first among the conversation's messages in this file, from 0.
    Blocks end at the same lines whenever the same file is read; ``raws`` are those lines.
    """

    conversation: str
    start: int
    numbers: tuple[int, ...]
    raws: tuple[bytes, ...]
    messages: tuple[dict[str, Any], ...]


def problem_of(head: bytes) -> tuple[str, str] | None:
    """Return why a file that begins with *head* is not text of this kind, and the fix; ``None`` if it may be."""
    wide = next((name for marks, name in _WIDE if head.startswith(marks)), None)
    if wide is not None:
        return "the file is UTF-16", f"save it as UTF-8: iconv -f {wide} -t utf-8 FILE > NEW"
    if b"\0" in head and not _begins_with_lines(head):
        return "the file is neither text nor a ZIP archive", "choose a JSONL or JSON file, or an export's ZIP"
    return None


_WIDE = (
    ((b"\xff\xfe", b"\xfe\xff"), "utf-16"),
    ((b"{\0", b"[\0", b"\n\0", b" \0"), "utf-16le"),
    ((b"\0{", b"\0[", b"\0\n", b"\0 "), "utf-16be"),
)


def _begins_with_lines(head: bytes) -> bool:
    """Whether a line near the beginning is an object: then zero bytes are the damage of single lines."""
    for raw in head.removeprefix(b"\xef\xbb\xbf").splitlines():
        try:
            if isinstance(json.loads(raw.replace(b"\0", b"").decode("utf-8"), strict=False), dict):
                return True
        except (ValueError, RecursionError):
            continue
    return False


def survey(stream: BinaryIO, conversation: str) -> Survey:
    """
    Check every line of *stream*; messages whose line names no conversation go to *conversation*.
    """
    found, before = Survey(), dict[str, datetime]()
    for line in lines(stream, conversation, found.until):
        if isinstance(line, BadLine):
            found.bad.append(line)
            continue
        found.messages += 1
        found.conversations[line.conversation] = found.conversations.get(line.conversation, 0) + 1
        if line.at is None:
            found.undated += 1
        else:
            found.first_at.setdefault(line.conversation, line.at)
            if before.get(line.conversation, line.at) - line.at >= NOTED_STEP:
                found.backwards, found.backwards_at = found.backwards + 1, found.backwards_at or line.number
            before[line.conversation] = line.at
    return found


def blocks(stream: BinaryIO, conversation: str, seen: Survey) -> Iterator[Block]:
    """
    Yield the good messages of *stream*, in order within each conversation.

    A message without a time takes that of the message before it in its conversation, the first ones
    that of the first message with a time; a conversation without any takes the time of storing.
    """
    counted: dict[str, int] = {}
    latest = dict(seen.first_at)
    pending: dict[str, list[ImportedLine]] = {}
    edge = BLOCK_LINES
    for line in lines(stream, conversation, seen.until):
        if line.number > edge:
            yield from _cut(pending, counted)
            pending, edge = {}, (line.number - 1) // BLOCK_LINES * BLOCK_LINES + BLOCK_LINES
        if isinstance(line, BadLine):
            continue
        at = line.at or latest.get(line.conversation)
        if at is not None:
            latest[line.conversation] = at
            line.message["at"] = at
        pending.setdefault(line.conversation, []).append(line)
    yield from _cut(pending, counted)


def lines(stream: BinaryIO, conversation: str, until: datetime | None = None) -> Iterator[ImportedLine | BadLine]:
    """Yield every line of *stream* that is not blank, parsed or refused; a time after *until*, by default tomorrow, is refused."""
    until = until or utc_now() + MAX_AHEAD
    for number, raw in enumerate(stream, 1):
        raw = raw.removeprefix(b"\xef\xbb\xbf") if number == 1 else raw
        if not raw.strip():
            continue
        try:
            yield _line(raw, number, conversation, until)
        except _Bad as bad:
            yield BadLine(number, bad.problem, bad.fix)


class _Bad(Exception):
    def __init__(self, problem: str, fix: str) -> None:
        super().__init__(problem)
        self.problem, self.fix = problem, fix


def _refuse(problem: str, fix: str) -> NoReturn:
    raise _Bad(problem, fix)


def _line(raw: bytes, number: int, conversation: str, until: datetime) -> ImportedLine:
    message = _object(raw, number)
    _need_role_and_content(message)
    at = _moment(message.pop("at", None), until)
    named = message.pop("conversation", None)
    if named is not None:
        if not isinstance(named, str) or not named or len(named) > MAX_NAME_CHARS or not named.isprintable():
            _refuse("its conversation is no name", f"a name is printable text of at most {MAX_NAME_CHARS} characters")
        conversation = named
    return ImportedLine(number, raw, conversation, message, at)


def _object(raw: bytes, number: int) -> dict[str, Any]:
    if b"\0" in raw:
        _refuse("it holds a zero byte", "remove such bytes: tr -d '\\000' < FILE > NEW")
    try:
        text = raw.decode("utf-8")
        value = json.loads(text, strict=False, parse_constant=_no_constant, parse_float=_finite)
    except UnicodeDecodeError as error:
        _refuse(f"it is not UTF-8 (byte {error.start + 1})", "save the file as UTF-8")
    except json.JSONDecodeError as error:
        if number == 1 and raw.lstrip()[:1] in (b"[", b"{") and raw.rstrip()[-1:] in (b"[", b"{", b","):
            _refuse(
                "the file seems to be one JSON document over several lines",
                "write one message a line: jq -c '.[]' FILE | holdfast import -",
            )
        _refuse(
            f"it is not JSON: {error.msg.lower().removesuffix(' at')} at column {error.colno}",
            f"write one object a line: {_EXAMPLE}",
        )
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        _refuse(f"it is not JSON that can be kept: {reason}", f"write one object a line: {_EXAMPLE}")
    if isinstance(value, list):
        _refuse("it is a list", "write one message a line: jq -c '.[]' FILE | holdfast import -")
    if not isinstance(value, dict):
        _refuse(f"it is a {_kind(value)}, not an object", f"write one object a line: {_EXAMPLE}")
    return value


def _need_role_and_content(message: dict[str, Any]) -> None:
    if "role" not in message and isinstance(message.get("messages"), list):
        _refuse(
            "it holds a whole conversation", "write one message a line: jq -c '.messages[]' FILE | holdfast import -"
        )
    for key in ("role", "content"):
        if key not in message and not (key == "content" and message.get("tool_calls")):
            other = next((name for name in _MEANT[key] if name in message), None)
            rename = f'; "{other}" may be it: rename it' if other else ""
            _refuse(f'it has no "{key}"', f"write {_EXAMPLE}{rename}")
    role, content = message["role"], message.get("content")
    if role not in ROLES if isinstance(role, str) else True:
        shown = json.dumps(role, ensure_ascii=False)[:40]
        _refuse(f"its role is {shown}", "use user, assistant, system or tool; the speaker's name goes into name")
    if content is None and not message.get("tool_calls"):
        _refuse("its content is null", f"write {_EXAMPLE}")
    if content is not None and not isinstance(content, str | list):
        _refuse(f"its content is a {_kind(content)}, not text", f"write {_EXAMPLE}")
    name = message.get("name")
    if name is not None and (not isinstance(name, str) or len(name) > MAX_NAME_CHARS):
        _refuse("its name is not text of at most 200 characters", 'write "name": "Ana", or leave it out')
    if role in ("tool", "function") and not message.get("tool_call_id"):
        _refuse("it is a tool's result without tool_call_id", "name the call that it answers")


def _moment(value: Any, until: datetime) -> datetime | None:
    if value is None:
        return None
    if not isinstance(value, str):
        _refuse(f"its time is a {_kind(value)}", 'write "at": "2026-03-14T19:02:00Z"')
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        _refuse(f"its time is {json.dumps(value[:40])}, which is not ISO 8601", 'write "at": "2026-03-14T19:02:00Z"')
    at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    if not 1 < at.year < 9999:
        _refuse(f"its time is in the year {at.year}", 'write "at": "2026-03-14T19:02:00Z"')
    if at > until:
        _refuse(
            f"its time, {at.date()}, lies in the future",
            'write when it was said, or leave "at" out: the time of the line before is taken',
        )
    return at


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits[:20]} is too large a number")
    return number


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _kind(value: Any) -> str:
    return {bool: "boolean", int: "number", float: "number", str: "text", list: "list", dict: "object"}.get(
        type(value), "null"
    )


def _cut(pending: dict[str, list[ImportedLine]], counted: dict[str, int]) -> Iterator[Block]:
    for name, waiting in pending.items():
        start = counted.get(name, 0)
        counted[name] = start + len(waiting)
        yield Block(
            name,
            start,
            tuple(line.number for line in waiting),
            tuple(line.raw for line in waiting),
            tuple(line.message for line in waiting),
        )
