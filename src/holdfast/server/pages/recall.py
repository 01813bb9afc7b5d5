"""The recall lab: what a question finds in a user's memory, and why; it records no use."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from fastapi import Request
from starlette.responses import Response

from ...context.result import Context
from ...errors import BadInput
from ...reports import Explained, Ranked
from ..routing import OPERATOR, RouteTable
from ..schemas import CallerDep
from .layout import link, render, scope_query
from .users import scope_fields, user_in_query

table = RouteTable()
PATH = "/dashboard/recall"
LIMITS = (10, 20, 50)
LEAST = ("0", "0.1", "0.35", "0.5", "0.7", "0.9")
PART_TEXTS = {
    "words": "Words of the question that it contains; rare words count more",
    "meaning": "Similarity of its embedding to the question's",
    "neighbors": "Neighboring turns match, too",
    "session": "Its session matches",
    "day": "It was said on a date in the question",
    "speaker": "It was said by the speaker that the question asks about",
    "echo": "A repetition of the same words without the fact",
    "around": "The words are spread over the turns around it",
    "gathered": "Together, the turns around it contain the words of the question",
    "again": "The words were said just before and are only repeated here",
    "answer": "It answers a question that matches",
    "time": "It says when something happened",
    "opens": "It starts a session, where users often share news",
    "question": "It ends in a question, which is rarely evidence",
    "asked": "It only asks the same question",
    "kind": "It contains a time or number, as the question asks for",
    "names": "Whether it contains a name or a title, since the question asks for several things",
    "personal": "Whether it is told in the first person, since the question asks for several things",
    "spread": "Better turns of the same session come first, and the question asks for several things",
    "standing": "It says how replies should be, and the question asks for help",
    "source": "The score that its source turn gained from its surroundings",
    "prior": "A constant for its kind",
    "newest": "Among near duplicates, the newest comes first",
}


@table.page("GET", PATH, OPERATOR)
def recall_page(request: Request, caller: CallerDep) -> Response:
    """Show the form and its results."""
    query = request.query_params
    user, words = user_in_query(caller), query.get("q", "").strip()
    limit = next((number for number in LIMITS if str(number) == query.get("limit")), LIMITS[0])
    least = next((share for share in LEAST if share == query.get("least")), LEAST[0])
    error, found, context = "", None, None
    chats = user.conversations() if user is not None else []
    chat = query.get("conversation", "")
    try:
        at = parse_time(query.get("at", ""))
        if user is not None and words:
            found = user.explain(words, at=at, limit=limit)
            if chat in chats and at is None and found.state == "active":
                context = caller.conversation(chat).context(words, note=False)
    except BadInput as wrong:
        error = wrong.message
    return render(
        "recall.html",
        request,
        title="Recall lab",
        status=422 if error else 200,
        error=error,
        words=words,
        limit=limit,
        limits=LIMITS,
        least=least,
        leasts=LEAST,
        at=query.get("at", ""),
        chats=chats,
        chat=chat,
        found=found,
        rows=[] if found is None else shown_rows(found, float(least), caller),
        kept=0 if found is None else sum(one.kept for one in found.ranked),
        parts=PART_TEXTS,
        sections=[] if context is None else context_sections(context),
        context=context,
        whom=scope_fields(caller, request),
        sums=parts_add_up(found),
    )


def parse_time(text: str) -> datetime | None:
    """
    Parse a time of the form, in UTC; ``None`` for now.

    Raises:
        BadInput: it is none.
    """
    if not text:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise BadInput(f"{text[:40]!r} is not a time", hint="write it like 2026-03-14T19:02") from None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def shown_rows(found: Explained, least: float, caller: CallerDep) -> list[dict[str, Any]]:
    """Return the results that are at least so relevant."""
    return [result_row(one, caller) for one in found.ranked if one.hit.relevance >= least]


def result_row(one: Ranked, caller: CallerDep) -> dict[str, Any]:
    """Return one result with its address and the parts of its score, largest first."""
    hit, grant = one.hit, caller.grant
    address = ""
    if hit.kind != "fact" and grant.user:
        scope = scope_query(grant.org, grant.bot, None if hit.subject in ("", "self") else hit.subject)
        path = "/dashboard/conversations/{user}/{conversation}"
        address = link(path, user=grant.user, conversation=hit.conversation, at=hit.seq, **scope) + f"#m{hit.seq}"
    parts = sorted(hit.parts.items(), key=lambda part: -abs(part[1]))
    return {"one": one, "hit": hit, "address": address, "parts": parts}


def parts_add_up(found: Explained | None) -> bool:
    """Return whether the parts of every score add up to it."""
    return found is None or all(abs(sum(one.hit.parts.values()) - one.hit.score) < 1e-6 for one in found.ranked)


def context_sections(context: Context) -> list[dict[str, Any]]:
    return [
        {
            "name": section.name.replace("_", " "),
            "tokens": section.tokens,
            "stable": section.stable,
            "items": section.items,
        }
        for section in context.sections
        if section.tokens
    ]
