"""
A question comes in: recall → context, each over one snapshot of one user's memory.

Nothing is taken from memory that is paused or opted out, and no secret is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .clock import Clock, from_ms, to_ms
from .config import Config
from .context.assemble import LAYERED, assemble, profile
from .context.budget import Count
from .context.classic import opening
from .context.layered import Strategy
from .context.material import Material, Prefix
from .context.result import Context
from .digest.summarize import roll
from .embed.protocol import Embedder
from .figures import Explained
from .ingest.consent import effective
from .ingest.redact import told
from .observing import Observed, timed
from .privacy.consent import state_of
from .recall.index import IndexCache
from .recall.search import believed, default_min_score, facts_at, ranked, recent, search, unexpired, with_replacements
from .scope import Scope
from .store import ReadView, Store, UserRow, WriteView
from .text.tokens import count_tokens
from .types import Fact, Hit, HitKind, Message, Section

NoteUses = Callable[[Scope, Iterable[str]], None]
NoteShown = Callable[[Scope, str, int, str, str, Sequence[str]], None]

# Asked for beyond a search's limit, in place of facts that turn out to have run out.
SPARE_HITS = 5
MOST_LOOKED_AT = 500  # hits of today among which those of an earlier time are looked for
MAX_OPENING = 8  # system messages at the head of a conversation that the classic strategies keep


class Answering:
    """
    Reads: search, recall and contexts; safe to use from any thread.

    Of the *embedders* the first one's vectors are compared, and where there are none yet the second one's.
    """

    def __init__(
        self,
        store: Store,
        config: Config,
        clock: Clock,
        embedders: tuple[Embedder | None, Embedder | None],
        now_ms: Callable[[], int],
        note_uses: NoteUses,
        note_shown: NoteShown,
    ) -> None:
        self.store, self.config, self.clock, self.now_ms = store, config, clock, now_ms
        self.embedder, self._previous = embedders
        self._note_uses, self._note_shown = note_uses, note_shown
        self.observed = Observed()
        self.cache = IndexCache(config.index_cache_mb * 1_000_000) if config.index_cache_mb else None

    def forget_caches(self) -> None:
        """Nothing that was read before may be shown from now on."""
        if self.cache is not None:
            self.cache.clear()

    @timed("search")
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
        """Search one scope; see `User.search`."""
        vector = self._vector(query)

        def work(view: ReadView) -> list[Hit]:
            if state_of(view, scope.subject) != "active":
                return []
            hits = search(
                view,
                query,
                now=self.clock(),
                kinds=kinds,
                limit=limit + SPARE_HITS,
                min_score=min_score,
                conversation=conversation,
                embedder=self.embedder,
                previous=self._previous,
                question_vector=vector,
                cache=self.cache,
                explain=explain,
                newest_first=True,
            )
            return self._told(view, self._usable(view, hits)[:limit])

        found = self.store.read(scope, work)
        self._note_uses(scope, (hit.id for hit in found if hit.kind == "fact"))
        return found

    def profile(self, scope: Scope, budget_tokens: int, count: Count) -> Section:
        """What is believed and may be used, as one block; see `User.profile`."""

        def look(view: ReadView) -> list[Fact]:
            if state_of(view, scope.subject) != "active":
                return []
            chosen, now_ms = [(row.subject, row.state) for row in view.consent()], self.now_ms()
            rows = [row for row in view.facts(evidence=False) if believed(row, now_ms)]
            return [row.fact for row in rows if effective(chosen, row.fact.subject) == "active"]

        return profile(self.store.read(scope, look), budget_tokens, count)

    def recall(self, scope: Scope, query: str, last: int, limit: int) -> list[Hit]:
        """The nearest of the last messages; see `Conversation.recall`."""

        def work(view: ReadView) -> list[Hit]:
            if state_of(view, scope.subject) != "active":
                return []
            found = recent(
                view, query, last_n=last, k=limit, now=self.clock(), embedder=self.embedder, cache=self.cache
            )
            return self._told(view, found)

        return self.store.read(scope, work)

    def _usable(self, view: ReadView, hits: Sequence[Hit]) -> list[Hit]:
        """*hits* without what has run out, and without what is about somebody for whom memory is paused."""
        chosen = [(row.subject, row.state) for row in view.consent()]
        kept = unexpired(view, hits, self.now_ms())
        return [hit for hit in kept if effective(chosen, hit.subject) == "active"] if chosen else kept

    def _told(self, view: ReadView, hits: Sequence[Hit]) -> list[Hit]:
        """Recalled words are shown without what must not be remembered, and with what replaced them."""
        detectors = self.config.detectors
        return [
            replace(hit, text=told(hit.text, detectors), replaced_by=told(hit.replaced_by, detectors))
            if hit.replaced_by
            else replace(hit, text=told(hit.text, detectors))
            for hit in with_replacements(view, hits)
        ]

    @timed("context")
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
    ) -> Context:
        """
        What the model should see next in the scope's conversation.

        Nothing is taken from memory, and nothing is noted, when the user paused it or opted out,
        or the conversation is incognito; ``quiet`` notes nothing of a context that is only looked at.
        """
        strategy = strategy or LAYERED
        vector = self._vector(query) if query and strategy.recalls and not incognito else None
        variant = f"{strategy.name}/{budget_tokens}"

        def look(view: ReadView) -> tuple[Material, Prefix | None, int | None]:
            if incognito or state_of(view, scope.subject) != "active":
                return Material(scope.conversation or "", [], 0, query=query, roll=roll), None, None
            found = self._material(view, query, vector, budget_tokens, strategy, variant)
            return *found, view.user().epoch

        material, previous, epoch = self.store.read(scope, look)
        context, prefix = assemble(
            material,
            budget_tokens=budget_tokens,
            recent_messages=self.config.recent_messages,
            system=system,
            previous=previous,
            count=count,
            strategy=strategy,
        )
        if quiet:
            return context
        self._tell(context)
        shown = {source.id for source in context.sources if source.kind == "fact"}
        recalled = [hit for hit in material.hits if hit.kind == "fact"][: self.config.recall_limit]
        self._note_uses(scope, (hit.id for hit in recalled if hit.id in shown))
        if epoch is not None:
            own = sum(section.tokens for section in context.sections if section.name == "system")
            question = query or _last_question(material.messages)
            words = _recalled(context, material.hits)
            self._note_shown(scope, strategy.name, context.tokens - own, context.prefix_sha256, question, words)
        if epoch is not None and (previous is None or previous.sha256 != prefix.sha256):
            self.store.write(scope, lambda view: _note(view, epoch, variant, prefix))
        return context

    def _tell(self, context: Context) -> None:
        """Tell who observes what a context came to, and whether its stable part could be used again."""
        for section in context.sections:
            if section.tokens:
                self.observed("context.tokens", section.name, section.tokens)
        self.observed("context.prefix", "reused" if context.prefix_changed_because is None else "changed", 1)

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
        chosen, now_ms = [(one.subject, one.state) for one in view.consent()], self.now_ms()
        known = view.prefix(variant)
        material = Material(
            conversation=view.scope.conversation or "",
            messages=messages,
            total_messages=total,
            summaries=summaries,
            facts=[
                row.fact
                for row in facts
                if believed(row, now_ms) and (not chosen or effective(chosen, row.fact.subject) == "active")
            ],
            hits=hits,
            query=query,
            notes={(hit.conversation, hit.seq): hit.replaced_by for hit in hits if hit.replaced_by},
            messages_from=start,
            recall_limit=self.config.recall_limit,
            opening=opening(view.messages(end_seq=start - 1, limit=MAX_OPENING)) if start > 1 else (),
            roll=roll,
        )
        return material, Prefix.loads(*known) if known else None

    def explain(self, scope: Scope, query: str, at_ms: int, limit: int, *, today: bool) -> Explained:
        """What a question finds and what of it a context would recall; see `User.explain`."""
        vector, at = self._vector(query), from_ms(at_ms)
        threshold = self._least_score()

        def work(view: ReadView) -> Explained:
            state, most = state_of(view, scope.subject), self.config.recall_limit
            if state != "active":
                return Explained(query, at, threshold, most, (), state=state)
            hits = search(
                view,
                query,
                now=at,
                limit=limit + SPARE_HITS if today else MOST_LOOKED_AT,
                embedder=self.embedder,
                previous=self._previous,
                question_vector=vector,
                cache=self.cache,
                explain=True,
                newest_first=True,
            )
            usable = self._told(view, self._usable(view, hits))
            if today:
                return Explained(query, at, threshold, most, ranked(usable[:limit], threshold, most))
            past = [fact for fact in facts_at(view.facts_ever(), at_ms, self.now_ms()) if not fact.live]
            seen = [hit for hit in usable if _was_there(view, hit, at_ms)][:limit]
            return Explained(query, at, threshold, most, ranked(seen, threshold, most), tuple(past))

        return self.store.read(scope, work)

    def _least_score(self) -> float:
        own = self.config.recall_min_score
        return own if own is not None else default_min_score(self.embedder)

    def _recall(self, view: ReadView, question: str, vector: NDArray[np.float32] | None, verbatim: int) -> list[Hit]:
        """Hits for a context; some of them will be shown verbatim anyway, so a few more are asked for."""
        hits = search(
            view,
            question,
            now=self.clock(),
            kinds=("message", "fact"),
            limit=self.config.recall_limit + min(verbatim, 40),
            min_score=self._least_score(),
            conversation=None,
            embedder=self.embedder,
            previous=self._previous,
            question_vector=vector,
            cache=self.cache,
            explain=False,
            newest_first=True,
        )
        return self._told(view, self._usable(view, hits))

    def _vector(self, text: str) -> NDArray[np.float32] | None:
        return self.embedder.embed([text])[0] if self.embedder is not None else None


def _note(view: WriteView, epoch: int, variant: str, prefix: Prefix) -> None:
    """Remember the stable part of a context, unless something that it was made from was erased meanwhile."""
    user = view.user()
    if user.epoch == epoch and user != UserRow():
        view.save_prefix(variant, prefix.sha256, prefix.dumps())


def _was_there(view: ReadView, hit: Hit, at_ms: int) -> bool:
    """Whether what was found had been said, or held, at an earlier time."""
    if hit.kind == "fact":
        row = view.fact(hit.id)
        return row is not None and to_ms(row.fact.valid_from) <= at_ms
    return hit.at is not None and to_ms(hit.at) <= at_ms


def _recalled(context: Context, hits: Sequence[Hit]) -> list[str]:
    """The words of what was recalled for the question and is shown: among the facts, or by itself."""
    facts = {source.id for source in context.sources if source.kind == "fact"}
    turns = {(s.conversation, s.start_seq) for s in context.sources if (s.section, s.kind) == ("recalled", "message")}
    return [
        hit.text for hit in hits if (hit.id in facts if hit.kind == "fact" else (hit.conversation, hit.seq) in turns)
    ]


def _last_question(messages: Sequence[Message]) -> str:
    return next((m.content for m in reversed(messages) if m.role == "user" and m.content), "")
