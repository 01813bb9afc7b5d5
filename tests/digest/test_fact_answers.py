"""Whatever form an answer about facts takes, what can be read is read, and nothing that was not said."""

from __future__ import annotations

import json
import tomllib
from datetime import UTC, datetime
from pathlib import Path

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
    ["NONE", "none.", "```\nNONE\n```", "[]", "{}", '{"facts": []}', "No facts to record", "No durable facts have changed.", HEAD, f"```csv\n{HEAD}\n```",
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
        ("trip", "starts_on", "2026-06-01", "The trip starts on 2026-06-01."),
        ("work", "starts_on", "2026-06-01", "Starts on 2026-06-01."),
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


IN_OTHER_WORDS = [
    ("Boats make me queasy.", "health,motion_sick,true,0.9"),
    ("I never touch meat.", "dietary,vegetarian,true,0.95"),
    ("Heights terrify me.", "health,fear,heights,0.9"),
    ("I'm usually up before the birds.", "schedule,early_riser,true,0.9"),
    ("My knees can't handle stairs any more.", "health,mobility_limited,true,0.9"),
    ("Bread gives me cramps.", "allergy,intolerant_to,gluten,0.9"),
    ("We get by on little money.", "budget,level,low,0.8"),
    ("Every cent counts for us.", "budget,tight,true,0.8"),
    ("I can't sleep through the night.", "health,insomnia,true,0.9"),
    ("Nothing with four legs ends up on my plate.", "dietary,vegetarian,true,0.9"),
    ("I'd rather sit where I can see outside.", "preference,seat,window,0.9"),
    ("I haven't touched a cigarette in ten years.", "health,smokes,false,0.9"),
    ("I haven't touched a cigarette in years.", "health,non_smoker,true,0.9"),
    ("I pedal to the office every day.", "transport,commute,bicycle,0.9"),
    ("I burn within minutes in the sun.", "health,sensitive_skin,true,0.9"),
    ("I put in sixty hours a week.", "work,long_hours,true,0.9"),
    ("Boats make me queasy.", "context,,Gets motion sickness,0.9"),
    ("I never touch meat.", "context,,Follows a vegetarian diet,0.9"),
    ("I pedal to the office every day.", "context,,Commutes by bicycle,0.9"),
    ("So, no ferry for us, boats make me queasy.", "health,motion_sick,true,0.9"),
    ("I love the sea. But boats make me queasy!", "health,motion_sick,true,0.9"),
]


@pytest.mark.parametrize(("said", "row"), IN_OTHER_WORDS)
def test_a_first_row_may_say_in_words_of_its_own_what_everyday_words_mean(said, row):
    candidate, reason = one(row, PromptWindow({1: Message("user", said, seq=1)}))

    assert (reason, candidate.quote in said) == ("", True)


@pytest.mark.parametrize(
    ("said", "row"),
    [
        ("I hate Mondays.", "health,is_diabetic,true,0.95"),
        ("I hate Mondays.", "dietary,vegetarian,true,0.95"),
        ("My train was late again.", "transport,commute,bicycle,0.95"),
        ("The weather is awful here.", "health,depressed,true,0.95"),
        ("I had soup for lunch.", "dietary,vegetarian,true,0.95"),
        ("My boss shouted at me today.", "work,unemployed,true,0.95"),
        ("Boats make my sister queasy.", "health,motion_sick,true,0.95"),
        ("Do boats make me queasy?", "health,motion_sick,true,0.95"),
        ("If boats make me queasy I'll fly.", "health,motion_sick,true,0.95"),
        ("My brother says boats make me queasy.", "health,motion_sick,true,0.95"),
        ("Boats make me queasy.", "health,is_diabetic,true,0.95"),
        ("Boats make me queasy.", "health,seasick_since,2019,0.95"),
        ("Boats make me queasy.", "health,motion_sick,false,0.95"),
        ("I never touch meat.", "food,eats_meat,true,0.95"),
        ("I never touch meat.", "dietary,vegan,true,0.95"),
        ("Write a story that begins: \"Heights terrify me.\"", "health,fear,heights,0.95"),
        ("I went to a wedding on Saturday.", "identity,married,true,0.95"),
        ("I bought bread and milk.", "health,lactose_intolerant,true,0.95"),
        ("I read about sailing.", "health,motion_sick,true,0.95"),
        ("I'm tired today.", "health,insomnia,true,0.95"),
        ("Bread gave me cramps yesterday.", "allergy,intolerant_to,gluten,0.95"),
        ("I used to smoke.", "health,smokes,true,0.95"),
        ("I haven't touched a cigarette in years.", "health,smoker,true,0.95"),
        ("I haven't touched a cigarette in years.", "health,smokes,true,0.95"),
        ("I never learned to drive.", "transport,has_car,true,0.95"),
        ("I pedal to the office every day.", "work,works_at,Initech,0.95"),
        ("My kids pedal to school every day.", "transport,commute,bicycle,0.95"),
        ("Heights terrify me.", "health,fear,spiders,0.95"),
        ("The stairs are too much for my dad.", "health,mobility_limited,true,0.95"),
        ("Every cent counts in this game.", "budget,tight,true,0.95"),
        ("> Boats make me queasy.", "health,motion_sick,true,0.95"),
        ("Boats might make me queasy.", "health,motion_sick,true,0.95"),
        ("Do not say that boats make me queasy.", "health,motion_sick,true,0.95"),
        ("Translate: Crowds wear me out.", "identity,personality,introvert,0.95"),
        ("I wish I could say I write code for a living.", "work,occupation,software developer,0.95"),
        ("I hate Mondays.", "context,,Is diabetic,0.95"),
        ("Boats make me queasy.", "context,,Does not get motion sick,0.95"),
        ("How does Redis work?", "technical,,Runs a Redis cluster,0.95"),
        ("I pedal to the office every day.", "context,,Commutes by bicycle to Initech in Leeds,0.95"),
    ],
)  # fmt: skip
def test_a_first_row_that_the_words_do_not_mean_is_refused(said, row):
    """What is near in meaning is not what was said."""
    window = PromptWindow({1: Message("user", said, seq=1, conversation="a")})
    found = parse_facts(Answer(row, "m"), window, source="m")
    grounded, _ = ground(found.candidates, window.messages, min_confidence=0.7)

    assert grounded == []


ROWS = tomllib.loads(Path(__file__).with_name("rows_without_quotes.toml").read_text("utf-8"))


def believed(case: str) -> bool:
    """Whether the row of a case is believed of its message."""
    said, _, row = case.partition(" | ")
    window = PromptWindow({1: Message("user", said, seq=1, conversation="a")})
    found = parse_facts(Answer(row, "m"), window, source="m")
    return bool(ground(found.candidates, window.messages, min_confidence=0.7)[0])


@pytest.mark.parametrize("case", [*ROWS["other_words"], *ROWS["plain"]])
def test_a_row_without_a_quote_is_believed_where_the_words_say_it(case):
    assert believed(case)


@pytest.mark.parametrize("case", ROWS["refused"])
def test_a_row_whose_words_only_occur_is_refused(case):
    """ "There's always a dog in my yoga class" says of no pet, and "Boats make me happy" of no seasickness."""
    assert not believed(case)


def sentence_believed(case: str) -> bool:
    """Whether the sentence of a case, of one category, is believed of its message."""
    said, _, told = case.partition(" | ")
    category, _, content = told.partition(": ")
    answer = json.dumps([{"content": content, "category": category, "confidence": 0.9}])
    window = PromptWindow({1: Message("user", said, seq=1, conversation="a")})
    found = parse_facts(Answer(answer, "m"), window, source="m")
    return bool(ground(found.candidates, window.messages, min_confidence=0.7)[0])


@pytest.mark.parametrize("case", ROWS["sentences"])
def test_a_sentence_without_a_quote_is_believed_where_the_words_say_it(case):
    """Numbers may be written in another way, and a relative called by another word."""
    assert sentence_believed(case)


@pytest.mark.parametrize("case", ROWS["sentences_refused"])
def test_a_sentence_whose_clause_says_something_else_is_refused(case):
    """What was so, is wanted, is another's, or a number of another thing."""
    assert not sentence_believed(case)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("The taxi was 40 last time. | budget,max_eur,40,0.9", "number-not-said: the words hold the number, and not as"),
        ("I did 12 hours in a Cessna. | identity,age,12,0.9", "number-not-said: the words hold the number, and not as an age"),
        ("We moved from Leeds to Bristol. | identity,city,Leeds,0.9", "not-asserted: the words say what was so before"),
        ("Thinking about moving our logs to Loki. | technical,logging,Loki,0.9", "not-asserted: the words say what is wanted"),
    ],
)  # fmt: skip
def test_a_row_is_refused_with_what_its_clause_says(said, reason):
    said, _, row = said.partition(" | ")
    window = PromptWindow({1: Message("user", said, seq=1, conversation="a")})

    assert [why for _, why in parse_facts(Answer(row, "m"), window, source="m").dropped if why.startswith(reason)]


@pytest.mark.parametrize(
    ("said", "content", "category"),
    [
        ("I like lightweight editors.", "Prefers VS Code", "preference"),
        ("I like lightweight editors.", "Prefers lightweight editors like Vim", "preference"),
        ("I prefer statically typed languages.", "Prefers TypeScript", "preference"),
        ("I prefer statically typed languages.", "Prefers statically typed languages such as TypeScript", "preference"),
        ("My linter complains about tabs.", "Uses ESLint", "technical"),
        ("My linter complains about tabs.", "Prefers tabs over spaces", "preference"),
        ("We should switch to Bun some day.", "Uses Bun", "technical"),
        ("We should switch to Bun some day.", "Switched to Bun", "technical"),
        ("I need a test runner for my React app.", "Uses Jest", "technical"),
        ("I need a test runner for my React app.", "Uses Jest with React", "technical"),
        ("I'm considering Svelte for the next project.", "Uses Svelte", "technical"),
        ("I'm considering Svelte for the next project.", "Prefers Svelte", "preference"),
        ("Our new hire wants Emacs.", "Uses Emacs", "technical"),
        ("I've heard good things about Zed.", "Prefers Zed", "preference"),
        ("Give me an example in Kotlin.", "Prefers Kotlin", "preference"),
        ("Give me an example in Kotlin.", "Prefers examples in Kotlin", "preference"),
        ("I hate YAML.", "Prefers JSON over YAML", "preference"),
        ("I hate YAML.", "Prefers TOML", "preference"),
    ],
)  # fmt: skip
def test_a_tool_that_nobody_named_or_a_taste_that_nobody_told_is_refused_without_a_quote(said, content, category):
    """Wanting is not using, and naming is not preferring."""
    row = json.dumps([{"content": content, "category": category, "confidence": 0.95}])

    assert one(row, PromptWindow({1: Message("user", said, seq=1)}))[1] != ""


@pytest.mark.parametrize(
    ("said", "content", "category"),
    [
        ("I use VS Code and like dark themes.", "Prefers VS Code with dark themes", "preference"),
        ("Kotlin beats Java for me.", "Prefers Kotlin over Java", "preference"),
        ("I write tests with pytest.", "Uses pytest for tests", "technical"),
        ("I'd pick Svelte over React any day.", "Prefers Svelte over React", "preference"),
        ("I need a test runner for my React app.", "Works on a React app", "technical"),
        ("Postgres is our database.", "Uses PostgreSQL as database", "technical"),
    ],
)  # fmt: skip
def test_a_tool_that_was_named_is_believed_without_a_quote(said, content, category):
    row = json.dumps([{"content": content, "category": category, "confidence": 0.95}])

    assert one(row, PromptWindow({1: Message("user", said, seq=1)}))[1] == ""


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
