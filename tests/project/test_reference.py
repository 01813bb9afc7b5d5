"""The reference pages name everything that users can reach, and nothing that is gone."""

import ast
import inspect
import re
import sqlite3
from dataclasses import fields
from pathlib import Path

import pytest

import holdfast
from holdfast import errors
from holdfast.context.result import ContextSource, LeftOut

ROOT = Path(__file__).parent.parent.parent
REFERENCE = ROOT / "docs" / "reference"
DOORS = (
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
)
VALUES = [
    value
    for value in (getattr(holdfast, name) for name in holdfast.__all__)
    if hasattr(value, "__dataclass_fields__") and value is not holdfast.Config  # that has a page of its own
]
API = (REFERENCE / "api.md").read_text(encoding="utf-8")


def public(cls):
    """``(name, member)`` of what users may call or read on *cls*."""
    return [(name, member) for name, member in vars(cls).items() if not name.startswith("_")]


def section(title):
    """The part of the page under ``## title``."""
    return API.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def signature(function):
    """Names of the parameters, without self."""
    return list(inspect.signature(function).parameters)[1:]


@pytest.mark.parametrize("door", DOORS)
def test_every_call_is_described_with_its_parameters(door):
    cls, page = getattr(holdfast, door), section(door)
    for name, member in public(cls):
        if isinstance(member, property):
            assert f"| `{name}` |" in page
            continue
        shown = re.search(rf"^\| `{name}\(([^|]*)\)`", page, re.MULTILINE)
        assert shown, f"{door}.{name}"
        tree = ast.parse(f"def f({shown[1]}): pass").body[0].args
        assert [a.arg for a in (*tree.args, *tree.kwonlyargs)] == signature(member), f"{door}.{name}"


def test_constructor_is_described_with_its_parameters():
    shown = re.search(r"^`Memory\((.*)\)`$", API, re.MULTILINE)
    tree = ast.parse(f"def f({shown[1]}): pass").body[0].args

    assert [a.arg for a in (*tree.args, *tree.kwonlyargs)] == signature(holdfast.Memory.__init__)


@pytest.mark.parametrize("door", DOORS)
def test_nothing_is_described_that_is_not_there(door):
    described = re.findall(r"^\| `(\w+)[(`]", section(door), re.MULTILINE)
    parameters = signature(getattr(holdfast, door).__init__)

    assert [
        name for name in described if name not in dict(public(getattr(holdfast, door))) and name not in parameters
    ] == []


@pytest.mark.parametrize("value", [*VALUES, ContextSource, LeftOut], ids=lambda cls: cls.__name__)
def test_every_field_of_a_value_is_named(value):
    rows = [line for line in API.splitlines() if line.startswith(f"| `{value.__name__}` |")]
    page = rows[0] if rows else section("Context")

    assert [field.name for field in fields(value) if f"`{field.name}`" not in page] == []


def test_every_public_name_is_mentioned():
    skipped = {"Config"}  # config.md

    assert [name for name in holdfast.__all__ if name not in skipped and f"`{name}" not in API] == []


@pytest.mark.parametrize("error", [e for e in vars(errors).values() if inspect.isclass(e)], ids=lambda e: e.__name__)
def test_every_error_has_its_row(error):
    page = (REFERENCE / "errors.md").read_text(encoding="utf-8")

    assert f"| `{error.__name__}` | `{error.code}` |" in page


def test_every_code_of_the_command_is_listed():
    page = (REFERENCE / "errors.md").read_text(encoding="utf-8")
    source = "".join(p.read_text(encoding="utf-8") for p in sorted((ROOT / "src/holdfast/cli").rglob("*.py")))
    codes = set(re.findall(r'CommandError\(\s*"([a-z-]+)"', source))

    assert codes
    assert sorted(code for code in codes if f"`{code}`" not in page) == []


def test_every_code_of_the_server_is_listed():
    page = (REFERENCE / "errors.md").read_text(encoding="utf-8")
    source = "".join(p.read_text(encoding="utf-8") for p in sorted((ROOT / "src/holdfast/server").rglob("*.py")))
    codes = set(re.findall(r'problem\(\s*[\w.]+, "([a-z-]+)"', source))

    assert {"no-key", "too-large"} <= codes
    assert sorted(code for code in codes if f"`{code}`" not in page) == []


def test_every_column_of_a_view_is_described(tmp_path):
    page = (REFERENCE / "views.md").read_text(encoding="utf-8")
    holdfast.Memory(tmp_path / "m.db", embedder=None).close()
    db = sqlite3.connect(tmp_path / "m.db")
    for (view,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'view'").fetchall():
        part = page.partition(f"## {view}\n")[2].partition("\n## ")[0] + page.partition("\n## ")[0]
        columns = [row[1] for row in db.execute(f"PRAGMA table_info({view})")]

        assert columns
        assert [name for name in columns if f"`{name}`" not in part] == [], view
    db.close()


def test_every_test_named_for_a_behavior_exists():
    page = (REFERENCE / "behaviors.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| ") and not line.startswith("| behavior |")]
    named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", page)

    assert [row for row in rows if "`tests/" not in row] == []
    assert len(named) >= len(rows) > 0
    assert [f"{path}::{name}" for path, name in named if not defines(ROOT / path, name)] == []


def defines(path, name):
    """Whether the file at *path* defines a function *name*."""
    return path.is_file() and re.search(rf"^ *(?:async )?def {name}\(", path.read_text("utf-8"), re.MULTILINE)
