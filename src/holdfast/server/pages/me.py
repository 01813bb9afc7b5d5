"""
``/me``: the page where users see, correct, forget and download what is remembered about them, pause it, or erase it all.

Where the operator allows it, they also rebuild ranges of their conversations and write prompts of their own there.
Every sentence of the page is in ``texts/me.en.toml``, and in the same file of each other language.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, field, replace
from datetime import UTC, datetime
from typing import Any

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, Response

from ...clock import from_ms
from ...errors import Changed, Conflict, NotFound
from ...jobs.model_client import MAX_PROMPT_CHARS, version_in_use
from ...reconcile.registry import registry
from ...reports import ConversationState, ErasurePreview, ErasureReceipt, Event
from ...scope import CHARACTER, LOCAL, SELF
from ...store.changes import READ
from ...text import dataclass
from ...text.validate import replace_unstorable
from ...types import (
    BY_HAND_CONVERSATION,
    BY_HAND_SOURCE,
    Candidate,
    Fact,
    FactChange,
    Rejected,
    ReviewChoice,
    Role,
    Story,
    Subject,
)
from ...user import User
from ..jobs import Tasks, TasksDep
from ..routing import RouteTable
from ..schemas import Caller, CallerDep
from .conversations import start_rebuild
from .layout import Form, FormDep, events_address, here, query_number, render, see_other, seen_version
from .texts import LANGUAGE_COOKIE, LANGUAGES, editable_value, load_texts, value_as_held

table = RouteTable()
MOST_CHATS = 50  # of the newest conversations that the page offers to rebuild
MOST_STORIES = 50
PROMPTS = ("fact_extraction", "episodes", "chunk_summary", "meta_summary", "story", "character")
PROMPT_FORMS = frozenset(("prompt", "prompt-reset"))
MAX_WORDS = 200  # characters of a search
MOST_FACTS = 100  # active ones on one page
MOST_EARLIER = 10  # that are listed below the fact that replaced them
ASK = "ask-"  # before the id of what waits for a decision
PICK = "pick-"  # before the id of a fact, the name of its box
MAX_PICKED = 100
EVENTS_READ, MOST_CHANGES, MOST_ACCESSES = 300, 20, 50
CHANGE_KINDS = tuple(
    "fact.added fact.confirmed fact.changed fact.replaced fact.corrected fact.ended fact.forgotten consent.changed "
    "erased".split()
)
RECEIPT_KINDS = ("fact.corrected", "fact.forgotten", "message.edited", "message.deleted", "erased", "consent.changed")
RECEIPTS_READ = 10_000  # events, for the file
DECISIONS: dict[str, tuple[ReviewChoice, str]] = {
    "accept": ("accept", "accepted"),
    "dismiss": ("dismiss", "dismissed"),
    "wait": ("wait", "waiting"),
}
OWNER: frozenset[Role] = frozenset(("user",))


@table.page("GET", "/me", OWNER)
def me_page(request: Request, caller: CallerDep) -> Response:
    """Show everything stored about the signed-in user; with ``?preview=`` what forgetting one fact would take along."""
    if "preview" in request.query_params:
        return forget_preview(caller.user(), request.query_params["preview"])
    return _page(request, caller)


@table.page("POST", "/me", OWNER)
def me_change(request: Request, caller: CallerDep, tasks: TasksDep, form: FormDep) -> Response:
    """Apply a posted form; an erasure answers with its receipt."""
    if form["do"] == "language":
        answer = see_other(here(request, done=None, undo=None, made=None, why=None, asked=None))
        if form["language"] in LANGUAGES:
            answer.set_cookie(LANGUAGE_COOKIE, form["language"], max_age=365 * 86_400, path="/", samesite="lax")
        return answer
    try:
        if form["do"] in PROMPT_FORMS:
            return _prompt_change(request, caller, form)
        if form["do"] == "review":
            return _page(request, caller, several=review_several(caller.user(), form))
        return _apply(request, caller, tasks, form)
    except Changed:
        return _page(request, caller, conflict=fact_conflict(caller.user(), form))


def _apply(request: Request, caller: Caller, tasks: Tasks, form: Form) -> Response:
    do, user = form["do"], caller.user()
    if do == "rebuild":
        _rebuild(request, caller, tasks, form)
        return see_other(here(request, done="rebuilding", undo=None, why=None))
    if do in ERASING:
        said = load_texts("me")
        word = said("data.forget_all_word")
        if do == "forget-all" and form["word"].strip().casefold() != word.casefold():
            return _page(request, caller, wrong=WrongField(do, form["word"], said("done.word", word=word)))
        return _page(request, caller, receipt=ERASING[do](user, form))
    if do in DECISIONS:
        return see_other(here(request, **decide_waiting(user, form)))
    if do not in CHANGING:
        raise HTTPException(422, "Unknown action")
    done = CHANGING[do](caller, form)
    if do == "change" and done["done"] == "refused":
        return _page(request, caller, wrong=WrongField(form["fact"], form["value"], why_refused(done["why"])))
    return see_other(here(request, **done))


@dataclass(frozen=True, slots=True)
class WrongField:
    """A field whose text cannot be used: its form (the id of a fact, or an action), the text typed, and the reason."""

    form: str
    typed: str
    why: str


def why_refused(reason: str | None) -> str:
    """Return in the words of the page that nothing was stored, and why."""
    said = load_texts("me")
    return " ".join(filter(None, (said("done.refused"), said.find(f"refused.{reason}", ""))))


def forget_preview(user: User, fact_id: str) -> Response:
    """Return what else goes, stays, and reads otherwise when a fact is forgotten, a line each."""
    said, preview = load_texts("me"), user.forget(fact_id, dry_run=True).preview or ErasurePreview()
    lines = [said("facts.forget_goes", text=fact.text) for fact in preview.facts if fact.id != fact_id]
    lines += [said("facts.forget_stays", text=fact.text) for fact in preview.kept]
    lines += [said("facts.forget_reads", text=message.content) for message in preview.messages]
    return PlainTextResponse("\n".join(lines))


@table.page("GET", "/me/download", OWNER)
def me_download(request: Request, caller: CallerDep) -> Response:
    """Return everything as a file: ``?as=json`` for machines, else a page to read."""
    user, now = caller.user(), datetime.now(UTC)
    data = user.export()
    name = f"memory-{now:%Y-%m-%d}"
    if request.query_params.get("as") == "json":
        body = json.dumps(data, ensure_ascii=False, indent=1).encode("utf-8", "backslashreplace")
        return _attachment(Response(body, media_type="application/json"), f"{name}.json")
    said = load_texts("me")
    topics = group_facts(user.facts(), user.history(), said.topics(), user.subjects())
    talks = [talk for talk in data["conversations"] if talk["messages"]]
    page = render(
        "me-download.html",
        request,
        title=said("download.title", name=data["user"]),
        t=said,
        subjects=topics,
        talks=talks,
        choices=user.status(),
        now=now,
        from_ms=from_ms,
    )
    return _attachment(page, f"{name}.html")


@table.page("GET", "/me/receipts", OWNER)
def me_receipts(request: Request, caller: CallerDep) -> Response:
    """Return the receipts of corrections and erasures as a file, with the ids of what they were about and no words."""
    del request
    found = [asdict(one) | {"at": one.at.isoformat()} for one in receipts_of(caller.user(), RECEIPTS_READ)]
    body = json.dumps({"user": caller.grant.user, "receipts": found}, ensure_ascii=False, indent=1)
    answer = Response(body.encode("utf-8", "backslashreplace"), media_type="application/json")
    return _attachment(answer, f"receipts-{datetime.now(UTC):%Y-%m-%d}.json")


def _attachment(answer: Response, name: str) -> Response:
    answer.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer


def _rebuild(request: Request, caller: Caller, tasks: Tasks, form: Form) -> None:
    """Rebuild a range of one of the user's own conversations, where the operator allows that."""
    caller.check_allowed("users_may_rebuild")
    grant = caller.grant
    chat = caller.memory.conversation(
        form["chat"], user=str(grant.user), org=grant.org, bot=grant.bot, subject=form["about"]
    )
    if chat.id == BY_HAND_CONVERSATION or chat.state() is None:
        raise NotFound(f"there is no conversation {chat.id!r} here", hint="the page lists them")
    start_rebuild(request, caller, chat, form, tasks)


def _page(
    request: Request,
    caller: Caller,
    receipt: ErasureReceipt | None = None,
    conflict: FactConflict | None = None,
    several: SeveralFacts | None = None,
    problem: PromptProblem | None = None,
    wrong: WrongField | None = None,
) -> Response:
    user, said, grant = caller.user(), load_texts("me"), caller.grant
    events = events_address(request, grant.user or "", grant.org, grant.bot, grant.subject)
    live, ever, query = user.facts(), user.history(), request.query_params
    words = query.get("q", "").strip()[:MAX_WORDS]
    shown, past = matching_facts(live, words), matching_facts(ever, words)
    return render(
        "me.html",
        request,
        title=said("title"),
        events=events,
        t=said,
        choices=user.status(),
        **facts_page(group_facts(shown, past, said.topics(), user.subjects()), request),
        words=words,
        found=len(shown),
        known=len(live),
        several=several,
        **waiting_questions(user, live),
        decided=[one for one in query.get("asked", "").split(",") if one][:MAX_PICKED],
        changes=recent_changes(user, ever),
        receipts=receipts_of(user)[:MOST_CHANGES],
        accesses=access_log(user),
        own_key=grant.key.id if grant.key else LOCAL,
        share=caller.memory.config.read_log_share,
        archived=[fact for fact in past if fact.ended_because == ARCHIVED],
        stories=stories_of(user, () if grant.subject else user.subjects()),
        chats=_own_chats(user) if caller.memory.config.users_may_rebuild else [],
        prompts=prompts_in_use(caller) if caller.memory.config.users_may_set_prompts else [],
        problem=problem,
        most=MAX_PROMPT_CHARS,
        status=409 if conflict else 422 if wrong else problem.status if problem else 200,
        wrong=wrong,
        conflict=conflict,
        done="" if receipt or conflict or wrong else said.find(f"done.{query.get('done', '')}", ""),
        why=said.find(f"refused.{query.get('why', '')}", ""),
        refused=query.get("done") == "refused",
        undo=query.get("undo"),
        made=query.get("made", ""),
        receipt=receipt,
        by_hand=BY_HAND_CONVERSATION,
        by_hand_source=BY_HAND_SOURCE,
        self_subject=SELF,
        character_subject=CHARACTER,
        own_words=_confirmed_here,
        shown=editable_value,
    )


def matching_facts(facts: Sequence[Fact], words: str) -> list[Fact]:
    """Return the facts that contain every word."""
    wanted = words.casefold().split()
    return [fact for fact in facts if all(word in fact.text.casefold() for word in wanted)]


@dataclass(frozen=True, slots=True)
class WaitingQuestion:
    """A candidate that waits for a decision: its words, the newest message that says so, and the fact that it would replace."""

    ids: tuple[str, ...]
    text: str
    value: str
    ends: bool
    quote: str
    home: str
    conversation: str
    seq: int
    instead: str


def waiting_questions(user: User, live: Sequence[Fact]) -> dict[str, Any]:
    """Return what waits, newest first and once for the same words, and whether more does than one page shows."""
    rows, last = user.rejected_page(limit=MAX_PICKED, waiting=True)
    groups: dict[tuple[str, ...], list[Rejected]] = defaultdict(list)
    for row in rows:
        said = row.candidate
        words = said.value if said.kind == "attribute" else said.text
        groups[said.op, said.kind, said.subject, said.category, said.key, words.casefold()].append(row)
    asked, texts = [], load_texts("me")
    for same in groups.values():
        said = same[0].candidate
        value = said.text if said.kind != "attribute" else said.key.replace("_", " ")
        value = said.value if said.kind == "attribute" and said.value != "true" else value
        instead = next((fact.text for fact in live if _gives_way(fact, said)), "")
        ended = next((fact.text for fact in live if said.op == "retract" and _would_end(fact, said)), "")
        words = texts("review.ends", text=ended) if ended else said.text
        place = (same[0].home, same[0].conversation, said.seq)
        ids = tuple(row.id for row in same)
        asked.append(WaitingQuestion(ids, words, value, said.op == "retract", said.quote, *place, instead))
    return {"asked": asked, "more_asked": last is not None}


def _gives_way(fact: Fact, said: Candidate) -> bool:
    """Return whether a fact would end if *said* was accepted, because one value can hold there."""
    if (said.op, said.kind, fact.kind) != ("assert", "attribute", "attribute") or fact.cardinality == "multi":
        return False
    key = fact.cardinality == "exclusive" or fact.key == said.key
    return key and (fact.subject, fact.category) == (said.subject, said.category)


def _would_end(fact: Fact, said: Candidate) -> bool:
    """Return whether a fact is the one that *said* declares over."""
    place = (fact.kind, fact.subject, fact.category, fact.key) == (said.kind, said.subject, said.category, said.key)
    return place and said.value.casefold() in ("", fact.value.casefold())


def decide_waiting(user: User, form: Form) -> Done:
    """
    Accept or dismiss what a form names, or let it wait again; return the query of the page that follows.

    Raises:
        HTTPException: 422: it names nothing, or too much.
    """
    ids = [name.removeprefix(ASK) for name in form if name.startswith(ASK)]
    if not 0 < len(ids) <= MAX_PICKED:
        raise HTTPException(422, load_texts("me")("several.wrong", most=MAX_PICKED))
    choice, done = DECISIONS[form["do"]]
    value = form.get("value", "").strip() or None
    try:
        changes = user.review(ids, choice, value=value if choice == "accept" and len(ids) == 1 else None)
    except NotFound:  # its message was erased meanwhile
        return _done("gone")
    refused = [change for change in changes if choice == "accept" and change.op == "rejected"]
    refused += [change for change in changes if change.reason.startswith("accepted-already")]
    if len(refused) == len(changes):
        return _done("refused", why=refused[0].reason.partition(":")[0])
    return {**_done(done), "asked": ",".join(ids) if choice != "wait" else None}


@dataclass(frozen=True, slots=True)
class SeveralFacts:
    """Facts that are to be forgotten together, each with the version shown, and others that would go with them."""

    picked: tuple[Fact, ...]
    along: tuple[Fact, ...]


def review_several(user: User, form: Form) -> SeveralFacts:
    """
    Return the facts that a form picks, and what else forgetting them would erase.

    Raises:
        HTTPException: 422: none is picked, or too many are.
    """
    picked = tuple(user.fact(fact_id) for fact_id in picked_facts(form))
    previews = [user.forget(fact.id, dry_run=True).preview or ErasurePreview() for fact in picked]
    along = {fact.id: fact for preview in previews for fact in preview.facts}
    return SeveralFacts(picked, tuple(fact for fact in along.values() if fact.id not in {one.id for one in picked}))


def picked_facts(form: Form) -> dict[str, str]:
    """Return the picked facts of a form, each with the version that was shown."""
    found = {name.removeprefix(PICK): value for name, value in form.items() if name.startswith(PICK)}
    if not 0 < len(found) <= MAX_PICKED:
        raise HTTPException(422, load_texts("me")("several.wrong", most=MAX_PICKED))
    return found


def forget_several(user: User, form: Form) -> ErasureReceipt:
    """Forget the picked facts; one that changed since it was shown stays, and one that went with another is no error."""
    picked, receipts, kept = picked_facts(form), [], 0
    for fact_id, version in picked.items():
        try:
            receipts.append(user.forget(fact_id, if_version=[version]))
        except Changed:
            kept += 1
        except NotFound:
            continue
    rows: Counter[str] = Counter()
    for receipt in receipts:
        rows.update(receipt.rows)
    weakest = min(receipts, key=lambda receipt: receipt.level, default=ErasureReceipt({}, "E0"))
    why = load_texts("me")("several.kept", count=kept) if kept else weakest.why
    return ErasureReceipt(dict(rows), weakest.level, weakest.verified_at, why)


@dataclass(frozen=True, slots=True)
class RecentChange:
    """One change of what is remembered: when, of which kind, and the fact's words where they are still there."""

    at: datetime
    kind: str
    text: str = ""


def recent_changes(user: User, ever: Sequence[Fact]) -> list[RecentChange]:
    """Return the newest changes of facts and privacy choices, newest first."""
    texts = {fact.id: fact.text for fact in ever}
    wordless = ("fact.forgotten", "consent.changed", "erased")
    found = [
        event
        for event in user.audit(limit=EVENTS_READ)
        if event.kind in CHANGE_KINDS and (event.ref in texts or event.kind in wordless)
    ]
    return [RecentChange(from_ms(event.at_ms), event.kind, texts.get(event.ref, "")) for event in found[:MOST_CHANGES]]


@dataclass(frozen=True, slots=True)
class Access:
    """One row of the access log: when last on a day, what (the kind of an event, or ``read.context``), by whom, how often."""

    at: datetime
    what: str
    by: str
    number: int
    conversation: str = ""


def access_log(user: User) -> list[Access]:
    """Return who read and changed the memory, newest first; the same by the same one on the same day is one row."""
    rows: dict[tuple[object, ...], Access] = {}
    for event in user.audit(limit=EVENTS_READ):
        if event.kind.startswith("job."):
            continue
        what, number = event.kind, 1
        first, _, last = event.ref.partition("-")
        if what == READ:
            name, _, often = event.ref.partition(" ")
            what, number = f"read.{name}", int(often or 1)
        elif what == "message.added" and last:
            number = int(last) - int(first) + 1
        row = Access(from_ms(event.at_ms), what, event.actor, number, event.conversation)
        key = (row.at.date(), row.what, row.by, row.conversation)
        rows[key] = replace(rows[key], number=rows[key].number + number) if key in rows else row
    return list(rows.values())[:MOST_ACCESSES]


@dataclass(frozen=True, slots=True)
class KeptReceipt:
    """One call that corrected or erased something: when, who, how much of each kind, and the ids; no word of it."""

    at: datetime
    by: str
    what: dict[str, int]
    ids: tuple[str, ...]


def receipts_of(user: User, read: int = EVENTS_READ) -> list[KeptReceipt]:
    """Return the receipts of the newest events, newest first; what happened in one call is one receipt."""
    calls: dict[tuple[int, str], list[Event]] = defaultdict(list)
    for event in user.audit(limit=read):
        if event.kind in RECEIPT_KINDS:
            calls[event.at_ms, event.actor].append(event)
    return [
        KeptReceipt(from_ms(at), by, dict(Counter(one.kind for one in same)), tuple(one.ref for one in same if one.ref))
        for (at, by), same in calls.items()
    ]


def stories_of(user: User, subjects: Sequence[Subject]) -> list[tuple[str, Story]]:
    """Return the stories that there are, each with the name of its subject; that of the user comes first and has none."""
    found = [("", user.story())]
    found += [(subject.name, user.story(subject.id)) for subject in subjects[:MOST_STORIES] if subject.id != SELF]
    return list({story.subject: (name, story) for name, story in found if story.lines}.values())


def _own_chats(user: User) -> list[ConversationState]:
    """Return the newest conversations, without that of the facts by hand."""
    return [chat for chat in user.overview(limit=MOST_CHATS) if chat.conversation != BY_HAND_CONVERSATION]


@dataclass(frozen=True, slots=True)
class PromptInUse:
    """A prompt as it holds for a user: its text, where that is from, and the version of the user's own; 0 without one."""

    name: str
    text: str
    source: str
    version: int


@dataclass(frozen=True, slots=True)
class PromptProblem:
    """A prompt that was not saved: the text typed, why in the words of the page, and the status of the answer."""

    name: str
    text: str
    why: str
    status: int


def prompts_in_use(caller: Caller) -> list[PromptInUse]:
    """Return the prompts that a user may replace, each with where its text is from."""
    grant, admin, own = caller.grant, caller.memory.admin, caller.user().prompts
    levels = {"own": own, "bot": admin.prompts(org=grant.org, bot=grant.bot), "org": admin.prompts(org=grant.org)}
    names = [name for name in PROMPTS if name != "character" or caller.memory.config.character_facts]
    used = {name: {level: version_in_use(of.versions(name)) for level, of in levels.items()} for name in names}
    source = {name: next((level for level, version in of.items() if version), "") for name, of in used.items()}
    if source["fact_extraction"]:  # the words for facts hold there as well
        source |= {name: "facts" for name in ("episodes", "character") if source.get(name) == ""}
    return [PromptInUse(name, own.get(name), source[name] or "default", used[name]["own"]) for name in names]


def _prompt_change(request: Request, caller: Caller, form: Form) -> Response:
    """Save or reset a prompt of the user; what cannot be saved is shown again with the reason."""
    said, name, text = load_texts("me"), form["prompt"], form.get("text", "").strip()
    if name not in PROMPTS or not re.fullmatch(r"[0-9]{1,9}", form["version"]):
        raise HTTPException(422, "Unknown prompt")

    def problem(why: str, status: int) -> Response:
        words = said(f"prompts.{why}", most=MAX_PROMPT_CHARS, count=len(text))
        return _page(request, caller, problem=PromptProblem(name, text, words, status))

    if not caller.memory.config.users_may_set_prompts:
        return problem("not_here", 403)
    prompts, seen = caller.user().prompts, int(form["version"])
    try:
        if form["do"] == "prompt-reset":
            prompts.reset(name, if_version=seen)
        elif not replace_unstorable(text).strip() or len(text) > MAX_PROMPT_CHARS:
            return problem("too_long" if text else "empty", 422)
        elif text == prompts.get(name):
            return see_other(here(request, **_done("nothing")) + "#said")
        else:
            prompts.set(name, text, if_version=seen)
    except Changed:
        return problem("changed", 409)
    except Conflict:
        return problem("off", 409)
    done = "prompt_reset" if form["do"] == "prompt-reset" else "prompt"
    return see_other(here(request, **_done(done)) + "#said")  # else browsers go to the form again


def _confirmed_here(fact: Fact) -> bool:
    """Return whether the user entered or confirmed the fact on this page."""
    return any(said.conversation == BY_HAND_CONVERSATION for said in fact.evidence)


# The actions of forms; each returns the query of the page that follows.

Done = dict[str, str | None]


def _done(done: str, *, undo: str | None = None, made: str | None = None, why: str | None = None) -> Done:
    return {"done": done, "undo": undo, "made": made, "why": why, "asked": None}


def _change_result(change: FactChange, done: str, *, undo: str | None = None) -> Done:
    if change.op == "rejected":
        return _done("refused", why=change.reason.partition(":")[0])
    return _done(done, undo=undo, made=change.fact.id if undo and change.fact else None)


def _right(caller: Caller, form: Form) -> Done:
    fact = caller.user().fact(form["fact"])
    if fact.kind != "attribute":
        return _done("right")
    return _change_result(caller.user().correct(fact.id, value=fact.value, if_version=seen_version(form)), "right")


def _change(caller: Caller, form: Form) -> Done:
    value, fact = form["value"].strip(), caller.user().fact(form["fact"])
    if not value or value == editable_value(fact):
        return _done("nothing")
    value = value_as_held(fact, value, registry(caller.memory.config.categories))
    changed = caller.user().correct(fact.id, value=value, if_version=seen_version(form))
    return _change_result(changed, "changed", undo=fact.id)


def undo_correction(user: User, form: Form) -> FactChange:
    """Restore the corrected fact, and end the one that the correction made where both would be active."""
    made = _found_fact(user, form.get("made", ""))
    change = user.restore(form["fact"], if_version=seen_version(form))
    if change.op == "rejected" or made is None or not made.live or made.id == form["fact"]:
        return change
    now = _found_fact(user, made.id)
    if now is not None and now.live:
        user.never_true(made.id, if_version=[now.version])
    return change


def _found_fact(user: User, fact_id: str) -> Fact | None:
    try:
        return user.fact(fact_id) if fact_id else None
    except NotFound:
        return None


def _undo(caller: Caller, form: Form) -> Done:
    return _change_result(undo_correction(caller.user(), form), "restored")


def _restore(caller: Caller, form: Form) -> Done:
    return _change_result(caller.user().restore(form["fact"], if_version=seen_version(form)), "restored")


def _choose(done: str, choice: Callable[[User, Form], object]) -> Callable[[Caller, Form], Done]:
    def act(caller: Caller, form: Form) -> Done:
        choice(caller.user(), form)
        return _done(done)

    return act


CHANGING: dict[str, Callable[[Caller, Form], Done]] = {
    "right": _right,
    "change": _change,
    "restore": _restore,
    "undo": _undo,
    "never": _choose("never", lambda user, form: user.never_remember(form["topic"].strip())),
    "allow": _choose("allowed", lambda user, form: user.allow(form["topic"])),
    "pause": _choose("paused", lambda user, _form: user.pause()),
    "resume": _choose("resumed", lambda user, _form: user.resume()),
    "opt-in": _choose("on", lambda user, _form: user.opt_in()),
}
ERASING: dict[str, Callable[[User, Form], ErasureReceipt]] = {
    "forget": lambda user, form: user.forget(form["fact"], if_version=seen_version(form)),
    "forget-several": forget_several,
    "forget-all": lambda user, _form: user.erase(),
    "opt-out": lambda user, _form: user.opt_out(),
}


@dataclass(frozen=True, slots=True)
class FactConflict:
    """A form about a fact that changed since the page was shown: the words typed, and the fact that is active now."""

    mine: str
    was: Fact
    theirs: Fact | None


def fact_conflict(user: User, form: Form) -> FactConflict:
    """Return the value of a form, and the fact that is active instead."""
    was = user.fact(form["fact"])
    if was.live:
        return FactConflict(form.get("value", ""), was, was)
    place = _address(was)
    return FactConflict(form.get("value", ""), was, next((f for f in user.facts() if _address(f) == place), None))


ARCHIVED = "archived"


@dataclass(slots=True)
class FactWithHistory:
    """An active fact and the ones it replaced, newest first."""

    fact: Fact
    earlier: list[Fact] = field(default_factory=list)


@dataclass(slots=True)
class FactTopic:
    """The facts of one category; ``past`` are those without an active successor."""

    category: str
    beliefs: list[FactWithHistory] = field(default_factory=list)
    past: list[Fact] = field(default_factory=list)


@dataclass(slots=True)
class SubjectFacts:
    """The facts about one subject, with the name to show; the user is ``self``."""

    name: str
    topics: list[FactTopic]
    label: str = ""


def group_facts(
    live: Sequence[Fact], ever: Iterable[Fact], order: Sequence[str] = (), subjects: Iterable[Subject] = ()
) -> list[SubjectFacts]:
    """
    Group *live* facts and their history: the user first, topics in *order* and then by name.

    Args:
        live: the active facts.
        ever: all facts of the history; those in *live* are skipped.
        order: the categories, in order.
        subjects: those that have a name to show.
    """
    labels = {subject.id: subject.name for subject in subjects}
    standing = {fact.id: FactWithHistory(fact) for fact in live}
    about: dict[str, dict[str, FactTopic]] = defaultdict(dict)
    for belief in standing.values():
        _topic_of(about, belief.fact).beliefs.append(belief)
    past = [fact for fact in ever if fact.id not in standing and fact.ended_because != ARCHIVED]
    after = {fact.id: fact.superseded_by for fact in past if fact.superseded_by}
    places = {_address(belief.fact): belief for belief in standing.values() if belief.fact.cardinality != "multi"}
    for fact in sorted(past, key=_ended_key, reverse=True):
        holder = standing.get(_latest(fact.id, after)) or places.get(_address(fact))
        if holder is not None:
            holder.earlier.append(fact)
        else:
            _topic_of(about, fact).past.append(fact)
    rank = {category: number for number, category in enumerate(order)}
    return [
        SubjectFacts(
            name,
            sorted(topics.values(), key=lambda topic: (rank.get(topic.category, len(rank)), topic.category)),
            labels.get(name, name),
        )
        for name, topics in sorted(about.items(), key=lambda item: (item[0] != SELF, item[0]))
    ]


def facts_page(subjects: Sequence[SubjectFacts], request: Request) -> dict[str, Any]:
    """Return the facts of one page, by the number of the first one in the address, and the addresses beside it."""
    active = sum(len(topic.beliefs) for subject in subjects for topic in subject.topics)
    begin = min(query_number(request, "from") or 0, max(0, active - 1) // MOST_FACTS * MOST_FACTS)
    left, at, shown = MOST_FACTS, 0, []
    for subject in subjects:
        topics = []
        for topic in subject.topics:
            found = topic.beliefs[max(0, begin - at) :][:left]
            here_ends = begin <= at <= begin + MOST_FACTS and (left or at == active)
            past = topic.past if found or (not topic.beliefs and here_ends) else []
            at, left = at + len(topic.beliefs), left - len(found)
            if found or past:
                topics.append(FactTopic(topic.category, found, past))
        if topics:
            shown.append(SubjectFacts(subject.name, topics, subject.label))
    return {
        "subjects": shown,
        "facts_before": here(request, **{"from": max(0, begin - MOST_FACTS) or None}) if begin else None,
        "facts_after": here(request, **{"from": begin + MOST_FACTS}) if at > begin + MOST_FACTS else None,
        "most_earlier": MOST_EARLIER,
    }


def _topic_of(subjects: dict[str, dict[str, FactTopic]], fact: Fact) -> FactTopic:
    category = fact.category if fact.kind == "attribute" else fact.category or fact.kind
    return subjects[fact.subject].setdefault(category, FactTopic(category))


def _address(fact: Fact) -> tuple[str, str, str, str]:
    """Return the address at which only one fact can be active; a sentence has its own."""
    if fact.kind != "attribute":
        return (fact.only_in, fact.subject, fact.category, fact.id)
    return (fact.only_in, fact.subject, fact.category, "" if fact.cardinality == "exclusive" else fact.key)


def _latest(fact_id: str, after: dict[str, str]) -> str:
    seen = set()
    while fact_id in after and fact_id not in seen:
        seen.add(fact_id)
        fact_id = after[fact_id]
    return fact_id


def _ended_key(fact: Fact) -> tuple[datetime, datetime, str]:
    return (fact.valid_to or fact.recorded_at, fact.recorded_at, fact.id)
