"""Every page in every state: accessible, whole at any width, in both schemes, and by itself."""

from __future__ import annotations

import pytest

from .chromium import go, look
from .looks import SCHEMES, SIZES, picture, sticks_out, violations
from .pages import VISITS, Visit, filled


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
