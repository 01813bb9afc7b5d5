"""
BEAM and LongMemEval: chats of a user with an assistant, in the files as they are distributed.

BEAM: a folder for each chat with ``chat.json`` (batches of turns of messages, each with an ``id``) and
``probing_questions/probing_questions.json`` (questions by ability, with the ids of their sources).
LongMemEval: one list of questions, each with a haystack of sessions of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .files import read_json, whole
from .questions import BadData, Benchmark, Line, Question, Sample, sessions_of

_MARK = re.compile(r"\s*->->\s*(?:\d+|N/A),(?:\d+|N/A)\s*\)?\s*$")
_ANSWERS = ("answer", "ideal_response", "ideal_answer", "ideal_summary", "expected_compliance")


def load_beam(paths: Sequence[Path]) -> Benchmark:
    """
    BEAM from ``chat.json`` files, or the folders that hold them (``chats/100K``, ``chats/100K/1``).

    Raises:
        BadData: no chat is found, or one is not in that shape.
    """
    chats = [
        found
        for path in paths
        for found in ([path] if path.is_file() else sorted(path.rglob("chat.json"), key=_number))
    ]
    if not chats:
        raise BadData(
            "no chat.json is there", hint="give chats/100K, or chat.json files beside their probing_questions"
        )
    samples = []
    for path in chats:
        size = path.parent.parent.name
        name = f"beam{size if re.fullmatch(r'[0-9]+[KM]', size) else ''}-{path.parent.name}"
        lines = tuple(_beam_lines(path, name))
        asked = whole(path, read_json(path.parent / "probing_questions" / "probing_questions.json"), dict)
        samples.append(Sample(name, lines, tuple(_beam_questions(name, lines, asked))))
    return Benchmark("beam", tuple(samples))


def _number(path: Path) -> tuple[int, str]:
    return (int(path.parent.name) if path.parent.name.isdigit() else 0, str(path))


def _beam_lines(path: Path, name: str) -> Iterator[Line]:
    at = datetime(2024, 1, 1, tzinfo=UTC)
    for number, batch in enumerate(whole(path, read_json(path), list), 1):
        for place, turn in enumerate(whole(f"{path}: batch {number}", batch.get("turns"), list)):
            for message in turn:
                if message.get("time_anchor"):
                    at = _anchor(path, message["time_anchor"])
                role = str(message.get("role"))
                text = _MARK.sub("", str(message.get("content", "")))
                yield Line(f"{name}/{message.get('id')}", f"{name}/b{number}t{place}", role, role, text, at)


def _anchor(path: Path, text: str) -> datetime:
    try:
        return datetime.strptime(str(text), "%B-%d-%Y").replace(tzinfo=UTC)
    except ValueError as error:
        raise BadData(f"{path}: {text!r} is not a time anchor", hint="expected March-15-2024") from error


def _beam_questions(name: str, lines: tuple[Line, ...], asked: Mapping[str, Any]) -> Iterator[Question]:
    known = {line.id for line in lines}
    for category, questions in asked.items():
        for place, one in enumerate(questions):
            source = one.get("source_chat_ids")
            evidence = tuple(dict.fromkeys(n for n in (f"{name}/{i}" for i in _ids(source)) if n in known))
            latest: tuple[str, ...] = ()
            stale: tuple[str, ...] = ()
            if isinstance(source, Mapping) and "updated_info" in source:
                latest = tuple(f"{name}/{i}" for i in _ids(source["updated_info"]))
                stale = tuple(f"{name}/{i}" for i in _ids(source.get("original_info")))
            yield Question(
                id=f"{name}/{category}{place}",
                category=category,
                question=str(one["question"]),
                answer=str(next((one[key] for key in _ANSWERS if one.get(key)), "")),
                evidence=evidence,
                sessions=sessions_of(lines, evidence),
                at=lines[-1].at,
                latest=latest,
                stale=stale,
                abstain=category == "abstention",
                rubric=tuple(map(str, one.get("rubric") or ())),
            )


def _ids(source: Any) -> list[int]:
    """The numbers in a list, in a mapping of lists, in lists of lists."""
    if isinstance(source, Mapping):
        return [number for part in source.values() for number in _ids(part)]
    if isinstance(source, list):
        return [number for part in source for number in _ids(part)]
    return [int(source)] if isinstance(source, int | str) and str(source).isdigit() else []


def load_longmemeval(paths: Sequence[Path]) -> Benchmark:
    """
    LongMemEval from ``longmemeval_s.json``, ``_m`` or ``_oracle``.

    Evidence are the turns marked ``has_answer``, or all turns of the answer's sessions where none
    is; abstention questions (``…_abs``) have none.

    Raises:
        BadData: a file is not in that shape.
    """
    samples = []
    for path in paths:
        for place, record in enumerate(whole(path, read_json(path), list)):
            where = f"{path.name}: question {place}"
            samples.append(_long_sample(where, whole(where, record, dict)))
    return Benchmark("longmemeval", tuple(samples))


def _long_sample(where: str, record: dict[str, Any]) -> Sample:
    name = str(record.get("question_id", ""))
    sessions = whole(f"{where}: haystack_sessions", record.get("haystack_sessions"), list)
    ids = whole(f"{where}: haystack_session_ids", record.get("haystack_session_ids"), list)
    dates = whole(f"{where}: haystack_dates", record.get("haystack_dates"), list)
    if not name or not len(sessions) == len(ids) == len(dates):
        raise BadData(f"{where}: ids, dates and sessions of the haystack differ in number")
    told = sorted(
        zip((_date(where, d) for d in dates), map(str, ids), sessions, strict=True), key=lambda part: part[:2]
    )
    lines, marked = [], []
    for at, session, turns in told:
        for number, turn in enumerate(turns):
            role = str(turn.get("role"))
            line = Line(f"{name}/{session}:{number}", f"{name}/{session}", role, role, str(turn.get("content", "")), at)
            lines.append(line)
            if turn.get("has_answer"):
                marked.append(line.id)
    wanted = {f"{name}/{session}" for session in record.get("answer_session_ids") or ()}
    abstain = name.endswith("_abs")
    evidence = tuple(marked) or tuple(line.id for line in lines if line.session in wanted)
    question = Question(
        id=name,
        category="abstention" if abstain else str(record.get("question_type")),
        question=str(record["question"]),
        answer=str(record.get("answer", "")),
        evidence=() if abstain else evidence,
        sessions=() if abstain else tuple(sorted(wanted & {line.session for line in lines})),
        at=_date(where, record.get("question_date")),
        abstain=abstain,
    )
    return Sample(name, tuple(lines), (question,), apart=True)


def _date(where: str, text: Any) -> datetime:
    """``2023/05/20 (Sat) 02:21``, or the day alone."""
    plain = re.sub(r"\s*\([A-Za-z]+\)\s*", " ", str(text)).strip()
    for shape in ("%Y/%m/%d %H:%M", "%Y/%m/%d"):
        try:
            return datetime.strptime(plain, shape).replace(tzinfo=UTC)
        except ValueError:
            continue
    raise BadData(f"{where}: {text!r} is not a date", hint="expected 2023/05/20 (Sat) 02:21")
