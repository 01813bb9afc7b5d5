"""Reading a benchmark's files, with errors that name the file and the place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar

from .questions import BadData

Kind = TypeVar("Kind", list[Any], dict[str, Any])


def read_json(path: Path) -> Any:
    """
    What a JSON file holds.

    Raises:
        BadData: it cannot be read, or is not JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadData(f"{path} cannot be read: {error.strerror}", hint="--data takes files that are here") from error
    except ValueError as error:
        raise BadData(f"{path} is not JSON: {error}", hint="give the file as it is distributed") from error


def whole(where: str | Path, value: Any, kind: type[Kind]) -> Kind:
    """*value*, which has to be of that kind; raises BadData and says where it is not."""
    if not isinstance(value, kind):
        raise BadData(
            f"{where} is not a JSON {'list' if kind is list else 'object'}", hint="give the file as it is distributed"
        )
    return value
