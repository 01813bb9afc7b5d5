"""What was erased is in no answer, in no row and in no byte; what was not is as before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw
import pytest

from holdfast import Config, Memory
from holdfast.digest import grammar
from holdfast.digest.authorship import masked
from holdfast.digest.second_look import known_value
from holdfast.errors import NotFound
from holdfast.privacy import forget
from holdfast.store import ReadView, Store, WriteView, writeview
from holdfast.store import rows as parsing
from holdfast.store.queries import tables
from holdfast.testing.fakes import FakeClock, HashEmbedder
from tests import keeping

from .looking import USER, answers, asked, raw, rows, standing, unasked, vector_bytes

CANARIES = [
    *(f"Quorvane{chr(97 + n)}zil" for n in range(14)),
    *(f"{word}ヴォルタ{n}" for n, word in enumerate(["青蛙", "熊猫石", "仙人掌", "向日葵", "蒲公英", "石榴籽"])),
    *(f"도롱뇽{word}" for word in ["호수", "바위산", "달무리", "소나기", "겨울밤", "해바라기"]),
    *(f"🦑🪐{emoji}🧿🪬" for emoji in "🐙🦔🦩🪼🐌🦥🐢🦚"),
    *(f"90417{n}3386{n}72" for n in range(8)),
    *(f"mira.volt{n}@zephyrine.example" for n in range(8)),
]
FILLER = "What a long and friendly week it was, with rain on most of the days and a little sun."
START = datetime(2026, 1, 5, 9, tzinfo=UTC)


def test_there_are_fifty_canaries() -> None:
    assert len(set(CANARIES)) == 50


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have nearly all documents stand in segments, too."""
    monkeypatch.setattr(writeview, "SIZE", 4)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store" / "chat.db"


@pytest.fixture
def memory(path: Path) -> Iterator[Memory]:
    path.parent.mkdir()
    clock = FakeClock(START)
    with Memory(path, embedder=HashEmbedder(), clock=clock, config=Config(recall_min_relevance=0.0)) as opened:
        yield opened


def plant(memory: Memory, names: list[str]) -> dict[str, list[tuple[str, int]]]:
    """Say every canary in every layer; ``{canary: the messages that say it}``."""
    places: dict[str, list[tuple[str, int]]] = {canary: [] for canary in CANARIES}
    clock = memory._clock
    for number, canary in enumerate(CANARIES):
        name = names[number % len(names)]
        chat = memory.conversation(name, user=USER)
        clock.advance(seconds=60)  # type: ignore[attr-defined]
        told = f"I live in {canary}." if number % 2 else f"I work at {canary} now."
        receipt = chat.record(told, f"So {canary} it is, good to know!", idempotency_key=f"k{number}")
        places[canary] += [(name, seq) for seq in receipt.seqs]
        chat.record(FILLER, "Indeed it was.")
        if number % 5 == 0:
            chat.append({"role": "user", "content": f"My boss says she might love {canary}", "name": None})
            places[canary].append((name, receipt.seqs[-1] + 3))
    for name in names:
        memory.conversation(name, user=USER).end()
    memory.digest()
    return places


def gone(memory: Memory, path: Path, canaries: list[str], names: list[str], vectors: set[bytes]) -> None:
    """Nothing of *canaries* is left anywhere, and the store is sound."""
    said, everything = unasked(memory, names), rows(path)
    assert [canary for canary in canaries if canary in said or canary in everything] == []
    for canary in canaries:
        assert canary not in asked(memory, canary, names)
    data = raw(path)
    assert standing(data, canaries) == []
    assert [vector for vector in vectors - vector_bytes(path) if vector in data] == []
    assert memory.doctor().findings == ()


@pytest.mark.sqlite("the bytes of the file are searched")
def test_the_search_finds_what_is_there(memory: Memory, path: Path) -> None:
    """The looks are worth as much as what they find before the erasure."""
    plant(memory, ["a", "b"])
    data, everything = raw(path), rows(path)

    assert standing(data, CANARIES) == CANARIES
    assert all(canary in everything for canary in CANARIES)
    assert all(canary in answers(memory, canary, ["a", "b"]) for canary in CANARIES[:3])
    assert len([f for f in memory.user(USER).history("home") if f.value in CANARIES]) >= 7
    assert any(canary in s.text for s in memory.conversation("a", user=USER).summaries(2) for canary in CANARIES)


def test_erased_by_message(memory: Memory, path: Path) -> None:
    places = plant(memory, ["a", "b"])
    vectors = vector_bytes(path)
    for canary in CANARIES:
        for name, seq in places[canary]:
            receipt = memory.conversation(name, user=USER).forget(seq)
        assert canary not in answers(memory, canary, ["a", "b"])  # at once
        assert receipt.level == keeping.erased(), receipt
    memory.digest()

    gone(memory, path, CANARIES, ["a", "b"], vectors)
    left = [m.content for name in ("a", "b") for m in memory.conversation(name, user=USER).load()]
    assert left == [FILLER, "Indeed it was."] * 50


def test_erased_by_fact(memory: Memory, path: Path) -> None:
    """Told by hand and said in a chat; the replies that repeat the word go with it."""
    chat, user = memory.conversation("a", user=USER), memory.user(USER)
    for number, canary in enumerate(CANARIES):
        if number % 2:
            chat.record(f"I like {canary}.", f"{canary}! Lovely.")
        else:
            user.remember(category="things", key=f"thing_{number}", value=canary)
        chat.record(FILLER, "Indeed it was.")
    chat.end()
    memory.digest()
    vectors = vector_bytes(path)
    believed = {fact.value: fact.id for fact in user.facts()}
    known = [canary for canary in CANARIES if canary in believed]
    assert len(known) >= 30
    for canary in known:
        receipt = user.forget(believed[canary])
        assert canary not in answers(memory, canary, ["a"])
        assert receipt.level == keeping.erased(), receipt
    memory.digest()

    gone(memory, path, known, ["a"], vectors)


def test_erased_by_clearing_all_facts(memory: Memory, path: Path) -> None:
    chat, user = memory.conversation("a", user=USER), memory.user(USER)
    for canary in CANARIES[:10]:
        chat.record(f"I live in {canary}.", "Good to know.")
    chat.record("My boss might move to Quorvanegg.")
    memory.digest()
    known = [fact.value for fact in user.history("home")]
    assert len(known) == 10
    receipt = user.clear()
    memory.digest()

    assert receipt.rows["facts"] == 10
    assert user.facts() == user.history("home") == user.rejected() == []
    gone(memory, path, known, ["a"], set())
    assert len(chat.load()) == 21


def test_erased_by_conversation(memory: Memory, path: Path) -> None:
    places = plant(memory, ["a", "b"])
    kept = memory.conversation("b", user=USER)
    before, told = kept.load(), kept.summaries()
    vectors = vector_bytes(path)
    receipt = memory.conversation("a", user=USER).clear()
    memory.digest()
    only_there = [canary for canary, where in places.items() if {name for name, _ in where} == {"a"}]

    assert receipt.level == keeping.erased()
    assert len(only_there) == 25
    gone(memory, path, only_there, ["a", "b"], vectors)
    assert kept.load() == before
    assert kept.summaries() == told
    assert memory.conversation("a", user=USER).load() == []
    assert memory.conversation("a", user=USER).record("Hello again").seqs == (1,)


def test_erased_by_user(memory: Memory, path: Path) -> None:
    plant(memory, ["a", "b"])
    other = memory.conversation("a", user="bo")
    other.record("I live in Porto.", "Noted.")
    memory.digest()
    vectors, before = vector_bytes(path), other.load()
    receipt = memory.user(USER).erase()
    assert receipt.level == keeping.erased(), receipt
    assert receipt.rows["messages"] == 210
    memory.digest()

    gone(memory, path, CANARIES, ["a", "b"], vectors)
    assert memory.admin.users() == [("default", "bo", "default")]
    assert other.load() == before
    assert [fact.value for fact in memory.user("bo").facts()] == ["Porto"]
    assert memory.user(USER).erase().rows == {}


def test_erased_by_subject(memory: Memory, path: Path) -> None:
    rex = memory.conversation("vet", user=USER, subject="rex")
    rex.record("He is allergic to Quorvaneqqa.", "Noted.")
    memory.conversation("a", user=USER).record("I live in Porto.")
    memory.digest()
    assert memory.user(USER, subject="rex").facts("allergy")
    receipt = memory.user(USER, subject="rex").erase()

    assert receipt.level == keeping.erased()
    gone(memory, path, ["Quorvaneqqa"], ["a"], set())
    assert rex.load() == []
    assert [fact.value for fact in memory.user(USER).facts()] == ["Porto"]


def test_a_subject_is_erased_in_one_transaction_and_one_scrub(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        memory.conversation(f"vet{number}", user=USER, subject="rex").record("He is allergic to Quorvaneqqa.", "Noted.")
    memory.conversation("a", user=USER).record("I live in Porto.")
    memory.digest()
    rex, calls = memory.user(USER, subject="rex"), []
    before = memory.user(USER).export()

    def fail(view: WriteView) -> None:
        raise RuntimeError("stopped midway")

    with monkeypatch.context() as patch:
        patch.setattr(WriteView, "forget_subject", fail)
        with pytest.raises(RuntimeError):
            rex.erase()

    assert memory.user(USER).export() == before

    for name in ("write", "scrub"):
        real = getattr(Store, name)
        monkeypatch.setattr(Store, name, lambda *args, name=name, real=real: calls.append(name) or real(*args))
    receipt = rex.erase()

    assert calls == ["write", "scrub"]
    assert (receipt.rows["conversations"], receipt.rows["messages"], receipt.rows["facts"]) == (3, 6, 1)
    assert rex.conversations() == []


def test_an_edited_message_says_only_the_new_words(memory: Memory, path: Path) -> None:
    chat = memory.conversation("a", user=USER)
    chat.append({"role": "user", "content": [{"type": "text", "text": "I live in Quorvaneqqa."}]})
    for _ in range(8):
        chat.record(FILLER, "Indeed it was.")
    chat.end()
    memory.digest()
    receipt = chat.edit(1, "I live in Porto.")
    memory.digest()

    assert [change.op for change in receipt.changes] == ["new"]
    assert [fact.value for fact in memory.user(USER).facts()] == ["Porto"]
    assert "Porto" in chat.summaries(1)[0].text
    gone(memory, path, ["Quorvaneqqa"], ["a"], set())


def test_a_value_said_twice_outlives_one_of_its_messages(memory: Memory) -> None:
    chat, clock = memory.conversation("a", user=USER), memory._clock
    chat.record("I live in Porto.")
    clock.advance(seconds=3600)  # type: ignore[attr-defined]
    chat.record("I live in Porto, as I said.")
    (before,) = memory.user(USER).facts()
    chat.forget(1)
    (after,) = memory.user(USER).facts()

    assert after.id == before.id
    assert [e.seq for e in after.evidence] == [2]
    assert after.valid_from == after.evidence[0].at
    assert memory.doctor().ok


def story(memory: Memory, *texts: str) -> Callable[[], list[tuple[str, str]]]:
    """Say *texts*; returns a look at the history of the home."""
    chat, clock = memory.conversation("a", user=USER), memory._clock
    for text in texts:
        clock.advance(seconds=3600)  # type: ignore[attr-defined]
        chat.record(text)
    user = memory.user(USER)
    return lambda: [(fact.value, fact.ended_because) for fact in user.history("home")]


@pytest.mark.parametrize(
    ("forgotten", "history"),
    [
        (1, [("Porto", "replaced"), ("Faro", "")]),
        (2, [("Lisbon", "replaced"), ("Faro", "")]),
        (3, [("Lisbon", "replaced"), ("Porto", "")]),
    ],
)
def test_history_is_as_if_the_message_was_never_said(memory: Memory, forgotten: int, history: list) -> None:
    told = story(memory, "I live in Lisbon.", "I moved to Porto.", "I moved to Faro.")
    memory.conversation("a", user=USER).forget(forgotten)

    assert told() == history
    facts = memory.user(USER).history("home")
    assert facts[0].valid_to == facts[1].valid_from
    assert facts[0].superseded_by == facts[1].id
    assert memory.doctor().ok


def test_a_retraction_falls_with_the_message_that_said_it(memory: Memory) -> None:
    chat, user = memory.conversation("a", user=USER), memory.user(USER)
    chat.record("I work at Zorblatt.")
    chat.record("I no longer work at Zorblatt.")
    assert user.facts("work") == []
    chat.forget(2)

    assert [fact.value for fact in user.facts("work")] == ["Zorblatt"]
    assert memory.doctor().ok


def test_a_forgotten_value_does_not_bring_an_older_one_back(memory: Memory) -> None:
    told = story(memory, "I live in Lisbon.", "I moved to Porto.")
    (fact,) = memory.user(USER).facts("home")
    memory.user(USER).forget(fact.id)

    assert told() == [("Lisbon", "replaced")]
    assert memory.user(USER).facts() == []
    assert memory.doctor().ok


def test_a_retry_does_not_bring_a_forgotten_message_back(memory: Memory) -> None:
    chat = memory.conversation("a", user=USER)
    chat.append({"role": "user", "content": "I live in Quorvaneqqa."}, idempotency_key="k")
    chat.forget(1)
    again = chat.append({"role": "user", "content": "I live in Quorvaneqqa."}, idempotency_key="k")

    assert again.duplicate
    assert chat.load() == []


def test_numbers_and_chunks_go_on_over_what_was_erased(memory: Memory) -> None:
    """First, last and all messages of a chunk, before and after it closes."""
    chat = memory.conversation("a", user=USER)
    for number in range(30):
        chat.record(f"Word{number} is the word of this hour, and a fine one.", "Indeed.")
        if number % 3 == 0:
            chat.forget(2 * number + 1)
        if number % 7 == 0:
            memory.digest()
    for seq in range(9, 14):
        if chat.load(start_seq=seq, limit=1)[0].seq == seq:
            chat.forget(seq)
    chat.forget(60)
    chat.end()
    memory.digest()

    assert memory.doctor().findings == ()
    assert chat.summaries()[-1].end_seq in (59, 60)
    assert chat.record("Still here.").seqs == (61,)
    assert chat.context("What was the word?").messages


def test_everything_in_a_chunk_can_go(memory: Memory) -> None:
    chat = memory.conversation("a", user=USER)
    for number in range(16):
        chat.record(f"Quorvane{number}x was the word of this hour.", "Indeed.")
    chat.end()
    memory.digest()
    first = chat.summaries(1)[0]
    for seq in range(first.start_seq, first.end_seq + 1):
        chat.forget(seq)

    (again,) = [s for s in chat.summaries(1) if s.start_seq == first.start_seq]
    assert again.end_seq == first.end_seq
    assert "Quorvane" not in again.text
    assert memory.doctor().ok


def test_a_message_that_is_not_there_cannot_be_forgotten(memory: Memory) -> None:
    chat = memory.conversation("a", user=USER)
    with pytest.raises(NotFound):
        chat.forget(1)
    chat.record("Hello.")
    chat.forget(1)
    with pytest.raises(NotFound):
        chat.forget(1)
    with pytest.raises(NotFound):
        chat.edit(1, "Hello!")
    with pytest.raises(NotFound):
        memory.user(USER).forget("fact_none")


@pytest.mark.sqlite("a reader of the file keeps its log from being cut")
def test_a_receipt_does_not_claim_what_a_reader_prevents(memory: Memory, path: Path) -> None:
    """Somebody else's open snapshot keeps the old pages in the log."""
    chat = memory.conversation("a", user=USER)
    chat.record("I live in Quorvaneqqa, by the old harbour.")
    reader = apsw.Connection(str(path))
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM message").fetchall()
    held = chat.forget(1)
    reader.execute("COMMIT")
    reader.close()

    assert held.level == "E1"
    assert held.verified_at is None
    assert "reader" in held.why
    assert chat.clear().level == "E1"  # nothing that is long enough to be looked for is left


def test_what_others_say_too_is_no_residue(memory: Memory) -> None:
    memory.conversation("a", user="bo").record("I live in Quorvaneqqa, by the old harbour.")
    chat = memory.conversation("a", user=USER)
    chat.record("I live in Quorvaneqqa, by the old harbour.")

    assert chat.forget(1).level == keeping.erased()


def test_what_the_schema_says_itself_is_no_residue(memory: Memory) -> None:
    chat = memory.conversation("a", user=USER)
    chat.record("times.")  # as in the name of a step of the schema, which stands in the file

    assert chat.forget(1).level == keeping.erased()


@pytest.mark.sqlite("the bytes of a server's disk are not searched at any size")
def test_a_large_file_is_not_called_searched(path: Path) -> None:
    path.parent.mkdir()
    with Memory(path, embedder=None, config=Config(scrub_mb=0)) as memory:
        chat = memory.conversation("a", user=USER)
        chat.record("I live in Quorvaneqqa, by the old harbour.")
        receipt = chat.forget(1)

    assert receipt.level == "E1"
    assert "scrub_mb" in receipt.why


def test_a_memory_without_a_file_is_searched_too() -> None:
    with Memory(embedder=None) as memory:
        chat = memory.conversation("a", user=USER)
        chat.record("I live in Quorvaneqqa, by the old harbour.")

        assert chat.forget(1).level == keeping.erased()


def test_a_receipt_counts_the_rows_of_every_table_with_data_of_the_user() -> None:
    uncounted = {"user_state", "consent", "operation"}  # counters, choices that stay, work on record for a week

    assert {table.name for table in tables() if "user_id" in table.key} - uncounted == set(forget.TABLES)


def test_an_erasure_reads_the_summaries_of_all_conversations_at_once(memory, monkeypatch):
    for name in ("one", "two", "three", "four"):
        chat = memory.conversation(name, user="ben")
        for number in range(12):
            chat.record(f"The zirconium lamp of {name} has number {number}.", "I see.")
    memory.digest()
    read_rows, places = ReadView.summary_rows, []
    monkeypatch.setattr(
        ReadView, "summary_rows", lambda view: places.append(view.scope.conversation) or read_rows(view)
    )
    memory.conversation("two", user="ben").forget(1)

    assert set(places) <= {"two"}


def size_of(cached: Any) -> int:
    """Return how many answers of a function are remembered."""
    size: int = cached.cache_info().currsize
    return size


def test_an_erasure_forgets_what_was_read_of_messages_and_facts_so_far() -> None:
    """The facts that messages are read beside, their names and the expressions made of them are kept between messages."""
    with Memory(embedder=None) as memory:
        chat = memory.conversation("c", user="ana")
        chat.record("I have a dog called Rex.")
        chat.record("Sadly Rex died last week.")
        remembered = (known_value, masked, parsing._fact, grammar._compiled)
        before = [size_of(one) for one in remembered]

        memory.user("ana").erase()

    assert all(before)
    assert [size_of(one) for one in remembered] == [0, 0, 0, 0]
