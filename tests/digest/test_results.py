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
