"""
What a model is shown: messages, known facts and summaries as lines that cannot break out of their section.

Sections stand in the order of how rarely they change, so that a provider can reuse the beginning of one
prompt for the next.  Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from ..scope import SELF
from ..text.render import block
from ..text.terms import terms
from ..types import Fact, Message, Summary

MOST_KNOWN = 40
MOST_KEYS = 10  # of a category; one with more is described instead
MOST_BEFORE = 4
BEFORE_CHARS = 240


def message_lines(messages: Sequence[Message], most_chars: int, *, others: int | None = None) -> list[str]:
    """
    ``12 user (2026-03-14): text`` for each message, the day only where it changes.

    Cut after *most_chars*; what somebody else than a user says after *others*, where that is given.
    """
    lines = []
    day = ""
    for message in messages:
        today = message.at.date().isoformat() if message.at else ""
        stamp = f" ({today})" if today and today != day else ""
        day = today or day
        name = f" {message.name}" if message.name else ""
        most = most_chars if others is None or message.role == "user" else others
        lines.append(f"{message.seq} {message.role}{name}{stamp}: {cut(message.content, most)}")
    return lines


def cut(text: str, most_chars: int) -> str:
    """*text*, or its beginning with how much was left out."""
    if len(text) <= most_chars:
        return text
    return f"{text[:most_chars].rstrip()} […{len(text) - most_chars} more characters]"


def known_lines(facts: Sequence[Fact], words: Iterable[str], most: int = MOST_KNOWN) -> list[str]:
    """
    The live addresses with their values, ``home/lives_in = Lisbon``, and the statements; sorted by address.

    All of them when they are few; else those that share most words with *words*, and then the newest.
    """
    live = [fact for fact in facts if fact.live and fact.kind != "episode"]
    if len(live) > most:
        said = Counter(term for text in words for term in terms(text))
        live.sort(key=lambda fact: fact.recorded_at, reverse=True)
        live.sort(key=lambda fact: -sum(min(said[term], 2) for term in set(terms(_words(fact)))))
        live = live[:most]
    return [_known(fact) for fact in sorted(live, key=_address)]


def _address(fact: Fact) -> tuple[str, str, str, str, str]:
    return (fact.subject, fact.category, fact.key, fact.value, fact.id)


def _words(fact: Fact) -> str:
    quotes = " ".join(evidence.quote for evidence in fact.evidence[-2:])
    return f"{fact.subject} {fact.category} {fact.key.replace('_', ' ')} {fact.value} {fact.text} {quotes}"


def _known(fact: Fact) -> str:
    about = "" if fact.subject == SELF else f"{fact.subject}: "
    if fact.kind == "statement":
        return f"{about}{fact.category}: {fact.text}"
    return f"{about}{fact.category}/{fact.key} = {fact.value}"


def summary_lines(summaries: Sequence[Summary]) -> list[str]:
    """One line a summary with its range, what it says, and its themes, concerns and actions."""
    lines = []
    for summary in summaries:
        text = " ".join(summary.text.split())
        for name, items in (("Themes", summary.themes), ("Concerns", summary.concerns), ("Actions", summary.actions)):
            text += f" {name}: {'; '.join(items)}." if items else ""
        lines.append(f"messages {summary.start_seq}-{summary.end_seq}: {text}")
    return lines


def text_of(sections: Iterable[tuple[str, Sequence[str]]]) -> str:
    """The sections that hold anything, in their order, as one prompt."""
    return "\n".join(block(name, items) for name, items in sections if items)
