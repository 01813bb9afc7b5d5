"""
A voice assistant's loop, with the milliseconds that memory adds to each turn.

    pip install holdfast
    python examples/voice_loop.py

`Ears`, `Mouth` and `think` are stand-ins for speech recognition, speech synthesis and a model: put yours in their place.
Between the end of the user's sentence and the first word of the reply there is one call, `context`; `record` comes after
the reply was spoken, and what needs longer is done by threads in the background.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import Any

from holdfast import Memory

SYSTEM = "You are a voice assistant in a kitchen. Answer in one short sentence."
SPOKEN = (
    "Good morning. I'm vegetarian, and I'm allergic to peanuts.",
    "We're six tonight.",
    "What could I cook for everybody?",
)


class Ears:
    """Stands for speech recognition: yields what was said, sentence by sentence."""

    def __init__(self, spoken: Sequence[str] = SPOKEN) -> None:
        self.spoken = spoken

    def __iter__(self) -> Iterator[str]:
        yield from self.spoken


class Mouth:
    """Stands for speech synthesis: says words as they come."""

    def say(self, words: Iterator[str]) -> str:
        """Say all words; return what was said, which is less than *words* when the user interrupts."""
        said = []
        for word in words:
            print(word, end=" ", flush=True)
            said.append(word)
        print()
        return " ".join(said)


def think(messages: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Stand for a model that streams its reply: yours is given the same messages."""
    known = " ".join(str(message["content"]) for message in messages).lower()
    if "cook" in str(messages[-1]["content"]):
        dish = "lentil curry" if "vegetarian" in known else "chicken satay"
        yield from f"A {dish}, {'without' if 'peanuts' in known else 'with'} peanuts.".split()
    else:
        yield from "All right.".split()


def warm_up() -> None:
    """Load what the first turn needs while nobody waits for it: a second or so."""
    with Memory() as spare:
        chat = spare.conversation(user="nobody")
        chat.record("I live in Lisbon.", "Noted.")
        chat.context("Where do I live?")


def milliseconds(since: float) -> str:
    """Format the time since *since*."""
    return f"{(perf_counter() - since) * 1000:6.1f} ms"


def main() -> None:
    """Listen, think, speak."""
    warm_up()
    ears, mouth = Ears(), Mouth()
    with Memory(os.environ.get("HOLDFAST_STORE", "voice.db"), background=True) as memory:
        chat = memory.conversation(user="ana")
        for said in ears:
            print(f"ana  {said}")

            asked = perf_counter()
            context = chat.context(said, system=SYSTEM, budget_tokens=2000)
            before = milliseconds(asked)

            print("bot  ", end="")
            reply = mouth.say(think(context.messages))

            spoken = perf_counter()
            chat.record(said, reply)
            print(f"     memory: {before} before the first word, {milliseconds(spoken)} after the last\n")
        chat.end()


if __name__ == "__main__":
    main()
