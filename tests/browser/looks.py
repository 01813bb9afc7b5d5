"""How a page is judged: by axe-core, by whether it fits its width, and by users who look at pictures of it."""

from __future__ import annotations

import os
import re
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

SIZES = ((1280, 800), (320, 640))
SCHEMES = ("light", "dark")
TAGS = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")
OF_COLORS = ("color-contrast", "link-in-text-block")  # the rules of axe that look at colors

# Of what sticks out to the right only that counts which cannot be scrolled within an element of its own.
STICKS_OUT = """
() => {
    const width = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth <= width) return [];
    const scrolls = element => {
        for (let at = element.parentElement; at; at = at.parentElement) {
            if (at !== document.body && at !== document.documentElement
                && ['auto', 'scroll', 'hidden', 'clip'].includes(getComputedStyle(at).overflowX)) return true;
        }
        return false;
    };
    return [...document.body.querySelectorAll('*')]
        .filter(element => element.getBoundingClientRect().right > width + 1 && !scrolls(element))
        .slice(0, 5)
        .map(element => `${element.tagName.toLowerCase()}.${element.className} to ${
            Math.round(element.getBoundingClientRect().right)} of ${width}`)
        .concat(`page ${document.documentElement.scrollWidth} of ${width}`);
}
"""

# One of each kind: of what repeats (the same tags and classes up to the body), all but the first is left out.
REPEATED = """
() => {
    const seen = new Set(), repeated = [];
    const kind = element => [element.tagName, element.className.baseVal ?? element.className,
        ...['type', 'role', 'open', 'hidden', 'disabled', 'aria-current', 'aria-selected', 'aria-pressed', 'aria-expanded']
            .map(name => element.getAttribute(name))].join(' ');
    const walk = (element, path) => {
        for (const child of element.children) {
            const own = `${path}>${kind(child)}`;
            const whole = own + [...child.querySelectorAll('*')].map(kind).join('>');
            if (seen.has(whole)) { repeated.push(child); continue; }
            seen.add(whole);
            walk(child, own);
        }
    };
    walk(document.body, '');
    return repeated;
}
"""


@cache
def _axe() -> str:
    return (resources.files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")


def violations(page: Page, *, repeated: bool = True, colors: bool = False) -> list[str]:
    """
    What axe-core finds wrong, a line each: the rule, and where.

    It is run by the debugger, so the policy of the page stays as strict as it is for everybody.  Where a page was looked at
    whole before, in another size or scheme, one of each kind of element is enough: *repeated* is ``False``.  With *colors*
    only the rules about colors are asked: another scheme changes nothing else.  It is looked at from its top, as what
    scrolls half under a bar that stays is no defect.
    """
    if not page.evaluate("() => typeof window.axe === 'object'"):
        page.evaluate(_axe())
    found: dict[str, Any] = page.evaluate(
        f"""async (asked) => {{
            const at = scrollY;
            scrollTo({{top: 0, behavior: "instant"}});
            const found = await axe.run({{include: [document], exclude: {"[]" if repeated else f"({REPEATED})()"}}},
                {{runOnly: asked, resultTypes: ['violations']}});
            scrollTo({{top: at, behavior: "instant"}});
            return found;
        }}""",
        {"type": "rule", "values": list(OF_COLORS)} if colors else {"type": "tag", "values": list(TAGS)},
    )
    return [
        f"{rule['id']}: {node['html'][:160]} — {node['failureSummary'].splitlines()[-1].strip()[:200]}"
        for rule in found["violations"]
        for node in rule["nodes"]
    ]


def sticks_out(page: Page) -> list[str]:
    """What makes the page scroll sideways; empty when nothing does."""
    found: list[str] = page.evaluate(STICKS_OUT)
    return found


def picture(page: Page, name: str) -> None:
    """A picture of the whole page, into the folder that ``HOLDFAST_PICTURES`` names; none without it."""
    folder = os.environ.get("HOLDFAST_PICTURES")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        page.screenshot(
            path=Path(folder) / f"{re.sub(r'[^a-z0-9]+', '-', name.lower()).strip('-')}.png", full_page=True
        )
