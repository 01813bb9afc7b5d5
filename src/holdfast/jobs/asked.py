"""What every job with a model does around its call: the request, the lease, giving up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..config import Config
from ..llm.prompts import Prompt
from ..llm.protocol import Answer, BadAnswer, Layer, ModelError, Request
from ..scope import Scope
from ..store import Store
from ..types import Job
from .asking import Asking
from .gate import NotNow
from .queue import FenceLost
from .wording import worded

MARGIN_MS = 30_000
BAD_ANSWERS = 3  # about the same words, before they are left aside so that others can be read


@dataclass(frozen=True, slots=True)
class Asked:
    """One model with the settings under which jobs call it; always with no transaction open."""

    store: Store
    asking: Asking
    now_ms: Callable[[], int]

    @property
    def config(self) -> Config:
        """The settings of the memory."""
        return self.asking.config

    def prompt(self, scope: Scope, name: str) -> Prompt:
        """The instructions of that name, as they hold for the scope's user."""
        return self.store.read(scope, lambda view: worded(view, name))

    def hold(self, job: Job, scope: Scope) -> None:
        """
        Keep the claim for as long as a call may take.

        Raises:
            FenceLost: somebody else holds it.
        """
        until = self.now_ms() + round(self.config.model_timeout_s * 1000) + MARGIN_MS
        if not self.store.write(scope, lambda view: view.renew(job, until)):
            raise FenceLost

    def request(self, layer: Layer, prompt: Prompt, text: str, cache_key: str, *, more: str = "") -> Request:
        """The request; *more* follows the instructions and is the same in every call of one kind."""
        return Request(
            layer=layer,
            system=f"{prompt.system}\n\n{more}" if more else prompt.system,
            text=text,
            prompt=prompt.digest,
            cache_key=cache_key,
            max_output_tokens=self.config.max_output_tokens,
            timeout_s=self.config.model_timeout_s,
        )

    def ask(self, scope: Scope, request: Request) -> Answer:
        """One answer; see `Asking.ask`."""
        return self.asking.ask(scope, request)

    def source(self, prompt: Prompt) -> str:
        """Who wrote a row: the model and the digest of its instructions."""
        return self.asking.source(prompt.digest)


def gives_up(job: Job, error: ModelError, attempts: int) -> bool:
    """
    Whether a lane goes on without what it asked for, which then waits as a job of its own.

    Not while a budget is spent, and not for a fault that somebody has to mend: those wait, and cost no attempt.
    """
    if isinstance(error, NotNow) or error.setup:
        return False
    if not error.transient:
        return True
    return job.attempt >= (min(BAD_ANSWERS, attempts) if isinstance(error, BadAnswer) else attempts)


def spent(*answers: Answer) -> int:
    """Tokens of prompts and answers."""
    return sum(answer.input_tokens + answer.output_tokens for answer in answers)
