"""
What Holdfast asks of a language model: one request, one answer, in plain text.

Anything with a ``name`` and an ``ask`` is a model: the providers in ``providers.py``, a fake in a
test, a function of the caller's own.  A model is called outside every transaction and may be called
from several threads at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from ..errors import HoldfastError

# What a call is made for; usage is counted by it.
Layer = Literal[
    "facts", "chunk_summary", "episodes", "meta_summary", "rolling_summary", "combined", "statements", "chat"
]
Finish = Literal["stop", "length", "refusal"]


@dataclass(frozen=True, slots=True)
class Request:
    """
    One call of a model.

    ``system`` holds our instructions, ``text`` the users's words as data; the two are never mixed.
    ``prompt`` is the digest of the instructions, which every row that they wrote names.
    ``cache_key`` is stable for the same chat and range; "" sends none.  ``before`` are the turns of a chat before
    *text*, oldest first: (``user`` or ``assistant``, what was said).
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


@dataclass(frozen=True, slots=True)
class Answer:
    """
    What came back; token counts are the provider's own, or estimates when ``estimated``.

    ``cached_tokens`` are those of the input that the provider still knew.  ``cost`` is in US dollars, ``None``
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
    """A model that can be asked."""

    @property
    def name(self) -> str:
        """Provider and model, as every row that it wrote will say: ``openai:gpt-5-mini``."""

    def ask(self, request: Request) -> Answer:
        """
        Answer one request.

        Raises:
            ModelError: nothing usable came back; it says whether trying again can help.
        """


@runtime_checkable
class Priced(Protocol):
    """A model that knows its price."""

    def price(self, input_tokens: int, output_tokens: int, cached_tokens: int = 0) -> float | None:
        """What so many tokens cost in US dollars; ``None`` when that is not known."""


@runtime_checkable
class Paced(Protocol):
    """A model that is asked with a key, whose limits it shares with others of the same key."""

    @property
    def pace_key(self) -> str:
        """The provider, its address and the key, in one text that is never shown or stored, only its digest."""


@runtime_checkable
class Closable(Protocol):
    """A model that holds connections."""

    def close(self) -> None:
        """Let go of them."""


class ModelError(HoldfastError):
    """
    A model gave no answer: refused connection, time-out, a limit, a server's fault, a wrong key.

    ``transient``: the same call may work later, not before ``retry_after_s`` when that is given.
    ``setup``: no call can work until somebody changes something: the key, the credit, the name of the model.
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
    A model answered, and nothing of it can be used: a refusal, an empty text, another form than was asked for.

    The job that asked fails with this as its reason and is run again; ``finish`` says how the answer ended.
    """

    code = "bad-answer"

    def __init__(self, message: str, *, hint: str = "", finish: Finish = "stop") -> None:
        super().__init__(message, hint=hint or "it is asked again; jobs() shows what was put aside")
        self.finish = finish
