"""An extractor of four columns, asked after every turn: each row is upserted on its address, and nothing is appended."""

from __future__ import annotations

import pytest

from holdfast import Config, Memory, strategies

EACH_TURN = Config(extract_every_user_turns=1)


def talk(turns, config=EACH_TURN):
    """Return the facts after turns of which a model reads these rows, and how often it was asked."""
    asked = []

    def model(messages):
        asked.append(messages)
        read = messages[-1]["content"].rpartition("<read>")[2]
        return next((rows for text, rows in reversed(turns) if text in read), "")

    with Memory(embedder=None, llm=model, config=config) as memory:
        chat = memory.conversation("s1", user="ana", own_facts=True, strategy=strategies.Facts(2))
        for text, _ in turns:
            chat.record(text, "Noted.")
            assert memory.digest().failed == 0
        facts = {f"{fact.category}/{fact.key}": fact.value for fact in memory.user("ana").facts()}
        assert len(facts) == len(memory.user("ana").facts())
    return facts, len(asked)


def test_a_new_value_replaces_the_one_at_an_address_that_nobody_declared():
    facts, _ = talk(
        [
            ("We go to Tokyo and Kyoto.", 'destination,cities,"Tokyo,Kyoto",0.9'),
            ("Skip Kyoto, Osaka instead", 'destination,cities,"Tokyo,Osaka",0.9'),
        ]
    )

    assert facts["destination/cities"] == "Tokyo,Osaka"


def test_several_rows_of_one_answer_at_an_address_stand_beside_each_other():
    rows = "wishlist,museum,Ghibli,0.9\nwishlist,museum,Nezu,0.9"
    with Memory(embedder=None, llm=lambda messages: rows, config=EACH_TURN) as memory:
        memory.conversation("s1", user="ana").record("We want to see the Ghibli museum and the Nezu museum.", "Noted.")
        memory.digest()
        said = {fact.value for fact in memory.user("ana").facts("wishlist")} | {
            one.candidate.value for one in memory.user("ana").rejected()
        }

    assert {"Ghibli", "Nezu"} <= said


def test_a_known_amount_may_change_in_two_words():
    facts, _ = talk(
        [("Our budget is about 3k dollars.", "budget,max_usd,3000,0.95"), ("make it 4k", "budget,max_usd,4000,0.9")]
    )

    assert facts == {"budget/max_usd": "4000"}


def test_the_same_number_of_another_thing_changes_nothing():
    """The model takes the height of a mountain for the budget."""
    facts, _ = talk(
        [
            ("Our budget is about 3k dollars.", "budget,max_usd,3000,0.95"),
            ("We climbed a mountain of 4k meters last summer.", "budget,max_usd,4000,0.9"),
        ]
    )

    assert facts["budget/max_usd"] == "3000"


@pytest.mark.parametrize("value", ["4k", "4K", "4000"])
def test_thousands_are_one_amount_however_they_are_written(value):
    facts, _ = talk([("I can spend 4k or 4000 or 4K dollars.", f"budget,max_usd,{value},0.9")])

    assert facts == {"budget/max_usd": "4000"}


def test_a_row_that_says_what_the_rules_have_read_is_no_second_fact():
    facts, _ = talk(
        [
            ("I get motion sick on buses.", "health,motion_sick,true,0.9"),
            ("I prefer window seats.", "preference,seat,window,0.8"),
        ]
    )

    assert facts == {"health/has_condition": "motion sickness", "preference/prefers": "window seats"}


def test_what_is_denied_is_not_confirmed_by_its_opposite():
    facts, _ = talk(
        [
            ("I dislike window seats.", ""),
            ("On night trains a window seat it is, window is what I want.", "preference,seat,window,0.8"),
        ]
    )

    assert facts["preference/dislikes"] == "window seats"


def test_with_one_every_turn_is_read_and_otherwise_small_talk_waits():
    small = [("hi there", ""), ("how are you", ""), ("lovely", "")]

    assert talk(small)[1] == 3
    assert talk(small, Config(extract_every_user_turns=2))[1] == 0


def test_without_summaries_small_talk_is_read_in_the_end():
    """No chunk closes there, so that a fact in words that the rules do not know would wait for ever."""
    small = [(f"hmm {number}", "") for number in range(5)]
    facts, asked = talk(
        [*small, ("ryokans all the way", "lodging,style,ryokans,0.9")], Config(extract_every_user_turns=2)
    )

    assert (facts, asked) == ({"lodging/style": "ryokans"}, 1)
