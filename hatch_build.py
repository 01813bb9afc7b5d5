"""
The build step that puts the default embedder's files into the wheel.

Nothing is downloaded when the files are there already, or in the user's cache.  When they cannot be
had, the build goes on without them: recall then works by words alone until
``holdfast.embed.fetch()`` has got them.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.config import BuilderConfig
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

EMBED = Path(__file__).parent / "src" / "holdfast" / "embed"


class EmbedderHook(BuildHookInterface[BuilderConfig]):
    """Runs before a wheel, ordinary or editable, is put together."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        files = _model_files()
        try:
            how = files.obtain(EMBED / "data")
        except (files.FetchError, OSError) as error:
            self.app.display_warning(f"{error}. This build goes on without it: recall works by words alone.")
            return
        self.app.display_info(f"embedding model: {how}")


def _model_files() -> ModuleType:
    """The package's own module, by its path: the package cannot be imported before it is installed."""
    spec = importlib.util.spec_from_file_location("model_files", EMBED / "model_files.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["model_files"] = module
    spec.loader.exec_module(module)
    return module
