"""The doors to what a server holds about one user."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

from ..context.budget import Count
from ..errors import BadInput
from ..privacy.corrections import Versions
from ..reports import (
    ConsolidationReport,
    ConversationState,
    ErasureReceipt,
    Event,
    Explained,
    Metrics,
    PromptPreview,
    PruneReport,
    Usage,
)
from ..text.validate import checked_count, checked_query, checked_share, checked_text
from ..types import HIT_KINDS, Consent, Fact, FactChange, FactKind, Hit, HitKind, PromptVersion, Rejected, Section
from ..user import PromptVersions
from .calls import Whose, part, versions
from .conversation import checked_key
from .values import Chosen, no_function, plain
from .wire import Wire

PREVIEW_S = 60.0


class User:
    """What is held about one user; made by `Client.user`.  See `holdfast.User`."""

    def __init__(self, wire: Wire, whose: Whose) -> None:
        self._wire = wire
        self._whose = whose

    def __repr__(self) -> str:
        return f"User({self._whose.user!r})"

    def facts(
        self,
        category: str | None = None,
        *,
        kind: FactKind | None = None,
        as_of: datetime | None = None,
        known_at: datetime | None = None,
        archived: bool = False,
    ) -> list[Fact]:
        """What is believed, by subject, category, key and value; see `holdfast.User.facts`."""
        query = {"category": category, "kind": kind, "as_of": as_of, "known_at": known_at, "archived": archived}
        return self._wire.pages(self._whose.order("GET", "/facts", query=query), Fact)

    def fact(self, fact_id: str) -> Fact:
        """One fact, live or past; `NotFound` when there is none."""
        return self._wire.send(self._whose.call("GET", fact_path(fact_id), Fact))

    def history(self, category: str | None = None, key: str | None = None) -> list[Fact]:
        """Every value that a category, or one of its keys, had, or all of them, oldest first, with when each held."""
        return self._wire.pages(self._whose.order("GET", "/history", query={"category": category, "key": key}), Fact)

    def search(
        self,
        query: str,
        *,
        limit: int = 10,
        kinds: Sequence[HitKind] = HIT_KINDS,
        min_score: float | None = None,
        conversation: str | None = None,
        explain: bool = False,
    ) -> list[Hit]:
        """Find facts, messages and summaries, best first; see `holdfast.User.search`."""
        if unknown := [kind for kind in kinds if kind not in HIT_KINDS]:
            raise BadInput(f"there is no kind {unknown[0]!r}", hint=f"use {', '.join(HIT_KINDS)}")
        body = {
            "query": checked_query(query),
            "limit": checked_count("limit", limit),
            "kinds": list(kinds),
            "min_score": min_score,
            "conversation": conversation,
            "explain": explain,
        }
        return self._wire.send(self._whose.call("POST", "/search", list[Hit], body=body, again=True))

    def explain(self, query: str, *, at: datetime | None = None, limit: int = 20) -> Explained:
        """What a question finds, with the parts of each score, and what of it a context would recall."""
        body = {"query": checked_query(query), "at": plain(at), "limit": checked_count("limit", limit)}
        return self._wire.send(self._whose.call("POST", "/explain", Explained, body=body, again=True))

    def profile(self, *, budget_tokens: int = 500, count: Count | None = None) -> Section:
        """What you know about this user, as a ready block for a system prompt; the server counts the tokens."""
        no_function("count", count)
        query = {"budget_tokens": checked_count("budget_tokens", budget_tokens)}
        return self._wire.send(self._whose.call("GET", "/profile", Section, query=query))

    def rejected(self, *, limit: int = 100) -> list[Rejected]:
        """What was read but not believed, newest first, each with its reason."""
        return self._wire.pages(self._whose.order("GET", "/rejected"), Rejected, limit)

    def conversations(self) -> list[str]:
        """The ids of the user's conversations, by name."""
        return self._wire.pages(self._whose.order("GET", "/conversations"), str)

    def overview(self) -> list[ConversationState]:
        """How far each of the user's conversations has come, the newest first."""
        found = self._wire.pages(self._whose.order("GET", "/overview"), ConversationState)
        return sorted(found, key=lambda state: (state.last_at, state.conversation), reverse=True)

    def remember(
        self,
        text: str | None = None,
        *,
        category: str | None = None,
        key: str | None = None,
        value: str | None = None,
        confidence: float = 1.0,
        idempotency_key: str | None = None,
    ) -> FactChange:
        """
        Add a fact by hand, or replace the one at its address; see `holdfast.User.remember`.

        Without a key the client makes one, so that a request whose answer was lost is sent again and stored once.
        """
        given = {"text": text, "category": category, "key": key, "value": value}
        body: dict[str, Any] = {name: checked_text(name, item) for name, item in given.items() if item is not None}
        if "text" not in body and len(body) < 3:
            raise BadInput("remember needs a sentence, or category, key and value", hint='try remember("I eat fish.")')
        body["confidence"] = checked_share("confidence", confidence)
        once = checked_key(idempotency_key) or secrets.token_hex(12)
        return self._wire.send(self._whose.call("POST", "/facts", FactChange, body=body, once=once))

    def correct(self, fact_id: str, *, value: str, if_version: Versions = None) -> FactChange:
        """The fact was wrong from the start: *value* held instead, and history says so."""
        body = {"value": checked_text("value", value)}
        return self._wire.send(
            self._whose.call("PATCH", fact_path(fact_id), FactChange, body=body, match=versions(if_version))
        )

    def never_true(self, fact_id: str, *, if_version: Versions = None) -> FactChange:
        """The fact never held; what it had replaced holds again."""
        path, match = f"{fact_path(fact_id)}/never-true", versions(if_version)
        return self._wire.send(self._whose.call("POST", path, FactChange, again=True, match=match))

    def restore(self, fact_id: str, *, if_version: Versions = None) -> FactChange:
        """Believe a past fact again."""
        path, match = f"{fact_path(fact_id)}/restore", versions(if_version)
        return self._wire.send(self._whose.call("POST", path, FactChange, again=True, match=match))

    def forget(self, fact_id: str, *, if_version: Versions = None) -> ErasureReceipt:
        """Erase one fact with the words it rests on; they are blanked in the messages that said them."""
        match = versions(if_version)
        return self._wire.send(self._whose.call("DELETE", fact_path(fact_id), ErasureReceipt, match=match))

    def clear(self) -> ErasureReceipt:
        """Erase every fact, live and past, with the words they rest on, and all that was refused."""
        return self._wire.send(self._whose.call("DELETE", "/facts", ErasureReceipt, again=True))

    def erase(self) -> ErasureReceipt:
        """Erase everything that is held; only a pause or an opt-out stays, so that it goes on to hold."""
        return self._wire.send(self._whose.call("DELETE", "", ErasureReceipt, again=True))

    def pause(self) -> None:
        """Keep what is held, use none of it, write nothing, until `resume`."""
        self._wire.do(self._whose.order("PUT", "/consent", body={"state": "paused"}))

    def resume(self) -> None:
        """End a pause; what was stored before it and not yet digested is digested now."""
        body = {"state": "active", "only_if": "paused"}
        self._wire.do(self._whose.order("PUT", "/consent", body=body))

    def opt_out(self, erase: bool = True) -> ErasureReceipt:
        """Remember nothing from now on, and erase what is held unless *erase* is false."""
        call = self._whose.call("PUT", "/consent", Chosen, body={"state": "opted-out", "erase": bool(erase)})
        chosen: Chosen = self._wire.send(call)
        return chosen.receipt

    def opt_in(self) -> None:
        """Remember again, after an opt-out or a pause."""
        self._wire.do(self._whose.order("PUT", "/consent", body={"state": "active"}))

    def status(self) -> Consent:
        """What the user chose, and since when."""
        return self._wire.send(self._whose.call("GET", "/consent", Consent))

    def never_remember(self, topic: str) -> None:
        """Learn no more facts of a topic: a category, or words that all occur in what is said."""
        body = {"topic": checked_text("topic", topic)}
        self._wire.do(self._whose.order("POST", "/never", body=body, again=True))

    def allow(self, topic: str) -> None:
        """Take back `never_remember`."""
        query = {"topic": checked_text("topic", topic)}
        self._wire.do(self._whose.order("DELETE", "/never", query=query, again=True))

    def prune(self, *, faded: bool = False) -> PruneReport:
        """Put away now what is more than the server keeps, the weakest first; see `holdfast.User.prune`."""
        return self._wire.send(self._whose.call("POST", "/prune", PruneReport, body={"faded": faded}, again=True))

    @property
    def prompts(self) -> Prompts:
        """The user's own words for what models shall do: get, set, reset, versions."""
        return Prompts(self._wire, self._whose)

    def usage(
        self, *, by: Sequence[str] = ("layer", "model"), since: date | None = None, until: date | None = None
    ) -> list[Usage]:
        """What models were used for on the user's behalf, and what it cost; see `holdfast.User.usage`."""
        query = {"by": list(by) or ["none"], "since": since, "until": until}
        return self._wire.pages(self._whose.order("GET", "/usage", query=query), Usage)

    def metrics(self, *, since: date | None = None, until: date | None = None) -> Metrics:
        """How well memory serves this user, counted from what is stored of all subjects."""
        return self._wire.send(self._whose.call("GET", "/metrics", Metrics, query={"since": since, "until": until}))

    def audit(self, *, before: int | None = None, limit: int = 100) -> list[Event]:
        """Who changed what and when, newest first, without a word of what was said: what has a number below *before*."""
        query = {} if before is None else {"cursor": before}
        return self._wire.pages(self._whose.order("GET", "/audit", query=query), Event, checked_count("limit", limit))

    def consolidate(self, *, dry_run: bool = False) -> ConsolidationReport:
        """Merge now what says the same; see `holdfast.User.consolidate`.  The server does it as a job."""
        body = {"dry_run": dry_run}
        if dry_run:
            return self._wire.send(self._whose.call("POST", "/consolidate", ConsolidationReport, body=body, again=True))
        order = self._whose.order("POST", "/consolidate", body=body, once=secrets.token_hex(12))
        return self._wire.finish(order, ConsolidationReport)

    def export(self) -> dict[str, Any]:
        """Everything that is held about the user, of all subjects, as data that JSON can hold and `import_` takes."""
        return self._wire.send(self._whose.order("GET", "/export"))

    def import_(self, data: Mapping[str, Any]) -> None:
        """Take an export back; nothing may be held about the user yet."""
        if not isinstance(data, Mapping):
            raise BadInput("this is not the export of a user", hint="pass what export() returned")
        self._wire.do(self._whose.order("POST", "/import", body=dict(data)))


class Prompts:
    """What models are told to do for one user; see `holdfast.Prompts`."""

    def __init__(self, wire: Wire, whose: Whose) -> None:
        self._wire = wire
        self._whose = whose

    def __repr__(self) -> str:
        return f"Prompts({self._whose.user!r})"

    def get(self, name: str) -> str:
        """The words in use."""
        return self._wire.send(self._whose.call("GET", prompt_path(name), str))

    def set(self, name: str, text: str, *, if_version: PromptVersions = None) -> PromptVersion:
        """Use *text* from now on."""
        body, match = {"text": text}, versions(if_version)
        return self._wire.send(self._whose.call("PUT", prompt_path(name), PromptVersion, body=body, match=match))

    def draft(self, name: str, text: str) -> PromptVersion:
        """Save *text* as a version that is not used, to be tried and activated later."""
        call = self._whose.call("POST", f"{prompt_path(name)}/drafts", PromptVersion, body={"text": text})
        return self._wire.send(call)

    def activate(self, name: str, version: int) -> PromptVersion:
        """Use the words of a version, a draft or an older one, from now on: they become the newest version."""
        path = f"{prompt_path(name)}/activate"
        return self._wire.send(self._whose.call("POST", path, PromptVersion, body={"version": version}))

    def preview(self, name: str, text: str | None = None, *, limit: int = 3, dry_run: bool = False) -> PromptPreview:
        """Try words on the newest saved chunks; see `holdfast.Prompts.preview`."""
        body = {"text": text, "limit": checked_count("limit", limit), "dry_run": dry_run}
        path = f"{prompt_path(name)}/preview"
        return self._wire.send(self._whose.call("POST", path, PromptPreview, body=body, wait_s=PREVIEW_S))

    def reset(self, name: str, *, if_version: PromptVersions = None) -> PromptVersion:
        """Use the words that come with the library again."""
        match = versions(if_version)
        return self._wire.send(self._whose.call("DELETE", prompt_path(name), PromptVersion, again=True, match=match))

    def versions(self, name: str) -> list[PromptVersion]:
        """What was set and reset, oldest first; the newest 50 are kept."""
        return self._wire.pages(self._whose.order("GET", f"{prompt_path(name)}/versions"), PromptVersion)


def fact_path(fact_id: str) -> str:
    return f"/facts/{part(fact_id)}"


def prompt_path(name: str) -> str:
    return f"/prompts/{part(name)}"
