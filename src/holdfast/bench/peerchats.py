"""
LoCoMo and REALTALK: chats of two people, in the files as they are distributed.

LoCoMo's file is a list of ``{sample_id, conversation: {speaker_a, session_1, session_1_date_time, …},
qa: [{question, answer, evidence, category}]}``; a file of REALTALK is one chat with ``name``,
``session_n``, ``session_n_date_time`` and ``qa`` side by side.  A photo counts as its caption.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .files import read_json, whole
from .questions import BadData, Benchmark, Line, Question, Sample, sessions_of

LOCOMO_CATEGORIES = {1: "1-multi-hop", 2: "2-temporal", 3: "3-open-domain", 4: "4-single-hop", 5: "5-adversarial"}
REALTALK_CATEGORIES = {1: "1-multi-hop", 2: "2-temporal", 3: "3-commonsense"}

_EVIDENCE = re.compile(r"D\d+:\d+")
_SESSION = re.compile(r"session_(\d+)")


def load_locomo(paths: Sequence[Path]) -> Benchmark:
    """
    LoCoMo from ``locomo10.json``.

    The overall figure leaves out category 5, whose questions are put so that their answer is not
    there; they have evidence and are reported.

    Raises:
        BadData: the file is not in that shape.
    """
    samples = []
    for path in paths:
        for place, record in enumerate(whole(path, read_json(path), list)):
            chat = whole(f"{path.name}: sample {place}", record, dict).get("conversation")
            name = str(record.get("sample_id") or f"sample-{place}")
            sessions = _sessions(f"{path.name}: {name}", whole(f"{path.name}: {name}: conversation", chat, dict))
            samples.append(_sample(name, sessions, record.get("qa", ()), LOCOMO_CATEGORIES))
    return Benchmark("locomo", tuple(samples), apart=("5-adversarial",))


def load_realtalk(paths: Sequence[Path]) -> Benchmark:
    """
    REALTALK from its files, ``Chat_1_Emi_Elise.json`` and so on; a chat's number is that in the file's name.

    Raises:
        BadData: a file is not in that shape.
    """
    samples = []
    for place, path in enumerate(sorted(paths, key=_number), 1):
        chat = whole(path, read_json(path), dict)
        name = f"rt-{_number(path) or place}"
        samples.append(_sample(name, _sessions(path.name, chat), chat.get("qa", ()), REALTALK_CATEGORIES))
    return Benchmark("realtalk", tuple(samples))


def _number(path: Path) -> int:
    found = re.search(r"_(\d+)", path.name)
    return int(found[1]) if found else 0


def _sessions(where: str, chat: Mapping[str, Any]) -> list[tuple[str, datetime, list[Any]]]:
    numbers = sorted(int(found[1]) for name in chat if (found := _SESSION.fullmatch(name)) and chat[name])
    if not numbers:
        raise BadData(f"{where} holds no session_1", hint="give the file as it is distributed")
    return [
        (f"session_{n}", _moment(where, chat.get(f"session_{n}_date_time")), whole(where, chat[f"session_{n}"], list))
        for n in numbers
    ]


def _moment(where: str, text: Any) -> datetime:
    """A time as either file writes it: ``1:56 pm on 8 May, 2023`` or ``29.12.2023, 22:42:04``."""
    for shape in ("%I:%M %p on %d %B, %Y", "%d.%m.%Y, %H:%M:%S"):
        try:
            return datetime.strptime(str(text).strip(), shape).replace(tzinfo=UTC)
        except ValueError:
            continue
    raise BadData(f"{where}: {text!r} is not a time", hint="expected 1:56 pm on 8 May, 2023 or 29.12.2023, 22:42:04")


def _lines(name: str, sessions: Sequence[tuple[str, datetime, list[Any]]]) -> Iterator[Line]:
    first = ""
    for session, at, messages in sessions:
        for message in messages:
            where = f"{name}: {session}"
            text = str(whole(where, message, dict).get("text", message.get("clean_text", "")) or "")
            caption = message.get("blip_caption")
            if caption:
                text = f"{text} [shares photo: {caption}]".strip()
            speaker = str(message.get("speaker", ""))
            first = first or speaker
            said = _moment(where, message["date_time"]) if "date_time" in message else at
            role = "user" if speaker == first else "assistant"
            yield Line(f"{name}/{message.get('dia_id')}", f"{name}/{session}", speaker, role, text, said)


def _sample(
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
