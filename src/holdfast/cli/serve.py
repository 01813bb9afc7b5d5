"""``holdfast serve`` and ``holdfast keys``."""

from __future__ import annotations

import os
import signal
import socket
import sys
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer

from ..errors import ConfigError
from . import limits, models
from .models import BaseUrl, Llm, RequestsAMinute, TokensAMinute
from .operations import Operations, opened
from .options import STORE, Endpoints, Json, Store, commands, reading, without_password, writing
from .plain import CommandError
from .screen import GOOD, QUIET, STRONG, Screen, print_json, print_json_line
from .values import plain

if TYPE_CHECKING:
    from ..llm.protocol import LanguageModel
    from ..memory import Memory
    from ..types import ApiKey

app = commands()

_LINK_LASTS = timedelta(minutes=15)
OPENAI = "https://api.openai.com/v1"
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


UpstreamUrl = Annotated[
    str | None,
    typer.Option(
        "--upstream",
        envvar="HOLDFAST_UPSTREAM_BASE_URL",
        metavar="URL",
        help="The model behind /v1/chat/completions; its key stands in HOLDFAST_UPSTREAM_API_KEY. "
        "Otherwise OPENAI_BASE_URL with OPENAI_API_KEY.",
    ),
]


LogForm = Annotated[
    str | None,
    typer.Option("--log-format", metavar="FORM", help="Log every request to stderr: json or console."),
]
Traced = Annotated[
    bool,
    typer.Option(
        "--telemetry", envvar="HOLDFAST_TELEMETRY", help="Trace with OpenTelemetry, as the program is set up."
    ),
]
Threads = Annotated[
    int,
    typer.Option(
        "--threads", "-t", min=0, max=64, help="How many jobs at a time; 0 leaves all of it to `holdfast worker`."
    ),
]
FirstKey = Annotated[
    bool,
    typer.Option(
        "--first-key/--no-first-key",
        envvar="HOLDFAST_FIRST_KEY",
        help="Make and show an operator's key when there is none, and a link that signs in.",
    ),
]
Host = Annotated[str, typer.Option("--host", metavar="ADDRESS", help="Where to listen.")]
Port = Annotated[int, typer.Option("--port", "-p", min=0, max=65_535, help="0 takes a free one.")]
Hosts = Annotated[
    list[str] | None, typer.Option("--allow-host", metavar="NAME", help="A name it may be asked for under.")
]
Origins = Annotated[
    list[str] | None, typer.Option("--allow-origin", metavar="URL", help="A page whose scripts may ask.")
]


@app.command()
def serve(
    host: Host = "127.0.0.1",
    port: Port = 7800,
    allow_host: Hosts = None,
    allow_origin: Origins = None,
    upstream: UpstreamUrl = None,
    allow_endpoint: Endpoints = None,
    log_format: LogForm = None,
    telemetry: Traced = False,
    threads: Threads = 2,
    first_key: FirstKey = True,
    operations: Operations = None,
    requests_per_minute: limits.PerMinute = 6_000,
    org_requests_per_minute: limits.OrgPerMinute = 60_000,
    messages_per_day: limits.PerDay = None,
    messages_per_month: limits.PerMonth = None,
    org_messages_per_day: limits.OrgPerDay = None,
    org_messages_per_month: limits.OrgPerMonth = None,
    model_requests: RequestsAMinute = None,
    model_tokens: TokensAMinute = None,
    llm: Llm = None,
    base_url: BaseUrl = None,
    store: Store = STORE,
    as_json: Json = False,
) -> int:
    """
    Serve the memory over HTTP, with background work in the same process.

    Every request needs a key. The first start makes one for the operator and shows it once;
    `holdfast keys --create ROLE` makes more. Ctrl-C stops the server; work that waits stays in the store.

    \b
    Examples:
      holdfast serve
      holdfast serve --store chat.db --port 8080 --llm openai:gpt-5-mini
      holdfast serve --host 0.0.0.0 --allow-host memory.example.org
      holdfast serve --upstream http://127.0.0.1:11434/v1
      holdfast serve --threads 0 --no-first-key --operations :9464
      holdfast serve --messages-per-day 10000 --org-messages-per-month 500000
    """
    given = dict(locals())
    server = _server()
    _check_named(host, allow_host)
    with models.model(llm, base_url) as model, _opened(given, model) as memory:
        listener = _listener(host, port)
        settings = _settings(server, given, listener.getsockname()[1])
        _observed(server, log_format, telemetry)
        application = server["app"].create_app(memory, settings)
        with opened(operations, memory, application.state.meters):
            # they are shown once: not before everything that can be refused was not
            first = _first_key(memory) if first_key else None
            link = application.state.sign_in_links.issue(_LINK_LASTS) if first_key else None
            _hello(settings, store, model.name if model else "built-in rules", first, link, as_json=as_json)
            _run(server["serve"].make_server(application, settings), listener)
    return 0


def _run(server: Any, listener: socket.socket) -> None:
    """Serve until somebody ends it."""
    signal.signal(signal.SIGTERM, _end)
    with suppress(KeyboardInterrupt):
        server.run(sockets=[listener])


def _check_named(host: str, allow_host: list[str] | None) -> None:
    """
    Raises:
        CommandError: others could reach the server, and it does not know under which name.
    """
    if host not in _LOOPBACK and not allow_host:
        raise CommandError(
            "no-host-name",
            f"a server that others reach at {host} must know under which name",
            hint="add --allow-host memory.example.org, and put a proxy that speaks TLS in front",
            exit_code=2,
        )


def _observed(server: dict[str, Any], log_format: str | None, telemetry: bool) -> None:
    """Begin to log, and to trace when that is wanted."""
    if log_format not in (None, "json", "console"):
        hint = "write --log-format json or --log-format console"
        raise CommandError("usage", f"there is no log format {log_format!r}", hint=hint, exit_code=2)
    server["serve"].log_to(sys.stderr, log_format)
    if not telemetry:
        return
    try:
        server["telemetry"].enable()
    except ConfigError as error:
        raise CommandError("not-installed", error.message, hint=error.hint, exit_code=3) from error


def _end(_signal: int, _frame: object) -> None:
    """After SIGTERM the server has answered what it had begun; now the memory is closed on the way out."""
    raise KeyboardInterrupt


@app.command()
def keys(
    create: Annotated[
        str | None, typer.Option("--create", metavar="ROLE", help="Make a key: operator, app, user or subject.")
    ] = None,
    revoke: Annotated[str | None, typer.Option("--revoke", metavar="ID", help="End a key at once.")] = None,
    user: Annotated[str | None, typer.Option("--user", "-u", metavar="NAME", help="Whose memory it opens.")] = None,
    org: Annotated[str, typer.Option("--org", metavar="NAME", help="The tenant it belongs to.")] = "default",
    bot: Annotated[str | None, typer.Option("--bot", metavar="NAME", help="Only this assistant's memory.")] = None,
    subject: Annotated[str | None, typer.Option("--subject", metavar="NAME", help="For the role subject.")] = None,
    name: Annotated[str, typer.Option("--name", metavar="TEXT", help="What it is for.")] = "",
    days: Annotated[int | None, typer.Option("--days", min=1, metavar="N", help="It expires after so many.")] = None,
    store: Store = STORE,
    as_json: Json = False,
) -> int:
    """
    List the keys that open the server; make or revoke one.

    operator may everything, in every org. app may everything about the users of its org. user sees
    and mends what is held about one user; subject the same about one subject alone. A key is shown once.

    \b
    Examples:
      holdfast keys
      holdfast keys --create app --name "web chat"
      holdfast keys --create user --user ana --days 7
      holdfast keys --revoke 0a1b2c3d4e5f
    """
    with reading(store) as memory:
        made = None
        if create:
            until = timedelta(days=days) if days else None
            role: Any = create
            made = memory.admin.keys.create(
                role, org=org, user=user, bot=bot, subject=subject, name=name, expires_at=until
            )
        if revoke:
            memory.admin.keys.revoke(revoke)
        found = memory.admin.keys.list()
    if as_json:
        print_json({"created": plain(made), "revoked": revoke, "keys": plain(found)})
        return 0
    screen = Screen()
    if made is not None:
        screen.line((made.key, STRONG))
        screen.line(("shown this once; send it as `Authorization: Bearer …`", QUIET))
        return 0
    if revoke:
        screen.line(f"{revoke} opens nothing any more")
    if not found:
        screen.line("no key yet: `holdfast serve` makes the first, or `holdfast keys --create app`")
    screen.columns([[(key.id, STRONG), key.role, _whose(key), (key.name, QUIET), _state(key)] for key in found])
    return 0


def _whose(key: ApiKey) -> str:
    named = [("org", key.org, "default"), ("bot", key.bot, None), ("user", key.user, None)]
    parts = [f"{what} {value}" for what, value, usual in named if value != usual]
    return ", ".join(parts + ([f"about {key.subject}"] if key.subject else []))


def _state(key: ApiKey) -> tuple[str, Any]:
    if key.revoked_at is not None:
        return (f"revoked {key.revoked_at:%Y-%m-%d}", QUIET)
    if key.expires_at is None:
        return ("", QUIET)
    over = key.expires_at <= datetime.now(UTC)
    return (f"{'expired' if over else 'until'} {key.expires_at:%Y-%m-%d %H:%M}", QUIET if over else GOOD)


def _server() -> dict[str, Any]:
    """The server's modules; they come with an extra."""
    try:
        found = {name: import_module(f"holdfast.server.{name}") for name in ("app", "serve", "settings")}
        return found | {"telemetry": import_module("holdfast.integrations.telemetry")}
    except ImportError as error:
        raise CommandError(
            "not-installed",
            f"the server needs {error.name or 'a package'}, which is not installed",
            hint="pip install 'holdfast[server]'",
            exit_code=3,
        ) from error


def _upstream(given: str | None, port: int) -> dict[str, str | None]:
    """
    Where chats go.  A key goes to the address that it was set for, and to no other.

    Raises:
        CommandError: the address is none, or this server's own.
    """
    environment = os.environ
    url, key = given, environment.get("HOLDFAST_UPSTREAM_API_KEY")
    if not url and (environment.get("OPENAI_BASE_URL") or environment.get("OPENAI_API_KEY")):
        url, key = environment.get("OPENAI_BASE_URL") or OPENAI, environment.get("OPENAI_API_KEY")
    if not url:
        return {}
    try:
        parts = urlsplit(url)
        own = parts.hostname in _LOOPBACK and parts.port == port
    except ValueError:
        parts, own = urlsplit(""), False
    if parts.scheme not in ("http", "https") or not parts.hostname:
        hint = "write it as https://api.openai.com/v1"
        raise CommandError("bad-upstream", "the upstream is no address", hint=hint, exit_code=2)
    if own:
        hint = "name the model's own address with --upstream; is OPENAI_BASE_URL meant for clients?"
        raise CommandError("bad-upstream", "the upstream is this server itself", hint=hint, exit_code=2)
    return {"upstream_base_url": url, "upstream_key": key or None}


def _listener(host: str, port: int) -> socket.socket:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listener = socket.socket(found[0], socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(found[4])
    except OSError as error:
        raise CommandError(
            "cannot-listen",
            f"nothing can listen at {host}, port {port}: {error.strerror or error}",
            hint="another --port, or 0 for a free one",
        ) from error
    return listener


def _opened(given: dict[str, Any], model: LanguageModel | None) -> AbstractContextManager[Memory]:
    """The memory, with what the command was *given* for its background work and its models."""
    return writing(
        given["store"],
        model,
        background=given["threads"] > 0,
        workers=max(1, given["threads"]),
        allow_private_endpoints=tuple(given["allow_endpoint"] or ()),
        model_requests_per_minute=given["model_requests"],
        model_tokens_per_minute=given["model_tokens"],
    )


_ALIKE = (
    "host threads requests_per_minute org_requests_per_minute messages_per_day messages_per_month "
    "org_messages_per_day org_messages_per_month"
).split()


def _settings(server: dict[str, Any], given: dict[str, Any], port: int) -> Any:
    """How the server behaves, from what the command was *given*; *port* is the one that it got."""
    return server["settings"].ServerSettings(
        port=port,
        allowed_hosts=tuple(given["allow_host"] or ()),
        allowed_origins=tuple(given["allow_origin"] or ()),
        traced=given["telemetry"],
        **{name: given[name] for name in _ALIKE},
        **_upstream(given["upstream"], port),
    )


def _first_key(memory: Memory) -> str | None:
    """A key for the operator when there is none that stands."""
    now = datetime.now(UTC)
    if any(
        key.role == "operator" and not key.revoked_at and (key.expires_at is None or key.expires_at > now)
        for key in memory.admin.keys.list()
    ):
        return None
    return memory.admin.keys.create("operator", name="made at the first start").key


def _hello(settings: Any, store: str, reader: str, first: str | None, link: str | None, *, as_json: bool) -> None:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    address = f"http://{host}:{settings.port}"
    sign_in = f"{address}/sign-in#key={link}" if link else None  # what stands behind the # is sent to nobody
    if as_json:
        told = {
            "address": address,
            "store": without_password(store),
            "reader": reader,
            "operator_key": first,
            "sign_in": sign_in,
        }
        print_json_line(told)
        return
    screen = Screen()
    screen.line(
        (f"Holdfast at {address}", STRONG), (f"   {without_password(store)}, read by {reader}; Ctrl-C stops it", QUIET)
    )
    if first:
        screen.line("")
        screen.line("the operator's key, shown this once: ", (first, STRONG))
        screen.line((f'  curl -H "Authorization: Bearer {first}" {address}/v1/whoami', QUIET))
    if settings.upstream_base_url:
        model_host = urlsplit(settings.upstream_base_url).hostname
        screen.line("")
        screen.line((f"OpenAI's protocol at {address}/v1, answered by {model_host}", QUIET))
    screen.line("")
    if sign_in:
        screen.line("the dashboard, with a link that signs in once, within 15 minutes:")
        screen.line((f"  {sign_in}", STRONG))
        screen.line("")
    screen.line((f"what can be asked: {address}/openapi.json", QUIET))
    sys.stdout.flush()
