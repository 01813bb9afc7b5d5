"""``holdfast keys`` and ``holdfast provider-keys``: keys that open the server, and keys of model providers."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime, timedelta
from getpass import getpass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...llm.sealing import new_master
from ...text import dataclass
from ..options import DEFAULT, AllowedEndpoints, OrgOption, StoreOptions
from ..output import BAD, GOOD, NAME, QUIET, STRONG, Piece, Screen, print_json
from ..terminal import USAGE, CommandError, count, minute, to_json, usage_error

if TYPE_CHECKING:
    from ...types import ApiKey, ProviderKey

PROVIDER_KEY, NEW_MASTER_KEY = "HOLDFAST_PROVIDER_KEY", "HOLDFAST_NEW_MASTER_KEY"


def keys(
    options: StoreOptions,
    create: Annotated[
        str | None, typer.Option("--create", metavar="ROLE", help="Create a key: operator, app, user or subject.")
    ] = None,
    revoke: Annotated[str | None, typer.Option("--revoke", metavar="ID", help="Revoke a key at once.")] = None,
    user: Annotated[str | None, typer.Option("--user", "-u", metavar="NAME", help="The user of the key.")] = None,
    org: Annotated[
        str, typer.Option("--org", metavar="NAME", help="The organization that the key belongs to.")
    ] = DEFAULT,
    bot: Annotated[str | None, typer.Option("--bot", metavar="NAME", help="Only this assistant.")] = None,
    subject: Annotated[str | None, typer.Option("--subject", metavar="NAME", help="For the role subject.")] = None,
    name: Annotated[str, typer.Option("--name", metavar="TEXT", help="A note: what the key is for.")] = "",
    days: Annotated[
        int | None, typer.Option("--days", min=1, metavar="N", help="The key expires after this many days.")
    ] = None,
) -> int:
    """
    List the API keys of the server; create or revoke one.

    An operator may do everything, in every organization. An app may do everything for the users of its
    organization. A user sees and corrects what is stored about one user; subject does the same for one
    subject. A key is shown only once.

    \b
    Examples:
      holdfast keys
      holdfast keys --create app --name "web chat"
      holdfast keys --create user --user ana --days 7
      holdfast keys --revoke 0a1b2c3d4e5f
    """
    with options.create() if create else options.open() as memory:
        created = None
        if create:
            role: Any = create
            expires = timedelta(days=days) if days else None
            created = memory.admin.keys.create(
                role, org=org, user=user, bot=bot, subject=subject, name=name, expires_at=expires
            )
        if revoke:
            memory.admin.keys.revoke(revoke)
        found = memory.admin.keys.list()
    if options.as_json:
        print_json({"created": to_json(created), "revoked": revoke, "keys": to_json(found)})
        return 0
    screen = Screen()
    if created is not None:
        screen.line((created.key, STRONG))
        screen.line(("shown only once; send it as `Authorization: Bearer …`", QUIET))
        return 0
    if revoke:
        screen.line(f"{revoke} is revoked")
    if not found:
        screen.line("no keys yet: `holdfast serve` creates the first, or `holdfast keys --create app`")
    screen.columns([[(key.id, STRONG), key.role, _scope(key), (key.name, QUIET), _state(key)] for key in found])
    return 0


def _scope(key: ApiKey) -> str:
    named = [("org", key.org, DEFAULT), ("bot", key.bot, None), ("user", key.user, None)]
    parts = [f"{what} {value}" for what, value, usual in named if value != usual]
    return ", ".join(parts + ([f"about {key.subject}"] if key.subject else []))


def _state(key: ApiKey) -> Piece:
    if key.revoked_at is not None:
        return (f"revoked {key.revoked_at:%Y-%m-%d}", QUIET)
    if key.expires_at is None:
        return ("", QUIET)
    expired = key.expires_at <= datetime.now(UTC)
    words = "expired" if expired else "valid until"
    return (f"{words} {key.expires_at:%Y-%m-%d %H:%M}", QUIET if expired else GOOD)


@dataclass(frozen=True)
class ProviderKeyOptions(StoreOptions):
    """The options of ``holdfast provider-keys``."""

    set_: Annotated[
        str | None,
        typer.Option("--set", metavar="MODEL", help="Use this model from now on: openai:NAME, anthropic:NAME, …"),
    ] = None
    base_url: Annotated[
        str | None, typer.Option("--base-url", metavar="URL", help="With --set: another address for the key.")
    ] = None
    same_key: Annotated[bool, typer.Option("--same-key", help="With --set: another model, with the stored key.")] = (
        False
    )
    remove: Annotated[str | None, typer.Option("--remove", metavar="ID", help="Delete a key.")] = None
    rotate: Annotated[bool, typer.Option("--rotate", help="Encrypt all keys again, under a new master key.")] = False
    make_master_key: Annotated[bool, typer.Option("--make-master-key", help="Print a new master key.")] = False
    allow_endpoint: AllowedEndpoints = None
    user: Annotated[
        str | None, typer.Option("--user", "-u", metavar="NAME", help="The user (default: the organization itself).")
    ] = None
    org: OrgOption = DEFAULT


def provider_keys(options: ProviderKeyOptions) -> int:
    """
    List, set and delete the models and provider keys that users and organizations bring.

    Keys are encrypted under the master key in HOLDFAST_MASTER_KEY or HOLDFAST_MASTER_KEY_FILE. A
    provider key is never an argument, where others could read it: it is read from HOLDFAST_PROVIDER_KEY,
    or from the first line of standard input. --rotate encrypts under HOLDFAST_NEW_MASTER_KEY, or
    under the first of several keys in HOLDFAST_MASTER_KEY.

    \b
    Examples:
      holdfast provider-keys --make-master-key > master.key && chmod 600 master.key
      holdfast provider-keys --set anthropic:claude-haiku-4-5 --user ana < key.txt
      holdfast provider-keys --set openai:qwen3 --base-url https://llm.example/v1 --org acme < key.txt
      holdfast provider-keys --user ana
      holdfast provider-keys --rotate
    """
    actions = [bool(options.set_), bool(options.remove), options.rotate, options.make_master_key]
    if actions.count(True) > 1:
        hint = "use only one of --set, --remove, --rotate, --make-master-key"
        raise usage_error("these options do not go together", hint)
    if options.make_master_key:
        master = new_master().reveal()
        print_json({"master_key": master}) if options.as_json else print(master)
        return 0
    endpoints = tuple(options.allow_endpoint or ()) or None
    opened = options.create(allow_private_endpoints=endpoints) if options.set_ else options.open()
    org, user, rotated = options.org, options.user, None
    with opened as memory:
        stored = memory.admin.provider_keys
        if options.set_:
            provider, _, name = options.set_.partition(":")
            stored.set(
                provider, name, None if options.same_key else _read_key(provider), options.base_url, org=org, user=user
            )
        elif options.remove:
            stored.remove(options.remove, org=org, user=user)
        elif options.rotate:
            rotated = stored.rotate(os.environ.get(NEW_MASTER_KEY) or None)
        found = stored.list(org=org, user=user)
    if options.as_json:
        print_json({"rotated": rotated, "keys": to_json(found)})
    elif rotated is not None:
        Screen().line(f"{count(rotated, 'key')} encrypted again; every process now needs the new master key")
    else:
        _list_provider_keys(found, f"user {user}" if user else f"org {org}")
    return 0


def _list_provider_keys(found: list[ProviderKey], owner: str) -> None:
    screen = Screen()
    if not found:
        screen.line(f"{owner} has no provider key: holdfast provider-keys --set openai:NAME < key.txt")
    screen.columns([_provider_key_row(key) for key in found])


def _provider_key_row(key: ProviderKey) -> list[Piece]:
    state = ("in use", GOOD) if key.in_use else ("", QUIET)
    if not key.opens:
        state = ("its master key is missing", BAD)
    return [(key.id, STRONG), (key.name, NAME), key.base_url, f"…{key.fingerprint}", state, (minute(key.set_at), QUIET)]


def _read_key(provider: str) -> str:
    """
    Read the key from the environment or from standard input.

    Raises:
        CommandError: there is none.
    """
    given = os.environ.get(PROVIDER_KEY, "")
    if not given and sys.stdin is not None and not sys.stdin.closed:
        given = getpass("key: ") if sys.stdin.isatty() else sys.stdin.readline()
    if not given.strip() and provider != "ollama":
        hint = f"set {PROVIDER_KEY}, or write it to standard input: … < key.txt"
        raise CommandError("no-key", "no key was given", hint=hint, exit_code=USAGE)
    return given.strip()
