"""``usage`` and ``prompts``, and jobs whose model may not be called."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import Budget, Config, Memory
from holdfast.testing.model import ModelServer, ScriptedModel, ServerAnswer, unreachable_url

from .conftest import Answer, Holdfast, said, write_jsonl

CHAT = [
    said("I adopted a greyhound called Pixel."),
    {"role": "assistant", "content": "How lovely!"},
    said("She sleeps all day."),
    {"role": "assistant", "content": "Greyhounds do."},
]


@pytest.fixture
def imported(holdfast: Holdfast, tmp_path: Path) -> ModelServer:
    """A short chat that a model on this machine has read; it found nothing."""
    write_jsonl(tmp_path / "chat.jsonl", CHAT)
    with ModelServer() as server:
        run = holdfast("import", "chat.jsonl", "--llm", "openai:any", "--base-url", server.url)
        assert run.code in (0, 1), run.err
    return server


def test_usage_lists_calls_and_tokens_by_layer(holdfast: Holdfast, imported: ModelServer) -> None:
    run = holdfast("usage", "--json")
    calls = {row["layer"]: row["calls"] for row in run.data}

    assert imported.asked
    assert sum(calls.values()) == len(imported.asked)
    assert all(row["model"] == "openai:any" and row["input_tokens"] > 0 for row in run.data)
    assert "unknown" in holdfast("usage").out  # what it costs, at an address of one's own


def test_usage_adds_up_the_groups_that_are_not_named(holdfast: Holdfast, imported: ModelServer) -> None:
    by_day = holdfast("usage", "--by", "day,user", "--json").data

    assert [(row["user"], row["layer"]) for row in by_day] == [("me", "")]
    assert by_day[0]["calls"] == len(imported.asked)
    assert holdfast("usage", "--user", "nobody", "--json").data == []
    assert holdfast("usage", "--since", "2999-01-01", "--json").data == []


def test_usage_of_a_memory_without_a_model_says_so(holdfast: Holdfast) -> None:
    holdfast("say", "I live in Lisbon.")

    assert "no model was called" in holdfast("usage").out


@pytest.mark.parametrize("args", [["--by", "planet"], ["--since", "yesterday"], ["--until", "2026-13-01"]])
def test_usage_with_a_bad_option_says_what_is_allowed(holdfast: Holdfast, args: list[str]) -> None:
    run = holdfast("usage", *args, "--json")

    assert run.code == 2
    assert run.error["hint"].startswith(("use org", "write --"))


def test_a_changed_prompt_reaches_the_model(holdfast: Holdfast, tmp_path: Path) -> None:
    write_jsonl(tmp_path / "chat.jsonl", CHAT)
    holdfast("say", "Hello!")
    holdfast("prompts", "fact_extraction", "--set", "Mind the names of greyhounds.")
    with ModelServer() as server:
        holdfast("import", "chat.jsonl", "--llm", "openai:any", "--base-url", server.url)

    assert any("Mind the names of greyhounds." in asked.system for asked in server.asked)


def test_prompts_lists_sets_shows_and_resets(holdfast: Holdfast) -> None:
    holdfast("say", "Hello!")
    ours = holdfast("prompts", "chunk_summary", "--json").data["text"]
    made = holdfast("prompts", "chunk-summary", "--set", "Two sentences.", "--json").data

    assert (made["name"], made["version"]) == ("chunk_summary", 1)
    assert holdfast("prompts", "chunk_summary").out.startswith("Two sentences.\n")
    assert {one["name"]: one["own"] for one in holdfast("prompts", "--json").data} == {
        "fact_extraction": False,
        "chunk_summary": True,
        "meta_summary": False,
        "episodes": False,
        "character": False,
        "story": False,
    }
    assert holdfast("prompts", "chunk_summary", "--reset").code == 0
    assert holdfast("prompts", "chunk_summary", "--json").data["text"] == ours
    assert [one["text"] for one in holdfast("prompts", "chunk_summary", "--versions", "--json").data] == [
        "Two sentences.",
        "",
    ]


def test_prompts_are_read_from_files(holdfast: Holdfast, tmp_path: Path) -> None:
    (tmp_path / "mine.md").write_text("Mention every dose.\n", encoding="utf-8")
    (tmp_path / "bad.md").write_bytes(b"\xff\xfe\x00")

    assert holdfast("prompts", "chunk_summary", "--file", "mine.md").code == 0
    assert holdfast("prompts", "chunk_summary", "--json").data["text"] == "Mention every dose."
    assert holdfast("prompts", "chunk_summary", "--file", "bad.md", "--json").error["code"] == "no-file"
    assert holdfast("prompts", "chunk_summary", "--file", "none.md", "--json").error["code"] == "no-file"


@pytest.mark.parametrize(
    "args",
    [
        ["poem"],
        ["--set", "x"],
        ["chunk_summary", "--set", "x", "--reset"],
        ["chunk_summary", "--set", " "],
        ["chunk_summary", "--set", "x" * 5000],
    ],
)
def test_prompts_refuses_options_that_do_not_go_together(holdfast: Holdfast, args: list[str]) -> None:
    holdfast("say", "Hello!")

    assert holdfast("prompts", *args).code == 2


def test_an_unreachable_model_fails_the_command_and_loses_nothing(holdfast: Holdfast, tmp_path: Path) -> None:
    write_jsonl(tmp_path / "chat.jsonl", CHAT)
    run = holdfast("import", "chat.jsonl", "--llm", "openai:any", "--base-url", unreachable_url())

    assert run.code == 1
    assert "4 messages stored" in run.out
    assert "error[jobs-failed]" in run.err
    assert "cannot be reached" in holdfast("jobs").out


def test_a_spent_budget_makes_work_wait_and_jobs_says_until_when(holdfast: Holdfast, tmp_path: Path) -> None:
    config = Config(budget=Budget(tokens_per_day=1))
    with Memory(tmp_path / "holdfast.db", embedder=None, llm=ScriptedModel(), config=config) as memory:
        for day in ("one", "two"):
            chat = memory.conversation(day, user="me")
            chat.append([{"role": message["role"], "content": message["content"]} for message in CHAT])
            chat.end()
            memory.digest()
    out = holdfast("jobs").out

    assert "budget of the memory" in out
    assert "next at" in out
    assert "failed" not in out


def test_llm_rules_overrides_the_environment(
    holdfast: Holdfast, answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_LLM", "openai:any")
    monkeypatch.setenv("HOLDFAST_BASE_URL", unreachable_url())

    assert holdfast("say", "I live in Lisbon.", "--llm", "rules").code == 0
    assert holdfast("usage").out.startswith("no model was called")


def test_usage_says_which_jobs_wait_for_a_model(holdfast: Holdfast, tmp_path: Path) -> None:
    write_jsonl(tmp_path / "chat.jsonl", CHAT)
    with ModelServer(lambda asked: ServerAnswer(status=401)) as server:
        holdfast("import", "chat.jsonl", "--llm", "openai:any", "--base-url", server.url)

    waits = holdfast("jobs", "--state", "waiting", "--json").data["jobs"]
    assert waits
    assert "openai:any refused the key (status 401) (check the key" in " ".join(holdfast("usage").out.split())
    assert all("check the key" in job["reason"] for job in waits)


def test_prompts_are_drafted_previewed_and_activated(holdfast: Holdfast) -> None:
    holdfast("say", "Hello there, it is late.")
    holdfast("prompts", "fact_extraction", "--set", "Only addresses.")
    drafted = holdfast("prompts", "fact_extraction", "--set", "Only names.", "--draft")

    assert "a draft" in drafted.out
    assert holdfast("prompts", "fact_extraction").out.startswith("Only addresses.")
    with ModelServer() as server:
        model = ("--llm", "openai:any", "--base-url", server.url, "--json")
        tried = holdfast("prompts", "fact_extraction", "--preview", "--set", "Only names.", *model)
    assert tried.code == 0, tried.err
    assert [sample["start_seq"] for sample in tried.data["samples"]] == [1]
    assert server.asked[-1].system.startswith("Only names.")
    assert holdfast("prompts", "fact_extraction", "--activate", "2").code == 0
    assert holdfast("prompts", "fact_extraction").out.startswith("Only names.")
    assert holdfast("prompts", "--preview").code == 2
    assert holdfast("prompts", "fact_extraction", "--draft").code == 2
    assert "rules take no prompts" in holdfast("prompts", "fact_extraction", "--preview").err
