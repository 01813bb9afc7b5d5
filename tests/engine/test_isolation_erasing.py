"""
Nobody's erasure, edit, choice or export touches another: the walk of test_isolation, with these calls as well.
"""

from __future__ import annotations

import apsw
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule, run_state_machine_as_test

from holdfast.errors import HoldfastError, NotFound
from holdfast.types import BY_HAND_CONVERSATION

from .test_isolation import PLACES, SOMEBODY, WALK, Walk, without, words


class ErasingWalk(Walk):
    """Random calls by random users, who also change their minds; an erased text is '' in the model."""

    def __init__(self) -> None:
        super().__init__()
        self.known: set = set()

    @invariant()
    def knows_everybody(self):
        """Whoever cleared every conversation is still known by name; only an erased user is not."""
        if hasattr(self, "memory"):
            self.known |= {scope[0] for scope in self.said}
            assert {(org, user, bot) for org, user, bot in self.known} == set(self.memory.admin.users())

    def said_in(self, who, subject, conversation) -> list[str]:
        return self.said.get((self.cast[who], subject or "self", conversation), [])

    def loads(self, who, place):
        subject, conversation = self.at(place)
        loaded = [m.content for m in self.chat(self.cast[who], subject, conversation).load()]
        assert loaded == [text for text in self.said_in(who, subject, conversation) if text]

    loads = rule(who=SOMEBODY, place=PLACES)(loads)

    def heard(self, user, subject) -> list[str]:
        return [text for text in super().heard(user, subject) if text]

    def lived(self, user) -> set[str]:
        told = self.said.get((user, "self", BY_HAND_CONVERSATION), [])
        return super().lived(user) | {word for text in told for word in words(text)}

    def unsay(self, user, text) -> None:
        if text.startswith("I live in"):
            (word,) = words(text)
            self.home[user] = [home for home in self.home[user] if home.lower() != word]

    def all_else_stands(self) -> None:
        """Every message of everybody is as the model says, and so is where each of them lives."""
        self.memory.digest()
        for (user, about, conversation), texts in self.said.items():
            loaded = [m.content for m in self.chat(user, about, conversation).load()]
            assert loaded == [text for text in texts if text]
        for user in self.known:
            lives = [fact.value.lower() for fact in self.somebody(user, "self").facts("home")]
            assert lives == [home.lower() for home in self.home.get(user, [])[-1:]]

    @rule(who=SOMEBODY, place=PLACES, pick=st.integers(0, 99), edits=st.booleans())
    def takes_back(self, who, place, pick, edits):
        subject, conversation = self.at(place)
        user, said = self.cast[who], self.said_in(who, subject, conversation)
        places = [number for number, text in enumerate(said) if text]
        if not places:
            return
        number, chat = places[pick % len(places)], self.chat(user, subject, conversation)
        self.unsay(user, said[number])
        if edits:
            self.serial += 1
            said[number] = f"The Zuq{self.serial}x was lovely."
            chat.edit(number + 1, said[number])
        else:
            said[number] = ""
            chat.forget(number + 1)
        self.all_else_stands()

    @rule(who=SOMEBODY, place=PLACES)
    def clears(self, who, place):
        subject, conversation = self.at(place)
        user, scope = self.cast[who], (self.cast[who], subject or "self", conversation)
        for text in self.said.pop(scope, []):
            self.unsay(user, text)
        self.keys = {key: value for key, value in self.keys.items() if key[:3] != scope}
        self.chat(user, subject, conversation).clear()
        self.all_else_stands()

    @rule(who=SOMEBODY, place=PLACES, layer=st.sampled_from(["facts", "summaries", "meta"]), back=st.booleans())
    def makes_again(self, who, place, layer, back):
        """What one conversation is read or told again for is its own, and so is what is put back."""
        subject, conversation = self.at(place)
        chat = self.chat(self.cast[who], subject, conversation)
        try:
            report = chat.rebuild(layer)
        except NotFound:  # nothing was said there, or it is erased
            assert chat.load() == []
            return
        assert words(report) <= self.own(self.cast[who], None)
        if back and report.id:
            assert words(chat.restore(report.id)) <= self.own(self.cast[who], None)
        self.all_else_stands()

    @rule(who=SOMEBODY)
    def erases(self, who):
        user = self.cast[who]
        for scope in [scope for scope in self.said if scope[0] == user]:
            del self.said[scope]
        self.keys = {key: value for key, value in self.keys.items() if key[0] != user}
        self.home.pop(user, None)
        self.known.discard(user)
        self.somebody(user, None).erase()
        self.all_else_stands()

    @rule(who=SOMEBODY)
    def remembers(self, who):
        user = self.cast[who]
        self.serial += 1
        self.clock.advance(seconds=60)
        word = f"Zuq{self.serial}x"
        change = self.somebody(user, None).remember(category="things", key="thing", value=word)
        assert change.op in ("new", "replaced")
        assert change.previous is None or words(change.previous) <= self.lived(user)
        self.said[user, "self", BY_HAND_CONVERSATION].append(f"things, thing: {word}")

    @rule(who=SOMEBODY, place=PLACES)
    def merges(self, who, place):
        """Two sentences of a user become one memory: of that user's words alone."""
        user, (subject, _) = self.cast[who], self.at(place)
        self.serial += 1
        self.clock.advance(seconds=60)
        for kids in ("kids", "children"):
            text = f"The {kids} dread the Zuq{self.serial}x."
            assert self.somebody(user, None).remember(text).op in ("new", "joined")
            self.said[user, "self", BY_HAND_CONVERSATION].append(text)
        report = self.somebody(user, subject).consolidate()
        assert [len(each.sources) for each in report.merged] == [2]
        assert words(report) == {f"zuq{self.serial}x"}
        assert words(self.somebody(user, subject).profile(budget_tokens=4000).text) <= self.own(user, None)

    @rule(who=SOMEBODY, place=PLACES)
    def pauses(self, who, place):
        """Paused for a moment: this user's words are not stored, everybody else's are."""
        user = self.cast[who]
        subject, conversation = self.at(place)
        self.somebody(user, None).pause()
        for other in self.cast:
            state = self.somebody(other, subject).status().state
            assert (state == "paused") == (other == user)
        chat = self.chat(user, subject, conversation)
        assert chat.record("The Zuq0x was lovely.").skipped == "paused"
        assert words(chat.context("Where do I live?").messages) == set()
        assert self.somebody(user, subject).search("lovely") == []
        self.somebody(user, None).resume()

    @rule(who=SOMEBODY)
    def exports(self, who):
        user = self.cast[who]
        exported = self.somebody(user, None).export()
        assert words(exported) == self.own(user, None)
        assert (exported["org"], exported["user"], exported["bot"]) == user


# Which statement reaches too far is found in the store's contract; here it is whether the walk would notice.
PLANTED = {
    "erases another user's messages": without("erase_message", "user_id = :user_id"),
    "clears another conversation": without("clear_message", "conversation = :conversation"),
    "exports another bot's messages": without("message_rows", "bot = :bot"),
    "pauses another user": without("consent", "user_id = :user_id"),
    "merges another user's sentences": without("all_facts", "user_id = :user_id"),
}


def test_nobody_is_touched_by_anothers_erasure(examples):
    run_state_machine_as_test(ErasingWalk, settings=examples(50, WALK))


@pytest.mark.sqlite("it shows what the walk finds; row level security would hide some of the bugs from it")
@pytest.mark.parametrize("leak", PLANTED)
def test_every_planted_leak_is_found(leak, monkeypatch):
    """The walk is worth as much as the bugs that it finds."""
    PLANTED[leak](monkeypatch)
    parts = [part for part, name in enumerate(("org", "user", "bot")) if name in leak]
    walk = type("Walk", (ErasingWalk,), {"differs": parts[0] if parts else None})
    patient = settings(WALK, max_examples=500, report_multiple_bugs=False, derandomize=True)

    with pytest.raises((AssertionError, HoldfastError, apsw.Error, IndexError, ValueError)):
        run_state_machine_as_test(walk, settings=patient)
