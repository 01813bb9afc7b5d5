"""After a write a search reads what came since, and finds exactly what one does that reads everything."""

from __future__ import annotations

import random
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial

import pytest

from holdfast import Config, Memory
from holdfast.errors import NotFound
from holdfast.ingest.append import index_message
from holdfast.recall import index
from holdfast.store import Partition, ReadView, pack_words, writeview
from holdfast.store.values import SEPARATOR
from holdfast.testing.fakes import FakeClock, HashEmbedder
from tests import keeping

MONDAY = datetime(2024, 3, 4, 9, 0, tzinfo=UTC)
THINGS = "salmon Lisbon piano tennis violin garden Berlin coffee chess marathon pottery sailing".split()
SAYINGS = (
    "I like {}.",
    "We talked about {} and {} yesterday",
    "My sister moved to {}.",
    "Did you see the {}?",
    "I hate {} now.",
    "Nothing but {} {} {}",
)
QUESTIONS = ("What do I like about salmon?", "Where is my sister, in Lisbon or Berlin?", "piano chess pottary")


class Group:
    """Several processes with one store, each with a cache, and one without any."""

    def __init__(self, path: str, embedder: HashEmbedder | None) -> None:
        clock = FakeClock(MONDAY)
        self.clock = clock
        self.members = [
            Memory(
                path, clock=clock, embedder=embedder, config=Config(chunk_messages=10, durable=False, index_cache_mb=mb)
            )
            for mb in (64, 64, 0)
        ]
        self.seqs: dict[tuple[str | None, str], int] = {}

    def close(self) -> None:
        for member in self.members:
            member.close()

    def step(self, rng: random.Random) -> None:
        """Do something at random, through one of the processes."""
        member = rng.choice(self.members)
        subject, name = place = (rng.choice([None, None, None, "mia"]), rng.choice(["a", "a", "b"]))
        talk, ana = member.conversation(name, user="ana", subject=subject), member.user("ana")
        self.clock.advance(minutes=rng.choice([1, 2, 600]))
        do = rng.random()
        if do < 0.55 or place not in self.seqs:
            said = [_message(rng) for _ in range(rng.choice([1, 2, 2, 5]))]
            self.seqs[place] = talk.append(said).seqs[-1]
        elif do < 0.8:
            member.digest()
        elif do < 0.9:
            with suppress(NotFound):  # it was forgotten before
                if do < 0.86:
                    talk.edit(rng.randint(1, self.seqs[place]), _text(rng))
                else:
                    talk.forget(rng.randint(1, self.seqs[place]))
        elif do < 0.92 and len(self.seqs) > 2:
            talk.clear()
            del self.seqs[place]
        elif do < 0.96:
            ana.remember(f"Ana plays {rng.choice(THINGS)}")
        elif facts := ana.facts():
            ana.forget(rng.choice(facts).id)

    def compare(self, rng: random.Random) -> None:
        """Ask all of them the same: the answers, and their scores to the last bit, are those of reading everything."""
        question = rng.choice(QUESTIONS)
        for subject in (None, "mia"):
            asked = [
                member.user("ana", subject=subject).search(question, limit=20, explain=True) for member in self.members
            ]
            assert asked[0] == asked[2]
            assert asked[1] == asked[2]

    def check_words(self) -> None:
        """The words in the row of each message are those of its text as it is now."""
        for subject in (None, "mia"):
            for name in ("a", "b"):
                talk = self.members[2].conversation(name, user="ana", subject=subject)
                said = [one for one in talk.load() if one.content]
                packed = {one.seq: pack_words(index_message(one, MONDAY, None, ()).terms) for one in said}
                kept = talk._engine.store.read(talk._scope, partial(_words_of, name=name))
                assert kept == packed


def _words_of(view: ReadView, name: str) -> dict[int, str]:
    columns = view.columns(Partition(view.scope.subject or "self", "message"))
    here = [said.partition(SEPARATOR)[0] == name for said in columns["said"]]
    return {seq: words for seq, words, mine in zip(columns["seq"], columns["words"], here, strict=True) if mine}


def _text(rng: random.Random) -> str:
    return rng.choice(SAYINGS).format(*rng.choices(THINGS, k=3))


def _message(rng: random.Random) -> dict[str, str]:
    return {"role": rng.choice(["user", "user", "assistant"]), "content": _text(rng)}


@pytest.mark.parametrize(
    ("held", "seed"),
    [("words", 0), ("vectors", 1), ("vectors", 2), ("signs", 1), ("signs", 5), ("segments", 3), ("segments", 4)],
)
def test_a_search_after_any_write_finds_what_reading_everything_finds(tmp_path, monkeypatch, held, seed, full):
    if held in ("signs", "segments"):
        monkeypatch.setattr(index, "BIG", 15)
    if held == "segments":
        monkeypatch.setattr(writeview, "SIZE", 4)
    rng, group = random.Random(seed), Group(str(tmp_path / "m.db"), None if held == "words" else HashEmbedder())
    try:
        for _ in range(50 if full or keeping.lender is None else 20):
            group.step(rng)
            if rng.random() < 0.7:
                group.compare(rng)
        group.check_words()
    finally:
        group.close()


def test_after_an_append_only_what_came_since_is_read(tmp_path, monkeypatch):
    with Memory(tmp_path / "m.db", embedder=HashEmbedder(), config=Config(durable=False)) as memory:
        talk, ana = memory.conversation("a", user="ana"), memory.user("ana")
        talk.append([f"salmon number {n}" for n in range(30)])
        memory.digest()
        ana.search("salmon")
        read = []
        columns = ReadView.columns
        vectors, vectors_of = ReadView.vectors, ReadView.vectors_of

        def note(name, found):
            read.extend((name, row) for row in found)
            return found

        monkeypatch.setattr(ReadView, "columns", lambda *a, **k: (f := columns(*a, **k), note("doc", f["doc"]))[0])
        monkeypatch.setattr(ReadView, "vectors", lambda *a, **k: note("vector", vectors(*a, **k)))
        monkeypatch.setattr(ReadView, "vectors_of", lambda *a, **k: note("vector", vectors_of(*a, **k)))

        talk.append("one more salmon")
        assert "one more salmon" in [hit.text for hit in ana.search("salmon", limit=50)]
        newest = max(row for name, row in read if name == "doc")
        assert read == [("doc", newest)]


def test_what_is_said_does_not_have_facts_read_again(tmp_path, monkeypatch):
    with Memory(tmp_path / "m.db", embedder=None, config=Config(durable=False)) as memory:
        talk, ana = memory.conversation("a", user="ana"), memory.user("ana")
        talk.append("I like salmon.")
        memory.digest()
        ana.search("salmon")
        read = []
        facts = ReadView.facts
        monkeypatch.setattr(ReadView, "facts", lambda *a, **k: read.append(a) or facts(*a, **k))

        talk.append("Hello there")
        ana.search("salmon")
        assert not read
        ana.remember("Ana plays chess")
        assert "Ana plays chess" in [hit.text for hit in ana.search("chess")]
