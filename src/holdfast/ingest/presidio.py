"""presidio's recognizers as a detector: names, phone numbers, addresses and what else a user may not want kept."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol

from ..errors import ConfigError


class Analyzer(Protocol):
    """What is used of ``presidio_analyzer.AnalyzerEngine``."""

    def analyze(self, text: str, language: str, entities: list[str] | None, score_threshold: float) -> Any:
        """Results with ``start`` and ``end``, in characters."""


class PresidioDetector:
    """
    A `Detector` over presidio, from the extra ``presidio``.

        phones = PresidioDetector("PHONE_NUMBER", kind="phone", analyzer=AnalyzerEngine(...))
        memory = Memory("chat.db", config=Config(detectors=(phones,)))

    It is asked for every text that anything is derived from, so its speed becomes that of `append`.
    """

    def __init__(
        self,
        *entities: str,
        kind: str = "personal",
        analyzer: Analyzer | None = None,
        language: str = "en",
        min_score: float = 0.5,
    ) -> None:
        """
        Ask *analyzer* for *entities*.

        Args:
            entities: presidio's names, such as ``USER`` or ``PHONE_NUMBER``; all that it knows when none is given.
            kind: the word for users, as in ``[phone removed]``.
            analyzer: a ``presidio_analyzer.AnalyzerEngine``.  Without one presidio makes its own, for which
                it downloads a language model on first use.
            language: in which the texts are read.
            min_score: from 0 to 1; what presidio is less sure of is let through.

        Raises:
            ConfigError: presidio is not installed, or a value cannot be used.
        """
        if not kind or not 0 <= min_score <= 1:
            raise ConfigError("kind must be a word and min_score from 0 to 1")
        self.kind = kind
        self._entities = list(entities) or None
        self._analyzer = _engine() if analyzer is None else analyzer
        self._language = language
        self._min_score = min_score

    def find(self, text: str) -> list[tuple[int, int]]:
        """``(start, end)`` of each entity, in characters; of two that overlap, the longer one."""
        if not text.strip():
            return []
        found = self._analyzer.analyze(
            text=text, language=self._language, entities=self._entities, score_threshold=self._min_score
        )
        return sorted(((one.start, one.end) for one in found), key=lambda span: (span[0] - span[1], span))


def _engine() -> Analyzer:
    try:
        presidio = import_module("presidio_analyzer")
    except ImportError:
        raise ConfigError("presidio is not installed", hint="pip install 'holdfast[presidio]'") from None
    made: Analyzer = presidio.AnalyzerEngine()
    return made
