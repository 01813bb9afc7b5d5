"""
Edit and erase: what was said goes, and whatever rested on it goes or is told anew with it.

Each operation is one transaction.  It raises the user's epoch, so work that began before it can
write nothing any more.  What takes time, telling summaries anew, is done before, from a snapshot; the
transaction looks whether that snapshot still holds and otherwise everything is worked out again.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby

from ..clock import from_ms, new_id, to_ms
from ..config import Config
from ..digest.summarize import SummaryDraft, summarize_chunk, summarize_level
from ..errors import Conflict, NotFound
from ..ingest import consent
from ..ingest.append import build_document
from ..ingest.prepare import index_message, redact_message
from ..ingest.redact import MASK, mask_message
from ..jobs.facts import ReadFacts, Reading
from ..jobs.summaries import into_index
from ..reconcile.compare import FILLERS, MARK_OF
from ..reconcile.erase import Removed, byte_samples, delete_fact, remove_quotes, undo_retractions
from ..reconcile.learn import learn
from ..reports import ErasureReceipt
from ..scope import SELF, Scope
from ..store import Derivation, ErasedRow, FactRow, MessageRow, ReadView, Store, SummaryRow, WriteView
from ..types import Evidence, FactChange, Message, Summary

MAX_TRIES = 50
ERASED = "erased"

Place = tuple[str, str]
"""(subject, conversation) of a conversation."""


@dataclass(frozen=True, slots=True)
class ErasureChanges:
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
class ErasurePlan:
    """One moment: the changes, and in each place the summaries and the messages that are told anew."""

    epoch: int
    changes: ErasureChanges
    summaries: Mapping[Place, list[SummaryRow]]
    remaining: Mapping[Place, dict[int, Message]]
    reading: Reading | None = field(default=None, compare=False)


Find = Callable[[ReadView], ErasureChanges]


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
        for _ in range(MAX_TRIES):
            seen = self.store.read(scope, partial(self._look, find=find, reread=reread))
            told = {place: self._drafts(seen, place) for place in seen.changes.messages}
            work = partial(self._apply, find=find, seen=seen, told=told)
            done = self.store.write(scope, work)
            if done is not None:
                fallen, changes = done
                return replace(self.receipt(fallen), changes=tuple(c for c in changes if c.op != "rejected"))
        raise Conflict("others changed this conversation again and again", hint="try again when less is going on")

    def _look(self, view: ReadView, find: Find, reread: int = 0) -> ErasurePlan:
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
                    remaining[place].update((seq, m) for seq, m in rewrites.items() if m is not None and seq in inside)
        reading = None
        if reread:
            message = changes.messages[view.scope.subject or SELF, view.scope.conversation or ""][reread]
            row = view.conversation()
            if message is not None and row is not None and row.extracted_seq >= reread and message.role == "user":
                reading = self.reader.reading_of(view, message)
        return ErasurePlan(view.user().epoch, changes, summaries, remaining, reading)

    def _drafts(self, seen: ErasurePlan, place: Place) -> dict[str, SummaryDraft]:
        hide = self.config.detectors
        messages = {seq: mask_message(message, hide) for seq, message in seen.remaining[place].items()}
        return summary_drafts(seen.summaries[place], list(seen.changes.messages[place]), messages)

    def _apply(
        self, view: WriteView, find: Find, seen: ErasurePlan, told: Mapping[Place, Mapping[str, SummaryDraft]]
    ) -> tuple[Removed, list[FactChange]] | None:
        if self._look(view, find) != seen:
            return None
        fallen, now_ms, everybody = Removed(), self.now_ms(), view.at(None, None)
        gone: list[ErasedItem] = []
        texts: list[str] = []
        for row in seen.changes.facts:
            current = everybody.fact(row.fact.id)
            if current is not None:
                gone.append(ErasedItem(everybody.scope, FACT, fact=row.fact.id))
                delete_fact(everybody, current, fallen, now_ms, revive=False)
        for place, rewrites in seen.changes.messages.items():
            here = view.at(*place)
            for seq, before, after in self._rewrite(here, rewrites, seen.changes.whole, fallen, now_ms):
                texts.append(before)
                gone.append(erased_message(here.scope, seq, before, after))
            replace_summaries(here, seen.summaries[place], told[place], list(rewrites), fallen, now_ms)
            self.order_vectors(here, now_ms)
        record_erased(view, gone, now_ms)
        remove_unsupported(view, texts, fallen, now_ms)
        if seen.changes.refusals:
            fallen.count("refused", view.remove_all_rejected())
        finish_erasure(view, now_ms)
        changes: list[FactChange] = []
        if seen.reading is not None:
            accepted, refused = self.reader.claims(view.scope, seen.reading)
            changes = learn(
                view, accepted, refused, self.reader.registry, new_id=lambda: new_id("fact", now_ms), now_ms=now_ms
            )
        return fallen, changes

    def _rewrite(
        self, view: WriteView, rewrites: Mapping[int, Message | None], whole: bool, fallen: Removed, now_ms: int
    ) -> list[tuple[int, str, str | None]]:
        """Put the messages in place; ``(number, what it said, what it says now)`` of each."""
        seqs, changed = sorted(rewrites), []
        subject = view.scope.subject or SELF

        def gone(evidence: Evidence) -> bool:
            new = rewrites[evidence.seq]
            return whole or new is None or new.content[evidence.start : evidence.end] != evidence.quote

        if whole:
            undo_retractions(view, seqs, now_ms)
        remove_quotes(view, seqs, gone, fallen, now_ms)
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
        item = index_message(row.message, from_ms(now_ms), self.config.language, self.config.detectors)
        view.save_user(replace(user, next_doc=user.next_doc + 1, version=user.version + 1), now_ms)
        view.rewrite_message(row)
        view.add_docs([build_document(row, item, subject)])
        view.add_postings((subject, "message", term, row.doc, count) for term, count in item.terms.items())

    def order_vectors(self, view: WriteView, now_ms: int) -> None:
        """Have the new documents of the view's conversation embedded, unless the user paused memory."""
        row, chosen = view.conversation(), [(c.subject, c.state) for c in view.consent()]
        if self.reader.embeds and row is not None and consent.effective_consent(chosen, row.subject) == "active":
            view.want("embed", "", wanted=row.next_seq - 1, run_at_ms=now_ms, now_ms=now_ms)

    def receipt(self, fallen: Removed) -> ErasureReceipt:
        """Scrub the store, look for traces of what fell, and say how far it is gone."""
        self.forget_caches()
        if not fallen.rows:
            return ErasureReceipt({}, "E1", why="nothing was there to erase")
        sought = byte_samples(fallen)
        found = self.store.scrub(sought)
        if not sought and not found.why:
            return ErasureReceipt(dict(fallen.rows), "E1", why="it was too short to be told from other bytes")
        level = "E1" if found.why else "E2"
        at = from_ms(self.now_ms()) if found.searched else None
        return ErasureReceipt(dict(fallen.rows), level, at, found.why)  # type: ignore[arg-type]


def finish_erasure(view: WriteView, now_ms: int) -> None:
    """What every erasure does last: work that began before it writes nothing, no prefix is remembered."""
    user = view.user()
    view.save_user(replace(user, version=user.version + 1, epoch=user.epoch + 1), now_ms)
    view.remove_prefixes()
    view.release_jobs(now_ms)


def change_message(seq: int, rewrite: Callable[[Message], Message | None]) -> Find:
    """The changes to message *seq* of the view's conversation."""

    def find(view: ReadView) -> ErasureChanges:
        row = view.conversation()
        found = view.messages(start_seq=seq, end_seq=seq) if row is not None else []
        if row is None or not found:
            raise NotFound(f"there is no message {seq} in this conversation", hint="load() lists them")
        return ErasureChanges({(row.subject, row.conversation): {seq: rewrite(found[0])}})

    return find


def with_content(message: Message, content: str, config: Config) -> Message:
    """A message with other words: what else it held of the old ones goes."""
    new = replace(message, content=content, meta={k: v for k, v in message.meta.items() if k != "parts"})
    return redact_message(new, config.detectors) if config.redact_messages else new


LEAST_CHARS = 4  # shorter words count when they are written like a name or hold a digit
WIDE = 0x2E80
_RUN = re.compile(r"\w+")
_PAGE = 500


def distinctive_words(text: str) -> frozenset[str]:
    """The words of *text* that could give something away: names, numbers, long words, signs; pairs of wide characters."""
    found = {sign for sign in text if unicodedata.category(sign)[0] in "SC" and not sign.isspace()}
    for run in _RUN.findall(text):
        low = run.casefold()
        if any(ord(ch) >= WIDE for ch in run):
            found.update(low[at : at + 2] for at in range(max(1, len(low) - 1)))
        elif low in FILLERS or low in MARK_OF:
            continue
        elif len(low) >= LEAST_CHARS or run[0].isupper() or any(ch.isdigit() for ch in run):
            found.add(low)
    return frozenset(found - {MASK})


def every_word(text: str) -> frozenset[str]:
    """As `distinctive_words`, whatever the word."""
    runs = [run.casefold() for run in _RUN.findall(text)]
    return distinctive_words(text) | frozenset(runs)


def remove_unsupported(view: WriteView, gone: Iterable[str], fallen: Removed, now_ms: int) -> None:
    """
    Drop the user's facts and refused claims that hold a word which no message says any more.

    Args:
        view: of the user, inside the transaction in which the messages have changed already.
        gone: the contents that were erased.
        fallen: what went is added to it.
        now_ms: when.
    """
    everybody = view.at(None, None)
    lost = frozenset[str]().union(*map(distinctive_words, gone))
    find_erased = [(row, _fact_words(row) & lost) for row in everybody.facts_ever()]
    find_erased = [(row, words) for row, words in find_erased if words]
    refused = list(_rejected_with(view, lost))
    doubted = set().union(*(words for _, words in find_erased), *(words for *_, words in refused))
    if not doubted:
        return
    for content in _message_contents(view):
        doubted -= every_word(content)
        if not doubted:
            return
    for row, words in find_erased:
        current = everybody.fact(row.fact.id) if words & doubted else None
        if current is not None:
            delete_fact(everybody, current, fallen, now_ms, revive=True)
    for here, seq, words in refused:
        if words & doubted:
            fallen.count("refused", here.remove_rejected(seq, seq))


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
    """What every message of the user says now."""
    for row in view.at(None, None).conversations():
        here = view.at(row.subject, row.conversation)
        for first in range(1, row.next_seq, _PAGE):
            yield from (m.content for m in here.messages(start_seq=first, limit=_PAGE))


def affected_summaries(rows: Sequence[SummaryRow], seqs: Sequence[int]) -> list[Summary]:
    """The live summaries whose range holds any of the messages *seqs*, lowest level first."""
    hit = [r.summary for r in rows if r.live and _covers_any(r.summary, seqs)]
    return sorted(hit, key=lambda summary: (summary.level, summary.start_seq))


def summary_drafts(
    rows: Sequence[SummaryRow], seqs: Sequence[int], messages: Mapping[int, Message]
) -> dict[str, SummaryDraft]:
    """
    What each affected summary says now, by its id.

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
    told: Mapping[str, SummaryDraft],
    seqs: Sequence[int],
    fallen: Removed,
    now_ms: int,
) -> None:
    """Replace the affected summaries of the view's conversation; older versions of their ranges go for good."""
    subject, name = view.scope.subject or SELF, view.scope.conversation or ""
    doomed = [row for row in rows if row.summary.id in told or (not row.live and _covers_any(row.summary, seqs))]
    if not doomed:
        return
    fallen.count("summaries", len(doomed))
    fallen.texts += [row.summary.text for row in doomed]
    view.remove_docs(subject, "summary", [row.doc for row in doomed if row.live])
    view.remove_summaries([row.summary for row in doomed])
    names = {summary_id: new_id("sum", now_ms) for summary_id in told}
    kept = [row.summary for row in rows if row.live and row.summary.id not in told]
    for old in sorted((row.summary for row in doomed if row.live), key=lambda summary: summary.level):
        below = [row.summary for row in rows if row.live and row.summary.parent == old.id]
        children = [names.get(child.id, child.id) for child in below]
        new = replace(
            _with_draft(old, told[old.id]),
            id=names[old.id],
            version=old.version + 1,
            parent=names.get(old.parent or "", old.parent),
            children=tuple(children),
            created_at=from_ms(now_ms),
        )
        (last,) = view.stored(start_seq=old.end_seq, end_seq=old.end_seq)
        at_ms = to_ms(last.message.at) if last.message.at else now_ms
        doc = into_index(view, new, subject, at_ms, now_ms)
        view.add_summary(new, doc, range(new.start_seq, new.end_seq + 1) if new.level == 1 else ())
        if new.level == 1:
            view.add_derivations([Derivation("summary", new.id, "message", subject, name, new.start_seq, new.end_seq)])
        view.set_parent([child.id for child in kept if child.parent == old.id], new.id)


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


USER, SUBJECT, CONVERSATION, MESSAGE, WORDS, FACT = "user", "subject", "conversation", "message", "words", "fact"
KINDS = (USER, SUBJECT, CONVERSATION, MESSAGE, WORDS, FACT)


@dataclass(frozen=True, slots=True)
class ErasedItem:
    """One thing that an erasure takes away; see `holdfast.store.ErasedRow`."""

    scope: Scope
    kind: str
    seq: int = 0
    fact: str = ""
    spans: tuple[tuple[int, int], ...] = ()


@dataclass(slots=True)
class ErasedButPresent:
    """What one user's memory in an older copy holds that was erased since."""

    whole: bool = False
    subjects: list[str] = field(default_factory=list)
    conversations: list[Scope] = field(default_factory=list)
    messages: dict[Scope, list[ErasedRow]] = field(default_factory=dict)
    facts: list[str] = field(default_factory=list)

    def counts(self) -> dict[str, int]:
        """How many of each kind."""
        found = {
            USER: int(self.whole),
            SUBJECT: len(self.subjects),
            CONVERSATION: len(self.conversations),
            MESSAGE: sum(len({row.seq for row in rows}) for rows in self.messages.values()),
            FACT: len(self.facts),
        }
        return {kind: number for kind, number in found.items() if number}


def place_digest(key: str, scope: Scope) -> str:
    """The digest of a user, of one of their subjects, or of a conversation."""
    names = [scope.org, scope.bot, scope.user, scope.subject, scope.conversation]
    return hmac.new(bytes.fromhex(key), json.dumps(names).encode(), hashlib.sha256).hexdigest()


def record_erased(view: WriteView, gone: Iterable[ErasedItem], now_ms: int) -> None:
    """Write into the ledger what the transaction erases."""
    found = list(gone)
    if found:
        key = view.ledger_key()
        view.add_erased(
            [
                ErasedRow(
                    new_id("gone", now_ms), place_digest(key, one.scope), one.kind, now_ms, one.seq, one.fact, one.spans
                )
                for one in found
            ]
        )


def erased_message(scope: Scope, seq: int, before: str, after: str | None) -> ErasedItem:
    """What became of one message: some words of it were blanked, or all of it went."""
    spans = None if after is None else blanked_spans(before, after)
    return ErasedItem(scope, MESSAGE, seq) if spans is None else ErasedItem(scope, WORDS, seq, spans=spans)


def blanked_spans(before: str, after: str) -> tuple[tuple[int, int], ...] | None:
    """The offsets that were blanked in a text; ``None`` when more than that has changed."""
    if len(before) != len(after) or any(a != b and b != MASK for a, b in zip(before, after, strict=True)):
        return None
    changed = [i for i, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]
    runs = [[i for _, i in run] for _, run in groupby(enumerate(changed), key=lambda pair: pair[1] - pair[0])]
    return tuple((run[0], run[-1] + 1) for run in runs)


def blank_spans(message: Message, spans: Iterable[tuple[int, int]]) -> Message:
    """The message with those words blanked, as many characters as before."""
    content = message.content
    for start, end in spans:
        if start > end:
            continue
        kept = "".join(char if char == "\n" else MASK for char in content[start:end])
        content = content[:start] + kept + content[end:]
    return replace(message, content=content, meta={k: v for k, v in message.meta.items() if k != "parts"})


def find_erased(view: ReadView, key: str, places: Mapping[str, Sequence[ErasedRow]]) -> ErasedButPresent:
    """
    What of a ledger, by place, the user of *view* still holds here.

    A place of which nothing is there counts for nothing: it was made after this copy, or is gone from it.
    """
    user, found = view.scope.about(None), ErasedButPresent()
    rows = places.get(place_digest(key, user), ())
    found.whole = any(row.kind == USER for row in rows)
    if found.whole:
        return found
    found.facts = [row.fact for row in rows if row.kind == FACT and view.fact(row.fact) is not None]
    there = view.conversations()
    subjects = sorted({row.subject for row in there} | {row.fact.subject for row in view.facts_ever()} | {SELF})
    for subject in subjects:
        if any(row.kind == SUBJECT for row in places.get(place_digest(key, user.about(subject)), ())):
            found.subjects.append(subject)
    for one in there:
        place = user.about(one.subject).within(one.conversation)
        noted = places.get(place_digest(key, place), ())
        if one.subject in found.subjects or not noted:
            continue
        if any(row.kind == CONVERSATION for row in noted):
            found.conversations.append(place)
            continue
        still = [row for row in noted if _still_says(view.at(one.subject, one.conversation), row)]
        if still:
            found.messages[place] = still
    return found


def _still_says(view: ReadView, row: ErasedRow) -> bool:
    """Whether a message still says what was erased of it."""
    said = view.messages(start_seq=row.seq, end_seq=row.seq)
    if not said:
        return False
    return row.kind == MESSAGE or blank_spans(said[0], row.spans).content != said[0].content


def rows_by_place(rows: Iterable[ErasedRow]) -> dict[str, list[ErasedRow]]:
    """The rows of each place."""
    found: dict[str, list[ErasedRow]] = {}
    for row in rows:
        found.setdefault(row.place, []).append(row)
    return found


def spans_by_message(rows: Iterable[ErasedRow]) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """``(number, offsets)`` of the messages of which words were blanked."""
    found: dict[int, list[tuple[int, int]]] = {}
    for row in rows:
        if row.kind == WORDS:
            found.setdefault(row.seq, []).extend(row.spans)
    yield from sorted(found.items())
