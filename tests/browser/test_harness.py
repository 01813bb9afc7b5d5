"""What the browser tests would miss nobody would notice, so each thing they look for is shown to them once."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest
import uvicorn
from playwright.sync_api import Page
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route

from .chromium import Visitor, Watch, until
from .looks import sticks_out, violations

POLICY = "default-src 'self'; img-src 'self' data: http:; script-src 'self' 'nonce-n'"
PAGE = '<!doctype html><html lang="en"><title>T</title><link rel="icon" href="data:,"><main><h1>H</h1>{}</main></html>'
PAGES = {
    "good": "<p>Nothing is wrong here.</p>",
    "inline": "<script>canary(1)</script>",
    "runs": "<script nonce='n'>canary(2); alert(3)</script>",
    "foreign": "<p>Look</p><img alt='' src='http://elsewhere.test/x.png'>",
    "throws": "<script nonce='n'>throw new Error('broken')</script>",
    "pale": "<p style='color:#ccc'>Hardly there</p>",
    "nameless": "<button></button>",
    "wide": "<p>Look</p><table><tr><td><hr width='2000'></td></tr></table>",
    "scrolls": "<div tabindex='0' role='region' aria-label='a table' class='s'><hr width='2000'></div>",
}


def answer(request: Request) -> HTMLResponse:
    name = request.path_params["name"]
    policy = POLICY + ("; style-src 'unsafe-inline'" if name in ("pale", "scrolls") else "")
    body = PAGES[name] + ("<style>.s{overflow-x:auto}</style>" if name == "scrolls" else "")
    return HTMLResponse(PAGE.format(body), headers={"Content-Security-Policy": policy})


@pytest.fixture(scope="module")
def origin() -> Iterator[str]:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    app = Starlette(routes=[Route("/{name}", answer)])
    running = uvicorn.Server(uvicorn.Config(app, log_level="error", ws="none"))
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not running.started:
        time.sleep(0.02)
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    running.should_exit = running.force_exit = True
    thread.join(20)
    listener.close()


@pytest.fixture
def someone(chromium, origin) -> Iterator[Visitor]:
    context = chromium.new_context()
    watch = Watch(origin)
    watch.attach(context)
    yield Visitor(context, watch, origin)
    context.close()


def opened(someone: Visitor, name: str, width: int = 1280) -> Page:
    return someone.open(f"/{name}", width=width, height=640)


def test_a_good_page_is_let_through(someone):
    page = opened(someone, "good", 320)

    assert (violations(page), sticks_out(page), someone.watch.all) == ([], [], [])


def test_axe_runs_although_the_policy_is_strict(someone):
    page = opened(someone, "nameless")

    assert [line.split(":")[0] for line in violations(page)] == ["button-name"]
    assert someone.watch.reports == []


@pytest.mark.parametrize(
    ("name", "kind"), [("inline", "reports"), ("runs", "scripts"), ("foreign", "foreign"), ("throws", "errors")]
)
def test_what_a_page_must_not_do_is_seen(someone, name, kind):
    page = opened(someone, name)

    until(page, lambda: bool(getattr(someone.watch, kind)), what=kind)
    assert someone.watch.scripts == (["2", "alert 3"] if name == "runs" else [])


def test_pale_text_and_what_sticks_out_are_seen(someone):
    assert [line.split(":")[0] for line in violations(opened(someone, "pale"))] == ["color-contrast"]
    assert [line.split(":")[0] for line in violations(opened(someone, "pale"), colors=True)] == ["color-contrast"]
    assert sticks_out(opened(someone, "wide", 320)) != []
    assert sticks_out(opened(someone, "scrolls", 320)) == []
