"""
What a memory believes after chats, beside what a careful reader notes.

    python benchmarks/truth.py CASES.jsonl [...] [--show]

Every line of a file is one case, a JSON object:

    id         its name
    messages   a list of {role, content, at?, name?}; a missing time is a minute after the message before
    live       expected facts: {"has": [regular expressions, all found in one active fact], "subject": "self" or a name}
    gone       what must not be active any more, or ever: {"has": [...], "subject": ...}; `subject` may be left out in both
    subject    the subject of the conversation, `user` the user's id (both optional), `lang` its language (for the table)
    exact      true: every active fact must be one of `live`; anything else is counted as wrong

The table tells how many of the expected facts are held, how many of the forbidden ones, and how many facts are there in all.  `--show` prints each
case that fails, with all its facts.  Work is done after each exchange, without a model unless the caller of `run_case` brings one.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from holdfast import Config, Fact, Memory, Message
from holdfast.testing.clock import FakeClock

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


def words_of(fact: Fact) -> str:
    """Return the words of a fact in which expectations are looked for."""
    return f"{fact.category}/{fact.key} {fact.value} {fact.text}"


def matches(fact: Fact, wanted: dict[str, Any]) -> bool:
    """Whether a fact is the one that an expectation describes."""
    subject = wanted.get("subject")
    if subject is not None and fact.subject.casefold() != subject.casefold():
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
            if given["role"] == "assistant":
                memory.digest()
        memory.digest()
        facts = facts_of(memory, user, case)
    return judge(case, facts)


def facts_of(memory: Memory, user: str, case: dict[str, Any]) -> list[Fact]:
    """Return the active facts of a user, whatever they are about."""
    found = {fact.id: fact for fact in memory.user(user).facts()}
    if case.get("subject"):
        found.update((fact.id, fact) for fact in memory.user(user, subject=case["subject"]).facts())
    return [fact for fact in found.values() if fact.kind != "episode"]


def judge(case: dict[str, Any], facts: Sequence[Fact]) -> CaseResult:
    """Compare facts with what a case expects."""
    result = CaseResult(case["id"], facts=[f"[{fact.subject}] {words_of(fact)}" for fact in facts])
    expected = case.get("live", [])
    result.expected = len(expected)
    result.missing = [str(wanted) for wanted in expected if not any(matches(fact, wanted) for fact in facts)]
    for unwanted in case.get("gone", []):
        result.wrong += [f"[{fact.subject}] {words_of(fact)}" for fact in facts if matches(fact, unwanted)]
    result.extra = [
        f"[{fact.subject}] {words_of(fact)}" for fact in facts if not any(matches(fact, wanted) for wanted in expected)
    ]
    if case.get("exact"):
        result.wrong += [words for words in result.extra if words not in result.wrong]
    return result


def load_cases(path: Path) -> Iterable[dict[str, Any]]:
    """Return the cases of a file."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.strip():
            try:
                yield json.loads(line)
            except ValueError as error:
                raise SystemExit(f"{path}:{number}: {error}") from error


def run_file(path: Path, *, show: bool = False, run: Callable[..., CaseResult] = run_case) -> list[CaseResult]:
    """Run the cases of a file and print its line of the table."""
    results = [run(case) for case in load_cases(path)]
    expected = sum(result.expected for result in results)
    held = expected - sum(len(result.missing) for result in results)
    wrong, facts = sum(len(result.wrong) for result in results), sum(len(result.facts) for result in results)
    clean = sum(not result.missing and not result.wrong for result in results)
    share = f"{held / expected:6.1%}" if expected else "     -"
    print(f"{path.stem:24} {len(results):5} {clean:6} {expected:9} {share} {wrong:6} {facts:6}")
    for result in results if show else ():
        if result.missing or result.wrong:
            print(f"  {result.id}")
            for name in ("missing", "wrong", "facts"):
                for words in getattr(result, name):
                    print(f"    {name:8} {words}")
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--show", action="store_true", help="print the cases that fail, with their facts")
    given = parser.parse_args()
    print(f"{'file':24} {'cases':>5} {'clean':>6} {'expected':>9} {'held':>6} {'wrong':>6} {'facts':>6}")
    for path in given.files:
        run_file(path, show=given.show)


if __name__ == "__main__":
    main()
