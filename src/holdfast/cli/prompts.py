"""``holdfast prompts``."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import models
from .models import BaseUrl, Llm
from .options import BOT, ORG, STORE, USER, Bot, Json, Org, Store, User, commands, reading, same_options, writing
from .plain import CommandError
from .screen import CHANGED, GOOD, NAME, QUIET, STRONG, Screen, print_json
from .values import plain
from .words import count, minute

if TYPE_CHECKING:
    from ..prompts import Prompts
    from ..reports import PromptPreview
    from ..types import PromptVersion

app = commands()

# What each of them tells a model to do; the names are those of `User.prompts`.
ABOUT = {
    "fact_extraction": "which facts to read, and how to put them",
    "chunk_summary": "how to sum up about ten messages",
    "meta_summary": "how to sum up several summaries",
}


@app.command()
def prompts(
    name: Annotated[
        str | None, typer.Argument(help="fact_extraction, chunk_summary or meta_summary; all when not given.")
    ] = None,
    text: Annotated[str | None, typer.Option("--set", metavar="TEXT", help="Use these words from now on.")] = None,
    file: Annotated[
        str | None, typer.Option("--file", metavar="FILE", help="The same, from a file; - for standard input.")
    ] = None,
    reset: Annotated[bool, typer.Option("--reset", help="Use the words that come with Holdfast again.")] = False,
    draft: Annotated[bool, typer.Option("--draft", help="Save the words, and do not use them yet.")] = False,
    activate: Annotated[
        int | None, typer.Option("--activate", metavar="N", help="Use the words of version N, a draft or an older one.")
    ] = None,
    preview: Annotated[
        bool, typer.Option("--preview", help="Try the words on three saved chunks; nothing is kept. Asks a model.")
    ] = False,
    llm: Llm = None,
    base_url: BaseUrl = None,
    versions: Annotated[bool, typer.Option("--versions", help="What was set and reset, and when.")] = False,
    store: Store = STORE,
    user: User = USER,
    org: Org = ORG,
    bot: Bot = BOT,
    as_json: Json = False,
) -> int:
    """
    Show what a model is told to do for the user, or say it in words of one's own.

    Own words take the place of ours for what to do; the shape of the answer stays, so nothing
    breaks. They count from the next call of a model on. What was made before stays as it is.

    \b
    Examples:
      holdfast prompts
      holdfast prompts chunk_summary --set "Sum up in two sentences. Mention every dose."
      holdfast prompts fact_extraction --file facts.md --user ana
      holdfast prompts chunk_summary --preview --set "Sum up in two sentences." --llm openai:gpt-5-mini
      holdfast prompts chunk_summary --activate 3
    """
    words = text if file is None else _read(file)
    chosen = _checked(name, [text is not None, file is not None, reset, versions, activate is not None].count(True))
    _check_words(chosen, words, draft=draft, preview=preview)
    opened = reading if words is None and not reset else writing
    with models.model(llm, base_url) if preview else nullcontext() as model, opened(store, model) as memory:
        own = memory.user(user, org=org, bot=bot).prompts
        if chosen is None:
            _list(own, as_json)
        elif preview:
            _preview(own.preview(chosen, words), as_json)
        elif versions:
            _versions(own.versions(chosen), as_json)
        elif activate is not None:
            _made(own.activate(chosen, activate), as_json)
        elif reset:
            _made(own.reset(chosen), as_json)
        elif words is not None:
            _made((own.draft if draft else own.set)(chosen, words), as_json)
        else:
            _show(own, chosen, as_json, same_options(store, user, org=org, bot=bot))
    return 0


def _made(version: PromptVersion, as_json: bool) -> None:
    if as_json:
        print_json(plain(version))
        return
    whose = "words of one's own" if version.text else "the words that come with Holdfast"
    screen = Screen()
    screen.line(
        (version.name, NAME), f": {whose}, ", (f"version {version.version}", GOOD), (f"   {version.digest}", QUIET)
    )
    if version.draft:
        screen.line((f"a draft: holdfast prompts {version.name} --activate {version.version} uses it", QUIET))


def _check_words(name: str | None, words: str | None, *, draft: bool, preview: bool) -> None:
    if (draft and words is None) or (preview and name is None):
        raise CommandError(
            "usage",
            "--draft and --preview are about the words of one prompt",
            hint='write holdfast prompts chunk_summary --preview --set "…"',
            exit_code=2,
        )


def _preview(found: PromptPreview, as_json: bool) -> None:
    if as_json:
        print_json(plain(found))
        return
    screen = Screen()
    if not found.samples:
        screen.line("nothing is saved yet that it could be tried on")
    for sample in found.samples:
        screen.line((f"{sample.conversation}, messages {sample.start_seq} to {sample.end_seq}", STRONG))
        screen.line(("now", QUIET), f"   {sample.source}")
        screen.paragraph(sample.old or "nothing", indent=2)
        screen.line(("then", QUIET), f"   {found.model} {found.digest}")
        screen.paragraph(sample.error or sample.new or "nothing", indent=2)
        for mark, style, texts in (("+", GOOD, sample.gained), ("-", CHANGED, sample.lost)):
            for text in texts:
                screen.line((f"  {mark} {text}", style))
    cost = "at a price that is not known" if found.cost is None else f"${found.cost:.4f}"
    screen.line((f"{count(found.calls, 'call')}, {found.tokens:,} tokens, {cost}; nothing was kept", QUIET))


def _checked(name: str | None, asked: int) -> str | None:
    if name is not None and name.replace("-", "_") not in ABOUT:
        raise CommandError("usage", f"there is no prompt {name!r}", hint=f"use {', '.join(ABOUT)}", exit_code=2)
    if asked > 1 or (asked and name is None):
        raise CommandError(
            "usage",
            "name one prompt, with --set, --file, --reset, --activate or --versions",
            hint='write holdfast prompts chunk_summary --set "…"',
            exit_code=2,
        )
    return name.replace("-", "_") if name else None


def _read(file: str) -> str:
    try:
        raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return raw.decode("utf-8-sig")
    except OSError as error:
        raise CommandError("no-file", f"{file} cannot be read: {error.strerror}", hint="name a text file") from None
    except UnicodeDecodeError:
        raise CommandError("no-file", f"{file} is not UTF-8 text", hint="save the file as UTF-8") from None


def _list(own: Prompts, as_json: bool) -> None:
    newest = {name: next((v for v in reversed(own.versions(name)) if not v.draft), None) for name in ABOUT}
    if as_json:
        print_json([{"name": name, "text": own.get(name), "own": bool(v and v.text)} for name, v in newest.items()])
        return
    screen = Screen()
    screen.columns(
        [
            [
                (name, NAME),
                (f"own words since {minute(version.since)}", CHANGED) if version and version.text else "ours",
                (ABOUT[name], QUIET),
            ]
            for name, version in newest.items()
        ]
    )


def _show(own: Prompts, name: str, as_json: bool, options: str) -> None:
    if as_json:
        print_json({"name": name, "text": own.get(name)})
        return
    screen = Screen()
    screen.raw(own.get(name))
    screen.line()
    screen.line((f'in words of your own: holdfast prompts {name} --set "…"{options}', QUIET))


def _versions(found: list[PromptVersion], as_json: bool) -> None:
    if as_json:
        print_json(plain(found))
        return
    screen = Screen()
    if not found:
        screen.line("never set: the words that come with Holdfast are used")
    for version in found:
        size = count(len(version.text), "character") if version.text else "the words that come with Holdfast"
        screen.line(
            (f"version {version.version}", STRONG),
            (" draft", CHANGED) if version.draft else "",
            f"   {minute(version.since)}   {size}",
            (f"   {version.digest}", QUIET),
        )
        if version.text:
            screen.paragraph(version.text, indent=2)
