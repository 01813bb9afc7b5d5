"""
All settings, in one frozen value.  A name carries the unit; the defaults suit most uses.

Pass a ``Config`` to ``Memory``.  `Config.load` makes one from a TOML file and the environment, as the command does; nothing
else reads either.
"""

from __future__ import annotations

import difflib
import json
import math
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, field, fields
from functools import cache, cached_property
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal

from .errors import ConfigError
from .text import dataclass, expression
from .text.languages import LANGUAGE_NAMES
from .types import Budget, Detector, PatternDetector, Price

FILE_VARIABLE, PREFIX = "HOLDFAST_CONFIG", "HOLDFAST_"

# What a settings file may hold beside settings: options of the command, by the variable that sets them, and tables of options.
COMMAND_NAMES = ("store", "llm", "base_url", "org", "bot", "user")
COMMAND_TABLES = ("serve", "worker")


def metadata(
    doc: str, least: float | None = None, most: float | None = None, *, reloads: bool = False
) -> dict[str, Any]:
    """Return the sentence and the bounds of a setting, and whether it can change while a memory is open."""
    return {"doc": doc, "least": least, "most": most, "reloads": reloads}


def setting(
    default: Any, doc: str, *, least: float | None = None, most: float | None = None, reloads: bool = True
) -> Any:
    """Make a dataclass field with its sentence and its bounds."""
    return field(default=default, metadata=metadata(doc, least, most, reloads=reloads))


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """
    The settings of one ``Memory``.  Raises ``ConfigError`` when a value is out of its bounds.
    """

    chunk_messages: int = setting(
        10,
        "Messages after which a chunk may close, at the next exchange; of short messages three times as many.",
        least=10,
    )
    chunk_tokens: int = setting(
        600, "Tokens that a chunk of so many messages holds at least, so that its summary is worth its call.", least=1
    )
    chunk_max_tokens: int = setting(
        3_000, "Tokens after which a chunk closes at the next exchange, however few its messages are.", least=100
    )
    chunk_exchanges: int = setting(15, "Exchanges after which a chunk closes in any case.", least=5)
    chunk_gap_minutes: int = setting(
        360,
        "Silence after which a new session begins and a chunk closes that holds half of chunk_messages and, behind an earlier chunk, of chunk_tokens; 28 times as much closes a first chunk, however short.",
        least=1,
    )
    summaries: bool = setting(
        True, "Make summaries of chunks; False queues no such work, for bots whose contexts are facts and recent turns."
    )
    rollup_summaries: int = setting(3, "Summaries of level n that are joined into one of level n+1.", least=2)
    story_tokens: int = setting(
        400, "Tokens of the story of a subject across its conversations, at most; 0: none is made.", least=0
    )
    recent_messages: int = setting(
        20, "Recent messages shown verbatim in a layered context; the last two turns always are.", least=2
    )
    recall_limit: int = setting(60, "Maximum number of recalled items in a context.", least=0)
    recall_min_relevance: float = setting(
        0.35,
        "Relevance that the best hit needs for a context to recall anything; beside it, facts need half of that and turns a tenth.",
        least=0,
        most=1,
    )
    memory_instruction: str = setting(
        "Use it naturally and do not recite it.",
        "Sentence that tells the model in every context how to use what is known about the user; empty for none.",
    )
    own_facts: bool = setting(
        False,
        "What is stated in a conversation is a fact of that conversation alone, unless `conversation(own_facts=…)` says otherwise.",
    )
    ask_before_learning: bool = setting(
        False,
        "What is read from a chat is not believed before the user, or an operator, accepts it: on /me, or with `User.review`.",
    )
    min_confidence: float = setting(0.7, "Candidates below this confidence are rejected.", least=0, most=1)
    believe_unquoted: bool = setting(
        False,
        "With a model: believe what it notes without a quote in words that nobody said, where one message of the user is meant. What asks, supposes, or is about others is still rejected.",
    )
    max_memories: int = setting(
        500, "Maximum number of active facts of one user; the weakest beyond it are archived, not lost.", least=1
    )
    decay_half_life_days: float = setting(
        30, "Days after which a fact that is neither stated nor used is half as strong.", least=0.01, reloads=False
    )
    archive_faded: bool = setting(
        True, "Archive statements and episodes that faded: not said, learned or used for four half-lives and more."
    )
    consolidate_similarity: float | None = setting(
        None,
        "Cosine from which statements may be merged; None uses the value calibrated for the embedder.",
        least=0,
        most=1,
    )
    budget_tokens: int = setting(4000, "Tokens that a context may use if the call names no budget.", least=1)
    max_message_chars: int = setting(4_000_000, "Maximum length of a message; a longer one is refused.", least=1)
    language: str | None = setting(None, "Language of the messages (ISO 639-1); None detects it.")
    fact_language: str | None = setting(
        None,
        "With a model: language in which it words facts and episodes (ISO 639-1), whatever the chat's is; None keeps that of the chat.",
    )
    job_lease_ms: int = setting(
        60_000, "Time for which a worker holds a job before another may take it over.", least=100, reloads=False
    )
    job_attempts: int = setting(5, "Failures after which a job is dead.", least=1, reloads=False)
    job_backoff_ms: int = setting(
        2_000, "Wait after a job's first failure; it doubles with each further one.", least=0, reloads=False
    )
    backfill_delay_ms: int = setting(500, "Pause between two calls of a model during a backfill.", least=0)
    workers: int = setting(2, "Background threads of Memory(background=True).", least=1, reloads=False)
    busy_timeout_ms: int = setting(
        30_000, "Time for which a write waits for another process on the same file.", least=0, reloads=False
    )
    store_connections: int = setting(
        10, "Maximum number of connections of one Memory to a PostgreSQL server.", least=1, reloads=False
    )
    store_prepares: bool = setting(
        True,
        "Keep prepared statements on a PostgreSQL server; use False behind a pooler that does not support them.",
        reloads=False,
    )
    statement_timeout_ms: int = setting(
        60_000,
        "Time that a PostgreSQL server may spend on one statement about a user, and ten times that across users; 0 for no limit.",
        least=0,
        reloads=False,
    )
    durable: bool = setting(
        True,
        "Sync the disk before a write is acknowledged; with False, a power cut may lose the last writes.",
        reloads=False,
    )
    index_cache_mb: int = setting(
        64, "Memory for cached search indexes of users; 0 disables the cache.", least=0, reloads=False
    )
    reembed: bool = setting(
        True,
        "After a change of embedder, embed the texts of all users again; with False, only those of users with new messages.",
        reloads=False,
    )
    redact_messages: bool = setting(
        False, "Remove cards, passwords, and keys from the stored message as well, not only from derived data."
    )
    detectors: tuple[Detector, ...] = setting(
        (), "Additional detectors of text that must not be remembered; see Detector."
    )
    extract_every_user_turns: int = setting(
        5,
        "With a model: user messages after which it extracts facts; sooner if a message states something. With 1, after each one.",
        least=1,
    )
    extract_user_turns: int = setting(
        15, "With a model: user messages that one call for facts reads, at most.", least=1, most=60
    )
    extract_messages_before: int = setting(
        2, "With a model: messages before those that are read for facts, shown beside them.", least=0, most=60
    )
    economy: bool = setting(
        False,
        "With a model: one combined call per chunk instead of one per layer; cheaper, but facts come later.",
        reloads=False,
    )
    character_facts: bool = setting(
        False,
        "With a model: also learn what the assistant says of the character that it plays, as facts about the subject `assistant`.",
    )
    users_may_rebuild: bool = setting(
        False, "On a server: users may rebuild ranges of their own conversations, on their page and with their keys."
    )
    users_may_set_prompts: bool = setting(
        False, "On a server: users may set prompts of their own, on their page and with their keys."
    )
    message_char_limit: int = setting(1_200, "Characters of one message that a model sees; the rest is cut.", least=40)
    reply_char_limit: int = setting(
        600,
        "Characters of an assistant's message that a model sees when it sums up; its beginning and its end.",
        least=40,
    )
    max_output_tokens: int = setting(1_024, "Maximum number of tokens in a model's answer.", least=16)
    model_timeout_s: float = setting(60.0, "Time that one call of a model may take.", least=0.1)
    model_requests_per_minute: int | None = setting(
        None, "Requests per minute with one key of a provider, for all processes of a store together.", least=1
    )
    model_tokens_per_minute: int | None = setting(
        None, "Tokens per minute with one key of a provider, for all processes of a store together.", least=1
    )
    prompt_cache: bool = setting(
        True, "Ask the provider to cache the beginnings of prompts, where it accepts a key for that."
    )
    prompt_cache_min_tokens: int = setting(1_024, "Prompts shorter than this are sent without a cache key.", least=0)
    prompt_cache_retention: Literal["24h", "in_memory"] = setting(
        "24h",
        "How long the provider should cache: 24h or in_memory; it gets the nearest value that it supports.",
        reloads=False,
    )
    prices: Mapping[str, Price] = field(
        default_factory=dict,
        metadata=metadata(
            "Prices by model (such as `openai:gpt-5-mini`); they take precedence over the installed table; see Price.",
            reloads=True,
        ),
    )
    budget: Budget | None = field(
        default=None, metadata=metadata("Limit per day for models in the whole memory; see Budget.", reloads=True)
    )
    budget_org: Budget | None = field(
        default=None, metadata=metadata("Limit per day for models of one org.", reloads=True)
    )
    budget_user: Budget | None = field(
        default=None, metadata=metadata("Limit per day for models of one user.", reloads=True)
    )
    allow_private_endpoints: tuple[str, ...] = setting(
        (),
        "Private hosts and networks to which keys of users and orgs may be sent, "
        "such as `localhost:11434`, `ollama.internal`, or `10.0.0.0/8`.",
        reloads=False,
    )
    usage_days: int = setting(400, "Days for which the usage of models is kept.", least=1)
    event_rows: int = setting(
        10_000, "Events of one user that are kept; up to 256 more wait for their removal.", least=256, reloads=False
    )
    event_days: int = setting(90, "Days after which an event is removed, at the next event.", least=1, reloads=False)
    read_log_share: float = setting(
        0.0,
        "Share of the reads of a memory that its access log names beside every change: 0 names none, 1 every one.",
        least=0,
        most=1,
    )
    scrub_mb: int = setting(
        200, "Largest file that is rewritten and searched after an erasure; see ErasureReceipt.", least=0, reloads=False
    )
    categories: Mapping[str, Mapping[str, Any]] = field(
        default_factory=dict, metadata=metadata("Additional fact categories, in the format of the registry file.")
    )

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, list) and str(item.type).startswith("tuple"):
                value = tuple(value)
                object.__setattr__(self, item.name, value)
            if wanted := misfit(item, value):
                raise ConfigError(
                    f"Config.{item.name} is {shown(value)}; it must be {wanted}", hint=_HINTS.get(item.name, "")
                )
        if self.fact_language not in (None, *LANGUAGE_NAMES):
            codes = ", ".join(sorted(LANGUAGE_NAMES))
            raise ConfigError(
                f"Config.fact_language is {shown(self.fact_language)}; it must be one of {codes}, or none"
            )

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str] | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        **settings: Any,
    ) -> Config:
        """
        Read settings from a TOML file and from the environment; *settings* win over both, the environment over the file.

        Args:
            path: the file; the one that ``HOLDFAST_CONFIG`` names when not given, none when that is not set.
            environ: the variables, ``HOLDFAST_`` and the name in capitals; those of this process when not given, ``{}`` for none.
            settings: settings by name.

        Raises:
            ConfigError: the file cannot be read, a name is unknown, or a value does not fit; it names the place of each.
        """
        return load_config(path, os.environ if environ is None else environ, settings).config


# Checks.

_HINTS = {name: "Budget(tokens_per_day=1_000_000)" for name in ("budget", "budget_org", "budget_user")}
_SHOWN_CHARS = 60


def shown(value: object) -> str:
    """Return a value for a message, cut to a line."""
    text = {True: "true", False: "false"}[value] if isinstance(value, bool) else repr(value)
    return text if len(text) <= _SHOWN_CHARS else f"{text[: _SHOWN_CHARS - 1]}…"


def misfit(item: Field[Any], value: object) -> str:
    """Return what a setting must be when *value* does not fit, else an empty text."""
    kind, optional = str(item.type).removesuffix(" | None"), str(item.type).endswith(" | None")
    least, most = item.metadata["least"], item.metadata["most"]
    if (value is None and optional) or (_has_kind(kind, value) and _in_bounds(value, least, most)):
        return ""
    bounds = "" if least is None else f", at least {least:g}" if most is None else f" from {least:g} to {most:g}"
    choices = " or ".join(re.findall("'(.*?)'", kind))
    words = choices or _WORDS.get(kind, kind)
    return f"{words}{bounds}{', or none' if optional else ''}"


_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "str": "text",
    "tuple[str, ...]": "a list of texts",
    "tuple[Detector, ...]": "a list of detectors, each with its kind and its pattern",
    "Budget": "a limit of tokens_per_day or usd_per_day, 0 or more",
    "Mapping[str, Price]": "a table of prices by model, each with its dollars for a million tokens of input and output",
    "Mapping[str, Mapping[str, Any]]": "a table of tables, one a category",
}


def _has_kind(kind: str, value: Any) -> bool:
    match kind:
        case "int":
            return isinstance(value, Integral) and not isinstance(value, bool)
        case "float":
            return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
        case "bool" | "str":
            return type(value).__name__ == kind
        case "tuple[str, ...]":
            return isinstance(value, tuple) and all(isinstance(one, str) for one in value)
        case "tuple[Detector, ...]":
            return isinstance(value, tuple) and all(hasattr(one, "kind") and hasattr(one, "find") for one in value)
        case "Budget":
            limits = (value.tokens_per_day, value.usd_per_day) if isinstance(value, Budget) else ()
            return any(one is not None for one in limits) and all(_is_amount(one) for one in limits if one is not None)
        case "Mapping[str, Price]":
            return isinstance(value, Mapping) and all(map(_is_price, value.values()))
        case "Mapping[str, Mapping[str, Any]]":
            return isinstance(value, Mapping) and all(isinstance(one, Mapping) for one in value.values())
    return value in re.findall("'(.*?)'", kind)


def _is_amount(value: Any) -> bool:
    return _has_kind("float", value) and bool(value >= 0)


def _is_price(value: object) -> bool:
    return isinstance(value, Price) and all(map(_is_amount, (value.input, value.output, value.cached or 0)))


def _in_bounds(value: Any, least: float | None, most: float | None) -> bool:
    return least is None or (value >= least and (most is None or value <= most))


# Files and the environment.

# The variables that are no settings; each may end with _FILE where it holds a secret.
VARIABLES = frozenset(
    f"{PREFIX}{name}"
    for name in (
        "CONFIG STORE ADMIN_STORE ROLE_PASSWORD LLM BASE_URL API_KEY ORG BOT USER CACHE MASTER_KEY NEW_MASTER_KEY PROVIDER_KEY "
        "UPSTREAM_BASE_URL UPSTREAM_API_KEY OPERATIONS TELEMETRY FIRST_KEY SERVE_HOST SERVE_PORT ALLOW_HOST ALLOW_ORIGIN LOG_FORMAT "
        "REQUESTS_PER_MINUTE ORG_REQUESTS_PER_MINUTE MESSAGES_PER_DAY MESSAGES_PER_MONTH ORG_MESSAGES_PER_DAY ORG_MESSAGES_PER_MONTH"
    ).split()
)
# Set by Kubernetes in every container, for a Service of the name holdfast, holdfast-worker, …
_SET_BY_KUBERNETES = expression(r".*(_SERVICE_HOST|_SERVICE_PORT(_.*)?|_PORT(_\d+_(TCP|UDP)(_\w+)?)?)")
_NEAR = 0.87  # a variable that is this much like that of a setting is misspelled

_SWITCH = dict.fromkeys(("true", "on", "yes", "1"), True) | dict.fromkeys(("false", "off", "no", "0"), False)


@dataclass(frozen=True, slots=True)
class Origin:
    """The place that a setting has its value from: a file with its line, a variable, or an option."""

    kind: Literal["default", "file", "environment", "option"]
    place: str = ""


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    """Settings with their origins; ``unknown`` are variables that begin like ours, and that nothing reads."""

    config: Config
    origins: Mapping[str, Origin]
    file: SettingsFile | None
    unknown: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ConfigChanges:
    """The names of settings that changed: those ``applied`` at once, and those that a ``restart`` applies."""

    applied: tuple[str, ...]
    restart: tuple[str, ...]


class SettingsFile:
    """A TOML file of settings."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """
        Read the file.

        Raises:
            ConfigError: it cannot be read, or is not TOML.
        """
        self.path = os.fspath(path)
        try:
            self.text = Path(path).read_bytes().decode("utf-8-sig")
            self.values: dict[str, Any] = tomllib.loads(self.text)
        except OSError as error:
            hint = f"--config or {FILE_VARIABLE} names the file"
            raise ConfigError(f"{self.path}: {error.strerror or 'cannot be read'}", hint=hint) from None
        except UnicodeDecodeError:
            raise ConfigError(f"{self.path} is not text in UTF-8", hint="a file of settings is TOML") from None
        except tomllib.TOMLDecodeError as error:
            hint = 'write name = value, and texts in quotes: language = "en"'
            raise ConfigError(f"{self.path} is not TOML: {error}", hint=hint) from None

    def place(self, *names: str) -> str:
        """Return the place of a value, such as ``bot.toml, line 3``; *names* lead to it through the tables."""
        line = self._lines.get(names)
        return f"{self.path}, line {line}" if line else self.path

    @cached_property
    def _lines(self) -> dict[tuple[str, ...], int]:
        """The line on which each value begins."""
        found: dict[tuple[str, ...], int] = {}
        table: tuple[str, ...] = ()
        lines, first = self.text.splitlines(), 1
        for number in range(1, len(lines) + 1):
            try:
                values = tomllib.loads("\n".join(lines[first - 1 : number]))
            except tomllib.TOMLDecodeError:  # within a value of several lines
                continue
            header = lines[first - 1].lstrip().startswith("[")
            paths = [((() if header else table) + names) for names in _paths(values)]
            table = paths[-1] if header else table
            for names in paths:
                found.setdefault(names, first)
            first = number + 1
        return found


def _paths(values: Mapping[str, Any], before: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Return the names that lead to each value of a table, and to the tables in it."""
    found = []
    for name, value in values.items():
        found.append((*before, name))
        if isinstance(value, Mapping):
            found += _paths(value, (*before, name))
    return found


@cache
def settings_by_name() -> Mapping[str, Field[Any]]:
    """Return the field of each setting."""
    return {item.name: item for item in fields(Config)}


def variable_of(name: str) -> str:
    """Return the variable of a setting."""
    return PREFIX + name.upper()


def load_config(
    path: str | os.PathLike[str] | None,
    environ: Mapping[str, str],
    options: Mapping[str, Any],
    *,
    as_text: bool = False,
    defaults: Mapping[str, Any] | None = None,
) -> LoadedConfig:
    """
    Read settings from *path*, then from *environ*, then from *options*; the last that names a setting wins.

    The options are ``--setting NAME=VALUE`` of a command when they are *as_text*.

    Raises:
        ConfigError: there are names that no setting has, or values that do not fit; the message names all, with their places.
    """
    chosen = path or environ.get(FILE_VARIABLE) or None
    file = SettingsFile(chosen) if chosen else None
    given = [
        (name, value, Origin("file", file.place(name)), False)
        for name, value in (file.values if file else {}).items()
        if file and name not in (*COMMAND_NAMES, *COMMAND_TABLES)
    ]
    for name in settings_by_name():
        if text := environ.get(variable_of(name), "").strip():  # an empty variable is one that is not set
            given.append((name, text, Origin("environment", variable_of(name)), True))
    given += [
        (name, value, Origin("option", "--setting" if as_text else ""), as_text) for name, value in options.items()
    ]
    values, origins = dict(defaults or {}), dict.fromkeys(settings_by_name(), Origin("default"))
    problems, unknown = _other_variables(environ)
    for name in COMMAND_NAMES if file else ():
        if file and not isinstance(value := file.values.get(name, ""), str):
            problems.append(f"{name} is {shown(value)}; it must be text ({file.place(name)})")
    for name in COMMAND_TABLES if file else ():
        if file and not isinstance(file.values.get(name, {}), Mapping):
            problems.append(f"{name} must be a table of options, [{name}] ({file.place(name)})")
    for name, value, origin, is_text in given:
        at = f" ({origin.place})" if origin.place else ""
        item = settings_by_name().get(name)
        if item is None:
            names = [*settings_by_name(), *(((*COMMAND_NAMES, *COMMAND_TABLES)) if origin.kind == "file" else ())]
            problems.append(f"there is no setting {name!r}{at}{did_you_mean(name, names)}")
            continue
        found, wrong = _convert(item, value, is_text=is_text)
        if wrong:
            problems.append(f"{name}{wrong}{at}")
        values[name], origins[name] = found, origin
    if problems:
        raise ConfigError("\n".join(problems), hint="`holdfast config` lists all settings with their values and bounds")
    return LoadedConfig(Config(**values), origins, file, tuple(unknown))


def did_you_mean(name: str, names: Sequence[str] | Mapping[str, Any], least: float = 0.6) -> str:
    """Return a guess at what is meant by a name that is none of *names*; empty when none is near."""
    near = difflib.get_close_matches(name.lower(), list(names), n=1, cutoff=least)
    return f"; did you mean {near[0]}?" if near else ""


def _other_variables(environ: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Return what is wrong with variables that nearly name a setting, and the names of other variables that nothing reads."""
    problems, unknown = [], []
    variables = {variable_of(name).lower(): variable_of(name) for name in settings_by_name()}
    for name in sorted(environ):
        lower = name.lower()
        if not name.startswith(PREFIX) or lower in variables or name.removesuffix("_FILE") in VARIABLES:
            continue
        if near := difflib.get_close_matches(lower, variables, n=1, cutoff=_NEAR):
            problems.append(f"there is no variable {name}; did you mean {variables[near[0]]}?")
        elif not _SET_BY_KUBERNETES.fullmatch(name):
            unknown.append(name)
    return problems, unknown


def _convert(item: Field[Any], value: Any, *, is_text: bool) -> tuple[Any, str]:
    """Return the value as `Config` holds it, and what is wrong with it."""
    kind = str(item.type).removesuffix(" | None")
    optional = str(item.type).endswith(" | None")
    if optional and isinstance(value, str) and value.lower() in ("none", ""):
        return None, ""
    found = _from_text(kind, value) if is_text else value
    try:
        found = _from_toml(kind, found)
    except ConfigError as error:
        return value, f": {error.message}"
    wanted = misfit(item, found)
    return found, f" is {shown(value)}; it must be {wanted}" if wanted else ""


def _from_text(kind: str, text: str) -> Any:
    """Parse the text of a variable or an option; return the text itself when it cannot be parsed."""
    if text.lower() == "none" and (kind == "str" or kind.startswith("tuple")):
        return "" if kind == "str" else ()
    if kind == "bool":
        return _SWITCH.get(text.lower(), text)
    if kind == "tuple[str, ...]":
        return tuple(re.split(r"[\s,]+", text))
    if kind in ("int", "float"):
        try:
            return int(text) if kind == "int" else float(text)
        except ValueError:
            return text
    if kind == "str" or kind.startswith("Literal"):
        return text
    for parse in (json.loads, lambda written: tomllib.loads(f"value = {written}")["value"]):
        try:
            return parse(text)
        except ValueError:
            continue
    return text


def _from_toml(kind: str, value: Any) -> Any:
    """
    Build the record that tables of the file describe.

    Raises:
        ConfigError: a table has a name too many or lacks one.
    """
    if isinstance(value, list) and kind == "tuple[Detector, ...]":
        return tuple(_record(PatternDetector, one) for one in value)
    if isinstance(value, list) and kind == "tuple[str, ...]":
        return tuple(value)
    if isinstance(value, Mapping) and kind == "Budget":
        return _record(Budget, value)
    if isinstance(value, Mapping) and kind == "Mapping[str, Price]":
        return {name: _record(Price, one) for name, one in value.items()}
    return value


def _record(kind: type, table: Any) -> Any:
    if not isinstance(table, Mapping):
        return table
    names = [item.name for item in fields(kind)]
    for name in table:
        if name not in names:
            raise ConfigError(f"there is no {name!r} in it{did_you_mean(name, names)}")
    try:
        return kind(**table)
    except TypeError:
        raise ConfigError(
            f"it needs {' and '.join(item.name for item in fields(kind) if item.default is MISSING)}"
        ) from None


def reload_config(current: Config, new: Config) -> ConfigChanges:
    """
    Change *current*, which an open memory reads, to *new* where that is safe; return what changed and what could not.

    It is the one place where a ``Config`` changes: every part of a memory holds the same one, and reads the settings that
    can be reloaded when it uses them.  Each is checked already, and is set in one step.
    """
    changed = [item for item in fields(Config) if getattr(current, item.name) != getattr(new, item.name)]
    applied = [item.name for item in changed if item.metadata["reloads"]]
    for name in applied:
        object.__setattr__(current, name, getattr(new, name))
    return ConfigChanges(tuple(applied), tuple(item.name for item in changed if item.name not in applied))
