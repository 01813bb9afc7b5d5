"""
What every way to the memory is asked to do, in the words that the stories use.

A surface is a library, a server, a command, a page.  Its driver offers the calls below that the surface has.  What it
lacks stands in ``surfaces.toml`` with the reason, and is done beside it, through the library, on the same store: so each
story runs whole through each surface.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Protocol

from holdfast.testing.clock import FakeClock

LACKS: dict[str, dict[str, str]] = tomllib.loads((Path(__file__).parent / "surfaces.toml").read_text("utf-8"))
CHAT = "web-42"


class Surface(Protocol):
    """The calls; facts are named by their sentences."""

    def say(self, text: str) -> None:
        """The user says it in the conversation, and gets a reply."""

    def messages(self) -> list[str]:
        """What was said by the user, oldest first."""

    def edit(self, seq: int, text: str) -> None:
        """Put other words in place of a message."""

    def forget_message(self, seq: int) -> None:
        """Erase a message."""

    def digest(self) -> None:
        """Do what is due."""

    def jobs(self, state: str = "") -> list[str]:
        """The ids of work that is not finished."""

    def cancel(self, job: str) -> None:
        """Keep it from running."""

    def retry(self, job: str) -> None:
        """Have it run after all."""

    def facts(self) -> list[str]:
        """What is believed now, in alphabetical order."""

    def history(self, category: str) -> list[str]:
        """Every value that a category had, oldest first."""

    def search(self, query: str) -> list[str]:
        """What is found, best first."""

    def context(self, query: str) -> str:
        """What a model would be told before it answers."""

    def remember(self, text: str) -> None:
        """Note a statement."""

    def correct(self, fact: str, value: str) -> None:
        """It was wrong: that value held instead."""

    def never_true(self, fact: str) -> None:
        """It never held."""

    def restore(self, fact: str) -> None:
        """Believe a past fact again."""

    def forget(self, fact: str) -> str:
        """Erase a fact; the level of the receipt."""

    def never(self, topic: str) -> None:
        """Learn nothing of a topic."""

    def allow(self, topic: str) -> None:
        """Learn of it again."""

    def pause(self) -> None:
        """Use nothing, write nothing."""

    def resume(self) -> None:
        """Go on."""

    def opt_out(self) -> str:
        """Remember nothing from now on and erase what is held; the level of the receipt."""

    def opt_in(self) -> None:
        """Remember again."""

    def status(self) -> str:
        """``active``, ``paused`` or ``opted-out``."""

    def export(self) -> dict[str, Any]:
        """Everything that is held."""

    def import_(self, data: dict[str, Any]) -> None:
        """Take an export back."""

    def erase(self) -> str:
        """Erase everything; the level of the receipt."""

    def summaries(self) -> list[str]:
        """The summaries of chunks that are in use, in order."""

    def rebuild(self) -> None:
        """Make the summaries of chunks again, keeping the old versions."""

    def put_back(self) -> None:
        """What stood before the last rebuild stands again."""

    def versions(self) -> int:
        """How many versions of summaries are kept."""

    def prompt(self) -> str:
        """What a model is told for summaries of chunks."""

    def set_prompt(self, text: str) -> None:
        """Use other words."""

    def reset_prompt(self) -> None:
        """Use the library's own again."""


CALLS = tuple(name for name in vars(Surface) if not name.startswith("_"))


class Through:
    """
    A surface made whole: what it lacks is done beside it; ``own`` counts what it did itself.

    A minute passes before each call, so that what happened has an order.
    """

    def __init__(self, name: str, driver: Any, beside: Any, clock: FakeClock) -> None:
        self.name, self.own = name, 0
        self._driver, self._beside, self._clock = driver, beside, clock

    def __getattr__(self, call: str) -> Any:
        self._clock.advance(minutes=1)
        found = getattr(self._driver, call, None)
        if found is None:
            assert call in LACKS[self.name], f"{self.name} offers no {call}, and surfaces.toml gives no reason"
            return getattr(self._beside, call)
        self.own += 1
        return found
