"""
Draw ``docs/architecture.svg``: the folders of the package as rooms, their imports as lines.

    python scripts/make_architecture.py           write it
    python scripts/make_architecture.py --check   fail if it is stale; `make check` runs this

A room is a folder or a loose file of ``src/holdfast``; the doors share one room, and so do the small values below everything.
Imports point down.  A line that follows from others (a imports b, b imports c, so a to c) is left out.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "holdfast"
TARGET = ROOT / "docs" / "architecture.svg"

# Rooms that share one box, under one name.
TOGETHER = {
    "values": ("clock", "config", "errors", "reports", "scope", "types"),
    "doors": ("admin", "aio", "conversation", "memory", "user"),
}
LEFT_OUT = ("__init__", "__main__")

CAPTIONS = {
    "bench": "quality benchmarks",
    "cli": "the command",
    "client": "the doors over HTTP",
    "compat": "mem0 and Zep over a memory",
    "context": "the next prompt",
    "digest": "conversation to knowledge",
    "doors": "Memory, Conversation, User",
    "embed": "texts to vectors",
    "engine": "the order of the stages",
    "importers": "chats from elsewhere",
    "ingest": "a message comes in",
    "integrations": "plugs for frameworks",
    "jobs": "background work",
    "llm": "models behind one call",
    "privacy": "consent, erasure, export",
    "recall": "a question finds memory",
    "reconcile": "new facts meet old",
    "server": "HTTP, MCP, proxy, pages",
    "store": "the database port",
    "testing": "fakes, store contract",
    "text": "tokens, dates, languages",
    "values": "types, config, errors …",
}
# From top to bottom, as imports point; the stages come in the order in which a message meets them.
STAGES = ("ingest", "digest", "reconcile", "recall", "context")
ROWS = (
    ("cli",),
    ("server", "bench"),
    ("client", "compat", "importers", "testing"),
    ("integrations",),
    ("doors",),
    ("engine",),
    ("privacy",),
    ("jobs",),
    STAGES,
    ("store", "llm", "embed"),
    ("text",),
    ("values",),
)

WIDTH, BOX_WIDTH, BOX_HEIGHT, ROW = 1000, 172, 46, 86

STYLE = """\
  text { font: 13px system-ui, sans-serif; fill: #1f2328; text-anchor: middle }
  .caption { font-size: 11px; fill: #59636e }
  rect { fill: #f6f8fa; stroke: #59636e }
  .stage { fill: #ddf4ff; stroke: #0969da }
  path { fill: none; stroke: #8c959f }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc } .caption { fill: #9198a1 } rect { fill: #151b23; stroke: #656c76 }
    .stage { fill: #0c2d50; stroke: #4493f8 } path { stroke: #656c76 }
  }"""


def room_of(parts: Sequence[str]) -> str:
    """Return the room of a module, given its dotted parts below the package."""
    return next((name for name, members in TOGETHER.items() if parts[0] in members), parts[0])


def imports_between_rooms() -> dict[str, set[str]]:
    """Return, for each room, the rooms that its files import; type checkers' imports do not count."""
    graph: dict[str, set[str]] = defaultdict(set)
    for path in sorted(PACKAGE.rglob("*.py")):
        here = path.relative_to(PACKAGE).with_suffix("").parts
        if here[0] in LEFT_OUT:
            continue
        graph[room_of(here)].update(
            room_of(target) for target in imported(path, here) if target[0] not in LEFT_OUT and target[0][0] != "_"
        )
    graph["values"].discard("text")  # both are the base, whose parts may use each other: settings name languages
    return {room: {other for other in others if other in graph} - {room} for room, others in graph.items()}


def imported(path: Path, here: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return the dotted parts, below the package, of what the module *here* imports from the package."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            node.body = []
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = here[: len(here) - node.level]
            found += [(*base, *(node.module or "").split("."), name.name) for name in node.names]
    return [tuple(part for part in target if part) for target in found]


def without_shortcuts(graph: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Return the same graph less each line that follows from others."""

    def reach(room: str) -> set[str]:
        return graph[room].union(*(reach(other) for other in graph[room]))

    return {room: others - set().union(*(reach(other) for other in others)) for room, others in graph.items()}


def places() -> dict[str, tuple[float, float]]:
    """Return the center of each room's box."""
    return {
        room: (WIDTH * (number + 0.5) / len(rooms), row * ROW + BOX_HEIGHT)
        for row, rooms in enumerate(ROWS)
        for number, room in enumerate(rooms)
    }


def drawing() -> str:
    """Return the picture as SVG."""
    graph, at = imports_between_rooms(), places()
    if homeless := sorted(graph.keys() - at.keys()):
        raise SystemExit(f"no place in ROWS or TOGETHER of scripts/make_architecture.py for: {', '.join(homeless)}")
    height = max(y for _, y in at.values()) + BOX_HEIGHT
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" role="img" '
        'aria-label="The rooms of Holdfast, each above what it imports">',
        f"<style>\n{STYLE}\n</style>",
    ]
    for room, others in sorted(without_shortcuts(graph).items()):
        for other in sorted(others):
            (x1, y1), (x2, y2) = at[room], at[other]
            y1, y2 = y1 + BOX_HEIGHT / 2, y2 - BOX_HEIGHT / 2
            middle = (y1 + y2) / 2
            lines.append(
                f'<path d="M{x1:.0f} {y1:.0f}C{x1:.0f} {middle:.0f} {x2:.0f} {middle:.0f} {x2:.0f} {y2:.0f}"/>'
            )
    for room, (x, y) in sorted(at.items()):
        kind = ' class="stage"' if room in STAGES else ""
        corner = f'x="{x - BOX_WIDTH / 2:.0f}" y="{y - BOX_HEIGHT / 2:.0f}"'
        lines.append(f'<rect{kind} {corner} width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="8"/>')
        lines.append(f'<text x="{x:.0f}" y="{y - 3:.0f}">{escape(room)}</text>')
        lines.append(f'<text class="caption" x="{x:.0f}" y="{y + 13:.0f}">{escape(CAPTIONS.get(room, ""))}</text>')
    return "\n".join([*lines, "</svg>", ""])


def main(arguments: Sequence[str]) -> int:
    """Write the picture, or with ``--check`` say whether it is stale."""
    text = drawing()
    if arguments == ["--check"]:
        if TARGET.is_file() and TARGET.read_text(encoding="utf-8") == text:
            return 0
        print(f"{TARGET.relative_to(ROOT)} is stale; run: make generate", file=sys.stderr)
        return 1
    TARGET.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
