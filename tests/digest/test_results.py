"""Results of tests, vaccinations and operations: exact, dated, of the right one, in any language."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from holdfast import Memory

AT = datetime(2026, 6, 1, 9, tzinfo=UTC)


def told(text: str, subject: str | None = "luna") -> list[str]:
    """Return what is known from one message, with the days it holds from and to."""
    with Memory(embedder=None) as memory:
        memory.conversation("c", user="ana", subject=subject).record(text, "Noted.", at=AT)
        memory.digest()
        found = [fact for fact in memory.user("ana", subject=subject).history() if fact.kind == "attribute"]
        found = [fact for fact in found if fact.subject == (subject or "self")]
        shown = (f"{f.category}/{f.key} = {f.value} from {f.valid_from:%Y-%m-%d}" for f in found)
        return sorted(shown)


@pytest.mark.parametrize(
    ("text", "known"),
    [
        (
            "Her T4 was 2.1 on 3 March 2026 and 3.4 on 10 March 2026.",
            ["health/t4 = 2.1 from 2026-03-03", "health/t4 = 3.4 from 2026-03-10"],
        ),
        (
            "On 3 March her T4 was 2.1, on 10 March 3.4.",
            ["health/t4 = 2.1 from 2026-03-03", "health/t4 = 3.4 from 2026-03-10"],
        ),
        (
            "Her weight was 12.1 kg in April and 11.6 kg in May.",
            ["health/weight = 11.6 kg from 2026-05-01", "health/weight = 12.1 kg from 2026-04-01"],
        ),
        (
            "Lab report 12 May 2026\nALT: 88 U/L\nCreatinine: 1.4 mg/dL (0.5-1.8)\nT4: 2.1",
            [
                "health/alt = 88 U/L from 2026-05-12",
                "health/creatinine = 1.4 mg/dL from 2026-05-12",
                "health/t4 = 2.1 from 2026-05-12",
            ],
        ),
        (
            "Blutwerte vom 12.05.2026:\nALT 88 U/l\nKreatinin 1,4 mg/dl",
            ["health/alt = 88 U/l from 2026-05-12", "health/creatinine = 1,4 mg/dl from 2026-05-12"],
        ),
        (
            "Her blood test of 1 March 2026: creatinine 1.8 mg/dl, ALT 45 U/l.",
            ["health/alt = 45 U/l from 2026-03-01", "health/creatinine = 1.8 mg/dl from 2026-03-01"],
        ),
        ("Luna's blood test from 1 March: creatinine 1.8 mg/dl.", ["health/creatinine = 1.8 mg/dl from 2026-03-01"]),
        ("The blood test came: creatinine 1.8.", ["health/creatinine = 1.8 from 2026-06-01"]),
        ("The blood test of Bella: creatinine 1.8.", []),
        ("Lunas T4 lag am 3. März 2026 bei 2,1.", ["health/t4 = 2,1 from 2026-03-03"]),
        ("El T4 de Luna fue 2,1 el 3 de marzo de 2026.", ["health/t4 = 2,1 from 2026-03-03"]),
        ("Le T4 de Luna était de 2,1 le 3 mars 2026.", ["health/t4 = 2,1 from 2026-03-03"]),
        ("루나의 T4는 3월 3일에 2.1이었어요.", ["health/t4 = 2.1 from 2026-03-03"]),
        ("ルナのT4は3月3日に2.1でした。", ["health/t4 = 2.1 from 2026-03-03"]),
        ("Is her T4 2.1?", []),
        ("Normal T4 is 1.0 to 4.0.", []),
        ("Her T4 should be 2.5.", []),
        ("If her T4 was 2.1 we would stop.", []),
        ("The article said ALT 88 is high.", []),
        ("Bo's T4 was 5.0.", []),
        ("Luna's vaccine is due on 4 June.", ["appointment/vaccination = on 4 June (2026-06-04) from 2026-06-01"]),
        ("Die Impfung ist am 4. Juni fällig.", ["appointment/vaccination = am 4. Juni (2026-06-04) from 2026-06-01"]),
        ("La vacuna le toca el 4 de junio.", ["appointment/vaccination = el 4 de junio (2026-06-04) from 2026-06-01"]),
        ("Luna had her rabies shot on 2 May 2026.", ["health/vaccinated = rabies (2026-05-02) from 2026-05-02"]),
        ("Luna was spayed in 2024.", ["health/neutered = 2024 from 2024-01-01"]),
        ("Luna wurde 2024 kastriert.", ["health/neutered = 2024 from 2024-01-01"]),
        ("루나는 2024년에 중성화했어요.", ["health/neutered = 2024 from 2024-01-01"]),
        (
            "Luna had surgery on her knee on 3 February 2026.",
            ["health/operation = surgery on her knee (2026-02-03) from 2026-02-03"],
        ),
        ("Luna wasn't spayed in 2024.", []),
        ("We skipped the rabies shot on 2 May 2026.", []),
        ("The vet wants her spayed in 2027.", []),
        ("My sister's dog was spayed in 2024.", []),
        ("The surgery on 3 February 2026 was cancelled.", []),
    ],
)
def test_what_was_measured_or_done_is_a_fact_of_its_day(text: str, known: list[str]) -> None:
    assert told(text) == known


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("My blood pressure was 135/85 this morning.", ["health/blood_pressure = 135/85 from 2026-06-01"]),
        (
            "My LDL was 130 on 12 May and my HDL 55 on 3 May.",
            ["health/hdl = 55 from 2026-05-03", "health/ldl = 130 from 2026-05-12"],
        ),
        ("Mon cholestérol est à 2,1 g/l.", ["health/cholesterol = 2,1 g/l from 2026-06-01"]),
        ("My boss's cholesterol was 200.", []),
        ("El colesterol de mi madre es 240.", []),
        ("My ALT build 88 failed.", []),
        ("I was vaccinated against flu on 12 October 2025.", ["health/vaccinated = flu (2025-10-12) from 2025-10-12"]),
        (
            "Ich wurde am 12. Oktober 2025 gegen Grippe geimpft.",
            ["health/vaccinated = grippe (2025-10-12) from 2025-10-12"],
        ),
        ("My tetanus booster is due in 2028.", ["appointment/tetanus_vaccination = in 2028 from 2026-06-01"]),
        ("I had my appendix out in 2019.", ["health/operation = appendix out (2019) from 2019-01-01"]),
        ("Operation Overlord started on 6 June 1944, my favorite story.", []),
        ("I had a long shot at it on 4 May.", []),
    ],
)
def test_the_users_own_need_a_word_that_says_so(text: str, known: list[str]) -> None:
    assert told(text, None) == known


@pytest.mark.parametrize(
    "text",
    [
        "Here are my husband's lab results:\nLDL: 190",
        "My dad's results: LDL 190.",
        "The results of my wife: LDL 190.",
        "My mother got blood results. LDL 130.",
        "My colleague Jim got his results: LDL 190",
        "Lab results for my daughter Emma:\nFerritin: 12",
        "The vet report for the neighbour's dog: ALT 300.",
        "Mein Vater hat neue Blutwerte: Kreatinin 1,4.",
        "Mi padre tiene resultados: colesterol 240.",
        "I'm a nurse. A patient had a blood test result of potassium 7.1 yesterday.",
        "I have my dad here with his lab results: potassium 6.1",
        "My boss had surgery yesterday.",
        "My friend Tom had surgery in 2023.",
        "My wife Eva had surgery on Monday.",
        "My dog Rex had surgery in 2022.",
        "I had my son Leo vaccinated against polio in 2021.",
        "I drove my mother to her surgery on Monday.",
        "I visited Tom after his operation on Friday.",
        "I had my cat spayed in 2021.",
        "I was neutered by the committee in 2021.",
        "I took my dog for vaccination on Monday.",
        "I spent 2000 on surgery for my dog in 2022.",
        "Meine Tochter wurde 2021 gegen Masern geimpft.",
        "Mi hijo fue vacunado en 2021.",
        "Mi perro fue castrado en 2020.",
        "I watched a surgery on TV on Monday.",
        "I performed surgery on a patient on Monday.",
        "I operated on three patients on Monday.",
        "I operated a crane in 2015.",
        "I was at the surgery on Monday to see the GP.",
        "I wrote a paper on covid vaccines in 2021.",
        "I work in vaccination research since 2019.",
        "My view on vaccines changed in 2021.",
        "I declined the flu shot in 2021.",
        "I was offered a covid vaccine in 2021.",
        "I forgot my flu shot on Monday.",
        "I am on the waiting list for surgery since 2021.",
        "I was told to get vaccinated on Monday.",
        "I was supposed to have surgery on Monday.",
        "I was advised to get vaccinated in 2021.",
        "I considered surgery in 2021.",
        "I may have had surgery in 2021.",
        "I was born in 1990 and had surgery as a baby.",
        "I had covid in 2021 before my vaccine.",
        "I was vaccinated for free in 2021.",
        "I had surgery on 30 February.",
        "My GPT 5 subscription ended on 3 May.",
        "My PSA 10 card sold on 3 May.",
        "My ALT 45 key is broken.",
        "My glucose: 5 readings",
        "My ferritin > 100",
        "I had surgery next Monday.",
    ],
)
def test_what_is_not_surely_of_the_user_is_not_the_users(text: str) -> None:
    assert [fact for fact in told(text, None) if fact.startswith("health/")] == []


@pytest.mark.parametrize(
    "text",
    [
        "The other dog had T4 5.0.",
        "Max had a T4 of 5.0 on Monday.",
        "I was vaccinated in 2021.",
        "The vet report for the neighbour's dog: ALT 300.",
    ],
)
def test_what_is_not_surely_of_a_pet_is_not_the_pets(text: str) -> None:
    assert told(text) == []


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("Here are my lab results:\nLDL: 190", ["health/ldl = 190 from 2026-06-01"]),
        ("Meine Blutwerte:\nKreatinin 1,4", ["health/creatinine = 1,4 from 2026-06-01"]),
        ("My HbA1c went from 8.0 to 7.1.", ["health/hba1c = 7.1 from 2026-06-01"]),
        ("My blood pressure was 140 over 90 today.", ["health/blood_pressure = 140/90 from 2026-06-01"]),
        (
            "My LDL was 190 in January but 130 in May.",
            ["health/ldl = 130 from 2026-05-01", "health/ldl = 190 from 2026-01-01"],
        ),
        (
            "My ALT test was 45 and AST 38 and GGT 100 on May 3.",
            ["health/alt = 45 from 2026-05-03", "health/ast = 38 from 2026-05-03", "health/ggt = 100 from 2026-05-03"],
        ),
        (
            "My surgery is scheduled for 12 June 2026.",
            ["appointment/surgery = 12 June 2026 (2026-06-12) from 2026-06-12"],
        ),
        ("In 2019 I had surgery on my left knee.", ["health/operation = surgery (2019) from 2019-01-01"]),
        ("I got my flu shot on 4 May 2026.", ["health/vaccinated = flu (2026-05-04) from 2026-05-04"]),
        ("Ich wurde 2019 am Knie operiert.", ["health/operation = operiert (2019) from 2019-01-01"]),
    ],
)
def test_what_is_surely_the_users_is_read(text: str, known: list[str]) -> None:
    assert told(text, None) == known


def test_a_test_of_hers_is_not_what_she_is() -> None:
    with Memory(embedder=None) as memory:
        memory.conversation("c", user="ana", subject="luna").record(
            "Luna's blood test from 1 March: creatinine 1.8 mg/dl."
        )
        memory.digest()

        assert [fact.text for fact in memory.user("ana").facts()] == ["Luna has creatinine: 1.8 mg/dl."]


def test_an_hour_is_no_verb() -> None:
    with Memory(embedder=None) as memory:
        memory.conversation("c", user="ana").record("I get up at 8 am every day because of the medicine.")
        memory.digest()

        assert "Gets up at 8 a.m. every day because of the medicine." in [f.text for f in memory.user("ana").facts()]
