"""What the processes of a service share, kept in PostgreSQL: conditions on changes, quotas, orders."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from holdfast import Memory
from holdfast.errors import Changed
from holdfast.server.jobs import Owner, Tasks


def test_of_many_who_saw_the_same_fact_one_changes_it_and_limits_hold(address: str) -> None:
    with Memory(address, embedder=None) as memory:
        memory.conversation("c", user="ana").record("I live in Porto.", "Noted!")
        ana = memory.user("ana")
        (fact,) = ana.facts()

        def change(number: int) -> bool:
            try:
                return ana.correct(fact.id, value=f"Town{number}", if_version=fact.version).op != "rejected"
            except Changed:
                return False

        key = memory.admin.keys.create("app").about
        with ThreadPoolExecutor(6) as threads:
            assert sum(threads.map(change, range(6))) == 1
            taken = list(threads.map(lambda _: memory.admin.keys.count_messages(key, 1, day=5, org_month=7), range(12)))
        assert taken.count(0) == 5


def test_an_order_is_told_by_another_process_with_its_report(address: str) -> None:
    with Memory(address, embedder=None) as first, Memory(address, embedder=None) as second:
        first.conversation("c", user="ana").record("Hello.", "Hi.")
        tasks, whose = Tasks(first.admin.operations), Owner("default", "ana", "default")
        task = tasks.order("import", whose, lambda step: {"stored": 3}, key="once", request={})
        assert task.over.wait(10)
        seen = Tasks(second.admin.operations)

        assert (seen.get(task.id).state, seen.get(task.id).report) == ("done", {"stored": 3})
        assert seen.order("import", whose, lambda step: None, key="once", request={}).id == task.id
        first.user("ana").erase()
        assert second.admin.operations.get(task.id) is None
        seen.close()
        tasks.close()
