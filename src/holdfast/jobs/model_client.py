"""
The client through which background work calls a language model.

A call is refused while a daily budget is spent or the provider asked for a pause, and waits for the rate limit that all
processes of a store share.  Its tokens and cost are recorded right after it, in their own transaction, so that a job
which is discarded afterwards has still been paid for visibly.  No call is made inside a transaction.
"""

from __future__ import annotations

import copy
import hashlib
import random
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from hashlib import sha256

from ..clock import DAY_MS, from_ms
from ..config import Config
from ..errors import BadInput, ConfigError
from ..llm.prompts import Prompt, load
from ..llm.protocol import Answer, BadAnswer, KeyLimited, LanguageModel, Layer, ModelError, Priced, Request
from ..scope import Scope
from ..store import PromptRow, RateRow, Store, UsageRow
from ..text import dataclass
from ..text.terms import count_tokens
from ..text.validate import replace_unstorable
from ..types import Budget, Job, PromptVersion
from .observer import Observer
from .queue import FenceLost
from .usage import NANO, day_of, publish_tokens, record, with_tokens

# For so long the totals of other users are cached; what other processes use meanwhile is seen later.
TOTALS_SECONDS = 10.0
# The pause after a failure that only a person can repair, unless the memory is opened again.
SETUP_WAIT_MS = 15 * 60_000
MAX_WAIT_MS = 10 * 60_000
# A lease is extended to the end of the longest call and by this much.
LEASE_MARGIN_MS = 30_000
# Unusable answers about the same messages before those are left aside, so that others can be read.
MAX_BAD_ANSWERS = 3

MINUTE_US = 60_000_000
_BURST_SHARE = 10  # a tenth of a minute's worth may come at once
# The longest sleep of a caller until there is room; later than that it is told when to come back.
MAX_SLEEP_US = 5_000_000
_BOOK_AHEAD_US = 10 * MINUTE_US
_FORGET_AFTER_US = 24 * 60 * MINUTE_US
_MAX_TRIES = 50

CUSTOM_PROMPTS = ("chunk_summary", "meta_summary", "fact_extraction", "episodes", "character", "story")
"""The prompts whose task a user may replace."""
MAX_PROMPT_CHARS = 4_000
COMBINED = "combined"
_COMBINED_PARTS = {
    "For the summary": "chunk_summary",
    "For the facts": "fact_extraction",
    "For the episodes": "episodes",
}
_EXTRACT_AS_WELL = ("episodes", "character")  # the user's words for facts hold here, too, as far as they have no others
_ALSO_HERE = "What this user wants to be noted as facts, and what not, holds here as well: "


class CallDeferred(ModelError):
    """A call that was not made because the model may not be called before ``until_ms``."""

    code = "waiting"

    def __init__(self, message: str, until_ms: int, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.until_ms = until_ms


class Budgets:
    """The daily budgets of a memory, and the pause after a failed call; safe to use from any thread."""

    def __init__(self, store: Store, config: Config) -> None:
        self._store, self._config = store, config
        self._lock = threading.Lock()
        self._day, self._read_at = "", 0.0
        self._totals: dict[str, UsageRow] = {}
        self._paused_until_ms, self._pause_reason = 0, ""

    def check(self, scope: Scope, now_ms: int) -> None:
        """
        Raise unless the model may be called now for this user.

        Raises:
            CallDeferred: a budget is spent, or a failed call asked for a pause.
        """
        if now_ms < self._paused_until_ms:
            raise CallDeferred(self._pause_reason, self._paused_until_ms, hint="or when the memory is opened again")
        for owner, budget, rows in self._budgets(scope, day_of(now_ms)):
            spent = describe_overspending(budget, rows)
            if spent:
                until_ms = (now_ms // DAY_MS + 1) * DAY_MS
                raise CallDeferred(
                    f"budget of {owner}: {spent}", until_ms, hint="or raise it and open the memory again"
                )

    def pause(self, error: ModelError, now_ms: int) -> None:
        """Pause calls for as long as the provider asked, or until a person may have repaired the setup."""
        wait_ms = SETUP_WAIT_MS if error.setup else min(MAX_WAIT_MS, int(1000 * (error.retry_after_s or 0)))
        if wait_ms:
            with self._lock:
                self._paused_until_ms = now_ms + wait_ms
                self._pause_reason = str(error) if error.setup else error.message

    def add(self, scope: Scope, row: UsageRow) -> None:
        """Count a call that was just recorded."""
        with self._lock:
            if row.day == self._day:
                self._totals[scope.org] = self._totals.get(scope.org, UsageRow(row.day, "", "")) + row

    def _budgets(self, scope: Scope, day: str) -> Iterable[tuple[str, Budget, Iterable[UsageRow]]]:
        config = self._config
        if config.budget is not None:
            yield "the memory", config.budget, self._totals_of(day).values()
        if config.budget_org is not None:
            row = self._totals_of(day).get(scope.org)
            yield f"org {scope.org!r}", config.budget_org, [row] if row else []
        if config.budget_user is not None:
            yield "this user", config.budget_user, self._store.read(scope, lambda view: view.usage(since=day))

    def _totals_of(self, day: str) -> dict[str, UsageRow]:
        with self._lock:
            if day == self._day and time.monotonic() - self._read_at < TOTALS_SECONDS:
                return dict(self._totals)
        totals = {org: row for (org, _, _), row in self._store.usage(["org"], since=day, until=day)}
        with self._lock:
            self._day, self._read_at, self._totals = day, time.monotonic(), totals
            return dict(totals)


def describe_overspending(budget: Budget, rows: Iterable[UsageRow]) -> str:
    """Say how much of a budget is used when it is spent; empty otherwise."""
    rows = list(rows)
    tokens = sum(row.input_tokens + row.output_tokens for row in rows)
    cost = sum(row.cost for row in rows) / NANO
    if budget.tokens_per_day is not None and tokens >= budget.tokens_per_day:
        return f"{tokens:,} of {budget.tokens_per_day:,} tokens are used today"
    if budget.usd_per_day is not None and cost >= budget.usd_per_day:
        return f"{cost:.2f} of {budget.usd_per_day:.2f} dollars are used today"
    return ""


@dataclass(frozen=True, slots=True)
class KeyLimits:
    """The requests and tokens a minute of one key; ``None`` is unlimited."""

    requests: int | None
    tokens: int | None


def reserve(row: RateRow, limits: KeyLimits, tokens: int, now_us: int) -> tuple[RateRow, int]:
    """
    Reserve one request of so many tokens: return the new row and ``0``, or the same row and when there is room.

    Requests and tokens each move a time forward by their share of a minute, which may be ahead of the clock by a tenth
    of a minute's worth (the generic cell rate algorithm).  So no 60 seconds hold more requests than the limit; of tokens
    one request that is larger than a tenth may exceed it.
    """
    lines = ((limits.requests, row.requests_at, 1), (limits.tokens, row.tokens_at, tokens))
    moved, free_at = [row.requests_at, row.tokens_at], 0
    for number, (limit, at, cost) in enumerate(lines):
        if limit is None:
            moved[number] = max(at, now_us)
            continue
        burst = max(1, limit // _BURST_SHARE)
        each = MINUTE_US / (limit - burst + 1)
        moved[number] = round(max(at, now_us) + cost * each)
        ahead = round(max(burst, cost) * each)  # a request larger than a burst waits until the line is reached
        free_at = max(free_at, moved[number] - ahead)
    if free_at > now_us:
        return row, free_at
    return replace(row, version=row.version + 1, requests_at=moved[0], tokens_at=moved[1]), 0


def book(row: RateRow, limits: KeyLimits, free_at: int, now_us: int) -> RateRow:
    """Return the row after a caller was told to come back at its ``booked_until``; each caller gets a later time."""
    step = MINUTE_US // limits.requests if limits.requests else 0
    later = min(max(row.booked_until, free_at) + step, now_us + _BOOK_AHEAD_US)
    return replace(row, version=row.version + 1, booked_until=max(later, free_at))


def settle(row: RateRow, limits: KeyLimits, difference: int) -> RateRow:
    """Return the row after a request used so many tokens more than it had reserved (fewer when below 0)."""
    if limits.tokens is None:
        return row
    each = MINUTE_US / (limits.tokens - max(1, limits.tokens // _BURST_SHARE) + 1)
    return replace(row, version=row.version + 1, tokens_at=round(row.tokens_at + difference * each))


class RateLimit:
    """The rate limit of one provider key, shared by all processes of a store through compare-and-swap."""

    def __init__(
        self,
        store: Store,
        config: Config,
        key_id: str,
        now_ms: Callable[[], int],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._store, self._config, self._id, self._now_ms, self._sleep = store, config, key_id, now_ms, sleep

    @property
    def limits(self) -> KeyLimits:
        """The limits as they are set now."""
        return KeyLimits(self._config.model_requests_per_minute, self._config.model_tokens_per_minute)

    def acquire(self, tokens: int) -> None:
        """
        Reserve one request of some *tokens*, and sleep a few seconds for it when necessary.

        Raises:
            CallDeferred: the provider asked for a pause, or there is no room for longer.
        """
        patience = MAX_SLEEP_US
        for _ in range(_MAX_TRIES):
            now_us, row = self._now_us(), self._store.rate(self._id)
            if row.closed_until > now_us:
                raise _deferred("the provider asked for a pause", row.closed_until)
            if self.limits == KeyLimits(None, None):
                return
            reserved, free_at = reserve(row, self.limits, tokens, now_us)
            if free_at and free_at - now_us <= patience:
                patience -= free_at - now_us
                self._sleep((free_at - now_us) / 1_000_000)
                continue
            after = book(row, self.limits, free_at, now_us) if free_at else reserved
            if not self._save(after, now_us):
                self._sleep(random.uniform(0, 0.02))
                continue
            if free_at:
                raise _deferred("the limit of requests or tokens a minute is reached", after.booked_until)
            return
        raise _deferred("too many calls are made at the same time", self._now_us() + 1_000_000)

    def settle(self, reserved: int, used: int) -> None:
        """Correct the reserved tokens of a finished call to those it used."""
        if self.limits.tokens is not None and reserved != used:
            self._change(lambda row: settle(row, self.limits, used - reserved))

    def pause(self, error: ModelError) -> None:
        """Pause the calls of all processes for as long as the provider asked."""
        wait_ms = 0 if error.setup else min(MAX_WAIT_MS, int(1000 * (error.retry_after_s or 0)))
        if wait_ms > 0:
            until = self._now_us() + wait_ms * 1000
            self._change(lambda row: replace(row, version=row.version + 1, closed_until=max(row.closed_until, until)))

    def _change(self, work: Callable[[RateRow], RateRow]) -> None:
        for _ in range(_MAX_TRIES):
            if self._save(work(self._store.rate(self._id)), self._now_us()):
                return
            self._sleep(random.uniform(0, 0.02))

    def _save(self, row: RateRow, now_us: int) -> bool:
        return self._store.save_rate(row, idle_before=now_us - _FORGET_AFTER_US)

    def _now_us(self) -> int:
        return self._now_ms() * 1000


def _deferred(why: str, until_us: int) -> CallDeferred:
    until_ms = -(-until_us // 1000)
    return CallDeferred(f"{why}, until {from_ms(until_ms):%H:%M:%S} UTC", until_ms, hint="it is tried again then")


@dataclass(frozen=True, slots=True)
class CallTotals:
    """The number of calls with their tokens and cost; ``cost`` is ``None`` where a price is not known."""

    calls: int = 0
    tokens: int = 0
    cost: float | None = 0.0

    def __add__(self, other: CallTotals) -> CallTotals:
        cost = None if self.cost is None or other.cost is None else self.cost + other.cost
        return CallTotals(self.calls + other.calls, self.tokens + other.tokens, cost)


class ModelClient:
    """
    One model as all background work calls it; safe to use from any thread.

    ``label`` replaces the model's name in metrics, for models that users brought.
    """

    def __init__(
        self,
        store: Store,
        config: Config,
        model: LanguageModel,
        now_ms: Callable[[], int],
        observer: Observer | None = None,
        label: str = "",
    ) -> None:
        self.store, self.config, self.model, self.now_ms, self.label = store, config, model, now_ms, label
        self.observer = observer or Observer()
        self._check_price()
        self.budgets = Budgets(store, config)
        key = model.rate_limit_key if isinstance(model, KeyLimited) else model.name
        self.rate_limit = RateLimit(store, config, sha256(key.encode()).hexdigest()[:32], now_ms)
        self._prompt: Prompt | None = None
        self._thread = threading.local()

    def metered(self, prompt: Prompt | None = None) -> ModelClient:
        """Return a client of the same model with its own `take_totals`, and with *prompt* in place of the user's."""
        client = copy.copy(self)
        client._prompt, client._thread = prompt, threading.local()
        return client

    def _check_price(self) -> None:
        budgets = (self.config.budget, self.config.budget_org, self.config.budget_user)
        in_dollars = any(budget is not None and budget.usd_per_day is not None for budget in budgets)
        if in_dollars and self.price(1, 1) is None:
            name = self.model.name
            hint = f'name it: Config(prices={{"{name}": Price(input=…, output=…)}}), or set tokens_per_day'
            raise ConfigError(f"a budget in dollars needs the price of {name}, which is not known", hint=hint)

    def prompt(self, scope: Scope, name: str) -> Prompt:
        """Return the instructions of that name as the scope's user has them."""
        if self._prompt is not None and self._prompt.name == name:
            return self._prompt
        if name not in CUSTOM_PROMPTS and name != COMBINED:
            return load(name)
        return customized_prompt(name, prompt_levels(self.store, scope))

    def request(self, layer: Layer, prompt: Prompt, text: str, cache_key: str, *, constant: str = "") -> Request:
        """Build a request; *constant* follows the instructions and is the same in every call of one kind."""
        return Request(
            layer=layer,
            system=f"{prompt.system}\n\n{constant}" if constant else prompt.system,
            text=text,
            prompt=prompt.digest,
            cache_key=cache_key,
            max_output_tokens=self.config.max_output_tokens,
            timeout_s=self.config.model_timeout_s,
        )

    def ask(self, scope: Scope, request: Request) -> Answer:
        """
        Call the model within the budgets and the rate limit, and record what the call used.

        The time limit is that of the settings, and a short prompt goes without a cache key.

        Raises:
            CallDeferred: a budget is spent, a limit is reached, or the provider asked for a pause; nothing was sent.
            ModelError: the model gave no answer.
        """
        with self.observer.call("ask", scope, model=self.model.name, layer=request.layer) as call:
            call.result = answer = self._ask(scope, request)
            return answer

    def _ask(self, scope: Scope, request: Request) -> Answer:
        now_ms = self.now_ms()
        self.budgets.check(scope, now_ms)
        cache_key = request.cache_key if self._is_cacheable(request) else ""
        reserved = self._longest(request)
        self.rate_limit.acquire(reserved)
        answer: Answer | None = None
        try:
            answer = self.model.ask(replace(request, cache_key=cache_key, timeout_s=self.config.model_timeout_s))
        except ModelError as error:
            self.budgets.pause(error, now_ms)
            provider = self.label or self.model.name.partition(":")[0]
            self.observer.report("model.failed", f"{provider}/{kind_of_failure(error)}", 1)
            self.rate_limit.pause(error)
            raise
        finally:
            self._record(scope, request, answer, day_of(now_ms))
        self.rate_limit.settle(reserved, total_tokens(answer))
        return answer

    def extend_lease(self, job: Job, scope: Scope) -> None:
        """
        Keep the claim of a job for as long as a call may take.

        Raises:
            FenceLost: another worker holds it.
        """
        until = self.now_ms() + round(self.config.model_timeout_s * 1000) + LEASE_MARGIN_MS
        if not self.store.write(scope, lambda view: view.renew(job, until)):
            raise FenceLost

    def gives_up(self, job: Job, error: ModelError) -> bool:
        """
        Whether the digest goes on without this answer, and leaves it to a job for that range alone.

        Not while a budget is spent, nor for a failure that a person has to repair: those wait, and count as no attempt.
        """
        if isinstance(error, CallDeferred) or error.setup:
            return False
        if not error.transient:
            return True
        attempts = self.config.job_attempts
        return job.attempt >= (min(MAX_BAD_ANSWERS, attempts) if isinstance(error, BadAnswer) else attempts)

    def source(self, prompt: Prompt) -> str:
        """Return the source that rows written from an answer name: the model and the digest of its instructions."""
        return f"{self.model.name} {prompt.digest}"

    def price(self, input_tokens: int, output_tokens: int, cached_tokens: int = 0) -> float | None:
        """Return the price of so many tokens in US dollars; ``None`` when it is not known."""
        own = self.config.prices.get(self.model.name)
        if own is not None:
            return own.of(input_tokens, output_tokens, cached_tokens)
        return self.model.price(input_tokens, output_tokens, cached_tokens) if isinstance(self.model, Priced) else None

    def cost(self, answer: Answer) -> float | None:
        """Return the cost of an answer in US dollars; ``None`` when the price is not known."""
        own = self.model.name in self.config.prices or answer.cost is None
        return self.price(answer.input_tokens, answer.output_tokens, answer.cached_tokens) if own else answer.cost

    def take_totals(self) -> CallTotals:
        """Return the totals of this thread's calls since the last time, and start again at zero."""
        totals = getattr(self._thread, "totals", CallTotals())
        self._thread.totals = CallTotals()
        return totals

    def _longest(self, request: Request) -> int:
        """Return the tokens of a request with its longest answer; 0 where tokens are not limited."""
        if self.rate_limit.limits.tokens is None:
            return 0
        before = sum(count_tokens(text) for _, text in request.before)
        return count_tokens(request.system) + count_tokens(request.text) + before + request.max_output_tokens

    def _is_cacheable(self, request: Request) -> bool:
        if not self.config.prompt_cache or not request.cache_key:
            return False
        before = sum(count_tokens(text) for _, text in request.before)
        return count_tokens(request.system) + count_tokens(request.text) + before >= self.config.prompt_cache_min_tokens

    def _record(self, scope: Scope, request: Request, answer: Answer | None, day: str) -> None:
        row = UsageRow(day, request.layer, self.model.name, calls=1, failed=int(answer is None))
        totals = CallTotals(calls=1)
        if answer is not None:
            cost = self.cost(answer)
            row = with_tokens(row, (answer.input_tokens, answer.output_tokens, answer.cached_tokens), cost)
            totals = CallTotals(1, total_tokens(answer), cost)
        self._thread.totals = getattr(self._thread, "totals", CallTotals()) + totals
        record(self.store, scope, row, self.config.usage_days)
        self.budgets.add(scope, row)
        publish_tokens(self.observer, self.label or self.model.name, row)


def kind_of_failure(error: ModelError) -> str:
    """Name the kind of a failure in metrics: ``bad-answer``, ``setup``, ``transient`` or ``refused``."""
    if isinstance(error, BadAnswer):
        return "bad-answer"
    return "setup" if error.setup else "transient" if error.transient else "refused"


def total_tokens(answer: Answer) -> int:
    """Return the tokens of a prompt and its answer."""
    return answer.input_tokens + answer.output_tokens


def prompt_levels(store: Store, scope: Scope) -> list[list[PromptRow]]:
    """
    Return the prompts of the user, of the bot, and of the org, the nearest first; see `Admin.prompts`.

    What is used for some users first counts as used where the user is among them.
    """
    whose = dict.fromkeys(((scope.user, scope.bot), ("", scope.bot), ("", "")))
    places = (replace(scope, user=user, bot=bot, subject=None, conversation=None) for user, bot in whose)
    levels = [store.read(place, lambda view: view.prompts()) for place in places]
    return [[_for_user(row, scope) for row in rows] for rows in levels]


def _for_user(row: PromptRow, scope: Scope) -> PromptRow:
    """Return a version as it holds for a user; who is among the first 10 of 100 is among the first 50 as well."""
    if row.percent == 100 or not scope.user:
        return row
    digest = hashlib.sha256(f"{scope.org}\0{scope.user}\0{row.name}".encode()).digest()
    return replace(row, draft=int.from_bytes(digest[:4]) % 100 >= row.percent)


def customized_prompt(name: str, levels: Sequence[Sequence[PromptRow]]) -> Prompt:
    """
    Return the prompt *name* with the newest task that was set for it, on the nearest of *levels*.

    The one that asks for everything at once adds the tasks for its parts to ours; episodes and facts about the character
    add the task for facts, where they have none.
    """
    prompt = load(name)
    if name == COMBINED:
        tasks = [f"{part}: {task}" for part, of in _COMBINED_PARTS.items() if (task := _newest_task(of, levels))]
        return prompt.reworded("\n\n".join([prompt.task, *tasks])) if tasks else prompt
    task = _newest_task(name, levels)
    facts = _newest_task("fact_extraction", levels) if name in _EXTRACT_AS_WELL and not task else ""
    task = f"{prompt.task}\n\n{_ALSO_HERE}{facts}" if facts else task
    return prompt.reworded(task) if task else prompt


def _newest_task(name: str, levels: Sequence[Sequence[PromptRow]]) -> str:
    """Return the task for a prompt on the nearest level that has one; empty where ours is used."""
    newest = (
        max((row for row in rows if row.name == name and not row.draft), key=lambda row: row.version, default=None)
        for rows in levels
    )
    return next((row.text for row in newest if row is not None and row.text), "")


def version_in_use(versions: Sequence[PromptRow | PromptVersion]) -> int:
    """Return the number of the version in use among those of one prompt; 0 for the library's own words."""
    newest = max((one for one in versions if not one.draft), key=lambda one: one.version, default=None)
    return newest.version if newest is not None and newest.text else 0


def prompt_version(row: PromptRow) -> PromptVersion:
    """Return a stored version of a prompt as users see it."""
    digest = customized_prompt(row.name, [[replace(row, draft=False)]]).digest
    return PromptVersion(row.name, row.version, row.text, from_ms(row.since), digest, row.draft, row.percent)


def checked_prompt_name(name: object) -> str:
    """Return the name of a prompt that a user may replace; others are refused."""
    if name not in CUSTOM_PROMPTS:
        raise BadInput(f"there is no prompt {name!r} that you can replace", hint=f"use {', '.join(CUSTOM_PROMPTS)}")
    return str(name)


def checked_prompt_text(name: object, text: object) -> str:
    """Return a user's text for a prompt as it is stored; an empty or too long one is refused."""
    words = replace_unstorable(text).strip() if isinstance(text, str) else ""
    if not isinstance(text, str) or not words:
        raise BadInput(f"the prompt {checked_prompt_name(name)} needs some text", hint="reset(name) takes ours again")
    if len(text) > MAX_PROMPT_CHARS:
        raise BadInput(f"a prompt may have {MAX_PROMPT_CHARS:,} characters, this one has {len(text):,}")
    return words
