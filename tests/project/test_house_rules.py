"""The rules that we would otherwise have to remember in review."""

import ast
import graphlib
import re
from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest

import holdfast
from holdfast.config import Config

ROOT = Path(__file__).parent.parent.parent
PACKAGE = ROOT / "src" / "holdfast"
MODULES = sorted(PACKAGE.rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("test_*.py"))
CODE = [
    *MODULES,
    *(path for folder in ("tests", "scripts", "examples") for path in sorted((ROOT / folder).rglob("*.py"))),
]

MAX_FILE_LINES, MAX_FUNCTION_LINES = 800, 60
GENERATED = [
    PACKAGE / "aio.py",
    PACKAGE / "client" / "aio.py",
    PACKAGE / "client" / "sync.py",
]  # not for reading; their sources fit

# The path of a message, lowest first: a part imports what is above it in this list, never a part of its own line.
# Only the parts of BASE may use each other.
BASE = {
    "types",
    "reports",
    "errors",
    "config",
    "scope",
    "clock",
    "text",
}
LAYERS = [
    BASE,
    {"store", "llm", "embed"},
    {"ingest", "digest", "reconcile", "recall", "context"},
    {"jobs"},
    {"privacy"},
    {"engine"},
    {"conversation"},
    {"user"},
    {"admin"},
    {"memory"},
    {"aio"},
    {"integrations"},
    {"client", "compat", "importers", "testing"},
    {"bench"},
    {"server"},
    {"cli"},
    {"__main__"},
]

# Values in, values out: no clock, no database, no model.
PURE = [
    "context/material.py",
    "text/render.py",
    "digest/chunk.py",
    "ingest/passwords.py",
    "ingest/redact.py",
    "embed/protocol.py",
    "recall/query.py",
    "recall/rank.py",
    "reconcile/decide.py",
]
IMPURE_PARTS = {"embed", "llm", "jobs", "privacy", "engine", "conversation", "user", "memory"}
IMPURE_NAMES = {"utc_now", "new_id", "open_store", "Store", "ReadView", "WriteView"}
IMPURE_MODULES = {"apsw", "os", "pathlib", "random", "secrets", "sqlite3", "subprocess", "threading", "time"}

# Where everything is caught, and why that is right there.
BROAD_EXCEPTS = {
    "jobs/worker.py": "whatever a job raises becomes the job's state",
    "server/proxy/routes.py": "whatever the memory raises must not cost a chat its answer, and is told in a header",
    "store/sqlite/connection.py": "whatever a write raises is raised again in the thread that waits for it",
    "integrations/calls/callable.py": "what fails of a batch may be among its results, when its caller wants that",
    "integrations/calls/turns.py": "whatever a caller's summariser raises must not cost the reply, and is logged",
    "integrations/voice/turns.py": "whatever the memory raises must not cost the caller a reply, and is logged",
}

# Where a table names modules of ours that are imported when they are needed.
LAZY_TABLES = {
    "__main__.py": "a hook of a coding agent loads next to nothing",
    "__init__.py": "a name of the package is loaded when it is first used",
    "cli/app.py": "a command's module is imported when the command is run, and the server's when it is served",
    "llm/__init__.py": "a provider's client needs an extra",
}

# What no file of the project may say: somebody's home folder, a package registry, a secret, half a merge.
MISPLACED = re.compile(
    "|".join(
        [
            r"/(?:home|Users)/\w+",
            r"/roo" + r"t/",
            r"[A-Z]:\\Users\\",
            r"py" + r"pi\.org",
            r"python" + r"hosted\.org",
            r"BEGIN [A-Z ]*PRIVATE KEY",
            r"\bsk-[A-Za-z0-9]{20,}",
            r"\bAKIA[0-9A-Z]{16}\b",
            r"^(?:<{7}|>{7}) ",
        ]
    ),
    re.MULTILINE,
)
UNFINISHED = re.compile(r"\b(?:TO" + "DO|FIX" + "ME|XX" + r"X|HA" + r"CK)\b")


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes(path: Path) -> list[ast.AST]:
    return list(ast.walk(parsed(path)))


def functions(path: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [node for node in nodes(path) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def at(path: Path, node: ast.AST) -> str:
    return f"{named(path)}, line {node.lineno}"


def imported(path: Path, tree: ast.AST) -> list[tuple[str, ...]]:
    """The modules and names of ours that *tree*, a part of the module *path*, imports, as dotted parts."""
    here = path.relative_to(PACKAGE).with_suffix("").parts
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            module = tuple(node.module.split(".")) if node.module else ()
            base = here[: len(here) - node.level] if node.level else ()
            if node.level or module[:1] == ("holdfast",):
                found += [(*base, *(module if node.level else module[1:]), name.name) for name in node.names]
        elif isinstance(node, ast.Import):
            found += [tuple(n.name.split(".")[1:]) for n in node.names if n.name.startswith("holdfast.")]
    return found


def layer(part: str) -> int:
    for level, parts in enumerate(LAYERS):
        if part in parts:
            return level
    raise AssertionError(f"{part} has no place yet in LAYERS: give it one")


def test_files_fit_on_a_few_screens():
    lines = {named(path): path.read_text(encoding="utf-8").count("\n") for path in CODE if path not in GENERATED}

    assert {name: count for name, count in lines.items() if count > MAX_FILE_LINES} == {}


def test_functions_are_short():
    assert [at(path, node) for path in CODE for node in functions(path) if length(node) > MAX_FUNCTION_LINES] == []


def length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def test_imports_point_down():
    """Data flows one way, and stages never know of each other."""
    upward = []
    for path in set(MODULES) - {PACKAGE / "__init__.py"}:
        me = path.relative_to(PACKAGE).with_suffix("").parts[0]
        others = {target[0] for target in imported(path, parsed(path))} - {me, "__version__"}
        wrong = [o for o in others if layer(o) >= layer(me) and not (me in BASE and o in BASE)]
        upward += [f"{named(path)} imports {other}" for other in wrong]

    assert sorted(upward) == []


def test_no_module_imports_itself_in_a_circle():
    known = {path.relative_to(PACKAGE).with_suffix("").parts for path in MODULES}
    known = {module[:-1] if module[-1] == "__init__" else module for module in known} - {()}
    graph = {}
    for path in MODULES:
        me = path.relative_to(PACKAGE).with_suffix("").parts
        me = me[:-1] if me[-1] == "__init__" else me
        reached = {target if target in known else target[:-1] for target in imported(path, parsed(path))}
        graph[me] = (reached & known) - {me}
    graph.pop((), None)

    list(graphlib.TopologicalSorter(graph).static_order())


def test_no_import_of_ours_is_hidden_in_a_function():
    assert [at(path, node) for path in MODULES for node in functions(path) if imported(path, node)] == []


def test_only_lazy_tables_import_our_modules_by_name():
    assert [
        at(path, node)
        for path in MODULES
        if path.relative_to(PACKAGE).as_posix() not in LAZY_TABLES
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).split(".")[-1] == "import_module"
        and not isinstance(node.args[0], ast.Name)
        and ast.unparse(node.args[0]).lstrip("f'\"").startswith((".", "holdfast", "{__"))
    ] == []


def test_importing_compiles_nothing():
    """Dataclasses are those of ``text``, and expressions of a module wait for their first use."""
    modules = [path for path in MODULES if path != PACKAGE / "text" / "__init__.py"]
    eager = [
        at(path, node)
        for path in modules
        for node in nodes(path)
        if isinstance(node, ast.ImportFrom)
        and node.module == "dataclasses"
        and "dataclass" in {name.name for name in node.names}
    ]
    eager += [
        at(path, node)
        for path in modules
        if path.relative_to(PACKAGE).parts[0] not in ("bench", "testing")  # imported by no host
        for statement in parsed(path).body
        if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        for node in ast.walk(statement)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) == "re.compile"
        and not any(isinstance(part, ast.Constant) and isinstance(part.value, bytes) for part in ast.walk(node))
    ]

    assert eager == []


@pytest.mark.parametrize("name", PURE)
def test_pure_module_has_no_clock_database_or_model(name):
    path = PACKAGE / name
    ours = imported(path, parsed(path))
    outside = {
        (node.module or "").split(".")[0] if isinstance(node, ast.ImportFrom) else node.names[0].name.split(".")[0]
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Import | ast.ImportFrom)
    }

    assert [target for target in ours if target[0] in IMPURE_PARTS - {Path(name).parts[0]}] == []
    assert {target[-1] for target in ours} & IMPURE_NAMES == set()
    assert outside & IMPURE_MODULES == set()


def test_nothing_is_caught_that_cannot_be_named():
    broad = {
        path.relative_to(PACKAGE).as_posix()
        for path in MODULES
        for node in nodes(path)
        if isinstance(node, ast.ExceptHandler)
        and (
            node.type is None
            or {"Exception", "BaseException"} & {n.id for n in ast.walk(node.type) if hasattr(n, "id")}
        )
        and not (isinstance(node.body[-1], ast.Raise) and node.body[-1].exc is None)
    }

    assert broad == set(BROAD_EXCEPTS)


def test_nothing_is_a_stub():
    stubs = [
        at(path, node)
        for path in MODULES
        for node in nodes(path)
        if isinstance(node, ast.Raise) and "NotImplementedError" in ast.unparse(node)
    ]

    assert stubs == []


def test_nothing_is_left_for_later():
    assert [named(path) for path in CODE if UNFINISHED.search(path.read_text(encoding="utf-8"))] == []


def project_texts() -> list[Path]:
    folders = [".ci", "benchmarks", "docs", "examples", "requirements", "scripts", "src", "tests"]
    inside = [path for folder in folders for path in (ROOT / folder).rglob("*")]
    kinds = {
        "",
        ".cfg",
        ".html",
        ".js",
        ".json",
        ".jsonl",
        ".lock",
        ".md",
        ".py",
        ".sh",
        ".sql",
        ".toml",
        ".txt",
        ".yml",
    }
    return [
        path
        for path in sorted([*ROOT.glob("*"), *inside])
        if path.is_file()
        and path.suffix in kinds
        and "__pycache__" not in path.parts
        and path.parent != PACKAGE / "embed" / "data"
    ]


def test_files_say_nothing_of_where_they_were_written():
    found = {named(path): MISPLACED.findall(path.read_text(encoding="utf-8")) for path in project_texts()}

    assert {name: places for name, places in found.items() if places} == {}


def test_public_names_are_sorted_and_all_there():
    """Everything that can be had from the package is listed, and everything listed can be had."""
    assert holdfast.__all__ == sorted(holdfast.__all__)
    assert sorted(holdfast._HOME) == holdfast.__all__
    for name in holdfast.__all__:
        assert getattr(holdfast, name).__name__ == name


def test_type_checkers_see_the_same_public_names():
    guarded = [node for node in parsed(PACKAGE / "__init__.py").body if isinstance(node, ast.If)]
    seen = [target[-1] for node in guarded for target in imported(PACKAGE / "__init__.py", node)]

    assert sorted(seen) == holdfast.__all__


def test_every_setting_is_documented():
    page = (ROOT / "docs" / "reference" / "config.md").read_text(encoding="utf-8")

    assert [f.name for f in fields(Config) if f"| `{f.name}` |" not in page] == []
    assert [f.name for f in fields(Config) if not f.metadata["doc"].endswith(".")] == []


def test_every_test_file_has_tests():
    """Each holds a test function, or a class that inherits a contract."""
    empty = [
        named(path)
        for path in TESTS
        if not any(isinstance(node, ast.ClassDef) and node.name.startswith("Test") for node in parsed(path).body)
        and not any(node.name.startswith("test_") for node in functions(path))
    ]

    assert empty == []


def test_no_test_imports_the_benchmarks():
    """What both need is in the package or beside the tests."""
    importing = [
        at(path, node)
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for node in nodes(path)
        if isinstance(node, ast.Import | ast.ImportFrom) and "benchmarks" in ast.unparse(node)
    ]

    assert importing == []


def test_readme_and_ci_run_the_same_command():
    """What a reader is told to run is what is run for every change."""
    commands = (ROOT / ".ci" / "run").read_text(encoding="utf-8").strip().splitlines()

    assert commands[-1] == "make test"
    assert "make test" in (ROOT / "README.md").read_text(encoding="utf-8")
