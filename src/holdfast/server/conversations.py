"""``/v1/users/{user}/conversations``: messages, contexts, summaries, episodes."""

from __future__ import annotations

from typing import Annotated

from fastapi import Header, Path, Query

from ..context.result import Context
from ..reports import ErasureReceipt, Receipt
from ..types import Fact, Message, Summary
from .caller import NAMED, Cursor, Limit, Which, Whose
from .routing import APP, PERSON, USER, Table
from .shapes import ContextFor, Messages, Page, Wording, first_of, page

table = Table()
BASE = "/v1/users/{user:name}/conversations"
ONE = BASE + "/{conversation:name}"
Seq = Annotated[int, Path(ge=1, le=2**53, description="The message's number, from 1.")]
Key = Annotated[str | None, Header(alias="Idempotency-Key", max_length=200, description="The same key stores once.")]


@table.add("GET", BASE, PERSON, response_model=Page[str], dependencies=NAMED)
def conversations_list(whose: Whose, cursor: Cursor = None, limit: Limit = 100) -> Page[str]:
    """The ids of the user's conversations, by name."""
    return page(whose.conversations(), lambda name: name, cursor, limit)


@table.add("POST", ONE + "/messages", APP, response_model=Receipt, status_code=201, dependencies=NAMED)
def messages_append(which: Which, body: Messages, idempotency_key: Key = None) -> Receipt:
    """Store messages, durably and in order; what they change in what is believed is told."""
    given = [message.model_dump(exclude_unset=True) for message in body.messages]
    return which.append(given, idempotency_key=idempotency_key)


@table.add("GET", ONE + "/messages", PERSON, response_model=Page[Message], dependencies=NAMED)
def messages_list(which: Which, cursor: Cursor = None, limit: Limit = 100) -> Page[Message]:
    """The messages as they were stored, oldest first."""
    start = first_of(cursor)
    found = which.load(start_seq=start, limit=limit + 1)
    return Page(data=found[:limit], next_cursor=str(found[limit].seq) if len(found) > limit else None)


@table.add("PATCH", ONE + "/messages/{seq}", USER, response_model=ErasureReceipt, dependencies=NAMED)
def messages_edit(which: Which, seq: Seq, body: Wording) -> ErasureReceipt:
    """Put other words in place of a message; what was learned from the old ones goes, the new ones are read."""
    return which.edit(seq, body.content)


@table.add("DELETE", ONE + "/messages/{seq}", USER, response_model=ErasureReceipt, dependencies=NAMED)
def messages_forget(which: Which, seq: Seq) -> ErasureReceipt:
    """Erase one message and what rested only on it; its number stays, empty."""
    return which.forget(seq)


@table.add("POST", ONE + "/context", APP, response_model=Context, dependencies=NAMED)
def context_build(which: Which, body: ContextFor) -> Context:
    """What the model should see now, within a budget."""
    return which.context(body.query, budget_tokens=body.budget_tokens, system=body.system)


@table.add("GET", ONE + "/summaries", PERSON, response_model=list[Summary], dependencies=NAMED)
def summaries_list(
    which: Which, level: Annotated[int | None, Query(ge=1, le=64)] = None, live: bool = True
) -> list[Summary]:
    """Its summaries by range; with `live=false` older versions, too."""
    return which.summaries(level, live=live)


@table.add("GET", ONE + "/episodes", PERSON, response_model=list[Fact], dependencies=NAMED)
def episodes_list(which: Which) -> list[Fact]:
    """What happened, as it was told in this conversation, by range."""
    return which.episodes()


@table.add("POST", ONE + "/end", APP, status_code=204, dependencies=NAMED)
def conversations_end(which: Which) -> None:
    """The conversation is over for now: its rest can be summarised."""
    which.end()


@table.add("DELETE", ONE, USER, response_model=ErasureReceipt, dependencies=NAMED)
def conversations_clear(which: Which) -> ErasureReceipt:
    """Erase the conversation and all that rested only on it."""
    return which.clear()
