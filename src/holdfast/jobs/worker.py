"""
The workers: run due jobs until none is left, inline or in background threads, each user's with the right model.

This is the one place that catches every error of a handler: it becomes a job state with a reason and a retry, never a
lost job and never an empty result.

A user's own model reads, summarizes and merges for that user alone; without one it is their organization's, the memory's,
or the rules.  A key that cannot be opened is not passed over: messages that were meant for one provider do not go to
another.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar

from ..config import Config
from ..errors import HoldfastError, StoreClosed, StoreError
from ..llm import from_address
from ..llm.guard import Address, Guard, address_for_key
from ..llm.protocol import Answer, LanguageModel, ModelError, Request
from ..llm.sealing import Keyring, keyring
from ..reconcile.archive import CONSOLIDATE, UPKEEP
from ..reports import DigestReport
from ..scope import BACKGROUND, Scope, acting
from ..store import ProviderKeyRow, Store, WriteView
from ..text import dataclass
from ..types import Job, Message
from .facts import FactReader, ReadAhead
from .model_client import SETUP_WAIT_MS, CallDeferred, ModelClient
from .model_reader import ModelReader, ReadMessages
from .queue import Dependencies, Handler, Queue, ReadMode, scope_of
from .rebuild import RangeWriter, Rebuilder, ResummarizeRange
from .summaries import RESUMMARIZE, CloseChunks, ReadEpisodes, TellStory
from .upkeep import Consolidate, EmbedDocs, Upkeep

log = logging.getLogger("holdfast")

_IDLE_SECONDS = 1.0
_GATHER_SECONDS, _MOST_GATHER_SECONDS = 0.1, 0.5  # waited for more after a message, and at most
_AT_ONCE_SECONDS = 0.25  # of work that is claimed together
_AT_ONCE_WAIT_SECONDS = 2.0  # the longest that a caller waits for quick jobs of its user before its own is run
_QUICK_SECONDS = 0.5
_LET_GO_SECONDS = 0.5  # after which kept jobs that no thread has asked for are for other processes
_MOST_AT_ONCE = 16
# All kinds of jobs in the order of their cost: cheap and urgent work first.
KINDS = ("extract", "read", "episodes", RESUMMARIZE, "chunk", "story", CONSOLIDATE, UPKEEP, "embed")
LAST_KINDS = ("story",)  # told of all a user's chunks at once, not anew after each
MODEL_KINDS = ("read", "episodes", RESUMMARIZE)
ASKING_KINDS = (*MODEL_KINDS, "chunk", "story", CONSOLIDATE)  # call a model where there is one
# For so long another process's change of a key is not seen.
KEY_CACHE_SECONDS = 2.0
_MAX_USERS, _MAX_MODELS = 10_000, 64
T = TypeVar("T")


def attempt(queue: Queue, job: Job) -> DigestReport:
    """
    Run one claimed job and settle it, whether it succeeds or fails.

    Raises:
        StoreError: the store itself fails; the lease runs out and the job is claimed again.
        KeyboardInterrupt: the program was stopped; the job is ready again at once.
    """
    began = time.perf_counter()
    queue.observer.report("busy", job.kind, 1)
    try:
        report = _settled(queue, job)
    finally:
        queue.observer.report("busy", job.kind, -1)
    ended = "waiting" if report.waiting else "failed" if report.failed else "done"
    queue.observer.report("job", job.kind, time.perf_counter() - began)
    queue.observer.report(f"job.{ended}", job.kind, 1)
    return report


def _settled(queue: Queue, job: Job) -> DigestReport:
    try:
        return queue.run(job)
    except StoreError:
        raise
    except KeyboardInterrupt:
        # a program that starts again at once need not wait until the lease ends
        with suppress(StoreError):
            queue.release(job)
        raise
    except CallDeferred as error:
        return queue.wait(job, error.message, error.until_ms)
    except Exception as error:  # noqa: BLE001 - the one place: every failure becomes a job state
        reason = reason_of(error)
        log.warning("job %s (%s) failed in attempt %d: %s", job.id, job.kind, job.attempt, reason)
        if not isinstance(error, ModelError):
            return queue.retry_later(job, reason)
        if error.setup:
            return queue.wait(job, reason, queue.now_ms() + SETUP_WAIT_MS) + DigestReport(failed=1)
        asked_ms = math.ceil(1000 * (error.retry_after_s or 0))
        return queue.retry_later(job, reason, not_before_ms=asked_ms, final=not error.transient)


def reason_of(error: Exception) -> str:
    """Return the reason to store: the text of our own errors, else the class alone (its text may quote a message)."""
    return f"{error.code}: {error}" if isinstance(error, HoldfastError) else type(error).__name__


def drain(
    queue: Queue,
    *,
    kinds: Sequence[str] = (),
    user: Scope | None = None,
    deadline: float | None = None,
    ahead_ms: int = 0,
) -> DigestReport:
    """
    Run jobs until none is due or *deadline* (``time.monotonic``) has passed.

    With *user* only that user's, those due within *ahead_ms* too.
    """
    report = DigestReport()
    while deadline is None or time.monotonic() < deadline:
        job = queue.claim(kinds=kinds, user=user, ahead_ms=ahead_ms)
        if job is None:
            break
        report += attempt(queue, job)
    return report


def read_ahead(reader: FactReader, scope: Scope, said: Sequence[Message]) -> ReadAhead | None:
    """Read messages for facts before they are stored; ``None`` where that fails, as a job then says what is wrong."""
    try:
        return reader.read_ahead(scope, said)
    except StoreError:
        raise
    except Exception as error:  # noqa: BLE001 - a message that cannot be read is stored all the same
        log.warning("messages could not be read before they were stored: %s", reason_of(error))
        return None


def store_and_learn(
    store: Store, scope: Scope, work: Callable[[WriteView, ReadAhead | None], T], ahead: ReadAhead | None
) -> T:
    """Run *work* in one transaction with what was read ahead, or without it where it cannot be learned."""
    failed: Exception | None = None
    if ahead is not None:
        try:
            return store.write(scope, lambda view: work(view, ahead))
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - as above; what is wrong with the messages themselves is raised again
            failed = error
    answer = store.write(scope, lambda view: work(view, None))
    if failed is not None:
        log.warning("what messages state could not be learned with them: %s", reason_of(failed))
    return answer


def drain_at_once(queue: Queue, workers: Workers | None, kind: str, user: Scope, ahead_ms: int) -> DigestReport:
    """
    Run the jobs of a kind of one user now, for a caller who waits for what they give.

    A user's jobs run one after another: where a thread is inside a quick one, this waits for it, two seconds at most.
    """
    until = time.monotonic() + _AT_ONCE_WAIT_SECONDS
    while True:
        busy = workers is not None and workers.holds_quick(user, kind)
        report = drain(queue, kinds=(kind,), user=user, ahead_ms=ahead_ms)
        if workers is None or report != DigestReport() or time.monotonic() > until:
            return report
        if not busy and not workers.holds_quick(user, kind):
            return report
        workers.wait_for_quick(user, kind, until)


class Workers:
    """
    Background threads over one queue; they sleep until woken or until a job is due.

    The first thread begins with *prepare*, which orders work that messages do not.  *when_idle* is called while there is none.  One thread in a second looks for work
    while there is none, however many sleep.  Each gathers for a moment what follows a message.
    Jobs of a kind that is quick are claimed several at a time, as many as a quarter
    of a second of all threads can do: what is claimed here waits for nobody else.  Once no thread has asked for the others
    for half a second, they are let go.
    """

    def __init__(
        self,
        queue: Queue,
        count: int,
        prepare: Callable[[], object] | None = None,
        when_idle: Callable[[], object] | None = None,
    ) -> None:
        self._queue = queue
        self._count = count
        self._prepare = prepare
        self._when_idle = when_idle
        self._stop = threading.Event()
        self._looking = 0
        self._held: dict[int, Job] = {}  # by the thread that is inside it
        self._done = [0] * 64  # jobs that ended, by the hash of their user
        self._idle = threading.Condition()
        self._looked_at = 0.0
        self._job_seconds: dict[str, float] = {}  # how long a job of a kind took lately
        self._keeping = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(number,), name=f"holdfast-worker-{number}", daemon=True)
            for number in range(count)
        ]
        self._threads.append(threading.Thread(target=self._watch, name="holdfast-worker-watch", daemon=True))
        for thread in self._threads:
            thread.start()

    def wake(self) -> None:
        """Wake the threads to look for jobs."""
        self._queue.wake.set()

    def drain(self, deadline: float | None, user: Scope | None = None) -> DigestReport:
        """
        Run what is due beside the threads, and wait for the jobs that they hold, until neither is left.

        With *user* only that user's.  Stops at *deadline* (``time.monotonic``).
        """
        report = DigestReport()
        while True:
            with self._idle:
                while (self._looking or self._holds(user)) and (deadline is None or time.monotonic() < deadline):
                    self._idle.wait(0.05 if deadline is None else max(0.0, min(0.05, deadline - time.monotonic())))
                done = self._ended(user)
            ran = drain(self._queue, user=user, deadline=deadline)
            report += ran
            with self._idle:
                settled = done == self._ended(user) and not self._looking and not self._holds(user)
            if (settled and ran == DigestReport()) or (deadline is not None and time.monotonic() >= deadline):
                return report

    def _holds(self, user: Scope | None) -> bool:
        """Whether a thread is inside a job, with *user* one of that user's."""
        whose = [(job.org, job.user, job.bot) for job in self._held.values()]
        return bool(whose) if user is None else user.user_key in whose

    def holds_quick(self, user: Scope, kind: str) -> bool:
        """Whether a thread is inside a user's job of that kind, or one that took little time lately."""
        mine = [job.kind for job in [*self._held.values()] if (job.org, job.user, job.bot) == user.user_key]
        unknown = {one: _QUICK_SECONDS for one in ASKING_KINDS}  # a model may be asked: that takes long
        return any(one == kind or self._job_seconds.get(one, unknown.get(one, 0.0)) < _QUICK_SECONDS for one in mine)

    def wait_for_quick(self, user: Scope, kind: str, until: float) -> None:
        """Wait until no thread is inside such a job of a user, or until a time (``time.monotonic``)."""
        with self._idle:
            while self.holds_quick(user, kind) and (left := until - time.monotonic()) > 0:
                self._idle.wait(left)

    def _ended(self, user: Scope | None) -> int:
        """Return how many jobs the threads have ended, with *user* those of that user and a few others."""
        bucket = None if user is None else hash((user.org, user.user, user.bot)) % len(self._done)
        return sum(self._done) if bucket is None else self._done[bucket]

    def stop(self) -> None:
        """End each thread after its current job; pending jobs stay in the store."""
        self._stop.set()
        self._queue.wake.set()
        self._keeping.set()
        for thread in self._threads:
            thread.join()
        with suppress(StoreError):
            self._queue.let_go()

    def _run(self, number: int) -> None:
        with acting(BACKGROUND):
            self._serve(number)

    def _serve(self, number: int) -> None:
        prepare = self._prepare if number == 0 else None
        while not self._stop.is_set():
            try:
                if prepare is not None:
                    prepare()
                    prepare = None
                worked = self._one()
            except StoreClosed:
                return
            except StoreError as error:
                log.warning("background work waits for the store to answer: %s", error)
                worked = False
            while not worked and not self._stop.is_set():
                if self._queue.wake.wait(_IDLE_SECONDS):
                    self._gather()
                    break
                if time.monotonic() - self._looked_at >= 0.9 * _IDLE_SECONDS:
                    if self._when_idle is not None:
                        self._when_idle()
                    break

    def _gather(self) -> None:
        """Wait a moment for the messages that follow, the reply above all: their work is done at once."""
        until = time.monotonic() + _MOST_GATHER_SECONDS
        self._queue.wake.clear()
        while not self._queue.keeps and not self._stop.is_set() and time.monotonic() < until:
            if not self._queue.wake.wait(_GATHER_SECONDS):
                break
            self._queue.wake.clear()

    def _watch(self) -> None:
        """Let go of kept jobs while every thread is inside a slow one."""
        while not self._stop.is_set():
            self._keeping.wait()
            self._keeping.clear()
            while self._queue.keeps and not self._stop.is_set():
                left = self._looked_at + _LET_GO_SECONDS - time.monotonic()
                if left <= 0:
                    self._queue.let_go()
                else:
                    self._stop.wait(left)

    def _several(self) -> dict[str, int]:
        """Return how many jobs of a kind to claim together; one of a kind that has not run yet."""
        work = _AT_ONCE_SECONDS * self._count
        known = dict(self._job_seconds)
        return {kind: max(1, min(_MOST_AT_ONCE, int(work / max(took, 0.001)))) for kind, took in known.items()}

    def _one(self) -> bool:
        with self._idle:
            self._looking += 1
        job = None
        try:
            self._looked_at = time.monotonic()
            job = self._queue.claim(several=self._several())
        finally:
            with self._idle:
                self._looking -= 1
                if job is not None:
                    self._held[threading.get_ident()] = job
                self._idle.notify_all()
            if self._queue.keeps:
                self._keeping.set()
        if job is None:
            return False
        began = time.monotonic()
        try:
            attempt(self._queue, job)
            return True
        finally:
            took = time.monotonic() - began
            before = self._job_seconds.get(job.kind, took)
            self._job_seconds[job.kind] = max(
                took, 0.8 * before + 0.2 * took
            )  # one slow job stops the rest for a while
            with self._idle:
                del self._held[threading.get_ident()]
                self._done[hash((job.org, job.user, job.bot)) % len(self._done)] += 1
                self._idle.notify_all()


@dataclass(frozen=True, slots=True)
class ModelWork:
    """The handlers of all jobs with one model, or with the rules alone when ``client`` is ``None``."""

    client: ModelClient | None
    read_mode: ReadMode
    facts: FactReader
    rebuilder: Rebuilder
    consolidation: Consolidate
    handlers: Mapping[str, Handler]


def model_work(deps: Dependencies, model: LanguageModel | None, label: str = "") -> ModelWork:
    """
    Build the handlers that work with *model*, which metrics name *label*.

    Raises:
        ConfigError: there is a budget in dollars and the model's price is not known.
    """
    fact_reader = FactReader(deps, statements=model is None)
    client = reader = metered = None
    if model is not None:
        client = ModelClient(deps.store, deps.config, model, deps.now_ms, deps.observer, label)
        reader, metered = ModelReader(client, fact_reader), ModelReader(client.metered(), fact_reader)
    rebuilder = Rebuilder(deps, RangeWriter(fact_reader, metered))
    consolidation = Consolidate(deps, client)
    handlers: dict[str, Handler] = {"extract": fact_reader}
    if reader is not None:
        handlers |= {"read": ReadMessages(reader), "episodes": ReadEpisodes(reader)}
        handlers[RESUMMARIZE] = ResummarizeRange(rebuilder)
    handlers |= {
        "chunk": CloseChunks(deps, reader),
        "story": TellStory(deps, reader),
        CONSOLIDATE: consolidation,
        UPKEEP: Upkeep(deps),
    }
    if deps.embedder is not None:
        handlers["embed"] = EmbedDocs(deps, deps.remembered or deps.embedder)
    read_mode: ReadMode = "" if client is None else "chunks" if deps.config.economy else "turns"
    return ModelWork(client, read_mode, fact_reader, rebuilder, consolidation, handlers)


@dataclass(frozen=True, slots=True)
class UnavailableModel:
    """A model that cannot be called until its key or address is repaired; ``reason`` says how."""

    name: str
    reason: HoldfastError

    def ask(self, request: Request) -> Answer:
        """
        Refuse the call.

        Raises:
            ModelError: always.
        """
        raise ModelError(self.reason.message, hint=self.reason.hint, transient=False, setup=True)

    def price(self, input_tokens: int, output_tokens: int, cached_tokens: int = 0) -> float:
        """Return 0, as no call is made."""
        return 0.0


class UserModels:
    """The models that users and organizations brought a key for; safe to use from any thread."""

    def __init__(self, store: Store, config: Config, clock: Callable[[], float] = time.monotonic) -> None:
        self._store, self._config, self._clock = store, config, clock
        self.guard = Guard.of(config.allow_private_endpoints)
        self._lock = threading.Lock()
        self._new_keyring: Keyring | None = None
        self._any = (float("-inf"), False)
        self._rows: OrderedDict[tuple[str, str], tuple[float, ProviderKeyRow | None]] = OrderedDict()
        self._models: OrderedDict[ProviderKeyRow, LanguageModel] = OrderedDict()

    def keyring(self) -> Keyring:
        """
        Return the master keys of this process.

        Raises:
            ConfigError: the environment's master key is none.
        """
        return self._new_keyring or keyring()

    def use_keyring(self, ring: Keyring) -> None:
        """Seal with other master keys from now on."""
        self._new_keyring = ring
        self.forget()

    def forget(self) -> None:
        """Drop the cached keys, and read them from the store again."""
        with self._lock:
            self._any = (float("-inf"), False)
            self._rows.clear()

    def any(self) -> bool:
        """Whether any user or organization brought a key."""
        at, found = self._any
        if self._clock() - at >= KEY_CACHE_SECONDS:
            found = self._store.any_provider_key()
            self._any = (self._clock(), found)
        return found

    def row(self, org: str, user: str) -> ProviderKeyRow | None:
        """Return the key of the user, else that of the organization, else ``None``."""
        key, now = (org, user), self._clock()
        with self._lock:
            at, row = self._rows.get(key, (float("-inf"), None))
        if now - at < KEY_CACHE_SECONDS:
            return row
        rows = (self._store.provider_keys(org, user) if user else []) or self._store.provider_keys(org, "")
        row = rows[0] if rows else None
        with self._lock:
            self._rows[key] = (now, row)
            if len(self._rows) > _MAX_USERS:
                self._rows.popitem(last=False)
        return row

    def address(self, row: ProviderKeyRow) -> Address:
        """
        Return the address for a key, with the key.

        Raises:
            VaultLocked: the key cannot be opened.
            EndpointRefused: the operator does not, or no longer, allow its address.
            ConfigError: the environment's master key is none.
        """
        key, cache_retention = (
            self.keyring().open(row.master, row.sealed, row.bound),
            self._config.prompt_cache_retention,
        )
        return address_for_key(row.provider, row.model, row.base_url, key, self.guard, cache_retention)

    def model(self, row: ProviderKeyRow) -> LanguageModel:
        """Return the model of a key, or an `UnavailableModel` that says why there is none."""
        with self._lock:
            known = self._models.get(row)
            if known is not None:
                self._models.move_to_end(row)
                return known
        try:
            made: LanguageModel = from_address(self.address(row))
        except HoldfastError as error:
            return UnavailableModel(f"{row.provider}:{row.model}", error)
        with self._lock:
            self._models[row] = made
            if len(self._models) > _MAX_MODELS:
                self._models.popitem(last=False)  # its connections are closed when it is garbage
        return made


class UserWork:
    """
    The work of each user with the model that is theirs; safe to use from any thread.

    ``default`` is that of the memory's model, for users without a key.  ``handlers`` are for a queue, and pass each job
    to the work of its user.
    """

    def __init__(self, deps: Dependencies, model: LanguageModel | None, keys: UserModels) -> None:
        self._deps, self._keys = deps, keys
        self.default = model_work(deps, model)
        self._lock = threading.Lock()
        self._by_key: OrderedDict[ProviderKeyRow, ModelWork] = OrderedDict()
        self.handlers = _UserHandlers(self._run, self.default.handlers, keys)

    def of(self, scope: Scope) -> ModelWork:
        """Return the work of a user: with their own model, their organization's, or the memory's."""
        row = self._keys.row(scope.org, scope.user)
        if row is None:
            return self.default
        with self._lock:
            known = self._by_key.get(row)
        if known is not None:
            return known
        model = self._keys.model(row)
        work = model_work(self._deps, model, label="own")
        if not isinstance(model, UnavailableModel):
            with self._lock:
                work = self._by_key.setdefault(row, work)
                self._by_key.move_to_end(row)
                if len(self._by_key) > _MAX_MODELS:
                    self._by_key.popitem(last=False)
        return work

    def read_mode(self, scope: Scope) -> ReadMode:
        """Return when a model reads a user's messages for facts."""
        return self.of(scope).read_mode

    def asking(self) -> tuple[str, ...]:
        """Return the kinds of jobs that may call a model, and so take any time."""
        return ASKING_KINDS if self.default.client is not None or self._keys.any() else ()

    def _run(self, job: Job) -> DigestReport:
        handlers = self.of(scope_of(job)).handlers
        if job.kind not in handlers:  # the key was removed after the job was ordered
            until_ms, hint = self._deps.now_ms() + SETUP_WAIT_MS, "set a key, or open the memory with llm=…"
            raise CallDeferred("there is no model for this user", until_ms, hint=hint)
        return handlers[job.kind](job)


class _UserHandlers(dict[str, Handler]):
    """One handler for all kinds; it iterates over those of a model only while the memory or any user has one."""

    def __init__(self, run: Handler, default: Mapping[str, Handler], keys: UserModels) -> None:
        super().__init__({kind: run for kind in KINDS if kind in default or kind in MODEL_KINDS})
        self._without_model = set(MODEL_KINDS) - set(default)
        self._keys = keys

    def __iter__(self) -> Iterator[str]:
        hidden = self._without_model if self._without_model and not self._keys.any() else ()
        return iter([kind for kind in super().__iter__() if kind not in hidden])
