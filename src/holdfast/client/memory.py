"""The front door on a server: `Client`, with the doors behind it."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from types import TracebackType
from typing import Any

import httpx2

from ..context.layered import Strategy
from ..errors import BadInput
from ..reports import BackfillReport, DigestReport, Metrics, Report, StoreStats, Usage, UserKey
from ..scope import checked_name
from ..types import ApiKey, Job, NewKey, Role
from .calls import OWN, RAW, Call, Whose, part
from .conversation import Chat, Conversation
from .errors import NotAllowed
from .following import Following
from .user import Prompts, User
from .wire import Wire

__all__ = ["Admin", "ApiKeys", "Client", "Conversation", "Prompts", "User"]

DIGEST_S = 50.0


class Client:
    """
    The memory of a chatbot, on a server that `holdfast serve` started.

        memory = Client("http://127.0.0.1:7800", key="hf_…")
        chat = memory.conversation("web-42", user="alice")

    It has the calls of `holdfast.Memory`, which give the same values and raise the same errors.  What the key may not do
    raises `NotAllowed`.  An ``org`` or ``bot`` of ``"default"`` stands for the key's own.  Safe to use from several threads.
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
        Nothing is asked yet.

        Args:
            url: where the server answers.
            key: a key that `holdfast keys` or `ApiKeys.create` made.
            timeout_s: how long an answer may take.
            retries: how often a request that got no answer, or was told to come again, is sent once more; only where
                that does nothing twice.
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

    def conversation(
        self,
        id: str | None = None,
        *,
        user: str,
        org: str = "default",
        bot: str = "default",
        subject: str | None = None,
        strategy: Strategy | None = None,
        incognito: bool = False,
    ) -> Conversation:
        """One conversation of one user; see `holdfast.Memory.conversation`."""
        name = secrets.token_hex(8) if id is None else checked_name("conversation id", id)
        return Conversation(self._wire, Chat(whose_of(org, bot, user, subject), name, incognito), strategy)

    def user(self, user: str, *, org: str = "default", bot: str = "default", subject: str | None = None) -> User:
        """What is held about one user; see `holdfast.Memory.user`."""
        return User(self._wire, whose_of(org, bot, user, subject))

    def import_(self, data: Mapping[str, Any]) -> User:
        """Take back what `User.export` returned, into the user that it names; see `holdfast.Memory.import_`."""
        if not isinstance(data, Mapping):
            raise BadInput("this is not the export of a user", hint="pass what export() returned")
        named = {name: checked_name(name, data.get(name)) for name in ("user", "org", "bot")}
        self._wire.do(Call("POST", "/v1/import", RAW, body=dict(data), org=named["org"]))
        return User(self._wire, whose_of(named["org"], named["bot"], named["user"], None))

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

        The server does it as a job, and this waits for it; ``progress`` is told how many ranges were ``processed``.
        Everybody's conversations (no *user*) are for operators.
        """
        body = {"layers": list(layers), "limit": limit, "delay_ms": delay_ms, "dry_run": dry_run}
        path = "/v1/backfill" if user is None else whose_of(org, bot, user, None).order("POST", "/backfill").path
        whose = {"bot": bot} if user is not None and bot != OWN else {}
        if dry_run:
            return self._wire.send(Call("POST", path, BackfillReport, query=whose, body=body, org=org, again=True))
        order = Call("POST", path, RAW, query=whose, body=body, org=org, once=secrets.token_hex(12))
        told = None if progress is None else processed(progress)
        return self._wire.finish(order, BackfillReport, told)

    def jobs(self, state: str | None = None) -> list[Job]:
        """Background work that is not finished, oldest first; for operators."""
        if state not in (None, "ready", "waiting", "running", "dead", "cancelled"):
            raise BadInput(f"there is no job state {state!r}", hint="use ready, waiting, running, dead or cancelled")
        return self._wire.pages(Call("GET", "/v1/jobs", RAW, query={"state": state}), Job)

    def retry(self, job_id: str) -> None:
        """Make a dead or cancelled job ready again; for operators."""
        self._wire.do(Call("POST", f"/v1/jobs/{part(job_id)}/retry", RAW))

    def run_now(self, job_id: str) -> None:
        """Make a job due at once that is waiting for a later time; for operators."""
        self._wire.do(Call("POST", f"/v1/jobs/{part(job_id)}/run", RAW, again=True))

    def cancel(self, job_id: str) -> None:
        """Keep a job from running; what it already wrote stays."""
        self._wire.do(Call("POST", f"/v1/jobs/{part(job_id)}/cancel", RAW))

    def usage(
        self,
        *,
        by: Sequence[str] = ("layer", "model"),
        since: date | None = None,
        until: date | None = None,
        org: str | None = None,
        user: str | None = None,
        bot: str | None = None,
    ) -> list[Usage]:
        """What models were used for, and what it cost; for operators.  See `holdfast.Memory.usage`."""
        query = {"by": list(by) or ["none"], "since": since, "until": until, "org": org, "user": user, "bot": bot}
        return self._wire.pages(Call("GET", "/v1/usage", RAW, query=query), Usage)

    def doctor(self) -> Report:
        """Check every invariant of the store; for operators."""
        return self._wire.send(Call("GET", "/v1/doctor", Report))

    @property
    def admin(self) -> Admin:
        """What only operators need: keys, metrics, figures of the store, users."""
        return Admin(self._wire)

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
        What happens to one user, as it happens and whoever does it, to iterate over; it ends when you leave the loop.

        A connection that was lost is made again without a gap or a repetition.  An event of the kind ``reset`` says that
        something in between is not on record any more: look at everything anew.

        Args:
            user: whose memory; ``org``, ``bot`` and ``subject`` as everywhere.
            org: the tenant.
            bot: the assistant.
            subject: only what concerns it.
            conversation: only this one, and what concerns the user as a whole.
            after: the number of the last event that you know; else what comes from now on.
            follow: ``False``: end after what has happened so far.

        Raises, when it is iterated over:
            NotAllowed: the key does not open this, or not any more.
            Unreachable: nobody answered, several times.
        """
        query = {"conversation": conversation, "after": after, "follow": "true" if follow else "false"}
        call = whose_of(org, bot, user, subject).order("GET", "/events", query=query)
        return Following(self._wire, call, after, follow=follow)

    def close(self) -> None:
        """Let go of the connections; the memory stays where it is."""
        self._wire.close()


class Admin:
    """What only operators need, across users; from `Client.admin`."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    @property
    def keys(self) -> ApiKeys:
        """The API keys of those who ask over the network."""
        return ApiKeys(self._wire)

    def users(self, *, limit: int = 1000, after: UserKey | None = None) -> list[UserKey]:
        """``(org, user, bot)`` of everybody with a memory, by key; for operators."""
        query = {} if after is None else {"after": list(after)}
        found = self._wire.pages(Call("GET", "/v1/users", RAW, query=query), RAW, limit)
        return [(one["org"], one["user"], one["bot"]) for one in found]

    def metrics(
        self,
        *,
        org: str | None = None,
        bot: str | None = None,
        since: date | None = None,
        until: date | None = None,
        most_users: int = 1_000,
    ) -> Metrics:
        """How well memory serves, counted from what is stored; for operators.  See `holdfast.Admin.metrics`."""
        query = {"org": org, "bot": bot, "since": since, "until": until, "most_users": most_users}
        return self._wire.send(Call("GET", "/v1/metrics", Metrics, query=query))

    def stats(self) -> StoreStats:
        """Where the store is, how large, and how many rows it has of each kind; for operators."""
        return self._wire.send(Call("GET", "/v1/stats", StoreStats))


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
        """Make a key; it is shown once.  A request whose answer is lost may have made one that nobody knows: list them."""
        until = datetime.now(UTC) + expires_at if isinstance(expires_at, timedelta) else expires_at
        body: dict[str, Any] = {"role": role, "user": user, "bot": bot, "subject": subject, "name": name}
        body["expires_at"] = None if until is None else until.isoformat()
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
        """Whose key it is; ``None`` for one that was never made, was revoked, or expired."""
        if not key.isascii() or not key.isprintable() or not key.strip():
            return None
        try:
            return self._wire.send(Call("GET", "/v1/whoami", ApiKey, key=key))
        except NotAllowed:
            return None


def whose_of(org: str, bot: str, user: str, subject: str | None) -> Whose:
    return Whose(
        org=checked_name("org", org),
        bot=checked_name("bot", bot),
        user=checked_name("user", user),
        subject=None if subject is None else checked_name("subject", subject),
    )


def processed(progress: Callable[[BackfillReport], None]) -> Callable[[int, int], None]:
    return lambda done, _total: progress(BackfillReport(processed=done))
