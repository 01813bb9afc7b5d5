"""
How often a model is asked, and with how many tokens, per 100 messages of ordinary chat; and what of it a cache can keep.

    python benchmarks/model_calls.py [--exchanges 500] [--quick]
    python benchmarks/model_calls.py --chats FILE.jsonl[:NAME] ... [--messages 100]

The model is a stand-in that counts: it finds as many facts as the rules do and writes summaries and episodes of the
length that the instructions ask for.  Background work is run after every exchange, as threads would.  Tokens are
those of `holdfast.text.terms`, which errs upwards.

With ``--chats`` the first messages of chats of your own are counted: files of ``{role, content, at?, name?}`` a line, or of
``{conv, speaker, text, time}`` (a corpus as `recall_dev.py` reads it; ``:NAME`` picks one conversation).  Speakers who are neither user
nor assistant are users with a name.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from support import machine

from holdfast import Config, Memory, Message
from holdfast.bench.model_calls import (
    BARS,
    CountingModel,
    chat_requests,
    count_requests,
    ordinary_chat,
    per_hundred,
    prompt_tokens,
    shared_beginnings,
)
from holdfast.embed import default_embedder
from holdfast.llm.protocol import Request
from holdfast.testing.fakes import FakeClock
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


def load_chats(names: Sequence[str], most: int) -> dict[str, list[Message]]:
    """Return the first messages of every chat by its name."""
    chats: dict[str, list[Message]] = {}
    for name in names:
        path, _, wanted = name.partition(":")
        for line in open(path, encoding="utf-8"):
            one = json.loads(line)
            if wanted in ("", one.get("conv", "")):
                chat = chats.setdefault(one.get("conv") or path.rpartition("/")[2], [])
                if len(chat) < most:
                    chat.append(_message(one))
    return chats


def _message(line: dict[str, Any]) -> Message:
    when = line.get("at") or line.get("time")
    at = datetime.fromisoformat(when) if when else None
    at = at.replace(tzinfo=at.tzinfo or UTC) if at else None
    speaker = line.get("role") or line["speaker"]
    plain = speaker in ("user", "assistant", "system", "tool")
    return Message(
        speaker if plain else "user",
        line.get("content") or line["text"],
        at=at,
        name=line.get("name") if plain else speaker,
    )


def print_counts(label: str, requests: Sequence[Request], messages: int) -> None:
    """Print calls and prompt tokens per 100 messages, in all and by layer."""
    calls, tokens = per_hundred(requests, messages)
    layers = Counter(request.layer for request in requests)
    by_layer = ", ".join(
        f"{layer} {per_hundred([r for r in requests if r.layer == layer], messages)[0]:.1f}" for layer in sorted(layers)
    )
    print(f"{label:24} {messages:4} messages: {calls:5.1f} calls, {tokens:7,.0f} prompt tokens per 100 ({by_layer})")


def count_chats(names: Sequence[str], most: int) -> None:
    """Print what the first messages of chats cost at the defaults and in economy mode."""
    chats = load_chats(names, most)
    for label, config in (("defaults", Config()), ("economy", Config(economy=True))):
        print(label)
        every: list[Request] = []
        for name, messages in chats.items():
            requests = chat_requests(messages, config)
            print_counts(f"  {name}", requests, len(messages))
            every += requests
        print_counts("  all", every, sum(map(len, chats.values())))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--exchanges", type=int, default=500)
    parser.add_argument("--quick", action="store_true", help="100 exchanges, and no embedder")
    parser.add_argument("--chats", nargs="+", default=[], help="count the calls of these chats instead")
    parser.add_argument("--messages", type=int, default=100, help="how many messages of each chat")
    options = parser.parse_args()
    if options.chats:
        return count_chats(options.chats, options.messages)
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
