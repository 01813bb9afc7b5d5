"""
The stories of the belief benchmark: conversations in which facts come and go, with the truth beside them.

A `BeliefStory` is one user's chats over months: facts are stated, corrected, joined, retracted, restated, said about
others, asked about, supposed or quoted, with small talk in between.  The phrases are in ``phrases/*.toml``; their two
halves never mix, so that rules can be improved on one and measured on the other.  The same seed gives the same story.
"""

from __future__ import annotations

import random
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib import resources
from typing import Any, Literal

from ..errors import BadInput
from ..scope import SELF
from ..text import dataclass

Half = Literal["development", "held-back"]
Kind = Literal["stated", "corrected", "joined", "retracted", "restated", "answered",
               "of-another", "asked", "supposed", "quoted", "denied", "small-talk", "reply"]  # fmt: skip

HALVES: tuple[Half, ...] = ("development", "held-back")


@dataclass(frozen=True, slots=True)
class StoryClaim:
    """
    A claim of a message: an address, a value, and the words it rests on.

    ``joins`` says how many values the address holds: ``single``, ``exclusive`` (one key of the
    category) or ``multi``.  ``alt`` lists further addresses under which the same may be kept
    (``hobby/does``; ``*`` for any key).  ``implied`` may be believed and need not be.
    """

    op: Literal["assert", "retract"]
    subject: str
    category: str
    key: str
    value: str
    quote: str
    joins: Literal["single", "exclusive", "multi"] = "single"
    alt: tuple[str, ...] = ()
    implied: bool = False

    @property
    def slot(self) -> tuple[str, ...]:
        """Return the address of one value (or a set of them): subject and category, with the key unless exclusive."""
        return (self.subject, self.category) if self.joins == "exclusive" else (self.subject, self.category, self.key)


@dataclass(frozen=True, slots=True)
class StoryTurn:
    """A message; ``seq`` counts from 1 in its conversation, ``index`` from 0 in the story."""

    index: int
    conversation: str
    seq: int
    role: str
    text: str
    at: datetime
    kind: Kind
    claims: tuple[StoryClaim, ...] = ()


@dataclass(frozen=True, slots=True)
class TrueBelief:
    """A claim that is true from message ``since`` up to message ``until`` (by index; ``None``: to the end)."""

    claim: StoryClaim
    since: int
    until: int | None = None

    def holds(self, index: int) -> bool:
        """Whether it is true after the message *index*."""
        return self.since <= index and (self.until is None or index < self.until)

    def over(self, index: int) -> bool:
        """Whether it was true and, after the message *index*, is no more."""
        return self.until is not None and self.until <= index


@dataclass(frozen=True, slots=True)
class BeliefStory:
    """A user's conversations, oldest first, and the claims that were true when."""

    seed: int
    half: Half
    turns: tuple[StoryTurn, ...]
    beliefs: tuple[TrueBelief, ...]

    def holding(self, index: int) -> list[TrueBelief]:
        """Return the claims that are true after the message *index*."""
        return [belief for belief in self.beliefs if belief.holds(index)]

    def over(self, index: int) -> list[TrueBelief]:
        """Return the claims that ended, without those that have become true again."""
        now = {(b.claim.slot, b.claim.key, b.claim.value) for b in self.holding(index)}
        return [b for b in self.beliefs if b.over(index) and (b.claim.slot, b.claim.key, b.claim.value) not in now]


def turns_by_conversation(story: BeliefStory) -> Iterator[tuple[str, list[StoryTurn]]]:
    """Yield ``(conversation, its turns)``, oldest first."""
    name, found = "", list[StoryTurn]()
    for turn in story.turns:
        if turn.conversation != name and found:
            yield name, found
            found = []
        name = turn.conversation
        found.append(turn)
    if found:
        yield name, found


LANGUAGES = ("en",)
OPENERS = frozenset(
    "We My Our Home Over Being Big So New As After And Another The Turns Don't It's It Not Remember Because Of One On Now Raising Played Poor Change Let's Keep In You Still Besides This Everything At Nothing".split()
)


@dataclass(frozen=True, slots=True)
class Phrases:
    """One half of one file: topics, and the phrases around them."""

    topics: tuple[dict[str, Any], ...]
    talk: dict[str, Any]


@cache
def phrases(language: str, half: Half) -> Phrases:
    if language not in LANGUAGES:
        raise BadInput(f"there are no templates in {language!r}", hint=f"use {', '.join(LANGUAGES)}")
    text = (resources.files(__package__) / "phrases" / f"{language}.toml").read_text(encoding="utf-8")
    table = tomllib.loads(text)
    return Phrases(tuple(_take_half(topic, half) for topic in table["topic"]), _take_half(table["talk"], half))


def _take_half(table: dict[str, Any], half: Half) -> dict[str, Any]:
    """Take every second entry of lists and comma-separated lists; short lists of words stay whole."""
    out: dict[str, Any] = {}
    first = HALVES.index(half)
    for name, value in table.items():
        if name in ("values", "cities", "foods"):
            words = split_words(value)
            out[name] = words[first::2] if len(words) > 3 else words
        elif isinstance(value, list):
            out[name] = value[first::2]
        else:
            out[name] = value
    return out


def split_words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",")]


def fill_template(template: str, holes: dict[str, str]) -> str:
    text = template
    for name in ("v", "old"):
        article = "a" if name == "v" else "ao"
        value = holes.get(name, "")
        text = text.replace(f"{{{article}}}", "an" if value[:1].lower() in "aeiou" and value else "a")
    text = text.replace("{rel}", holes.get("rel_said", holes.get("rel", "")))
    for name, value in holes.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def value_words(topic: dict[str, Any], claim: StoryClaim) -> str:
    """Return the words for the value of *claim* in the templates of *topic*."""
    if "value" in topic:
        return str(topic["values"][0])
    value = claim.key if claim.joins == "exclusive" else claim.value
    return next((words for words in topic["values"] if _canonical(topic, words) == value), value)


def _canonical(topic: dict[str, Any], words: str) -> str:
    """Return the value as a fact has it: "2" for "two", "300" for "300 euros", "vegetarian" for "vegetariana"."""
    return str(topic.get("words", {}).get(words, words)).removesuffix(topic.get("unit", ""))


def named_thing(topic: dict[str, Any], claim: StoryClaim) -> dict[str, str]:
    """Return the thing that *claim* is about, where the topic's templates name one beside the value."""
    if "value" in topic:
        return {"k": claim.value.rpartition(" ")[0]}
    return {}


def claims_of(
    topic: dict[str, Any], op: Literal["assert", "retract"], holes: dict[str, str], words: str
) -> tuple[StoryClaim, ...]:
    """Return the claims of *words*, made with *holes*."""
    subject = {"pet": holes.get("pet", "").casefold(), "relative": holes["rel"]}.get(topic.get("subject", ""), SELF)
    value = _canonical(topic, holes["v"])
    key = topic["key"].replace("{k}", holes.get("k", "")).replace("{v}", value).replace("{rel}", holes["rel"])
    stands = "true" if topic["joins"] == "exclusive" else fill_template(topic.get("value", "{v}"), holes | {"v": value})
    main = StoryClaim(
        op, subject, topic["category"], key, stands, words, topic["joins"], tuple(topic.get("alt", "").split())
    )
    if topic["id"] == "pet" and op == "assert":
        kind = topic.get("kind_words", {}).get(holes["k"], holes["k"])
        species = StoryClaim(op, value.casefold(), "identity", "species", kind, words, implied=True)
        return main, species, StoryClaim(op, SELF, "pets", "has_pet", kind, words, "multi", implied=True)
    if topic["id"] == "children" and op == "assert" and "baby" in words:
        return main, StoryClaim(op, SELF, "life", "happened", "baby was born", words, "multi", implied=True)
    if topic["id"] == "likes":  # who does not like it any more may be said to dislike it
        back: Literal["assert", "retract"] = "retract" if op == "assert" else "assert"
        return main, StoryClaim(back, subject, "preference", "dislikes", stands, words, "multi", implied=True)
    return (main,)


EXCHANGES = 12  # in a conversation, on average
MOST_VALUES = 4  # that hold at one address
OF = {"stated": "say", "corrected": "change", "joined": "add", "retracted": "end", "restated": "again"}
DISTRACTIONS: dict[Kind, str] = {"asked": "ask", "supposed": "suppose", "quoted": "quote", "of-another": "other"}


def write_story(
    *, exchanges: int = 400, seed: int = 1, half: Half = "development", languages: Sequence[str] = ("en",)
) -> BeliefStory:
    """
    Write a story of so many exchanges (a user's message and the reply).

    Args:
        exchanges: 1 or more.
        seed: the same one gives the same story.
        half: which half of the templates it uses.
        languages: of the template files; with several, each conversation is held in one of them.

    Raises:
        BadInput: there are no templates in that language, or no such half.
    """
    if exchanges < 1:
        raise BadInput("a story has at least one exchange")
    if half not in HALVES:
        raise BadInput(f"there is no half {half!r}", hint=f"use {' or '.join(HALVES)}")
    teller = _StoryWriter(random.Random(f"{seed} {half} {' '.join(languages)}"), [phrases(c, half) for c in languages])
    while len(teller.turns) < exchanges * 2:
        teller.exchange()
    return BeliefStory(seed, half, tuple(teller.turns), tuple(teller.beliefs))


class _StoryWriter:
    """The writer of one story, exchange by exchange, with its truth."""

    def __init__(self, rng: random.Random, files: list[Phrases]) -> None:
        self.rng, self.files = rng, files
        self.turns: list[StoryTurn] = []
        self.beliefs: list[TrueBelief] = []
        self._partner = rng.choice(["wife", "husband"])
        self._at = datetime(2025, 1, 6, 9, tzinfo=UTC)
        self._conversation, self._left = 0, 0
        self._file = files[0]

    def exchange(self) -> None:
        """Add a message of the user, and the reply."""
        if not self._left:
            self._conversation += 1
            self._left = self.rng.randint(EXCHANGES // 2, EXCHANGES * 3 // 2)
            self._at += timedelta(days=self.rng.randint(1, 6), minutes=self.rng.randint(0, 400))
            self._file = self.rng.choice(self.files)
        self._left -= 1
        kind, text, claims = self._message()
        self._add("user", text, kind, claims)
        self._add("assistant", self.rng.choice(self._file.talk["replies"]), "reply", ())

    def _add(self, role: str, text: str, kind: Kind, claims: tuple[StoryClaim, ...]) -> None:
        name = f"chat-{self._conversation:03}"
        last = self.turns[-1] if self.turns and self.turns[-1].conversation == name else None
        self._at += timedelta(seconds=self.rng.randint(20, 150))
        index = len(self.turns)
        self.turns.append(StoryTurn(index, name, last.seq + 1 if last else 1, role, text, self._at, kind, claims))
        for one in claims:
            self._believe(one, index)

    def _believe(self, claim: StoryClaim, index: int) -> None:
        here = [n for n, b in enumerate(self.beliefs) if b.until is None and b.claim.slot == claim.slot]
        if claim.op == "assert" and any(
            self.beliefs[n].claim.value == claim.value and self.beliefs[n].claim.key == claim.key for n in here
        ):
            return
        ended = [
            n
            for n in here
            if claim.joins != "multi" or (claim.op == "retract" and self.beliefs[n].claim.value == claim.value)
        ]
        for n in ended:
            self.beliefs[n] = replace(self.beliefs[n], until=index)
            if claim.key == "pet_named":
                self._make_optional(claim.value.casefold())
        if claim.op == "assert":
            self.beliefs.append(TrueBelief(claim, index))

    def _make_optional(self, subject: str) -> None:
        """Mark facts about an animal that is gone as implied: they may be kept or not."""
        for n, belief in enumerate(self.beliefs):
            if belief.claim.subject == subject:
                self.beliefs[n] = replace(belief, claim=replace(belief.claim, implied=True))

    def _message(self) -> tuple[Kind, str, tuple[StoryClaim, ...]]:
        """Choose the next message of the user."""
        dice = self.rng.random()
        if dice < 0.30:
            return "small-talk", self.rng.choice(self._file.talk["fillers"]), ()
        if dice < 0.33 and self.turns and self.turns[-1].seq > 1 and self._left:
            asked, answer = self.rng.choice(self._file.talk["traps"])
            self._ask(asked)
            return "denied", answer, ()
        for _ in range(50):
            topic = self.rng.choice(self._file.topics)
            message = self._distraction(topic) if dice > 0.78 else self._statement(topic)
            if message is not None:
                return message
        return "small-talk", self.rng.choice(self._file.talk["fillers"]), ()

    def _ask(self, question: str) -> None:
        """Turn the last reply into a question, which the user's next message answers."""
        for hole, words in (("{city}", self._file.talk["cities"]), ("{food}", self._file.talk["foods"])):
            question = question.replace(hole, self.rng.choice(words))
        self.turns[-1] = replace(self.turns[-1], text=question)

    def _distraction(self, topic: dict[str, Any]) -> tuple[Kind, str, tuple[StoryClaim, ...]] | None:
        kinds = [kind for kind, name in DISTRACTIONS.items() if topic.get(name)]
        holes = self._holes(topic)
        if not kinds or holes is None:
            return None
        kind = self.rng.choice(kinds)
        value, _ = self._new_value(topic, holes, self._held(topic, holes))
        text = fill_template(self.rng.choice(topic[DISTRACTIONS[kind]]), holes | {"v": value or ""})
        return kind, text, ()

    def _statement(self, topic: dict[str, Any]) -> tuple[Kind, str, tuple[StoryClaim, ...]] | None:
        holes = self._holes(topic)
        if holes is None:
            return None
        held = self._held(topic, holes)
        kind = self._event(topic, held)
        options = topic.get(OF[kind])
        if not options:
            return None
        old = self.rng.choice(held) if held else None
        value: str | None
        if kind in ("restated", "retracted"):
            if old is None:
                return None
            value, holes = value_words(topic, old), holes | named_thing(topic, old)
        else:
            value, holes = self._new_value(topic, holes, held)
        if value is None:
            return None
        holes = holes | {"v": value, "old": value_words(topic, old) if old else ""}
        if (
            "asked" in topic
            and kind in ("stated", "corrected")
            and self._left
            and self.turns
            and self.rng.random() < 0.3
        ):
            return self._answer(topic, holes)
        words = fill_template(self.rng.choice(options), holes)
        claims = claims_of(topic, "retract" if kind == "retracted" else "assert", holes, words)
        text, quote = self._framed(words)
        return kind, text, tuple(replace(one, quote=quote) for one in claims)

    def _answer(self, topic: dict[str, Any], holes: dict[str, str]) -> tuple[Kind, str, tuple[StoryClaim, ...]] | None:
        if self.turns[-1].seq == 1 or self.turns[-1].conversation != f"chat-{self._conversation:03}":
            return None
        self._ask(self.rng.choice(topic["asked"]))
        words = fill_template(self.rng.choice(topic["short"]), holes)
        return "answered", words, claims_of(topic, "assert", holes, words)

    def _framed(self, words: str) -> tuple[str, str]:
        """Return the framed text, and the quote of the words in it."""
        frame = self.rng.choice(self._file.talk["frames"])
        before = frame.partition("{say}")[0]
        if before.endswith((", ", ": ", "and ")) and words[:2] not in ("I ", "I'"):
            first = words.split(" ")[0].strip(",.!:")
            if first in OPENERS:
                words = words[0].lower() + words[1:]
        full = words if frame.endswith("{say}") or words[-1:] in ".!?" else words + "."
        return frame.replace("{say}", full), words

    def _event(self, topic: dict[str, Any], held: list[StoryClaim]) -> Kind:
        if not held:
            return "stated"
        more: list[Kind] = ["joined", "joined"] if topic["joins"] == "multi" else ["corrected", "corrected"]
        if topic["joins"] == "multi" and len(held) >= MOST_VALUES:
            more = ["retracted"]
        return self.rng.choice([*more, "restated", "retracted"])

    def _held(self, topic: dict[str, Any], holes: dict[str, str]) -> list[StoryClaim]:
        """Return the claims that are true now at the topic's address."""
        probe = claims_of(topic, "assert", holes | {"v": "", "old": ""}, "")[0]
        return [b.claim for b in self.beliefs if b.until is None and b.claim.slot == probe.slot]

    def _holes(self, topic: dict[str, Any]) -> dict[str, str] | None:
        """Choose the values of a topic's holes; ``None`` when it is about a pet and there is none."""
        holes = {"rel": self._partner}
        if "kinds" in topic:
            holes["k"] = self.rng.choice(split_words(topic["kinds"]))
        if topic.get("subject") == "relative":
            holes["rel"] = self.rng.choice([self._partner, *topic.get("relatives", ["sister", "brother"])])
        holes |= {"rel_said": self._file.talk.get("relations", {}).get(holes["rel"], holes["rel"])}
        if topic.get("subject") == "pet":
            pets = [b.claim.value for b in self.beliefs if b.until is None and b.claim.key == "pet_named"]
            if not pets:
                return None
            holes["pet"] = self.rng.choice(pets)
        return holes

    def _new_value(
        self, topic: dict[str, Any], holes: dict[str, str], held: list[StoryClaim]
    ) -> tuple[str | None, dict[str, str]]:
        """Choose a value that is not true there yet; the next one in order where values grow."""
        values = topic["values"]
        if "paired" in topic:
            values = split_words(topic["paired"][holes["k"]])
        taken = {value_words(topic, claim) for claim in held}
        if topic.get("grow") and held:
            place = max(values.index(value) for value in taken) + 1
            return (values[place] if place < len(values) else None), holes
        if topic["id"] == "pet":  # two animals of the same name would confuse anybody
            taken |= {b.claim.value for b in self.beliefs if b.claim.category == "pets"}
        if topic.get("value"):
            kinds = [
                k
                for k in split_words(topic["kinds"])
                if fill_template(topic["value"], {"k": k, "v": values[0]}) not in {s.value for s in held}
            ]
            return (values[0], holes | {"k": self.rng.choice(kinds)}) if kinds else (None, holes)
        free = [value for value in values if value not in taken]
        return (self.rng.choice(free) if free else None), holes
