"""A browser without a screen: it keeps cookies, and says where its requests come from."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from starlette.testclient import TestClient

from holdfast import Memory
from holdfast.server.app import create_app
from holdfast.server.gate import ServerSettings
from holdfast.server.pages.home import Counts

from ..conftest import BASE

BROWSER = {"Accept": "text/html,*/*;q=0.8", "Origin": BASE, "Sec-Fetch-Site": "same-origin"}
SignIn = Callable[..., TestClient]


@pytest.fixture
def sign_in(memory: Memory, settings: ServerSettings) -> Iterator[SignIn]:
    """``sign_in("user", user="ana")``: a browser that is signed in so; ``sign_in(None)``: one that is not."""
    app = create_app(memory, settings)
    app.state.counts = Counts(fresh_s=0, patience_s=60)  # each page waits for its counts
    app.state.estimates = Counts(fresh_s=60, patience_s=60)
    browsers = []

    def make(role: str | None = "operator", **whose: str) -> TestClient:
        browser = TestClient(app, base_url=BASE, headers=BROWSER, raise_server_exceptions=False)
        browsers.append(browser)
        if role is not None:
            answer = browser.post("/sign-in", data={"key": memory.admin.keys.create(role, **whose).key})
            assert "holdfast_key" in browser.cookies, answer.text
        return browser

    yield make
    for browser in browsers:
        browser.close()
