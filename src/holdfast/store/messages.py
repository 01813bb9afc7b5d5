"""
Stores of plain messages, in memory or as one JSON file for each session: append, load and clear, by session.

They hold the messages and nothing else: no facts, no search.  `strategies` choose from them what a model sees, and
`with_memory` wraps a model around one of them.

A JSON file is written whole, next to the old one, and renamed over it: a reader sees the messages before a write or
those after it, at any moment and after any crash.  That makes an append as long as the session; for long conversations
there is `Memory`.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from ..clock import Clock, from_ms, to_ms, utc_now
from ..errors import BadInput, StoreCorrupt, StoreError, StoreFull, StoreReadOnly, StoreTooNew
from ..text import expression
from ..text.terms import MESSAGE_OVERHEAD_TOKENS, count_tokens
from ..text.validate import MessageLike, checked_messages
from ..types import Message, RollingSummary
from .filelock import locked

MAX_MESSAGE_CHARS = 4_000_000


class MessageLog(Protocol):
    """
    The messages of sessions, to append and load.  Safe to call from any thread.

    A session is any text but the empty one; two that differ in one code point never meet.
    """

    def append(self, session: str, message_or_messages: MessageLike | Sequence[MessageLike]) -> None:
        """Store one message, or a list of them as a whole, after those that are there."""

    def load(self, session: str) -> list[Message]:
        """Return all messages of the session, oldest first, numbered from 1; none when there is no such session."""


class MessageStore(MessageLog, Protocol):
    """A log that can forget: three operations, keyed by a session."""

    def clear(self, session: str) -> None:
        """Forget the session, with its summary; nothing happens when there is none."""


@runtime_checkable
class KeepsSummaries(Protocol):
    """A message store that can also keep the rolling summary of a session."""

    def load_summary(self, session: str) -> RollingSummary | None:
        """Return the summary that was kept last, if any."""

    def save_summary(self, session: str, summary: RollingSummary) -> None:
        """Keep *summary* instead of the one before, unless that reaches further."""


class InMemoryMessages:
    """Sessions in this process, gone when it ends: for tests and short talks."""

    def __init__(self, *, clock: Clock | None = None) -> None:
        self._clock = clock or utc_now
        self._lock = threading.Lock()
        self._messages: dict[str, list[Message]] = {}
        self._summaries: dict[str, RollingSummary] = {}

    def append(self, session: str, message_or_messages: MessageLike | Sequence[MessageLike]) -> None:
        """See `MessageLog.append`; raises `BadInput` when one cannot be used, and stores none then."""
        new = incoming(message_or_messages, self._clock)
        with self._lock:
            there = self._messages.setdefault(checked_session(session), [])
            there += numbered(new, session, len(there) + 1)

    def load(self, session: str) -> list[Message]:
        """See `MessageLog.load`."""
        with self._lock:
            return list(self._messages.get(checked_session(session), ()))

    def clear(self, session: str) -> None:
        """See `MessageStore.clear`."""
        with self._lock:
            self._messages.pop(checked_session(session), None)
            self._summaries.pop(session, None)

    def load_summary(self, session: str) -> RollingSummary | None:
        """See `KeepsSummaries.load_summary`."""
        with self._lock:
            return self._summaries.get(checked_session(session))

    def save_summary(self, session: str, summary: RollingSummary) -> None:
        """See `KeepsSummaries.save_summary`."""
        with self._lock:
            there = len(self._messages.get(checked_session(session), ()))
            if furthest(self._summaries.get(session), summary, there) is summary:
                self._summaries[session] = summary

    def sessions(self) -> list[str]:
        """Return every session with a message, by name."""
        with self._lock:
            return sorted(self._messages)


def checked_session(session: object) -> str:
    """
    Return *session* when it can name one.

    Raises:
        BadInput: not a string, empty, or holding a lone surrogate, which no encoding can write.
    """
    if not isinstance(session, str):
        raise BadInput(f"a session must be a string, not {type(session).__name__}")
    if not session:
        raise BadInput("a session must not be empty")
    if any("\ud800" <= char <= "\udfff" for char in session):
        raise BadInput("a session holds a lone surrogate; use printable text")
    return session


def incoming(given: MessageLike | Sequence[MessageLike], clock: Clock) -> list[Message]:
    """Return the caller's messages checked and without numbers; see `checked_messages`."""
    return [message for message, _ in checked_messages(given, now=clock(), max_chars=MAX_MESSAGE_CHARS)]


def numbered(messages: Sequence[Message], session: str, first: int) -> list[Message]:
    """Return *messages* numbered within *session*."""
    return [
        replace(message, seq=seq, conversation=session, meta=dict(message.meta))
        for seq, message in enumerate(messages, first)
    ]


def furthest(kept: RollingSummary | None, new: RollingSummary, messages: int) -> RollingSummary | None:
    """
    Return the summary that reaches further, so that a slow writer never restores an older one.

    One that speaks of more messages than there are was made before the session was cleared.
    """
    return kept if new.through > messages or (kept is not None and kept.through > new.through) else new


FORMAT = 1
LOCKS = 64
MAX_NAME_CHARS = 150  # of an encoded session; with the rest it stays within what every file system takes
_PLAIN = expression(r"[a-z0-9_-]")
_ENCODED = expression(r"%([0-9a-f]{2})")
_OPEN_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


class JsonFileMessages:
    """
    A `MessageStore` in a folder.  Several processes may share it.

        store = JsonFileMessages("chats")
        store.append("alice", {"role": "user", "content": "Hello"})

    Files and folder can be read by their owner only.  An append is on disk when it returns.
    """

    def __init__(self, folder: str | os.PathLike[str], *, clock: Clock | None = None, timeout_ms: int = 30_000) -> None:
        """
        Use *folder*, creating it with the first message.

        Args:
            folder: where the files are.
            clock: returns the current time as an aware ``datetime``.
            timeout_ms: how long a write waits for another process.
        """
        if os.fspath(folder).startswith("~"):
            raise BadInput(f"{os.fspath(folder)!r} begins with '~'", hint="write the whole path of the folder")
        self._folder = Path(folder)
        self._clock = clock or utc_now
        self._timeout_ms = timeout_ms

    def append(self, session: str, message_or_messages: MessageLike | Sequence[MessageLike]) -> None:
        """
        See `MessageLog.append`.

        Raises:
            BadInput: a message cannot be used; nothing was stored.
            StoreError: the file is damaged, the disk is full…; the message names the file, which is as it was.
        """
        new = incoming(message_or_messages, self._clock)

        def change(messages: list[Message], summary: RollingSummary | None) -> RollingSummary | None:
            messages += numbered(new, session, len(messages) + 1)
            return summary

        self._rewrite(session, change)

    def load(self, session: str) -> list[Message]:
        """
        See `MessageLog.load`.

        Raises:
            StoreCorrupt: the file is not what this store writes; it is left as it is.
        """
        return self._read(session)[0]

    def clear(self, session: str) -> None:
        """See `MessageStore.clear`."""
        path = self.path(session)
        if not self._folder.is_dir():
            return
        with self._locked(session), _errors_name(path):
            for each in (path, path.with_suffix(".tmp")):  # a crash may have left a draft with the same words
                with suppress(FileNotFoundError):
                    os.unlink(each)
            _sync_folder(self._folder)

    def load_summary(self, session: str) -> RollingSummary | None:
        """See `KeepsSummaries.load_summary`."""
        return self._read(session)[1]

    def save_summary(self, session: str, summary: RollingSummary) -> None:
        """See `KeepsSummaries.save_summary`."""
        if not self.path(session).exists():
            return
        self._rewrite(session, lambda messages, kept: furthest(kept, summary, len(messages)))

    def sessions(self) -> list[str]:
        """
        Return every session with a file, by name.

        Raises:
            StoreCorrupt: a file with a long name does not say which session it holds.
        """
        if not self._folder.is_dir():
            return []
        return sorted(self._session_of(path) for path in self._folder.iterdir() if path.suffix == ".json")

    def path(self, session: str) -> Path:
        """Return the path of the file of *session*, which may not exist: always directly inside the folder."""
        return self._folder / f"{file_name(checked_session(session))}.json"

    def _session_of(self, path: Path) -> str:
        if path.name.startswith("s_"):
            return session_name(path.stem)
        with _errors_name(path):
            return str(_parsed(path, _bytes(path), None)["session"])

    def _read(self, session: str) -> tuple[list[Message], RollingSummary | None]:
        path = self.path(session)
        with _errors_name(path):
            try:
                raw = _bytes(path)
            except FileNotFoundError:
                return [], None
        data = _parsed(path, raw, session)
        with _damage_names(path):
            messages = [_message(item, session, seq) for seq, item in enumerate(data["messages"], 1)]
            return messages, _summary(data["summary"]) if data.get("summary") else None

    def _rewrite(
        self, session: str, change: Callable[[list[Message], RollingSummary | None], RollingSummary | None]
    ) -> None:
        """Read, let *change* alter the messages and return the summary, and write, all under the session's lock."""
        path = self.path(session)
        with _errors_name(path):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._locked(session):
            messages, summary = self._read(session)
            summary = change(messages, summary)
            with _errors_name(path):
                _replace(path, _dumped(session, messages, summary))

    @contextmanager
    def _locked(self, session: str) -> Iterator[None]:
        """Hold one of a fixed number of locks, so that no lock file has to be removed with its session."""
        number = int(hashlib.sha256(session.encode()).hexdigest(), 16) % LOCKS
        with _errors_name(self._folder), locked(str(self._folder / f".lock-{number:02}"), timeout_ms=self._timeout_ms):
            yield


def file_name(session: str) -> str:
    """
    Encode *session* as a name that is safe on every file system; `session_name` decodes it.

    Small letters, digits, ``-`` and ``_`` stand for themselves, every other byte of the UTF-8 is
    ``%xx``: there are no separators, dots or capitals, so nothing leaves the folder and no two
    sessions meet where case does not count.  ``s_`` before it keeps devices such as ``con`` away.
    A name that would be too long is a digest, and the session stands in the file.
    """
    encoded = "".join(chr(byte) if _PLAIN.fullmatch(chr(byte)) else f"%{byte:02x}" for byte in session.encode("utf-8"))
    if len(encoded) > MAX_NAME_CHARS:
        return f"h_{hashlib.sha256(session.encode('utf-8')).hexdigest()}"
    return f"s_{encoded}"


def session_name(name: str) -> str:
    """Decode a `file_name` that is not a digest."""
    return _ENCODED.sub(lambda found: chr(int(found[1], 16)), name.removeprefix("s_")).encode("latin-1").decode("utf-8")


def _bytes(path: Path) -> bytes:
    fd = os.open(path, os.O_RDONLY | _OPEN_FLAGS)
    with open(fd, "rb") as file:
        return file.read()


def _replace(path: Path, text: str) -> None:
    """Put a file with *text* in the place of *path* so that a crash leaves the old one or the new one."""
    draft = path.with_suffix(".tmp")
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _OPEN_FLAGS, 0o600)
    try:
        with open(fd, "wb") as file:
            file.write(text.encode("utf-8"))
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except OSError:
        with suppress(OSError):
            os.unlink(draft)
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Make a rename last; Windows has no such call and needs none."""
    if os.name == "nt":
        return
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _dumped(session: str, messages: Sequence[Message], summary: RollingSummary | None) -> str:
    """Return a JSON object with one line for each message."""
    head = json.dumps({"format": FORMAT, "session": session}, ensure_ascii=False)[:-1]
    kept = None if summary is None else {name: getattr(summary, name) for name in summary.__slots__}
    lines = ",\n".join(json.dumps(_fields(message), ensure_ascii=False) for message in messages)
    return f'{head},\n"summary": {json.dumps(kept, ensure_ascii=False)},\n"messages": [\n{lines}\n]}}\n'


def _fields(message: Message) -> dict[str, Any]:
    at_ms = to_ms(message.at) if message.at else 0
    found: dict[str, Any] = {"role": message.role, "content": message.content, "at": from_ms(at_ms).isoformat()}
    if message.name:
        found["name"] = message.name
    return {**found, "meta": message.meta} if message.meta else found


def _message(item: Mapping[str, Any], session: str, seq: int) -> Message:
    content, name, meta = item["content"], item.get("name"), item.get("meta", {})
    if not (isinstance(item["role"], str) and isinstance(content, str) and isinstance(meta, dict)):
        raise TypeError("a message of another shape")
    if name is not None and not isinstance(name, str):
        raise TypeError("a name that is no text")
    tokens = count_tokens(content) + MESSAGE_OVERHEAD_TOKENS
    return Message(item["role"], content, name, datetime.fromisoformat(item["at"]), seq, session, tokens, meta)


def _summary(data: Mapping[str, Any]) -> RollingSummary:
    return RollingSummary(str(data["text"]), int(data["through"]), str(data["source"]), tuple(data["parts"]))


def _parsed(path: Path, raw: bytes, session: str | None) -> dict[str, Any]:
    """Parse the JSON object in *raw*, of a known format, and of *session* if that is given."""
    with _damage_names(path):
        data = json.loads(raw.decode("utf-8"))
        if not isinstance(data["session"], str) or not isinstance(data["messages"], list):
            raise TypeError("a file of another shape")
        version, found = int(data["format"]), data["session"]
    if version > FORMAT:
        raise StoreTooNew(f"{path} was written by a newer Holdfast; it was left untouched", hint="use that version")
    if session is not None and found != session:
        raise StoreCorrupt(f"{path} holds another session", hint="give it back the name it was written under")
    return dict(data)


@contextmanager
def _damage_names(path: Path) -> Iterator[None]:
    try:
        yield
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        hint = "put a sound copy in its place, or move it away to begin anew; it was left untouched"
        raise StoreCorrupt(f"{path} is not a file of messages, or is damaged", hint=hint) from None


@contextmanager
def _errors_name(path: Path) -> Iterator[None]:
    """Raise the system's errors about *path* as ours."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        what = os.strerror(error.errno) if error.errno else str(error)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreFull(f"no room to write {path}", hint="make room; the file is as it was") from None
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise StoreReadOnly(f"{path} cannot be read or written: {what}", hint="check who owns it") from None
        raise StoreError(f"{path}: {what}", hint="the file is as it was") from None
