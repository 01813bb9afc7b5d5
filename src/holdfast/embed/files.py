"""Location of the default embedder's two data files: the package, or the user's cache."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path

from ..text import dataclass

WEIGHTS_FILE, VOCABULARY_FILE = "minilm_w8.npz", "vocab.txt"

PACKAGE_DATA = Path(__file__).parent / "data"


@dataclass(frozen=True, slots=True)
class ModelState:
    """The location of the files; ``present`` says whether they are there."""

    present: bool
    folder: Path


def cache_folder() -> Path:
    """This user's copy, shared by all installations: ``HOLDFAST_CACHE``, or where the system keeps caches."""
    if given := os.environ.get("HOLDFAST_CACHE"):
        return Path(given)
    home = Path(os.path.expanduser("~"))
    if not home.is_absolute():  # a container's user without a home: there is only the package
        return PACKAGE_DATA
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / "holdfast"
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "holdfast"
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "holdfast"


def state() -> ModelState:
    """Whether the files are here: the package's own first, then the user's cache."""
    for folder in (PACKAGE_DATA, cache_folder()):
        if all((folder / name).is_file() for name in (WEIGHTS_FILE, VOCABULARY_FILE)):
            return ModelState(True, folder)
    return ModelState(False, cache_folder())


def common_words() -> frozenset[str]:
    """Return the roughly 20,000 whole words of the vocabulary, mostly English; none while the files are missing."""
    found = state()
    return _words_in(found.folder) if found.present else frozenset()


@cache
def _words_in(folder: Path) -> frozenset[str]:
    lines = (folder / VOCABULARY_FILE).read_text(encoding="utf-8").split("\n")
    return frozenset(line for line in lines if len(line) > 2 and line.isalpha())
