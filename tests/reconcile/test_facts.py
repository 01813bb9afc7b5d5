"""Who wins, what joins, what becomes history: tables over `decide`."""

from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise

import pytest

from holdfast import Memory
from holdfast.clock import from_ms, to_ms
from holdfast.errors import ConfigError
from holdfast.reconcile.decide import Claim, decide
from holdfast.reconcile.learn import with_opposites
from holdfast.reconcile.registry import Registry, normalize_value, parse, registry
from holdfast.types import Candidate, Evidence, Hit

START = to_ms(datetime(2026, 1, 1, tzinfo=UTC))
REGISTRY = Registry(
    parse(
        {
            "dietary": {"cardinality": "exclusive"},
            "budget": {"keys": {"max_usd": {"cardinality": "single", "type": "number"}}},
            "language": {"cardinality": "multi", "keys": {"spoken": {"cardinality": "multi"}}},
        }
    )
)


def claim(category, key, value, seq, *, op="assert", join="", conversation="c", at=None, start=0, subject="self"):
    said_at = START + seq * 1000 if at is None else at
    candidate = Candidate("attribute", subject, category, key, value, f"{key} {value}.", 0.9, seq, "q", start, op, join)
    evidence = Evidence(conversation, seq, "user", "q", start, start + 1, from_ms(said_at))
    return Claim(candidate, evidence, said_at, unscoped=True)


class Beliefs:
    """A store of one subject's facts in plain Python, fed by `decide`."""

    def __init__(self):
        self.rows = {}
        self.serial = 0

    def hear(self, *claims):
        changes = []
        for one in claims:
            self.serial += 1
            live = [row for row in self.rows.values() if row.fact.live]
            past = [row for row in self.rows.values() if not row.fact.live]
            decision = decide(one, live, past, REGISTRY, fact_id=f"f{self.serial}", now_ms=START + 10**6 + self.serial)
            for row in (*decision.updates, *([decision.add] if decision.add else [])):
                self.rows[row.fact.id] = row
            changes.append(decision.change.op if decision.change else decision.refused.split(":")[0])
        return changes

    def live(self):
        return sorted((r.fact.key, r.fact.value) for r in self.rows.values() if r.fact.live)

    def past(self):
        ended = [r.fact for r in self.rows.values() if not r.fact.live]
        return sorted((f.key, f.value, f.ended_because) for f in ended)


@pytest.fixture
def beliefs():
    return Beliefs()


def test_an_exclusive_category_holds_one_fact_whatever_the_key(beliefs):
    """ "I'm vegetarian" and later "I eat fish now" leave one dietary fact."""
    assert beliefs.hear(claim("dietary", "vegetarian", "true", 1), claim("dietary", "pescatarian", "true", 9)) == [
        "new",
        "replaced",
    ]
    assert beliefs.live() == [("pescatarian", "true")]
    assert beliefs.past() == [("vegetarian", "true", "replaced")]


def test_a_single_key_keeps_its_newest_value(beliefs):
    beliefs.hear(claim("budget", "max_usd", "3000", 1), claim("budget", "max_usd", "3500", 2))

    assert beliefs.live() == [("max_usd", "3500")]


@pytest.mark.parametrize(("key", "other"), [("likes", "dislikes"), ("dislikes", "likes")])
def test_who_likes_something_does_not_dislike_it(beliefs, key, other):
    beliefs.hear(claim("preference", other, "sushi", 1), claim("preference", other, "jazz", 2))
    said = [*with_opposites([claim("preference", key, "Sushi", 3)], registry())]
    here = [one for one in said if one.candidate.key in ("likes", "dislikes")]

    assert beliefs.hear(*here) == ["new", "retracted"]
    assert beliefs.live() == [(other, "jazz"), (key, "Sushi")] or beliefs.live() == [(key, "Sushi"), (other, "jazz")]


def test_a_set_of_values_joins(beliefs):
    """Both "I speak Spanish" and "I speak Korean" stay believed."""
    assert beliefs.hear(claim("language", "spoken", "Spanish", 1), claim("language", "spoken", "Korean", 2)) == [
        "new",
        "joined",
    ]
    assert beliefs.live() == [("spoken", "Korean"), ("spoken", "Spanish")]


@pytest.mark.parametrize(("join", "left"), [("", ["blue", "red"]), ("add", ["blue", "red"]), ("replace", ["blue"])])
def test_an_unknown_category_joins_unless_the_write_says_replace(beliefs, join, left):
    """When in doubt, join, never destroy."""
    beliefs.hear(claim("colour", "likes", "red", 1, join=join), claim("colour", "likes", "blue", 2, join=join))

    assert [value for _, value in beliefs.live()] == left


def test_the_same_value_again_confirms(beliefs):
    assert beliefs.hear(claim("dietary", "vegan", "true", 1), claim("dietary", "vegan", "true", 5)) == [
        "new",
        "confirmed",
    ]
    (row,) = beliefs.rows.values()
    assert row.fact.confirmations == 1
    assert row.stated_seq == 5


@pytest.mark.parametrize("value", ["SPANISH", "Spanish.", "  spanish "])
def test_values_that_differ_in_form_alone_are_one(beliefs, value):
    beliefs.hear(claim("language", "spoken", "Spanish", 1))

    assert beliefs.hear(claim("language", "spoken", value, 2)) == ["confirmed"]


def test_reading_the_same_words_again_changes_nothing(beliefs):
    """A job that runs twice is harmless."""
    story = [claim("dietary", "vegetarian", "true", 1), claim("dietary", "vegan", "true", 2)]
    beliefs.hear(*story)
    before = dict(beliefs.rows)

    assert beliefs.hear(*story) == ["", ""]
    assert beliefs.rows == before


def test_a_late_worker_cannot_bring_back_an_older_value(beliefs):
    """Chunks may finish out of order; what was said last wins, the other is history up to then."""
    beliefs.hear(claim("dietary", "vegan", "true", 9), claim("dietary", "vegetarian", "true", 2))

    assert beliefs.live() == [("vegan", "true")]
    (old,) = [r.fact for r in beliefs.rows.values() if not r.fact.live]
    assert (old.valid_from, old.valid_to) == (from_ms(START + 2000), from_ms(START + 9000))
    assert old.superseded_by == "f1"


def test_message_order_decides_inside_a_conversation_even_when_clocks_run_back(beliefs):
    beliefs.hear(claim("dietary", "vegetarian", "true", 1, at=START + 5000))
    beliefs.hear(claim("dietary", "vegan", "true", 2, at=START))

    assert beliefs.live() == [("vegan", "true")]


def test_time_decides_between_conversations(beliefs):
    beliefs.hear(claim("dietary", "vegetarian", "true", 900, conversation="a", at=START))
    beliefs.hear(claim("dietary", "vegan", "true", 1, conversation="b", at=START + 1))

    assert beliefs.live() == [("vegan", "true")]


@pytest.mark.parametrize(("key", "value"), [("vegetarian", "true"), ("vegetarian", ""), ("", "")])
def test_a_retraction_ends_what_it_addresses(beliefs, key, value):
    beliefs.hear(claim("dietary", "vegetarian", "true", 1))

    assert beliefs.hear(claim("dietary", key, value, 4, op="retract")) == ["retracted"]
    assert beliefs.live() == []
    assert beliefs.past() == [("vegetarian", "true", "retracted")]


def test_a_retraction_of_one_value_leaves_the_others(beliefs):
    beliefs.hear(claim("language", "spoken", "Spanish", 1), claim("language", "spoken", "Korean", 2))
    beliefs.hear(claim("language", "spoken", "spanish", 3, op="retract"))

    assert beliefs.live() == [("spoken", "Korean")]


def test_a_retraction_of_nothing_is_refused_with_the_reason(beliefs):
    assert beliefs.hear(claim("dietary", "vegan", "true", 4, op="retract")) == ["nothing-to-end"]


def test_a_retraction_does_not_touch_what_was_said_after_it(beliefs):
    beliefs.hear(claim("dietary", "vegan", "true", 9))

    assert beliefs.hear(claim("dietary", "vegan", "true", 4, op="retract")) == ["nothing-to-end"]
    assert beliefs.live() == [("vegan", "true")]


def test_a_claim_older_than_a_retraction_stays_ended(beliefs):
    beliefs.hear(claim("dietary", "vegan", "true", 1), claim("dietary", "vegan", "true", 8, op="retract"))
    beliefs.hear(claim("dietary", "vegetarian", "true", 5, conversation="other"))

    assert beliefs.live() == []


def test_a_value_of_the_wrong_type_is_refused(beliefs):
    assert beliefs.hear(claim("budget", "max_usd", "plenty", 1)) == ["not-a-number"]
    assert beliefs.hear(claim("budget", "max_usd", "500 or maybe 700", 1)) == ["not-a-number"]
    assert beliefs.hear(claim("budget", "max_eur", "600 a month for rent", 1)) == ["new"]


def test_a_transient_fact_keeps_the_end_its_words_name():
    one = claim("plan", "travelling_to", "Rome", 1)
    until = START + 7 * 86_400_000
    one = replace(one, candidate=replace(one.candidate, valid_to_ms=until, lifetime="transient"))

    decision = decide(one, [], [], REGISTRY, fact_id="f", now_ms=START)

    assert decision.add is not None
    assert decision.add.expires_at == until
    assert decision.add.fact.valid_to is None
    assert decision.add.fact.until == from_ms(until)


@pytest.mark.parametrize(
    ("said", "last"),
    [
        ("I have a chest infection.", "2026-01-26"),
        ("I have a sprained ankle.", "2026-02-16"),
        ("I have a broken wrist.", "2026-04-05"),
        ("I have asthma.", None),
        ("I have chronic bronchitis.", None),
        ("I suffer from tonsillitis a lot.", None),
        ("I get headaches every week.", None),
        ("I have arthritis in my left knee.", None),
        ("I have a heart condition.", None),
    ],
)
def test_what_is_acute_ends_by_itself_and_what_lasts_or_comes_back_does_not(memory, said, last):
    memory.conversation("c", user="ana").record(said, "I see.")
    memory.digest()
    found = {str(fact.last_day.date()) if fact.last_day else None for fact in memory.user("ana").facts()}

    assert found == {last}


@pytest.mark.parametrize(
    ("said", "category", "last"),
    [
        ("I'm off to Greece on the 12th of May for two weeks.", "trip", "2026-05-26"),
        ("We're flying to Japan in October.", "trip", "2026-11-14"),
        ("I'm 34 weeks pregnant.", "health", "2026-02-16"),
        ("I'm 12 weeks pregnant.", "health", "2026-07-20"),
    ],
)
def test_what_lies_ahead_is_known_until_it_is_over(memory, said, category, last):
    memory.conversation("c", user="ana").record(said, "I see.")
    memory.digest()
    found = {str(fact.last_day.date()) for fact in memory.user("ana").facts(category) if fact.last_day}

    assert found == {last}


@pytest.mark.parametrize(
    ("first", "then", "left"),
    [
        ("Our budget is about 3.5k.", "My budget is $4000.", "4000"),
        ("My budget is $3000.", "Budget around 5k now.", "5000"),
        ("Budget around 5k.", "We can go up to 6 grand.", "6000"),
    ],
)
def test_a_budget_with_a_currency_and_one_without_replace_one_another(memory, first, then, left):
    chat = memory.conversation("c", user="ana")
    chat.record(first, "I see.")
    chat.record(then, "I see.")
    memory.digest()

    assert [fact.value for fact in memory.user("ana").facts("budget")] == [left]


def test_history_tiles_the_time_without_overlap(beliefs):
    """Whatever the order of arrival, one value ends where the next begins."""
    for seq in (5, 1, 3, 2, 4):
        beliefs.hear(claim("budget", "max_usd", str(seq), seq))

    spans = sorted((r.fact.valid_from, r.fact.valid_to, r.fact.value) for r in beliefs.rows.values() if r.fact.valid_to)
    assert [value for *_, value in spans] == ["1", "2", "3", "4"]
    assert all(end == start for (_, end, _), (start, _, _) in pairwise(spans))
    assert beliefs.live() == [("max_usd", "5")]


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [("Straße", "STRASSE", True), ("Café", "Cafe\u0301", True), ("10", "10.", True), ("C", "C++", False)],
)
def test_sameness_folds_form_and_keeps_meaning(left, right, equal):
    assert (normalize_value(left) == normalize_value(right)) is equal


def test_a_registry_entry_that_cannot_be_used_names_itself():
    with pytest.raises(ConfigError, match=r"'mood'.*cardinality"):
        parse({"mood": {"cardinality": "several"}})
    with pytest.raises(ConfigError, match=r"'mood'.*listed.*one string"):
        parse({"mood": {"keys": {"feels": {}}, "listed": ["feels"]}})
    with pytest.raises(ConfigError, match=r"'mood'.*listed names sings.*add"):
        parse({"mood": {"keys": {"feels": {}}, "listed": "feels sings"}})
    assert parse({"mood": {"keys": {"feels": {}}, "listed": "feels"}})["mood"].listed == ("feels",)


@pytest.mark.parametrize(
    ("first", "second", "left", "ops"),
    [
        ("SQLite 3.39", "SQLite", "SQLite 3.39", ["new", "confirmed"]),
        ("SQLite", "SQLite 3.39", "SQLite 3.39", ["new", "replaced"]),
        ("SQLite 3.39", "SQLite 3.45", "SQLite 3.45", ["new", "replaced"]),
        ("SQLite 3.39", "MySQL", "MySQL", ["new", "replaced"]),
        ("Room 12", "Room", "Room 12", ["new", "confirmed"]),
    ],
)
def test_name_without_its_version_does_not_replace_the_one_with(beliefs, first, second, left, ops):
    heard = beliefs.hear(claim("db", "uses", first, 1, join="replace"), claim("db", "uses", second, 2, join="replace"))

    assert heard == ops
    assert [value for _, value in beliefs.live()] == [left]


def test_name_without_its_version_takes_back_the_one_with(beliefs):
    beliefs.hear(claim("db", "uses", "SQLite 3.39", 1), claim("db", "uses", "SQLite", 2, op="retract"))

    assert beliefs.live() == []


def test_what_was_said_held_for_a_while_even_if_the_change_is_dated_before(beliefs):
    """ "I live in Lisbon" on Monday, "we moved to Porto last week" on Friday: Lisbon is not a fact of no length."""
    lisbon = claim("home", "lives_in", "Lisbon", 1, join="replace")
    porto = claim("home", "lives_in", "Porto", 5, join="replace")
    dated = replace(porto, candidate=replace(porto.candidate, valid_from_ms=START - 7 * 86_400_000))
    beliefs.hear(lisbon, dated)
    rows = {row.fact.value: row.fact for row in beliefs.rows.values()}

    assert rows["Lisbon"].valid_from < rows["Lisbon"].valid_to == rows["Porto"].valid_from == from_ms(porto.said_at_ms)


def test_what_is_taken_back_held_for_a_while_too(beliefs):
    lisbon = claim("home", "lives_in", "Lisbon", 1)
    gone = claim("home", "lives_in", "Lisbon", 5, op="retract")
    beliefs.hear(lisbon, replace(gone, candidate=replace(gone.candidate, valid_from_ms=START - 7 * 86_400_000)))
    (row,) = beliefs.rows.values()

    assert row.fact.valid_from < row.fact.valid_to


def test_facts_changes_and_hits_print_as_one_short_line():
    """A list of facts is the first thing that one prints."""
    with Memory() as memory:
        chat, kim = memory.conversation("web-42", user="kim"), memory.user("kim")
        chat.record("I live in Leeds. My sister Eva is a vet.", "Noted.")
        moved = chat.record("I moved to Hull.").changes

        assert repr(kim.facts("home")) == "[<Fact 'Lives in Hull.' (home/lives_in)>]"
        assert repr(kim.history("home")[0]) == "<Fact 'Lives in Leeds.' (home/lives_in, replaced)>"
        assert "<Fact 'Eva works as a vet.' (eva: work/works_as)>" in repr(kim.facts())
        assert repr(moved) == "(<FactChange replaced 'Lives in Hull.', was 'Lives in Leeds.'>,)"
        hits = kim.search("Where do I live?")
        assert {repr(hit).partition(", relevance ")[0] for hit in hits} >= {
            "<Hit fact 'Lives in Hull.'",
            "<Hit message 'I moved to Hull.' (message 3 of web-42)",
        }


def test_a_long_message_prints_as_its_beginning():
    hit = Hit("message", "m1", "word " * 100_000, 1.0, None, "web-42", 1)

    assert len(repr(hit)) < 200
