"""
Grounding: is the quote really in the message, and are the words the user's own?

Every candidate passes `ground`, whether the rules or a model found it; a model's claims pass `second_look` before.
A rejection is a stable code, a colon, and words for users.

A claim in another language than the chat cannot be compared with it word by word.  Its quote, in the chat's own words, is what
grounds it, and `verify_translation` holds its numbers, names and negation against that quote.  Pure.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from ..text import expression
from ..text.dates import date_words
from ..text.languages import AVERSE, EXONYMS, NEGATES, NOT_NEGATED
from ..text.sentences import split_sentences
from ..text.terms import fold_quotes, language_of, likely_languages
from ..types import Candidate, Evidence, Message
from .authorship import BLANK, kind_of_text, masked
from .second_look import (
    OF_OTHERS,
    OTHER,
    OUR_WORDS,
    SUPPOSED,
    WANTED,
    WISH,
    find_flaws,
    is_hedged,
    neutral_terms,
    patterns_for,
    terms_of,
)  # fmt: skip
from .slots import amounts_in_words, dates_said

NO_QUOTE = "no-quote: the candidate gives no words that it rests on"
NOT_IN_WINDOW = "not-in-window: the message it names was not among those read"
NOT_SAID_BY_USER = "not-said-by-user: the words stand in a message of role {role}"
NOT_ITS_WORDS = "not-said-by-character: the words are from a message of the user"
NOT_THERE = "quote-not-found: the quoted words do not stand in that message"
AMBIGUOUS = "quote-ambiguous: the quoted words stand there {count} times, and the place given is none of them"
QUOTED = "not-own-words: the words stand inside {kind}"
INJECTED = "injected: the words were put into the prompt by the memory itself"
NOT_ASSERTED = "not-asserted: the words are {modality}"
LOW_CONFIDENCE = "low-confidence: {confidence:.2f} is below {least:.2f}"
NO_CONFIDENCE = "low-confidence: the row gives none, or 0, and {least:.2f} is the least"
INCOMPLETE = "incomplete: a fact needs a subject, a category, a key and a value"
MOST_WORDS_OF_CHANGE = 5  # "let's make it 4k then", which changes what was talked about
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
    lines = frozenset(_normal_line(line) for line in injected if len(_normal_line(line)) >= MIN_INJECTED_CHARS)
    for candidate in candidates:
        message = messages.get(candidate.seq)
        reason = _unfit(candidate, message, min_confidence)
        start = candidate.start
        if not reason and message is not None:
            start, reason = _place(candidate, message)
        if not reason and message is not None:
            reason = _foreign(candidate, message, masked(message.content), start, lines)
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
        template = LOW_CONFIDENCE if candidate.confidence else NO_CONFIDENCE
        return template.format(confidence=candidate.confidence, least=min_confidence)
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
        return QUOTED.format(kind=kind_of_text(message.content, start, end))
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
_EDGES, _COMMA = " \t\"'.,;:!?。，、！？…*_", expression(r"(?<=\d),(?=\d{3}(?!\d))")  # "27,300" quoted as 27300


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
    own = masked(content)
    return next((span for span in spans if BLANK not in own[span[0] : span[1]]), spans[0])


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
        if char in _INVISIBLE or (char == "," and _COMMA.match(text, place)):
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


NUMBER_NOT_QUOTED = "number-not-said: it holds a number that the quoted words do not"
NAME_NOT_QUOTED = "name-not-said: it holds a name that the quoted words do not; names stay as they were said"
NEGATION_NOT_QUOTED = "negation-not-said: one of the two says no, the quoted words or what is claimed of them"

_SHORT = 80  # characters; the language of fewer is a guess
_LETTERED = expression(r"[A-Za-zÀ-ɏͰ-ӿ]")
_CAPITAL = expression(r"(?<![\w'’])[A-ZÀ-ÞĀ-ɏΑ-ΩА-Я][\w'’-]+")
_STARTS = expression(r"(?:^|[.!?:;–—(\"“„«]\s*)$")
_LEAST_ROOT = 4  # letters that two forms of a name share
_ENDING = expression(
    r"(?:[aeiosnmryu]|as|es|os|en|er|em|om|ov|ow|am|ie|ia|us|um|is|ien|ya|io|eo|ne|na|no|te|ta|to|[а-я]{1,2}|[α-ω]{1,2})?"
)
_PARTICLE = expression(
    r"(?<=[a-zß-ɏ\d])[\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]+$"
)  # behind a name in Latin letters: Meko에서
_SUBSTANCE = expression(
    r"\w{2,}(?:cill?in|profen|m[iy]cin|xin|amin|formin|lin|pirin|[zs]ol|prim|amol|cain|codein|insulin|statin|pril)[eao]?s?"
)
_DRUG = expression(rf"{_SUBSTANCE.pattern}|\w{{4,}}(?:in|ine|ina|pram|pam|lol|id|ida|one|ona|yl)")
_REMEDIES = frozenset("medicine medicina vaccine vacuna magnesium morning evening".split())
# Where a value that begins with a capital is a name.
_NAMED = frozenset("home identity family pets travel trip work job education tech technical contact".split())
_POINT = r"[;!?。，！？]|[,:.](?!\d)"
_CLAUSE = expression(rf"{_POINT}|\b(?:but|and|although|because|pero|aber|mais|ma|mas|maar|ale)\b", re.IGNORECASE)
# Where the clause of a quote ends behind it, in any language.
_CLAUSE_END = expression(
    rf"{_POINT}|\n|[，、]|\b(?:but|and|or|although|though|because|since|so|while|when|if|who|which|that|where|unless|aber|und|oder|weil|denn"
    r"|sondern|pero|sino|y|o|ni|porque|cuando|si|que|donde|aunque|mais|et|ou|parce|car|quand|qui|où|ma|e|perch[eé]|che|quando|se|mas|pois"
    r"|maar|en|want|omdat|ale|bo|но|и|потому)\b"
    r"|(?<=고)\s+(?!싶|있|계|말)|(?<=지만)\s|(?<=데)\s|(?<=[^에]서)\s|(?<=니까)\s|(?<=며)\s|(?<=요)\s|(?<=다)\s"
    r"|(?<=ます)が|(?<=です)が|けど|けれど|(?<=る)が|ので|但|而|可是|不过",
    re.IGNORECASE,
)
_AROUND = 60  # characters of a clause before and behind its quote
_LACKS = expression(r"(?<!\w)(?:without|sin|sans|ohne|senza|sem|zonder|bez|без)(?!\w)", re.IGNORECASE)


_NUMBER = expression(r"\d+(?:[.,]\d+)*")
_UNITS = {"usd": "dollar dollars bucks grand", "eur": "euro euros grand", "gbp": "pound pounds quid grand"}


def locate_number(number: str, address: str | None, content: str) -> tuple[int, int] | None:
    """
    Return the one sentence that says a number in words and shares a word with its address; ``None`` for several or none.

    Without an address, for a number that is known and changes, the sentence must be short: "make it 4k" is about no other thing.
    """
    if not _NUMBER.fullmatch(number):
        return None
    about = terms_of(
        " ".join(f"{word} {_UNITS.get(word, '')}" for word in (address or "").casefold().replace("_", " ").split())
    )
    code = language_of(content)
    spans = [one for one in split_sentences(content) if says_number(number, one.of(content), code)]
    if len(spans) != 1:
        return None
    said = spans[0].of(content)
    fits = len(said.split()) <= MOST_WORDS_OF_CHANGE if address is None else about & terms_of(said)
    return (spans[0].start, spans[0].start + len(said)) if fits else None


ONLY_LOOKED_AT = "not-asserted: the words ask about a thing or look into it, and the claim says that it is used"
_USES = expression(
    r"(?:the user |i |we )?(?:us(?:es?|ing)|run(?:s|ning)?|deploy(?:s|ing)?(?: on)?|works? with) ", re.IGNORECASE
)
_ASKED = expression(
    r"^\W*(?:(?:please|pls|hi|hey|hello|ok|okay|so|and|now|just|kindly)\W+)*(?:tell|show|explain|teach|compare|recommend|suggest|summari[sz]e"
    r"|describe|write|draft|give|list|help|walk|find|translate|introduce|install)\b"
    r"|\b(?:evaluat(?:e|es|ed|ing)|assess(?:es|ed|ing)?|compar(?:e|es|ed|ing)|tr(?:y|ies|ied|ying)|look(?:s|ed|ing)? (?:at|into)|learn(?:s|ed|t|ing)?"
    r"|stud(?:y|ies|ied|ying)|read(?:ing)? (?:\w+ ){0,3}?(?:about|on)|hear|heard|curious|interested in|research(?:ed|ing)?"
    r"|play(?:ed|ing)? (?:around )?with|talk(?:ed|ing)? about)\b",
    re.IGNORECASE,
)
_OWN_USE = expression(
    r"\b(?:our|my|their)\b|(?<!how )(?<!should )(?<!can )\b(?:i|we)(?:['’]ve)?(?: \w+){0,2}? (?:use|used|run|ran|deploy|deployed|host|rely|switched|moved|migrated)\b"
    r"|\b(?:i|we)(?:['’]?m|['’]?re| am| are)(?: \w+ly)? (?:using|running|on|deploying|hosting)\b",
    re.IGNORECASE,
)


def verify_use(candidate: Candidate, message: Message) -> str:
    """Return why words only ask about a tool or look into it, where a claim says that it is used; written for English."""
    attribute = candidate.kind == "attribute"
    used = None if attribute else _USES.match(candidate.text)
    if candidate.op == "retract" or not (used or (attribute and candidate.category in ("tech", "technical"))):
        return ""
    things = _folded_words(candidate.text[used.end() :] if used else candidate.value)
    for one in split_sentences(message.content):
        if one.start <= candidate.start < one.start + len(one.of(message.content)):
            sentence = fold_quotes(one.of(message.content))
            place = next(
                (word.start() for word in re.finditer(r"[\w.+#-]+", sentence) if things & _folded_words(word[0])), 0
            )
            before = re.split(r"[,;:]|\bbut\b", sentence[:place])[-1]
            return ONLY_LOOKED_AT if _ASKED.search(before) and not _OWN_USE.search(before) else ""
    return ""


ENDED = "not-asserted: the words say what was so before, and the claim says that it is so now"
# What a claim says that somebody does now; a verb of the same row, denied or only considered, says otherwise.
_DOES = {
    "use": r"us(?:e|es|ed|ing)|runs?|ran|running|deploy\w*|host(?:s|ed|ing)?|(?:work|works|worked|working) (?:with|in|on)|rel(?:y|ies|ied|ying) on|writ(?:e|es|ing)|wrote",
    "choose": r"pick\w*|chose\w*|choos\w+|adopt\w*|switch\w*(?: over)?(?: to)?|mov(?:e|es|ed|ing)(?: over)? to|migrat\w+ to|install\w*|try|tr(?:ied|ying)|go(?:ing)? (?:for|with)|(?:be|is|are|am|was|were|['’](?:re|m))(?: all)? (?:in|on|using)",
    "have": r"ha(?:ve|s|d|ving)|own(?:s|ed|ing)?|g[eo]t(?:s|ting)?|need(?:s|ed|ing)?|keep(?:s|ing)?|kept|buy(?:s|ing)?|bought",
    "live": r"liv(?:e|es|ed|ing)(?: in)?|mov(?:e|es|ed|ing)(?: to)?|reloca\w+(?: to)?|sta(?:y|ys|yed|ying)(?: in)?",
    "like": r"lik(?:e|es|ed|ing)|lov(?:e|es|ed|ing)|enjoy\w*|prefer\w*|fond of|a fan of|into|stand|bear|care for|keen on",
    "take": r"eat(?:s|ing)?|ate|drink(?:s|ing)?|drank|smok(?:e|es|ed|ing)|tak(?:e|es|ing)|took|vap(?:e|es|ed|ing)|touch(?:es|ed|ing)?",
    "do": r"play(?:s|ed|ing)?|do(?:es|ing)?|did|practi[sc]\w+|train\w*|run(?:s|ning)?|ran|speak(?:s|ing)?|spoke|know(?:s|ing)?|knew|rid(?:e|es|ing)|rode",
    "go": r"go(?:es|ing|ne)?(?: to)?|went to|been(?: to| in)?|visit\w*|travel\w*(?: to)?|fl(?:y|ies|ew|ying)(?: to)?|mov(?:e|es|ed|ing)(?: to)?",
    "work": r"work(?:s|ed|ing)?|join(?:s|ed|ing)?|start(?:s|ed|ing)?",
    "be": r"be|been|am|is|are|was|were|['’]m|['’]re|['’]s",
}  # fmt: skip
_KIN_OF = {"use": ("use", "choose", "have", "like", "work"), "have": ("have", "choose"), "go": ("go", "live")}
_CLAIMED = tuple(
    (kind, expression(rf"\W*(?:(?:the )?user |i |we |they )?(?:(?:now|also|still|often|usually|currently|regularly) )*(?P<verb>{verbs})\b", re.I))
    for kind, verbs in (
        ("use", r"us(?:es?|ing)|(?:switched|migrated)(?: over)? to|runs?(?= [A-Z])|running(?= [A-Z])|deploys?(?: on)?|works? (?:with|in(?= [A-Z]))"),
        ("go", r"has been to|have been to|went to|visited|moved to"),
        ("have", r"ha(?:s|ve)|owns?|keeps?"),
        ("live", r"lives?|is based in"),
        ("like", r"likes?|loves?|enjoys?|prefers?"),
        ("take", r"eats?|drinks?|smokes?|takes?"),
        ("do", r"plays?|does|do|practi[sc]es?|speaks?|knows?|rides?"),
        ("work", r"works?"),
        ("be", r"is an?|am an?|are an?"),
    )
)  # fmt: skip
_NO = r"(?:\w+n['’]t|\w+nt(?<=dont|cant|wont)|not|never|no longer|cannot|neither|nor|hardly|without|no)"
_MAYBE = (
    r"(?:might|may|could|would|['’]d|nearly|almost|will|['’]ll|(?:going|about|plan(?:s|ning)?|hop(?:e|es|ing)|want(?:s|ed)?"
    r"|wish|tempted|likely) to|(?:think|thought|dream)(?:ing)? (?:of|about)|consider(?:s|ed|ing)?|should)"
)
_WAS = r"(?:used to|no longer|(?:stop(?:ped)?|quit|gave up|given up|giving up|ditched|dropped|left)(?= $| \w+ing\b))"
_SAVE = expression(r"\b(?:but|except|than|only|just|merely|without|enough|my|our|until|till)\b", re.IGNORECASE)
_UNTIL = expression(
    r"^[^,;.!?]{0,30}?\b(?:until|till|back (?:then|when|in)|in the past|years ago|at the time)\b", re.IGNORECASE
)
_STILL = expression(
    r"^ (?:\w+ )?(?:as|that|so|very) (?:often|much|well|good)\b|\b(?:i|we)(?: \w+){0,2} (?:it|them|both)\b",
    re.IGNORECASE,
)
_PAST_VERB = expression(
    r"\b(?:had|used|ran|was|were|lived|worked|played|did|drank|ate|smoked|took|went)\b", re.IGNORECASE
)
# Whose tools are not the writer's: "our vendor runs Oracle", "the tutorial uses Flask".
_ELSEWHERE = expression(
    r"\b(?:tutorials?|books?|courses?|videos?|docs|documentation|articles?|examples?|blogs?|posts?|papers?|guides?|vendors?|clients?"
    r"|customers?|competitors?|suppliers?|providers?|banks?|landlords?|interviewers?|speakers?|teachers?|lecturers?)(?: \w+ly)? (?:us|r[ua]n|ha[sd]|work|rel|deploy|host|like|prefer|want)\w*",
    re.IGNORECASE,
)
_BREAK = expression(
    r"[,;:.!?()—–]\s*|\b(?:but|and|although|though|because|since|so|while|when|which|that|who)\b", re.IGNORECASE
)


@lru_cache(maxsize=64)
def _stances(verbs: str) -> tuple[tuple[re.Pattern[str], str], ...]:
    """Return what the words before a thing may say of doing *verbs* with it, each with why that is no claim of it."""
    doing = rf"(?:(?:really|actually|even|ever|yet|quite|also|at all|be|been|have|want to|plan to) )*(?:{verbs})(?: \S+){{0,4}}? ?$"
    denied = rf"|\b(?:{verbs})(?: \w+ly)? not (?:\S+ ){{0,3}}$" if verbs == _DOES["be"] else ""
    wished = r"|\b(?:want|wish|ask|beg)(?:s|ed|ing)? (?:for )?(?:an? |the )?$" if _DOES["choose"] in verbs else ""
    return (
        (re.compile(rf"(?<!\w)(?:\w+n['’]t|{_NO}) {doing}|(?<!\w)(?:not|never|no|neither|nor|without) (?:(?:an?|the|any|really|even|yet|big|much|more|of) )*${denied}", re.IGNORECASE), SUPPOSED.format(modality="negated")),
        (re.compile(rf"(?<!\w){_WAS} (?:\S+ ){{0,4}}$", re.IGNORECASE), ENDED),
        (re.compile(rf"(?:\b|(?=['’])){_MAYBE} {doing}{wished}", re.IGNORECASE), WANTED),
    )  # fmt: skip


def verify_state(candidate: Candidate, message: Message) -> str:
    """
    Return why words deny, end or only consider what a claim says is so; empty when one place of its words does not.

    Compares the verb of the claim with the one before its words, in English; in other languages a word for no right before a tool.
    """
    kind, said = _claimed_state(candidate)
    if not kind or candidate.op == "retract" or candidate.modality != "asserted":
        return ""
    things, found = terms_of(said) - neutral_terms(), []
    code = (likely_languages(message.content[:400]) or [""])[0]
    for one in split_sentences(message.content):
        sentence = fold_quotes(one.of(message.content))
        places = [word for word in re.finditer(r"[\w.+#-]*[\w+#]", sentence) if things & terms_of(word[0])]
        found += [_stance(kind, sentence[: word.start()], sentence[word.end() :], code) for word in places]
    return found[0] if found and all(found) else ""


def _claimed_state(candidate: Candidate) -> tuple[str, str]:
    """Return what a claim says that the user does, a row of `_DOES`, and with what; empty for another claim."""
    bare = candidate.kind == "attribute" and candidate.value.casefold() in ("true", "yes")
    told = candidate.key.replace("_", " ") if bare else candidate.text  # "eats_meat = true" claims a verb, too
    if candidate.kind == "attribute" and not bare:
        return ("use", candidate.value) if candidate.category in ("tech", "technical") else ("", "")
    for kind, pattern in _CLAIMED:
        if begins := pattern.match(told):
            rest = told[begins.end() :]
            over = re.search(rf"\b{_NO}\b", rest) or AVERSE.search(rest)
            return ("", "") if over else (kind, rest if terms_of(rest) else told)
    if candidate.category in ("tech", "technical") and not AVERSE.search(candidate.text):
        return "use", candidate.text
    return "", ""


def _stance(kind: str, before: str, behind: str, code: str) -> str:
    """Return what the clause says of a thing between *before* and *behind*: why it is denied, over or only considered."""
    clause = _BREAK.split(before)[-1]
    if code != "en":
        near = " ".join(clause.split()[-3:])
        return SUPPOSED.format(modality="negated") if kind == "use" and code in NEGATES and _negates(near, code) else ""
    if kind == "use" and _ELSEWHERE.search(clause) and not re.search(r"\b(?:i|we)\b", clause, re.IGNORECASE):
        return OF_OTHERS
    if _PAST_VERB.search(clause) and _UNTIL.search(behind):
        return ENDED
    if _STILL.search(behind):
        return ""
    verbs = "|".join(_DOES[one] for one in _KIN_OF.get(kind, (kind,)))
    for pattern, why in _stances(verbs):
        if (words := pattern.search(clause)) and not _SAVE.search(words[0]) and not NOT_NEGATED.search(clause):
            return why
    return ""


def in_other_language(content: str, around: Iterable[str], language: str | None) -> bool:
    """Whether facts are worded in another *language* than *content*, or than all of *around* where that is short."""
    if language is None:
        return False
    return language_of(content if len(content) >= _SHORT else "\n".join([content, *around])) != language


def verify_translation(candidate: Candidate, message: Message, heard: Sequence[str], language: str) -> str:
    """
    Return why a claim in another language is not what its quote says; empty when nothing objects.

    Args:
        candidate: with its quote at its place in *message*; its value and text are in *language*.
        message: the user's message that it quotes.
        heard: further words that may name whom it is about: the question before, known facts, other messages.
        language: that of the claim (ISO 639-1).
    """
    if candidate.modality != "asserted":
        return ""  # the model says so itself
    said = candidate.value if candidate.kind == "attribute" else candidate.text
    return (
        _unstated(candidate, message, language)
        or _unquoted_number(candidate, said, message, heard, language)
        or _unquoted_name(candidate, said, heard, language)
        or _turned_around(candidate, message, language)
    )


def _unstated(candidate: Candidate, message: Message, language: str) -> str:
    """Return why the quoted words do not state anything of the subject: they suppose, ask, want, or are about another."""
    category = candidate.category if candidate.kind == "attribute" else "technical"  # whose facts are no wishes
    bare = replace(candidate, category=category, value="", text="")
    last = len(candidate.quote.rstrip()) - len(
        (candidate.quote.split() or [""])[-1]
    )  # behind every word that weakens it
    end = replace(bare, start=candidate.start + last, quote=candidate.quote[last:])
    flaws = max((find_flaws(one, message) for one in (bare, end)), key=lambda found: bool(found) and all(found))
    flaws = [flaw for flaw in flaws if flaw != "negated"]
    if not flaws or not all(flaws) or (candidate.kind != "attribute" and is_hedged(candidate.text, language)):
        return ""
    if OTHER in flaws:
        return "" if _names_another(candidate, message, language) else OF_OTHERS
    return WANTED if WISH in flaws else SUPPOSED.format(modality=flaws[0])


def _names_another(candidate: Candidate, message: Message, language: str) -> bool:
    """Whether a sentence says of whom the quote speaks, by name or by relation."""
    if candidate.kind == "attribute":
        return False
    quoted = _folded_words(candidate.quote)
    rules = (patterns_for(message.content, None), patterns_for(candidate.text, language))
    relations = [words for one in rules if one and (words := one.lexicons.get("relation"))]
    meant = {found for words in relations for word in _words(candidate.quote) if (found := words.lookup(word))}
    named = {found for words in relations for word in _words(candidate.text) if (found := words.lookup(word))}
    return bool(meant & named) or any(_is_held(name, quoted) for name in _names(candidate.text, first=False))


def _unquoted_number(candidate: Candidate, said: str, message: Message, heard: Iterable[str], language: str) -> str:
    """Return why the numbers of a claim are not those of the quote, of its clause, or of a question that it answers."""
    before, behind = _clause_around(candidate, message)
    asked = [text for text in heard if text != message.content and text.rstrip().endswith(("?", "？"))]
    quoted = "\n".join([before + candidate.quote + behind, *asked])
    code = (likely_languages(message.content[:400]) or [""])[0]
    return "" if holds_numbers(said, language, quoted, code, dates_said(message)) else NUMBER_NOT_QUOTED


def _unquoted_name(candidate: Candidate, said: str, heard: Iterable[str], language: str) -> str:
    """Return why the names of a claim are not the quote's; a name in a script without capitals is not compared."""
    attribute = candidate.kind == "attribute"
    if not _LETTERED.search(candidate.quote):
        return ""
    words = _folded_words(" ".join([candidate.quote, *heard]))
    if language == "de":  # where every noun has a capital
        names = [name for name in _names(candidate.quote, first=False) if _tells_name(name)]
        mine = _folded_words(said)
        return NAME_NOT_QUOTED if names and not any(_is_held(name, mine) for name in names) else ""
    if attribute and _unquoted_substance(candidate, words):
        return NAME_NOT_QUOTED
    first = attribute and (candidate.category in _NAMED or _names_what_is_lost(candidate, said))
    return (
        NAME_NOT_QUOTED
        if any(_tells_name(name) and not _is_held(name, words) for name in _names(said, first=first))
        else ""
    )


def _names_what_is_lost(candidate: Candidate, said: str) -> bool:
    """Whether the quote names something and the claim holds none of its names; in German every noun has a capital."""
    if (likely_languages(candidate.quote) or [""])[0] == "de":
        return False
    mine = _folded_words(said)
    names = [name for name in _names(candidate.quote, first=False) if _tells_name(name)]
    return bool(names) and not any(_is_held(name, mine) for name in names)


def _unquoted_substance(candidate: Candidate, words: Collection[str]) -> bool:
    """Whether a drug or an allergen is named that the quote does not name; those are spelled alike in most languages."""
    pattern = {"medication": _DRUG, "allergy": _SUBSTANCE}.get(candidate.category)
    if pattern is None:
        return False
    named = _folded_words(f"{candidate.key.replace('_', ' ')} {candidate.value}")
    return any(pattern.fullmatch(name) and not _is_spelled(name, words) for name in named - _REMEDIES)


def _turned_around(candidate: Candidate, message: Message, language: str) -> str:
    """Return why one of claim and quote is negated and the other is not."""
    code = (likely_languages(message.content[:400]) or [""])[0]
    if candidate.op == "retract" or code not in NEGATES or language not in NEGATES:
        return ""
    before, behind = _clause_around(candidate, message)
    claim = f"{candidate.key.replace('_', ' ')} {candidate.value} {candidate.text}"
    denies = candidate.value.casefold() in ("false", "no") or " not " in f" {candidate.key.replace('_', ' ')} "
    denies = denies or _negates(candidate.text if candidate.kind != "attribute" else candidate.value, language)
    denied = _negates(before + candidate.quote + _LACKS.sub(" ", behind), code)
    quote = before + candidate.quote
    if denies == denied or AVERSE.search(quote if denies else claim):
        return ""
    return NEGATION_NOT_QUOTED


def _clause_around(candidate: Candidate, message: Message) -> tuple[str, str]:
    """Return the text before and behind the quote in its clause."""
    end = candidate.start + len(candidate.quote)
    before = message.content[max(0, candidate.start - _AROUND) : candidate.start]
    ends = min(len(message.content), end + _AROUND)
    if candidate.quote.rstrip().endswith((".", "!", "?", "。", "！", "？")):
        ends = end
    elif last := _CLAUSE_END.search(message.content, end, ends):
        ends = last.start()
    return _CLAUSE.split(before)[-1], message.content[end:ends]


def _negates(text: str, code: str) -> bool:
    return bool(NEGATES[code].search(NOT_NEGATED.sub(" ", fold_quotes(text))))


def _names(text: str, *, first: bool) -> Iterator[str]:
    """Yield the words with a capital, those that begin a sentence only with *first*."""
    for found in _CAPITAL.finditer(text):
        if first or not _STARTS.search(text[: found.start()]):
            yield found.group()


def _tells_name(name: str) -> bool:
    """Whether a word with a capital is neither a day, a month nor a word for the user."""
    stems = terms_of(name)
    return len(name) > 1 and not (stems <= neutral_terms() | OUR_WORDS)


def _is_held(name: str, words: Collection[str]) -> bool:
    """Whether a name is among *words*, in any language's form of it."""
    for part in _folded_words(name):
        if part in words:
            return True
        if any(_is_form(part, word) for word in words):
            return True
        for group in EXONYMS:
            if any(part.startswith(one) for one in group) and any(w.startswith(one) for w in words for one in group):
                return True
    return False


def _is_form(name: str, word: str) -> bool:
    """Whether two words are one name with different endings: Martin and Martins, but not Martha."""
    if name[:2] != word[:2]:
        return False
    name, word = (_PARTICLE.sub("", one) for one in (name, word))
    if name == word:
        return True
    root = next(
        (at for at, (one, other) in enumerate(zip(name, word, strict=False)) if one != other), min(len(name), len(word))
    )
    return (
        root >= _LEAST_ROOT and _ENDING.fullmatch(name, root) is not None and _ENDING.fullmatch(word, root) is not None
    )


def _is_spelled(name: str, words: Collection[str]) -> bool:
    """Whether the name of a substance begins like one of *words*, as it is spelled in any language."""
    return any(_sound(one)[:_LEAST_ROOT] == _sound(name)[:_LEAST_ROOT] for one in words)


def _sound(word: str) -> str:
    for one, other in (("ph", "f"), ("th", "t"), ("y", "i"), ("k", "c"), ("z", "c")):
        word = word.replace(one, other)
    return word


def _folded_words(text: str) -> frozenset[str]:
    plain = unicodedata.normalize("NFD", text.casefold())
    return frozenset(_words("".join(ch for ch in plain if not unicodedata.combining(ch))))


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


_AMOUNT = expression(r"\d+(?:[.,'\u00a0\u202f]\d+)*")
_DECIMAL = expression(r"\d{1,15}(?:\.\d{1,15})?")
_GROUPED = expression(r"\d{1,3}(?:[.']\d{3})+")
_THOUSANDS = (
    (r"k\b|thousand|tausend|mil\b|mille|mila|천|千", 1000),
    (r"만|万|萬", 10_000),
    (r"mill?i[oõó]n|milh|백만", 1_000_000),
)
_MANY = tuple((expression(rf"\s?(?:{words})", re.IGNORECASE), times) for words, times in _THOUSANDS)
_CLOCK = expression(r"[:.h]\d\d\b|\s?(?:[ap]\.?m\b|uhr|h\b|heures?|o'clock|시|時|点)", re.IGNORECASE)
_HALF = expression(r"hal[bf]|medi[ao]|demie?|mezz[ao]|meia|반|半|quart|viertel|cuarto", re.IGNORECASE)
# Words for a number beyond the table of a language; which number they mean is not read.
_GREATER = expression(
    r"(?:thir|for|fif|six|seven|eigh|nine)t(?:y|een)|fourteen|twenty|hundred|zehn\b|zwanzig|(?:drei|vier|fünf|sech|sieb|acht|neun)\w*(?:zig|ßig|ssig)"
    r"|hundert|veint|treint|\w+enta\b|dieci\w|cien\b|ciento|vingt|trent|quarant|cinquant|soixant|\bcent\b|quatorz|seize|dix-|vinte|trinta"
    r"|venti|sessant|settant|ottant|novant|열\s?[한두세네다여일아]|스물|스무|서른|마흔|쉰|예순|일흔|여든|아흔|[이삼사오육칠팔구]?십|백"
    r"|[一二三四五六七八九]?[十百][一二三四五六七八九]?",
    re.IGNORECASE,
)
_GREATEST = 100  # that such a word may mean
_MULTIPLES = (
    (
        2,
        r"twice|both|double|second|beide\w*|doppelt|zweit\w+|amb[ao]s|doble|pareja|segund\w+|deuxi\w+|entramb\w+|둘|쌍둥이|双子",
    ),
    (3, r"thrice|third|dritt\w+|tercer\w*|troisi\w+|terz\w|셋"),
    (4, r"fourth|viert\w+|cuart\w+|quatri\w+|넷"),
    (12, r"dozen|dutzend|docena|douzaine|dozzina|dúzia"),
)
_TIMES = tuple((number, expression(rf"(?<!\w)(?:{words})", re.IGNORECASE)) for number, words in _MULTIPLES)
_AMBIGUOUS = frozenset(("sei", "neuf", "second"))  # which are other words as well
_WIDE = ("zh", "ja", "ko")
_LEAST_PREFIX = 4  # letters of a number's word that may begin another: "dreijährig"


def holds_numbers(said: str, language: str, quoted: str, code: str, dates: Collection[int]) -> bool:
    """
    Whether every number that is *said* in *language* is *quoted*, in digits or words of the language *code*.

    The numbers of *dates* count where a date is said.
    """
    known = set(_known(quoted, code))
    dated = {str(number) for number in dates} if _is_dated(said, language, dates) else set()
    most = _GREATEST if _GREATER.search(quoted) else 1
    for number, clock in _numbers(said):
        readings = _readings(number)
        if clock:
            readings |= {
                str(int(one) + more) for one in readings if len(one) < 3 and one.isdecimal() for more in (-12, 12)
            }
        if (
            readings & (known | dated)
            or number.strip("0") == ""
            or (number.isdecimal() and len(number) < 4 and int(number) <= most)
        ):
            continue
        return False
    return all(str(number) in known | dated or number <= most for number in _spelled(said, language))


def says_number(number: str, text: str, code: str) -> bool:
    """Whether *text* holds a number that is given in digits, in digits or in words of its language."""
    return bool(_readings(number) & set(_known(text, code)))


def _known(quoted: str, code: str) -> Iterator[str]:
    """Yield the numbers that are quoted, in digits or words."""
    yield from map(str, amounts_in_words(quoted))
    for found in _AMOUNT.finditer(quoted):
        readings = _readings(found.group())
        yield from readings
        if _CLOCK.match(quoted, found.end()):
            yield from re.findall(r"\d+", found.group())
        for words, times in _MANY:
            if words.match(quoted, found.end()):
                yield from (_plain(f"{float(one) * times:.3f}") for one in readings if _DECIMAL.fullmatch(one))
    if _HALF.search(quoted):
        yield from ("0.5", "15", "30", "45")
    table = date_words()[code].numbers if code in date_words() else {}
    plain = quoted.casefold()
    heard = re.findall(r"\w+", plain)
    for word, value in table.items():
        starts = len(word) >= _LEAST_PREFIX and any(one.startswith(word) for one in heard)
        if word in heard or starts or (code in _WIDE and word in plain):
            yield _plain(str(value))
        if word in heard:  # "three thousand"
            ends = [found.end() for found in re.finditer(rf"\b{word}\b", plain)]
            yield from (
                _plain(f"{value * times:.3f}") for words, times in _MANY if any(words.match(plain, end) for end in ends)
            )
    yield from (str(number) for number, words in _TIMES if words.search(quoted))


def _numbers(said: str) -> Iterator[tuple[str, bool]]:
    """Yield each number that is said in digits, and whether it is of a clock."""
    for found in _AMOUNT.finditer(said):
        clock = bool(_CLOCK.match(said, found.end())) or said[found.start() - 1 : found.start()] == ":"
        yield found.group(), clock


def _readings(number: str) -> set[str]:
    """Return what a number in digits may mean: 1.000 is one and a thousand; 10.11.2025 is also its parts."""
    plain = re.sub(r"[\u00a0\u202f]", "'", number.replace(",", "."))
    found = {_plain(plain)}
    if _GROUPED.fullmatch(plain):
        found.add(_plain(re.sub(r"[.']", "", plain)))
    elif plain.count(".") > 1:
        found |= {_plain(part) for part in plain.split(".")}
    return found


def _plain(number: str) -> str:
    whole, point, part = number.partition(".")
    whole, part = whole.lstrip("0") or "0", part if "." in part else part.rstrip("0")
    return f"{whole}.{part}" if point and part else whole


def _spelled(said: str, language: str) -> set[int]:
    """Return the numbers from two that are said as words; none where words have no spaces between them."""
    if language in _WIDE or language not in date_words():
        return set()
    table = date_words()[language].numbers
    heard = set(re.findall(r"\w+", said.casefold())) - _AMBIGUOUS
    return {int(value) for word, value in table.items() if word in heard and value >= 2 and value == int(value)}


def _is_dated(said: str, language: str, dates: Collection[int]) -> bool:
    """Whether a date is said: with a year or the name of a month."""
    if any(int(number[:9]) in dates and int(number[:9]) > 1000 for number in re.findall(r"\d+", said)):
        return True
    months = date_words()[language].months if language in date_words() else ()
    return bool(re.search(r"월|月|\d:\d\d|\d\s?[시時点]", said)) or any(
        re.search(rf"\b(?:{month})", said, re.IGNORECASE) for month in months
    )
