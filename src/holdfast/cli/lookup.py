"""Find the user, the conversation or the fact that a command line names, or say which there are."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ..scope import SELF
from ..types import BY_HAND_CONVERSATION, Fact, Message
from .options import SubjectOptions, UserOptions
from .terminal import USAGE, CommandError, fact_address, fact_label, fact_value, one_line

if TYPE_CHECKING:
    from ..conversation import Conversation
    from ..memory import Memory
    from ..user import User

PAGE_USERS, PAGE_MESSAGES = 1000, 1000
FACT_HELP = "Its address (home, or 'home lives_in'), its value, or its id (holdfast facts --ids)."
FACTS_SHOWN, NAMES_SHOWN = 6, 8
_LEAST_ID_CHARS = 8


def all_users(memory: Memory, matching: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield the organization, user and bot of every user in the store, or of those whose names hold *matching*."""
    after: tuple[str, str, str] | None = None
    while page := memory.admin.users(limit=PAGE_USERS, after=after, matching=matching):
        yield from page
        after = page[-1]


def suggest_users(memory: Memory, options: UserOptions) -> str:
    """Say which users the store holds, when it holds nothing about the one that was named."""
    here = (options.org, options.bot)
    users = memory.admin.users(limit=200)
    near = [name for org, name, bot in users if (org, bot) == here and name != options.user]
    if alike := difflib.get_close_matches(options.user.casefold(), {name.casefold() for name in near}, n=1):
        meant = next(name for name in near if name.casefold() == alike[0])
        return f"did you mean --user {shlex.quote(meant)}?"
    if near:
        return f"this store holds {_list(near, FACTS_SHOWN)}: add --user NAME"
    others = [f"--org {org} --bot {bot} --user {name}" for org, name, bot in users if (org, name, bot) != _key(options)]
    if others:
        return f"this store holds others: {_list(others, FACTS_SHOWN)}"
    return 'say something first: holdfast say "I live in Lisbon."'


def is_listed(memory: Memory, options: UserOptions) -> bool:
    """Return whether the store knows the user, even when nothing is left to show of them."""
    after = (options.org, options.user, "")
    while page := memory.admin.users(limit=100, after=after):
        if _key(options) in page:
            return True
        if page[-1][:2] != (options.org, options.user):
            return False
        after = page[-1]
    return False


def conversation_names(memory: Memory, options: SubjectOptions) -> list[str]:
    """
    List the user's conversations about the subject, or about the user.

    Raises:
        CommandError: there are none; the hint says where there are some.
    """
    owner = memory.user(options.user, org=options.org, bot=options.bot, subject=options.subject or SELF)
    if names := owner.conversations():
        return names
    elsewhere = memory.user(options.user, org=options.org, bot=options.bot).conversations()
    if elsewhere:
        hint = f"{', '.join(elsewhere[:FACTS_SHOWN])}: these are about another subject; name it with --subject"
    else:
        hint = suggest_users(memory, options)
    about = f" about {options.subject}" if options.subject else ""
    raise CommandError("no-conversation", f"{options.user!r} has no conversation{about} here", hint=hint)


def find_conversation(memory: Memory, options: SubjectOptions, name: str | None, *, new: bool = False) -> Conversation:
    """
    Return the conversation of that name, or the only one there is; with *new*, also one that has not begun.

    Raises:
        CommandError: there is no such conversation, or there are several to choose from.
    """
    known = conversation_names(memory, options)
    chats = [one for one in known if one != BY_HAND_CONVERSATION] or known
    if name is None and len(chats) > 1:
        raise CommandError(
            "which-conversation",
            f"{options.user!r} has several conversations: {_list(chats, NAMES_SHOWN)}",
            hint="name one with --conversation NAME",
            exit_code=USAGE,
        )
    chosen = chats[0] if name is None else name
    if chosen not in known and not new:
        raise CommandError(
            "no-conversation",
            f"{options.user!r} has no conversation {chosen!r} here",
            hint=f"there is {', '.join(known[:NAMES_SHOWN])}",
        )
    return options.chat(memory, chosen)


def load_messages(chat: Conversation, start_seq: int = 1) -> Iterator[Message]:
    """Yield all messages from *start_seq* on, read in pages."""
    while page := chat.load(start_seq=start_seq, limit=PAGE_MESSAGES):
        yield from page
        start_seq = page[-1].seq + 1


def find_fact(user: User, name: str) -> Fact:
    """
    Return the one active fact that *name* means.

    Raises:
        CommandError: it means none, or several.
    """
    facts = user.facts()
    found = match_facts(facts, name)
    if len(found) == 1:
        return found[0]
    if not found:
        names = [text for one in facts for text in (one.category, fact_value(one)) if text]
        near = difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean {near[0]!r}?" if near else "`holdfast facts --ids` lists them"
        raise CommandError("no-fact", f"there is no active fact {name!r}", hint=hint)
    listed = "; ".join(f"{one.id} ({fact_label(one)}: {fact_value(one)})" for one in found[:FACTS_SHOWN])
    more = f"; and {len(found) - FACTS_SHOWN} more" if len(found) > FACTS_SHOWN else ""
    raise CommandError(
        "which-fact", f"{name!r} means {len(found)} facts", hint=f"name one by its id: {listed}{more}", exit_code=USAGE
    )


def find_past_fact(user: User, name: str) -> str:
    """
    Return the id of the past fact that *name* means; of an address, the fact that ended last.

    Raises:
        CommandError: there is none.
    """
    if name.startswith("fact_"):
        return name
    category, _, key = name.replace("/", " ").partition(" ")
    ended = [old for old in user.history(category, key.strip() or None) if not old.live]
    if not ended:
        raise CommandError(
            "no-fact",
            f"there is no past fact at the address {name!r}",
            hint="`holdfast history CATEGORY` shows earlier values; --ids shows their ids",
        )
    return max(ended, key=lambda old: (old.valid_to or old.valid_from, old.recorded_at)).id


def match_facts(facts: list[Fact], name: str) -> list[Fact]:
    """Return the facts that *name* means, by the strictest rule that matches any."""
    words = " ".join(name.replace("/", " ").casefold().split())
    rules: tuple[Callable[[Fact], bool], ...] = (
        lambda one: one.id == name,
        lambda one: words in (f"{one.category} {one.key}", fact_address(one).casefold()),
        lambda one: words == one.category,
        lambda one: one_line(name).casefold() in (fact_value(one).casefold(), one_line(one.text).casefold()),
        lambda one: words == one.key.replace("_", " ") or words == one.key,
        lambda one: len(name) >= _LEAST_ID_CHARS and one.id.startswith(name),
    )
    return next((found for rule in rules if (found := [one for one in facts if rule(one)])), [])


def _key(options: UserOptions) -> tuple[str, str, str]:
    return (options.org, options.user, options.bot)


def _list(names: list[str], most: int) -> str:
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown
