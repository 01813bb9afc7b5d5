"""
Edit and erase messages and facts, with everything that rests on them.

Each erasure is one transaction.  It raises the user's epoch, so that work that began earlier writes nothing.
New summaries take time, so they are drafted before, from a snapshot; when the snapshot no longer holds inside
the transaction, everything is planned again.

A model words things freely and may take a name from any message it was shown, not only from the one it quotes.
So after the quotes are gone, facts and rejected claims that hold a word which no message says any more go too;
common words do not count.

Every erasure also records what it took away, see `ledger`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime
from functools import partial
from itertools import groupby
from typing import Any, Protocol
from weakref import WeakSet

from ..clock import from_ms, new_id, to_ms
from ..config import Config
from ..digest.summarize import SummaryDraft, summarize_chunk, summarize_level
from ..errors import Conflict, NotFound
from ..ingest.append import ABANDONED, build_document, index_message, redact_message
from ..ingest.redact import MASK, mask_messages
from ..jobs.facts import FactReader, RuleInput
from ..jobs.queue import ReadMode, order_range
from ..jobs.summaries import RESUMMARIZE, into_index, order_story
from ..reconcile.compare import FILLERS, MARK_OF
from ..reconcile.erase import (
    Removed,
    blank_quotes,
    byte_samples,
    delete_fact,
    remove_quotes,
    undo_retractions,
)
from ..reconcile.learn import learn
from ..reports import ErasurePreview, ErasureReceipt
from ..scope import SELF, Scope
from ..store import (
    Derivation,
    FactRow,
    MessageRow,
    ReadView,
    Store,
    SummaryRow,
    WriteView,
    effective_consent,
)
from ..text import dataclass, expression
from ..types import BY_HAND_CONVERSATION, Detector, Evidence, FactChange, Message, StoryLine, Summary
from .ledger import CONVERSATION, ERASED, FACT, ErasedItem, erased_message, record_erased, restored, without_parts

MAX_TRIES = 50

Place = tuple[str, str]
"""(subject, conversation) of a conversation."""


@dataclass(frozen=True, slots=True)
class ErasureChanges:
    """
    The messages to rewrite, by place and number (``None``: erase), and the facts to delete.

    ``whole``: no quote from these messages stays; otherwise a quote stays where its message still says it, and
    the facts ``kept``, by id, quote what is left.  ``branch``: the messages only move into or out of a branch.
    """

    messages: Mapping[Place, Mapping[int, Message | None]]
    facts: tuple[FactRow, ...] = ()
    whole: bool = True
    refusals: bool = False
    kept: frozenset[str] = frozenset()
    branch: bool = False


@dataclass(frozen=True, slots=True)
class ErasurePlan:
    """The changes as of one moment, with the summaries they touch and the messages these are redrafted from."""

    epoch: int
    changes: ErasureChanges
    summaries: Mapping[Place, list[SummaryRow]]
    remaining: Mapping[Place, dict[int, Message]]
    reading: RuleInput | None = field(default=None, compare=False)


Find = Callable[[ReadView], ErasureChanges]


@dataclass(slots=True)
class Erasing:
    """One erasure inside its transaction: what it removes, which contents, and what the ledger will say."""

    view: WriteView
    now_ms: int
    removed: Removed = field(default_factory=Removed)
    contents: list[str] = field(default_factory=list)
    ledger: list[ErasedItem] = field(default_factory=list)
    detectors: Sequence[Detector] = ()

    def clear_conversation(self) -> None:
        """Erase the view's conversation with its numbers and keys, and what rested only on it."""
        view, removed, row = self.view, self.removed, self.view.conversation()
        items = view.clear_items()
        if items:
            removed.count("items", items)
        if row is None:
            if items:
                self.ledger.append(ErasedItem(view.scope, CONVERSATION))
            return
        seqs, subject = range(1, row.next_seq), view.scope.subject or SELF
        undo_retractions(view, seqs, self.now_ms)
        remove_quotes(view, seqs, lambda evidence: True, removed, self.now_ms)
        whole = view.at(None, None)
        for fact in whole.of_owner((subject, row.conversation)).all_facts():  # what was corrected by hand
            delete_fact(whole, fact, removed, self.now_ms, revive=False)
        messages, summaries = view.message_rows(), view.summary_rows()
        view.remove_docs(subject, "message", [m.doc for m in messages if m.doc])
        view.remove_docs(subject, "summary", [s.doc for s in summaries if s.live])
        count_cut(view.remove_summaries([s.summary for s in summaries]), removed)
        order_story(view, subject, self.now_ms)
        removed.count("conversations")
        removed.count("messages", len(messages))
        removed.count("summaries", len(summaries))
        removed.count("refused", view.remove_rejected(1, row.next_seq))
        removed.texts += [*(m.message.content for m in messages), *(s.summary.text for s in summaries)]
        view.remove_conversation()
        self.contents += [m.message.content for m in messages]
        self.ledger.append(ErasedItem(view.scope, CONVERSATION))

    def at(self, subject: str, conversation: str) -> Erasing:
        """Return the same erasure in one conversation."""
        return replace(self, view=self.view.at(subject, conversation))

    def finish(self) -> None:
        """Remove what no message supports any more, write the ledger, and void work that began earlier."""
        remove_unsupported(self.view, self.contents, self.removed, self.now_ms, self.detectors)
        record_erased(self.view, self.ledger, self.now_ms)
        user = self.view.user()
        self.view.save_user(replace(user, version=user.version + 1, epoch=user.epoch + 1), self.now_ms)
        self.view.remove_prefixes()
        self.view.release_jobs(self.now_ms)


class DryRun(Exception):
    """The end of a transaction that is only to be shown, with what it did."""

    def __init__(self, result: Any) -> None:
        self.result = result


class Holder(Protocol):
    """A holder of users' words outside the store while the process runs, as adapters are for users who pause memory."""

    def forget_held(self, scope: Scope) -> None:
        """Drop all that is held of an erased scope."""


@dataclass(frozen=True, slots=True)
class Eraser:
    """
    Erasures in one store; ``forget_caches`` is called after each, and ``holders`` drop what goes as a whole.

    ``read_mode`` says whether a model reads a user's messages; without one, what no pattern reads is noted as a sentence.
    """

    store: Store
    config: Config
    now_ms: Callable[[], int]
    reader: FactReader
    read_mode: Callable[[Scope], ReadMode]
    forget_caches: Callable[[], None]
    holders: WeakSet[Holder] = field(default_factory=WeakSet)

    def change(
        self,
        scope: Scope,
        find: Find,
        *,
        reread: int = 0,
        also: Callable[[Erasing], None] | None = None,
        dry_run: bool = False,
    ) -> ErasureReceipt:
        """
        Make the changes that *find* names, with all that follows from them, in one transaction.

        Args:
            scope: the user, and the conversation in which *reread* counts.
            find: names the changes, given a view.
            reread: the number of a message to read for facts again, 0 for none.
            also: erases more in the same transaction, after the changes.
            dry_run: undo the transaction at its end, and return what it did.

        Raises:
            NotFound: *find* does not find what it looks for.
            Conflict: others changed the same things at every attempt.
        """
        reader = replace(self.reader, statements=not self.read_mode(scope)) if reread else self.reader
        for _ in range(MAX_TRIES):
            plan = self.store.read(scope, partial(self._plan, find=find, reread=reread))
            drafts = {place: self._drafts(plan, place) for place in plan.changes.messages}
            work = partial(self._apply, find=find, plan=plan, drafts=drafts, also=also, reader=reader)
            try:
                done = self.store.write(scope, partial(_undone, work=work, plan=plan) if dry_run else work)
            except DryRun as shown:
                removed, preview = shown.result
                why = "a dry run: nothing was erased"
                return ErasureReceipt(dict(removed.rows), "E0", why=why, preview=preview)
            if done is not None:
                removed, changes = done
                return replace(self.receipt(removed), changes=tuple(c for c in changes if c.op != "rejected"))
        raise Conflict("others changed this conversation again and again", hint="try again when less is going on")

    def change_within(self, view: WriteView, find: Find, *, reread: int = 0, statements: bool = False) -> None:
        """Make the changes that *find* names as a part of an open transaction; the arguments are those of `change`."""
        plan = self._plan(view, find, reread)
        drafts = {place: self._drafts(plan, place) for place in plan.changes.messages}
        if drafts:
            self._apply(view, find, plan, drafts, None, replace(self.reader, statements=statements))

    def clear_conversation(self, scope: Scope) -> ErasureReceipt:
        """Erase one conversation with its numbers and keys, and what rested only on it."""

        def work(view: WriteView) -> Removed:
            erasing = Erasing(view, self.now_ms(), detectors=self.config.detectors)
            self.erase_corrections(erasing)
            erasing.clear_conversation()
            if erasing.ledger:
                erasing.finish()
            return erasing.removed

        removed = self.store.write(scope, work)
        self.forget_held(scope)
        return self.receipt(removed)

    def forget_held(self, scope: Scope) -> None:
        """Drop what is held of a scope outside the store."""
        for holder in list(self.holders):
            holder.forget_held(scope)

    def erase_corrections(self, erasing: Erasing) -> None:
        """Erase the words that users wrote by hand in place of the conversation's own facts."""
        view = erasing.view
        owner = (view.scope.subject or SELF, view.scope.conversation or "")
        rows = view.at(None, None).of_owner(owner).all_facts()
        said = {(e.home, e.seq) for row in rows for e in row.fact.evidence if e.conversation == BY_HAND_CONVERSATION}
        for home, found in groupby(sorted(said), key=lambda one: one[0]):
            blanked: dict[int, Message | None] = {seq: None for _, seq in found}
            changes = ErasureChanges({(home, BY_HAND_CONVERSATION): blanked})
            self._rewrite(erasing.at(home, BY_HAND_CONVERSATION), blanked, changes)

    def _plan(self, view: ReadView, find: Find, reread: int = 0) -> ErasurePlan:
        changes = find(view)
        summaries: dict[Place, list[SummaryRow]] = {}
        remaining: dict[Place, dict[int, Message]] = {}
        for place, rewrites in changes.messages.items():
            here = view.at(*place)
            summaries[place] = here.summary_rows()
            remaining[place] = {}
            for summary in affected_summaries(summaries[place], list(rewrites)):
                if summary.level == 1:
                    inside = range(summary.start_seq, summary.end_seq + 1)
                    found = here.messages(start_seq=summary.start_seq, end_seq=summary.end_seq)
                    remaining[place].update((m.seq, m) for m in found if m.seq not in rewrites)
                    remaining[place].update(
                        (seq, m) for seq, m in rewrites.items() if m and m.role != ABANDONED and seq in inside
                    )
        reading = None
        if reread:
            message = changes.messages.get((view.scope.subject or SELF, view.scope.conversation or ""), {}).get(reread)
            row = view.conversation()
            if message is not None and row is not None and row.extracted_seq >= reread and message.role == "user":
                reading = self.reader.input_of(view, message)
        return ErasurePlan(view.user().epoch, changes, summaries, remaining, reading)

    def _drafts(self, plan: ErasurePlan, place: Place) -> dict[str, SummaryDraft]:
        hide = self.config.detectors
        messages = {one.seq: one for one in mask_messages(plan.remaining[place].values(), hide)}
        return summary_drafts(plan.summaries[place], list(plan.changes.messages[place]), messages)

    def _apply(
        self,
        view: WriteView,
        find: Find,
        plan: ErasurePlan,
        drafts: Mapping[Place, Mapping[str, SummaryDraft]],
        also: Callable[[Erasing], None] | None,
        reader: FactReader,
    ) -> tuple[Removed, list[FactChange]] | None:
        """Carry out *plan*; ``None``, and nothing is written, when it no longer fits."""
        if self._plan(view, find) != plan:
            return None
        changes, now_ms, every_subject = plan.changes, self.now_ms(), view.at(None, None)
        erasing = Erasing(view, now_ms, detectors=self.config.detectors)
        for row in changes.facts:
            current = every_subject.fact(row.fact.id)
            if current is not None:
                erasing.ledger.append(ErasedItem(every_subject.scope, FACT, fact=row.fact.id))
                delete_fact(every_subject, current, erasing.removed, now_ms, revive=False)
        for place, rewrites in changes.messages.items():
            here = erasing.at(*place)
            self._rewrite(here, rewrites, changes)
            replace_summaries(here.view, plan.summaries[place], drafts[place], list(rewrites), erasing.removed, now_ms)
            self._request_vectors(here.view, now_ms)
        if changes.refusals:
            erasing.removed.count("refused", view.remove_all_rejected())
        if also is not None:
            also(erasing)
        erasing.finish()
        for place, rewrites in changes.messages.items():
            self._order_again(view.at(*place), affected_summaries(plan.summaries[place], list(rewrites)), now_ms)
        learned: list[FactChange] = []
        if plan.reading is not None:
            accepted, refused = reader.claims(view.scope, plan.reading)
            learned = learn(
                view,
                accepted,
                refused,
                reader.registry,
                new_id=lambda: new_id("fact", now_ms),
                now_ms=now_ms,
                ask=self.config.ask_before_learning,
            )
        return erasing.removed, learned

    def _rewrite(self, erasing: Erasing, rewrites: Mapping[int, Message | None], changes: ErasureChanges) -> None:
        """Replace or blank the messages of one conversation."""
        view, removed, now_ms, whole = erasing.view, erasing.removed, erasing.now_ms, changes.whole
        if not changes.branch:  # what was left behind may hold the same words, and so may a framework's copies
            if items := view.clear_items():
                removed.count("items", items)
            behind = [row.message.seq for row in view.message_rows() if row.message.role == ABANDONED]
            rewrites = {**rewrites, **dict.fromkeys(behind)}
        seqs, subject = sorted(rewrites), view.scope.subject or SELF

        def gone(evidence: Evidence) -> bool:
            new = rewrites[evidence.seq]
            return whole or new is None or new.content[evidence.start : evidence.end] != evidence.quote

        if whole:
            undo_retractions(view, seqs, now_ms)
        remove_quotes(view, seqs, gone, removed, now_ms, changes.kept)
        if changes.kept:
            blank_quotes(view, {seq: new.content for seq, new in rewrites.items() if new}, changes.kept, now_ms)
        for row in view.message_rows(start_seq=seqs[0], end_seq=seqs[-1]):
            seq, content = row.message.seq, restored(row.message).content
            if seq not in rewrites:
                continue
            new = rewrites[seq]
            removed.count("messages")
            erasing.contents.append(content)
            if not changes.branch:  # else its words are kept
                removed.texts.append(content)
                erasing.ledger.append(erased_message(view.scope, seq, content, None if new is None else new.content))
                view.forget_idempotency_digests(seq, seq)
            removed.count("refused", view.remove_rejected(seq, seq))
            view.remove_docs(subject, "message", [row.doc] if row.doc else [])
            if new is not None and new.role == ABANDONED:
                view.rewrite_message(replace(row, message=new, doc=0))
            elif new is None:
                blank = replace(row.message, role=ERASED, name=None, content="", tokens=0, meta={})
                view.rewrite_message(replace(row, message=blank, doc=0))
            else:
                self._index_again(view, replace(row, message=new), now_ms)

    def _index_again(self, view: WriteView, row: MessageRow, now_ms: int) -> None:
        user, subject = view.user(), view.scope.subject or SELF
        row = replace(row, doc=user.next_doc)
        item = index_message(row.message, from_ms(now_ms), self.config.language, self.config.detectors)
        view.save_user(replace(user, next_doc=user.next_doc + 1, version=user.version + 1), now_ms)
        view.rewrite_message(row)
        view.add_docs([build_document(row, item, subject)])

    def _request_vectors(self, view: WriteView, now_ms: int) -> None:
        """Request vectors for the conversation's new documents, unless the user paused memory."""
        row = view.conversation()
        if self.reader.embeds and row is not None and effective_consent(view.consent(), row.subject) == "active":
            view.want("embed", "", wanted=row.next_seq - 1, run_at_ms=now_ms, now_ms=now_ms)

    def _order_again(self, view: WriteView, affected: Iterable[Summary], now_ms: int) -> None:
        """Order of the model what the rules put in place of its summaries, and the episodes that went with the old words."""
        row = view.conversation()
        if row is None or effective_consent(view.consent(), row.subject) != "active":
            return
        for one in affected:
            told = view.messages(start_seq=one.start_seq, end_seq=one.end_seq)
            if one.source.startswith("rules ") or not any(message.content for message in told):
                continue
            order_range(view, RESUMMARIZE, one.start_seq, one.end_seq, now_ms)
            if one.level == 1:
                order_range(view, "episodes", one.start_seq, one.end_seq, now_ms)

    def receipt(self, removed: Removed) -> ErasureReceipt:
        """Scrub the store, search its bytes for samples of what was removed, and report the level reached."""
        self.forget_caches()
        if not removed.rows:
            return ErasureReceipt({}, "E1", why="nothing was there to erase")
        sought = byte_samples(removed)
        found = self.store.scrub(sought)
        if not sought and not found.why:
            return ErasureReceipt(dict(removed.rows), "E1", why="it was too short to be told from other bytes")
        level = "E1" if found.why else "E2"
        at = from_ms(self.now_ms()) if found.searched else None
        return ErasureReceipt(dict(removed.rows), level, at, found.why)  # type: ignore[arg-type]


def _undone(
    view: WriteView, work: Callable[[WriteView], tuple[Removed, list[FactChange]] | None], plan: ErasurePlan
) -> tuple[Removed, list[FactChange]] | None:
    """Do *work*, and raise what it did, so that its transaction is undone; ``None`` when the plan no longer fits."""
    before = {row.fact.id: row.fact for row in view.at(None, None).all_facts()}
    done = work(view)
    if done is None:
        return None
    after = {row.fact.id: row.fact for row in view.at(None, None).all_facts()}
    chosen = {row.fact.id for row in plan.changes.facts}
    gone = sorted((fact for fact in before.values() if fact.id not in after), key=lambda fact: fact.id not in chosen)
    kept = [fact for fact in after.values() if fact.id in before and fact.evidence != before[fact.id].evidence]
    messages = [m for rewrites in plan.changes.messages.values() for _, m in sorted(rewrites.items()) if m is not None]
    summaries = [
        summary
        for place, rewrites in plan.changes.messages.items()
        for summary in affected_summaries(plan.summaries[place], list(rewrites))
    ]
    raise DryRun((done[0], ErasurePreview(tuple(gone), tuple(kept), tuple(messages), tuple(summaries))))


def change_message(seq: int, rewrite: Callable[[Message], Message | None]) -> Find:
    """Name the change of message *seq* of the view's conversation."""

    def find(view: ReadView) -> ErasureChanges:
        row = view.conversation()
        found = view.messages(start_seq=seq, end_seq=seq) if row is not None else []
        if row is None or not found:
            raise NotFound(f"there is no message {seq} in this conversation", hint="load() lists them")
        return ErasureChanges({(row.subject, row.conversation): {seq: rewrite(found[0])}})

    return find


def with_content(message: Message, content: str, config: Config) -> Message:
    """Return a message with other words, without anything else that held the old ones."""
    new = without_parts(message, content)
    return redact_message(new, config.detectors) if config.redact_messages else new


LEAST_CHARS = 4  # shorter words count when they are written like a name or hold a digit
WIDE = 0x2E80
_RUN = expression(r"\w+")
_PAGE = 500


def distinctive_words(text: str) -> frozenset[str]:
    """Return the words of *text* that could identify: names, numbers, long words, signs; pairs of wide characters."""
    found = {sign for sign in text if unicodedata.category(sign)[0] in "SC" and not sign.isspace()}
    for run in _RUN.findall(text):
        low = run.casefold()
        if any(ord(ch) >= WIDE for ch in run):
            found.update(low[at : at + 2] for at in range(max(1, len(low) - 1)))
        elif low in FILLERS or low in MARK_OF:
            continue
        elif len(low) >= LEAST_CHARS or run[0].isupper() or any(ch.isdecimal() for ch in run):
            found.add(low)
    return frozenset(found - {MASK})


def every_word(text: str) -> frozenset[str]:
    """Return every word of *text*, and its signs."""
    return distinctive_words(text) | {run.casefold() for run in _RUN.findall(text)}


def remove_unsupported(
    view: WriteView, gone: Iterable[str], removed: Removed, now_ms: int, detectors: Sequence[Detector] = ()
) -> None:
    """
    Delete the user's facts and rejected claims that hold a word which no message says any more, and redraft summaries.

    A model is shown known facts beside the messages of a chunk, so its summary may hold words of other messages.

    Args:
        view: the user, in the transaction that has changed the messages already.
        gone: the contents that were erased.
        removed: what is deleted is added to it.
        now_ms: the current time.
        detectors: find what summaries must not hold, beside the built-in ones.
    """
    every_subject = view.at(None, None)
    lost = frozenset[str]().union(*map(distinctive_words, gone))
    find_erased = [(row, _fact_words(row) & lost) for row in every_subject.all_facts()]
    find_erased = [(row, words) for row, words in find_erased if words]
    refused = list(_rejected_with(view, lost))
    told = list(_summaries_with(view, lost))
    stories = [
        (row.subject, line, every_word(line.text) & lost) for row in every_subject.stories() for line in row.lines
    ]
    missing = set().union(*(words for _, words in find_erased), *(words for *_, words in (*refused, *told, *stories)))
    if not missing:
        return
    for content in _message_contents(view):
        missing -= every_word(content)
        if not missing:
            return
    for row, words in find_erased:
        current = every_subject.fact(row.fact.id) if words & missing else None
        if current is not None:
            delete_fact(every_subject, current, removed, now_ms, revive=True)
    for subject in sorted({subject for subject, _, words in stories if words & missing}):
        count_cut(view.at(subject, None).cut_story(lambda line: bool(every_word(line.text) & missing)), removed)
        order_story(view, subject, now_ms)
    for here, seq, words in refused:
        if words & missing:
            removed.count("refused", here.remove_rejected(seq, seq))
    for place, found in groupby((one for one in told if one[2] & missing), key=lambda one: one[0]):
        here, seqs = view.at(*place), sorted({seq for _, seq, _ in found})
        rows = here.summary_rows()
        messages: dict[int, Message] = {}
        for summary in affected_summaries(rows, seqs):
            inside = here.messages(start_seq=summary.start_seq, end_seq=summary.end_seq) if summary.level == 1 else []
            messages.update((message.seq, message) for message in mask_messages(inside, detectors))
        replace_summaries(here, rows, summary_drafts(rows, seqs, messages), seqs, removed, now_ms)


def _summaries_with(view: WriteView, lost: frozenset[str]) -> Iterator[tuple[Place, int, frozenset[str]]]:
    """Yield place, first message and lost words of each summary of the user, older versions included, that holds any."""
    for subject, conversation, start_seq, text in view.at(None, None).summary_words() if lost else ():
        words = every_word(text) & lost
        if words:
            yield (subject, conversation), start_seq, words


def _fact_words(row: FactRow) -> frozenset[str]:
    fact = row.fact
    return every_word(fact.value if fact.kind == "attribute" else f"{fact.text} {fact.value}")


def _rejected_with(view: WriteView, lost: frozenset[str]) -> Iterator[tuple[WriteView, int, frozenset[str]]]:
    for row in view.at(None, None).conversations():
        here = view.at(row.subject, row.conversation)
        for one in here.rejected(limit=2**62):
            claim = one.candidate
            words = every_word(f"{claim.value} {claim.text} {claim.quote}") & lost
            if words:
                yield here, claim.seq, words


def _message_contents(view: ReadView) -> Iterator[str]:
    """Return the current content of every message of the user."""
    for row in view.at(None, None).conversations():
        here = view.at(row.subject, row.conversation)
        for first in range(1, row.next_seq, _PAGE):
            yield from (m.content for m in here.messages(start_seq=first, limit=_PAGE))


def affected_summaries(rows: Sequence[SummaryRow], seqs: Sequence[int]) -> list[Summary]:
    """Return the live summaries whose range holds any of the messages *seqs*, lowest level first."""
    hit = [r.summary for r in rows if r.live and _covers_any(r.summary, seqs)]
    return sorted(hit, key=lambda summary: (summary.level, summary.start_seq))


def summary_drafts(
    rows: Sequence[SummaryRow], seqs: Sequence[int], messages: Mapping[int, Message]
) -> dict[str, SummaryDraft]:
    """
    Draft each affected summary from what remains, level by level, by its id.

    Args:
        rows: all summaries of the conversation.
        seqs: the messages that change.
        messages: what remains in the ranges of the affected level-1 summaries, secrets masked.
    """
    found: dict[str, SummaryDraft] = {}
    live = {row.summary.id: row.summary for row in rows if row.live}
    for summary in affected_summaries(rows, seqs):
        if summary.level == 1:
            inside = [messages[seq] for seq in range(summary.start_seq, summary.end_seq + 1) if seq in messages]
            found[summary.id] = summarize_chunk(inside)
            continue
        children = [
            _with_draft(child, found[child.id]) if child.id in found else child
            for child in live.values()
            if child.parent == summary.id
        ]
        found[summary.id] = replace(summarize_level(children), exchanges=sum(child.exchanges for child in children))
    return found


def replace_summaries(
    view: WriteView,
    rows: Sequence[SummaryRow],
    drafts: Mapping[str, SummaryDraft],
    seqs: Sequence[int],
    removed: Removed,
    now_ms: int,
) -> None:
    """Replace the affected summaries of the view's conversation and delete older versions of their ranges."""
    subject, name = view.scope.subject or SELF, view.scope.conversation or ""
    doomed = [row for row in rows if row.summary.id in drafts or (not row.live and _covers_any(row.summary, seqs))]
    if not doomed:
        return
    removed.count("summaries", len(doomed))
    removed.texts += [row.summary.text for row in doomed]
    view.remove_docs(subject, "summary", [row.doc for row in doomed if row.live])
    count_cut(view.remove_summaries([row.summary for row in doomed]), removed)
    order_story(view, subject, now_ms)
    names = {summary_id: new_id("sum", now_ms) for summary_id in drafts}
    kept = [row.summary for row in rows if row.live and row.summary.id not in drafts]
    rewritten: dict[str, Summary] = {}
    for old in sorted((row.summary for row in doomed if row.live), key=lambda summary: summary.level):
        below = [row.summary for row in rows if row.live and row.summary.parent == old.id]
        first_at, last_at = _times_of(view, old, [rewritten.get(child.id, child) for child in below])
        children = [names.get(child.id, child.id) for child in below]
        new = replace(
            _with_draft(old, drafts[old.id]),
            id=names[old.id],
            version=old.version + 1,
            parent=names.get(old.parent or "", old.parent),
            children=tuple(children),
            created_at=from_ms(now_ms),
            first_at=first_at,
            last_at=last_at,
        )
        rewritten[old.id] = new
        (last,) = view.message_rows(start_seq=old.end_seq, end_seq=old.end_seq)
        at_ms = to_ms(last.message.at) if last.message.at else now_ms
        doc = into_index(view, new, subject, at_ms, now_ms)
        view.add_summary(new, doc, range(new.start_seq, new.end_seq + 1) if new.level == 1 else ())
        if new.level == 1:
            view.add_derivations([Derivation("summary", new.id, "message", subject, name, new.start_seq, new.end_seq)])
        view.set_parent([child.id for child in kept if child.parent == old.id], new.id)


def _times_of(view: WriteView, summary: Summary, below: Sequence[Summary]) -> tuple[datetime | None, datetime | None]:
    """Return the times of the first and the last message that remain in a summary's range."""
    if summary.level == 1:
        inside = view.messages(start_seq=summary.start_seq, end_seq=summary.end_seq)
        times = [message.at for message in inside if message.at is not None]
    else:
        times = [at for child in below for at in (child.first_at, child.last_at) if at is not None]
    return min(times, default=None), max(times, default=None)


def count_cut(lines: Sequence[StoryLine], removed: Removed) -> None:
    """Count the lines of a story that were deleted, because what they rest on was."""
    if lines:
        removed.count("story lines", len(lines))
        removed.texts += [line.text for line in lines]


def _covers_any(summary: Summary, seqs: Sequence[int]) -> bool:
    return any(summary.start_seq <= seq <= summary.end_seq for seq in seqs)


def _with_draft(summary: Summary, draft: SummaryDraft) -> Summary:
    return replace(
        summary,
        text=draft.text,
        themes=draft.themes,
        concerns=draft.concerns,
        actions=draft.actions,
        exchanges=draft.exchanges,
        source=draft.source,
        stale=False,
    )
