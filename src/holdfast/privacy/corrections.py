"""
Facts that users add, correct, deny and restore by hand.

Each rests on a message in the conversation `BY_HAND_CONVERSATION`, so that no fact is without a quote and exporting
and erasing need no exception.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, get_args

from ..clock import from_ms, new_id, to_ms
from ..config import Config
from ..digest.answers.episode_answers import day_told
from ..digest.answers.wording import address_in_words, attribute_sentence
from ..digest.slots import limit_in_currency
from ..errors import BadInput, Changed, HoldfastError, KeyReused, NotFound
from ..ingest.append import WorkSettings, append, prepare
from ..ingest.redact import MASK, mask_secrets
from ..jobs.facts import DISCARDED, FactReader, RuleInput
from ..reconcile.archive import index_fact, request_upkeep, unindex_fact
from ..reconcile.compare import in_first_person, repeats_all
from ..reconcile.decide import ARCHIVED, MERGED, UNMERGED, Claim, states_claim
from ..reconcile.erase import Removed, delete_fact, inherit_end, reactivate, undo_retractions
from ..reconcile.learn import MatchHints, learn, says_same
from ..reconcile.merging import add_quotes, merged_into, parse_tool_uses, split_fact
from ..reconcile.registry import matches_blocked_topic
from ..scope import CHARACTER, SELF, Scope, checked_name
from ..store import OF_USER, Derivation, FactOwner, FactRow, ReadView, Store, WriteView, effective_consent
from ..text import dataclass, expression
from ..text.languages import NEGATES
from ..text.sentences import split_sentences
from ..text.terms import terms
from ..text.validate import checked_count, checked_share, checked_text
from ..types import (
    ACCEPTED,
    BY_HAND_CONVERSATION,
    BY_HAND_SOURCE,
    DISMISSED,
    LABELS,
    WAITING,
    Candidate,
    Evidence,
    Fact,
    FactChange,
    Message,
    Rejected,
    ReviewChoice,
    with_aliases,
    without_aliases,
)
from .subjects import MAX_ALIASES

MAX_RANGE = 200  # messages that a fact by hand may be about
DEFAULT_IMPORTANCE = 0.5
_DOES_NOT = expression(r"^(?:(?:the )?user )?(?:does not|doesn['\u2019]?t)\b", re.IGNORECASE)
UNWANTED = "never-remember: the user asked never to remember this"

Versions = str | Collection[str] | None
"""The version of a fact that a change is meant for, or several; ``None`` for any."""


class _Refused(HoldfastError):
    """A change that is refused: undoes the transaction and becomes a change of op ``rejected``."""


@dataclass(frozen=True, slots=True)
class FactRange:
    """The messages of a conversation that a fact by hand is about."""

    conversation: str
    start_seq: int
    end_seq: int


@dataclass(frozen=True, slots=True)
class FactInput:
    """A fact to remember: a sentence, or an address with its value; stored once under an idempotency key."""

    text: str
    category: str
    key: str
    value: str
    confidence: float
    idempotency_key: str | None = None
    aliases: tuple[str, ...] = ()
    importance: float | None = None
    about: FactRange | None = None
    at_ms: int | None = None
    label: str = ""

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the words."""
        words = [self.text, self.category, self.key, self.value, self.confidence, *self.aliases]
        words += [] if self.importance is None else [self.importance]
        words += [] if self.about is None else [self.about.conversation, self.about.start_seq, self.about.end_seq]
        words += [] if self.at_ms is None else [self.at_ms]
        words += [self.label] if self.label else []
        return hashlib.sha256(json.dumps(words).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Corrections:
    """Changes by hand to the facts of one store; ``reader`` reads patterns alone, so that other sentences are kept whole."""

    store: Store
    config: Config
    now_ms: Callable[[], int]
    reader: FactReader

    def _write(self, scope: Scope, work: Callable[[WriteView], FactChange]) -> FactChange:
        """Run *work* in one transaction; a refusal undoes it and is returned."""
        try:
            return self.store.write(scope, work)
        except _Refused as refused:
            return FactChange("rejected", None, reason=refused.message)

    def _check_active(self, view: WriteView, subject: str | None) -> None:
        state = effective_consent(view.consent(), subject)
        if state != "active":
            raise _Refused(f"{state}: nothing is written while memory is {state.replace('-', ' ')}")

    def remember(self, scope: Scope, given: FactInput) -> FactChange:
        """Store a fact as if it was said now; it replaces what it contradicts."""
        hints = self.reader.hints_for([given.text] if given.text and not given.category else [])
        return self._write(scope, lambda view: self._remember(view, scope.subject, given, hints))

    def _remember(
        self,
        view: WriteView,
        subject: str | None,
        given: FactInput,
        hints: MatchHints,
        owner: FactOwner = OF_USER,
    ) -> FactChange:
        self._check_active(view, subject)
        subject, now_ms = subject or SELF, self.now_ms()
        if given.about is not None:  # what is about a conversation with facts of its own is one of those
            owner = _where(view, subject, given.about.conversation).fact_owner()
        before = _stored_before(view.at(subject, BY_HAND_CONVERSATION), given)
        if before is not None:
            return before
        words = given.text or address_in_words(given.category, given.key, given.value)
        content = with_aliases(words, given.aliases)
        at_ms = max(now_ms, view.of_owner(owner).last_stated_in(subject, given.category) + 1)  # by hand comes last
        at_ms = at_ms if given.at_ms is None else min(given.at_ms, at_ms)
        message = self._store_message(view, subject, content, at_ms, given)
        quotes = self._quotes(view, subject, given)
        happened = quotes[0].at if quotes else None
        done, changes = list[FactChange](), list[FactChange]()
        for as_read in (True, False):  # what ends nothing is kept as it is: "Is not vegan"
            claims = self._claims(view, subject, given, message, happened, as_read=as_read)
            for claim in claims:
                self._check_wanted(view, claim.candidate, content)
            changes = learn(
                view.at(subject, BY_HAND_CONVERSATION).of_owner(owner),
                claims,
                (),
                self.reader.registry,
                new_id=lambda: new_id("fact", now_ms),
                now_ms=now_ms,
                hints=hints,
            )
            done = [change for change in changes if change.op != "rejected"]
            if done or not all(change.reason.startswith("nothing-to-end") for change in changes):
                break
        if not done:
            raise _Refused(changes[0].reason if changes else "nothing-new: this is believed already")
        if quotes:
            done[0] = self._rest_on(view, done[0], quotes, now_ms)
        request_upkeep(view, done, self.config.max_memories, now_ms)
        _accept_repeated(view, done)
        return done[0]

    def _quotes(self, view: WriteView, subject: str, given: FactInput) -> list[Evidence]:
        """Return a sentence of each message of the range that the fact is about: the nearest to its words, without secrets."""
        about = given.about
        if about is None:
            return []
        here = _where(view, subject, about.conversation)
        if here.conversation() is None:
            raise NotFound(f"there is no conversation {about.conversation!r} here", hint="conversations() lists them")
        if about.end_seq - about.start_seq >= MAX_RANGE:
            raise BadInput(f"a fact may be about {MAX_RANGE} messages at most", hint="name a shorter range")
        wanted, found = frozenset(terms(given.text or given.value)), []
        for message in here.messages(start_seq=about.start_seq, end_seq=about.end_seq):
            spans = [span for span in split_sentences(message.content) if span.of(message.content).strip()]
            spans = [s for s in spans if MASK not in mask_secrets(s.of(message.content), self.config.detectors)]
            if message.role not in ("user", "assistant") or not spans:
                continue
            best = max(spans, key=lambda s: (len(wanted & frozenset(terms(s.of(message.content)))), -s.start))
            words = best.of(message.content)
            place = (about.conversation, message.seq, message.role, words, best.start, best.start + len(words))
            found.append(Evidence(*place, message.at, here.scope.subject or SELF))
        if not found:
            what = f"messages {about.start_seq} to {about.end_seq} of {about.conversation!r}"
            raise NotFound(f"there is nothing said in {what}", hint="load() lists them")
        return found

    def _rest_on(self, view: WriteView, change: FactChange, quotes: Sequence[Evidence], now_ms: int) -> FactChange:
        """Let the fact of a change rest on quotes, too; return the change with the fact as it is then."""
        row = view.fact(change.fact.id) if change.fact is not None else None
        if row is None:
            return change
        known = {(e.home, e.conversation, e.seq, e.start) for e in row.fact.evidence}
        add_quotes(view, row, [e for e in quotes if (e.home, e.conversation, e.seq, e.start) not in known], now_ms)
        found = view.fact(row.fact.id)
        return change if found is None else replace(change, fact=found.fact)

    def _claims(
        self,
        view: WriteView,
        subject: str,
        given: FactInput,
        message: Message,
        happened: datetime | None,
        *,
        as_read: bool = True,
    ) -> list[Claim]:
        here, episode = view.at(subject, BY_HAND_CONVERSATION), given.about is not None and not given.category
        if as_read and not given.category and not episode:
            seen = self.reader.input_of(here, message)
            words = replace(
                seen, messages=[replace(one, content=without_aliases(one.content)) for one in seen.messages]
            )
            read, _ = self.reader.claims(here.scope, words)
            read = read or self._claims_of_memory(here.scope, words, message, given.confidence)
            if given.label:
                read = [replace(one, candidate=replace(one.candidate, label=given.label)) for one in read]
            if read and given.aliases:  # the names are the first fact's
                return [replace(read[0], evidence=_evidence(message, subject)), *read[1:]]
            if read:
                return read
        candidate = Candidate(
            kind="attribute" if given.category else "episode" if episode else "statement",
            subject=subject,
            category=given.category or ("episode" if episode else given.label or "note"),
            key=given.key,
            value=given.value,
            text=given.text or attribute_sentence(given.category, given.key, given.value),
            confidence=given.confidence,
            seq=message.seq,
            quote=message.content,
            start=0,
            join="replace",
            lifetime="event" if episode else "state",
            valid_from_ms=_day_of(given.text, replace(message, at=happened)) if episode else None,
            source=BY_HAND_SOURCE,
            importance=DEFAULT_IMPORTANCE if given.importance is None else given.importance,
            label=given.label,
        )
        return [Claim(candidate, _evidence(message, subject), _ms(message), subject in (SELF, CHARACTER))]

    def _claims_of_memory(self, scope: Scope, words: RuleInput, message: Message, confidence: float) -> list[Claim]:
        """Return the attributes of a memory in the third person ("Works at Acme"), if they say all of it."""
        text = words.messages[0].content if words.messages else ""
        own = _DOES_NOT.sub("I do not", in_first_person(text), count=1)
        if scope.subject not in (None, SELF) or own == text or parse_tool_uses(text):
            return []  # what is said of a tool stays a sentence, which others about the tool are merged with
        read, _ = self.reader.claims(scope, replace(words, messages=[replace(words.messages[0], content=own)]))
        said = [one.candidate.text for one in read] + [
            "runs uses" for one in read[:1] if one.candidate.category == "tech"
        ]
        if NEGATES["en"].search(text) and all(one.candidate.kind == "attribute" for one in read):
            # "does not like" is worded "dislikes"
            said += [one.candidate.quote for one in read] + [text.split()[0]]
        if not repeats_all(text, said, least=1):
            return []
        quoted = _evidence(message, SELF)
        whole: dict[str, Any] = {"quote": message.content, "start": 0, "seq": message.seq, "confidence": confidence}
        if len(read) == 1:
            whole["text"] = text
        return [replace(one, candidate=replace(one.candidate, **whole), evidence=quoted) for one in read]

    def _check_wanted(self, view: WriteView, candidate: Candidate, content: str) -> None:
        if matches_blocked_topic(candidate, [topic for _, topic in view.blocked_topics()]):
            raise _Refused(UNWANTED)
        if MASK in mask_secrets(content, self.config.detectors):
            raise _Refused(DISCARDED)
        if not candidate.confidence >= self.config.min_confidence:
            raise _Refused(f"low-confidence: {candidate.confidence:.2f} is below {self.config.min_confidence:.2f}")

    def _store_message(
        self, view: WriteView, subject: str, content: str, at_ms: int, given: FactInput | None = None
    ) -> Message:
        """Store the words in the conversation of facts by hand; return the stored message."""
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
        key, digest = (given.idempotency_key, given.digest) if given is not None else (None, "")
        stored = append(here, [item], self.config, orders, key=key, digest=digest, now_ms=to_ms(now))
        return replace(item.message, seq=stored.first_seq, conversation=BY_HAND_CONVERSATION)

    def correct(
        self,
        scope: Scope,
        fact_id: str,
        value: str | None,
        if_version: Versions = None,
        importance: float | None = None,
    ) -> FactChange:
        """Mark a fact as never true, and store *value* in its place for the same time; or change its importance alone."""

        work = partial(self._correct, scope.subject, fact_id, value, if_version, importance)
        return self._write(scope, work)

    def _correct(
        self,
        subject: str | None,
        fact_id: str,
        value: str | None,
        if_version: Versions,
        importance: float | None,
        view: WriteView,
    ) -> FactChange:
        found = find_fact(view, fact_id, if_version)
        self._check_active(view, subject)
        now_ms = self.now_ms()
        if importance is not None:
            rated = replace(found, fact=replace(found.fact, importance=importance))
            view.update_fact(rated)
            if value is None:
                user = view.user()
                view.save_user(replace(user, version=user.version + 1), now_ms)
                return FactChange("confirmed", rated.fact, found.fact, "its importance was set")
        assert value is not None
        if found.fact.live and found.fact.kind == "attribute" and value == found.fact.value:
            return self._confirm(view, found)
        old = _separate(view, fact_id, now_ms)
        fact = old.fact
        content = address_in_words(fact.category, *_key_and_value(fact, value)) if fact.kind == "attribute" else value
        message = self._store_message(view, fact.subject, content, max(now_ms, old.stated_at + 1))
        new = self._corrected(old, value, message, now_ms)
        refusal = self.reader.registry.refusal(_candidate(new)) if fact.kind == "attribute" else ""
        if refusal:
            raise _Refused(refusal)
        self._check_wanted(view, _candidate(new), content)
        closed = _never_held(old, now_ms, new.fact.id)
        unindex_fact(view, old)
        beside = view.of_owner(old.owner)
        there = beside.fact_at(fact.subject, fact.category, new.slot_key, new.slot_value)
        if (
            fact.live and there is not None and there.fact.id != fact.id
        ):  # the right value was known beside the wrong one
            closed = _never_held(old, now_ms, there.fact.id)
            view.update_fact(closed)
            self._support(view, there.fact.subject, there.fact.id, message, now_ms)
            return FactChange("confirmed", there.fact, closed.fact)
        if fact.live:
            new = index_fact(view, new, now_ms)
        view.update_fact(closed)
        view.add_fact(new)
        if fact.kind == "episode":  # it stays where and when it happened, in other words
            add_quotes(view, new, fact.evidence, now_ms)
        self._support(view, fact.subject, new.fact.id, message, now_ms)
        return FactChange("replaced", new.fact, closed.fact)

    def _confirm(self, view: WriteView, row: FactRow) -> FactChange:
        """State a fact anew for those whom it holds for: a conversation's own does not become the user's."""
        fact = row.fact
        given = FactInput("", fact.category, fact.key, fact.value, 1.0)
        return self._remember(view.at(fact.subject, None), fact.subject, given, self.reader.hints_for([]), row.owner)

    def _corrected(self, old: FactRow, value: str, message: Message, now_ms: int) -> FactRow:
        fact = old.fact
        key, held = _key_and_value(fact, value)
        text = (
            fact.text.replace(fact.value, value) if fact.value in fact.text and fact.value and key == fact.key else ""
        )
        text = text or (attribute_sentence(fact.category, key, held) if fact.kind == "attribute" else value)
        day = day_told(text, text, message) if fact.kind == "episode" else None
        join = "add" if fact.cardinality == "multi" else "replace"
        slot = self.reader.registry.slot(fact.category, key, held if fact.kind == "attribute" else text, join)
        new = replace(
            fact,
            id=new_id("fact", now_ms),
            key=key,
            value=held if fact.kind == "attribute" else fact.value,
            text=text,
            valid_from=from_ms(day) if day else fact.valid_from,
            confidence=1.0,
            recorded_at=from_ms(now_ms),
            evidence=(_evidence(message, fact.subject),),
            source=BY_HAND_SOURCE,
            until=None,
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

    def never_true(self, scope: Scope, fact_id: str, if_version: Versions = None) -> FactChange:
        """Mark a fact as never true; what it had replaced takes its place again."""

        def work(view: WriteView) -> FactChange:
            find_fact(view, fact_id, if_version)
            now_ms = self.now_ms()
            row = _separate(view, fact_id, now_ms)
            if row.fact.ended_because in ("never_true", UNMERGED):
                return FactChange("retracted", row.fact, row.fact, "it was not believed any more")
            older = view.replaced_by(row.fact.subject, fact_id)
            closed = _never_held(row, now_ms, None)
            unindex_fact(view, row)
            view.update_fact(closed)
            inherit_end(view, row, older, now_ms, revive=True)
            return FactChange("retracted", closed.fact, row.fact)

        return self._write(scope, work)

    def review(
        self, scope: Scope, ids: Collection[str], choice: ReviewChoice, value: str | None = None
    ) -> list[FactChange]:
        """Accept or dismiss candidates that wait for the user, or let them wait again; see `User.review`."""
        waiting = self.store.read(scope, lambda view: {one.id: one for one in view.rejected(limit=2**62)})
        if missing := [one for one in ids if one not in waiting]:
            raise NotFound(f"nothing waits as {missing[0]!r} here", hint="rejected(waiting=True) lists them")
        changes = []
        for one in dict.fromkeys(ids):
            texts = [value or waiting[one].candidate.text] if waiting[one].candidate.kind == "statement" else []
            work = partial(self._decide, id_=one, choice=choice, value=value, hints=self.reader.hints_for(texts))
            changes.append(self._write(scope, work))
        return changes

    def _decide(
        self, view: WriteView, id_: str, choice: ReviewChoice, value: str | None, hints: MatchHints
    ) -> FactChange:
        rows = view.rejected(limit=2**62)
        chosen = next((one for one in rows if one.id == id_), None)
        if chosen is None:
            raise NotFound(f"nothing waits as {id_!r} here", hint="rejected(waiting=True) lists them")
        accepted = chosen.reason.startswith(ACCEPTED)
        if not (accepted or chosen.reason in (WAITING, DISMISSED)):
            raise _Refused(chosen.reason)
        if choice == "wait" and accepted:
            self._take_back(
                view, [one for one in rows if one.reason == chosen.reason and says_same(*_pair(one, chosen))]
            )
        same = [one for one in rows if one.reason == chosen.reason and says_same(*_pair(one, chosen))]
        if choice == "accept":
            return (
                FactChange("confirmed", None, reason="it was accepted already")
                if accepted
                else self._accept(view, same, value, hints)
            )
        if choice == "dismiss" and accepted:
            raise _Refused("accepted-already: forget the fact, or let it wait again first")
        for one in same:
            view.decide_rejected(one, WAITING if choice == "wait" else DISMISSED)
        return FactChange("rejected", None, reason=WAITING if choice == "wait" else DISMISSED)

    def _accept(self, view: WriteView, same: Sequence[Rejected], value: str | None, hints: MatchHints) -> FactChange:
        """Believe candidates that say the same, oldest first; with *value* what the user says instead."""
        now_ms, candidate, everybody = self.now_ms(), same[0].candidate, view.at(None, None)
        self._check_active(view, candidate.subject)
        known, ended = {row.fact.id for row in everybody.all_facts()}, _ended_by(view, same)
        claims, changes = [self._waiting_claim(view, one) for one in same], list[FactChange]()
        for claim in sorted(claims, key=lambda claim: (claim.said_at_ms, claim.evidence.seq)):
            here = view.at(claim.evidence.home, claim.evidence.conversation)
            learned = self.reader.learn(here, [claim], (), hints, now_ms, asked=True)
            if (row := here.conversation()) is not None:
                self.reader.order_follow_up(here, row, learned, now_ms)
            changes += learned
        made = [change for change in changes if change.op != "rejected"]
        if changes and not made:
            raise _Refused(changes[0].reason)
        if value is not None and value != (candidate.value if candidate.kind == "attribute" else candidate.text):
            rows = [row for row in everybody.all_facts() if any(states_claim(row, claim) for claim in claims)]
            rows.sort(key=lambda row: row.fact.id in known)  # a new one first
            if candidate.op == "retract" or not rows:
                raise BadInput("there is no value to correct in this", hint="accept it, or dismiss it")
            made = [self._correct(candidate.subject, rows[0].fact.id, value, None, None, view)]
        ids = [row.fact.id for row in everybody.all_facts() if row.fact.id not in known]
        ids += [child for child in _ended_by(view, same) if child not in (*ended, *ids)]
        for one in same:
            view.decide_rejected(one, " ".join((ACCEPTED, *ids)))
        return made[0] if made else FactChange("confirmed", None, reason="it is believed already")

    def _waiting_claim(self, view: WriteView, one: Rejected) -> Claim:
        """Return the claim of a candidate, whose words must still be in its message and still be wanted."""
        said = one.candidate
        found = view.at(one.home, one.conversation).messages(start_seq=said.seq, end_seq=said.seq)
        stop = said.start + len(said.quote)
        if not found or found[0].content[said.start : stop] != said.quote:
            raise _Refused("quote-not-found: its message says something else now")
        if matches_blocked_topic(said, [topic for _, topic in view.blocked_topics()]):
            raise _Refused(UNWANTED)
        place = (one.conversation, said.seq, found[0].role, said.quote, said.start, stop)
        return Claim(said, Evidence(*place, found[0].at, one.home), _ms(found[0]), one.home == SELF)

    def _take_back(self, view: WriteView, same: Sequence[Rejected]) -> None:
        """Delete the facts that accepted candidates made, and undo the ends that they brought."""
        now_ms = self.now_ms()
        ids = dict.fromkeys(same[0].reason.removeprefix(ACCEPTED).split())
        for one in same:
            here, seq = view.at(one.home, one.conversation), one.candidate.seq
            ended = _ended_by(view, [one])
            undo_retractions(here, (seq,), now_ms, keep=[(child, seq) for child in ended if child not in ids])
            for child in ended:
                ids.pop(child, None)
        for fact_id in reversed(ids):
            row = view.fact(fact_id)
            if row is not None:
                delete_fact(view.at(None, None), row, Removed(), now_ms, revive=True)

    def restore(self, scope: Scope, fact_id: str, if_version: Versions = None) -> FactChange:
        """Make a past fact active again: all along if it was never true or archived, from now on otherwise."""
        fact = self.store.read(scope, lambda view: find_fact(view, fact_id)).fact
        said_anew = not fact.live and fact.kind != "attribute" and fact.ended_because not in ("never_true", ARCHIVED)
        hints = self.reader.hints_for([fact.text] if said_anew else [])

        def work(view: WriteView) -> FactChange:
            row, now_ms = find_fact(view, fact_id, if_version), self.now_ms()
            if row.fact.live:
                return FactChange("confirmed", row.fact, reason="it is believed")
            if row.fact.ended_because == UNMERGED:
                return FactChange("rejected", None, reason="taken-apart: its sentences stand for themselves")
            self._check_active(view, scope.subject)
            if row.fact.ended_because == MERGED:
                row = _separate(view, fact_id, now_ms, keep_apart=True)
                if row.fact.live:
                    return FactChange("new", row.fact, reason="it stands for itself again, and so do the others")
            fact = row.fact
            if fact.ended_because in ("never_true", ARCHIVED):
                return _restore_all_along(view, row, now_ms)
            if fact.kind == "attribute":
                given = FactInput("", fact.category, fact.key, fact.value, 1.0)
            else:
                given = FactInput(fact.text, "", "", "", 1.0)
            return self._remember(view.at(fact.subject, None), fact.subject, given, hints, row.owner)

        return self._write(scope, work)


def _restore_all_along(view: WriteView, row: FactRow, now_ms: int) -> FactChange:
    """Make a fact that was denied or archived active for all its time; what took its place ends or never held."""
    fact = row.fact
    holder = view.of_owner(row.owner).fact_at(fact.subject, fact.category, row.slot_key, row.slot_value)
    if holder is not None and (holder.fact.id == fact.superseded_by or holder.fact.valid_from <= fact.valid_from):
        mistaken = holder.fact.id == fact.superseded_by
        unindex_fact(view, holder)
        view.update_fact(_never_held(holder, now_ms, fact.id) if mistaken else _replaced(holder, row, now_ms))
    if fact.ended_because == ARCHIVED:  # a user wants it: it must not be the next to go again
        row = replace(row, fact=replace(fact, last_used_at=from_ms(now_ms), uses=fact.uses + 1))
    again = reactivate(view, row, now_ms)
    return FactChange("new" if again.fact.live else "confirmed", again.fact, holder.fact if holder else None)


def checked_range(conversation: str | None, start_seq: int | None, end_seq: int | None) -> FactRange | None:
    if conversation is None and start_seq is None and end_seq is None:
        return None
    if conversation is None or start_seq is None:
        raise BadInput("a range needs conversation and start_seq", hint="a single message needs no end_seq")
    first = checked_count("start_seq", start_seq)
    last = first if end_seq is None else checked_count("end_seq", end_seq)
    if last < first:
        raise BadInput(f"end_seq {last} lies before start_seq {first}")
    return FactRange(checked_name("conversation", conversation), first, last)


def fact_input(
    text: str | None = None,
    *,
    category: str | None = None,
    key: str | None = None,
    value: str | None = None,
    aliases: Sequence[str] = (),
    confidence: float = 1.0,
    importance: float | None = None,
    conversation: str | None = None,
    start_seq: int | None = None,
    end_seq: int | None = None,
    at: datetime | None = None,
    idempotency_key: str | None = None,
) -> FactInput:
    """
    Return a fact to remember from what `User.remember` takes.

    Raises:
        BadInput: it is no fact; see there.
    """
    if text is None and (category is None or key is None or value is None):
        raise BadInput("remember needs a sentence, or category, key and value", hint='try remember("I eat fish.")')
    label = checked_label(category) if text is not None and category is not None and key is value is None else ""
    category = None if label else category
    if category is not None and (key is None or value is None):
        raise BadInput("an address needs category, key and value")
    given = {"text": text, "category": category, "key": key, "value": value}
    words = {name: "" if item is None else checked_text(name, item) for name, item in given.items()}
    return FactInput(
        **words,
        aliases=checked_aliases(aliases),
        confidence=checked_share("confidence", confidence),
        importance=None if importance is None else checked_share("importance", importance),
        about=checked_range(conversation, start_seq, end_seq),
        at_ms=None if at is None else to_ms(at),
        idempotency_key=None if idempotency_key is None else checked_name("idempotency_key", idempotency_key),
        label=label,
    )


def checked_review(
    ids: Sequence[str], choice: ReviewChoice, value: str | None
) -> tuple[tuple[str, ...], ReviewChoice, str | None]:
    """
    Return what `User.review` takes, as it can be used.

    Raises:
        BadInput: it is no decision; see there.
    """
    if isinstance(ids, str) or not all(isinstance(one, str) for one in ids):
        raise BadInput("ids must be a list of texts", hint="rejected(waiting=True) lists them")
    if choice not in get_args(ReviewChoice):
        raise BadInput(f"there is no choice {choice!r}", hint=f"use {', '.join(get_args(ReviewChoice))}")
    if value is not None and (choice != "accept" or len(ids) != 1):
        raise BadInput("a value goes with accept, and with one id")
    right = None if value is None else checked_text("value", value).strip()
    if right == "":
        raise BadInput("the value is empty", hint="dismiss it, or leave the value out")
    return tuple(ids), choice, right


def checked_label(label: str) -> str:
    """
    Return a label as it is stored.

    Raises:
        BadInput: it is none of the six.
    """
    plain = checked_text("category", label).strip().casefold()
    if plain not in LABELS:
        raise BadInput(
            f"the category of a sentence is a label, and {label!r} is none",
            hint=f"use {', '.join(LABELS)}; or give category, key and value",
        )
    return plain


def checked_aliases(aliases: Sequence[str]) -> tuple[str, ...]:
    if isinstance(aliases, str):
        raise BadInput("aliases must be a list of names", hint=f"write ({aliases!r},)")
    names = tuple(dict.fromkeys(checked_name("alias", one).strip() for one in aliases))
    if wrong := next((name for name in names if not name or set(name) & set("();")), None):
        raise BadInput(f"an alias cannot hold parentheses or semicolons: {wrong!r}", hint="leave them out")
    if len(names) > MAX_ALIASES:
        raise BadInput(f"a fact may have {MAX_ALIASES} aliases at a time, these are {len(names)}")
    return names


def _stored_before(here: ReadView, given: FactInput) -> FactChange | None:
    """Return the fact that was stored under the same idempotency key; ``None`` when the key is new."""
    before = None if given.idempotency_key is None else here.idempotency(given.idempotency_key)
    if before is None:
        return None
    digest, seq, _ = before
    if digest not in ("", given.digest):
        raise KeyReused(f"idempotency key {given.idempotency_key!r} was used with other words", hint="use a new key")
    rows = here.all_facts()
    found = [
        r.fact for r in rows if any(e.conversation == BY_HAND_CONVERSATION and e.seq == seq for e in r.fact.evidence)
    ]
    if not found:
        raise _Refused("stored-before: this key stored it before, and it was erased since")
    return FactChange("confirmed", found[-1], reason="this key stored it before")


def _pair(one: Rejected, other: Rejected) -> tuple[Candidate, Candidate]:
    return one.candidate, other.candidate


def _ended_by(view: ReadView, said: Sequence[Rejected]) -> list[str]:
    """Return the facts that the messages of candidates ended."""
    places = {(one.conversation, one.candidate.seq) for one in said}
    return [edge.child for edge in view.at(None, None).endings() if (edge.conversation, edge.start_seq) in places]


def _accept_repeated(view: WriteView, changes: Sequence[FactChange]) -> None:
    """Ask no more about what the user has just said by hand."""
    known = [row for change in changes if change.fact is not None and (row := view.fact(change.fact.id)) is not None]
    for one in view.rejected(limit=2**62, only="waiting"):
        said = one.candidate
        quote = Evidence(
            one.conversation, said.seq, "user", said.quote, said.start, said.start + len(said.quote), None, one.home
        )
        if said.op == "assert" and any(states_claim(row, Claim(said, quote, 0, one.home == SELF)) for row in known):
            view.decide_rejected(one, ACCEPTED)


def _separate(view: WriteView, fact_id: str, now_ms: int, *, keep_apart: bool = False) -> FactRow:
    """Return the fact, after separating it from the memory it was merged into."""
    row = find_fact(view, fact_id)
    whole = merged_into(view, row)
    if whole is None:
        return row
    split_fact(view, whole, now_ms, keep_apart=keep_apart)
    beside = view.of_owner(row.owner)
    there = beside.fact_at(row.fact.subject, row.fact.category, row.slot_key, row.slot_value)
    return view.fact(fact_id) or there or find_fact(view, fact_id)


def find_fact(view: ReadView, fact_id: str, if_version: Versions = None) -> FactRow:
    """
    Return one fact, live or past.

    Raises:
        NotFound: there is no such fact.
        Changed: its version is none of *if_version*.
    """
    row = view.fact(fact_id)
    if row is None:
        raise NotFound(f"there is no fact {fact_id!r} here", hint="facts() and history() list them")
    if if_version is not None:
        check_version(row.fact.version, (if_version,) if isinstance(if_version, str) else if_version)
    return row


def check_version(version: object, allowed: Collection[object]) -> None:
    """
    Refuse a change of something that has changed meanwhile.

    Raises:
        Changed: *version* is not among *allowed*.
    """
    if version not in allowed:
        raise Changed("it has changed since you read it", hint="read it again, then decide")


def _key_and_value(fact: Fact, value: str) -> tuple[str, str]:
    """Return the key and value that say *value* at the fact's address; in "dietary: vegetarian" the key is the value."""
    if fact.kind == "attribute" and fact.cardinality == "exclusive" and fact.value == "true":
        return re.sub(r"\W+", "_", value.casefold()).strip("_") or value, "true"
    return limit_in_currency(fact.key, value) if fact.kind == "attribute" else (fact.key, value)


def _where(view: WriteView, subject: str, conversation: str) -> WriteView:
    """Return the view of a conversation that a fact about *subject* is from: one of that subject, or else the user's."""
    own = view.at(subject, conversation)
    return own if subject == SELF or own.conversation() is not None else view.at(SELF, conversation)


def _day_of(episode: str, message: Message) -> int | None:
    """Return when an episode was: on the day that its words name, else when its messages were said."""
    return day_told(episode, episode, message) or _ms(message) or None


def _never_held(row: FactRow, now_ms: int, successor: str | None) -> FactRow:
    """Return the fact as history that held at no time, learned now."""
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


def _ms(message: Message) -> int:
    return to_ms(message.at) if message.at else 0
