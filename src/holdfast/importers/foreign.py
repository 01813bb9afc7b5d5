"""
The formats of other programs' files: detected by content, and read as the lines of `jsonl` and as memories.

A file is one file, the ZIP archive that an export comes in, or a folder.  What is no talk (tool output, hidden
instructions) is a kind that can be left out, and all that is left out is counted with its reason and its place.
This module knows no store.
"""

from __future__ import annotations

import csv
import json
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import IO, Any, Literal

from ..errors import BadInput, TooLarge
from ..text import dataclass
from .assistants import read_chatgpt, read_claude, read_librechat, read_messages, read_openwebui
from .databases import DATABASES, SQLITE_MAGIC, holds_typed_facts, read_faiss, read_typed_facts, tables_of
from .decode import unpickle
from .items import (
    NOBODY,
    OTHER_PERSON,
    DamagedItem,
    ImportedMemory,
    ImportedMessage,
    Item,
    LeftOut,
    Place,
    guarded,
    lines_in_json,
    show_place,
)
from .jsonl import ROLES, BadLine, Survey, problem_of, survey
from .memories import (
    front_matter,
    names_facts,
    read_claude_memories,
    read_fact_csv,
    read_fact_rows,
    read_litellm,
    read_markdown,
    read_mem0,
    read_memories,
    read_memory_lines,
    read_zep,
)
from .people import SLACK_DAY, is_whatsapp, read_discord, read_slack, read_telegram, read_whatsapp
from .portable import read_omi, read_omi_lines, read_pam, read_pam_conversation

Format = Literal[
    "lines",
    "user",
    "messages",
    "chatgpt",
    "claude",
    "claude-memories",
    "openwebui",
    "openwebui-db",
    "librechat",
    "discord",
    "telegram",
    "whatsapp",
    "slack",
    "mem0",
    "mem0-history",
    "mem0-qdrant",
    "mem0-faiss",
    "zep",
    "litellm",
    "langchain",
    "langgraph-store",
    "langgraph-checkpoints",
    "openai-agents",
    "pam",
    "omi",
    "okf",
    "markdown",
    "memories",
    "facts",
]
LABELS: dict[Format, str] = {
    "lines": "JSONL, one message a line",
    "user": "what Holdfast exported of a user",
    "messages": "a list of messages",
    "chatgpt": "ChatGPT export",
    "claude": "Claude export",
    "claude-memories": "Claude memories",
    "openwebui": "Open WebUI export",
    "openwebui-db": "Open WebUI database",
    "librechat": "LibreChat export",
    "discord": "Discord channel (DiscordChatExporter)",
    "telegram": "Telegram export",
    "whatsapp": "WhatsApp chat",
    "slack": "Slack export",
    "mem0": "mem0 memories",
    "mem0-history": "mem0 history database",
    "mem0-qdrant": "mem0 vector store (Qdrant)",
    "mem0-faiss": "mem0 vector store (FAISS)",
    "zep": "Zep facts",
    "litellm": "LiteLLM memory",
    "langchain": "LangChain message table",
    "langgraph-store": "LangGraph store",
    "langgraph-checkpoints": "LangGraph checkpoints",
    "openai-agents": "OpenAI Agents sessions",
    "pam": "Portable AI Memory (PAM)",
    "omi": "Open Memory Interchange (OMI)",
    "okf": "Open Knowledge Format bundle (OKF)",
    "markdown": "Markdown memory files",
    "memories": "memories with content, category and confidence",
    "facts": "typed facts with category, key and value",
}
PEOPLE: frozenset[Format] = frozenset(("discord", "telegram", "whatsapp", "slack"))
MAX_NAMES = 200
MAX_UNPACKED_BYTES = 2**30
MAX_ENTRIES = 100_000
MAX_LOCATED_BYTES = 50_000_000
_PEEK_BYTES = 65_536
_SPLIT_LINES = 20_000
_TOLD_ITEMS = 500
OTHER = ("tool", "system", "hidden")
"""Kinds of messages that are no talk between two."""
_KIND_WORDS = {"tool": "tool output", "system": "a system message", "hidden": "hidden in the other program"}


_OF_NOBODY = (
    f'it does not say whose memory it is: import the vector store, or add --from-user "{NOBODY}" if all are of one user'
)

USUALLY_SKIPPED = frozenset(("tool", "hidden"))


@dataclass(frozen=True, slots=True)
class Mapped:
    """
    Options for reading a file: ``names`` says of a speaker which role they have (``user``, ``assistant``, or ``skip``), ``skip``
    lists the kinds of `OTHER` that are left out, ``day_first`` how ambiguous dates are written, ``zone`` where times without a
    zone are from, and ``of`` the user of the other program whose content is taken; ``None`` takes all.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    skip: frozenset[str] = USUALLY_SKIPPED
    day_first: bool | None = None
    zone: tzinfo = UTC
    of: str | None = None


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
    users: Counter[str] = field(default_factory=Counter)
    """The users of the other program, with what there is of each."""
    memories: list[ImportedMemory] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    """The place of each line that was written."""
    part: Format = "lines"
    """The kind of the part that is being read."""
    strangers: set[Format] = field(default_factory=set)
    """The kinds in which someone talks of whom nobody has said who they are."""
    spoken: set[Format] = field(default_factory=set)
    """The kinds in which the user talks."""
    owners: list[str] = field(default_factory=list)
    """The user of the other program whose line it is, in the same order."""
    lines: dict[Place, int] = field(default_factory=dict)
    """The line in its file, of places that are reported."""
    single: bool = False
    """Whether it is one file, so that its name need not be repeated."""

    @property
    def unassigned(self) -> bool:
        """Whether several people talk here, and none of them is known to be the user."""
        if self.format in PEOPLE and self.roles[OTHER_PERSON] and not self.roles["user"]:
            return True
        return bool(self.strangers - self.spoken)

    def where(self, place: Place) -> str:
        """Return a place as users read it, after the name of what is imported."""
        line = self.lines.get(place)
        if not self.single:
            return ": " + show_place(place, line)
        return f":{line}" if line is not None else show_place(place).removeprefix(str(place[0])) or ""

    def bad_line(self, place: Place, problem: str, fix: str) -> BadLine:
        """Return a problem with the item at a place."""
        line = self.lines.get(place)
        if self.single and line is not None:
            return BadLine(line, problem, fix)
        return BadLine(0, f"{self.where(place).lstrip(': ')}: {problem}", fix)

    @property
    def backwards_from(self) -> str:
        """The place of the first line that is older than the one before it, after the name of what is imported."""
        return self.where(self.places[self.survey.backwards_at - 1]) if self.survey.backwards_at else ""

    def reasons(self) -> Counter[str]:
        """Count what is left out by its reason."""
        return Counter(one.why for one in self.left_out)


class Source:
    """A file, an archive, or a folder; its texts by name."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_archive = path.is_file() and zipfile.is_zipfile(path)

    def names(self) -> list[str]:
        """Return the names of all files in it, sorted."""
        if self.path.is_dir():
            found = [one for one in self.path.rglob("*") if one.is_file() and not one.is_symlink()]
            return sorted(one.relative_to(self.path).as_posix() for one in found)
        if not self.is_archive:
            return [self.path.name]
        with zipfile.ZipFile(self.path) as archive:
            inside = [one for one in archive.infolist() if not one.is_dir() and "__MACOSX" not in one.filename]
            if len(inside) > MAX_ENTRIES:
                raise TooLarge(f"the archive holds more than {MAX_ENTRIES:,} files", hint="split it")
            if sum(one.file_size for one in inside if one.filename.lower().endswith(_READ)) > MAX_UNPACKED_BYTES:
                raise TooLarge(f"the archive unpacks to more than {MAX_UNPACKED_BYTES:,} bytes", hint="split it")
            return sorted(one.filename for one in inside)

    def read(self, name: str) -> bytes:
        """Return the bytes of one file."""
        if not self.is_archive:
            with self.real_path(name).open("rb") as stream:
                return _bounded(stream)
        with zipfile.ZipFile(self.path) as archive, archive.open(name) as stream:
            return _bounded(stream)

    def real_path(self, name: str) -> Path:
        """Return the path of one file, which is in no archive."""
        return self.path / name if self.path.is_dir() else self.path

    def load(self, name: str) -> Any:
        """
        Return the JSON document of one file.

        Raises:
            NotOneDocument: it is none.
        """
        return _parsed(self.read(name), name)


_READ = (".json", ".jsonl", ".txt", ".md", ".markdown")


def _bounded(stream: IO[bytes]) -> bytes:
    raw = stream.read(MAX_UNPACKED_BYTES + 1)  # what an archive says of itself may be a lie
    if len(raw) > MAX_UNPACKED_BYTES:
        raise TooLarge(f"the archive unpacks to more than {MAX_UNPACKED_BYTES:,} bytes", hint="split it")
    return raw


class NotOneDocument(BadInput):
    """An error for a file that is not one JSON document; it names the line."""


def _parsed(raw: bytes, name: str) -> Any:
    try:
        return json.loads(raw.removeprefix(b"\xef\xbb\xbf"), strict=False)
    except json.JSONDecodeError as error:
        problem = f"line {error.lineno}: it is not JSON: {error.msg.lower()} at column {error.colno}"
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        problem = f"line {line}: it is not UTF-8"
    except (ValueError, RecursionError):
        problem = "it is JSON that cannot be kept"
    raise NotOneDocument(f"{name}, {problem}", hint="export it again, or mend that line")


# By what a document holds

Reader = Callable[[Place, Any], Iterator[Item]]
_READERS: dict[str, Reader] = {
    "messages": read_messages,
    "chatgpt": read_chatgpt,
    "claude": read_claude,
    "claude-memories": read_claude_memories,
    "openwebui": read_openwebui,
    "librechat": read_librechat,
    "discord": read_discord,
    "telegram": read_telegram,
    "mem0": read_mem0,
    "mem0-faiss": read_faiss,
    "zep": read_zep,
    "litellm": read_litellm,
    "pam": read_pam,
    "omi": read_omi,
    "memories": read_memories,
    "facts": read_fact_rows,
}
_UNKNOWN = "this JSON holds no conversations that are known here"


def _of_document(document: Any) -> Format:
    """
    Return the format of a JSON document.

    Raises:
        BadInput: it is none that is known.
    """
    found = _of_object(document) if isinstance(document, dict) else None
    if found is None and isinstance(document, list):
        first = next((one for one in document if isinstance(one, dict)), None)
        found = _of_element(first) if first is not None else None
    if found is None:
        raise BadInput(_UNKNOWN, hint='write one message a line: {"role": "user", "content": "…"}')
    return found


def _of_object(document: dict[str, Any]) -> Format | None:
    def holds(key: str, kind: type = list) -> bool:
        return isinstance(document.get(key), kind)

    if document.get("format") == "holdfast-user":
        return "user"
    if document.get("format") == "open-memory-interchange":
        return "omi"
    if str(document.get("schema")).startswith("portable-ai-memory"):
        return "pam"
    if holds("channel", dict) and holds("messages"):
        return "discord"
    if holds("chats", dict) or (holds("messages") and {"type", "name", "id"} <= document.keys()):
        return "telegram"
    if "conversationId" in document and (holds("messages") or holds("messagesTree")):
        return "librechat"
    for key in ("results", "memories"):
        if holds(key) and document[key]:
            return _of_element(document[key][0])
    for key in ("edges", "facts", "relevant_facts"):
        if holds(key) and document[key] and "fact" in document[key][0]:
            return "zep"
    if holds("facts") and document["facts"] and names_facts(map(str, document["facts"][0])):
        return "facts"
    if holds("docstore", dict):
        return "mem0-faiss"
    if holds("messages") or (document.get("object") == "list" and holds("data")):
        return "messages"
    return _of_element(document)


def _of_element(first: Any) -> Format | None:
    if not isinstance(first, dict):
        return None
    marks: tuple[tuple[str, type, Format], ...] = (
        ("mapping", dict, "chatgpt"),
        ("chat_messages", list, "claude"),
        ("conversations_memory", str, "claude-memories"),
        ("project_memories", dict, "claude-memories"),
        ("chat", dict, "openwebui"),
        ("memory", str, "mem0"),
        ("fact", str, "zep"),
        ("memory_id", str, "litellm"),
        ("messages", list, "messages"),
        ("role", str, "messages"),
    )
    found: Format | None = next((name for mark, kind, name in marks if isinstance(first.get(mark), kind)), None)
    if found is None and isinstance(first.get("type"), str) and "content" in (first.get("data") or ()):
        return "messages"  # of LangChain's file history
    if found is None and names_facts(map(str, first)):
        return "facts"
    return "memories" if found is None and _is_memory(first) else found


def _is_memory(value: dict[str, Any]) -> bool:
    """Whether an object is a memory with ``content``, and ``category`` or ``confidence``, and no message."""
    said = {"role", "author", "sender", "speaker", "type", "name", "from"} & value.keys()
    named = isinstance(value.get("content"), str) and not said
    return named and ("category" in value or "confidence" in value)


def _is_line(raw: bytes) -> bool:
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and ("role" in value or "content" in value) and not _is_memory(value)


def _is_memory_line(raw: bytes) -> bool:
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and _is_memory(value)


def _names_facts_in_csv(raw: bytes) -> bool:
    """Whether a text begins with the columns of typed facts."""
    columns = raw.lstrip().split(b"\n", 1)[0].decode("utf-8", "replace")
    return not columns.startswith(("[", "{")) and names_facts(next(csv.reader([columns]), []))


def _is_omi_lines(raw: bytes) -> bool:
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and value.get("format") == "open-memory-interchange" and "memories" not in value


# Detecting and reading


def detect(path: Path) -> Format:
    """
    Detect the format of a file, an archive, or a folder by its content.

    Raises:
        BadInput: it is none that is known.
    """
    source = Source(path)
    if path.is_dir() or source.is_archive:
        return next(_parts(source))[0]
    with path.open("rb") as stream:
        head = stream.read(_PEEK_BYTES)
    if head.startswith(SQLITE_MAGIC):
        return next(_parts(source))[0]
    if b"\0" in head and path.suffix.lower() == ".pkl":
        return "mem0-faiss"
    if (problem := problem_of(head)) is not None:
        raise BadInput(problem[0], hint=problem[1])
    first = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not first:
        raise BadInput("the file is empty", hint='a line is {"role": "user", "content": "…"}')
    line = first.splitlines()[0]
    if _is_omi_lines(line):
        return "omi"
    if _is_line(line):
        return "lines"
    if _is_memory_line(line):
        return "memories"
    if is_whatsapp(head.decode("utf-8", "replace")):
        return "whatsapp"
    if _names_facts_in_csv(line):
        return "facts"
    if path.suffix.lower() in (".md", ".markdown"):
        return "markdown"
    if first[:1] in (b"[", b"{"):
        try:
            return _of_document(source.load(path.name))
        except NotOneDocument:
            if line.rstrip() in (b"[", b"{") or b'":' not in line:
                raise  # one document, damaged: the error names the line
    return "lines"  # lines, some of which are bad: reading them tells which


def _parts(
    source: Source, mapped: Mapped | None = None, detected: Format | None = None
) -> Iterator[tuple[Format, Iterator[Item]]]:
    """
    Yield every part of a source that is known, its format first, with the items in it.

    The format that was detected decides for a single file, whatever its name.

    Raises:
        BadInput: there is none.
    """
    mapped = mapped or Mapped()
    names, known = source.names(), False
    if any(SLACK_DAY.fullmatch(name) for name in names):
        yield "slack", read_slack(names, source.load)
        return
    several = len(names) > 1 or source.is_archive or source.path.is_dir()
    bundle = _is_okf(source, names)
    for name in names:
        if bundle and name.rsplit("/", 1)[-1].lower() == "index.md":  # it lists the other files
            continue
        for kind, items in _part(source, name, several, mapped, None if several else detected):
            known = True
            yield ("okf" if bundle and kind == "markdown" else kind), items
    if not known:
        raise BadInput(
            "nothing here is known: no conversations.json, no chat, no memory files",
            hint="choose the file, the ZIP, or the folder as the other program made it",
        )


def _part(
    source: Source, name: str, several: bool, mapped: Mapped, detected: Format | None
) -> Iterator[tuple[Format, Iterator[Item]]]:
    last, place = name.rsplit("/", 1)[-1].lower(), (name,)
    if detected == "markdown" or (detected is None and last.endswith((".md", ".markdown"))):
        reserved = several and last in ("log.md", "license.md", "readme.md")
        if not reserved:
            yield "markdown", guarded(place, source.read(name), read_markdown, "file of Markdown")
    elif detected == "whatsapp" or (detected is None and last.endswith(".txt")):
        raw = source.read(name)
        if is_whatsapp(raw[:_PEEK_BYTES].decode("utf-8", "replace")):
            yield "whatsapp", read_whatsapp(place, raw, day_first=mapped.day_first, zone=mapped.zone)
    elif last.endswith(".pkl") and not source.is_archive and detected in (None, "mem0-faiss"):
        yield "mem0-faiss", guarded(place, source.read(name), _read_pickle, "mem0 store")
    elif not source.is_archive and _begins(source.real_path(name), SQLITE_MAGIC):
        path = source.real_path(name)
        tables = tables_of(path)
        for table, (kind, read) in DATABASES.items():
            if table in tables:
                yield kind, guarded(place, path, read, "database of this kind")  # type: ignore[misc]
        if not tables & DATABASES.keys() and holds_typed_facts(path):
            yield "facts", guarded(place, path, read_typed_facts, "database of typed facts")
        elif not several and not tables & DATABASES.keys():
            raise BadInput("the database is of no program that is known here", hint="the docs list those that are")
    elif last.endswith(".omi.jsonl"):
        yield "omi", guarded(place, source.read(name), read_omi_lines, "file of OMI")
    elif not several or (last.endswith(".json") and not last.startswith(("user.", "users.", "meta."))):
        try:
            raw = source.read(name)
            if not several and _is_omi_lines(raw.removeprefix(b"\xef\xbb\xbf").lstrip().split(b"\n", 1)[0]):
                yield "omi", guarded(place, raw, read_omi_lines, "file of OMI")
                return
            if not several and detected == "facts" and _names_facts_in_csv(raw.removeprefix(b"\xef\xbb\xbf")):
                yield "facts", guarded(place, raw, read_fact_csv, "file of facts")
                return
            if not several and _is_memory_line(raw.removeprefix(b"\xef\xbb\xbf").lstrip().split(b"\n", 1)[0]):
                yield "memories", guarded(place, raw, read_memory_lines, "file of memories")
                return
            document = _parsed(raw, name)
            kind = _of_document(document)
        except BadInput as error:
            if several and error.message == _UNKNOWN:
                return
            raise
        if kind == "pam" and document.get("schema") == "portable-ai-memory-conversation":
            yield kind, guarded(place, document, read_pam_conversation, "conversation")
        elif kind != "user":
            yield kind, guarded(place, document, _READERS[kind], f"file of this kind ({LABELS[kind]})")


def _read_pickle(place: Place, raw: bytes) -> Iterator[Item]:
    yield from read_faiss(place, unpickle(raw))


def _begins(path: Path, mark: bytes) -> bool:
    with path.open("rb") as stream:
        return stream.read(len(mark)) == mark


def _is_okf(source: Source, names: list[str]) -> bool:
    """Whether a folder is a bundle of OKF: every file of Markdown in it says its type."""
    concepts = [name for name in names if name.endswith(".md") and not name.endswith(("index.md", "log.md"))]
    if not concepts or not (source.is_archive or source.path.is_dir()):
        return False
    return all("type" in front_matter(source.read(name).decode("utf-8", "replace"))[0] for name in concepts[:50])


def survey_file(
    path: Path, conversation: str, mapped: Mapped, into: Path, on_item: Callable[[int], None] | None = None
) -> SurveyedFile:
    """
    Read a file once, write its messages to *into*, a line each, and return the content in figures.

    *on_item* is called with the number of items read, now and then.

    Raises:
        BadInput, TooLarge: it cannot be read.
    """
    found = SurveyedFile(detect(path))
    source = Source(path)
    found.single = path.is_file() and not source.is_archive
    if found.format == "user":
        document = source.load(source.names()[0])
        found.user = str(document.get("user", ""))
        return found
    damaged: list[DamagedItem] = []
    with into.open("wb") as out:
        for number, item in enumerate(_items(source, found, mapped), 1):
            if on_item is not None and number % _TOLD_ITEMS == 0:
                on_item(number)
            if isinstance(item, DamagedItem):
                damaged.append(item)
            elif isinstance(item, LeftOut):
                found.left_out.append(item)
            elif item.of == NOBODY != mapped.of:
                found.left_out.append(LeftOut(item.place, _OF_NOBODY))
            else:
                found.users[item.of] += 1
                if mapped.of is not None and item.of != mapped.of:
                    found.left_out.append(LeftOut(item.place, "of another user"))
                elif isinstance(item, ImportedMemory):
                    found.memories.append(item)
                else:
                    _write(found, item, mapped, out)
    with into.open("rb") as stream:
        found.survey = survey(stream, conversation)
    _locate(source, found, damaged)
    if damaged and not (found.survey.messages or found.memories):
        first = damaged[0]
        words = f"the file has an unexpected structure: {found.where(first.place).lstrip(': ')}: {first.problem}"
        raise BadInput(words, hint="choose the file as the other program made it")
    found.survey.bad = [found.bad_line(found.places[bad.number - 1], bad.problem, bad.fix) for bad in found.survey.bad]
    found.survey.bad += [found.bad_line(one.place, one.problem, one.fix) for one in damaged]
    return found


def split_by_user(found: SurveyedFile, lines: Path, folder: Path, conversation: str) -> dict[str, tuple[Path, Survey]]:
    """Write the lines of each user of the other program to a file in *folder*; return it with its survey."""
    files = {owner: folder / f"user-{number}.jsonl" for number, owner in enumerate(found.users)}
    waiting: dict[str, list[bytes]] = {}
    with lines.open("rb") as stream:
        for number, (raw, owner) in enumerate(zip(stream, found.owners, strict=True), 1):
            waiting.setdefault(owner, []).append(raw)
            if number % _SPLIT_LINES == 0 or number == len(found.owners):
                for who, raws in waiting.items():
                    with files[who].open("ab") as out:
                        out.writelines(raws)
                waiting.clear()
    parts = {}
    for owner, path in files.items():
        path.touch()
        with path.open("rb") as stream:
            parts[owner] = (path, survey(stream, conversation))
    return parts


def user_in(path: Path) -> dict[str, Any]:
    """Load the export of a user from a file."""
    source = Source(path)
    document: dict[str, Any] = source.load(source.names()[0])
    return document


def _items(source: Source, found: SurveyedFile, mapped: Mapped) -> Iterator[Item]:
    if found.format == "lines":
        with source.path.open("rb") as stream:
            for number, raw in enumerate(stream, 1):
                yield ImportedMessage((source.path.name, "line", number), _loaded(raw))
        return
    found.files = 0
    for kind, items in _parts(source, mapped, found.format):
        found.files, found.part = found.files + 1, kind
        yield from items


def _loaded(raw: bytes) -> dict[str, Any]:
    """Parse a line to an object; a bad line is kept as it is, so that the survey reports it."""
    try:
        value = json.loads(raw.decode("utf-8"), strict=False) if b"\0" not in raw else None
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {"": raw if raw.endswith(b"\n") else raw + b"\n"}


def _write(found: SurveyedFile, item: ImportedMessage, mapped: Mapped, out: IO[bytes]) -> None:
    """Write a message as a line, or count it as left out."""
    raw = item.line.get("")
    if isinstance(raw, bytes):
        out.write(raw)
        found.places.append(item.place)
        found.owners.append(item.of)
        return
    _note(found, item.line)
    line, why = _mapped(item.line, mapped)
    if line is None:
        found.left_out.append(LeftOut(item.place, why))
        return
    if line.get("role") == "user":
        found.spoken.add(found.part)
    elif item.line.get("role") == OTHER_PERSON and item.line.get("name") not in mapped.names:
        found.strangers.add(found.part)
    if item.line.get("role") == OTHER_PERSON and line.get("role") == "user":
        found.roles["user"] += 1
    out.write(json.dumps(line, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n")
    found.places.append(item.place)
    found.owners.append(item.of)


def _locate(source: Source, found: SurveyedFile, damaged: list[DamagedItem]) -> None:
    """Find the lines of all places that are reported, in the JSON files that they are in."""
    wanted: dict[str, list[Place]] = {}
    places = [one.place for one in found.left_out] + [one.place for one in damaged]
    places += [
        found.places[number - 1]
        for number in (*(bad.number for bad in found.survey.bad), found.survey.backwards_at)
        if number
    ]
    alone = bool(places) and len(source.names()) == 1
    for place in places:
        if str(place[0]).endswith(".json") or (alone and len(place) > 1 and place[-2] != "line"):
            wanted.setdefault(str(place[0]), []).append(place)
        elif len(place) > 2 and place[-2] == "line" and len(place) == 3:
            found.lines[place] = int(place[-1])
    for name, inside in wanted.items():
        try:
            raw = source.read(name)
            if len(raw) > MAX_LOCATED_BYTES or raw.startswith(SQLITE_MAGIC):
                continue
            lines = lines_in_json(raw.removeprefix(b"\xef\xbb\xbf"), [place[1:] for place in inside])
        except (BadInput, OSError, ValueError, IndexError):
            continue  # a place is reported by its keys then
        found.lines.update({(name, *place): line for place, line in lines.items()})


def _kind(line: Mapping[str, Any]) -> str:
    kind = line.get("kind") or line.get("role")
    return "tool" if kind == "function" else str(kind)


def _note(found: SurveyedFile, line: Mapping[str, Any]) -> None:
    kind, role = _kind(line), line.get("role")
    if kind in OTHER:
        found.kinds[kind] += 1
    elif isinstance(role, str) and role in (*ROLES, OTHER_PERSON):
        found.roles[role] += 1
        name = line.get("name")
        if isinstance(name, str) and name and (len(found.names) < MAX_NAMES or (name, role) in found.names):
            found.names[name, role] += 1
    at = line.get("at")
    if isinstance(at, str) and _is_time(at):
        found.first_at = min(found.first_at or at, at)
        found.last_at = max(found.last_at, at)


def _is_time(text: str) -> bool:
    try:
        return 1 < datetime.fromisoformat(text).year < 9999
    except ValueError:
        return False


def _mapped(line: Mapping[str, Any], mapped: Mapped) -> tuple[dict[str, Any] | None, str]:
    """Return the line to store; ``None``, with the reason, when it is left out."""
    if _kind(line) in mapped.skip:
        return None, _KIND_WORDS.get(_kind(line), "left out as you asked")
    kept = {name: value for name, value in line.items() if name != "kind" and value is not None}
    if "content" in line and line["content"] is None and not line.get("tool_calls"):
        kept["content"] = None  # the survey names it
    name = kept.get("name")
    role = mapped.names.get(name, "") if isinstance(name, str) else ""
    if role == "skip":
        return None, "of a speaker who is left out"
    if not role and kept.get("role") == OTHER_PERSON:
        role = "assistant"  # whoever is not the user: nothing is learned of the user from their words
    return kept | ({"role": role} if role else {}), ""
