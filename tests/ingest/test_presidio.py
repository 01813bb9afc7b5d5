"""The adapter to presidio; the part that needs presidio itself runs where it is installed."""

from __future__ import annotations

import importlib.util
import re
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast import Config, Detector, Memory, PresidioDetector
from holdfast.errors import ConfigError
from holdfast.ingest.redact import mask_secrets

PHONE = "(212) 555-0123"


class Phones:
    """An engine of the same shape: it finds phone numbers, and inside each the area code."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def analyze(self, text: str, **asked: Any) -> list[Any]:
        self.asked.append(asked)
        found = [m for m in re.finditer(r"\(\d{3}\) \d{3}-\d{4}", text)]
        inner = [SimpleNamespace(start=m.start(), end=m.start() + 5) for m in found]
        return inner + [SimpleNamespace(start=m.start(), end=m.end()) for m in found]


def test_what_the_engine_finds_is_masked_once_and_the_longest_wins() -> None:
    engine = Phones()
    detector: Detector = PresidioDetector("PHONE_NUMBER", kind="phone", analyzer=engine, language="es", min_score=0.3)

    assert mask_secrets(f"Call {PHONE} now.", (detector,)) == f"Call {'█' * len(PHONE)} now."
    assert engine.asked[0] == {"language": "es", "entities": ["PHONE_NUMBER"], "score_threshold": 0.3}
    assert detector.find("  ") == []


def test_it_is_counted_and_removed_like_everything_else() -> None:
    phones = PresidioDetector(kind="phone", analyzer=Phones())
    with Memory(embedder=None, config=Config(detectors=(phones,), redact_messages=True)) as memory:
        chat = memory.conversation("a", user="ana")

        assert chat.record(f"Call me at {PHONE}.").discarded == {"phone": 1}
        assert chat.load()[0].content == "Call me at [phone removed]."


@pytest.mark.skipif(importlib.util.find_spec("presidio_analyzer") is not None, reason="it is installed")
def test_without_presidio_the_error_says_what_to_install() -> None:
    with pytest.raises(ConfigError, match=r"holdfast\[presidio\]"):
        PresidioDetector("PERSON")


@pytest.mark.parametrize("given", [{"kind": ""}, {"min_score": 2.0}, {"min_score": -0.1}])
def test_what_cannot_be_used_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        PresidioDetector(analyzer=Phones(), **given)


def test_presidio_itself_finds_phone_numbers() -> None:
    analyzer = pytest.importorskip("presidio_analyzer")
    spacy = pytest.importorskip("spacy")
    engine = analyzer.nlp_engine.SpacyNlpEngine()
    engine.nlp = {"en": spacy.blank("en")}  # without a language model: patterns only
    engine = analyzer.AnalyzerEngine(nlp_engine=engine, supported_languages=["en"])
    phones = PresidioDetector("PHONE_NUMBER", kind="phone", analyzer=engine, min_score=0.3)

    assert mask_secrets(f"Call {PHONE} now.", (phones,)) == f"Call {'█' * len(PHONE)} now."
