"""What models were used for and what it cost: the counters on record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

from ..errors import BadInput
from ..observing import Observed
from ..reports import Usage
from ..scope import Scope
from ..store import Store, UsageRow, UserRow, WriteView
from .gate import NANO

PARTS = ("org", "user", "bot", "day", "layer", "model")


def across(
    store: Store,
    by: Sequence[str],
    since: date | None,
    until: date | None,
    *,
    org: str | None = None,
    user: str | None = None,
    bot: str | None = None,
) -> list[Usage]:
    """
    Sums over all users, or those that are named.

    Raises:
        BadInput: *by* names something else than parts of the key, or a day is none.
    """
    parts, first, last = _checked(by), day_text(since), day_text(until)
    found = store.usage(parts, since=first or "", until=last or "9999", org=org, user=user, bot=bot)
    return [_told(key, row) for key, row in found if row.calls]


def of_user(store: Store, scope: Scope, by: Sequence[str], since: date | None, until: date | None) -> list[Usage]:
    """
    The same for one user, read from their own range alone.

    Raises:
        BadInput: as `across`.
    """
    parts, last = _checked(by), day_text(until)
    first = day_text(since)
    rows = store.read(scope, lambda view: view.usage(since=first or ""))
    key = tuple(
        value if name in parts else "" for name, value in zip(PARTS, (scope.org, scope.user, scope.bot), strict=False)
    )
    sums: dict[tuple[str, str, str], UsageRow] = {}
    for row in rows:
        if last and row.day > last:
            continue
        day, layer, model = (getattr(row, name) if name in parts else "" for name in PARTS[3:])
        sums[day, layer, model] = sums.get((day, layer, model), UsageRow(day, layer, model)) + row
    return [_told((key[0], key[1], key[2]), sums[place]) for place in sorted(sums)]


def day_text(day: date | None) -> str | None:
    """
    The day in UTC, as it stands in the store.

    Raises:
        BadInput: not a day, or a time without its zone.
    """
    if day is None:
        return None
    if not isinstance(day, date):
        raise BadInput(f"a day must be a date or a datetime, not {type(day).__name__}")
    if isinstance(day, datetime):
        if day.tzinfo is None:
            raise BadInput("a time needs its zone", hint="datetime.now(UTC), for example")
        day = day.astimezone(UTC).date()
    return day.isoformat()


def counted(row: UsageRow, used: tuple[int, int, int], cost: float | None) -> UsageRow:
    """*row* with the tokens of one answer (input, output, cached ones among the input) and its price in US dollars."""
    asked, said, cached = (max(0, tokens) for tokens in used)
    return replace(
        row,
        input_tokens=asked,
        output_tokens=said,
        cached_tokens=cached,
        cost=round((cost or 0) * NANO),
        unpriced=int(cost is None),
    )


def tell_tokens(observed: Observed, label: str, row: UsageRow) -> None:
    """Tell who observes what one call used."""
    fresh = max(0, row.input_tokens - row.cached_tokens)
    told = {"tokens.input": fresh, "tokens.cached": row.cached_tokens, "tokens.output": row.output_tokens}
    for what, number in told.items():
        if number:
            observed(what, label, number)


def record(store: Store, scope: Scope, row: UsageRow, days: int) -> None:
    """Add a call to what stands on record, which reaches *days* back, in a transaction of its own."""

    def work(view: WriteView) -> None:
        if view.user() == UserRow():
            return  # erased during the call: nothing of the user comes back
        if not view.usage(since=row.day):
            view.remove_usage((date.fromisoformat(row.day) - timedelta(days=days)).isoformat())
        view.add_usage(row)

    store.write(scope, work)


def _checked(by: Sequence[str]) -> tuple[str, ...]:
    parts = (by,) if isinstance(by, str) else tuple(by)
    if unknown := [part for part in parts if part not in PARTS]:
        raise BadInput(f"usage is not kept by {unknown[0]!r}", hint=f"use any of {', '.join(PARTS)}")
    return parts


def _told(key: tuple[str, str, str], row: UsageRow) -> Usage:
    return Usage(
        *key,
        day=row.day,
        layer=row.layer,
        model=row.model,
        calls=row.calls,
        failed=row.failed,
        input_tokens=row.input_tokens,
        output_tokens=row.output_tokens,
        cached_tokens=row.cached_tokens,
        cost=None if row.unpriced else row.cost / NANO,
        unpriced=row.unpriced,
    )
