"""``holdfast config``: the settings that hold, and where each is from."""

from __future__ import annotations

import os
from dataclasses import MISSING, Field
from pathlib import Path
from typing import Annotated, Any

import typer

from ...config import (
    COMMAND_NAMES,
    COMMAND_TABLES,
    Config,
    LoadedConfig,
    SettingsFile,
    settings_by_name,
    shown,
    variable_of,
)
from ...errors import ConfigError
from .. import SECRET_NAMES
from ..app import load_command
from ..options import SettingsOptions, bad_setting, file_defaults, open_memory, without_password
from ..output import CHANGED, GOOD, NAME, QUIET, STRONG, Piece, Screen, print_json
from ..terminal import count, one_line, to_json

HIDDEN = "(hidden)"
PARSER_ERROR: type[Exception] = typer.BadParameter.__mro__[2]  # the base of all errors of the parser
SECRETS = sorted({*SECRET_NAMES, "HOLDFAST_MASTER_KEY"} - {"HOLDFAST_STORE", "HOLDFAST_ADMIN_STORE"})
VALUE_CHARS = 44


def config(
    options: SettingsOptions,
    check: Annotated[
        str | None, typer.Option("--check", metavar="FILE", help="Check a settings file, and change nothing.")
    ] = None,
    changed: Annotated[bool, typer.Option("--changed", help="Only what is not at its default.")] = False,
) -> int:
    """
    Show every setting with its value and where it is from, or check a settings file.

    A setting is read from a TOML file (--config, or HOLDFAST_CONFIG), from the variable HOLDFAST_ and its name in
    capitals, and from --setting NAME=VALUE; the last of these wins. Every command that opens a store reads
    them. Keys and passwords are not shown.

    \b
    Examples:
      holdfast config
      holdfast config --config bot.toml --changed
      holdfast config --setting budget_tokens=2000 --json
      holdfast config --check bot.toml
    """
    if check is not None:
        return _check(check, as_json=options.as_json)
    found = options.load()
    settings = [_described(item, found) for item in settings_by_name().values()]
    shown = [row for row in settings if not changed or row["from"] != "default"]
    command = _command_rows(found)
    if options.as_json:
        file = found.file.path if found.file else None
        print_json({"file": file, "settings": shown, "command": command, "unknown_variables": list(found.unknown)})
        return 0
    screen = Screen()
    rows: list[list[Piece]] = []
    for row in (*shown, *command):
        style = QUIET if row["from"] == "default" else CHANGED
        rows.append([(row["name"], NAME), _shorten(row["value"]), (row["place"] or row["from"], style)])
    screen.columns(rows)
    if changed and not rows:
        screen.line("every setting is at its default")
    for name in found.unknown:
        screen.line(("unknown: ", CHANGED), f"the variable {name} is not a Holdfast setting and is ignored")
    return 0


def _described(item: Field[Any], found: LoadedConfig) -> dict[str, Any]:
    origin, data = found.origins[item.name], item.metadata
    default = item.default_factory() if item.default_factory is not MISSING else item.default
    return {
        "name": item.name,
        "value": _plain(getattr(found.config, item.name)),
        "from": origin.kind,
        "place": origin.place,
        "default": _plain(default),
        "variable": variable_of(item.name),
        "reloads": data["reloads"],
        "meaning": data["doc"],
    }


def _plain(value: Any) -> Any:
    """Return a value as JSON can hold it; of a detector that is code, its kind."""
    if isinstance(value, tuple):
        return [
            one if isinstance(one, str) else {"kind": one.kind, "pattern": getattr(one, "pattern", None)}
            for one in value
        ]
    return to_json(value)


def _command_rows(found: LoadedConfig) -> list[dict[str, Any]]:
    """Return what the variables and the file say for the command itself; secrets are hidden."""
    rows = []
    file = found.file
    for name in COMMAND_NAMES:
        variable = variable_of(name)
        if os.environ.get(variable):
            rows.append(_row(name, os.environ[variable], "environment", variable))
        elif file and name in file.values:
            rows.append(_row(name, file.values[name], "file", file.place(name)))
    for table in COMMAND_TABLES if file else ():
        inner = file.values.get(table, {}) if file else {}
        for name, value in inner.items() if isinstance(inner, dict) else ():
            rows.append(_row(f"{table}.{name}", value, "file", file.place(table, name) if file else ""))
    return rows + [_row(name, HIDDEN, "environment", name) for name in SECRETS if os.environ.get(name)]


def _row(name: str, value: Any, origin: str, place: str) -> dict[str, Any]:
    return {
        "name": name,
        "value": without_password(value) if isinstance(value, str) else value,
        "from": origin,
        "place": place,
    }


def _shorten(value: Any) -> str:
    """Return a value on one line, in few words."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, dict):
        used = {name: one for name, one in value.items() if one is not None}
        value = (
            ", ".join(f"{name} {one}" if not isinstance(one, dict) else name for name, one in used.items()) or "none"
        )
    if isinstance(value, list):
        value = ", ".join(one["kind"] if isinstance(one, dict) else str(one) for one in value) or "none"
    text = one_line("none" if value is None else str(value))
    return text if len(text) <= VALUE_CHARS else f"{text[: VALUE_CHARS - 1]}…"


def _check(path: str, *, as_json: bool) -> int:
    """
    Check a file as the commands would read it, without the environment.

    Raises:
        CommandError: it cannot be used; the message names every setting that is wrong, with its line.
    """
    wrong: list[ConfigError] = []
    try:
        file = SettingsFile(path)
    except ConfigError as error:
        raise bad_setting(error) from error
    try:
        # a memory knows what no setting alone does: categories, prices
        open_memory(":memory:", config=Config.load(path, environ={})).close()
    except ConfigError as error:
        wrong.append(error)
    for name in COMMAND_TABLES if all(isinstance(file.values.get(name, {}), dict) for name in COMMAND_TABLES) else ():
        try:
            _check_table(file, name)
        except ConfigError as error:
            wrong.append(error)
    if wrong:
        raise bad_setting(ConfigError("\n".join(error.message for error in wrong), hint=wrong[0].hint))
    number = sum(name not in (*COMMAND_NAMES, *COMMAND_TABLES) for name in file.values)
    if as_json:
        print_json({"file": path, "ok": True, "settings": number})
        return 0
    Screen().line(("ok", GOOD), f"   {Path(path).name}: ", (count(number, "setting"), STRONG))
    return 0


def _check_table(file: SettingsFile, name: str) -> None:
    """
    Check the table of a command, each option with its type.

    Raises:
        ConfigError: an option is unknown, or its value does not fit.
    """
    command, problems = load_command(name), []
    values = file_defaults(file, command)
    for option in command.params:
        if option.name in values:
            at = file.place(*((name, option.name) if option.name in file.values.get(name, {}) else (option.name,)))
            problems += [
                f"{option.name} is {why} ({at})" for why in _misfits(command, name, option, values[option.name])
            ]
    if problems:
        raise ConfigError("\n".join(problems))


def _misfits(command: Any, name: str, option: Any, value: Any) -> list[str]:
    """Return what is wrong with the value of an option."""
    kind, wanted = _wanted(option)
    if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
        return [f"{shown(value)}; it must be {wanted}"]
    words = [] if isinstance(value, bool) else [f"{option.opts[0]}={one}" for one in _listed(value)]
    try:
        command.make_context(name, words)
    except PARSER_ERROR as error:
        return [f"{shown(value)}: {str(getattr(error, 'message', error)).rstrip('.')}"]
    return []


def _wanted(option: Any) -> tuple[type | tuple[type, ...], str]:
    """Return the type that an option has in a file, and its name."""
    if option.multiple:
        return list, "a list of texts"
    return (bool, "true or false") if option.is_flag else ((int, float, str), "one value")


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
