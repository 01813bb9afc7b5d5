"""
The phrases of ``phrases/*.toml``, one half at a time: their holes filled, and what they then say.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal

from ..errors import BadInput
from ..scope import SELF
from .stories import HALVES, Half, Said

LANGUAGES = ("en",)
OPENERS = frozenset(
    "We My Our Home Over Being Big So New As After And Another The Turns Don't It's It Not Remember Because Of One On Now Raising Played Poor Change Let's Keep In You Still Besides This Everything At Nothing".split()
)


@dataclass(frozen=True, slots=True)
class Phrases:
    """One half of one file: topics, and what stands around them."""

    topics: tuple[dict[str, Any], ...]
    talk: dict[str, Any]


@cache
def phrases(language: str, half: Half) -> Phrases:
    if language not in LANGUAGES:
        raise BadInput(f"there are no templates in {language!r}", hint=f"use {', '.join(LANGUAGES)}")
    text = (resources.files(__package__) / "phrases" / f"{language}.toml").read_text(encoding="utf-8")
    table = tomllib.loads(text)
    return Phrases(tuple(_halved(topic, half) for topic in table["topic"]), _halved(table["talk"], half))


def _halved(table: dict[str, Any], half: Half) -> dict[str, Any]:
    """Lists and lists in words cut in two by turns; short lists of words stay whole."""
    out: dict[str, Any] = {}
    first = HALVES.index(half)
    for name, value in table.items():
        if name in ("values", "cities", "foods"):
            words = words_of(value)
            out[name] = words[first::2] if len(words) > 3 else words
        elif isinstance(value, list):
            out[name] = value[first::2]
        else:
            out[name] = value
    return out


def words_of(text: str) -> list[str]:
    return [word.strip() for word in text.split(",")]


def filled(template: str, holes: dict[str, str]) -> str:
    text = template
    for name in ("v", "old"):
        article = "a" if name == "v" else "ao"
        value = holes.get(name, "")
        text = text.replace(f"{{{article}}}", "an" if value[:1].lower() in "aeiou" and value else "a")
    text = text.replace("{rel}", holes.get("rel_said", holes.get("rel", "")))
    for name, value in holes.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def surface(topic: dict[str, Any], said: Said) -> str:
    """The words for the value of *said* in the templates of *topic*."""
    if "value" in topic:
        return str(topic["values"][0])
    value = said.key if said.joins == "exclusive" else said.value
    return next((words for words in topic["values"] if _canonical(topic, words) == value), value)


def _canonical(topic: dict[str, Any], words: str) -> str:
    """The value as a fact has it: "2" for "two", "300" for "300 euros", "vegetarian" for "vegetariana"."""
    return str(topic.get("words", {}).get(words, words)).removesuffix(topic.get("unit", ""))


def keyed(topic: dict[str, Any], said: Said) -> dict[str, str]:
    """The thing that *said* is about, where the topic's templates name one beside the value."""
    if "value" in topic:
        return {"k": said.value.rpartition(" ")[0]}
    return {}


def said_by(
    topic: dict[str, Any], op: Literal["assert", "retract"], holes: dict[str, str], words: str
) -> tuple[Said, ...]:
    """What *words*, made with *holes*, say."""
    subject = {"pet": holes.get("pet", "").casefold(), "relative": holes["rel"]}.get(topic.get("subject", ""), SELF)
    value = _canonical(topic, holes["v"])
    key = topic["key"].replace("{k}", holes.get("k", "")).replace("{v}", value).replace("{rel}", holes["rel"])
    stands = "true" if topic["joins"] == "exclusive" else filled(topic.get("value", "{v}"), holes | {"v": value})
    main = Said(op, subject, topic["category"], key, stands, words, topic["joins"], tuple(topic.get("alt", "").split()))
    if topic["id"] == "pet" and op == "assert":
        kind = topic.get("kind_words", {}).get(holes["k"], holes["k"])
        species = Said(op, value.casefold(), "identity", "species", kind, words, implied=True)
        return main, species, Said(op, SELF, "pets", "has_pet", kind, words, "multi", implied=True)
    if topic["id"] == "children" and op == "assert" and "baby" in words:
        return main, Said(op, SELF, "life", "happened", "baby was born", words, "multi", implied=True)
    if topic["id"] == "likes":  # who does not like it any more may be said to dislike it
        back: Literal["assert", "retract"] = "retract" if op == "assert" else "assert"
        return main, Said(back, subject, "preference", "dislikes", stands, words, "multi", implied=True)
    return (main,)
