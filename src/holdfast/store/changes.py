"""
The changes of one transaction, collected while it runs and stored as events at its end.

Several changes to one thing in one transaction become one event; only a fact that begins and ends in it has two, so that
both are counted.  Numbers follow one another without a gap; the first
of a user comes from the clock, so a user who was erased and comes back has higher ones than before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from ..clock import DAY_MS
from ..reports import UserKey
from ..types import Job
from .port import Driver
from .values import EventLimits

ERASED = "erased"
READ = "memory.read"
TRIM_EVERY = 256  # rows after which old ones are removed
NUMBERS_PER_MS = 1_000

# Of several changes to one fact in one transaction, the one with the most weight is stored.
_WEIGHT = {"fact.changed": 0, "fact.confirmed": 1, "fact.added": 3, "fact.forgotten": 4}
_ENDED = {"": "fact.changed", "replaced": "fact.replaced", "never_true": "fact.corrected"}
_ENDS = frozenset(("fact.replaced", "fact.corrected", "fact.ended"))

# The columns of ``user_state`` that say how often indexed documents of a kind changed, in their order there.
REVISIONS = {"message": "messages_rev", "fact": "facts_rev", "summary": "summaries_rev"}

RUNNING = "job.running"

_Place = tuple[str, str]
_Event = tuple[str, str, str, str, str]  # kind, actor, subject, conversation, ref


class ChangeLog:
    """The changes that *actor* makes in one transaction at *now_ms*."""

    def __init__(self, actor: str, now_ms: int) -> None:
        self._actor = actor
        self._now_ms = now_ms
        self._found: dict[tuple[str, str, str, str], str] = {}
        self._reads: list[_Event] = []
        self._user_erased = False
        self._reindexed: set[str] = set()
        self.counted: Counter[tuple[str, str]] = Counter()

    def note(self, kind: str, place: _Place, ref: str | int = "") -> None:
        """Note a change of this *kind* to *ref* in (subject, conversation)."""
        self._found[kind, *place, str(ref)] = kind

    def note_read(self, by: str, place: _Place, ref: str) -> None:
        """Note that *by* read the memory earlier: *ref* says what of it."""
        self._reads.append((READ, by, *place, ref))

    def note_fact(self, kind: str, fact_id: str, about: str, said: _Place) -> None:
        """
        Note a change to a fact about *about*, made in a conversation *said*.

        The conversation is named only where it has the same subject: readers of the fact must not learn of another's.
        """
        self.note_reindexed("fact")
        key = ("fact.", about, said[1] if said[0] == about else "", fact_id)
        end = ("fact.end.", *key[1:])
        before = self._found.get(key, kind)
        if kind == "fact.forgotten":
            self._found.pop(end, None)
        elif before == "fact.added" and kind in _ENDS:
            self._found[end] = kind
        self._found[key] = kind if _WEIGHT.get(kind, 2) >= _WEIGHT.get(before, 2) else before

    def note_end(self, because: str, fact_id: str, about: str, said: _Place) -> None:
        """Note that a fact was written with this reason for its end, ``""`` while it is active."""
        if not because:  # it holds again, or still
            self._found.pop(("fact.end.", about, said[1] if said[0] == about else "", fact_id), None)
        self.note_fact(_ENDED.get(because, "fact.ended"), fact_id, about, said)

    def count(self, what: str, of: str, number: int = 1) -> None:
        """Count something for the metrics of this process; nothing of it is stored."""
        self.counted[what, of] += number

    def note_reindexed(self, kind: str) -> None:
        """Note that indexed documents of a kind changed or went, so that no cache may extend what it holds of them."""
        self._reindexed.add(kind)

    def forget(self, place: _Place) -> None:
        """Drop the changes in (subject, conversation)."""
        self._found = {key: kind for key, kind in self._found.items() if key[1:3] != place}

    def blank_subject(self, subject: str) -> None:
        """Take the name of *subject*, and of its conversations, out of the changes; the changes stay."""
        self._found = {
            (key[0], "", "", key[3]) if key[1] == subject else key: kind for key, kind in self._found.items()
        }

    def note_user_erased(self) -> None:
        """Drop all changes; note for the org that a user was erased, without naming the user."""
        self._found.clear()
        self._reads.clear()
        self._user_erased = True

    def flush(self, driver: Driver, user: tuple[str, str, str], limits: EventLimits) -> None:
        """Store the events and the revisions of the index, at the end of the transaction."""
        if self._reindexed:
            _raise_revisions(driver, user, self._reindexed)
        if self._user_erased:
            self._store(driver, {(user[0], "", ""): [(ERASED, self._actor, "", "", "user")]}, limits)
        if self._found or self._reads:
            changes = [(kind, self._actor, about, said, ref) for (_, about, said, ref), kind in self._found.items()]
            self._store(driver, {user: [*self._reads, *changes]}, limits)
        for kind in self._found.values():
            self.counted["event", kind] += 1

    def store_running(self, driver: Driver, jobs: Iterable[Job], limits: EventLimits) -> None:
        """Store that these jobs of any users run, in order of user, as two claims must not wait for each other."""
        events: dict[UserKey, list[_Event]] = {}
        for job in jobs:
            event = (RUNNING, self._actor, job.subject, job.conversation, job.id)
            events.setdefault((job.org, job.user, job.bot), []).append(event)
            self.counted["event", RUNNING] += 1
        self._store(driver, dict(sorted(events.items())), limits)

    def _store(self, driver: Driver, events: Mapping[UserKey, Sequence[_Event]], limits: EventLimits) -> None:
        users = list(events)
        one = dict(zip(("org", "user_id", "bot"), users[0], strict=True)) if len(users) == 1 else None
        found = driver.many("newest_event", users) if one is None else driver.run("newest_event", one)
        newest = {(row[0], row[1], row[2]): int(row[3]) for row in found}
        added: list[tuple[object, ...]] = []
        for user, some in events.items():
            before = newest.get(user, max(1, self._now_ms * NUMBERS_PER_MS) - 1)
            for number, (kind, *what) in enumerate(some, before + 1):
                added.append((*user, number, self._now_ms, kind, *what))
        driver.many("add_event", added)
        for user, some in events.items():
            before = newest.get(user, max(1, self._now_ms * NUMBERS_PER_MS) - 1)
            if (before + len(some)) // TRIM_EVERY != before // TRIM_EVERY:
                self._trim(driver, user, before + len(some), limits)

    def _trim(self, driver: Driver, user: UserKey, newest: int, limits: EventLimits) -> None:
        key = dict(zip(("org", "user_id", "bot"), user, strict=True))
        since = driver.run("first_event_since", key | {"since": self._now_ms - limits.days * DAY_MS})
        oldest = max(newest - limits.rows + 1, since[0][0] if since else newest)
        driver.run("remove_events", key | {"first": oldest})


def _raise_revisions(driver: Driver, user: tuple[str, str, str], kinds: Collection[str]) -> None:
    """Raise the revisions of some *kinds* of documents; a user who was erased has none."""
    key = dict(zip(("org", "user_id", "bot"), user, strict=True))
    for row in driver.run("user", key):
        now = zip(REVISIONS, row[3:], strict=True)
        driver.run("save_revisions", key | {REVISIONS[kind]: value + (kind in kinds) for kind, value in now})
