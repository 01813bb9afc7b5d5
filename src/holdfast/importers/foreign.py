"""
The formats of other programs' files: detected by content, and read as the lines of `jsonl`.

Known are our own lines and exports, lists of messages in OpenAI's shape, and the exports of ChatGPT and Claude, as
JSON or in the ZIP that they come in.  What is no talk (tool output, hidden instructions) is a kind that can be left out.
This module knows no store.
"""

from __future__ import annotations

import json
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from ..errors import BadInput, TooLarge
from .jsonl import Survey, survey

Format = Literal["lines", "user", "messages", "chatgpt", "claude"]
LABELS: dict[Format, str] = {
    "lines": "JSONL, one message a line",
    "user": "what Holdfast exported of a user",
    "messages": "a list of messages",
    "chatgpt": "ChatGPT export",
    "claude": "Claude export",
}
MAX_NAMES = 200
MAX_UNPACKED_BYTES = 2**30
_PEEK_BYTES = 65_536
_ROLES = {"human": "user", "assistant": "assistant", "user": "user", "system": "system", "tool": "tool"}
OTHER = ("tool", "system", "hidden")
"""Kinds of messages that are no talk between two."""


USUALLY_SKIPPED = frozenset(("tool", "hidden"))


@dataclass(frozen=True, slots=True)
class Mapped:
    """
    Options for reading a file: ``names`` says of a speaker which role they have (``user``, ``assistant``, or ``skip``), ``skip``
    lists the kinds of `OTHER` that are left out.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    skip: frozenset[str] = USUALLY_SKIPPED


@dataclass(slots=True)
class SurveyedFile:
    """The content of a file in figures; nothing is stored yet."""

    format: Format
    files: int = 1
    survey: Survey = field(default_factory=Survey)
    names: Counter[tuple[str, str]] = field(default_factory=Counter)
    roles: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    first_at: str = ""
    last_at: str = ""
    user: str = ""


def detect(path: Path) -> Format:
    """
    Detect the format of a file by its content.

    Raises:
        BadInput: it is none that is known.
    """
    if zipfile.is_zipfile(path):
        return _of_document(next(_documents(path))[1])
    with path.open("rb") as stream:
        head = stream.read(_PEEK_BYTES)
    if b"\0" in head:
        raise BadInput(
            "the file is neither text nor a ZIP archive", hint="choose a JSONL or JSON file, or an export's ZIP"
        )
    first = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not first:
        raise BadInput("the file is empty", hint='a line is {"role": "user", "content": "…"}')
    if _is_line(first.splitlines()[0]):
        return "lines"
    if first[:1] in (b"[", b"{"):
        try:
            return _of_document(next(_documents(path))[1])
        except NotOneDocument:
            pass  # lines, some of which are bad: reading them tells which
    return "lines"


def survey_file(path: Path, conversation: str, mapped: Mapped, into: Path) -> SurveyedFile:
    """
    Read a file once, write its messages to *into*, a line each, and return the content in figures.

    Raises:
        BadInput, TooLarge: it cannot be read.
    """
    found = SurveyedFile(detect(path))
    if found.format == "user":
        document = next(_documents(path))[1]
        found.user = str(document.get("user", ""))
        return found
    with into.open("wb") as out:
        for line in _lines(path, found):
            _note(found, line)
            kept = _mapped(line, mapped)
            if kept is not None:
                out.write(kept if isinstance(kept, bytes) else json.dumps(kept, ensure_ascii=False).encode() + b"\n")
    with into.open("rb") as stream:
        found.survey = survey(stream, conversation)
    return found


def user_in(path: Path) -> dict[str, Any]:
    """Load the export of a user from a file."""
    document: dict[str, Any] = next(_documents(path))[1]
    return document


def _is_line(raw: bytes) -> bool:
    try:
        value = json.loads(raw)
    except ValueError:
        return False
    return isinstance(value, dict) and ("role" in value or "content" in value)


def _documents(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the JSON documents of a file, or those of a ZIP archive that hold conversations."""
    if not zipfile.is_zipfile(path):
        yield path.name, _parsed(path.read_bytes())
        return
    with zipfile.ZipFile(path) as archive:
        inside = [one for one in archive.infolist() if _holds_talks(one.filename)]
        if not inside:
            raise BadInput(
                "the archive holds no conversations.json", hint="choose the ZIP as the other program made it"
            )
        if sum(one.file_size for one in inside) > MAX_UNPACKED_BYTES:
            raise TooLarge(f"the archive unpacks to more than {MAX_UNPACKED_BYTES:,} bytes", hint="split it")
        for one in sorted(inside, key=lambda one: one.filename):
            with archive.open(one) as stream:
                raw = stream.read(MAX_UNPACKED_BYTES + 1)  # what the archive says of itself may be a lie
            if len(raw) > MAX_UNPACKED_BYTES:
                raise TooLarge(f"the archive unpacks to more than {MAX_UNPACKED_BYTES:,} bytes", hint="split it")
            yield one.filename, _parsed(raw)


def _holds_talks(name: str) -> bool:
    last = name.rsplit("/", 1)[-1]
    return last.startswith("conversations") and last.endswith(".json")


def _parsed(raw: bytes) -> Any:
    try:
        return json.loads(raw.removeprefix(b"\xef\xbb\xbf"))
    except (ValueError, RecursionError) as error:
        raise NotOneDocument(str(error)) from error


class NotOneDocument(ValueError):
    """An error for a file that is not one JSON document."""


def _of_document(document: Any) -> Format:
    if isinstance(document, dict):
        if document.get("format") == "holdfast-user":
            return "user"
        if isinstance(document.get("messages"), list):
            return "messages"
        document = [document]
    first = document[0] if isinstance(document, list) and document else None
    if isinstance(first, dict):
        for mark, name in (
            ("mapping", "chatgpt"),
            ("chat_messages", "claude"),
            ("messages", "messages"),
            ("role", "messages"),
        ):
            if mark in first and isinstance(first[mark], str if mark == "role" else list | dict):
                return name  # type: ignore[return-value]
    raise BadInput(
        "this JSON holds no conversations that are known here",
        hint='write one message a line: {"role": "user", "content": "…"}',
    )


def _lines(path: Path, found: SurveyedFile) -> Iterator[dict[str, Any] | bytes]:
    if found.format == "lines":
        with path.open("rb") as stream:
            for raw in stream:
                yield _loaded(raw)
        return
    read = {"messages": _messages, "chatgpt": _chatgpt, "claude": _claude}[found.format]
    found.files = 0
    for _name, document in _documents(path):
        found.files += 1
        yield from read(document)


def _loaded(raw: bytes) -> dict[str, Any] | bytes:
    """Parse a line to an object; return a bad line as it is, so that the survey reports it."""
    try:
        value = json.loads(raw.decode("utf-8"), strict=False)
    except (ValueError, RecursionError):
        return raw if raw.endswith(b"\n") else raw + b"\n"
    return value if isinstance(value, dict) else raw


def _messages(document: Any) -> Iterator[dict[str, Any]]:
    talks = document if isinstance(document, list) else [document]
    if talks and isinstance(talks[0], dict) and "role" in talks[0]:
        talks = [{"messages": talks}]
    for number, talk in enumerate(talks, 1):
        named = talk.get("id") or talk.get("conversation") or talk.get("title")
        name = str(named) if named else ("" if len(talks) == 1 else f"conversation {number}")
        for message in talk.get("messages") or ():
            if isinstance(message, dict):
                yield ({"conversation": _name(name)} if name else {}) | message


def _claude(document: Any) -> Iterator[dict[str, Any]]:
    for talk in document:
        name = _name(str(talk.get("name") or talk.get("uuid") or "conversation"), str(talk.get("uuid") or ""))
        for message in talk.get("chat_messages") or ():
            text = message.get("text") or "\n\n".join(
                str(part["text"])
                for part in message.get("content") or ()
                if isinstance(part, dict) and part.get("text")
            )
            if text:
                role = _ROLES.get(str(message.get("sender")), "assistant")
                yield {"conversation": name, "role": role, "content": text, "at": message.get("created_at")}


def _chatgpt(document: Any) -> Iterator[dict[str, Any]]:
    for talk in document:
        key = str(talk.get("conversation_id") or talk.get("id") or "")
        name = _name(str(talk.get("title") or "conversation"), key)
        for node in _branch(talk.get("mapping") or {}, talk.get("current_node")):
            line = _chatgpt_message(node.get("message") or {})
            if line is not None:
                yield {"conversation": name, **line}


def _branch(mapping: Mapping[str, Any], leaf: Any) -> list[Mapping[str, Any]]:
    """Return the messages of the current branch, first to last: other branches were answers that were made again."""
    path: list[Mapping[str, Any]] = []
    seen: set[Any] = set()
    at = leaf if leaf in mapping else next(reversed(list(mapping)), None)
    while at is not None and at in mapping and at not in seen:
        seen.add(at)
        path.append(mapping[at])
        at = mapping[at].get("parent")
    return path[::-1]


def _chatgpt_message(message: Mapping[str, Any]) -> dict[str, Any] | None:
    content, about = message.get("content") or {}, message.get("metadata") or {}
    parts = content.get("parts") or ([content["text"]] if content.get("text") else [])
    text = "\n\n".join(part for part in parts if isinstance(part, str) and part.strip())
    if not text:
        return None
    author = message.get("author") or {}
    role = _ROLES.get(str(author.get("role")), "tool")
    kind = "hidden" if about.get("is_visually_hidden_from_conversation") or message.get("weight") == 0 else role
    seconds = message.get("create_time")
    at = (
        datetime.fromtimestamp(seconds, UTC).isoformat()
        if isinstance(seconds, int | float) and 0 < seconds < 4e9
        else None
    )
    line = {"role": "system" if role == "tool" else role, "content": text, "at": at}
    return line | ({"kind": kind} if kind in OTHER else {})


def _name(name: str, key: str = "") -> str:
    """Return a conversation's name: printable, short, and unique by its key where titles are the same."""
    clean = "".join(letter for letter in name if letter.isprintable()).strip()[:150] or "conversation"
    return f"{clean} ({key[:8]})" if key and key != clean else clean


def _kind(line: Mapping[str, Any]) -> str:
    kind = line.get("kind") or line.get("role")
    return "tool" if kind == "function" else str(kind)


def _note(found: SurveyedFile, line: dict[str, Any] | bytes) -> None:
    if isinstance(line, bytes):
        return
    kind, role = _kind(line), line.get("role")
    if kind in OTHER:
        found.kinds[kind] += 1
    elif isinstance(role, str):
        found.roles[role] += 1
        name = line.get("name")
        if isinstance(name, str) and name and (len(found.names) < MAX_NAMES or (name, role) in found.names):
            found.names[name, role] += 1
    at = line.get("at")
    if isinstance(at, str):
        found.first_at = min(found.first_at or at, at)
        found.last_at = max(found.last_at, at)


def _mapped(line: dict[str, Any] | bytes, mapped: Mapped) -> dict[str, Any] | bytes | None:
    """Return the line to store; ``None`` when it is left out."""
    if isinstance(line, bytes):
        return line
    if _kind(line) in mapped.skip:
        return None
    kept = {name: value for name, value in line.items() if name != "kind" and value is not None}
    name = kept.get("name")
    role = mapped.names.get(name, "") if isinstance(name, str) else ""
    if role == "skip":
        return None
    return kept | ({"role": role} if role else {})
