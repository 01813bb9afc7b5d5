"""``holdfast hook run`` and ``holdfast hook install``: a memory for Claude Code, Codex and Cursor by their hooks."""

from __future__ import annotations

import getpass
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from ...errors import HoldfastError
from ...integrations.agents import served
from ...integrations.agents.served import BUDGET_TOKENS, MAX_INPUT_BYTES
from ...text import dataclass, expression
from ..app import load_module
from ..options import DEFAULT, BotOption, JsonOptions, OrgOption, StoreOptions
from ..output import QUIET, STRONG, Screen, print_json
from ..terminal import CommandError, print_error, usage_error

WAIT_MS = 2_000  # an agent waits for its hooks: rather no memory than a wait
TIMEOUT_S = 15

# A command that an installation has written, by a path of its own or by the Python that has the library.
_OURS = expression(r"(?:[\\/]|^|')holdfast(?:\.exe)?'? hook run --store |-m holdfast hook run --store ")
_PASSWORD = expression(r"://[^/@\s]*:[^/@\s]+@|[?&]password=")

UserOption = Annotated[
    str | None,
    typer.Option(
        "--user", "-u", envvar="HOLDFAST_USER", metavar="NAME", help="Whose memory it is (default: who is signed in)."
    ),
]


@dataclass(frozen=True)
class Agent:
    """A coding agent: its file of hooks in the user's folder, the one in a project's, and the events that it names."""

    title: str
    file: str
    project_file: str
    events: tuple[str, ...]


AGENTS = {
    "claude-code": Agent(
        "Claude Code",
        ".claude/settings.json",
        ".claude/settings.local.json",  # one person's own, beside the team's
        ("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"),
    ),
    "codex": Agent("Codex", ".codex/hooks.json", ".codex/hooks.json", ("SessionStart", "UserPromptSubmit", "Stop")),
    "cursor": Agent(
        "Cursor",
        ".cursor/hooks.json",
        ".cursor/hooks.json",
        ("sessionStart", "beforeSubmitPrompt", "afterAgentResponse", "sessionEnd"),
    ),
}


def run(
    options: StoreOptions,
    user: UserOption = None,
    org: OrgOption = DEFAULT,
    bot: BotOption = DEFAULT,
    budget: Annotated[
        int, typer.Option("--budget", "-b", min=1, metavar="TOKENS", help="The most tokens of memory for one event.")
    ] = BUDGET_TOKENS,
) -> int:
    """
    Answer an event of a coding agent, which the agent writes to standard input.

    Agents call this themselves once `holdfast hook install` has told them to. At the start of a
    session it prints what is known, before a prompt what the prompt recalls; prompts and replies are
    stored. It always ends with 0: an agent must not stop because its memory is away. What went wrong
    is on stderr.

    \b
    Examples:
      holdfast hook run --store memory.db < event.json
      holdfast hook run --store postgresql://app@db.example.org/memory --user ana < event.json
      holdfast hook run --store http://127.0.0.1:7800 --user ana < event.json
    """
    if served.is_served(options.store):
        served.answer(options.store, user=user, org=org, bot=bot, budget_tokens=budget)
        return 0
    try:
        given = getattr(sys.stdin, "buffer", sys.stdin)  # JSON is UTF-8, whatever the terminal is
        hooks = load_module("holdfast.integrations.agents.hooks", "`holdfast hook run`", "install Holdfast again")
        event = hooks.read_event(json.loads(given.read(MAX_INPUT_BYTES)))
        if event is None:
            return 0
        person = user or event.user or getpass.getuser()
        with options.create(busy_timeout_ms=WAIT_MS) as memory:
            answer = hooks.handle_event(memory, event, user=person, org=org, bot=bot, budget_tokens=budget)
    except HoldfastError as error:
        print_error(error, options.as_json)
        return 0
    except (OSError, ValueError, KeyError, RecursionError) as error:  # KeyError: the account has no name
        reason = type(error).__name__  # never what was said
        print_error(CommandError("bad-event", f"the event could not be read: {reason}"), options.as_json)
        return 0
    if answer is not None:
        print(json.dumps(answer))
    return 0


def install(
    options: JsonOptions,
    agent: Annotated[str, typer.Argument(help="claude-code, codex, or cursor.")],
    store: Annotated[
        str | None,
        typer.Option(
            "--store",
            "-s",
            metavar="PATH",
            help="The memory, or a server's address (default: .holdfast/memory.db at your home).",
        ),
    ] = None,
    user: Annotated[
        str | None,
        typer.Option(
            "--user", "-u", metavar="NAME", help="Whose memory it is (default without --project: your account's name)."
        ),
    ] = None,
    project: Annotated[
        Path | None, typer.Option("--project", metavar="FOLDER", help="For this project only, not for all of yours.")
    ] = None,
    write: Annotated[bool, typer.Option("--write", help="Write the file; without it, only show it.")] = False,
) -> int:
    """
    Show the settings that give a coding agent this memory, or write them with --write.

    Hooks of others in the file stay; a second installation replaces the first. A project's file of
    Codex or Cursor is one that a team may check in: leave --user out there.

    \b
    Examples:
      holdfast hook install claude-code
      holdfast hook install codex --write
      holdfast hook install claude-code --project . --store team.db --user ana --write
    """
    if agent not in AGENTS:
        raise usage_error(f"there are no hooks for {agent!r}", f"name one of: {', '.join(AGENTS)}")
    found = AGENTS[agent]
    path = (project or Path.home()).absolute() / (found.file if project is None else found.project_file)
    person = user or (_own_name() if project is None else None)
    settings = with_hooks(_settings_in(path), agent, command_line(store, person))
    text = json.dumps(settings, indent=2) + "\n"  # in ASCII: half a character, too, comes back as it was
    if write:
        if "://" not in (store or ""):
            _place_of(store).parent.mkdir(parents=True, exist_ok=True)
        _replace(path.resolve(), text)
    _warn(path, store, user if project is not None else None)
    if options.as_json:
        print_json({"file": str(path), "written": write, "settings": settings})
    elif write:
        whose = f"   {found.title} has a memory from its next session on" + (f": {person}'s" if person else "")
        Screen().line((f"{path}", STRONG), (whose, QUIET))
    else:
        print(text, end="")
        print(f"for {path}; --write writes it", file=sys.stderr)
    return 0


def command_line(store: str | None, user: str | None) -> str:
    """Return the command that an agent runs, wherever it runs it."""
    found = shutil.which("holdfast")
    start = [found] if found else [sys.executable, "-m", "holdfast"]
    place = store if store and "://" in store else str(_place_of(store))
    return shlex.join([*start, "hook", "run", "--store", place, *(["--user", user] if user else [])])


def with_hooks(settings: Mapping[str, Any], agent: str, line: str) -> dict[str, Any]:
    """Return the settings of an agent with our hooks in them, once, and everything else as it was."""
    hooks = settings.get("hooks", {})
    if not isinstance(hooks, dict) or not all(isinstance(entries, list) for entries in hooks.values()):
        raise CommandError(
            "bad-settings", "the hooks in the file are not as the agent knows them", hint="mend the file first"
        )
    kept = {name: [left for entry in entries for left in _others(entry)] for name, entries in hooks.items()}
    ours: dict[str, Any] = {"type": "command", "command": line, "timeout": TIMEOUT_S}
    if agent == "cursor":
        entry: dict[str, Any] = {"command": line, "timeout": TIMEOUT_S}
    else:
        entry = {"hooks": [ours]}
    events = AGENTS[agent].events
    merged = {name: entries for name, entries in kept.items() if entries or name in events}
    for name in events:
        merged[name] = [*merged.get(name, []), entry]
    head = {"version": 1} if agent == "cursor" else {}
    return {**head, **settings, "hooks": merged}


def _others(entry: Any) -> list[Any]:
    """Return an entry without our commands, in a list; an empty one when nothing else was in it."""
    if _is_ours(entry):
        return []
    commands = entry.get("hooks") if isinstance(entry, dict) else None
    if not isinstance(commands, list):
        return [entry]
    left = [one for one in commands if not _is_ours(one)]
    if len(left) == len(commands):
        return [entry]
    return [{**entry, "hooks": left}] if left else []


def _is_ours(hook: Any) -> bool:
    line = hook.get("command") if isinstance(hook, dict) else None
    return isinstance(line, str) and _OURS.search(line) is not None


def _own_name() -> str | None:
    """Return one name for the events of all agents, of which some say who is signed in, and others do not."""
    try:
        return os.environ.get("HOLDFAST_USER") or getpass.getuser()
    except (ImportError, KeyError, OSError):  # the account has no name
        return None


def _replace(path: Path, text: str) -> None:
    """Put a new file in place of one at once, with its mode; without one, only its owner may read it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}.")
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
        if path.exists():
            shutil.copymode(path, draft)
        os.replace(draft, path)
    except BaseException:
        os.unlink(draft)
        raise


def _warn(path: Path, store: str | None, user: str | None) -> None:
    """Warn that a team's file would hold one person's name, or a password."""
    secret = _PASSWORD.search(store or "") is not None
    if not (user or secret) or not _may_be_checked_in(path.resolve()):
        return
    what = "a password" if secret else "the name of one person"
    print(
        f"warning: {path} holds {what}, and git does not ignore it: keep it out of what you check in", file=sys.stderr
    )


def _may_be_checked_in(path: Path) -> bool:
    root = next((one for one in path.parents if (one / ".git").exists()), None)
    if root is None:
        return False
    git = shutil.which("git")
    return git is None or subprocess.run([git, "-C", root, "check-ignore", "-q", path], check=False).returncode != 0


def _place_of(store: str | None) -> Path:
    return Path(store).absolute() if store else Path.home() / ".holdfast" / "memory.db"


def _settings_in(path: Path) -> dict[str, Any]:
    """
    Return what the file holds; nothing when there is none.

    Raises:
        CommandError: it is not an object of JSON, so nothing may be written over it.
    """
    if not path.exists():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        found = error
    if not isinstance(found, dict):
        raise CommandError("bad-settings", f"{path} cannot be read as settings", hint="mend the file first")
    return found
