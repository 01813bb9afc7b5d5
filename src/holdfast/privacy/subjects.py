"""The subjects of a user: their names, what is held about each, and two that turn out to be one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from ..digest.mentions import SubjectNames, without_owner
from ..errors import BadInput, Conflict, NotFound
from ..jobs.facts import join_mentions, known_subjects
from ..jobs.summaries import order_story
from ..reconcile.merging import move_facts
from ..reports import SubjectMerge
from ..scope import SELF, Scope, subject_id
from ..store import ReadView, Store, SubjectRow, UserRow, WriteView, effective_consent
from ..text import dataclass
from ..types import Subject
from .erasure import DryRun

MAX_ALIASES = 50


@dataclass(frozen=True, slots=True)
class Subjects:
    """The subjects of the users of one store."""

    store: Store
    now_ms: Callable[[], int]

    def resolve(self, scope: Scope) -> Scope:
        """
        Return the scope with the id of the subject that it names; a subject that has a scope's name is meant by it.

        Raises:
            BadInput: two subjects have that name.
        """
        name = str(scope.subject)
        rows = self.store.read(scope, lambda view: view.subjects())
        if any(row.subject == name for row in rows):
            return scope
        meant = [row.subject for row in rows if name in map(subject_id, (row.name, *row.aliases))]
        if len(meant) > 1:
            hint = f"name one by its id: {', '.join(meant)}"
            raise BadInput(f"{len(meant)} subjects of this user have the name {name!r}", hint=hint)
        return scope.about(meant[0]) if meant else scope

    def list(self, scope: Scope) -> list[Subject]:
        """Return the subjects that the scope can see, by name."""
        found = self.store.read(scope, _subjects)
        return sorted(
            (one for one in found if scope.subject in (None, SELF, one.id)),
            key=lambda one: (one.name.casefold(), one.id),
        )

    def declare(
        self, scope: Scope, subject: str, name: str | None, aliases: Sequence[str], without: Sequence[str]
    ) -> Subject:
        """Name a subject, add aliases and take some away; facts about a mention by these names become its own."""
        if subject == SELF:
            raise BadInput("'self' is the user, who needs no other name", hint="choose another id")

        def work(view: WriteView) -> Subject:
            now_ms = self._check(view, subject)
            row = _row(view, subject) or SubjectRow(subject, created_at=now_ms)
            gone = set(map(subject_id, without))
            names = dict.fromkeys(alias for alias in (*row.aliases, *aliases) if subject_id(alias) not in gone)
            if len(names) > MAX_ALIASES:
                raise BadInput(f"a subject may have {MAX_ALIASES} aliases, these are {len(names)}")
            view.save_subject(replace(row, name=row.name if name is None else name, aliases=tuple(names)))
            join_mentions(view, now_ms)
            return _one(view, subject)

        return self.store.write(scope.about(None), work)

    def merge(self, scope: Scope, subject: str, into: str, *, dry_run: bool) -> SubjectMerge:
        """Let one subject become part of another: its facts, conversations and names."""
        if SELF in (subject, into) or subject == into:
            raise BadInput("two subjects other than the user can be merged", hint="name their ids")

        def work(view: WriteView) -> SubjectMerge:
            now_ms = self._check(view, subject, into)
            known = {one.id for one in _subjects(view)}
            if missing := {subject, into} - known:
                raise NotFound(f"there is no subject {min(missing)!r}", hint="subjects() lists them")
            names = _names(view)
            moved, ended = move_facts(view, subject, into, now_ms)
            conversations = _move_conversations(view, subject, into, now_ms)
            self._join_rows(view, subject, into, names, now_ms)
            user = view.user()
            view.save_user(replace(user, version=user.version + 1, epoch=user.epoch + 1), now_ms)
            view.remove_prefixes()
            view.release_jobs(now_ms)
            facts = tuple(row.fact for row in moved)
            report = SubjectMerge(_one(view, into), facts, tuple(r.fact for r in ended), conversations, dry_run)
            if dry_run:
                raise DryRun(report)
            return report

        try:
            return self.store.write(scope.about(None), work)
        except DryRun as shown:
            report: SubjectMerge = shown.result
            return report

    def _check(self, view: WriteView, *subjects: str) -> int:
        """
        Return the time, after making sure that the user wants anything written.

        Raises:
            Conflict: the user paused memory of one of the subjects, or opted out.
        """
        now_ms, chosen = self.now_ms(), view.consent()
        if any(effective_consent(chosen, subject) != "active" for subject in subjects):
            raise Conflict("the user does not want anything written now", hint="resume() first")
        if view.user() == UserRow():
            view.save_user(UserRow(epoch=now_ms), now_ms)
        return now_ms

    def _join_rows(self, view: WriteView, subject: str, into: str, names: SubjectNames, now_ms: int) -> None:
        """Give the names of one subject, its id among them, to the other; and the topics that must not be remembered."""
        old, row = _row(view, subject), _row(view, into) or SubjectRow(into, created_at=now_ms)
        label = names.labels.get(into, "")
        more = (names.labels.get(subject, ""), subject, *(old.aliases if old else ()))
        taken = {subject_id(name) for name in (row.name, label, into, *row.aliases)}
        added = {subject_id(name): name for name in reversed(more) if name and subject_id(name) not in taken}
        name = row.name or (old.name if old and not label else "") or label
        aliases = (*row.aliases, *(one for one in reversed(added.values()) if subject_id(one) != subject_id(name)))
        view.save_subject(replace(row, name=name, aliases=aliases))
        view.remove_subject(subject)
        for about, topic in view.blocked_topics():
            if about == subject:
                view.set_blocked_topic(subject, topic, blocked=False, now_ms=now_ms)
                view.set_blocked_topic(into, topic, blocked=True, now_ms=now_ms)


def _move_conversations(view: WriteView, subject: str, into: str, now_ms: int) -> dict[str, str]:
    """Move the conversations about a subject; one whose name is taken gets the subject's id behind its name."""
    there = {row.conversation for row in view.at(into, None).conversations()}
    moved: dict[str, str] = {}
    stored = {row.conversation for row in view.at(subject, None).conversations()}
    for conversation in sorted(stored | {name for about, name in view.item_homes() if about == subject}):
        name = conversation
        while name in there:
            name = f"{name} ({subject})"
        there.add(name)
        moved[conversation] = name
    for one in (subject, into):
        view.at(one, None).remove_story()
    view.at(subject, None).move_conversations(into, moved)
    order_story(view, into, now_ms)
    return moved


def _row(view: ReadView, subject: str) -> SubjectRow | None:
    return next((row for row in view.subjects() if row.subject == subject), None)


def _names(view: ReadView) -> SubjectNames:
    whole = view.at(None, None)
    return known_subjects(whole.scope, whole.subjects(), whole.facts())


def _subjects(view: ReadView) -> list[Subject]:
    whole = view.at(None, None)
    rows, facts = {row.subject: row for row in whole.subjects()}, whole.facts()
    names = known_subjects(whole.scope, list(rows.values()), facts)
    about = Counter(row.fact.subject for row in facts)
    talks = Counter(row.subject for row in whole.conversations())
    learned: dict[str, list[str]] = {}
    for name, subject in names.ids.items():
        learned.setdefault(subject, []).append(name)
    found = []
    for subject in sorted({*rows, *about, *talks} - {SELF}):
        given = rows[subject].aliases if subject in rows else ()
        label = names.label(subject)
        shown = {subject_id(name) for name in (label, subject, *given, *map(without_owner, given))}
        aliases = (*given, *(name for name in learned.get(subject, ()) if name not in shown))
        found.append(Subject(subject, label, aliases, about[subject], talks[subject]))
    return found


def _one(view: ReadView, subject: str) -> Subject:
    return next((one for one in _subjects(view) if one.id == subject), Subject(subject, subject))
