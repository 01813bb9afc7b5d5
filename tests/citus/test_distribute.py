"""A database with a memory in it is spread over a real cluster, and everything is still there."""

from __future__ import annotations

from collections.abc import Mapping

import psycopg
import pytest

from holdfast import Memory
from holdfast.errors import BadInput, StoreError
from holdfast.store import copy, distribute, initialize, open_store
from holdfast.store.postgres.cluster import ALONE, by_column
from holdfast.store.queries import tables
from holdfast.testing.fakes import HashEmbedder
from tests.citus.conftest import APP, OWNER, SHARDS, Cluster
from tests.postgres.test_row_security import a_day

pytestmark = pytest.mark.citus


def filled(cluster: Cluster) -> Mapping[str, list[object]]:
    with Memory(cluster.at(APP), embedder=HashEmbedder()) as memory:
        a_day(memory)
        for number in range(8):
            memory.conversation("c", user=f"user {number}", org=f"org {number % 3}").record("I live in Porto.")
        memory.digest()
        memory.user("user 3", org="org 0").erase()
    return contents(cluster)


def contents(cluster: Cluster) -> Mapping[str, list[object]]:
    return {t.name: sorted(row[0] for row in cluster.run(f"SELECT t::text FROM {t.name} t")) for t in tables()}  # type: ignore[type-var]


def test_everything_is_there_after_a_kill_and_a_second_run(apart: Cluster, tmp_path: object) -> None:
    before = filled(apart)
    planned = distribute(apart.at(OWNER), shards=SHARDS, dry_run=True)

    assert (planned.done, planned.obstacles, planned.nodes > 0) == (False, (), True)
    assert [table.table for table in planned.tables] == list(by_column())
    assert apart.run("SELECT count(*) FROM pg_dist_partition WHERE logicalrelid = 'user'::regclass") == [(0,)]

    def killed(table: str, done: int, total: int) -> None:
        if table == "message":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        distribute(apart.at(OWNER), shards=SHARDS, progress=killed)
    with pytest.raises(StoreError, match="only a part"):
        open_store(apart.at(APP))

    rest = distribute(apart.at(OWNER), shards=SHARDS)
    assert rest.done
    assert contents(apart) == before
    assert distribute(apart.at(OWNER), shards=SHARDS).tables == rest.tables
    colocated = apart.run(
        "SELECT partmethod, count(*), count(DISTINCT colocationid) FROM pg_dist_partition p"
        f" JOIN pg_class c ON c.oid = p.logicalrelid WHERE relnamespace = '{apart.schema}'::regnamespace GROUP BY 1"
    )
    assert sorted(colocated) == [("h", len(by_column()) - 2, 1 + len(ALONE)), ("n", 2, 1)]  # type: ignore[type-var]
    left = "SELECT sum(pg_relation_size(c.oid)) FROM pg_class c JOIN pg_dist_partition p ON p.logicalrelid = c.oid"
    assert apart.run(f"{left} WHERE relnamespace = '{apart.schema}'::regnamespace") == [(0,)]
    with Memory(apart.at(APP), embedder=HashEmbedder()) as memory:
        assert memory.doctor().ok
        assert {fact.value for fact in memory.user("user 1", org="org 1").facts()} == {"Porto"}
        memory.user("ana", org="acme").erase()
        assert memory.user("ana", org="acme").facts() == []
    copied = copy(apart.at(OWNER), f"{tmp_path}/copy.db")
    assert copied.rows["message"] > 0


def test_what_is_in_the_way_is_told_with_its_remedy(apart: Cluster) -> None:
    with Memory(apart.at(APP)) as memory:
        memory.conversation("c", user="ana").record("I live in Porto.")
        found = {obstacle.what for obstacle in distribute(apart.at(OWNER)).obstacles}
    assert any("open" in what for what in found)

    apart.run("UPDATE message SET user_id = ''")
    found = {obstacle.what for obstacle in distribute(apart.at(OWNER)).obstacles}
    assert found == {"message has rows of a user without a name"}

    apart.run("CREATE UNIQUE INDEX fast ON message (org, content); ALTER TABLE fact NO FORCE ROW LEVEL SECURITY")
    found = {obstacle.what for obstacle in distribute(apart.at(OWNER)).obstacles}
    assert found == {"fast is unique without user_id", "fact has no row level security"}
    assert apart.run("SELECT count(*) FROM pg_dist_partition WHERE logicalrelid = 'user'::regclass") == [(0,)]


def test_a_worker_is_not_where_commands_go(cluster: Cluster) -> None:
    (host, port) = cluster.run("SELECT nodename, nodeport FROM pg_dist_node WHERE groupid > 0 LIMIT 1")[0]
    with psycopg.connect(cluster.at(OWNER)) as connection:
        name = connection.info.dbname
    with pytest.raises(StoreError, match="a worker of the cluster"):
        distribute(f"postgresql://{OWNER}@{host}:{port}/{name}")


def test_init_and_distribute_again_change_nothing(cluster: Cluster) -> None:
    assert not initialize(cluster.at(OWNER), APP).made
    again = distribute(cluster.at(OWNER), shards=SHARDS)
    assert again.done
    assert all(table.there for table in again.tables)
    with pytest.raises(BadInput):
        distribute(cluster.at(OWNER), shards=0)
