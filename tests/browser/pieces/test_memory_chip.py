"""The chip on a page of somebody else's: another origin, the end user's own key, hostile words."""

from __future__ import annotations

import functools
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect

from ..chromium import Watch, until
from ..looks import violations
from ..served import Site, serve
from ..story import opened

BAD = '<img src="//elsewhere.test/x" onerror="canary(1)">'
PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Chat</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src {server}; connect-src {server}">
<script type="module" src="{server}/static/memory-chip.js"></script></head>
<body><main><h1>Chat</h1><holdfast-memory server="{server}" user="ana/b" conversation="web 1"></holdfast-memory></main></body></html>"""


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_args: object) -> None:
        """Say nothing."""


@pytest.fixture
def chat_page(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A server of one page, at an origin of its own, and the file of that page."""
    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(_Quiet, directory=str(tmp_path))
    ) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}", tmp_path / "chat.html"
        server.shutdown()
        thread.join(10)


@pytest.fixture
def learned(chat_page) -> Iterator[Site]:
    """Two facts from the last exchange, one of them hostile, and an older one."""
    with opened() as memory:
        chat = memory.conversation("web 1", user="ana/b")
        chat.record("I live in Porto.", "Nice.")
        chat.record("I moved to Faro.", "Lovely.")
        memory.user("ana/b").remember(BAD, conversation="web 1", start_seq=3, end_seq=4)
        with serve(memory, allowed_origins=(chat_page[0],)) as site:
            yield site


@pytest.fixture
def page(chromium, chat_page, learned) -> Iterator[Page]:
    origin, file = chat_page
    file.write_text(PAGE.format(server=learned.origin), encoding="utf-8")
    context = chromium.new_context()
    watch = Watch(origin)
    watch.attach(context)
    page = context.new_page()
    page.goto(f"{origin}/chat.html")
    page.evaluate("customElements.whenDefined('holdfast-memory')")
    yield page
    ours = [url for url in watch.foreign if not url.startswith(learned.origin + "/")]
    assert (watch.scripts, watch.reports, ours) == ([], [], [])
    context.close()


def shown(page: Page, key: str, span: str = "{first: 3, last: 4}") -> int:
    return int(
        page.evaluate(
            f"key => {{ const chip = document.querySelector('holdfast-memory'); chip.token = async () => key; return chip.refresh({span})"
            ".then(facts => facts.length); }",
            key,
        )
    )


@pytest.mark.parametrize("span", ["{first: 3, last: 4}", "{}"])
def test_what_was_learned_last_is_shown_as_text_and_undone(learned, page, span):
    user = learned.memory.user("ana/b")
    assert shown(page, learned.key("user", user="ana/b"), span) == 2
    chip = page.get_by_role("button", name="Memory updated: 2")
    chip.focus()
    page.keyboard.press("Enter")
    panel = page.get_by_role("group", name="What I learned just now")
    expect(panel).to_contain_text(BAD)
    expect(panel).to_contain_text("Lives in Faro.")
    expect(panel.locator("q").first).to_be_visible()
    expect(panel.locator("img")).to_have_count(0)
    assert violations(page) == []
    panel.get_by_role("button", name="Undo: Lives in Faro.").press("Enter")
    expect(panel.get_by_role("button", name="Restore: Lives in Faro.")).to_be_focused()
    assert [fact.value for fact in user.facts("home")] == ["Porto"]  # the one it had replaced
    page.keyboard.press("Enter")
    expect(panel.get_by_role("button", name="Undo: Lives in Faro.")).to_be_focused()
    assert [fact.value for fact in user.facts("home")] == ["Faro"]
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    expect(chip).to_be_focused()


def test_what_was_known_before_and_is_said_again_has_no_undo(learned, page):
    user = learned.memory.user("ana/b")
    user.remember("I work as a nurse.")
    learned.memory.conversation("web 0", user="ana/b").record("I am a vegetarian.", "Noted.")
    learned.memory._clock.advance(minutes=5)
    chat = learned.memory.conversation("web 1", user="ana/b")
    chat.record("I am a vegetarian. I work as a nurse. I moved to Faro. I have a dog.", "Noted.")
    learned.memory.digest()
    assert shown(page, learned.key("user", user="ana/b"), "{first: 5, last: 6}") == 4
    page.get_by_role("button", name="Memory updated: 4").click()
    panel = page.get_by_role("group", name="What I learned just now")
    expect(panel.locator("li", has_text="Said again")).to_have_count(3)
    expect(panel.get_by_role("button")).to_have_count(1)
    expect(panel.locator("li", has_text="dog").get_by_role("button")).to_have_text("Undo")
    assert violations(page) == []


def test_a_fact_that_changed_meanwhile_is_not_undone(learned, page):
    shown(page, learned.key("user", user="ana/b"))
    user = learned.memory.user("ana/b")
    (home,) = user.facts("home")
    user.correct(home.id, value="Oslo")
    page.get_by_role("button", name="Memory updated").click()
    page.get_by_role("button", name="Undo: Lives in Faro.").click()
    expect(page.get_by_role("group").locator("li", has_text="Lives in Faro").get_by_role("status")).to_contain_text(
        "did not work"
    )
    assert [fact.value for fact in user.facts("home")] == ["Oslo"]


def test_the_key_of_another_user_shows_nothing(learned, page):
    page.evaluate("document.addEventListener('x', () => 0); window.errors = []")
    page.evaluate(
        "document.querySelector('holdfast-memory').addEventListener('holdfast-error', e => errors.push(e.detail.message))"
    )
    assert shown(page, learned.key("user", user="ben")) == 0
    until(page, lambda: page.evaluate("errors.length") == 1, what="the error")
    assert page.evaluate("errors[0]") == "Holdfast answered 403"
    expect(page.get_by_role("button")).to_have_count(0)


def test_a_page_that_is_not_allowed_gets_nothing(chromium, chat_page):
    origin, file = chat_page
    with opened() as memory, serve(memory) as site:
        file.write_text(PAGE.format(server=site.origin), encoding="utf-8")
        page = chromium.new_context().new_page()
        page.goto(f"{origin}/chat.html")
        assert page.evaluate("customElements.get('holdfast-memory') === undefined")
        page.context.close()


def test_an_address_with_the_version_is_kept_for_a_year(learned):
    address = learned.origin + "/static/memory-chip.js"
    first = httpx.get(address)
    assert first.headers["cache-control"] == "no-cache"
    assert first.headers["content-type"].startswith("text/javascript")
    version = first.headers["etag"].strip('"')
    assert "immutable" in httpx.get(f"{address}?v={version}").headers["cache-control"]
