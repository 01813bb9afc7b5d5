"""
One range made again: look, make, and swap in one transaction, or try again when something changed meanwhile.

What stood there is kept: an older version of a summary, a fact that ended as ``rebuilt``.  A row of
``rebuilt`` names both sides, so that it can be put back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from ..clock import from_ms, new_id, to_ms
from ..config import Config
from ..digest.summarize import SummaryDraft
from ..errors import Conflict
from ..ingest.append import advance_reading
from ..ingest.consent import effective_consent
from ..ingest.redact import mask_message
from ..reconcile.archive import order_upkeep
from ..reconcile.decide import NEVER_HELD
from ..reconcile.learn import Found, facts_resting_on, relearn
from ..reconcile.registry import Registry
from ..scope import SELF, Scope
from ..store import Derivation, ReadView, RebuiltRow, Side, Store, SummaryRow, WriteView
from ..types import Fact, FactKind, Message, Summary
from .facts import ReadFacts
from .summaries import into_index
from .writers import Heard, Writer

TRIES = 50
FACT_KINDS: tuple[FactKind, ...] = ("attribute", "statement")
EPISODE_KINDS: tuple[FactKind, ...] = ("episode",)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Made:
    """What one range became."""

    before: tuple[Summary | Fact, ...]
    after: tuple[Summary | Fact, ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """Where the ``rebuilt`` row of a range goes: the id of the call and the number of the range in it."""

    id: str
    part: int


@dataclass(frozen=True, slots=True)
class Told:
    """A live summary as of one moment, with what it is made from: messages, or summaries of the level below."""

    epoch: int
    row: SummaryRow | None
    messages: list[Message]
    children: list[Summary]


@dataclass(frozen=True, slots=True)
class Remake:
    """Makes single ranges again, in one store, by one writer."""

    store: Store
    config: Config
    now_ms: Callable[[], int]
    registry: Registry
    reader: ReadFacts
    writer: Writer

    def summary(self, scope: Scope, level: int, start_seq: int, mark: Mark) -> Made | None:
        """Tell the summary of a level that begins at a message again; ``None`` when there is none any more."""

        def attempt() -> Made | None:
            seen = self.store.read(scope, partial(self.look, level=level, start_seq=start_seq))
            if seen.row is None:
                return Made((), ())
            told = self.writer.chunk(scope, seen.messages) if level == 1 else self.writer.level(scope, seen.children)
            return self.store.write(scope, partial(self._put, seen=seen, draft=told, mark=mark))

        made = _persistent(attempt)
        return made if made.before else None

    def look(self, view: ReadView, level: int, start_seq: int) -> Told:
        """The live summary of a level that begins at *start_seq*, and its sources."""
        epoch, rows = view.user().epoch, view.summary_rows()
        row = next((r for r in rows if r.live and (r.summary.level, r.summary.start_seq) == (level, start_seq)), None)
        if row is None:
            return Told(epoch, None, [], [])
        if level > 1:
            return Told(epoch, row, [], [r.summary for r in rows if r.live and r.summary.parent == row.summary.id])
        found = view.messages(start_seq=row.summary.start_seq, end_seq=row.summary.end_seq)
        return Told(epoch, row, [mask_message(message, self.config.detectors) for message in found], [])

    def _put(self, view: WriteView, seen: Told, draft: SummaryDraft, mark: Mark) -> Made | None:
        if seen.row is None or not undisturbed(view, seen.epoch):
            return None
        old = seen.row.summary
        if self.look(view, old.level, old.start_seq) != seen:
            return None
        now_ms = self.now_ms()
        versions = [row.summary.version for row in view.summary_rows() if same_place(row.summary, old)]
        new = replace(
            old,
            id=new_id("sum", now_ms),
            text=draft.text,
            themes=draft.themes,
            concerns=draft.concerns,
            actions=draft.actions,
            source=draft.source,
            version=max(versions) + 1,
            children=tuple(child.id for child in seen.children),
            created_at=from_ms(now_ms),
            stale=False,
        )
        place = (view.scope.subject or SELF, view.scope.conversation or "")
        withdraw_summary(view, seen.row)
        doc = self.indexed(view, new, now_ms)
        view.add_summary(new, doc, range(new.start_seq, new.end_seq + 1) if new.level == 1 else ())
        if new.level == 1:
            view.add_derivations([Derivation("summary", new.id, "message", *place, new.start_seq, new.end_seq)])
        hang_up(view, old, new, [child.id for child in seen.children])
        layer = "summaries" if new.level == 1 else "meta"
        sides = Side((old.id,)), Side((new.id,))
        view.add_rebuilt(RebuiltRow(mark.id, mark.part, layer, new.start_seq, new.end_seq, *sides, new.source, now_ms))
        return Made((old,), (new,))

    def indexed(self, view: WriteView, summary: Summary, now_ms: int) -> int:
        """Make a summary searchable, by words at once; the number of its document."""
        last = view.messages(start_seq=summary.end_seq, end_seq=summary.end_seq)
        at_ms = to_ms(last[0].at) if last and last[0].at else now_ms
        doc = into_index(view, summary, view.scope.subject or SELF, at_ms, now_ms)
        self.order_vectors(view, now_ms)
        return doc

    def order_vectors(self, view: WriteView, now_ms: int) -> None:
        """Have new documents of the view's conversation embedded."""
        row = view.conversation()
        if self.reader.embeds and row is not None:
            view.want("embed", "", wanted=row.next_seq - 1, run_at_ms=now_ms, now_ms=now_ms)

    def facts(self, scope: Scope, span: tuple[int, int], begin: int, mark: Mark, kept: set[str]) -> Made:
        """Read a range for facts again; *begin* is where the whole rebuild began, *kept* what it has found so far."""

        return self._swapped(scope, FACT_KINDS, span, begin, mark, kept, self.writer.facts)

    def episodes(self, scope: Scope, span: tuple[int, int], mark: Mark) -> Made:
        """Read a chunk for episodes again."""

        return self._swapped(scope, EPISODE_KINDS, span, span[0], mark, set(), self.writer.episodes)

    def _swapped(
        self,
        scope: Scope,
        kinds: tuple[FactKind, ...],
        span: tuple[int, int],
        begin: int,
        mark: Mark,
        kept: set[str],
        read: Callable[[Scope, tuple[int, int]], Heard],
    ) -> Made:
        def attempt() -> tuple[Made, set[str]] | None:
            heard = read(scope, span)
            found = Found(*span, begin, kinds, heard.source, heard.claims, heard.refused, heard.means)
            return self.store.write(scope, partial(self._take_in, heard=heard, found=found, kept=kept, mark=mark))

        made, known = _persistent(attempt)
        kept |= known
        return made

    def _take_in(
        self, view: WriteView, heard: Heard, found: Found, kept: set[str], mark: Mark
    ) -> tuple[Made, set[str]] | None:
        if not undisturbed(view, heard.epoch):
            return None
        row = view.conversation()
        if row is None or row.next_seq <= found.last:
            return Made((), ()), kept  # cleared meanwhile: nothing is left of the range
        now_ms, known = self.now_ms(), set(kept)
        layer = "episodes" if found.kinds == EPISODE_KINDS else "facts"
        before = self.held(view, layer, found.first, found.last)
        was, became, changes = relearn(
            view, found, known, self.registry, new_id=lambda: new_id("fact", now_ms), now_ms=now_ms
        )
        view.add_rebuilt(
            RebuiltRow(mark.id, mark.part, layer, found.first, found.last, was, became, found.source, now_ms)
        )
        if heard.noted is not None:
            view.add_episodes(heard.noted, now_ms)
        elif layer == "facts" and self.writer.by_model:
            view.add_reading(self.writer.name, found.first, found.last)
            self._mark_read(view, found.first, found.last)
        order_upkeep(view, changes, self.config.max_memories, now_ms)
        self.order_vectors(view, now_ms)
        return Made(before, self.held(view, layer, found.first, found.last)), known

    def _mark_read(self, view: WriteView, first: int, last: int) -> None:
        """The digest need not read again what follows on what it had read."""
        row = view.conversation()
        if row is None or not first <= row.read_seq + 1 <= last:
            return
        turns = sum(m.role == "user" for m in view.messages(start_seq=row.read_seq + 1, end_seq=last))
        every = self.config.extract_every_user_turns
        view.save_conversation(replace(advance_reading(row, last, turns, every), ahead_turns=row.ahead_turns))

    def held(self, view: ReadView, layer: str, first: int, last: int) -> tuple[Fact, ...]:
        """The facts of a layer and range that hold or once held."""
        rows = facts_resting_on(view, first, last, EPISODE_KINDS if layer == "episodes" else FACT_KINDS)
        return tuple(row.fact for row in rows if row.fact.ended_because not in NEVER_HELD)


def undisturbed(view: ReadView, epoch: int) -> bool:
    """
    Whether nothing was erased since *epoch*.

    Raises:
        Conflict: the user does not want anything written.
    """
    check_active(view)
    return view.user().epoch == epoch


def check_active(view: ReadView) -> None:
    """
    Raises:
        Conflict: memory is paused, or the user opted out.
    """
    if effective_consent([(row.subject, row.state) for row in view.consent()], view.scope.subject) != "active":
        raise Conflict("the user does not want anything written now", hint="resume() first")


def same_place(one: Summary, other: Summary) -> bool:
    """Whether two summaries are versions of one another."""
    return (one.level, one.start_seq, one.end_seq) == (other.level, other.start_seq, other.end_seq)


def withdraw_summary(view: WriteView, row: SummaryRow) -> None:
    """A live summary becomes an older version: not shown, not found, covering nothing."""
    view.remove_docs(view.scope.subject or SELF, "summary", [row.doc])
    view.rewrite_summary(replace(row, doc=0, live=False))


def hang_up(view: WriteView, old: Summary, new: Summary, children: Sequence[str]) -> None:
    """Give *new* the place of *old* in the tree; the one above is stale unless it was made from just these."""
    if children:
        view.set_parent(children, new.id)
    rows = view.summary_rows()
    above = next((row for row in rows if row.summary.id == old.parent), None)
    if above is not None:
        below = {row.summary.id for row in rows if row.live and row.summary.parent == above.summary.id}
        stale = set(above.summary.children) != below
        view.rewrite_summary(replace(above, summary=replace(above.summary, stale=stale)))


def _persistent(attempt: Callable[[], T | None]) -> T:
    """
    Attempt until it succeeds.

    Raises:
        Conflict: others changed the same things for as long as we tried.
    """
    for _ in range(TRIES):
        made = attempt()
        if made is not None:
            return made
    raise Conflict("others changed this conversation again and again", hint="try again when less is going on")
