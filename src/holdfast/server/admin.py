"""Keys, jobs, usage, budgets: what operators and apps need besides the memory of users."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any, Literal

from fastapi import Depends, Path, Query, Request, Response
from starlette.exceptions import HTTPException

from ..admin import Admin
from ..clock import to_ms
from ..errors import NotFound
from ..jobs.model_client import version_in_use
from ..memory import Memory
from ..reports import DigestReport, Metrics, Report, StoreStats, Usage, UserOrder
from ..types import ApiKey, Budget, Job, NewKey, PromptVersion, ProviderKey, Secret
from ..user import Prompts
from .gate import count_messages, quota_exceeded
from .jobs import TasksDep, visible_task
from .routing import APP, OPERATOR, USER, WHOLE_USER, RouteTable
from .schemas import (
    BudgetStatus,
    CallerDep,
    Cursor,
    IfMatch,
    KeyRequest,
    Limit,
    ListedUser,
    Page,
    PromptText,
    PromptVersionNumber,
    ProviderKeyRequest,
    QuotaStatus,
    TokenRequest,
    encode_cursor,
    page_of,
    paginate,
    parse_position,
    prompt_versions_of,
)
from .users import PromptName, used_for

table = RouteTable()
LATE_MS = 5 * 60_000


@table.add("GET", "/v1/whoami", USER)
def key_whoami(caller: CallerDep) -> ApiKey:
    """Return what the caller's key may open."""
    assert caller.grant.key is not None
    return caller.grant.key


@table.add("GET", "/v1/keys", OPERATOR)
def keys_list(caller: CallerDep, all_orgs: bool = False, cursor: Cursor = None, limit: Limit = 100) -> Page[ApiKey]:
    """List the keys of the org, or with `all_orgs` of every org, oldest first."""
    found = caller.memory.admin.keys.list(None if all_orgs else caller.grant.org)
    return paginate(found, lambda key: (to_ms(key.created_at), key.id), cursor, limit)


@table.add("POST", "/v1/keys", OPERATOR, status_code=201)
def keys_create(caller: CallerDep, body: KeyRequest) -> NewKey:
    """Make a key of the org; it is shown once."""
    return caller.memory.admin.keys.create(org=caller.grant.org, **body.model_dump())


@table.add("DELETE", "/v1/keys/{key_id}", OPERATOR, status_code=204)
def keys_revoke(caller: CallerDep, key_id: str, all_orgs: bool = False) -> None:
    """End a key of the org, or with `all_orgs` of any org, at once."""
    caller.memory.admin.keys.revoke(key_id, org=None if all_orgs else caller.grant.org)


@table.add("POST", "/v1/tokens", APP, status_code=201)
def tokens_create(caller: CallerDep, body: TokenRequest) -> NewKey:
    """Make a short-lived key with which a user sees and corrects what is held about them."""
    return caller.memory.admin.keys.create(
        "user" if body.subject is None else "subject",
        org=caller.grant.org,
        user=body.user,
        bot=caller.grant.key.bot if caller.grant.key else None,
        subject=body.subject,
        name="token",
        expires_at=timedelta(minutes=body.minutes),
    )


PROMPT = "/v1/prompts/{name}"
SharedBot = Annotated[
    str | None,
    Query(alias="bot", min_length=1, max_length=200, description="Of this assistant; of the whole org without."),
]


async def _shared_prompts(caller: CallerDep, bot: SharedBot = None) -> Prompts:
    """Return the prompts of the org, or of one of its bots: of the key's own where that opens only one."""
    key = caller.grant.key
    own = bot if key is None or key.bot is None else key.bot
    return caller.memory.admin.prompts(org=caller.grant.org, bot=own)


SharedPrompts = Annotated[Prompts, Depends(_shared_prompts)]


@table.add("GET", PROMPT, OPERATOR)
def prompts_shared(prompts: SharedPrompts, name: PromptName, response: Response) -> str:
    """Return the prompt that users without one of their own have."""
    response.headers["ETag"] = f'"{version_in_use(prompts.versions(name))}"'
    return prompts.get(name)


@table.add("PUT", PROMPT, OPERATOR)
def prompts_share(
    prompts: SharedPrompts, name: PromptName, body: PromptText, response: Response, if_match: IfMatch = None
) -> PromptVersion:
    """Use another text from now on for all users of the org, or of one of its bots, who have none of their own."""
    version = prompts.set(name, body.text, if_version=prompt_versions_of(if_match))
    response.headers["ETag"] = f'"{version.version}"'
    return version


@table.add("DELETE", PROMPT, OPERATOR)
def prompts_unshare(
    prompts: SharedPrompts, name: PromptName, response: Response, if_match: IfMatch = None
) -> PromptVersion:
    """Use the next text again: a bot that of its org, an org the library's own."""
    version = prompts.reset(name, if_version=prompt_versions_of(if_match))
    response.headers["ETag"] = '"0"'
    return version


@table.add("GET", PROMPT + "/versions", OPERATOR)
def prompts_shared_versions(
    prompts: SharedPrompts, name: PromptName, cursor: Cursor = None, limit: Limit = 100
) -> Page[PromptVersion]:
    """List the versions of a prompt of the org or of one of its bots, oldest first."""
    return paginate(prompts.versions(name), lambda version: version.version, cursor, limit)


@table.add("POST", PROMPT + "/drafts", OPERATOR, status_code=201)
def prompts_shared_draft(prompts: SharedPrompts, name: PromptName, body: PromptText) -> PromptVersion:
    """Save a text that is not used yet."""
    return prompts.draft(name, body.text)


@table.add("POST", PROMPT + "/activate", OPERATOR)
def prompts_shared_activate(prompts: SharedPrompts, name: PromptName, body: PromptVersionNumber) -> PromptVersion:
    """Use the text of a draft, or of an older version, from now on."""
    return prompts.activate(name, body.version, percent=body.percent)


@table.add("GET", "/v1/jobs", OPERATOR, door=Memory.jobs)
def jobs_list(
    caller: CallerDep,
    state: Literal["ready", "waiting", "running", "dead", "cancelled"] | None = None,
    after: Annotated[str | None, Query(max_length=100, description="Only jobs behind the one of this id.")] = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Page[Job]:
    """Background work that is not finished, oldest first."""
    last = after if cursor is None else parse_position(cursor, str)[0]
    found = caller.memory.jobs(state, limit=limit + 1, after=last)
    return page_of(found, limit, lambda job: [job.id])


@table.add("POST", "/v1/jobs/{job_id}/retry", OPERATOR, door=Memory.retry, status_code=204)
def jobs_retry(caller: CallerDep, job_id: str) -> None:
    """Make a dead or cancelled job ready again."""
    caller.memory.retry(job_id)


@table.add("POST", "/v1/jobs/{job_id}/run", OPERATOR, door=Memory.run_now, repeatable=True, status_code=204)
def jobs_run(caller: CallerDep, job_id: str) -> None:
    """Make a job due at once that is waiting for a later time."""
    caller.memory.run_now(job_id)


@table.add("GET", "/v1/stats", OPERATOR, door=Admin.stats)
def stats_get(caller: CallerDep) -> StoreStats:
    """Return where the store is, how large it is, and how many rows of each kind it has."""
    return caller.memory.admin.stats()


@table.add("POST", "/v1/jobs/{job_id}/cancel", APP, door=Memory.cancel, status_code=204)
def jobs_cancel(caller: CallerDep, tasks: TasksDep, job_id: str) -> None:
    """Keep a job from running, or from going on; apps end what was ordered for their users."""
    try:
        visible_task(caller, tasks.get(job_id))
        tasks.cancel(job_id)
    except NotFound:
        if caller.grant.key is None or caller.grant.key.role != "operator":
            raise
        caller.memory.cancel(job_id)


@table.add("POST", "/v1/digest", OPERATOR)
def digest_run(caller: CallerDep, timeout_s: Annotated[float, Query(gt=0, le=60)] = 10) -> DigestReport:
    """Do background work that is due now, here and at once."""
    return caller.memory.digest(timeout_s)


@table.add("GET", "/v1/doctor", OPERATOR, door=Memory.doctor)
def doctor_check(caller: CallerDep) -> Report:
    """Check every invariant of the store: reads all of it, changes nothing."""
    return caller.memory.doctor()


@table.add("GET", "/v1/metrics", OPERATOR, door=Admin.metrics)
def metrics_get(
    caller: CallerDep,
    org: Annotated[str | None, Query(description="Only this tenant.")] = None,
    bot: Annotated[str | None, Query(description="Only this assistant.")] = None,
    since: date | None = None,
    until: date | None = None,
    most_users: Annotated[int, Query(ge=1, le=100_000, description="Count at most so many.")] = 1_000,
) -> Metrics:
    """Measure how well memory serves, from what is stored; reads every message of the users."""
    return caller.memory.admin.metrics(org=org, bot=bot, since=since, until=until, most_users=most_users)


@table.add("GET", "/v1/users", OPERATOR)
def users_list(
    caller: CallerDep,
    after: Annotated[list[str] | None, Query(description="Only who comes after this org, user and assistant.")] = None,
    matching: Annotated[str, Query(max_length=512, description="Only whose org, name or bot holds these words.")] = "",
    sort: Annotated[
        UserOrder,
        Query(description="By name, or by their last message or conversations: then without pages, but `skip`."),
    ] = "name",
    skip: Annotated[int, Query(ge=0, description="Not by name: leave out so many first.")] = 0,
    org: Annotated[str | None, Query(max_length=512, description="Only those of this org.")] = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Page[ListedUser]:
    """List every user with a memory, in every org, by org, user and assistant."""
    last = parse_position(cursor or (encode_cursor(after) if after else None), str, str, str)
    most = limit + 1 if sort == "name" else limit
    keys = caller.memory.admin.users(limit=most, after=last, matching=matching, sort=sort, skip=skip, org=org)
    found = [ListedUser(org=org, user=user, bot=bot) for org, user, bot in keys]
    return page_of(found, limit, lambda one: (one.org, one.user, one.bot))


@table.add("GET", "/v1/budgets", OPERATOR)
def budgets_get(caller: CallerDep) -> BudgetStatus:
    """Return the daily budgets of models, and what was used today."""
    config, today = caller.memory.config, datetime.now(UTC).date()
    used = caller.memory.usage(by=(), since=today, until=today)
    spent = used[0] if used else Usage()
    named: dict[str, Budget | None] = {"all": config.budget, "org": config.budget_org, "user": config.budget_user}
    return BudgetStatus(**named, tokens_today=spent.tokens, cost_today=spent.cost)


@table.add("GET", "/v1/quotas", OPERATOR)
def quotas_get(request: Request, caller: CallerDep) -> QuotaStatus:
    """Return how many messages a key and the org may store, and how many they have stored this day and month."""
    limits: dict[str, int | None] = request.app.state.quotas.limits
    return QuotaStatus(**limits, spent=caller.memory.admin.keys.message_counts(caller.grant.org))


@table.add("GET", "/v1/usage", OPERATOR, door=Memory.usage)
def usage_list(
    caller: CallerDep,
    by: Annotated[list[Literal["org", "user", "bot", "day", "layer", "model", "none"]], Query()] = ["layer", "model"],  # noqa: B006
    since: date | None = None,
    until: date | None = None,
    org: Annotated[str | None, Query(description="Only this tenant; every one when not given.")] = None,
    user: Annotated[str | None, Query(description="Only this user.")] = None,
    bot: Annotated[str | None, Query(description="Only this assistant.")] = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Page[Usage]:
    """List what models were used for, and what it cost."""
    found = caller.memory.usage(
        by=[part for part in by if part != "none"], since=since, until=until, org=org, user=user, bot=bot
    )
    return paginate(found, used_for, cursor, limit)


@table.add("POST", "/v1/import", APP, status_code=201, response_model=dict[str, str])
def import_user(request: Request, caller: CallerDep, body: dict[str, Any]) -> Any:
    """Import an export into the user that it names, in the key's own org."""
    if caller.grant.key is not None and body.get("bot") != (caller.grant.key.bot or body.get("bot")):
        raise HTTPException(403, "This key opens another assistant's memory")
    named = {**body, "org": caller.grant.org}
    with request.app.state.quotas.counting(caller.grant.key, count_messages(body)) as wait_s:
        if wait_s:
            return quota_exceeded(wait_s)
        caller.memory.import_(named)
    return {"user": str(named.get("user", ""))}


OF_ORG, OF_USER = "/v1/provider-keys", "/v1/users/{user:name}/provider-keys"
KeyId = Annotated[str, Path(max_length=200, description="The id that the list tells.")]


@table.add("GET", OF_ORG, OPERATOR)
def provider_keys_of_org(caller: CallerDep) -> list[ProviderKey]:
    """List the org's models, without their keys; the one in use comes first."""
    return caller.memory.admin.provider_keys.list(org=caller.grant.org)


@table.add("PUT", OF_ORG, OPERATOR)
def provider_keys_set_of_org(caller: CallerDep, body: ProviderKeyRequest) -> ProviderKey:
    """Let this model read and summarize for the org's users; the key is sealed and never shown."""
    return _set(caller, body, None)


@table.add("DELETE", OF_ORG + "/{key_id}", OPERATOR, status_code=204)
def provider_keys_remove_of_org(caller: CallerDep, key_id: KeyId) -> None:
    """Delete a key of the org."""
    _in_all(caller)
    caller.memory.admin.provider_keys.remove(key_id, org=caller.grant.org)


@table.add("GET", OF_USER, WHOLE_USER)
def provider_keys_of_user(caller: CallerDep) -> list[ProviderKey]:
    """List the user's models, without their keys; the one in use comes first."""
    return caller.memory.admin.provider_keys.list(org=caller.grant.org, user=caller.grant.user)


@table.add("PUT", OF_USER, WHOLE_USER)
def provider_keys_set_of_user(caller: CallerDep, body: ProviderKeyRequest) -> ProviderKey:
    """Let this model read and summarize for the user; the key is sealed and never shown."""
    return _set(caller, body, caller.grant.user)


@table.add("DELETE", OF_USER + "/{key_id}", WHOLE_USER, status_code=204)
def provider_keys_remove_of_user(caller: CallerDep, key_id: KeyId) -> None:
    """Delete a key of the user."""
    _in_all(caller)
    caller.memory.admin.provider_keys.remove(key_id, org=caller.grant.org, user=caller.grant.user)


def _in_all(caller: CallerDep) -> None:
    """
    Raises:
        HTTPException: the key opens one assistant's memory, and what is set here would hold in all of them.
    """
    if caller.grant.key is not None and caller.grant.key.bot is not None:
        raise HTTPException(403, "This key opens one assistant's memory; a model of one's own reads for all of them")


def _set(caller: CallerDep, body: ProviderKeyRequest, user: str | None) -> ProviderKey:
    _in_all(caller)
    key = None if body.key is None else Secret(body.key.get_secret_value())
    return caller.memory.admin.provider_keys.set(
        body.provider, body.model, key, body.base_url, org=caller.grant.org, user=user
    )
