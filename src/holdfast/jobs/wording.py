"""In whose words a model is instructed: the library's, or a user's own."""

from __future__ import annotations

from collections.abc import Sequence

from ..llm.prompts import Prompt, load
from ..store import PromptRow, ReadView

CUSTOM = ("chunk_summary", "meta_summary", "fact_extraction")
"""The prompts that a user may put in their own words."""
COMBINED = "combined"
PARTS = {"For the summary": "chunk_summary", "For the facts": "fact_extraction"}


def worded(view: ReadView, name: str) -> Prompt:
    """The prompt *name* as it is used for the view's user from now on."""
    return in_words(name, view.prompts() if name in CUSTOM or name == COMBINED else [])


def in_words(name: str, rows: Sequence[PromptRow]) -> Prompt:
    """
    The prompt *name* after the newest of the versions that are of it.

    The one that asks for everything at once takes up what a user says about its parts.
    """
    prompt = load(name)
    if name == COMBINED:
        wanted = [f"{part}: {text}" for part, of in PARTS.items() if (text := _newest(of, rows))]
        return prompt.reworded("\n\n".join([prompt.task, *wanted])) if wanted else prompt
    text = _newest(name, rows)
    return prompt.reworded(text) if text else prompt


def _newest(name: str, rows: Sequence[PromptRow]) -> str:
    """A user's own words for a prompt; empty where ours are used."""
    own = [row for row in rows if row.name == name and not row.draft]
    return max(own, key=lambda row: row.version).text if own else ""
