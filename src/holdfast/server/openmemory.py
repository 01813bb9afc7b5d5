"""The tools of OpenMemory, mem0's server of the Model Context Protocol, under their names and with their answers."""

from __future__ import annotations

import json
from typing import Annotated, Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.tools import Tool
from pydantic import Field

from .. import __version__
from ..compat.mem0 import Mem0Memory
from ..memory import Memory
from .mcp import ERASES, INSTRUCTIONS, READS, WRITES, Identify, MemoryOwner, run_tool

Text = Annotated[str, Field(description="What the user said or wants remembered, in their words.")]
Wanted = Annotated[str, Field(description="What to look for: a few words or a question.")]
Ids = Annotated[list[str], Field(description="The ids of memories, as search_memory and list_memories return them.")]


def openmemory_tools(memory: Memory, identify: Identify) -> MCPServer[Any]:
    """Return OpenMemory's five tools over *memory*; *identify* names the user of each call."""

    def whose(ctx: Context[Any, Any]) -> tuple[Mem0Memory, MemoryOwner]:
        owner = identify(ctx)
        return Mem0Memory(memory, org=owner.org, bot=owner.bot), owner

    async def add_memories(text: Text, ctx: Context[Any, Any]) -> str:
        """Add a memory. Call it whenever the user shares something about themselves that may matter later."""
        shapes, owner = whose(ctx)
        return json.dumps(await run_tool(shapes.add, text, user_id=owner.user))

    async def search_memory(query: Wanted, ctx: Context[Any, Any]) -> str:
        """Search the memories of the user. Call it whenever the user asks anything."""
        shapes, owner = whose(ctx)
        return json.dumps(await run_tool(shapes.search, query, filters={"user_id": owner.user}), indent=2)

    async def list_memories(ctx: Context[Any, Any]) -> str:
        """List all memories of the user."""
        shapes, owner = whose(ctx)
        return json.dumps(await run_tool(shapes.get_all, filters={"user_id": owner.user}, top_k=None), indent=2)

    async def delete_memories(memory_ids: Ids, ctx: Context[Any, Any]) -> str:
        """Delete memories by their ids, for good. Only when the user asks for it."""
        shapes, owner = whose(ctx)
        held = await run_tool(shapes.get_all, filters={"user_id": owner.user}, top_k=None)
        own = {row["id"] for row in held["results"]} & set(memory_ids)
        for memory_id in sorted(own):
            await run_tool(shapes.delete, memory_id)
        return (
            f"Successfully deleted {len(own)} memories"
            if own
            else "Error: No accessible memories found with provided IDs"
        )

    async def delete_all_memories(ctx: Context[Any, Any]) -> str:
        """Delete everything that is remembered of the user, for good. Only when the user asks for it."""
        shapes, owner = whose(ctx)
        await run_tool(shapes.delete_all, user_id=owner.user)
        return "Successfully deleted all memories"

    calls = (
        (add_memories, "Add memories", WRITES),
        (search_memory, "Search memory", READS),
        (list_memories, "List memories", READS),
        (delete_memories, "Delete memories", ERASES),
        (delete_all_memories, "Delete all memories", ERASES),
    )
    return MCPServer(
        "mem0-mcp-server",
        version=__version__,
        instructions=INSTRUCTIONS.replace("get_context or ", "").replace("add_memory", "add_memories"),
        log_level="WARNING",
        tools=[Tool.from_function(call, title=title, annotations=notes) for call, title, notes in calls],
    )
