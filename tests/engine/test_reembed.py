"""Another embedder: everybody is embedded anew without being asked, and the old vectors answer meanwhile."""

import time
from collections.abc import Sequence
from contextlib import closing

import apsw
import numpy as np
import pytest

from holdfast import Config, Memory
from holdfast.embed import Thresholds
from tests import keeping

TALK = ["The puppy ate my slipper.", "Taxes are due in April.", "The kettle leaks.", "We painted the fence green."]
ASKED = "which dog?"


class Meaning:
    """Knows that a puppy is a dog; the words of two of them share no place."""

    dim = 32
    thresholds = Thresholds(recall_min=0.1, related=0.4, merge=0.9, bm25_weight=0.3)

    def __init__(self, name: str, shift: int) -> None:
        self.id, self._shift, self.seen = name, shift, 0

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        self.seen += len(texts)
        rows = np.full((len(texts), self.dim), 0.01, np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in text.lower().replace("dog", "puppy").strip(".?").split():
                row[(sum(map(ord, word)) + self._shift) % self.dim] += 1
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        return rows


def embedders_in(path) -> set[str]:
    return {row[0] for row in keeping.asked(path, "SELECT embedder FROM vector UNION SELECT embedded FROM doc")}


def fill(path, *users: str) -> None:
    with Memory(path, embedder=Meaning("old", 0)) as memory:
        for user in users:
            chat = memory.conversation("c", user=user)
            for text in TALK:
                chat.record(text)
        memory.digest()
    assert embedders_in(path) == {"old"}


def best(memory: Memory, user: str = "ana") -> str:
    return memory.user(user).search(ASKED, kinds=("message",), limit=1)[0].text


def test_digest_embeds_everybody_anew_without_being_asked(tmp_path):
    path = tmp_path / "m.db"
    fill(path, *(f"u{number}" for number in range(7)))

    with Memory(path, embedder=Meaning("new", 5)) as memory:
        assert memory.digest().failed == 0
        assert best(memory, "u3") == TALK[0]
        assert not [job for job in memory.jobs() if job.kind == "embed"]
        assert memory.doctor().ok

    assert embedders_in(path) == {"new"}


def test_a_process_can_leave_the_vectors_of_another_embedder_alone(tmp_path):
    """As the command does, which opens whatever file it is given."""
    path, again = tmp_path / "m.db", Meaning("new", 5)
    fill(path, "ana", "ben")

    with Memory(path, embedder=again, config=Config(reembed=False)) as memory:
        memory.digest()

    assert (again.seen, embedders_in(path)) == (0, {"old"})


def test_nobody_is_embedded_twice(tmp_path):
    path, again = tmp_path / "m.db", Meaning("old", 0)
    fill(path, "ana", "ben")

    with Memory(path, embedder=again) as memory:
        memory.digest()

    assert again.seen == 0


def test_background_threads_do_it_by_themselves(tmp_path):
    path = tmp_path / "m.db"
    fill(path, "ana", "ben")

    with Memory(path, embedder=Meaning("new", 5), background=True):
        deadline = time.monotonic() + 30
        while embedders_in(path) != {"new"} and time.monotonic() < deadline:
            time.sleep(0.02)

    assert embedders_in(path) == {"new"}


def test_the_old_vectors_answer_until_there_are_new_ones(tmp_path):
    path = tmp_path / "m.db"
    fill(path, "ana")

    with Memory(path, embedder=Meaning("new", 5), previous_embedder=Meaning("old", 0)) as memory:
        assert best(memory) == TALK[0]
        memory.digest()
        assert best(memory) == TALK[0]
    assert embedders_in(path) == {"new"}


@pytest.mark.sqlite("vectors of a second embedder are written into the file by hand")
def test_half_way_both_kinds_of_vectors_are_searched(tmp_path):
    path = tmp_path / "m.db"
    fill(path, "ana")
    new = Meaning("new", 5)

    with Memory(path, embedder=new, previous_embedder=Meaning("old", 0)) as memory:
        memory.conversation("c", user="ana").record("My hamster sleeps all day.")
        with closing(apsw.Connection(str(path))) as db:  # the new message has its vector, the others do not yet
            row = new.embed(["My hamster sleeps all day."])[0]
            place = db.execute("SELECT org, user_id, bot, subject, kind, doc FROM doc WHERE embedded = ''").fetchone()
            codes = np.rint(row / np.abs(row).max() * 127).astype(np.int8).tobytes()
            scale = float(np.abs(row).max() / 127)
            db.execute("INSERT INTO vector VALUES (?,?,?,?,?,'new',?,?,?)", (*place, scale, codes))
            db.execute("UPDATE doc SET embedded = 'new' WHERE embedded = ''")
            db.execute("UPDATE user_state SET version = version + 1")
        assert best(memory) == TALK[0]
        found = memory.user("ana").search("who sleeps all day?", kinds=("message",), limit=1, explain=True)[0]
        assert (found.seq, found.parts["meaning"] > 0) == (5, True)
    assert embedders_in(path) == {"old", "new"}
