"""Signing in and out, what a cookie opens and what it does not, and the frame around every page."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from holdfast.server.app import create_app
from holdfast.server.gate import from_own_page
from holdfast.server.pages.layout import HEADERS, STATIC, fragment, link, local_address

from ..conftest import BASE


def test_who_has_no_key_is_asked_to_sign_in_and_comes_back(sign_in, memory):
    browser = sign_in(None)
    asked = browser.get("/dashboard/x?a=b%20c", follow_redirects=False)
    assert (asked.status_code, asked.headers["location"]) == (303, "/sign-in?next=%2Fdashboard%2Fx%3Fa%3Db%2520c")
    key = memory.admin.keys.create("operator").key
    back = browser.post(asked.headers["location"], data={"key": f" {key}\n"}, follow_redirects=False)
    assert (back.status_code, back.headers["location"]) == (303, "/dashboard/x?a=b%20c")
    cookie = back.headers["set-cookie"]
    assert key not in cookie
    assert {"HttpOnly", "SameSite=strict", "Path=/", "Max-Age=43200"} <= set(cookie.split("; "))
    assert "Secure" not in cookie
    assert browser.get("/dashboard/x").status_code == 404


def test_behind_tls_the_cookie_goes_over_tls_only(sign_in, memory):
    browser = sign_in(None)
    headers = {"Origin": "https://127.0.0.1:7800", "Sec-Fetch-Site": "same-origin"}
    browser.base_url = "https://127.0.0.1:7800"
    assert browser.post("/sign-in", data={"key": "x"}, headers=headers).status_code == 403  # not a name of its own
    del headers["Origin"]
    answer = browser.post(
        "/sign-in", data={"key": memory.admin.keys.create("operator").key}, headers=headers | {"Origin": BASE}
    )
    assert "Secure" in answer.history[0].headers["set-cookie"]


def test_the_browsers_key_ends_with_signing_out_and_with_the_key_it_was_made_from(sign_in, memory, clock):
    browser = sign_in("operator", expires_at=timedelta(minutes=5))
    made = [key for key in memory.admin.keys.list() if key.name == "browser"]
    assert [(key.role, key.expires_at) for key in made] == [("operator", clock() + timedelta(minutes=5))]
    out = browser.post("/sign-out", follow_redirects=False)
    assert out.headers["location"] == "/sign-in?said=signed-out"
    assert [key.revoked_at is not None for key in memory.admin.keys.list() if key.name == "browser"] == [True]
    assert "holdfast_key" not in browser.cookies
    assert "You are signed out." in browser.get("/sign-in?said=signed-out").text

    again = sign_in("operator")
    clock.advance(seconds=12 * 3600 + 1)
    assert again.get("/dashboard/x", follow_redirects=False).status_code == 303


@pytest.mark.parametrize("key", ["", "hf_", "x" * 200, "hf_000000000000_" + "A" * 43])
def test_a_key_that_opens_nothing_is_said(sign_in, key):
    answer = sign_in(None).post("/sign-in", data={"key": key})
    assert answer.status_code == 422
    assert "This key is not valid" in answer.text
    assert "set-cookie" not in answer.headers


def test_keys_of_programs_sign_nobody_in(sign_in, memory):
    for role, whose in (("app", {}), ("subject", {"user": "ana", "subject": "rex"})):
        key = memory.admin.keys.create(role, **whose).key
        answer = sign_in(None).post("/sign-in", data={"key": key})
        assert (answer.status_code, "for programs" in answer.text) == (422, True)


def test_a_cookie_opens_pages_and_not_the_api(sign_in):
    browser = sign_in()
    assert browser.get("/dashboard/x").status_code == 404
    assert browser.get("/v1/whoami", headers={"Accept": "text/html"}).status_code == 401
    assert browser.post("/v1/keys", json={"role": "operator"}).status_code == 401


FOREIGN = [
    {"Origin": "http://evil.test", "Sec-Fetch-Site": "cross-site"},
    {"Origin": "http://localhost:7800", "Sec-Fetch-Site": "cross-site"},
    {"Origin": "http://127.0.0.1:9999", "Sec-Fetch-Site": "same-site"},
    {"Origin": "null", "Sec-Fetch-Site": "cross-site"},
    {"Origin": "null"},
    {"Origin": BASE, "Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "none"},
    {},
]


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
def test_no_page_elsewhere_changes_anything_with_the_cookie(sign_in, memory, headers):
    browser = sign_in()
    for name in ("Origin", "Sec-Fetch-Site"):
        del browser.headers[name]
    answer = browser.post("/sign-out", headers=headers)
    assert answer.status_code == 403
    assert all(key.revoked_at is None for key in memory.admin.keys.list())


@pytest.mark.parametrize("headers", FOREIGN[:-1], ids=str)
def test_no_page_elsewhere_signs_anybody_in(sign_in, memory, headers):
    browser = sign_in(None)
    for name in ("Origin", "Sec-Fetch-Site"):
        del browser.headers[name]
    answer = browser.post("/sign-in", data={"key": memory.admin.keys.create("operator").key}, headers=headers)
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    ("method", "headers", "own"),
    [
        ("GET", {}, True),
        ("GET", {"sec-fetch-site": "none"}, True),
        ("GET", {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}, True),
        ("GET", {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}, False),
        ("GET", {"sec-fetch-site": "same-site"}, False),
        ("POST", {"origin": "http://a:1", "host": "a:1"}, True),
        ("POST", {"origin": "http://A:1", "host": "a:1"}, True),
        ("POST", {"origin": "http://a:1", "host": "a:2"}, False),
        ("POST", {"origin": "http://a:1", "host": "a:1", "sec-fetch-site": "same-site"}, False),
        ("POST", {"sec-fetch-site": "same-origin", "host": "a:1"}, True),
        ("DELETE", {"host": "a:1"}, False),
    ],
)
def test_which_requests_come_from_an_own_page(method, headers, own):
    assert from_own_page(method, headers) is own


def test_every_page_forbids_what_it_does_not_need(sign_in):
    for path in ("/sign-in", "/dashboard/nothing"):
        answer = sign_in().get(path)
        policy = answer.headers["content-security-policy"]
        assert policy == HEADERS["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; ")
        assert "unsafe" not in policy
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["referrer-policy"] == "same-origin"
        assert not re.search(r"\sstyle=|\son\w+=|<script(?! (type=\"module\" )?src=\"/static/)|https?://", answer.text)


def test_refusals_are_pages_for_users_and_problems_for_programs(sign_in, ask):
    page = sign_in("user", user="ana").get("/dashboard/nothing")
    assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "<h1>There is no such path</h1>" in page.text
    for headers in ({}, {"Accept": "text/html"}):
        problem = ask("operator").get("/dashboard/nothing", headers=headers)
        assert problem.headers["content-type"] == "application/problem+json"
    assert sign_in().post("/sign-in", json={"key": "x"}).status_code == 415


@pytest.mark.parametrize("name", sorted(STATIC))
def test_static_files_are_kept_as_long_as_their_address_names_them(ask, name):
    data, kind, tag = STATIC[name]
    plain = ask(None).get(f"/static/{name}")
    assert (plain.content, plain.headers["content-type"].partition(";")[0]) == (data, kind)
    assert plain.headers["cache-control"] == "no-cache"
    assert "immutable" in ask(None).get(f"/static/{name}?v={tag}").headers["cache-control"]
    again = ask(None).get(f"/static/{name}", headers={"If-None-Match": plain.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize("name", ["nothing.css", "..%2Fshell.py", "shell.py", "%2e%2e", "style.css%00"])
def test_nothing_else_is_served(ask, name):
    assert ask(None).get(f"/static/{name}").status_code == 404


def test_scripts_and_styles_are_small():
    """Before compression; the whole of it but what is for other people's pages, so that a page is light on any line."""
    assert sum(len(data) for name, (data, _, _) in STATIC.items() if name != "memory-chip.js") < 160_000


@pytest.mark.parametrize(
    ("address", "gone_to"),
    [
        ("/dashboard/x?a=b%2F", "/dashboard/x?a=b%2F"),
        ("/", "/"),
        (None, "/"),
        ("", "/"),
        ("//evil.test", "/"),
        ("/\\evil.test", "/"),
        ("/a\\b", "/"),
        ("https://evil.test/", "/"),
        ("javascript:alert(1)", "/"),
        ("/a b", "/"),
        ("/a\n", "/"),
        ("/ä", "/"),
    ],
)
def test_nobody_is_sent_elsewhere(address, gone_to):
    assert local_address(address) == gone_to


def test_links_carry_any_name():
    assert link("/d/{user}", user="a/b?c&d#ä", bot="x y", org=None) == "/d/a%2Fb%3Fc%26d%23%C3%A4?bot=x%20y"


def test_a_section_is_cut_out_of_its_page():
    page = '<main><section id="a"><p>1</p><section id="b">2</section>3</section><section id="c">4</section></main>'
    assert fragment(page, "a") == '<section id="a"><p>1</p><section id="b">2</section>3</section>'
    assert fragment(page, "b") == '<section id="b">2</section>'
    assert fragment(page, "nothing") == ""


@given(st.text())
def test_any_name_makes_a_link_that_leads_back_to_it(name):
    address = link("/dashboard/users/{user}", user=name.encode("utf-8", "replace").decode())
    assert re.fullmatch(r"/dashboard/users/[\w.~%-]*", address, re.ASCII)


def test_revoking_a_key_signs_out_whoever_signed_in_with_it(memory, settings):
    """In every browser, and nobody who signed in with another key."""
    app = create_app(memory, settings)
    first, second = (memory.admin.keys.create("operator") for _ in range(2))
    browsers = [TestClient(app, base_url=BASE, headers={"Origin": BASE}) for _ in range(3)]
    for browser, key in zip(browsers, (first, first, second), strict=True):
        browser.post("/sign-in", data={"key": key.key})
    # signed in with what a browser holds: it ends with the key at the beginning, too
    browsers[1].post("/sign-in", data={"key": browsers[0].cookies["holdfast_key"]})
    assert [browser.get("/dashboard/jobs").status_code for browser in browsers] == [200] * 3

    memory.admin.keys.revoke(first.about.id)

    seen = [browser.get("/dashboard/jobs", follow_redirects=False).status_code for browser in browsers]
    assert (seen[0] == 200, seen[1] == 200, seen[2]) == (False, False, 200)


def test_a_sign_in_link_works_once_and_is_no_key(sign_in):
    browser = sign_in(None)
    token = browser.app.state.sign_in_links.issue(timedelta(minutes=15))

    assert browser.get("/v1/whoami", headers={"Authorization": f"Bearer {token}"}).status_code == 401
    assert browser.post("/sign-in", data={"key": token}).url.path != "/sign-in"
    assert browser.get("/dashboard/users").status_code == 200
    again = sign_in(None).post("/sign-in", data={"key": token})
    assert again.status_code == 422
    assert "was used already" in again.text


def test_the_reference_page_names_every_operation_and_loads_nothing_from_elsewhere(sign_in):
    browser = sign_in(None)
    page, document = browser.get("/docs"), browser.get("/openapi.json").json()

    assert page.headers["content-security-policy"] == HEADERS["Content-Security-Policy"]
    assert not re.findall(r"""(?:src|href)=["'](?:https?:)?//""", page.text)
    for methods in document["paths"].values():
        for operation in methods.values():
            assert f'id="{operation["operationId"]}"' in page.text
