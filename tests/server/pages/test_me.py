"""``/me`` as a browser without scripts has it: forms, redirects, receipts, files."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import replace
from datetime import UTC, datetime
from html import unescape

import pytest

from holdfast.config import reload_config
from holdfast.server.pages.me import undo_correction
from holdfast.server.pages.texts import LANGUAGES, TEXT_FOLDER, load_texts
from holdfast.types import FactChange
from holdfast.user import User


@pytest.fixture
def ana(memory):
    chat = memory.conversation("c", user="ana")
    chat.record("I live in Porto and I'm vegetarian.", "Noted.")
    return memory.user("ana")


@pytest.fixture
def me(ana, sign_in):
    return sign_in("user", user="ana")


def fact(user, category):
    (found,) = user.facts(category)
    return found


def post(browser, do, **fields):
    return browser.post("/me", data={"do": do, **fields})


def sentences(page):
    return re.findall(r'<p class="sentence">.*?<span dir="auto">([^<]*)</span></p>', page.text)


def test_everything_that_is_believed_is_shown_with_the_words_it_rests_on(me):
    page = me.get("/me")

    assert sentences(page) == ["Lives in Porto.", "Is vegetarian."]
    assert '<q dir="auto">I live in Porto</q>' in page.text
    assert page.text.count("<h1>") == 1


def test_a_change_is_believed_and_can_be_taken_back(me, ana):
    home = fact(ana, "home")

    page = post(me, "change", fact=home.id, value="Faro")
    assert "Lives in Faro." in sentences(page)
    assert "Changed." in page.text
    assert f"undo={home.id}" in str(page.url)

    back = post(me, "restore", fact=home.id)
    assert "Lives in Porto." in sentences(back)
    assert fact(ana, "home").value == "Porto"


def test_what_is_the_same_or_empty_changes_nothing(me, ana):
    home = fact(ana, "home")
    for value in ("Porto", " ", " Porto "):
        assert "Nothing changed." in post(me, "change", fact=home.id, value=value).text
    assert [one.value for one in ana.history("home")] == ["Porto"]


def test_right_is_noted_as_the_users_own_word(me, ana):
    page = post(me, "right", fact=fact(ana, "dietary").id)

    assert "Confirmed." in page.text
    assert "You confirmed this" in page.text
    assert len(fact(ana, "dietary").evidence) == 2


def test_what_holds_in_one_conversation_is_confirmed_for_it_alone(me, ana, memory):
    memory.conversation("rome", user="ana", own_facts=True).record("I live in Faro.", "Noted.")
    (own,) = (one for one in ana.facts("home") if one.only_in)

    assert "Confirmed." in post(me, "right", fact=own.id).text
    assert sorted((one.only_in, one.value) for one in ana.facts("home")) == [("", "Porto"), ("rome", "Faro")]


def test_forgetting_shows_the_receipt_and_blanks_the_words(me, ana, memory):
    page = post(me, "forget", fact=fact(ana, "home").id)

    assert page.status_code == 200
    assert "Forgotten" in page.text
    assert "Erased: " in page.text
    assert sentences(page) == ["Is vegetarian."]
    assert "Porto" not in memory.conversation("c", user="ana").load()[0].content


def test_what_was_true_before_is_shown_and_can_be_erased_too(me, ana, memory):
    old = fact(ana, "home")
    memory.conversation("c", user="ana").record("I moved to Faro.", "Noted.")
    assert "<s>Lives in Porto.</s>" in me.get("/me").text

    assert "Porto" not in post(me, "forget", fact=old.id).text
    assert [one.value for one in ana.history("home")] == ["Faro"]


def test_pausing_holds_and_says_why_nothing_can_be_written(me, ana):
    home = fact(ana, "home")
    assert "Memory is paused" in post(me, "pause").text
    assert ana.status().state == "paused"
    refused = post(me, "change", fact=home.id, value="Faro")
    assert "Memory is paused, so nothing can be written." in refused.text
    assert fact(ana, "home").value == "Porto"
    assert "Memory is on" in post(me, "resume").text
    assert ana.status().state == "active"


def test_a_topic_is_never_remembered_until_it_is_allowed(me, ana):
    assert "Health" in post(me, "never", topic=" health ").text
    assert ana.status().never == ("health",)
    post(me, "allow", topic="health")
    assert ana.status().never == ()


def test_turning_off_erases_and_holds(me, ana):
    page = post(me, "opt-out")
    assert "Memory is off" in page.text
    assert "Forgotten" in page.text
    assert (ana.facts(), ana.status().state) == ([], "opted-out")
    assert "Memory is on" in post(me, "opt-in").text


def test_everything_is_forgotten_only_when_the_word_is_typed(me, ana):
    refused = post(me, "forget-all", word="yes")
    assert refused.status_code == 422
    assert "Nothing was erased: type" in refused.text
    assert len(ana.facts()) == 2

    page = post(me, "forget-all", word=" Forget ")
    assert "bytes on disk were searched" in page.text
    assert (ana.facts(), ana.conversations()) == ([], [])
    assert "I know nothing about you yet." in page.text


def test_what_cannot_be_done_is_refused(me):
    assert post(me, "fly").status_code == 422
    assert me.post("/me", data={"do": "change"}).status_code == 422
    assert post(me, "forget", fact="fact_0").status_code == 404


def test_the_data_can_be_taken_back_in(me, ana, memory):
    answer = me.get("/me/download?as=json")
    assert re.fullmatch(r'attachment; filename="memory-[\d-]+\.json"', answer.headers["content-disposition"])
    ana.erase()
    memory.import_(json.loads(answer.content))
    assert sorted(one.text for one in ana.facts()) == ["Is vegetarian.", "Lives in Porto."]


def test_the_file_to_read_holds_what_was_said_and_what_is_known(me, memory):
    memory.conversation("c", user="ana").record("<script>x()</script> I moved to Faro.", "Noted.")
    answer = me.get("/me/download")
    assert 'filename="memory-' in answer.headers["content-disposition"]
    for words in ("Lives in Faro.", "Earlier: Lives in Porto.", "I live in Porto and I&#39;m vegetarian.", "Noted."):
        assert words in answer.text
    assert "<script>" not in answer.text


def test_a_fragment_is_one_section(me):
    page = me.get("/me", headers={"X-Fragment": "status"})
    assert page.text.startswith('<section id="status"')
    assert page.text.endswith("</section>")


def test_a_key_for_one_assistant_shows_that_one(ana, memory, sign_in):
    memory.conversation("c", user="ana", bot="b2").record("I live in Oslo.", "Noted.")
    assert sentences(sign_in("user", user="ana", bot="b2").get("/me")) == ["Lives in Oslo."]
    assert sentences(sign_in("user", user="ana").get("/me?bot=b2")) == ["Lives in Oslo."]


def test_every_catalogue_says_the_same_things():
    """A translation has every sentence, with every hole, of the English one."""

    def holes(texts, name=""):
        if isinstance(texts, dict):
            return {key: hole for part, value in texts.items() for key, hole in holes(value, f"{name}.{part}").items()}
        return {name: sorted(re.findall(r"\{(\w+)\}", str(texts)))}

    read = {path.name: holes(tomllib.loads(path.read_text("utf-8"))) for path in TEXT_FOLDER.glob("me.*.toml")}
    assert all(found == read["me.en.toml"] for found in read.values())


def test_no_sentence_of_me_is_written_into_the_template():
    """So that another language needs another catalogue, and nothing else."""
    source = (TEXT_FOLDER.parent / "templates" / "me.html").read_text(encoding="utf-8")
    plain = re.sub(r"\{%.*?%\}|\{\{.*?\}\}|\{#.*?#\}|<[^>]*>", " ", source, flags=re.DOTALL)

    assert re.findall(r"[A-Za-z]{2,}", plain) == []
    assert load_texts("me").day(None) == ""


def tell_of_luna(memory, name="Lindau"):
    """Three conversations about a dog, the last with *name* in it."""
    for month, news in (
        ("may", "limps after the walk"),
        ("june", "limps less since the rest"),
        ("july", f"runs in the park of {name} again"),
    ):
        chat = memory.conversation(month, user="ana", subject="luna")
        chat.record(f"Luna {news}.", "Noted.")
        chat.end()
    memory.digest()


def test_the_story_of_a_subject_is_shown_and_goes_with_what_it_rests_on(me, memory):
    assert (
        '<section id="story" aria-labelledby="story-title" data-live="message. summary. erased" hidden>'
        in me.get("/me").text
    )

    tell_of_luna(memory)
    page = me.get("/me").text
    assert "What happened so far: Luna" in page
    assert "runs in the park of Lindau again" in page
    assert page.count("<h1>") == 1

    memory.conversation("july", user="ana", subject="luna").clear()
    assert "Lindau" not in me.get("/me").text


def test_the_story_is_text_on_both_pages(me, memory, sign_in):
    tell_of_luna(memory, "<img src=x onerror=alert(1)> Lindau")

    for page in (me.get("/me"), sign_in("operator").get("/dashboard/users/ana")):
        assert "Lindau" in page.text
        assert "<img src=x" not in page.text


def test_an_undo_that_is_refused_leaves_the_value_that_is_there(ana, monkeypatch):
    home = fact(ana, "home")
    made = ana.correct(home.id, value="Faro").fact
    refused = FactChange("rejected", None, "never: a choice of the user")
    monkeypatch.setattr(User, "restore", lambda *_args, **_more: refused)

    assert undo_correction(ana, {"fact": home.id, "made": made.id}) is refused
    assert fact(ana, "home").value == "Faro"


def test_an_undo_of_what_was_forgotten_since_restores_all_the_same(me, ana):
    home = fact(ana, "home")
    made = ana.correct(home.id, value="Faro").fact
    ana.forget(made.id)

    assert post(me, "undo", fact=home.id, made=made.id).status_code == 200
    assert fact(ana, "home").value == "Porto"


def picks(*facts):
    return {f"pick-{one.id}": one.version for one in facts}


def test_several_are_counted_first_and_then_forgotten_together(me, ana, memory):
    memory.conversation("c", user="ana").record("I play the cello.", "Nice.")
    home, diet = fact(ana, "home"), fact(ana, "dietary")
    review = post(me, "review", **picks(home, diet)).text
    assert "Forget these 2 facts?" in review
    assert "Forget 2 facts" in review
    assert len(ana.facts()) == 3  # nothing yet

    page = post(me, "forget-several", **picks(home, diet))
    assert sentences(page) == ["Plays cello."]
    assert "Erased: " in page.text
    assert "facts" in page.text.partition('id="receipt"')[2].partition("</section>")[0]


def test_of_several_the_one_that_changed_meanwhile_stays(me, ana):
    home, diet = fact(ana, "home"), fact(ana, "dietary")
    old = picks(home, diet)
    ana.correct(diet.id, value=diet.value)
    page = post(me, "forget-several", **old)
    assert sentences(page) == ["Is vegetarian."]
    assert "Changed meanwhile, and kept: 1." in page.text


@pytest.mark.parametrize("do", ["review", "forget-several"])
def test_nothing_chosen_or_too_much_is_refused(me, ana, do):
    assert post(me, do).status_code == 422
    assert post(me, do, **{f"pick-{n}": "1" for n in range(101)}).status_code == 422
    assert post(me, "review", **{"pick-fact_0": "1"}).status_code == 404
    assert len(ana.facts()) == 2


def test_nobody_forgets_several_of_another(me, ana, memory):
    memory.conversation("c", user="ben").record("I live in Rome.", "Noted.")
    other = fact(memory.user("ben"), "home")
    assert post(me, "review", **picks(other)).status_code == 404
    post(me, "forget-several", **picks(other))
    assert [one.value for one in memory.user("ben").facts("home")] == ["Rome"]


def test_the_search_shows_what_matches(me):
    page = me.get("/me?q=porto+LIVES")
    assert sentences(page) == ["Lives in Porto."]
    assert "Contain “porto LIVES”: 1 of 2." in page.text
    assert sentences(me.get("/me?q=zebra")) == []


def test_what_changed_lately_is_listed_and_what_was_forgotten_has_no_words(me, ana):
    home = fact(ana, "home")
    post(me, "change", fact=home.id, value="Faro")
    post(me, "forget", fact=fact(ana, "dietary").id)
    changes = re.sub(r"<[^>]*>", " ", me.get("/me").text.partition('id="changes"')[2].partition("</section>")[0])
    lines = " ".join(changes.split())
    assert "Corrected: Lives in Porto." in lines
    assert ": Lives in Faro." in lines
    assert "Forgotten: a fact" in lines
    assert "vegetarian" not in lines


def test_receipts_are_kept_without_a_word_and_downloaded(me, ana, memory, clock):
    assert "Nothing was corrected or erased." in me.get("/me").text
    home = fact(ana, "home")
    post(me, "change", fact=home.id, value="Faro")
    clock.advance(seconds=60)
    page = post(me, "forget", fact=fact(ana, "dietary").id)
    clock.advance(seconds=60)
    assert "Save this receipt" in section(page, "receipt")
    post(me, "pause")
    memory.user("ben").remember("I live in Rome.")

    page = me.get("/me")
    kept = section(page, "receipts")
    assert "Facts corrected: 1" in kept
    assert "Facts forgotten: 1" in kept
    assert "Privacy choices changed: 1" in kept
    file = me.get("/me/receipts")
    assert "attachment" in file.headers["content-disposition"]
    told = file.json()
    assert told["user"] == "ana"
    assert told["receipts"][0]["what"] == {"consent.changed": 1}
    assert told["receipts"][1]["what"]["fact.forgotten"] == 1
    assert home.id in told["receipts"][-1]["ids"]
    for words in ("Porto", "Faro", "vegetarian", "Rome"):
        assert words not in file.text
        assert words not in kept
    assert me.get("/me/receipts", headers={"Accept": "text/html"}).status_code == 200


def test_nobody_but_a_user_has_receipts(sign_in, memory):
    assert sign_in("operator").get("/me/receipts").status_code == 403
    assert "sign-in" in str(sign_in(None).get("/me/receipts").url)


def test_undo_stands_beside_the_changed_fact(me, ana):
    page = post(me, "change", fact=fact(ana, "home").id, value="Faro").text
    row = page.partition("Lives in Faro.</span>")[2].partition("</li>")[0]
    assert "Undo: Lives in Faro." in row


def _names(texts, before=""):
    for name, value in texts.items():
        if isinstance(value, dict):
            yield from _names(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


def test_every_language_has_every_text_with_the_same_blanks():
    every = {name: dict(_names(tomllib.loads((TEXT_FOLDER / f"me.{name}.toml").read_text()))) for name in LANGUAGES}
    assert {path.name for path in TEXT_FOLDER.glob("me.*")} == {f"me.{name}.toml" for name in LANGUAGES}
    for language, texts in every.items():
        assert texts.keys() == every["en"].keys(), language
        for name, text in texts.items():
            if isinstance(text, str):
                assert set(re.findall(r"{\w+", text)) == set(re.findall(r"{\w+", every["en"][name])), (language, name)
                assert text.strip(), (language, name)
            else:
                assert len(text) == len(every["en"][name]) == 12


def test_the_page_speaks_the_language_of_the_browser_until_one_is_chosen(me):
    def shown(accept="", path="/me"):
        return me.get(path, headers={"Accept-Language": accept}).text

    assert '<html lang="en">' in shown()
    assert '<html lang="en">' in shown("xx, zz;q=0.4, ;;q=9, de;q=0")
    assert '<html lang="de">' in shown("fr, de-AT;q=0.8, es;q=0.5")
    assert "Was ich über dich weiß" in shown("de")
    assert '<html lang="ar" dir="rtl">' in shown("ar-EG,en;q=0.1")
    assert "찾은 것이 없습니다." in shown("ko", "/me/find?q=zzz")
    assert 'lang="es" dir="ltr"' in shown("es", "/me/download")
    again = me.post("/me", data={"do": "language", "language": "../x"}, follow_redirects=False)
    assert again.status_code == 303
    assert "set-cookie" not in again.headers
    answer = me.post("/me", data={"do": "language", "language": "ko"}, follow_redirects=False)
    assert answer.status_code == 303
    assert "holdfast_language=ko" in answer.headers["set-cookie"]
    assert '<html lang="ko">' in shown("de")


def test_forgetting_everything_asks_for_the_word_of_the_language(me, memory):
    memory.conversation("c", user="ana").record("I live in Porto.")
    german = {"Accept-Language": "de"}
    refused = me.post("/me", data={"do": "forget-all", "word": "forget"}, headers=german)
    assert refused.status_code == 422
    assert "vergessen" in refused.text
    assert memory.user("ana").facts()
    assert "Gelöscht" in me.post("/me", data={"do": "forget-all", "word": "Vergessen"}, headers=german).text
    assert not memory.user("ana").facts()


@pytest.fixture
def asked(memory):
    reload_config(memory.config, replace(memory.config, ask_before_learning=True))
    memory.conversation("c", user="ana").record("I live in Porto, and I'm vegetarian.", "Noted.")
    memory.digest()
    return memory.user("ana")


def waiting(user):
    return {one.candidate.text: one.id for one in user.rejected(waiting=True)}


def section(page, name):
    text = page.text.partition(f'id="{name}"')[2].partition("</section>")[0]
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", text.partition(">")[2])).split())


DESKS = {"/me": ("user", {"user": "ana"}), "/dashboard/users/ana": ("operator", {})}


@pytest.mark.parametrize("path", DESKS)
def test_what_was_read_waits_for_a_decision(asked, sign_in, path):
    role, whose = DESKS[path]
    desk = sign_in(role, **whose)

    def decide(do, *ids, **more):
        return desk.post(path, data={"do": do, **{f"ask-{one}": "1" for one in ids}, **more})

    page, ids = desk.get(path), waiting(asked)
    assert "Lives in Porto." in section(page, "review")
    assert "I live in Porto" in section(page, "review")
    assert "Lives in Porto." not in section(page, "facts")

    page = decide("accept", ids["Lives in Porto."])
    assert "Lives in Porto." in section(page, "facts")
    assert "Lives in Porto." not in section(page, "review")
    assert "Undo" in section(page, "said")

    page = decide("wait", ids["Lives in Porto."])
    assert "Lives in Porto." in section(page, "review")
    assert asked.facts() == []

    decide("accept", ids["Lives in Porto."], value="Faro")
    assert [fact.text for fact in asked.facts()] == ["Lives in Faro."]
    decide("wait", ids["Lives in Porto."])
    page = decide("dismiss", *ids.values())  # several at once
    assert "Undo" in section(page, "said")
    assert waiting(asked) == {}
    decide("wait", *ids.values())
    assert waiting(asked) == ids
    decide("accept", *ids.values())
    late = decide("dismiss", *ids.values())  # from a second tab, which has not heard of it
    assert len(asked.facts()) == 2
    assert ("accepted already" if path == "/me" else "Not stored") in section(late, "said")
    assert decide("accept").status_code == 422
    assert "Nothing changed" in section(decide("accept", "0" * 24), "said")


def test_a_question_names_what_would_give_way_and_shows_words_as_words(asked, memory, sign_in):
    asked.review([*waiting(asked).values()], "accept")
    memory.conversation("c", user="ana").record("I live in Faro now. My dog is called <b>Rex</b>.", "Noted.")
    memory.digest()
    page = sign_in("user", user="ana").get("/me")

    assert "Instead of: Lives in Porto." in section(page, "review")
    assert "<b>Rex" not in page.text
    memory.conversation("c", user="ana").record("I'm not vegetarian any more.", "Noted.")
    memory.digest()
    assert "“Is vegetarian.” no longer holds" in section(sign_in("user", user="ana").get("/me"), "review")


def test_nobody_decides_for_another(asked, memory, sign_in):
    ids = waiting(asked)
    page = sign_in("user", user="ben").post("/me", data={"do": "accept", f"ask-{ids['Lives in Porto.']}": "1"})

    assert page.status_code == 200
    assert waiting(asked) == ids
    assert "Porto" not in page.text


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("en", ["since 2020", "since March 2026", "as of 5 March 2026"]),
        ("de", ["seit 2020", "seit März 2026", "Stand: 5. März 2026"]),
        ("es", ["desde 2020", "desde marzo de 2026", "dicho el 5 de marzo de 2026"]),
        ("ko", ["2020년부터", "2026년 3월부터", "2026년 3월 5일 기준"]),
        ("ar", ["منذ 2020", "منذ مارس 2026", "بحسب ما قيل في 5 مارس 2026"]),
    ],
)
def test_since_is_said_only_of_a_time_that_the_user_named(memory, clock, language, said):
    clock.advance(days=100)
    chat = memory.conversation("c", user="ana")
    at = datetime(2026, 3, 5, 18, tzinfo=UTC)
    chat.record("I have lived in Lisbon since 2020.", at=at)
    chat.record("I have worked at Bosch since March 2026.", at=at)
    chat.record("I'm allergic to nuts.", at=at)
    texts = load_texts("me", language)

    dated = {fact.category: texts.dated(fact) for fact in memory.user("ana").facts()}

    assert [dated["home"], dated["work"], dated["allergy"]] == said


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("en", "as of 1 January 2026, until 2 January 2026"),
        ("de", "Stand: 1. Januar 2026, bis 2. Januar 2026"),
        ("es", "dicho el 1 de enero de 2026, hasta el 2 de enero de 2026"),
        ("ko", "2026년 1월 1일 기준, 2026년 1월 2일까지"),
        ("ar", "بحسب ما قيل في 1 يناير 2026، حتى 2 يناير 2026"),
    ],
)
def test_what_holds_for_a_while_says_until_when(memory, clock, language, said):
    chat = memory.conversation("c", user="ana")
    chat.record("I'm on antibiotics until Friday.", "Get well soon.")
    memory.digest()
    (fact,) = memory.user("ana").facts()

    assert load_texts("me", language).dated(fact) == said
    clock.advance(days=1)
    assert [one.id for one in memory.user("ana").facts()] == [fact.id]
    clock.advance(days=1)
    assert memory.user("ana").facts() == []


def test_what_is_known_of_another_is_not_headed_about_you(me, memory):
    memory.conversation("vet", user="ana", subject="luna").record("Luna is 3 years old.", "Noted.")
    page = unescape(me.get("/me").text)

    assert re.findall(r'<h2 class="whose">([^<]*)</h2>', page) == ["About Luna"]
    assert page.count("<h3>About you</h3>") == 0
    assert re.search(r'<h2 class="whose">About Luna</h2>\s*<div class="card topic"><h3>Luna</h3>', page)


@pytest.fixture
def spender(memory):
    chat = memory.conversation("c", user="ana")
    for words in ("My budget is $4,200.", "We're planning a two-week trip to Peru.", "I'm 34 years old."):
        chat.record(words, "Noted.")
    return memory.user("ana")


def field_of(page, fact_id):
    return unescape(re.search(rf'value="{fact_id}">.*?name="value" value="([^"]*)"', page.text, re.DOTALL)[1])


@pytest.mark.parametrize(
    ("category", "key", "shown", "typed", "held"),
    [
        ("budget", "max_usd", "4200 usd", "$4,800", "4800"),
        ("budget", "max_usd", "4200 usd", "6k", "6000"),
        ("budget", "max_usd", "4200 usd", "about 5 000,50 dollars", "5000.5"),
        ("budget", "max_usd", "4200 usd", "five thousand", "5000"),
        ("trip", "length_days", "2 weeks", "3 weeks", "21"),
        ("trip", "length_days", "2 weeks", "3", "21"),
        ("trip", "length_days", "2 weeks", "10 days", "10"),
        ("trip", "length_days", "2 weeks", "drei Wochen", "21"),
        ("identity", "age", "34", "thirty-five", "35"),
        ("identity", "age", "34", "35 years old", "35"),
    ],
)
def test_a_number_is_understood_as_people_type_it(me, spender, category, key, shown, typed, held):
    """The field opens with the unit that the sentence shows."""
    (was,) = (one for one in spender.facts(category) if one.key == key)
    assert field_of(me.get("/me"), was.id) == shown

    page = post(me, "change", fact=was.id, value=typed)

    assert "Changed." in page.text
    assert [one.value for one in spender.facts(category) if one.key == key] == [held]
    assert (
        "Nothing changed." in post(me, "change", fact=fact_with(spender, key).id, value=shown_in(me, spender, key)).text
    )


@pytest.mark.parametrize(("typed", "held"), [("5,000 euros", "5000"), ("€6k", "6000"), ("about 900 pounds", "900")])
def test_an_amount_in_another_currency_replaces_the_one_there_and_undo_brings_it_back(me, spender, typed, held):
    was = fact_with(spender, "max_usd")
    page = post(me, "change", fact=was.id, value=typed, version=was.version)

    (now,) = spender.facts("budget")
    assert (now.key, now.value) == ("max_gbp" if "pounds" in typed else "max_eur", held)
    assert "usd" not in now.text
    assert "Changed." in page.text
    post(me, "undo", fact=was.id, made=now.id)
    assert [(one.key, one.value) for one in spender.facts("budget")] == [("max_usd", "4200")]


def fact_with(user, key):
    (found,) = (one for one in user.facts() if one.key == key)
    return found


def shown_in(browser, user, key):
    return field_of(browser.get("/me"), fact_with(user, key).id)


@pytest.mark.parametrize(
    ("typed", "why"),
    [
        ("banana", "Please type a number"),
        ("4 bananas", "Please type a number"),
    ],
)
@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_no_number_is_refused_in_red_and_the_words_stay_in_the_field(me, spender, typed, why, language):
    budget = fact_with(spender, "max_usd")
    page = me.post(
        "/me", data={"do": "change", "fact": budget.id, "value": typed}, headers={"Accept-Language": language}
    )

    assert page.status_code == 422
    assert field_of(page, budget.id) == typed
    notice = re.search(r'<div class="notice bad" role="alert" id="wrong">.*?<p>(.*?)</p>', page.text, re.DOTALL)
    assert notice
    assert why in notice[1] if language == "en" else "Please" not in notice[1]
    assert 'aria-describedby="wrong"' in page.text
    assert fact_with(spender, "max_usd").value == "4200"


def test_a_wrong_word_for_forgetting_everything_is_refused_in_red(me, ana):
    page = post(me, "forget-all", word="yes")

    assert page.status_code == 422
    assert re.search(r'class="notice bad" role="alert".*?Nothing was erased: type', page.text, re.DOTALL)
    assert sentences(page) == ["Lives in Porto.", "Is vegetarian."]
    assert ana.facts()


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_access_log_says_who_read_and_changed_the_memory(me, ana, memory, language):
    said = load_texts("me", language)
    page = me.get("/me", headers={"Accept-Language": language}).text
    log = unescape(page[page.index('<section id="access"') : page.index('<section id="never"')])
    assert said("access.no_reads") in log
    assert f"{said('access_kinds.message_added')} <span" in log
    assert said("access.local") in log
    assert "Porto" not in log

    reload_config(memory.config, replace(memory.config, read_log_share=1.0))
    memory.conversation("c", user="ana").context()
    me.get("/me")
    memory.digest()
    page = me.get("/me", headers={"Accept-Language": language}).text
    log = unescape(page[page.index('<section id="access"') : page.index('<section id="never"')])
    assert said("access.sample", share=100) in log
    assert re.search(re.escape(said("access_kinds.read_context")) + r".*?" + re.escape(said("access.local")), log)
    assert re.search(re.escape(said("access_kinds.read_facts")) + r"[^\n]*?" + re.escape(said("access.you")), log)
