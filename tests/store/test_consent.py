"""The strictest choice of a user holds."""

from __future__ import annotations

import pytest

from holdfast.store import ConsentRow, effective_consent
from holdfast.types import ConsentState


@pytest.mark.parametrize(
    ("chosen", "subject", "state"),
    [
        ([], "self", "active"),
        ([("", "paused")], "self", "paused"),
        ([("", "paused")], None, "paused"),
        ([("rex", "paused")], "self", "active"),
        ([("rex", "paused")], "rex", "paused"),
        ([("rex", "paused")], None, "active"),
        ([("", "paused"), ("rex", "opted-out")], "rex", "opted-out"),
        ([("", "opted-out"), ("rex", "paused")], "rex", "opted-out"),
    ],
)
def test_the_strictest_choice_holds(chosen: list[tuple[str, ConsentState]], subject: str | None, state: str) -> None:
    rows = [ConsentRow(about, choice, 0) for about, choice in chosen]

    assert effective_consent(rows, subject) == state
