"""``--help``: complete, with examples, and fast."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys

import pytest

from holdfast import __version__
from holdfast.cli.app import COMMANDS, command

from .conftest import Holdfast

NAMES = [name for commands in COMMANDS.values() for name in commands]
# What costs time to import, and is not needed to print help.
ENGINE = {"numpy", "apsw", "threadpoolctl", "holdfast.memory", "holdfast.engine"}


def test_every_command_is_listed_with_a_description(holdfast: Holdfast) -> None:
    for args in (("--help",), ("-h",), ()):
        run = holdfast(*args)
        listed = dict(re.findall(r"^  ([\w-]+(?: [\w-]+)?) {2,}(\S.*)$", run.out, re.M))

        assert run.code == 0
        assert set(NAMES) <= set(listed)


@pytest.mark.parametrize("name", NAMES)
def test_every_command_explains_itself_with_an_example(holdfast: Holdfast, name: str) -> None:
    help_text = holdfast(*name.split(), "--help").out

    assert f"Usage: holdfast {name}" in help_text
    examples = [line for line in help_text.split("Examples:")[1].splitlines() if f"holdfast {name}" in line]
    assert examples
    assert "--json" in help_text or name == "mcp"  # which speaks nothing but JSON


@pytest.mark.parametrize("name", NAMES)
def test_every_example_can_be_parsed(holdfast: Holdfast, name: str) -> None:
    """The options in an example exist."""
    group = command()
    loaded = group.get_command(None, name)
    known = {option for parameter in loaded.params for option in (*parameter.opts, *parameter.secondary_opts)}
    for line in holdfast(*name.split(), "--help").out.split("Examples:")[1].splitlines():
        call = line.strip().rpartition("| ")[2]
        if call.startswith(f"holdfast {name}"):
            used = [word for word in shlex.split(call) if re.fullmatch(r"--?[a-z][a-z-]*", word)]
            assert set(used) <= known


def test_a_group_alone_lists_its_commands(holdfast: Holdfast) -> None:
    run = holdfast("store")
    listed = re.findall(r"^  (\w+) {2,}\S", run.out, re.M)

    assert run.code == 0
    assert {name.split()[1] for name in NAMES if name.startswith("store ")} <= set(listed)
    assert holdfast("store", "nonsense").code == 2


def test_version_is_the_packages(holdfast: Holdfast) -> None:
    assert holdfast("--version").out == f"holdfast {__version__}\n"


def imported(args: list[str]) -> set[str]:
    """The modules that one command line loads."""
    script = (
        "import sys; from holdfast.cli import main; main(sys.argv[1:]); "
        "print('MODULES', *sorted(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script, *args], capture_output=True, text=True, check=True)
    return set(done.stderr.split("MODULES ")[1].split())


@pytest.mark.parametrize("args", [["--help"], ["--version"], ["contxt"], ["store", "--help"]])
def test_help_imports_neither_the_engine_nor_rich(args: list[str]) -> None:
    """Counted by module, not by time: a clock says more about the machine."""
    loaded = imported(args)

    assert "holdfast.cli.app" in loaded
    assert not loaded & (ENGINE | {"rich"})


# Commands that check or measure the engine itself, and those about databases, which need the driver of SQLite and numpy, that packs its documents.
ABOUT_THE_ENGINE = {"bench", "doctor"}
ABOUT_DATABASES = {f"store {name}" for name in ("copy", "distribute", "init", "owners", "scrub", "try")}


@pytest.mark.parametrize("name", sorted(set(NAMES) - ABOUT_THE_ENGINE))
def test_a_commands_help_imports_no_engine(name: str) -> None:
    assert not imported([*name.split(), "--help"]) & (
        ENGINE - ({"apsw", "numpy"} if name in ABOUT_DATABASES else set())
    )


def test_the_commands_in_the_general_help_exist(holdfast: Holdfast) -> None:
    used = re.findall(r"^ +holdfast ([\w-]+)", holdfast("--help").out, re.M)

    assert used
    assert set(used) <= set(NAMES)


def test_an_option_before_the_command_is_told_where_it_belongs(holdfast: Holdfast) -> None:
    run = holdfast("--store", "other.db", "facts")

    assert run.code == 2
    assert "holdfast facts --store" in run.err
