"""
Speakers: labels in front of lines, and the words by which text of another author is known.

Chats are pasted with a name, a time or both in front of each line or above it; `find_transcripts` finds them.  The words of
``authorship.toml`` and the lines of a text are also what `authorship` reads.  Pure.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache, lru_cache
from importlib import resources
from typing import NamedTuple

from ..text.languages import STOP

BLANK = "\x00"
Span = tuple[int, int]
HEAD_CHARS = 160
_LIST_ITEMS = 4


@cache
def authorship_words() -> dict[str, str]:
    data = tomllib.loads((resources.files(__package__) / "authorship.toml").read_text(encoding="utf-8"))
    tables = {
        name: re.sub(r"\s*\n\s*", "", source.strip("\n")) for part in data.values() for name, source in part.items()
    }
    return {
        name: re.sub(r"\{([a-z_]+)\}", lambda hole: tables[hole[1]], source) for name, source in tables.items()
    }  # fmt: skip


@cache
def cue(name: str) -> re.Pattern[str]:
    return re.compile(authorship_words()[name], re.IGNORECASE | re.MULTILINE)


@cache
def label_is(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?:{authorship_words()[name]})\Z", re.IGNORECASE)


_LINE = re.compile(r"[^\n]*(?:\n|\Z)")
LABEL = re.compile(
    r"[ \t]*(?:[-•*][ \t]+|\d{1,3}[.)][ \t]+)?(?:\[[^\]\n]{1,40}\] ?){0,2}(?:\*\*|__)?[@<\[(]?(?P<name>[^\W\d_](?:[\w.'’ -]|\s\(?\d){0,38}?)[>\])]?(?:\*\*|__)?"
    r"(?: ?\([^()\n]{1,30}\)| says?| said| wrote| a dit| dijo| sagte)? ?(?:\*\*|__)?[:：](?:\*\*|__)?(?=\s|[^\s\d/:：])[ \t]*"
)
_DAY = r"(?:\d{1,4}(?:[./年-]|년) ?\d{1,2}(?:[./月-]|월)(?: ?\d{1,4})?[日일]?(?: ?\([^()]{1,3}\))?|(?:mon|tue|wed|thu|fri|sat|sun)\w*|today|yesterday|heute|gestern|hoy|ayer|aujourd'hui|hier|今天|昨天|오늘|어제|\d{1,2}\.? [^\W\d]{3,9}\.?(?: \d{4})?|[^\W\d]{3,9}\.? \d{1,2}(?:, \d{4})?)"
_HOUR = r"(?:[上下]午|오[전후])? ?\d{1,2}[:.h]\d{2}(?:[:.]\d{2})?(?:[.,]\d{3})?(?: ?[ap]\.? ?m\.?| Uhr)?"
_WHEN = rf"(?:{_DAY}(?:,? (?:at |um |à |a las )?|[ T,]+){_HOUR}Z?|{_HOUR})"
_STAMPED = re.compile(
    rf"[ \t]*[\[(]?{_WHEN}[\])]?(?: ?[-–—|>] ?|,?[ \t]+)(?P<name>[<@~]?[^\W\d_](?:[^:：\n<>]|>(?=[ \t])){{0,48}}?)[ \t]?[>:：](?!\d)[ \t]*",
    re.IGNORECASE,
)
_STAMPED_BEHIND = re.compile(
    rf"[ \t]*(?P<name>[^\W\d_][^:：\n<>.!?]{{0,38}}?)(?:, | ?\(|[ \t]+\[?){_WHEN}[\])]? ?(?::[ \t]+|：[ \t]*)\S|[ \t]*(?P<to>[^\W\d_][^:：\n.!?]{{0,30}}? ?(?:→|->|=>) ?[^:：\n.!?]{{1,30}})[:：][ \t]*\S",
    re.IGNORECASE,
)
_TABBED = re.compile(rf"[ \t]*{_WHEN}\t(?P<name>[^\t\n]{{1,40}})\t", re.IGNORECASE)
_KAKAO = re.compile(rf"[ \t]*\[(?P<name>[^\[\]\n]{{1,40}})\] \[{_HOUR}\][ \t]*")
_STAMPED_HEAD = re.compile(
    rf"[ \t]*(?:[\[(]{_WHEN}[\])][ \t]+(?P<first>[^\W\d_][^:：\n.!?]{{0,40}})"
    rf"|(?P<name>[^\W\d_][^:：\n.!?,\[\](){{}}<>]{{0,38}}?)(?:,|[ \t]*[—–·•|-]|[ \t]{{2,}}|[ \t])?[ \t]*[\[(]?{_WHEN}[\])]?:?)[ \t]*\Z",
    re.IGNORECASE,
)
# A name set off by another sign than a colon: "(Ann) ok", "[Ann] ok", "Ann > ok", "20:02 ann | ok".
_SIGNED = re.compile(
    r"[ \t]*(?:\d{1,2}:\d{2}(?::\d{2})?[ \t]+)?(?:\((?P<round>[^\W\d_][\w.' -]{0,24})\)|\[(?P<square>[^\W\d_][\w.' -]{0,24})\]"
    r"|(?P<name>[^\W\d_][\w.'-]{0,24}(?: [^\W\d_][\w.'-]{0,24})?)[ \t]*(?:>{1,2}|▸|►|»|\|))[ \t]+(?=\S)"
)
# A time alone on its line, below a name or a message.
_ONLY_TIME = re.compile(rf"[ \t]*[\[(]?{_WHEN}[\])]?[ \t]*[✓✔]*[ \t]*\Z", re.IGNORECASE)
_AGO = re.compile(
    r"[ \t]*[^\W\d_][\w.' -]{0,38}?[ \t]*[•·][ \t]*(?:\d{1,3} ?(?:s|m|h|d|w|y|min|mins|hrs?|hours?|days?|weeks?)(?: ago)?|just now|now|yesterday)[ \t]*\Z",
    re.IGNORECASE,
)
_ME = re.compile(r"[ \t]*(?:me|myself|ich|yo|moi|我|나)[ \t]*[:：]", re.IGNORECASE)
NICK = re.compile(rf"[ \t]*(?:[\[(]?{_WHEN}[\])]?[ \t]+)?<[@+%~&]?[^\s<>/][^<>/\n]{{0,30}}>[ \t]+\S", re.IGNORECASE)
SPEECH = re.compile(
    r"\b(?:i|i'\w+|im|my|me|we|our|us|you|your|ich|du|mein\w*|dein\w*|wir|mir|dir|uns|yo|tú|tu|mi|mis|me|te|soy|vivo|tengo|trabajo|estoy|somos|vivimos|je|j'\w+|mon|ma|mes|nous|vous|toi|moi|eu|io|ik)\b|[我你您咱]|나는|저는|제가|내가|저도|나도|우리|저희|(?:요|다|어|야)[.!?]?\s*\Z|[?？]",
    re.IGNORECASE,
)


class TextLine(NamedTuple):
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


@lru_cache(maxsize=2)  # one search after the other looks at the same lines
def text_lines(text: str) -> list[TextLine]:
    found = (line.span() for line in _LINE.finditer(text) if line.end() > line.start() or line.start() < len(text))
    return [TextLine(start, end - (text[end - 1 : end] == "\n"), text[start:end].rstrip("\n")) for start, end in found]


def is_label(kind: str, name: str) -> bool:
    return bool(label_is(kind).match(name.strip(" *_.")))


def find_transcripts(text: str) -> Iterator[Span]:
    """Find what several people say, each after a label, and single lines that begin with a speaker's name."""
    lines = text_lines(text)
    yield from _between_times(lines)
    labels = [_speaker_label(line) for line in lines]
    labels = _with_other_signs(lines, labels)
    talk = [at for at, label in enumerate(labels) if label is not None]
    spoken = [at for at in talk if labels[at][1] > 1 or SPEECH.search(lines[at].text, labels[at][2])]  # type: ignore[index]
    names = {labels[at][0].casefold() for at in talk}  # type: ignore[index]
    sure = [at for at in talk if labels[at][1] > 1]  # type: ignore[index]
    labelled = sum(bool(LABEL.match(line.head)) for line in lines)
    if not sure and len(names) == len(talk) and labelled >= _LIST_ITEMS:
        return  # as many labels as lines: a list of headings
    if not sure and not (spoken and (len(names) > 1 or len(talk) > 1 or _is_person(labels[spoken[0]][0]))):  # type: ignore[index]
        return
    last = -1
    for at in talk:
        if at <= last:
            continue
        end = _end_of_utterance(lines, at, labels, [other for other in talk if other > at])
        yield lines[at].start, lines[end].end
        last = end


def _between_times(lines: list[TextLine]) -> Iterator[Span]:
    """Find chats in which times stand alone on their lines, or behind a name ("Ann • 2h")."""
    times = [
        at
        for at, line in enumerate(lines)
        if len(line.text) < HEAD_CHARS and (_ONLY_TIME.match(line.text) or _AGO.match(line.text)) and not line.empty
    ]
    if len(times) > 1:
        first, last = times[0], times[-1]
        while first and not lines[first - 1].empty:
            first -= 1
        while last + 1 < len(lines) and not lines[last + 1].empty:
            last += 1
        yield lines[first].start, lines[last].end


def _with_other_signs(
    lines: list[TextLine], labels: list[tuple[str, int, int] | None]
) -> list[tuple[str, int, int] | None]:
    """Add the speakers of lines whose names are set off otherwise, and of any label in a chat with "me:"."""
    signed = [_SIGNED.match(line.head) for line in lines]
    if sum(found is not None for found in signed) > 1:
        labels = [
            label or (found and (found["round"] or found["square"] or found["name"], 2, found.end()))
            for label, found in zip(labels, signed, strict=True)
        ]
    mine = [_ME.match(line.head) is not None for line in lines]
    named = [
        found if (found := LABEL.match(line.head)) and not is_label("field", found["name"]) else None for line in lines
    ]
    if any(mine) and any(found and not me for found, me in zip(named, mine, strict=True)):
        labels = [
            (found["name"], 2, found.end()) if found else label for label, found in zip(labels, named, strict=True)
        ]
    return labels


def _speaker_label(line: TextLine) -> tuple[str, int, int] | None:
    """Return ``(name, how sure it is a speaker: 1 to 3, where the words begin)`` of a line; ``None`` for other lines."""
    if NICK.match(line.head):
        return line.text.split(">")[0].split("<")[-1], 2, line.text.index(">") + 1
    stamped = _TABBED.match(line.head) or _STAMPED.match(line.head) or _KAKAO.match(line.head)
    if stamped and _may_speak(stamped["name"]):
        return stamped["name"], 2, stamped.end()
    behind = _STAMPED_BEHIND.match(line.head)
    if behind and _may_speak(behind["name"] or behind["to"]):
        return behind["name"] or behind["to"], 2, behind.end() - 1
    head = _STAMPED_HEAD.match(line.head) if len(line.text) < HEAD_CHARS else None
    if head:
        name = head["first"] or head["name"]
        return (name, 3, len(line.text)) if _may_speak(name) else None
    label = LABEL.match(line.head)
    if label is None or BLANK in label.group():
        return None
    name = label["name"].strip()
    if is_label("speaker", name) or is_label("text", name):
        return name, 2, label.end()
    if is_label("relative", name) and _FIRST_PERSON.match(line.head, label.end()):
        return name, 1, label.end()
    words = name.casefold().split()
    named = [
        kind for kind in ("field", "header", "others", "thing") if is_label(kind, name) or is_label(kind, words[-1])
    ]
    if named or len(words) > 3 or words[0] in _STOP_WORDS or cue("own").search(name) or not _could_name(name):
        return None
    return name, 1, label.end()


_STOP_WORDS = frozenset().union(*STOP.values())


_FIRST_PERSON = re.compile(r"(?:i|i'\w+|ich|yo|soy|vivo|tengo|je|j'\w+|我|저는|나는)(?![^\W\d_])", re.IGNORECASE)


def _may_speak(name: str) -> bool:
    return is_label("family", name) or not is_label("field", name)


def _could_name(name: str) -> bool:
    return " " not in name or all(not word[:1].islower() for word in name.split())


def _is_person(name: str) -> bool:
    """Whether a single label is a name: capitalized, a nickname, or in two to four characters without capitals."""
    if name.isascii() or name[:1].islower() != name[:1].isupper():
        return (name[:1].isupper() and not name.isupper()) or bool(re.search(r"\w[_\d]", name))
    return len(name) <= 4


def _end_of_utterance(
    lines: list[TextLine], at: int, labels: list[tuple[str, int, int] | None], later: list[int]
) -> int:
    """Return the last line that belongs to the talk that begins on line *at*, up to the next speaker."""
    following = next(iter(later), None)
    if following is not None and following - at <= 12:
        return following - 1
    label = labels[at]
    end, single = at, label is not None and bool(lines[at].text[label[2] :].strip())
    for number in range(at + 1, len(lines)):
        if lines[number].empty:
            break
        if single and cue("directed").match(lines[number].text):
            break
        end = number
    return end
