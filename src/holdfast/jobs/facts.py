"""Facts by the built-in rules: read the messages that are not read yet, and reconcile them with what is believed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from ..clock import from_ms, new_id, to_ms
from ..digest import rules
from ..digest.answers.wording import attribute_sentence
from ..digest.changes.endings import find_endings
from ..digest.grammar import PatternLanguage, load_language
from ..digest.grounding import ground, in_other_language
from ..digest.mentions import SubjectNames, is_code, is_name, subject_names
from ..digest.results import find_recoveries, words_of_nobody
from ..digest.second_look import KnownValue, known_values, things_named
from ..digest.slots import takes_place_of
from ..ingest.append import ReadFrom
from ..ingest.redact import MASK, mask_messages, mask_secrets
from ..reconcile.archive import request_upkeep
from ..reconcile.compare import in_first_person
from ..reconcile.decide import Address, Claim
from ..reconcile.learn import MatchHints, embed_sentences, learn
from ..reconcile.merging import move_facts
from ..reconcile.registry import Registry, matches_blocked_topic
from ..reports import DigestReport
from ..scope import CHARACTER, SELF, Scope
from ..store import ConversationRow, FactRow, ReadView, SubjectRow, WriteView, speaker_names
from ..text import dataclass, expression, remembered
from ..text.sentences import SpelledOut, spell_out
from ..text.terms import likely_languages
from ..types import Candidate, Detector, Evidence, Fact, FactChange, Job, Message
from .queue import Dependencies, check_claim, scope_of

BATCH_MESSAGES = 200
UNREAD_AHEAD = 20  # messages that an append reads along with its own
_WORD = expression(r"[^\W\d_]+")
EARLIER_MESSAGES = 24  # before the first that is read, for the people whom they introduced
INTRODUCES = ("family", "pets")
DISCARDED = "discarded: the words hold what must not be remembered"


@dataclass(frozen=True, slots=True)
class RuleInput:
    """
    The messages that the rules read, with their secrets masked, and what they are read with, in one snapshot.

    ``named_by`` are the facts that may say what a subject is called, of all subjects.
    """

    epoch: int
    messages: list[Message]
    before: Message | None
    facts: list[FactRow]
    names: dict[str, int]
    never: list[str]
    subjects: list[SubjectRow]
    named_by: list[FactRow]
    earlier: list[str]


def _names_other(text: str, ids: Mapping[str, str], subject: str, language: PatternLanguage) -> bool:
    """Whether *text* may name anybody but the one that a conversation is about."""
    relations, nobody = language.lexicons.get("relation"), words_of_nobody()
    words = (word for word in _WORD.findall(text) if ids.get(word.casefold(), "") != subject)
    return any(
        (is_name(word) and word.casefold() not in nobody) or (relations and relations.lookup(word)) for word in words
    )


def _endings(
    message: Message,
    found: Sequence[Candidate],
    believed: Sequence[Fact | Candidate],
    known: Sequence[KnownValue],
    ids: Mapping[str, str],
    scope: Scope,
    code: str | None,
) -> list[Candidate]:
    """
    Return what a message ends; in a conversation about a subject "she" is that one, where no other is named.

    What ailed it may be over without a word of what exactly: "No more diarrhoea since yesterday."
    """
    subject, language = scope.subject or SELF, load_language(code or likely_languages(message.content)[0])
    if subject == SELF or language is None:
        return find_endings(message, found, known, others=ids, language_code=code)
    pronouns = " ".join(str(language.people.get(name, "")) for name in ("she", "he", "it")).split()
    named = _names_other(message.content, ids, subject, language)
    others = ids if named else {**dict.fromkeys(pronouns, subject), **ids}
    ends = find_endings(message, found, known, others=others, language_code=code)
    facts = [one for one in believed if isinstance(one, Fact)]
    other = partial(_names_other, ids=ids, subject=subject, language=language)
    over = find_recoveries(message, facts, subject, other, rules.FACT_SOURCE)
    return [*ends, *(one for one in over if one.text not in {end.text for end in ends})]


def _as_written(candidate: Candidate, message: Message, spelled: SpelledOut) -> Candidate:
    """Return a claim of a message that was read spelled out, with its quote as the user wrote it."""
    start, end = spelled.written(candidate.start, candidate.start + len(candidate.quote))
    return replace(candidate, start=start, quote=message.content[start:end])


@dataclass(frozen=True, slots=True)
class ReadAhead:
    """The claims of messages that are not stored yet, with the rows that they were read from; ``waiting``: earlier ones were read along."""

    rows: ReadFrom
    accepted: list[Claim]
    refused: list[tuple[Candidate, str]]
    hints: MatchHints
    waiting: bool = False


@dataclass(frozen=True, slots=True)
class FactReader:
    """
    The handler of ``extract`` jobs: batch by batch, one transaction each.

    ``statements``: what no pattern reads is noted as a sentence; with a model that is the model's task.
    """

    deps: Dependencies
    statements: bool = True

    @property
    def registry(self) -> Registry:
        """The categories of facts."""
        return self.deps.registry

    @property
    def embeds(self) -> bool:
        """Whether new documents get vectors."""
        return self.deps.embedder is not None

    def __call__(self, job: Job) -> DigestReport:
        scope, store = scope_of(job), self.deps.store
        changes: list[FactChange] = []
        while True:
            seen = store.read(scope, self._snapshot)
            accepted, refused = self.claims(scope, seen)
            hints = self.hints_for_claims(accepted)
            work = partial(self._write, job=job, seen=seen, accepted=accepted, refused=refused, hints=hints)
            done, batch = store.write(scope, work)
            changes += batch
            if done:
                return report_of(changes)

    def read_ahead(self, scope: Scope, said: Sequence[Message]) -> ReadAhead | None:
        """
        Read messages that are about to be stored at the end of a conversation, with the small talk before them that waits to be read.

        ``None`` while more is unread, or what is unread is being read or could not be.
        """
        found = self.deps.store.read(scope, partial(self._before_stored, said=said))
        if found is None:
            return None
        accepted, refused = self.claims(scope, found[1])
        waiting = len(found[1].messages) > len(said)
        return ReadAhead(found[0], accepted, refused, self.hints_for_claims(accepted), waiting)

    def _before_stored(self, view: ReadView, said: Sequence[Message]) -> tuple[ReadFrom, RuleInput] | None:
        row, user = view.conversation(), view.user()
        first = row.next_seq if row else 1
        start = row.extracted_seq + 1 if row else 1
        if first - start > UNREAD_AHEAD or (start < first and not view.is_waiting("extract")):
            return None
        stored = view.messages(start_seq=max(1, start - 1)) if first > 1 else []
        before = stored.pop(0) if stored and stored[0].seq < start else None
        messages = stored + [
            replace(message, at=from_ms(to_ms(message.at)), seq=seq, conversation=view.scope.conversation or "")
            for seq, message in enumerate(said, first)
            if message.at is not None
        ]
        return ReadFrom(user, row), self._input(view, messages, before, speaker_names(view, messages))

    def learn_ahead(self, view: WriteView, ahead: ReadAhead) -> list[FactChange]:
        """Learn what was read ahead, in the transaction that has just stored the messages."""
        row, now_ms = view.conversation(), self.deps.now_ms()
        if row is None:
            return []
        if ahead.waiting:
            view.drop_waiting("extract")
        changes = self.learn(view, ahead.accepted, ahead.refused, ahead.hints, now_ms)
        self.order_follow_up(view, row, changes, now_ms)
        return changes

    def _snapshot(self, view: ReadView) -> RuleInput:
        row = view.conversation()
        start = row.extracted_seq + 1 if row else 1
        messages = view.messages(start_seq=max(1, start - 1), limit=BATCH_MESSAGES + 1)
        before = messages.pop(0) if messages and messages[0].seq < start else None
        return self._input(view, messages[:BATCH_MESSAGES], before, speaker_names(view, messages))

    def _input(
        self, view: ReadView, messages: Sequence[Message], before: Message | None, names: dict[str, int]
    ) -> RuleInput:
        detectors = self.deps.config.detectors
        masked = mask_messages([before, *messages] if before else messages, detectors)
        before, read = (masked[0], masked[1:]) if before else (None, masked)
        never = [topic for _, topic in view.blocked_topics()]
        subjects, facts = view.subjects(), current_facts(view, read)
        named_by = view.at(None, None).facts() if subjects else facts
        earlier = self._earlier(view, read)
        return RuleInput(view.user().epoch, read, before, facts, names, never, subjects, named_by, earlier)

    def _earlier(self, view: ReadView, messages: Sequence[Message]) -> list[str]:
        """Return what the user said in the messages before."""
        first = messages[0].seq if messages else 1
        found = view.messages(start_seq=max(1, first - EARLIER_MESSAGES), end_seq=first - 1) if first > 1 else []
        return [one.content for one in mask_messages(found, self.deps.config.detectors) if one.role == "user"]

    def input_of(self, view: ReadView, message: Message) -> RuleInput:
        """Return the snapshot for reading one message again after it was edited."""
        found = view.messages(start_seq=max(1, message.seq - 1), end_seq=message.seq)
        before = next((m for m in found if m.seq < message.seq), None)
        return self._input(view, [message], before, speaker_names(view))

    def input_of_range(self, view: ReadView, start_seq: int, end_seq: int) -> RuleInput:
        """Return the snapshot for reading a range as if it had not been read; see `known_before`."""
        found = view.messages(start_seq=max(1, start_seq - 1), end_seq=end_seq)
        before = next((m for m in found if m.seq < start_seq), None)
        names = speaker_names(view, found)
        read = self._input(view, [m for m in found if m.seq >= start_seq], before, names)
        return replace(read, facts=known_before(view, read.facts, start_seq))

    def claims(self, scope: Scope, seen: RuleInput) -> tuple[list[Claim], list[tuple[Candidate, str]]]:
        """Return the claims that the messages state, with evidence, and the refused candidates with the reason."""
        config = self.deps.config
        said: list[Candidate] = []
        earlier = list(seen.earlier)
        accepted: list[Claim] = []
        refused: list[tuple[Candidate, str]] = []
        before = seen.before
        for message in seen.messages:
            if message.role == "user" and not self._left_to_model(message, earlier):
                names = known_subjects(scope, seen.subjects, seen.named_by, said)
                spelled = spell_out(message.content)
                read = replace(message, content=spelled.text) if spelled is not None else message
                found = rules.extract_facts(
                    read,
                    subject=scope.subject or SELF,
                    others=names,
                    before=before,
                    earlier=earlier[-EARLIER_MESSAGES:],
                    language_code=config.language,
                    statements=self.statements,
                )
                earlier.append(message.content)
                believed: list[Fact | Candidate] = [
                    *(row.fact for row in seen.facts),
                    *(claim.candidate for claim in accepted),
                ]
                speaker = speaker_subject(message, scope.user, seen.names)
                # What another sold or left is theirs, not the user's.
                known = known_values(believed, scope.conversation or "") if speaker == SELF else []
                ends = _endings(
                    read, found, believed if speaker == SELF else [], known, names.ids, scope, config.language
                )
                found = [*_without_ended(found, ends), *ends]
                found = [_as_written(candidate, message, spelled) for candidate in found] if spelled else found
                found = [spoken_by(candidate, speaker) for candidate in found]
                said += found
                found = [candidate for candidate in found if not matches_blocked_topic(candidate, seen.never)]
                good, bad = ground(found, {message.seq: message}, min_confidence=config.min_confidence)
                accepted += [
                    claim_of(scope, candidate, evidence) for candidate, evidence in good if not is_masked(candidate)
                ]
                refused += [*bad, *((candidate, DISCARDED) for candidate, _ in good if is_masked(candidate))]
            elif message.role == "user":
                earlier.append(message.content)
            before = message
        return accepted, refused

    def _left_to_model(self, message: Message, earlier: Sequence[str]) -> bool:
        """Whether only a model words the facts of *message*, as it is in another language than they are."""
        language = self.deps.config.fact_language
        return not self.statements and in_other_language(message.content, earlier[-EARLIER_MESSAGES:], language)

    def hints_for_claims(self, claims: Sequence[Claim]) -> MatchHints:
        """Return hints for matching the sentences of new claims with known ones; call it outside a transaction."""
        return self.hints_for([claim.candidate.text for claim in claims if claim.candidate.kind == "statement"])

    def hints_for(self, sentences: Sequence[str]) -> MatchHints:
        """Return hints for matching new sentences with known ones; call it outside a transaction."""
        config = self.deps.config
        return MatchHints(
            embed_sentences(self.deps.embedder, sentences, config.consolidate_similarity),
            partial(addresses, self.registry, config.language),
        )

    def order_follow_up(
        self, view: WriteView, row: ConversationRow, changes: Sequence[FactChange], now_ms: int
    ) -> None:
        """Order the upkeep and the vectors that changes of facts call for."""
        request_upkeep(view, changes, self.deps.config.max_memories, now_ms)
        if self.embeds and any(change.op != "rejected" for change in changes):
            view.want("embed", "", wanted=row.next_seq - 1, run_at_ms=now_ms, now_ms=now_ms)

    def learn(
        self,
        view: WriteView,
        accepted: Sequence[Claim],
        refused: Sequence[tuple[Candidate, str]],
        hints: MatchHints,
        now_ms: int,
        *,
        asked: bool = False,
    ) -> list[FactChange]:
        """Reconcile claims with what is believed, inside the caller's transaction; *asked*: the user accepted them."""
        changes = learn(
            view,
            accepted,
            refused,
            self.registry,
            new_id=lambda: new_id("fact", now_ms),
            now_ms=now_ms,
            hints=hints,
            ask=self.deps.config.ask_before_learning and not asked,
        )
        if any(c.fact is not None and (c.fact.subject != SELF or c.fact.category in INTRODUCES) for c in changes):
            join_mentions(view, now_ms)
        return changes

    def _write(
        self,
        view: WriteView,
        job: Job,
        seen: RuleInput,
        accepted: Sequence[Claim],
        refused: Sequence[tuple[Candidate, str]],
        hints: MatchHints,
    ) -> tuple[bool, list[FactChange]]:
        check_claim(view, job, seen.epoch)
        row, now_ms = view.conversation(), self.deps.now_ms()
        if row is None or not seen.messages or row.extracted_seq >= seen.messages[-1].seq:  # an append read them along
            view.finish(job, now_ms)
            return True, []
        changes = self.learn(view, accepted, refused, hints, now_ms)
        row = replace(row, extracted_seq=seen.messages[-1].seq)
        view.save_conversation(row)
        self.order_follow_up(view, row, changes, now_ms)
        done = row.extracted_seq >= row.next_seq - 1
        if done:
            view.finish(job, now_ms)
        return done, changes


def report_of(changes: Sequence[FactChange], *, problems: int = 0, tokens: int = 0) -> DigestReport:
    """Return the report of what one or several transactions learned."""
    refusals = sum(change.op == "rejected" for change in changes)
    return DigestReport(
        facts=len(changes) - refusals, rejected=refusals + problems, tokens=tokens, changes=tuple(changes)
    )


@remembered(2048)
def _read_alone(text: str, language: str | None) -> tuple[Candidate, ...]:
    return tuple(rules.extract_facts(Message("user", text), language_code=language))


def addresses(registry: Registry, language: str | None, text: str) -> dict[Address, str]:
    """Return the attributes that the rules read in one sentence, where an address holds one value at a time."""
    found: dict[Address, str] = {}
    for candidate in _read_alone(in_first_person(text), language):
        asserted = (candidate.op, candidate.modality, candidate.kind) == ("assert", "asserted", "attribute")
        slot = registry.slot(candidate.category, candidate.key, candidate.value, candidate.join)
        if asserted and candidate.subject == SELF and slot.cardinality != "multi":
            found[candidate.category, slot.key] = candidate.value
    return found


def known_subjects(
    scope: Scope, rows: Sequence[SubjectRow], facts: Sequence[FactRow], said: Sequence[Candidate] = ()
) -> SubjectNames:
    """Return the names of the user's subjects as seen from the scope's; *said* was read and is not stored yet."""
    believed = sorted((row.fact for row in facts), key=lambda fact: (fact.recorded_at, fact.id))
    return subject_names(rows, [*believed, *said], here=scope.subject or SELF)


def subject_labels(view: ReadView, facts: Sequence[FactRow]) -> Mapping[str, str]:
    """Return the names to show of the user's subjects, as far as *facts* hold them."""
    rows = view.subjects()
    if any(is_code(row.subject) and not row.name for row in rows):
        facts = view.facts()  # its quotes show what it is called
    return known_subjects(view.scope, rows, facts).labels


def join_mentions(view: WriteView, now_ms: int) -> None:
    """
    Move the facts about a mere mention to the subject that turns out to be meant.

    "My sister lives in Rome" is about ``sister`` until "my sister Meera" names her.
    """
    whole = view.at(None, None)
    rows = whole.subjects()
    names = known_subjects(whole.scope, rows, whole.facts())
    anchored = {row.subject for row in rows} | {SELF, *names.labels}
    for name, subject in names.ids.items():
        if name != subject and name not in anchored:
            move_facts(view, name, subject, now_ms)


def current_facts(view: ReadView, messages: Sequence[Message]) -> list[FactRow]:
    """Return the facts that are believed when *messages* are read, without those that had run out when they were said."""
    said = [to_ms(message.at) for message in messages if message.at is not None]
    rows = view.facts()
    return [row for row in rows if not said or row.expires_at is None or row.expires_at > min(said)]


def known_before(view: ReadView, facts: Sequence[FactRow], start_seq: int) -> list[FactRow]:
    """Return the facts that do not rest on the view's conversation from *start_seq* on alone."""
    here = (view.scope.subject or SELF, view.scope.conversation)
    return [
        row for row in facts if any((e.home, e.conversation) != here or e.seq < start_seq for e in row.fact.evidence)
    ]


def speaker_subject(message: Message, user: str, names: Mapping[str, int]) -> str:
    """
    Return the subject that "I" means: the user, or in a chat among several speakers the one who is named.

    The user is the speaker whose name is the user's id, or else the first speaker.
    """
    if not message.name or len(names) < 2:
        return SELF
    by_id = [name for name in names if name.casefold() == user.casefold()]
    own = by_id[0] if by_id else min(names, key=lambda name: names[name])
    return SELF if message.name == own else message.name.casefold()


def mask_claim(candidate: Candidate, detectors: Sequence[Detector]) -> Candidate:
    """Return a model's claim with its secrets masked, whichever words named them: also ``pin = 4821``."""
    text, value = mask_secrets(candidate.text, detectors), mask_secrets(candidate.value, detectors)
    if MASK in mask_secrets(f"{candidate.key.replace('_', ' ')}: {candidate.value}", detectors):
        value = MASK * len(candidate.value)
    unchanged = (text, value) == (candidate.text, candidate.value)
    return candidate if unchanged else replace(candidate, text=text, value=value)


def is_masked(candidate: Candidate) -> bool:
    """Whether the candidate says words that were masked; its quote may hold some that belong to others."""
    return any(MASK in words for words in (candidate.value, candidate.text)) or not candidate.quote.strip(MASK + " ")


def spoken_by(candidate: Candidate, speaker: str) -> Candidate:
    """Return the candidate with the named speaker as its subject, where the speaker spoke of themselves."""
    return replace(candidate, subject=speaker) if speaker != SELF and candidate.subject == SELF else candidate


def claim_of(scope: Scope, candidate: Candidate, evidence: Evidence) -> Claim:
    """Return the claim of a candidate whose evidence is in the scope's conversation."""
    placed = replace(evidence, home=scope.subject or SELF)
    return Claim(candidate, placed, to_ms(placed.at) if placed.at else 0, scope.subject in (SELF, CHARACTER))


def _without_ended(extracted: Iterable[Candidate], endings: Iterable[Candidate]) -> list[Candidate]:
    """
    Return *extracted* without the statements that only say what *endings* say: "I gave up the gym" ends the gym.

    Such a statement shares characters with an ending, or names what it ends.
    """
    over = [one for one in endings if one.op == "retract"]
    return [one for one in extracted if one.kind != "statement" or not any(_says_end(one, end) for end in over)]


_DENIES = expression(
    r"(?i)\b(?:no|not|never|nothing|without|longer|any ?more|stopped|quit|gave|sold|left|ended|over|cancell?ed|used to)\b|n't\b"
)


def _says_what_is_now(one: Candidate, end: Candidate) -> bool:
    """Whether a statement says, with the verb of the fact that ended, what is true instead, or that it was bought."""
    verb = one.text.split(" ")[0]
    old = end.text.split(" ")[0] if end.kind == "statement" else end.key.partition("_")[0].capitalize()
    if _DENIES.search(one.text):
        return False
    bought = verb == "Bought" and old in ("Rents", "Leases", "Borrows")
    return bought or (verb == old and verb.endswith("s") and verb not in ("Is", "Has", "Was"))


def _says_end(one: Candidate, end: Candidate) -> bool:
    """Whether a statement is the one that says an ending."""
    old = end.text if end.kind == "statement" else attribute_sentence(end.category, end.key, end.value, "en")
    if (end.value == "single" and "single" not in one.text.casefold()) or takes_place_of("en", one.text, old):
        return False  # "I'm engaged to Mia" says more
    if _says_what_is_now(one, end):
        return False  # "we live in a house now" of a flat
    if one.start < end.start + len(end.quote) and end.start < one.start + len(one.quote):
        return True
    ended = f"{end.key.replace('_', ' ')} {end.value}" if end.kind == "attribute" else end.text
    names = {
        name for name in (*things_named(f"- {ended}"), *things_named(f"The {end.value}"), end.value) if len(name) > 3
    }
    return any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", one.text, re.IGNORECASE) for name in names)
