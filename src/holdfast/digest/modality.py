"""
Modality: whether the writer asserts a statement, or asks, supposes, reports or quotes it.

`judge` looks at the words around a match within its sentence, from which `authorship` has blanked what is not the
writer's own.  The cue words of each language are in its pattern file under ``[modality]``; the rules that use them
are here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from ..types import Modality
from .authorship import BLANK
from .grammar import PatternLanguage


@dataclass(frozen=True, slots=True)
class Verdict:
    """The modality of a match, and how much the words around it weaken it (1: not at all)."""

    modality: Modality
    weight: float = 1.0


@lru_cache(maxsize=32)
def cues(rules: PatternLanguage) -> dict[str, re.Pattern[str]]:
    """Return the compiled cue expressions of a language."""
    return {
        name: re.compile(_expanded(source, rules.modality), re.IGNORECASE) for name, source in rules.modality.items()
    }


def _expanded(source: str, table: Mapping[str, str]) -> str:
    """Expand a cue: line breaks are layout, a space is any white space, ``{lead}`` another cue."""
    whole = re.sub(r"\{([a-z_]+)\}", lambda hole: table[hole[1]], source)
    return re.sub(r"\s*\n\s*", "", whole.strip()).replace(" ", r"\s+")


def judge(
    rules: PatternLanguage, sentence: str, start: int, end: int, *, lead: bool = True, asked: bool = False
) -> Verdict | None:
    """
    Judge whether *sentence* asserts the match at characters *start* to *end*.

    None: the match is embedded in words that this cannot read ("the reason I live in …"), so nothing
    is claimed.  ``lead=False`` skips that test, for patterns that bind to no subject; ``asked=True`` takes words for true even inside a question
    ("where is my order #123?").
    """
    cue = cues(rules)
    before, after = sentence[:start], sentence[end:]
    if lead and not _leads(cue, before):
        return _embedded(cue, before)
    scope_start = _last(cue, "resets", before)
    scope = before[scope_start:]
    if _search(cue, "hypothetical", scope) and not _search(cue, "courtesy", scope):
        return Verdict("hypothetical")
    told_start = max(
        _new_clause(cue, sentence, scope_start, start), scope_start + scope.rfind(BLANK) + 1
    )  # a quotation ends a report
    if _is_report(cue, sentence, told_start, start) and not _search(cue, "trusted", before[told_start:]):
        return Verdict("reported")
    if _search(cue, "undone", after):
        return Verdict("hypothetical")
    if not asked and _asked(cue, sentence, start, end):
        return Verdict("question")
    weight = 0.7 if _search(cue, "hedge_after", after) or _search(cue, "hedge_before", before) else 1.0
    return Verdict("asserted", weight)


def _is_report(cue: dict[str, re.Pattern[str]], sentence: str, start: int, end: int) -> bool:
    """Whether a report begins between two places; its cue may look beyond: 说 is none before the name of a language."""
    pattern = cue.get("reported")
    return pattern is not None and any(found.end() <= end for found in pattern.finditer(sentence, start))


def _new_clause(cue: dict[str, re.Pattern[str]], sentence: str, start: int, end: int) -> int:
    """Return where the last clause begins that opens between two places; its cue may look beyond."""
    found = cue["new_clause"].finditer(sentence, start) if "new_clause" in cue else ()
    return max((min(one.end(), end) for one in found if one.start() < end), default=start)


def _leads(cue: dict[str, re.Pattern[str]], before: str) -> bool:
    """Whether a main clause may begin after *before*."""
    opening = before[_last(cue, "delimiter", before) :].strip(" \t\"'*_~" + BLANK)
    if not opening:
        return True
    lead = cue.get("lead")
    return bool(lead and len(opening) <= 80 and lead.fullmatch(opening))


def _embedded(cue: dict[str, re.Pattern[str]], before: str) -> Verdict | None:
    scope = before[_last(cue, "resets", before) :]
    if _search(cue, "reported", scope):
        return Verdict("reported")
    if _search(cue, "hypothetical", scope):
        return Verdict("hypothetical")
    return None


def _asked(cue: dict[str, re.Pattern[str]], sentence: str, start: int, end: int) -> bool:
    """Whether the match lies in the part of the sentence that asks."""
    asks = sentence.rstrip(" \t\"')*_" + BLANK).endswith(("?", "？"))
    opener = cue.get("question")
    if opener is None:
        return asks
    begin = _first_word(cue, sentence)  # "guess what" asks nothing
    asides = [found.span() for found in cue["aside"].finditer(sentence)] if "aside" in cue else []
    found = (one for one in opener.finditer(sentence, begin) if not any(at <= one.start() < to for at, to in asides))
    first = next(found, None)  # a relative pronoun asks nothing
    if first is None or not (asks or first.start() <= begin):
        return asks and not _search(cue, "tail_question", sentence[end:])
    if start < first.start():
        return False
    stated = cue["presupposed"].finditer(sentence) if "presupposed" in cue else ()
    return max((found.end() for found in stated if found.start() < start), default=0) <= first.end()


def _first_word(cue: dict[str, re.Pattern[str]], sentence: str) -> int:
    """Return where the first clause begins after words like "so" and "hi"."""
    lead = cue.get("lead")
    found = lead.match(sentence) if lead else None
    return found.end() if found else len(sentence) - len(sentence.lstrip())


def _search(cue: dict[str, re.Pattern[str]], name: str, text: str) -> bool:
    pattern = cue.get(name)
    return bool(pattern and pattern.search(text))


def _last(cue: dict[str, re.Pattern[str]], name: str, text: str) -> int:
    """Return the end of the last occurrence of cue *name* in *text*; 0 when there is none."""
    pattern = cue.get(name)
    place = 0
    if pattern:
        for found in pattern.finditer(text):
            place = found.end()
    return place
