"""Runs an example as it is started from the command line, with lines that are typed and a model that is a fake."""

from __future__ import annotations

import contextlib
import io
import runpy
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

from holdfast.testing.model import ModelServer, ServerRequest

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


@contextlib.contextmanager
def typed(lines: Iterable[str], *arguments: str) -> Iterator[io.StringIO]:
    """Type lines for every ``input`` in the block; yield what is printed, with the typed lines, as a terminal shows it."""
    left, printed = iter(lines), io.StringIO()

    def type_line(prompt: str = "") -> str:
        line = next(left, None)
        if line is None:
            raise EOFError
        print(f"{prompt}{line}")
        return line

    with (
        patch("builtins.input", type_line),
        patch.object(sys, "argv", ["example", *arguments]),
        contextlib.redirect_stdout(printed),
    ):
        yield printed


def run(name: str, *arguments: str, lines: Iterable[str] = ()) -> str:
    """Run an example to its end; return what it printed."""
    with typed(lines, *arguments) as printed:
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    return printed.getvalue()


def load(name: str) -> dict[str, Any]:
    """Import an example without starting it; return its names."""
    return runpy.run_path(str(EXAMPLES / name), run_name="example")


def cook(asked: ServerRequest) -> str:
    """Answer as a cook who knows only what the request says."""
    question = str(asked.body["messages"][-1]["content"])
    if "?" not in question:
        return "Noted!"
    known = f"{asked.system} {asked.text}".lower()
    dish = "A lentil curry" if "vegetarian" in known else "A chicken satay"
    return f"{dish}, without peanuts." if "allergic to peanuts" in known else f"{dish}, with peanuts."


@contextlib.contextmanager
def model(monkeypatch: Any) -> Iterator[ModelServer]:
    """Serve a fake model at the address that the official client reads from its environment."""
    with ModelServer(cook) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        yield server
