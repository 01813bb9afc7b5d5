"""
Pattern files as compiled regular expressions: lexicons, slots, macros, triggers.

A pattern's ``find`` is a regular expression in which a space means any white space, ``{name}``
for a macro, a lexicon or an open slot, ``{name+}`` for a list of them ("Spanish, French and Korean")
and ``{name:group}`` gives the slot another group name.  Nothing is compiled before a text holds one
of the pattern's trigger words, and all words that the expression cannot match without.  So loading
costs one TOML parse and a text without triggers costs one pass over its words.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cache, cached_property, lru_cache
from importlib import resources
from typing import Any, NamedTuple

from ..scope import SELF
from ..text import (
    ExpressionIndex,
    ExpressionTemplate,
    NeededWords,
    dataclass,
    expression,
    needed_words,
    remembered,
    spelled,
    words_of_macros,
)
from ..text.terms import LEXICON_WORD, WordList

FALLBACK = "en"
Span = tuple[int, int]
SENTENCE = "statement"  # what may be of any category

_HOLE = expression(r"\{([a-z_A-Z]+)(\+?)(?::([a-z_]+))?\}")
_WORDS_OF = expression(r"(?<!P)<([a-z_]+)>")
TECH_VERSION = r"(?:\s*v?\d+(?:\.\d+)*(?![A-Za-z0-9_%]))?"
_DIGIT = expression(r"\d")
_BORROWED = expression(r"@([a-z]{2})\b")
ANY_DIGIT = "#"
TAIL_CHARS = 40  # of a sentence, in which closing words that say nothing are looked for
MAX_TEXT_CHARS = 600  # longer stretches are not one sentence; they are read in pieces of this size


class BadPatterns(ValueError):
    """An inconsistent pattern file; the message names the pattern and the word."""


@dataclass(frozen=True, slots=True)
class PatternSlot:
    """A slot of a pattern: the group that holds it, the kind of value, and whether it is a list."""

    group: str
    name: str
    many: bool


@dataclass(frozen=True, slots=True)
class Expression:
    """One compiled ``find``; ``anchored`` when it begins with its subject."""

    regex: re.Pattern[str]
    slots: tuple[PatternSlot, ...]
    anchored: bool

    def matches(self, text: str, anchors: Sequence[int]) -> Iterator[re.Match[str]]:
        """Find the matches in *text*; an anchored expression is tried at *anchors* only, for speed."""
        free = 0
        for place in anchors if self.anchored else ():
            found = self.regex.match(text, place) if place >= free else None
            if found:
                free = self._after(found)
                yield found
        found = None if self.anchored else self.regex.search(text)
        while found:
            yield found
            found = self.regex.search(text, self._after(found))

    def _after(self, found: re.Match[str]) -> int:
        """Return where the next match may begin: a closing slot may have swallowed the next statement."""
        closing = (found.start(slot.group) for slot in self.slots if found.end(slot.group) == found.end())
        return max(found.start() + 1, min(closing, default=found.end()))


@dataclass(frozen=True)
class Pattern:
    """One entry of a pattern file; ``patterns/README.md`` explains the fields."""

    id: str
    category: str
    key: str
    value: str
    text: str
    find: tuple[str, ...]
    triggers: frozenset[str]
    next: tuple[str, ...] = ()
    kind: str = "attribute"
    op: str = "assert"
    join: str = ""
    lifetime: str = "state"
    confidence: float = 0.9
    negated: str = "retract"
    who: str = ""
    about_others: bool = True
    keep_last: bool = False
    starts_clause: bool = True
    in_questions: bool = False
    list: str = ""
    also: tuple[Mapping[str, str], ...] = ()
    introduces: str = ""
    needs: str = ""
    default: str = ""
    time: str = ""
    question: str = ""
    examples: tuple[Mapping[str, Any], ...] = ()
    place: int = 0
    language: PatternLanguage = field(repr=False, compare=False, default=None)  # type: ignore[assignment]

    @cached_property
    def joined(self) -> frozenset[str]:
        """The kinds whose lists become one value: ``list = "join:database"``."""
        return frozenset(self.list.removeprefix("join:").split()) if self.list.startswith("join:") else frozenset()

    @cached_property
    def question_expression(self) -> re.Pattern[str]:
        """The compiled question that an answer pattern answers."""
        return re.compile(_spaces(self.question), re.IGNORECASE)

    @cached_property
    def templates(self) -> tuple[ExpressionTemplate, ...]:
        """Each ``find``, with the words that it needs."""
        return tuple(ExpressionTemplate(find, self.language.needed(find)) for find in self.find)

    def fitting(self, lowered: str | None) -> Iterator[Expression]:
        """Yield each ``find`` that may match a text, by `plainly_lowered`; to compile them all takes seconds."""
        return (self.language.expression(one.source, self.id) for one in self.templates if one.fits(lowered))

    @property
    def next_items(self) -> Iterator[Expression]:
        """Each ``next``."""
        return (self.language.expression(find, self.id, inside=True) for find in self.next)


class PatternLanguage:
    """The patterns, lexicons and cues of one language."""

    def __init__(self, code: str, table: Mapping[str, Any]) -> None:
        self.code = code
        settings = table.get("language", {})
        self.spaced: bool = settings.get("spaced", True)
        self.modality: Mapping[str, str] = table.get("modality", {})
        self.people: Mapping[str, Any] = table.get("people", {})
        self.ended: Mapping[str, Any] = table.get("ended", {})
        self.clauses: Mapping[str, Any] = table.get("clauses", {})
        self.glue: str = settings.get("glue", ", ")
        self.filler: str = settings.get("filler", "")
        self.weak = frozenset(settings.get("weak", "").split())
        self.versioned = frozenset(settings.get("versioned", "").split())
        self.no_item = re.compile(
            settings.get("no_item", r"(?!)"), re.IGNORECASE
        )  # where a list ends, and a clause begins
        self.separators: str = settings.get("separators", r"\s*,\s*")
        self.joint = re.compile(settings.get("joint", r"\s(?:and|or|&)\s"), re.IGNORECASE)
        self.numbers = {
            word.replace("_", " "): number
            for number, words in settings.get("numbers", {}).items()
            for word in words.split()
        }
        self.macros: Mapping[str, str] = table.get("macro", {})
        self._compiled: dict[tuple[str, bool], Expression] = {}
        self.lexicons = {
            name: WordList(name, _borrowed(name, entries), spaced=self.spaced)
            for name, entries in table.get("lexicon", {}).items()
        }
        self.unions: Mapping[str, tuple[str, ...]] = {n: tuple(v.split()) for n, v in table.get("union", {}).items()}
        shared = table.get("slots", {})
        self.slots = {name: open_slot(name, {**shared, **spec}) for name, spec in table.get("slot", {}).items()}
        self.patterns = tuple(self._pattern(place, entry) for place, entry in enumerate(table.get("pattern", ())))
        self.answers = tuple(self._pattern(place, entry) for place, entry in enumerate(table.get("answer", ())))
        self.triggers: dict[str, list[Pattern]] = {}
        for pattern in self.patterns:
            for word in pattern.triggers:
                self.triggers.setdefault(word, []).append(pattern)

    def triggered(self, text: str) -> list[Pattern]:
        """Return the patterns with a trigger in *text*, in the order of the file."""
        found: dict[str, Pattern] = {}
        for word in self.words(text):
            for pattern in self.triggers.get(word, ()):
                found[pattern.id] = pattern
        return sorted(found.values(), key=lambda pattern: pattern.place)

    def words(self, text: str) -> set[str]:
        """Return the words of *text* that can be triggers, with `ANY_DIGIT` when it holds a digit."""
        lowered = text.lower()
        if not self.spaced:
            return {trigger for trigger in self.triggers if trigger in lowered or trigger == ANY_DIGIT}
        found = set()
        for word in LEXICON_WORD.findall(lowered):
            found.add(word)
            if "'" in word or "-" in word:
                found.update(re.split("['-]", word))
        if _DIGIT.search(lowered):
            found.add(ANY_DIGIT)
        return found

    def lexicons_of(self, name: str) -> tuple[WordList, ...]:
        """Return the lexicons of slot *name*: one, or those of a union; none for an open slot."""
        if name in self.unions:
            return tuple(self.lexicons[part] for part in self.unions[name])
        return (self.lexicons[name],) if name in self.lexicons else ()

    def anchors(self, text: str) -> list[int]:
        """Return the places in *text* where a statement with a subject can begin."""
        return [found.start() for found in self._anchor.finditer(text)] if self._anchor else []

    @cached_property
    def _anchor(self) -> re.Pattern[str] | None:
        words = str(self.people.get("anchors", "")).split()
        if not words:
            return None
        return re.compile(rf"(?<![\w'])(?:(?:{'|'.join(words)})(?:m|ve|re|s)?(?!\w)|(?-i:[A-ZÀ-Þ]))", re.IGNORECASE)

    def expression(self, find: str, owner: str, *, inside: bool = False) -> Expression:
        """Return one ``find``, which begins with a word, or with *inside* where it is tried; compiled at its first use."""
        if (find, inside) not in self._compiled:
            self._compiled[find, inside] = self._expression(find, owner, inside)
        return self._compiled[find, inside]

    def needed(self, find: str) -> NeededWords:
        """Return words without which a ``find`` matches no text."""
        return needed_words(self._outline(find), self._words_of_macros)

    @cached_property
    def _words_of_macros(self) -> dict[str, NeededWords | None]:
        return words_of_macros({name: self._outline(source) for name, source in self.macros.items()})

    def _outline(self, source: str) -> str:
        """Return a ``find`` as `needed_words` reads it: what a slot or a lexicon takes is not known."""
        known = _WORDS_OF.sub("<v>", _spaces(source))
        return _HOLE.sub(lambda hole: hole[0] if hole[1] in self.macros and hole[1].islower() else "<v>", known)

    def _expression(self, find: str, owner: str, inside: bool) -> Expression:
        slots: list[PatternSlot] = []

        def fill(hole: re.Match[str]) -> str:
            name, many, group = hole[1], bool(hole[2]), hole[3] or hole[1]
            if name in self.macros:
                return _HOLE.sub(fill, self._named(_spaces(self.macros[name])))
            body = self._body(name, many, owner)
            slots.append(PatternSlot(group, name, many))
            return f"(?P<{group}>{body})"

        source = _HOLE.sub(fill, self._named(_spaces(find)))
        left = r"(?<![\w'])" if self.spaced and not inside else ""
        try:
            regex = re.compile(left + source, re.IGNORECASE)
            return Expression(regex, tuple(slots), self._anchor is not None and source.startswith("(?P<who>"))
        except re.error as error:
            raise BadPatterns(f"{self.code}: pattern {owner}: {error} in {source}") from error

    def _body(self, name: str, many: bool, owner: str) -> str:
        lexicons = self.lexicons_of(name)
        if lexicons:
            one = "(?:" + "|".join(lexicon.alternatives for lexicon in lexicons) + ")"
            one += TECH_VERSION if lexicons[0].name.startswith("tech") else ""
            return f"{one}(?:(?:{self.separators}){self.filler}{one}){{0,9}}" if many else one
        if name not in self.slots:
            raise BadPatterns(f"{self.code}: pattern {owner} names {{{name}}}, which is no slot, lexicon or macro")
        return self.raw(self.slots[name], many=many)

    def raw(self, slot: OpenSlot, *, many: bool = False) -> str:
        """Return the expression of the stretch in which *slot* looks for its value."""
        source = slot.raw_many if many else slot.raw
        return self._named(source.replace("<numbers>", "|".join(sorted(self.numbers, key=len, reverse=True))))

    def _named(self, source: str) -> str:
        """Replace ``<name>`` in *source* by the words of that lexicon."""
        return _WORDS_OF.sub(lambda hole: self.lexicons[hole[1]].alternatives, source)

    def _pattern(self, place: int, entry: Mapping[str, Any]) -> Pattern:
        values = dict(entry)
        owner = values.get("id", "?")
        for name, expressions in (("find", values["find"]), ("next", values.get("next", ()))):
            values[name] = (expressions,) if isinstance(expressions, str) else tuple(expressions)
        triggers: set[str] = set()
        for word in values.pop("triggers", "").split():
            if word.startswith("@"):
                for lexicon in self.lexicons_of(word[1:]):
                    triggers |= lexicon.triggers
            else:
                triggers.add(word.replace("_", " "))
        values["triggers"] = frozenset(triggers)
        values["also"] = tuple(values.get("also", ()))
        values["examples"] = tuple(values.get("examples", ()))
        try:
            return Pattern(language=self, place=place, **values)
        except TypeError as error:
            raise BadPatterns(f"{self.code}: pattern {owner}: {error}") from error


def _borrowed(name: str, entries: str) -> str:
    """Replace ``@en`` in *entries* by the entries of lexicon *name* in that language's file."""
    return _BORROWED.sub(lambda found: str((_table(found[1]) or {})["lexicon"][name]), entries)


def _spaces(source: str) -> str:
    return re.sub(r"(?<!\\) ([?*+]?)", lambda found: r"\s*" if found[1] in ("?", "*") and found[1] else r"\s+", source)


@cache
def load_language(code: str) -> PatternLanguage | None:
    """Load the patterns of language *code* on first use; None when it has no file."""
    table = _table(code)
    return PatternLanguage(code, table) if table is not None else None


@cache
def _table(code: str) -> Mapping[str, Any] | None:
    if not re.fullmatch("[a-z]{2}", code):
        return None
    folder = resources.files("holdfast.digest").joinpath("patterns")
    files = [
        file
        for name in (f"{code}.toml", f"ended_{code}.toml", f"clauses_{code}.toml")
        if (file := folder.joinpath(name)).is_file()
    ]
    tables = [tomllib.loads(file.read_text(encoding="utf-8")) for file in files]
    return {name: part for table in tables for name, part in table.items()} or None


def languages() -> list[str]:
    """Return the codes of the languages that have a pattern file."""
    folder = resources.files("holdfast.digest").joinpath("patterns")
    return sorted(item.name[:2] for item in folder.iterdir() if re.fullmatch(r"[a-z]{2}\.toml", item.name))


@dataclass(frozen=True, slots=True)
class OpenSlot:
    """
    The rules by which an open slot cuts its words out of the sentence (see `holdfast.digest.slots`).

    ``kind`` names the reader; ``words`` bounds the length; the value ends before a word of ``cut``,
    is refused when it starts with one of ``refuse`` or holds one of ``never``, and loses leading
    words of ``drop``.  A value that begins with an activity ("going for walks in the park") reaches
    further: to a word of ``cut_doing``.  ``alone`` says too little by itself; a value that ends with
    one of ``dangling`` was cut in the wrong place and is refused.  ``commas``: it may hold commas.
    Behind a word of ``capitals_after`` a name needs its capital even from a user who writes without.
    A word of ``restricts`` directly behind the value begins a clause without which it says too much
    ("people who lie"), so the value is refused.  In a list, a head noun of ``heads`` that ends the last
    item belongs to the single words before it too ("action and sci-fi movies").
    """

    name: str
    kind: str
    words: int
    cut: frozenset[str]
    refuse: frozenset[str]
    never: frozenset[str]
    drop: frozenset[str]
    raw: str
    raw_many: str
    refuse_lexicons: tuple[str, ...] = ()
    cut_doing: frozenset[str] = frozenset()
    alone: frozenset[str] = frozenset()
    dangling: frozenset[str] = frozenset()
    commas: bool = False
    joints: frozenset[str] = frozenset()
    capitals_after: frozenset[str] = frozenset()
    restricts: frozenset[str] = frozenset()
    heads: frozenset[str] = frozenset()


def open_slot(name: str, spec: Mapping[str, Any]) -> OpenSlot:
    def words(field_name: str) -> frozenset[str]:
        own, more, fewer = (frozenset(str(spec.get(field_name + end, "")).split()) for end in ("", "_too", "_not"))
        return (own | more) - fewer

    return OpenSlot(
        name,
        spec.get("kind", name),
        int(spec.get("words", 5)),
        words("cut"),
        words("refuse"),
        words("never"),
        words("drop"),
        spec.get("raw", r"[^,.;:!?()\"\n]{1,80}"),
        spec.get("raw_many", r"[^.;:!?()\"\n]{1,140}"),
        tuple(spec.get("refuse_lexicons", "").split()),
        words("cut_doing"),
        words("alone"),
        words("dangling"),
        bool(spec.get("commas", False)),
        words("joints"),
        words("capitals_after"),
        words("restricts"),
        words("heads"),
    )


# A new value of a few words, up to the next pause.
_NEW = expression(
    r"(?:to |in |at |with |by )?(?:the |an? |my )?(?P<new>[^\W_][\w'’.&+-]*(?: (?!(?:and|but|because|so|which|who|that|not|is|was|are|now|instead|"
    r"these|from|since|if|as|actually|i|we|though)\b)[^\W_][\w'’.&+-]*){0,2})",
    re.IGNORECASE,
)
_WIDE = expression("[\u1100-\u11ff\u3040-\u9fff\uac00-\ud7af]")  # scripts that join words without a space
# A letter beside a word where scripts touch.  Such letters have no case; compiling them with it takes three times as long.
_LETTER = r"(?-i:[^\W\u1100-\u11ff\u3040-\u9fff\uac00-\ud7af])"


@remembered(8)
def lexicon_words(code: str, text: str) -> Mapping[str, tuple[str, ...]]:
    rules = load_language(code)
    found: dict[str, tuple[str, ...]] = {}
    lexicons = rules.lexicons.items() if rules is not None else ()
    for lexicon in (lexicon for name, lexicon in lexicons if code != FALLBACK or name == "drug"):
        for item in lexicon.one.finditer(text):
            canonical = (lexicon.lookup(item[0]) or "").casefold()
            if item[0] not in found.get(canonical, ()):
                found[canonical] = (*found.get(canonical, ()), item[0])
    return found


@remembered(1024)
def same_words(code: str, word: str) -> tuple[str, ...]:
    """Return the other everyday words for *word*: "gran", "nan" for "grandmother"."""
    rules = load_language(code)
    for group in rules.ended.get("same", ()) if rules is not None else ():
        head, _, members = group.partition(">")  # "pork>bacon": bacon is pork, and no other meat
        if members and word == head:
            return tuple(members.split("|"))
        if not members and word in group.split("|"):
            return tuple(other for other in group.split("|") if other != word)
    return ()


@lru_cache(maxsize=256)
def ending_cue(code: str, name: str) -> re.Pattern[str] | None:
    rules = load_language(code)
    source = rules.ended.get(name) if rules is not None else None
    return re.compile(spelled(source, {}), re.IGNORECASE) if source else None


@lru_cache(maxsize=64)
def _macros(
    code: str, *, own: bool = True, alone: bool = False
) -> tuple[dict[str, str], dict[str, NeededWords | None]]:
    """Return the macros of a language for what is about the user, or not *own*, and the words that each needs."""
    macros = _known(code).ended["macro"] | {"v": "<v>", "it": "(?P<it><v>)"}
    macros["they"] = r"\b(?:she|he|it|they)" if alone else "(?!)"
    if not own:
        macros["who"] = macros["me"] = macros["other"]
    macros.pop("other")
    return macros, words_of_macros(macros)


def _templates(
    sources: Iterable[str], macros: tuple[Mapping[str, str], Mapping[str, NeededWords | None]]
) -> tuple[ExpressionTemplate, ...]:
    return tuple(ExpressionTemplate(spelled(source, macros[0]), needed_words(source, macros[1])) for source in sources)


@remembered(1024)
def _compiled(source: str) -> re.Pattern[str]:
    return re.compile(source, re.IGNORECASE)


def _fitting(
    templates: Iterable[ExpressionTemplate],
    lowered: str | None,
    value: str,
    names: tuple[str, ...] = (),
    subject: str = SELF,
) -> Iterator[re.Pattern[str]]:
    """Yield the expressions that may match a text: to compile all of them for each value takes a hundred times as long."""
    for template in templates:
        if template.fits(lowered):
            yield _compiled(filled(template.source, value, names, subject))


@lru_cache(maxsize=256)
def _switch_templates(code: str, kind: str) -> tuple[ExpressionTemplate, ...]:
    templates = _known(code).ended.get("switch", {}).get(kind, ())
    return _templates((without_subject(one, _known(code)) for one in templates), _macros(code))


def switch_expressions(code: str, kind: str, words: str, lowered: str | None) -> Iterator[re.Pattern[str]]:
    """Yield the expressions before the new value of a fact whose old one is *words*, or is not named, that may match a text."""
    return _fitting(_switch_templates(code, kind), lowered, value_expression((words,), _known(code)))


@remembered(256)
def kind_expression(code: str, kind: str, whose: str) -> ExpressionTemplate:
    """Return the expression of one of the nouns of a kind of fact, with the words in front of it: "my job"."""
    nouns = _known(code).ended["nouns"]
    source = rf"(?<!\w)(?:{nouns[whose]}){nouns['like']}(?:{kind})(?!\w)".replace(" ", r"\s+")
    return ExpressionTemplate(source, needed_words(source, {}))


def _known(code: str) -> PatternLanguage:
    rules = load_language(code)
    assert rules is not None  # the caller found it
    return rules


def ending_expressions(
    code: str,
    category: str,
    subject: str,
    value: str,
    names: tuple[str, ...],
    lowered: str | None,
    *,
    alone: bool = False,
) -> Iterator[re.Pattern[str]]:
    """Yield what ends *value*, of that category and subject, in a text; *alone*: only the user can have it, so no owner is named."""
    return _fitting(ending_templates(code, category, subject == SELF, alone), lowered, value, names, subject)


@lru_cache(maxsize=512)
def ending_templates(code: str, category: str, own: bool, alone: bool) -> tuple[ExpressionTemplate, ...]:
    """Return the expressions that end what is known of the user or, where not *own*, of another; see `ending_expressions`."""
    rules = _known(code)
    lists_for = (
        {category} if category in ("death", "uneaten", "disliked") else {category, "any"} | {"done"} - {category}
    )
    lists_for -= {"done"} if category == "allergy" else set()
    lists: Mapping[str, list[str]] = rules.ended.get("find", {})
    sources = []
    for categories, templates in lists.items():
        every = category == SENTENCE and categories not in ("death", "disliked", "allergy", "food uneaten")
        if every or not {*categories.split()}.isdisjoint(lists_for):
            for template in templates:
                if own or alone or category == "pets" or "{who}" in template or "{me}" in template:
                    source = without_subject(template, rules) if own else template
                    source = source.replace("{any}", "{few}") if every else source
                    sources.append(source if "{it}" in source else source.replace("{v}", "{it}", 1))
    return _templates(sources, _macros(code, own=own, alone=alone))


def without_subject(template: str, rules: PatternLanguage) -> str:
    """Return an English expression that also finds sentences without their "I": "came off the sertraline"."""
    if rules.code != FALLBACK:
        return template
    return template.replace("{who} ", "{me} ?").replace("{who}(?: {no}", "{me}(?: ?{no}")


def event_expressions(
    code: str, number: int, when: str, named: tuple[str, ...], lowered: str | None
) -> Iterator[re.Pattern[str]]:
    """Yield the expressions of one event that may match a text; *named* are the values it may name."""
    return _fitting(event_templates(code, number, when), lowered, value_expression(named, _known(code)))


@remembered(8)
def events_in(code: str, lowered: str | None, whens: tuple[str, ...]) -> tuple[int, ...]:
    """Return the numbers of the events of which a text may hold the words, of what is known "now" or was "just" stated."""
    return tuple(sorted(set().union(*(_event_index(code, when).find(lowered) for when in whens))))


@cache
def _event_index(code: str, when: str) -> ExpressionIndex:
    each = range(len(_known(code).ended.get("event", ())))
    return ExpressionIndex((number, one) for number in each for one in event_templates(code, number, when))


@lru_cache(maxsize=2048)
def event_templates(code: str, number: int, when: str) -> tuple[ExpressionTemplate, ...]:
    """Return the expressions of one event."""
    sources = _known(code).ended["event"][number].get(when, ())
    return _templates((without_subject(source, _known(code)) for source in sources), _macros(code))


@remembered(1024)
def contrast_expressions(code: str, words: str) -> tuple[re.Pattern[str], ...]:
    """Compile "hazelnuts, not eggs" and "not eggs", the latter with whatever follows."""
    rules = _known(code)
    gap = r"\s+" if rules.spaced else r"\s*"
    article = r"(?:(?:an?|the|to|with|in|at|my|from|called)\s+)?" if code == FALLBACK else ""
    wrong = rf"{spelled(rules.ended['not'], {})}{gap}{article}{value_expression((words,), rules)}"
    pause = r"\s*[,，;–—-]*\s*" if code == FALLBACK else r"\s*[,，;–—-]+\s*"
    new, old = new_value(rules), value_expression((words,), rules)
    meant = rf"(?:{spelled(rules.ended['meant'], {})}{gap})*"
    sources = [rf"{meant}{new}{pause}(?:and\s+)?{wrong}", rf"(?<!\w){wrong}" if rules.spaced else wrong]
    if "not_after" in rules.ended:
        sources.append(rf"{old}{rules.ended['not_after']}")
    if code == FALLBACK:  # "my sister isn't vegan" puts nothing right, "it's hazelnuts, it isn't eggs" does
        sources[0] = (
            rf"{meant}{new}(?:\s*[,;–—-]*\s*(?:and\s+)?not|\s*[,;–—-]+\s*(?:and\s+)?(?:{rules.ended['not']}))\s+{article}{old}"
        )
        sources += [
            rf"\b{rules.ended['slip']}{article}{old}{rules.ended['right']}{new}",
            rf"\b{rules.ended['rather']}(?:the\s+)?{new}\s+instead\s+of\s+(?:the\s+)?{old}{rules.ended['rather_end']}",
        ]
    return tuple(re.compile(source, re.IGNORECASE) for source in sources)


def new_value(rules: PatternLanguage) -> str:
    source: str = rules.ended.get("new", "")
    return spelled(source, {}) if source else _NEW.pattern


@lru_cache(maxsize=16)
def following_value(code: str) -> re.Pattern[str]:
    """Compile a new value after "not eggs", up to its end."""
    rules = _known(code)
    meant = spelled(rules.ended["meant"], {})
    start = rf"(?:\s*[,，;:.…–—-]+\s*(?:{meant}\s*[,:]?\s*)*|\s+(?:{meant}\s*[,:]?\s*)+)"
    return re.compile(start + new_value(rules), re.IGNORECASE)


@lru_cache(maxsize=16)
def correction(code: str) -> re.Pattern[str]:
    """Compile a correction that names only the right value."""
    rules = _known(code)
    cue, meant = (spelled(rules.ended[name], {}) for name in ("cue", "meant"))
    start = rf"^\W*(?:(?:ah|oh|hm+|uh|um|argh|ugh|sorry|well|no|nein|nee|non|não)\W+)*(?:{cue}\W*)+(?:(?:{cue}|{meant})\W*)*"
    if "instead" in rules.ended:
        number = "|".join((r"\d+(?:[.,]\d+)?", *map(re.escape, rules.numbers)))  # "quatsch, 35!"
        said = rf"^\W*(?:{cue}\W*)*(?:{spelled(rules.ended['instead'], {})}\W*)+"
        start = rf"(?:{said}|{start}(?=(?:{number})\W*$))"
    if code == FALLBACK:  # "it's 10 actually"
        mean = "i mean|i meant|i always (?:mix|confuse) (?:them|those|the two)(?: up)?|autocorrect|typo"
        late = rf"\W+(?:(?:actually|sorry|my bad|my mistake|oops)\W*$|(?:{mean})\b)"
        start = rf"(?:{start}|^\W*(?:{meant}\W*)*(?=(?:\d|(?-i:[A-Z]))[^.!?]{{0,30}}?{late}|[\w ]{{3,30}}\W+(?:{mean})\W*$))"
    tail = r"(?:\W+(?:actually|sorry|i mean|i meant|my bad|my mistake|oops|typo|autocorrect|i always (?:mix|confuse) (?:them|those|the two)(?: up)?))?(?:\s+(?:for|as|is|was)\s+(?:my|the|his|her|our)\s+[\w ]{2,20})?(?:\s*[,–—-]+\s*(?:i|my|sorry|always|autocorrect)\b[^.!?]*)?"
    return re.compile(rf"{start}{new_value(rules)}{tail if code == FALLBACK else ''}\W*$", re.IGNORECASE)


@dataclass(frozen=True)
class ChangeSignal:
    """Words that end a known value when they are said beside it: ``of`` which kinds, and the text allowed between the two."""

    of: frozenset[str]
    first: bool
    words: ExpressionTemplate
    gap: re.Pattern[str]

    def places(self, text: str, lowered: str | None) -> Iterator[Span]:
        """Yield where a text says one of its words."""
        if self.words.fits(lowered):
            yield from (found.span() for found in _compiled(self.words.source).finditer(text))


@lru_cache(maxsize=16)
def change_signals(code: str) -> tuple[ChangeSignal, ...]:
    """Compile the words of change of a language, those that come before what ends and those that come after it."""
    rules = load_language(code)
    ended = rules.ended if rules is not None else {}
    return tuple(
        ChangeSignal(
            frozenset(table["of"].split()),
            side == "before",
            _templates(("|".join(table[side]),), _macros(code))[0],
            re.compile(spelled(ended["gap"][table.get("gap", side)], ended["macro"]), re.IGNORECASE),
        )
        for table in ended.get("signal", ())
        for side in ("before", "after")
        if table.get(side)
    )


class Opposite(NamedTuple):
    """Words that cannot be true with those of a known fact: a ``sure`` one needs no word of change, a ``named`` one a name of the fact."""

    about: re.Pattern[str] | None
    same: re.Pattern[str]
    words: tuple[re.Pattern[str], ...]
    sure: bool
    named: bool


@remembered(4096)
def opposites(code: str, fact: str) -> tuple[Opposite, ...]:
    """Return what cannot be true with a known *fact*: "full-time" with "Works part-time"."""
    held = (
        one for one in _exclusive_words(code) if one.same.search(fact) and (not one.about or one.about.search(fact))
    )
    return tuple(one for one in held if not any(words.search(fact) for words in one.words))


@lru_cache(maxsize=16)
def _exclusive_words(code: str) -> list[Opposite]:
    found, ended = [], _known(code).ended
    for table in ended.get("exclusive", ()):
        about = re.compile(rf"(?<!\w)(?:{table['about']})", re.IGNORECASE) if "about" in table else None
        words = (rf"(?<!\w)(?:{spelled(side, ended['macro'])})(?!\w)" for side in table["words"])
        sides = [re.compile(side, re.IGNORECASE) for side in words]
        for side in sides:
            others = tuple(other for other in sides if other is not side)
            found.append(Opposite(about, side, others, table.get("sure", False), table.get("named", False)))
    return found


@lru_cache(maxsize=512)
def _stopping_templates(code: str, kinds: tuple[str, ...]) -> tuple[ExpressionTemplate, ...]:
    lists: Mapping[str, list[str]] = _known(code).ended.get("unless", {})
    chosen = (one for names, those in lists.items() if not {*names.split()}.isdisjoint(kinds) for one in those)
    return _templates(chosen, _macros(code))


def stopping_expressions(
    code: str, kinds: tuple[str, ...], value: str, lowered: str | None
) -> Iterator[re.Pattern[str]]:
    """Yield what keeps a text from ending facts of these kinds, if it matches: "Rex's sister died" for the pet Rex."""
    return _fitting(_stopping_templates(code, kinds), lowered, value)


@lru_cache(maxsize=256)
def _renewal_templates(code: str, kind: str) -> tuple[ExpressionTemplate, ...]:
    found = _known(code).ended.get("renew", {}).get(kind, ())
    return _templates([found] if isinstance(found, str) else found, _macros(code)) if found else ()


def renewal(code: str, kind: str, words: str, lowered: str | None, about: str = "") -> Iterator[re.Pattern[str]]:
    """Yield the expressions that give a new value of a kind, if they match; *about* is what it is the value of: "book"."""
    if templates := _renewal_templates(code, kind):
        yield from _fitting(templates, lowered, value_expression((words,) if words else (), _known(code)), (), about)


def filled(source: str, value: str, names: tuple[str, ...], subject: str) -> str:
    """Fill in what people wrote, in one pass: a brace of theirs is no hole, a "<v>" of theirs no value."""
    known = "|".join(_literal(name) for name in sorted({*names, subject}))
    people = {"<v>": value, "<names>": known, "<subject>": _literal(subject)}
    return re.sub("<v>|<names>|<subject>", lambda hole: people[hole[0]], source)


def value_expression(words: tuple[str, ...], rules: PatternLanguage) -> str:
    """Return the expression of one of several values, in the singular or the plural; one that never matches for none."""
    if not words:
        return r"(?!)"
    longest = sorted(words, key=len, reverse=True)
    any_of = "|".join(_literal(one[:-1] if one.endswith("s") and len(one) > 3 else one) for one in longest)
    if _WIDE.match(words[0]):
        return rf"(?:{any_of})"
    letter = r"\w" if rules.spaced else _LETTER
    return rf"(?<!{letter})(?:{any_of})(?:s|es|ism|'s|[a-z]?ing)?(?!{letter})"


@remembered(4096)
def akin_expression(words: tuple[str, ...], rules: PatternLanguage) -> re.Pattern[str]:
    """Compile the expression, in the group "it", of one of several values and the words made from each: "meditation"."""
    plain, made = value_expression(words, rules), ""
    for endings in rules.ended.get("derived", ()):
        stems = (re.fullmatch(endings, one) for one in words)
        akin = "|".join(sorted({re.escape(stem[1]) for stem in stems if stem is not None}))
        made += f"|(?:{akin}){endings.partition(')')[2]}" if akin else ""
    return re.compile(rf"(?P<it>{plain}|(?<!\w)(?:{made[1:] or '(?!)'})(?!\w))", re.IGNORECASE)


def _literal(words: str) -> str:
    return r"\s+".join(map(re.escape, words.split()))


@lru_cache(maxsize=32)
def cues(rules: PatternLanguage) -> dict[str, re.Pattern[str]]:
    """Return the compiled cue expressions of a language."""
    return {
        name: re.compile(_expanded(source, rules.modality), re.IGNORECASE) for name, source in rules.modality.items()
    }


@remembered(1024)
def addresses_of(code: str, sentence: str) -> frozenset[str]:
    """Return the addresses at which a statement would be if it were an attribute: "family/partner" of "Is dating Ravi."."""
    rules = load_language(code)
    kinds: Mapping[str, str] = rules.ended.get("sentence", {}) if rules is not None else {}
    return frozenset(address for address, source in kinds.items() if re.search(source, sentence))


def without_fillers(rules: PatternLanguage, sentence: str) -> str:
    """Return a sentence without the words around it that say nothing; every other character keeps its place."""
    lead, tail = ending_cue(rules.code, "lead"), ending_cue(rules.code, "tail")
    start = lead.match(sentence) if lead else None
    if start is not None:
        sentence = " " * start.end() + sentence[start.end() :]
    last = sentence[-TAIL_CHARS:]
    return sentence[: -len(last)] + tail.sub("", last, count=1) if tail and last else sentence


def english_cue(name: str) -> re.Pattern[str]:
    """Return a cue of English, the language that facts are worded in."""
    return cues(_known(FALLBACK))[name]


def _expanded(source: str, table: Mapping[str, str]) -> str:
    """Expand a cue: line breaks are layout, a space is any white space, ``{lead}`` another cue."""
    whole = re.sub(r"\{([a-z_]+)\}", lambda hole: table[hole[1]], source)
    return re.sub(r"\s*\n\s*", "", whole.strip()).replace(" ", r"\s+")
