"""
The calls of the client that `make_client.py` cannot write from a door and its route.  Never imported.

Each class is completed with the calls of its door in ``holdfast``, in that door's order.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any

import httpx2

from ..clock import utc_now
from ..context.assemble import Strategy
from ..context.classic import strategy_text
from ..errors import BadInput
from ..integrations.calls.strategies import KINDS
from ..reports import BackfillReport, DigestReport, Receipt, UserKey, UserOrder
from ..scope import checked_name
from ..text.validate import MessageLike, checked_messages
from ..types import ApiKey, Message, NewKey, Role
from .calls import (
    OWN,
    RAW,
    Call,
    ConversationScope,
    NotAllowed,
    UserScope,
    idempotency_key_of,
    message_body,
    part,
    processed,
    user_scope,
)
from .wire import Following, Wire

DIGEST_S = 50.0


class Client:
    """
    The memory of a chatbot, on a server that `holdfast serve` started.

        memory = Client("http://127.0.0.1:7800", key="hf_…")
        chat = memory.conversation("web-42", user="alice")

    It has the calls of `holdfast.Memory`, which give the same values and raise the same errors.  What the key may not do
    raises `NotAllowed`.  An ``org`` or ``bot`` of ``"default"`` means that of the key.  Safe to use from several threads.
    """

    def __init__(
        self,
        url: str,
        *,
        key: str,
        timeout_s: float = 30.0,
        retries: int = 2,
        http: httpx2.Client | None = None,
    ) -> None:
        """
        Send nothing yet.

        Args:
            url: where the server answers.
            key: a key that `holdfast keys` or `ApiKeys.create` made.
            timeout_s: how long an answer may take.
            retries: how often a request that got no answer, or that the server asked to repeat, is sent once more; only
                where that does nothing twice.
            http: your own `httpx2.Client`, for proxies, certificates, tests; you close it.

        Raises:
            BadInput: the address or the key cannot be used.
        """
        if not isinstance(key, str) or not key.isascii() or not key.isprintable() or not key.strip():
            raise BadInput("a key is text that `holdfast keys` printed", hint="it begins with hf_")
        self._wire = Wire(url, key.strip(), timeout_s=timeout_s, retries=retries, http=http)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self._wire.url!r})"

    @property
    def admin(self) -> Admin:
        """The calls for operators: keys, metrics, figures of the store, users."""
        return Admin(self._wire)

    def conversation(
        self,
        id: str | None = None,
        *,
        user: str,
        org: str = "default",
        bot: str = "default",
        subject: str | None = None,
        strategy: Strategy | str | None = None,
        incognito: bool = False,
        own_facts: bool | None = None,
    ) -> Conversation:
        """Open one conversation of one user; see `holdfast.Memory.conversation`."""
        name = secrets.token_hex(8) if id is None else checked_name("conversation id", id)
        of, chosen = user_scope(org, bot, user, subject), strategy_text(strategy, KINDS)
        return Conversation(self._wire, ConversationScope(of, name, incognito, own_facts, chosen))

    def user(self, user: str, *, org: str = "default", bot: str = "default", subject: str | None = None) -> User:
        """Open what is held about one user; see `holdfast.Memory.user`."""
        return User(self._wire, user_scope(org, bot, user, subject))

    def import_(self, data: Mapping[str, Any]) -> User:
        """Take back what `User.export` returned, into the user that it names; see `holdfast.Memory.import_`."""
        if not isinstance(data, Mapping):
            raise BadInput("this is not the export of a user", hint="pass what export() returned")
        named = {name: checked_name(name, data.get(name)) for name in ("user", "org", "bot")}
        self._wire.do(Call("POST", "/v1/import", RAW, body=dict(data), org=named["org"]))
        return User(self._wire, user_scope(named["org"], named["bot"], named["user"], None))

    def digest(self, timeout_s: float | None = None) -> DigestReport:
        """Run all background work that is due now, on the server; for operators."""
        report, left_s = DigestReport(), timeout_s
        while left_s is None or left_s > 0:
            step_s = DIGEST_S if left_s is None else min(DIGEST_S, left_s)
            query = {"timeout_s": step_s}
            done = self._wire.send(Call("POST", "/v1/digest", DigestReport, query=query, again=True, wait_s=step_s))
            report += done
            left_s = None if left_s is None else left_s - step_s
            if not done.jobs:
                break
        return report

    def backfill(
        self,
        user: str | None = None,
        *,
        org: str = "default",
        bot: str = "default",
        layers: Sequence[str] = ("summaries", "episodes", "facts", "meta"),
        limit: int | None = None,
        delay_ms: int | None = None,
        dry_run: bool = False,
        progress: Callable[[BackfillReport], None] | None = None,
    ) -> BackfillReport:
        """
        Bring old conversations up to what the server makes; see `holdfast.Memory.backfill`.

        The server does it as a job, and this waits for it; ``progress`` is called with how many ranges were ``processed``.
        The conversations of all users (no *user*) are for operators.
        """
        body = {"layers": layers, "limit": limit, "delay_ms": delay_ms, "dry_run": dry_run}
        path = "/v1/backfill" if user is None else user_scope(org, bot, user, None).path + "/backfill"
        query = {"bot": bot} if user is not None and bot != OWN else {}
        if dry_run:
            return self._wire.send(Call("POST", path, BackfillReport, query=query, body=body, org=org, again=True))
        order = Call("POST", path, RAW, query=query, body=body, org=org, once=secrets.token_hex(12))
        return self._wire.finish(order, BackfillReport, None if progress is None else processed(progress))

    def events(
        self,
        user: str,
        *,
        org: str = "default",
        bot: str = "default",
        subject: str | None = None,
        conversation: str | None = None,
        after: int | None = None,
        follow: bool = True,
    ) -> Following:
        """
        Follow what happens to one user, as it happens and whoever does it; iterate over it, and leave the loop to end it.

        A connection that was lost is made again without a gap or a repetition.  An event of the kind ``reset`` says that
        something in between is not on record any more: look at everything anew.

        Args:
            user: the user; ``org``, ``bot`` and ``subject`` as everywhere.
            org: the tenant.
            bot: the assistant.
            subject: only what concerns it.
            conversation: only this one, and what concerns the user as a whole.
            after: the number of the last event that you know; else what comes from now on.
            follow: ``False``: end after what has happened so far.

        Raises, when it is iterated over:
            NotAllowed: the key does not open this, or not any more.
            Unreachable: no answer came, several times.
        """
        query = {"conversation": conversation, "after": after, "follow": "true" if follow else "false"}
        call = user_scope(org, bot, user, subject).call("GET", "/events", RAW, query=query)
        return Following(self._wire, call, after, follow=follow)

    def close(self) -> None:
        """Let go of the connections; the memory stays where it is."""
        self._wire.close()


class Conversation:
    """One conversation on a server; made by `Client.conversation`.  See `holdfast.Conversation`."""

    def __init__(self, wire: Wire, scope: ConversationScope) -> None:
        self._wire = wire
        self._scope = scope

    def __repr__(self) -> str:
        return f"Conversation({self.id!r}, user={self._scope.of.user!r})"

    @property
    def id(self) -> str:
        """Its name, given or made."""
        return self._scope.id

    def append(
        self,
        message_or_messages: MessageLike | Sequence[MessageLike],
        *,
        idempotency_key: str | None = None,
        after: int | None = None,
    ) -> Receipt:
        """
        Store one message or a list of them; see `holdfast.Conversation.append`.

        Without a key the client makes one, so that a request whose answer was lost is sent again and stored once.
        """
        given = checked_messages(message_or_messages, now=utc_now(), max_chars=sys.maxsize)
        body: dict[str, Any] = {"messages": [message_body(message, dated=dated) for message, dated in given]}
        if after is not None:
            body["after"] = after
        once = idempotency_key_of(idempotency_key)
        return self._wire.send(self._scope.call("POST", "/messages", Receipt, body=body, once=once))

    def record(
        self,
        user_text: str,
        assistant_text: str | None = None,
        *,
        at: datetime | None = None,
        idempotency_key: str | None = None,
    ) -> Receipt:
        """Store one exchange: what the user said and, if there is one, the reply."""
        messages = [Message("user", user_text, at=at)]
        if assistant_text is not None:
            messages.append(Message("assistant", assistant_text, at=at))
        return self.append(messages, idempotency_key=idempotency_key)


class User:
    """The memory of one user on a server; made by `Client.user`.  See `holdfast.User`."""

    def __init__(self, wire: Wire, scope: UserScope) -> None:
        self._wire = wire
        self._scope = scope

    def __repr__(self) -> str:
        return f"User({self._scope.user!r})"

    @property
    def prompts(self) -> Prompts:
        """The prompts for this user: get, set, reset, versions."""
        return Prompts(self._wire, self._scope)


class Prompts:
    """The prompts for one user; see `holdfast.Prompts`."""

    def __init__(self, wire: Wire, scope: UserScope) -> None:
        self._wire = wire
        self._scope = scope

    def __repr__(self) -> str:
        return f"Prompts({self._scope.user!r})"


class Admin:
    """The calls for operators, across users; from `Client.admin`."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    @property
    def keys(self) -> ApiKeys:
        """The API keys of those who ask over the network."""
        return ApiKeys(self._wire)

    def users(
        self,
        *,
        limit: int = 1000,
        after: UserKey | None = None,
        matching: str = "",
        sort: UserOrder = "name",
        skip: int = 0,
        org: str | None = None,
    ) -> list[UserKey]:
        """
        Return ``(org, user, bot)`` of users with a memory, for operators; see `holdfast.Admin.users`.

        In another order than by name at most 1,000 come at once; *skip* goes on.
        """
        wanted = {"matching": matching, "sort": sort, "skip": skip, "org": org}
        query: dict[str, Any] = {name: value for name, value in wanted.items() if value not in ("", "name", 0, None)}
        query |= {} if after is None else {"after": list(after)}
        found = self._wire.pages(Call("GET", "/v1/users", RAW, query=query), RAW, limit)
        return [(one["org"], one["user"], one["bot"]) for one in found]


class ApiKeys:
    """The API keys of those who ask over the network; for operators.  See `holdfast.ApiKeys`."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def create(
        self,
        role: Role,
        *,
        org: str = "default",
        user: str | None = None,
        bot: str | None = None,
        subject: str | None = None,
        name: str = "",
        expires_at: datetime | timedelta | None = None,
    ) -> NewKey:
        """Make a key; it is shown once.  When the answer is lost, the key may exist: `list` shows it."""
        until = datetime.now(UTC) + expires_at if isinstance(expires_at, timedelta) else expires_at
        body = {"role": role, "user": user, "bot": bot, "subject": subject, "name": name, "expires_at": until}
        return self._wire.send(Call("POST", "/v1/keys", NewKey, body=body, org=org))

    def list(self, org: str | None = None) -> list[ApiKey]:
        """Return the keys of an org, or of all, oldest first."""
        query = {"all_orgs": org is None}
        return self._wire.pages(Call("GET", "/v1/keys", RAW, query=query, org=org or OWN), ApiKey)

    def revoke(self, key_id: str, *, org: str | None = None) -> None:
        """End a key, at once and in every process."""
        query = {"all_orgs": org is None}
        self._wire.do(Call("DELETE", f"/v1/keys/{part(key_id)}", RAW, query=query, org=org or OWN))

    def check(self, key: str) -> ApiKey | None:
        """Return what the key opens; ``None`` for one that was never made, was revoked, or expired."""
        if not key.isascii() or not key.isprintable() or not key.strip():
            return None
        try:
            return self._wire.send(Call("GET", "/v1/whoami", ApiKey, key=key))
        except NotAllowed:
            return None
