"""
What a memory believes after chats, beside what a careful reader notes.

    python benchmarks/truth.py CASES.jsonl [...] [--show] [--answers FILE.model.jsonl]

Every line of a file is one case, a JSON object:

    id         its name
    messages   a list of {role, content, at?, name?}; a missing time is a minute after the message before
    live       expected facts: {"has": [regular expressions, all found in one active fact], "subject": "self" or a name}
    gone       what must not be active any more, or ever: {"has": [...], "subject": ...}; `subject` may be left out in both
    subject    the subject of the conversation, `user` the user's id (both optional), `lang` its language (for the table)
    exact      true: every active fact must be one of `live`; anything else is counted as wrong

A file whose lines are messages is one case with nothing expected.

The table tells how many of the expected facts are held, how many of the forbidden ones, how many facts are there in all, how many pairs of them may say
the same (one subject, and every word of one value stands in the other fact), and how many claims were refused.  `--show` prints each case that
fails, with all its facts and pairs; which pairs a careful reader would merge is judged by eye.  Work is done after each exchange, without a model unless `--answers` names a
recording of one (see `recorded.py`; `answer_by_hand.py` makes them): then every refusal is printed with its reason.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import combinations
from pathlib import Path
from types import MappingProxyType
from typing import Any

from recorded import Recording, ReplayModel, load_recordings

from holdfast import Config, Fact, Memory, Message
from holdfast.testing.fakes import FakeClock
from holdfast.text.terms import terms

START = datetime(2026, 3, 2, 18, 0, tzinfo=UTC)


@dataclass
class CaseResult:
    """What one case came to: facts expected and held, facts that are wrong, all active facts."""

    id: str
    expected: int = 0
    missing: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    extra: list[str] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)
    episodes: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)


def words_of(fact: Fact) -> str:
    """Return the words of a fact in which expectations are looked for."""
    return f"{fact.category}/{fact.key} {fact.value} {fact.text}"


def matches(fact: Fact, wanted: dict[str, Any], names: Mapping[str, Collection[str]] = MappingProxyType({})) -> bool:
    """Whether a fact is the one that an expectation describes; *names* has the names of each subject."""
    subject = wanted.get("subject")
    if subject is not None and subject.casefold() not in {fact.subject.casefold(), *names.get(fact.subject, ())}:
        return False
    return all(re.search(pattern, words_of(fact), re.IGNORECASE) for pattern in wanted["has"])


def run_case(case: dict[str, Any], **options: Any) -> CaseResult:
    """Read one case's messages, exchange by exchange, and compare the active facts with the expected ones."""
    at = START
    clock = FakeClock(at)
    user = case.get("user", "u1")
    with Memory(clock=clock, config=options.pop("config", Config()), **options) as memory:
        chat = memory.conversation("chat", user=user, subject=case.get("subject"))
        for given in case["messages"]:
            at = datetime.fromisoformat(given["at"]) if given.get("at") else at + timedelta(minutes=1)
            clock.advance(seconds=max(0.0, (at - clock()).total_seconds()))
            chat.append(Message(given["role"], given["content"], name=given.get("name"), at=at))
            if given["role"] == "assistant" or given.get("name", user).casefold() != user.casefold():
                memory.digest()
        if "llm" in options:
            chat.end()
        memory.digest()
        facts = facts_of(memory, user, case)
        names = {one.id: {name.casefold() for name in (one.name, *one.aliases)} for one in memory.user(user).subjects()}
        result = judge(case, [fact for fact in facts if fact.kind != "episode"], names)
        result.episodes = sorted(f"[{fact.subject}] {fact.text}" for fact in facts if fact.kind == "episode")
        result.refused = refusals_of(memory, user, case)
        result.twice = list(twice([fact for fact in facts if fact.kind != "episode"]))
    return result


def twice(facts: Sequence[Fact]) -> Iterator[str]:
    """Describe each pair of facts about one subject of which one's value says nothing that the other does not."""
    for one, other in combinations(
        sorted(facts, key=lambda fact: (fact.subject, fact.category, fact.key, fact.text)), 2
    ):
        if one.subject != other.subject:
            continue
        said = [frozenset(terms(fact.value if fact.kind == "attribute" else fact.text)) for fact in (one, other)]
        told = [frozenset(terms(f"{fact.value} {fact.text}")) for fact in (one, other)]
        if any(mine and mine <= theirs for mine, theirs in zip(said, reversed(told), strict=True)):
            yield f"[{one.subject}] {words_of(one)} | {words_of(other)}"


def facts_of(memory: Memory, user: str, case: dict[str, Any]) -> list[Fact]:
    """Return the active facts of a user, whatever they are about."""
    found = {fact.id: fact for fact in memory.user(user).facts()}
    if case.get("subject"):
        found.update((fact.id, fact) for fact in memory.user(user, subject=case["subject"]).facts())
    return list(found.values())


def refusals_of(memory: Memory, user: str, case: dict[str, Any]) -> list[str]:
    """Return what was read and not believed, in the order of the messages, each with its reason."""
    found = memory.user(user).rejected(limit=1000)
    if case.get("subject"):
        found += memory.user(user, subject=case["subject"]).rejected(limit=1000)
    lines = {}
    for one in sorted(found, key=lambda one: (one.candidate.seq, one.candidate.start)):
        claim = one.candidate
        what = f"{claim.category}/{claim.key} = {claim.value}" if claim.kind == "attribute" else claim.text
        source = "rules" if claim.source.startswith("rules") else "model"
        op = f"{claim.op} {claim.modality}"
        lines[f"{claim.seq}: [{claim.subject}] {op} {what} <- {claim.quote!r} ({source}): {one.reason}"] = None
    return list(lines)


def judge(
    case: dict[str, Any], facts: Sequence[Fact], names: Mapping[str, Collection[str]] = MappingProxyType({})
) -> CaseResult:
    """Compare facts with what a case expects."""
    result = CaseResult(case["id"], facts=[f"[{fact.subject}] {words_of(fact)}" for fact in facts])
    expected = case.get("live", [])
    result.expected = len(expected)
    result.missing = [str(wanted) for wanted in expected if not any(matches(fact, wanted, names) for fact in facts)]
    for unwanted in case.get("gone", []):
        result.wrong += [f"[{fact.subject}] {words_of(fact)}" for fact in facts if matches(fact, unwanted, names)]
    result.extra = [
        f"[{fact.subject}] {words_of(fact)}"
        for fact in facts
        if not any(matches(fact, wanted, names) for wanted in expected)
    ]
    if case.get("exact"):
        result.wrong += [words for words in result.extra if words not in result.wrong]
    return result


def load_cases(path: Path) -> list[dict[str, Any]]:
    """Return the cases of a file; one whose lines are messages is one case."""
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.strip():
            try:
                found.append(json.loads(line))
            except ValueError as error:
                raise SystemExit(f"{path}:{number}: {error}") from error
    return [{"id": path.stem, "messages": found}] if found and "role" in found[0] else found


def replay(path: Path, *, economy: bool = False) -> Callable[..., CaseResult]:
    """Return a `run_case` with the answers of a recording."""
    recordings = load_recordings(path, economy=economy)

    def run(case: dict[str, Any]) -> CaseResult:
        recording = recordings.get(case["id"]) or recordings.get("") or Recording()
        return run_case(case, llm=ReplayModel(recording), config=Config(economy=economy))

    return run


def print_case(result: CaseResult) -> None:
    """Print what a case came to."""
    print(f"  {result.id}")
    for name in ("missing", "wrong", "facts", "twice", "episodes", "refused"):
        for words in getattr(result, name):
            print(f"    {name:8} {words}")


def run_file(
    path: Path, *, show: bool = False, always: bool = False, run: Callable[..., CaseResult] = run_case
) -> list[CaseResult]:
    """Run the cases of a file and print its line of the table; with *always* each case, not only those that fail."""
    results = [run(case) for case in load_cases(path)]
    expected = sum(result.expected for result in results)
    held = expected - sum(len(result.missing) for result in results)
    wrong, facts = sum(len(result.wrong) for result in results), sum(len(result.facts) for result in results)
    clean = sum(not result.missing and not result.wrong for result in results)
    share = f"{held / expected:6.1%}" if expected else "     -"
    refused, pairs = (sum(len(getattr(result, name)) for result in results) for name in ("refused", "twice"))
    print(f"{path.stem:24} {len(results):5} {clean:6} {expected:9} {share} {wrong:6} {facts:6} {pairs:5} {refused:7}")
    for result in results if show else ():
        if always or result.missing or result.wrong:
            print_case(result)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--show", action="store_true", help="print the cases that fail, with their facts")
    parser.add_argument("--answers", type=Path, help="a recording of a model's answers about these chats")
    parser.add_argument("--economy", action="store_true", help="one call a chunk instead of several")
    given = parser.parse_args()
    run = replay(given.answers, economy=given.economy) if given.answers else run_case
    titles = (
        ("cases", 5),
        ("clean", 6),
        ("expected", 9),
        ("held", 6),
        ("wrong", 6),
        ("facts", 6),
        ("twice", 5),
        ("refused", 7),
    )
    print(f"{'file':24} " + " ".join(f"{title:>{width}}" for title, width in titles))
    for path in given.files:
        run_file(path, show=given.show, always=bool(given.answers), run=run)


if __name__ == "__main__":
    main()
