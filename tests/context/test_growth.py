"""The six strategies over the same 200 turns: what each keeps, how its tokens grow, what it loses, whom it calls."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import mean
from unittest.mock import patch

import pytest

from holdfast import Config

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "explanation" / "strategies.md"
DRIFT = 0.12  # the page may differ from a new measurement by so much before it must be made anew
STALE = "run scripts/make_plots.py and put the table that it prints into the page"


def _plots():
    spec = importlib.util.spec_from_file_location("make_plots", ROOT / "scripts" / "make_plots.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["make_plots"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


plots = _plots()


@pytest.fixture(autouse=True, scope="module")
def real_chunks() -> Iterator[None]:
    """The page speaks of the default, which most tests replace; see conftest.py."""
    with patch.dict(Config.__init__.__kwdefaults__, chunk_tokens=600):
        yield


ROW = re.compile(r"^\| `(\w+)\(\d*\)` \| (.+) \|$", re.MULTILINE)
DRAWN = re.compile(r'points="([^"]+)"')


def measured(name: str):
    """The line of one strategy, measured now; the page and the picture must say the same."""
    order = [type(line.strategy).__name__ for line in plots.lines()]
    line = plots.measure(plots.lines()[order.index(name)])
    (*sizes, found, calls) = dict(ROW.findall(PAGE.read_text(encoding="utf-8")))[name].split(" | ")
    for turn, size in zip((10, 50, 100, 200), sizes, strict=True):
        assert int(size.replace(",", "")) == pytest.approx(line.tokens[turn], rel=DRIFT), STALE
    assert int(found.split(" of ")[0]) == pytest.approx(line.found, abs=2), STALE
    assert calls == str(line.calls or "none"), STALE
    before = DRAWN.findall(plots.PICTURE.read_text(encoding="utf-8"))[order.index(name)]
    heights = [[float(point.split(",")[1]) for point in points.split()] for points in (before, plots.drawn(line))]
    assert mean(heights[0]) == pytest.approx(mean(heights[1]), abs=8), STALE
    assert len(heights[0]) == pytest.approx(len(heights[1]), abs=3), STALE
    return line


def over(line, first: int, last: int) -> list[int]:
    return [tokens for turn, tokens in line.tokens.items() if first <= turn <= last]


def test_a_buffer_keeps_everything_and_grows_with_every_turn():
    line = measured("Buffer")
    sizes = list(line.tokens.values())

    assert sizes == sorted(sizes)
    assert 3.5 < line.tokens[200] / line.tokens[50] < 4.5
    assert (line.found, line.calls) == (30, 0)


def test_a_window_is_fixed_and_loses_what_is_older():
    line = measured("Window")

    assert max(over(line, 10, 200)) < 700
    assert (line.found, line.calls) == (0, 0)


def test_a_token_buffer_is_filled_to_its_tokens_and_loses_what_is_older():
    line = measured("TokenBuffer")

    assert all(2000 - 250 < tokens <= 2000 for tokens in over(line, 40, 200))
    assert (line.found, line.calls) == (0, 0)


def test_a_summary_is_near_constant_loses_details_and_calls_once_an_exchange():
    line = measured("Summary")

    assert mean(over(line, 150, 200)) < 1.5 * mean(over(line, 20, 70))
    assert max(line.tokens.values()) < 1000
    assert line.found < 10
    assert line.calls == 197  # all but the two that stay verbatim and the one that is being asked


def test_a_summary_buffer_is_bounded_loses_old_details_and_calls_once_an_overflow():
    line = measured("SummaryBuffer")

    assert max(line.tokens.values()) < 2000 + 500
    assert line.found < 10
    assert 8 <= line.calls <= 30


def test_a_layered_context_levels_off_and_finds_everything_again_without_a_call():
    line = measured("Layered")

    assert max(line.tokens.values()) <= 4000
    assert mean(over(line, 150, 200)) < 1.25 * mean(over(line, 100, 150))
    assert line.found >= 28
    assert line.calls == 0


def luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(share * channel for share, channel in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("page", ["#ffffff", "#0d1117"], ids=["light", "dark"])
def test_every_colour_can_be_read_on_a_light_and_on_a_dark_page(page):
    colours = set(re.findall(r'(?:stroke|fill)="(#[0-9a-f]{6})"', plots.PICTURE.read_text(encoding="utf-8")))

    assert len(colours) >= 6
    for colour in colours:
        bright, dim = sorted((luminance(colour), luminance(page)), reverse=True)
        assert (bright + 0.05) / (dim + 0.05) >= 3, colour
