"""``holdfast serve`` and ``holdfast mcp``: the memory over HTTP, and as tools over standard input and output."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, field
from datetime import UTC, datetime, timedelta
from queue import SimpleQueue
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer

from ...config import COMMAND_NAMES, LoadedConfig
from ...errors import ConfigError, HoldfastError
from ...text import dataclass, expression
from ..app import load_module
from ..models import ModelOptions
from ..options import AllowedEndpoints, StoreOptions, SubjectOptions
from ..output import QUIET, STRONG, Screen, print_json_line
from ..terminal import MISSING, USAGE, CommandError, print_error, usage_error

if TYPE_CHECKING:
    from ...memory import Memory

SERVER_HINT = "pip install 'holdfast[server]'"
OPENAI, ANTHROPIC = "https://api.openai.com/v1", "https://api.anthropic.com"
SIGN_IN_LINK = timedelta(minutes=15)

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_ADDRESS = expression(r"(?:\[(?P<v6>[0-9a-fA-F:.]+)\]|(?P<host>[^:\[\]]*)):(?P<port>[0-9]{1,5})")

OperationsOption = Annotated[
    str | None,
    typer.Option(
        "--operations",
        envvar="HOLDFAST_OPERATIONS",
        metavar="ADDRESS",
        help="Answer /healthz, /readyz and /metrics there, without a key: 127.0.0.1:9464, or :9464 for every address. "
        "It names no users; keep it within your network.",
    ),
]


def _limit(flag: str, help_: str) -> Any:
    variable = "HOLDFAST_" + flag.removeprefix("--").replace("-", "_").upper()
    return typer.Option(flag, envvar=variable, min=1, metavar="N", help=help_)


@dataclass(frozen=True)
class ServerOptions:
    """The options of ``holdfast serve`` about the server itself."""

    host: Annotated[
        str, typer.Option("--host", envvar="HOLDFAST_SERVE_HOST", metavar="ADDRESS", help="The address to listen at.")
    ] = "127.0.0.1"
    port: Annotated[
        int,
        typer.Option(
            "--port", "-p", envvar="HOLDFAST_SERVE_PORT", min=0, max=65_535, help="The port; 0 takes a free one."
        ),
    ] = 7800
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host",
            envvar="HOLDFAST_ALLOW_HOST",
            metavar="NAME",
            help="A host name that clients may use for the server.",
        ),
    ] = None
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-origin",
            envvar="HOLDFAST_ALLOW_ORIGIN",
            metavar="URL",
            help="A web page whose scripts may call the server.",
        ),
    ] = None
    upstream: Annotated[
        str | None,
        typer.Option(
            "--upstream",
            envvar="HOLDFAST_UPSTREAM_BASE_URL",
            metavar="URL",
            help="The model behind /v1/chat/completions; its key is read from HOLDFAST_UPSTREAM_API_KEY. "
            "Default: OPENAI_BASE_URL with OPENAI_API_KEY. ANTHROPIC_API_KEY is for /v1/messages.",
        ),
    ] = None
    allow_endpoint: AllowedEndpoints = None
    log_format: Annotated[
        str | None,
        typer.Option(
            "--log-format",
            envvar="HOLDFAST_LOG_FORMAT",
            metavar="FORMAT",
            help="Log every request to stderr: json or console.",
        ),
    ] = None
    telemetry: Annotated[
        bool,
        typer.Option(
            "--telemetry",
            envvar="HOLDFAST_TELEMETRY",
            help="Trace with OpenTelemetry, as the environment configures it.",
        ),
    ] = False
    threads: Annotated[
        int | None,
        typer.Option(
            "--threads",
            "-t",
            min=0,
            max=64,
            help="Jobs to run at a time (default: the setting workers); 0 leaves them all to `holdfast worker`.",
        ),
    ] = None
    first_key: Annotated[
        bool,
        typer.Option(
            "--first-key/--no-first-key",
            envvar="HOLDFAST_FIRST_KEY",
            help="Create and show an operator key when there is none, and a link that signs in.",
        ),
    ] = True
    operations: OperationsOption = None


@dataclass(frozen=True)
class LimitOptions:
    """The options of ``holdfast serve`` that limit requests and messages; the names are those of ``ServerSettings``."""

    requests_per_minute: Annotated[
        int, _limit("--requests-per-minute", "Requests a minute with one key, in each process.")
    ] = 6_000
    org_requests_per_minute: Annotated[
        int,
        _limit("--org-requests-per-minute", "Requests a minute with all keys of an organization, in each process."),
    ] = 60_000
    messages_per_day: Annotated[
        int | None, _limit("--messages-per-day", "Messages that one key may store a day (UTC), in all processes.")
    ] = None
    messages_per_month: Annotated[
        int | None, _limit("--messages-per-month", "Messages that one key may store a month, in all processes.")
    ] = None
    org_messages_per_day: Annotated[
        int | None, _limit("--org-messages-per-day", "Messages that all keys of an organization may store a day.")
    ] = None
    org_messages_per_month: Annotated[
        int | None, _limit("--org-messages-per-month", "Messages that all keys of an organization may store a month.")
    ] = None


def serve(server: ServerOptions, limits: LimitOptions, model: ModelOptions, options: StoreOptions) -> int:
    """
    Serve the memory over HTTP, with background work in the same process.

    Every request needs a key. The first start creates one for the operator and shows it once;
    `holdfast keys --create ROLE` creates more. Ctrl-C stops the server; unfinished work stays in the store.
    SIGHUP reads the settings file again.

    \b
    Examples:
      holdfast serve
      holdfast serve --store chat.db --port 8080 --llm openai:gpt-5-mini
      holdfast serve --host 0.0.0.0 --allow-host memory.example.org
      holdfast serve --upstream http://127.0.0.1:11434/v1
      holdfast serve --threads 0 --no-first-key --operations :9464
      holdfast serve --messages-per-day 10000 --org-messages-per-month 500000
      holdfast serve --config bot.toml --setting budget_tokens=2000
    """
    app, http, gate, telemetry = (
        load_module(name, "`holdfast serve`", SERVER_HINT)
        for name in (
            "holdfast.server.app",
            "holdfast.server.serve",
            "holdfast.server.gate",
            "holdfast.integrations.telemetry",
        )
    )
    _check_host_name(server)
    flags = {"workers": server.threads or None, "allow_private_endpoints": tuple(server.allow_endpoint or ()) or None}
    threads = 0 if server.threads == 0 else options.load(**flags).config.workers
    with (
        model.open(options) as llm,
        options.create(llm, background=threads > 0, **flags) as memory,
        closing(_listen(server.host, server.port)) as listener,
    ):
        port = listener.getsockname()[1]
        settings = gate.ServerSettings(
            host=server.host,
            port=port,
            threads=threads,
            allowed_hosts=tuple(server.allow_host or ()),
            allowed_origins=tuple(server.allow_origin or ()),
            traced=server.telemetry,
            **asdict(limits),
            **_upstream(server.upstream, port),
        )
        _start_logging(http, telemetry, server)
        application = app.create_app(memory, settings)
        with (
            suppress(KeyboardInterrupt),
            serve_operations(server.operations, memory, application.state.meters),
            reload_on_hangup(options, "serve", memory, flags),
        ):
            # Keys are shown once, so only after everything that may fail.
            first = _first_key(memory) if server.first_key else None
            link = application.state.sign_in_links.issue(SIGN_IN_LINK) if server.first_key else None
            _show_start(settings, options, llm.name if llm else "built-in rules", first, link)
            signal.signal(signal.SIGTERM, _interrupt)
            http.make_server(application, settings).run(sockets=[listener])
    return 0


def _check_host_name(server: ServerOptions) -> None:
    """
    Raises:
        CommandError: others could reach the server, and no host name is allowed.
    """
    if server.host not in _LOOPBACK and not server.allow_host:
        raise CommandError(
            "no-host-name",
            f"a server that others reach at {server.host} must know its host name",
            hint="add --allow-host memory.example.org, and put a proxy that speaks TLS in front",
            exit_code=USAGE,
        )


def _interrupt(_signal: int, _frame: object) -> None:
    """End the process in order after SIGTERM: the server has answered what it had begun, the memory is closed next."""
    raise KeyboardInterrupt


@contextmanager
def reload_on_hangup(options: StoreOptions, command: str, memory: Memory, flags: Mapping[str, Any]) -> Iterator[None]:
    """
    Read the settings again at each SIGHUP during the block, and print what changed and what needs a restart.

    Settings that cannot be used change nothing.  When the terminal that the command was started from is gone, the signal
    ends it, as for any command.
    """
    hangup = getattr(signal, "SIGHUP", None)  # there is none on Windows
    if hangup is None:
        yield
        return
    signals: SimpleQueue[bool] = SimpleQueue()
    reloader = threading.Thread(
        target=_reload_until_told,
        args=(signals, options, command, memory, flags, options.load(**flags), _has_terminal()),
        name="holdfast-reload",
        daemon=True,
    )
    before = signal.signal(hangup, lambda _signal, _frame: signals.put(True))
    reloader.start()
    try:
        yield
    finally:
        signal.signal(hangup, before)
        signals.put(False)
        reloader.join()


def _reload_until_told(
    signals: SimpleQueue[bool],
    options: StoreOptions,
    command: str,
    memory: Memory,
    flags: Mapping[str, Any],
    started_with: LoadedConfig,
    in_terminal: bool,  # asked before the thread starts: the terminal may be gone by its first step
) -> None:
    while signals.get():
        if in_terminal and not _has_terminal():
            os.kill(os.getpid(), signal.SIGTERM)
            return
        try:
            found = options.load(**flags)
            changes = memory.admin.reload(found.config)
        except HoldfastError as error:
            print_error(error, options.as_json)
            continue
        others = _changed_options(started_with, found, command)
        _show_reload(options, found, changes.applied, (*changes.restart, *others))


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True


def _changed_options(before: LoadedConfig, after: LoadedConfig, command: str) -> list[str]:
    """Return the options of the command that the file sets to something else now."""
    old, new = (one.file.values if one.file else {} for one in (before, after))
    shared = [name for name in COMMAND_NAMES if old.get(name) != new.get(name)]
    mine, now = old.get(command, {}), new.get(command, {})
    return shared + [f"{command}.{name}" for name in {**mine, **now} if mine.get(name) != now.get(name)]


def _show_reload(options: StoreOptions, found: LoadedConfig, applied: Sequence[str], restart: Sequence[str]) -> None:
    place = found.file.path if found.file else None
    if options.as_json:
        print_json_line({"state": "reloaded", "file": place, "applied": list(applied), "restart": list(restart)})
    else:
        changed = f"changed: {', '.join(applied)}" if applied else "nothing changed"
        waits = f"; a restart is needed for: {', '.join(restart)}" if restart else ""
        Screen().line((f"read {place or 'the settings'} again", STRONG), f"   {changed}{waits}")
    sys.stdout.flush()


def _start_logging(http: Any, telemetry: Any, server: ServerOptions) -> None:
    if server.log_format not in (None, "json", "console"):
        hint = "write --log-format json or --log-format console"
        raise usage_error(f"there is no log format {server.log_format!r}", hint)
    http.log_to(sys.stderr, server.log_format)
    if not server.telemetry:
        return
    try:
        telemetry.enable()
    except ConfigError as error:
        raise CommandError("not-installed", error.message, hint=error.hint, exit_code=MISSING) from error


def _upstream(given: str | None, port: int) -> dict[str, str | None]:
    """
    Return the address that chats are sent to, with its own key and no other.

    Raises:
        CommandError: the address is not valid, or it is this server's own.
    """
    anthropic = _anthropic()
    url, key = given, os.environ.get("HOLDFAST_UPSTREAM_API_KEY")
    if not url and (os.environ.get("OPENAI_BASE_URL") or os.environ.get("OPENAI_API_KEY")):
        url, key = os.environ.get("OPENAI_BASE_URL") or OPENAI, os.environ.get("OPENAI_API_KEY")
    if not url:
        return anthropic
    try:
        parts = urlsplit(url)
        own = parts.hostname in _LOOPBACK and parts.port == port
    except ValueError:
        parts, own = urlsplit(""), False
    if parts.scheme not in ("http", "https") or not parts.hostname:
        hint = "write it as https://api.openai.com/v1"
        raise CommandError("bad-upstream", "the upstream is not an address", hint=hint, exit_code=USAGE)
    if own:
        hint = "name the model's own address with --upstream; is OPENAI_BASE_URL meant for clients?"
        raise CommandError("bad-upstream", "the upstream is this server itself", hint=hint, exit_code=USAGE)
    return {"upstream_base_url": url, "upstream_key": key or None, **anthropic}


def _anthropic() -> dict[str, str | None]:
    """Return the address that chats in Anthropic's protocol are sent to, with its key; empty when there is none."""
    url, key = os.environ.get("ANTHROPIC_BASE_URL"), os.environ.get("ANTHROPIC_API_KEY")
    return {"anthropic_base_url": url or ANTHROPIC, "anthropic_key": key or None} if url or key else {}


def _listen(host: str, port: int) -> socket.socket:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listener = socket.socket(found[0], socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(found[4])
    except OSError as error:
        raise CommandError(
            "cannot-listen",
            f"cannot listen at {host}, port {port}: {error.strerror or error}",
            hint="name another --port, or 0 for a free one",
        ) from error
    return listener


def _first_key(memory: Memory) -> str | None:
    """Create a key for the operator when there is no valid one."""
    now = datetime.now(UTC)
    if any(
        key.role == "operator" and not key.revoked_at and (key.expires_at is None or key.expires_at > now)
        for key in memory.admin.keys.list()
    ):
        return None
    return memory.admin.keys.create("operator", name="created at the first start").key


def _show_start(settings: Any, options: StoreOptions, reader: str, first: str | None, link: str | None) -> None:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    address = f"http://{host}:{settings.port}"
    sign_in = f"{address}/sign-in#key={link}" if link else None  # browsers do not send what is behind the #
    if options.as_json:
        print_json_line(
            {
                "address": address,
                "store": options.shown_store,
                "reader": reader,
                "operator_key": first,
                "sign_in": sign_in,
            }
        )
        return
    screen = Screen()
    note = f"   store {options.shown_store}, facts and summaries by {reader}; Ctrl-C stops it"
    screen.line((f"Holdfast at {address}", STRONG), (note, QUIET))
    if first:
        screen.line("")
        screen.line("the operator key, shown only once: ", (first, STRONG))
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
    screen.line((f"the API: {address}/openapi.json", QUIET))
    sys.stdout.flush()


@contextmanager
def serve_operations(
    address: str | None, memory: Memory, meters: Any = None, *, threads: int = 0
) -> Iterator[str | None]:
    """
    Answer probes and Prometheus at *address* during the block; yield the URL, ``None`` without an address.

    *meters* are those of a server in the same process; a worker has its own.

    Raises:
        CommandError: a package is missing, or the address cannot be used.
    """
    if address is None:
        yield None
        return
    host, port = _parse_address(address)
    metrics = load_module("holdfast.server.metrics", "--operations", SERVER_HINT)
    door = metrics.serve_probes(host, port, meters or metrics.Meters(memory, threads=threads))
    try:
        host, port = door.__enter__()
    except OSError as error:
        words = f"cannot listen at {address}: {error.strerror or error}"
        raise CommandError("cannot-listen", words, hint="name another port") from error
    try:
        yield f"http://{f'[{host}]' if ':' in host else host}:{port}"
    finally:
        door.__exit__(None, None, None)


def _parse_address(address: str) -> tuple[str, int]:
    found = _ADDRESS.fullmatch(address)
    if found is None or int(found["port"]) > 65_535:
        hint = "write it as 127.0.0.1:9464, or :9464 for every address"
        raise usage_error(f"--operations {address!r} is not an address", hint)
    return found["v6"] or found["host"] or "0.0.0.0", int(found["port"])


@dataclass(frozen=True)
class AssistantOptions(SubjectOptions):
    """The options of ``holdfast mcp``: no --json, because the protocol is JSON anyway."""

    as_json: bool = field(default=False, init=False)


def mcp(
    model: ModelOptions,
    options: AssistantOptions,
    compat: Annotated[bool, typer.Option("--compat", help="Offer the tools of OpenMemory, under its names.")] = False,
) -> int:
    """
    Serve the memory of one user to an assistant as tools, over standard input and output.

    For programs that start a server of the Model Context Protocol by a command. `holdfast serve`
    offers the same tools over HTTP, at /mcp.

    \b
    Examples:
      holdfast mcp --user ana
      holdfast mcp --store ~/memory.db --user ana --bot desk
      holdfast mcp --user ana --compat
    """
    tools = load_module("holdfast.server.mcp", "`holdfast mcp`", SERVER_HINT)
    owner = tools.MemoryOwner(options.user, options.org, options.bot, options.subject)
    if compat and options.subject:
        raise usage_error("--compat knows no subjects", "leave out --subject, or --compat")
    with model.open(options) as llm, options.create(llm, background=True) as memory:
        if compat:
            tools.openmemory_tools(memory, lambda _context: owner).run("stdio")
        else:
            tools.tools(memory, lambda _context: owner).run("stdio")
    return 0
