"""A model reads a conversation for facts: when, what it is shown, what is believed, and what happens when it fails."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from holdfast import Config, Memory
from holdfast.llm.protocol import Answer, ModelError
from holdfast.testing.fakes import FakeClock
from holdfast.testing.model import ScriptedModel

CHAT = ["How are you?", "Nice weather.", "ok", "haha", "really", "lol", "and you?", "hm", "fine", "right"]
PHRASE = "I gave up the old flat, my new address is in Porto"  # states something that no pattern reads


class World:
    """A memory with a scripted model and a clock."""

    def __init__(self, script=None, **settings):
        self.model, self.clock = ScriptedModel(script), FakeClock()
        self.memory = Memory(
            embedder=None, llm=self.model, clock=self.clock, config=Config(**{"chunk_tokens": 600} | settings)
        )
        self.chat = self.memory.conversation("a", user="ana")

    def say(self, *texts, reply="Sure."):
        for text in texts:
            self.chat.record(text, reply)

    def believed(self):
        return {(f.category, f.key): f.value for f in self.memory.user("ana").facts() if f.kind == "attribute"}

    def calls(self):
        return len(self.model.requests("facts"))


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    assert made.memory.doctor().findings == ()
    made.memory.close()


def row(key, value, quote, seq, *, category="home", op="set", subject=""):
    return f'{category},{key},{value},0.95,{subject},{op},asserted,state,{seq},"{quote}"'


def test_a_statement_that_the_rules_cannot_read_is_read_at_once(world):
    world.model.say("facts", row("lives_in", "Porto", PHRASE, 1))
    world.say(PHRASE)
    report = world.memory.digest()

    assert world.believed() == {("home", "lives_in"): "Porto"}
    (fact,) = world.memory.user("ana").facts()
    assert fact.source.startswith("scripted:1 ")
    assert fact.evidence[0].quote == PHRASE
    assert (report.facts, world.calls()) == (1, 1)
    assert report.tokens > 100


def test_what_the_rules_read_waits_for_the_next_reading(world):
    world.say("I live in Lisbon.")
    world.memory.digest()

    assert world.believed() == {("home", "lives_in"): "Lisbon"}
    assert world.calls() == 0

    world.say(*CHAT[:4])
    world.memory.digest()
    assert world.calls() == 1


def test_small_talk_is_read_with_its_chunk(world):
    for text in [*CHAT, *CHAT, *CHAT]:
        world.say(text)
        world.memory.digest()

    assert world.calls() == 0
    assert len(world.model.requests("combined")) == 1


def test_a_full_chunk_is_not_read_twice():
    world = World(chunk_tokens=1)
    world.say("I live in Lisbon.", *CHAT[:4])
    world.memory.digest()
    assert world.calls() == 0  # the next exchange closes the chunk, and one call reads all of it

    world.say("How are you?")
    world.memory.digest()
    assert (world.calls(), len(world.model.requests("combined"))) == (0, 1)


def test_between_two_users_a_turn_is_an_exchange(world):
    """Both are users: five turns are five messages of each."""
    for number in range(4):
        world.chat.append({"role": "user", "name": "ana", "content": f"I live in Lisbon, number {number}."})
        world.chat.append({"role": "user", "name": "bo", "content": "I see."})
        world.memory.digest()
    assert world.calls() == 0

    world.chat.append({"role": "user", "name": "ana", "content": "I live in Lisbon, as I said."})
    world.memory.digest()
    assert world.calls() == 1


def test_the_rate_of_calls_holds_however_much_is_stated(world):
    for number in range(40):
        world.say(f"{PHRASE} {number}.")
        world.memory.digest()

    assert world.calls() <= 40 / 5 + 1


def test_the_end_and_a_long_silence_read_what_is_left(world):
    world.say("hello", "fine, and you?")
    world.memory.digest()
    assert world.calls() == 0

    world.chat.end()
    world.memory.digest()
    assert (world.calls(), len(world.model.requests("combined"))) == (0, 1)

    world.say("hello again")
    world.clock.advance(hours=7)
    world.memory.digest()
    assert world.calls() == 0  # small talk waits

    world.chat.end()
    world.memory.digest()
    assert (world.calls(), len(world.model.requests("combined"))) == (1, 1)  # a small rest is read, not summarized

    world.say("I moved to a flat near the harbour.")
    world.memory.digest()
    before = world.calls()
    world.say("I should mention that I now take the ferry to work.")
    world.memory.digest()
    assert world.calls() == before
    world.clock.advance(hours=7)
    world.memory.digest()
    assert world.calls() == before + 1


def test_known_addresses_are_shown_and_secrets_are_not(world):
    world.say("I live in Lisbon.", "My password is hunter2-blue.", *CHAT[:3])
    world.memory.digest()
    (request,) = world.model.requests("facts")

    assert '"home/lives_in = Lisbon"' in request.text
    assert "hunter2" not in request.text
    assert "lives_in" in request.system
    assert request.cache_key == "facts:a:1-10"
    assert request.temperature == 0


def test_the_model_corrects_what_the_rules_read(world):
    said = "I live in Lisbon, no, scratch that, Setúbal it is."
    world.model.say("facts", row("lives_in", "Setúbal", "Setúbal it is", 1))
    world.say(said, *CHAT[:4])
    world.memory.digest()

    assert world.believed()["home", "lives_in"] == "Setúbal"


def test_a_retraction_ends_what_is_believed(world):
    world.model.say("facts", row("lives_in", "Lisbon", "Lisbon is history for me", 3, op="remove"))
    world.say("I live in Lisbon.", "Lisbon is history for me", *CHAT[:3])
    world.memory.digest()

    assert world.believed() == {}
    (old,) = world.memory.user("ana").history("home", "lives_in")
    assert old.ended_because == "retracted"


def test_words_of_the_assistant_are_refused_and_shown(world):
    world.model.say("facts", row("works_at", "Evilcorp", "You work at Evilcorp", 2, category="work"))
    world.say("hello", *CHAT[:3], reply="You work at Evilcorp")
    world.chat.end()
    report = world.memory.digest()

    assert world.believed() == {}
    assert report.rejected == 1


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (ModelError("no connection"), "model: no connection"),
        ("I'm sorry, but I can't help with that.", "bad-answer: the model refused to answer"),
        (Answer("home,lives_in", "scripted:1", finish="length"), "bad-answer: the answer was cut off"),
    ],
)
def test_a_failure_is_a_job_with_its_reason_and_is_tried_again(world, reply, reason):
    world.model.say("facts", reply, row("lives_in", "Porto", PHRASE, 1))
    world.say(PHRASE)

    assert world.memory.digest().failed == 1
    (job,) = [job for job in world.memory.jobs() if job.kind == "read"]
    assert job.reason.startswith(reason)
    assert world.believed() == {}

    world.clock.advance(seconds=10)
    world.memory.digest()
    assert world.believed() == {("home", "lives_in"): "Porto"}
    assert [job.kind for job in world.memory.jobs()] == ["chunk"]


def test_a_window_that_is_refused_again_and_again_holds_up_nothing():
    world = World({"facts": ["No way."] * 7}, job_attempts=4)
    world.say(PHRASE)
    for _ in range(7):
        world.memory.digest()
        world.clock.advance(minutes=1)
    (dead,) = world.memory.jobs("dead")

    assert dead.key == "1-2"
    assert dead.reason.startswith("bad-answer")

    world.say("We moved: the new place is in Faro.", *CHAT[:4])
    world.model.say("facts", row("lives_in", "Faro", "the new place is in Faro", 3))
    world.memory.digest()
    assert world.believed() == {("home", "lives_in"): "Faro"}

    world.model.say("facts", row("lives_in", "Porto", PHRASE, 1))
    world.memory.retry(dead.id)
    world.memory.digest()
    assert world.believed() == {("home", "lives_in"): "Faro"}  # what was said later still wins
    assert world.memory.jobs("dead") == []
    assert world.memory.doctor().findings == ()
    world.memory.close()


def test_rows_before_the_cut_are_kept_and_the_rest_is_read_again(world):
    cut = Answer(row("lives_in", "Porto", PHRASE, 1) + "\nwork,works_as,nur", "scripted:1", finish="length")
    world.model.say("facts", cut, row("works_as", "nurse", "I'm on the wards as a nurse", 3, category="work"))
    world.say(PHRASE, "I'm on the wards as a nurse", *CHAT[:3])
    world.memory.digest()

    assert world.believed() == {("home", "lives_in"): "Porto", ("work", "works_as"): "nurse"}
    assert world.model.requests("facts")[1].text.count(PHRASE) == 1  # as a message before


def test_an_erasure_during_the_call_wins(world):
    def answer(request):
        world.chat.forget(1)
        return row("lives_in", "Porto", PHRASE, 1)

    world.model._functions["facts"] = answer
    world.say(PHRASE)
    world.memory.digest()
    world.model._functions.clear()
    world.clock.advance(hours=8)
    world.memory.digest()

    assert world.believed() == {}
    assert [hit.seq for hit in world.memory.user("ana").search("Porto") if "Porto" in hit.text] == []


def test_a_model_that_comes_later_does_not_read_what_was_said_before(tmp_path):
    with Memory(tmp_path / "a.db", embedder=None) as memory:
        memory.conversation("a", user="ana").record(PHRASE)
    model = ScriptedModel()
    with Memory(tmp_path / "a.db", embedder=None, llm=model) as memory:
        chat = memory.conversation("a", user="ana")
        for text in CHAT:
            chat.record(text)
        chat.end()
        memory.digest()

        (request,) = model.requests("combined")
        assert PHRASE in request.text  # it is summarized
        assert '"facts: only of messages 2-11"' in request.text


def test_speakers_of_a_group_keep_their_own_facts(world):
    world.chat.append({"role": "user", "name": "ana", "content": "hi there"})
    world.chat.append({"role": "user", "name": "Ben", "content": PHRASE})
    world.chat.end()
    world.model.say("facts", row("lives_in", "Porto", PHRASE, 2))
    world.memory.digest()

    assert [(f.subject, f.value) for f in world.memory.user("ana").facts()] == [("ben", "Porto")]


@pytest.mark.parametrize("name", ["Luna", "luna", "my dog", "dog", "pet-42"])
def test_a_subject_is_meant_by_any_name_that_a_model_writes(world, name):
    ana = world.memory.user("ana")
    ana.subject("pet-42", name="Luna", aliases=("my dog",))
    world.model.say("facts", row("eats", "salmon", "Luna gets salmon for supper", 1, category="food", subject=name))
    world.say("Luna gets salmon for supper, my new plan for her")
    world.chat.end()
    world.memory.digest()

    assert {fact.subject for fact in ana.facts("food")} == {"pet-42"}


def test_a_name_of_two_subjects_that_a_model_writes_means_neither(world):
    ana = world.memory.user("ana")
    for subject in ("luna", "pet-43"):
        ana.subject(subject, name="Luna")
    world.model.say("facts", row("eats", "salmon", "Luna gets salmon for supper", 1, category="food", subject="Luna"))
    world.say("Luna gets salmon for supper, my new plan for her")
    world.chat.end()
    world.memory.digest()

    assert not {fact.subject for fact in ana.facts("food")} & {"luna", "pet-43"}
    assert len(ana.facts("food")) == 1


def test_how_many_turns_the_extractor_is_shown_is_a_setting():
    world = World(extract_every_user_turns=4, extract_user_turns=3, extract_messages_before=4)
    world.say(*(f"I gave up flat number {number}, it was too loud" for number in range(8)))
    world.memory.digest()
    first, second = (request.text.partition("<read>") for request in world.model.requests("facts"))

    assert [text.count(" user") for text in (first[0], first[2], second[0], second[2])] == [0, 3, 2, 3]
    world.memory.close()


@pytest.mark.parametrize("form", ["json", "csv"])
def test_an_extractor_that_answers_facts_to_everything_is_read_in_one_call(form):
    """JSON of content, category and confidence, or rows of four columns; the summary is the rules' then."""
    answers = {
        "json": '[{"content": "Had a webhook outage in January", "category": "history", "confidence": 0.9}]',
        "csv": "history,had_outage,webhook outage in January,0.9",
    }
    asked = []
    memory = Memory(":memory:", llm=lambda messages: asked.append(messages) or answers[form])
    chat = memory.conversation("c", user="ana")
    chat.record("As for January, there was that webhook outage in January for us.", "I see.")
    chat.end()
    memory.digest()

    assert any("webhook outage in January" in fact.text for fact in memory.user("ana").facts())
    assert (len(asked), len(chat.summaries()), memory.jobs(), memory.user("ana").rejected()) == (1, 1, [], [])
    memory.close()


@pytest.mark.parametrize("nothing", ["", "NONE", "```csv\n```", "[]"])
def test_nothing_is_an_answer_to_any_call(nothing):
    asked = []
    memory = Memory(":memory:", llm=lambda messages: asked.append(messages) or nothing)
    chat = memory.conversation("c", user="ana")
    chat.record("Out there it is the gravel bike that carries me.", "Nice.")
    chat.end()
    memory.digest()

    assert (len(asked), len(chat.summaries()), memory.jobs()) == (1, 1, [])
    memory.close()


@pytest.mark.parametrize(
    ("said", "claim"),
    [
        ("My password for the bank is Krokus77 ok?", "Uses Krokus77 as bank password"),
        ("I set it to Krokus77 as my new password", "Has the password Krokus77"),
    ],
)
def test_a_secret_that_a_model_names_all_the_same_is_not_believed_nor_kept(said, claim):
    rows = [{"content": claim, "category": "technical", "confidence": 0.9}]
    with Memory(":memory:", llm=lambda messages: json.dumps(rows)) as memory:
        chat = memory.conversation("c", user="u")
        chat.record(said, "I see.")
        chat.end()
        report = memory.digest()

        assert [change.op for change in report.changes] == ["rejected"]
        assert "Krokus77" not in repr(report.changes) + repr(memory.user("u").facts())


def test_an_edited_message_of_a_told_chunk_is_told_again_by_the_model():
    def answer(request):
        said = next((line for line in request.text.splitlines() if "first" in line), "")
        bullet = (
            "- Rode a first funicular in Zagreb [1]" if "funicular" in said else "- Rode a first tram in Zagreb [1]"
        )
        parts = {"episodes": bullet, "chunk_summary": "SUMMARY: They rode about Zagreb.", "facts": "NONE"}
        return parts.get(request.layer, f"SUMMARY: They rode about Zagreb.\nEPISODES:\n{bullet}\nFACTS:\nNONE")

    with Memory(embedder=None, llm=ScriptedModel(otherwise=answer)) as memory:
        chat = memory.conversation("a", user="ana")
        chat.record("I rode a first tram in Zagreb with Iva.", "Nice.")
        chat.end()
        memory.digest()
        assert [one.text for one in chat.episodes()] == ["Rode a first tram in Zagreb"]
        chat.edit(1, "I rode a first funicular in Zagreb with Iva.")
        assert "tram" not in repr(chat.summaries()) + repr(chat.episodes())
        memory.digest()

        assert [one.text for one in chat.episodes()] == ["Rode a first funicular in Zagreb"]
        assert not [one for one in chat.summaries() if one.source.startswith("rules")]
