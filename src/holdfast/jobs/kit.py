"""
The background work as one model does it, or the rules alone; and whose work is done with which.

Everything that a model makes is made by the handlers of one kit, so a user's own model reads, tells and joins for
that user and for nobody else.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from ..config import Config
from ..embed.protocol import Embedder
from ..llm.protocol import LanguageModel
from ..observing import Observed
from ..reconcile.archive import CONSOLIDATE, UPKEEP
from ..reports import DigestReport
from ..scope import Scope
from ..store import SealedRow, Store
from ..types import Job
from .again import TellAgain
from .asked import Asked
from .asking import Asking
from .bymodel import AGAIN, ByModel, NoteEpisodes
from .consolidate import Consolidate
from .facts import ReadFacts
from .gate import SETUP_WAIT_MS, NotNow
from .guard import scope_of
from .modelwriter import model_writer
from .own import OwnModels, Shut
from .queue import Handler
from .reading import ReadByModel
from .rebuild import Rebuilder
from .remake import Remake
from .sight import Looking
from .summaries import CloseChunks
from .telling import Telling
from .upkeep import Upkeep
from .vectors import EmbedDocs
from .writers import Rules, Writer

Reads = Literal["", "turns", "chunks"]

# The kinds of work in the order of their cost: what is cheap and soon wanted before what takes long.
KINDS = ("extract", "read", "episodes", AGAIN, "chunk", CONSOLIDATE, UPKEEP, "embed")
OF_A_MODEL = ("read", "episodes", AGAIN)
_MOST_KITS = 64


@dataclass(frozen=True, slots=True)
class Parts:
    """What all kits of one memory share."""

    store: Store
    config: Config
    now_ms: Callable[[], int]
    embedder: Embedder | None
    reader: ReadFacts
    observed: Observed


@dataclass(frozen=True, slots=True)
class Kit:
    """``asking`` is ``None`` where the rules do the work; ``reads``: when a model reads for facts, if at all."""

    asking: Asking | None
    reads: Reads
    rebuilder: Rebuilder
    consolidation: Consolidate
    handlers: Mapping[str, Handler]


def kit_of(parts: Parts, model: LanguageModel | None, label: str = "") -> Kit:
    """
    The work as *model* does it, which those who observe know as *label*.

    Raises:
        ConfigError: there is a budget in dollars and the model's price is not known.
    """
    store, config, now_ms, reader = parts.store, parts.config, parts.now_ms, parts.reader
    asking = None if model is None else Asking(store, config, model, now_ms, parts.observed, label)
    writer: Writer = Rules(reader) if asking is None else model_writer(store, asking, reader)
    rebuilder = Rebuilder(Remake(store, config, now_ms, reader.registry, reader, writer), parts.embedder)
    asked = None if asking is None else Asked(store, asking, now_ms)
    by_model = None
    handlers: dict[str, Handler] = {"extract": reader}
    if asked is not None:
        looking = Looking(reader)
        by_model = ByModel(Telling(asked, looking))
        handlers |= {"read": ReadByModel(asked, looking), "episodes": NoteEpisodes(by_model)}
        handlers[AGAIN] = TellAgain(asked, rebuilder)
    handlers["chunk"] = CloseChunks(store, config, now_ms, reader.embeds, by_model)
    consolidation = handlers[CONSOLIDATE] = Consolidate(store, config, now_ms, parts.embedder, asked)
    handlers[UPKEEP] = Upkeep(store, config, now_ms)
    if parts.embedder is not None:
        handlers["embed"] = EmbedDocs(store, parts.embedder, now_ms, config.job_lease_ms, config.detectors)
    reads: Reads = "" if asking is None else "chunks" if config.economy else "turns"
    return Kit(asking, reads, rebuilder, consolidation, handlers)


class Kits:
    """
    The kit for each user; safe to use from any thread.

    ``usual`` is that of the memory's own model, for everybody who brought none.  ``handlers`` are those of a queue,
    and leave each job to the kit of its user.
    """

    def __init__(self, parts: Parts, model: LanguageModel | None, own: OwnModels) -> None:
        self._parts, self._own = parts, own
        self.usual = kit_of(parts, model)
        self._lock = threading.Lock()
        self._kits: OrderedDict[SealedRow, Kit] = OrderedDict()
        self.handlers = _Handlers(self._run, self.usual.handlers, own)

    def of(self, scope: Scope) -> Kit:
        """The kit for a user: with their own model, their org's, or the memory's."""
        row = self._own.row(scope.org, scope.user)
        if row is None:
            return self.usual
        with self._lock:
            known = self._kits.get(row)
        if known is not None:
            return known
        model = self._own.model(row)
        made = kit_of(self._parts, model, label="own")
        if not isinstance(model, Shut):
            with self._lock:
                made = self._kits.setdefault(row, made)
                self._kits.move_to_end(row)
                if len(self._kits) > _MOST_KITS:
                    self._kits.popitem(last=False)
        return made

    def reads(self, scope: Scope) -> Reads:
        """When a model reads a user's messages for facts; ``""``: never."""
        return self.of(scope).reads

    def _run(self, job: Job) -> DigestReport:
        handlers = self.of(scope_of(job)).handlers
        if job.kind not in handlers:  # their key is gone since the work was ordered
            until_ms = self._parts.now_ms() + SETUP_WAIT_MS
            raise NotNow("there is no model for this user", until_ms, hint="set a key, or open the memory with llm=…")
        return handlers[job.kind](job)


class _Handlers(dict[str, Handler]):
    """One handler for every kind; those of a model count while there is one, of the memory's or of somebody's own."""

    def __init__(self, run: Handler, usual: Mapping[str, Handler], own: OwnModels) -> None:
        super().__init__({kind: run for kind in KINDS if kind in usual or kind in OF_A_MODEL})
        self._away = set(OF_A_MODEL) - set(usual)
        self._own = own

    def __iter__(self) -> Iterator[str]:
        away = self._away if self._away and not self._own.any() else ()
        return iter([kind for kind in super().__iter__() if kind not in away])
