"""Indexes in memory: bounded, the oldest out first, and never one of another moment."""

from concurrent.futures import ThreadPoolExecutor

from holdfast.recall.index import IndexCache, build, join_documents
from holdfast.store import Partition, UserRow

PARTITIONS = (Partition("self", "message"),)
NOW = UserRow(next_doc=3, version=7, epoch=0)


def key(user: str) -> tuple[tuple[str, str, str], tuple[Partition, ...], tuple[str, ...]]:
    return (("acme", user, "bot"), PARTITIONS, ())


EMPTY = build("message", [join_documents(PARTITIONS[0], [])])


def test_what_was_put_is_found_at_the_same_moment_only():
    cache = IndexCache(1_000_000)
    cache.put(key("ana"), NOW, EMPTY)

    assert cache.get(key("ana"), NOW) is EMPTY
    assert cache.get(key("ana"), UserRow(next_doc=3, version=8, epoch=0)) is None
    assert cache.get(key("ana"), UserRow(next_doc=3, version=7, epoch=1)) is None
    assert cache.get(key("ben"), NOW) is None


def test_the_least_recently_used_makes_room():
    cache = IndexCache(2 * EMPTY.nbytes)
    cache.put(key("ana"), NOW, EMPTY)
    cache.put(key("ben"), NOW, EMPTY)
    cache.get(key("ana"), NOW)
    cache.put(key("eve"), NOW, EMPTY)

    assert cache.get(key("ben"), NOW) is None
    assert cache.get(key("ana"), NOW) is EMPTY
    assert cache.nbytes == 2 * EMPTY.nbytes


def test_what_is_too_large_is_not_kept():
    cache = IndexCache(EMPTY.nbytes - 1)
    cache.put(key("ana"), NOW, EMPTY)

    assert (len(cache), cache.nbytes) == (0, 0)


def test_the_same_key_is_counted_once():
    cache = IndexCache(1_000_000)
    for version in range(5):
        cache.put(key("ana"), UserRow(version=version), EMPTY)

    assert (len(cache), cache.nbytes) == (1, EMPTY.nbytes)
    cache.clear()
    assert (len(cache), cache.nbytes) == (0, 0)


def test_threads_leave_the_count_right():
    cache = IndexCache(5 * EMPTY.nbytes)

    def work(number: int) -> None:
        for turn in range(200):
            cache.put(key(f"u{(number * turn) % 9}"), NOW, EMPTY)
            cache.get(key(f"u{turn % 9}"), NOW)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert cache.nbytes == len(cache) * EMPTY.nbytes <= 5 * EMPTY.nbytes
