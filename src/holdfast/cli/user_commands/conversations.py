"""``holdfast list``, ``messages``, ``summaries``, ``search`` and ``context``: what is stored and what a model is sent."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...errors import NotFound
from ...text.render import change_note
from ...types import Hit, Message, Summary
from ..lookup import all_users, conversation_names, find_conversation, load_messages, suggest_users
from ..options import (
    DEFAULT,
    BotOption,
    ConversationOption,
    GeneralOption,
    OrgOption,
    StoreOptions,
    StrategyOption,
    SubjectOptions,
)
from ..output import GOOD, NAME, QUIET, STRONG, Piece, Screen, print_json
from ..render import show_context, show_reasons, show_summary
from ..terminal import count, day, one_line, to_json, usage_error

if TYPE_CHECKING:
    from ...context.result import Context
    from ...conversation import Conversation
    from ...memory import Memory

FORMATS = ("text", "messages", "json", "anthropic")
TEXT_SHOWN = 300


def list_(
    options: StoreOptions,
    user: Annotated[
        str | None, typer.Option("--user", "-u", metavar="NAME", help="List the conversations of this user.")
    ] = None,
    org: OrgOption = DEFAULT,
    bot: BotOption = DEFAULT,
    matching: Annotated[
        str, typer.Option("--matching", metavar="WORDS", help="List only users whose org, name or bot holds this.")
    ] = "",
) -> int:
    """
    List the users in the store, or with --user that user's conversations.

    \b
    Examples:
      holdfast list
      holdfast list --user ana
      holdfast list --json
    """
    with options.open() as memory:
        rows = _user_rows(memory, matching) if user is None else _conversation_rows(memory, user, org, bot)
    if options.as_json:
        print_json(rows)
        return 0
    screen = Screen()
    if not rows:
        screen.line("there are no users in this store" if user is None else f"{user} has no conversations here")
    screen.columns([_columns(row) for row in rows])
    return 0


def _user_rows(memory: Memory, matching: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for org, user, bot in all_users(memory, matching):
        owner = memory.user(user, org=org, bot=bot)
        numbers = {"conversations": len(owner.conversations()), "facts": len(owner.facts())}
        found.append({"user": user, "org": org, "bot": bot, **numbers, "state": owner.status().state})
    return found


def _conversation_rows(memory: Memory, user: str, org: str, bot: str) -> list[dict[str, Any]]:
    data: dict[str, Any] = memory.user(user, org=org, bot=bot).export()
    return [
        {
            "conversation": chat["conversation"],
            "subject": chat["subject"],
            "messages": len(chat["messages"]),
            "summaries": len(chat["summaries"]),
        }
        for chat in data["conversations"]
    ]


def _columns(row: dict[str, Any]) -> list[Piece]:
    if "user" in row:
        where = "".join(f"{name} {row[name]}   " for name in ("org", "bot") if row[name] != DEFAULT)
        state = "" if row["state"] == "active" else row["state"].replace("-", " ")
        amounts = (count(row["conversations"], "conversation"), count(row["facts"], "fact"))
        return [(row["user"], STRONG), *amounts, (f"{where}{state}", QUIET)]
    about = "" if row["subject"] == "self" else f"about {row['subject']}"
    summaries = count(row["summaries"], "summary")
    return [(row["conversation"], STRONG), count(row["messages"], "message"), summaries, (about, QUIET)]


def messages(
    options: SubjectOptions,
    conversation: ConversationOption = None,
    first: Annotated[int, typer.Option("--from", min=1, metavar="NUMBER", help="Begin with this message.")] = 1,
    last: Annotated[
        int | None, typer.Option("--last", min=1, metavar="COUNT", help="Only this many of the newest messages.")
    ] = None,
) -> int:
    """
    Show the messages of a conversation, with the numbers that other commands take.

    \b
    Examples:
      holdfast messages
      holdfast messages -c web-42 --user ana --last 20
      holdfast messages --from 300 --json
    """
    with options.open() as memory:
        chat = find_conversation(memory, options, conversation)
        if last is not None:
            newest = chat.load(last=1)
            first = max(first, newest[-1].seq - last + 1 if newest else 1)
        if options.as_json:
            print_json(to_json(list(load_messages(chat, first))))
            return 0
        screen, shown = Screen(), ""
        for message in load_messages(chat, first):
            if day(message.at) != shown:
                shown = day(message.at)
                screen.line((shown, QUIET))
            _show_message(screen, message)
    return 0


def _show_message(screen: Screen, message: Message) -> None:
    screen.line((f"{message.seq:>5}", QUIET), "  ", (message.name or message.role, NAME))
    screen.paragraph(message.content or "(empty)", indent=7)
    if message.usage is not None:
        used = message.usage
        cached = f", {used.cached_tokens:,} of them cached" if used.cached_tokens else ", none cached"
        screen.line(
            (f"       {used.input_tokens:,} tokens in{cached}, {used.output_tokens:,} out, {used.model}", QUIET)
        )


def summaries(
    options: SubjectOptions,
    level: Annotated[
        int | None, typer.Option("--level", min=1, help="Only this level: 1 covers messages, 2 covers level 1, …")
    ] = None,
    conversation: Annotated[
        str | None, typer.Option("--conversation", "-c", metavar="NAME", help="Only this conversation.")
    ] = None,
) -> int:
    """
    Show the summaries of the user's conversations: the highest level first, the summaries it covers below.

    \b
    Examples:
      holdfast summaries
      holdfast summaries --conversation japan --level 2
    """
    with options.open() as memory:
        if conversation is not None:
            found = [find_conversation(memory, options, conversation)]
        else:
            found = [options.chat(memory, name) for name in conversation_names(memory, options)]
        if options.as_json:
            print_json([to_json(summary) for chat in found for summary in chat.summaries(level)])
            return 0
        screen = Screen()
        for chat in found:
            _show_tree(screen, chat, level)
    return 0


def _show_tree(screen: Screen, chat: Conversation, level: int | None) -> None:
    """Print the tree of one conversation's summaries, and which messages have no summary yet."""
    found = chat.summaries(level)
    covered = max((summary.end_seq for summary in found), default=0)
    open_messages = sum(1 for _ in load_messages(chat, covered + 1))
    screen.heading(chat.id, _coverage(found, covered))
    children: dict[str, list[Summary]] = {}
    for summary in found:
        children.setdefault(summary.parent or "", []).append(summary)
    shown = {summary.id for summary in found}

    def show_branch(summary: Summary, indent: int) -> None:
        show_summary(screen, chat, summary, indent)
        for child in children.get(summary.id, []):
            show_branch(child, indent + 2)

    for summary in found:
        if summary.parent not in shown:
            show_branch(summary, 2)
    if level is None and open_messages:
        words = (
            f"  {count(open_messages, 'message')} from {covered + 1} on: not summarized yet, sent to the model verbatim"
        )
        screen.line((words, QUIET))


def _coverage(found: list[Summary], covered: int) -> str:
    if not found:
        return "no summaries yet"
    levels = sorted({summary.level for summary in found})
    parts = [f"{sum(s.level == n for s in found)} of level {n}" for n in levels]
    return f"{', '.join(parts)}; messages 1–{covered} are covered"


def search(
    options: SubjectOptions,
    query: Annotated[str, typer.Argument(help="A question, or a few words.")],
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Show at most this many results.")] = 10,
    kind: Annotated[
        list[str] | None, typer.Option("--kind", metavar="KIND", help="fact, message or summary; may be repeated.")
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show the parts of each score.")] = False,
    min_relevance: Annotated[
        float,
        typer.Option("--min-relevance", min=0, max=1, metavar="SHARE", help="Leave out what is less relevant, 0 to 1."),
    ] = 0.0,
    conversation: Annotated[
        str | None,
        typer.Option("--conversation", "-c", metavar="NAME", help="Only messages and summaries of this conversation."),
    ] = None,
    general: GeneralOption = False,
) -> int:
    """
    Search facts, messages and summaries, best first.

    \b
    Examples:
      holdfast search "where did we eat in Kyoto?"
      holdfast search budget --kind fact --explain
      holdfast search "who is my dentist?" --min-relevance 0.7
    """
    with options.open() as memory:
        owner = options.owner(memory)
        kinds = {"kinds": tuple(kind)} if kind else {}
        hits = owner.search(
            query,
            limit=limit,
            min_relevance=min_relevance,
            conversation=conversation,
            explain=explain,
            general=general,
            **kinds,  # type: ignore[arg-type]
        )
        if options.as_json:
            print_json(to_json(hits))
            return 0
        if not hits:
            advice = "try other words" if owner.conversations() else suggest_users(memory, options)
            print(f"nothing found; {advice}", file=sys.stderr)
    screen = Screen()
    for rank, hit in enumerate(hits, 1):
        _show_hit(screen, rank, hit)
    return 0


def _show_hit(screen: Screen, rank: int, hit: Hit) -> None:
    where = {
        "fact": "",
        "message": f"message {hit.seq} of {hit.conversation}",
        "summary": f"summary up to message {hit.seq} of {hit.conversation}",
    }[hit.kind]
    style = {"fact": GOOD, "message": "", "summary": NAME}[hit.kind]
    note = " · ".join(part for part in (where, day(hit.at)) if part)
    screen.line((f"{rank:>2}  ", QUIET), (hit.kind.ljust(7), style), (f"  {hit.relevance:.2f}  {note}", QUIET))
    speaker = f"{hit.speaker}: " if hit.kind == "message" and hit.speaker else ""
    text = one_line(hit.text)
    shown = text if len(text) <= TEXT_SHOWN else text[: TEXT_SHOWN - 1] + "…"
    screen.paragraph(speaker + shown, indent=4)
    if hit.replaced_by:
        screen.paragraph(change_note(one_line(hit.replaced_by)), indent=4)
    if hit.parts:
        parts = sorted(hit.parts.items(), key=lambda item: -item[1])
        screen.paragraph(
            f"score {hit.score:.3f} = " + "  ".join(f"{name} {number:.3f}" for name, number in parts),
            indent=4,
            style=QUIET,
        )


def context(
    options: SubjectOptions,
    query: Annotated[str | None, typer.Argument(help="The user's new message, when it is not stored yet.")] = None,
    budget: Annotated[
        int | None,
        typer.Option("--budget", "-b", min=1, metavar="TOKENS", help="The most tokens to use (default 4000)."),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            "-o",
            metavar="FORMAT",
            help="Print the context itself: text, messages (OpenAI), anthropic or json.",
        ),
    ] = None,
    conversation: ConversationOption = None,
    general: GeneralOption = False,
    strategy: StrategyOption = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say of each item why it is shown, and what is left out and why.")
    ] = False,
    sent: Annotated[
        int | None, typer.Option("--sent", min=1, metavar="NUMBER", help="Show what was sent for this reply instead.")
    ] = None,
) -> int:
    """
    Show exactly what a model would be sent for the next reply, and how many tokens each part takes.

    Tokens are estimated, rather too high than too low. The stable prefix stays the same byte for
    byte until a fact or a summary changes, so providers can cache it. With --conversation and a
    name that is not used yet, this is what the first reply of a new conversation would get.

    \b
    Examples:
      holdfast context "What should I cook tonight?"
      holdfast context "What should I cook tonight?" --budget 1200
      holdfast context "What should I cook tonight?" --explain
      holdfast context "What should I cook tonight?" --strategy facts/2
      holdfast context -o messages
      holdfast context --sent 12
    """
    if form not in (None, *FORMATS):
        hint = f"use -o {', '.join(FORMATS)}"
        raise usage_error(f"there is no format {form!r}", hint)
    with options.open() as memory:
        chat = find_conversation(memory, options, conversation, new=True)
        if sent is not None:
            return _print_sent(chat, sent, as_json=options.as_json or form is not None)
        built = chat.context(query, budget_tokens=budget, general=general, strategy=strategy)
        if options.as_json or form is not None:
            _print_context(built, form or "json")
        else:
            show_context(Screen(), chat, built)
            if explain:
                show_reasons(Screen(), built)
    return 0


def _print_sent(chat: Conversation, seq: int, *, as_json: bool) -> int:
    found = chat.sent(seq)
    if found is None:
        raise NotFound(
            f"no context is on record for message {seq}",
            hint="it is kept when a reply is appended after its context was made",
        )
    if as_json:
        print_json(to_json(found))
        return 0
    screen, changed = Screen(), found.prefix_changed_because
    screen.line(f"{found.tokens:,} of {found.budget_tokens:,} tokens; prefix {changed or 'unchanged'}")
    if found.usage:
        screen.line(f"{found.usage.input_tokens:,} tokens in, {found.usage.cached_tokens:,} of them cached")
    for section in found.sections:
        screen.line(f"{section.name}: {section.tokens:,} tokens")
        for mark, items in ((" ", section.items), ("-", section.gone)):
            for item in items:
                text = f"({item.kind}, erased)" if item.text is None else item.text
                screen.line(f"  {'+' if item.new else mark} {text}")
    return 0


def _print_context(built: Context, form: str) -> None:
    if form == "text":
        Screen().raw(built.to_text())
    elif form == "messages":
        print_json(list(built.messages))
    elif form == "anthropic":
        print_json(built.to_anthropic())
    else:
        print_json(built.to_dict())
