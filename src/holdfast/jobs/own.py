"""
Which model is asked for whom: the user's own, the org's own, or the one that the memory was opened with.

A key that cannot be opened is not passed over: what was to go to one provider does not go to another.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from ..config import Config
from ..errors import HoldfastError
from ..llm import from_address
from ..llm.addresses import Address, address_for_key
from ..llm.guard import Guard
from ..llm.protocol import Answer, LanguageModel, ModelError, Request
from ..llm.sealing import Keyring, keyring
from ..store import SealedRow, Store

# So long another process's change of a key is not seen.
SEEN_SECONDS = 2.0
_MOST_SEEN, _MOST_MODELS = 10_000, 64


@dataclass(frozen=True, slots=True)
class Shut:
    """A model that cannot be asked until somebody mends it; ``reason`` says what."""

    name: str
    reason: HoldfastError

    def ask(self, request: Request) -> Answer:
        """
        Raises:
            ModelError: always.
        """
        raise ModelError(self.reason.message, hint=self.reason.hint, transient=False, setup=True)

    def price(self, input_tokens: int, output_tokens: int, cached_tokens: int = 0) -> float:
        """Nothing is asked, so nothing is paid."""
        return 0.0


class OwnModels:
    """The keys that users and orgs brought, as models; safe to use from any thread."""

    def __init__(self, store: Store, config: Config, clock: Callable[[], float] = time.monotonic) -> None:
        self._store, self._config, self._clock = store, config, clock
        self.guard = Guard.of(config.allow_private_endpoints)
        self._lock = threading.Lock()
        self._rotated: Keyring | None = None
        self._any = (float("-inf"), False)
        self._seen: OrderedDict[tuple[str, str], tuple[float, SealedRow | None]] = OrderedDict()
        self._models: OrderedDict[SealedRow, LanguageModel] = OrderedDict()

    def keyring(self) -> Keyring:
        """
        The master keys of this process.

        Raises:
            ConfigError: what the environment gives for one is none.
        """
        return self._rotated or keyring()

    def rotated(self, ring: Keyring) -> None:
        """Seal with another master key from now on."""
        self._rotated = ring
        self.changed()

    def changed(self) -> None:
        """Look at the store again."""
        with self._lock:
            self._any = (float("-inf"), False)
            self._seen.clear()

    def any(self) -> bool:
        """Whether anybody brought a key."""
        at, found = self._any
        if self._clock() - at >= SEEN_SECONDS:
            found = self._store.any_provider_key()
            self._any = (self._clock(), found)
        return found

    def row(self, org: str, user: str) -> SealedRow | None:
        """The key that is used for somebody: the user's, else the org's, else ``None``."""
        key, now = (org, user), self._clock()
        with self._lock:
            at, row = self._seen.get(key, (float("-inf"), None))
        if now - at < SEEN_SECONDS:
            return row
        rows = (self._store.provider_keys(org, user) if user else []) or self._store.provider_keys(org, "")
        row = rows[0] if rows else None
        with self._lock:
            self._seen[key] = (now, row)
            if len(self._seen) > _MOST_SEEN:
                self._seen.popitem(last=False)
        return row

    def address(self, row: SealedRow) -> Address:
        """
        Where that key is sent, with the key.

        Raises:
            VaultLocked: it cannot be opened.
            EndpointRefused: the operator does not, or no longer, allow its address.
            ConfigError: what the environment gives for a master key is none.
        """
        key = self.keyring().open(row.master, row.sealed, row.bound)
        return address_for_key(
            row.provider, row.model, row.base_url, key, self.guard, self._config.prompt_cache_retention
        )

    def model(self, row: SealedRow) -> LanguageModel:
        """The model of a row; one that says why it cannot be asked when that is so."""
        with self._lock:
            known = self._models.get(row)
            if known is not None:
                self._models.move_to_end(row)
                return known
        try:
            made: LanguageModel = from_address(self.address(row))
        except HoldfastError as error:
            return Shut(f"{row.provider}:{row.model}", error)
        with self._lock:
            self._models[row] = made
            if len(self._models) > _MOST_MODELS:
                self._models.popitem(last=False)  # its connections are closed when nobody asks it any more
        return made
