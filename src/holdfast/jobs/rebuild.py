"""
Rebuild one layer of a conversation, range by range, and put back what stood there before.

Every range is one transaction, so a process that is killed leaves each range as it was or made again,
and the next call finds all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from ..clock import from_ms, new_id
from ..embed.protocol import Embedder
from ..embed.quantize import quantize
from ..errors import BadInput, ConfigError, Conflict, NotFound
from ..ingest.redact import mask_secrets
from ..llm.protocol import ModelError
from ..reconcile.learn import undo_relearn
from ..reports import RebuildReport, Rebuilt
from ..scope import Scope
from ..store import DocRow, EpisodesRow, Partition, ReadView, RebuiltRow, SummaryRow, WriteView
from ..types import Fact, Summary
from .gate import NotNow
from .remake import Made, Mark, Remake, check_active, hang_up, undisturbed, withdraw_summary
from .vectors import BATCH_DOCS
from .writers import Effort

LAYERS = ("facts", "episodes", "summaries", "meta", "vectors")

Progress = Callable[[int, int], None]
"""Called with how many ranges are done and how many there are."""


@dataclass(frozen=True, slots=True)
class Span:
    """What is made again at once: messages ``start_seq`` to ``end_seq``; ``level`` of a summary, 0 otherwise."""

    start_seq: int
    end_seq: int
    level: int = 0


@dataclass(slots=True)
class _Run:
    """What one call has done so far."""

    before: dict[str, Summary | Fact] = field(default_factory=dict)
    after: dict[str, Summary | Fact] = field(default_factory=dict)
    effort: Effort = field(default_factory=Effort)
    done: list[Span] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    kept: set[str] = field(default_factory=set)

    def took(self, span: Span, made: Made) -> None:
        for item in made.before:
            if item.id not in self.after:
                self.before.setdefault(item.id, item)
        for item in made.before:
            self.after.pop(item.id, None)
        self.after.update((item.id, item) for item in made.after)
        self.done.append(span)


@dataclass(frozen=True, slots=True)
class Rebuilder:
    """Rebuilds layers in one store; ``remake`` makes the single ranges."""

    remake: Remake
    embedder: Embedder | None

    def rebuild(
        self, scope: Scope, layer: str, start_seq: int, end_seq: int | None, *, dry_run: bool, progress: Progress | None
    ) -> RebuildReport:
        """Make one layer of the scope's conversation again; see `Conversation.rebuild`."""
        self._checked(scope, layer)
        spans = self.spans(scope, layer, start_seq, end_seq)
        if dry_run:
            return self._estimate(scope, layer, spans)
        if layer == "vectors":
            return self._vectors(scope, spans, progress)
        run, mark = _Run(), new_id("reb", self.remake.now_ms())
        for number, span in enumerate(spans):
            try:
                self._range(scope, layer, span, Mark(mark, number), spans[0].start_seq, run)
            except ModelError as error:
                run.errors.append(f"{span.start_seq}-{span.end_seq}: {error.code}: {error}")
                if hopeless(error):
                    break
            finally:
                run.effort += self.remake.writer.spent()
            if progress is not None:
                progress(number + 1, len(spans))
        return _report(layer, run, mark)

    def _checked(self, scope: Scope, layer: str) -> None:
        if layer not in LAYERS:
            raise BadInput(f"there is no layer {layer!r}", hint=f"use {', '.join(LAYERS)}")
        if layer == "vectors" and self.embedder is None:
            raise ConfigError("this memory has no embedder", hint="open it with one")
        if layer != "vectors" and not self.remake.writer.makes(layer):
            raise ConfigError(f"the built-in rules make no {layer}", hint="open the memory with llm=…")
        self.remake.store.read(scope, check_active)

    def spans(self, scope: Scope, layer: str, start_seq: int = 1, end_seq: int | None = None) -> list[Span]:
        """The ranges of a layer that hold any of the messages, in the order in which they are to be made."""
        return self.remake.store.read(scope, lambda view: list(self._spans(view, layer, start_seq, end_seq)))

    def _spans(self, view: ReadView, layer: str, start_seq: int, end_seq: int | None) -> Iterator[Span]:
        row = view.conversation()
        if row is None:
            return
        last = row.next_seq - 1 if end_seq is None else min(end_seq, row.next_seq - 1)
        if layer == "vectors":
            yield from [Span(start_seq, last)] if start_seq <= last else []
            return
        if layer == "facts":
            last, size = min(last, row.extracted_seq), self.remake.writer.batch_messages
            yield from (Span(first, min(last, first + size - 1)) for first in range(start_seq, last + 1, size))
            return
        told = [s for s in view.summaries() if s.start_seq <= last and s.end_seq >= start_seq]
        told = [s for s in told if (s.level > 1) == (layer == "meta") and s.level > 0]
        for summary in sorted(told, key=lambda s: (s.level, s.start_seq)):
            yield Span(summary.start_seq, summary.end_seq, summary.level)

    def _range(self, scope: Scope, layer: str, span: Span, mark: Mark, begin: int, run: _Run) -> None:
        made: Made | None
        if layer == "facts":
            made = self.remake.facts(scope, (span.start_seq, span.end_seq), begin, mark, run.kept)
        elif layer == "episodes":
            made = self.remake.episodes(scope, (span.start_seq, span.end_seq), mark)
        else:
            made = self.remake.summary(scope, span.level, span.start_seq, mark)
        if made is not None:
            run.took(span, made)

    def one(self, scope: Scope, layer: str, span: Span) -> Effort:
        """Make a single range again; what the calls of a model took."""
        mark = Mark(new_id("reb", self.remake.now_ms()), 0)
        self._range(scope, layer, span, mark, span.start_seq, _Run())
        return self.remake.writer.spent()

    def effort(self, scope: Scope, layer: str, span: Span) -> Effort:
        """What making a range again would take, at most."""

        def texts(view: ReadView) -> list[str]:
            if layer == "meta":
                seen = self.remake.look(view, span.level, span.start_seq)
                return [child.text for child in seen.children]
            return [m.content for m in view.messages(start_seq=span.start_seq, end_seq=span.end_seq)]

        return self.remake.writer.effort(layer, scope, self.remake.store.read(scope, texts))

    def _estimate(self, scope: Scope, layer: str, spans: Sequence[Span]) -> RebuildReport:
        run = _Run()
        for span in spans:
            if layer != "vectors":
                run.effort += self.effort(scope, layer, span)
            before = self.remake.store.read(scope, partial(self._standing, layer=layer, span=span))
            run.took(span, Made(before, ()))
        return replace(_report(layer, run, ""), dry_run=True)

    def _standing(self, view: ReadView, layer: str, span: Span) -> tuple[Summary | Fact, ...]:
        if layer in ("facts", "episodes"):
            return self.remake.held(view, layer, span.start_seq, span.end_seq)
        if layer == "vectors":
            return ()
        row = self.remake.look(view, span.level, span.start_seq).row
        return () if row is None else (row.summary,)

    def _vectors(self, scope: Scope, spans: Sequence[Span], progress: Progress | None) -> RebuildReport:
        """Embed what stands in the range again, in place: until then the old vectors answer."""
        run = _Run()
        for span in spans:
            docs = self.remake.store.read(scope, partial(_docs, span=span))
            for at in range(0, len(docs), BATCH_DOCS):
                self._embed(scope, docs[at : at + BATCH_DOCS])
                if progress is not None:
                    progress(min(at + BATCH_DOCS, len(docs)), len(docs))
            run.done.append(span)
        return _report("vectors", run, "")

    def _embed(self, scope: Scope, docs: Sequence[DocRow]) -> None:
        assert self.embedder is not None
        everybody, name = scope.about(None), self.embedder.id
        while True:
            epoch, texts = self.remake.store.read(everybody, lambda view: (view.user().epoch, view.texts(docs)))
            there = [doc for doc in docs if (doc.kind, doc.doc) in texts]
            told = [mask_secrets(texts[doc.kind, doc.doc], self.remake.config.detectors) for doc in there]
            pairs = quantize(self.embedder.embed(told)) if told else []
            rows = [(doc, name, scale, data) for doc, (scale, data) in zip(there, pairs, strict=True)]
            if self.remake.store.write(scope, partial(self._add_vectors, epoch=epoch, rows=rows)):
                return

    def _add_vectors(self, view: WriteView, epoch: int, rows: Sequence[tuple[DocRow, str, float, bytes]]) -> bool:
        if not undisturbed(view, epoch):
            return False
        view.add_vectors(rows)
        user = view.user()
        view.save_user(replace(user, version=user.version + 1), self.remake.now_ms())
        return True

    def rebuilds(self, scope: Scope) -> list[Rebuilt]:
        """What was made again in the scope's conversation, oldest first; see `Conversation.rebuilds`."""
        calls: dict[str, list[RebuiltRow]] = {}
        for row in self.remake.store.read(scope, lambda view: view.rebuilt()):
            calls.setdefault(row.id, []).append(row)
        return [_told(rows) for rows in calls.values()]

    def restore(self, scope: Scope, rebuild_id: str) -> RebuildReport:
        """Put back what stood before one rebuild; see `Conversation.restore`."""

        def work(view: WriteView) -> RebuildReport:
            check_active(view)
            parts = [row for row in view.rebuilt() if row.id == rebuild_id]
            if not parts:
                raise NotFound(f"there is no rebuild {rebuild_id!r} here", hint="rebuilds() lists them")
            run, now_ms = _Run(), self.remake.now_ms()
            mark = new_id("reb", now_ms)
            for number, row in enumerate(_backwards(parts)):
                made = self._put_back(view, row, now_ms)
                source = next((item.source for item in made.after), row.source)
                back = RebuiltRow(
                    mark, number, row.layer, row.start_seq, row.end_seq, row.became, row.was, source, now_ms
                )
                view.add_rebuilt(back)
                run.took(Span(row.start_seq, row.end_seq), made)
            return _report(parts[0].layer, run, mark)

        return self.remake.store.write(scope, work)

    def _put_back(self, view: WriteView, row: RebuiltRow, now_ms: int) -> Made:
        if row.layer in ("facts", "episodes"):
            before = self.remake.held(view, row.layer, row.start_seq, row.end_seq)
            undo_relearn(view, row.start_seq, row.end_seq, row.became, row.was, now_ms)
            self.remake.order_vectors(view, now_ms)
            after = self.remake.held(view, row.layer, row.start_seq, row.end_seq)
            if row.layer == "episodes":
                source = next((fact.source for fact in after), row.source)
                view.add_episodes(EpisodesRow(row.start_seq, row.end_seq, len(after), source), now_ms)
            return Made(before, after)
        rows = {found.summary.id: found for found in view.summary_rows()}
        now, then = rows.get(row.became.ids[0]), rows.get(row.was.ids[0])
        if now is None or then is None or not now.live:
            raise Conflict(
                f"messages {row.start_seq} to {row.end_seq} were told again, or changed, since then",
                hint="restore the later rebuilds first; what was erased does not come back",
            )
        back = self._swap_versions(view, now, then, list(rows.values()), now_ms)
        return Made((now.summary,), (back,))

    def _swap_versions(
        self, view: WriteView, now: SummaryRow, then: SummaryRow, rows: Sequence[SummaryRow], now_ms: int
    ) -> Summary:
        """Let the older version *then* stand in the place of *now*, over the children that are there today."""
        children = [row.summary for row in rows if row.live and row.summary.parent == now.summary.id]
        today = [child.id for child in children]
        stale = set(then.summary.children) != set(today)
        back = replace(then.summary, parent=now.summary.parent, stale=stale)
        withdraw_summary(view, now)
        view.rewrite_summary(SummaryRow(back, self.remake.indexed(view, back, now_ms), live=True))
        hang_up(view, now.summary, back, today)
        return back


def hopeless(error: ModelError) -> bool:
    """Whether no later call of this run would succeed: a budget is spent, or somebody must mend something first."""
    return error.setup or isinstance(error, NotNow)


def _docs(view: ReadView, span: Span) -> list[DocRow]:
    """The documents of a range: messages, live summaries that end in it, live facts that rest on it."""
    subject, name = view.scope.subject or "", view.scope.conversation
    kinds = (Partition(subject, "message"), Partition(subject, "summary"))
    here = [doc for kind in kinds for doc in view.docs(kind) if doc.conversation == name]
    found = [doc for doc in here if span.start_seq <= doc.seq <= span.end_seq]
    ids = {child for kind, child in view.resting_on(span.start_seq, span.end_seq) if kind == "fact"}
    everybody = view.at(None, None)
    facts = [doc for part in everybody.partitions(["fact"]) for doc in everybody.docs(part) if doc.ref in ids]
    return found + facts


def _report(layer: str, run: _Run, mark: str) -> RebuildReport:
    return RebuildReport(
        layer=layer,
        before=tuple(run.before.values()),
        after=tuple(run.after.values()),
        calls=run.effort.calls,
        tokens=run.effort.tokens,
        cost=run.effort.cost,
        id=mark if run.done else "",
        start_seq=min((span.start_seq for span in run.done), default=0),
        end_seq=max((span.end_seq for span in run.done), default=0),
        ranges=len(run.done),
        errors=tuple(run.errors),
    )


def _backwards(parts: Sequence[RebuiltRow]) -> list[RebuiltRow]:
    """In which order ranges are put back: the last first, but lower summaries before those above them."""
    return sorted(parts, key=lambda row: row.part if row.layer == "meta" else -row.part)


def _told(rows: Sequence[RebuiltRow]) -> Rebuilt:
    return Rebuilt(
        id=rows[0].id,
        layer=rows[0].layer,
        start_seq=min(row.start_seq for row in rows),
        end_seq=max(row.end_seq for row in rows),
        at=from_ms(rows[0].created_at),
        source=rows[-1].source,
        put_aside=sum(len(row.was.ids) for row in rows),
        brought=sum(len(row.became.ids) for row in rows),
    )
