"""``holdfast provider-keys``."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Annotated

import typer

from .options import ORG, STORE, Endpoints, Json, Org, Store, commands, reading, writing
from .plain import CommandError
from .screen import BAD, GOOD, NAME, QUIET, STRONG, Piece, Screen, print_json
from .values import plain
from .words import count, minute

if TYPE_CHECKING:
    from ..types import ProviderKey

app = commands()

KEY, NEW_MASTER = "HOLDFAST_PROVIDER_KEY", "HOLDFAST_NEW_MASTER_KEY"

Whose = Annotated[
    str | None, typer.Option("--user", "-u", metavar="NAME", help="Whose it is; the org's own when not given.")
]


@app.command(name="provider-keys")
def provider_keys(
    model: Annotated[
        str | None,
        typer.Option("--set", metavar="MODEL", help="Use this one from now on: openai:NAME, anthropic:NAME, …"),
    ] = None,
    base_url: Annotated[
        str | None, typer.Option("--base-url", metavar="URL", help="With --set: another address for the key.")
    ] = None,
    same_key: Annotated[
        bool, typer.Option("--same-key", help="With --set: another model, with the key that is there.")
    ] = False,
    remove: Annotated[str | None, typer.Option("--remove", metavar="ID", help="Delete a key.")] = None,
    rotate: Annotated[bool, typer.Option("--rotate", help="Seal all keys anew, under a new master key.")] = False,
    make: Annotated[bool, typer.Option("--make-master-key", help="Print a new master key.")] = False,
    allow_endpoint: Endpoints = None,
    store: Store = STORE,
    user: Whose = None,
    org: Org = ORG,
    as_json: Json = False,
) -> int:
    """
    List, set and delete models and keys that users and orgs bring.

    Keys are kept sealed under the master key in HOLDFAST_MASTER_KEY or HOLDFAST_MASTER_KEY_FILE. A
    key is never an argument, where others could read it: it is taken from HOLDFAST_PROVIDER_KEY,
    or from the first line of standard input. --rotate seals under HOLDFAST_NEW_MASTER_KEY, or
    under the first of several keys in HOLDFAST_MASTER_KEY.

    \b
    Examples:
      holdfast provider-keys --make-master-key > master.key && chmod 600 master.key
      holdfast provider-keys --set anthropic:claude-haiku-4-5 --user ana < key.txt
      holdfast provider-keys --set openai:qwen3 --base-url https://llm.example/v1 --org acme < key.txt
      holdfast provider-keys --user ana
      holdfast provider-keys --rotate
    """
    if [bool(model), bool(remove), rotate, make].count(True) > 1:
        raise CommandError("usage", "one of --set, --remove, --rotate, --make-master-key at a time", exit_code=2)
    if make:
        made = import_module("holdfast.llm.sealing").new_master().reveal()
        print_json({"master_key": made}) if as_json else print(made)
        return 0
    opened = writing(store, allow_private_endpoints=tuple(allow_endpoint or ())) if model else reading(store)
    with opened as memory:
        vault, sealed = memory.admin.provider_keys, None
        if model:
            provider, _, name = model.partition(":")
            vault.set(provider, name, None if same_key else _key(provider), base_url, org=org, user=user)
        elif remove:
            vault.remove(remove, org=org, user=user)
        elif rotate:
            sealed = vault.rotate(os.environ.get(NEW_MASTER) or None)
        found = vault.list(org=org, user=user)
    if as_json:
        print_json({"sealed_anew": sealed, "keys": plain(found)})
    elif sealed is not None:
        Screen().line(f"{count(sealed, 'key')} sealed anew; every process needs the new master key now")
    else:
        _list(found, f"user {user}" if user else f"org {org}")
    return 0


def _list(found: list[ProviderKey], whose: str) -> None:
    screen = Screen()
    if not found:
        screen.line(f"{whose} has no key of a provider: holdfast provider-keys --set openai:NAME < key.txt")
    screen.columns([_row(key) for key in found])


def _row(key: ProviderKey) -> list[Piece]:
    state = ("in use", GOOD) if key.in_use else ("", QUIET)
    if not key.opens:
        state = ("its master key is missing", BAD)
    return [(key.id, STRONG), (key.name, NAME), key.base_url, f"…{key.fingerprint}", state, (minute(key.set_at), QUIET)]


def _key(provider: str) -> str:
    """
    The key, from the environment or from standard input.

    Raises:
        CommandError: there is none.
    """
    given = os.environ.get(KEY, "")
    if not given and sys.stdin is not None and not sys.stdin.closed:
        if sys.stdin.isatty():
            given = import_module("getpass").getpass("key: ")
        else:
            given = sys.stdin.readline()
    if not given.strip() and provider != "ollama":
        hint = f"set {KEY}, or write it to standard input: … < key.txt"
        raise CommandError("no-key", "there is no key to keep", hint=hint, exit_code=2)
    return given.strip()
