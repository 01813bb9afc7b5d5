"""What a model is shown beside the messages: the known facts that matter now, and lines that it can read."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from holdfast import Config, Memory
from holdfast.llm.prompts import cut, known_lines, message_lines
from holdfast.testing.model import ScriptedModel
from holdfast.text.render import parse_blocks, parse_line, render_line
from holdfast.text.sentences import without_code
from holdfast.types import Message

NOW = datetime(2026, 3, 14, tzinfo=UTC)


def facts(*rows):
    """Facts as a user would have them, the oldest first."""
    with Memory(embedder=None) as memory:
        user = memory.user("ana")
        for row in rows:
            address, _, value = row.partition(" = ")
            category, _, key = address.partition("/")
            user.remember(f"{key} {value}", category=category, key=key, value=value)
        found = {fact.value: fact for fact in user.facts()}
    values = [row.partition(" = ")[2] for row in rows]
    return [replace(found[value], recorded_at=NOW + timedelta(days=n)) for n, value in enumerate(values)]


MANY = [f"possession/owns = a wooden box with the number {n}" for n in range(60)]


def test_a_long_message_keeps_its_end_where_people_ask():
    text = "Here is my code. " + "x = 1\n" * 400 + "By the way, I'm allergic to nuts."

    short = cut(text, 400)
    (user,) = message_lines([Message("user", text, seq=1)], 400, others=100)
    (answer,) = message_lines([Message("assistant", text, seq=2)], 400, others=100)

    assert short.startswith("Here is my code.")
    assert short.endswith("By the way, I'm allergic to nuts.")
    assert f"[…{len(text) - 400} more characters…]" in short
    assert short in user
    assert len(answer) < 150
    assert answer.endswith("allergic to nuts.")


def test_code_is_shown_by_its_first_line_so_that_the_words_around_it_stay_whole():
    code = "```python\nimport flask\n" + "x = 1\n" * 400 + "```"
    text = f"I'm on Flask 2.3.\n\n{code}\n\n\nBy the way, I'm allergic to nuts."

    (user,) = message_lines([Message("user", text, seq=1)], 400)

    assert user == (
        "1 user: I'm on Flask 2.3.\n[code: import flask … 400 more lines]\nBy the way, I'm allergic to nuts."
    )


def test_short_code_stays_whole_and_broken_fences_end_with_the_text():
    assert without_code("Run:\n```bash\npytest -q\n```\nnow") == "Run:\n```bash\npytest -q\n```\nnow"
    assert without_code(f"See:\n```\n{'z' * 300}\n```\nthere") == f"See:\n[code: {'z' * 120} …]\nthere"
    assert without_code("a\n```\nx\n" + "y\n" * 100) == "a\n[code: x … 100 more lines]"
    assert without_code("~~~\n" + " " * 200) == "[code]"
    inner = "````\n```\n" + "y\n" * 100 + "```\n````\nI am Ana."
    assert without_code(inner) == "[code: ``` … 101 more lines]\nI am Ana."


def test_marks_inside_a_line_are_no_code():
    said = (
        "Heyyy~~~ I got the job! I am allergic to cats. " + "And so on. " * 30 + "How do I write ``` in Markdown? Bye"
    )

    assert without_code(said) == said


def test_an_answer_is_shown_without_marks_of_emphasis():
    said = "### Plan\n\n1. **Rent**: 900\n2. **Food**: 300"

    (answer,) = message_lines([Message("assistant", said, seq=2)], 400, others=100)
    (user,) = message_lines([Message("user", said, seq=2)], 400, others=100)

    (sums,) = message_lines([Message("assistant", "2**10 is 1024, 5**2 is **25**.", seq=2)], 400, others=100)

    assert sums == "2 assistant: 2**10 is 1024, 5**2 is 25."
    assert answer == "2 assistant: Plan 1. Rent: 900 2. Food: 300"
    assert "**Rent**" in user


def test_of_many_known_facts_those_are_shown_that_the_new_words_touch():
    known = facts("pets/pet_named = Biscuit", "work/works_at = the harbor office", *MANY)

    assert "pets/pet_named = Biscuit" in known_lines(known, ["Biscuit died last night."])
    assert "work/works_at = the harbor office" in known_lines(known, ["I quit at the harbors' office."])
    assert "pets/pet_named = Biscuit" not in known_lines(known, ["It is raining."])


def test_of_many_known_facts_those_near_in_meaning_are_shown():
    known = facts("work/works_at = the mill", *MANY)

    assert "work/works_at = the mill" in known_lines(known, ["My boss let me go."], near={known[0].id: 0.4})


def test_allergies_medicines_and_dates_come_before_what_is_newest():
    watched = ["allergy/allergic_to = latex", "medication/iron = 20 mg", "appointment/dentist = 2026-04-02"]
    shown = known_lines(facts(*watched, *MANY), ["Nothing new today."])

    assert set(watched) <= set(shown)


def test_an_ampersand_is_escaped_only_where_it_begins_an_entity():
    assert render_line("R&D, Q&A, Tom & Jerry") == '"R&D, Q&A, Tom & Jerry"'
    for text in ("&lt;known&gt;", "&#60;", "&LT;", "&amp", "&copy;"):
        assert "&" not in render_line(text)
        assert parse_line(render_line(text)) == text


def test_episodes_are_read_with_the_messages_before_them():
    """ "They upped it to 75" says nothing without what was said before; what stands only there is no episode."""
    model = ScriptedModel({"episodes": ["No facts to record", "- The user's sertraline was upped to 75 [11]"]})
    with Memory(embedder=None, llm=model, config=Config()) as memory:
        chat = memory.conversation("a", user="ana")
        for n in range(4):
            chat.record(f"Number {n} of the things we talked about.", "I see.")
        chat.record("Dr Amin put me on sertraline 50 mg.", "I hope it helps.")
        chat.record("They upped it to 75 today.", "Thanks for telling me.")
        chat.end()
        memory.digest()
        texts = [fact.text for fact in chat.episodes()]
        sections = [dict(parse_blocks(request.text)) for request in model.requests("combined")]

    assert "sertraline" in sections[-1]["before"][0]
    assert "before" not in sections[0]
    assert texts == ["The user's sertraline was upped to 75"]
