"""
Edit and erase: what was said goes, and whatever rested on it goes or is told anew with it.

Each operation is one transaction.  It raises the user's epoch, so work that began before it can
write nothing any more.  What takes time, telling summaries anew, is done before, from a snapshot; the
transaction looks whether that snapshot still holds and otherwise everything is worked out again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from ..clock import from_ms, new_id
from ..config import Config
from ..digest.summarize import SummaryDraft
from ..errors import Conflict, NotFound
from ..ingest import consent
from ..ingest.append import document
from ..ingest.prepare import indexed, redacted
from ..ingest.redact import masked_message
from ..jobs.facts import ReadFacts, Reading
from ..reconcile.erase import Fallen, drop_fact, lose_endings, lose_quotes, traces
from ..reconcile.learn import learn
from ..reports import ErasureReceipt
from ..scope import SELF, Scope
from ..store.protocol import FactRow, MessageRow, ReadView, Store, SummaryRow, WriteView
from ..types import Evidence, FactChange, Message
from .borrowed import lose_borrowed
from .ledger import FACT, Gone, note, of_message
from .retell import affected, drafts, put_in_place

TRIES = 50
ERASED = "erased"

Place = tuple[str, str]
"""(subject, conversation) of a conversation."""


@dataclass(frozen=True, slots=True)
class Changes:
    """
    What shall be different: messages by place and number (``None``: erased), and facts that fall.

    ``whole``: nothing that was read in these messages stands any longer; otherwise a quote stands
    as long as its message still says it at that place.
    """

    messages: Mapping[Place, Mapping[int, Message | None]]
    facts: tuple[FactRow, ...] = ()
    whole: bool = True
    refusals: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """One moment: the changes, and in each place the summaries and the messages that are told anew."""

    epoch: int
    changes: Changes
    summaries: Mapping[Place, list[SummaryRow]]
    remaining: Mapping[Place, dict[int, Message]]
    reading: Reading | None = field(default=None, compare=False)


Find = Callable[[ReadView], Changes]


@dataclass(frozen=True, slots=True)
class Eraser:
    """Erasures in one store; ``forget_caches`` is called when one is done."""

    store: Store
    config: Config
    now_ms: Callable[[], int]
    reader: ReadFacts
    forget_caches: Callable[[], None]

    def change(self, scope: Scope, find: Find, *, reread: int = 0) -> ErasureReceipt:
        """
        Make the changes that *find* names, with all that follows from them.

        Args:
            scope: whose; the scope's conversation is the one in which *reread* counts.
            find: looks at a view and says what shall be different.
            reread: the number of a message that is read for facts again, 0 for none.

        Raises:
            NotFound: *find* does not find what it looks for.
            Conflict: others changed the same things for as long as we tried.
        """
        for _ in range(TRIES):
            seen = self.store.read(scope, partial(self._look, find=find, reread=reread))
            told = {place: self._drafts(seen, place) for place in seen.changes.messages}
            work = partial(self._apply, find=find, seen=seen, told=told)
            done = self.store.write(scope, work)
            if done is not None:
                fallen, changes = done
                return replace(self.receipt(fallen), changes=tuple(c for c in changes if c.op != "rejected"))
        raise Conflict("others changed this conversation again and again", hint="try again when less is going on")

    def _look(self, view: ReadView, find: Find, reread: int = 0) -> Seen:
        changes = find(view)
        summaries: dict[Place, list[SummaryRow]] = {}
        remaining: dict[Place, dict[int, Message]] = {}
        for place, rewrites in changes.messages.items():
            here = view.at(*place)
            summaries[place] = here.summary_rows()
            remaining[place] = {}
            for summary in affected(summaries[place], list(rewrites)):
                if summary.level == 1:
                    inside = range(summary.start_seq, summary.end_seq + 1)
                    found = here.messages(start_seq=summary.start_seq, end_seq=summary.end_seq)
                    remaining[place].update((m.seq, m) for m in found if m.seq not in rewrites)
                    remaining[place].update((seq, m) for seq, m in rewrites.items() if m is not None and seq in inside)
        reading = None
        if reread:
            message = changes.messages[view.scope.subject or SELF, view.scope.conversation or ""][reread]
            row = view.conversation()
            if message is not None and row is not None and row.extracted_seq >= reread and message.role == "user":
                reading = self.reader.reading_of(view, message)
        return Seen(view.user().epoch, changes, summaries, remaining, reading)

    def _drafts(self, seen: Seen, place: Place) -> dict[str, SummaryDraft]:
        hide = self.config.detectors
        messages = {seq: masked_message(message, hide) for seq, message in seen.remaining[place].items()}
        return drafts(seen.summaries[place], list(seen.changes.messages[place]), messages)

    def _apply(
        self, view: WriteView, find: Find, seen: Seen, told: Mapping[Place, Mapping[str, SummaryDraft]]
    ) -> tuple[Fallen, list[FactChange]] | None:
        if self._look(view, find) != seen:
            return None
        fallen, now_ms, everybody = Fallen(), self.now_ms(), view.at(None, None)
        gone: list[Gone] = []
        texts: list[str] = []
        for row in seen.changes.facts:
            current = everybody.fact(row.fact.id)
            if current is not None:
                gone.append(Gone(everybody.scope, FACT, fact=row.fact.id))
                drop_fact(everybody, current, fallen, now_ms, revive=False)
        for place, rewrites in seen.changes.messages.items():
            here = view.at(*place)
            for seq, before, after in self._rewrite(here, rewrites, seen.changes.whole, fallen, now_ms):
                texts.append(before)
                gone.append(of_message(here.scope, seq, before, after))
            put_in_place(here, seen.summaries[place], told[place], list(rewrites), fallen, now_ms)
            self.order_vectors(here, now_ms)
        note(view, gone, now_ms)
        lose_borrowed(view, texts, fallen, now_ms)
        if seen.changes.refusals:
            fallen.count("refused", view.remove_all_rejected())
        end_of_erasure(view, now_ms)
        changes: list[FactChange] = []
        if seen.reading is not None:
            accepted, refused = self.reader.claims(view.scope, seen.reading)
            changes = learn(
                view, accepted, refused, self.reader.registry, new_id=lambda: new_id("fact", now_ms), now_ms=now_ms
            )
        return fallen, changes

    def _rewrite(
        self, view: WriteView, rewrites: Mapping[int, Message | None], whole: bool, fallen: Fallen, now_ms: int
    ) -> list[tuple[int, str, str | None]]:
        """Put the messages in place; ``(number, what it said, what it says now)`` of each."""
        seqs, changed = sorted(rewrites), []
        subject = view.scope.subject or SELF

        def gone(evidence: Evidence) -> bool:
            new = rewrites[evidence.seq]
            return whole or new is None or new.content[evidence.start : evidence.end] != evidence.quote

        if whole:
            lose_endings(view, seqs, now_ms)
        lose_quotes(view, seqs, gone, fallen, now_ms)
        for row in view.stored(start_seq=seqs[0], end_seq=seqs[-1]):
            if row.message.seq not in rewrites:
                continue
            new = rewrites[row.message.seq]
            fallen.count("messages")
            fallen.texts.append(row.message.content)
            changed.append((row.message.seq, row.message.content, None if new is None else new.content))
            fallen.count("refused", view.remove_rejected(row.message.seq, row.message.seq))
            view.forget_bodies(row.message.seq, row.message.seq)
            view.remove_docs(subject, "message", [row.doc])
            if new is None:
                blank = replace(row.message, role=ERASED, name=None, content="", tokens=0, meta={})
                view.rewrite_message(replace(row, message=blank, doc=0))
            else:
                self._index_again(view, replace(row, message=new), now_ms)
        return changed

    def _index_again(self, view: WriteView, row: MessageRow, now_ms: int) -> None:
        user, subject = view.user(), view.scope.subject or SELF
        row = replace(row, doc=user.next_doc)
        item = indexed(row.message, from_ms(now_ms), self.config.language, self.config.detectors)
        view.save_user(replace(user, next_doc=user.next_doc + 1, version=user.version + 1), now_ms)
        view.rewrite_message(row)
        view.add_docs([document(row, item, subject)])
        view.add_postings((subject, "message", term, row.doc, count) for term, count in item.terms.items())

    def order_vectors(self, view: WriteView, now_ms: int) -> None:
        """Have the new documents of the view's conversation embedded, unless the user paused memory."""
        row, chosen = view.conversation(), [(c.subject, c.state) for c in view.consent()]
        if self.reader.embeds and row is not None and consent.effective(chosen, row.subject) == "active":
            view.want("embed", "", wanted=row.next_seq - 1, run_at_ms=now_ms, now_ms=now_ms)

    def receipt(self, fallen: Fallen) -> ErasureReceipt:
        """Scrub the store, look for traces of what fell, and say how far it is gone."""
        self.forget_caches()
        if not fallen.rows:
            return ErasureReceipt({}, "E1", why="nothing was there to erase")
        sought = traces(fallen)
        found = self.store.scrub(sought)
        if not sought and not found.why:
            return ErasureReceipt(dict(fallen.rows), "E1", why="it was too short to be told from other bytes")
        level = "E1" if found.why else "E2"
        at = from_ms(self.now_ms()) if found.searched else None
        return ErasureReceipt(dict(fallen.rows), level, at, found.why)  # type: ignore[arg-type]


def end_of_erasure(view: WriteView, now_ms: int) -> None:
    """What every erasure does last: work that began before it writes nothing, no prefix is remembered."""
    user = view.user()
    view.save_user(replace(user, version=user.version + 1, epoch=user.epoch + 1), now_ms)
    view.remove_prefixes()
    view.release_jobs(now_ms)


def one_message(seq: int, rewrite: Callable[[Message], Message | None]) -> Find:
    """The changes to message *seq* of the view's conversation."""

    def find(view: ReadView) -> Changes:
        row = view.conversation()
        found = view.messages(start_seq=seq, end_seq=seq) if row is not None else []
        if row is None or not found:
            raise NotFound(f"there is no message {seq} in this conversation", hint="load() lists them")
        return Changes({(row.subject, row.conversation): {seq: rewrite(found[0])}})

    return find


def rewritten(message: Message, content: str, config: Config) -> Message:
    """A message with other words: what else it held of the old ones goes."""
    new = replace(message, content=content, meta={k: v for k, v in message.meta.items() if k != "parts"})
    return redacted(new, config.detectors) if config.redact_messages else new
