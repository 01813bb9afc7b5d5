"""What a user does at ``/me``, in a browser, from the link of an app to the receipt."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import timedelta

import httpx
import pytest
from playwright.sync_api import Page, expect

from holdfast import Memory
from holdfast.config import reload_config
from holdfast.server.pages.texts import LANGUAGES, load_texts

from .chromium import Visitor, go, look, until
from .conftest import signed_in
from .looks import picture, sticks_out, violations
from .served import Site, serve

CONTEXT = "/v1/users/priya/conversations/japan/context"


def context_of(site: Site) -> str:
    """What a model would be shown next, asked for as an app does."""
    headers = {"Authorization": f"Bearer {site.key('app')}"}
    answer = httpx.post(site.origin + CONTEXT, headers=headers, json={"query": "Where do I live?"}, timeout=60)
    assert answer.status_code == 200
    return json.dumps(answer.json()["messages"])


def belief(page: Page, words: str):
    return page.locator(".belief", has_text=words)


@pytest.fixture
def priya(fresh: Site, visitor) -> Visitor:
    return visitor(fresh, "user", "priya")


@pytest.fixture
def page(priya: Visitor) -> Page:
    opened = priya.open("/me", width=360, height=740)
    yield opened
    assert priya.watch.all == []


def test_an_app_sends_somebody_to_their_own_page(fresh, chromium):
    """A token minted over REST, a link with the key behind the ``#``, and the page is theirs; the key is nowhere to be seen."""
    app = {"Authorization": f"Bearer {fresh.key('app')}"}
    made = httpx.post(fresh.origin + "/v1/tokens", headers=app, json={"user": "priya"}, timeout=60).json()
    context = chromium.new_context()
    page = context.new_page()
    go(page, f"{fresh.origin}/sign-in?next=%2Fme#key={made['key']}")

    page.wait_for_url(f"{fresh.origin}/me")
    expect(page.locator("h1")).to_have_text("What I remember about you")
    assert made["key"] not in page.content() + json.dumps(context.cookies())
    assert page.evaluate("() => document.cookie") == ""  # HttpOnly
    context.close()


@pytest.mark.parametrize("stray", [".", "%20", ")", "%E2%80%9D.", " "])
def test_a_link_with_the_end_of_its_sentence_signs_in_all_the_same(fresh, chromium, stray):
    context = chromium.new_context()
    page = context.new_page()
    page.goto(f"{fresh.origin}/sign-in?next=%2Fme#key={fresh.key('user', user='priya')}{stray}")

    expect(page.locator("h1")).to_have_text("What I remember about you")
    assert "key" not in page.url
    context.close()


@pytest.mark.parametrize("wrong", ["hf_wrong", "hf_%", "ab cd", "hf_" + "x" * 300])
def test_a_link_with_a_wrong_key_says_so_and_the_key_leaves_the_address(fresh, chromium, wrong):
    context = chromium.new_context()
    page = context.new_page()
    page.goto(f"{fresh.origin}/sign-in?next=%2Fme#key={wrong}")

    expect(page.locator("main")).to_contain_text("Sign-in failed")
    assert "key" not in page.url
    context.close()


def test_a_corrected_fact_changes_the_next_context(fresh, page):
    assert "Seattle" in context_of(fresh)
    home = belief(page, "Lives in Seattle.")
    home.locator("summary", has_text="Change").click()
    home.get_by_label("Correct value").fill("Tacoma")
    page.evaluate("() => { window.sameDocument = true; }")
    home.get_by_role("button", name="Save").click()

    expect(belief(page, "Lives in Tacoma.")).to_have_count(1)
    assert page.evaluate("() => window.sameDocument === true")
    expect(page.locator("#said")).to_contain_text("The next reply uses it.")
    assert "loaded once" in page.evaluate(
        "() => performance.getEntriesByType('navigation').length === 1 && 'loaded once'"
    )
    changed = context_of(fresh)
    assert "Lives in Tacoma. (as of" in changed
    assert "Lives in Seattle. (as of" not in changed
    assert (
        "I live in Seattle, so what airports should I be looking at? (later replaced by: Lives in Tacoma.)" in changed
    )

    page.locator("#said").get_by_role("button", name="Undo").click()
    expect(belief(page, "Lives in Seattle.")).to_have_count(1)
    back = context_of(fresh)
    assert "Lives in Seattle. (as of" in back
    assert "lives in: Tacoma (later replaced by: Lives in Seattle.)" in back


def test_an_amount_that_cannot_be_read_is_refused_beside_its_field(page, priya):
    budget = belief(page, "Has a budget of")
    budget.locator("summary", has_text="Change").click()
    field = budget.get_by_label("Correct value")
    expect(field).to_have_value(re.compile(r"\d+ usd"))
    field.fill("a lot")
    budget.get_by_role("button", name="Save").click()

    expect(budget.get_by_role("alert")).to_contain_text("Not stored. Please type a number")
    expect(field).to_have_value("a lot")
    expect(field).to_be_focused()

    field.fill("$4,800")
    budget.get_by_role("button", name="Save").click()
    expect(belief(page, "Has a budget of 4800 usd.")).to_have_count(1)
    expect(page.get_by_role("alert")).to_have_count(0)
    assert [line for line in priya.watch.all if "422" not in line] == []
    priya.watch.clear()


def test_forgetting_can_be_taken_back_for_a_moment_and_then_shows_a_receipt(fresh, page):
    """The first time it is undone and nothing was sent; the second time it is waited for."""
    violin = belief(page, "Plays the violin.")
    for undone in (True, False):
        violin.get_by_text("Forget", exact=True).click()
        violin.get_by_role("button", name="Forget it").click()
        expect(page.get_by_role("button", name="Undo")).to_be_focused()
        if undone:
            page.keyboard.press("Enter")
            expect(violin).to_be_visible()
            assert len(fresh.memory.user("priya").facts("hobby")) == 1
    expect(page.locator("#receipt")).to_contain_text("no trace of it")
    expect(violin).to_have_count(0)
    assert fresh.memory.user("priya").facts("hobby") == []


def test_pausing_stops_the_use_of_memory_and_resuming_restores_it(fresh, page):
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#status")).to_contain_text("Memory is paused")
    assert "Seattle" not in context_of(fresh)
    expect(page.locator("summary", has_text="Change")).to_have_count(0)

    page.get_by_role("button", name="Resume memory").click()
    expect(page.locator("#status")).to_contain_text("Memory is on")
    assert "Seattle" in context_of(fresh)


def test_everything_is_erased_with_a_receipt(fresh, page):
    page.get_by_text("Forget everything").first.click()
    page.get_by_label("Type").fill("forget")
    page.get_by_role("button", name="Forget everything").click()

    expect(page.locator("#receipt")).to_contain_text("bytes on disk were searched")
    expect(page.locator("#facts")).to_contain_text("I know nothing about you yet.")
    assert fresh.memory.user("priya").export()["conversations"] == []
    assert "Seattle" not in context_of(fresh)


def test_both_downloads_arrive(page):
    for name, words in (("Download as a page", "Lives in Seattle."), ("Download as JSON", '"format": "holdfast-user"')):
        with page.expect_download() as found:
            page.get_by_role("link", name=name).click()
        assert words in found.value.path().read_text(encoding="utf-8")


def test_a_change_by_keyboard_alone(page):
    """From the address bar: skip to the content, to the fact, open Change, write, Enter; Escape closes what was opened."""
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.activeElement.className") == "skip"
    page.keyboard.press("Enter")

    def tab_to(words: str) -> None:
        for _ in range(80):
            page.keyboard.press("Tab")
            focused = page.evaluate("() => document.activeElement.ariaLabel || document.activeElement.textContent")
            if words in focused:
                return
        raise AssertionError(f"the keyboard does not reach {words}")

    tab_to("Change: Lives in Seattle.")
    page.keyboard.press("Enter")
    field = belief(page, "Lives in Seattle.").get_by_label("Correct value")
    expect(field).to_be_focused()
    page.keyboard.press("Escape")
    expect(belief(page, "Lives in Seattle.").locator("summary", has_text="Change")).to_be_focused()
    page.keyboard.press("Enter")
    expect(field).to_be_focused()
    page.keyboard.press("Control+A")
    page.keyboard.type("Tacoma")
    page.keyboard.press("Enter")

    expect(belief(page, "Lives in Tacoma.")).to_have_count(1)
    assert page.evaluate("() => document.activeElement !== document.body")


def test_all_of_it_works_without_scripts(fresh, chromium):
    context = chromium.new_context(java_script_enabled=False)
    context.add_cookies([{"name": "holdfast_key", "value": fresh.key("user", user="priya"), "url": fresh.origin}])
    page = context.new_page()
    go(page, fresh.origin + "/me")
    home = belief(page, "Lives in Seattle.")
    home.locator("summary", has_text="Change").click()
    home.get_by_label("Correct value").fill("Tacoma")
    home.get_by_role("button", name="Save").click()
    expect(page.locator("#said")).to_contain_text("Changed.")
    violin = belief(page, "Plays the violin.")
    violin.get_by_text("Forget", exact=True).click()
    violin.get_by_role("button", name="Forget it").click()

    expect(page.locator("#receipt")).to_contain_text("Erased")
    expect(belief(page, "Lives in Tacoma.")).to_have_count(1)
    expect(violin).to_have_count(0)
    context.close()


def test_facts_learned_elsewhere_appear_by_themselves(fresh, page):
    """Said in a chat while the page is open: it is there without a reload."""
    page.evaluate("() => { window.sameDocument = true; }")
    fresh.memory.conversation("web-42", user="priya").record("I have a cat named Miso.", "Lovely.")

    until(page, lambda: belief(page, "Miso").count() > 0, 30, "the new fact")
    assert page.evaluate("() => window.sameDocument === true")


def test_several_are_forgotten_by_keyboard_and_the_first_time_undone(fresh, page):
    """Choose, be asked with the count, undo; then again, and wait."""
    for undone in (True, False):
        for words in ("Lives in Seattle.", "Plays the violin."):
            box = page.get_by_role("checkbox", name=f"Choose: {words}")
            box.focus()
            page.keyboard.press("Space")
            expect(box).to_be_checked()
        expect(page.locator("[data-picked]")).to_have_text("2 are chosen.")
        page.get_by_role("button", name="Forget the chosen ones").press("Enter")
        expect(page.get_by_role("heading", name="Forget these 2 facts?")).to_be_focused()
        page.get_by_role("button", name="Forget 2 facts").press("Enter")
        expect(page.get_by_role("button", name="Undo")).to_be_focused()
        if undone:
            page.keyboard.press("Enter")
            assert len(fresh.memory.user("priya").facts("hobby")) == 1
            page.reload()
    expect(page.locator("#receipt")).to_contain_text("no trace of it")
    expect(belief(page, "Plays the violin.")).to_have_count(0)
    assert "Seattle" not in [fact.value for fact in fresh.memory.user("priya").facts("home")]
    expect(page.locator("#changes")).to_contain_text("Forgotten: a fact")


def test_a_live_update_leaves_what_is_chosen(fresh, page):
    box = page.get_by_role("checkbox", name="Choose: Lives in Seattle.")
    box.check()
    fresh.memory.conversation("web-42", user="priya").record("I have a cat named Miso.", "Lovely.")
    expect(page.locator("#changes")).to_contain_text("Miso")
    expect(box).to_be_checked()


def test_undo_beside_the_fact_that_was_changed(fresh, page):
    home = belief(page, "Lives in Seattle.")
    home.locator("summary", has_text="Change").click()
    home.get_by_label("Correct value").fill("Tacoma")
    home.get_by_role("button", name="Save").click()
    changed = belief(page, "Lives in Tacoma.")
    undo = changed.get_by_role("button", name="Undo: Lives in Tacoma.")
    expect(undo).to_be_in_viewport()
    undo.click()
    expect(belief(page, "Lives in Seattle.")).to_have_count(1)


def test_the_own_search_is_reached_by_its_key(fresh, page):
    page.keyboard.press("/")
    page.keyboard.type("seatt")
    page.keyboard.press("Enter")
    expect(page.locator("#facts [role=status]")).to_contain_text("Contain “seatt”")
    expect(page.locator(".belief")).to_have_count(1)


def test_a_prompt_of_ones_own_is_saved_and_reset_on_a_phone(fresh, priya):
    page = priya.open("/me", width=390, height=740)
    page.locator("#prompts summary", has_text="Summary of a part of a conversation").click()
    field = page.locator('#prompts details[data-keep="prompt-chunk_summary"] textarea')
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 390
    field.fill("Like a diary.")
    page.get_by_role("button", name="Save: Summary of a part of a conversation").click()

    expect(page.locator("#said")).to_contain_text("Saved.")
    expect(page.locator("#said")).to_be_in_viewport()
    assert fresh.memory.user("priya").prompts.get("chunk_summary") == "Like a diary."
    page.locator("#prompts summary", has_text="Summary of a part of a conversation").click()
    page.get_by_role("button", name="Use the default again: Summary of a part of a conversation").click()
    expect(page.locator("#said")).to_contain_text("no longer used")
    assert fresh.memory.user("priya").prompts.get("chunk_summary") != "Like a diary."
    assert priya.watch.all == []


@pytest.mark.parametrize("language", [name for name in LANGUAGES if name != "en"])
def test_the_page_fits_and_reads_well_in_each_language(sites, chromium, language):
    """In light and dark, on a phone, a tablet and a desk, from right to left where the language is."""
    someone = signed_in(chromium, sites("rich"), "user", {"user": "priya"})
    someone.context.add_cookies([{"name": "holdfast_language", "value": language, "url": someone.origin}])
    try:
        page = someone.open("/me", width=390)
        assert page.evaluate("document.documentElement.lang") == language
        assert page.evaluate("getComputedStyle(document.body).direction") == load_texts("me", language).direction
        for width, scheme in ((390, "light"), (768, "dark"), (1440, "light")):
            look(page, width, 800, scheme)
            assert sticks_out(page) == [], (language, width)
            assert violations(page) == [], (language, width)
            picture(page, f"me {language} {width}")
        page = someone.open("/sign-in", width=390)
        assert (sticks_out(page), violations(page)) == ([], [])
        picture(page, f"sign in {language}")
        assert someone.watch.all == []
    finally:
        someone.context.close()


def test_scripts_speak_the_language_of_the_page(fresh, chromium):
    """Undo of what is about to be forgotten, and the count of the palette."""
    someone = signed_in(chromium, fresh, "user", {"user": "priya"})
    someone.context.add_cookies([{"name": "holdfast_language", "value": "de", "url": someone.origin}])
    try:
        page = someone.open("/me")
        page.keyboard.press("Control+k")
        page.keyboard.type("seattle")
        expect(page.locator("#palette [role=status]")).to_have_text("1 Treffer")
        page.keyboard.press("Escape")
        one = page.locator(".belief", has=page.locator("summary", has_text="Vergessen")).first
        one.locator("summary", has_text="Vergessen").click()
        one.get_by_role("button", name="Vergessen", exact=True).click()
        expect(page.locator(".undo")).to_contain_text("Das wird vergessen.")
        page.get_by_role("button", name="Rückgängig").click()
        expect(one).to_be_visible()
        assert someone.watch.all == []
    finally:
        someone.context.close()


def test_a_server_that_restarts_loses_nothing_that_is_typed(tmp_path, chromium):
    """Saving while it is away says so and keeps the words; the same button saves them when it is back."""
    with Memory(tmp_path / "m.db") as memory:
        ana = memory.user("ana")
        ana.remember(category="home", key="lives_in", value="Porto")
        with serve(memory) as site:
            someone = signed_in(chromium, site, "user", {"user": "ana"})
            page = someone.open("/me")
            page.locator("summary", has_text="Change").first.click()
            page.get_by_label("Correct value").first.fill("Faro")
        try:
            page.get_by_role("button", name="Save").first.click()
            expect(page.locator("#notice.bad")).to_contain_text("could not be reached")
            assert page.get_by_label("Correct value").first.input_value() == "Faro"
            assert [fact.value for fact in ana.facts("home")] == ["Porto"]
            with serve(memory, port=int(site.origin.rpartition(":")[2])):
                page.get_by_role("button", name="Save").first.click()
                expect(page.locator("#facts")).to_contain_text("Faro")
                assert [fact.value for fact in ana.facts("home")] == ["Faro"]
        finally:
            someone.context.close()


def test_on_a_slow_network_one_press_changes_once_and_shows_it(fresh, visitor):
    """With a second of delay, a second press sends nothing, and the page shows what was stored."""
    priya = fresh.memory.user("priya")
    page = visitor(fresh, "user", "priya").open("/me")
    network = page.context.new_cdp_session(page)
    slow = {"offline": False, "latency": 1000, "downloadThroughput": 20_000, "uploadThroughput": 20_000}
    network.send("Network.emulateNetworkConditions", slow)
    before = len(priya.history())
    one = page.locator(".belief", has_text="Lives in Seattle").first
    one.locator("summary", has_text="Change").click()
    one.get_by_label("Correct value").fill("Tacoma")
    save = one.get_by_role("button", name="Save")
    save.click()
    save.click(force=True, no_wait_after=True)
    expect(page.locator("#facts")).to_contain_text("Lives in Tacoma")
    assert len(priya.history()) == before + 1


def test_what_was_read_is_decided_by_keyboard_and_each_decision_undone(fresh, page):
    """Several and one, live, in two tabs; it fits and reads well wherever it is looked at."""
    reload_config(fresh.memory.config, replace(fresh.memory.config, ask_before_learning=True))
    priya, chat = fresh.memory.user("priya"), fresh.memory.conversation("web-42", user="priya")
    before = sorted(fact.text for fact in priya.facts())
    chat.record("I live in Tacoma now. I have a cat named Miso.", "Lovely.")
    review = page.locator("#review")
    expect(review).to_contain_text("Instead of: Lives in Seattle.")  # without a reload
    assert sorted(fact.text for fact in priya.facts()) == before

    question = review.locator(".belief", has_text="Lives in Tacoma.")
    question.get_by_role("button", name="Remember: Lives in Tacoma.", exact=True).press("Enter")
    expect(belief(page, "Lives in Tacoma.").locator("visible=true")).to_have_count(1)
    page.get_by_role("button", name="Undo", exact=True).press("Enter")
    expect(question).to_have_count(1)
    assert sorted(fact.text for fact in priya.facts()) == before

    question.locator("summary", has_text="Edit").press("Enter")
    question.get_by_label("Correct value").fill("Olympia")
    page.keyboard.press("Enter")
    expect(page.locator("#facts")).to_contain_text("Lives in Olympia.")
    boxes = review.get_by_role("checkbox")
    left = boxes.count()
    assert left > 1
    for number in range(left):
        boxes.nth(number).press("Space")
    expect(review.locator("[data-picked]")).to_have_text(f"{left} are chosen.")
    review.get_by_role("button", name="Do not remember the chosen ones").press("Enter")
    expect(review).to_be_hidden()
    assert priya.rejected(waiting=True) == []
    page.get_by_role("button", name="Undo", exact=True).press("Enter")
    expect(boxes).to_have_count(left)
    assert sticks_out(page) == []


@pytest.mark.parametrize("language", ["en", "ar"])
def test_questions_fit_and_read_well(fresh, chromium, language):
    reload_config(fresh.memory.config, replace(fresh.memory.config, ask_before_learning=True))
    fresh.memory.conversation("web-42", user="priya").record(
        "I live in Tacoma now. I have a cat named Miso.", "Lovely."
    )
    for role, whose, path in (("user", {"user": "priya"}, "/me"), ("operator", {}, "/dashboard/users/priya")):
        someone = signed_in(chromium, fresh, role, whose)
        someone.context.add_cookies([{"name": "holdfast_language", "value": language, "url": someone.origin}])
        page = someone.open(path)
        expect(page.locator("#review")).to_contain_text("Tacoma")
        page.locator("#review details.confirm > summary").first.click()
        for width, scheme in ((390, "light"), (768, "dark"), (1440, "light"), (1440, "dark")):
            look(page, width, 900, scheme)
            assert sticks_out(page) == [], (path, width)
            assert violations(page) == [], (path, width, scheme)
            picture(page, f"questions {role} {language} {width} {scheme}")
        assert someone.watch.all == []
        someone.context.close()


@pytest.mark.parametrize("how", ["revoked", "expired"])
def test_a_key_that_ends_while_the_page_is_read_shows_nothing_more(fresh, chromium, how):
    """The page asks for a key, shows nothing that was learned since, and gives back what was typed."""
    keys, clock = fresh.memory.admin.keys, fresh.memory._engine.clock
    made = keys.create("user", user="priya", expires_at=timedelta(hours=1))
    context = chromium.new_context(reduced_motion="reduce")
    page = context.new_page()
    look(page, 1280, 800, "light")
    go(page, f"{fresh.origin}/sign-in?next=%2Fme")
    page.locator("#key").fill(made.key)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{fresh.origin}/me")
    home = belief(page, "Lives in Seattle.")
    home.locator("summary", has_text="Change").click()
    home.get_by_label("Correct value").fill("Tacoma")
    if how == "revoked":
        keys.revoke(made.about.id)
    else:
        clock.advance(hours=2)
    fresh.memory.conversation("web-42", user="priya").record("I have a cat named Miso.", "Lovely.")
    page.wait_for_url(re.compile("/sign-in"))
    assert "Miso" not in page.content()
    assert "Tacoma" not in [fact.value for fact in fresh.memory.user("priya").facts("home")]
    page.locator("#key").fill(fresh.key("user", user="priya"))
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(re.compile("/me"))
    expect(page.locator("#notice.warn")).to_contain_text("Your text is back")
    expect(belief(page, "Lives in Seattle.").get_by_label("Correct value")).to_have_value("Tacoma")
    context.close()
