"""Write what the decisions say: facts, evidence, index documents, edges; inside the caller's transaction."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ..clock import from_ms, to_ms
from ..embed.protocol import Embedder, Thresholds, dequantize
from ..scope import SELF
from ..store import OF_USER, Derivation, FactOwner, FactRow, Partition, ReadView, Side, WriteView
from ..text import NDArray, dataclass, expression, np
from ..types import ACCEPTED, BY_HAND_SOURCE, DISMISSED, WAITING, Candidate, Fact, FactChange, FactKind
from .archive import index_fact, unindex_fact
from .compare import asserts_plainly, name_thing, preferred, repeats_all, thing_stems
from .decide import (
    MERGED,
    NEVER_HELD,
    NEVER_NEAR,
    REBUILT,
    ActiveSentence,
    ActiveSentences,
    Addresses,
    Claim,
    Decision,
    SentenceMatch,
    as_active,
    compare_with_active,
    decide,
    find_meant,
    put_right,
    retracts,
    settle_beside_attributes,
    settle_statement,
    states_claim,
    with_covered,
    with_restatements,
)
from .erase import inherit_end, reinstate, undo_retractions
from .merging import (
    beside_at_place,
    changed_by,
    left_behind,
    merged_sources,
    names_same,
    split_fact,
    told_by_episode,
    told_happenings,
)
from .registry import Registry, normalize_value, spelled_as

RULES = "rules "  # the source of what the built-in rules read begins with it


@dataclass(frozen=True, slots=True)
class SentenceVectors:
    """Vectors of new sentences by their text, and the thresholds of the embedder that made them."""

    embedder: str
    thresholds: Thresholds
    vectors: Mapping[str, NDArray[np.float32]]


def embed_sentences(
    embedder: Embedder | None, texts: Sequence[str], merge: float | None = None
) -> SentenceVectors | None:
    """Embed new sentences, outside any transaction; ``None`` without an embedder, or for no sentence."""
    if embedder is None or not texts:
        return None
    rows = embedder.embed(list(texts))
    limits = embedder.thresholds if merge is None else replace(embedder.thresholds, merge=merge)
    return SentenceVectors(embedder.id, limits, dict(zip(texts, rows, strict=True)))


@dataclass(frozen=True, slots=True)
class MatchHints:
    """Aids to compare sentences beside their words; each may be missing."""

    vectors: SentenceVectors | None = None
    addresses: Addresses | None = None


WORDS_ALONE = MatchHints()


def learn(
    view: WriteView,
    claims: Sequence[Claim],
    refused: Sequence[tuple[Candidate, str]],
    registry: Registry,
    *,
    new_id: Callable[[], str],
    now_ms: int,
    hints: MatchHints = WORDS_ALONE,
    ask: bool = False,
) -> list[FactChange]:
    """
    Reconcile grounded claims with what is believed, in the order in which they were said.

    Attributes meet at their addresses.  Sentences meet by what they say, see `statements`; *hints* helps to
    compare them.

    Returns one change a claim that changed or confirmed something, and one of op ``rejected`` for
    everything that was refused.  Running the same claims again changes nothing.  With *ask*, what is new waits
    for the user.
    """
    owner, changes = view.fact_owner(), list[FactChange]()
    view = view.of_owner(owner)
    claims = hold_back(view, claims, registry, now_ms) if ask else claims
    believed_now = _LiveFacts(view)
    for candidate, reason in refused:
        view.add_rejected(candidate, reason, now_ms)
        changes.append(FactChange("rejected", None, reason=reason))
    here = (_where_said(believed_now, at_known_address(view, claim, registry)) for claim in claims)
    fresh = (claim for claim in here if not _has_ended(view, claim.candidate))
    meant = (one for claim in fresh for one in _with_corrections(view, _as_meant(view, claim)))
    for claim in with_opposites((_where_covered(view, claim, registry) for claim in meant), registry):
        if _is_told(view, believed_now, claim):
            continue
        ever = _all_beside(view, claim.candidate)
        live = [row for row in ever if row.fact.live]
        past = [row for row in ever if not row.fact.live]
        decision = decide(claim, live, past, registry, fact_id=new_id(), now_ms=now_ms)
        if claim.candidate.kind == "statement" and decision.add is not None and decision.add.fact.live:
            believed, meeting = _match(view, believed_now, claim, hints, now_ms)
            decision = settle_statement(claim, decision, meeting, now_ms)
            ever += [one.stands for one in believed]
        beside = _beside(view, believed_now, claim, decision, hints.addresses)
        decision = _settle_beside(claim, decision, beside, hints, now_ms)
        covered = _covered(view, decision, registry) or told_happenings(view, decision, claim)
        decision = _owned(with_covered(decision, covered, now_ms), owner)
        ever += [*beside, *covered]
        if decision.refused and claim.candidate.modality == "negated":
            continue  # "not vegan" ends being vegan; where nobody said so there is nothing to tell
        if decision.refused:
            view.add_rejected(claim.candidate, decision.refused, now_ms)
            changes.append(FactChange("rejected", None, reason=decision.refused))
            continue
        write(view, claim, decision, ever, now_ms)
        believed_now.follow(decision)
        if decision.change is not None:
            changes.append(decision.change)
    return changes


def _all_beside(view: WriteView, candidate: Candidate) -> list[FactRow]:
    """Return the live and past facts of the subject and category of a claim; of other sentences than its own without quotes."""
    whole = candidate.kind == "attribute"
    rows = view.all_facts_in(candidate.subject, candidate.category, evidence=whole)
    if not whole:
        said = normalize_value(candidate.text)
        rows = [
            view.with_quotes(row) if said in (row.slot_value, normalize_value(row.fact.text)) else row for row in rows
        ]
    return [as_active(row) for row in rows]


def hold_back(view: WriteView, claims: Sequence[Claim], registry: Registry, now_ms: int) -> list[Claim]:
    """Let new claims wait for the user's decision; return those that only confirm what is believed, or end nothing."""
    decided = [one.candidate for one in view.rejected(limit=2**62) if one.reason.startswith((DISMISSED, ACCEPTED))]
    known = list[Claim]()
    stated = {(c.candidate.seq, c.candidate.category, c.candidate.value) for c in claims if c.candidate.op == "assert"}
    for claim in claims:
        meant = at_known_address(view, claim, registry)
        candidate = meant.candidate
        place = (candidate.seq, candidate.category, candidate.value)
        if candidate.op == "retract" and candidate.value and place in stated:
            continue  # "I don't like sushi any more" is one question: to accept the dislike ends the other
        live = [row for row in view.all_facts_in(candidate.subject, candidate.category) if row.fact.live]
        if candidate.op == "assert":
            new = not any(states_claim(row, meant) for row in live)
        else:
            new = any(retracts(meant, row) for row in live)
        if not new:
            known.append(claim)
            if candidate.op == "retract":
                _end_waiting(view, candidate)
        elif not any(one.seq == candidate.seq and says_same(one, claim.candidate) for one in decided):
            view.add_rejected(claim.candidate, WAITING, now_ms)
            decided.append(claim.candidate)
    return known


def _end_waiting(view: WriteView, said: Candidate) -> None:
    """Ask no more about what the user says has ended."""
    for one in view.at(None, None).rejected(limit=2**62, only="waiting"):
        there = replace(one.candidate, op="retract", value=one.candidate.value if said.value else "")
        if one.candidate.op == "assert" and says_same(there, replace(said, text=there.text)):
            view.decide_rejected(one, "ended: the user said later that it no longer holds")


def says_same(one: Candidate, other: Candidate) -> bool:
    """Whether two candidates would make, or end, the same fact."""
    place = (one.op, one.kind, one.subject, one.category, one.key)
    if place != (other.op, other.kind, other.subject, other.category, other.key):
        return False
    words, others = ((c.value or c.text) if c.kind == "attribute" else c.text for c in (one, other))
    return normalize_value(words) == normalize_value(others)


def _owned(decision: Decision, owner: FactOwner) -> Decision:
    """Return the decision with its new fact, and the change that reports it, as the owner's."""
    if owner == OF_USER or decision.add is None:
        return decision
    fact, change = replace(decision.add.fact, only_in=owner[1]), decision.change
    if change is not None and change.fact is not None and change.fact.id == fact.id:
        change = replace(change, fact=replace(change.fact, only_in=owner[1]))
    return replace(decision, add=replace(decision.add, fact=fact, home=owner[0]), change=change)


class _LiveFacts:
    """
    The user's live facts, without their quotes, during one write: read once, then changed with each decision.

    Each kind is read when it is asked for: most of a large memory are sentences, which few claims ask for.
    """

    def __init__(self, view: ReadView) -> None:
        self._view = view
        self._rows: dict[FactKind, dict[str, FactRow]] = {}
        self._late: dict[str, None] = {}

    def of(self, *kinds: FactKind) -> list[FactRow]:
        """Return the facts of some kinds, one kind after the other."""
        for kind in kinds:
            if kind not in self._rows:
                found = self._view.at(None, None).facts(kind=kind, evidence=False)
                rows = self._rows[kind] = {row.fact.id: row for row in found}
                for fact_id in filter(rows.__contains__, self._late):
                    rows[fact_id] = rows.pop(fact_id)  # what came since the first reading is last, as if read then
        return [row for kind in kinds for row in self._rows[kind].values()]

    def follow(self, decision: Decision) -> None:
        """Change the facts as a decision that was carried out did."""
        for row in (*decision.updates, *([decision.add] if decision.add is not None else [])):
            rows = self._rows.get(row.fact.kind)
            if rows is None:
                if self._rows and row.fact.live and not row.doc:
                    self._late[row.fact.id] = None
            elif row.fact.live:
                rows[row.fact.id] = row
            else:
                rows.pop(row.fact.id, None)

    def forget(self) -> None:
        """Read the facts anew next time."""
        self._rows, self._late = {}, {}


_OF_ONESELF = expression(
    r"\W*(?:(?:and|but|so|also|honestly|well) )*(?:i['’]m|im|i am|i feel|i was|i(?:['’]ve| have) been|i(?!\b.*\b(?:her|him|it|its|his|them|she|he)\b)) ",
    re.IGNORECASE,
)


def _where_said(believed: _LiveFacts, claim: Claim) -> Claim:
    """
    Reword a user's sentence about themselves as one about the subject of the conversation.

    Unless it shares a word with what is believed about them: that it may confirm or end.  "I'm a little scared" stays theirs, and so
    does what they do without naming the subject: "I fill the bowl".
    """
    candidate, home = claim.candidate, claim.evidence.home
    if home in ("", SELF) or candidate.subject != SELF or (candidate.kind, candidate.op) != ("statement", "assert"):
        return claim
    if _OF_ONESELF.match(claim.evidence.quote):
        return claim
    words = thing_stems(candidate.text)
    facts = (row.fact for row in believed.of("attribute", "statement", "episode") if row.fact.subject == SELF)
    if any(words & thing_stems(f"{fact.text} {fact.value} {fact.key}") for fact in facts):
        return claim
    return replace(claim, candidate=replace(candidate, subject=home))


def _beside(
    view: WriteView, believed: _LiveFacts, claim: Claim, decision: Decision, addresses: Addresses | None
) -> list[FactRow]:
    """Return the live facts of the other kind that a decision may concern: sentences beside an attribute, and so on."""
    everywhere, candidate = view.at(None, None), claim.candidate
    if candidate.kind == "attribute":
        changed = [row.fact for row in decision.updates if not row.fact.live]
        changed += [decision.add.fact] if decision.add is not None else []
        words = frozenset[str]().union(*(thing_stems(f"{fact.text} {fact.value} {fact.key}") for fact in changed))
        rows = believed.of("statement") if changed else []
        near = [row for row in rows if words & thing_stems(row.fact.text)]
    else:
        words, there = thing_stems(candidate.text), addresses(candidate.text) if addresses else {}
        rows = believed.of("attribute") if decision.add is not None else []
        near = [
            row
            for row in rows
            if words & thing_stems(f"{row.fact.value} {row.fact.key}") or (row.fact.category, row.slot_key) in there
        ]
    full = [everywhere.fact(row.fact.id) for row in near if row.fact.subject == candidate.subject]
    return [row for row in full if row is not None and not merged_sources(everywhere, row)]


def _settle_beside(
    claim: Claim, decision: Decision, beside: Sequence[FactRow], hints: MatchHints, now_ms: int
) -> Decision:
    if decision.refused or not beside:
        return decision
    if claim.candidate.kind == "attribute":
        return with_restatements(claim, decision, beside, hints.addresses, now_ms)
    return settle_beside_attributes(claim, decision, beside, hints.addresses, now_ms)


def _where_covered(view: WriteView, claim: Claim, registry: Registry) -> Claim:
    """Return a claim at the address of the fact that says it already, and more: a child who is a daughter."""
    candidate = claim.candidate
    if candidate.op != "assert" or candidate.kind != "attribute" or candidate.source == BY_HAND_SOURCE:
        return claim
    for category, key in registry.covering(candidate.category, candidate.key):
        for row in map(as_active, view.all_facts_in(candidate.subject, category)):
            known = row.fact.live and row.fact.key == key
            if known and (candidate.value == key or names_same(row.fact.value, candidate.value)):
                there = replace(candidate, category=category, key=key, value=row.fact.value, text=row.fact.text)
                return replace(claim, candidate=there)
    kept = registry.categories.get(candidate.category)
    if kept is None or candidate.key in kept.keys or candidate.value.casefold() in ("false", "no"):
        return claim
    said = thing_stems(
        f"{candidate.key} {'' if candidate.value.casefold() == 'true' else candidate.value}".replace("_", " ")
    )
    for row in map(as_active, view.all_facts_in(candidate.subject, candidate.category)):
        fact = row.fact  # "motion_sick = true" of "has_condition = motion sickness"
        if (
            said
            and fact.live
            and fact.key in kept.keys
            and not _DENIES.match(fact.key)
            and thing_stems(fact.value) == said
        ):
            return replace(claim, candidate=replace(candidate, key=fact.key, value=fact.value, text=fact.text))
    return claim


_DENIES = expression(r"(?:not?|dislikes|avoids?|does_not|intolerant|allergic|never)_?")  # keys whose values are not had


def _covered(view: WriteView, decision: Decision, registry: Registry) -> list[FactRow]:
    """Return the live facts that a new one says as well."""
    new = decision.add.fact if decision.add is not None else None
    if new is None or not new.live or new.kind != "attribute":
        return []
    there = [(new.subject, category, key) for category, key in registry.covered(new.category, new.key)]
    there.append((f"{new.subject}?", new.category, new.key))  # of two with one name the rules could not tell which
    return [
        row
        for subject, category, key in there
        for row in map(as_active, view.all_facts_in(subject, category))
        if row.fact.live
        and row.fact.key == key
        and (row.fact.value == new.key or names_same(row.fact.value, new.value))
    ]


def _is_told(view: WriteView, believed: _LiveFacts, claim: Claim) -> bool:
    """Whether facts or episodes that are believed already hold all of a claim."""
    if claim.candidate.kind != "attribute" and _only_repeats_facts(view, believed, claim):
        return True
    if claim.candidate.kind == "statement" and _is_episode(believed, claim.candidate):
        return True
    return told_by_episode(view, claim, believed.of)


def _only_repeats_facts(view: WriteView, believed: _LiveFacts, claim: Claim) -> bool:
    """
    Whether a sentence says no more than what the same message made known as facts.

    An episode that does is no event; a statement that does only joins attributes: "is an engineer at Initech".
    """
    said, everywhere = claim.evidence, view.at(None, None)
    statement = claim.candidate.kind == "statement"
    if statement and (claim.candidate.op != "assert" or not asserts_plainly(claim.candidate.text)):
        return False
    rows = [row.fact for row in believed.of("attribute", *(() if statement else ("statement",)))]
    derived = view.at(said.home or SELF, said.conversation).derived_from(said.seq, said.seq)
    resting = {child for kind, child in derived if kind == "fact"}
    here = [fact for fact in rows if fact.id in resting]
    if statement and len(here) < 2:
        return False
    names = [fact.value for fact in rows if (fact.category, fact.key) == ("identity", "name") and fact.subject == SELF]
    people = [name for row in everywhere.subjects() for name in (row.subject, row.name or "")]
    told = [f"{fact.subject} {fact.category} {fact.key} {fact.value} {fact.text}".replace("_", " ") for fact in here]
    if not statement and any(_says_liking(claim.candidate.text, fact) for fact in here):
        return True
    return bool(here) and repeats_all(claim.candidate.text, [*told, *names, *people])


# "The user likes …", where words are not compared one by one: particles and endings stick to them.
_LIKING = expression(
    r"^(?:사용자|유저|이용자)(?:는|은|가|이)? (?:(?:정말|아주|매우|무척|진짜) )?(?P<ko>.+?)(?:을|를|은|는|이|가) (?:(?:정말|아주|매우|무척|진짜) )?(?:좋아|선호|즐겨? ?)(?:함|한다|한다고 함|한다고 말함|합니다|먹음|김)$"
    r"|^(?:ユーザー?|利用者)[はが](?P<ja>.+?)(?:が(?:とても|大)?好き(?:だ|である|です|だと言った)?|を好む)$"
    r"|^(?:der|die) nutzer(?:in)? (?:mag|liebt) (?:sehr )?(?P<de>.+)$"
    r"|^(?:al usuario|a la usuaria) le (?:gustan?|encantan?)(?: mucho)? (?:(?:el|la|los|las) )?(?P<es>.+)$"
)


def _says_liking(text: str, fact: Fact) -> bool:
    """Whether a sentence says no more than that the user likes what *fact* says that he likes."""
    said = _LIKING.search(normalize_value(text).rstrip("。"))
    liked = next(filter(None, said.groups()), "") if said else ""
    return (fact.subject, fact.key) == (SELF, "likes") and bool(liked) and normalize_value(fact.value) == liked.strip()


def _is_episode(believed: _LiveFacts, candidate: Candidate) -> bool:
    """Whether a sentence is an episode already, word for word, so that as a fact it would be there twice."""
    told = normalize_value(candidate.text)
    return candidate.op == "assert" and any(
        row.fact.subject == candidate.subject and normalize_value(row.fact.text) == told
        for row in believed.of("episode")
    )


def _has_ended(view: WriteView, candidate: Candidate) -> bool:
    """Whether a retraction names a value that has ended already, as the rules had read it, so that no other is meant."""
    if candidate.op != "retract" or not candidate.value:
        return False
    facts = [as_active(row).fact for row in view.all_facts_in(candidate.subject, candidate.category)]
    named = [
        fact.live
        for fact in facts
        if fact.key == candidate.key and normalize_value(fact.value) == normalize_value(candidate.value)
    ]
    return bool(named) and not any(named)


def with_opposites(claims: Iterable[Claim], registry: Registry) -> Iterator[Claim]:
    """
    Return each claim, after it the end of what it excludes: what is liked is not disliked any more.

    That end carries the modality ``negated``: where there is nothing to end, no rejection is recorded.
    """
    for claim in claims:
        yield claim
        candidate = claim.candidate
        if candidate.op == "assert" and candidate.kind == "attribute":
            better, worse = preferred(candidate.value) if candidate.key == "prefers" else (candidate.value, "")
            better = name_thing(better) or better if candidate.category == "schedule" else better
            excluded = [(*address, better) for address in registry.opposites(candidate.category, candidate.key)]
            if worse:
                excluded += [(candidate.category, candidate.key, gone) for gone in (f"{worse} over {better}", worse)]
            for category, key, value in excluded:
                other = replace(
                    candidate, category=category, key=key, value=value, op="retract", modality="negated", join=""
                )
                yield replace(claim, candidate=other)


def _as_meant(view: WriteView, claim: Claim) -> Claim:
    """Return a model's removal at the address of the fact that it means, where that is another than the one named."""
    candidate = claim.candidate
    if candidate.op != "retract" or candidate.modality == "negated" or candidate.source.startswith(RULES):
        return claim
    ever = [as_active(row) for row in view.all_facts_in(candidate.subject, candidate.category)]
    if any(retracts(claim, row) for row in ever):
        return claim  # it is there, or has ended already
    rows = [row for row in view.at(None, None).facts() if row.fact.subject == candidate.subject]
    for row in find_meant(candidate, rows):
        fact = row.fact
        named = replace(candidate, kind=fact.kind, category=fact.category, key=fact.key, value=fact.value)
        return replace(claim, candidate=replace(named, text=fact.text if fact.kind != "attribute" else candidate.text))
    return claim


def _with_corrections(view: WriteView, claim: Claim) -> Iterator[Claim]:
    """Return the claim, before it the end of each value of a set that its words put right."""
    candidate = claim.candidate
    if candidate.kind == "attribute" and candidate.join == "replace" and candidate.source != BY_HAND_SOURCE:
        rows = [as_active(row) for row in view.all_facts_in(candidate.subject, candidate.category)]
        live = [row for row in rows if row.fact.live]
        for row in put_right(claim, claim.evidence.quote, live):
            wrong = replace(candidate, value=row.fact.value, op="retract", modality="negated", join="")
            yield replace(claim, candidate=wrong)
    yield from left_behind(view, claim)
    yield from changed_by(view, claim)
    yield beside_at_place(view, claim)


def at_known_address(view: WriteView, claim: Claim, registry: Registry) -> Claim:
    """Return the claim at the declared address that it means, or at that of a fact whose key is spelled otherwise."""
    candidate = claim.candidate
    if candidate.kind != "attribute":
        return claim
    moved = registry.known_address(candidate)
    known = registry.categories.get(moved.category)
    if moved.key and not (known and moved.key in known.keys):
        rows = view.all_facts_in(moved.subject, moved.category)
        keys = {row.fact.key for row in rows if row.fact.kind == "attribute"}
        if moved.key not in keys:
            moved = replace(moved, key=spelled_as(moved, keys))
    return claim if moved is candidate else replace(claim, candidate=moved)


def write(view: WriteView, claim: Claim, decision: Decision, known: Sequence[FactRow], now_ms: int) -> None:
    """Carry out one decision about *claim*; *known* are the rows that it was made from, archived ones as believed."""
    before = {row.fact.id: row for row in known}
    for row in decision.updates:
        old = before[row.fact.id]
        widened = row.unscoped and not old.unscoped
        hidden = old.fact.live and not old.doc
        if not row.fact.live or widened:
            unindex_fact(view, row)
        view.update_fact(index_fact(view, row, now_ms) if widened or hidden else row)
        if row.fact.ended_because == "retracted" and claim.candidate.op == "retract":
            view.add_derivations([_edge(row.fact.id, claim, "end")])
    if decision.add is not None:
        view.add_fact(index_fact(view, decision.add, now_ms))
        view.add_derivations([_edge(decision.add.fact.id, claim)])
    if decision.support:
        view.add_evidence(claim.candidate.subject, decision.support, claim.evidence.home, claim.evidence, now_ms)
        view.add_derivations([_edge(decision.support, claim)])
        user = view.user()  # what a fact rests on is part of what search knows of it
        view.save_user(replace(user, version=user.version + 1), now_ms)


def _match(
    view: WriteView, live: _LiveFacts, claim: Claim, hints: MatchHints, now_ms: int
) -> tuple[ActiveSentences, SentenceMatch]:
    """Match the claim with the sentences; a memory that it contradicts in part is split first."""
    while True:
        believed = _active_sentences(view, claim.candidate.subject)
        meeting = compare_with_active(
            claim,
            believed,
            _cosines(view, claim, believed, hints.vectors),
            merge=hints.vectors.thresholds.merge if hints.vectors else NEVER_NEAR,
            addresses=hints.addresses,
        )
        if not meeting.parted:
            again = None if meeting.again is None else view.with_quotes(meeting.again)
            return believed, replace(meeting, again=again, ends=tuple(map(view.with_quotes, meeting.ends)))
        for whole in map(view.with_quotes, meeting.parted):
            split_fact(view, whole, now_ms)
            live.forget()


def _active_sentences(view: WriteView, subject: str) -> list[ActiveSentence]:
    """Return the sentences about *subject* with the fact that holds each, without quotes; a merged one comes with its whole."""
    rows = {row.fact.id: as_active(row) for row in view.at(None, None).statements(subject, evidence=False)}
    found = []
    for row in rows.values():
        stands = rows.get(row.fact.superseded_by or "") if row.fact.ended_because == MERGED else row
        if stands is not None and stands.fact.live:
            found.append(ActiveSentence(row.fact.text, stands, merged=stands is not row))
    return found


def _cosines(view: WriteView, claim: Claim, believed: ActiveSentences, new: SentenceVectors | None) -> dict[str, float]:
    """How near the claim's sentence is to each believed one that has a vector of the same embedder."""
    vector = new.vectors.get(claim.candidate.text) if new is not None else None
    if new is None or vector is None:
        return {}
    stored = view.vectors(Partition(claim.candidate.subject, "fact"), new.embedder)
    rows = dequantize([(scale, data) for _, scale, data in stored], len(vector))
    by_doc = dict(zip([doc for doc, _, _ in stored], (rows @ vector).tolist(), strict=True))
    return {row.fact.id: by_doc[row.doc] for _, row, merged in believed if row.doc in by_doc and not merged}


def _edge(fact_id: str, claim: Claim, kind: str = "fact") -> Derivation:
    """Return the effect of the message: it stated the fact, or (``end``) ended it."""
    said = claim.evidence
    return Derivation(kind, fact_id, "message", said.home, said.conversation, said.seq, said.seq)


@dataclass(frozen=True, slots=True)
class Rereading:
    """
    A new reading of messages ``first`` to ``last`` of the view's conversation, by ``source``.

    ``begin`` is the first message of the whole rebuild: a fact that rests on words before that stays.
    ``kinds`` are the kinds of facts that this reading is about.  With ``ask``, what is new waits for the user.
    """

    first: int
    last: int
    begin: int
    kinds: tuple[FactKind, ...]
    source: str
    claims: Sequence[Claim]
    refused: Sequence[tuple[Candidate, str]]
    hints: MatchHints = WORDS_ALONE
    ask: bool = False


def facts_resting_on(view: ReadView, first: int, last: int, kinds: Sequence[FactKind]) -> list[FactRow]:
    """Return the facts of these kinds that rest on a range of the view's conversation, live and past, by id."""
    everybody = view.at(None, None)
    found = [everybody.fact(child) for kind, child in view.derived_from(first, last) if kind == "fact"]
    return [row for row in found if row is not None and row.fact.kind in kinds]


def relearn(
    view: WriteView, found: Rereading, kept: set[str], registry: Registry, *, new_id: Callable[[], str], now_ms: int
) -> tuple[Side, Side, list[FactChange]]:
    """
    Let *found* take the place of what was read in its range before.

    Args:
        view: the conversation, in one transaction.
        found: the new reading.
        kept: ids of facts that this rebuild found again in earlier ranges; those found here are added.
        registry: how addresses join.
        new_id: makes an id for a new fact.
        now_ms: when this is learned.

    Returns:
        The old rows of the range, the new rows, and the changes.
    """
    view = view.of_owner(view.fact_owner())
    everybody, before = view.at(None, None), facts_resting_on(view, found.first, found.last, found.kinds)
    denied = [row for row in before if row.fact.ended_because == "never_true"]
    claims = [at_known_address(view, claim, registry) for claim in found.claims]
    claims = [claim for claim in claims if not any(_was_denied(row, claim) for row in denied)]
    again = [row for row in before if any(states_claim(row, claim) for claim in claims)]
    kept.update(row.fact.id for row in again)
    doomed = [row for row in before if row.fact.id not in kept and _may_go(view, row, found)]
    ends = _retractions(view, found.first, found.last) if "attribute" in found.kinds else ()
    undo_retractions(
        view, range(found.first, found.last + 1), now_ms, keep=_repeated_retractions(everybody, ends, claims)
    )
    for row in doomed:
        withdraw_fact(everybody, row.fact.id, now_ms)
    for row in sorted(again, key=lambda row: row.fact.valid_from):
        if row.fact.ended_because == REBUILT:
            reinstate(everybody, row, now_ms)
    sources = tuple((row.fact.id, row.fact.source) for row in again if row.fact.source != found.source)
    _set_sources(everybody, [(fact_id, found.source) for fact_id, _ in sources])
    if "attribute" in found.kinds:
        _remove_undecided(view, found.first, found.last)
    claims = [
        claim for claim in claims if not (claim.candidate.op == "retract" and _already_ended(view, claim, now_ms))
    ]
    changes = learn(
        view, claims, found.refused, registry, new_id=new_id, now_ms=now_ms, hints=found.hints, ask=found.ask
    )
    known = {row.fact.id for row in before if row.fact.ended_because != REBUILT}
    now = [
        row for row in facts_resting_on(view, found.first, found.last, found.kinds) if row.fact.ended_because != REBUILT
    ]
    was = Side(tuple(row.fact.id for row in doomed), sources, ends)
    became = Side(
        tuple(row.fact.id for row in now if row.fact.id not in known),
        tuple((fact_id, found.source) for fact_id, _ in sources),
        _retractions(view, found.first, found.last) if "attribute" in found.kinds else (),
    )
    return was, became, changes


def _remove_undecided(view: WriteView, first: int, last: int) -> None:
    """Delete the rejected candidates of a range, but for those that the user decided about."""
    decided = [one for one in view.rejected(limit=2**62) if one.reason == DISMISSED or one.reason.startswith(ACCEPTED)]
    view.remove_rejected(first, last)
    for one in decided:
        if first <= one.candidate.seq <= last:
            view.add_rejected(one.candidate, one.reason, to_ms(one.at) if one.at else 0)


def undo_relearn(view: WriteView, first: int, last: int, leaves: Side, comes: Side, now_ms: int) -> None:
    """Remove *leaves* from a range of the view's conversation, and restore *comes*."""
    everybody = view.at(None, None)
    if leaves.ends or comes.ends:
        undo_retractions(view, range(first, last + 1), now_ms, keep=comes.ends)
    for fact_id in leaves.ids:
        row = everybody.fact(fact_id)
        if row is not None and row.fact.ended_because not in NEVER_HELD and _rests_only_here(view, row, first, last):
            withdraw_fact(everybody, fact_id, now_ms)
    rows = [row for row in map(everybody.fact, comes.ids) if row is not None and row.fact.ended_because == REBUILT]
    for row in sorted(rows, key=lambda row: row.fact.valid_from):
        reinstate(everybody, row, now_ms)
    _set_sources(everybody, comes.sources)
    for fact_id, seq in comes.ends:
        _retract_again(view, fact_id, seq, now_ms)


def withdraw_fact(view: WriteView, fact_id: str, now_ms: int) -> None:
    """End the fact as never true, as a later reading did not find it; what it had replaced takes over its end."""
    row = view.fact(fact_id)
    if row is None:
        return
    older = view.replaced_by(row.fact.subject, fact_id)
    fact = replace(row.fact, valid_to=row.fact.valid_from, ended_because=REBUILT, superseded_by=None)
    unindex_fact(view, row)
    view.update_fact(replace(row, fact=fact, ended_at=now_ms, doc=0))
    inherit_end(view, row, older, now_ms, revive=True)


def _was_denied(row: FactRow, claim: Claim) -> bool:
    """Whether the claim repeats, from the same message, what a user said was never true."""
    said = claim.evidence
    here = any((e.home, e.conversation, e.seq) == (said.home, said.conversation, said.seq) for e in row.fact.evidence)
    return here and states_claim(row, claim)


def _may_go(view: WriteView, row: FactRow, found: Rereading) -> bool:
    """Whether a fact that was not found again ends; what was merged, and what it was merged into, stays as it is."""
    if row.fact.ended_because in NEVER_HELD or merged_sources(view, row):
        return False
    return _rests_only_here(view, row, found.begin, found.last)


def _rests_only_here(view: ReadView, row: FactRow, first: int, last: int) -> bool:
    """Whether a fact rests on this range of the view's conversation alone."""
    home, name = view.scope.subject or SELF, view.scope.conversation
    return all((e.home, e.conversation) == (home, name) and first <= e.seq <= last for e in row.fact.evidence)


def _retractions(view: ReadView, first: int, last: int) -> tuple[tuple[str, int], ...]:
    """The facts that messages of a range ended, with the message."""
    here = [edge for edge in view.endings() if edge.conversation == view.scope.conversation]
    return tuple((edge.child, edge.start_seq) for edge in here if first <= edge.start_seq <= last)


def _repeated_retractions(
    everybody: ReadView, ends: Sequence[tuple[str, int]], claims: Sequence[Claim]
) -> list[tuple[str, int]]:
    """The retractions that the new reading finds in the same message."""
    kept = []
    for fact_id, seq in ends:
        row = everybody.fact(fact_id)
        said = [claim for claim in claims if claim.candidate.op == "retract" and claim.evidence.seq == seq]
        if row is not None and any(retracts(claim, row) for claim in said):
            kept.append((fact_id, seq))
    return kept


def _already_ended(view: WriteView, claim: Claim, now_ms: int) -> bool:
    """
    Whether a retraction has done its work already, or does it here: in history, where a later word holds the address.
    """
    said = claim.evidence
    subject, category = claim.candidate.subject, claim.candidate.category
    rows = [row for row in view.all_facts_in(subject, category) if retracts(claim, row)]
    if any(row.fact.live for row in rows):
        return False
    done = (view.scope.conversation, said.seq)
    ended = {edge.child for edge in view.endings() if (edge.conversation, edge.start_seq) == done}
    if any(row.fact.id in ended for row in rows):
        return True
    everybody, past = view.at(None, None), []
    for row in rows:
        then = everybody.fact(row.fact.superseded_by) if row.fact.superseded_by else None
        first = then.fact.evidence[0] if then is not None else said
        if (to_ms(first.at) if first.at else 0, first.seq) > (claim.said_at_ms, said.seq):
            past.append(row)
    for row in past:
        _retract_again(view, row.fact.id, said.seq, now_ms)
    return bool(past)


def _set_sources(view: WriteView, sources: Sequence[tuple[str, str]]) -> None:
    for fact_id, source in sources:
        row = view.fact(fact_id)
        if row is not None and row.fact.source != source:
            view.update_fact(replace(row, fact=replace(row.fact, source=source)))


def _retract_again(view: WriteView, fact_id: str, seq: int, now_ms: int) -> None:
    """Retract a fact again, as message *seq* of the view's conversation had done."""
    everybody, home, name = view.at(None, None), view.scope.subject or SELF, view.scope.conversation or ""
    row, said = everybody.fact(fact_id), view.messages(start_seq=seq, end_seq=seq)
    if row is None or not said or (not row.fact.live and row.fact.ended_because != "replaced"):
        return
    at_ms = to_ms(said[0].at) if said[0].at else now_ms
    unindex_fact(everybody, row)
    until = max(from_ms(at_ms), row.fact.valid_from)
    fact = replace(row.fact, valid_to=until, ended_because="retracted", superseded_by=None)
    everybody.update_fact(replace(row, fact=fact, ended_at=now_ms, doc=0))
    view.add_derivations([Derivation("end", fact_id, "message", home, name, seq, seq)])
