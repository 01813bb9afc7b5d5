"""What a model made of erased words goes with them: facts, episodes, summaries, statements, refusals, old versions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast import Config, Memory
from holdfast.llm.protocol import Request
from holdfast.testing.fakes import FakeClock, HashEmbedder
from holdfast.testing.model import ScriptedModel
from holdfast.text.render import parse_blocks
from tests import keeping

from .looking import USER, answers, asked, raw, rows, standing, unasked, vector_bytes
from .test_erase import CANARIES, FILLER, START

ASKED, SAID = "Where is that, by the way?", re.compile(r"a place called (.+?) that")
NUMBERED = re.compile(r"^\[?#?(\d+)")


def read_lines(request: Request) -> list[tuple[int, str]]:
    """The numbered messages that a request shows to be read."""
    lines = next((items for name, items in parse_blocks(request.text) if name == "read"), [])
    return [(int(found[1]), line) for line in lines if (found := NUMBERED.match(line))]


def told(request: Request) -> str:
    """Every place that the request names, wherever it was named."""
    return ", ".join(dict.fromkeys(SAID.findall(request.text)))


def facts(request: Request) -> str:
    """An eager reader: each place as an attribute and a sentence, some on words that do not hold it, some refused."""
    found = []
    for seq, line in read_lines(request):
        for place in SAID.findall(line):
            quote = f"a place called {place} that"
            found.append(f'note,place_{seq},"{place}",0.95,,add,asserted,state,{seq},"{quote}"')
            found.append(
                f'statement,,"User knows a place called {place} that is far",0.95,,add,asserted,state,{seq},"{quote}"'
            )
            found.append(f'home,lives_in,"{place}",0.2,,set,asserted,state,{seq},"{quote}"')
            found.append(f'home,lives_in,"{place}",0.9,,set,asserted,state,{seq + 2},"What a long and friendly week"')
    return "\n".join(found) or "NONE"


def episodes(request: Request) -> str:
    """Bullets that rest on one message and take their place from another."""
    lines = read_lines(request)
    bullets = [
        f"- Spoke of a place called {place} that is far [{seq}]" for seq, line in lines for place in SAID.findall(line)
    ]
    week = [seq for seq, line in lines if "friendly week" in line]
    bullets += [
        f"- A long and friendly week with rain, before {place} [{week[0]}]"
        for place in SAID.findall(str(lines))
        if week
    ]
    return "\n".join(bullets) or "No facts to record"


def summary(request: Request) -> str:
    """It names everything it was shown."""
    return f"SUMMARY: They spoke of a place called {told(request) or 'nowhere'} that is far.\nTHEMES: {told(request) or 'rain'}"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store" / "chat.db"


@pytest.fixture
def memory(path: Path) -> Iterator[Memory]:
    path.parent.mkdir()
    script = {"facts": facts, "episodes": episodes, "chunk_summary": summary, "meta_summary": summary}
    model = ScriptedModel(script, otherwise=lambda request: told(request) or "NONE")
    config = Config(recall_min_relevance=0.0, max_output_tokens=8_000)
    with Memory(path, embedder=HashEmbedder(), clock=FakeClock(START), llm=model, config=config) as opened:
        yield opened


def plant(memory: Memory, canaries: list[str]) -> dict[str, list[tuple[str, int]]]:
    """Name every canary once in one of two talks, and make every layer twice; ``{canary: where it was said}``."""
    places: dict[str, list[tuple[str, int]]] = {}
    for number, canary in enumerate(canaries):
        name = "ab"[number % 2]
        memory._clock.advance(seconds=60)  # type: ignore[attr-defined]
        chat = memory.conversation(name, user=USER)
        receipt = chat.record(f"I know a place called {canary} that is far.", f"So {canary} it is, good to know!")
        places[canary] = [(name, seq) for seq in receipt.seqs]
        chat.record(FILLER, "Indeed it was.")
    for name in "ab":
        memory.conversation(name, user=USER).end()
    memory.digest()
    for name in "ab":
        for layer in ("summaries", "episodes", "facts", "meta"):
            report = memory.conversation(name, user=USER).rebuild(layer)
            assert report.errors == (), report.errors
    memory.user(USER).consolidate()
    memory.digest()
    return places


def gone(memory: Memory, path: Path, canaries: list[str], vectors: set[bytes]) -> None:
    said, everything = unasked(memory, ["a", "b"]), rows(path)
    assert [canary for canary in canaries if canary in said or canary in everything] == []
    for canary in canaries:
        assert canary not in asked(memory, canary, ["a", "b"])
    data = raw(path)
    assert standing(data, canaries) == []
    assert [vector for vector in vectors - vector_bytes(path) if vector in data] == []
    assert memory.doctor().findings == ()


def test_every_layer_holds_the_canaries_before(memory: Memory, path: Path) -> None:
    """The looks are worth as much as what they find before the erasure."""
    some = CANARIES[::3]
    plant(memory, some)
    user, chat = memory.user(USER), memory.conversation("a", user=USER)

    everything = rows(path)
    assert [canary for canary in some if canary in everything] == some
    by_model = [f for f in user.facts() if f.source.startswith("scripted:1")]
    assert {f.kind for f in by_model} >= {"attribute", "statement", "episode"}
    for kind in ("attribute", "statement", "episode"):
        assert sum(any(canary in f"{f.text}{f.value}" for canary in some) for f in by_model if f.kind == kind) >= 3, (
            kind
        )
    assert any(canary in s.text for s in chat.summaries(1) for canary in some)
    assert any(canary in s.text for s in chat.summaries(2) for canary in some)
    assert [s for s in chat.summaries(live=False) if s not in chat.summaries()]
    assert any(canary in str(r.candidate) for r in user.rejected(limit=1000) for canary in some)
    borrowed = [f for f in chat.episodes() if "before" in f.text and any(canary in f.text for canary in some)]
    assert borrowed
    assert all(not any(canary in e.quote for canary in some) for f in borrowed for e in f.evidence)


def by_message(memory: Memory, places: dict[str, list[tuple[str, int]]]) -> None:
    for canary, said in places.items():
        for name, seq in said:
            receipt = memory.conversation(name, user=USER).forget(seq)
        assert canary not in answers(memory, canary, ["a", "b"])  # at once
        assert receipt.level == keeping.erased(), receipt


def by_edit(memory: Memory, places: dict[str, list[tuple[str, int]]]) -> None:
    for canary, said in places.items():
        for name, seq in said:
            memory.conversation(name, user=USER).edit(seq, "Never mind.")
        assert canary not in answers(memory, canary, ["a", "b"])


def by_fact(memory: Memory, places: dict[str, list[tuple[str, int]]]) -> None:
    user = memory.user(USER)
    for canary in places:
        for fact in user.facts():
            if fact.value == canary:
                user.forget(fact.id)
        assert canary not in answers(memory, canary, ["a", "b"])


def by_conversation(memory: Memory, places: dict[str, list[tuple[str, int]]]) -> None:
    for name in "ab":
        memory.conversation(name, user=USER).clear()
        left = [canary for canary, said in places.items() if said[0][0] != name] if name == "a" else []
        answered = answers(memory, "place", ["a", "b"])
        assert [canary for canary in places if canary in answered and canary not in left] == []


def by_user(memory: Memory, places: dict[str, list[tuple[str, int]]]) -> None:
    memory.user(USER).prompts.set("chunk_summary", f"Never name {next(iter(places))} in a summary.")
    memory.user(USER).erase()


@pytest.mark.parametrize("erase", [by_message, by_edit, by_fact, by_conversation, by_user])
def test_what_a_model_made_goes_with_the_words(
    memory: Memory, path: Path, erase: Callable[[Memory, dict[str, list[tuple[str, int]]]], None]
) -> None:
    canaries = CANARIES if erase is by_user else CANARIES[::3]
    places = plant(memory, canaries)
    vectors = vector_bytes(path)
    erase(memory, places)
    gone(memory, path, canaries, vectors)
    memory.digest()
    memory.backfill(USER, delay_ms=0)
    gone(memory, path, canaries, vectors)


def test_what_others_said_too_stays(memory: Memory) -> None:
    """A fact loses nothing when a word of it was also said where nobody erased it."""
    chat = memory.conversation("a", user=USER)
    chat.record("I know a place called Quorvane that is far.", "Noted.")
    chat.record("I think of Quorvane often, a place called Quorvane that I like.", "Noted.")
    chat.end()
    memory.digest()
    before = {f.id for f in memory.user(USER).facts() if any(e.seq == 3 for e in f.evidence)}
    chat.forget(1)
    assert before <= {f.id for f in memory.user(USER).facts()}
    assert before


def test_an_edited_message_is_read_again_by_the_model(memory: Memory) -> None:
    chat = memory.conversation("a", user=USER)
    chat.record("I know a place called Quorvane that is far.", "Noted.")
    chat.end()
    memory.digest()
    chat.edit(1, "I know a place called Zephyrine that is far.")
    memory.digest()
    values = [f.value for f in memory.user(USER).facts() if f.key.startswith("place")]
    assert values == ["Zephyrine"]
