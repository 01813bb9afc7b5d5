"""Exports of other programs, read as the lines that ``holdfast import`` takes."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from ..errors import HoldfastError
from ..importers.foreign import LABELS, Mapped, detect, look
from .plain import CommandError

_OURS = ("lines", "user")


def as_lines(stack: ExitStack, name: str, conversation: str) -> BinaryIO | None:
    """
    What another program exported to the file *name* (ChatGPT, Claude, a list of messages; JSON or ZIP), a message a line.

    ``None`` for every other file.  The lines are kept until *stack* is closed.

    Raises:
        CommandError: it is such an export, and cannot be read.
    """
    path = Path(name)
    with path.open("rb") as stream:
        first = stream.read(1_000).removeprefix(b"\xef\xbb\xbf").lstrip()[:2]
    if first[:1] not in (b"[", b"{") and first != b"PK":
        return None
    kind = ""
    try:
        found = detect(path)
        if found in _OURS:
            return None
        kind = LABELS[found]
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="holdfast-import-")))
        look(path, conversation, Mapped(), folder / "lines.jsonl")
    except HoldfastError as error:
        if not kind and first != b"PK":
            return None  # the reader of lines says which line is wrong
        raise CommandError("no-file", f"{name}: {error.message}", hint=error.hint) from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        # a file of another program may be shaped in any way; its words are not repeated
        words = f"{name} is not shaped as a {kind or 'JSON file'} should be ({type(error).__name__})"
        raise CommandError("no-file", words, hint="choose the file as the other program made it") from error
    return stack.enter_context((folder / "lines.jsonl").open("rb"))
