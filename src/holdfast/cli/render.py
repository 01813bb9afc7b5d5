"""
Facts, changes, summaries, contexts and erasure receipts as lines on the screen.

A quote is shown in its message, as compilers show an error in its line.

      --> message 287 of planner · 14 Mar 2026, 19:02 UTC
        |
    287 | I eat fish now, still no meat though
        | ^^^^^^^^^^^^^^
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from ..scope import SELF
from ..types import Evidence
from .lookup import load_messages
from .options import UserOptions
from .output import BAD, CHANGED, GOOD, NAME, QUIET, STRONG, Piece, Screen, cells
from .terminal import count, count_all, dated, day, days, fact_label, fact_value, minute, one_line, safe, valid_time

if TYPE_CHECKING:
    from ..context.result import Context, LeftOut
    from ..conversation import Conversation
    from ..memory import Memory
    from ..reports import DigestReport, ErasureReceipt
    from ..types import Fact, FactChange, Message, Rejected, Section, Summary
    from ..user import User

PAST_SHOWN = 5

_CHANGES = {
    "new": ("new", GOOD),
    "joined": ("added", GOOD),
    "confirmed": ("confirmed", QUIET),
    "replaced": ("replaced", CHANGED),
    "retracted": ("retracted", CHANGED),
}
# The rows that users know by name come first; the others are internal.
_NAMED_ROWS = ("conversations", "messages", "facts", "summaries")
_ERASURE_LEVELS = {
    "E0": ("nothing was deleted", CHANGED),
    "E1": ("the rows are deleted; the bytes of the file could not be checked", CHANGED),
    "E2": ("deleted, and no trace is left in the bytes of the file", GOOD),
}


# Facts


class QuoteFinder:
    """A reader of the messages that one user's facts rest on."""

    def __init__(self, memory: Memory, options: UserOptions) -> None:
        self._memory, self._options = memory, options
        self._known: dict[tuple[str, str, int], Message | None] = {}

    def message(self, quote: Evidence) -> Message | None:
        """Return the message that was quoted; ``None`` when it is no longer there."""
        key = (quote.home, quote.conversation, quote.seq)
        if key not in self._known:
            user, org, bot = self._options.user, self._options.org, self._options.bot
            chat = self._memory.conversation(quote.conversation, user=user, org=org, bot=bot, subject=quote.home)
            found = chat.load(start_seq=quote.seq, limit=1)
            self._known[key] = found[0] if found and found[0].seq == quote.seq else None
        return self._known[key]

    def rejected(self, item: Rejected) -> tuple[Evidence, Message | None]:
        """Return the quote of a rejected candidate, and its message only when it holds the quote."""
        claim = item.candidate
        end = claim.start + len(claim.quote)
        for home in dict.fromkeys((SELF, claim.subject)):
            quote = Evidence(item.conversation, claim.seq, "user", claim.quote, claim.start, end, home=home)
            message = self.message(quote)
            if message is not None and message.content[claim.start : end] == claim.quote:
                return replace(quote, at=message.at), message
        return quote, None


def earlier_facts(fact: Fact, history: list[Fact]) -> list[Fact]:
    """Return the facts that *fact* replaced, directly or not, the latest first."""
    found = [old for old in history if old.superseded_by == fact.id]
    for newer in found:  # grows while it is walked
        found += [old for old in history if old.superseded_by == newer.id and old not in found]
    return sorted(found, key=lambda old: old.valid_from, reverse=True)


def show_fact(
    screen: Screen, fact: Fact, past: list[Fact], quotes: QuoteFinder | None, *, with_id: bool = False
) -> None:
    """Print one fact; with *quotes*, also the latest quote behind it, and what it replaced."""
    if quotes is not None:
        screen.line()
    show_fact_line(screen, fact, _fact_note(fact, past))
    if with_id:
        screen.line((f"    {fact.id}", QUIET))
    if quotes is None:
        return
    if fact.evidence:
        show_quote(screen, fact.evidence[-1], quotes.message(fact.evidence[-1]))
    for old in past[:PAST_SHOWN]:
        show_earlier_fact(screen, fact, old)
    if len(past) > PAST_SHOWN:
        screen.line((f"    and {count(len(past) - PAST_SHOWN, 'earlier value')}", QUIET))


def show_fact_line(screen: Screen, fact: Fact, note: Piece = "") -> None:
    """Print one fact on one line, with a note at the right."""
    head: list[Piece] = [(fact_label(fact), NAME), ": ", (fact_value(fact), STRONG)]
    if fact.only_in:
        head.append((f"   only in {fact.only_in}", QUIET))
    used = sum(cells(p if isinstance(p, str) else p[0]) for p in head)
    words = note if isinstance(note, str) else note[0]
    if words:
        head += [" " * max(2, screen.width - used - cells(words)), note]
    screen.line(*head)


def show_quote(screen: Screen, quote: Evidence, message: Message | None) -> None:
    """Print the message with the quote underlined."""
    number = str(quote.seq)
    margin = " " * len(number)
    when = f" · {minute(quote.at)}" if quote.at else ""
    screen.line((f"{margin}--> message {number} of {quote.conversation}{when}", QUIET))
    if message is None:
        screen.line((f"{margin} |  ", QUIET), f'"{_flat(quote.quote)}"')
        return
    before, words, after = _window(message.content, quote.start, quote.end, screen.width - len(number) - 6)
    screen.line((f"{margin} |", QUIET))
    screen.line((f"{number} |", QUIET), "  ", before, (words, STRONG), after)
    screen.line((f"{margin} |", QUIET), "  ", " " * cells(before), ("^" * max(1, cells(words)), GOOD))


def show_earlier_fact(screen: Screen, fact: Fact, old: Fact) -> None:
    """
    Print what *fact* replaced: ``= was: vegetarian   12 Jan → 14 Mar 2026   (message 31: "I'm vegetarian")``.

    A fact that was merged into it reads ``= merged: The kids dread the cellar.   (message 2: …)``.
    """
    margin = " " * len(str(fact.evidence[-1].seq if fact.evidence else ""))
    source = old.evidence[-1] if old.evidence else None
    quote = f'   (message {source.seq}: "{_short(source.quote)}")' if source else ""
    if old.ended_because == "merged":
        screen.line((f"{margin} = merged: ", QUIET), fact_value(old), (quote, QUIET))
        return
    screen.line((f"{margin} = was: ", QUIET), (fact_value(old), CHANGED), f"   {valid_time(old)}", (quote, QUIET))


def _fact_note(fact: Fact, past: list[Fact]) -> Piece:
    if not fact.live:
        return (valid_time(fact), QUIET)
    if any(old.ended_because == "replaced" for old in past):
        return (f"replaced on {day(fact.valid_from)}", CHANGED)
    if fact.confirmations:
        return (f"{dated(fact)}, said {fact.confirmations + 1} times", QUIET)
    return (dated(fact), QUIET)


def _flat(text: str) -> str:
    return safe(text.replace("\n", " ").replace("\t", " "))


def _short(text: str, most: int = 60) -> str:
    flat = _flat(text)
    return flat if len(flat) <= most else flat[: most - 1] + "…"


def _window(content: str, start: int, end: int, width: int) -> tuple[str, str, str]:
    """Split the message before, in and after the quote, cut so that all of it fits on one line of *width* columns."""
    quote = _fit(_flat(content[start : min(end, start + width)]), width, cut=end - start > width)
    if end - start > width or cells(quote) >= width - 2:
        return "", quote, ""
    room = width - cells(quote)
    after = _flat(content[end : end + width])
    # The words after a quote get what they need, up to two thirds of the room; the words before it the rest.
    before = _flat(content[max(0, start - width) : start])
    left = max(room // 3, room - cells(after))
    before = _fit(before[::-1], left, cut=start > width)[::-1]
    return before, quote, _fit(after, room - cells(before), cut=len(content) - end > width)


def _fit(text: str, width: int, *, cut: bool) -> str:
    """Cut *text* to *width* columns, with an ellipsis where something was cut off."""
    if not cut and cells(text) <= width:
        return text
    while text and cells(text) > width - 1:
        text = text[:-1]
    return text + "…"


# Changes


def change_row(change: FactChange) -> list[Piece]:
    """Return the columns of a change: ``dietary   vegetarian → pescatarian   replaced``."""
    fact = change.fact
    if fact is None:
        return ["", (change.reason, QUIET), ("rejected", BAD)]
    words = fact_value(fact)
    state = _CHANGES.get(change.op, (change.op, QUIET))
    if change.op in ("replaced", "retracted") and change.previous is not None and change.previous.id != fact.id:
        words = f"{fact_value(change.previous)} → {words}"
    if change.op == "confirmed":
        state = (f"{state[0]}, said {count(fact.confirmations + 1, 'time')}", state[1])
    return [(fact_label(fact), NAME), (words, STRONG), state]


def print_changes(screen: Screen, changes: Iterable[FactChange], *, most: int = 20) -> int:
    """Print at most *most* changes, replaced facts first; return how many there were."""
    shown = [change for change in changes if change.op in ("new", "joined", "replaced", "retracted")]
    shown.sort(key=lambda change: change.op not in ("replaced", "retracted"))
    screen.columns([change_row(change) for change in shown[:most]], indent=2)
    if len(shown) > most:
        screen.line((f"  … and {len(shown) - most} more", QUIET))
    return len(shown)


def digest_line(report: DigestReport) -> list[Piece]:
    """Format ``27 facts learned, 6 of them replaced an older value; 34 summaries written; 12 candidates rejected``."""
    learned = sum(change.op in ("new", "joined", "replaced") for change in report.changes)
    replaced = sum(change.op == "replaced" for change in report.changes)
    words = count(learned, "fact") + " learned" if learned else "no new facts"
    if replaced:
        words += f", {replaced:,} of them replaced an older value"
    if report.summaries:
        words += f"; {count(report.summaries, 'summary')} written"
    nothing = "indexed for search; no new facts" if report.jobs else "no new facts"
    pieces: list[Piece] = [words if learned or report.summaries else nothing]
    if report.rejected:
        pieces.append((f"; {count(report.rejected, 'candidate')} rejected", QUIET))
    if report.failed:
        pieces.append((f"; {count(report.failed, 'job')} failed", CHANGED))
    if report.waiting:
        pieces.append((f"; {count(report.waiting, 'job')} waiting for the model (holdfast jobs)", CHANGED))
    return pieces


# Erasure


def count_held(user: User, subject: str | None) -> dict[str, int]:
    """Count the conversations, messages, facts and summaries that are stored about the user or *subject*."""
    data = user.export()
    chats = [chat for chat in data["conversations"] if subject in (None, chat["subject"])]
    return {
        "conversations": len(chats),
        "messages": sum(len(chat["messages"]) for chat in chats),
        "facts": sum(subject in (None, fact["subject"]) for fact in data["facts"]),
        "summaries": sum(len(chat["summaries"]) for chat in chats),
    }


def print_receipt(screen: Screen, receipt: ErasureReceipt) -> None:
    """Print what was erased, how far it is gone, and why not further."""
    rows = sorted(receipt.rows.items(), key=lambda row: (row[0] not in _NAMED_ROWS, row[0]))
    named = {name: receipt.rows[name] for name in _NAMED_ROWS if receipt.rows.get(name)}
    others = ", ".join(f"{name} {number:,}" for name, number in rows if name not in _NAMED_ROWS)
    if receipt.rows:
        screen.line("erased or written again: ", (count_all(named) or "only internal rows", STRONG))
    if others:
        screen.line((f"  and internal rows: {others}", QUIET))
    words, style = _ERASURE_LEVELS[receipt.level] if receipt.rows else ("there was nothing to erase", QUIET)
    when = f"   searched {minute(receipt.verified_at)}" if receipt.verified_at else ""
    screen.line((receipt.level, style), f"  {words}", (when, QUIET))
    if receipt.why and receipt.rows:
        screen.paragraph(receipt.why, indent=4, style=QUIET)


# Summaries


def show_summary(screen: Screen, chat: Conversation, summary: Summary, indent: int) -> None:
    """Print one summary: its range, its text, and its themes, concerns and actions."""
    pad = " " * indent
    size = f"messages {summary.start_seq}–{summary.end_seq}, {count(summary.exchanges, 'exchange')}"
    stale = ", stale" if summary.stale else ""
    note = f"   {size}, {_summary_dates(chat, summary)}, by {summary.source}{stale}"
    screen.line(pad, (f"L{summary.level} #{summary.block + 1}", NAME), (note, QUIET))
    screen.paragraph(summary.text, indent=indent + 2)
    for title, items in (("themes", summary.themes), ("concerns", summary.concerns), ("actions", summary.actions)):
        if items:
            screen.paragraph(f"{title}: {'; '.join(items)}", indent=indent + 2, style=QUIET)


def _summary_dates(chat: Conversation, summary: Summary) -> str:
    first = chat.load(start_seq=summary.start_seq, limit=1)
    last = chat.load(start_seq=summary.end_seq, limit=1)
    return days(first[0].at if first else None, last[0].at if last else None)


# Contexts


def show_context(screen: Screen, chat: Conversation, built: Context) -> None:
    """Print what each section holds and costs, what is left out, and what the whole history would cost."""
    screen.line(
        ("Context for the next reply", STRONG), f" of {chat.id}   {built.tokens:,} of {built.budget_tokens:,} tokens"
    )
    for stable in (True, False):
        part = [section for section in built.sections if section.stable is stable and section.tokens]
        tokens = sum(section.tokens for section in part)
        if stable:
            reason = built.prefix_changed_because
            state = ("same as last time", GOOD) if reason is None else (reason, CHANGED)
            prefix = f"   {tokens:,} tokens   sha256 {built.prefix_sha256[:12]}   "
            screen.line(" ", ("stable prefix", STRONG), prefix, state)
        else:
            screen.line(" ", ("changes with each reply", STRONG), f"   {tokens:,} tokens")
        screen.columns(
            [
                [(section.name, NAME), f"{section.tokens:>7,}", (_section_contents(built, section), QUIET)]
                for section in part
            ],
            indent=3,
        )
    if built.left_out:
        screen.line(" ", ("left out", STRONG))
        screen.columns([[_left_out(item), (item.reason, QUIET)] for item in built.left_out], indent=3)
    whole = sum(message.tokens for message in load_messages(chat))
    if not whole:
        screen.line(" ", ("no message is stored in this conversation: this is how it would begin", QUIET))
        return
    saved = f"; this is {round(100 - built.tokens * 100 / whole)} % less" if whole > built.tokens else ""
    screen.line(" ", (f"the whole conversation would be {whole:,} tokens{saved}", QUIET))


def show_reasons(screen: Screen, built: Context) -> None:
    """Print of each item why the context shows it, then what it leaves out and why."""
    for shown, title in ((True, "shown because"), (False, "left out because")):
        rows = [one for one in built.reasons if one.shown is shown]
        if rows:
            screen.line(" ", (title, STRONG))
        for one in rows:
            screen.paragraph(f"{one.section}: {one_line(one.text or one.kind)}", indent=3)
            screen.paragraph(one.why, indent=5, style=QUIET)


def _section_contents(built: Context, section: Section) -> str:
    """Count the items of a section by where they come from."""
    sources = [source for source in built.sources if source.section == section.name]
    kinds: dict[str, int] = {}
    for source in sources:
        kinds[source.kind] = kinds.get(source.kind, 0) + 1
    parts = [
        count(number, "line of the story", "lines of the story") if kind == "story" else count(number, kind)
        for kind, number in kinds.items()
        if kind != "query"
    ]
    ranges = [source for source in sources if source.kind in ("message", "summary") and source.start_seq]
    if ranges and not section.name.startswith("recall"):
        parts.append(f"messages {min(s.start_seq for s in ranges)}–{max(s.end_seq for s in ranges)}")
    if "query" in kinds:
        parts.append("and the new message" if parts else "the new message")
    return ", ".join(parts)


def _left_out(item: LeftOut) -> str:
    nouns = {
        "messages": ("message", ""),
        "part": ("partial message", ""),
        "query": ("question", ""),
        "facts": ("fact", ""),
        "recalled": ("recalled item", ""),
    }
    words = count(item.count, *nouns[item.kind])
    return f"{words} {item.start_seq}–{item.end_seq}" if item.kind == "messages" and item.start_seq else words
