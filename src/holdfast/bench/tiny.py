"""The bundled benchmark: small, written for this package, runnable without any download."""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import Any

from .questions import Benchmark, Line, Question, Sample, sessions_of


def load_tiny() -> Benchmark:
    """Four conversations with thirty-two questions; too small to tell systems apart, enough to see one work."""
    text = (resources.files(__package__) / "data" / "tiny.toml").read_text(encoding="utf-8")
    samples = tuple(_sample(record) for record in tomllib.loads(text)["conversation"])
    return Benchmark("tiny", samples)


def _sample(record: dict[str, Any]) -> Sample:
    name = record["id"]
    lines: list[Line] = []
    named: dict[str, int] = {}
    first = ""
    for number, session in enumerate(record["session"], 1):
        for text in session["lines"].strip().splitlines():
            words, _, mark = text.partition(" #")
            speaker, _, said = words.partition(": ")
            first = first or speaker
            role = speaker if speaker in ("user", "assistant") else "user" if speaker == first else "assistant"
            lines.append(Line(f"{name}/{len(lines) + 1}", f"{name}/{number}", speaker, role, said, session["at"]))
            if mark:
                named[mark] = len(lines) - 1
    return Sample(name, tuple(lines), tuple(_questions(name, tuple(lines), named, record["question"])))


def _questions(
    name: str, lines: tuple[Line, ...], named: dict[str, int], records: list[dict[str, Any]]
) -> list[Question]:
    def cited(record: dict[str, Any], field: str) -> tuple[str, ...]:
        """``rent rent2``: the lines of these names; ``knee+1``: the one after."""
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
