"""``list``, ``messages``, ``why``, ``edit``, ``consolidate`` and ``prune``, and hints in terms of commands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import holdfast as package
from holdfast.cli.terminal import COMMAND_HINTS

from .conftest import Holdfast

SOURCE = Path(package.__file__).parent
# Hints of what a command never does, or that are about programming only.
NOT_HERE = {
    "Budget(tokens_per_day=1_000_000)",
    "Config.load(path) reads one",
    "datetime.now(UTC), for example",
    "it needs id, dim, thresholds and embed(texts); see holdfast.embed.Embedder",
    "use datetime.now(timezone.utc), or .replace(tzinfo=…)",
    "use scope.within(...)",
    "use scope.within(…)",
}


def test_list_shows_the_users_of_the_store(holdfast: Holdfast) -> None:
    holdfast("say", "I live in Lisbon.", "--user", "ana")
    holdfast("say", "Hello.", "--user", "bo", "--bot", "cook")
    holdfast("pause", "--user", "bo", "--bot", "cook")
    out = holdfast("list").out

    assert re.search(r"^ana +1 conversation +1 fact$", out, re.M)
    assert re.search(r"^bo +1 conversation +0 facts +bot cook +paused$", out, re.M)
    assert [row["user"] for row in holdfast("list", "--json").data] == ["ana", "bo"]


def test_list_of_a_user_shows_the_conversations(holdfast: Holdfast) -> None:
    holdfast("say", "She eats at seven.", "--subject", "luna", "-c", "vet")
    holdfast("say", "I live in Lisbon.", "--reply", "Noted.")
    rows = holdfast("list", "--user", "me", "--json").data

    assert [(row["conversation"], row["subject"], row["messages"]) for row in rows] == [
        ("main", "self", 2),
        ("vet", "luna", 1),
    ]
    assert "about luna" in holdfast("list", "--user", "me").out
    assert "nobody has no conversations here" in holdfast("list", "--user", "nobody").out


def test_context_of_a_conversation_that_has_not_begun(holdfast: Holdfast) -> None:
    """A new conversation begins with what is known, and asking for it stores nothing."""
    holdfast("say", "I'm vegetarian.")
    shown = holdfast("context", "What can I cook?", "-c", "new").out

    assert "Context for the next reply of new" in shown
    assert "1 fact" in shown
    assert "this is how it would begin" in shown
    assert "vegetarian" in holdfast("context", "Hi", "-c", "new", "-o", "text").out
    assert [row["conversation"] for row in holdfast("list", "--user", "me", "--json").data] == ["main"]


def test_messages_are_shown_with_their_numbers(holdfast: Holdfast) -> None:
    for number in range(1, 4):
        holdfast("say", f"Number {number}.", "--reply", "I see.")

    assert re.findall(r"^ +(\d+)  (\w+)$", holdfast("messages").out, re.M) == [
        (str(number), "user" if number % 2 else "assistant") for number in range(1, 7)
    ]
    assert [m["seq"] for m in holdfast("messages", "--last", "2", "--json").data] == [5, 6]
    assert [m["seq"] for m in holdfast("messages", "--from", "4", "--json").data] == [4, 5, 6]


def test_why_shows_every_quote_and_earlier_values(holdfast: Holdfast) -> None:
    holdfast("say", "I live in Lisbon.")
    holdfast("say", "I moved to Porto.")
    holdfast("say", "I live in Porto.")
    out = holdfast("why", "home").out

    assert "message 2 of main" in out
    assert "message 3 of main" in out
    assert "was: Lisbon" in out
    assert "rules 1" in out
    assert [old["value"] for old in holdfast("why", "home", "--json").data["replaced"]] == ["Lisbon"]


def test_the_commands_that_why_offers_work(holdfast: Holdfast) -> None:
    holdfast("say", "I live in Lisbon.")
    offered = re.findall(r"^ +holdfast (.*?)  ", holdfast("why", "home").out, re.M)

    assert [line.split()[0] for line in offered] == ["correct", "never-true", "forget"]
    for line in offered:
        args = [word.strip("'\"") for word in re.findall(r"'[^']*'|\S+", line.replace("VALUE", "Porto"))]
        assert holdfast(*args, *(["--yes"] if args[0] == "forget" else [])).code == 0, line
        holdfast("say", "I live in Lisbon.")


def test_why_of_an_unknown_fact_suggests_the_nearest(holdfast: Holdfast) -> None:
    holdfast("say", "I live in Lisbon.")
    run = holdfast("why", "hom", "--json")

    assert run.code == 1
    assert run.error["hint"] == "did you mean 'home'?"


def test_edit_replaces_the_text_and_reads_it(holdfast: Holdfast) -> None:
    holdfast("say", "I'm allergic to shellfish.")
    run = holdfast("edit", "1", "I'm allergic to peanuts.")

    assert run.code == 0
    assert "peanuts  new" in run.out
    assert [fact["value"] for fact in holdfast("facts", "allergy", "--json").data] == ["peanuts"]
    assert "shellfish" not in holdfast("messages").out
    assert holdfast("edit", "9", "Hello", "--json").error["hint"] == COMMAND_HINTS["load() lists them"]


def test_consolidate_says_when_there_is_nothing_to_merge(holdfast: Holdfast) -> None:
    holdfast("say", "Hello.")

    assert "nothing to merge" in holdfast("consolidate").out
    assert holdfast("consolidate", "--dry-run", "--json").data["merged"] == []


def test_prune_and_archived_say_when_there_is_nothing(holdfast: Holdfast) -> None:
    holdfast("say", "I live in Lisbon.")

    assert holdfast("prune").out == "0 facts archived, 1 active\n"
    assert "no facts are archived" in holdfast("facts", "--archived").out


@pytest.mark.parametrize(
    "path",
    [
        p
        for p in sorted(SOURCE.rglob("*.py"))
        if not {"cli", "bench", "compat", "testing", "llm", "integrations"} & set(p.relative_to(SOURCE).parts)
    ],
)
def test_every_hint_that_names_a_method_has_one_that_names_a_command(path: Path) -> None:
    """The library says "resume() first", the command line "run `holdfast resume` first"."""
    hints = re.findall(r'hint="([^"]*\w\([^"]*)"', path.read_text(encoding="utf-8"))

    assert [hint for hint in hints if hint not in COMMAND_HINTS.keys() | NOT_HERE] == []
