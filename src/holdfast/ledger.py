"""The door to the ledger of erasures: what must not come back with a backup."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from .errors import BadInput, Conflict
from .pipeline import Pipeline
from .privacy.ledger import KINDS
from .reports import ReplayReport
from .scope import Scope, checked_name
from .store.ledger import ErasedRow
from .store.values import ConsentRow

FORMAT = "holdfast ledger 1"
_STATES = ("paused", "opted-out")


class Ledger:
    """What was erased from this memory, and what users chose; made by `Memory.ledger`."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    def export(self) -> dict[str, Any]:
        """
        The ledger as data that JSON can hold: digests, numbers, offsets and times; no name and no word of what went.

        Who paused memory or opted out stands in it by name, as it does in the store, so that the choice goes on to
        hold.  With the key that is in it, a guess at a name can be tested: keep it as you keep a backup.
        """
        key, rows = self._pipeline.store.ledger()
        chosen = [
            {"org": user.org, "user": user.user, "bot": user.bot, **asdict(row)}
            for user, row in self._pipeline.store.choices()
        ]
        return {"format": FORMAT, "key": key, "erased": [asdict(row) for row in rows], "choices": chosen}

    def replay(
        self, data: Mapping[str, Any], *, dry_run: bool = False, progress: Callable[[int], None] | None = None
    ) -> ReplayReport:
        """
        Erase here what *data*, the `export` of a newer copy of this memory, says is gone.

        What was erased is erased again with all that rests on it, choices to pause or opt out hold again, and the
        ledger is taken over.  What this copy never held, or has erased itself, is passed over; so a replay that was
        interrupted can be repeated.

        Args:
            data: what `export` returned.
            dry_run: change nothing; say what is still held.
            progress: called now and then with how many users were looked at.

        Raises:
            BadInput: not a ledger.
            Conflict: the ledger of another memory.
        """
        key, rows, choices = _checked(data)
        replay, store = self._pipeline.replay, self._pipeline.store
        own_key, own = store.ledger()
        if own_key and key and own_key != key:
            raise Conflict("this is the ledger of another memory", hint="take that of a later copy of this one")
        known = {row.id for row in own}
        fresh = [row for row in rows if row.id not in known]
        if key and not dry_run:
            store.take_ledger(key, ())  # what is erased now is noted under the same key
        counts: dict[str, int] = {}
        users = 0
        for user, found in replay.users(key, fresh, progress):
            users += 1
            for kind, number in found.counts().items():
                counts[kind] = counts.get(kind, 0) + number
            if not dry_run:
                replay.erase(user, found)
        chosen = replay.choose(choices, dry_run=dry_run)
        if key and not dry_run:
            store.take_ledger(key, fresh)
        return ReplayReport(users=users, held=counts, choices=chosen, entries=len(rows), dry_run=dry_run)


def _checked(data: Mapping[str, Any]) -> tuple[str, list[ErasedRow], list[tuple[Scope, ConsentRow]]]:
    hint = "pass what Memory.ledger.export() returned"
    if not isinstance(data, Mapping) or data.get("format") != FORMAT:
        raise BadInput("this is not a ledger of erasures", hint=hint)
    try:
        key = data["key"]
        if key:
            bytes.fromhex(key)
        rows = [_row(one) for one in data["erased"]]
        choices = [_choice(one) for one in data["choices"]]
    except (KeyError, TypeError, ValueError) as error:
        raise BadInput(f"the ledger is damaged: {error}", hint=hint) from None
    if rows and not key:
        raise BadInput("the ledger is damaged: it has entries and no key", hint=hint)
    return key, rows, choices


def _row(one: Mapping[str, Any]) -> ErasedRow:
    row = ErasedRow(**{**one, "spans": tuple((int(start), int(end)) for start, end in one["spans"])})
    texts, numbers = (row.id, row.place, row.kind, row.fact), (row.at, row.seq)
    if row.kind not in KINDS or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"an entry of the kind {row.kind!r}")
    if not all(type(number) is int and number >= 0 for number in numbers):
        raise ValueError(f"the numbers of {row.id!r}")
    return row


def _choice(one: Mapping[str, Any]) -> tuple[Scope, ConsentRow]:
    named = {name: checked_name(name, one[name]) for name in ("org", "user", "bot")}
    if one["state"] not in _STATES or type(one["since"]) is not int:
        raise ValueError(f"a choice {one['state']!r}")
    return Scope(**named, subject=None), ConsentRow(str(one["subject"]), one["state"], one["since"])
