"""``holdfast subjects``: whom and what a user speaks of, their names, and two that are one."""

from __future__ import annotations

from typing import Annotated

import typer

from ...types import Subject
from ..options import DryRun, SubjectOptions, Yes
from ..output import GOOD, NAME, QUIET, STRONG, Screen, confirm, print_json
from ..terminal import count, fact_value, to_json, usage_error


def subjects(
    options: SubjectOptions,
    which: Annotated[str | None, typer.Argument(metavar="ID", help="One of them, to name or merge it.")] = None,
    name: Annotated[str | None, typer.Option("--name", metavar="NAME", help="The name to show.")] = None,
    alias: Annotated[
        list[str] | None, typer.Option("--alias", metavar="NAME", help="Another name; repeatable.")
    ] = None,
    without: Annotated[list[str] | None, typer.Option("--without", metavar="NAME", help="Remove an alias.")] = None,
    into: Annotated[str | None, typer.Option("--into", metavar="ID", help="Merge it into this one.")] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> int:
    """
    List the subjects that a user speaks of; with an ID, name it, or merge it into another one.

    What the user says of a subject by any of its names, in any conversation, is about it. Remove one with all that
    is held about it with `holdfast erase --subject ID`.

    \b
    Examples:
      holdfast subjects
      holdfast subjects pet-42 --name Luna --alias "my dog"
      holdfast subjects rex-2 --into rex --dry-run
    """
    with options.open() as memory:
        owner = options.owner(memory)
        if which is None:
            if name or alias or without or into:
                raise usage_error("name the subject", "write holdfast subjects pet-42 --name Luna")
            found = owner.subjects()
            if options.as_json:
                print_json(to_json(found))
            else:
                _show(found)
            return 0
        if into is None:
            changed = owner.subject(which, name=name, aliases=alias or (), without=without or ())
            if options.as_json:
                print_json(to_json(changed))
            else:
                _show([changed])
            return 0
        plan = owner.merge_subjects(which, into, dry_run=True)
        screen = Screen()
        if not options.as_json:
            names = ", ".join(plan.conversations.values()) or "no conversation"
            screen.line(f"{which} becomes part of {into}: {count(len(plan.facts), 'fact')}; {names}")
            for fact in plan.replaced:
                screen.line("  becomes history: ", (fact_value(fact), STRONG))
        if not dry_run:
            question = f"Merge {which} into {into}? This cannot be undone."
            confirm(question, yes=yes, as_json=options.as_json)
            plan = owner.merge_subjects(which, into)
        if options.as_json:
            print_json(to_json(plan))
        elif not dry_run:
            screen.line((f"{plan.subject.name}: {count(plan.subject.facts, 'fact')} now", GOOD))
    return 0


def story(options: SubjectOptions) -> int:
    """
    Print what all conversations about the user, or about a subject, came to, line by line with its days.

    It is made in the background once three conversations have summaries. New conversations begin with it.

    \b
    Examples:
      holdfast story
      holdfast story --subject luna
      holdfast story --subject luna --json
    """
    with options.open() as memory:
        told = options.owner(memory).story()
        if options.as_json:
            print_json(to_json(told))
            return 0
        screen = Screen()
        if not told.lines:
            screen.line("There is no story yet: it needs three conversations with summaries.")
        for line in told.lines:
            screen.line(line.dated)
            for one in line.sources:
                screen.line((f"  from {one.conversation}, messages {one.start_seq}-{one.end_seq}", QUIET))
    return 0


def _show(found: list[Subject]) -> None:
    screen = Screen()
    if not found:
        screen.line("no subjects yet: conversations name one with --subject, or the user introduces one")
    screen.columns(
        [
            [
                (one.id, NAME),
                (one.name, STRONG),
                (", ".join(one.aliases), QUIET),
                f"{count(one.facts, 'fact')}, {count(one.conversations, 'conversation')}",
            ]
            for one in found
        ]
    )
