"""What is about to go, and what went."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..reports import ErasureReceipt
from .screen import CHANGED, GOOD, QUIET, STRONG, Screen
from .words import count, minute

if TYPE_CHECKING:
    from ..user import User

# What users know by name comes first; the rest of a receipt is the machinery that went with it.
_NAMED = ("conversations", "messages", "facts", "summaries")
_LEVELS = {
    "E0": ("nothing was deleted", CHANGED),
    "E1": ("the rows are gone; the bytes of the file could not be vouched for", CHANGED),
    "E2": ("gone, and no trace of it is left in the bytes of the file", GOOD),
}


def amounts(user: User, subject: str | None) -> dict[str, int]:
    """How many conversations, messages, facts and summaries are held, of everything or of *subject*."""
    data: dict[str, Any] = user.export()
    chats = [chat for chat in data["conversations"] if subject in (None, chat["subject"])]
    return {
        "conversations": len(chats),
        "messages": sum(len(chat["messages"]) for chat in chats),
        "facts": sum(subject in (None, fact["subject"]) for fact in data["facts"]),
        "summaries": sum(len(chat["summaries"]) for chat in chats),
    }


def held(user: User, subject: str | None) -> str:
    """``2 conversations, 14 messages, 3 facts``; empty when nothing is held."""
    return in_words(amounts(user, subject))


def in_words(numbers: dict[str, int]) -> str:
    """Those that are not nought, in one line."""
    singular = {"summaries": "summary"}
    return ", ".join(count(number, singular.get(name, name[:-1]), name) for name, number in numbers.items() if number)


def print_receipt(screen: Screen, receipt: ErasureReceipt) -> None:
    """What went, how far it is gone, and why not further."""
    rows = sorted(receipt.rows.items(), key=lambda row: (row[0] not in _NAMED, row[0]))
    named = {name: receipt.rows[name] for name in _NAMED if receipt.rows.get(name)}
    rest = ", ".join(f"{name} {number:,}" for name, number in rows if name not in _NAMED)
    if receipt.rows:
        screen.line("erased or told anew: ", (in_words(named) or "nothing of its own", STRONG))
    if rest:
        screen.line((f"  and with it: {rest}", QUIET))
    words, style = _LEVELS[receipt.level] if receipt.rows else ("nothing was there to erase", QUIET)
    when = f"   searched {minute(receipt.verified_at)}" if receipt.verified_at else ""
    screen.line((receipt.level, style), f"  {words}", (when, QUIET))
    if receipt.why and receipt.rows:
        screen.paragraph(receipt.why, indent=4, style=QUIET)
