"""
A model's summary of a chunk, of several summaries, or of a conversation so far → what is stored of it.

The answer has labelled parts: ``SUMMARY``, ``THEMES``, ``CONCERNS``, ``ACTIONS``, of higher levels also
``PROGRESSION`` and ``CONNECTIONS``.  What is complete is kept, what is too long is cut at a sentence, and a
sentence with a number that nobody said goes; a refusal, an empty text or one in a language that nobody spoke is no
summary.  Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Sequence

from ..llm.protocol import Answer, BadAnswer
from ..text.sentences import split
from ..text.terms import language_of, likely_languages
from .answers import labelled, refused, said, says_nothing, unfenced, whole_sentences
from .draft import SummaryDraft

MAX_TEXT_CHARS, MAX_ROLLING_CHARS = 2_400, 4_000
MAX_ITEMS, MAX_ITEM_CHARS = 8, 200
LEAST_TEXT_CHARS = 10
SMALL = 31  # numbers up to it are counted, spelled or days; nobody has to have said them in digits
_TELLING_CHARS = 80  # with fewer, a text's language is a guess

PARTS = ("summary", "themes", "concerns", "actions", "progression", "connections", "episodes", "facts")
_OTHER_NAMES = {
    "progressions": "progression", "temporal progression": "progression", "temporal progressions": "progression",
    "recurring themes": "themes", "key themes": "themes", "theme": "themes", "long term concerns": "concerns",
    "concern": "concerns", "action": "actions", "connection": "connections", "recommendations": "actions",
    "actions and recommendations": "actions", "concerns and mood": "concerns", "text": "summary",
    "updated summary": "summary", "new summary": "summary", "rolling summary": "summary",
}  # fmt: skip
_SPLIT = re.compile(r"\s*(?:[;；\n]|(?<=[.!?])\s+[-*•])\s*")
_DIGITS = re.compile(r"\d+")
_GROUPED = re.compile(r"(?<=\d)[.,'\u00a0\u202f ](?=\d)")
_MARK = re.compile(r"^\s*(?:[-*•‣▪–]|\d{1,2}[.)])\s*")


def parts_of(text: str) -> dict[str, str]:
    """The labelled parts of an answer by name, whatever form it took; ``""`` holds what stood before the first."""
    inner = unfenced(text).strip()
    if inner.startswith("{"):
        found = _from_json(inner)
        if found:
            return found
    raw = labelled(inner, (*PARTS, *_OTHER_NAMES))
    parts: dict[str, str] = {}
    for name, part in raw.items():
        parts.setdefault(_OTHER_NAMES.get(name, name), part)
    return parts


def _from_json(text: str) -> dict[str, str]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(value, dict):
        return {}
    parts: dict[str, str] = {}
    for key, item in value.items():
        name = str(key).strip().lower().replace("_", " ")
        name = _OTHER_NAMES.get(name, name)
        if name in PARTS:
            parts[name] = "\n".join(map(str, item)) if isinstance(item, list) else str(item)
    return parts


def read_summary(
    answer: Answer, spoken: Sequence[str], *, exchanges: int, source: str, numbers: Collection[int] | None = None
) -> SummaryDraft:
    """
    The summary that an answer holds.

    Args:
        answer: what the model said.
        spoken: what it was about, text by text; the summary has to be in a language of theirs.
        exchanges: how many the summary covers.
        source: who wrote it.
        numbers: those that were said, where that is to be checked.

    Raises:
        BadAnswer: nothing of it can be used; the message says why.
    """
    whole = said(answer)
    parts = parts_of(whole.text)
    return draft_of(parts, spoken, exchanges=exchanges, source=source, cut=whole.cut, numbers=numbers)


def draft_of(
    parts: dict[str, str],
    spoken: Sequence[str],
    *,
    exchanges: int,
    source: str,
    cut: bool = False,
    numbers: Collection[int] | None = None,
) -> SummaryDraft:
    """As `read_summary`, of parts that were taken out of an answer."""
    named = [name for name in parts if name]
    text = parts.get("summary") or ("" if named else parts.get("", ""))
    last = not named or named[-1] == "summary"
    body = _said(_checked(text, spoken, MAX_TEXT_CHARS, cut=cut and last), numbers)
    if not body:
        raise BadAnswer("every sentence of the summary holds a number that nobody said")
    for name in ("progression", "connections"):
        part = _said(whole_sentences(parts.get(name, ""), MAX_TEXT_CHARS // 4, cut=False), numbers)
        body += f"\n{part}" if part and not says_nothing(part) else ""

    def listed(name: str) -> tuple[str, ...]:
        found = items(parts.get(name, ""), cut=cut and named[-1:] == [name])
        return tuple(item for item in found if not _invented(item, numbers))

    return SummaryDraft(
        text=body,
        themes=listed("themes"),
        concerns=listed("concerns"),
        actions=listed("actions"),
        exchanges=exchanges,
        source=source,
    )


def read_rolling(answer: Answer, spoken: Sequence[str], numbers: Collection[int] | None = None) -> str:
    """
    The text of one summary of a whole conversation.

    Raises:
        BadAnswer: nothing of it can be used; the message says why.
    """
    whole = said(answer)
    parts = parts_of(whole.text)
    text = _checked(parts.get("summary") or parts.get("", ""), spoken, MAX_ROLLING_CHARS, cut=whole.cut)
    kept = _said(text, numbers)
    if not kept:
        raise BadAnswer("every sentence of the summary holds a number that nobody said")
    return kept


def numbers_in(texts: Iterable[str]) -> frozenset[int]:
    """The numbers that stand in *texts* in digits, also those of a thousand written 1,000."""
    return frozenset(
        int(number)
        for text in texts
        for number in (*_DIGITS.findall(text), *_DIGITS.findall(_GROUPED.sub("", text)))
        if len(number) < 19
    )


def _said(text: str, numbers: Collection[int] | None) -> str:
    """*text* without the sentences that hold a number which is none of *numbers*."""
    if numbers is None or not _invented(text, numbers):
        return text
    kept = [span.of(text).strip() for span in split(text) if not _invented(span.of(text), numbers)]
    return " ".join(kept)


def _invented(text: str, numbers: Collection[int] | None) -> bool:
    return numbers is not None and any(n > SMALL and n not in numbers for n in numbers_in([text]))


def _checked(text: str, spoken: Iterable[str], most_chars: int, *, cut: bool) -> str:
    text = text.strip().strip('"').strip()
    if refused(text):
        raise BadAnswer("the model refused to summarise")
    kept = _once(whole_sentences(text, most_chars, cut=cut))
    if len(kept) < LEAST_TEXT_CHARS and (not kept or says_nothing(kept) or kept.isascii()):
        raise BadAnswer("the answer holds no summary" + (": it was cut off in its first sentence" if cut else ""))
    if says_nothing(kept):
        raise BadAnswer("the answer holds no summary")
    if foreign(kept, spoken):
        raise BadAnswer("the summary is in a language that nobody spoke")
    return kept


def _once(text: str) -> str:
    """Without lines that repeat the one before, as a model does that has lost its way."""
    lines = text.split("\n")
    return "\n".join(line for n, line in enumerate(lines) if not line or n == 0 or line != lines[n - 1])


def items(part: str, *, cut: bool = False) -> tuple[str, ...]:
    """The items of a list that was written with semicolons, or a line each."""
    found = [" ".join(_MARK.sub("", item).split()).strip(" .;") for item in _SPLIT.split(part)]
    found = [item for item in found if item and not says_nothing(item)]
    if cut and len(found) > 1:
        found = found[:-1]
    return tuple(dict.fromkeys(item[:MAX_ITEM_CHARS] for item in found[:MAX_ITEMS]))


def foreign(text: str, spoken: Iterable[str]) -> bool:
    """Whether *text* is in a language of none of *spoken*; False where either is too short to tell."""
    texts = [each for each in spoken if each]
    if len(text) < _TELLING_CHARS or sum(map(len, texts)) < _TELLING_CHARS:
        return False
    known = {code for each in texts for code in (language_of(each), *likely_languages(each))}
    known |= set(likely_languages("\n".join(texts)[:4000]))
    return language_of(text) not in known
