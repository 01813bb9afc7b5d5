"""The values of the question benchmarks: conversations as they are told, questions with their evidence."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import datetime

from ..errors import HoldfastError


class BadData(HoldfastError):
    """A benchmark's file is not in the shape in which it is distributed; the message says where."""

    code = "bad-data"


@dataclass(frozen=True, slots=True)
class Line:
    """
    One message of a benchmark's conversation.

    ``id`` is unique in its benchmark and names the conversation in front; ``role`` is what the memory
    is told, ``speaker`` who spoke.
    """

    id: str
    session: str
    speaker: str
    role: str
    text: str
    at: datetime

    @property
    def rendered(self) -> str:
        """As a context shows it, for counting tokens: ``[2023-05-08] Caroline: Hey Mel!``."""
        return f"[{self.at:%Y-%m-%d}] {self.speaker}: {self.text}\n"


@dataclass(frozen=True, slots=True)
class Question:
    """
    A question, and where its answer stands.

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

    ``apart``: every session is a conversation of its own; otherwise all are one that goes on.
    """

    id: str
    lines: tuple[Line, ...]
    questions: tuple[Question, ...]
    apart: bool = False

    def conversation(self, line: Line) -> str:
        """The conversation in which *line* is told to a memory."""
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
        """16 hex digits that change when a line or a question does; a resumed run must have the same."""
        hashed = hashlib.sha256()
        for sample in self.samples:
            for line in sample.lines:
                hashed.update(f"{line.id}\x00{line.speaker}\x00{line.text}\x00{line.at.isoformat()}\n".encode())
            for question in sample.questions:
                hashed.update(f"{question.id}\x00{question.question}\x00{question.evidence}\n".encode())
        return hashed.hexdigest()[:16]


def sessions_of(lines: tuple[Line, ...], evidence: tuple[str, ...]) -> tuple[str, ...]:
    """The sessions in which the lines *evidence* stand, sorted."""
    home = {line.id: line.session for line in lines}
    return tuple(sorted({home[one] for one in evidence if one in home}))
