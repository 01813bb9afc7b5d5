"""
A model reads the messages that it has not read yet, for facts.

Every few user messages, sooner when one of them states something that the rules could not read.  A
window of which the model makes nothing again and again is passed over, and waits as a job of its own, in the
end dead and visible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from ..digest.fact_answers import Extraction, parse_facts
from ..digest.prompt_lines import format_sections
from ..ingest.append import advance_reading, is_reading_due
from ..llm.protocol import Answer, ModelError
from ..reports import DigestReport
from ..scope import Scope
from ..store import ConversationRow, ReadView, WriteView
from ..types import FactChange, Job
from .asked import Asked, gives_up, spent
from .guard import scope_of, still_mine
from .sight import Found, Looking, Sight

RULES_FIRST_MS = 500


@dataclass(frozen=True, slots=True)
class ReadByModel:
    """The handler of ``read`` jobs: one call a window, each with one transaction behind it."""

    asked: Asked
    looking: Looking

    def __call__(self, job: Job) -> DigestReport:
        scope, report = scope_of(job), DigestReport()
        store, halfway = self.asked.store, False
        while True:
            span = range_of(job)
            sight = store.read(scope, partial(self._look, span=span))
            if not (halfway and sight.messages) and not self._due(sight, span):
                if store.write(scope, partial(self._settle, job=job, sight=sight)):
                    return report
                continue
            try:
                self.asked.hold(job, scope)
                answer, extraction, found = ask_for_facts(self.asked, self.looking, scope, sight)
            except ModelError as error:
                if span or not gives_up(job, error, self.asked.config.job_attempts):
                    raise
                store.write(scope, partial(self._pass_over, job=job, sight=sight))
                report += DigestReport(failed=1)
                continue
            upto = read_upto(sight, extraction, cut=answer.finish == "length")
            changes = store.write(scope, partial(self._write, job=job, sight=sight, upto=upto, found=found))
            halfway = upto < sight.last_seq
            report += report_of(changes, problems=len(extraction.problems), tokens=spent(answer))
            if span:
                return report

    def _look(self, view: ReadView, span: tuple[int, int] | None) -> Sight:
        return self.looking.span(view, *span) if span else self.looking.unread(view)

    def _due(self, sight: Sight, span: tuple[int, int] | None) -> bool:
        """Whether a call is made now."""
        row = sight.row
        if row is None or not any(message.role == "user" for message in sight.messages):
            return False
        if span:
            return True
        every = self.asked.config.extract_every_user_turns
        silent = self.asked.now_ms() - row.last_at >= self.asked.config.chunk_gap_minutes * 60_000
        if (silent and row.stated_seq > row.read_seq) or row.ended_seq > row.read_seq:
            return True
        return is_reading_due(row, every) and (row.unread_turns >= every or sight.unreadable)

    def _settle(self, view: WriteView, job: Job, sight: Sight) -> bool:
        """Nothing is due: finish, and come back when silence will have made it due; False when more came meanwhile."""
        still_mine(view, job, sight.epoch)
        now_ms, row = self.asked.now_ms(), view.conversation()
        if row is not None and sight.row is not None and row.next_seq != sight.row.next_seq:
            return False
        view.finish(job, now_ms)
        if row is None or range_of(job):
            return True
        last = row.next_seq - 1
        if not any(message.role == "user" for message in sight.messages):
            view.save_conversation(replace(row, read_seq=last if not sight.messages else sight.last_seq))
        elif row.extracted_seq < last:
            view.want("read", "", wanted=last, run_at_ms=now_ms + RULES_FIRST_MS, now_ms=now_ms)
        elif row.stated_seq > row.read_seq:
            silent_at = row.last_at + self.asked.config.chunk_gap_minutes * 60_000
            view.want("read", "", wanted=last, run_at_ms=max(now_ms, silent_at), now_ms=now_ms)
        return True

    def _write(self, view: WriteView, job: Job, sight: Sight, upto: int, found: Found) -> list[FactChange]:
        still_mine(view, job, sight.epoch)
        row, now_ms = view.conversation(), self.asked.now_ms()
        if row is None:
            return []
        changes = self.looking.learn(view, row, found, now_ms)
        view.add_reading(self.asked.asking.model.name, sight.first_seq, upto)
        if not range_of(job):
            view.save_conversation(self._moved(row, sight, upto))
            return changes
        if upto < sight.last_seq:
            view.want("read", f"{upto + 1}-{sight.last_seq}", wanted=sight.last_seq, run_at_ms=now_ms, now_ms=now_ms)
        view.finish(job, now_ms)
        return changes

    def _moved(self, row: ConversationRow, sight: Sight, upto: int) -> ConversationRow:
        turns = sum(message.role == "user" and message.seq <= upto for message in sight.messages)
        return advance_reading(row, upto, turns, self.asked.config.extract_every_user_turns)

    def _pass_over(self, view: WriteView, job: Job, sight: Sight) -> None:
        """Leave a window to a job of its own, so that what comes after it can be read."""
        still_mine(view, job, sight.epoch)
        row, now_ms = view.conversation(), self.asked.now_ms()
        if row is not None:
            order_range(view, "read", sight.first_seq, sight.last_seq, now_ms)
            view.save_conversation(replace(self._moved(row, sight, sight.last_seq), ahead_turns=row.ahead_turns))


def ask_for_facts(asked: Asked, looking: Looking, scope: Scope, sight: Sight) -> tuple[Answer, Extraction, Found]:
    """
    One call about the messages of *sight*: the answer, what was read in it, and what of that stands.

    Raises:
        ModelError: there is no answer that can be used.
    """
    prompt = asked.prompt(scope, "fact_extraction")
    key = f"facts:{scope.conversation}:{sight.first_seq}-{sight.last_seq}"
    text = format_sections(looking.sections(scope, sight))
    more = looking.reader.registry.listing()
    answer = asked.ask(scope, asked.request("facts", prompt, text, key, more=more))
    extraction = parse_facts(answer, looking.window(scope, sight), source=asked.source(prompt))
    return answer, extraction, looking.stands(scope, sight, extraction)


def order_range(view: WriteView, kind: str, first: int, last: int, now_ms: int) -> None:
    """Have one range done by a job of its own."""
    view.want(kind, f"{first}-{last}", wanted=last, run_at_ms=now_ms, now_ms=now_ms)


def range_of(job: Job) -> tuple[int, int] | None:
    """The range of messages that a job is about, when its lane names one: ``12-21``."""
    first, dash, last = job.key.partition("-")
    return (int(first), int(last)) if dash and first.isdigit() and last.isdigit() else None


def report_of(changes: Sequence[FactChange], *, problems: int = 0, tokens: int = 0) -> DigestReport:
    """What one transaction learned, for the report."""
    refusals = sum(change.op == "rejected" for change in changes)
    return DigestReport(
        facts=len(changes) - refusals, rejected=refusals + problems, tokens=tokens, changes=tuple(changes)
    )


def read_upto(sight: Sight, extraction: Extraction, *, cut: bool) -> int:
    """The last message that counts as read: of an answer that was cut off, the one before its last row's."""
    last = sight.last_seq
    if not cut:
        return last
    named = max((c.seq for c in extraction.candidates), default=0)
    first_user = next(message.seq for message in sight.messages if message.role == "user")
    earlier = [message.seq for message in sight.messages if first_user <= message.seq < named]
    return max(earlier, default=last if named >= last else first_user)
