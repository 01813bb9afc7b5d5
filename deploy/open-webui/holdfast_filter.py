"""
title: Holdfast memory
description: Shows the model what is known of the user, and stores what was said, in a Holdfast server.
author: The Holdfast authors
license: Apache-2.0
version: 0.1.0
required_open_webui_version: 0.6.0
"""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any
from urllib.error import URLError
from urllib.parse import quote
from urllib.request import Request, urlopen

from pydantic import BaseModel, Field

_log = logging.getLogger("holdfast")


class Filter:
    """
    A filter function of Open WebUI, one file and nothing to install.

    A connection to `holdfast serve` does more and needs no filter; this is for models whose address cannot be changed.  A
    memory that fails is left out, and the chat goes on.
    """

    class Valves(BaseModel):
        """Settings of the operator."""

        url: str = Field("http://127.0.0.1:7800", description="The address of holdfast serve")
        key: str = Field("", description="A key of the role app: holdfast keys --create app")
        budget_tokens: int = Field(1500, description="How many tokens of memory a prompt may get")
        timeout_s: float = Field(5.0, description="After so many seconds a chat goes on without its memory")

    class UserValves(BaseModel):
        """Settings of each user."""

        remember: bool = Field(True, description="Use memory in my chats")

    def __init__(self) -> None:
        self.valves = self.Valves()

    async def inlet(
        self, body: dict[str, Any], __user__: dict[str, Any] | None = None, __metadata__: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Put what is known of the user into a request."""
        place, messages = self._place(__user__, __metadata__, body), body.get("messages") or []
        asked = max((n for n, message in enumerate(messages) if message.get("role") == "user"), default=None)
        question = None if asked is None else _text(messages[asked].get("content"))
        if place is None or asked is None or not question:
            return body
        given = {"query": question, "budget_tokens": self.valves.budget_tokens}
        found = await self._call(f"{place}/context", given)
        if found is None:
            return body
        known, stable = found["messages"], found["stable_messages"]
        recalled = any(one["name"] == "recalled" and one["items"] for one in found["sections"])
        head = next((n for n, message in enumerate(messages) if message.get("role") != "system"), asked)
        before, question_part = messages[head:asked], known[stable : stable + recalled]
        body["messages"] = [*messages[:head], *known[:stable], *before, *question_part, *messages[asked:]]
        return body

    async def outlet(
        self, body: dict[str, Any], __user__: dict[str, Any] | None = None, __metadata__: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Store the last exchange, once."""
        place, messages = self._place(__user__, __metadata__, body), body.get("messages") or []
        asked = max((n for n, message in enumerate(messages) if message.get("role") == "user"), default=None)
        if place is not None and asked is not None:
            said = [(one.get("role"), _text(one.get("content"))) for one in messages[asked:]]
            given = [{"role": role, "content": text} for role, text in said if role in ("user", "assistant") and text]
            if given:
                await self._call(f"{place}/messages", {"messages": given}, once=str(messages[-1].get("id") or ""))
        return body

    def _place(self, user: Any, metadata: Any, body: dict[str, Any]) -> str | None:
        """Return the path of the user's conversation; ``None`` where there is no memory: for titles, and without consent."""
        about = metadata or {}
        chat = about.get("chat_id") or body.get("chat_id")
        valves = (user or {}).get("valves")
        wanted = valves.get("remember", True) if isinstance(valves, dict) else getattr(valves, "remember", True)
        if not user or not user.get("id") or not chat or about.get("task") or not wanted:
            return None
        return f"/v1/users/{quote(str(user['id']), safe='')}/conversations/{quote(str(chat), safe='')}"

    async def _call(self, path: str, given: dict[str, Any], once: str = "") -> Any:
        headers = {"Authorization": f"Bearer {self.valves.key}", "Content-Type": "application/json"}
        headers |= {"Idempotency-Key": once} if once else {}
        request = Request(self.valves.url.rstrip("/") + path, json.dumps(given).encode(), headers)
        try:
            return await asyncio.to_thread(self._send, request)
        except (URLError, OSError, ValueError) as error:
            _log.warning("the memory was left out: %s", error)
            return None

    def _send(self, request: Request) -> Any:
        with urlopen(request, timeout=self.valves.timeout_s) as answer:
            return json.load(answer)


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str))
