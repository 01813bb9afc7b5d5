"""
Endings: messages that end a known fact ("we canceled Vienna"), or put a new value in its place.

`rules` reads each message without knowing any fact.  Here the known values are looked for in the message, next
to words that end things (``[ended]`` in the pattern files).  So a retraction always names a known value.  Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from ..scope import SELF
from ..text.sentences import split_pieces
from ..text.terms import likely_languages
from ..types import Candidate, Fact, Message
from .grammar import MAX_TEXT_CHARS, PatternLanguage, PatternSlot, load_language
from .modality import BLANK, judge, masked
from .rules import FACT_SOURCE, MAX_READ_CHARS
from .slots import read_at

CONFIDENCE = 0.85
_LEAST_CHARS = 3
_LETTERS = re.compile(r"[^\W\d_]{2}")
_ARTICLE = re.compile(r"^(?:the|an?|my|our) ", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class KnownValue:
    """A known attribute: subject, address, value, and whether its address holds one value only."""

    subject: str
    category: str
    key: str
    value: str
    alone: bool = False

    @property
    def words(self) -> str:
        """The name a message would use: the value, or the key where it says more (``dietary/vegan = true``)."""
        own = self.value if _LETTERS.search(self.value) and self.value not in ("true", "false") else ""
        named = self.key.replace("_", " ") if self.category in ("dietary", "medication") else own
        return _ARTICLE.sub("", named)


def known_values(believed: Iterable[Fact | Candidate]) -> list[KnownValue]:
    """Return the attributes among *believed*, each once, without those that were retracted."""
    found: dict[KnownValue, None] = {}
    for one in believed:
        if one.kind != "attribute":
            continue
        alone = isinstance(one, Fact) and one.cardinality != "multi"
        known = KnownValue(one.subject, one.category, one.key, one.value, alone)
        if isinstance(one, Candidate) and one.op == "retract":
            found = {
                other: None
                for other in found
                if (other.subject, other.category, other.key) != (one.subject, one.category, one.key)
                or (one.value and other.value != one.value)
            }
        else:
            found[known] = None
    return list(found)


def find_endings(
    message: Message,
    extracted: Iterable[Candidate],
    believed: Iterable[KnownValue],
    *,
    others: Mapping[str, str] | None = None,
    language_code: str | None = None,
) -> list[Candidate]:
    """
    Return a retraction for each known value that *message* ends, in the order of the words.

    Args:
        message: one message; nothing is found in any role but ``user``.
        extracted: the claims of the rules; an address that they wrote to is left alone.
        believed: from `known_values`.
        others: names and relations, each with its subject.
        language_code: ISO 639-1, when detection should not decide.
    """
    if message.role != "user":
        return []
    content = message.content[:MAX_READ_CHARS]
    rules = _language(content, language_code)
    if rules is None or not rules.ended:
        return []
    lowered = content.casefold()
    stated = [c for c in extracted if c.op == "assert" and c.modality == "asserted"]
    said = {(c.subject, c.category, c.value.casefold()) for c in stated}
    replaced = {(c.subject, c.category, key) for c in stated for key in (c.key, "")}
    wanted = [one for one in believed if len(one.words) >= _LEAST_CHARS and one.words.casefold() in lowered]
    wanted = [
        one
        for one in wanted
        if (one.subject, one.category, one.value.casefold()) not in said
        and not (one.alone and (one.subject, one.category, "" if one.category == "dietary" else one.key) in replaced)
    ]
    if not wanted:
        return []
    text = masked(content, rules)
    found = [
        ended
        for span in split_pieces(text, MAX_TEXT_CHARS)
        for one in wanted
        if (ended := _in_sentence(rules, message, span.of(text), span.start, one, others or {})) is not None
    ]
    return sorted(found, key=lambda candidate: candidate.start)


def _language(content: str, code: str | None) -> PatternLanguage | None:
    codes = [code] if code else [*likely_languages(content), "en"]
    return next((rules for rules in map(load_language, codes) if rules is not None and rules.ended), None)


def _in_sentence(
    rules: PatternLanguage, message: Message, sentence: str, offset: int, one: KnownValue, others: Mapping[str, str]
) -> Candidate | None:
    if one.words.casefold() not in sentence.casefold():
        return None
    names = tuple(sorted(name for name, subject in others.items() if subject == one.subject))
    switched = _switched(rules, message, sentence, offset, one)
    if switched is not None:
        return switched
    for expression in _expressions(rules.code, one.category, one.subject, one.words, names):
        for match in expression.finditer(sentence):
            if _meant(rules, sentence, match.start(), match.end()):
                span = offset + match.start(), offset + match.end()
                return _candidate(message, span, one, one.value, f"No longer: {one.words}.", ends=True)
    return None


def _meant(rules: PatternLanguage, sentence: str, start: int, end: int) -> bool:
    verdict = judge(rules, sentence, start, end, lead=False)
    asserted = verdict is not None and verdict.modality == "asserted" and verdict.weight == 1
    return asserted and BLANK not in sentence[start:end]


def _switched(
    rules: PatternLanguage, message: Message, sentence: str, offset: int, one: KnownValue
) -> Candidate | None:
    """Return the new value in "we went from Oslo to Bergen", when Oslo is the known one."""
    slot = rules.ended.get("slots", {}).get(f"{one.category}/{one.key}")
    if slot is None or not one.alone or one.subject != SELF:
        return None
    for expression in _switches(rules.code, one.words):
        for match in expression.finditer(sentence):
            new = read_at(rules, PatternSlot(slot[0], slot[0], False), sentence, match.end(), lower_case=False)
            if new is not None and _meant(rules, sentence, match.start(), new.end):
                span = offset + match.start(), offset + new.end
                return _candidate(message, span, one, new.value, slot[1].replace("{}", new.value), ends=False)
    return None


def _candidate(
    message: Message, span: tuple[int, int], one: KnownValue, value: str, text: str, *, ends: bool
) -> Candidate:
    return Candidate(
        kind="attribute",
        subject=one.subject,
        category=one.category,
        key=one.key,
        value=value,
        text=text,
        confidence=CONFIDENCE,
        seq=message.seq,
        quote=message.content[span[0] : span[1]],
        start=span[0],
        op="retract" if ends else "assert",
        join="",
        modality="negated" if ends else "asserted",
        lifetime="state",
        valid_from_ms=None,
        valid_to_ms=None,
        source=FACT_SOURCE,
    )


@lru_cache(maxsize=4096)
def _switches(code: str, words: str) -> tuple[re.Pattern[str], ...]:
    rules = load_language(code)
    assert rules is not None  # the caller found it
    macros = rules.ended["macro"] | {"v": "<v>"}
    sources = (_spelled(source, macros) for source in rules.ended["switch"]["find"])
    return tuple(re.compile(source.replace("<v>", _value(words)), re.IGNORECASE) for source in sources)


@lru_cache(maxsize=4096)
def _expressions(
    code: str, category: str, subject: str, words: str, names: tuple[str, ...]
) -> tuple[re.Pattern[str], ...]:
    """Compile the expressions that end *words* of that category and subject."""
    rules = load_language(code)
    assert rules is not None  # the caller found it
    return tuple(re.compile(source, re.IGNORECASE) for source in _sources(rules, category, subject, words, names))


def _sources(rules: PatternLanguage, category: str, subject: str, words: str, names: tuple[str, ...]) -> Iterator[str]:
    macros = rules.ended["macro"] | {"v": "<v>"}
    if subject != SELF:
        macros["who"] = macros["other"]
    macros.pop("other")
    known = "|".join(_literal(name) for name in sorted({*names, subject}))
    people = {"<v>": _value(words), "<names>": known, "<subject>": _literal(subject)}
    lists: Mapping[str, list[str]] = rules.ended["find"]
    for template in (*lists.get("any", ()), *lists.get(category, ())):
        if subject == SELF or "{who}" in template:
            # what people wrote comes last, in one pass: a brace of theirs is no hole, a "<v>" of theirs no value
            yield re.sub("<v>|<names>|<subject>", lambda hole: people[hole[0]], _spelled(template, macros))


def _value(words: str) -> str:
    return rf"(?<!\w)(?:{_literal(words)})(?:s|es)?(?!\w)"


def _literal(words: str) -> str:
    return r"\s+".join(map(re.escape, words.split()))


def _spelled(template: str, macros: Mapping[str, str]) -> str:
    source = template
    while "{" in re.sub(r"\{\d+(?:,\d*)?\}", "", source):
        source = re.sub(r"\{([a-z_]+)\}", lambda hole: macros[hole[1]], source)
    return re.sub(r" ", r"\\s+", source)
