"""From a request to the doors it may use: the only place where the server opens somebody's memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Header, Path, Query, Request

from ..conversation import Conversation
from ..errors import BadInput
from ..memory import Memory
from ..user import User
from .gate import Grant
from .tasks import Tasks

Bot = Annotated[str, Query(alias="bot", description="The assistant whose memory it is.")]
Subject = Annotated[str | None, Query(alias="subject", description="Whom or what it is about, when not the user.")]
Org = Annotated[
    str | None, Header(alias="X-Holdfast-Org", description="The tenant, for operators; else that of the key.")
]
UserName = Annotated[str, Path(description="Whose memory it is.")]
ConversationName = Annotated[str, Path(description="The conversation's id.")]
Cursor = Annotated[str | None, Query(description="`next_cursor` of the page before.")]
Limit = Annotated[int, Query(ge=1, le=1_000, description="At most so many.")]
Once = Annotated[
    str | None,
    Header(alias="Idempotency-Key", min_length=1, max_length=200, description="The same key does it once."),
]
Incognito = Annotated[bool, Query(description="Nothing is stored, learned or taken from memory.")]


@dataclass(frozen=True, slots=True)
class Caller:
    """A request that passed the gate."""

    memory: Memory
    grant: Grant

    def user(self) -> User:
        """The user that the path names and the key allows."""
        grant = self.grant
        if grant.user is None:
            raise BadInput("the path names no user")
        return self.memory.user(grant.user, org=grant.org, bot=grant.bot, subject=grant.subject)

    def conversation(self, name: str, *, incognito: bool = False) -> Conversation:
        """A conversation of that user."""
        grant = self.grant
        if grant.user is None:
            raise BadInput("the path names no user")
        return self.memory.conversation(
            name, user=grant.user, org=grant.org, bot=grant.bot, subject=grant.subject, incognito=incognito
        )


async def caller(request: Request) -> Caller:
    """Who asks; the gate has put the grant there."""
    return Caller(request.app.state.memory, request.state.grant)


async def _named(_org: Org = None, _bot: Bot = "default", _subject: Subject = None) -> None:
    """Nothing: the gate has read these; here they are told to the document of the API."""


Asked = Annotated[Caller, Depends(caller)]
NAMED = [Depends(_named)]


async def _user(asked: Asked, user: UserName) -> User:
    return asked.user()


async def _conversation(
    asked: Asked, user: UserName, conversation: ConversationName, incognito: Incognito = False
) -> Conversation:
    return asked.conversation(conversation, incognito=incognito)


async def tasks_of(request: Request) -> Tasks:
    """The long work of this server."""
    found: Tasks = request.app.state.tasks
    return found


Whose = Annotated[User, Depends(_user)]
Which = Annotated[Conversation, Depends(_conversation)]
Working = Annotated[Tasks, Depends(tasks_of)]
