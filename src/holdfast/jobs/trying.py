"""
Trying a prompt before it is used: what it makes of a few saved chunks, beside what stands there.

Nothing is written but what the calls cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice

from ..digest.summarize import SummaryDraft
from ..errors import ConfigError
from ..llm.prompts import Prompt, load
from ..llm.protocol import ModelError
from ..reconcile.registry import same
from ..reports import PromptPreview, PromptSample
from ..scope import Scope
from ..store import ReadView
from ..types import Candidate, Fact
from .asked import Asked
from .asking import Asking
from .modelwriter import Metered, Model
from .remake import Remake, check_active
from .sight import Looking
from .telling import Telling
from .writers import Effort

LAYER = {"chunk_summary": "summaries", "meta_summary": "meta", "fact_extraction": "facts"}
RECENT_MESSAGES = 10  # read for facts where no chunk is saved yet


@dataclass(frozen=True, slots=True)
class Worded(Metered):
    """`Metered`, with other words for one prompt."""

    words: Prompt = field(kw_only=True)

    def prompt(self, scope: Scope, name: str) -> Prompt:
        """The words that are tried, or those in use."""
        return self.words if name == self.words.name else Asked.prompt(self, scope, name)


@dataclass(frozen=True, slots=True)
class Place:
    """One saved chunk: its scope, its range, and the level of the summary over it, 0 where there is none."""

    scope: Scope
    start_seq: int
    end_seq: int
    level: int


@dataclass(frozen=True, slots=True)
class Trial:
    """Tries prompts on what one store holds."""

    asking: Asking | None
    remake: Remake

    def preview(self, scope: Scope, name: str, text: str, limit: int, *, dry_run: bool) -> PromptPreview:
        """What *text* would make of the newest chunks; see `Prompts.preview`."""
        if self.asking is None:
            hint = "open the memory with llm=…, or start the server with --llm"
            raise ConfigError("the built-in rules take no prompts, so there is nothing to try", hint=hint)
        whole = scope.about(None)
        self.remake.store.read(whole, check_active)
        words = load(name).reworded(text) if text else load(name)
        asked = Worded(self.remake.store, self.asking, self.remake.now_ms, words=words)
        looking = Looking(self.remake.reader)
        model = Model(asked, Telling(asked, looking), looking)
        places = self.remake.store.read(whole, lambda view: list(islice(_places(view, name), limit)))
        take = partial(self._estimated if dry_run else self._tried, model, name)
        samples = [take(place) for place in places]
        effort = sum((Effort(one.calls, one.tokens, one.cost) for one in samples), Effort())
        return PromptPreview(
            name=name,
            digest=words.digest,
            model=model.name,
            samples=tuple(samples),
            calls=effort.calls,
            tokens=effort.tokens,
            cost=effort.cost,
            dry_run=dry_run,
        )

    def _estimated(self, model: Model, name: str, place: Place) -> PromptSample:
        def texts(view: ReadView) -> list[str]:
            if name == "meta_summary":
                return [child.text for child in self.remake.look(view, place.level, place.start_seq).children]
            return [m.content for m in view.messages(start_seq=place.start_seq, end_seq=place.end_seq)]

        effort = model.effort(LAYER[name], place.scope, self.remake.store.read(place.scope, texts))
        return _with(self._standing(name, place), effort)

    def _tried(self, model: Model, name: str, place: Place) -> PromptSample:
        before = self._standing(name, place)
        try:
            if name == "fact_extraction":
                heard = model.facts(place.scope, (place.start_seq, place.end_seq))
                after = _facts_told(before, [claim.candidate for claim in heard.claims], self._held(place))
            else:
                after = replace(before, new=self._draft(model, name, place).text)
        except ModelError as error:
            after = replace(before, error=f"{error.code}: {error.message}")
        return _with(after, model.spent())

    def _draft(self, model: Model, name: str, place: Place) -> SummaryDraft:
        seen = self.remake.store.read(place.scope, lambda view: self.remake.look(view, place.level, place.start_seq))
        if name == "chunk_summary":
            return model.chunk(place.scope, seen.messages)
        return model.telling.level(place.scope, seen.children)[0]

    def _standing(self, name: str, place: Place) -> PromptSample:
        """What stands there now, and who made it."""
        scope = place.scope
        sample = PromptSample(scope.subject or "", scope.conversation or "", place.start_seq, place.end_seq)
        if name == "fact_extraction":
            held = self._held(place)
            return replace(sample, old=_lines(fact.text for fact in held), source=", ".join(_sources(held)))
        seen = self.remake.store.read(scope, lambda view: self.remake.look(view, place.level, place.start_seq))
        row = seen.row
        return sample if row is None else replace(sample, old=row.summary.text, source=row.summary.source)

    def _held(self, place: Place) -> Sequence[Fact]:
        look = partial(self.remake.held, layer="facts", first=place.start_seq, last=place.end_seq)
        return [fact for fact in self.remake.store.read(place.scope, look) if fact.live]


def _places(view: ReadView, name: str) -> list[Place]:
    """The chunks that a prompt can be tried on, the newest first."""
    found: list[tuple[int, Place]] = []
    for row in view.conversations():
        scope = replace(view.scope, subject=row.subject, conversation=row.conversation)
        here = view.at(row.subject, row.conversation)
        told = [s for s in here.summaries() if (s.level > 1) == (name == "meta_summary")]
        found += [(row.last_at, Place(scope, s.start_seq, s.end_seq, s.level)) for s in told]
        if name == "fact_extraction" and not told and row.next_seq > 1:
            first, last = max(1, row.next_seq - RECENT_MESSAGES), row.next_seq - 1
            found.append((row.last_at, Place(scope, first, last, 0)))
    found.sort(key=lambda one: (-one[0], -one[1].end_seq))
    return [place for _, place in found]


def _facts_told(before: PromptSample, found: Sequence[Candidate], held: Sequence[Fact]) -> PromptSample:
    was, now = {_mark(one): one.text for one in held}, {_mark(one): one.text for one in found if one.op == "assert"}
    return replace(
        before,
        new=_lines(now.values()),
        gained=tuple(text for mark, text in now.items() if mark not in was),
        lost=tuple(text for mark, text in was.items() if mark not in now),
    )


def _mark(one: Candidate | Fact) -> tuple[str, ...]:
    """What makes two facts the same: the address and the value, or the words of a sentence."""
    if one.kind == "attribute":
        return (one.kind, one.subject, one.category, one.key, same(one.value))
    return (one.kind, one.subject, same(one.text))


def _sources(held: Sequence[Fact]) -> list[str]:
    return sorted({fact.source for fact in held})


def _lines(texts: Iterable[str]) -> str:
    return "\n".join(f"- {text}" for text in texts)


def _with(sample: PromptSample, effort: Effort) -> PromptSample:
    return replace(sample, calls=effort.calls, tokens=effort.tokens, cost=effort.cost)
