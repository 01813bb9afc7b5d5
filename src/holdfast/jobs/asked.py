"""What every job with a model does around its call: the request, the lease, the count of tokens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..llm.prompts import Prompt
from ..llm.protocol import Answer, Layer, Request
from ..scope import Scope
from ..store.protocol import Store
from ..types import Job
from .asking import Asking
from .queue import FenceLost

MARGIN_MS = 30_000


@dataclass(frozen=True, slots=True)
class Asked:
    """One model with the settings under which jobs call it."""

    store: Store
    asking: Asking
    now_ms: Callable[[], int]

    def hold(self, job: Job, scope: Scope) -> None:
        """
        Keep the claim for as long as a call may take.

        Raises:
            FenceLost: somebody else holds it.
        """
        until = self.now_ms() + round(self.asking.config.model_timeout_s * 1000) + MARGIN_MS
        if not self.store.write(scope, lambda view: view.renew(job, until)):
            raise FenceLost

    def request(self, layer: Layer, prompt: Prompt, text: str, cache_key: str, *, more: str = "") -> Request:
        """The request; *more* follows the instructions and is the same in every call of one kind."""
        config = self.asking.config
        system = f"{prompt.system}\n\n{more}" if more else prompt.system
        return Request(
            layer=layer,
            system=system,
            text=text,
            prompt=prompt.digest,
            cache_key=cache_key,
            max_output_tokens=config.max_output_tokens,
            timeout_s=config.model_timeout_s,
        )

    def source(self, prompt: Prompt) -> str:
        """Who wrote a row: the model and the digest of its instructions."""
        return self.asking.source(prompt.digest)


def spent(*answers: Answer) -> int:
    """Tokens of prompts and answers."""
    return sum(answer.input_tokens + answer.output_tokens for answer in answers)
