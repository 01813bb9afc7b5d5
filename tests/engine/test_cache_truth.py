"""The cache of indexes: never older than what another process wrote, bounded, and not needed."""

import json
import subprocess
import sys
import tracemalloc
from functools import partial

import pytest

from holdfast import Config, Memory
from holdfast.testing.fakes import HashEmbedder
from tests import keeping

WRITER = """
import json, sys
from holdfast import Memory, Config
from holdfast.testing.fakes import HashEmbedder

with Memory(sys.argv[1], embedder=HashEmbedder(), config=Config(durable=False)) as memory:
    for line in sys.stdin:
        what, value = json.loads(line)
        chat, ana = memory.conversation("c", user="ana"), memory.user("ana")
        if what == "say":
            chat.record(value)
        elif what == "digest":
            memory.digest()
        elif what == "edit":
            chat.edit(*value)
        elif what == "forget":
            chat.forget(value)
        elif what == "erase":
            ana.erase()
        print("done", flush=True)
"""


@pytest.fixture
def elsewhere(tmp_path):
    """Another process on the same file, which does what it is told."""
    path = tmp_path / "m.db"
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, keeping.address(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:

        def tell(what, value=None):
            print(json.dumps([what, value]), file=child.stdin, flush=True)
            assert child.stdout.readline() == "done\n"

        yield path, tell
        child.stdin.close()


def test_what_another_process_wrote_is_found_by_the_next_search(elsewhere):
    path, tell = elsewhere
    open_here = partial(Memory, path, embedder=HashEmbedder())
    with open_here() as cached, open_here(config=Config(index_cache_mb=0)) as bare:

        def texts(question="kettle"):
            found = cached.user("ana").search(question, kinds=("message",), explain=True)
            assert found == bare.user("ana").search(question, kinds=("message",), explain=True)
            return [hit.text for hit in found]

        assert texts() == []
        for step in range(4):
            tell("say", f"The kettle leaks, for the {step}th time.")
            assert len(texts()) == step + 1
        tell("digest")
        assert len(texts()) == 4
        tell("edit", [2, "The oven leaks."])
        assert "The oven leaks." in texts("oven")
        tell("forget", 1)
        assert len(texts()) == 3
        tell("erase")
        assert texts() == []
        tell("say", "Another kettle.")  # numbers begin anew, and yet nothing old is found
        assert texts() == ["Another kettle."]


def test_many_users_never_take_more_than_the_setting_says():
    with Memory(embedder=HashEmbedder(dim=384), config=Config(durable=False, index_cache_mb=1)) as memory:
        for number in range(40):
            chat = memory.conversation("c", user=f"u{number}")
            chat.append([{"role": "user", "content": f"word{n} and word{n * 7} of {number}"} for n in range(60)])
        memory.digest()
        cache = memory._engine.cache
        tracemalloc.start()
        try:
            for number in range(40):
                assert memory.user(f"u{number}").search("what about word7 and word14?", limit=3)
                assert cache.nbytes <= 1_000_000
            held = tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()
        assert 3 <= len(cache) < 120
        assert held < 3_000_000  # what is counted is about what is held


def test_without_the_cache_answers_are_the_same():
    said = [{"role": "user", "content": f"the {word} is green"} for word in ("kettle", "door", "fence", "boat")]
    found = []
    for size in (0, 64):
        with Memory(embedder=HashEmbedder(), config=Config(durable=False, index_cache_mb=size)) as memory:
            memory.conversation("c", user="ana").append(said)
            memory.digest()
            found.append([memory.user("ana").search("green door?", explain=True) for _ in range(2)])
            assert (memory._engine.cache is None) == (size == 0)
    strip = [[[(hit.text, hit.score, hit.parts) for hit in hits] for hits in run] for run in found]
    assert strip[0] == strip[1]
    assert strip[0][0] == strip[0][1]
