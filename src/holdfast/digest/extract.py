"""
A model's answer about a window of messages → candidates, each with the words that it rests on.

The protocol is CSV: one row a fact, ``category,fact_key,fact_value,confidence`` and then whom it is about,
what it does (``set``, ``add``, ``remove``), how it is meant, how long it holds, in which message it stands and
the words themselves.  A row without a key is a statement: one self-contained sentence.  What can be
read is read; the rest is returned with the reason.  Pure: the believing is done by `ground` and the
registry, which look at every candidate, whoever made it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from ..clock import to_ms
from ..llm.protocol import Answer, BadAnswer
from ..scope import SELF
from ..text.dates import find_times
from ..text.terms import likely_languages
from ..types import Candidate, Lifetime, Message, Modality
from .answers import refused, said, says_nothing, unfenced
from .people import subject_name
from .quotes import locate
from .secondlook import misread
from .table import confidence_of, read_rows

MAX_VALUE_CHARS, MAX_SENTENCE_CHARS, MAX_NAME_CHARS = 300, 400, 60
STATEMENT_CATEGORIES = ("preference", "context", "identity", "history", "technical", "behavioral")

NO_MESSAGE = "no-message: the row names no message that was read"
NOT_QUOTED = "quote-not-found: the quoted words do not stand in that message"
TOO_LONG = "too-long: a value has at most {most} characters"
TRANSLATED = "other-language: the value is in another writing than the words that it rests on"
NO_NAME = "no-address: an attribute needs a category and a key of plain words"

_LATIN = 0x24F  # the last of the letters that are written like Latin ones
_SELF = frozenset("self user the_user i me my myself speaker the_speaker human".split())
_WORD = re.compile(r"[^\W_]+(?:[_-][^\W_]+)*")
_LIFETIMES = get_args(Lifetime)
_MODALITIES = get_args(Modality)
_REMOVES = frozenset("remove retract delete end ended stop stopped forget negate unset false".split())
_ADDS = frozenset("add append join multi also insert new".split())


@dataclass(frozen=True, slots=True)
class Window:
    """
    What the model was shown: ``messages`` to read, by number, and those ``before`` them, which it was not to read.

    ``subject`` is whom the conversation is about; ``others`` maps names that are known to their subjects;
    ``believed`` is what it was told of what is known, word for word.
    """

    messages: Mapping[int, Message]
    before: Sequence[Message] = ()
    subject: str = SELF
    others: Mapping[str, str] = field(default_factory=dict)
    believed: Sequence[str] = ()
    language: str | None = None

    def previous(self, seq: int) -> Message | None:
        """The message directly before message *seq*, read or not."""
        earlier = [m for m in (*self.before, *self.messages.values()) if m.seq < seq]
        return max(earlier, key=lambda message: message.seq, default=None)


@dataclass(frozen=True, slots=True)
class Extraction:
    """What was read of an answer: candidates in order, those dropped with the reason, and lines that were no row."""

    candidates: list[Candidate] = field(default_factory=list)
    dropped: list[tuple[Candidate, str]] = field(default_factory=list)
    problems: tuple[str, ...] = ()


def read_answer(answer: Answer, window: Window, *, source: str) -> Extraction:
    """
    Every candidate of one answer.

    Raises:
        BadAnswer: a refusal, an empty answer, or one of which nothing can be read; "nothing to record",
            in whatever form, is no such thing.
    """
    whole = said(answer)
    return read_text(whole.text, window, source=source, cut=whole.cut)


def read_text(text: str, window: Window, *, source: str, cut: bool = False) -> Extraction:
    """As `read_answer`, of text that was taken out of an answer."""
    inner = unfenced(text)
    if says_nothing(inner):
        return Extraction()
    rows = read_rows(inner, cut=cut)
    if not rows.rows and inner != text:
        rows = read_rows(text, cut=cut)
    if not rows.rows:
        if rows.empty or _ends_with_nothing(inner):
            return Extraction()
        raise BadAnswer(_why_bad(text, cut), finish="length" if cut else "stop")
    found: list[Candidate] = []
    dropped: list[tuple[Candidate, str]] = []
    for row in rows.rows:
        candidate, reason = _candidate(row, window, source)
        if reason:
            dropped.append((candidate, reason))
        else:
            found.append(candidate)
    return Extraction(found, dropped, tuple(rows.problems))


def _why_bad(text: str, cut: bool) -> str:
    if refused(text):
        return "the model refused to answer"
    return "the answer was cut off before its first row" if cut else "the answer holds no row that can be read"


def _ends_with_nothing(text: str) -> bool:
    """Prose that closes with NONE on a line of its own."""
    lines = [line for line in text.splitlines() if line.strip()]
    return bool(lines) and len(lines) < 12 and (says_nothing(lines[-1]) or says_nothing(lines[0]))


def _candidate(row: Mapping[str, str], window: Window, source: str) -> tuple[Candidate, str]:
    """One row as a candidate, and why it cannot be one; empty when it can."""
    value, key = row.get("fact_value", "").strip(), _name(row.get("fact_key", ""))
    key = "" if key in ("statement", "none", "n_a", "null") else key
    kind: Literal["attribute", "statement"] = "attribute" if key else "statement"
    category = _name(row.get("category", ""))
    op, join = _op(row.get("op", ""))
    message, quote, start, reason = _evidence(row, value, window)
    subject = _subject(row.get("subject", ""), window)
    text = value if kind == "statement" else sentence(category, key, value)
    modality = _choice(row.get("modality", ""), _MODALITIES, "asserted")
    lifetime = _choice(row.get("lifetime", ""), _LIFETIMES, "state")
    since, until = _when(quote, message, lifetime, category) if message and op == "assert" else (None, None)
    candidate = Candidate(
        kind=kind,
        subject=subject,
        category=category if kind == "attribute" else _statement_category(category),
        key=key,
        value=value if kind == "attribute" else "",
        text=text,
        confidence=confidence_of(row.get("confidence", "")),
        seq=message.seq if message else max(window.messages, default=0),
        quote=quote,
        start=start,
        op=op,
        join=join,
        modality=modality,  # type: ignore[arg-type]
        lifetime=lifetime,  # type: ignore[arg-type]
        valid_from_ms=since,
        valid_to_ms=until,
        source=source,
    )
    return candidate, reason or _unfit(candidate, message, window)


def _unfit(candidate: Candidate, message: Message | None, window: Window) -> str:
    attribute = candidate.kind == "attribute"
    most = MAX_VALUE_CHARS if attribute else MAX_SENTENCE_CHARS
    if len(candidate.value or candidate.text) > most:
        return TOO_LONG.format(most=most)
    names = (candidate.category, candidate.key) if attribute else (candidate.category,)
    if any(not name or len(name) > MAX_NAME_CHARS or not _WORD.fullmatch(name) for name in names):
        return NO_NAME
    if message is None or message.role != "user":
        return ""  # grounding says so, with the role
    if _translated(candidate.value or candidate.text, message.content):
        return TRANSLATED
    shown = [*window.before, *window.messages.values()]
    return misread(candidate, message, window.previous(message.seq), shown, window.believed, window.language)


def _translated(value: str, content: str) -> bool:
    """Whether a value is written in letters that the message is not: 부산 as Busan, Lisbon as 里斯本."""
    if value.lower() in ("true", "false") or value.casefold() in content.casefold():
        return False
    wide, said = (
        [ord(ch) > _LATIN for ch in value if ch.isalpha()],
        [ord(ch) > _LATIN for ch in content if ch.isalpha()],
    )
    return bool(wide and said) and ((all(wide) and not any(said)) or (all(said) and not any(wide)))


def _evidence(row: Mapping[str, str], value: str, window: Window) -> tuple[Message | None, str, int, str]:
    """``(message, exact quote, start, reason)``: in the message that is named, else in the one that holds the words."""
    quote = row.get("quote", "").strip()
    number = re.search(r"\d+", row.get("message", ""))
    named = window.messages.get(int(number[0])) if number and len(number[0]) < 10 else None
    users = [m for m in reversed(list(window.messages.values())) if m.role == "user"]
    places = [named] if named else [] if number else users
    for message in places:
        for words in (quote, value) if not quote else (quote,):
            span = locate(words, message.content) if words else None
            if span:
                return message, message.content[span[0] : span[1]], span[0], ""
    if named is not None and named.role != "user":
        return named, quote, 0, ""
    return (named, quote, -1, NOT_QUOTED if quote else "") if named else (None, quote, -1, NO_MESSAGE)


def _subject(cell: str, window: Window) -> str:
    name = cell.strip().strip("\"'")
    plain = name.casefold().replace(" ", "_")
    if not plain or plain in _SELF:
        return SELF
    for known, subject in window.others.items():
        if name.casefold() in (known.casefold(), subject.casefold()):
            return subject
    if window.subject != SELF and subject_name(window.subject) == subject_name(name):
        return window.subject
    return subject_name(name) or SELF


def _op(cell: str) -> tuple[Literal["assert", "retract"], Literal["replace", "add", ""]]:
    word = cell.strip().lower()
    if word in _REMOVES:
        return "retract", ""
    return "assert", "add" if word in _ADDS else "replace" if word in ("set", "replace", "update", "change") else ""


def _choice(cell: str, known: Sequence[str], default: str) -> str:
    word = cell.strip().lower()
    return word if word in known else default


def _name(cell: str) -> str:
    """A category or key in the form of addresses: lower case, words joined by an underscore."""
    return re.sub(r"[\s/.]+", "_", cell.strip().strip("\"'").lower()).strip("_")


def _statement_category(name: str) -> str:
    known = {"behavioural": "behavioral", "behavior": "behavioral", "preferences": "preference", "tech": "technical"}
    return known.get(name, name)


def sentence(category: str, key: str, value: str) -> str:
    """An attribute as words for people and for search: ``Lives in Lisbon.``, ``Vegetarian.``, ``Smokes: no.``"""
    words = key.replace("_", " ")
    lowered = value.strip().lower()
    if lowered == "true":
        text = words
    elif lowered == "false":
        text = f"{words}: no"
    elif category in ("favourite", "favorite", "appointment", "medication", "family", "account", "budget"):
        text = f"{category if category.startswith('favo') else ''} {words}: {value}".strip()
    else:
        text = f"{words} {value}"
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?", "。")) else text + "."


def _when(quote: str, message: Message, lifetime: str, category: str) -> tuple[int | None, int | None]:
    """From when to when, if the quoted words themselves name a time; the end only of what is said to pass."""
    if message.at is None or message.at.tzinfo is None or not quote:
        return None, None
    said_ms = to_ms(message.at)
    passes = lifetime == "transient" or category == "appointment"
    since: int | None = None
    until: int | None = None
    for code in likely_languages(message.content[:400])[:1]:
        for span in find_times(quote, message.at, code, ahead=passes):
            if passes and span.to_ms > said_ms:
                until = span.to_ms
            elif span.relation in ("since", "for") or (lifetime == "event" and span.relation == "at"):
                since = span.from_ms if span.from_ms <= said_ms else since
    return since, until
