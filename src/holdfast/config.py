"""
All settings, in one frozen value.  A name carries the unit; the defaults suit most uses.

Nothing is read from the environment or from a file: pass a ``Config`` to ``Memory``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from .errors import ConfigError
from .types import Budget, Detector, Price


def told(doc: str, least: float | None = None, most: float | None = None) -> dict[str, Any]:
    """Return the sentence and the bounds of a setting, for docs and checks."""
    return {"doc": doc, "least": least, "most": most}


def setting(default: Any, doc: str, *, least: float | None = None, most: float | None = None) -> Any:
    """Make a dataclass field with its sentence and its bounds."""
    return field(default=default, metadata=told(doc, least, most))


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """
    The settings of one ``Memory``.  Raises ``ConfigError`` when a value is out of its bounds.
    """

    chunk_messages: int = setting(
        10,
        "Messages after which a chunk may close, at the next exchange; of short messages three times as many.",
        least=10,
    )
    chunk_tokens: int = setting(
        600, "Tokens that a chunk of so many messages holds at least, so that its summary is worth its call.", least=1
    )
    chunk_max_tokens: int = setting(
        3_000, "Tokens after which a chunk closes at the next exchange, however few its messages are.", least=100
    )
    chunk_exchanges: int = setting(15, "Exchanges after which a chunk closes in any case.", least=5)
    chunk_gap_minutes: int = setting(
        360,
        "Silence after which a new session begins and a chunk closes that holds half of chunk_messages and of chunk_tokens.",
        least=1,
    )
    rollup_summaries: int = setting(3, "Summaries of level n that are joined into one of level n+1.", least=2)
    recent_messages: int = setting(
        20, "Recent messages shown verbatim in a layered context; the last two turns always are.", least=2
    )
    recall_limit: int = setting(60, "Maximum number of recalled items in a context.", least=0)
    recall_min_relevance: float = setting(
        0.35,
        "Relevance that the best hit needs for a context to recall anything; beside it, facts need half of that and turns a tenth.",
        least=0,
        most=1,
    )
    memory_instruction: str = setting(
        "Use it naturally and do not recite it.",
        "Sentence that tells the model in every context how to use what is known about the user; empty for none.",
    )
    min_confidence: float = setting(0.7, "Candidates below this confidence are rejected.", least=0, most=1)
    max_memories: int = setting(
        500, "Maximum number of active facts of one user; the weakest beyond it are archived, not lost.", least=1
    )
    decay_half_life_days: float = setting(
        30, "Days after which a fact that is neither stated nor used is half as strong.", least=0.01
    )
    archive_faded: bool = setting(
        True, "Archive statements and episodes that faded: not said, learned or used for four half-lives and more."
    )
    consolidate_similarity: float | None = setting(
        None,
        "Cosine from which statements may be merged; None uses the value calibrated for the embedder.",
        least=0,
        most=1,
    )
    budget_tokens: int = setting(4000, "Tokens that a context may use if the call names no budget.", least=1)
    max_message_chars: int = setting(4_000_000, "Maximum length of a message; a longer one is refused.", least=1)
    language: str | None = setting(None, "Language of the messages (ISO 639-1); None detects it.")
    job_lease_ms: int = setting(
        60_000, "Time for which a worker holds a job before another may take it over.", least=100
    )
    job_attempts: int = setting(5, "Failures after which a job is dead.", least=1)
    job_backoff_ms: int = setting(2_000, "Wait after a job's first failure; it doubles with each further one.", least=0)
    backfill_delay_ms: int = setting(500, "Pause between two calls of a model during a backfill.", least=0)
    workers: int = setting(2, "Background threads of Memory(background=True).", least=1)
    busy_timeout_ms: int = setting(
        30_000, "Time for which a write waits for another process on the same file.", least=0
    )
    store_connections: int = setting(10, "Maximum number of connections of one Memory to a PostgreSQL server.", least=1)
    store_prepares: bool = setting(
        True, "Keep prepared statements on a PostgreSQL server; use False behind a pooler that does not support them."
    )
    statement_timeout_ms: int = setting(
        60_000,
        "Time that a PostgreSQL server may spend on one statement about a user; 0 for no limit.",
        least=0,
    )
    durable: bool = setting(
        True, "Sync the disk before a write is acknowledged; with False, a power cut may lose the last writes."
    )
    index_cache_mb: int = setting(64, "Memory for cached search indexes of users; 0 disables the cache.", least=0)
    reembed: bool = setting(
        True,
        "After a change of embedder, embed the texts of all users again; with False, only those of users with new messages.",
    )
    redact_messages: bool = setting(
        False, "Remove cards, passwords, and keys from the stored message as well, not only from derived data."
    )
    detectors: tuple[Detector, ...] = setting(
        (), "Additional detectors of text that must not be remembered; see Detector."
    )
    extract_every_user_turns: int = setting(
        5, "With a model: user messages after which it extracts facts; sooner if a message states something.", least=1
    )
    economy: bool = setting(
        False, "With a model: one combined call per chunk instead of one per layer; cheaper, but facts come later."
    )
    character_facts: bool = setting(
        False,
        "With a model: also learn what the assistant says of the character that it plays, as facts about the subject `assistant`.",
    )
    message_char_limit: int = setting(1_200, "Characters of one message that a model sees; the rest is cut.", least=40)
    max_output_tokens: int = setting(1_024, "Maximum number of tokens in a model's answer.", least=16)
    model_timeout_s: float = setting(60.0, "Time that one call of a model may take.", least=0.1)
    model_requests_per_minute: int | None = setting(
        None, "Requests per minute with one key of a provider, for all processes of a store together.", least=1
    )
    model_tokens_per_minute: int | None = setting(
        None, "Tokens per minute with one key of a provider, for all processes of a store together.", least=1
    )
    prompt_cache: bool = setting(
        True, "Ask the provider to cache the beginnings of prompts, where it accepts a key for that."
    )
    prompt_cache_min_tokens: int = setting(1_024, "Prompts shorter than this are sent without a cache key.", least=0)
    prompt_cache_retention: Literal["24h", "in_memory"] = setting(
        "24h", "How long the provider should cache: 24h or in_memory; it gets the nearest value that it supports."
    )
    prices: Mapping[str, Price] = field(
        default_factory=dict,
        metadata=told(
            "Prices by model (such as `openai:gpt-5-mini`); they take precedence over the installed table; see Price."
        ),
    )
    budget: Budget | None = field(
        default=None, metadata=told("Limit per day for models in the whole memory; see Budget.")
    )
    budget_org: Budget | None = field(default=None, metadata=told("Limit per day for models of one org."))
    budget_user: Budget | None = field(default=None, metadata=told("Limit per day for models of one user."))
    allow_private_endpoints: tuple[str, ...] = setting(
        (),
        "Private hosts and networks to which keys of users and orgs may be sent, "
        "such as `localhost:11434`, `ollama.internal`, or `10.0.0.0/8`.",
    )
    usage_days: int = setting(400, "Days for which the usage of models is kept.", least=1)
    event_rows: int = setting(
        10_000, "Events of one user that are kept; up to 256 more wait for their removal.", least=256
    )
    event_days: int = setting(90, "Days after which an event is removed, at the next event.", least=1)
    scrub_mb: int = setting(
        200, "Largest file that is rewritten and searched after an erasure; see ErasureReceipt.", least=0
    )
    categories: Mapping[str, Mapping[str, Any]] = field(
        default_factory=dict, metadata=told("Additional fact categories, in the format of the registry file.")
    )

    def __post_init__(self) -> None:
        for item in fields(self):
            value, least, most = getattr(self, item.name), item.metadata["least"], item.metadata["most"]
            if value is None or least is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise ConfigError(f"Config.{item.name} must be a number, not {type(value).__name__}")
            if value < least or (most is not None and value > most):
                bounds = f"at least {least}" if most is None else f"from {least} to {most}"
                raise ConfigError(f"Config.{item.name} is {value}; it must be {bounds}")
        for name in ("budget", "budget_org", "budget_user"):
            _check_budget(name, getattr(self, name))
        for name, price in self.prices.items():
            if not isinstance(price, Price) or min(price.input, price.output, price.cached or 0) < 0:
                raise ConfigError(f"Config.prices[{name!r}] must be a Price of dollars a million tokens")
        if self.prompt_cache_retention not in ("24h", "in_memory"):
            raise ConfigError(
                f"Config.prompt_cache_retention is {self.prompt_cache_retention!r}; it must be 24h or in_memory"
            )


def _check_budget(name: str, budget: object) -> None:
    if budget is None:
        return
    if not isinstance(budget, Budget) or (budget.tokens_per_day is None and budget.usd_per_day is None):
        raise ConfigError(f"Config.{name} must be a Budget with a limit", hint="Budget(tokens_per_day=1_000_000)")
    if (budget.tokens_per_day or 0) < 0 or (budget.usd_per_day or 0) < 0:
        raise ConfigError(f"Config.{name} must not be negative")
