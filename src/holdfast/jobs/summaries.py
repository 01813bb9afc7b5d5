"""
Summaries: close chunks, summarize them, and roll summaries up level by level, one transaction a summary.

The built-in rules summarize, or a model, which notes the episodes and facts of a chunk in the same call.  Where the model fails repeatedly the rules summarize, so that the conversation goes on, and jobs for
that range alone are left for the model.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from ..clock import from_ms, new_id, to_ms
from ..config import Config
from ..digest.chunk import Chunk, closing_silence, count_exchanges, find_closed_chunks, is_courtesy, is_short
from ..digest.summarize import (
    SUMMARY_SOURCE,
    SummaryDraft,
    says_nothing,
    story_line_summary,
    summarize_chunk,
    summarize_level,
    summarize_rest,
    tell_story,
)
from ..ingest.append import advance_reading
from ..ingest.redact import mask_messages
from ..llm.protocol import BadAnswer, ModelError
from ..recall.search import without_changed, without_changed_lines
from ..reports import DigestReport
from ..scope import SELF, Scope
from ..store import (
    ConversationRow,
    Derivation,
    DocRow,
    ReadView,
    UserRow,
    WriteView,
    effective_consent,
    pack_words,
    speaker_names,
)
from ..text import dataclass
from ..text.terms import signals, terms
from ..types import BY_HAND_CONVERSATION, Detector, Fact, FactChange, Job, Message, Story, StoryLine, Summary
from .facts import report_of
from .model_reader import GroundedFacts, ModelReader, RangeEpisodes
from .queue import Dependencies, FenceLost, check_claim, order_range, range_of, scope_of, went_on

WINDOW_MESSAGES = 200
MOST_TOLD = 300  # summaries that a story is made from, the newest
MOST_UNTOLD = 100  # conversations, the newest, whose messages without a summary follow a story
MOST_EARLIER, OPEN_EARLIER, MOST_OPEN = 24, 5, 40  # summaries, conversations without one, and messages of each
NAMED_BY, NAMED_WITHIN = 3, 20  # newest conversations, and first messages of each, that may show the user's name
MOST_RESTS = 512  # conversations whose ends are kept summarized
RESUMMARIZE = "summary"
"""The kind of a job in which a model summarizes a range again that the rules summarized in its place."""


@dataclass(frozen=True, slots=True)
class OpenMessages:
    """The messages after the last chunk, and the summaries so far, in one snapshot."""

    epoch: int
    row: ConversationRow | None
    messages: list[Message]
    summaries: list[Summary]


@dataclass(frozen=True, slots=True)
class RangeDraft:
    """
    The summary of a chunk or level that is not yet written, and what the same calls brought.

    ``left`` names the kinds of jobs that the range still needs.  With ``read=False`` no model has seen its messages: they are
    read with those that follow, if any do.
    """

    draft: SummaryDraft
    episodes: RangeEpisodes | None = None
    facts: GroundedFacts | None = None
    left: tuple[str, ...] = ()
    tokens: int = 0
    read: bool = True


@dataclass(frozen=True, slots=True)
class CloseChunks:
    """The handler of ``chunk`` jobs."""

    deps: Dependencies
    reader: ModelReader | None = None

    def __call__(self, job: Job) -> DigestReport:
        scope, report, store = scope_of(job), DigestReport(), self.deps.store
        while True:
            seen = store.read(scope, self._snapshot)
            children = self._due_rollup(seen.summaries)
            chunks = self._due_chunks(seen) if not children else []
            if children:
                made = self._level_draft(job, scope, children)
                store.write(scope, partial(self._add_level, job=job, seen=seen, children=children, made=made))
                report += DigestReport(failed=len(made.left), tokens=made.tokens)
            elif chunks:
                inside = [m for m in seen.messages if m.seq <= chunks[0].end_seq]
                made = self._chunk_draft(job, scope, chunks[0], inside, seen.row)
                work = partial(self._add_chunk, job=job, seen=seen, chunk=chunks[0], made=made)
                report += DigestReport(failed=len(made.left), tokens=made.tokens) + report_of(store.write(scope, work))
            elif store.write(scope, partial(self._settle, job=job, seen=seen)):
                return report
            else:
                continue
            report += DigestReport(summaries=1)

    def _snapshot(self, view: ReadView) -> OpenMessages:
        row = view.conversation()
        if row is None:
            return OpenMessages(view.user().epoch, None, [], [])
        found = view.messages(start_seq=row.chunk_start, limit=WINDOW_MESSAGES)
        messages = mask_messages(found, self.deps.config.detectors)
        return OpenMessages(view.user().epoch, row, messages, view.summaries())

    def _due_chunks(self, seen: OpenMessages) -> list[Chunk]:
        if seen.row is None or not seen.messages:
            return []
        whole = len(seen.messages) < WINDOW_MESSAGES
        now_ms = self.deps.now_ms() if whole else None
        first, ended = seen.row.chunk_start == 1, seen.row.ended_seq
        found = find_closed_chunks(seen.messages, self.deps.config, ended_seq=ended, now_ms=now_ms, first=first)
        # erased messages between two chunks belong to the later one
        return [replace(found[0], start_seq=seen.row.chunk_start)] if found else []

    def _due_rollup(self, summaries: Sequence[Summary]) -> list[Summary]:
        """Return the oldest summaries of the lowest level that has enough of them without a parent."""
        count = self.deps.config.rollup_summaries
        for level in sorted({summary.level for summary in summaries}):
            orphans = [s for s in summaries if s.level == level and s.parent is None]
            if len(orphans) >= count:
                return orphans[:count]
        return []

    def _level_draft(self, job: Job, scope: Scope, children: Sequence[Summary]) -> RangeDraft:
        """
        Summarize several summaries; in economy mode by the rules.

        Raises:
            ModelError: the model is to be called again later.
        """
        if self.reader is None or self.deps.config.economy:
            return RangeDraft(summarize_level(children))
        self.reader.client.extend_lease(job, scope)
        try:
            draft, tokens = self.reader.summarize_level(scope, children)
        except ModelError as error:
            if not self.reader.client.gives_up(job, error):
                raise
            return RangeDraft(summarize_level(children), left=(RESUMMARIZE,))
        return RangeDraft(draft, tokens=tokens)

    def _chunk_draft(
        self, job: Job, scope: Scope, chunk: Chunk, messages: Sequence[Message], row: ConversationRow | None
    ) -> RangeDraft:
        """
        Summarize a chunk, and read its episodes and unread facts, in one call of a model.

        A visit that a long silence ended costs no call of its own: the rules summarize it, unless the model has not
        read yet what was stated there.

        Raises:
            ModelError: the model is to be called again later.
        """
        if self.reader is None or all(is_courtesy(message.content) for message in messages):
            return RangeDraft(summarize_chunk(messages))
        silenced = row is not None and row.ended_seq < chunk.end_seq and row.stated_seq <= row.read_seq
        if silenced and is_short(messages, self.deps.config, first=chunk.start_seq == 1):
            return RangeDraft(summarize_chunk(messages), read=False)
        reader, span = self.reader, (chunk.start_seq, chunk.end_seq)
        reader.client.extend_lease(job, scope)
        excerpt = self.deps.store.read(scope, lambda view: reader.excerpt(view, *span))
        try:
            answer, tokens = reader.read_combined(scope, excerpt, span)
        except ModelError as error:
            if not reader.client.gives_up(job, error):
                raise
            return RangeDraft(summarize_chunk(messages), left=(RESUMMARIZE, "episodes", "read"))
        parts = ((RESUMMARIZE, answer.draft), ("episodes", answer.episodes), ("read", answer.facts))
        left = tuple(kind for kind, part in parts if part is None)
        return RangeDraft(answer.draft or summarize_chunk(messages), answer.episodes, answer.facts, left, tokens)

    def _add_chunk(
        self, view: WriteView, job: Job, seen: OpenMessages, chunk: Chunk, made: RangeDraft
    ) -> list[FactChange]:
        check_claim(view, job, seen.epoch)
        row = view.conversation()
        if row is None or row.chunk_start != chunk.start_seq:
            raise FenceLost
        last = next(m for m in seen.messages if m.seq == chunk.end_seq)
        span, times = (chunk.start_seq, chunk.end_seq), (seen.messages[0].at, last.at)
        summary = self._summary(made.draft, *span, 1, chunk.exchanges, (), seen, *times)
        doc = self._index(view, summary, row, to_ms(last.at) if last.at else row.last_at)
        view.add_summary(summary, doc, range(chunk.start_seq, chunk.end_seq + 1))
        place = (row.subject, row.conversation, chunk.start_seq, chunk.end_seq)
        view.add_derivations([Derivation("summary", summary.id, "message", *place)])
        changes: list[FactChange] = []
        if self.reader is not None:
            row, changes = self._add_findings(view, self.reader, row, made, (chunk.start_seq, chunk.end_seq))
        row = replace(row, chunk_start=chunk.end_seq + 1)
        view.save_conversation(row)
        order_story(view, row.subject, self.deps.now_ms(), over_at(row, self.deps.config))
        return changes

    def _add_findings(
        self, view: WriteView, reader: ModelReader, row: ConversationRow, made: RangeDraft, span: tuple[int, int]
    ) -> tuple[ConversationRow, list[FactChange]]:
        """Write the episodes and facts of a chunk, and order the jobs that are left; return the moved conversation."""
        now_ms, config = self.deps.now_ms(), self.deps.config
        changes: list[FactChange] = []
        unread = max(span[0], row.read_seq + 1)
        if made.episodes is not None:
            changes += _learn_episodes(view, reader, row, made.episodes, now_ms)
        if made.facts is not None:
            changes += reader.learn(view, row, made.facts, now_ms)
            view.add_read_range(reader.client.model.name, *span)
        for kind in made.left:
            if kind != "read":
                order_range(view, kind, *span, now_ms)
            elif unread <= span[1]:
                order_range(view, kind, unread, span[1], now_ms)
        if made.read and row.read_seq < span[1]:
            if row.read_seq < span[0] - 1 and row.unread_turns:
                order_range(view, "read", row.read_seq + 1, span[0] - 1, now_ms)
            here = view.messages(start_seq=unread, end_seq=span[1])
            every = config.extract_every_user_turns  # the call is made for the summary as well: it counts a little less
            row = advance_reading(row, here, every, turns=1 + count_exchanges(here))
        stated = row.stated_seq > span[1] and not config.economy  # what waited for this chunk to be read
        if stated or row.ended_seq > span[1]:  # or a rest that the end does not close
            view.want("read", "", wanted=row.next_seq - 1, run_at_ms=now_ms, now_ms=now_ms)
        return row, changes

    def _add_level(
        self, view: WriteView, job: Job, seen: OpenMessages, children: Sequence[Summary], made: RangeDraft
    ) -> None:
        check_claim(view, job, seen.epoch)
        row = view.conversation()
        orphans = {s.id for s in view.summaries(level=children[0].level) if s.parent is None}
        if row is None or not orphans.issuperset(s.id for s in children):
            raise FenceLost
        ids, exchanges = tuple(s.id for s in children), sum(s.exchanges for s in children)
        first, last, level = children[0].start_seq, children[-1].end_seq, children[0].level + 1
        times = (children[0].first_at, children[-1].last_at)
        summary = self._summary(made.draft, first, last, level, exchanges, ids, seen, *times)
        messages = view.messages(start_seq=last, end_seq=last)
        at = to_ms(messages[0].at) if messages and messages[0].at else row.last_at
        doc = self._index(view, summary, row, at)
        view.add_summary(summary, doc, ())
        view.set_parent(ids, summary.id)
        view.add_derivations(
            Derivation("summary", summary.id, "summary", row.subject, row.conversation, source=child) for child in ids
        )
        for kind in made.left:
            order_range(view, kind, first, last, self.deps.now_ms())
        order_story(view, row.subject, self.deps.now_ms(), over_at(row, self.deps.config))

    def _settle(self, view: WriteView, job: Job, seen: OpenMessages) -> bool:
        """Finish when nothing is due, and order the job that silence will bring; ``False`` when messages or the end came."""
        check_claim(view, job, seen.epoch)
        now_ms, row, config = self.deps.now_ms(), view.conversation(), self.deps.config
        if went_on(seen.row, row):
            return False
        view.finish(job, now_ms)
        minutes = closing_silence(seen.messages, config, first=row.chunk_start == 1) if row is not None else None
        if row is not None and minutes is not None:
            silent_at = row.last_at + minutes * 60_000
            if silent_at > now_ms:
                view.want("chunk", "", wanted=row.next_seq - 1, run_at_ms=silent_at, now_ms=now_ms)
        return True

    def _summary(
        self,
        draft: SummaryDraft,
        start_seq: int,
        end_seq: int,
        level: int,
        exchanges: int,
        children: tuple[str, ...],
        seen: OpenMessages,
        first_at: datetime | None,
        last_at: datetime | None,
    ) -> Summary:
        now_ms = self.deps.now_ms()
        return Summary(
            id=new_id("sum", now_ms),
            level=level,
            start_seq=start_seq,
            end_seq=end_seq,
            exchanges=exchanges,
            text=draft.text,
            themes=draft.themes,
            concerns=draft.concerns,
            actions=draft.actions,
            block=sum(s.level == level for s in seen.summaries),
            version=1,
            children=children,
            created_at=from_ms(now_ms),
            source=draft.source,
            conversation=seen.row.conversation if seen.row else "",
            first_at=first_at,
            last_at=last_at,
        )

    def _index(self, view: WriteView, summary: Summary, row: ConversationRow, at_ms: int) -> int:
        now_ms = self.deps.now_ms()
        number = into_index(view, summary, row.subject, at_ms, now_ms)
        if self.deps.embedder is not None:
            view.want("embed", "", wanted=row.next_seq - 1, run_at_ms=now_ms, now_ms=now_ms)
        return number


@dataclass(frozen=True, slots=True)
class Talks:
    """The conversations about one subject that are over and have summaries, oldest first, in one snapshot."""

    epoch: int
    story: Story | None
    told: list[list[Summary]]
    next_over_ms: int | None
    active: bool

    @property
    def sources(self) -> set[str]:
        """The ids of their summaries."""
        return {summary.id for talk in self.told for summary in talk}


@dataclass(frozen=True, slots=True)
class StoryDraft:
    """A story that is not yet written, its author, and the tokens that it took."""

    lines: tuple[StoryLine, ...] = ()
    source: str = SUMMARY_SOURCE
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class TellStory:
    """The handler of ``story`` jobs: the story of one subject, made again when what it rests on has changed."""

    deps: Dependencies
    reader: ModelReader | None = None

    def __call__(self, job: Job) -> DigestReport:
        scope, store = scope_of(job).about(job.subject), self.deps.store
        seen = store.read(scope, lambda view: talks_about(view, self.deps))
        made = StoryDraft()
        if seen.active and len(seen.told) >= self.deps.config.rollup_summaries and self.deps.config.story_tokens:
            before = {one.summary for line in seen.story.lines for one in line.sources} if seen.story else set()
            if before == seen.sources:
                store.write(scope, partial(self._settle, job=job, seen=seen))
                return DigestReport()
            made = self._draft(job, scope, seen.told)
        report = store.write(scope, partial(self._save, job=job, seen=seen, made=made))
        return report + DigestReport(tokens=made.tokens)

    def _draft(self, job: Job, scope: Scope, talks: Sequence[Sequence[Summary]]) -> StoryDraft:
        """
        Write the story of *talks* by the model; by the rules without one, in economy mode, and where its answer cannot be used.

        Raises:
            ModelError: the model is to be called again later.
        """
        if self.reader is not None and not self.deps.config.economy:
            self.reader.client.extend_lease(job, scope_of(job))
            try:
                return StoryDraft(*self.reader.tell_story(scope, talks))
            except ModelError as error:
                if not isinstance(error, BadAnswer) and not self.reader.client.gives_up(job, error):
                    raise
        return StoryDraft(tell_story(talks, self.deps.config.story_tokens))

    def _save(self, view: WriteView, job: Job, seen: Talks, made: StoryDraft) -> DigestReport:
        self._settle(view, job, seen)
        now_ms, subject = self.deps.now_ms(), view.scope.subject or SELF
        if made.lines:
            version = seen.story.version + 1 if seen.story else 1
            view.save_story(Story(new_id("story", now_ms), subject, made.lines, version, made.source, from_ms(now_ms)))
        elif seen.story is not None and seen.active:
            view.at(subject, None).remove_story()
        return DigestReport(summaries=int(bool(made.lines)))

    def _settle(self, view: WriteView, job: Job, seen: Talks) -> None:
        """Finish the job, and order the next for when a conversation that goes on is over."""
        check_claim(view, job, seen.epoch)
        view.finish(job, self.deps.now_ms())
        if seen.next_over_ms is not None:
            order_story(view, view.scope.subject or SELF, self.deps.now_ms(), seen.next_over_ms)


def talks_about(view: ReadView, deps: Dependencies) -> Talks:
    """Return the finished conversations about the view's subject, with their summaries."""
    here, now_ms, config = view.at(view.scope.subject, ""), deps.now_ms(), deps.config
    rows = {row.conversation: over_at(row, config) for row in here.newest_conversations() if not row.own_facts}
    rows.pop(BY_HAND_CONVERSATION, None)  # its facts are shown as facts
    talks: dict[str, list[Summary]] = {}
    for summary in here.newest_summaries(limit=MOST_TOLD):
        if rows.get(summary.conversation, now_ms + 1) <= now_ms:
            talks.setdefault(summary.conversation, []).append(summary)
    told = [
        believed
        for name, talk in talks.items()
        if (believed := without_changed(view.at(view.scope.subject, name), sorted(talk, key=_start)))
    ]
    return Talks(
        view.user().epoch,
        next(iter(here.stories()), None),
        sorted(told, key=lambda talk: _newest_first(talk[-1]), reverse=True),
        min((at for at in rows.values() if at > now_ms), default=None),
        effective_consent(view.consent(), view.scope.subject) == "active",
    )


def story_with_news(view: ReadView, config: Config) -> Story | None:
    """
    Return the story of the view's subject with lines for what is not in it yet, in the order of time; ``None`` before there is one.

    Such lines are made by the rules as they are read: of summaries that came since, and of messages that no summary covers, whose
    source has no id of a summary.
    """
    here = view.at(view.scope.subject, "")
    story = next(iter(here.stories()), None)
    if story is None:
        return None
    upto = _told_upto(story.lines)
    subject, user, rests = here.scope.subject or SELF, view.user(), RestSummaries()
    apart = view.conversations_apart() | {(subject, BY_HAND_CONVERSATION)}
    news = [one for one in here.newest_summaries(limit=MOST_TOLD) if one.end_seq > upto[one.conversation]]
    for row in here.newest_conversations(limit=MOST_UNTOLD):
        if row.next_seq > row.chunk_start and not row.own_facts:
            news += rests.of(here, row, user, config.detectors)
    talks: dict[tuple[str, bool], list[Summary]] = {}  # the end of a talk has a line of its own
    for summary in sorted(news, key=_start):
        if (subject, summary.conversation) not in apart:
            talks.setdefault((summary.conversation, not summary.id), []).append(summary)
    believed = [without_changed(view.at(subject, name), talk) for (name, _), talk in talks.items()]
    in_time = sorted((talk for talk in believed if talk), key=lambda talk: _newest_first(talk[-1]), reverse=True)
    lines = [*story.lines, *tell_story(in_time, config.story_tokens)]
    return replace(story, lines=tuple(sorted(lines, key=lambda line: to_ms(line.last_at) if line.last_at else 0)))


def _told_upto(lines: Sequence[StoryLine]) -> Counter[str]:
    """Return the last message of each conversation that the lines of a story cover."""
    upto = Counter[str]()
    for one in (source for line in lines for source in line.sources):
        upto[one.conversation] = max(upto[one.conversation], one.end_seq)
    return upto


def order_story(view: WriteView, subject: str, now_ms: int, at_ms: int = 0) -> None:
    """
    Order that the story of a subject is made again, at a time when its conversation is over.

    A story that waits already is not put off: one conversation or another about a subject may be going on all day.
    """
    run_at_ms = max(now_ms, at_ms)
    view.at(subject, None).want("story", "", wanted=run_at_ms, run_at_ms=run_at_ms, now_ms=now_ms, later=False)


def over_at(row: ConversationRow, config: Config) -> int:
    """Return when a conversation is over: at its end, or after a silence."""
    return row.last_at if row.ended_seq >= row.next_seq - 1 else row.last_at + config.chunk_gap_minutes * 60_000


def _start(summary: Summary) -> int:
    return summary.start_seq


@dataclass(frozen=True, slots=True)
class ReadEpisodes:
    """The handler of ``episodes`` jobs: one range whose episodes did not come with its summary."""

    reader: ModelReader

    def __call__(self, job: Job) -> DigestReport:
        scope, span, reader = scope_of(job), range_of(job), self.reader
        client, store = reader.client, reader.client.store
        excerpt = store.read(scope, lambda view: reader.excerpt(view, *span)) if span else None
        if span is None or excerpt is None or not excerpt.messages:
            store.write(scope, lambda view: view.finish(job, client.now_ms()))
            return DigestReport()
        client.extend_lease(job, scope)
        episodes, tokens = reader.read_episodes(scope, excerpt, span)
        epoch = excerpt.epoch

        def work(view: WriteView) -> list[FactChange]:
            changes = _add_episodes(view, reader, job, epoch, episodes)
            view.finish(job, client.now_ms())
            return changes

        return report_of(store.write(scope, work), tokens=tokens)


def _add_episodes(
    view: WriteView, reader: ModelReader, job: Job, epoch: int, episodes: RangeEpisodes
) -> list[FactChange]:
    check_claim(view, job, epoch)
    row = view.conversation()
    return [] if row is None else _learn_episodes(view, reader, row, episodes, reader.client.now_ms())


def _learn_episodes(
    view: WriteView, reader: ModelReader, row: ConversationRow, episodes: RangeEpisodes, now_ms: int
) -> list[FactChange]:
    view.add_episode_range(episodes.row, now_ms)
    return reader.learn(view, row, episodes.facts, now_ms)


def into_index(view: WriteView, summary: Summary, subject: str, at_ms: int, now_ms: int) -> int:
    """
    Make a summary searchable, and return the number of its document.

    *at_ms* is the time of its last message.
    """
    user = view.user()
    counts = Counter(terms(" ".join((summary.text, *summary.themes))))
    doc = DocRow(
        subject=subject,
        kind="summary",
        doc=user.next_doc,
        conversation=summary.conversation,
        seq=summary.end_seq,
        ref=summary.id,
        session=0,
        speaker=SELF,
        role="summary",
        at=at_ms,
        terms=counts.total(),
        chars=len(summary.text),
        signals=signals(summary.text),
        words=pack_words(counts),
    )
    view.save_user(replace(user, next_doc=user.next_doc + 1, version=user.version + 1), now_ms)
    view.add_docs([doc])
    return doc.doc


def other_conversations(view: ReadView) -> list[ConversationRow]:
    """Return the newest conversations about the view's subject but its own; what was written by hand is none."""
    names = (view.scope.conversation, BY_HAND_CONVERSATION)
    found = view.newest_conversations(limit=OPEN_EARLIER + len(names))
    return [row for row in found if row.conversation not in names][:OPEN_EARLIER]


def earlier_summaries(
    view: ReadView,
    others: Sequence[ConversationRow],
    own: ConversationRow | None,
    detectors: Sequence[Detector],
    rests: RestSummaries,
) -> list[Summary]:
    """
    Return what the user's other conversations about the view's subject said, newest first; *others* are the newest of them.

    Where there is a story of the subject, its lines stand in for the summaries that it tells.  The end of a conversation
    that no summary covers yet is summarized at once, by the rules, unless it goes on beside *own*: then what stands above
    the cache breakpoint would change with every message there.  Conversations with facts of their own are left out.
    """
    subject = view.scope.subject or SELF
    apart = view.conversations_apart() | {(subject, BY_HAND_CONVERSATION)}
    story, upto = _story_of_others(view)
    user = view.user()
    found = [
        one
        for one in view.newest_summaries(limit=MOST_EARLIER)
        if (subject, one.conversation) not in apart and one.end_seq > upto[one.conversation] and not says_nothing(one)
    ]
    for row in others:
        beside = own is not None and row.last_at > own.created_at
        if row.next_seq == row.chunk_start or beside or row.own_facts:
            continue
        found += rests.of(view, row, user, detectors)
    talks: dict[str, list[Summary]] = {}
    for summary in sorted(found, key=lambda one: one.start_seq):
        talks.setdefault(summary.conversation, []).append(summary)
    believed = [one for name, told in talks.items() for one in without_changed(view.at(subject, name), told)]
    if view.scope.general and subject != SELF:
        believed += _story_of_others(view.at(SELF, ""))[0]
    return sorted([*believed, *story], key=_newest_first)


def name_of_user(view: ReadView, messages: Sequence[Message], believed: Sequence[Fact]) -> str:
    """
    Return the name that signs the user's messages here, or the first ones of the newest conversations.

    It is empty when there are several, and when a fact says what the user is called.
    """
    if any((fact.subject, fact.category, fact.key) == (SELF, "identity", "name") for fact in believed):
        return ""
    names = set(speaker_names(view, messages))
    for row in view.newest_conversations(limit=NAMED_BY) if not names else ():
        names |= view.at(row.subject, row.conversation).names_at_start(NAMED_WITHIN).keys()
    return names.pop() if len(names) == 1 else ""


class RestSummaries:
    """
    The summaries of the ends of conversations that no stored summary covers, as every context of a new conversation asks for them.

    One is good for the conversation's row, the user's epoch, and the revision of messages that it was made with, in one and
    the same snapshot: an erasure by another process ends it.  Safe to use from any thread.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, ...], tuple[object, tuple[Summary, ...]]] = OrderedDict()
        self._lock = threading.Lock()

    def of(
        self, view: ReadView, row: ConversationRow, user: UserRow, detectors: Sequence[Detector]
    ) -> Sequence[Summary]:
        """Return the summaries of the end of the conversation *row*, which the view may see."""
        place, stamp = (
            (*view.scope.user_key, row.subject, row.conversation),
            (row, user.epoch, user.messages_rev, tuple(detectors)),
        )
        with self._lock:
            known = self._kept.get(place)
            if known is not None and known[0] == stamp:
                self._kept.move_to_end(place)
                return known[1]
        start = max(row.chunk_start, row.next_seq - MOST_OPEN)
        rest = view.at(row.subject, row.conversation).messages(start_seq=start)
        made = tuple(summarize_rest(mask_messages(rest, detectors)))
        with self._lock:
            self._kept[place] = (stamp, made)
            self._kept.move_to_end(place)
            if len(self._kept) > MOST_RESTS:
                self._kept.popitem(last=False)
        return made

    def clear(self) -> None:
        """Drop everything, as words of it may have been erased."""
        with self._lock:
            self._kept.clear()


def _story_of_others(view: ReadView) -> tuple[list[Summary], Counter[str]]:
    """
    Return the lines of the subject's story as summaries, and the last message of each conversation that it covers.

    Lines that rest on the view's own conversation alone are left out: it shows itself.
    """
    found, upto = list[Summary](), Counter[str]()
    for story in view.stories():
        for number, line in enumerate(line_ for line_ in without_changed_lines(view, story.lines)):
            if all(one.conversation == view.scope.conversation for one in line.sources):
                continue
            upto |= _told_upto([line])
            found.append(story_line_summary(story, number, line))
    return found, upto


def _newest_first(summary: Summary) -> tuple[float, str, int]:
    return (-(summary.last_at or summary.created_at).timestamp(), summary.conversation, -summary.start_seq)
