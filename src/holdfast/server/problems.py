"""Errors as ``application/problem+json`` (RFC 9457), each with our ``code`` and a ``hint``; never with message text."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Scope

from ..errors import (
    BadInput,
    Changed,
    ConfigError,
    Conflict,
    HoldfastError,
    KeyReused,
    NotFound,
    StoreBusy,
    StoreError,
    StoreFull,
    TooLarge,
    VaultLocked,
)
from ..llm.protocol import ModelError

MEDIA_TYPE = "application/problem+json"

# The first class that fits decides.
_STATUS: tuple[tuple[type[HoldfastError], int, str], ...] = (
    (TooLarge, 413, "Too large"),
    (BadInput, 422, "The request cannot be used"),
    (NotFound, 404, "Not found"),
    (KeyReused, 422, "This key was used before"),
    (Changed, 412, "It has changed meanwhile"),
    (Conflict, 409, "Conflict"),
    (VaultLocked, 409, "Keys of providers cannot be kept here"),
    (ConfigError, 422, "The request cannot be used"),
    (StoreBusy, 503, "The store is busy"),
    (StoreFull, 507, "The disk is full"),
    (StoreError, 503, "The store cannot do it"),
    (ModelError, 502, "The model gave no answer"),
    (HoldfastError, 500, "Holdfast could not do it"),
)
RETRY_AFTER_S = 5


def problem(
    status: int,
    code: str,
    title: str,
    detail: str = "",
    *,
    hint: str = "",
    headers: Mapping[str, str] | None = None,
    more: Mapping[str, Any] | None = None,
) -> Response:
    """One problem as a response; *more* are members that the format does not know."""
    body: dict[str, Any] = {"type": f"urn:holdfast:{code}", "title": title, "status": status, "code": code}
    if detail:
        body["detail"] = detail
    if hint:
        body["hint"] = hint
    # ASCII, so that whatever a name held can be encoded
    return Response(
        json.dumps({**body, **(more or {})}), status_code=status, media_type=MEDIA_TYPE, headers=dict(headers or {})
    )


def of_error(error: HoldfastError) -> Response:
    """The problem that one of our errors is."""
    status, title = next((status, title) for kind, status, title in _STATUS if isinstance(error, kind))
    headers = {"Retry-After": str(RETRY_AFTER_S)} if status in (503, 507) else {}
    return problem(status, error.code, title, error.message, hint=error.hint, headers=headers)


def install(app: FastAPI, fitted: Callable[[Scope, Response], Response]) -> None:
    """Answer every error of *app* with a problem, which *fitted* turns into a page where a page was asked for."""

    async def ours(request: Request, error: Exception) -> Response:
        assert isinstance(error, HoldfastError)
        return fitted(request.scope, of_error(error))

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return fitted(request.scope, problem(error.status_code, "http", str(error.detail), headers=error.headers))

    async def misshaped(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        told = problem(422, "bad-input", "The request cannot be used", _where(error), hint="see /openapi.json")
        return fitted(request.scope, told)

    async def broken(request: Request, _error: Exception) -> Response:
        told = problem(500, "internal", "Something broke here", hint="the log of the server says more")
        return fitted(request.scope, told)

    app.add_exception_handler(HoldfastError, ours)
    app.add_exception_handler(HTTPException, refused)
    app.add_exception_handler(RequestValidationError, misshaped)
    app.add_exception_handler(Exception, broken)


def _where(error: RequestValidationError) -> str:
    """Which fields, and what is wrong with them; what was sent is not repeated."""
    told = []
    for item in error.errors()[:5]:
        # a name that the caller made up may be text of a message
        place = ".".join(str(part) for part in item["loc"] if isinstance(part, int) or part.isidentifier())[:100]
        told.append(f"{place}: {item['msg'] if item['type'] != 'json_invalid' else 'this is not JSON'}")
    return "; ".join(told)
