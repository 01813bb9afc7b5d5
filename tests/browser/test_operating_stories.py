"""What operators do, in a browser: try and use a prompt, retry a job, import a file, make a key, explain a question."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from holdfast.llm.protocol import Request
from holdfast.testing.model import ScriptedModel

from .chromium import Visitor, look, until
from .looks import SCHEMES, SIZES, picture, sticks_out, violations
from .served import Site, serve
from .story import opened, rich


@pytest.fixture
def model() -> ScriptedModel:
    def told(request: Request) -> str:
        manner = "in verse" if request.system.startswith("In verse") else "at length"
        return f"SUMMARY: They spoke of a trip, {manner}."

    return ScriptedModel({"chunk_summary": told})


@pytest.fixture
def modelled(model) -> Iterator[Site]:
    """The rich story, read by a model."""
    with opened(model) as memory, serve(memory, rich(memory)) as site:
        yield site


def judged(page, someone: Visitor, name: str) -> None:
    """The page as it stands is accessible, whole and by itself in both sizes and schemes."""
    for width, height in SIZES:
        for scheme in SCHEMES:
            look(page, width, height, scheme)
            picture(page, f"{name} {width} {scheme}")
            assert violations(page) == [], (name, width, scheme)
            assert sticks_out(page) == [], (name, width, scheme)
    look(page, *SIZES[0], SCHEMES[0])
    assert someone.watch.all == [], name


def test_a_prompt_is_edited_tried_saved_and_rolled_back(modelled, visitor):
    operator = visitor(modelled, "operator")
    page = operator.open("/dashboard/prompts?user=priya")
    page.locator("#prompts-user").get_by_role("link", name="Chunk summaries").click()
    page.get_by_label("Text, at most").fill("In verse, please.")
    page.get_by_role("button", name="Estimate cost").click()
    page.get_by_text("No model was called yet").wait_for()
    judged(page, operator, "prompt, estimated")
    page.get_by_role("button", name="Try on 3 saved chunks").click()
    page.get_by_role("heading", name="Results").wait_for()
    assert "in verse" in page.locator("#preview").inner_text()
    assert page.get_by_label("Text, at most").input_value() == "In verse, please."
    judged(page, operator, "prompt, tried")

    page.get_by_role("button", name="Save as draft").click()
    page.get_by_role("button", name="Activate version 1").click()
    page.get_by_text("custom, version 2").wait_for()
    page.get_by_label("Text, at most").fill("In prose after all.")
    page.get_by_role("button", name="Save and use").click()
    page.get_by_role("link", name="Compare version 1").click()
    page.get_by_role("button", name="Roll back to version 2").click()
    page.get_by_text("custom, version 4").wait_for()
    assert modelled.memory.user("priya").prompts.get("chunk_summary") == "In verse, please."
    judged(page, operator, "prompt, rolled back")


def test_a_dead_job_is_retried_without_a_reload(fresh, visitor):
    operator = visitor(fresh, "operator")
    page = operator.open("/dashboard/jobs")
    page.evaluate("() => { window.notReloaded = true; }")
    job = fresh.names["job"]
    page.get_by_role("button", name=f"Retry {job}").click()
    until(page, lambda: page.get_by_text("failed permanently").count() == 0, what="the callout going")

    assert page.evaluate("() => window.notReloaded") is True
    assert [one.state for one in fresh.memory.jobs() if one.id == job] == ["ready"]
    page.get_by_role("button", name=f"Cancel {job}").click()
    until(page, lambda: page.get_by_role("button", name=f"Retry {job}").count() == 1, what="a button to retry")
    judged(page, operator, "jobs, cancelled")


def test_a_file_is_imported_with_progress_and_users_appear(fresh, visitor, tmp_path):
    rows = [
        {"role": "user", "content": "My sister Nora lives in Bergen and I play the harp.", "name": "Nils"},
        {"role": "assistant", "content": "Lovely!", "name": "Bo"},
        {"role": "tool", "content": "rain", "tool_call_id": "t"},
    ]
    rows += [{"role": "user", "content": f"The train was {n} minutes late.", "name": "Nils"} for n in range(2000)]
    path = tmp_path / "nils.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    operator = visitor(fresh, "operator")
    page = operator.open("/dashboard/import")
    page.locator("input[type=file]").set_input_files(path)
    page.get_by_role("button", name="Check file").click()
    page.get_by_role("heading", name="Content").wait_for()
    assert "2,002" in page.locator("#report").inner_text()
    judged(page, operator, "import, checked")
    assert "nils" not in [user for _, user, _ in fresh.memory.admin.users()]

    page.get_by_label("Import for user").fill("nils")
    page.get_by_role("button", name="Start").click()
    page.get_by_role("progressbar").wait_for()
    judged(page, operator, "import, running")
    until(page, lambda: page.get_by_role("heading", name="Done").count() == 1, 60, "the import")
    assert "2,002 messages stored" in page.locator("#progress").inner_text()
    page.get_by_role("link", name="Conversations of nils").wait_for()
    judged(page, operator, "import, done")
    assert "nils" in [user for _, user, _ in fresh.memory.admin.users()]
    assert {fact.value for fact in fresh.memory.user("nils").facts()} >= {"Bergen"} or fresh.memory.user("nils").facts()


def test_a_key_is_made_shown_once_and_revoked(fresh, visitor):
    operator = visitor(fresh, "operator")
    page = operator.open("/dashboard/settings")
    page.get_by_text("Create a key").click()
    page.get_by_label("Name (purpose)").fill("web chat")
    page.get_by_role("button", name="Create key").click()
    key = page.locator("#new-key").inner_text()
    about = fresh.memory.admin.keys.check(key)
    assert about is not None
    assert about.name == "web chat"
    judged(page, operator, "settings, a new key")

    page.goto(page.url)
    assert key not in page.content()
    row = page.locator("li.job", has_text="web chat")
    row.get_by_text("Revoke", exact=True).click()
    judged(page, operator, "settings, asked before revoking")
    row.get_by_role("button", name="Revoke it").click()
    page.get_by_text("The key is revoked.").wait_for()
    assert fresh.memory.admin.keys.check(key) is None


def test_a_question_is_explained(fresh, visitor):
    operator = visitor(fresh, "operator")
    page = operator.open("/dashboard/recall")
    page.get_by_label("Question").fill("Where does my sister live?")
    page.get_by_label("User", exact=True).fill("priya")
    page.get_by_role("button", name="Ask").click()
    first = page.locator("table.ranked tbody tr").first
    first.get_by_text("Explain").click()
    parts = [float(text) for text in first.locator(".parts td.numeric").all_inner_texts()]

    assert sum(parts[:-1]) == pytest.approx(parts[-1], abs=0.02)
    judged(page, operator, "recall lab, explained")
