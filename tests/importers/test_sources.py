"""Files of other programs, in their documented shapes: what is read of them, what is left out and why, by line."""

from __future__ import annotations

import base64
import json
import pickle
import shutil
import sqlite3
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import BadInput, TooLarge
from holdfast.importers.decode import fields_of, unpack, unpickle
from holdfast.importers.foreign import Mapped, NotOneDocument, Source, SurveyedFile, detect, survey_file
from holdfast.importers.items import title_of

GOLDEN = Path(__file__).parent / "golden"
ANA = Mapped({"Ana": "user", "Ana Silva": "user"})
PORTO = ("user", "I live in Porto.")
NOTED = ("assistant", "Noted.")


def read(path: Path, tmp_path: Path, mapped: Mapped = ANA) -> tuple[SurveyedFile, list[tuple[str, str]]]:
    """Read a file; return its survey and its messages."""
    found = survey_file(path, "chat", mapped, tmp_path / "lines.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "lines.jsonl").read_text("utf-8").splitlines()]
    return found, [(row["role"], row["content"]) for row in rows]


CHATS = [
    ("openwebui.json", "openwebui", [PORTO, NOTED], [(":13", "on another branch: it was answered or edited again")]),
    ("librechat.json", "librechat", [PORTO, NOTED], [(":19", "on another branch: it was answered or edited again")]),
    (
        "discord.json",
        "discord",
        [PORTO, NOTED, ("assistant", "I live in Faro.")],
        [(":7", "a GuildMemberJoin notice"), (":11", "a message without text")],
    ),
    (
        "telegram.json",
        "telegram",
        [PORTO, NOTED, ("assistant", "I live in Lisbon.")],
        [(":6", "a notice (phone_call)"), (":10", "a message without text (sticker)")],
    ),
    (
        "whatsapp-ios.txt",
        "whatsapp",
        [("user", "I live in Porto.\nWith a river view."), NOTED, ("user", "At 10:20: bye")],
        [(":1", "a notice of WhatsApp"), (":5", "a message without text (media, or deleted)")],
    ),
    (
        "whatsapp-android.txt",
        "whatsapp",
        [PORTO, NOTED],
        [(":1", "a notice of WhatsApp"), (":4", "a message without text (media, or deleted)")],
    ),
    (
        "slack",
        "slack",
        [("user", "I live in Porto & love it, @Bo. See this"), NOTED, ("assistant", "Deployed.")],
        [(": general/2026-03-01.json:2", "a notice (channel_join)")],
    ),
    ("zep-thread.json", "messages", [PORTO, NOTED], []),
    ("threads.json", "messages", [PORTO, NOTED], []),
]


@pytest.mark.parametrize(("name", "format", "messages", "left_out"), CHATS, ids=[case[0] for case in CHATS])
def test_the_talk_of_a_chat_program_is_read_and_the_rest_is_named_by_line(
    tmp_path: Path, name: str, format: str, messages: list[Any], left_out: list[Any]
) -> None:
    found, said = read(GOLDEN / name, tmp_path)

    assert found.format == format
    assert said == messages
    assert [(found.where(one.place), one.why) for one in found.left_out] == left_out
    assert not found.survey.bad
    assert found.survey.undated == 0


MEMORIES = [
    ("mem0.json", "mem0", ["Is vegetarian", "Works as a nurse"], ["a memory that has expired"]),
    ("zep.json", "zep", ["Ana lives in Porto"], ["a fact that no longer holds"]),
    ("litellm.json", "litellm", ["Is vegetarian", "User:profile: Dark mode", "Has a dog.", "Lives in Oslo."], []),
    (
        "claude-memories.json",
        "claude-memories",
        ["Works as a nurse.", "Is vegetarian", "Preferences: Dark mode", "Uses Python 3.13 in this project."],
        [],
    ),
    (
        "claude-code",
        "markdown",
        ["Always use pnpm instead of npm", "Works as a nurse. Lives near the sea.", "Preferences: dark mode"],
        ["a link to another file", "a block of code"],
    ),
    ("okf", "okf", ["Is vegetarian."], []),
    ("omi.json", "omi", ["Is vegetarian"], ["a memory that is no longer valid"]),
    ("lines.omi.jsonl", "omi", ["Is vegetarian"], []),
    ("pam.json", "pam", ["Is vegetarian"], ["a memory that is superseded"]),
    ("memories.json", "memories", ["Runs PostgreSQL 15", "Prefers concise responses"], ["a memory without text"]),
]


@pytest.mark.parametrize(("name", "format", "texts", "why"), MEMORIES, ids=[case[0] for case in MEMORIES])
def test_memories_of_other_programs_are_read_as_sentences(
    tmp_path: Path, name: str, format: str, texts: list[str], why: list[str]
) -> None:
    found, _ = read(GOLDEN / name, tmp_path)

    assert found.format == format
    assert [one.text for one in found.memories] == texts
    assert [one.why for one in found.left_out] == why


def test_memories_with_content_category_and_confidence_keep_all_three(tmp_path: Path) -> None:
    found, _ = read(GOLDEN / "memories.json", tmp_path)

    assert [(one.label, one.confidence, one.of) for one in found.memories] == [
        ("technical", 0.95, "ana"),
        ("behavioral", 0.9, ""),
    ]
    assert found.memories[0].at == datetime(2026, 2, 26, 10, tzinfo=UTC)


def test_memories_may_come_one_a_line_and_a_wrong_one_costs_itself_alone(tmp_path: Path) -> None:
    rows = [
        '{"content": "Likes tea", "category": "preference"}',
        '{"content": "x", "confidence": 700}',
        '{"role": "user"}',
    ]
    (tmp_path / "memories.jsonl").write_text("\n".join([*rows, '{"content": "Likes jazz"}']))
    found, _ = read(tmp_path / "memories.jsonl", tmp_path)

    assert [one.text for one in found.memories] == ["Likes tea", "Likes jazz"]
    assert [bad.number for bad in found.survey.bad] == [2, 3]


@pytest.mark.parametrize(
    ("given", "sure"), [("null", 1.0), ('"0.9"', 0.9), ("90", 0.9), ('"90"', 0.9), ("1", 1.0), ("0", 0.0), ("100", 1.0)]
)
def test_a_confidence_may_be_missing_text_or_per_cent(tmp_path: Path, given: str, sure: float) -> None:
    (tmp_path / "memories.json").write_text(f'[{{"content": "Likes tea", "confidence": {given}}}]')
    found, _ = read(tmp_path / "memories.json", tmp_path)

    assert [one.confidence for one in found.memories] == [sure]


@pytest.mark.parametrize("given", ['"high"', "true", "-1", "101", "NaN", "[1]"])
def test_what_is_no_confidence_is_named(tmp_path: Path, given: str) -> None:
    rows = f'[{{"content": "Likes tea", "confidence": {given}}}, {{"content": "Likes jazz", "confidence": 1}}]'
    (tmp_path / "memories.json").write_text(rows)
    found, _ = read(tmp_path / "memories.json", tmp_path)

    assert [one.text for one in found.memories] == ["Likes jazz"]
    assert "confidence" in found.survey.bad[0].problem


@pytest.mark.parametrize("mark", ["role", "author", "sender", "speaker", "type", "name", "from"])
def test_a_message_with_a_confidence_is_no_memory(tmp_path: Path, mark: str) -> None:
    row = json.dumps({mark: "assistant", "content": "I live in Rome.", "confidence": 0.9})
    for name, text in (("chat.json", f"[{row}]"), ("chat.jsonl", row)):
        (tmp_path / name).write_text(text)
        try:
            found = detect(tmp_path / name)
        except BadInput:
            continue
        assert found != "memories", name


@pytest.mark.parametrize("name", ["claude-code", "okf", "slack"])
def test_a_folder_and_its_archive_hold_the_same(tmp_path: Path, name: str) -> None:
    archive = shutil.make_archive(str(tmp_path / "packed"), "zip", GOLDEN / name)
    folder, packed = read(GOLDEN / name, tmp_path), read(Path(archive), tmp_path)

    assert packed[1] == folder[1]
    assert [one.text for one in packed[0].memories] == [one.text for one in folder[0].memories]


def test_speakers_of_whom_nobody_said_who_is_the_user_are_not_taken_for_the_user(tmp_path: Path) -> None:
    found, said = read(GOLDEN / "discord.json", tmp_path, Mapped())

    assert found.unassigned
    assert {role for role, _ in said} == {"assistant"}


@pytest.mark.parametrize(("first", "day"), [(True, 3), (False, 5)])
def test_dates_that_can_be_read_in_two_ways_are_asked_for(tmp_path: Path, first: bool, day: int) -> None:
    path = tmp_path / "_chat.txt"
    path.write_text("03/05/2025, 10:14 - Ana: one\n", "utf-8")

    with pytest.raises(BadInput, match="two ways"):
        read(path, tmp_path)
    found, _ = read(path, tmp_path, Mapped(ANA.names, day_first=first))
    assert found.first_at.startswith(f"2025-0{8 - day}-0{day}")


# Databases


def database(path: Path, script: str, *rows: tuple[str, tuple[Any, ...]]) -> Path:
    with sqlite3.connect(path) as connection:
        connection.executescript(script)
        for query, values in rows:
            connection.execute(query, values)
    connection.close()
    return path


def test_sessions_of_the_openai_agents_sdk_are_read(tmp_path: Path) -> None:
    rows = [
        {"role": "user", "content": "I live in Porto."},
        {"type": "function_call", "name": "f", "arguments": "{}", "call_id": "c"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Noted."}]},
    ]
    path = database(
        tmp_path / "a.db",
        "CREATE TABLE agent_sessions (session_id TEXT PRIMARY KEY, created_at TIMESTAMP, updated_at TIMESTAMP);"
        "CREATE TABLE agent_messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL,"
        " message_data TEXT NOT NULL, created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP)",
        *[
            ("INSERT INTO agent_messages (session_id, message_data, created_at) VALUES ('s1', ?, ?)", (text, at))
            for text, at in [*((json.dumps(row), "2026-03-01 10:00:00") for row in rows), ("{broken", None)]
        ],
    )
    found, said = read(path, tmp_path)

    assert (found.format, said) == ("openai-agents", [PORTO, NOTED])
    assert [one.why for one in found.left_out] == ["a function_call item"]
    assert [bad.problem for bad in found.survey.bad] == [
        "agent_messages row 4: it does not have the shape of a row (JSONDecodeError)"
    ]
    assert found.first_at == "2026-03-01T10:00:00+00:00"


def test_langchains_message_table_is_read(tmp_path: Path) -> None:
    rows = [
        {"type": "human", "data": {"content": "I live in Porto.", "type": "human"}},
        {"type": "ai", "data": {"content": "", "tool_calls": [{"name": "f"}], "type": "ai"}},
        {"type": "ai", "data": {"content": [{"type": "text", "text": "Noted."}], "type": "ai"}},
    ]
    path = database(
        tmp_path / "l.db",
        "CREATE TABLE message_store (id INTEGER PRIMARY KEY, session_id TEXT, message TEXT)",
        *[("INSERT INTO message_store (session_id, message) VALUES ('s1', ?)", (json.dumps(row),)) for row in rows],
    )
    found, said = read(path, tmp_path)

    assert (found.format, said) == ("langchain", [PORTO, NOTED])
    assert [one.why for one in found.left_out] == ["a call of a tool"]
    assert found.survey.undated == 2


def test_a_langgraph_store_is_read_for_the_user_in_its_namespace(tmp_path: Path) -> None:
    path = database(
        tmp_path / "s.db",
        "CREATE TABLE store (prefix text NOT NULL, key text NOT NULL, value text NOT NULL, created_at TIMESTAMP,"
        " updated_at TIMESTAMP, expires_at TIMESTAMP, ttl_minutes REAL, PRIMARY KEY (prefix, key))",
        *[
            ("INSERT INTO store VALUES (?, ?, ?, '2026-03-01 10:00:00', NULL, NULL, NULL)", row)
            for row in [
                ("memories.ana", "k1", json.dumps({"kind": "Memory", "content": {"content": "Is vegetarian"}})),
                ("memories.bo", "k2", json.dumps({"text": "Works as a nurse"})),
                ("memories.bo", "k3", json.dumps({"count": 3})),
            ]
        ],
    )
    found, _ = read(path, tmp_path)

    assert found.format == "langgraph-store"
    assert [(one.of, one.text) for one in found.memories] == [("ana", "Is vegetarian"), ("bo", "Works as a nurse")]
    assert [one.why for one in found.left_out] == ["an item without text"]
    assert [one.text for one in read(path, tmp_path, Mapped(of="bo"))[0].memories] == ["Works as a nurse"]


def packed(value: Any) -> bytes:
    """MessagePack as LangGraph writes it; a message is an extension of type 5."""
    if isinstance(value, bytes):
        return (
            b"\xc7" + bytes([len(value), 5]) + value
            if len(value) < 256
            else b"\xc8" + len(value).to_bytes(2) + b"\5" + value
        )
    if isinstance(value, str):
        raw = value.encode()
        return (bytes([0xA0 | len(raw)]) if len(raw) < 32 else b"\xd9" + bytes([len(raw)])) + raw
    if isinstance(value, list):
        return bytes([0x90 | len(value)]) + b"".join(packed(one) for one in value)
    if isinstance(value, dict):
        return bytes([0x80 | len(value)]) + b"".join(packed(key) + packed(one) for key, one in value.items())
    return {None: b"\xc0", True: b"\xc3", False: b"\xc2"}.get(value) or bytes([value])


def message(kind: str, text: str, key: str) -> bytes:
    module, name = f"langchain_core.messages.{kind}", kind.capitalize() + "Message"
    return packed([module, name, {"content": text, "type": kind, "id": key}, "model_validate_json"])


def test_langgraph_checkpoints_are_read_with_the_time_at_which_a_message_came(tmp_path: Path) -> None:
    first = {
        "v": 4,
        "ts": "2026-03-01T10:00:00+00:00",
        "channel_values": {"messages": [message("human", PORTO[1], "1")]},
    }
    both = [message("human", PORTO[1], "1"), message("ai", NOTED[1], "2")]
    second = {"v": 4, "ts": "2026-03-02T10:00:00+00:00", "channel_values": {"messages": both}}
    insert = "INSERT INTO checkpoints VALUES (?, '', ?, NULL, ?, ?, ?)"
    path = database(
        tmp_path / "c.db",
        "CREATE TABLE checkpoints (thread_id TEXT, checkpoint_ns TEXT DEFAULT '', checkpoint_id TEXT,"
        " parent_checkpoint_id TEXT, type TEXT, checkpoint BLOB, metadata BLOB,"
        " PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id))",
        (insert, ("t1", "1f0-1", "msgpack", packed(first), b"{}")),
        (insert, ("t1", "1f0-2", "msgpack", packed(second), json.dumps({"user_id": "ana"}))),
        (insert, ("t2", "1f0-1", "msgpack", packed(second)[:-3], b"{}")),
        (insert, ("t3", "1f0-1", "msgpack+aes", b"x", b"{}")),
    )
    found, said = read(path, tmp_path)

    assert (found.format, said, found.users) == ("langgraph-checkpoints", [PORTO, NOTED], {"ana": 2})
    assert (found.first_at, found.last_at) == ("2026-03-01T10:00:00+00:00", "2026-03-02T10:00:00+00:00")
    assert [bad.problem.partition(": ")[2] for bad in found.survey.bad] == [
        "the checkpoint cannot be read: it ends too early",
        "the checkpoint is stored as msgpack+aes, which is encrypted or may run code",
    ]


MEM0 = """
CREATE TABLE history (id TEXT PRIMARY KEY, memory_id TEXT, old_memory TEXT, new_memory TEXT, event TEXT,
    created_at DATETIME, updated_at DATETIME, is_deleted INTEGER, actor_id TEXT, role TEXT);
CREATE TABLE messages (id TEXT PRIMARY KEY, session_scope TEXT, role TEXT, content TEXT, name TEXT, created_at DATETIME);
INSERT INTO messages VALUES ('1', 'user_id=ana', 'user', 'I live in Porto.', NULL, '2026-03-01T10:00:00+00:00');
INSERT INTO history VALUES ('1', 'm1', NULL, 'Is vegan', 'ADD', '2026-03-01T10:00:00+00:00', NULL, 0, NULL, NULL);
INSERT INTO history VALUES ('2', 'm1', 'Is vegan', 'Is vegetarian', 'UPDATE', '2026-03-01T10:00:00+00:00',
    '2026-03-02T10:00:00+00:00', 0, NULL, NULL);
INSERT INTO history VALUES ('3', 'm2', 'Likes tea', NULL, 'DELETE', '2026-03-03T10:00:00+00:00', NULL, 1, NULL, NULL);
"""


def test_mem0s_history_gives_the_newest_text_of_each_memory(tmp_path: Path) -> None:
    found, said = read(database(tmp_path / "history.db", MEM0), tmp_path)

    assert (found.format, said) == ("mem0-history", [PORTO])
    assert [(one.of, one.text) for one in found.memories] == [("ana", "Is vegetarian")]
    assert [one.why for one in found.left_out] == ["a memory that was deleted"]


def test_mem0s_history_gives_memories_of_unknown_owners_only_to_whoever_asks_for_them(tmp_path: Path) -> None:
    older = "UPDATE messages SET created_at = '2026-03-02T10:00:01+00:00';"
    for number, script in enumerate((MEM0 + "DELETE FROM messages;", MEM0 + older)):
        path = database(tmp_path / f"history{number}.db", script)
        found, _ = read(path, tmp_path)
        asked, _ = read(path, tmp_path, Mapped(of="(unknown)"))

        assert (found.memories, "(unknown)" in found.users) == ([], False)
        assert "it does not say whose memory it is" in found.left_out[0].why
        assert [one.text for one in asked.memories] == ["Is vegetarian"]


def test_a_change_without_text_in_mem0s_history_costs_only_itself(tmp_path: Path) -> None:
    empty = (
        "INSERT INTO history VALUES ('4', 'm3', NULL, NULL, 'ADD', '2026-03-04T10:00:00+00:00', NULL, 0, NULL, NULL);"
    )
    found, _ = read(database(tmp_path / "history.db", MEM0 + empty), tmp_path)

    assert [one.text for one in found.memories] == ["Is vegetarian"]
    assert "history row 4" in found.survey.bad[0].problem


def test_mem0s_history_of_several_users_gives_nobody_the_memories_of_another(tmp_path: Path) -> None:
    other = "INSERT INTO messages VALUES ('2', 'user_id=bo', 'user', 'Hi.', NULL, '2026-03-01T10:00:00+00:00');"
    found, _ = read(database(tmp_path / "history.db", MEM0 + other), tmp_path)

    assert found.memories == []
    assert "it does not say whose memory it is" in found.left_out[0].why


class Point:
    """Pickled under the name of Qdrant's class, as its local mode does."""

    def __init__(self, payload: dict[str, Any]) -> None:
        self.__dict__ = {"id": "p1", "vector": [0.1, 0.2], "payload": payload}


def qdrant(folder: Path, *points: bytes) -> Path:
    (folder / "collection" / "mem0").mkdir(parents=True)
    (folder / "meta.json").write_text("{}")
    rows = [("INSERT INTO points VALUES (?, ?)", (base64.b64encode(raw).decode(), raw)) for raw in points]
    database(
        folder / "collection" / "mem0" / "storage.sqlite",
        "CREATE TABLE points (id TEXT PRIMARY KEY, point BLOB)",
        *rows,
    )
    return folder


def test_mem0s_memories_in_a_local_qdrant_are_read_by_user(tmp_path: Path) -> None:
    payload = {"data": "User is vegetarian", "user_id": "ana", "created_at": "2026-03-01T10:00:00+00:00", "hash": "h"}
    found, _ = read(qdrant(tmp_path / "q", pickle.dumps(Point(payload)), b"broken"), tmp_path)

    assert found.format == "mem0-qdrant"
    assert [(one.of, one.text, one.id) for one in found.memories] == [("ana", "Is vegetarian", "p1")]
    assert "points row 2" in found.survey.bad[0].problem


def test_mem0s_texts_beside_a_faiss_index_are_read(tmp_path: Path) -> None:
    docstore = {"a1": {"data": "Is vegetarian", "user_id": "ana", "created_at": "2026-03-01T10:00:00+00:00"}}
    (tmp_path / "mem0.json").write_text(json.dumps({"docstore": docstore, "index_to_id": {"0": "a1"}}))
    (tmp_path / "mem0.pkl").write_bytes(pickle.dumps((docstore, {0: "a1"})))

    for name in ("mem0.json", "mem0.pkl"):
        assert [one.text for one in read(tmp_path / name, tmp_path)[0].memories] == ["Is vegetarian"]


class Runs:
    """A pickle that would run a command."""

    def __reduce__(self) -> Any:
        return exec, ("raise SystemExit('it ran')",)


def test_a_pickle_runs_nothing() -> None:
    assert fields_of(unpickle(pickle.dumps(Runs()))) == {}
    assert fields_of(unpickle(pickle.dumps(Point({"data": "x"}))))["payload"] == {"data": "x"}


@pytest.mark.parametrize("code", [b"r\xff\xff\xff\x7f", b"p2000000000\n", b"\x96" + b"\xff" * 7 + b"\x7f"])
def test_a_pickle_cannot_claim_memory(code: bytes) -> None:
    with pytest.raises(ValueError, match=r"no pickle that can be read|expected"):
        unpickle(b"\x80\x02K\x01" + code + b".")


def test_damaged_msgpack_is_an_error_and_no_loop() -> None:
    whole = packed({"messages": [message("human", "x" * 40, "1")]})
    for end in range(len(whole)):
        with pytest.raises(ValueError, match="it "):
            unpack(whole[:end])


def test_open_webuis_database_is_read_by_user(tmp_path: Path) -> None:
    (chat,) = json.loads((GOLDEN / "openwebui.json").read_text())
    path = database(
        tmp_path / "webui.db",
        "CREATE TABLE chat (id TEXT, user_id TEXT, title TEXT, chat JSON, created_at INTEGER, updated_at INTEGER);"
        "CREATE TABLE memory (id TEXT, user_id TEXT, content TEXT, updated_at INTEGER, created_at INTEGER)",
        ("INSERT INTO chat VALUES (?, ?, ?, ?, 1, 1)", (chat["id"], "ana", "Trip", json.dumps(chat["chat"]))),
        ("INSERT INTO memory VALUES ('1', 'bo', 'Is vegetarian', 1764000000, 1764000000)", ()),
    )
    found, said = read(path, tmp_path)

    assert (found.format, said, set(found.users)) == ("openwebui-db", [PORTO, NOTED], {"ana", "bo"})


# Damage


def test_a_damaged_document_is_named_by_its_line(tmp_path: Path) -> None:
    text = (GOLDEN / "discord.json").read_text()
    (tmp_path / "x.json").write_text(text[: text.index('"id": "103"')])

    with pytest.raises(NotOneDocument, match=r"x\.json, line 10: it is not JSON"):
        detect(tmp_path / "x.json")


@pytest.mark.parametrize("name", sorted(path.name for path in GOLDEN.glob("*.json")))
def test_one_damaged_item_costs_only_itself(tmp_path: Path, name: str) -> None:
    """The first element of the list that holds the content is replaced by a number."""
    document = json.loads((GOLDEN / name).read_text())
    rows = document
    if isinstance(rows, dict):
        rows = next(rows[key] for key in ("messages", "results", "edges", "memories", "data") if key in rows)
    rows.insert(0 if name != "pam.json" else 1, 7)
    if name in (
        "mem0.json",
        "zep.json",
        "litellm.json",
        "omi.json",
        "pam.json",
        "claude-memories.json",
        "openwebui.json",
    ):
        rows.append(rows.pop(rows.index(7)))
    (tmp_path / name).write_text(json.dumps(document, indent=1))
    found, said = read(tmp_path / name, tmp_path)

    assert said or found.memories
    assert len(found.survey.bad) == 1
    assert found.survey.bad[0].number > 1


def test_an_archive_of_nothing_known_says_so(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("photo.jpg", b"x")

    with pytest.raises(BadInput, match="nothing here is known"):
        detect(tmp_path / "x.zip")


def test_the_reading_of_a_long_file_says_how_far_it_is(tmp_path: Path) -> None:
    rows = [{"role": "user", "content": f"message {number}"} for number in range(1_200)]
    (tmp_path / "x.json").write_text(json.dumps(rows))
    seen: list[int] = []
    survey_file(tmp_path / "x.json", "chat", Mapped(), tmp_path / "lines.jsonl", seen.append)

    assert seen == [500, 1_000]


def test_strangers_in_one_kind_of_file_are_not_assigned_by_the_user_of_another(tmp_path: Path) -> None:
    folder = tmp_path / "mixed"
    folder.mkdir()
    for name in ("openwebui.json", "whatsapp-ios.txt"):
        shutil.copy(GOLDEN / name, folder / name)

    assert read(folder, tmp_path, Mapped())[0].unassigned
    assert not read(folder, tmp_path)[0].unassigned


@pytest.mark.parametrize("name", ["chat.log", "chat", "chat.md.bak"])
def test_a_file_under_another_name_is_read_as_what_it_is(tmp_path: Path, name: str) -> None:
    shutil.copy(GOLDEN / "whatsapp-android.txt", tmp_path / name)
    found, said = read(tmp_path / name, tmp_path)

    assert (found.format, said) == ("whatsapp", [PORTO, NOTED])


DAMAGED = [
    ("memory.md", "# Caf\u00e9\n".encode("latin-1")),
    ("x.omi.jsonl", b'{"format": "open-memory-interchange"}\n{"content": "Caf\xe9"}\n'),
    ("x.pkl", b"\0no pickle"),
    ("x.json", b'{"messages": [{"role": "user", "content": "x", "at": 1e999}]}'),
]


@pytest.mark.parametrize(("name", "raw"), DAMAGED, ids=[case[0] for case in DAMAGED])
def test_a_file_that_cannot_be_read_is_an_error_in_words(tmp_path: Path, name: str, raw: bytes) -> None:
    (tmp_path / name).write_bytes(raw)

    with pytest.raises(BadInput, match="unexpected structure"):
        read(tmp_path / name, tmp_path)


def test_a_slack_user_without_an_id_costs_no_message(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "slack", tmp_path / "slack")
    people = json.loads((tmp_path / "slack" / "users.json").read_text())
    (tmp_path / "slack" / "users.json").write_text(json.dumps([{"name": "x"}, 7, *people]))
    (tmp_path / "slack" / "general" / "2026-03-09.json").write_text("null")
    found, said = read(tmp_path / "slack", tmp_path)

    assert NOTED in said
    assert len(found.survey.bad) == 1


def test_odd_checkpoints_cost_only_themselves(tmp_path: Path) -> None:
    rows = [
        ("a", "[1]"),
        ("b", '{"channel_values": []}'),
        ("c", '{"ts": "soon", "channel_values": {"messages": [%s]}}'),
    ]
    rows[2] = ("c", rows[2][1] % '{"type": "human", "content": "I live in Porto.", "id": "1"}')
    path = database(
        tmp_path / "x.db",
        "CREATE TABLE checkpoints (thread_id, checkpoint_ns, checkpoint_id, type, checkpoint, metadata);",
        *[("INSERT INTO checkpoints VALUES (?, '', '1', 'json', ?, '{}')", row) for row in rows],
    )

    assert read(path, tmp_path)[1] == [PORTO]


def test_the_files_of_an_archive_are_listed_a_few_times_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed: list[int] = []
    names = Source.names
    monkeypatch.setattr(Source, "names", lambda self: listed.append(1) or names(self))
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("_chat.txt", "\n".join(f"01/13/26, 10:{n:02} - Ana: null" for n in range(50)))
        archive.writestr("b.txt", "x")
    read(tmp_path / "x.zip", tmp_path)

    assert len(listed) < 10


def test_an_archive_is_measured_whatever_its_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for limit, name in (("MAX_UNPACKED_BYTES", "A.MD"), ("MAX_UNPACKED_BYTES", "a.markdown"), ("MAX_ENTRIES", "a.md")):
        with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
            archive.writestr(name, "- I live in Porto.")
            archive.writestr("b.md", "- x")
        with monkeypatch.context() as limited:
            limited.setattr(f"holdfast.importers.foreign.{limit}", {"MAX_ENTRIES": 1}.get(limit, 19))
            with pytest.raises(TooLarge):
                Source(tmp_path / "x.zip").names()


def test_conversations_of_equal_titles_stay_apart() -> None:
    keys = ("1234567890123", "1234567899999", "conversation-1", "conversation-2", "chat-00001", "chat-00002")
    assert len({title_of("Trip", key) for key in keys}) == len(keys)
    assert title_of("Trip", "abcdef01-1111-4111-8111-111111111111") == "Trip (abcdef01)"
    assert title_of("x" * 150 + "a") != title_of("x" * 150 + "b")
    assert title_of("Trip", "Trip") == title_of("Trip") == "Trip"


ROWS = [
    {"category": "dietary", "fact_key": "pescatarian", "fact_value": "true", "confidence": "0.95"},
    {"category": "budget", "fact_key": "max_usd", "fact_value": "3000", "confidence": ""},
    {"category": "destination", "fact_key": "cities", "fact_value": "Tokyo,Kyoto", "confidence": "0.9"},
]


def _typed_facts(path: Path) -> Path:
    """Write the rows in the format that the name of the file tells."""
    if path.suffix == ".json":
        path.write_text(json.dumps(ROWS), "utf-8")
    elif path.suffix == ".csv":
        lines = [",".join(ROWS[0]), *(",".join(f'"{value}"' for value in row.values()) for row in ROWS)]
        path.write_text("\n".join(lines), "utf-8")
    else:
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE chat_facts (session_id, category, fact_key, fact_value, confidence)")
            connection.execute("CREATE TABLE chat_turns (session_id, role, content)")
            connection.executemany(
                "INSERT INTO chat_facts VALUES ('s1', ?, ?, ?, ?)", [tuple(row.values()) for row in ROWS]
            )
            connection.execute("INSERT INTO chat_turns VALUES ('s1', 'user', 'I live in Porto.')")
        connection.close()
    return path


@pytest.mark.parametrize("name", ["facts.csv", "facts.json", "chat.db"])
def test_typed_facts_of_ones_own_tables_become_facts_at_their_addresses(name, tmp_path):
    path = _typed_facts(tmp_path / name)
    assert detect(path) == "facts"

    found, messages = read(path, tmp_path)

    assert [one.address for one in found.memories] == [tuple(row.values())[:3] for row in ROWS]
    assert [one.confidence for one in found.memories] == [0.95, 1.0, 0.9]
    assert {one.of for one in found.memories} == ({"s1"} if name == "chat.db" else {""})
    assert messages == ([PORTO] if name == "chat.db" else [])


def test_a_typed_fact_whose_confidence_is_no_number_is_told_by_its_line(tmp_path):
    path = tmp_path / "facts.csv"
    path.write_text("category,key,value,confidence\ndietary,vegan,true,0.9\ndietary,vegan,true,sure\n", "utf-8")

    found, _ = read(path, tmp_path)

    assert len(found.memories) == 1
    assert [(one.number, "confidence" in one.problem) for one in found.survey.bad] == [(3, True)]
