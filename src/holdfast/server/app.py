"""One `Memory` as an ASGI application."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from .. import __version__
from ..memory import Memory
from . import conversations, operating, people, problems
from .gate import Gate
from .routing import PUBLIC, Table
from .settings import ServerSettings

_DEFAULTS = ServerSettings()


def create_app(memory: Memory, settings: ServerSettings = _DEFAULTS) -> FastAPI:
    """
    Serve *memory*; the caller closes it.

    The document of the API is at ``/openapi.json``; every other path but ``/healthz`` and ``/readyz`` needs a key.
    """
    app = FastAPI(
        title="Holdfast",
        version=__version__,
        summary="Conversation memory for chatbots: every turn kept, every fact current, every prompt within budget.",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.memory = memory
    problems.install(app)
    table = routes()

    @table.add("GET", "/openapi.json", PUBLIC, include_in_schema=False)
    def document() -> dict[str, Any]:
        return app.openapi()

    table.install(app)
    app.add_middleware(Gate, table=table, access=memory.access, settings=settings)
    return app


def routes() -> Table:
    """Every route there is."""
    table = Table()
    for part in (conversations, people, operating):
        table.routes += part.table.routes
    return table
