"""The ``holdfast`` command with ``--json``, called in this process on the file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .surface import CHAT

Run = Callable[..., Any]


class Command:
    """*run* is given the words of a command line and returns what it printed as JSON."""

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
        return len(self.summaries()) + sum(made["put_aside"] for made in self._of_chat("rebuild", "--list"))

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
