"""
The only file that knows the order of the stages.

    a message comes in      ingest: prepare → append                    one transaction, then acknowledged
    work falls due          digest: read → ground, reconcile: learn     one transaction a batch
                            digest: chunk → summarize → level n+1       one transaction a summary
                            embed                                       one transaction a batch
    a question comes        recall: search → context: assemble          one snapshot

Every piece of background work is claimed, reads a snapshot, computes with no transaction open, and
writes once: it asks whether its claim still holds and whether anything was erased meanwhile.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .clock import Clock, to_ms
from .config import Config
from .context.assemble import LAYERED, assemble
from .context.budget import Count
from .context.material import Material, Prefix
from .context.result import Context
from .context.strategies import Strategy
from .context.talk import opening
from .digest import rules
from .digest.rolling import roll
from .embed.protocol import Embedder
from .incoming import MessageLike
from .ingest.append import Orders, append
from .ingest.prepare import body_digest, prepare
from .jobs.facts import ReadFacts
from .jobs.queue import Handler, Queue
from .jobs.summaries import CloseChunks
from .jobs.vectors import EmbedDocs
from .jobs.worker import Workers, drain
from .recall.cache import IndexCache
from .recall.search import default_min_score, recent, search
from .reconcile.registry import registry
from .scope import Scope
from .store.protocol import FactRow, ReadView, Store, WriteView
from .text.tokens import count_tokens
from .types import DigestReport, Fact, FactChange, Hit, HitKind, Message, Receipt

HIT_KINDS: tuple[HitKind, ...] = ("fact", "message", "summary")
# Asked for beyond a search's limit, in place of facts that turn out to have run out.
SPARE_HITS = 5
# A longer batch is an import: its facts are read in the background like the rest of its work.
INLINE_MESSAGES = 20
# So long the background leaves facts to the call that is about to read them itself.
INLINE_GRACE_MS = 2_000
MAX_OPENING = 8  # system messages at the head of a conversation that the classic strategies keep


class Pipeline:
    """The stages over one store; safe to use from any thread."""

    def __init__(
        self, store: Store, config: Config, clock: Clock, embedder: Embedder | None, *, background: bool
    ) -> None:
        self.store, self.config, self.clock, self.embedder = store, config, clock, embedder
        self.cache = IndexCache(config.index_cache_mb * 1_000_000) if config.index_cache_mb else None
        embeds = embedder is not None
        self._orders = Orders(embed=embeds)
        handlers: dict[str, Handler] = {
            "extract": ReadFacts(store, config, registry(config.categories), self.now_ms, embeds),
            "chunk": CloseChunks(store, config, self.now_ms, embeds),
        }
        if embedder is not None:
            handlers["embed"] = EmbedDocs(store, embedder, self.now_ms, config.job_lease_ms)
        self.queue = Queue(
            store=store,
            handlers=handlers,
            now_ms=self.now_ms,
            worker=f"{os.getpid()}-{secrets.token_hex(4)}",
            lease_ms=config.job_lease_ms,
            attempts=config.job_attempts,
            backoff_ms=config.job_backoff_ms,
            wake=threading.Event(),
        )
        self._workers = Workers(self.queue, config.workers) if background else None

    def now_ms(self) -> int:
        """The memory's clock in milliseconds."""
        return to_ms(self.clock())

    def append(self, scope: Scope, given: MessageLike | Sequence[MessageLike], key: str | None) -> Receipt:
        """
        Store messages; when this returns they are on disk.

        What the rules' gate takes for a statement is read at once, so that the next reply already
        knows it; everything else waits for the background.
        """
        prepared = prepare(
            given, now=self.clock(), max_chars=self.config.max_message_chars, language=self.config.language
        )
        digest, now_ms = body_digest(prepared) if key is not None else "", self.now_ms()
        said = [item.message.content for item in prepared if item.message.role == "user"]
        inline = len(prepared) <= INLINE_MESSAGES and any(rules.might_state(text) for text in said)
        orders = replace(self._orders, extract_after_ms=INLINE_GRACE_MS) if inline else self._orders
        stored = self.store.write(
            scope,
            lambda view: append(view, prepared, self.config, orders, key=key, digest=digest, now_ms=now_ms),
        )
        seqs = tuple(range(stored.first_seq, stored.last_seq + 1))
        if stored.duplicate:
            return Receipt(seqs, duplicate=True)
        changes: tuple[FactChange, ...] = ()
        if inline:
            changes = drain(self.queue, kinds=("extract",), person=scope, ahead_ms=INLINE_GRACE_MS).changes
        if self._workers is not None:
            self._workers.wake()
        return Receipt(seqs, tuple(change for change in changes if change.op != "rejected"))

    def load(self, scope: Scope, start_seq: int, limit: int | None, last: int | None) -> list[Message]:
        """Stored messages; see `Conversation.load`."""

        def work(view: ReadView) -> list[Message]:
            row = view.conversation()
            start = max(start_seq, row.next_seq - last) if row and last is not None else start_seq
            return view.messages(start_seq=start, limit=limit)

        return self.store.read(scope, work)

    def end(self, scope: Scope) -> None:
        """Mark that the conversation is over for now: what is open may be summarised at once."""

        def work(view: WriteView) -> None:
            row, now_ms = view.conversation(), self.now_ms()
            if row is not None and row.next_seq > row.chunk_start:
                view.save_conversation(replace(row, ended_seq=row.next_seq - 1))
                view.want("chunk", "", wanted=row.next_seq - 1, run_at_ms=now_ms, now_ms=now_ms)

        before = self.store.read(scope, lambda view: view.conversation())
        if before is not None and before.chunk_start <= before.ended_seq < before.next_seq - 1:
            drain(self.queue, kinds=("chunk",), person=scope)  # an earlier end is still waiting to be one
        self.store.write(scope, work)
        if self._workers is not None:
            self._workers.wake()

    def digest(self, timeout_s: float | None, scope: Scope | None = None) -> DigestReport:
        """Run everything that is due, for all people or for one; waits for this process's own threads."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        report = drain(self.queue, person=scope, deadline=deadline)
        if self._workers is not None:
            self._workers.join_idle(deadline)
            report += drain(self.queue, person=scope, deadline=deadline)
        return report

    def search(
        self,
        scope: Scope,
        query: str,
        *,
        limit: int,
        kinds: Sequence[HitKind],
        min_score: float | None,
        conversation: str | None,
        explain: bool,
    ) -> list[Hit]:
        """Search one scope; see `Person.search`."""
        vector = self._vector(query)

        def work(view: ReadView) -> list[Hit]:
            hits = search(
                view,
                query,
                now=self.clock(),
                kinds=kinds,
                limit=limit + SPARE_HITS,
                min_score=min_score,
                conversation=conversation,
                embedder=self.embedder,
                question_vector=vector,
                cache=self.cache,
                explain=explain,
            )
            return _unexpired(view, hits, self.now_ms())[:limit]

        return self.store.read(scope, work)

    def recall(self, scope: Scope, query: str, last: int, limit: int) -> list[Hit]:
        """The nearest of the last messages; see `Conversation.recall`."""
        return self.store.read(
            scope,
            lambda view: recent(
                view, query, last_n=last, k=limit, now=self.clock(), embedder=self.embedder, cache=self.cache
            ),
        )

    def context(
        self,
        scope: Scope,
        query: str | None,
        budget_tokens: int,
        system: str | None,
        strategy: Strategy | None = None,
        count: Count = count_tokens,
    ) -> Context:
        """What the model should see next in the scope's conversation."""
        strategy = strategy or LAYERED
        vector = self._vector(query) if query and strategy.recalls else None
        variant = f"{strategy.name}/{budget_tokens}"
        material, previous = self.store.read(
            scope, lambda view: self._material(view, query, vector, budget_tokens, strategy, variant)
        )
        context, prefix = assemble(
            material,
            budget_tokens=budget_tokens,
            recent_messages=self.config.recent_messages,
            system=system,
            previous=previous,
            count=count,
            strategy=strategy,
        )
        if previous is None or previous.sha256 != prefix.sha256:
            self.store.write(scope, lambda view: view.save_prefix(variant, prefix.sha256, prefix.dumps()))
        return context

    def _material(
        self,
        view: ReadView,
        query: str | None,
        vector: NDArray[np.float32] | None,
        budget_tokens: int,
        strategy: Strategy,
        variant: str,
    ) -> tuple[Material, Prefix | None]:
        row = view.conversation()
        total = row.next_seq - 1 if row else 0
        summaries = view.summaries() if total else []
        start = strategy.first_wanted(summaries, total, self.config.recent_messages, budget_tokens)
        messages = view.messages(start_seq=start) if total else []
        question = (query or _last_question(messages)) if strategy.recalls and self.config.recall_limit else ""
        if question and not query:
            vector = self._vector(question)
        hits = self._recall(view, question, vector, len(messages)) if question else []
        facts = view.facts(evidence=False) if strategy.recalls else []
        known = view.prefix(variant)
        material = Material(
            conversation=view.scope.conversation or "",
            messages=messages,
            total_messages=total,
            summaries=summaries,
            facts=[row.fact for row in facts if believed(row, self.now_ms())],
            hits=hits,
            query=query,
            notes=_notes(view, hits),
            messages_from=start,
            recall_limit=self.config.recall_limit,
            opening=opening(view.messages(end_seq=start - 1, limit=MAX_OPENING)) if start > 1 else (),
            roll=roll,
        )
        return material, Prefix.loads(*known) if known else None

    def _recall(self, view: ReadView, question: str, vector: NDArray[np.float32] | None, verbatim: int) -> list[Hit]:
        """Hits for a context; some of them will be shown verbatim anyway, so a few more are asked for."""
        hits = search(
            view,
            question,
            now=self.clock(),
            kinds=("message", "fact"),
            limit=self.config.recall_limit + min(verbatim, 40),
            min_score=self.config.recall_min_score
            if self.config.recall_min_score is not None
            else default_min_score(self.embedder),
            conversation=None,
            embedder=self.embedder,
            question_vector=vector,
            cache=self.cache,
            explain=False,
        )
        return _unexpired(view, hits, self.now_ms())

    def _vector(self, text: str) -> NDArray[np.float32] | None:
        return self.embedder.embed([text])[0] if self.embedder is not None else None

    def close(self) -> None:
        """Stop the background threads and close the store; pending jobs stay in it."""
        if self._workers is not None:
            self._workers.stop()
        self.store.close()


def believed(row: FactRow, now_ms: int) -> bool:
    """A live fact whose own words did not set an end that has passed."""
    return row.fact.live and (row.expires_at is None or row.expires_at > now_ms)


def facts_at(rows: Sequence[FactRow], as_of_ms: int, known_at_ms: int) -> list[Fact]:
    """What held at one moment, as it was known at another; by address."""
    held = []
    for row in rows:
        fact = row.fact
        if to_ms(fact.recorded_at) > known_at_ms or to_ms(fact.valid_from) > as_of_ms:
            continue
        end = to_ms(fact.valid_to) if fact.valid_to and (row.ended_at or 0) <= known_at_ms else row.expires_at
        if end is None or end > as_of_ms:
            held.append(fact)
    return sorted(held, key=lambda fact: (fact.subject, fact.category, fact.key, fact.value))


def _unexpired(view: ReadView, hits: Sequence[Hit], now_ms: int) -> list[Hit]:
    """*hits* without facts whose own words set an end that has passed."""
    if not any(hit.kind == "fact" for hit in hits):
        return list(hits)
    expired = view.expired(now_ms)
    return [hit for hit in hits if hit.kind != "fact" or hit.id not in expired]


def _notes(view: ReadView, hits: Sequence[Hit]) -> dict[tuple[str, int], str]:
    """What replaced the facts that recalled turns once stated, so that none of them reads as current."""
    notes: dict[tuple[str, int], str] = {}
    for hit in hits:
        if hit.kind != "message" or view.scope.subject is None:
            continue
        for row in view.facts_of_message(hit.conversation, hit.seq):
            newest = row.fact
            while newest.superseded_by and (after := view.fact(newest.superseded_by)):
                newest = after.fact
            if newest.id != row.fact.id:
                notes[hit.conversation, hit.seq] = newest.text
    return notes


def _last_question(messages: Sequence[Message]) -> str:
    return next((m.content for m in reversed(messages) if m.role == "user" and m.content), "")
