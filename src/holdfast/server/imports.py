"""
Files that somebody uploaded: kept for a while, looked at, and taken in as long work of the server.

Nothing is stored before the file was read whole once.  An import that was stopped, or whose process ended, goes on
where it was when the same file is taken in again: what a conversation already begins with is not stored twice.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from ..clock import new_id
from ..errors import BadInput, Conflict, HoldfastError, NotFound
from ..importers.append import Appender, Outcome, RefusedLine
from ..importers.foreign import Found, Mapped, look, user_in
from ..importers.jsonl import blocks
from ..memory import Memory
from .tasks import Step, Task, Tasks, Told, Whose

MOST_KEPT = 20
KEPT_S = 24 * 3600
MAX_NAME_CHARS = 100
LEARNING_S = 2.0


@dataclass(frozen=True, slots=True)
class Target:
    """Where an import goes, and how its file is read."""

    user: str
    org: str = "default"
    bot: str = "default"
    subject: str | None = None
    conversation: str = ""
    mapped: Mapped = field(default_factory=Mapped)
    skip_bad: bool = False


@dataclass(slots=True)
class Import:
    """One uploaded file, and what was made of it."""

    id: str
    name: str
    bytes: int
    org: str
    folder: Path
    at: datetime
    target: Target
    found: Found | None = None
    error: str = ""
    hint: str = ""
    task: Task | None = None
    outcome: Outcome = field(default_factory=Outcome)
    learning: bool = False
    facts: int = 0

    @property
    def state(self) -> str:
        """``refused``, ``checked``, or that of its task: ``ready``, ``running``, ``done``, ``failed``, ``cancelled``."""
        if self.task is not None:
            return self.task.state
        return "refused" if self.error else "checked"

    @property
    def upload(self) -> Path:
        """The file as it came."""
        return self.folder / "upload"

    @property
    def lines(self) -> Path:
        """Its messages, one a line."""
        return self.folder / "lines.jsonl"


class Imports:
    """The uploads of one server; safe to use from any thread."""

    def __init__(self, tasks: Tasks, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._tasks, self._now = tasks, now
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, Import] = OrderedDict()
        self._root: Path | None = None

    def take(self, stream: BinaryIO, name: str, org: str, bot: str) -> Import:
        """
        Keep an upload and look at it; what is wrong with it stands in ``error``.

        Raises:
            Conflict: too many are kept already.
        """
        self._let_go()
        with self._lock:
            if len(self._kept) >= MOST_KEPT:
                raise Conflict(f"{MOST_KEPT} files are kept already", hint="discard some of them")
            if self._root is None:
                self._root = Path(tempfile.mkdtemp(prefix="holdfast-import-"))  # for this user's eyes only
                self._finalizer = weakref.finalize(self, shutil.rmtree, self._root, ignore_errors=True)
            now = self._now()
            key = new_id("import", int(now.timestamp() * 1000))
            folder = self._root / key
            folder.mkdir(mode=0o700)
        one = Import(key, _shown(name), 0, org, folder, now, Target("", org, bot, conversation=_stem(name)))
        with one.upload.open("wb") as out:
            shutil.copyfileobj(stream, out, 2**20)
        one.bytes = one.upload.stat().st_size
        self.look(one, one.target)
        with self._lock:
            self._kept[key] = one
        return one

    def look(self, one: Import, target: Target) -> None:
        """Read the file as *target* says, storing nothing."""
        one.target, one.error, one.hint = target, "", ""
        try:
            one.found = look(one.upload, target.conversation or "imported", target.mapped, one.lines)
        except HoldfastError as error:
            one.found, one.error, one.hint = None, error.message, error.hint
        except (ValueError, KeyError, TypeError, AttributeError, OSError, RecursionError) as error:
            # a file of another program may be shaped in any way; its words are not repeated
            one.found, one.error = None, f"it is not shaped as was expected ({type(error).__name__})"

    def get(self, key: str, org: str) -> Import:
        """
        One upload of an org.

        Raises:
            NotFound: it was never here, or has been let go of.
        """
        with self._lock:
            one = self._kept.get(key)
        if one is None or one.org != org:
            raise NotFound(f"there is no import {key!r}", hint="files are kept for a day; upload it again")
        return one

    def of(self, org: str) -> list[Import]:
        """The uploads of an org, the newest first."""
        with self._lock:
            return [one for one in reversed(self._kept.values()) if one.org == org]

    def start(self, one: Import, memory: Memory) -> None:
        """
        Take it in, in the background.

        Raises:
            BadInput: it cannot be taken in so.
            Conflict: it is being taken in.
        """
        if one.state in ("ready", "running"):
            raise Conflict("this import is running already")
        if one.found is None:
            raise BadInput("this file cannot be read", hint=one.hint)
        target = one.target
        if one.found.format != "user" and not target.user:
            raise BadInput("an import needs to know whose memory it goes to", hint="name the user")
        if one.found.survey.bad and not target.skip_bad:
            raise BadInput("some lines cannot be used", hint="leave them out, or mend the file")
        one.outcome, one.facts, one.learning = Outcome(), 0, False
        whose = Whose(target.org, target.user or one.found.user, target.bot, target.subject)
        one.task = self._tasks.order("import", whose, lambda step: self._work(one, memory, step))

    def stop(self, one: Import) -> None:
        """End it after the block that it is in; what is stored stays."""
        if one.task is not None:
            self._tasks.cancel(one.task.id)

    def discard(self, one: Import) -> None:
        """Forget the file; what was stored stays."""
        self.stop(one)
        with self._lock:
            self._kept.pop(one.id, None)
        if one.task is None or one.task.over.wait(30):
            shutil.rmtree(one.folder, ignore_errors=True)

    def close(self) -> None:
        """Delete every file."""
        with self._lock:
            self._kept.clear()
            root, self._root = self._root, None
        if root is not None:
            self._finalizer()

    def _let_go(self) -> None:
        now = self._now()
        with self._lock:
            old = [one for one in self._kept.values() if (now - one.at).total_seconds() > KEPT_S]
        for one in old:
            if one.state not in ("ready", "running"):
                self.discard(one)

    def _work(self, one: Import, memory: Memory, step: Step) -> Told:
        found, target = one.found, one.target
        assert found is not None
        if found.format == "user":
            data = {**user_in(one.upload), "org": target.org}
            memory.import_(data | ({"user": target.user} if target.user else {}))
        else:
            self._append(one, memory, step)
        _learn(one, memory, step)
        return _report(one)

    def _append(self, one: Import, memory: Memory, step: Step) -> None:
        found, target = one.found, one.target
        assert found is not None
        total = found.survey.messages
        whose: dict[str, Any] = {"user": target.user, "org": target.org, "bot": target.bot, "subject": target.subject}
        appender = Appender(lambda name: memory.conversation(name, **whose), target.skip_bad, one.outcome)
        step(0, total)
        with one.lines.open("rb") as stream:
            read = blocks(stream, target.conversation or "imported", found.survey)
            try:
                appender.run(read, lambda so_far: step(min(so_far.done, total - 1), total))
            except RefusedLine as error:
                where = f"line {error.bad.number}: {error.bad.problem}"
                raise BadInput(where, hint=f"{error.bad.fix}; or leave such lines out") from error
        if one.outcome.skipped:
            raise Conflict(f"nothing was stored: {target.user} is {one.outcome.skipped}", hint="resume memory first")
        for name in found.survey.conversations if one.outcome.stored else ():
            memory.conversation(name, **whose).end()


def _learn(one: Import, memory: Memory, step: Step) -> None:
    """Do the work that the messages ordered; stopping leaves it to the background."""
    one.learning = True
    while True:
        report = memory.digest(LEARNING_S)
        one.facts += report.facts
        step(0, 0)
        if not report.jobs:
            return


def _report(one: Import) -> dict[str, Any]:
    found = one.found.survey.conversations if one.found else {}
    return {"stored": one.outcome.stored, "known": one.outcome.known, "conversations": len(found)}


def _shown(name: str) -> str:
    last = name.replace("\\", "/").rsplit("/", 1)[-1]
    return "".join(letter for letter in last if letter.isprintable())[:MAX_NAME_CHARS] or "file"


def _stem(name: str) -> str:
    return Path(_shown(name)).stem[:MAX_NAME_CHARS] or "imported"
