"""What a database says of itself: what it is, what is broken, and what an operator should know."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from ..reports import Finding


@dataclass(frozen=True, slots=True)
class Health:
    """
    ``about`` names versions and settings.  ``findings`` break a promise, ``notices`` do not; ``checked`` are the rules
    that were looked at for both.
    """

    about: Mapping[str, str]
    findings: tuple[Finding, ...] = ()
    notices: tuple[Finding, ...] = ()
    checked: tuple[str, ...] = ()


class HealthLooks(Protocol):
    """What a `Store` tells of its database."""

    def health(self) -> Health:
        """Look at the database, not at the rows."""


class Examined(ABC):
    """The same for those who make stores of ours."""

    @abstractmethod
    def health(self) -> Health:
        """See the protocol."""
