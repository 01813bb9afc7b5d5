"""A user's choices: memory on, paused or off, and topics that are never remembered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..clock import from_ms
from ..jobs.queue import ReadMode
from ..jobs.summaries import order_story
from ..scope import Scope
from ..store import ConsentRow, ReadView, Store, UserRow, WriteView, effective_consent
from ..text import dataclass
from ..types import Consent, ConsentState
from .ledger import note_withheld


@dataclass(frozen=True, slots=True)
class ConsentChoices:
    """The choices of users in one store."""

    store: Store
    now_ms: Callable[[], int]
    embeds: bool
    reads: Callable[[Scope], ReadMode]

    def status(self, scope: Scope) -> Consent:
        """Return the state in force for the scope's subject, or for all of the user's."""

        def look(view: ReadView) -> Consent:
            chosen = [row for row in view.consent() if row.subject in ("", scope.subject)]
            state = effective_consent(chosen, scope.subject)
            since = min((row.since for row in chosen if row.state == state), default=None)
            topics = tuple(dict.fromkeys(topic for _, topic in view.blocked_topics()))
            return Consent(state, None if since is None else from_ms(since), topics)

        return self.store.read(scope, look)

    def choose(self, scope: Scope, state: ConsentState) -> None:
        """
        From now on; work that runs is discarded, and what waited is ordered again when memory resumes.
        """

        reads = self.reads(scope)

        def work(view: WriteView) -> None:
            now_ms, user = self.now_ms(), view.user()
            if effective_consent(view.consent(), scope.subject) == state and state != "active":
                return
            view.save_consent(ConsentRow(scope.subject or "", state, now_ms))
            if state != "active":
                note_withheld(view, now_ms)
            if user == UserRow():
                return
            view.save_user(replace(user, epoch=user.epoch + 1), now_ms)
            if state == "active":
                self.take_up(view, reads, now_ms)
            else:
                view.remove_jobs()
            view.release_jobs(now_ms)

        self.store.write(scope, work)

    def take_up(self, view: WriteView, reads: ReadMode, now_ms: int) -> None:
        """Order what the messages that are there still call for, of the rules and, as it *reads*, of a model."""
        subjects = dict[str, None]()
        for row in view.conversations():
            here, last = view.at(row.subject, row.conversation), row.next_seq - 1
            if effective_consent(here.consent(), row.subject) != "active":
                continue
            subjects[row.subject] = None
            if row.extracted_seq < last:
                here.want("extract", "", wanted=last, run_at_ms=now_ms, now_ms=now_ms)
            if row.chunk_start <= last:
                here.want("chunk", "", wanted=last, run_at_ms=now_ms, now_ms=now_ms)
            if reads == "turns" and row.unread_turns:
                here.want("read", "", wanted=last, run_at_ms=now_ms, now_ms=now_ms)
            if reads:
                _take_up_episodes(here, now_ms)
            if self.embeds:
                here.want("embed", "", wanted=last, run_at_ms=now_ms, now_ms=now_ms)
        for subject in subjects:
            order_story(view, subject, now_ms)

    def never(self, scope: Scope, topic: str, *, never: bool) -> None:
        """Add a topic that facts are not learned about, or take it back."""
        subject = scope.subject or ""
        self.store.write(
            scope, lambda view: view.set_blocked_topic(subject, topic, blocked=never, now_ms=self.now_ms())
        )


def _take_up_episodes(here: WriteView, now_ms: int) -> None:
    """Order the episodes of chunks that a model told without them."""
    asked = {(done.start_seq, done.end_seq) for done in here.episode_ranges()}
    for told in here.summaries(level=1):
        if not told.source.startswith("rules ") and (told.start_seq, told.end_seq) not in asked:
            key = f"{told.start_seq}-{told.end_seq}"
            here.want("episodes", key, wanted=told.end_seq, run_at_ms=now_ms, now_ms=now_ms)
