"""
A coding agent's hook whose memory is served: one request for each event, from a process that loads next to nothing.

The key is in ``HOLDFAST_API_KEY``, in the file that ``HOLDFAST_API_KEY_FILE`` names, or in ``.holdfast/key`` at home.
"""

from __future__ import annotations

import getpass
import hashlib
import http.client
import json
import os
import re
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

TIMEOUT_S = 5  # an agent waits for its hooks: rather no memory than a wait
BUDGET_TOKENS = 1_500  # agents cut off what is much longer
MAX_INPUT_BYTES = 16 * 2**20
KEY = "HOLDFAST_API_KEY"
_OPTIONS = {
    **dict.fromkeys(("--store", "-s"), "store"),
    **dict.fromkeys(("--user", "-u"), "user"),
    **dict.fromkeys(("--budget", "-b"), "budget"),
    "--org": "org",
    "--bot": "bot",
}


def is_served(store: str | None) -> bool:
    """Whether a store is a server's address."""
    return (store or "").startswith(("http://", "https://"))


def run(arguments: Sequence[str]) -> bool:
    """Answer the event on standard input as ``holdfast hook run`` does; ``False`` when its memory is not served."""
    options = _options(arguments)
    if options is None or not is_served(options["store"]) or not options["budget"].isdecimal():
        return False
    answer(
        options["store"],
        user=options["user"] or None,
        org=options["org"],
        bot=options["bot"],
        budget_tokens=int(options["budget"]),
    )
    return True


def answer(store: str, *, user: str | None, org: str, bot: str, budget_tokens: int) -> None:
    """Send the event on standard input to a server, and print what the agent shall be told; an error is on stderr."""
    try:
        given = getattr(sys.stdin, "buffer", sys.stdin)  # JSON is UTF-8, whatever the terminal is
        event = json.loads(given.read(MAX_INPUT_BYTES))
        if not isinstance(event, dict):
            raise ValueError("an event is an object")
        person = user or _text(event, "user_email") or getpass.getuser()
        told = _ask(store, person, org, bot, event, budget_tokens)
    except urllib.error.HTTPError as error:
        print(f"error: {_origin(store)} answered {error.code}: {_reason(error)}", file=sys.stderr)
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
        reason = getattr(error, "reason", None) or type(error).__name__
        print(f"error: {_origin(store)} cannot be reached: {reason}; is `holdfast serve` running?", file=sys.stderr)
    except _KeyFileError as error:
        print(f"error: {error}", file=sys.stderr)
    except (OSError, ValueError, KeyError, RecursionError) as error:  # KeyError: the account has no name
        print(f"error: the event could not be read: {type(error).__name__}", file=sys.stderr)  # never what was said
    else:
        if told is not None:
            print(json.dumps(told))


def project_of(folder: str) -> tuple[str, str]:
    """Return the subject and the name of the project that a folder is in: the nearest one that git knows, or itself."""
    if not folder:
        return "", ""
    path = Path(os.path.abspath(folder))
    root = next((one for one in (path, *path.parents) if (one / ".git").exists()), path)
    digest = hashlib.sha256(os.fsencode(root)).hexdigest()[:6]
    name = re.sub(r"[^\w.-]+", "-", root.name.lower())[:60] or "root"
    return f"{name}-{digest}", name


def folder_of(event: Mapping[str, Any], environ: Mapping[str, str] = os.environ) -> str:
    """Return the folder that an agent works in, as its event or its environment says."""
    roots = event.get("workspace_roots")
    root = str(roots[0]) if isinstance(roots, list) and roots else ""
    return environ.get("CLAUDE_PROJECT_DIR") or root or _text(event, "cwd")


def _options(arguments: Sequence[str]) -> dict[str, str] | None:
    """Return the options of the command; ``None`` for others than these, which the whole command reads."""
    environ = os.environ
    found = {
        "store": environ.get("HOLDFAST_STORE", ""),
        "user": environ.get("HOLDFAST_USER", ""),
        "org": environ.get("HOLDFAST_ORG", "default"),
        "bot": environ.get("HOLDFAST_BOT", "default"),
        "budget": str(BUDGET_TOKENS),
    }
    left = list(arguments)
    while left:
        name, equals, value = left.pop(0).partition("=")
        if name not in _OPTIONS or not (equals or left):
            return None
        found[_OPTIONS[name]] = value if equals else left.pop(0)
    return found


def _ask(store: str, user: str, org: str, bot: str, event: Mapping[str, Any], budget_tokens: int) -> Any:
    project, name = project_of(folder_of(event))
    body = {"event": event, "project": project, "project_name": name, "budget_tokens": budget_tokens}
    path = f"/v1/users/{urllib.parse.quote(user, safe='')}/hooks?bot={urllib.parse.quote(bot, safe='')}"
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {_key()}"}
    if org != "default":
        headers["X-Holdfast-Org"] = urllib.parse.quote(org, safe="")
    request = urllib.request.Request(store.rstrip("/") + path, json.dumps(body).encode(), headers)
    with urllib.request.build_opener(_NoRedirect).open(request, timeout=TIMEOUT_S) as found:
        return json.loads(found.read())["answer"]


class _KeyFileError(Exception):
    """Raised when the file of the key cannot be read."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follow no redirect: a key goes to no other address."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _key() -> str:
    if given := os.environ.get(KEY):
        return given
    named = os.environ.get(f"{KEY}_FILE")
    place = Path(named or Path.home() / ".holdfast/key")
    try:
        key = place.read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        if isinstance(error, FileNotFoundError) and not named:
            return ""
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise _KeyFileError(f"the key file {place} cannot be read: {reason}; it holds the server's key alone") from None
    if not key.isascii() or not key.isprintable():
        raise _KeyFileError(f"the key file {place} holds more than a key; it holds the server's key alone")
    return key


def _origin(store: str) -> str:
    """Return an address without a name and a password in it."""
    parts = urllib.parse.urlsplit(store)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _reason(error: urllib.error.HTTPError) -> str:
    try:
        problem = json.loads(error.read(10_000))
        said = str(problem.get("detail") or problem.get("title") or "")
    except (OSError, ValueError, AttributeError):
        said = ""
    hint = f"set {KEY}, or write the key to ~/.holdfast/key" if error.code in (401, 403) else ""
    return "; ".join(part for part in (said[:300] or str(error.reason), hint) if part)


def _text(event: Mapping[str, Any], name: str) -> str:
    value = event.get(name)
    return value if isinstance(value, str) else ""
