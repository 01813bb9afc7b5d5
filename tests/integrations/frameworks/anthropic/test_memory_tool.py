"""Anthropic's memory tool over a memory, command by command beside the tool of Anthropic's own that writes files."""

from __future__ import annotations

import asyncio
import random

import pytest
from anthropic.tools import ToolError
from anthropic.tools.memory import BetaLocalFilesystemMemoryTool

from holdfast import Memory
from holdfast.integrations.agents.memory_tool import KNOWN, AsyncHoldfastMemoryTool, HoldfastMemoryTool

PATHS = ["/memories/a.md", "/memories/b.md", "/memories/notes/c.md", "/memories/x/y/z.md"]
TEXTS = ["", "one\n", "one\ntwo\nthree\n", "two two", "no end", "ünï\n\n日本\n"]


def answer(tool, **command):
    try:
        return tool.call(command)
    except ToolError as error:
        return f"error: {error}"


def command_of(chance):
    path = chance.choice(PATHS)
    return chance.choice(
        [
            {"command": "view", "path": path},
            {"command": "view", "path": path, "view_range": [chance.randint(1, 3), chance.choice([-1, 2, 3])]},
            {"command": "create", "path": path, "file_text": chance.choice(TEXTS)},
            {"command": "create", "path": path, "file_text": chance.choice(TEXTS)},
            {"command": "str_replace", "path": path, "old_str": chance.choice(["one", "two", "x"]), "new_str": "2"},
            {"command": "insert", "path": path, "insert_line": chance.randint(0, 4), "insert_text": "new\n"},
            {"command": "delete", "path": path},
            {"command": "rename", "old_path": path, "new_path": chance.choice(PATHS)},
        ]
    )


@pytest.mark.parametrize("seed", range(20))
def test_it_answers_as_anthropics_own_tool(seed, tmp_path):
    chance = random.Random(seed)
    theirs = BetaLocalFilesystemMemoryTool(str(tmp_path))
    with Memory(embedder=None) as memory:
        ours = HoldfastMemoryTool(memory, user="ana")
        for _ in range(60):
            command = command_of(chance)
            assert answer(ours, **command) == answer(theirs, **command), command


def test_what_was_written_is_there_in_another_process_and_is_the_users_alone(tmp_path):
    with Memory(tmp_path / "chat.db", embedder=None) as memory:
        answer(HoldfastMemoryTool(memory, user="ana"), command="create", path="/memories/a.md", file_text="tea")
    with Memory(tmp_path / "chat.db", embedder=None) as memory:
        ana, bo = HoldfastMemoryTool(memory, user="ana"), HoldfastMemoryTool(memory, user="bo")

        assert "tea" in answer(ana, command="view", path="/memories/a.md")
        assert answer(bo, command="view", path="/memories/a.md").startswith("error")


def test_the_facts_are_a_file_that_only_the_memory_changes():
    with Memory(embedder=None) as memory:
        tool = HoldfastMemoryTool(memory, user="ana")
        assert KNOWN not in answer(tool, command="view", path="/memories")
        memory.conversation("c", user="ana").record("I am a vegetarian.", "ok")

        assert KNOWN in answer(tool, command="view", path="/memories")
        assert '"Is vegetarian."' in answer(tool, command="view", path=KNOWN)
        assert "kept by the memory" in answer(tool, command="delete", path=KNOWN)
        assert "kept by the memory" in answer(tool, command="create", path=KNOWN, file_text="")
        memory.user("ana").pause()
        assert answer(tool, command="view", path=KNOWN).startswith("error")


def test_the_facts_of_one_conversation_are_not_among_them():
    with Memory(embedder=None) as memory:
        tool = HoldfastMemoryTool(memory, user="ana")
        memory.conversation("c", user="ana").record("I am a vegetarian.", "ok")
        memory.conversation("trip", user="ana", own_facts=True).record("I live in Rome.", "ok")

        assert "Rome" in str(memory.user("ana").facts())
        assert '"Is vegetarian."' in answer(tool, command="view", path=KNOWN)
        assert "Rome" not in answer(tool, command="view", path=KNOWN)


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "/memories/../secret", "/memoriesx/a", "memories/a", "/memories/a\x00b"]
)
def test_paths_outside_are_refused(path):
    with Memory(embedder=None) as memory:
        tool = HoldfastMemoryTool(memory, user="ana")

        assert answer(tool, command="create", path=path, file_text="x").startswith("error")
        assert answer(tool, command="view", path=path).startswith("error")


def test_files_go_with_the_user_and_none_is_stored_while_paused(tmp_path):
    path = tmp_path / "chat.db"
    with Memory(path, embedder=None) as memory:
        tool = HoldfastMemoryTool(memory, user="ana")
        answer(tool, command="create", path="/memories/a.md", file_text="wombats")
        memory.user("ana").erase()
        memory.user("ana").pause()
        answer(tool, command="create", path="/memories/b.md", file_text="wombats")

        assert "wombats" in answer(tool, command="view", path="/memories/b.md")
    assert b"wombats" not in path.read_bytes()


def test_the_async_tool_does_the_same():
    async def run(memory):
        tool = AsyncHoldfastMemoryTool(memory, user="ana")
        await tool.call({"command": "create", "path": "/memories/a.md", "file_text": "tea"})
        seen = await tool.call({"command": "view", "path": "/memories/a.md"})
        await tool.clear_all_memory()
        return seen, await tool.call({"command": "view", "path": "/memories"})

    with Memory(embedder=None) as memory:
        seen, after = asyncio.run(run(memory))

        assert seen.endswith("     1\ttea")
        assert "a.md" not in after
