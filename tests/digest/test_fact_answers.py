"""Whatever form an answer about facts takes, what can be read is read, and nothing that was not said."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.digest.answers import parse_parts
from holdfast.digest.answers.fact_answers import PromptWindow, parse_fact_rows, parse_facts
from holdfast.digest.answers.wording import attribute_sentence
from holdfast.digest.grounding import ground
from holdfast.llm.protocol import Answer, BadAnswer
from holdfast.types import Message

AT = datetime(2026, 3, 14, 9, tzinfo=UTC)
TALK = {
    1: Message("user", "Hi! I live in Lisbon, “near the river”, and my dog Bo is 7.", at=AT, seq=1, conversation="a"),
    2: Message("assistant", "Lovely. You work at Evilcorp, I hear.", at=AT, seq=2, conversation="a"),
    3: Message("user", "I'm vegetarian. My sister Mia is vegan!", at=AT, seq=3, conversation="a"),
}
WINDOW = PromptWindow(TALK)
HEAD = "category,fact_key,fact_value,confidence,subject,op,modality,lifetime,message,quote"
LISBON = "home,lives_in,Lisbon,0.95,,set,asserted,state,1,I live in Lisbon"
DIET = "dietary,vegetarian,true,0.9,,set,asserted,state,3,I'm vegetarian"
AS_JSON = [
    dict(zip(HEAD.split(","), ["home", "lives_in", "Lisbon", 0.95, None, "set", "asserted", "state", 1, "I live in Lisbon"], strict=True)),
    dict(zip(HEAD.split(","), ["dietary", "vegetarian", True, 0.9, "user", "set", "asserted", "state", 3, "I'm vegetarian"], strict=True)),
]  # fmt: skip

FORMS = {
    "as asked": f"{HEAD}\n{LISBON}\n{DIET}",
    "without a head": f"{LISBON}\n{DIET}",
    "eight columns": "home,lives_in,Lisbon,0.95,,set,1,I live in Lisbon\ndietary,vegetarian,true,0.9,,set,3,I'm vegetarian",
    "eight columns, a comma in the last": "home,lives_in,Lisbon,0.95,,set,1,I live in Lisbon, \"near\n"
    "dietary,vegetarian,true,0.9,,set,3,I'm vegetarian",
    "prose around it": f"Sure! Here are the facts:\n\n{HEAD}\n{LISBON}\n{DIET}\n\nLet me know if you need more.",
    "fenced": f"Here you go:\n```csv\n{HEAD}\n{LISBON}\n{DIET}\n```\nDone.",
    "fence not closed": f"```\n{LISBON}\n{DIET}",
    "thoughts first": f"<think>They live, maybe, in, Porto, 0.9</think>\n{LISBON}\n{DIET}",
    "semicolons": f"{HEAD}\n{LISBON}\n{DIET}".replace(",", ";"),
    "tabs": f"{LISBON}\n{DIET}".replace(",", "\t"),
    "a Markdown table": "| category | fact_key | fact_value | confidence | message | quote |\n|---|---|---|---|---|---|\n"
    "| home | lives_in | Lisbon | 0.95 | 1 | I live in Lisbon |\n| dietary | vegetarian | true | 0.9 | 3 | I'm vegetarian |",
    "other order under a head": "message,quote,category,key,value,confidence\n"
    "1,I live in Lisbon,home,lives_in,Lisbon,0.95\n3,I'm vegetarian,dietary,vegetarian,true,0.9",
    "bullets": f"- {LISBON}\n- {DIET}",
    "all cells quoted": "\n".join(",".join(f'"{cell}"' for cell in row.split(",")) for row in (LISBON, DIET)),
    "spaces after commas": f"{LISBON}\n{DIET}".replace(",", ", "),
    "a lone quotation mark": f"{LISBON}\n{DIET}".replace("I'm", 'I"m').replace('I"m vegetarian', '"vegetarian'),
    "blank lines between": f"\n\n{LISBON}\n\n\n{DIET}\n\n",
    "the last row cut off": f"{LISBON}\n{DIET}\nhome,born_in,Ber",
    "JSON": json.dumps(AS_JSON),
    "JSON in an object": json.dumps({"facts": AS_JSON}),
    "JSON in prose": f"The facts are: {json.dumps(AS_JSON)}. That is all.",
    "JSON lines": "\n".join(map(json.dumps, AS_JSON)),
    "JSON cut off": json.dumps([*AS_JSON, AS_JSON[0]])[:-30],
    "Windows line ends": f"{HEAD}\r\n{LISBON}\r\n{DIET}\r\n",
    "confidence in percent": f"{LISBON}\n{DIET}".replace("0.95", "95%").replace("0.9,", "90 %,"),
    "upper case names": f"{HEAD.upper()}\n{LISBON}\n{DIET}".replace("home,", "Home,").replace("asserted", "Asserted"),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_the_same_facts_are_read_from_every_form(form):
    cut = "cut off" in form
    found = parse_fact_rows(FORMS[form], WINDOW, source="m", cut=cut).candidates

    assert [(c.category, c.key, c.value, c.seq) for c in found[:2]] == [
        ("home", "lives_in", "Lisbon", 1),
        ("dietary", "vegetarian", "true", 3),
    ]
    assert all(TALK[c.seq].content[c.start :].startswith(c.quote) for c in found)


def test_bullets_alone_as_a_prompt_of_ones_own_asks_for_them_are_statements():
    answer = "- I live in Lisbon near the river [1]\n- The sister Mia is vegan\n* Works at Evilcorp"
    found = parse_fact_rows(answer, WINDOW, source="m")

    assert [(c.kind, c.text, c.seq, c.quote) for c in found.candidates if not c.key and c.seq in (1, 3)][:2] == [
        ("statement", "I live in Lisbon near the river", 1, "I live in Lisbon, “near the river”, and my dog Bo is 7."),
        ("statement", "The sister Mia is vegan", 3, "My sister Mia is vegan!"),
    ]
    # what only the assistant said has no words of the user's to rest on
    assert [(c.text, why.split(":")[0]) for c, why in found.dropped] == [("Works at Evilcorp", "no-message")]


@pytest.mark.parametrize("prose", ["- I live in Lisbon\nand so on", "They live in Lisbon.", "- ok"])
def test_prose_that_is_not_bullets_alone_stays_a_bad_answer(prose):
    with pytest.raises(BadAnswer):
        parse_fact_rows(prose, WINDOW, source="m")


@pytest.mark.parametrize(
    "nothing",
    ["NONE", "none.", "```\nNONE\n```", "[]", "{}", '{"facts": []}', "No facts to record", HEAD, f"```csv\n{HEAD}\n```",
     "Keine neuen Fakten", "Keine Fakten zu erfassen", "没有值得记录的事实", "없음", "无", "Ninguno", "There is small talk only.\n\nNONE", "N/A"],
)  # fmt: skip
def test_an_honest_nothing_is_no_failure(nothing):
    found = parse_fact_rows(nothing, WINDOW, source="m")

    assert (found.candidates, found.dropped) == ([], [])


@pytest.mark.parametrize(
    "bad",
    ["I'm sorry, but I can't help with that.", "Es tut mir leid, das geht nicht.", "죄송합니다.",
     "Of course! I would be happy to help you with your request.", "<think>hm", "{{{{{", "[[[[" * 400, "home", "a,b,c,d\ne,f,g,h"],
)  # fmt: skip
def test_an_answer_without_any_row_is_a_failure(bad):
    with pytest.raises(BadAnswer):
        parse_facts(Answer(bad, "m"), WINDOW, source="m")


@pytest.mark.parametrize("empty", ["", "   \n", "nothing", "or nothing", "NONE.", "none"])
def test_an_empty_answer_is_an_honest_nothing(empty):
    assert parse_facts(Answer(empty, "m"), WINDOW, source="m").dropped == []
    with pytest.raises(BadAnswer):
        parse_facts(Answer("", "m", finish="length"), WINDOW, source="m")


def test_json_rows_stay_json_among_the_parts_of_an_answer():
    """Models wrap a list in an object, most often under the name "facts"."""
    rows = [{"content": "Deploys through GitLab CI", "category": "technical", "confidence": 0.9}]
    parts = parse_parts(json.dumps({"summary": "They talked.", "themes": ["deploys", "CI"], "facts": rows}))
    assert json.loads(parts["facts"]) == rows
    assert parts["themes"] == "deploys\nCI"


def test_a_refusal_by_the_provider_is_a_failure():
    with pytest.raises(BadAnswer):
        parse_facts(Answer(LISBON, "m", finish="refusal"), WINDOW, source="m")


def one(row, window=WINDOW):
    """What becomes of one row: its candidate and the reason why it was dropped, empty when it was not."""
    found = parse_fact_rows(row, window, source="m")
    pairs = [(c, "") for c in found.candidates] + found.dropped
    _, refused = ground(found.candidates, window.messages, min_confidence=0.7)
    if refused:
        return refused[0]
    assert len(pairs) == 1
    return pairs[0]


@pytest.mark.parametrize(
    ("quote", "kept"),
    [
        ("I live in Lisbon", "I live in Lisbon"),
        ("i live in lisbon", "I live in Lisbon"),
        ('"I live in Lisbon."', "I live in Lisbon"),
        ("I  live\tin Lisbon", "I live in Lisbon"),
        ('"Lisbon, ""near the river"""', "Lisbon, “near the river"),
    ],
)
def test_a_quote_is_kept_as_it_was_said(quote, kept):
    candidate, reason = one(f"home,lives_in,Lisbon,0.95,,set,asserted,state,1,{quote}")

    assert (candidate.quote, reason) == (kept, "")


@pytest.mark.parametrize(
    ("row", "code"),
    [
        ("home,lives_in,Lisbon,0.95,,set,asserted,state,1,I have moved to Lisbon", "quote-not-found"),
        ("home,lives_in,Lisbon,0.95,,set,asserted,state,9,I live in Lisbon", "no-message"),
        ("work,works_at,Evilcorp,0.95,,set,asserted,state,2,You work at Evilcorp", "not-said-by-user"),
        ("work,works_at,Evilcorp,0.95,,set,asserted,state,1,I live in Lisbon", "said-by-others"),
        ("home,lives_in,Lisbon,0.4,,set,asserted,state,1,I live in Lisbon", "low-confidence"),
        ("home,lives_in,Lisbon,0.9,,set,hypothetical,state,1,I live in Lisbon", "not-asserted"),
        ("dietary,vegan,true,0.9,,set,asserted,state,3,My sister Mia is vegan", "about-someone-else"),
        ("identity,age,77,0.9,Bo,set,asserted,state,1,my dog Bo is 7", "number-not-said"),
        (f"note,,{'x' * 500},0.9,,,,,1,I live in Lisbon", "too-long"),
        ("a;b,lives_in,Lisbon,0.9,,,,,1,I live in Lisbon", "no-address"),
    ],
)
def test_what_was_not_said_so_is_refused_with_the_reason(row, code):
    assert one(row)[1].startswith(code)


def test_someone_else_is_the_subject():
    candidate, reason = one("dietary,vegan,true,0.9,Mia,set,asserted,state,3,My sister Mia is vegan")

    assert (candidate.subject, reason) == ("mia", "")


@pytest.mark.parametrize(
    ("category", "key", "value", "sentence"),
    [
        ("health", "is_pregnant", "yes", "Is pregnant."),
        ("health", "is_pregnant", "true", "Is pregnant."),
        ("health", "is_pregnant", "no", "Is not pregnant."),
        ("health", "smokes", "No", "Does not smoke."),
        ("education", "year", "grade 7", "Is in grade 7."),
        ("car", "year", "2019", "Year: 2019."),
        ("health", "wears", "a hearing aid", "Wears a hearing aid."),
        ("health", "has_condition", "knee a bit iffy", "Health: knee a bit iffy."),
        ("schedule", "does", "takes Fenna to judo on Wednesdays", "Takes Fenna to judo on Wednesdays."),
        ("schedule", "does", "feeds Ilse's cat", "Feeds Ilse's cat."),
        ("schedule", "does", "pilates Tuesdays", "Does pilates Tuesdays."),
        ("schedule", "works_out", "runs maybe 25k a week", "Runs maybe 25k a week."),
        ("food", "eats", "eggs Benedict", "Eats eggs Benedict."),
    ],
)
def test_the_sentence_of_an_attribute_says_its_value(category, key, value, sentence):
    assert attribute_sentence(category, key, value) == sentence


def test_a_row_without_a_key_is_a_statement():
    candidate, reason = one("history,,Lives in Lisbon near the river.,0.9,,add,asserted,state,1,I live in Lisbon")

    assert (candidate.kind, candidate.text, candidate.value, reason) == (
        "statement", "Lives in Lisbon near the river.", "", "",
    )  # fmt: skip


def test_four_columns_are_enough_when_the_value_was_said():
    candidate, _ = one("home,lives_in,Lisbon,0.95")

    assert (candidate.seq, candidate.quote) == (1, "Lisbon")


@pytest.mark.parametrize(
    ("row", "quote"),
    [
        ("home,lives_in,Lisbon by the river,0.95", "Hi! I live in Lisbon, “near the river”, and my dog Bo is 7."),
        ("dietary,vegetarian,true,0.9", "I'm vegetarian."),
        ('pets,dog,"Bo, a dog",0.9', "Hi! I live in Lisbon, “near the river”, and my dog Bo is 7."),
    ],
)
def test_a_row_without_a_quote_rests_on_the_sentence_that_holds_its_words(row, quote):
    candidate, reason = one(row)

    assert reason == ""
    assert quote.endswith(candidate.quote)


@pytest.mark.parametrize(
    ("row", "quote"),
    [
        ("goal,trip_length_days,10,0.8", "Ten days in Tokyo."),
        ("budget,max_usd,3000,0.9", "We can spend three thousand dollars."),
    ],
)
def test_a_number_may_have_been_said_in_words(row, quote):
    talk = {1: Message("user", "Ten days in Tokyo. We can spend three thousand dollars. Boats make me sick.", seq=1)}
    candidate, reason = one(row, PromptWindow(talk))

    assert (candidate.quote, reason) == (quote, "")


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("goal,trip_length_days,10,0.8", "My ten cousins will come."),
        ("goal,trip_length_days,10,0.8", "Ten days here. Then ten days there."),
        ("goal,trip_length_days,12,0.8", "Ten days in Tokyo."),
    ],
)
def test_a_number_in_words_about_something_else_is_no_evidence(row, said):
    assert one(row, PromptWindow({1: Message("user", said, seq=1)}))[1].startswith("no-message")


@pytest.mark.parametrize(
    "said",
    [
        "Tell me how to install Redis with Docker.", "Show me how to use Redis.", "Please explain Redis to me.", "Help me install Redis.",
        "Compare Redis and Memcached.", "Give me an example of a Redis query.", "We're evaluating Redis.", "I'm learning about Redis.",
        "We looked at Redis last year.", "I read an article about Redis.", "I heard Redis is fast.", "I'm trying out Redis.",
    ],
)  # fmt: skip
@pytest.mark.parametrize("row", ["technical,,Uses Redis,0.95", "tech,uses_tool,Redis,0.95"])
def test_asking_about_a_tool_or_looking_into_it_is_not_using_it(row, said):
    assert one(row, PromptWindow({1: Message("user", said, seq=1)}))[1].startswith("not-asserted")


@pytest.mark.parametrize(
    "said",
    [
        "Our Redis is down.", "Fix my Redis config.", "Help me debug our Redis cluster.", "We tried Memcached, but we use Redis.",
        "We use Redis, explain persistence please.", "Help me: I use Redis.", "Everything runs on Redis.",
    ],
)  # fmt: skip
@pytest.mark.parametrize("row", ["technical,,Uses Redis,0.95", "tech,uses_tool,Redis,0.95"])
def test_a_request_that_says_that_a_tool_is_used_states_it(row, said):
    assert one(row, PromptWindow({1: Message("user", said, seq=1)}))[1] == ""


def test_a_row_of_four_columns_that_nobody_said_has_no_message():
    assert one("work,works_at,Evilcorp,0.95")[1].startswith("no-message")


def test_a_loose_quote_is_mended_to_its_sentence():
    candidate, reason = one("home,lives_in,Lisbon,0.95,,set,asserted,state,1,I live near the river in Lisbon")

    assert reason == ""
    assert candidate.quote in TALK[1].content


def test_an_answer_to_a_question_may_take_its_words():
    talk = {
        1: Message("assistant", "Do you still live in Madrid?", seq=1),
        2: Message("user", "Yes.", seq=2),
    }
    candidate, reason = one("home,lives_in,Madrid,0.9,,set,asserted,state,2,Yes", PromptWindow(talk))

    assert (candidate.value, reason) == ("Madrid", "")


@pytest.mark.parametrize(
    "text",
    ["If I lived in Porto I would surf.", "My boss thinks that I live in Porto.", "Do I live in Porto?"],
)
def test_words_that_assert_nothing_are_refused_whatever_the_model_says(text):
    talk = {1: Message("user", text, seq=1)}
    _, reason = one("home,lives_in,Porto,0.99,,set,asserted,state,1,Porto", PromptWindow(talk))

    assert reason.startswith("not-asserted")


@given(
    st.text(max_size=400)
    | st.lists(st.sampled_from([*FORMS.values(), ",", '"', "\n", "{", "]", LISBON]), max_size=6).map("".join)
)
def test_no_answer_makes_it_fail_in_any_other_way(text):
    """Whatever is read stands in the window, word for word."""
    try:
        found = parse_facts(Answer(text, "m"), WINDOW, source="m")
    except BadAnswer:
        return
    grounded, _ = ground(found.candidates, TALK, min_confidence=0.0)

    assert all(TALK[c.seq].content[e.start : e.end] == e.quote for c, e in grounded)
    assert all(TALK[c.seq].role == "user" for c, _ in grounded)


@pytest.mark.parametrize("size", range(0, len(FORMS["as asked"]) + 1, 7))
def test_an_answer_cut_off_anywhere_yields_whole_rows_or_fails(size):
    try:
        found = parse_facts(Answer(FORMS["as asked"][:size], "m", finish="length"), WINDOW, source="m").candidates
    except BadAnswer:
        return

    assert {c.value for c in found} <= {"Lisbon", "true"}
    assert all(
        c.quote in ("I live in Lisbon", "I'm vegetarian") or TALK[c.seq].content.find(c.quote) >= 0 for c in found
    )


def test_escapes_of_what_no_store_holds_are_replaced():
    row = json.dumps([{**AS_JSON[0], "fact_value": "Lis\x00bon \ud800"}])

    assert [c.value for c in parse_fact_rows(row, WINDOW, source="m").candidates] == ["Lis\ufffdbon \ufffd"]


def test_a_huge_answer_takes_no_long_time():
    many = "\n".join([HEAD] + [LISBON] * 20_000)

    assert len(parse_facts(Answer(many, "m"), WINDOW, source="m").candidates) == 200


@pytest.mark.parametrize(
    ("row", "lifetime"),
    [
        ("allergy,allergic_to,latex,0.9,,add,1,allergic to latex", "permanent"),
        ("identity,birth_date,1990-05-02,0.9,,set,1,born on 1990-05-02", "permanent"),
        ("home,lives_in,Lisbon,0.9,,set,1,live in Lisbon", "state"),
        ("life,happened,passed the exam,0.9,,add,1,passed the exam", "event"),
        ("plan,plans_to,paint the hall on 2026-03-20,0.9,,add,1,plan to paint the hall on 2026-03-20", "transient"),
        ("context,,Stays with Bo for now.,0.9,,add,1,stay with Bo for now", "transient"),
        ("allergy,allergic_to,latex,0.9,,add,asserted,state,1,allergic to latex", "state"),
    ],
)
def test_how_long_a_fact_holds_follows_from_what_it_is_about(row, lifetime):
    """A model need not say so; where it does, as older prompts asked for, it counts."""
    said = (
        "I'm allergic to latex, was born on 1990-05-02 and live in Lisbon. I passed the exam. "
        "I plan to paint the hall on 2026-03-20. I stay with Bo for now."
    )
    window = PromptWindow({1: Message("user", said, at=AT, seq=1, conversation="a")})
    found = parse_fact_rows(row, window, source="m")

    assert [(one.lifetime, found.dropped) for one in found.candidates] == [(lifetime, [])]


def test_a_plan_is_over_after_its_day():
    said = Message("user", "I plan to paint the hall on Friday.", at=AT, seq=1, conversation="a")
    row = "plan,plans_to,paint the hall on 2026-03-20,0.9,,add,1,paint the hall on Friday"
    (found,) = parse_fact_rows(row, PromptWindow({1: said}), source="m").candidates

    assert found.valid_to_ms == datetime(2026, 3, 21, tzinfo=UTC).timestamp() * 1000


def test_a_trip_and_a_race_end_with_their_days_and_a_request_for_replies_is_no_question():
    said = Message(
        "user",
        "we'll be in Puglia from 11 to 25 July 2026. next: the Berlin marathon in September. can you keep answers short?",
        seq=1,
        at=AT,
    )
    rows = "\n".join(
        [
            "trip,going_to,Puglia,0.95,,add,1,we'll be in Puglia",
            "trip,ends_on,2026-07-25,0.95,,set,1,from 11 to 25 July 2026",
            "goal,training_for,the Berlin marathon,0.9,,add,1,the Berlin marathon in September",
            "communication,reply_length,short,0.95,,set,1,can you keep answers short",
        ]
    )
    found = parse_fact_rows(rows, PromptWindow(messages={1: said}), source="x")
    ends = {
        one.key: one.valid_to_ms and datetime.fromtimestamp(one.valid_to_ms / 1000, UTC).date().isoformat()
        for one in found.candidates
    }

    assert found.dropped == []
    assert ends == {
        "going_to": "2026-07-26",
        "ends_on": "2026-07-26",
        "training_for": "2026-10-01",
        "reply_length": None,
    }
