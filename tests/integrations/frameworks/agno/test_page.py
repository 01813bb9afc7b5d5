"""The examples of docs/integrations/agno.md run."""

from __future__ import annotations

from tests.project.test_docs import ROOT, run_page


def test_the_examples_of_the_page_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = ROOT / "docs/integrations/agno.md"

    run_page(page, page.read_text(encoding="utf-8"), tmp_path)
