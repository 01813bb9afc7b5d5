"""A message may follow any earlier one: what came after it there is left behind, and no context knows it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from holdfast import Memory
from holdfast.errors import BadInput, Conflict, KeyReused, NotFound
from holdfast.store import ItemRow, ReadView
from holdfast.testing.fakes import HashEmbedder
from tests import keeping


@pytest.fixture
def memory():
    with Memory(embedder=HashEmbedder()) as opened:
        yield opened


def talk(chat, *texts: str, after: int | None = None):
    roles = ("user", "assistant")
    return chat.append([{"role": roles[n % 2], "content": text} for n, text in enumerate(texts)], after=after)


def texts(chat, **how: bool) -> list[str]:
    return [message.content for message in chat.load(**how)]


def shown(memory, query: str) -> str:
    context = memory.conversation("later", user="ana").context(query)
    return "\n".join(str(message["content"]) for message in context.messages)


def test_an_edited_message_takes_the_place_of_the_old_one_and_of_what_was_learned_from_it(memory):
    chat = memory.conversation("c", user="ana")
    talk(chat, "Hello.", "Hi!", "My name is Anastasia and I live in Porto.", "Noted!")
    talk(chat, "My name is Eva.", "Hello Eva!", after=2)
    memory.digest()

    assert texts(chat) == ["Hello.", "Hi!", "My name is Eva.", "Hello Eva!"]
    assert sorted(fact.value for fact in memory.user("ana").facts()) == ["Eva"]
    assert [hit.text for hit in memory.user("ana").search("Porto Anastasia") if "Porto" in hit.text] == []
    for question in ("Where do I live, in Porto?", "Who is Anastasia?"):
        assert "Porto" not in shown(memory, question).replace(question, "")
        assert "Anastasia" not in shown(memory, question).replace(question, "")
    assert "Porto" not in str(chat.context("Where do I live?").messages)
    assert memory.doctor().ok


def test_what_was_left_behind_is_kept_and_says_so(memory):
    chat = memory.conversation("c", user="ana")
    talk(chat, "Hello.", "Hi!", "My name is Anastasia.", "Noted!")
    talk(chat, "My name is Eva.", after=2)

    everything = chat.load(abandoned=True)
    assert [(m.seq, m.content, bool(m.meta.get("abandoned"))) for m in everything] == [
        (1, "Hello.", False),
        (2, "Hi!", False),
        (3, "My name is Anastasia.", True),
        (4, "Noted!", True),
        (5, "My name is Eva.", False),
    ]
    assert everything[-1].meta["follows"] == 2
    assert [m.seq for m in chat.load(abandoned=True, last=2)] == [4, 5]


def test_the_end_of_a_tree_is_read_without_its_beginning(memory, monkeypatch):
    chat = memory.conversation("c", user="ana")
    talk(chat, *(f"Line {number}." for number in range(40)))
    talk(chat, "Another line.", after=38)
    read, rows = [], ReadView.message_rows
    monkeypatch.setattr(ReadView, "message_rows", lambda *a, **k: [read.append(row) or row for row in rows(*a, **k)])

    assert [message.seq for message in chat.load(abandoned=True, last=3)] == [39, 40, 41]
    assert [message.seq for message in chat.load(abandoned=True, start_seq=40)] == [40, 41]
    assert len(read) == 5


def test_a_branch_comes_back_with_what_it_taught(memory):
    chat = memory.conversation("c", user="ana")
    talk(chat, "Hello.", "Hi!", "I live in Porto.", "Noted!")
    talk(chat, "I live in Kyiv.", "Noted!", after=2)
    talk(chat, "And I plant beans.", after=4)
    memory.digest()

    assert texts(chat) == ["Hello.", "Hi!", "I live in Porto.", "Noted!", "And I plant beans."]
    assert "Porto" in {fact.value for fact in memory.user("ana").facts()}
    assert "Kyiv" not in {fact.value for fact in memory.user("ana").facts()}
    assert [m.meta.get("follows") for m in chat.load(abandoned=True)] == [None, None, None, None, 2, None, 4]
    assert memory.doctor().ok


def test_another_answer_leaves_the_question_and_its_facts(memory):
    chat = memory.conversation("c", user="ana")
    talk(chat, "I live in Porto.", "One.")
    chat.append({"role": "assistant", "content": "Two."}, after=1)

    assert texts(chat) == ["I live in Porto.", "Two."]
    assert [fact.value for fact in memory.user("ana").facts()] == ["Porto"]


def test_a_conversation_can_begin_again(memory):
    chat = memory.conversation("c", user="ana")
    talk(chat, "I live in Porto.", "Noted!")
    talk(chat, "I live in Kyiv.", "Noted!", after=0)

    assert texts(chat) == ["I live in Kyiv.", "Noted!"]
    assert [fact.value for fact in memory.user("ana").facts()] == ["Kyiv"]


def test_a_branch_is_begun_once_under_one_key(memory):
    chat = memory.conversation("c", user="ana")
    talk(chat, "Hello.", "Hi!", "One?", "Yes.")
    first = chat.append("Two?", after=2, idempotency_key="k")
    chat.append({"role": "assistant", "content": "No."})
    again = chat.append("Two?", after=2, idempotency_key="k")

    assert (again.seqs, again.duplicate) == (first.seqs, True)
    assert texts(chat) == ["Hello.", "Hi!", "Two?", "No."]


def test_summaries_forget_what_was_left_behind(memory):
    chat = memory.conversation("c", user="ana")
    for number in range(14):
        talk(chat, f"I plant {'dahlias' if number == 3 else 'beans'} in bed {number}.", "Good.")
    chat.end()
    memory.digest()
    assert "dahlias" in "".join(summary.text for summary in chat.summaries())
    talk(chat, "I plant leeks.", "Good.", after=4)
    memory.digest()

    assert "dahlias" not in "".join(summary.text for summary in chat.summaries())
    assert memory.doctor().ok


def test_branches_go_with_an_export_and_with_the_user(memory):
    chat = memory.conversation("c", user="ana")
    talk(chat, "Hello.", "Hi!", "My name is Anastasia.", "Noted!")
    talk(chat, "My name is Eva.", after=2)
    whole = memory.user("ana").export()
    with Memory(embedder=HashEmbedder()) as other:
        other.import_(whole)
        assert texts(other.conversation("c", user="ana"), abandoned=True) == texts(chat, abandoned=True)
        assert texts(other.conversation("c", user="ana")) == ["Hello.", "Hi!", "My name is Eva."]
        assert other.doctor().ok
    memory.user("ana").erase()
    assert chat.load(abandoned=True) == []


def test_a_message_that_is_not_there_cannot_be_followed(memory):
    chat = memory.conversation("c", user="ana")
    talk(chat, "Hello.", "Hi!")

    with pytest.raises(NotFound, match="no message 7"):
        chat.append("And?", after=7)
    with pytest.raises(BadInput):
        chat.append("And?", after=-1)
    memory.user("ana").pause()
    assert chat.append("And?", after=1).skipped == "paused"
    assert texts(chat) == ["Hello.", "Hi!"]


@pytest.mark.parametrize("how", ["message", "fact", "edit"])
def test_what_is_erased_does_not_live_on_in_a_branch(memory, how):
    chat = memory.conversation("c", user="ana")
    talk(chat, "I live in Porto.", "Noted!", "I still live in Porto, by the river.", "Nice!")
    talk(chat, "I plant beans.", after=2)
    if how == "message":
        chat.forget(1)
    elif how == "fact":
        memory.user("ana").forget(memory.user("ana").facts()[0].id)
    else:
        chat.edit(1, "I live somewhere.")

    assert "Porto" not in str(chat.load(abandoned=True))
    assert "Porto" not in str(memory.user("ana").export())
    assert memory.doctor().ok


@pytest.mark.parametrize("how", ["fact", "facts", "subject"])
def test_what_is_forgotten_does_not_live_on_in_a_branch_of_another_conversation(memory, how):
    about = "Rex" if how == "subject" else None
    talk(
        memory.conversation("c", user="ana", subject=about), f"{'Rex lives' if about else 'I live'} in Porto.", "Noted!"
    )
    other = memory.conversation("d", user="ana")
    talk(other, "Hello.", "Hi!", "By the river in Porto, that is where home is.", "Nice!")
    talk(other, "I plant beans.", "Good.", after=2)
    kept = memory.conversation("e", user="ana")
    talk(kept, "Hello.", "Hi!", "I fly kites.")
    talk(kept, "I plant leeks.", after=2)
    user = memory.user("ana", subject=about)
    if how == "fact":
        user.forget(next(fact for fact in user.facts() if fact.value == "Porto").id)
    elif how == "facts":
        user.clear()
    else:
        user.erase()

    assert "Porto" not in str(other.load(abandoned=True))
    assert "Porto" not in str(memory.user("ana").export())
    assert "I fly kites." in texts(kept, abandoned=True)
    assert memory.doctor().ok


@pytest.mark.parametrize(("name", "value"), [("follows", 3), ("follows", 1), ("abandoned", "yes"), ("abandoned", {})])
def test_a_caller_cannot_write_what_says_where_a_message_belongs(memory, name, value):
    chat = memory.conversation("c", user="ana")
    chat.append({"role": "user", "content": "Hello.", "meta": {name: value, "mine": 1}})
    chat.append([{"role": "assistant", "content": "Hi!", name: value}, "One?", "Two?"])
    talk(chat, "Three?", after=2)
    talk(chat, "Four?", after=3)
    chat.forget(1)

    assert texts(chat) == ["Hi!", "One?", "Four?"]
    assert [message.meta.get("mine") for message in chat.load()] == [None, None, None]
    assert not any(name in message.meta for message in chat.load()[:2])


def test_marks_in_an_export_that_was_changed_lead_nowhere(memory):
    chat = memory.conversation("c", user="ana")
    talk(chat, "Hello.", "Hi!", "One?", "Yes.")
    talk(chat, "Two?", "No.", after=2)
    whole = memory.user("ana").export()
    first, _, third, _, fifth, _ = whole["conversations"][0]["messages"]
    first["meta"] |= {"abandoned": "yes", "follows": 6}
    third["meta"]["abandoned"]["meta"] = {"follows": 3}
    third["meta"]["abandoned"]["seq"] = 99
    fifth["meta"]["follows"] = 5
    whole.pop("digest", None)
    with Memory(embedder=HashEmbedder()) as other:
        other.import_(whole)
        again = other.conversation("c", user="ana")
        talk(again, "Three?", after=3)
        assert texts(again) == ["Hello.", "Hi!", "One?", "Three?"]
        again.forget(1)
        assert texts(again) == ["Hi!", "One?", "Three?"]


def test_a_branch_that_cannot_be_stored_leaves_nothing_behind(memory):
    talk(memory.conversation("c", user="ana"), "Hello.", "Hi!", "I live in Porto.", "Noted!")
    with pytest.raises(Conflict):
        talk(memory.conversation("c", user="ana", own_facts=True), "I live in Kyiv.", after=2)
    with pytest.raises(BadInput):
        memory.conversation("c", user="ana").append({"role": "nobody", "content": "Hm."}, after=2)

    assert texts(memory.conversation("c", user="ana")) == ["Hello.", "Hi!", "I live in Porto.", "Noted!"]
    assert [fact.value for fact in memory.user("ana").facts()] == ["Porto"]


def test_of_branches_that_begin_at_once_one_is_in_use(memory):
    chat = memory.conversation("c", user="ana")
    talk(chat, "Hello.", "Hi!")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: talk(chat, f"Line {number}.", after=2), range(8)))

    assert [message.seq for message in chat.load()] == [1, 2, 10]
    assert [m.meta.get("follows") for m in chat.load(abandoned=True)] == [None, None, *[2] * 8]
    assert memory.doctor().ok


def test_a_branch_leaves_keys_and_what_frameworks_keep(memory):
    chat = memory.conversation("c", user="ana")
    talk(chat, "Hello.", "Hi!")
    chat.append("One?", idempotency_key="k")
    scope = chat._scope
    memory._engine.store.write(scope, lambda view: view.save_item(ItemRow("s", "n", b"v", 1, 1, None)))
    talk(chat, "Two?", after=2)

    assert len(memory._engine.store.read(scope, lambda view: view.items("s"))) == 1
    with pytest.raises(KeyReused):
        chat.append("Three?", idempotency_key="k")
    chat.forget(1)
    assert memory._engine.store.read(scope, lambda view: view.items("s")) == []


def test_an_older_copy_loses_what_was_erased_since_from_its_branches(tmp_path):
    with Memory(tmp_path / "live.db", embedder=None) as live:
        chat = live.conversation("c", user="ana")
        talk(chat, "Hello.", "Hi!", "By the river in Porto, that is where home is.", "Noted!")
        talk(chat, "I plant beans.", after=2)
        live.backup(tmp_path / "older.db")
        keeping.put(tmp_path / "older.db", (tmp_path / "older.db").read_bytes())
        talk(live.conversation("d", user="ana"), "I live in Porto.")
        live.user("ana").forget(next(fact for fact in live.user("ana").facts() if fact.value == "Porto").id)
        with Memory(tmp_path / "older.db", embedder=None) as older:
            assert "Porto" in str(older.user("ana").export())
            older.admin.erasures.replay(live.admin.erasures.export())
            assert "Porto" not in str(older.user("ana").export())
            assert older.doctor().ok
