"""Every fact is about the one that it was said of, by any of the names of that one, and about nobody else."""

from __future__ import annotations

import re
import tomllib
from datetime import UTC, datetime
from pathlib import Path

import pytest

from holdfast import Memory
from holdfast.digest.mentions import subject_names
from holdfast.digest.rules import extract_facts
from holdfast.store import SubjectRow
from holdfast.testing.fakes import FakeClock
from holdfast.types import Message

CHATS = tomllib.loads((Path(__file__).parent / "subjects.toml").read_text(encoding="utf-8"))["chat"]


def facts_of(said: list[str]) -> list[tuple[set[str], str]]:
    """Return the names of whom each fact is about, and its words."""
    with Memory(clock=FakeClock(), embedder=None) as memory:
        chat, user = memory.conversation("chat", user="ana"), memory.user("ana")
        for text in said:
            chat.record(text, "Okay.")
            memory.digest()
        names = {one.id: {name.casefold() for name in (one.id, one.name, *one.aliases)} for one in user.subjects()}
        return [
            (names.get(fact.subject, set()) | {fact.subject}, f"{fact.category}/{fact.key} {fact.value} {fact.text}")
            for fact in user.facts()
            if fact.kind != "episode"
        ]


@pytest.mark.parametrize("chat", CHATS, ids=lambda chat: " / ".join(chat["said"]))
def test_each_fact_is_about_whom_it_was_said_of(chat: dict[str, list[str]]) -> None:
    facts = facts_of(chat["said"])
    for wanted in chat["facts"]:
        whom, _, pattern = wanted.partition(": ")
        hits = [names for names, words in facts if re.search(pattern, words, re.IGNORECASE)]
        if whom.startswith("-"):
            assert not [names for names in hits if whom[1:] in names], facts
        else:
            assert hits, facts
            assert all(whom in names for names in hits), facts


def test_there_are_many_chats() -> None:
    assert len(CHATS) >= 50


LUNA = SubjectRow("luna", name="Luna")
JANSEN = SubjectRow("pat-7", name="Mr Jansen", aliases=("the patient",))
LEO = SubjectRow("kid-1", name="Leo", aliases=("my son",))
ATLAS = SubjectRow("atlas", name="Atlas", aliases=("the app",))


@pytest.mark.parametrize(
    ("about", "note", "facts"),
    [
        (LUNA, "allergic to chicken", ["Luna is allergic to chicken."]),
        (LUNA, "takes apoquel 5.4 mg", ["Luna takes apoquel 5.4 mg."]),
        (LUNA, "- is 4", ["Luna is 4 years old."]),
        (LUNA, "Loves carrots.", ["Luna likes carrots."]),
        (LUNA, "I'm allergic to cats", ["Is allergic to cats."]),
        (LUNA, "I take sertraline 50 mg", ["Takes sertraline 50 mg."]),
        (LUNA, "daughter Mia feeds her", []),
        (LUNA, "is she ok?", []),
        (LUNA, "Name's Ana by the way", ["Is called Ana."]),
        (LUNA, "got a job at Bosch", ["Works at Bosch."]),
        (LUNA, "on metformin 500 mg", ["Luna takes metformin 500 mg."]),
        (LUNA, "Has anyone tried raw food?", []),
        (LUNA, "Please keep your answers short.", ["Wants short replies."]),
        (JANSEN, "72 yo, admitted with pneumonia", ["Mr Jansen is 72 years old."]),
        (JANSEN, "Patient is allergic to penicillin!!", ["Mr Jansen is allergic to penicillin."]),
        (JANSEN, "Takes amoxicillin 500 mg.", ["Mr Jansen takes amoxicillin 500 mg."]),
        (JANSEN, "daughter Koosje visits on sundays", ["Mr Jansen has a daughter called Koosje."]),
        (JANSEN, "got a job at Bosch", []),
        (LEO, "is afraid of the dark", ["Leo is afraid of the dark."]),
        (ATLAS, "the app runs on AWS", ["Atlas uses AWS."]),
        (ATLAS, "We moved from Firebase to Supabase.", ["Atlas uses Supabase."]),
        (ATLAS, "I live in Ghent.", ["Lives in Ghent."]),
    ],
)
def test_a_note_that_names_nobody_is_about_the_subject_of_its_conversation(
    about: SubjectRow, note: str, facts: list[str]
) -> None:
    names = subject_names([about], [], here=about.subject)
    message = Message("user", note, seq=1)
    read = extract_facts(message, subject=about.subject, others=names, statements=True)

    assert [one.text for one in read if one.modality == "asserted"] == facts
    assert all(one.quote.strip("- ") in note for one in read)
    assert all(note[one.start : one.start + len(one.quote)] == one.quote for one in read)


@pytest.mark.parametrize(
    ("said", "facts"),
    [
        ("Our daughter Fien is 7 and has a nut allergy.", ["Fien is 7 years old.", "Fien is allergic to nuts."]),
        ("My mum is 78, lives alone and has high blood pressure.", ["Their mother has high blood pressure."]),
        ("My dad has diabetes and takes metformin 850.", ["Their father takes metformin 850."]),
        ("My daughter, who is 6, is allergic to eggs.", ["Their daughter is allergic to eggs."]),
        ("My daughter Mia (6) is allergic to eggs.", ["Mia is allergic to eggs."]),
        ("Mia, our daughter, is allergic to eggs.", ["Has a daughter called Mia.", "Mia is allergic to eggs."]),
        ("Luna, our 4 year old beagle, is allergic to chicken.", ["Luna is a beagle.", "Luna is allergic to chicken."]),
        ("My brother is coming and I am allergic to cats.", ["Is allergic to cats."]),
        ("My son's friend is 6 and has a nut allergy.", []),
        ("My colleague, who is vegan, is allergic to nuts.", []),
        ("Everyone in her class is allergic to eggs.", []),
        ("My son asked if he is sick and has a fever.", []),
        ("Ask Tom, my brother, and my dad.", []),
    ],
)
def test_a_clause_goes_on_about_the_one_with_whom_it_began(said: str, facts: list[str]) -> None:
    read = [one.text for one in extract_facts(Message("user", said, seq=1)) if one.modality == "asserted"]

    assert set(facts) <= set(read)
    assert facts or not read


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("Meine Tochter Lena ist 8 und hat eine Nussallergie.", "Nuss"),
        ("Mi hija Lucía tiene 4 años y es alérgica al huevo.", "huevo"),
        ("Mio figlio Luca ha 7 anni ed è allergico alle noci.", "noci"),
        ("Minha filha Ana tem 5 anos e é alérgica a amendoim.", "amendoim"),
        ("Mon fils Hugo a 6 ans et est allergique aux œufs.", "œufs"),
        ("Meine Chefin Lena ist nett und hat eine Nussallergie.", ""),
        ("Mein Mann kommt und ich habe eine Nussallergie.", "self"),
    ],
)
def test_a_clause_goes_on_in_other_languages_too(said: str, value: str) -> None:
    read = [one for one in extract_facts(Message("user", said, seq=1)) if one.category == "allergy"]

    assert [one.value for one in read] == ([value.replace("self", "Nuss")] if value else [])
    assert all((one.subject == "self") == (value == "self") and one.quote in said for one in read)


# What owners say of a patient, and the fact that is read; `Luna` is whom the conversation is about.
CLINICAL = [
    (
        "She's been put on Felimazole, one 2.5 mg tablet morning and night.",
        "medication/felimazole",
        "one 2.5 mg tablet morning and night",
    ),
    ("She's on half a tablet of Vetmedin twice a day.", "medication/pimobendan", "half a tablet twice a day"),
    ("We give her 0.4 ml of Loxicom with dinner.", "medication/meloxicam", "0.4 ml with dinner"),
    ("Two drops of Surolan in the left ear, twice a day.", "medication/surolan", "Two drops twice a day"),
    ("Her insulin went from 4 to 5 units.", "medication/insulin", "5 units"),
    ("BP 150/90 on 5 May.", "health/blood_pressure", "150/90"),
    ("Her pressure is down to 148.", "health/blood_pressure", "148"),
    ("T4 is down to 41 as of 3 November.", "health/t4", "41"),
    ("Her creat came back at 181.", "health/creatinine", "181"),
    ("Her sugar was 14.2 this morning.", "health/glucose", "14.2"),
    ("Her temp was 39.6 last night.", "health/temperature", "39.6"),
    ("She's 3.6 kg now.", "health/weight", "3.6 kg"),
    ("She put on a bit, 3.4 kg.", "health/weight", "3.4 kg"),
    ("She weighed in at 12.3 kilos.", "health/weight", "12.3 kilos"),
    ("The vet says overactive thyroid.", "health/has_condition", "hyperthyroidism"),
    ("We got her spayed on 5 January.", "health/neutered", "2026-01-05"),
]
ENDED = [
    "She's off the Apoquel now.",
    "Apoquel is finished.",
    "No more Apoquel for her.",
    "The Apoquel has been replaced by Cytopoint.",
    "She was switched from Apoquel to Cytopoint.",
    "We weaned her off the Apoquel.",
]


def of_luna(*said):
    with Memory(embedder=None) as memory:
        memory.user("u").subject("pet-1", name="Luna")
        for number, words in enumerate(said):
            chat = memory.conversation(f"c{number}", user="u", subject="pet-1")
            chat.record(words, "Noted.", at=datetime(2026, 6, 1 + number, 9, tzinfo=UTC))
        memory.digest()
        return {(f"{f.category}/{f.key}", f.value) for f in memory.user("u", subject="pet-1").facts()}


@pytest.mark.parametrize(("said", "address", "value"), CLINICAL)
def test_owners_words_for_clinical_things_are_read(said, address, value):
    assert (address, value) in of_luna(said)


@pytest.mark.parametrize("said", ENDED)
def test_a_medicine_of_a_patient_ends_without_her_name(said):
    assert "medication/apoquel" not in dict(of_luna("Luna takes Apoquel 16 mg once a day.", said))


def test_another_weight_is_no_confirmation_of_the_old():
    assert ("health/weight", "3.3 kg") in of_luna("She weighs 3.7 kg.", "She's 3.3 kg.")


@pytest.mark.parametrize(
    "said", ["Tyre pressure is 148.", "The water pressure came down to 148.", "I put sugar at 14.2."]
)
def test_everyday_words_are_no_results_of_the_user(said):
    with Memory(embedder=None) as memory:
        memory.conversation("c", user="u").record(said, "Noted.")
        memory.digest()

        assert [fact for fact in memory.user("u").facts() if fact.category == "health"] == []


@pytest.mark.parametrize("said", ["I'm a little scared of giving her pills.", "I fill the bowl twice a day."])
def test_what_the_owner_is_and_does_is_no_fact_about_the_patient(said):
    with Memory(embedder=None) as memory:
        memory.user("u").subject("pet-1", name="Luna")
        memory.conversation("c", user="u", subject="pet-1").record(said, "Noted.")
        memory.digest()

        assert {fact.subject for fact in memory.user("u").facts() if fact.category != "identity"} == {"self"}
