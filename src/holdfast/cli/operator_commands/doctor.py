"""``holdfast doctor``: check the store, and everything that Holdfast needs."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any

import typer

from ... import __version__
from ...embed import ModelState, state
from ...embed.fetch import fetch
from ...reports import Report
from ..lookup import all_users
from ..options import STORE, StoreOptions
from ..output import BAD, CHANGED, GOOD, QUIET, STRONG, Piece, ProgressBar, Screen, print_json
from ..terminal import MISSING, CommandError, count, size, to_json

PACKAGES = ("apsw", "numpy", "PyStemmer", "rich", "threadpoolctl", "typer")


def doctor(
    options: StoreOptions,
    fetch_model: Annotated[
        bool, typer.Option("--fetch-model", help="Download the embedding model first, if it is missing (83 MB).")
    ] = False,
) -> int:
    """
    Check the store, every rule that its rows must keep, and everything that Holdfast needs.

    On PostgreSQL also the server: roles, row level security, collation, settings, maintenance. It changes
    nothing. The exit code is 1 when a rule is broken; notices leave it at 0.

    \b
    Examples:
      holdfast doctor
      holdfast doctor --store chat.db --json
      holdfast doctor --store postgresql://holdfast_app@localhost/memory
    """
    if fetch_model:
        _fetch_model(show=not options.as_json)
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
    if options.store != STORE or Path(options.store).exists():
        found["store"], report = _examine(options)
        found["ok"], found["findings"], found["checked"] = report.ok, to_json(report.findings), list(report.checked)
        found["notices"], found["database"] = to_json(report.notices), dict(report.database)
    if options.as_json:
        print_json(found)
    else:
        screen = Screen()
        screen.columns([*_package_rows(found, model), *_store_rows(found["store"], options, report)])
        if report is not None:
            _show_findings(screen, report)
    return 0 if report is None or report.ok else 1


def _examine(options: StoreOptions) -> tuple[dict[str, Any], Report]:
    with options.open() as memory:
        report = memory.doctor()
        states: dict[str, int] = {}
        for job in memory.jobs():
            states[job.state] = states.get(job.state, 0) + 1
        users = sum(1 for _ in all_users(memory))
    if "://" in options.store:
        return {"path": options.shown_store, "bytes": None, "users": users, "jobs": states}, report
    path = Path(options.store)
    files = [path, path.with_name(path.name + "-wal")]
    on_disk = sum(file.stat().st_size for file in files if file.exists())
    return {"path": str(path.resolve()), "bytes": on_disk, "users": users, "jobs": states}, report


def _package_rows(found: dict[str, Any], model: ModelState) -> list[list[Piece]]:
    packages = ", ".join(f"{name} {number}" for name, number in found["packages"].items())
    missing = "missing: search compares words only; `holdfast doctor --fetch-model` downloads it"
    return [
        [("holdfast", STRONG), f"{found['holdfast']}   Python {found['python']}, {found['platform']}"],
        [("packages", STRONG), packages],
        [("embedder", STRONG), ("present", GOOD) if model.present else (missing, CHANGED)],
        ["", (str(model.folder), QUIET)],
    ]


def _store_rows(place: dict[str, Any] | None, options: StoreOptions, report: Report | None) -> list[list[Piece]]:
    if place is None or report is None:
        return [[("store", STRONG), (f"there is none at {options.store} yet", QUIET)]]
    jobs = ", ".join(f"{number:,} {name}" for name, number in sorted(place["jobs"].items())) or "none"
    where = size(place["bytes"]) if place["bytes"] is not None else "on a server"
    database = dict(report.database)
    title = f"{database.pop('version')}, schema {database.pop('schema')}"
    return [
        [("store", STRONG), place["path"]],
        ["", (f"{where}, {count(place['users'], 'user')}; jobs: {jobs}", QUIET)],
        [("database", STRONG), title],
        *(["", (f"{name}: {value}", QUIET)] for name, value in database.items()),
    ]


def _show_findings(screen: Screen, report: Report) -> None:
    for notice in report.notices:
        screen.line((f"notice: {notice.rule}", CHANGED), f"  {notice.where}")
        screen.line(("    help: ", QUIET), notice.hint)
    rules = count(len(report.checked), "rule")
    if report.ok:
        screen.line((f"healthy: {rules} checked, none broken", GOOD))
        return
    screen.line((f"{count(len(report.findings), 'finding')}", BAD), f" from {rules}")
    for finding in report.findings:
        screen.line("  ", (finding.rule, BAD), f"  {finding.where}")
        screen.line(("    help: ", QUIET), finding.hint)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"


def _fetch_model(*, show: bool) -> None:
    with ProgressBar("Model", unit="kB", show=show) as bar:
        got = fetch(lambda done, total: bar.update(done // 1000, total // 1000))
    if not got.present:
        raise CommandError(
            "no-model",
            "the embedding model could not be downloaded",
            hint="search works without it, by comparing words",
            exit_code=MISSING,
        )
    if show:
        print(f"the embedding model is at {got.folder}", file=sys.stderr)
