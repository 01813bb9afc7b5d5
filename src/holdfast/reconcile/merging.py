"""
Several sentences become one memory, and its sentences again; two subjects become one.

The sentences stay: as history with ``ended_because`` = ``merged``, which names the whole, and without a
document.  The whole rests on every quote of theirs.  It is made of sentences only, never of other
wholes, so that taking it apart is one step.  All inside the caller's transaction.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import combinations
from typing import TypeAlias

from ..clock import from_ms, to_ms
from ..store import Derivation, FactOwner, FactRow, WriteView
from ..text import NDArray, dataclass, expression, np
from ..text.sentences import split_sentences
from ..text.terms import tool_kinds
from ..types import BY_HAND_SOURCE, Evidence, Fact, FactKind
from .archive import index_fact, strength_at, unindex_fact
from .compare import (
    all_words,
    find_unfaithful,
    may_join,
    reworded,
    same_thing,
    same_words,
    sense,
    specifies,
    thing_stems,
)
from .decide import MERGED, UNMERGED, Claim, Decision, as_active, may_merge
from .moves import (
    CHANGED,
    changes_part,
    has_taken_over,
    is_for_place,
    is_left_for,
    is_moved_whole,
    is_rewritten_in,
    may_move,
)
from .registry import normalize_value

MEANT_BY = 3  # so many words that a longer value has all of can mean nothing else
# What says how old or big somebody is, and not what.
_OF_ANY_AGE = thing_stems(
    "old older elderly young adult big small little large tiny male female alt alte alter junger viejo vieja joven vieux vieille petit petite"
)


def names_same(one: str, other: str) -> bool:
    """Whether two values name one thing, in whatever inflection: "lange Texte", "langen Texte"."""
    if same_thing(one, other) or specifies(one, other) or specifies(other, one):
        return True
    less, more = sorted((thing_stems(one), thing_stems(other)), key=len)
    if len(less) >= MEANT_BY and less <= more:
        return True  # "runs a small bike shop" of "a small bike shop in Leeds, run with Theo"
    if less and less < more and more - less <= _OF_ANY_AGE:
        return True  # "old labrador" of "labrador"
    a, b = all_words(one), all_words(other)
    alike = (
        x == y
        or (min(len(x), len(y)) > 4 and x[: max(4, min(len(x), len(y)) - 2)] == y[: max(4, min(len(x), len(y)) - 2)])
        for x, y in zip(a, b, strict=False)
    )
    return bool(a) and len(a) == len(b) and all(alike)


HAPPENED = ("life", "happened")  # an attribute that an episode tells better


def told_by_episode(view: WriteView, claim: Claim, believed: Callable[[FactKind], Iterable[FactRow]]) -> bool:
    """Whether a *believed* episode of the same message holds all that happened."""
    said = claim.candidate
    if (said.op, said.category, said.key) != ("assert", *HAPPENED):
        return False
    told = (row for row in believed("episode") if thing_stems(said.value) <= thing_stems(row.fact.text))
    return any(_rests_on_message(view, row, claim) for row in told)


def told_happenings(view: WriteView, decision: Decision, claim: Claim) -> list[FactRow]:
    """Return the happenings of the same message that a new episode holds in full."""
    new = decision.add.fact if decision.add is not None else None
    if new is None or new.kind != "episode":
        return []
    return [
        row
        for row in view.all_facts_in(new.subject, HAPPENED[0])
        if row.fact.live
        and row.fact.key == HAPPENED[1]
        and thing_stems(row.fact.value) <= thing_stems(new.text)
        and _rests_on_message(view, row, claim)
    ]


def _rests_on_message(view: WriteView, row: FactRow, claim: Claim) -> bool:
    """Whether a fact has a quote in the message of a claim."""
    whole, said = view.at(None, None).fact(row.fact.id), claim.evidence
    quotes = whole.fact.evidence if whole is not None else ()
    return any((e.home, e.conversation, e.seq) == (said.home, said.conversation, said.seq) for e in quotes)


def merged_sources(view: WriteView, whole: FactRow) -> list[FactRow]:
    """Return the sentences that were merged into a fact, by when they began to hold; none for most facts."""
    if whole.fact.kind != "statement":
        return []
    return [row for row in view.replaced_by(whole.fact.subject, whole.fact.id) if row.fact.ended_because == MERGED]


def merged_into(view: WriteView, row: FactRow) -> FactRow | None:
    """Return the memory that a sentence was merged into, if it was."""
    return view.at(None, None).fact(row.fact.superseded_by or "") if row.fact.ended_because == MERGED else None


def merge_facts(
    view: WriteView,
    cluster: Sequence[FactRow],
    *,
    text: str,
    source: str,
    fact_id: str,
    now_ms: int,
    half_life_ms: float,
) -> FactRow | None:
    """
    Merge a cluster into one memory that says *text*; returns it.

    ``None``, and nothing is written, when a sentence of the cluster is not any more what it was, or
    when another fact says *text* already.
    """
    view = view.at(None, None)
    now = [view.fact(row.fact.id) for row in cluster]
    rows = [row for row in now if row is not None and row.fact.live]
    if [_content(row) for row in rows] != [_content(row) for row in cluster]:
        return None
    first = representative(rows)
    there = view.of_owner(first.owner)
    taken = there.fact_at(first.fact.subject, first.fact.category, first.slot_key, normalize_value(text))
    if taken is not None and taken.fact.id not in {row.fact.id for row in rows}:
        return None
    leaves: list[FactRow] = []
    for row in rows:
        leaves += split_fact(view, row, now_ms) if merged_sources(view, row) else [row]
    whole = _merged_fact(leaves, first, text, source, fact_id, now_ms, half_life_ms)
    for leaf in leaves:
        unindex_fact(view, leaf)
        fact = replace(leaf.fact, valid_to=leaf.fact.valid_from, ended_because=MERGED, superseded_by=fact_id)
        view.update_fact(replace(leaf, fact=fact, ended_at=now_ms, doc=0))
    whole = index_fact(view, whole, now_ms)
    view.add_fact(whole)
    view.add_derivations(_edge(fact_id, said) for said in whole.fact.evidence)
    return whole


def split_fact(view: WriteView, whole: FactRow, now_ms: int, *, keep_apart: bool = False) -> list[FactRow]:
    """
    Split a merged fact into its sentences, in the state that the whole had; returns those that are live again.

    With *keep_apart* the whole stays as history, so that they are not merged again.
    """
    view = view.at(None, None)
    whole = view.fact(whole.fact.id) or whole
    endings = [edge for edge in view.endings() if edge.child == whole.fact.id]
    sources, older = merged_sources(view, whole), view.replaced_by(whole.fact.subject, whole.fact.id)
    heir = max(sources, key=lambda row: (row.fact.text == whole.fact.text, row.stated_at, row.stated_seq, row.fact.id))
    unindex_fact(view, whole)
    if keep_apart:
        fact = replace(whole.fact, valid_to=whole.fact.valid_from, ended_because=UNMERGED, superseded_by=None)
        view.update_fact(replace(whole, fact=fact, ended_at=now_ms, doc=0))
    else:
        view.remove_fact(whole)
    for row in older:
        if row.fact.ended_because != MERGED:
            view.update_fact(replace(row, fact=replace(row.fact, superseded_by=heir.fact.id)))
    known = {quote_place(said) for row in sources for said in row.fact.evidence}
    later = [said for said in whole.fact.evidence if quote_place(said) not in known]
    found = []
    for row in sources:
        more = [said for said in later if _source_of_quote(said, sources, heir) == row.fact.id]
        fact = replace(row.fact, evidence=tuple(sorted((*row.fact.evidence, *more), key=_quote_order)), conversation="")
        stands = _restore_source(view, replace(row, fact=fact), whole, heir, now_ms)
        if stands is not None:
            add_quotes(view, stands, more, now_ms)
            found.append(stands)
            if not stands.fact.live:
                view.add_derivations(replace(edge, child=stands.fact.id) for edge in endings)
    return found


def add_quotes(view: WriteView, row: FactRow, quotes: Sequence[Evidence], now_ms: int) -> None:
    """Let a fact rest on further quotes, with an edge to the message of each."""
    for said in quotes:
        view.add_evidence(row.fact.subject, row.fact.id, said.home, said, now_ms)
    view.add_derivations(_edge(row.fact.id, said) for said in quotes)


def _merged_fact(
    leaves: Sequence[FactRow], first: FactRow, text: str, source: str, fact_id: str, now_ms: int, half_life_ms: float
) -> FactRow:
    facts = [leaf.fact for leaf in leaves]
    quotes = {quote_place(said): said for fact in facts for said in fact.evidence}
    used = [fact.last_used_at for fact in facts if fact.last_used_at is not None]
    latest = max(leaves, key=lambda row: (row.stated_at, row.stated_seq))
    since = max(latest.stated_at, *map(to_ms, used)) if used else latest.stated_at
    fact = Fact(
        id=fact_id,
        kind="statement",
        subject=first.fact.subject,
        category=first.fact.category,
        key=first.fact.key,
        value=first.fact.value if text == first.fact.text else "",
        text=text,
        confidence=max(fact.confidence for fact in facts),
        cardinality="multi",
        lifetime=first.fact.lifetime,
        valid_from=min(fact.valid_from for fact in facts),
        valid_to=None,
        recorded_at=from_ms(now_ms),
        superseded_by=None,
        evidence=tuple(sorted(quotes.values(), key=_quote_order)),
        strength=max(strength_at(leaf.fact.strength, _counted_at(leaf), since, half_life_ms) for leaf in leaves),
        last_used_at=max(used, default=None),
        uses=sum(fact.uses for fact in facts),
        source=source,
        importance=max(fact.importance for fact in facts),
        only_in=first.fact.only_in,
        label=first.fact.label,
    )
    return replace(
        first,
        fact=fact,
        slot_value=normalize_value(text),
        stated_at=latest.stated_at,
        stated_seq=latest.stated_seq,
        doc=0,
        ended_at=None,
        expires_at=None,
    )


def _restore_source(view: WriteView, row: FactRow, whole: FactRow, heir: FactRow, now_ms: int) -> FactRow | None:
    """A sentence with the end of the whole, or none; ``None`` when another fact at its address took its quotes."""
    fact, stood = row.fact, whole.fact
    if row.fact.id == heir.fact.id:
        fact = replace(fact, uses=max(fact.uses, stood.uses))
    if stood.last_used_at is not None:
        fact = replace(fact, strength=stood.strength, last_used_at=stood.last_used_at)
    if not stood.live:
        until = fact.valid_from if stood.valid_to == stood.valid_from else max(fact.valid_from, _end(stood))
        fact = replace(fact, valid_to=until, ended_because=stood.ended_because, superseded_by=stood.superseded_by)
        row = replace(row, fact=fact, ended_at=whole.ended_at or now_ms)
        view.update_fact(row)
        return row
    taken = view.of_owner(row.owner).fact_at(fact.subject, fact.category, row.slot_key, row.slot_value)
    if taken is not None:  # said again meanwhile, as something of its own
        for older in view.replaced_by(fact.subject, fact.id):
            view.update_fact(replace(older, fact=replace(older.fact, superseded_by=taken.fact.id)))
        view.remove_fact(row)
        add_quotes(view, taken, row.fact.evidence, now_ms)
        return None
    fact = replace(fact, valid_to=None, ended_because="", superseded_by=None)
    row = index_fact(view, replace(row, fact=fact, ended_at=None), now_ms)
    view.update_fact(row)
    return row


def _source_of_quote(said: Evidence, sources: Sequence[FactRow], heir: FactRow) -> str:
    """Which sentence a quote says that came after they were merged."""
    return next((row.fact.id for row in sources if same_words(said.quote, row.fact.text)), heir.fact.id)


def _content(row: FactRow) -> tuple[str, str, tuple[Evidence, ...]]:
    return (row.fact.id, row.fact.text, row.fact.evidence)


def _edge(fact_id: str, said: Evidence) -> Derivation:
    return Derivation("fact", fact_id, "message", said.home, said.conversation, said.seq, said.seq)


def _end(fact: Fact) -> datetime:
    return fact.valid_to or fact.valid_from


def _counted_at(row: FactRow) -> int:
    used = row.fact.last_used_at
    return max(row.stated_at, to_ms(used) if used else 0)


def _quote_order(said: Evidence) -> tuple[int, str, int, int]:
    return (to_ms(said.at) if said.at else 0, said.conversation, said.seq, said.start)


MAX_RELATED = 6
NOTHING_ALIKE = 0.5  # sentences of the same words are far nearer to each other, to any embedder
SAME_NAME = 0.2  # sentences that name the same person or thing are about it, however little else they share
LASTING = frozenset(("permanent", "state"))

Cluster = tuple[FactRow, ...]
QuotePlace = tuple[str, str, int, int]
Cosines: TypeAlias = "NDArray[np.float32] | None"
"""One row and column a sentence, or ``None`` where nobody can tell how near they are."""


def quote_place(evidence: Evidence) -> QuotePlace:
    """Return the place of a quote."""
    return (evidence.home, evidence.conversation, evidence.seq, evidence.start)


def mergeable(rows: Iterable[FactRow]) -> list[FactRow]:
    """Live sentences about what lasts, whose own words set no end; by when they were first said."""
    lasting = [
        row
        for row in rows
        if row.fact.live and row.fact.kind == "statement" and row.fact.lifetime in LASTING and row.expires_at is None
    ]
    return sorted(lasting, key=lambda row: (row.fact.valid_from, row.fact.id))


def split_apart(rows: Iterable[FactRow]) -> list[frozenset[QuotePlace]]:
    """Return, for each memory that was split by hand, the places whose sentences must not be merged again."""
    return [frozenset(map(quote_place, row.fact.evidence)) for row in rows if row.fact.ended_because == UNMERGED]


def cluster_same(
    rows: Sequence[FactRow], cosines: Cosines, merge: float, apart: Sequence[frozenset[QuotePlace]]
) -> list[Cluster]:
    """Clusters of sentences that say the same; *merge* is the embedder's threshold."""

    def near(i: int, j: int) -> bool:
        a, b = rows[i].fact.text, rows[j].fact.text
        if cosines is not None and cosines[i, j] < min(NOTHING_ALIKE, merge):
            return False
        if cosines is None:
            return same_words(a, b)
        return same_words(a, b) or reworded(a, b) or (float(cosines[i, j]) >= merge and may_merge(a, b))

    return _clusters(rows, cosines, near, apart, len(rows))


def cluster_related(
    rows: Sequence[FactRow], cosines: Cosines, gather: float, apart: Sequence[frozenset[QuotePlace]]
) -> list[Cluster]:
    """Clusters that a model may join, a few sentences each; what users wrote by hand stays as it is."""

    def near(i: int, j: int) -> bool:
        a, b = rows[i].fact, rows[j].fact
        if BY_HAND_SOURCE in (a.source, b.source) or cosines is None:
            return False
        about_one = bool(sense(a.text).names & sense(b.text).names)
        return float(cosines[i, j]) >= (SAME_NAME if about_one else gather) and may_join(a.text, b.text)

    return _clusters(rows, cosines, near, apart, MAX_RELATED)


def cluster_tools(rows: Sequence[FactRow], apart: Sequence[frozenset[QuotePlace]]) -> list[tuple[Cluster, str]]:
    """Clusters of sentences about one tool that one sentence can say, each with that sentence."""
    rows = [row for row in rows if parse_tool_uses(row.fact.text)]

    def near(i: int, j: int) -> bool:
        return bool(may_be_one([rows[i].fact.text, rows[j].fact.text]))

    found = [
        (one, joined_text([row.fact.text for row in one])) for one in _clusters(rows, None, near, apart, MAX_RELATED)
    ]
    return [(cluster, text) for cluster, text in found if text]


def representative(cluster: Sequence[FactRow]) -> FactRow:
    """Return the sentence that represents all: one written by hand, else the one that says most, else the latest."""

    def worth(row: FactRow) -> tuple[bool, int, int, int, str]:
        return (
            row.fact.source == BY_HAND_SOURCE,
            len(sense(row.fact.text).words),
            row.stated_at,
            row.stated_seq,
            row.fact.id,
        )

    return max(cluster, key=worth)


def _clusters(
    rows: Sequence[FactRow],
    cosines: Cosines,
    near: Callable[[int, int], bool],
    apart: Sequence[frozenset[QuotePlace]],
    most: int,
) -> list[Cluster]:
    """Groups in which every pair is *near*, of at most *most*, begun by the nearest pairs; in the order of *rows*."""
    spots = [frozenset(map(quote_place, row.fact.evidence)) for row in rows]

    def together(i: int, j: int) -> bool:
        if _kind(rows[i]) != _kind(rows[j]) or any(spots[i] & bar and spots[j] & bar for bar in apart):
            return False
        return near(i, j)

    pairs = [(i, j) for i, j in combinations(range(len(rows)), 2) if together(i, j)]
    pairs.sort(key=lambda pair: (-float(cosines[pair]) if cosines is not None else 0.0, pair))
    linked = set(pairs)
    groups: dict[int, list[int]] = {}
    for i, j in pairs:
        mine, theirs = groups.get(i, [i]), groups.get(j, [j])
        if mine is theirs or len(mine) + len(theirs) > most:
            continue
        if all((min(a, b), max(a, b)) in linked for a in mine for b in theirs):
            joined = sorted(mine + theirs)
            groups.update(dict.fromkeys(joined, joined))
    unique = {id(group): group for group in groups.values()}
    return [tuple(rows[index] for index in group) for group in sorted(unique.values())]


def _kind(row: FactRow) -> tuple[str, bool, str, FactOwner]:
    fact: Fact = row.fact
    return (fact.subject, row.unscoped, fact.lifetime, row.owner)


# A name: Python, C++, Node.js, PostgreSQL 15.
_TOOL = r"(?-i:[A-Z][\w.+#-]*[\w+#])(?: \d+(?:\.\d+)*)?"
_PART = r"(?:back-?end|front-?end|API)"
_USES = expression(
    rf"uses (?P<tool>{_TOOL})(?: with (?P<beside>{_TOOL}))?(?: for (?:(?:the|their) )?(?P<part>{_PART})(?: development)?)?",
    re.IGNORECASE,
)
_MADE_IN = expression(
    rf"(?:(?:the|their) )?(?P<part>{_PART}) is in (?P<tool>{_TOOL})(?: with (?P<beside>{_TOOL}))?",
    re.IGNORECASE,
)
_PREFERS = expression(rf"prefers (?P<tool>{_TOOL}) over (?P<less>{_TOOL})", re.IGNORECASE)
_NEXT = expression(r", (?:and )?(?=prefers |uses )", re.IGNORECASE)
_USER = expression(r"(?:the )?user (?=uses |prefers )", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool as one clause describes it: used beside another, for a part of the work, preferred over a third."""

    tool: str
    uses: bool = False
    beside: str = ""
    part: str = ""
    less: str = ""


def parse_tool_uses(text: str) -> tuple[ToolUse, ...]:
    """Parse a sentence about one tool, clause by clause; empty where any word of it says something else."""
    plain = _USER.sub("", text.strip()).rstrip(".")
    found = []
    for clause in _NEXT.split(plain):
        read = _USES.fullmatch(clause) or _MADE_IN.fullmatch(clause) or _PREFERS.fullmatch(clause)
        if read is None:
            return ()
        words = {name: word or "" for name, word in read.groupdict().items()}
        part = words.get("part", "")
        words["part"] = part if part.isupper() else part.lower()
        found.append(ToolUse(**words, uses="less" not in words))
    return tuple(found) if len({one.tool for one in found}) == 1 else ()


_RUNS = expression(
    rf"(?:the |their )?(?:user |team |company )?(?:uses|using|runs|running|deploys on|hosts on|is on) (?P<tool>{_TOOL})(?: (?:for|in|as|on|with) .*)?\.?",
    re.IGNORECASE,
)


def used_tool(text: str) -> str:
    """Return the tool that a sentence is about, whatever it is used for; empty for any other sentence."""
    uses, runs = parse_tool_uses(text), _RUNS.fullmatch(text.strip())
    return uses[0].tool if uses else runs["tool"] if runs else ""


_OF_TOOLS = ("technical", "context", "note")  # the categories in which sentences about tools stand


def _said_around(view: WriteView, claim: Claim, *, whole: bool = False) -> str:
    """Return the sentence with the words of a claim, or the whole message; the quote where that cannot be read."""
    said = claim.evidence
    here = view.scope.conversation == said.conversation and said.seq > 0
    found = view.messages(start_seq=said.seq, end_seq=said.seq) if here else []
    if not found or whole:
        return found[0].content if found else said.quote
    content = found[0].content
    spans = [one for one in split_sentences(content) if one.start < said.end and said.start < one.end]
    return " ".join(one.of(content) for one in spans) or said.quote


def left_behind(view: WriteView, claim: Claim) -> Iterator[Claim]:
    """Yield the end of the one tool that a user left when they moved to the tool of the claim, and of sentences about it."""
    candidate = claim.candidate
    attribute = (candidate.kind, candidate.category) == ("attribute", "tech")
    new = candidate.value if attribute else _tool_of(candidate.text) if candidate.kind == "statement" else ""
    text = _said_around(view, claim, whole=True) if new and candidate.op == "assert" else ""
    if not may_move(text):
        return
    rows = [as_active(row).fact for row in view.all_facts_in(candidate.subject, "tech")]
    others = [fact for fact in rows if fact.live and fact.kind == "attribute" and fact.value != new]
    kept = [as_active(row).fact for place in _OF_TOOLS for row in view.all_facts_in(candidate.subject, place)]
    sentences = [fact for fact in kept if fact.live and _tool_of(fact.text)]
    left = [fact for fact in others if is_left_for(fact.value, new, text)]
    whole_move = candidate.key != "uses_tool" and is_moved_whole(new, text)
    left = left or [
        fact
        for fact in others
        if fact.key == candidate.key
        and (
            whole_move or any(moved(_messages_of(view, fact), new, text) for moved in (is_rewritten_in, has_taken_over))
        )
    ]
    for fact in sentences:
        tool = _tool_of(fact.text)
        rewritten = tool != new and is_rewritten_in([fact.text], new, text)
        if rewritten or is_left_for(tool, new, text):
            gone = replace(candidate, kind="statement", category=fact.category, key="", value="", text=fact.text)
            yield replace(claim, candidate=replace(gone, op="retract", modality="negated", join=""))
    if len(left) == 1:  # of two it is not known which
        yield _end_of(claim, left[0])


def _messages_of(view: WriteView, fact: Fact) -> Iterator[str]:
    """Yield the messages that a fact quotes: what its quotes leave out may say what it is used for."""
    for one in fact.evidence:
        found = view.at(fact.subject, one.conversation).messages(start_seq=one.seq, end_seq=one.seq) if one.seq else []
        yield found[0].content if found else one.quote


def changed_by(view: WriteView, claim: Claim) -> Iterator[Claim]:
    """Yield the end of what a claim says with another part: "swims twice a week", where it is four times now."""
    candidate = claim.candidate
    if (candidate.kind, candidate.op) != ("attribute", "assert") or candidate.source == BY_HAND_SOURCE:
        return
    if candidate.lifetime == "event":
        return  # one happening takes the place of none
    rows = [as_active(row).fact for row in view.all_facts_in(candidate.subject, candidate.category)]
    near = [
        fact
        for fact in rows
        if (fact.live, fact.key, fact.cardinality) == (True, candidate.key, "multi")
        and changes_part(candidate.text, fact.text, CHANGED)
    ]
    there = [fact for fact in rows if fact.live and fact.key == candidate.key and fact.value != candidate.value]
    once = candidate.category in _ONE_AT_A_TIME and len(there) == 1
    said = _said_around(view, claim) if near or once else ""
    if near and changes_part(candidate.text, near[0].text, said):
        for fact in near:
            yield _end_of(claim, fact)
    elif once and _INSTEAD.search(said):
        yield _end_of(claim, there[0])  # "we're flying to Athens instead"


_ONE_AT_A_TIME = frozenset(("trip", "travel", "plan", "goal", "appointment"))
_INSTEAD = expression(r"\binstead\b(?! of\b)", re.IGNORECASE)


def beside_at_place(view: WriteView, claim: Claim) -> Claim:
    """Return a claim about a tool that is used in one place or for one thing as one beside others: "at work I use VS Code"."""
    candidate = claim.candidate
    if (candidate.kind, candidate.op, candidate.category) != ("attribute", "assert", "tech"):
        return claim
    return (
        replace(claim, candidate=replace(candidate, join="add")) if is_for_place(_said_around(view, claim)) else claim
    )


def _end_of(claim: Claim, fact: Fact) -> Claim:
    """Return the claim that an attribute of the same subject has ended."""
    gone = replace(claim.candidate, kind="attribute", category=fact.category, key=fact.key, value=fact.value)
    return replace(claim, candidate=replace(gone, op="retract", modality="negated", join=""))


_WITH_TOOL = expression(
    r"(?:the user )?(?:uses?|runs?|is on|is using|works (?:with|in|on)|writes in|sends (?:e-?)?mails? (?:with|from)|prefers|plans in|designs in|listens to music on) "
    r"(?P<tool>[\w.+# -]{2,30}?)(?: (?:for|as|to|at|now|on|in|with)\b.*)?\.?",
    re.IGNORECASE,
)


def _tool_of(text: str) -> str:
    """Return the tool that a sentence is about, by its form or by the names of ``tools.toml``."""
    found = _WITH_TOOL.fullmatch(text.strip())
    named = found["tool"] if found and any(found["tool"].casefold() in kind.tools for kind in tool_kinds()) else ""
    return named or used_tool(text)


def joined_text(sentences: Sequence[str]) -> str:
    """Return the one sentence that says all of them, and no other word; empty where there is none."""
    text = may_be_one(sentences)
    return "" if not text or find_unfaithful(text, sentences) else text


def may_be_one(sentences: Sequence[str]) -> str:
    """Return one sentence for those about one tool; empty where they are not, or where one may replace another."""
    parts = [parse_tool_uses(sentence) for sentence in sentences]
    if not all(parts) or len({use.tool for uses in parts for use in uses}) != 1:
        return ""
    all_uses = [use for uses in parts for use in uses]
    known = [_only(one.beside for one in all_uses), _only(one.part for one in all_uses if one.uses)]
    less = _only(one.less for one in all_uses)
    if None in (*known, less) or not _are_of_one_use(all_uses):
        return ""
    beside, part = known
    tool = all_uses[0].tool
    used = f"Uses {tool}{beside and f' with {beside}'}{part and f' for {part} development'}"
    clauses = [used] if any(one.uses for one in all_uses) else []
    text = ", ".join([*clauses, *([f"prefers {tool} over {less}"] if less else [])])
    stop = "." if all(sentence.rstrip().endswith(".") for sentence in sentences) else ""
    return text[:1].upper() + text[1:] + stop


def _are_of_one_use(uses: Iterable[ToolUse]) -> bool:
    """Whether no two uses differ: beside one tool at most, and for one part of the work at most."""
    return len({(use.beside, use.part) for use in uses if use.beside or use.part}) < 2


def _only(words: Iterable[str]) -> str | None:
    """Return the one word; empty for none, ``None`` for several."""
    distinct = {word.casefold(): word for word in words if word}
    return next(iter(distinct.values()), "") if len(distinct) < 2 else None


def move_facts(view: WriteView, subject: str, into: str, now_ms: int) -> tuple[list[FactRow], list[FactRow]]:
    """
    Move every fact about *subject* to *into*, live and past.

    Returns:
        The facts that moved, and those of either that are replaced, or said twice, by that.
    """
    view = view.at(None, None)
    rows = [row for row in view.all_facts() if row.fact.subject == subject]
    ended: list[FactRow] = []
    for row in sorted(rows, key=lambda row: (row.stated_at, row.stated_seq, row.fact.id)):
        unindex_fact(view, row)
        beside = view.of_owner(row.owner)
        there = beside.fact_at(into, row.fact.category, row.slot_key, row.slot_value) if row.fact.live else None
        moved = replace(row, fact=replace(row.fact, subject=into), doc=0)
        if there is not None:
            ended.append(_meet(view, moved, there, now_ms))
            continue
        view.move_fact(row, into)
        view.update_fact(index_fact(view, moved, now_ms))
    return rows, ended


def _meet(view: WriteView, row: FactRow, there: FactRow, now_ms: int) -> FactRow:
    """Let a live fact, whose *row* has the new subject, meet the one at its address there; return the one that ends."""
    old = view.fact(row.fact.id) or row
    if normalize_value(row.fact.value) == normalize_value(there.fact.value) and row.fact.kind == there.fact.kind:
        for older in view.replaced_by(old.fact.subject, row.fact.id):
            view.update_fact(replace(older, fact=replace(older.fact, superseded_by=there.fact.id)))
        view.remove_fact(old)
        add_quotes(view, there, row.fact.evidence, now_ms)
        view.update_fact(replace(there, unscoped=there.unscoped or row.unscoped))
        return old
    wins = (row.stated_at, row.stated_seq) > (there.stated_at, there.stated_seq)
    newer, older = (row, there) if wins else (there, row)
    until = max(newer.fact.valid_from, older.fact.valid_from)
    closed = replace(older.fact, valid_to=until, ended_because="replaced", superseded_by=newer.fact.id)
    if wins:
        unindex_fact(view, there)
        view.update_fact(replace(there, fact=closed, ended_at=now_ms, doc=0))
        view.move_fact(old, row.fact.subject)
        view.update_fact(index_fact(view, row, now_ms))
        return there
    view.update_fact(replace(old, fact=replace(closed, subject=old.fact.subject), ended_at=now_ms, doc=0))
    view.move_fact(old, row.fact.subject)
    return row
