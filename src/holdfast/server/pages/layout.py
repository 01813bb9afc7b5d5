"""
The shell that every page stands in: templates, headers, navigation, notices, refusals.

How to add a page

1.  A module here with ``table = Table()``, listed in ``PAGES`` of ``server/app.py``; a row for each route in
    ``tests/server/test_roles.py``.  A handler is an ordinary function (it runs in a thread) that takes ``request``,
    and with ``CallerDep``, ``UserDep``, ``ConversationDep`` of ``schemas.py`` the doors; ``FormDep`` holds the fields of a posted form::

        @table.page("GET", "/dashboard/users/{user:name}", OPERATOR)
        def users_page(request: Request, ana: UserDep, user: UserName) -> Response:
            events = events_of(request, user)
            return render("user.html", request, title="Ana", facts=ana.facts(), events=events)

        @table.page("POST", "/dashboard/users/{user:name}", OPERATOR)
        def users_change(request: Request, ana: UserDep, form: Filled) -> Response:
            ana.forget(form["fact"])
            return see_other(here(request), said="forgotten")

    ``?org=``, ``?bot=``, ``?subject=`` in the address choose whose memory, as the gate allows; `link` writes them.
2.  A template in ``templates/`` that extends ``base.html`` and fills ``{% block main %}``.  The pieces are macros of
    ``macros.html``: ``section``, ``panel`` (one that folds), ``badge``, ``callout``, ``button``, ``confirm`` (asks before
    it posts), ``empty``, ``pages`` (older and newer), ``scope_fields``.  Everything is escaped; nothing is marked safe.
    Styles that no other page needs go to a file of their own in ``static/``, named in ``{% block head %}``.  There are no
    ``style`` attributes and no inline scripts: the policy below forbids them, and a test sees each report.
3.  Live: the handler passes ``events=`` (the address of an event stream) and each ``section`` names in ``live=`` the
    kinds of events, or beginnings of kinds, that concern it.  ``live.js`` then asks for the page again with
    ``X-Fragment: <id of the section>``; `render` answers with that section alone, whatever the handler does.
4.  A form posts to the page's own path and is answered by `see_other`; without scripts that is all.  ``data-swap="id"`` on
    a form lets ``forms.js`` post it and put the section in place without a reload.  ``said="code"`` shows the
    sentence for that code: from `NOTICES`, or from ``notices=`` of `render`.
5.  Errors raise: `HoldfastError` and ``HTTPException`` become pages with their hint.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import parse_qsl, quote, urlencode

from fastapi import Depends, Request
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import Scope

from ...types import ApiKey

FOLDER = Path(__file__).parent
_POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "connect-src": "'self'",
    "form-action": "'self'",
    "frame-ancestors": "'none'",
    "base-uri": "'none'",
}
HEADERS = {
    "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in _POLICY.items()),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "same-origin",  # with less, browsers name no origin with a form
    "Vary": "Cookie, X-Fragment",
}

# Title, address, icon; the first four stand in the bar of a small screen.  Shown are those that exist and are allowed.
NAV = (
    ("Conversations", "/dashboard/conversations", "chat"),
    ("Users", "/dashboard/users", "users"),
    ("Recall lab", "/dashboard/recall", "search"),
    ("Jobs", "/dashboard/jobs", "jobs"),
    ("Prompts", "/dashboard/prompts", "prompt"),
    ("Import and export", "/dashboard/import", "swap"),
    ("Metrics", "/dashboard/metrics", "chart"),
    ("Settings", "/dashboard/settings", "settings"),
    ("My memory", "/me", "me"),
)
SHORT = {"Conversations": "Chats", "Recall lab": "Recall"}  # where there is little room
NOTICES = {
    "saved": "Saved.",
    "forgotten": "Forgotten.",
    "restored": "Restored.",
    "queued": "Running in the background.",
    "signed-out": "You are signed out.",
}
TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_SECTIONS = re.compile(r"<section\b[^>]*>|</section>")


def _load_static() -> dict[str, tuple[bytes, str, str]]:
    found = {}
    for path in sorted((FOLDER / "static").iterdir()):
        if path.suffix in TYPES:
            data = path.read_bytes()
            found[path.name] = (data, TYPES[path.suffix], hashlib.sha256(data).hexdigest()[:12])
    return found


STATIC = _load_static()


def link(path: str, /, **query: str | int | None) -> str:
    """
    An address: ``link("/dashboard/users/{user}", user="a/b", bot="x")`` is ``/dashboard/users/a%2Fb?bot=x``.

    Names fill the braces of *path*, percent-encoded; what has no brace becomes the query, unless it is ``None``.
    """
    left = dict(query)

    def fill(found: re.Match[str]) -> str:
        return quote(str(left.pop(found[1])), safe="")

    filled = re.sub(r"\{(\w+)\}", fill, path)
    text = urlencode({name: value for name, value in left.items() if value is not None}, quote_via=quote)
    return f"{filled}?{text}" if text else filled


def scope_query(org: str = "default", bot: str = "default", subject: str | None = None) -> dict[str, str]:
    """What the query of a link must say so that the same memory is meant."""
    named = {"org": (org, "default"), "bot": (bot, "default"), "subject": (subject or "", "")}
    return {name: value for name, (value, usual) in named.items() if value != usual}


def here(request: Request, **changed: str | int | None) -> str:
    """The page's own address; *changed* parts of the query are set, or left out when ``None``."""
    query = {**dict(request.query_params), "said": None, **changed}
    raw = request.scope["path"]  # the gate leaves it as it came, encoded
    text = urlencode({name: value for name, value in query.items() if value is not None}, quote_via=quote)
    return f"{raw}?{text}" if text else str(raw)


def query_number(request: Request, name: str) -> int | None:
    """A whole number of the query; ``None`` when it is not given, or is none."""
    value = request.query_params.get(name, "").strip()
    return int(value) if value.isdecimal() and len(value) < 16 else None


def events_address(
    request: Request, user: str, org: str, bot: str, subject: str | None = None, conversation: str | None = None
) -> str:
    """
    The address of a user's stream of events from now on; empty where there is none, and pages ask every five seconds.

    Handlers take it before they read anything: what happens while they read is told again rather than not at all.
    """
    path = "/v1/users/{user}/events"
    route, _, _ = request.app.state.table.find("GET", path)
    about = None if subject in (None, "self") else subject
    if route is None:
        return ""
    known = request.app.state.memory.user(user, org=org, bot=bot).last_event()
    return link(path, user=user, conversation=conversation, **scope_query(org, bot, about), after=str(known))


def local_address(address: str | None) -> str:
    """*address* when it is one of this server, else the front page: nobody is sent elsewhere."""
    fine = address is not None and re.fullmatch(r"/(?![/\\])[\x21-\x5b\x5d-\x7e]*", address)
    return address if fine and address else "/"


def see_other(address: str, *, said: str | None = None) -> Response:
    """After a form: go and look at *address*, where the sentence for the code *said* is shown."""
    if said is not None:
        address += ("&" if "?" in address else "?") + urlencode({"said": said})
    return RedirectResponse(address, status_code=303)


def signed_in_key(request: Request) -> ApiKey | None:
    """The key of who is signed in; ``None`` on pages for everybody."""
    key: ApiKey | None = getattr(request.state, "key", None)
    return key


def render(
    template: str,
    request: Request,
    *,
    title: str,
    status: int = 200,
    events: str | None = None,
    notices: Mapping[str, str] | None = None,
    **values: Any,
) -> Response:
    """
    A page, or the sections of it that ``X-Fragment`` names.

    Args:
        template: its file.
        request: what is answered.
        title: of the window, and the heading unless the template writes its own.
        status: of the answer.
        events: the address of the stream that tells when sections changed; ``""``: they are asked for now and then.
        notices: more sentences for ``?said=``.
        values: what the template shows.
    """
    said = request.query_params.get("said", "")
    notice = {**NOTICES, **(notices or {})}.get(said, "")
    page = _templates.get_template(template).render(
        request=request,
        title=title,
        events=events,
        nav=_nav(request),
        me=signed_in_key(request),
        path=request.scope["path"],
        notice=notice,
        here=lambda **changed: here(request, **changed),
        **values,
    )
    wanted = request.headers.get("x-fragment", "")
    if not wanted:
        return HTMLResponse(page, status_code=status, headers=HEADERS)
    body = "\n".join(fragment(page, name) for name in wanted.split())
    return HTMLResponse(body, status_code=status, headers={**HEADERS, "X-Notice": quote(notice)})


def fragment(page: str, name: str) -> str:
    """The ``<section>`` of a rendered page with the id *name*; nothing when there is none."""
    begin, depth = -1, 0
    for tag in _SECTIONS.finditer(page):  # what users wrote is escaped, so no other text looks like this
        if begin < 0:
            if f' id="{name}"' in tag[0]:
                begin, depth = tag.start(), 1
            continue
        depth += 1 if tag[0] != "</section>" else -1
        if depth == 0:
            return page[begin : tag.end()]
    return ""


def error_page(scope: Scope, answer: Response) -> Response:
    """A refusal as a user in front of a browser should get it; *answer* itself where a program asked."""
    if not scope.get("state", {}).get("page") or answer.status_code < 400:
        return answer
    request = Request(scope)
    if answer.status_code == 401:
        query = scope["query_string"].decode("ascii", "replace")
        back = scope["path"] + (f"?{query}" if query else "") if scope["method"] == "GET" else "/"
        return see_other(link("/sign-in", next=None if back == "/" else local_address(back)))
    told = {"detail": "", "hint": "", **json.loads(bytes(answer.body))}
    page = render("refusal.html", request, title=told["title"], status=answer.status_code, problem=told)
    for name in ("allow", "retry-after"):
        if name in answer.headers:
            page.headers[name] = answer.headers[name]
    return page


class Form(dict[str, str]):
    """The fields of a posted form, the last one of each name; one that is missing is a request that cannot be used."""

    def __missing__(self, name: str) -> str:
        raise HTTPException(422, f"The form lacks the field {name}")


async def _form(request: Request) -> Form:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise HTTPException(415, "Send a form")
    try:
        pairs = parse_qsl((await request.body()).decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=500)
    except ValueError:
        raise HTTPException(422, "The form has too many fields") from None
    return Form((name, value.replace("\r\n", "\n")) for name, value in pairs)


FormDep = Annotated[Form, Depends(_form)]


def _nav(request: Request) -> list[dict[str, Any]]:
    key, table, path = signed_in_key(request), request.app.state.table, request.scope["path"]
    shown = []
    for title, address, icon in NAV:
        route, _, _ = table.find("GET", address)
        if key is not None and route is not None and route.roles is not None and key.role in route.roles:
            current = path == address or path.startswith(f"{address}/")
            shown.append(
                {"title": title, "address": address, "icon": icon, "current": current, "short": SHORT.get(title, title)}
            )
    return shown if len(shown) > 1 else []  # who may open one page needs no way to others


def _static_address(name: str) -> str:
    """The address of a static file; it changes with the content, so that browsers may keep it for good."""
    return f"/static/{name}?v={STATIC[name][2]}"


def _format_time(at: datetime | None, form: str = "long") -> str:
    """``14 Mar 2026, 09:12``; ``form="iso"`` for machines, ``"short"`` without the year."""
    if at is None:
        return ""
    told = at.astimezone(UTC)
    if form == "iso":
        return told.isoformat(timespec="seconds")
    year = "" if form == "short" else f" {told.year}"
    return f"{told.day} {told:%b}{year}, {told:%H:%M}"


def _format_count(number: float, one: str = "", many: str = "") -> str:
    """``1,204``; ``1 message``, ``2 messages``."""
    if not one:
        return f"{number:,}"
    return f"{number:,} {one if number == 1 else many or one + 's'}"


_templates = Environment(
    loader=FileSystemLoader(FOLDER / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_templates.globals.update(static=_static_address, link=link, scope_query=scope_query)
_templates.filters.update(when=_format_time, count=_format_count)


def format_percent(number: float) -> str:
    """``61.0 %``."""
    return f"{number * 100:.1f} %"


def format_bytes(number: float) -> str:
    """Bytes in words: ``12.4 MB``."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if number < 1000 or unit == "GB":
            return f"{number:,.0f} {unit}" if unit == "bytes" else f"{number:,.1f} {unit}"
        number /= 1000
    raise AssertionError


def format_duration(seconds: float) -> str:
    """A span of time in words: ``5 min``, ``3 d``."""
    for unit, span in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= span:
            return f"{seconds / span:,.0f} {unit}"
    return f"{seconds:.0f} s"
