"""
Speakers: the labels in front of lines by which a pasted chat is known.

A time beside a name is sure.  A name alone may be a heading of the writer's own list, and needs to be answered or to
come again.  `authorship` reads the lines, labels and words of ``authorship.toml`` from here, too.  Pure.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache, lru_cache
from importlib import resources
from itertools import pairwise
from typing import NamedTuple

from ..text import expression, remembered
from ..text.languages import STOP
from ..text.sentences import split_sentences
from ..types import Message

BLANK = "\x00"
Span = tuple[int, int]
HEAD_CHARS = 160
_LIST_ITEMS = 4
_SINGLE_TURNS = 3  # so many turns of one line each, and the last has one line, too


@cache
def authorship_words() -> dict[str, str]:
    """Return the expressions of ``authorship.toml`` by their names."""
    data = tomllib.loads((resources.files(__package__) / "authorship.toml").read_text(encoding="utf-8"))
    tables = {
        name: re.sub(r"\s*\n\s*", "", source.strip("\n")) for part in data.values() for name, source in part.items()
    }
    return {
        name: re.sub(r"\{([a-z_]+)\}", lambda hole: tables[hole[1]], source) for name, source in tables.items()
    }  # fmt: skip


@cache
def cue(name: str) -> re.Pattern[str]:
    """Compile the expression *name* of ``authorship.toml``."""
    return re.compile(authorship_words()[name], re.IGNORECASE | re.MULTILINE)


@cache
def _label_is(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?:{authorship_words()[name]})\Z", re.IGNORECASE)


_NUMBER = expression(r"[ #]+(?:\d{1,4}|[A-D])\Z")


@remembered(4096)  # the speakers of a chat come again
def is_label(kind: str, name: str) -> bool:
    """Whether *name* is a label of that kind; "Week 2" is one as "Week" is."""
    name = name.strip(" *_.")
    alone = _NUMBER.sub("", name) if kind == "field" else name
    return any(_label_is(kind).match(one) for one in {name, alone})


# --- lines


class TextLine(NamedTuple):
    """A line with its place in the text."""

    start: int
    end: int  # without the line feed
    text: str

    @property
    def empty(self) -> bool:
        return not self.text.strip()

    @property
    def head(self) -> str:
        """The beginning of the line, where labels and times are."""
        return self.text[:HEAD_CHARS]


_LINE = expression(r"[^\n]*(?:\n|\Z)")


@lru_cache(maxsize=2)  # one search after the other looks at the same lines
def text_lines(text: str) -> list[TextLine]:
    """Return the lines of *text*."""
    found = (line.span() for line in _LINE.finditer(text) if line.end() > line.start() or line.start() < len(text))
    return [TextLine(start, end - (text[end - 1 : end] == "\n"), text[start:end].rstrip("\n")) for start, end in found]


# --- signs of a speaker


_EMOJI = r"(?: ?[\u2190-\u2bff\U0001f000-\U0001faff\ufe0f\u200d]+)?"
LABEL = expression(
    r"(?=[^:：]*[:：])"  # most lines have no colon; without this the name is tried at every length
    r"[ \t]*(?:[-•*~][ \t]+|\d{1,3}[.)][ \t]+)?(?:\[[^\]\n]{1,40}\] ?){0,2}(?:\*\*|__)?[@<\[(]?(?P<name>[^\W\d_](?:[\w.'’ -]|\s\(?\d){0,38}?)"
    rf"{_EMOJI}[>\])]?(?:\*\*|__)?(?: ?\([^()\n]{{1,30}}\)| says?| said| wrote| a dit| dijo| sagte)? ?(?:\*\*|__)?[:：](?:\*\*|__)?(?=\s|[^\s\d/:：])[ \t]*"
)
SPEECH = expression(
    r"\b(?:i|i'\w+|im|my|me|we|our|us|you|your|ich|du|mein\w*|dein\w*|wir|mir|dir|uns|yo|tú|tu|mi|mis|me|te|soy|vivo|tengo|trabajo|estoy|somos|vivimos|je|j'\w+|mon|ma|mes|nous|vous|toi|moi|eu|io|ik)\b|[我你您咱]|나는|저는|제가|내가|저도|나도|우리|저희|(?:요|다|어|야)[.!?]?\s*\Z|[?？]",
    re.IGNORECASE,
)
_DAY = r"(?:\d{1,4}(?:[./年-]|년) ?\d{1,2}(?:[./月-]|월)(?: ?\d{1,4})?[日일]?(?: ?\([^()]{1,3}\))?|(?:mon|tue|wed|thu|fri|sat|sun)\w*|today|yesterday|heute|gestern|hoy|ayer|aujourd'hui|hier|今天|昨天|오늘|어제|\d{1,2}\.? [^\W\d]{3,9}\.?(?: \d{4})?|[^\W\d]{3,9}\.? \d{1,2}(?:, \d{4})?)"
_HOUR = r"(?:[上下]午|오[전후])? ?\d{1,2}[:.h]\d{2}(?:[:.]\d{2})?(?:[.,]\d{3})?(?: ?[ap]\.? ?m\.?| Uhr)?"
_WHEN = rf"(?:{_DAY}(?:,? (?:at |um |à |a las )?|[ T,]+){_HOUR}Z?|{_HOUR})"
_AGO = r"(?:\d{1,3} ?(?:s|m|h|d|w|y|mo|min|mins|hrs?|hours?|days?|weeks?)(?: ago)?|just now|now|yesterday|[123](?:st|nd|rd)\+?)"
NICK = expression(
    rf"[ \t]*(?:[\[(]?{_WHEN}[\])]?[ \t]+)?<[@+%~&]?([^\s<>/][^<>/\n]{{0,30}})>[ \t]+(?=\S)", re.IGNORECASE
)
_SET_OFF, _NAMED, _TIMED = 0, 1, 2  # how sure a sign is: another sign than a colon, a label, a time or a known speaker
# Expressions of a speaker's sign, whose groups are the name, in the order in which they are tried.
_TIMES = tuple(
    expression(rf"[ \t]*{sign}", re.IGNORECASE)
    for sign in (
        rf"{_WHEN}\t([^\t\n]{{1,40}})\t",
        rf"[\[(]?{_WHEN}[\])]?(?: ?[-–—|>] ?|,?[ \t]+)([<@~]?[^\W\d_](?:[^:：\n<>]|>(?=[ \t])){{0,48}}?)[ \t]?[>:：](?!\d)[ \t]*",
        rf"\[([^\[\]\n]{{1,40}})\] \[{_HOUR}\][ \t]*",
        rf"([^\W\d_][^:：\n<>.!?]{{0,38}}?)(?:, | ?\(|[ \t]+\[?){_WHEN}[\])]? ?(?::[ \t]+|：[ \t]*)(?=\S)",
        r"([^\W\d_][^:：\n.!?]{0,30}? ?(?:→|->|=>) ?[^:：\n.!?]{1,30})[:：][ \t]*(?=\S)",
        rf"{_HOUR}[ \t]+([^\W\d_][\w.'-]{{0,24}})[ \t]*\|[ \t]+(?=\S)",
    )
)
_TIMES_IN_WORDS = _TIMES[4:5]  # without a digit
# The same alone on a line, above the words.
_HEADS = tuple(
    expression(rf"[ \t]*{sign}[ \t]*\Z", re.IGNORECASE)
    for sign in (
        rf"[\[(]{_WHEN}[\])][ \t]+([^\W\d_][^:：\n.!?]{{0,40}})",
        rf"([^\W\d_][^:：\n.!?,\[\](){{}}<>]{{0,38}}?)(?:,|[ \t]*[—–·•|-]|[ \t]{{2,}}|[ \t])?[ \t]*[\[(]?{_WHEN}[\])]?:?",
        rf"([^\W\d_][\w.' -]{{0,38}}?)[ \t]*[•·][ \t]*{_AGO}",
        rf"{_WHEN}[ \t]+(speaker \w+|interviewer|host|guest|moderator)",
    )
)
_HEADS_IN_WORDS = _HEADS[2:3]
_DIGIT = expression(r"\d")
# A name set off by another sign than a colon ("(Ann) ok", "[Ann] ok", "Ann > ok"), and one alone above the words.
_OTHERS = (
    expression(
        r"[ \t]*(?:\(([^\W\d_][\w.' -]{0,24})\)|\[([^\W\d_][\w.' -]{0,24})\]|([^\W\d_][\w.'-]{0,24}(?: [^\W\d_][\w.'-]{0,24})?)[ \t]*(?:>{1,2}|▸|►|»|\|))[ \t]+(?=\S)"
    ),
    expression(r"[ \t]*([^\W\d_][\w.'-]{0,24}(?: [^\W\d_][\w.'-]{0,24})?) ?[:：][ \t]*\Z"),
    expression(r"[ \t]*([^\W\d_][\w.'-]{0,24})[ \t]+[—–-][ \t]+(?=\S)"),
)
_ME = expression(r"me|myself|ich|yo|moi|我|나", re.IGNORECASE)
_FIRST_PERSON = expression(r"(?:i|i'\w+|ich|yo|soy|vivo|tengo|je|j'\w+|我|저는|나는)(?![^\W\d_])", re.IGNORECASE)
# "Anna: my sister": what a label is, in the writer's words.
_DESCRIBED = expression(
    r"(?:my|our|mein\w*|unser\w*|mi|mon|ma|mia|mio) (?:[\w-]+ )?[\w-]+[ \t]*(?:[,.;(]|\Z|\d)", re.IGNORECASE
)
_TOLD_APART = frozenset(
    "different another other second ander anderer andere anderes otro otra autre altro altra outro outra".split()
)
_PRESENT = frozenset("here speaking again hier aquí ici".split())
_REPLY = expression(
    r"\W*(?:(?:that'?s |so |how )?(?:ok(?:ay)?|nice|cool|great|lo+l|lmao|(?:ha){2,}\w*|omg|wow|same|me too|really|thanks|thx|hi|hey|hello|wtf|what|no way|oh|ah|aw+|congrats|true|sounds good|i see|wonderful|vale|hola|claro|echt|genau|stimmt|ach|ah bon|d'accord|真的|好的|진짜)(?![^\W_])[^.\n]{0,24}|(?:[^\s?]+ ){0,7}[^\s?]+[?？]+)\W*\Z",
    re.IGNORECASE,
)
_NAME_LINE = expression(r"[ \t]*[A-ZÀ-Þ][\w.'-]*(?: [A-ZÀ-Þ][\w.'-]*){0,2}[ \t]*\Z")
_TIME_LINE = expression(rf"[ \t]*[\[(]?{_WHEN}[\])]?[ \t]*[✓✔]*[ \t]*\Z", re.IGNORECASE)
_STOP_WORDS = frozenset().union(*STOP.values())


class _Turn(NamedTuple):
    """The label of a line: who speaks, how sure that is, where the words begin, and the words."""

    name: str
    sure: int
    words: int
    said: str


def find_transcripts(text: str) -> Iterator[Span]:
    """Find what several people say, each after a label, and single lines that begin with a speaker's name."""
    lines = text_lines(text)
    yield from _between_times(lines)
    turns = _chat(lines)
    talk = sorted(turns)
    if not talk:
        return
    single = len(talk) >= _SINGLE_TURNS and all(later - at == 1 for at, later in pairwise(talk))
    last = -1
    for at, following in zip(talk, [*talk[1:], None], strict=True):
        if at <= last:
            continue
        end = _end_of_turn(lines, at, turns[at], following) if following is not None or not single else at
        yield lines[at].start, lines[end].end
        last = end


def _between_times(lines: list[TextLine]) -> Iterator[Span]:
    """Find chats whose times are on lines of their own, above or below names."""
    names = [_NAME_LINE.match(line.head) and _may_speak(line.head) for line in lines]
    times = [
        at
        for at, line in enumerate(lines)
        if line.text[:1] and len(line.text) < HEAD_CHARS and _TIME_LINE.match(line.text)
    ]
    beside = [at for at in times if any(names[max(0, at - 2) : at + 2])]
    if len(beside) > 1:
        first, last = beside[0], beside[-1]
        while first and not lines[first - 1].empty:
            first -= 1
        while last + 1 < len(lines) and not lines[last + 1].empty:
            last += 1
        yield lines[first].start, lines[last].end


def _chat(lines: list[TextLine]) -> dict[int, _Turn]:
    """Return the lines where a speaker begins; none when the labels are headings of a list."""
    last = max((at for at, line in enumerate(lines) if not line.empty), default=-1)
    turns = {at: turn for at, line in enumerate(lines) if (turn := _timed(line, above=at < last) or _named(line))}
    for sign in _OTHERS:
        others = {
            at: turn
            for at, line in enumerate(lines)
            if at not in turns and (turn := _set_off(sign, line, lines[at + 1 : at + 2]))
        }
        if len(others) > 1 and _answered(list(others.values()), again=sign is _OTHERS[-1]):
            turns |= others
    if any(turn.sure != _NAMED for turn in turns.values()):
        return turns
    fields = [label for line in lines if (label := LABEL.match(line.head))]
    mine = [label for label in fields if _ME.fullmatch(label["name"])]
    if mine and len(fields) > len(mine):
        everybody = {
            at: _turn(label, _NAMED, line) for at, line in enumerate(lines) if (label := LABEL.match(line.head))
        }
        if _answered(list(everybody.values())):
            return everybody
    names = {turn.name.casefold() for turn in turns.values()}
    if len(names) == len(turns) and (len(fields) >= _LIST_ITEMS or len(fields) >= 2 * len(turns) > 0):
        return {}  # a list of headings
    spoken = [turn for turn in turns.values() if SPEECH.search(turn.said)]
    return turns if spoken and (len(turns) > 1 or _is_person(spoken[0].name)) else {}


def _answered(turns: list[_Turn], *, again: bool = False) -> bool:
    """Whether a speaker speaks twice, or answers another one; a list of headings does neither."""
    names = Counter(turn.name.casefold() for turn in turns)
    return len(names) > 1 and (
        max(names.values()) > 1 or (not again and any(_REPLY.match(turn.said) for turn in turns[1:]))
    )


def _turn(found: re.Match[str], sure: int, line: TextLine) -> _Turn:
    name = next(filter(None, found.groups()))
    return _Turn(name.strip(), sure, found.end(), line.text[found.end() :])


def _timed(line: TextLine, *, above: bool) -> _Turn | None:
    """Return the turn that a name and a time begin; where they fill the line, its words are in one that it is *above*."""
    if nick := NICK.match(line.head):
        return _turn(nick, _TIMED, line)
    clock = _DIGIT.search(line.head)
    for sign in _TIMES if clock else _TIMES_IN_WORDS:
        if (found := sign.match(line.head)) and _may_speak((turn := _turn(found, _TIMED, line)).name):
            return turn
    for sign in () if not above or len(line.text) >= HEAD_CHARS else _HEADS if clock else _HEADS_IN_WORDS:
        found = sign.match(line.head)
        if found and _may_speak((turn := _turn(found, _TIMED, line)).name) and not _is_clause(turn.name):
            return turn
    return None


def _is_clause(name: str) -> bool:
    """Whether the words before a time are a sentence that ends with it ("we open at 6:30") and no name."""
    words = name.split()
    return len(words) > 2 and words[0][:1].islower() and any(word.casefold() in _STOP_WORDS for word in words)


def _named(line: TextLine) -> _Turn | None:
    label = LABEL.match(line.head)
    if label is None or BLANK in label.group():
        return None
    turn = _turn(label, _NAMED, line)
    name, words = turn.name, turn.name.casefold().split()
    if is_label("speaker", name) or is_label("text", name):
        return turn._replace(sure=_TIMED)
    if is_label("relative", name) and _FIRST_PERSON.match(turn.said):
        return turn
    named = [
        kind for kind in ("field", "header", "others", "thing") if is_label(kind, name) or is_label(kind, words[-1])
    ]
    if named or len(words) > 3 or words[0] in _STOP_WORDS or cue("own").search(name) or not _could_name(name):
        return None
    told = turn.said.casefold().split()[:2]  # "Different Chris: Chris Bello, my accountant, says …" is the writer's
    described = _DESCRIBED.match(turn.said) or words[0] in _TOLD_APART
    return None if described or (len(told) > 1 and told[0] == words[-1] and told[1] not in _PRESENT) else turn


def _set_off(sign: re.Pattern[str], line: TextLine, below: list[TextLine]) -> _Turn | None:
    """Return the turn of a line whose name is set off by *sign*; its words may be *below*."""
    found = sign.match(line.head) if BLANK not in line.head[:1] else None
    if found is None:
        return None
    turn = _turn(found, _SET_OFF, line)
    if is_label("field", turn.name) or is_label("header", turn.name) or turn.name.casefold() in _STOP_WORDS:
        return None
    return turn if turn.said or not below else turn._replace(said=below[0].text)


def _may_speak(name: str) -> bool:
    return is_label("family", name) or not is_label("field", name)


def _could_name(name: str) -> bool:
    return " " not in name or all(not word[:1].islower() for word in name.split())


def _is_person(name: str) -> bool:
    """Whether a single label is a name: capitalized, a nickname, or in two to four characters without capitals."""
    if name.isascii() or name[:1].islower() != name[:1].isupper():
        return (name[:1].isupper() and not name.isupper()) or bool(re.search(r"\w[_\d]", name))
    return len(name) <= 4


def _end_of_turn(lines: list[TextLine], at: int, turn: _Turn, following: int | None) -> int:
    """Return the last line that belongs to the talk that begins on line *at*; *following* is the next speaker's."""
    if following is not None and following - at <= 12:
        return following - 1
    end, single = at, bool(turn.said.strip())
    for number in range(at + 1, len(lines)):
        if lines[number].empty or (single and cue("directed").match(lines[number].text)):
            break
        end = number
    return end


def question_of(before: Message | None) -> str:
    """Return the question with which another speaker's message ends; empty when there is none."""
    if before is None or before.role == "user":
        return ""
    last = [span.of(before.content) for span in split_sentences(before.content[-400:])][-1:]
    return last[0] if last and last[0].rstrip("\"')*_ ").endswith(("?", "？")) else ""
