"""
A model as the writer of derived rows: the calls of the digest, for one range at a time.

What was made of the range before is kept out of sight, so that it is read as if for the first time.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ..digest.summarize import SummaryDraft, summarize_level
from ..llm.protocol import Answer, Request
from ..reconcile.decide import Claim
from ..scope import SELF, Scope
from ..store import ReadView, Store
from ..text.tokens import count_tokens
from ..types import Candidate, Message, Summary
from .asked import Asked, spent
from .asking import Asking
from .facts import ReadFacts
from .reading import ask_for_facts, read_upto
from .sight import WINDOW_TURNS, Looking, Sight
from .telling import Telling
from .writers import Effort, Heard

PROMPTS = {
    "summaries": "chunk_summary",
    "meta": "meta_summary",
    "episodes": "episodes",
    "facts": "fact_extraction",
}
LINE_TOKENS = 24  # what rendering a line adds to its words, at most
SHOWN_TOKENS = 1_500  # what is shown beside the range (known facts, messages before it), at most


class Meter:
    """Counts what the calls of each thread took."""

    def __init__(self) -> None:
        self._local = threading.local()

    def add(self, effort: Effort) -> None:
        """Count one more call."""
        self._local.effort = getattr(self._local, "effort", Effort()) + effort

    def take(self) -> Effort:
        """What was counted in this thread, which begins anew."""
        effort = getattr(self._local, "effort", Effort())
        self._local.effort = Effort()
        return effort


@dataclass(frozen=True, slots=True)
class Metered(Asked):
    """`Asked`, with every call counted; one that failed is a call without tokens."""

    meter: Meter = field(default_factory=Meter)

    def ask(self, scope: Scope, request: Request) -> Answer:
        """One answer; see `Asking.ask`."""
        answer: Answer | None = None
        try:
            answer = self.asking.ask(scope, request)
        finally:
            tokens = spent(answer) if answer is not None else 0
            cost = self.asking.cost(answer) if answer is not None else 0.0
            self.meter.add(Effort(1, tokens, cost))
        return answer


def model_writer(store: Store, asking: Asking, reader: ReadFacts) -> Model:
    """The writer that asks by *asking* and looks with *reader*."""
    asked, looking = Metered(store, asking, reader.now_ms), Looking(reader)
    return Model(asked, Telling(asked, looking), looking)


@dataclass(frozen=True, slots=True)
class Model:
    """One model as a `Writer`; in economy mode the rules tell the levels, as in the digest."""

    asked: Metered
    telling: Telling
    looking: Looking
    by_model: bool = True

    @property
    def name(self) -> str:
        """See the protocol."""
        return self.asked.asking.model.name

    @property
    def batch_messages(self) -> int:
        """See the protocol."""
        return 2 * WINDOW_TURNS

    def makes(self, layer: str) -> bool:
        """See the protocol."""
        return True

    def chunk(self, scope: Scope, messages: Sequence[Message]) -> SummaryDraft:
        """See the protocol."""
        return self.telling.chunk(scope, messages)[0]

    def level(self, scope: Scope, children: Sequence[Summary]) -> SummaryDraft:
        """See the protocol."""
        return summarize_level(children) if self.asked.config.economy else self.telling.level(scope, children)[0]

    def facts(self, scope: Scope, span: tuple[int, int]) -> Heard:
        """See the protocol; an answer that was cut off is asked on from where it ended."""
        first, last = span
        source = self.asked.source(self.asked.prompt(scope, "fact_extraction"))
        claims: list[Claim] = []
        refused: list[tuple[Candidate, str]] = []
        whole = self._afresh(scope, span)
        while first <= last:
            sight = replace(whole, messages=[m for m in whole.messages if m.seq >= first])
            if not any(message.role == "user" for message in sight.messages):
                break
            answer, extraction, found = ask_for_facts(self.asked, self.looking, scope, sight)
            claims += found.accepted
            refused += found.refused
            first = read_upto(sight, extraction, cut=answer.finish == "length") + 1
        sentences = [claim.candidate.text for claim in claims if claim.candidate.kind == "statement"]
        return Heard(whole.epoch, source, claims, refused, self.looking.reader.means(sentences))

    def episodes(self, scope: Scope, span: tuple[int, int]) -> Heard:
        """See the protocol."""
        sight = self._afresh(scope, span)
        told, _ = self.telling.episodes(scope, sight, span)
        return Heard(
            sight.epoch, told.row.source, told.found.accepted, told.found.refused, told.found.means, noted=told.row
        )

    def effort(self, layer: str, scope: Scope, texts: Sequence[str]) -> Effort:
        """See the protocol."""
        config = self.asked.config
        if not texts or (layer == "meta" and config.economy):
            return Effort()
        prompt = self.asked.prompt(scope, PROMPTS[layer])
        fixed = count_tokens(prompt.system) + SHOWN_TOKENS
        if layer == "facts":
            fixed += count_tokens(self.looking.reader.registry.listing())
        limit = config.message_char_limit if layer != "meta" else None
        shown = fixed + sum(count_tokens(text[:limit]) + LINE_TOKENS for text in texts)
        cost = self.asked.asking.price(shown, config.max_output_tokens)
        return Effort(1, shown + config.max_output_tokens, cost)

    def spent(self) -> Effort:
        """See the protocol."""
        return self.asked.meter.take()

    def _afresh(self, scope: Scope, span: tuple[int, int]) -> Sight:
        def look(view: ReadView) -> Sight:
            sight = self.looking.span(view, *span)
            here = (view.scope.subject or SELF, view.scope.conversation)
            known = [
                row
                for row in sight.facts
                if any((e.home, e.conversation) != here or e.seq < span[0] for e in row.fact.evidence)
            ]
            told = [summary for summary in view.summaries() if summary.end_seq < span[0]]
            injected = {row.fact.text for row in known} | {line for s in told for line in s.text.splitlines()}
            return replace(sight, facts=known, injected=frozenset(injected))

        return self.asked.store.read(scope, look)
