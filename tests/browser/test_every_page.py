"""Every page in every state: accessible, whole at any width, in both schemes, from the right as from the left, and by itself."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .chromium import Visitor, go, look
from .looks import SCHEMES, SIZES, picture, sticks_out, violations
from .pages import VISITS, Visit, filled

RIGHT_TO_LEFT = ((1440, 900), (768, 1024), (390, 844))


@pytest.mark.parametrize("visit", VISITS, ids=lambda visit: visit.name)
def test_page(visit: Visit, sites, visitor):
    """axe finds nothing; nothing sticks out; no foreign request, nothing that the policy stopped, no error; a title, one h1."""
    site = sites(visit.world)
    user = site.names[visit.user] if visit.who == "user" else None
    someone = visitor(site, visit.who, user)
    page = someone.context.new_page()
    look(page, *SIZES[0], SCHEMES[0])

    assert go(page, site.origin + filled(visit.path, site.names)) == visit.status
    page.wait_for_selector(visit.ready)
    assert page.title().strip()
    assert [heading.strip() for heading in page.locator("h1").all_inner_texts()] != []
    assert page.locator("h1").count() == 1
    for width, height in SIZES:
        for scheme in SCHEMES:
            look(page, width, height, scheme)
            picture(page, f"{visit.name} {width} {scheme}")
            first = (width, height) == SIZES[0] and scheme == SCHEMES[0]
            assert violations(page, repeated=first, colors=scheme != SCHEMES[0]) == [], (width, scheme)
            assert sticks_out(page) == [], (width, scheme)
    assert visit.amiss(someone.watch.all) == []


@pytest.fixture
def from_the_right(sites, visitor) -> Iterator[Visitor]:
    """The operator, for whom pages are in Arabic until the test ends."""
    someone = visitor(sites("rich"), "operator")
    someone.context.add_cookies([{"name": "holdfast_language", "value": "ar", "domain": "127.0.0.1", "path": "/"}])
    yield someone
    someone.context.clear_cookies(name="holdfast_language")


@pytest.mark.parametrize(
    "visit", [one for one in VISITS if one.who == "operator" and one.world == "rich"], ids=lambda visit: visit.name
)
def test_page_from_the_right(visit: Visit, sites, from_the_right):
    """In Arabic nothing sticks out either, and axe finds nothing."""
    site, someone = sites(visit.world), from_the_right
    page, seen = someone.context.new_page(), len(someone.watch.all)
    look(page, *RIGHT_TO_LEFT[0], SCHEMES[0])

    assert go(page, site.origin + filled(visit.path, site.names)) == visit.status
    page.wait_for_selector(visit.ready)
    assert page.locator("html").get_attribute("dir") == "rtl"
    assert violations(page, repeated=False) == []
    for width, height in RIGHT_TO_LEFT:
        look(page, width, height, SCHEMES[0])
        picture(page, f"{visit.name} {width} from the right")
        assert sticks_out(page) == [], width
    assert visit.amiss(someone.watch.all[seen:]) == []
