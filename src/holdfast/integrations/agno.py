"""
Memory for Agno: `memory_options`.

    agent = Agent(model=model, db=db, **memory_options(memory))
    agent.run("What may I eat?", user_id="ana", session_id="web-42")

A team takes the same options.  What memory adds is in the system message, behind the instructions, and in no stored run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..aio import AsyncMemory
from ..errors import BadInput
from ..memory import Memory
from ..types import Message
from .common import AdapterMemory, MemoryBlocks, in_thread, missing_package

try:
    from agno.exceptions import InputCheckError
    from agno.learn import LearningMachine
except ImportError as error:
    raise missing_package("Agno", "agno", error) from error

__all__ = ["HoldfastLearning", "memory_options"]


def memory_options(
    memory: Memory | AsyncMemory,
    *,
    user: str | None = None,
    conversation: str | None = None,
    org: str = "default",
    bot: str = "default",
    subject: str | None = None,
    budget_tokens: int | None = None,
    read: bool = True,
    write: bool = True,
) -> dict[str, Any]:
    """
    Return the options that give an agent or a team memory: ``learning``, ``pre_hooks`` and ``post_hooks``.

    ``agent.run(…, user_id=…, session_id=…, metadata={"idempotency_key": …})`` names the user, the conversation and the turn
    of a run.  A `Memory` is for ``run``, an `AsyncMemory` for ``arun``.

    Args:
        memory: a `Memory` or an `AsyncMemory`.
        user: whose memory it is when a run names no user.
        conversation: the conversation, in place of the session's id.
        org: the tenant.
        bot: the assistant.
        subject: whom or what the conversations are about, when that is not the user.
        budget_tokens: what memory may add to a prompt; ``Config.budget_tokens`` when not given.
        read: ``False`` to store only.
        write: ``False`` to read only.
    """
    members = AdapterMemory(
        memory,
        user=user,
        org=org,
        bot=bot,
        subject=subject,
        budget_tokens=budget_tokens,
        read=read,
        write=write,
    )
    store = HoldfastLearning(members, conversation)
    waits = isinstance(memory, AsyncMemory)
    return {
        "learning": LearningMachine(custom_stores={"holdfast": store}),
        "pre_hooks": [store.abegin if waits else store.begin],
        "post_hooks": [store.afinish if waits else store.finish],
    }


class HoldfastLearning:
    """A learning store, and the hooks that store what was said; made by `memory_options`."""

    learning_type = "holdfast"
    schema = MemoryBlocks

    def __init__(self, members: AdapterMemory, conversation: str | None) -> None:
        self._members, self._conversation = members, conversation

    def begin(self, run_input: Any, run_context: Any, agent: Any = None, team: Any = None) -> None:
        """Store what the user said, before the model is asked."""
        if getattr(agent or team, "db", None) is None:
            raise InputCheckError("Agno asks a memory only with a database of its own: pass db=InMemoryDb() or another")
        try:
            self._store(run_context, 0, "user", _question(run_input.input_content))
        except BadInput as error:  # the only kind of error that ends a run
            raise InputCheckError(str(error)) from error

    async def abegin(self, run_input: Any, run_context: Any, agent: Any = None, team: Any = None) -> None:
        """Store what the user said, in a worker thread."""
        await in_thread(self.begin, run_input, run_context, agent, team)

    def finish(self, run_output: Any, run_context: Any) -> None:
        """Store what the agent replied."""
        content = run_output.content
        self._store(run_context, 1, "assistant", content if isinstance(content, str) else _as_text(run_output))

    async def afinish(self, run_output: Any, run_context: Any) -> None:
        """Store what the agent replied, in a worker thread."""
        await in_thread(self.finish, run_output, run_context)

    def recall(
        self, user_id: str | None = None, session_id: str | None = None, message: str | None = None, **more: Any
    ) -> MemoryBlocks | None:
        """Return what memory has for a run."""
        conversation = self._conversation or session_id
        return self._members.blocks(conversation, message, user_id) if conversation else None

    async def arecall(self, **named: Any) -> MemoryBlocks | None:
        """Return what memory has for a run, from a worker thread."""
        return await in_thread(self.recall, **named)

    def build_context(self, data: MemoryBlocks | None) -> str:
        """Return the part of the system message: what stays the same from run to run comes first."""
        return "" if data is None else "\n\n".join(text for text in (data.stable, data.volatile) if text)

    def process(self, messages: Sequence[Any], **named: Any) -> None:
        """Do nothing: this runs beside the model, and so without its reply; the hooks store what was said."""

    async def aprocess(self, messages: Sequence[Any], **named: Any) -> None:
        """Do nothing, as `process` does."""

    def instructions(self) -> str:
        """Return nothing: there are no tools to explain."""
        return ""

    def get_tools(self, **named: Any) -> list[Callable[..., Any]]:
        """Return no tools."""
        return []

    async def aget_tools(self, **named: Any) -> list[Callable[..., Any]]:
        """Return no tools."""
        return []

    @property
    def was_updated(self) -> bool:
        """Whether the store learned something while the model was asked: never."""
        return False

    def _store(self, run: Any, number: int, role: str, text: str) -> None:
        user = self._members.checked_user(run.user_id)
        if text.strip():
            named = (run.metadata or {}).get("idempotency_key") or run.run_id
            key = f"agno {named}:{number}"
            self._members.record(self._conversation or run.session_id, [(key, Message(role, text.strip()))], user)


def _question(given: Any) -> str:
    """Return the user's words from what a run was given: a text, a message, a model, or a list of them."""
    if isinstance(given, list):
        if all(isinstance(one, str) for one in given):
            return "\n".join(given)
        asked = [one for one in given if _field(one, "role") == "user"]
        return _question(asked[-1]) if asked else ""
    content = _field(given, "content")
    if isinstance(content, list):
        return "\n".join(part["text"] for part in content if isinstance(part, Mapping) and "text" in part)
    if isinstance(content, str) and _field(given, "role") is not None:
        return content
    if hasattr(given, "model_dump_json"):
        return str(given.model_dump_json(indent=2, exclude_none=True))
    return given if isinstance(given, str) else ""


def _field(given: Any, name: str) -> Any:
    return given.get(name) if isinstance(given, Mapping) else getattr(given, name, None)


def _as_text(run_output: Any) -> str:
    return "" if run_output.content is None else str(run_output.get_content_as_string())
