"""
How often a model is asked, and with how many tokens, per 100 messages of ordinary chat; and what of it a cache can keep.

    python benchmarks/model_calls.py [--exchanges 500] [--quick]

The model is a stand-in that counts: it finds as many facts as the rules do and writes summaries and episodes of the
length that the instructions ask for.  Background work is run after every exchange, as threads would.  Tokens are
those of `holdfast.text.terms`, which errs upwards.
"""

from __future__ import annotations

import argparse
from collections import Counter

from support import machine

from holdfast import Config, Memory
from holdfast.bench.model_calls import (
    BARS,
    CountingModel,
    count_requests,
    ordinary_chat,
    per_hundred,
    prompt_tokens,
    shared_beginnings,
)
from holdfast.embed import default_embedder
from holdfast.testing.clock import FakeClock
from holdfast.text.terms import count_tokens


def contexts(turns: int, *, budget_tokens: int | None = None) -> list[str]:
    """Return the prompt of every turn of a chat with the layered strategy, with digests in between."""
    messages = ordinary_chat(turns)
    clock = FakeClock(messages[0].at or FakeClock()())
    prompts = []
    with Memory(llm=CountingModel(), embedder=None, clock=clock) as memory:
        talk = memory.conversation("a", user="ana")
        for question, answer in zip(messages[::2], messages[1::2], strict=True):
            if question.at is not None:
                clock.advance(seconds=(question.at - clock()).total_seconds())
            context = talk.context(question.content, budget_tokens=budget_tokens)
            prompts.append("\n".join(f"{m['role']}: {m['content']}" for m in context.messages))
            talk.append([question, answer])
            memory.digest()
    return prompts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--exchanges", type=int, default=500)
    parser.add_argument("--quick", action="store_true", help="100 exchanges, and no embedder")
    options = parser.parse_args()
    exchanges = 100 if options.quick else options.exchanges
    print(machine())
    for name, config in (("defaults", Config()), ("economy", Config(economy=True))):
        requests = count_requests(config, exchanges, None if options.quick else default_embedder())
        calls, tokens = per_hundred(requests, 2 * exchanges)
        most_calls, most_tokens = BARS[name]
        print(
            f"{name}, per 100 messages: {calls:.1f} calls (at most {most_calls}), {tokens:,.0f} prompt tokens ({most_tokens:,})"
        )
        for layer, count in Counter(request.layer for request in requests).most_common():
            mine = [request for request in requests if request.layer == layer]
            each = sum(map(prompt_tokens, mine)) / count
            fixed = sum(count_tokens(request.system) for request in mine) / count
            calls, tokens = per_hundred(mine, 2 * exchanges)
            equal, billed = shared_beginnings([request.system + request.text for request in mine])
            print(
                f"   {layer:14} {calls:5.1f} calls {tokens:7,.0f} tokens; {each:6,.0f} a call, {fixed:6,.0f} of them instructions;"
                f" {equal:4.0%} begin as the call before, {billed:4.0%} as providers count"
            )
    turns = 50 if options.quick else 200
    for budget in (2_000, 4_000, 8_000):
        equal, billed = shared_beginnings(contexts(turns, budget_tokens=budget))
        label = f"contexts of {turns} turns, at most {budget:,} tokens"
        print(f"{label}: {equal:.0%} of the tokens begin as the turn before, {billed:.0%} as providers count")


if __name__ == "__main__":
    main()
