"""Taking back what ``holdfast export`` wrote; part of ``holdfast import``."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, BinaryIO

import typer

from ..errors import BadInput, Conflict
from .options import same_options, writing
from .plain import CommandError
from .receipts import amounts, in_words
from .screen import STRONG, Screen, print_json
from .values import plain
from .work import digest_all, raise_if_failed

if TYPE_CHECKING:
    from ..memory import Memory
    from ..user import User

FORMAT = "holdfast-user"
_MARK = re.compile(rb'"format"\s*:\s*"' + FORMAT.encode() + b'"')
_STEP_BYTES = 1_000_000
_OVERLAP_BYTES = 100


def read(stream: BinaryIO) -> dict[str, Any] | None:
    """The export that *stream* holds, or ``None`` when it is anything else; the stream is at its start again."""
    try:
        if not _may_be_one(stream):
            return None
        stream.seek(0)
        data = json.loads(stream.read())
    except (ValueError, RecursionError):
        return None
    finally:
        stream.seek(0)
    return data if isinstance(data, dict) and data.get("format") == FORMAT else None


def _may_be_one(stream: BinaryIO) -> bool:
    """Whether the mark of an export stands anywhere in it; a chat may quote that, so it is a guess."""
    tail = b""
    while block := stream.read(_STEP_BYTES):
        if _MARK.search(tail + block):
            return True
        tail = block[-_OVERLAP_BYTES:]
    return False


def typed(context: typer.Context) -> set[str]:
    """Which of --user, --org and --bot stood on the command line or in the environment."""
    given = {name: context.get_parameter_source(name) for name in ("user", "org", "bot")}
    return {name for name, source in given.items() if source is not None and source.name != "DEFAULT"}


def take_back(
    data: dict[str, Any], store: str, who: Mapping[str, Any], given: set[str], *, digest: bool, as_json: bool
) -> int:
    """
    Import an export into the user that it names, or into the one of *who* as far as *given*.

    Raises:
        CommandError: it was damaged, or something is held about that user already.
    """
    into = {name: who[name] if name in given else data.get(name, "") for name in ("user", "org", "bot")}
    options = same_options(store, into["user"], org=into["org"], bot=into["bot"])
    with writing(store) as memory:
        user = _import(memory, data, into, options)
        report = digest_all(memory, show=not as_json) if digest else None
        numbers = amounts(user, None)
    if as_json:
        print_json({**into, **numbers, "digest": plain(report)})
    else:
        screen = Screen()
        screen.line((in_words(numbers) or "nothing but a choice", STRONG), f" of {into['user']} taken back")
        screen.line(f"Next:  holdfast facts{options}" if digest else f"Next:  holdfast digest{options}")
    return raise_if_failed(report) if report else 0


def _import(memory: Memory, data: dict[str, Any], into: dict[str, str], options: str) -> User:
    try:
        user = memory.user(into["user"], org=into["org"], bot=into["bot"])
        user.import_(data)
    except Conflict as error:
        raise CommandError(
            error.code,
            f"{into['user']}: {error.message}",
            hint=f"`holdfast erase{options}` first, or take it back as somebody else: --user NAME",
        ) from error
    except BadInput as error:
        raise CommandError("bad-export", error.message, hint=error.hint or "export the user again") from error
    return user
