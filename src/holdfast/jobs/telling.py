"""
A model tells one range: a summary, the episodes of its messages, or both and the facts in one call.

Every method of `Telling` is one call, with no transaction open; what it returns was looked at and can be written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ..digest import episode_answers, fact_answers
from ..digest.answers import answer_text, build_summary, numbers_in, parse_parts, parse_summary
from ..digest.chunk import count_exchanges
from ..digest.episode_answers import ParsedEpisodes
from ..digest.fact_answers import Extraction
from ..digest.grounding import numbers_said
from ..digest.prompt_lines import format_sections, message_lines, summary_lines
from ..digest.summarize import SummaryDraft
from ..llm.protocol import BadAnswer
from ..scope import SELF, Scope
from ..store import EpisodesRow
from ..types import Message, Summary
from .asked import Asked, spent
from .sight import BRIEF_CHARS, Found, Looking, Sight, about

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Episodes:
    """The episodes of a range, and the row that says that they were asked for."""

    row: EpisodesRow
    found: Found


@dataclass(frozen=True, slots=True)
class Parts:
    """What one answer said about a range; ``None`` for a part that it does not hold, or that cannot be used."""

    draft: SummaryDraft | None
    episodes: Episodes | None
    facts: Found | None


@dataclass(frozen=True, slots=True)
class Telling:
    """Asks one model about ranges of conversations."""

    asked: Asked
    looking: Looking

    def chunk(self, scope: Scope, messages: Sequence[Message]) -> tuple[SummaryDraft, int]:
        """
        The summary of a chunk, and the tokens it took.

        Raises:
            ModelError: there is none.
        """
        prompt = self.asked.prompt(scope, "chunk_summary")
        lines = message_lines(messages, self.asked.config.message_char_limit)
        text = format_sections([*about(scope), ("read", lines)])
        key = f"summary:{scope.conversation}:{messages[0].seq}-{messages[-1].seq}"
        answer = self.asked.ask(scope, self.asked.request("chunk_summary", prompt, text, key))
        spoken = [message.content for message in messages]
        exchanges = count_exchanges(messages)
        source, numbers = self.asked.source(prompt), _numbers(messages)
        return parse_summary(answer, spoken, exchanges=exchanges, source=source, numbers=numbers), spent(answer)

    def level(self, scope: Scope, children: Sequence[Summary]) -> tuple[SummaryDraft, int]:
        """
        The summary that can stand in for several of the level below, and the tokens it took.

        Raises:
            ModelError: there is none.
        """
        prompt = self.asked.prompt(scope, "meta_summary")
        lines = summary_lines(children)
        text = format_sections([*about(scope), ("read", lines)])
        key = f"meta:{scope.conversation}:{children[0].start_seq}-{children[-1].end_seq}"
        answer = self.asked.ask(scope, self.asked.request("meta_summary", prompt, text, key))
        spoken = [child.text for child in children]
        exchanges = sum(child.exchanges for child in children)
        source, numbers = self.asked.source(prompt), numbers_in(lines)
        return parse_summary(answer, spoken, exchanges=exchanges, source=source, numbers=numbers), spent(answer)

    def episodes(self, scope: Scope, sight: Sight, span: tuple[int, int]) -> tuple[Episodes, int]:
        """
        The episodes of a range, and the tokens they took; nothing is asked where no user spoke.

        Raises:
            ModelError: there is no answer that can be used.
        """
        prompt = self.asked.prompt(scope, "episodes")
        source = self.asked.source(prompt)
        if not any(message.role == "user" for message in sight.messages):
            return Episodes(EpisodesRow(*span, 0, source), Found()), 0
        most = self.asked.config.message_char_limit
        lines = message_lines(sight.messages, most, others=min(most, BRIEF_CHARS))
        key = f"episodes:{scope.conversation}:{span[0]}-{span[1]}"
        request = self.asked.request("episodes", prompt, format_sections([*about(scope), ("read", lines)]), key)
        answer = self.asked.ask(scope, request)
        bullets = episode_answers.parse_episodes(answer, sight.messages, source=source, subject=scope.subject or SELF)
        return self._episodes(scope, sight, span, bullets, source), spent(answer)

    def all_at_once(self, scope: Scope, sight: Sight, span: tuple[int, int]) -> tuple[Parts, int]:
        """
        Summary, episodes and facts of a range in one call, and the tokens it took.

        Raises:
            ModelError: there is no answer, or nothing of it can be used.
        """
        prompt = self.asked.prompt(scope, "combined")
        source = self.asked.source(prompt)
        key = f"summary:{scope.conversation}:{span[0]}-{span[1]}"
        more = self.looking.reader.registry.listing()
        text = format_sections(self.looking.sections(scope, sight, whole=True))
        answer = self.asked.ask(scope, self.asked.request("combined", prompt, text, key, more=more))
        whole = answer_text(answer)
        parts = parse_parts(whole.text)
        last = [name for name in parts if name][-1:]

        def summary() -> SummaryDraft:
            cut = whole.cut and last not in (["episodes"], ["facts"])
            own = {name: part for name, part in parts.items() if name not in ("episodes", "facts")}
            spoken = [message.content for message in sight.messages]
            exchanges, numbers = count_exchanges(sight.messages), _numbers(sight.messages)
            return build_summary(own, spoken, exchanges=exchanges, source=source, cut=cut, numbers=numbers)

        def bullets() -> Episodes | None:
            if "episodes" not in parts or (whole.cut and last == ["episodes"]):
                return None
            subject = scope.subject or SELF
            found = episode_answers.parse_bullets(parts["episodes"], sight.messages, source=source, subject=subject)
            return self._episodes(scope, sight, span, found, source)

        def facts() -> Found | None:
            if "facts" not in parts or (whole.cut and last == ["facts"]):
                return None
            rows = parts["facts"] or "NONE"
            extraction = fact_answers.parse_fact_rows(rows, self.looking.window(scope, sight), source=source)
            return self.looking.stands(scope, sight, extraction)

        found = Parts(_usable(summary), _usable(bullets), _usable(facts))
        if found == Parts(None, None, None):
            raise BadAnswer("nothing of the answer can be used")
        return found, spent(answer)

    def _episodes(
        self, scope: Scope, sight: Sight, span: tuple[int, int], bullets: ParsedEpisodes, source: str
    ) -> Episodes:
        found = self.looking.stands(scope, sight, Extraction(bullets.candidates, bullets.dropped))
        told = {claim.candidate.text for claim in found.accepted}
        return Episodes(EpisodesRow(*span, len(told), source), found)


def _numbers(messages: Sequence[Message]) -> frozenset[int]:
    """The numbers that were said, by whomever, those of the days that were meant, and of the messages themselves."""
    return frozenset(message.seq for message in messages).union(*map(numbers_said, messages))


def _usable(part: Callable[[], T | None]) -> T | None:
    try:
        return part()
    except BadAnswer:
        return None
