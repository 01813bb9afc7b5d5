"""The command palette: users, conversations, facts and pages by a few letters, within the rights of who is signed in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

from fastapi import Request
from starlette.responses import Response

from ...errors import NotFound
from ...memory import Memory
from ...scope import SELF
from ...text import dataclass
from ...text.validate import replace_unstorable
from ...types import BY_HAND_CONVERSATION, Fact
from ...user import User
from ..routing import OPERATOR, RouteTable
from ..schemas import Caller, CallerDep
from .layout import here, link, page_links, parse_user_key, render, scope_query
from .me import OWNER
from .texts import Texts, load_texts, translate

table = RouteTable()
MAX_WORDS = 200
ROWS = 6  # of each kind, and as many of anybody
OWNERS = 3  # users by name whose conversations and facts are looked through
MAX_READ = 500  # conversations and facts of each
LEAST_WORDS = 2  # characters for which everybody is looked through
LOOKED_THROUGH = 5_000  # users at a time
Owner = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class FoundRow:
    """One result: where it is, what it is called, and whose it is."""

    address: str
    text: str
    of: str = ""


@dataclass(frozen=True, slots=True)
class FoundGroup:
    """The results of one kind."""

    title: str
    rows: tuple[FoundRow, ...]


@table.page("GET", "/dashboard/find", OPERATOR)
def find_page(request: Request, caller: CallerDep) -> Response:
    """Find pages, users, conversations and facts: those of the user at hand and of users who are named come first."""
    words = _words(request)
    first, rest = _by_first_word(caller.memory, words)
    named = first or (caller.memory.admin.users(limit=ROWS, matching=words) if words else [])
    places = list(_places(caller, words, first, rest, named))
    pages = [FoundRow(address, title) for title, address in page_links(request) if words.casefold() in title.casefold()]
    users = [FoundRow(link("/dashboard/users/{user}", user=key[1], **_query(key)), key[1], _of(key)) for key in named]
    conversations = [row for place in places for row in _conversations(caller.memory, *place)] if words else []
    facts = [row for place in places for row in _facts(caller.memory, *place)] if words else []
    further = None
    if len(words) >= LEAST_WORDS:
        others, further = _of_anybody(caller.memory, words, parse_user_key(request.query_params.get("behind")))
        conversations, facts = (
            _joined(conversations[:ROWS], others["conversations"]),
            _joined(facts[:ROWS], others["facts"]),
        )
    groups = {"Users": users[:ROWS], "Conversations": conversations, "Facts": facts, "Pages": pages[:ROWS]}
    groups = {translate(title): rows for title, rows in groups.items()}
    return _page(request, words, groups, further=further and here(request, behind=json.dumps(further)))


def _of_anybody(memory: Memory, words: str, after: Owner | None) -> tuple[dict[str, list[FoundRow]], Owner | None]:
    """Return conversations and facts of any users, of so many users at a time, and behind whom the next look begins."""
    found = memory.admin.containing(words, after=after, users=LOOKED_THROUGH, limit=ROWS)
    talks = [_conversation_row(*one) for one in found.conversations if one[2] != BY_HAND_CONVERSATION]
    facts = []
    for key, fact_id in found.facts:
        with suppress(NotFound):  # forgotten in between
            facts.append(_fact_row(key, _open(memory, key).fact(fact_id)))
    return {"conversations": talks, "facts": facts}, found.after


def _joined(first: list[FoundRow], more: list[FoundRow]) -> list[FoundRow]:
    return list(dict.fromkeys((*first, *more)))


@table.page("GET", "/me/find", OWNER)
def find_mine_page(request: Request, caller: CallerDep) -> Response:
    """Find one's own facts, and the parts of one's own page."""
    words, said = _words(request), load_texts("me")
    parts = [("facts", "facts.title"), ("never", "never.title"), ("data", "data.title"), ("changes", "changes.title")]
    if caller.memory.config.users_may_set_prompts:
        parts.append(("prompts", "prompts.title"))
    pages = [
        FoundRow(f"/me#{name}", said(title)) for name, title in parts if words.casefold() in said(title).casefold()
    ]
    facts = caller.user().facts(limit=MAX_READ) if words else []
    mine = [
        FoundRow(f"{link('/me', q=fact.text[:MAX_WORDS])}#{fact.id}", fact.text) for fact in _matching(facts, words)
    ]
    return _page(
        request, words, {said("find.facts"): mine, said("find.parts"): pages[:ROWS]}, said("find.title"), texts=said
    )


def _page(
    request: Request,
    words: str,
    found: dict[str, list[FoundRow]],
    title: str = "",
    further: str | None = None,
    texts: Texts | None = None,
) -> Response:
    groups = [FoundGroup(name, tuple(rows)) for name, rows in found.items() if rows]
    count = sum(len(group.rows) for group in groups)
    values: dict[str, Any] = {"words": words, "groups": groups, "count": count, "further": further}
    values |= {"t": texts} if texts else {}
    return render("find.html", request, title=title or load_texts("me")("find.title"), **values)


def _words(request: Request) -> str:
    return replace_unstorable(request.query_params.get("q", "").strip()[:MAX_WORDS])


def _by_first_word(memory: Memory, words: str) -> tuple[list[Owner], str]:
    """Return the users that the first word names, and the rest of the words."""
    first, _, rest = words.partition(" ")
    return (memory.admin.users(limit=OWNERS, matching=first), rest.strip()) if rest.strip() else ([], "")


def _places(
    caller: Caller, words: str, first: list[Owner], rest: str, named: list[Owner]
) -> Iterator[tuple[Owner, str]]:
    """Yield whose conversations and facts are looked through, and for which words: ``priya vegetarian`` names both."""
    seen = set()
    grant = caller.grant
    if grant.user:
        own = (grant.org, grant.user, grant.bot)
        seen.add(own)
        yield own, words
    for key in first:
        if key not in seen:
            seen.add(key)
            yield key, rest
    for key in named[:OWNERS]:
        if key not in seen:
            yield key, ""


def _conversations(memory: Memory, key: Owner, words: str) -> Iterator[FoundRow]:
    states = _open(memory, key).overview(limit=MAX_READ)
    plain = (one for one in states if one.conversation != BY_HAND_CONVERSATION)
    for one in islice((one for one in plain if words.casefold() in one.conversation.casefold()), ROWS):
        yield _conversation_row(key, one.subject, one.conversation)


def _conversation_row(key: Owner, subject: str, conversation: str) -> FoundRow:
    named = {"user": key[1], "conversation": conversation, **_query(key, None if subject == SELF else subject)}
    return FoundRow(link("/dashboard/conversations/{user}/{conversation}", **named), conversation, _of(key, key[1]))


def _facts(memory: Memory, key: Owner, words: str) -> Iterator[FoundRow]:
    for fact in _matching(_open(memory, key).facts(limit=MAX_READ), words):
        yield _fact_row(key, fact)


def _fact_row(key: Owner, fact: Fact) -> FoundRow:
    address = link("/dashboard/users/{user}", user=key[1], q=fact.text[:MAX_WORDS], **_query(key))
    return FoundRow(f"{address}#{fact.id}", fact.text, _of(key, key[1]))


def _matching(facts: list[Fact], words: str) -> Iterator[Fact]:
    """Yield the first facts that contain every word."""
    wanted = words.casefold().split()
    return islice((fact for fact in facts if all(word in fact.text.casefold() for word in wanted)), ROWS)


def _open(memory: Memory, key: Owner) -> User:
    return memory.user(key[1], org=key[0], bot=key[2])


def _query(key: Owner, subject: str | None = None) -> dict[str, str]:
    return scope_query(key[0], key[2], subject)


def _of(key: Owner, user: str = "") -> str:
    """Return whose a result is; the usual org and bot are not named."""
    return " · ".join([user] * bool(user) + [name for name in (key[0], key[2]) if name != "default"])
