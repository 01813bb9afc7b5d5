"""
Sentences about one tool become one sentence, without a model: "Uses Python", "Prefers Python over JavaScript".  Pure.

Only sentences of a few closed forms are read, whole; with any other word a sentence stays as it is.  Two that tell
different things of one tool are not joined either: later words may be meant to replace earlier ones.  English.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .compare import find_unfaithful

# A name: Python, C++, Node.js, PostgreSQL 15.
_TOOL = r"(?-i:[A-Z][\w.+#-]*[\w+#])(?: \d+(?:\.\d+)*)?"
_PART = r"(?:back-?end|front-?end|API)"
_USES = re.compile(
    rf"uses (?P<tool>{_TOOL})(?: with (?P<beside>{_TOOL}))?(?: for (?:(?:the|their) )?(?P<part>{_PART})(?: development)?)?",
    re.IGNORECASE,
)
_MADE_IN = re.compile(
    rf"(?:(?:the|their) )?(?P<part>{_PART}) is in (?P<tool>{_TOOL})(?: with (?P<beside>{_TOOL}))?",
    re.IGNORECASE,
)
_PREFERS = re.compile(rf"prefers (?P<tool>{_TOOL}) over (?P<less>{_TOOL})", re.IGNORECASE)
_NEXT = re.compile(r", (?:and )?(?=prefers |uses )", re.IGNORECASE)
_USER = re.compile(r"(?:the )?user (?=uses |prefers )", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Told:
    """What a sentence tells of a tool: what it is used with and for, and over what it is preferred; empty for nothing."""

    tool: str
    uses: bool = False
    beside: str = ""
    part: str = ""
    less: str = ""


def told_of(text: str) -> tuple[Told, ...]:
    """Return what a sentence tells of one tool, clause by clause; empty where any word of it says something else."""
    plain = _USER.sub("", text.strip()).rstrip(".")
    found = []
    for clause in _NEXT.split(plain):
        read = _USES.fullmatch(clause) or _MADE_IN.fullmatch(clause) or _PREFERS.fullmatch(clause)
        if read is None:
            return ()
        words = {name: word or "" for name, word in read.groupdict().items()}
        part = words.get("part", "")
        words["part"] = part if part.isupper() else part.lower()
        found.append(Told(**words, uses="less" not in words))
    return tuple(found) if len({one.tool for one in found}) == 1 else ()


def joined_text(sentences: Sequence[str]) -> str:
    """Return the one sentence that says all of them, and no other word; empty where there is none."""
    text = may_be_one(sentences)
    return "" if not text or find_unfaithful(text, sentences) else text


def may_be_one(sentences: Sequence[str]) -> str:
    """Return one sentence for those about one tool; empty where they are not, or where one may replace another."""
    parts = [told_of(sentence) for sentence in sentences]
    if not all(parts) or len({one.tool for told in parts for one in told}) != 1:
        return ""
    all_told = [one for told in parts for one in told]
    known = [_only(one.beside for one in all_told), _only(one.part for one in all_told if one.uses)]
    less = _only(one.less for one in all_told)
    if None in (*known, less) or not _are_of_one_use(all_told):
        return ""
    beside, part = known
    tool = all_told[0].tool
    used = f"Uses {tool}{beside and f' with {beside}'}{part and f' for {part} development'}"
    clauses = [used] if any(one.uses for one in all_told) else []
    text = ", ".join([*clauses, *([f"prefers {tool} over {less}"] if less else [])])
    stop = "." if all(sentence.rstrip().endswith(".") for sentence in sentences) else ""
    return text[:1].upper() + text[1:] + stop


def _are_of_one_use(told: Iterable[Told]) -> bool:
    """Whether no two tell of different uses: with one tool, and for one part that is not said to have it."""
    return len({(one.beside, one.part) for one in told if one.beside or one.part}) < 2


def _only(words: Iterable[str]) -> str | None:
    """Return the one word that is told; empty for none, ``None`` for several."""
    told = {word.casefold(): word for word in words if word}
    return next(iter(told.values()), "") if len(told) < 2 else None
