"""
On a cluster one user stands on one node: no statement that a message or a question causes may touch another.

Every table with a user in its key is cut by ``user_id``, all alike.  So a statement stays on one shard when
each such table that it reads or writes is bound to ``:user_id``, itself or by a join on ``user_id``.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import Memory
from holdfast.store import queries
from holdfast.store.queries import tables
from holdfast.store.sqlite.connection import ApswDriver
from holdfast.testing.fakes import HashEmbedder

CUT = {table.name for table in tables() if "user_id" in table.key}
ALONE = {
    "ledger_key": "one = 1",
    "erasure": "id = :id",
    "rate_limit": "id = :id",
    "call_time": "call = :call",
    "allowance": "org = :org",
}  # cut by their own keys
EVERYWHERE = {table.name for table in tables()} - CUT - ALONE.keys()
SQLS = queries.load("postgres")
OF_SQLITE = {"integrity", "still_stored"}  # loaded for SQLite alone
ON_ONE_SERVER = {"due_lanes", "oldest_due", "newest_due", "take_due", "take_these"}  # never run on a cluster
ON_THE_SERVER = ON_ONE_SERVER | {
    name for name in SQLS if name.startswith("health_") or name in ("snapshot", "file_bytes", "cluster_bytes")
}  # … and what asks the server about itself
PACKAGE = Path(holdfast.__file__).parent

LOOKS = "workers look for due work; what they take is claimed at its user"
OPERATORS = "operators"
FANS_OUT = {
    "due_ready": LOOKS,
    "due_newest": LOOKS,
    "due_expired": LOOKS,
    "next_due": LOOKS,
    "users_to_embed": LOOKS,
    "users_with_faded": "once a day a worker or `digest`: whose statements nobody said or used for long",
    "waiting_jobs": "when a memory opens, and when a key of a provider is set: what waited for one is due",
    "any_provider_key": "once in two seconds a worker that may ask models, and when a memory opens",
    "usage_across": "operators; with a budget for all or for an org, once in ten seconds a worker",
    "backlog": "operators: what waits, for metrics and for a worker that ends when nothing is left",
    "activity": "operators: the counts of the home page and the plots, at most once in twenty seconds while somebody looks",
    "newest_events": "operators: the newest changes on the home page",
    "jobs": OPERATORS,
    "job_owner": "operators and workers' control: whose is the job of that id",
    "users": OPERATORS,
    "users_after": OPERATORS,
    "users_matching": OPERATORS,
    "users_sorted": OPERATORS,
    "facts_containing": "operators: the palette; a bounded number of users at a time",
    "conversations_containing": "operators: the palette; a bounded number of users at a time",
    "rows_per_table": OPERATORS,
    "keys_to_reseal": "operators, when the master key is another one",
    "job_by_id": OPERATORS,
    "operation": "whoever follows long work that was ordered asks by its id, which names no user",
    "operations_newest": OPERATORS,
    "remove_old_operations": "when long work is ordered",
    "remove_idle_rates": "now and then where keys of providers are paced: which of them nobody uses",
    "erasures": "operators: the ledger as a whole",
    "all_consent": "operators, when a backup is put back",
} | {name: "operators: doctor" for name in SQLS if name.startswith("check_")}

# Store method -> who calls it: (module, function).  A new caller must be none that a message or a question reaches.
CALLERS = {
    "claim": {("jobs/queue.py", "_claimed")},
    "claim_some": {("jobs/queue.py", "_claimed")},
    "next_due_ms": {("jobs/queue.py", "_claimed")},
    "users_to_embed": {("jobs/upkeep.py", "order")},
    "users_with_faded": {("jobs/upkeep.py", "order")},
    "release_waiting": {("engine.py", "__init__"), ("engine.py", "keys_changed"), ("engine.py", "reload")},
    "any_provider_key": {("jobs/worker.py", "any")},
    "usage": {("jobs/usage.py", "usage_of_all"), ("jobs/model_client.py", "_totals_of")},
    "backlog": {("admin.py", "backlog")},
    "jobs": {("admin.py", "metrics"), ("memory.py", "jobs")},
    "run_now": {("engine.py", "run_now")},
    "retry": {("memory.py", "retry")},
    "cancel": {("memory.py", "cancel")},
    "users": {("admin.py", "users"), ("jobs/backfill.py", "_users"), ("privacy/forget.py", "_all_users")},
    "stats": {("admin.py", "stats")},
    "keys_to_reseal": {("admin.py", "rotate")},
    "operation": {("admin.py", "get")},
    "operations": {("admin.py", "newest")},
    "add_operation": {("admin.py", "add")},
    "ledger": {("admin.py", "export"), ("admin.py", "replay")},
    "consents": {("admin.py", "export")},
}


def scopes(sql: str) -> list[str]:
    """The statement and each of its nested SELECTs, every one without those inside it."""
    found, open_, text = [], [""], sql
    for character in text:
        if character == "(":
            open_.append("")
        elif character == ")":
            inner = open_.pop()
            if inner.lstrip().startswith("SELECT"):
                found.append(inner)
                open_[-1] += "()"
            else:
                open_[-1] += f"({inner if 'SELECT' not in inner else ''})"
        else:
            open_[-1] += character
    return [*found, open_[0]]


def outside_brackets(text: str) -> str:
    while re.search(r"\([^()]*\)", text):
        text = re.sub(r"\([^()]*\)", " ", text)
    return text


def fault(sql: str) -> str | None:
    """Why a statement touches more than one shard, or ``None``."""
    words = " ".join(re.sub(r"--.*", "", sql).split())
    if inserted := re.match(r"INSERT INTO (\w+) \(([^)]*)\) VALUES \(([^)]*)\)", words):
        columns, values = ([part.strip() for part in inserted[n].split(",")] for n in (2, 3))
        bound = dict(zip(columns, values, strict=True)).get("user_id") == ":user_id"
        return None if inserted[1] in EVERYWHERE | ALONE.keys() or bound else f"{inserted[1]} is not bound"
    links: dict[str, set[str]] = defaultdict(set)
    seen = {}
    for number, scope in enumerate(part for whole in scopes(words) for part in whole.split("UNION ALL")):
        plain = outside_brackets(scope)
        sources = {}
        for table, alias in re.findall(
            r"\b(?:FROM|JOIN|UPDATE|INTO) (\w+)(?: (?:AS )?(?!WHERE|SET|LEFT|JOIN|ON|ORDER|GROUP|LIMIT|FOR|UNION)(\w+))?",
            plain,
        ):
            if table in CUT or (table in ALONE and ALONE[table] not in plain):
                sources[alias or f"{table}#{number}"] = table
            elif table not in EVERYWHERE | ALONE.keys():
                return f"{table} is no table"
        seen |= sources
        alone = [name for name in sources if "#" in name]
        if len(alone) > 1 or (alone and len(sources) > 1):
            return "two tables, and one has no name of its own"
        if re.search(r"\bOR\b", plain):
            continue  # what stands in an OR binds nothing
        for left, right in re.findall(r"(\w+\.user_id|(?<![.:\w])user_id) = (:user_id\b|\w+\.user_id)", plain):
            ends = [alone[0] if end == "user_id" and alone else end.removesuffix(".user_id") for end in (left, right)]
            links[ends[0]].add(ends[1])
            links[ends[1]].add(ends[0])
    reached, left_ = {":user_id"}, [":user_id"]
    while left_:
        for name in links[left_.pop()] - reached:
            reached.add(name)
            left_.append(name)
    apart = sorted(table for name, table in seen.items() if name not in reached)
    return f"{', '.join(apart)} not bound to :user_id" if apart else None


@pytest.mark.parametrize("name", sorted(SQLS.keys() - FANS_OUT.keys() - ON_THE_SERVER - OF_SQLITE))
def test_a_statement_stays_on_one_shard(name: str) -> None:
    assert fault(SQLS[name]) is None


def test_the_table_of_what_fans_out_names_nothing_else() -> None:
    """Whatever is in the table does touch every shard, and exists."""
    assert {name for name in FANS_OUT if fault(SQLS[name]) is None} == set()


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("SELECT seq FROM message WHERE org = :org", "message not bound"),
        ("SELECT seq FROM message WHERE org = :org AND user_id = :other", "message not bound"),
        ("SELECT seq FROM message WHERE user_id = :user_id OR seq = 1", "message not bound"),
        ("SELECT seq FROM message WHERE (seq = 1 OR user_id = :user_id)", "message not bound"),
        ("SELECT 1 FROM fact f JOIN evidence e ON e.org = f.org WHERE f.user_id = :user_id", "evidence not bound"),
        ("SELECT 1 FROM fact WHERE user_id = :user_id AND id IN (SELECT ref FROM doc)", "doc not bound"),
        ("SELECT 1 FROM fact WHERE user_id = :user_id UNION ALL SELECT 1 FROM doc", "doc not bound"),
        ("DELETE FROM job WHERE id = :id", "job not bound"),
        ("UPDATE job SET state = 'dead' WHERE id = :id", "job not bound"),
        ("INSERT INTO doc (org, user_id, doc) VALUES (:org, :whom, :doc)", "doc is not bound"),
    ],
)
def test_the_check_catches_what_reaches_further(sql: str, found: str) -> None:
    assert found in (fault(sql) or "")


def test_only_what_is_seldom_written_stands_on_every_node() -> None:
    """A new table without a user in its key needs a column of its own in `holdfast.store.postgres.cluster.ALONE`, or a line here."""
    assert {"api_key"} == EVERYWHERE


def test_every_unique_key_of_what_is_cut_holds_the_user() -> None:
    for _, sql in queries.migrations("sqlite"):
        for index, table, columns in re.findall(r"CREATE UNIQUE INDEX (\w+) ON (\w+)\s*\(([^)]*)\)", sql):
            assert table in EVERYWHERE or "user_id" in columns.replace(" ", "").split(","), index
        assert not re.search(r"\b(TRIGGER|REFERENCES|SERIAL|AUTOINCREMENT|IDENTITY|SEQUENCE)\b", sql, re.I)


def test_no_statement_uses_what_citus_refuses() -> None:
    """Locks across shards, MERGE, values that are computed where a shard would compute them."""
    for name in SQLS.keys() - ON_THE_SERVER:
        sql = SQLS[name]
        assert "FOR UPDATE" not in sql or fault(sql) is None, name
        assert not re.search(
            r"\b(MERGE INTO|WITH RECURSIVE|nextval|now\(|clock_timestamp|random\(|TRUNCATE)", sql, re.I
        ), name
        assert not re.search(r"VALUES \([^)]*SELECT", sql), name


def test_only_those_in_the_table_call_what_fans_out() -> None:
    called: dict[str, set[tuple[str, str]]] = {name: set() for name in CALLERS}
    for path in sorted(PACKAGE.rglob("*.py")):
        module = path.relative_to(PACKAGE).as_posix()
        if module.startswith(("store/", "testing/")):
            continue
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(function, ast.FunctionDef):
                continue
            for node in ast.walk(function):
                if isinstance(node, ast.Attribute) and node.attr in CALLERS and of_a_store(node.value):
                    called[node.attr].add((module, function.name))

    assert called == CALLERS


def of_a_store(value: ast.expr) -> bool:
    name = value.attr if isinstance(value, ast.Attribute) else value.id if isinstance(value, ast.Name) else ""
    return name in ("store", "_store")


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements run on files of this test; the threads of other memories in this process may be at work still."""
    names: list[str] = []

    def counted(work: Callable[..., Any]) -> Callable[..., Any]:
        def run(self: ApswDriver, name: str, args: Any) -> Any:
            if self._db.filename.startswith(str(tmp_path)):
                names.append(name)
            return work(self, name, args)

        return run

    for method in ("run", "many"):
        monkeypatch.setattr(ApswDriver, method, counted(getattr(ApswDriver, method)))
    return names


def test_what_a_message_or_a_question_causes_stays_on_one_shard(tmp_path: Path, ran: list[str]) -> None:
    """A varied day of one user: none of the statements that look across users is run."""
    with Memory(tmp_path / "chat.db", embedder=HashEmbedder()) as memory:
        ran.clear()  # what opening it looks at is no request
        user, chat = memory.user("ana"), memory.conversation("c", user="ana")
        for number in range(12):
            chat.record(f"I live in Lisbon and my dog is called Rex {number}.", "Noted.", idempotency_key=str(number))
        chat.context("Where do I live?")
        user.search("dogs in Lisbon")
        user.usage()
        user.metrics()
        user.events()
        user.status()
        user.consolidate()
        fact = user.facts()[0]
        user.correct(fact.id, value="Braga")
        user.history()
        chat.edit(1, "I live in Faro.")
        chat.forget(3)
        chat.summaries()
        chat.rebuild("summaries")
        memory.admin.events.news({("default", "ana", "default"): 0})
        user.pause()
        user.resume()
        user.export()
        chat.clear()
        user.erase()

    assert len(set(ran)) > 80
    assert FANS_OUT.keys() & set(ran) == set()


def test_a_worker_that_found_nothing_looks_once_for_all_kinds_of_work(tmp_path: Path, ran: list[str]) -> None:
    """And sees at once when there is something again."""
    with Memory(tmp_path / "chat.db", embedder=HashEmbedder()) as memory:
        memory.digest()
        ran.clear()
        memory.digest()
        idle = [name for name in ran if name in FANS_OUT]
        memory.conversation("c", user="ana").record("I like tea.")
        found = memory.digest().jobs

    assert idle.count("due_ready") == idle.count("due_expired") == 0
    assert idle.count("next_due") <= 2
    assert found > 0


def test_on_a_cluster_jobs_are_claimed_by_what_it_can_run(tmp_path: Path, ran: list[str]) -> None:
    with Memory(tmp_path / "chat.db", embedder=HashEmbedder()) as memory:
        memory.conversation("c", user="ana").record("I live in Lisbon.", "Noted.")
        memory._engine.store.backend.spread = True
        done = memory.digest().jobs

    assert done > 0
    assert ON_ONE_SERVER & set(ran) == set()
    assert {"due_ready", "due_expired"} <= set(ran)
