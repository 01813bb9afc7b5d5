"""Commands that correct or erase: ``remember``, ``correct``, ``never-true``, ``restore``, ``edit``, ``forget``, ``erase``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ...reports import ErasurePreview, ErasureReceipt
from ...text.validate import parse_rating
from ...types import Fact, FactChange
from ..lookup import (
    FACT_HELP,
    find_conversation,
    find_fact,
    find_past_fact,
    is_listed,
    load_messages,
    suggest_users,
)
from ..options import ConversationOption, DryRun, SubjectOptions, Yes, parse_time, without_password
from ..output import BAD, GOOD, NAME, QUIET, STRONG, Screen, confirm, confirm_by_typing, print_json
from ..render import QuoteFinder, change_row, count_held, print_receipt, show_fact
from ..terminal import CommandError, count, count_all, fact_label, fact_value, one_line, to_json, usage_error

if TYPE_CHECKING:
    from ...memory import Memory
    from ...user import User

CONTENT_SHOWN = 300

FactName = Annotated[str, typer.Argument(metavar="FACT", help=FACT_HELP)]
Importance = Annotated[
    float | None,
    typer.Option(
        "--importance", min=0, max=1, metavar="SHARE", help="From 0 to 1: what comes first where room is short."
    ),
]


def remember(
    options: SubjectOptions,
    text: Annotated[str | None, typer.Argument(help="A sentence, as the user would say it.")] = None,
    category: Annotated[
        str | None, typer.Option("--category", metavar="NAME", help="Instead of a sentence: the category,")
    ] = None,
    key: Annotated[str | None, typer.Option("--key", metavar="NAME", help="its key,")] = None,
    value: Annotated[str | None, typer.Option("--value", metavar="TEXT", help="and the value.")] = None,
    alias: Annotated[
        list[str] | None,
        typer.Option("--alias", metavar="NAME", help="Another name that questions use; may be repeated."),
    ] = None,
    importance: Importance = None,
    conversation: Annotated[
        str | None, typer.Option("--conversation", "-c", metavar="NAME", help="The conversation that it is about,")
    ] = None,
    first: Annotated[
        int | None, typer.Option("--from", min=1, metavar="NUMBER", help="the first message of it that says so,")
    ] = None,
    last: Annotated[int | None, typer.Option("--to", min=1, metavar="NUMBER", help="and the last one.")] = None,
    at: Annotated[
        str | None, typer.Option("--at", metavar="TIME", help="When it was said, if that was not now.")
    ] = None,
) -> int:
    """
    Add a fact by hand, or replace the one at its address, as if it had been said now, or at --at.

    A sentence is read like a message; when no fact can be extracted, the sentence itself is kept.
    With messages of a conversation it is an episode of their day.

    \b
    Examples:
      holdfast remember "I'm allergic to peanuts."
      holdfast remember "First visit to Meko." --conversation web-42 --from 11 --to 20
      holdfast remember --category home --key lives_in --value Braga
      holdfast remember "We deploy to Kubernetes." --alias k8s --alias kube
    """
    if text is None and (category is None or key is None or value is None):
        raise usage_error(
            "remember needs a sentence, or --category, --key and --value", 'write holdfast remember "I eat fish."'
        )
    with options.create() as memory:
        owner = options.owner(memory)
        _print_change(
            owner.remember(
                text,
                category=category,
                key=key,
                value=value,
                aliases=alias or (),
                importance=importance,
                conversation=conversation,
                start_seq=first,
                end_seq=last,
                at=parse_time(at, "--at") if at else None,
            ),
            owner,
            options,
        )
    return 0


def correct(
    options: SubjectOptions,
    fact: FactName,
    to: Annotated[
        str | None, typer.Argument(metavar="VALUE", help="The right value; of an episode all its words.")
    ] = None,
    importance: Importance = None,
) -> int:
    """
    Correct a fact that was wrong from the start; history then shows the new value for all that time.

    When something has changed, say it in the chat instead, or use `holdfast remember`.

    \b
    Examples:
      holdfast correct home Porto
      holdfast correct "home lives_in" Porto
      holdfast correct fact_0123456789abcdefghjk --importance 0.9
    """
    if to is None and importance is None:
        raise usage_error("correct needs a value or --importance", "write holdfast correct home Porto")
    with options.open() as memory:
        owner = options.owner(memory)
        change = owner.correct(find_fact(owner, fact).id, value=to, importance=importance)
        _print_change(change, owner, options)
        if not options.as_json and change.previous is not None and to is not None:
            Screen().line((f"undo: holdfast restore {change.previous.id}{options.repeated}", QUIET))
    return 0


def never_true(options: SubjectOptions, fact: FactName) -> int:
    """
    Retract a fact that was never true; the value that it had replaced becomes active again.

    The same words do not teach it again. `holdfast forget` erases the words, too.

    \b
    Examples:
      holdfast never-true shellfish
      holdfast never-true "home lives_in"
    """
    with options.open() as memory:
        owner = options.owner(memory)
        change = owner.never_true(find_fact(owner, fact).id)
        _print_change(change, owner, options)
        if not options.as_json and change.fact is not None:
            Screen().line((f"undo: holdfast restore {change.fact.id}{options.repeated}", QUIET))
    return 0


def restore(
    options: SubjectOptions,
    fact: Annotated[
        str, typer.Argument(metavar="FACT", help="The id of a past fact (holdfast history --ids), or an address.")
    ],
) -> int:
    """
    Make a past fact active again, to undo `holdfast correct` or `holdfast never-true`.

    At an address, the value that ended last is restored. A fact that was forgotten cannot be restored.

    \b
    Examples:
      holdfast restore home
      holdfast restore fact_0123456789abcdefghjk
    """
    with options.open() as memory:
        owner = options.owner(memory)
        _print_change(owner.restore(find_past_fact(owner, fact)), owner, options)
    return 0


def review(
    options: SubjectOptions,
    ids: Annotated[list[str], typer.Argument(metavar="ID", help="From `holdfast facts --waiting`.")],
    dismiss: Annotated[bool, typer.Option("--dismiss", help="Do not believe it.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Let it wait again: undoes either.")] = False,
    value: Annotated[str | None, typer.Option("--value", help="Accept one with this value instead.")] = None,
) -> int:
    """
    Accept what waits for a decision, or dismiss it.

    With the setting `ask_before_learning`, what is read from a chat waits until somebody accepts it.

    \b
    Examples:
      holdfast review 0f343b0931126a20f133d67c
      holdfast review 0f343b0931126a20f133d67c --value Lisbon
      holdfast review 0f343b0931126a20f133d67c 5ce0e9a56015fec5aadfa328 --dismiss
    """
    if dismiss and (wait or value is not None):
        raise usage_error("--dismiss goes without --wait and --value", "leave one of them out")
    with options.open() as memory:
        owner = options.owner(memory)
        changes = owner.review(ids, "wait" if wait else "dismiss" if dismiss else "accept", value=value)
        if options.as_json:
            print_json(to_json(changes))
            return 0
        Screen().columns([change_row(change) for change in changes])
    return 0


def _print_change(change: FactChange, user: User, options: SubjectOptions) -> None:
    """
    Print the change, and the value that became active again.

    Raises:
        CommandError: nothing changed; the message says why.
    """
    if change.op == "rejected":
        first = {"paused": "resume", "opted-out": "opt-in"}.get(user.status().state)
        hint = f"run `holdfast {first}{options.repeated}` first" if first else "nothing was changed"
        raise CommandError("refused", change.reason, hint=hint)
    if options.as_json:
        print_json(to_json(change))
        return
    screen = Screen()
    screen.columns([change_row(change)])
    if change.op == "retracted" and change.fact is not None:
        retracted = change.fact
        for one in user.facts(retracted.category):
            if one.subject == retracted.subject and one.key == retracted.key:
                screen.line((f"{fact_label(one)}  ", NAME), (fact_value(one), STRONG), ("  active again", GOOD))


def edit(
    options: SubjectOptions,
    message: Annotated[int, typer.Argument(min=1, metavar="NUMBER", help="The number of the message.")],
    text: Annotated[str, typer.Argument(help="The new text.")],
    conversation: ConversationOption = None,
) -> int:
    """
    Replace the text of a message; what was learned from the old text is removed.

    The new text is read at once, and summaries that cover the message are written again. The old
    text is erased everywhere. `holdfast messages` shows the numbers.

    \b
    Examples:
      holdfast edit 3 "I'm allergic to peanuts, not to shellfish."
      holdfast edit 12 "My budget is $5000." -c web-42 --user ana
    """
    with options.open() as memory:
        receipt = find_conversation(memory, options, conversation).edit(message, text)
        if options.as_json:
            print_json(to_json(receipt))
            return 0
        screen = Screen()
        screen.columns([change_row(change) for change in receipt.changes])
        print_receipt(screen, receipt)
    return 0


def rate(
    options: SubjectOptions,
    score: Annotated[str, typer.Argument(metavar="SCORE", help="up, down, or a number from 0 to 1.")],
    message: Annotated[
        int | None,
        typer.Option("--message", "-m", min=1, metavar="NUMBER", help="The reply (default: the latest)."),
    ] = None,
    conversation: ConversationOption = None,
) -> int:
    """
    Store what the user thought of a reply; `holdfast metrics` shows the satisfaction.

    \b
    Examples:
      holdfast rate up
      holdfast rate down --message 4
      holdfast rate 0.8 -c web-42 --user ana
    """
    value = parse_rating(score)
    if value is None:
        raise usage_error(f"{score!r} is no rating", "write up, down, or a number from 0 to 1")
    with options.open() as memory:
        rated = find_conversation(memory, options, conversation).rate(value, seq=message)
        if options.as_json:
            print_json(to_json(rated))
            return 0
        Screen().line((f"Reply {rated.seq} is rated {value:g}", GOOD), ": ", one_line(rated.content))
    return 0


def forget(
    options: SubjectOptions,
    fact: Annotated[str | None, typer.Argument(metavar="FACT", help=FACT_HELP)] = None,
    message: Annotated[
        int | None, typer.Option("--message", "-m", min=1, metavar="NUMBER", help="A message, by its number.")
    ] = None,
    conversation: Annotated[
        str | None,
        typer.Option("--conversation", "-c", metavar="NAME", help="A whole conversation, or the one of the message."),
    ] = None,
    dry_run: DryRun = False,
    all_facts: Annotated[bool, typer.Option("--all-facts", help="Every fact, active and past.")] = False,
    yes: Yes = False,
) -> int:
    """
    Erase a fact with the words that state it, a message, a conversation, or all facts.

    This cannot be undone, so it asks first. What rested on the erased words is removed, too: facts
    that other messages also state stay, summaries are written again. `holdfast erase` erases
    everything about the user.

    \b
    Examples:
      holdfast forget shellfish
      holdfast forget "home lives_in" --yes
      holdfast forget --message 12 --conversation web-42
      holdfast forget --conversation web-42
      holdfast forget --all-facts
    """
    whole_chat = conversation is not None and message is None
    if [fact is not None, message is not None, whole_chat, all_facts].count(True) != 1:
        raise usage_error(
            "forget one thing: a FACT, --message NUMBER, --conversation NAME or --all-facts",
            "`holdfast erase` erases everything about the user",
        )
    with options.open() as memory:
        owner = options.owner(memory)
        if fact is not None:
            receipt = _forget_fact(memory, options, fact, yes=yes, dry_run=dry_run)
            if dry_run:
                return 0
        elif all_facts:
            question = f"Erase every fact about {options.subject or options.user}, active and past?"
            confirm(question, yes=yes, as_json=options.as_json)
            receipt = owner.clear()
        else:
            receipt = _forget_in_chat(memory, options, conversation, message, yes)
        _print_erasure(receipt, options)
    return 0


def _forget_fact(memory: Memory, options: SubjectOptions, name: str, *, yes: bool, dry_run: bool) -> ErasureReceipt:
    owner = options.owner(memory)
    fact = find_fact(owner, name)
    if dry_run or not (options.as_json or yes):
        receipt = owner.forget(fact.id, dry_run=True)
        if options.as_json:
            print_json(to_json(receipt))
        else:
            show_fact(Screen(), fact, [], QuoteFinder(memory, options))
            _show_preview(fact, receipt)
        if dry_run:
            return receipt
    question = f"Erase {fact_label(fact)}: {fact_value(fact)}, with the words that state it?"
    confirm(question, yes=yes, as_json=options.as_json)
    return owner.forget(fact.id)


def _show_preview(fact: Fact, receipt: ErasureReceipt) -> None:
    """Show what forgetting a fact would take along, and what would stay."""
    screen, preview = Screen(), receipt.preview or ErasurePreview()
    screen.line()
    for other in (one for one in preview.facts if one.id != fact.id):
        screen.line(("  goes, too: ", BAD), one_line(other.text))
    for other in preview.kept:
        screen.line(("  stays: ", QUIET), one_line(other.text))
    for message in preview.messages:
        words = one_line(message.content)
        shown = words if len(words) <= CONTENT_SHOWN else words[: CONTENT_SHOWN - 1] + "…"
        screen.line((f"  message {message.seq} of {message.conversation} will read: ", QUIET), f'"{shown}"')
    if preview.summaries:
        screen.line((f"  {count(len(preview.summaries), 'summary')} will be written anew", QUIET))


def _forget_in_chat(
    memory: Memory, options: SubjectOptions, conversation: str | None, message: int | None, yes: bool
) -> ErasureReceipt:
    """Forget one message, or the whole conversation."""
    chat = find_conversation(memory, options, conversation)
    if message is None:
        number = sum(1 for _ in load_messages(chat))
        messages = "the 1 message" if number == 1 else f"the {number:,} messages"
        question = f"Erase {messages} of {chat.id}, and everything derived from them alone?"
        confirm(question, yes=yes, as_json=options.as_json)
        return chat.clear()
    found = chat.load(start_seq=message, limit=1)
    if not found or found[0].seq != message:
        raise CommandError(
            "no-message",
            f"{chat.id} has no message {message}",
            hint="`holdfast messages` shows them with their numbers",
        )
    content = one_line(found[0].content)
    shown = content if len(content) <= CONTENT_SHOWN else content[: CONTENT_SHOWN - 1] + "…"
    confirm(f'Erase message {message} of {chat.id}: "{shown}"?', yes=yes, as_json=options.as_json)
    return chat.forget(message)


def erase(
    options: SubjectOptions,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask to type the name.")] = False,
) -> int:
    """
    Erase everything that is stored about the user, or about one of their subjects.

    It shows what will be erased and asks you to type the name. The receipt says how far it is gone:
    E2 when the bytes of the file were searched and hold no trace, E1 when the rows are deleted and
    the bytes could not be checked. A pause, an opt-out, and categories that are never remembered
    stay in force; topics in the user's own words are erased.

    \b
    Examples:
      holdfast erase --user ana
      holdfast erase --user ana --subject luna
      holdfast erase --user ana --yes --json
    """
    with options.open() as memory:
        owner = options.owner(memory)
        numbers = count_held(owner, options.subject)
        if not any(numbers.values()) and not is_listed(memory, options):
            raise CommandError(
                "no-user", f"nothing is stored about {options.user!r} here", hint=suggest_users(memory, options)
            )
        name = options.subject or options.user
        if not yes and not options.as_json:
            screen = Screen()
            screen.line((f"everything about {name}", STRONG), f" in {without_password(options.store)}:")
            screen.line("  ", count_all(numbers) or "no messages and no facts")
            screen.line(("  this cannot be undone", BAD), "; `holdfast export` keeps a copy")
        confirm_by_typing(f"Type {name} to erase it:", name, yes=yes, as_json=options.as_json)
        _print_erasure(owner.erase(), options)
        if not options.as_json:
            left = count_all(count_held(owner, options.subject))
            Screen().line(f"still stored: {left or 'nothing'}")
            if never := owner.status().never:
                Screen().line(f"still in force: never remember {', '.join(never)}")
    return 0


def _print_erasure(receipt: ErasureReceipt, options: SubjectOptions) -> None:
    if options.as_json:
        print_json(to_json(receipt))
    else:
        print_receipt(Screen(), receipt)
