"""Statements that answer nothing wait for one that does: fewer journeys to the server, and never half a transaction."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest

from holdfast import Memory
from holdfast.errors import BadInput, HoldfastError, StoreError
from holdfast.store import Store, open_store
from holdfast.store.postgres.driver import PsycopgDriver
from holdfast.testing.fakes import HashEmbedder
from holdfast.testing.rows import ANA, learn, say
from tests.postgres.test_plans import TOGETHER
from tests.postgres.test_row_security import a_day


@pytest.fixture
def store(address: str) -> Iterator[Store]:
    opened = open_store(address)
    yield opened
    opened.close()


@pytest.fixture
def journeys(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The statement that ended each journey; `BEGIN` with its settings is one more, before them."""
    made: list[bytes] = []
    sent = PsycopgDriver._sent

    def counted(self: PsycopgDriver, sql: bytes, given: Any) -> Any:
        made.append(sql)
        return sent(self, sql, given)

    monkeypatch.setattr(PsycopgDriver, "_sent", counted)
    return made


def test_an_append_takes_nine_journeys(address: str, journeys: list[bytes]) -> None:
    with Memory(address, embedder=None) as memory:
        chat = memory.conversation("c", user="ana")
        chat.append({"role": "user", "content": "Hello there."})
        journeys.clear()
        chat.append({"role": "user", "content": "It rains."})

    assert len(journeys) + 1 == 9
    assert journeys[-1] == b"COMMIT"


def test_a_snapshot_is_asked_the_same_question_once(address: str, journeys: list[bytes]) -> None:
    with Memory(address, embedder=None) as memory:
        memory.conversation("c", user="ana").append({"role": "user", "content": "I live in Porto."})
        memory.digest()
        journeys.clear()
        memory.user("ana").search("Where do I live?")

    consent = [sql for sql in journeys if b"FROM consent" in sql]
    transactions = journeys.count(b"COMMIT")
    assert consent
    assert len(consent) <= transactions


def test_what_is_asked_many_times_of_one_user_is_one_statement(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, int] = {}
    many, sent = PsycopgDriver.many, PsycopgDriver._sent
    names: list[str] = []

    def noted(self: PsycopgDriver, name: str, args: Any) -> Any:
        names.append(name)
        try:
            return many(self, name, args)
        finally:
            names.pop()

    def counted(self: PsycopgDriver, sql: bytes, given: Any) -> Any:
        if names:
            asked[names[-1]] = max(asked.get(names[-1], 0), len(given))
        return sent(self, sql, given)

    monkeypatch.setattr(PsycopgDriver, "many", noted)
    monkeypatch.setattr(PsycopgDriver, "_sent", counted)
    with Memory(address, embedder=HashEmbedder()) as memory:
        a_day(memory)

    assert {name for name, times in asked.items() if times > 1} == set()
    assert len(asked) >= 6
    assert set(asked) <= TOGETHER.keys()


def test_questions_put_together_are_answered_one_after_the_other(store: Store) -> None:
    """What comes back is what each question would bring alone, in the order of the questions, and all of it."""

    def fill(view: Any) -> list[str]:
        return [learn(view, value, key=f"eats_{value}").fact.id for value in ("pear", "apple", "fig")]

    pear, apple, fig = store.write(ANA, fill)

    def ask(view: Any) -> tuple[Any, Any]:
        given = [(*view._head, "self", fact) for fact in (pear, fig, "none", apple, fig)]
        return view._driver.many("evidence_of", given), [view._driver.many("evidence_of", [one]) for one in given]

    together, alone = store.read(ANA, ask)

    assert together == [row for rows in alone for row in rows]
    assert [row[5] for row in together] == ["pear", "fig", "apple", "fig"]


def test_what_is_stored_together_is_stored_whole_and_takes_no_journey_more(address: str, journeys: list[bytes]) -> None:
    """Long messages, some of them with a name and some without, and every word in its place."""
    said = [f"Harbour {number} sleeps under {'snow' * number} and {'rain ' * number}." for number in range(5)]
    given = [
        {"role": "user", "content": text} | ({"name": "Ana"} if number % 2 else {}) for number, text in enumerate(said)
    ]
    with Memory(address, embedder=None) as memory:
        chat = memory.conversation("c", user="ana")
        chat.append(given[:2])
        journeys.clear()
        chat.append(given[2:])
        stored = len(journeys) + 1
        names = [message.name for message in chat.load()]
        found = [memory.user("ana").search("snow" * number)[0].text for number in range(1, 5)]

    assert stored == 9
    assert names == [None, "Ana", None, "Ana", None]
    assert found == said[1:]


@pytest.mark.parametrize(
    "rows",
    [
        [("", "ana", "", "s", "message", "pear", 1, 0.5, b""), ("", "bob", "", "s", "message", "fig", 1, 0.5, b"")],
        [("", "ana", "", "s", "message", "pear", 1, 0.5, b""), ("", "ana", "", "s", "message", "fig", True, 0.5, b"")],
    ],
    ids=["two users", "two types"],
)
def test_what_has_no_lists_is_sent_one_by_one(rows: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch) -> None:
    waiting: list[int] = []
    monkeypatch.setattr(PsycopgDriver, "_wait", lambda self, sql, given: waiting.append(len(given)))
    driver = PsycopgDriver(cast(Any, None))

    driver.many("add_vector", rows)
    driver.many("add_vector", rows[:1] * 2)

    assert waiting == [2, 1]


def test_a_statement_behind_a_failed_one_is_not_taken_for_prepared(store: Store) -> None:
    """psycopg prepares at the sixth use: here it is skipped by the server, which knows no such statement later."""

    def note(number: int) -> Any:
        return store.write(ANA, lambda view: view.add_idempotency(f"key {number}", "", 1, 1, 0))

    def fail(view: Any) -> None:
        view._driver._wait(b"DELETE FROM no_such_table", [()])
        view.add_idempotency("key 6", "", 1, 1, 0)

    with pytest.raises(StoreError, match="a table is missing"):
        store.write(ANA, lambda view: view._driver._sent(b"DELETE FROM no_such_table", [()]))
    for number in range(5):
        note(number)
    with pytest.raises(StoreError, match="a table is missing"):
        store.write(ANA, fail)
    note(7)


@pytest.mark.parametrize("reads_after", [False, True], ids=["found out at the commit", "found out by a question"])
@pytest.mark.parametrize("swallowed", [False, True])
def test_what_waited_and_fails_takes_the_whole_transaction_with_it(
    store: Store, reads_after: bool, swallowed: bool
) -> None:
    def work(view: Any) -> str:
        say(view, "said in vain")
        view.add_idempotency("a key with a \0 in it", "", 1, 1, 0)  # waits, and cannot be stored
        if reads_after:
            try:
                view.conversation()
            except HoldfastError:
                if not swallowed:
                    raise
        return "done"

    with pytest.raises(BadInput, match="NUL"):
        store.write(ANA, work)

    assert store.read(ANA, lambda view: view.conversation()) is None
    store.write(ANA, lambda view: say(view, "heard"))
    assert store.read(ANA, lambda view: view.conversation()) is not None
