"""
Nobody reads another: a random walk over every public call, checked against a plain dict.

Every message carries a word that occurs nowhere else.  Whatever a call in one scope returns may
hold only words that were said where this scope may look, and must hold what the model says it does.
The same walk is run over stores with a planted leak; it has to find every one of them.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cache

import apsw
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from holdfast import Config, Memory, memory, scope
from holdfast.errors import HoldfastError
from holdfast.recall.index import IndexCache
from holdfast.store import queries
from holdfast.store.postgres import driver as postgres_driver
from holdfast.testing.fakes import FakeClock, HashEmbedder

# Names that collide when they are joined, folded, stripped, normalised or used as patterns.
NAMES = ["a", "ab", "b", "bc", "c", "A", "a ", " a", "a/b", "%", "_", "\u00e9", "e\u0301", "self", "default"]
TWINS = {
    "a": "A",
    "A": "a",
    "ab": "a",
    "b": "bc",
    "a ": "a",
    " a": "a",
    "\u00e9": "e\u0301",
    "e\u0301": "\u00e9",
    "%": "a",
    "_": "b",
}
# Most steps happen to the first two users and in one place, so that they meet.
SOMEBODY = st.sampled_from([0, 0, 1, 1, 2, 3])
PLACES = st.sampled_from([(0, 0)] * 5 + [(0, 1), (1, 0), (1, 1), (2, 0)])
SUBJECTS = [(None, "b", None), ("b", "ab", None), ("self", "b", None)]
CONVERSATIONS = ("a", "ab")
# With a letter that no id holds: among thousands of random ids any other five letters stand by chance.
WORD = re.compile(r"zuq\d+x", re.I)


@st.composite
def casts(draw: st.DrawFn) -> list[tuple[str, str, str]]:
    """Four users that are easily taken for one another: each differs from the first in little."""
    first = [draw(st.sampled_from(NAMES)) for _ in range(3)]
    cast = [tuple(first)]
    place = draw(st.integers(0, 2))
    changed = list(first)
    changed[place] = TWINS.get(first[place], "c")
    cast.append(tuple(changed))
    other = list(first)
    other[(place + 1) % 3] = draw(st.sampled_from(NAMES))
    cast.append(tuple(other))
    glued = "".join(first)  # the same letters, cut elsewhere
    cut = draw(st.integers(1, max(1, len(glued) - 2)))
    cast.append((glued[:cut], glued[cut : cut + 1] or "x", glued[cut + 1 :] or "x"))
    return cast


def words(value: object) -> set[str]:
    return {word.lower() for word in WORD.findall(str(value))}


class Walk(RuleBasedStateMachine):
    """Random calls by random users; ``differs``: in which part of the key the second differs from the first."""

    differs: int | None = None

    @initialize(cast=casts(), subjects=st.sampled_from(SUBJECTS), conversations=st.permutations(CONVERSATIONS))
    def open(self, cast, subjects, conversations) -> None:
        if self.differs is not None:
            twin = list(cast[0])
            twin[self.differs] = TWINS.get(twin[self.differs], "c")
            cast[1] = tuple(twin)
        self.cast, self.subjects, self.conversations = cast, subjects, conversations
        self.clock = FakeClock(datetime(2026, 1, 1, tzinfo=UTC))
        config = Config(index_cache_mb=1, consolidate_similarity=0.5)
        self.memory = self.reached(Memory(embedder=HashEmbedder(dim=16), clock=self.clock, config=config))
        self.said: dict[tuple, list[str]] = defaultdict(list)
        self.home: dict[tuple, list[str]] = defaultdict(list)
        self.keys: dict[tuple, tuple[str, tuple[int, ...]]] = {}
        self.serial = 0

    def reached(self, memory):
        """The memory as the walk's users reach it."""
        return memory

    def teardown(self) -> None:
        if hasattr(self, "memory"):
            self.memory.close()

    def at(self, place) -> tuple[str | None, str]:
        return self.subjects[place[0]], self.conversations[place[1]]

    def chat(self, owner, subject, conversation):
        org, user, bot = owner
        return self.memory.conversation(conversation, user=user, org=org, bot=bot, subject=subject)

    def somebody(self, owner, subject):
        org, user, bot = owner
        return self.memory.user(user, org=org, bot=bot, subject=subject)

    def own(self, user, subject) -> set[str]:
        """The words said by a user: in conversations about one subject, or everywhere."""
        return {
            word
            for (who, about, _), texts in self.said.items()
            if who == user and subject in (None, about)
            for text in texts
            for word in words(text)
        }

    def allergies(self, user, subject) -> set[str]:
        """Facts about one subject are seen there, and by the user as a whole."""
        return {
            word
            for (who, about, _), texts in self.said.items()
            if who == user and about != "self" and (subject is None or subject == about)
            for text in texts
            if text.startswith("She is")
            for word in words(text)
        }

    def lived(self, user) -> set[str]:
        """Facts about oneself reach all of one's subjects, with their history."""
        return {word for text in self.home[user] for word in words(text)}

    @rule(
        who=SOMEBODY,
        place=PLACES,
        kind=st.sampled_from(["home", "home", "allergy", "guess", "small talk"]),
        reply=st.booleans(),
    )
    def says(self, who, place, kind, reply):
        user = self.cast[who]
        subject, conversation = self.at(place)
        self.serial += 1
        self.clock.advance(seconds=60)
        word = f"Zuq{self.serial}x"
        text = {
            "home": f"I live in {word}.",
            "allergy": f"She is allergic to {word}.",
            "guess": f"I think I work at {word}.",
        }.get(kind, f"The {word} was lovely.")
        receipt = self.chat(user, subject, conversation).record(text, f"Ah, {word}." if reply else None)
        said = self.said[user, subject or "self", conversation]
        assert receipt.seqs[0] == len(said) + 1
        said += [text, f"Ah, {word}."] if reply else [text]
        if kind == "home":
            self.home[user].append(word)

    @rule(who=SOMEBODY, place=PLACES, key=st.sampled_from(["k", "l"]))
    def says_once(self, who, place, key):
        """A key belongs to one conversation; elsewhere it is free."""
        user = self.cast[who]
        subject, conversation = self.at(place)
        self.clock.advance(seconds=60)
        scope = (user, subject or "self", conversation)
        text, before = self.keys.get((*scope, key), (f"Key Zuq9{self.serial}0{len(self.keys)}x.", None))
        receipt = self.chat(user, subject, conversation).append({"role": "user", "content": text}, idempotency_key=key)
        assert receipt.duplicate is (before is not None)
        if before is None:
            self.said[scope].append(text)
            self.keys[*scope, key] = (text, receipt.seqs)
        else:
            assert receipt.seqs == before

    @rule(who=SOMEBODY, place=PLACES, ends=st.booleans())
    def works(self, who, place, ends):
        user = self.cast[who]
        subject, conversation = self.at(place)
        if ends:
            self.chat(user, subject, conversation).end()
        self.memory.digest()

    @rule(who=SOMEBODY, place=PLACES)
    def loads(self, who, place):
        user = self.cast[who]
        subject, conversation = self.at(place)
        loaded = [m.content for m in self.chat(user, subject, conversation).load()]
        assert loaded == self.said.get((user, subject or "self", conversation), [])

    @rule(who=SOMEBODY, place=PLACES, budget=st.sampled_from([200, 4000]))
    def asks(self, who, place, budget):
        user = self.cast[who]
        subject, conversation = self.at(place)
        chat = self.chat(user, subject, conversation)
        context = chat.context("Where do I live, what was lovely?", budget_tokens=budget)
        allowed = self.own(user, subject or "self") | set(self.lived(user))
        assert words(context.messages) | words(context.sections) <= allowed
        assert words(chat.summaries()) <= self.own(user, subject or "self")
        assert words(chat.episodes()) <= allowed
        assert words(chat.learned()) <= allowed

    @rule(who=SOMEBODY, place=PLACES, pick=st.integers(0, 99))
    def searches(self, who, place, pick):
        """A word that was said here is found, whatever else was indexed meanwhile; no other is."""
        user = self.cast[who]
        subject, _ = self.at(place)
        somebody, heard = self.somebody(user, subject), self.heard(user, subject)
        hits = somebody.search("Where do I live, what was lovely?", limit=50)
        assert {word for hit in hits for word in words(hit.text)} <= self.own(user, subject) | self.lived(user)
        if heard:
            (word,) = words(heard[pick % len(heard)])
            assert any(hit.kind == "message" and word in words(hit.text) for hit in somebody.search(word, limit=50))

    def heard(self, user, subject) -> list[str]:
        return [
            t for (who, about, _), texts in self.said.items() if who == user and subject in (None, about) for t in texts
        ]

    @rule(who=SOMEBODY, place=PLACES)
    def reads(self, who, place):
        user = self.cast[who]
        subject, _ = self.at(place)
        self.memory.digest()
        somebody = self.somebody(user, subject)
        now = [fact.value for fact in somebody.facts() if fact.key == "lives_in" and fact.subject == "self"]
        assert [value.lower() for value in now] == [w.lower() for w in self.home[user][-1:]]
        ever = {word for fact in somebody.history("home") for word in words(fact)}
        assert ever <= self.lived(user)
        assert words(somebody.rejected()) <= self.own(user, subject)
        about_others = {word for fact in somebody.facts("allergy") for word in words(fact)}
        assert about_others == self.allergies(user, subject)
        mine = sorted({c for (who, about, c) in self.said if who == user and subject in (None, about)})
        assert sorted(set(somebody.conversations())) == mine
        assert sorted({state.conversation for state in somebody.overview()}) == mine

    @invariant()
    def knows_everybody(self):
        if hasattr(self, "memory"):
            assert set(self.memory.admin.users()) == {(org, user, bot) for ((org, user, bot), _, _) in self.said}


WALK = settings(
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.generate,),
    database=None,
    print_blob=False,
)


def test_nobody_reads_another(examples):
    run_state_machine_as_test(Walk, settings=examples(50, WALK))


def without(query: str, *conditions: str) -> Callable[[pytest.MonkeyPatch], None]:
    """A store whose *query* forgets conditions of its WHERE."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        load, prepared = queries.load, postgres_driver.statements.__wrapped__

        def planted(dialect: str) -> dict[str, str]:
            sql = dict(load(dialect))
            for condition in conditions:
                assert condition in sql[query], f"{query} has no {condition!r}: the planted bug is no bug"
                sql[query] = sql[query].replace(condition, "1 = 1")
            return sql

        patch.setattr(queries, "load", cache(planted))
        patch.setattr(postgres_driver, "statements", cache(prepared))  # what it keeps must not outlive the bug

    return plant


def folding(fold: Callable[[str], str]) -> Callable[[pytest.MonkeyPatch], None]:
    """A front door that takes names for equal which are not."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        for module in (memory, scope):  # names of conversations, and of users
            patch.setattr(module, "checked_name", lambda what, value: fold(value))

    return plant


def joined_cache_key(patch: pytest.MonkeyPatch) -> None:
    """A search cache whose key glues the parts of a scope together."""
    get, put = IndexCache.get, IndexCache.put
    patch.setattr(IndexCache, "get", lambda self, key, stamp: get(self, "".join(map(str, _flat(key))), None))
    patch.setattr(
        IndexCache, "put", lambda self, key, stamp, index: put(self, "".join(map(str, _flat(key))), None, index)
    )


def _flat(key: object) -> Iterator[object]:
    if isinstance(key, tuple):
        for part in key:
            yield from _flat(part)
    else:
        yield key


PLANTED = {
    "messages of another bot": without("messages", "bot = :bot"),
    "messages of another subject": without("messages", "subject = :subject"),
    "messages of another conversation": without("messages", "conversation = :conversation"),
    "message text of another user": without("message_texts", "user_id = :user_id"),
    "facts of another user": without("facts", "user_id = :user_id"),
    "facts of another org": without("facts", "org = :org"),
    "facts of another subject": without(
        "facts", "(:all = 1 OR subject IN (:subject, 'self') OR (:shared = 1 AND unscoped = 1))"
    ),
    "history of another bot": without("all_facts", "bot = :bot"),
    "new facts meet another user's": without("all_facts_in", "user_id = :user_id"),
    "new facts meet another org's": without("all_facts_in", "org = :org"),
    "summaries of another user": without("summaries", "user_id = :user_id"),
    "summaries of another conversation": without("summaries", "conversation = :conversation", "subject = :subject"),
    "conversations of another org": without("conversation_names", "org = :org"),
    "overview of another bot": without("newest_conversations", "bot = :bot"),
    "facts learned from another user": without("facts_said_here", "user_id = :user_id"),
    "refusals of another subject": without("rejected", "(CAST(:subject AS text) IS NULL OR subject = :subject)"),
    "keys of another conversation": without("idempotency", "conversation = :conversation"),
    "keys of another user": without("idempotency", "user_id = :user_id"),
    "case folded": folding(str.casefold),
    "blanks stripped": folding(str.strip),
    "normalised": folding(lambda name: unicodedata.normalize("NFC", name)),
    "index cache key joined": joined_cache_key,
}


@pytest.mark.sqlite("it shows what the walk finds; row level security would hide some of the bugs from it")
@pytest.mark.parametrize("leak", PLANTED)
def test_every_planted_leak_is_found(leak, monkeypatch):
    """The walk is worth as much as the bugs that it finds."""
    PLANTED[leak](monkeypatch)
    parts = [part for part, name in enumerate(("org", "user", "bot")) if name in leak]
    walk = type("Walk", (Walk,), {"differs": parts[0] if parts else None})
    patient = settings(WALK, max_examples=1500, report_multiple_bugs=False, derandomize=True)

    with pytest.raises((AssertionError, HoldfastError, apsw.Error, IndexError)):
        run_state_machine_as_test(walk, settings=patient)
