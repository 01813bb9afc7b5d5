"""
The power fails while conversations are being written; what was acknowledged is still there.

A kill cannot show this: the operating system keeps what a dead process wrote.  Here every write
since the last sync survives a cut or not, by chance, whole or torn.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from holdfast.config import Config
from holdfast.errors import StoreCorrupt
from holdfast.store import Store, open_store
from holdfast.store.sqlite import connection
from holdfast.store.sqlite.backend import SqliteBackend
from holdfast.testing.rows import ANA, say, summarize
from tests.faults.power import PowerCut, write_files

CUTS = 200
WRITES = 90


@dataclass
class Damage:
    """What a number of power cuts did."""

    cuts: int = 0
    corrupt: int = 0
    broken: int = 0
    lost: list[int] = field(default_factory=list)


def cut_again_and_again(folder: Path, monkeypatch: pytest.MonkeyPatch, *, durable: bool, sync: bool) -> Damage:
    """Write, take the disk's state at `CUTS` moments spread over the run, and open each of them."""
    monkeypatch.setattr(connection, "CHECKPOINT_PAGES", 60)
    chance = random.Random(7)
    acknowledged: list[int] = []
    cuts: list[tuple[int, dict[str, bytes]]] = []
    disk = PowerCut(f"power-{durable}-{sync}")
    store = Store(SqliteBackend(folder / "memory.db", Config(durable=durable), vfs=disk.name))
    if not sync:
        store.backend._db.pragma("synchronous", "off")

    def maybe_cut() -> None:
        if len(cuts) < CUTS and chance.random() < 0.25:
            cuts.append((len(acknowledged), disk.after_cut(chance)))

    disk.on_event = maybe_cut
    for number in range(1, WRITES + 1):
        store.write(ANA, partial(_write_one, number))
        acknowledged.append(number)
    disk.on_event = lambda: None
    store.close()
    damage = Damage()
    for number, (before, files) in enumerate(cuts):
        place = folder / str(number)
        place.mkdir()
        write_files(files, place)
        _look(place / "memory.db", before, damage)
    return damage


def _write_one(number: int, view: object) -> None:
    (message,) = say(view, f"turn {number} " + "word " * (number % 40))  # type: ignore[arg-type]
    if message.seq % 10 == 0:
        summarize(view, message.seq - 9, message.seq)  # type: ignore[arg-type]


def _look(path: Path, acknowledged: int, damage: Damage) -> None:
    """Open what a cut left behind, the way the next start would."""
    damage.cuts += 1
    try:
        store = open_store(path)
    except StoreCorrupt:
        damage.corrupt += 1
        return
    try:
        findings = store.check()
        kept = [m.seq for m in store.read(ANA, lambda view: view.messages())]
    except StoreCorrupt:
        damage.corrupt += 1
        return
    finally:
        store.close()
    damage.corrupt += any(finding.rule == "sqlite-integrity" for finding in findings)
    damage.broken += any(finding.rule != "sqlite-integrity" for finding in findings)
    if len(kept) < acknowledged:
        damage.lost.append(acknowledged - len(kept))


def test_a_power_cut_loses_nothing_that_was_acknowledged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    damage = cut_again_and_again(tmp_path, monkeypatch, durable=True, sync=True)

    assert damage == Damage(cuts=CUTS)


def test_without_durability_only_the_last_writes_are_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What ``Config(durable=False)`` says: nothing is damaged, and these cuts can tell that writes are missing."""
    damage = cut_again_and_again(tmp_path, monkeypatch, durable=False, sync=True)

    assert (damage.cuts, damage.corrupt, damage.broken) == (CUTS, 0, 0)
    assert len(damage.lost) > CUTS // 4


def test_the_cuts_damage_a_store_that_does_not_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same cuts find a store broken that relies on luck; otherwise they would prove nothing."""
    damage = cut_again_and_again(tmp_path, monkeypatch, durable=True, sync=False)

    assert damage.corrupt > CUTS // 10
