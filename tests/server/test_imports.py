"""A file is known by what it holds, looked at before anything is stored, taken in in the background, and never twice."""

from __future__ import annotations

import io
import json
import zipfile

import pytest

from holdfast import Memory
from holdfast.errors import BadInput, Conflict, NotFound
from holdfast.importers.foreign import Mapped, detect, survey_file
from holdfast.server.jobs import Tasks, WorkStopped
from holdfast.server.pages.import_export import MAX_KEPT, Imports, ImportTarget

LINES = [
    {"role": "user", "content": "I live in Porto.", "name": "Ana", "at": "2025-03-01T10:00:00Z"},
    {"role": "assistant", "content": "Noted.", "name": "Bo"},
    {"role": "tool", "content": "sunny", "tool_call_id": "t1"},
    {"role": "user", "content": "I'm vegetarian.", "name": "Ana", "at": "2025-03-02T10:00:00Z"},
]


def as_lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def node(key, parent, role, text, at=1_700_000_000, **metadata):
    message = {
        "author": {"role": role},
        "content": {"content_type": "text", "parts": [text]},
        "create_time": at,
        "metadata": metadata,
    }
    return {"id": key, "parent": parent, "message": message}


CHATGPT = [
    {
        "title": "Trip",
        "conversation_id": "abcdef01-2345-4678-8abc-def012345678",
        "current_node": "d",
        "mapping": {
            "root": {"id": "root", "parent": None, "message": None},
            "a": node("a", "root", "system", "Be kind.", is_visually_hidden_from_conversation=True),
            "b": node("b", "a", "user", "I live in Porto."),
            "c": node("c", "b", "assistant", "An answer that was made again."),
            "d": node("d", "b", "assistant", "Noted."),
        },
    }
]
CLAUDE = [
    {
        "uuid": "11112222-3333",
        "name": "Trip",
        "chat_messages": [
            {"sender": "human", "text": "I live in Porto.", "created_at": "2025-01-01T10:00:00Z"},
            {"sender": "assistant", "content": [{"type": "text", "text": "Noted."}], "text": ""},
        ],
    }
]


def zipped(**files):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in files.items():
            archive.writestr(name.replace("__", "/").replace("_json", ".json"), json.dumps(value))
    return stream.getvalue()


@pytest.mark.parametrize(
    ("data", "name", "messages"),
    [
        (as_lines(LINES), "lines", 3),
        (b"\xef\xbb\xbf" + as_lines(LINES), "lines", 3),
        (json.dumps(LINES).encode(), "messages", 3),
        (json.dumps({"messages": LINES}, indent=1).encode(), "messages", 3),
        (json.dumps([{"id": "x", "messages": LINES}, {"messages": LINES}]).encode(), "messages", 6),
        (json.dumps(CHATGPT).encode(), "chatgpt", 2),
        (zipped(conversations_json=CHATGPT, user_json={}), "chatgpt", 2),
        (
            zipped(**{"export__conversations-000_json": CHATGPT, "export__conversations-001_json": CHATGPT}),
            "chatgpt",
            4,
        ),
        (json.dumps(CLAUDE).encode(), "claude", 2),
        (zipped(conversations_json=CLAUDE), "claude", 2),
        (b"not json\n" + as_lines(LINES), "lines", 3),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_file_is_known_by_what_it_holds(tmp_path, data, name, messages):
    path = tmp_path / "upload"
    path.write_bytes(data)

    assert detect(path) == name
    assert survey_file(path, "c", Mapped(), tmp_path / "lines").survey.messages == messages


@pytest.mark.parametrize(
    "data", [b"", b"\x00\x01\x02", b'{"a": 1}', b"[1, 2]", zipped(other_json=[]), b'{"messages": 3}', b"[]"]
)
def test_what_is_none_of_them_is_refused(tmp_path, data):
    path = tmp_path / "upload"
    path.write_bytes(data)

    with pytest.raises(BadInput):
        survey_file(path, "c", Mapped(), tmp_path / "lines")


def test_only_the_branch_that_was_read_last_is_taken_and_hidden_words_are_a_kind(tmp_path):
    path, out = tmp_path / "upload", tmp_path / "lines"
    path.write_bytes(json.dumps(CHATGPT).encode())
    found = survey_file(path, "c", Mapped(), out)

    assert [json.loads(line)["content"] for line in out.read_text().splitlines()] == ["I live in Porto.", "Noted."]
    assert found.kinds == {"hidden": 1}
    assert list(found.survey.conversations) == ["Trip (abcdef01)"]
    everything = survey_file(path, "c", Mapped(skip=frozenset()), out)
    assert everything.survey.messages == 3


def test_names_are_told_and_mapped(tmp_path):
    path, out = tmp_path / "upload", tmp_path / "lines"
    path.write_bytes(as_lines(LINES))
    found = survey_file(path, "c", Mapped({"Ana": "assistant", "Bo": "skip"}), out)

    assert found.names == {("Ana", "user"): 2, ("Bo", "assistant"): 1}
    assert [json.loads(line)["role"] for line in out.read_text().splitlines()] == ["assistant", "assistant"]
    assert (found.first_at, found.last_at) == ("2025-03-01T10:00:00Z", "2025-03-02T10:00:00Z")


def test_lines_with_damage_are_named_and_not_counted_among_roles_and_times(tmp_path):
    path = tmp_path / "chat.jsonl"
    rows = [*LINES[:2], {"role": "alien", "content": "x"}, {"role": "user", "content": None}]
    rows += [{"role": "user", "content": "x", "at": at} for at in ("yesterday", "0000-00-00T00:00:00Z")]
    path.write_bytes(as_lines(rows) + b'{"role": "user", "content": "a\0b"}\n')
    found = survey_file(path, "c", Mapped(), tmp_path / "lines")

    assert {bad.number: bad.problem for bad in found.survey.bad} == {
        3: 'its role is "alien"',
        4: "its content is null",
        5: 'its time is "yesterday", which is not ISO 8601',
        6: 'its time is "0000-00-00T00:00:00Z", which is not ISO 8601',
        7: "it holds a zero byte",
    }
    assert set(found.roles) == {"user", "assistant"}
    assert (found.first_at, found.last_at) == ("2025-03-01T10:00:00Z", "2025-03-01T10:00:00Z")


def test_the_encoding_is_named(tmp_path):
    (tmp_path / "upload").write_bytes(as_lines(LINES).decode().encode("utf-16"))

    with pytest.raises(BadInput, match="the file is UTF-16"):
        survey_file(tmp_path / "upload", "c", Mapped(), tmp_path / "lines")


def test_a_chat_that_is_newest_first_is_reported_with_its_line(tmp_path):
    messages = [{"role": "user", "content": "x", "at": f"2025-03-0{day}T10:00:00Z"} for day in (3, 2, 2, 1)]
    (tmp_path / "chat.json").write_text(json.dumps(messages, indent=1))
    found = survey_file(tmp_path / "chat.json", "c", Mapped(), tmp_path / "lines")

    assert (found.survey.backwards, found.backwards_from) == (2, ":7")


@pytest.fixture
def kept(memory):
    tasks = Tasks(memory.admin.operations)
    imports = Imports(tasks)
    yield imports
    tasks.close()
    imports.close()


def finished(one):
    assert one.task is not None
    assert one.task.over.wait(120)
    return one.state


def taken(kept, memory, data=None, **target):
    one = kept.take(io.BytesIO(as_lines(LINES) if data is None else data), "chat.jsonl", "default", "default")
    kept.look(one, ImportTarget(**{"user": "ana", "conversation": "chat", **target}))
    kept.start(one, memory)
    return one


def test_an_import_stores_learns_and_stores_nothing_twice(kept, memory):
    one = taken(kept, memory)
    assert finished(one) == "done"
    assert (one.outcome.stored, one.outcome.known) == (3, 0)
    assert {fact.text for fact in memory.user("ana").facts()} == {"Lives in Porto.", "Is vegetarian."}

    kept.start(one, memory)
    assert finished(one) == "done"
    assert (one.outcome.stored, one.outcome.known) == (0, 3)
    assert len(memory.conversation("chat", user="ana").load()) == 3


def test_nothing_is_stored_before_it_is_started(kept, memory):
    kept.take(io.BytesIO(as_lines(LINES)), "chat.jsonl", "default", "default")

    assert memory.admin.users() == []


def test_a_stopped_import_goes_on_where_it_was(kept, memory):
    rows = [{"role": "user", "content": f"word {n}"} for n in range(1200)]
    one = kept.take(io.BytesIO(as_lines(rows)), "chat.jsonl", "default", "default")
    kept.look(one, ImportTarget("ana", conversation="chat"))

    def interrupted(done, total):
        if done >= 500:
            raise WorkStopped("stopped")

    with pytest.raises(WorkStopped):
        kept._append(one, memory, interrupted)
    assert len(memory.conversation("chat", user="ana").load()) == 500
    kept.start(one, memory)
    assert finished(one) == "done"
    assert (one.outcome.stored, one.outcome.known) == (700, 500)
    assert [m.content for m in memory.conversation("chat", user="ana").load()] == [row["content"] for row in rows]


def test_the_export_of_a_user_is_taken_back_whole(kept, memory):
    memory.conversation("c", user="ana").record("I live in Porto.", "Noted.")
    data = json.dumps(memory.user("ana").export()).encode()
    one = taken(kept, memory, data, user="eve")

    assert finished(one) == "done"
    assert [fact.value for fact in memory.user("eve").facts()] == ["Porto"]
    again = taken(kept, memory, data, user="eve")
    assert finished(again) == "failed"
    assert "has data already" in again.task.reason


def test_what_cannot_be_taken_in_is_told(kept, memory):
    bad = as_lines(LINES) + b"{broken\n"
    with pytest.raises(BadInput, match="some lines"):
        taken(kept, memory, bad)
    assert finished(taken(kept, memory, bad, skip_bad=True)) == "done"
    with pytest.raises(BadInput, match="needs a user"):
        taken(kept, memory, user="")
    memory.user("pia").opt_out()
    assert finished(taken(kept, memory, user="pia")) == "failed"
    assert memory.user("pia").conversations() == []


@pytest.mark.parametrize("data", [b'[{"mapping": {"a": 3}, "current_node": "a"}]', b'[{"chat_messages": [7]}]'])
def test_a_misshapen_file_is_an_error_without_its_words(kept, data):
    one = kept.take(io.BytesIO(data), "x.json", "default", "default")

    assert one.state == "refused"
    assert one.error.startswith("the file has an unexpected structure")


def test_uploads_are_kept_apart_bounded_and_deleted(kept, memory):
    one = kept.take(io.BytesIO(b"{}"), "../../etc/passwd", "acme", "default")
    assert one.name == "passwd"
    assert one.folder.parent.stat().st_mode & 0o077 == 0
    with pytest.raises(NotFound):
        kept.get(one.id, "other")
    for _ in range(MAX_KEPT - 1):
        kept.take(io.BytesIO(b"{}"), "x", "acme", "default")
    with pytest.raises(Conflict):
        kept.take(io.BytesIO(b"{}"), "x", "acme", "default")
    kept.discard(one)
    assert not one.folder.exists()
    root = one.folder.parent
    kept.close()
    assert not root.exists()


def test_an_archive_that_unpacks_too_large_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("holdfast.importers.foreign.MAX_UNPACKED_BYTES", 1_000)
    path = tmp_path / "upload"
    path.write_bytes(zipped(conversations_json=[{"messages": [], "x": "a" * 5_000}]))

    with pytest.raises(BadInput, match="unpacks to more"):
        detect(path)


def test_memories_of_other_users_are_not_touched(kept, memory: Memory):
    memory.conversation("chat", user="bo").record("I live in Faro.", "Noted.")
    finished(taken(kept, memory))

    assert [fact.value for fact in memory.user("bo").facts()] == ["Faro"]


def test_memories_of_another_program_become_facts_of_the_chosen_user(kept, memory: Memory):
    rows = [{"id": "1", "memory": "Is vegetarian", "user_id": "x", "created_at": "2025-01-01T10:00:00Z"}]
    one = taken(kept, memory, json.dumps({"results": rows}).encode())

    assert finished(one) == "done"
    assert [fact.text for fact in memory.user("ana").facts()] == ["Is vegetarian"]


def test_a_file_of_several_users_or_of_unknown_speakers_is_not_imported(kept, memory: Memory):
    rows = [{"id": who, "memory": "Is vegetarian", "user_id": who} for who in ("x", "y")]
    with pytest.raises(BadInput, match="of 2 users"):
        taken(kept, memory, json.dumps({"results": rows}).encode())

    said = [{"type": "message", "date_unixtime": "1735725600", "from": "Ana", "from_id": "user1", "text": "Hi."}]
    telegram = json.dumps({"name": "Bo", "type": "personal_chat", "id": 1, "messages": said}).encode()
    with pytest.raises(BadInput, match="which speaker is the user"):
        taken(kept, memory, telegram)
    assert finished(taken(kept, memory, telegram, mapped=Mapped({"Ana": "user"}))) == "done"
    assert memory.user("ana").conversations() == ["Bo (1)"]
