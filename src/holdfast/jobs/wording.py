"""In whose words a model is instructed: the library's, or a person's own."""

from __future__ import annotations

from collections.abc import Sequence

from ..llm.prompts import Prompt, load
from ..store.protocol import ReadView
from ..store.values import PromptRow

CUSTOM = ("chunk_summary", "meta_summary", "fact_extraction")
"""The prompts that a person may put in their own words."""


def worded(view: ReadView, name: str) -> Prompt:
    """The prompt *name* as it is used for the view's person from now on."""
    return in_words(name, view.prompts() if name in CUSTOM else [])


def in_words(name: str, rows: Sequence[PromptRow]) -> Prompt:
    """The prompt *name* after the newest of the versions that are of it."""
    own = [row for row in rows if row.name == name]
    newest = max(own, key=lambda row: row.version, default=None)
    return load(name).reworded(newest.text) if newest and newest.text else load(name)
