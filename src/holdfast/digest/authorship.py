"""
Authorship: which words of a user's message are the user's own, and which are other people's.

A message may hold mails, chat logs, articles, forms, code, quotations, fiction and what a program pasted.  Such text
is found by its structure, in any language, and by the clause that introduces it (``authorship.toml``); what stands in
it is no statement of the user, while the sentence beside it is.  In doubt the words are somebody else's.  Pure.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from itertools import islice, pairwise
from typing import NamedTuple

from ..text.languages import STOP
from ..text.sentences import split_sentences
from ..text.terms import fold_quotes

BLANK = "\x00"

CODE, MARKUP, QUOTE, LINK, STAGE = "code", "marked-up text", "a quotation", "a link", "a stage direction"
MAIL, LETTER, TRANSCRIPT, DATA, LOG = "a mail", "a letter", "a transcript", "data", "a log"
PROMPT, RECALLED, FORM, DOCUMENT = "a prompt", "what the memory recalled", "somebody's form", "a document"
ROLE_PLAY, INTRODUCED, REPORTED = "role play", "a text to work on", "what somebody else said"

Span = tuple[int, int]
_SHORT_QUOTED_WORDS = 3
_CLAUSE_CHARS, _POINTING_CHARS = 200, 300
_HEAD_CHARS = 160
_LIST_ITEMS = 4
_MOST_COLONS, _MOST_LINES = 80, 200  # more of them introduce nothing
_AFTERWORD_CHARS = 900  # what follows a closed text is short


@dataclass(frozen=True, slots=True)
class OtherText:
    """Characters ``start`` to ``end`` (excluded) of a message that are not the user's words, and what they are."""

    start: int
    end: int
    kind: str


@lru_cache(maxsize=128)
def find_other_text(text: str) -> tuple[OtherText, ...]:
    """Return the parts of *text* that are not the writer's own statements, in the order in which they were found."""
    left, found = text, []
    for kind, search in _SEARCHES:
        spans = [(start, end) for start, end in search(left) if start < end]
        found += [OtherText(start, end, kind) for start, end in spans]
        left = _without(left, spans) if kind != CODE else fold_quotes(_without(left, spans))
    _lines.cache_clear()  # a long text has many
    return tuple(found)


@lru_cache(maxsize=128)
def masked(text: str) -> str:
    """
    Blank every character of *text* that is not the writer's own statement; the length stays.

    Short quoted words stay ("call me “Bo”"): they are names, not quotations.
    """
    return _without(fold_quotes(text), [(other.start, other.end) for other in find_other_text(text)])


def kind_of_text(text: str, start: int, end: int) -> str:
    """Return the kind of text that characters *start* to *end* are part of; empty when they are the writer's own words."""
    shares = ((min(end, other.end) - max(start, other.start), other.kind) for other in find_other_text(text))
    size, kind = max(shares, default=(0, ""))
    return kind if size > 0 else ""


def split_authorship(text: str) -> tuple[str, str]:
    """Return the writer's own words and the text of others; quotations, links and code stay with the words around them."""
    spans = [(o.start, o.end) for o in find_other_text(text) if o.kind not in (CODE, LINK, QUOTE, STAGE)]
    own = _without(text, spans)
    others = (
        "".join(text[at] if ch == BLANK else "\n" if ch == "\n" else " " for at, ch in enumerate(own)) if spans else ""
    )
    return own.replace(BLANK, " "), others


def _without(text: str, spans: Iterable[Span]) -> str:
    parts, at = [], 0
    for start, end in sorted(spans):
        if end > at:
            start = max(start, at)
            parts += [text[at:start], _NOT_LINE_END.sub(BLANK, text[start:end])]
            at = end
    return "".join([*parts, text[at:]])


_NOT_LINE_END = re.compile(r"[^\n]")


@cache
def _words() -> dict[str, str]:
    data = tomllib.loads((resources.files(__package__) / "authorship.toml").read_text(encoding="utf-8"))
    tables = {
        name: re.sub(r"\s*\n\s*", "", source.strip("\n")) for part in data.values() for name, source in part.items()
    }
    return {
        name: re.sub(r"\{([a-z_]+)\}", lambda hole: tables[hole[1]], source) for name, source in tables.items()
    }  # fmt: skip


@cache
def _cue(name: str) -> re.Pattern[str]:
    return re.compile(_words()[name], re.IGNORECASE | re.MULTILINE)


@cache
def _label_is(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?:{_words()[name]})\Z", re.IGNORECASE)


# --- text within marks


_FENCE = re.compile(r"(?:```|~~~).*?(?:```|~~~|\Z)", re.DOTALL)
_INLINE_CODE = re.compile(r"`[^`\n]{1,300}`")
_QUOTED_LINE = re.compile(r"^[ \t]*(?:>(?!>)|\||[│┃]).*$", re.MULTILINE)
# A line as contexts are rendered, "…" or user: "…": what the memory put into a prompt is nobody's statement.
_RENDERED = re.compile(
    r'^(?:[^\s":]{1,40}(?: [^\s":]{1,40}){0,3}: "|"(?=[^\n]*\\))(?:[^"\\\n]|\\.)*"[ \t]*$', re.MULTILINE
)
# The heading of such lines with the sentence of ours that explains them, and a section of them.
_HEADING = re.compile(r'^# [a-z][a-z ]{1,40}\n(?:[^\n"<]*\n)?(?=<[a-z_]{1,40}>\n"|[a-z]{1,20}: "|")', re.MULTILINE)
_LINK = re.compile(r"(?:https?://|www\.)\S+")
_DOUBLE = re.compile(
    r"(?<![A-Za-z0-9])(?:''|[\"“„«‹「『])((?:[^\"“”„«»‹›「」『』']|'(?!')){1,6000})(?:''|[\"”“»›」』])(?![A-Za-z0-9])"
)
_SINGLE = re.compile(r"(?<![\w'])'(?! )([^'\n]{1,600}(?:'\w[^'\n]{0,300}){0,12})'(?!\w)")
_STAGE = re.compile(
    r"^[ \t]*[♪♫].*$|(?<![\w*])\*[^*\n]{3,300}\*(?![\w*])|^[ \t]*\* ?[a-z]\w+ \w+s\b[^\n]*$", re.MULTILINE
)
_TAG = re.compile(r"<(/?)([a-zA-Z][\w.:-]{0,40})(?=[\s>/])[^<>\n]{0,200}>")
_ANY_TAG = re.compile(r"<(/?[a-zA-Z][^<>\n]{0,200})>")
_INLINE_TAGS = frozenset("a b i u s em strong span br hr font sub sup small mark big tt ins del".split())
_TEMPLATE = re.compile(r"^.*(?:\{\{[^{}\n]{1,80}\}\}|<\|[a-z_]{2,30}\|>).*$", re.MULTILINE)


def _each(pattern: re.Pattern[str]) -> Callable[[str], Iterator[Span]]:
    return lambda text: (found.span() for found in pattern.finditer(text))


def _code(text: str) -> Iterator[Span]:
    if "`" in text or "~~~" in text:
        fences = [found.span() for found in _FENCE.finditer(text)]
        yield from fences
        yield from (found.span() for found in _INLINE_CODE.finditer(_without(text, fences)))


def _elements(text: str) -> Iterator[Span]:
    """Find the elements of XML and HTML with what they hold, apart from the formatting of single words."""
    opened: dict[str, list[int]] = {}
    for found in _TAG.finditer(text):
        name = found[2].lower()
        if name in _INLINE_TAGS or found.group().endswith("/>"):
            continue
        if not found[1]:
            opened.setdefault(name, []).append(found.start())
        elif opened.get(name):
            yield opened[name][0], found.end()
            opened[name].clear()


def _tags(text: str) -> Iterator[Span]:
    """Find single tags; "<nick>" in front of a line is left for the transcripts."""
    for found in _ANY_TAG.finditer(text):
        before = text[text.rfind("\n", 0, found.start()) + 1 : found.start()]
        if not _NICK.match(text, found.start() - len(before)) or found[1].lower() in _INLINE_TAGS:
            yield found.span()


def _quotations(text: str) -> Iterator[Span]:
    for kind in (_DOUBLE, _SINGLE):
        for found in kind.finditer(text):
            if not _is_name(found) and not _own_quotation(text, found.start()):
                yield found.span()


def _is_name(found: re.Match[str]) -> bool:
    words = found[1].split()
    spaced = found[1].isascii() or " " in found[1]
    short = len(words) <= _SHORT_QUOTED_WORDS if spaced else len(found[1]) <= 6
    return short and not _cue("names_me").search(found[1])


def _own_quotation(text: str, start: int) -> bool:
    """Whether the writer quotes his own words: "I said to the doctor, …"."""
    before = re.split(r"[.!?\n\"]", text[max(0, start - 120) : start])[-1].rstrip(" ,:")
    own = _cue("says_myself").search(before)
    return own is not None


# --- lines


_LINE = re.compile(r"[^\n]*(?:\n|\Z)")
_SEPARATOR = re.compile(r"^[ \t]*(?:[-=*_~#—–]{3,}|[-=*_~#]{2,}.{0,40}[-=*_~#]{2,})[ \t]*$")
_LABEL = re.compile(
    r"[ \t]*(?:[-•*][ \t]+)?(?:\[[^\]\n]{1,40}\] ?){0,2}(?:\*\*|__)?[@<\[(]?(?P<name>[^\W\d_](?:[\w.'’ -]|\s\(?\d){0,38}?)[>\])]?(?:\*\*|__)?"
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
_NICK = re.compile(rf"[ \t]*(?:[\[(]?{_WHEN}[\])]?[ \t]+)?<[@+%~&]?[^\s<>/][^<>/\n]{{0,30}}>[ \t]+\S", re.IGNORECASE)
_LOG_LINE = re.compile(
    r"[ \t]*(?:\d{4}-\d\d-\d\dT[\d:.,]+\S*[ \t]+\S+[ \t]|\[?\d{4}-\d\d-\d\d[T ][\d:.,]+\S*[ \t]+.*\b(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL|CRITICAL)\b"
    r"|(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL|CRITICAL)\b[ :\]\[]|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d [\w.-]+ [\w./-]+(?:\[\d+\])?:|\S+ - \S+ \[\d\d/\w{3}/\d{4}:|[+-]{1,3}(?=[^\s+-])|@@ )"
)
_CODE_LINE = re.compile(r"(?:[{}]|\);|\w\.\w+\(.*\)|^[ \t]*[a-z_]+\([^()]*\)|['\"\x00];)[ \t]*$")
_CODE_START = re.compile(
    r"[ \t]*(?:(?:def|class|function|const|let|var|public|private|static) \w+ ?[=({:]|#include|import \w+$|from \w+ import|(?:SELECT|INSERT|UPDATE|DELETE|CREATE) [\w*]+ |\w+ ?= ?(?:\w+\(|[\"'\x00\[{]|\d)|[$%] \w+|>>> |[a-z_]+: ?[|>]-?$)"
)
_SHELL = re.compile(r"[ \t]*(?:[$%] \w+|>>> )|[a-z_]+: ?[|>]-?$")
_EDGE_OF_TEXT = re.compile(
    r"[ \t]*\W*(?:begin|start|end|stop|anfang|ende|inicio|fin|début)(?: (?:of )?(?:the )?(?:text|quote|mail|e-?mail|message|letter|transcript|document|zitat|texto|texte|cita))?\W*$",
    re.IGNORECASE,
)
_OPTION = re.compile(r"[ \t]*\(?[A-Da-d1-4][.):] ?\S")
_CHOICE = re.compile(
    r"\b(?:which|whose|compare|choose between|(?:a|1) or (?:b|2)|(?:is|are|sounds?|reads?) better|welche[rs]?|cuál|quel(?:le)?s?)\b.*[?:]\s*$|(?:哪|어느|어떤).*[?？:]\s*$",
    re.IGNORECASE,
)
_CAPITAL_NAME = re.compile(r"[ \t]*[A-ZÀ-Þ][A-ZÀ-Þ'’.-]+(?: [A-ZÀ-Þ'’.-]+){0,2}(?: \([\w.' ]{1,20}\))?[ \t]*$")
_CUES_OF_SUBTITLES = re.compile(r"[ \t]*\d\d:\d\d(?::\d\d)?[.,]\d{3}[ \t]*-->")
_JSON_LINE = re.compile(
    r"[ \t]*(?:[\[{](?=\s*(?:[\"'\[{\x00]|\w+\s*:|\Z))|[\"'\x00]+[\w ]*[\"'\x00]*\s*:|[\]}],?[ \t]*\Z)"
)
_SPEECH = re.compile(
    r"\b(?:i|i'\w+|im|my|me|we|our|us|you|your|ich|du|mein\w*|dein\w*|wir|mir|dir|uns|yo|tú|tu|mi|mis|me|te|soy|vivo|tengo|trabajo|estoy|somos|vivimos|je|j'\w+|mon|ma|mes|nous|vous|toi|moi|eu|io|ik)\b|[我你您咱]|나는|저는|제가|내가|저도|나도|우리|저희|(?:요|다|어|야)[.!?]?\s*\Z|[?？]",
    re.IGNORECASE,
)
_REVIEW = re.compile(
    r"[ \t]*(?:[★☆⭐]{1,5}|\d(?:[.,]\d)?(?: ?/ ?5| out of 5| stars?)\b|(?:posted by )?u/\w+|@\w+ ?[·:]|posted (?:by|in)\b|by [A-Z]\w+, )",
    re.IGNORECASE,
)
_DASH_LINE = re.compile(r"[ \t]*[–—-][ \t]*\S")


class _TextLine(NamedTuple):
    start: int
    end: int  # without the line feed
    text: str

    @property
    def empty(self) -> bool:
        return not self.text.strip()

    @property
    def head(self) -> str:
        """The beginning of the line, where labels and times are."""
        return self.text[:_HEAD_CHARS]


@lru_cache(maxsize=2)  # one search after the other looks at the same lines
def _lines(text: str) -> list[_TextLine]:
    found = (line.span() for line in _LINE.finditer(text) if line.end() > line.start() or line.start() < len(text))
    return [_TextLine(start, end - (text[end - 1 : end] == "\n"), text[start:end].rstrip("\n")) for start, end in found]


def _is_label(kind: str, name: str) -> bool:
    return bool(_label_is(kind).match(name.strip(" *_.")))


def _mails(text: str) -> Iterator[Span]:
    """Find mails: their headers, the lines that open a forwarded or answered one, and what follows."""
    lines, done = _lines(text), 0
    sent = next((line for line in lines if _cue("sent_from").match(line.head)), None)
    if sent is not None:
        opened = [
            line.end for line in lines if line.end < sent.start and _cue("points").fullmatch(line.head.rstrip(" .!?:"))
        ]
        yield (opened[0] if opened else 0), sent.end if lines[0] is not sent else len(text)
    for at, line in enumerate(lines):
        if line.start < done or line.empty:
            continue
        if _cue("forwarded").match(line.text) or _cue("wrote").match(line.text) or _opens_mail(lines, at):
            done = _end_of_text(text, line.start)
            yield line.start, done


def _opens_mail(lines: list[_TextLine], at: int) -> bool:
    heads = [
        head
        for head in lines[at : at + 4]
        if (label := _LABEL.match(head.head)) and any(_is_label(kind, label["name"]) for kind in ("header", "author"))
    ]
    label = _LABEL.match(lines[at].text)
    if not heads or heads[0] is not lines[at] or label is None or not lines[at].text[label.end() :].strip():
        return False
    following = next((line for line in lines[at + 1 :] if not line.empty), None)
    if _cue("names_me").search(lines[at].text[label.end() :].strip()):
        return False
    if len(heads) > 1 or _is_label("subject", label["name"]) or _is_label("author", label["name"]):
        return True
    sender = label["name"].strip().casefold() in ("from", "von", "发件人", "보낸 사람", "da", "差出人")
    alone = following is None or not _LABEL.match(following.text)
    value = lines[at].text[label.end() :]
    if "@" in value and _is_label("header", label["name"]):
        return True
    return sender and (alone and (bool(_SPEECH.search(value)) or following is not None))


def _transcripts(text: str) -> Iterator[Span]:
    """Find what several people say, each after a label, and single lines that begin with a speaker's name."""
    lines = _lines(text)
    labels = [_speaker_label(line) for line in lines]
    talk = [at for at, label in enumerate(labels) if label is not None]
    spoken = [at for at in talk if labels[at][1] > 1 or _SPEECH.search(lines[at].text, labels[at][2])]  # type: ignore[index]
    names = {labels[at][0].casefold() for at in talk}  # type: ignore[index]
    sure = [at for at in talk if labels[at][1] > 1]  # type: ignore[index]
    labelled = sum(bool(_LABEL.match(line.head)) for line in lines)
    if not sure and len(names) == len(talk) and labelled >= _LIST_ITEMS:
        return  # as many labels as lines: a list of headings
    if not sure and not (spoken and (len(names) > 1 or len(talk) > 1 or _is_person(labels[spoken[0]][0]))):  # type: ignore[index]
        return
    last = -1
    for at, following in zip(talk, [*talk[1:], None], strict=True):
        if at <= last:
            continue
        end = _end_of_utterance(lines, at, labels, following)
        yield lines[at].start, lines[end].end
        last = end


def _speaker_label(line: _TextLine) -> tuple[str, int, int] | None:
    """Return ``(name, how sure it is a speaker: 1 to 3, where the words begin)`` of a line; ``None`` for other lines."""
    if _NICK.match(line.head):
        return line.text.split(">")[0].split("<")[-1], 2, line.text.index(">") + 1
    stamped = _TABBED.match(line.head) or _STAMPED.match(line.head) or _KAKAO.match(line.head)
    if stamped and _may_speak(stamped["name"]):
        return stamped["name"], 2, stamped.end()
    behind = _STAMPED_BEHIND.match(line.head)
    if behind and _may_speak(behind["name"] or behind["to"]):
        return behind["name"] or behind["to"], 2, behind.end() - 1
    head = _STAMPED_HEAD.match(line.head) if len(line.text) < _HEAD_CHARS else None
    if head:
        name = head["first"] or head["name"]
        return (name, 3, len(line.text)) if _may_speak(name) else None
    label = _LABEL.match(line.head)
    if label is None or BLANK in label.group():
        return None
    name = label["name"].strip()
    if _is_label("speaker", name) or _is_label("text", name):
        return name, 2, label.end()
    if _is_label("relative", name) and _FIRST_PERSON.match(line.head, label.end()):
        return name, 1, label.end()
    words = name.casefold().split()
    named = [
        kind for kind in ("field", "header", "others", "thing") if _is_label(kind, name) or _is_label(kind, words[-1])
    ]
    if named or len(words) > 3 or words[0] in _STOP_WORDS or _cue("own").search(name) or not _could_name(name):
        return None
    return name, 1, label.end()


_STOP_WORDS = frozenset().union(*STOP.values())


_FIRST_PERSON = re.compile(r"(?:i|i'\w+|ich|yo|soy|vivo|tengo|je|j'\w+|我|저는|나는)(?![^\W\d_])", re.IGNORECASE)


def _may_speak(name: str) -> bool:
    return _is_label("family", name) or not _is_label("field", name)


def _could_name(name: str) -> bool:
    return " " not in name or all(not word[:1].islower() for word in name.split())


def _is_person(name: str) -> bool:
    """Whether a single label is a name: capitalized, a nickname, or in two to four characters without capitals."""
    if name.isascii() or name[:1].islower() != name[:1].isupper():
        return (name[:1].isupper() and not name.isupper()) or bool(re.search(r"\w[_\d]", name))
    return len(name) <= 4


def _end_of_utterance(
    lines: list[_TextLine], at: int, labels: list[tuple[str, int, int] | None], following: int | None
) -> int:
    """Return the last line that belongs to the talk that begins on line *at*; *following* is the next speaker's."""
    if following is not None and following - at <= 12:
        return following - 1
    label = labels[at]
    end, single = at, label is not None and bool(lines[at].text[label[2] :].strip())
    for number in range(at + 1, len(lines)):
        if lines[number].empty:
            break
        if single and _cue("directed").match(lines[number].text):
            break
        end = number
    return end


def _blocks(text: str, start: int = 0) -> Iterator[list[_TextLine]]:
    """Yield the paragraphs of *text* from *start* on, each as its lines."""
    lines: list[_TextLine] = []
    for line in _lines(text[start:]):
        if line.empty and lines:
            yield lines
            lines = []
        elif not line.empty:
            lines.append(_TextLine(line.start + start, line.end + start, line.text))
    if lines:
        yield lines


def _data(text: str) -> Iterator[Span]:
    """Find JSON, tables of values and subtitles that the writer does not say to be about himself."""
    if _cue("claims").search(text):
        return
    for lines in _blocks(text):
        json = [line for line in lines if _JSON_LINE.match(line.head)]
        if json:
            yield json[0].start, json[-1].end
            if len(json) > 1 or lines[-1] is json[-1]:
                yield json[0].start, _closing(text, json[0].start, json[-1].end)
        if any(_CUES_OF_SUBTITLES.match(line.head) for line in lines):
            yield lines[0].start, lines[-1].end
        for mark in (",", ";", "\t"):
            counts = [line.text.count(mark) for line in lines]
            header = [cell.strip() for cell in lines[0].text.split(mark)]
            enough = len(lines) > 1 and counts[0] >= (2 if mark == "," else 1) and min(counts) == counts[0]
            if enough and all(re.fullmatch(r"[\w-]{1,24}(?: [\w-]{1,24}){0,2}", cell) for cell in header):
                yield lines[0].start, lines[-1].end


def _closing(text: str, start: int, end: int) -> int:
    """Return the end of the object or list that opens at *start*; *end* when it closes nowhere behind."""
    depth = 0
    for at in range(start, min(len(text), start + 20_000)):
        depth += (text[at] in "[{") - (text[at] in "]}")
        if depth == 0 and text[at] in "]}":
            return max(end, at + 1)
    return end


def _logs(text: str) -> Iterator[Span]:
    """Find lines of logs and differences, and paragraphs of code that no fence marks."""
    for lines in _blocks(text):
        yield from ((line.start, line.end) for line in lines if _LOG_LINE.match(line.head))
        code = [line for line in lines if _CODE_LINE.search(line.text[-_HEAD_CHARS:]) or _CODE_START.match(line.head)]
        if code:
            shell = lines[-1] if _SHELL.match(code[0].head) else code[-1]
            comment = [line for line in lines if re.match(r"[ \t]*(?://|#|--|/?\*) ?\w", line.head)]
            yield (
                min([code[0].start, *(line.start for line in comment)]),
                max(shell.end, *(line.end for line in comment or [shell])),
            )


def _between_bars(text: str) -> Iterator[Span]:
    """Find text between two bars, or between words that say where a text begins and ends."""
    lines = _lines(text)
    bars = [line for line in lines if _SEPARATOR.match(line.head) or _EDGE_OF_TEXT.match(line.head)]
    if len(bars) > 1:
        yield bars[0].start, bars[-1].end


def _options(text: str) -> Iterator[Span]:
    """Find the numbered texts between which a question lets choose."""
    for before, line in pairwise(lines := [line for line in _lines(text) if not line.empty]):
        if _CHOICE.search(before.text) and _OPTION.match(line.head):
            last = [other for other in lines if _OPTION.match(other.head)][-1]
            yield line.start, last.end
            return


def _screenplay(text: str) -> Iterator[Span]:
    """Find talk under names in capitals."""
    lines = _lines(text)
    names = [at for at, line in enumerate(lines[:-1]) if _CAPITAL_NAME.match(line.text) and not lines[at + 1].empty]
    if len(names) > 1:
        end = next((at for at in range(names[-1] + 1, len(lines)) if lines[at].empty), len(lines))
        yield lines[names[0]].start, lines[end - 1].end


def _spoken_dashes(text: str) -> Iterator[Span]:
    """Find dialogues whose lines begin with dashes, a question among them, and reviews with their stars."""
    for lines in _blocks(text):
        dashes = [line for line in lines if _DASH_LINE.match(line.head)]
        asked = [
            line for line in dashes[:-1] if line.text.rstrip().endswith(("?", "？")) and _SPEECH.search(line.text[:-1])
        ]
        if asked and len(dashes) > 1:
            yield dashes[0].start, dashes[-1].end
        stars = next((line for line in lines if _REVIEW.match(line.head)), None)
        if stars is not None:
            yield stars.start, lines[-1].end


def _forms(text: str) -> Iterator[Span]:
    """Find lists of labels and values that are about a third person by a label of theirs ("Patient: …")."""
    if _cue("claims").search(text):
        return
    for lines in _blocks(text):
        fields = [line for line in lines if (label := _LABEL.match(line.text)) and line.text[label.end() :].strip()]
        labels = [_LABEL.match(line.text) for line in fields]
        if len(fields) > 1 and any(label and _is_label("others", label["name"]) for label in labels):
            yield fields[0].start, fields[-1].end


def _recalled(text: str) -> Iterator[Span]:
    """Find what a memory put into a prompt: its heading and the lines under it."""
    lines = _lines(text)
    for at, line in enumerate(lines[:-1]):
        heading = line.text.strip(" #*_")
        if (
            len(heading) <= 100
            and heading
            and _cue("recalled").match(heading)
            and not _cue("own").search(heading.rstrip(":"))
        ):
            end = at
            while end + 1 < len(lines) and not lines[end + 1].empty:
                end += 1
            if end > at:
                yield line.start, lines[end].end


def _documents(text: str) -> Iterator[Span]:
    """Find documents that open with a heading of their own, letters, and prompts."""
    lines, done = _lines(text), 0
    signed = [line.start for line in lines[-_MOST_LINES:] if _signs(line)]
    signature = _has_signature(lines[-_MOST_LINES:])
    for at, line in enumerate(lines):
        if line.start < done or line.empty:
            continue
        letter = bool(_cue("letter").match(line.head)) and any(place > line.end for place in signed)
        letter = letter or (signature and bool(_cue("salutation").match(line.head)))
        if _cue("document").match(line.head) or letter:
            done = _end_of_text(text, line.start)
            yield line.start, done
        elif at == 0 and _cue("prompt").match(line.head) and not _for_user(line.head.replace("assistant", "")):
            yield line.start, len(text)
            return


def _has_signature(lines: list[_TextLine]) -> bool:
    """Whether a sign-off is followed by a name with a title, an address or a number, as below business mail."""
    contact = re.compile(r"\|.*\||\+\d[\d ()-]{6,}|\w@\w")
    signed = [at for at, line in enumerate(lines) if _signs(line)]
    return any(contact.search(line.head) for at in signed[:3] for line in lines[at + 1 : at + 6])


def _signs(line: _TextLine) -> bool:
    """Whether a line closes a letter; thanks close other messages, too."""
    thanks = re.match(r"\W*(?:thanks|thank you|love|gracias|merci)\b", line.head, re.IGNORECASE)
    return not thanks and bool(_cue("signoff").match(line.head))


# --- text that a clause introduces


_COLON = re.compile(r"[:：](?![\d/])(?=[\s\x00\"'“„«「『(*]|[^\x00-\x7f]|\w)")
_OPEN_BRACKET = re.compile(r"\((?![^()]*\))")
_CLAUSE_START = re.compile(r"[.!?…。！？](?=\s)|[。！？]|\n")


def _introduced(text: str) -> Iterator[Span]:
    """Find texts behind a clause that introduces them: "translate this: …", "my boss wrote me: …"."""
    done = 0
    for found in islice(_COLON.finditer(text), _MOST_COLONS):
        if found.start() < done:
            continue
        before = text[max(0, found.start() - _CLAUSE_CHARS) : found.start()]
        clause = _OPEN_BRACKET.split(_CLAUSE_START.split(before)[-1])[-1].strip(" \t*_#>-")
        kind = _introduction(clause)
        if not kind:
            continue
        start = found.end() + len(text[found.end() :]) - len(text[found.end() :].lstrip())
        if start >= len(text) or text.startswith(BLANK, start):
            continue
        on_line = "\n" not in text[found.end() : start]
        if kind == INTRODUCED:
            end = _end_of_text(text, start, same_line=on_line)
        elif on_line:
            end = _end_of_report(text, start)
        else:
            letter = _cue("salutation").match(text, start)
            end = _end_of_text(text, start) if letter else next(_blocks(text, start))[-1].end
        done = end
        yield start, end


def _end_of_report(text: str, start: int) -> int:
    """Return the end of what is quoted on one line; of a few words only these: "The doctor says: rest. So I stay home."."""
    end = _end_of_line(text, start)
    first = next(iter(split_sentences(text[start:end])), None)
    return (
        start + first.end
        if first and len(first.of(text[start:end]).split()) <= _SHORT_QUOTED_WORDS and text[start].isascii()
        else end
    )


_TOLD_ABOUT = re.compile(r"\b(wrote|writes|said|says|told|noted|posted) (?:\w+ )?about (?:me|us)\b", re.IGNORECASE)


def _introduction(clause: str) -> str:
    """Return whose words a clause before a colon announces; empty when they may be the writer's own."""
    if not clause or BLANK in clause[-1:] or _cue("dictated_self").search(clause):
        return ""
    if _cue("own").search(_TOLD_ABOUT.sub(r"\1", clause)):
        return ""
    if _cue("reports").search(clause) and not _cue("trusted").search(clause):
        return REPORTED
    return INTRODUCED if _cue("introduces").search(clause) or _cue("recalled").match(clause) else ""


def _pointed_at(text: str) -> Iterator[Span]:
    """Find texts below a line that points at them: "Is this mail polite?", "Add the commas:" and an empty line."""
    lines = [line for line in _lines(text) if not line.empty]
    for line, following in pairwise(lines[:_MOST_LINES]):
        clause = line.text.strip(" \t*_#>")[-_POINTING_CHARS:]
        start = following.start + len(following.text) - len(following.text.lstrip())
        if not clause or clause.endswith(BLANK) or text.startswith(BLANK, start):
            continue
        apart = following.start > line.end + 1
        last = [span.of(clause) for span in split_sentences(clause)][-2:]
        announced = apart and clause.endswith((":", "：")) and bool(last) and not _cue("salutation").match(clause)
        announced = announced and not _cue("own").search(last[-1].rstrip(" :："))
        if announced or any(_points(one.rstrip(" .!?:：…~*_)？。！"), apart) for one in last):
            yield following.start, _end_of_text(text, following.start)
            return


def _points(sentence: str, apart: bool) -> bool:
    found = _cue("points").fullmatch(sentence) or (apart and _cue("points_apart").fullmatch(sentence))
    return bool(found) and not any(_cue(name).search(sentence) for name in ("own", "asks_anew"))


def _pointed_back(text: str) -> Iterator[Span]:
    """Find texts above an order that points back at them: "… Translate that into German."."""
    body = text.rstrip()
    mark = _BACK_MARK.search(body)
    if mark:
        yield body.rfind("\n\n", 0, mark.start()) + 1, mark.start()
        return
    at = body.rfind("\n")
    tail = body[at + 1 :].strip(" ^↑<-*_")
    if at > 0 and len(tail) <= 160 and _BACK.search(tail) and BLANK not in body:
        yield 0, at
        return
    spans = split_sentences(body[-2000:])
    if len(spans) > 1 and BLANK not in body:
        start = len(body) - len(body[-2000:]) + spans[-1].start
        if _BACK_STRICT.match(body[start:]):
            yield body.rfind("\n", 0, start) + 1, start


_BACK = re.compile(
    r"^(?:please |pls |can you |could you |now |bitte |kannst du )*(?:translate|proof-?read|summari[sz]e|rephrase|paraphrase|rewrite|reword|polish|tl;?dr|shorten|correct|grammar|fix the grammar|übersetze?|korrigiere?|fasse|traduce|corrige|resume|tradui[st]|résume|reformule)\b"
    r".{0,60}\b(?:this|that|it|above|text|letter|mail|email|das|dies|obige\w*|text|esto|eso|lo|anterior|texto|ceci|ça|cela|ci-dessus|texte)\b|^(?:^ ?)?(?:what does (?:this|that|he|she) mean|who wrote (?:this|that)|is (?:this|that) (?:correct|grammatical|a scam|polite|natural))\b|(?:翻译|翻譯|总结|润色)(?:一下|以上|上面|成)|(?:번역|요약|교정)해",
    re.IGNORECASE,
)  # fmt: skip
_BACK_MARK = re.compile(
    r"(?:<-+|←|\(|\[|\^+|\n)\s*(?:please |pls )?(?:translate|proof-?read|summari[sz]e|rephrase|paraphrase|reword|copied|pasted|quoted|übersetze?n?|traduce|traduis)\b(?=[^\n]*[)\]^]|[^\n]{0,20}\Z)[^()\[\]\n]{0,60}[)\]^]*[.!?]?\Z",
    re.IGNORECASE,
)
_SENTENCE_NAMED = re.compile(
    r"\b(?:the|this) (?:sentence|phrase|words?)[,:]? (?=(?:i|i'm|my|we)\b)[^.!?\n]*", re.IGNORECASE
)
_BACK_STRICT = re.compile(
    r"(?:please |pls |can you |could you |now |bitte )*(?:translate|proof-?read|rephrase|paraphrase|reword|übersetze?|traduce|tradui[st])\s(?:please |bitte )?(?:this|that|it|the above|das|esto|eso|ça|ceci|-la|-le)\b",
    re.IGNORECASE,
)
_FOLLOWING = re.compile(
    r"\b(?:(?:the|these) following (?:\w+ ){0,2}?(?:text|sentences?|statements?|story|dialogue|paragraph|passage|message|poem|quote|questions?|lines?)\b|here(?:'s| is) what (?!i\b|you\b|we\b)[\w' -]{2,60}\b(?:says?|said|writes?|wrote|thinks?|told|posted)\b)[^.!?:\n]{0,60}[.!?:]\s+",
    re.IGNORECASE,
)


def _following(text: str) -> Iterator[Span]:
    found = _FOLLOWING.search(text)
    if found and not text.startswith(BLANK, found.end()):
        yield found.end(), _end_of_text(text, found.end(), same_line=True)


_DIRECT = re.compile(
    r"(?:^|[.!?,]\s+|\b(?:please|can you|could you|to|help me)\s+)(?:translate|how (?:do|would|can) (?:you|i|we|one) (?:say|write|spell|pronounce|sign)|conjugate|repeat(?: after me)?|type|pronounce)\s+"
    r"(?:(?:in|into|to) \w+[,:]?\s+)?(?=(?:the (?:sentence|phrase|words?)\b|i\b|i'|my\b|we\b|our\b))[^.!?\n]*",
    re.IGNORECASE,
)


def _role_play(text: str) -> Iterator[Span]:
    for found in _cue("role_play").finditer(text):
        if not _for_user(text[found.start() : found.start() + 80].split("\n")[0]):
            yield found.end(), _end_of_text(text, found.end())
            return


def _for_user(order: str) -> bool:
    """Whether the assistant is given a trade ("act as my coach"), to which the user speaks for himself."""
    return bool(re.match(rf".{{0,14}}{_words()['trade']}", order, re.IGNORECASE))


# --- where a text without an end mark ends


def _end_of_line(text: str, start: int) -> int:
    end = text.find("\n", start)
    return len(text) if end < 0 else end


def _end_of_text(text: str, start: int, *, same_line: bool = False) -> int:
    """
    Return the end of the text that begins at *start*: where the writer turns to the assistant again, else the last character.

    That is a paragraph that gives an order or asks about the text, that says something "by the way", or that follows
    a sign-off or a separator.
    """
    closed, head = False, text[start : _end_of_line(text, start)]
    if _SEPARATOR.match(head):
        bars = [line.end for line in _lines(text[start:])[1:] if _SEPARATOR.match(line.head)]
        if bars and len(text) - start - bars[-1] <= _AFTERWORD_CHARS:
            return start + bars[-1]
    for number, lines in enumerate(blocks := list(_blocks(text, start))):
        at, first, last = lines[0].start, lines[0].text, number == len(blocks) - 1
        short = len(text) - at <= _AFTERWORD_CHARS
        paragraph = text[at : min(lines[-1].end, at + 400)]
        if number:
            if _turns_to_assistant(paragraph, last=last and short) or (
                _cue("aside").match(paragraph) and (last or closed or same_line)
            ):
                return at
            if closed and short and _is_sentence(first):
                return at
            if short and any(_SEPARATOR.match(lines[edge].head) for edge in (0, -1)):
                return at if _SEPARATOR.match(first) else lines[-1].end
        closed = closed or any(_cue("signoff").match(line.head) for line in lines[-3:] if number or len(lines) > 1)
    return len(text)


def _turns_to_assistant(paragraph: str, *, last: bool) -> bool:
    ends = [span.of(paragraph) for span in split_sentences(paragraph)[-1:]] if last else []
    return any(_cue("directed").match(words) for words in (paragraph, *ends))


def _is_sentence(line: str) -> bool:
    words = len(line.split())
    return (words > 3 or line.rstrip().endswith((".", "!", "?", "。", "！", "？"))) and not _LABEL.match(line)


_SEARCHES: tuple[tuple[str, Callable[[str], Iterable[Span]]], ...] = (
    (CODE, _code),
    (RECALLED, _each(_HEADING)),
    (MARKUP, _elements),
    (QUOTE, _each(_RENDERED)),
    (QUOTE, _each(_QUOTED_LINE)),
    (LINK, _each(_LINK)),
    (MARKUP, _tags),
    (STAGE, _each(_STAGE)),
    (MAIL, _mails),
    (DATA, _data),
    (LOG, _logs),
    (DOCUMENT, _between_bars),
    (DOCUMENT, _options),
    (TRANSCRIPT, _screenplay),
    (PROMPT, _each(_TEMPLATE)),
    (DOCUMENT, _documents),
    (TRANSCRIPT, _transcripts),
    (FORM, _forms),
    (RECALLED, _recalled),
    (QUOTE, _quotations),
    (TRANSCRIPT, _spoken_dashes),
    (INTRODUCED, _introduced),
    (INTRODUCED, _pointed_at),
    (INTRODUCED, _each(_DIRECT)),
    (INTRODUCED, _each(_SENTENCE_NAMED)),
    (INTRODUCED, _following),
    (INTRODUCED, _pointed_back),
    (ROLE_PLAY, _role_play),
)
