"""
Effects of an erased source: facts lose quotes, fall, or restore what they replaced.

A fact holds as long as one quote of it does.  What a fallen fact had replaced takes over its end:
if the fallen one was believed, the older one is believed again, because by what remains it never
stopped; if it had been replaced or retracted itself, the older one ends there.  A retraction falls
with the message that said it.  All inside the caller's transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import field, replace

from ..clock import from_ms, to_ms
from ..scope import CHARACTER, SELF
from ..store import FactRow, WriteView
from ..text import dataclass
from ..types import Evidence, Fact
from .archive import index_fact, unindex_fact
from .compare import all_words
from .decide import MERGED, NEVER_HELD, UNMERGED
from .merging import add_quotes, merged_into, merged_sources, split_fact
from .registry import normalize_value

MAX_SAMPLES = 32
_SLICE_CHARS = 48


@dataclass(slots=True)
class Removed:
    """Removed rows, for the receipt: counts, and texts whose bytes must be gone."""

    rows: dict[str, int] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)

    def count(self, kind: str, number: int = 1) -> None:
        """Add to the count of *kind*."""
        if number:
            self.rows[kind] = self.rows.get(kind, 0) + number


def remove_quotes(
    view: WriteView,
    seqs: Sequence[int],
    gone: Callable[[Evidence], bool],
    fallen: Removed,
    now_ms: int,
    keep: Container[str] = (),
) -> None:
    """
    Take from all facts the quotes in messages *seqs* of the view's conversation that are *gone*.

    Facts that have no other quote fall; the others rest on what is left.  The facts *keep*, by id, are left alone.
    """
    home, name = view.scope.subject or SELF, view.scope.conversation or ""
    everybody, inside = view.at(None, None), set(seqs)

    def losing() -> list[tuple[FactRow, list[Evidence]]]:
        found = [everybody.fact(child) for kind, child in view.derived_from(min(seqs), max(seqs)) if kind == "fact"]
        there = [(row, [e for e in row.fact.evidence if lies_here(e) and gone(e)]) for row in found if row is not None]
        return [(row, lost) for row, lost in there if lost and row.fact.id not in keep]

    def lies_here(said: Evidence) -> bool:
        return (said.home, said.conversation) == (home, name) and said.seq in inside

    # Each row is read again: what fell before it may have brought it back, with a row in the index.
    for before, _ in losing():
        current = everybody.fact(before.fact.id)
        if current is not None and (merged_sources(everybody, current) or current.fact.ended_because == UNMERGED):
            _delete_merged(everybody, current, fallen, now_ms)
    for before, lost in losing():
        current = everybody.fact(before.fact.id)
        if current is None:
            continue
        left = [e for e in current.fact.evidence if e not in lost]
        fallen.count("quotes", len(lost))
        if not left:
            delete_fact(everybody, current, fallen, now_ms, revive=True)
            continue
        for evidence in lost:
            view.remove_evidence(current.fact.subject, current.fact.id, evidence)
        _recompute(view, current, left, lost, now_ms)


def blank_quotes(view: WriteView, messages: Mapping[int, str], keep: Container[str], now_ms: int) -> None:
    """Let the facts *keep* quote what *messages* of the view's conversation say now, at the same places."""
    home, name = view.scope.subject or SELF, view.scope.conversation or ""
    everybody = view.at(None, None)
    for kind, child in view.derived_from(min(messages), max(messages)):
        row = everybody.fact(child) if kind == "fact" and child in keep else None
        if row is None:
            continue
        quotes = tuple(
            replace(e, quote=messages[e.seq][e.start : e.end])
            if (e.home, e.conversation) == (home, name) and e.seq in messages
            else e
            for e in row.fact.evidence
        )
        for old, new in zip(row.fact.evidence, quotes, strict=True):
            if old != new:
                view.remove_evidence(row.fact.subject, child, old)
                add_quotes(view, row, [new], now_ms)
        row = replace(row, fact=replace(row.fact, evidence=quotes, conversation=""))
        unindex_fact(view, row)
        view.update_fact(index_fact(view, row, now_ms))


def undo_retractions(view: WriteView, seqs: Container[int], now_ms: int, keep: Container[tuple[str, int]] = ()) -> None:
    """
    Undo the retractions that messages *seqs* of the view's conversation said, unless others said so too.

    *keep* names some, as ``(fact id, message number)``, that stay.
    """
    everybody, here = view.at(None, None), view.scope.conversation
    mine = [edge for edge in view.endings() if edge.conversation == here and edge.start_seq in seqs]
    mine = [edge for edge in mine if (edge.child, edge.start_seq) not in keep]
    for edge in mine:
        view.remove_ending(edge.child, edge.conversation, edge.start_seq)
    still = {edge.child for edge in everybody.endings()}
    for child in dict.fromkeys(edge.child for edge in mine):
        row = everybody.fact(child)
        if row is not None and row.fact.ended_because == "retracted" and child not in still:
            reactivate(everybody, row, now_ms)


def delete_fact(view: WriteView, row: FactRow, fallen: Removed, now_ms: int, *, revive: bool) -> None:
    """
    Delete a fact; with *revive* what it had replaced takes over its end, else history just loses it.
    """
    whole = merged_into(view, row) or row
    if merged_sources(view, whole):
        _delete_merged(view, whole, fallen, now_ms)
        again = view.fact(row.fact.id)
        if again is None:
            return
        row = again
    older = view.replaced_by(row.fact.subject, row.fact.id)
    fallen.count("facts")
    fallen.texts += [row.fact.value, row.fact.text, *(e.quote for e in row.fact.evidence)]
    endings = [edge for edge in view.endings() if edge.child == row.fact.id]
    unindex_fact(view, row)
    view.remove_fact(row)
    heir = inherit_end(view, row, older, now_ms, revive=revive)
    if heir is not None and not row.fact.live:
        view.add_derivations(replace(edge, child=heir.fact.id) for edge in endings)


def _delete_merged(view: WriteView, whole: FactRow, fallen: Removed, now_ms: int) -> None:
    """A merged memory goes for good, or what is remembered of one that was taken apart."""
    fallen.count("facts")
    fallen.texts.append(whole.fact.text)
    if merged_sources(view, whole):
        split_fact(view, whole, now_ms)
    else:
        view.remove_fact(whole)


def inherit_end(
    view: WriteView, row: FactRow, older: Sequence[FactRow], now_ms: int, *, revive: bool
) -> FactRow | None:
    """Let the newest of *older*, which *row* had replaced, take over the end of *row*; returns it."""
    older = [one for one in older if one.fact.ended_because != MERGED]  # they go on to say what the row says
    heir = next((one for one in reversed(older) if one.fact.ended_because == "replaced"), None) if revive else None
    for one in older:
        if one is not heir:
            successor = heir.fact.id if heir is not None and one.fact.ended_because == "replaced" else None
            view.update_fact(replace(one, fact=replace(one.fact, superseded_by=successor)))
    if heir is None:
        return None
    if row.fact.live:
        return reactivate(view, heir, now_ms)
    ended = row.fact
    if ended.ended_because == "never_true":  # it held at no time: the older one ended for what stands in its place
        if ended.superseded_by is None:
            return reactivate(view, heir, now_ms)
        heir = replace(heir, fact=replace(heir.fact, superseded_by=ended.superseded_by))
        view.update_fact(heir)
        return heir
    fact = replace(
        heir.fact, valid_to=ended.valid_to, superseded_by=ended.superseded_by, ended_because=ended.ended_because
    )
    heir = replace(heir, fact=fact, ended_at=row.ended_at)
    view.update_fact(heir)
    return heir


def reactivate(view: WriteView, row: FactRow, now_ms: int) -> FactRow:
    """
    Believe a past fact again, or until the next one at its address began to hold; returns what it is now.
    """
    fact = row.fact
    others = [
        other
        for other in view.of_owner(row.owner).all_facts_in(fact.subject, fact.category)
        if (other.slot_key, other.slot_value) == (row.slot_key, row.slot_value)
        and other.fact.id != fact.id
        and other.fact.ended_because not in NEVER_HELD
        and other.fact.superseded_by != fact.id
        and (other.fact.live or other.fact.valid_from >= fact.valid_from)
    ]
    if others:
        following = min(others, key=lambda other: other.fact.valid_from)
        until = max(following.fact.valid_from, fact.valid_from)
        closed = replace(fact, valid_to=until, ended_because="replaced", superseded_by=following.fact.id)
        row = replace(row, fact=closed, ended_at=row.ended_at or now_ms)
        view.update_fact(row)
        return row
    believed = replace(fact, valid_to=None, ended_because="", superseded_by=None)
    row = index_fact(view, replace(row, fact=believed, ended_at=None), now_ms)
    view.update_fact(row)
    return row


def reinstate(view: WriteView, row: FactRow, now_ms: int) -> FactRow:
    """
    Believe a fact again that had counted as never held, at its place among those at its address.

    The place goes by what was said last, as when facts are learned: what was stated before it was replaced
    by it, and what was stated after it replaced it.
    """
    fact, mine = row.fact, (row.stated_at, row.stated_seq)
    others = [
        other
        for other in view.of_owner(row.owner).all_facts_in(fact.subject, fact.category)
        if (other.slot_key, other.slot_value) == (row.slot_key, row.slot_value)
        and other.fact.id != fact.id
        and other.fact.ended_because not in NEVER_HELD
    ]
    order = sorted(others, key=lambda other: (other.stated_at, other.stated_seq))
    before = [other for other in order if (other.stated_at, other.stated_seq) < mine]
    after = [other for other in order if (other.stated_at, other.stated_seq) >= mine]
    if before and _would_be_replaced(before[-1], row):
        last = before[-1]
        unindex_fact(view, last)
        until = max(last.fact.valid_from, fact.valid_from)
        closed = replace(last.fact, valid_to=until, ended_because="replaced", superseded_by=fact.id)
        view.update_fact(replace(last, fact=closed, ended_at=last.ended_at or now_ms, doc=0))
    if after:
        until = max(fact.valid_from, after[0].fact.valid_from)
        closed = replace(fact, valid_to=until, ended_because="replaced", superseded_by=after[0].fact.id)
        row = replace(row, fact=closed, ended_at=row.ended_at or now_ms)
    else:
        believed = replace(fact, valid_to=None, ended_because="", superseded_by=None)
        row = index_fact(view, replace(row, fact=believed, ended_at=None), now_ms)
    view.update_fact(row)
    return row


def _would_be_replaced(held: FactRow, row: FactRow) -> bool:
    """Whether a fact stated before *row* would have been replaced by it: it was not retracted by then."""
    ended = held.fact
    if ended.ended_because == "retracted" and ended.valid_to is not None:
        return ended.valid_to > from_ms(row.stated_at)
    return ended.ended_because in ("", "replaced")


def _recompute(view: WriteView, row: FactRow, left: Sequence[Evidence], lost: Sequence[Evidence], now_ms: int) -> None:
    """Recompute what a fact takes from its quotes; it is indexed anew, as its first quote is searched too."""
    fact, first, latest = row.fact, left[0], max(left, key=lambda e: (_said_at(e), e.seq))
    begin = fact.valid_from
    if any(_said_at(e) == to_ms(begin) for e in lost) and not any(_said_at(e) == to_ms(begin) for e in left):
        begin = from_ms(max(_said_at(first), to_ms(begin)))
        begin = begin if fact.valid_to is None else min(begin, fact.valid_to)
        for older in view.replaced_by(fact.subject, fact.id):  # they held until this one did
            if older.fact.valid_to == fact.valid_from:
                view.update_fact(replace(older, fact=replace(older.fact, valid_to=begin)))
    text = _supported_text(fact, left)
    taken, beside = None, view.of_owner(row.owner)
    if text != fact.text:
        taken = beside.fact_at(fact.subject, fact.category, row.slot_key, normalize_value(text))
    if row.fact.live and taken is not None:  # another fact says just that: it takes the quotes
        _move_quotes(view, row, taken, left, now_ms)
        return
    row = replace(
        row,
        fact=replace(fact, evidence=tuple(left), valid_from=begin, text=text, conversation=""),
        slot_value=row.slot_value if text == fact.text else normalize_value(text),
        unscoped=any(e.home in (SELF, CHARACTER) for e in left),
        stated_at=_said_at(latest),
        stated_seq=latest.seq,
    )
    if row.fact.live:
        unindex_fact(view, row)
        row = index_fact(view, row, now_ms)
    view.update_fact(row)


def _move_quotes(view: WriteView, row: FactRow, taken: FactRow, left: Sequence[Evidence], now_ms: int) -> None:
    for older in view.replaced_by(row.fact.subject, row.fact.id):
        view.update_fact(replace(older, fact=replace(older.fact, superseded_by=taken.fact.id)))
    unindex_fact(view, row)
    view.remove_fact(row)
    add_quotes(view, taken, left, now_ms)


def _supported_text(fact: Fact, left: Sequence[Evidence]) -> str:
    """
    The sentence of a fact that lost quotes: its own as long as the rest says all of its words, else the latest quote.

    A sentence that was said twice in other words must not keep the words of the one that was erased.
    """
    if fact.kind != "statement":
        return fact.text
    said = {word for evidence in left for word in all_words(evidence.quote)}
    if set(all_words(fact.text)) <= said:
        return fact.text
    return max(left, key=lambda e: (_said_at(e), e.seq)).quote


def _said_at(evidence: Evidence) -> int:
    return to_ms(evidence.at) if evidence.at else 0


def byte_samples(fallen: Removed) -> list[bytes]:
    """
    Up to ``MAX_SAMPLES`` byte strings that would show that what fell is still there.

    From texts spread over all that fell: a stretch from the middle of each and its most unusual
    word, as the file holds them.
    """
    texts = [text for text in dict.fromkeys(fallen.texts) if len(text.strip()) >= 4]
    step = max(1, len(texts) * 2 // MAX_SAMPLES)
    found: dict[bytes, None] = {}
    for text in texts[::step]:
        plain = max(text.replace("\\", "\n").replace('"', "\n").splitlines(), key=len, default="")
        middle = max(0, (len(plain) - _SLICE_CHARS) // 2)
        words = sorted(plain.split(), key=lambda word: (any(ch.isdecimal() for ch in word), len(word)))
        for piece in (plain[middle : middle + _SLICE_CHARS], words[-1][:_SLICE_CHARS] if words else ""):
            if len(piece.encode()) >= 6:
                found[piece.encode()] = None
    return list(found)[:MAX_SAMPLES]
