"""
Pictures of what the examples print, for docs/how-to/examples.md.

``HOLDFAST_DRAW=1 pytest tests/examples`` draws them again; without it, a picture must show what was printed just now.
"""

from __future__ import annotations

import os
import re
import textwrap
from html import escape, unescape
from pathlib import Path

FOLDER = Path(__file__).parent.parent.parent / "docs/how-to/examples"
DRAWS = bool(os.environ.get("HOLDFAST_DRAW"))
COLUMNS, LINE, CHARACTER, MARGIN = 100, 19, 7.8, 16
STYLE = (
    "text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#d7dce2;white-space:pre}"
    ".typed{fill:#8fd694}"
)
# What differs from run to run: times and days.
VARYING = re.compile(r" *\d+\.\d ms|\d{4}-\d\d-\d\d")


def show(name: str, printed: str) -> None:
    """Check that the picture of an example shows what it printed; draw it when asked to."""
    path = FOLDER / f"{name}.svg"
    if DRAWS:
        path.write_text(drawn(name, printed), encoding="utf-8")
    shown = "\n".join(
        unescape(line) for line in re.findall(r"<text[^>]*>([^<]*)</text>", path.read_text(encoding="utf-8"))
    )

    assert VARYING.sub("~", shown) == VARYING.sub("~", "\n".join(lines_of(printed)))


def lines_of(printed: str) -> list[str]:
    """The lines of a terminal that is so many columns wide; empty ones are not drawn."""
    lines = [line.rstrip() for line in printed.splitlines() if line.strip()]
    return [
        part
        for line in lines
        for part in textwrap.wrap(
            line, COLUMNS, subsequent_indent="    ", drop_whitespace=False, replace_whitespace=False
        )
    ]


def drawn(name: str, printed: str) -> str:
    """An SVG of a terminal, whose words can be read, searched, and copied."""
    rows, y = [], MARGIN
    for line in printed.splitlines():
        for part in lines_of(line):
            y += LINE
            typed = ' class="typed"' if re.match(r"\w+> ", part) and not part.startswith("bot>") else ""
            rows.append(f'<text x="{MARGIN}" y="{y}"{typed}>{escape(part, quote=False)}</text>')
        y += 0 if line.strip() else LINE // 2
    width = round(COLUMNS * CHARACTER) + 2 * MARGIN
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {y + MARGIN}" role="img">',
            f"<title>What {name} prints</title><style>{STYLE}</style>",
            '<rect width="100%" height="100%" rx="8" fill="#1b2027"/>',
            *rows,
            "</svg>\n",
        ]
    )
