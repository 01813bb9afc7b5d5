"""The rules that keep one SQL text legal on SQLite, PostgreSQL and Citus, read off the files."""

from __future__ import annotations

import re
from importlib import resources

import apsw
import pytest

from holdfast.store import queries

ROOT = resources.files("holdfast.store") / "sql"
ACROSS = {
    "across.sql",
    "doctor.sql",
    "access.sql",
    "ledger.sql",
    "operations.sql",
    "rates.sql",
}  # looks of operators and workers: keys and states, no one's text

KEYS = {
    "user_state": "org, user_id, bot",
    "conversation": "org, user_id, bot, subject, conversation",
    "idempotency": "org, user_id, bot, subject, conversation, key",
    "prefix": "org, user_id, bot, subject, conversation, variant",
    "derivation": "org, user_id, bot, child_kind, child, source_kind, subject, conversation, start_seq, source",
    "vector": "org, user_id, bot, subject, kind, embedder, doc",
    "segment": "org, user_id, bot, subject, kind, first_doc",
    "evidence": "org, user_id, bot, subject, fact, home, conversation, seq, start",
    "consent": "org, user_id, bot, subject",
    "subject": "org, user_id, bot, subject",
    "story": "org, user_id, bot, subject",
    "item": "org, user_id, bot, subject, conversation, space, name",
    "provider_key": "org, user_id, id",
    "usage": "org, user_id, bot, day, layer, model",
    "blocked_topic": "org, user_id, bot, subject, topic",
    "episode_range": "org, user_id, bot, subject, conversation, start_seq, end_seq",
    "read_range": "org, user_id, bot, subject, conversation, model, start_seq",
    "rejected": "org, user_id, bot, subject, conversation, seq, id",
}


def statements(folder: str) -> list[tuple[str, str, str]]:
    """``(file, query name, SQL without comments)`` of one folder, migrations aside."""
    found = []
    for file in sorted((ROOT / folder).iterdir(), key=lambda f: f.name):
        if file.name.endswith(".sql") and not file.name[0].isdigit():
            _, *parts = re.split(r"^-- name: (\w+)\n", file.read_text(encoding="utf-8"), flags=re.M)
            for name, body in zip(parts[::2], parts[1::2], strict=True):
                found.append((file.name, name, re.sub(r"--.*", "", body).strip()))
    return found


SHARED = statements("shared")
EVERY = SHARED + statements("sqlite")
OF_A_USER = [entry for entry in EVERY if entry[0] not in ACROSS | {"vault.sql"}]
IN_ALL_ASSISTANTS = [entry for entry in EVERY if entry[0] == "vault.sql"]  # of an org, or of a user in all its bots


def ids(entries: list[tuple[str, str, str]]) -> list[str]:
    return [name for _, name, _ in entries]


def fault(sql: str, whose: tuple[str, ...] = ("org", "user_id", "bot")) -> str | None:
    """What is wrong with one statement about a user's memory, or ``None``."""
    words = " ".join(sql.split())
    verb = words.split()[0]
    bound = [rf"(\w+\.)?{column} = :{column}\b" for column in whose]
    columns_first, values_first = f"{', '.join(whose)},", f":{', :'.join(whose)},"
    if verb == "INSERT":
        columns = re.search(r"INSERT INTO \w+ \(([^)]*)\)", words)
        values = re.search(r"VALUES \((.*?)\)(?: ON CONFLICT| RETURNING|;|$)", words)
        if not columns or not values:
            return "INSERT without columns or VALUES"
        if not columns[1].startswith(columns_first) or not values[1].startswith(values_first):
            return "does not begin with the user"
        if any(not re.fullmatch(r":\w+|\d+|'\w*'", value.strip()) for value in values[1].split(",")):
            return "computes a value"
    elif not all(re.search(pattern, words) for pattern in bound):
        return f"does not name {', '.join(whose)} as bound parameters"
    setting = re.search(r" SET (.*?)(?: WHERE | RETURNING |;|$)", words)
    if setting and any(
        not re.fullmatch(r"\w+ = (:\w+|excluded\.\w+|\d+|'\w*')", part.strip()) for part in setting[1].split(",")
    ):
        return "computes in SET"
    target = re.search(r"INSERT INTO (\w+).*ON CONFLICT \(([^)]*)\)", words)
    if target and target[2] != KEYS[target[1]]:
        return "conflict target is not the whole key"
    if "ON CONFLICT" in words and not target:
        return "ON CONFLICT without a target"
    return None


@pytest.mark.parametrize("entry", OF_A_USER, ids=ids(OF_A_USER))
def test_a_statement_about_memory_names_its_user_and_computes_nothing(entry: tuple[str, str, str]) -> None:
    assert fault(entry[2]) is None


@pytest.mark.parametrize("entry", IN_ALL_ASSISTANTS, ids=ids(IN_ALL_ASSISTANTS))
def test_a_statement_about_provider_keys_names_whose_they_are(entry: tuple[str, str, str]) -> None:
    assert fault(entry[2], ("org", "user_id")) is None


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("SELECT content FROM message WHERE org = :org AND user_id = :user_id", "does not name"),
        ("SELECT content FROM message WHERE org = :org AND user_id = :user_id AND bot = 'b'", "does not name"),
        ("DELETE FROM doc WHERE doc = :doc", "does not name"),
        ("INSERT INTO doc (org, user_id, bot, n) VALUES (:org, :user_id, :bot, (SELECT 1))", "computes"),
        ("INSERT INTO doc (org, user_id, bot, n) VALUES (:org, :user_id, :bot, :n + 1)", "computes"),
        ("INSERT INTO doc (user_id, org, bot, n) VALUES (:user_id, :org, :bot, :n)", "does not begin"),
        ("UPDATE doc SET n = n + 1 WHERE org = :org AND user_id = :user_id AND bot = :bot", "computes in SET"),
        ("UPDATE doc SET n = max(1, :n) WHERE org = :org AND user_id = :user_id AND bot = :bot", "computes in SET"),
        (
            "INSERT INTO user_state (org, user_id, bot, n) VALUES (:org, :user_id, :bot, :n) ON CONFLICT (org) DO NOTHING",
            "whole key",
        ),
    ],
)
def test_the_rules_catch_what_breaks_them(sql: str, found: str) -> None:
    assert found in (fault(sql) or "")


@pytest.mark.parametrize("entry", EVERY, ids=ids(EVERY))
def test_time_is_a_parameter_and_no_lock_is_taken(entry: tuple[str, str, str]) -> None:
    forbidden = r"\b(now|datetime|date|strftime|julianday|unixepoch|current_\w+|random\w*|for update|merge|glob|like)\b"
    assert re.search(forbidden, entry[2], re.I) is None


@pytest.mark.parametrize("entry", SHARED, ids=ids(SHARED))
def test_shared_sql_uses_no_words_of_one_database(entry: tuple[str, str, str]) -> None:
    of_sqlite = r"\b(pragma|json_\w+|ifnull|rowid|replace into|insert or|group_concat|glob|collate|instr|printf)\b"
    assert re.search(of_sqlite, entry[2], re.I) is None


@pytest.mark.parametrize("entry", [e for e in SHARED if e[0] == "doctor.sql"], ids=lambda e: e[1])
def test_both_sides_of_an_operators_join_agree_on_the_user(entry: tuple[str, str, str]) -> None:
    for join in entry[2].split("LEFT JOIN")[1:]:
        for column in ("org", "user_id", "bot"):
            assert re.search(rf"\w+\.{column} = \w+\.{column}\b", join)


def test_looks_across_users_return_no_text() -> None:
    texts = {"content", "text", "value", "quote", "claim", "meta", "manifest", "themes", "slot_value", "name"}
    for file, name, sql in EVERY:
        if file in ACROSS and sql.startswith("SELECT"):
            selected = sql[: sql.index("FROM")]
            assert not texts & set(re.findall(r"\w+", selected)), f"{file}: {name}"


def test_every_statement_is_one_that_sqlite_knows() -> None:
    db = apsw.Connection(":memory:")
    for _, sql in queries.migrations("sqlite"):
        db.execute(sql)
    for name, sql in queries.load("sqlite").items():
        args = dict.fromkeys(re.findall(r":([a-z_0-9]+)", sql))
        assert db.execute(f"EXPLAIN {sql}", args).fetchall() or name == "integrity"


def test_a_scan_of_one_user_never_reads_a_whole_table() -> None:
    """Each query about a user is answered from an index, whatever the number of users."""
    db = apsw.Connection(":memory:")
    for _, sql in queries.migrations("sqlite"):
        db.execute(sql)
    for _, name, sql in OF_A_USER + IN_ALL_ASSISTANTS:
        args = dict.fromkeys(re.findall(r":([a-z_0-9]+)", sql))
        plan = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {sql}", args)]
        own = {
            f"SCAN {step.split()[-1]}" for step in plan if step.startswith(("CO-ROUTINE", "MATERIALIZE"))
        }  # subqueries
        scans = [step for step in plan if step.startswith("SCAN") and "json_each" not in step and step not in own]
        assert scans == [], name


def test_a_join_does_not_read_all_of_a_user_again_for_each_row() -> None:
    """The first table of a join may be all that a user has; a further one is looked up by more of its key."""
    db = apsw.Connection(":memory:")
    for _, sql in queries.migrations("sqlite"):
        db.execute(sql)
    for _, name, sql in OF_A_USER:
        args = dict.fromkeys(re.findall(r":([a-z_0-9]+)", sql))
        joined: dict[int, list[str]] = {}
        for _, parent, _, step in db.execute(f"EXPLAIN QUERY PLAN {sql}", args):
            if step.startswith(("SEARCH", "SCAN")):
                joined.setdefault(parent, []).append(step)
        again = [
            step for steps in joined.values() for step in steps[1:] if step.endswith("(org=? AND user_id=? AND bot=?)")
        ]
        assert again == [], name


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("newest_summaries", "summary_newest"),
        ("newest_conversations", "conversation_newest"),
        ("conversations_apart", "conversation_apart"),
    ],
)
def test_what_a_context_begins_with_is_read_in_order_of_an_index(name: str, index: str) -> None:
    db = apsw.Connection(":memory:")
    for _, sql in queries.migrations("sqlite"):
        db.execute(sql)
    sql = queries.load("sqlite")[name]
    plan = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {sql}", dict.fromkeys(re.findall(r":([a-z_0-9]+)", sql)))]

    assert f" {index} " in plan[0], plan
    assert "USE TEMP B-TREE FOR ORDER BY" not in plan, plan


def test_names_are_given_once() -> None:
    for folder in ("shared", "sqlite"):
        names = [name for _, name, _ in statements(folder)]
        assert len(names) == len(set(names))
