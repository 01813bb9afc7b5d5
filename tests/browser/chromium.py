"""
Debian's Chromium, driven by Playwright: where it is, and what a page does in it.

Nothing is downloaded: the browser is the one at ``HOLDFAST_CHROMIUM``, or the first of the usual places.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import BrowserContext, Page, Request

NAMES = ("chromium", "chromium-browser", "google-chrome")
MISSING = "no Chromium: on Debian `apt-get install chromium`, elsewhere name one in HOLDFAST_CHROMIUM"

# --no-sandbox: tests may run as root in a container, and load nothing but their own server.
# The resolver knows no name at all, so that nothing leaves this machine whatever a page asks for.
OPTIONS = (
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--force-color-profile=srgb",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)

# Runs in every page before its own scripts, and is not subject to its policy.
LISTENERS = """
addEventListener('securitypolicyviolation', event => {
    holdfastNoted('csp', `${event.violatedDirective}: ${event.blockedURI} ${event.sample}`);
});
window.canary = number => holdfastNoted('script', String(number));
for (const name of ['alert', 'confirm', 'prompt', 'print']) {
    window[name] = words => holdfastNoted('script', `${name} ${words}`);
}
"""


def executable() -> str | None:
    """The browser to drive; ``None`` when there is none."""
    named = os.environ.get("HOLDFAST_CHROMIUM")
    if named:
        return named
    return next((path for path in map(shutil.which, NAMES) if path), None)


@dataclass
class Watch:
    """
    What pages did that they should not: each a line, in order.

    ``scripts`` counts every call of a payload; ``reports`` what the policy stopped; ``foreign`` requests to
    anywhere but the server; ``errors`` uncaught exceptions and what the console calls an error.
    """

    origin: str
    scripts: list[str] = field(default_factory=list)
    reports: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    @property
    def all(self) -> list[str]:
        """Everything, for one assertion."""
        named = {"script": self.scripts, "policy": self.reports, "foreign": self.foreign, "error": self.errors}
        return [f"{kind}: {line}" for kind, lines in named.items() for line in lines]

    def clear(self) -> None:
        """Forget what was seen."""
        for lines in (self.scripts, self.reports, self.foreign, self.errors):
            lines.clear()

    def attach(self, context: BrowserContext) -> None:
        """Watch every page of *context*."""
        context.expose_binding("holdfastNoted", self._noted)
        context.add_init_script(LISTENERS)
        context.on("request", self._request)
        context.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        context.on("weberror", lambda error: self.errors.append(str(error.error)))
        context.on("dialog", lambda dialog: (self.scripts.append(f"dialog {dialog.message}"), dialog.dismiss()))

    def _noted(self, _source: Any, kind: str, line: str) -> None:
        (self.reports if kind == "csp" else self.scripts).append(line)

    def _request(self, request: Request) -> None:
        url = request.url
        if not url.startswith((self.origin + "/", "data:", "blob:", "about:")):
            self.foreign.append(url)


@dataclass
class Visitor:
    """Somebody with a browser: pages share the cookies, and are watched."""

    context: BrowserContext
    watch: Watch
    origin: str

    def sign_in(self, key: str) -> None:
        """Go on with another key: as somebody else."""
        self.context.add_cookies([{"name": "holdfast_key", "value": key, "url": self.origin}])

    def open(self, path: str, *, width: int = 1280, height: int = 800, scheme: str = "light") -> Page:
        """A new page at *path*, loaded."""
        page = self.context.new_page()
        look(page, width, height, scheme)
        go(page, self.origin + path)
        return page


def look(page: Page, width: int, height: int, scheme: str) -> None:
    """Give the page another size and colour scheme, without loading it again."""
    page.set_viewport_size({"width": width, "height": height})
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]


def go(page: Page, url: str) -> int:
    """Load *url*; its status. A page that keeps a stream open is loaded all the same."""
    answer = page.goto(url, wait_until="load")
    return answer.status if answer else 0


def until(page: Page, done: Callable[[], bool], timeout_s: float = 20.0, what: str = "it") -> None:
    """Let the page work until *done*; an ``AssertionError`` when that takes too long."""
    for _ in range(int(timeout_s * 20)):
        if done():
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"{what} did not happen within {timeout_s:g} s")


def close_all(pages: Iterable[Page]) -> None:
    """Close what is open."""
    for page in list(pages):
        page.close()
