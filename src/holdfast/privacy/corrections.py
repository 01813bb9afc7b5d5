"""
What users write and mend by hand, with evidence like everything else.

A fact that is told by hand rests on a message in a conversation of its own, `BY_HAND_CONVERSATION`, so that there
is no fact without a quote and that exporting and erasing need no exception.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..clock import from_ms, new_id, to_ms
from ..config import Config
from ..errors import HoldfastError, KeyReused, NotFound
from ..ingest.append import WorkSettings, append
from ..ingest.consent import matches_blocked_topic
from ..ingest.prepare import prepare
from ..ingest.redact import MASK, mask_secrets
from ..jobs.facts import DISCARDED, ReadFacts
from ..reconcile.archive import into_index, leave_index, order_upkeep
from ..reconcile.decide import ARCHIVED, MERGED, UNMERGED, Claim
from ..reconcile.erase import inherit_end, reactivate
from ..reconcile.learn import learn
from ..reconcile.merging import take_apart, whole_of
from ..scope import SELF, Scope
from ..store import Derivation, FactRow, ReadView, Store, WriteView
from ..types import BY_HAND_CONVERSATION, BY_HAND_SOURCE, Candidate, Evidence, Fact, FactChange, Message
from .consent import state_of

UNWANTED = "never-remember: the user asked never to remember this"


class _Refused(HoldfastError):
    """Undoes the transaction; becomes a change of op ``rejected``."""


@dataclass(frozen=True, slots=True)
class FactInput:
    """What somebody wants remembered: a sentence, or an address with its value; once under an idempotency key."""

    text: str
    category: str
    key: str
    value: str
    confidence: float
    idempotency_key: str | None = None

    @property
    def digest(self) -> str:
        """SHA-256 of what is told."""
        told = [self.text, self.category, self.key, self.value, self.confidence]
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Corrections:
    """Changes by hand in one store."""

    store: Store
    config: Config
    now_ms: Callable[[], int]
    reader: ReadFacts

    def _do_on_its_own(self, scope: Scope, fact_id: str) -> FactRow:
        """Take apart, for good, the memory that a fact was merged into; the fact as it is then."""

        def work(view: WriteView) -> FactRow:
            state = state_of(view, scope.subject)
            if state != "active":
                return _found(view, fact_id)
            return _on_its_own(view, fact_id, self.now_ms(), keep_apart=True)

        return self.store.write(scope, work)

    def _do(self, scope: Scope, work: Callable[[WriteView], FactChange]) -> FactChange:
        """Run *work* in one transaction; a refusal undoes it and is told."""
        try:
            return self.store.write(scope, work)
        except _Refused as refused:
            return FactChange("rejected", None, reason=refused.message)

    def _open(self, view: WriteView, scope: Scope) -> None:
        state = state_of(view, scope.subject)
        if state != "active":
            raise _Refused(f"{state}: nothing is written while memory is {state.replace('-', ' ')}")

    def remember(self, scope: Scope, told: FactInput) -> FactChange:
        """Believe what is told; it replaces what it contradicts, as if it was said now."""
        means = self.reader.means([told.text] if told.text and not told.category else [])

        def work(view: WriteView) -> FactChange:
            self._open(view, scope)
            subject, now_ms = scope.subject or SELF, self.now_ms()
            content = told.text or _worded(told.category, told.key, told.value)
            before = _told_before(view.at(subject, BY_HAND_CONVERSATION), told)
            if before is not None:
                return before
            at_ms = _after(view.history_in(subject, told.category), now_ms)
            message = self._say(view, subject, content, at_ms, told)
            claims = self._claims(view, subject, told, message)
            for claim in claims:
                self._wanted(view, claim.candidate, content)
            changes = learn(
                view.at(subject, BY_HAND_CONVERSATION),
                claims,
                (),
                self.reader.registry,
                new_id=lambda: new_id("fact", now_ms),
                now_ms=now_ms,
                means=means,
            )
            done = [change for change in changes if change.op != "rejected"]
            if not done:
                raise _Refused(changes[0].reason if changes else "nothing-new: this is believed already")
            order_upkeep(view, done, self.config.max_memories, now_ms)
            return done[0]

        return self._do(scope, work)

    def _claims(self, view: WriteView, subject: str, told: FactInput, message: Message) -> list[Claim]:
        here = view.at(subject, BY_HAND_CONVERSATION)
        if not told.category:
            read, _ = self.reader.claims(here.scope, self.reader.reading_of(here, message))
            if read:
                return read
        candidate = Candidate(
            kind="attribute" if told.category else "statement",
            subject=subject,
            category=told.category or "note",
            key=told.key,
            value=told.value,
            text=told.text or _sentence(told.category, told.key, told.value),
            confidence=told.confidence,
            seq=message.seq,
            quote=message.content,
            start=0,
            join="replace",
            source=BY_HAND_SOURCE,
        )
        return [Claim(candidate, _evidence(message, subject), _ms(message), subject == SELF)]

    def _wanted(self, view: WriteView, candidate: Candidate, content: str) -> None:
        if matches_blocked_topic(candidate, [topic for _, topic in view.topics()]):
            raise _Refused(UNWANTED)
        if MASK in mask_secrets(content, self.config.detectors):
            raise _Refused(DISCARDED)
        if not candidate.confidence >= self.config.min_confidence:
            raise _Refused(f"low-confidence: {candidate.confidence:.2f} is below {self.config.min_confidence:.2f}")

    def _say(self, view: WriteView, subject: str, content: str, at_ms: int, told: FactInput | None = None) -> Message:
        """Store the words in the conversation for what is told by hand; the message as it is stored."""
        here, now = view.at(subject, BY_HAND_CONVERSATION), from_ms(self.now_ms())
        (item,) = prepare(
            Message("user", content, at=from_ms(at_ms)),
            now=now,
            max_chars=self.config.max_message_chars,
            language=self.config.language,
            detectors=self.config.detectors,
            redact_messages=self.config.redact_messages,
        )
        orders = WorkSettings(embed=self.reader.embeds, digest=False)
        key, digest = (told.idempotency_key, told.digest) if told is not None else (None, "")
        stored = append(here, [item], self.config, orders, key=key, digest=digest, now_ms=to_ms(now))
        return replace(item.message, seq=stored.first_seq, conversation=BY_HAND_CONVERSATION)

    def correct(self, scope: Scope, fact_id: str, value: str) -> FactChange:
        """The fact was never true; *value* was, for as long."""

        def work(view: WriteView) -> FactChange:
            self._open(view, scope)
            now_ms = self.now_ms()
            old = _on_its_own(view, fact_id, now_ms)
            fact = old.fact
            content = _worded(fact.category, *_held(fact, value)) if fact.kind == "attribute" else value
            message = self._say(view, fact.subject, content, max(now_ms, old.stated_at + 1))
            new = self._corrected(old, value, message, now_ms)
            refusal = self.reader.registry.refusal(_candidate(new)) if fact.kind == "attribute" else ""
            if refusal:
                raise _Refused(refusal)
            self._wanted(view, _candidate(new), content)
            closed = _never(old, now_ms, new.fact.id)
            leave_index(view, old)
            there = view.fact_at(fact.subject, fact.category, new.slot_key, new.slot_value)
            if (
                fact.live and there is not None and there.fact.id != fact.id
            ):  # the right value was known beside the wrong one
                closed = _never(old, now_ms, there.fact.id)
                view.update_fact(closed)
                self._support(view, there.fact.subject, there.fact.id, message, now_ms)
                return FactChange("confirmed", there.fact, closed.fact)
            if fact.live:
                new = into_index(view, new, now_ms)
            view.update_fact(closed)
            view.add_fact(new)
            self._support(view, fact.subject, new.fact.id, message, now_ms)
            return FactChange("replaced", new.fact, closed.fact)

        return self._do(scope, work)

    def _corrected(self, old: FactRow, value: str, message: Message, now_ms: int) -> FactRow:
        fact = old.fact
        key, held = _held(fact, value)
        text = fact.text.replace(fact.value, value) if fact.value and fact.value in fact.text else ""
        text = text or (_sentence(fact.category, key, held) if fact.kind == "attribute" else value)
        join = "add" if fact.cardinality == "multi" else "replace"
        slot = self.reader.registry.slot(fact.category, key, held if fact.kind == "attribute" else text, join)
        new = replace(
            fact,
            id=new_id("fact", now_ms),
            key=key,
            value=held if fact.kind == "attribute" else fact.value,
            text=text,
            confidence=1.0,
            recorded_at=from_ms(now_ms),
            evidence=(_evidence(message, fact.subject),),
            source=BY_HAND_SOURCE,
        )
        return replace(
            old,
            fact=new,
            slot_key=slot.key if fact.kind == "attribute" else old.slot_key,
            slot_value=slot.value if fact.kind == "attribute" or slot.cardinality == "multi" else old.slot_value,
            stated_at=_ms(message),
            stated_seq=message.seq,
            doc=0,
            expires_at=None,
        )

    def _support(self, view: WriteView, subject: str, fact_id: str, message: Message, now_ms: int) -> None:
        view.add_evidence(subject, fact_id, subject, _evidence(message, subject), now_ms)
        view.add_derivations(
            [Derivation("fact", fact_id, "message", subject, BY_HAND_CONVERSATION, message.seq, message.seq)]
        )
        user = view.user()
        view.save_user(replace(user, version=user.version + 1), now_ms)

    def never_true(self, scope: Scope, fact_id: str) -> FactChange:
        """Stop believing a fact for any time; what it had replaced takes its place again."""

        def work(view: WriteView) -> FactChange:
            now_ms = self.now_ms()
            row = _on_its_own(view, fact_id, now_ms)
            if row.fact.ended_because in ("never_true", UNMERGED):
                return FactChange("retracted", row.fact, row.fact, "it was not believed any more")
            older = view.replaced_by(row.fact.subject, fact_id)
            closed = _never(row, now_ms, None)
            leave_index(view, row)
            view.update_fact(closed)
            inherit_end(view, row, older, now_ms, revive=True)
            return FactChange("retracted", closed.fact, row.fact)

        return self._do(scope, work)

    def restore(self, scope: Scope, fact_id: str) -> FactChange:
        """Believe a fact again: all along if it was never true or put away, from now on otherwise."""
        row = self.store.read(scope, lambda view: _found(view, fact_id))
        if row.fact.ended_because == MERGED:
            row = self._do_on_its_own(scope, fact_id)
            if row.fact.live:
                return FactChange("new", row.fact, reason="it stands for itself again, and so do the others")
        fact = row.fact
        if fact.live:
            return FactChange("confirmed", fact, reason="it is believed")
        if fact.ended_because == UNMERGED:
            return FactChange("rejected", None, reason="taken-apart: its sentences stand for themselves")
        if fact.ended_because not in ("never_true", ARCHIVED):
            if fact.kind == "attribute":
                told = FactInput("", fact.category, fact.key, fact.value, 1.0)
            else:
                told = FactInput(fact.text, "", "", "", 1.0)
            return self.remember(replace(scope, subject=fact.subject), told)

        def work(view: WriteView) -> FactChange:
            self._open(view, scope)
            row, now_ms = _found(view, fact_id), self.now_ms()
            holder = view.fact_at(row.fact.subject, row.fact.category, row.slot_key, row.slot_value)
            if holder is not None and (
                holder.fact.id == row.fact.superseded_by or holder.fact.valid_from <= row.fact.valid_from
            ):
                mistaken = holder.fact.id == row.fact.superseded_by
                leave_index(view, holder)
                view.update_fact(_never(holder, now_ms, fact_id) if mistaken else _replaced(holder, row, now_ms))
            if row.fact.ended_because == ARCHIVED:  # somebody wants it: it must not be the next to go again
                row = replace(row, fact=replace(row.fact, last_used_at=from_ms(now_ms), uses=row.fact.uses + 1))
            again = reactivate(view, row, now_ms)
            return FactChange("new" if again.fact.live else "confirmed", again.fact, holder.fact if holder else None)

        return self._do(scope, work)


def _told_before(here: ReadView, told: FactInput) -> FactChange | None:
    """What stands since the same was told under the same key; ``None`` when the key is new."""
    before = None if told.idempotency_key is None else here.idempotency(told.idempotency_key)
    if before is None:
        return None
    digest, seq, _ = before
    if digest not in ("", told.digest):
        raise KeyReused(f"idempotency key {told.idempotency_key!r} was used with other words", hint="use a new key")
    rows = here.facts_ever()
    found = [
        r.fact for r in rows if any(e.conversation == BY_HAND_CONVERSATION and e.seq == seq for e in r.fact.evidence)
    ]
    if not found:
        raise _Refused("told-before: this key stored it before, and it was erased since")
    return FactChange("confirmed", found[-1], reason="this key stored it before")


def _on_its_own(view: WriteView, fact_id: str, now_ms: int, *, keep_apart: bool = False) -> FactRow:
    """The fact; one that was merged with others stands for itself first."""
    row = _found(view, fact_id)
    whole = whole_of(view, row)
    if whole is None:
        return row
    take_apart(view, whole, now_ms, keep_apart=keep_apart)
    there = view.fact_at(row.fact.subject, row.fact.category, row.slot_key, row.slot_value)
    return view.fact(fact_id) or there or _found(view, fact_id)


def _found(view: ReadView, fact_id: str) -> FactRow:
    row = view.fact(fact_id)
    if row is None:
        raise NotFound(f"there is no fact {fact_id!r} here", hint="facts() and history() list them")

    return row


def _held(fact: Fact, value: str) -> tuple[str, str]:
    """The key and the value that say *value* at the fact's address: of "dietary: vegetarian" the key is what is said."""
    if fact.kind == "attribute" and fact.cardinality == "exclusive" and fact.value == "true":
        return re.sub(r"\W+", "_", value.casefold()).strip("_") or value, "true"
    return fact.key, value


def _worded(category: str, key: str, value: str) -> str:
    """An address and what it holds, in words."""
    what, name = key.replace("_", " "), category.replace("_", " ")
    return f"{name}: {what}" if value == "true" else f"{name}, {what}: {value}"


def _sentence(category: str, key: str, value: str) -> str:
    said = _worded(category, key, value) if value == "true" else f"{key.replace('_', ' ')}: {value}"
    return f"{said[:1].upper()}{said[1:]}."


def _never(row: FactRow, now_ms: int, successor: str | None) -> FactRow:
    """The fact held at no time: its end is its beginning, and we learned that now."""
    fact = replace(row.fact, valid_to=row.fact.valid_from, ended_because="never_true", superseded_by=successor)
    return replace(row, fact=fact, ended_at=now_ms)


def _replaced(row: FactRow, by: FactRow, now_ms: int) -> FactRow:
    until = max(row.fact.valid_from, by.fact.valid_from)
    fact = replace(row.fact, valid_to=until, ended_because="replaced", superseded_by=by.fact.id)
    return replace(row, fact=fact, ended_at=now_ms)


def _candidate(row: FactRow) -> Candidate:
    fact, said = row.fact, row.fact.evidence[0]
    return Candidate(
        fact.kind, fact.subject, fact.category, fact.key, fact.value, fact.text, 1.0, said.seq, said.quote, said.start
    )


def _evidence(message: Message, subject: str) -> Evidence:
    words = message.content
    return Evidence(BY_HAND_CONVERSATION, message.seq, message.role, words, 0, len(words), message.at, subject)


def _after(rows: Sequence[FactRow], now_ms: int) -> int:
    """Now, or right after the latest statement there: what is told by hand comes last."""
    return max([now_ms, *(row.stated_at + 1 for row in rows)])


def _ms(message: Message) -> int:
    return to_ms(message.at) if message.at else 0
