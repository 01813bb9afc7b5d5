"""What the palette finds, and for whom."""

from __future__ import annotations

import re
from html import unescape

import pytest

from holdfast import Config
from holdfast.server.pages import find


def found(answer) -> list[tuple[str, str]]:
    assert answer.status_code == 200
    rows = re.findall(
        r'<li><a href="([^"]*)">(.*?)</a>', answer.text.partition('id="found"')[2].partition("</section>")[0], re.DOTALL
    )
    return [
        (unescape(address), re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", "", text))).strip())
        for address, text in rows
    ]


@pytest.fixture
def told(memory):
    memory.conversation("trip 1", user="ana").record("I live in Porto.")
    memory.conversation("trip 2", user="ben", org="acme", bot="helper").record("I live in Porto.")
    memory.user("ana").remember("Likes quiet trains.")


def test_a_user_and_a_word_find_that_users_conversations_and_facts(sign_in, told, memory):
    fact = memory.user("ana").facts("home")[0]
    rows = found(sign_in().get("/dashboard/find?q=ana+porto"))
    assert rows == [
        ("/dashboard/users/ana", "ana"),
        (f"/dashboard/users/ana?q=Lives%20in%20Porto.#{fact.id}", "Lives in Porto. ana"),
    ]
    rows = found(sign_in().get("/dashboard/find?q=ben"))
    assert rows[0] == ("/dashboard/users/ben?org=acme&bot=helper", "ben acme · helper")
    assert ("/dashboard/conversations/ben/trip%202?org=acme&bot=helper", "trip 2 ben · acme · helper") in rows


def test_words_alone_find_what_is_known_of_the_user_at_hand(sign_in, told):
    assert [text for _, text in found(sign_in().get("/dashboard/find?q=trains&user=ana"))] == [
        "Likes quiet trains. ana"
    ]
    assert [text for _, text in found(sign_in().get("/dashboard/find?q=trains"))] == ["Likes quiet trains. ana"]
    assert ("/dashboard/jobs", "Jobs") in found(sign_in().get("/dashboard/find?q=job"))


def test_a_word_alone_finds_facts_and_conversations_of_any_user(sign_in, told, memory):
    """Of all orgs and bots, each with whose it is; what was forgotten is found no more."""
    rows = [text for _, text in found(sign_in().get("/dashboard/find?q=PORTO"))]
    assert rows == ["Lives in Porto. ben · acme · helper", "Lives in Porto. ana"]
    assert [text for _, text in found(sign_in().get("/dashboard/find?q=por+LIVES"))] == rows
    assert [text for _, text in found(sign_in().get("/dashboard/find?q=trip"))] == [
        "trip 2 ben · acme · helper",
        "trip 1 ana",
    ]
    assert found(sign_in().get("/dashboard/find?q=%25")) == found(sign_in().get("/dashboard/find?q=p_rto")) == []
    memory.user("ana").forget(memory.user("ana").facts("home")[0].id)
    assert [text for _, text in found(sign_in().get("/dashboard/find?q=porto"))] == rows[:1]


def test_so_many_users_are_looked_through_at_a_time(sign_in, told, memory, monkeypatch):
    """Where there are more, the page says so and goes on from there."""
    monkeypatch.setattr(find, "LOOKED_THROUGH", 1)
    memory.user("zoe").remember("Likes Porto.")
    browser, address, seen = sign_in(), "/dashboard/find?q=porto", []
    for _ in range(4):
        answer = browser.get(address)
        seen += [text for _, text in found(answer)]
        further = re.search(r'Not all users were looked through. <a href="([^"]*)"', answer.text)
        if further is None:
            break
        address = unescape(further[1])
    assert seen == ["Lives in Porto. ben · acme · helper", "Lives in Porto. ana", "Likes Porto. zoe"]


def test_the_page_says_where_the_palette_asks(sign_in, told):
    assert (
        'href="/dashboard/find?user=ben&amp;org=acme&amp;bot=helper"'
        in sign_in().get("/dashboard/users/ben?org=acme&bot=helper").text
    )
    assert 'id="find" href="/me/find"' in sign_in("user", user="ana").get("/me").text
    assert 'id="find"' not in sign_in(None).get("/sign-in").text


def test_an_end_user_finds_only_their_own(sign_in, told, memory):
    browser = sign_in("user", user="ana")
    fact = memory.user("ana").facts("home")[0]
    assert found(browser.get("/me/find?q=porto")) == [(f"/me?q=Lives%20in%20Porto.#{fact.id}", "Lives in Porto.")]
    assert found(browser.get("/me/find?q=ben")) == []
    assert browser.get("/me/find?q=porto&user=ben").status_code == 403
    assert browser.get("/dashboard/find?q=porto").status_code == 403
    other = sign_in("user", user="ben", org="acme", bot="helper")
    assert [text for _, text in found(other.get("/me/find?q=porto"))] == ["Lives in Porto."]
    assert found(other.get("/me/find?q=trains")) == []


def test_an_end_user_finds_the_prompts_where_they_are_allowed(sign_in, memory):
    browser = sign_in("user", user="ana")
    assert found(browser.get("/me/find?q=notes")) == []
    memory.admin.reload(Config(users_may_set_prompts=True))
    assert found(browser.get("/me/find?q=notes")) == [("/me#prompts", "How I take notes")]


def test_every_word_counts(memory, told):
    assert len(memory.admin.containing("lives in porto .").facts) == 2
    assert memory.admin.containing("lives in porto zebra").facts == ()


@pytest.mark.parametrize("named", [False, True])
def test_further_hits_are_reached_owner_by_owner(sign_in, memory, named):
    """Those of one who has several are on one page; users who are named take nobody's place."""
    for number in range(8):
        memory.user(f"u{number}").remember("Likes quiet trains.")
    memory.user("u5").remember("Takes trains to work.")
    if named:
        memory.conversation("about trains", user="trains").record("Hello.")
    browser, address, seen = sign_in(), "/dashboard/find?q=trains", []
    for _ in range(4):
        answer = browser.get(address)
        seen += [text for _, text in found(answer) if "trains" in text and " u" in text]
        further = re.search(r'<a href="([^"]*)">Search further', answer.text)
        if further is None:
            break
        address = unescape(further[1])

    assert sorted(seen) == sorted([f"Likes quiet trains. u{n}" for n in range(8)] + ["Takes trains to work. u5"])
