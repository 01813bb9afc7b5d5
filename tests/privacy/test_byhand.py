"""What users write and mend by hand, in valid time and in recorded time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast import Memory
from holdfast.errors import BadInput, NotFound
from holdfast.store import Store
from holdfast.testing.fakes import FakeClock, HashEmbedder
from holdfast.testing.model import ScriptedModel

USER = "ana"
START = datetime(2026, 1, 5, 9, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def memory(clock: FakeClock) -> Iterator[Memory]:
    with Memory(embedder=HashEmbedder(), clock=clock) as opened:
        yield opened
        opened.digest()
        assert opened.doctor().findings == ()


def say(memory: Memory, clock: FakeClock, *texts: str) -> None:
    """One text a day."""
    for text in texts:
        memory.conversation("a", user=USER).record(text)
        clock.advance(seconds=86_400)


def homes(memory: Memory) -> list[tuple[str, str]]:
    return [(fact.value, fact.ended_because) for fact in memory.user(USER).history("home")]


def test_an_address_is_set_by_hand(memory: Memory, clock: FakeClock) -> None:
    say(memory, clock, "I live in Lisbon.")
    user = memory.user(USER)
    change = user.remember(category="home", key="lives_in", value="Porto")
    (fact,) = user.facts()

    assert change.op == "replaced"
    assert change.previous is not None
    assert (fact.value, fact.source) == ("Porto", "by hand")
    assert fact.evidence[0].quote == "home, lives in: Porto"
    assert fact.evidence[0].role == "user"
    assert homes(memory) == [("Lisbon", "replaced"), ("Porto", "")]
    assert [hit.id for hit in user.search("Where do I live? Porto", kinds=("fact",))] == [fact.id]


def test_what_was_said_before_does_not_replace_what_was_said_since(memory: Memory, clock: FakeClock) -> None:
    say(memory, clock, "I live in Lisbon.")
    user = memory.user(USER)
    for _ in range(2):
        user.remember("I live in Porto.", at=START - 30 * DAY, idempotency_key="old")
    user.remember("I'm allergic to nuts.", at=START - 30 * DAY)

    assert sorted(fact.value for fact in user.facts()) == ["Lisbon", "nuts"]
    (past,) = user.facts("home", as_of=START - 10 * DAY)
    assert (past.value, past.valid_from) == ("Porto", START - 30 * DAY)
    user.remember("I work as a nurse.")
    user.remember("I work as a baker.", at=START - 30 * DAY)
    assert [fact.value for fact in user.facts("work")] == ["nurse"]
    with pytest.raises(BadInput, match="time zone"):
        user.remember("I live in Faro.", at=datetime(2026, 1, 1))


def test_a_sentence_is_read_and_kept_as_it_is_when_nothing_can_be_read(memory: Memory) -> None:
    user = memory.user(USER)

    assert user.remember("I'm allergic to peanuts.").fact.category == "allergy"  # type: ignore[union-attr]
    note = user.remember("The blue folder goes to Jo on Mondays.").fact
    assert note is not None
    assert (note.kind, note.category, note.text) == ("statement", "note", "The blue folder goes to Jo on Mondays.")
    assert user.search("blue folder", kinds=("fact",))[0].id == note.id
    assert memory.conversation("a", user=USER).context("Where is the blue folder?").to_text().count("blue folder") >= 1


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("Works at Acme as a nurse", {("work", "works_at", "Acme"), ("work", "works_as", "nurse")}),
        ("The user lives in Berlin", {("home", "lives_in", "Berlin")}),
        ("Running PostgreSQL 15", {("tech", "uses_database", "PostgreSQL 15")}),
        ("Their favorite color is green", {("favorite", "color", "green")}),
        ("Works at Acme on the night shift of ward B", {("identity", "", "")}),  # more than its attributes would say
        ("Bo lives in Berlin", {("identity", "", "")}),
    ],
)
def test_a_memory_in_the_third_person_is_an_attribute_if_that_says_all_of_it(memory: Memory, text: str, known) -> None:
    user = memory.user(USER)
    user.remember(text, category="identity")
    facts = user.facts()
    assert {(fact.category, fact.key, fact.value) for fact in facts} == known
    assert {(fact.evidence[0].quote, fact.label) for fact in facts} == {(text, "identity")}


def test_sentences_without_a_pattern_are_kept_whole_with_the_given_confidence(memory: Memory) -> None:
    words = "I am on dialysis. The key is behind the door."
    note = memory.user(USER).remember(words, confidence=1).fact

    assert note is not None
    assert (note.text, note.confidence) == (words, 1)
    assert [fact.text for fact in memory.user(USER).facts()] == [words]


def test_a_subject_has_its_own(memory: Memory) -> None:
    rex = memory.user(USER, subject="rex")
    rex.remember(category="allergy", key="allergic_to", value="chicken")

    assert [fact.subject for fact in memory.user(USER).facts()] == ["rex"]
    assert memory.user(USER, subject="cat").facts() == []


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"category": "identity", "key": "age", "value": "old"}, "not-a-number"),
        ({"category": "note", "key": "card", "value": "4111 1111 1111 1111"}, "discarded"),
        ({"category": "home", "key": "lives_in", "value": "Porto", "confidence": 0.2}, "low-confidence"),
    ],
)
def test_a_refusal_says_why_and_leaves_nothing(memory: Memory, given: dict, reason: str) -> None:
    user = memory.user(USER)
    change = user.remember(**given)

    assert change.op == "rejected"
    assert change.reason.startswith(reason)
    assert user.export()["conversations"] == []


@pytest.mark.parametrize(
    "given",
    [{}, {"category": "home"}, {"category": "home", "key": "lives_in"}, {"text": " "}, {"text": 3}, {"key": "x"},
     {"text": "x", "confidence": 2}, {"text": "x", "category": "home"}],
)  # fmt: skip
def test_half_an_address_is_refused(memory: Memory, given: dict) -> None:
    with pytest.raises(BadInput):
        memory.user(USER).remember(**given)


def test_a_corrected_value_was_true_from_the_beginning(memory: Memory, clock: FakeClock) -> None:
    say(memory, clock, "I live in Lisbon.", "I moved to Prto.")
    user, typo_told = memory.user(USER), clock()
    clock.advance(seconds=86_400)
    change = user.correct(user.facts("home")[0].id, value="Porto")
    (now,) = user.facts("home")

    assert change.op == "replaced"
    assert homes(memory) == [("Lisbon", "replaced"), ("Prto", "never_true"), ("Porto", "")]
    assert now.valid_from == START + DAY
    assert now.recorded_at == clock()
    assert now.text == "Lives in Porto."
    assert [f.value for f in user.facts("home", as_of=START + 1.5 * DAY)] == ["Porto"]
    assert [f.value for f in user.facts("home", as_of=START + 1.5 * DAY, known_at=typo_told)] == ["Prto"]
    assert [f.value for f in user.facts("home", as_of=START + 0.5 * DAY)] == ["Lisbon"]


def test_the_one_answer_of_a_category_can_be_corrected(memory: Memory, clock: FakeClock) -> None:
    """Of "dietary: vegetarian", the key is the answer: a corrected one is read like any other."""
    say(memory, clock, "I'm vegetarian.")
    user = memory.user(USER)
    wrong = user.facts("dietary")[0].id
    user.correct(wrong, value="vegan")
    (now,) = user.facts("dietary")
    say(memory, clock, "I'm vegan.")

    assert (now.key, now.value, now.text) == ("vegan", "true", "Is vegan.")
    assert [fact.id for fact in user.facts("dietary")] == [now.id]
    assert user.restore(wrong).op == "new"
    assert [fact.key for fact in user.facts("dietary")] == ["vegetarian"]


def test_what_was_corrected_is_not_learned_again_from_the_same_words(memory: Memory, clock: FakeClock) -> None:
    say(memory, clock, "I live in Prto.")
    user = memory.user(USER)
    user.correct(user.facts()[0].id, value="Porto")
    user.pause()
    user.resume()
    memory.digest()

    assert [fact.value for fact in user.facts()] == ["Porto"]


@pytest.mark.parametrize("call", ["forget", "edit"])
def test_a_message_whose_fact_was_corrected_can_go(memory: Memory, clock: FakeClock, call: str) -> None:
    """The correction is a statement of its own; what stood before the wrong value is still replaced by it."""
    say(memory, clock, "I live in Lisbon.", "I moved to Prto.")
    user, chat = memory.user(USER), memory.conversation("a", user=USER)
    user.correct(user.facts("home")[0].id, value="Porto")
    chat.forget(2) if call == "forget" else chat.edit(2, "What a day.")
    lisbon, porto = user.history("home")

    assert homes(memory) == [("Lisbon", "replaced"), ("Porto", "")]
    assert (lisbon.superseded_by, lisbon.valid_to) == (porto.id, porto.valid_from)


def test_a_correction_that_is_forgotten_with_what_it_corrected_leaves_the_older_value(
    memory: Memory, clock: FakeClock
) -> None:
    say(memory, clock, "I live in Lisbon.", "I moved to Prto.")
    user = memory.user(USER)
    right = user.correct(user.facts("home")[0].id, value="Porto").fact
    assert right is not None
    user.forget(right.id)
    memory.conversation("a", user=USER).forget(2)

    assert homes(memory) == [("Lisbon", "")]


def test_a_correction_to_what_is_known_anyway_joins_it(memory: Memory, clock: FakeClock) -> None:
    say(memory, clock, "I speak German.", "I speak English.")
    user = memory.user(USER)
    wrong = next(fact for fact in user.facts("language") if fact.value.lower() == "german")
    change = user.correct(wrong.id, value="English")

    assert change.op == "confirmed"
    assert [fact.value for fact in user.facts("language")] == ["English"]
    assert len(user.facts("language")[0].evidence) == 2


def test_a_past_value_can_be_corrected(memory: Memory, clock: FakeClock) -> None:
    say(memory, clock, "I live in Lsbn.", "I moved to Porto.")
    user = memory.user(USER)
    user.correct(user.history("home")[0].id, value="Lisbon")

    assert sorted(homes(memory)) == [("Lisbon", "replaced"), ("Lsbn", "never_true"), ("Porto", "")]
    assert [f.value for f in user.facts("home")] == ["Porto"]


def test_what_was_never_true_gives_its_place_back(memory: Memory, clock: FakeClock) -> None:
    say(memory, clock, "I live in Lisbon.", "I moved to Porto.")
    user = memory.user(USER)
    wrong = user.facts("home")[0]
    change = user.never_true(wrong.id)

    assert change.op == "retracted"
    assert homes(memory) == [("Lisbon", ""), ("Porto", "never_true")]
    assert user.search("Lisbon", kinds=("fact",))
    assert user.facts("home", as_of=START + 5 * DAY)[0].value == "Lisbon"
    assert user.never_true(wrong.id).op == "retracted"  # again: nothing changes
    assert homes(memory) == [("Lisbon", ""), ("Porto", "never_true")]


def test_what_was_never_true_can_be_restored(memory: Memory, clock: FakeClock) -> None:
    say(memory, clock, "I live in Lisbon.", "I moved to Porto.")
    user = memory.user(USER)
    right = user.facts("home")[0]
    user.never_true(right.id)
    change = user.restore(right.id)

    assert change.op == "new"
    assert homes(memory) == [("Lisbon", "replaced"), ("Porto", "")]
    assert user.facts("home")[0].valid_from == START + DAY
    assert user.restore(right.id).op == "confirmed"


def test_of_two_who_restore_a_fact_one_hears_that_it_is_new(
    memory: Memory, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(memory, clock, "I live in Lisbon.")
    user, ops, pending = memory.user(USER), [], [True]
    fact = user.facts("home")[0]
    user.never_true(fact.id)
    real = Store.read

    def overtaken(*args: Any) -> Any:
        """Another caller restores the fact between this caller's read and write."""
        found = real(*args)
        if pending:
            pending.pop()
            ops.append(user.restore(fact.id).op)
        return found

    monkeypatch.setattr(Store, "read", overtaken)
    ops.append(user.restore(fact.id).op)

    assert ops == ["new", "confirmed"]


def test_a_correction_can_be_taken_back(memory: Memory, clock: FakeClock) -> None:
    say(memory, clock, "I live in Lisbon.")
    user = memory.user(USER)
    right = user.facts("home")[0]
    user.correct(right.id, value="Faro")
    user.restore(right.id)

    assert sorted(homes(memory)) == [("Faro", "never_true"), ("Lisbon", "")]


def test_a_replaced_value_holds_again_from_now_on(memory: Memory, clock: FakeClock) -> None:
    say(memory, clock, "I live in Lisbon.", "I moved to Porto.")
    user = memory.user(USER)
    change = user.restore(user.history("home")[0].id)

    assert change.op == "replaced"
    assert homes(memory) == [("Lisbon", "replaced"), ("Porto", "replaced"), ("Lisbon", "")]
    assert user.facts("home")[0].valid_from == clock()


@pytest.mark.parametrize("call", ["correct", "never_true", "restore", "forget"])
def test_a_fact_of_somebody_else_is_not_found(memory: Memory, clock: FakeClock, call: str) -> None:
    say(memory, clock, "I live in Lisbon.")
    theirs = memory.user(USER).facts()[0].id
    bo = memory.user("bo")
    with pytest.raises(NotFound):
        bo.correct(theirs, value="x") if call == "correct" else getattr(bo, call)(theirs)

    assert [fact.value for fact in memory.user(USER).facts()] == ["Lisbon"]


def test_what_was_told_by_hand_is_erased_like_the_rest(memory: Memory) -> None:
    user = memory.user(USER)
    fact = user.remember(category="home", key="lives_in", value="Quorvaneqqa").fact
    assert fact is not None
    receipt = user.forget(fact.id)

    assert receipt.rows["facts"] == 1
    assert "Quorvaneqqa" not in str(user.export())


def test_a_fact_is_found_by_its_other_names_and_lifts_no_other(memory: Memory) -> None:
    user = memory.user(USER)
    user.remember("Deploys end up on Kubernetes, by charts.", aliases=["k8s", "kube"])
    user.remember("We keep the sessions in a cache.", aliases=["session store"])
    user.remember("The frontend is written in a hurry.")
    memory.digest()

    found = [hit.text for hit in user.search("k8s?", kinds=["fact"], min_relevance=0.35)]
    assert found == ["Deploys end up on Kubernetes, by charts."]
    both = {hit.text for hit in user.search("does kube need the session store?", kinds=["fact"], min_relevance=0.35)}
    assert both == {"Deploys end up on Kubernetes, by charts.", "We keep the sessions in a cache."}


def test_the_same_words_again_add_names(memory: Memory) -> None:
    user = memory.user(USER)
    user.remember("Deploys end up on Kubernetes, by charts.", aliases=["k8s"])
    again = user.remember("Deploys end up on Kubernetes, by charts.", aliases=["the cluster"])
    (fact,) = user.facts()

    assert again.op == "confirmed"
    assert fact.aliases == ("k8s", "the cluster")
    assert fact.text == "Deploys end up on Kubernetes, by charts."
    assert [hit.id for hit in user.search("how is the cluster?", kinds=["fact"], min_relevance=0.35)] == [fact.id]
    user.forget(fact.id)
    assert user.search("cluster", kinds=["fact"]) == []


def test_what_a_rule_reads_keeps_the_names_too(memory: Memory) -> None:
    change = memory.user(USER).remember("I live in Porto.", aliases=["Invicta"])

    assert change.fact is not None
    assert (change.fact.value, change.fact.aliases) == ("Porto", ("Invicta",))


@pytest.mark.parametrize("aliases", ["k8s", [""], ["a (b)"], ["a; b"], [f"n{n}" for n in range(51)]])
def test_what_cannot_be_an_alias_is_refused(memory: Memory, aliases: Any) -> None:
    with pytest.raises(BadInput):
        memory.user(USER).remember("We deploy to Kubernetes.", aliases=aliases)


def test_a_sentence_about_what_held_once_is_history(memory: Memory) -> None:
    user = memory.user(USER)
    change = user.remember("Previously kept the books on paper. Replaced by a spreadsheet.")
    memory.digest()

    assert change.op == "new"
    assert user.facts() == []
    assert [fact.ended_because for fact in user.history()] == ["expired"]
    assert user.search("paper books", kinds=["fact"]) == []
    assert [hit.kind for hit in user.search("paper books")] == ["message"]


def test_a_misspelled_word_finds_what_was_meant(memory: Memory) -> None:
    user = memory.user(USER)
    user.remember("Keeps the orders in Postgres.")
    user.remember("Keeps the pictures on a disk.")
    memory.digest()

    assert user.search("postgers?", kinds=["fact"])[0].text == "Keeps the orders in Postgres."


def test_a_question_that_joins_two_has_two_answers(memory: Memory) -> None:
    user = memory.user(USER)
    user.remember("The database of the shop is Postgres.", aliases=["pg"])
    user.remember("The editor at work is Helix.")
    user.remember("The printer is in the hall.")
    memory.digest()

    found = {
        hit.text for hit in user.search("is pg slow, and which editor at work?", kinds=["fact"], min_relevance=0.35)
    }
    assert found == {"The database of the shop is Postgres.", "The editor at work is Helix."}


def test_what_was_written_by_hand_side_by_side_does_not_belong_together(memory: Memory) -> None:
    """A fact does not gain by what somebody else wrote down a moment before and after."""
    user = memory.user(USER)
    for text in ("The boiler is in the cellar.", "The violin needs a new string.", "The boiler was serviced in May."):
        user.remember(text)
    memory.digest()

    hits = user.search("where is the boiler that was serviced?", kinds=["message"], explain=True)
    violin = next(hit for hit in hits if "violin" in hit.text)
    assert not {"neighbors", "gathered"} & set(violin.parts)


def test_an_episode_by_hand_rests_on_a_range_of_messages_and_is_of_their_day(memory: Memory, clock: FakeClock) -> None:
    say(memory, clock, "We met at Meko.", "She ordered tteokbokki for both of us.", "It rained all day.")
    user, chat = memory.user(USER), memory.conversation("a", user=USER)
    change = user.remember(
        "First dinner at Meko, over tteokbokki.", conversation="a", start_seq=1, end_seq=2, importance=0.9
    )
    fact = change.fact

    assert fact is not None
    assert (fact.kind, fact.conversation, fact.start_seq, fact.end_seq, fact.importance) == ("episode", "a", 1, 2, 0.9)
    assert fact.valid_from == START
    assert [said.quote for said in fact.evidence if said.conversation == "a"] == [
        "We met at Meko.",
        "She ordered tteokbokki for both of us.",
    ]
    assert [one.id for one in chat.episodes()] == [fact.id]
    assert [one.id for one in chat.episodes(start_seq=2, end_seq=9)] == [fact.id]
    assert chat.episodes(start_seq=3) == []
    assert user.search("tteokbokki at Meko", kinds=("fact",))[0].id == fact.id


def test_a_corrected_episode_stays_one_of_its_day_and_range(memory: Memory, clock: FakeClock) -> None:
    say(memory, clock, "We met at Meko.", "She ordered tteokbokki.")
    user, chat = memory.user(USER), memory.conversation("a", user=USER)
    first = user.remember("First dinner at Mecco.", conversation="a", start_seq=1, end_seq=2).fact
    assert first is not None
    clock.advance(seconds=30 * 86_400)
    user.correct(first.id, value="First dinner at Meko.", importance=0.95)
    (fact,) = chat.episodes()

    assert (fact.text, fact.valid_from, fact.start_seq, fact.end_seq) == ("First dinner at Meko.", START, 1, 2)
    assert fact.importance == 0.95
    assert [one.text for one in chat.learned()] == ["First dinner at Mecco.", "First dinner at Meko."]


def test_a_message_of_the_range_can_go_and_the_hand_written_episode_stays(memory: Memory, clock: FakeClock) -> None:
    say(memory, clock, "We met at Meko.", "She ordered tteokbokki.")
    user, chat = memory.user(USER), memory.conversation("a", user=USER)
    user.remember("First dinner at Meko.", conversation="a", start_seq=1, end_seq=2)
    chat.forget(1)

    (fact,) = user.facts(kind="episode")
    assert (fact.start_seq, fact.end_seq) == (2, 2)


def test_a_hand_written_episode_goes_without_the_messages_beside_it(memory: Memory, clock: FakeClock) -> None:
    say(memory, clock, "I live in Porto and I like tea.", "We met at Meko.")
    user, chat = memory.user(USER), memory.conversation("a", user=USER)
    fact = user.remember("Rin is afraid of cats at Meko.", conversation="a", start_seq=1, end_seq=2).fact
    assert fact is not None
    now = user.correct(fact.id, value="Rin is afraid of dogs at Meko.").fact
    assert now is not None
    user.forget(now.id)

    assert [one.content for one in chat.load() if one.role == "user"] == [
        "I live in Porto and I like tea.",
        "We met at Meko.",
    ]
    assert {one.text for one in user.facts()} == {"Lives in Porto.", "Likes tea."}


def test_a_message_that_says_a_hand_written_episode_loses_its_words(memory: Memory, clock: FakeClock) -> None:
    say(memory, clock, "Rin was afraid of the cats at Meko.", "We met at Meko.")
    user, chat = memory.user(USER), memory.conversation("a", user=USER)
    fact = user.remember("Rin is afraid of cats at Meko.", conversation="a", start_seq=1, end_seq=2).fact
    assert fact is not None
    user.forget(fact.id)

    assert [one.content for one in chat.load() if one.role == "user"] == [
        "███ was ██████ of the ████ at ████.",
        "We met at Meko.",
    ]


def test_a_range_must_be_whole_and_have_messages(memory: Memory, clock: FakeClock) -> None:
    say(memory, clock, "We met at Meko.")
    user = memory.user(USER)

    for wrong in ({"conversation": "a"}, {"start_seq": 1}, {"conversation": "a", "start_seq": 3, "end_seq": 2}):
        with pytest.raises(BadInput, match=r"range|before"):
            user.remember("First dinner.", **wrong)
    for missing in ({"conversation": "b", "start_seq": 1}, {"conversation": "a", "start_seq": 7, "end_seq": 9}):
        with pytest.raises(NotFound):
            user.remember("First dinner.", **missing)
    with pytest.raises(BadInput, match="one conversation"):
        user.facts(conversation=["a", "b"], start_seq=1)
    with pytest.raises(BadInput, match="importance"):
        user.correct("fact_1")


def test_facts_across_conversations_are_asked_for_together(memory: Memory, clock: FakeClock) -> None:
    user = memory.user(USER)
    for name, text in (("a", "I live in Lisbon."), ("b", "I'm allergic to peanuts."), ("c", "My dog is called Rex.")):
        memory.conversation(name, user=USER).record(text)
    memory.conversation("b", user=USER).record("I live in Lisbon.")

    def told(*names: str, **more: Any) -> set[tuple[str, str, int]]:
        found = user.facts(conversation=names, **more)
        return {(fact.value, fact.conversation, fact.start_seq) for fact in found if fact.subject == "self"}

    assert told("a") == {("Lisbon", "a", 1)}
    assert told("b", "a") == {("peanuts", "b", 1), ("Lisbon", "a", 1)}
    assert told("b") == {("peanuts", "b", 1), ("Lisbon", "b", 2)}
    assert {hit.text for hit in user.search("Lisbon, peanuts, Rex", kinds=("fact",), conversation=["c"])} == {
        fact.text for fact in user.facts(conversation="c")
    }


def test_what_is_important_comes_first_where_room_is_short_and_does_not_fade(memory: Memory, clock: FakeClock) -> None:
    say(memory, clock, *(f"Day {n}: we went for a walk." for n in range(12)))
    user = memory.user(USER)
    ids = []
    for n in range(12):
        change = user.remember(f"Walk number {n} along the long river bank.", conversation="a", start_seq=n + 1)
        assert change.fact is not None
        ids.append(change.fact.id)
    user.correct(ids[0], importance=0.9)

    assert "Walk number 0 " in user.profile(budget_tokens=80).text


def test_words_of_a_message_go_with_an_extracted_event_that_was_corrected() -> None:
    answer = (
        "SUMMARY: Met.\nTHEMES: -\nCONCERNS: -\nACTIONS: -\nEPISODES:\n"
        "- First meeting over tteokbokki at Meko [1]\nFACTS:\nNONE"
    )
    with Memory(llm=ScriptedModel(otherwise=lambda asked: answer if asked.layer == "combined" else "NONE")) as memory:
        chat, user = memory.conversation("c", user=USER), memory.user(USER)
        chat.record("Our first meeting was over tteokbokki at Meko!", "Yes.")
        chat.end()
        memory.digest()
        fact = user.correct(chat.episodes()[0].id, value="First meeting over ramen at Meko").fact
        assert fact is not None
        user.forget(fact.id)

        assert "tteokbokki" not in chat.load()[0].content
        assert user.history() == []


@pytest.mark.parametrize(
    ("first", "then", "left"),
    [
        ("Likes tea", "Does not like tea", ["Dislikes tea."]),
        ("Does not like tea", "Likes tea", ["Likes tea."]),
        ("Smokes", "Does not smoke", ["Does not smoke"]),
        ("Uses Redis", "Does not use Redis", ["Does not use Redis"]),
        ("Is vegan", "Is not vegan", []),
        ("Likes jazz", "Is not vegan", ["Is not vegan", "Likes jazz."]),
    ],
)
def test_a_memory_that_denies_another_replaces_it(memory: Memory, first: str, then: str, left: list[str]) -> None:
    user = memory.user(USER)
    for words in (first, then):
        user.remember(words)

    assert sorted(fact.text for fact in user.facts()) == left


def test_an_episode_by_hand_is_of_the_day_that_its_words_name(memory, clock):
    chat = memory.conversation("meko", user="ana")
    chat.record("We first met on 10 November 2025 at Meko.", "I remember.")
    user = memory.user("ana")
    noted = user.remember("First met on 10 November 2025 at Meko", conversation="meko", start_seq=1, end_seq=2).fact
    undated = user.remember("Promised to meet again", conversation="meko", start_seq=1, end_seq=2).fact
    right = user.correct(noted.id, value="First met on 12 October 2025 at Meko").fact
    reworded = user.correct(right.id, value="First met at Meko, over tteokbokki").fact

    assert [f"{fact.valid_from:%Y-%m-%d}" for fact in (noted, right, reworded)] == [
        "2025-11-10",
        "2025-10-12",
        "2025-10-12",
    ]
    assert undated.valid_from == chat.load()[0].at
    assert (right.kind, reworded.kind) == ("episode", "episode")


def test_a_value_by_hand_reads_like_one_that_was_noted(memory):
    user = memory.user("ana")
    told = {
        ("home", "lives_in", "Svalbard"): "Lives in Svalbard.",
        ("identity", "species", "ice dragon"): "Is an ice dragon.",
        ("dietary", "vegan", "true"): "Is vegan.",
        ("mood", "cheerful", "true"): "Mood: cheerful.",
    }

    assert {at: user.remember(category=at[0], key=at[1], value=at[2]).fact.text for at in told} == told


def test_a_fact_about_another_subject_may_rest_on_the_users_conversation(memory):
    memory.conversation("sea", user="ana").record("Rin, you are afraid of cats!", "I am.")
    noted = memory.user("ana", subject="assistant").remember(
        "Is afraid of cats", conversation="sea", start_seq=1, end_seq=2
    )

    assert [(quote.conversation, quote.seq) for quote in noted.fact.evidence][-2:] == [("sea", 1), ("sea", 2)]
    assert memory.user("ana", subject="assistant").facts()[0].subject == "assistant"
    with pytest.raises(NotFound):
        memory.user("ana", subject="assistant").remember("Is afraid", conversation="lake", start_seq=1, end_seq=2)
