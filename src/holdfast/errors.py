"""
Every error this library raises on purpose.

    HoldfastError
    ├── BadInput            the caller's value cannot be used; the message says which and why
    │   ├── TooLarge        one message is longer than the configured limit
    │   └── EndpointRefused  a key of somebody's own may not be sent to that address
    ├── NotFound            the id is not there, or the scope cannot see it
    ├── Conflict            what is there now does not allow it, or someone was first
    │   ├── KeyReused       the same idempotency key was used before with another body
    │   └── Changed         it is not any more what the caller saw
    ├── ConfigError         a setting or an option cannot be used
    ├── VaultLocked         keys of providers cannot be sealed or opened without their master key
    ├── FetchError          the embedding model's files could not be downloaded
    └── StoreError          the database could not do what was asked
        ├── StoreBusy       another process held the file for longer than the wait
        ├── StoreUnavailable the server cannot be reached, or ended the connection
        ├── StoreFull       no room left on the disk; nothing was half written
        ├── StoreReadOnly   the file or its folder cannot be written
        ├── StoreTooNew     a newer Holdfast wrote this file; it was left untouched
        ├── StoreCorrupt    the file is not a database, or is damaged
        └── StoreClosed     the memory was closed before this call

Catch ``HoldfastError`` at the edge of your program.  Each one carries the ids that you need to
act; none carries message text.
"""

from __future__ import annotations


class HoldfastError(Exception):
    """The root of the tree.  ``code`` is stable and fit for logs; ``hint`` says what to do next."""

    code = "error"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message

    def without_retry(self) -> str:
        """Return the error in words for work that is not tried again by itself: without a hint that says it were."""
        return self.message if self.hint.startswith("it is tried again") else str(self)


class BadInput(HoldfastError, ValueError):
    """The caller's value cannot be used."""

    code = "bad-input"


class TooLarge(BadInput):
    """One message is longer than ``Config.max_message_chars``."""

    code = "too-large"


class EndpointRefused(BadInput):
    """A key of a user's or an org's own may not be sent there: the address is private, or not plain."""

    code = "endpoint-refused"


class NotFound(HoldfastError, LookupError):
    """The id does not exist, or the scope cannot see it."""

    code = "not-found"


class Conflict(HoldfastError):
    """The present state does not allow it, or another caller was first."""

    code = "conflict"


class KeyReused(Conflict):
    """The same idempotency key was used before with another body."""

    code = "key-reused"


class Changed(Conflict):
    """The fact or prompt has none of the versions in ``if_version`` any more; over HTTP, in ``If-Match``."""

    code = "changed"


class ConfigError(HoldfastError, ValueError):
    """A setting or an option cannot be used."""

    code = "bad-config"


class VaultLocked(HoldfastError):
    """Keys of providers cannot be sealed or opened: the master key is missing or another, or a row was changed."""

    code = "vault-locked"


class FetchError(HoldfastError):
    """The embedding model's files could not be downloaded; recall works by words alone meanwhile."""

    code = "fetch"


class StoreError(HoldfastError):
    """The database could not do what was asked."""

    code = "store"


class StoreBusy(StoreError):
    """Another process held the file for longer than ``Config.busy_timeout_ms``."""

    code = "store-busy"


class StoreUnavailable(StoreError):
    """The server cannot be reached, or ended the connection; what was not acknowledged may not be stored."""

    code = "store-unavailable"


class StoreFull(StoreError):
    """No room left on the disk; nothing was half written, the same call works once there is room."""

    code = "store-full"


class StoreReadOnly(StoreError):
    """The file or its folder cannot be written."""

    code = "store-read-only"


class StoreTooNew(StoreError):
    """A newer Holdfast wrote this file; it was left untouched."""

    code = "store-too-new"


class StoreCorrupt(StoreError):
    """The file is not a database, or is damaged."""

    code = "store-corrupt"


class StoreClosed(StoreError):
    """The memory was closed before this call."""

    code = "store-closed"
