"""Worlds with a scripted model, whose stores are sound when a test ends."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .talk import World


@pytest.fixture
def made() -> Iterator[list[World]]:
    worlds: list[World] = []
    yield worlds
    for world in worlds:
        assert world.memory.doctor().findings == ()
        world.memory.close()


@pytest.fixture
def world(made):
    def make(script=None, **settings):
        made.append(World(script, **settings))
        return made[-1]

    return make
