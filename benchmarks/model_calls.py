"""
How often a model is asked, and with how many tokens, per 100 messages of ordinary chat; and what of it a cache can keep.

    python benchmarks/model_calls.py [--exchanges 500] [--quick]

The model is a stand-in that counts: it finds as many facts as the rules do and writes summaries and episodes of the
length that the instructions ask for.  Background work is run after every exchange, as threads would.  Tokens are
those of `holdfast.text.tokens`, which errs upwards.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from support import machine
from support.counting import CountingModel
from support.ordinary import chat

from holdfast import Config, Memory
from holdfast.embed import Embedder, default_embedder
from holdfast.llm.protocol import Request
from holdfast.testing.clock import FakeClock
from holdfast.text.tokens import count_tokens

BARS = {"defaults": (35, 45_000), "economy": (12, 20_000)}
CACHED_FROM, CACHED_STEP = 1024, 128  # tokens: what providers keep of a prompt


def asked(config: Config, exchanges: int, embedder: Embedder | None = None) -> list[Request]:
    """Every request that so many exchanges cause."""
    messages = chat(exchanges)
    model, clock = CountingModel(), FakeClock(messages[0].at or FakeClock()())
    with Memory(llm=model, embedder=embedder, clock=clock, config=config) as memory:
        talk = memory.conversation("a", user="ana")
        for asking, answer in zip(messages[::2], messages[1::2], strict=True):
            if asking.at is not None:
                clock.advance(seconds=(asking.at - clock()).total_seconds())
            talk.append([asking, answer])
            memory.digest()
        talk.end()
        memory.digest()
    return model.asked


def tokens_of(request: Request) -> int:
    """The prompt of one call."""
    return count_tokens(request.system) + count_tokens(request.text)


def per_hundred(requests: Sequence[Request], messages: int) -> tuple[float, float]:
    """``(calls, prompt tokens)`` per 100 messages."""
    return 100 * len(requests) / messages, 100 * sum(map(tokens_of, requests)) / messages


def kept(prompts: Sequence[str]) -> tuple[float, float]:
    """
    Of each prompt after the first, the share that the one before it began with: as tokens, and as providers count.

    Providers keep a beginning from 1,024 tokens on, in steps of 128.
    """
    whole = same = billed = 0
    for before, prompt in pairwise(prompts):
        length = next((n for n, (a, b) in enumerate(zip(before, prompt, strict=False)) if a != b), None)
        equal = count_tokens(prompt[:length]) if length is not None else count_tokens(min(before, prompt, key=len))
        whole, same = whole + count_tokens(prompt), same + equal
        billed += equal - equal % CACHED_STEP if equal >= CACHED_FROM else 0
    return (same / whole, billed / whole) if whole else (0.0, 0.0)


def contexts(turns: int, *, budget_tokens: int | None = None) -> list[str]:
    """The prompt of every turn of a chat with the layered strategy; what is learned is digested in between."""
    messages = chat(turns)
    clock = FakeClock(messages[0].at or FakeClock()())
    prompts = []
    with Memory(llm=CountingModel(), embedder=None, clock=clock) as memory:
        talk = memory.conversation("a", user="ana")
        for asking, answer in zip(messages[::2], messages[1::2], strict=True):
            if asking.at is not None:
                clock.advance(seconds=(asking.at - clock()).total_seconds())
            context = talk.context(asking.content, budget_tokens=budget_tokens)
            prompts.append("\n".join(f"{m['role']}: {m['content']}" for m in context.messages))
            talk.append([asking, answer])
            memory.digest()
    return prompts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--exchanges", type=int, default=500)
    parser.add_argument("--quick", action="store_true", help="100 exchanges, and no embedder")
    given = parser.parse_args()
    exchanges = 100 if given.quick else given.exchanges
    print(machine())
    for name, config in (("defaults", Config()), ("economy", Config(economy=True))):
        requests = asked(config, exchanges, None if given.quick else default_embedder())
        calls, tokens = per_hundred(requests, 2 * exchanges)
        most_calls, most_tokens = BARS[name]
        print(
            f"{name}, per 100 messages: {calls:.1f} calls (at most {most_calls}), {tokens:,.0f} prompt tokens ({most_tokens:,})"
        )
        for layer, count in Counter(request.layer for request in requests).most_common():
            mine = [request for request in requests if request.layer == layer]
            each = sum(map(tokens_of, mine)) / count
            fixed = sum(count_tokens(request.system) for request in mine) / count
            calls, tokens = per_hundred(mine, 2 * exchanges)
            equal, billed = kept([request.system + request.text for request in mine])
            print(
                f"   {layer:14} {calls:5.1f} calls {tokens:7,.0f} tokens; {each:6,.0f} a call, {fixed:6,.0f} of them instructions;"
                f" {equal:4.0%} begin as the call before, {billed:4.0%} as providers count"
            )
    turns = 50 if given.quick else 200
    for budget in (2_000, 4_000, 8_000):
        equal, billed = kept(contexts(turns, budget_tokens=budget))
        told = f"contexts of {turns} turns, at most {budget:,} tokens"
        print(f"{told}: {equal:.0%} of the tokens begin as the turn before, {billed:.0%} as providers count")


if __name__ == "__main__":
    main()
