"""
The library, the client, the command and the tools, driven by the calls that the stories use.

A surface is a way to the memory.  Its driver has the calls that the surface offers.  ``surfaces.toml`` lists what it lacks, with the
reason; that is done beside it, through the library on the same store, so that each story runs whole through each surface.
"""

from __future__ import annotations

import asyncio
import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import mcp
from mcp.client.streamable_http import streamable_http_client

from holdfast.testing.clock import FakeClock

LACKS: dict[str, dict[str, str]] = tomllib.loads((Path(__file__).parent / "surfaces.toml").read_text("utf-8"))
CHAT = "web-42"
Run = Callable[..., Any]


class Doors:
    """
    A `Memory`, or what has its calls.  It has every call that a story uses; facts are named by their sentences.

    Receipts are reduced to their level.
    """

    def __init__(self, memory: Any) -> None:
        self._memory = memory
        self._chat = memory.conversation(CHAT, user="ana")
        self._ana = memory.user("ana")

    def say(self, text: str) -> None:
        """Store what the user says, with a reply."""
        self._chat.record(text, "Noted.")

    def messages(self) -> list[str]:
        return [message.content for message in self._chat.load() if message.role == "user"]

    def edit(self, seq: int, text: str) -> None:
        self._chat.edit(seq, text)

    def forget_message(self, seq: int) -> None:
        self._chat.forget(seq)

    def digest(self) -> None:
        """Do the background work that is due."""
        self._memory.digest()

    def jobs(self, state: str = "") -> list[str]:
        """Return the ids of the jobs that are not finished."""
        return [job.id for job in self._memory.jobs(state or None)]

    def cancel(self, job: str) -> None:
        self._memory.cancel(job)

    def retry(self, job: str) -> None:
        self._memory.retry(job)

    def facts(self) -> list[str]:
        """Return the active facts in alphabetical order."""
        return sorted(fact.text for fact in self._ana.facts())

    def history(self, category: str) -> list[str]:
        """Return every value that a category had, oldest first."""
        return [fact.text for fact in self._ana.history(category)]

    def search(self, query: str) -> list[str]:
        return [hit.text for hit in self._ana.search(query)]

    def context(self, query: str) -> str:
        return str(self._chat.context(query).to_text())

    def remember(self, text: str) -> None:
        self._ana.remember(text)

    def correct(self, fact: str, value: str) -> None:
        self._ana.correct(self._id(fact), value=value)

    def never_true(self, fact: str) -> None:
        self._ana.never_true(self._id(fact))

    def restore(self, fact: str) -> None:
        self._ana.restore(self._id(fact))

    def forget(self, fact: str) -> str:
        return str(self._ana.forget(self._id(fact)).level)

    def _id(self, text: str) -> str:
        return str(next(fact.id for fact in self._ana.history() if fact.text == text))

    def never(self, topic: str) -> None:
        self._ana.never_remember(topic)

    def allow(self, topic: str) -> None:
        self._ana.allow(topic)

    def pause(self) -> None:
        self._ana.pause()

    def resume(self) -> None:
        self._ana.resume()

    def opt_out(self) -> str:
        return str(self._ana.opt_out().level)

    def opt_in(self) -> None:
        self._ana.opt_in()

    def status(self) -> str:
        return str(self._ana.status().state)

    def export(self) -> dict[str, Any]:
        found: dict[str, Any] = self._ana.export()
        return found

    def import_(self, data: dict[str, Any]) -> None:
        self._memory.import_(data)

    def erase(self) -> str:
        return str(self._ana.erase().level)

    def summaries(self) -> list[str]:
        """Return the active summaries of chunks, in order."""
        return [summary.text for summary in self._chat.summaries(level=1)]

    def rebuild(self) -> None:
        self._chat.rebuild("summaries")

    def put_back(self) -> None:
        """Revert the last rebuild."""
        self._chat.restore(self._chat.rebuilds()[-1].id)

    def versions(self) -> int:
        """Count the stored versions of summaries."""
        return len(self._chat.summaries(level=1, live=False))

    def prompt(self) -> str:
        """Return the prompt for summaries of chunks."""
        return str(self._ana.prompts.get("chunk_summary"))

    def set_prompt(self, text: str) -> None:
        self._ana.prompts.set("chunk_summary", text)

    def reset_prompt(self) -> None:
        self._ana.prompts.reset("chunk_summary")


CALLS = tuple(name for name in vars(Doors) if not name.startswith("_"))


class Command:
    """
    The ``holdfast`` command with ``--json``, called in this process on the file.

    *run* takes the words of a command line and returns the printed JSON.
    """

    def __init__(self, run: Run, folder: Path) -> None:
        self._run, self._folder = run, folder

    def say(self, text: str) -> None:
        self._of_chat("say", text, "--reply", "Noted.")

    def messages(self) -> list[str]:
        if CHAT not in {talk["conversation"] for talk in self._of("list")}:
            return []
        return [said["content"] for said in self._of_chat("messages") if said["role"] == "user"]

    def edit(self, seq: int, text: str) -> None:
        self._of_chat("edit", str(seq), text)

    def forget_message(self, seq: int) -> None:
        self._of_chat("forget", "--message", str(seq), "--yes")

    def digest(self) -> None:
        self._run("digest")

    def jobs(self, state: str = "") -> list[str]:
        return [job["id"] for job in self._run("jobs", *(("--state", state) if state else ()))["jobs"]]

    def cancel(self, job: str) -> None:
        self._run("jobs", "--cancel", job)

    def retry(self, job: str) -> None:
        self._run("jobs", "--retry", job)

    def facts(self) -> list[str]:
        return sorted(fact["text"] for fact in self._of("facts"))

    def history(self, category: str) -> list[str]:
        return [fact["text"] for fact in self._of("history", category)]

    def search(self, query: str) -> list[str]:
        return [hit["text"] for hit in self._of("search", query)]

    def context(self, query: str) -> str:
        return "\n".join(message["content"] for message in self._of_chat("context", query)["messages"])

    def remember(self, text: str) -> None:
        self._of("remember", text)

    def correct(self, fact: str, value: str) -> None:
        self._of("correct", self._id(fact), value)

    def never_true(self, fact: str) -> None:
        self._of("never-true", self._id(fact))

    def restore(self, fact: str) -> None:
        self._of("restore", self._id(fact))

    def forget(self, fact: str) -> str:
        return str(self._of("forget", self._id(fact), "--yes")["level"])

    def _id(self, text: str) -> str:
        known = [*self._of("facts"), *self._of("history", "home"), *self._of("history", "dietary")]
        return str(next(fact["id"] for fact in known if fact["text"] == text))

    def never(self, topic: str) -> None:
        self._of("never-remember", topic)

    def allow(self, topic: str) -> None:
        self._of("allow", topic)

    def pause(self) -> None:
        self._of("pause")

    def resume(self) -> None:
        self._of("resume")

    def opt_out(self) -> str:
        return str(self._of("opt-out", "--yes")["receipt"]["level"])

    def opt_in(self) -> None:
        self._of("opt-in")

    def status(self) -> str:
        return str(self._of("status")["state"])

    def export(self) -> dict[str, Any]:
        found: dict[str, Any] = self._of("export")
        return found

    def import_(self, data: dict[str, Any]) -> None:
        file = self._folder / "export.json"
        file.write_text(json.dumps(data), "utf-8")
        self._of("import", str(file))

    def erase(self) -> str:
        return str(self._of("erase", "--yes")["level"])

    def summaries(self) -> list[str]:
        return [summary["text"] for summary in self._of_chat("summaries", "--level", "1")]

    def rebuild(self) -> None:
        self._of_chat("rebuild", "summaries")

    def put_back(self) -> None:
        self._of_chat("rebuild", "--undo", "last")

    def versions(self) -> int:
        return len(self.summaries()) + sum(made["replaced"] for made in self._of_chat("rebuild", "--list"))

    def prompt(self) -> str:
        return str(self._of("prompts", "chunk_summary")["text"])

    def set_prompt(self, text: str) -> None:
        self._of("prompts", "chunk_summary", "--set", text)

    def reset_prompt(self) -> None:
        self._of("prompts", "chunk_summary", "--reset")

    def _of(self, *words: str) -> Any:
        return self._run(words[0], "--user", "ana", *words[1:])

    def _of_chat(self, *words: str) -> Any:
        return self._of(*words, "--conversation", CHAT)


class Tools:
    """
    The tools of the Model Context Protocol, called by the official client over HTTP with a user's key.

    Each call opens a session, as the server keeps none.
    """

    def __init__(self, address: str, key: str) -> None:
        self._address, self._key = address, key

    def facts(self) -> list[str]:
        return sorted(item["text"] for item in self._call("list_memories")["result"])

    def history(self, category: str) -> list[str]:
        return [item["text"] for item in self._call("memory_history", category=category)["result"]]

    def search(self, query: str) -> list[str]:
        return [item["text"] for item in self._call("search_memory", query=query)["result"]]

    def context(self, query: str) -> str:
        return str(self._call("get_context", query=query, conversation=CHAT)["result"])

    def remember(self, text: str) -> None:
        assert self._call("add_memory", text=text)["op"] == "new"

    def correct(self, fact: str, value: str) -> None:
        self._call("update_memory", memory_id=self._id(fact), value=value)

    def forget(self, fact: str) -> str:
        return str(self._call("delete_memory", memory_id=self._id(fact))["level"])

    def _id(self, text: str) -> str:
        return str(next(item["id"] for item in self._call("list_memories")["result"] if item["text"] == text))

    def _call(self, tool: str, **arguments: Any) -> Any:
        async def work() -> Any:
            async with httpx.AsyncClient(headers={"Authorization": f"Bearer {self._key}"}) as http:
                async with mcp.Client(streamable_http_client(f"{self._address}/mcp", http_client=http)) as client:
                    answer = await client.call_tool(tool, arguments)
            assert not answer.is_error, answer.content
            return answer.structured_content

        return asyncio.run(work())


class Surface:
    """
    A driver, completed by the library on the same store for what it lacks; ``own`` counts the calls that it did itself.

    A minute passes before each call, so that what happened has an order.
    """

    def __init__(self, name: str, driver: Any, beside: Any, clock: FakeClock) -> None:
        self.name, self.own = name, 0
        self._driver, self._beside, self._clock = driver, beside, clock

    def __getattr__(self, call: str) -> Any:
        self._clock.advance(minutes=1)
        found = getattr(self._driver, call, None)
        if found is None:
            assert call in LACKS[self.name], f"{self.name} offers no {call}, and surfaces.toml gives no reason"
            return getattr(self._beside, call)
        self.own += 1
        return found
