"""
Seven strategies that choose the content of a context.

                   what it keeps                     tokens           lost                  extra calls
    Buffer         everything                        grow for ever    nothing               none
    Window         the last exchanges                fixed            older messages        none
    TokenBuffer    what fits into so many tokens     fixed            older messages        none
    Summary        a summary and the last exchanges  near constant    details               one an exchange
    SummaryBuffer  a summary, then recent messages   bounded          details of old ones   one an overflow
    Facts          facts and the last exchanges   near constant    what no fact says     none
    Layered        summaries, facts, what is         the budget       nothing for good:     none for the reply
                   recalled, recent messages                          it can be recalled

With a memory: ``memory.conversation(…, strategy=Window(5))`` or ``chat.context(strategy=Window(5))``, or their names: ``"window/5"``.
Over messages alone, all but the last two: ``Window(5).apply(store.load("s1"))``.

The extra calls are those of ``summarize``: a function of yours, or `summarize_with` a model.  Without one a
built-in summariser picks sentences that were said and says so (its source is ``rules 1``); it calls no model.
"""

from __future__ import annotations

import inspect
import logging
import sys
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import Literal

from ...config import Config
from ...context import classic
from ...context.assemble import Layered, Strategy
from ...context.classic import Buffer, Facts, TokenBuffer, Window, check_messages, choose_messages
from ...context.material import Count, TokenMeter
from ...context.turns import opening_messages
from ...digest.answers import numbers_in, parse_rolling_summary
from ...digest.slots import numbers_said
from ...digest.summarize import extend_rolling_summary
from ...errors import BadInput, ConfigError
from ...ingest.redact import mask_messages
from ...llm import Function, model_of
from ...llm.prompts import format_sections, load, message_lines
from ...llm.protocol import LanguageModel, ModelError, Request
from ...text import dataclass
from ...text.terms import count_tokens
from ...text.validate import MessageLike
from ...types import Message, RollingSummary

__all__ = [
    "Buffer",
    "Facts",
    "Layered",
    "Strategy",
    "Summary",
    "SummaryBuffer",
    "TokenBuffer",
    "Window",
    "summarize_with",
]

log = logging.getLogger("holdfast")

ROLLING: Literal["rolling_summary"] = "rolling_summary"

Summarize = Callable[[str, list[Message]], str]
"""The summary so far (empty at first) and the messages after it → the new summary."""


def summarize_with(llm: str | Function | LanguageModel, config: Config | None = None) -> Summarize:
    """
    Return a ``summarize`` that has a model write one running summary of a whole conversation.

        Summary(4, summarize=summarize_with("openai:gpt-5-mini"))

    It sees the summary so far and the messages after it.  A summary in a language that is not spoken there, a
    refusal or a failed call leaves the summary as it was; the next exchange tries again.

    Args:
        llm: what ``Memory(llm=…)`` takes.
        config: limits of prompts and answers; the defaults when not given.

    Raises:
        ConfigError: it is no model, or the provider's package or key is missing.
    """
    config = config or Config()
    model = model_of(llm, config)
    if model is None:
        raise ConfigError("there is no model to summarize with", hint='pass "provider:model", a function or a model')
    return ByModel(model, config)


@dataclass(frozen=True, slots=True)
class ByModel:
    """A summarizer that asks a model; `summarize_with` returns it."""

    model: LanguageModel
    config: Config

    @property
    def source(self) -> str:
        """Return the writer: the model and the digest of its instructions."""
        return f"{self.model.name} {load(ROLLING).digest}"

    def __call__(self, before: str, messages: list[Message]) -> str:
        """
        The new summary.

        Raises:
            ModelError: the model gave none that can be used.
        """
        prompt, config = load(ROLLING), self.config
        told = mask_messages(messages, config.detectors)
        lines = message_lines(told, config.message_char_limit)
        request = Request(
            layer=ROLLING,
            system=prompt.system,
            text=format_sections([("summary", [before] if before else []), ("read", lines)]),
            prompt=prompt.digest,
            max_output_tokens=config.max_output_tokens,
            timeout_s=config.model_timeout_s,
        )
        spoken = [before, *(message.content for message in told)]
        numbers = numbers_in([before, *lines]).union(*map(numbers_said, told))
        return parse_rolling_summary(self.model.ask(request), spoken, numbers)


@dataclass(frozen=True, slots=True)
class Summary(classic.Summarized):
    """
    A summary of everything but the last *exchanges* exchanges, and these verbatim.

    ``summarize`` writes the summary over messages alone: it is given the summary so far and the
    messages that are to go into it, once an exchange.  A memory uses its own summaries instead.
    """

    summarize: Summarize | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        classic.Summarized.__post_init__(self)
        _check_summarize(self.summarize)

    def fold(
        self,
        messages: Sequence[MessageLike],
        summary: RollingSummary | None = None,
        *,
        budget_tokens: int | None = None,
        count: Count | None = None,
    ) -> RollingSummary:
        """
        *summary* brought up to date: what is no longer among the last exchanges goes into it.

        Args:
            messages: the whole conversation, oldest first.
            summary: what the last call returned for this conversation.
            budget_tokens: what `apply` will be called with.
            count: how tokens are counted; by an estimate when not given.

        Raises:
            BadInput: a message cannot be used, or ``summarize`` returned no text.
        """
        return _fold(self, self.summarize, messages, summary, budget_tokens, count)

    def apply(
        self,
        messages: Sequence[MessageLike],
        *,
        budget_tokens: int | None = None,
        summary: RollingSummary | None = None,
        count: Count | None = None,
    ) -> list[Message]:
        """
        Return what a model should see of *messages*: the summary as one message, and those that it does not cover.

        Args:
            messages: the whole conversation, oldest first.
            budget_tokens: never exceeded; no bound when not given.
            summary: what `fold` returned; it is shown unchanged.  Without it one is made here.
            count: how tokens are counted; by an estimate when not given.

        Raises:
            BadInput: the budget is below 1, or a message cannot be used.
        """
        return _apply(self, self.summarize, messages, summary, budget_tokens, count)


@dataclass(frozen=True, slots=True)
class SummaryBuffer(classic.SummaryBuffered):
    """
    Recent messages verbatim while they stay within *tokens*; what overflows goes into a summary.

    An overflow moves so many messages into the summary that half of the room is free again, so
    that ``summarize`` (see `Summary`) is seldom called.  A memory uses its own summaries instead.
    """

    summarize: Summarize | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        classic.SummaryBuffered.__post_init__(self)
        _check_summarize(self.summarize)

    def fold(
        self,
        messages: Sequence[MessageLike],
        summary: RollingSummary | None = None,
        *,
        budget_tokens: int | None = None,
        count: Count | None = None,
    ) -> RollingSummary:
        """*summary* brought up to date when the messages after it overflow; see `Summary.fold`."""
        return _fold(self, self.summarize, messages, summary, budget_tokens, count)

    def apply(
        self,
        messages: Sequence[MessageLike],
        *,
        budget_tokens: int | None = None,
        summary: RollingSummary | None = None,
        count: Count | None = None,
    ) -> list[Message]:
        """Return what a model should see of *messages*; see `Summary.apply`."""
        return _apply(self, self.summarize, messages, summary, budget_tokens, count)


def _check_summarize(given: object) -> None:
    """
    Check a function that summarizes when it is given, not when it is first needed.

    Raises:
        ConfigError: it is no plain function.
    """
    if isinstance(given, str):
        raise ConfigError("summarize is the name of a model", hint=f"write summarize=summarize_with({given!r})")
    if given is not None and not callable(given):
        raise ConfigError(f"summarize must be a function, not {type(given).__name__}")
    if inspect.iscoroutinefunction(given) or inspect.iscoroutinefunction(getattr(type(given), "__call__", None)):  # noqa: B004
        raise ConfigError(
            "summarize is async", hint="a plain function does: it runs in a thread, and no reply waits for it"
        )


KINDS: classic.Kinds = {**classic.KINDS, "summary": Summary, "summary_buffer": SummaryBuffer}
"""What a text may name where there is no memory to write the summaries."""


def _fold(
    strategy: Summary | SummaryBuffer,
    summarize: Summarize | None,
    given: Sequence[MessageLike],
    summary: RollingSummary | None,
    budget_tokens: int | None,
    count: Count | None,
) -> RollingSummary:
    messages = [replace(message, seq=seq) for seq, message in enumerate(check_messages(given), 1)]
    room = sys.maxsize if budget_tokens is None else budget_tokens
    before = summary if summary is not None and summary.through <= len(messages) else RollingSummary()
    through = strategy.summary_through(messages, before.through, room, TokenMeter(count or count_tokens))
    if through == before.through:
        return before
    if summarize is None:
        return extend_rolling_summary(before, messages, through)
    try:
        text = summarize(before.text, messages[max(before.through, len(opening_messages(messages))) : through])
    except ModelError as error:
        log.warning("the summary stays as it was: %s", error)
        return before
    if not isinstance(text, str):
        raise BadInput(f"summarize must return text, not {type(text).__name__}")
    if not text.strip():
        log.warning("the summary stays as it was: summarize returned an empty text")
        return before
    named = getattr(summarize, "source", None) or getattr(summarize, "__qualname__", type(summarize).__name__)
    return RollingSummary(text, through, str(named))


def _apply(
    strategy: Summary | SummaryBuffer,
    summarize: Summarize | None,
    given: Sequence[MessageLike],
    summary: RollingSummary | None,
    budget_tokens: int | None,
    count: Count | None,
) -> list[Message]:
    messages = check_messages(given)
    if summary is None:
        summary = _fold(strategy, summarize, messages, None, budget_tokens, count)
    return choose_messages(strategy, messages, budget_tokens=budget_tokens, summary=summary, count=count)
