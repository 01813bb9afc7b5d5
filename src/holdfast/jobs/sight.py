"""
What a model is shown of a conversation, and what of its answer stands.

Every candidate passes the parser, the second look, the grounding and the registry before it is believed, whichever
call it came from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..clock import new_id
from ..config import Config
from ..context.material import fact_item, summary_item
from ..digest import rules
from ..digest.fact_answers import Extraction, PromptWindow
from ..digest.grounding import ground
from ..digest.prompt_lines import MOST_BEFORE, known_lines, message_lines
from ..ingest.consent import matches_blocked_topic
from ..ingest.redact import mask_message
from ..reconcile.archive import order_upkeep
from ..reconcile.decide import Claim
from ..reconcile.learn import WORDS_ALONE, MatchHints, learn
from ..reconcile.registry import same
from ..scope import SELF, Scope
from ..store import ConversationRow, FactRow, ReadView, WriteView
from ..text.render import parse_line
from ..types import Candidate, FactChange, Message, Summary
from .facts import DISCARDED, ReadFacts, claim_of, hidden, names_of, speaker_subject, spoken_by

WINDOW_TURNS, WINDOW_MESSAGES, WINDOW_CHARS = 15, 60, 24_000
BEFORE_CHARS = 240  # of a message that is shown only so that the others make sense
BRIEF_CHARS = 400  # of what an assistant or a tool says, where only the words of users count

Sections = list[tuple[str, Sequence[str]]]


@dataclass(frozen=True, slots=True)
class Sight:
    """What a model reads, as of one moment: messages whose secrets are masked, and all that it is shown beside."""

    epoch: int
    row: ConversationRow | None
    messages: list[Message]
    before: list[Message]
    facts: list[FactRow]
    names: dict[str, int]
    never: list[str]
    injected: frozenset[str]
    unreadable: bool

    @property
    def first_seq(self) -> int:
        """The number of the first message to read."""
        return self.messages[0].seq

    @property
    def last_seq(self) -> int:
        """The number of the last message to read."""
        return self.messages[-1].seq


@dataclass(frozen=True, slots=True)
class Found:
    """What of an answer stands, in the order in which it was said, and what does not with the reason."""

    accepted: Sequence[Claim] = ()
    refused: Sequence[tuple[Candidate, str]] = ()
    means: MatchHints = WORDS_ALONE


@dataclass(frozen=True, slots=True)
class Looking:
    """Looks at conversations for a model, and at its answers for the memory."""

    reader: ReadFacts

    @property
    def config(self) -> Config:
        """The settings of the memory."""
        return self.reader.config

    def unread(self, view: ReadView) -> Sight:
        """What nobody has read yet with a model: as many messages as one call reads."""
        row = view.conversation()
        start = (row.read_seq if row else 0) + 1
        found = view.messages(start_seq=max(1, start - MOST_BEFORE), limit=WINDOW_MESSAGES + MOST_BEFORE)
        return self._sight(view, found, start, whole=False)

    def span(self, view: ReadView, start_seq: int, end_seq: int) -> Sight:
        """The messages of a range, all of them."""
        found = view.messages(start_seq=max(1, start_seq - MOST_BEFORE), end_seq=end_seq)
        return self._sight(view, found, start_seq, whole=True)

    def _sight(self, view: ReadView, found: Sequence[Message], start: int, *, whole: bool) -> Sight:
        row = view.conversation()
        shown = [mask_message(message, self.config.detectors) for message in found]
        messages = [message for message in shown if message.seq >= start]
        messages = messages if whole else _window(messages)
        facts = view.facts()
        return Sight(
            epoch=view.user().epoch,
            row=row,
            messages=messages,
            before=[message for message in shown if message.seq < start],
            facts=facts,
            names=names_of(view, messages),
            never=[topic for _, topic in view.topics()],
            injected=frozenset(_put_into_prompts(facts, view.summaries())),
            unreadable=_unreadable(view, [m for m in messages if row and m.seq <= row.extracted_seq], facts),
        )

    def sections(self, scope: Scope, sight: Sight, *, whole: bool = False) -> Sections:
        """
        What a model is shown to read facts: what seldom changes first.

        ``whole``: a chunk, which is summarised as well: what others than users say is not shortened, and as it
        begins with an exchange, nothing is shown before it.
        """
        limit = self.config.message_char_limit
        words, brief = [message.content for message in sight.messages], min(limit, BEFORE_CHARS)
        return [
            *about(scope),
            ("known", known_lines([row.fact for row in sight.facts], words)),
            ("before", [] if whole else message_lines(sight.before, brief, others=brief)),
            ("read", message_lines(sight.messages, limit, others=None if whole else min(limit, BRIEF_CHARS))),
        ]

    def window(self, scope: Scope, sight: Sight) -> PromptWindow:
        """What the parser knows of what was shown."""
        others = rules.known_names(row.fact for row in sight.facts)
        if scope.subject is not None and scope.subject != SELF:
            others.setdefault(scope.subject, scope.subject)
        return PromptWindow(
            messages={message.seq: message for message in sight.messages},
            before=tuple(sight.before),
            subject=scope.subject or SELF,
            others=others,
            believed=tuple(row.fact.text for row in sight.facts),
            language=self.config.language,
        )

    def stands(self, scope: Scope, sight: Sight, extraction: Extraction) -> Found:
        """What of an extraction stands; called with no transaction open, because sentences may be embedded."""
        messages = {message.seq: message for message in sight.messages}
        found = [candidate for candidate in extraction.candidates if not matches_blocked_topic(candidate, sight.never)]
        found = [_spoken(scope, sight, messages, candidate) for candidate in found]
        good, bad = ground(found, messages, min_confidence=self.config.min_confidence, injected=sight.injected)
        dropped = [pair for pair in extraction.dropped if not matches_blocked_topic(pair[0], sight.never)]
        masked = [(candidate, DISCARDED) for candidate, _ in good if hidden(candidate)]
        accepted = [
            claim_of(scope, candidate, evidence)
            for candidate, evidence in sorted(good, key=lambda pair: (pair[0].seq, pair[0].start))
            if not hidden(candidate) and not _told_there(sight.facts, candidate, scope)
        ]
        sentences = [claim.candidate.text for claim in accepted if claim.candidate.kind == "statement"]
        return Found(accepted, [*dropped, *bad, *masked], self.reader.means(sentences))

    def learn(self, view: WriteView, row: ConversationRow, found: Found, now_ms: int) -> list[FactChange]:
        """Write what stands, inside the caller's transaction, and order what follows from it."""
        changes = learn(
            view,
            found.accepted,
            found.refused,
            self.reader.registry,
            new_id=lambda: new_id("fact", now_ms),
            now_ms=now_ms,
            hints=found.means,
        )
        if self.reader.embeds and any(change.op != "rejected" for change in changes):
            view.want("embed", "", wanted=row.next_seq - 1, run_at_ms=now_ms, now_ms=now_ms)
        order_upkeep(view, changes, self.config.max_memories, now_ms)
        return changes


def _put_into_prompts(facts: Iterable[FactRow], summaries: Iterable[Summary]) -> Iterator[str]:
    """The lines that a context shows of what is remembered; whoever repeats one has said nothing new."""
    for row in facts:
        yield row.fact.text
        yield parse_line(fact_item(row.fact).line)
    for summary in summaries:
        yield from summary.text.splitlines()
        yield parse_line(summary_item(summary, "").line)


def about(scope: Scope) -> Sections:
    """Whom the conversation is about, when it is not the user."""
    return [("about", [scope.subject])] if scope.subject and scope.subject != SELF else []


def _spoken(scope: Scope, sight: Sight, messages: dict[int, Message], candidate: Candidate) -> Candidate:
    message = messages.get(candidate.seq)
    if message is None or message.role != "user":
        return candidate
    return spoken_by(candidate, speaker_subject(message, scope.user, sight.names))


def _window(messages: Sequence[Message]) -> list[Message]:
    """As many messages as one call reads: whole ones, not more than so many turns and characters."""
    taken: list[Message] = []
    turns = chars = 0
    for message in messages[:WINDOW_MESSAGES]:
        turns += message.role == "user"
        chars += min(len(message.content), 1_200)
        if taken and (turns > WINDOW_TURNS or chars > WINDOW_CHARS):
            break
        taken.append(message)
    return taken


def _unreadable(view: ReadView, messages: Sequence[Message], facts: Sequence[FactRow]) -> bool:
    """Whether one of *messages* seems to state something of which the rules made nothing."""
    home = view.scope.subject
    read = {
        e.seq for row in facts for e in row.fact.evidence if (e.conversation, e.home) == (view.scope.conversation, home)
    }
    return any(
        message.role == "user" and message.seq not in read and rules.may_state_facts(message.content)
        for message in messages
    )


def _told_there(facts: Iterable[FactRow], candidate: Candidate, scope: Scope) -> bool:
    """Whether the same is believed already on the strength of the same message."""
    if candidate.op == "retract":
        return False
    for row in facts:
        fact = row.fact
        if (fact.subject, fact.category, fact.key, fact.kind) != (
            candidate.subject, candidate.category, candidate.key, candidate.kind,
        ):  # fmt: skip
            continue
        alike = (
            same(fact.value) == same(candidate.value)
            if fact.kind == "attribute"
            else same(fact.text) == same(candidate.text)
        )
        if alike and any((e.conversation, e.seq) == (scope.conversation, candidate.seq) for e in fact.evidence):
            return True
    return False
