"""A value that is used and never shown, and what is told of the keys of providers."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from datetime import datetime
from typing import NoReturn

HIDDEN = "Secret('…')"


class Secret:
    """
    A key or a password.  Whatever prints, formats, logs or copies it shows that there is one, and not which.

    Only `reveal` gives it, where it is sent.
    """

    __slots__ = ("__value",)
    __hash__ = None  # type: ignore[assignment]  # no table is keyed by it

    def __init__(self, value: str) -> None:
        self.__value = value

    def reveal(self) -> str:
        """The value itself."""
        return self.__value

    def __repr__(self) -> str:
        return HIDDEN

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return HIDDEN

    def __bool__(self) -> bool:
        return bool(self.__value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self.__value.encode(), other.__value.encode())

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: object) -> Secret:
        return self

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a secret is not written down")


@dataclass(frozen=True, slots=True)
class ProviderKey:
    """
    What is told of a provider's key that a user or an org brought; the key itself is never given back.

    ``user`` is ``None`` for the org's own.  ``fingerprint`` are four characters by which its owner knows it; they are
    not of the key.  ``in_use``: it is the one that its owner set last.  ``opens``: this process has its master key.
    """

    id: str
    org: str
    user: str | None
    provider: str
    model: str
    base_url: str
    fingerprint: str
    set_at: datetime
    in_use: bool
    opens: bool

    @property
    def name(self) -> str:
        """Provider and model, as rows and usage name them: ``openai:gpt-5-mini``."""
        return f"{self.provider}:{self.model}"


@dataclass(frozen=True, slots=True)
class Upstream:
    """
    The model that is asked for somebody, with the key and the one address that the key may be sent to.

    ``whose``: ``user`` or ``org``.  `holdfast.llm.guarded_http.upstream_client` sends to it.
    """

    provider: str
    model: str
    base_url: str
    key: Secret
    whose: str
    id: str
