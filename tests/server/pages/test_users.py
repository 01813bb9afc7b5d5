"""The pages about users, as a browser without scripts has them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from holdfast import User
from holdfast.server.pages.me import group_facts
from holdfast.server.pages.users import timeline_bars

ANA = "/dashboard/users/ana"


@pytest.fixture
def ana(memory, clock):
    chat = memory.conversation("c", user="ana")
    chat.record("I live in Porto and I'm vegetarian.", "Noted.")
    clock.advance(days=10)
    chat.record("Actually, I eat fish now.", "Good to know.")
    return memory.user("ana")


@pytest.fixture
def desk(ana, sign_in):
    return sign_in("operator")


def post(browser, do, path=ANA, **fields):
    return browser.post(path, data={"do": do, **fields})


def sentences(page):
    found = re.findall(r'<p class="sentence" dir="auto">(.*?)</p>', page.text)
    return [re.sub(r"<.*", "", re.sub(r"^<a [^>]*>", "", words)).strip() for words in found]


def test_the_list_counts_and_finds(desk, memory):
    memory.conversation("c", user="bo/b", org="acme", bot="b2").record("I live in Oslo.", "Noted.")
    memory.user("bo/b", org="acme", bot="b2").pause()

    everybody = desk.get("/dashboard/users").text
    assert re.findall(r'<th scope="row"><a href="([^"]*)">', everybody) == [
        "/dashboard/users/bo%2Fb?org=acme&amp;bot=b2",
        ANA,
    ]
    assert "paused" in everybody
    assert "bo/b" not in desk.get("/dashboard/users?q=AN").text
    assert ">ana<" not in desk.get("/dashboard/users?org=acme").text
    assert "No user matches" in desk.get("/dashboard/users?q=zed").text
    there = desk.get("/dashboard/users/bo%2Fb?org=acme&bot=b2")
    assert sentences(there) == ["Lives in Oslo."]


def test_a_long_list_is_paged_without_loss(desk, memory):
    for number in range(60):
        memory.conversation("c", user=f"u{number:02}").record("Hello.")
    seen, page = [], desk.get("/dashboard/users")
    while True:
        seen += re.findall(r'<th scope="row"><a [^>]*>([^<]*)</a>', page.text)
        more = re.search(r'href="([^"]*)" rel="next"', page.text)
        if more is None:
            break
        page = desk.get(more[1].replace("&amp;", "&"))
    assert seen == ["ana", *(f"u{number:02}" for number in range(60))]
    for wrong in ("x", "[1]", "{}", '["a","b"]'):
        assert desk.get("/dashboard/users", params={"after": wrong}).status_code == 422


def test_a_user_shows_facts_with_links_to_the_words(desk):
    page = desk.get(ANA)

    assert sentences(page) == ["Lives in Porto.", "Eats fish but no meat: is pescatarian."]
    assert 'href="/dashboard/conversations/ana/c?at=1#m1"' in page.text
    assert 'href="/dashboard/conversations/ana/c?at=3#m3"' in page.text
    assert "<s>Is vegetarian.</s>" in page.text
    assert 'href="/dashboard/users/ana/fact?about=self&amp;category=dietary"' in page.text


def test_the_line_of_time_tells_when_each_value_held(desk):
    page = desk.get(f"{ANA}/fact?category=dietary")

    rows = re.findall(r'<tr><th scope="row">(.*?)</th><td>(.*?)</td>', page.text)
    assert rows[:2] == [
        ("Is vegetarian.", "1 Jan 2026, 09:00 to 11 Jan 2026, 09:00"),
        ("Eats fish but no meat: is pescatarian.", "11 Jan 2026, 09:00 until now"),
    ]
    assert page.text.count("<rect ") == 2


def test_mending_by_hand(desk, ana):
    (home,) = ana.facts("home")
    assert "Lives in Faro." in sentences(post(desk, "correct", fact=home.id, value="Faro"))
    assert "Nothing changed." in post(desk, "correct", fact=ana.facts("home")[0].id, value="Faro").text

    (diet,) = ana.facts("dietary")
    there = f"{ANA}/fact?category=dietary"
    assert "never true" in post(desk, "never-true", there, fact=diet.id).text
    assert [fact.key for fact in ana.facts("dietary")] == ["vegetarian"]
    post(desk, "restore", there, fact=diet.id)
    assert [fact.key for fact in ana.facts("dietary")] == ["pescatarian"]


def test_forgetting_and_erasing_show_receipts(desk, ana):
    (home,) = ana.facts("home")
    assert "Erased: level E2" in post(desk, "forget", fact=home.id).text
    assert ana.facts("home") == []

    assert post(desk, "erase", word="no").status_code == 422
    assert len(ana.facts()) == 1
    page = post(desk, "erase", word="Erase ")
    assert "Erased: level E2" in page.text
    assert "Nothing is known about ana" in page.text
    assert ana.conversations() == []


def test_choices_of_the_user(desk, ana):
    assert "Paused since" in post(desk, "pause").text
    assert "Not stored" in post(desk, "correct", fact=ana.facts("home")[0].id, value="Faro").text
    post(desk, "resume")
    post(desk, "never", topic="health")
    assert ana.status().never == ("health",)
    post(desk, "allow", topic="health")
    assert ana.status().never == ()
    assert "Opted out since" in post(desk, "opt-out", erase="yes").text
    assert ana.facts() == []
    post(desk, "opt-in")
    assert ana.status().state == "active"
    assert post(desk, "fly").status_code == 422


def test_what_was_never_there_is_said_so(desk):
    assert "Nothing is known about zed" in desk.get("/dashboard/users/zed").text
    assert "No values here" in desk.get(f"{ANA}/fact?category=none").text


def test_what_stood_at_a_place_before_is_told_beside_what_stands_there_now(ana):
    (you,) = group_facts(ana.facts(), ana.history(), ["dietary"])

    assert [topic.category for topic in you.topics] == ["dietary", "home"]
    diet = you.topics[0]
    assert ([old.key for old in diet.beliefs[0].earlier], diet.past) == (["vegetarian"], [])
    ana.never_true(ana.facts("home")[0].id)
    (you,) = group_facts(ana.facts(), ana.history())
    home = next(topic for topic in you.topics if topic.category == "home")
    assert ([old.value for old in home.past], home.beliefs) == (["Porto"], [])


def test_values_at_the_same_time_stand_in_lanes_of_their_own(memory, clock):
    chat = memory.conversation("c", user="bo")
    chat.record("I speak Spanish and Korean.")
    clock.advance(days=1)
    chat.record("I speak Dutch.")
    facts = memory.user("bo").history("language", "spoken")

    placed, lanes = timeline_bars(facts, datetime(2026, 1, 1, 9, tzinfo=UTC) + timedelta(days=2))
    assert lanes == 3
    assert sorted(one.lane for one in placed) == [0, 1, 2]
    assert all(0 <= one.start <= 992 and 8 <= one.width <= 1000 for one in placed)
    assert timeline_bars([], clock()) == ([], 0)


def test_what_happened_is_told_without_what_was_said(desk):
    page = desk.get(ANA, headers={"X-Fragment": "audit"}).text

    told = re.findall(r"<p>((?:message|fact) [a-z]+)(?: × \d+)? · by <bdi>(\w+)</bdi>", page)
    assert {("fact added", "local"), ("fact replaced", "local"), ("message added", "local")} <= set(told)
    assert "fish" not in page
    assert "Porto" not in page


def test_a_rejected_claim_leads_to_its_message(desk, monkeypatch):
    candidate = SimpleNamespace(quote="I live in Rome", seq=3)
    refused = SimpleNamespace(candidate=candidate, reason="it is a question", conversation="c")
    monkeypatch.setattr(User, "rejected", lambda _user, *, limit=100: [refused])
    assert 'href="/dashboard/conversations/ana/c?at=3#m3"' in desk.get(ANA).text


def test_many_facts_are_on_pages_and_a_search_finds_one(sign_in, memory):
    """A page shows 100 facts and 10 earlier values of each; none is lost between pages."""
    ana = memory.user("ana")
    for number in range(150):
        ana.remember(f"Likes the song number {number}.")
    for number in range(15):
        ana.remember(category="home", key="lives_in", value=f"Town {number}")
    for path, browser in (("/dashboard/users/ana", sign_in()), ("/me", sign_in("user", user="ana"))):
        first = browser.get(path).text
        second = browser.get(f"{path}?from=100").text
        shown = [set(re.findall(r'class="belief" id="(\w+)"', page)) for page in (first, second)]
        assert [len(ids) for ids in shown] == [100, 51]
        assert shown[0] | shown[1] == {fact.id for fact in ana.facts(limit=500)}
        assert 'rel="next"' in first
        assert 'rel="next"' not in second
        assert 'rel="prev"' in second
        assert sum(f"<s>Lives in Town {number}.</s>" in first + second for number in range(15)) == 10
        assert len(first.encode()) < 500_000
        assert 'class="belief"' in browser.get(f"{path}?from=700").text  # behind the last page: the last page
        found = browser.get(f"{path}?q=song+number+142").text
        (only,) = re.findall(r'class="belief" id="(\w+)"', found)
        assert ana.fact(only).text == "Likes the song number 142."
    assert "4 older values on the timeline" in sign_in().get("/dashboard/users/ana").text


def test_a_topic_of_the_past_is_shown_behind_a_full_page(sign_in, memory):
    ana = memory.user("ana")
    for number in range(100):
        ana.remember(category="preference", key=f"likes_{number}", value=f"song {number}")
    zoo = ana.remember(category="zoo", key="visits", value="a zoo in Faro").fact
    ana.never_true(zoo.id)
    for path, browser in (("/dashboard/users/ana", sign_in()), ("/me", sign_in("user", user="ana"))):
        assert "a zoo in Faro" in browser.get(path).text


def test_the_heading_counts_what_is_listed(ana, sign_in, memory, clock):
    """A fact whose days are over is no longer listed, though nothing has ended it yet."""
    memory.conversation("c", user="ana").record("I have a dentist appointment on Monday.", "Noted.")
    before = len(memory.user("ana").facts())
    clock.advance(days=60)
    page = sign_in("operator").get(ANA)
    counted = re.search(r'id="facts-title">Facts.*?data-count>(\d+)', page.text)

    assert before > len(memory.user("ana").facts())
    assert counted
    assert int(counted[1]) == len(sentences(page)) == len(memory.user("ana").facts())
