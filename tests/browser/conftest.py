"""
One Chromium a worker, one served memory a story, one signed-in context a role; pages are opened anew by each test.

``HOLDFAST_PICTURES=folder`` keeps a picture of every page that `test_every_page.py` looks at.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from holdfast import Memory

from .chromium import MISSING, OPTIONS, Visitor, Watch, close_all, executable
from .served import Site, serve
from .story import bare, opened, rich

expect.set_options(timeout=20_000)  # a machine that does other things as well
WORLDS: dict[str, Callable[[Memory], dict[str, str]]] = {"rich": rich, "bare": bare}
Visitors = Callable[..., Visitor]


@pytest.fixture(scope="session")
def loop_of_playwright() -> list[asyncio.AbstractEventLoop]:
    """Playwright's loop, once it runs."""
    return []


@pytest.fixture(scope="session")
def chromium(loop_of_playwright: list[asyncio.AbstractEventLoop]) -> Iterator[Browser]:
    path = executable()
    if path is None:
        pytest.skip(MISSING)
    with sync_playwright() as playwright:
        loop_of_playwright.append(asyncio.get_running_loop())
        browser = playwright.chromium.launch(executable_path=path, args=list(OPTIONS))
        yield browser
        asyncio._set_running_loop(loop_of_playwright[0])
        browser.close()


@pytest.fixture(autouse=True)
def loop_of_the_thread(chromium: Browser, loop_of_playwright: list[asyncio.AbstractEventLoop]) -> Iterator[None]:
    """
    Between these tests no loop counts as running.

    Playwright's synchronous half keeps one suspended in this thread, and every other test in it that calls
    ``asyncio.run`` would be refused.
    """
    asyncio._set_running_loop(loop_of_playwright[0])
    yield
    asyncio._set_running_loop(None)


@pytest.fixture(scope="session")
def sites() -> Iterator[Callable[[str], Site]]:
    """``sites("rich")``: that memory, served; told once a worker, so tests that change it take `fresh`."""
    with ExitStack() as stack:
        found: dict[str, Site] = {}

        def site(world: str) -> Site:
            if world not in found:
                memory = stack.enter_context(opened())
                found[world] = stack.enter_context(serve(memory, WORLDS[world](memory)))
            return found[world]

        yield site


@pytest.fixture(scope="session")
def contexts(chromium: Browser) -> dict[tuple[int, str, str], Visitor]:
    """Who has signed in where; their contexts end with the browser."""
    return {}


@pytest.fixture(scope="session")
def told_once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A file that holds the rich story, and the names in it."""
    path = tmp_path_factory.mktemp("story") / "rich.db"
    with opened(path=str(path)) as memory:
        return path, rich(memory)


@pytest.fixture
def fresh(
    contexts: dict[tuple[int, str, str], Visitor], told_once: tuple[Path, dict[str, str]], tmp_path: Path
) -> Iterator[Site]:
    """The rich story, for one test to go on with."""
    path = shutil.copyfile(told_once[0], tmp_path / "rich.db")
    with opened(path=str(path)) as memory, serve(memory, told_once[1]) as site:
        yield site
        for name in [name for name in contexts if name[0] == site.number]:
            contexts.pop(name).context.close()


def signed_in(browser: Browser, site: Site, who: str | None, whose: dict[str, str], **options: Any) -> Visitor:
    """A new context with the cookie of a fresh key."""
    context = browser.new_context(reduced_motion="reduce", locale="en-GB", timezone_id="UTC", **options)
    watch = Watch(site.origin)
    watch.attach(context)
    someone = Visitor(context, watch, site.origin)
    if who is not None:
        someone.sign_in(site.key(who, **whose))
    return someone


@pytest.fixture
def visitor(chromium: Browser, contexts: dict[tuple[int, str, str], Visitor]) -> Iterator[Visitors]:
    """``visitor(site, "operator")``, ``visitor(site, "user", "priya")``, ``visitor(site, None)``: kept between tests."""
    used: list[Visitor] = []

    def made(site: Site, who: str | None, user: str | None = None, **scope: str | None) -> Visitor:
        whose = {name: value for name, value in {"user": user, **scope}.items() if value is not None}
        whose = {} if who is None else whose
        name = (site.number, who or "", str(sorted(whose.items())) if user else "")
        if name not in contexts:
            contexts[name] = signed_in(chromium, site, who, whose if user else {})
        found = contexts[name]
        found.watch.clear()
        used.append(found)
        return found

    yield made
    for one in used:
        close_all(one.context.pages)
