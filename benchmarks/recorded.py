"""
Recorded answers of a model, given again to today's code.

A recording is a file of JSON lines: ``layer`` (may be left out), ``messages`` (what the model was sent, system and user) and ``answer``; ``case`` names
the chat where a file holds several.  Prompts change, so answers are found by what they speak of: a fact by the number of its message, an episode by the
last message that it cites, a summary by its range.  What was not recorded is answered as by a model that finds nothing worth noting.
"""

from __future__ import annotations

import csv
import io
import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast.digest.answers import parse_parts, strip_fences
from holdfast.digest.answers.fact_answers import LONG_COLUMNS, parse_rows
from holdfast.llm.protocol import Answer, Request
from holdfast.testing.model import uneventful
from holdfast.text.terms import count_tokens

_OPENINGS = {
    "Note what": "facts",
    "Note the specific": "episodes",
    "Sum up this": "chunk_summary",
    "You are given summaries": "meta_summary",
    "You are given the summary": "rolling_summary",
    "You read one stretch": "combined",
}
_NUMBER = re.compile(r"^(\d+) (?:user|assistant|tool|system)\b")
_RANGE = re.compile(r"^messages (\d+)-(\d+)")
_CITED = re.compile(r"\[([\d, –-]+)\]\s*$")


def layer_of(line: dict[str, Any]) -> str:
    """Return the layer of a recorded request, by its name or by how its instructions begin."""
    opening = line["messages"][0]["content"]
    return line.get("layer") or next((layer for start, layer in _OPENINGS.items() if opening.startswith(start)), "")


def numbers_read(text: str) -> list[int]:
    """Return the numbers of the messages, or of the ends of the ranges, that a request asks to read."""
    found: list[int] = []
    block = text.partition("<read>\n")[2].partition("\n</read>")[0]
    for item in map(json.loads, block.split("\n") if block else ()):  # older code escaped other characters
        number, ends = _NUMBER.match(item), _RANGE.match(item)
        found += [int(number[1])] if number else [int(ends[1]), int(ends[2])] if ends else []
    return found


@dataclass
class Recording:
    """What a model answered about one chat: rows and bullets by message, summaries by layer and range."""

    rows: dict[int, list[dict[str, str]]] = field(default_factory=dict)
    bullets: dict[int, list[str]] = field(default_factory=dict)
    summaries: dict[tuple[str, int, int], str] = field(default_factory=dict)
    said: dict[tuple[str, str], str] = field(default_factory=dict)

    def add(self, line: dict[str, Any]) -> None:
        """Add one recorded request with its answer."""
        layer, answer, text = layer_of(line), line["answer"], line["messages"][-1]["content"]
        self.said[line["messages"][0]["content"], text] = answer
        numbers = numbers_read(text) or [0]
        if layer == "facts":
            self._add_rows(answer, numbers[-1])
        elif layer == "episodes":
            self._add_bullets(answer, numbers[-1])
        elif layer == "combined":
            parts = parse_parts(answer)
            self._add_rows(parts.get("facts", ""), numbers[-1])
            self._add_bullets(parts.get("episodes", ""), numbers[-1])
            self.summaries["chunk_summary", numbers[0], numbers[-1]] = answer.partition("EPISODES:")[0]
        else:
            self.summaries[layer, numbers[0], numbers[-1]] = answer

    def _add_rows(self, text: str, last: int) -> None:
        for row in parse_rows(strip_fences(text)).rows:
            number = re.search(r"\d+", row.get("message", ""))
            self.rows.setdefault(int(number[0]) if number else last, []).append(row)

    def _add_bullets(self, text: str, last: int) -> None:
        for line in filter(lambda line: line.strip().startswith("- "), text.splitlines()):
            cited = _CITED.search(line)
            numbers = [int(number) for number in re.findall(r"\d+", cited[1])] if cited else [last]
            self.bullets.setdefault(max(numbers), []).append(line.strip())


def load_recordings(path: Path, *, economy: bool = False) -> dict[str, Recording]:
    """Return the recordings of a file by case; of a chat that was read in both ways, those of the way in use."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    both = {layer_of(line) for line in lines} >= {"facts", "episodes", "combined"}  # as older versions asked
    found: dict[str, Recording] = {}
    for line in lines:
        if not (both and layer_of(line) == ("facts" if economy else "combined")):
            found.setdefault(line.get("case", ""), Recording()).add(line)
    return found


class ReplayModel:
    """A model that answers from a recording; ``calls`` and ``tokens`` count what it was sent."""

    name = "recorded:1"

    def __init__(self, recording: Recording) -> None:
        self.recording, self.calls, self.tokens = recording, 0, 0

    def ask(self, request: Request) -> Answer:
        """Answer with what was recorded of the messages that the request asks to read."""
        numbers = numbers_read(request.text) or [0]
        if request.layer == "facts":
            text = self._facts(numbers)
        elif request.layer == "episodes":
            text = self._episodes(numbers)
        elif request.layer == "combined":
            summary = self._summary("chunk_summary", numbers) or f"SUMMARY: {request.text[-200:]}"
            text = f"{summary}\nEPISODES:\n{self._episodes(numbers)}\nFACTS:\n{self._facts(numbers)}"
        else:
            text = self._summary(request.layer, numbers) or uneventful(request)
        return self._answer(request, text)

    def _answer(self, request: Request, text: str) -> Answer:
        asked = count_tokens(request.system) + count_tokens(request.text)
        self.calls, self.tokens = self.calls + 1, self.tokens + asked
        return Answer(text, self.name, input_tokens=asked, output_tokens=count_tokens(text), estimated=True)

    def _facts(self, numbers: list[int]) -> str:
        out = io.StringIO()
        rows = csv.writer(out, lineterminator="\n")
        for number in numbers:
            rows.writerows([row.get(name, "") for name in LONG_COLUMNS] for row in self.recording.rows.get(number, []))
        return f"{','.join(LONG_COLUMNS)}\n{out.getvalue()}" if out.getvalue() else "NONE"

    def _episodes(self, numbers: list[int]) -> str:
        found = [line for number in numbers for line in self.recording.bullets.get(number, [])]
        return "\n".join(found) or "No facts to record"

    def _summary(self, layer: str, numbers: list[int]) -> str:
        return self.recording.summaries.get((layer, numbers[0], numbers[-1]), "")


class RecordingModel:
    """
    A model whose answers are written by hand: each request into a file, its answer out of another, both into a recording.

    *folder* gets ``NNN.request.txt``; the call waits until ``NNN.answer.txt`` is there and does not grow any more.  A request that
    *recording* holds word for word is answered from it at once, so that a run which broke off goes on where it was.
    """

    name = "hand:1"

    def __init__(self, folder: Path, record: Path, case: str, *, wait_s: float = 36_000.0) -> None:
        self._folder, self._record, self._case, self._wait_s = folder, record, case, wait_s
        folder.mkdir(parents=True, exist_ok=True)
        known = load_recordings(record) if record.exists() else {}
        self._known = known.get(case, Recording()).said
        self._lock, self._pause = threading.Lock(), threading.Event()

    def ask(self, request: Request) -> Answer:
        """Return the answer that somebody writes."""
        with self._lock:
            text = self._known.get((request.system, request.text))
            if text is None:
                text = self._wait(request)
                self._known[request.system, request.text] = text
                self._write(request, text)
        asked = count_tokens(request.system) + count_tokens(request.text)
        return Answer(text, self.name, input_tokens=asked, output_tokens=count_tokens(text), estimated=True)

    def _wait(self, request: Request) -> str:
        number = next(n for n in self._numbers() if not (self._folder / f"{n:03}.request.txt").exists())
        asked, answered = (self._folder / f"{number:03}.{kind}.txt" for kind in ("request", "answer"))
        asked.write_text(
            f"case {self._case}, layer {request.layer}\n\n=== system\n{request.system}\n\n=== user\n{request.text}\n",
            encoding="utf-8",
        )
        waited, size = 0.0, -1
        while waited < self._wait_s:
            self._pause.wait(0.5)
            waited += 0.5
            now = answered.stat().st_size if answered.exists() else -1
            if now >= 0 and now == size:
                return answered.read_text(encoding="utf-8").strip()
            size = now
        raise TimeoutError(f"nobody wrote {answered}")

    def _numbers(self) -> Iterator[int]:
        yield from range(1, 100_000)

    def _write(self, request: Request, text: str) -> None:
        sent = [{"role": "system", "content": request.system}, {"role": "user", "content": request.text}]
        line = {"case": self._case, "layer": request.layer, "messages": sent, "answer": text}
        with self._record.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
