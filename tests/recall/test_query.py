"""What a question is taken to ask for."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import Memory
from holdfast.clock import from_ms
from holdfast.recall.query import (
    When,
    find_aliases,
    find_days,
    in_first_person,
    is_spelling_of,
    parse_question,
    participant_meant,
)

NOW = datetime(2024, 3, 15, 18, 0, tzinfo=UTC)  # a Friday
USERS = ("Ana", "Ben", "Mary Jane")


def ask(question, names=USERS):
    return parse_question(question, names=names, now=NOW)


@pytest.mark.parametrize(
    ("question", "text", "speaker"),
    [
        ("Where does Ana live?", "Where does you live?", "Ana"),
        ("What is ana's dog called?", "What is your dog called?", "Ana"),
        ("What is Ana’s dog called?", "What is your dog called?", "Ana"),
        ("When did Mary Jane move?", "When did you move?", "Mary Jane"),
        ("What did Ana tell Ben?", "What did you tell me?", "Ana"),
        ("What did Ana say about Ben's car and Mary Jane?", "What did you say about my car and me?", "Ana"),
        ("What do Ana and Ben like?", "What do you and you like?", None),
        ("Is Ana's dog older than Ben?", "Is your dog older than you?", None),
        ("¿Dónde vive Ana con su hermana?", "¿Dónde vive con su hermana?", "Ana"),
        ("Who likes bananas?", "Who likes bananas?", None),
        ("Ana?", "Ana?", "Ana"),
    ],
)
def test_a_question_is_read_as_it_would_be_put_to_whom_it_is_about(question, text, speaker):
    query = ask(question)

    assert (query.text, query.speaker) == (text, speaker)


@pytest.mark.parametrize("name", ["user", "Assistant", "AI"])
def test_a_role_is_nobodys_name(name):
    assert ask(f"What did the {name} say?", names=(name,)).speaker is None


@pytest.mark.parametrize(
    ("question", "flags"),
    [
        ("When did she move?", "when"),
        ("In which year did they marry?", "when"),
        ("How many cats does she have?", "number present several"),
        ("Which trips did Ana make?", "several"),
        ("What has he cooked?", "present several"),
        ("Where has Ana been?", "present several"),
        ("What do Ana and Ben have in common?", "several"),
        ("Do both of them ski?", "several"),
        ("What was Ana's gift?", ""),
        ("What does his bus driver say?", "present"),
        ("Who lives in Paris?", ""),
        ("What should I cook for guests?", "advice"),
        ("Can you write a letter to my bank?", "advice"),
        ("How do I plan a garden?", "advice"),
        ("Can you remind me when we discussed the bank?", ""),
        ("What recipe did you suggest?", "assistant"),
        ("How old is he?", "number present"),
        ("What did you recommend?", "assistant"),
        ("Your advice about the trip?", "assistant"),
        ("What is my budget?", "present"),
        ("What was my budget?", ""),
        ("Tell me about the trip", ""),
    ],
)
def test_the_shape_of_the_answer(question, flags):
    query = ask(question)
    found = {
        "when": query.asks_when,
        "number": query.asks_number,
        "assistant": query.asks_assistant,
        "present": query.asks_present,
        "several": query.asks_several,
        "advice": query.asks_advice,
    }

    assert " ".join(name for name, yes in found.items() if yes) == flags


@pytest.mark.parametrize(
    ("question", "when"),
    [
        ("What happened on 7 May 2023?", When(2023, 5, 7)),
        ("What happened on May 7th, 2023?", When(2023, 5, 7)),
        ("on the 3rd of june", When(None, 6, 3)),
        ("in Sept. 2022", When(2022, 9, None)),
        ("since Sep 2022", When(2022, 9, None)),
        ("in June", When(None, 6, None)),
        ("What may I eat?", None),
        ("in May 2024", When(2024, 5, None)),
        ("back in 2019", When(2019)),
        ("January 0000", When(None, 1, None)),
        ("room 1984", None),
        ("nothing", None),
    ],
)
def test_dates_that_a_question_names(question, when):
    assert find_days(question, NOW) == when


@pytest.mark.parametrize(
    ("question", "first", "last"),
    [
        ("What did I eat yesterday?", "2024-03-14", "2024-03-15"),
        ("Whom did I meet last week?", "2024-03-02", "2024-03-15"),
        ("this month", "2024-02-13", "2024-03-16"),
        ("two weeks ago", "2024-02-26", "2024-03-05"),
        ("What did we do last weekend?", "2024-03-02", "2024-03-15"),
        ("Whom did I meet on Tuesday?", "2024-03-12", "2024-03-13"),
        ("Where did Ana go last summer?", "2023-06-01", "2023-09-01"),
        ("What did I read over the winter?", "2023-12-01", "2024-03-02"),
        ("What did I plant this spring?", "2024-03-01", "2024-03-16"),
        ("What did I plant last spring?", "2023-03-01", "2023-06-01"),
    ],
)
def test_relative_days_are_counted_back_from_now(question, first, last):
    when = find_days(question, NOW)

    assert when is not None
    assert when.span_ms is not None
    start, end = (from_ms(ms) for ms in when.span_ms)
    assert abs(start - datetime.fromisoformat(first).replace(tzinfo=UTC)) <= timedelta(days=1)
    assert abs(end - datetime.fromisoformat(last).replace(tzinfo=UTC)) <= timedelta(days=1)


@pytest.mark.parametrize("month", [1, 2])
def test_last_winter_is_over_while_another_winter_is_on(month):
    when = find_days("Where did we ski last winter?", datetime(2026, month, 10, tzinfo=UTC))

    assert when is not None
    assert when.span_ms is not None
    assert [f"{from_ms(ms):%Y-%m-%d}" for ms in when.span_ms] == ["2024-12-01", "2025-03-03"]


def test_names_are_no_words_of_the_question():
    assert ask("When did Ana's aunt visit Ben?").terms == (("aunt",), ("visit",))


@given(st.text(max_size=120), st.lists(st.text(min_size=1, max_size=12), max_size=4))
def test_any_question_can_be_read(question, names):
    query = parse_question(question, names=names, now=datetime.min.replace(tzinfo=UTC))

    assert query.speaker is None or query.speaker in names


@pytest.mark.parametrize(
    ("term", "word"),
    [
        ("postgr", "postger"),  # exchanged
        ("redi", "reedi"),  # too many
        ("kubernet", "kuberet"),  # missing
        ("terraform", "terrafirm"),  # another, in a long word
        ("mongodb", "mongo"),
        ("kube", "kubectl"),
    ],
)
def test_a_slip_of_the_keyboard_is_the_word_that_was_meant(term, word):
    assert is_spelling_of(term, word, {"form", "boat"})


@pytest.mark.parametrize(
    ("term", "word"),
    [
        ("mongo", "mango"),  # a short word with another letter is another word
        ("boat", "boast"),  # both are words
        ("redi", "readi"),  # what is asked for is a word
        ("form", "former"),
        ("k8s", "k9s"),
        ("java", "javascript"),
        ("jon", "john"),
        ("kubernet", "kubrenset"),  # two slips
    ],
)
def test_a_word_like_another_is_another(term, word):
    assert not is_spelling_of(term, word, {"boat", "boast", "form", "former", "mango", "readi"})


def test_an_alias_is_called_by_its_words_in_a_row():
    aliases = ((("dead", "letter"), 0), (("dlq",), 0), (("letter",), 1), (("post", "offic"), 2))

    assert find_aliases(ask("what is in the dead letter queue?"), aliases)[0] == {0, 1}
    assert find_aliases(ask("is the letter dead?"), aliases)[0] == {1}
    assert find_aliases(ask("the post of the office"), aliases) == ({2}, {("post",), ("offic",)})
    assert find_aliases(ask("who posts to that office?"), aliases)[0] == {2}
    assert find_aliases(ask("nothing of these"), aliases)[0] == frozenset()


def test_a_question_that_joins_several_is_known_by_its_parts():
    assert ask("Which database?").parts == (frozenset({("databas",)}),)
    assert ask("Which database, and which editor?").parts == (frozenset({("databas",)}), frozenset({("editor",)}))
    assert ask("").parts == ()


@pytest.mark.parametrize(
    ("question", "name", "signed", "read"),
    [
        ("What sport does Kate do?", "Kate", "", "What sport does I do?"),
        ("Where does Kate's sister live?", "Kate", "", "Where does my sister live?"),
        ("What does Kate like?", "Kate", "kt_92", "What does kt_92 like?"),
        ("Kate's hobbies", "Kate", "", "my hobbies"),
        ("Who is Kate?", "Kate", "", "Who is Kate?"),
        ("What does Katerina like?", "Kate", "", "What does Katerina like?"),
        ("Will it rain in Porto?", "Will", "", "Will it rain in Porto?"),
        ("Which books does Will read?", "Will", "", "Which books does I read?"),
    ],
)
def test_the_user_by_name_is_whoever_asks(question, name, signed, read):
    assert in_first_person(question, name, signed) == read


@pytest.mark.parametrize(
    ("question", "topic"),
    [
        (
            "Can you list the order in which I brought up different aspects of my garden across our conversations?",
            "my garden ?",
        ),
        (
            "Walk me through the order in which we discussed the kitchen, in order. Name only three items.",
            "the kitchen .",
        ),
        ("Give me a short summary of how my Latin has improved throughout our chats?", "how my Latin has improved ?"),
        ("Give me an overview of what I told you about the new boat in our conversations.", "the new boat ."),
    ],
)
def test_of_a_question_for_the_course_of_things_its_topic_is_looked_for(question, topic):
    query = ask(question)

    assert query.text.replace(" ", "") == topic.replace(" ", "")
    assert query.asks_several
    assert query.terms == ask(topic).terms


@pytest.mark.parametrize(
    "question",
    [
        "What did we order in the restaurant?",
        "Which topics did the conference list?",
        "Can you list the parts of an engine?",
        "When did I mention the chat with my boss?",
    ],
)
def test_other_questions_keep_the_words_of_talking(question):
    query = ask(question)

    assert query.text == question


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("John", "Jon"),
        ("Jonn", "Jon"),
        ("Eliza", "Elise"),
        ("Elisa", "Elise"),
        ("Sofia", "Sophia"),
        ("Joan", None),
        ("Jonas", None),
        ("Elias", None),
        ("Sonia", None),
        ("Paula", None),
        ("Users", None),
    ],
)
def test_a_participant_is_meant_by_a_name_that_sounds_alike(name, meant):
    assert participant_meant(name, ("Jon", "Elise", "Sophia", "Paul", "user")) == meant


def test_of_two_participants_who_sound_alike_none_is_meant():
    assert participant_meant("Jonn", ("Jon", "John")) is None


@pytest.mark.parametrize(
    ("stated", "question", "found"),
    [
        ("I'm allergic to peanuts.", "can I eat satay?", True),
        ("I'm lactose intolerant.", "would a milkshake be a bad idea for me?", True),
        ("I'm vegan.", "recommend a restaurant for Friday", True),
        ("I'm allergic to penicillin.", "can I take amoxicillin?", True),
        ("I'm afraid of heights.", "should I go on the Ferris wheel?", True),
        ("I'm allergic to peanuts.", "who invented pad thai?", False),
        ("I'm allergic to peanuts.", "can I eat an apple?", False),
        ("I'm vegan.", "can I park here?", False),
        ("I'm allergic to penicillin.", "can I take a holiday in May?", False),
        ("My wife is vegan.", "can I eat the quiche?", False),
    ],
)
def test_what_a_dish_a_medicine_or_a_doing_holds_brings_up_who_must_mind_it(
    stated: str, question: str, found: bool
) -> None:
    with Memory(":memory:", embedder=None) as memory:
        memory.conversation("c", user="ana").append([stated, "I live in Lisbon.", "I play tennis on Fridays."])
        memory.digest()
        hits = memory.user("ana").search(question, kinds=("fact",), min_relevance=0.5)

    assert bool(hits) == found
