"""The main path through the front door: what is said is kept, believed, summarized, found and shown."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from holdfast import Config, Memory
from holdfast.errors import BadInput, ConfigError, Conflict, NotFound, StoreClosed
from holdfast.testing.fakes import HashEmbedder

START = datetime(2026, 1, 5, 9, tzinfo=UTC)  # of the clock


@pytest.fixture
def chat(memory):
    return memory.conversation("web-42", user="ana")


def small_talk(chat, clock, exchanges):
    for number in range(exchanges):
        clock.advance(seconds=30)
        chat.record(f"The weather is item {number} on the list.", f"Noted, item {number}.")


def test_a_statement_is_believed_before_the_next_reply(memory, chat):
    """No digest is needed for what the rules can read at once."""
    receipt = chat.record("I'm vegetarian.", "Noted!")

    assert [(c.op, c.fact.category, c.fact.key) for c in receipt.changes] == [("new", "dietary", "vegetarian")]
    assert [f.key for f in memory.user("ana").facts()] == ["vegetarian"]


def test_a_contradiction_leaves_one_belief_and_a_history(memory, chat, clock):
    """ "I'm vegetarian", later "I eat fish now": one dietary row, the old one history, the context current."""
    chat.record("I'm vegetarian.", "Noted!")
    small_talk(chat, clock, 12)
    (change,) = chat.record("Actually, I eat fish now.", "Good to know.").changes
    memory.digest()

    assert (change.op, change.previous.key, change.fact.key) == ("replaced", "vegetarian", "pescatarian")
    ana = memory.user("ana")
    assert [(f.key, f.value) for f in ana.facts("dietary")] == [("pescatarian", "true")]
    assert [(f.key, f.ended_because) for f in ana.history("dietary")] == [
        ("vegetarian", "replaced"),
        ("pescatarian", ""),
    ]
    shown = chat.context("What should I cook?").section("facts").text
    assert "pescatarian" in shown
    assert "vegetarian" not in shown


@pytest.mark.parametrize(
    ("said", "ended", "category"),
    [
        ("My mom takes metoprolol 50 mg.", "They doubled the metoprolol.", "medication"),
        ("I take ramipril 5 mg.", "GP bumped the ramipril up to 10.", "medication"),
        ("I drive a VW Polo.", "Sold the Polo on Saturday.", "possession"),
        ("I'm learning Spanish.", "gave up on Spanish, no time", "language"),
        ("I hate mushrooms.", "I actually love mushrooms now", "preference"),
    ],
)
def test_what_ends_a_fact_in_words_that_name_nobody_is_known_to_the_next_reply(memory, chat, said, ended, category):
    chat.record(said, "Noted!")
    (before,) = memory.user("ana").facts(category)
    chat.record(ended, "I see.")

    assert before.id not in [fact.id for fact in memory.user("ana").facts(category)]
    assert before.text not in chat.context("And now?").section("facts").text


def test_what_held_then_and_what_was_known_then_can_both_be_asked(memory, chat, clock):
    chat.record("I live in Lisbon.")
    clock.advance(days=10)
    chat.record("I live in Porto now.")
    ana = memory.user("ana")

    assert [f.value for f in ana.facts("home", as_of=START + timedelta(days=1))] == ["Lisbon"]
    assert [f.value for f in ana.facts("home", as_of=START + timedelta(days=11))] == ["Porto"]
    assert [f.value for f in ana.facts("home", known_at=START + timedelta(days=1))] == ["Lisbon"]
    assert ana.facts("home", as_of=START - timedelta(days=1)) == []


def test_every_fact_quotes_the_message_it_rests_on(memory, chat):
    chat.record("Hello there! I live in Lisbon, and I speak Spanish and Korean.")
    messages = {m.seq: m.content for m in chat.load()}
    facts = memory.user("ana").facts()

    assert {f.value for f in facts} >= {"Lisbon", "Spanish", "Korean"}
    for fact in facts:
        for said in fact.evidence:
            assert messages[said.seq][said.start : said.end] == said.quote
            assert said.role == "user"


@pytest.mark.parametrize("role", ["assistant", "system", "tool"])
def test_only_the_users_own_words_become_beliefs(memory, chat, role):
    extra = {"tool_call_id": "c1"} if role == "tool" else {}
    chat.append({"role": role, "content": "I'm vegetarian and I live in Lisbon.", **extra})
    memory.digest()

    assert memory.user("ana").facts() == []


def test_another_speaker_in_the_same_chat_is_another_subject(memory, chat):
    """Two users with the role of a user: the facts of one never become the other's."""
    chat.append({"role": "user", "name": "Ana", "content": "I live in Lisbon."})
    chat.append({"role": "user", "name": "Bo", "content": "I live in Oslo."})
    memory.digest()

    assert [(f.subject, f.value) for f in memory.user("ana").facts("home")] == [("bo", "Oslo"), ("self", "Lisbon")]


def test_facts_about_one_subject_never_reach_another(memory):
    """Each pet of a household has its own memory; what the owner says of themself reaches all."""
    luna = memory.conversation("luna-1", user="ana", subject="luna")
    max_ = memory.conversation("max-1", user="ana", subject="max")
    luna.record("She is allergic to chicken. I live in Lisbon.")
    max_.record("He is allergic to beef.")
    memory.digest()

    def known(subject):
        return {f.value for f in memory.user("ana", subject=subject).facts()}

    assert known("luna") == {"chicken", "Lisbon"}
    assert known("max") == {"beef", "Lisbon"}
    assert known("self") == {"Lisbon"}
    assert known(None) == {"chicken", "beef", "Lisbon"}
    assert "chicken" not in str(max_.context("What is he allergic to?").messages)


def test_summaries_cover_each_message_once_and_grow_levels(memory, chat, clock):
    small_talk(chat, clock, 60)
    memory.digest()
    summaries = chat.summaries()
    level1 = [s for s in summaries if s.level == 1]

    covered = [seq for s in level1 for seq in range(s.start_seq, s.end_seq + 1)]
    assert covered == list(range(1, covered[-1] + 1))
    assert covered[-1] >= 100
    assert [s.block for s in level1] == list(range(len(level1)))
    for parent in (s for s in summaries if s.level > 1):
        children = [s for s in summaries if s.id in parent.children]
        assert [s.level for s in children] == [parent.level - 1] * 3
        assert (children[0].start_seq, children[-1].end_seq) == (parent.start_seq, parent.end_seq)
    assert {s.level for s in summaries} == {1, 2, 3}


def test_end_closes_what_is_open(memory, chat):
    chat.record("We talked about the garden.", "Yes, about the roses.")
    chat.end()
    memory.digest()

    assert [(s.start_seq, s.end_seq) for s in chat.summaries()] == [(1, 2)]


def test_two_ends_close_two_chunks_even_when_nothing_was_digested_between(memory, chat):
    for topic in ("garden", "kitchen"):
        chat.record(f"We talked about the {topic}.", "Yes.")
        chat.end()
    memory.digest()

    assert [(s.start_seq, s.end_seq) for s in chat.summaries()] == [(1, 2), (3, 4)]


def test_a_silence_closes_a_chunk_when_it_has_lasted(memory, chat, clock):
    small_talk(chat, clock, 4)
    memory.digest()
    assert chat.summaries() == []

    clock.advance(hours=5)
    memory.digest()
    assert chat.summaries() == []  # somebody may go on

    clock.advance(hours=3)
    memory.digest()
    assert [(s.start_seq, s.end_seq) for s in chat.summaries()] == [(1, 8)]


def test_the_same_key_stores_once_and_says_so(chat):
    first = chat.record("Hello.", idempotency_key="k1")
    again = chat.record("Hello.", idempotency_key="k1")

    assert (again.seqs, again.duplicate) == (first.seqs, True)
    assert len(chat.load()) == 1
    with pytest.raises(Conflict, match="'k1'"):
        chat.record("Another body.", idempotency_key="k1")
    assert len(chat.load()) == 1


def test_what_was_just_said_is_found_among_the_last_turns(memory, chat, clock):
    chat.record("The blue notebook is in the attic.")
    small_talk(chat, clock, 40)
    chat.record("The red notebook is in the cellar.")
    memory.digest()

    assert "cellar" in chat.recall("Where is the notebook?", last=20, limit=1)[0].text
    assert "attic" not in str(chat.recall("Where is the notebook?", last=20, limit=20))


def test_a_recalled_turn_that_no_longer_holds_says_what_replaced_it(memory, chat, clock):
    chat.record("I live in Lisbon near the castle.")
    small_talk(chat, clock, 30)
    chat.record("I live in Porto now.")
    small_talk(chat, clock, 30)
    memory.digest()

    recalled = chat.context("Which castle is near where I live in Lisbon?").section("recalled").text
    (line,) = [line for line in recalled.splitlines() if "castle" in line]
    assert "later replaced by: Lives in Porto" in line


def test_a_fact_whose_words_set_an_end_is_gone_after_it(memory, chat, clock):
    """Not listed, not found, not shown; history keeps it."""
    chat.record("I have a dentist appointment tomorrow at 3pm.")
    ana = memory.user("ana")
    (fact,) = [f for f in ana.facts() if f.key == "dentist_appointment"]
    assert any(hit.kind == "fact" for hit in ana.search("dentist"))

    clock.advance(days=60)
    memory.digest()
    assert [f for f in ana.facts() if f.key == "dentist_appointment"] == []
    assert {hit.kind for hit in ana.search("dentist")} == {"message", "summary"}
    assert "facts" not in {s.name for s in chat.context("Dentist?").sections if s.items}
    assert [f.id for f in ana.history(fact.category)] == [fact.id]


def test_cheap_work_is_done_before_what_takes_long(memory, chat, clock, monkeypatch):
    order = []
    for kind, handler in dict(memory._engine.queue.handlers).items():
        monkeypatch.setitem(
            memory._engine.queue.handlers, kind, lambda job, k=kind, h=handler: (order.append(k), h(job))[1]
        )
    small_talk(chat, clock, 15)
    memory.digest()

    assert order == ["extract", "chunk", "embed"]


def test_request_n_plus_1_extends_the_stable_part_unless_it_says_why(memory, chat, clock):
    """Over a growing conversation with digests and new facts, bytes above the breakpoint move only with a reason."""
    before = None
    for number in range(60):
        clock.advance(seconds=60)
        chat.record(f"I have a cat named Tom{number}." if number % 13 == 5 else f"Chat about thing {number}.", "Sure.")
        if number % 3 == 0:
            memory.digest()
        context = chat.context("And now?")
        stable = context.messages[: context.stable_messages]
        assert context.tokens <= context.budget_tokens
        if before is not None and context.prefix_changed_because is None:
            assert stable == before
        elif before is not None:
            assert stable != before
        before = stable


def test_a_budget_of_one_token_still_holds(chat):
    chat.record("I'm vegetarian.", "Noted!")

    for budget in (1, 2, 10, 40, 100):
        assert chat.context("What now?", budget_tokens=budget).tokens <= budget


def test_history_returns_after_closing(tmp_path, clock):
    """No cold start: weeks later another process knows what was said."""
    path = tmp_path / "chat.db"
    with Memory(path, embedder=None, clock=clock) as first:
        first.conversation("c", user="ana").record("I'm allergic to peanuts.", "I'll remember.")
    clock.advance(days=30)
    with Memory(path, embedder=None, clock=clock) as second:
        context = second.conversation("another", user="ana").context("Suggest a snack.")
        assert "peanuts" in context.section("facts").text


def test_background_threads_leave_a_statement_to_the_call_that_made_it(tmp_path):
    """The receipt says what changed, and the next reply knows it, whoever else is at work."""
    with Memory(tmp_path / "chat.db", embedder=None, background=True) as memory:
        for number in range(150):
            receipt = memory.conversation("c", user=f"u{number}").record("I live in Porto.", "ok")
            assert [change.fact.value for change in receipt.changes] == ["Porto"]


def test_background_threads_do_the_work_by_themselves(tmp_path):
    with Memory(tmp_path / "chat.db", embedder=HashEmbedder(), background=True) as memory:
        chat = memory.conversation("c", user="ana")
        for number in range(40):
            chat.record(f"Line {number}.", "Yes.")
        memory.digest()
        assert [s.start_seq for s in chat.summaries(level=1)][:2] == [1, 11]
        assert all(job.run_at_ms > memory._engine.now_ms() for job in memory.jobs())


class Flaky(HashEmbedder):
    """An embedder that can be out of order."""

    down = True

    def embed(self, texts):
        if self.down:
            raise RuntimeError("secret words of a message")
        return super().embed(texts)


def test_a_failing_job_is_a_state_with_a_reason_then_a_dead_letter(clock):
    """Never an empty result: it is retried later each time, then put aside, and can be taken up again."""
    embedder = Flaky()
    with Memory(embedder=embedder, clock=clock, config=Config(job_attempts=3)) as memory:
        memory.conversation("c", user="ana").record("Hello there.")
        assert [memory.digest().failed, memory.digest().failed] == [1, 0]
        for _ in range(2):
            clock.advance(hours=1)
            memory.digest()
        (dead,) = memory.jobs("dead")
        assert (dead.kind, dead.attempt, dead.reason) == ("embed", 3, "RuntimeError")
        memory.retry(dead.id)
        embedder.down = False
        assert memory.digest().failed == 0
        assert memory.jobs("dead") == []
        with pytest.raises(NotFound):
            memory.retry(dead.id)


def test_a_cancelled_job_stays_away_until_it_is_wanted_back(memory, chat):
    chat.record("Hello there.")
    (job,) = [job for job in memory.jobs() if job.kind == "embed"]
    memory.cancel(job.id)
    memory.digest()
    assert [job.state for job in memory.jobs("cancelled")] == ["cancelled"]

    memory.retry(job.id)
    memory.digest()
    assert memory.jobs("cancelled") == []


def test_a_closed_memory_says_so(clock):
    memory = Memory(embedder=None, clock=clock)
    chat = memory.conversation("c", user="ana")
    memory.close()
    memory.close()

    with pytest.raises(StoreClosed):
        chat.record("Too late.")


@pytest.mark.parametrize(
    "call",
    [
        lambda m: m.conversation("c", user=""),
        lambda m: m.conversation("c", user=7),
        lambda m: m.conversation("c\x00", user="ana"),
        lambda m: m.conversation("c", user="ana", org="x" * 201),
        lambda m: m.conversation("", user="ana"),
        lambda m: m.user("a\ud800"),
        lambda m: m.conversation("c", user="ana").context("q", budget_tokens=0),
        lambda m: m.conversation("c", user="ana").context("q", budget_tokens=True),
        lambda m: m.user("ana").search(""),
        lambda m: m.user("ana").search(None),
        lambda m: m.user("ana").search("x", limit=0),
        lambda m: m.user("ana").search("x", kinds=("dream",)),
        lambda m: m.jobs("lost"),
    ],
)
def test_bad_arguments_are_refused_with_a_sentence(memory, call):
    with pytest.raises(BadInput, match=r".{15,}"):
        call(memory)


def test_options_that_do_not_exist_are_refused():
    with pytest.raises(ConfigError):
        Memory(llm="gpt")
    with pytest.raises(ConfigError):
        Memory(embedder="word2vec")
    with pytest.raises(ConfigError, match="chunk_messages is 3"):
        Config(chunk_messages=3)


def test_broad_categories_hold_what_the_rules_file_more_narrowly(memory):
    chat = memory.conversation("a", user="ana")
    for text in (
        "We're running PostgreSQL 15.",
        "Please keep your answers short.",
        "We use Kubernetes for deployment.",
    ):
        chat.record(text, "Noted.")
    user = memory.user("ana")
    user.remember(category="technical", key="editor", value="Helix")
    found = user.facts("technical")

    assert [fact.value for fact in found] == ["PostgreSQL 15", "Kubernetes", "Helix"]
    assert [fact.key for fact in user.facts("behavioral")] == ["reply_length"]
    last = found[0]
    after = (last.subject, last.category, last.key, last.value, last.id)
    assert user.facts("technical", limit=1) == found[:1]
    assert user.facts("technical", limit=1, after=after) == found[1:2]
    assert user.facts("nosuch") == []


def test_a_memory_is_given_with_its_broad_category_and_found_by_it(memory):
    user = memory.user("ana")
    given = {
        "Works at Acme Corp as a backend engineer": "identity",
        "Deploys on Kubernetes (GKE)": "context",
        "Had a webhook reliability issue in January": "history",
        "Running PostgreSQL 15": "technical",
        "Prefers Python over JavaScript": "preference",
        "Prefers concise, technical responses": "behavioral",
    }
    for text, category in given.items():
        assert user.remember(text, category=category).fact.label == category
    kept = given | {"Works at Acme Corp.": "identity", "Works as a backend engineer.": "identity"}
    del kept["Works at Acme Corp as a backend engineer"]  # two facts with an address each
    assert {fact.text: fact.label for fact in user.facts()} == kept
    for category in given.values():
        of_it = sorted(text for text, label in kept.items() if label == category)
        assert sorted(fact.text for fact in user.facts(category)) == of_it
        assert sorted(fact.text for fact in user.history(category)) == of_it


def test_the_category_of_a_sentence_is_one_of_six(memory):
    with pytest.raises(BadInput, match="'food' is none"):
        memory.user("ana").remember("Likes tea", category="food")
    assert memory.user("ana").facts() == []


def test_a_label_that_a_person_gives_replaces_the_one_of_the_category(memory):
    memory.conversation("a", user="ana").record("We use Kubernetes for deployment.", "Noted.")
    user = memory.user("ana")
    assert [fact.label for fact in user.facts()] == ["technical"]
    user.remember("We use Kubernetes for deployment.", category="context")

    assert [(fact.value, fact.label) for fact in user.facts("context")] == [("Kubernetes", "context")]
    assert memory.user("ana").export()["facts"][0]["label"] == "context"


def test_a_model_labels_what_it_extracts(clock):
    words = "Wrestles with asyncio in the billing service"
    rows = [{"content": words, "category": "technical", "confidence": 0.9}]
    rows += [{"content": "Billing runs at night", "category": "context", "confidence": 0.9}]
    with Memory(llm=lambda messages: json.dumps(rows), clock=clock) as memory:
        chat = memory.conversation("a", user="ana")
        chat.record("Lately I wrestle with asyncio in the billing service. Billing runs at night.", "I see.")
        chat.end()
        memory.digest()
        user = memory.user("ana")

        assert words in [fact.text for fact in user.facts("technical")]
        assert "Billing runs at night" in [fact.text for fact in user.facts("context")]


def learned_in_turn(clock, turns):
    """Return what is believed after *turns* with an extractor of one's own, which answers memories alone."""
    told = {}
    with Memory(llm=lambda messages: json.dumps(told["rows"]), clock=clock) as memory:
        chat = memory.conversation("a", user="ana", strategy="facts/2")
        for said, *facts in turns:
            told["rows"] = [{"content": one, "category": "context", "confidence": 0.9} for one in facts]
            chat.record(said, "I see.")
            chat.end()
            memory.digest()
        return {fact.text for fact in memory.user("ana").facts()}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (("We do tickets in Zendesk.", "Uses Zendesk for tickets"), ("Zendesk is history, it's Intercom now.", "Uses Intercom for tickets")),
        (("Metformin twice a day since spring.", "Takes metformin twice a day"), ("Doc took me off metformin.", "No longer takes metformin")),
        (("For scripts I'd pick Python over JavaScript.", "Prefers Python over JavaScript for scripts"),
         ("I've flipped: for scripts it's JavaScript over Python.", "Prefers JavaScript over Python for scripts")),
        (("The shop's data sits in a PostgreSQL 15 cluster.", "Running PostgreSQL 15"), ("We've switched to MySQL in March.", "Uses MySQL.")),
        (("We are on the Growth plan.", "On the Growth plan"), ("We upgraded to Scale.", "On the Scale plan")),
        (("Invoices go to Ingrid.", "Invoices go to Ingrid"), ("Please send invoices to Lars instead.", "Invoices go to Lars")),
        (("My team is six people.", "Team has six people"), ("We hired two, we are eight now.", "Team has eight people")),
        (("Tabs, always.", "Indents with tabs"), ("Make that spaces from now on.", "Prefers spaces for indentation")),
        (("Nights are when I come alive.", "Is a night owl"), ("I'm up with the birds by now, a morning person.", "Is a morning person")),
        (("Climbing: intermediate, I'd say.", "Is an intermediate climber"), ("These days I climb like an expert.", "Is an expert climber")),
        (("Mail me, that's best.", "Prefers email communication"), ("Calls, please, not emails.", "Prefers phone calls over emails")),
        (("Mail is Gmail for me.", "Uses Gmail"), ("I switched to Proton Mail.", "Uses Proton Mail.")),
        (("Gold's Gym since 2019.", "Is a member of Gold's Gym"), ("It's Planet Fitness now.", "Is a member of Planet Fitness")),
        (("Gym? Mondays.", "Goes to the gym on Mondays"), ("Gym moved to Thursdays.", "Goes to the gym on Thursdays")),
        (("Picky, that's me at the table.", "Is a picky eater"), ("I eat everything now.", "Eats everything")),
    ],
)  # fmt: skip
def test_a_later_memory_in_a_models_own_words_replaces_what_it_changes(clock, before, after):
    assert learned_in_turn(clock, [before, after]) == {after[1]}


@pytest.mark.parametrize(
    "turns",
    [
        (("Invoices go to Ingrid.", "Invoices go to Ingrid"), ("Contracts go to Lars now.", "Contracts go to Lars")),
        (("Team Oslo has six people.", "Team in Oslo has six people"), ("Team Bergen has eight now.", "Team in Bergen has eight people")),
        (("Reports go to Ingrid.", "Reports go to Ingrid"), ("Reports go to Lars as well now.", "Reports go to Lars")),
        (("I have a colleague named Ana.", "Has a colleague named Ana"), ("I have a colleague named Bob now.", "Has a colleague named Bob")),
        (("Remote on Fridays.", "Works remotely on Fridays"), ("On Mondays I work in the office.", "Works in the office on Mondays")),
        (("Go code gets tabs.", "Prefers tabs in Go"), ("Python code gets spaces.", "Prefers spaces in Python")),
        (("Spanish: beginner.", "Is a beginner in Spanish"), ("French, though, fluent.", "Is fluent in French")),
        (("My wife does part time.", "Wife works part time"), ("I'm at it full time now.", "Works full time")),
        (("Duolingo for Spanish.", "Learns Spanish on Duolingo"), ("Duolingo for Korean now.", "Learns Korean on Duolingo")),
        (("A Mac, at home.", "Uses a Mac at home"), ("At work I've got Windows.", "Uses Windows at work")),
        (("Netlify hosts the site.", "Hosts the site on Netlify"), ("Render hosts the API now.", "Hosts the API on Render")),
        (("Metformin for the diabetes.", "Takes metformin for diabetes"), ("For the diabetes I'm on Ozempic now.", "Takes Ozempic for diabetes")),
    ],
)  # fmt: skip
def test_memories_of_two_things_stay_beside_each_other(clock, turns):
    assert {turn[1] for turn in turns} <= learned_in_turn(clock, turns)


def test_a_memory_ends_with_the_fact_that_was_read_in_its_words(clock):
    turns = [
        ("We use React on the frontend.", "Uses React on the frontend"),
        ("We've rewritten the frontend in Svelte.",),
    ]
    assert learned_in_turn(clock, turns) == {"Uses Svelte."}


def test_a_memory_whose_names_nobody_said_is_not_believed(clock):
    assert learned_in_turn(clock, [("I answer tickets all day.", "Needs Zendesk for tickets")]) <= {
        "Answers tickets all day."
    }


def test_memories_within_an_object_are_an_answer_whatever_was_asked_for(clock):
    rows = {"facts": [{"content": "Works in a team of six", "category": "context", "confidence": 0.9}]}
    with Memory(llm=lambda messages: f"```json\n{json.dumps(rows)}\n```", clock=clock) as memory:
        chat = memory.conversation("a", user="ana")
        chat.record("We are a team of six, and we work in Porto.", "I see.")
        chat.end()

        assert memory.digest().failed == 0
        assert "Works in a team of six" in [fact.text for fact in memory.user("ana").facts()]


@pytest.mark.parametrize(
    ("turns", "value"),
    [
        ((("No meat for me, I'm veggie.", "dietary,vegetarian,true,0.95"), ("Fish is back on my plate though.", "dietary,pescatarian,true,0.95")), "pescatarian true"),
        ((("We'll see Kyoto and Nara.", 'destination,cities,"Kyoto,Nara",0.9'), ("Nara is off, Osaka instead.", 'destination,cities,"Kyoto,Osaka",0.9')), "cities Kyoto,Osaka"),
        ((("Boats make me motion sick.", "health,motion_sick,true,0.9"), ("With the patches the ferry was fine.", "health,motion_sick,false,0.9")), "motion_sick false"),
        # a question, a few words, what says another row, and another number than was said change nothing
        ((("No meat for me, I'm veggie.", "dietary,vegetarian,true,0.95"), ("What could I eat with rice?", "dietary,vegan,true,0.95")), "vegetarian true"),
        ((("No meat for me, I'm veggie.", "dietary,vegetarian,true,0.95"), ("Ok, thanks.", "dietary,vegan,true,0.95")), "vegetarian true"),
        ((("No meat for me, I'm veggie.", "dietary,vegetarian,true,0.95"), ("It will be the scooter around town.", "possession,drives,scooter,0.9\ndietary,vegan,true,0.95")), "vegetarian true"),
        ((("We have $3000 at most.", "budget,max_usd,3000,0.9"), ("That seems too much to me.", "budget,max_usd,2000,0.9")), "max_usd 3000"),
    ],
)  # fmt: skip
def test_a_row_of_four_columns_may_change_what_is_known_in_words_of_its_own(clock, turns, value):
    told = {}
    config = Config(extract_every_user_turns=1)
    with Memory(llm=lambda messages: told["row"], clock=clock, config=config) as memory:
        chat = memory.conversation("s1", user="ana", own_facts=True, strategy="facts/2")
        for said, row in turns:
            told["row"] = row
            chat.record(said, "I see.")
            memory.digest()

        assert value in [f"{fact.key} {fact.value}" for fact in memory.user("ana").facts()]
        assert len({fact.key for fact in memory.user("ana").facts() if fact.category == "dietary"}) <= 1


@pytest.mark.parametrize(
    ("said", "row", "held"),
    [
        ("I can't stand olives.", "food,dislikes,olives,0.9", {"preference/dislikes=olives"}),
        ("We use MariaDB for that.", "technical,database,MariaDB,0.9", {"tech/uses_database=MariaDB"}),
        ("My budget is $2500.", "budget,max,2500,0.9", {"budget/max_usd=2500"}),
        ("The trip is 12 days long.", "goal,trip_length_days,12,0.9", {"trip/length_days=12"}),
        ("I'm allergic to mustard and eggs.", 'allergy,allergic_to,"mustard, eggs",0.9,,add', {"allergy/allergic_to=mustard", "allergy/allergic_to=eggs"}),
    ],
)  # fmt: skip
def test_a_row_at_an_address_of_ones_own_is_no_second_fact_beside_that_of_the_rules(said, row, held):
    """The model is shown what is known, and one that ignores it must not double it: one row holds a durable attribute."""
    with Memory(llm=lambda messages: row) as memory:
        chat = memory.conversation("s1", user="ana")
        chat.record(said, "I see.")
        chat.end()
        memory.digest()

        assert {f"{fact.category}/{fact.key}={fact.value}" for fact in memory.user("ana").facts()} == held


@pytest.mark.parametrize(
    ("said", "row", "believed"),
    [
        ("I'm on the spectrum, so no sarcasm please.", "health,autistic,true,0.9", True),
        ("Got two little ones at home.", "family,number_of_children,2,0.9", True),
        ("Ich lasse alles weg, was mal gelebt hat.", "dietary,vegan,true,0.9", True),
        ("We switched the webhooks off.", '[{"content": "Disabled notifications", "category": "history", "confidence": 0.9}]', True),
        ("Am I on the spectrum?", "health,autistic,true,0.9", False),
        ("If I had two little ones I'd move.", "family,number_of_children,2,0.9", False),
        ("Got some little ones at home.", "family,number_of_children,2,0.9", False),
        ("The bells are loud.", "religion,faith,Christian,0.9", False),
        ("My sister gets carsick.", "health,motion_sick,true,0.9", False),
    ],
)  # fmt: skip
def test_who_trusts_a_model_has_it_believed_in_words_that_nobody_said(said, row, believed):
    """With the setting alone; a question, a supposition, a number that was not said and another's fact are rejected all the same."""

    def found(config):
        with Memory(llm=lambda messages: row, config=config) as memory:
            chat = memory.conversation("s1", user="ana")
            chat.record(said, "I see.")
            chat.end()
            memory.digest()
            by_model = [fact for fact in memory.user("ana").facts() if fact.source.startswith("function")]
            return [fact.evidence[0].quote for fact in by_model if not fact.subject.startswith("sister")]

    assert found(Config()) == []
    assert [quote in said for quote in found(Config(believe_unquoted=True))] == [True] * believed
