"""The options of ``holdfast serve`` that say how much is too much."""

from __future__ import annotations

from typing import Annotated, Any

import typer


def _limit(flag: str, variable: str, words: str) -> Any:
    return typer.Option(flag, envvar=f"HOLDFAST_{variable}", min=1, metavar="N", help=words)


PerMinute = Annotated[int, _limit("--requests-per-minute", "REQUESTS_PER_MINUTE", "Of one key, in each process.")]
OrgPerMinute = Annotated[
    int, _limit("--org-requests-per-minute", "ORG_REQUESTS_PER_MINUTE", "Of all keys of an org, in each process.")
]
PerDay = Annotated[
    int | None,
    _limit("--messages-per-day", "MESSAGES_PER_DAY", "That one key may store a day (UTC), in all processes."),
]
PerMonth = Annotated[
    int | None,
    _limit("--messages-per-month", "MESSAGES_PER_MONTH", "That one key may store a month, in all processes."),
]
OrgPerDay = Annotated[
    int | None, _limit("--org-messages-per-day", "ORG_MESSAGES_PER_DAY", "That all keys of an org may store a day.")
]
OrgPerMonth = Annotated[
    int | None,
    _limit("--org-messages-per-month", "ORG_MESSAGES_PER_MONTH", "That all keys of an org may store a month."),
]
