"""The recall lab: what a question finds in a user's memory, and why; it records no use."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from fastapi import Request
from starlette.responses import Response

from ...context.result import Context
from ...errors import BadInput
from ...reports import Explained, Ranked, RecallCase
from ..routing import OPERATOR, RouteTable
from ..schemas import CallerDep
from .layout import FormDep, link, query_number, render, scope_query
from .texts import mark, translate
from .users import scope_fields, user_in_query

table = RouteTable()
PATH = "/dashboard/recall"
LIMITS = (10, 20, 50)
WANTED_AMONG = 500  # hits among which what should be found is looked for
MAX_CASES = 100  # of a suite that the page runs
PARTS = (
    (mark("words"), "words"),
    (mark("vector"), "meaning"),
    (mark("time"), "time"),
    (mark("around"), "around"),
)  # of a bar: word and field
PART_TEXTS = {
    "words": mark("Words of the question that it contains; rare words count more"),
    "meaning": mark("Similarity of its embedding to the question's"),
    "neighbors": mark("Neighboring turns match, too"),
    "session": mark("Its session matches"),
    "day": mark("It was said on a date in the question"),
    "speaker": mark("It was said by the speaker that the question asks about"),
    "echo": mark("A repetition of the same words without the fact"),
    "around": mark("The words are spread over the turns around it"),
    "gathered": mark("Together, the turns around it contain the words of the question"),
    "again": mark("The words were said just before and are only repeated here"),
    "answer": mark("It answers a question that matches"),
    "time": mark("It says when something happened"),
    "opens": mark("It starts a session, where users often share news"),
    "question": mark("It ends in a question, which is rarely evidence"),
    "asked": mark("It only asks the same question"),
    "kind": mark("It contains a time or number, as the question asks for"),
    "names": mark("Whether it contains a name or a title, since the question asks for several things"),
    "personal": mark("Whether it is told in the first person, since the question asks for several things"),
    "spread": mark("Better turns of the same session come first, and the question asks for several things"),
    "standing": mark("It says how replies should be, and the question asks for help"),
    "source": mark("The score that its source turn gained from its surroundings"),
    "prior": mark("A constant for its kind"),
    "newest": mark("Among near duplicates, the newest comes first"),
}


@table.page("GET", PATH, OPERATOR)
def recall_page(request: Request, caller: CallerDep) -> Response:
    """Show the form and its results."""
    query = request.query_params
    user, words = user_in_query(caller), query.get("q", "").strip()
    limit = next((number for number in LIMITS if str(number) == query.get("limit")), LIMITS[0])
    least = _share(query.get("least", ""))
    error, found, context, wanted = "", None, None, None
    chats = user.conversations() if user is not None else []
    chat = query.get("conversation", "")
    try:
        at = parse_time(query.get("at", ""))
        if user is not None and words:
            wanted = wanted_case(request, caller, words)
            found = user.explain(words, at=at, limit=WANTED_AMONG if wanted else limit)
            if chat in chats and at is None and found.state == "active":
                context = caller.conversation(chat).context(words, note=False)
    except BadInput as wrong:
        error = wrong.message
    return render(
        "recall.html",
        request,
        title=translate("Recall lab"),
        status=422 if error else 200,
        error=error,
        words=words,
        limit=limit,
        limits=LIMITS,
        least=least,
        wanted=wanted,
        place=wanted.find(found) if wanted and found else None,
        among=WANTED_AMONG,
        at=query.get("at", ""),
        chats=chats,
        chat=chat,
        found=found,
        rows=[] if found is None else shown_rows(found, limit, least, caller, words),
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
        raise BadInput(
            translate("{text} is not a time", text=repr(text[:40])), hint=translate("write it like 2026-03-14T19:02")
        ) from None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


@table.page("POST", PATH, OPERATOR)
def run_suite(request: Request, caller: CallerDep, form: FormDep) -> Response:
    """Run the cases of a suite, one a line, and show where each finds what it should."""
    rows, lines = list[dict[str, Any]](), [line for line in form["suite"].splitlines() if line.strip()]
    error = (
        translate("a suite on this page has at most {count} cases", count=MAX_CASES) if len(lines) > MAX_CASES else ""
    )
    for number, line in enumerate(lines[:MAX_CASES], 1):
        try:
            case = RecallCase.parse(line)
            owner = caller.memory.user(case.user, org=case.org, bot=case.bot)
            place = case.find(owner.explain(case.question, limit=WANTED_AMONG))
            rows.append({"case": case, "place": place, "address": _case_address(case)})
        except BadInput as wrong:
            error = f"{translate('Line {number}:', number=number)} {wrong.message}. {wrong.hint}"
            break
    return render(
        "recall-suite.html",
        request,
        title=translate("Recall suite"),
        status=422 if error else 200,
        error=error,
        suite=form["suite"],
        rows=[] if error else rows,
        recalled=sum(row["place"] is not None and row["place"].kept for row in rows),
        among=WANTED_AMONG,
    )


def _case_address(case: RecallCase) -> str:
    wanted = {"fact": case.fact or None, "in": case.conversation or None, "seq": case.seq or None}
    return link(PATH, user=case.user, q=case.question, **wanted, **scope_query(case.org, case.bot))


def _share(text: str) -> float:
    try:
        return min(max(float(text), 0.0), 1.0)
    except ValueError:
        return 0.0


def wanted_case(request: Request, caller: CallerDep, words: str) -> RecallCase | None:
    """Return what the address says that the question should find; ``None`` where it says nothing."""
    query, grant = request.query_params, caller.grant
    fact, seq, talk = query.get("fact", "").strip(), query_number(request, "seq"), query.get("in", "")
    if fact:
        return RecallCase(words, str(grant.user), grant.org, grant.bot, fact=fact)
    return RecallCase(words, str(grant.user), grant.org, grant.bot, talk, seq) if seq and talk else None


def shown_rows(found: Explained, limit: int, least: float, caller: CallerDep, words: str) -> list[dict[str, Any]]:
    """Return the first results, each with a bar of the parts of its score; those that are less relevant than *least* are hidden."""
    shown = found.ranked[:limit]
    whole = max((sum(max(0.0, getattr(one, name)) for _, name in PARTS) for one in shown), default=0.0) or 1.0
    return [
        result_row(one, caller, words) | {"bar": _bar(one, whole), "hidden": one.hit.relevance < least} for one in shown
    ]


def _bar(one: Ranked, whole: float) -> list[tuple[str, float, float]]:
    """Return the parts that raise a score as ``(part, begin, width)``, of 100 for the largest score of the page."""
    begin, found = 0.0, []
    for word, name in PARTS:
        width = 100 * max(0.0, getattr(one, name)) / whole
        if width >= 0.5:
            found.append((word, round(begin, 1), round(width, 1)))
        begin += width
    return found


def result_row(one: Ranked, caller: CallerDep, words: str) -> dict[str, Any]:
    """Return one result with its address, the case that wants it, and the parts of its score, largest first."""
    hit, grant = one.hit, caller.grant
    about = {"fact": hit.text} if hit.kind == "fact" else {"conversation": hit.conversation, "seq": hit.seq}
    case = RecallCase(words, str(grant.user), grant.org, grant.bot, **about).line if hit.kind != "summary" else ""
    address = ""
    if hit.kind != "fact" and grant.user:
        scope = scope_query(grant.org, grant.bot, None if hit.subject in ("", "self") else hit.subject)
        path = "/dashboard/conversations/{user}/{conversation}"
        address = link(path, user=grant.user, conversation=hit.conversation, at=hit.seq, **scope) + f"#m{hit.seq}"
    parts = sorted(hit.parts.items(), key=lambda part: -abs(part[1]))
    return {"one": one, "hit": hit, "address": address, "parts": parts, "case": case}


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
