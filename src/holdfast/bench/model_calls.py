"""
The number of model calls and prompt tokens that an ordinary chat causes, and the share of them that a cache can keep.

`ordinary_chat` is a chat of everyday topics in which one user turn in four is about the user; its exchanges are in
``data/ordinary.toml``, and a seed chooses their order and fills their blanks.  `CountingModel` replaces a model.
"""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from importlib import resources
from itertools import islice, pairwise
from typing import Any

from ..config import Config
from ..digest import rules
from ..embed.protocol import Embedder
from ..llm.protocol import Answer, Request
from ..memory import Memory
from ..testing.fakes import FakeClock
from ..text.render import parse_blocks
from ..text.terms import count_tokens
from ..types import Message

BARS = {"defaults": (25, 30_000), "economy": (10, 18_000)}
"""The most ``(calls, prompt tokens)`` per 100 messages."""

CACHED_FROM, CACHED_STEP = 1024, 128  # tokens: providers cache a beginning of that length, in such steps
SUMMARY_WORDS, EPISODES = 80, 3

FIRST_AT = datetime(2026, 1, 5, 8, 30, tzinfo=UTC)
_LONG_REPLY_CHARS = 100
_BLANK = re.compile(r"\{(\w+)\}")
_ITEM = re.compile(r"(\d+) (\w+)[^:]*?(?: \(\d{4}-\d\d-\d\d\))?: (.*)", re.DOTALL)


def count_requests(config: Config, exchanges: int, embedder: Embedder | None = None) -> list[Request]:
    """Store so many exchanges, each with its background work, and return every model request that they cause."""
    return chat_requests(ordinary_chat(exchanges), config, embedder)


def chat_requests(messages: Sequence[Message], config: Config, embedder: Embedder | None = None) -> list[Request]:
    """
    Store the messages of a chat one after another, and return every model request that they cause.

    The background works whenever an assistant or another user has replied; the chat is over after the last message.
    """
    first = messages[0].at or FIRST_AT
    model, clock = CountingModel(), FakeClock(first)
    with Memory(llm=model, embedder=embedder, clock=clock, config=config) as memory:
        chat = memory.conversation("a", user="ana")
        for message in messages:
            if message.at is not None:
                clock.advance(seconds=max(0.0, (message.at - clock()).total_seconds()))
            chat.append(message)
            if message.role == "assistant" or message.name:
                memory.digest()
        chat.end()
        memory.digest()
    return model.requests


def prompt_tokens(request: Request) -> int:
    """Count the tokens of one prompt."""
    return count_tokens(request.system) + count_tokens(request.text)


def per_hundred(requests: Sequence[Request], messages: int) -> tuple[float, float]:
    """Return ``(calls, prompt tokens)`` per 100 messages."""
    return 100 * len(requests) / messages, 100 * sum(map(prompt_tokens, requests)) / messages


def shared_beginnings(prompts: Sequence[str]) -> tuple[float, float]:
    """
    Return the share of each prompt's beginning that the one before it had too: as tokens, and as providers count.

    Providers cache a beginning from 1,024 tokens on, in steps of 128.
    """
    whole = same = billed = 0
    for before, prompt in pairwise(prompts):
        length = next((n for n, (a, b) in enumerate(zip(before, prompt, strict=False)) if a != b), None)
        equal = count_tokens(prompt[:length]) if length is not None else count_tokens(min(before, prompt, key=len))
        whole, same = whole + count_tokens(prompt), same + equal
        billed += equal - equal % CACHED_STEP if equal >= CACHED_FROM else 0
    return (same / whole, billed / whole) if whole else (0.0, 0.0)


def ordinary_chat(exchanges: int, seed: int = 1) -> list[Message]:
    """Write so many exchanges of an ordinary chat over days; the same seed gives the same chat."""
    return [message for exchange in islice(_exchanges(seed), exchanges) for message in exchange]


def _exchanges(seed: int) -> Iterator[tuple[Message, Message]]:
    rng = random.Random(seed)
    text = (resources.files(__package__) / "data" / "ordinary.toml").read_text(encoding="utf-8")
    source: dict[str, Any] = tomllib.loads(text)
    now = FIRST_AT
    while True:
        for topic in rng.sample(source["topic"], len(source["topic"])):
            words = {name: rng.choice(values) for name, values in source["words"].items()}
            for number, (question, answer) in enumerate(topic["exchanges"]):
                if len(answer) >= _LONG_REPLY_CHARS:
                    answer = f"{answer} {topic['more'][number % len(topic['more'])]}"
                yield (
                    Message("user", _fill_blanks(question, words), at=now),
                    Message("assistant", _fill_blanks(answer, words), at=now + timedelta(seconds=8)),
                )
                now += timedelta(seconds=rng.randint(30, 240))
            now += timedelta(minutes=rng.choice((20, 90, 600, 1300)))


def _fill_blanks(text: str, words: dict[str, str]) -> str:
    return _BLANK.sub(lambda blank: words[blank[1]], text)


class CountingModel:
    """A model that answers at ordinary length: the facts of the rules, a summary of 80 words, up to 3 episodes."""

    name = "counting:1"

    def __init__(self) -> None:
        self.requests: list[Request] = []

    def ask(self, request: Request) -> Answer:
        """Record the request and answer it; for one thread."""
        self.requests.append(request)
        items = dict(parse_blocks(request.text)).get("read", [])
        facts, episodes, summary = _facts(items), _episodes(items), _summary(items)
        text = {
            "facts": facts,
            "episodes": episodes,
            "combined": f"{summary}\nEPISODES:\n{episodes}\nFACTS:\n{facts}",
            "statements": "NONE",
        }.get(request.layer, summary)
        return Answer(
            text, self.name, input_tokens=prompt_tokens(request), output_tokens=count_tokens(text), estimated=True
        )


def _user_messages(items: list[str]) -> list[tuple[int, str]]:
    found = [match for match in map(_ITEM.fullmatch, items) if match]
    return [(int(match[1]), match[3]) for match in found if match[2] == "user"]


def _facts(items: list[str]) -> str:
    rows = []
    for seq, text in _user_messages(items):
        for fact in rules.extract_facts(Message("user", text, seq=seq)):
            if fact.modality == "asserted" and fact.op == "assert" and fact.subject == "self":
                quote = fact.quote.replace('"', '""')
                rows.append(f'{fact.category},{fact.key},"{fact.value}",0.9,,set,asserted,state,{seq},"{quote}"')
    return "\n".join(rows) or "NONE"


def _episodes(items: list[str]) -> str:
    found = [(seq, text) for seq, text in _user_messages(items) if len(text) > 40][:EPISODES]
    return "\n".join(f"- {text[:120]} [{seq}]" for seq, text in found) or "No facts to record"


def _summary(items: list[str]) -> str:
    words = " ".join(item.partition(": ")[2] for item in items).split()
    return f"SUMMARY: {' '.join(words[:SUMMARY_WORDS])}.\nTHEMES: {' '.join(words[:3])}\nCONCERNS: -\nACTIONS: -"
