"""Lists of any length: found, paged by key, and taken away as files that no spreadsheet executes."""

from __future__ import annotations

import csv
import io
import json
import re
from datetime import UTC, datetime, timedelta

import pytest

from holdfast.errors import BadInput
from holdfast.server.pages.layout import csv_cell, format_ago

NAMES = ["=1+1", "ana", "Bo 100%", "c_d", "cxd", "Éva", "~x"]


@pytest.fixture
def many(memory, clock):
    for name in NAMES:
        clock.advance(minutes=1)
        memory.conversation("c", user=name).record("I live in Porto.", "Noted.")
    return memory


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("AN", ["ana"]),
        ("100%", ["Bo 100%"]),
        ("c_d", ["c_d"]),
        ("~", ["~x"]),
        ("Éva", ["Éva"]),
        ("éVA", []),
        ("default", NAMES),
        ("x", ["cxd", "~x"]),
    ],
)
def test_users_are_found_by_a_part_of_a_name(many, words, found):
    if words == "éVA" and many.admin.users(matching="éva"):
        found = ["Éva"]  # a database that knows more letters than those of ASCII
    assert [user for _, user, _ in many.admin.users(matching=words)] == sorted(found)
    first = many.admin.users(matching=words, limit=1)
    rest = many.admin.users(matching=words, after=first[0]) if first else []
    assert [*first, *rest] == many.admin.users(matching=words)


def rows_of(answer):
    assert answer.status_code == 200
    return list(csv.DictReader(io.StringIO(answer.content.decode("utf-8-sig"))))


LISTS = [
    "/dashboard/users",
    "/dashboard/conversations",
    "/dashboard/conversations/ana",
    "/dashboard/changes",
    "/dashboard/jobs",
    "/dashboard/users/ana",
]


@pytest.mark.parametrize("path", LISTS)
def test_every_list_is_a_file_with_all_its_rows(sign_in, many, path):
    browser = sign_in()
    page = browser.get(path).text
    links = {kind: re.search(rf'href="([^"]*\bas={kind}[^"]*)" download', page) for kind in ("csv", "json")}
    assert all(links.values()) or "No unfinished jobs" in page
    rows, found = rows_of(browser.get(path, params={"as": "csv"})), browser.get(path, params={"as": "json"})

    assert found.headers["content-disposition"].endswith('.json"')
    data = found.json()
    assert len(rows) == len(data)
    assert not data or list(rows[0]) == list(data[0])


def test_a_file_has_what_the_list_is_filtered_by_and_nothing_is_computed(sign_in, many):
    browser = sign_in()
    names = [row["user"] for row in rows_of(browser.get("/dashboard/users?as=csv"))]
    assert names == sorted(["'=1+1", *NAMES[1:]], key=lambda name: name.lstrip("'"))
    assert [row["user"] for row in browser.get("/dashboard/users?as=json").json()] == sorted(NAMES)
    assert [row["user"] for row in rows_of(browser.get("/dashboard/users?q=AN&as=csv"))] == ["ana"]
    facts = browser.get("/dashboard/users/ana?as=json").json()
    assert [fact["text"] for fact in facts] == ["Lives in Porto."]


@pytest.mark.parametrize("text", ["=A1", "+1", "-1", "@x", "\t=1", "\r=1", " =1", "＝1"])
def test_no_cell_is_a_formula(text):
    assert csv_cell(text) == f"'{text}"
    assert (csv_cell(-1), csv_cell("a=1"), csv_cell(None)) == ("-1", "a=1", "")


def test_conversations_are_paged_by_key(sign_in, memory, clock):
    for number in range(120):
        clock.advance(minutes=1)
        memory.conversation(f"talk {number:03}", user="ana").record("Hello.")
    memory.user("ana").remember("Likes tea.")
    browser = sign_in()
    seen, page = [], browser.get("/dashboard/conversations/ana")
    while True:
        seen += re.findall(r"<bdi>(talk \d+)</bdi>", page.text)
        more = re.search(r'href="([^"]*)" rel="next"', page.text)
        if more is None:
            break
        page = browser.get(more[1].replace("&amp;", "&"))
    assert seen == [f"talk {number:03}" for number in reversed(range(120))]
    assert len(browser.get("/dashboard/conversations/ana?as=json&name=11").json()) == 11
    for wrong in ("x", "[1]", "{}", '["a","b","c"]', json.dumps([10**30, "a", "b"])):
        assert browser.get("/dashboard/conversations/ana", params={"after": wrong}).status_code == 422


@pytest.mark.parametrize(
    ("past", "words"),
    [
        (timedelta(seconds=30), "just now"),
        (timedelta(minutes=5), "5 min ago"),
        (timedelta(hours=47), "1 d ago"),
        (timedelta(days=29, hours=23), "29 d ago"),
    ],
)
def test_times_are_said_as_people_say_them(past, words):
    assert format_ago(datetime.now(UTC) - past) == words
    assert re.fullmatch(r"\d+ \w{3} \d{4}", format_ago(datetime.now(UTC) - timedelta(days=31)))


def test_the_file_of_all_conversations_has_those_of_every_user_of_the_org(sign_in, memory):
    for user in ("ana", "anton", "ben"):
        memory.conversation("web", user=user).record("Hello.")
        memory.conversation("=app", user=user, bot="b2").record("Hello.")
    memory.conversation("web", user="ana", org="acme").record("Hello.")
    memory.user("ana").remember(category="hobby", key="plays", value="the violin")
    browser = sign_in()
    rows = rows_of(browser.get("/dashboard/conversations?as=csv"))
    assert [(row["user"], row["bot"], row["conversation"]) for row in rows] == [
        (user, bot, talk) for user in ("ana", "anton", "ben") for bot, talk in (("b2", "'=app"), ("default", "web"))
    ]
    named = browser.get("/dashboard/conversations?name=an&as=json").json()
    assert {row["user"] for row in named} == {"ana", "anton"}
    assert [row["user"] for row in browser.get("/dashboard/conversations?org=acme&as=json").json()] == ["ana"]


@pytest.mark.parametrize("path", ["/dashboard/users", "/dashboard/conversations"])
def test_users_are_sorted_by_their_last_message_and_the_order_is_remembered(sign_in, memory, clock, path):
    for number in (3, 1, 4, 2):
        memory.conversation("c", user=f"u{number}").record("Hello.")
        clock.advance(minutes=1)
    memory.user("u9").remember(category="home", key="lives_in", value="Oslo")  # by hand: no message
    browser = sign_in()

    def shown(query=""):
        return re.findall(r">(u[1-4])</a>", browser.get(path + query).text)

    assert shown() == ["u1", "u2", "u3", "u4"]
    for _ in range(200):  # until it is counted
        if (found := shown("?sort=newest")) == ["u2", "u4", "u1", "u3"]:
            break
    assert found == ["u2", "u4", "u1", "u3"]
    assert shown() == found  # as it was chosen last
    assert shown("?sort=name") == ["u1", "u2", "u3", "u4"] == shown()
    assert shown("?sort=oldest") == list(reversed(found))


def test_users_in_any_order_come_page_by_page_and_as_a_file(sign_in, memory, clock):
    """More users than a page holds, by their conversations, their last message, and words of their names."""
    for number in range(80):
        memory.conversation("c", user=f"u{number:03}", org="acme" if number % 2 else "default").append("Hello.")
        clock.advance(minutes=1)
    for name in ("two", "three"):
        memory.conversation(name, user="u007", org="acme").append("Hello.")
    browser = sign_in()

    def shown(query):
        page = browser.get(f"/dashboard/users?{query}").text
        more = re.search(r'href="([^"]+skip=50)"', page)
        return re.findall(r">(u\d\d\d)</a>", page), more[1].replace("&amp;", "&") if more else None

    newest = ["u007", *(f"u{number:03}" for number in reversed(range(80)) if number != 7)]
    first, more = shown("sort=newest")
    assert first == newest[:50]
    assert shown(more.partition("?")[2]) == (newest[50:], None)
    assert shown("sort=conversations")[0][:3] == ["u007", "u001", "u003"]
    assert shown("sort=conversations&org=acme&q=U00")[0] == ["u007", "u001", "u003", "u005", "u009"]
    assert shown("sort=newest&org=acme")[0] == [one for one in newest if int(one[1:]) % 2]
    assert shown("sort=newest&skip=nonsense")[0] == newest[:50]
    rows = browser.get("/dashboard/users?sort=newest&as=json").json()
    assert [row["user"] for row in rows] == newest


def test_operators_list_users_in_any_order(memory, clock, ask):
    for user, talks in (("ana", 1), ("ben", 3), ("cleo", 2)):
        for number in range(talks):
            memory.conversation(f"c{number}", user=user, org="acme" if user == "cleo" else "default").append("Hello.")
        clock.advance(minutes=1)
    served = ask("operator")

    def names(**query):
        found = [user for _, user, _ in memory.admin.users(**query)]
        assert [row["user"] for row in served.get("/v1/users", params=query).json()["data"]] == found
        return found

    assert names() == ["cleo", "ana", "ben"]
    assert names(sort="newest") == ["cleo", "ben", "ana"]
    assert names(sort="oldest", skip=1) == ["ben", "cleo"]
    assert names(sort="conversations", limit=2) == ["ben", "cleo"]
    assert names(sort="conversations", matching="A") == ["ben", "cleo", "ana"]
    assert names(sort="newest", org="default") == ["ben", "ana"]
    assert names(org="default") == ["ana", "ben"]
    for wrong in ({"sort": "age"}, {"skip": 1}, {"sort": "newest", "after": ("acme", "cleo", "default")}):
        with pytest.raises(BadInput, match="cannot be listed so"):
            memory.admin.users(**wrong)
