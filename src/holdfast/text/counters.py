"""Counts of tokens that are nearer to a model's own than the estimate."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any

from ..errors import ConfigError
from .tokens import MESSAGE_OVERHEAD_TOKENS, count_tokens

Count = Callable[[str], int]

# A budget must hold, so the factor follows a rise at once by half and a fall slowly.
RISE, FALL = 0.5, 0.1
LEAST_FACTOR, MOST_FACTOR = 0.5, 3.0


class CalibratedCounter:
    """
    An estimate that learns from what providers report, for each model by itself.

        count = CalibratedCounter()
        context = chat.context(question, count=count)
        count.learn(context.messages, response.usage.prompt_tokens, model=response.model)

    The factor between the two is a moving average of reported / estimated, within 0.5 and 3, so
    that one odd report (a picture in the prompt, tools that the estimate does not see) moves it
    little for long.  Counts for the model that was learned last; `of` counts for a named one.
    Safe to use from several threads.
    """

    def __init__(self, base: Count = count_tokens) -> None:
        """Start from *base*, which is taken as it is until something was learned."""
        self._base = base
        self._lock = threading.Lock()
        self._factors: dict[str, float] = {}
        self._model = ""

    def __call__(self, text: str) -> int:
        """Tokens of *text* for the model that was learned last."""
        return self._scaled(text, self._factors.get(self._model, 1.0))

    def of(self, model: str) -> Count:
        """A count for *model*, which goes on learning."""
        return lambda text: self._scaled(text, self._factors.get(model, 1.0))

    def factor(self, model: str) -> float:
        """What the estimate is multiplied with for *model*; 1 before anything was learned."""
        return self._factors.get(model, 1.0)

    def learn(self, messages: Iterable[Mapping[str, Any]], prompt_tokens: int, *, model: str = "") -> None:
        """
        Take note that a provider counted *prompt_tokens* for *messages*, in OpenAI's shape.

        Messages too short to tell anything (below 50 tokens) are passed over.
        """
        estimated = sum(self._base(_words(message)) + MESSAGE_OVERHEAD_TOKENS for message in messages)
        if prompt_tokens < 1 or estimated < 50:
            return
        seen = min(MOST_FACTOR, max(LEAST_FACTOR, prompt_tokens / estimated))
        with self._lock:
            known = self._factors.get(model)
            weight = RISE if known is not None and seen > known else FALL
            self._factors[model] = seen if known is None else known + weight * (seen - known)
            self._model = model

    def _scaled(self, text: str, factor: float) -> int:
        return math.ceil(self._base(text) * factor)


class TiktokenCounter:
    """
    OpenAI's own tokenizer, from the extra ``tiktoken``.

    *encoding* is the name of an encoding or a model, or an encoding itself.  A named one is
    downloaded by tiktoken on first use.
    """

    def __init__(self, encoding: Any = "o200k_base") -> None:
        """
        Load *encoding*.

        Raises:
            ConfigError: tiktoken is not installed, or knows no such encoding or model.
        """
        self._encoding = _encoding(encoding) if isinstance(encoding, str) else encoding

    def __call__(self, text: str) -> int:
        """Tokens of *text*; what looks like a special token is counted as the text it is."""
        return len(self._encoding.encode(text, disallowed_special=()))


def _encoding(name: str) -> Any:
    try:
        tiktoken = import_module("tiktoken")
    except ImportError:
        raise ConfigError("tiktoken is not installed", hint="pip install 'holdfast[tiktoken]'") from None
    try:
        if name in tiktoken.list_encoding_names():
            return tiktoken.get_encoding(name)
        return tiktoken.encoding_for_model(name)
    except KeyError:
        raise ConfigError(f"tiktoken knows no encoding or model {name!r}", hint="try o200k_base") from None


def _words(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    calls = message.get("tool_calls")
    return (content if isinstance(content, str) else "") + (str(calls) if calls else "")
