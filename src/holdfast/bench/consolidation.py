"""
FactConsolidation of MemoryAgentBench, single hop: numbered statements, some of them replaced by a later one.

A memory is right where the latest statement about what is asked stands first, without a model that reads the list.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from ..memory import Memory
from ..text import dataclass
from ..text.terms import terms
from .datasets import BadData, ChatLine, Sample, read_json, require
from .retrieval import BaselineRanker

SIZES = ("6k", "32k", "64k", "262k")
FIRST = 5
_BATCH = 500
_START = datetime(2024, 1, 1, tzinfo=UTC)
_LINE = re.compile(r"^\d+\. (.+)$", re.MULTILINE)

Rank = Callable[[str], list[str]]


@dataclass(frozen=True, slots=True)
class Consolidation:
    """The statements of one size, in their order, and the questions with the answers of the key."""

    size: str
    statements: tuple[str, ...]
    questions: tuple[tuple[str, tuple[str, ...]], ...]

    def newest(self, question: str, answers: Sequence[str]) -> str:
        """
        Return the latest statement about what the key's answer is about; empty where no statement holds the answer.

        Statements are about the same when they are the same up to the answer. Some keys name the older of two.
        """
        words = set(terms(question))
        found: list[tuple[int, str]] = []
        for statement in self.statements:
            at = max((statement.lower().rfind(answer.lower()) for answer in answers), default=-1)
            if at > 0:
                found.append((len(words & set(terms(statement[:at]))), statement[:at]))
        if not found:
            return ""
        frame = max(found)[1]
        return [statement for statement in self.statements if statement.startswith(frame)][-1]


@dataclass(frozen=True, slots=True)
class ConsolidationScores:
    """
    Of so many questions: how often the first statement holds the key's answer, how often it is the latest one, and how
    often the latest is among the first five; ``older_keys`` counts keys that name a statement which a later one replaced.
    """

    questions: int
    keyed: int
    newest: int
    in_five: int
    older_keys: int


def load_consolidation(paths: Sequence[Path], sizes: Sequence[str] = SIZES) -> list[Consolidation]:
    """
    Load the single-hop sets of ``Conflict_Resolution.json``.

    Raises:
        BadData: no file is named, it is no such file, or it holds none of the sizes.
    """
    if len(paths) != 1:
        raise BadData("consolidation needs its one file", hint="name Conflict_Resolution.json of MemoryAgentBench")
    found = {}
    for record in require(paths[0], read_json(paths[0]), list):
        meta = require(paths[0], require(paths[0], record, dict).get("metadata"), dict)
        name = str((meta.get("qa_pair_ids") or [""])[0])
        if "_sh_" not in name:
            continue
        size = name.split("_sh_")[1].split("_")[0]
        answers = (tuple(map(str, one if isinstance(one, list) else [one])) for one in record["answers"])
        asked = tuple(zip(map(str, record["questions"]), answers, strict=True))
        found[size] = Consolidation(size, tuple(_LINE.findall(str(record["context"]))), asked)
    chosen = [found[size] for size in sizes if size in found]
    if not chosen:
        raise BadData(f"{paths[0].name} holds no single-hop set of {', '.join(sizes)}")
    return chosen


def fill(memory: Memory, data: Consolidation) -> Rank:
    """Store the statements as one user's messages, a minute apart, and return a search of them."""
    chat = memory.conversation("facts", user=data.size)
    for start in range(0, len(data.statements), _BATCH):
        said = [
            {"role": "user", "content": text, "at": _START + timedelta(minutes=start + number)}
            for number, text in enumerate(data.statements[start : start + _BATCH])
        ]
        chat.append(said)
    memory.digest()
    user = memory.user(data.size)
    return lambda question: [hit.text for hit in user.search(question, limit=FIRST, kinds=("message",))]


def rank_by_words(data: Consolidation) -> Rank:
    """Return a ranking by BM25 alone, the newest of equals first."""
    newest_first = tuple(
        ChatLine(str(number), "facts", "user", "user", text, _START)
        for number, text in reversed(list(enumerate(data.statements)))
    )
    ranker = BaselineRanker(Sample("facts", newest_first, ()), None)
    return lambda question: [data.statements[int(id)] for id in ranker.rank("bm25", question)[:FIRST]]


def score(data: Consolidation, rank: Rank, limit: int | None = None) -> ConsolidationScores:
    """Ask every question, or the first *limit*."""
    asked = data.questions[:limit]
    keyed = newest = in_five = older = 0
    for question, answers in asked:
        found, latest = rank(question), data.newest(question, answers)
        keyed += bool(found) and _holds(found[0], answers)
        newest += bool(found) and found[0] == latest
        in_five += latest in found
        older += bool(latest) and not _holds(latest, answers)
    return ConsolidationScores(len(asked), keyed, newest, in_five, older)


def _holds(statement: str, answers: Sequence[str]) -> bool:
    return any(answer.lower() in statement.lower() for answer in answers)


def format_consolidation(rows: Sequence[tuple[str, str, ConsolidationScores]]) -> Iterator[str]:
    """Format the figures as lines of text: the size, who ranked, and the shares."""
    yield f"{'tokens':8}{'':12}{'latest first':>14}{'key first':>11}{'in five':>9}{'older keys':>12}"
    for size, who, one in rows:
        shares = (one.newest / one.questions, one.keyed / one.questions, one.in_five / one.questions)
        yield f"{size:8}{who:12}{shares[0]:14.2f}{shares[1]:11.2f}{shares[2]:9.2f}{one.older_keys:12}"
