"""``holdfast``, and ``python -m holdfast``: the command, of which a coding agent's hook with a server loads the least."""

from __future__ import annotations

import sys
from importlib import import_module


def main() -> int:
    """Run the command line of this process."""
    if sys.argv[1:3] == ["hook", "run"]:
        served = import_module("holdfast.integrations.agents.served")
        if served.run(sys.argv[3:]):
            return 0
    code: int = import_module("holdfast.cli").main()
    return code


if __name__ == "__main__":
    sys.exit(main())
