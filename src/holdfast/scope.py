"""
The scope of a call: the org, user, bot, subject and conversation whose memory it may touch.

A ``Scope`` is minted by the front door (or by authentication) and handed down.  Nothing below
reads one from a model's output, and nothing joins its parts into one string: storage keys are
tuples of columns, so ``("a", "bc")`` and ``("ab", "c")`` can never meet.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace

from .errors import BadInput
from .text import dataclass

SELF = "self"
CHARACTER = "assistant"
"""The subject of facts about the character that the assistant plays."""
MAX_NAME_CHARS = 200
LOCAL, BACKGROUND = "local", "background"
"""Who acts when it is a program that uses the library, and when nobody waits for it."""

_actor: ContextVar[str] = ContextVar("holdfast_actor", default=LOCAL)


@dataclass(frozen=True, slots=True)
class Scope:
    """
    org › bot › user › subject › conversation.

    ``org``, ``bot`` and ``user`` name one user's memory, which is one key range in every table.
    ``subject`` is whom or what a conversation is about: ``"self"`` unless the caller named a pet,
    a patient, a project.  ``None`` means all of the user's subjects; only a `User` has
    such a scope, a conversation never.  ``conversation`` is ``None`` for calls about a user.
    ``general``: of a subject, what was said in conversations about no subject in particular belongs to it, too.
    """

    org: str
    bot: str
    user: str
    subject: str | None = SELF
    conversation: str | None = None
    general: bool = False

    @property
    def user_key(self) -> tuple[str, str, str]:
        """The key of one user's memory, in the order of the columns: org, user, bot."""
        return (self.org, self.user, self.bot)

    def about(self, subject: str | None) -> Scope:
        """Return the same user's scope for *subject* alone."""
        return replace(self, subject=subject)

    def with_general(self, general: bool = True) -> Scope:
        """Return the same scope with, or without, what was said about no subject in particular."""
        return replace(self, general=general)

    def within(self, conversation: str) -> Scope:
        """Return the scope of the same user and subject in *conversation*."""
        return replace(self, conversation=conversation)


def checked_name(what: str, value: object) -> str:
    """
    Return *value* when it can name an org, bot, user, subject or conversation.

    Any text is a name, unchanged: nothing is stripped, folded or normalised, so two names that
    differ in one code point are two users.  Only subjects are compared without their case (`subject_id`).

    Raises:
        BadInput: not a string, empty, longer than 200 characters, or holding a NUL, a control
            character or a lone surrogate, which no database key can hold.
    """
    if not isinstance(value, str):
        raise BadInput(f"{what} must be a string, not {type(value).__name__}")
    if not value:
        raise BadInput(f"{what} must not be empty")
    if len(value) > MAX_NAME_CHARS:
        raise BadInput(f"{what} is {len(value)} characters long; at most {MAX_NAME_CHARS} are allowed")
    if any(unicodedata.category(ch) in ("Cc", "Cs") for ch in value):
        raise BadInput(f"{what} holds a control character or a lone surrogate; use printable text")
    return value


def subject_id(value: str) -> str:
    """Return the id of a subject that callers name: letter case does not matter, so Luna is luna."""
    return unicodedata.normalize("NFC", value).casefold()


def actor() -> str:
    """Return who acts here: the id of a key, or one of the two names above."""
    return _actor.get()


@contextmanager
def acting(name: str) -> Iterator[None]:
    """Record what is changed within as done by *name*."""
    before = _actor.set(name)
    try:
        yield
    finally:
        _actor.reset(before)


def scope_of(org: str, bot: str, user: str, subject: str | None) -> Scope:
    """
    Return the scope that callers name.

    Raises:
        BadInput: one of the names cannot be one.
    """
    return Scope(
        org=checked_name("org", org),
        bot=checked_name("bot", bot),
        user=checked_name("user", user),
        subject=None if subject is None else checked_name("subject", subject_id(checked_name("subject", subject))),
    )


def conversation_names(conversation: str | Sequence[str] | None) -> tuple[str, ...] | None:
    """Return the names of the conversations that a call is about; ``None`` for all."""
    given = (conversation,) if isinstance(conversation, str) else conversation
    return None if given is None else tuple(checked_name("conversation", name) for name in given)
