"""Forty-eight next questions over eight chats: what is needed is in the context, and nothing stale stands beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from holdfast import Memory
from holdfast.testing.fakes import FakeClock
from holdfast.text.render import parse_line

FILLER = [
    ("Can you explain how tides work?", "The moon pulls the water on both sides of the earth."),
    ("What is a good word for very tired?", "Exhausted is a good word."),
    ("Convert three miles to kilometers.", "About 4.8 kilometers."),
    ("Who painted the Night Watch?", "Rembrandt painted it in 1642."),
]

# Each chat: what the user says, with days between; then questions with what must be there and what must not stand beside it.
CHATS: dict[str, tuple[list[tuple[int, str]], list[tuple[str, str, str]]]] = {
    "cook": (
        [
            (0, "Hi, I'm Petra. I'm vegetarian and I live in Graz."),
            (1, "My son Emil is allergic to walnuts."),
            (2, "I have a cast-iron pan from my grandmother that I use every day."),
            (20, "I eat fish now, so I'm pescatarian."),
            (5, "Emil turned six last Sunday, we had a picnic at the lake."),
            (3, "I moved to Linz last week."),
        ],
        [
            ("What can I cook tonight?", r"pescatarian", r"vegetarian"),
            ("Which nuts must I leave out of Emil's cake?", r"walnut", ""),
            ("Which shops near me sell fresh herbs?", r"Linz", r"Graz"),
            ("Which pan should I use for the eggs?", r"cast-iron", ""),
            ("How old is Emil now?", r"turned six", ""),
            ("What is my name?", r"Petra", ""),
        ],
    ),
    "nurse": (
        [
            (0, "I work as a nurse at the Westside clinic."),
            (1, "I take metformin 500 mg twice a day."),
            (4, "My sister Irene lives in Turin."),
            (30, "My doctor raised it: I take metformin 850 mg twice a day."),
            (10, "I quit the clinic. I work at Harbor Hospital now."),
            (2, "I lost my bicycle key behind the radiator in the hall."),
        ],
        [
            ("How much metformin do I take?", r"850", r"500"),
            ("Where do I work?", r"Harbor Hospital", r"Westside"),
            ("Where does my sister live?", r"Turin", ""),
            ("Where did I lose the bicycle key?", r"radiator", ""),
            ("What is my job?", r"nurse", ""),
            ("Does anything I take not go with grapefruit?", r"metformin", r"500 mg"),
        ],
    ),
    "dog": (
        [
            (0, "We have a dog named Bruno, he is a beagle."),
            (2, "Bruno is afraid of thunder and hides in the bathtub."),
            (3, "The vet is Dr. Salas, on Mill Street."),
            (15, "My daughter Noor walks him before school."),
            (9, "I'm allergic to penicillin."),
            (1, "Always answer in short sentences."),
        ],
        [
            ("What is my dog called?", r"Bruno", ""),
            ("What is Bruno afraid of?", r"thunder", ""),
            ("Who is our vet?", r"Salas", ""),
            ("Who walks him before school?", r"Noor", ""),
            ("Which antibiotics can I not have?", r"penicillin", ""),
            ("How should you answer me?", r"short", ""),
        ],
    ),
    "trip": (
        [
            (0, "We are travelling to Oslo next month."),
            (1, "My budget for the trip is 900 euros."),
            (2, "My wife Carla gets seasick, so no boats."),
            (100, "I booked a table at the Blue Heron for our anniversary."),
            (5, "I prefer trains over planes."),
            (3, "My mother lives in Bergamo."),
        ],
        [
            ("Any trips coming up?", r"trains over planes", r"^(?:\S+ user: We )?(?:Is|are) travell?ing to Oslo"),
            ("Where did I book the table for our anniversary?", r"Blue Heron", ""),
            ("Who gets seasick?", r"Carla", ""),
            ("Trains or planes, what do I prefer?", r"trains", ""),
            ("Where does my mother live?", r"Bergamo", ""),
            ("What is my wife called?", r"Carla", ""),
        ],
    ),
    "code": (
        [
            (0, "I use PostgreSQL for the invoices project."),
            (1, "The deploy script is in tools/ship.sh and needs the flag --careful."),
            (3, "I prefer tabs over spaces."),
            (12, "We switched from PostgreSQL to SQLite."),
            (2, "The staging server is called marmot."),
            (2, "I'm learning Rust."),
        ],
        [
            ("Which database do I use?", r"SQLite", r"Uses PostgreSQL"),
            ("Where is the deploy script?", r"tools/ship\.sh", ""),
            ("Tabs or spaces?", r"tabs", ""),
            ("What is the staging server called?", r"marmot", ""),
            ("Which language am I learning?", r"Rust", ""),
            ("Which flag does the deploy script need?", r"--careful", ""),
        ],
    ),
    "spanish": (
        [
            (0, "Me llamo Inés y vivo en Sevilla."),
            (1, "Soy alérgica al marisco."),
            (2, "Mi hermano Pablo toca el violonchelo."),
            (20, "Ahora vivo en Bilbao."),
            (3, "Guardo las llaves del trastero en la caja azul."),
            (2, "Trabajo como arquitecta."),
        ],
        [
            ("¿Dónde vivo?", r"Bilbao", r"Sevilla"),
            ("¿Puedo comer la paella de marisco?", r"marisco", ""),
            ("¿Qué toca mi hermano Pablo?", r"violonchelo", ""),
            ("¿Dónde guardo las llaves del trastero?", r"caja azul", ""),
            ("¿Cómo me llamo?", r"Inés", ""),
            ("¿Cuál es mi trabajo?", r"arquitecta", ""),
        ],
    ),
    "german": (
        [
            (0, "Ich heiße Jonas und wohne in Kiel."),
            (1, "Ich bin allergisch gegen Erdnüsse."),
            (2, "Meine Tochter heißt Mila."),
            (25, "Ich wohne jetzt in Rostock."),
            (3, "Der Ersatzschlüssel liegt bei der Nachbarin Frau Behn."),
            (2, "Ich arbeite als Tischler."),
        ],
        [
            ("Wo wohne ich?", r"Rostock", r"Kiel"),
            ("Wogegen bin ich allergisch?", r"Erdn", ""),
            ("Wie heißt meine Tochter?", r"Mila", ""),
            ("Bei wem liegt der Ersatzschlüssel?", r"Behn", ""),
            ("Als was arbeite ich?", r"Tischler", ""),
            ("Wie heiße ich?", r"Jonas", ""),
        ],
    ),
    "garden": (
        [
            (0, "My name is Tom and I live in Cork."),
            (1, "I planted three apple trees behind the shed in March."),
            (2, "My neighbor Eamon has the spare key to the greenhouse."),
            (8, "My favorite color is green."),
            (30, "Actually my favorite color is orange now."),
            (2, "I don't eat mushrooms."),
        ],
        [
            ("How many apple trees did I plant?", r"three apple trees", ""),
            ("Who has the spare key to the greenhouse?", r"Eamon", ""),
            ("Which is my favorite color?", r"orange", r"green\b(?!house)"),
            ("Could I have the mushroom risotto?", r"mushrooms", ""),
            ("What city am I in?", r"Cork", ""),
            ("When did I plant the apple trees?", r"in March", ""),
        ],
    ),
}
CASES = [(name, *asked) for name, (_, questions) in CHATS.items() for asked in questions]


@pytest.fixture(scope="module")
def memory() -> Iterator[Memory]:
    clock = FakeClock(datetime(2026, 3, 2, 18, tzinfo=UTC))
    start = clock()
    with Memory(embedder=None, clock=clock) as memory:
        for name, (said, _) in CHATS.items():
            clock.advance(seconds=(start - clock()).total_seconds())
            chat = memory.conversation("first", user=name)
            for number, (days, text) in enumerate(said):
                clock.advance(days=days)
                chat.record(text, "I'll keep that in mind.")
                clock.advance(minutes=2)
                chat.record(*FILLER[number % len(FILLER)])
        clock.advance(seconds=(start - clock()).total_seconds(), days=200)
        memory.digest()
        yield memory


def test_there_are_forty_eight_questions() -> None:
    assert len(CASES) == 48


@pytest.mark.parametrize(("name", "question", "needed", "stale"), CASES)
def test_the_next_question_has_what_it_needs_and_nothing_stale(
    memory: Memory, name: str, question: str, needed: str, stale: str
) -> None:
    context = memory.conversation("next", user=name).context(question, budget_tokens=2000, note=False)
    lines = [parse_line(line) for part in context.sections[:-1] for line in part.items]

    assert [line for line in lines if re.search(needed, line)]
    if stale:
        assert [line for line in lines if re.search(stale, line) and "later replaced by" not in line] == []
    assert len(lines) == len(set(lines))
