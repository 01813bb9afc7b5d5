"""``holdfast doctor``."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any

import typer

from .. import __version__
from ..embed import ModelState, state
from ..embed.fetch import fetch
from ..reports import Report
from .options import STORE, Json, Store, commands, reading, without_password
from .plain import CommandError
from .progress import Progress
from .screen import BAD, CHANGED, GOOD, QUIET, STRONG, Screen, print_json
from .values import plain
from .words import count, size

app = commands()

PACKAGES = ("apsw", "numpy", "PyStemmer", "rich", "threadpoolctl", "typer")


@app.command()
def doctor(
    fetch_model: Annotated[
        bool, typer.Option("--fetch-model", help="Get the embedding model first, where it is missing (83 MB).")
    ] = False,
    store: Store = STORE,
    as_json: Json = False,
) -> int:
    """
    Check the store, every rule that its rows must keep, and everything that Holdfast needs.

    On PostgreSQL also the server: roles, row level security, collation, settings, upkeep. It changes
    nothing. The exit code is 1 when a rule is broken; notices, which break none, leave it at 0.

    \b
    Examples:
      holdfast doctor
      holdfast doctor --store chat.db --json
      holdfast doctor --store postgresql://holdfast_app@localhost/memory
    """
    if fetch_model:
        _fetch(show=not as_json)
    model = state()
    found: dict[str, Any] = {
        "holdfast": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: _version(name) for name in PACKAGES},
        "embedder": {"present": model.present, "folder": str(model.folder)},
        "store": None,
    }
    report = None
    if store != STORE or Path(store).exists():
        found["store"], report = _examine(store)
        found["ok"], found["findings"], found["checked"] = report.ok, plain(report.findings), list(report.checked)
        found["notices"], found["database"] = plain(report.notices), dict(report.database)
    if as_json:
        print_json(found)
    else:
        _show(Screen(), found, model, store, report)
    return 0 if report is None or report.ok else 1


def _examine(store: str) -> tuple[dict[str, Any], Report]:
    with reading(store) as memory:
        report = memory.doctor()
        states: dict[str, int] = {}
        for job in memory.jobs():
            states[job.state] = states.get(job.state, 0) + 1
        users = sum(1 for _ in _everybody(memory))
    if "://" in store:
        return {"path": without_password(store), "bytes": None, "users": users, "jobs": states}, report
    path = Path(store)
    files = [path, path.with_name(path.name + "-wal")]
    on_disk = sum(file.stat().st_size for file in files if file.exists())
    return {"path": str(path.resolve()), "bytes": on_disk, "users": users, "jobs": states}, report


def _everybody(memory: Any) -> Any:
    after = None
    while page := memory.admin.users(limit=1000, after=after):
        yield from page
        after = page[-1]


def _show(screen: Screen, found: dict[str, Any], model: ModelState, store: str, report: Report | None) -> None:
    packages = ", ".join(f"{name} {number}" for name, number in found["packages"].items())
    embedder = (
        ("present", GOOD)
        if model.present
        else ("missing: search goes by words alone; `holdfast doctor --fetch-model` gets it", CHANGED)
    )
    rows: list[Any] = [
        [("holdfast", STRONG), f"{found['holdfast']}   Python {found['python']}, {found['platform']}"],
        [("packages", STRONG), packages],
        [("embedder", STRONG), embedder],
        ["", (str(model.folder), QUIET)],
    ]
    if found["store"] is None:
        rows.append([("store", STRONG), (f"there is none at {store} yet", QUIET)])
    else:
        place = found["store"]
        jobs = ", ".join(f"{number:,} {name}" for name, number in sorted(place["jobs"].items())) or "none"
        rows += [
            [("store", STRONG), place["path"]],
            [
                "",
                (
                    f"{size(place['bytes']) if place['bytes'] is not None else 'on a server'}, {count(place['users'], 'user', 'users')}; jobs: {jobs}",
                    QUIET,
                ),
            ],
        ]
    if report is not None:
        rows.append(
            [("database", STRONG), ", ".join([report.database["version"], f"schema {report.database['schema']}"])]
        )
        named = ((name, value) for name, value in report.database.items() if name not in ("version", "schema"))
        rows += [["", (f"{name}: {value}", QUIET)] for name, value in named]
    screen.columns(rows)
    if report is None:
        return
    for notice in report.notices:
        screen.line((f"notice: {notice.rule}", CHANGED), f"  {notice.where}")
        screen.line(("    help: ", QUIET), notice.hint)
    if report.ok:
        screen.line((f"sound: {count(len(report.checked), 'rule')} checked, none broken", GOOD))
        return
    screen.line((f"{count(len(report.findings), 'finding')}", BAD), f" from {count(len(report.checked), 'rule')}")
    for finding in report.findings:
        screen.line("  ", (finding.rule, BAD), f"  {finding.where}")
        screen.line(("    help: ", QUIET), finding.hint)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"


def _fetch(*, show: bool) -> None:
    with Progress("Model", unit="kB", show=show) as progress:

        def on_bytes(done: int, total: int) -> None:
            progress.done, progress.total = done // 1000, total // 1000

        got = fetch(on_bytes)
    if not got.present:
        raise CommandError(
            "no-model", "the embedding model could not be had", hint="recall works by words alone", exit_code=3
        )
    if show:
        print(f"the embedding model is at {got.folder}", file=sys.stderr)
