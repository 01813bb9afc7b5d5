"""Callables to wrap, of every kind."""

from __future__ import annotations

import asyncio


def last(messages):
    return messages[-1]["content"]


def words(messages):
    yield from ("I heard: ", *last(messages).split())


async def later_words(messages):
    for word in words(messages):
        await asyncio.sleep(0)
        yield word


async def later(messages):
    await asyncio.sleep(0)
    return f"I heard: {last(messages)}"
