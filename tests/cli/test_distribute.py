"""``holdfast store distribute`` where there is no cluster; with one, see tests/citus."""

from __future__ import annotations

from tests.cli.conftest import Holdfast
from tests.postgres.lending import Lender


def test_a_server_without_citus_is_told_what_to_install(holdfast: Holdfast, postgres: Lender) -> None:
    refused = holdfast("store", "distribute", postgres.at("mine", "postgres"), "--json")
    postgres.give_back()

    assert (refused.code, refused.error["code"]) == (1, "store")
    assert "has no Citus" in refused.error["message"]
    assert "CREATE EXTENSION citus" in refused.error["hint"]


def test_a_file_cannot_be_spread(holdfast: Holdfast) -> None:
    assert holdfast("store", "distribute", "chat.db", "--dry-run", "--json").error["code"] == "bad-config"
