"""
The options that most commands share, and what they open.

The engine is loaded when a store is opened, and commands name its classes for type checkers only: so
a command's ``--help`` does not wait for it.
"""

from __future__ import annotations

import difflib
import os
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .plain import CommandError

if TYPE_CHECKING:
    from ..llm.protocol import LanguageModel
    from ..memory import Memory

STORE, USER, ORG, BOT, CONVERSATION = "holdfast.db", "me", "default", "default", "main"

Store = Annotated[
    str,
    typer.Option(
        "--store", "-s", envvar="HOLDFAST_STORE", metavar="PATH", help="The memory: a SQLite file, or postgresql://…"
    ),
]
User = Annotated[str, typer.Option("--user", "-u", envvar="HOLDFAST_USER", metavar="NAME", help="Whose memory it is.")]
Org = Annotated[str, typer.Option("--org", envvar="HOLDFAST_ORG", metavar="NAME", help="The tenant of the user.")]
Bot = Annotated[str, typer.Option("--bot", envvar="HOLDFAST_BOT", metavar="NAME", help="The assistant that remembers.")]
Subject = Annotated[
    str | None,
    typer.Option("--subject", metavar="NAME", help="Whom or what it is about, when not the user: a pet, a project."),
]
Dry = Annotated[bool, typer.Option("--dry-run", help="Change nothing: say what it would do.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON document instead of text; errors as JSON, too.")]


Endpoints = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-endpoint",
        envvar="HOLDFAST_ALLOW_ENDPOINTS",
        metavar="HOST",
        help="A private host or network that users' own keys may be sent to: localhost:11434, 10.0.0.0/8.",
    ),
]


def commands() -> typer.Typer:
    """An empty set of commands whose help looks like that of the whole."""
    return typer.Typer(
        add_completion=False, rich_markup_mode=None, context_settings={"help_option_names": ["-h", "--help"]}
    )


def open_memory(store: str, llm: LanguageModel | None = None, *, background: bool = False, **settings: Any) -> Memory:
    """
    ``holdfast.Memory(store)``; the first call loads the engine.

    The file may be that of a program with another embedder, so nobody is embedded anew for being looked at.
    """
    holdfast = import_module("holdfast")
    config = holdfast.Config(embed_anew=False, **settings)
    memory: Memory = holdfast.Memory(store, llm=llm, background=background, config=config)
    return memory


@contextmanager
def writing(
    store: str, llm: LanguageModel | None = None, *, background: bool = False, **settings: Any
) -> Iterator[Memory]:
    """Open *store*, creating it on first use."""
    if store == ":memory:":
        raise CommandError(
            "bad-store",
            "a memory in RAM would be gone when the command ends",
            hint="name a file: --store chat.db",
            exit_code=2,
        )
    with open_memory(store, llm, background=background, **settings) as memory:
        yield memory


@contextmanager
def reading(store: str, llm: LanguageModel | None = None) -> Iterator[Memory]:
    """
    Open *store*, which must be there: a command that reads never leaves an empty file behind.

    Raises:
        CommandError: there is no such file.
    """
    if "://" not in store and store != ":memory:" and not Path(store).exists():
        raise CommandError(
            "no-store",
            f"there is no memory at {store}",
            hint='start one with `holdfast say "…"`, `holdfast import FILE` or `holdfast demo`, or name another with --store PATH',
        )
    with writing(store, llm) as memory:
        yield memory


def moment(text: str, option: str) -> datetime:
    """
    A time as typed: ISO 8601, in UTC when it names no zone; a date alone stands for the end of that day.

    Raises:
        CommandError: it is not a time.
    """
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise CommandError(
            "usage",
            f"{option} {text!r} is not a time",
            hint=f"write {option} 2026-03-14 or 2026-03-14T19:02",
            exit_code=2,
        ) from None
    if len(text) <= 10:
        at += timedelta(days=1, milliseconds=-1)
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def who_is_there(memory: Memory, org: str, bot: str, user: str) -> str:
    """What to try when nothing is held about *user*: the names that this store does hold."""
    users = memory.admin.users(limit=200)
    near = [name for o, name, b in users if (o, b) == (org, bot) and name != user]
    if alike := difflib.get_close_matches(user.casefold(), {name.casefold() for name in near}, n=1):
        meant = next(name for name in near if name.casefold() == alike[0])
        return f"did you mean --user {shlex.quote(meant)}?"
    if near:
        return f"this store holds {_some(near)}: add --user NAME"
    others = [f"--org {o} --bot {b} --user {name}" for o, name, b in users if name != user or (o, b) != (org, bot)]
    if others:
        return f"this store holds others: {_some(others)}"
    return 'say something first: holdfast say "I live in Lisbon."'


def _some(names: list[str], most: int = 6) -> str:
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def without_password(store: str) -> str:
    """*store* as it may be shown: an address without the password in it."""
    return re.sub(r"(?<=://)([^/@:]*):[^@]*@|(?<=[?&])password=[^&]*&?", lambda m: f"{m[1]}@" if m[1] else "", store)


def same_options(store: str, user: str, *, org: str = ORG, bot: str = BOT, subject: str | None = None) -> str:
    """The options to type again so that the next command means the same memory; those at their default left out."""
    parts = []
    if store != os.environ.get("HOLDFAST_STORE", STORE):
        parts.append(f"-s {shlex.quote(without_password(store))}")
    if user != os.environ.get("HOLDFAST_USER", USER):
        parts.append(f"-u {shlex.quote(user)}")
    parts += [
        f"--{name} {shlex.quote(value)}"
        for name, value, usual in (("org", org, ORG), ("bot", bot, BOT))
        if value != usual
    ]
    if subject is not None:
        parts.append(f"--subject {shlex.quote(subject)}")
    return "".join(f" {part}" for part in parts)
