"""
The store: one user's memory at a time, over any database.

    store = open_store("chat.db", Config())
    store.write(scope, lambda view: view.add_messages(rows))
    store.read(scope, lambda view: view.messages())

`Store` and the two views are written once.  A database fills the port in `holdfast.store.port`.
"""

from __future__ import annotations

import os

from ..clock import Clock, utc_now
from ..config import Config
from .maintenance import copy, distribute, grant_owner, initialize, owner_policies, scrub
from .port import Backend, Driver, backend_class, is_address, register
from .readview import ReadView, RejectedPosition, effective_consent, speaker_names
from .store import Store
from .values import (
    END_OF_NAMES,
    OF_USER,
    ConsentRow,
    ContextStatsRow,
    ConversationRow,
    Derivation,
    DocRow,
    EpisodeRangeRow,
    ErasureRow,
    EventLimits,
    FactOwner,
    FactRow,
    ItemRow,
    KeyRow,
    MessageRow,
    Partition,
    PromptRow,
    ProviderKeyRow,
    RateRow,
    RebuildRow,
    Scrubbed,
    Side,
    SubjectRow,
    SummaryRow,
    UsageRow,
    UseRow,
    UserRow,
    pack_words,
)
from .writeview import WriteView

__all__ = [
    "END_OF_NAMES",
    "OF_USER",
    "Backend",
    "ConsentRow",
    "ContextStatsRow",
    "ConversationRow",
    "Derivation",
    "DocRow",
    "Driver",
    "EpisodeRangeRow",
    "ErasureRow",
    "EventLimits",
    "FactOwner",
    "FactRow",
    "ItemRow",
    "KeyRow",
    "MessageRow",
    "Partition",
    "PromptRow",
    "ProviderKeyRow",
    "RateRow",
    "ReadView",
    "RebuildRow",
    "RejectedPosition",
    "Scrubbed",
    "Side",
    "Store",
    "SubjectRow",
    "SummaryRow",
    "UsageRow",
    "UseRow",
    "UserRow",
    "WriteView",
    "copy",
    "distribute",
    "effective_consent",
    "grant_owner",
    "initialize",
    "is_address",
    "open_store",
    "owner_policies",
    "pack_words",
    "register",
    "scrub",
    "speaker_names",
]

_DEFAULTS = Config()


def open_store(location: str | os.PathLike[str], config: Config = _DEFAULTS, clock: Clock = utc_now) -> Store:
    """
    Open the store at *location*: a path, ``":memory:"``, or an address such as ``postgresql://``; *clock* dates events.

    Raises:
        ConfigError: no backend is known for the address, or a package that it needs is not installed.
    """
    backend = backend_class(location).open(os.fsdecode(location), config)
    return Store(backend, clock=clock, event_limits=EventLimits(config.event_rows, config.event_days))
