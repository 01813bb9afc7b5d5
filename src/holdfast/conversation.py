"""The door to one conversation."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from operator import methodcaller
from typing import Any

from .clock import from_ms, to_ms
from .context.assemble import Strategy
from .context.classic import Facts, Summarized, as_strategy
from .context.material import Count
from .context.result import Context
from .engine import Engine
from .errors import BadInput, ConfigError, Conflict
from .ingest.append import rate_reply
from .jobs.usage import note_usage, sent_context
from .llm.protocol import ModelError, reply_request
from .privacy.forget import beginning_of_branch, load_branches
from .reports import ConversationState, ErasureReceipt, RebuildReport, Rebuilt, Receipt, SentContext
from .scope import SELF, Scope, checked_name, conversation_names
from .store import ConversationRow, ReadView
from .text.terms import count_tokens
from .text.validate import MessageLike, checked_count, checked_limit, checked_query, checked_score
from .types import Fact, Hit, Message, ReplyUsage, Summary

FactPosition = tuple[int, datetime, str]
"""The place of a fact among those of a conversation: the first message that states it, ``recorded_at``, id."""


class Conversation:
    """One conversation; made by `Memory.conversation`."""

    def __init__(
        self,
        engine: Engine,
        scope: Scope,
        strategy: Strategy | None = None,
        *,
        incognito: bool = False,
        own_facts: bool | None = None,
    ) -> None:
        self._engine = engine
        self._named = scope
        self._strategy = strategy
        self._incognito = incognito
        self._own_facts = own_facts

    @property
    def _scope(self) -> Scope:
        """Return the scope with the subject that its name means now."""
        named = self._named
        return named if named.subject in (None, SELF) else self._engine.subjects.resolve(named)

    def __repr__(self) -> str:
        return f"Conversation({self.id!r}, user={self._named.user!r})"

    @property
    def id(self) -> str:
        """Its name, given or made."""
        return self._named.conversation or ""

    def append(
        self,
        message_or_messages: MessageLike | Sequence[MessageLike],
        *,
        idempotency_key: str | None = None,
        after: int | None = None,
    ) -> Receipt:
        """
        Store one message or a list of them, durably and in order.

        Args:
            message_or_messages: a `Message`, a mapping in OpenAI's shape, text (a message of the user), or a list of these.
            idempotency_key: the same key with the same messages stores them once.
            after: the number of the message that they follow, 0 for none, where the user edited a message or asked for
                another answer.  What followed it is left behind: it stays stored, and no context, search, summary or fact
                knows it, until a message follows one of it again.

        Returns:
            The numbers they got, and what they changed in what is believed.  When the user paused
            memory or opted out, or the conversation is incognito, nothing is stored and
            ``skipped`` says so.

        Raises:
            BadInput: a message cannot be used; nothing was stored.
            Conflict: the conversation began with another ``own_facts``; nothing was stored.
            KeyReused: the key was used with other messages.
            NotFound: there is no message *after*; nothing was stored, or left behind.
            StoreError: the disk is full, the file is locked…; nothing was stored.
        """
        key = None if idempotency_key is None else checked_name("idempotency_key", idempotency_key)
        scope, eraser, begin = self._scope, self._engine.eraser, None
        if after is not None and not self._incognito:
            begin = beginning_of_branch(eraser, scope, checked_count("after", after) if after else 0)
        receipt = self._engine.append(
            scope,
            message_or_messages,
            key,
            incognito=self._incognito,
            wanted={
                "own_facts": self._own_facts,
                "summarize": not isinstance(self._strategy, Facts),
                "rolling": self._strategy.exchanges if isinstance(self._strategy, Summarized) else 0,
                "begin": begin,
            },
        )
        if begin is not None:
            eraser.forget_caches()
        return receipt

    def record(
        self,
        user_text: str,
        assistant_text: str | None = None,
        *,
        at: datetime | None = None,
        idempotency_key: str | None = None,
    ) -> Receipt:
        """
        Store one exchange: what the user said and, if there is one, the reply.

        Raises:
            BadInput, KeyReused, StoreError: as `append`.
        """
        messages = [Message("user", user_text, at=at)]
        if assistant_text is not None:
            messages.append(Message("assistant", assistant_text, at=at))
        return self.append(messages, idempotency_key=idempotency_key)

    def load(
        self,
        *,
        start_seq: int | None = None,
        limit: int | None = None,
        last: int | None = None,
        abandoned: bool = False,
    ) -> list[Message]:
        """
        Return the messages as they were stored, oldest first.

        Args:
            start_seq: the first message wanted, from 1.
            limit: at most so many.
            last: only so many, counted from the end of the conversation.
            abandoned: those of branches that were left behind, too.  Their ``meta`` says ``abandoned``, and
                ``meta["follows"]`` is the message that one follows, where that is not the one before it.
        """
        start = 1 if start_seq is None else max(1, start_seq)
        most = None if last is None else checked_count("last", last)
        if not abandoned:
            return self._engine.load(self._scope, start, limit, most)
        return self._engine.uses.read("messages", self._scope, partial(load_branches, start_seq=start, last=most))[
            :limit
        ]

    def context(
        self,
        query: str | None = None,
        *,
        budget_tokens: int | None = None,
        strategy: Strategy | str | None = None,
        system: str | None = None,
        count: Count | None = None,
        note: bool = True,
        general: bool = False,
    ) -> Context:
        """
        Build what the model should see now; with the layered strategy: summaries, facts, recent messages, and before the question what is recalled.

        Args:
            query: what the user just said, when it is not stored yet; it closes the messages.
            budget_tokens: never exceeded; ``Config.budget_tokens`` when not given.
            strategy: what to choose, itself or its name (``facts/2``); that of the conversation when not given. See
                `holdfast.strategies`.
            system: your own system prompt, put first and counted.
            count: how many tokens a text has; an estimate that errs upwards when not given.
            note: whether it is for a reply: what it recalls counts as used, and its size is measured with the reply.
                ``False`` to look at it only.
            general: in a conversation about a subject, recall from those about no subject in particular, too.

        Raises:
            BadInput: the budget is below 1, or the query is not text.
        """
        budget = self._engine.config.budget_tokens if budget_tokens is None else budget_tokens
        return self._engine.context(
            self._scope,
            checked_query(query) if query else None,
            checked_count("budget_tokens", budget),
            system,
            (as_strategy(strategy) if isinstance(strategy, str) else strategy) or self._strategy,
            count or count_tokens,
            incognito=self._incognito,
            quiet=not note,
            general=general,
        )

    def recall(self, query: str, *, last: int = 50, limit: int = 5) -> list[Hit]:
        """
        Return those of the last messages that are nearest to *query*, best first.

        It answers "what was it about a minute ago"; `User.search` looks through everything.

        Args:
            query: words or a question.
            last: how many messages back it may look.
            limit: hits returned at most.

        Raises:
            BadInput: the query is empty or not text, or a number is below 1.
        """
        query, last, limit = checked_query(query), checked_count("last", last), checked_count("limit", limit)
        return [] if self._incognito else self._engine.recall(self._scope, query, last, limit)

    def summaries(
        self,
        level: int | None = None,
        *,
        live: bool = True,
        limit: int | None = None,
        after: tuple[int, int, int, str] | None = None,
    ) -> list[Summary]:
        """
        Return its summaries by range.

        Args:
            level: only this one: 1 for chunks, 2 and up for summaries of several.
            live: ``False`` adds older versions of ranges that were summarized again.
            limit: at most so many.
            after: continue behind the last summary of the page before: its ``start_seq``, ``level``, ``version``, ``id``.
        """
        most = checked_limit(limit)
        return self._engine.uses.read(
            "summaries", self._scope, lambda view: view.summaries(level=level, live=live, limit=most, after=after)
        )

    def episodes(
        self,
        *,
        start_seq: int | None = None,
        end_seq: int | None = None,
        limit: int | None = None,
        after: FactPosition | None = None,
    ) -> list[Fact]:
        """
        Return facts of kind episode that rest on this conversation, by range; the arguments are those of `learned`.

        Those of one chunk: ``episodes(start_seq=summary.start_seq, end_seq=summary.end_seq)``.
        """
        span = {"start_seq": start_seq or 1, "end_seq": end_seq or sys.maxsize}
        return self._facts_said_here(limit, after, **span, kind="episode", live=True)

    def learned(
        self,
        *,
        start_seq: int | None = None,
        end_seq: int | None = None,
        limit: int | None = None,
        after: FactPosition | None = None,
    ) -> list[Fact]:
        """
        Return facts, live and past, that rest on messages of this conversation, by where they were first said in it.

        ``start_seq`` and ``end_seq`` of each are the first and the last of these messages.

        Args:
            start_seq: only what rests on this message or a later one.
            end_seq: only what rests on this message or an earlier one.
            limit: at most so many.
            after: continue behind the last fact of the page before: the first of these messages that states it, its
                ``recorded_at``, and ``id``.
        """
        return self._facts_said_here(limit, after, start_seq=start_seq or 1, end_seq=end_seq or sys.maxsize)

    def _facts_said_here(self, limit: int | None, after: FactPosition | None, **which: Any) -> list[Fact]:
        which["limit"] = checked_limit(limit)
        which["after"] = None if after is None else (after[0], to_ms(after[1]), after[2])
        scope = self._scope
        rows = self._engine.uses.read("facts", scope, methodcaller("facts_said_here", **which))
        home = scope.subject or SELF
        return [fact.within((self.id,), home=home) or fact for fact in map(self._engine.as_of_now, rows)]

    def state(self) -> ConversationState | None:
        """Return how many messages it has, and how many are summarized and read; ``None`` before its first message."""
        row, stale = self._engine.store.read(self._scope, lambda view: (view.conversation(), view.stale_summaries()))
        return None if row is None else _state(row, stale)

    def reply(self, text: str, *, system: str | None = None) -> Message:
        """
        Ask the memory's own model for a reply to *text*, with the context that `context` builds, and store both.

        Nothing is stored when the model fails.  The call counts in the budgets, and in ``usage()`` as ``chat``.

        Args:
            text: what the user says.
            system: instructions for the assistant, above the memory.

        Returns:
            The reply; its ``seq`` is 0 where nothing is stored: the user paused, say, or the conversation is incognito.

        Raises:
            BadInput: the text cannot be stored.
            ConfigError: the memory has no model.
            ModelError: the model gave no answer.
        """
        if self._engine.client is None:
            raise ConfigError("there is no model to ask", hint="name one with llm=… or `holdfast serve --llm`")
        if not isinstance(text, str) or not text.strip():
            raise BadInput("there is nothing to reply to", hint="give what the user says")
        built = self.context(text, system=system)
        request = reply_request(built.messages, built.cache_key)
        answer = self._engine.client.ask(self._scope, request)
        if not answer.text.strip():
            raise ModelError(f"{answer.model} returned an empty reply", hint="ask again")
        stored = self.record(text, answer.text)
        if not stored.seqs:
            return Message("assistant", answer.text)
        seq = stored.seqs[-1]
        used = ReplyUsage(answer.model, answer.input_tokens, answer.output_tokens, answer.cached_tokens)
        self._engine.store.write(self._scope, lambda view: note_usage(view, seq, used))
        return self.load(start_seq=seq, limit=1)[0]

    def sent(self, seq: int | None = None) -> SentContext | None:
        """
        Return what was sent to the model for a reply: sections, tokens, items, and the difference to the reply before.

        Recorded when a reply is appended after `context` (which ``note=False`` leaves out).  Only references are kept:
        an item that was erased since then has no text.

        Args:
            seq: the number of the reply; the newest one with a context on record when not given.

        Returns:
            ``None`` where no context is on record: the reply was imported, say, or no reply of an assistant.
        """
        number = None if seq is None else checked_count("seq", seq)
        return self._engine.uses.read("sent", self._scope, lambda view: sent_context(view, number))

    def record_usage(
        self,
        model: str,
        *,
        input_tokens: int,
        output_tokens: int,
        cached_tokens: int = 0,
        cost: float | None = None,
        seq: int | None = None,
    ) -> None:
        """
        Put on record what your own model used for a reply; counted in ``usage()``, as ``chat``, and in the budgets.

        With *seq*, it is kept with the reply as well, `Message.usage`, unless the conversation is incognito or the user paused.

        Args:
            model: its name, as ``Config.prices`` knows it.
            input_tokens: of the prompt, the cached ones among them.
            output_tokens: of the reply.
            cached_tokens: those that the provider still knew.
            cost: in US dollars; by ``Config.prices`` when not given.
            seq: the number of the reply, which `append` returned.

        Raises:
            BadInput: a number that cannot be one, or the message is not an assistant's.
            NotFound: there is no such message.
        """
        used = (input_tokens, output_tokens, cached_tokens)
        for tokens in used:
            if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 0:
                raise BadInput(f"tokens must be a whole number, not {tokens!r}")
        if cost is not None and not 0 <= cost < float("inf"):
            raise BadInput(f"the cost must be in dollars, not {cost!r}")
        reply = None if seq is None or self._incognito else checked_count("seq", seq)
        self._engine.record_usage(self._scope, checked_name("model", model), used, cost, reply)

    def rate(self, score: float, *, seq: int | None = None) -> Message:
        """
        Store what the user thought of a reply: a thumb up (``True``) or down (``False``), or a score from 0 to 1.

        The message's ``meta`` holds it, as ``rating`` and ``rated_at``; a later rating takes its place, and it is erased
        with the message.  ``metrics()`` has the mean, as ``satisfaction``.

        Args:
            score: 1 for good, 0 for bad.
            seq: the reply's number; the latest reply when not given.

        Returns:
            The message as it is stored now.

        Raises:
            BadInput: the score is not from 0 to 1, or the message is no reply.
            NotFound: there is no such reply.
            Conflict: the user paused memory or opted out, or the conversation is incognito, so nothing is written.
        """
        value = checked_score(score)
        number = None if seq is None else checked_count("seq", seq)
        if self._incognito:
            raise Conflict("an incognito conversation keeps no ratings", hint="rate replies of stored conversations")
        now = self._engine.clock().isoformat(timespec="seconds")
        return self._engine.store.write(self._scope, lambda view: rate_reply(view, value, number, now))

    def end(self) -> None:
        """Close the open chunk: the conversation is over for now, and its rest can be summarized."""
        if not self._incognito:
            self._engine.end(self._scope, summarize=not isinstance(self._strategy, Facts))

    def edit(self, seq: int, content: str) -> ErasureReceipt:
        """
        Replace the words of a message; what was learned from the old ones goes, the new ones are read.

        The message's ``meta`` holds the time, as ``edited_at``.

        Args:
            seq: the message's number.
            content: what it says now.

        Returns:
            What was removed or rewritten, and in ``changes`` what the new words say.

        Raises:
            BadInput: the content cannot be used.
            NotFound: there is no such message.
            Conflict: the user paused memory or opted out, so nothing new may be written.
        """
        return self._engine.edit(self._scope, checked_count("seq", seq), content)

    def forget(self, seq: int) -> ErasureReceipt:
        """
        Erase one message and what rested only on it; its number stays, empty.

        Summaries over it are rewritten from what remains, facts that others said too stay, and a
        value that it had replaced holds again.

        Raises:
            NotFound: there is no such message.
        """
        return self._engine.forget_message(self._scope, checked_count("seq", seq))

    def clear(self) -> ErasureReceipt:
        """Erase the conversation and all that rested only on it; the next message is number 1 again."""
        return self._engine.clear_conversation(self._scope)

    def rebuild(
        self,
        layer: str,
        *,
        start_seq: int | None = None,
        end_seq: int | None = None,
        dry_run: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> RebuildReport:
        """
        Rebuild one layer with the model or rules of today; the old version is kept.

        Only what holds any of the messages is made again: whole chunks for summaries and episodes, the
        summaries above them for ``meta``.  Facts that are not found again end as ``rebuilt``; what was written or
        denied by hand stays.  Each range is one transaction: until it, readers see the old version.

        Args:
            layer: ``facts``, ``episodes``, ``summaries`` (of chunks), ``meta`` (of summaries) or ``vectors``; ``chunk``
                for the first three at once, as one rebuild that one `restore` reverts.
            start_seq: the first message, from 1.
            end_seq: the last message.
            dry_run: change nothing; say what would be made again, with calls, tokens and cost.  Without a model,
                ``after`` has the facts as they would be.
            progress: called with how many ranges are done and how many there are.

        Raises:
            BadInput: there is no such layer, or the range is none.
            ConfigError: this memory does not make that layer: no model for episodes, no embedder for vectors.
            Conflict: the user paused memory or opted out.
            NotFound: there is no such conversation, or no message *start_seq* in it.
        """
        first, last = _checked_range(start_seq, end_seq)
        self._engine.uses.note_preview(self._scope, dry_run)
        return self._engine.rebuild(self._scope, layer, first, last, dry_run=dry_run, progress=progress)

    def rebuilds(self) -> list[Rebuilt]:
        """Return the rebuilds of this conversation, oldest first; `restore` reverts one."""
        return self._engine.rebuilder.rebuilds(self._scope)

    def restore(self, rebuild_id: str) -> RebuildReport:
        """
        Restore the state before a rebuild, in one transaction; itself a rebuild that can be restored.

        Raises:
            NotFound: there is no such rebuild in this conversation.
            Conflict: a summary was rewritten since then, or one of its messages was changed or erased; or
                the user paused memory or opted out.
        """
        return self._engine.rebuilder.restore(self._scope, rebuild_id)


def check_rebuild(chat: Conversation, layer: str, start_seq: int | None, end_seq: int | None) -> None:
    """
    Check that a range can be rebuilt, without an estimate.

    Raises:
        BadInput, ConfigError, Conflict, NotFound: as `Conversation.rebuild`.
    """
    first, _ = _checked_range(start_seq, end_seq)
    chat._engine.work.of(chat._scope).rebuilder.check(chat._scope, layer, first)


def _checked_range(start_seq: int | None, end_seq: int | None) -> tuple[int, int | None]:
    first = 1 if start_seq is None else checked_count("start_seq", start_seq)
    last = None if end_seq is None else checked_count("end_seq", end_seq)
    if last is not None and last < first:
        raise BadInput(f"end_seq {last} lies before start_seq {first}")
    return first, last


def conversation_states(
    view: ReadView, limit: int | None, after: tuple[int, str, str] | None
) -> list[ConversationState]:
    """Return the states of the conversations that the view can see, newest first; see `User.overview`."""
    stale = view.stale_summaries()
    return [_state(row, stale) for row in view.newest_conversations(limit=limit, after=after)]


def _state(row: ConversationRow, stale: Mapping[tuple[str, str], int]) -> ConversationState:
    return ConversationState(
        conversation=row.conversation,
        subject=row.subject,
        messages=row.next_seq - 1,
        summarized=row.chunk_start - 1,
        read=row.extracted_seq,
        own_facts=bool(row.own_facts),
        stale=stale.get((row.subject, row.conversation), 0),
        created_at=from_ms(row.created_at),
        last_at=from_ms(row.last_at),
    )


def said_in(
    conversation: str | Sequence[str] | None, start_seq: int | None, end_seq: int | None
) -> Callable[[Fact], Fact | None] | None:
    """Return a function to a fact with its range in these conversations, ``None`` for others; or ``None`` for no such filter."""
    names, ranged = conversation_names(conversation), start_seq is not None or end_seq is not None
    if ranged and (names is None or len(names) != 1):
        raise BadInput("a range needs the one conversation that it is of", hint='add conversation="…"')
    if names is None:
        return None
    return methodcaller("within", names, start_seq or 1, end_seq or sys.maxsize)


def in_order(facts: Sequence[Fact], *, by_strength: bool) -> list[Fact]:
    """Return facts of several categories by their addresses, or the strongest first."""
    if by_strength:
        return sorted(facts, key=lambda fact: (-fact.strength, fact.id))
    return sorted(facts, key=lambda fact: (fact.subject, fact.category, fact.key, fact.value, fact.id))
