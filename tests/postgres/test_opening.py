"""What cannot be opened says why; what was lent comes back clean or not at all."""

from __future__ import annotations

import gc
import os
import sys
import threading
from contextlib import suppress
from typing import Any

import psycopg
import pytest

from holdfast import Config, Memory
from holdfast.errors import ConfigError, Conflict, HoldfastError, StoreBusy, StoreError, StoreUnavailable
from holdfast.scope import Scope
from holdfast.store import open_store, port
from holdfast.store.postgres import schema
from holdfast.store.postgres.driver import connect
from holdfast.testing.rows import ANA, say
from tests.postgres.lending import Lender


@pytest.mark.parametrize(
    ("location", "error", "words"),
    [
        ("postgresql://127.0.0.1:1/memory", StoreUnavailable, "Connection refused"),
        ("postgresql://no-such-host.invalid/memory", StoreUnavailable, "cannot be reached"),
        ("postgresql://127.0.0.1:port/memory", ConfigError, "cannot be read"),
        ("postgresql://127.0.0.1/memory?nonsense=1", ConfigError, "cannot be read"),
    ],
)
def test_an_address_that_leads_nowhere_says_so(location: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        Memory(location)


def test_a_missing_database_and_a_missing_role_are_told_apart(postgres: Lender) -> None:
    with pytest.raises(StoreError, match="no such database"):
        Memory(postgres.server.at("nowhere"))
    with pytest.raises(StoreError, match="refused the login"):
        Memory(postgres.server.at("postgres", "nobody_at_all"))


def test_without_the_driver_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("holdfast.store.postgres")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.setattr(port, "_loaded", {})
    with pytest.raises(ConfigError, match=r"holdfast\[postgres\]"):
        Memory("postgresql://localhost/memory")


def test_a_server_that_is_too_old_is_refused(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "OLDEST", 99)
    with pytest.raises(StoreError, match="too old, 99 is needed"):
        open_store(address)


def test_a_database_of_another_encoding_is_refused(postgres: Lender) -> None:
    postgres.server.create("latin", "template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'")
    with pytest.raises(StoreError, match="keeps LATIN1"):
        open_store(postgres.server.at("latin"))


def test_no_error_tells_the_password() -> None:
    with pytest.raises(HoldfastError) as caught:
        Memory("postgresql://ana:sesame@127.0.0.1:1/memory")

    assert "sesame" not in str(caught.value)


def test_a_function_that_swallows_a_failure_commits_nothing(address: str) -> None:
    """PostgreSQL would answer COMMIT with a silent ROLLBACK."""
    store = open_store(address)

    def swallow(view: object) -> None:
        say(view, "one")  # type: ignore[arg-type]
        row = view.message_rows()[0]  # type: ignore[attr-defined]
        with suppress(Conflict):
            view.add_messages([row])  # type: ignore[attr-defined]

    with pytest.raises(Conflict):
        store.write(ANA, swallow)

    assert store.read(ANA, lambda view: view.messages()) == []
    store.close()


def test_who_waits_too_long_for_a_connection_is_told(address: str) -> None:
    store = open_store(address, Config(store_connections=1, busy_timeout_ms=50))
    entered, leave = threading.Event(), threading.Event()
    holder = threading.Thread(target=lambda: store.read(ANA, lambda view: (entered.set(), leave.wait(10))))
    holder.start()
    entered.wait(10)
    with pytest.raises(StoreBusy, match="no connection"):
        store.read(ANA, lambda view: view.messages())
    leave.set()
    holder.join()

    assert store.read(ANA, lambda view: view.messages()) == []
    store.close()


def test_who_waits_too_long_for_anothers_turn_is_told(address: str) -> None:
    store = open_store(address, Config(busy_timeout_ms=100))
    entered, leave = threading.Event(), threading.Event()

    def hold(view: object) -> None:
        entered.set()
        leave.wait(10)

    holder = threading.Thread(target=lambda: store.write(ANA, hold))
    holder.start()
    entered.wait(10)
    with pytest.raises(StoreBusy, match="held the row"):
        store.write(ANA, lambda view: say(view, "two"))
    store.write(Scope("acme", "support", "bo").within("chat"), lambda view: say(view, "not in the way"))
    leave.set()
    holder.join()
    store.close()


def test_an_interrupted_call_leaves_no_connection_behind(address: str) -> None:
    """What was interrupted is closed, whatever it was doing: the next call gets another session."""
    store = open_store(address, Config(store_connections=1))

    def session(view: object) -> int:
        connection = view._driver._connection  # type: ignore[attr-defined]
        return int(connection.info.backend_pid)

    def interrupt(view: object) -> None:
        raise KeyboardInterrupt

    first = store.read(ANA, session)
    assert store.read(ANA, session) == first
    with pytest.raises(KeyboardInterrupt):
        store.read(ANA, interrupt)

    assert store.read(ANA, session) != first
    store.close()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_leaves_its_parents_connections_alone(address: str) -> None:
    """It cannot use the store, and ends without saying good-bye on its parent's sockets."""
    store = open_store(address)
    store.write(ANA, lambda view: say(view, "one"))
    session = store.read(ANA, lambda view: view._driver._connection.info.backend_pid)  # type: ignore[attr-defined]
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            with pytest.raises(StoreError, match="parent process"):
                store.read(ANA, lambda view: view.messages())
            store.close()
            del store
            gc.collect()
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0

    assert store.read(ANA, lambda view: view._driver._connection.info.backend_pid) == session  # type: ignore[attr-defined]
    store.close()


def test_writers_and_workers_of_one_user_get_out_of_each_others_way(address: str) -> None:
    """Claims do not wait for the user's turn; numbers of events still follow one another without a gap."""
    failed: list[BaseException] = []

    def write(name: str) -> None:
        try:
            with Memory(address) as memory:
                for number in range(10):
                    memory.conversation(name, user="ana").record(f"I live in Lisbon {number}.", "Noted.")
                    memory.digest()
        except HoldfastError as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failed == []
    with Memory(address) as memory:
        memory.digest()
        assert memory.doctor().findings == ()
        assert len(memory.conversation("a", user="ana").load()) == 20


def test_a_look_at_changes_sees_what_another_process_wrote(address: str) -> None:
    store, other = open_store(address), open_store(address)
    before = store.changes()
    assert store.changes() == before
    other.write(ANA, lambda view: say(view, "one"))

    assert store.changes() != before
    store.close()
    other.close()


def test_a_change_of_the_schema_lets_others_pass_while_a_reader_is_in_its_way(
    postgres: Lender, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gives up its place in the queue for the table, and takes it again when it has paused."""
    second = ("0002_more.sql", "ALTER TABLE message ADD COLUMN more bigint;")
    postgres.server.create("changing", "holdfast_template")
    owner = postgres.server.at("changing")
    applied = schema.migrations()
    monkeypatch.setattr(schema, "migrations", lambda: (*applied, second))
    monkeypatch.setattr(schema, "_LOCK_MS", 50)
    found = "SELECT count(*) FROM information_schema.columns WHERE table_name = 'message' AND column_name = 'more'"
    with psycopg.connect(owner) as reader, connect(owner) as changing:
        reader.execute("SELECT 1 FROM message")
        monkeypatch.setattr(schema, "_PAUSES_S", ())
        with pytest.raises(StoreBusy, match="not changed"):
            schema.migrate(changing)
        assert changing.execute(found.encode()).fetchall() == [(0,)]

        monkeypatch.setattr(schema, "_PAUSES_S", (1.0,))
        monkeypatch.setattr(schema.time, "sleep", lambda _: reader.rollback())
        schema.migrate(changing)
        assert changing.execute(found.encode()).fetchall() == [(1,)]
    postgres.server.drop("changing")


@pytest.mark.parametrize(("given", "one", "across"), [(700, "700ms", "7s"), (0, "0", "0")])
def test_a_statement_across_users_has_a_limit_too(address: str, given: int, one: str, across: str) -> None:
    store = open_store(address, Config(statement_timeout_ms=given))

    def limit(driver: Any) -> str:
        return str(driver._connection.execute("SHOW statement_timeout").fetchone()[0])

    found = store.backend.read(limit, ANA), store.backend.read(limit)
    store.close()

    assert found == (one, across)
