"""A dataclass of ours behaves as the standard library's does, and costs the import less."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import field, fields, replace
from typing import Any, ClassVar

import pytest

from holdfast import Message
from holdfast.text import (
    dataclass,
    expression,
    forget_remembered,
    may_hold,
    needed_words,
    plainly_lowered,
    remembered,
    words_of_macros,
)


def make(decorator: Callable[..., Any], options: dict[str, bool]) -> Any:
    @decorator(**options)
    class Example:
        """A class with a field of every sort."""

        shared: ClassVar[int] = 5
        name: str
        sizes: list[int] = field(default_factory=list)
        self: int = 3
        unseen: int = field(default=2, repr=False, compare=False)
        counted: int = field(default=0, init=False)
        made: dict[str, int] = field(default_factory=dict, init=False)
        only: str = field(default="o", kw_only=True)

        def __post_init__(self: Any) -> None:
            object.__setattr__(self, "counted", len(self.name))

    return Example


SHAPES = [
    {},
    {"frozen": True},
    {"slots": True},
    {"frozen": True, "slots": True},
    {"frozen": True, "slots": True, "kw_only": True},
    {"frozen": True, "slots": True, "eq": False},
    {"frozen": True, "slots": True, "repr": False},
    {"slots": True, "weakref_slot": True},
]
shapes = pytest.mark.parametrize("options", SHAPES, ids=str)


def outcome(call: Callable[[], object]) -> object:
    """Return what a call gives, or the kind and words of its error."""
    try:
        return call()
    except (TypeError, AttributeError) as error:
        return type(error), str(error)


@shapes
def test_is_what_the_standard_library_makes(options: dict[str, bool]) -> None:
    ours, theirs = make(dataclass, options), make(dataclasses.dataclass, options)

    def told(kind: Any) -> list[object]:
        one, other = kind(name="a", sizes=[1]), kind(name="a", sizes=[1], unseen=9)
        return [
            str(inspect.signature(kind)),
            kind.__match_args__,
            kind.__doc__,
            kind.__init__.__qualname__,
            kind.__init__.__annotations__,
            repr(kind.__dataclass_params__),
            [item.name for item in fields(kind)],
            "<locals>.Example(" in repr(one) and repr(one).partition(" object at ")[0],
            one == other,
            one == kind(name="b"),
            one == "a",
            kind.__hash__ is None,
            outcome(lambda: hash(kind(name="a")) == hash(one)),
            outcome(lambda: setattr(one, "name", "b")),
            outcome(lambda: delattr(one, "name")),
            outcome(kind),
            outcome(lambda: kind("a", [1], 3, 4, "more")),
            dataclasses.asdict(replace(one, name="longer")),
            copy.deepcopy(one).sizes,
            one.shared,
        ]

    assert told(ours) == told(theirs)


@shapes
def test_init_is_compiled_once_and_at_the_first_instance(options: dict[str, bool]) -> None:
    kind = make(dataclass, options)

    assert not inspect.isfunction(vars(kind)["__init__"])
    assert kind(name="a").counted == 1
    made = vars(kind)["__init__"]
    assert inspect.isfunction(made)
    assert kind(name="b").self == 3
    assert vars(kind)["__init__"] is made


def test_hashes_by_what_it_compares() -> None:
    @dataclass(frozen=True, slots=True)
    class Pair:
        """Two values, of which one counts."""

        counts: int
        not_counted: list[int] = field(compare=False)

    assert {Pair(1, [1]), Pair(1, [2]), Pair(2, [])} == {Pair(1, []), Pair(2, [])}


def test_values_travel_between_processes() -> None:
    said = Message("user", "I live in Lisbon.", seq=3, conversation="c")

    assert pickle.loads(pickle.dumps(said)) == said
    assert copy.copy(said) == said


def test_a_frozen_class_of_somebody_else_may_inherit() -> None:
    @dataclass(frozen=True, slots=True)
    class Base:
        """One value."""

        size: int = 1

    @dataclass(frozen=True, slots=True)
    class Derived(Base):
        """Two values."""

        name: str = "n"

    class Plain(Base):
        """A class that is no dataclass."""

    plain = Plain(4)
    plain.more = 5  # type: ignore[attr-defined]

    assert repr(Derived(2)).endswith("Derived(size=2, name='n')")
    with pytest.raises(dataclasses.FrozenInstanceError):
        plain.size = 5  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        Derived(2).size = 5  # type: ignore[misc]


def test_an_expression_is_that_of_the_standard_library() -> None:
    numbers = expression(r"(?P<number>\d+)")

    assert numbers.pattern == r"(?P<number>\d+)"
    assert numbers.sub("#", "1 and 22") == "# and #"
    assert [found["number"] for found in numbers.finditer("1 and 22")] == ["1", "22"]
    assert numbers.groupindex == {"number": 1}


MACROS = {"who": r"\b(?:i|we) ?", "stop": "(?:stopp?(?:ed|ing)|quit(?:ting)?)", "either": "one|other", "v": "<v>"}


@pytest.mark.parametrize(
    ("source", "needed"),
    [
        ("sold(?: my)? {v}", [{"sold"}]),
        ("cancell?ed", [{"cancel"}, {"ed"}]),
        ("{who} {stop} {v}", [{"stop", "quit"}]),
        ("(?:abc|def)+ (?:ghi)? x{2}y", [{"abc", "def"}]),
        ("colou?r", [{"colo"}]),
        ("ab*c{0,3}dé", [{"dé"}]),
        ("foo|bar(?:baz|q)", [{"foo", "bar"}]),
        ("foo|b?", []),
        (r"(?<!not )(?=now)\x20over[^\]a]zz", [{"over"}, {"zz"}]),
        ("(?P<it>Foo)(?-i:Bar)", [{"bar"}, {"foo"}]),
        ("<names> died", [{"died"}]),
        ("{either} died", []),  # "one|other died": the bar parts it
        ("{unknown} died", []),
        ("(?i)died", []),
        ("(a)?(?(1)died|gone)", []),
        ("돌아가셨", [{"돌아가셨"}]),
    ],
)
def test_the_words_that_an_expression_needs_are_those_of_every_match(source, needed):
    assert sorted(map(sorted, needed_words(source, words_of_macros(MACROS)))) == sorted(map(sorted, needed))


def test_a_letter_that_matches_another_one_without_case_hides_no_word():
    assert plainly_lowered("ICH WILL ÄPFEL") == "ich will äpfel"
    assert plainly_lowered("İs it ſold") is None
    assert may_hold("ſold", "sold")
    assert not may_hold("bought", "sold")


def test_what_is_remembered_of_texts_is_bounded_and_can_be_forgotten():
    read = []

    @remembered(2)
    def length(text: str) -> int:
        read.append(text)
        return len(text)

    lengths = [length(text) for text in ("a", "bb", "a", "ccc", "bb")]
    forget_remembered()
    length("bb")

    assert lengths == [1, 2, 1, 3, 2]
    assert read == ["a", "bb", "ccc", "bb", "bb"]
