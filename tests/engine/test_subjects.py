"""Subjects are things with names: what is said of one by any of them is its own, and nobody else's."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast import Memory, User
from holdfast.errors import BadInput, Conflict, NotFound


@pytest.fixture
def ana(memory: Memory) -> User:
    return memory.user("ana")


def say(memory: Memory, text: str, subject: str | None = None, conversation: str = "chat") -> None:
    memory.conversation(conversation, user="ana", subject=subject).record(text, "Noted.")
    memory.digest()


def facts(memory: Memory, subject: str | None) -> list[str]:
    """Return what is known of a subject, without what is known of the user."""
    return sorted(fact.text for fact in memory.user("ana", subject=subject).facts() if fact.subject != "self")


def test_letter_case_does_not_make_two_subjects_of_one(memory: Memory) -> None:
    say(memory, "She weighs 12 kg.", "Luna")
    say(memory, "She is allergic to chicken.", "LUNA")

    assert facts(memory, "luna") == ["Luna is allergic to chicken.", "Luna weighs 12 kg."]
    assert [one.id for one in memory.user("ana").subjects()] == ["luna"]
    assert len(memory.conversation("chat", user="ana", subject="luna").load()) == 4


def test_what_is_said_by_any_name_in_any_conversation_is_its_own(memory: Memory, ana: User) -> None:
    ana.subject("pet-42", name="Luna", aliases=("my dog",))
    ana.subject("pet-43", name="Max", aliases=("my cat",))
    say(memory, "Luna is allergic to chicken. My cat weighs 5 kg.")
    say(memory, "My dog is 4 years old.", conversation="other")
    say(memory, "She weighs 12 kg.", "pet-42")
    say(memory, "Luna has kidney disease.", "pet-43")

    assert facts(memory, "pet-42") == [
        "Luna has kidney disease.", "Luna is 4 years old.", "Luna is allergic to chicken.", "Luna weighs 12 kg.",
    ]  # fmt: skip
    assert facts(memory, "pet-43") == ["Max weighs 5 kg."]
    assert "Luna" not in memory.conversation("chat", user="ana", subject="pet-43").context().sections[0].text
    assert memory.user("ana", subject="Luna").facts() == memory.user("ana", subject="pet-42").facts()


def test_a_name_that_is_declared_later_takes_what_was_said_before(memory: Memory, ana: User) -> None:
    say(memory, "My dog Luna is allergic to chicken.")
    ana.subject("pet-42", name="Luna")

    assert facts(memory, "pet-42") == ["Luna is a dog.", "Luna is allergic to chicken."]
    assert memory.doctor().ok


def test_an_id_without_a_name_takes_the_one_that_the_user_says(memory: Memory) -> None:
    say(memory, "Luna is allergic to chicken. She weighs 12 kg.", "pet-42")
    say(memory, "Luna is 4 years old.", conversation="general")

    assert facts(memory, "pet-42") == ["Luna is 4 years old.", "Luna is allergic to chicken.", "Luna weighs 12 kg."]
    assert [(one.id, one.name) for one in memory.user("ana").subjects()] == [("pet-42", "Luna")]


@pytest.mark.parametrize(
    "sentences",
    [
        ("My sister lives in Rome.", "My sister Meera is a nurse."),
        ("My sister Meera is a nurse.", "My sister lives in Rome."),
        ("My sister Meera is a nurse.", "Meera lives in Rome."),
    ],
)
def test_a_relation_and_a_name_are_one_person(memory: Memory, sentences: tuple[str, ...]) -> None:
    for sentence in sentences:
        say(memory, sentence)

    about = {fact.subject: fact.key for fact in memory.user("ana").facts() if fact.subject != "self"}
    assert list(about) == ["meera"]
    assert len(facts(memory, None)) == 2


def test_two_sisters_are_two_and_my_sister_is_neither(memory: Memory) -> None:
    say(memory, "My sister Meera is a nurse.")
    say(memory, "My sister Nisha is a baker.")
    say(memory, "My sister lives in Rome.")

    assert {fact.subject for fact in memory.user("ana").facts("home")} == {"sister"}


def test_two_people_of_one_name_stay_apart(memory: Memory) -> None:
    say(memory, "My brother Sam lives in Berlin.")
    say(memory, "My friend Sam lives in Oslo.")
    say(memory, "Sam is vegetarian.")

    homes = {fact.value: fact.subject for fact in memory.user("ana").facts("home")}
    assert len(set(homes.values())) == 2
    assert not {fact.subject for fact in memory.user("ana").facts("dietary")} & set(homes.values())


def test_a_name_of_two_subjects_means_neither_except_in_their_own_conversations(memory: Memory, ana: User) -> None:
    ana.subject("pet-42", name="Luna")
    ana.subject("pet-43", name="Luna")
    say(memory, "Luna weighs 12 kg.", "pet-43")
    say(memory, "Luna is 4 years old.")

    assert facts(memory, "pet-42") == []
    assert facts(memory, "pet-43") == ["Luna weighs 12 kg."]
    assert facts(memory, "self") == ["Luna is 4 years old."]
    with pytest.raises(BadInput, match="2 subjects"):
        memory.user("ana", subject="luna").facts()


def test_a_pronoun_after_another_name_is_nobodys(memory: Memory, ana: User) -> None:
    ana.subject("pet-42", name="Luna")
    say(memory, "Luna has kidney disease. He is 9 years old.", "max")

    assert facts(memory, "max") == []
    assert facts(memory, "pet-42") == ["Luna has kidney disease."]


def test_a_merge_is_shown_and_then_done(memory: Memory, ana: User) -> None:
    say(memory, "She weighs 12 kg. She is allergic to chicken.", "luna")
    say(memory, "She weighs 13 kg.", "pet-42")
    plan = ana.merge_subjects("luna", "pet-42", dry_run=True)
    assert facts(memory, "luna") == ["Luna is allergic to chicken.", "Luna weighs 12 kg."]
    done = ana.merge_subjects("luna", "pet-42")

    assert [fact.text for fact in done.facts] == [fact.text for fact in plan.facts]
    assert [fact.text for fact in done.replaced] == ["Luna weighs 12 kg."]
    assert done.conversations == plan.conversations == {"chat": "chat (luna)"}
    assert [fact.value for fact in memory.user("ana", subject="pet-42").facts("health")] == ["13 kg"]
    assert memory.user("ana", subject="luna").facts() == memory.user("ana", subject="pet-42").facts()
    found = memory.user("ana", subject="pet-42").search("weighs", kinds=["message"])
    assert {hit.text for hit in found} >= {"She weighs 12 kg. She is allergic to chicken.", "She weighs 13 kg."}
    assert (
        memory.conversation("chat (luna)", user="ana", subject="pet-42").load()[0].content.startswith("She weighs 12")
    )
    assert memory.doctor().ok


def test_a_merge_that_cannot_be_is_refused(ana: User) -> None:
    ana.subject("a")
    with pytest.raises(NotFound):
        ana.merge_subjects("a", "nobody")
    with pytest.raises(BadInput):
        ana.merge_subjects("a", "self")
    ana.pause()
    with pytest.raises(Conflict):
        ana.subject("b", name="B")


def test_names_travel_with_an_export_and_go_with_an_erasure(memory: Memory, ana: User) -> None:
    ana.subject("pet-42", name="Quorvaneqqa", aliases=("my Zephyrine",))
    say(memory, "She weighs 12 kg.", "pet-42")
    data, named = ana.export(), ana.subjects()
    memory.user("ana", subject="pet-42").erase()
    assert ana.subjects() == []
    assert "Quorvaneqqa" not in str(ana.export())
    ana.erase()
    memory.import_(data)

    assert ana.subjects() == named


def test_what_shows_a_fact_shows_the_name_of_its_subject(memory: Memory, ana: User) -> None:
    ana.subject("pet-42", name="Luna")
    memory.user("ana", subject="pet-42").remember(category="food", key="eats", value="salmon")
    block = memory.conversation("chat", user="ana", subject="pet-42").context("What does she eat?").to_text()

    assert "Luna: " in block
    assert "pet-42" not in block


def test_a_user_of_one_subject_sees_that_subject_alone(memory: Memory, ana: User) -> None:
    ana.subject("pet-42", name="Luna")
    ana.subject("pet-43", name="Max")

    assert [one.id for one in memory.user("ana", subject="LUNA").subjects()] == ["pet-42"]


def about(memory: Memory, value: str) -> set[str]:
    """Return what the facts with this value are about."""
    return {fact.subject for fact in memory.user("ana").facts() if value in fact.value}


@pytest.mark.parametrize(
    "introduction",
    [
        "My friends are called Ada and Tom.",
        "I have two pupils, Ada and Tom.",
        "I have two kids: Ada is 6 and Tom is 9.",
    ],
)
def test_who_is_introduced_in_a_list_has_facts_of_their_own(memory: Memory, introduction: str) -> None:
    say(memory, introduction)
    say(memory, "Ada lives in Oslo. Tom plays the violin. Ada is vegan.")

    assert about(memory, "Oslo") == {"ada"}
    assert about(memory, "violin") == {"tom"}
    assert {fact.subject for fact in memory.user("ana").facts("dietary")} == {"ada"}


def test_she_is_the_one_whom_the_reply_asks_about(memory: Memory) -> None:
    chat = memory.conversation("chat", user="ana")
    chat.record("My sister visits us on Sunday.", "Lovely. What does she do?")
    chat.record("She works as a lawyer.", "And what's her name?")
    chat.record("Julia.", "Nice name.")
    chat.record("Julia is allergic to cats.", "Noted.")
    memory.digest()

    assert about(memory, "lawyer") == about(memory, "cats")
    (sister,) = memory.user("ana").subjects()
    assert sister.name == "Julia"


def test_she_is_nobody_where_two_could_be_meant(memory: Memory) -> None:
    chat = memory.conversation("chat", user="ana")
    chat.record("My dog Luna is ill. Did I tell you about the vet?", "No, is she nice?")
    chat.record("Yes, she's 45.", "Good.")
    memory.digest()

    assert about(memory, "45") == set()


def test_a_patient_is_called_by_name_and_by_what_it_is(memory: Memory) -> None:
    say(memory, "The patient is 64 years old. Her name is Irma.", "patient-12")
    say(memory, "Irma is allergic to penicillin. I'm a nurse.", "patient-12")

    assert about(memory, "64") == about(memory, "penicillin") == {"patient-12"}
    assert about(memory, "nurse") == {"self"}
    assert [one.name for one in memory.user("ana").subjects()] == ["Irma"]


def test_a_habit_with_the_animal_of_a_conversation_stays_with_it(memory: Memory, ana: User) -> None:
    ana.subject("pet-7", name="Bruno")
    say(memory, "We swim with him on Sundays. I brush his teeth every evening. I work as a nurse.", "pet-7")
    say(memory, "My brother lives in Oslo. I visit him every Sunday.", "pet-7", "other")

    assert facts(memory, "pet-7") == ["Brushes Bruno's teeth every evening.", "Swims with Bruno on Sundays."]
    assert {fact.text for fact in ana.facts() if fact.subject == "self"} >= {
        "Works as a nurse.",
        "Visits him every Sunday.",
    }
    assert "Sundays" not in memory.conversation("chat", user="ana", subject="kiki").context().sections[0].text


def test_one_medicine_that_is_stopped_ends_no_other(memory: Memory, ana: User) -> None:
    ana.subject("pet-7", name="Bruno")
    say(memory, "He gets Apoquel 5.4 mg.", "pet-7")
    say(memory, "He gets Rimadyl 20 mg once a day.", "pet-7")
    say(memory, "The vet stopped the Rimadyl and started Galliprant 60 mg once a day.", "pet-7")

    assert facts(memory, "pet-7") == ["Bruno takes Apoquel 5.4 mg.", "Bruno takes Galliprant 60 mg once a day."]


def test_what_an_examination_found_is_a_dated_fact_of_the_patient(memory: Memory) -> None:
    chat = memory.conversation("visits", user="ana", subject="luna")
    march = datetime(2024, 3, 14, 10, tzinfo=UTC)
    chat.record("Last Tuesday the vet heard a click in her left knee. Her gums were a bit pale.", "I see.", at=march)
    chat.record("Bloods came back with high ALT.", "I see.", at=march + timedelta(days=3))

    found = {fact.value: f"{fact.valid_from:%m-%d}" for fact in memory.user("ana", subject="luna").facts("health")}
    assert found == {"a click in her left knee": "03-12", "gums a bit pale": "03-14", "Bloods: high ALT": "03-17"}
    assert {fact.subject for fact in memory.user("ana").facts()} == {"luna"}


def test_what_we_use_in_a_project_is_the_projects(memory: Memory) -> None:
    say(memory, "We use PostgreSQL. I use Vim.", "project-x")
    say(memory, "The project uses Django.", "project-x")

    assert about(memory, "PostgreSQL") == about(memory, "Django") == {"project-x"}
    assert about(memory, "Vim") == {"self"}


def test_a_project_sees_itself_and_the_general_memory_and_no_other_project(memory: Memory) -> None:
    """The conversations have one name, as hosts call each their "main"."""
    said = {
        "shop": "The shop opens at nine on Tuesdays.",
        "garden": "The garden opens at ten on Fridays.",
        "self": "My nephew Timo opens letters with a sword.",
    }
    for subject, text in said.items():
        memory.conversation("main", user="noor", subject=subject).record(text, "I see.")
    memory.digest()
    shop = memory.user("noor", subject="shop")

    def found(**options: Any) -> set[str]:
        hits = shop.search("when does what open?", kinds=["message"], **options)
        return {hit.text for hit in hits} & set(said.values())

    assert found() == {said["shop"]}
    assert found(general=True) == {said["shop"], said["self"]}

    chat = memory.conversation("next", user="noor", subject="shop")
    assert said["self"] not in chat.context("Who opens letters with a sword?").to_text()
    whole = chat.context("Who opens letters with a sword?", general=True).to_text()
    assert said["self"] in whole
    assert said["garden"] not in whole
    same = memory.conversation("main", user="noor", subject="shop")
    assert said["self"] in same.context("Who opens letters with a sword?", general=True).to_text()


def test_a_quote_is_of_its_own_conversation_among_two_of_one_name(memory: Memory, ana: User) -> None:
    ana.subject("luna", name="Luna")
    say(memory, "Luna is allergic to chicken.")
    say(memory, "She is allergic to chicken.", "luna")
    scope = memory.user("ana")._scope
    quotes = memory._engine.store.read(scope, lambda view: view.quotes_of([("self", "chat", 1), ("luna", "chat", 1)]))

    assert [(key[0], quote) for key, _, quote in quotes] == [
        ("self", "Luna is allergic to chicken"), ("luna", "She is allergic to chicken"),
    ]  # fmt: skip


def _after(before: str, later: str) -> list[str]:
    """Return what is known of Luna after two messages, ten days apart, in conversations about her."""
    with Memory(embedder=None) as memory:
        for number, said in enumerate((before, later)):
            chat = memory.conversation(f"visit {number}", user="elena", subject="luna")
            chat.record(said, "I see.", at=datetime(2026, 5, 1 + 10 * number, 18, tzinfo=UTC))
            memory.digest()
        found = memory.user("elena", subject="luna").history()
        return [fact.text for fact in found if fact.live and fact.evidence[0].conversation == "visit 0"]


@pytest.mark.parametrize(
    ("before", "later"),
    [
        ("Luna started scratching again since Saturday.", "All good now, she has not scratched for a week!"),
        ("Luna has had diarrhoea since Monday.", "No more diarrhoea since yesterday."),
        ("Luna limps on her left hind leg.", "She doesn't limp any more."),
        ("Luna limps on her left hind leg.", "The limp is gone."),
        ("Luna limps on her left hind leg.", "No more limping since Friday."),
        ("Luna vomits every morning.", "She hasn't vomited in two weeks."),
        ("Luna scratches her ears all night.", "Her ears are fine, she no longer scratches."),
    ],
)
def test_a_trouble_that_is_over_is_not_believed_any_more(before: str, later: str) -> None:
    assert _after(before, later) == []


@pytest.mark.parametrize(
    ("before", "later"),
    [
        ("Luna limps on her left hind leg.", "She hasn't eaten today."),
        ("Luna limps on her left hind leg.", "Bella hasn't limped for weeks."),
        ("Luna limps on her left hind leg.", "My sister came by. She no longer limps."),
        ("Luna limps on her left hind leg.", "If she hasn't limped for a week we can stop the rest."),
        ("Luna limps on her left hind leg.", "The limp is almost gone."),
        ("Luna scratches her ears.", "She hasn't scratched the door for a week."),
        ("Luna has had diarrhoea since Monday.", "No more diarrhoea medicine since yesterday, it made her sick."),
        ("Luna vomits every morning.", "My sister's dog hasn't vomited in two weeks."),
        ("Luna vomits every morning.", "She hasn't vomited yet today."),
    ],
)
def test_a_trouble_that_may_go_on_is_believed(before: str, later: str) -> None:
    assert len(_after(before, later)) == 1
