"""The room that is left goes to recall: best first, with what a reply answers, and nothing twice."""

import json

from holdfast.context.assemble import Material, assemble
from holdfast.context.material import turn_key

from .worlds import CHAT, fact, hit, talk

TEA = fact("tea", text="Likes tea.", lifetime="permanent")


def recalled(hits, budget=2000, *, beside=(), last=2, **more):
    neighbors = {turn_key(one): one for one in beside}
    material = Material(CHAT, talk(last), last, hits=hits, beside=neighbors, **more)
    context, _ = assemble(material, budget_tokens=budget, recent_messages=20)
    return context, [json.loads(item).split(": ", 1)[1] for item in context.section("recalled").items]


def elsewhere(seq, text, **more):
    return hit(seq, text, conversation="spring", **more)


def test_what_the_budget_leaves_goes_to_recall():
    """As long as there is something to say, at least four fifths of a budget are used."""
    hits = [elsewhere(seq, f"On day {seq} something of note happened in the garden.") for seq in range(1, 301)]

    for budget in (500, 1000, 2000, 4000):
        context, shown = recalled(hits, budget)

        assert 0.8 * budget <= context.tokens <= budget
        assert shown == sorted(shown, key=lambda line: int(line.split()[2]))


def test_a_reply_comes_with_the_question_that_it_answers():
    question = elsewhere(7, "Where did you get that lamp?", speaker="Ben")

    _, shown = recalled([elsewhere(8, "I got it as a gift.", speaker="Ana")], beside=[question])

    assert shown == ["Where did you get that lamp?", "I got it as a gift."]


def test_a_reply_comes_alone_where_there_is_no_room_for_its_question():
    question = elsewhere(7, f"Where did you get {'that very old and heavy lamp, ' * 4}dear?", speaker="Ben")

    _, shown = recalled([elsewhere(8, "As a gift.", speaker="Ana")], 85, beside=[question])

    assert shown == ["As a gift."]


def test_of_a_long_turn_before_a_reply_its_question_is_shown():
    long = "I was thinking about the house all day. " * 30 + "Who painted it?"

    _, shown = recalled([elsewhere(8, "My uncle did.", speaker="Ana")], beside=[elsewhere(7, long, speaker="Ben")])

    assert shown[0].startswith("[…] ")
    assert shown[0].endswith("Who painted it?")
    assert len(shown[0]) < 300


def test_a_question_of_the_same_speaker_is_no_question_that_was_answered():
    before = elsewhere(7, "Shall I go?", speaker="Ana")
    many = [elsewhere(20 + n, f"thing {n}") for n in range(12)]

    _, shown = recalled([*many, elsewhere(8, "I went home.", speaker="Ana")], beside=[before])

    assert "Shall I go?" not in shown


def test_the_turns_beside_the_best_hits_fill_a_room_that_hits_leave():
    beside = [elsewhere(4, "We were at the lake."), elsewhere(6, "The water was cold.")]

    context, shown = recalled([elsewhere(5, "I lost my ring.")], beside=beside)

    assert shown == ["We were at the lake.", "I lost my ring.", "The water was cold."]
    assert [source.start_seq for source in context.sources if source.section == "recalled"] == [4, 5, 6]


def test_turns_are_shown_in_the_order_in_which_they_were_said():
    """Of two values that were said the later one comes last."""
    _, shown = recalled([elsewhere(9, "Now it is Porto."), elsewhere(3, "I live in Lisbon.")])

    assert shown == ["I live in Lisbon.", "Now it is Porto."]


def test_words_that_a_shown_fact_quotes_whole_are_not_recalled():
    said = elsewhere(3, "I like tea.")

    _, shown = recalled([said, elsewhere(4, "Tea needs water.")], facts=[TEA], quoted={turn_key(said): [TEA.id]})

    assert shown == ["Tea needs water."]


def test_the_same_words_are_recalled_once_and_the_question_itself_never():
    hits = [
        elsewhere(1, "What do I drink?"),
        elsewhere(2, "I drink tea!"),
        hit(9, "I drink tea", conversation="autumn"),
    ]

    _, shown = recalled(hits, query="What do I drink")

    assert shown == ["I drink tea!"]
