"""
A LangGraph agent with a tool, whose memory outlives its threads and its process.

    pip install 'holdfast[langchain]' langchain-openai
    OPENAI_API_KEY=… python examples/langgraph_agent.py ana
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Any
from uuid import uuid4

from langchain.agents import create_agent
from langchain_core.tools import tool

from holdfast import Memory
from holdfast.integrations.langchain import MemoryMiddleware
from holdfast.integrations.langgraph import HoldfastSaver

RECIPES = {
    "lentil curry": "lentils, coconut milk, onions, spinach",
    "chicken satay": "chicken, peanuts, rice, lime",
    "mushroom risotto": "rice, mushrooms, butter, parmesan",
}


@tool
def find_recipes(without: list[str]) -> list[str]:
    """Find recipes that contain none of the named ingredients."""
    return [name for name, parts in RECIPES.items() if not any(word.lower() in parts for word in without)]


def build(model: Any, memory: Memory) -> Any:
    """Build the agent.  The middleware learns and reminds; the checkpointer keeps each thread, to be continued."""
    return create_agent(
        model,
        tools=[find_recipes],
        system_prompt="You are a cook. Look up recipes without what the user does not eat.",
        middleware=[MemoryMiddleware(memory)],
        checkpointer=HoldfastSaver(memory),
    )


def ask(agent: Any, user: str, thread: str, text: str) -> str:
    """Run one turn; LangGraph's own configuration says whose it is."""
    config = {"configurable": {"user_id": user, "thread_id": thread}}
    return str(agent.invoke({"messages": [("user", text)]}, config)["messages"][-1].content)


def main(model: Any) -> None:
    """Chat in a new thread until the input ends."""
    user = sys.argv[1] if len(sys.argv) > 1 else "me"
    with Memory(os.environ.get("HOLDFAST_STORE", "agent.db"), background=True) as memory:
        agent, thread = build(model, memory), uuid4().hex
        print("Known:", *[fact.text for fact in memory.user(user).facts()] or ["nothing yet."])
        with suppress(EOFError, KeyboardInterrupt):
            while text := input(f"{user}> ").strip():
                print("bot>", ask(agent, user, thread, text))


if __name__ == "__main__":
    main(os.environ.get("MODEL", "openai:gpt-5-mini"))
