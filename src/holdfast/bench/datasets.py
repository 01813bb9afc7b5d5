"""The question benchmarks: the loaders of their files, and the questions with a wrong answer key."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

from ..errors import BadInput, HoldfastError
from ..text import dataclass

LOCOMO_CATEGORIES = {1: "1-multi-hop", 2: "2-temporal", 3: "3-open-domain", 4: "4-single-hop", 5: "5-adversarial"}
REALTALK_CATEGORIES = {1: "1-multi-hop", 2: "2-temporal", 3: "3-commonsense"}

_EVIDENCE = re.compile(r"D\d+:\d+")
_SESSION = re.compile(r"session_(\d+)")


def load_locomo(paths: Sequence[Path]) -> Benchmark:
    """
    Load LoCoMo from ``locomo10.json``.

    The overall figure leaves out category 5, whose questions are put so that their answer is not
    there; they have evidence and are reported.

    Raises:
        BadData: the file is not in that shape.
    """
    samples = []
    for path in paths:
        for place, record in enumerate(require(path, read_json(path), list)):
            chat = require(f"{path.name}: sample {place}", record, dict).get("conversation")
            name = str(record.get("sample_id") or f"sample-{place}")
            sessions = _sessions(f"{path.name}: {name}", require(f"{path.name}: {name}: conversation", chat, dict))
            samples.append(_peer_sample(name, sessions, record.get("qa", ()), LOCOMO_CATEGORIES))
    return Benchmark("locomo", tuple(samples), apart=("5-adversarial",))


def load_realtalk(paths: Sequence[Path]) -> Benchmark:
    """
    Load REALTALK from its files, ``Chat_1_Emi_Elise.json`` and so on; a file's name holds the chat's number.

    Raises:
        BadData: a file is not in that shape.
    """
    samples = []
    for place, path in enumerate(sorted(paths, key=_chat_number), 1):
        chat = require(path, read_json(path), dict)
        name = f"rt-{_chat_number(path) or place}"
        samples.append(_peer_sample(name, _sessions(path.name, chat), chat.get("qa", ()), REALTALK_CATEGORIES))
    return Benchmark("realtalk", tuple(samples))


def _chat_number(path: Path) -> int:
    found = re.search(r"_(\d+)", path.name)
    return int(found[1]) if found else 0


def _sessions(where: str, chat: Mapping[str, Any]) -> list[tuple[str, datetime, list[Any]]]:
    numbers = sorted(int(found[1]) for name in chat if (found := _SESSION.fullmatch(name)) and chat[name])
    if not numbers:
        raise BadData(f"{where} holds no session_1", hint="give the file as it is distributed")
    return [
        (f"session_{n}", _moment(where, chat.get(f"session_{n}_date_time")), require(where, chat[f"session_{n}"], list))
        for n in numbers
    ]


def _moment(where: str, text: Any) -> datetime:
    """Parse a time as either file writes it: ``1:56 pm on 8 May, 2023`` or ``29.12.2023, 22:42:04``."""
    for shape in ("%I:%M %p on %d %B, %Y", "%d.%m.%Y, %H:%M:%S"):
        try:
            return datetime.strptime(str(text).strip(), shape).replace(tzinfo=UTC)
        except ValueError:
            continue
    raise BadData(f"{where}: {text!r} is not a time", hint="expected 1:56 pm on 8 May, 2023 or 29.12.2023, 22:42:04")


def _lines(name: str, sessions: Sequence[tuple[str, datetime, list[Any]]]) -> Iterator[ChatLine]:
    first = ""
    for session, at, messages in sessions:
        for message in messages:
            where = f"{name}: {session}"
            text = str(require(where, message, dict).get("text", message.get("clean_text", "")) or "")
            caption = message.get("blip_caption")
            if caption:
                text = f"{text} [shares photo: {caption}]".strip()
            speaker = str(message.get("speaker", ""))
            first = first or speaker
            said = _moment(where, message["date_time"]) if "date_time" in message else at
            role = "user" if speaker == first else "assistant"
            yield ChatLine(f"{name}/{message.get('dia_id')}", f"{name}/{session}", speaker, role, text, said)


def _peer_sample(
    name: str, sessions: Sequence[tuple[str, datetime, list[Any]]], qa: Sequence[Any], categories: Mapping[int, str]
) -> Sample:
    lines = tuple(_lines(name, sessions))
    known = {line.id for line in lines}
    questions = []
    for place, one in enumerate(qa):
        cited = [f"{name}/{found}" for text in one.get("evidence") or () for found in _EVIDENCE.findall(str(text))]
        evidence = tuple(dict.fromkeys(line for line in cited if line in known))
        category = categories.get(one.get("category"), str(one.get("category")))
        questions.append(
            Question(
                id=f"{name}/q{place}",
                category=category,
                question=str(one["question"]),
                answer=str(one.get("answer", one.get("adversarial_answer", ""))),
                evidence=evidence,
                sessions=sessions_of(lines, evidence),
                at=lines[-1].at,
                abstain=category.startswith("5-"),
            )
        )
    return Sample(name, lines, tuple(questions))


_MARK = re.compile(r"\s*->->\s*(?:\d+|N/A),(?:\d+|N/A)\s*\)?\s*$")
_ANSWERS = ("answer", "ideal_response", "ideal_answer", "ideal_summary", "expected_compliance")


def load_beam(paths: Sequence[Path]) -> Benchmark:
    """
    Load BEAM from ``chat.json`` files, or the folders that hold them (``chats/100K``, ``chats/100K/1``).

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
        asked = require(path, read_json(path.parent / "probing_questions" / "probing_questions.json"), dict)
        samples.append(Sample(name, lines, tuple(_beam_questions(name, lines, asked))))
    return Benchmark("beam", tuple(samples))


def _number(path: Path) -> tuple[int, str]:
    return (int(path.parent.name) if path.parent.name.isdecimal() else 0, str(path))


def _beam_lines(path: Path, name: str) -> Iterator[ChatLine]:
    at = datetime(2024, 1, 1, tzinfo=UTC)
    for number, batch in enumerate(require(path, read_json(path), list), 1):
        for place, turn in enumerate(require(f"{path}: batch {number}", batch.get("turns"), list)):
            for message in turn:
                if message.get("time_anchor"):
                    at = _anchor(path, message["time_anchor"])
                role = str(message.get("role"))
                text = _MARK.sub("", str(message.get("content", "")))
                yield ChatLine(f"{name}/{message.get('id')}", f"{name}/b{number}t{place}", role, role, text, at)


def _anchor(path: Path, text: str) -> datetime:
    try:
        return datetime.strptime(str(text), "%B-%d-%Y").replace(tzinfo=UTC)
    except ValueError as error:
        raise BadData(f"{path}: {text!r} is not a time anchor", hint="expected March-15-2024") from error


def _beam_questions(name: str, lines: tuple[ChatLine, ...], asked: Mapping[str, Any]) -> Iterator[Question]:
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
    """Return the numbers in a list, in a mapping of lists, or in lists of lists."""
    if isinstance(source, Mapping):
        return [number for part in source.values() for number in _ids(part)]
    if isinstance(source, list):
        return [number for part in source for number in _ids(part)]
    return [int(source)] if isinstance(source, int | str) and str(source).isdecimal() else []


def load_longmemeval(paths: Sequence[Path]) -> Benchmark:
    """
    Load LongMemEval from ``longmemeval_s.json``, ``_m`` or ``_oracle``.

    Evidence are the turns marked ``has_answer``, or all turns of the answer's sessions where none
    is; abstention questions (``…_abs``) have none.

    Raises:
        BadData: a file is not in that shape.
    """
    samples = []
    for path in paths:
        for place, record in enumerate(require(path, read_json(path), list)):
            where = f"{path.name}: question {place}"
            samples.append(_long_sample(where, require(where, record, dict)))
    return Benchmark("longmemeval", tuple(samples))


def _long_sample(where: str, record: dict[str, Any]) -> Sample:
    name = str(record.get("question_id", ""))
    sessions = require(f"{where}: haystack_sessions", record.get("haystack_sessions"), list)
    ids = require(f"{where}: haystack_session_ids", record.get("haystack_session_ids"), list)
    dates = require(f"{where}: haystack_dates", record.get("haystack_dates"), list)
    if not name or not len(sessions) == len(ids) == len(dates):
        raise BadData(f"{where}: ids, dates and sessions of the haystack differ in number")
    dated = sorted(
        zip((_date(where, d) for d in dates), map(str, ids), sessions, strict=True), key=lambda part: part[:2]
    )
    lines, marked = [], []
    for at, session, turns in dated:
        for number, turn in enumerate(turns):
            role = str(turn.get("role"))
            line = ChatLine(
                f"{name}/{session}:{number}", f"{name}/{session}", role, role, str(turn.get("content", "")), at
            )
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
    """Parse ``2023/05/20 (Sat) 02:21``, or the day alone."""
    plain = re.sub(r"\s*\([A-Za-z]+\)\s*", " ", str(text)).strip()
    for shape in ("%Y/%m/%d %H:%M", "%Y/%m/%d"):
        try:
            return datetime.strptime(plain, shape).replace(tzinfo=UTC)
        except ValueError:
            continue
    raise BadData(f"{where}: {text!r} is not a date", hint="expected 2023/05/20 (Sat) 02:21")


def load_tiny() -> Benchmark:
    """Load the bundled four conversations with 32 questions: too small to compare systems, enough for a trial."""
    text = (resources.files(__package__) / "data" / "tiny.toml").read_text(encoding="utf-8")
    samples = tuple(_tiny_sample(record) for record in tomllib.loads(text)["conversation"])
    return Benchmark("tiny", samples)


def _tiny_sample(record: dict[str, Any]) -> Sample:
    name = record["id"]
    lines: list[ChatLine] = []
    named: dict[str, int] = {}
    first = ""
    for number, session in enumerate(record["session"], 1):
        for text in session["lines"].strip().splitlines():
            words, _, mark = text.partition(" #")
            speaker, _, said = words.partition(": ")
            first = first or speaker
            role = speaker if speaker in ("user", "assistant") else "user" if speaker == first else "assistant"
            lines.append(ChatLine(f"{name}/{len(lines) + 1}", f"{name}/{number}", speaker, role, said, session["at"]))
            if mark:
                named[mark] = len(lines) - 1
    return Sample(name, tuple(lines), tuple(_tiny_questions(name, tuple(lines), named, record["question"])))


def _tiny_questions(
    name: str, lines: tuple[ChatLine, ...], named: dict[str, int], records: list[dict[str, Any]]
) -> list[Question]:
    def cited(record: dict[str, Any], field: str) -> tuple[str, ...]:
        """Resolve ``rent rent2`` to the lines of these names, ``knee+1`` to the line after."""
        places = (mark.partition("+") for mark in record.get(field, "").split())
        return tuple(lines[named[mark] + int(further or 0)].id for mark, _, further in places)

    return [
        Question(
            id=f"{name}/q{number}",
            category=record["category"],
            question=record["ask"],
            answer=record["answer"],
            evidence=cited(record, "evidence"),
            sessions=sessions_of(lines, cited(record, "evidence")),
            at=lines[-1].at,
            latest=cited(record, "latest"),
            stale=cited(record, "stale"),
            abstain=record["category"] == "abstention",
        )
        for number, record in enumerate(records, 1)
    ]


_AUDIT = re.compile(r"locomo_(\d+)_qa(\d+)")
CITATION_ONLY = "WRONG_CITATION"  # the answer is right, the line that it cites is not


def find_wrong_keys(benchmark: Benchmark, path: Path | None = None) -> dict[str, str]:
    """
    Return the questions of *benchmark* with a wrong key: id → why.

    Args:
        benchmark: as it was loaded.
        path: a further list: JSON, ``{id: why}``, or records with ``question_id`` and, if there is one, ``reason``,
            ``reasoning`` or ``error_type``; also as the audit of LoCoMo writes it (``locomo_0_qa5``), whose records about
            citations alone are left out.

    Raises:
        BadData: the file holds something else.
    """
    questions = {question.id for sample in benchmark.samples for question in sample.questions}
    text = (resources.files(__package__) / "data" / "wrong_gold.toml").read_text(encoding="utf-8")
    ours = tomllib.loads(text)["question"]
    found = {
        record["id"].removeprefix(f"{benchmark.name} "): record["why"]
        for record in ours
        if record["id"].startswith(f"{benchmark.name} ")
    }
    if path is not None:
        found |= {_named(benchmark, id): why for id, why in _listed(path).items()}
    return {id: why for id, why in sorted(found.items()) if id in questions}


def _listed(path: Path) -> dict[str, str]:
    data = read_json(path)
    if isinstance(data, Mapping):
        return {str(id): str(why) for id, why in data.items()}
    found = {}
    for record in require(path, data, list):
        record = {"question_id": record} if isinstance(record, str) else require(path, record, dict)
        if "question_id" not in record:
            raise BadData(f"{path}: a record has no question_id", hint="give a list of ids, or of records with one")
        if record.get("error_type") != CITATION_ONLY:
            found[str(record["question_id"])] = _why(record)
    return found


def _why(record: Mapping[str, Any]) -> str:
    return str(next((record[name] for name in ("reason", "reasoning", "error_type") if record.get(name)), "listed"))


def _named(benchmark: Benchmark, id: str) -> str:
    """Translate an id of the audit, which counts conversations from 0 in the order of the file."""
    found = _AUDIT.fullmatch(id)
    if found is None or int(found[1]) >= len(benchmark.samples):
        return id
    return f"{benchmark.samples[int(found[1])].id}/q{found[2]}"


LOADERS: Mapping[str, Callable[[Sequence[Path]], Benchmark]] = {
    "locomo": load_locomo,
    "realtalk": load_realtalk,
    "beam": load_beam,
    "longmemeval": load_longmemeval,
}
SOURCES: Mapping[str, str] = {
    "locomo": "locomo10.json of github.com/snap-research/locomo",
    "realtalk": "the Chat_*.json files of github.com/danny911kr/REALTALK",
    "beam": "the folder chats/100K of github.com/mohammadtavakoli78/BEAM",
    "longmemeval": "longmemeval_s.json of github.com/xiaowu0162/LongMemEval",
}


def load_benchmark(name: str, paths: Sequence[Path]) -> Benchmark:
    """
    Load a benchmark from its public files; ``tiny`` comes with the package and takes none.

    Raises:
        BadInput: there is no such benchmark, or files are missing.
        BadData: a file is not in the shape in which it is distributed, or holds no question.
    """
    if name == "tiny":
        return load_tiny()
    if name not in LOADERS:
        raise BadInput(f"there is no benchmark {name!r}", hint=f"use tiny, {', '.join(LOADERS)} or beliefs")
    if not paths:
        raise BadInput(f"{name} needs its data", hint=f"download {SOURCES[name]}, and name it with --data")
    files = paths if name == "beam" else [file for path in paths for file in _files(path)]
    loaded = LOADERS[name](files)
    if not any(sample.questions for sample in loaded.samples):
        raise BadData(f"no question of {name} was found", hint=f"expected {SOURCES[name]}")
    return loaded


def _files(path: Path) -> list[Path]:
    """Return a file itself, or the JSON files of a folder."""
    return sorted(path.glob("*.json")) if path.is_dir() else [path]


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
