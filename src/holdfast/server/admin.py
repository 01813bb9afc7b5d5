"""Keys, jobs, usage, health: what operators and apps need besides users's memory."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any, Literal

from fastapi import Path, Query, Request
from starlette.exceptions import HTTPException

from ..admin import Admin
from ..clock import to_ms
from ..errors import BadInput, NotFound
from ..memory import Memory
from ..reports import DigestReport, Metrics, Report, StoreStats, Usage
from ..types import ApiKey, Budget, Job, NewKey, ProviderKey, Secret
from .gate import count_messages, quota_exceeded
from .jobs import TasksDep, visible_task
from .routing import APP, OPERATOR, USER, WHOLE_USER, Table
from .schemas import (
    SCOPE_PARAMS,
    BudgetStatus,
    CallerDep,
    Cursor,
    KeyRequest,
    Limit,
    ListedUser,
    Page,
    ProviderKeyRequest,
    QuotaStatus,
    TokenRequest,
    decode_cursor,
    encode_cursor,
    paginate,
)
from .users import used_for

table = Table()
LATE_MS = 5 * 60_000


@table.add("GET", "/v1/whoami", USER, response_model=ApiKey)
def key_whoami(asked: CallerDep) -> ApiKey:
    """What the key that asks may open."""
    assert asked.grant.key is not None
    return asked.grant.key


@table.add("GET", "/v1/keys", OPERATOR, response_model=Page[ApiKey])
def keys_list(asked: CallerDep, all_orgs: bool = False, cursor: Cursor = None, limit: Limit = 100) -> Page[ApiKey]:
    """The keys of the org, or with `all_orgs` of every org, oldest first."""
    found = asked.memory.admin.keys.list(None if all_orgs else asked.grant.org)
    return paginate(found, lambda key: (to_ms(key.created_at), key.id), cursor, limit)


@table.add("POST", "/v1/keys", OPERATOR, response_model=NewKey, status_code=201)
def keys_create(asked: CallerDep, body: KeyRequest) -> NewKey:
    """Make a key of the org; it is shown once."""
    return asked.memory.admin.keys.create(org=asked.grant.org, **body.model_dump())


@table.add("DELETE", "/v1/keys/{key_id}", OPERATOR, status_code=204)
def keys_revoke(asked: CallerDep, key_id: str, all_orgs: bool = False) -> None:
    """End a key of the org, or with `all_orgs` of any org, at once."""
    asked.memory.admin.keys.revoke(key_id, org=None if all_orgs else asked.grant.org)


@table.add("POST", "/v1/tokens", APP, response_model=NewKey, status_code=201)
def tokens_create(asked: CallerDep, body: TokenRequest) -> NewKey:
    """A short-lived key with which a user sees and mends what is held about them."""
    return asked.memory.admin.keys.create(
        "user" if body.subject is None else "subject",
        org=asked.grant.org,
        user=body.user,
        bot=asked.grant.key.bot if asked.grant.key else None,
        subject=body.subject,
        name="token",
        expires_at=timedelta(minutes=body.minutes),
    )


@table.add("GET", "/v1/jobs", OPERATOR, door=Memory.jobs, response_model=Page[Job])
def jobs_list(
    asked: CallerDep,
    state: Literal["ready", "waiting", "running", "dead", "cancelled"] | None = None,
    after: Annotated[str | None, Query(max_length=100, description="Only jobs behind the one of this id.")] = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Page[Job]:
    """Background work that is not finished, oldest first."""
    last = after if cursor is None else str(decode_cursor(cursor))
    found = asked.memory.jobs(state, limit=limit + 1, after=last)
    data = found[:limit]
    return Page(data=data, next_cursor=encode_cursor(data[-1].id) if len(found) > limit else None)


@table.add("POST", "/v1/jobs/{job_id}/retry", OPERATOR, door=Memory.retry, status_code=204)
def jobs_retry(asked: CallerDep, job_id: str) -> None:
    """Make a dead or cancelled job ready again."""
    asked.memory.retry(job_id)


@table.add("POST", "/v1/jobs/{job_id}/run", OPERATOR, door=Memory.run_now, repeatable=True, status_code=204)
def jobs_run(asked: CallerDep, job_id: str) -> None:
    """Make a job due at once that is waiting for a later time."""
    asked.memory.run_now(job_id)


@table.add("GET", "/v1/stats", OPERATOR, door=Admin.stats, response_model=StoreStats)
def stats_get(asked: CallerDep) -> StoreStats:
    """Where the store is, how large, and how many rows it has of each kind."""
    return asked.memory.admin.stats()


@table.add("POST", "/v1/jobs/{job_id}/cancel", APP, door=Memory.cancel, status_code=204)
def jobs_cancel(asked: CallerDep, tasks: TasksDep, job_id: str) -> None:
    """Keep a job from running, or from going on; apps end what was ordered for their users."""
    try:
        visible_task(asked, tasks.get(job_id))
        tasks.cancel(job_id)
    except NotFound:
        if asked.grant.key is None or asked.grant.key.role != "operator":
            raise
        asked.memory.cancel(job_id)


@table.add("POST", "/v1/digest", OPERATOR, response_model=DigestReport)
def digest_run(asked: CallerDep, timeout_s: Annotated[float, Query(gt=0, le=60)] = 10) -> DigestReport:
    """Do background work that is due now, here and at once."""
    return asked.memory.digest(timeout_s)


@table.add("GET", "/v1/doctor", OPERATOR, door=Memory.doctor, response_model=Report)
def doctor_check(asked: CallerDep) -> Report:
    """Check every invariant of the store: reads all of it, changes nothing."""
    return asked.memory.doctor()


@table.add("GET", "/v1/metrics", OPERATOR, door=Admin.metrics, response_model=Metrics)
def metrics_get(
    asked: CallerDep,
    org: Annotated[str | None, Query(description="Only this tenant.")] = None,
    bot: Annotated[str | None, Query(description="Only this assistant.")] = None,
    since: date | None = None,
    until: date | None = None,
    most_users: Annotated[int, Query(ge=1, le=100_000, description="Count at most so many.")] = 1_000,
) -> Metrics:
    """How well memory serves, counted from what is stored; it reads every message of the users."""
    return asked.memory.admin.metrics(org=org, bot=bot, since=since, until=until, most_users=most_users)


@table.add("GET", "/v1/users", OPERATOR, response_model=Page[ListedUser])
def users_list(
    asked: CallerDep,
    after: Annotated[list[str] | None, Query(description="Only who comes after this org, user and assistant.")] = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Page[ListedUser]:
    """Everybody with a memory, in every org, by org, user and assistant."""
    last = None if cursor is None and after is None else decode_cursor(cursor) if cursor else tuple(after or ())
    if last is not None and not (
        isinstance(last, tuple) and len(last) == 3 and all(isinstance(part, str) for part in last)
    ):
        raise BadInput("this cursor belongs to another list", hint="send back next_cursor as it came")
    found = asked.memory.admin.users(limit=limit + 1, after=last)
    data = [ListedUser(org=org, user=user, bot=bot) for org, user, bot in found[:limit]]
    return Page(data=data, next_cursor=encode_cursor(found[limit - 1]) if len(found) > limit else None)


@table.add("GET", "/v1/budgets", OPERATOR, response_model=BudgetStatus)
def budgets_get(asked: CallerDep) -> BudgetStatus:
    """What models may use a day, and what all of them used today."""
    config, today = asked.memory.config, datetime.now(UTC).date()
    used = asked.memory.usage(by=(), since=today, until=today)
    spent = used[0] if used else Usage()
    named: dict[str, Budget | None] = {"all": config.budget, "org": config.budget_org, "user": config.budget_user}
    return BudgetStatus(**named, tokens_today=spent.tokens, cost_today=spent.cost)


@table.add("GET", "/v1/quotas", OPERATOR, response_model=QuotaStatus)
def quotas_get(request: Request, asked: CallerDep) -> QuotaStatus:
    """How many messages a key and the org may store, and how many they have stored this day and this month."""
    limits: dict[str, int | None] = request.app.state.quotas.limits
    return QuotaStatus(**limits, spent=asked.memory.admin.keys.message_counts(asked.grant.org))


@table.add("GET", "/v1/usage", OPERATOR, door=Memory.usage, response_model=Page[Usage])
def usage_list(
    asked: CallerDep,
    by: Annotated[list[Literal["org", "user", "bot", "day", "layer", "model", "none"]], Query()] = ["layer", "model"],  # noqa: B006
    since: date | None = None,
    until: date | None = None,
    org: Annotated[str | None, Query(description="Only this tenant; every one when not given.")] = None,
    user: Annotated[str | None, Query(description="Only this user.")] = None,
    bot: Annotated[str | None, Query(description="Only this assistant.")] = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Page[Usage]:
    """What models were used for, and what it cost."""
    found = asked.memory.usage(
        by=[part for part in by if part != "none"], since=since, until=until, org=org, user=user, bot=bot
    )
    return paginate(found, used_for, cursor, limit)


@table.add("POST", "/v1/import", APP, status_code=201, response_model=dict[str, str])
def import_user(request: Request, asked: CallerDep, body: dict[str, Any]) -> Any:
    """Take back what export gave, into the user that it names; into the key's own org."""
    if asked.grant.key is not None and body.get("bot") != (asked.grant.key.bot or body.get("bot")):
        raise HTTPException(403, "This key opens another assistant's memory")
    named = {**body, "org": asked.grant.org}
    with request.app.state.quotas.counting(asked.grant.key, count_messages(body)) as wait_s:
        if wait_s:
            return quota_exceeded(wait_s)
        asked.memory.import_(named)
    return {"user": str(named.get("user", ""))}


OF_ORG, OF_USER = "/v1/provider-keys", "/v1/users/{user:name}/provider-keys"
KeyId = Annotated[str, Path(max_length=200, description="The id that the list tells.")]


@table.add("GET", OF_ORG, OPERATOR, response_model=list[ProviderKey])
def provider_keys_of_org(asked: CallerDep) -> list[ProviderKey]:
    """What the org has set, without the keys; the one in use comes first."""
    return asked.memory.admin.provider_keys.list(org=asked.grant.org)


@table.add("PUT", OF_ORG, OPERATOR, response_model=ProviderKey)
def provider_keys_set_of_org(asked: CallerDep, body: ProviderKeyRequest) -> ProviderKey:
    """Have the org's users read and summarised by this model; the key is kept sealed and never told."""
    return _set(asked, body, None)


@table.add("DELETE", OF_ORG + "/{key_id}", OPERATOR, status_code=204)
def provider_keys_remove_of_org(asked: CallerDep, key_id: KeyId) -> None:
    """Delete a key of the org's own."""
    _in_all(asked)
    asked.memory.admin.provider_keys.remove(key_id, org=asked.grant.org)


@table.add("GET", OF_USER, WHOLE_USER, response_model=list[ProviderKey], dependencies=SCOPE_PARAMS)
def provider_keys_of_user(asked: CallerDep) -> list[ProviderKey]:
    """What the user has set, without the keys; the one in use comes first."""
    return asked.memory.admin.provider_keys.list(org=asked.grant.org, user=asked.grant.user)


@table.add("PUT", OF_USER, WHOLE_USER, response_model=ProviderKey, dependencies=SCOPE_PARAMS)
def provider_keys_set_of_user(asked: CallerDep, body: ProviderKeyRequest) -> ProviderKey:
    """Have the user read and summarised by this model; the key is kept sealed and never told."""
    return _set(asked, body, asked.grant.user)


@table.add("DELETE", OF_USER + "/{key_id}", WHOLE_USER, status_code=204, dependencies=SCOPE_PARAMS)
def provider_keys_remove_of_user(asked: CallerDep, key_id: KeyId) -> None:
    """Delete a key of the user's own."""
    _in_all(asked)
    asked.memory.admin.provider_keys.remove(key_id, org=asked.grant.org, user=asked.grant.user)


def _in_all(asked: CallerDep) -> None:
    """
    Raises:
        HTTPException: the key opens one assistant's memory, and what is set here would hold in all of them.
    """
    if asked.grant.key is not None and asked.grant.key.bot is not None:
        raise HTTPException(403, "This key opens one assistant's memory; a model of one's own reads for all of them")


def _set(asked: CallerDep, body: ProviderKeyRequest, user: str | None) -> ProviderKey:
    _in_all(asked)
    key = None if body.key is None else Secret(body.key.get_secret_value())
    return asked.memory.admin.provider_keys.set(
        body.provider, body.model, key, body.base_url, org=asked.grant.org, user=user
    )
