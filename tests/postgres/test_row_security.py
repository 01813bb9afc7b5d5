"""Behind the statements stands a second fence: a session sees the rows of the org it named, and nobody else's."""

from __future__ import annotations

import random
import re
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import psycopg
import pytest

from holdfast import Config, Memory
from holdfast.errors import HoldfastError
from holdfast.scope import Scope
from holdfast.store import Store, open_store
from holdfast.store.postgres.driver import PsycopgDriver, of_org, statements
from holdfast.testing.fakes import HashEmbedder
from tests.postgres.lending import Lender

OF_NOBODY = {"ledger_key", "add_ledger_key", "erasures", "add_erasure", "snapshot", "file_bytes"}
OF_NOBODY |= {"rate", "add_rate", "move_rate", "remove_idle_rates"}  # tables without an org
OF_NOBODY |= {"call_times", "add_call_time", "remove_call_times"}
OF_NOBODY |= {"cluster_bytes"}  # asks by a function of Citus
OF_NOBODY |= {name for name in statements() if name.startswith("health_")}  # about the server
FOREIGN = ("other", "ACME", "acme ", "", "' OR true --")
Call = tuple[str, Mapping[str, Any]]


@pytest.fixture
def calls(address: str, monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    """Every statement that a memory of the org ``acme`` ran, with its parameters, in a long and varied day."""
    found: list[Call] = []
    run, many = PsycopgDriver.run, PsycopgDriver.many

    def noted_run(self: PsycopgDriver, name: str, args: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        found.append((name, {key: args[key] for key in statements()[name][1]}))
        return run(self, name, args)

    def noted_many(self: PsycopgDriver, name: str, args: Iterable[Sequence[Any]]) -> list[tuple[Any, ...]]:
        given = list(args)
        found.extend((name, dict(zip(statements()[name][1], one, strict=True))) for one in given[:3])
        return many(self, name, given)

    monkeypatch.setattr(PsycopgDriver, "run", noted_run)
    monkeypatch.setattr(PsycopgDriver, "many", noted_many)
    with Memory(address, embedder=HashEmbedder()) as memory:
        a_day(memory)
    monkeypatch.undo()
    return found


def a_day(memory: Memory) -> None:
    user, chat = memory.user("ana", org="acme"), memory.conversation("c", user="ana", org="acme")
    for number in range(24):
        chat.record(f"I live in Lisbon and my dog is called Rex {number}.", "Noted.", idempotency_key=str(number))
    chat.record("We moved to Porto. I'm allergic to nuts.", "Oh!")
    memory.digest()
    chat.context("Where do I live?")
    user.search("dogs in Lisbon")
    user.never_remember("health")
    fact = next(fact for fact in user.facts() if fact.key == "lives_in")
    user.correct(fact.id, value="Braga")
    user.history("home")
    user.pause()
    user.status()
    user.resume()
    chat.edit(1, "I live in Faro.")
    chat.forget(3)
    chat.summaries()
    chat.rebuild("summaries")
    user.prompts.set("fact_extraction", "Write down what is said.")
    memory.admin.keys.create("app", org="acme")
    memory.jobs()
    memory.usage()
    memory.doctor()
    user.export()
    memory.conversation("d", user="ana", org="acme").record("I like tea.")
    memory.conversation("d", user="ana", org="acme").clear()
    memory.digest()


def test_every_statement_under_a_foreign_org_finds_and_changes_nothing(
    calls: list[Call], address: str, postgres: Lender
) -> None:
    """The very calls that a memory made, with the org in the parameters and another one in the session."""
    chosen = some_of_each(calls)
    before = everything(postgres)
    useful = set()
    with psycopg.connect(address, autocommit=True) as connection:
        for name, args in chosen:
            for org in FOREIGN:
                rows, changed = tried(connection, name, args, org)
                assert not said(rows), f"{name} under {org!r}"
                assert not changed, f"{name} under {org!r}"
            rows, changed = tried(connection, name, args, "acme")
            if said(rows) or changed:
                useful.add(name)

    assert everything(postgres) == before
    assert len({name for name, _ in chosen}) >= 100, "fewer statements than a memory has were tried"
    assert len(useful) >= 50, "half of the statements must find or change something in their own org"


def test_a_statement_that_no_day_runs_finds_and_changes_nothing_either(
    calls: list[Call], address: str, postgres: Lender
) -> None:
    """
    Every other statement there is, so that a new one is tried as soon as it is written.

    Its parameters are what statements of the day were given under the same name, or something of their type.
    """
    known: dict[str, Any] = {}
    for _, args in calls:
        known |= {name: value for name, value in args.items() if value is not None}
    others = set(statements()) - {name for name, _ in calls} - OF_NOBODY
    before, tried_now = everything(postgres), set()
    with psycopg.connect(address, autocommit=True) as connection:
        for name in sorted(others):
            args = of_types(connection, name)
            args |= {key: known[key] for key, value in args.items() if type(known.get(key)) is type(value)}
            args |= {"org": "acme"} if "org" in args else {}
            for org in FOREIGN:
                rows, changed = tried(connection, name, args, org)
                assert not said(rows), f"{name} under {org!r}"
                assert not changed, f"{name} under {org!r}"
            rows, changed = tried(connection, name, args, "acme")
            if said(rows) or changed:
                tried_now.add(name)

    assert everything(postgres) == before
    assert {name for name, _ in calls} | others | OF_NOBODY == set(statements())
    assert len(tried_now) >= len(others) // 3, sorted(others - tried_now)


def of_types(connection: psycopg.Connection[Any], name: str) -> dict[str, Any]:
    """A value for each parameter of a statement, of the type that the server expects there."""
    sql, names = statements()[name]
    numbered = re.sub(rb"%\((\w+)\)s", lambda found: b"$%d" % (names.index(found[1].decode()) + 1), sql)
    prepared = connection.pgconn.prepare(b"asked", numbered.replace(b"%%", b"%"))
    assert prepared.status == psycopg.pq.ExecStatus.COMMAND_OK, f"{name}: {prepared.error_message!r}"
    described = connection.pgconn.describe_prepared(b"asked")
    connection.execute("DEALLOCATE asked")
    values = {"text": "x", "bytea": b"x", "float8": 0.5, "float4": 0.5, "bool": False, "jsonb": "[]"}
    types = [connection.adapters.types[described.param_type(n)].name for n in range(described.nparams)]
    return {key: values.get(kind, 1) for key, kind in zip(names, types, strict=True)}


def some_of_each(calls: list[Call], most: int = 4) -> list[Call]:
    """Calls of every statement about somebody, any of them."""
    by_name: dict[str, list[Call]] = {}
    for call in calls:
        if call[0] not in OF_NOBODY:
            by_name.setdefault(call[0], []).append(call)
    rng = random.Random(7)
    return [call for found in by_name.values() for call in rng.sample(found, min(most, len(found)))]


def tried(connection: psycopg.Connection[Any], name: str, args: Mapping[str, Any], org: str) -> tuple[list[Any], int]:
    """What a statement returns and how many rows it changes, in a session of *org*; it is undone."""
    connection.execute("BEGIN")
    try:
        connection.execute(of_org(org))
        cursor = connection.execute(statements()[name][0], args)
        rows = cursor.fetchall() if cursor.description else []
        return rows, 0 if statements()[name][0].startswith(b"SELECT") else cursor.rowcount
    except psycopg.errors.InsufficientPrivilege:
        return [], 0  # a row of another org is not let in
    except psycopg.errors.UniqueViolation:
        return [], int(org != "acme")  # only under its own org may a row know of the one that is there
    finally:
        connection.execute("ROLLBACK")


def said(rows: list[Any]) -> list[Any]:
    """Rows that tell of anything about an org: sums and counts of nothing are 0 or NULL."""
    return [
        row
        for row in rows
        if row[0] != "erasure"  # how long the ledger is, which names nobody
        and (
            any(value not in (0, None) for value in row if not isinstance(value, str))
            or (len(row) != 2 and any(isinstance(value, str) for value in row))
        )
    ]


def everything(postgres: Lender) -> list[Any]:
    with psycopg.connect(postgres.at("mine", "postgres")) as connection:
        names = connection.execute(
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY 1"
        )
        return [
            (
                name,
                connection.execute(
                    f"SELECT md5(string_agg(t::text, '|' ORDER BY t::text)) FROM {name} t".encode()
                ).fetchall(),
            )
            for (name,) in names.fetchall()
        ]


def test_who_looks_across_reads_everybody_and_writes_nobody(calls: list[Call], address: str) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("BEGIN; SET LOCAL holdfast.across = 'on'")
        assert connection.execute("SELECT count(*) FROM message WHERE org = 'acme'").fetchall()[0][0] > 40
        assert connection.execute("UPDATE message SET role = 'user' WHERE org = 'acme'").rowcount == 0
        assert connection.execute("DELETE FROM fact").rowcount == 0
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("INSERT INTO consent VALUES ('acme', 'bo', 'b', '', 'paused', 0)")


def test_without_an_org_nothing_is_there(calls: list[Call], address: str) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        for table in ("message", "fact", "doc", "vector", "segment", "facts", "messages", "summaries", "fact_history"):
            assert connection.execute(f"SELECT count(*) FROM {table}".encode()).fetchall() == [(0,)], table
        connection.execute("BEGIN; SET LOCAL holdfast.org = 'acme'")
        assert connection.execute("SELECT count(*) FROM facts").fetchall()[0][0] > 0
        connection.execute("COMMIT")
        assert connection.execute("SELECT count(*) FROM facts").fetchall() == [(0,)], "an org ends with its transaction"


class Cancelled(BaseException):
    """What a server framework throws into work that nobody waits for any more."""


@pytest.fixture
def busy(address: str) -> Iterator[Store]:
    """A store with 64 users of 64 orgs, and a sixth as many connections."""
    store = open_store(address, Config(store_connections=10))
    yield store
    store.close()


def test_64_clients_that_are_cancelled_never_get_anybody_elses_rows(busy: Store, postgres: Lender, full: bool) -> None:
    """Errors, interruptions, cancelled statements and lost connections between 64 clients on 10 connections."""
    requests = 20_000 if full else 3_000
    users = [Scope(f"org {n}", "bot", "user").within("c") for n in range(64)]
    for n, scope in enumerate(users):
        busy.write(scope, lambda view, n=n: view.set_blocked_topic("", f"topic of {n}", blocked=True, now_ms=1))  # type: ignore[misc]
    over, foreign, answered = threading.Event(), [], []

    def client(n: int) -> None:
        rng, mine = random.Random(n), [("", f"topic of {n}")]
        for _ in range(requests // 64 + 1):
            with suppress(HoldfastError, Cancelled, RuntimeError):
                found = busy.read(users[n], lambda view: interrupted(view.blocked_topics(), rng))
                answered.append(n)
                if found != mine:
                    foreign.append((n, found))

    def interrupted(found: Any, rng: random.Random) -> Any:
        dice = rng.random()
        if dice < 0.05:
            raise Cancelled
        if dice < 0.1:
            raise RuntimeError
        return found

    def meddle() -> None:
        sql = "SELECT {}(pid) FROM pg_stat_activity WHERE usename = 'holdfast_app' ORDER BY random() LIMIT 1"
        with psycopg.connect(postgres.server.admin, autocommit=True) as admin:
            while not over.wait(0.01):
                what = "pg_terminate_backend" if random.random() < 0.1 else "pg_cancel_backend"
                admin.execute(sql.format(what).encode())

    threads = [threading.Thread(target=client, args=(n,)) for n in range(64)]
    meddler = threading.Thread(target=meddle)
    meddler.start()
    started = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    over.set()
    meddler.join()
    print(
        f"{requests} requests in {time.monotonic() - started:.1f} s, {len(answered)} answered, {len(foreign)} foreign"
    )

    assert foreign == []
    assert len(answered) > requests * 0.8
