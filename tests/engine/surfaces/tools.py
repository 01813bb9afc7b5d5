"""The tools of the Model Context Protocol, called by the official client over HTTP, with a key of the user's own."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import mcp
from mcp.client.streamable_http import streamable_http_client

from .surface import CHAT


class Tools:
    """Each call is a session of its own, as the server keeps none."""

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
