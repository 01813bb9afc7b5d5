"""
Grounding: is the quote really in the message, are the words the user's own, and do they say the claim?

Every candidate passes `ground`, whether the rules or a model found it.  A model's claims pass `verify_claim`
before: rules that know the language see whether the words suppose, report or ask, are about someone else, or
come from another speaker, a quotation or the prompt, and whether each number was said.  A rejection is a stable
code, a colon, and words for users.  Pure.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from ..clock import from_ms
from ..scope import SELF
from ..text.dates import find_times
from ..text.sentences import split_pieces, split_sentences
from ..text.terms import fold_quotes, likely_languages, terms
from ..types import Candidate, Evidence, Message
from .answers import MAX_SMALL_NUMBER, numbers_in
from .grammar import MAX_TEXT_CHARS, PatternLanguage, load_language
from .modality import BLANK, cues, judge, masked, own_words

NO_QUOTE = "no-quote: the candidate gives no words that it rests on"
NOT_IN_WINDOW = "not-in-window: the message it names was not among those read"
NOT_SAID_BY_USER = "not-said-by-user: the words stand in a message of role {role}"
NOT_THERE = "quote-not-found: the quoted words do not stand in that message"
AMBIGUOUS = "quote-ambiguous: the quoted words stand there {count} times, and the place given is none of them"
QUOTED = "not-own-words: the words stand inside a quotation, code, a link or pasted text"
INJECTED = "injected: the words were put into the prompt by the memory itself"
NOT_ASSERTED = "not-asserted: the words are {modality}"
LOW_CONFIDENCE = "low-confidence: {confidence:.2f} is below {least:.2f}"
INCOMPLETE = "incomplete: a fact needs a subject, a category, a key and a value"
MIN_INJECTED_CHARS = 12  # shorter lines ("ok", a name) are said by everybody


def ground(
    candidates: Iterable[Candidate],
    messages: Mapping[int, Message],
    *,
    min_confidence: float,
    injected: Collection[str] = (),
) -> tuple[list[tuple[Candidate, Evidence]], list[tuple[Candidate, str]]]:
    """
    Split *candidates* into grounded ones with their evidence and rejected ones with the reason.

    Args:
        candidates: in the order in which they shall be applied; the order is kept.
        messages: the window that was read, by message number.
        min_confidence: from 0 to 1; what is below is refused.
        injected: lines that the memory itself put into the prompt; text that repeats one is no evidence.

    Returns:
        ``(grounded, rejected)``.  A wrong ``start`` is mended when the quote occurs in the message
        exactly once.
    """
    grounded: list[tuple[Candidate, Evidence]] = []
    rejected: list[tuple[Candidate, str]] = []
    own_texts: dict[int, str] = {}
    lines = frozenset(_normal_line(line) for line in injected if len(_normal_line(line)) >= MIN_INJECTED_CHARS)
    for candidate in candidates:
        message = messages.get(candidate.seq)
        reason = _unfit(candidate, message, min_confidence)
        start = candidate.start
        if not reason and message is not None:
            start, reason = _place(candidate, message)
        if not reason and message is not None:
            if candidate.seq not in own_texts:
                own_texts[candidate.seq] = own_words(message.content)
            reason = _foreign(candidate, message, own_texts[candidate.seq], start, lines)
        if reason or message is None:
            rejected.append((candidate, reason))
        else:
            mended = candidate if start == candidate.start else replace(candidate, start=start)
            grounded.append((mended, _evidence(mended, message)))
    return grounded, rejected


def _unfit(candidate: Candidate, message: Message | None, min_confidence: float) -> str:
    """Return why the candidate fails whatever the message says; empty when it may pass."""
    if message is None:
        return NOT_IN_WINDOW
    if message.role != "user":
        return NOT_SAID_BY_USER.format(role=message.role)
    if not candidate.quote.strip():
        return NO_QUOTE
    addressed = candidate.kind != "attribute" or candidate.op == "retract" or (candidate.key and candidate.value)
    if not candidate.subject or not candidate.category or not addressed:
        return INCOMPLETE
    if candidate.modality != "asserted" and not (candidate.modality == "negated" and candidate.op == "retract"):
        return NOT_ASSERTED.format(modality=candidate.modality)
    if not candidate.confidence >= min_confidence:  # also refuses NaN
        return LOW_CONFIDENCE.format(confidence=candidate.confidence, least=min_confidence)
    return ""


def _place(candidate: Candidate, message: Message) -> tuple[int, str]:
    """Return the start of the quote, or the reason why it cannot be found."""
    quote, content = candidate.quote, message.content
    if candidate.start >= 0 and content.startswith(quote, candidate.start):
        return candidate.start, ""
    first = content.find(quote)
    if first < 0:
        return -1, NOT_THERE
    if content.find(quote, first + 1) >= 0:
        return -1, AMBIGUOUS.format(count=content.count(quote))
    return first, ""


def _foreign(candidate: Candidate, message: Message, own: str, start: int, injected: Collection[str]) -> str:
    """Return why the words at *start* are not the user's own; empty when they are."""
    end = start + len(candidate.quote)
    blanked = own.count(BLANK, start, end) - message.content.count(BLANK, start, end)
    letters = sum(ch.isalnum() for ch in own[start:end])
    if blanked and (not letters or blanked * 2 > len(candidate.quote)):
        return QUOTED
    if injected and any(line in injected for line in _lines_around(message.content, start, end)):
        return INJECTED
    return ""


def _lines_around(content: str, start: int, end: int) -> list[str]:
    """Return the quote and each line that it touches, normalized like `injected` lines."""
    first = content.rfind("\n", 0, start) + 1
    last = content.find("\n", end)
    block = content[first : len(content) if last < 0 else last]
    return [_normal_line(content[start:end]), *(_normal_line(line) for line in block.split("\n"))]


def _normal_line(line: str) -> str:
    """Normalize a line: without case, list marks, JSON quotes and surrounding white space."""
    return " ".join(fold_quotes(line).casefold().split()).strip("-*•\"' ,.")


def _evidence(candidate: Candidate, message: Message) -> Evidence:
    start = candidate.start
    return Evidence(
        conversation=message.conversation,
        seq=message.seq,
        role=message.role,
        quote=candidate.quote,
        start=start,
        end=start + len(candidate.quote),
        at=message.at,
    )


MAX_PLACES = 20
_SAME = {
    "‘": "'", "’": "'", "‚": "'", "‛": "'", "`": "'", "´": "'", "′": "'",
    "“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "「": '"', "」": '"', "『": '"', "』": '"',
    "–": "-", "—": "-", "‐": "-", "‑": "-", "−": "-", "…": "...",
}  # fmt: skip
_INVISIBLE = frozenset("\u200b\u200c\u200d\u2060\ufeff\u00ad\ufe0e\ufe0f")
_EDGES = " \t\"'.,;:!?。，、！？…*_"


def locate_quote(quote: str, content: str) -> tuple[int, int] | None:
    """
    Return ``(start, end)`` of *quote* in *content*; ``None`` when it is absent or holds no word.

    Of several places the first is taken that is the writer's own talk, else the first.
    """
    quote = quote.strip()
    if not any(ch.isalnum() for ch in quote):
        return None
    return _in_own_words([(at, at + len(quote)) for at in _find_all(quote, content)], content) or _folded(
        quote, content
    )


def _folded(quote: str, content: str) -> tuple[int, int] | None:
    wanted = "".join(_fold_with_places(quote)[0]).strip(_EDGES)
    if not any(ch.isalnum() for ch in wanted):
        return None
    characters, at = _fold_with_places(content)
    text = "".join(characters)
    found = []
    for start in _find_all(wanted, text):
        end = start + len(wanted)
        if _within_word(text, start, end):
            continue
        found.append((at[start], at[end - 1] + 1))
    return _in_own_words(found, content)


def _find_all(needle: str, text: str) -> list[int]:
    places: list[int] = []
    at = text.find(needle)
    while at >= 0 and len(places) < MAX_PLACES:
        places.append(at)
        at = text.find(needle, at + 1)
    return places


def _in_own_words(spans: list[tuple[int, int]], content: str) -> tuple[int, int] | None:
    if len(spans) < 2:
        return spans[0] if spans else None
    own = _masked(content)
    return next((span for span in spans if BLANK not in own[span[0] : span[1]]), spans[0])


@lru_cache(maxsize=64)
def _masked(content: str) -> str:
    return masked(content)


def _within_word(text: str, start: int, end: int) -> bool:
    """Whether the span begins or ends inside a word, in scripts with spaces."""

    def joined(left: str, right: str) -> bool:
        return left.isascii() and right.isascii() and left.isalnum() and right.isalnum()

    before = start > 0 and joined(text[start - 1], text[start])
    return before or (end < len(text) and joined(text[end - 1], text[end]))


def _fold_with_places(text: str) -> tuple[list[str], list[int]]:
    """Return the folded characters of *text*, and the place of each in *text*."""
    out: list[str] = []
    at: list[int] = []
    for place, char in enumerate(text):
        if char in _INVISIBLE:
            continue
        if char.isspace():
            if out and out[-1] != " ":
                out.append(" ")
                at.append(place)
            continue
        for piece in _SAME.get(char) or unicodedata.normalize("NFKC", char).casefold():
            out.append(" " if piece.isspace() else piece)
            at.append(place)
    return out, at


SUPPOSED = "not-asserted: by the words around them the words are {modality}"
OF_OTHERS = "about-someone-else: the words are about another person, and the claim is about the user"
BY_OTHERS = "said-by-others: what is claimed stands in what another says or is quoted with, not in the user's own words"
NUMBER = "number-not-said: the claim holds a number that the message does not"

_DIGITS = re.compile(r"\d+")
_YES_CHARS = 60


def verify_claim(
    candidate: Candidate,
    message: Message,
    before: Message | None,
    window: Sequence[Message],
    believed: Collection[str] = (),
    code: str | None = None,
) -> str:
    """
    Return why a model's claim is not what the words say; empty when no rule objects.

    Args:
        candidate: with its quote at its place in *message*.
        message: the user's message that it quotes.
        before: the message directly before that one.
        window: all messages that the model saw.
        believed: what else it was shown: known facts, which are no news.
        code: the language (ISO 639-1), when detection should not decide.
    """
    if candidate.modality == "asserted":
        found = find_flaws(candidate, message, code)
        if found and all(found):
            return OF_OTHERS if OTHER in found else SUPPOSED.format(modality=found[0])
    if _from_others(candidate, message, before, window, believed, code):
        return BY_OTHERS
    invented = candidate.op == "assert" and _invents_number(candidate, message, before)
    return NUMBER if invented else ""


def _from_others(
    candidate: Candidate,
    message: Message,
    before: Message | None,
    window: Sequence[Message],
    believed: Collection[str],
    code: str | None,
) -> bool:
    """Whether words of the claim come from others than a user; a question may lend them."""
    said = claimed_terms(candidate)
    shown = [m.content for m in window] + [message.content] + ([before.content] if before else [])
    if candidate.op == "assert":
        shown += believed
    seen = said.intersection(frozenset[str]().union(*map(terms_of, shown)))
    foreign = seen - own_terms(candidate, [*window, message], code) if seen else seen
    if not foreign or 2 * len(foreign) < len(seen):
        return False
    return before is None or before.role == "user" or not _lent_by_question(candidate, message, before, foreign, code)


def _lent_by_question(
    candidate: Candidate, message: Message, before: Message, words: frozenset[str], code: str | None
) -> bool:
    """Whether a question holds *words* and the user's short reply accepts them."""
    last = [span.of(before.content) for span in split_sentences(before.content[-400:])][-1:]
    asked = last[0] if last and last[0].rstrip("\"')*_ ").endswith(("?", "？")) else ""
    if not asked or len(message.content) > _YES_CHARS or not words <= terms_of(asked):
        return False
    denied = candidate.op == "retract" or candidate.value.casefold() in ("false", "no")
    return denied or is_affirmation(message.content, asked, code)


def _invents_number(candidate: Candidate, message: Message, before: Message | None) -> bool:
    """Whether the claim holds a number that neither message names, in digits or in words."""
    wanted = [int(number) for number in _DIGITS.findall(candidate.value or candidate.text) if len(number) < 19]
    if not wanted:
        return False
    known = numbers_said(message) | (numbers_said(before) if before is not None else frozenset())
    spelled = not _DIGITS.search(message.content)
    return any(
        number not in known and not (number <= MAX_SMALL_NUMBER or (spelled and number <= 100)) for number in wanted
    )


def numbers_said(message: Message) -> frozenset[int]:
    """Return the numbers of a message: digits, thousands, and those of the dates it names."""
    text = message.content
    known = set(numbers_in([text]))
    known |= {1000 * number for number in known}  # "5k", "5 thousand"
    if message.at is not None and message.at.tzinfo is not None:
        known |= {message.at.year + more for more in (-1, 0, 1)} | {message.at.month, message.at.day}
        for code in likely_languages(text[:400])[:1]:
            for span in find_times(text[:2000], message.at, code):
                known |= _date_numbers(span.from_ms) | _date_numbers(span.to_ms - 1)
    return frozenset(known)


def _date_numbers(at_ms: int) -> set[int]:
    at = from_ms(at_ms)
    return {at.year, at.month, at.day, at.hour, at.minute}


OTHER = "other"
# What is said of these people is also a fact about the user: that they have them.
OF_THE_USER = frozenset({"family", "pets", "contact", "emergency_contact"})
_CACHE_SIZE = 4096
_WORD = re.compile(r"\w+")
_BARE = frozenset({"true", "false", "yes", "no"})


@lru_cache(maxsize=_CACHE_SIZE)
def terms_of(text: str) -> frozenset[str]:
    """Return the words of *text* for comparison: stemmed, without stop words."""
    return frozenset(terms(text[:20_000].replace("_", " ").replace(BLANK, " ")))


# How a model begins a sentence about the user; nobody said these words.
_OUR_WORDS = terms_of("the user users speaker says said states mentions mentioned told stated claims human person")
_USER = re.compile(r"^\W*(?:the )?(?:user|speaker)\b(?!['’]s)|^\W*(?:i|i'm|i've|we)\b", re.IGNORECASE)


def claimed_terms(candidate: Candidate) -> frozenset[str]:
    """Return the deciding words of a claim: its value, or its key when the value is yes or no."""
    if candidate.kind != "attribute":
        return terms_of(candidate.text) - _OUR_WORDS
    value = candidate.value or candidate.key
    return terms_of(candidate.key if value.casefold() in _BARE else value)


@lru_cache(maxsize=_CACHE_SIZE)
def patterns_for(text: str, code: str | None) -> PatternLanguage | None:
    """Return the patterns of *code*, or of the likeliest language of *text* that has any."""
    return next(filter(None, map(load_language, [code] if code else likely_languages(text[:2000]))), None)


def find_flaws(candidate: Candidate, message: Message, code: str | None = None) -> list[str]:
    """
    Return the flaw of each sentence that the claim quotes: a modality, `OTHER`, or none (``""``).

    Of several quoted sentences those count that hold the claim's words.
    """
    rules = patterns_for(message.content, code)
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
    """Return the words of the sentences that a user states as true and that share words with the claim."""
    claimed, own = claimed_terms(candidate), frozenset[str]()
    for message in window:
        if message.role != "user" or not claimed & terms_of(message.content):
            continue
        rules = patterns_for(message.content, code)
        for _, one in _own_sentences(message.content, rules):
            if claimed & terms_of(one) and not (rules and _flaw(one, candidate, claimed, rules)):
                own |= terms_of(one)
    return own


def is_affirmation(reply: str, question: str, code: str | None = None) -> bool:
    """Whether a short *reply* says yes to *question*; True in languages without a list of such words."""
    found = [rules for rules in (patterns_for(reply, code), patterns_for(question, code)) if rules]
    known = [cues(rules)["affirms"] for rules in found if "affirms" in cues(rules)]
    return not known or any(cue.match(fold_quotes(reply)) for cue in known)


def is_hedged(text: str, code: str | None = None) -> bool:
    """Whether a sentence marks its content as supposed or reported."""
    rules, plain = patterns_for(text, code), fold_quotes(text)
    verdict = judge(rules, plain, len(plain), len(plain), lead=False) if rules else None
    return verdict is not None and verdict.modality != "asserted"


@lru_cache(maxsize=256)
def _own_sentences(text: str, rules: PatternLanguage | None) -> tuple[tuple[int, str], ...]:
    """Return ``(start, sentence)`` of the writer's own words; the rest of a sentence is blanked."""
    own = masked(text, rules)
    spans = ((span.start, span.of(own)) for span in split_pieces(text, MAX_TEXT_CHARS))
    return tuple((at, one) for at, one in spans if one.strip(f"{BLANK} \n\t"))


def _flaw(sentence: str, candidate: Candidate, claimed: frozenset[str], rules: PatternLanguage) -> str:
    """Return the flaw of all places with words of the claim; empty when one of them is sound."""
    first = ""
    for start, end in _claim_places(sentence, claimed):
        flaw = _flaw_at(sentence, candidate, (start, end), rules)
        if not flaw:
            return ""
        first = first or flaw
    return first


@lru_cache(maxsize=_CACHE_SIZE)
def _claim_places(sentence: str, claimed: frozenset[str]) -> tuple[tuple[int, int], ...]:
    whole = (0, len(sentence))
    found = (word.span() for word in _WORD.finditer(fold_quotes(sentence)) if claimed & terms_of(word.group()))
    return tuple(found) or (whole,)


def _flaw_at(sentence: str, candidate: Candidate, place: Sequence[int], rules: PatternLanguage) -> str:
    start, end = place
    verdict = judge(rules, fold_quotes(sentence), start, end, lead=False, asked=candidate.category == "account")
    if verdict is not None and verdict.modality != "asserted":
        return verdict.modality
    if candidate.subject != SELF:
        return ""
    cue = cues(rules)
    subject = _subject_before(cue, fold_quotes(sentence).replace("\n", " "), start or end) if "other" in cue else ""
    return OTHER if subject and not _fits(subject, candidate, cue) else ""


def _subject_before(cue: Mapping[str, re.Pattern[str]], sentence: str, place: int) -> str:
    """Return the nearest subject before *place* that names another; empty for the writer or none."""
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
    """Whether the claim may be made of another *subject*: it is the claim's topic, or the claim names it."""
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
