"""The import wizard and the export: what each step shows, what stands nowhere before it is asked for."""

from __future__ import annotations

import html
import json
import pickle
import re
import time

import pytest

from holdfast.server.gate import ServerSettings

LINES = b"".join(
    json.dumps(row).encode() + b"\n"
    for row in (
        {"role": "user", "content": "I live in Porto.", "name": "<b>Ana</b>"},
        {"role": "assistant", "content": "Noted."},
    )
)


def words(answer):
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", answer.text)))


def uploaded(browser, data=LINES, name="chat.jsonl"):
    return browser.post("/dashboard/import", files={"file": (name, data)})


def until_over(browser, address):
    for _ in range(1200):
        page = browser.get(address)
        if "data-poll" not in page.text:
            return page
        time.sleep(0.05)
    raise AssertionError("the import does not end")


def test_a_file_goes_through_the_wizard(sign_in, memory):
    browser = sign_in()
    page = uploaded(browser)
    address = page.url.path
    text = words(page)

    assert page.status_code == 200
    assert "JSONL, one message a line" in text
    assert "<b>Ana</b>" in text
    assert "<b>Ana</b>" not in page.text
    assert memory.admin.users() == []

    looked = browser.post(address, data={"do": "look", "user": "ana", "conversation": "old", "role-0": "user"})
    assert 'value="old"' in looked.text
    assert '<option value="user" selected>' in looked.text
    browser.post(address, data={"do": "start", "user": "ana", "conversation": "old", "role-0": "user"})
    done = until_over(browser, address)
    assert "2 messages stored" in words(done)
    assert memory.user("ana").conversations() == ["old"]
    assert "/dashboard/conversations/ana" in done.text
    browser.post(address, data={"do": "resume"})
    assert "0 messages stored , 2 already stored" in words(until_over(browser, address))

    gone = browser.post(address, data={"do": "discard"})
    assert "deleted from this server" in words(gone)
    assert browser.get(address).status_code == 404
    assert memory.user("ana").conversations() == ["old"]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "the file is empty"),
        (b"\0\1\2", "neither text nor a ZIP"),
        (b'{"a": 1}', "no conversations that are known"),
        (b"{broken\n", "line 1: it is not JSON"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_before_anything_is_stored(sign_in, memory, data, says):
    assert says in words(uploaded(sign_in(), data))
    assert memory.admin.users() == []


def test_no_file_is_said(sign_in):
    assert "Choose a file first." in words(sign_in().post("/dashboard/import", files={"file": ("", b"")}))
    assert sign_in().post("/dashboard/import", data={"file": "x"}).status_code == 415


def test_lines_that_cannot_be_used_are_left_out_on_demand(sign_in, memory):
    browser = sign_in()
    address = uploaded(browser, LINES + b"{broken\n").url.path
    refused = browser.post(address, data={"do": "start", "user": "ana"})
    assert refused.status_code == 422
    assert "some lines cannot be used" in words(refused)
    assert 'value="ana"' in refused.text
    browser.post(address, data={"do": "start", "user": "ana", "skip-bad": "on"})
    assert "2 messages stored" in words(until_over(browser, address))


def test_an_import_of_another_org_is_not_there(sign_in):
    browser = sign_in()
    address = uploaded(browser).url.path

    assert browser.get(address, params={"org": "other"}).status_code == 404
    assert sign_in("user", user="ana").get(address).status_code == 403


def test_everything_about_a_user_is_downloaded_and_taken_back(sign_in, memory):
    memory.conversation("c", user="ana").record("I live in Porto.", "Noted.")
    browser = sign_in()
    answer = browser.get("/dashboard/export", params={"user": "ana", "as": "json"})

    assert "attachment" in answer.headers["content-disposition"]
    memory.user("ana").erase()
    address = uploaded(browser, answer.content, "ana.json").url.path
    assert "what Holdfast exported of a user" in words(browser.get(address))
    browser.post(address, data={"do": "start", "user": "ana"})
    until_over(browser, address)
    assert [fact.value for fact in memory.user("ana").facts()] == ["Porto"]
    assert "Lives in Porto." in words(browser.get("/dashboard/export", params={"user": "ana", "as": "page"}))
    assert browser.get("/dashboard/export", params={"user": "nobody"}).status_code == 404


class TestLimits:
    @pytest.fixture
    def settings(self):
        return ServerSettings(max_body_bytes=1_000, max_upload_bytes=5_000)

    def test_a_file_may_be_longer_than_other_bodies_and_not_too_long(self, sign_in):
        browser = sign_in()
        assert uploaded(browser, LINES * 20).status_code == 200
        assert uploaded(browser, LINES * 100).status_code == 413
        assert browser.post("/dashboard/jobs", data={"do": "x" * 2_000}).status_code == 413


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("Trip with Bo.txt", b"13/01/2026, 10:00 - Ana: I live in Porto.\n", "WhatsApp chat"),
        ("MEMORY.md", b"# Me\n\n- I live in Porto.\n", "Markdown memory files"),
        ("x.omi.jsonl", b'{"format": "open-memory-interchange"}\n{"id": "1", "content": "Is vegan"}\n', "OMI"),
        ("mem0.pkl", pickle.dumps(({"a": {"data": "Is vegan"}}, {})), "FAISS"),
        ("../../..", LINES, "JSONL, one message a line"),
    ],
)
def test_the_ending_of_an_upload_tells_its_format(sign_in, name, data, says):
    page = uploaded(sign_in(), data, name)

    assert says in words(page)
    assert "cannot be read" not in words(page)
    assert "unexpected structure" not in words(page)
