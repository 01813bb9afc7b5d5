"""
Draw how many tokens each strategy sends, turn by turn, and measure what it loses and costs.

    python scripts/make_plots.py           write docs/explanation/strategies.svg and print the table
    python scripts/make_plots.py --table   print the table only

The chat is `holdfast.bench.model_calls.ordinary_chat`; everything is deterministic, nothing calls a
model, and the drawing is plain SVG whose colors can be read on a light and on a dark page.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from html import escape
from itertools import pairwise
from pathlib import Path

from holdfast import Memory, Message, strategies
from holdfast.bench.model_calls import FIRST_AT, ordinary_chat
from holdfast.testing.fakes import FakeClock
from holdfast.text.terms import MESSAGE_OVERHEAD_TOKENS, count_tokens
from holdfast.types import RollingSummary

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs" / "explanation" / "strategies.svg"
TURNS = 200
TURNS_DRAWN = range(2, TURNS + 1, 2)
THING_EVERY = 5  # turns between two things that are asked for at the end

PLACES = (
    "attic bakery cellar dentist easel ferry garage hut inn jetty kiosk lighthouse mill nursery orchard piano quarry "
    "rowing-boat shed tower umbrella-stand vineyard workshop xylophone yard zoo allotment barn caravan darkroom"
).split()
HIDDEN = (
    "blue jar|left boot|tea tin|second drawer|bird house|watering can|old clock|sewing box|bread bin|paint pot|"
    "lantern|toolbox|green vase|cookie jar|letter rack|coal bucket|flower pot|fishing basket|hat box|honey glass|"
    "spice rack|piggy bank|milk churn|guitar case|pencil case|biscuit tin|salt cellar|shoe box|wicker trunk|egg cup"
).split("|")
assert len(PLACES) == len(HIDDEN) == 30


@dataclass
class Line:
    """One strategy through the whole chat."""

    strategy: strategies.Strategy
    label: str
    colour: str
    dash: str = ""
    tokens: dict[int, int] = field(default_factory=dict)  # by turn
    calls: int = 0
    found: int = 0


def lines() -> list[Line]:
    """What is compared, in the order of the table."""
    return [
        Line(strategies.Buffer(), "Buffer()", "#6e7781"),
        Line(strategies.Window(5), "Window(5)", "#d97706"),
        Line(strategies.TokenBuffer(2000), "TokenBuffer(2000)", "#a855f7"),
        Line(strategies.Summary(2), "Summary(2)", "#16a34a", "6 3"),
        Line(strategies.SummaryBuffer(2000), "SummaryBuffer(2000)", "#e0484d", "2 3"),
        Line(strategies.Layered(), "Layered()", "#3b82f6"),
    ]


def things() -> list[tuple[str, str, str]]:
    """``(said, asked, answer)``: thirty small things that nobody asks for before the end."""
    return [
        (f"The spare key of the {place} is in the {hidden}.", f"Where is the spare key of the {place}?", hidden)
        for place, hidden in zip(PLACES, HIDDEN, strict=True)
    ]


def talk() -> list[Message]:
    """The exchanges; every fifth begins with one of the `things`, the last fifty turns hold none."""
    messages, said = ordinary_chat(TURNS), iter(things())
    for start in range(0, len(messages), 2 * THING_EVERY):
        thing = next(said, None)
        if thing:
            user = messages[start]
            messages[start] = Message("user", f"{thing[0]} {user.content}", at=user.at)
    return messages


def cost(messages: Sequence[Message]) -> int:
    """Tokens of messages as a provider counts them, by our estimate."""
    return sum(count_tokens(message.content) + MESSAGE_OVERHEAD_TOKENS for message in messages)


def classic(line: Line, messages: Sequence[Message]) -> None:
    """Replay the talk with a strategy that needs nothing but messages."""
    strategy, summary, count = line.strategy, RollingSummary(), lru_cache(None)(count_tokens)
    shown: list[Message] = []
    for end in range(1, len(messages), 2):
        if isinstance(strategy, strategies.Summary | strategies.SummaryBuffer):
            before, summary = summary, strategy.fold(messages[: end - 1], summary, count=count)
            line.calls += summary != before
        if end // 2 + 1 in TURNS_DRAWN:
            shown = strategy.apply(messages[:end], summary=summary, count=count)  # type: ignore[attr-defined]
            line.tokens[end // 2 + 1] = cost(shown)
    text = "\n".join(message.content for message in shown)
    line.found = sum(answer in text for _, _, answer in things())


def layered(line: Line, messages: Sequence[Message]) -> None:
    """Replay the talk with a memory; the question is not stored yet when its context is made."""
    clock = FakeClock(FIRST_AT)
    with Memory(embedder=None, clock=clock) as memory:
        chat = memory.conversation("plot", user="plot", strategy=line.strategy)
        for start in range(0, len(messages), 2):
            clock.advance(seconds=max(0.0, ((messages[start].at or clock()) - clock()).total_seconds()))
            if start // 2 + 1 in TURNS_DRAWN:
                line.tokens[start // 2 + 1] = chat.context(messages[start].content).tokens
            chat.append(messages[start : start + 2])
            memory.digest()
        line.found = sum(answer in chat.context(asked).to_text() for _, asked, answer in things())


def measure(line: Line) -> Line:
    """*line* with what its strategy did in the talk, which is the same for all."""
    (layered if isinstance(line.strategy, strategies.Layered) else classic)(line, talk())
    return line


def table(measured: Sequence[Line]) -> str:
    """Tokens along the way, what could be answered at the end, and calls, in Markdown."""
    marks = (10, 50, 100, TURNS)
    head = "| strategy | " + " | ".join(f"turn {mark}" for mark in marks) + " | found at the end | extra calls |\n"
    rows = [
        f"| `{line.label}` | "
        + " | ".join(f"{line.tokens[mark]:,}" for mark in marks)
        + f" | {line.found} of {len(PLACES)} | {line.calls or 'none'} |\n"
        for line in measured
    ]
    return head + "|---|" + "--:|" * (len(marks) + 2) + "\n" + "".join(rows)


WIDTH, HEIGHT = 820, 440
LEFT, RIGHT, TOP, BOTTOM = 64, 178, 44, 50
HIGHEST = 5_000
TEXT = "#6e7781"
GRID = "#6e778155"


def across(turn: float) -> float:
    """Where a turn stands, in pixels from the left."""
    return LEFT + (WIDTH - LEFT - RIGHT) * turn / TURNS


def up(tokens: float) -> float:
    """Where so many tokens stand, in pixels from the top."""
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * tokens / HIGHEST


def drawn(line: Line) -> str:
    """The points of a line as SVG takes them."""
    return " ".join(f"{across(turn):.1f},{up(tokens):.1f}" for turn, tokens in points(line.tokens))


def picture(measured: Sequence[Line]) -> str:
    """The drawing as SVG; what goes above the frame leaves it at the top and says where it ends."""
    said = "; ".join(f"{line.label} {line.tokens[TURNS]:,}" for line in measured)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'font-family="system-ui, sans-serif" font-size="13">',
        "<title>Tokens sent with each reply, by strategy</title>",
        f"<desc>Over {TURNS} turns of an ordinary chat. At the end: {escape(said)}.</desc>",
        f'<text x="{LEFT - 48}" y="22" fill="{TEXT}" font-size="14">tokens sent with the reply</text>',
    ]
    for tokens in range(0, HIGHEST + 1, 1000):
        y = up(tokens)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="{GRID}" fill="none"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" fill="{TEXT}" text-anchor="end">{tokens:,}</text>')
    for turn in range(0, TURNS + 1, 50):
        parts.append(
            f'<text x="{across(turn):.1f}" y="{HEIGHT - BOTTOM + 20}" fill="{TEXT}" text-anchor="middle">{turn}</text>'
        )
    parts.append(f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 10}" fill="{TEXT}" text-anchor="end">turn</text>')
    for line, y in zip(
        measured, _label_heights([up(min(line.tokens[TURNS], HIGHEST)) for line in measured]), strict=True
    ):
        dash = f' stroke-dasharray="{line.dash}"' if line.dash else ""
        parts.append(f'<polyline points="{drawn(line)}" stroke="{line.colour}" stroke-width="2" fill="none"{dash}/>')
        if line.tokens[TURNS] > HIGHEST:
            at = across(points(line.tokens)[-1][0]) + 8
            parts.append(
                f'<text x="{at:.1f}" y="{TOP + 18}" fill="{line.colour}">'
                f"{line.label} goes on: {line.tokens[TURNS]:,} at turn {TURNS}</text>"
            )
        else:
            parts.append(f'<text x="{WIDTH - RIGHT + 8}" y="{y + 4:.1f}" fill="{line.colour}">{line.label}</text>')
    return "\n".join([*parts, "</svg>", ""])


def points(tokens: Mapping[int, int]) -> list[tuple[float, int]]:
    """A line by turn and tokens, up to where it leaves the frame; it only leaves it upwards, for good."""
    inside = [(turn, count) for turn, count in tokens.items() if count <= HIGHEST]
    if len(inside) == len(tokens):
        return inside
    out = next(turn for turn, count in tokens.items() if count > HIGHEST)
    last, count = inside[-1]
    return [*inside, (last + (out - last) * (HIGHEST - count) / (tokens[out] - count), HIGHEST)]


def _label_heights(wanted: Sequence[float], apart: float = 17) -> list[float]:
    """*wanted*, moved as little as needed so that no two labels overlap."""
    found = list(wanted)
    order = sorted(range(len(found)), key=lambda n: found[n])
    for above, below in pairwise(order):
        found[below] = max(found[below], found[above] + apart)
    lowest = HEIGHT - BOTTOM
    for n in reversed(order):
        found[n] = min(found[n], lowest)
        lowest = found[n] - apart
    return found


def main(arguments: list[str]) -> int:
    """Measure, then write and print."""
    measured = [measure(line) for line in lines()]
    if "--table" not in arguments:
        PICTURE.write_text(picture(measured), encoding="utf-8")
    print(table(measured), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
