"""``holdfast store``: backup, verify, restore, and the ledger of what was erased: written down, replayed."""

from __future__ import annotations

import json
import os
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import STORE, Dry, Json, Store, commands, reading
from .plain import CommandError
from .progress import Progress
from .screen import BAD, GOOD, QUIET, STRONG, Screen, print_json
from .values import plain
from .words import count, size

if TYPE_CHECKING:
    from ..reports import BackupReport, ReplayReport

app = commands()

Ledgers = Annotated[
    list[str] | None,
    typer.Option("--ledger", metavar="FILE", help="What `store ledger` wrote of a newer copy; may be repeated."),
]
Backup = Annotated[str, typer.Argument(metavar="BACKUP", help="The file that `store backup` wrote.")]


@app.command()
def backup(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Where to write it; must not be there yet.")],
    store: Store = STORE,
    as_json: Json = False,
) -> int:
    """
    Copy the whole store to a file while it is in use. Never copy the file itself: its log would be missing.

    It holds one moment, of a PostgreSQL database too, and what `store verify` needs to see that it is whole.

    \b
    Examples:
      holdfast store backup chat-2026-11-21.db
      holdfast store backup /backups/chat.db --store postgresql://holdfast_app@localhost/memory
    """
    with reading(store) as memory, Progress("Backup", show=not as_json, watch=partial(_written, file)):
        memory.backup(file)
    written = os.path.getsize(file)
    if as_json:
        print_json({"backup": str(Path(file).resolve()), "bytes": written})
        return 0
    screen = Screen()
    screen.line((file, STRONG), f"   {size(written)}; only you can read it")
    screen.line((f"check it: holdfast store verify {file}", QUIET))
    return 0


@app.command()
def verify(backup: Backup, ledger: Ledgers = None, as_json: Json = False) -> int:
    """
    Check a backup, without changing it: that every table is as it was written, every rule, and what
    it holds that was erased since.

    The exit code is 1 when a rule is broken. What was erased since is no fault: `store restore`
    erases it again.

    \b
    Examples:
      holdfast store verify chat-2026-11-21.db
      holdfast store verify chat-2026-11-21.db --ledger erased.json
    """
    ledgers = [_read(file) for file in ledger or ()]
    with Progress("Verify", show=not as_json):
        report = import_module("holdfast.importers.backups").verify_backup(backup, ledgers=ledgers)
    if as_json:
        print_json(plain(report))
    else:
        _show(report, "holds")
    return 0 if report.sound else 1


@app.command()
def restore(
    backup: Backup,
    to: Annotated[
        str, typer.Option("--to", metavar="PATH", help="Where the memory shall be: a path, or postgresql://…")
    ] = STORE,
    ledger: Ledgers = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace what is there: a file is kept, a database's rows are not.")
    ] = False,
    as_json: Json = False,
) -> int:
    """
    Put a backup in place, after erasing in it what was erased since it was made.

    The ledger of the memory that is replaced counts without being named. Stop the server and its
    workers first. Nothing is in place before everything has succeeded.

    \b
    Examples:
      holdfast store restore chat-2026-11-21.db --to chat.db --replace
      holdfast store restore chat-2026-11-21.db --to chat.db --ledger erased.json
      holdfast store restore chat-2026-11-21.db --to postgresql://postgres@localhost/memory
    """
    ledgers = [_read(file) for file in ledger or ()]
    with Progress("Restore", unit="rows", show=not as_json) as progress:

        def on_rows(done: int, total: int) -> None:
            progress.done, progress.total = done, total

        backups = import_module("holdfast.importers.backups")
        report = backups.restore_backup(backup, to, ledgers=ledgers, replace=replace, progress=on_rows)
    if as_json:
        print_json(plain(report))
        return 0
    _show(report, "held, and lost again,")
    screen = Screen()
    screen.line(("in place at ", QUIET), (report.path, STRONG))
    if report.replaced:
        screen.line((f"the file that was there is kept at {report.replaced}: remove it when all is well", QUIET))
    if not report.replayed:
        screen.line(("no ledger was there: what was erased since the backup is back", BAD))
    return 0


@app.command()
def ledger(
    file: Annotated[str | None, typer.Argument(metavar="FILE", help="Where to write it; else standard output.")] = None,
    store: Store = STORE,
    as_json: Json = False,
) -> int:
    """
    Write down what was erased, so that it stays erased when an older backup is restored.

    Digests, numbers and times: no name and no word of what went. Keep it elsewhere than the store,
    as new as you can: a restore without it brings erased things back.

    \b
    Examples:
      holdfast store ledger erased.json
      holdfast store ledger > erased.json
    """
    with reading(store) as memory:
        found = memory.admin.erasures.export()
    if file is None:
        print_json(found)
        return 0
    part = f"{file}.part-{os.getpid()}"
    try:
        with open(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="utf-8") as writing:
            json.dump(found, writing, ensure_ascii=False, indent=1)
            writing.flush()
            os.fsync(writing.fileno())
        os.replace(part, file)  # it grows only, so the older one is never the better one
    except OSError as error:
        Path(part).unlink(missing_ok=True)
        raise CommandError("no-file", f"{file} cannot be written: {error.strerror}", hint="name another") from error
    if as_json:
        print_json({"file": str(Path(file).resolve()), "entries": len(found["erased"])})
    else:
        entries, choices = count(len(found["erased"]), "erasure"), count(len(found["choices"]), "choice")
        Screen().line((file, STRONG), f"   {entries}, {choices} to pause or opt out")
    return 0


@app.command()
def replay(
    ledger: Annotated[str, typer.Argument(metavar="LEDGER", help="What `store ledger` wrote of the newest copy.")],
    store: Store = STORE,
    dry_run: Dry = False,
    as_json: Json = False,
) -> int:
    """
    Erase again what was erased since, in a store that was put back by other means.

    After pg_restore, a point-in-time recovery, or a snapshot of a disk: run it before the server and
    its workers start. `store restore` does it by itself. It can be repeated.

    \b
    Examples:
      holdfast store replay erased.json --store postgresql://holdfast_app@localhost/memory
      holdfast store replay erased.json --dry-run
    """
    data, seen = _read(ledger), [0]

    def on_users(number: int) -> None:
        seen[0] = number

    with (
        reading(store) as memory,
        Progress("Replay", show=not as_json, watch=lambda: count(seen[0], "user", "users")),
    ):
        report = memory.admin.erasures.replay(data, dry_run=dry_run, progress=on_users)
    if as_json:
        print_json(plain(report))
        return 0
    _replayed(Screen(), report, "holds" if dry_run else "held, and lost again,")
    return 0


def _written(file: str) -> str:
    """How much of a backup is on the disk by now."""
    try:
        return size(
            max((part.stat().st_size for part in Path(file).parent.glob(f"{Path(file).name}.part-*")), default=0)
        )
    except FileNotFoundError:  # it has just got its name
        return ""


def _read(file: str) -> Any:
    try:
        return json.loads(Path(file).read_text(encoding="utf-8"))
    except OSError as error:
        raise CommandError("no-file", f"{file} cannot be read: {error.strerror}", hint="name a ledger") from error
    except ValueError as error:
        hint = "`holdfast store ledger FILE` writes one"
        raise CommandError("bad-input", f"{file} is not a ledger: {error}", hint=hint) from error


def _show(report: BackupReport, holds: str) -> None:
    screen = Screen()
    state = ("sound", GOOD) if report.sound else (count(len(report.findings), "finding"), BAD)
    screen.line((report.backup, STRONG), "   ", state, f", {count(report.users, 'user', 'users')}")
    rows = count(sum(report.rows.values()), "row")
    if report.made_at is None:
        screen.line(
            (f"  {rows}; what it held when it was made stands nowhere in it, so only its rules were checked", QUIET)
        )
    else:
        screen.line((f"  {rows}, compared with what was written on {report.made_at:%Y-%m-%d at %H:%M} UTC", QUIET))
    for finding in report.findings:
        screen.line("  ", (finding.rule, BAD), f"  {finding.where}   {finding.hint}")
    for one in report.replayed:
        _replayed(screen, one, holds)


def _replayed(screen: Screen, one: ReplayReport, holds: str) -> None:
    kinds = ", ".join(count(number, kind, "users" if kind == "user" else "") for kind, number in one.held.items())
    since = f"; {count(one.choices, 'choice')} to pause or opt out" if one.choices else ""
    words = f"{holds} {kinds or 'nothing'} of what was erased since{since}"
    screen.line(f"  {words}", (f"   a ledger of {count(one.entries, 'entry', 'entries')}", QUIET))
