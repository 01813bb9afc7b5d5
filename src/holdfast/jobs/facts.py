"""Read facts out of the messages that nobody has read yet, and reconcile them with what is believed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ..clock import new_id, to_ms
from ..config import Config
from ..digest import rules
from ..digest.ground import ground
from ..reconcile.facts import Claim
from ..reconcile.learn import learn
from ..reconcile.registry import Registry
from ..scope import SELF, Scope
from ..store.protocol import FactRow, ReadView, Store, WriteView
from ..types import Candidate, DigestReport, Evidence, FactChange, Job, Message
from .guard import scope_of, still_mine

BATCH_MESSAGES = 200


@dataclass(frozen=True, slots=True)
class _Snapshot:
    epoch: int
    messages: list[Message]
    before: Message | None
    facts: list[FactRow]
    names: dict[str, int]


@dataclass(frozen=True, slots=True)
class ReadFacts:
    """The handler of ``extract`` jobs: batch by batch, one transaction each."""

    store: Store
    config: Config
    registry: Registry
    now_ms: Callable[[], int]
    embeds: bool

    def __call__(self, job: Job) -> DigestReport:
        scope = scope_of(job)
        changes: list[FactChange] = []
        while True:
            seen = self.store.read(scope, self._snapshot)
            accepted, refused = self._read(scope, seen)
            work = partial(self._write, job=job, seen=seen, accepted=accepted, refused=refused)
            done, batch = self.store.write(scope, work)
            changes += batch
            if done:
                break
        refusals = sum(change.op == "rejected" for change in changes)
        return DigestReport(facts=len(changes) - refusals, rejected=refusals, changes=tuple(changes))

    def _snapshot(self, view: ReadView) -> _Snapshot:
        row = view.conversation()
        start = row.extracted_seq + 1 if row else 1
        messages = view.messages(start_seq=max(1, start - 1), limit=BATCH_MESSAGES + 1)
        before = messages.pop(0) if messages and messages[0].seq < start else None
        first = view.messages(start_seq=1, limit=BATCH_MESSAGES)
        names: dict[str, int] = {}
        for message in (*first, *messages):
            if message.role == "user" and message.name:
                names.setdefault(message.name, message.seq)
        return _Snapshot(view.person().epoch, messages[:BATCH_MESSAGES], before, view.facts(), names)

    def _read(self, scope: Scope, seen: _Snapshot) -> tuple[list[Claim], list[tuple[Candidate, str]]]:
        others = rules.known_others(row.fact for row in seen.facts)
        if scope.subject is not None and scope.subject != SELF:
            others.setdefault(scope.subject, scope.subject)
        accepted: list[Claim] = []
        refused: list[tuple[Candidate, str]] = []
        before = seen.before
        for message in seen.messages:
            if message.role == "user":
                found = rules.read(
                    message,
                    subject=scope.subject or SELF,
                    others=others,
                    before=before,
                    language_code=self.config.language,
                )
                speaker = speaker_subject(message, scope.user, seen.names)
                found = [_spoken_by(candidate, speaker) for candidate in found]
                others.update((c.subject, c.subject) for c in found if c.subject != SELF)
                good, bad = ground(found, {message.seq: message}, min_confidence=self.config.min_confidence)
                accepted += [_claim(scope, candidate, evidence) for candidate, evidence in good]
                refused += bad
            before = message
        return accepted, refused

    def _write(
        self,
        view: WriteView,
        job: Job,
        seen: _Snapshot,
        accepted: Sequence[Claim],
        refused: Sequence[tuple[Candidate, str]],
    ) -> tuple[bool, list[FactChange]]:
        still_mine(view, job, seen.epoch)
        row = view.conversation()
        if row is None or not seen.messages:
            view.finish(job, self.now_ms())
            return True, []
        now_ms = self.now_ms()
        changes = learn(view, accepted, refused, self.registry, new_id=lambda: new_id("fact", now_ms), now_ms=now_ms)
        row = replace(row, extracted_seq=seen.messages[-1].seq)
        view.save_conversation(row)
        if self.embeds and any(change.op != "rejected" for change in changes):
            view.want("embed", "", wanted=row.next_seq - 1, run_at_ms=now_ms, now_ms=now_ms)
        done = row.extracted_seq >= row.next_seq - 1
        if done:
            view.finish(job, now_ms)
        return done, changes


def speaker_subject(message: Message, user: str, names: Mapping[str, int]) -> str:
    """
    Whose "I" it is: the user's, or, in a chat among several people, the named other's.

    The user is whoever bears the user's id as a name; failing that, whoever spoke first.
    """
    if not message.name or len(names) < 2:
        return SELF
    by_id = [name for name in names if name.casefold() == user.casefold()]
    mine = by_id[0] if by_id else min(names, key=lambda name: names[name])
    return SELF if message.name == mine else message.name.casefold()


def _spoken_by(candidate: Candidate, speaker: str) -> Candidate:
    return replace(candidate, subject=speaker) if speaker != SELF and candidate.subject == SELF else candidate


def _claim(scope: Scope, candidate: Candidate, evidence: Evidence) -> Claim:
    said = replace(evidence, home=scope.subject or SELF)
    return Claim(candidate, said, to_ms(said.at) if said.at else 0, scope.subject == SELF)
