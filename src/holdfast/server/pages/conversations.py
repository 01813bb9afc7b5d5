"""Pages of conversations: the lists, and one conversation with its summaries, facts, rebuilds and next context."""

from __future__ import annotations

import hashlib
import json
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from fastapi import Request
from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.responses import Response

from ...clock import from_ms, to_ms
from ...context.result import Context
from ...conversation import Conversation, check_rebuild
from ...errors import BadInput, ConfigError, HoldfastError, NotFound
from ...memory import Memory
from ...reports import ConversationState, ErasureReceipt, RebuildReport, Rebuilt
from ...text import dataclass
from ...text.validate import parse_rating, replace_unstorable
from ...types import BY_HAND_CONVERSATION, Fact, Job, Message, Summary
from ...user import User
from ..jobs import OnProgress, Owner, ReportData, Task, Tasks, TasksDep, load_report, report_data
from ..routing import OPERATOR, RouteTable, UserName
from ..schemas import Caller, CallerDep, ConversationDep, UserDep
from .home import remember_order, sorted_users, wanted_order
from .layout import (
    Form,
    FormDep,
    events_address,
    here,
    link,
    list_file,
    query_number,
    render,
    scope_query,
    see_other,
    seen_version,
    wanted_file,
)
from .texts import mark, plural, translate
from .workbench.transcript import (
    FactsDiff,
    MessageHits,
    coverage_strip,
    fact_badges,
    facts_diff,
    first_mentions,
    minimap,
    search_messages,
    transcript_lines,
    word_diff,
)

table = RouteTable()
LIST = "/dashboard/conversations"
OF_USER = LIST + "/{user:name}"
ONE = OF_USER + "/{conversation:name}"

USERS_A_PAGE = 20
CONVERSATIONS_A_USER = 5  # conversations of one user on the list of all
CONVERSATIONS_A_PAGE = 50
MESSAGES_A_PAGE = 100
MOST_ORGS = 50
MAX_DIGITS = 15
_AFTER_EVERY_NAME = "\U0010ffff" * 3
WAIT_S = 0.8  # for a rebuild that needs no model
LAYERS = {
    "chunk": mark("Chunk summaries, with facts and episodes"),
    "summaries": mark("Chunk summaries"),
    "meta": mark("Meta summaries"),
    "facts": mark("Facts"),
    "episodes": mark("Episodes"),
    "vectors": mark("Embeddings"),
}
FACT_LAYERS = ("chunk", "facts", "episodes")
ESTIMATED = 200  # messages that an estimate on the page reads
MAX_WORDS = 200  # characters of a search
LISTED = 25  # summaries and facts that a panel lists
FOLDED_CHARS = 3_000  # a longer message is folded to its beginning
PAGE_CHARS = 80_000  # of a page of messages; where they are longer together, they are folded sooner
FOLDED_SOONER = 600
SENT_CHARS = 500  # of an item of a context that was sent

NOTICES = {
    "rated": mark("Rating stored."),
    "edited": mark("Message changed. What was learned from the old text is deleted."),
    "undone": mark("Undone. The fact is retracted, and the one it replaced is active again."),
    "fact-restored": mark("The fact is active again."),
    "remembered": mark("Added. It rests on these messages, and on your words."),
    "refused": mark("Not added: memory is paused, or the words hold what must not be remembered."),
    "stopped": mark("Stopping after the current range. Finished ranges keep their new version."),
    "reverted": mark("Reverted to the previous version."),
    "told": mark("Stored. The context that was sent for the reply is shown beside it."),
    "ended": mark("Conversation ended. The remaining messages are being summarized."),
    "retried": mark("The job will run again."),
}
SOON_MS = 120_000
STUB = "Noted."  # the reply of a chat on the page where no model is set
WORD = "erase"  # that confirms the erasure of a conversation
BY_HAND_TITLE = mark("Facts entered by hand")


@table.page("GET", LIST, OPERATOR)
def conversations_page(request: Request, caller: CallerDep) -> Response:
    """Show conversations by user."""
    memory, query = caller.memory, request.query_params
    org, begins = caller.grant.org, query.get("name", "")
    if kind := wanted_file(request):
        heads = ("user", "bot", "conversation", "subject", "messages", "summarized", "last_at")
        return list_file(kind, "conversations", heads, _all_conversations(memory, org, begins))
    sort, skip = "name" if begins else wanted_order(request), query_number(request, "skip") or 0
    after = (org, query["after"], query.get("after_bot", "")) if "after" in query else (org, begins, "")
    counted = None if sort == "name" else sorted_users(request, memory, sort, USERS_A_PAGE + 1, skip, org=org)
    if counted is None:
        sort, skip = "name", 0
        counted = memory.admin.users(limit=USERS_A_PAGE + 1, after=after, org=org)
    users = [one for one in counted if one[1].startswith(begins)]
    more = len(users) > USERS_A_PAGE
    users = users[:USERS_A_PAGE]
    groups, soon = list[dict[str, Any]](), False
    for at, user, bot in users:
        owner = memory.user(user, org=at, bot=bot)
        states, jobs = _newest_talks(owner, CONVERSATIONS_A_USER + 1), memory.admin.jobs_of_user(user, org=at, bot=bot)
        names = subject_names(owner, states)
        shown = [_list_row(state, user, at, bot, jobs, names) for state in states[:CONVERSATIONS_A_USER]]
        rest = link(OF_USER.replace(":name", ""), user=user, **scope_query(at, bot))
        others = len(states) > CONVERSATIONS_A_USER
        groups.append({"user": user, "bot": bot, "rows": shown, "more": others, "address": rest})
        soon = soon or any(map(_is_at_work, jobs))
    last = users[-1] if users else ("", "", "")
    next_page = {"after": last[1], "after_bot": last[2]} if sort == "name" else {"skip": str(skip + USERS_A_PAGE)}
    answer = render(
        "conversations.html",
        request,
        title=translate("Conversations"),
        events=None,
        groups=groups,
        soon=soon,
        org=org,
        orgs=list(_orgs(memory)),
        begins=begins,
        after=here(request, **next_page) if more else None,
        first=here(request, after=None, after_bot=None, skip=None) if "after" in query or skip else None,
        sort=wanted_order(request),
    )
    return remember_order(request, answer)


def _is_at_work(job: Job) -> bool:
    """Whether a job runs or became due just now, so that the page looks again; a job without a worker is not waited for."""
    late_ms = datetime.now(UTC).timestamp() * 1000 - job.run_at_ms
    return job.state in ("ready", "running") and 0 <= late_ms < SOON_MS


def _all_conversations(memory: Memory, org: str, begins: str) -> Iterator[dict[str, Any]]:
    """Yield the conversations of every user of an org whose name begins so, as they are read."""
    after = (org, begins, "")
    while page := memory.admin.users(limit=USERS_A_PAGE, after=after):
        for at, user, bot in page:
            if at != org or not user.startswith(begins):
                return
            for state in _talks(memory.user(user, org=at, bot=bot)):
                yield {"user": user, "bot": bot, **asdict(state)}
        after = page[-1]


@table.page("GET", OF_USER, OPERATOR)
def conversations_of_user_page(request: Request, caller: CallerDep, owner: UserDep, user: UserName) -> Response:
    """Show the conversations of one user, newest first."""
    grant, wanted = caller.grant, request.query_params.get("name", "")
    talks = _talks(owner, wanted, _parse_place(request.query_params.get("after")))
    if kind := wanted_file(request):
        heads = ("conversation", "subject", "messages", "summarized", "last_at")
        return list_file(kind, "conversations", heads, (asdict(state) for state in talks))
    found = _newest_talks(owner, CONVERSATIONS_A_PAGE + 1, talks)
    shown = found[:CONVERSATIONS_A_PAGE]
    jobs = caller.memory.admin.jobs_of_user(user, org=grant.org, bot=grant.bot)
    names = subject_names(owner, shown)
    return render(
        "conversations-of-user.html",
        request,
        title=user,
        user=user,
        grant=grant,
        wanted=wanted,
        consent=owner.status(),
        notices=_receipt_notice(request.query_params.get("said", "")),
        rows=[_list_row(state, user, grant.org, grant.bot, jobs, names) for state in shown],
        first=here(request, after=None) if "after" in request.query_params else None,
        after=here(request, after=_place(shown[-1])) if len(found) > CONVERSATIONS_A_PAGE else None,
        back=link(LIST, **scope_query(grant.org)),
    )


@table.page("GET", ONE, OPERATOR)
def conversation_page(
    request: Request, caller: CallerDep, chat: ConversationDep, owner: UserDep, tasks: TasksDep, user: UserName
) -> Response:
    """Show one conversation: transcript, coverage, summaries, facts and the next context."""
    return _render_conversation(request, caller, chat, owner, tasks, user)


def _render_conversation(
    request: Request,
    caller: Caller,
    chat: Conversation,
    owner: User,
    tasks: Tasks,
    user: str,
    conflict: tuple[Message, str] | None = None,
) -> Response:
    conversation = chat.id
    state = chat.state()
    if state is None:
        raise _no_conversation(user, conversation)
    grant, query = caller.grant, request.query_params
    events = events_address(request, user, grant.org, grant.bot, state.subject, conversation)
    live, facts = chat.summaries(), chat.learned()
    ever = chat.summaries(live=False) if "chunk" in query else live
    chosen = next((summary for summary in ever if summary.id == query.get("chunk")), None)
    first = _first_shown(query_number(request, "at"), chosen.start_seq if chosen else None, state.messages)
    last = min(state.messages, first + MESSAGES_A_PAGE - 1)
    jobs = _jobs_about(caller, user, state)
    dead = [job for job in jobs if job.state in ("dead", "cancelled")]
    hits, panels = _search(request, chat, state.messages), _rebuild_panel(request, caller, chat, owner, tasks, state)
    return render(
        "conversation/conversation.html",
        request,
        title=conversation if conversation != BY_HAND_CONVERSATION else translate(BY_HAND_TITLE),
        **_message_forms(request, conflict),
        conversation=conversation,
        events=events,
        notices=NOTICES | _receipt_notice(query.get("said", "")),
        user=user,
        grant=grant,
        state=state,
        about=subject_names(owner, [state]).get(state.subject, state.subject),
        consent=owner.status(),
        standing=_status_badge(state, dead),
        dead=dead,
        waiting=[job for job in jobs if job.state == "waiting"],
        **_transcript_page(request, chat, facts, first, last, state.messages),
        hits=hits,
        tab=_first_tab(request, panels, chosen),
        **_drawings(
            live,
            state.messages,
            first_mentions(facts, chat.id),
            panels["rebuilds"],
            hits=hits,
            failed=_summaries_failed(dead),
            around=first + (last - first) // 2,
        ),
        meta=sorted((s for s in live if s.level > 1), key=lambda s: (-s.level, s.start_seq)),
        chunks=[s for s in live if s.level == 1],
        facts=[fact for fact in facts if fact.live],
        near=_nearest,
        **_chosen_summary(chosen, live, ever),
        **panels,
        context=context_panel(request, chat),
        back=link(OF_USER.replace(":name", ""), user=user, **scope_query(grant.org, grant.bot)),
    )


def _no_conversation(user: str, conversation: str) -> NotFound:
    said = translate("{user} has no conversation {conversation} here", user=repr(user), conversation=repr(conversation))
    return NotFound(said, hint=translate("it may belong to another subject"))


@table.page("POST", ONE, OPERATOR)
def conversation_change(
    request: Request,
    caller: CallerDep,
    chat: ConversationDep,
    owner: UserDep,
    tasks: TasksDep,
    user: UserName,
    form: FormDep,
) -> Response:
    """Edit or forget a message, retract a fact, rebuild a range, revert a rebuild, erase the conversation."""
    do = form["do"]
    if do == "edit":
        found = chat.load(start_seq=_seq(form), limit=1)
        if found and form.get("version") and form["version"] != message_version(found[0]):
            conflict = (found[0], form["content"])
            return _render_conversation(request, caller, chat, owner, tasks, user, conflict)
        chat.edit(_seq(form), form["content"])
        said = "edited"
    elif do == "rate":
        score = parse_rating(form["score"])
        if score is None:
            raise HTTPException(422, translate("The score must be up, down, or a number from 0 to 1"))
        chat.rate(score, seq=_seq(form))
        said = "rated"
    elif do == "forget":
        said = _receipt_code(chat.forget(_seq(form)))
    elif do == "undo":
        owner.never_true(form["fact"], if_version=seen_version(form))
        said = "undone"
    elif do == "restore-fact":
        owner.restore(form["fact"], if_version=seen_version(form))
        said = "fact-restored"
    elif do == "remember":
        begin, last = _form_number(form, "first"), _form_number(form, "last")
        change = owner.remember(form["text"], conversation=chat.id, start_seq=begin, end_seq=last)
        said = "refused" if change.op == "rejected" else "remembered"
    elif do == "rebuild":
        return start_rebuild(request, caller, chat, form, tasks)
    elif do == "erase":
        return _erase_conversation(caller, chat, form, user)
    elif do == "say":
        return see_other(here(request, at=None, chunk=None, sent=_say(chat, form)), said="told")
    elif do == "stop":
        tasks.cancel(form["task"])
        said = "stopped"
    elif do == "revert":
        chat.restore(form["rebuild"])
        said = "reverted"
    elif do == "end":
        chat.end()
        said = "ended"
    elif do == "retry":
        caller.memory.retry(form["job"])
        said = "retried"
    else:
        raise HTTPException(422, translate("Unknown action"))
    return see_other(here(request), said=said)


def _say(chat: Conversation, form: Form) -> int:
    """Store an exchange and return the reply's number; the model replies, or what was typed, or `STUB` without both."""
    text, reply = form["text"].strip(), form.get("reply", "").strip()
    if not text:
        raise HTTPException(422, translate("Nothing was stored: type what the user says"))
    if not reply:
        try:
            return chat.reply(text).seq
        except ConfigError:
            reply = STUB
    chat.context(text)
    seqs = chat.record(text, reply).seqs
    return seqs[-1] if seqs else 0


def _search(request: Request, chat: Conversation, messages: int) -> MessageHits | None:
    """Return the messages that contain the text of the address, if it has one."""
    words = replace_unstorable(request.query_params.get("find", "").strip()[:MAX_WORDS])
    return search_messages(chat, words, messages, query_number(request, "behind") or 0) if words else None


def _transcript_page(
    request: Request, chat: Conversation, facts: Sequence[Fact], first: int, last: int, messages: int
) -> dict[str, Any]:
    """Return messages *first* to *last*, and the addresses of the pages before and after."""
    said = chat.load(start_seq=first, limit=last - first + 1)
    chars = sum(min(len(message.content), FOLDED_CHARS) for message in said)
    return {
        "folded": FOLDED_CHARS if chars <= PAGE_CHARS else FOLDED_SOONER,
        "transcript": transcript_lines(said, first, last, fact_badges(facts, chat.id)),
        "first": first,
        "last": last,
        "older": here(request, at=max(1, first - MESSAGES_A_PAGE), chunk=None) if first > 1 else None,
        "newer": here(request, at=last + 1, chunk=None) if last < messages else None,
        "plain": "plain" in request.query_params,
        "sent": _sent_panel(request, chat),
    }


def _drawings(
    live: Sequence[Summary],
    messages: int,
    learned: Sequence[tuple[int, Fact, bool]],
    rebuilds: Sequence[Rebuilt],
    *,
    hits: MessageHits | None,
    failed: bool,
    around: int,
) -> dict[str, Any]:
    """Return the map of the whole conversation, and the strip of its coverage around a message."""
    found = [hit.seq for hit in hits.hits] if hits else []
    return {
        "minimap": minimap(live, messages, learned, rebuilds, hits=found, failed=failed),
        "strip": coverage_strip(live, messages, learned, failed=failed, around=around),
    }


def _nearest(found: Sequence[Any], seq: int) -> Sequence[Any]:
    """Return the rows of a list in order of their messages that are nearest to message *seq*."""
    if len(found) <= LISTED:
        return found
    ordered = sorted(found, key=lambda one: one.start_seq)
    at = bisect_left(ordered, seq, key=lambda one: one.start_seq)
    begin = max(0, min(at - LISTED // 2, len(ordered) - LISTED))
    return ordered[begin : begin + LISTED]


def _first_tab(request: Request, panels: dict[str, Any], chosen: Summary | None) -> str:
    """Return the tab that is open first: the one of which the address asks something."""
    progress = panels["progress"]
    if panels["estimate"] or (progress and progress.task.state in ("ready", "running")):
        return "rebuild"
    return "summary" if chosen else "context"


def _message_forms(request: Request, conflict: tuple[Message, str] | None) -> dict[str, Any]:
    """Return what the forms of messages need: versions, which long message is shown whole, and a conflict, if any."""
    return {
        "by_hand": BY_HAND_CONVERSATION,
        "word": WORD,
        "stub": STUB,
        "whole": query_number(request, "whole"),
        "conflict": conflict,
        "status": 409 if conflict else 200,
        "message_version": message_version,
    }


def _erase_conversation(caller: Caller, chat: Conversation, form: Form, user: str) -> Response:
    if form["word"].strip().casefold() != WORD:
        raise HTTPException(422, translate("Nothing was erased: type {word} to confirm", word=WORD))
    code = _receipt_code(chat.clear())
    list_of_user = link(OF_USER.replace(":name", ""), user=user, **scope_query(caller.grant.org, caller.grant.bot))
    return see_other(list_of_user, said=code)


def message_version(message: Message) -> str:
    """Return a digest of the text of a message, by which a form knows whether it has changed since."""
    return hashlib.sha256(message.content.encode()).hexdigest()[:16]


Place = tuple[datetime, str, str]


def _talks(owner: User, wanted: str = "", after: Place | None = None) -> Iterator[ConversationState]:
    """Yield the user's conversations, newest first, without that of the facts by hand, page by page as they are read."""
    while page := owner.overview(limit=CONVERSATIONS_A_PAGE + 1, after=after):
        for state in page:
            if state.conversation != BY_HAND_CONVERSATION and wanted.lower() in state.conversation.lower():
                yield state
        after = page[-1].last_at, page[-1].conversation, page[-1].subject


def _newest_talks(owner: User, most: int, talks: Iterator[ConversationState] | None = None) -> list[ConversationState]:
    return list(islice(_talks(owner) if talks is None else talks, most))


def _place(state: ConversationState) -> str:
    """Return the place of a conversation in the list, as the address has it."""
    return json.dumps([to_ms(state.last_at), state.conversation, state.subject])


def _parse_place(given: str | None) -> Place | None:
    if given is None:
        return None
    try:
        at_ms, conversation, subject = json.loads(given)
        return from_ms(int(at_ms)), replace_unstorable(str(conversation)), replace_unstorable(str(subject))
    except (ValueError, TypeError, OverflowError, OSError):
        raise BadInput(
            translate("this page of the list does not exist"), hint=translate("start at the first page")
        ) from None


def _seq(form: Form) -> int:
    number = _form_number(form, "seq")
    if number is None:
        raise HTTPException(422, translate("The message number must be a whole number"))
    return number


def _receipt_code(receipt: ErasureReceipt) -> str:
    """Return a receipt as a code: its level and the number of rows of each kind."""
    return ".".join(["forgotten", receipt.level, *(f"{kind}-{rows}" for kind, rows in receipt.rows.items())])


def _receipt_notice(code: str) -> dict[str, str]:
    """Return the notice for such a code; other text from the address is never shown."""
    found = re.fullmatch(r"forgotten\.(E[012])((?:\.[a-z_ ]{1,40}-\d{1,9})*)", code)
    if found is None:
        return {}
    parts = [part.rpartition("-") for part in found[2].split(".") if part]
    counts = ", ".join(f"{translate(kind.replace('_', ' '))} {rows}" for kind, _, rows in parts)
    said = translate(
        "Forgotten, with everything learned only from it ({counts}).", counts=counts or translate("nothing was left")
    )
    sure = translate("No trace of it is left in the bytes of the store.") if found[1] == "E2" else ""
    return {code: f"{said} {sure}".strip()}


def _orgs(memory: Memory) -> Iterator[str]:
    """Yield the orgs, each found with one query."""
    after: tuple[str, str, str] | None = None
    for _ in range(MOST_ORGS):
        found = memory.admin.users(limit=1, after=after)
        if not found:
            return
        yield found[0][0]
        after = (found[0][0], _AFTER_EVERY_NAME, "")


def _jobs_about(caller: CallerDep, user: str, state: ConversationState) -> list[Job]:
    of_user = caller.memory.admin.jobs_of_user(user, org=caller.grant.org, bot=caller.grant.bot)
    return [job for job in of_user if _is_about(job, state)]


def _is_about(job: Job, state: ConversationState) -> bool:
    return (job.subject, job.conversation) == (state.subject, state.conversation)


def subject_names(owner: User, states: Sequence[ConversationState]) -> dict[str, str]:
    """Return the name to show of each subject, where one of the conversations is about one."""
    if all(state.subject == "self" for state in states):
        return {}
    return {subject.id: subject.name for subject in owner.subjects()}


def _list_row(
    state: ConversationState, user: str, org: str, bot: str, jobs: list[Job], names: dict[str, str]
) -> dict[str, Any]:
    subject = None if state.subject == "self" else state.subject
    dead = [job for job in jobs if job.state in ("dead", "cancelled") and _is_about(job, state)]
    named = {"user": user, "conversation": state.conversation, **scope_query(org, bot, subject)}
    return {
        "state": state,
        "subject": subject and names.get(subject, subject),
        "status": _status_badge(state, dead),
        "address": link(ONE.replace(":name", ""), **named),
    }


def _status_badge(state: ConversationState, dead: list[Job]) -> tuple[str, str, str]:
    """Return ``(kind, icon, text)`` of a badge."""
    if dead:
        return "bad", "bad", translate("summaries failed") if _summaries_failed(dead) else translate("jobs failed")
    if not state.summarized:
        return "quiet", "wait", translate("no summary yet")
    if state.stale:
        return "warn", "stale", plural("{count} summary out of date", "{count} summaries out of date", state.stale)
    if state.waiting > 2 * max(1, state.summarized):
        return "info", "wait", plural("{count} message waiting", "{count} messages waiting", state.waiting)
    return "ok", "ok", translate("up to date")


def _summaries_failed(dead: list[Job]) -> bool:
    return any(job.kind in ("chunk", "summary") for job in dead)


def _first_shown(at: int | None, chunk: int | None, messages: int) -> int:
    """Return the first message of the page: the requested one, else the start of the last page."""
    wanted = at if at is not None else chunk
    if wanted is None:
        return max(1, messages - MESSAGES_A_PAGE + 1)
    return max(1, min(wanted, messages))


def _chosen_summary(chosen: Summary | None, live: list[Summary], ever: list[Summary]) -> dict[str, Any]:
    """Return a summary with every version of its range, oldest first, and its changes since the version before."""
    if chosen is None:
        return {"chunk": None, "is_live": False, "versions": [], "diff": None, "children": []}
    same = [s for s in ever if (s.level, s.start_seq, s.end_seq) == (chosen.level, chosen.start_seq, chosen.end_seq)]
    versions = sorted(same, key=lambda summary: (summary.version, summary.id))
    at = versions.index(chosen)
    return {
        "chunk": chosen,
        "is_live": chosen.id in {summary.id for summary in live},
        "versions": versions,
        "diff": word_diff(versions[at - 1].text, chosen.text) if at else None,
        "children": [summary for summary in live if summary.id in chosen.children],
    }


@dataclass(slots=True)
class RebuildEstimate:
    """The upper bounds of a rebuild and its facts before and after; ``refused`` says why it is impossible."""

    what: str
    words: str
    first: int | None
    last: int | None
    report: RebuildReport | None = None
    refused: str = ""
    hint: str = ""
    skipped: str = ""
    facts: FactsDiff | None = None
    at_stake: int = 0
    reading: tuple[int, int] | None = None  # the messages that are still read for it
    estimated: tuple[int, int] | None = None  # the messages that were read, where there are more


@dataclass(frozen=True, slots=True)
class RebuildProgress:
    """The state of a rebuild, with its ``report`` and the difference of its facts once it is done."""

    task: Task
    report: RebuildReport | None
    facts: FactsDiff | None = None


def estimate_rebuild(
    request: Request, caller: Caller, chat: Conversation, messages: int, newest: int
) -> RebuildEstimate | None:
    """
    Return the estimate for the range in the query, if any; of a long one, it reads the first messages only.

    It is made in the background: until it is there, ``reading`` says what is read.  *newest* is the number of the user's
    newest event, as nothing that changed since is in an estimate.
    """
    what = request.query_params.get("make", "")
    if what not in LAYERS:
        return None
    found = RebuildEstimate(what, LAYERS[what], query_number(request, "first"), query_number(request, "last"))
    first, last = found.first or 1, min(found.last or messages, messages)
    if last - first >= ESTIMATED:
        found.estimated = first, first + ESTIMATED - 1
    key = (rebuild_owner(caller, chat), newest, what, first, last)
    made: RebuildEstimate | None = request.app.state.estimates.get(key, lambda: _estimated(chat, found))
    return made or replace(found, reading=found.estimated or (first, last))


def _estimated(chat: Conversation, found: RebuildEstimate) -> RebuildEstimate:
    what, span = found.what, found.estimated or (found.first, found.last)
    try:
        found.report = chat.rebuild(what, start_seq=span[0], end_seq=span[1], dry_run=True)
    except HoldfastError as error:
        found.refused, found.hint = error.message, error.hint
        return found
    if what == "chunk" and not _makes_episodes(chat):
        found.skipped = "episodes"
    if what in FACT_LAYERS:
        found.at_stake = sum(isinstance(one, Fact) and one.live for one in found.report.before)
        if found.report.calls == 0:
            found.facts = facts_diff(
                found.report.before,
                found.report.after,
                {one.id for one in found.report.before if isinstance(one, Fact) and one.live},
            )
    return found


def _makes_episodes(chat: Conversation) -> bool:
    try:
        chat.rebuild("episodes", start_seq=1, end_seq=1, dry_run=True)
    except ConfigError:
        return False
    return True


def _rebuild_panel(
    request: Request, caller: Caller, chat: Conversation, owner: User, tasks: Tasks, state: ConversationState
) -> dict[str, Any]:
    estimate = estimate_rebuild(request, caller, chat, state.messages, owner.last_event())
    progress = rebuild_progress(caller, chat, tasks)
    running = progress is not None and progress.task.state in ("ready", "running")
    return {
        "rebuilds": list(reversed(chat.rebuilds()))[:20],
        "estimate": estimate,
        "progress": progress,
        "waits": running or bool(estimate and estimate.reading),
        "layers": LAYERS,
    }


def rebuild_owner(caller: CallerDep, chat: Conversation) -> Owner:
    grant = caller.grant
    return Owner(grant.org, grant.user, grant.bot, grant.subject, chat.id)


def rebuild_progress(caller: CallerDep, chat: Conversation, tasks: Tasks) -> RebuildProgress | None:
    """Return the latest rebuild of this conversation, if any."""
    task = next(iter(tasks.of(rebuild_owner(caller, chat))), None)
    if task is None:
        return None
    report = load_report(caller.memory, task.kind, task.report, task.owner, None) if task.state == "done" else None
    if not isinstance(report, RebuildReport):
        return RebuildProgress(task, None)
    if report.layer not in FACT_LAYERS:
        return RebuildProgress(task, report)
    active = set((task.report or {}).get("active", ()))
    return RebuildProgress(task, report, facts_diff(report.before, report.after, active))


def start_rebuild(request: Request, caller: CallerDep, chat: Conversation, form: Form, tasks: Tasks) -> Response:
    """Rebuild the range in the background, as one revision; ranges that fail keep their version."""
    what = form["make"]
    if what not in LAYERS:
        raise HTTPException(422, translate("Unknown layer"))
    span: dict[str, Any] = {"start_seq": _form_number(form, "first"), "end_seq": _form_number(form, "last")}
    check_rebuild(chat, what, **span)  # what cannot be rebuilt is refused here

    def work(step: OnProgress) -> ReportData:
        return report_data(chat.rebuild(what, **span, progress=step))

    task = tasks.order("rebuild", rebuild_owner(caller, chat), work, role=caller.role)
    task.over.wait(WAIT_S)
    return see_other(here(request, make=None, first=None, last=None))


def _form_number(form: Form, name: str) -> int | None:
    value = form.get(name, "").strip()
    if value and not (value.isdecimal() and len(value) <= MAX_DIGITS):
        raise HTTPException(
            422, translate("{name} must be a whole number of at most {count} digits", name=repr(name), count=MAX_DIGITS)
        )
    return int(value) if value else None


def context_panel(request: Request, chat: Conversation) -> dict[str, Any]:
    """Return the next context for the query of the address, if any.  Building it records no use."""
    query, budget = request.query_params.get("query", "").strip(), query_number(request, "budget")
    against = query_number(request, "against")
    panel: dict[str, Any] = {"query": query, "budget": budget, "against": against}
    shown = request.query_params.get("shown", "")
    panel |= {"found": None, "sections": [], "raw": "", "other": None, "shown": shown}
    wanted = request.headers.get("x-fragment", "context").split()
    if "context" not in wanted or "query" not in request.query_params:
        return panel
    budget = budget if budget and budget > 0 else None
    found = chat.context(query or None, budget_tokens=budget, note=False)
    raw = _as_text(json.dumps(found.to_dict(), ensure_ascii=False, indent=1)) if shown == "json" else ""
    panel |= {"found": found, "sections": [_section_rows(found, section) for section in found.sections], "raw": raw}
    earlier = _earlier_question(chat, against)
    if earlier is not None:
        panel["other"] = compare_contexts(chat.context(earlier, budget_tokens=budget, note=False), found)
    return panel


def _as_text(words: str) -> Markup:
    """Escape text between tags and leave quotes as they are: they are a fifth of JSON, and escaped five times as long."""
    return Markup(words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))


def _sent_panel(request: Request, chat: Conversation) -> dict[str, Any] | None:
    """Return what was sent for the reply that the address names, ``None`` where it names none."""
    seq = query_number(request, "sent")
    if seq is None:
        return None
    found = chat.sent(seq) if seq > 0 else None
    return {"seq": seq, "found": found, "long": SENT_CHARS}


def _earlier_question(chat: Conversation, seq: int | None) -> str | None:
    """Return the text of message *seq* if the user wrote it."""
    if seq is None or seq < 1:
        return None
    found = chat.load(start_seq=seq, limit=1)
    return found[0].content if found and found[0].seq == seq and found[0].role == "user" else None


def compare_contexts(before: Context, after: Context) -> dict[str, Any]:
    """Return the differences of two contexts: tokens, stable prefix, and items per section."""
    sections = []
    for section in after.sections:
        old = next((one for one in before.sections if one.name == section.name), None)
        was = old.items if old is not None else ()
        gone = [plain_item(item) for item in was if item not in section.items]
        new = [plain_item(item) for item in section.items if item not in was]
        sections.append({"name": section.name, "gone": gone, "new": new, "same": len(section.items) - len(new)})
    same_prefix = before.prefix_sha256 == after.prefix_sha256
    return {"tokens": before.tokens, "sections": sections, "same_prefix": same_prefix}


def _section_rows(found: Context, section: Any) -> dict[str, Any]:
    sources = [source for source in found.sources if source.section == section.name]
    exact = len(sources) == len(section.items)
    items = [(plain_item(item), sources[n] if exact else None) for n, item in enumerate(section.items)]
    return {"name": section.name, "tokens": section.tokens, "stable": section.stable, "items": items}


def plain_item(item: str) -> str:
    """Return the text of a context item, which may be a JSON string."""
    try:
        text = json.loads(item)
    except ValueError:
        return item
    return text if isinstance(text, str) else item
