"""A function of the caller's own as a model: messages in, text out, like everything that `with_memory` wraps."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from ..errors import ConfigError
from ..text.tokens import count_tokens
from .protocol import Answer, ModelError, Request

Messages = Sequence[Mapping[str, str]]
Function = Callable[[Messages], str | Answer]


@dataclass(frozen=True, slots=True)
class FunctionModel:
    """
    Calls ``function(messages)`` with a system and a user message in OpenAI's shape, a chat's turns between them.

    It returns text, or an `Answer` when it knows what the call used; tokens are estimated otherwise.
    """

    function: Function
    name: str

    def ask(self, request: Request) -> Answer:
        """
        See `LanguageModel`.

        Raises:
            ModelError: the function returned something else, or could not reach its model.
        """
        before = ({"role": role, "content": content} for role, content in request.before)
        system, text = {"role": "system", "content": request.system}, {"role": "user", "content": request.text}
        messages = ((system,) if request.system else ()) + (*before, text)
        try:
            said = self.function(messages)
        except OSError as error:  # refused connections and time-outs are among them
            raise ModelError(f"{self.name} failed: {type(error).__name__}", hint="it is tried again") from error
        if isinstance(said, Answer):
            return replace(said, model=said.model or self.name)
        if not isinstance(said, str):
            hint = "let it return the model's text, or a holdfast.llm.Answer"
            raise ModelError(f"{self.name} returned a {type(said).__name__}", hint=hint, transient=False)
        asked = sum(count_tokens(message["content"]) for message in messages)
        return Answer(said, self.name, input_tokens=asked, output_tokens=count_tokens(said), estimated=True)


def from_function(function: Function) -> FunctionModel:
    """
    A model out of a function; it is named ``function:`` and its own name.

    Raises:
        ConfigError: it is a coroutine function.
    """
    call = function if inspect.isroutine(function) else type(function).__call__
    if inspect.iscoroutinefunction(call):
        raise ConfigError("llm is an async function", hint="pass a plain one; it is called in threads")
    return FunctionModel(function, f"function:{getattr(function, '__name__', type(function).__name__)}")
