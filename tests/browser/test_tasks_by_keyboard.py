"""
Five tasks of an operator and five of an end user, with the keyboard alone, and the keys that each takes.

A key is one press; words typed into a field count as one.  ``MOST`` is what was counted when the task was last made shorter: a change of
a page that makes one longer fails.  Waits are for what the page shows.
"""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from holdfast import User

from .chromium import until
from .served import Site

NAMED = """() => { const e = document.activeElement; const label = e.labels && e.labels[0];
    return (e.ariaLabel || (label && label.textContent) || e.textContent || '').replace(/\\s+/g, ' ').trim(); }"""
MOST = {  # of what was counted: 3, 12, 7, 6, 35 to 38; 9, 2, 9, 15, 14
    "see what is known about a user's diet": 4,
    "correct a fact and take it back": 14,  # 37 without the key u, and from field to field
    "see what a question finds": 8,
    "retry what failed": 7,
    "rebuild a chunk and revert it": 40,
    "find a fact and change it": 11,  # 28 from field to field
    "take the change back": 3,  # 5 without the key u
    "forget a fact": 11,
    "pause and resume": 17,
    "never remember a topic": 16,  # 117 without the links to the parts of the page
}


class Keys:
    """A keyboard that counts."""

    def __init__(self, page: Page) -> None:
        self.page, self.pressed = page, 0
        self.taken: dict[str, int] = {}

    def press(self, key: str, times: int = 1) -> None:
        for _ in range(times):
            self.page.keyboard.press(key)
        self.pressed += times

    def type(self, words: str) -> None:
        self.page.keyboard.type(words)
        self.pressed += 1

    def to(self, words: str, *, most: int = 120, exact: bool = False) -> None:
        """Press Tab until what is focused has a name that begins with *words*; nothing where it is focused already."""
        for _ in range(most):
            name = self.page.evaluate(NAMED)
            if name == words or (name.startswith(words) and not exact):
                return
            self.press("Tab")
        raise AssertionError(f"the keyboard does not reach {words!r}; it is at {self.page.evaluate(NAMED)!r}")

    def done(self, task: str) -> None:
        """The task is done: note how many keys it took."""
        self.taken[task], self.pressed = self.pressed, 0


def hears(page: Page) -> None:
    """Wait until the scripts of the page listen: modules run before it is complete."""
    page.wait_for_function("() => document.readyState === 'complete'")


def test_five_tasks_of_an_operator(fresh, visitor):
    someone = visitor(fresh, "operator")
    page = someone.open("/dashboard", width=1440)
    keys = Keys(page)
    hears(page)
    look_up_and_correct(fresh, page, keys)
    ask_and_retry(fresh, page, keys)
    rebuild_and_revert(fresh, page, keys)
    assert {task: taken for task, taken in keys.taken.items() if taken > MOST[task]} == {}
    assert len(keys.taken) == 5
    assert someone.watch.all == []


def look_up_and_correct(fresh: Site, page: Page, keys: Keys) -> None:
    memory = fresh.memory
    keys.press("Control+k")
    expect(page.locator("#palette input")).to_be_focused()
    keys.type("priya pescatarian")
    expect(page.locator("#palette [data-results] a").first).to_be_visible()
    keys.press("Enter")
    expect(page.locator("h1")).to_have_text(re.compile("Dietary|priya"))
    keys.done("see what is known about a user's diet")

    page.goto(fresh.origin + "/dashboard/users/priya")
    hears(page)
    keys.press("/")
    keys.type("Seattle")
    keys.press("Enter")
    expect(page.locator("#facts .belief")).to_have_count(1)
    hears(page)
    keys.press("j")  # to the first row
    keys.to("Correct: Lives in Seattle.")
    keys.press("Enter")
    expect(page.get_by_label("Correct value")).to_be_focused()
    keys.press("Control+a")
    keys.type("Tacoma")
    keys.press("Enter")
    expect(page.locator("#said")).to_contain_text("Corrected.")
    until(page, lambda: "Tacoma" in [fact.value for fact in memory.user("priya").facts("home")])
    keys.press("u")
    assert page.evaluate(NAMED).startswith("Undo")
    keys.press("Enter")
    until(page, lambda: "Seattle" in [fact.value for fact in memory.user("priya").facts("home")])
    keys.done("correct a fact and take it back")


def ask_and_retry(fresh: Site, page: Page, keys: Keys) -> None:
    memory = fresh.memory
    keys.press("g")
    keys.press("r")
    page.wait_for_url("**/dashboard/recall*")
    hears(page)
    keys.press("/")
    keys.type("What should I cook?")
    keys.press("Tab")
    keys.type("priya")
    keys.press("Enter")
    expect(page.locator("#ranked tbody tr").first).to_contain_text("cook")
    hears(page)
    keys.done("see what a question finds")

    keys.press("g")
    keys.press("j")
    page.wait_for_url("**/dashboard/jobs*")
    hears(page)
    assert len(memory.jobs("dead")) == 1
    keys.press("j")
    keys.to("Retry job")
    keys.press("Enter")
    until(page, lambda: not memory.jobs("dead"), what="the retry")
    keys.done("retry what failed")


def rebuild_and_revert(fresh: Site, page: Page, keys: Keys) -> None:
    memory = fresh.memory
    page.goto(fresh.origin + "/dashboard/conversations/priya/japan")
    hears(page)
    keys.to("Context")
    keys.press("End")
    keys.to("What")
    keys.to("From")
    keys.type("1")
    keys.press("Tab")
    keys.type("10")
    keys.press("Enter")
    expect(page.get_by_role("button", name="Rebuild this range")).to_be_visible()  # once it is estimated
    chat = memory.conversation("japan", user="priya")
    keys.to("Rebuild this range")
    keys.press("Enter")
    until(page, lambda: len(chat.rebuilds()) == 1, what="the rebuild")
    expect(page.get_by_role("button", name="Revert this rebuild")).to_be_visible()
    keys.to("Revert this rebuild")
    keys.press("Enter")
    until(page, lambda: len(chat.rebuilds()) == 2, what="the revert")
    keys.done("rebuild a chunk and revert it")


def test_five_tasks_of_an_end_user(fresh, visitor):
    someone = visitor(fresh, "user", user="priya")
    page = someone.open("/me", width=1440)
    keys, priya = Keys(page), fresh.memory.user("priya")
    hears(page)
    change_and_undo(page, keys, priya)
    forget(fresh, page, keys, priya)
    decide(fresh, page, keys, priya)
    assert {task: taken for task, taken in keys.taken.items() if taken > MOST[task]} == {}
    assert len(keys.taken) == 5
    assert someone.watch.all == []


def change_and_undo(page: Page, keys: Keys, priya: User) -> None:
    keys.press("/")
    keys.type("Seattle")
    keys.press("Enter")
    expect(page.locator("#facts .belief")).to_have_count(1)
    hears(page)
    keys.press("j")
    keys.to("Change: Lives in Seattle.")
    keys.press("Enter")
    expect(page.get_by_label("Correct value")).to_be_focused()
    keys.press("Control+a")
    keys.type("Tacoma")
    keys.press("Enter")
    until(page, lambda: "Tacoma" in [fact.value for fact in priya.facts("home")])
    keys.done("find a fact and change it")

    expect(page.locator("#said")).to_contain_text("Changed.")
    keys.press("u")
    assert page.evaluate(NAMED).startswith("Undo")
    keys.press("Enter")
    until(page, lambda: "Seattle" in [fact.value for fact in priya.facts("home")])
    keys.done("take the change back")


def forget(fresh: Site, page: Page, keys: Keys, priya: User) -> None:
    page.goto(fresh.origin + "/me")
    hears(page)
    keys.press("/")
    keys.type("violin")
    keys.press("Enter")
    expect(page.locator("#facts .belief")).to_have_count(1)
    hears(page)
    keys.press("j")
    keys.to("Forget", most=30, exact=True)
    keys.press("Enter")
    keys.to("Forget it")
    keys.press("Enter")
    expect(page.locator("#receipt")).to_contain_text("Erased")
    assert "the violin" not in [fact.value for fact in priya.facts("hobby")]
    keys.done("forget a fact")


def decide(fresh: Site, page: Page, keys: Keys, priya: User) -> None:
    page.goto(fresh.origin + "/me")
    hears(page)
    keys.to("Pause")
    keys.press("Enter")
    until(page, lambda: priya.status().state == "paused")
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    keys.to("Resume")
    keys.press("Enter")
    until(page, lambda: priya.status().state == "active")
    keys.done("pause and resume")

    page.goto(fresh.origin + "/me")
    hears(page)
    keys.to("Never remember", most=20)
    keys.press("Enter")
    keys.to("Topic or words", most=20)
    keys.type("politics")
    keys.press("Enter")
    until(page, lambda: "politics" in priya.status().never)
    keys.done("never remember a topic")
