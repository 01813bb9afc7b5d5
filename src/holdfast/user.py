"""The doors to the memory of one user, and to the prompts of a user, a bot or an organization."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from functools import partial
from operator import methodcaller
from typing import Any

from .clock import to_ms
from .context.material import Count
from .conversation import conversation_states, said_in
from .engine import Engine
from .errors import BadInput, Conflict, NotFound
from .jobs.metrics import compute_metrics, days_between
from .jobs.model_client import (
    checked_prompt_name,
    checked_prompt_text,
    customized_prompt,
    prompt_levels,
    prompt_version,
    version_in_use,
)
from .jobs.summaries import story_with_news
from .jobs.usage import usage_of_user
from .privacy.corrections import Versions, check_version, checked_review, fact_input, find_fact
from .privacy.export import events_after, events_before
from .recall.search import facts_held_at
from .reconcile.decide import ARCHIVED
from .reports import (
    ConsolidationReport,
    ConversationState,
    ErasureReceipt,
    Event,
    Explained,
    Metrics,
    PromptPreview,
    PruneReport,
    SubjectMerge,
    Usage,
)
from .scope import SELF, Scope, checked_name, conversation_names, subject_id
from .store import PromptRow, ReadView, RejectedPosition, UserRow, WriteView, effective_consent
from .text.terms import count_tokens
from .text.validate import checked_count, checked_limit, checked_query, checked_share, checked_text
from .types import (
    HIT_KINDS,
    Consent,
    Fact,
    FactChange,
    FactKind,
    Hit,
    HitKind,
    PromptVersion,
    Rejected,
    ReviewChoice,
    Section,
    Story,
    Subject,
)

FactAddress = tuple[str, str, str, str, str]
"""The place of an active fact in its list: subject, category, key, value, id."""


class User:
    """The memory of one user; from `Memory.user`."""

    def __init__(self, engine: Engine, scope: Scope) -> None:
        self._engine = engine
        self._named = scope

    @property
    def _scope(self) -> Scope:
        """Return the scope with the subject that its name means now."""
        named = self._named
        return named if named.subject in (None, SELF) else self._engine.subjects.resolve(named)

    def __repr__(self) -> str:
        return f"User({self._named.user!r})"

    def facts(
        self,
        category: str | None = None,
        *,
        kind: FactKind | None = None,
        as_of: datetime | None = None,
        known_at: datetime | None = None,
        archived: bool = False,
        conversation: str | Sequence[str] | None = None,
        start_seq: int | None = None,
        end_seq: int | None = None,
        limit: int | None = None,
        after: FactAddress | None = None,
    ) -> list[Fact]:
        """
        Return the active facts, by subject, category, key and value.

        Args:
            category: only this one, or one of the six labels (`Fact.label`): ``technical`` holds whatever is labeled so.
            kind: only attributes, statements or episodes.
            as_of: what held at that time instead of now.
            known_at: as it was known at that time instead of now.
            archived: archived facts instead, the strongest first; not together with the two times.
            conversation: only what this one states, or one of several; the range of each fact is the one there.
            start_seq: only what rests on this message of the conversation or a later one.
            end_seq: only what rests on this message of the conversation or an earlier one.
            limit: at most so many of the facts of now.
            after: continue behind the last fact of the page before: its subject, category, key, value, and id.

        Raises:
            BadInput: *archived* together with a time, or one of them with *limit* or *after*; or a range without
                one conversation.
        """
        among = said_in(conversation, start_seq, end_seq)
        most = None if among else limit
        found = self._facts(category, kind, as_of, known_at, archived, most, after)
        if among is None:
            return found
        chosen = [fact for fact in map(among, found) if fact is not None]
        return chosen if limit is None else chosen[: checked_limit(limit)]

    def _facts(
        self,
        category: str | None,
        kind: FactKind | None,
        as_of: datetime | None,
        known_at: datetime | None,
        archived: bool,
        limit: int | None,
        after: FactAddress | None,
    ) -> list[Fact]:
        """Return the facts of `facts`, of whatever conversations."""
        paged = limit is not None or after is not None
        if paged and (archived or as_of is not None or known_at is not None):
            raise BadInput("only the facts of now come in pages", hint="leave out limit and after")
        category = category and self._engine.category_name(category)
        if archived:
            if as_of is not None or known_at is not None:
                raise BadInput("archived facts are those of now", hint="leave out as_of and known_at")
            ever = self._engine.uses.read("facts", self._scope, lambda view: view.all_facts(category=category))
            rows = [row for row in ever if row.fact.ended_because == ARCHIVED and kind in (None, row.fact.kind)]
            away = [self._engine.as_of_now(row) for row in rows]
            return sorted(away, key=lambda fact: (-fact.strength, fact.id))
        now_ms = self._engine.now_ms()
        if as_of is None and known_at is None:
            work = methodcaller(
                "facts", category=category, kind=kind, now_ms=now_ms, limit=checked_limit(limit), after=after
            )
            rows = self._engine.uses.read("facts", self._scope, work)
            return [self._engine.as_of_now(row) for row in rows]
        ever = self._engine.uses.read("facts", self._scope, lambda view: view.all_facts(category=category))
        as_of_ms = now_ms if as_of is None else to_ms(as_of)
        ever = [replace(row, fact=self._engine.as_of_now(row)) for row in ever]
        held = facts_held_at(ever, as_of_ms, now_ms if known_at is None else to_ms(known_at))
        return [fact for fact in held if kind in (None, fact.kind)]

    def fact(self, fact_id: str) -> Fact:
        """
        Return one fact, live or past.

        Raises:
            NotFound: there is no such fact.
        """
        return self._engine.as_of_now(self._engine.uses.read("facts", self._scope, partial(find_fact, fact_id=fact_id)))

    def history(
        self,
        category: str | None = None,
        key: str | None = None,
        *,
        limit: int | None = None,
        after: tuple[datetime, datetime, str] | None = None,
    ) -> list[Fact]:
        """
        Return every value that a category, one of its keys, or anything had, oldest first, with when each held.

        Args:
            category: only this one, or one of the six labels, as in `facts`.
            key: only this one of the category.
            limit: at most so many.
            after: continue behind the last fact of the page before: its ``valid_from``, ``recorded_at``, and ``id``.
        """
        category = category and self._engine.category_name(category)
        position = None if after is None else (to_ms(after[0]), to_ms(after[1]), after[2])
        which = {"category": category, "key": key, "limit": checked_limit(limit), "after": position}
        rows = self._engine.uses.read("facts", self._scope, methodcaller("all_facts", **which))
        return [self._engine.as_of_now(row) for row in rows]

    def search(
        self,
        query: str,
        *,
        limit: int = 10,
        kinds: HitKind | Sequence[HitKind] = HIT_KINDS,
        min_relevance: float = 0.0,
        conversation: str | Sequence[str] | None = None,
        explain: bool = False,
        general: bool = False,
    ) -> list[Hit]:
        """
        Find facts, messages and summaries, best first.

        Args:
            query: words or a question.
            limit: at most so many.
            kinds: which of ``fact``, ``message``, ``summary``.
            min_relevance: leave out what bears on the question less surely, 0 to 1; it means the same everywhere.
            conversation: only messages and summaries of this one, or of several, and the facts that they state.
            explain: give every hit the components of its score; they sum to it.
            general: of one subject, also what was said in conversations about no subject in particular.

        Raises:
            BadInput: the query is empty or not text, or a kind is unknown.
        """
        wanted = (kinds,) if isinstance(kinds, str) else tuple(kinds)
        if unknown := [kind for kind in wanted if kind not in HIT_KINDS]:
            raise BadInput(f"there is no kind {unknown[0]!r}", hint=f"use {', '.join(HIT_KINDS)}")
        return self._engine.search(
            self._scope,
            checked_query(query),
            limit=checked_count("limit", limit),
            kinds=wanted,
            min_relevance=checked_share("min_relevance", min_relevance),
            conversations=conversation_names(conversation),
            explain=explain,
            general=general,
        )

    def explain(self, query: str, *, at: datetime | None = None, limit: int = 20) -> Explained:
        """
        Show what a question finds, with the parts of each score, and which hits a context would recall.

        Nothing is noted: what is only looked at counts as no use.

        Args:
            query: words or a question.
            at: as if asked then: only what had been said or held; "yesterday" in the question means the day before.
            limit: candidates at most.

        Raises:
            BadInput: the query is empty or not text, or the time has no zone.
        """
        now_ms = self._engine.now_ms()
        at_ms = now_ms if at is None else min(to_ms(at), now_ms)
        found = checked_count("limit", limit)
        return self._engine.explain(self._scope, checked_query(query), at_ms, found, today=at is None)

    def profile(self, *, budget_tokens: int = 500, count: Count | None = None) -> Section:
        """
        Build a block for a system prompt from what is known about this user.

        The facts that matter most and fit, those of one value first, then sentences and events, within each the
        most used.  Nothing while memory is paused or opted out; nothing that has expired or is archived.  The
        text is the same until a fact changes, and it is data: one JSON string a line, which cannot break out.

        Args:
            budget_tokens: at most so many, heading included.
            count: a callable from text to tokens, instead of the built-in estimate.

        Returns:
            A section: its ``text`` (empty when nothing is known), its ``tokens``, its ``items``.

        Raises:
            BadInput: *budget_tokens* is not a positive whole number.
        """
        budget = checked_count("budget_tokens", budget_tokens)
        return self._engine.profile(self._scope, budget, count or count_tokens)

    def story(self, subject: str | None = None) -> Story:
        """
        Return the story of a subject: the dated summary across all conversations about it; without lines before there is one.

        It is made in the background once three conversations have summaries (`Config.rollup_summaries`), and again when one of them changes.  What
        it does not tell yet follows, told by the rules.  What rests on something erased goes with it.  New conversations begin with it.

        Args:
            subject: the subject by its id, name or alias; that of this user object when none is given, and the user when that has none.
        """
        named = self._named if subject is None else self._named.about(subject_id(checked_name("subject", subject)))
        scope = self._engine.subjects.resolve(named) if named.subject not in (None, SELF) else named.about(SELF)
        look = partial(story_with_news, config=self._engine.config)
        return self._engine.uses.read("story", scope, look) or Story("", scope.subject or SELF)

    def rejected(self, *, limit: int = 100, waiting: bool = False) -> list[Rejected]:
        """Return what was read but rejected, newest first, each with its reason; *waiting*: what the user is asked about instead."""
        return self.rejected_page(limit=limit, waiting=waiting)[0]

    def rejected_page(
        self, *, limit: int, after: RejectedPosition | None = None, waiting: bool = False
    ) -> tuple[list[Rejected], RejectedPosition | None]:
        """Return one page of `rejected` behind position *after*, and the position of its last one if more follow."""
        look = partial(ReadView.rejected_page, limit=limit, after=after, only="waiting" if waiting else "refused")
        return self._engine.uses.read("rejected", self._scope, look)

    def review(self, ids: Sequence[str], choice: ReviewChoice, *, value: str | None = None) -> list[FactChange]:
        """
        Decide about what waits for the user, with `Config.ask_before_learning`: see `rejected` with ``waiting=True``.

        Args:
            ids: `Rejected.id` of each; what says the same elsewhere is decided with it.
            choice: ``accept`` believes it, ``dismiss`` does not, ``wait`` takes back either.
            value: with ``accept`` of one: what is right instead; of a sentence all its words.

        Returns:
            What changed, for each id; of op ``rejected``, with the reason, where nothing is believed.

        Raises:
            BadInput: the choice is none of these, or there is a value that cannot be used.
            NotFound: nothing waits under one of the ids; nothing was changed.
        """
        return self._engine.corrections.review(self._scope, *checked_review(ids, choice, value))

    def subjects(self) -> list[Subject]:
        """Return the subjects that the user speaks of, by name, each with its names and how much is held about it."""
        return self._engine.subjects.list(self._scope)

    def subject(
        self, id: str, *, name: str | None = None, aliases: Sequence[str] = (), without: Sequence[str] = ()
    ) -> Subject:
        """
        Declare a subject, or give it another name or more aliases; letter case does not matter.

        What the user says of it by any of these names, in any conversation, becomes its facts; what was said already
        moves to it.  A name that two subjects have means neither, except in a conversation about one of them.

        Args:
            id: as `Memory.conversation` and `Memory.user` take it: ``"pet-42"``.
            name: what is shown: ``"Luna"``.
            aliases: other names that mean it: ``"my dog"``; they are added.
            without: aliases that do not mean it any more.

        Raises:
            BadInput: a name cannot be one, or there are more than 50 aliases.
            Conflict: the user paused memory or opted out.
        """
        names = {"id": (id,), "name": () if name is None else (name,), "alias": aliases, "without": without}
        for what, given in names.items():
            if isinstance(given, str):
                raise BadInput(f"{what} must be a list of names", hint=f"write ({given!r},)")
            for one in given:
                checked_name(what, one)
        return self._engine.subjects.declare(self._scope, subject_id(id), name, tuple(aliases), tuple(without))

    def merge_subjects(self, id: str, into: str, *, dry_run: bool = False) -> SubjectMerge:
        """
        Make one subject part of another: its facts, conversations and names; it cannot be undone.

        At an address that both have the later words hold, and the others become history.

        Args:
            id: the subject that will be no more.
            into: the one that stays.
            dry_run: change nothing, and return what would move.

        Raises:
            NotFound: there is no such subject.
            BadInput: one of them is the user, or they are the same.
            Conflict: the user paused memory or opted out.
        """
        first, second = (subject_id(checked_name("subject", one)) for one in (id, into))
        self._engine.uses.note_preview(self._scope, dry_run)
        return self._engine.subjects.merge(self._scope, first, second, dry_run=dry_run)

    def conversations(self, *, limit: int | None = None, after: str | None = None) -> list[str]:
        """
        Return the ids of the user's conversations, by name.

        Args:
            limit: at most so many.
            after: continue behind this id, the last one of the page before.
        """
        most, last = checked_limit(limit), after or ""
        return self._engine.store.read(self._scope, lambda view: view.conversation_names(limit=most, after=last))

    def overview(
        self, *, limit: int | None = None, after: tuple[datetime, str, str] | None = None
    ) -> list[ConversationState]:
        """
        Return the state of each of the user's conversations, of all subjects in this scope, newest first.

        Args:
            limit: at most so many.
            after: continue behind the last one of the page before: its ``last_at``, ``conversation``, and ``subject``.
        """
        most, position = checked_limit(limit), None if after is None else (to_ms(after[0]), after[1], after[2])
        return self._engine.store.read(self._scope, partial(conversation_states, limit=most, after=position))

    def remember(
        self,
        text: str | None = None,
        *,
        category: str | None = None,
        key: str | None = None,
        value: str | None = None,
        aliases: Sequence[str] = (),
        confidence: float = 1.0,
        importance: float | None = None,
        conversation: str | None = None,
        start_seq: int | None = None,
        end_seq: int | None = None,
        at: datetime | None = None,
        idempotency_key: str | None = None,
    ) -> FactChange:
        """
        Add a fact by hand, or replace the one at its address, as if it was said now, or then.

        With a range of messages it rests on those: a sentence is an episode then, of the day of the first of them.

        Args:
            text: a sentence; read like a message when neither an address nor a range is given, kept as it is otherwise.
            category: with *key* and *value*: the address and what holds there; with a sentence alone its label, one of six:
                ``preference``, ``context``, ``identity``, ``history``, ``technical``, ``behavioral``.
            key: see *category*.
            value: see *category*.
            aliases: other names under which questions find it: ``("k8s", "kube")``; the same words again add names.
            confidence: from 0 to 1.
            importance: from 0 to 1: what comes first where room is short; 0.5 when not given.
            conversation: with *start_seq* and *end_seq*: the messages that it is about, 200 at most.
            start_seq: the first of them.
            end_seq: the last of them; the first when not given.
            at: when it was said, when that was not now: what was stated later still holds.
            idempotency_key: the same key with the same words stores them once; repeated, the change is ``confirmed``.

        Returns:
            What changed; of op ``rejected``, with the reason, when nothing was written.

        Raises:
            BadInput: neither a sentence nor a whole address, no whole range, or an alias cannot be one.
            NotFound: there is no such conversation, or nothing is said in these messages.
            KeyReused: the key was used with other words.
        """
        told = fact_input(
            text,
            category=category,
            key=key,
            value=value,
            aliases=aliases,
            confidence=confidence,
            importance=importance,
            conversation=conversation,
            start_seq=start_seq,
            end_seq=end_seq,
            at=at,
            idempotency_key=idempotency_key,
        )
        return self._engine.remember(self._scope, told)

    def correct(
        self,
        fact_id: str,
        *,
        value: str | None = None,
        importance: float | None = None,
        if_version: Versions = None,
    ) -> FactChange:
        """
        Correct a fact that was wrong from the start: *value* held instead, and history says so.

        An episode or a sentence stays what it is, of its day, in other words.

        Args:
            fact_id: the fact.
            value: what is right; of an episode or a sentence all its words.  The value that it has confirms it.
            importance: from 0 to 1: what comes first where room is short, and is not archived as faded from 0.8 on.
            if_version: the `Fact.version` that you saw, or several; another one is left as it is.

        Raises:
            BadInput: the value is empty or not text, the importance is no share, or neither is given.
            NotFound: there is no such fact.
            Changed: the fact has none of these versions any more.
        """
        if value is None and importance is None:
            raise BadInput("correct needs a value, an importance, or both", hint='try correct(id, value="…")')
        right = None if value is None else checked_text("value", value)
        weight = None if importance is None else checked_share("importance", importance)
        return self._engine.correct(self._scope, fact_id, right, if_version, weight)

    def never_true(self, fact_id: str, *, if_version: Versions = None) -> FactChange:
        """
        Declare that a fact never held; what it had replaced holds again.  The same words do not teach it again.

        Raises:
            NotFound: there is no such fact.
            Changed: as `correct`.
        """
        return self._engine.never_true(self._scope, fact_id, if_version)

    def restore(self, fact_id: str, *, if_version: Versions = None) -> FactChange:
        """
        Believe a past fact again: all along if it was never true or archived, from now on otherwise.

        Raises:
            NotFound: there is no such fact.
            Changed: as `correct`.
        """
        return self._engine.restore(self._scope, fact_id, if_version)

    def forget(self, fact_id: str, *, if_version: Versions = None, dry_run: bool = False) -> ErasureReceipt:
        """
        Erase one fact with its own words; they are blanked in the messages that said them.

        What rests on the rest of the sentence stays: "allergic to nuts and shellfish" still says shellfish when nuts are
        forgotten.  What says the same words goes as well.

        Args:
            fact_id: the fact.
            if_version: as in `correct`.
            dry_run: erase nothing; the receipt's ``preview`` says what would go, stay, and read otherwise.

        Raises:
            NotFound: there is no such fact.
            Changed: as `correct`.
        """
        self._engine.uses.note_preview(self._scope, dry_run)
        return self._engine.forget_fact(self._scope, fact_id, if_version, dry_run=dry_run)

    def clear(self) -> ErasureReceipt:
        """Erase every fact, live and past, with the words they rest on, and all that was refused."""
        return self._engine.clear_facts(self._scope)

    def erase(self) -> ErasureReceipt:
        """Erase everything that is held; a pause, an opt-out, and categories that are never remembered stay in force."""
        return self._engine.erase(self._scope)

    def pause(self) -> None:
        """Keep what is held, use none of it, write nothing, until `resume`."""
        self._engine.consent.choose(self._scope, "paused")

    def resume(self) -> None:
        """End a pause; what was stored before it and not yet digested is digested now."""
        if self.status().state == "paused":
            self._engine.consent.choose(self._scope, "active")

    def opt_out(self, erase: bool = True) -> ErasureReceipt:
        """
        Remember nothing from now on, and erase what is held unless *erase* is false.
        """
        self._engine.consent.choose(self._scope, "opted-out")
        return self.erase() if erase else ErasureReceipt({}, "E0", why="nothing was erased; nothing of it is used")

    def opt_in(self) -> None:
        """Remember again, after an opt-out or a pause."""
        self._engine.consent.choose(self._scope, "active")

    def status(self) -> Consent:
        """Return what the user chose, and since when."""
        return self._engine.consent.status(self._scope)

    def never_remember(self, topic: str) -> None:
        """
        Learn no more facts of a topic: a category, or words that all occur in what is said.

        What is believed already stays until it is forgotten; messages are kept as they are.
        """
        self._engine.consent.never(self._scope, checked_text("topic", topic), never=True)

    def allow(self, topic: str) -> None:
        """Take back `never_remember`."""
        self._engine.consent.never(self._scope, checked_text("topic", topic), never=False)

    def prune(self, *, faded: bool = False) -> PruneReport:
        """
        Archive the facts beyond ``Config.max_memories``, the weakest first; the background does so too.

        Archived facts are not shown or recalled. `facts` with ``archived=True`` lists it, `restore` brings it back,
        and so does saying it again.

        Args:
            faded: archive as well, however few there are, sentences and events that were not said or used for
                more than four half-lives.
        """
        return self._engine.upkeep.prune(self._scope, with_faded=faded)

    @property
    def prompts(self) -> Prompts:
        """The user's prompts: get, set, reset, versions."""
        return Prompts(self._engine, self._named)

    def usage(
        self, *, by: Sequence[str] = ("layer", "model"), since: date | None = None, until: date | None = None
    ) -> list[Usage]:
        """
        Return what models were used for on the user's behalf, and what it cost; see `Memory.usage`.

        Summed up is what *by* (any of ``day``, ``layer``, ``model``) does not name; the days are UTC, both included.
        """
        return usage_of_user(self._engine.store, self._scope, by, since, until)

    def metrics(self, *, since: date | None = None, until: date | None = None) -> Metrics:
        """
        Measure how well memory serves this user, from what is stored of all subjects.

        Args:
            since: the first day (UTC) that counts.
            until: the last day (UTC) that counts.

        Raises:
            BadInput: the days cannot be used.
        """
        days = days_between(since, until, self._engine.now_ms())
        whole = self._scope.about(None)
        jobs = self._engine.store.read(whole, lambda view: view.jobs())
        used = self.usage(by=("model",), since=since, until=until)
        note = partial(self._engine.uses.note_read, "metrics")
        return compute_metrics(self._engine.store, [whole], days, used, jobs, note=note)

    def events(self, *, after: int = 0, limit: int = 100, conversation: str | None = None) -> list[Event]:
        """
        Return the events after number *after* (see `last_event`), oldest first: who changed what and when, without
        message text.  With *conversation* only what happened in it, and what concerns the user as a whole.
        """
        return events_after(self._engine.store, self._scope, after, checked_count("limit", limit), conversation)

    def last_event(self) -> int:
        """Return the number of the newest event; 0 when there is none."""
        return self._engine.store.read(self._scope, lambda view: view.news(0, limit=0)).newest

    def audit(self, *, before: int | None = None, limit: int = 100) -> list[Event]:
        """Return events newest first: at most *limit*, below number *before*: every change and `Config.read_log_share` of the reads."""
        return events_before(self._engine.store, self._scope, before, checked_count("limit", limit))

    def consolidate(self, *, dry_run: bool = False) -> ConsolidationReport:
        """
        Merge now what says the same; the background does so too, after every 20 new sentences.

        Only sentences are merged, never attributes.  Their quotes, and they themselves, are kept: `history` shows
        them with ``ended_because="merged"``, and `restore` of one of them takes the memory apart again, for good.
        With a model, sentences about the same thing are joined as well; its text must be made of their words.

        Args:
            dry_run: change nothing, and return what would be merged without a model.
        """
        self._engine.uses.note_preview(self._scope, dry_run)
        return self._engine.consolidate(self._scope, dry_run=dry_run)

    def export(self) -> dict[str, Any]:
        """Everything that is held about the user, of all subjects, as data that JSON can hold and `import_` takes."""
        self._engine.uses.note_read("export", self._scope)
        return self._engine.exporter.export(self._scope)

    def import_(self, data: Mapping[str, Any]) -> None:
        """
        Take an export back; nothing may be held about the user yet.

        Raises:
            BadInput: not an export, or one that was damaged; nothing was stored.
            Conflict: something is held already, or the user opted out.
        """
        self._engine.exporter.import_(self._scope, data)


KEPT_VERSIONS = 50
PromptVersions = int | Collection[int] | None


class Prompts:
    """
    The instructions of one user for models: ``chunk_summary``, ``meta_summary``, ``fact_extraction``, ``episodes``, ``character``, ``story``.

    A user's text replaces our description of the task; the format of the answer and the rule that messages are data stay
    as they are.  It is used from the next call of a model on.  Where the user has none, that of the bot is used, then that
    of the org (`Admin.prompts`), then ours.
    """

    def __init__(self, engine: Engine, scope: Scope) -> None:
        self._engine = engine
        self._scope = scope

    def __repr__(self) -> str:
        scope = self._scope
        return f"Prompts({scope.user!r})" if scope.user else f"Prompts(org={scope.org!r}, bot={scope.bot or None!r})"

    def get(self, name: str) -> str:
        """
        Return the text in use.

        Raises:
            BadInput: there is no such prompt.
        """
        known = checked_prompt_name(name)
        return customized_prompt(known, prompt_levels(self._engine.store, self._scope)).task

    def set(self, name: str, text: str, *, if_version: PromptVersions = None) -> PromptVersion:
        """
        Use *text* from now on.

        Args:
            name: which prompt.
            text: what the model shall do.
            if_version: the number of the version in use that you saw, or several; 0 for the library's own words.
                Another one is left as it is.

        Raises:
            BadInput: there is no such prompt, or the text is empty or longer than 4,000 characters.
            Conflict: the user opted out.
            Changed: none of these versions is in use.
        """
        return self._next(checked_prompt_name(name), checked_prompt_text(name, text), if_version=if_version)

    def draft(self, name: str, text: str) -> PromptVersion:
        """
        Save *text* as a version that is not used, to be tried and activated later.

        Raises:
            BadInput, Conflict: as `set`.
        """
        return self._next(checked_prompt_name(name), checked_prompt_text(name, text), draft=True)

    def activate(self, name: str, version: int, *, percent: int = 100) -> PromptVersion:
        """
        Use the text of a version, a draft or an older one, from now on: it becomes the newest version.

        Args:
            name: which prompt.
            version: its number.
            percent: of an org or a bot: for so many of 100 users first, and always for the same ones.

        Raises:
            BadInput: there is no such prompt, or these are one user's own and *percent* is below 100.
            NotFound: there is no such version any more.
            Conflict: the user opted out.
        """
        if not (100 if self._scope.user else 1) <= checked_count("percent", percent) <= 100:
            raise BadInput("percent is 1 to 100; 100 for a user's own prompts", hint="use memory.admin.prompts(…)")
        for row in self.versions(name):
            if row.version == version:
                return self._next(checked_prompt_name(name), row.text, draft=percent < 100, percent=percent)
        raise NotFound(f"the prompt {name} has no version {version!r}", hint="versions(name) lists them")

    def preview(self, name: str, text: str | None = None, *, limit: int = 3, dry_run: bool = False) -> PromptPreview:
        """
        Try a text on the newest chunks, and return its results beside the current ones.

        Nothing is written but the usage of the calls.

        Args:
            name: which prompt.
            text: the text to try; ours when not given.
            limit: chunks at most, one call each.
            dry_run: make no calls; return the chunks, with an estimate of calls, tokens and cost.

        Raises:
            BadInput: as `set`; or these are the prompts of an org or a bot, which have no chunks of their own.
            ConfigError: the memory was opened without a model.
            Conflict: the user paused memory or opted out.
        """
        words = "" if text is None else checked_prompt_text(name, text)
        count = checked_count("limit", limit)
        if not self._scope.user:
            raise BadInput("a prompt is tried on the chunks of one user", hint="use memory.user(…).prompts.preview(…)")
        self._engine.uses.note_preview(self._scope)
        return self._engine.preview(self._scope, checked_prompt_name(name), words, count, dry_run=dry_run)

    def reset(self, name: str, *, if_version: PromptVersions = None) -> PromptVersion:
        """
        Use the text of the bot, of the org or of the library again, whichever is the nearest.

        Raises:
            BadInput: there is no such prompt.
            Conflict: the user opted out.
            Changed: as `set`.
        """
        return self._next(checked_prompt_name(name), "", if_version=if_version)

    def versions(self, name: str) -> list[PromptVersion]:
        """
        Return the versions, oldest first; the newest 50 are kept.

        Raises:
            BadInput: there is no such prompt.
        """
        known = checked_prompt_name(name)
        rows = self._engine.store.read(self._scope, lambda view: view.prompts())
        return [prompt_version(row) for row in rows if row.name == known]

    def _next(
        self, name: str, text: str, *, draft: bool = False, percent: int = 100, if_version: PromptVersions = None
    ) -> PromptVersion:
        now_ms = self._engine.now_ms()

        def work(view: WriteView) -> PromptRow:
            own = [row for row in view.prompts() if row.name == name]
            if if_version is not None:
                check_version(version_in_use(own), (if_version,) if isinstance(if_version, int) else if_version)
            shared = not self._scope.user
            if not shared and effective_consent(view.consent(), None) == "opted-out":
                raise Conflict("the user does not want anything remembered", hint="opt_in() first")
            if not shared and view.user() == UserRow():
                view.save_user(UserRow(epoch=now_ms), now_ms)
            row = PromptRow(name, max((one.version for one in own), default=0) + 1, text, now_ms, draft, percent)
            view.add_prompt(row)
            used = max((one.version for one in (*own, row) if not one.draft), default=row.version)
            view.remove_prompts(name, min(row.version - KEPT_VERSIONS, used - 1))  # what is used is kept
            return row

        return prompt_version(self._engine.store.write(self._scope, work))
