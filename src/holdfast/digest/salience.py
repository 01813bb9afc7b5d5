"""
Which sentences of a chat matter, decided without a model.

A sentence gains by what it shares with the other messages (term centrality), by what it holds
(numbers, dates, names, first persons, decisions, troubles, advice, an answer to a question), and
loses by being a greeting, a reaction or a question.  The best are taken one by one, each compared
with those already taken (maximal marginal relevance), so that nothing is said twice.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..text.terms import language_of, terms
from ..types import Message
from .lexicon import Lexicon, lexicon
from .plain import own, sentences, shorten, size, trim

SENTENCE_WORDS = 26
MAX_SPEAKER_CHARS = 40
# What a sentence gains for what it holds; tuned by reading summaries of real chats.
WORTH = {"decision": 0.5, "promise": 0.35, "problem": 0.4, "feeling": 0.3, "preference": 0.4, "when": 0.25, "self": 0.3}
NUMBER, NAME, ANSWER, RELEVANT, CENTRAL, OPENING = 0.35, 0.25, 0.25, 0.4, 0.8, 0.1
EMPTY, ASIDE, SUPPOSED = -0.9, -0.3, -0.6
QUESTION_TO_PERSON, QUESTION_TO_ASSISTANT = -0.6, -0.1
ADVICE = 0.35
# What counts of an assistant's sentence, and what a user's gains that is not about the user.
ASSISTANT, USERS_MATTER = 0.8, 0.2
REDUNDANCY = 0.9
SHORT_ANSWER_WORDS = 6.0
FRAGMENT_WORDS = 6.0
_STOPS = ".!?…。！？"
_QUESTION_MARKS = ("?", "？", "؟")


@dataclass(slots=True, eq=False)
class Unit:
    """One sentence on offer: ``text`` is what a summary would say, ``words`` its length."""

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
    asked: Unit | None = None  # the question without which a short answer says nothing


@dataclass(slots=True)
class Reading:
    """A stretch of messages as it was read: its units in order, its language, who speaks."""

    units: list[Unit]
    words: Lexicon
    users: frozenset[str]
    has_assistant: bool
    total_words: float = 0.0
    tools: dict[int, list[str]] = field(default_factory=dict)


def speaks(message: Message) -> bool:
    """Whether *message* is somebody's words: not an instruction, not the result of a tool."""
    return message.role in ("user", "assistant") and not message.meta.get("tool_call_id")


def speaker_of(message: Message) -> str:
    """Who said it, on one line and of bounded length."""
    return " ".join(message.speaker.split())[:MAX_SPEAKER_CHARS] or message.role


def read(messages: Sequence[Message]) -> Reading:
    """Sentences of what users and assistants said, scored.  System messages and tool results say nothing."""
    spoken = [m for m in messages if speaks(m)]
    words = lexicon(_language(spoken))
    users = frozenset(speaker_of(m) for m in spoken if m.role == "user")
    names = {part for m in spoken if m.name for part in (m.name, m.name.split()[0] if m.name.split() else "")}
    reading = Reading([], words, users, any(m.role == "assistant" for m in spoken))
    for index, message in enumerate(messages):
        called = called_tools(message)
        if called:
            reading.tools[index] = called
        if not speaks(message):
            continue
        for sentence in sentences(message.content):
            reading.total_words += size(sentence)
            unit = _unit(message, index, sentence, reading, names)
            if unit is not None:
                reading.units.append(unit)
    _score(reading)
    return reading


def called_tools(message: Message) -> list[str]:
    """Names of the tools that *message* calls, in order."""
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
    """The language most of the text is in; users decide where they wrote enough."""
    votes: Counter[str] = Counter()
    for message in messages:
        head = message.content[:400]
        votes[language_of(head)] += len(head) * (2 if message.role == "user" else 1)
    return max(votes, key=lambda language: (votes[language], language)) if votes else "en"


def _unit(message: Message, index: int, sentence: str, reading: Reading, names: set[str]) -> Unit | None:
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
    if any(ch.isdigit() for ch in text):
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


def _score(reading: Reading) -> None:
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
    for unit, share in zip(units, central, strict=True):
        score = CENTRAL * share / top + _worth(unit, reading)
        first = unit.message not in seen and "empty" not in unit.signs
        question = asked.get(before.get(unit.message, -1))
        if question is not None and question.speaker != unit.speaker and not unit.question:
            score += ANSWER * first + RELEVANT * cosine(unit.terms, said[question.message])
            if first and unit.words < SHORT_ANSWER_WORDS:
                unit.asked = question
        score += OPENING * first
        if first:
            seen.add(unit.message)
        score *= ASSISTANT if unit.role == "assistant" and score > 0 else 1.0
        unit.score = score * (1.0 if unit.asked else length_factor(unit.words))


def _worth(unit: Unit, reading: Reading) -> float:
    signs = unit.signs
    score = NUMBER * ("number" in signs) + NAME * ("name" in signs)
    if unit.role == "assistant":
        # Its own "I", its plans and its feelings say nothing about the user.
        score += ADVICE * ("recommend" in signs) + sum(
            0.4 * WORTH[kind] for kind in ("decision", "when") if kind in signs
        )
    else:
        score += sum(worth for kind, worth in WORTH.items() if kind in signs)
        score += USERS_MATTER * (reading.has_assistant and "self" not in signs and not unit.question)
    if "empty" in signs:
        score += EMPTY
    score += ASIDE * ("aside" in signs) + SUPPOSED * ("supposed" in signs)
    if unit.question:
        score += QUESTION_TO_ASSISTANT if reading.has_assistant and unit.role == "user" else QUESTION_TO_PERSON
    return score


def length_factor(words: float) -> float:
    """What is left of the worth of a sentence that may be too short to stand alone."""
    return 0.4 if words < 2.5 else 0.75 if words < 4.5 else 0.9 if words < 6.5 else 1.0


def cosine(a: Counter[str], b: Counter[str]) -> float:
    """How much two bags of terms share, from 0 to 1."""
    if len(b) < len(a):
        a, b = b, a
    dot = sum(count * b[term] for term, count in a.items() if term in b)
    if not dot:
        return 0.0
    return dot / math.sqrt(sum(n * n for n in a.values()) * sum(n * n for n in b.values()))


def select(
    units: Sequence[Unit],
    budget_words: float,
    *,
    per_message: int,
    least: float,
    enough_words: float,
    shares: Mapping[str, float],
) -> list[Unit]:
    """
    The best units within *budget_words*, in the order in which they were said.

    At most *per_message* come from one message, and of a role in *shares* that part of the words.  Below a
    score of *least* nothing is taken once there are *enough_words*, and nothing of no worth at all.
    """
    chosen: list[Unit] = []
    alike = [0.0] * len(units)
    left, taken = set(range(len(units))), Counter[int]()
    total, by_role = 0.0, Counter[str]()
    while left:
        fresh = {
            i: units[i].score - REDUNDANCY * alike[i] + (0.15 if not taken[units[i].message] else 0.0) for i in left
        }
        best = max(left, key=lambda i: (fresh[i], -i))
        if fresh[best] <= 0 or (fresh[best] < least and total >= enough_words):
            break
        left.remove(best)
        unit = units[best]
        told = [unit] if unit.asked is None or unit.asked in chosen else [unit.asked, unit]
        cost = sum(each.words for each in told)
        room = shares.get(unit.role, 1.0) * budget_words - by_role[unit.role]
        if taken[unit.message] >= per_message or total + cost > budget_words or unit.words > room:
            continue
        total += cost
        by_role[unit.role] += math.ceil(unit.words)
        taken[unit.message] += 1
        chosen += told
        left -= {each.place for each in told}
        for i in left:
            alike[i] = max(alike[i], cosine(units[i].terms, unit.terms))
    return sorted(chosen, key=lambda unit: unit.place)
