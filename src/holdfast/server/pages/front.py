"""Sign-in, sign-out, the home page, the API reference and static files."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from ..gate import COOKIE, SignInLinks, cookie_of
from ..routing import PUBLIC, USER, RouteTable
from ..schemas import CallerDep
from .layout import NAV, STATIC, FormDep, local_address, render, see_other, signed_in_key
from .texts import LANGUAGE_COOKIE, LANGUAGES, load_texts, translate

table = RouteTable()
SESSION = timedelta(hours=12)
SESSION_NAME = "browser"


@table.page("GET", "/", USER)
def front_page(request: Request) -> Response:
    """Redirect to the first page that the key may open."""
    key, known = signed_in_key(request), request.app.state.table
    for _title, address, _icon in NAV:
        route, _, _ = known.find("GET", address)
        if key is not None and route is not None and route.roles is not None and key.role in route.roles:
            return see_other(address)
    raise HTTPException(403, load_texts("me")("sign_in.programs"))


@table.page("GET", "/sign-in", PUBLIC)
def sign_in_page(request: Request) -> Response:
    """Show the form for a key."""
    return _sign_in(request)


@table.page("POST", "/sign-in", PUBLIC)
def sign_in(request: Request, form: FormDep) -> Response:
    """
    Check a key, and give the browser another key for twelve hours.

    So the key that was typed is nowhere in the browser, and signing out ends what the browser holds.
    """
    access = request.app.state.memory.admin.keys
    typed = form.get("key", "").strip()
    if SignInLinks.is_link(typed):
        if not request.app.state.sign_in_links.redeem(typed):
            return _sign_in(request, "link")
        made = access.create("operator", name=SESSION_NAME, expires_at=SESSION)
        return _signed_in(request, made.key)
    key = access.check(typed)
    if key is not None and key.role in ("app", "subject"):
        return _sign_in(request, "programs")
    made = access.copy(typed, name=SESSION_NAME, lasts=SESSION)
    if made is None:
        return _sign_in(request, "invalid")
    return _signed_in(request, made.key)


def _signed_in(request: Request, session_key: str) -> Response:
    """Redirect to the requested page, with *session_key* in a cookie."""
    answer = see_other(local_address(request.query_params.get("next")))
    secure = request.url.scheme == "https" or request.headers.get("origin", "").startswith("https:")
    answer.set_cookie(
        COOKIE,
        session_key,
        max_age=int(SESSION.total_seconds()),
        path="/",
        secure=secure,
        httponly=True,
        samesite="strict",
    )
    return answer


@table.page("POST", "/sign-out", USER)
def sign_out(request: Request, caller: CallerDep) -> Response:
    """Revoke the key of this browser."""
    key = caller.grant.key
    if key is not None and key.name == SESSION_NAME:
        caller.memory.admin.keys.revoke(key.id)
    answer = see_other("/sign-in", said="signed-out")
    answer.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
    return answer


@table.page("POST", "/language", PUBLIC)
def choose_language(request: Request, form: FormDep) -> Response:
    """Keep the language that was chosen in this browser, and show the page again."""
    del request
    answer = see_other(local_address(form.get("next")))
    if form["language"] in LANGUAGES:
        answer.set_cookie(LANGUAGE_COOKIE, form["language"], max_age=365 * 86_400, path="/", samesite="lax")
    return answer


@table.page("GET", "/static/{file}", PUBLIC)
def static_file(request: Request, file: str) -> Response:
    """Return a style sheet, a script or an icon; cached for a year if the address names its content."""
    if file not in STATIC:
        raise HTTPException(404, translate("File not found"))
    data, kind, tag = STATIC[file]
    kept = "public, max-age=31536000, immutable" if request.query_params.get("v") == tag else "no-cache"
    headers = {"Cache-Control": kept, "ETag": f'"{tag}"'}
    if request.headers.get("if-none-match") == f'"{tag}"':
        return Response(status_code=304, headers=headers)
    return Response(data, media_type=kind, headers=headers)


def _sign_in(request: Request, error: str = "") -> Response:
    held = bool(cookie_of(request.headers)) and not error
    said = load_texts("me")
    problem = said(f"sign_in.{error}") if error else ""
    return render(
        "sign-in.html",
        request,
        title=said("sign_in.title"),
        t=said,
        status=422 if error else 200,
        error=problem,
        held=held,
    )


HTTP_METHODS = ("get", "post", "put", "patch", "delete")


def reference_page(request: Request, document: Mapping[str, Any]) -> Response:
    """Show every operation of the API, by noun, with its parameters and body fields."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for path, methods in document["paths"].items():
        for method in HTTP_METHODS:
            if method in methods:
                operation = methods[method]
                row = {
                    "method": method.upper(),
                    "path": path,
                    "id": operation["operationId"],
                    "summary": (operation.get("description") or operation.get("summary", "")).split("\n")[0],
                    "parameters": operation.get("parameters", []),
                    "fields": _body_fields(operation, document),
                }
                groups.setdefault(operation["tags"][0], []).append(row)
    return render("reference.html", request, title=translate("API reference"), groups=dict(sorted(groups.items())))


def _body_fields(operation: Mapping[str, Any], document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the fields of a JSON body: name, type, and whether it is required."""
    content = operation.get("requestBody", {}).get("content", {})
    schema = _resolved(content.get("application/json", {}).get("schema", {}), document)
    required = schema.get("required", [])
    return [
        {"name": name, "type": _type_text(part), "required": name in required, "about": part.get("description", "")}
        for name, part in schema.get("properties", {}).items()
    ]


def _resolved(schema: Mapping[str, Any], document: Mapping[str, Any]) -> Mapping[str, Any]:
    if "$ref" not in schema:
        return schema
    found: Mapping[str, Any] = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return found


def _type_text(schema: Mapping[str, Any]) -> str:
    """Describe a schema: ``integer``, ``list of string``, ``"a" or "b"``."""
    if "enum" in schema:
        return " or ".join(f'"{value}"' for value in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(_type_text(part) for part in schema["anyOf"])
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if schema.get("type") == "array":
        return f"list of {_type_text(schema.get('items', {}))}"
    return str(schema.get("type", "any"))
