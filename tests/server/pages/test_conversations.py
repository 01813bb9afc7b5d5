"""The pages of conversations, as a browser without a screen gets them."""

from __future__ import annotations

import json
import re
import threading
import time
from html import unescape
from urllib.parse import quote, unquote

import pytest
from starlette.testclient import TestClient

from holdfast import Memory
from holdfast.conversation import Conversation
from holdfast.jobs.rebuild import Rebuilder
from holdfast.server.app import create_app
from holdfast.server.pages import conversations
from holdfast.testing.fakes import HashEmbedder
from holdfast.testing.model import ScriptedModel

from ..conftest import BASE
from .conftest import BROWSER

ONE = "/dashboard/conversations/ana/web"


@pytest.fixture
def told(memory):
    """Forty messages with three facts, summarized."""
    chat = memory.conversation("web", user="ana")
    said = {0: "I'm vegetarian.", 3: "I live in Porto.", 12: "I eat fish now."}
    for n in range(20):
        chat.record(said.get(n, f"Point {n} about the garden."), "Noted.")
    memory.digest()
    return chat


def section(answer, name):
    assert answer.status_code == 200, answer.text
    found = re.search(rf'<section id="{name}".*?</section>', answer.text, re.DOTALL)
    assert found, name
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", found[0]))).strip()


def post(browser, path=ONE, **fields):
    return browser.post(path, data=fields)


def test_the_list_is_by_user_and_finds_beginnings(sign_in, memory):
    for user in ("ana", "anna maria", "bo/b", "Ärzte"):
        memory.conversation("a b", user=user).record("Hello.")
    memory.conversation("vet", user="ana", subject="rex").record("Hello.")
    page = sign_in().get("/dashboard/conversations")
    assert section(page, "list").count("a b 1 message") == 4
    assert 'href="/dashboard/conversations/bo%2Fb/a%20b"' in page.text
    assert 'href="/dashboard/conversations/ana/vet?subject=rex"' in page.text
    found = section(sign_in().get("/dashboard/conversations?name=an"), "list")
    assert "anna maria" in found
    assert "bo/b" not in found
    assert "No user name begins" in section(sign_in().get("/dashboard/conversations?name=zzz"), "list")
    assert sign_in().get("/dashboard/conversations/bo%2Fb/a%20b").status_code == 200


def test_the_list_goes_on_over_pages(sign_in, memory):
    names = [f"user {n:03}" for n in range(45)]
    for name in names:
        memory.conversation("c", user=name).record("Hello.")
    browser, seen, address = sign_in(), [], "/dashboard/conversations"
    while address:
        page = browser.get(address)
        seen += re.findall(r'<th scope="rowgroup"[^>]*><a[^>]*>(.*?)</a>', page.text)
        after = re.search(r'href="([^"]*)" rel="next"', page.text)
        address = unescape(after[1]) if after else ""
    assert seen == names


def test_other_tenants_are_chosen_and_not_mixed(sign_in, memory):
    memory.conversation("c", user="ana", org="acme").record("Hello.")
    memory.conversation("c", user="ana").record("Hello.")
    page = sign_in().get("/dashboard/conversations")
    assert '<option value="acme">' in page.text
    other = sign_in().get("/dashboard/conversations?org=acme")
    assert 'href="/dashboard/conversations/ana/c?org=acme"' in other.text
    assert sign_in("user", user="ana").get("/dashboard/conversations/ana/c").status_code == 403


def test_an_empty_memory_says_how_it_is_filled(sign_in):
    assert "Load demo" in section(sign_in().get("/dashboard/conversations"), "list")


def test_a_conversation_that_is_not_there_is_a_page_that_says_so(sign_in, told):
    answer = sign_in().get("/dashboard/conversations/ana/other")
    assert answer.status_code == 404
    assert "it may belong to another subject" in answer.text


def test_the_page_shows_what_was_said_what_covers_it_and_what_was_learned(sign_in, told):
    page = sign_in().get(ONE)
    transcript = section(page, "transcript")
    assert "I'm vegetarian." in transcript
    assert "dietary vegetarian → became pescatarian" in transcript
    assert "Messages 1 to 40 of 40" in transcript
    assert 'aria-label="Level 1, summary 1, messages 1 to 10, made ' in page.text
    assert 'colspan="3"' in page.text  # the meta summary over three chunks
    assert section(page, "chunks").startswith("Chunk summaries 3 ")
    assert section(page, "meta").startswith("Meta summaries 1 ")
    assert section(page, "facts").startswith("Facts and episodes 2 ")
    assert "data-events" in page.text


def test_what_was_learned_of_somebody_else_names_them(sign_in, memory):
    memory.conversation("web", user="ana").record("My son Leo is 4. I live in Porto.", "Noted.")
    page = sign_in().get(ONE)
    assert "Learned: Leo is 4 years old." in section(page, "transcript")
    assert "Learned: home Porto" in section(page, "transcript")


def test_a_long_transcript_is_read_page_by_page(sign_in, memory):
    chat = memory.conversation("web", user="ana")
    chat.append([{"role": "user", "content": f"Message {n}."} for n in range(1, 251)])
    browser, seen, address = sign_in(), [], ONE
    while address:
        page = browser.get(address)
        seen = [int(n) for n in re.findall(r'data-seq="(\d+)"', page.text)] + seen
        older = re.search(r'href="([^"]*)" rel="prev">', page.text.partition('id="transcript"')[2])
        address = unescape(older[1]) if older else ""
    assert sorted(set(seen)) == list(range(1, 251))
    assert seen[-200:] == list(range(51, 251))  # the first page is filled up with what follows
    assert 'id="m7"' in browser.get(f"{ONE}?at=7").text
    assert browser.get(f"{ONE}?at=99999").status_code == 200
    assert browser.get(f"{ONE}?at=x&chunk=nothing&first=&make=rubbish&budget=0").status_code == 200


def test_a_chunk_opens_with_its_versions_and_the_difference(sign_in, told):
    browser, first = sign_in(), told.summaries(1)[0]
    told.rebuild("summaries", start_seq=1, end_seq=10)
    old, new = told.summaries(1, live=False)[:2]
    assert first.id in (old.id, new.id)
    panel = section(browser.get(f"{ONE}?chunk={first.id}"), "chunk")
    assert "older version" in panel
    assert "Versions 1" in panel
    now = section(browser.get(f"{ONE}?chunk={told.summaries(1)[0].id}"), "chunk")
    assert "in use" in now
    assert told.summaries(1)[0].text[:20] in now


def test_fragments_are_the_sections_alone(sign_in, told):
    answer = sign_in().get(ONE, headers={"X-Fragment": "chunks nothing facts"})
    assert re.findall(r'<section id="(\w+)"', answer.text) == ["chunks", "facts"]
    assert answer.text.startswith("<section")
    assert answer.text.rstrip().endswith("</section>")


def test_a_range_is_estimated_rebuilt_and_reverted(sign_in, told, clock):
    browser, before = sign_in(), told.summaries(1)
    estimate = section(browser.get(f"{ONE}?make=chunk&first=1&last=15"), "rebuild")
    assert "messages 1 to 15 Ranges 3" in estimate
    assert "Model calls none" in estimate
    assert "Not built by this memory: episodes." in estimate
    assert told.rebuilds() == []

    done = post(browser, do="rebuild", make="chunk", first="1", last="15")
    assert "Rebuilt 3 ranges, 0 model calls. The previous versions are kept." in section(done, "rebuild")
    now = told.summaries(1)
    assert [s.version for s in now] == [2, 2, 1]
    assert {s.id for s in before} <= {s.id for s in told.summaries(1, live=False)}

    (made,) = told.rebuilds()
    assert made.layer == "chunk"
    clock.advance(seconds=1)
    back = post(browser, do="revert", rebuild=made.id)
    assert "Reverted to the previous version." in back.text
    panel = section(back, "rebuild")
    assert "The previous version is active again." in panel
    assert "Rebuilt" not in panel
    assert panel.count("Reverted: Chunk, messages 1 to") == 1
    assert panel.count("Chunk, messages 1 to") == 2
    assert [s.text for s in told.summaries(1)] == [s.text for s in before]


def test_a_layer_that_this_memory_does_not_build_is_refused_first(sign_in, told):
    page = sign_in().get(f"{ONE}?make=episodes")
    assert "the built-in rules make no episodes" in section(page, "rebuild")
    assert post(sign_in(), do="rebuild", make="episodes").status_code == 422
    assert "Nothing to rebuild" in section(sign_in().get(f"{ONE}?make=meta&first=38&last=40"), "rebuild")


def test_with_a_model_the_estimate_counts_its_calls(memory, settings, clock):
    model = ScriptedModel()
    with Memory(llm=model, embedder=HashEmbedder(), clock=clock) as read_by_a_model:
        chat = read_by_a_model.conversation("web", user="ana")
        for n in range(20):
            chat.record(f"Point {n} about the garden.", "Noted.")
        read_by_a_model.digest()
        asked = len(model.asked)
        app = create_app(read_by_a_model, settings)
        key = read_by_a_model.admin.keys.create("operator").key
        with TestClient(app, base_url=BASE, headers=BROWSER) as browser:
            browser.post("/sign-in", data={"key": key})
            estimate = section(browser.get(f"{ONE}?make=summaries&first=1&last=15"), "rebuild")
            assert "Ranges 2 Model calls 2 " in estimate
            assert "price unknown" in estimate
            assert len(model.asked) == asked
            done = section(post(browser, do="rebuild", make="summaries", first="1", last="15"), "rebuild")
            assert "Rebuilt 2 ranges, 2 model calls" in done
            assert len(model.asked) == asked + 2


def test_a_learned_fact_is_undone_and_restored(sign_in, told, memory):
    browser, user = sign_in(), memory.user("ana")
    fish = next(fact for fact in user.facts() if fact.category == "dietary")
    undone = post(browser, do="undo", fact=fish.id)
    assert "Undone" in undone.text
    assert [fact.key for fact in user.facts() if fact.category == "dietary"] == ["vegetarian"]
    assert "Restore" in section(undone, "transcript")
    post(browser, do="restore-fact", fact=fish.id)
    assert [fact.key for fact in user.facts() if fact.category == "dietary"] == ["pescatarian"]


def test_a_message_is_edited_and_forgotten(sign_in, told, memory):
    browser, user = sign_in(), memory.user("ana")
    edited = post(browser, do="edit", seq="7", content="I live in Lisbon.\r\nReally.")
    assert section(edited, "transcript").count(" edited ") == 1
    assert told.load(start_seq=7, limit=1)[0].content == "I live in Lisbon.\nReally."
    assert [fact.value for fact in user.facts() if fact.category == "home"] == ["Lisbon"]
    gone = post(browser, do="forget", seq="7")
    assert "Message 7 was forgotten" in section(gone, "transcript")
    assert re.search(r"Forgotten, with everything .*messages 1.*No trace of it is left", gone.text)
    assert [fact for fact in user.facts() if fact.category == "home"] == []
    assert "Lisbon" not in gone.text


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"do": "nothing"},
        {"do": "edit", "seq": "x", "content": "a"},
        {"do": "edit", "seq": "7"},
        {"do": "rebuild", "make": "rubbish"},
        {"do": "forget", "seq": "-1"},
        {"do": "forget", "seq": "9" * 16},
        {"do": "rate", "seq": "2", "score": "great"},
        {"do": "rebuild", "make": "facts", "first": "1", "last": "9" * 16},
    ],
    ids=str,
)
def test_a_form_that_cannot_be_used_changes_nothing(sign_in, told, memory, fields):
    before = memory.user("ana").export()
    answer = post(sign_in(), **fields)
    assert answer.status_code in (404, 415, 422)
    assert "<h1>" in answer.text
    assert memory.user("ana").export() == before


def test_a_paused_conversation_says_so_and_rebuilds_nothing(sign_in, told, memory):
    memory.user("ana").pause()
    page = sign_in().get(ONE)
    assert "Memory is paused" in page.text
    assert post(sign_in(), do="rebuild", make="facts").status_code == 409


def test_looking_at_the_context_uses_and_notes_nothing(sign_in, told, memory):
    told.context("What should I cook?")
    user = memory.user("ana")
    before = user.export()
    page = sign_in().get(f"{ONE}?query=What+should+I+eat%3F&budget=600")
    shown = section(page, "context")
    assert "of 600 tokens" in shown
    assert "facts" in shown
    assert user.export() == before
    assert "Unchanged since the last reply." in section(sign_in().get(f"{ONE}?query="), "context")


def test_the_address_adds_no_text_to_a_receipt(sign_in, told):
    for said in ("forgotten.E2.<b>-1", "forgotten.E3.facts-1", "forgotten.E2.facts-x", "nothing"):
        assert 'id="notice"' not in sign_in().get(ONE, params={"said": said}).text
    answer = sign_in().get(f"{ONE}?said=forgotten.E1.facts-2", headers={"X-Fragment": "facts"})
    assert unquote(answer.headers["x-notice"]) == "Forgotten, with everything learned only from it (facts 2)."


def test_any_name_and_any_text_stands_on_the_page_as_text(sign_in, memory):
    name, words = '<img src=x onerror="canary(1)">/..?&#', "</textarea></section><script>canary(2)</script>"
    memory.conversation(name, user=name).record(words, words)
    memory.digest()
    address = f"/dashboard/conversations/{quote(name, safe='')}/{quote(name, safe='')}"
    for path in ("/dashboard/conversations", address.rpartition("/")[0], address):
        page = sign_in().get(path)
        assert page.status_code == 200
        assert "<img" not in page.text
        assert "<script>" not in page.text
    assert "</textarea></section><script>" not in page.text
    assert words in unescape(page.text)


def test_what_was_sent_for_a_reply_is_shown_with_what_changed(sign_in, told):
    for question in ("I live in Oslo now.", "Is it <b>cold</b> there?"):
        told.context(question)
        reply = told.record(question, "Yes.").seqs[-1]
    told.record_usage("gpt-x", input_tokens=900, output_tokens=3, cached_tokens=512, seq=reply)
    browser = sign_in()
    shown = section(browser.get(f"{ONE}?sent={reply}"), "sent")

    assert "900 tokens in, 512 of them cached" in shown
    assert "facts: 1 new, 1 no longer shown" in shown
    assert "New: Lives in Oslo." in shown
    assert "No longer shown: Lives in Porto." in shown
    assert f"?sent={reply}#sent" in browser.get(ONE).text
    assert "No context is on record for message 2." in section(browser.get(f"{ONE}?sent=2"), "sent")
    for odd in ("-1", "0", "999999999", "x"):
        assert browser.get(f"{ONE}?sent={odd}").status_code == 200


def test_facts_that_answer_the_question_are_not_called_passages(sign_in, told):
    told.context("Where do I live, in Porto?")
    reply = told.record("Where do I live, in Porto?", "In Porto.").seqs[-1]
    sent = told.sent(reply)
    shown = section(sign_in().get(f"{ONE}?sent={reply}"), "sent")

    assert sent.recalled > 0
    assert f"For the question {sent.recalled} item" in shown
    assert "passage" not in shown


def test_one_chats_here_with_a_typed_reply_a_stub_or_the_model(sign_in, told):
    browser = sign_in()
    for fields, expected in (({"reply": "I see."}, "I see."), ({}, conversations.STUB)):
        answer = browser.post(ONE, data={"do": "say", "text": "I live in <b>Oslo</b> now.", **fields})
        assert "What was sent for message" in section(answer, "sent")
        assert [message.content for message in told.load(last=2)] == ["I live in <b>Oslo</b> now.", expected]
    assert post(browser, do="say", text="  ").status_code == 422
    assert "<b>Oslo</b>" not in browser.get(ONE).text


def test_the_context_is_shown_as_json_letter_by_letter(sign_in, told):
    browser = sign_in()
    page = browser.get(f"{ONE}?query=What+should+I+cook%3F&shown=json").text
    raw = json.loads(unescape(re.search(r'<pre class="wrap json"[^>]*>(.*?)</pre>', page, re.DOTALL)[1]))

    expected = told.context("What should I cook?", note=False).to_dict()
    assert raw == json.loads(json.dumps(expected))
    alone = browser.get(f"{ONE}?query=What+should+I+cook%3F").text
    assert "<pre" not in alone  # it is long, and few look at it
    assert "shown=json" in alone


def test_the_context_stands_beside_that_for_an_earlier_question(sign_in, told):
    """What is in one alone is marked; both are of today, and the page says so."""
    browser = sign_in()
    first = next(message for message in told.load() if message.role == "user")
    shown = section(browser.get(f"{ONE}?query=Where+is+the+zeppelin%3F&against={first.seq}"), "context")

    assert f"Compared with message {first.seq}" in shown
    assert "built from memory as it is now" in shown
    assert "zeppelin" in shown.partition("Only now: ")[2].partition("Raw JSON")[0]
    assert "the stable prefix is the same" in shown
    assert "nothing to compare with" in section(browser.get(f"{ONE}?query=x&against=2"), "context")
    assert "Compared with" not in section(browser.get(f"{ONE}?query=x"), "context")


def test_a_conversation_is_erased_and_the_others_stay(sign_in, told, memory):
    memory.conversation("other", user="ana").record("I play the cello.", "Nice.")
    browser = sign_in()
    assert post(browser, do="erase", word="no").status_code == 422
    assert told.state() is not None
    page = post(browser, do="erase", word="erase")
    assert "Forgotten, with everything learned only from it" in page.text
    assert [state.conversation for state in memory.user("ana").overview()] == ["other"]
    assert "Porto" not in [fact.value for fact in memory.user("ana").facts()]


def test_stale_summaries_are_not_up_to_date(sign_in, told, memory):
    told.rebuild("summaries", end_seq=10)
    assert any(summary.stale for summary in told.summaries())  # the one above
    for path in (ONE, "/dashboard/conversations", "/dashboard/conversations/ana"):
        text = sign_in().get(path).text
        assert "out of date" in text, path
        assert "up to date" not in text, path


def test_facts_by_hand_are_no_conversation(sign_in, told, memory):
    """They are not counted and not listed, and their words are no quote."""
    memory.user("ana").remember(category="hobby", key="plays", value="the violin")
    browser = sign_in()
    for path in (
        "/dashboard/conversations",
        "/dashboard/conversations/ana",
        "/dashboard/users",
        "/dashboard/users/ana",
    ):
        assert "(by hand)" not in browser.get(path).text, path
    assert "Entered by hand" in browser.get("/dashboard/users/ana").text
    assert section(browser.get("/dashboard/conversations"), "list").count("40 messages") == 1


def test_a_message_that_changed_meanwhile_is_not_overwritten(sign_in, told):
    """The second of two who edit a message sees both texts."""
    browser = sign_in()
    version = re.search(
        r'name="seq" value="1"><input type="hidden" name="version" value="(\w+)"', browser.get(ONE + "?at=1").text
    )
    told.edit(1, "I'm vegan.")
    page = post(browser, path=ONE, do="edit", seq="1", content="I eat everything.", version=version[1])
    assert page.status_code == 409
    conflict = re.search(r'<section id="conflict".*?</section>', page.text, re.DOTALL)[0]
    assert "I&#39;m vegan." in conflict
    assert "I eat everything." in conflict
    assert told.load(start_seq=1, limit=1)[0].content == "I'm vegan."


def test_an_older_day_is_shown_with_its_year(sign_in, memory):
    chat = memory.conversation("old", user="ana")
    chat.append([{"role": "user", "content": "Hello.", "at": "2019-03-14T09:12:00Z"}])
    assert "14 Mar 2019" in section(sign_in().get("/dashboard/conversations/ana/old"), "transcript")
    assert '1<span class="narrow"> message</span>' in sign_in().get("/dashboard/conversations").text


def test_a_rebuild_is_begun_without_an_estimate(sign_in, told, monkeypatch):
    def estimated(*_args):
        raise AssertionError("an estimate was made")

    monkeypatch.setattr(Rebuilder, "_estimate_all", estimated)
    answer = post(sign_in(), do="rebuild", make="facts", first="1", last="15")

    assert answer.status_code == 200
    assert len(told.rebuilds()) == 1
    assert post(sign_in(), do="rebuild", make="facts", first="9", last="1").status_code == 422


def test_the_estimate_of_a_long_range_reads_its_first_messages(sign_in, memory, monkeypatch):
    monkeypatch.setattr(conversations, "ESTIMATED", 4)
    chat = memory.conversation("long", user="ana")
    chat.append(
        [{"role": "user", "content": f"I live in {city}."} for city in ("Porto", "Faro", "Rome", "Oslo", "Bern")]
    )
    memory.digest()

    page = sign_in().get("/dashboard/conversations/ana/long?make=facts").text
    assert "Estimated from the first 4 messages, 1 to 4." in page
    assert 'name="last" value="5"' in page  # what is rebuilt is the whole range
    assert "Estimated from" not in sign_in().get("/dashboard/conversations/ana/long?make=facts&first=2").text


def test_an_estimate_that_takes_long_leaves_the_page_at_once_and_is_there_later(sign_in, memory, monkeypatch):
    """The frame says what is read and offers a way out; a browser without scripts loads it again by itself."""
    read, rebuild = threading.Event(), Conversation.rebuild
    monkeypatch.setattr(Conversation, "rebuild", lambda *given, **named: read.wait(30) and rebuild(*given, **named))
    memory.conversation("trip", user="ana").record("I live in Porto.")
    browser = sign_in()
    browser.app.state.estimates.patience_s = 0.01
    path = "/dashboard/conversations/ana/trip?make=facts"

    page = browser.get(path).text
    assert "Reading messages 1 to 1 " in section(browser.get(path), "rebuild")
    assert re.search(r'<section id="rebuild"[^>]*data-poll', page)
    assert re.search(r'href="/dashboard/conversations/ana/trip">\s*Cancel', page)
    assert f'<noscript><meta http-equiv="refresh" content="2; url={path}">' in page
    read.set()
    for _ in range(100):
        page = browser.get(path).text
        if "Reading messages" not in page:
            break
        time.sleep(0.05)
    assert "Rebuild this range" in page
    assert "http-equiv" not in page

    memory.conversation("trip", user="ana").record("I moved to Faro.")
    read.clear()
    assert "Reading messages" in browser.get(path).text  # what was estimated before is not shown for what is there now
    read.set()
