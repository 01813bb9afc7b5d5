"""
The front door: `Memory`, `Conversation`, `Person`.

It mints scopes, checks what callers give, and hands over to the pipeline; it holds no logic of its
own.  ``aio.py`` is generated from this file.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from datetime import datetime
from types import TracebackType

from .clock import Clock, to_ms, utc_now
from .config import Config
from .context.result import Context
from .embed import BUILT_IN, BuiltIn, resolve
from .embed.protocol import Embedder
from .errors import BadInput, ConfigError, NotFound
from .ingest.prepare import MessageLike
from .pipeline import Pipeline, believed, facts_at
from .scope import SELF, Scope, checked_name
from .store import open_store
from .types import DigestReport, Fact, FactKind, Hit, HitKind, Job, Message, Receipt, Rejected, Report, Summary

HIT_KINDS: tuple[HitKind, ...] = ("fact", "message", "summary")


class Memory:
    """
    The memory of a chatbot, in one SQLite file.

        memory = Memory("chat.db")
        chat = memory.conversation("web-42", user="alice")
        chat.record("I'm vegetarian.", "Noted!")
        chat.context("What should I cook?").messages

    Safe to use from several threads, and several processes may open the same file.
    """

    def __init__(
        self,
        location: str | os.PathLike[str] = ":memory:",
        *,
        llm: None = None,
        embedder: Embedder | BuiltIn | None = BUILT_IN,
        config: Config | None = None,
        clock: Clock | None = None,
        background: bool = False,
    ) -> None:
        """
        Open *location*, creating the file on first use.

        Args:
            location: a path, or ``":memory:"``.
            llm: ``None``: facts and summaries are made by the built-in rules.
            embedder: the one in the package unless given; ``None`` for recall by words alone.
            config: every setting; see `Config`.
            clock: returns the current time as an aware ``datetime``.
            background: digest in threads of this process; otherwise `digest` does it when called.

        Raises:
            StoreError: the file cannot be opened; the message says what to do.
            ConfigError: an option cannot be used.
        """
        if llm is not None:
            raise ConfigError("this version reads with its built-in rules only", hint="leave llm=None")
        settings = config if config is not None else Config()
        if not isinstance(settings, Config):
            raise ConfigError(f"config must be a Config, not {type(settings).__name__}")
        self._clock = clock or utc_now
        self._pipeline = Pipeline(
            open_store(location, settings), settings, self._clock, resolve(embedder), background=background
        )
        self._config = settings

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def config(self) -> Config:
        """The settings this memory was opened with."""
        return self._config

    def conversation(
        self,
        id: str | None = None,
        *,
        user: str,
        org: str = "default",
        bot: str = "default",
        subject: str | None = None,
    ) -> Conversation:
        """
        One conversation of one user; nothing is stored before the first message.

        Args:
            id: any name, unique within the user and subject; a new one when not given.
            user: whose memory it is.
            org: the tenant; nothing crosses it, not even for the same user.
            bot: the assistant; each has its own memory of the user.
            subject: whom or what it is about when that is not the user: a pet, a patient, a project.
                Nothing said about one subject reaches a conversation about another.

        Raises:
            BadInput: a name is empty, too long, or holds control characters.
        """
        scope = _scope(org, bot, user, subject if subject is not None else SELF)
        name = secrets.token_hex(8) if id is None else checked_name("conversation id", id)
        return Conversation(self._pipeline, scope.within(name))

    def person(self, user: str, *, org: str = "default", bot: str = "default", subject: str | None = None) -> Person:
        """
        What is held about one user: of everything, or of one *subject* (and the user) alone.

        Raises:
            BadInput: a name is empty, too long, or holds control characters.
        """
        return Person(self._pipeline, _scope(org, bot, user, subject))

    def digest(self, timeout_s: float | None = None) -> DigestReport:
        """
        Run all background work that is due now: facts, summaries, vectors.

        Args:
            timeout_s: stop taking up new jobs after this many seconds; what is left stays pending.
        """
        return self._pipeline.digest(timeout_s)

    def jobs(self, state: str | None = None) -> list[Job]:
        """
        Background work that is not finished, oldest first.

        Args:
            state: only ``ready``, ``running``, ``dead`` or ``cancelled`` jobs.
        """
        if state not in (None, "ready", "running", "dead", "cancelled"):
            raise BadInput(f"there is no job state {state!r}", hint="use ready, running, dead or cancelled")
        return self._pipeline.store.jobs(state=state)

    def retry(self, job_id: str) -> None:
        """
        Make a dead or cancelled job ready again.

        Raises:
            NotFound: no such job waits for that.
        """
        if not self._pipeline.store.retry(job_id, self._pipeline.now_ms()):
            raise NotFound(f"no dead or cancelled job has the id {job_id!r}", hint="jobs() lists them")

    def cancel(self, job_id: str) -> None:
        """
        Keep a job from running; what it already wrote stays.

        Raises:
            NotFound: no such job waits or runs.
        """
        if not self._pipeline.store.cancel(job_id):
            raise NotFound(f"no waiting or running job has the id {job_id!r}", hint="jobs() lists them")

    def doctor(self) -> Report:
        """Check every invariant of the store; reads all of it, changes nothing."""
        findings = tuple(self._pipeline.store.check())
        return Report(ok=not findings, findings=findings)

    def backup(self, path: str | os.PathLike[str]) -> None:
        """
        Copy the whole memory to a new file while it is in use.

        Raises:
            StoreError: the file cannot be written, or exists already.
        """
        self._pipeline.store.backup(os.fspath(path))

    def people(self, *, limit: int = 1000, after: tuple[str, str, str] | None = None) -> list[tuple[str, str, str]]:
        """``(org, user, bot)`` of everybody with a memory, by key; for operators."""
        return self._pipeline.store.people(limit=limit, after=after)

    def close(self) -> None:
        """Finish what was accepted and let go of the file; pending jobs stay in it."""
        self._pipeline.close()


class Conversation:
    """One conversation; made by `Memory.conversation`."""

    def __init__(self, pipeline: Pipeline, scope: Scope) -> None:
        self._pipeline = pipeline
        self._scope = scope

    def __repr__(self) -> str:
        return f"Conversation({self.id!r}, user={self._scope.user!r})"

    @property
    def id(self) -> str:
        """Its name, given or made."""
        return self._scope.conversation or ""

    def append(
        self, message_or_messages: MessageLike | Sequence[MessageLike], *, idempotency_key: str | None = None
    ) -> Receipt:
        """
        Store one message or a list of them, durably and in order.

        Args:
            message_or_messages: a `Message`, a mapping in OpenAI's shape, or a list of either.
            idempotency_key: the same key with the same messages stores them once.

        Returns:
            The numbers they got, and what they changed in what is believed.

        Raises:
            BadInput: a message cannot be used; nothing was stored.
            Conflict: the key was used with other messages.
            StoreError: the disk is full, the file is locked…; nothing was stored.
        """
        key = None if idempotency_key is None else checked_name("idempotency_key", idempotency_key)
        return self._pipeline.append(self._scope, message_or_messages, key)

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
            BadInput, Conflict, StoreError: as `append`.
        """
        messages = [Message("user", user_text, at=at)]
        if assistant_text is not None:
            messages.append(Message("assistant", assistant_text, at=at))
        return self.append(messages, idempotency_key=idempotency_key)

    def load(self, *, start_seq: int | None = None, limit: int | None = None) -> list[Message]:
        """
        The messages as they were stored, oldest first.

        Args:
            start_seq: the first message wanted, from 1.
            limit: at most so many.
        """
        start = 1 if start_seq is None else max(1, start_seq)
        return self._pipeline.store.read(self._scope, lambda view: view.messages(start_seq=start, limit=limit))

    def context(
        self, query: str | None = None, *, budget_tokens: int | None = None, system: str | None = None
    ) -> Context:
        """
        What the model should see now: summaries, facts, what is recalled for *query*, recent messages.

        Args:
            query: what the user just said, when it is not stored yet; it closes the messages.
            budget_tokens: never exceeded; ``Config.budget_tokens`` when not given.
            system: your own system prompt, put first and counted.

        Raises:
            BadInput: the budget is below 1, or the query is not text.
        """
        budget = self._pipeline.config.budget_tokens if budget_tokens is None else budget_tokens
        if isinstance(budget, bool) or not isinstance(budget, int) or budget < 1:
            raise BadInput(f"budget_tokens must be a whole number of at least 1, not {budget!r}")
        return self._pipeline.context(self._scope, _query(query, optional=True), budget, system)

    def summaries(self, level: int | None = None, *, live: bool = True) -> list[Summary]:
        """
        Its summaries by range.

        Args:
            level: only this one: 1 for chunks, 2 and up for what stands in for several.
            live: ``False`` adds older versions of ranges that were summarised again.
        """
        return self._pipeline.store.read(self._scope, lambda view: view.summaries(level=level, live=live))

    def episodes(self) -> list[Fact]:
        """Facts of kind episode that rest on this conversation, by range."""
        rows = self._pipeline.store.read(self._scope, lambda view: view.facts(kind="episode"))
        here = [row.fact for row in rows if any(e.conversation == self.id for e in row.fact.evidence)]
        return sorted(here, key=lambda fact: (fact.evidence[0].seq, fact.id))

    def end(self) -> None:
        """Close the open chunk: the conversation is over for now, and its rest can be summarised."""
        self._pipeline.end(self._scope)


class Person:
    """What is held about one user; made by `Memory.person`."""

    def __init__(self, pipeline: Pipeline, scope: Scope) -> None:
        self._pipeline = pipeline
        self._scope = scope

    def __repr__(self) -> str:
        return f"Person({self._scope.user!r})"

    def facts(
        self,
        category: str | None = None,
        *,
        kind: FactKind | None = None,
        as_of: datetime | None = None,
        known_at: datetime | None = None,
    ) -> list[Fact]:
        """
        What is believed, by subject, category, key and value.

        Args:
            category: only this one.
            kind: only attributes, statements or episodes.
            as_of: what held at that time instead of now.
            known_at: as it was known at that time instead of now.
        """
        now_ms = self._pipeline.now_ms()
        if as_of is None and known_at is None:
            rows = self._pipeline.store.read(self._scope, lambda view: view.facts(category=category, kind=kind))
            return [row.fact for row in rows if believed(row, now_ms)]
        ever = self._pipeline.store.read(self._scope, lambda view: view.facts_ever(category=category))
        as_of_ms = now_ms if as_of is None else to_ms(as_of)
        held = facts_at(ever, as_of_ms, now_ms if known_at is None else to_ms(known_at))
        return [fact for fact in held if kind in (None, fact.kind)]

    def history(self, category: str, key: str | None = None) -> list[Fact]:
        """Every value that a category (or one of its keys) had, oldest first, with when each held."""
        rows = self._pipeline.store.read(self._scope, lambda view: view.facts_ever(category=category, key=key))
        return [row.fact for row in rows]

    def search(
        self,
        query: str,
        *,
        limit: int = 10,
        kinds: Sequence[HitKind] = HIT_KINDS,
        min_score: float | None = None,
        conversation: str | None = None,
        explain: bool = False,
    ) -> list[Hit]:
        """
        Find facts, messages and summaries, best first.

        Args:
            query: words or a question.
            limit: at most so many.
            kinds: which of ``fact``, ``message``, ``summary``.
            min_score: leave out what scores below; scores compare within one search only.
            conversation: only messages and summaries of this one.
            explain: give every hit the components of its score; they sum to it.

        Raises:
            BadInput: the query is empty or not text, or a kind is unknown.
        """
        if unknown := [kind for kind in kinds if kind not in HIT_KINDS]:
            raise BadInput(f"there is no kind {unknown[0]!r}", hint=f"use {', '.join(HIT_KINDS)}")
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            raise BadInput(f"limit must be a whole number of at least 1, not {limit!r}")
        text = _query(query, optional=False)
        return self._pipeline.search(
            self._scope,
            text or "",
            limit=limit,
            kinds=tuple(kinds),
            min_score=min_score,
            conversation=conversation,
            explain=explain,
        )

    def rejected(self, *, limit: int = 100) -> list[Rejected]:
        """What was read but not believed, newest first, each with its reason."""
        return self._pipeline.store.read(self._scope, lambda view: view.rejected(limit=limit))

    def conversations(self) -> list[str]:
        """The ids of the user's conversations, by name."""
        rows = self._pipeline.store.read(self._scope, lambda view: view.conversations())
        return [row.conversation for row in rows]


def _scope(org: str, bot: str, user: str, subject: str | None) -> Scope:
    return Scope(
        org=checked_name("org", org),
        bot=checked_name("bot", bot),
        user=checked_name("user", user),
        subject=None if subject is None else checked_name("subject", subject),
    )


def _query(query: object, *, optional: bool) -> str | None:
    if query is None and optional:
        return None
    if not isinstance(query, str):
        raise BadInput(f"the query must be text, not {type(query).__name__}")
    if not query.strip() and not optional:
        raise BadInput("the query is empty", hint="give a few words or a question")
    return query or None
