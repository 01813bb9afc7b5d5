"""
Chunk boundaries of a conversation, as a pure function of its messages.

The messages are walked once, oldest first, and each boundary is decided by the message that comes
right after it and by nothing later.  So a boundary that was reported stays where it is when more
messages arrive, and the walk can resume at the first message that no chunk holds yet.

An *exchange* is a statement or question and the replies to it.  It starts at a message of role ``user``
whose speaker (the name) differs from the speaker before, once the running exchange has had a reply.
With a user and an assistant that is every user message after an answer; between Ana and Bo it is
each time the turn comes back (Ana, Bo | Ana, Bo); in a group, whoever speaks after a reply opens
the next one.  Several messages in a row by one speaker are one turn.  ``system`` messages are
no turn, and what an assistant says before the first user message opens nothing.

Lengths are counted in tokens as well as in messages: ten short messages are not worth a summary.  Of a long
message only the tokens that a model is shown count (``message_char_limit``, ``reply_char_limit``), and of code its first line, so a page of it closes no chunk by itself.
A mere farewell ("Thanks, bye!") begins no chunk, so it belongs to the one that it closes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cache

from ..clock import to_ms
from ..config import Config
from ..text import dataclass, expression
from ..text.sentences import split_sentences, without_code
from ..text.terms import count_tokens, language_of
from ..types import Message
from .salience import LANGUAGES, load_salience_words

# An exchange this many times longer than a chunk (an agent at work) is cut at the next safe place.
LONG_EXCHANGE = 4
# A chunk of short messages closes at this many times the setting, however few tokens it holds.
SHORT_MESSAGES = 3
# A silence closes a chunk with this part of its messages and tokens, and the end of a talk a rest with a quarter.
SILENCE_PART, END_PART = 2, 4
# A silence so many times longer than the setting (a week at the default) ends a visit: it closes a first chunk, however short.
LONG_SILENCE = 28
# A conversation that no chunk covers is told in blocks of about so many messages.
BLOCK_MESSAGES = 10
# A courtesy has at most so many characters.
COURTESY_CHARS = 80
# What a courtesy does not hold: a number, or a name.
_CONCRETE = expression(r"\d|(?<=[\w,;] )(?!I\b)[A-Z]")
# A tool call that is not answered within this many other messages will not be answered.
RESULT_PATIENCE_MESSAGES = 4


@dataclass(frozen=True, slots=True)
class Chunk:
    """A range of messages, ``start_seq`` to ``end_seq`` included; ``exchanges`` is how many start inside."""

    start_seq: int
    end_seq: int
    exchanges: int


def find_closed_chunks(
    messages: Sequence[Message],
    config: Config,
    *,
    ended_seq: int = 0,
    now_ms: int | None = None,
    first: bool | None = None,
) -> list[Chunk]:
    """
    Return the complete chunks, oldest first; the messages after the last one are still open.

    A chunk closes before an exchange once it holds ``chunk_messages`` messages of together ``chunk_tokens``
    tokens, or three times the messages, or ``chunk_max_tokens``, or ``chunk_exchanges`` exchanges; before any
    message that comes after a silence of ``chunk_gap_minutes``, in the middle of an exchange too, once it holds
    half of ``chunk_messages`` and, behind an earlier chunk, of ``chunk_tokens``; before any message that comes after
    28 times that silence, if it is the first chunk and a user said more than courtesies; and before any message once it holds
    four times ``chunk_messages``.  None of these parts a tool call from its results, as long as those come within four
    other messages, and only a silence parts a farewell from what it ends.

    Args:
        messages: consecutive messages of one conversation, from the first that no chunk covers.
        config: the ``chunk_*`` settings are read.
        ended_seq: the conversation was said to be over after this message: everything up to it is
            closed, unless it is a rest of less than a quarter of ``chunk_tokens`` after an earlier chunk.
        now_ms: the time now.  With it the silence after the last message counts as well: what it
            closes, any message that is dated later would have closed too.
        first: no chunk is before them; by default, whether they begin with message 1.
    """
    chunks: list[Chunk] = []
    open_ = _open_chunk(messages, config, first)
    previous: Message | None = None
    for message in messages:
        gap = previous is not None and _silent(
            previous, to_ms(message.at) if message.at else None, config.chunk_gap_minutes
        )
        open_.consider(message, gap)
        if previous is not None and open_.size:
            ended = previous.seq <= ended_seq < message.seq and open_.worth_an_end
            if ended or open_.closes_before(message, previous):
                chunks.append(open_.chunk())
                open_ = _OpenChunk(config)
        open_.add(message)
        previous = message
    if previous is not None and open_.size:
        over = not open_.waiting and open_.closes_by_silence(previous, now_ms)
        if (previous.seq <= ended_seq and open_.worth_an_end) or over:
            chunks.append(open_.chunk())
    return chunks


def count_exchanges(messages: Sequence[Message]) -> int:
    """Count the exchanges that start in *messages*."""
    open_ = _OpenChunk(Config())
    for message in messages:
        open_.add(message)
    return open_.exchanges


def message_tokens(message: Message, config: Config) -> int:
    """Return the tokens of what a model is shown of a message."""
    limit = config.message_char_limit
    shown = limit if message.role == "user" else min(limit, config.reply_char_limit)
    return count_tokens(without_code(message.content)[:shown])


def closing_silence(messages: Sequence[Message], config: Config, *, first: bool | None = None) -> int | None:
    """Return the minutes of silence that close *messages*, none of which is in a chunk; ``None`` where none does."""
    open_ = _filled(messages, config, first)
    return None if open_.waiting else open_.closing_silence


def is_short(messages: Sequence[Message], config: Config, *, first: bool | None = None) -> bool:
    """Whether only the end of a talk or a long silence makes a chunk of *messages*."""
    return not _filled(messages, config, first).outlasts_silence


def closes_soon(messages: Sequence[Message], config: Config) -> bool:
    """Whether *messages*, none of which is in a chunk, are long enough for one and at least half of the number."""
    open_ = _filled(messages, config)
    return open_.full or (2 * open_.size >= config.chunk_messages and open_.tokens >= config.chunk_tokens)


def _open_chunk(messages: Sequence[Message], config: Config, first: bool | None) -> _OpenChunk:
    """Return an empty chunk for *messages*; those before them may have been erased."""
    return _OpenChunk(config, first=bool(messages) and messages[0].seq == 1 if first is None else first)


def _filled(messages: Sequence[Message], config: Config, first: bool | None = None) -> _OpenChunk:
    open_ = _open_chunk(messages, config, first)
    for message in messages:
        open_.add(message)
    return open_


def split_blocks(messages: Sequence[Message]) -> list[Sequence[Message]]:
    """Split *messages* into blocks of ten or a few more, each up to the next user message."""
    starts = [0]
    for index, message in enumerate(messages):
        if message.role == "user" and index - starts[-1] >= BLOCK_MESSAGES:
            starts.append(index)
    ends = [*starts[1:], len(messages)]
    return [messages[start:end] for start, end in zip(starts, ends, strict=True) if end > start]


# A summary has at most a third of the tokens that it tells, and that many in any case; a model is asked for somewhat
# less.  Only the end of a talk makes chunks of less than SMALL tokens, of which no third is worth reading.
TOLD, MOST_TOKENS, SMALL = 3, 300, 300
ASKED_SHARE, LEAST_ASKED = 0.85, 40


def most_tokens(told: int) -> int:
    """Return how many tokens the summary of so many may have, its lists included."""
    return min(MOST_TOKENS, told // TOLD) if told >= SMALL else MOST_TOKENS


def asked_tokens(told: int) -> int:
    """Return how many tokens a model is asked for, which seldom keeps to them exactly."""
    return max(LEAST_ASKED, int(ASKED_SHARE * min(MOST_TOKENS, told // TOLD)))


@cache
def labels_of(*keys: str) -> frozenset[str]:
    """Return the labels of those names in every language; our own lines start with one."""
    return frozenset(load_salience_words(language).labels[key] for language in LANGUAGES for key in keys)


def is_courtesy(text: str) -> bool:
    """Whether *text* only greets, thanks, agrees or says goodbye."""
    return _signs(text) <= {"empty", "farewell"}


def is_small_talk(text: str) -> bool:
    """Whether *text* only greets, asks how one is, thanks, or says goodbye, so that nothing in a memory answers it."""
    return is_courtesy(text.replace("?", ".").replace("？", "。")) and not _CONCRETE.search(text)


def is_farewell(text: str) -> bool:
    """Whether *text* only thanks or says goodbye."""
    found = _signs(text)
    return "farewell" in found and found <= {"empty", "farewell"}


def _signs(text: str) -> set[str]:
    """Return "farewell", "empty" or "" for each sentence of a short text, and "" for any other."""
    if not text.strip() or len(text) > COURTESY_CHARS or "?" in text:
        return {""}
    words, found = load_salience_words(language_of(text)), set()
    for span in split_sentences(text):
        for part in re.split("[,，、]", span.of(text).replace("’", "'")):
            signs = words.signs(part)
            found.add("farewell" if "farewell" in signs else "empty" if "empty" in signs else "")
    return found


def _silent(last: Message, until_ms: int | None, minutes: int) -> bool:
    """Whether *last* was followed by a silence of *minutes*; False for undated messages."""
    if last.at is None or until_ms is None:
        return False
    return until_ms - to_ms(last.at) >= minutes * 60_000


@dataclass(slots=True)
class _OpenChunk:
    """The chunk being filled: its size, the speaker, the tool calls that wait for results."""

    config: Config
    first: bool = False  # no chunk is before it
    size: int = 0
    tokens: int = 0
    exchanges: int = 0
    start_seq: int = 0
    end_seq: int = 0
    speaker: tuple[str, str] | None = None
    opener: tuple[str, str] | None = None
    replied: bool = False
    waiting: list[str] = field(default_factory=list)  # ids, "" for a call without one
    patience: list[int] = field(default_factory=list)  # how many more other messages each may wait
    unanswered: bool = False
    substance: bool = False  # a user said more than courtesies

    @property
    def full(self) -> bool:
        config = self.config
        return (
            (self.size >= config.chunk_messages and self.tokens >= config.chunk_tokens)
            or self.size >= SHORT_MESSAGES * config.chunk_messages
            or self.tokens >= config.chunk_max_tokens
            or self.exchanges >= config.chunk_exchanges
        )

    @property
    def outlasts_silence(self) -> bool:
        """Whether a silence closes it."""
        half = SILENCE_PART * self.size >= self.config.chunk_messages
        worth_it = self.first or SILENCE_PART * self.tokens >= self.config.chunk_tokens
        return self.full or (half and worth_it)

    @property
    def worth_an_end(self) -> bool:
        """Whether the end of a talk closes it: a first chunk always, a rest when it is worth a summary."""
        return self.first or END_PART * self.tokens >= self.config.chunk_tokens

    @property
    def closing_silence(self) -> int | None:
        """The minutes of silence that close it; ``None`` for courtesies, and for a short rest behind another chunk."""
        if self.outlasts_silence:
            return self.config.chunk_gap_minutes
        return self.config.chunk_gap_minutes * LONG_SILENCE if self.first and self.substance else None

    def closes_by_silence(self, last: Message, until_ms: int | None) -> bool:
        minutes = self.closing_silence
        return minutes is not None and _silent(last, until_ms, minutes)

    def chunk(self) -> Chunk:
        return Chunk(self.start_seq, self.end_seq, self.exchanges)

    def consider(self, message: Message, gap: bool) -> None:
        """
        Give up the waiting calls when *message* shows that their results will not come.

        That is so after a long silence, after too many other messages, and in a chunk in which a
        call went unanswered before: there the results are not being recorded.
        """
        if not self.waiting or self._answered_by(message) is not None:
            return
        self.patience = [left - 1 for left in self.patience]
        overlong = self.size >= 2 * LONG_EXCHANGE * self.config.chunk_messages
        hopeless = gap or overlong or (self.unanswered and message.role == "user")
        kept = [
            (call, left) for call, left in zip(self.waiting, self.patience, strict=True) if left >= 0 and not hopeless
        ]
        self.unanswered = self.unanswered or len(kept) < len(self.waiting)
        self.waiting, self.patience = [call for call, _ in kept], [left for _, left in kept]

    def opens_exchange(self, message: Message) -> bool:
        if message.role != "user" or _answers(message) is not None:
            return False
        return self.opener is None or (self.replied and _turn(message) != self.speaker)

    def closes_before(self, message: Message, previous: Message) -> bool:
        if self.waiting:
            return False
        overlong = self.size >= LONG_EXCHANGE * self.config.chunk_messages
        if overlong or self.closes_by_silence(previous, to_ms(message.at) if message.at else None):
            return True
        return self.full and self.opens_exchange(message) and not is_farewell(message.content)

    def add(self, message: Message) -> None:
        if not self.size:
            self.start_seq = message.seq
        if self.opens_exchange(message):
            self.exchanges += 1
            self.opener, self.replied = _turn(message), False
        elif self.opener is not None and message.role != "system" and _turn(message) != self.opener:
            self.replied = True
        if message.role != "system":
            self.speaker = _turn(message)
        self.size += 1
        said = message.role == "user" and bool(message.content) and not is_courtesy(message.content)
        self.substance = self.substance or said
        self.tokens += message_tokens(message, self.config)
        self.end_seq = message.seq
        self._pair(message)

    def _answered_by(self, message: Message) -> str | None:
        """Return the waiting call that *message* answers; where one side has no id, the oldest call that fits."""
        ident = _answers(message)
        if ident is None or not self.waiting:
            return None
        if ident in self.waiting:
            return ident
        return self.waiting[0] if not ident else "" if "" in self.waiting else None

    def _pair(self, message: Message) -> None:
        """Keep the list of calls that have no result yet."""
        answered = self._answered_by(message)
        if answered is not None:
            self.patience.pop(self.waiting.index(answered))
            self.waiting.remove(answered)
        asked = _calls(message)
        self.waiting.extend(asked)
        self.patience.extend([RESULT_PATIENCE_MESSAGES] * len(asked))


def _turn(message: Message) -> tuple[str, str]:
    """Return the holder of the turn: a user by name, everyone else by role."""
    return (message.role, (message.name or "") if message.role == "user" else "")


def _calls(message: Message) -> list[str]:
    """Return the ids of the tool calls of a message; ``""`` for one without an id."""
    calls = message.meta.get("tool_calls")
    if not isinstance(calls, Sequence) or isinstance(calls, str):
        return []
    return [str(call.get("id") or "") for call in calls if isinstance(call, Mapping)]


def _answers(message: Message) -> str | None:
    """Return the id of the call that a message answers, ``""`` when it names none; ``None`` for no result."""
    ident = message.meta.get("tool_call_id")
    if message.role != "tool" and not ident:
        return None
    return str(ident or "")
