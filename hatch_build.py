"""
The build step that puts the default embedder's files into the wheel.

Nothing is downloaded when the files are there already, or in the user's cache.  When they cannot be
had, the build goes on without them: recall then works by words alone until
``holdfast.embed.fetch.fetch()`` has got them.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.config import BuilderConfig
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE = Path(__file__).parent / "src" / "holdfast"


class EmbedderHook(BuildHookInterface[BuilderConfig]):
    """Runs before a wheel, ordinary or editable, is put together."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        fetch = _fetch_module()
        try:
            how = fetch.obtain(PACKAGE / "embed" / "data")
        except (fetch.FetchError, OSError) as error:
            self.app.display_warning(f"{error}. This build goes on without it: recall works by words alone.")
            return
        self.app.display_info(f"embedding model: {how}")


def _fetch_module() -> ModuleType:
    """
    ``holdfast.embed.fetch`` out of the source tree.

    The two packages above it are stood in for by empty ones: the real ones need what Holdfast
    depends on, which is not installed yet.
    """
    for name, folder in (("holdfast", PACKAGE), ("holdfast.embed", PACKAGE / "embed")):
        sys.modules[name] = ModuleType(name)
        sys.modules[name].__path__ = [str(folder)]
    return importlib.import_module("holdfast.embed.fetch")
