"""The settings page: settings, keys, quotas, and the state of the store."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from ...admin import ROLES
from ...config import Config
from ...errors import BadInput, HoldfastError, NotFound
from ...types import NewKey
from ..gate import Quotas
from ..routing import OPERATOR, RouteTable
from ..schemas import CallerDep
from .front import SESSION_NAME
from .home import counts_of
from .layout import Form, FormDep, format_bytes, here, render, see_other
from .texts import figures, mark, translate

table = RouteTable()
PATH = "/dashboard/settings"
PROVIDERS = ("openai", "anthropic", "google", "ollama")
MASKED = mark("set, hidden")
# What each group of settings is about, in the order of the page.
GROUPS = {
    mark("Privacy"): ("redact_messages", "detectors", "min_confidence", "scrub_mb"),
    mark("Retention"): ("max_memories", "decay_half_life_days", "usage_days"),
    mark("Contexts and recall"): (
        "budget_tokens",
        "recent_messages",
        "recall_limit",
        "recall_min_relevance",
        "index_cache_mb",
    ),
    mark("Summaries and facts"): (
        "chunk_messages",
        "chunk_tokens",
        "chunk_max_tokens",
        "chunk_exchanges",
        "chunk_gap_minutes",
        "rollup_summaries",
        "economy",
    ),
    mark("Models"): (
        "max_output_tokens",
        "model_timeout_s",
        "message_char_limit",
        "reply_char_limit",
        "prompt_cache",
        "prompt_cache_retention",
    ),
    mark("Budgets"): ("budget", "budget_org", "budget_user"),
    mark("Background work"): ("workers", "job_lease_ms", "job_attempts", "job_backoff_ms"),
}
LIMITS = (
    ("day", mark("Per key and day"), "%Y-%m-%d"),
    ("month", mark("Per key and month"), "%Y-%m"),
    ("org_day", mark("Whole org, per day"), "%Y-%m-%d"),
    ("org_month", mark("Whole org, per month"), "%Y-%m"),
)
NOTICES = {
    "revoked": mark("The key is revoked."),
    "gone": mark("This key no longer exists."),
    "provider-set": mark("The provider's key is encrypted and in use from now on. It is never shown."),
    "provider-removed": mark("The provider's key is deleted."),
}


@table.page("GET", PATH, OPERATOR)
def settings_page(request: Request, caller: CallerDep) -> Response:
    """Show the settings."""
    return _page(request, caller)


@table.page("POST", PATH, OPERATOR)
def settings_change(request: Request, caller: CallerDep, form: FormDep) -> Response:
    """Create or revoke a key, set or remove a provider key, check the store."""
    do, memory, org = form["do"], caller.memory, caller.grant.org
    try:
        if do == "make":
            return _page(request, caller, made=_create_key(caller, form))
        if do == "doctor":
            return _page(request, caller, report=memory.doctor())
        if do == "provider":
            user = form.get("user") or None
            given = {"key": form.get("key") or None, "base_url": form.get("base_url") or None}
            memory.admin.provider_keys.set(form["provider"], form["model"], **given, org=org, user=user)
            return see_other(here(request), said="provider-set")
    except HoldfastError as error:
        return _page(request, caller, error=error)
    try:
        if do == "revoke":
            memory.admin.keys.revoke(form["key"], org=org)
            return see_other(here(request), said="revoked")
        if do == "provider-remove":
            memory.admin.provider_keys.remove(form["key"], org=org, user=form.get("user") or None)
            return see_other(here(request), said="provider-removed")
    except NotFound:
        return see_other(here(request), said="gone")
    raise HTTPException(422, translate("Unknown action {name}", name=do))


def _create_key(caller: CallerDep, form: Form) -> NewKey:
    days = form.get("days", "")
    if days and not (days.isascii() and days.isdecimal() and 0 < int(days[:6]) <= 3650):
        raise BadInput(translate("a key may last from 1 to 3,650 days"))
    given: dict[str, Any] = {name: form.get(name) or None for name in ("user", "bot", "subject")}
    role: Any = form["role"]
    lasts = timedelta(days=int(days)) if days else None
    return caller.memory.admin.keys.create(
        role, org=caller.grant.org, name=form.get("name", ""), expires_at=lasts, **given
    )


def _page(
    request: Request,
    caller: CallerDep,
    *,
    made: NewKey | None = None,
    error: HoldfastError | None = None,
    report: Any = None,
) -> Response:
    memory, now = caller.memory, request.app.state.settings
    keys = memory.admin.keys.list(caller.grant.org)
    stats = counts_of(request).get("stats", memory.admin.stats)
    return render(
        "settings.html",
        request,
        title=translate("Settings"),
        status=422 if error is not None else 200,
        notices=NOTICES,
        made=made,
        error=error,
        report=report,
        keys=[key for key in keys if key.name != SESSION_NAME],
        browsers=sum(key.name == SESSION_NAME and key.revoked_at is None for key in keys),
        roles=ROLES,
        now=datetime.now(UTC),
        server=[
            (item.name.replace("_", " "), format_setting(item.name, getattr(now, item.name))) for item in fields(now)
        ],
        groups=setting_groups(memory.config),
        providers=PROVIDERS,
        brought=memory.admin.provider_keys.list(org=caller.grant.org),
        stats=stats,
        bytes=format_bytes(memory.admin.size_bytes()),
        org=caller.grant.org,
        allowances=_quota_rows(caller, request.app.state.quotas),
    )


def _quota_rows(caller: CallerDep, quotas: Quotas) -> list[dict[str, Any]]:
    """Return each quota with its use: by the org, and by the five keys that stored most."""
    keys, now = caller.memory.admin.keys, datetime.now(UTC)
    names = {key.id: key.name or key.id for key in keys.list(caller.grant.org)} | {"": translate("all keys")}
    rows = []
    for limit, words, period in LIMITS:
        most = quotas.limits[limit]
        found = [one for one in keys.message_counts(caller.grant.org) if one.period == f"{now:{period}}"]
        mine = sorted(
            (one for one in found if (one.key == "") == limit.startswith("org")), key=lambda one: -one.messages
        )
        used = [(names.get(one.key, one.key), one.messages) for one in mine[:5]]
        rows.append({"words": words, "most": most, "spent": used if most is not None else []})
    return rows


def setting_groups(config: Config) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return the settings of the memory by group; ungrouped ones come last."""
    named = {name for names in GROUPS.values() for name in names}
    every = {item.name: item for item in fields(config)}
    usual = Config()
    rest = tuple(name for name in every if name not in named)

    def setting_row(name: str) -> dict[str, Any]:
        value = getattr(config, name)
        changed = value != getattr(usual, name)
        return {
            "name": name.replace("_", " "),
            "value": format_setting(name, value),
            "doc": every[name].metadata["doc"],
            "changed": changed,
        }

    return [
        (title, [setting_row(name) for name in names if name in every])
        for title, names in (*GROUPS.items(), (mark("More"), rest))
    ]


def format_setting(name: str, value: object) -> str:
    """Format a setting; possible secrets are hidden."""
    if any(word in name for word in ("key", "secret", "token_", "password")) and isinstance(value, str):
        return translate(MASKED if value else "not set")
    if "Secret" in type(value).__name__:
        return translate(MASKED)
    if value is None:
        return translate("not set")
    if isinstance(value, bool):
        return translate("on") if value else translate("off")
    if isinstance(value, int):
        return str(value) if name == "port" else figures(f"{value:,}")
    if isinstance(value, float):
        return figures(str(value))
    if isinstance(value, tuple):
        return ", ".join(str(getattr(one, "kind", one)) for one in value) or translate("none")
    if isinstance(value, dict):
        return ", ".join(sorted(map(str, value))) or translate("none")
    return str(value)
