"""
The second look at what a model claims: do the user's own words say it?

Rules judge the clause that holds the claim's words: whether it supposes, reports, asks, only wants or is about someone else, whether
the words come from another speaker or a quotation, and whether each number was said.  They refuse what they can name and nothing
else: what a request mentions in passing is stated, and a short reply takes the words of the question that it answers.  Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property

from ..scope import SELF
from ..text import dataclass, expression, remembered
from ..text.dates import date_words
from ..text.sentences import split_pieces, split_sentences
from ..text.terms import fold_quotes, language_of, likely_languages, terms
from ..types import Candidate, Fact, FactKind, Message
from .answers import MAX_SMALL_NUMBER, numbers_in
from .authorship import BLANK, masked
from .clauses import clause_reader, hangs_on_luck, judge, only_intends
from .grammar import FALLBACK, MAX_TEXT_CHARS, PatternLanguage, cues, english_cue, load_language, opposites
from .slots import numbers_said, stated_numbers
from .speakers import question_of

SUPPOSED = "not-asserted: by the words around them the words are {modality}"
WANTED = "not-asserted: the words say what is wanted or planned, and the claim says that it is so"
OF_OTHERS = "about-someone-else: the words are about another person, and the claim is about the user"
BY_OTHERS = "said-by-others: what is claimed stands in what another says or is quoted with, not in the user's own words"
NUMBER = "number-not-said: the claim holds a number that the message does not"

OTHER, WISH = "other", "wish"
# What is said of these people is also a fact about the user: that they have them.
OF_THE_USER = frozenset({"family", "pets", "contact", "emergency_contact"})
# What these hold is wanted, planned or felt, so that words of wanting state it.
OF_WISHES = frozenset(
    "goal plan preference favourite favorite communication budget trip travel destination destinations itinerary appointment schedule event wish wishlist "
    "project context shopping interest life history".split()
)
_WISHED = expression(
    r"want|plan|goal|wish|hope|hoping|consider|interest|learn|look|intend|need|prefer|like|train|sav|dream|try|apply"
)

# What happens in a user's life often has a thing for its subject: "the party was lovely".
HAPPENINGS = frozenset("life event appointment trip travel schedule project history".split())
_OPINIONS = frozenset({"preference", "favorite", "favourite", "interest"})
_THING = expression(
    r"\W*(?:(?:and|but|so|y|und|et) )?(?:the|this|that|el|la|los|las|der|die|das|le|les)\b", re.IGNORECASE
)

_SOMEBODY = expression(r"\W*(?:they|ellos|ils|elles|eles|loro|他们)\b", re.IGNORECASE)  # whoever arranges such things
_PAID = frozenset({"finance", "work", "budget", "project"})
HAVE_PARTS = frozenset(("tech", "technical", "project", "possession", "account"))
_SHORT_SUBJECT = expression(r"(?:he|she|they|it)\b", re.IGNORECASE)
_OF_TALK = frozenset(("communication", "pronouns"))  # "you can switch back to English", "I use they/them"
_BORN = expression(r"birth|born")

_DIGITS = expression(r"\d+")
_MEASURED = expression(
    r"\d\s?(?:mg|mcg|µg|g|ml|kg|iu|mmol|%|€|\$|£)(?!\w)|[€$£]\s?\d", re.IGNORECASE
)  # said to the digit
_REPLY_CHARS = 60
_WIDE = 0x0E00  # scripts without spaces between words, and Korean with its particles
_MAX_IN_PASSING = 6  # words between "my" and what is mentioned in passing
_CACHE_SIZE = 4096
_WORD = expression(r"\w+")
_STAMP = expression(r"\b\d{4}-\d\d-\d\d\b")
_CLOCK = expression(r"(\d{1,2})(?:am|pm|h|uhr|点|點|時|시)")
_BARE = frozenset({"true", "false", "yes", "no"})
_CLOSES = expression(r"[,;:.!?…)]")
_BREAKS = expression(r"[,;:.!?]")
_DOINGS = frozenset(("schedule", "plan", "trip", "goal", "hobby", "appointment", "project"))
_SUPPLEMENT = expression(r"^vitamin |(?<=\w) supplements?$")
_BRANDS = frozenset(("possession", "tech"))
_WHERE_WRITER = expression(r"(?:['’]s)?(?: is| was) (?:where|what) (?:i|we)\b| es donde \w+|(?: ist)?,* wo ich\b", re.I)
_TO_COME = frozenset("new next future neue neuen neuer neues nuevo nueva nouveau nouvelle nuovo nuova".split())
_WITH_ME = expression(r"\b(?:with (?:me|us)|(?:bei|mit) (?:mir|uns)|conmigo|con nosotros|avec (?:moi|nous))\b", re.I)
_LEAST_CHARS = 3
_LETTERS = expression(r"[^\W\d_]{2}")
_ARTICLE = expression(r"^(?:the|an?|my|our) ", re.IGNORECASE)
NO_THING = frozenset(
    "time times hour hours minute minutes day days week weeks month months year years lot lots bit thing things people person something someone anything everything home work life way been "
    "kind sort part place problem problems trouble issue issues difficulty good well much more less most fun well-being family friends child children account membership subscription school room".split()
)
_PART_OF_NAME = frozenset(
    "plus premium pro max free prime one old new".split()
)  # says nothing without the word before it
_UNITS = (
    "mg g kg mcg µg ug ml l cl dl iu mmol km m cm mm mi mile ft feet inch lb lbs oz pound stone percent eur euro usd dollar gbp chf "
    "hour minute week month year day time o'clock am pm uhr h min s sec second tablet pill drop year-old "
    "since until till ago seit bis desde hasta hace depuis jusque desde até fa 한다고 했다고 는다고 간다고 라고 있다 없다 이다 된다 에게 에서 으로 하고 하기 해서 려고"
)


def verify_claim(
    candidate: Candidate,
    message: Message,
    before: Message | None,
    window: Sequence[Message],
    known: Sequence[Fact] = (),
    code: str | None = None,
) -> str:
    """
    Return why a model's claim is not what the words say; empty when no rule objects.

    Args:
        candidate: with its quote at its place in *message*.
        message: the user's message that it quotes.
        before: the message directly before that one.
        window: all messages that the model saw.
        known: the facts that are believed already.
        code: the language (ISO 639-1), when detection should not decide.
    """
    if candidate.modality != "asserted":
        return ""  # the model says so itself
    found = find_flaws(candidate, message, code)
    stated = _answers_wish(candidate, message) or _asks_for_oneself(candidate, message, found)
    stated = stated or (OTHER in found and _names_old_value(candidate, message, known))
    ruled = set(found) == {"reported"} and _is_ruled(candidate, message, window, known)
    short = candidate.subject == SELF and _says("elliptic", candidate.quote, FALLBACK)  # "a vegan menu, because I am"
    stated = stated or ruled or short or _tells_of_oneself(candidate, message, found)
    if found and all(found) and not stated:
        return OF_OTHERS if OTHER in found else WANTED if WISH in found else SUPPOSED.format(modality=found[0])
    if candidate.op == "retract" and _names_known(candidate, known):
        return ""
    if not stated and _from_others(candidate, message, before, window, known, code):
        return BY_OTHERS
    invented = candidate.op == "assert" and _invents_number(candidate, message, before, window, known)
    return NUMBER if invented else ""


def _is_ruled(candidate: Candidate, message: Message, window: Sequence[Message], known: Iterable[Fact]) -> bool:
    """Whether the words are a rule of a person who may set it, as facts or introductions say: "Marta says no running"."""
    cue = cues(rules) if (rules := load_language(FALLBACK)) else {}
    end = candidate.start + len(candidate.quote)
    found = [one["name"] for one in cue["rules_of"].finditer(message.content[:end])] if cue and candidate.value else []
    if not found:
        return False
    name, who = re.escape(found[-1]), cue["authority"].pattern
    facts = (
        f"{f.category} {f.key} {f.value}".replace("_", " ") for f in known if found[-1].casefold() in terms_of(f.value)
    )
    said = " | ".join(one.content for one in (*window, message) if one.role == "user")
    introduced = rf"{who}(?: is|,)? \(?{name}\b|\b{name},? \(?(?:my|our|the) (?:\w+ )?{who}"
    return any(cue["authority"].search(one) for one in facts) or re.search(introduced, said, re.I) is not None


def _tells_of_oneself(candidate: Candidate, message: Message, found: Sequence[str]) -> bool:
    """Whether another reports of themselves, which is how one knows of them: "She says the end of March"."""
    if set(found) != {"reported"} or candidate.subject == SELF or not (rules := patterns_for(message.content, None)):
        return False
    cue, quote = cues(rules), fold_quotes(candidate.quote)
    told = cue["reported"].search(quote) if "name_ahead" in cue else None
    if told is None or cue["other"].search(quote, told.end()) or cue["name_ahead"].search(quote, told.end()):
        return False
    who = " ".join(told[0].casefold().split()[:-1])
    return _SHORT_SUBJECT.fullmatch(who) is not None or who.removeprefix("my ") == candidate.subject.replace("-", " ")


def _names_old_value(candidate: Candidate, message: Message, known: Iterable[Fact]) -> bool:
    """Whether the words name what the address held before: "Nara is off, Osaka instead" after "Kyoto, Nara"."""
    if candidate.kind != "attribute" or candidate.category in ("family", "pets", "identity"):
        return False
    here = (
        f for f in known if (f.subject, f.category, f.key) == (candidate.subject, candidate.category, candidate.key)
    )
    return any(terms_of(f.value) & terms_of(message.content) for f in here if f.live)


def _answers_wish(candidate: Candidate, message: Message) -> bool:
    """Whether a sentence says that the user does not do what another wants, and the next words say so."""
    if candidate.kind == "attribute" or not _says("negated", candidate.text, FALLBACK):
        return False
    spans, end = split_sentences(message.content), candidate.start + len(candidate.quote)
    touched = [at for at, span in enumerate(spans) if span.start < end and span.end > candidate.start]
    after = spans[touched[0] + 1 : touched[0] + 2] if touched else []
    return any(_says("no_way", span.of(message.content), FALLBACK) for span in after)


def _asks_for_oneself(candidate: Candidate, message: Message, found: Sequence[str]) -> bool:
    """Whether a question is put for the user, who so says what it presupposes, or asks for a kind of replies: "can you be brief?"."""
    asked = "requests" if candidate.category == "communication" else "for_me"
    return set(found) == {"question"} and candidate.kind == "attribute" and _says(asked, message.content, FALLBACK)


def repeats_known(candidate: Candidate, known: Iterable[Fact]) -> bool:
    """Whether a claim says what is believed already, word for word."""
    if candidate.op == "retract":
        return False
    mine = (candidate.kind, candidate.subject, candidate.category, candidate.key, _plain(candidate))
    return any(mine == (f.kind, f.subject, f.category, f.key, _plain(f)) for f in known if f.live)


def _plain(one: Candidate | Fact) -> str:
    return " ".join((one.value or one.text).casefold().split()).strip(" .")


def _names_known(candidate: Candidate, known: Iterable[Fact]) -> bool:
    mine, value = (candidate.subject, candidate.category, candidate.key), _plain(candidate)
    at_address = (f for f in known if mine == (f.subject, f.category, f.key))
    return any(value == _plain(f) or (candidate.key and not candidate.value) for f in at_address)


def _from_others(
    candidate: Candidate,
    message: Message,
    before: Message | None,
    window: Sequence[Message],
    known: Sequence[Fact],
    code: str | None,
) -> bool:
    """Whether half of the claim's words or more come from others than the user."""
    said = claimed_terms(candidate) - neutral_terms() - _address_terms(candidate)
    said -= {word for word in said if not terms(word, language_of(message.content))}  # "el" in a value of three words
    said |= terms_of(candidate.key) if candidate.category == "medication" else frozenset()
    stated = stated_numbers(message)
    stated |= {hour + 12 for hour in stated if hour < 12} | {0}  # "at 4" is 16:00
    numbers = frozenset(term for term in said if term.isdecimal() and int(term[:18]) in stated)
    said -= numbers
    if neutral_terms() & terms_of(message.content) or stated_numbers(message):  # "they moved it to thurs" names a date
        said -= frozenset[str]().union(*map(terms_of, _STAMP.findall(candidate.value)))
    said -= {term for term in said if (clock := _CLOCK.fullmatch(term)) and int(clock[1]) in stated}
    said -= {term for term in said if _runs_in(term, message.content, candidate.value or candidate.text)}
    quoted = masked(message.content)[candidate.start : candidate.start + len(candidate.quote)]  # "I eat fish now"
    if not said or (candidate.category == "dietary" and BLANK not in quoted and _says("names_diet", quoted, FALLBACK)):
        return False
    shown = frozenset[str]().union(*(terms_of(m.content) for m in (*window, message, *([before] if before else []))))
    words = said | claimed_terms(candidate)
    here = (words & own_terms(candidate, words, [message], code)) | (numbers - {"0", "00"})
    own = own_terms(candidate, words, [*window, message], code, of_others=bool(here))
    own |= _asked_before(candidate, message, code) | _quoted_terms(candidate, message, code)
    lent = _lent_terms(candidate, message, before, here, code)
    believed = frozenset[str]().union(*(terms_of(f"{f.subject} {f.key} {f.value} {f.text}") for f in known))
    if here or said <= lent or _says("takes_up", candidate.quote):
        own |= believed | _asked_terms(window, code)
    elif candidate.op == "assert":
        shown |= believed
    seen = said & shown
    foreign = {term for term in seen - own - lent if not any(word.startswith(_root(term)) for word in own)}
    return bool(foreign) and 2 * len(foreign) >= len(seen)


def _quoted_terms(candidate: Candidate, message: Message, code: str | None) -> frozenset[str]:
    """Return the words of the user's own sentences that the claim quotes."""
    start, end = candidate.start, candidate.start + len(candidate.quote)
    sentences = _own_sentences(message.content, patterns_for(message.content, code))
    return frozenset[str]().union(*(terms_of(one) for at, one in sentences if at < end and at + len(one) > start))


def _asked_terms(window: Sequence[Message], code: str | None) -> frozenset[str]:
    """Return the words of the users' own questions: they state nothing, and name what later messages speak of."""
    users = [m for m in window if m.role == "user" and ("?" in m.content or "？" in m.content)]
    sentences = (one for m in users for _, one in _own_sentences(m.content, patterns_for(m.content, code)))
    return frozenset[str]().union(*(terms_of(one) for one in sentences if "?" in one or "？" in one))


def _runs_in(term: str, content: str, claim: str) -> bool:
    """Whether a word written without spaces is among the user's own words: 妈妈 of 我妈, 猫 of 我和猫, 무서워한다 of 무서워해."""
    if ord(term[0]) < _WIDE:
        return False
    own, korean = masked(content), "가" <= term[0] <= "힣"
    inflected = korean and any(word[:2] in own for word in claim.split() if len(word) > 2 and term in word)
    return term in own or inflected or (len(term) == 2 and term[0] == term[1] and term[0] in own)


def _root(term: str) -> str:
    """Return the beginning that a word shares with its inflections, whichever language stemmed it."""
    return term[: max(4, len(term) - 2)]


def _asked_before(candidate: Candidate, message: Message, code: str | None) -> frozenset[str]:
    """Return the words of the user's own question right before the quote, or of what a short reply denies: "Tom isn't"."""
    rules = patterns_for(message.content, code)
    earlier = [one for at, one in _own_sentences(message.content, rules) if at + len(one) <= candidate.start][-1:]
    asked = bool(earlier) and earlier[0].rstrip().endswith(("?", "？"))
    return (
        terms_of(earlier[0]) if asked or (earlier and _says("short_reply", candidate.quote, FALLBACK)) else frozenset()
    )


def _lent_terms(
    candidate: Candidate, message: Message, before: Message | None, here: Collection[str], code: str | None
) -> frozenset[str]:
    """Return the words of a question that the user's reply answers, by yes or by a part of the claim."""
    asked = question_of(before)
    denied = candidate.op == "retract" or candidate.value.casefold() in ("false", "no")
    opening = split_sentences(message.content)[0].of(message.content) if asked and message.content.strip() else ""
    answers = candidate.start < len(opening) and _says("denies" if denied else "affirms", fold_quotes(opening))
    long = len(message.content) > _REPLY_CHARS and not (answers and len(opening) <= _REPLY_CHARS)
    if not asked or (long and (not here or candidate.start >= _REPLY_CHARS)):
        return frozenset()
    number = bool(stated_numbers(message))
    accepted = denied or here or number or is_affirmation(message.content, asked, code)
    return terms_of(asked) if accepted else frozenset()


def _invents_number(
    candidate: Candidate,
    message: Message,
    before: Message | None,
    window: Sequence[Message],
    known: Sequence[Fact],
) -> bool:
    """Whether the claim holds a number that no user's message, nor the question before or a known value, names."""
    wanted = [int(number) for number in _DIGITS.findall(candidate.value or candidate.text) if len(number) < 19]
    if not wanted:
        return False
    heard = [message, *(m for m in window if m.role == "user"), *([before] if before is not None else [])]
    said = frozenset[int]().union(*map(numbers_said, heard))
    said |= numbers_in(f.value or f.text for f in known if f.subject == candidate.subject)
    if message.at is not None and _BORN.search(candidate.key):  # "turned 24 yesterday" names a year
        said |= {message.at.year - age - less for age in stated_numbers(message) if age < 120 for less in (0, 1)}
    least = 0 if _MEASURED.search(candidate.value) else MAX_SMALL_NUMBER
    spelled = not _DIGITS.search(message.content)
    return any(
        number not in said and not (number <= least or (spelled and number <= 100 and least)) for number in wanted
    )


@remembered(_CACHE_SIZE)
def terms_of(text: str) -> frozenset[str]:
    """Return the words of *text* for comparison: stemmed, without stop words."""
    return frozenset(terms(text[:20_000].replace("_", " ").replace(BLANK, " ")))


@remembered(_CACHE_SIZE)
def _stems(word: str, language: str) -> frozenset[str]:
    return frozenset(terms(word, language))


# How a model begins a sentence about the user; nobody said these words.
OUR_WORDS = terms_of("the user users speaker says said states mentions mentioned told stated claims human person")
_USER = expression(r"^\W*(?:the )?(?:user|speaker)\b(?!['’]s)|^\W*(?:i|i'm|i've|we)\b", re.IGNORECASE)


@cache
def neutral_terms() -> frozenset[str]:
    """Return the words that claim nothing by themselves: units, days, months, counts, in every language."""
    found = [_UNITS]
    for words in date_words().values():
        tables = (words.units.values(), words.numbers, words.days, words.weekdays, words.months)
        found += [word for table in tables for word in table]
    return frozenset[str]().union(*map(terms_of, found))


def _address_terms(candidate: Candidate) -> frozenset[str]:
    """Return the words of a claim's address, where they are not all that it claims."""
    subject = terms_of(candidate.subject.replace("-", " ")) if candidate.subject != SELF else frozenset[str]()
    if candidate.kind == "attribute" and candidate.value.casefold() not in _BARE:
        return subject | terms_of(f"{candidate.category} {candidate.key}")
    return subject


def claimed_terms(candidate: Candidate) -> frozenset[str]:
    """Return the deciding words of a claim: its value, or its key when the value is yes or no."""
    if candidate.kind != "attribute":
        return terms_of(candidate.text) - OUR_WORDS
    value = candidate.value or candidate.key
    return terms_of(candidate.key if value.casefold() in _BARE else value)


@remembered(_CACHE_SIZE)
def patterns_for(text: str, code: str | None) -> PatternLanguage | None:
    """Return the patterns of *code*, or of the likeliest language of *text* that has any."""
    return next(filter(None, map(load_language, [code] if code else likely_languages(text[:2000]))), None)


def find_flaws(candidate: Candidate, message: Message, code: str | None = None) -> list[str]:
    """
    Return the flaw of each sentence that the claim quotes: a modality, `OTHER`, `WISH`, or none (``""``).

    Of several quoted sentences those count that hold the claim's words.
    """
    rules = patterns_for(message.content, code)
    if rules is None:
        return []
    claimed = claimed_terms(candidate)
    start, end = candidate.start, candidate.start + len(candidate.quote)
    quoted = [(at, one) for at, one in _own_sentences(message.content, rules) if at < end and at + len(one) > start]
    holding = [(at, one) for at, one in quoted if claimed & terms_of(one)]
    if holding:
        return [_flaw(one, candidate, claimed, rules) for at, one in holding]
    return [_flaw_at(one, candidate, (max(0, start - at), min(len(one), end - at)), rules) for at, one in quoted]


def own_terms(
    candidate: Candidate,
    said: frozenset[str],
    window: Sequence[Message],
    code: str | None = None,
    *,
    of_others: bool = False,
) -> frozenset[str]:
    """
    Return the words of the sentences that a user states as true and that share words with those that are *said*.

    With *of_others* also of those about another: "Miami has great bars" says Miami, wherever the claim is quoted from.
    """
    sound = ("", OTHER) if of_others else ("",)
    own = frozenset[str]()
    for message in window:
        if message.role != "user" or not said & terms_of(message.content):
            continue
        rules = patterns_for(message.content, code)
        for _, one in _own_sentences(message.content, rules):
            if said & terms_of(one) and (not rules or _flaw(one, candidate, said, rules) in sound):
                own |= terms_of(one)
    return own


def is_affirmation(reply: str, question: str, code: str | None = None) -> bool:
    """Whether a short *reply* says yes to *question*; True in languages without a list of such words."""
    found = [rules for rules in (patterns_for(reply, code), patterns_for(question, code)) if rules]
    known = [cues(rules)["affirms"] for rules in found if "affirms" in cues(rules)]
    return not known or any(cue.match(fold_quotes(reply)) for cue in known)


def is_hedged(text: str, code: str | None = None) -> bool:
    """Whether a sentence marks its content as supposed, wanted or reported."""
    rules, plain = patterns_for(text, code), fold_quotes(text)
    if rules is None:
        return False
    verdict = judge(rules, plain, len(plain), len(plain), lead=False)
    return (verdict is not None and verdict.modality not in ("asserted", "question")) or _wishes(rules, plain)


def _wishes(rules: PatternLanguage, text: str) -> bool:
    found = (cues(rules).get(name) for name in ("intends", "intends_after"))
    return any(cue is not None and cue.search(text) for cue in found)


@remembered(256)
def _own_sentences(text: str, rules: PatternLanguage | None) -> tuple[tuple[int, str], ...]:
    """Return ``(start, sentence)`` of the writer's own words; the rest of a sentence is blanked."""
    own = masked(text)
    spans = ((span.start, span.of(own)) for span in split_pieces(text, MAX_TEXT_CHARS))
    return tuple((at, one) for at, one in spans if one.strip(f"{BLANK} \n\t"))


def _flaw(sentence: str, candidate: Candidate, claimed: frozenset[str], rules: PatternLanguage) -> str:
    """Return the flaw of all places with words of the claim; empty when one of them is sound."""
    first = ""
    places = [*_claim_places(sentence, claimed), *_key_places(sentence, candidate, rules)]
    for place in places:
        flaw = _flaw_at(sentence, candidate, place, rules)
        if not flaw:
            return ""
        first = first or flaw
    return first


@remembered(_CACHE_SIZE)
def _claim_places(sentence: str, claimed: frozenset[str]) -> tuple[tuple[int, int], ...]:
    found: list[tuple[int, int]] = []
    language = language_of(sentence)
    for word in _WORD.finditer(fold_quotes(sentence)):
        shared = claimed & (terms_of(word.group()) | _stems(word.group(), language))
        within = [(m.start() + word.start(), m.end() + word.start()) for m in _each(shared, word.group().casefold())]
        found += within or ([word.span()] if shared else [])
    return tuple(found) or ((0, len(sentence)),)


def _each(shared: Iterable[str], run: str) -> Iterator[re.Match[str]]:
    """Find words within a run of a script that is written without spaces."""
    inside = [re.escape(term) for term in sorted(shared) if term in run and any(ord(ch) >= _WIDE for ch in run)]
    return re.finditer("|".join(inside), run) if inside else iter(())


def _key_places(sentence: str, candidate: Candidate, rules: PatternLanguage) -> Iterator[tuple[int, int]]:
    """Find the words of a claim's key within asides: in "inviting Kai, who is my friend" the aside states it."""
    if candidate.category in OF_THE_USER or candidate.subject != SELF:
        key, plain = terms_of(candidate.key), fold_quotes(sentence)
        for word in _WORD.finditer(plain):
            if key & terms_of(word.group()) and _aside(rules, plain, word.start()):
                yield word.span()


def _flaw_at(sentence: str, candidate: Candidate, place: Sequence[int], rules: PatternLanguage) -> str:
    """Return what is wrong with a claim whose words are at *place*."""
    plain, (start, end) = fold_quotes(sentence), place
    asks = candidate.category == "account"
    aside = _aside(rules, plain, start)
    if aside:
        plain, start, end, asks = plain[aside[0] : aside[1]], start - aside[0], end - aside[0], True
    verdict = judge(rules, plain, start, end, lead=False, asked=asks)
    flaw: str = verdict.modality if verdict is not None and verdict.modality != "asserted" else ""
    flaw = "" if flaw and _is_answered(cues(rules), plain[start:end], candidate) else flaw
    planned = candidate.kind == "attribute" and candidate.category in OF_WISHES and hangs_on_luck(rules, plain)
    if flaw == "hypothetical" and (planned or only_intends(rules, plain[:start])):
        flaw = ""
    if not flaw and _is_wish(rules, plain, start, end, candidate):
        flaw = WISH
    passing = candidate.kind == "attribute" or candidate.category == "technical"
    if (
        passing
        and flaw in ("question", "hypothetical", WISH)
        and _is_in_passing(rules, plain, start, asked=flaw == "question")
    ):
        flaw = ""
    if flaw in ("hypothetical", "reported", WISH) and candidate.kind != "attribute" and _admits(candidate):
        flaw = ""
    sure = candidate.op == "assert" and candidate.value.casefold() not in ("false", "no")
    if sure and flaw == "hypothetical" and (found := _found("presumes", plain[:start], rules.code)):
        flaw = flaw if bool(found["own"]) != (candidate.subject == SELF) else ""
    if sure and flaw == "reported" and _found("takes_for_granted", plain[:start], rules.code):
        flaw = ""
    lasts = candidate.kind == "attribute" and candidate.category not in OF_WISHES
    if not flaw and lasts and _says("doubts", plain[:start], rules.code):
        flaw = "hypothetical"
    if flaw or candidate.subject != SELF or _is_left(candidate) or _OF_TALK & {candidate.category, candidate.key}:
        return flaw
    cue = cues(rules)
    said = (plain[start:end], fold_quotes(candidate.quote))  # "im coeliac", behind another's fact
    mine = "writer" in cue and any(cue["writer"].match(one) and not cue.get("other", _BORN).search(one) for one in said)
    subject = _subject_before(cue, plain.replace("\n", " "), start or end) if "other" in cue and not mine else ""
    if subject and ":" in plain[plain.find(subject) + len(subject) : start] and candidate.category in OF_THE_USER:
        return ""  # "my two kids have birthdays: Ivy …" lists whom it is about
    if subject and candidate.category in _OPINIONS and "praise" in cue and cue["praise"].search(plain):
        return ""  # "she has some great songs like …" is the writer's opinion
    if not subject or _only_grammatical(cue, plain, start, subject, candidate) or _fits(subject, candidate, cue):
        return ""
    of_writer = cue.get("of_the_writer", _WHERE_WRITER)
    if of_writer.search(plain[:start]) or _WHERE_WRITER.match(plain, end):
        return ""  # "St Mary's is where I teach"
    return OTHER


def _only_grammatical(
    cue: Mapping[str, re.Pattern[str]], sentence: str, place: int, subject: str, candidate: Candidate
) -> bool:
    """Whether another subject only reports, sets a rule or pays, or a new clause is about a thing."""
    if "orders" not in cue:
        return False
    before = sentence[:place]
    if candidate.kind == "attribute":
        paid = candidate.category in _PAID and cue["somebody_gives"].search(before) and not cue["person"].search(before)
        return bool(paid or cue["orders"].search(sentence[: place + 1]))
    if _SHORT_SUBJECT.match(subject) and _says("admits", candidate.text):
        return True
    things = () if _USER.match(candidate.text) else cue["of_things"].finditer(sentence)
    return any(one.start() <= place < one.end() + 40 for one in things)


def _is_left(candidate: Candidate) -> bool:
    """Whether a claim ends what ends when another leaves, or begins what another begins: "she's moved in with me"."""
    ends, both = candidate.op == "retract", candidate.key in ("lives_with", "travels_with")
    return bool(both and (ends or _WITH_ME.search(candidate.quote))) or (ends and candidate.category in OF_THE_USER)


def _aside(rules: PatternLanguage, sentence: str, place: int) -> tuple[int, int] | None:
    """Return the relative clause or apposition around *place*: whatever the sentence does, it states."""
    cue = cues(rules).get("aside")
    opening = _last(found for found in cue.finditer(sentence) if found.start() <= place) if cue else None
    if opening is None or (opening.start() < place < opening.end() and not opening.group()[:1] == ","):
        return None
    close = _CLOSES.search(sentence, opening.end())
    ends = close.start() if close else len(sentence)
    return (opening.start(), ends) if place < ends else None


def _is_in_passing(rules: PatternLanguage, sentence: str, place: int, *, asked: bool) -> bool:
    """Whether *place* is within a phrase such as "my brother Sam": also a request states what it mentions so."""
    cue = cues(rules)
    own, verb = cue.get("possessive"), cue.get("verb")
    found = _last(one for one in own.finditer(sentence) if one.end() <= place) if own and verb else None
    if found is None or verb is None:
        return False
    gap = sentence[found.end() : place]
    words = re.findall(r"[\w'-]+", gap)
    before = re.findall(r"[\w']+", sentence[: found.start()])[-1:] if asked else []  # "is my brother Sam …?"
    named = (
        cue["named_behind"].match(sentence, found.end()) if "named_behind" in cue else None
    )  # "my landlord, Mr de Groot"
    gap = gap if named is None or place >= named.end() else gap.replace(",", "", 1)
    if len(words) > _MAX_IN_PASSING or _BREAKS.search(gap) or any(map(verb.fullmatch, [*words, *before])):
        return False
    if ("writer" in cue and cue["writer"].search(gap)) or (not asked and {*words[:1]} & _TO_COME):
        return False  # "she wants to move for her new job"
    person = "person" in cue and words and cue["person"].fullmatch(words[-1])
    return not person or sentence[place].isupper()


def _is_answered(cue: Mapping[str, re.Pattern[str]], said: str, candidate: Candidate) -> bool:
    """Whether the quote goes on with what the writer says to it: "he says we should move, but I won't"."""
    rest = fold_quotes(candidate.quote).partition(said)[2]
    turn = cue["resets"].search(rest) if "resets" in cue and candidate.kind != "attribute" else None
    return bool(turn and "writer" in cue and cue["writer"].search(rest, turn.end()))


def _is_wish(rules: PatternLanguage, sentence: str, start: int, end: int, candidate: Candidate) -> bool:
    """Whether the clause says that the claim's words are wanted, while the claim says that they are so."""
    attribute = candidate.kind == "attribute"
    wished = candidate.category in OF_WISHES or (candidate.category not in ("technical", "identity") and not attribute)
    if candidate.op == "retract" or wished or (attribute and _WISHED.search(candidate.key)):
        return False
    cue = cues(rules)
    found = _last(cue["intends"].finditer(sentence, 0, start)) if "intends" in cue else None
    if found is not None:
        gap = sentence[found.end() : start]
        had = candidate.category in ("possession", "pets")
        if had and _says("parts_with", sentence[found.start() : start], FALLBACK):
            return False
        if not _BREAKS.search(gap) and not ("resets" in cue and cue["resets"].search(gap)):
            return True
    return "intends_after" in cue and cue["intends_after"].match(sentence[end:]) is not None


def _admits(candidate: Candidate) -> bool:
    """Whether a sentence says itself that it is wanted, supposed or reported, and does not say it of the user."""
    return is_hedged(candidate.text) or _says("admits", candidate.text)


def _found(name: str, text: str, code: str | None = None) -> re.Match[str] | None:
    """Find a cue in *text*, by the cues of *code* or of its language."""
    cue = cues(rules).get(name) if (rules := patterns_for(text, code)) else None
    return cue.search(text) if cue is not None else None


def _says(name: str, text: str, code: str | None = None) -> bool:
    return _found(name, text, code) is not None


def _subject_before(cue: Mapping[str, re.Pattern[str]], sentence: str, place: int) -> str:
    """Return the nearest subject before *place* that names another; empty for the writer or none."""
    other, writer = cue["other"], cue["writer"]
    nearest = _last(other.finditer(sentence, 0, place))
    if nearest is None and not writer.search(sentence):
        after = other.search(sentence)  # "in Lisbon lives my boss"
        apart = cue["delimiter"] if "delimiter" in cue else _BREAKS
        nearest = after if after and not apart.search(sentence, place, after.start() + 1) else None
    if nearest is None or any(found.start() >= nearest.start() for found in writer.finditer(sentence, 0, place)):
        return ""
    whom = sentence[: nearest.start()].split()[-1:]  # "my dad who has"
    return " ".join([*whom, nearest[0]]) if nearest[0][:3].casefold() == "who" else nearest[0]


def _last(found: Iterator[re.Match[str]]) -> re.Match[str] | None:
    return max(found, key=lambda one: one.start(), default=None)


def _fits(subject: str, candidate: Candidate, cue: Mapping[str, re.Pattern[str]]) -> bool:
    """Whether the claim may be made of another *subject*: it is the claim's topic, or the claim names it."""
    words = subject.split()
    named = terms_of(" ".join(words[:-1]) or subject)  # the last one is the verb
    if candidate.kind != "attribute":
        return bool(named & terms_of(candidate.text)) and not _USER.match(candidate.text)
    if candidate.category in OF_THE_USER:
        own = candidate.key != "pet_named" and bool(named & claimed_terms(candidate))  # "my neighbor Pilar has a dog"
        return own or not ("possesses" in cue and cue["possesses"].search(words[-1]))
    if candidate.category == "appointment" and named & terms_of(candidate.key):
        return True  # "the dentist is on Monday"
    if candidate.category == "identity":
        return False
    if candidate.category in HAPPENINGS and _THING.match(subject) and not cue["person"].search(subject):
        return True
    if candidate.category in HAPPENINGS and _SOMEBODY.match(subject):
        return True  # "they moved it to Thursday"
    if cue["person"].search(subject):  # "the party was lovely, twelve kids came"; "my mentor is called Freyja"
        return bool(named & (claimed_terms(candidate) | terms_of(candidate.key)))
    about = terms_of(f"{candidate.category} {candidate.key}") | claimed_terms(candidate)
    part = candidate.kind == "attribute" and candidate.category in HAVE_PARTS and _found("part", words[0], FALLBACK)
    return bool(named & about or part)  # "the budget is …", "Porto is home now"


@remembered(1024)
def things_named(text: str) -> tuple[str, ...]:
    """Return the words by which a later message may name what a statement is about: its names and its nouns."""
    reader = clause_reader(language) if (language := load_language("en")) is not None else None
    return reader.things(text) if reader is not None else ()


def _objects(text: str) -> tuple[str, ...]:
    """Return the nouns of a sentence with the words before them: "disney plus" of "Has netflix and disney plus."."""
    found, named = english_cue("object").match(text), re.search(r"\b(?:called|named) ([A-Z]\w+)", text)
    phrases = [_SUPPLEMENT.sub("", found["thing"])] if found else []
    phrases += english_cue("between_nouns").split(_main_part(text).partition(" ")[2].rstrip("."))
    names = [named[1]] if named else []
    for whole in filter(None, map(str.strip, phrases)):
        last = whole.split()[-1]
        if last == whole and english_cue("is_so").match(text) and english_cue("is_so").sub("", text).startswith(whole):
            continue
        if len(last) < _LEAST_CHARS:
            names += [whole] if whole[:1].isupper() else []
        elif last.lower() not in NO_THING and not last.isdecimal():
            names += [whole] if last.lower() in _PART_OF_NAME else [whole, last]
    return tuple(dict.fromkeys(names))


def _main_part(text: str) -> str:
    """Return a statement up to where it says only when or why: "Goes to physio" of "Goes to physio every week for their back."."""
    return str(english_cue("only_says_when").split(text, maxsplit=1)[0])


@dataclass(frozen=True)
class KnownValue:
    """
    A known attribute: subject, address, value, and whether its address holds one value only.

    ``text`` is its sentence, ``seq`` the last message of the conversation that stated it (0: none).
    """

    subject: str
    category: str
    key: str
    value: str
    alone: bool = False
    text: str = ""
    seq: int = 0
    kind: FactKind = "attribute"

    @cached_property
    def words(self) -> str:
        """The name a message would use: the value, or the key where it says more (``dietary/vegan = true``)."""
        if self.kind == "statement":
            return next(iter(things_named(self.text)), "")
        own = self.value if _LETTERS.search(self.value) and self.value not in _BARE else ""
        named = self.key.replace("_", " ") if self.category in ("dietary", "medication") else own
        return _ARTICLE.sub("", named)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """All names a message may use, the fullest first: "Honda Civic", "Civic"."""
        if self.kind == "statement":
            people = english_cue("with_whom").findall(self.text)
            return tuple(dict.fromkeys((*things_named(_main_part(self.text)), *_objects(self.text), *people)))
        words, found = self.words, [self.words]
        if self.category in _DOINGS:
            short, bare = english_cue("doing").sub("", words), english_cue("tail").sub("", words)
            found += [short, english_cue("tail").sub("", short), bare, english_cue("go").sub("", bare)]
            found = [_ARTICLE.sub("", name) for name in found]
            if gerund := re.fullmatch(r"([a-z]{3,}?)(?:([b-df-hj-np-tv-z])\2)?ing", english_cue("go").sub("", bare)):
                found.append(gerund[1] + (gerund[2] or ""))  # "I don't climb anymore" of "go climbing"
        if self.category == "schedule" and (plain := english_cue("bare_doing").match(words)):
            verb = plain[1].lower()
            doubled = verb + verb[-1] if re.fullmatch(r"[^aeiou]*[aeiou][^aeiouwxy]", verb) else verb.removesuffix("e")
            found.append(f"{doubled}ing")  # "run 5 km every day" ends in "I stopped running"
        if self.key in ("works_at", "studies_at") and " " in words and (rest := words.partition(" ")[2])[:1].isupper():
            found.append(rest)  # "La Fe" of "Hospital La Fe"
        if (self.category in _BRANDS or self.key == "lives_with") and " " in words:  # "girlfriend Noor"
            found += [word for word in (words.split()[-1], words.split()[0]) if word[:1].isupper()]
        last = words.rpartition(" ")[2]
        if self.category == "goal" and len(last) > _LEAST_CHARS and last.lower() not in NO_THING:
            found.append(last)  # "the bike" of "a new bike"
        if self.key in ("has_condition", "works_as"):
            found.append(english_cue("degree").sub("", words))  # "diabetes" of "type 2 diabetes"
        if self.category == "medication":
            found.append(_SUPPLEMENT.sub("", words))  # "iron" of "iron supplements", "b12" of "vitamin b12"
            found += [last] if last.endswith("s") and len(last) > _LEAST_CHARS + 2 else []  # "thinners"
        if self.category == "appointment":
            kind = self.key.replace("_", " ").partition(" with ")[0]  # "our meeting" of "meeting with Bob"
            found += [self.key.replace("_", " "), kind, re.sub(r"(?:'s)? appointment$", "", kind)]
        if place := english_cue("place_name").fullmatch(words):
            found.append(place["name"] or place["lower"] or place["school"])
        least = _LEAST_CHARS if words.isascii() and not (self.category == "family" and words[:1].isupper()) else 2
        return tuple(dict.fromkeys(name for name in found if len(name) >= least and _LETTERS.search(name)))

    @cached_property
    def stems(self) -> tuple[str, ...]:
        """The names without a plural's ending, one of which a sentence holds that says a name."""
        return tuple(one.rstrip("s") if one[2:].strip("s") else one for one in map(str.casefold, self.names))

    @property
    def address(self) -> tuple[str, str, str]:
        """Its subject, category and key."""
        return self.subject, self.category, self.key


known_value = remembered(8192)(KnownValue)
"""Return a `KnownValue`, which may have read its names already."""


def known_values(believed: Iterable[Fact | Candidate], conversation: str = "") -> list[KnownValue]:
    """Return the attributes and the rules' statements among *believed*, each once, without those that were retracted."""
    found: dict[tuple[str, ...], KnownValue] = {}
    for one in believed:
        if isinstance(one, Candidate):
            seq, alone = one.seq, False
        else:
            seq = max((e.seq for e in one.evidence if e.conversation == conversation), default=0)
            alone = one.cardinality != "multi"
        by_rules = one.kind == "statement" and one.source.startswith("rules ")
        if by_rules and (
            seq or _objects(one.text) or _DIGITS.search(one.text) or things_named(one.text) or opposites("en", one.text)
        ):
            said = (one.subject, one.category, "", one.text)
            found[said] = known_value(*said, False, one.text, seq, "statement")
        if one.kind != "attribute":
            continue
        address = (one.subject, one.category, one.key)
        if isinstance(one, Candidate) and one.op == "retract":
            found = {
                place: other
                for place, other in found.items()
                if place[:3] != address or (one.value and other.value != one.value)
            }
            continue
        found[*address, one.value] = known_value(*address, one.value, alone, one.text, seq)
    return list(found.values())
