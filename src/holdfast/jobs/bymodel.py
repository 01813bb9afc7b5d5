"""
A model tells chunks and levels: the summary and, at the same time, the episodes; in economy mode all in one call.

Where it fails again and again the rules tell the summary, so that the conversation goes on.  What the
model did not do is left to jobs of its own, for that range alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from ..digest.chunk import Chunk
from ..digest.summarize import SummaryDraft, summarize_chunk, summarize_level
from ..ingest.append import advance_reading
from ..llm.protocol import ModelError
from ..reports import DigestReport
from ..scope import Scope
from ..store import ConversationRow, ReadView, WriteView
from ..types import FactChange, Job, Message, Summary
from .asked import gives_up
from .guard import scope_of, still_mine
from .reading import order_range, range_of, report_of
from .sight import Found, Sight
from .telling import Episodes, Telling

AGAIN = "summary"
"""The kind of a job that has a model tell what the rules had to tell for it."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Told:
    """What a chunk or a level came to; ``left`` names the kinds of jobs that the range of a chunk still needs."""

    draft: SummaryDraft
    episodes: Episodes | None = None
    facts: Found | None = None
    left: tuple[str, ...] = ()
    tokens: int = 0

    @property
    def report(self) -> DigestReport:
        """What asking took."""
        return DigestReport(failed=len(self.left), tokens=self.tokens)


@dataclass(frozen=True, slots=True)
class ByModel:
    """Tells with one model; see `Telling` for the calls themselves."""

    telling: Telling

    def level(self, job: Job, scope: Scope, children: Sequence[Summary]) -> Told:
        """
        What several summaries come to; in economy mode the rules say it.

        Raises:
            ModelError: the model is to be asked again later.
        """
        config = self.telling.asked.config
        if config.economy:
            return Told(summarize_level(children))
        self.telling.asked.hold(job, scope)
        try:
            draft, tokens = self.telling.level(scope, children)
        except ModelError as error:
            if not gives_up(job, error, config.job_attempts):
                raise
            return Told(summarize_level(children), left=(AGAIN,))
        return Told(draft, tokens=tokens)

    def chunk(self, job: Job, scope: Scope, chunk: Chunk, messages: Sequence[Message]) -> Told:
        """
        What a chunk comes to.

        Raises:
            ModelError: the model is to be asked again later.
        """
        span = (chunk.start_seq, chunk.end_seq)
        self.telling.asked.hold(job, scope)
        sight, asked_before = self.telling.asked.store.read(scope, partial(self._look, span=span))
        if self.telling.asked.config.economy:
            return self._at_once(job, scope, span, sight, messages)
        return self._side_by_side(job, scope, span, sight, messages, asked_before=asked_before)

    def _look(self, view: ReadView, span: tuple[int, int]) -> tuple[Sight, bool]:
        done = any((row.start_seq, row.end_seq) == span for row in view.episode_ranges())
        return self.telling.looking.span(view, *span), done

    def _at_once(
        self, job: Job, scope: Scope, span: tuple[int, int], sight: Sight, messages: Sequence[Message]
    ) -> Told:
        try:
            parts, tokens = self.telling.all_at_once(scope, sight, span)
        except ModelError as error:
            if not gives_up(job, error, self.telling.asked.config.job_attempts):
                raise
            return Told(summarize_chunk(messages), left=(AGAIN, "episodes", "read"))
        left = [kind for kind, part in (("episodes", parts.episodes), ("read", parts.facts)) if part is None]
        if parts.draft is None:
            left.insert(0, AGAIN)
        draft = parts.draft or summarize_chunk(messages)
        return Told(draft, parts.episodes, parts.facts, tuple(left), tokens)

    def _side_by_side(
        self,
        job: Job,
        scope: Scope,
        span: tuple[int, int],
        sight: Sight,
        messages: Sequence[Message],
        *,
        asked_before: bool,
    ) -> Told:
        with ThreadPoolExecutor(1, thread_name_prefix="holdfast-episodes") as beside:
            noting = None if asked_before else beside.submit(_tried, partial(self.telling.episodes, scope, sight, span))
            told = _tried(partial(self.telling.chunk, scope, messages))
            noted = noting.result() if noting is not None else None
        episodes, spent = noted if isinstance(noted, tuple) else (None, 0)
        left = ("episodes",) if isinstance(noted, ModelError) else ()
        if not isinstance(told, ModelError):
            draft, tokens = told
            return Told(draft, episodes, None, left, tokens + spent)
        if not gives_up(job, told, self.telling.asked.config.job_attempts):
            if episodes is not None:  # a later attempt need not ask for them again
                self.telling.asked.store.write(scope, partial(self.keep, job=job, epoch=sight.epoch, episodes=episodes))
            raise told
        return Told(summarize_chunk(messages), episodes, None, (AGAIN, *left), spent)

    def keep(self, view: WriteView, job: Job, epoch: int, episodes: Episodes) -> list[FactChange]:
        """Write the episodes of a range, and that they were asked for."""
        still_mine(view, job, epoch)
        row, now_ms = view.conversation(), self.telling.asked.now_ms()
        return [] if row is None else self._note(view, row, episodes, now_ms)

    def _note(self, view: WriteView, row: ConversationRow, episodes: Episodes, now_ms: int) -> list[FactChange]:
        view.add_episodes(episodes.row, now_ms)
        return self.telling.looking.learn(view, row, episodes.found, now_ms)

    def write(
        self, view: WriteView, row: ConversationRow, told: Told, span: tuple[int, int], now_ms: int
    ) -> tuple[ConversationRow, list[FactChange]]:
        """
        Write what a chunk came to beside its summary, and order what is left.

        Returns the conversation with its marks moved, which the caller saves, and what was learned.
        """
        changes = self._note(view, row, told.episodes, now_ms) if told.episodes is not None else []
        if told.facts is not None:
            changes += self.telling.looking.learn(view, row, told.facts, now_ms)
            view.add_reading(self.telling.asked.asking.model.name, *span)
        for kind in told.left:
            order_range(view, kind, *span, now_ms)
        if self.telling.asked.config.economy and row.read_seq < span[1]:
            if row.read_seq < span[0] - 1 and row.unread_turns:
                order_range(view, "read", row.read_seq + 1, span[0] - 1, now_ms)
            here = view.messages(start_seq=row.read_seq + 1, end_seq=span[1])
            turns = sum(message.role == "user" for message in here)
            row = advance_reading(row, span[1], turns, self.telling.asked.config.extract_every_user_turns)
            row = replace(row, ahead_turns=0)
        return row, changes


@dataclass(frozen=True, slots=True)
class NoteEpisodes:
    """The handler of ``episodes`` jobs: one range whose episodes were not had together with its summary."""

    by_model: ByModel

    def __call__(self, job: Job) -> DigestReport:
        scope, span = scope_of(job), range_of(job)
        telling = self.by_model.telling
        sight = telling.asked.store.read(scope, lambda view: telling.looking.span(view, *span)) if span else None
        if span is None or sight is None or not sight.messages:
            telling.asked.store.write(scope, lambda view: view.finish(job, telling.asked.now_ms()))
            return DigestReport()
        telling.asked.hold(job, scope)
        episodes, tokens = telling.episodes(scope, sight, span)
        epoch = sight.epoch

        def work(view: WriteView) -> list[FactChange]:
            changes = self.by_model.keep(view, job, epoch, episodes)
            view.finish(job, telling.asked.now_ms())
            return changes

        return report_of(telling.asked.store.write(scope, work), tokens=tokens)


def _tried(call: Callable[[], T]) -> T | ModelError:
    try:
        return call()
    except ModelError as error:
        return error
