"""Trials of a prompt before it is used: its result on a few stored chunks beside the current one; nothing is written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice

from ..digest.summarize import shown_talks
from ..errors import ConfigError
from ..llm.prompts import load
from ..llm.protocol import ModelError
from ..reconcile.registry import normalize_value
from ..reports import PromptPreview, PromptSample
from ..scope import CHARACTER, Scope
from ..store import ReadView
from ..text import dataclass
from ..types import Candidate, Fact
from .model_client import CallTotals, ModelClient
from .model_reader import ModelReader
from .rebuild import RangeWriter, Rebuilder, check_active, facts_of_range
from .summaries import talks_about

LAYER_OF = {
    "chunk_summary": "summaries",
    "meta_summary": "meta",
    "fact_extraction": "facts",
    "episodes": "episodes",
    "character": "character",
    "story": "story",
}
READS = ("fact_extraction", "episodes", "character")  # what they find are facts
RECENT_MESSAGES = 10  # read for facts where there is no chunk yet


@dataclass(frozen=True, slots=True)
class TrialRange:
    """A stored chunk: its scope, its range, and the level of its summary (0 without one); for a story only its subject."""

    scope: Scope
    start_seq: int
    end_seq: int
    level: int


@dataclass(frozen=True, slots=True)
class PromptTrial:
    """The trial of a prompt with a user's model on what the store holds."""

    client: ModelClient | None
    rebuilder: Rebuilder

    def preview(self, scope: Scope, name: str, text: str, limit: int, *, dry_run: bool) -> PromptPreview:
        """Return the result of *text* on the newest chunks; see `Prompts.preview`."""
        if self.client is None:
            hint = "open the memory with llm=…, or start the server with --llm"
            raise ConfigError(
                "the built-in rules take no prompts, so there is nothing to estimate or to try", hint=hint
            )
        deps, whole = self.rebuilder.deps, scope.about(None)
        deps.store.read(whole, check_active)
        prompt = load(name).reworded(text) if text else load(name)
        fact_reader = self.rebuilder.writer.fact_reader
        writer = RangeWriter(fact_reader, ModelReader(self.client.metered(prompt), fact_reader))
        ranges = deps.store.read(whole, lambda view: list(islice(_newest_ranges(view, name), limit)))
        take = partial(self._estimate if dry_run else self._try, Rebuilder(deps, writer), name)
        samples = [take(one) for one in ranges]
        totals = sum((CallTotals(one.calls, one.tokens, one.cost) for one in samples), CallTotals())
        return PromptPreview(
            name=name,
            digest=prompt.digest,
            model=writer.name,
            samples=tuple(samples),
            calls=totals.calls,
            tokens=totals.tokens,
            cost=totals.cost,
            dry_run=dry_run,
        )

    def _estimate(self, rebuilder: Rebuilder, name: str, one: TrialRange) -> PromptSample:
        def texts(view: ReadView) -> list[str]:
            if name == "story":
                talks = talks_about(view, rebuilder.deps).told
                return [summary.text for talk in shown_talks(talks) for summary in talk]
            if name == "meta_summary":
                return [child.text for child in rebuilder.sources(view, one.level, one.start_seq).children]
            return [m.content for m in view.messages(start_seq=one.start_seq, end_seq=one.end_seq)]

        totals = rebuilder.writer.estimate(LAYER_OF[name], one.scope, rebuilder.deps.store.read(one.scope, texts))
        return _with_totals(self._current(name, one), totals)

    def _try(self, rebuilder: Rebuilder, name: str, one: TrialRange) -> PromptSample:
        before, writer = self._current(name, one), rebuilder.writer
        try:
            if name in READS:
                read = {"episodes": writer.read_episodes, "character": writer.read_character}.get(
                    name, writer.read_facts
                )
                reading = read(one.scope, (one.start_seq, one.end_seq))
                found = [claim.candidate for claim in reading.claims]
                after = _with_facts(before, found, self._live_facts(one, name))
            else:
                after = replace(before, new=self._summary(rebuilder, name, one))
        except ModelError as error:
            after = replace(before, error=f"{error.code}: {error.message}")
        return _with_totals(after, writer.take_totals())

    def _summary(self, rebuilder: Rebuilder, name: str, one: TrialRange) -> str:
        deps, reader = rebuilder.deps, rebuilder.writer.reader
        assert reader is not None
        if name == "story":
            talks = deps.store.read(one.scope, lambda view: talks_about(view, deps).told)
            lines, _, _ = reader.tell_story(one.scope, talks)
            return "\n".join(line.dated for line in lines)
        seen = deps.store.read(one.scope, lambda view: rebuilder.sources(view, one.level, one.start_seq))
        if name == "chunk_summary":
            return reader.summarize_chunk(one.scope, seen.messages)[0].text
        return reader.summarize_level(one.scope, seen.children)[0].text

    def _current(self, name: str, one: TrialRange) -> PromptSample:
        """Return the sample with what is there now, and its source."""
        scope = one.scope
        sample = PromptSample(scope.subject or "", scope.conversation or "", one.start_seq, one.end_seq)
        if name in READS:
            facts = self._live_facts(one, name)
            sources = sorted({fact.source for fact in facts})
            return replace(sample, old=_lines(fact.text for fact in facts), source=", ".join(sources))
        deps, rebuilder = self.rebuilder.deps, self.rebuilder
        if name == "story":
            stories = deps.store.read(scope, lambda view: view.stories())
            return replace(sample, old=stories[0].text, source=stories[0].source) if stories else sample
        row = deps.store.read(scope, lambda view: rebuilder.sources(view, one.level, one.start_seq)).row
        return sample if row is None else replace(sample, old=row.summary.text, source=row.summary.source)

    def _live_facts(self, one: TrialRange, name: str) -> Sequence[Fact]:
        layer = "episodes" if name == "episodes" else "facts"
        look = partial(facts_of_range, layer=layer, first=one.start_seq, last=one.end_seq)
        facts = [fact for fact in self.rebuilder.deps.store.read(one.scope, look) if fact.live]
        played = [fact for fact in facts if fact.subject == CHARACTER]
        return played if name == "character" else [fact for fact in facts if fact not in played]


def _newest_ranges(view: ReadView, name: str) -> list[TrialRange]:
    """Return the chunks that a prompt can be tried on, the newest first."""
    if name == "story":
        return [TrialRange(view.scope.about(story.subject), 0, 0, 0) for story in view.stories()]
    found: list[tuple[int, TrialRange]] = []
    for row in view.conversations():
        scope = replace(view.scope, subject=row.subject, conversation=row.conversation)
        here = view.at(row.subject, row.conversation)
        summaries = [s for s in here.summaries() if (s.level > 1) == (name == "meta_summary")]
        found += [(row.last_at, TrialRange(scope, s.start_seq, s.end_seq, s.level)) for s in summaries]
        if name in READS and not summaries and row.next_seq > 1:
            first, last = max(1, row.next_seq - RECENT_MESSAGES), row.next_seq - 1
            found.append((row.last_at, TrialRange(scope, first, last, 0)))
    found.sort(key=lambda one: (-one[0], -one[1].end_seq))
    return [one for _, one in found]


def _with_facts(before: PromptSample, found: Sequence[Candidate], held: Sequence[Fact]) -> PromptSample:
    was = {_identity(one): one.text for one in held}
    now = {_identity(one): one.text for one in found if one.op == "assert"}
    return replace(
        before,
        new=_lines(now.values()),
        gained=tuple(text for key, text in now.items() if key not in was),
        lost=tuple(text for key, text in was.items() if key not in now),
    )


def _identity(one: Candidate | Fact) -> tuple[str, ...]:
    """Return what makes two facts the same: the address and the value, or the words of a sentence."""
    if one.kind == "attribute":
        return (one.kind, one.subject, one.category, one.key, normalize_value(one.value))
    return (one.kind, one.subject, normalize_value(one.text))


def _lines(texts: Iterable[str]) -> str:
    return "\n".join(f"- {text}" for text in texts)


def _with_totals(sample: PromptSample, totals: CallTotals) -> PromptSample:
    return replace(sample, calls=totals.calls, tokens=totals.tokens, cost=totals.cost)
