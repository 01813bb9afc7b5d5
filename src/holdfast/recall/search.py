"""
Find what one user's memory holds on a question: exact, in one scope, by words and vectors.

Reads the documents of the scope's partitions, with their words, and nothing else: the cost follows the user's own history, not the population.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache, lru_cache, partial, reduce
from typing import NamedTuple

from ..clock import from_ms, to_ms
from ..embed.files import common_words
from ..embed.protocol import Embedder
from ..errors import BadInput
from ..scope import SELF
from ..store import ConsentRow, DocRow, FactRow, ReadView, effective_consent
from ..text import NDArray, dataclass, np
from ..text.render import NEVER, NO_LONGER
from ..text.sentences import says_replaced, without_sentences
from ..text.terms import terms
from ..types import Fact, Hit, HitKind, StoryLine, Summary, TurnKey
from . import rank
from .index import (
    Bools,
    Floats,
    Index,
    IndexCache,
    Ints,
    Match,
    as_of_user,
    find_matches,
    ids_at,
    places_of_others,
    read_index,
    read_vectors,
)
from .query import (
    LEAST_LETTERS,
    Query,
    find_aliases,
    names_without_text,
    nearest_spellings,
    parse_question,
    participant_meant,
)
from .rank import RELEVANCE, RELEVANCE_BY_WORDS, REST, REST_OF_TURNS, covered
from .vectors import Comparison, Vectors, compare_exactly, merge_comparisons

KINDS: tuple[HitKind, ...] = ("fact", "message", "summary")
# Of a longer question (somebody pasted a page) the two ends are read: what is wanted stands there.
_END_CHARS = 1_500
# Of many documents so many that hold the question's words best are compared exactly, whatever their signs say.
BEST_BY_WORDS = 32
OF_OTHERS = 0.2  # of the relevance of a fact, where the question names another subject and the fact does not
CALLED = 0.9  # the relevance of a fact that the question calls by an alias, at least


@dataclass(frozen=True, slots=True)
class _KindMatches:
    """The documents of one kind, and the words of the question in them."""

    kind: HitKind
    index: Index
    matches: list[Match]


@dataclass(frozen=True, slots=True)
class _EmbeddedQuestion:
    """The question as one embedder sees it; ``slot`` is its place among the embedders of an index."""

    slot: int
    embedder: Embedder
    vector: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class _Filters:
    """The caller's filters within a scope; see `search`."""

    conversations: Collection[str] | None
    window: tuple[int, int] | None
    before_seq: int | None
    min_relevance: float
    gate: float
    limit: int
    apart: Container[tuple[str, str]] = ()  # conversations with facts of their own: no other one recalls them
    corrected: Sequence[tuple[tuple[str, str], int]] = ()  # what was written by hand in place of those facts

    def check(self, view: ReadView) -> _Filters:
        """
        Return the filters, if the scope can have them.

        Raises:
            BadInput: a conversation is meant, and the scope names none.
        """
        if (self.window or self.before_seq is not None) and view.scope.conversation is None:
            hint = "use scope.within(…)"
            raise BadInput("window and before_seq need a conversation, the scope names none", hint=hint)
        if view.scope.conversation is None or not (apart := view.conversations_apart()):
            return self
        return replace(self, apart=apart, corrected=view.corrections_apart())


class _RankedMatch(NamedTuple):
    """One candidate: its place in its index, and its score."""

    kind: HitKind
    place: int
    score: float
    relevance: float
    moved: float = 0.0  # by `rank.newest_first`


@dataclass(frozen=True, slots=True)
class _Scores:
    """The documents of one kind, scored: the parts of each score, and the evidence that it bears on the question."""

    parts: dict[str, Floats]
    seen: Comparison | None
    covered: Floats


def search(
    view: ReadView,
    question: str,
    *,
    now: datetime,
    kinds: Sequence[HitKind] = KINDS,
    limit: int = 10,
    min_relevance: float = 0.0,
    gate: float = 0.0,
    conversations: Collection[str] | None = None,
    embedder: Embedder | None = None,
    question_vector: NDArray[np.float32] | None = None,
    previous: Embedder | None = None,
    cache: IndexCache | None = None,
    explain: bool = False,
    window: tuple[int, int] | None = None,
    before_seq: int | None = None,
    newest_first: bool = False,
    called: Callable[[str], Collection[tuple[str, str]]] = lambda _: (),
    language: str | None = None,
) -> list[Hit]:
    """
    Return the *limit* documents in the view's scope that best answer *question*; without vectors words alone decide.

    Args:
        view: one snapshot of one user's memory, and the scope that bounds the search.
        question: in the user's words.
        now: what "yesterday" in the question is measured from.
        kinds: which of ``fact``, ``message`` and ``summary`` to look for.
        limit: hits at most.
        min_relevance: leave out hits below it; a turn needs it by its own words and meaning.
        gate: find nothing unless the best hit has this relevance; other facts need half of it, turns a tenth.
        conversations: only messages and summaries of these, and facts that rest on one of them.
        embedder: whose vectors to compare; ``None`` for words alone.
        previous: the embedder before this one; what only it has seen yet is compared by its vectors.
        question_vector: of the unchanged *question*; not used when it names a participant, whose name misleads.
        cache: where indexes are kept between searches; ``None`` reads them anew.
        explain: fill ``Hit.parts`` with the components of the score.
        window: only what ends at these messages of the scope's conversation, first and last included; no facts.
        before_seq: of the scope's conversation only what ends before this message; all of the others.
        newest_first: for a question about what holds now, near-equal first turns newest first; not between named users.
        called: finds the addresses of a name that the question asks for: category and key, no key being every one.
        language: ISO 639-1 of the question's words; ``None`` lets the words decide.

    Raises:
        BadInput: *window* or *before_seq* is given, and the scope names no conversation.
    """
    bounds = _Filters(conversations, window, before_seq, min_relevance, gate, limit).check(view)
    if limit <= 0 or not question.strip():
        return []
    question, stamp, embedders = _shorten(question), view.user(), [by for by in (embedder, previous) if by is not None]
    indexes = {kind: read_index(view, kind, stamp, embedders, cache) for kind in dict.fromkeys(("message", *kinds))}
    read_as, query, parts = _match_question(indexes, question, now, language)
    asked = _embed_question(query, question, embedders, question_vector) if parts else []
    scored = _score_all(view, parts, query, asked)
    chosen = _choose_facts(parts, scored, query, read_as, ids_at(view, read_as, called))
    found = _with_relevance(kinds, parts, scored, query, asked, view, bounds, chosen)
    if found and newest_first and query.asks_value and query.when is None and not indexes["message"].peer:
        found = _newest_first(found, parts[0], query, scored, asked, view)
    return _hits(view, found, indexes, scored, explain)


_Indexes = dict[HitKind, Index]


def _match_question(
    indexes: _Indexes, question: str, now: datetime, language: str | None
) -> tuple[str, Query, list[_KindMatches]]:
    """Return the question as it is read, analyzed, its spelling corrected where no text holds a word, and the documents that hold its words."""
    question = as_of_user(question, indexes["message"], indexes.get("fact"))
    names = indexes["message"].names
    query = parse_question(question, names=names, now=now, language=language)
    parts = _match_words(indexes, query)
    held = {at for part in parts for at, match in enumerate(part.matches) if len(match.places)}
    for name in names_without_text(question, query, held) if indexes["message"].peer else ():
        if known := participant_meant(name, names):
            question = re.sub(rf"\b{re.escape(name)}\b", known, question)
            query = parse_question(question, names=names, now=now, language=language)
            parts = _match_words(indexes, query)
    corrected = _correct_spelling(indexes, query, parts)
    return (question, query, parts) if corrected is None else (question, corrected, _match_words(indexes, corrected))


def _match_words(indexes: _Indexes, query: Query) -> list[_KindMatches]:
    """The documents of every kind that is not empty, with the words of the question in them."""
    return [_KindMatches(kind, index, find_matches(index, query)) for kind, index in indexes.items() if len(index)]


def _correct_spelling(indexes: _Indexes, query: Query, parts: Sequence[_KindMatches]) -> Query | None:
    """Return the question with the words that it may have misspelled beside those that this memory does not hold."""
    aliases = frozenset(term for index in indexes.values() for alias, _ in index.aliases for term in alias)
    meant: dict[tuple[str, ...], tuple[str, ...]] = {}
    for at, word in enumerate(dict.fromkeys(query.terms)):
        unknown = aliases.isdisjoint(word) and not any(len(part.matches[at].places) for part in parts)
        if not unknown or len(word[0]) < LEAST_LETTERS or not word[0].isalpha():
            continue
        start = word[0][:2]
        own = [part for index in indexes.values() for part in index.parts if not part.partition.shared_only]
        known = {term for part in own for term in part.words.beginning(start)}
        allowed = [term for term in sorted(known | aliases) if term.startswith(start)]
        if near := nearest_spellings(word[0], allowed, _stems(common_words()) if allowed else ()):
            meant[word] = (*word, *near)
    if not meant:
        return None
    corrected = tuple(meant.get(word, word) for word in query.terms)
    parts_of_it = tuple(frozenset(meant.get(word, word) for word in part) for part in query.parts)
    return replace(query, terms=corrected, parts=parts_of_it)


@lru_cache(maxsize=2)
def _stems(words: frozenset[str]) -> frozenset[str]:
    """Return the stems of common words, which are no misspellings of one another."""
    return frozenset(terms(" ".join(sorted(words)), "en"))


def search_recent(
    view: ReadView,
    question: str,
    *,
    now: datetime,
    last_n: int,
    k: int,
    embedder: Embedder | None = None,
    question_vector: NDArray[np.float32] | None = None,
    cache: IndexCache | None = None,
    min_relevance: float = 0.0,
) -> list[Hit]:
    """Return the *k* messages that best answer *question* among the last *last_n* of the scope's conversation, best first."""
    row = view.conversation()
    if row is None or last_n <= 0:
        return []
    return search(
        view,
        question,
        now=now,
        kinds=("message",),
        limit=k,
        min_relevance=min_relevance,
        embedder=embedder,
        question_vector=question_vector,
        cache=cache,
        window=(row.next_seq - last_n, row.next_seq - 1),
    )


def _shorten(question: str) -> str:
    """*question*, or its two ends where it is very long."""
    return question if len(question) <= 2 * _END_CHARS else f"{question[:_END_CHARS]} {question[-_END_CHARS:]}"


def _embed_question(
    query: Query, question: str, embedders: Sequence[Embedder], given: NDArray[np.float32] | None
) -> list[_EmbeddedQuestion]:
    """The question, as it is put to each embedder; not to one for which it has no words."""
    asked = []
    same = query.text == " ".join(question.split())
    for slot, embedder in enumerate(embedders):
        vector = given if given is not None and same and slot == 0 else embedder.embed([query.text])[0]
        if vector.any():
            asked.append(_EmbeddedQuestion(slot, embedder, vector))
    return asked


def _score_all(
    view: ReadView, parts: Sequence[_KindMatches], query: Query, asked: Sequence[_EmbeddedQuestion]
) -> dict[HitKind, _Scores]:
    """Score every document; messages come first in *parts* and set the scale."""
    if not parts:
        return {}
    background = parts[0] if parts[0].kind == "message" else max(parts, key=lambda part: len(part.index))
    holding = [len(match.places) for match in background.matches]
    raws = []
    for part in parts:
        words = rank.bm25(part.index, part.matches, background.index, holding)
        raws.append(rank.RawScores(words, _compare_vectors(view, part, words, asked)))
    seen = (
        asked[0].embedder.thresholds if any(raw.seen is not None and raw.seen.present.any() for raw in raws) else None
    )
    weight = seen.bm25_weight if seen else 1.0
    scale = rank.measure_scale(raws, seen.recall_min if seen else 0.0)
    scored: dict[HitKind, _Scores] = {}
    for part, raw in zip(parts, raws, strict=True):
        match = rank.combine_match(raw if seen else replace(raw, seen=None), scale, weight)
        if part.kind == "message":
            found = rank.rank_messages(part.index, query, part.matches, match, weight)
        elif part.kind == "fact":
            said = scored.get("message")
            found = rank.rank_facts(
                part.index, query, match, background.index if said else None, said.parts if said else {}
            )
        else:
            found = rank.rank_summaries(part.index, query, match)
        share = covered(part.matches, holding, len(background.index), len(part.index))
        scored[part.kind] = _Scores(found, raw.seen if seen else None, share)
    return scored


def _compare_vectors(
    view: ReadView, part: _KindMatches, words: Floats, asked: Sequence[_EmbeddedQuestion]
) -> Comparison | None:
    """How near the documents of one kind are to the question, by each embedder that has seen some of them."""
    found: list[Comparison] = []
    for question in asked:
        held = part.index.vectors[question.slot]
        if isinstance(held, Vectors):
            found.append(compare_exactly(held, question.vector))
            continue
        said = np.flatnonzero(words)
        best = said[np.argsort(-words[said], kind="stable")[:BEST_BY_WORDS]]
        read = partial(read_vectors, view, part.index, question.embedder)
        found.append(held.compare(question.vector, best, read))
    return reduce(merge_comparisons, found) if found else None


@dataclass(frozen=True, slots=True)
class _ChosenFacts:
    """The facts called by an alias or an address, those that answer a part in which nothing is called, and those of others."""

    called: Bools
    named: Bools
    apart: Bools
    others: Bools

    def relevance(self, place: int, rated: float, best: float) -> float:
        """Return the relevance of a fact that is *rated* by its score, in a search whose best hit has *best*."""
        if self.called[place] or self.named[place]:
            return max(rated, CALLED)
        if self.apart[place]:
            return max(rated, best)
        return 0.0 if self.called.any() else rated * OF_OTHERS if self.others[place] else rated


def _choose_facts(
    parts: Sequence[_KindMatches], scored: dict[HitKind, _Scores], query: Query, question: str, ids: Collection[str]
) -> _ChosenFacts | None:
    """Lift the facts that the question calls by an alias, or that are *ids*; return what else names the facts that it means."""
    part = next((part for part in parts if part.kind == "fact"), None)
    if part is None:
        return None
    places, words = find_aliases(query, part.index.aliases)
    called, named, apart = np.zeros((3, len(part.index)), np.bool_)
    called[list(places)], named[[at for at, ref in enumerate(part.index.refs) if ref in ids]] = True, True
    if places or ids:
        scored["fact"].parts["called"] = rank.DEFAULTS.called * (called | named).astype(np.float64)
    background = parts[0] if parts[0].kind == "message" else part
    weights = rank.word_weights(background.matches, len(background.index))
    asked = list(dict.fromkeys(query.terms))
    for wanted in query.parts if len(query.parts) > 1 else ():
        if words.isdisjoint(wanted):
            row = [at for at, word in enumerate(asked) if word in wanted]
            apart |= rank.best_of_part(row, part.matches, weights, len(part.index))
    others = places_of_others(part.index, part.matches, query, question)
    scored["fact"].parts["others"] = rank.DEFAULTS.others * others.astype(np.float64)
    return _ChosenFacts(called, named, apart, others)


def _best_of_all_kinds(
    parts: Sequence[_KindMatches], scored: dict[HitKind, _Scores], view: ReadView, bounds: _Filters
) -> list[_RankedMatch]:
    """The best documents of each kind in one list; a fact before a message before a summary among equals."""
    found: list[_RankedMatch] = []
    for part in parts:
        score = rank.total(scored[part.kind].parts)
        best = _best(score, _mask(part, view, bounds), bounds.limit)
        found += [_RankedMatch(part.kind, place, float(score[place]), 0.0) for place in best]
    return sorted(found, key=lambda hit: (-hit.score, KINDS.index(hit.kind)))


def _with_relevance(
    kinds: Collection[HitKind],
    parts: Sequence[_KindMatches],
    scored: dict[HitKind, _Scores],
    query: Query,
    asked: Sequence[_EmbeddedQuestion],
    view: ReadView,
    bounds: _Filters,
    chosen: _ChosenFacts | None,
) -> list[_RankedMatch]:
    """Return the best of *kinds* that are as relevant as the caller wants, each with its relevance."""
    found = _best_of_all_kinds([part for part in parts if part.kind in kinds], scored, view, bounds)
    if not found:
        return []
    share, cosines, first, match = 0.0, list[Floats](), -np.inf, 0.0
    for part in parts:  # of all kinds that were read, so that a fact is as relevant whatever is asked for beside it
        allowed, of = _mask(part, view, bounds), scored[part.kind]
        share = max(share, float(of.covered[allowed].max(initial=0.0)))
        if of.seen is not None:
            cosines.append(of.seen.cosine[allowed & of.seen.present])
        # A wish for all replies is no evidence of what the question is about, and a fact about another is as good as any.
        score = rank.total({name: one for name, one in of.parts.items() if name not in ("standing", "others")})
        for place in _best(score, allowed, 1):
            if score[place] > first:
                first, match = float(score[place]), float(of.parts["words"][place] + of.parts["meaning"][place])
    by, seen, span = RELEVANCE_BY_WORDS, np.zeros(0), (0.0, 1.0)
    if cosines:
        by, seen, limits = RELEVANCE, np.concatenate(cosines), asked[0].embedder.thresholds
        span = (limits.recall_min, limits.merge)
    near = rank.measure_nearness(seen, *span)
    own = partial(by.best, stranger=_about_stranger(query, parts, view), documents=len(parts[0].index))
    most = own(match, near(float(seen.max(initial=0.0))), share)
    sure = by.of(most, 0.0, fact=False)
    if sure < bounds.gate:  # what is called by its name is meant all the same
        meant = [] if chosen is None else np.flatnonzero(chosen.called | chosen.named).tolist()
        found = [hit for hit in found if hit.kind == "fact" and hit.place in meant]
    lead = min(first, max((hit.score for hit in found), default=first))
    least = {kind: bounds.gate * (REST if kind == "fact" else REST_OF_TURNS) for kind in KINDS}
    rated = []
    for hit in found:
        relevance = by.of(most, first - hit.score, fact := hit.kind == "fact")
        relevance = chosen.relevance(hit.place, relevance, sure) if fact and chosen is not None else relevance
        if relevance < least[hit.kind]:
            continue
        if not fact and hit.score < lead:  # turns around an answer may bear on nothing by themselves
            of = scored[hit.kind]
            cosine = 0.0 if of.seen is None else float(of.seen.cosine[hit.place])
            match = float(of.parts["words"][hit.place] + of.parts["meaning"][hit.place])
            alone = own(match, near(cosine), float(of.covered[hit.place])) + by.beside
            relevance = min(relevance, rank.share_of(alone))
        if relevance >= bounds.min_relevance:
            rated.append(_RankedMatch(hit.kind, hit.place, hit.score, relevance, hit.moved))
    return rated[: bounds.limit]


def _about_stranger(query: Query, parts: Sequence[_KindMatches], view: ReadView) -> bool:
    """Return whether the question is about a person whom no text names, and who is not the user."""
    if not query.others or not query.others.isdisjoint(re.findall(r"\w+", view.scope.user.lower())):
        return False
    words = [place for place, word in enumerate(Counter(query.terms)) if not query.others.isdisjoint(word)]
    return not any(len(part.matches[place].places) for part in parts for place in words)


def _mask(part: _KindMatches, view: ReadView, bounds: _Filters) -> Bools:
    """Which documents the caller's bounds leave."""
    index, scope, window = part.index, view.scope, bounds.window
    allowed = np.ones(len(index), np.bool_)
    if bounds.conversations is not None and part.kind == "fact":
        said = index.sources
        wanted = [number for number, (_, name) in enumerate(said.talks) if name in bounds.conversations]
        allowed &= np.isin(np.arange(len(index)), said.place[np.isin(said.talk, wanted)])
    elif bounds.conversations is not None:
        wanted = [number for number, (_, name) in enumerate(index.conversations) if name in bounds.conversations]
        allowed &= np.isin(index.conversation, wanted)
    if scope.conversation is not None:
        here, talks = ("", scope.conversation), enumerate(index.conversations)
        hidden = [n for n, talk in talks if (talk[1] not in here if part.kind == "fact" else talk in bounds.apart)]
        allowed &= ~np.isin(index.conversation, hidden)
    for talk, seq in bounds.corrected:
        if talk in index.conversations:
            allowed &= ~((index.conversation == index.conversations.index(talk)) & (index.seq == seq))
    own = np.zeros(len(index), np.bool_)
    if part.kind != "fact" and (scope.subject, scope.conversation) in index.conversations:
        own = index.conversation == index.conversations.index((scope.subject, scope.conversation))
    if window is not None:
        allowed &= own & (index.seq >= window[0]) & (index.seq <= window[1])
    if bounds.before_seq is not None:
        allowed &= ~(own & (index.seq >= bounds.before_seq))
    return allowed


def _best(score: Floats, allowed: Bools, limit: int) -> list[int]:
    """Places of the *limit* best allowed documents; earlier ones first among equals."""
    places = np.flatnonzero(allowed)
    values = score[places]
    if len(places) > limit:
        least = np.partition(values, len(values) - limit)[len(values) - limit]
        places, values = places[values >= least], values[values >= least]
    best: list[int] = places[np.argsort(-values, kind="stable")][:limit].tolist()
    return best


def _newest_first(
    found: list[_RankedMatch],
    part: _KindMatches,
    query: Query,
    scored: dict[HitKind, _Scores],
    asked: Sequence[_EmbeddedQuestion],
    view: ReadView,
) -> list[_RankedMatch]:
    """The first messages among *found*, as `rank.newest_first` orders them; each takes the score of its new place."""
    slots = [at for at, hit in enumerate(found) if hit.kind == "message"][: rank.NEWEST]
    if len(slots) < 2:
        return found
    places = np.array([found[slot].place for slot in slots], np.int64)
    by_place, out = {found[slot].place: found[slot] for slot in slots}, list(found)
    same = _same_thing(part, places, query, scored["message"], asked, view)
    ordered = rank.newest_first(places.tolist(), part.index, same)
    for slot, place in zip(slots, ordered, strict=True):
        moved = found[slot].score - by_place[place].score
        out[slot] = by_place[place]._replace(score=by_place[place].score + moved, moved=moved)
    return out


def _same_thing(
    part: _KindMatches,
    places: Ints,
    query: Query,
    scores: _Scores,
    asked: Sequence[_EmbeddedQuestion],
    view: ReadView,
) -> Bools:
    """
    Return for each two of the messages whether the second speaks of what the first does, shape (k, k).

    It must hold every word of the question that the first holds, and be near to it in meaning (for what holds now) or
    differ from it in few words. Where the first holds only some of the question's words, turns word the thing in many
    ways: then the names of the question must be in the second, and the first three are looked at.
    """
    index, size = part.index, len(places)
    holds = np.array([np.isin(places, match.places) for match in part.matches], np.bool_).reshape(-1, size)
    bound, named = (
        ~(held[:, :, None] & ~held[:, None, :]).any(axis=0)
        for held in (holds, holds[[not query.capitalized.isdisjoint(word) for word in Counter(query.terms)]])
    )
    alike = np.zeros((size, size), np.bool_)
    if asked and query.asks_present:
        held = index.vectors[asked[0].slot]
        if isinstance(held, Vectors):
            codes, scale = held.codes[places], held.scale[places]
        else:
            codes, scale = read_vectors(view, index, asked[0].embedder, places)
        vectors = codes.astype(np.float32) * scale[:, None]
        alike = vectors @ vectors.T >= rank.ALIKE
    loose = named & alike & (scores.covered[places] < rank.WORDED)[:, None]
    loose[:, rank.NEWEST_LOOSE :] = False
    bound &= np.asarray(holds.any(axis=0))[:, None]
    unlike = bound & ~(alike | loose)
    np.fill_diagonal(unlike, False)
    same: Bools = loose | bound & (alike | _same_frames(view, index, places, unlike))
    same[:, scores.parts["asked"][places] < 0] = False  # the question itself gives no value
    return same


def _same_frames(view: ReadView, index: Index, places: Ints, wanted: Bools) -> Bools:
    """Return for each *wanted* two of the messages whether their words are mostly the same in the same order."""
    frames = np.zeros_like(wanted)
    if not wanted.any():
        return frames
    rows = index.rows(places)
    texts = view.texts(rows)
    words = [rank.frame_words(texts.get((row.kind, row.doc), "")) for row in rows]
    for one, other in np.argwhere(wanted).tolist():
        frames[one, other] = rank.same_frame(words[one], words[other]) >= rank.FRAME
    return frames


def _hits(
    view: ReadView,
    found: Sequence[_RankedMatch],
    indexes: _Indexes,
    scored: dict[HitKind, _Scores],
    explain: bool,
) -> list[Hit]:
    rows: dict[tuple[HitKind, int], DocRow] = {}
    parts: dict[tuple[HitKind, int], dict[str, float]] = {}
    for kind in {hit.kind for hit in found}:
        places = np.array([hit.place for hit in found if hit.kind == kind], np.int64)
        rows |= {(kind, place): row for place, row in zip(places.tolist(), indexes[kind].rows(places), strict=True)}
        if not explain:
            continue
        names, told = tuple(scored[kind].parts), [values[places].tolist() for values in scored[kind].parts.values()]
        for place, values in zip(places.tolist(), zip(*told, strict=True), strict=True):
            parts[kind, place] = {name: value for name, value in zip(names, values, strict=True) if value}
    texts = view.texts(rows[hit.kind, hit.place] for hit in found)
    hits = []
    for hit in found:
        row, known = rows[hit.kind, hit.place], parts.get((hit.kind, hit.place), {})
        if (row.kind, row.doc) not in texts:
            continue
        if explain and hit.moved:
            known["newest"] = hit.moved
        hits.append(
            Hit(
                kind=hit.kind,
                id=row.ref or f"{row.conversation}/{row.seq}",
                text=texts[row.kind, row.doc],
                score=hit.score,
                at=from_ms(row.at),
                conversation=row.conversation,
                seq=row.seq,
                parts=known,
                speaker=row.speaker,
                subject=row.subject,
                relevance=hit.relevance,
            )
        )
    return hits


def is_current(row: FactRow, now_ms: int) -> bool:
    """Whether a fact is live and its own words did not set an end that has passed."""
    return row.fact.live and (row.expires_at is None or row.expires_at > now_ms)


def facts_held_at(rows: Sequence[FactRow], as_of_ms: int, known_at_ms: int) -> list[Fact]:
    """Return the facts that held at one moment, as it was known at another; by address."""
    held = []
    for row in rows:
        fact = row.fact
        if to_ms(fact.recorded_at) > known_at_ms or to_ms(fact.valid_from) > as_of_ms:
            continue
        end = to_ms(fact.valid_to) if fact.valid_to and (row.ended_at or 0) <= known_at_ms else row.expires_at
        if end is None or end > as_of_ms:
            held.append(fact)
    return sorted(held, key=lambda fact: (fact.subject, fact.category, fact.key, fact.value))


def was_there(view: ReadView, hit: Hit, at_ms: int) -> bool:
    """Whether a hit had been said, or held, at an earlier time."""
    if hit.kind == "fact":
        row = view.fact(hit.id)
        return row is not None and to_ms(row.fact.valid_from) <= at_ms
    return hit.at is not None and to_ms(hit.at) <= at_ms


def without_expired(view: ReadView, hits: Sequence[Hit], now_ms: int) -> list[Hit]:
    """*hits* without facts whose own words set an end that has passed, and those of other conversations' own."""
    if not any(hit.kind == "fact" for hit in hits):
        return list(hits)
    expired = view.expired(now_ms)

    def holds(hit: Hit) -> bool:
        return hit.id not in expired and (not hit.conversation or view.fact(hit.id) is not None)

    return [hit for hit in hits if hit.kind != "fact" or holds(hit)]


def with_replacements(view: ReadView, hits: Sequence[Hit]) -> list[Hit]:
    """*hits*, and on turns that once stated what is not believed any more what replaced it."""
    said = {(hit.subject, hit.conversation, hit.seq): hit.text for hit in hits if hit.kind == "message"}
    before = {(subject, name, seq - 1) for subject, name, seq in said}
    notes: dict[TurnKey, list[str]] = {}
    past = view.past_facts_of(sorted(said.keys() | before)) if said else []
    chains = view.chains(fact_id for _, fact_id in past)
    replacement = cache(partial(_replacement, chains, view.at(None, None).consent() if past else [], {}))
    for message, fact_id in past:
        note = replacement(fact_id)
        after = (message[0], message[1], message[2] + 1)
        echoes = note and after in said and _repeats(said[after], chains.get(fact_id))
        for key in (message, after) if echoes else (message,):
            if note and note not in notes.setdefault(key, []):
                notes[key].append(note)
    return [
        replace(hit, replaced_by="; ".join(notes[hit.subject, hit.conversation, hit.seq]))
        if hit.kind == "message" and notes.get((hit.subject, hit.conversation, hit.seq))
        else hit
        for hit in hits
    ]


def _repeats(text: str, past: FactRow | None) -> bool:
    """Whether a reply takes up the value of the fact that the turn before it stated."""
    if past is None:
        return False
    words = terms(past.fact.key if past.fact.value in ("true", "false") else past.fact.value or past.fact.text)
    return bool(words) and set(words) <= set(terms(text))


def with_changes(view: ReadView, summaries: Sequence[Summary], redact: Callable[[str], str]) -> list[Summary]:
    """*summaries* of the view's conversation; those that say what is not believed any more end in a note of what is."""
    past = view.past_facts_in(max(summary.end_seq for summary in summaries)) if summaries else []
    if not past:
        return list(summaries)
    stems = cache(lambda text: frozenset(terms(text)))
    seqs, told = [seq for seq, _, _ in past], list[list[tuple[str, str]]]()
    for summary in summaries:
        inside = past[bisect_left(seqs, summary.start_seq) : bisect_right(seqs, summary.end_seq)]
        said = stems(summary.text) if inside else frozenset()
        told.append([(fact_id, words) for _, fact_id, words in inside if stems(words) and stems(words) <= said])
    chains = view.chains(fact_id for inside in told for fact_id, _ in inside)
    replacement = cache(partial(_replacement, chains, view.at(None, None).consent(), {}))
    found = []
    for summary, held in zip(summaries, told, strict=True):
        said, changed = stems(summary.text) if held else frozenset(), []
        for fact_id, words in held:
            note = replacement(fact_id).rstrip(".")
            if note and not stems(note) <= said:  # it tells of the change itself
                changed.append(f"{words}: {note}")
        note = redact("; ".join(dict.fromkeys(changed)))
        found.append(replace(summary, text=f"{summary.text} (since changed: {note})") if note else summary)
    return found


def without_changed(view: ReadView, summaries: Sequence[Summary]) -> list[Summary]:
    """
    *summaries* of the view's conversation without the sentences that say what is not believed any more.

    Above the conversation that they are from nobody needs them: what holds instead is among the facts.  A sentence that tells of the
    change itself stays, and so does what was found, taken and fed on its day: it is how things went.
    """
    past = view.past_facts_in(max(summary.end_seq for summary in summaries)) if summaries else []
    if not past:
        return list(summaries)
    stems = cache(lambda text: frozenset(terms(text)))
    found = []
    for summary in summaries:
        inside = [(fact_id, words) for seq, fact_id, words in past if summary.start_seq <= seq <= summary.end_seq]
        gone = _said_replaced(view, inside, "\n".join((summary.text, *summary.themes)), stems)
        text = without_sentences(summary.text, gone) if gone else summary.text
        if text:
            themes = [theme for theme in summary.themes if not says_replaced(theme, gone)]
            found.append(replace(summary, text=text, themes=tuple(themes)))
    return found


def without_changed_lines(view: ReadView, lines: Sequence[StoryLine]) -> list[StoryLine]:
    """Return the lines of the story of the view's subject in the same way; one that has no other sentence goes as a whole."""
    past = view.past_facts_about() if lines else []
    gone = _said_replaced(
        view, past, "\n".join(line.text for line in lines), cache(lambda text: frozenset(terms(text)))
    )
    left = [(line, without_sentences(line.text, gone) if gone else line.text) for line in lines]
    return [replace(line, text=text) for line, text in left if text]


def _said_replaced(
    view: ReadView, past: Sequence[tuple[str, str]], text: str, stems: Callable[[str], frozenset[str]]
) -> list[tuple[frozenset[str], frozenset[str]]]:
    """Return the words of past facts that *text* may say, each with those of what replaced it; others cost no query."""
    said = stems(text) if past else frozenset()
    inside = [(fact_id, stems(words)) for fact_id, words in past if stems(words) and stems(words) <= said]
    if not inside:
        return []
    chains = view.chains(id_ for id_, _ in inside)
    replacement = partial(_replacement, chains, view.at(None, None).consent(), {})
    notes = {(old, replacement(fact_id)) for fact_id, old in inside if not _is_course(chains.get(fact_id))}
    return [(old, stems(note)) for old, note in notes if note]


def _is_course(row: FactRow | None) -> bool:
    """Whether a past fact is a step of how things went with a subject, true of its day: a result, a dose, what was seen."""
    steps = ("health", "medication", "food")
    of_patient = row and row.fact.subject != SELF and (row.fact.kind == "statement" or row.fact.category in steps)
    return bool(of_patient and row and row.fact.ended_because != "never_true")


def _replacement(
    chains: Mapping[str, FactRow], chosen: Sequence[ConsentRow], ends: dict[str, tuple[Fact, bool]], fact_id: str
) -> str:
    """Return what is believed in place of a past fact; empty where that is unknown, paused or the same again."""
    if (row := chains.get(fact_id)) is None:
        return ""
    newest, path = row.fact, []
    while newest.id not in ends and newest.superseded_by and (after := chains.get(newest.superseded_by)):
        path.append(newest)
        newest = after.fact
    newest, replaced = ends.get(newest.id, (newest, False))
    for one in reversed(path):  # corrected counts as well; a sentence that was merged into another still holds
        replaced |= one.ended_because in ("replaced", "never_true")
        ends[one.id] = newest, replaced  # each step of a long chain is taken once
    if effective_consent(chosen, newest.subject) != "active":
        return ""
    if newest.live:
        return newest.text if replaced and newest.text != row.fact.text else ""
    return {"retracted": NO_LONGER, "never_true": NEVER}.get(newest.ended_because, "")
