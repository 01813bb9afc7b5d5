"""``holdfast store backup``, ``verify``, ``restore``, ``ledger`` and ``replay``: backups, and the erasure log beside them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import holdfast

from ..options import STORE, DryRun, JsonOptions, StoreOptions
from ..output import BAD, GOOD, QUIET, STRONG, ProgressBar, Screen, print_json
from ..terminal import CommandError, count, size, to_json

if TYPE_CHECKING:
    from ...reports import BackupReport, ReplayReport

Ledgers = Annotated[
    list[str] | None,
    typer.Option("--ledger", metavar="FILE", help="An erasure log that `store ledger` wrote; may be repeated."),
]
BackupFile = Annotated[str, typer.Argument(metavar="BACKUP", help="The file that `store backup` wrote.")]


def backup(
    options: StoreOptions,
    file: Annotated[str, typer.Argument(metavar="FILE", help="The file to write; it must not exist yet.")],
) -> int:
    """
    Back up the whole store to a file while it is in use. Never copy the store's file: its log would be missing.

    The backup holds one moment, of a PostgreSQL database too, and the checksums that `store verify` compares.

    \b
    Examples:
      holdfast store backup chat-2026-11-21.db
      holdfast store backup /backups/chat.db --store postgresql://holdfast_app@localhost/memory
    """

    def written() -> str:
        try:
            parts = Path(file).parent.glob(f"{Path(file).name}.part-*")
            return size(max((part.stat().st_size for part in parts), default=0))
        except FileNotFoundError:  # it was just renamed
            return ""

    with options.open() as memory, ProgressBar("Backup", show=not options.as_json, watch=written):
        memory.backup(file)
    count_bytes = os.path.getsize(file)
    if options.as_json:
        print_json({"backup": str(Path(file).resolve()), "bytes": count_bytes})
        return 0
    screen = Screen()
    screen.line((file, STRONG), f"   {size(count_bytes)}; only you can read it")
    screen.line((f"to check it: holdfast store verify {file}", QUIET))
    return 0


def verify(options: JsonOptions, backup: BackupFile, ledger: Ledgers = None) -> int:
    """
    Check a backup without changing it: whether every table is complete, every rule holds, and what
    it holds that was erased since.

    The exit code is 1 when a rule is broken. Holding what was erased since is not an error:
    `store restore` erases it again.

    \b
    Examples:
      holdfast store verify chat-2026-11-21.db
      holdfast store verify chat-2026-11-21.db --ledger erased.json
    """
    ledgers = [_read_ledger(file) for file in ledger or ()]
    with ProgressBar("Verify", show=not options.as_json):
        report = holdfast.verify_backup(backup, ledgers=ledgers)
    if options.as_json:
        print_json(to_json(report))
    else:
        _show_report(Screen(), report, "holds")
    return 0 if report.sound else 1


def restore(
    options: JsonOptions,
    backup: BackupFile,
    to: Annotated[
        str, typer.Option("--to", metavar="PATH", help="Where to restore it: a path, or postgresql://…")
    ] = STORE,
    ledger: Ledgers = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace what is there: a file is kept, rows of a database are not.")
    ] = False,
) -> int:
    """
    Restore a backup, after erasing in it what was erased since it was made.

    The erasure log of the store that is replaced is used without being named. Stop the server and
    its workers first. Nothing is in place before everything has succeeded.

    \b
    Examples:
      holdfast store restore chat-2026-11-21.db --to chat.db --replace
      holdfast store restore chat-2026-11-21.db --to chat.db --ledger erased.json
      holdfast store restore chat-2026-11-21.db --to postgresql://postgres@localhost/memory
    """
    ledgers = [_read_ledger(file) for file in ledger or ()]
    with ProgressBar("Restore", unit="rows", show=not options.as_json) as bar:
        report = holdfast.restore_backup(backup, to, ledgers=ledgers, replace=replace, progress=bar.update)
    if options.as_json:
        print_json(to_json(report))
        return 0
    screen = Screen()
    _show_report(screen, report, "erased again")
    screen.line(("restored at ", QUIET), (report.path, STRONG))
    if report.replaced:
        screen.line((f"the previous file is kept at {report.replaced}: remove it when all is well", QUIET))
    if not report.replayed:
        screen.line(("there was no erasure log: what was erased since the backup is back", BAD))
    return 0


def ledger(
    options: StoreOptions,
    file: Annotated[
        str | None, typer.Argument(metavar="FILE", help="The file to write (default: standard output).")
    ] = None,
) -> int:
    """
    Export the erasure log, so that what was erased stays erased when an older backup is restored.

    It holds digests, numbers and times; no names and no erased words. Keep it outside of the store, and
    as new as you can: a restore without it brings erased data back.

    \b
    Examples:
      holdfast store ledger erased.json
      holdfast store ledger > erased.json
    """
    with options.open() as memory:
        found = memory.admin.erasures.export()
    if file is None:
        print_json(found)
        return 0
    temporary = f"{file}.part-{os.getpid()}"
    try:
        descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with open(descriptor, "w", encoding="utf-8") as writing:
            json.dump(found, writing, ensure_ascii=False, indent=1)
            writing.flush()
            os.fsync(writing.fileno())
        os.replace(temporary, file)  # the log only grows, so the new one is never the worse one
    except OSError as error:
        Path(temporary).unlink(missing_ok=True)
        words = f"{file} cannot be written: {error.strerror}"
        raise CommandError("no-file", words, hint="name another file") from error
    if options.as_json:
        print_json({"file": str(Path(file).resolve()), "entries": len(found["erased"])})
    else:
        entries, choices = count(len(found["erased"]), "erasure"), count(len(found["choices"]), "choice")
        Screen().line((file, STRONG), f"   {entries}, {choices} to pause or opt out")
    return 0


def replay(
    options: StoreOptions,
    ledger: Annotated[str, typer.Argument(metavar="LEDGER", help="The newest log that `store ledger` wrote.")],
    dry_run: DryRun = False,
) -> int:
    """
    Erase again what was erased since, in a store that was restored by other means.

    Run it after pg_restore, a point-in-time recovery or a disk snapshot, before the server and its
    workers start. `store restore` does this by itself. It can be repeated.

    \b
    Examples:
      holdfast store replay erased.json --store postgresql://holdfast_app@localhost/memory
      holdfast store replay erased.json --dry-run
    """
    data, done = _read_ledger(ledger), [0]

    def on_users(number: int) -> None:
        done[0] = number

    bar = ProgressBar("Replay", show=not options.as_json, watch=lambda: count(done[0], "user"))
    with options.open() as memory, bar:
        report = memory.admin.erasures.replay(data, dry_run=dry_run, progress=on_users)
    if options.as_json:
        print_json(to_json(report))
        return 0
    _show_replay(Screen(), report, "holds" if dry_run else "erased again")
    return 0


def _read_ledger(file: str) -> Any:
    try:
        return json.loads(Path(file).read_text(encoding="utf-8"))
    except OSError as error:
        words = f"{file} cannot be read: {error.strerror}"
        raise CommandError("no-file", words, hint="name an erasure log") from error
    except ValueError as error:
        hint = "`holdfast store ledger FILE` writes one"
        raise CommandError("bad-input", f"{file} is not an erasure log: {error}", hint=hint) from error


def _show_report(screen: Screen, report: BackupReport, verb: str) -> None:
    state = ("intact", GOOD) if report.sound else (count(len(report.findings), "finding"), BAD)
    screen.line((report.backup, STRONG), "   ", state, f", {count(report.users, 'user')}")
    rows = count(sum(report.rows.values()), "row")
    if report.made_at is None:
        screen.line((f"  {rows}; it holds no checksums, so only its rules were checked", QUIET))
    else:
        screen.line((f"  {rows}, compared with what was written on {report.made_at:%Y-%m-%d at %H:%M} UTC", QUIET))
    for finding in report.findings:
        screen.line("  ", (finding.rule, BAD), f"  {finding.where}   {finding.hint}")
    for one in report.replayed:
        _show_replay(screen, one, verb)


def _show_replay(screen: Screen, one: ReplayReport, verb: str) -> None:
    kinds = ", ".join(count(number, kind) for kind, number in one.held.items()) or "nothing"
    choices = f"; {count(one.choices, 'choice')} to pause or opt out" if one.choices else ""
    words = f"  {verb}: {kinds} of what was erased since the backup{choices}"
    screen.line(words, (f"   an erasure log of {count(one.entries, 'entry')}", QUIET))
