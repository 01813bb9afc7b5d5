"""``holdfast prompts``: the instructions that a model is given for one user."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..models import ModelOptions
from ..options import UserOptions
from ..output import CHANGED, GOOD, NAME, QUIET, STRONG, Screen, print_json
from ..terminal import CommandError, count, minute, to_json, usage_error

if TYPE_CHECKING:
    from ...memory import Memory
    from ...reports import PromptPreview
    from ...types import PromptVersion
    from ...user import Prompts

# The names of `User.prompts`, and what each tells a model to do.
PROMPTS = {
    "fact_extraction": "which facts to extract, and how to phrase them",
    "chunk_summary": "how to summarize a chunk of messages",
    "meta_summary": "how to summarize several summaries",
    "episodes": "which events to note, and how to word them",
    "character": "which facts to note about the character that the assistant plays",
    "story": "how to tell one story across all conversations about a subject",
}
BUILT_IN = "the built-in prompt"

Whose = Annotated[str, typer.Option("--for", metavar="WHOM", help="user, bot (all its users) or org (all its bots).")]
Activate = Annotated[
    int | None, typer.Option("--activate", metavar="N", help="Use version N, a draft or an older one.")
]
Percent = Annotated[
    int, typer.Option("--percent", metavar="P", min=1, max=100, help="With --activate: for so many users first.")
]


def prompts(
    options: UserOptions,
    model: ModelOptions,
    name: Annotated[
        str | None,
        typer.Argument(help="fact_extraction, chunk_summary, meta_summary, episodes, character, story (default: all)."),
    ] = None,
    text: Annotated[str | None, typer.Option("--set", metavar="TEXT", help="Use this text from now on.")] = None,
    file: Annotated[
        str | None, typer.Option("--file", metavar="FILE", help="The same, from a file; - reads standard input.")
    ] = None,
    reset: Annotated[bool, typer.Option("--reset", help="Use the built-in prompt again.")] = False,
    draft: Annotated[bool, typer.Option("--draft", help="Save the text without using it yet.")] = False,
    activate: Activate = None,
    percent: Percent = 100,
    preview: Annotated[
        bool, typer.Option("--preview", help="Try the text on three stored chunks with a model; store nothing.")
    ] = False,
    versions: Annotated[bool, typer.Option("--versions", help="List what was set and reset, and when.")] = False,
    whose: Whose = "user",
) -> int:
    """
    Show or change the instructions that a model is given for the user, or for all users of a bot or an org.

    Your text replaces the instructions from the next model call on; the format of the answer
    stays. A user's own text goes before that of the bot, and that before the one of the org.

    \b
    Examples:
      holdfast prompts
      holdfast prompts chunk_summary --set "Summarize in two sentences. Mention every dose."
      holdfast prompts fact_extraction --file facts.md --user ana
      holdfast prompts chunk_summary --preview --set "Summarize in two sentences." --llm openai:gpt-5-mini
      holdfast prompts chunk_summary --activate 3
      holdfast prompts chunk_summary --for org --activate 3 --percent 10
      holdfast prompts chunk_summary --for bot --set "Summarize in two sentences." --bot tutor
    """
    _check_whose(whose, preview=preview)
    words = text if file is None else _read(file)
    actions = (text is not None) + (file is not None) + reset + versions + (activate is not None)
    chosen = _check(name, actions, words, draft=draft, preview=preview)
    with model.open(options) if preview else nullcontext() as llm:
        opened = options.open(llm) if words is None and not reset else options.create(llm)
        with opened as memory:
            own = _prompts_of(memory, options, whose)
            if chosen is None:
                _list_prompts(own, options.as_json)
            elif preview:
                _show_preview(own.preview(chosen, words), options.as_json)
            elif versions:
                _list_versions(own.versions(chosen), options.as_json)
            elif activate is not None:
                _show_version(own.activate(chosen, activate, percent=percent), options.as_json)
            elif reset:
                _show_version(own.reset(chosen), options.as_json)
            elif words is not None:
                _show_version((own.draft if draft else own.set)(chosen, words), options.as_json)
            else:
                _show_text(own, chosen, options)
    return 0


def _check_whose(whose: str, *, preview: bool) -> None:
    """
    Raises:
        CommandError: there are no such prompts, or they cannot be tried.
    """
    if whose not in ("user", "bot", "org"):
        raise usage_error(f"--for takes user, bot or org, not {whose!r}", "write holdfast prompts --for bot")
    if preview and whose != "user":
        raise usage_error("a prompt is tried on the chunks of one user", "leave out --for, and name --user")


def _prompts_of(memory: Memory, options: UserOptions, whose: str) -> Prompts:
    """Return the prompts of the user, of all users of the bot, or of the org."""
    if whose == "user":
        return options.owner(memory).prompts
    return memory.admin.prompts(org=options.org, bot=options.bot if whose == "bot" else None)


def _check(name: str | None, actions: int, words: str | None, *, draft: bool, preview: bool) -> str | None:
    """
    Return the name of the prompt in its usual spelling.

    Raises:
        CommandError: the prompt is unknown, or the options do not go together.
    """
    problem, hint = "", 'write holdfast prompts chunk_summary --set "…"'
    if name is not None and name.replace("-", "_") not in PROMPTS:
        problem, hint = f"there is no prompt {name!r}", f"use {', '.join(PROMPTS)}"
    elif actions > 1 or (actions and name is None):
        problem = "name one prompt, with --set, --file, --reset, --activate or --versions"
    elif (draft and words is None) or (preview and name is None):
        problem = "--draft and --preview need one prompt and its text"
        hint = 'write holdfast prompts chunk_summary --preview --set "…"'
    if problem:
        raise usage_error(problem, hint)
    return name.replace("-", "_") if name else None


def _read(file: str) -> str:
    try:
        raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return raw.decode("utf-8-sig")
    except OSError as error:
        raise CommandError("no-file", f"{file} cannot be read: {error.strerror}", hint="name a text file") from None
    except UnicodeDecodeError:
        raise CommandError("no-file", f"{file} is not UTF-8 text", hint="save the file as UTF-8") from None


def _list_prompts(own: Prompts, as_json: bool) -> None:
    newest = {name: next((v for v in reversed(own.versions(name)) if not v.draft), None) for name in PROMPTS}
    if as_json:
        print_json([{"name": name, "text": own.get(name), "own": bool(v and v.text)} for name, v in newest.items()])
        return
    Screen().columns(
        [
            [
                (name, NAME),
                (f"your text since {minute(version.since)}", CHANGED) if version and version.text else "built-in",
                (PROMPTS[name], QUIET),
            ]
            for name, version in newest.items()
        ]
    )


def _show_text(own: Prompts, name: str, options: UserOptions) -> None:
    if options.as_json:
        print_json({"name": name, "text": own.get(name)})
        return
    screen = Screen()
    screen.raw(own.get(name))
    screen.line()
    screen.line((f'to change it: holdfast prompts {name} --set "…"{options.repeated}', QUIET))


def _show_version(version: PromptVersion, as_json: bool) -> None:
    if as_json:
        print_json(to_json(version))
        return
    screen = Screen()
    which = "your text" if version.text else BUILT_IN
    screen.line(
        (version.name, NAME), f": {which}, ", (f"version {version.version}", GOOD), (f"   {version.digest}", QUIET)
    )
    if version.percent < 100:
        screen.line((f"used for {version.percent} of 100 users; for all: --activate {version.version}", QUIET))
    elif version.draft:
        activate = f"holdfast prompts {version.name} --activate {version.version}"
        screen.line((f"a draft, not used yet; to use it: {activate}", QUIET))


def _show_preview(found: PromptPreview, as_json: bool) -> None:
    if as_json:
        print_json(to_json(found))
        return
    screen = Screen()
    if not found.samples:
        screen.line("there is no stored chunk to try it on yet")
    for sample in found.samples:
        messages = f"{sample.conversation}, messages {sample.start_seq} to {sample.end_seq}"
        screen.line((messages if sample.end_seq else f"story of {sample.subject}", STRONG))
        screen.line(("now", QUIET), f"   {sample.source}")
        screen.paragraph(sample.old or "nothing", indent=2)
        screen.line(("then", QUIET), f"   {found.model} {found.digest}")
        screen.paragraph(sample.error or sample.new or "nothing", indent=2)
        for mark, style, texts in (("+", GOOD, sample.gained), ("-", CHANGED, sample.lost)):
            for text in texts:
                screen.line((f"  {mark} {text}", style))
    price = "price unknown" if found.cost is None else f"${found.cost:.4f}"
    screen.line((f"{count(found.calls, 'model call')}, {found.tokens:,} tokens, {price}; nothing was stored", QUIET))


def _list_versions(found: list[PromptVersion], as_json: bool) -> None:
    if as_json:
        print_json(to_json(found))
        return
    screen = Screen()
    if not found:
        screen.line(f"never changed: {BUILT_IN} is used")
    for version in found:
        size = count(len(version.text), "character") if version.text else BUILT_IN
        screen.line(
            (f"version {version.version}", STRONG),
            (f" for {version.percent} % of users" if version.percent < 100 else " draft", CHANGED)
            if version.draft
            else "",
            f"   {minute(version.since)}   {size}",
            (f"   {version.digest}", QUIET),
        )
        if version.text:
            screen.paragraph(version.text, indent=2)
