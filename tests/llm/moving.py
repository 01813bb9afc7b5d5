"""A chat in which somebody moves, and a model that reads it honestly."""

from __future__ import annotations

import re

from holdfast.llm import Request
from holdfast.text.render import parse_blocks

PHRASE = "I gave up the old flat, my new address is in Porto"


def read(request: Request) -> str:
    """The row of the move where the messages to be read hold it."""
    for name, items in parse_blocks(request.text):
        for item in items if name == "read" else []:
            if match := re.match(rf"(\d+) user.*{PHRASE}", item):
                return f'home,lives_in,Porto,0.95,,set,asserted,state,{match[1]},"{PHRASE}"'
    return "NONE"


def read_all(request: Request) -> str:
    """The same in one call with summary and episodes."""
    return f"SUMMARY: The train was late.\nEPISODES:\nNo facts to record\nFACTS:\n{read(request)}"
