"""
How long the first prompt waits: ``import holdfast`` and ``holdfast --help``, beside ``import numpy``.

    python benchmarks/startup.py

Each is a Python process of its own, from start to end; they take turns, so that what else the machine
does hits all of them alike.  Medians of 15 rounds; the ratio is to ``import numpy`` in the same run.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time

ROUNDS = 15
PROGRAMS = {
    "bare python": ["-c", "pass"],
    "import numpy": ["-c", "import numpy"],
    "import holdfast": ["-c", "import holdfast"],
    "from holdfast import Memory": ["-c", "from holdfast import Memory"],
    "holdfast --help": ["-m", "holdfast", "--help"],
    "holdfast facts --help": ["-m", "holdfast", "facts", "--help"],
}


def seconds(arguments: list[str]) -> float:
    """How long one process takes; its modules are compiled, as those of an installed package are."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    began = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, env=env)
    return time.perf_counter() - began


def main() -> None:
    """Print one line a program."""
    taken: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    for _ in range(ROUNDS + 1):
        for name, arguments in PROGRAMS.items():
            taken[name].append(seconds(arguments))
    # The first round fills the disk's cache.
    medians = {name: statistics.median(times[1:]) for name, times in taken.items()}
    for name, median in medians.items():
        print(f"{name:28} {median * 1e3:6.0f} ms   {median / medians['import numpy']:5.2f} of import numpy")


if __name__ == "__main__":
    main()
