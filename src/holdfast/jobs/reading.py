"""
A model reads the messages that it has not read yet, for facts.

Every few user messages, sooner when one of them states something that the rules could not read; what it
answers is looked at by the parser, the second look, the grounding and the registry before it is believed.  A
window that the model refuses again and again is passed over, and waits as a job of its own, dead and visible.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ..clock import new_id
from ..config import Config
from ..digest import rules
from ..digest.extract import Extraction, Window, read_answer
from ..digest.ground import ground
from ..digest.shown import MOST_BEFORE, known_lines, message_lines, text_of
from ..ingest.consent import unwanted
from ..ingest.pace import after_reading, reading_due
from ..ingest.redact import masked_message
from ..llm.prompts import Prompt, load
from ..llm.protocol import BadAnswer, Request
from ..reconcile.archive import order_upkeep
from ..reconcile.facts import Claim
from ..reconcile.learn import learn
from ..reconcile.registry import same
from ..reconcile.statements import Means
from ..reports import DigestReport
from ..scope import SELF, Scope
from ..store.protocol import ConversationRow, FactRow, ReadView, WriteView
from ..types import Candidate, FactChange, Job, Message
from .asked import Asked, spent
from .facts import DISCARDED, ReadFacts, claim_of, hidden, names_of, speaker_subject, spoken_by
from .guard import scope_of, still_mine

WINDOW_TURNS, WINDOW_MESSAGES, WINDOW_CHARS = 15, 60, 24_000
GIVE_UP_AFTER = 3  # bad answers about one window before it is passed over
RULES_FIRST_MS = 500


@dataclass(frozen=True, slots=True)
class Sight:
    """What a model reads, as of one moment: messages whose secrets are masked, and all that it is shown beside."""

    epoch: int
    row: ConversationRow | None
    messages: list[Message]
    before: list[Message]
    facts: list[FactRow]
    names: dict[str, int]
    never: list[str]
    injected: frozenset[str]
    unreadable: bool


@dataclass(frozen=True, slots=True)
class ReadByModel:
    """The handler of ``read`` jobs: one call a window, each with one transaction behind it."""

    asked: Asked
    reader: ReadFacts

    @property
    def config(self) -> Config:
        """The settings of the memory."""
        return self.reader.config

    def __call__(self, job: Job) -> DigestReport:
        scope, report = scope_of(job), DigestReport()
        store, halfway = self.asked.store, False
        while True:
            span = range_of(job)
            sight = store.read(scope, partial(self.look, span=span))
            if not (halfway and sight.messages) and not self._due(sight, span):
                if store.write(scope, partial(self._settle, job=job, sight=sight)):
                    return report
                continue
            prompt = load("fact_extraction")
            self.asked.hold(job, scope)
            answer = self.asked.asking.ask(scope, self.request(scope, sight, prompt))
            try:
                extraction = read_answer(answer, self.window(scope, sight), source=self.asked.source(prompt))
            except BadAnswer:
                if span or job.attempt < min(GIVE_UP_AFTER, self.config.job_attempts):
                    raise
                store.write(scope, partial(self._pass_over, job=job, sight=sight))
                report += DigestReport(failed=1, tokens=spent(answer))
                continue
            accepted, refused = self.claims(scope, sight, extraction)
            upto = _read_upto(sight, extraction, cut=answer.finish == "length")
            means = self.reader.means([c.candidate.text for c in accepted if c.candidate.kind == "statement"])
            work = partial(
                self._write, job=job, sight=sight, upto=upto, accepted=accepted, refused=refused, means=means
            )
            changes = store.write(scope, work)
            halfway = upto < sight.messages[-1].seq
            refusals = sum(change.op == "rejected" for change in changes)
            learned = tuple(changes)
            report += DigestReport(
                facts=len(changes) - refusals,
                rejected=refusals + len(extraction.problems),
                tokens=spent(answer),
                changes=learned,
            )
            if span:
                return report

    def look(self, view: ReadView, span: tuple[int, int] | None = None) -> Sight:
        """What there is to read: the messages after the mark, or those of *span*."""
        row = view.conversation()
        start, end = span or ((row.read_seq if row else 0) + 1, None)
        found = view.messages(start_seq=max(1, start - MOST_BEFORE), end_seq=end, limit=WINDOW_MESSAGES + MOST_BEFORE)
        hide = self.config.detectors
        shown = [masked_message(message, hide) for message in found]
        messages = _window([message for message in shown if message.seq >= start])
        facts = view.facts()
        injected = {row.fact.text for row in facts} | {
            line for summary in view.summaries() for line in summary.text.splitlines()
        }
        return Sight(
            epoch=view.person().epoch,
            row=row,
            messages=messages,
            before=[message for message in shown if message.seq < start],
            facts=facts,
            names=names_of(view, messages),
            never=[topic for _, topic in view.topics()],
            injected=frozenset(injected),
            unreadable=_unreadable(view, [m for m in messages if row and m.seq <= row.extracted_seq], facts),
        )

    def request(self, scope: Scope, sight: Sight, prompt: Prompt) -> Request:
        """The prompt about one window: what never changes first, what changes each time last."""
        limit = self.config.message_char_limit
        words = [message.content for message in sight.messages]
        sections = [
            ("about", [scope.subject] if scope.subject and scope.subject != SELF else []),
            ("known", known_lines([row.fact for row in sight.facts], words)),
            ("before", message_lines(sight.before, min(limit, 240))),
            ("read", message_lines(sight.messages, limit)),
        ]
        first, last = sight.messages[0].seq, sight.messages[-1].seq
        key = f"facts:{scope.conversation}:{first}-{last}"
        return self.asked.request("facts", prompt, text_of(sections), key, more=self.reader.registry.listing())

    def window(self, scope: Scope, sight: Sight) -> Window:
        """What the parser knows of the window."""
        others = rules.known_others(row.fact for row in sight.facts)
        if scope.subject is not None and scope.subject != SELF:
            others.setdefault(scope.subject, scope.subject)
        return Window(
            messages={message.seq: message for message in sight.messages},
            before=tuple(sight.before),
            subject=scope.subject or SELF,
            others=others,
            language=self.config.language,
        )

    def claims(
        self, scope: Scope, sight: Sight, extraction: Extraction
    ) -> tuple[list[Claim], list[tuple[Candidate, str]]]:
        """What of an extraction stands, in the order in which it was said, and what does not with the reason."""
        messages = {message.seq: message for message in sight.messages}
        found = [candidate for candidate in extraction.candidates if not unwanted(candidate, sight.never)]
        found = [self._spoken(scope, sight, messages, candidate) for candidate in found]
        good, bad = ground(found, messages, min_confidence=self.config.min_confidence, injected=sight.injected)
        dropped = [pair for pair in extraction.dropped if not unwanted(pair[0], sight.never)]
        masked = [(candidate, DISCARDED) for candidate, _ in good if hidden(candidate)]
        accepted = [
            claim_of(scope, candidate, evidence)
            for candidate, evidence in sorted(good, key=lambda pair: (pair[0].seq, pair[0].start))
            if not hidden(candidate) and not _told_there(sight.facts, candidate, scope)
        ]
        return accepted, [*dropped, *bad, *masked]

    def _spoken(self, scope: Scope, sight: Sight, messages: dict[int, Message], candidate: Candidate) -> Candidate:
        message = messages.get(candidate.seq)
        if message is None or message.role != "user":
            return candidate
        return spoken_by(candidate, speaker_subject(message, scope.user, sight.names))

    def _due(self, sight: Sight, span: tuple[int, int] | None) -> bool:
        """Whether a call is made now."""
        row = sight.row
        if row is None or not any(message.role == "user" for message in sight.messages):
            return False
        if span:
            return True
        every = self.config.extract_every_user_turns
        silent = self.reader.now_ms() - row.last_at >= self.config.chunk_gap_minutes * 60_000
        if silent or row.ended_seq > row.read_seq:
            return True
        return reading_due(row, every) and (row.unread_turns >= every or sight.unreadable)

    def _settle(self, view: WriteView, job: Job, sight: Sight) -> bool:
        """Nothing is due: finish, and come back when silence will have made it due; False when more came meanwhile."""
        still_mine(view, job, sight.epoch)
        now_ms, row = self.reader.now_ms(), view.conversation()
        if row is not None and sight.row is not None and row.next_seq != sight.row.next_seq:
            return False
        view.finish(job, now_ms)
        if row is None or range_of(job):
            return True
        last = row.next_seq - 1
        if not any(message.role == "user" for message in sight.messages):
            view.save_conversation(replace(row, read_seq=last if not sight.messages else sight.messages[-1].seq))
        elif row.extracted_seq < last:
            view.want("read", "", wanted=last, run_at_ms=now_ms + RULES_FIRST_MS, now_ms=now_ms)
        else:
            silent_at = row.last_at + self.config.chunk_gap_minutes * 60_000
            view.want("read", "", wanted=last, run_at_ms=max(now_ms, silent_at), now_ms=now_ms)
        return True

    def _write(
        self,
        view: WriteView,
        job: Job,
        sight: Sight,
        upto: int,
        accepted: Sequence[Claim],
        refused: Sequence[tuple[Candidate, str]],
        means: Means,
    ) -> list[FactChange]:
        still_mine(view, job, sight.epoch)
        row, now_ms = view.conversation(), self.reader.now_ms()
        changes = learn(
            view,
            accepted,
            refused,
            self.reader.registry,
            new_id=lambda: new_id("fact", now_ms),
            now_ms=now_ms,
            means=means,
        )
        if row is not None:
            if range_of(job):
                view.finish(job, now_ms)
            else:
                view.save_conversation(self._moved(row, sight, upto))
            self.order_rest(view, row, changes, now_ms)
        return changes

    def order_rest(self, view: WriteView, row: ConversationRow, changes: Sequence[FactChange], now_ms: int) -> None:
        """Have what was learned embedded, and the cap looked at."""
        if self.reader.embeds and any(change.op != "rejected" for change in changes):
            view.want("embed", "", wanted=row.next_seq - 1, run_at_ms=now_ms, now_ms=now_ms)
        order_upkeep(view, changes, self.config.max_memories, now_ms)

    def _moved(self, row: ConversationRow, sight: Sight, upto: int) -> ConversationRow:
        turns = sum(message.role == "user" and message.seq <= upto for message in sight.messages)
        return after_reading(row, upto, turns, self.config.extract_every_user_turns)

    def _pass_over(self, view: WriteView, job: Job, sight: Sight) -> None:
        """Leave a window to a job of its own, so that what comes after it can be read."""
        still_mine(view, job, sight.epoch)
        row, now_ms = view.conversation(), self.reader.now_ms()
        if row is None:
            return
        first, last = sight.messages[0].seq, sight.messages[-1].seq
        view.want("read", f"{first}-{last}", wanted=last, run_at_ms=now_ms, now_ms=now_ms)
        view.save_conversation(self._moved(row, sight, last))


def range_of(job: Job) -> tuple[int, int] | None:
    """The range of messages that a job is about, when its lane names one: ``12-21``."""
    first, dash, last = job.key.partition("-")
    return (int(first), int(last)) if dash and first.isdigit() and last.isdigit() else None


def _window(messages: Sequence[Message]) -> list[Message]:
    """As many messages as one call reads: whole ones, not more than so many turns and characters."""
    taken: list[Message] = []
    turns = chars = 0
    for message in messages[:WINDOW_MESSAGES]:
        turns += message.role == "user"
        chars += min(len(message.content), 1_200)
        if taken and (turns > WINDOW_TURNS or chars > WINDOW_CHARS):
            break
        taken.append(message)
    return taken


def _unreadable(view: ReadView, messages: Sequence[Message], facts: Sequence[FactRow]) -> bool:
    """Whether one of *messages* seems to state something of which the rules made nothing."""
    home = view.scope.subject
    read = {
        e.seq for row in facts for e in row.fact.evidence if (e.conversation, e.home) == (view.scope.conversation, home)
    }
    return any(
        message.role == "user" and message.seq not in read and rules.might_state(message.content)
        for message in messages
    )


def _told_there(facts: Iterable[FactRow], candidate: Candidate, scope: Scope) -> bool:
    """Whether the same is believed already on the strength of the same message."""
    if candidate.op == "retract":
        return False
    for row in facts:
        fact = row.fact
        if (fact.subject, fact.category, fact.key, fact.kind) != (
            candidate.subject, candidate.category, candidate.key, candidate.kind,
        ):  # fmt: skip
            continue
        alike = (
            same(fact.value) == same(candidate.value)
            if fact.kind == "attribute"
            else same(fact.text) == same(candidate.text)
        )
        if alike and any((e.conversation, e.seq) == (scope.conversation, candidate.seq) for e in fact.evidence):
            return True
    return False


def _read_upto(sight: Sight, extraction: Extraction, *, cut: bool) -> int:
    """The last message that counts as read: of an answer that was cut off, the one before its last row's."""
    last = sight.messages[-1].seq
    if not cut:
        return last
    named = max((c.seq for c in extraction.candidates), default=0)
    first_user = next(message.seq for message in sight.messages if message.role == "user")
    earlier = [message.seq for message in sight.messages if first_user <= message.seq < named]
    return max(earlier, default=last if named >= last else first_user)
