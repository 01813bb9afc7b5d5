"""Which conversation a command is about, and its messages page by page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..scope import SELF
from ..types import BY_HAND_CONVERSATION, Message
from .options import who_is_there
from .plain import CommandError

if TYPE_CHECKING:
    from ..conversation import Conversation
    from ..memory import Memory

PAGE_MESSAGES = 1000


def names(memory: Memory, *, user: str, org: str, bot: str, subject: str | None) -> list[str]:
    """
    The user's conversations about *subject*, or about the user.

    Raises:
        CommandError: there are none; the hint says where there are some.
    """
    found = memory.user(user, org=org, bot=bot, subject=subject or SELF).conversations()
    if found:
        return found
    elsewhere = memory.user(user, org=org, bot=bot).conversations()
    if elsewhere:
        hint = f"{', '.join(elsewhere[:6])}: these are about something else; name it with --subject"
    else:
        hint = who_is_there(memory, org, bot, user)
    about = f" about {subject}" if subject else ""
    raise CommandError("no-conversation", f"{user!r} has no conversation{about} here", hint=hint)


def one(
    memory: Memory, conversation: str | None, *, user: str, org: str, bot: str, subject: str | None
) -> Conversation:
    """
    The conversation of that name, or the only one there is.

    Raises:
        CommandError: there is no such conversation, or several to choose from.
    """
    known = names(memory, user=user, org=org, bot=bot, subject=subject)
    talks = [name for name in known if name != BY_HAND_CONVERSATION] or known
    if conversation is None and len(talks) > 1:
        shown = ", ".join(talks[:8]) + (f" and {len(talks) - 8} more" if len(talks) > 8 else "")
        raise CommandError(
            "which-conversation",
            f"{user!r} has several conversations: {shown}",
            hint="name one with --conversation NAME",
            exit_code=2,
        )
    name = talks[0] if conversation is None else conversation
    if name not in known:
        raise CommandError(
            "no-conversation", f"{user!r} has no conversation {name!r} here", hint=f"there is {', '.join(known[:8])}"
        )
    return memory.conversation(name, user=user, org=org, bot=bot, subject=subject)


def messages(chat: Conversation, start_seq: int = 1) -> Iterator[Message]:
    """All messages from *start_seq* on, read in pages."""
    while page := chat.load(start_seq=start_seq, limit=PAGE_MESSAGES):
        yield from page
        start_seq = page[-1].seq + 1
