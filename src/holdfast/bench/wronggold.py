"""Questions whose answer key is known to be wrong: ours, and those of a list that somebody gives."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from .files import read_json, whole
from .questions import BadData, Benchmark

_AUDIT = re.compile(r"locomo_(\d+)_qa(\d+)")
CITATION_ONLY = "WRONG_CITATION"  # the answer is right, the line that it cites is not


def wrong_gold(benchmark: Benchmark, path: Path | None = None) -> dict[str, str]:
    """
    The questions of *benchmark* with a wrong key: id → why.

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
    for record in whole(path, data, list):
        record = {"question_id": record} if isinstance(record, str) else whole(path, record, dict)
        if "question_id" not in record:
            raise BadData(f"{path}: a record has no question_id", hint="give a list of ids, or of records with one")
        if record.get("error_type") != CITATION_ONLY:
            found[str(record["question_id"])] = _why(record)
    return found


def _why(record: Mapping[str, Any]) -> str:
    return str(next((record[name] for name in ("reason", "reasoning", "error_type") if record.get(name)), "listed"))


def _named(benchmark: Benchmark, id: str) -> str:
    """The audit counts conversations from 0 in the order of the file."""
    found = _AUDIT.fullmatch(id)
    if found is None or int(found[1]) >= len(benchmark.samples):
        return id
    return f"{benchmark.samples[int(found[1])].id}/q{found[2]}"
