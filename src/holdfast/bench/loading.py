"""The benchmarks by name, and which files each one takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ..errors import BadInput
from .peerchats import load_locomo, load_realtalk
from .questions import BadData, Benchmark
from .rolechats import load_beam, load_longmemeval
from .tiny import load_tiny

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


def load(name: str, paths: Sequence[Path]) -> Benchmark:
    """
    One benchmark from its public files; ``tiny`` comes with the package and takes none.

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
    """A file itself; of a folder, the JSON files in it."""
    return sorted(path.glob("*.json")) if path.is_dir() else [path]
