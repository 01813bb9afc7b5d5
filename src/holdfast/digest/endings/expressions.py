"""The expressions that end what is known, compiled from ``patterns/ended_*.toml`` for a value and a subject."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from ...scope import SELF
from ..grammar import PatternLanguage, load_language
from ..rules import FALLBACK

SENTENCE = "statement"  # what may be of any category
_WIDE = re.compile("[\u1100-\u11ff\u3040-\u9fff\uac00-\ud7af]")  # scripts that join words without a space
# A letter beside a word where scripts touch.  Such letters have no case; compiling them with it takes three times as long.
_LETTER = r"(?-i:[^\W\u1100-\u11ff\u3040-\u9fff\uac00-\ud7af])"
# A new value of a few words, up to the next pause.
_NEW = re.compile(
    r"(?:to |in |at |with |by )?(?:the |an? |my )?(?P<new>[^\W_][\w'’.&+-]*(?: (?!(?:and|but|because|so|which|who|that|not|is|was|are|now|instead|"
    r"these|from|since|if|as|actually|i|we|though)\b)[^\W_][\w'’.&+-]*){0,2})",
    re.IGNORECASE,
)


@lru_cache(maxsize=8)
def lexicon_words(code: str, text: str) -> Mapping[str, tuple[str, ...]]:
    rules = load_language(code)
    found: dict[str, tuple[str, ...]] = {}
    for lexicon in rules.lexicons.values() if rules is not None and code != FALLBACK else ():
        for item in lexicon.one.finditer(text):
            canonical = (lexicon.lookup(item[0]) or "").casefold()
            if item[0] not in found.get(canonical, ()):
                found[canonical] = (*found.get(canonical, ()), item[0])
    return found


@lru_cache(maxsize=1024)
def same_words(code: str, word: str) -> tuple[str, ...]:
    """Return the other everyday words for *word*: "gran", "nan" for "grandmother"."""
    rules = load_language(code)
    groups = (group.split("|") for group in (rules.ended.get("same", ()) if rules is not None else ()))
    return next((tuple(other for other in group if other != word) for group in groups if word in group), ())


@lru_cache(maxsize=256)
def find_cue(code: str, name: str) -> re.Pattern[str] | None:
    rules = load_language(code)
    source = rules.ended.get(name) if rules is not None else None
    return re.compile(_spelled(source, {}), re.IGNORECASE) if source else None


@lru_cache(maxsize=4096)
def switch_expressions(code: str, kind: str, words: str) -> tuple[re.Pattern[str], ...]:
    """Compile the expression before the new value of a fact whose old one is *words*, or is not named."""
    rules = load_language(code)
    assert rules is not None  # the caller found it
    macros = rules.ended["macro"] | {"v": "<v>"}
    templates = rules.ended.get("switch", {}).get(kind, ())
    sources = (
        _spelled(_elided(source, rules), macros).replace("<v>", value_expression((words,), rules))
        for source in templates
    )
    return tuple(re.compile(source, re.IGNORECASE) for source in sources)


@lru_cache(maxsize=4096)
def ending_expressions(
    code: str, category: str, subject: str, value: str, names: tuple[str, ...]
) -> tuple[re.Pattern[str], ...]:
    """Compile the expressions that end what *value* matches, of that category and subject."""
    rules = load_language(code)
    assert rules is not None  # the caller found it
    return tuple(re.compile(source, re.IGNORECASE) for source in _sources(rules, category, subject, value, names))


def _sources(rules: PatternLanguage, category: str, subject: str, value: str, names: tuple[str, ...]) -> Iterator[str]:
    macros = rules.ended["macro"] | {"v": "<v>", "it": "(?P<it><v>)"}
    if subject != SELF:
        macros["who"] = macros["me"] = macros["other"]
    macros.pop("other")
    lists: Mapping[str, list[str]] = rules.ended.get("find", {})
    for categories, templates in lists.items():
        every = category == SENTENCE and categories != "death"
        if every or category in categories.split() or (categories == "any" and category != "death"):
            for template in templates:
                if subject == SELF or "{who}" in template or "{me}" in template:
                    source = _elided(template, rules) if subject == SELF else template
                    yield _filled(_spelled(source.replace("{v}", "{it}", 1), macros), value, names, subject)


def _elided(template: str, rules: PatternLanguage) -> str:
    """Return an English expression that also finds sentences without their "I": "came off the sertraline"."""
    if rules.code != FALLBACK:
        return template
    return template.replace("{who} ", "{me} ?").replace("{who}(?: {no}", "{me}(?: ?{no}")


@lru_cache(maxsize=4096)
def event_expressions(
    code: str, number: int, when: str, named: tuple[str, ...], subject: str = SELF, people: tuple[str, ...] = ()
) -> tuple[re.Pattern[str], ...]:
    """Compile the expressions of one event of *subject*; *named* are the values it may name."""
    rules = load_language(code)
    assert rules is not None  # the caller found it
    macros = dict(rules.ended["macro"])
    other = macros.pop("other")
    sources: list[str] = rules.ended["event"][number].get(when, ())
    if subject == SELF:
        sources = [_elided(source, rules) for source in sources]
    else:
        macros["who"] = macros["me"] = other
        sources = [source for source in sources if source.startswith(("{who}", "{me}")) and "<v>" not in source]
    value = value_expression(named, rules)
    return tuple(
        re.compile(_filled(_spelled(source, macros), value, people, subject), re.IGNORECASE) for source in sources
    )


@lru_cache(maxsize=1024)
def contrast_expressions(code: str, words: str) -> tuple[re.Pattern[str], ...]:
    """Compile "hazelnuts, not eggs" and "not eggs", the latter with whatever follows."""
    rules = load_language(code)
    assert rules is not None  # the caller found it
    gap = r"\s+" if rules.spaced else r"\s*"
    article = r"(?:(?:an?|the|to|with|in|at|my|from|called)\s+)?" if code == FALLBACK else ""
    wrong = rf"{_spelled(rules.ended['not'], {})}{gap}{article}{value_expression((words,), rules)}"
    pause = r"\s*[,，;–—-]*\s*" if code == FALLBACK else r"\s*[,，;–—-]+\s*"
    new, old = _new_value(rules), value_expression((words,), rules)
    before = rf"{new}{pause}(?:and\s+)?{wrong}"
    sources = [before, rf"(?<!\w){wrong}" if rules.spaced else wrong]
    if code == FALLBACK:  # "my sister isn't vegan" puts nothing right, "it's hazelnuts, it isn't eggs" does
        meant = rf"(?:{_spelled(rules.ended['meant'], {})}\s+)*"
        sources[0] = (
            rf"{meant}{new}(?:\s*[,;–—-]*\s*(?:and\s+)?not|\s*[,;–—-]+\s*(?:and\s+)?(?:{rules.ended['not']}))\s+{article}{old}"
        )
        slip = r"(?:wrote|said|typed|put|called it)\s+"
        right = r"\W+(?:(?:but|and|it)\s+)*(?:i\s+meant|meant|(?:it\s+)?should(?:'ve|\s+have)?(?:\s+(?:be|been|said|read))?|i\s+should\s+have\s+(?:said|written))\s+"
        sources.append(rf"\b{slip}{article}{old}{right}{new}")
    return tuple(re.compile(source, re.IGNORECASE) for source in sources)


def _new_value(rules: PatternLanguage) -> str:
    source: str = rules.ended.get("new", "")
    return _spelled(source, {}) if source else _NEW.pattern


@lru_cache(maxsize=16)
def new_after_denial(code: str) -> re.Pattern[str]:
    """Compile a new value after "not eggs", up to its end."""
    rules = load_language(code)
    assert rules is not None  # the caller found it
    meant = _spelled(rules.ended["meant"], {})
    start = rf"(?:\s*[,，;:.…–—-]+\s*(?:{meant}\s*[,:]?\s*)*|\s+(?:{meant}\s*[,:]?\s*)+)"
    return re.compile(start + _new_value(rules), re.IGNORECASE)


@lru_cache(maxsize=16)
def correction_without_old(code: str) -> re.Pattern[str]:
    """Compile a correction that names only the right value."""
    rules = load_language(code)
    assert rules is not None  # the caller found it
    cue, meant = (_spelled(rules.ended[name], {}) for name in ("cue", "meant"))
    start = rf"^\W*(?:(?:ah|oh|hm+|uh|um|argh|ugh|sorry|well)\W+)*(?:{cue}\W*)+(?:(?:{cue}|{meant})\W*)*"
    if "instead" in rules.ended:
        start = rf"^\W*(?:{cue}\W*)*(?:{_spelled(rules.ended['instead'], {})}\W*)+"
    behind = (
        r"(?<=\w)[,.… ]+(?:(?:sorry|oops|my bad|typo|autocorrect|i mean|i meant)\W*)+$" if code == FALLBACK else r"(?!)"
    )
    return re.compile(
        rf"(?:{start}{_new_value(rules)}\W*$|^\W*{_new_value(rules).replace('<new>', '<new_>')}{behind})", re.IGNORECASE
    )


@lru_cache(maxsize=256)
def renewal_expression(code: str, kind: str, words: str) -> re.Pattern[str] | None:
    """Compile the expression that gives a new value of a kind."""
    rules = load_language(code)
    source = rules.ended.get("renew", {}).get(kind) if rules is not None else None
    if rules is None or not source:
        return None
    return re.compile(
        _filled(_spelled(source, rules.ended["macro"]), value_expression((words,) if words else (), rules), (), SELF),
        re.IGNORECASE,
    )


def _filled(source: str, value: str, names: tuple[str, ...], subject: str) -> str:
    """Fill in what people wrote, in one pass: a brace of theirs is no hole, a "<v>" of theirs no value."""
    known = "|".join(_literal(name) for name in sorted({*names, subject}))
    people = {"<v>": value, "<names>": known, "<subject>": _literal(subject)}
    return re.sub("<v>|<names>|<subject>", lambda hole: people[hole[0]], source)


def value_expression(words: tuple[str, ...], rules: PatternLanguage) -> str:
    """Return the expression of one of several values, in the singular or the plural; one that never matches for none."""
    if not words:
        return r"(?!)"
    longest = sorted(words, key=len, reverse=True)
    spelled = "|".join(_literal(one[:-1] if one.endswith("s") and len(one) > 3 else one) for one in longest)
    if _WIDE.match(words[0]):
        return rf"(?:{spelled})"
    letter = r"\w" if rules.spaced else _LETTER
    return rf"(?<!{letter})(?:{spelled})(?:s|es|ism|'s|[a-z]?ing)?(?!{letter})"


def _literal(words: str) -> str:
    return r"\s+".join(map(re.escape, words.split()))


def _spelled(template: str, macros: Mapping[str, str]) -> str:
    source = template
    while macros and "{" in re.sub(r"\{\d+(?:,\d*)?\}", "", source):
        source = re.sub(r"\{([a-z_]+)\}", lambda hole: macros[hole[1]], source)
    return re.sub(r" (\?)?", lambda gap: r"\s*" if gap[1] else r"\s+", source)
