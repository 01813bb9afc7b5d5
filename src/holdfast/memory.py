"""
The front door: `Memory`, which opens conversations, users and what is for operators.

It checks what callers give, mints scopes and calls the engine; it holds no other logic.  ``scripts/make_aio.py`` writes
``aio.py`` from it, `conversation`, `user` and `admin`.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from types import TracebackType
from typing import Any

from .admin import Admin
from .clock import Clock, utc_now
from .config import Config
from .context.assemble import Strategy
from .context.classic import as_strategy
from .conversation import Conversation
from .embed import BUILT_IN, BuiltIn, resolve
from .embed.protocol import Embedder
from .engine import Engine
from .errors import BadInput, ConfigError, NotFound
from .jobs.backfill import BackfillOrder
from .jobs.queue import WAITING, as_listed
from .jobs.usage import usage_of_all
from .llm import Function, model_of
from .llm.protocol import Closable, LanguageModel
from .reports import BackfillReport, DigestReport, Report, Usage
from .scope import SELF, checked_name, scope_of
from .store import open_store
from .text.validate import checked_limit
from .types import Job
from .user import User


class Memory:
    """
    The memory of a chatbot, in one SQLite file.

        memory = Memory("chat.db")
        chat = memory.conversation("web-42", user="alice")
        chat.record("I'm vegetarian.", "Noted!")
        chat.context("What should I cook?").messages

    Safe to use from several threads, and several processes may open the same file.  With a ``postgresql://`` address
    it is in a server's database, for many machines.
    """

    def __init__(
        self,
        location: str | os.PathLike[str] = ":memory:",
        *,
        llm: LanguageModel | Function | str | None = None,
        embedder: Embedder | BuiltIn | None = BUILT_IN,
        previous_embedder: Embedder | BuiltIn | None = None,
        config: Config | None = None,
        clock: Clock | None = None,
        background: bool = False,
    ) -> None:
        """
        Open *location*, creating the file on first use.

        Args:
            location: a path, ``":memory:"``, or ``"postgresql://…"``.
            llm: ``None``: facts and summaries are made by the built-in rules.  Else the model that makes them:
                ``"openai:…"``, ``"anthropic:…"``, ``"google:…"``, ``"ollama:…"``, `holdfast.llm.model` for another
                address, a function from messages to text, or an object with ``name`` and ``ask(request)``.
            embedder: the one in the package unless given; ``None`` for recall by words alone.
            previous_embedder: the one before it. After a change everybody is embedded anew in the background; so long
                the old vectors answer for the texts that have no new one yet. Without it words alone find those.
            config: every setting; see `Config`.
            clock: returns the current time as an aware ``datetime``.
            background: digest in threads of this process; otherwise `digest` does it when called.

        Raises:
            StoreError: the file cannot be opened; the message says what to do.
            ConfigError: an option cannot be used.
        """
        settings = config if config is not None else Config()
        if not isinstance(settings, Config):
            raise ConfigError(f"config must be a Config, not {type(settings).__name__}")
        settings = replace(settings)  # its own, which `Admin.reload` may change
        self._clock = clock or utc_now
        self._model = model_of(llm, settings)
        self._owns_model = isinstance(llm, str)
        self._engine = Engine(
            open_store(location, settings, self._clock),
            settings,
            self._clock,
            resolve(embedder),
            self._model,
            background=background,
            previous=resolve(previous_embedder),
        )
        self._config = settings
        self._place = re.sub(r"(?<=//)[^@/]*@", "", os.fspath(location))  # a password is nobody's business

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
        strategy: Strategy | str | None = None,
        incognito: bool = False,
        own_facts: bool | None = None,
    ) -> Conversation:
        """
        Open one conversation of one user; nothing is stored before the first message.

        Args:
            id: any name, unique within the user and subject; a new one when not given.
            user: whose memory it is.
            org: the tenant; nothing crosses it, not even for the same user.
            bot: the assistant; each has its own memory of the user.
            subject: whom or what it is about when that is not the user: a pet, a patient, a project.
                Nothing said about one subject reaches a conversation about another.
            strategy: what its contexts hold; the layered strategy when not given. See `holdfast.strategies`; as text, its
                name with its size and options: ``facts/2``, ``layered,side_by_side=on``.
            incognito: nothing is stored, learned or taken from memory; contexts hold what the call gives.
            own_facts: what is stated in it is a fact of this conversation alone, for a trip or a ticket: it replaces
                nothing that holds elsewhere, only contexts of this conversation show it, and it goes with it.  Kept
                with the first message; ``Config.own_facts`` when not given.

        Raises:
            BadInput: a name is empty, too long, or holds control characters, or no strategy has that name.
        """
        scope = scope_of(org, bot, user, subject if subject is not None else SELF)
        chosen = as_strategy(strategy) if isinstance(strategy, str) else strategy
        name = secrets.token_hex(8) if id is None else checked_name("conversation id", id)
        return Conversation(self._engine, scope.within(name), chosen, incognito=incognito, own_facts=own_facts)

    def user(self, user: str, *, org: str = "default", bot: str = "default", subject: str | None = None) -> User:
        """
        Open the memory of one user: all of it, or of one *subject* and the user alone.

        Raises:
            BadInput: a name is empty, too long, or holds control characters.
        """
        return User(self._engine, scope_of(org, bot, user, subject))

    def import_(self, data: Mapping[str, Any]) -> User:
        """
        Take back what `User.export` returned, into the user that it names.

        Raises:
            BadInput: not an export, or one that was damaged; nothing was stored.
            Conflict: something is held about that user already, or they opted out.
        """
        if not isinstance(data, Mapping):
            raise BadInput("this is not the export of a user", hint="pass what export() returned")
        named = {name: checked_name(name, data.get(name)) for name in ("user", "org", "bot")}
        user = self.user(named["user"], org=named["org"], bot=named["bot"])
        user.import_(data)
        return user

    def digest(self, timeout_s: float | None = None) -> DigestReport:
        """
        Run all background work that is due now: facts, summaries, vectors.

        With ``background=True`` it also waits for the jobs that this process's threads hold; other processes' go on by themselves.

        Args:
            timeout_s: stop taking up new jobs after this many seconds; what is left stays pending.
        """
        return self._engine.digest(timeout_s)

    def backfill(
        self,
        user: str | None = None,
        *,
        org: str = "default",
        bot: str = "default",
        layers: Sequence[str] = ("summaries", "episodes", "facts", "meta"),
        limit: int | None = None,
        delay_ms: int | None = None,
        dry_run: bool = False,
        progress: Callable[[BackfillReport], None] | None = None,
    ) -> BackfillReport:
        """
        Bring old conversations up to what this memory makes: what is missing, and what only the rules made.

        What the model has made already is skipped, so a run that was stopped goes on where it ended.

        Args:
            user: whose conversations; everybody's, in every organisation and bot, when not given.
            org: the tenant of *user*.
            bot: the assistant of *user*.
            layers: which of ``summaries``, ``episodes``, ``facts``, ``meta``, done in this order.
            limit: make at most so many ranges.
            delay_ms: pause between two calls of the model; ``Config.backfill_delay_ms`` when not given.
            dry_run: change nothing; say what would be made, with calls, tokens and cost.
            progress: called after each range with the report so far.

        Raises:
            BadInput: there is no such layer, or a number is below 0.
        """
        wanted = BackfillOrder(
            None if user is None else scope_of(org, bot, user, None),
            tuple(layers),
            checked_limit(limit),
            self._config.backfill_delay_ms if delay_ms is None else delay_ms,
            dry_run,
            progress,
        )
        return self._engine.backfiller.backfill(wanted)

    def jobs(self, state: str | None = None, *, limit: int | None = None, after: str | None = None) -> list[Job]:
        """
        Return the background work that is not finished, oldest first.

        Args:
            state: only ``ready``, ``waiting``, ``running``, ``dead`` or ``cancelled`` jobs.  A job waits while
                its model may not be asked: a budget is spent, the key is refused, ...; its reason says which.
            limit: at most this many; all when not given.
            after: continue behind the job of this id, the last one of the page before.

        Raises:
            BadInput: there is no such state, or the limit is below 1.
        """
        if state not in (None, "ready", WAITING, "running", "dead", "cancelled"):
            raise BadInput(f"there is no job state {state!r}", hint="use ready, waiting, running, dead or cancelled")
        now_ms = self._engine.now_ms()
        most = checked_limit(limit)
        return [as_listed(job, now_ms) for job in self._engine.store.jobs(state=state, limit=most, after=after or "")]

    def retry(self, job_id: str) -> None:
        """
        Make a dead or cancelled job ready again.

        Raises:
            NotFound: no dead or cancelled job has this id.
        """
        if not self._engine.store.retry(job_id, self._engine.now_ms()):
            raise NotFound(f"no dead or cancelled job has the id {job_id!r}", hint="jobs() lists them")

    def run_now(self, job_id: str) -> None:
        """
        Make a job due at once that is waiting for a later time.

        Threads of this process, or the next `digest`, take it up.  For a dead or cancelled job use `retry`.

        Raises:
            NotFound: no job with this id is waiting.
        """
        if not self._engine.run_now(job_id):
            raise NotFound(f"no waiting job has the id {job_id!r}", hint="retry(id) revives a dead or cancelled one")

    def cancel(self, job_id: str) -> None:
        """
        Keep a job from running; what it already wrote stays.

        Raises:
            NotFound: no such job waits or runs.
        """
        if not self._engine.store.cancel(job_id):
            raise NotFound(f"no waiting or running job has the id {job_id!r}", hint="jobs() lists them")

    def usage(
        self,
        *,
        by: Sequence[str] = ("layer", "model"),
        since: date | None = None,
        until: date | None = None,
        org: str | None = None,
        user: str | None = None,
        bot: str | None = None,
    ) -> list[Usage]:
        """
        Return what models were used for and what it cost; for operators.

        Args:
            by: any of ``org``, ``user``, ``bot``, ``day``, ``layer``, ``model``; what is not named is summed up.
            since: the first day (UTC) that counts.
            until: the last day (UTC) that counts.
            org: only this tenant.
            user: only this user.
            bot: only this assistant.

        Raises:
            BadInput: *by* names something else, or a time has no zone.
        """
        return usage_of_all(self._engine.store, by, since, until, org=org, user=user, bot=bot)

    def doctor(self) -> Report:
        """Check the database and every invariant of the store; reads all of it, changes nothing."""
        return self._engine.store.examine()

    def backup(self, path: str | os.PathLike[str]) -> None:
        """
        Copy the whole memory to a new file while it is in use.

        Raises:
            StoreError: the file cannot be written, or exists already.
        """
        self._engine.store.backup(os.fspath(path))

    @property
    def admin(self) -> Admin:
        """The door for operators and the server: keys, the ledger of erasures, events, operations, metrics."""
        return Admin(self._engine, self._place)

    def close(self) -> None:
        """Finish what was accepted and let go of the file; pending jobs stay in it."""
        self._engine.close()
        if self._owns_model and isinstance(self._model, Closable):
            self._model.close()
