"""PrecisionMemBench: files in their format with words of our own, and the rules by which a case passes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from holdfast import Memory
from holdfast.bench.datasets import BadData
from holdfast.bench.published import (
    Harness,
    HoldfastSearch,
    build_precision_report,
    load_precision,
    run_cases,
    run_sessions,
)
from holdfast.cli import main
from holdfast.errors import BadInput


def belief(id: str, content: str, *aliases: str, **more: Any) -> dict[str, Any]:
    name = id.replace("-", "_")
    shape = {"type": "entity", "scope": ["domain:kitchen"], "pinned": False, "superseded_by": None, "resolved_at": None}
    given = {"_id": id, "user_id": "cook", "canonical_name": name, "aliases": list(aliases), "content": content}
    return {**shape, **given, "why_it_matters": "Shapes the menu.", **more}


BELIEFS = [
    belief("oven", "Bakes in a combination oven with steam.", "combi"),
    belief("mixer", "Kneads with a planetary mixer.", "planetary"),
    belief("knives", "Keeps the knives on a magnet.", pinned=True),
    belief("gas", "Previously cooked on gas. Replaced by induction.", "gas hob"),
    belief("menu", "Debating a shorter menu.", "card", type="open_question", pinned=True),
    belief("pantry", "The pantry feeds the oven.", "larder", type="relation", participants=["oven", "menu"]),
    belief("garden", "Grows rosemary behind the house.", "herbs", scope=["domain:garden"]),
    belief("other", "Fries everything.", "combi", user_id="rival"),
]


def case(id: str, query: str, only: Sequence[str], **more: Any) -> dict[str, Any]:
    shape = {"caseId": id, "category": "Alias resolution", "scope": ["domain:kitchen"], "query": query}
    return {**shape, "expect": {"relevantBeliefs": {"shouldOnlyInclude": list(only)}}, **more}


CASES = [
    case("alias", "is the combi free?", ["oven"]),
    case("typing-error", "the planetray setting", ["mixer"]),
    case("past", "when was the gas hob cleaned?", []),
    case("empty", "", [], category="Design boundary cases"),
    case("stranger", "combi?", [], userId="guest", category="Cold start behavior"),
]
SESSION = {
    "caseId": "evening",
    "turns": [
        {
            "turnIndex": 0,
            "scope": ["domain:kitchen"],
            "userMessage": "Is the Rational ready?",
            "updateBeliefAtTurn": {"beliefId": "oven", "addAliases": ["Rational"]},
            "expect": {"relevantBeliefs": {"mustExclude": ["mixer", "garden"]}},
        },
        {
            "turnIndex": 1,
            "scope": ["domain:kitchen"],
            "userMessage": "And is the Rational ready now?",
            "expect": {"relevantBeliefs": {"shouldOnlyInclude": ["oven"]}, "noiseCheck": {"mustNotSurface": ["mixer"]}},
        },
    ],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "fixtures").mkdir()
    reports = tmp_path / "test-results" / "baseline"
    reports.mkdir(parents=True)
    for name, data in (("beliefs.seed", BELIEFS), ("retrieval.cases", CASES), ("session-retrieval.cases", [SESSION])):
        (tmp_path / "fixtures" / f"{name}.json").write_text(json.dumps(data))
    peer = {"passTypes": {"activeRetrieval": 1}, "totalPassed": 2, "meanPrecision": 0.5, "meanRecall": 1.0}
    (reports / "retrieval-report-peer.json").write_text(json.dumps({"provider": "peer", "retrieval": peer}))
    session = {"retrieval": {"totalPassed": 0}}
    (reports / "session-retrieval-report-peer.json").write_text(json.dumps(session))
    return tmp_path


class Fixed:
    """A memory that finds the same for everything, in each scope."""

    def __init__(self, found: Mapping[str, Sequence[str]]) -> None:
        self.found = found

    def add(self, belief: Mapping[str, Any]) -> None:
        """Keep nothing."""

    def find(self, user: str, query: str, scope: str, limit: int) -> list[str]:
        return list(self.found.get(scope, ()))[:limit]


def test_memory_finds_the_belief_that_is_meant_and_no_other(folder: Path) -> None:
    files = load_precision([folder])
    with Memory() as memory:
        cases = run_cases(files, HoldfastSearch(memory))
    with Memory() as memory:
        turns = run_sessions(files, HoldfastSearch(memory))

    assert [(one.case, one.failures) for one in (*cases, *turns) if not one.passed] == []
    assert [one.kind for one in cases] == ["active", "active", "empty", "empty", "empty"]


def test_one_belief_too_many_fails_a_case_and_costs_precision(folder: Path) -> None:
    found = run_cases(load_precision([folder]), Fixed({"domain:kitchen": ["oven", "mixer"]}))

    assert (found[0].failures, found[0].precision, found[0].recall) == (("unexpected: mixer",), 0.5, 1.0)
    assert found[3].passed  # an empty query asks the memory nothing


def test_the_harness_adds_participants_and_caps_after_what_is_pinned() -> None:
    harness = Harness(Fixed({"domain:kitchen": ["pantry", "mixer"], "domain:garden": ["garden"]}))
    for one in BELIEFS:
        harness.add(one)
    whole = harness.answer("cook", ["domain:kitchen", "domain:garden"], "larder?")

    assert whole.pinned == ("knives",)
    assert whole.relevant == ("pantry", "mixer", "oven", "menu")  # the first scope alone is asked for
    assert whole.questions == ("menu",)
    assert harness.answer("cook", ["domain:kitchen"], "larder?", cap=2).relevant == ("pantry",)
    assert harness.answer("cook", ["domain:kitchen"], "larder?", cap=0).pinned == ()
    assert harness.answer("rival", ["domain:kitchen"], "larder?").relevant == ("pantry", "mixer")


@pytest.mark.parametrize(
    ("expect", "failures"),
    [
        ({"relevantBeliefs": {"mustInclude": ["oven", "gone"]}}, ("missing: gone",)),
        ({"relevantBeliefs": {"mustExclude": ["oven", "knives"]}}, ("forbidden: oven", "forbidden: knives")),
        ({"relevantBeliefs": {"maxCount": 1}}, ("2 beliefs, at most 1",)),
        ({"relevantBeliefs": {"minCount": 3}}, ("2 beliefs, at least 3",)),
        ({"relevantBeliefs": {"orderedBefore": [["mixer", "oven"]]}}, ("order: mixer before oven",)),
        ({"pinnedFacts": {"mustInclude": ["oven"], "mustExclude": ["knives"]}}, 2),
        ({"openQuestions": {"mustInclude": ["menu"]}}, ()),
        ({"personaPrelude": {"nonEmpty": True}}, ()),
        ({"personaPrelude": {"isNull": True}}, ("prelude not empty",)),
    ],
)
def test_every_assertion_of_a_case_is_checked(folder: Path, expect: Any, failures: Any) -> None:
    one = {**CASES[0], "expect": expect}
    (folder / "fixtures" / "retrieval.cases.json").write_text(json.dumps([one]))
    (found,) = run_cases(load_precision([folder]), Fixed({"domain:kitchen": ["oven", "mixer"]}))

    assert found.failures == failures or len(found.failures) == failures


def test_the_report_shows_ours_beside_theirs_and_what_failed(folder: Path) -> None:
    files = load_precision([folder])
    search = Fixed({"domain:kitchen": ["oven"]})
    report = build_precision_report(files, run_cases(files, search), run_sessions(files, search))

    assert report["systems"]["peer"] == {"active": 1, "total": 2, "precision": 0.5, "recall": 1.0, "session": 0}
    ours = report["systems"]["holdfast"]
    assert (ours["active"], ours["total"], ours["session"]) == (1, 2, 2)
    assert [one["case"] for one in report["failed"]] == ["typing-error", "past", "stranger"]


def test_the_command_prints_both_and_lists_the_failing_cases(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "precision", str(folder), "--no-embedder"]) == 0

    printed = capsys.readouterr().out
    assert "active of 2" in printed
    assert "holdfast" in printed
    assert "peer" in printed


def test_files_that_are_not_the_benchmark_are_refused(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.json"
    wrong.write_text('[{"question": "?"}]')

    with pytest.raises(BadData, match="neither a belief nor a case"):
        load_precision([wrong])
    with pytest.raises(BadInput, match="beliefs and its cases"):
        load_precision([])
