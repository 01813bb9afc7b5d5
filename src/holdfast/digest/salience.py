"""
Salience: the sentences and themes of a chat that matter, chosen without a model.

A sentence gains by what it shares with the other messages (term centrality), by what it holds
(numbers, dates, names, first persons, decisions, troubles, advice, an answer to a question), and
loses by being a greeting, a reaction or a question.  The best are taken one by one, each compared
with those already taken (maximal marginal relevance), so that nothing is said twice.
"""

from __future__ import annotations

import math
import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import cache
from importlib import resources
from itertools import pairwise

from ..text import dataclass, expression
from ..text.languages import ENGLISH_STOP, STOP
from ..text.sentences import split_sentences
from ..text.terms import language_of, terms
from ..types import Message
from .authorship import split_authorship

SENTENCE_WORDS = 26
MAX_SPEAKER_CHARS = 40
# What a sentence gains for what it holds; tuned by reading summaries of real chats.
WORTH = {
    "decision": 0.5,
    "promise": 0.2,
    "alarm": 0.7,
    "problem": 0.4,
    "feeling": 0.3,
    "preference": 0.4,
    "when": 0.25,
    "self": 0.3,
    "happened": 0.35,
}
NUMBER, NAME, ANSWER, RELEVANT, CENTRAL, OPENING = 0.4, 0.35, 0.25, 0.4, 0.8, 0.1
EMPTY, ASIDE, SUPPOSED = -0.9, -0.3, -0.6
QUESTION_TO_PERSON, QUESTION_TO_ASSISTANT = -0.6, -0.1
# What is said to another of what is theirs ("You're doing great") tells of neither; between people "I love your …" and "Let's …" do not, either.
TO_OTHER, TO_OTHER_OF_SELF = -0.8, -0.6
CONCRETE = frozenset(("number", "name", "when", "alarm", "decision", "problem", "recommend"))
NEWS = CONCRETE | {"happened"}
ADVICE = 0.35
# What counts of an assistant's sentence, and what a user's gains that is not about the user.
ASSISTANT, USERS_MATTER = 0.8, 0.2
# The importance of an event, from its words.
IMPORTANCE = {"alarm": 0.3, "promise": 0.25, "decision": 0.25, "feeling": 0.2, "problem": 0.2}
LEAST_IMPORTANCE, FIRST_TIME, DATED = 0.4, 0.2, 0.05
_FIRST = expression(
    r"\b(?:first|erste[rmns]?|prim(?:er[ao]?|eir[ao])|prima|primo|premi(?:er|ère))\b|第一次|初めて|初次|처음|첫",
    re.IGNORECASE,
)
REDUNDANCY = 0.9
LEAST_WORTH = 0.2  # of a sentence of a summary, however much room there is
UNHEARD = 0.15  # what a sentence gains while none of its message is chosen
NEWS_WORDS, NEWS_SHARE = 18.0, 0.5  # of what a user stated last, and the share of a summary that it may take
SHORT_ANSWER_WORDS = 6.0
FRAGMENT_WORDS = 6.0
_STOPS = ".!?…。！？"
_QUESTION_MARKS = ("?", "？", "؟")


@dataclass(slots=True, eq=False)
class Unit:
    """One sentence to choose from: ``text`` as a summary would say it, ``words`` its length."""

    place: int
    message: int
    role: str
    speaker: str
    text: str
    words: float
    question: bool
    signs: frozenset[str]
    terms: Counter[str]
    date: str = ""
    score: float = 0.0
    needs: Unit | None = (
        None  # the question without which a short answer says nothing, or the sentence that says who "she" is
    )


@dataclass(slots=True)
class ChatReading:
    """The scored sentences of a stretch of messages, its language and its speakers."""

    units: list[Unit]
    words: SalienceWords
    users: frozenset[str]
    has_assistant: bool
    total_words: float = 0.0
    tools: dict[int, list[str]] = field(default_factory=dict)


def speaks(message: Message) -> bool:
    """Whether *message* holds someone's words: no instruction, no tool result."""
    return message.role in ("user", "assistant") and not message.meta.get("tool_call_id")


def speaker_of(message: Message) -> str:
    """Return the speaker's name on one line of bounded length."""
    return " ".join(message.speaker.split())[:MAX_SPEAKER_CHARS] or message.role


def read(messages: Sequence[Message]) -> ChatReading:
    """Score the sentences of users and assistants; system messages and tool results count for nothing."""
    spoken = [m for m in messages if speaks(m)]
    words = load_salience_words(_language(spoken))
    users = frozenset(speaker_of(m) for m in spoken if m.role == "user")
    names = {part for m in spoken if m.name for part in (m.name, *m.name.split()[:1])}
    reading = ChatReading([], words, users, any(m.role == "assistant" for m in spoken))
    for index, message in enumerate(messages):
        called = called_tools(message)
        if called:
            reading.tools[index] = called
        if not speaks(message):
            continue
        own_text, others = split_authorship(message.content) if message.role == "user" else (message.content, "")
        if size(others) < FRAGMENT_WORDS and "<" not in others:  # "The result came: all fine.", but no tag of a page
            own_text, others = message.content, ""
        for sentence, quoted in [(s, False) for s in sentences(own_text)] + [(s, True) for s in sentences(others)]:
            reading.total_words += size(sentence)
            unit = _unit(message, index, sentence, reading, names)
            if unit is not None and not (quoted and unit.words < FRAGMENT_WORDS):
                reading.units.append(_quoted(unit) if quoted else unit)
    _score(reading)
    return reading


def _quoted(unit: Unit) -> Unit:
    """Mark a sentence of a text that the user pasted: it is not what the user says."""
    return replace(unit, text=f"“{unit.text}”", signs=frozenset({"aside"}), question=False)


def called_tools(message: Message) -> list[str]:
    """Return the names of the tools that *message* calls, in order."""
    calls = message.meta.get("tool_calls")
    if not isinstance(calls, Sequence) or isinstance(calls, str):
        return []
    names = []
    for call in calls:
        inner = call.get("function") if isinstance(call, dict) else None
        name = (inner if isinstance(inner, dict) else call if isinstance(call, dict) else {}).get("name")
        if isinstance(name, str) and name.strip():
            names.append(" ".join(name.split())[:MAX_SPEAKER_CHARS])
    return names


def _language(messages: Sequence[Message]) -> str:
    """Return the language of most of the text; the users' where they wrote enough."""
    votes: Counter[str] = Counter()
    for message in messages:
        head = message.content[:400]
        votes[language_of(head)] += len(head) * (2 if message.role == "user" else 1)
    return max(votes, key=lambda language: (votes[language], language)) if votes else "en"


def _unit(message: Message, index: int, sentence: str, reading: ChatReading, names: set[str]) -> Unit | None:
    words = reading.words
    text = trim(sentence, words, names)
    if text.endswith((":", "：")) and message.role == "assistant":
        return None
    text = shorten(text, SENTENCE_WORDS, words)
    if not any(ch.isalnum() for ch in text):
        return None
    plain = own(text)
    signs = set(words.signs(plain))
    if text.startswith("[") and text.endswith("]"):
        signs = {"aside"}
    if message.role == "assistant" and size(text) < FRAGMENT_WORDS and text[-1] not in _STOPS:
        signs.add("aside")  # an item of a list or a heading, seldom a statement
    if any(ch.isdecimal() for ch in text):
        signs.add("number")
    if any(word[:1].isupper() and word not in ("I", "I'm", "I've", "I'll", "I'd") for word in plain.split()[1:]):
        signs.add("name")
    return Unit(
        place=len(reading.units),
        message=index,
        role=message.role,
        speaker=speaker_of(message),
        text=text,
        words=size(text),
        question=sentence.rstrip(" \"'”’)").endswith(_QUESTION_MARKS),
        signs=frozenset(signs),
        terms=Counter(terms(text, words.language)),
        date=message.at.date().isoformat() if message.at else "",
    )


def _score(reading: ChatReading) -> None:
    units = reading.units
    spread: dict[str, set[int]] = {}
    for unit in units:
        for term in unit.terms:
            spread.setdefault(term, set()).add(unit.message)
    shared = {term: len(found) - 1 for term, found in spread.items()}
    central = [sum(shared[term] for term in unit.terms) / (len(unit.terms) + 3) for unit in units]
    top = max(central, default=0.0) or 1.0
    said: dict[int, Counter[str]] = {}
    for unit in units:
        said.setdefault(unit.message, Counter()).update(unit.terms)
    asked = {unit.message: unit for unit in units if unit.question}
    before = {message: earlier for earlier, message in zip(list(said), list(said)[1:], strict=False)}
    seen: set[int] = set()
    last: Unit | None = None
    for unit, share in zip(units, central, strict=True):
        score = CENTRAL * share / top + _unit_worth(unit, reading)
        first = unit.message not in seen and "empty" not in unit.signs
        question = asked.get(before.get(unit.message, -1))
        if question is not None and question.speaker != unit.speaker and not unit.question:
            score += ANSWER * first + RELEVANT * cosine(unit.terms, said[question.message])
            if first and unit.words < SHORT_ANSWER_WORDS:
                unit.needs = question
        names = last is not None and last.message == unit.message and "empty" not in last.signs
        if names and "leans" in unit.signs:
            unit.needs = last
        score += OPENING * first
        if first:
            seen.add(unit.message)
        last = unit
        score *= ASSISTANT if unit.role == "assistant" and score > 0 else 1.0
        unit.score = score * (1.0 if unit.needs else length_factor(unit.words))


def _unit_worth(unit: Unit, reading: ChatReading) -> float:
    signs = unit.signs
    score = NUMBER * ("number" in signs) + NAME * ("name" in signs)
    if unit.role == "assistant":
        # Its own "I", its plans and its feelings say nothing about the user.
        score += ADVICE * ("recommend" in signs) + sum(
            0.4 * WORTH[kind] for kind in ("decision", "when") if kind in signs
        )
        score += WORTH["alarm"] * ("alarm" in signs)
    else:
        felt = signs - {"problem", "feeling"} if "calm" in signs else signs
        score += sum(worth for kind, worth in WORTH.items() if kind in felt)
        score += USERS_MATTER * (reading.has_assistant and "self" not in signs and not unit.question)
    if "empty" in signs:
        score += EMPTY
    if "other" in signs and not unit.question and not signs & CONCRETE:
        score += TO_OTHER_OF_SELF if "self" in signs else TO_OTHER
    score += ASIDE * ("aside" in signs) + SUPPOSED * ("supposed" in signs)
    if unit.question:
        score += QUESTION_TO_ASSISTANT if reading.has_assistant and unit.role == "user" else QUESTION_TO_PERSON
    return score


def importance_of(text: str, language: str) -> float:
    """Return from 0 to 1 how much an event matters: promises, decisions, first times, feelings and trouble more than the rest."""
    signs = load_salience_words(language).signs(straight(text))
    worth = LEAST_IMPORTANCE + sum(more for kind, more in IMPORTANCE.items() if kind in signs)
    worth += FIRST_TIME * bool(_FIRST.search(text)) + DATED * any(ch.isdecimal() for ch in text)
    return round(min(1.0, worth), 2)


def length_factor(words: float) -> float:
    """Return the factor by which a short sentence loses worth."""
    return 0.4 if words < 2.5 else 0.75 if words < 4.5 else 0.9 if words < 6.5 else 1.0


def cosine(a: Counter[str], b: Counter[str]) -> float:
    """Return the cosine similarity of two bags of terms, from 0 to 1."""
    if len(b) < len(a):
        a, b = b, a
    dot = sum(count * b[term] for term, count in a.items() if term in b)
    if not dot:
        return 0.0
    return dot / math.sqrt(sum(n * n for n in a.values()) * sum(n * n for n in b.values()))


def is_news(signs: frozenset[str], has_assistant: bool) -> bool:
    """Whether a statement of a user is news; people who talk with one another often end by cheering."""
    return not signs & {"empty", "aside"} and ((has_assistant and "other" not in signs) or bool(signs & NEWS))


def newest(units: Sequence[Unit], budget_words: float) -> list[Unit]:
    """Return the last statement of a user, or the best of it where it is long: a summary has to say how things are now."""
    helped = any(unit.role == "assistant" for unit in units)
    left = [unit for unit in units if unit.role == "user" and not unit.question and is_news(unit.signs, helped)]
    news: list[Unit] = []
    while left and sum(unit.words for unit in news) < SHORT_ANSWER_WORDS:  # "I'm relieved." follows on what came before
        last = [unit for unit in left if unit.message == left[-1].message]
        left = left[: -len(last)]
        for unit in sorted(last, key=lambda unit: (-unit.score, unit.place)):
            if not news or sum(each.words for each in (*news, unit)) <= min(NEWS_WORDS, NEWS_SHARE * budget_words):
                news.append(unit)
    return sorted(news, key=lambda unit: unit.place)


def select(
    units: Sequence[Unit],
    budget_words: float,
    *,
    first: Sequence[Unit] = (),
    per_message: int,
    least: float,
    enough_words: float,
    shares: Mapping[str, float],
) -> list[Unit]:
    """
    Select the best units within *budget_words*, in the order in which they were said; those of *first* in any case.

    At most *per_message* come from one message, and of a role in *shares* that part of the words.  Below a
    score of *least* nothing is taken once there are *enough_words*, and nothing of next to no worth at all.
    """
    chosen: list[Unit] = []
    alike = [0.0] * len(units)
    left, taken = {i for i, unit in enumerate(units) if unit.score > 0 or unit in first}, Counter[int]()
    total, by_role = 0.0, Counter[str]()
    while left:
        fresh = {
            i: units[i].score - REDUNDANCY * alike[i] + (UNHEARD if not taken[units[i].message] else 0.0) for i in left
        }
        best = max(left, key=lambda i: (units[i] in first, fresh[i], -i))
        unit = units[best]
        news = unit in first
        if not news and (fresh[best] < LEAST_WORTH or (fresh[best] < least and total >= enough_words)):
            break
        left.remove(best)
        exchange = [unit] if unit.needs is None or unit.needs in chosen else [unit.needs, unit]
        cost = sum(each.words for each in exchange)
        room = shares.get(unit.role, 1.0) * budget_words - by_role[unit.role]
        if news and total + cost > budget_words:
            exchange, cost = [unit], unit.words
        elif taken[unit.message] >= per_message or total + cost > budget_words or unit.words > room:
            continue
        total += cost
        by_role[unit.role] += math.ceil(unit.words)
        taken[unit.message] += 1
        chosen += exchange
        places = {each.place for each in exchange}  # not their index, where repeated sentences were left out
        left = {i for i in left if units[i].place not in places}
        for i in left:
            alike[i] = max(alike[i], cosine(units[i].terms, unit.terms))
    return sorted(chosen, key=lambda unit: unit.place)


LANGUAGES = ("de", "en", "es", "fr", "ja", "ko", "zh")
_UNSPACED = ("ja", "ko", "zh")
KINDS = (
    "self",
    "other",
    "leans",
    "happened",
    "supposed",
    "decision",
    "promise",
    "recommend",
    "alarm",
    "problem",
    "feeling",
    "calm",
    "preference",
    "when",
    "empty",
    "farewell",
)
_TOKEN = expression(r"[\w']+(?:-[\w']+)*")
_EDGE_MARKS = " \t.,!?…。，、！？~:;\"'()"
_NOTHING: frozenset[str] = frozenset()


@dataclass(slots=True)
class _Entries:
    """All entries of a lexicon with their kinds, indexed by a word that a sentence must hold."""

    words: dict[str, set[str]] = field(default_factory=dict)
    beginnings: dict[str, list[tuple[str, str]]] = field(default_factory=dict)  # by their first two letters
    phrases: dict[str, list[tuple[str, str]]] = field(default_factory=dict)  # by their first word
    openings: dict[str, list[tuple[str, str]]] = field(default_factory=dict)  # by their first word
    wholes: dict[str, set[str]] = field(default_factory=dict)
    anywhere: list[tuple[str, str]] = field(default_factory=list)
    patterns: list[tuple[re.Pattern[str], str]] = field(default_factory=list)

    def add(self, entry: str, kind: str, spaced: bool) -> None:
        core = entry.strip("^$")
        open_end = core.endswith("*")
        core = core.removesuffix("*")
        padded = f" {core}" if open_end or not spaced else f" {core} "
        first = core.split(" ")[0]
        if entry.startswith("^") and entry.endswith("$"):
            self.wholes.setdefault(core, set()).add(kind)
        elif "*" in core:
            pattern = re.escape(core).replace(r"\*", r"\w*") + (r"\w*" if open_end else "")
            self.patterns.append((re.compile(f" {pattern} "), kind))
        elif not spaced:
            self.anywhere.append((padded if entry.startswith("^") else core, kind))
        elif entry.startswith("^"):
            self.openings.setdefault("" if open_end and " " not in core else first, []).append((padded, kind))
        elif " " in core:
            self.phrases.setdefault(first, []).append((padded, kind))
        elif open_end:
            self.beginnings.setdefault(core[:2], []).append((core, kind))
        else:
            self.words.setdefault(core, set()).add(kind)

    def kinds(self, tokens: Sequence[str], sentence: str) -> set[str]:
        """Return the kinds of the entries among lower-case *tokens*; *sentence* is `` word word ``."""
        found: set[str] = set(self.wholes.get(sentence.strip(), ()))
        for token in set(tokens):
            found |= self.words.get(token, _NOTHING)
            found.update(kind for start, kind in self.beginnings.get(token[:2], ()) if token.startswith(start))
            found.update(kind for phrase, kind in self.phrases.get(token, ()) if phrase in sentence)
        for first in ("", *tokens[:1]):
            found.update(kind for opening, kind in self.openings.get(first, ()) if sentence.startswith(opening))
        found.update(kind for part, kind in self.anywhere if part in sentence)
        found.update(kind for pattern, kind in self.patterns if pattern.search(sentence))
        return found


@dataclass(frozen=True, slots=True)
class SalienceWords:
    """
    The word lists and expressions of one language.

    ``lead`` matches fillers (before a comma) and joiners that open a sentence, ``tail`` one that closes it.  ``particles`` are
    endings that do not belong to a noun, longest first; ``cuts`` are characters that part words.
    """

    language: str
    entries: _Entries
    lead: re.Pattern[str]
    tail: re.Pattern[str]
    stop: frozenset[str]
    particles: tuple[str, ...]
    cuts: str
    labels: Mapping[str, str]
    spaced: bool

    def signs(self, sentence: str) -> frozenset[str]:
        """Return the kinds of the entries in *sentence* (with straight apostrophes)."""
        lowered = sentence.lower()
        tokens = _TOKEN.findall(lowered)
        return frozenset(
            self.entries.kinds(tokens, f" {' '.join(tokens)} " if self.spaced else " " + lowered.strip(_EDGE_MARKS))
        )


def load_salience_words(language: str) -> SalienceWords:
    """Load the word lists of *language* (ISO 639-1), or the English ones with its stop words."""
    return _lexicon(language if language in LANGUAGES or language in STOP else "en")


@cache
def _lexicon(language: str) -> SalienceWords:
    file = language if language in LANGUAGES else "en"
    data = tomllib.loads((resources.files(__package__) / "lexicons" / f"{file}.toml").read_text(encoding="utf-8"))
    spaced = file not in _UNSPACED
    entries = _Entries()
    for kind in KINDS:
        for entry in data.get(kind, ()):
            entries.add(entry, kind, spaced)
    fillers = sorted(data["filler"], key=lambda word: (-len(word), word))
    joiners = "|".join(re.escape(word) for word in sorted(data.get("joiner", ()), key=lambda word: (-len(word), word)))
    either = "|".join(re.escape(word) for word in fillers)
    return SalienceWords(
        language=language,
        entries=entries,
        lead=re.compile(
            rf"(?:(?:{either})\s+){{0,3}}(?:{either})(?:\s*[,，、!！~…]+|\.{{2,}}|\s+-+)\s*"
            + (rf"|(?:{joiners})\s+(?=\w)" if joiners else ""),
            re.IGNORECASE,
        ),
        tail=re.compile(rf"[,，、]\s*(?:{either})(?=[\s.!。！~]*$)", re.IGNORECASE),  # ", right?" asks
        stop=frozenset(data["stop"].split()) | (ENGLISH_STOP if language == "en" else STOP.get(language, frozenset())),
        particles=tuple(sorted(data.get("particles", ()), key=lambda end: (-len(end), end))),
        cuts=data.get("cuts", ""),
        labels=data["labels"],
        spaced=spaced,
    )


# Of a longer message the beginning and the end are read: what people open and close with.
HEAD_CHARS, TAIL_CHARS = 12_000, 4_000
MAX_SENTENCES = 30
MAX_SENTENCE_CHARS = 1_000
QUOTE_REACH_CHARS = 2_000

_FENCE = expression(r"(?:```|~~~).*?(?:```|~~~|\Z)", re.DOTALL)
_LINK = expression(r"!?\[([^\]\[]{0,300})\]\((?:[^()\s]|\([^()\s]*\)){0,2000}\)")
# Quoted lines, rows of tables, headings and rules.
_DROPPED_LINE = expression(r"^[ \t]*(?:>|\||#{1,6}[ \t]|[-=*_]{3,}[ \t]*$).*$", re.MULTILINE)
_BULLET = expression(r"^[ \t]*(?:[-*+•‣▪]|\d{1,3}[.)])[ \t]+", re.MULTILINE)
_EMPHASIS = expression(r"\*{2,3}|__|`|(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w)")
_CODE_MARKS = frozenset("{}[]();=<>\\|$#@&+`_")
_CODE_SHARE = 0.08
_ADDRESS = expression(r"https?://\S+|www\.\S+")
_WIDE_CHAR = expression(
    r"[\u1100-\u11ff\u3040-\u30ff\u3130-\u318f\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\u0e01-\u0eff]"
)
_CLAUSE_END = expression(r"(?<=[,;:，、；：])\s*|\s+(?=[–—-]+\s)|\s+(?=\()")
_QUOTES = (("“", "”"), ("„", "“"), ("«", "»"), ("「", "」"), ("『", "』"))
_QUOTED = expression(r"\"[^\"]*+(?:\"|$)|“[^”]*+(?:”|$)|„[^“]*+(?:“|$)|«[^»]*+(?:»|$)|「[^」]*+(?:」|$)")
_OPENING_QUOTES = frozenset('"“„«「『')
_STRAIGHT = str.maketrans("’‘´`", "''''")
_LONG_WORD_CHARS = 12


def plain(content: str) -> str:
    """Strip code blocks, tables, headings, quoted lines and markup from *content*; lines stay."""
    if len(content) > HEAD_CHARS + TAIL_CHARS:
        return plain(content[:HEAD_CHARS]) + "\n" + plain(content[-TAIL_CHARS:])
    text = _FENCE.sub("\n", content)
    text = _LINK.sub(r"\1", text)
    text = _DROPPED_LINE.sub("", text)
    text = _BULLET.sub("", text)
    return _EMPHASIS.sub("", text)


def sentences(content: str) -> list[str]:
    """Split *content* into sentences, each on one line; of very many the first and the last."""
    text = plain(content)
    spans = split_sentences(text)
    if len(spans) > MAX_SENTENCES:
        spans = spans[: MAX_SENTENCES * 2 // 3] + spans[-MAX_SENTENCES // 3 :]
    found = (" ".join(span.of(text)[:MAX_SENTENCE_CHARS].split()) for span in spans if not _in_quotes(text, span.start))
    return [sentence for sentence in found if sentence and not is_code(sentence)]


def _in_quotes(text: str, at: int) -> bool:
    """Whether *at* lies inside quotation marks that opened earlier on the line."""
    line = text[max(text.rfind("\n", 0, at) + 1, at - QUOTE_REACH_CHARS) : at]
    open_ = False
    for place, ch in enumerate(line):
        if ch == '"' and (open_ or not line[place - 1 : place].isdecimal()):  # 27" is no quotation
            open_ = not open_
    return open_ or any(line.count(left) > line.count(right) for left, right in _QUOTES)


def is_code(sentence: str) -> bool:
    """Whether *sentence* reads like code, a log line or a bare address rather than like speech."""
    rest = _ADDRESS.sub("", sentence)
    marks = sum(ch in _CODE_MARKS for ch in rest)
    return not any(ch.isalpha() for ch in rest) or (marks >= 4 and marks > _CODE_SHARE * len(rest))


def straight(text: str) -> str:
    """Return *text* with straight apostrophes, as in the word lists; the length stays."""
    return text.translate(_STRAIGHT)


def own(text: str) -> str:
    """Return *text* with straight apostrophes and without its quotations, which speak for others."""
    return straight(_QUOTED.sub(" ", text))


def size(text: str) -> float:
    """Measure *text* in words; a wide character counts .6, a very long word several."""
    total = 0.6 * len(_WIDE_CHAR.findall(text))
    for word in _WIDE_CHAR.sub(" ", text).split():
        total += max(1.0, len(word) / _LONG_WORD_CHARS)
    return total


def trim(sentence: str, words: SalienceWords, names: Iterable[str] = ()) -> str:
    """Remove fillers and vocatives ("Well,", "…, haha", "…, Ana!") at the ends of *sentence*."""
    called = "|".join(re.escape(name) for name in sorted(names) if name)
    vocative = re.compile(rf"(?:{called})[,!:]\s+", re.IGNORECASE) if called else None
    closing = re.compile(rf",\s*(?:{called})(?=[.!?\s]*$)", re.IGNORECASE) if called else None
    text = sentence
    for _ in range(4):
        found = words.lead.match(straight(text)) or (vocative.match(text) if vocative else None)
        if found is None or size(text[found.end() :]) < 2:
            break
        text = text[found.end() :]
    for ending in (words.tail, closing):
        if ending is not None:
            text = ending.sub("", text)
    return text.strip()


def shorten(sentence: str, limit: float, words: SalienceWords) -> str:
    """
    Shorten *sentence* to about *limit* words: its best run of clauses, with "…" for the rest.

    A clause counts when it holds numbers, names, first persons, decisions or troubles.
    """
    if size(sentence) <= limit:
        return sentence
    opened, closed = sentence.startswith("…"), sentence.endswith("…")
    sentence = sentence.strip("… ")
    inner = (found.end() for found in _CLAUSE_END.finditer(sentence))
    # Who is quoted, and that somebody is, stays with the quotation: no clause begins at or in one.
    cuts = [
        0,
        *(at for at in inner if sentence[at : at + 1] not in _OPENING_QUOTES and not _in_quotes(sentence, at)),
        len(sentence),
    ]
    bounds = [(a, b) for a, b in pairwise(cuts) if sentence[a:b].strip()]
    best, best_worth = (0, 0), -1.0
    worth = [_clause_worth(sentence[a:b], words) for a, b in bounds]
    length = [size(sentence[a:b]) for a, b in bounds]
    for first in range(len(bounds)):
        total, gain = 0.0, 0.6 if first == 0 else 0.0
        for last in range(first, len(bounds)):
            total, gain = total + length[last], gain + worth[last]
            if total > limit:
                break
            if gain + 0.01 * total > best_worth:
                best, best_worth = (bounds[first][0], bounds[last][1]), gain + 0.01 * total
    start, end = best
    if size(sentence[start:end]) < min(6.0, limit / 3):
        start, end = 0, _cut(sentence, limit)
    text = sentence[start:end].strip(" ,;:，、；：–—-(…")
    if (start or opened) and text:
        text = "… " + text
    return text + " …" if (closed or end < len(sentence)) and text else text


_ENDINGS = (".", "!", "?", "…", "。", "！", "？", "؟", ":", ";")
_CLOSING = "\"'”’»」』)]"
_WIDE_START = 0x3000


def with_full_stop(text: str) -> str:
    """Return *text* with a full stop unless it has an ending."""
    if not text or text.rstrip(_CLOSING).endswith(_ENDINGS):
        return text
    last = text[-1]
    if unicodedata.category(last) in ("So", "Sk", "Mn", "Cf"):
        return f"{text}."  # no full stop of Chinese after an emoji
    return text + ("。" if ord(last) >= _WIDE_START and not "\uac00" <= last <= "\ud7af" else ".")


def _clause_worth(clause: str, words: SalienceWords) -> float:
    text = straight(clause)
    signs = words.signs(text) - {"empty", "calm", "recommend"}
    inner = clause.split()[1:]
    named = sum(word[:1].isupper() for word in inner) > 0
    return 0.5 * any(ch.isdecimal() for ch in text) + 0.3 * named + 0.3 * len(signs)


def _cut(sentence: str, limit: float) -> int:
    """Return where *sentence* reaches *limit* words: after a word, or a character in scripts without spaces."""
    total, end = 0.0, 0
    for found in re.finditer(r"\S+\s*", sentence):
        step = size(found.group())
        if total + step > limit:
            break
        total, end = total + step, found.end()
    if end:
        return end
    low, high = 1, len(sentence)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if size(sentence[:middle]) <= limit else (low, middle - 1)
    return low


MAX_THEMES = 5
MAX_PHRASE_WORDS = 3
MAX_PHRASE_CHARS = 48
_PART = expression(r"[^\s,.;:!?()\[\]{}\"“”«»/|…。，、！？；：（）「」『』~<>=+*#]+")
_WIDE_RUN = expression(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+")
_VERBAL = expression(r"(?:ing|ed|ly)$")


@dataclass(slots=True)
class _ScoredSentence:
    surface: str
    stems: tuple[str, ...]
    first: int
    messages: set[int]
    weight: float = 0.0
    named: bool = False


def themes(said: Sequence[tuple[int, str, float]], words: SalienceWords, names: Iterable[str] = ()) -> tuple[str, ...]:
    """
    Return up to five phrases, the weightiest first; none when no phrase is weighty enough.

    Args:
        said: ``(message, sentence, weight)`` in order; the weight says how much its speaker counts.
        words: the lexicon of the language spoken.
        names: of the speakers; they are no themes.
    """
    barred = {part.lower() for name in names for part in name.split()}
    found: dict[tuple[str, ...], _ScoredSentence] = {}
    spread: dict[str, set[int]] = {}
    volume: Counter[str] = Counter()
    order = 0
    for message, sentence, weight in said:
        for run in _runs(sentence, words, barred):
            for surface, stems, named in _phrases(run, words, sentence.startswith(run[0])):
                order += 1
                entry = found.setdefault(stems, _ScoredSentence(surface, stems, order, set()))
                entry.messages.add(message)
                entry.weight += weight
                entry.named = entry.named or named
                if len(stems) == 1:
                    spread.setdefault(stems[0], set()).add(message)
                    volume[stems[0]] += 1
    ranked = sorted(found.values(), key=lambda c: (-_rank(c, spread, volume), c.first))
    return _distinct(ranked, spread, volume)


def _rank(candidate: _ScoredSentence, spread: dict[str, set[int]], volume: Counter[str]) -> float:
    parts = [math.log1p(len(spread.get(stem, ()))) + 0.3 * math.log1p(volume[stem]) for stem in candidate.stems]
    base = sum(parts) / len(parts) * (1 + 0.35 * (len(parts) - 1))
    base *= 0.6 + 0.4 * math.log1p(len(candidate.messages)) + 0.15 * min(3.0, candidate.weight)
    if candidate.named:
        base *= 1.25
    if len(parts) == 1 and not candidate.named and _VERBAL.search(candidate.surface):
        base *= 0.5 if len(candidate.messages) == 1 or not candidate.surface.endswith("ing") else 0.9
    return base


def _distinct(ranked: Sequence[_ScoredSentence], spread: dict[str, set[int]], volume: Counter[str]) -> tuple[str, ...]:
    chosen: list[_ScoredSentence] = []
    top = _rank(ranked[0], spread, volume) if ranked else 0.0
    used: set[str] = set()
    for candidate in ranked:
        if len(chosen) == MAX_THEMES or _rank(candidate, spread, volume) < 0.4 * top:
            break
        lone = len(candidate.stems) == 1 and len(candidate.messages) < 2 and not candidate.named
        if used.isdisjoint(candidate.stems) and not (lone and len(chosen) >= 2):
            chosen.append(candidate)
            used.update(candidate.stems)
    return tuple(candidate.surface for candidate in chosen)


def _runs(sentence: str, words: SalienceWords, barred: set[str]) -> list[list[str]]:
    """Yield runs of neighboring words that may belong to a theme."""
    runs: list[list[str]] = [[]]
    end = 0
    for found in _PART.finditer(sentence):
        if sentence[end : found.start()].strip():
            runs.append([])
        end = found.end()
        for word in _parts(found.group(), words):
            kept = _kept(word, words, barred)
            if kept:
                runs[-1].append(kept)
            if not kept or kept != word:
                runs.append([])
    return [run for run in runs if run]


def _parts(word: str, words: SalienceWords) -> list[str]:
    """Split *word* at its cutting characters in scripts without spaces; "" separates two parts."""
    if not words.cuts or not _WIDE_RUN.search(word):
        return [word]
    pieces = re.split(f"[{re.escape(words.cuts)}]+", word)
    return [part for piece in pieces for part in (piece, "")]


def _kept(word: str, words: SalienceWords, barred: set[str]) -> str:
    """Return the part of *word* that may belong to a theme, without its ending; empty when none may."""
    text = word.strip("'’‘-–—_&%$€£@")
    plain = straight(text).lower()
    for tail in ("'s", "s'"):
        if plain.endswith(tail) and plain[: -len(tail)] not in words.stop and len(plain) > 4:
            text = text[:-2] if tail == "'s" else text[:-1]
            plain = straight(text).lower()
            break
    for ending in words.particles:
        if plain.endswith(ending) and len(plain) - len(ending) >= 2:
            text = text[: -len(ending)]
            plain = plain[: -len(ending)]
            break
    dull, wide = (
        not words.stop.isdisjoint((plain, plain.replace("'", ""))) or plain in barred,
        bool(_WIDE_RUN.search(plain)),
    )
    short = len(plain) < (2 if wide or not plain.isascii() else 3) and not (text.isupper() and len(text) == 2)
    if dull or short or not any(ch.isalpha() for ch in plain) or "'" in plain or len(text) > MAX_PHRASE_CHARS:
        return ""
    return text


def _phrases(run: list[str], words: SalienceWords, opens: bool) -> list[tuple[str, tuple[str, ...], bool]]:
    """Yield ``(surface, stems, is a name)`` of every phrase in *run*; the first word of a sentence is no sign of a name."""
    wide = bool(words.cuts)
    out = []
    stems = [_stem(word, words) for word in run]
    for start in range(len(run)):
        for stop in range(start + 1, min(len(run), start + MAX_PHRASE_WORDS) + 1):
            surface = ("" if wide and all(_WIDE_RUN.search(w) for w in run[start:stop]) else " ").join(run[start:stop])
            inside = tuple(stems[start:stop])
            if len(surface) <= MAX_PHRASE_CHARS and len(set(inside)) == len(inside):
                named = all(word[:1].isupper() for word in run[start:stop]) and not (opens and start == 0)
                out.append((surface, inside, named))
    return out


def _stem(word: str, words: SalienceWords) -> str:
    if _WIDE_RUN.search(word):
        return word
    return " ".join(terms(word, words.language)) or word.lower()
