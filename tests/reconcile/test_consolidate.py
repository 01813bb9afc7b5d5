"""Several sentences become one memory: nothing is lost, everything can be undone, whatever happens to a source."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from datetime import timedelta
from itertools import permutations
from pathlib import Path

import pytest

from holdfast import Fact, Memory
from holdfast.reconcile.merging import joined_text
from holdfast.testing.fakes import FakeClock, HashEmbedder

from .sentences import SEA, believed, opened, say

DAY = 86_400
THINGS = "lamp desk bed chair mirror ladder barrel stove piano trunk cradle easel loom kiln anvil harp sledge".split()


@pytest.fixture
def memory(clock: FakeClock) -> Iterator[Memory]:
    with opened(clock) as memory:
        yield memory
        memory.digest()
        assert memory.doctor().findings == ()


@pytest.fixture
def merged(memory: Memory) -> Fact:
    """The one memory of three sentences about the sea; a fourth is about something else."""
    say(memory, *SEA, "Grandpa repairs clocks.")
    memory.digest()
    ((whole,),) = [(each.fact,) for each in memory.user("ana").consolidate().merged]
    return whole


def sources(memory: Memory) -> list[Fact]:
    return [fact for fact in memory.user("ana").history("context") if fact.ended_because == "merged"]


def test_what_says_the_same_becomes_one_memory_with_every_quote(memory: Memory, merged: Fact) -> None:
    assert merged.text in SEA
    assert [said.quote for said in merged.evidence] == SEA
    assert believed(memory) == sorted([merged.text, "Grandpa repairs clocks."])
    assert sorted(fact.text for fact in sources(memory)) == sorted(SEA)
    assert {fact.superseded_by for fact in sources(memory)} == {merged.id}


def test_it_is_recalled_once_and_shown_once(memory: Memory, merged: Fact) -> None:
    hits = memory.user("ana").search("walks by the sea", kinds=("fact",))

    assert [hit.id for hit in hits if "walks" in hit.text] == [merged.id]
    shown = memory.conversation("b", user="ana").context("The sea?").section("facts")
    assert shown.text.count("long walks") == 1


def test_a_message_whose_sentence_was_merged_is_not_shown_as_replaced(memory: Memory, merged: Fact) -> None:
    memory.digest()
    text = memory.conversation("a", user="ana").context("What do the kids adore by the sea?").to_text()

    assert "later replaced" not in text


def test_a_dry_run_tells_and_changes_nothing(memory: Memory) -> None:
    say(memory, *SEA)
    memory.digest()
    before = memory.user("ana").export()
    (told,) = memory.user("ana").consolidate(dry_run=True).merged

    assert sorted(fact.text for fact in told.sources) == sorted(SEA)
    assert memory.user("ana").export() == before


def test_again_there_is_nothing_to_do(memory: Memory, merged: Fact) -> None:
    assert memory.user("ana").consolidate().merged == ()


def test_the_background_does_it_after_twenty_sentences(memory: Memory) -> None:
    say(memory, *SEA, *(f"A {word} stands in the cellar." for word in THINGS))
    memory.digest()

    assert len(believed(memory)) == 18
    assert len(sources(memory)) == 3


def test_taken_apart_the_sentences_stand_again_and_are_not_merged_again(memory: Memory, merged: Fact) -> None:
    user, one = memory.user("ana"), sources(memory)[0]
    change = user.restore(one.id)

    assert (change.op, change.fact and change.fact.id) == ("new", one.id)
    assert believed(memory) == sorted([*SEA, "Grandpa repairs clocks."])
    assert user.consolidate().merged == ()
    (whole,) = [fact for fact in user.history("context") if fact.id == merged.id]
    assert whole.ended_because == "unmerged"
    assert user.restore(merged.id).op == "rejected"
    assert user.never_true(merged.id).reason


def test_a_new_sentence_may_join_those_that_were_merged(memory: Memory, merged: Fact) -> None:
    say(memory, "All the children really love long walks by the sea on Sundays, they adore it.", conversation="b")
    memory.digest()
    say(memory, "The kids love long walks by the sea.", conversation="c")
    memory.digest()
    fact = next(fact for fact in memory.user("ana").facts(kind="statement") if fact.id == merged.id)

    assert len(fact.evidence) == 4
    memory.user("ana").restore(sources(memory)[0].id)
    quotes = [said.quote for fact in memory.user("ana").facts(kind="statement") for said in fact.evidence]
    assert sorted(quotes).count("The kids love long walks by the sea.") == 1


def test_a_whole_is_made_of_sentences_never_of_wholes(memory: Memory, clock: FakeClock) -> None:
    user = memory.user("ana")
    say(memory, *SEA[:2])
    memory.digest()
    (first,) = user.consolidate().merged
    say(memory, "The kids really do adore such long long walks by the sea.", SEA[2], conversation="b")
    user.consolidate()
    memory.digest()
    live = user.facts(kind="statement")
    quotes = sorted(said.quote for fact in live for said in fact.evidence)

    assert quotes == sorted([*SEA, "The kids really do adore such long long walks by the sea."])
    assert {fact.superseded_by for fact in sources(memory)} <= {fact.id for fact in live}
    assert first.fact.id in {fact.id for fact in live} or user.restore(sources(memory)[0].id).op == "new"


@pytest.mark.parametrize("number", [0, 1, 2])
def test_erasing_the_message_of_a_source_takes_the_merged_text_down(memory: Memory, merged: Fact, number: int) -> None:
    seqs = [said.seq for said in merged.evidence]
    receipt = memory.conversation("a", user="ana").forget(seqs[number])

    assert receipt.rows["facts"] >= 2
    left = sorted(text for place, text in enumerate(SEA) if place != number)
    assert [text for text in believed(memory) if "walks" in text] == left
    assert merged.id not in {fact.id for fact in memory.user("ana").history("context")}


def test_editing_the_message_of_a_source_takes_the_merged_text_down(memory: Memory, merged: Fact) -> None:
    memory.conversation("a", user="ana").edit(merged.evidence[0].seq, "The kettle is new.")
    texts = believed(memory)

    assert SEA[0] not in texts
    assert {SEA[1], SEA[2]} <= set(texts)


@pytest.mark.sqlite("the bytes of the file are searched")
def test_erasing_all_messages_of_it_leaves_nothing(tmp_path: Path, clock: FakeClock) -> None:
    words = ["Quaxolotl"]
    path = tmp_path / "chat.db"
    with opened(clock, str(path)) as memory:
        say(memory, *(text.replace("walks", f"{words[0]} walks") for text in SEA))
        memory.digest()
        assert memory.user("ana").consolidate().merged
        receipt = memory.conversation("a", user="ana").clear()
        assert receipt.level == "E2"
        assert memory.user("ana").history("context") == []
        assert memory.doctor().findings == ()
    assert all(words[0].encode() not in file.read_bytes() for file in tmp_path.iterdir())


def test_forgetting_it_blanks_the_words_of_all_its_sentences(memory: Memory, merged: Fact) -> None:
    memory.user("ana").forget(merged.id)

    assert believed(memory) == ["Grandpa repairs clocks."]
    assert sources(memory) == []
    assert not any("walks" in message.content for message in memory.conversation("a", user="ana").load())


def test_forgetting_one_source_leaves_the_others(memory: Memory, merged: Fact) -> None:
    one = next(fact for fact in sources(memory) if fact.text == SEA[1])
    memory.user("ana").forget(one.id)

    assert believed(memory) == sorted([SEA[0], SEA[2], "Grandpa repairs clocks."])


def test_what_was_taken_apart_keeps_no_words_of_a_message_that_is_erased(memory: Memory, merged: Fact) -> None:
    user = memory.user("ana")
    user.restore(sources(memory)[0].id)
    for said in merged.evidence:
        memory.conversation("a", user="ana").forget(said.seq)

    assert [fact.text for fact in user.history("context")] == ["Grandpa repairs clocks."]
    assert "walks" not in json.dumps(user.export())


def test_clearing_and_erasing_leave_nothing(memory: Memory, merged: Fact) -> None:
    memory.user("ana").clear()
    assert memory.user("ana").history("context") == []
    memory.user("ana").erase()
    assert memory.user("ana").export()["facts"] == []


def test_never_true_ends_all_that_it_says_and_restore_brings_it_back(memory: Memory, merged: Fact) -> None:
    user = memory.user("ana")
    user.never_true(merged.id)

    assert believed(memory) == ["Grandpa repairs clocks."]
    assert user.consolidate().merged == ()
    assert user.restore(merged.id).op == "new"
    assert merged.text in believed(memory)
    assert {fact.superseded_by for fact in sources(memory)} == {merged.id}


def test_never_true_of_one_source_leaves_the_others(memory: Memory, merged: Fact) -> None:
    one = next(fact for fact in sources(memory) if fact.text == SEA[0])
    memory.user("ana").never_true(one.id)

    assert believed(memory) == sorted([SEA[1], SEA[2], "Grandpa repairs clocks."])


def test_a_correction_stands_in_place_of_the_whole(memory: Memory, merged: Fact) -> None:
    change = memory.user("ana").correct(merged.id, value="The kids adore long walks in the hills.")

    assert change.op == "replaced"
    assert believed(memory) == ["Grandpa repairs clocks.", "The kids adore long walks in the hills."]


def test_what_contradicts_it_ends_it(memory: Memory, merged: Fact, clock: FakeClock) -> None:
    clock.advance(seconds=DAY)
    say(memory, "The children hate long walks by the sea.", conversation="b")
    memory.digest()

    assert not any(text in believed(memory) for text in SEA)
    ended = next(fact for fact in memory.user("ana").history("context") if fact.id == merged.id)
    assert ended.ended_because == "replaced"


def test_put_away_it_goes_with_its_sentences_and_comes_back_when_one_is_said(memory: Memory, clock: FakeClock) -> None:
    say(memory, *SEA)
    memory.digest()
    user = memory.user("ana")
    (whole,) = user.consolidate().merged
    clock.advance(seconds=400 * DAY)
    user.prune(faded=True)

    assert believed(memory) == []
    assert [fact.id for fact in user.facts(archived=True)] == [whole.fact.id]
    say(memory, "The kids adore long walks by the sea!", conversation="b")
    memory.digest()
    assert believed(memory) == [whole.fact.text]


def test_uses_and_strength_are_those_of_the_sentences_together(memory: Memory, clock: FakeClock) -> None:
    say(memory, *SEA)
    memory.digest()
    user = memory.user("ana")
    for _ in range(3):
        memory.conversation("b", user="ana").context("What do the kids adore?")
    memory.digest()
    used = {fact.text: fact for fact in user.facts(kind="statement")}
    (whole,) = user.consolidate().merged

    assert whole.fact.uses == sum(fact.uses for fact in used.values())
    assert whole.fact.strength == pytest.approx(max(fact.strength for fact in used.values()))
    assert whole.fact.last_used_at == max((f.last_used_at for f in used.values() if f.last_used_at), default=None)
    user.restore(sources(memory)[0].id)
    assert sum(fact.uses for fact in user.facts(kind="statement")) >= whole.fact.uses


def test_it_travels_with_an_export_and_can_still_be_taken_apart(memory: Memory, merged: Fact, clock: FakeClock) -> None:
    data = json.loads(json.dumps(memory.user("ana").export()))
    with opened(clock) as other:
        user = other.import_(data)
        assert user.export() == data
        assert user.consolidate().merged == ()
        user.restore(sources(other)[0].id)
        assert believed(other) == sorted([*SEA, "Grandpa repairs clocks."])
        assert other.doctor().findings == ()


def test_what_was_believed_at_another_time_is_told_once(memory: Memory, clock: FakeClock) -> None:
    say(memory, *SEA)
    memory.digest()
    user = memory.user("ana")
    before = clock()
    clock.advance(seconds=DAY)
    (whole,) = user.consolidate().merged
    clock.advance(seconds=DAY)

    assert [fact.id for fact in user.facts(kind="statement", as_of=before)] == [whole.fact.id]
    then = user.facts(kind="statement", as_of=before, known_at=before + timedelta(hours=1))
    assert sorted(fact.text for fact in then) == sorted(SEA)


def test_nobody_elses_sentences_are_merged(memory: Memory) -> None:
    for user, sentence in zip(("ana", "ben", "cem"), SEA, strict=True):
        say(memory, sentence, user=user)
    memory.digest()

    assert [memory.user(user).consolidate().merged for user in ("ana", "ben", "cem")] == [(), (), ()]


def test_sentences_of_different_subjects_and_bots_are_never_merged(memory: Memory) -> None:
    for subject, bot, sentence in (("Luna", "a", SEA[0]), ("Rex", "a", SEA[1]), ("Luna", "b", SEA[2])):
        memory.user("ana", bot=bot, subject=subject).remember(sentence)

    assert [memory.user("ana", bot=bot).consolidate().merged for bot in "ab"] == [(), ()]


def test_while_memory_is_paused_nothing_is_merged(memory: Memory) -> None:
    say(memory, *SEA)
    memory.digest()
    memory.user("ana").pause()
    assert memory.user("ana").consolidate().merged == ()
    memory.user("ana").resume()
    assert len(memory.user("ana").consolidate().merged) == 1


def test_what_was_written_by_hand_lends_its_words(memory: Memory) -> None:
    say(memory, SEA[0], SEA[1])
    memory.digest()
    memory.user("ana").remember(SEA[2])
    memory.user("ana").consolidate()
    memory.digest()

    (fact,) = memory.user("ana").facts(kind="statement")
    assert len(fact.evidence) == 3


def test_without_an_embedder_only_the_same_words_are_the_same(clock: FakeClock) -> None:
    with Memory(embedder=None, clock=clock) as memory:
        for sentence in SEA:
            memory.user("ana").remember(sentence)
        assert memory.user("ana").consolidate().merged == ()
        assert len(believed(memory)) == 3


def test_a_message_that_is_read_again_teaches_nothing_new(memory: Memory, merged: Fact) -> None:
    before = len(memory.user("ana").history("context"))
    chat = memory.conversation("a", user="ana")
    chat.edit(merged.evidence[0].seq, f"{SEA[0]} ")
    memory.digest()

    assert len(memory.user("ana").history("context")) <= before + 1


def test_vectors_of_an_embedder_that_was_not_there_are_made(clock: FakeClock, tmp_path: Path) -> None:
    path = str(tmp_path / "chat.db")
    with Memory(path, embedder=None, clock=clock) as memory:
        for sentence in SEA:
            memory.user("ana").remember(sentence)
    with opened(clock, path) as memory:
        assert isinstance(memory._engine.embedder, HashEmbedder)
        assert len(memory.user("ana").consolidate().merged) == 1


PYTHON = ["Uses Python", "Prefers Python over JavaScript", "Backend is in Python with FastAPI"]
ONE_TOOL = "Uses Python with FastAPI for backend development, prefers Python over JavaScript"
PAIRS = tomllib.loads((Path(__file__).parent / "pairs.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", PAIRS["tools_one"], ids=lambda case: case[-1])
def test_sentences_about_one_tool_are_said_by_one(case: list[str]) -> None:
    *sentences, text = case

    assert {joined_text(order) for order in permutations(sentences)} == {text}


@pytest.mark.parametrize("pair", PAIRS["tools_apart"], ids=" + ".join)
def test_what_tells_more_or_other_of_a_tool_stays_apart(pair: list[str]) -> None:
    assert (joined_text(pair), joined_text(pair[::-1])) == ("", "")


def test_no_pair_that_must_stay_apart_is_about_one_tool() -> None:
    kinds = ("contra", "distinct", "unrelated", "hard", "never")

    assert [pair for kind in kinds for pair in PAIRS[kind] if joined_text(pair)] == []


@pytest.mark.parametrize("with_model", [False, True], ids=["rules", "model"])
def test_three_memories_about_one_tool_become_one_and_three_again(clock: FakeClock, with_model: bool) -> None:
    with opened(clock) if with_model else Memory(clock=clock) as memory:
        ana = memory.user("ana")
        for text, label in zip(PYTHON, ("technical", "preference", "technical"), strict=True):
            ana.remember(text, category=label)
        ana.remember("Uses Java", category="technical")
        memory.digest()
        (planned,) = ana.consolidate(dry_run=True).merged
        (merged,) = ana.consolidate().merged

        assert planned.fact.text == merged.fact.text == ONE_TOOL
        assert believed(memory) == ["Uses Java", ONE_TOOL]
        assert sorted(said.quote for said in merged.fact.evidence) == sorted(PYTHON)
        assert ana.consolidate().merged == ()
        ana.restore(merged.sources[0].id)
        assert believed(memory) == sorted([*PYTHON, "Uses Java"])
        assert ana.consolidate().merged == ()
        assert memory.doctor().findings == ()


def test_a_tool_that_is_told_again_goes_into_the_one_memory(clock: FakeClock) -> None:
    with Memory(clock=clock) as memory:
        ana = memory.user("ana")
        for text in PYTHON[:2]:
            ana.remember(text)
        ana.consolidate()
        ana.remember(PYTHON[2])
        ana.consolidate()

        assert believed(memory) == [ONE_TOOL]
