"""Looks into everything that could still hold a word: every answer, every row, every byte."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path

from holdfast import Memory
from tests import keeping

USER = "ana"
BUDGETS = (300, 4000)


def answers(memory: Memory, canary: str, conversations: list[str]) -> str:
    """Everything that the doors say, with questions that ask for the canary."""
    return unasked(memory, conversations) + asked(memory, canary, conversations)


def asked(memory: Memory, canary: str, conversations: list[str]) -> str:
    """What the doors answer to questions that ask for the canary."""
    chats = [memory.conversation(name, user=USER) for name in conversations]
    hits = memory.user(USER).search(f"what about {canary}?", limit=50, explain=True)
    return spelt([*(chat.recall(f"about {canary}") for chat in chats), [hit.text for hit in hits]])


def unasked(memory: Memory, conversations: list[str]) -> str:
    """What the doors say whatever is looked for."""
    user, said = memory.user(USER), []
    for name in conversations:
        chat = memory.conversation(name, user=USER)
        said += [chat.load(), chat.summaries(live=False), chat.episodes()]
        for budget in BUDGETS:
            context = chat.context("And what else?", budget_tokens=budget)
            said += [context.messages, context.sections, context.left_out]
    said += [
        user.facts(),
        user.history("home"),
        user.history("work"),
        user.history("note"),
        user.rejected(limit=1000),
        user.export(),
        user.status(),
        memory.jobs(),
        memory.doctor(),
    ]
    return spelt(said)


def spelt(value: object) -> str:
    """All texts inside a value, as they are: ``repr`` escapes what this Python does not know yet."""
    return "".join(f"{part}\n" for part in _parts(value))


def _parts(value: object) -> Iterator[object]:
    if isinstance(value, str | int | float | bytes) or value is None:
        yield value
    elif isinstance(value, Mapping):
        yield from _parts([*value.keys(), *value.values()])
    elif is_dataclass(value):
        for field in fields(value):
            yield from _parts(getattr(value, field.name))
    elif isinstance(value, Iterable):
        for item in value:
            yield from _parts(item)
    else:
        yield value


def rows(path: Path) -> str:
    """Every column of every row of every table."""
    return spelt(list(keeping.rows(path).values()))


def vector_bytes(path: Path) -> set[bytes]:
    """The bytes of every vector that is stored now."""
    return {column for row in keeping.rows(path)["vector"] for column in row if isinstance(column, bytes)}


def raw(path: Path) -> bytes:
    """The bytes of the database, its log and whatever else lies beside it; those of a server are not here."""
    if keeping.lender is not None:
        return b""
    return b"".join(file.read_bytes() for file in sorted(path.parent.iterdir()) if file.is_file())


def forms(canary: str) -> set[bytes]:
    """How a word could stand in a file: in two encodings, escaped, folded, in base64 at any offset."""
    texts = {canary, canary.casefold(), canary.lower(), json.dumps(canary)[1:-1]}
    found = {text.encode(code) for text in texts for code in ("utf-8", "utf-16-le", "utf-16-be")}
    plain = canary.encode()
    found |= {base64.b64encode(b"x" * shift + plain)[4:-4] for shift in range(3) if len(plain) > 8}
    return {form for form in found if len(form) >= 4}


def standing(data: bytes, canaries: list[str]) -> list[str]:
    """The canaries that *data* holds in any form."""
    return [canary for canary in canaries if any(form in data for form in forms(canary))]
