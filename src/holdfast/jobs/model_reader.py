"""
Facts, episodes and summaries by a model: what it is shown of a conversation, and what of its answers is kept.

Every candidate of an answer passes the parser, the grounding in quotes and the registry before it is believed,
whichever call it came from.  Calls are made with no transaction open; their results can then be written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Literal, TypeVar

from ..config import Config
from ..context.material import fact_item, summary_item
from ..digest import rules
from ..digest.answers import AnswerText, answer_text, build_summary, numbers_in, parse_parts, parse_summary
from ..digest.answers.episode_answers import ParsedEpisodes, SaidBefore, parse_bullets, parse_episodes, parse_story
from ..digest.answers.fact_answers import Extraction, PromptWindow, facts_alone, parse_fact_rows, parse_facts
from ..digest.changes.endings import find_endings
from ..digest.chunk import ASKED_SHARE, asked_tokens, closes_soon, count_exchanges, find_closed_chunks, most_tokens
from ..digest.grounding import NOT_ITS_WORDS, ground
from ..digest.mentions import SubjectNames
from ..digest.second_look import known_values, repeats_known
from ..digest.slots import numbers_said
from ..digest.summarize import (
    SummaryDraft,
    complete_story,
    in_order,
    shown_talks,
    summarize_chunk,
    summary_tokens,
)
from ..embed.protocol import dequantize
from ..ingest.append import advance_reading, is_reading_due
from ..ingest.redact import mask_messages, redact_secrets
from ..llm import FunctionModel
from ..llm.prompts import (
    fact_language_lines,
    format_sections,
    known_lines,
    message_lines,
    numbered_lines,
    summary_lines,
)
from ..llm.protocol import Answer, BadAnswer, ModelError
from ..recall.search import with_changes
from ..reconcile.decide import Claim
from ..reconcile.learn import WORDS_ALONE, MatchHints
from ..reconcile.registry import matches_blocked_topic, normalize_value
from ..reports import DigestReport
from ..scope import CHARACTER, SELF, Scope
from ..store import ConversationRow, EpisodeRangeRow, FactRow, Partition, ReadView, WriteView, speaker_names
from ..text import dataclass
from ..text.render import parse_line
from ..text.terms import count_tokens
from ..types import Candidate, FactChange, Job, Message, StoryLine, Summary
from .facts import (
    DISCARDED,
    FactReader,
    claim_of,
    current_facts,
    is_masked,
    known_subjects,
    mask_claim,
    report_of,
    speaker_subject,
    spoken_by,
    subject_labels,
)
from .model_client import ModelClient, total_tokens
from .queue import check_claim, order_range, range_of, scope_of, went_on

WINDOW_MESSAGES, WINDOW_CHARS = 60, 24_000
BEFORE_CHARS = 240  # of a message that only gives the context of the others
BRIEF_CHARS = 400  # of an assistant's or tool's message, where only the words of users count
RULES_FIRST_MS = 500
FEW_FACTS = 20  # all of them fit into a prompt

Sections = list[tuple[str, Sequence[str]]]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Excerpt:
    """
    The messages that a model reads, with their secrets masked, and what it is shown beside them, in one snapshot.

    ``injected`` are lines that contexts show; who repeats one has said nothing new.  ``unreadable`` says that the rules
    understood nothing of a message that seems to state something.  ``chunk``: whether the chunk that will be read as a
    whole closes now, soon, or later.
    """

    epoch: int
    row: ConversationRow | None
    messages: list[Message]
    before: list[Message]
    facts: list[FactRow]
    names: dict[str, int]
    never: list[str]
    subjects: SubjectNames
    injected: frozenset[str]
    unreadable: bool
    own_names: tuple[str, ...] = ()
    vectors: Mapping[str, tuple[float, bytes]] = field(default_factory=dict)
    chunk: Literal["open", "soon", "closing"] = "open"

    @property
    def first_seq(self) -> int:
        """The number of the first message to read."""
        return self.messages[0].seq

    @property
    def last_seq(self) -> int:
        """The number of the last message to read."""
        return self.messages[-1].seq

    @property
    def inputs(self) -> tuple[object, ...]:
        """The part of it that changes the answer of a model."""
        known = tuple((row.fact.id, row.fact.text) for row in self.facts)
        return tuple(self.messages), tuple(self.before), known, tuple(self.never)

    @property
    def has_user(self) -> bool:
        """Whether a user speaks in it."""
        return any(message.role == "user" for message in self.messages)


@dataclass(frozen=True, slots=True)
class GroundedFacts:
    """The claims of an answer that its messages support, in their order, and the refused ones with the reason."""

    accepted: Sequence[Claim] = ()
    refused: Sequence[tuple[Candidate, str]] = ()
    hints: MatchHints = WORDS_ALONE


@dataclass(frozen=True, slots=True)
class RangeEpisodes:
    """The episodes of a range, and the row that says that it was read for them."""

    row: EpisodeRangeRow
    facts: GroundedFacts


@dataclass(frozen=True, slots=True)
class CombinedAnswer:
    """The usable parts of one answer about a range; ``None`` for a part that is missing or cannot be used."""

    draft: SummaryDraft | None
    episodes: RangeEpisodes | None
    facts: GroundedFacts | None


@dataclass(frozen=True, slots=True)
class ModelReader:
    """A model that reads ranges of conversations; ``fact_reader`` is what it shares with the built-in rules."""

    client: ModelClient
    fact_reader: FactReader

    @property
    def config(self) -> Config:
        """The settings of the memory."""
        return self.client.config

    def unread_excerpt(self, view: ReadView) -> Excerpt:
        """Return the messages that no model has read yet, as many as one call reads."""
        row = view.conversation()
        start = (row.read_seq if row else 0) + 1
        before = self.config.extract_messages_before
        found = view.messages(start_seq=max(1, start - before), limit=WINDOW_MESSAGES + before)
        excerpt = self._excerpt(view, found, start, whole=False)
        return replace(excerpt, chunk=self._chunk_state(view, row)) if row else excerpt

    def _chunk_state(self, view: ReadView, row: ConversationRow) -> Literal["open", "soon", "closing"]:
        """Return whether the chunk with the next unread message closes now, soon, or later; later, if none is made here."""
        if not view.has_job("chunk"):
            return "open"
        messages = view.messages(start_seq=row.chunk_start, limit=WINDOW_MESSAGES)
        now_ms = self.client.now_ms()
        first, ended = row.chunk_start == 1, row.ended_seq
        closed = find_closed_chunks(messages, self.config, ended_seq=ended, now_ms=now_ms, first=first)
        if any(chunk.end_seq > row.read_seq for chunk in closed):
            return "closing"
        upto = closed[-1].end_seq if closed else 0
        return "soon" if closes_soon([m for m in messages if m.seq > upto], self.config) else "open"

    def excerpt(self, view: ReadView, start_seq: int, end_seq: int) -> Excerpt:
        """Return all messages of a range."""
        before = self.config.extract_messages_before
        found = view.messages(start_seq=max(1, start_seq - before), end_seq=end_seq)
        return self._excerpt(view, found, start_seq, whole=True)

    def _excerpt(self, view: ReadView, found: Sequence[Message], start: int, *, whole: bool) -> Excerpt:
        row = view.conversation()
        masked = mask_messages(found, self.config.detectors)
        messages = [message for message in masked if message.seq >= start]
        messages = messages if whole else _window(messages, self.config.extract_user_turns)
        facts, names = current_facts(view, messages), speaker_names(view, messages)
        subjects = view.subjects()
        return Excerpt(
            epoch=view.user().epoch,
            row=row,
            messages=messages,
            before=[message for message in masked if message.seq < start],
            facts=facts,
            names=names,
            own_names=own_names(view.scope.user, facts, names),
            never=[topic for _, topic in view.blocked_topics()],
            subjects=known_subjects(view.scope, subjects, view.at(None, None).facts() if subjects else facts),
            injected=frozenset(_context_lines(facts, view.summaries(), subject_labels(view, facts))),
            vectors=self._vectors(view, facts),
            unreadable=_is_unreadable(view, [m for m in messages if row and m.seq <= row.extracted_seq], facts),
        )

    def summarize_chunk(self, scope: Scope, messages: Sequence[Message]) -> tuple[SummaryDraft, int]:
        """
        Return the model's summary of a chunk, and the tokens of the call.

        Raises:
            ModelError: there is none.
        """
        prompt = self.client.prompt(scope, "chunk_summary")
        lines = message_lines(messages, self.config.message_char_limit, others=self.config.reply_char_limit)
        names, subjects = self.client.store.read(scope, _who_is_who)
        told = sum(count_tokens(message.content) for message in messages)
        about = _about(scope, names, messages, subjects, told=told)
        text = format_sections([*about, ("read", lines)])
        key = f"summary:{scope.conversation}:{messages[0].seq}-{messages[-1].seq}"
        answer = self.client.ask(scope, self.client.request("chunk_summary", prompt, text, key))
        draft = parse_summary(
            answer,
            [message.content for message in messages],
            exchanges=count_exchanges(messages),
            source=self.client.source(prompt),
            numbers=_numbers(messages),
            most=most_tokens(told),
        )
        return draft, total_tokens(answer)

    def summarize_level(self, scope: Scope, children: Sequence[Summary]) -> tuple[SummaryDraft, int]:
        """
        Return the model's summary of several summaries of the level below, and the tokens of the call.

        Raises:
            ModelError: there is none.
        """
        prompt = self.client.prompt(scope, "meta_summary")
        level, first = children[0].level + 1, children[0].start_seq

        def look(view: ReadView) -> tuple[tuple[tuple[str, ...], SubjectNames], list[Summary], list[Summary]]:
            earlier = [one for one in view.summaries(level=level) if one.end_seq < first][-1:]
            redact = partial(redact_secrets, detectors=self.config.detectors)
            return _who_is_who(view), earlier, with_changes(view, children, redact)

        (names, subjects), earlier, noted = self.client.store.read(scope, look)
        lines = summary_lines(noted)
        told = sum(map(summary_tokens, children))
        before = ("before", summary_lines(earlier))
        text = format_sections([*_about(scope, names, (), subjects, told=told), before, ("read", lines)])
        key = f"meta:{scope.conversation}:{children[0].start_seq}-{children[-1].end_seq}"
        answer = self.client.ask(scope, self.client.request("meta_summary", prompt, text, key))
        draft = parse_summary(
            answer,
            [child.text for child in children],
            exchanges=sum(child.exchanges for child in children),
            source=self.client.source(prompt),
            numbers=numbers_in([*lines, *summary_lines(earlier)]),
            most=most_tokens(told),
        )
        return draft, total_tokens(answer)

    def tell_story(self, scope: Scope, talks: Sequence[Sequence[Summary]]) -> tuple[tuple[StoryLine, ...], str, int]:
        """
        Return the model's story of *talks*, the summaries of conversations in their order, its source, and the tokens of the call.

        What no line of the model rests on follows by the rules.

        Raises:
            ModelError: there is none.
        """
        prompt, most = self.client.prompt(scope, "story"), self.config.story_tokens
        summaries = [summary for talk in shown_talks(talks) for summary in talk]
        names, subjects = self.client.store.read(scope, lambda view: _who_is_who(view.at(scope.subject, "")))
        ((about, lines),) = _about(scope, names, (), subjects)
        sections = [(about, [*lines, f"limit: {int(ASKED_SHARE * most)} tokens"]), ("read", numbered_lines(summaries))]
        request = self.client.request("story", prompt, format_sections(sections), f"story:{scope.subject or SELF}")
        answer = self.client.ask(scope, request)
        label = [subjects.label(scope.subject)] if scope.subject and scope.subject != SELF else []
        kept, rest = complete_story(parse_story(answer, summaries, [*names, *label]), talks, most)
        if not kept:
            raise BadAnswer("each line of the story is longer than the whole may be")
        return in_order(kept, rest), self.client.source(prompt), total_tokens(answer)

    def read_facts(self, scope: Scope, excerpt: Excerpt) -> tuple[Answer, Extraction, GroundedFacts]:
        """
        Ask for the facts of an excerpt; return the answer, its candidates, and those that are grounded.

        Raises:
            ModelError: there is no usable answer.
        """
        prompt = self.client.prompt(scope, "fact_extraction")
        key = f"facts:{scope.conversation}:{excerpt.first_seq}-{excerpt.last_seq}"
        text = format_sections(self._sections(scope, excerpt))
        categories = self.fact_reader.registry.listing()
        answer = self.client.ask(scope, self.client.request("facts", prompt, text, key, constant=categories))
        extraction = parse_facts(answer, self._parser_window(scope, excerpt), source=self.client.source(prompt))
        facts = self.ground(scope, excerpt, extraction)
        return answer, extraction, self._with_character(scope, excerpt, facts)

    def _with_character(self, scope: Scope, excerpt: Excerpt, facts: GroundedFacts) -> GroundedFacts:
        """Add what the assistant says of the character that it plays, where the settings ask for it."""
        if not self.config.character_facts:
            return facts
        try:
            played = self.read_character(scope, excerpt)
        except BadAnswer:
            return facts
        accepted = [*facts.accepted, *played.accepted]
        return GroundedFacts(accepted, [*facts.refused, *played.refused], self.fact_reader.hints_for_claims(accepted))

    def read_character(self, scope: Scope, excerpt: Excerpt) -> GroundedFacts:
        """
        Ask for the facts about the character that the assistant plays; there is no call where it says nothing.

        Raises:
            ModelError: there is no usable answer.
        """
        if all(message.role != "assistant" for message in excerpt.messages):
            return GroundedFacts()
        prompt, limit = self.client.prompt(scope, "character"), self.config.message_char_limit
        known = [replace(row.fact, subject=SELF) for row in excerpt.facts if row.fact.subject == CHARACTER]
        sections: Sections = [
            ("about", [*_about(scope, (), excerpt.messages)[0][1], *fact_language_lines(self.config.fact_language)]),
            ("known", known_lines(known, [message.content for message in excerpt.messages])),
            ("before", message_lines(excerpt.before, min(limit, BEFORE_CHARS))),
            ("read", message_lines(excerpt.messages, limit)),
        ]
        key = f"character:{scope.conversation}:{excerpt.first_seq}-{excerpt.last_seq}"
        listing = self.fact_reader.registry.listing()
        text = format_sections(sections)
        answer = self.client.ask(scope, self.client.request("character", prompt, text, key, constant=listing))
        turned = replace(excerpt, messages=_turned(excerpt.messages), before=_turned(excerpt.before))
        window = PromptWindow(
            messages={message.seq: message for message in turned.messages},
            before=tuple(turned.before),
            known=known,
            language=self.config.language,
            fact_language=self.config.fact_language,
        )
        found = parse_facts(answer, window, source=self.client.source(prompt))
        own = [replace(one, subject=CHARACTER) for one in found.candidates if one.subject == SELF]
        dropped = [(replace(one, subject=CHARACTER), why) for one, why in found.dropped if one.subject == SELF]
        played = self.ground(scope, turned, Extraction(own, dropped))
        said = [replace(claim, evidence=replace(claim.evidence, role="assistant")) for claim in played.accepted]
        refused = [(one, NOT_ITS_WORDS if why.startswith("not-said-by") else why) for one, why in played.refused]
        return GroundedFacts(said, refused, self.fact_reader.hints_for_claims(said))

    def read_episodes(self, scope: Scope, excerpt: Excerpt, span: tuple[int, int]) -> tuple[RangeEpisodes, int]:
        """
        Return the episodes of a range, and the tokens of the call; there is no call where no user speaks.

        Raises:
            ModelError: there is no usable answer.
        """
        prompt = self.client.prompt(scope, "episodes")
        source = self.client.source(prompt)
        if not excerpt.has_user:
            return RangeEpisodes(EpisodeRangeRow(*span, 0, source), GroundedFacts()), 0
        sections = [part for part in self._sections(scope, excerpt) if part[0] != "known"]
        key = f"episodes:{scope.conversation}:{span[0]}-{span[1]}"
        answer = self.client.ask(scope, self.client.request("episodes", prompt, format_sections(sections), key))
        subject, earlier = scope.subject or SELF, _said_before(excerpt, self.config)
        bullets = parse_episodes(answer, excerpt.messages, source=source, subject=subject, earlier=earlier)
        return self._episodes(scope, excerpt, span, bullets, source), total_tokens(answer)

    def read_combined(self, scope: Scope, excerpt: Excerpt, span: tuple[int, int]) -> tuple[CombinedAnswer, int]:
        """
        Return summary, episodes and facts of a range from one call, and its tokens.

        Raises:
            ModelError: there is no answer, or nothing of it can be used.
        """
        prompt = self.client.prompt(scope, "combined")
        source = self.client.source(prompt)
        key = f"summary:{scope.conversation}:{span[0]}-{span[1]}"
        categories = self.fact_reader.registry.listing()
        unread = max(span[0], excerpt.row.read_seq + 1 if excerpt.row else 0)
        text = format_sections(self._sections(scope, excerpt, whole=True, unread=unread))
        answer = self.client.ask(scope, self.client.request("combined", prompt, text, key, constant=categories))
        alone = facts_alone(answer, blank=isinstance(self.client.model, FunctionModel))
        whole = answer_text(answer) if alone is None else AnswerText(alone, cut=False)
        parts = parse_parts(whole.text) if alone is None else {"episodes": "", "facts": alone}
        last = [name for name in parts if name][-1:]

        def summary() -> SummaryDraft:
            return build_summary(
                {name: part for name, part in parts.items() if name not in ("episodes", "facts")},
                [message.content for message in excerpt.messages],
                exchanges=count_exchanges(excerpt.messages),
                source=source,
                cut=whole.cut and last not in (["episodes"], ["facts"]),
                numbers=_numbers(excerpt.messages),
                most=most_tokens(_told(excerpt)),
            )

        def episodes() -> RangeEpisodes | None:
            if "episodes" not in parts or (whole.cut and last == ["episodes"]):
                return None
            bullets = parse_bullets(
                parts["episodes"],
                excerpt.messages,
                source=source,
                subject=scope.subject or SELF,
                earlier=_said_before(excerpt, self.config),
            )
            return self._episodes(scope, excerpt, span, bullets, source)

        def facts() -> GroundedFacts | None:
            fresh = replace(excerpt, messages=[message for message in excerpt.messages if message.seq >= unread])
            if not fresh.messages:
                return GroundedFacts()
            if "facts" not in parts or (whole.cut and last == ["facts"]):
                return None
            rows = parts["facts"] or "NONE"
            extraction = parse_fact_rows(rows, self._parser_window(scope, excerpt), source=source)
            extraction = extraction.since(unread)
            return self._with_character(scope, fresh, self.ground(scope, excerpt, extraction))

        draft = _usable(summary) if alone is None else summarize_chunk(excerpt.messages)
        combined = CombinedAnswer(draft, _usable(episodes), _usable(facts))
        if combined == CombinedAnswer(None, None, None):
            raise BadAnswer("nothing of the answer can be used")
        return combined, total_tokens(answer)

    def _episodes(
        self, scope: Scope, excerpt: Excerpt, span: tuple[int, int], bullets: ParsedEpisodes, source: str
    ) -> RangeEpisodes:
        facts = self.ground(scope, excerpt, Extraction(bullets.candidates, bullets.dropped))
        texts = {claim.candidate.text for claim in facts.accepted}
        return RangeEpisodes(EpisodeRangeRow(*span, len(texts), source), facts)

    def _sections(self, scope: Scope, excerpt: Excerpt, *, whole: bool = False, unread: int = 0) -> Sections:
        """
        Return the sections of a prompt for facts, those that seldom change first.

        For a *whole* chunk, which is summarized as well, more is shown of what others than users say.
        """
        limit = self.config.message_char_limit
        words, brief = [message.content for message in excerpt.messages], min(limit, BEFORE_CHARS)
        told = _told(excerpt) if whole else 0
        (_, about), *_ = _about(scope, excerpt.own_names, excerpt.messages, excerpt.subjects, told=told)
        about = [*about, *fact_language_lines(self.config.fact_language)]
        if whole and unread > excerpt.last_seq:
            about = [*about, "facts: NONE, they are known"]
        elif whole and unread > excerpt.first_seq:
            about = [*about, f"facts: only of messages {unread}-{excerpt.last_seq}"]
        return [
            ("about", about),
            ("known", known_lines([row.fact for row in excerpt.facts], words, near=self._nearness(excerpt))),
            ("before", message_lines(excerpt.before, brief, others=brief)),
            (
                "read",
                message_lines(excerpt.messages, limit, others=self.config.reply_char_limit if whole else BRIEF_CHARS),
            ),
        ]

    def _vectors(self, view: ReadView, facts: Sequence[FactRow]) -> dict[str, tuple[float, bytes]]:
        """Return the stored vectors of known facts by their id, where there are too many facts to show them all."""
        embedder = self.fact_reader.deps.embedder
        if embedder is None or len(facts) <= FEW_FACTS:
            return {}
        found: dict[str, tuple[float, bytes]] = {}
        for subject in {row.fact.subject for row in facts}:
            stored = {doc: (scale, data) for doc, scale, data in view.vectors(Partition(subject, "fact"), embedder.id)}
            here = (row for row in facts if row.fact.subject == subject and row.doc in stored)
            found.update((row.fact.id, stored[row.doc]) for row in here)
        return found

    def _nearness(self, excerpt: Excerpt) -> dict[str, float]:
        """Return how near the words of users are to the known facts that they may be about."""
        embedder = self.fact_reader.deps.embedder
        spoken = [message.content[:BRIEF_CHARS] for message in excerpt.messages if message.role == "user"]
        if embedder is None or not excerpt.vectors or not spoken:
            return {}
        said = embedder.embed(spoken)
        best = (dequantize(excerpt.vectors.values(), said.shape[1]) @ said.T).max(axis=1).tolist()
        near = zip(excerpt.vectors, best, strict=True)
        return {fact_id: cosine for fact_id, cosine in near if cosine >= embedder.thresholds.related}

    def _parser_window(self, scope: Scope, excerpt: Excerpt) -> PromptWindow:
        return PromptWindow(
            messages={message.seq: message for message in excerpt.messages},
            before=tuple(excerpt.before),
            subject=scope.subject or SELF,
            others=excerpt.subjects,
            known=tuple(row.fact for row in excerpt.facts),
            names=excerpt.own_names,
            speakers={m.seq: subject for m in excerpt.messages if (subject := _speaker(scope, excerpt, m)) != SELF},
            language=self.config.language,
            fact_language=self.config.fact_language,
            unquoted=self.config.believe_unquoted,
        )

    def ground(self, scope: Scope, excerpt: Excerpt, extraction: Extraction) -> GroundedFacts:
        """Return the candidates that the messages support; called outside transactions, as it may embed sentences."""
        messages = {message.seq: message for message in excerpt.messages}
        found = [
            candidate for candidate in extraction.candidates if not matches_blocked_topic(candidate, excerpt.never)
        ]
        found = [
            _with_speaker(scope, excerpt, messages, mask_claim(candidate, self.config.detectors)) for candidate in found
        ]
        good, bad = ground(found, messages, min_confidence=self.config.min_confidence, injected=excerpt.injected)
        dropped = [pair for pair in extraction.dropped if not matches_blocked_topic(pair[0], excerpt.never)]
        masked = [(candidate, DISCARDED) for candidate, _ in good if is_masked(candidate)]
        accepted = [
            claim_of(scope, candidate, evidence)
            for candidate, evidence in sorted(good, key=lambda pair: (pair[0].seq, pair[0].start))
            if not is_masked(candidate) and not _is_known(excerpt.facts, candidate, scope)
        ]
        bad = [pair for pair in bad if not repeats_known(pair[0], [row.fact for row in excerpt.facts])]
        accepted = self._with_endings(scope, excerpt, accepted)
        return GroundedFacts(accepted, [*dropped, *bad, *masked], self.fact_reader.hints_for_claims(accepted))

    def _with_endings(self, scope: Scope, excerpt: Excerpt, accepted: Sequence[Claim]) -> list[Claim]:
        """Return the claims; behind those of each message, what its own words end of what the model read before it."""
        stated = [claim for claim in accepted if claim.candidate.kind == "attribute"]
        known, claims = known_values(claim.candidate for claim in stated), list(accepted)
        others = excerpt.subjects.ids
        for message in excerpt.messages if known else ():
            if speaker_subject(message, scope.user, excerpt.names) != SELF:
                continue
            here = [claim.candidate for claim in accepted if claim.candidate.seq == message.seq]
            ends = find_endings(message, here, known, others=others, language_code=self.config.language)
            ends = [one for one in ends if one.op == "retract"]
            good, _ = ground(ends, {message.seq: message}, min_confidence=self.config.min_confidence)
            claims += [claim_of(scope, candidate, evidence) for candidate, evidence in good]
        return sorted(claims, key=lambda claim: (claim.candidate.seq, claim.candidate.op == "assert"))

    def learn(self, view: WriteView, row: ConversationRow, facts: GroundedFacts, now_ms: int) -> list[FactChange]:
        """Write grounded facts inside the caller's transaction, and order what follows from them."""
        changes = self.fact_reader.learn(view, facts.accepted, facts.refused, facts.hints, now_ms)
        self.fact_reader.order_follow_up(view, row, changes, now_ms)
        return changes


@dataclass(frozen=True, slots=True)
class ReadMessages:
    """
    The handler of ``read`` jobs: a model reads the messages that it has not read yet, one call and write a window.

    It reads every few user messages, and sooner when one of them states something that the rules cannot read.  A window
    that fails repeatedly is left to a job for that range alone, which ends dead and visible.
    """

    reader: ModelReader

    def __call__(self, job: Job) -> DigestReport:
        scope, report = scope_of(job), DigestReport()
        client, store, halfway = self.reader.client, self.reader.client.store, False
        while True:
            span = range_of(job)
            excerpt = store.read(scope, partial(self._excerpt, span=span))
            if not (halfway and excerpt.messages) and not self._is_due(excerpt, span):
                if store.write(scope, partial(self._settle, job=job, excerpt=excerpt)):
                    return report
                continue
            try:
                client.extend_lease(job, scope)
                answer, extraction, facts = self.reader.read_facts(scope, excerpt)
            except ModelError as error:
                if span or not client.gives_up(job, error):
                    raise
                store.write(scope, partial(self._pass_over, job=job, excerpt=excerpt))
                report += DigestReport(failed=1)
                continue
            upto = read_upto(excerpt, extraction, cut=answer.finish == "length")
            changes = store.write(scope, partial(self._write, job=job, excerpt=excerpt, upto=upto, facts=facts))
            halfway = upto < excerpt.last_seq
            report += report_of(changes, problems=len(extraction.problems), tokens=total_tokens(answer))
            if span:
                return report

    def _excerpt(self, view: ReadView, span: tuple[int, int] | None) -> Excerpt:
        return self.reader.excerpt(view, *span) if span else self.reader.unread_excerpt(view)

    def _is_due(self, excerpt: Excerpt, span: tuple[int, int] | None) -> bool:
        row, config = excerpt.row, self.reader.config
        if row is None or not excerpt.has_user:
            return False
        if span:
            return True
        silent = self.reader.client.now_ms() - row.last_at >= config.chunk_gap_minutes * 60_000
        if excerpt.chunk == "closing":
            return False  # one call reads all of it
        if (silent and row.stated_seq > row.read_seq) or row.ended_seq > row.read_seq:
            return True
        every = config.extract_every_user_turns
        early = excerpt.unreadable or count_exchanges(excerpt.messages) >= every
        return excerpt.chunk == "open" and early and is_reading_due(row, every)

    def _settle(self, view: WriteView, job: Job, excerpt: Excerpt) -> bool:
        """Finish when nothing is due, and order the job that silence will bring; ``False`` when messages or the end came."""
        check_claim(view, job, excerpt.epoch)
        now_ms, row = self.reader.client.now_ms(), view.conversation()
        if went_on(excerpt.row, row):
            return False
        view.finish(job, now_ms)
        if row is None or range_of(job):
            return True
        last = row.next_seq - 1
        if not excerpt.has_user:
            view.save_conversation(replace(row, read_seq=last if not excerpt.messages else excerpt.last_seq))
        elif row.extracted_seq < last:
            view.want("read", "", wanted=last, run_at_ms=now_ms + RULES_FIRST_MS, now_ms=now_ms)
        elif row.stated_seq > row.read_seq and excerpt.chunk != "closing":
            silent_at = row.last_at + self.reader.config.chunk_gap_minutes * 60_000
            view.want("read", "", wanted=last, run_at_ms=max(now_ms, silent_at), now_ms=now_ms)
        return True

    def _write(self, view: WriteView, job: Job, excerpt: Excerpt, upto: int, facts: GroundedFacts) -> list[FactChange]:
        check_claim(view, job, excerpt.epoch)
        row, now_ms = view.conversation(), self.reader.client.now_ms()
        if row is None:
            return []
        changes = self.reader.learn(view, row, facts, now_ms)
        view.add_read_range(self.reader.client.model.name, excerpt.first_seq, upto)
        if not range_of(job):
            view.save_conversation(self._read_upto(row, excerpt, upto))
            return changes
        if upto < excerpt.last_seq:
            order_range(view, "read", upto + 1, excerpt.last_seq, now_ms)
        view.finish(job, now_ms)
        return changes

    def _read_upto(self, row: ConversationRow, excerpt: Excerpt, upto: int) -> ConversationRow:
        read = [message for message in excerpt.messages if message.seq <= upto]
        return advance_reading(row, read, self.reader.config.extract_every_user_turns, turns=count_exchanges(read))

    def _pass_over(self, view: WriteView, job: Job, excerpt: Excerpt) -> None:
        """Leave a window to its own job, so that the messages after it can be read."""
        check_claim(view, job, excerpt.epoch)
        row, now_ms = view.conversation(), self.reader.client.now_ms()
        if row is not None:
            order_range(view, "read", excerpt.first_seq, excerpt.last_seq, now_ms)
            row = replace(self._read_upto(row, excerpt, excerpt.last_seq), ahead_turns=row.ahead_turns)
            view.save_conversation(row)


def read_upto(excerpt: Excerpt, extraction: Extraction, *, cut: bool) -> int:
    """Return the last message that counts as read: for a cut answer, the one before that of its last row."""
    last = excerpt.last_seq
    if not cut:
        return last
    named = max((c.seq for c in extraction.candidates), default=0)
    first_user = next(message.seq for message in excerpt.messages if message.role == "user")
    earlier = [message.seq for message in excerpt.messages if first_user <= message.seq < named]
    return max(earlier, default=last if named >= last else first_user)


def own_names(user: str, facts: Sequence[FactRow], names: Mapping[str, int]) -> tuple[str, ...]:
    """Return the names by which messages and facts call the user, the one under which they introduced themselves first."""
    told = sorted(
        (row.fact.key, row.fact.value)
        for row in facts
        if row.fact.live and row.fact.subject == SELF and row.fact.category == "identity"
        and row.fact.key in ("name", "goes_by")
    )  # fmt: skip
    spoken = [name for name in names if speaker_subject(Message("user", "", name=name), user, names) == SELF]
    return tuple(dict.fromkeys([*(value for _, value in reversed(told)), *spoken]))


def _who_is_who(view: ReadView) -> tuple[tuple[str, ...], SubjectNames]:
    facts = view.facts()
    return own_names(view.scope.user, facts, speaker_names(view)), known_subjects(view.scope, view.subjects(), facts)


def _told(excerpt: Excerpt) -> int:
    return sum(count_tokens(message.content) for message in excerpt.messages)


def _about(
    scope: Scope,
    names: Sequence[str] = (),
    messages: Sequence[Message] = (),
    subjects: SubjectNames | None = None,
    *,
    told: int = 0,
) -> Sections:
    """
    Return the section that says who the user is, what the conversation is about, and what day it is.

    For a summary of something that is *told* in so many tokens it says how long that may be.
    """
    lines = [f"the user: {names[0]}" + "".join(f", also {name}" for name in names[1:])] if names else []
    if scope.subject and scope.subject != SELF:
        lines.append(f"this chat is about: {subjects.label(scope.subject) if subjects else scope.subject}")
    last = next((message.at for message in reversed(messages) if message.at), None)
    lines += [f"today: {last:%A} {last.date().isoformat()}"] if last else []
    lines += [f"limit: {asked_tokens(told)} tokens"] if told else []
    return [("about", lines)]


def _said_before(excerpt: Excerpt, config: Config) -> SaidBefore:
    """Return the user's words before an excerpt, as far as known facts hold them."""
    facts = [row.fact for row in excerpt.facts]
    words = (
        word
        for f in facts
        for word in (f.subject, f.category, f.key.replace("_", " "), f.value, f.text, *(e.quote for e in f.evidence))
    )
    spoken = "\n".join((*excerpt.subjects.ids, *words))
    return SaidBefore(excerpt.own_names, spoken, tuple(excerpt.before), config.fact_language)


def _context_lines(facts: Iterable[FactRow], summaries: Iterable[Summary], labels: Mapping[str, str]) -> Iterator[str]:
    """Return what contexts show in words of ours: a sentence that the user said remains the user's."""
    for row in facts:
        lines = (row.fact.text, parse_line(fact_item(row.fact, labels).line))
        quotes = [evidence.quote for evidence in row.fact.evidence]
        yield from (line for line in lines if not any(line.rstrip(".") in quote for quote in quotes))
    for summary in summaries:
        yield from summary.text.splitlines()
        yield parse_line(summary_item(summary, "").line)


def _turned(messages: Iterable[Message]) -> list[Message]:
    """Return messages as the assistant sees them: its own are the ones that may state something."""
    roles = {"assistant": "user", "user": "assistant"}
    return [replace(message, role=roles.get(message.role, message.role)) for message in messages]


def _speaker(scope: Scope, excerpt: Excerpt, message: Message) -> str:
    return speaker_subject(message, scope.user, excerpt.names) if message.role == "user" else SELF


def _with_speaker(scope: Scope, excerpt: Excerpt, messages: dict[int, Message], candidate: Candidate) -> Candidate:
    """Return an episode as one of whoever spoke; facts name their subject themselves."""
    message = messages.get(candidate.seq)
    if message is None or candidate.kind != "episode":
        return candidate
    return spoken_by(candidate, _speaker(scope, excerpt, message))


def _window(messages: Sequence[Message], most_turns: int) -> list[Message]:
    """Return as many whole messages as one call reads."""
    taken: list[Message] = []
    turns = chars = 0
    for message in messages[:WINDOW_MESSAGES]:
        turns += message.role == "user"
        chars += min(len(message.content), 1_200)
        if taken and (turns > most_turns or chars > WINDOW_CHARS):
            break
        taken.append(message)
    return taken


def _is_unreadable(view: ReadView, messages: Sequence[Message], facts: Sequence[FactRow]) -> bool:
    here = (view.scope.conversation, view.scope.subject)
    read = {e.seq for row in facts for e in row.fact.evidence if (e.conversation, e.home) == here}
    return any(
        message.role == "user" and message.seq not in read and rules.may_state_facts(message.content)
        for message in messages
    )


def _is_known(facts: Iterable[FactRow], candidate: Candidate, scope: Scope) -> bool:
    """Whether the same is believed already on the evidence of the same message."""
    if candidate.op == "retract":
        return False
    address = (candidate.subject, candidate.category, candidate.key, candidate.kind)
    for row in facts:
        fact = row.fact
        if (fact.subject, fact.category, fact.key, fact.kind) != address:
            continue
        mine, told = (one.value if one.kind == "attribute" else one.text for one in (candidate, fact))
        alike = normalize_value(told) == normalize_value(mine)
        if alike and any((e.conversation, e.seq) == (scope.conversation, candidate.seq) for e in fact.evidence):
            return True
    return False


def _numbers(messages: Sequence[Message]) -> frozenset[int]:
    """Return the numbers that messages mention, those of the days they mean, and their own."""
    return frozenset(message.seq for message in messages).union(*map(numbers_said, messages))


def _usable(part: Callable[[], T | None]) -> T | None:
    try:
        return part()
    except BadAnswer:
        return None
