"""
The protocol of a language model: one request, one answer, in plain text.

Anything with a ``name`` and an ``ask`` is a model: a provider's in `holdfast.llm.remote`, a fake in a test, a function.
A model is called outside every transaction and may be called from several threads at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

from ..errors import HoldfastError
from ..text import dataclass

# The purpose of a call; usage is counted by it.
Layer = Literal[
    "facts",
    "character",
    "chunk_summary",
    "episodes",
    "meta_summary",
    "rolling_summary",
    "story",
    "combined",
    "statements",
    "chat",
]
Finish = Literal["stop", "length", "refusal"]


@dataclass(frozen=True, slots=True)
class Request:
    """
    One call of a model.

    ``system`` holds our instructions, ``text`` the words of users as data; the two are never mixed.
    ``prompt`` is the digest of the instructions; every row written from the answer names it.
    ``cache_key`` is stable for the same chat and range; "" sends none.  ``before`` are the earlier turns of a chat,
    oldest first: (``user`` or ``assistant``, content).
    """

    layer: Layer
    system: str
    text: str
    prompt: str
    cache_key: str = ""
    temperature: float = 0.0
    max_output_tokens: int = 1024
    timeout_s: float = 60.0
    before: tuple[tuple[str, str], ...] = ()


CHAT_TEMPERATURE = 0.7


def reply_request(messages: Sequence[Mapping[str, Any]], cache_key: str) -> Request:
    """Build the request for a reply from the messages of a context, the last of which is to be answered."""
    spoken = [(m["role"], m["content"]) for m in messages if isinstance(m.get("content"), str) and m["content"]]
    turns = [(role, words) for role, words in spoken if role in ("user", "assistant")]
    last = turns.pop()[1] if turns and turns[-1][0] == "user" else ""
    return Request(
        layer="chat",
        system="\n\n".join(words for role, words in spoken if role == "system"),
        text=last,
        prompt="",
        cache_key=cache_key,
        temperature=CHAT_TEMPERATURE,
        before=tuple(turns),
    )


@dataclass(frozen=True, slots=True)
class Answer:
    """
    An answer with its token counts: the provider's own, or estimates when ``estimated``.

    ``cached_tokens`` are the input tokens that the provider had cached.  ``cost`` is in US dollars, ``None``
    when the price is not known.
    """

    text: str
    model: str
    finish: Finish = "stop"
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    estimated: bool = False
    cost: float | None = None


@runtime_checkable
class LanguageModel(Protocol):
    """A model that answers requests."""

    @property
    def name(self) -> str:
        """Provider and model, as every row written from an answer says: ``openai:gpt-5-mini``."""

    def ask(self, request: Request) -> Answer:
        """
        Answer one request.

        Raises:
            ModelError: there is no usable answer; it says whether a retry can help.
        """


@runtime_checkable
class Priced(Protocol):
    """A model that knows its price."""

    def price(self, input_tokens: int, output_tokens: int, cached_tokens: int = 0) -> float | None:
        """Return the price of a call in US dollars; ``None`` when it is not known."""


@runtime_checkable
class KeyLimited(Protocol):
    """A model whose rate limit belongs to its key, and is shared with other models of that key."""

    @property
    def rate_limit_key(self) -> str:
        """The provider, its address and the key as one text; only its digest is stored, and it is never shown."""


@runtime_checkable
class Closable(Protocol):
    """A model that holds connections."""

    def close(self) -> None:
        """Close the connections."""


class ModelError(HoldfastError):
    """
    A call without an answer: refused connection, time-out, rate limit, server error, wrong key.

    ``transient``: the same call may work later, not before ``retry_after_s`` when that is given.
    ``setup``: no call can work until the key, the credit or the name of the model is changed.
    """

    code = "model"

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        transient: bool = True,
        retry_after_s: float | None = None,
        setup: bool = False,
    ) -> None:
        super().__init__(message, hint=hint)
        self.transient, self.retry_after_s, self.setup = transient, retry_after_s, setup


class BadAnswer(ModelError):
    """
    An answer that cannot be used: a refusal, an empty text, or not in the requested format.

    The job fails with this as its reason and is run again; ``finish`` says how the answer ended.
    """

    code = "bad-answer"

    def __init__(self, message: str, *, hint: str = "", finish: Finish = "stop") -> None:
        super().__init__(message, hint=hint or "it is tried again; jobs() shows jobs that failed for good")
        self.finish = finish
