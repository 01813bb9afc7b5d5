"""The benchmark that shows what moved: it runs, and tells noise from a change."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    warnings.simplefilter("ignore")  # where the server puts its sockets is its own affair
    return runpy.run_path(str(BENCHMARKS / "quick.py"))


def lines(quick, now, kept) -> dict[str, str]:
    return {line[:42].strip(): line for line in quick["told"](now, kept)}


def test_only_what_moved_beyond_the_noise_is_marked(quick):
    now = {
        "turn, fast": (6.0, 0.02),
        "claims/s of 16 workers, PostgreSQL": (9.0, 0.02),
        "turn": (6.0, 0.3),
        "new": (1, 0),
    }
    kept = {name: (5.0, 0.02) for name in now if name != "new"}
    told = lines(quick, now, kept)

    assert "MOVED: WORSE" in told["turn, fast"]
    assert "moved: better" in told["claims/s of 16 workers, PostgreSQL"]
    assert "oved" not in told["turn"] + told["new"]


def test_every_kept_figure_is_measured_and_every_aim_is_kept(quick):
    kept = json.loads((BENCHMARKS / "quick.json").read_text(encoding="utf-8"))["figures"]

    assert quick["AIMS"].keys() <= kept.keys()


@pytest.mark.slow
def test_it_runs_at_a_sixtieth_of_its_size():
    command = [sys.executable, str(BENCHMARKS / "quick.py"), "--tiny", "--rounds", "1"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    figures = json.loads((BENCHMARKS / "quick.json").read_text(encoding="utf-8"))["figures"]

    assert ran.returncode == 0, ran.stderr
    assert [name for name in figures if f"\n{name} " not in ran.stdout] == []
