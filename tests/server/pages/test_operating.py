"""Recall lab, jobs, prompts, metrics, settings: what they show in each state, and what their forms do."""

from __future__ import annotations

import html
import json
import re
import threading
import time
from collections import Counter
from datetime import UTC, datetime

import pytest
from starlette.testclient import TestClient

from holdfast import Config, Memory, Price
from holdfast.errors import BadInput
from holdfast.llm.protocol import BadAnswer, ModelError
from holdfast.reports import Event
from holdfast.server.app import create_app
from holdfast.server.gate import Grant
from holdfast.server.pages.home import Counts, grouped_changes
from holdfast.server.pages.metrics import key_of
from holdfast.server.pages.settings import format_setting
from holdfast.server.pages.workbench.transcript import word_diff
from holdfast.server.schemas import Caller
from holdfast.testing.model import ScriptedModel

from ..conftest import BASE
from .conftest import BROWSER


def words(answer):
    """The text of a page, without its markup."""
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", answer.text)))


@pytest.fixture
def told(memory):
    """Ana lives in Porto, likes clocks, and was asked again where she lives."""
    chat = memory.conversation("web", user="ana")
    chat.record("I live in Porto.", "Where do you live?")
    chat.record("I like old clocks.", "Noted.")
    memory.digest()
    return memory


# Recall lab


def test_the_lab_shows_rank_score_parts_and_what_is_recalled(sign_in, told):
    page = sign_in().get("/dashboard/recall", params={"user": "ana", "q": "Where do I live?", "conversation": "web"})
    text = words(page)

    assert page.status_code == 200
    assert "I live in Porto." in text
    assert re.search(
        r"would be recalled: relevance at least 0.35 for the best, half of it for other facts, a tenth for other turns, at most 60",
        text,
    )
    assert "Words Vector Time Around Score Relevance Recalled" in text
    assert "What the model sees" in text
    assert f"{told.user('ana').search('Where do I live?')[0].score:.2f}" in text


def test_the_lab_is_a_bench_where_each_result_becomes_a_case(sign_in, told):
    """What a question should have found is named, its place is shown, and its line runs in a suite."""
    browser, asked = sign_in(), {"user": "ana", "q": "Where do I live?"}
    page = browser.get("/dashboard/recall", params=asked).text
    assert page.count('class="bar" height="8" role="img"') == page.count("data-relevance=") > 0
    assert re.search(r'<rect class="words" x="0.0%" width="[1-9]', page)
    assert " hidden>" in browser.get("/dashboard/recall", params=asked | {"least": "1"}).text.partition("<tbody")[2]

    found = browser.get("/dashboard/recall", params=asked | {"in": "web", "seq": "1"}).text
    assert "Found at rank" in found
    line = html.unescape(re.search(r'<p class="case"><code>(.*?)</code>', found)[1])
    assert json.loads(line) == {"user": "ana", "question": "Where do I live?", "conversation": "web", "seq": 1}
    missed = browser.get("/dashboard/recall", params=asked | {"fact": "Lives in Rome"}).text
    assert "Not found" in missed

    suite = f"{line}\n" + json.dumps({"user": "ana", "question": "Where do I live?", "fact": "Lives in Rome"})
    result = browser.post("/dashboard/recall", data={"suite": suite})
    assert "1 of 2 recalled" in result.text
    assert "behind 500" in result.text
    wrong = browser.post("/dashboard/recall", data={"suite": f"{line}\nbanana"})
    assert wrong.status_code == 422
    assert "Line 2: this line is no case" in wrong.text


def test_looking_in_the_lab_counts_as_no_use(sign_in, told):
    before = [(fact.id, fact.uses) for fact in told.user("ana").facts()]
    sign_in().get("/dashboard/recall", params={"user": "ana", "q": "Porto", "conversation": "web"})
    told.digest()

    assert [(fact.id, fact.uses) for fact in told.user("ana").facts()] == before


@pytest.mark.parametrize(
    ("params", "status", "says"),
    [
        ({}, 200, "Ask a question"),
        ({"user": "", "q": "x"}, 200, "Ask a question"),
        ({"user": "nobody", "q": "clocks"}, 200, "No results"),
        ({"user": "ana", "q": "clocks", "at": "never"}, 422, "'never' is not a time"),
        ({"user": "ana", "q": "clocks", "at": "2020-01-01T00:00"}, 200, "No results"),
        ({"user": "ana", "q": "clocks", "conversation": "nothing"}, 200, "I like old clocks."),
        ({"user": "ana", "q": "clocks", "limit": "7"}, 200, "I like old clocks."),
    ],
)
def test_the_lab_says_what_it_cannot_find(sign_in, told, params, status, says):
    page = sign_in().get("/dashboard/recall", params=params)

    assert page.status_code == status
    assert says in words(page)


def test_the_lab_finds_nothing_of_who_paused(sign_in, told):
    told.user("ana").pause()
    text = words(sign_in().get("/dashboard/recall", params={"user": "ana", "q": "Porto"}))

    assert "Memory is paused" in text
    assert "I live in Porto" not in text


# Jobs


def test_jobs_are_steered(sign_in, memory):
    memory.conversation("web", user="ana").record("Hello there.", "Hello!")
    (job,) = [job for job in memory.jobs() if job.kind == "chunk"]
    browser = sign_in()
    assert "Run now" in words(browser.get("/dashboard/jobs"))

    def do(what):
        answer = browser.post("/dashboard/jobs", data={"do": what, "job": job.id}, follow_redirects=False)
        assert answer.status_code == 303
        return answer.headers["location"].partition("said=")[2], [j.state for j in memory.jobs() if j.id == job.id]

    assert do("cancel") == ("cancelled", ["cancelled"])
    assert "cancelled" in words(browser.get("/dashboard/jobs?state=cancelled"))
    assert do("retry") == ("retried", ["ready"])
    assert do("run") == ("running", ["ready"])
    assert do("retry")[0] == "gone"
    assert browser.post("/dashboard/jobs", data={"do": "explode", "job": job.id}).status_code == 422


def test_dead_jobs_stand_first_with_their_reason(sign_in, settings, clock):
    model = ScriptedModel(otherwise=lambda request: BadAnswer("it rambled"))
    with Memory(llm=model, embedder=None, clock=clock, config=Config(job_attempts=1)) as memory:
        chat = memory.conversation("web", user="ana")
        for number in range(8):
            chat.record(f"My aunt {number} says a secret word.", "Yes.")
        chat.end()
        memory.digest()
        dead = memory.jobs("dead")
        assert dead
        page = _browse(memory, settings, "/dashboard/jobs")
    text = words(page)

    assert "failed permanently" in text
    assert text.index("dead") < text.index("ready") if "ready" in text else True
    assert dead[0].reason in text
    assert "secret word" not in text


def test_jobs_with_one_reason_are_one_line_and_are_retried_at_once(sign_in, memory):
    """A hundred jobs that failed in the same way: one group with its advice, one button, honest counts."""
    for number in range(100):
        memory.conversation("web", user=f"user {number:03}").record("Hello there.", "Hello!")
    ids = [job.id for job in memory.jobs()]
    for job in ids:
        memory.cancel(job)
    browser = sign_in()
    page = browser.get("/dashboard/jobs?state=cancelled")
    kinds = Counter(job.kind for job in memory.jobs())
    assert page.text.count('<details class="job-group') == len(kinds)
    assert len(ids) > 100
    assert len(page.content) < 150_000
    for kind, number in kinds.items():
        assert f"Retry all {number}" in words(page)
        fields = {"do": "all-retry", "state": "cancelled", "kind": kind, "reason": ""}
        assert "These jobs will run again." in words(browser.post("/dashboard/jobs", data=fields))
    assert {job.state for job in memory.jobs()} == {"ready"}
    assert browser.post("/dashboard/jobs", data={**fields, "do": "all-explode"}).status_code == 422


def test_jobs_tell_their_pace_the_time_left_and_their_history(sign_in, memory, clock):
    clock.advance(seconds=(datetime.now(UTC) - clock()).total_seconds())
    memory.conversation("web", user="ana").append(
        [{"role": "user", "content": f"I like clock {n}."} for n in range(40)]
    )
    memory.digest()
    memory.conversation("later", user="ana").append([{"role": "user", "content": "I like old clocks."}] * 30)
    browser = sign_in()
    page = browser.get("/dashboard/jobs")
    for _ in range(100):
        if 'id="pace"' in page.text:
            break
        page = browser.get("/dashboard/jobs")
    assert re.search(r"[1-9]\d* jobs? done in the last hour; about .* left at this pace", words(page))
    assert 'aria-label="Jobs a day"' in page.text
    assert "/dashboard/changes?kind=job.failed" in page.text


def test_during_an_outage_the_jobs_page_is_not_green(sign_in, settings, clock):
    """No job is dead yet, but they fail and are tried again: a warning with the reason and what to do."""
    model = ScriptedModel(otherwise=lambda request: ModelError("connection refused"))
    with Memory(llm=model, embedder=None, clock=clock, config=Config(job_attempts=5)) as memory:
        memory.conversation("web", user="ana").record("My aunt lives in Rome and I like tea.", "Yes.")
        memory.conversation("web", user="ana").end()
        memory.digest()
        assert not memory.jobs("dead")
        text = words(_browse(memory, settings, "/dashboard/jobs"))
    assert "held up and will be tried again" in text
    assert "cannot be reached" in text
    assert "On time" not in text


def test_a_failure_of_the_models_server_is_known_and_a_dead_job_is_not_tried_again(sign_in, settings, clock):
    failure = ModelError("openai:m had an error of its own (status 500)", hint="it is tried again")
    with Memory(
        llm=ScriptedModel(otherwise=lambda request: failure), embedder=None, clock=clock, config=Config(job_attempts=2)
    ) as memory:
        memory.conversation("web", user="ana").record("My aunt lives in Rome and I like tea.", "Yes.")
        memory.conversation("web", user="ana").end()
        memory.digest()
        assert {job.reason for job in memory.jobs() if job.reason} == {f"model: {failure}"}
        for _ in range(6):
            clock.advance(hours=12)
            memory.digest()
        assert {job.reason for job in memory.jobs("dead")} == {"model: openai:m had an error of its own (status 500)"}
        text = words(_browse(memory, settings, "/dashboard/jobs"))
        home = words(_browse(memory, settings, "/dashboard"))
        one = len(memory.jobs("dead")) == 1

    assert "The model's server failed while it answered." in text
    assert "Holdfast does not know" not in text
    assert "tried again" not in text
    assert f"missing until {'it is' if one else 'they are'} retried" in home


def test_no_jobs_is_a_state_of_its_own(sign_in):
    assert "No unfinished jobs" in words(sign_in().get("/dashboard/jobs"))


def test_what_is_due_is_done_on_demand(sign_in, memory):
    memory.conversation("web", user="ana").append(
        [{"role": "user", "content": f"I live in Porto. {n}"} for n in range(30)]
    )
    sign_in().post("/dashboard/jobs", data={"do": "digest"})

    assert memory.user("ana").facts()


# Prompts


def test_prompts_are_edited_drafted_activated_and_rolled_back(sign_in, memory):
    browser, own = sign_in(), memory.user("ana").prompts
    page = "/dashboard/prompts/chunk_summary?user=ana"
    assert own.get("chunk_summary")[:40] in words(browser.get(page))

    browser.post(page, data={"do": "use", "text": "In verse.\r\nAlways."})
    assert own.get("chunk_summary") == "In verse.\nAlways."
    browser.post(page, data={"do": "draft", "text": "In <b>prose</b>."})
    assert own.get("chunk_summary") == "In verse.\nAlways."
    text = words(browser.get(page))
    assert "Version 2 draft" in text
    assert "Version 1 in use" in text
    browser.post(page, data={"do": "activate", "version": "2", "text": ""})
    assert own.get("chunk_summary") == "In <b>prose</b>."
    browser.post(page, data={"do": "activate", "version": "1", "text": ""})
    assert own.get("chunk_summary") == "In verse.\nAlways."
    browser.post(page, data={"do": "reset", "text": ""})
    assert "default" in words(browser.get(page))
    assert "<b>prose" not in browser.get(page + "&diff=2").text


def test_a_prompt_that_changed_meanwhile_is_not_overwritten(sign_in, memory):
    """Of two operators the second sees both texts, and chooses."""
    browser, own, page = sign_in(), memory.user("ana").prompts, "/dashboard/prompts/chunk_summary?user=ana"
    seen = re.search(r'name="seen" value="(\d+)"', browser.get(page).text)[1]
    own.set("chunk_summary", "In verse.")
    answer = browser.post(page, data={"do": "use", "text": "In prose.", "seen": seen})

    assert answer.status_code == 409
    assert own.get("chunk_summary") == "In verse."
    assert "Not saved: this prompt changed" in answer.text
    assert ">\nIn prose.</textarea>" in answer.text
    assert "<del>verse.</del>" in re.sub(r"\s+(?=<)", "", answer.text)
    assert browser.post(page, data={"do": "reset", "text": "", "seen": seen}).status_code == 409
    seen = re.search(r'name="seen" value="(\d+)"', answer.text)[1]
    browser.post(page, data={"do": "use", "text": "In prose.", "seen": seen})
    assert own.get("chunk_summary") == "In prose."


def test_a_draft_that_was_activated_is_no_draft_any_more(sign_in, memory):
    browser, page = sign_in(), "/dashboard/prompts/chunk_summary?user=ana"
    browser.post(page, data={"do": "draft", "text": "In verse."})
    browser.post(page, data={"do": "activate", "version": "1", "text": ""})

    text = words(browser.get(page))
    assert "Version 1 in use as version 2" in text
    assert "Version 1 draft" not in text
    assert "Activate version 1" not in browser.get(page).text


@pytest.mark.parametrize(
    ("data", "status"),
    [
        ({"do": "use", "text": "  "}, 422),
        ({"do": "use", "text": "x" * 4001}, 422),
        ({"do": "activate", "version": "x", "text": ""}, 422),
        ({"do": "activate", "version": "99", "text": ""}, 404),
        ({"do": "nothing", "text": "x"}, 422),
        ({"do": "use"}, 422),
        ({"text": "x"}, 422),
    ],
)
def test_what_cannot_be_done_with_a_prompt_is_said(sign_in, memory, data, status):
    answer = sign_in().post("/dashboard/prompts/chunk_summary?user=ana", data=data)

    assert answer.status_code == status
    assert memory.user("ana").prompts.versions("chunk_summary") == []


def test_other_prompts_are_not_there(sign_in):
    assert sign_in().get("/dashboard/prompts/poem?user=ana").status_code == 404
    assert sign_in().get("/dashboard/prompts/chunk_summary").status_code == 422


def test_trying_with_rules_alone_says_what_is_needed_and_keeps_the_words(sign_in, memory):
    text = words(sign_in().post("/dashboard/prompts/chunk_summary?user=ana", data={"do": "try", "text": "In verse."}))

    assert "the built-in rules take no prompts" in text
    assert "In verse." in text


def test_a_trial_is_estimated_first_and_then_shown_beside_what_stands(settings, clock):
    model = ScriptedModel()
    with Memory(llm=model, embedder=None, clock=clock) as memory:
        chat = memory.conversation("web", user="ana")
        for number in range(12):
            chat.record(f"The train was {number} minutes late.", "Oh.")
            clock.advance(minutes=2)
        chat.end()
        memory.digest()
        page = "/dashboard/prompts/chunk_summary?user=ana"
        model.asked.clear()
        estimate = words(_browse(memory, settings, page, {"do": "estimate", "text": "In verse."}))
        assert model.asked == []
        model.say("chunk_summary", "SUMMARY: A train, a wait, a sigh.")
        tried = words(_browse(memory, settings, page, {"do": "try", "text": "In verse."}))

        assert "Estimate" in estimate
        assert "at most" in estimate
        assert "Results" in tried
        assert "A train , a wait , a sigh" in re.sub(r"\s+", " ", tried) or "train" in tried
        assert all(request.system.startswith("In verse.") for request in model.asked)
        assert memory.user("ana").prompts.versions("chunk_summary") == []


def test_a_shared_prompt_is_tried_staged_and_what_it_affects_is_rebuilt(settings, clock):
    """For some users first, always the same ones; then for all; and what the earlier text made is made again."""
    model = ScriptedModel()
    with Memory(llm=model, embedder=None, clock=clock) as memory:
        users = [f"user{number}" for number in range(20)]
        for user in users:
            chat = memory.conversation("web", user=user)
            for number in range(12):
                chat.record(f"The train was {number} minutes late.", "Oh.")
            chat.end()
        memory.digest()
        clock.advance(minutes=5)
        page, shared = "/dashboard/prompts/chunk_summary?for=org", memory.admin.prompts()
        tried = words(_browse(memory, settings, page, {"do": "try", "text": "In verse.", "sample": "user3"}))
        assert "Messages 1 to" in tried or "messages 1 to" in tried

        shared.draft("chunk_summary", "In verse.")
        _browse(memory, settings, page, {"do": "activate", "version": "1", "percent": "30", "text": ""})
        few = [user for user in users if memory.user(user).prompts.get("chunk_summary") == "In verse."]
        assert 0 < len(few) < 20
        assert "for 30 % of users" in words(_browse(memory, settings, page))
        affected = words(_browse(memory, settings, page, {"do": "affected", "text": ""}))
        assert f"{len(few)} conversation" in affected

        _browse(memory, settings, page, {"do": "activate", "version": "2", "percent": "60", "text": ""})
        more = [user for user in users if memory.user(user).prompts.get("chunk_summary") == "In verse."]
        assert set(few) < set(more)
        _browse(memory, settings, page, {"do": "activate", "version": "3", "text": ""})
        assert all(memory.user(user).prompts.get("chunk_summary") == "In verse." for user in users)
        clock.advance(minutes=5)
        app = create_app(memory, settings)
        with TestClient(app, base_url=BASE, headers=BROWSER) as browser:
            browser.post("/sign-in", data={"key": memory.admin.keys.create("operator").key})
            assert "Rebuilding in the background" in browser.post(page, data={"do": "rebuild", "text": ""}).text
            (task,) = app.state.tasks.newest(1)
            assert task.over.wait(60)
            assert (task.state, task.done, task.total) == ("done", 20, 20)
        rebuilt = [memory.conversation("web", user=user).rebuilds() for user in users]
        assert all(len(made) == 1 for made in rebuilt)
        left = words(_browse(memory, settings, page, {"do": "affected", "text": ""}))
        assert "Nothing that an earlier version made is left" in left


def test_changes_lead_from_one_text_to_the_other():
    for before, after in (("a b c", "a x c"), ("", "new words"), ("gone", ""), ("same", "same"), ("ab. c", "ab, c d")):
        told = word_diff(before, after)
        assert "".join(part for op, part in told if op != "new") == before
        assert "".join(part for op, part in told if op != "gone") == after


# Metrics


def test_metrics_show_each_value_with_its_n_and_list_what_was_asked_again(sign_in, told):
    text = words(sign_in().get("/dashboard/metrics"))

    assert "100.0 %" in text
    assert "already answered: 1 · questions by the bot: 1" in text
    assert "Where do you live?" in text
    assert "Lives in Porto." in text
    assert "estimate" in text
    assert "Not measured yet" in text


def test_metrics_of_one_user_link_to_what_was_said(sign_in, told):
    page = sign_in().get("/dashboard/metrics", params={"user": "ana"})

    assert '/dashboard/conversations/ana/web?at=2#m2"' in page.text
    assert "Nothing to measure yet" in words(sign_in().get("/dashboard/metrics", params={"org": "other"}))
    assert sign_in().get("/dashboard/metrics", params={"since": "soon"}).status_code == 422


# Settings


def test_a_key_is_shown_once_works_and_is_revoked(sign_in, memory, ask):
    browser = sign_in()
    made = browser.post("/dashboard/settings", data={"do": "make", "role": "app", "name": "web chat", "days": "7"})
    key = re.search(r'id="new-key">(hf_[^<]+)<', made.text)
    assert key
    assert key[1] not in browser.get("/dashboard/settings").text
    (about,) = [one for one in memory.admin.keys.list() if one.name == "web chat"]
    assert about.expires_at is not None
    assert memory.admin.keys.check(key[1]) == about

    browser.post("/dashboard/settings", data={"do": "revoke", "key": about.id})
    assert memory.admin.keys.check(key[1]) is None
    again = browser.post("/dashboard/settings", data={"do": "revoke", "key": about.id})
    assert "This key no longer exists." in words(again)


@pytest.mark.parametrize(
    "data",
    [
        {"do": "make", "role": "king"},
        {"do": "make", "role": "user"},
        {"do": "make", "role": "app", "days": "0"},
        {"do": "make", "role": "app", "days": "soon"},
        {"do": "provider", "provider": "openai", "model": "m"},
        {"do": "provider", "provider": "nobody", "model": "m", "key": "k"},
        {"do": "nothing"},
    ],
)
def test_settings_that_make_no_sense_are_refused(sign_in, memory, data):
    before = len(memory.admin.keys.list())
    browser = sign_in()
    answer = browser.post("/dashboard/settings", data=data)

    assert answer.status_code == 422
    assert len(memory.admin.keys.list()) == before + 2  # the one that signed in, and the browser's


def test_a_key_of_another_org_is_not_revoked_from_here(sign_in, memory):
    key = memory.admin.keys.create("app", org="other").about
    sign_in().post("/dashboard/settings", data={"do": "revoke", "key": key.id})

    assert memory.admin.keys.list("other")[0].revoked_at is None


def test_settings_tell_what_is_in_force_and_check_the_store(sign_in, told):
    text = words(sign_in().get("/dashboard/settings"))

    assert "redact messages" in text
    assert "Tokens that a context may use if the call names no budget." in text
    assert "127.0.0.1" in text
    checked = words(sign_in().post("/dashboard/settings", data={"do": "doctor"}))
    assert "none broken" in checked


def test_secrets_are_never_shown():
    assert format_setting("upstream_key", "sk-canary") == "set, hidden"
    assert format_setting("upstream_key", "") == "not set"
    assert "canary" not in format_setting("budget", type("SecretBox", (), {"__str__": lambda self: "canary"})())


PAGES = ("recall", "jobs", "prompts", "prompts/chunk_summary?user=ana", "metrics", "settings")


@pytest.mark.parametrize("page", PAGES)
def test_only_operators_see_these_pages(sign_in, page):
    answer = sign_in("user", user="ana").get(f"/dashboard/{page}")

    assert answer.status_code == 403
    assert "a key of the role user may not do this" in words(answer)


def _browse(memory, settings, path, data=None):
    """The page as an operator sees it, or what its form answers."""
    app = create_app(memory, settings)
    app.state.counts = Counts(fresh_s=0, patience_s=60)  # each page waits for its counts
    with TestClient(app, base_url=BASE, headers=BROWSER) as browser:
        browser.post("/sign-in", data={"key": memory.admin.keys.create("operator").key})
        return browser.get(path) if data is None else browser.post(path, data=data)


@pytest.mark.parametrize("query", ["since=2999-01-01", "since=1969-12-31", "until=0001-01-01"])
def test_days_without_figures_are_refused(sign_in, told, query):
    assert sign_in().get(f"/dashboard/metrics?{query}").status_code == 422


def test_figures_are_kept_for_those_to_whom_they_were_granted():
    one, other = (Caller(None, Grant(None, org, "default", None, None)) for org in ("acme", "other"))

    assert key_of(one, {}) != key_of(other, {})


def test_a_count_that_fails_says_so_and_is_not_begun_again():
    begun = []

    def fail():
        begun.append(threading.current_thread())
        raise BadInput("no such days")

    counts = Counts(patience_s=60)
    for _ in range(3):
        with pytest.raises(BadInput, match="no such days"):
            counts.get("x", fail)
    counts.close()

    assert len(begun) == 1
    assert not begun[0].is_alive()


def test_a_page_waits_once_for_all_of_its_counts():
    ready, began = threading.Event(), time.monotonic()
    counts = Counts(patience_s=4)

    assert counts.get_all(("slow", lambda: ready.wait(60), 0.0), ("too", lambda: ready.wait(60), 0.0)) == [None, None]
    assert time.monotonic() - began < 7.5  # not twice four
    ready.set()
    assert counts.get_all(("slow", bool, 0.0), ("too", bool, 0.0)) == [True, True]
    counts.close()


def test_equal_changes_of_a_conversation_are_one_line(sign_in, memory):
    chat = memory.conversation("web", user="ana")
    chat.append([{"role": "user", "content": "I live in Porto."}, {"role": "assistant", "content": "Lovely."}])
    chat.record("I moved to Faro.", "Nice.")
    memory.conversation("other", user="ana").record("Hello.", "Hi.")
    memory.user("bo").opt_out()

    page = sign_in().get("/dashboard").text
    newest = [re.sub(r"<[^>]*>", " ", row).split() for row in re.findall(r"<tr data-row>(.*?)</tr>", page, re.DOTALL)]
    words = [" ".join(row) for row in newest]
    said = {row.split("2026 ")[-1] for row in words}
    assert said >= {
        "4 messages stored ana web",
        "2 messages stored ana other",
        "2 facts learned ana web",
        "fact replaced ana web",
    }
    assert len(words) == len(said)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("summary.made", "3 summaries made"),
        ("message.rated", "3 replies rated"),
        ("consent.changed", "3 privacy choices changed"),
        ("erased", "erased, 3 times"),
    ],
)
def test_many_equal_changes_are_said_in_english(kind, words):
    event = Event(1, 0, kind, "app", "ana", "default", "default", "self", "web", "")
    assert [row["words"] for row in grouped_changes([event] * 3)] == [words]


def figure(page, title):
    """The number and the note below a title of the home page."""
    found = re.search(rf"<dt>{title}</dt><dd>(.*?)</dd>", page.text)
    return re.sub(r"<[^>]*>", "", found[1]).strip() if found else ""


@pytest.mark.parametrize("priced", [True, False])
def test_home_says_what_was_saved_in_money_only_where_a_price_is_configured(settings, priced):
    prices = {"big": Price(input=2.0, output=8.0, cached=0.5)} if priced else {}
    with Memory(config=Config(prices=prices), embedder=None) as memory:
        app = create_app(memory, settings)
        chat = memory.conversation("web", user="ana")
        for number in range(60):
            chat.append({"role": "user", "content": f"Day {number}: " + "we talked about the garden at length. " * 20})
            chat.context(budget_tokens=500)
            chat.append({"role": "assistant", "content": "I see."})
        chat.record_usage(model="big", input_tokens=1_000_000, output_tokens=10, cached_tokens=400_000)
        app.state.counts = Counts(fresh_s=0, patience_s=60)
        with TestClient(app, base_url=BASE, headers=BROWSER) as browser:
            browser.post("/sign-in", data={"key": memory.admin.keys.create("operator").key})
            page = browser.get("/dashboard")
            plots = browser.get("/dashboard/metrics").text
        saved = int(figure(page, "Tokens saved").split(" ")[0].replace(",", ""))
        if priced:
            assert figure(page, "Money saved by contexts").startswith(f"${saved * 2 / 1e6:.2f} ")
            assert figure(page, "Money saved by caches").startswith("$0.60 ")  # 400,000 tokens at $0.50 in place of $2
        else:
            assert figure(page, "Money saved by contexts").startswith("price unknown set prices")
            assert figure(page, "Money saved by caches").startswith("price unknown set prices")
        assert saved > 1000
        shown = re.search(r'<figure class="plot" id="latency".*?</figure>', plots, re.DOTALL)[0]
        assert re.search(r"<td[^>]*>\d[\d.]* ms</td>", shown)
        assert re.search(r'id="prefix".*?<td[^>]*>\d+ %</td>', plots, re.DOTALL)
