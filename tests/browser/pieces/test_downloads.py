"""Lists: as files that arrive, and with labels where they have no heads."""

from __future__ import annotations

import csv
import io
import json

import pytest
from playwright.sync_api import expect

LISTS = [
    ("/dashboard/users", "user", "priya"),
    ("/dashboard/conversations", "conversation", "japan"),
    ("/dashboard/conversations/priya", "conversation", "japan"),
    ("/dashboard/changes", "kind", "fact.added"),
    ("/dashboard/jobs", "user", "tomasz"),
    ("/dashboard/users/priya", "text", "Lives in Seattle."),
]


@pytest.mark.parametrize(("path", "head", "value"), LISTS)
def test_a_list_arrives_as_csv_and_as_json(sites, visitor, path, head, value):
    someone = visitor(sites("rich"), "operator")
    page = someone.open(path)
    for kind in ("CSV", "JSON"):
        with page.expect_download() as found:
            page.get_by_role("link", name=kind, exact=True).click()
        assert found.value.suggested_filename.endswith(f".{kind.lower()}")
        text = found.value.path().read_text(encoding="utf-8-sig")
        rows = list(csv.DictReader(io.StringIO(text))) if kind == "CSV" else json.loads(text)
        assert value in [row[head] for row in rows]
    assert someone.watch.all == []


def test_a_narrow_row_of_a_user_says_what_its_words_are(sites, visitor):
    page = visitor(sites("rich"), "operator").open("/dashboard/users", width=390)
    row = page.locator("tr[data-row]", has_text="priya")
    expect(row.locator("td").nth(3)).to_have_text("Org default")
    expect(row.locator("td").nth(3).locator("span")).to_be_visible()
    expect(row.locator("td").nth(4)).to_have_text("Bot default")
