"""
Ask the model on somebody's behalf: within the budget, with the settings, and with what it used on record.

It is called with no transaction open.  The record is written right after the call, in a transaction of its
own, so that a job which is discarded afterwards has still been paid for visibly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from hashlib import sha256

from ..config import Config
from ..errors import ConfigError
from ..llm.protocol import Answer, BadAnswer, KeyLimited, LanguageModel, ModelError, Priced, Request
from ..observing import Observed
from ..scope import Scope
from ..store import Store, UsageRow
from ..text.tokens import count_tokens
from .gate import Gate, day_of
from .pace import Pace
from .usage import counted, record, tell_tokens


@dataclass(frozen=True, slots=True)
class Asking:
    """
    One model, as every part of the background work asks it; safe to use from any thread.

    ``label`` stands for its name where others read, for models that users brought.
    """

    store: Store
    config: Config
    model: LanguageModel
    now_ms: Callable[[], int]
    observed: Observed = field(default_factory=Observed)
    label: str = ""
    gate: Gate = field(init=False)
    pace: Pace = field(init=False)

    def __post_init__(self) -> None:
        budgets = (self.config.budget, self.config.budget_org, self.config.budget_user)
        in_money = any(budget is not None and budget.usd_per_day is not None for budget in budgets)
        if in_money and self.price(1, 1) is None:
            name = self.model.name
            hint = f'name it: Config(prices={{"{name}": Price(input=…, output=…)}}), or set tokens_per_day'
            raise ConfigError(f"a budget in dollars needs the price of {name}, which is not known", hint=hint)
        object.__setattr__(self, "gate", Gate(self.store, self.config, self.model.name))
        key = self.model.rate_limit_key if isinstance(self.model, KeyLimited) else self.model.name
        pace_id = sha256(key.encode()).hexdigest()[:32]
        object.__setattr__(self, "pace", Pace(self.store, self.config, pace_id, self.now_ms))

    def ask(self, scope: Scope, request: Request) -> Answer:
        """
        One answer; the time limit is that of the settings, and a short prompt goes without a cache key.

        Raises:
            NotNow: a budget is spent, a limit reached, or the model asked to be left alone; nothing was sent.
            ModelError: the model gave no answer.
        """
        now_ms = self.now_ms()
        self.gate.check(scope, now_ms)
        keyed = request.cache_key if self._cached(request) else ""
        expected = self._expected(request)
        self.pace.enter(expected)
        answer: Answer | None = None
        try:
            answer = self.model.ask(replace(request, cache_key=keyed, timeout_s=self.config.model_timeout_s))
        except ModelError as error:
            self.gate.failed(error, now_ms)
            provider = self.label or self.model.name.partition(":")[0]
            self.observed("model.failed", f"{provider}/{failure(error)}", 1)
            self.pace.failed(error)
            raise
        finally:
            self._record(scope, request, answer, day_of(now_ms))
        self.pace.left(expected, answer.input_tokens + answer.output_tokens)
        return answer

    def price(self, input_tokens: int, output_tokens: int, cached_tokens: int = 0) -> float | None:
        """US dollars for so many tokens; ``None`` when the price is not known."""
        own = self.config.prices.get(self.model.name)
        if own is not None:
            return own.of(input_tokens, output_tokens, cached_tokens)
        return self.model.price(input_tokens, output_tokens, cached_tokens) if isinstance(self.model, Priced) else None

    def cost(self, answer: Answer) -> float | None:
        """US dollars for one answer; ``None`` when the price is not known."""
        own = self.model.name in self.config.prices or answer.cost is None
        return self.price(answer.input_tokens, answer.output_tokens, answer.cached_tokens) if own else answer.cost

    def source(self, digest: str) -> str:
        """What a row says about who wrote it, given the digest of the prompt."""
        return f"{self.model.name} {digest}"

    def _expected(self, request: Request) -> int:
        """Tokens of a request and the longest answer that it may get; 0 where nobody counts them."""
        if self.pace.limits.tokens is None:
            return 0
        said = sum(count_tokens(text) for _, text in request.before)
        return count_tokens(request.system) + count_tokens(request.text) + said + request.max_output_tokens

    def _cached(self, request: Request) -> bool:
        if not self.config.prompt_cache or not request.cache_key:
            return False
        return count_tokens(request.system) + count_tokens(request.text) >= self.config.prompt_cache_min_tokens

    def _record(self, scope: Scope, request: Request, answer: Answer | None, day: str) -> None:
        row = UsageRow(day, request.layer, self.model.name, calls=1, failed=int(answer is None))
        if answer is not None:
            used = (answer.input_tokens, answer.output_tokens, answer.cached_tokens)
            row = counted(row, used, self.cost(answer))
        record(self.store, scope, row, self.config.usage_days)
        self.gate.used(scope, row)
        tell_tokens(self.observed, self.label or self.model.name, row)


def failure(error: ModelError) -> str:
    """What kind of failure it was: a bad answer, one that time or only a user mends, or none of these."""
    if isinstance(error, BadAnswer):
        return "bad-answer"
    return "setup" if error.setup else "transient" if error.transient else "refused"
