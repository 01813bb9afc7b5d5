"""What a message states is learned in the transaction that stores it, unless something came in between."""

from __future__ import annotations

import pytest

from holdfast import Memory
from holdfast.digest import rules
from holdfast.jobs.facts import FactReader
from holdfast.store import ReadView


@pytest.fixture
def meanwhile(monkeypatch):
    """Lets another process do something between the reading of a message and its storing, once."""
    read_ahead, waiting = FactReader.read_ahead, []

    def interrupted(self, scope, said):
        found = read_ahead(self, scope, said)
        while waiting:
            waiting.pop()()
        return found

    monkeypatch.setattr(FactReader, "read_ahead", interrupted)
    return waiting.append


def test_a_statement_is_stored_with_what_it_states_and_no_job(memory):
    chat = memory.conversation("c", user="ana")

    learned = chat.record("I live in Porto.", "Noted.").changes

    assert [change.fact.value for change in learned] == ["Porto"]
    assert not [job for job in memory.jobs() if job.kind == "extract"]
    assert memory.digest().facts == 0


def test_a_batch_is_read_message_by_message(memory):
    chat = memory.conversation("c", user="ana")

    chat.append(
        [{"role": "user", "content": text} for text in ("I'm vegetarian.", "I live in Porto.", "I eat fish now.")]
    )

    assert {fact.key for fact in memory.user("ana").facts(category="dietary")} == {"pescatarian"}


@pytest.mark.parametrize("change", ["fact", "message", "erase"])
def test_what_another_process_did_meanwhile_is_as_good_as_done_before(tmp_path, clock, meanwhile, change):
    known = []
    for order in ("meanwhile", "before"):
        path = tmp_path / f"{order}.db"
        with Memory(path, clock=clock) as here, Memory(path, clock=clock) as there:
            chat = here.conversation("c", user="ana")
            chat.record("I'm vegetarian.", "Noted.")
            do = {
                "fact": lambda there=there: there.conversation("d", user="ana").record("I'm vegan.", "Noted."),
                "message": lambda there=there: there.conversation("c", user="ana").record("I live in Porto.", "Noted."),
                "erase": there.user("ana").erase,
            }[change]
            do() if order == "before" else meanwhile(do)

            chat.record("I eat fish now.", "Noted.")

            known.append({(fact.category, fact.key, fact.value) for fact in here.user("ana").facts()})
            assert here.doctor().ok
    assert known[0] == known[1]


def test_a_message_that_cannot_be_read_is_stored_and_its_job_says_what_is_wrong(memory, monkeypatch):
    def broken(*args, **more):
        raise ZeroDivisionError

    monkeypatch.setattr(rules, "extract_facts", broken)
    chat = memory.conversation("c", user="ana")

    chat.record("I live in Porto.", "Noted.")

    assert [message.content for message in chat.load()] == ["I live in Porto.", "Noted."]
    assert [job.reason for job in memory.jobs() if job.kind == "extract"] == ["ZeroDivisionError"]


def test_what_cannot_be_learned_costs_no_message(memory, monkeypatch):
    def broken(*args, **more):
        raise ZeroDivisionError

    monkeypatch.setattr(FactReader, "learn_ahead", broken)
    chat = memory.conversation("c", user="ana")

    learned = chat.record("I live in Porto.", "Noted.").changes

    assert len(chat.load()) == 2
    assert [change.fact.value for change in learned] == ["Porto"]  # by the job


def test_nothing_is_learned_with_a_message_that_was_stored_before(memory):
    chat = memory.conversation("c", user="ana")
    said = {"role": "user", "content": "I live in Porto."}

    first, again = chat.append(said, idempotency_key="k"), chat.append(said, idempotency_key="k")

    assert [len(receipt.changes) for receipt in (first, again)] == [1, 0]
    assert len(memory.user("ana").facts()) == 1


def test_small_talk_that_waits_is_read_along_in_the_same_transaction(memory, monkeypatch):
    chat = memory.conversation("c", user="ana")
    chat.record("Good morning!", "Hi! Do you have a pet?")
    assert [job.kind for job in memory.jobs() if job.kind == "extract"] == ["extract"]
    store, written = memory._engine.store, []
    write = store.write
    monkeypatch.setattr(store, "write", lambda *args: written.append(args) or write(*args))

    learned = chat.record("I live in Porto.", "Noted.").changes

    assert [change.fact.value for change in learned] == ["Porto"]
    assert len(written) == 1
    assert not [job for job in memory.jobs() if job.kind == "extract"]
    assert memory.digest().facts == 0


def test_what_a_worker_is_reading_meanwhile_is_learned_once(tmp_path, clock, monkeypatch):
    claims, waiting, read = FactReader.claims, [], []

    def interrupted(self, scope, seen):
        read.append([message.seq for message in seen.messages])
        found = claims(self, scope, seen)
        while waiting:
            waiting.pop()()
        return found

    monkeypatch.setattr(FactReader, "claims", interrupted)
    with Memory(tmp_path / "a.db", clock=clock) as here, Memory(tmp_path / "a.db", clock=clock) as there:
        monkeypatch.setattr(rules, "may_state_facts", lambda text, code=None: "Porto" in text)
        chat = here.conversation("c", user="ana")
        chat.record("I have a cat called Mia.", "Noted.")
        assert not here.user("ana").facts()
        monkeypatch.setattr(ReadView, "is_waiting", lambda self, kind: True)  # as before the worker took the job
        waiting.append(lambda: chat.record("I live in Porto.", "Noted."))

        there.digest()

        assert read == [[1, 2], [1, 2, 3, 4]]
        facts = {fact.text: len(fact.evidence) for fact in here.user("ana").facts()}
        assert set(facts.values()) == {1}
        assert any("Porto" in text for text in facts)
        assert any("Mia" in text for text in facts)
        assert here.doctor().ok


def test_what_could_not_be_read_before_is_left_to_its_job(memory, monkeypatch):
    extract = rules.extract_facts

    def broken(message, **more):
        if "morning" in message.content:
            raise ZeroDivisionError
        return extract(message, **more)

    monkeypatch.setattr(rules, "extract_facts", broken)
    chat = memory.conversation("c", user="ana")
    chat.record("Good morning!", "Hi!")
    memory.digest()

    chat.record("I live in Porto.", "Noted.")

    assert len(chat.load()) == 4
    assert [job.reason for job in memory.jobs() if job.kind == "extract"] == ["ZeroDivisionError"]
