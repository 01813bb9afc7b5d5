"""A new sentence meets those that are believed: said again, ended, or both kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count

import numpy as np
import pytest

from holdfast import Config, Memory
from holdfast.clock import to_ms
from holdfast.jobs.facts import addresses
from holdfast.reconcile.decide import Claim
from holdfast.reconcile.learn import MatchHints, embed_sentences, learn
from holdfast.reconcile.registry import registry
from holdfast.scope import Scope
from holdfast.store import Store, open_store
from holdfast.testing.fakes import FakeClock, HashEmbedder
from holdfast.types import Candidate, Evidence, FactChange

SCOPE = Scope("o", "b", "ana", "self", "a")
START = datetime(2026, 1, 5, tzinfo=UTC)
RULES = MatchHints(addresses=lambda text: addresses(registry(), None, text))


@pytest.fixture
def store() -> Iterator[Store]:
    opened = open_store(":memory:", Config())
    yield opened
    opened.close()


NUMBER = count(1)


def said(text: str, day: int = 0, **changes: object) -> Claim:
    at, seq = START + timedelta(days=day), next(NUMBER)
    values = {
        "kind": "statement", "subject": "self", "category": "note", "key": "", "value": "", "text": text,
        "confidence": 1.0, "seq": seq, "quote": text, "start": 0, "source": "a model",
    }  # fmt: skip
    evidence = Evidence("a", seq, "user", text, 0, len(text), at, "self")
    return Claim(Candidate(**(values | changes)), evidence, to_ms(at), True)


def tell(store: Store, *claims: Claim, means: MatchHints = RULES) -> list[FactChange]:
    ids = count()
    prefix = f"f{next(NUMBER)}"
    return store.write(
        SCOPE,
        lambda view: learn(
            view, claims, (), registry(), new_id=lambda: f"{prefix}.{next(ids)}", now_ms=to_ms(START), hints=means
        ),
    )


def live(store: Store) -> list[str]:
    return sorted(row.fact.text for row in store.read(SCOPE, lambda view: view.facts()))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I like my job.", "I don't like my job anymore."),
        ("I love my new job.", "I hate my new job."),
        ("The kettle belongs to me.", "The kettle does not belong to me."),
        ("I have two cats.", "I have three cats."),
        ("My rent is 500 euros.", "My rent is 620 euros."),
        ("I work until 4:30 on tuesdays.", "I work till 3:30 on tuesdays."),
        ("I smoke.", "I stopped smoking."),
        ("I work at the bank as a clerk.", "I no longer work at the bank."),
        ("I use PostgreSQL for everything.", "We switched from PostgreSQL to MySQL."),
        ("I use PostgreSQL.", "We switched to MySQL."),
        ("I live in Porto.", "I moved from Porto to Faro."),
        ("I live in Berlin.", "I live in Munich."),
        ("I am married.", "I am divorced."),
    ],
)
def test_what_is_newer_ends_what_it_contradicts(store: Store, old: str, new: str) -> None:
    tell(store, said(old))
    (change,) = tell(store, said(new, day=1))

    assert (change.op, change.previous and change.previous.text) == ("replaced", old)
    assert live(store) == [new]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I like tea.", "I like coffee."),
        ("I don't like coffee.", "I drink coffee at work."),
        ("My sister smokes.", "I stopped smoking."),
        ("I sell smoke detectors.", "I stopped smoking."),
        ("I drink coffee in the morning.", "I no longer drink coffee at night."),
        ("Room 3 is free.", "Room 4 is free."),
        ("I ran 5 km on Monday.", "I ran 10 km on Thursday."),
        ("I love Porto.", "I moved from Porto to Faro."),
        ("I used PostgreSQL at school.", "We switched from PostgreSQL to MySQL."),
        ("I was a vegetarian.", "I am not a vegetarian."),
        ("My dog is called Rex.", "My cat is called Rex."),
        ("She has two cats.", "I have three cats."),
        ("I speak Spanish.", "I speak Italian."),
        ("I could not swim.", "I can swim."),
        ("Ich mag Tee.", "Ich mag Kaffee."),
    ],
)
def test_in_doubt_both_stay(store: Store, old: str, new: str) -> None:
    tell(store, said(old))
    tell(store, said(new, day=1))

    assert live(store) == sorted([old, new])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I smoke.", "She stopped smoking."),
        ("She smokes.", "I stopped smoking."),
        ("He smokes.", "They stopped smoking."),
        ("I use PostgreSQL.", "They switched from PostgreSQL to MySQL."),
        ("I live in Porto.", "He moved from Porto to Faro."),
        ("I like jazz.", "She likes jazz."),
        ("I like jazz.", "She doesn't like jazz."),
        ("He has two cats.", "She has three cats."),
    ],
)
def test_one_person_says_nothing_about_another(store: Store, old: str, new: str) -> None:
    """Neither ends nor confirms the other, although only the person differs."""
    tell(store, said(old))
    (change,) = tell(store, said(new, day=1))

    assert change.op == "joined"
    assert live(store) == sorted([old, new])


def test_an_event_contradicts_nothing(store: Store) -> None:
    tell(store, said("I have two meetings.", lifetime="event"))
    tell(store, said("I have three meetings.", day=1, lifetime="event"))

    assert len(live(store)) == 2


def test_what_was_said_before_is_history_when_it_is_read_after(store: Store) -> None:
    earlier = said("I have two cats.", day=2)
    tell(store, said("I have three cats.", day=9))
    (change,) = tell(store, earlier)
    (past,) = [row for row in store.read(SCOPE, lambda view: view.all_facts()) if not row.fact.live]

    assert change.op == "replaced"
    assert (past.fact.text, past.fact.ended_because) == ("I have two cats.", "replaced")
    assert past.fact.valid_to == START + timedelta(days=9)
    assert live(store) == ["I have three cats."]


def test_said_again_is_one_more_quote(store: Store) -> None:
    tell(store, said("The garden gate sticks in winter."))
    (change,) = tell(store, said("The garden gate really sticks in winter!", day=3))
    (row,) = store.read(SCOPE, lambda view: view.facts())

    assert change.op == "confirmed"
    assert [e.quote for e in row.fact.evidence] == [
        "The garden gate sticks in winter.", "The garden gate really sticks in winter!",
    ]  # fmt: skip
    assert row.fact.confirmations == 1


def test_reading_the_same_words_twice_changes_nothing(store: Store) -> None:
    claims = [
        said("I have two cats."), said("I have three cats.", day=1), said("I really have three cats.", day=2),
        said("I like my job.", day=3), said("I hate my job.", day=4), said("I like my job.", day=5),
    ]  # fmt: skip
    tell(store, *claims)
    before = store.read(SCOPE, lambda view: view.all_facts())

    assert tell(store, *claims) == []
    assert store.read(SCOPE, lambda view: view.all_facts()) == before
    assert live(store) == ["I have three cats.", "I like my job."]


def test_one_subject_says_nothing_about_another(store: Store) -> None:
    tell(store, said("I have two cats."))
    tell(store, said("I have three cats.", day=1, subject="bo"))

    assert len(live(store)) == 2


def test_attributes_with_several_values_are_not_touched(store: Store) -> None:
    attribute = {"kind": "attribute", "category": "pets", "key": "has_pet", "value": "two cats"}
    tell(store, said("I have two cats.", **attribute))
    tell(store, said("I have three cats.", day=1))

    assert live(store) == ["I have three cats.", "I have two cats."]


def test_a_vector_finds_other_words_and_the_guard_decides(store: Store) -> None:
    class Same(HashEmbedder):
        """Everything is alike."""

        def embed(self, texts):
            return np.ones((len(texts), self.dim), np.float32) / np.sqrt(np.float32(self.dim))

    with Memory(embedder=Same(), clock=FakeClock(START)) as memory:
        user = memory.user("ana")
        user.remember("The walk along the river calms me down.")
        memory.digest()
        again = user.remember("Walking by the river, I calm down.")
        other = user.remember("The walk along the river takes 40 minutes.")
        memory.digest()

        assert (again.op, other.op) == ("joined", "joined")  # "by" and "along" differ: both stay
        assert user.remember("Strolls there calm me down.").op == "joined"
        assert user.remember("The kids dread the river.").op == "joined"
        memory.digest()
        assert user.remember("The children dread the river.").op == "confirmed"
        assert embed_sentences(None, ["x"]) is None
        assert memory.doctor().findings == ()


def test_erasing_one_quote_leaves_none_of_its_words_in_the_sentence() -> None:
    clock = FakeClock(START)
    with Memory(embedder=None, clock=clock) as memory:
        user = memory.user("ana")
        first = user.remember("The garden gate of Kanari sticks again.")
        clock.advance(seconds=60)
        user.remember("The garden gate of Kanari really sticks.")
        assert first.fact is not None
        assert len(user.facts()) == 1
        memory.conversation("(by hand)", user="ana").forget(1)
        (fact,) = user.facts()

        assert fact.text == "The garden gate of Kanari really sticks."
        assert [e.seq for e in fact.evidence] == [2]
        assert memory.doctor().findings == ()


def in_project(text: str, day: int = 0) -> Claim:
    """A sentence about the user, said in a conversation about a project."""
    claim = said(text, day)
    return replace(claim, evidence=replace(claim.evidence, home="shop"), unscoped=False)


def about(store: Store, subject: str) -> list[str]:
    return sorted(row.fact.text for row in store.read(SCOPE.about(subject), lambda view: view.facts()))


def test_a_sentence_said_about_a_project_does_not_reach_another(store: Store) -> None:
    tell(store, said("The user sings in a choir."), in_project("The user prefers short functions."))

    assert about(store, "shop") == ["The user prefers short functions.", "The user sings in a choir."]
    assert about(store, "garden") == ["The user sings in a choir."]


def test_what_is_known_of_the_user_ends_wherever_that_is_said(store: Store) -> None:
    tell(store, said("I smoke."))
    tell(store, in_project("I stopped smoking.", day=1))

    assert "I smoke." not in about(store, "garden")
