"""What was erased does not come back with a backup; and the ledger that sees to it says nothing of what it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import Memory
from holdfast.errors import BadInput, Conflict
from holdfast.privacy.ledger import blank_spans, blanked_spans
from holdfast.types import Message
from tests import keeping

SECRETS = ("Quorvane", "zookeeper", "Rexalot", "mangosteen", "Brumhilde")


@pytest.fixture
def copies(tmp_path: Path) -> Any:
    """A memory with three users, and a function that backs it up and opens the backup as it was then."""
    memory = Memory(tmp_path / "live.db")
    ana = memory.conversation("c1", user="ana")
    ana.record("I live in Quorvane.", "Lovely.")
    ana.record("I work as a zookeeper. My dog is Rexalot.", "Noted.")
    memory.conversation("c2", user="ana").record("I love mangosteen.", "Sweet!")
    memory.conversation("c1", user="ana", subject="Brumhilde").record("Brumhilde the cat is diabetic.", "Oh.")
    memory.conversation("c1", user="bo").record("I live in Quorvane.", "Lovely.")
    memory.digest()

    def older() -> Memory:
        path = tmp_path / f"backup-{len(list(tmp_path.iterdir()))}.db"
        memory.backup(path)  # a file, of a memory on a server too
        keeping.put(path, path.read_bytes())
        return Memory(path)

    yield memory, older
    memory.close()


def everything(memory: Memory, user: str) -> dict[str, Any]:
    data = memory.user(user).export()
    return {name: value for name, value in data.items() if name not in ("exported_at", "digest")}


def forget_fact(memory: Memory) -> None:
    user = memory.user("ana")
    user.forget(next(fact for fact in user.facts() if "zookeeper" in fact.text).id)


ERASURES = {
    "message": lambda memory: memory.conversation("c1", user="ana").forget(1),
    "fact": forget_fact,
    "conversation": lambda memory: memory.conversation("c2", user="ana").clear(),
    "subject": lambda memory: memory.user("ana", subject="Brumhilde").erase(),
    "all facts": lambda memory: memory.user("ana").clear(),
    "user": lambda memory: memory.user("ana").erase(),
    "edit": lambda memory: memory.conversation("c1", user="ana").edit(1, "I live nowhere."),
}
WHAT_WENT = {
    "message": ["Quorvane"],
    "fact": ["zookeeper"],
    "conversation": ["mangosteen"],
    "subject": ["Brumhilde"],
    "all facts": ["Quorvane", "zookeeper", "Rexalot", "mangosteen"],
    "user": list(SECRETS),
    "edit": ["Quorvane"],
}


@pytest.mark.parametrize("how", ERASURES)
def test_what_was_erased_since_is_erased_from_the_older_copy(copies: Any, how: str) -> None:
    memory, older = copies
    with older() as copy:
        ERASURES[how](memory)
        found = copy.admin.erasures.replay(memory.admin.erasures.export(), dry_run=True)
        assert found.held
        assert all(word in json.dumps(everything(copy, "ana")) for word in WHAT_WENT[how])

        copy.admin.erasures.replay(memory.admin.erasures.export())
        left = json.dumps(everything(copy, "ana"))

        assert [word for word in WHAT_WENT[how] if word in left] == []
        assert [word for word in SECRETS if word not in WHAT_WENT[how] and word not in left] == []
        assert [fact.value for fact in copy.user("bo").facts()] == ["Quorvane"]
        assert copy.doctor().ok
        if how not in ("user", "edit"):
            words = [m.content for m in copy.conversation("c1", user="ana").load()]
            assert words == [m.content for m in memory.conversation("c1", user="ana").load()]


def test_a_replay_can_be_repeated_and_then_finds_nothing(copies: Any) -> None:
    memory, older = copies
    with older() as copy:
        for how in ("message", "fact", "conversation", "subject", "all facts"):
            ERASURES[how](memory)
        first = copy.admin.erasures.replay(memory.admin.erasures.export())
        again = copy.admin.erasures.replay(memory.admin.erasures.export())

        assert first.users == 1
        assert (again.users, dict(again.held)) == (0, {})


def test_a_copy_made_after_an_erasure_is_left_alone(copies: Any) -> None:
    memory, older = copies
    memory.conversation("c1", user="ana").forget(1)
    memory.conversation("c2", user="ana").clear()
    memory.conversation("c2", user="ana").record("I love figs.", "Sweet!")
    with older() as copy:
        before = everything(copy, "ana")
        report = copy.admin.erasures.replay(memory.admin.erasures.export())

        assert (report.users, dict(report.held)) == (0, {})
        assert everything(copy, "ana") == before


def test_who_came_back_after_the_erasure_is_erased_from_before_it_only(copies: Any) -> None:
    memory, older = copies
    with older() as before:
        memory.user("ana").erase()
        memory.conversation("c9", user="ana").record("I live in Faro.", "Ok.")
        with older() as after:
            ledger = memory.admin.erasures.export()
            before.admin.erasures.replay(ledger)
            after.admin.erasures.replay(ledger)

            assert before.user("ana").facts() == []
            assert [fact.value for fact in after.user("ana").facts()] == ["Faro"]


@pytest.mark.parametrize("choose", ["pause", "opt_out"])
def test_a_choice_made_since_holds_in_the_older_copy(copies: Any, choose: str) -> None:
    memory, older = copies
    with older() as copy:
        getattr(memory.user("bo"), choose)()
        report = copy.admin.erasures.replay(memory.admin.erasures.export())

        assert report.choices == 1
        assert copy.user("bo").status().state == memory.user("bo").status().state
        assert copy.conversation("c1", user="bo").record("I live in Faro.", "Ok.").seqs == ()


def test_the_ledger_holds_no_word_and_no_name_of_what_went(copies: Any) -> None:
    memory, _ = copies
    for how in ("message", "fact", "conversation", "subject", "user"):
        ERASURES[how](memory)
    memory.user("bo").erase()
    text = json.dumps(memory.admin.erasures.export())

    assert [word for word in (*SECRETS, '"ana"', '"bo"', '"c1"', '"c2"') if word in text] == []
    assert len(memory.admin.erasures.export()["erased"]) >= 6


def test_the_ledger_of_another_memory_is_refused(copies: Any) -> None:
    memory, _ = copies
    memory.conversation("c1", user="ana").forget(1)
    with Memory() as other:
        other.conversation("c1", user="ana").record("I live in Faro.", "Ok.")
        other.conversation("c1", user="ana").forget(1)
        with pytest.raises(Conflict, match="another memory"):
            memory.admin.erasures.replay(other.admin.erasures.export())


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: data.update(format="other"),
        lambda data: data.update(key="no hex"),
        lambda data: data.update(key=""),
        lambda data: data.pop("choices"),
        lambda data: data["erased"][0].update(kind="planet"),
        lambda data: data["erased"][0].update(seq=-1),
        lambda data: data["erased"][0].update(spans=[["a", 2]]),
        lambda data: data["erased"].append({}),
        lambda data: data["choices"].append(
            {"org": "default", "user": "bo", "bot": "default", "subject": "", "state": "x"}
        ),
    ],
)
def test_a_damaged_ledger_is_refused_and_nothing_changes(copies: Any, spoil: Any) -> None:
    memory, older = copies
    with older() as copy:
        memory.conversation("c1", user="ana").forget(1)
        data = json.loads(json.dumps(memory.admin.erasures.export()))
        spoil(data)
        before = everything(copy, "ana")
        with pytest.raises(BadInput):
            copy.admin.erasures.replay(data)
        assert everything(copy, "ana") == before


@given(st.text(max_size=40), st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=4))
def test_blanking_by_offsets_gives_the_same_text_again(text: str, spans: list[tuple[int, int]]) -> None:
    after = blank_spans(Message("user", text), spans).content
    found = blanked_spans(text, after)

    assert found is not None
    assert blank_spans(Message("user", text), found).content == after


def test_a_text_that_was_changed_is_no_blanked_one() -> None:
    assert blanked_spans("I live in Faro.", "I live in Graz.") is None
    assert blanked_spans("I live in Faro.", "I live") is None
