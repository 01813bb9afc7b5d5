"""``hermes-holdfast``: put the provider where Hermes looks for it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

PLUGIN = '''"""Written by hermes-holdfast: Hermes finds a memory provider in this folder."""

from hermes_holdfast import register  # calls ctx.register_memory_provider

__all__ = ["register"]
'''
MANIFEST = (
    'name: holdfast\nversion: 0.1.0\ndescription: "Holdfast: every turn kept in one file, facts without a key."\n'
)


def main() -> int:
    """Write the plugin's two files, and say where."""
    home = Path(os.environ.get("HERMES_HOME") or Path.home() / ".hermes")
    folder = home / "plugins/holdfast"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "__init__.py").write_text(PLUGIN, encoding="utf-8")
        (folder / "plugin.yaml").write_text(MANIFEST, encoding="utf-8")
    except OSError as error:
        print(f"{folder} cannot be written: {error.strerror}; set HERMES_HOME to Hermes' home folder", file=sys.stderr)
        return 1
    print(f"{folder}   now: hermes config set memory.provider holdfast")
    return 0


if __name__ == "__main__":
    sys.exit(main())
