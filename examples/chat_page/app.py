"""
A chat page with its memory beside the chat: what the bot knows about you, live, to correct and to forget.

    pip install 'holdfast[llm,server]'
    OPENAI_API_KEY=… python examples/chat_page/app.py
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import uvicorn
from fastapi import Body, Cookie, FastAPI, Request
from fastapi.responses import FileResponse, JSONResponse, Response, StreamingResponse
from openai import AsyncOpenAI

from holdfast import AsyncConversation, AsyncMemory, AsyncUser
from holdfast.errors import BadInput, NotFound

SYSTEM = "You are a friendly cook. Answer in one or two sentences."
User = Annotated[str, Cookie()]
Text = Annotated[str, Body(embed=True, min_length=1, max_length=10_000)]


async def answer(client: AsyncOpenAI, chat: AsyncConversation, said: str) -> str:
    """Answer with what is known of the user; these lines are all that memory takes."""
    context = await chat.context(said, system=SYSTEM)
    messages: Any = list(context.messages)
    completion = await client.chat.completions.create(model=os.environ.get("MODEL", "gpt-5-mini"), messages=messages)
    reply = completion.choices[0].message.content or ""
    await chat.record(said, reply)
    return reply


async def changes(user: AsyncUser) -> AsyncIterator[str]:
    """Yield an event for the page whenever something about the user has changed, in whichever process."""
    seen = -1
    while True:
        newest = await user.last_event()
        yield f"data: {newest}\n\n" if newest != seen else ":\n\n"
        seen = newest
        await asyncio.sleep(0.5)


def create_app() -> FastAPI:
    """Return the page's application; HOLDFAST_STORE names its memory."""
    memory = AsyncMemory(os.environ.get("HOLDFAST_STORE", "chat.db"), background=True)
    client = AsyncOpenAI()

    @asynccontextmanager
    async def opened(app: FastAPI) -> AsyncIterator[None]:
        async with memory, client:
            yield

    app = FastAPI(lifespan=opened)

    @app.exception_handler(NotFound)
    @app.exception_handler(BadInput)
    async def refused(request: Request, error: Exception) -> JSONResponse:
        return JSONResponse({"error": str(error)}, 404 if isinstance(error, NotFound) else 400)

    @app.get("/")
    async def page(user: Annotated[str | None, Cookie()] = None) -> FileResponse:
        """Show the page.  A new visitor is a new user: in your program, whoever has signed in."""
        shown = FileResponse(Path(__file__).with_name("page.html"))
        shown.headers["Content-Security-Policy"] = "default-src 'self' 'unsafe-inline'; frame-ancestors 'none'"
        shown.set_cookie(
            "user", user or secrets.token_urlsafe(16), httponly=True, samesite="strict", max_age=31_536_000
        )
        return shown

    @app.post("/chats/{chat}")
    async def say(chat: str, text: Text, user: User) -> dict[str, str]:
        """Answer a message; whose chat it is says the cookie, never the page."""
        return {"reply": await answer(client, memory.conversation(chat, user=user), text)}

    @app.get("/facts")
    async def facts(user: User) -> list[dict[str, str]]:
        found = await memory.user(user).facts()
        return [
            {"id": f.id, "text": f.text, "value": f.value, "quote": f.evidence[0].quote if f.evidence else ""}
            for f in found
        ]

    @app.post("/facts/{fact}")
    async def correct(fact: str, text: Text, user: User) -> Response:
        await memory.user(user).correct(fact, value=text)
        return Response(status_code=204)

    @app.delete("/facts/{fact}")
    async def forget(fact: str, user: User) -> Response:
        await memory.user(user).forget(fact)
        return Response(status_code=204)

    @app.get("/live")
    async def live(user: User) -> StreamingResponse:
        return StreamingResponse(changes(memory.user(user)), media_type="text/event-stream")

    return app


if __name__ == "__main__":
    uvicorn.run(create_app(), port=int(os.environ.get("PORT", "8000")), timeout_graceful_shutdown=1)
