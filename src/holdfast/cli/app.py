"""
The table of commands, and the group that imports a command's module when it is called.

The one-line descriptions stand here rather than in the modules, so that ``holdfast --help`` needs
none of them.
"""

from __future__ import annotations

import difflib
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from .. import __version__
from .plain import CommandError

# heading → command → (module in this package, description)
COMMANDS: dict[str, dict[str, tuple[str, str]]] = {
    "Try it": {
        "demo": ("show", "Read bundled conversations and show what is remembered."),
    },
    "Put conversations in": {
        "chat": ("chat", "Talk with a model that remembers, or without one."),
        "say": ("say", "Say something as the user, and see what it changes."),
        "import": ("load", "Import conversations from JSONL files, or what export wrote."),
        "digest": ("digest", "Do the background work that is due: facts, summaries, vectors."),
    },
    "See what is remembered": {
        "list": ("messages", "List who is in the store, or somebody's conversations."),
        "messages": ("messages", "Show a conversation as it was said, with numbers."),
        "facts": ("facts", "List what is believed about the user, with the quotes."),
        "why": ("why", "Show every word that a fact rests on, and how to mend it."),
        "history": ("facts", "Show every value that a fact had, and when each held."),
        "summaries": ("summaries", "Show the summaries of a conversation, level by level."),
        "search": ("search", "Find facts, messages and summaries."),
        "context": ("context", "Show exactly what a model would get for the next reply."),
    },
    "Mend what is remembered": {
        "remember": ("remember", "Add a fact by hand, or replace one that has changed."),
        "correct": ("remember", "Put right a fact that was wrong from the start."),
        "never-true": ("remember", "Stop believing a fact that never held."),
        "restore": ("remember", "Believe a past fact again; undoes correct and never-true."),
        "edit": ("edit", "Put other words in place of a message."),
        "forget": ("forget", "Erase a fact, a message, a conversation, or all facts."),
    },
    "Let users decide": {
        "status": ("consent", "Show whether memory is in use, and how much is held."),
        "pause": ("consent", "Keep what is held, use none of it, write nothing."),
        "resume": ("consent", "End a pause."),
        "opt-out": ("consent", "Remember nothing from now on, and erase what is held."),
        "opt-in": ("consent", "Remember again."),
        "never-remember": ("consent", "Learn no more facts of a topic."),
        "allow": ("consent", "Learn facts of a topic again."),
        "export": ("takeaway", "Write down everything that is held, to take along."),
        "erase": ("forget", "Erase everything that is held, with a receipt."),
    },
    "Keep it small": {
        "consolidate": ("consolidate", "Merge sentences that say the same."),
        "prune": ("consolidate", "Put away the weakest facts of more than 500."),
    },
    "Work with a model": {
        "model": ("model", "Show which model would be used, and ask whether it answers."),
        "prompts": ("prompts", "Show or change what a model is told to do for the user."),
        "rebuild": ("rebuild", "Make one layer of a conversation again; undo it."),
        "backfill": ("backfill", "Bring old conversations up to what is made today."),
        "usage": ("usage", "Show what models were used for, and what it cost."),
    },
    "Serve it": {
        "serve": ("serve", "Serve the memory over HTTP."),
        "worker": ("worker", "Do background work in a process of its own."),
        "keys": ("serve", "List, make and revoke the keys that open the server."),
        "provider-keys": ("providerkeys", "Let users and orgs bring their own model and key."),
        "mcp": ("mcp", "Give an assistant the memory as tools (Model Context Protocol)."),
    },
    "Keep it safe": {
        "store backup": ("backups", "Copy the store to a file while it is in use."),
        "store verify": ("backups", "Check a backup: sound, and free of what was erased since?"),
        "store restore": ("backups", "Put a backup in place, without what was erased since."),
        "store scrub": ("stores", "Take what was erased off the disk, and look for words."),
        "store copy": ("stores", "Copy everything to another database: SQLite, PostgreSQL."),
        "store init": ("stores", "Make a PostgreSQL database ready, with a role of its own."),
        "store distribute": ("distribute", "Spread a PostgreSQL database over a Citus cluster."),
        "store try": ("stores", "Start a PostgreSQL server of your own, to try it."),
        "store ledger": ("backups", "Write down what was erased, to replay it on older backups."),
        "store replay": ("backups", "Erase again what was erased since, after another restore."),
    },
    "Keep it well": {
        "jobs": ("jobs", "List background work; retry or cancel it."),
        "metrics": ("metrics", "Show how well memory serves, each figure with its n."),
        "doctor": ("doctor", "Check the store and everything that Holdfast needs."),
        "bench": ("bench", "Measure recall on public benchmarks, and what is believed."),
    },
}
_WHERE = {name: module for commands in COMMANDS.values() for name, (module, _) in commands.items()}
_DESCRIBED = {name: text for commands in COMMANDS.values() for name, (_, text) in commands.items()}
_TOP = dict.fromkeys(name.split()[0] for name in _WHERE)
_GROUPS = {"store": "The store as a whole: back it up, put it back, move it."}
WIDEST = max(map(len, _WHERE))


class LazyGroup(TyperGroup):
    """The commands of `COMMANDS`; asking for one imports its module, listing them imports nothing."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names, in the order of the table."""
        return list(_TOP)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name, or ``None``."""
        return _load(cmd_name) if cmd_name in _WHERE else _group(cmd_name) if cmd_name in _TOP else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """As typer does it, with our words for a name that does not exist."""
        name = args[0]
        if name not in _TOP and not name.startswith("-"):
            near = difflib.get_close_matches(name, _TOP, n=1, cutoff=0.5)
            hint = f"did you mean `holdfast {near[0]}`?" if near else "`holdfast --help` lists the commands"
            raise CommandError("unknown-command", f"there is no command {name!r}", hint=hint, exit_code=2)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The commands under their headings."""
        for heading, commands in COMMANDS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(WIDEST), text) for name, (_, text) in commands.items()])


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

    `holdfast COMMAND --help` explains a command and shows an example. All take --json, but mcp, which speaks it.
    """
    if version:
        typer.echo(f"holdfast {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


@cache
def command() -> Any:
    """The whole command, ready to be called with arguments."""
    return typer.main.get_command(app)


def _load(name: str) -> Any:
    try:
        module = import_module(f".{_WHERE[name]}", __package__)
    except ImportError as error:
        raise CommandError(
            "not-installed",
            f"`holdfast {name}` needs {error.name or 'a module'}, which cannot be imported: {error}",
            hint="install it again: `pip install --force-reinstall holdfast`",
            exit_code=3,
        ) from error
    return typer.main.get_group(module.app).commands[name.split()[-1]]


def _say_what_there_is(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _group(first: str) -> Any:
    """The commands that begin with the word *first*, as a command of their own."""
    whole = typer.Typer(
        help=_GROUPS[first],
        add_completion=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    whole.callback(invoke_without_command=True)(_say_what_there_is)
    group = typer.main.get_group(whole)
    group.name = first
    for name in _WHERE:
        if name.startswith(f"{first} "):
            one = _load(name)
            one.short_help = _DESCRIBED[name]
            group.add_command(one, name.split()[-1])
    return group
