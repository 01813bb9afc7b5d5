"""A question finds what one scope holds, and nothing of any other."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import numpy as np
import pytest

from holdfast.config import Config
from holdfast.errors import BadInput
from holdfast.recall import rank
from holdfast.recall.index import IndexCache
from holdfast.recall.rank import FRAME_WORDS, explain_ranking, frame_words, recalled_beside, same_frame, worth_recalling
from holdfast.recall.search import search_recent
from holdfast.scope import Scope
from holdfast.testing.fakes import HashEmbedder

from .conftest import ANA, MONDAY

TALK = ANA.within("talk")
SMALL_TALK = ["Hi there", "How are you?", "The weather is fine", "I am tired", "See you later", "Good morning"]


def seqs(hits):
    return [hit.seq for hit in hits]


def test_an_empty_memory_has_no_answer(desk):
    assert desk.find(ANA, "Where do I live?") == []


def test_one_message_is_found(desk):
    desk.say(TALK, ["I live in Lisbon"])

    (hit,) = desk.find(ANA, "Where do I live?")
    assert (hit.kind, hit.id, hit.text, hit.conversation, hit.seq) == (
        "message",
        "talk/1",
        "I live in Lisbon",
        "talk",
        1,
    )
    assert (hit.at, hit.speaker) == (MONDAY, "user")


def test_the_answer_stands_first_among_small_talk(desk):
    desk.say(TALK, [*SMALL_TALK, "My dentist is called Dr Okafor", *SMALL_TALK])

    assert desk.find(ANA, "Who is my dentist?")[0].seq == 7


def test_nobody_finds_what_others_said(desk):
    """Names that become equal when joined are still two users."""
    others = [
        Scope("acme", "guide", "ben"),
        Scope("acme", "guid", "eana"),
        Scope("acm", "eguide", "ana"),
        Scope("acme", "guide2", "ana"),
    ]
    for other in others:
        desk.say(other.within("talk"), ["My secret word is xylophone"])
    desk.say(TALK, SMALL_TALK)

    hits = desk.find(ANA, "What is the secret word xylophone?", limit=100)
    assert {hit.text for hit in hits} == set(SMALL_TALK)


def test_subjects_do_not_meet(desk):
    rex, milo = ANA.about("rex"), ANA.about("milo")
    desk.say(rex.within("vet"), ["Rex eats chicken"])
    desk.say(milo.within("vet"), ["Milo eats salmon"])
    desk.say(TALK, ["I eat lentils"])

    assert [hit.text for hit in desk.find(rex, "Who eats what?")] == ["Rex eats chicken"]
    assert [hit.text for hit in desk.find(ANA, "Who eats what?")] == ["I eat lentils"]
    assert len(desk.find(ANA.about(None), "Who eats what?")) == 3


def test_a_fact_that_answers_stands_before_the_turn_it_came_from(desk):
    desk.say(
        TALK, [*SMALL_TALK, "So anyway, after all these years we finally moved, I live in Lisbon now", *SMALL_TALK]
    )
    fact = desk.believe(TALK, 7, "Lisbon", "lives in Lisbon")

    first, *others = desk.find(ANA, "Where do I live?", limit=100)
    assert (first.kind, first.id) == ("fact", fact)
    assert ("message", 7) in [(hit.kind, hit.seq) for hit in others]


def test_a_fact_that_does_not_answer_stays_behind_the_turn_that_does(desk):
    desk.say(TALK, [*SMALL_TALK, "I live in Lisbon and work as a nurse", "My car is a red Fiat", *SMALL_TALK])
    desk.believe(TALK, 7, "nurse", "works as a nurse")

    assert desk.find(ANA, "What car do I drive?")[0].seq == 8


def test_facts_can_be_searched_alone(desk):
    desk.say(TALK, ["I live in Lisbon", "I have a dog, Rex"])
    lives, dog = (
        desk.believe(TALK, 1, "Lisbon", "lives in Lisbon"),
        desk.believe(TALK, 2, "Rex", "has a dog called Rex"),
    )

    assert [hit.id for hit in desk.find(ANA, "Which city, Lisbon?", kinds=("fact",))] == [lives, dog]
    assert [hit.id for hit in desk.find(ANA, "What is the dog's name?", kinds=("fact",))] == [dog, lives]


def test_kinds_are_measured_on_one_scale(desk):
    """Leaving a kind out takes its hits away and leaves the others' scores as they are."""
    desk.say(TALK, [*SMALL_TALK * 4, "I live in Lisbon"])
    desk.believe(TALK, 25, "Lisbon", "lives in Lisbon")

    every = {
        (hit.kind, hit.id): hit.parts | {"relevance": 0}
        for hit in desk.find(ANA, "Where do I live?", limit=99, explain=True)
    }
    messages = desk.find(ANA, "Where do I live?", limit=99, kinds=("message",), explain=True)
    assert all(every[hit.kind, hit.id] == pytest.approx(hit.parts | {"relevance": 0}) for hit in messages)
    assert len(messages) == len(every) - 1


def test_a_message_without_a_vector_is_found_by_its_words(embedding):
    embedding.say(TALK, SMALL_TALK)
    embedding.say(TALK, ["My dentist is called Dr Okafor"], at=MONDAY + timedelta(hours=1), embed=False)

    assert embedding.find(ANA, "Who is my dentist, Okafor?")[0].seq == 7


def test_vectors_of_another_embedder_are_not_compared(embedding):
    embedding.say(TALK, [*SMALL_TALK, "My dentist is called Dr Okafor"])

    hits = embedding.find(ANA, "dentist", embedder=HashEmbedder(name="other"), explain=True)
    assert hits[0].seq == 7
    assert all("meaning" not in hit.parts for hit in hits)


def test_a_name_is_left_out_of_the_vector_of_the_question(embedding):
    """The vector that the caller made of the whole question would find whoever greets Ana."""
    embedding.say(TALK, [("Ana", "hello"), ("Ben", "Hi Ana Ana Ana"), ("Ana", "my piano is old"), ("Ben", "ok")])
    embedding.embedder.calls.clear()
    whole = embedding.embedder.embed(["Where is Ana's piano?"])[0]

    hits = embedding.find(ANA, "Where is Ana's piano?", question_vector=whole)
    assert hits[0].seq == 3
    assert embedding.embedder.calls[-1] == ("Where is your piano?",)


def test_the_vector_of_a_question_without_names_is_not_made_twice(embedding):
    embedding.say(TALK, SMALL_TALK)
    vector = embedding.embedder.embed(["How is the weather?"])[0]
    embedding.embedder.calls.clear()

    embedding.find(ANA, "How is the weather?", question_vector=vector)
    assert embedding.embedder.calls == []


@pytest.mark.parametrize("limit", [0, 1, 3, 6, 50])
def test_the_first_of_many_are_the_same_as_of_all(desk, limit):
    desk.say(TALK, SMALL_TALK)

    assert (
        seqs(desk.find(ANA, "weather tired", limit=limit)) == seqs(desk.find(ANA, "weather tired", limit=100))[:limit]
    )


def test_equal_messages_come_in_the_order_they_were_said(desk):
    desk.say(TALK, ["same words"] * 5)

    scores = {hit.seq: hit.score for hit in desk.find(ANA, "same words")}
    ordered = seqs(desk.find(ANA, "same words"))
    assert all(a < b for a, b in pairwise(ordered) if scores[a] == scores[b])
    assert ordered == seqs(desk.find(ANA, "same words"))


def test_hits_below_the_least_relevance_are_left_out(desk):
    desk.say(TALK, [*SMALL_TALK, "I live in Lisbon"])
    found = desk.find(ANA, "Where is Lisbon?", limit=100)
    assert all(0 <= hit.relevance <= 1 for hit in found)
    assert found[0].relevance == max(hit.relevance for hit in found)

    kept = desk.find(ANA, "Where is Lisbon?", limit=100, min_relevance=found[1].relevance)
    assert [hit.text for hit in kept] == [hit.text for hit in found if hit.relevance >= found[1].relevance]
    assert desk.find(ANA, "Explain quantum chromodynamics", min_relevance=Config().recall_min_relevance) == []


def test_behind_a_gate_nothing_is_found_unless_the_best_hit_passes_it(desk):
    desk.say(TALK, [*SMALL_TALK, "I live in Lisbon"])
    best, *others = desk.find(ANA, "Where is Lisbon?", limit=100)

    passed = desk.find(ANA, "Where is Lisbon?", limit=100, gate=best.relevance)
    beside = [hit for hit in others if recalled_beside(best.relevance, best.score - hit.score) >= best.relevance / 10]
    assert passed == [best, *beside]
    assert desk.find(ANA, "Where is Lisbon?", limit=100, gate=best.relevance + 0.001) == []


def test_one_conversation_can_be_asked_for(desk):
    desk.say(TALK, ["I like tea"])
    desk.say(ANA.within("other"), ["I like coffee"])
    desk.believe(TALK, 1, "tea", "likes tea")

    assert [hit.text for hit in desk.find(ANA, "What do I like?", conversations=("other",))] == ["I like coffee"]
    assert len(desk.find(ANA, "What do I like?")) == 3


def test_before_seq_hides_only_the_end_of_the_own_conversation(desk):
    desk.say(TALK, ["tea one", "tea two", "tea three"])
    desk.say(ANA.within("other"), ["tea four"])

    hits = desk.find(TALK, "tea", before_seq=2)
    assert {hit.text for hit in hits} == {"tea one", "tea four"}


def test_a_window_of_the_conversation(desk):
    desk.say(TALK, ["tea one", "tea two", "tea three", "tea four"])
    desk.say(ANA.within("other"), ["tea five"])

    assert {hit.text for hit in desk.find(TALK, "tea", window=(2, 3))} == {"tea two", "tea three"}
    with pytest.raises(BadInput):
        desk.find(ANA, "tea", window=(2, 3))


def test_recent_looks_at_the_last_messages_only(desk):
    desk.say(TALK, ["tea is good", "coffee is better", "water too", "juice"])

    def look(last_n):
        return desk.store.read(
            TALK,
            lambda view: search_recent(view, "coffee or tea?", now=MONDAY, last_n=last_n, k=1, embedder=desk.embedder),
        )

    assert seqs(look(3)) == [2]
    assert look(0) == []


def test_the_words_of_an_assistant_count_less_unless_they_are_asked_for(desk):
    desk.say(
        TALK,
        [
            *SMALL_TALK,
            ("user", "My budget for the bike is 900"),
            ("assistant", "For a bike budget of 900 I recommend the bike brand Cube, a budget bike"),
            *SMALL_TALK,
        ],
    )

    assert desk.find(ANA, "What is the bike budget?")[0].seq == 7
    assert desk.find(ANA, "Which bike brand did you recommend?")[0].seq == 8


def test_a_named_user_is_believed_in_their_own_words(desk):
    talk = [("Ana", "hello again"), ("Ben", "hello to you")] * 4
    desk.say(TALK, [*talk, ("Ana", "I adopted a cat"), ("Ben", "I adopted a cat"), *talk])

    assert desk.find(ANA, "What did Ben adopt?")[0].seq == 10
    assert desk.find(ANA, "What did Ana adopt?")[0].seq == 9


def test_days_that_are_named_count(desk):
    for week in range(6):
        desk.say(TALK, [f"we had a walk number {'abcdef'[week]}"], at=MONDAY + timedelta(weeks=8 * week))

    assert desk.find(ANA, "Which walk did we have in June 2024?")[0].seq == 3


def test_the_newest_of_like_turns_can_be_shown_first(embedding):
    embedding.say(
        TALK, [*SMALL_TALK, "my budget is 900 euros", *SMALL_TALK, "my budget is 1200 euros now", *SMALL_TALK]
    )
    plain = embedding.find(ANA, "What is my budget?", kinds=("message",))
    newest = embedding.find(ANA, "What is my budget?", kinds=("message",), newest_first=True)

    assert set(seqs(plain)[:2]) == {7, 14}
    assert seqs(newest)[:2] == [14, 7]
    assert seqs(newest)[2:] == seqs(plain)[2:]


@pytest.mark.parametrize(
    "question",
    ["Who wrote the anthem of the Otters?", "Who is the author of the anthem of the Otters?"],
)
def test_the_newest_of_statements_in_one_frame_stands_first_without_an_embedder_and_in_any_tense(desk, question):
    desk.say(TALK, ["The anthem of the Otters is by Ina Bray", *SMALL_TALK, "The anthem of the Otters is by Tom Vey"])
    desk.say(TALK, SMALL_TALK)
    found = desk.find(ANA, question, kinds=("message",), newest_first=True)

    assert [hit.text[-7:] for hit in found[:2]] == ["Tom Vey", "na Bray"]


def test_a_newer_statement_about_somebody_else_is_not_put_first(desk):
    desk.say(TALK, [*SMALL_TALK, "the captain of the Otters is Maud Finch", *SMALL_TALK])
    desk.say(TALK, ["the captain of the Herons is Oskar Lund", "the anthem of the Otters is by Tom Vey"])

    for question in ("Who is the captain of the Otters?", "Who was the captain of the Otters?"):
        found = desk.find(ANA, question, kinds=("message",), newest_first=True)
        assert found[0].text == "the captain of the Otters is Maud Finch"


def test_a_question_about_an_earlier_value_or_a_day_keeps_the_order(desk):
    desk.say(TALK, ["my budget is 900 euros", *SMALL_TALK, "my budget is 1200 euros now", *SMALL_TALK])

    for question in ("What was my first budget?", "What was my budget in May 2024?"):
        plain = desk.find(ANA, question, kinds=("message",))
        assert seqs(desk.find(ANA, question, kinds=("message",), newest_first=True)) == seqs(plain)


def test_the_cache_changes_no_answer(desk):
    cache = IndexCache(10_000_000)
    desk.say(TALK, SMALL_TALK)

    for _ in range(3):
        assert desk.find(ANA, "weather", cache=cache, explain=True) == desk.find(ANA, "weather", explain=True)
        desk.say(TALK, ["more weather"])
    assert len(cache) == 3  # one a kind


def test_a_cached_index_is_not_used_after_a_change(desk):
    cache = IndexCache(10_000_000)
    desk.say(TALK, SMALL_TALK)
    desk.find(ANA, "xylophone", cache=cache)
    desk.say(TALK, ["a xylophone"])

    assert desk.find(ANA, "xylophone", cache=cache)[0].text == "a xylophone"


def test_of_a_very_long_question_both_ends_are_read(desk):
    desk.say(TALK, [*SMALL_TALK, "the xylophone is in the attic"])
    page = "lorem ipsum " * 50_000

    assert desk.find(ANA, f"{page} where is the xylophone?")[0].seq == 7
    assert desk.find(ANA, f"where is the xylophone? {page}")[0].seq == 7


def test_a_broken_vector_hides_no_message(embedding):
    """A vector of another width counts as none."""
    embedding.say(TALK, SMALL_TALK)
    embedding.say(TALK, ["the xylophone"], embed=False)

    def work(view):
        (doc,) = view.unembedded(embedding.embedder.id, limit=5)
        view.add_vectors([(doc, embedding.embedder.id, 1.0, np.ones(3, np.int8).tobytes())])

    embedding.store.write(TALK, work)
    assert embedding.find(ANA, "xylophone")[0].seq == 7


def test_a_question_for_several_things_finds_them_in_several_sessions(desk):
    crowd = ["The films were good", "Good films again", "So many films", "Yes, films", "The films then, and popcorn"]
    title = "Our evening off went to Amarcord, a film that I liked"
    for week in range(8):
        said = [("Ana", text) for text in crowd] if week == 3 else [("Ana", f"Rain again, number {week}")] * 5
        desk.say(
            TALK,
            [("Ben", "Hello to all of you"), *said, ("Ben", "That is fine with me")],
            at=MONDAY + timedelta(days=7 * week),
        )
    later = [("Ben", "Hello to all of you"), ("Ana", "Hello Ben"), ("Ana", title), ("Ben", "That is fine with me")]
    desk.say(TALK, later, at=MONDAY + timedelta(days=70))

    hits = desk.find(ANA, "Which films has Ana seen?", limit=6, explain=True)

    found = next(hit for hit in hits if hit.text == title)
    assert hits.index(found) < 4  # of five films of one evening
    assert found.parts["names"] > 0 > min(hit.parts["names"] for hit in hits)
    assert "spread" not in found.parts
    assert sum(hit.parts.get("spread", 0) < 0 for hit in hits) >= 4


def test_a_wish_for_all_replies_is_found_when_help_is_asked_for(desk):
    wish = "Always give metric units when I ask about baking"
    desk.say(TALK, [("user", "The baking of the bread took an hour"), ("assistant", "Well done")] * 12)
    desk.say(TALK, [("user", wish), ("assistant", "I will")], at=MONDAY + timedelta(days=3))
    desk.say(
        TALK, [("user", "My oven is good for baking bread"), ("assistant", "Nice")] * 12, at=MONDAY + timedelta(days=6)
    )

    helped, looked_back = (
        desk.find(ANA, question, limit=5, explain=True)
        for question in ("How should I start baking bread?", "How long did I say the baking of the bread took?")
    )

    assert helped[0].text == wish
    assert helped[0].parts["standing"] == 2.5
    assert not any("standing" in hit.parts for hit in looked_back)


def test_a_wish_for_all_replies_takes_no_relevance_from_what_else_is_found(desk):
    desk.say(TALK, [("user", "I cannot eat nuts"), ("assistant", "Noted"), *[("user", t) for t in SMALL_TALK * 4]])
    desk.believe(TALK, 1, "nuts", "cannot eat nuts")
    before = {hit.id: hit.relevance for hit in desk.find(ANA, "Which nuts should I cook with?", limit=50)}
    for form in ("I measure cooking in cups", "Always give cooking measures in cups"):
        desk.say(TALK, [("user", form), ("assistant", "Fine")], at=MONDAY + timedelta(days=3))
    hits = desk.find(ANA, "Which nuts should I cook with?", limit=50, explain=True)

    assert any("standing" in hit.parts for hit in hits)
    fact = next(hit for hit in hits if hit.kind == "fact")
    assert fact.relevance > 0.8 * before[fact.id]


def test_the_same_question_asked_before_does_not_stand_before_its_answer(desk):
    desk.say(TALK, ["Mina the cat is afraid of thunder", *SMALL_TALK, "What is Mina afraid of?", *SMALL_TALK])

    found = desk.find(ANA, "What is Mina afraid of?", kinds=("message",), newest_first=True)
    assert found[0].text == "Mina the cat is afraid of thunder"


def test_long_messages_are_compared_by_their_beginning():
    """Of a page only the first words count, so that five pages cost no more than five paragraphs."""
    words = " ".join(f"word{number}" for number in range(FRAME_WORDS))
    page = f"{words} {'other ' * 400_000}"

    assert frame_words(page) == words.split()
    assert same_frame(frame_words(page), frame_words(words)) == 1.0


def test_messages_that_cannot_be_grouped_are_not_compared(desk, monkeypatch):
    compared = []
    monkeypatch.setattr(rank, "same_frame", lambda one, other: compared.append((one, other)) or 0.0)
    desk.say(TALK, ["the anthem of the Otters is by Ina Bray", *SMALL_TALK, "the anthem of the Otters is by Tom Vey"])
    desk.find(ANA, "Who wrote the anthem of the Otters?", kinds=("message",), newest_first=True)

    assert compared
    assert all(one != other and "anthem" in one and "anthem" in other for one, other in compared)


@pytest.mark.parametrize("desk", ["words"], indirect=True)
def test_a_part_of_a_question_is_answered_in_spite_of_its_spelling(desk):
    desk.say(TALK, ["The database is Postgres", *SMALL_TALK, "The modal editor is Helix", *SMALL_TALK])
    facts = [
        desk.believe(TALK, 1, "Postgres", "The database is Postgres"),
        desk.believe(TALK, 8, "Helix", "The modal editor is Helix"),
    ]
    question = "Which {}, and which modal editor?"
    right, wrong = (
        {hit.id: hit.relevance for hit in desk.find(ANA, question.format(word), kinds=("fact",))}
        for word in ("database", "datbase")
    )

    assert wrong == right
    assert set(facts) <= set(wrong)


@pytest.mark.parametrize("desk", ["words"], indirect=True)
def test_of_several_spellings_the_nearest_are_taken(desk):
    desk.say(TALK, ["mongoabcd", "mongoabce", "mongoabcf", "My favorite is mongodb", *SMALL_TALK])

    assert "My favorite is mongodb" in {hit.text for hit in desk.find(ANA, "mongo", kinds=("message",), limit=3)}


def test_without_a_positive_score_nothing_is_called_worse_than_the_best(desk):
    hits = [replace(hit, score=-1.0 - at) for at, hit in enumerate(_talk_about_tea(desk))]

    assert worth_recalling(hits) == hits
    assert [one.kept for one in explain_ranking(hits, hits, 0.0, 10)] == [True] * len(hits)


def _talk_about_tea(desk):
    desk.say(TALK, ["I like tea", "Green tea is best", *SMALL_TALK])
    return desk.find(ANA, "tea", kinds=("message",), limit=2)


def test_pages_that_repeat_few_words_are_compared_in_a_moment():
    """The order of words that come back again and again is dear to compare: there is an end to it."""
    pages = [f"{'a ' * extra}a b " * 500 for extra in (0, 1)]
    began = time.process_time()
    for _ in range(20):
        same_frame(*map(frame_words, pages))

    assert time.process_time() - began < 2


PEERS = [
    ("Jon", "I flew to Lima in May and slept in a hostel by the sea."),
    ("Gina", "I stayed at home and painted the hall."),
    ("Jon", "My knee hurts since the match."),
    ("Gina", "Then rest it, and put some ice on it."),
]


def test_a_participant_is_found_by_another_spelling_of_the_name(desk):
    desk.say(TALK, PEERS)

    for name in ("Jon", "John"):
        (first, *_) = desk.find(ANA, f"Where did {name} sleep in Lima?", explain=True)
        assert first.seq == 1
        assert first.parts["speaker"] > 0


def test_a_name_that_somebody_mentioned_is_that_persons(desk):
    """John was spoken of, so a question about him is not one about Jon."""
    desk.say(TALK, [*PEERS, ("Gina", "My cousin John slept on our sofa last week.")])

    hits = desk.find(ANA, "Where did John sleep?", explain=True)

    assert hits[0].seq == 5
    assert not any("speaker" in hit.parts for hit in hits)
