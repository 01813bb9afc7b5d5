"""
A bot in the terminal that still knows you when you start it again.

    pip install 'holdfast[llm]'
    OPENAI_API_KEY=… python examples/terminal_bot.py ana

Any server that speaks OpenAI's protocol will do.  With Ollama on this machine, and no key:

    OPENAI_BASE_URL=http://127.0.0.1:11434/v1 OPENAI_API_KEY=ollama MODEL=llama3.2 python examples/terminal_bot.py ana
"""

from __future__ import annotations

import os
import sys
from typing import Any

from openai import OpenAI, OpenAIError

from holdfast import Conversation, Memory, User

SYSTEM = "You are a friendly cook. Answer in one or two sentences."
HELP = "/facts: what I know · /forget 2: forget the second fact · /pause, /resume: stop and start remembering · /quit"


def answer(client: OpenAI, chat: Conversation, said: str) -> str:
    """Answer with what is known of the user; these lines are all that memory takes."""
    context = chat.context(said, system=SYSTEM)
    messages: Any = list(context.messages)
    completion = client.chat.completions.create(model=os.environ.get("MODEL", "gpt-5-mini"), messages=messages)
    reply = completion.choices[0].message.content or ""
    chat.record(said, reply)
    return reply


def run_command(user: User, line: str) -> str:
    """Run a line that begins with a slash; return what to print."""
    word, _, argument = line.partition(" ")
    facts = user.facts()
    if word == "/facts":
        return "\n".join(f"{number}. {fact.text}" for number, fact in enumerate(facts, 1)) or "Nothing yet."
    if word == "/forget" and argument.isdigit() and 0 < int(argument) <= len(facts):
        user.forget(facts[int(argument) - 1].id)
        return "Forgotten, also in the messages that said so."
    if word == "/pause":
        user.pause()
        return "Paused: nothing is used or stored until /resume."
    if word == "/resume":
        user.resume()
        return "Remembering again."
    return HELP


def main() -> None:
    """Chat until the input ends."""
    name = sys.argv[1] if len(sys.argv) > 1 else "me"
    client = OpenAI()
    with Memory(os.environ.get("HOLDFAST_STORE", "bot.db"), background=True) as memory:
        user = memory.user(name)
        chat = memory.conversation(user=name)  # a new conversation each time; what is known of the user comes along
        print(f"{len(user.facts())} facts known about {name}. {HELP}")
        while True:
            try:
                line = input(f"{name}> ").strip()
            except (EOFError, KeyboardInterrupt):
                break
            if line == "/quit":
                break
            try:
                if line:
                    print(run_command(user, line) if line.startswith("/") else f"bot> {answer(client, chat, line)}")
            except OpenAIError as error:
                print(f"The model did not answer: {error}")
        chat.end()


if __name__ == "__main__":
    main()
