"""
Rebuilding of one layer of a conversation, range by range, and the way back.

Each range is one transaction, so a process that is killed leaves each range either as it was or rebuilt, and the next
call finds all of them.  The previous rows are kept: an older version of a summary, a fact that ended as ``rebuilt``.  A
``rebuilt`` row names both sides, so that a rebuild can be reverted.  A model is called once for a range: when the write
meets another one it is repeated with the same answer, as long as the model would be shown the same again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from functools import partial

from ..clock import from_ms, new_id, to_ms
from ..digest.summarize import SUMMARY_SOURCE, SummaryDraft, summarize_chunk, summarize_level
from ..errors import BadInput, ConfigError, Conflict, NotFound
from ..ingest.append import advance_reading
from ..ingest.redact import mask_messages
from ..llm.protocol import ModelError
from ..reconcile.archive import request_upkeep
from ..reconcile.decide import NEVER_HELD, Claim
from ..reconcile.learn import WORDS_ALONE, MatchHints, Rereading, facts_resting_on, relearn, undo_relearn
from ..reports import DigestReport, RebuildReport, Rebuilt
from ..scope import SELF, Scope
from ..store import (
    Derivation,
    DocRow,
    EpisodeRangeRow,
    ReadView,
    RebuildRow,
    Side,
    SummaryRow,
    WriteView,
    effective_consent,
)
from ..text import dataclass
from ..text.terms import count_tokens
from ..types import BY_HAND_CONVERSATION, Candidate, Fact, FactKind, Job, Message, Summary
from .facts import FactReader, known_before
from .model_client import CallDeferred, CallTotals
from .model_reader import Excerpt, ModelReader, read_upto
from .queue import Dependencies, range_of, scope_of
from .summaries import into_index, order_story
from .upkeep import BATCH_DOCS, EmbedDocs, add_vectors, docs_in_range

LAYERS = ("facts", "episodes", "summaries", "meta", "vectors", "chunk")
CHUNK_LAYERS = ("summaries", "facts", "episodes")
"""What the layer ``chunk`` stands for: all that is made from the messages themselves, as one rebuild."""
PROMPTS = {
    "summaries": "chunk_summary",
    "meta": "meta_summary",
    "episodes": "episodes",
    "facts": "fact_extraction",
    "character": "character",
    "story": "story",
}
FACT_KINDS: tuple[FactKind, ...] = ("attribute", "statement")
EPISODE_KINDS: tuple[FactKind, ...] = ("episode",)
MAX_TRIES = 50
BATCH_MESSAGES = 200  # read for facts at a time by the rules
LINE_TOKENS = 24  # at most, for rendering a line beside its words
SHOWN_TOKENS = 1_500  # at most, shown beside the range: known facts, messages before it

Progress = Callable[[int, int], None]
"""Called with the number of finished ranges and of all."""
Inputs = tuple[object, ...]


class SourcesChanged(Conflict):
    """The messages of a range changed while the model read them; its answer is discarded."""

    def __init__(self) -> None:
        super().__init__("the messages changed while the model read them", hint="rebuild this range again")


class _Trial(Exception):
    """Ends the transaction of a trial, so that nothing of it is written; carries what it found."""

    def __init__(self, found: dict[MessageRange, tuple[Summary | Fact, ...]]) -> None:
        super().__init__("a trial writes nothing")
        self.found = found


@dataclass(frozen=True, slots=True)
class MessageRange:
    """Messages that are rebuilt at once; ``level`` is that of their summary, 0 for other layers."""

    start_seq: int
    end_seq: int
    level: int = 0


@dataclass(frozen=True, slots=True)
class RangeChange:
    """The rows of one range before and after its rebuild."""

    before: tuple[Summary | Fact, ...]
    after: tuple[Summary | Fact, ...]


@dataclass(frozen=True, slots=True)
class RebuiltPart:
    """The id of a rebuild, and the number of a range in it."""

    id: str
    part: int


@dataclass(frozen=True, slots=True)
class SummarySources:
    """A live summary and what it is made from, in one snapshot: messages, or summaries of the level below."""

    epoch: int
    row: SummaryRow | None
    messages: list[Message]
    children: list[Summary]

    @property
    def inputs(self) -> Inputs:
        """Return what a model is shown of it."""
        return tuple(self.messages), tuple((child.id, child.text) for child in self.children)


@dataclass(frozen=True, slots=True)
class RangeReading:
    """
    The claims read in one range, in one snapshot.

    ``episodes`` is the row that says that the range was read for episodes; ``inputs`` is what a model was shown.
    """

    epoch: int
    source: str
    claims: Sequence[Claim] = ()
    refused: Sequence[tuple[Candidate, str]] = ()
    hints: MatchHints = WORDS_ALONE
    episodes: EpisodeRangeRow | None = None
    inputs: Inputs = ()


@dataclass(frozen=True, slots=True)
class RangeWriter:
    """
    The maker of derived rows for one range at a time: a model, or the built-in rules when ``reader`` is ``None``.

    It is called with no transaction open.  What was made of a range before is not shown to it, so that it reads as if
    for the first time.  Calls of a model may raise `ModelError`.
    """

    fact_reader: FactReader
    reader: ModelReader | None = None

    @property
    def name(self) -> str:
        """The name of the model, or of the rules."""
        return SUMMARY_SOURCE if self.reader is None else self.reader.client.model.name

    @property
    def batch_messages(self) -> int:
        """The number of messages that are read for facts at a time, at most."""
        return BATCH_MESSAGES if self.reader is None else 2 * self.reader.config.extract_user_turns

    def makes(self, layer: str) -> bool:
        """Whether rows of this layer are made: the rules make no episodes."""
        return self.reader is not None or layer != "episodes"

    def summarize(self, scope: Scope, level: int, sources: SummarySources) -> SummaryDraft:
        """Summarize the messages of a chunk, or the summaries of a level; in economy mode levels by the rules."""
        if level == 1:
            if self.reader is None:
                return summarize_chunk(sources.messages)
            return self.reader.summarize_chunk(scope, sources.messages)[0]
        if self.reader is None or self.reader.config.economy:
            return summarize_level(sources.children)
        return self.reader.summarize_level(scope, sources.children)[0]

    def read_facts(self, scope: Scope, span: tuple[int, int]) -> RangeReading:
        """Read a range for facts; a cut answer is continued with another call from where it ended."""
        if self.reader is None:
            rules = self.fact_reader
            seen = rules.deps.store.read(scope, lambda view: rules.input_of_range(view, *span))
            claims, refused = rules.claims(scope, seen)
            return RangeReading(seen.epoch, SUMMARY_SOURCE, claims, refused, rules.hints_for_claims(claims))
        first, last = span
        source = self.reader.client.source(self.reader.client.prompt(scope, "fact_extraction"))
        claims, refused = [], []
        whole = self._excerpt(self.reader, scope, span)
        while first <= last:
            excerpt = replace(whole, messages=[m for m in whole.messages if m.seq >= first])
            if not excerpt.has_user:
                break
            answer, extraction, facts = self.reader.read_facts(scope, excerpt)
            claims += facts.accepted
            refused += facts.refused
            first = read_upto(excerpt, extraction, cut=answer.finish == "length") + 1
        return RangeReading(
            whole.epoch, source, claims, refused, self.fact_reader.hints_for_claims(claims), inputs=whole.inputs
        )

    def read_character(self, scope: Scope, span: tuple[int, int]) -> RangeReading:
        """Read a range for facts about the character that the assistant plays."""
        if self.reader is None:
            return RangeReading(self.fact_reader.deps.store.read(scope, lambda view: view.user().epoch), SUMMARY_SOURCE)
        excerpt = self._excerpt(self.reader, scope, span)
        facts = self.reader.read_character(scope, excerpt)
        source = self.reader.client.source(self.reader.client.prompt(scope, "character"))
        return RangeReading(excerpt.epoch, source, facts.accepted, facts.refused, facts.hints, inputs=excerpt.inputs)

    def read_episodes(self, scope: Scope, span: tuple[int, int]) -> RangeReading:
        """Read a range for episodes."""
        if self.reader is None:
            return RangeReading(self.fact_reader.deps.store.read(scope, lambda view: view.user().epoch), SUMMARY_SOURCE)
        excerpt = self._excerpt(self.reader, scope, span)
        found, _ = self.reader.read_episodes(scope, excerpt, span)
        facts, row = found.facts, found.row
        return RangeReading(excerpt.epoch, row.source, facts.accepted, facts.refused, facts.hints, row, excerpt.inputs)

    def read_again(
        self,
        scope: Scope,
        span: tuple[int, int],
        reading: RangeReading,
        read: Callable[[Scope, tuple[int, int]], RangeReading],
    ) -> RangeReading:
        """
        Return the reading for another attempt to write it: by the rules anew, by a model the same answer.

        Raises:
            SourcesChanged: the model would be shown something else now.
        """
        if self.reader is None:
            return read(scope, span)
        excerpt = self._excerpt(self.reader, scope, span)
        if excerpt.inputs != reading.inputs:
            raise SourcesChanged
        return replace(reading, epoch=excerpt.epoch)

    def estimate(self, layer: str, scope: Scope, texts: Sequence[str]) -> CallTotals:
        """Return what rebuilding a range from these texts would take at most."""
        reader = self.reader
        if reader is None or not texts or (layer in ("meta", "story") and reader.config.economy):
            return CallTotals()
        prompt = reader.client.prompt(scope, PROMPTS[layer])
        fixed = count_tokens(prompt.system) + SHOWN_TOKENS
        if layer in ("facts", "character"):
            fixed += count_tokens(self.fact_reader.registry.listing())
        limit = reader.config.message_char_limit if layer not in ("meta", "story") else None
        shown = fixed + sum(count_tokens(text[:limit]) + LINE_TOKENS for text in texts)
        most = reader.config.max_output_tokens
        return CallTotals(1, shown + most, reader.client.price(shown, most))

    def take_totals(self) -> CallTotals:
        """Return the totals of this thread's calls since the last time."""
        return CallTotals() if self.reader is None else self.reader.client.take_totals()

    def _excerpt(self, reader: ModelReader, scope: Scope, span: tuple[int, int]) -> Excerpt:
        def look(view: ReadView) -> Excerpt:
            excerpt = reader.excerpt(view, *span)
            known = known_before(view, excerpt.facts, span[0])
            earlier = [summary for summary in view.summaries() if summary.end_seq < span[0]]
            injected = {row.fact.text for row in known} | {line for s in earlier for line in s.text.splitlines()}
            return replace(excerpt, facts=known, injected=frozenset(injected))

        return reader.client.store.read(scope, look)


@dataclass(slots=True)
class RebuildRun:
    """The result of one rebuild so far; ``kept`` are facts that it has found again."""

    before: dict[str, Summary | Fact] = field(default_factory=dict)
    after: dict[str, Summary | Fact] = field(default_factory=dict)
    totals: CallTotals = field(default_factory=CallTotals)
    done: list[MessageRange] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    kept: set[str] = field(default_factory=set)

    def add(self, span: MessageRange, change: RangeChange) -> None:
        """Add a finished range."""
        for item in change.before:
            if item.id not in self.after:
                self.before.setdefault(item.id, item)
        for item in change.before:
            self.after.pop(item.id, None)
        self.after.update((item.id, item) for item in change.after)
        self.done.append(span)

    def report(self, layer: str, rebuild_id: str) -> RebuildReport:
        """Return the report of the run."""
        return RebuildReport(
            layer=layer,
            before=tuple(self.before.values()),
            after=tuple(self.after.values()),
            calls=self.totals.calls,
            tokens=self.totals.tokens,
            cost=self.totals.cost,
            id=rebuild_id if self.done else "",
            start_seq=min((span.start_seq for span in self.done), default=0),
            end_seq=max((span.end_seq for span in self.done), default=0),
            ranges=len(self.done),
            errors=tuple(self.errors),
        )


@dataclass(frozen=True, slots=True)
class Rebuilder:
    """The rebuilding of layers in one store, by one writer."""

    deps: Dependencies
    writer: RangeWriter

    def rebuild(
        self, scope: Scope, layer: str, start_seq: int, end_seq: int | None, *, dry_run: bool, progress: Progress | None
    ) -> RebuildReport:
        """Rebuild one layer of the scope's conversation; see `Conversation.rebuild`."""
        self.check(scope, layer, start_seq)
        layers = [one for one in CHUNK_LAYERS if self.writer.makes(one)] if layer == "chunk" else [layer]
        spans = [(one, span) for one in layers for span in self.ranges(scope, one, start_seq, end_seq)]
        if dry_run:
            return self._estimate_all(scope, layer, spans)
        if layer == "vectors":
            return self._rebuild_vectors(scope, [span for _, span in spans], progress)
        run, rebuild_id = RebuildRun(), new_id("reb", self.deps.now_ms())
        begin = {one: span.start_seq for one, span in reversed(spans)}
        for number, (one, span) in enumerate(spans):
            try:
                self._rebuild(scope, one, span, RebuiltPart(rebuild_id, number), begin[one], run)
            except (ModelError, SourcesChanged) as error:
                run.errors.append(f"{span.start_seq}-{span.end_seq}: {error.code}: {error.without_retry()}")
                if is_hopeless(error):
                    break
            finally:
                run.totals += self.writer.take_totals()
            if progress is not None:
                progress(number + 1, len(spans))
        return run.report(layer, rebuild_id)

    def check(self, scope: Scope, layer: str, start_seq: int = 1) -> None:
        """
        Check that a layer can be rebuilt now.

        Raises:
            BadInput, ConfigError, Conflict, NotFound: as `Conversation.rebuild`.
        """
        if layer not in LAYERS:
            raise BadInput(f"there is no layer {layer!r}", hint=f"use {', '.join(LAYERS)}")
        if layer == "vectors" and self.deps.embedder is None:
            raise ConfigError("this memory has no embedder", hint="open it with one")
        if layer != "vectors" and not self.writer.makes(layer):
            raise ConfigError(
                f"the built-in rules make no {layer}", hint="open the memory with llm=…, or name a model with --llm"
            )
        self.deps.store.read(scope, check_active)
        row = self.deps.store.read(scope, lambda view: view.conversation()) if scope.conversation else None
        if scope.conversation and row is None:
            raise NotFound(f"there is no conversation {scope.conversation!r} here", hint="conversations() lists them")
        if row is not None and start_seq >= row.next_seq > 1:
            raise NotFound(f"there is no message {start_seq} here", hint=f"the conversation has {row.next_seq - 1}")

    def ranges(self, scope: Scope, layer: str, start_seq: int = 1, end_seq: int | None = None) -> list[MessageRange]:
        """Return the ranges of a layer that hold any of the messages, in the order of their rebuild."""
        return self.deps.store.read(scope, lambda view: list(self._ranges(view, layer, start_seq, end_seq)))

    def _ranges(self, view: ReadView, layer: str, start_seq: int, end_seq: int | None) -> Iterator[MessageRange]:
        if (row := view.conversation()) is None:
            return
        last = row.next_seq - 1 if end_seq is None else min(end_seq, row.next_seq - 1)
        if layer == "vectors":
            yield from [MessageRange(start_seq, last)] if start_seq <= last else []
        if layer == "vectors" or view.scope.conversation == BY_HAND_CONVERSATION:
            return  # what users wrote by hand was never read from messages, so nothing is read again
        if layer == "facts":
            last, size = min(last, row.extracted_seq), self.writer.batch_messages
            for first in range(start_seq, last + 1, size):
                yield MessageRange(first, min(last, first + size - 1))
            return
        found = [s for s in view.summaries() if s.start_seq <= last and s.end_seq >= start_seq]
        found = [s for s in found if (s.level > 1) == (layer == "meta") and s.level > 0]
        for summary in sorted(found, key=lambda s: (s.level, s.start_seq)):
            yield MessageRange(summary.start_seq, summary.end_seq, summary.level)

    def rebuild_range(self, scope: Scope, layer: str, span: MessageRange) -> CallTotals:
        """Rebuild a single range; return the totals of its calls."""
        part = RebuiltPart(new_id("reb", self.deps.now_ms()), 0)
        self._rebuild(scope, layer, span, part, span.start_seq, RebuildRun())
        return self.writer.take_totals()

    def _rebuild(
        self, scope: Scope, layer: str, span: MessageRange, part: RebuiltPart, begin: int, run: RebuildRun
    ) -> None:
        change: RangeChange | None
        messages = (span.start_seq, span.end_seq)
        if layer == "facts":
            change = self._facts(scope, FACT_KINDS, messages, begin, part, run.kept, self.writer.read_facts)
        elif layer == "episodes":
            read = self.writer.read_episodes
            change = self._facts(scope, EPISODE_KINDS, messages, span.start_seq, part, set(), read)
        else:
            change = self._summary(scope, span.level, span.start_seq, part)
        if change is not None:
            run.add(span, change)

    def _summary(self, scope: Scope, level: int, start_seq: int, part: RebuiltPart) -> RangeChange | None:
        """Summarize again; return ``None`` when there is no such summary any more."""
        draft, inputs = None, None
        for _ in range(MAX_TRIES):
            seen = self.deps.store.read(scope, partial(self.sources, level=level, start_seq=start_seq))
            if seen.row is None:
                return None
            if draft is None or seen.inputs != inputs:
                if draft is not None and self.writer.reader is not None:
                    raise SourcesChanged
                draft, inputs = self.writer.summarize(scope, level, seen), seen.inputs
            change = self.deps.store.write(scope, partial(self._replace_summary, seen=seen, draft=draft, part=part))
            if change is not None:
                return change
        raise _crowded()

    def sources(self, view: ReadView, level: int, start_seq: int) -> SummarySources:
        """Return the live summary of a level that begins at *start_seq*, and what it is made from."""
        epoch, rows = view.user().epoch, view.summary_rows()
        row = next((r for r in rows if r.live and (r.summary.level, r.summary.start_seq) == (level, start_seq)), None)
        if row is None:
            return SummarySources(epoch, None, [], [])
        if level > 1:
            children = [r.summary for r in rows if r.live and r.summary.parent == row.summary.id]
            return SummarySources(epoch, row, [], children)
        found = view.messages(start_seq=row.summary.start_seq, end_seq=row.summary.end_seq)
        masked = mask_messages(found, self.deps.config.detectors)
        return SummarySources(epoch, row, masked, [])

    def _replace_summary(
        self, view: WriteView, seen: SummarySources, draft: SummaryDraft, part: RebuiltPart
    ) -> RangeChange | None:
        if seen.row is None or not is_undisturbed(view, seen.epoch):
            return None
        old = seen.row.summary
        if self.sources(view, old.level, old.start_seq) != seen:
            return None
        now_ms = self.deps.now_ms()
        versions = [row.summary.version for row in view.summary_rows() if _same_range(row.summary, old)]
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
        _retire(view, seen.row, now_ms)
        doc = self._index(view, new, now_ms)
        view.add_summary(new, doc, range(new.start_seq, new.end_seq + 1) if new.level == 1 else ())
        if new.level == 1:
            view.add_derivations([Derivation("summary", new.id, "message", *place, new.start_seq, new.end_seq)])
        _replace_in_tree(view, old, new, [child.id for child in seen.children])
        layer = "summaries" if new.level == 1 else "meta"
        sides = Side((old.id,)), Side((new.id,))
        view.add_rebuild(RebuildRow(part.id, part.part, layer, new.start_seq, new.end_seq, *sides, new.source, now_ms))
        return RangeChange((old,), (new,))

    def _index(self, view: WriteView, summary: Summary, now_ms: int) -> int:
        last = view.messages(start_seq=summary.end_seq, end_seq=summary.end_seq)
        at_ms = to_ms(last[0].at) if last and last[0].at else now_ms
        doc = into_index(view, summary, view.scope.subject or SELF, at_ms, now_ms)
        self._order_vectors(view, now_ms)
        return doc

    def _order_vectors(self, view: WriteView, now_ms: int) -> None:
        row = view.conversation()
        if self.deps.embedder is not None and row is not None:
            view.want("embed", "", wanted=row.next_seq - 1, run_at_ms=now_ms, now_ms=now_ms)

    def _facts(
        self,
        scope: Scope,
        kinds: tuple[FactKind, ...],
        span: tuple[int, int],
        begin: int,
        part: RebuiltPart,
        kept: set[str],
        read: Callable[[Scope, tuple[int, int]], RangeReading],
    ) -> RangeChange:
        """Read a range for facts or episodes again; *begin* is where the whole rebuild began."""
        reading = read(scope, span)
        for _ in range(MAX_TRIES):
            found = Rereading(
                *span,
                begin,
                kinds,
                reading.source,
                reading.claims,
                reading.refused,
                reading.hints,
                self.deps.config.ask_before_learning,
            )
            work = partial(self._replace_facts, reading=reading, found=found, kept=kept, part=part)
            result = self.deps.store.write(scope, work)
            if result is not None:
                change, known = result
                kept |= known
                return change
            reading = self.writer.read_again(scope, span, reading, read)
        raise _crowded()

    def _replace_facts(
        self, view: WriteView, reading: RangeReading, found: Rereading, kept: set[str], part: RebuiltPart
    ) -> tuple[RangeChange, set[str]] | None:
        if not is_undisturbed(view, reading.epoch):
            return None
        row = view.conversation()
        if row is None or row.next_seq <= found.last:
            return RangeChange((), ()), kept  # cleared meanwhile: nothing is left of the range
        now_ms, known, first, last = self.deps.now_ms(), set(kept), found.first, found.last
        layer = "episodes" if found.kinds == EPISODE_KINDS else "facts"
        before = facts_of_range(view, layer, first, last)
        was, became, changes = relearn(
            view, found, known, self.deps.registry, new_id=lambda: new_id("fact", now_ms), now_ms=now_ms
        )
        view.add_rebuild(RebuildRow(part.id, part.part, layer, first, last, was, became, found.source, now_ms))
        if reading.episodes is not None:
            view.add_episode_range(reading.episodes, now_ms)
        elif layer == "facts" and self.writer.reader is not None:
            view.add_read_range(self.writer.name, first, last)
            self._mark_as_read(view, first, last)
        request_upkeep(view, changes, self.deps.config.max_memories, now_ms)
        self._order_vectors(view, now_ms)
        return RangeChange(before, facts_of_range(view, layer, first, last)), known

    def _mark_as_read(self, view: WriteView, first: int, last: int) -> None:
        """Note that the digest need not read a range again that follows on what it had read."""
        row = view.conversation()
        if row is None or not first <= row.read_seq + 1 <= last:
            return
        read, every = view.messages(start_seq=row.read_seq + 1, end_seq=last), self.deps.config.extract_every_user_turns
        view.save_conversation(replace(advance_reading(row, read, every, turns=0), ahead_turns=row.ahead_turns))

    def estimate(self, scope: Scope, layer: str, span: MessageRange) -> CallTotals:
        """Return what rebuilding a range would take at most."""

        def texts(view: ReadView) -> list[str]:
            if layer == "meta":
                return [child.text for child in self.sources(view, span.level, span.start_seq).children]
            return [m.content for m in view.messages(start_seq=span.start_seq, end_seq=span.end_seq)]

        return self.writer.estimate(layer, scope, self.deps.store.read(scope, texts))

    def _estimate_all(self, scope: Scope, layer: str, spans: Sequence[tuple[str, MessageRange]]) -> RebuildReport:
        run = RebuildRun()
        trial = self._try_facts(scope, [span for one, span in spans if one == "facts"])
        for one, span in spans:
            if one != "vectors":
                run.totals += self.estimate(scope, one, span)
            before = self.deps.store.read(scope, partial(self._current, layer=one, span=span))
            run.add(span, RangeChange(before, trial.pop(span, ()) if one == "facts" else ()))
        return replace(run.report(layer, ""), dry_run=True)

    def _try_facts(self, scope: Scope, spans: Sequence[MessageRange]) -> dict[MessageRange, tuple[Summary | Fact, ...]]:
        """Return the facts that each range would hold after a rebuild by the rules; a model is not asked in advance."""
        if self.writer.reader is not None or not spans:
            return {}
        readings = [self.writer.read_facts(scope, (span.start_seq, span.end_seq)) for span in spans]

        def work(view: WriteView) -> None:
            found: dict[MessageRange, tuple[Summary | Fact, ...]] = {}
            kept: set[str] = set()
            for number, (span, reading) in enumerate(zip(spans, readings, strict=True)):
                place = (span.start_seq, span.end_seq, spans[0].start_seq, FACT_KINDS)
                again = Rereading(
                    *place,
                    reading.source,
                    reading.claims,
                    reading.refused,
                    reading.hints,
                    self.deps.config.ask_before_learning,
                )
                result = self._replace_facts(view, reading, again, kept, RebuiltPart("reb_trial", number))
                if result is None:
                    raise _Trial({})  # the messages changed meanwhile: what some ranges would hold tells nothing
                found[span], kept = result[0].after, kept | result[1]
            raise _Trial(found)

        try:
            self.deps.store.write(scope, work)
        except _Trial as trial:
            return trial.found
        return {}

    def _current(self, view: ReadView, layer: str, span: MessageRange) -> tuple[Summary | Fact, ...]:
        if layer in ("facts", "episodes"):
            return facts_of_range(view, layer, span.start_seq, span.end_seq)
        if layer == "vectors":
            return ()
        row = self.sources(view, span.level, span.start_seq).row
        return () if row is None else (row.summary,)

    def _rebuild_vectors(self, scope: Scope, spans: Sequence[MessageRange], progress: Progress | None) -> RebuildReport:
        """Embed the documents of a range again in place; until then the old vectors answer."""
        run = RebuildRun()
        for span in spans:
            docs = self.deps.store.read(scope, partial(docs_in_range, first=span.start_seq, last=span.end_seq))
            for at in range(0, len(docs), BATCH_DOCS):
                self._embed(scope, docs[at : at + BATCH_DOCS])
                if progress is not None:
                    progress(min(at + BATCH_DOCS, len(docs)), len(docs))
            run.done.append(span)
        return run.report("vectors", "")

    def _embed(self, scope: Scope, docs: Sequence[DocRow]) -> None:
        assert self.deps.embedder is not None
        embedding, whole = EmbedDocs(self.deps, self.deps.embedder), scope.about(None)
        while True:
            epoch, texts = self.deps.store.read(whole, lambda view: (view.user().epoch, view.texts(docs)))
            there = [doc for doc in docs if (doc.kind, doc.doc) in texts]
            rows = embedding.embed(there, [texts[doc.kind, doc.doc] for doc in there])
            if self.deps.store.write(scope, partial(self._add_vectors, epoch=epoch, rows=rows)):
                return

    def _add_vectors(self, view: WriteView, epoch: int, rows: Sequence[tuple[DocRow, float, bytes]]) -> bool:
        assert self.deps.embedder is not None
        if not is_undisturbed(view, epoch):
            return False
        add_vectors(view, self.deps.embedder, rows, self.deps.now_ms())
        return True

    def rebuilds(self, scope: Scope) -> list[Rebuilt]:
        """Return the rebuilds of the scope's conversation, oldest first; see `Conversation.rebuilds`."""
        calls: dict[str, list[RebuildRow]] = {}
        for row in self.deps.store.read(scope, lambda view: view.rebuilds()):
            calls.setdefault(row.id, []).append(row)
        return [_listed(rows, [*calls.values()][:number]) for number, rows in enumerate(calls.values())]

    def restore(self, scope: Scope, rebuild_id: str) -> RebuildReport:
        """Revert one rebuild; see `Conversation.restore`."""

        def work(view: WriteView) -> RebuildReport:
            check_active(view)
            parts = [row for row in view.rebuilds() if row.id == rebuild_id]
            if not parts:
                raise NotFound(f"there is no rebuild {rebuild_id!r} here", hint="rebuilds() lists them")
            run, now_ms = RebuildRun(), self.deps.now_ms()
            own_id = new_id("reb", now_ms)
            for number, row in enumerate(_in_revert_order(parts)):
                change = self._revert(view, row, now_ms)
                source = next((item.source for item in change.after), row.source)
                span = (row.start_seq, row.end_seq)
                view.add_rebuild(RebuildRow(own_id, number, row.layer, *span, row.after, row.before, source, now_ms))
                run.add(MessageRange(*span), change)
            return run.report(_layer_of(parts), own_id)

        return self.deps.store.write(scope, work)

    def _revert(self, view: WriteView, row: RebuildRow, now_ms: int) -> RangeChange:
        if row.layer in ("facts", "episodes"):
            before = facts_of_range(view, row.layer, row.start_seq, row.end_seq)
            undo_relearn(view, row.start_seq, row.end_seq, row.after, row.before, now_ms)
            self._order_vectors(view, now_ms)
            after = facts_of_range(view, row.layer, row.start_seq, row.end_seq)
            if row.layer == "episodes":
                source = next((fact.source for fact in after), row.source)
                view.add_episode_range(EpisodeRangeRow(row.start_seq, row.end_seq, len(after), source), now_ms)
            return RangeChange(before, after)
        rows = {found.summary.id: found for found in view.summary_rows()}
        now, then = rows.get(row.after.ids[0]), rows.get(row.before.ids[0])
        if now is None or then is None or not now.live:
            raise Conflict(
                f"messages {row.start_seq} to {row.end_seq} were summarized again, or changed, since then",
                hint="restore the later rebuilds first; what was erased does not come back",
            )
        back = self._swap_versions(view, now, then, list(rows.values()), now_ms)
        return RangeChange((now.summary,), (back,))

    def _swap_versions(
        self, view: WriteView, now: SummaryRow, then: SummaryRow, rows: Sequence[SummaryRow], now_ms: int
    ) -> Summary:
        """Replace *now* by the older version *then*, over the children that are there today."""
        children = [row.summary for row in rows if row.live and row.summary.parent == now.summary.id]
        today = [child.id for child in children]
        stale = set(then.summary.children) != set(today)
        back = replace(then.summary, parent=now.summary.parent, stale=stale)
        _retire(view, now, now_ms)
        view.rewrite_summary(SummaryRow(back, self._index(view, back, now_ms), live=True))
        _replace_in_tree(view, now.summary, back, today)
        return back


@dataclass(frozen=True, slots=True)
class ResummarizeRange:
    """The handler of ``summary`` jobs: a model summarizes a range that the rules summarized in its place."""

    rebuilder: Rebuilder

    def __call__(self, job: Job) -> DigestReport:
        scope, span, report = scope_of(job), range_of(job), DigestReport()
        deps, reader = self.rebuilder.deps, self.rebuilder.writer.reader

        def look(view: ReadView) -> list[MessageRange]:
            found = [s for s in view.summaries() if (s.start_seq, s.end_seq) == span and s.source == SUMMARY_SOURCE]
            return [MessageRange(s.start_seq, s.end_seq, s.level) for s in found]

        for one in deps.store.read(scope, look):
            if reader is not None:
                reader.client.extend_lease(job, scope)
            totals = self.rebuilder.rebuild_range(scope, "summaries" if one.level == 1 else "meta", one)
            report += DigestReport(summaries=1, tokens=totals.tokens)
        deps.store.write(scope, lambda view: view.finish(job, deps.now_ms()))
        return report


def is_hopeless(error: Exception) -> bool:
    """Whether no later call of this run could succeed: a budget is spent, or the setup needs repair."""
    return isinstance(error, CallDeferred) or (isinstance(error, ModelError) and error.setup)


def facts_of_range(view: ReadView, layer: str, first: int, last: int) -> tuple[Fact, ...]:
    """Return the facts of a layer and range that hold or once held."""
    rows = facts_resting_on(view, first, last, EPISODE_KINDS if layer == "episodes" else FACT_KINDS)
    return tuple(row.fact for row in rows if row.fact.ended_because not in NEVER_HELD)


def is_undisturbed(view: ReadView, epoch: int) -> bool:
    """
    Whether nothing was erased since *epoch*.

    Raises:
        Conflict: the user does not want anything written.
    """
    check_active(view)
    return view.user().epoch == epoch


def check_active(view: ReadView) -> None:
    """
    Raise unless memory is active in the scope.

    Raises:
        Conflict: memory is paused, or the user opted out.
    """
    if effective_consent(view.consent(), view.scope.subject) != "active":
        raise Conflict("the user does not want anything written now", hint="resume() first")


def _same_range(one: Summary, other: Summary) -> bool:
    return (one.level, one.start_seq, one.end_seq) == (other.level, other.start_seq, other.end_seq)


def _retire(view: WriteView, row: SummaryRow, now_ms: int) -> None:
    """Make a live summary an older version: not shown, not found, covering nothing; the story is made again."""
    subject = view.scope.subject or SELF
    order_story(view, subject, now_ms)
    view.remove_docs(subject, "summary", [row.doc])
    view.rewrite_summary(replace(row, doc=0, live=False))


def _replace_in_tree(view: WriteView, old: Summary, new: Summary, children: Sequence[str]) -> None:
    """Put *new* in the place of *old*; the summary above is stale unless it was made from just these."""
    if children:
        view.set_parent(children, new.id)
    rows = view.summary_rows()
    above = next((row for row in rows if row.summary.id == old.parent), None)
    if above is not None:
        below = {row.summary.id for row in rows if row.live and row.summary.parent == above.summary.id}
        stale = set(above.summary.children) != below
        view.rewrite_summary(replace(above, summary=replace(above.summary, stale=stale)))


def _in_revert_order(parts: Sequence[RebuildRow]) -> list[RebuildRow]:
    """Order the ranges of a rebuild for its revert: the last first, but lower summaries before those above them."""
    return sorted(parts, key=lambda row: row.part if row.layer == "meta" else -row.part)


def _layer_of(rows: Sequence[RebuildRow]) -> str:
    """Return the layer of a rebuild; several of them are a rebuild of ``chunk``."""
    return rows[0].layer if len({row.layer for row in rows}) == 1 else "chunk"


def _listed(rows: Sequence[RebuildRow], earlier: Sequence[Sequence[RebuildRow]]) -> Rebuilt:
    undone = [old[0].id for old in earlier if any(row.undoes(one) for row in rows for one in old)]
    return Rebuilt(
        id=rows[0].id,
        layer=_layer_of(rows),
        start_seq=min(row.start_seq for row in rows),
        end_seq=max(row.end_seq for row in rows),
        at=from_ms(rows[0].created_at),
        source=rows[-1].source,
        replaced=sum(len(row.before.ids) for row in rows),
        added=sum(len(row.after.ids) for row in rows),
        reverts="".join(undone[-1:]),
    )


def _crowded() -> Conflict:
    return Conflict("others kept changing this conversation", hint="try again when less is going on")
