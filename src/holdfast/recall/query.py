"""
A question's words, the speakers and days it names, and the shape of its answer.

Pure: no clock, no store.  The expressions are English; a question in another language loses a few
small bonuses by that and none of its words.
"""

from __future__ import annotations

import calendar
import re
import tomllib
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib import resources

from ..clock import to_ms
from ..scope import SELF
from ..text import dataclass, expression, remembered
from ..text.terms import language_of, query_terms, terms
from ..types import Fact

# Speakers that are nobody's name.
ROLE_NAMES = frozenset(("user", "human", "assistant", "ai", "bot", "system", "tool", "model"))

_WHEN = expression(r"^\s*when\b|\b(?:what|which) (?:year|month|date|day|time)\b", re.I)
_NUMBER = expression(r"\bhow (?:many|much|often|old|far|tall|big|large|long)\b|\bnumber of\b", re.I)
_ASSISTANT = expression(
    r"\b(?:did|have|had) you\b"
    r"|\byou (?:said|told|suggested|recommended|gave|mentioned|listed|provided|explained)\b"
    r"|\byour (?:advice|suggestion|recommendation|answer|response|explanation)s?\b",
    re.I,
)
# A question for one value, and the words that make it one about an earlier value, a course of things, or a total.
_VALUE = expression(r"^\W*(?:what|which|who|where|when|how (?:many|much|long|often|old|far|big|tall))\b", re.I)
_PRESENT = expression(r"\b(?:is|are|am|do|does|have|has|will|it's|what's)\b", re.I)
_PAST = expression(r"\b(?:did|was|were|had)\b", re.I)
_NOT_VALUE = expression(
    r"\b(?:first|initial(?:ly)?|original(?:ly)?|before|previous(?:ly)?|earlier|used to|ever|between|across"
    r"|total|different|ways?|order|should|could|would|can|calculate|you|your|change[ds]?|since|compared?|faster|common|typical)\b",
    re.I,
)

# A question for several things: a count, a plural, what has been done at any time, or what two people share.
_VERB = r"(?:did|do|does|has|have|had|is|are|am|was|were|will|would|can|could|should|might|s|ve)"
_SEVERAL = expression(
    r"\bhow many\b"
    rf"|\b(?:what|which|whose)(?: (?!{_VERB}\b)[\w'-]+){{0,5}}? (?!{_VERB}\b)"
    r"(?!(?:his|hers|its|yours|this|us|always|perhaps|news|bus|gas)\b)[a-z]{2,}(?<![us'i])s\b"
    r"|\b(?:what|which|who|where)(?:'s)? (?:are|have|has|were)\b"
    r"|\b(?:both|in common|list|all|every|each|various|several|different|ways|people)\b",
    re.I,
)
# A question that looks back at what was said or done; without it, and with these, it asks an assistant for help.
_LOOKS_BACK = expression(
    r"\b(?:did|was|were|had|ago|so far|over time|throughout|previous(?:ly)?|earlier|in order|conversations?|sessions?|discuss\w*"
    r"|mention\w*|said|told|have I|I've|(?:I|we) \w+ed|how (?:many|much|often|long)|when)\b",
    re.I,
)
_ADVICE = expression(
    r"\b(?:should I|(?:can|could|would) you|how (?:do|can|could|would) I|what (?:should|would|could|can)|suggest|recommend"
    r"|advi[cs]e|help|show|write|explain|tell me how|give me|tips|(?:best|good) ways?)\b",
    re.I,
)

# A question for the course of what was said, and the words of it that say nothing of what it was about.
_COURSE = expression(
    r"\b(?:throughout|across|over the course of|during|in|from|over) (?:all )?(?:of )?(?:our|my|these|those) (?:(?:past|previous|earlier|last|many) )?"
    r"(?:conversations?|chats?|discussions?|sessions?|talks)\b"
    r"|\b(?:order|sequence) in which (?:I|we)\b|\b(?:summar\w+|overview|recap|timeline) of (?:how|what)\b",
    re.I,
)
_FRAME = tuple(
    expression(pattern, re.I)
    for pattern in (
        r"(?<=[.!?])\s*(?:please )?(?:mention|list|name|give|include|answer|reply|use)\b[^.?!]*\bonly\b[^.?!]*[.?!]?\s*\Z",
        r"\b(?:throughout|across|over the course of|during|in|from|over) (?:all )?(?:of )?(?:our|my|these|those) (?:(?:past|previous|earlier|last|many) )?"
        r"(?:conversations?|chats?|discussions?|sessions?|talks)\b|\b(?:so far|over time)\b",
        r"\A\W*(?:please )?(?:can|could|would|will) you\b(?: please)?",
        r"\b(?:list|walk me through|(?:give|show|tell) me(?: about)?|remind me of|go through|summari[sz]e|outline|recap|describe)\b",
        r"\b(?:(?:an?|the) )?(?:(?:comprehensive|complete|clear|short|brief|full|quick) )?(?:summary|overview|recap|timeline|list|order|sequence) (?:of|in which)\b",
        r"(?:\b(?:how|that|which|what|when|everything) )?\b(?:I|we|you)(?:['\u2019]ve| have| had)? (?:first )?"
        r"(?:brought up|mentioned|discussed|talked about|raised|covered|asked about|told you about)\b",
        r"\b(?:the )?(?:(?:different|various|several|main|key) )?(?:\w+ )?(?:aspects?|topics?|parts?|details|concepts) (?:of|about|related to|around)\b",
        r",?\s*\bin (?:chronological |the right )?order\b",
    )
)


# What joins two questions in one.
_PART = expression(
    r"(?:[.!?;\n]+(?=\s|$)|,?\s+(?:and|or|as well as|plus|und|oder|sowie|y|o|et|ou|e)\s)\s*", re.IGNORECASE
)

# The names that a question is about: after a verb of asking, as an owner, or before a verb; and who asks of themselves.
_NAME = r"[A-Z][\w-]+(?: [A-Z][\w-]+)*"
_ASKED_OF = expression(
    r"\b(?i:did|do|does|is|are|was|were|has|have|had|will|would|can|could|should|might|may)(?:n.t)? (" + _NAME + r")"
    r"|(?<=[\w,] )(" + _NAME + r")(?:['\u2019]s\b| (?:did|does|is|was|has|had|will|would|can|could|should|might|may)\b)"
)
_CAPITALIZED = expression(r"(?<=[\w,;] )[A-Z][\w-]+")
_OF_ONESELF = expression(r"\b(?:i|me|my|mine|myself|we|us|our|ours)\b", re.I)

# The keys of what the user is called, and names that open a question as common words.
NAME_KEYS = frozenset(("name", "goes_by"))
_OPENERS = frozenset(
    "art bill chance dean drew earnest frank grace grant guy hope jack mark may miles pat penny rich rob rose sue ward will".split()
)

# What stands between two names that are joined, and what follows the name of an owner.
_JOINED = expression(r"\s*(?:,|&|\band\b|\bor\b|\s)+\s*", re.I)
_OWNS = expression(r"['\u2019]s\b")

_MONTH_OF = {name.lower(): number for number, name in enumerate(calendar.month_name) if name}
_MONTH_OF |= {name.lower(): number for number, name in enumerate(calendar.month_abbr) if name} | {"sept": 9}
_DATE = expression(
    r"\b(?:(\d{1,2})(?:st|nd|rd|th)?\s+(?:of\s+)?)?(" + "|".join(_MONTH_OF) + r")\b\.?\s*"
    r"(?:(\d{1,2})(?:st|nd|rd|th)?\b(?!\d))?,?\s*(\d{4})?"
)
_YEAR = expression(r"\b(20\d\d)\b")
_AGO = expression(r"\b(a|an|one|two|three|four|five|six|\d{1,3}) (day|week|month|year)s? ago\b")
_SPAN = expression(r"\b(yesterday|last (?:night|weekend|week|month|year)|this (?:weekend|week|month|year))\b")
_WEEKDAY = expression(r"\b(?:last|this|on) (mon|tues|wednes|thurs|fri|satur|sun)day\b")
_WEEKDAYS = ("mon", "tues", "wednes", "thurs", "fri", "satur", "sun")
# "in summer" alone may be any; "fall" and "spring" are words for other things, too.
_SEASON = expression(r"\b(last|this|(?:in|over|during) the) (spring|summer|autumn|fall|winter)\b(?! of\b)")
_SEASON_STARTS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_SEASON_DAYS = timedelta(days=92)
_COUNTS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
_SPAN_DAYS = {"day": 1, "night": 1, "week": 7, "weekend": 7, "month": 31, "year": 366}


@dataclass(frozen=True, slots=True)
class When:
    """
    The days that a question names: a date with parts left open, or a stretch before now.

    ``year``, ``month`` and ``day`` are ``None`` where the question leaves them open; ``span_ms`` is
    the stretch of a relative expression ("last week") and rules the others out.
    """

    year: int | None = None
    month: int | None = None
    day: int | None = None
    span_ms: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """
    A question, analysed.

    ``text`` is the question as it would be put to whom it is about ("When did Ana move?" becomes
    "When did you move?"): the vector of a name would find whoever is greeted by it, and users speak
    of themselves as one who is asked.  ``terms`` holds, for each word but the names, the terms
    under which a text may hold it, ``parts`` the same words by the questions that it joins.  ``speaker``
    is the participant that it is about; ``others`` are the terms of the names that it is about when it
    names no participant and is not about whoever asks.  ``asks_value`` says that it asks for one value, now or
    in the past, ``asks_present`` for the one that holds now, and ``capitalized`` are the terms of its names.
    """

    text: str
    terms: tuple[tuple[str, ...], ...]
    speaker: str | None
    asks_when: bool
    asks_number: bool
    asks_assistant: bool
    asks_value: bool
    asks_present: bool
    asks_several: bool
    asks_advice: bool
    when: When | None
    parts: tuple[frozenset[tuple[str, ...]], ...] = ()
    others: frozenset[str] = frozenset()
    capitalized: frozenset[str] = frozenset()


# What a question calls by its kind is told by its name.
_SPORTS = (
    "run running jog jogging marathon swim swimming climb climbing boulder bouldering cycle cycling bike biking hike hiking row rowing"
    " ski skiing snowboard surf surfing sail sailing skate skating dance dancing box boxing kickboxing judo karate taekwondo aikido"
    " fence fencing yoga pilates gym crossfit weightlifting gymnastics athletics triathlon soccer football basketball volleyball"
    " handball tennis badminton squash padel golf hockey rugby cricket baseball softball lacrosse riding"
)
_CALLED_BY_KIND = expression(
    r"\b(?:which|what) (?:kinds? of |type of )?(?:sports?|exercise|workouts?)\b|\bwhat do (?:i|we) do for (?:sport|exercise|fitness)\b"
    r"|\bhow do (?:i|we) (?:stay|keep|get) (?:fit|in shape|active)\b|\b(?:my|our) (?:sports?|exercise|workouts?)\b",
    re.I,
)
_KINDS_OF_SPORT = frozenset(("sport", "sports", "exercise", "workout", "workouts", "fitness", "fit", "shape", "active"))


@cache
def _stems_of_sports() -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the stems of words for sport, and those of the names of sports."""
    stems = (term for word in query_terms(_SPORTS, "en") for term in word)
    return _terms_of(_KINDS_OF_SPORT, "en"), tuple(dict.fromkeys(stems))


def _with_names_of_kind(question: str, words: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return the words of a question, with the names of sports beside the word for them where it asks for one."""
    if not _CALLED_BY_KIND.search(question):
        return list(words)
    kinds, names = _stems_of_sports()
    return [tuple(dict.fromkeys((*word, *names))) if not kinds.isdisjoint(word) else word for word in words]


def parse_question(question: str, *, names: Collection[str], now: datetime, language: str | None = None) -> Query:
    """
    Read *question*, asked *now* of a memory in which *names* have spoken.

    Role names ("user", "assistant") among the names are ignored.  *language* is the ISO 639-1 code
    of the question's words; ``None`` lets the words decide.
    """
    users = [name for name in names if name.lower() not in ROLE_NAMES]
    named = sorted((found.start(), name) for name in users if (found := _named(name).search(question)))
    speaker, course = _subject_of(question, named), bool(_COURSE.search(question))
    bare = text = _topic(question) if course else question
    for _, name in named:
        bare = _possessive(name).sub("", bare)
    terms = _with_names_of_kind(question, query_terms(bare, language)) or query_terms(
        question, language
    )  # nothing but a name: that is asked for
    if named and any(map(str.isalnum, bare)):
        spoken = (language or language_of(question)) == "en"
        text = _in_second_person(speaker, text, named) if spoken else bare
    when = find_days(question, now)
    asks_value = bool(_VALUE.search(question)) and not _NOT_VALUE.search(question)
    return Query(
        text=" ".join(text.split()),
        terms=tuple(terms),
        speaker=speaker,
        asks_when=bool(_WHEN.search(question)),
        asks_number=bool(_NUMBER.search(question)),
        asks_assistant=bool(_ASSISTANT.search(question)),
        asks_value=asks_value,
        asks_present=asks_value and bool(_PRESENT.search(question)) and not _PAST.search(question),
        asks_several=course or bool(_SEVERAL.search(question)),
        asks_advice=_asks_advice(question),
        when=when,
        parts=_words_of_parts(bare, tuple(terms), language),
        others=frozenset() if named or _OF_ONESELF.search(question) else _others(question, language),
        capitalized=_terms_of(_CAPITALIZED.findall(question), language),
    )


def _topic(question: str) -> str:
    """Return what a question for the course of things is about: "my move" of "In which order did we discuss my move?"."""
    left = question
    for words in _FRAME:
        left = words.sub(" ", left)
    return " ".join(left.split()) if re.search(r"\w{3}", left) else question


def participant_meant(name: str, names: Collection[str]) -> str | None:
    """Return the one of *names* that sounds like *name*, as which it may be meant: "Jon" for "John", "Elise" for "Eliza"."""
    sound = _sound(name)
    alike = [known for known in names if known.lower() not in ROLE_NAMES and _sound(known) == sound]
    return alike[0] if len(alike) == 1 and len(sound) > 2 else None


def names_without_text(question: str, query: Query, held: Collection[int]) -> list[str]:
    """Return the capitalized words inside *question* that no text holds; *held* are the places of the words of *query* that one does."""
    known = {term for place, word in enumerate(dict.fromkeys(query.terms)) if place in held for term in word}
    asked = {term for word in query.terms for term in word}
    unheld = []
    for word in dict.fromkeys(_CAPITALIZED.findall(question)):
        own = _terms_of((word,), None)
        if own and own <= asked and own.isdisjoint(known):
            unheld.append(word)
    return unheld


def _sound(name: str) -> str:
    """Return *name* with the spellings of one sound made equal: ph and f, c and k, y and i, z and s, doubled letters, a silent h, a last a or e."""
    sound = name.lower()
    for spelled, heard in (("ph", "f"), ("ck", "k"), ("c", "k"), ("y", "i"), ("z", "s")):
        sound = sound.replace(spelled, heard)
    sound = sound[:1] + sound[1:].replace("h", "")
    sound = re.sub(r"(.)\1", r"\1", sound)
    return f"{sound[:-1]}e" if sound.endswith("a") else sound


def _asks_advice(question: str) -> bool:
    """Whether *question* wants something made or advised now, not something told before."""
    return bool(_ADVICE.search(question)) and not (_LOOKS_BACK.search(question) or _ASSISTANT.search(question))


def _words_of_parts(
    question: str, words: tuple[tuple[str, ...], ...], language: str | None
) -> tuple[frozenset[tuple[str, ...]], ...]:
    """Return the words of each part of a question that joins several ("which database, and which editor?")."""
    texts = [text for text in _PART.split(question) if text.strip()]
    if len(texts) < 2:
        return (frozenset(words),) if words else ()
    spoken = language or language_of(question)
    parts = (frozenset(words).intersection(_with_names_of_kind(question, query_terms(text, spoken))) for text in texts)
    return tuple(part for part in parts if part)


def _others(question: str, language: str | None) -> frozenset[str]:
    """The terms of the names that *question* is about, months aside; none where most of its words are capitalized."""
    if 2 * len(re.findall(r"\b[A-Z]", question)) > len(question.split()) + 1:
        return frozenset()
    found = {name for names in _ASKED_OF.findall(question) for name in names if name.lower() not in _MONTH_OF}
    return _terms_of(found, language)


def _terms_of(names: Collection[str], language: str | None) -> frozenset[str]:
    return frozenset(term for name in names for word in query_terms(name, language) for term in word)


def _subject_of(question: str, named: Sequence[tuple[int, str]]) -> str | None:
    """
    Of the participants that *question* names, with where: the one it is about.

    Of several that is the first ("What did Ana give to Ben?"), unless the next one is joined to it
    ("Ana and Ben") or it only owns something ("Is Ana's dog older than Ben?").
    """
    if len(named) < 2:
        return named[0][1] if named else None
    (start, name), (after, _) = named[:2]
    between = question[start + len(name) : after]
    return None if _JOINED.fullmatch(between) or _OWNS.match(between) else name


def _in_second_person(speaker: str | None, question: str, named: Sequence[tuple[int, str]]) -> str:
    """*question* as it would be put to *speaker*: others who are named are then whoever asks."""
    for _, name in named:
        owner, user = ("your", "you") if speaker in (None, name) else ("my", "me")
        question = _named(name).sub(user, _owning(name).sub(owner, question))
    return question


def in_first_person(question: str, name: str, signed: str) -> str:
    """
    Return *question* with the user's *name* replaced by "I" and "my", or by the name that is *signed*.

    It stays as it is where it asks who that is, and where the name opens it as a common word does ("Will it rain?").
    """
    found = re.escape(name)
    if re.fullmatch(rf"(?:who(?:['\u2019]s| is| was) )?{found}\W*", question, re.I):
        return question
    owned = re.sub(rf"(?<!\w){found}(['\u2019]s)(?!\w)", rf"{signed}\1" if signed else "my", question)
    inside = rf"(?<=[\w,;:(] ){found}(?!\w)" + ("" if name.lower() in _OPENERS else rf"|\A{found}(?!\w)")
    return re.sub(inside, signed or "I", owned)


@remembered(1024)
def _named(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(name)}(?!\w)", re.I)


@remembered(1024)
def _possessive(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(name)}(?:['\u2019]s)?(?!\w)", re.I)


@remembered(1024)
def _owning(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(name)}['\u2019]s(?!\w)", re.I)


# What a question asks for by its name: "what's my job?", "which database do I use?".
_ASKED_BY_NAME = expression(
    r"\b(?:what|which|who|where|when|how)(?:['\u2019]?s|['\u2019]?re| (?:is|are|was|were|old is|big is|high is))? (?:my|our) "
    r"(?P<my>[a-z][\w' -]{1,30}?)(?: (?:now|again|called|like|at the moment|currently|these days|today))?\W*$"
    r"|\b(?:what|which) (?P<use>[a-z][a-z -]{1,30}?) (?:do|did|am|are|is) (?:i|we)\b"
    r"|\b(?:know|remember|recall|tell me|remind me(?: of)?|forgot|say) (?:what )?(?:my|our) (?P<known>[a-z][\w' -]{1,30}?)(?: (?:is|was|are))?\W*$",
    re.IGNORECASE,
)


# What a question asks for in a verb, without its name: "who employs me?".
_ASKED_BY_VERB = tuple(
    (expression(pattern, re.IGNORECASE), names)
    for pattern, names in (
        (
            r"\bwho (?:employs|pays|hired) (?:me|us)\b|\b(?:who|whom|where) (?:do|am) (?:i|we) (?:work|working|employed)\b"
            r"|\b(?:who|whom) (?:do|am) i (?:\w+ )?(?:work|working|employed) (?:for|with|by)\b",
            ("works_at",),
        ),
        (
            r"\bwhat do i do (?:for a living|for work|professionally|all day)\b|\bhow do i (?:earn|make) (?:my|a) (?:living|money)\b",
            ("works_as", "works_at"),
        ),
        (
            r"\bwhat (?:do|should|can|may) (?:you|people|they|one) call me\b|\bhow (?:do|should) you address me\b",
            ("goes_by", "name"),
        ),
        (
            r"\bwhat (?:do|am) i (?:drive|driving)\b|\bwhat(?:'s| is) my ride\b|\bhow do i get (?:to work|around)\b",
            ("drives",),
        ),
        (
            r"\b(?:what|which)\b[^.?!]{0,30}\b(?:can't|cannot|can not|mustn't|must not|shouldn't|should not|may not|am i not allowed to|must|should)"
            r" (?:i )?(?:not )?(?:eat|have|take|touch|avoid|stay away from|keep away from)\b",
            ("allergic_to", "intolerant_to", "does_not_eat"),
        ),
        (
            r"\bhow (?:should|do|would|must) (?:you|i|your) [^.?!]{0,25}\b(?:answer|reply|respond|phrase|write|word|talk|speak|replies|answers)\b"
            r"|\bhow (?:long|short|detailed) should (?:you|your)\b",
            ("communication",),
        ),
        (
            r"\bwhere (?:do|am|are) (?:i|we) (?:live|living|based|at home|reside|stay)\b|\b(?:which|what) (?:city|town|country|place) (?:do|am|are) (?:i|we)\b",
            ("lives_in",),
        ),
        (
            r"\bwhat do (?:i|we) do for (?:sport|exercise|fitness|fun)\b|\bhow do (?:i|we) (?:stay|keep|get) (?:fit|in shape|active)\b",
            ("hobby",),
        ),
        (r"\bhow much (?:can|may|should) (?:i|we) spend\b", ("budget",)),
        (r"\bwhen (?:was i born|do i turn|do i celebrate)\b", ("birth_date",)),
        (r"\bwho am i (?:married to|dating|with)\b", ("husband", "wife", "partner")),
        (r"\b(?:what|which) (?:drugs?|medicines?|medications?|pills?|tablets?) (?:do|am) i\b", ("medication",)),
    )
)


def names_asked_for(question: str) -> list[str]:
    """Return the names of what a question asks for: "job" of "What's my job?", "works_at" of "Who employs me?"."""
    named = [found["my"] or found["use"] or found["known"] for found in _ASKED_BY_NAME.finditer(question)]
    return named + [name for asked, names in _ASKED_BY_VERB if asked.search(question) for name in names]


# A question for what another does, by a name or a relation: "What does Ann do?", "What's my brother's job?", "Was macht Anna beruflich?".
_WHO_DOES = r"(?P<{0}>(?:my |our |mein[e]? )?[^\W\d][\w'’-]*(?: (?-i:[A-Z])[\w'’-]+)*)"
_ASKS_WORK = expression(
    rf"\bwhat does {_WHO_DOES.format('does')} (?:do|work as|work in)(?: (?:now|these days|at the moment|nowadays|again))?"
    r"(?: (?:for a living|for (?:her |his |their )?work|for a job|professionally|all day|as (?:a|her|his|their) job))?\W*$"
    rf"|\bwhat(?:['’]?s| is) {_WHO_DOES.format('owns')}['’]s (?:job|work|profession|occupation)\W*$"
    rf"|\bwhere does {_WHO_DOES.format('at')} work\W*$"
    rf"|\bwas macht {_WHO_DOES.format('macht')}(?: beruflich| von beruf)?\W*$",
    re.IGNORECASE,
)


def work_asked_of(question: str) -> frozenset[str]:
    """Return the terms for the other whose work a question asks for; none for other questions."""
    found = _ASKS_WORK.search(question)
    who = next(filter(None, found.groups()), "").lower() if found else ""
    who = re.sub(r"^(?:my|our|meine?) ", "", who)
    return frozenset() if who in _NOBODY else frozenset(terms(" ".join({who, _FORMAL.get(who, who)}), "en"))


_NOBODY = frozenset(("", "it", "this", "that", "she", "he", "they", "one", "someone", "everybody", "everyone", "he's"))


# A question for a name, and for nothing else: of whoever asks or answers, or of one of theirs.
_ASKS_NAME = expression(
    r"\bname of (?:my|our) (?P<of>[a-z-]+)\W*$|\b(?:my|our) (?P<whose>[a-z-]+?)['’]?s name\W*$|\bwhat(?:['’]?s| is) (?:my|our) (?P<called>[a-z-]+) (?:called|named)\W*$"
    r"|\b(?:my|your) (?:full |first |last |real |own )?name\W*$",
    re.IGNORECASE,
)


def name_asked_of(question: str) -> frozenset[str] | None:
    """Return the terms for the one whose name a question asks for, none where it is one's own; None for other questions."""
    found = _ASKS_NAME.search(question)
    if found is None:
        return None
    who = (found["of"] or found["whose"] or found["called"] or "").lower()
    return frozenset(terms(" ".join({who, _FORMAL.get(who, who)}), "en")) if who else frozenset()


_USES = expression(
    r"(?:the user |i |we )?(?:(?:now |mostly |also )*)(?:uses?|using|runs?|running|deploys?|hosts?|works? with|relies on|keeps?|tracks?|writes?|is on|are on) .*?",
    re.IGNORECASE,
)
_VERSION = expression(r" v?\d[\w.]*$")


def is_use_of(fact: Fact, tools: frozenset[str]) -> bool:
    """Whether a fact says that one of *tools* is used: the answer to "How do I make the CI faster?" is about GitHub Actions then."""
    if fact.kind == "attribute":
        return fact.category == "tech" and not tools.isdisjoint(
            _VERSION.sub("", name) for name in fact.value.casefold().split(" and ")
        )
    used = _USES.match(fact.text) if fact.kind == "statement" else None
    said = fact.text[used.end() :].casefold() if used else ""
    return any(re.search(rf"(?<![\w-]){re.escape(tool)}(?![\w-])", said) for tool in tools if tool in said)


# Which questions ask whether food, a remedy or an activity is right for somebody; ``hazards.toml`` says what bears on them.
_FOR_WHOM = expression(
    r"\b(?:i|i'm|i'd|i'll|i've|me|my|we|we're|we'll|us|our|let's|safe|ok|okay|fine|allowed|all right|alright|suitable|harmful|good idea"
    r"|recommend|suggest|suggestions?|order|cook|bake|prepare|book|plan|how about|what about)\b",
    re.IGNORECASE,
)
_WEIGHS = expression(
    r"\b(?:can|could|may|might|should|shall|would|do|does|safe|ok|okay|fine|allowed|all right|alright|suitable|harmful|bad|good|want|wanna|wants|going|gonna"
    r"|let's|try|order|ordering|eat|eating|drink|drinking|have|having|take|taking|cook|cooking|bake|baking|make|making|book|booking|recipe|ideas?|craving"
    r"|thinking of|how about|what about|recommend|suggest|offered|invited|worth|tempted|planning|prescribed)\b",
    re.IGNORECASE,
)
_NOT_WEIGHED = expression(
    r"\b(?:histor(?:y|ical)|capital|invent(?:ed|or)|discover(?:ed|er)|originat\w*|translat\w+|meaning|means?|spell|pronounce|defin\w+|explain|difference between|poem"
    r"|story|stories|joke|song|essay|blog|logo|calories|nutritional|price|stock|shares?|company|called|wikipedia|film|movie|novel|lyrics|css|html|python|javascript|docker"
    r"|linux|code|file|script|function|server|database|spreadsheet|excel|powerpoint|slide|thesis|paint|wallpaper|marketing|startup|painting|photo|drawing|image|emoji)\b"
    r"|\btell me about\b|\b(?:i|we) (?:had|ate|drank|made|cooked|went|was|were|saw|loved|used)\b",
    re.IGNORECASE,
)
_MEAL = expression(
    r"\b(?:what|where|which|recommend|suggest|suggestions?|ideas?|plan|find|book|any|need|give)\b[^.?!]{0,60}?\b(?:eat|cook(?! the books)|bake|restaurants?|recipes?|meals?|meal plan"
    r"|menu|snacks?|takeaway|takeout|desserts?|dinner|lunch|breakfast|brunch|supper|barbecue|bbq|potluck|groceries|grocery|shopping list|dish(?:es)?|food|starter|picnic)\b"
    r"|\bcook (?:me|us|for)\b",
    re.IGNORECASE,
)
_REMEDY = expression(
    r"\b(?:take|use|give me|recommend|suggest|help(?:s)?|something|anything|medicine|pill|tablet)\b[^.?!]{0,30}?\b(?:for|against|with|about)\b[^.?!]{0,30}?\b(?:headache|migraine|pain|throat|cold"
    r"|flu|fever|cough|cramps?|infection|toothache|back|nausea|hay ?fever|allerg\w+|rash|insomnia|sleep|stomach|diarrhoea|diarrhea|heartburn|constipation|sinus\w*|hangover|ache)\b"
    r"|\b(?:painkillers?|antibiotics?|over[- ]the[- ]counter)\b",
    re.IGNORECASE,
)
_RESTRICTS = expression(
    r"\b(?:allerg\w+|intoleran\w+|sensitive to|afraid|scared|fear|phobi\w+|\w+phobi\w+|terrified|\w*sick|can(?:not|'t)|(?:does|do) not|doesn't|don't|never|avoids?|hates|dislikes"
    r"|vegan|vegetarian|pescatarian|pescetarian|plant-based|halal|kosher|keto|diet|diabet\w+|pregnan\w+|breastfeeding|coeliac|celiac|sober|recover\w+|injur\w+|pain|bad (?:back|knee|knees|shoulder))\b",
    re.IGNORECASE,
)
_DIETS = expression(
    r"\b(?:allerg\w+|intoleran\w+|vegan|vegetarian|pescatarian|pescetarian|plant-based|halal|kosher|coeliac|celiac|gluten|lactose|diabet\w+|keto\w*"
    r"|(?:does not|doesn't|can't|cannot|never) (?:eat|drink|have|stand|tolerate)|avoids|diet)\b",
    re.IGNORECASE,
)
_EVERYONE = expression(
    r"\b(?:we|us|our|let's|family|kids|children|guests?|everyone|everybody|together|both)\b", re.IGNORECASE
)
_RESTRICTED = frozenset(("allergy", "dietary", "health", "medication"))
_RESTRICTED_KEYS = frozenset(("does_not_eat", "avoids", "observes", "dislikes", "does_not_drink", "afraid_of"))
_ITEM_WORD = expression(r"[^\W_](?:[\w'’.&-]*\w)?")
_MOST_ITEM_WORDS = 4


@cache
def _hazards() -> tuple[Mapping[str, frozenset[str]], Mapping[str, re.Pattern[str]]]:
    """Return the names of the hazards of each thing in ``hazards.toml``, and by name the words of facts about each hazard."""
    data = tomllib.loads((resources.files(__package__) / "hazards.toml").read_text(encoding="utf-8"))["hazard"]
    by_name = {one["name"]: one for one in data}

    def things(one: Mapping[str, str]) -> set[str]:
        own = {thing for word in one.get("asked", "").split(",") if (thing := _one_thing(word))}
        return own.union(*(things(by_name[name.strip()]) for name in one.get("in", "").split(",") if name))

    holding = dict[str, set[str]]()
    for name, one in by_name.items():
        for thing in things(one):
            holding.setdefault(thing, set()).add(name)
    words = {
        name: "|".join(re.escape(word.strip()) for word in one["facts"].split(",")) for name, one in by_name.items()
    }
    facts = {
        name: re.compile(rf"(?<![\w-])(?:{any_of})(?:s|es)?(?![\w-])", re.IGNORECASE) for name, any_of in words.items()
    }
    return {thing: frozenset(names) for thing, names in holding.items()}, facts


def _one_thing(words: str) -> str:
    """Return a name in lower case and the singular: "gummy bear" of "Gummy bears"."""
    name = words.strip().lower().replace("\u2019", "'")
    name = f"{name[:-3]}y" if name.endswith("ies") and len(name) > 5 else name
    return name[:-1] if name.endswith("s") and not name.endswith(("ss", "us", "is")) and len(name) > 3 else name


class Hazards:
    """Find the beliefs about health and diet that bear on a question, though they share no word with it."""

    def __init__(self, question: str) -> None:
        """Look for food, medicines and activities in *question*, where it asks whether they are right for the user."""
        self.everyone, self.said = _EVERYONE.search(question) is not None, frozenset(terms(question, "en"))
        self.relative = _RELATIVE.search(question) is not None
        self.words: tuple[re.Pattern[str], ...] = ()
        weighed = bool(_WEIGHS.search(question) and _FOR_WHOM.search(question)) and not _NOT_WEIGHED.search(question)
        self.meal = weighed and _MEAL.search(question) is not None
        self.remedy = weighed and _REMEDY.search(question) is not None
        if weighed:
            things, facts = _hazards()
            said = _ITEM_WORD.findall(question.lower())
            spans = (said[at : at + size] for size in range(1, _MOST_ITEM_WORDS + 1) for at in range(len(said)))
            names = {name for span in spans for name in things.get(_one_thing(" ".join(span)), ())}
            self.words = tuple(facts[name] for name in sorted(names))

    def __bool__(self) -> bool:
        """Whether any belief can bear on the question."""
        return bool(self.words or self.meal or self.remedy)

    def bearing(self, facts: Sequence[Fact], names: Mapping[str, Collection[str]], own: Sequence[Fact]) -> list[Fact]:
        """Return what bears on it: of those whom the question names, of everyone where it asks for all, or else of the user."""
        named = {one for one, words in names.items() if one != SELF and not self.said.isdisjoint(words)}
        if self.everyone or named or self.relative:
            own = [fact for fact in facts if self.everyone or fact.subject in named]
        return [fact for fact in own if self and self._touches(fact)]

    def _touches(self, fact: Fact) -> bool:
        """Whether a fact speaks against something in the question for the one that it is about."""
        text = f"{fact.key.replace('_', ' ')} {fact.value} {fact.text}"
        if fact.category not in _RESTRICTED and fact.key not in _RESTRICTED_KEYS and not _RESTRICTS.search(text):
            return False
        if fact.text.startswith("Their ") and not self.everyone:
            return False
        if self.meal and (fact.category in ("allergy", "dietary") or _DIETS.search(text)):
            return True
        if self.remedy and fact.category in ("allergy", "medication"):
            return True
        return any(words.search(text) for words in self.words)


# Who is asked about in words that name nobody, and what asks of whoever asks.
_OF_ANYBODY = expression(
    r"\b(?:he|she|they|him|her|his|hers|them|their|theirs|it|its|who|whose|whom|which of|(?:any|some|every)(?:one|body)|nobody|family|household|kids?|children"
    r"|pets?|dogs?|cats?|friends?|colleagues?|relatives?|parents?|siblings?|we|us|ours?|both|er|sie|ihn|ihm|ihr|ihre[nrsm]?|sein\w*|wer|wem|wen|wessen|wir|uns\w*)\b",
    re.IGNORECASE,
)
_WHO_FIRST = expression(r"^\W*whom?\b", re.IGNORECASE)
_IS_QUESTION = expression(
    r"\?\s*$|^\W*(?:whom?|what|which|where|when|how|do|does|did|am|is|are|was|were|can|has|have|was|welche\w*|wo|wann|wie)\b",
    re.IGNORECASE,
)
_ASKS_ME = expression(r"\b(?:tell|remind|show|give|help|sag|sage?|erinnere?|zeige?) (?:me|mir|mich)\b", re.IGNORECASE)
_ONESELF = expression(r"\b(?:i|me|mine|myself|ich|mir|mich)\b", re.IGNORECASE)


_RELATIVE = expression(
    r"\bmy (?:\w+ )?(?P<who>brother|sister|mother|mom|mum|father|dad|wife|husband|partner|son|daughter|girlfriend|boyfriend|aunt|uncle|cousin"
    r"|grandmother|grandma|grandfather|grandpa|nephew|niece|roommate|flatmate|neighbou?r)(?:'s)?\b(?! (?:tongue|board))",
    re.IGNORECASE,
)
_FORMAL = {
    "mom": "mother",
    "mum": "mother",
    "dad": "father",
    "grandma": "grandmother",
    "grandpa": "grandfather",
    "flatmate": "roommate",
}


def subjects_asked(
    question: str, query: Query, subjects: Iterable[tuple[str, frozenset[str]]], *, own: str
) -> frozenset[str]:
    """
    Return the subjects that *question* is about, by their names and by "I"; empty where it may be about any of them.

    A relative of whom nothing is known is named by the terms for one: "brother".

    Args:
        question: its words, in English or German; for others, and for what is no question, the answer is empty.
        query: the same, analyzed.
        subjects: each subject with the terms that name it.
        own: the subject of whoever asks.
    """
    bare = _WHO_FIRST.sub("", question) if names_asked_for(question) else question  # "who employs me?" asks of oneself
    if not _IS_QUESTION.search(question) or query.asks_advice or _OF_ANYBODY.search(bare):
        return frozenset()
    words = {term for word in query.terms for term in word}
    relative = _RELATIVE.search(question)
    called = (
        frozenset(terms(" ".join({who := relative["who"].lower(), _FORMAL.get(who, who)}), "en"))
        if relative
        else frozenset[str]()
    )
    words |= called
    named = {subject for subject, names in subjects if subject != own and not names.isdisjoint(words)}
    if _ONESELF.search(_ASKS_ME.sub("", question)):
        return frozenset(named | {own})
    if called and not named:
        return called  # nothing is known of this one, and what is known of others is no answer
    return frozenset(named) if language_of(question) in ("en", "de") else frozenset()


def find_aliases(
    query: Query, aliases: Collection[tuple[tuple[str, ...], int]]
) -> tuple[frozenset[int], frozenset[tuple[str, ...]]]:
    """
    Return the places of the facts that a question calls by an alias, and the words of the question that do so.

    The words of an alias follow one another in the question, stop words between them aside.
    """
    asked = [frozenset(word) for word in query.terms]
    held = frozenset[str]().union(*asked)
    places, words = set[int](), set[tuple[str, ...]]()
    for alias, place in aliases:
        if not held.issuperset(alias):
            continue
        for start in range(len(asked) - len(alias) + 1):
            if all(term in asked[start + at] for at, term in enumerate(alias)):
                places.add(place)
                words.update(query.terms[start : start + len(alias)])
    return frozenset(places), frozenset(words)


# Shorter words have too many neighbors; a letter put for another is told from another word in longer ones alone.
LEAST_LETTERS, _LEAST_COMMON, _LEAST_SUBSTITUTED = 4, 6, 7
MOST_SPELLINGS = 3  # in which a word that a memory does not hold is looked for
_MOST_APPENDED = 4


def nearest_spellings(word: str, known: Sequence[str], dictionary: Container[str]) -> list[str]:
    """Return the *known* terms as which *word* may be meant, the nearest in length; the first in the alphabet among equals."""
    near = [term for term in known if is_spelling_of(term, word, dictionary)]
    return sorted(near, key=lambda term: (abs(len(term) - len(word)), term))[:MOST_SPELLINGS]


def is_spelling_of(term: str, word: str, dictionary: Container[str]) -> bool:
    """
    Whether *word*, which a memory does not hold, is likely meant as its *term*: both as stems.

    One letter is missing, too many, exchanged with its neighbor, or (in long words) another; or one of the two goes on
    for up to four letters ("mongo", "mongodb"). Two words of the *dictionary* are two words, and so are a short one and
    what only resembles it ("ready", "redis").
    """
    if min(len(word), len(term)) < LEAST_LETTERS or not (word.isalpha() and term.isalpha()):
        return False
    if word.endswith("y"):  # a stem ends in "i" where its word may end in "y"
        word = f"{word[:-1]}i" if term.endswith("i") else word
    longer, shorter = (word, term) if len(word) >= len(term) else (term, word)
    if longer == shorter:
        return True
    if len(longer) - len(shorter) > 1 and not longer.startswith(shorter):
        return False
    if longer in dictionary and (shorter in dictionary or longer.startswith(shorter)):
        return False
    if word in dictionary and len(shorter) < _LEAST_COMMON:
        return False
    if longer.startswith(shorter):
        return len(longer) - len(shorter) <= _MOST_APPENDED
    return _one_slip(longer, shorter)


def _one_slip(longer: str, shorter: str) -> bool:
    at = next(place for place, (one, other) in enumerate(zip(longer, shorter, strict=False)) if one != other)
    if len(longer) != len(shorter):
        return longer[:at] + longer[at + 1 :] == shorter
    if longer[at + 1 :] == shorter[at + 1 :]:
        return len(longer) >= _LEAST_SUBSTITUTED
    return longer[at : at + 2] == shorter[at : at + 2][::-1] and longer[at + 2 :] == shorter[at + 2 :]


def find_days(question: str, now: datetime) -> When | None:
    """Return the first date, bare year or relative expression of *question*; ``None`` when it names none."""
    lowered = question.lower()
    found = _DATE.search(lowered)
    if found and not (found[2] == "may" and not (found[1] or found[3] or found[4])):
        day = found[1] or found[3]
        return When(_year(found[4]), _MONTH_OF[found[2]], int(day) if day else None)
    if year := _YEAR.search(lowered):
        return When(year=int(year[1]))
    return _relative_days(lowered, now)


def _year(digits: str | None) -> int | None:
    """A year that the calendar has; others are left open."""
    return int(digits) if digits and int(digits) > 1 else None


def _relative_days(lowered: str, now: datetime) -> When | None:
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if found := _AGO.search(lowered):
        unit = timedelta(days=_SPAN_DAYS[found[2]])
        count = _COUNTS.get(found[1]) or int(found[1])
        middle = _minus(today, unit * count)
        return _span(_minus(middle, unit / 2), middle + unit / 2 + timedelta(days=1))
    if found := _SPAN.search(lowered):
        words = found[1].split()
        length = timedelta(days=_SPAN_DAYS["day" if words[0] == "yesterday" else words[1]])
        if words[0] == "this":
            return _span(_minus(today, length), today + timedelta(days=1))
        return _span(_minus(today, length * 2 - timedelta(days=length.days > 1)), today)
    if found := _WEEKDAY.search(lowered):
        start = _minus(today, timedelta(days=(today.weekday() - _WEEKDAYS.index(found[1]) - 1) % 7 + 1))
        return _span(start, start + timedelta(days=1))
    if found := _SEASON.search(lowered):
        return _season(today, found[2], past=found[1] == "last")
    return None


def _season(today: datetime, name: str, *, past: bool) -> When | None:
    """Return the latest season of that *name* that has begun, in the north; one that is over if it must be *past*."""
    start = today.replace(month=_SEASON_STARTS[name], day=1)
    while start > today or (past and today - start < _SEASON_DAYS):
        if start.year == 1:
            return None
        start = start.replace(year=start.year - 1)
    return _span(start, today + timedelta(days=1) if today - start < _SEASON_DAYS else start + _SEASON_DAYS)


def _minus(at: datetime, by: timedelta) -> datetime:
    """*at* minus *by*, held within the calendar."""
    return at - min(by, at - datetime.min.replace(tzinfo=UTC))


def _span(start: datetime, end: datetime) -> When:
    return When(span_ms=(to_ms(start), to_ms(end)))
