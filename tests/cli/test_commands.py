"""Each command as a user runs it: on a store with a story in it, without a store, and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import apsw
import pytest

from holdfast import Memory

from .conftest import Holdfast, said, write_jsonl

READING = [
    ("facts",),
    ("history", "dietary"),
    ("search", "fish"),
    ("context",),
    ("summaries",),
    ("digest",),
    ("jobs",),
]


@pytest.fixture
def diet(holdfast: Holdfast) -> Holdfast:
    """A store in which the user's diet has changed."""
    assert holdfast("say", "I'm vegetarian, and I live in Lisbon.", "--reply", "Noted!").code == 0
    assert holdfast("say", "I eat fish now.").code == 0
    return holdfast


def test_say_shows_what_it_learned(holdfast: Holdfast) -> None:
    run = holdfast("say", "I'm vegetarian, and I live in Lisbon.", "--no-digest")

    assert [line.split() for line in run.out.splitlines()] == [
        ["dietary", "vegetarian", "new"],
        ["home,", "lives", "in", "Lisbon", "new"],
    ]


def test_say_shows_replaced_values(holdfast: Holdfast) -> None:
    holdfast("say", "I'm vegetarian.", "--no-digest")
    run = holdfast("say", "I eat fish now.", "--no-digest")

    assert run.out.splitlines()[0].split() == ["dietary", "vegetarian", "→", "pescatarian", "replaced"]


def test_say_says_when_no_facts_were_learned(holdfast: Holdfast) -> None:
    run = holdfast("say", "What a lovely morning!", "--no-digest")

    assert run.out == "no facts learned; stored as message 1 of main\n"


def test_say_stores_the_reply(diet: Holdfast) -> None:
    with Memory("holdfast.db", embedder=None) as memory:
        stored = [(m.role, m.content) for m in memory.conversation("main", user="me").load()]

    assert stored == [
        ("user", "I'm vegetarian, and I live in Lisbon."),
        ("assistant", "Noted!"),
        ("user", "I eat fish now."),
    ]


def test_facts_show_the_quote_under_its_message(diet: Holdfast) -> None:
    lines = diet("facts", "dietary").out.splitlines()

    start = next(i for i, line in enumerate(lines) if line.startswith("dietary: pescatarian"))
    assert "replaced on" in lines[start]
    assert "--> message 3 of main" in lines[start + 1]
    assert lines[start + 3] == "3 |  I eat fish now."
    assert lines[start + 4] == "  |  ^^^^^^^^^^" + "^" * (len(lines[start + 4]) - 15)
    assert "= was: vegetarian" in lines[start + 5]
    assert '(message 1: "I\'m vegetarian")' in lines[start + 5]


def test_facts_without_quotes_are_one_line_each(diet: Holdfast) -> None:
    lines = [line for line in diet("facts", "--no-quotes").out.splitlines() if line and "about me" not in line]

    assert [line.split("  ")[0] for line in lines] == ["dietary: pescatarian", "home, lives in: Lisbon"]


def test_facts_of_one_conversation_say_whose_they_are(holdfast: Holdfast, tmp_path: Path) -> None:
    with Memory(tmp_path / "holdfast.db") as memory:
        for name, amount in (("tokyo", "$2500"), ("rome", "$900")):
            memory.conversation(name, user="me", own_facts=True).record(f"My budget is {amount}.", "Noted.")

    lines = holdfast("facts", "--no-quotes").out.splitlines()

    assert [" ".join(line.split()[:7]) for line in lines[:2]] == [
        "budget, max usd: 2500 only in tokyo",
        "budget, max usd: 900 only in rome",
    ]


def test_facts_that_hold_for_a_while_say_until_when(holdfast: Holdfast, tmp_path: Path) -> None:
    chat = [said("I'm on antibiotics until 9 January 2099.", at="2026-01-05T19:00:00Z")]
    holdfast("import", str(write_jsonl(tmp_path / "chat.jsonl", chat)))

    assert "as of 5 Jan 2026, until 9 Jan 2099" in holdfast("facts", "medication").out


def test_facts_as_of_an_earlier_time_are_those_that_were_true_then(holdfast: Holdfast, tmp_path: Path) -> None:
    chat = [
        said("I'm vegetarian.", at="2026-01-12T19:00:00Z"),
        said("I eat fish now.", at="2026-03-14T19:02:00Z"),
    ]
    holdfast("import", str(write_jsonl(tmp_path / "chat.jsonl", chat)))

    then = holdfast("facts", "--as-of", "2026-03-13", "--json").data
    that_day = holdfast("facts", "--as-of", "2026-03-14", "--json").data

    assert [fact["key"] for fact in then] == ["vegetarian"]
    assert [fact["key"] for fact in that_day] == ["pescatarian"]


def test_rejected_candidates_are_shown_with_their_reason(holdfast: Holdfast) -> None:
    holdfast("say", "I'm thinking of a 10 day trip.")
    run = holdfast("facts", "--rejected")

    assert "rejected: not-asserted" in run.out
    assert "1 |  I'm thinking of a 10 day trip." in run.out


def test_the_way_to_earlier_values_is_named_where_there_are_some(holdfast: Holdfast) -> None:
    holdfast("say", "I live with Theo and I'm allergic to bees.")
    before = holdfast("facts").out
    holdfast("say", "Theo moved out.")
    after = holdfast("facts").out

    assert "earlier values" not in before
    assert after.splitlines()[-1].endswith("earlier values: holdfast history home lives_with")
    assert "Theo" in holdfast("history", "home", "lives_with").out


def test_history_shows_every_value_in_order(diet: Holdfast) -> None:
    lines = diet("history", "dietary").out.splitlines()

    assert [line.split()[0] for line in lines if line.startswith("  ")] == ["○", "●"]
    assert "vegetarian" in lines[-2]
    assert "→ now" in lines[-1]


def test_history_of_an_unknown_category_names_the_nearest(diet: Holdfast) -> None:
    run = diet("history", "dietery")

    assert (run.code, run.out) == (1, "")
    assert "help: did you mean 'dietary'?" in run.err


def test_search_finds_the_fact_and_the_message(diet: Holdfast) -> None:
    hits = diet("search", "fish", "--json").data

    assert {"fact", "message"} <= {hit["kind"] for hit in hits}
    assert "fish" in hits[0]["text"]


def test_explained_scores_are_the_sum_of_their_parts(diet: Holdfast) -> None:
    hits = diet("search", "fish", "--explain", "--kind", "fact", "--json").data

    assert hits
    for hit in hits:
        assert sum(hit["parts"].values()) == pytest.approx(hit["score"])


def test_context_counts_every_section_within_the_budget(diet: Holdfast) -> None:
    run = diet("context", "What should I cook?", "--budget", "300")
    data = diet("context", "What should I cook?", "--budget", "300", "--json").data

    assert data["tokens"] == sum(section["tokens"] for section in data["sections"]) <= 300
    assert f"{data['tokens']} of 300 tokens" in run.out
    assert data["prefix_sha256"][:12] in run.out


def test_context_says_that_the_prefix_is_the_same_as_last_time(diet: Holdfast) -> None:
    first, again = diet("context"), diet("context")

    assert "first context of this conversation" in first.out
    assert "same as last time" in again.out


def test_a_strategy_is_named_by_an_option(diet: Holdfast) -> None:
    data = diet("context", "What should I cook?", "--strategy", "facts/1", "--json").data

    assert [section["name"] for section in data["sections"] if section["items"]] == ["facts", "recent"]
    assert "did you mean facts?" in diet("context", "--strategy", "fcts/1").err


@pytest.mark.parametrize("output", ["messages", "anthropic", "json", "text"])
def test_context_prints_what_a_model_is_sent(diet: Holdfast, output: str) -> None:
    run = diet("context", "What should I cook?", "-o", output)

    assert "pescatarian" in run.out
    if output == "messages":
        assert run.data[-1] == {"role": "user", "content": "What should I cook?"}
    elif output != "text":
        assert "messages" in run.data


def test_a_long_conversation_is_summarized_and_its_saving_counted(holdfast: Holdfast, tmp_path: Path) -> None:
    rows = [
        {
            "role": ("user", "assistant")[n % 2],
            "content": f"Point {n}: " + "the garden needs water and the roof a nail. " * 8,
        }
        for n in range(60)
    ]
    holdfast("import", str(write_jsonl(tmp_path / "garden.jsonl", rows)))

    tree = holdfast("summaries")
    assert "L2 #1" in tree.out
    assert "messages 1–" in tree.out
    assert "% less" in holdfast("context").out
    assert {summary["level"] for summary in holdfast("summaries", "--json", "--level", "1").data} == {1}


def test_several_conversations_need_a_name(diet: Holdfast) -> None:
    diet("say", "Hello there.", "-c", "other", "--no-digest")
    run = diet("context")

    assert run.code == 2
    assert "main, other" in run.err
    assert diet("context", "-c", "other").code == 0


def test_digest_reports_what_it_did_and_then_that_no_work_is_due(holdfast: Holdfast, tmp_path: Path) -> None:
    rows = [said(f"My friend {name} called, and I live in Lisbon.") for name in ("Ana", "Ben", "Cleo")] * 10
    holdfast("import", str(write_jsonl(tmp_path / "chat.jsonl", rows)), "--no-digest")

    assert "learned" in holdfast("digest").out
    assert holdfast("digest").out == "there is no work due\n"


def test_a_job_can_be_cancelled_and_retried(holdfast: Holdfast, tmp_path: Path) -> None:
    rows = [said("I live in Lisbon.")] * 30
    holdfast("import", str(write_jsonl(tmp_path / "chat.jsonl", rows)), "--no-digest")
    job = holdfast("jobs", "--json").data["jobs"][0]["id"]

    assert "is cancelled" in holdfast("jobs", "--cancel", job).out
    assert [row["id"] for row in holdfast("jobs", "--state", "cancelled", "--json").data["jobs"]] == [job]
    assert "is ready again" in holdfast("jobs", "--retry", job).out
    assert holdfast("jobs", "--state", "cancelled").out == "there are no cancelled jobs\n"


def test_an_unknown_job_is_an_error_with_a_hint(diet: Holdfast) -> None:
    run = diet("jobs", "--retry", "job_nobody", "--json")

    assert (run.code, run.error["code"]) == (1, "not-found")
    assert run.error["hint"]


def test_doctor_finds_a_healthy_store_healthy(diet: Holdfast) -> None:
    run, data = diet("doctor"), diet("doctor", "--json").data

    assert run.code == 0
    assert "none broken" in run.out
    assert data["ok"] is True
    assert len(data["checked"]) > 10
    assert data["store"]["users"] == 1


def test_doctor_works_before_there_is_a_store(holdfast: Holdfast, tmp_path: Path) -> None:
    run = holdfast("doctor")

    assert run.code == 0
    assert "there is none at holdfast.db yet" in run.out
    assert list(tmp_path.iterdir()) == []


def test_doctor_fails_on_a_broken_rule(diet: Holdfast, tmp_path: Path) -> None:
    """A message is deleted behind the store's back."""
    connection = apsw.Connection(str(tmp_path / "holdfast.db"))
    connection.execute("DELETE FROM message WHERE seq = 1")
    connection.close()

    run = diet("doctor")
    assert run.code == 1
    assert "help: " in run.out
    assert diet("doctor", "--json").data["ok"] is False


def test_doctor_names_a_file_that_is_not_a_store(holdfast: Holdfast, tmp_path: Path) -> None:
    (tmp_path / "notes.db").write_text("these are notes\n" * 100)
    run = holdfast("doctor", "--store", "notes.db", "--json")

    assert (run.code, run.error["code"]) == (1, "store-corrupt")


@pytest.mark.parametrize("args", READING, ids=lambda args: args[0])
def test_reading_never_creates_a_store(holdfast: Holdfast, tmp_path: Path, args: tuple[str, ...]) -> None:
    run = holdfast(*args)

    assert (run.code, run.out) == (1, "")
    assert run.err.startswith("error[no-store]: there is no memory at holdfast.db\n  help: start one with")
    assert list(tmp_path.iterdir()) == []


def test_the_first_key_is_made_before_anything_else(holdfast: Holdfast) -> None:
    made = holdfast("keys", "--create", "app")

    assert (made.code, made.err) == (0, "")
    assert made.out.startswith("hf_")


@pytest.mark.parametrize("args", READING, ids=lambda args: args[0])
def test_success_and_failure_are_json_with_json(diet: Holdfast, args: tuple[str, ...]) -> None:
    good, bad = diet(*args, "--json"), diet(*args, "--json", "--store", "nowhere.db")

    assert good.code == 0
    assert good.err == ""
    assert isinstance(good.data, dict | list)
    assert (bad.code, bad.out, bad.error["code"]) == (1, "", "no-store")


def test_an_unknown_user_is_answered_with_the_known_ones(diet: Holdfast) -> None:
    run = diet("facts", "--user", "bo")

    assert (run.code, run.out) == (0, "")
    assert "this store holds me: add --user NAME" in run.err


def test_users_are_kept_apart(diet: Holdfast) -> None:
    diet("say", "I'm vegan.", "--user", "bo", "--no-digest")
    diet("say", "I eat everything, I love meat.", "--org", "other", "--no-digest")

    assert [fact["key"] for fact in diet("facts", "dietary", "--user", "bo", "--json").data] == ["vegan"]
    assert [fact["key"] for fact in diet("facts", "dietary", "--json").data] == ["pescatarian"]


def test_one_subject_never_reaches_the_context_of_another(holdfast: Holdfast) -> None:
    holdfast("say", "She is allergic to chicken.", "--subject", "luna", "-c", "vet")
    holdfast("say", "He takes 5 mg amlodipine once a day.", "--subject", "max", "-c", "vet")

    told = {
        subject: holdfast("context", "May I give chicken?", "--subject", subject, "-o", "text").out
        for subject in ("luna", "max")
    }

    assert "allergic to chicken" in told["luna"]
    assert "allergic to chicken" not in told["max"]


def test_the_store_and_the_user_may_come_from_the_environment(
    holdfast: Holdfast, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOLDFAST_STORE", "chat.db")
    monkeypatch.setenv("HOLDFAST_USER", "ana")
    holdfast("say", "I live in Lisbon.", "--no-digest")

    assert (tmp_path / "chat.db").exists()
    assert [fact["value"] for fact in holdfast("facts", "--json", "--user", "ana").data] == ["Lisbon"]


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (("contxt",), 2, "did you mean `holdfast context`?"),
        (("rejected",), 2, "did you mean `holdfast facts --rejected`?"),
        (("episodes",), 2, "did you mean `holdfast facts`?"),
        (("backup", "b.db"), 2, "did you mean `holdfast store backup`?"),
        (("store", "doctor"), 2, "did you mean `holdfast doctor`?"),
        (("store", "restor"), 2, "did you mean `holdfast store restore`?"),
        (("search", "x", "--limit", "0"), 2, "--limit must be at least 1"),
        (("serve", "--port", "99999"), 2, "--port must be at most 65535"),
        (("rebuild", "summaries", "--from", "x"), 2, "--from must be a whole number"),
        (("remember", "I eat fish.", "--importance", "x"), 2, "--importance must be a number"),
        (("say", "hello", "you"), 2, "`holdfast say` has no use for you"),
        (("facts", "--usr", "ana"), 2, "`holdfast facts --help`"),
        (("facts", "--as-of", "yesterday"), 2, "write --as-of 2026-03-14"),
        (("say",), 2, "missing argument"),
        (("say", "hello", "--user", ""), 2, "must not be empty"),
        (("say", "hello", "--store", ":memory:"), 2, "--store chat.db"),
        (("context", "-o", "yaml"), 2, "text, messages, json, anthropic"),
        (("import", "nothing.jsonl"), 1, "there is no file nothing.jsonl"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_wrong_usage_is_answered_with_the_right_usage(
    holdfast: Holdfast, args: tuple[str, ...], code: int, says: str
) -> None:
    plain, as_json = holdfast(*args), holdfast(*args, "--json")

    assert (plain.code, as_json.code, plain.out, as_json.out) == (code, code, "", "")
    assert says in plain.err
    assert plain.err.startswith("error[")
    assert as_json.error["code"] == plain.err[6 : plain.err.index("]")]
    assert says in json.dumps(as_json.error, ensure_ascii=False)
