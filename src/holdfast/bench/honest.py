"""
A model that reads a story honestly: every fact that a message states, with its words, and nothing else.

It stands in for a good model where what is measured is the memory around it.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..llm.protocol import Answer, Request
from ..scope import SELF
from ..testing.model import uneventful
from ..text.render import parse_blocks
from ..text.tokens import count_tokens
from .stories import Said, Story, Turn

_ITEM = re.compile(r"(\d+) user\b[^:]*?(?: \(\d{4}-\d\d-\d\d\))?: (.*)", re.DOTALL)
_OPS = {"multi": "add", "single": "set", "exclusive": "set"}


class HonestModel:
    """
    Answers for a story's facts from the story itself, found by the number and the words of each message.

    As the instructions ask, what is known already is left out, and what is known wrong is set right.
    """

    name = "honest:1"

    def __init__(self, told: Story) -> None:
        self.calls = 0
        self._turns: dict[tuple[int, str], Turn] = {(turn.seq, turn.text): turn for turn in told.turns}

    def ask(self, request: Request) -> Answer:
        """See `LanguageModel`."""
        self.calls += 1
        text = self._facts(request) if request.layer == "facts" else uneventful(request)
        if request.layer == "combined":
            text = text.replace("FACTS:\nNONE", f"FACTS:\n{self._facts(request)}")
        asked = count_tokens(request.system) + count_tokens(request.text)
        return Answer(text, self.name, input_tokens=asked, output_tokens=count_tokens(text), estimated=True)

    def _facts(self, request: Request) -> str:
        sections = dict(parse_blocks(request.text))
        known = sections.get("known", [])
        out = io.StringIO()
        rows = csv.writer(out, lineterminator="\n")
        for turn in self._read(sections.get("read", [])):
            for said in turn.said:
                if said.implied:
                    continue
                rows.writerows(_row(turn, replace(said, op="retract", value=wrong)) for wrong in _misheard(said, known))
                if said.op == "retract" or _address(said) not in known:
                    rows.writerow(_row(turn, said))
        return out.getvalue() or "NONE"

    def _read(self, items: list[str]) -> Iterator[Turn]:
        for found in filter(None, map(_ITEM.fullmatch, items)):
            turn = self._turns.get((int(found[1]), found[2]))
            if turn is not None:
                yield turn


def _address(said: Said) -> str:
    about = "" if said.subject == SELF else f"{said.subject}: "
    return f"{about}{said.category}/{said.key} = {said.value}"


def _misheard(said: Said, known: Sequence[str]) -> Iterator[str]:
    """Values at the same address that hold a part of the words, or more: "bee" for "bee stings"."""
    before = _address(said).removesuffix(said.value)
    mine = set(said.value.casefold().split())
    for line in known:
        value = line.removeprefix(before)
        theirs = set(value.casefold().split())
        if value != line and mine != theirs and (mine < theirs or theirs < mine):
            yield value


def _row(turn: Turn, said: Said) -> tuple[str, ...]:
    subject = "" if said.subject == SELF else said.subject
    op = "remove" if said.op == "retract" else _OPS[said.joins]
    return (said.category, said.key, said.value, "0.95", subject, op, "asserted", "state", str(turn.seq), said.quote)
