"""
Of whom do the words speak, and are they the writer's own?  For claims that a model read.

A model that is careless, or was talked into it, takes "my boss lives in Lisbon" for the user's home,
a line of a pasted letter for the user's word, and what the assistant said for what the user meant.
All of it can be seen without a model: somewhere in what it was shown stand the words that make the
claim, and the sentence in which they stand tells who says them, of whom, and whether it is meant.  Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from ..scope import SELF
from ..text.sentences import pieces
from ..text.terms import likely_languages, terms
from ..types import Candidate, Message
from .grammar import MAX_TEXT_CHARS, Language, language
from .modality import BLANK, cues, judge, masked
from .vocabulary import folded

OTHER = "other"
# What is said of these people is also a fact about the user: that they have them.
OF_THE_USER = frozenset({"family", "pets", "contact", "emergency_contact"})
_MANY = 4096
_WORD = re.compile(r"\w+")
_BARE = frozenset({"true", "false", "yes", "no"})


@lru_cache(maxsize=_MANY)
def terms_of(text: str) -> frozenset[str]:
    """The words of *text* as they are compared: stemmed, without what every sentence holds."""
    return frozenset(terms(text[:20_000].replace("_", " ").replace(BLANK, " ")))


# How a model begins a sentence about the user; nobody said these words.
_OUR_WORDS = terms_of("the user users speaker says said states mentions mentioned told stated claims human person")
_USER = re.compile(r"^\W*(?:the )?(?:user|speaker)\b(?!['’]s)|^\W*(?:i|i'm|i've|we)\b", re.IGNORECASE)


def claimed_terms(candidate: Candidate) -> frozenset[str]:
    """The words that make the claim what it is: the value, or the key when the value only says yes or no."""
    if candidate.kind != "attribute":
        return terms_of(candidate.text) - _OUR_WORDS
    value = candidate.value or candidate.key
    return terms_of(candidate.key if value.casefold() in _BARE else value)


@lru_cache(maxsize=_MANY)
def language_of(text: str, code: str | None) -> Language | None:
    """The patterns for *text*: of *code*, else of the likeliest language that has any."""
    return next(filter(None, map(language, [code] if code else likely_languages(text[:2000]))), None)


def flaws(candidate: Candidate, message: Message, code: str | None = None) -> list[str]:
    """
    What speaks against each sentence that the claim quotes: a modality, `OTHER`, or nothing (``""``).

    Of several quoted sentences those count that hold the claim's words.
    """
    rules = language_of(message.content, code)
    if rules is None:
        return []
    claimed = claimed_terms(candidate)
    start, end = candidate.start, candidate.start + len(candidate.quote)
    quoted = [(at, one) for at, one in _own_sentences(message.content, rules) if at < end and at + len(one) > start]
    holding = [one for _, one in quoted if claimed & terms_of(one)]
    if holding:
        return [_flaw(one, candidate, claimed, rules) for one in holding]
    spans = [(one, max(0, start - at), min(len(one), end - at)) for at, one in quoted]
    return [_flaw_at(one, candidate, span, rules) for one, *span in spans]


def own_terms(candidate: Candidate, window: Sequence[Message], code: str | None = None) -> frozenset[str]:
    """The words of all sentences that hold words of the claim, and in which a user says them as true, and of whom it is about."""
    claimed, own = claimed_terms(candidate), frozenset[str]()
    for message in window:
        if message.role != "user" or not claimed & terms_of(message.content):
            continue
        rules = language_of(message.content, code)
        for _, one in _own_sentences(message.content, rules):
            if claimed & terms_of(one) and not (rules and _flaw(one, candidate, claimed, rules)):
                own |= terms_of(one)
    return own


def affirms(reply: str, question: str, code: str | None = None) -> bool:
    """Whether a short *reply* says yes to *question*, in a language whose words for that are known; else True."""
    found = [rules for rules in (language_of(reply, code), language_of(question, code)) if rules]
    known = [cues(rules)["affirms"] for rules in found if "affirms" in cues(rules)]
    return not known or any(cue.match(folded(reply)) for cue in known)


def hedged(text: str, code: str | None = None) -> bool:
    """Whether a sentence itself says that something is supposed or reported."""
    rules, plain = language_of(text, code), folded(text)
    verdict = judge(rules, plain, len(plain), len(plain), lead=False) if rules else None
    return verdict is not None and verdict.modality != "asserted"


@lru_cache(maxsize=256)
def _own_sentences(text: str, rules: Language | None) -> tuple[tuple[int, str], ...]:
    """``(start, sentence)`` of what the writer says as his own; the rest of a sentence is blanked."""
    own = masked(text, rules)
    spans = ((span.start, span.of(own)) for span in pieces(text, MAX_TEXT_CHARS))
    return tuple((at, one) for at, one in spans if one.strip(f"{BLANK} \n\t"))


def _flaw(sentence: str, candidate: Candidate, claimed: frozenset[str], rules: Language) -> str:
    """What speaks against every place at which the sentence holds words of the claim; empty when one of them is sound."""
    first = ""
    for start, end in _places(sentence, claimed):
        flaw = _flaw_at(sentence, candidate, (start, end), rules)
        if not flaw:
            return ""
        first = first or flaw
    return first


@lru_cache(maxsize=_MANY)
def _places(sentence: str, claimed: frozenset[str]) -> tuple[tuple[int, int], ...]:
    whole = (0, len(sentence))
    found = (word.span() for word in _WORD.finditer(folded(sentence)) if claimed & terms_of(word.group()))
    return tuple(found) or (whole,)


def _flaw_at(sentence: str, candidate: Candidate, place: Sequence[int], rules: Language) -> str:
    start, end = place
    verdict = judge(rules, folded(sentence), start, end, lead=False, asked=candidate.category == "account")
    if verdict is not None and verdict.modality != "asserted":
        return verdict.modality
    if candidate.subject != SELF:
        return ""
    cue = cues(rules)
    subject = _subject_before(cue, folded(sentence).replace("\n", " "), start or end) if "other" in cue else ""
    return OTHER if subject and not _fits(subject, candidate, cue) else ""


def _subject_before(cue: Mapping[str, re.Pattern[str]], sentence: str, place: int) -> str:
    """The words that name another as the subject nearest before *place*; empty when it is the writer, or nobody."""
    other, writer = cue["other"], cue["writer"]
    nearest = _last(other.finditer(sentence, 0, place))
    if nearest is None and not writer.search(sentence):
        nearest = other.search(sentence)  # "in Lisbon lives my boss"
    if nearest is None or any(found.start() >= nearest.start() for found in writer.finditer(sentence, 0, place)):
        return ""
    return nearest.group()


def _last(found: Iterator[re.Match[str]]) -> re.Match[str] | None:
    return max(found, key=lambda one: one.start(), default=None)


def _fits(subject: str, candidate: Candidate, cue: Mapping[str, re.Pattern[str]]) -> bool:
    """Whether the claim may be made although *subject* is another: it is the claim's topic, or the claim names it."""
    words = subject.split()
    named = terms_of(" ".join(words[:-1]) or subject)  # the last one is the verb
    if candidate.kind != "attribute":
        return bool(named & terms_of(candidate.text)) and not _USER.match(candidate.text)
    if candidate.category in OF_THE_USER:
        return not ("possesses" in cue and cue["possesses"].search(words[-1]))
    if candidate.category == "appointment" and named & terms_of(candidate.key):
        return True  # "the dentist is on Monday"
    if candidate.category == "identity" or cue["person"].search(subject):
        return False
    about = terms_of(f"{candidate.category} {candidate.key}") | claimed_terms(candidate)
    return bool(named & about)  # "the budget is …", "Porto is home now"
