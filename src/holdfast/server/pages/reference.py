"""``/docs``: the document of the API as a page, which loads nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import Request
from starlette.responses import Response

from .shell import render

METHODS = ("get", "post", "put", "patch", "delete")


def reference_page(request: Request, document: Mapping[str, Any]) -> Response:
    """Render *document*: every operation, by noun, with its parameters and the fields of its body."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for path, methods in document["paths"].items():
        for method in METHODS:
            if method in methods:
                operation = methods[method]
                row = {
                    "method": method.upper(),
                    "path": path,
                    "id": operation["operationId"],
                    "summary": (operation.get("description") or operation.get("summary", "")).split("\n")[0],
                    "parameters": operation.get("parameters", []),
                    "fields": _fields(operation, document),
                }
                groups.setdefault(operation["tags"][0], []).append(row)
    return render("reference.html", request, title="API reference", groups=dict(sorted(groups.items())))


def _fields(operation: Mapping[str, Any], document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The fields of a JSON body, each with its name, its type in a few words, and whether it is required."""
    content = operation.get("requestBody", {}).get("content", {})
    schema = _resolved(content.get("application/json", {}).get("schema", {}), document)
    required = schema.get("required", [])
    return [
        {"name": name, "type": _type(part), "required": name in required, "about": part.get("description", "")}
        for name, part in schema.get("properties", {}).items()
    ]


def _resolved(schema: Mapping[str, Any], document: Mapping[str, Any]) -> Mapping[str, Any]:
    if "$ref" not in schema:
        return schema
    found: Mapping[str, Any] = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return found


def _type(schema: Mapping[str, Any]) -> str:
    """A schema in a few words: ``integer``, ``list of string``, ``"a" or "b"``."""
    if "enum" in schema:
        return " or ".join(f'"{value}"' for value in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(_type(part) for part in schema["anyOf"])
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return str(schema.get("type", "any"))
