"""
The website made of these pages: ``make docs`` writes it to build/site, and fails at a broken link.

The pages stay plain Markdown, readable where they are; what the site needs beyond them is here.
"""

from __future__ import annotations

import re
from pathlib import Path

from pygments.lexers.data import JsonLexer
from sphinx.application import Sphinx

DOCS = Path(__file__).parent.parent

project = "Holdfast"
author = "The Holdfast authors"
copyright = "The Holdfast authors"
extensions = ["myst_parser"]
exclude_patterns = ["site"]
html_theme = "furo"
html_title = "Holdfast"
html_copy_source = False
html_show_sourcelink = False
myst_heading_anchors = 4

# The order of the chapters; the pages of a chapter come in the order in which index.md names them.
CHAPTERS = {
    "tutorial": "Tutorials",
    "from": "You come from …",
    "how-to": "How-to guides",
    "integrations": "Frameworks",
    "reference": "Reference",
    "explanation": "Explanation",
}
OUTSIDE = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+[^)#]+)(?:#[^)]*)?\)")


def pages_of(folder: str) -> list[str]:
    """Return the pages of a chapter: first those that the index names, in its order, then the others."""
    named = re.findall(rf"\({folder}/([\w-]+)\.md", (DOCS / "index.md").read_text(encoding="utf-8"))
    there = sorted(path.stem for path in (DOCS / folder).glob("*.md"))
    return [f"{folder}/{name}" for name in dict.fromkeys([*named, *there]) if name in there]


def navigation() -> str:
    """Return the table of contents for the side of every page, in the words of MyST."""
    parts = {title: pages_of(folder) for folder, title in CHAPTERS.items()}
    parts["Design"] = ["architecture", *pages_of("decisions")]
    blocks = (
        "\n".join(["", "```{toctree}", ":hidden:", f":caption: {title}", "", *pages, "```", ""])
        for title, pages in parts.items()
    )
    return "\n".join(blocks)


def prepare(app: Sphinx, name: str, source: list[str]) -> None:
    """Add the navigation to the index; name files outside the docs instead of linking to them."""
    page = (DOCS / name).parent

    def outside(match: re.Match[str]) -> str:
        target = (page / match[2]).resolve()
        if target.is_relative_to(DOCS) or not target.exists():
            return match[0]
        return f"{match[1]} (`{target.relative_to(DOCS.parent)}`)"

    source[0] = OUTSIDE.sub(outside, source[0]) + (navigation() if name == "index" else "")


def setup(app: Sphinx) -> None:
    """Register what the pages need with Sphinx, which calls this."""
    app.connect("source-read", prepare)
    app.add_lexer("jsonl", JsonLexer)
