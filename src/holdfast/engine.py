"""
The engine: the only file that knows the order of the stages.

    a message comes in      ingest: consent → append                    one transaction, then acknowledged
    work falls due          digest: read → ground, reconcile: learn     one transaction a batch
                            digest: chunk → summarize → level n+1       one transaction a summary
                            reconcile: merge what says the same         one transaction a memory
                            embed                                       one transaction a batch
    a question comes        recall: search → context: assemble          one snapshot
    something must go       privacy: find → rewrite summaries → delete  one transaction, then the bytes are searched

Every piece of background work is claimed, reads a snapshot, computes with no transaction open, and
writes once: it asks whether its claim still holds and whether anything was erased meanwhile.
"""

from __future__ import annotations

import os
import secrets
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from .clock import DAY_MS, Clock, from_ms, to_ms
from .config import Config, ConfigChanges, reload_config
from .context.assemble import LAYERED, Strategy, assemble, profile
from .context.material import Count, Material, Prefix, is_past_plan, turn_key
from .context.result import Context
from .context.turns import opening_messages
from .digest import rules
from .digest.chunk import is_small_talk
from .digest.summarize import summarize_conversation
from .embed import RememberingEmbedder
from .embed.protocol import Embedder
from .errors import Conflict, StoreError
from .ingest.append import AppendResult, WorkSettings, append, body_digest, prepare, refuse_future
from .ingest.redact import redact_secrets
from .jobs.backfill import Backfiller
from .jobs.facts import FactReader, ReadAhead, subject_labels
from .jobs.model_client import ModelClient
from .jobs.observer import Observer, observed
from .jobs.prompt_trial import PromptTrial
from .jobs.queue import Dependencies, Queue, order_range
from .jobs.summaries import RestSummaries, earlier_summaries, name_of_user, other_conversations
from .jobs.upkeep import Reembedding, Upkeep
from .jobs.usage import ContextStats, UseCounter, day_of, note_usage, publish_tokens, record, with_tokens
from .jobs.worker import (
    LAST_KINDS,
    UserModels,
    UserWork,
    Workers,
    drain,
    drain_at_once,
    read_ahead,
    store_and_learn,
)
from .llm import from_address
from .llm.guard import Address
from .llm.protocol import LanguageModel
from .privacy.consent import ConsentChoices
from .privacy.corrections import Corrections, FactInput, Versions, find_fact
from .privacy.erasure import Eraser, change_message, with_content
from .privacy.export import Exporter
from .privacy.forget import ErasureReplay, erase_user, facts_of, forget_facts
from .privacy.subjects import Subjects
from .recall.index import IndexCache
from .recall.rank import explain_ranking, worth_recalling
from .recall.search import (
    facts_held_at,
    is_current,
    search,
    search_recent,
    was_there,
    with_changes,
    with_replacements,
    without_expired,
)
from .reconcile.archive import as_of_now
from .reconcile.registry import registry
from .reports import ConsolidationReport, DigestReport, ErasureReceipt, Explained, PromptPreview, RebuildReport, Receipt
from .scope import CHARACTER, SELF, Scope
from .store import FactRow, ReadView, Store, UsageRow, UserRow, WriteView, effective_consent
from .text import NDArray, forget_remembered, np
from .text.terms import count_tokens
from .text.validate import MessageLike, checked_messages
from .types import ConsentState, Fact, FactChange, Hit, HitKind, Message, ReplyUsage, Section, TurnKey

# A longer batch is an import: its facts are read in the background like the rest of its work.
INLINE_MESSAGES = 20
# For this long the background leaves facts to the call that is about to read them itself.
INLINE_GRACE_MS = 2_000
# Hits asked for beyond a search's limit, in place of facts that turn out to have expired.
SPARE_HITS = 5
MOST_PAST_HITS = 500  # hits of today that are filtered for those of an earlier time
LEAST_SHARE = 1 / 3  # of what the nearest hit shares with a question; a fact that shares less did not answer it
MOST_BESIDE = 40  # recalled turns whose neighbors are read
WORDLESS = " .,;:!?…'\"\n\t"
MAX_OPENING = 8  # system messages at the start of a conversation that the classic strategies keep
Given = MessageLike | Sequence[MessageLike]


class Engine:
    """The stages over one store; safe to use from any thread."""

    def __init__(
        self,
        store: Store,
        config: Config,
        clock: Clock,
        embedder: Embedder | None,
        model: LanguageModel | None = None,
        *,
        background: bool,
        previous: Embedder | None = None,
    ) -> None:
        self.store, self.config, self.clock, self.embedder = store, config, clock, embedder
        self.provider_keys = UserModels(store, config)
        if model is not None or self.provider_keys.any():
            store.release_waiting(self.now_ms())  # another budget or another key may be what they waited for
        embeds = embedder is not None
        self.uses = UseCounter(store, self.now_ms, config.decay_half_life_days * DAY_MS, config)
        self.context_stats = ContextStats(self.now_ms)
        self._previous = previous  # its vectors stand in for texts that have none of *embedder* yet
        self.cache = IndexCache(config.index_cache_mb * 1_000_000) if config.index_cache_mb else None
        self._rests, self.observer = RestSummaries(), Observer()
        store.on_changes = self.observer.report_counts
        self._orders = WorkSettings(embed=embeds)
        categories = registry(config.categories)
        self.category_name, self._asked_at = categories.category_name, categories.addresses_called
        self._remembering = RememberingEmbedder(embedder) if embedder is not None else None
        deps = Dependencies(store, config, categories, self.now_ms, embedder, self.observer, self._remembering)
        reader, self.upkeep = FactReader(deps, statements=False), Upkeep(deps)
        self.work = UserWork(deps, model, self.provider_keys)
        self.client, self.rebuilder = self.work.default.client, self.work.default.rebuilder
        self.queue = Queue(
            store=store,
            handlers=self.work.handlers,
            now_ms=self.now_ms,
            worker=f"{os.getpid()}-{secrets.token_hex(4)}",
            lease_ms=config.job_lease_ms,
            attempts=config.job_attempts,
            backoff_ms=config.job_backoff_ms,
            last=LAST_KINDS,
            alone=self.work.asking,
            observer=self.observer,
        )
        self._reembed = Reembedding(deps, embedder) if embedder is not None and config.reembed else None
        self._workers = (
            Workers(self.queue, config.workers, self._order_due, self.uses.flush_some) if background else None
        )
        self.consent = ConsentChoices(store, self.now_ms, embeds, self.work.read_mode)
        self.eraser = Eraser(store, config, self.now_ms, reader, self.work.read_mode, self._forget_caches)
        self.subjects = Subjects(store, self.now_ms)
        self.replay = ErasureReplay(self.eraser, self.consent)
        self.corrections = Corrections(store, config, self.now_ms, reader)
        self.exporter = Exporter(store, config, self.now_ms, self.consent)
        self.backfiller = Backfiller(store, lambda scope: self.work.of(scope).rebuilder, self._catch_up)

    def reload(self, config: Config) -> ConfigChanges:
        """Use the settings of *config* that can change while a memory is open; return what changed."""
        changes = reload_config(self.config, config)
        if any(name.startswith(("budget_", "model_", "prices")) or name == "budget" for name in changes.applied):
            self.store.release_waiting(self.now_ms())  # what waited for the old limits
        return changes

    def now_ms(self) -> int:
        """Return the time in milliseconds."""
        return to_ms(self.clock())

    def _forget_caches(self) -> None:
        """Drop everything that was read before an erasure."""
        forget_remembered()
        if self.cache is not None:
            self.cache.clear()
        if self._remembering is not None:
            self._remembering.clear()
        self._rests.clear()
        self.context_stats.clear()
        self.uses.forget_reads()

    def _order_due(self) -> int:
        """Order what falls due by itself: vectors that are by another embedder, facts that have faded; return for how many."""
        return self.upkeep.order() + (self._reembed.order() if self._reembed is not None else 0)

    def as_of_now(self, row: FactRow) -> Fact:
        """Return the fact of a row with its present strength."""
        return as_of_now(row, self.now_ms(), self.config.decay_half_life_days * DAY_MS)

    def _answering(self, hits: Sequence[Hit]) -> list[str]:
        """
        Return the ids of the facts among hits with their parts that bear on the question: those are used.

        What only stands beside them shares little with the question, however high all of them score.
        """
        own = {hit.id: hit.parts.get("words", 0.0) + hit.parts.get("meaning", 0.0) for hit in hits}
        least = LEAST_SHARE * max(own.values(), default=0.0)
        likely = [hit for hit in hits if hit.kind == "fact" and hit.relevance >= self.config.recall_min_relevance]
        return [hit.id for hit in likely if own[hit.id] > 0 and own[hit.id] >= least]

    @observed("append")
    def append(
        self, scope: Scope, given: Given, key: str | None, *, incognito: bool = False, wanted: Mapping[str, Any]
    ) -> Receipt:
        """
        Store messages, unless the user does not want that; when this returns they are on disk.

        What the rules' gate takes for a statement is read at once, so that the next reply already
        knows it; everything else waits for the background.  *wanted* is more of `WorkSettings`.
        """
        config = self.config
        ready = prepare(
            given,
            now=self.clock(),
            max_chars=config.max_message_chars,
            language=config.language,
            detectors=config.detectors,
            redact_messages=config.redact_messages,
        )
        refuse_future(ready, self.clock())
        if incognito:
            return Receipt((), skipped="incognito")
        digest, now_ms = body_digest(ready) if key is not None else "", self.now_ms()
        texts = [item.message.content for item in ready if item.message.role == "user"]
        states = any(map(rules.may_state_facts, texts))
        inline = len(ready) <= INLINE_MESSAGES and (states or any(map(rules.may_end_facts, texts)))
        grace_ms = INLINE_GRACE_MS if inline else 0
        own, said = self.work.of(scope), [item.message for item in ready]
        ahead = read_ahead(own.facts, scope, said) if inline else None
        orders = replace(self._orders, extract_after_ms=grace_ms, states=states, reads=own.read_mode, **wanted)
        used, size = self.uses.pop(scope), self.context_stats.pop(scope, said)

        def work(view: WriteView, ahead: ReadAhead | None) -> tuple[AppendResult, list[FactChange]] | ConsentState:
            state = effective_consent(view.consent(), scope.subject)
            if state != "active":
                return state
            self.uses.write(view, used)
            order = replace(orders, read_from=ahead.rows) if ahead else orders
            stored = append(view, ready, config, order, key=key, digest=digest, now_ms=now_ms)
            if size is not None and not stored.duplicate:
                self.context_stats.write(view, size, stored.first_seq)
            return stored, own.facts.learn_ahead(view, ahead) if ahead and stored.read else []

        try:
            found = store_and_learn(self.store, scope, work, ahead)
        except BaseException:
            self.uses.restore(scope, used)
            self.context_stats.restore(scope, size)
            raise
        if isinstance(found, str):
            return Receipt((), skipped=found)
        stored, changes = found
        seqs = tuple(range(stored.first_seq, stored.last_seq + 1))
        if stored.duplicate:
            return Receipt(seqs, duplicate=True)
        if inline and not stored.read:
            changes = [*drain_at_once(self.queue, self._workers, "extract", scope, INLINE_GRACE_MS).changes]
        if self._workers is not None:
            self._workers.wake()
        learned = tuple(change for change in changes if change.op != "rejected")
        return Receipt(seqs, learned, discarded=dict(sum((item.discarded for item in ready), Counter())))

    def load(self, scope: Scope, start_seq: int, limit: int | None, last: int | None) -> list[Message]:
        """Stored messages; see `Conversation.load`."""

        def work(view: ReadView) -> list[Message]:
            row = view.conversation()
            start = max(start_seq, row.next_seq - last) if row and last is not None else start_seq
            return view.messages(start_seq=start, limit=limit)

        return self.uses.read("messages", scope, work)

    def record_usage(
        self, scope: Scope, model: str, used: tuple[int, int, int], cost: float | None, seq: int | None = None
    ) -> None:
        """Count the tokens that the caller's own model used for a reply; see `Conversation.record_usage`."""
        if seq is not None:
            self.store.write(scope, lambda view: note_usage(view, seq, ReplyUsage(model, *used)))
        own = self.config.prices.get(model)
        price = cost if cost is not None or own is None else own.of(*used)
        row = with_tokens(UsageRow(day_of(self.now_ms()), "chat", model, calls=1), used, price)
        record(self.store, scope, row, self.config.usage_days)
        if self.client is not None:
            self.client.budgets.add(scope, row)
        publish_tokens(self.observer, model if model in self.config.prices else "other", row)

    def end(self, scope: Scope, *, summarize: bool = True) -> None:
        """Mark that the conversation is over for now: what is open may be summarized at once."""

        reads = self.work.read_mode(scope)

        def work(view: WriteView) -> None:
            row, now_ms = view.conversation(), self.now_ms()
            if (
                row is not None
                and row.next_seq > row.chunk_start
                and effective_consent(view.consent(), row.subject) == "active"
            ):
                view.save_conversation(replace(row, ended_seq=row.next_seq - 1))
                if summarize and self.config.summaries:
                    view.want("chunk", "", wanted=row.next_seq - 1, run_at_ms=now_ms, now_ms=now_ms)
                if row.unread_turns and reads:
                    view.want("read", "", wanted=row.next_seq - 1, run_at_ms=now_ms, now_ms=now_ms)

        before = self.store.read(scope, lambda view: view.conversation())
        if before is not None and before.chunk_start <= before.ended_seq < before.next_seq - 1:
            drain(self.queue, kinds=("chunk",), user=scope)  # an earlier end is still waiting to be one
        self.store.write(scope, work)
        if self._workers is not None:
            self._workers.wake()

    @observed("edit", "record")
    def edit(self, scope: Scope, seq: int, content: str) -> ErasureReceipt:
        """Put other words in place of a message; see `Conversation.edit`."""

        edited_at = self.clock().isoformat(timespec="seconds")

        def rewrite(message: Message) -> Message:
            given = replace(message, content=content, meta={**message.meta, "edited_at": edited_at})
            ((checked, _),) = checked_messages(given, now=self.clock(), max_chars=self.config.max_message_chars)
            return with_content(checked, checked.content, self.config)

        if self.store.read(scope, lambda view: effective_consent(view.consent(), scope.subject)) != "active":
            raise Conflict("the user does not want anything written now", hint="forget(seq) works; or resume() first")
        receipt = self.eraser.change(scope, change_message(seq, rewrite), reread=seq)
        if self.work.read_mode(scope):
            self.store.write(scope, lambda view: self._have_read(view, seq))
        if self._workers is not None:
            self._workers.wake()
        return receipt

    def _have_read(self, view: WriteView, seq: int) -> None:
        """Order that a model reads an edited message again."""
        row = view.conversation()
        if row is not None and row.read_seq >= seq:
            order_range(view, "read", seq, seq, self.now_ms())

    def _catch_up(self, scope: Scope) -> DigestReport:
        """Order what one conversation calls for, and do it now."""
        # what a model has not told is looked for range by range
        self.store.write(scope, lambda view: self.consent.take_up(view, "", self.now_ms()))
        return drain(self.queue, user=scope)

    @observed("remember")
    def remember(self, scope: Scope, given: FactInput) -> FactChange:
        """Store a fact by hand; see `User.remember`."""
        return self.corrections.remember(scope, given)

    @observed("correct", "record")
    def correct(
        self, scope: Scope, fact_id: str, value: str | None, if_version: Versions, importance: float | None = None
    ) -> FactChange:
        """Put another value in place of a wrong one, or another importance; see `User.correct`."""
        return self.corrections.correct(scope, fact_id, value, if_version, importance)

    @observed("never_true", "record")
    def never_true(self, scope: Scope, fact_id: str, if_version: Versions) -> FactChange:
        """Mark a fact as never true; see `User.never_true`."""
        return self.corrections.never_true(scope, fact_id, if_version)

    @observed("restore", "record")
    def restore(self, scope: Scope, fact_id: str, if_version: Versions) -> FactChange:
        """Make a past fact active again; see `User.restore`."""
        return self.corrections.restore(scope, fact_id, if_version)

    @observed("forget_fact", "record")
    def forget_fact(self, scope: Scope, fact_id: str, if_version: Versions, *, dry_run: bool = False) -> ErasureReceipt:
        """Erase one fact with its words; see `User.forget`."""
        chosen = forget_facts(lambda view: [find_fact(view, fact_id, if_version)])
        return self.eraser.change(scope, chosen, dry_run=dry_run)

    @observed("clear_facts")
    def clear_facts(self, scope: Scope) -> ErasureReceipt:
        """Erase every fact with its words; see `User.clear`."""
        return self.eraser.change(scope, forget_facts(facts_of(scope), refusals=True))

    @observed("forget_message", "record")
    def forget_message(self, scope: Scope, seq: int) -> ErasureReceipt:
        """Erase one message; see `Conversation.forget`."""
        return self.eraser.change(scope, change_message(seq, lambda message: None))

    @observed("clear_conversation")
    def clear_conversation(self, scope: Scope) -> ErasureReceipt:
        """Erase one conversation; see `Conversation.clear`."""
        return self.eraser.clear_conversation(scope)

    @observed("erase")
    def erase(self, scope: Scope) -> ErasureReceipt:
        """Erase everything about a user, or about one subject; see `User.erase`."""
        return erase_user(self.eraser, scope)

    def rebuild(
        self,
        scope: Scope,
        layer: str,
        start_seq: int,
        end_seq: int | None,
        *,
        dry_run: bool,
        progress: Callable[[int, int], None] | None,
    ) -> RebuildReport:
        """Rebuild one layer; see `Conversation.rebuild`."""
        report = self.work.of(scope).rebuilder.rebuild(
            scope, layer, start_seq, end_seq, dry_run=dry_run, progress=progress
        )
        if self._workers is not None:
            self._workers.wake()
        return report

    def consolidate(self, scope: Scope, *, dry_run: bool) -> ConsolidationReport:
        """Merge what says the same; see `User.consolidate`."""
        return self.work.of(scope).consolidation.now(scope, dry_run=dry_run)

    def check_price(self, address: Address) -> None:
        """
        Check that the price of a model is known where there is a budget in dollars.

        Raises:
            ConfigError: there is one, and the price of the model at *address* is unknown.
        """
        budgets = (self.config.budget, self.config.budget_org, self.config.budget_user)
        if any(budget is not None and budget.usd_per_day is not None for budget in budgets):
            ModelClient(self.store, self.config, from_address(address), self.now_ms)

    def keys_changed(self) -> None:
        """Use a provider key that was just set or removed, and make the jobs due that waited for it."""
        self.provider_keys.forget()
        self.store.release_waiting(self.now_ms())
        if self._workers is not None:
            self._workers.wake()

    def preview(self, scope: Scope, name: str, text: str, limit: int, *, dry_run: bool) -> PromptPreview:
        """Try other words for a prompt; see `Prompts.preview`."""
        work = self.work.of(scope)
        return PromptTrial(work.client, work.rebuilder).preview(scope, name, text, limit, dry_run=dry_run)

    def digest(self, timeout_s: float | None, scope: Scope | None = None) -> DigestReport:
        """Run everything that is due, for all users or for one; waits for the jobs that this process's threads hold."""
        with self.observer.call("digest", scope) as call:
            call.result = report = self._digest(timeout_s, scope)
            return report

    def _digest(self, timeout_s: float | None, scope: Scope | None) -> DigestReport:
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        self.uses.flush(scope)
        report = drain(self.queue, user=scope, deadline=deadline)
        if self._order_due():
            report += drain(self.queue, user=scope, deadline=deadline)
        return report if self._workers is None else report + self._workers.drain(deadline, scope)

    def run_now(self, job_id: str) -> bool:
        """Make a job that is waiting due at once; ``False`` when there is none."""
        found = self.store.run_now(job_id, self.now_ms())
        if found and self._workers is not None:
            self._workers.wake()
        return found

    def close(self) -> None:
        """Stop the background threads and close the store; pending jobs stay in it."""
        if self._workers is not None:
            self._workers.stop()
        with suppress(StoreError):  # a few uses are not worth a failing close; a closed store has none left
            self.uses.flush()
        self.store.close()

    @observed("search", "query")
    def search(
        self,
        scope: Scope,
        query: str,
        *,
        limit: int,
        kinds: Sequence[HitKind],
        min_relevance: float,
        conversations: Collection[str] | None,
        explain: bool,
        general: bool = False,
    ) -> list[Hit]:
        """Search one scope; see `User.search`."""
        vector = self._vector(query)

        def work(view: ReadView) -> list[Hit]:
            if effective_consent(view.consent(), scope.subject) != "active":
                return []
            hits = search(
                view,
                query,
                now=self.clock(),
                kinds=kinds,
                limit=limit + SPARE_HITS,
                min_relevance=min_relevance,
                conversations=conversations,
                embedder=self.embedder,
                previous=self._previous,
                question_vector=vector,
                cache=self.cache,
                explain=True,
                newest_first=True,
                called=self._asked_at,
            )
            return self._told(view, self._usable(view, hits)[:limit])

        found = self.uses.read("search", scope.with_general(general), work)
        self.uses.add(scope, self._answering(found))
        return found if explain else [replace(hit, parts={}) for hit in found]

    def profile(self, scope: Scope, budget_tokens: int, count: Count) -> Section:
        """Build one block of the active facts that may be used; see `User.profile`."""

        def look(view: ReadView) -> tuple[list[Fact], Mapping[str, str]]:
            if effective_consent(view.consent(), scope.subject) != "active":
                return [], {}
            chosen, now_ms = view.at(None, None).consent(), self.now_ms()
            rows = [
                row
                for row in view.of_user().facts(evidence=False)
                if is_current(row, now_ms) and row.fact.subject != CHARACTER  # not about the user
            ]
            rows = [row for row in rows if effective_consent(chosen, row.fact.subject) == "active"]
            return [row.fact for row in rows], _labels(view, rows)

        facts, labels = self.uses.read("profile", scope, look)
        return profile(facts, budget_tokens, count, labels, self.config.memory_instruction)

    @observed("recall", "query")
    def recall(self, scope: Scope, query: str, last: int, limit: int) -> list[Hit]:
        """Return the nearest of the last messages; see `Conversation.recall`."""

        def work(view: ReadView) -> list[Hit]:
            if effective_consent(view.consent(), scope.subject) != "active":
                return []
            found = search_recent(
                view, query, last_n=last, k=limit, now=self.clock(), embedder=self.embedder, cache=self.cache
            )
            return self._told(view, found)

        return self.uses.read("search", scope, work)

    def _usable(self, view: ReadView, hits: Sequence[Hit]) -> list[Hit]:
        """Return *hits* without expired facts and without those about a subject for which memory is paused."""
        chosen = view.at(None, None).consent()
        kept = without_expired(view, hits, self.now_ms())
        return [hit for hit in kept if effective_consent(chosen, hit.subject) == "active"] if chosen else kept

    def _told(self, view: ReadView, hits: Sequence[Hit]) -> list[Hit]:
        """Recalled words are shown without what must not be remembered, and with what replaced them."""
        told = []
        for hit in with_replacements(view, hits):
            text, note = self._redact(hit.text), self._redact(hit.replaced_by) if hit.replaced_by else hit.replaced_by
            same = text == hit.text and note == hit.replaced_by
            told.append(hit if same else replace(hit, text=text, replaced_by=note))
        return told

    def _redact(self, text: str) -> str:
        return redact_secrets(text, self.config.detectors)

    @observed("context", "query")
    def context(
        self,
        scope: Scope,
        query: str | None,
        budget_tokens: int,
        system: str | None,
        strategy: Strategy | None = None,
        count: Count = count_tokens,
        *,
        incognito: bool = False,
        quiet: bool = False,
        general: bool = False,
    ) -> Context:
        """
        Build what the model should see next in the scope's conversation.

        Nothing is taken from memory, and nothing is noted, when the user paused it or opted out,
        or the conversation is incognito; ``quiet`` notes nothing of a context that is only looked at, ``general``
        adds what was said in conversations about no subject in particular.
        """
        strategy = strategy or LAYERED
        vector = self._vector(query) if query and strategy.recalls and not incognito else None
        variant = f"{strategy.name}/{budget_tokens}{'/general' if general else ''}"
        # where a model writes the summaries there are no extracts beside them
        roll = None if not strategy.recalls and self.work.read_mode(scope) else summarize_conversation

        def look(view: ReadView) -> tuple[Material, Prefix | None, int | None, tuple[Context, Prefix]]:
            material = Material(scope.conversation or "", [], 0, query=query, searched=False)
            previous, epoch = None, None
            if not incognito and effective_consent(view.consent(), scope.subject) == "active":
                material, previous = self._material(view, query, vector, budget_tokens, strategy, variant)
                epoch = view.user().epoch
            made = assemble(
                replace(material, roll=roll),
                budget_tokens=budget_tokens,
                recent_messages=self.config.recent_messages,
                system=system,
                previous=previous,
                count=count,
                strategy=strategy,
            )
            return material, previous, epoch, made

        material, previous, epoch, (context, prefix) = self.store.read(scope.with_general(general), look)
        if epoch is not None:
            self.uses.note_read("context", scope)
        if quiet:
            return context
        self._report_context(context)
        shown = {source.id for source in context.sources if source.kind == "fact"}
        self.uses.add(
            scope, (id_ for id_ in self._answering(material.hits)[: self.config.recall_limit] if id_ in shown)
        )
        if epoch is not None:
            question = query or _last_question(material.messages)
            self.context_stats.add(scope, strategy.name, context, question, _recalled(context, material.hits))
        if epoch is not None and (previous is None or previous.sha256 != prefix.sha256):
            self.store.write(scope, lambda view: _note(view, epoch, variant, prefix))
        return context

    def _report_context(self, context: Context) -> None:
        """Report the tokens of a context, and whether its stable part could be used again."""
        for section in context.sections:
            if section.tokens:
                self.observer.report("context.tokens", section.name, section.tokens)
        self.observer.report("context.prefix", "reused" if context.prefix_changed_because is None else "changed", 1)

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
        recent, every = self.config.recent_messages, view.summaries() if total else []
        start = strategy.first_wanted(every, total, recent, budget_tokens)
        summaries = with_changes(view, strategy.wanted_summaries(every, recent), self._redact)
        messages = view.messages(start_seq=start) if total else []
        wanted = (query or _last_question(messages)) if strategy.recalls and self.config.recall_limit else ""
        question = "" if is_small_talk(wanted) else wanted
        vector = self._vector(question) if question and not query else vector
        hits = self._recall(view, question, vector, len(messages)) if question else []
        facts, overridden = view.facts_here() if strategy.recalls else ([], set())
        hits = [hit for hit in hits if hit.id not in overridden]
        chosen, now_ms = view.at(None, None).consent(), self.now_ms()
        believed = [
            row.fact
            for row in facts
            if is_current(row, now_ms) and (not chosen or effective_consent(chosen, row.fact.subject) == "active")
        ]
        others, begins = other_conversations(view) if strategy.recalls else [], strategy.recalls and view.scope.general
        known, today = view.prefix(variant), self.clock().date()
        over = [fact for fact in believed if is_past_plan(fact, today)]
        material = Material(
            conversation=view.scope.conversation or "",
            messages=messages,
            total_messages=total,
            summaries=summaries,
            facts=[fact for fact in believed if fact not in over],
            over=over,
            hits=hits,
            query=query,
            user_name=name_of_user(view, messages, believed) if strategy.recalls else "",
            searched=bool(question),
            instruction=self.config.memory_instruction,
            beside=partial(self._beside, view, _best(hits)),
            quoted=self._quoted(view, hits),
            notes={turn_key(hit): hit.replaced_by for hit in hits if hit.replaced_by},
            messages_from=start,
            recall_limit=self.config.recall_limit,
            opening=opening_messages(view.messages(end_seq=start - 1, limit=MAX_OPENING)) if start > 1 else (),
            labels=_labels(view, facts),
            subject=view.scope.subject or SELF,
            earlier=earlier_summaries(view, others, row, self.config.detectors, self._rests)
            if others or begins
            else (),
            documents=view.user().next_doc,
        )
        return material, Prefix.loads(*known) if known else None

    def explain(self, scope: Scope, query: str, at_ms: int, limit: int, *, today: bool) -> Explained:
        """Show what a question finds and which hits a context would recall; see `User.explain`."""
        vector, at = self._vector(query), from_ms(at_ms)
        threshold = self.config.recall_min_relevance

        def work(view: ReadView) -> Explained:
            state, most = effective_consent(view.consent(), scope.subject), self.config.recall_limit
            if state != "active":
                return Explained(query, at, threshold, most, (), state=state)
            found = partial(
                search,
                view,
                query,
                now=at,
                limit=limit + SPARE_HITS if today else MOST_PAST_HITS,
                embedder=self.embedder,
                previous=self._previous,
                question_vector=vector,
                cache=self.cache,
                newest_first=True,
                called=self._asked_at,
            )
            usable = self._told(view, self._usable(view, found(explain=True)))
            passed = found(kinds=("message", "fact"), gate=threshold)
            if today:
                return Explained(query, at, threshold, most, explain_ranking(usable[:limit], passed, threshold, most))
            past = [fact for fact in facts_held_at(view.all_facts(), at_ms, self.now_ms()) if not fact.live]
            seen = [hit for hit in usable if was_there(view, hit, at_ms)][:limit]
            return Explained(query, at, threshold, most, explain_ranking(seen, passed, threshold, most), tuple(past))

        return self.uses.read("explain", scope, work)

    def _recall(self, view: ReadView, question: str, vector: NDArray[np.float32] | None, verbatim: int) -> list[Hit]:
        """Hits for a context; some of them will be shown verbatim anyway, so a few more are asked for."""
        hits = search(
            view,
            question,
            now=self.clock(),
            kinds=("message", "fact"),
            limit=self.config.recall_limit + min(verbatim, 40),
            gate=self.config.recall_min_relevance,
            embedder=self.embedder,
            previous=self._previous,
            question_vector=vector,
            cache=self.cache,
            explain=True,
            newest_first=True,
            called=self._asked_at,
        )
        return self._told(view, self._usable(view, worth_recalling(hits)))

    def _beside(self, view: ReadView, best: Sequence[TurnKey], hits: Sequence[Hit]) -> dict[TurnKey, Hit]:
        """Return the turns before and after those of *hits* that are the *best*, of the same session, said by users and assistants."""
        best = list(filter(set(map(turn_key, hits)).__contains__, best))
        keys = {(subject, name, seq + step) for subject, name, seq in best for step in (-1, 0, 1)}
        turns = view.turns_at(sorted(keys)) if keys else {}
        found = {}
        for subject, name, seq in best:
            for key in ((subject, name, seq - 1), (subject, name, seq + 1)):
                there, own = turns.get(key), turns.get((subject, name, seq))
                if there and own and there[0] == own[0] and there[1].role in ("user", "assistant"):
                    said = there[1]
                    found[key] = Hit(
                        "message",
                        f"{name}/{key[2]}",
                        said.content,
                        0.0,
                        said.at,
                        name,
                        key[2],
                        speaker=said.speaker,
                        subject=subject,
                    )
        return {turn_key(hit): hit for hit in self._told(view, list(found.values()))}

    def _quoted(self, view: ReadView, hits: Sequence[Hit]) -> dict[TurnKey, list[str]]:
        """Return the messages among *hits* that a fact quotes from their first word to their last, with the facts."""
        texts = {turn_key(hit): hit.text for hit in hits if hit.kind == "message"}
        found: dict[TurnKey, list[str]] = {}
        for key, fact, quote in view.quotes_of(sorted(texts)) if texts else ():
            if len(quote.strip(WORDLESS)) >= len(texts[key].strip(WORDLESS)):
                found.setdefault(key, []).append(fact)
        return found

    def _vector(self, text: str) -> NDArray[np.float32] | None:
        return self._remembering.embed([text])[0] if self._remembering is not None else None


def _labels(view: ReadView, facts: Sequence[FactRow]) -> Mapping[str, str]:
    """Return the names of the subjects of facts."""
    return {} if all(row.fact.subject == SELF for row in facts) else subject_labels(view, facts)


def _best(hits: Sequence[Hit]) -> list[TurnKey]:
    """Return the turns of which neighbors may be shown."""
    return [turn_key(hit) for hit in hits if hit.kind == "message"][:MOST_BESIDE]


def _note(view: WriteView, epoch: int, variant: str, prefix: Prefix) -> None:
    """Remember the stable part of a context, unless something that it was made from was erased meanwhile."""
    user = view.user()
    if user.epoch == epoch and user != UserRow():
        view.save_prefix(variant, prefix.sha256, prefix.dumps())


def _recalled(context: Context, hits: Sequence[Hit]) -> list[str]:
    """Return the texts of the hits that the context shows, among the facts or by themselves."""
    facts = {source.id for source in context.sources if source.kind == "fact"}
    turns = {(s.conversation, s.start_seq) for s in context.sources if (s.section, s.kind) == ("recalled", "message")}
    return [
        hit.text for hit in hits if (hit.id in facts if hit.kind == "fact" else (hit.conversation, hit.seq) in turns)
    ]


def _last_question(messages: Sequence[Message]) -> str:
    return next((m.content for m in reversed(messages) if m.role == "user" and m.content), "")
