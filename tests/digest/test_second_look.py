"""A model's claim is refused for what the user's words say, clause by clause, and for nothing else."""

from __future__ import annotations

import json
import tomllib
from datetime import UTC, datetime
from pathlib import Path

import pytest

from holdfast import Memory
from holdfast.clock import from_ms
from holdfast.digest.answers.episode_answers import SaidBefore, parse_bullets
from holdfast.digest.answers.fact_answers import PromptWindow, parse_fact_rows
from holdfast.digest.grounding import ground
from holdfast.digest.slots import amounts_in_words
from holdfast.types import Fact, Message

AT = datetime(2026, 3, 14, 9, tzinfo=UTC)
# What is said (u: the user, a: the assistant), a row of a model, and the code of the refusal; empty when it is believed.
CASES = [
    # (messages(role prefix a:/u:), row, expected code or '')
    (
        ["u:My parents, who are 63 and 77, are coming on Friday, can you help me plan a dinner?"],
        'identity,age,63 and 77,0.9,parents,set,asserted,state,1,"My parents, who are 63 and 77"',
        "",
    ),
    (
        ["u:Can you write a card for my brother Sam, who turns 30 on Sunday?"],
        "family,brother,Sam,0.9,,add,asserted,state,1,my brother Sam",
        "",
    ),
    (
        ["u:Can you write a card for my brother Sam, who turns 30 on Sunday?"],
        "identity,age,30,0.9,Sam,set,asserted,state,1,who turns 30 on Sunday",
        "",
    ),
    (
        ["u:I turned 24 yesterday, feeling old."],
        "identity,birth_date,2002-03-13,0.9,,set,asserted,permanent,1,turned 24 yesterday",
        "",
    ),
    (
        ["u:Our daughter Nell turns 6 on Friday."],
        "identity,birth_date,1998-03-20,0.9,Nell,set,asserted,permanent,1,Nell turns 6 on Friday",
        "number-not-said",
    ),
    (
        ["u:The Hedgehogs were great, but St Oswald's is where I teach, so one stop less."],
        "work,works_at,St Oswald's,0.9,,set,asserted,state,1,St Oswald's is where I teach",
        "",
    ),
    (
        ["u:My sister is back. She's moved in with me until she finds a job."],
        "home,lives_with,sister until she finds a job,0.9,,add,asserted,state,1,She's moved in with me until she finds a job",
        "",
    ),
    (
        ["u:My sister is back. She's moved in with Tom until she finds a job."],
        "home,lives_with,Tom until she finds a job,0.9,,add,asserted,state,1,She's moved in with Tom until she finds a job",
        "about-someone-else",
    ),
    (
        ["u:Mi vecina Pilar tiene un perro que ladra mucho."],
        "family,neighbor,Pilar,0.9,,add,asserted,state,1,Mi vecina Pilar",
        "",
    ),
    (
        ["u:Mi vecina Pilar tiene un perro que ladra mucho."],
        "pets,has_pet,perro,0.9,,add,asserted,state,1,Pilar tiene un perro",
        "about-someone-else",
    ),
    (
        ["u:My wife Priya wants to move to Hull for her new job at the port. Nothing is decided."],
        "work,works_at,the port,0.9,wife,set,asserted,state,1,her new job at the port",
        "not-asserted",
    ),
    (
        ["u:My wife Priya wants to leave her job at the port. Nothing is decided."],
        "work,works_at,the port,0.9,wife,set,asserted,state,1,her job at the port",
        "",
    ),
    (
        [
            "u:Can you write a note to the nursery: Sam may be collected by me or my mother Ruth, since Tom's on nights this autumn."
        ],
        "family,mother,Ruth,0.9,,set,asserted,state,1,my mother Ruth",
        "",
    ),
    (
        ["u:Can you translate this note to the nursery: Sam may be collected by me or my mother Ruth."],
        "family,mother,Ruth,0.9,,set,asserted,state,1,my mother Ruth",
        "said-by-others",
    ),
    (
        ["u:my mentor is called Freyja, she scares me a bit"],
        "work,mentor,Freyja,0.9,,set,asserted,state,1,my mentor is called Freyja",
        "",
    ),
    (
        ["u:my mentor has asthma, so no smoking near her"],
        "health,has_condition,asthma,0.9,,add,asserted,state,1,my mentor has asthma",
        "about-someone-else",
    ),
    (
        ["u:The dentist again. They moved it to Thursday cos the boss is away."],
        "appointment,dentist,Thursday 2026-03-19,0.9,,set,asserted,event,1,They moved it to Thursday",
        "",
    ),
    (["u:十月要去京都旅行，跟我妈一起。"], "trip,going_to,京都,0.9,,set,asserted,event,1,十月要去京都旅行", ""),
    (
        ["u:我妈十月要去京都旅行。"],
        "trip,going_to,京都,0.9,,set,asserted,event,1,十月要去京都旅行",
        "about-someone-else",
    ),
    (
        ["u:What can I cook for my vegan sister Mia?"],
        "dietary,vegan,true,0.9,Mia,set,asserted,state,1,my vegan sister Mia",
        "",
    ),
    (["u:Is my sister vegan?"], "dietary,vegan,true,0.9,sister,set,asserted,state,1,my sister vegan", "not-asserted"),
    (
        ["u:Is my brother Sam allergic to nuts?"],
        "allergy,allergic_to,nuts,0.9,Sam,add,asserted,state,1,my brother Sam allergic to nuts",
        "not-asserted",
    ),
    (
        ["u:I'm thinking of inviting Kai, 44, who is my friend from college."],
        'family,friend,Kai,0.9,,add,asserted,state,1,"inviting Kai, 44, who is my friend from college"',
        "",
    ),
    (
        ["u:I'm thinking of inviting Kai, 44, who is my friend from college."],
        'identity,age,44,0.9,Kai,set,asserted,state,1,"Kai, 44, who is my friend"',
        "",
    ),
    (
        ["u:Our two girls have exams soon: Nell on Monday and Ada on 3 June."],
        "family,daughter,Nell,0.9,,add,asserted,state,1,Our two girls have exams soon: Nell",
        "",
    ),
    (
        ["u:I want to set up Redis as a cache."],
        "tech,uses_database,Redis,0.9,,set,asserted,state,1,I want to set up Redis",
        "not-asserted",
    ),
    (
        ["u:I want to set up Redis as a cache."],
        "goal,wants_to,set up Redis,0.9,,add,asserted,state,1,I want to set up Redis",
        "",
    ),
    (
        ["u:I'd like to move to Porto one day."],
        "home,lives_in,Porto,0.9,,set,asserted,state,1,move to Porto",
        "not-asserted",
    ),
    (
        ["u:I'm thinking of moving to Porto."],
        "goal,,Is considering moving to Porto.,0.9,,add,asserted,state,1,I'm thinking of moving to Porto",
        "",
    ),
    (
        ["u:I'm thinking of moving to Porto."],
        "plan,moving_to,Porto,0.9,,set,asserted,state,1,I'm thinking of moving to Porto",
        "",
    ),
    (
        ["u:If we win, we move to Porto."],
        "plan,moving_to,Porto,0.9,,set,asserted,state,1,we move to Porto",
        "not-asserted",
    ),
    (
        ["u:At the vet they said Luna is allergic to chicken."],
        "allergy,allergic_to,chicken,0.9,Luna,add,asserted,state,1,Luna is allergic to chicken",
        "",
    ),
    (
        ["u:The vet said Luna is allergic to chicken."],
        "allergy,allergic_to,chicken,0.9,Luna,add,asserted,state,1,Luna is allergic to chicken",
        "",
    ),
    (
        ["u:My neighbor said Luna is allergic to chicken."],
        "allergy,allergic_to,chicken,0.9,Luna,add,asserted,state,1,Luna is allergic to chicken",
        "not-asserted",
    ),
    (
        ["u:Ana suggested a picnic, and Kai is bringing the salad."],
        "plan,brings,salad,0.9,Kai,add,asserted,event,1,Kai is bringing the salad",
        "",
    ),
    (
        ["a:How often do you see her in Bergen?", "u:Every two months."],
        "behavioral,,Sees her mother in Bergen every two months.,0.9,,add,asserted,state,2,Every two months",
        "",
    ),
    (
        ["a:Do you live in Madrid?", "u:No, in Porto."],
        'home,lives_in,Madrid,0.9,,set,asserted,state,2,"No, in Porto"',
        "said-by-others",
    ),
    (
        ["a:You work at Evilcorp, don't you?", "u:Thanks, that helps a lot."],
        "work,works_at,Evilcorp,0.9,,set,asserted,state,2,that helps a lot",
        "said-by-others",
    ),
    (
        ["a:So you take 5 mg of bisoprolol now?", "u:No, ramipril."],
        'medication,bisoprolol,5 mg,0.9,,set,asserted,state,2,"No, ramipril"',
        "said-by-others",
    ),
    (
        ["u:Ich möchte Redis einrichten."],
        "tech,uses_database,Redis,0.9,,set,asserted,state,1,Redis einrichten",
        "not-asserted",
    ),
    (
        ["u:Kannst du mir helfen? Meine Eltern, die 63 und 77 sind, kommen am Freitag."],
        'identity,age,63 und 77,0.9,Eltern,set,asserted,state,1,"Meine Eltern, die 63 und 77 sind"',
        "",
    ),
    (
        ["u:Was kann ich für meine vegane Schwester Mia kochen?"],
        "dietary,vegan,true,0.9,Mia,set,asserted,state,1,meine vegane Schwester Mia",
        "",
    ),
    (
        ["u:Beim Tierarzt hieß es, Luna ist allergisch gegen Huhn."],
        "allergy,allergic_to,Huhn,0.9,Luna,add,asserted,state,1,Luna ist allergisch gegen Huhn",
        "",
    ),
    (
        ["u:Quiero montar Redis como caché."],
        "tech,uses_database,Redis,0.9,,set,asserted,state,1,montar Redis",
        "not-asserted",
    ),
    (
        ["u:¿Qué puedo cocinar para mi hermana Inés, que es vegana?"],
        "dietary,vegan,true,0.9,Inés,set,asserted,state,1,que es vegana",
        "",
    ),
    (
        ["u:En el veterinario nos dijeron que Luna es alérgica al pollo."],
        "allergy,allergic_to,pollo,0.9,Luna,add,asserted,state,1,Luna es alérgica al pollo",
        "",
    ),
    (
        ["u:Je voudrais installer Redis."],
        "tech,uses_database,Redis,0.9,,set,asserted,state,1,installer Redis",
        "not-asserted",
    ),
    (
        ["u:Que puis-je cuisiner pour ma sœur Inès, qui est végane ?"],
        "dietary,vegan,true,0.9,Inès,set,asserted,state,1,qui est végane",
        "",
    ),
    (["u:我想用Redis做缓存。"], "tech,uses_database,Redis,0.9,,set,asserted,state,1,我想用Redis", "not-asserted"),
    (
        ["u:顺便说一下，我爸爸是成都人，我跟他说中文。"],
        "language,spoken,中文,0.9,,add,asserted,state,1,我跟他说中文",
        "",
    ),
    (["u:我朋友说我住在成都。"], "home,lives_in,成都,0.9,,set,asserted,state,1,我住在成都", "not-asserted"),
    (
        ["u:Redis를 쓰고 싶어요."],
        "tech,uses_database,Redis,0.9,,set,asserted,state,1,Redis를 쓰고 싶어요",
        "not-asserted",
    ),
    (
        ["u:I need help with my job at Acme, what do you suggest?"],
        "work,works_at,Acme,0.9,,set,asserted,state,1,my job at Acme",
        "",
    ),
    (
        ["a:Would you buy the house yourself?", "u:We can't afford that."],
        "context,,Cannot afford to buy the house.,0.9,,add,asserted,state,2,We can't afford that",
        "",
    ),
    (
        ["u:My boss says we should move to Graz, but I'd rather not."],
        'preference,,Would rather not move to Graz.,0.9,,add,asserted,state,1,"we should move to Graz, but I\'d rather not"',
        "",
    ),
    (
        ["u:Should I take the job at Acme?"],
        "work,works_at,Acme,0.9,,set,asserted,state,1,the job at Acme",
        "not-asserted",
    ),
    (["u:I applied for a job at Acme."], "work,works_at,Acme,0.9,,set,asserted,state,1,a job at Acme", "not-asserted"),
    (
        ["u:My brother Tom, who lives in Rome, is vegan, do you have a recipe?"],
        "dietary,vegan,true,0.9,Tom,set,asserted,state,1,is vegan",
        "",
    ),
    (
        ["u:My brother Tom, who lives in Rome, is vegan."],
        "home,lives_in,Rome,0.9,,set,asserted,state,1,who lives in Rome",
        "about-someone-else",
    ),
    (
        ["u:Any good books on Norwegian? I've started learning it."],
        "goal,is_learning,Norwegian,0.9,,add,asserted,state,1,I've started learning it",
        "",
    ),
    (
        ["u:I see the osteopath on Thursday at 4."],
        "appointment,osteopath,2026-03-19 16:00,0.9,,set,asserted,transient,1,I see the osteopath on Thursday at 4",
        "",
    ),
    (
        ["u:The clinic put me on ramipril 5 mg, then they upped it to 10."],
        "medication,ramipril,10 mg,0.9,,set,asserted,state,1,they upped it to 10",
        "",
    ),
    (
        ["u:My neighbor takes ramipril, he upped it to 10."],
        "medication,ramipril,10 mg,0.9,,set,asserted,state,1,he upped it to 10",
        "about-someone-else",
    ),
    (
        ["u:Is 150 mg of sertraline a lot? I was on 75.", "a:It is common.", "u:I'm on the 150 now since Thursday."],
        "medication,sertraline,150 mg,0.9,,set,asserted,state,3,I'm on the 150 now",
        "",
    ),
    (
        ["u:Did I say I'm coeliac? That bread won't do."],
        "health,has_condition,coeliac,0.9,,add,asserted,permanent,1,I'm coeliac",
        "",
    ),
    (
        ["u:ye. my gran says im mad, shes 84 and still climbs trees"],
        "identity,age,84,0.9,gran,set,1,shes 84",
        "",
    ),
    (
        ["u:what can a vegan order there, asking for me, no cheese since i was 12"],
        "dietary,vegan,true,0.9,,set,1,what can a vegan order there",
        "",
    ),
    (["u:what can a vegan order there?"], "dietary,vegan,true,0.9,,set,1,what can a vegan order there", "not-asserted"),
    (["a:那你跟妈妈去吗？", "u:跟我妈一起去。"], "trip,travels_with,妈妈,0.9,,add,2,跟我妈一起去", ""),
    (["a:你有猫吗？", "u:现在就我和猫。"], "pets,has_pet,猫,0.9,,add,2,现在就我和猫", ""),
    (["a:您喜欢钓鱼吗？", "u:我喜欢爬山。"], "hobby,does,钓鱼,0.9,,add,2,我喜欢爬山", "said-by-others"),
    (["u:they moved it to thurs 4"], "appointment,interview,Thursday 4pm,0.9,,set,1,they moved it to thurs 4", ""),
    (
        ["u:She wants me to quit sugar. No way. Life is short."],
        'preference,,Does not want to quit sugar although Kim wants it.,0.9,,add,1,"She wants me to quit sugar. No way"',
        "",
    ),
    (
        ["u:She wants to quit sugar. Life is short."],
        "goal,wants_to,quit sugar,0.9,,add,1,She wants to quit sugar",
        "about-someone-else",
    ),
    (["u:Since you asked: I am allergic to latex."], "allergy,allergic_to,latex,0.9,,add,1,I am allergic to latex", ""),
    (["u:In case you wonder: I moved to Hull."], "home,lives_in,Hull,0.9,,set,1,I moved to Hull", ""),
    (["u:Queria muito morar em Faro um dia."], "home,lives_in,Faro,0.9,,set,1,morar em Faro", "not-asserted"),
    (
        ["u:Vorrei tanto comprare una barca, ma costa troppo."],
        "possession,owns,barca,0.9,,add,1,comprare una barca",
        "not-asserted",
    ),
    (
        ["u:Nell has moved out, she went to Cork yesterday."],
        "home,lives_with,Nell,0.9,,remove,1,Nell has moved out",
        "",
    ),
    (["u:Nell quit rowing."], "hobby,plays,rowing,0.9,,remove,1,Nell quit rowing", "about-someone-else"),
    (["u:Thinking of selling the loom, it's too big."], "possession,owns,a loom,0.9,,add,1,selling the loom", ""),
    (["u:Thinking of buying a loom."], "possession,owns,a loom,0.9,,add,1,buying a loom", "not-asserted"),
    # a sentence without its "I", and an opinion on what others make, are the user's own
    (
        ["u:Paris?! That is really great, Tom! Been only to Porto once."],
        "life,happened,been to Porto once,0.9,,add,1,Been only to Porto once",
        "",
    ),
    (["u:Went vegan last month."], "dietary,vegan,true,0.9,,set,1,Went vegan last month", ""),
    (["u:Zendesk is history, it's Intercom now."], "tech,uses_tool,Intercom,0.9,,add,1,it's Intercom now", ""),
    (["u:Coffee is out, it's matcha these days."], "food,drinks,matcha,0.9,,add,1,it's matcha these days", ""),
    (
        ["u:Anna is vegan, it's tofu these days."],
        "food,eats,tofu,0.9,,add,1,it's tofu these days",
        "about-someone-else",
    ),
    (
        ["u:I agree with you, Thai food is the best, though I love pizza."],
        "favorite,food,Thai food,0.9,,set,1,Thai food is the best",
        "",
    ),
    (
        ["u:She has some great novels, such as Beloved."],
        'preference,likes,Beloved,0.9,,add,1,"She has some great novels, such as Beloved"',
        "",
    ),
    (["u:She has a nut allergy."], "allergy,allergic_to,nuts,0.9,,add,1,She has a nut allergy", "about-someone-else"),
    (
        ["u:Ana often works at Siemens."],
        "work,works_at,Siemens,0.9,,set,1,Ana often works at Siemens",
        "about-someone-else",
    ),
    (["u:you should really eat more kale"], "food,eats,kale,0.9,,add,1,eat more kale", "about-someone-else"),
    # a word of time that another used before, and another form of the user's word, are nobody else's
    (
        ["a:I have danced since I was a kid.", "u:Me, I lost my job this month."],
        "work,employment_status,unemployed since March 2026,0.9,,set,2,I lost my job this month",
        "",
    ),
    (
        ["a:Is this the Kenyan flag?", "u:Yes! I come from Kenya."],
        "identity,nationality,Kenyan,0.9,,add,2,I come from Kenya",
        "",
    ),
    (
        ["a:Do you come to Miami often?", "u:Miami has great bars! I have cousins who live over there."],
        "family,has,cousins in Miami,0.9,,add,2,I have cousins who live over there",
        "",
    ),
]


def window(talk, **more):
    roles = {"a": "assistant", "u": "user"}
    told = {n: Message(roles[line[0]], line[2:], at=AT, seq=n, conversation="c") for n, line in enumerate(talk, 1)}
    return PromptWindow(told, **more)


def refusal(row, shown):
    """The reason why a row is not believed, or empty; the rows that are no news have none."""
    found = parse_fact_rows(row, shown, source="m")
    _, refused = ground(found.candidates, shown.messages, min_confidence=0.7)
    return next((reason for _, reason in (*found.dropped, *refused)), "")


WITH_QUOTES = tomllib.loads(Path(__file__).with_name("rows_with_quotes.toml").read_text("utf-8"))["row"]


@pytest.mark.parametrize("case", WITH_QUOTES, ids=lambda case: case["row"])
def test_a_row_with_its_quote_is_refused_only_where_the_words_do_not_say_it(case):
    assert bool(refusal(case["row"], window(case["said"]))) is case["refused"]


@pytest.mark.parametrize(("talk", "row", "code"), CASES)
def test_the_clause_decides(talk, row, code):
    assert refusal(row, window(talk)).split(":")[0] == code


def known(value, *, category="medication", key="ramipril", subject="self"):
    return Fact(
        id="f1", kind="attribute", subject=subject, category=category, key=key, value=value, text=value, confidence=1.0,
        cardinality="single", lifetime="state", valid_from=AT, valid_to=None, recorded_at=AT, superseded_by=None,
        evidence=(), strength=1.0, last_used_at=None, uses=0, source="m",
    )  # fmt: skip


def test_a_unit_that_is_known_needs_not_be_said_again():
    shown = window(["u:The doctor doubled my tablets to 20."], known=[known("10 mg")])

    assert refusal("medication,ramipril,20 mg,0.9,,set,asserted,state,1,doubled my tablets to 20", shown) == ""


def test_the_rest_of_a_known_value_may_be_repeated():
    shown = window(["u:It is 45 mg now."], known=[known("30 mg twice a day with food")])

    assert (
        refusal("medication,ramipril,45 mg twice a day with food,0.9,,set,asserted,state,1,It is 45 mg now", shown)
        == ""
    )


def test_what_is_known_is_removed_with_the_users_words_alone():
    talk = ["a:And the pottery evening, is that still on?", "u:I gave it up, too tired."]
    row = "hobby,does,pottery evening,0.9,,remove,asserted,state,2,I gave it up"

    assert refusal(row, window(talk, known=[known("pottery evening", category="hobby", key="does")])) == ""


def test_a_repeated_fact_is_no_refusal():
    """A model that writes again what is known has made no mistake, and nothing is recorded against it."""
    shown = window(["u:Thanks!"], known=[known("10 mg")])

    found = parse_fact_rows("medication,ramipril,10 mg,0.9,,set,asserted,state,1,Thanks", shown, source="m")

    assert found.dropped == []
    assert refusal("medication,ramipril,15 mg,0.9,,set,asserted,state,1,Thanks", shown).startswith("said-by-others")


def episodes(talk, bullet, **earlier):
    found = parse_bullets(bullet, list(window(talk).messages.values()), source="m", earlier=SaidBefore(**earlier))
    return [reason.split(":")[0] for _, reason in found.dropped]


def test_an_episode_may_name_whom_the_user_named_before():
    talk = ["u:We went to the coast together on Saturday."]

    assert episodes(talk, "- Hanna and Oskar went to the coast on Saturday [1]") == ["name-not-said"]
    assert (
        episodes(talk, "- Hanna and Oskar went to the coast on Saturday [1]", names=("Hanna",), words="husband Oskar")
        == []
    )


def test_what_an_episode_denies_may_stand_in_another_of_its_messages():
    talk = [
        "u:Noah quit football. He starts climbing at the Depot.",
        "a:Great!",
        "u:Noah is back at football, climbing wasn't for him.",
    ]

    assert episodes(talk, "- Noah is back at football, as climbing at the Depot wasn't for him [1, 3]") == []
    assert "not-asserted" in episodes(talk[:1], "- Noah quit football, as climbing at the Depot wasn't for him [1]")


def test_an_episode_takes_the_words_of_the_question_that_is_answered():
    talk = ["a:Are you thinking of buying the flat?", "u:No way, we can't afford that."]

    assert episodes(talk, "- The user cannot afford to buy the flat [2]") == []


def test_an_episode_says_every_thursday_as_it_likes():
    assert episodes(["u:I climb every Thursday."], "- The user climbs on Thursdays [1]") == []


@pytest.mark.parametrize(
    ("said", "row", "since"),
    [
        ("The meetup is on April 6-7.", "plan,attends,meetup on April 6-7,0.9,,add,asserted,event,1,on April 6-7", None),
        ("I'm planning ten days in Norway.", "plan,plans_to,Norway,0.9,,add,asserted,state,1,planning ten days in Norway", None),
        ("I plan to stay in Norway for 10 days.", "plan,plans_to,Norway,0.9,,add,asserted,state,1,stay in Norway for 10 days", None),
        ("On 9 March my ferritin was 14.", "health,ferritin,14,0.9,,set,asserted,state,1,On 9 March my ferritin was 14", "2026-03-09"),
        ("I started on ramipril on Friday.", "medication,ramipril,daily,0.9,,set,asserted,state,1,I started on ramipril on Friday", "2026-03-13"),
    ],
)  # fmt: skip
def test_a_fact_holds_from_the_day_that_is_meant(said, row, since):
    [candidate] = parse_fact_rows(row, window([f"u:{said}"]), source="m").candidates

    assert (candidate.valid_from_ms and from_ms(candidate.valid_from_ms).date().isoformat()) == since


@pytest.mark.parametrize(
    ("said", "bullet", "since"),
    [
        (
            "The meetup is on April 6-7, I got my ticket.",
            "- The user got a ticket for the meetup on April 6-7 [1]",
            None,
        ),
        ("I sang at the fair yesterday.", "- The user sang at the fair yesterday [1]", "2026-03-13"),
        ("I sang at the fair.", "- 2026-03-10: the user sang at the fair [1]", "2026-03-10"),
        ("We meet at the fair on 2 April.", "- The user meets them at the fair on 2026-04-02 [1]", None),
    ],
)
def test_an_episode_never_falls_back_a_year(said, bullet, since):
    [candidate] = parse_bullets(bullet, list(window([f"u:{said}"]).messages.values()), source="m").candidates

    assert (candidate.valid_from_ms and from_ms(candidate.valid_from_ms).date().isoformat()) == since


def test_an_episode_may_name_a_feast_by_its_whole_name():
    assert (
        episodes(
            ["u:I have reserved a sushi place for the new years with my family"],
            "- Reserved a sushi place for New Year's Eve [1]",
        )
        == []
    )


def test_an_episode_may_name_what_the_users_own_code_names():
    code = "u:I began the tracker today:\n```python\nfrom flask_sqlalchemy import SQLAlchemy\n```"
    assert episodes([code], "- Began the tracker with SQLAlchemy [1]") == []


def test_an_episode_may_tell_what_another_wrote():
    talk = ['u:My sister sent me this, what do I say? "I have left Tom and stay with mum, I look for a flat in Graz."']

    assert episodes(talk, "- The user's sister wrote that she has left Tom and looks for a flat in Graz [1]") == []
    assert episodes(talk, "- The user has left Tom and looks for a flat in Graz [1]") != []


@pytest.mark.parametrize(("cell", "subject"), [("mum", "mother"), ("my wife", "wife"), ("Mia", "mia")])
def test_a_relation_has_one_name(cell, subject):
    row = f"home,lives_in,Graz,0.9,{cell},set,asserted,state,1,lives in Graz"
    [candidate] = parse_fact_rows(row, window(["u:She lives in Graz."]), source="m").candidates

    assert candidate.subject == subject


def test_whoever_turned_an_age_without_a_subject_is_the_user():
    said = ["My gran is 81.", "turned 24 yesterday and went to see my gran"]
    with Memory(embedder=None) as memory:
        chat = memory.conversation("c", user="ana")
        for text in said:
            chat.append(Message("user", text))
        memory.digest()
        ages = {fact.subject: fact.value for fact in memory.user("ana").facts() if fact.key == "age"}

    assert ages["grandmother"] == "81"


# What is said, and what a model claims of it.
DENIED = [
    ("We do not use Kubernetes at all.", "Uses Kubernetes"),
    ("We never used Redis.", "Uses Redis"),
    ("I used to use Vim.", "Uses Vim"),
    ("Not a Python user here.", "Uses Python"),
    ("We might switch to MySQL next year.", "Uses MySQL"),
    ("We nearly picked Cassandra.", "Uses Cassandra"),
    ("Our vendor runs Oracle.", "Uses Oracle"),
    ("The tutorial uses Flask.", "Uses Flask"),
    ("My next project will be in Go.", "Uses Go"),
    ("We had Jenkins until last year.", "Uses Jenkins"),
    ("We use Kubernetes, not Nomad.", "Uses Nomad"),
    ("I've dropped Spotify.", "Uses Spotify"),
    ("I've never been to Lisbon.", "Has been to Lisbon"),
    ("I don't like coriander.", "Likes coriander"),
    ("I have no children.", "Has children"),
    ("I no longer smoke.", "Smokes"),
    ("I nearly moved to Berlin.", "Moved to Berlin"),
    ("I used to live in Rome.", "Lives in Rome"),
    ("I might get a dog.", "Has a dog"),
    ("I quit coffee last year.", "Drinks coffee"),
    ("I'm not a morning person.", "Is a morning person"),
    ("I was a nurse until 2019.", "Is a nurse"),
    ("Ich benutze kein Windows.", "Uses Windows"),
    ("No usamos Kubernetes.", "Uses Kubernetes"),
]
STATED = [
    ("We never regretted moving to MySQL.", "Uses MySQL"),
    ("We don't use Kubernetes but Nomad.", "Uses Nomad"),
    ("Our vendor runs Oracle but we run CockroachDB.", "Uses CockroachDB"),
    ("We can't live without Sentry.", "Uses Sentry"),
    ("I would be lost without Slack.", "Uses Slack"),
    ("I've never used anything but Vim.", "Uses Vim"),
    ("We haven't moved off Heroku yet.", "Uses Heroku"),
    ("We don't only use Kafka, we run RabbitMQ too.", "Uses Kafka"),
    ("I'm not a fan of Java, but we use it daily.", "Uses Java"),
    ("I don't like working at Initech.", "Works at Initech"),
    ("I can't eat gluten.", "Is allergic to gluten"),
    ("I could never give up coffee.", "Drinks coffee"),
    ("I don't play the guitar as often as I did.", "Plays the guitar"),
    ("I'm not just a designer, I also code.", "Is a designer"),
    ("I was a nurse until 2019.", "Was a nurse until 2019"),
]


@pytest.mark.parametrize(("said", "claim"), DENIED + STATED)
def test_a_claim_in_words_is_held_to_what_its_clause_says_of_it(said, claim):
    category = "technical" if claim.startswith("Uses") else "context"
    rows = [{"content": claim, "category": category, "confidence": 0.9}]
    with Memory(":memory:", llm=lambda messages: json.dumps(rows)) as memory:
        memory.conversation("c", user="u").record(said, "I see.")
        memory.conversation("c", user="u").end()
        report = memory.digest()
        believed = claim in {fact.text.rstrip(".") for fact in memory.user("u").facts()}
    assert believed == ((said, claim) in STATED), report.changes


PROPOSED = "I proposed to Dana at Lake Bled on 2 May 2025, and she said yes!"


@pytest.mark.parametrize(
    ("said", "bullet"),
    [
        (PROPOSED, "Dana proposed to the user at Lake Bled on 2 May 2025"),
        (PROPOSED, "The user proposed to Dana at Lake Bled on 2 May 2025, and she said no"),
        (PROPOSED, "The user proposed to Dana at Lake Bled on 5 February 2025"),
        ("My sister met Tom at the Ritz on 3 May.", "The user met Tom at the Ritz on 3 May"),
        ("Did we have our first kiss on the Eiffel Tower?", "First kiss on the Eiffel Tower"),
        ("I almost bought a boat called Nixe.", "The user bought a boat called Nixe"),
        ("We will meet at the Café Central on Friday.", "Met at the Café Central on Friday"),
        ("We broke 3 plates at the wedding.", "Broke 7 plates at the wedding"),
        ("Wir haben uns gestern nicht in Wien getroffen, du warst krank.", "Gestern in Wien getroffen"),
        ("Nunca he estado en Sevilla con Marta.", "Ha estado en Sevilla con Marta"),
        ("어제 부산에서 민수를 처음 만나지 못했어.", "어제 부산에서 민수를 처음 만남"),
    ],
)
def test_an_episode_that_turns_its_sentence_around_is_dropped(said, bullet):
    assert episodes([f"u:{said}"], f"- {bullet} [1]")


@pytest.mark.parametrize(
    ("said", "bullet"),
    [
        (PROPOSED, "**Proposal**: the user proposed to Dana at Lake Bled on May 2, 2025"),
        (PROPOSED, "2 May 2025: proposed to Dana at Lake Bled; she said yes"),
        ("I couldn't sleep the night before our wedding in Rome.", "Wedding in Rome"),
        ("Do you remember our first kiss on the Eiffel Tower?", "First kiss on the Eiffel Tower"),
        ("My sister Ann met Tom at the Ritz.", "The user's sister Ann met Tom at the Ritz"),
        ("I promised Ben that I will call on Monday.", "Promised Ben to call on Monday"),
        ("I never want to miss our Tuesday swims with Jo again.", "Swims with Jo on Tuesdays"),
    ],
)
def test_an_episode_in_other_words_is_kept(said, bullet):
    assert episodes([f"u:{said}"], f"- {bullet} [1]") == []


@pytest.mark.parametrize(
    ("said", "bullet"),
    [
        ("It was my very first time flying, I was terrified.", "First flight ever; the user was very scared"),
        ("Oma ist letzte Woche gestorben, ich bin so traurig.", "Tod der Großmutter letzte Woche; Nutzer ist traurig"),
        ("그래 약속할게, 담배 끊을게.", "담배를 끊겠다고 약속함"),
        ("민지한테 고백했는데 차였어", "사용자가 민지에게 고백했으나 거절당함"),
        (
            "Вчера я впервые прыгнул с парашютом в Казани.",
            "13 марта 2026 года пользователь впервые прыгнул с парашютом в Казани",
        ),
    ],
)
def test_an_episode_that_names_its_message_may_be_in_freer_words(said, bullet):
    assert episodes([f"u:{said}"], f"- {bullet} [1]") == []


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("Tres mil euros como mucho.", 3000),
        ("Trois mille euros maximum.", 3000),
        ("Mein Limit sind dreitausend Euro.", 3000),
        ("dreitausendfünfhundert", 3500),
        ("fünfundzwanzig Leute", 25),
        ("Tremila euro al massimo", 3000),
        ("Três mil euros no máximo", 3000),
        ("삼천 달러까지요.", 3000),
        ("三千五百元", 3500),
        ("1.5 million euros", 1_500_000),
        ("twenty-five hundred bucks tops", 2500),
        ("two hundred and fifty", 250),
        ("three grand tops", 3000),
        ("veinticinco", 25),
    ],
)
def test_numbers_are_heard_in_words_of_many_languages(text, number):
    assert number in amounts_in_words(text)


def test_an_article_is_no_number():
    assert amounts_in_words("that helps a lot") == frozenset()
