"""
Text primitives: validation, tokens, words, sentences, dates, safe rendering.  All pure.

And what is compiled late, or not at all where a text lacks the words that an expression needs.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError, fields
from dataclasses import dataclass as _standard_dataclass
from functools import cache, lru_cache
from importlib import import_module
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, cast

__all__ = [
    "ExpressionIndex",
    "ExpressionTemplate",
    "NDArray",
    "NeededWords",
    "dataclass",
    "expression",
    "forget_remembered",
    "may_hold",
    "needed_words",
    "np",
    "plainly_lowered",
    "remembered",
    "spelled",
    "words_of_macros",
]


P = ParamSpec("P")
T = TypeVar("T")


class _LazyExpression:
    """A regular expression that is compiled when it is first used."""

    def __init__(self, source: str, flags: int) -> None:
        self.pattern, self._flags = source, flags

    def __getattr__(self, name: str) -> object:
        if name.startswith("_"):
            raise AttributeError(name)
        compiled = re.compile(self.pattern, self._flags)
        for method in ("search", "match", "fullmatch", "finditer", "findall", "sub", "split", "flags"):
            setattr(self, method, getattr(compiled, method))
        return getattr(compiled, name)


def expression(source: str, flags: int = 0) -> re.Pattern[str]:
    """
    Return a regular expression that is compiled when it is first used.

    Five hundred of them compiled at import were a third of the time that every command takes to start.
    """
    return cast("re.Pattern[str]", _LazyExpression(source, flags))


_REMEMBERED: list[Callable[[], None]] = []


def remembered(most: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Cache the last *most* answers of a function of what people wrote, until `forget_remembered`."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        cached = lru_cache(maxsize=most)(function)
        _REMEMBERED.append(cached.cache_clear)
        return cast("Callable[P, T]", cached)

    return decorate


def forget_remembered() -> None:
    """Forget everything that `remembered` holds, after something was erased."""
    for forget in _REMEMBERED:
        forget()


NeededWords = tuple[frozenset[str], ...]
"""Sets of words in lower case: a text that an expression matches holds one of each, be it within a longer word."""

_TOKEN = expression(
    r"\\(?:x..|u.{4}|U.{8}|N\{[^}]*\}|\d+|.)|\[\^?\]?(?:\\.|[^\]\\])*\]|<\w+>|\{(?P<macro>[a-z_]+)\}"
    r"|\((?P<look>\?<?[=!])|\((?P<open>\?P<\w+>|\?[a-z]*(?:-[a-z]+)?:|(?!\?))|(?P<other>\(\?)"
    r"|(?P<close>\))|(?P<bar>\|)|(?P<times>[?*+]|\{\d+(?:,\d*)?\})[?+]?|(?P<word>\w)|.",
    re.DOTALL,
)
_MACRO = expression(r"\{([a-z_]+)\}")
_LEAST_NEEDED = 2  # letters of a word: most texts hold any single one
_MOST_NEEDED = 4  # sets of words
_UNEVEN = expression("[\u0130\u0131\u017f]")  # letters that a search which ignores case takes for i or s


def needed_words(source: str, macros: Mapping[str, NeededWords | None]) -> NeededWords:
    """
    Return words without which an expression that ignores case cannot match; none where this cannot say.

    ``{name}`` in *source* stands for an expression that needs the words of *macros*, ``<name>`` for words that are not known.
    """
    read = _Branches.of(source, macros)
    return read.rarest() if read is not None else ()


def spelled(template: str, macros: Mapping[str, str]) -> str:
    """Return a template as an expression: macros filled in, a space for any white space, contractions without an apostrophe too."""
    source = template
    while macros and "{" in re.sub(r"\{\d+(?:,\d*)?\}", "", source):
        source = re.sub(r"\{([a-z_]+)\}", lambda hole: macros[hole[1]], source)
    source = re.sub(r"(?<!\?<!)n't", "n['’]?t", source)  # "havent"
    source = re.sub(r"(?<!\?)'(?=(?:ve|m)(?!\w))", "['’]?", source)  # "ive"
    return re.sub(r" (\?)?", lambda gap: r"\s*" if gap[1] else r"\s+", source)


def words_of_macros(macros: Mapping[str, str]) -> dict[str, NeededWords | None]:
    """Return the words that each of *macros* needs; ``None`` for one that parts an expression around it, or is not understood."""
    found: dict[str, NeededWords | None] = {}

    def read(name: str) -> None:
        for inner in _MACRO.findall(macros[name]):
            if inner not in found and inner in macros:
                read(inner)
        branches = _Branches.of(macros[name], found)
        found[name] = None if branches is None or branches.several else branches.rarest()

    for name in macros:
        if name not in found:
            read(name)
    return found


def plainly_lowered(text: str) -> str | None:
    """Return a text in lower case, to look for `needed_words` in; ``None`` where a letter of it matches another one."""
    return None if not text.isascii() and _UNEVEN.search(text) else text.lower()


def may_hold(text: str, words: str) -> bool:
    """Whether a search that ignores case may find *words* in a text."""
    lowered, wanted = plainly_lowered(text), plainly_lowered(words)
    return lowered is None or wanted is None or wanted in lowered


def _rarity(words: frozenset[str]) -> tuple[int, int, list[str]]:
    return (-min(map(len, words)), len(words), sorted(words))


class _Branches:
    """The words that each branch of a group of an expression needs, while the last one is being read."""

    def __init__(self) -> None:
        self._done: list[list[frozenset[str]]] = []
        self._own: list[frozenset[str]] = []
        self._word = ""
        self._last: list[frozenset[str]] = []  # of the group before, which a count may follow

    @classmethod
    def of(cls, source: str, macros: Mapping[str, NeededWords | None]) -> _Branches | None:
        """Read an expression; ``None`` where it holds something that is not known here."""
        stack, looks = [cls()], [False]
        for token in _TOKEN.finditer(source):
            kind, here = token.lastgroup, stack[-1]
            if kind == "word":
                here.add_letter(token[0])
            elif kind == "times":
                here.repeat(at_least_once=token[0][0] == "+" or token[0][1:2] not in ("", "0", "?", "+"))
            elif kind == "bar":
                here.end_branch()
            elif kind == "open" or kind == "look":
                stack.append(cls())
                looks.append(kind == "look")
            elif kind == "close" and len(stack) > 1:
                inner, beside = stack.pop(), looks.pop()
                stack[-1].add([] if beside else inner.needed())
            elif kind == "macro":
                part = macros.get(token["macro"])
                if part is None:
                    return None
                here.add(list(part))
            elif kind is None:
                here.add([])
            else:
                return None
        return stack[0] if len(stack) == 1 else None

    @property
    def several(self) -> bool:
        """Whether there is more than one branch."""
        return bool(self._done)

    def rarest(self) -> NeededWords:
        """Return what is needed, without what most texts hold."""
        return tuple(sorted(self.needed(), key=_rarity)[:_MOST_NEEDED])

    def add_letter(self, letter: str) -> None:
        """Note a letter."""
        self._own += self._last
        self._last = []
        self._word += letter

    def add(self, needed: list[frozenset[str]]) -> None:
        """Note a group, or what needs nothing."""
        self._end_word()
        self._last = needed

    def repeat(self, *, at_least_once: bool) -> None:
        """Note how often the letter or group before comes."""
        if not self._word:
            self._last = self._last if at_least_once else []
            return
        self._word = self._word if at_least_once else self._word[:-1]
        self._end_word()

    def end_branch(self) -> None:
        """Note the end of a branch."""
        self._end_word()
        self._done.append(self._own)
        self._own = []

    def needed(self) -> list[frozenset[str]]:
        """Return what is needed, whichever branch matches."""
        self._end_word()
        branches = [*self._done, self._own]
        if len(branches) == 1 or not all(branches):
            return branches[0] if len(branches) == 1 else []
        return [frozenset[str]().union(*(min(branch, key=_rarity) for branch in branches))]

    def _end_word(self) -> None:
        self._own += self._last
        self._last = []
        if len(self._word) >= (_LEAST_NEEDED if self._word.isascii() else 1):
            self._own.append(frozenset((self._word.lower(),)))
        self._word = ""


class _LateModule:
    """A module that is imported when something of it is first used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        value = getattr(import_module(self._name), name)
        setattr(self, name, value)
        return value


if TYPE_CHECKING:
    from dataclasses import dataclass

    import numpy as np
    from numpy.typing import NDArray
else:
    np = _LateModule("numpy")
    """Half of the import of `Memory` was numpy's, and neither a record nor a list of facts needs it."""
    NDArray = "NDArray"
    """Only written in annotations, which are never evaluated."""

    def dataclass(cls: type | None = None, /, **options: bool) -> Any:
        """
        Make a dataclass like that of the standard library, whose methods are made when they are first used.

        The standard one compiles six functions a class; for the 280 classes behind `Memory` that was more than half of
        the import.  A class with a base, without a docstring, or with other annotations than texts is left to it.
        """

        def decorate(plain: type) -> type:
            notes = inspect.get_annotations(plain)
            usual = plain.__doc__ and all(isinstance(note, str) and "InitVar" not in note for note in notes.values())
            if usual and plain.__bases__ in ((object,), (Generic,)):
                return _late_dataclass(plain, notes, options)
            return _standard_dataclass(plain, **options)

        return decorate if cls is None else decorate(cls)


class _Late:
    """A method of a dataclass that is made at its first use, and then replaces this."""

    __slots__ = ("_made", "_name")

    def __init__(self, made: _Made, name: str) -> None:
        self._made, self._name = made, name

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        self._made.make(self._name)
        return getattr(self._made.owner if instance is None else instance, self._name)


class _Made:
    """A dataclass, and what its methods are made of."""

    __slots__ = ("defaults", "notes", "options", "owner", "wanted")

    def __init__(self, notes: dict[str, str], defaults: dict[str, object], options: dict[str, bool]) -> None:
        self.notes, self.defaults, self.options = notes, defaults, options
        self.owner: Any = None
        self.wanted: tuple[str, ...] = ()

    def make(self, name: str) -> None:
        """Make the ``__init__``, or everything else."""
        if name == "__init__":
            self.owner.__init__ = _compiled_init(self.owner, self.options)
            return
        space = {"__annotations__": self.notes, "__module__": self.owner.__module__, "__doc__": "-", **self.defaults}
        only = {"kw_only": self.options.get("kw_only", False), "init": False, "repr": False, "eq": False}
        plain: Any = _standard_dataclass(type(self.owner.__name__, (), space), **only)
        found = fields(plain)
        hashed = [field.name for field in found if (field.compare if field.hash is None else field.hash)]
        made = {
            "__match_args__": plain.__match_args__,
            "__dataclass_params__": _parameters(**self.options),
            "__repr__": _written([field.name for field in found if field.repr]),
            "__eq__": _equal(_reader([field.name for field in found if field.compare])),
            "__hash__": _hashed(_reader(hashed)),
            "__dataclass_fields__": plain.__dataclass_fields__,
        }
        for one, value in made.items():
            if one in self.wanted:
                setattr(self.owner, one, value)


class _FromFactory:
    """The default of an argument whose value a factory makes."""

    def __repr__(self) -> str:
        return "<factory>"


_FROM_FACTORY = _FromFactory()


def _late_dataclass(plain: type, notes: dict[str, str], options: dict[str, bool]) -> type:
    """Return the dataclass of *plain*, with its slots, but with methods that are made when they are used."""
    frozen, slots, eq = (options.get(name, name == "eq") for name in ("frozen", "slots", "eq"))
    space = dict(vars(plain))
    names = [name for name, note in notes.items() if not note.startswith(("ClassVar", "typing.ClassVar"))]
    made = _Made(notes, {name: space[name] for name in notes if name in space}, options)
    late = ["__init__", "__match_args__", "__dataclass_params__", "__dataclass_fields__"]
    late += ["__repr__"] if options.get("repr", True) else []
    late += (["__eq__", "__hash__"] if frozen else ["__eq__"]) if eq else []
    made.wanted = tuple(name for name in late if name not in space)
    own: dict[str, Any] = {name: _Late(made, name) for name in made.wanted}
    if eq and not frozen:
        own["__hash__"] = None
    if frozen:
        own |= {"__setattr__": _refuse_value, "__delattr__": _refuse_deletion}
        if slots:
            own |= {"__getstate__": _state, "__setstate__": _restore_state}
    for name in names:
        default = space.pop(name, MISSING)
        default = default.default if isinstance(default, Field) else default
        if default is not MISSING and not slots:
            own[name] = default
    if slots:
        own["__slots__"] = (*names, "__weakref__") if options.get("weakref_slot", False) else tuple(names)
    for name in ("__dict__", "__weakref__"):
        space.pop(name, None)
    made.owner = type(plain)(plain.__name__, plain.__bases__, own | space | {"__annotations__": notes})
    made.owner.__qualname__ = plain.__qualname__
    return cast("type", made.owner)


@cache
def _parameters(**options: bool) -> object:
    """Return what the standard library notes of a dataclass with these options."""
    example: Any = _standard_dataclass(type("Example", (), {"__doc__": "-"}), **options)
    return example.__dataclass_params__


def _compiled_init(cls: Any, options: dict[str, bool]) -> Any:
    """Compile the ``__init__`` of a dataclass."""
    frozen, slots = options.get("frozen", False), options.get("slots", False)
    this = "self" if "self" not in (field.name for field in fields(cls)) else "__dataclass_self__"
    names: dict[str, Any] = {"_from_factory": _FROM_FACTORY, "_setattr": object.__setattr__}
    arguments: dict[bool, list[str]] = {False: [], True: []}
    body = []
    for field in fields(cls):
        name, given = field.name, field.init
        default = "" if field.default is MISSING else f"_default_{name}"
        names[f"_default_{name}"] = field.default
        value = name if given else default
        if field.default_factory is not MISSING:
            names[f"_make_{name}"] = field.default_factory
            value = f"_make_{name}() if {name} is _from_factory else {name}" if given else f"_make_{name}()"
            default = "_from_factory"
        if given:
            arguments[bool(field.kw_only)].append(f"{name}={default}" if default else name)
        elif not value or (value == default and not slots):
            continue
        if not frozen:
            body.append(f"{this}.{name} = {value}")
        elif slots:
            names[f"_set_{name}"] = vars(cls)[name].__set__
            body.append(f"_set_{name}({this}, {value})")
        else:
            body.append(f"_setattr({this}, {name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        body.append(f"{this}.__post_init__()")
    head = ", ".join([this, *arguments[False], *(["*", *arguments[True]] if arguments[True] else [])])
    lines = "".join(f"\n        {line}" for line in body or ["pass"])
    source = f"def make({', '.join(names)}):\n    def __init__({head}):{lines}\n    return __init__"
    place: dict[str, Any] = {}
    exec(source, sys.modules[cls.__module__].__dict__, place)
    made = place["make"](**names)
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    made.__annotations__ = {field.name: field.type for field in fields(cls) if field.init} | {"return": None}
    return made


def _reader(names: Sequence[str]) -> Callable[[object], tuple[object, ...]]:
    """Return a function that reads these fields of a value, as a tuple."""
    if len(names) > 1:
        return cast("Callable[[object], tuple[object, ...]]", attrgetter(*names))
    return lambda value: tuple(getattr(value, name) for name in names)


def _written(names: Sequence[str]) -> Callable[[object], str]:
    @recursive_repr()
    def __repr__(self: object) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    return __repr__


def _equal(read: Callable[[object], tuple[object, ...]]) -> Callable[[object, object], bool]:
    def __eq__(self: object, other: object) -> bool:
        return read(self) == read(other) if other.__class__ is self.__class__ else NotImplemented

    return __eq__


def _hashed(read: Callable[[object], tuple[object, ...]]) -> Callable[[object], int]:
    def __hash__(self: object) -> int:
        return hash(read(self))

    return __hash__


def _fields(value: object) -> dict[str, Field[Any]]:
    return cast("dict[str, Field[Any]]", value.__dataclass_fields__)  # type: ignore[attr-defined]


def _refuse_value(self: object, name: str, value: object) -> None:
    if "__dataclass_fields__" in vars(type(self)) or name in _fields(self):
        raise FrozenInstanceError(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


def _refuse_deletion(self: object, name: str) -> None:
    if "__dataclass_fields__" in vars(type(self)) or name in _fields(self):
        raise FrozenInstanceError(f"cannot delete field {name!r}")
    object.__delattr__(self, name)


def _state(self: object) -> list[object]:
    return [getattr(self, field.name) for field in fields(self)]  # type: ignore[arg-type]


def _restore_state(self: object, state: Sequence[object]) -> None:
    for field, value in zip(fields(self), state, strict=True):  # type: ignore[arg-type]
        object.__setattr__(self, field.name, value)


@dataclass(frozen=True, slots=True)
class ExpressionTemplate:
    """An expression with holes for what people wrote, and the words without which it matches no text."""

    source: str
    needs: NeededWords

    def fits(self, lowered: str | None) -> bool:
        """Whether it may match a text, by `plainly_lowered`."""
        return lowered is None or all(any(map(lowered.__contains__, words)) for words in self.needs)


class ExpressionIndex:
    """Numbered expressions by the words they need, so that not each has to be tried with every text."""

    def __init__(self, templates: Iterable[tuple[int, ExpressionTemplate]]) -> None:
        self._all: set[int] = set()
        self._always: set[int] = set()
        self._by_word: dict[str, list[tuple[int, ExpressionTemplate]]] = {}
        for number, template in templates:
            self._all.add(number)
            if not template.needs:
                self._always.add(number)
                continue
            for word in max(template.needs, key=lambda words: min(map(len, words))):
                self._by_word.setdefault(word, []).append((number, template))

    def find(self, lowered: str | None) -> set[int]:
        """Return the numbers of those that may match a text, by `plainly_lowered`."""
        if lowered is None:
            return self._all
        told = (each for word, each in self._by_word.items() if word in lowered)
        return self._always.union(number for each in told for number, template in each if template.fits(lowered))
