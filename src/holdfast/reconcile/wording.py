"""
Does a text that a model wrote say just what its sentences said?  Pure.

A model may join sentences and leave out what is said twice.  It may not say anything else: the text,
word by word, must be made of its sentences, each standing there whole and in order, and none as a mere part
of another.  Only a beginning that two sentences share may be left out the second time: "I like tea and coffee".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from .agree import NEGATIONS, OPPOSITES, comparable, of_group, sense, sequence

MAX_CHARS = 400

# Joins sentences, and says nothing of its own.
_LEFT_OUT = frozenset("be and but while who which".split())

Words = tuple[str, ...]


def words_of(text: str) -> Words:
    """Every word that says something, in order; without "is", and without what only joins sentences."""
    return tuple(word for word in sequence(text, user_is_i=False) if word not in _LEFT_OUT)


def may_gather(one: str, other: str) -> bool:
    """
    Whether a model may be asked to join two sentences that are about the same thing.

    Not where either denies something, where they are about others, or another time, and not where one
    looks like a later value of the other: "I live in Berlin", "I live in Munich".
    """
    if not (comparable(one) and comparable(other)) or _denies(one) or _denies(other):
        return False
    a, b = sense(one), sense(other)
    for group in ("user", "time", "mood"):
        if of_group(a.marks, group) != of_group(b.marks, group):
            return False
    mine, theirs = a.plain - b.plain, b.plain - a.plain
    if any((mine & x and theirs & y) or (mine & y and theirs & x) for x, y in OPPOSITES):
        return False
    if a.numbers and b.numbers and a.numbers != b.numbers:
        return False
    return not _another_value(words_of(one), words_of(other))


def unfaithful(text: str, sentences: Sequence[str]) -> str:
    """
    Why *text* must not stand for *sentences*; empty when it says all of them and nothing else.
    """
    if not comparable(text):
        return "it is not written in English words"
    if len(text) > min(MAX_CHARS, sum(map(len, sentences)) + 8 * len(sentences)):
        return "it is too long"
    if _denies(text) != any(map(_denies, sentences)):
        return "it denies something, or no longer does"
    told, parts = words_of(text), [words_of(sentence) for sentence in sentences]
    if missing := {word for part in parts for word in part} - set(told):
        return "a number is missing" if any(word[0].isdigit() for word in missing) else "a word is missing"
    if new := set(told) - {word for part in parts for word in part}:
        return "a number is new" if any(word[0].isdigit() for word in new) else "a word is new"
    return "" if _made_of(told, parts) else "one of the sentences does not stand in it"


def _denies(text: str) -> bool:
    return any(word in NEGATIONS for word in sequence(text))


def _another_value(a: Words, b: Words) -> bool:
    """Whether the two are the same sentence with another word or two in some place."""
    if len(a) != len(b):
        return False
    differ = sum(x != y for x, y in zip(a, b, strict=True))
    return 0 < differ and 2 * differ <= len(a)


def _made_of(told: Words, parts: Sequence[Words]) -> bool:
    """Whether each part stands in *told* as a whole (or without a beginning it shares), and nothing beside them."""
    whole = {part: [range(at, at + len(part)) for at in _starts(told, part)] for part in parts}
    covered = {index for places in whole.values() for place in places for index in place}
    for part, places in whole.items():
        inside = [place for place in places if _swallowed(place, told, whole)]
        if places and len(inside) == len(places):
            return False
        if places:
            continue
        rests = {part[shared:] for other in parts if other != part for shared in _shared(part, other)}
        free = [
            range(start, start + len(rest))
            for rest in sorted(rests, key=len, reverse=True)
            for start in _starts(told, rest)
            if start and covered.isdisjoint(range(start, start + len(rest)))
        ]
        if not free:
            return False
        covered.update(free[0])
    return len(covered) == len(told)


def _swallowed(place: range, told: Words, whole: Mapping[Words, Sequence[range]]) -> bool:
    """
    Whether a sentence stands there only as the beginning or a part of a longer one: "I eat meat" is not
    said by "I eat meat substitutes", but "I have a cat" is by "I have a cat named Tom".
    """
    if told[place.stop : place.stop + 1] in (("named",), ("called",)):
        return False
    longer = (other for places in whole.values() for other in places if len(other) > len(place))
    return any(other.start <= place.start and place.stop <= other.stop for other in longer)


def _starts(told: Words, part: Words) -> Iterator[int]:
    return (start for start in range(len(told) - len(part) + 1) if told[start : start + len(part)] == part)


def _shared(part: Words, other: Words) -> list[int]:
    """How many words the two begin alike, if any, and if something is left of *part*."""
    same = 0
    while same < min(len(part), len(other)) and part[same] == other[same]:
        same += 1
    return [same] if 0 < same < len(part) else []
