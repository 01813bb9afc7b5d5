"""A model tells the story of a subject: in one call, traced to the summaries that it names, and by the rules where it cannot."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast import Config, Memory
from holdfast.llm.prompts import load
from holdfast.llm.protocol import Answer, ModelError, Request
from holdfast.testing.fakes import FakeClock
from holdfast.testing.model import Reply, ScriptedModel
from holdfast.text.render import parse_blocks
from holdfast.text.terms import count_tokens
from holdfast.types import Story

SAID = [
    "Luna limps on the left leg since she chased the postman.",
    "Luna walks better since the rest of three weeks.",
    "Luna runs in the park again and weighs 14 kg.",
]
TOLD = (
    "2026-01-05: Luna limps on the left leg [1]\nLuna walks better, then runs in the park again and weighs 14 kg [2, 3]"
)


def summarized(request: Request) -> Reply:
    """Summarize a conversation by its first sentence."""
    said = next(items for name, items in parse_blocks(request.text) if name == "read")[0]
    return f"SUMMARY: {said.partition(': ')[2]}"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def model() -> ScriptedModel:
    return ScriptedModel({"chunk_summary": summarized})


@pytest.fixture
def memory(clock: FakeClock, model: ScriptedModel) -> Iterator[Memory]:
    with Memory(embedder=None, llm=model, clock=clock, config=Config(story_tokens=200)) as memory:
        yield memory


def visit(memory: Memory, clock: FakeClock, number: int, said: str = "") -> None:
    chat = memory.conversation(f"visit {number}", user="ines", subject="luna")
    chat.record(said or SAID[number], "I see.")
    chat.record("Thank you for the time that you took.", "You are welcome.")
    chat.end()
    clock.advance(days=1)


def visits(memory: Memory, clock: FakeClock) -> Story:
    for number in range(3):
        visit(memory, clock, number)
    memory.digest()
    return memory.user("ines").story("luna")


def cited(story: Story) -> list[set[str]]:
    return [{one.conversation for one in line.sources} for line in story.lines]


def test_one_call_tells_a_batch_of_changes_and_each_line_names_its_summaries(
    memory: Memory, clock: FakeClock, model: ScriptedModel
) -> None:
    model.say("story", TOLD)
    story = visits(memory, clock)
    (asked,) = model.requests("story")

    assert cited(story) == [{"visit 0"}, {"visit 1", "visit 2"}]
    assert story.lines[0].text == "Luna limps on the left leg"
    assert "[" not in story.text
    assert story.source == f"{model.name} {load('story').digest}" == f"{model.name} {asked.prompt}"
    assert "limit: 170 tokens" in asked.text
    assert all(f'"{number} (' in asked.text for number in (1, 2, 3))
    assert {(row.layer, row.calls) for row in memory.usage(by=("layer",))} >= {("story", 1)}
    memory.digest()
    clock.advance(days=30)
    memory.digest()
    assert len(model.requests("story")) == 1
    assert memory.doctor().ok


NEWS = {
    "luna": ["limps on the left leg", "sleeps in the hall", "eats duck only", "chases the postman", "weighs 14 kg"],
    "max": ["coughs at night", "hides under the sofa", "refuses the blue pill", "swims in the lake", "lost a tooth"],
    "shop": ["opens on Tuesdays", "sells green candles", "needs a new roof", "hired a painter", "moved to Mill Street"],
}


def told_by_name(request: Request) -> Reply:
    """Tell each summary in a line of its own words, and name it."""
    shown = next(items for name, items in parse_blocks(request.text) if "(" in items[0])
    lines = [f"{item.partition(': ')[2].splitlines()[0]} [{number}]" for number, item in enumerate(shown, 1)]
    return "\n".join(lines[-6:])


def test_thirty_conversations_of_three_subjects_across_months(clock: FakeClock, capsys: pytest.CaptureFixture) -> None:
    model = ScriptedModel({"chunk_summary": summarized, "story": told_by_name})
    with Memory(embedder=None, llm=model, clock=clock, config=Config(story_tokens=300)) as memory:
        for number in range(10):
            for subject, news in NEWS.items():
                chat = memory.conversation(f"{subject} {number}", user="ines", subject=subject)
                said = f"{subject.title()} {news[number % 5]} beside the {subject}gate{number}."
                chat.record(said, "I see.")
                chat.record("Thank you for the time that you took.", "You are welcome.")
                chat.end()
                clock.advance(days=4)
        memory.digest()
        before = {subject: memory.user("ines").story(subject) for subject in NEWS}

        for subject, story in before.items():
            told = {one.conversation for line in story.lines for one in line.sources}
            assert told == {f"{subject} {number}" for number in range(10)}
            assert all(line.sources and line.first_at for line in story.lines)
            assert story.source.startswith(model.name)
            assert count_tokens(story.text) <= 300
            assert not any(other in story.text.casefold() for other in NEWS if other != subject)
        calls = {row.layer: row.calls for row in memory.usage(by=("layer",))}
        with capsys.disabled():
            print(f"\n30 conversations of three subjects: {calls}")
        assert calls == {"combined": 30, "story": 3}

        memory.conversation("luna 9", user="ines", subject="luna").clear()
        assert "lunagate9" not in memory.user("ines").story("luna").text
        memory.digest()
        after = memory.user("ines").story("luna")
        told = {one.conversation for line in after.lines for one in line.sources}
        assert told == {f"luna {number}" for number in range(9)}
        assert memory.user("ines").story("max") == before["max"]
        assert len(model.requests("story")) == 3  # the lines that are left tell all the others
        assert memory.doctor().ok


@pytest.mark.parametrize(
    "invented",
    [
        "Luna was operated on by a surgeon [2]",
        "Luna walks better since the rest of 45 weeks [2]",
        "Luna walks better since Doctor Brown [2]",
        "Luna walks better since the rest [7]",
        "Luna walks better since the rest",
        "Luna runs in the park [2]",
        "Luna walks no better since the rest of three weeks [2]",
        "Luna walks better since the rest of three weeks and died [2]",
    ],
)
def test_a_line_that_its_summaries_do_not_hold_goes_and_the_rules_tell_what_is_left(
    memory: Memory, clock: FakeClock, model: ScriptedModel, invented: str
) -> None:
    model.say("story", f"Luna limps on the left leg [1]\n{invented}\nLuna runs in the park again [3]")
    story = visits(memory, clock)

    assert invented.partition(" [")[0] not in [line.text for line in story.lines]
    assert cited(story) == [{"visit 0"}, {"visit 1"}, {"visit 2"}]
    assert "walks better since the rest of three weeks" in story.lines[1].text
    assert story.source.startswith(model.name)


@pytest.mark.parametrize(
    "reply",
    ["I'm sorry, I cannot help with that.", "-", "A dog got well.", Answer("", "scripted:1", finish="refusal")],
)
def test_the_rules_tell_it_where_the_answer_cannot_be_used(
    memory: Memory, clock: FakeClock, model: ScriptedModel, reply: Reply
) -> None:
    model.say("story", reply)
    story = visits(memory, clock)

    assert story.source == "rules 1"
    assert len(story.lines) == 3
    assert len(model.requests("story")) == 1
    assert not memory.jobs()


def test_a_model_that_is_busy_is_asked_again(memory: Memory, clock: FakeClock, model: ScriptedModel) -> None:
    model.say("story", ModelError("too many requests", transient=True), TOLD)
    assert visits(memory, clock).lines == ()
    clock.advance(hours=1)
    memory.digest()

    assert memory.user("ines").story("luna").source.startswith(model.name)


def test_in_economy_mode_the_rules_tell_it(clock: FakeClock, model: ScriptedModel) -> None:
    with Memory(embedder=None, llm=model, clock=clock, config=Config(economy=True)) as memory:
        story = visits(memory, clock)

    assert (story.source, len(story.lines)) == ("rules 1", 3)
    assert model.requests("story") == []


def test_a_story_that_is_too_long_loses_its_oldest_lines_to_the_rules(
    memory: Memory, clock: FakeClock, model: ScriptedModel
) -> None:
    said = SAID[0].rstrip(".")
    model.say("story", "\n".join(f"{' and '.join([said] * 4)}{'!' * n} [1]" for n in range(8)) + f"\n{SAID[2]} [3]")
    story = visits(memory, clock)

    assert count_tokens(story.text) <= 200
    assert story.lines[-1].text == SAID[2]
    assert set().union(*cited(story)) == {"visit 0", "visit 1", "visit 2"}


def test_a_new_conversation_is_told_in_one_more_call(memory: Memory, clock: FakeClock, model: ScriptedModel) -> None:
    model.say("story", TOLD, f"{TOLD}\nLuna swims in the lake [4]")
    before = visits(memory, clock)
    visit(memory, clock, 3, "Luna swims in the lake since Monday.")
    memory.digest()
    story = memory.user("ines").story("luna")

    assert (story.version, len(model.requests("story"))) == (before.version + 1, 2)
    assert cited(story)[-1] == {"visit 3"}


@pytest.mark.parametrize("erase", ["clear", "forget"])
def test_lines_that_rest_on_something_erased_go_at_once(
    memory: Memory, clock: FakeClock, model: ScriptedModel, erase: str
) -> None:
    model.say("story", TOLD, "Luna limps on the left leg [1]")
    visits(memory, clock)
    chat = memory.conversation("visit 2", user="ines", subject="luna")
    receipt = chat.clear() if erase == "clear" else chat.forget(1)

    assert receipt.rows["story lines"] == 1
    at_once = memory.user("ines").story(
        "luna"
    )  # what is left of its sources is told by the rules until the model has told it
    memory.digest()
    again = memory.user("ines").story("luna")
    assert cited(at_once)[:2] == [{"visit 0"}, {"visit 1"}]
    assert "Luna walks better since the rest of three weeks." in at_once.text
    assert [one.text for one in (at_once, again) if "14 kg" in one.text or "runs in the park" in one.text] == []
    assert memory.doctor().ok


def test_own_words_for_the_story_reach_the_model(memory: Memory, clock: FakeClock, model: ScriptedModel) -> None:
    prompts = memory.user("ines").prompts
    own = prompts.set("story", "Only what a vet needs.")
    model.say("story", TOLD)
    story = visits(memory, clock)
    (asked,) = model.requests("story")

    assert asked.system.startswith(f"Only what a vet needs.\n\n{load('story').shape}")
    assert story.source == f"{model.name} {own.digest}"
    assert memory.doctor().ok


def test_a_prompt_for_the_story_is_tried_on_the_stories_that_there_are(
    memory: Memory, clock: FakeClock, model: ScriptedModel
) -> None:
    model.say("story", TOLD, "Luna runs in the park again [3]")
    story = visits(memory, clock)
    estimate = memory.user("ines").prompts.preview("story", "In brief.", dry_run=True)
    found = memory.user("ines").prompts.preview("story", "In brief.")

    (sample,) = found.samples
    assert (sample.subject, sample.old, sample.source) == ("luna", story.text, story.source)
    assert "runs in the park again" in sample.new
    assert (found.calls, estimate.calls) == (1, 1)
    assert estimate.tokens >= found.tokens > 0
    assert memory.user("ines").story("luna") == story


@pytest.mark.parametrize("name", ["Luna", "my dog", "MY DOG", "pet-42"])
def test_a_name_or_an_alias_finds_the_story(clock: FakeClock, name: str) -> None:
    with Memory(embedder=None, clock=clock) as memory:
        memory.user("omar").subject("pet-42", name="Luna", aliases=("my dog",))
        for number, said in enumerate(SAID):
            chat = memory.conversation(f"visit {number}", user="omar", subject="pet-42")
            chat.record(said, "I see.")
            chat.end()
        memory.digest()

        assert memory.user("omar").story(name).subject == "pet-42"
        assert len(memory.user("omar").story(name).lines) == 3
        assert memory.user("omar", subject=name).story().subject == "pet-42"
