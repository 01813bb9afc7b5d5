"""Strategies by name, as a server, the command, and the calls take them: ``window/5``, ``layered,character=off``.  Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from ..errors import BadInput
from .assemble import Layered, Strategy
from .classic import Buffer, Facts, Summarized, SummaryBuffered, TokenBuffer, Window

Kinds = Mapping[str, Callable[..., Strategy]]

KINDS: Final[Kinds] = {
    "layered": Layered,
    "facts": Facts,
    "window": Window,
    "summary": Summarized,
    "summary_buffer": SummaryBuffered,
    "token_buffer": TokenBuffer,
    "buffer": Buffer,
}
SIZES: Final = {name: "exchanges" for name in ("layered", "facts", "window", "summary")} | {
    "token_buffer": "tokens",
    "summary_buffer": "tokens",
}
MOST: Final = {"exchanges": 10_000, "tokens": 10_000_000}
ROLES: Final = ("user", "system", "developer")
SWITCHES: Final = {
    "on": True,
    "true": True,
    "yes": True,
    "1": True,
    "off": False,
    "false": False,
    "no": False,
    "0": False,
}


def make_strategy(name: str, options: Mapping[str, Any], kinds: Kinds = KINDS) -> Strategy:
    """
    Make a strategy from its name and its options.

    Raises:
        BadInput: there is no such strategy, or it has no such option or value.
    """
    if name not in kinds:
        near = difflib.get_close_matches(name, kinds, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(kinds)}"
        raise BadInput(f"there is no strategy {name[:50]!r}", hint=hint)
    known = {"memory_role", *([SIZES[name]] if name in SIZES else [])}
    known |= {"side_by_side", "character"} if name == "layered" else set()
    if wrong := options.keys() - known:
        raise BadInput(f"the strategy {name} has no {min(wrong)[:50]}", hint=f"it has {', '.join(sorted(known))}")
    return kinds[name](**{option: _checked(option, value) for option, value in options.items()})


def as_strategy(given: Strategy | str | None, kinds: Kinds = KINDS) -> Strategy | None:
    """
    Return the strategy that a text such as ``facts/2`` or ``layered/3,side_by_side=on`` names; another one as it is.

    Raises:
        BadInput: the text names none.
    """
    if not isinstance(given, str):
        return given
    head, *parts = (part.strip() for part in given.split(","))
    name, slash, size = head.partition("/")
    options: dict[str, Any] = dict([*part.split("=", 1), "on"][:2] for part in parts)
    if slash:
        options[SIZES.get(name, "size")] = size
    return make_strategy(name, options, kinds)


def strategy_text(given: Strategy | str | None, kinds: Kinds = KINDS) -> str | None:
    """
    Return the text that names a strategy of the library.

    Raises:
        BadInput: it is not one of them, or has a function in it.
    """
    strategy = as_strategy(given, kinds)
    if strategy is None:
        return None
    name = next((name for name, kind in kinds.items() if type(strategy) is kind), None)
    if name is None or getattr(strategy, "summarize", None) is not None:
        raise BadInput(
            f"the strategy {type(strategy).__name__} cannot be sent to a server",
            hint="use one of holdfast.strategies, without summarize",
        )
    options = [f"memory_role={strategy.memory_role}"] if strategy.memory_role != "user" else []
    if isinstance(strategy, Layered):
        options += [*(["side_by_side=on"] * strategy.side_by_side), *(["character=off"] * (not strategy.character))]
    size = f"/{getattr(strategy, SIZES[name])}" if name in SIZES else ""
    return ",".join([f"{name}{size}", *options])


def _checked(option: str, value: Any) -> Any:
    if option in MOST:
        digits = isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value)
        number = int(value) if digits else value
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= MOST[option]:
            raise BadInput(f"{option} is a whole number from 1 to {MOST[option]:,}, not {str(value)[:50]!r}")
        return number
    if option == "memory_role":
        if value not in ROLES:
            raise BadInput(f"memory_role is {', '.join(ROLES)}, not {str(value)[:50]!r}")
        return value
    if not isinstance(value, bool) and value not in SWITCHES:
        raise BadInput(f"{option} is on or off, not {str(value)[:50]!r}")
    return value if isinstance(value, bool) else SWITCHES[value]
