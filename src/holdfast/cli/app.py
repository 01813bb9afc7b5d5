"""
The table of commands, and the group that imports a command's module when the command is run.

A command is a function whose parameters are its options; a parameter that is an options class of `options` brings all
options of that class.  Descriptions are in the table, so that ``holdfast --help`` imports no command.
"""

from __future__ import annotations

import dataclasses
import difflib
import inspect
from collections.abc import Callable
from functools import cache, wraps
from importlib import import_module
from types import ModuleType
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperGroup

from .. import __version__
from .terminal import MISSING, USAGE, CommandError

_USER, _OPERATOR = "user_commands", "operator_commands"

# heading → command → (module in this package, description)
COMMANDS: dict[str, dict[str, tuple[str, str]]] = {
    "Try it": {
        "demo": (f"{_USER}.demo", "Read the bundled conversations and show what is remembered."),
    },
    "Add conversations": {
        "chat": (f"{_USER}.chat", "Chat with a model that remembers, or without one."),
        "say": (f"{_USER}.chat", "Store a message of the user and show what it changes."),
        "import": (f"{_USER}.importing", "Import conversations from JSONL files and exports."),
        "digest": (f"{_OPERATOR}.jobs", "Do background work that is due: facts, summaries, vectors."),
    },
    "See what is remembered": {
        "list": (f"{_USER}.conversations", "List the users in the store, or a user's conversations."),
        "messages": (f"{_USER}.conversations", "Show the messages of a conversation with their numbers."),
        "facts": (f"{_USER}.facts", "List the facts about the user with their quotes."),
        "why": (f"{_USER}.facts", "Show the quotes behind a fact, and how to correct it."),
        "history": (f"{_USER}.facts", "Show every value of a fact and when each was true."),
        "summaries": (f"{_USER}.conversations", "Show the summaries of a conversation, level by level."),
        "search": (f"{_USER}.conversations", "Search facts, messages and summaries."),
        "story": (f"{_USER}.subjects", "Print what all conversations about the user or a subject came to."),
        "context": (f"{_USER}.conversations", "Show exactly what a model would be sent for the next reply."),
    },
    "Correct what is remembered": {
        "remember": (f"{_USER}.corrections", "Add a fact by hand, or replace one that has changed."),
        "correct": (f"{_USER}.corrections", "Correct a fact that was wrong from the start."),
        "never-true": (f"{_USER}.corrections", "Retract a fact that was never true."),
        "subjects": (f"{_USER}.subjects", "List the pets, patients, and friends a user speaks of; name or merge them."),
        "review": (f"{_USER}.corrections", "Accept or dismiss what waits for a decision."),
        "restore": (f"{_USER}.corrections", "Restore a past fact; undoes correct and never-true."),
        "edit": (f"{_USER}.corrections", "Replace the text of a message."),
        "rate": (f"{_USER}.corrections", "Rate a reply: up, down, or a score."),
        "forget": (f"{_USER}.corrections", "Erase a fact, a message, a conversation, or all facts."),
    },
    "Let users decide": {
        "status": (f"{_USER}.consent", "Show whether memory is in use and how much is stored."),
        "pause": (f"{_USER}.consent", "Use nothing that is stored, and store nothing new."),
        "resume": (f"{_USER}.consent", "End a pause."),
        "opt-out": (f"{_USER}.consent", "Stop remembering, and erase what is stored."),
        "opt-in": (f"{_USER}.consent", "Start remembering again."),
        "never-remember": (f"{_USER}.consent", "Learn no more facts about a topic."),
        "allow": (f"{_USER}.consent", "Learn facts about a topic again."),
        "export": (f"{_USER}.consent", "Export everything that is stored about the user."),
        "erase": (f"{_USER}.corrections", "Erase everything about the user, with a receipt."),
    },
    "Keep it small": {
        "consolidate": (f"{_USER}.maintenance", "Merge sentences that say the same."),
        "prune": (f"{_USER}.maintenance", "Archive the weakest facts beyond 500."),
    },
    "Work with a model": {
        "model": ("models", "Show which model would be used, and whether it answers."),
        "prompts": (f"{_USER}.prompts", "Show or change the instructions for the model."),
        "rebuild": (f"{_USER}.maintenance", "Rebuild one layer of a conversation, or revert a rebuild."),
        "backfill": (f"{_USER}.maintenance", "Add missing summaries and facts to old conversations."),
        "usage": (f"{_OPERATOR}.usage", "Show model calls, tokens and costs."),
    },
    "Serve it": {
        "serve": (f"{_OPERATOR}.serve", "Serve the memory over HTTP."),
        "worker": (f"{_OPERATOR}.worker", "Do background work in a separate process."),
        "keys": (f"{_OPERATOR}.keys", "List, create and revoke the API keys of the server."),
        "provider-keys": (f"{_OPERATOR}.keys", "Manage models and keys that users and organizations bring."),
        "mcp": (f"{_OPERATOR}.serve", "Offer the memory to an assistant as tools (MCP)."),
        "hook run": (f"{_USER}.hook", "Answer an event of a coding agent, as its hook."),
        "hook install": (f"{_USER}.hook", "Give Claude Code, Codex or Cursor a memory by their hooks."),
    },
    "Keep it safe": {
        "store backup": (f"{_OPERATOR}.backup", "Back up the store to a file while it is in use."),
        "store verify": (f"{_OPERATOR}.backup", "Check a backup: intact, and free of what was erased since?"),
        "store restore": (f"{_OPERATOR}.backup", "Restore a backup, without what was erased since."),
        "store scrub": (f"{_OPERATOR}.store", "Remove erased data from the disk, and search for words."),
        "store copy": (f"{_OPERATOR}.store", "Copy everything to another database: SQLite or PostgreSQL."),
        "store init": (f"{_OPERATOR}.store", "Prepare a PostgreSQL database and a role for applications."),
        "store owners": (f"{_OPERATOR}.store", "Let users' own database roles read their rows, and no others."),
        "store distribute": (f"{_OPERATOR}.store", "Distribute a PostgreSQL database over a Citus cluster."),
        "store try": (f"{_OPERATOR}.store", "Start a private PostgreSQL server to try it."),
        "store ledger": (f"{_OPERATOR}.backup", "Export the erasure log, to replay it on older backups."),
        "store replay": (f"{_OPERATOR}.backup", "Replay an erasure log on a store that was restored."),
    },
    "Keep it well": {
        "jobs": (f"{_OPERATOR}.jobs", "List background jobs; retry, run or cancel one."),
        "metrics": (f"{_OPERATOR}.usage", "Show how well memory works, each figure with its n."),
        "config": (f"{_OPERATOR}.config", "Show the settings and where each is from; check a file."),
        "doctor": (f"{_OPERATOR}.doctor", "Check the store and everything that Holdfast needs."),
        "bench": (f"{_OPERATOR}.bench", "Measure recall and facts on public benchmarks."),
    },
}
_TABLE = {name: entry for commands in COMMANDS.values() for name, entry in commands.items()}
_GROUPS = {
    "store": "Manage the whole store: back it up, restore it, move it.",
    "hook": "Give coding agents a memory: Claude Code, Codex, Cursor.",
}
_WIDTH = max(map(len, _TABLE))
_SETTINGS: dict[str, Any] = {
    "add_completion": False,
    "rich_markup_mode": None,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}


# What other programs, and the library, call what a command or an option does here.
_ALSO_CALLED = {
    "rejected": "facts --rejected", "waiting": "facts --waiting", "archived": "facts --archived", "episodes": "facts",
    "profile": "context", "recall": "search", "delete": "forget", "users": "list", "conversations": "list",
}  # fmt: skip


class LazyGroup(TyperGroup):
    """The commands of `COMMANDS` that begin with ``prefix``; running one imports its module, listing them nothing."""

    prefix = ""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the next words of the names, in the order of the table."""
        return list(
            dict.fromkeys(name.removeprefix(self.prefix).split()[0] for name in _TABLE if name.startswith(self.prefix))
        )

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command or the group of that name, or ``None``."""
        name = self.prefix + cmd_name
        return load_command(name) if name in _TABLE else _load_group(name) if name in _GROUPS else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Resolve as typer does, but suggest a command when the name is unknown."""
        name, known = args[0], self.list_commands(ctx)
        if name not in known and not name.startswith("-"):
            here = [self.prefix + word for word in difflib.get_close_matches(name, known, n=1, cutoff=0.5)]
            near = [entry for entry in _TABLE if entry.split()[-1] == name]
            near = (
                near or [called for other, called in _ALSO_CALLED.items() if (other, self.prefix) == (name, "")] or here
            )
            hint = (
                f"did you mean `holdfast {near[0]}`?" if near else f"`holdfast {self.prefix}--help` lists the commands"
            )
            message = f"there is no command {self.prefix + name!r}"
            raise CommandError("unknown-command", message, hint=hint, exit_code=USAGE)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands under their headings."""
        for heading, commands in COMMANDS.items():
            rows = [
                (name.removeprefix(self.prefix).ljust(_WIDTH - len(self.prefix)), text)
                for name, (_, text) in commands.items()
                if name.startswith(self.prefix)
            ]
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)


app = typer.Typer(
    cls=LazyGroup,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
)


@app.callback(invoke_without_command=True)
def holdfast(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """
    Conversation memory for chatbots: every turn kept, every fact current, every prompt within budget.

    Needs no account, no key and no network. The memory is one SQLite file: ./holdfast.db, unless
    --store PATH (or HOLDFAST_STORE) names another.

    \b
    Examples:
      holdfast demo
      holdfast say "I'm vegetarian, and I live in Lisbon."
      holdfast say "I eat fish now."
      holdfast facts
      holdfast context "What should I cook tonight?"

    `holdfast COMMAND --help` explains a command with examples. Every command takes --json, except mcp.
    """
    if version:
        typer.echo(f"holdfast {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


@cache
def command() -> Any:
    """Build the whole command, ready to be called with arguments."""
    return typer.main.get_command(app)


def load_module(name: str, needed_by: str, hint: str) -> ModuleType:
    """
    Import a module when a command needs it; the only such import of the command line.

    Raises:
        CommandError: a package that the module imports is not installed.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise CommandError(
            "not-installed",
            f"{needed_by} needs {error.name or 'a package'}, which is not installed",
            hint=hint,
            exit_code=MISSING,
        ) from error


def load_command(name: str) -> Any:
    """Import a command's module and build the command from its function of the same name."""
    path, _ = _TABLE[name]
    reinstall = "install Holdfast again, in a clone: `pip install --force-reinstall .`"
    module = load_module(f"{__package__}.{path}", f"`holdfast {name}`", reinstall)
    word = name.split()[-1]
    attribute = word.replace("-", "_")
    function = getattr(module, attribute, None) or getattr(module, f"{attribute}_")
    single = typer.Typer(**_SETTINGS)
    single.command(word)(expand_options(function))
    return typer.main.get_command(single)


def expand_options(function: Callable[..., int]) -> Callable[..., int]:
    """Replace each parameter that is an options class by the options of that class; --json comes last."""
    signature = inspect.signature(function, eval_str=True)
    groups = {name: each.annotation for name, each in signature.parameters.items() if _is_group(each.annotation)}
    parameters = {name: each for name, each in signature.parameters.items() if name not in groups}
    for group in groups.values():
        hints = get_type_hints(group, include_extras=True)
        for field in _options_of(group):
            parameters[field.name] = inspect.Parameter(
                field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name]
            )
    if last := parameters.pop("as_json", None):
        parameters["as_json"] = last

    @wraps(function)
    def run(**given: Any) -> int:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in _options_of(group)})
        return function(**given)

    ordered = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters.values()]
    run.__signature__ = signature.replace(parameters=ordered)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in ordered}
    del run.__wrapped__
    return run


def _is_group(annotation: Any) -> bool:
    return isinstance(annotation, type) and dataclasses.is_dataclass(annotation)


def _options_of(group: type) -> list[dataclasses.Field[Any]]:
    return [field for field in dataclasses.fields(group) if field.init]


def _show_help(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _load_group(first: str) -> Any:
    """Build the group of the commands that begin with the word *first*."""
    group_app = typer.Typer(cls=LazyGroup, help=_GROUPS[first], **_SETTINGS)
    group_app.callback(invoke_without_command=True)(_show_help)
    group: Any = typer.main.get_group(group_app)
    group.name, group.prefix = first, f"{first} "
    return group
