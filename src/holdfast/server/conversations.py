"""``/v1/users/{user}/conversations``: messages, contexts, summaries, episodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import Path, Query, Request
from starlette.responses import Response

from ..clock import from_ms, to_ms
from ..context.result import Context
from ..conversation import Conversation, FactPosition
from ..errors import NotFound
from ..integrations.agents.hooks import handle_event, read_event
from ..reports import ConversationState, ErasureReceipt, Receipt, SentContext
from ..scope import SELF
from ..types import Fact, Hit, Message, Summary
from ..user import User
from .gate import Grant, Quotas, quota_exceeded
from .routing import APP, USER, WHOLE_USER, RouteTable, UserName
from .schemas import (
    ContextRequest,
    ConversationDep,
    Cursor,
    HookAnswer,
    HookRequest,
    IdempotencyKey,
    Limit,
    Messages,
    ModelUse,
    NewContent,
    NewRating,
    Page,
    RecallRequest,
    ReplyRequest,
    UserDep,
    page_of,
    parse_position,
    parse_seq_cursor,
)

table = RouteTable()
BASE = "/v1/users/{user:name}/conversations"
ONE = BASE + "/{conversation:name}"
Seq = Annotated[int, Path(ge=1, le=2**53, description="The message's number, from 1.")]


@table.add("GET", BASE, USER, door=User.conversations)
def conversations_list(user: UserDep, cursor: Cursor = None, limit: Limit = 100) -> Page[str]:
    """List the ids of the user's conversations, by name."""
    after = parse_position(cursor, str)
    return page_of(user.conversations(limit=limit + 1, after=after and after[0]), limit, lambda name: [name])


@table.add("GET", "/v1/users/{user:name}/overview", USER, door=User.overview)
def conversations_overview(user: UserDep, cursor: Cursor = None, limit: Limit = 100) -> Page[ConversationState]:
    """List the states of the user's conversations, the newest first."""
    after = parse_position(cursor, int, str, str)
    position = None if after is None else (from_ms(after[0]), after[1], after[2])
    return page_of(user.overview(limit=limit + 1, after=position), limit, _last_message)


@table.add("GET", ONE, USER, door=Conversation.state)
def conversations_get(chat: ConversationDep) -> ConversationState:
    """Return the state of the conversation."""
    state = chat.state()
    if state is None:
        raise NotFound(f"there is no conversation {chat.id!r} here", hint="it begins with its first message")
    return state


@table.add("POST", ONE + "/messages", APP, response_model=Receipt, status_code=201)
def messages_append(
    request: Request, chat: ConversationDep, body: Messages, idempotency_key: IdempotencyKey = None
) -> Receipt | Response:
    """Store messages, durably and in order; returns the facts that changed."""
    quotas: Quotas = request.app.state.quotas
    key, wanted = request.state.key, len(body.messages)
    with quotas.counting(key, wanted) as wait_s:
        if wait_s:
            return quota_exceeded(wait_s)
        given = [message.model_dump(exclude_unset=True) for message in body.messages]
        receipt = chat.append(given, idempotency_key=idempotency_key, after=body.after)
    quotas.give_back(key, wanted - (0 if receipt.duplicate else len(receipt.seqs)))
    return receipt


@table.add("POST", "/v1/users/{user:name}/hooks", APP, response_model=HookAnswer)
def hooks_answer(request: Request, user: UserName, body: HookRequest) -> HookAnswer | Response:
    """Store the event of a coding agent's hook, once, and return what the agent shall be told."""
    event = read_event(body.event, {})
    if event is None:
        return HookAnswer(answer=None)
    grant: Grant = request.state.grant
    quotas: Quotas = request.app.state.quotas
    with quotas.counting(request.state.key, 1) as wait_s:
        if wait_s:
            return quota_exceeded(wait_s)
        answer = handle_event(
            request.app.state.memory,
            event,
            user=user,
            org=grant.org,
            bot=grant.bot,
            budget_tokens=body.budget_tokens,
            project_of_event=(body.project, body.project_name),
            digests=False,
        )
    return HookAnswer(answer=answer)


@table.add("GET", ONE + "/messages", USER, door=Conversation.load)
def messages_list(
    chat: ConversationDep,
    start_seq: Annotated[int, Query(ge=1, le=2**53, description="The first message wanted.")] = 1,
    last: Annotated[int | None, Query(ge=1, le=2**53, description="Only among the last so many.")] = None,
    abandoned: Annotated[bool, Query(description="Those of branches that were left behind, too.")] = False,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Page[Message]:
    """List the messages as they were stored, oldest first."""
    start = start_seq if cursor is None else parse_seq_cursor(cursor)
    found = chat.load(start_seq=start, limit=limit + 1, last=last, abandoned=abandoned)
    return Page(data=found[:limit], next_cursor=str(found[limit].seq) if len(found) > limit else None)


@table.add("PATCH", ONE + "/messages/{seq}", WHOLE_USER, door=Conversation.edit, repeatable=True)
def messages_edit(chat: ConversationDep, seq: Seq, body: NewContent) -> ErasureReceipt:
    """Replace the content of a message; what was learned from the old content goes, the new one is read."""
    return chat.edit(seq, body.content)


@table.add("DELETE", ONE + "/messages/{seq}", WHOLE_USER, door=Conversation.forget)
def messages_forget(chat: ConversationDep, seq: Seq) -> ErasureReceipt:
    """Erase one message and what rested only on it; its number stays, empty."""
    return chat.forget(seq)


@table.add("PUT", ONE + "/rating", USER, door=Conversation.rate, repeatable=True)
def messages_rate(chat: ConversationDep, body: NewRating) -> Message:
    """Store what the user thought of a reply, which counts as satisfaction."""
    return chat.rate(body.score, seq=body.seq)


@table.add("POST", ONE + "/context", APP, door=Conversation.context, repeatable=True)
def context_build(chat: ConversationDep, body: ContextRequest) -> Context:
    """Build the context that the model should see now, within a budget."""
    options = {"budget_tokens": body.budget_tokens, "strategy": body.chosen, "system": body.system}
    return chat.context(body.query, **options, note=body.note, general=body.general)  # type: ignore[arg-type]


@table.add("POST", ONE + "/reply", APP, door=Conversation.reply)
def messages_reply(chat: ConversationDep, body: ReplyRequest) -> Message:
    """Ask the memory's own model for a reply to the user's words, with their context, and store both."""
    return chat.reply(body.text, system=body.system)


@table.add("GET", ONE + "/sent", APP, door=Conversation.sent)
def context_sent(chat: ConversationDep, seq: Annotated[int | None, Query(ge=1, le=2**53)] = None) -> SentContext | None:
    """Return what was sent to the model for a reply, by reference, with the difference to the reply before."""
    return chat.sent(seq)


@table.add("POST", ONE + "/recall", USER, door=Conversation.recall, repeatable=True)
def messages_recall(chat: ConversationDep, body: RecallRequest) -> list[Hit]:
    """Find the nearest among the last messages, best first."""
    return chat.recall(body.query, last=body.last, limit=body.limit)


@table.add("GET", ONE + "/summaries", USER, door=Conversation.summaries)
def summaries_list(
    chat: ConversationDep,
    level: Annotated[int | None, Query(ge=1, le=64)] = None,
    live: bool = True,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Page[Summary]:
    """List the summaries by range; with `live=false` older versions, too."""
    found = chat.summaries(level, live=live, limit=limit + 1, after=parse_position(cursor, int, int, int, str))
    return page_of(found, limit, lambda one: (one.start_seq, one.level, one.version, one.id))


@table.add("GET", ONE + "/episodes", USER, door=Conversation.episodes)
def episodes_list(
    chat: ConversationDep,
    start_seq: Annotated[int, Query(ge=1, le=2**53)] = 1,
    end_seq: Annotated[int | None, Query(ge=1, le=2**53)] = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Page[Fact]:
    """List what happened, as told in this conversation, by range."""
    found = chat.episodes(start_seq=start_seq, end_seq=end_seq, limit=limit + 1, after=_said(cursor))
    return page_of(found, limit, _said_first(chat, start_seq))


@table.add("POST", ONE + "/usage", APP, door=Conversation.record_usage, status_code=204)
def usage_record(chat: ConversationDep, body: ModelUse) -> None:
    """Count what your own model used for a reply, in the usage as `chat` and in the budgets."""
    chat.record_usage(**body.model_dump())


@table.add("GET", ONE + "/learned", USER, door=Conversation.learned)
def facts_learned(
    chat: ConversationDep,
    start_seq: Annotated[int, Query(ge=1, le=2**53)] = 1,
    end_seq: Annotated[int | None, Query(ge=1, le=2**53)] = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Page[Fact]:
    """List facts, live and past, that rest on messages of this conversation, by where they were first said in it."""
    found = chat.learned(start_seq=start_seq, end_seq=end_seq, limit=limit + 1, after=_said(cursor))
    return page_of(found, limit, _said_first(chat, start_seq))


def _said(cursor: str | None) -> FactPosition | None:
    """Return the position in the cursor of a list of facts of a conversation."""
    after = parse_position(cursor, int, int, str)
    return None if after is None else (after[0], from_ms(after[1]), after[2])


def _said_first(chat: Conversation, start_seq: int = 1) -> Callable[[Fact], tuple[int, int, str]]:
    """Return the function from a fact to its position in such a list."""
    state = chat.state()
    home = state.subject if state else SELF

    def position(fact: Fact) -> tuple[int, int, str]:
        said = [e.seq for e in fact.evidence if e.conversation == chat.id and e.home == home and e.seq >= start_seq]
        return min(said), to_ms(fact.recorded_at), fact.id

    return position


@table.add("POST", ONE + "/end", APP, door=Conversation.end, repeatable=True, status_code=204)
def conversations_end(chat: ConversationDep) -> None:
    """End the conversation for now, so that its rest can be summarized."""
    chat.end()


@table.add("DELETE", ONE, WHOLE_USER, door=Conversation.clear, repeatable=True)
def conversations_clear(chat: ConversationDep) -> ErasureReceipt:
    """Erase the conversation and all that rested only on it."""
    return chat.clear()


def _last_message(state: ConversationState) -> tuple[int, str, str]:
    return to_ms(state.last_at), state.conversation, state.subject
