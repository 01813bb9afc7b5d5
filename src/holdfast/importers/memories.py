"""
Memories of other programs: mem0, Zep, LiteLLM, Claude, files of Markdown, and typed facts of a chatbot of one's own.

Each becomes a fact: read by the patterns where they read it, kept as a sentence otherwise.  This module knows no store.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from ..text import expression
from ..types import LABELS
from .items import DamagedItem, ImportedMemory, Item, LeftOut, Place, guarded, memory_item, read_each, time_of

_FRONT_MATTER = expression(r"---[ \t]*\r?\n(?P<fields>.*?)\r?\n---[ \t]*(?:\r?\n|$)(?P<body>.*)", re.DOTALL)
_BULLET = expression(r"\s*(?:[-*+•]|\d+[.)])\s+(?:\[[ xX]\]\s+)?(?P<text>.+)")
_HEADING = expression(r"\s{0,3}#{1,6}\s+(?P<text>.+?)\s*#*\s*|(?P<bold>\*\*[^*]+\*\*):?\s*")
_SENTENCE = expression(r"(?:is|am|are|has|i|i'm|my|\w+s) |.*[.!]$", re.IGNORECASE)
_LINK_ONLY = expression(r"\[[^\]]*\]\([^)]*\)(?:\s*[-–—:].*)?")
_MARKUP = expression(r"\*\*|__|`")
MIN_SENTENCE_WORDS = 3


def read_mem0(place: Place, document: Any) -> Iterator[Item]:
    """Read what mem0's ``get_all`` returns, from the library or the platform, or its memories as a list."""
    for key in ("results", "memories"):
        if isinstance(document, Mapping) and key in document:
            place, document = (*place, key), document[key]
    yield from read_each(place, document, read_mem0_memory, "memory")


def read_mem0_memory(place: Place, row: Any) -> Iterator[Item]:
    """Read one memory of mem0; one that expired is left out."""
    expires = row.get("expiration_date")
    if expires and datetime.fromisoformat(str(expires)[:10]).replace(tzinfo=UTC) < datetime.now(UTC):
        yield LeftOut(place, "a memory that has expired")
        return
    text = row["memory"] if "memory" in row else row["data"]
    owner = row.get("user_id") or row.get("agent_id") or row.get("run_id") or ""
    at = time_of(row.get("updated_at")) or time_of(row.get("created_at"))
    yield memory_item(place, text, id=str(row.get("id") or ""), at=at, of=str(owner))


def read_memories(place: Place, document: Any) -> Iterator[Item]:
    """Read memories as many extractors answer them: a list of objects with ``content``, ``category``, and ``confidence``."""
    if isinstance(document, Mapping) and "memories" in document:
        place, document = (*place, "memories"), document["memories"]
    yield from read_each(place, document if isinstance(document, list) else [document], read_memory, "memory")


def read_memory_lines(place: Place, raw: bytes) -> Iterator[Item]:
    """Read such memories, one a line."""
    for number, line in enumerate(raw.decode("utf-8-sig").splitlines(), 1):
        if line.strip():
            yield from guarded(
                (*place, "line", number), line, lambda at, one: read_memory(at, json.loads(one)), "memory"
            )


def read_memory(place: Place, row: Any) -> Iterator[Item]:
    """Read one memory; its category becomes the label if it is one of the six, its source is where it was extracted."""
    source = row.get("source") if isinstance(row.get("source"), Mapping) else {}
    at = time_of(source.get("extractedAt") or row.get("extractedAt") or row.get("created_at"))
    label = str(row.get("category") or "").strip().casefold()
    sure = _confidence(row.get("confidence"))
    if sure is None:
        yield DamagedItem(
            place, f"its confidence is {row['confidence']!r:.40}", "write a number from 0 to 1, or per cent"
        )
        return
    owner = str(row.get("userId") or row.get("user_id") or "")
    known = label if label in LABELS else ""
    ours = {"id": str(row.get("id") or ""), "at": at, "of": owner, "confidence": sure, "label": known}
    yield memory_item(place, row["content"], **ours)


def names_facts(columns: Iterable[str]) -> bool:
    """Whether columns are those of typed facts: ``category,fact_key,fact_value``, with or without ``fact_``."""
    names = {name.strip().casefold().removeprefix("fact_") for name in columns}
    return {"category", "key", "value"} <= names


def read_fact_rows(place: Place, document: Any) -> Iterator[Item]:
    """Read typed facts: a list of objects with ``category``, ``fact_key`` and ``fact_value``."""
    if isinstance(document, Mapping) and "facts" in document:
        place, document = (*place, "facts"), document["facts"]
    yield from read_each(place, document if isinstance(document, list) else [document], read_fact_row, "fact")


def read_fact_csv(place: Place, raw: bytes) -> Iterator[Item]:
    """Read typed facts as CSV; the first line names the columns."""
    rows = csv.DictReader(io.StringIO(raw.decode("utf-8-sig")))
    for row in rows:
        yield from guarded((*place, "line", rows.line_num), row, read_fact_row, "fact")


def read_fact_row(place: Place, row: Any) -> Iterator[Item]:
    """Read one typed fact; of several rows at one address the newest holds."""
    fields = {str(name).strip().casefold().removeprefix("fact_"): value for name, value in row.items() if name}
    category, key, value = (
        str(fields[name] if fields[name] is not None else "").strip() for name in ("category", "key", "value")
    )
    if not (category and key and value):
        yield LeftOut(place, "a fact without category, key or value")
        return
    sure = _confidence(fields.get("confidence") or None)
    if sure is None:
        yield DamagedItem(
            place, f"its confidence is {fields['confidence']!r:.40}", "write a number from 0 to 1, or per cent"
        )
        return
    at = time_of(fields.get("updated_at") or fields.get("created_at"))
    owner = str(fields.get("user_id") or fields.get("session_id") or "")
    number = str(fields.get("id") or "")
    yield ImportedMemory(place, "", id=number, at=at, of=owner, address=(category, key, value), confidence=sure)


def _confidence(given: Any) -> float | None:
    """Return a confidence from 0 to 1, None for no number: none given is 1, text is read as a number, over 1 it is per cent."""
    try:
        sure = 1.0 if given is None else float("" if isinstance(given, bool) else given)
    except (TypeError, ValueError):
        return None
    return (sure / 100 if sure > 1 else sure) if 0 <= sure <= 100 else None


def read_zep(place: Place, document: Any) -> Iterator[Item]:
    """Read facts of a Zep graph: edges, of which those that no longer hold are left out."""
    for key in ("edges", "facts", "relevant_facts"):
        if isinstance(document, Mapping) and key in document:
            place, document = (*place, key), document[key]
    yield from read_each(place, document, _zep_edge, "fact")


def _zep_edge(place: Place, edge: Any) -> Iterator[Item]:
    ended = edge.get("invalid_at") or edge.get("expired_at")
    if ended:
        yield LeftOut(place, "a fact that no longer holds")
        return
    at = time_of(edge.get("valid_at")) or time_of(edge.get("created_at"))
    key, owner = edge.get("uuid") or edge.get("uuid_"), edge.get("user_uuid") or edge.get("user_id")
    yield memory_item(place, edge["fact"], id=str(key or ""), at=at, of=str(owner or ""))


def read_litellm(place: Place, document: Any) -> Iterator[Item]:
    """Read the rows of LiteLLM's memory table, as ``GET /v1/memory`` lists them."""
    if isinstance(document, Mapping):
        place, document = (*place, "memories"), document["memories"]

    def read(where: Place, row: Any) -> Iterator[Item]:
        owner = str(row.get("user_id") or row.get("team_id") or "")
        at, key = time_of(row.get("updated_at") or row.get("created_at")), str(row.get("memory_id") or row["key"])
        text = _lines_apart(row["value"])
        for item in markdown_items(where, text, at=at, of=owner, title=str(row["key"]), id=key):
            yield replace(item, place=(*item.place[:-1], (int(item.place[-1]) + 1) // 2))

    yield from read_each(place, document, read, "memory")


def _lines_apart(text: Any) -> Any:
    """Return a text whose lines are paragraphs, at twice their number: a memory of LiteLLM has one sentence a line."""
    return text.replace("\n", "\n\n") if isinstance(text, str) else text


def read_claude_memories(place: Place, document: Any) -> Iterator[Item]:
    """Read the ``memories.json`` of a Claude export: what Claude wrote down about the user, and about each project."""

    def read(where: Place, account: Any) -> Iterator[Item]:
        owner = str(account.get("account_uuid") or "")
        general = account.get("conversations_memory")
        if general:
            yield from markdown_items((*where, "conversations_memory"), general, of=owner)
        for project, text in (account.get("project_memories") or {}).items():
            yield from markdown_items((*where, "project_memories", project), text, of=owner)

    yield from read_each(place, document if isinstance(document, list) else [document], read, "memory")


def markdown_items(
    place: Place, text: Any, *, title: str = "", id: str = "", at: datetime | None = None, of: str = ""
) -> Iterator[Item]:
    """
    Read the sentences of Markdown: a bullet or a paragraph is a memory.

    A bullet of one or two words gets the heading above it: "Dark mode" under "Preferences" is "Preferences: Dark mode".
    """
    if not isinstance(text, str):
        raise TypeError("the text of a memory")
    heading, paragraph, fenced, number = title, list[tuple[int, str]](), False, 0

    def memory(line: int, words: str) -> Iterator[Item]:
        nonlocal number
        words = _MARKUP.sub("", words).strip()
        where = (*place, "line", line)
        if _LINK_ONLY.fullmatch(words):
            yield LeftOut(where, "a link to another file")
            return
        if heading and len(words.split()) < MIN_SENTENCE_WORDS and not _SENTENCE.match(words):
            words = f"{heading}: {words}"
        number += 1
        yield memory_item(where, words, id=f"{id}:{number}" if id else "", at=at, of=of)

    def flush() -> Iterator[Item]:
        if paragraph:
            yield from memory(paragraph[0][0], " ".join(words.strip() for _line, words in paragraph))
            paragraph.clear()

    for line, words in enumerate(text.splitlines(), 1):
        if words.lstrip().startswith("```"):
            yield from flush()
            fenced = not fenced
            if fenced:
                yield LeftOut((*place, "line", line), "a block of code")
            continue
        if fenced:
            continue
        if words.lstrip().startswith(">"):
            yield from flush()
            yield LeftOut((*place, "line", line), "a quote")
            continue
        head, bullet = _HEADING.fullmatch(words), _BULLET.fullmatch(words)
        if head is not None or bullet is not None or not words.strip():
            yield from flush()
        if head is not None:
            heading = _MARKUP.sub("", head["text"] or head["bold"]).rstrip(":")
        elif bullet is not None:
            paragraph.append((line, bullet["text"]))
        elif words.strip():
            paragraph.append((line, words))
    yield from flush()


def front_matter(text: str) -> tuple[dict[str, str], str, int]:
    """Return the plain fields of a file's front matter, the text behind it, and the number of lines before that text."""
    found = _FRONT_MATTER.match(text.removeprefix("\ufeff"))
    if found is None:
        return {}, text, 0
    fields = {}
    for line in found["fields"].splitlines():
        key, colon, value = line.partition(":")
        if colon and value.strip():
            fields[key.strip()] = _unquoted(value.strip())
    return fields, found["body"], found.string[: found.start("body")].count("\n")


def _unquoted(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] == '"':
        return value[1:-1].replace('\\"', '"').replace("\\\\", "\\")
    return value[1:-1].replace("''", "'") if len(value) >= 2 and value[0] == value[-1] == "'" else value


def read_markdown(place: Place, raw: bytes) -> Iterator[Item]:
    """Read one file of Markdown: Claude Code's memory, a CLAUDE.md, or a concept of an OKF bundle."""
    fields, body, skipped = front_matter(raw.decode("utf-8"))
    at = next((time for key in ("timestamp", "date", "updated", "created") if (time := _time(fields.get(key)))), None)
    address = (fields.get("category", ""), fields.get("key", ""), fields.get("value", ""))
    if all(address):  # a fact that Holdfast wrote
        if fields.get("status", "active") != "active":
            yield LeftOut(place, "a fact that no longer holds")
            return
        yield memory_item(place, fields.get("title") or address[2], id=fields.get("id", ""), at=at, address=address)
        return

    def read(where: Place, text: str) -> Iterator[Item]:
        for item in markdown_items(where, text, title=fields.get("title") or fields.get("name") or "", at=at):
            yield replace(item, place=(*item.place[:-1], int(item.place[-1]) + skipped))

    yield from guarded(place, body, read, "file of Markdown")


def _time(value: str | None) -> datetime | None:
    try:
        return time_of(value)
    except ValueError:
        return None
