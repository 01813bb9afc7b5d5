"""The door for probes and Prometheus that `holdfast serve` and `holdfast worker` can open."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .plain import CommandError

if TYPE_CHECKING:
    from ..memory import Memory

Operations = Annotated[
    str | None,
    typer.Option(
        "--operations",
        envvar="HOLDFAST_OPERATIONS",
        metavar="ADDRESS",
        help="Answer /healthz, /readyz and /metrics there, without a key: 127.0.0.1:9464, or :9464 for every address. "
        "It names nobody; keep it within your network.",
    ),
]
_ADDRESS = re.compile(r"(?:\[(?P<v6>[0-9a-fA-F:.]+)\]|(?P<host>[^:\[\]]*)):(?P<port>[0-9]{1,5})")


@contextmanager
def opened(where: str | None, memory: Memory, meters: Any = None, *, threads: int = 0) -> Iterator[str | None]:
    """
    Keep the door open during the block; its address, ``None`` when none is wanted.

    *meters* are those of a server in the same process; a worker has its own.

    Raises:
        CommandError: what the door needs is not installed, or nothing can listen there.
    """
    if where is None:
        yield None
        return
    host, port = _address(where)
    try:
        found = import_module("holdfast.server.metrics")
    except ImportError as error:
        raise CommandError(
            "not-installed",
            f"--operations needs {error.name or 'a package'}, which is not installed",
            hint="pip install 'holdfast[server]'",
            exit_code=3,
        ) from error
    figures = meters if meters is not None else found.Meters(memory, threads=threads)
    try:
        door = found.serve_probes(host, port, figures)
        got = door.__enter__()
    except OSError as error:
        why = error.strerror or str(error)
        raise CommandError(
            "cannot-listen", f"nothing can listen at {where}: {why}", hint="name another port"
        ) from error
    try:
        yield f"http://{f'[{got[0]}]' if ':' in got[0] else got[0]}:{got[1]}"
    finally:
        door.__exit__(None, None, None)


def _address(where: str) -> tuple[str, int]:
    found = _ADDRESS.fullmatch(where)
    if found is None or int(found["port"]) > 65_535:
        hint = "write it as 127.0.0.1:9464, or :9464 for every address"
        raise CommandError("usage", f"--operations {where!r} is no address", hint=hint, exit_code=2)
    return found["v6"] or found["host"] or "0.0.0.0", int(found["port"])
