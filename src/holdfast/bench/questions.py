"""The values of the question benchmarks: conversations, and questions with their evidence; and how files are read."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from ..errors import HoldfastError


class BadData(HoldfastError):
    """An error in a benchmark's file; the message names the place."""

    code = "bad-data"


@dataclass(frozen=True, slots=True)
class ChatLine:
    """
    One message of a benchmark's conversation.

    ``id`` is unique in its benchmark and names the conversation in front; ``role`` is what the memory
    stores, ``speaker`` the name.
    """

    id: str
    session: str
    speaker: str
    role: str
    text: str
    at: datetime

    @property
    def rendered(self) -> str:
        """Render the line as a context shows it, for counting tokens: ``[2023-05-08] Caroline: Hey Mel!``."""
        return f"[{self.at:%Y-%m-%d}] {self.speaker}: {self.text}\n"


@dataclass(frozen=True, slots=True)
class Question:
    """
    A question, and the lines that hold its answer.

    ``evidence`` are ids of lines, ``sessions`` those that hold them.  ``latest`` and ``stale`` are set
    where a value changed: the lines with the new one and with the old.  ``abstain``: memory holds no
    answer, and saying so is right.  ``rubric`` is what an answer is judged by where that is not one text.
    """

    id: str
    category: str
    question: str
    answer: str
    evidence: tuple[str, ...]
    sessions: tuple[str, ...]
    at: datetime
    latest: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()
    abstain: bool = False
    rubric: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sample:
    """
    One user's talk with its questions.

    ``apart``: every session is a separate conversation; otherwise all are one that goes on.
    """

    id: str
    lines: tuple[ChatLine, ...]
    questions: tuple[Question, ...]
    apart: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the speakers; none where they are only roles."""
        return tuple(dict.fromkeys(line.speaker for line in self.lines if line.speaker != line.role))

    def conversation(self, line: ChatLine) -> str:
        """Return the name of the conversation that *line* is stored in."""
        return line.session if self.apart else self.id


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A loaded benchmark; ``apart`` are categories that its overall figure leaves out."""

    name: str
    samples: tuple[Sample, ...]
    apart: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default_factory=tuple)

    @property
    def digest(self) -> str:
        """Return 16 hex digits that change with any line or question; a resumed run must have the same."""
        hashed = hashlib.sha256()
        for sample in self.samples:
            for line in sample.lines:
                hashed.update(f"{line.id}\x00{line.speaker}\x00{line.text}\x00{line.at.isoformat()}\n".encode())
            for question in sample.questions:
                hashed.update(f"{question.id}\x00{question.question}\x00{question.evidence}\n".encode())
        return hashed.hexdigest()[:16]


def sessions_of(lines: tuple[ChatLine, ...], evidence: tuple[str, ...]) -> tuple[str, ...]:
    """Return the sorted sessions of the lines *evidence*."""
    home = {line.id: line.session for line in lines}
    return tuple(sorted({home[one] for one in evidence if one in home}))


Container = TypeVar("Container", list[Any], dict[str, Any])


def read_json(path: Path) -> Any:
    """
    Read a JSON file.

    Raises:
        BadData: it cannot be read, or is not JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadData(f"{path} cannot be read: {error.strerror}", hint="--data takes files that are here") from error
    except ValueError as error:
        raise BadData(f"{path} is not JSON: {error}", hint="give the file as it is distributed") from error


def require(where: str | Path, value: Any, kind: type[Container]) -> Container:
    """Return *value*, which must be of that kind; raise `BadData` with the place otherwise."""
    if not isinstance(value, kind):
        raise BadData(
            f"{where} is not a JSON {'list' if kind is list else 'object'}", hint="give the file as it is distributed"
        )
    return value
