"""What a careful reader would merge is one fact, and what differs stays two."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from holdfast import Memory
from holdfast.reconcile.compare import specifies
from holdfast.reconcile.registry import as_number, registry
from holdfast.testing.fakes import FakeClock
from holdfast.testing.model import ScriptedModel
from holdfast.types import Candidate

AT = datetime(2026, 3, 20, 18, tzinfo=UTC)


def facts_after(*exchanges, episodes=()):
    """The attributes after messages with the rows of a model about each, and the episodes."""
    answers = ["\n".join(rows) for _, *rows in exchanges]
    model = ScriptedModel({"facts": answers, "episodes": ["\n".join(episodes) or "No facts to record"]})
    clock = FakeClock(AT)
    with Memory(clock=clock, embedder=None, llm=model) as memory:
        chat = memory.conversation("c", user="ana")
        for said, *_ in exchanges:
            chat.record(said, "Ok.")
            clock.advance(seconds=60)
            chat.end()
            memory.digest()
        facts = memory.user("ana").facts()
    held = sorted(f"{fact.category}/{fact.key} = {fact.value}" for fact in facts if fact.kind == "attribute")
    return held, [fact.text for fact in facts if fact.kind == "episode"]


def row(address, value, seq, quote, op="add", subject=""):
    category, key = address.split("/")
    return f'{category},{key},"{value}",0.9,{subject},{op},{seq},"{quote}"'


@pytest.mark.parametrize(
    ("said", "value", "quote", "held"),
    [
        (
            "no me gustan nada las noches",
            "los turnos de noche",
            "no me gustan nada las noches",
            ["los turnos de noche"],
        ),
        ("I hate onions. And i hate onion soup.", "onion soup", "i hate onion soup", ["onion soup", "onions"]),
        ("i hate onions", "onions and leeks", "i hate onions", ["onions", "onions and leeks"]),
    ],
)
def test_a_model_that_reads_more_in_the_same_words_replaces_what_the_rules_read(said, value, quote, held):
    found, _ = facts_after((said, row("preference/dislikes", value, 1, quote)))

    assert found == [f"preference/dislikes = {one}" for one in held]


@pytest.mark.parametrize(
    ("address", "first", "second", "held"),
    [
        ("pets/has_pet", "iguana", "iguana (green)", ["iguana (green)"]),
        ("pets/has_pet", "iguana (green)", "iguana", ["iguana (green)"]),
        ("trip/going_to", "Kyoto", "Kyoto, Japan", ["Kyoto, Japan"]),
        ("project/works_on", "a chapel", "a chapel in Faro", ["a chapel in Faro"]),
        ("health/has_condition", "tinnitus (again)", "tinnitus since the concert", ["tinnitus since the concert"]),
        ("pets/has_pet", "iguana (green)", "iguana (old)", ["iguana (green)", "iguana (old)"]),
        ("food/does_not_eat", "squid", "squid on Fridays", ["squid", "squid on Fridays"]),
        ("possession/owns", "kiln", "kiln with a window", ["kiln", "kiln with a window"]),
    ],
)
def test_one_thing_with_more_about_it_is_one_value(address, first, second, held):
    said, told = f"I have {first} here.", f"I have {second} here."
    found, _ = facts_after((said, row(address, first, 1, first)), (told, row(address, second, 3, second)))

    assert found == [f"{address} = {value}" for value in held]


def test_another_of_the_kind_is_another_value():
    found, _ = facts_after(
        ("We keep an iguana.", row("pets/has_pet", "iguana", 1, "We keep an iguana")),
        ("We keep another iguana (green).", row("pets/has_pet", "iguana (green)", 3, "We keep another iguana (green)")),
    )

    assert found == ["pets/has_pet = iguana", "pets/has_pet = iguana (green)"]


@pytest.mark.parametrize("turned", [False, True])
def test_what_one_address_says_with_another_is_said_once(turned):
    """Whoever is a daughter is a child; what replies leave out need not be a dislike too."""
    both = [row("family/child", "Ivy", 1, "Ivy"), row("family/daughter", "Ivy", 1, "Ivy")]
    found, _ = facts_after(("Ivy is ours.", *(reversed(both) if turned else both)))

    assert found == ["family/daughter = Ivy"]


def test_what_is_not_drunk_and_not_eaten_is_one_address():
    found, _ = facts_after(
        ("No coffee for me, never.", row("food/does_not_drink", "coffee", 1, "No coffee for me, never")),
        ("As I said, no coffee.", row("food/does_not_eat", "coffee", 3, "no coffee")),
    )

    assert found == ["food/does_not_eat = coffee"]


def test_a_value_of_a_word_list_is_the_one_that_the_rules_noted():
    found, _ = facts_after(
        (
            "Soy intolerante a la lactosa y vivo en Salta.",
            row("allergy/intolerant_to", "lactosa", 1, "intolerante a la lactosa"),
        )
    )

    assert [one for one in found if one.startswith("allergy")] == ["allergy/intolerant_to = lactose"]


def test_an_episode_that_only_says_what_facts_of_its_message_say_is_none():
    rows = [
        row("hobby/plays", "the oboe", 1, "I play the oboe"),
        row("identity/name", "Hanna", 1, "I'm Hanna", op="set"),
    ]
    bullets = ["- Hanna plays the oboe [1]", "- Hanna played the oboe in Faro on Sunday [1]"]
    _, episodes = facts_after(("I'm Hanna. I play the oboe; on Sunday in Faro.", *rows), episodes=bullets)

    assert episodes == ["Hanna played the oboe in Faro on Sunday"]


@pytest.mark.parametrize("turned", [False, True])
def test_who_is_named_is_not_also_somebody_without_a_name(turned):
    unnamed = ("Mi hija me lo instaló.", row("family/daughter", "hija", 1, "Mi hija me lo instaló"))
    named = ("Mi hija Marta vive cerca.", row("family/daughter", "Marta", 3, "Mi hija Marta"))
    found, _ = facts_after(unnamed)
    assert found == ["family/has = daughter"]  # and nobody is called "hija"

    numbered = named if not turned else (named[0], named[1].replace(",3,", ",1,"))
    other = unnamed if not turned else (unnamed[0], unnamed[1].replace(",1,", ",3,"))
    found, _ = facts_after(*((numbered, other) if turned else (other, numbered)))
    assert [one for one in found if one.startswith("family")] == ["family/daughter = Marta"]


def test_two_children_without_names_stay_beside_the_one_with_a_name():
    found, _ = facts_after(
        ("I have a sister and a brother.", row("family/has", "sister", 1, "a sister"), row("family/has", "brother", 1, "a brother")),
        ("My sister Ana sings.", row("family/sister", "Ana", 3, "My sister Ana")),
    )  # fmt: skip

    assert found == ["family/has = brother", "family/sister = Ana"]


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    ("species", "held"), [("old labrador", ["identity/breed = labrador"]), ("dog", ["identity/breed = labrador", "identity/species = dog"])]
)  # fmt: skip
def test_an_old_labrador_is_a_labrador(turned, species, held):
    said = f"Rolo, a labrador, is our {species}."
    rows = [
        row("identity/breed", "labrador", 1, "a labrador", "set", "Rolo"),
        row("identity/species", species, 1, f"our {species}", "set", "Rolo"),
    ]
    found, _ = facts_after((said, *(reversed(rows) if turned else rows)))

    assert [one for one in found if one.startswith("identity")] == held


@pytest.mark.parametrize(
    "bullet", ["- Ivy's party with 12 kids was lovely [1]", "- The cake at Ivy's party worked [1]"]
)
def test_what_happened_is_told_by_one_episode(bullet):
    """Unless the episode tells less."""
    said = "Ivy's party with 12 kids was lovely, and the cake worked."
    found, episodes = facts_after(
        (said, row("life/happened", "Ivy's party with 12 kids", 1, "Ivy's party with 12 kids was lovely")),
        episodes=[bullet],
    )

    assert episodes == [bullet[2:-4]]
    assert found == ([] if "12 kids" in bullet else ["life/happened = Ivy's party with 12 kids"])


@pytest.mark.parametrize(
    ("subject", "op", "left"), [("Kestrel", "set", 1), ("Kestrel", "add", 2), ("", "set", 2)]
)  # fmt: skip
def test_a_named_project_has_one_deadline(subject, op, left):
    found, _ = facts_after(
        ("I have to be done by 4 December.", row("project/deadline", "4 December 2026", 1, "to be done by 4 December", "set", subject)),
        ("I have to be done by the 18th.", row("project/deadline", "18 December 2026", 3, "to be done by the 18th", op, subject)),
    )  # fmt: skip

    assert len(found) == left
    assert "project/deadline = 18 December 2026" in found


def test_a_slip_put_right_in_one_message_is_no_older_result():
    """ "Last week" dates the weight, not the correction; a result of an older day told later stays history."""
    clock, model = FakeClock(AT), ScriptedModel({"episodes": ["No facts to record"], "facts": [
        row("health/weight", "17 kilos", 1, "no, 17, we weighed him last week", "set", "Sam"),
        row("health/weight", "15 kilos", 3, "In January it was 15 kilos", "set", "Sam"),
    ]})  # fmt: skip
    with Memory(clock=clock, embedder=None, llm=model) as memory:
        chat = memory.conversation("c", user="ana")
        for said in (
            "My son Sam is four. He weighs 16 kilos, no, 17, we weighed him last week.",
            "In January it was 15 kilos for Sam.",
        ):
            chat.record(said, "Ok.")
            chat.end()
            memory.digest()
            clock.advance(seconds=60)
        held = [fact.value for fact in memory.user("ana").facts("health")]

    assert held == ["17 kilos"]


@pytest.mark.parametrize(
    ("told", "held"),
    [("nein, seit Mai nicht mehr", ["false"]), ("no", ["false"]), ("yes, since 2020", ["true"]), ("sí", ["true"]), ("nobody knows", []), ("Jakarta", [])],
)  # fmt: skip
def test_yes_and_no_are_read_with_what_is_said_beside_them(told, held):
    said = Candidate("attribute", "self", "health", "smokes", told, "Smokes.", 0.9, 1, told, 0)
    read = registry().known_address(said)

    assert ([] if registry().refusal(read) else [read.value]) == held


def test_the_thing_must_be_the_same():
    assert not specifies("steak with chips", "steak")
    assert not specifies("gatos", "gato")
    assert specifies("el Beto (amigo del tren)", "Beto")
    assert specifies("Flask 2.3.1", "Flask")
    assert not specifies("PlayStation 5", "PlayStation")  # a model of its own


@pytest.mark.parametrize(
    ("told", "number"),
    [
        ("34 years old", "34"), ("四岁", "4"), ("二十八歳", "28"), ("twelve", "12"), ("34 años", "34"), ("about 40", "40"),
        ("10 days", "10"), ("4 months", "4 months"), ("the whole month", "the whole month"),
    ],
)  # fmt: skip
def test_a_number_in_words_or_with_its_unit_is_a_number(told, number):
    assert as_number(told) == number


def believed(said, rows):
    """Return the clock and the facts about Ana as they are at any time, after one message and a model's rows about it."""
    clock = FakeClock(AT)
    memory = Memory(
        clock=clock, embedder=None, llm=ScriptedModel({"facts": [rows], "episodes": ["No facts to record"]})
    )
    chat = memory.conversation("c", user="ana")
    chat.record(said, "I see.")
    chat.end()
    memory.digest()
    return clock, memory


FADING = [
    ("I had two seizures at the weekend", "health", "recent_seizures", "two seizures at the weekend"),
    ("I'm pregnant", "health", "is_pregnant", "true"),
]


@pytest.mark.parametrize(("said", "category", "key", "value"), FADING)
def test_what_is_recent_or_cannot_last_is_not_believed_for_good(said, category, key, value):
    clock, memory = believed(said, f'{category},{key},{value},0.95,,add,asserted,state,1,"{said}"')
    with memory:
        assert key in {fact.key for fact in memory.user("ana").facts()}
        clock.advance(days=281)
        assert key not in {fact.key for fact in memory.user("ana").facts()}


COUNTING = [
    ("I'm nine weeks pregnant, only Andy knows", "Is nine weeks pregnant and only Andy knows.", "knows (2026-03-20)."),
    ("Estoy embarazada de nueve semanas y lo sabe Andrés", "Está embarazada de nueve semanas y lo sabe Andrés.", "(2026-03-20)."),
    ("I was vegetarian for three weeks in May", "Was vegetarian for three weeks in May.", "May."),
]  # fmt: skip


@pytest.mark.parametrize(("said", "text", "end"), COUNTING)
def test_a_count_that_goes_on_has_the_day_on_which_it_was_right(said, text, end):
    _, memory = believed(said, f'context,,"{text}",0.95,,add,asserted,state,1,"{said}"')
    with memory:
        facts = [fact.text for fact in memory.user("ana").facts("context")]
        assert [text for text in facts if text.endswith(end)], facts


def test_an_employer_with_the_same_work_in_it_is_one_fact():
    said = "I run a small bike shop in Leeds with my brother"
    work = f'work,works_as,runs a small bike shop,0.95,,set,asserted,state,1,"{said}"'
    place = f'work,works_at,"small bike shop in Leeds, run with brother",0.9,,set,asserted,state,1,"{said}"'
    for rows in (f"{work}\n{place}", f"{place}\n{work}"):
        _, memory = believed(said, rows)
        with memory:
            facts = [fact.text for fact in memory.user("ana").facts("work")]
            assert len([text for text in facts if "bike shop" in text]) == 1, facts
