"""
The background work of each user: with their own model, their organization's, the memory's, or the rules alone.

A user's own model reads, summarizes and merges for that user alone.  A key that cannot be opened is not passed over:
messages that were meant for one provider do not go to another.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from ..config import Config
from ..errors import HoldfastError
from ..llm import from_address
from ..llm.guard import Address, Guard, address_for_key
from ..llm.protocol import Answer, LanguageModel, ModelError, Request
from ..llm.sealing import Keyring, keyring
from ..reconcile.archive import CONSOLIDATE, UPKEEP
from ..reports import DigestReport
from ..scope import Scope
from ..store import ProviderKeyRow, Store
from ..types import Job
from .facts import FactReader
from .model_client import SETUP_WAIT_MS, CallDeferred, ModelClient
from .model_reader import ModelReader, ReadMessages
from .queue import Dependencies, Handler, ReadMode, scope_of
from .rebuild import RangeWriter, Rebuilder, ResummarizeRange
from .summaries import RESUMMARIZE, CloseChunks, ReadEpisodes, TellStory
from .upkeep import Consolidate, EmbedDocs, Upkeep

# All kinds of jobs in the order of their cost: cheap and urgent work first.
KINDS = ("extract", "read", "episodes", RESUMMARIZE, "chunk", "story", CONSOLIDATE, UPKEEP, "embed")
LAST_KINDS = ("story",)  # told of all a user's chunks at once, not anew after each
MODEL_KINDS = ("read", "episodes", RESUMMARIZE)
ASKING_KINDS = (*MODEL_KINDS, "chunk", "story", CONSOLIDATE)  # call a model where there is one
# For so long another process's change of a key is not seen.
KEY_CACHE_SECONDS = 2.0
_MAX_USERS, _MAX_MODELS = 10_000, 64


@dataclass(frozen=True, slots=True)
class ModelWork:
    """The handlers of all jobs with one model, or with the rules alone when ``client`` is ``None``."""

    client: ModelClient | None
    read_mode: ReadMode
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
    return ModelWork(client, read_mode, rebuilder, consolidation, handlers)


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
