"""The asyncio doors are the sync ones, awaited: same names, same parameters, same results."""

import asyncio
import importlib
import importlib.util
import inspect
import threading
from pathlib import Path
from types import ModuleType

import pytest

import holdfast
from holdfast import aio, memory

SCRIPTS = Path(__file__).parent.parent.parent / "scripts"
DOORS = [
    "Memory",
    "Conversation",
    "User",
    "Prompts",
    "Admin",
    "ApiKeys",
    "ProviderKeys",
    "Erasures",
    "Events",
    "Operations",
]


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def make_aio():
    return load(SCRIPTS / "make_aio.py")


def public(door: type) -> dict[str, object]:
    return {name: value for name, value in vars(door).items() if not name.startswith("_")}


def test_file_is_what_the_script_writes(make_aio):
    assert make_aio.main(["--check"]) == 0


@pytest.mark.parametrize("name", DOORS)
def test_names_and_signatures_agree(name):
    sync, awaited = public(getattr(holdfast, name)), public(getattr(aio, f"Async{name}"))

    assert list(awaited) == list(sync)
    for member, value in sync.items():
        if isinstance(value, property):
            assert isinstance(awaited[member], property)
            continue
        ours, theirs = inspect.signature(value), inspect.signature(awaited[member])
        assert list(theirs.parameters.values()) == list(ours.parameters.values()), member
        hands_out_a_door = ours.return_annotation in DOORS
        assert theirs.return_annotation == ("Async" if hands_out_a_door else "") + ours.return_annotation
        assert inspect.iscoroutinefunction(awaited[member]) is not hands_out_a_door
        assert inspect.getdoc(awaited[member]) == inspect.getdoc(value)


def test_constructor_takes_what_the_sync_one_takes():
    assert inspect.signature(aio.AsyncMemory) == inspect.signature(memory.Memory)


def test_conversation_is_remembered(tmp_path):
    async def talk() -> list[str]:
        async with aio.AsyncMemory(tmp_path / "chat.db", embedder=None) as remembered:
            chat = remembered.conversation("c1", user="ana")
            await asyncio.gather(*(chat.record(f"message {n}") for n in range(20)))
            return [message.content for message in await chat.load()]

    assert sorted(asyncio.run(talk())) == sorted(f"message {n}" for n in range(20))


FIXTURE = '''
from __future__ import annotations
import os
import threading
from types import TracebackType

LIMIT = 10

class Memory:
    """A memory.

    Long story.
    """
    def __init__(self, path: str = "x", *, size: int = LIMIT) -> None:
        """Open *path*."""
        self.path, self.size = path, size
        self.opened_by = threading.current_thread().name
    def __enter__(self) -> Memory:
        return self
    def __exit__(self, kind: object, error: object, at: object) -> None:
        self.close()
    @property
    def twice(self) -> int:
        """Two times the size."""
        return self.size * 2
    def user(self, name: str, /, *, org: str = "o") -> User:
        """Somebody."""
        return User(name + org)
    def where(self, sep: str = os.sep) -> str:
        """Which thread; a back\\\\slash.

        Args:
            sep: between the parts.
        """
        return sep.join(["thread", threading.current_thread().name])
    def opener(self) -> str:
        """Which thread opened it."""
        return self.opened_by
    def close(self) -> None:
        """Close."""
        self.path = "closed"

class User:
    """Somebody."""
    def __init__(self, name: str) -> None:
        self._name = name
    def __repr__(self) -> str:
        return f"User({self._name})"
    def add(self, a: int, b: int = 2, *, c: int = 3) -> list[int]:
        """List them."""
        return [a, b, c]
    def _secret(self) -> None:
        pass
'''


@pytest.fixture
def generated(make_aio, tmp_path, monkeypatch):
    """The fixture's doors and what is generated from them, as a package."""
    folder = tmp_path / "doors"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "memory.py").write_text(FIXTURE, encoding="utf-8")
    (folder / "aio.py").write_text(make_aio.render({"memory": FIXTURE}), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    return importlib.import_module("doors.aio")


def test_methods_run_in_a_worker_thread(generated):
    remembered = generated.AsyncMemory()

    assert asyncio.run(remembered.where(":")).startswith("thread:asyncio")
    assert threading.current_thread().name not in asyncio.run(remembered.where())


def test_a_running_loop_does_not_wait_for_the_file(generated):
    async def entered() -> str:
        async with generated.AsyncMemory() as remembered:
            return await remembered.opener()

    async def awaited() -> str:
        return await (await generated.AsyncMemory()).opener()

    assert asyncio.run(entered()).startswith("asyncio")
    assert asyncio.run(awaited()).startswith("asyncio")


def test_without_a_loop_it_is_opened_at_once(generated):
    """So that a memory made when a program is loaded fails there, if it fails."""
    remembered = generated.AsyncMemory()

    assert remembered._opened is not None
    assert asyncio.run(remembered.opener()) == threading.current_thread().name


def test_what_cannot_be_opened_is_told_by_async_with(tmp_path):
    async def enter() -> None:
        async with aio.AsyncMemory(tmp_path / "no" / "such" / "chat.db"):
            pass

    with pytest.raises(holdfast.HoldfastError):
        asyncio.run(enter())


def test_arguments_arrive_by_position_and_by_name(generated):
    user = generated.AsyncMemory("y", size=4).user("ana", org="!")

    assert repr(user) == "AsyncUser(ana!)"
    assert asyncio.run(user.add(1, c=9)) == [1, 2, 9]


def test_properties_stay_properties(generated):
    assert generated.AsyncMemory(size=4).twice == 8


def test_leaving_the_block_closes(generated):
    async def enter() -> object:
        async with generated.AsyncMemory() as remembered:
            return remembered

    assert asyncio.run(enter())._sync.path == "closed"


def test_docstrings_come_along(generated):
    assert "back\\slash" in generated.AsyncMemory.where.__doc__
    assert "sep: between the parts." in generated.AsyncMemory.where.__doc__


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ("    @staticmethod\n    def helper() -> None:\n        pass\n", "staticmethod"),
        ("    def stream(self) -> Iterator[int]:\n        yield 1\n", "event loop"),
        ("    def many(self, *names: str) -> None:\n        pass\n", "name them"),
        ("    async def later(self) -> None:\n        pass\n", "async already"),
    ],
)
def test_what_cannot_be_carried_over_is_refused(make_aio, change, complaint):
    with pytest.raises(SystemExit, match=complaint):
        make_aio.render({"memory": FIXTURE + change})


def test_the_docs_name_every_module_that_it_is_written_from(make_aio):
    root = SCRIPTS.parent
    for page in (root / "CONTRIBUTING.md", root / "docs" / "architecture.md"):
        text = page.read_text(encoding="utf-8")
        assert [module for module in make_aio.MODULES if f"`{module}.py`" not in text] == []
