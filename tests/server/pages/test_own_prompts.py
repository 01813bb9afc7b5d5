"""Prompts of one's own on ``/me``, as a browser without scripts has them, where the operator allows it."""

from __future__ import annotations

import html
import re

import pytest

from holdfast import Config, Memory
from holdfast.jobs.model_client import MAX_PROMPT_CHARS

SECTION = 'id="prompts"'


@pytest.fixture
def memory():
    with Memory(embedder=None, config=Config(users_may_set_prompts=True)) as opened:
        opened.conversation("c", user="ana").record("I live in Porto.", "Noted.")
        yield opened


@pytest.fixture
def me(memory, sign_in):
    return sign_in("user", user="ana")


def section(page):
    return page.text.partition(SECTION)[2].partition("</section>")[0]


def form_of(page, name):
    """Return the version, the text and the words about the source that the form of a prompt shows."""
    of = next(part for part in section(page).split("<details")[1:] if f'data-keep="prompt-{name}"' in part)
    version = re.search(r'name="version" value="(\d+)"', of)[1]
    text = re.search(r"<textarea[^>]*>\n(.*?)</textarea>", of, re.DOTALL)[1]
    return int(version), html.unescape(text), re.search(r'<p class="quiet small">(.*?)</p>', of)[1]


def save(me, name, text, version=0, do="prompt"):
    return me.post("/me", data={"do": do, "prompt": name, "version": version, "text": text})


def test_each_prompt_shows_the_text_that_holds_and_whose_it_is(me, memory):
    memory.admin.prompts().set("chunk_summary", "Of the org.")
    memory.admin.prompts(bot="default").set("meta_summary", "Of the bot.")
    memory.user("ana").prompts.set("fact_extraction", "Of Ana.")
    page = me.get("/me")

    assert form_of(page, "fact_extraction") == (1, "Of Ana.", "Yours, version 1")
    assert form_of(page, "meta_summary") == (0, "Of the bot.", "Set for this assistant")
    assert form_of(page, "chunk_summary") == (0, "Of the org.", "Set for everyone here")
    version, text, source = form_of(page, "episodes")
    assert (version, "Of Ana." in text, source) == (0, True, "The default, with the words for facts above")


def test_a_text_of_ones_own_is_used_until_the_default_is_taken_again(me, memory):
    prompts = memory.user("ana").prompts
    before = prompts.get("chunk_summary")
    assert form_of(me.get("/me"), "chunk_summary") == (0, before, "The default")

    page = save(me, "chunk_summary", " Like a diary. ")
    assert "Saved." in page.text
    assert prompts.get("chunk_summary") == "Like a diary."
    assert form_of(page, "chunk_summary") == (1, "Like a diary.", "Yours, version 1")
    assert memory.user("bo").prompts.get("chunk_summary") == before

    page = save(me, "chunk_summary", "", 1, do="prompt-reset")
    assert "Your own text is no longer used." in page.text
    assert prompts.get("chunk_summary") == before
    assert form_of(page, "chunk_summary") == (0, before, "The default")


def test_the_same_text_makes_no_version(me, memory):
    same = memory.user("ana").prompts.get("episodes")
    assert "Nothing changed." in save(me, "episodes", same.replace("\n", "\r\n")).text
    assert memory.user("ana").prompts.versions("episodes") == []


def test_what_is_too_long_or_empty_is_shown_again_with_the_reason(me, memory):
    long = "Note <b>walks</b>. " + "x" * MAX_PROMPT_CHARS
    page = save(me, "episodes", long)
    assert page.status_code == 422
    assert f"{len(long):,} characters are too many" in section(page)
    assert form_of(page, "episodes")[1] == long
    assert "<b>walks" not in page.text

    page = save(me, "episodes", "  ")
    assert page.status_code == 422
    assert "Not saved: there is no text." in section(page)
    assert memory.user("ana").prompts.versions("episodes") == []


def test_what_changed_meanwhile_is_shown_beside_the_text_typed(me, memory):
    prompts = memory.user("ana").prompts
    prompts.set("episodes", "Of another window.")
    page = save(me, "episodes", "Of this one.", version=0)

    assert page.status_code == 409
    assert '<p class="told" dir="auto">Of another window.</p>' in section(page)
    assert form_of(page, "episodes")[:2] == (1, "Of this one.")
    assert prompts.get("episodes") == "Of another window."
    assert save(me, "episodes", "Of this one.", version=1).status_code == 200
    assert prompts.get("episodes") == "Of this one."
    assert save(me, "episodes", "", version=1, do="prompt-reset").status_code == 409
    assert prompts.get("episodes") == "Of this one."


def test_with_memory_off_nothing_is_saved_and_nothing_is_lost(me, memory):
    memory.user("ana").opt_out()
    page = save(me, "episodes", "Only walks.")
    assert page.status_code == 409
    assert "Not saved: memory is off." in section(page)
    assert form_of(page, "episodes")[1] == "Only walks."


def test_where_it_is_not_allowed_there_is_no_form_and_the_text_typed_is_given_back(me, memory):
    memory.admin.reload(Config(users_may_set_prompts=False))
    assert SECTION not in me.get("/me").text
    page = save(me, "episodes", "Only <i>walks</i>.")
    assert page.status_code == 403
    assert "not offered here" in section(page)
    assert "Only &lt;i&gt;walks&lt;/i&gt;." in section(page)
    assert memory.user("ana").prompts.versions("episodes") == []


@pytest.mark.parametrize(("name", "version"), [("nosuch", "0"), ("episodes", "x"), ("episodes", "9" * 30)])
def test_what_no_form_sends_is_refused(me, name, version):
    assert save(me, name, "Only walks.", version).status_code == 422


def test_a_key_for_one_assistant_sets_the_prompts_for_that_one(memory, sign_in):
    save(sign_in("user", user="ana", bot="tutor"), "episodes", "Only lessons.")
    assert memory.user("ana", bot="tutor").prompts.get("episodes") == "Only lessons."
    assert memory.user("ana").prompts.versions("episodes") == []
