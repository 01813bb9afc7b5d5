"""
The layout that all pages share: templates, headers, navigation, notices, error pages, and lists as files.

How to add a page

1.  Write a module here with ``table = RouteTable()``, list it in ``PAGES`` of ``server/app.py``, and add a row for each route
    to ``tests/server/test_roles.py``.  A handler is an ordinary function (it runs in a thread).  It takes ``request``, the
    dependencies ``CallerDep``, ``UserDep``, ``ConversationDep`` of ``schemas.py``, and ``FormDep``, the fields of a form::

        @table.page("GET", "/dashboard/users/{user:name}", OPERATOR)
        def user_page(request: Request, owner: UserDep, user: UserName) -> Response:
            return render("user.html", request, title=user, facts=owner.facts(), events=events_address(request, user, ...))

        @table.page("POST", "/dashboard/users/{user:name}", OPERATOR)
        def user_change(request: Request, owner: UserDep, form: FormDep) -> Response:
            owner.forget(form["fact"])
            return see_other(here(request), said="forgotten")

    ``?org=``, ``?bot=`` and ``?subject=`` choose the memory, as far as the gate allows; `link` writes them.
2.  Write a template that extends ``base.html`` and fills ``{% block main %}`` with macros of ``macros.html``.  Everything is
    escaped; nothing is marked safe but what ``workbench/markdown.py`` builds of escaped texts, and sentences.  Each of those is
    in ``_("…", name=value)``, or ``_n("{count} fact", "{count} facts", number)``, so that ``texts/pages.*.toml`` can have it in
    other languages, and a test sees one that is missing there; ``mark`` and ``translate`` do the same in Python.  Styles of one page go to a file in ``static/``, named in ``{% block head %}``.  ``style``
    attributes and inline scripts are forbidden by the policy below; a test sees each report.
3.  Live updates: pass ``events=`` (the address of an event stream), and name in ``live=`` of each ``section`` the kinds of
    events (or their beginnings) that change it.  ``live.js`` asks for the page with ``X-Fragment: <id of the section>``, and
    `render` answers with that section alone.
4.  A form posts to the page's own path and is answered by `see_other`; that works without scripts.  With ``data-swap="id"``,
    ``forms.js`` posts it and replaces the section without a reload.  ``said="code"`` shows the notice of that code, from
    `NOTICES` or from ``notices=`` of `render`.
5.  Raise errors: `HoldfastError` and ``HTTPException`` become pages with their hint.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import parse_qsl, quote, urlencode

from fastapi import Depends, Request
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.types import Scope

from ...errors import BadInput
from ...text import expression
from ...text.validate import replace_unstorable
from ...types import ApiKey, Fact
from ..routing import in_shape
from .texts import LANGUAGES, category_words, figures, load_texts, mark, plural, translate
from .workbench.markdown import render_markdown

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
    "Vary": "Cookie, X-Fragment, Accept-Language",
}

# Title, address, icon; the first four stand in the bar of a small screen.  Shown are those that exist and are allowed.
NAV = (
    (mark("Home"), "/dashboard", "home"),
    (mark("Conversations"), "/dashboard/conversations", "chat"),
    (mark("Users"), "/dashboard/users", "users"),
    (mark("Recall lab"), "/dashboard/recall", "search"),
    (mark("Jobs"), "/dashboard/jobs", "jobs"),
    (mark("Prompts"), "/dashboard/prompts", "prompt"),
    (mark("Import and export"), "/dashboard/import", "swap"),
    (mark("Metrics"), "/dashboard/metrics", "chart"),
    (mark("Settings"), "/dashboard/settings", "settings"),
    (mark("My memory"), "/me", "me"),
)
FIND = {"operator": "/dashboard/find", "user": "/me/find"}
NOTICES = {
    "saved": mark("Saved."),
    "forgotten": mark("Forgotten."),
    "restored": mark("Restored."),
    "queued": mark("Running in the background."),
    "signed-out": mark("You are signed out."),
    "demo-loaded": mark("The demo is loaded. Its summaries appear as they are made."),
}
TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
# A span of time: its seconds, and how it is told, alone and as an age.
_SPANS = (
    (86_400, mark("{count} d"), mark("{count} d ago")),
    (3_600, mark("{count} h"), mark("{count} h ago")),
    (60, mark("{count} min"), mark("{count} min ago")),
)
_MONTHS = mark("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec")
_SECTIONS = expression(r"<section\b[^>]*>|</section>")


def _load_static() -> dict[str, tuple[bytes, str, str]]:
    found = {}
    for path in sorted((FOLDER / "static").rglob("*")):  # folders only group: the address has the name alone
        if path.suffix in TYPES:
            assert path.name not in found, path
            data = path.read_bytes()
            found[path.name] = (data, TYPES[path.suffix], hashlib.sha256(data).hexdigest()[:12])
    return found


STATIC = _load_static()


def link(path: str, /, **query: str | int | None) -> str:
    """
    Build an address: ``link("/dashboard/users/{user}", user="a/b", bot="x")`` is ``/dashboard/users/a%2Fb?bot=x``.

    Names fill the braces of *path*, percent-encoded; what has no brace becomes the query, unless it is ``None``.
    """
    left = dict(query)

    def fill(found: re.Match[str]) -> str:
        return quote(str(left.pop(found[1])), safe="")

    filled = re.sub(r"\{(\w+)\}", fill, path)
    text = urlencode({name: value for name, value in left.items() if value is not None}, quote_via=quote)
    return f"{filled}?{text}" if text else filled


def scope_query(org: str = "default", bot: str = "default", subject: str | None = None) -> dict[str, str]:
    """Return the query parameters of a scope; defaults are left out."""
    named = {"org": (org, "default"), "bot": (bot, "default"), "subject": (subject or "", "")}
    return {name: value for name, (value, usual) in named.items() if value != usual}


def here(request: Request, **changed: str | int | None) -> str:
    """Return the address of the current page with *changed* query parameters; ``None`` removes one."""
    query = {**dict(request.query_params), "said": None, **changed}
    raw = request.scope["path"]  # the gate leaves it as it came, encoded
    text = urlencode({name: value for name, value in query.items() if value is not None}, quote_via=quote)
    return f"{raw}?{text}" if text else str(raw)


def query_number(request: Request, name: str) -> int | None:
    """Return a whole number of the query; ``None`` if it is missing or invalid."""
    value = request.query_params.get(name, "").strip()
    return int(value) if value.isdecimal() and len(value) < 16 else None


def parse_user_key(given: str | None) -> tuple[str, str, str] | None:
    """Return the user behind whom a page of a list begins, as its address has it; ``None`` for the first page."""
    if given is None:
        return None
    try:
        org, user, bot = json.loads(given)
    except (ValueError, TypeError):
        raise BadInput(
            translate("this page of the list does not exist"), hint=translate("start at the first page")
        ) from None
    return replace_unstorable(str(org)), replace_unstorable(str(user)), replace_unstorable(str(bot))


def events_address(
    request: Request, user: str, org: str, bot: str, subject: str | None = None, conversation: str | None = None
) -> str:
    """
    Return the address of a user's event stream from now on; empty without one, and pages poll every five seconds.

    Handlers take it before they read anything: an event in between is then repeated, not missed.
    """
    path = "/v1/users/{user}/events"
    route, _, _ = request.app.state.table.find("GET", path)
    about = None if subject in (None, "self") else subject
    if route is None:
        return ""
    known = request.app.state.memory.user(user, org=org, bot=bot).last_event()
    return link(path, user=user, conversation=conversation, **scope_query(org, bot, about), after=str(known))


def local_address(address: str | None) -> str:
    """Return *address* if it is on this server, else ``/``."""
    fine = address is not None and re.fullmatch(r"/(?![/\\])[\x21-\x5b\x5d-\x7e]*", address)
    return address if fine and address else "/"


def see_other(address: str, *, said: str | None = None) -> Response:
    """Redirect to *address* after a form; the notice for the code *said* is shown there."""
    if said is not None:
        address += ("&" if "?" in address else "?") + urlencode({"said": said})
    return RedirectResponse(address, status_code=303)


def signed_in_key(request: Request) -> ApiKey | None:
    """Return the key of the request; ``None`` on public pages."""
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
    waits: bool = False,
    **values: Any,
) -> Response:
    """
    Render a page, or only the sections that ``X-Fragment`` names.

    Args:
        template: its file.
        request: what is answered.
        title: of the window, and the heading unless the template writes its own.
        status: of the answer.
        events: the address of the stream that tells when sections changed; ``""``: they are asked for now and then.
        notices: more sentences for ``?said=``.
        waits: something on it is still counted: without scripts the browser loads it again.
        values: what the template shows.
    """
    said = request.query_params.get("said", "")
    notice = translate({**NOTICES, **(notices or {})}.get(said, ""))
    values.setdefault("t", load_texts("me"))  # the words of the frame
    page = _templates.get_template(template).render(
        request=request,
        title=title,
        events=events,
        waits=waits,
        nav=_nav(request),
        find=_find_address(request),
        me=signed_in_key(request),
        path=request.scope["path"],
        languages=LANGUAGES,
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
    """Return the ``<section>`` with the id *name*; empty if the page has none."""
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
    """Turn an error into a page for browsers, and into the shape that the clients of the route read."""
    if not scope.get("state", {}).get("page") or answer.status_code < 400:
        return in_shape(scope, answer)
    request = Request(scope)
    if answer.status_code == 401:
        query = scope["query_string"].decode("ascii", "replace")
        back = scope["path"] + (f"?{query}" if query else "") if scope["path"] != "/sign-out" else "/"
        return see_other(link("/sign-in", next=None if back == "/" else local_address(back)))
    problem = {"detail": "", "hint": "", **json.loads(bytes(answer.body))}
    page = render("refusal.html", request, title=problem["title"], status=answer.status_code, problem=problem)
    for name in ("allow", "retry-after"):
        if name in answer.headers:
            page.headers[name] = answer.headers[name]
    return page


class Form(dict[str, str]):
    """The fields of a posted form, the last value of each name; a missing field is an error 422."""

    def __missing__(self, name: str) -> str:
        raise HTTPException(422, translate("The form lacks the field {name}", name=name))


def seen_version(form: Form) -> list[str] | None:
    """Return the version of the fact that the form showed, for ``if_version``."""
    return [form["version"]] if form.get("version") else None


async def _form(request: Request) -> Form:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise HTTPException(415, translate("Send a form"))
    try:
        pairs = parse_qsl((await request.body()).decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=500)
    except ValueError:
        raise HTTPException(422, translate("The form has too many fields")) from None
    return Form((name, value.replace("\r\n", "\n")) for name, value in pairs)


FormDep = Annotated[Form, Depends(_form)]


def page_links(request: Request) -> list[tuple[str, str]]:
    """Return title and address of the pages that the key may open."""
    return [(item["title"], item["address"]) for item in _nav(request)]


def _find_address(request: Request) -> str:
    """Return the address of the palette for the role and the user at hand; empty if the role has none."""
    key, grant = signed_in_key(request), getattr(request.state, "grant", None)
    if key is None or grant is None or key.role not in FIND:
        return ""
    user = grant.user if key.role == "operator" else None
    return link(FIND[key.role], user=user, **(scope_query(grant.org, grant.bot) if user else {}))


def _nav(request: Request) -> list[dict[str, Any]]:
    key, table, path = signed_in_key(request), request.app.state.table, request.scope["path"]
    shown = []
    for title, address, icon in NAV:
        route, _, _ = table.find("GET", address)
        if key is not None and route is not None and route.roles is not None and key.role in route.roles:
            current = path == address or (address != "/dashboard" and path.startswith(f"{address}/"))
            shown.append({"title": translate(title), "address": address, "icon": icon, "current": current})
    return shown if len(shown) > 1 else []  # who may open one page needs no way to others


def _static_address(name: str) -> str:
    """Return the address of a static file; it changes with the content, so browsers may cache it."""
    return f"/static/{name}?v={STATIC[name][2]}"


def _format_time(at: datetime | None, form: str = "long") -> str:
    """Format as ``14 Mar 2026, 09:12``; ``form="iso"`` for machines, ``"short"`` without the year if it is this one."""
    if at is None:
        return ""
    utc = at.astimezone(UTC)
    if form == "iso":
        return utc.isoformat(timespec="seconds")
    this_year = form == "short" and utc.year == datetime.now(UTC).year
    day = _format_date(utc, mark("{day} {month}") if this_year else mark("{day} {month} {year}"))
    return translate("{date}, {time}", date=day, time=f"{utc:%H:%M}")


def _format_date(at: date, parts: str = "{day} {month} {year}") -> str:
    """Format as ``14 Mar 2026``."""
    month = translate(_MONTHS).split()[at.month - 1]
    return translate(parts, day=at.day, month=month, year=at.year)


_DATED = {"since": mark("since {date}"), "as of": mark("as of {date}"), "on": mark("on {date}")}
_PARTS_OF_DATE = (mark("{year}"), mark("{month} {year}"), mark("{day} {month} {year}"))


def _format_dated(fact: Fact) -> str:
    """Format as ``since 2020``, ``since Mar 2026``, ``as of 14 Mar 2026, until 20 Mar 2026``, or ``on 14 Mar 2026``."""
    said, when = fact.dated
    since = translate(_DATED[said], date=_format_date(fact.valid_from, _PARTS_OF_DATE[when.count("-")]))
    return translate("{since}, until {date}", since=since, date=_format_date(fact.last_day)) if fact.last_day else since


def format_ago(at: datetime | None) -> str:
    """Format as ``5 min ago`` or ``3 d ago``; as ``14 Mar 2026`` after a month, and what lies ahead as well."""
    if at is None:
        return ""
    seconds = (datetime.now(UTC) - at).total_seconds()
    if -60 < seconds < 60:
        return translate("just now")
    if not 0 <= seconds < 30 * 86_400:
        return _format_date(at.astimezone(UTC))
    span, ago = next((span, ago) for span, _, ago in _SPANS if seconds >= span)
    return translate(ago, count=f"{seconds // span:.0f}")  # live.js says the same while the page is open


def _format_count(number: float) -> str:
    """Format as ``1,204``."""
    return figures(f"{number:,}")


def _format_decimal(number: float, places: int = 2) -> str:
    """Format as ``0.82``."""
    return figures(f"{number:,.{places}f}")


def format_dollars(amount: float, places: int = 2) -> str:
    """Format as ``$1,204.50``."""
    return translate("${amount}", amount=figures(f"{amount:,.{places}f}"))


def _in_page(text: str, /, **values: object) -> Markup:
    """Return a sentence of a template, which may hold tags, with its *values* escaped."""
    return Markup(translate(text, **{name: escape(value) for name, value in values.items()}))


def _count_in_page(one: str, many: str, count: float, /, **values: object) -> Markup:
    """Return the form of a sentence of a template that goes with a number, with its *values* escaped."""
    safe = {name: escape(value) for name, value in values.items()}
    return Markup(plural(one, many, count, **safe))


_templates = Environment(
    loader=FileSystemLoader(FOLDER / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_templates.globals.update(static=_static_address, link=link, scope_query=scope_query, _=_in_page, _n=_count_in_page)
_templates.filters.update(
    when=_format_time,
    dated=_format_dated,
    count=_format_count,
    decimal=_format_decimal,
    figures=figures,
    category=category_words,
    dollars=format_dollars,
    date=_format_date,
    ago=format_ago,
    markdown=render_markdown,
    translated=translate,  # for words that are chosen in Python; a sentence of a template is `_("…")`
)


def format_percent(number: float) -> str:
    """Format as ``61.0 %``."""
    return figures(f"{number * 100:.1f} %")


def format_bytes(number: float) -> str:
    """Format as ``12.4 MB``."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if number < 1000 or unit == "GB":
            return (
                plural("{count} byte", "{count} bytes", int(number))
                if unit == "bytes"
                else figures(f"{number:,.1f} {unit}")
            )
        number /= 1000
    raise AssertionError


def format_duration(seconds: float) -> str:
    """Format as ``5 min`` or ``3 d``."""
    for span, words, _ in _SPANS:
        if seconds >= span:
            return translate(words, count=figures(f"{seconds / span:,.0f}"))
    return translate("{count} s", count=f"{seconds:.0f}")


_FORMULA = (
    "=",
    "+",
    "-",
    "@",
    "\t",
    "\r",
    "＝",
    "＋",
    "－",
    "＠",
)  # what a cell begins with that a spreadsheet computes
LIST_TYPES = {"csv": "text/csv; charset=utf-8", "json": "application/json"}


def wanted_file(request: Request) -> str:
    """Return ``csv`` or ``json`` if the address asks for the list as such a file, else ``""``."""
    kind = request.query_params.get("as", "")
    return kind if kind in LIST_TYPES else ""


def list_file(kind: str, name: str, heads: tuple[str, ...], rows: Iterable[Mapping[str, Any]]) -> Response:
    """
    Return *rows* as a file to download.

    Args:
        kind: ``csv`` or ``json``.
        name: of the file, without its ending.
        heads: the keys of each row, in order.
        rows: read while they are sent.
    """
    lines = _csv_lines(heads, rows) if kind == "csv" else _json_lines(heads, rows)
    named = {"Content-Disposition": f'attachment; filename="{name}-{datetime.now(UTC):%Y-%m-%d}.{kind}"'}
    return StreamingResponse(lines, media_type=LIST_TYPES[kind], headers=HEADERS | named)


def _csv_lines(heads: tuple[str, ...], rows: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    yield b"\xef\xbb\xbf"  # spreadsheets take it for UTF-8 then
    yield _csv_line(heads)
    for row in rows:
        yield _csv_line(csv_cell(row[head]) for head in heads)


def _csv_line(cells: Iterable[str]) -> bytes:
    line = io.StringIO()
    csv.writer(line).writerow(cells)
    return line.getvalue().encode("utf-8", "backslashreplace")


def _json_lines(heads: tuple[str, ...], rows: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    before = "[\n"
    for row in rows:
        line = json.dumps({head: plain_value(row[head]) for head in heads}, ensure_ascii=False)
        yield (before + line).encode("utf-8", "backslashreplace")
        before = ",\n"
    yield b"[]\n" if before == "[\n" else b"\n]\n"


def plain_value(value: Any) -> Any:
    """Return a value as JSON has it; times in ISO 8601."""
    return value.astimezone(UTC).isoformat(timespec="seconds") if isinstance(value, datetime) else value


def csv_cell(value: Any) -> str:
    """Return the text of a cell; what a spreadsheet would compute begins with ``'``, which makes it text."""
    if value is None:
        return ""
    text = str(plain_value(value))
    return f"'{text}" if isinstance(value, str) and text.lstrip(" ").startswith(_FORMULA) else text
