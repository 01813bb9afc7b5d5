"""The chat page, in a real browser and without one."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
import uvicorn
from playwright.sync_api import expect, sync_playwright

from holdfast import Memory
from tests.browser.chromium import MISSING, OPTIONS, executable

from . import pictures
from .running import load, model

EVIL = "<img src=x onerror=alert(1)>"


@pytest.fixture
def address(tmp_path, monkeypatch) -> Iterator[str]:
    """The page of an empty memory, served beside a fake model."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HOLDFAST_STORE", raising=False)
    with model(monkeypatch):
        app = load("chat_page/app.py")["create_app"]()
        server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", timeout_graceful_shutdown=1))
        thread = threading.Thread(target=server.run)
        thread.start()
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.002)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        server.should_exit = True
        thread.join()


@contextmanager
def visitor(address: str) -> Iterator[httpx.Client]:
    """Somebody who has opened the page."""
    with httpx.Client(base_url=address) as client:
        assert client.get("/").headers["content-type"].startswith("text/html")
        yield client


def test_each_visitor_has_a_memory(address):
    with visitor(address) as ana, visitor(address) as bo:
        ana.post("/chats/1", json={"text": "I'm vegetarian. I'm allergic to peanuts."})
        asked = {"text": "What shall I cook?"}

        assert ana.post("/chats/2", json=asked).json()["reply"] == "A lentil curry, without peanuts."
        assert bo.post("/chats/1", json=asked).json()["reply"] == "A chicken satay, with peanuts."
        fact = next(fact for fact in ana.get("/facts").json() if fact["value"] == "peanuts")
        assert bo.delete(f"/facts/{fact['id']}").status_code == 404
        assert bo.post(f"/facts/{fact['id']}", json={"text": "cashews"}).status_code == 404
        assert ana.post(f"/facts/{fact['id']}", json={"text": "cashews"}).status_code == 204
        assert "cashews" in ana.get("/facts").text
        assert bo.get("/facts").json() == []


def test_who_has_not_opened_the_page_is_nobody(address):
    assert httpx.get(f"{address}/facts").status_code == 422
    with visitor(address) as ana:
        assert ana.post("/chats/1", json={"text": ""}).status_code == 422
        assert ana.get("/").headers["content-security-policy"].startswith("default-src 'self'")


def test_the_panel_follows_the_chat_and_what_users_said_stays_text(address):
    path = executable()
    if path is None:
        pytest.skip(MISSING)
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=path, args=list(OPTIONS))
            page = browser.new_page(viewport={"width": 980, "height": 430})
            page.on("dialog", lambda dialog: dialog.accept("hazelnuts"))
            walk(page, address)
            browser.close()
    finally:
        asyncio._set_running_loop(None)


def walk(page, address) -> None:
    """Say, correct, forget; the panel beside the chat follows without a reload."""
    facts, said = page.locator("#facts li"), page.locator("#said p")
    page.goto(address)
    for number, text in enumerate(
        ["I'm vegetarian, and I live in Lisbon.", "I'm allergic to peanuts.", "What shall I cook?"]
    ):
        page.fill("input", text)
        page.press("input", "Enter")
        expect(said).to_have_count(2 * number + 2)
    expect(said.last).to_have_text("A lentil curry, without peanuts.")
    expect(facts).to_have_count(3)
    if pictures.DRAWS:
        page.screenshot(path=pictures.FOLDER / "chat_page.png")

    facts.filter(has_text="peanuts").get_by_text("Correct").click()
    expect(facts.filter(has_text="hazelnuts")).to_have_count(1)
    facts.filter(has_text="Lisbon").get_by_text("Forget").click()
    expect(facts).to_have_count(2)

    with Memory("chat.db") as elsewhere:  # another process of yours
        (user,) = [user for _, user, _ in elsewhere.admin.users()]
        elsewhere.user(user).remember("Likes dark chocolate.")
    expect(facts.filter(has_text="dark chocolate")).to_have_count(1)

    page.fill("input", f"My name is {EVIL}")
    page.press("input", "Enter")
    expect(said.filter(has_text=EVIL)).to_have_count(1)
    expect(page.locator("img")).to_have_count(0)
