"""Facts in a model's answers that are kept (exact data, changes, the speaker's language), and those that are refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from holdfast import Config, Memory
from holdfast.llm.protocol import ModelError
from holdfast.testing.fakes import FakeClock
from holdfast.testing.model import ScriptedModel
from holdfast.text.terms import count_tokens

from .talk import COMBINED, World


def row(category, key, value, seq, quote, *, op="set", modality="asserted", subject=""):
    return f'{category},{key},"{value}",0.95,{subject},{op},{modality},state,{seq},"{quote}"'


def read(here, *rows, said, reply="ok"):
    """Have *said* read by the model, which answers with *rows*; the messages begin after the greeting."""
    here.model.say("facts", "\n".join(rows) or "NONE")
    for text in said:
        here.chat.record(text, reply)
    here.chat.end()
    here.memory.digest()
    return {(fact.category, fact.key): fact.value for fact in here.user.facts() if fact.kind == "attribute"}


@pytest.fixture
def here(world):
    return world(chunks=0)


def test_exact_data_are_typed_facts(here):
    known = read(
        here,
        row("medication", "metformin", "500 mg twice a day", 2, "metformin 500 mg twice a day"),
        row("health", "ferritin", "12 ng/ml", 4, "ferritin came back at 12 ng/ml"),
        row("appointment", "dentist", "2026-05-04 14:30", 6, "dentist is on 2026-05-04 at 14:30"),
        said=(
            "I now take metformin 500 mg twice a day.",
            "My ferritin came back at 12 ng/ml.",
            "The dentist is on 2026-05-04 at 14:30.",
        ),
    )

    assert known["medication", "metformin"] == "500 mg twice a day"
    assert known["health", "ferritin"] == "12 ng/ml"
    assert ("appointment", "dentist") in known


def test_a_number_that_was_not_said_is_refused(here):
    known = read(
        here,
        row("medication", "metformin", "850 mg twice a day", 2, "metformin 500 mg twice a day"),
        said=("I now take metformin 500 mg twice a day.",),
    )

    assert "850 mg twice a day" not in known.values()
    assert any(one.reason.startswith("number-not-said") for one in here.user.rejected())


def test_a_changed_diet_takes_the_place_of_the_old_one(here):
    read(here, said=("I'm vegetarian.",))
    assert [f.key for f in here.user.facts() if f.category == "dietary"] == ["vegetarian"]

    read(
        here,
        row("dietary", "pescatarian", "true", 4, "fish is back on my plate"),
        said=("Doctor's orders: fish is back on my plate.",),
    )
    (diet,) = [f for f in here.user.facts() if f.category == "dietary"]

    assert (diet.key, diet.value) == ("pescatarian", "true")
    assert [f.key for f in here.user.history("dietary", "vegetarian") if f.ended_because == "replaced"] == [
        "vegetarian"
    ]


def test_what_is_known_is_shown_and_not_learned_again(here):
    read(here, said=("I live in Lisbon.",))
    (before,) = [f for f in here.user.facts() if f.key == "lives_in"]

    read(here, row("home", "lives_in", "Lisbon", 4, "hello"), said=("hello there, how are you today?",))
    (after,) = [f for f in here.user.facts() if f.key == "lives_in"]

    assert '"home/lives_in = Lisbon"' in here.model.asked[-1].text
    assert [(e.seq, e.quote) for e in after.evidence] == [(e.seq, e.quote) for e in before.evidence]


@pytest.mark.parametrize(
    ("said", "claimed"),
    [
        ("How do I set up Redis in front of PostgreSQL?", row("tech", "uses_tool", "Redis", 2, "Redis")),
        ("If I lived in Porto I would surf.", row("home", "lives_in", "Porto", 2, "I lived in Porto")),
        ("My boss lives in Oslo.", row("home", "lives_in", "Oslo", 2, "lives in Oslo")),
        ("I might get a dog.", row("pets", "has_pet", "dog", 2, "I might get a dog", modality="hypothetical")),
    ],
)
def test_only_what_is_stated_is_believed(here, said, claimed):
    assert read(here, claimed, said=(said,)) == {}
    assert len(here.user.rejected()) == 1


@pytest.mark.parametrize(
    ("said", "claimed", "value"),
    [
        ("요즘은 부산 바닷가에서 지내고 있어요.", row("home", "lives_in", "부산", 2, "부산 바닷가에서 지내고"), "부산"),
        ("Wir wohnen jetzt am Hafen von Kiel.", row("home", "lives_in", "Kiel", 2, "wohnen jetzt am Hafen von Kiel"), "Kiel"),
        ("Ahora tomo el café sin azúcar.", row("preference", "prefers", "café sin azúcar", 2, "café sin azúcar"), "café sin azúcar"),
        ("今は大阪で暮らしています。", row("home", "lives_in", "大阪", 2, "大阪で暮らしています"), "大阪"),
    ],
)  # fmt: skip
def test_facts_stay_in_the_speakers_language(here, said, claimed, value):
    assert value in read(here, claimed, said=(said,)).values()


@pytest.mark.parametrize(
    ("said", "claimed"),
    [
        ("요즘은 부산 바닷가에서 지내고 있어요.", row("home", "lives_in", "Busan", 2, "부산 바닷가에서 지내고")),
        ("We now live by the harbour of Kiel.", row("home", "lives_in", "基尔", 2, "live by the harbour of Kiel")),
    ],
)
def test_a_translated_value_is_refused(here, said, claimed):
    assert all(value not in ("Busan", "基尔") for value in read(here, claimed, said=(said,)).values())
    assert any(one.reason.startswith("other-language") for one in here.user.rejected())


def test_what_stands_in_an_own_context_is_never_read_again(here):
    """An application that records its own prompts as what the user said breeds no memories."""
    read(here, said=("I live in Lisbon.", "I work as a nurse."))
    before = {(f.text, len(f.evidence)) for f in here.user.facts()}

    def greedy(request):
        lines = [text for text in request.text.splitlines() if "Lives in" in text or "nurse" in text]
        return "\n".join(row("context", "", f"{'Works as a nurse.'}", seq, "Works as a nurse.") for seq in range(1, 40)) if lines else "NONE"  # fmt: skip

    here.model._functions["facts"] = greedy
    for _ in range(10):
        context = here.chat.context("Where do I live?")
        shown = "\n".join(section.text for section in context.sections)
        plain = "\n".join(f"- {fact.text}" for fact in here.user.facts() if fact.kind == "attribute")
        here.chat.record(f"{shown}\n{plain}", "ok")
        here.chat.end()
        here.memory.digest()

    assert {(f.text, len(f.evidence)) for f in here.user.facts() if f.kind == "attribute"} == before
    assert [f.text for f in here.user.facts() if f.kind == "statement"] == []


def test_resuming_reads_what_was_left(here):
    here.chat.record("I gave up the old flat, my new address is in Porto", "ok")
    here.user.pause()
    assert here.memory.digest().jobs == 0
    here.user.resume()
    here.model.say("facts", row("home", "lives_in", "Porto", 2, "my new address is in Porto"))
    here.memory.digest()

    assert [f.value for f in here.user.facts() if f.key == "lives_in"] == ["Porto"]


def test_an_edited_message_is_read_again(here):
    read(here, said=("The weather is fine in these parts.",))
    here.model.say("facts", row("home", "lives_in", "Porto", 2, "my new address is in Porto"))
    here.chat.edit(2, "I gave up the old flat, my new address is in Porto")
    here.memory.digest()

    assert [f.value for f in here.user.facts() if f.key == "lives_in"] == ["Porto"]
    assert [
        message
        for message in here.model.requests("facts")[-1].text.split("<read>")[1].splitlines()
        if message[:1] == '"'
    ]


def test_a_wrong_key_is_waited_for_and_costs_no_attempt(here):
    here.model.say("facts", ModelError("the key is not accepted", transient=False, setup=True))
    here.chat.record("I gave up the old flat, my new address is in Porto", "ok")
    here.memory.digest()
    (job,) = [job for job in here.memory.jobs() if job.kind == "read"]

    assert (job.state, job.attempt, job.key) == ("waiting", 0, "")
    assert "the key is not accepted" in job.reason


WORDS = "the garden was quiet and we talked about plans for the summer while the kettle sang on the stove again".split()


def ordinary(turn):
    """One exchange of ordinary chat, some 30 words a message; every second one states something."""
    start = (7 * turn) % len(WORDS)
    chat = " ".join((WORDS + WORDS)[start : start + 18])
    stated = (
        f"I bought {turn + 2} chairs for room {turn} last week, and {chat}." if turn % 2 else f"So {chat}, you know."
    )
    return stated, f"That sounds good to me, {chat}; tell me more about it when you have the time."


@pytest.mark.parametrize(("economy", "most_calls", "most_tokens"), [(False, 35, 45_000), (True, 12, 20_000)])
def test_a_hundred_messages_stay_within_the_promised_budget(economy, most_calls, most_tokens):
    model, clock = ScriptedModel(), FakeClock(datetime(2026, 3, 1, 9, tzinfo=UTC))
    with Memory(embedder=None, llm=model, clock=clock, config=Config(economy=economy)) as memory:
        chat = memory.conversation("a", user="ana")
        for turn in range(50):
            chat.record(*ordinary(turn))
            memory.digest()
            clock.advance(seconds=timedelta(hours=13 if turn % 17 == 16 else 0.1).total_seconds())
            memory.digest()
        tokens = sum(count_tokens(request.system) + count_tokens(request.text) for request in model.asked)

        assert 8 <= len(model.asked) <= most_calls
        assert tokens <= most_tokens


def test_a_combined_answer_is_held_to_the_same_rules():
    lies = COMBINED.replace("low ferritin,0.9,,add,asserted,state,5,The ferritin result is 12", "ferritin 99,0.9,,add,asserted,state,5,The ferritin result is 12")  # fmt: skip
    here = World({"combined": [lies]}, economy=True)
    here.memory.digest()

    assert all("99" not in fact.value for fact in here.user.facts())
    here.memory.close()
