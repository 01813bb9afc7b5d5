"""The LangGraph agent of examples/ uses its tool, and remembers in another thread and another process."""

from __future__ import annotations

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from holdfast import Memory
from tests.examples import pictures
from tests.examples.running import load, typed


class Cook(BaseChatModel):
    """Looks up recipes without what the prompt says that the user does not eat."""

    @property
    def _llm_type(self):
        return "cook"

    def bind_tools(self, tools, **more):
        return self

    def _generate(self, messages, stop=None, run_manager=None, **more):
        last, known = messages[-1], " ".join(str(message.text) for message in messages)
        if last.type == "tool":
            reply = AIMessage(f"You could make {last.content}.")
        elif "cook" in last.text:
            without = ["peanuts"] if "peanuts" in known else []
            reply = AIMessage("", tool_calls=[{"name": "find_recipes", "args": {"without": without}, "id": "call-1"}])
        else:
            reply = AIMessage("Noted!")
        return ChatResult(generations=[ChatGeneration(message=reply)])


def run(user, *lines):
    """Start the agent anew, in a new thread."""
    with typed(lines, user) as printed:
        load("langgraph_agent.py")["main"](Cook())
    return f"$ python examples/langgraph_agent.py {user}\n{printed.getvalue()}"


def test_the_agent_remembers_when_it_is_started_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HOLDFAST_STORE", raising=False)
    first, second = run("ana", "I'm allergic to peanuts."), run("ana", "What could I cook?")
    other = run("bo", "What could I cook?")

    assert "Known: Is allergic to peanuts." in second
    assert "lentil curry" in second
    assert "satay" not in second
    assert "satay" in other
    with Memory("agent.db") as memory:
        assert len(memory.user("ana").conversations()) == 2
        assert memory.user("ana").erase().rows["items"] > 0  # the threads of LangGraph went, too
    pictures.show("langgraph_agent", f"{first}\n{second}")
