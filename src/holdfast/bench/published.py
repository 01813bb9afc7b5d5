"""
Two published benchmarks: PrecisionMemBench and FactConsolidation.

PrecisionMemBench asks whether a search returns the right belief, and only that one.

The benchmark (tenurehq/precisionMemBench) seeds a set of beliefs and asks for some of them by other names, with typing
errors, from another scope, or not at all; a belief too many fails a case as surely as a missing one. Its scoring, and
what its harness adds to the answer of a memory (pinned beliefs, participants of a relation, a cap), are re-implemented
here after its files ``retrieval.external.eval.test.ts``, ``session-retrieval.external.eval.test.ts``,
``baseAdapter.ts`` and ``buildRetrievalReport.ts``. The memory answers through the front door.

FactConsolidation of MemoryAgentBench, single hop, has numbered statements, some of them replaced by a later one. A memory
is right where the latest statement about what is asked stands first, without a model that reads the list.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

from ..errors import BadInput
from ..memory import Memory
from ..text import dataclass
from ..text.terms import terms
from ..types import Evidence
from .datasets import BadData, ChatLine, Sample, read_json, require
from .retrieval import OURS, BaselineRanker

# As in the harness: the most beliefs, and the most open questions, of one context.
MOST_BELIEFS, MOST_QUESTIONS = 20, 15
# Passes in these categories assert something about the structure of a memory, the rest that it is empty.
STRUCTURAL = frozenset(
    (
        "Scope disambiguation",
        "Supersession chain exclusion",
        "Type routing and open questions",
        "Budget eviction and capacity",
        "Cross-user isolation",
        "Ranking stability",
        "Persona prelude content",
    )
)
_REPORTS = ("retrieval-report-", "session-retrieval-report-")

Belief = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PrecisionFiles:
    """The public files: beliefs, single cases, session cases, and the published reports of other systems by name."""

    beliefs: tuple[Belief, ...]
    cases: tuple[Mapping[str, Any], ...]
    sessions: tuple[Mapping[str, Any], ...]
    reports: Mapping[str, Mapping[str, Any]]

    @property
    def user(self) -> str:
        """The user whose cases name no user: the one with the most beliefs."""
        return Counter(str(belief["user_id"]) for belief in self.beliefs).most_common(1)[0][0]


def load_precision(paths: Sequence[Path]) -> PrecisionFiles:
    """
    Load the public files: fixtures and reports, or the folder of the repository.

    Raises:
        BadInput: there is no file, or no beliefs or no cases are among them.
        BadData: a file is not in their shape.
    """
    beliefs: list[Belief] = []
    cases: list[Mapping[str, Any]] = []
    sessions: list[Mapping[str, Any]] = []
    reports: dict[str, Mapping[str, Any]] = {}
    for path in _json_files(paths):
        data = read_json(path)
        if isinstance(data, dict) and "retrieval" in data:
            reports[path.stem] = data["retrieval"]
            continue
        for place, item in enumerate(require(path, data, list)):
            item = require(f"{path.name}: entry {place}", item, dict)
            kind = next((key for key in ("canonical_name", "turns", "query") if key in item), "")
            if not kind:
                raise BadData(f"{path.name}: entry {place} is neither a belief nor a case", hint="give their fixtures")
            {"canonical_name": beliefs, "turns": sessions, "query": cases}[kind].append(item)
    if not beliefs or not (cases or sessions):
        hint = "give beliefs.seed.json, retrieval.cases.json and session-retrieval.cases.json, or their folder"
        raise BadInput("the benchmark needs its beliefs and its cases", hint=hint)
    return PrecisionFiles(tuple(beliefs), tuple(cases), tuple(sessions), reports)


def _json_files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        fixtures = path / "fixtures" if (path / "fixtures").is_dir() else path
        yield from (one for one in sorted(fixtures.glob("*.json")) if "embedded" not in one.name)
        reports = path / "test-results" / "baseline"
        yield from (one for one in sorted(reports.glob("*.json")) if one.name.startswith(_REPORTS))


class BeliefSearch(Protocol):
    """The three calls that the harness makes to a memory."""

    def add(self, belief: Belief) -> None:
        """Store a belief; of one that is stored, its new names."""

    def find(self, user: str, query: str, scope: str, limit: int) -> list[str]:
        """Return the ids of the beliefs that *query* is about, best first."""


class HoldfastSearch:
    """
    Beliefs as sentences that the user had remembered, with their names as aliases.

    A scope is a subject. A belief's reason (``why_it_matters``) is for the reader of a context and is not stored. Which
    belief replaced which is not given either, as the harness does not give it: the sentences have to say it.
    """

    def __init__(self, memory: Memory, *, aliases: bool = True) -> None:
        """Fill and search *memory*, which should be empty; without *aliases* the sentences have no other names."""
        self._memory, self._aliases = memory, aliases
        self._belief_of: dict[tuple[str, str, str, int], str] = {}
        self._behind = False

    def add(self, belief: Belief) -> None:
        """Remember the sentence of a belief, or again under more names."""
        self._behind = True
        user, scope = str(belief["user_id"]), str(belief["scope"][0])
        names = (str(belief["canonical_name"]).replace("_", " "), *map(str, belief["aliases"]))
        owner = self._memory.user(user, subject=scope)
        change = owner.remember(str(belief["content"]), aliases=names if self._aliases else ())
        if change.fact is not None:
            for said in change.fact.evidence:
                self._belief_of.setdefault(_place(user, said), str(belief["_id"]))

    def find(self, user: str, query: str, scope: str, limit: int) -> list[str]:
        """Return the beliefs behind the facts that a search returns."""
        if self._behind:
            self._memory.digest()
            self._behind = False
        about = self._memory.user(user, subject=scope)
        found: dict[str, None] = {}
        for hit in about.search(query, kinds=("fact",), limit=limit, min_relevance=0.35):
            for said in about.fact(hit.id).evidence:
                if (belief := self._belief_of.get(_place(user, said))) is not None:
                    found.setdefault(belief)
        return list(found)


def _place(user: str, said: Evidence) -> tuple[str, str, str, int]:
    return (user, said.home, said.conversation, said.seq)


@dataclass(frozen=True, slots=True)
class BuiltAnswer:
    """The harness's context for one query, as ids in their order."""

    pinned: tuple[str, ...]
    relevant: tuple[str, ...]
    questions: tuple[str, ...]


@dataclass
class Harness:
    """The part of the answer that the benchmark's own harness gives; see ``BaseAdapter``."""

    search: BeliefSearch
    beliefs: dict[str, Belief] = field(default_factory=dict)

    def add(self, belief: Belief) -> None:
        """Seed a belief, or one that was created during a session."""
        self.beliefs[str(belief["_id"])] = belief
        self.search.add(belief)

    def add_names(self, id: str, names: Sequence[str]) -> None:
        """Give a belief more names."""
        if (belief := self.beliefs.get(id)) is not None:
            lowered = (name.strip().lower() for name in names)
            self.add({**belief, "aliases": list(dict.fromkeys((*belief["aliases"], *lowered)))})

    def answer(self, user: str, scopes: Sequence[str], query: str, cap: int = MOST_BELIEFS) -> BuiltAnswer:
        """Build the context for one query; the memory is asked for the first scope alone."""
        questions = [one for one in self._in_scope(user, scopes) if _pinned(one) and one["type"] == "open_question"]
        pinned = [
            str(one["_id"])
            for one in self._in_scope(user, scopes)
            if _pinned(one) and one["type"] != "open_question" and not one.get("superseded_by")
        ]
        asked = self.search.find(user, query, scopes[0], cap) if query.strip() and cap > 0 else []
        found = [id for id in dict.fromkeys(asked) if id not in pinned and id in self.beliefs]
        relevant = [*found, *self._participants(user, scopes, found, {*pinned, *found})]
        return BuiltAnswer(
            tuple(pinned[:cap]),
            tuple(relevant[: max(0, cap - len(pinned[:cap]))]),
            tuple(str(one["_id"]) for one in questions[:MOST_QUESTIONS]),
        )

    def _in_scope(self, user: str, scopes: Sequence[str]) -> list[Belief]:
        return [
            one for one in self.beliefs.values() if one["user_id"] == user and not set(scopes).isdisjoint(one["scope"])
        ]

    def _participants(self, user: str, scopes: Sequence[str], found: Sequence[str], without: set[str]) -> list[str]:
        relations = [self.beliefs[id] for id in found if self.beliefs[id]["type"] == "relation"]
        named = [id for one in relations for id in one.get("participants") or () if id not in without]
        allowed = {str(one["_id"]) for one in self._in_scope(user, scopes)}
        return [id for id in named if id in allowed]


def _pinned(belief: Belief) -> bool:
    return bool(belief.get("pinned")) and not belief.get("resolved_at")


@dataclass(frozen=True, slots=True)
class PrecisionResult:
    """The result of one case or turn; precision and recall are ``None`` where they do not apply."""

    case: str
    category: str
    query: str
    failures: tuple[str, ...]
    precision: float | None
    recall: float | None

    @property
    def passed(self) -> bool:
        """Whether every assertion holds."""
        return not self.failures

    @property
    def kind(self) -> str:
        """The kind of a pass: ``active`` retrieval, ``structural``, or an answer that is ``empty`` by design."""
        if self.precision:
            return "active"
        return "structural" if self.category in STRUCTURAL else "empty"


def run_cases(files: PrecisionFiles, search: BeliefSearch) -> list[PrecisionResult]:
    """Seed the beliefs and run the single cases."""
    harness = Harness(search)
    for belief in files.beliefs:
        harness.add(belief)
    pinned = {str(one["_id"]) for one in files.beliefs if one.get("pinned") and one["user_id"] == files.user}
    return [_check_case(case, harness, files.user, pinned) for case in files.cases]


def _check_case(case: Mapping[str, Any], harness: Harness, owner: str, pinned: set[str]) -> PrecisionResult:
    user, expect = str(case.get("userId") or owner), case["expect"]
    cap = (case.get("budget") or {}).get("maxBeliefs", MOST_BELIEFS)
    built = harness.answer(user, case["scope"], case["query"], cap)
    wanted = expect.get("relevantBeliefs") or {}
    failures = [*_check_beliefs(wanted, built), *_check_sections(expect, built)]
    failures += _check_prelude(expect.get("personaPrelude") or {}, known=user == owner)
    only = wanted.get("shouldOnlyInclude")
    gold = set(only) if only is not None else set(wanted.get("mustInclude") or ()) - pinned
    hits = len(gold.intersection(built.relevant))
    precision = hits / len(built.relevant) if built.relevant else (0.0 if gold else None)
    recall = hits / len(gold) if gold else None
    return PrecisionResult(case["caseId"], case["category"], case["query"], tuple(failures), precision, recall)


def _check_beliefs(wanted: Mapping[str, Any], built: BuiltAnswer) -> Iterator[str]:
    shown, relevant = {*built.pinned, *built.relevant}, list(built.relevant)
    for id in (*(wanted.get("mustInclude") or ()), *(wanted.get("shouldInclude") or ())):
        if id not in shown:
            yield f"missing: {id}"
    yield from (f"forbidden: {id}" for id in wanted.get("mustExclude") or () if id in shown)
    if (only := wanted.get("shouldOnlyInclude")) is not None:
        yield from (f"unexpected: {id}" for id in relevant if id not in only)
        yield from (f"missing: {id}" for id in only if id not in relevant)
    if (most := wanted.get("maxCount")) is not None and len(relevant) > most:
        yield f"{len(relevant)} beliefs, at most {most}"
    if (least := wanted.get("minCount")) is not None and len(relevant) < least:
        yield f"{len(relevant)} beliefs, at least {least}"
    for first, second in wanted.get("orderedBefore") or ():
        if first not in relevant or second not in relevant or relevant.index(first) > relevant.index(second):
            yield f"order: {first} before {second}"


def _check_sections(expect: Mapping[str, Any], built: BuiltAnswer) -> Iterator[str]:
    for name, shown in (("pinnedFacts", built.pinned), ("openQuestions", built.questions)):
        section = expect.get(name) or {}
        yield from (f"missing in {name}: {id}" for id in section.get("mustInclude") or () if id not in shown)
        yield from (f"forbidden in {name}: {id}" for id in section.get("mustExclude") or () if id in shown)


def _check_prelude(expect: Mapping[str, Any], *, known: bool) -> Iterator[str]:
    """The prelude is a constant of the harness, which only the known user has; its words are as the cases want them."""
    if (expect.get("nonEmpty") or expect.get("contains")) and not known:
        yield "prelude empty"
    if expect.get("isNull") and known:
        yield "prelude not empty"


def run_sessions(files: PrecisionFiles, search: BeliefSearch) -> list[PrecisionResult]:
    """Seed the beliefs and run the session cases, turn by turn, in one memory."""
    harness = Harness(search)
    for belief in files.beliefs:
        harness.add(belief)
    results = []
    for case in files.sessions:
        for turn in case["turns"]:
            results.append(_check_turn(case["caseId"], turn, harness, files.user))
            if created := turn.get("createBeliefAtTurn"):
                harness.add(created)
            if names := (turn.get("updateBeliefAtTurn") or {}).get("addAliases"):
                harness.add_names(turn["updateBeliefAtTurn"]["beliefId"], names)
    return results


def _check_turn(case: str, turn: Mapping[str, Any], harness: Harness, user: str) -> PrecisionResult:
    expect, query = turn["expect"], turn["userMessage"]
    built = harness.answer(user, turn["scope"], query)
    wanted, shown = expect.get("relevantBeliefs") or {}, {*built.pinned, *built.relevant}
    simple = {name: wanted[name] for name in ("mustInclude", "mustExclude", "shouldOnlyInclude") if name in wanted}
    failures = [*_check_beliefs(simple, built), *_check_sections(expect, built)]
    noise = (expect.get("noiseCheck") or {}).get("mustNotSurface", ())
    failures += [f"noise: {id}" for id in noise if id in shown]
    gold = set(
        wanted["shouldOnlyInclude"] if wanted.get("shouldOnlyInclude") is not None else wanted.get("mustInclude", ())
    )
    hits = len(gold & shown)
    precision = hits / len(built.relevant) if built.relevant else None
    recall = hits / len(gold) if gold else None
    name = f"{case}:{turn['turnIndex']}"
    return PrecisionResult(name, "Session-level noise isolation", query, tuple(failures), precision, recall)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(sum(known) / len(known), 4) if known else None


def build_precision_report(
    files: PrecisionFiles, cases: Sequence[PrecisionResult], turns: Sequence[PrecisionResult]
) -> dict[str, Any]:
    """Return our results and the published ones of other systems, in one shape, and every case that failed."""
    passes = Counter(one.kind for one in cases if one.passed)
    ours = {
        "active": passes["active"],
        "total": sum(passes.values()),
        "precision": _mean([one.precision for one in cases]),
        "recall": _mean([one.recall for one in cases]),
        "session": sum(one.passed for one in turns),
    }
    theirs: dict[str, dict[str, Any]] = {}
    for stem, report in files.reports.items():
        prefix = next((one for one in reversed(_REPORTS) if stem.startswith(one)), "")
        name = stem.removeprefix(prefix) if prefix else stem
        if prefix == _REPORTS[1]:
            theirs.setdefault(name, {})["session"] = report.get("totalPassed")
            continue
        theirs.setdefault(name, {}).update(
            active=(report.get("passTypes") or {}).get("activeRetrieval"),
            total=report.get("totalPassed"),
            precision=report.get("meanPrecision"),
            recall=report.get("meanRecall"),
        )
    return {
        "benchmark": "precision",
        "cases": len(cases),
        "active_cases": sum(bool(one.recall is not None) for one in cases),
        "turns": len(turns),
        "systems": {OURS: ours, **theirs},
        "passes": dict(passes),
        "failed": [
            {"case": one.case, "category": one.category, "query": one.query, "failures": list(one.failures)}
            for one in (*cases, *turns)
            if not one.passed
        ],
    }


SIZES = ("6k", "32k", "64k", "262k")
FIRST = 5
_BATCH = 500
_START = datetime(2024, 1, 1, tzinfo=UTC)
_LINE = re.compile(r"^\d+\. (.+)$", re.MULTILINE)

Rank = Callable[[str], list[str]]


@dataclass(frozen=True, slots=True)
class Consolidation:
    """The statements of one size, in their order, and the questions with the answers of the key."""

    size: str
    statements: tuple[str, ...]
    questions: tuple[tuple[str, tuple[str, ...]], ...]

    def newest(self, question: str, answers: Sequence[str]) -> str:
        """
        Return the latest statement about what the key's answer is about; empty where no statement holds the answer.

        Statements are about the same when they are the same up to the answer. Some keys name the older of two.
        """
        words = set(terms(question))
        found: list[tuple[int, str]] = []
        for statement in self.statements:
            at = max((statement.lower().rfind(answer.lower()) for answer in answers), default=-1)
            if at > 0:
                found.append((len(words & set(terms(statement[:at]))), statement[:at]))
        if not found:
            return ""
        frame = max(found)[1]
        return [statement for statement in self.statements if statement.startswith(frame)][-1]


@dataclass(frozen=True, slots=True)
class ConsolidationScores:
    """
    Of so many questions: how often the first statement holds the key's answer, how often it is the latest one, and how
    often the latest is among the first five; ``older_keys`` counts keys that name a statement which a later one replaced.
    """

    questions: int
    keyed: int
    newest: int
    in_five: int
    older_keys: int


def load_consolidation(paths: Sequence[Path], sizes: Sequence[str] = SIZES) -> list[Consolidation]:
    """
    Load the single-hop sets of ``Conflict_Resolution.json``.

    Raises:
        BadData: no file is named, it is no such file, or it holds none of the sizes.
    """
    if len(paths) != 1:
        raise BadData("consolidation needs its one file", hint="name Conflict_Resolution.json of MemoryAgentBench")
    found = {}
    for record in require(paths[0], read_json(paths[0]), list):
        meta = require(paths[0], require(paths[0], record, dict).get("metadata"), dict)
        name = str((meta.get("qa_pair_ids") or [""])[0])
        if "_sh_" not in name:
            continue
        size = name.split("_sh_")[1].split("_")[0]
        answers = (tuple(map(str, one if isinstance(one, list) else [one])) for one in record["answers"])
        asked = tuple(zip(map(str, record["questions"]), answers, strict=True))
        found[size] = Consolidation(size, tuple(_LINE.findall(str(record["context"]))), asked)
    chosen = [found[size] for size in sizes if size in found]
    if not chosen:
        raise BadData(f"{paths[0].name} holds no single-hop set of {', '.join(sizes)}")
    return chosen


def fill(memory: Memory, data: Consolidation) -> Rank:
    """Store the statements as one user's messages, a minute apart, and return a search of them."""
    chat = memory.conversation("facts", user=data.size)
    for start in range(0, len(data.statements), _BATCH):
        said = [
            {"role": "user", "content": text, "at": _START + timedelta(minutes=start + number)}
            for number, text in enumerate(data.statements[start : start + _BATCH])
        ]
        chat.append(said)
    memory.digest()
    user = memory.user(data.size)
    return lambda question: [hit.text for hit in user.search(question, limit=FIRST, kinds=("message",))]


def rank_by_words(data: Consolidation) -> Rank:
    """Return a ranking by BM25 alone, the newest of equals first."""
    newest_first = tuple(
        ChatLine(str(number), "facts", "user", "user", text, _START)
        for number, text in reversed(list(enumerate(data.statements)))
    )
    ranker = BaselineRanker(Sample("facts", newest_first, ()), None)
    return lambda question: [data.statements[int(id)] for id in ranker.rank("bm25", question)[:FIRST]]


def score(data: Consolidation, rank: Rank, limit: int | None = None) -> ConsolidationScores:
    """Ask every question, or the first *limit*."""
    asked = data.questions[:limit]
    keyed = newest = in_five = older = 0
    for question, answers in asked:
        found, latest = rank(question), data.newest(question, answers)
        keyed += bool(found) and _holds(found[0], answers)
        newest += bool(found) and found[0] == latest
        in_five += latest in found
        older += bool(latest) and not _holds(latest, answers)
    return ConsolidationScores(len(asked), keyed, newest, in_five, older)


def _holds(statement: str, answers: Sequence[str]) -> bool:
    return any(answer.lower() in statement.lower() for answer in answers)


def format_consolidation(rows: Sequence[tuple[str, str, ConsolidationScores]]) -> Iterator[str]:
    """Format the figures as lines of text: the size, who ranked, and the shares."""
    yield f"{'tokens':8}{'':12}{'latest first':>14}{'key first':>11}{'in five':>9}{'older keys':>12}"
    for size, who, one in rows:
        shares = (one.newest / one.questions, one.keyed / one.questions, one.in_five / one.questions)
        yield f"{size:8}{who:12}{shares[0]:14.2f}{shares[1]:11.2f}{shares[2]:9.2f}{one.older_keys:12}"
