"""
New knowledge meets old: who wins, what joins, what becomes history.

Facts are addressed, not matched: a claim names (subject, category, key), the registry says how many
live facts that address may hold, and similarity has no say.  Later evidence wins by the order in
which things were *said*, not by which worker finished first; a late claim becomes history.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from ..clock import from_ms, to_ms
from ..scope import SELF
from ..store import FactRow
from ..text import dataclass, expression
from ..text.sentences import describes_only_past
from ..text.terms import terms
from ..types import BY_HAND_CONVERSATION, Candidate, Evidence, Fact, FactChange
from .compare import (
    NUMBERS,
    OPPOSITES,
    Sense,
    all_words,
    comparable,
    disagreement,
    in_first_person,
    is_dated_result,
    marks_in_group,
    name_thing,
    preferred,
    renews,
    restates,
    same_thing,
    same_words,
    sense,
    specifies,
    thing_stems,
    whole_dose,
)
from .moves import changes_part, chooses_other, is_for_other_place, is_put_elsewhere, says_moved, was_said_with
from .registry import Registry, Slot, normalize_value

ARCHIVED = "archived"
MERGED, UNMERGED, REBUILT = "merged", "unmerged", "rebuilt"
NEVER_HELD = ("never_true", MERGED, UNMERGED, REBUILT)
"""Why facts ended as if never held: a user said so, another row says it, or a later reading did not find them."""

_VERSIONED = expression(r"(.*[^\W\d_].*?) v?\d+(?:\.\d+)*")


@dataclass(frozen=True, slots=True)
class Claim:
    """A grounded candidate: its evidence, and the moment and place in which it was said."""

    candidate: Candidate
    evidence: Evidence
    said_at_ms: int
    unscoped: bool


@dataclass(frozen=True, slots=True)
class Decision:
    """
    The rows to write for one claim.

    ``add`` is a new row (live or already history), ``updates`` are existing rows with new columns, ``support`` names
    the existing fact that the evidence joins; ``refused`` is set instead when nothing is to be believed.
    """

    change: FactChange | None = None
    add: FactRow | None = None
    updates: tuple[FactRow, ...] = ()
    support: str = ""
    refused: str = ""


def decide(
    claim: Claim, live: Sequence[FactRow], past: Sequence[FactRow], registry: Registry, *, fact_id: str, now_ms: int
) -> Decision:
    """
    Decide how one claim changes the facts of its subject and category.

    Args:
        claim: what was said.
        live: the live facts of the claim's subject and category.
        past: those that no longer hold.
        registry: how addresses join.
        fact_id: the id of a new fact, should there be one.
        now_ms: when we learn it.
    """
    refusal = registry.refusal(claim.candidate) if claim.candidate.kind == "attribute" else ""
    if refusal:
        return Decision(refused=refusal)
    if registry.denies_one_of(claim.candidate):  # "never been vegan" says nothing against vegetarian
        claim = replace(claim, candidate=replace(claim.candidate, op="retract", value=""))
    if claim.candidate.op == "retract":
        return _retract(claim, live, now_ms)
    slot = _slot(claim.candidate, registry)
    if registry.holds_doses(claim.candidate.category, claim.candidate.key):
        claim = _with_whole_dose(
            claim, [row for row in live if (row.slot_key, row.slot_value) == (slot.key, slot.value)]
        )
    if any(rests_on(row, claim.evidence) and _says_claim(row, claim.candidate) for row in (*live, *past)):
        return Decision()
    past = [row for row in past if row.fact.ended_because not in NEVER_HELD]
    holder = next((row for row in live if (row.slot_key, row.slot_value) == (slot.key, slot.value)), None)
    claim = with_end(claim, registry)
    new = _row(claim, slot, fact_id, now_ms)
    if holder is None and claim.candidate.kind == "statement" and describes_only_past(claim.candidate.text):
        ended = close_fact(new, new.fact.valid_from, now_ms, "expired", None)
        return Decision(FactChange("new", ended.fact), add=ended)
    if holder is None and slot.cardinality == "multi" and _names_thing(claim):
        same = _same_with_more(claim, new, live, now_ms)
        if same is not None:
            return same
    if holder is None:
        return _into_empty_slot(claim, new, slot, live, past, now_ms)
    if _says_claim(holder, claim.candidate):
        return confirm(claim, holder)
    dated = is_dated_result(claim.candidate, claim.evidence, holder.fact)
    mine, held = new.fact.valid_from, holder.fact.valid_from
    if mine > held if dated and mine.date() != held.date() else is_later(claim, holder):
        new = _begin_later(new, holder, claim.said_at_ms) if not dated else _begin_at(new, max(mine, held))
        ended = close_fact(holder, max(held, new.fact.valid_from), now_ms, "replaced", fact_id)
        return Decision(FactChange("replaced", new.fact, ended.fact), add=new, updates=(ended,))
    return add_late(
        claim, new, [holder, *(row for row in past if (row.slot_key, row.slot_value) == (slot.key, slot.value))], now_ms
    )


# What can be in a place or since a time and is still the one thing: "a library in Faro" after "library".
_IN_PLACES = frozenset("pets project possession home trip hobby family health work education".split())
_ANOTHER = expression(
    r"\b(?:also|another|other|too|second|third|both|as well|otr[oa]s?|también|tambien|segund[oa]|ander\w*|auch|noch ein\w*|zweit\w*|autre|aussi|outr[oa]|também"
    r"|altr[oa]|anche)\b|另|也|还有|또|도\s|も",
    re.IGNORECASE,
)


def _names_thing(claim: Claim) -> bool:
    """Whether a claim states a value of words."""
    candidate = claim.candidate
    return candidate.kind == "attribute" and candidate.value.casefold() not in ("true", "false")


def _same_with_more(claim: Claim, new: FactRow, live: Sequence[FactRow], now_ms: int) -> Decision | None:
    """
    Decide for a value of a set that names the same thing as another one, with more or less about it.

    The one that says more stays: "dog (chihuahua)" takes the place of "dog", and "dog" confirms it.
    """
    candidate = claim.candidate
    if _ANOTHER.search(claim.evidence.quote):
        return None
    placed = candidate.category in _IN_PLACES
    here = [
        row
        for row in live
        if row.fact.kind == "attribute" and row.slot_key == new.slot_key and row.unscoped == new.unscoped
    ]
    fuller = [row for row in here if specifies(row.fact.value, candidate.value, placed=placed)]
    if len(fuller) == 1:
        return confirm(claim, fuller[0])
    less = [row for row in here if renews(candidate, row.fact.value, placed=placed) and is_later(claim, row)]
    less = less or [row for row in here if _reads_more(claim, row)]
    if not less or fuller:
        return None
    ended = tuple(
        close_fact(row, max(row.fact.valid_from, new.fact.valid_from), now_ms, "replaced", new.fact.id) for row in less
    )
    return Decision(FactChange("replaced", new.fact, ended[0].fact), add=new, updates=ended)


def _reads_more(claim: Claim, row: FactRow) -> bool:
    """Whether a model reads more in words of which the rules read a part: "working nights" where they read "nights"."""
    mine, candidate = claim.evidence, claim.candidate
    if candidate.source.startswith("rules") or not row.fact.source.startswith("rules ") or len(row.fact.evidence) != 1:
        return False
    theirs = row.fact.evidence[0]
    same = (theirs.home, theirs.conversation, theirs.seq) == (mine.home, mine.conversation, mine.seq)
    meets = theirs.start < mine.start + len(mine.quote) and mine.start < theirs.start + len(theirs.quote)
    part, whole = thing_stems(row.fact.value), thing_stems(candidate.value)
    more = bool(part) and part <= whole and len(candidate.value) > len(row.fact.value)
    return same and meets and more and not _LISTS.search(candidate.value)


_LISTS = expression(r"[,;/&]|\b(?:and|or|y|e|o|und|oder|et|ou)\b", re.IGNORECASE)  # several values in one


def with_end(claim: Claim, registry: Registry) -> Claim:
    """Return a claim of what passes with an end: the one that was said, else that of its category or key."""
    candidate = claim.candidate
    until = candidate.valid_to_ms or registry.end_of(candidate, claim.evidence.quote, claim.said_at_ms)
    if until == candidate.valid_to_ms:
        return claim
    return replace(claim, candidate=replace(candidate, valid_to_ms=until))


def _with_whole_dose(claim: Claim, live: Sequence[FactRow]) -> Claim:
    """Return a claim of a part of a dose with the rest of the dose that it changes."""
    candidate = claim.candidate
    old = next((row.fact.value for row in live if is_later(claim, row)), "")
    value = whole_dose(candidate.value, old) if old else candidate.value
    text = candidate.text.replace(candidate.value, value) if value != candidate.value else candidate.text
    return replace(claim, candidate=replace(candidate, value=value, text=text))


def states_claim(row: FactRow, claim: Claim) -> bool:
    """Whether a fact, live or past, is what *claim* says, wherever it was said."""
    candidate = claim.candidate
    if (candidate.kind, candidate.subject) != (row.fact.kind, row.fact.subject):
        return False
    if candidate.kind != "attribute" and rests_on(row, claim.evidence) and same_words(candidate.text, row.fact.text):
        return True
    return candidate.category == row.fact.category and _says_claim(row, candidate)


def retracts(claim: Claim, row: FactRow) -> bool:
    """Whether a retraction is about a fact of its subject and category, and was said later."""
    return _is_meant(row, claim.candidate) and is_later(claim, row)


def as_active(row: FactRow) -> FactRow:
    """Return an archived fact as if it was live: for learning it counts as believed.  Others as they are."""
    if row.fact.ended_because != ARCHIVED:
        return row
    return replace(row, fact=replace(row.fact, valid_to=None, ended_because=""), ended_at=None)


def _slot(candidate: Candidate, registry: Registry) -> Slot:
    if candidate.kind == "attribute":
        return registry.slot(candidate.category, candidate.key, candidate.value, candidate.join)
    return Slot("multi", candidate.key, normalize_value(candidate.text))


def _row(claim: Claim, slot: Slot, fact_id: str, now_ms: int) -> FactRow:
    candidate = claim.candidate
    fact = Fact(
        id=fact_id,
        kind=candidate.kind,
        subject=candidate.subject,
        category=candidate.category,
        key=candidate.key,
        value=candidate.value,
        text=candidate.text,
        confidence=candidate.confidence,
        cardinality=slot.cardinality,
        lifetime=candidate.lifetime,
        valid_from=from_ms(claim.said_at_ms if candidate.valid_from_ms is None else candidate.valid_from_ms),
        valid_to=None,
        recorded_at=from_ms(now_ms),
        superseded_by=None,
        evidence=(claim.evidence,),
        strength=1.0,
        last_used_at=None,
        uses=0,
        source=candidate.source,
        importance=candidate.importance,
        label=candidate.label,
        until=None if candidate.valid_to_ms is None else from_ms(candidate.valid_to_ms),
    )
    return FactRow(
        fact=fact,
        slot_key=slot.key,
        slot_value=slot.value,
        unscoped=claim.unscoped,
        stated_at=claim.said_at_ms,
        stated_seq=claim.evidence.seq,
        doc=0,
        expires_at=candidate.valid_to_ms,
    )


def _begin_later(new: FactRow, holder: FactRow, said_at_ms: int) -> FactRow:
    """
    Return *new* so that *holder* held for a while: "we moved last week", after a home stated on Monday.

    What was last said before counts as true when it was said; the new value then begins when it was told.
    """
    told = from_ms(said_at_ms)
    if new.fact.valid_from > from_ms(holder.stated_at) or told <= holder.fact.valid_from:
        return new
    return _begin_at(new, told)


def _begin_at(row: FactRow, at: datetime) -> FactRow:
    return replace(row, fact=replace(row.fact, valid_from=at))


def _into_empty_slot(
    claim: Claim, new: FactRow, slot: Slot, live: Sequence[FactRow], past: Sequence[FactRow], now_ms: int
) -> Decision:
    """Decide for an address without a live fact; a claim older than a retraction there goes to history."""
    ended = [row for row in past if (row.slot_key, row.slot_value) == (slot.key, slot.value) and row.fact.valid_to]
    after = [row for row in ended if row.fact.valid_to and to_ms(row.fact.valid_to) > claim.said_at_ms]
    if after:
        return add_late(claim, new, after, now_ms)
    joins = slot.cardinality == "multi" and any(row.slot_key == slot.key for row in live)
    return Decision(FactChange("joined" if joins else "new", new.fact), add=new)


def confirm(claim: Claim, holder: FactRow) -> Decision:
    """Add one more quote to *holder*, which says the same as the claim."""
    newer = is_later(claim, holder)
    until = claim.candidate.valid_to_ms if newer else holder.expires_at
    fact = replace(
        holder.fact,
        confidence=max(holder.fact.confidence, claim.candidate.confidence),
        valid_from=min(holder.fact.valid_from, from_ms(claim.said_at_ms)),
        evidence=tuple(sorted((*holder.fact.evidence, claim.evidence), key=_order)),
        conversation="",
        importance=max(holder.fact.importance, claim.candidate.importance),
        label=claim.candidate.label or holder.fact.label,
        until=None if until is None else from_ms(until),
    )
    row = replace(
        holder,
        fact=fact,
        unscoped=holder.unscoped or claim.unscoped,
        stated_at=claim.said_at_ms if newer else holder.stated_at,
        stated_seq=claim.evidence.seq if newer else holder.stated_seq,
        expires_at=until,
    )
    return Decision(FactChange("confirmed", fact), updates=(row,), support=fact.id)


def add_late(claim: Claim, new: FactRow, others: Sequence[FactRow], now_ms: int) -> Decision:
    """Add an older statement that arrives late: it held until the next one began, and is history."""
    begin = new.fact.valid_from
    held = next((row for row in others if row.fact.valid_to and row.fact.valid_from <= begin < row.fact.valid_to), None)
    if held is not None and _says_claim(held, claim.candidate):
        return Decision(support=held.fact.id)
    following = [row for row in others if row.fact.valid_from > begin]
    after = min(following, key=_begin) if following else max(others, key=_begin)
    until = max(begin, held.fact.valid_to if held and held.fact.valid_to else after.fact.valid_from)
    past = close_fact(new, until, now_ms, "replaced", after.fact.id)
    updates: tuple[FactRow, ...] = ()
    if held is not None:
        inherited = held.fact.ended_because, held.fact.superseded_by
        past = close_fact(new, until, now_ms, *inherited)
        updates = (close_fact(held, begin, now_ms, "replaced", new.fact.id),)
    change = FactChange("replaced", after.fact, past.fact) if after.fact.live else None
    return Decision(change, add=past, updates=updates)


def _begin(row: FactRow) -> datetime:
    return row.fact.valid_from


def _retract(claim: Claim, live: Sequence[FactRow], now_ms: int) -> Decision:
    candidate = claim.candidate
    hit = [row for row in live if retracts(claim, row)]
    if not hit:
        return Decision(refused="nothing-to-end: no such fact is believed")
    told = from_ms(claim.said_at_ms)
    at = told if candidate.valid_from_ms is None else from_ms(candidate.valid_from_ms)
    rows = tuple(
        close_fact(row, max(at if at > row.fact.valid_from else told, row.fact.valid_from), now_ms, "retracted", None)
        for row in hit
    )
    return Decision(FactChange("retracted", rows[0].fact, rows[0].fact), updates=rows)


def _is_meant(row: FactRow, candidate: Candidate) -> bool:
    """Whether a retraction means this fact: a statement by its words, an attribute by its address."""
    if candidate.kind != "attribute":
        return row.fact.kind == candidate.kind and normalize_value(row.fact.text) == normalize_value(candidate.text)
    if candidate.key and row.fact.key != candidate.key:
        return False
    if not candidate.value or normalize_value(row.fact.value) == normalize_value(candidate.value):
        return True
    if candidate.modality == "negated" and row.fact.kind == "attribute":
        return _excluded(row, candidate.value)
    return _names_without_version(row, candidate)


def _excluded(row: FactRow, value: str) -> bool:
    """Whether a fact is about the thing that cannot hold there any more: coffee, of "coffee every morning"."""
    known = row.fact.value
    if row.fact.key == "prefers":
        if preferred(value)[1]:
            return all(map(same_thing, preferred(known), preferred(value)))
        known = preferred(known)[0]
    elif row.fact.category == "schedule":
        known = name_thing(known)
    return same_thing(known, value)


_CONTRAST = expression(
    r"\b(?:not|never|instead|meant|mean|rather|no longer|wrong|mistake|correction|actually|nicht|sondern|statt|pas|plut\u00f4t|sino|"
    r"en vez|me equivoqu\u00e9|perd\u00f3n)\b|n['\u2019]t\b|\u4e0d\u662f|\u800c\u662f|\u8bf4\u9519|\u8aaa\u932f|\uc544\ub2c8|\ub9d0\uace0",
    re.IGNORECASE,
)
_ALSO = expression(
    r"\b(?:also|too|as well|besides|another|additionally|both|auch|zus\u00e4tzlich|tambi\u00e9n|adem\u00e1s|aussi)\b|[\u4e5f\u8fd8\u9084]|\ub3c4\s",
    re.IGNORECASE,
)


def put_right(claim: Claim, said: str, live: Sequence[FactRow]) -> list[FactRow]:
    """
    Return the values of a set that a ``set`` by a model replaces: those that *said*, a contrast, names beside the new one.

    A second value that was only told later replaces nothing: "allergic to soy" after "allergic to eggs".  A project has one deadline.
    """
    candidate, words = claim.candidate, normalize_value(said)
    one = candidate.subject != SELF and (candidate.category, candidate.key) == ("project", "deadline")
    named = normalize_value(candidate.value) in words or thing_stems(candidate.value) <= thing_stems(said)
    if candidate.join != "replace" or candidate.op != "assert" or _ALSO.search(said):
        return []
    if not one and not (named and _CONTRAST.search(said)):
        return []
    return [
        row
        for row in live
        if row.fact.key == candidate.key
        and row.fact.cardinality == "multi"
        and is_later(claim, row)
        and not same_thing(row.fact.value, candidate.value)
        and (one or normalize_value(row.fact.value) in words or thing_stems(row.fact.value) <= thing_stems(said))
    ]


def find_meant(candidate: Candidate, rows: Sequence[FactRow]) -> list[FactRow]:
    """Return what a removal means that names no address as it is believed: the one fact about that thing, if there is one."""
    wanted = thing_stems(candidate.value or candidate.text)
    if not any(word.isalpha() and len(word) > 2 for word in wanted):
        return []  # "500 mg" is the dose of many a medicine
    rows = [
        row
        for row in rows
        if not any(word[0].isdecimal() for word in all_words(row.fact.value)) or row.fact.key == candidate.key
    ]
    there = [row for row in rows if row.fact.category == candidate.category]
    for among, most in ((there, 0), (rows, 0), (there, 1), (rows, 1)):
        found = [row for row in among if _is_about(row, wanted, most)]
        if found:
            return found if len(found) == 1 else []
    return []


def _is_about(row: FactRow, wanted: frozenset[str], most: int) -> bool:
    """Whether a fact is about the wanted words, give or take so many words on either side."""
    fact = row.fact
    if fact.kind == "episode":
        return False
    own = thing_stems(fact.value if fact.kind == "attribute" else fact.text)
    if len(own & wanted) < max(1, most + 1 if fact.kind == "statement" else 1):
        return False
    return len(own - wanted) <= most and len(wanted - own) <= most


def close_fact(row: FactRow, valid_to: datetime, now_ms: int, because: str, successor: str | None) -> FactRow:
    """Return the row as history from *valid_to* on."""
    fact = replace(row.fact, valid_to=valid_to, superseded_by=successor, ended_because=because)
    return replace(row, fact=fact, ended_at=now_ms)


def _says_claim(row: FactRow, candidate: Candidate) -> bool:
    if candidate.kind != "attribute":
        return normalize_value(row.fact.text) == normalize_value(candidate.text)
    return row.fact.key == candidate.key and (
        normalize_value(row.fact.value) == normalize_value(candidate.value) or _names_without_version(row, candidate)
    )


def _names_without_version(row: FactRow, candidate: Candidate) -> bool:
    """Whether the claim names without its version what *row* holds with one: "SQLite" after "SQLite 3.39"."""
    versioned = _VERSIONED.fullmatch(row.fact.value)
    return versioned is not None and normalize_value(versioned[1]) == normalize_value(candidate.value)


def rests_on(row: FactRow, evidence: Evidence) -> bool:
    """Whether these very words are a quote of the fact already."""
    here = (evidence.home, evidence.conversation, evidence.seq, evidence.start)
    return any((e.home, e.conversation, e.seq, e.start) == here for e in row.fact.evidence)


def is_later(claim: Claim, row: FactRow) -> bool:
    """Whether the claim was said after the fact's latest statement: by number in one conversation, by time elsewhere and by hand."""
    mine = claim.evidence
    here = [e.seq for e in row.fact.evidence if (e.home, e.conversation) == (mine.home, mine.conversation)]
    if here and row.stated_seq in here and mine.conversation != BY_HAND_CONVERSATION:
        return (mine.seq, mine.start) >= (row.stated_seq, 0)
    return (claim.said_at_ms, mine.seq) >= (row.stated_at, row.stated_seq)


def _order(evidence: Evidence) -> tuple[int, str, int, int]:
    return (to_ms(evidence.at) if evidence.at else 0, evidence.conversation, evidence.seq, evidence.start)


Address = tuple[str, str]
"""(category, slot key) of an address that holds one value."""
Addresses = Callable[[str], Mapping[Address, str]]
"""What the rules read in a sentence, where it is of the kind that holds one value at a time."""


class ActiveSentence(NamedTuple):
    """A believed sentence and the fact that holds it: its own, or the one it was merged into."""

    text: str
    stands: FactRow
    merged: bool = False


ActiveSentences = Sequence[ActiveSentence]
NEVER_NEAR = 2.0  # a cosine that no two sentences have

# "I switched from A to B" ends "I use A"; moving house does not end "I love Lisbon".
_SWITCH = expression(
    r"\b(?P<verb>switch(?:ed)?|chang(?:e|ed)|migrated|moved|went|converted|relocated)\b[^.;!?]{0,40}?"
    r"\bfrom\s+(?P<old>[^.;!?]{1,60}?)\s+to\s+(?P<new>[^.;!?]{1,60})",
    re.IGNORECASE,
)
_USES = frozenset("use uses using run runs drive drives drink drinks eat eats take takes play plays wear wears".split())
_LIVES = frozenset("live lives living stay stays staying reside resides based".split())
# "I have two cats": a number that is a state's own, and not the name of something ("room 3 is free").
_STATE_NUMBER = expression(
    r"(?:\b(?:have|has|own|owns|am|is|are|weigh|weighs|costs?|earns?|pays?|owes?|got|turned|until)|['\u2019](?:m|ve|s|re))"
    r"\s+(?:about |only |now |already )?[\w.,]*$",
    re.IGNORECASE,
)
_ENDED = expression(r"\b(?:stopped|quit|gave up|no longer|any ?more|any longer)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SentenceMatch:
    """
    The relation of a new sentence to the believed ones: ``again`` says one of them, ``ends`` others.

    ``parted``: memories that were merged of several sentences, of which it ends some.
    """

    again: FactRow | None = None
    ends: tuple[FactRow, ...] = ()
    parted: tuple[FactRow, ...] = ()


def compare_with_active(
    claim: Claim,
    believed: ActiveSentences,
    cosines: Mapping[str, float],
    merge: float = NEVER_NEAR,
    addresses: Addresses | None = None,
) -> SentenceMatch:
    """
    Compare the sentence of *claim* with the *believed* ones about the same subject.

    *cosines* are those of the sentence with believed ones, by fact id, where an embedder is there; from *merge*
    on two sentences may be one.  *addresses* reads the single-valued addresses of a sentence.  What
    was said in a conversation about no subject in particular and what was not are never one row.
    """
    text = claim.candidate.text
    alike = [one for one in believed if one.stands.unscoped == claim.unscoped]
    again = [one.stands for one in alike if same_words(text, one.text)]
    if not again:
        near_by = [one for one in alike if cosines.get(one.stands.fact.id, 0.0) >= merge]
        again = [one.stands for one in near_by if _adds_nothing(text, one.text)]
    if again:
        return SentenceMatch(
            again=max(again, key=lambda row: (cosines.get(row.fact.id, 0.0), row.stated_at, row.fact.id))
        )
    if claim.candidate.lifetime == "event" and not text.startswith("No longer "):
        return SentenceMatch()
    here = addresses(text) if addresses else {}
    said = "" if claim.candidate.source.startswith(("rules", "by hand")) else claim.evidence.quote
    wholes = {one.stands.fact.id for one in believed if one.merged}
    verdicts: dict[str, list[tuple[ActiveSentence, bool]]] = {}
    for one in believed:
        if one.merged or one.stands.fact.id not in wholes:  # a merged memory is judged by its sentences
            verdict = (one, _contradicts(text, one, here, addresses) or changes_part(text, one.text, said))
            verdicts.setdefault(one.stands.fact.id, []).append(verdict)
    hit = [each for each in verdicts.values() if any(ended for _, ended in each)]
    return SentenceMatch(
        ends=tuple(each[0][0].stands for each in hit if _all_of_it(each)),
        parted=tuple(each[0][0].stands for each in hit if not _all_of_it(each)),
    )


def _all_of_it(verdicts: Sequence[tuple[ActiveSentence, bool]]) -> bool:
    """Whether what ends some sentences ends all of them: the others say the same."""
    ended = [one.text for one, hit in verdicts if hit]
    left = [one.text for one, hit in verdicts if not hit]
    return all(any(same_words(text, other) or may_merge(text, other) for other in ended) for text in left)


def settle_statement(claim: Claim, base: Decision, meeting: SentenceMatch, now_ms: int) -> Decision:
    """
    Decide what to write of a sentence, given the decision for its address (*base*) and its matches.

    Of two that contradict each other the later holds, whichever was read first.
    """
    if base.add is None or not base.add.fact.live:
        return base
    if meeting.again is not None:
        return Decision() if rests_on(meeting.again, claim.evidence) else confirm(claim, meeting.again)
    newer = [row for row in meeting.ends if not is_later(claim, row)]
    if newer:
        return add_late(claim, base.add, newer, now_ms)
    if not meeting.ends:
        return base
    new = base.add.fact
    ended = tuple(
        close_fact(row, max(row.fact.valid_from, new.valid_from), now_ms, "replaced", new.id) for row in meeting.ends
    )
    return Decision(FactChange("replaced", new, ended[0].fact), add=base.add, updates=ended)


def is_restated(fact: Fact, text: str) -> bool:
    """Whether a sentence says no more than a fact."""
    if fact.kind == "attribute":
        return restates(text, fact.value, fact.text, f"{fact.category} {fact.key}")
    return same_words(text, fact.text)


def settle_beside_attributes(
    claim: Claim, base: Decision, attributes: Sequence[FactRow], addresses: Addresses | None, now_ms: int
) -> Decision:
    """
    Decide what to write of a sentence beside the live attributes of its subject.

    One that only repeats an attribute is a further quote of it; one that gives the only value of an address
    another value ends the older attribute.
    """
    text = claim.candidate.text
    if base.add is None or not base.add.fact.live:
        return base
    again = next((row for row in attributes if is_restated(row.fact, text) and row.unscoped == claim.unscoped), None)
    if again is not None:
        return Decision() if rests_on(again, claim.evidence) else confirm(claim, again)
    if addresses is None or claim.candidate.kind == "episode" or claim.candidate.lifetime == "event":
        return base
    here, new, said = addresses(text), base.add.fact, f"{claim.evidence.quote} {text}"
    old = [
        row
        for row in attributes
        if is_later(claim, row)
        and (
            changes_part(text, row.fact.text, said) or _turns(text, row.fact.text)
            if row.fact.cardinality == "multi"
            else (row.fact.category, row.slot_key) in here
            and normalize_value(here[row.fact.category, row.slot_key]) != normalize_value(row.fact.value)
        )
    ]
    ended = tuple(close_fact(row, max(row.fact.valid_from, new.valid_from), now_ms, "replaced", new.id) for row in old)
    return replace(base, updates=(*base.updates, *ended)) if claim.candidate.subject == SELF else base


def with_covered(decision: Decision, covered: Sequence[FactRow], now_ms: int) -> Decision:
    """Return the decision with the end of the facts that the new one says as well."""
    if decision.add is None or not covered:
        return decision
    new = decision.add.fact
    ended = [close_fact(row, max(row.fact.valid_from, new.valid_from), now_ms, "replaced", new.id) for row in covered]
    return replace(decision, updates=(*decision.updates, *ended))


def with_restatements(
    claim: Claim, decision: Decision, sentences: Sequence[FactRow], addresses: Addresses | None, now_ms: int
) -> Decision:
    """Return the decision about an attribute with the end of the sentences that say the same, or what has ended."""
    gone = [row.fact for row in decision.updates if not row.fact.live]
    new, ended = decision.add.fact if decision.add is not None and decision.add.fact.live else None, []
    for row in sentences:
        if not is_later(claim, row) and not rests_on(row, claim.evidence):
            continue
        same = new is not None and is_restated(new, row.fact.text)
        past = next((f for f in gone if is_restated(f, row.fact.text) or was_said_with(row.fact, f, new)), None)
        other = new is not None and past is None and not same and _gives_another(row, new, addresses)
        if new is not None and not other:
            other = _is_refused_habit(row.fact.text, new) or _turns(new.text, row.fact.text)
            other = other or changes_part(new.text, row.fact.text, claim.evidence.quote)
        if same or other or past is not None:
            at = max(row.fact.valid_from, from_ms(claim.said_at_ms))
            because = past.ended_because if past is not None and new is None else "replaced"
            ended.append(close_fact(row, at, now_ms, because, new.id if new is not None else None))
    return replace(decision, updates=(*decision.updates, *ended))


_HAS_HABIT = expression(r"^I (?:eat|drink|have|take)\b", re.IGNORECASE)


def _is_refused_habit(text: str, new: Fact) -> bool:
    """Whether a sentence says that one has what is not eaten any more: "Drinks coffee every morning"."""
    said = in_first_person(re.sub(r"^(Drinks|Eats|Takes) ", r"The user \1 ", text))
    habit = (new.category, new.key) == ("food", "does_not_eat") and _HAS_HABIT.match(said) is not None
    return habit and not sense(text).negated and same_thing(name_thing(said).removeprefix("i "), new.value)


def _gives_another(row: FactRow, new: Fact, addresses: Addresses | None) -> bool:
    """Whether the rules read another value of a new attribute's address in a sentence about the user."""
    if addresses is None or new.cardinality == "multi" or new.subject != SELF or row.fact.lifetime == "event":
        return False
    there = addresses(row.fact.text)
    key = "" if new.cardinality == "exclusive" else new.key
    return (new.category, key) in there and normalize_value(there[new.category, key]) != normalize_value(new.value)


def may_merge(one: str, other: str) -> bool:
    """Whether two sentences that an embedder finds alike enough may be one; where in doubt, not."""
    return comparable(one) and comparable(other) and not disagreement(one, other)


def _adds_nothing(text: str, known: str) -> bool:
    return may_merge(text, known) and len(sense(text).words) <= len(sense(known).words)


def _contradicts(text: str, one: ActiveSentence, here: Mapping[Address, str], addresses: Addresses | None) -> bool:
    """Whether the newer sentence *text* says that what *one* says does not hold any more."""
    old, row = one.text, one.stands
    if row.fact.lifetime == "event" or is_for_other_place(text, old):
        return False
    if here and addresses is not None:
        there = addresses(old)
        shared = [
            normalize_value(here[address]) == normalize_value(there[address]) for address in here if address in there
        ]
        if shared:
            return not any(shared)
    if not (comparable(text) and comparable(old)):
        return False
    a, b = sense(text), sense(old)
    if a.marks != b.marks and marks_in_group(a.marks, "person") != marks_in_group(b.marks, "person"):
        return False
    if not b.negated and "time:past" not in b.marks and (says_moved(text, old) or is_put_elsewhere(text, old)):
        return True
    turned = _negates(a, b) or chooses_other(text, old)
    return turned or _other_number(text, a, old, b) or _says_stopped(text, a, b) or _says_switched(text, b)


def _turns(text: str, old: str) -> bool:
    """Whether a sentence denies an older one, or says another way of what is so in one way only."""
    a, b = sense(text), sense(old)
    alike = comparable(text) and marks_in_group(a.marks, "person") == marks_in_group(b.marks, "person")
    return alike and (_negates(a, b) or _says_stopped(text, a, b) or chooses_other(text, old))


def _negates(a: Sense, b: Sense) -> bool:
    """ "I don't like my job" after "I like my job"; "I hate it" after "I love it"."""
    same_else = (a.numbers, a.names, a.marks) == (b.numbers, b.names, b.marks)
    core = _core_stems(a.sequence) if same_else and a.negated != b.negated else ()
    return bool(core) and core == _core_stems(b.sequence)


def _other_number(text: str, a: Sense, old: str, b: Sense) -> bool:
    """ "I have three cats" after "I have two cats"; "I work until 3:30" after "until 4:30"."""
    one_each = len(a.numbers) == len(b.numbers) == 1 and a.numbers != b.numbers
    same_else = one_each and a.names == b.names and a.negated == b.negated and _but_numbers(a) == _but_numbers(b)
    return same_else and _states_number(text) and _states_number(old)


def _but_numbers(a: Sense) -> list[str]:
    return ["#" if word in a.numbers else word for word in a.sequence if word not in ("left", "now", "only")]


def _states_number(text: str) -> bool:
    """Whether the one number of a sentence follows a verb of having or being."""
    for found in re.finditer(r"[\w.,]+", text):
        word = found.group().casefold().strip(".,")
        if word and (word[0].isdecimal() or word in NUMBERS):
            return bool(_STATE_NUMBER.search(text[: found.start()].replace("till ", "until ")))
    return False


def _says_stopped(text: str, a: Sense, b: Sense) -> bool:
    """ "I stopped smoking" after "I smoke"; "I no longer work at the bank" after "I work at the bank as a clerk"."""
    ended = a.negated and not (b.negated or b.numbers or "time:past" in b.marks) and _ENDED.search(text)
    what = _core_stems(a.sequence) if ended else ()
    return len(what) > 1 and _core_stems(b.sequence)[: len(what)] == what and a.names <= b.names


def _says_switched(text: str, b: Sense) -> bool:
    """ "We switched from PostgreSQL to MySQL" after "I use PostgreSQL"."""
    found = None if b.negated or "time:past" in b.marks else _SWITCH.search(text)
    if found is None:
        return False
    before, after = set(sense(found["old"]).words), set(sense(found["new"]).words)
    moves = found["verb"].casefold() in ("moved", "relocated", "went")
    holds = b.plain & (_USES | _LIVES if moves else _USES)
    return bool(holds) and bool(before) and before <= set(b.words) and not after & set(b.words)


def _core_stems(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the stems without those that only say that a user likes it or not, or stopped."""
    stems = tuple((terms(word, "en")[:1] or [word])[0] for word in words)
    return tuple(stem for stem in stems if stem not in _ATTITUDES)


_ATTITUDES = frozenset(
    stem
    for word in (*OPPOSITES[0][0], *OPPOSITES[0][1], "stop", "stopped", "quit", "gave")
    for stem in terms(word, "en")
) | {"up", "not", "no"}
