"""The doors of the library, also those that are awaited or reached over HTTP."""

from __future__ import annotations

from typing import Any

from .surface import CHAT


class Doors:
    """`memory` is a `Memory`, or what has its calls."""

    def __init__(self, memory: Any) -> None:
        self._memory = memory
        self._chat = memory.conversation(CHAT, user="ana")
        self._ana = memory.user("ana")

    def say(self, text: str) -> None:
        self._chat.record(text, "Noted.")

    def messages(self) -> list[str]:
        return [message.content for message in self._chat.load() if message.role == "user"]

    def edit(self, seq: int, text: str) -> None:
        self._chat.edit(seq, text)

    def forget_message(self, seq: int) -> None:
        self._chat.forget(seq)

    def digest(self) -> None:
        self._memory.digest()

    def jobs(self, state: str = "") -> list[str]:
        return [job.id for job in self._memory.jobs(state or None)]

    def cancel(self, job: str) -> None:
        self._memory.cancel(job)

    def retry(self, job: str) -> None:
        self._memory.retry(job)

    def facts(self) -> list[str]:
        return sorted(fact.text for fact in self._ana.facts())

    def history(self, category: str) -> list[str]:
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
        return [summary.text for summary in self._chat.summaries(level=1)]

    def rebuild(self) -> None:
        self._chat.rebuild("summaries")

    def put_back(self) -> None:
        self._chat.restore(self._chat.rebuilds()[-1].id)

    def versions(self) -> int:
        return len(self._chat.summaries(level=1, live=False))

    def prompt(self) -> str:
        return str(self._ana.prompts.get("chunk_summary"))

    def set_prompt(self, text: str) -> None:
        self._ana.prompts.set("chunk_summary", text)

    def reset_prompt(self) -> None:
        self._ana.prompts.reset("chunk_summary")
