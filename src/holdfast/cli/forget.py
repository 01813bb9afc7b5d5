"""``holdfast forget`` and ``holdfast erase``: what goes for good."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ..reports import ErasureReceipt
from . import chats, which
from .confirm import agreed, typed
from .consent import Yes
from .facts import show_fact
from .frames import Quotes
from .options import (
    BOT,
    ORG,
    STORE,
    USER,
    Bot,
    Json,
    Org,
    Store,
    Subject,
    User,
    commands,
    reading,
    who_is_there,
    without_password,
)
from .plain import CommandError, one_line
from .receipts import amounts, held, in_words, print_receipt
from .screen import BAD, STRONG, Screen, print_json
from .values import plain
from .words import label, value

if TYPE_CHECKING:
    from ..memory import Memory
    from ..user import User as Owner

app = commands()

CONTENT_SHOWN = 300


@app.command()
def forget(
    fact: Annotated[str | None, typer.Argument(metavar="FACT", help=which.FACT_HELP)] = None,
    message: Annotated[
        int | None, typer.Option("--message", "-m", min=1, metavar="NUMBER", help="A message, by its number.")
    ] = None,
    conversation: Annotated[
        str | None,
        typer.Option("--conversation", "-c", metavar="NAME", help="A whole conversation; or that of the message."),
    ] = None,
    all_facts: Annotated[bool, typer.Option("--all-facts", help="Every fact, live and past.")] = False,
    yes: Yes = False,
    store: Store = STORE,
    user: User = USER,
    org: Org = ORG,
    bot: Bot = BOT,
    subject: Subject = None,
    as_json: Json = False,
) -> int:
    """
    Erase a fact with the words it rests on, a message, a conversation, or all facts.

    It cannot be taken back, so it asks first. What rested on it goes or is told anew: facts that
    others said too stay, summaries are written again. `holdfast erase` erases the whole user.

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
        raise CommandError(
            "usage",
            "forget one thing: a FACT, --message NUMBER, --conversation NAME or --all-facts",
            hint="`holdfast erase` erases everything about the user",
            exit_code=2,
        )
    who = {"user": user, "org": org, "bot": bot, "subject": subject}
    with reading(store) as memory:
        owner = memory.user(user, org=org, bot=bot, subject=subject)
        ask = not as_json and not yes
        if fact is not None:
            chosen = which.fact(owner, fact)
            if ask:
                show_fact(Screen(), chosen, [], Quotes(memory, user=user, org=org, bot=bot))
            agreed(f"Erase {label(chosen)}: {value(chosen)}, with the words it rests on?", yes=yes, as_json=as_json)
            receipt = owner.forget(chosen.id)
        elif all_facts:
            agreed(f"Erase every fact about {subject or user}, live and past?", yes=yes, as_json=as_json)
            receipt = owner.clear()
        else:
            receipt = _in_chat(memory, conversation, message, who, yes=yes, as_json=as_json)
        _end(receipt, as_json)
    return 0


def _in_chat(
    memory: Memory,
    conversation: str | None,
    message: int | None,
    who: dict[str, str | None],
    *,
    yes: bool,
    as_json: bool,
) -> ErasureReceipt:
    """Forget one message, or the whole conversation."""
    chat = chats.one(memory, conversation, **who)  # type: ignore[arg-type]
    if message is None:
        number = sum(1 for _ in chats.messages(chat))
        agreed(f"Erase the {number:,} messages of {chat.id}, and what rests only on them?", yes=yes, as_json=as_json)
        return chat.clear()
    found = chat.load(start_seq=message, limit=1)
    if not found or found[0].seq != message:
        raise CommandError(
            "no-message",
            f"{chat.id} has no message {message}",
            hint="`holdfast messages` shows them with their numbers",
        )
    said = one_line(found[0].content)
    shown = said if len(said) <= CONTENT_SHOWN else said[: CONTENT_SHOWN - 1] + "…"
    agreed(f'Erase message {message} of {chat.id}: "{shown}"?', yes=yes, as_json=as_json)
    return chat.forget(message)


@app.command()
def erase(
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for the name to be typed.")] = False,
    store: Store = STORE,
    user: User = USER,
    org: Org = ORG,
    bot: Bot = BOT,
    subject: Subject = None,
    as_json: Json = False,
) -> int:
    """
    Erase everything that is held about the user, or about one subject of theirs, everywhere.

    It shows what goes and asks for the name to be typed. The receipt says how far it is gone: E2
    when the bytes of the file were searched and hold no trace of it, E1 when the rows are gone
    and the bytes could not be vouched for. A pause or an opt-out goes on to hold.

    \b
    Examples:
      holdfast erase --user ana
      holdfast erase --user ana --subject luna
      holdfast erase --user ana --yes --json
    """
    with reading(store) as memory:
        owner = memory.user(user, org=org, bot=bot, subject=subject)
        numbers = amounts(owner, subject)
        if not any(numbers.values()) and not _listed(memory, org, user, bot):
            raise CommandError(
                "no-user", f"nothing is held about {user!r} here", hint=who_is_there(memory, org, bot, user)
            )
        name = subject or user
        if not yes and not as_json:
            screen = Screen()
            screen.line((f"everything about {name}", STRONG), f" in {without_password(store)}:")
            screen.line("  ", in_words(numbers) or "no messages and no facts any more")
            screen.line(("  it cannot be taken back", BAD), "; `holdfast export` keeps a copy")
        typed(f"Type {name} to erase it:", name, yes=yes, as_json=as_json)
        receipt = owner.erase()
        _end(receipt, as_json, owner, subject)
    return 0


def _end(receipt: ErasureReceipt, as_json: bool, user: Owner | None = None, subject: str | None = None) -> None:
    """The receipt; after an erasure of everything, also what is left, which should be nothing."""
    if as_json:
        print_json(plain(receipt))
        return
    screen = Screen()
    print_receipt(screen, receipt)
    if user is not None:
        left = held(user, subject)
        screen.line(f"held now: {left or 'nothing'}")


def _listed(memory: Memory, org: str, user: str, bot: str) -> bool:
    """Whether the store knows the user although nothing is left to show of them."""
    after = (org, user, "")
    while page := memory.admin.users(limit=100, after=after):
        if (org, user, bot) in page:
            return True
        if page[-1][:2] != (org, user):
            return False
        after = page[-1]
    return False
