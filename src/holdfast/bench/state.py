"""
Where a run stands, on disk: a folder with the memory that was filled and a line for every finished step.

A run that is stopped, even by a kill, goes on from here: what has a line is not done again.
"""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

from ..errors import Conflict

Record = dict[str, Any]


class State:
    """
    The folder of one run.

    Raises:
        Conflict: the folder holds a run of other data or with other options.
    """

    def __init__(self, folder: Path, about: Record) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        described = folder / "about.json"
        if described.exists() and json.loads(described.read_text(encoding="utf-8")) != about:
            raise Conflict(
                f"{folder} holds a run of other data, or with another embedder or model",
                hint="name another folder with --state, or remove this one",
            )
        described.write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
        self._path = folder / "steps.jsonl"
        self._lock = threading.Lock()
        self._done = {(str(row["step"]), str(row["id"])): row for row in self._rows()}

    @property
    def memory(self) -> Path:
        """The memory's file."""
        return self.folder / "memory.db"

    def get(self, step: str, id: str) -> Record | None:
        """What was written for a finished step; None when it is still to do."""
        return self._done.get((step, id))

    def put(self, step: str, id: str, **found: Any) -> Record:
        """A step is finished: written when this returns.  Several threads may."""
        row = {"step": step, "id": id, **found}
        with self._lock, self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
            self._done[step, id] = row
        return row

    def __len__(self) -> int:
        return len(self._done)

    def _rows(self) -> list[Record]:
        """The finished steps; a line that a kill cut short is taken off the file."""
        if not self._path.exists():
            return []
        text = self._path.read_bytes()
        whole = text[: text.rfind(b"\n") + 1]
        if whole != text:
            self._path.write_bytes(whole)
        return [json.loads(line) for line in whole.decode().splitlines()]
