"""
Options that several commands share, declared once, and the memory that they name.

A command takes a group of them as one parameter: ``def pause(options: SubjectOptions)`` has --store, --user, --org, --bot,
--subject and --json.  The engine is loaded when a store is opened, so that a command's ``--help`` does not wait for it.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import holdfast

from ..config import (
    COMMAND_NAMES,
    COMMAND_TABLES,
    FILE_VARIABLE,
    PREFIX,
    Config,
    LoadedConfig,
    SettingsFile,
    did_you_mean,
    load_config,
)
from ..errors import ConfigError
from ..text import dataclass
from .terminal import USAGE, CommandError, usage_error

if TYPE_CHECKING:
    from ..conversation import Conversation
    from ..llm.protocol import LanguageModel
    from ..memory import Memory
    from ..user import User

STORE, USER, DEFAULT, CONVERSATION = "holdfast.db", "me", "default", "main"

StoreOption = Annotated[
    str,
    typer.Option(
        "--store", "-s", envvar="HOLDFAST_STORE", metavar="PATH", help="The memory: a SQLite file, or postgresql://…"
    ),
]
OrgOption = Annotated[
    str, typer.Option("--org", envvar="HOLDFAST_ORG", metavar="NAME", help="The organization of the user.")
]
BotOption = Annotated[
    str, typer.Option("--bot", envvar="HOLDFAST_BOT", metavar="NAME", help="The assistant that remembers.")
]
OnlyUser = Annotated[
    str | None, typer.Option("--user", "-u", metavar="NAME", help="Only this user (default: all users).")
]
GeneralOption = Annotated[
    bool, typer.Option("--general", help="With --subject: also what was said about no subject in particular.")
]
ConversationOption = Annotated[
    str | None,
    typer.Option("--conversation", "-c", metavar="NAME", help="The conversation; optional when there is only one."),
]
StrategyOption = Annotated[
    str | None,
    typer.Option(
        "--strategy",
        metavar="NAME",
        help="What contexts hold: facts/2, window/5, summary_buffer/2000… (default layered).",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would happen, and change nothing.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
AllowedEndpoints = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-endpoint",
        metavar="HOST",
        help="A private host or network that users' own keys may be sent to: localhost:11434, 10.0.0.0/8.",
    ),
]


def use_file(context: typer.Context, path: str | None) -> str | None:
    """Make what the settings file says for the command the default of its options."""
    if path and not context.resilient_parsing:
        try:
            context.default_map = file_defaults(SettingsFile(path), context.command)
        except ConfigError as error:
            raise bad_setting(error) from error
    return path


def file_defaults(file: SettingsFile, command: Any) -> dict[str, Any]:
    """
    Return the options of *command* that a settings file names: at its top by their variables, and in the command's table.

    Raises:
        ConfigError: the table names an option that the command does not have.
    """
    found, own = {}, {}
    for option in command.params:
        name = str(option.envvar or "").removeprefix(PREFIX).lower()
        if name in COMMAND_NAMES and name in file.values:
            found[option.name] = file.values[name]
        elif name not in (*COMMAND_NAMES, "config") and option.name not in ("as_json", "settings"):
            own[option.name] = option
    table = file.values.get(command.name, {}) if command.name in COMMAND_TABLES else {}
    if not isinstance(table, dict):
        raise ConfigError(f"{command.name} must be a table of options, [{command.name}] ({file.place(command.name)})")
    places = {name: file.place(command.name, name) for name in table if name not in own}
    if places:
        rows = (
            f"[{command.name}] has no option {name!r} ({at}){did_you_mean(name, own)}" for name, at in places.items()
        )
        raise ConfigError("\n".join(rows))
    return found | table


def bad_setting(error: ConfigError) -> CommandError:
    """Return the error of a settings file, a variable, or --setting."""
    return CommandError("bad-setting", error.message, hint=error.hint, exit_code=USAGE)


@dataclass(frozen=True)
class JsonOptions:
    """The option of every command: --json."""

    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document instead of text; errors are JSON, too.")
    ] = False


@dataclass(frozen=True)
class SettingsOptions(JsonOptions):
    """The options of a command that reads settings: --config and --setting."""

    config: Annotated[
        str | None,
        typer.Option(
            "--config",
            envvar=FILE_VARIABLE,
            metavar="FILE",
            is_eager=True,
            callback=use_file,
            help="A TOML file of settings; `holdfast config` shows them all.",
        ),
    ] = None
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--setting", metavar="NAME=VALUE", help="A setting, for this command; can be given several times."
        ),
    ] = None

    def load(self, **flags: Any) -> LoadedConfig:
        """
        Read the settings of this command; *flags* that are not ``None`` win over all others.

        Raises:
            CommandError: a name is unknown, or a value does not fit.
        """
        options: dict[str, Any] = {}
        for text in self.settings or ():
            name, equals, value = text.partition("=")
            if not equals:
                raise usage_error(
                    f"--setting {text!r} has no value", "write --setting NAME=VALUE, as in --setting budget_tokens=2000"
                )
            options[name.strip()] = value.strip()
        try:
            # The store may belong to a program with another embedder: a command embeds nothing again unless it is told to.
            found = load_config(self.config, os.environ, options, as_text=True, defaults={"reembed": False})
            given = {name: value for name, value in flags.items() if value is not None}
            return replace(found, config=replace(found.config, **given)) if given else found
        except ConfigError as error:
            raise bad_setting(error) from error


@dataclass(frozen=True)
class StoreOptions(SettingsOptions):
    """The options of a command about a whole store."""

    store: StoreOption = STORE

    @property
    def shown_store(self) -> str:
        """The address of the store without its password."""
        return without_password(self.store)

    @property
    def repeated(self) -> str:
        """The options to type again so that another command means the same memory; defaults left out."""
        if self.store == os.environ.get("HOLDFAST_STORE", STORE):
            return ""
        return f" -s {shlex.quote(self.shown_store)}"

    @contextmanager
    def create(
        self, llm: LanguageModel | None = None, *, background: bool = False, **settings: Any
    ) -> Iterator[Memory]:
        """Open the store, creating it on first use."""
        if self.store == ":memory:":
            raise CommandError(
                "bad-store",
                "a memory in RAM would be gone when the command ends",
                hint="name a file: --store chat.db",
                exit_code=USAGE,
            )
        with open_memory(self.store, llm, background=background, config=self.load(**settings).config) as memory:
            yield memory

    @contextmanager
    def open(self, llm: LanguageModel | None = None) -> Iterator[Memory]:
        """
        Open the store, which must exist: a command that reads never leaves an empty file behind.

        Raises:
            CommandError: there is no such file.
        """
        self.load()  # a mistake in the settings first
        if "://" not in self.store and self.store != ":memory:" and not Path(self.store).exists():
            raise CommandError(
                "no-store",
                f"there is no memory at {self.store}",
                hint='start one with `holdfast say "…"`, `holdfast import FILE` or `holdfast demo`, '
                "or name another with --store PATH",
            )
        with self.create(llm) as memory:
            yield memory


@dataclass(frozen=True)
class UserOptions(StoreOptions):
    """The options of a command about one user."""

    user: Annotated[
        str, typer.Option("--user", "-u", envvar="HOLDFAST_USER", metavar="NAME", help="The user to remember.")
    ] = USER
    org: OrgOption = DEFAULT
    bot: BotOption = DEFAULT

    @property
    def repeated(self) -> str:
        """As for a store, with the user, the organization and the bot."""
        text = super().repeated
        if self.user != os.environ.get("HOLDFAST_USER", USER):
            text += f" -u {shlex.quote(self.user)}"
        for name, value in (("org", self.org), ("bot", self.bot)):
            if value != os.environ.get(f"HOLDFAST_{name.upper()}", DEFAULT):
                text += f" --{name} {shlex.quote(value)}"
        return text

    def owner(self, memory: Memory) -> User:
        """Return the user in *memory*."""
        return memory.user(self.user, org=self.org, bot=self.bot)


@dataclass(frozen=True)
class SubjectOptions(UserOptions):
    """The options of a command about one user, or about one subject of theirs."""

    subject: Annotated[
        str | None,
        typer.Option("--subject", metavar="NAME", help="The subject, when it is not the user: a pet, a project."),
    ] = None

    @property
    def repeated(self) -> str:
        """As for a user, with the subject."""
        text = super().repeated
        return text if self.subject is None else f"{text} --subject {shlex.quote(self.subject)}"

    def owner(self, memory: Memory) -> User:
        """Return the user in *memory*, or the subject of theirs."""
        return memory.user(self.user, org=self.org, bot=self.bot, subject=self.subject)

    def chat(
        self,
        memory: Memory,
        name: str,
        *,
        incognito: bool = False,
        own_facts: bool | None = None,
        strategy: str | None = None,
    ) -> Conversation:
        """Return a conversation of the user about the subject."""
        return memory.conversation(
            name,
            user=self.user,
            org=self.org,
            bot=self.bot,
            subject=self.subject,
            strategy=strategy,
            incognito=incognito,
            own_facts=own_facts,
        )


@dataclass(frozen=True)
class PeriodOptions(StoreOptions):
    """The options of a command that counts over some days and some users."""

    since: Annotated[str | None, typer.Option("--since", metavar="DAY", help="From this day (UTC) on.")] = None
    until: Annotated[str | None, typer.Option("--until", metavar="DAY", help="Up to and including this day.")] = None
    user: OnlyUser = None
    org: Annotated[str | None, typer.Option("--org", metavar="NAME", help="Only this organization.")] = None
    bot: Annotated[str | None, typer.Option("--bot", metavar="NAME", help="Only this assistant.")] = None

    def days(self) -> tuple[date | None, date | None]:
        """
        Parse the first and the last day.

        Raises:
            CommandError: one of them is not a day.
        """
        return parse_day(self.since, "--since"), parse_day(self.until, "--until")


def open_memory(
    store: str, llm: LanguageModel | None = None, *, background: bool = False, config: Config | None = None
) -> Memory:
    """Return ``holdfast.Memory(store)``; the first call loads the engine."""
    return holdfast.Memory(store, llm=llm, background=background, config=config or Config(reembed=False))


def parse_time(text: str, option: str) -> datetime:
    """
    Parse ISO 8601, in UTC when it names no zone; a date alone means the end of that day.

    Raises:
        CommandError: it is not a time.
    """
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise usage_error(
            f"{option} {text!r} is not a time", f"write {option} 2026-03-14 or 2026-03-14T19:02"
        ) from None
    if len(text) <= 10:
        at += timedelta(days=1, milliseconds=-1)
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def parse_day(text: str | None, option: str) -> date | None:
    """
    Parse a day.

    Raises:
        CommandError: it is not a day.
    """
    try:
        return None if text is None else date.fromisoformat(text)
    except ValueError:
        raise usage_error(f"{option} {text!r} is not a day", f"write {option} 2026-03-14") from None


def without_password(store: str) -> str:
    """Return the address of a store without the password in it."""
    return re.sub(r"(?<=://)([^/@:]*):[^@]*@|(?<=[?&])password=[^&]*&?", lambda m: f"{m[1]}@" if m[1] else "", store)
