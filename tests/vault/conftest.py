"""A master key in the environment, and a provider on this machine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast import Config, Memory
from holdfast.llm.sealing import MASTER, MASTER_FILE
from holdfast.testing.fakes import HashEmbedder

MASTER_KEY = "q0vJ2l3mT8x1bXWkZ6h9sYc4nE7uRfGp5aDiOoLtKzI="
OTHER_MASTER_KEY = "7f" + "3a9c41d6e25b80f7" * 3 + "0b8e4d2c6a1f9357"[:14]
KEY = "sk-canary-Zr8Qw3Lm6Vt1"


@pytest.fixture(autouse=True)
def master(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(MASTER_FILE, raising=False)
    monkeypatch.setenv(MASTER, MASTER_KEY)
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory(embedder=HashEmbedder(), config=Config(allow_private_endpoints=("127.0.0.1",))) as opened:
        yield opened
