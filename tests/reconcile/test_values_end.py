"""What a model's `set`, `remove` and half a dose do to the values that are believed."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from holdfast import Memory
from holdfast.reconcile.compare import whole_dose
from holdfast.testing.fakes import FakeClock
from holdfast.testing.model import ScriptedModel

AT = datetime(2026, 3, 20, 18, tzinfo=UTC)


def row(category, key, value, seq, quote, *, op="set", subject="", lifetime="state"):
    return f'{category},{key},"{value}",0.9,{subject},{op},asserted,{lifetime},{seq},"{quote}"'


def read(said, rows, *, apart=True):
    """Return the facts after messages that a model read with these rows, each by itself or all in one answer."""
    answers = (
        [rows[number] for number in sorted(rows)] if apart else ["\n".join(rows[number] for number in sorted(rows))]
    )
    clock = FakeClock(AT)
    with Memory(clock=clock, embedder=None, llm=ScriptedModel({"facts": answers})) as memory:
        chat = memory.conversation("c", user="ana")
        for number, text in enumerate(said, 1):
            chat.record(text, "Ok.")
            clock.advance(seconds=60)
            if apart or number == len(said):
                chat.end()
                memory.digest()
        facts = memory.user("ana").facts()
        return sorted((fact.subject, fact.key or fact.text, fact.value) for fact in facts), facts


@pytest.mark.parametrize("apart", [True, False])
def test_a_set_that_corrects_ends_exactly_the_wrong_value(apart):
    found, _ = read(
        ["Ivy can't have eggs or soy at my place, she swells up.", "Sorry, not eggs, I meant hazelnuts!"],
        {
            1: row("allergy", "allergic_to", "eggs", 1, "Ivy can't have eggs", subject="Ivy")
            + "\n" + row("allergy", "allergic_to", "soy", 1, "Ivy can't have eggs or soy", subject="Ivy"),
            3: row("allergy", "allergic_to", "hazelnuts", 3, "Sorry, not eggs, I meant hazelnuts", subject="Ivy"),
        },
        apart=apart,
    )  # fmt: skip

    assert [value for _, key, value in found if key == "allergic_to"] == ["hazelnuts", "soy"]


def test_a_correction_in_another_language_ends_the_value_that_it_names():
    found, _ = read(
        ["我对花生有点过敏反应。", "不对,不是花生,是芒果。"],
        {
            1: row("allergy", "allergic_to", "花生", 1, "我对花生有点过敏反应"),
            3: row("allergy", "allergic_to", "芒果", 3, "不是花生,是芒果"),
        },
    )

    assert [value for _, _, value in found] == ["芒果"]


@pytest.mark.parametrize(
    "second", ["I also swell up from soy.", "Soy makes me swell up.", "I can't stand soy, it's an allergy."]
)
def test_a_plain_second_value_with_set_keeps_the_first(second):
    found, _ = read(
        ["Eggs make me swell up.", second],
        {
            1: row("allergy", "allergic_to", "eggs", 1, "Eggs make me swell up"),
            3: row("allergy", "allergic_to", "soy", 3, second.rstrip(".")),
        },
    )

    assert "eggs" in [value for _, key, value in found if key == "allergic_to"]


@pytest.mark.parametrize(
    ("category", "key", "value"),
    [
        ("hobby", "does", "calligraphy"),
        ("hobby", "does", "calligraphy classes"),
        ("schedule", "does", "calligraphy class"),
        ("hobby", "", "Takes calligraphy classes."),
    ],
)
def test_a_removal_ends_what_it_means_at_whatever_address(category, key, value):
    found, _ = read(
        ["Calligraphy classes are what I do on Mondays; chess is for Fridays.", "I've stopped the calligraphy classes."],
        {
            1: row("hobby", "does", "calligraphy classes", 1, "Calligraphy classes are what I do on Mondays")
            + "\n" + row("hobby", "plays", "chess", 1, "chess is for Fridays"),
            3: row(category, key, value, 3, "I've stopped the calligraphy classes", op="remove"),
        },
    )  # fmt: skip

    assert [value for _, _, value in found if value] == ["chess"]


def test_a_removal_of_what_has_ended_ends_nothing_that_is_like_it():
    found, _ = read(
        ["I take sertraline 500 mg.", "I take metformin 500 mg.", "I stopped taking sertraline."],
        {
            1: row("medication", "sertraline", "500 mg", 1, "I take sertraline 500 mg"),
            3: row("medication", "metformin", "500 mg", 3, "I take metformin 500 mg"),
            5: row("medication", "sertraline", "500 mg", 5, "I stopped taking sertraline", op="remove"),
        },
    )

    assert [(key, value) for _, key, value in found] == [("metformin", "500 mg")]


def test_a_removal_that_could_mean_two_ends_neither():
    found, _ = read(
        ["Karate on Mondays and karate for kids on Fridays, that is me teaching.", "I dropped one of the two."],
        {
            1: row("hobby", "does", "karate on the beach", 1, "Karate on Mondays")
            + "\n" + row("hobby", "plays", "karate for kids", 1, "karate for kids on Fridays"),
            3: row("work", "", "Teaches karate.", 3, "I dropped one of the two", op="remove"),
        },
    )  # fmt: skip

    assert len(found) == 2


@pytest.mark.parametrize(
    ("new", "old", "whole"),
    [
        ("45 mg", "30 mg twice a day", "45 mg twice a day"),
        ("20", "10 mg", "20 mg"),
        ("100", "50 mg every morning", "100 mg every morning"),
        ("twice a day", "30 mg", "30 mg twice a day"),
        ("45 mg once a day", "30 mg twice a day", "45 mg once a day"),
        ("2 times a day", "30 mg once a day", "30 mg 2 times a day"),
        ("every 8 hours", "30 mg", "30 mg every 8 hours"),
        ("500 mg", "twice a day", "500 mg twice a day"),
        ("50 mcg", "75 mcg from 2026-02-04", "50 mcg"),
        ("50 mcg", "75 mcg every morning since 4 February", "50 mcg every morning"),
        ("30 mg", "20 mg from breakfast to lunch", "30 mg from breakfast to lunch"),
    ],
)
def test_a_dose_given_in_part_keeps_the_rest(new, old, whole):
    assert whole_dose(new, old) == whole


def test_a_model_that_gives_half_a_dose_keeps_the_schedule():
    found, _ = read(
        ["For the depression it's mirtazapine, 30 mg twice a day.", "We went up to 45 mg."],
        {
            1: row("medication", "mirtazapine", "30 mg twice a day", 1, "mirtazapine, 30 mg twice a day"),
            3: row("medication", "mirtazapine", "45 mg", 3, "We went up to 45 mg"),
        },
    )

    assert [value for _, _, value in found] == ["45 mg twice a day"]


def test_a_dose_changes_by_rules_and_keeps_its_schedule():
    with Memory(embedder=None) as memory:
        chat = memory.conversation("c", user="ana")
        chat.record("I take sertraline 50 mg every morning.", "Ok.")
        chat.record("Dr Osei doubled my tablets to 100.", "Ok.")
        memory.digest()

        assert [fact.value for fact in memory.user("ana").facts("medication")] == ["100 mg every morning"]


def test_what_was_measured_holds_from_when_it_was_taken():
    _, facts = read(
        ["On 3 March my creatinine was 2.1, the lab wrote."],
        {1: row("health", "creatinine", "2.1", 1, "On 3 March my creatinine was 2.1")},
    )

    assert [(fact.value, fact.valid_from.date().isoformat()) for fact in facts] == [("2.1", "2026-03-03")]


@pytest.mark.parametrize("text", ["On 3 March my creatinine was 2.1.", "My creatinine was 2.1 on 3 March."])
def test_rules_date_a_lab_value_by_when_it_was_taken(text):
    with Memory(clock=FakeClock(AT), embedder=None) as memory:
        memory.conversation("c", user="ana").record(text, "Ok.")
        memory.digest()
        (fact,) = memory.user("ana").facts("health")

        assert (fact.key, fact.value, fact.valid_from.date().isoformat()) == ("creatinine", "2.1", "2026-03-03")


def test_what_has_not_happened_since_yesterday_passes_whatever_the_model_says():
    row = (
        "health,,Biscuit has not eaten since yesterday.,0.9,,set,asserted,state,1,Biscuit hasn't eaten since yesterday"
    )
    clock = FakeClock(AT)
    with Memory(clock=clock, embedder=None, llm=ScriptedModel({"facts": [row]})) as memory:
        chat = memory.conversation("c", user="ana")
        chat.record("My Biscuit hasn't eaten since yesterday and I worry.", "Oh no.")
        chat.end()
        memory.digest()
        assert [fact.lifetime for fact in memory.user("ana").facts()] == ["transient"]

        clock.advance(seconds=30 * 86_400)
        assert memory.user("ana").facts() == []


RESULTS = [
    ("The vet measured her T4 on 10 March: 3.4", "health,t4,3.4,0.9,luna,set,,,1,measured her T4 on 10 March: 3.4"),
    ("Her T4 on 3 March was 2.1.", "health,t4,2.1,0.9,luna,set,,,3,Her T4 on 3 March was 2.1"),
    ("Her T4 on Tuesday was 2.8.", "health,t4,2.8,0.9,luna,set,,,5,Her T4 on Tuesday was 2.8"),
]


@pytest.mark.parametrize("model", [False, True], ids=["rules", "model"])
def test_results_of_tests_follow_one_another_by_the_day_of_the_sample(model):
    llm = ScriptedModel({"facts": [row for _, row in RESULTS]}) if model else None
    clock = FakeClock(AT)
    with Memory(clock=clock, embedder=None, llm=llm) as memory:
        chat = memory.conversation("c", user="elena", subject="luna")
        for said, _ in RESULTS:
            chat.record(said, "Noted.")
            chat.end()
            memory.digest()
            clock.advance(minutes=5)
        luna = memory.user("elena", subject="luna")
        days = [
            (fact.value, f"{fact.valid_from:%m-%d}", fact.valid_to and f"{fact.valid_to:%m-%d}")
            for fact in luna.history("health")
        ]

        assert sorted(days) == [("2.1", "03-03", "03-10"), ("2.8", "03-17", None), ("3.4", "03-10", "03-17")]
        assert [(fact.value, f"{fact.valid_from:%m-%d}") for fact in luna.facts("health")] == [("2.8", "03-17")]
        assert "2.8. (2026-03-17)" in chat.context("How is her T4?").section("facts").text
        assert memory.doctor().ok


def test_a_corrected_result_of_one_day_takes_the_place_of_the_wrong_one():
    with Memory(clock=FakeClock(AT), embedder=None) as memory:
        chat = memory.conversation("c", user="elena", subject="luna")
        chat.record("Her T4 on 3 March was 2.1.", "Noted.")
        chat.record("Sorry, her T4 on 3 March was 2.4.", "Noted.")
        memory.digest()

        assert [fact.value for fact in memory.user("elena", subject="luna").facts("health")] == ["2.4"]


def test_a_result_without_a_day_holds_from_when_it_was_told():
    clock = FakeClock(AT)
    with Memory(clock=clock, embedder=None) as memory:
        chat = memory.conversation("c", user="elena", subject="luna")
        for said in ("Her T4 on 3 March was 2.1.", "Her T4 is 3.0."):
            chat.record(said, "Noted.")
            clock.advance(minutes=5)
        memory.digest()

        (fact,) = memory.user("elena", subject="luna").facts("health")
        assert (fact.value, f"{fact.valid_from:%m-%d}") == ("3.0", "03-20")


@pytest.mark.parametrize(
    ("said", "value", "begins"),
    [
        (["My creatinine is 3.1.", "My creatinine was 3.5 today.", "No wait, my creatinine was 3.6 today."], "3.6", "03-20"),
        (["I weigh 85 kg.", "I weighed 84 kg today."], "84 kg", "03-20"),
        (["On 3 March my creatinine was 2.1.", "Sorry, on 3 March my creatinine was 2.4."], "2.4", "03-03"),
        (["I weigh 85 kg.", "I weigh 80 kg since January."], "80 kg", "03-20"),
        (["My creatinine is 2.5.", "My creatinine is at 2.1 since January."], "2.1", "03-20"),
    ],
)  # fmt: skip
def test_of_one_day_and_of_what_still_holds_the_last_word_counts(said, value, begins):
    clock = FakeClock(AT)
    with Memory(clock=clock, embedder=None) as memory:
        chat = memory.conversation("c", user="ana")
        for text in said:
            chat.record(text, "Noted.")
            clock.advance(minutes=60)
        memory.digest()

        found = [(f.value, f"{f.valid_from:%m-%d}") for f in memory.user("ana").facts("health") if f.value]
        assert found == [(value, begins)]
        assert memory.doctor().ok


def test_which_diet_does_not_hold_leaves_the_one_that_holds():
    with Memory(embedder=None) as memory:
        ana = memory.user("ana")
        ana.remember(category="dietary", key="vegetarian", value="true")

        assert ana.remember(category="dietary", key="vegan", value="false").op == "rejected"
        assert [fact.key for fact in ana.facts("dietary")] == ["vegetarian"]
        assert ana.remember(category="dietary", key="vegetarian", value="false").op == "retracted"
        assert ana.facts("dietary") == []


@pytest.mark.parametrize("said", ["$3,000", "3,000", "3000 USD", "3k"])
def test_a_budget_is_kept_as_figures(said):
    with Memory(embedder=None) as memory:
        assert memory.user("ana").remember(category="budget", key="max_usd", value=said).fact.value == "3000"


@pytest.mark.parametrize("said", ["cheap", "3000 EUR", "€3000"])
def test_a_budget_that_is_no_number_of_its_currency_is_refused(said):
    with Memory(embedder=None) as memory:
        change = memory.user("ana").remember(category="budget", key="max_usd", value=said)
        assert change.reason.startswith("not-a-number")


def test_a_goal_with_another_number_takes_the_place_of_the_old_one():
    with Memory(embedder=None) as memory:
        ana = memory.user("ana")
        ana.remember(category="goal", key="wants_to", value="lose 10 kg by June")
        ana.remember(category="goal", key="wants_to", value="lose 8 kg")
        ana.remember(category="goal", key="wants_to", value="read 12 books")

        assert {fact.value for fact in ana.facts("goal")} == {"lose 8 kg", "read 12 books"}
