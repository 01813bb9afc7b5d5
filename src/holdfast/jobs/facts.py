"""Read facts out of the messages that nobody has read yet, and reconcile them with what is believed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial

from ..clock import new_id, to_ms
from ..config import Config
from ..digest import rules
from ..digest.endings import find_endings, known_values
from ..digest.grounding import ground
from ..embed.protocol import Embedder
from ..ingest.consent import matches_blocked_topic
from ..ingest.redact import MASK, mask_message
from ..reconcile.archive import order_upkeep
from ..reconcile.decide import Address, Claim
from ..reconcile.learn import MatchHints, embed_sentences, learn
from ..reconcile.registry import Registry
from ..reports import DigestReport
from ..scope import SELF, Scope
from ..store import FactRow, ReadView, Store, WriteView
from ..types import Candidate, Evidence, FactChange, Job, Message
from .guard import scope_of, still_mine

BATCH_MESSAGES = 200
DISCARDED = "discarded: the words hold what must not be remembered"


@dataclass(frozen=True, slots=True)
class Reading:
    """What is read, as of one moment: messages whose secrets are masked, and what they are read with."""

    epoch: int
    messages: list[Message]
    before: Message | None
    facts: list[FactRow]
    names: dict[str, int]
    never: list[str]


@dataclass(frozen=True, slots=True)
class ReadFacts:
    """The handler of ``extract`` jobs: batch by batch, one transaction each."""

    store: Store
    config: Config
    registry: Registry
    now_ms: Callable[[], int]
    embeds: bool
    embedder: Embedder | None = None

    def __call__(self, job: Job) -> DigestReport:
        scope = scope_of(job)
        changes: list[FactChange] = []
        while True:
            seen = self.store.read(scope, self._snapshot)
            accepted, refused = self.claims(scope, seen)
            means = self.means([c.candidate.text for c in accepted if c.candidate.kind == "statement"])
            work = partial(self._write, job=job, seen=seen, accepted=accepted, refused=refused, means=means)
            done, batch = self.store.write(scope, work)
            changes += batch
            if done:
                break
        refusals = sum(change.op == "rejected" for change in changes)
        return DigestReport(facts=len(changes) - refusals, rejected=refusals, changes=tuple(changes))

    def _snapshot(self, view: ReadView) -> Reading:
        row = view.conversation()
        start = row.extracted_seq + 1 if row else 1
        messages = view.messages(start_seq=max(1, start - 1), limit=BATCH_MESSAGES + 1)
        before = messages.pop(0) if messages and messages[0].seq < start else None
        return self._reading(view, messages[:BATCH_MESSAGES], before, names_of(view, messages))

    def _reading(
        self, view: ReadView, messages: Sequence[Message], before: Message | None, names: dict[str, int]
    ) -> Reading:
        hide = self.config.detectors
        read = [mask_message(message, hide) for message in messages]
        before = before and mask_message(before, hide)
        never = [topic for _, topic in view.topics()]
        return Reading(view.user().epoch, read, before, view.facts(), names, never)

    def reading_of(self, view: ReadView, message: Message) -> Reading:
        """The snapshot for reading one message again, after it was edited."""
        found = view.messages(start_seq=max(1, message.seq - 1), end_seq=message.seq)
        before = next((m for m in found if m.seq < message.seq), None)
        return self._reading(view, [message], before, names_of(view))

    def reading_again(self, view: ReadView, start_seq: int, end_seq: int) -> Reading:
        """
        The snapshot for reading a range again, as if nobody had read it.

        Facts that rest on words from *start_seq* on alone are not among what is known.
        """
        found = view.messages(start_seq=max(1, start_seq - 1), end_seq=end_seq)
        before = next((m for m in found if m.seq < start_seq), None)
        names: dict[str, int] = {}
        for one in (*view.messages(start_seq=1, limit=BATCH_MESSAGES), *found):
            if one.role == "user" and one.name:
                names.setdefault(one.name, one.seq)
        reading = self._reading(view, [m for m in found if m.seq >= start_seq], before, names)
        here = (view.scope.subject or SELF, view.scope.conversation)
        known = [
            row
            for row in reading.facts
            if any((e.home, e.conversation) != here or e.seq < start_seq for e in row.fact.evidence)
        ]
        return replace(reading, facts=known)

    def claims(self, scope: Scope, seen: Reading) -> tuple[list[Claim], list[tuple[Candidate, str]]]:
        """What the messages state: claims with their evidence, and what is refused with the reason."""
        others = rules.known_names(row.fact for row in seen.facts)
        if scope.subject is not None and scope.subject != SELF:
            others.setdefault(scope.subject, scope.subject)
        accepted: list[Claim] = []
        refused: list[tuple[Candidate, str]] = []
        before = seen.before
        for message in seen.messages:
            if message.role == "user":
                found = rules.extract_facts(
                    message,
                    subject=scope.subject or SELF,
                    others=others,
                    before=before,
                    language_code=self.config.language,
                )
                known = known_values([*(row.fact for row in seen.facts), *(claim.candidate for claim in accepted)])
                found += find_endings(message, found, known, others=others, language_code=self.config.language)
                speaker = speaker_subject(message, scope.user, seen.names)
                found = [spoken_by(candidate, speaker) for candidate in found]
                others.update((c.subject, c.subject) for c in found if c.subject != SELF)
                found = [candidate for candidate in found if not matches_blocked_topic(candidate, seen.never)]
                good, bad = ground(found, {message.seq: message}, min_confidence=self.config.min_confidence)
                accepted += [
                    claim_of(scope, candidate, evidence) for candidate, evidence in good if not hidden(candidate)
                ]
                refused += [*bad, *((candidate, DISCARDED) for candidate, _ in good if hidden(candidate))]
            before = message
        return accepted, refused

    def means(self, sentences: Sequence[str]) -> MatchHints:
        """What helps to compare new *sentences* with those that are believed; to be made outside a transaction."""
        limit = self.config.consolidate_similarity
        return MatchHints(
            embed_sentences(self.embedder, sentences, limit), partial(addresses, self.registry, self.config.language)
        )

    def _write(
        self,
        view: WriteView,
        job: Job,
        seen: Reading,
        accepted: Sequence[Claim],
        refused: Sequence[tuple[Candidate, str]],
        means: MatchHints,
    ) -> tuple[bool, list[FactChange]]:
        still_mine(view, job, seen.epoch)
        row = view.conversation()
        if row is None or not seen.messages:
            view.finish(job, self.now_ms())
            return True, []
        now_ms = self.now_ms()
        changes = learn(
            view,
            accepted,
            refused,
            self.registry,
            new_id=lambda: new_id("fact", now_ms),
            now_ms=now_ms,
            hints=means,
        )
        order_upkeep(view, changes, self.config.max_memories, now_ms)
        row = replace(row, extracted_seq=seen.messages[-1].seq)
        view.save_conversation(row)
        if self.embeds and any(change.op != "rejected" for change in changes):
            view.want("embed", "", wanted=row.next_seq - 1, run_at_ms=now_ms, now_ms=now_ms)
        done = row.extracted_seq >= row.next_seq - 1
        if done:
            view.finish(job, now_ms)
        return done, changes


@lru_cache(maxsize=2048)
def _read_alone(text: str, language: str | None) -> tuple[Candidate, ...]:
    return tuple(rules.extract_facts(Message("user", text), language_code=language))


def addresses(registry: Registry, language: str | None, text: str) -> dict[Address, str]:
    """What the rules read in one sentence, where its address holds one value at a time."""
    found: dict[Address, str] = {}
    for candidate in _read_alone(text, language):
        asserted = (candidate.op, candidate.modality, candidate.kind) == ("assert", "asserted", "attribute")
        slot = registry.slot(candidate.category, candidate.key, candidate.value, candidate.join)
        if asserted and candidate.subject == SELF and slot.cardinality != "multi":
            found[candidate.category, slot.key] = candidate.value
    return found


def names_of(view: ReadView, messages: Sequence[Message] = ()) -> dict[str, int]:
    """Under which names users speak in the conversation's beginning and in *messages*, and from which message on."""
    names: dict[str, int] = {}
    for message in (*view.messages(start_seq=1, limit=BATCH_MESSAGES), *messages):
        if message.role == "user" and message.name:
            names.setdefault(message.name, message.seq)
    return names


def speaker_subject(message: Message, user: str, names: Mapping[str, int]) -> str:
    """
    Whose "I" it is: the user's, or, in a chat among several users, the named other's.

    The user is whoever bears the user's id as a name; failing that, whoever spoke first.
    """
    if not message.name or len(names) < 2:
        return SELF
    by_id = [name for name in names if name.casefold() == user.casefold()]
    mine = by_id[0] if by_id else min(names, key=lambda name: names[name])
    return SELF if message.name == mine else message.name.casefold()


def hidden(candidate: Candidate) -> bool:
    """Whether the claim rests on words that were masked."""
    return any(MASK in words for words in (candidate.quote, candidate.value, candidate.text))


def spoken_by(candidate: Candidate, speaker: str) -> Candidate:
    """The claim with the named speaker as its subject, where the speaker spoke of themselves."""
    return replace(candidate, subject=speaker) if speaker != SELF and candidate.subject == SELF else candidate


def claim_of(scope: Scope, candidate: Candidate, evidence: Evidence) -> Claim:
    """What reconciling takes: the candidate with its words, said in the scope's conversation."""
    said = replace(evidence, home=scope.subject or SELF)
    return Claim(candidate, said, to_ms(said.at) if said.at else 0, scope.subject == SELF)
