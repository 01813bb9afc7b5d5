"""
Authorship: which words of a user's message are the user's own, and which are other people's.

A message may hold mails, chat logs, articles, forms, code, quotations, fiction and what a program pasted.  Such text
is found by its structure, in any language, and by the clause that introduces it (``authorship.toml``); what stands in
it is no statement of the user, while the sentence beside it is.  In doubt the words are somebody else's.  Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice, pairwise

from ..text import dataclass, expression, remembered
from ..text.sentences import split_sentences
from ..text.terms import fold_quotes
from .speakers import BLANK as BLANK
from .speakers import (
    HEAD_CHARS,
    LABEL,
    NICK,
    SPEECH,
    Span,
    TextLine,
    authorship_words,
    cue,
    find_transcripts,
    is_label,
    text_lines,
)

CODE, MARKUP, QUOTE, LINK, STAGE = "code", "marked-up text", "a quotation", "a link", "a stage direction"
MAIL, LETTER, TRANSCRIPT, DATA, LOG = "a mail", "a letter", "a transcript", "data", "a log"
PROMPT, RECALLED, FORM, DOCUMENT = "a prompt", "what the memory recalled", "somebody's form", "a document"
ROLE_PLAY, INTRODUCED, REPORTED = "role play", "a text to work on", "what somebody else said"

_SHORT_QUOTED_WORDS = 3
_CLAUSE_CHARS, _POINTING_CHARS = 200, 300
_MOST_COLONS, _MOST_LINES = 80, 200  # more of them introduce nothing
_AFTERWORD_CHARS = 900  # what follows a closed text is short


@dataclass(frozen=True, slots=True)
class OtherText:
    """Characters ``start`` to ``end`` (excluded) of a message that are not the user's words, and what they are."""

    start: int
    end: int
    kind: str


@remembered(128)
def find_other_text(text: str) -> tuple[OtherText, ...]:
    """Return the parts of *text* that are not the writer's own statements, in the order in which they were found."""
    left, found = text, []
    for kind, search in _SEARCHES:
        spans = [(start, end) for start, end in search(left) if start < end]
        found += [OtherText(start, end, kind) for start, end in spans]
        left = _without(left, spans) if kind != CODE else fold_quotes(_without(left, spans))
    text_lines.cache_clear()  # a long text has many
    return tuple(found)


@remembered(128)
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


_NOT_LINE_END = expression(r"[^\n]")


# --- text within marks


_FENCE = expression(r"(?:```|~~~).*?(?:```|~~~|\Z)", re.DOTALL)
_INLINE_CODE = expression(r"`[^`\n]{1,300}`")
_QUOTED_LINE = expression(r"^[ \t]*(?:>(?!>)|\||[│┃]).*$", re.MULTILINE)
# A line as contexts are rendered, "…" or user: "…": what the memory put into a prompt is nobody's statement.
_RENDERED = expression(
    r'^(?:[^\s":]{1,40}(?: [^\s":]{1,40}){0,3}: "|"(?=[^\n]*\\))(?:[^"\\\n]|\\.)*"[ \t]*$', re.MULTILINE
)
# The heading of such lines with the sentence of ours that explains them, and a section of them.
_HEADING = expression(r'^# [a-z][a-z ]{1,40}\n(?:[^\n"<]*\n)?(?=<[a-z_]{1,40}>\n"|[a-z]{1,20}: "|")', re.MULTILINE)
_LINK = expression(r"(?:https?://|www\.)\S+")
_DOUBLE = expression(
    r"(?<![A-Za-z0-9])(?:''|[\"“„«‹「『])((?:[^\"“”„«»‹›「」『』']|'(?!')){1,6000})(?:''|[\"”“»›」』])(?![A-Za-z0-9])"
)
# Marks that open one line and close another hold a pasted text, whatever its lines look like.
_BLOCK_IN_MARKS = expression(r"^[ \t]*[\"“„«](?=[^\"“”„«»\n]{1,600}\n)[^\"“”„«»]{1,6000}[\"”“»][ \t]*$", re.MULTILINE)
_SINGLE = expression(r"(?<![\w'])'(?! )([^'\n]{1,600}(?:'\w[^'\n]{0,300}){0,12})'(?!\w)")
# A direction of two words or more beside another one, or of a named person, makes a played line; "*sighs*" does not.
_STAGE = expression(
    r"^[ \t]*[♪♫].*$|^[ \t]*\*[a-z]+s [^*\n]{2,300}\*[^*\n]{1,2000}\*[a-z]+s [^*\n]{2,300}\*.*$|^[ \t]*\* ?(?:[A-Z][a-z]+ ){1,3}[a-z]+s\b[^*\n]{0,300}\*.*$"
    r"|(?<![\w*])\*[^*\n]{3,300}\*(?![\w*])|^[ \t]*\* ?[a-z]\w+ \w+s\b[^\n]*$",
    re.MULTILINE,
)
_OUT_OF_ROLE = expression(
    r"(?:\booc\b|\bout of character\b|\(\()[^\n]*|\b(?:irl|in real life)\b[^.!?\n]*", re.IGNORECASE
)
_SENTENCE_BEFORE = expression(r"[^.!?\n*]*\Z")
_TAG = expression(r"<(/?)([a-zA-Z][\w.:-]{0,40})(?=[\s>/])[^<>\n]{0,200}>")
_ANY_TAG = expression(r"<(/?[a-zA-Z][^<>\n]{0,200})>")
_INLINE_TAGS = frozenset(
    "a b i u s em strong span br hr font sub sup small mark big tt ins del rant vent aside joke sarcasm offtopic".split()
)
_TEMPLATE = expression(r"^.*(?:\{\{[^{}\n]{1,80}\}\}|<\|[a-z_]{2,30}\|>).*$", re.MULTILINE)


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
        if not NICK.match(text, found.start() - len(before)) or found[1].lower() in _INLINE_TAGS:
            yield found.span()


def _stage(text: str) -> Iterator[Span]:
    for found in _STAGE.finditer(text):
        yield from _played(text, *found.span())


def _played(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield what lies between *start* and *end* apart from what the writer says out of his role."""
    for found in _OUT_OF_ROLE.finditer(text, start, end):
        from_here = max(start, found.start() - _CLAUSE_CHARS)
        before = _SENTENCE_BEFORE.search(text, from_here, found.start())
        yield start, before.start() if before and found[0][0] not in "oO(" else found.start()
        start = found.end()
    yield start, end


def _quotations(text: str) -> Iterator[Span]:
    for kind in (_DOUBLE, _SINGLE):
        for found in kind.finditer(text):
            if not _is_name(found) and not _own_quotation(text, found.start()):
                yield found.span()


def _blocks_in_marks(text: str) -> Iterator[Span]:
    """Find quotations of several lines, before their lines are read as a mail or a table."""
    return (found.span() for found in _BLOCK_IN_MARKS.finditer(text) if not _own_quotation(text, found.start()))


def _is_name(found: re.Match[str]) -> bool:
    words = found[1].split()
    spaced = found[1].isascii() or " " in found[1]
    short = len(words) <= _SHORT_QUOTED_WORDS if spaced else len(found[1]) <= 6
    return short and not cue("names_me").search(found[1])


def _own_quotation(text: str, start: int) -> bool:
    """Whether the writer quotes his own words: "I said to the doctor, …"."""
    before = re.split(r"[.!?\n\"]", text[max(0, start - 120) : start])[-1].rstrip(" ,:")
    own = cue("says_myself").search(before)
    return own is not None


# --- lines


_SEPARATOR = expression(r"^[ \t]*(?:[-=*_~#—–]{3,}|[-=*_~#]{2,}.{0,40}[-=*_~#]{2,})[ \t]*$")
_LOG_LINE = expression(
    r"[ \t]*(?:\d{4}-\d\d-\d\dT[\d:.,]+\S*[ \t]+\S+[ \t]|\[?\d{4}-\d\d-\d\d[T ][\d:.,]+\S*[ \t]+.*\b(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL|CRITICAL)\b"
    r"|(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL|CRITICAL)\b[ :\]\[]|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d [\w.-]+ [\w./-]+(?:\[\d+\])?:|\S+ - \S+ \[\d\d/\w{3}/\d{4}:|[+-]{1,3}(?=[^\s+-])|@@ )"
)
_CODE_LINE = expression(r"(?:[{}]|\);|\w\.\w+\(.*\)|^[ \t]*[a-z_]+\([^()]*\)|['\"\x00];)[ \t]*$")
_CODE_START = expression(
    r"[ \t]*(?:(?:def|class|function|const|let|var|public|private|static) \w+ ?[=({:]|#include|import \w+$|from \w+ import|(?:SELECT|INSERT|UPDATE|DELETE|CREATE) [\w*]+ |\w+ ?= ?(?:\w+\(|[\"'\x00\[{]|\d)|[$%] \w+|>>> |[a-z_]+: ?[|>]-?$)"
)
_SHELL = expression(r"[ \t]*(?:[$%] \w+|>>> )|[a-z_]+: ?[|>]-?$")
_EDGE_OF_TEXT = expression(
    r"[ \t]*\W*(?:begin|start|end|stop|anfang|ende|inicio|fin|début)(?: (?:of )?(?:the )?(?:text|quote|mail|e-?mail|message|letter|transcript|document|zitat|texto|texte|cita))?\W*$",
    re.IGNORECASE,
)
_OPTION = expression(r"[ \t]*\(?[A-Da-d1-4][.):] ?\S")
_CHOICE = expression(
    r"\b(?:which|whose|compare|choose between|(?:a|1) or (?:b|2)|(?:is|are|sounds?|reads?) better|welche[rs]?|cuál|quel(?:le)?s?)\b.*[?:]\s*$|(?:哪|어느|어떤).*[?？:]\s*$",
    re.IGNORECASE,
)
_CAPITAL_NAME = expression(r"[ \t]*[A-ZÀ-Þ][A-ZÀ-Þ'’.-]+(?: [A-ZÀ-Þ'’.-]+){0,2}(?: \([\w.' ]{1,20}\))?[ \t]*$")
_CUES_OF_SUBTITLES = expression(r"[ \t]*\d\d:\d\d(?::\d\d)?[.,]\d{3}[ \t]*-->")
_JSON_LINE = expression(
    r"[ \t]*(?:[\[{](?=\s*(?:[\"'\[{\x00]|\w+\s*:|\Z))|[\"'\x00]+[\w ]*[\"'\x00]*\s*:|[\]}],?[ \t]*\Z)"
)
_REVIEW = expression(
    r"[ \t]*(?:[★☆⭐]{1,5}|\d(?:[.,]\d)?(?: ?/ ?5| out of 5| stars?)\b|(?:posted by )?u/\w+|@\w+ ?[·:]|posted (?:by|in)\b|by [A-Z]\w+, )",
    re.IGNORECASE,
)
_DASH_LINE = expression(r"[ \t]*[–—-][ \t]*\S")


_REPLY = expression(r"[ \t]*(?:re|fwd?|aw|wg|tr|rv)\b ?:", re.IGNORECASE)


def _mails(text: str) -> Iterator[Span]:
    """Find mails: their headers, the lines that open a forwarded or answered one, and what follows."""
    lines, done = text_lines(text), 0
    sent = next((line for line in lines if cue("sent_from").match(line.head)), None)
    if sent is not None:
        opened = [
            line.end for line in lines if line.end < sent.start and cue("points").fullmatch(line.head.rstrip(" .!?:"))
        ]
        if lines[0] is sent:
            yield 0, len(text)
        elif opened:
            yield opened[0], sent.end
        else:  # below the writer's own words when nothing above it belongs to a mail
            mail = any(_heads_mail(line) for line in lines if line.end < sent.start)
            yield (0 if mail else sent.start), sent.end
    for at, line in enumerate(lines):
        if line.start < done or line.empty:
            continue
        if cue("forwarded").match(line.text) or cue("wrote").match(line.text) or _opens_mail(lines, at):
            done = _end_of_text(text, line.start)
            yield line.start, done


def _heads_mail(line: TextLine) -> bool:
    """Whether a line is a header, a salutation or a sign-off of a mail."""
    label = LABEL.match(line.head)
    headed = label is not None and any(is_label(kind, label["name"]) for kind in ("header", "author", "subject"))
    return headed or _signs(line) or bool(_REPLY.match(line.head) or cue("salutation").match(line.head))


def _opens_mail(lines: list[TextLine], at: int) -> bool:
    heads = [
        head
        for head in lines[at : at + 4]
        if (label := LABEL.match(head.head)) and any(is_label(kind, label["name"]) for kind in ("header", "author"))
    ]
    label = LABEL.match(lines[at].text)
    if not heads or heads[0] is not lines[at] or label is None or not lines[at].text[label.end() :].strip():
        return False
    following = next((line for line in lines[at + 1 :] if not line.empty), None)
    if cue("names_me").search(lines[at].text[label.end() :].strip()):
        return False
    if len(heads) > 1 or is_label("author", label["name"]):
        return True
    if is_label("subject", label["name"]):
        return following is not None or at > 0
    sender = label["name"].strip().casefold() in ("from", "von", "发件人", "보낸 사람", "da", "差出人")
    alone = following is None or not LABEL.match(following.text)
    value = lines[at].text[label.end() :]
    if "@" in value and is_label("header", label["name"]):
        return True
    return sender and (alone and (bool(SPEECH.search(value)) or following is not None))


def _blocks(text: str, start: int = 0) -> Iterator[list[TextLine]]:
    """Yield the paragraphs of *text* from *start* on, each as its lines."""
    lines: list[TextLine] = []
    for line in text_lines(text[start:]):
        if line.empty and lines:
            yield lines
            lines = []
        elif not line.empty:
            lines.append(TextLine(line.start + start, line.end + start, line.text))
    if lines:
        yield lines


def _data(text: str) -> Iterable[Span]:
    """Find JSON, tables of values and subtitles that the writer does not say to be about himself."""
    return _unclaimed(text, _tables(text))


def _unclaimed(text: str, found: Iterable[Span]) -> Iterable[Span]:
    """Return what was *found*, unless the writer says to be whom it is about; most texts hold nothing to ask about."""
    spans = list(found)
    return [] if spans and cue("claims").search(text) else spans


def _tables(text: str) -> Iterator[Span]:
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
        code = [line for line in lines if _CODE_LINE.search(line.text[-HEAD_CHARS:]) or _CODE_START.match(line.head)]
        if code:
            shell = lines[-1] if _SHELL.match(code[0].head) else code[-1]
            comment = [line for line in lines if re.match(r"[ \t]*(?://|#|--|/?\*) ?\w", line.head)]
            yield (
                min([code[0].start, *(line.start for line in comment)]),
                max(shell.end, *(line.end for line in comment or [shell])),
            )


def _between_bars(text: str) -> Iterator[Span]:
    """Find text between two bars, or between words that say where a text begins and ends."""
    lines = text_lines(text)
    bars = [line for line in lines if _SEPARATOR.match(line.head) or _EDGE_OF_TEXT.match(line.head)]
    if len(bars) > 1:
        yield bars[0].start, bars[-1].end


def _options(text: str) -> Iterator[Span]:
    """Find the numbered texts between which a question lets choose."""
    for before, line in pairwise(lines := [line for line in text_lines(text) if not line.empty]):
        if _CHOICE.search(before.text) and _OPTION.match(line.head):
            last = [other for other in lines if _OPTION.match(other.head)][-1]
            yield line.start, last.end
            return


def _screenplay(text: str) -> Iterator[Span]:
    """Find talk under names in capitals."""
    lines = text_lines(text)
    names = [at for at, line in enumerate(lines[:-1]) if _CAPITAL_NAME.match(line.text) and not lines[at + 1].empty]
    if len(names) > 1:
        end = next((at for at in range(names[-1] + 1, len(lines)) if lines[at].empty), len(lines))
        yield lines[names[0]].start, lines[end - 1].end


def _spoken_dashes(text: str) -> Iterator[Span]:
    """Find dialogues whose lines begin with dashes, a question among them, and reviews with their stars."""
    for lines in _blocks(text):
        dashes = [line for line in lines if _DASH_LINE.match(line.head)]
        asked = [
            line for line in dashes[:-1] if line.text.rstrip().endswith(("?", "？")) and SPEECH.search(line.text[:-1])
        ]
        if asked and len(dashes) > 1:
            yield dashes[0].start, dashes[-1].end
        stars = next((line for line in lines if _REVIEW.match(line.head)), None)
        if stars is not None:
            yield stars.start, lines[-1].end


def _forms(text: str) -> Iterable[Span]:
    """Find lists of labels and values that are about a third person by a label of theirs ("Patient: …")."""
    return _unclaimed(text, _fields(text))


def _fields(text: str) -> Iterator[Span]:
    for lines in _blocks(text):
        fields = [line for line in lines if (label := LABEL.match(line.text)) and line.text[label.end() :].strip()]
        labels = [LABEL.match(line.text) for line in fields]
        if len(fields) > 1 and any(label and is_label("others", label["name"]) for label in labels):
            yield fields[0].start, fields[-1].end


def _recalled(text: str) -> Iterator[Span]:
    """Find what a memory put into a prompt: its heading and the lines under it."""
    lines = text_lines(text)
    for at, line in enumerate(lines[:-1]):
        heading = line.text.strip(" #*_")
        if (
            len(heading) <= 100
            and heading
            and cue("recalled").match(heading)
            and not cue("own").search(heading.rstrip(":"))
        ):
            end = at
            while end + 1 < len(lines) and not lines[end + 1].empty:
                end += 1
            if end > at:
                yield line.start, lines[end].end


_RESUME = expression(
    r"[ \t#*]*(?:(?:professional |executive |career )?(?:summary|profile|objective)|(?:work |professional )?experience|employment(?: history)?|education|(?:technical )?skills|certifications?|references|publications)[ \t:*]*\Z",
    re.IGNORECASE,
)
_CONTACT = expression(r"\|.*\||\+\d[\d ()-]{6,}|\w@\w")
_MY_RESUME = expression(
    r"\b(?:my|mein\w*|mi|mon) (?:\w+ ){0,2}(?:cv|r[eé]sum[eé]|lebenslauf|currículum)\b", re.IGNORECASE
)


def _resume(lines: list[TextLine]) -> Iterator[Span]:
    """Find a résumé by its headings and the address above them, unless the writer calls it his own."""
    headings = [at for at, line in enumerate(lines) if _RESUME.match(line.head)]
    above = lines[: headings[0]] if len(headings) > 1 else []
    contact = next((at for at, line in enumerate(above) if _CONTACT.search(line.head)), None)
    if contact is not None and not any(_MY_RESUME.search(line.head) for line in above):
        yield lines[max(0, contact - 2)].start, lines[-1].end


def _documents(text: str) -> Iterator[Span]:
    """Find documents that open with a heading of their own, letters, and prompts."""
    lines, done = text_lines(text), 0
    yield from _resume(lines)
    signed = [line.start for line in lines[-_MOST_LINES:] if _signs(line)]
    signature = _has_signature(lines[-_MOST_LINES:])
    for at, line in enumerate(lines):
        if line.start < done or line.empty:
            continue
        letter = bool(cue("letter").match(line.head)) and any(place > line.end for place in signed)
        letter = letter or (signature and bool(cue("salutation").match(line.head)))
        if cue("document").match(line.head) or letter:
            done = _end_of_text(text, line.start)
            yield line.start, done
        elif at < 2 and _BYLINE.match(line.text):
            yield 0, (done := _end_of_text(text, line.start))
        elif at == 0 and cue("prompt").match(line.head) and not _for_user(line.head.replace("assistant", "")):
            yield line.start, len(text)
            return


_BYLINE = expression(r"[ \t]*[Bb]y [A-Z][\w.-]+ [A-Z][\w.-]+(?:,? [A-Z][^.!?\n]{0,60})?[ \t]*\Z")


def _has_signature(lines: list[TextLine]) -> bool:
    """Whether a sign-off is followed by a name with a title, an address or a number, as below business mail."""
    signed = [at for at, line in enumerate(lines) if _signs(line)]
    return any(_CONTACT.search(line.head) for at in signed[:3] for line in lines[at + 1 : at + 6])


def _signs(line: TextLine) -> bool:
    """Whether a line closes a letter; thanks close other messages, too."""
    thanks = re.match(r"\W*(?:thanks|thank you|love|gracias|merci)\b", line.head, re.IGNORECASE)
    return not thanks and bool(cue("signoff").match(line.head))


# --- text that a clause introduces


_COLON = expression(r"[:：](?![\d/])(?=[\s\x00\"'“„«「『(*]|[^\x00-\x7f]|\w)")
_OPEN_BRACKET = expression(r"\((?![^()]*\))")
_CLAUSE_START = expression(r"(?<!\bMr)(?<!\bMrs)(?<!\bMs)(?<!\bDr)(?<!\bProf)[.!?…。！？](?=\s)|[。！？]|\n")


_SHORT_QUOTE = expression(r"[\"“„«‹「『'][^\"“”„«»‹›「」『』\n]{1,60}[\"”“»›」』'](?=[.,!?]*(?:\s|\Z))")
# Texts in which nobody speaks of himself, and the sentence behind them that does.
_WITHOUT_I = expression(r"\b(?:recipe|ingredients|menu|shopping list|rezept|zutaten|receta|recette)\b", re.IGNORECASE)
_SENTENCE_WITH_I = expression(
    r"(?<=[.!?\n])[ \t]*(?=[^.!?\n]{0,40}\b(?:i|i'\w+|my|we|our|ich|mein\w*|soy|mi|je|mon|ma)\b)", re.IGNORECASE
)


def _introduced(text: str) -> Iterator[Span]:
    """Find texts behind a clause that introduces them: "translate this: …", "my boss wrote me: …"."""
    done = 0
    for found in islice(_COLON.finditer(text), _MOST_COLONS):
        if found.start() < done:
            continue
        before = text[max(0, found.start() - _CLAUSE_CHARS) : found.start()]
        clause = _OPEN_BRACKET.split(_CLAUSE_START.split(before)[-1])[-1].strip(" \t*_#>-")
        kind = _introduction(clause)
        if not kind and cue("one_person").search(clause) and _SAYS_I.match(text, found.end()):
            kind = REPORTED  # "my sister: I hate eggs"
        if not kind:
            continue
        start = found.end() + len(text[found.end() :]) - len(text[found.end() :].lstrip())
        if start >= len(text) or text.startswith(BLANK, start):
            continue
        on_line = "\n" not in text[found.end() : start]
        short_quote = _SHORT_QUOTE.match(text, start)
        if short_quote:
            end = short_quote.end()
        elif kind == INTRODUCED:
            end = _end_of_text(text, start, same_line=on_line)
        elif on_line:
            end = _end_of_report(text, start)
        else:
            letter = cue("salutation").match(text, start)
            end = _end_of_text(text, start) if letter else next(_blocks(text, start))[-1].end
        if _WITHOUT_I.search(clause) and (own := _SENTENCE_WITH_I.search(text, start, end)):
            end = own.start()
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


_SAYS_I = expression(
    r"\W*(?:(?:no|yes|oh|well|sorry|nein|ja|non|oui),? )?(?:i|im|i[’'](?:m|ve|d|ll)|ive|my|we|we[’']\w+|ich|je|j[’']\w+)\b",
    re.IGNORECASE,
)
_TOLD_ABOUT = expression(r"\b(wrote|writes|said|says|told|noted|posted) (?:\w+ )?about (?:me|us)\b", re.IGNORECASE)


def _introduction(clause: str) -> str:
    """Return whose words a clause before a colon announces; empty when they may be the writer's own."""
    if not clause or BLANK in clause[-1:] or cue("dictated_self").search(clause):
        return ""
    if cue("own").search(_TOLD_ABOUT.sub(r"\1", clause)):
        return ""
    if cue("reports").search(clause) and not cue("trusted").search(clause):
        return REPORTED
    return INTRODUCED if cue("introduces").search(clause) or cue("recalled").match(clause) else ""


def _pointed_at(text: str) -> Iterator[Span]:
    """Find texts below a line that points at them: "Is this mail polite?", "Add the commas:" and an empty line."""
    lines = [line for line in text_lines(text) if not line.empty]
    for line, following in pairwise(lines[:_MOST_LINES]):
        clause = line.text.strip(" \t*_#>")[-_POINTING_CHARS:]
        start = following.start + len(following.text) - len(following.text.lstrip())
        if not clause or clause.endswith(BLANK) or text.startswith(BLANK, start):
            continue
        apart = following.start > line.end + 1
        last = [span.of(clause) for span in split_sentences(clause)][-2:]
        announced = apart and clause.endswith((":", "：")) and bool(last) and not cue("salutation").match(clause)
        announced = announced and not cue("own").search(last[-1].rstrip(" :："))
        if announced or any(_points(one.rstrip(" .!?:：…~*_)？。！"), apart) for one in last):
            yield following.start, _end_of_text(text, following.start)
            return


def _points(sentence: str, apart: bool) -> bool:
    found = cue("points").fullmatch(sentence) or (apart and cue("points_apart").fullmatch(sentence))
    return bool(found) and not any(cue(name).search(sentence) for name in ("own", "asks_anew"))


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
        if _BACK_STRICT.match(body[start:]) or _IN_PRACTICE.fullmatch(body[start:]):
            yield body.rfind("\n", 0, start) + 1, start


_BACK = expression(
    r"^(?:please |pls |can you |could you |now |bitte |kannst du )*(?:translate|proof-?read|summari[sz]e|rephrase|paraphrase|rewrite|reword|polish|tl;?dr|shorten|correct|grammar|fix the grammar|übersetze?|korrigiere?|fasse|traduce|corrige|resume|tradui[st]|résume|reformule)\b"
    r".{0,60}\b(?:this|that|it|above|text|letter|mail|email|das|dies|obige\w*|text|esto|eso|lo|anterior|texto|ceci|ça|cela|ci-dessus|texte)\b|^(?:^ ?)?(?:what does (?:this|that|he|she) mean|who wrote (?:this|that)|is (?:this|that) (?:correct|grammatical|a scam|polite|natural))\b|(?:翻译|翻譯|总结|润色)(?:一下|以上|上面|成)|(?:번역|요약|교정)해",
    re.IGNORECASE,
)  # fmt: skip
_BACK_MARK = expression(
    r"(?:<-+|←|\(|\[|\^+|\n)\s*(?:please |pls )?(?:translate|proof-?read|summari[sz]e|rephrase|paraphrase|reword|copied|pasted|quoted|übersetze?n?|traduce|traduis)\b(?=[^\n]*[)\]^]|[^\n]{0,20}\Z)[^()\[\]\n]{0,60}[)\]^]*[.!?]?\Z",
    re.IGNORECASE,
)
_SENTENCE_NAMED = expression(
    r"\b(?:the|this) (?:sentence|phrase|words?)[,:]? (?=(?:i|i'm|my|we)\b)[^.!?\n]*", re.IGNORECASE
)
_BACK_STRICT = expression(
    r"(?:please |pls |can you |could you |now |bitte )*(?:translate|proof-?read|rephrase|paraphrase|reword|übersetze?|traduce|tradui[st])\s(?:please |bitte )?(?:this|that|it|the above|das|esto|eso|ça|ceci|-la|-le)\b",
    re.IGNORECASE,
)
# Who learns a language asks whether a sentence is right; what it says need not be so.
_IN_PRACTICE = expression(
    r"\W*(?:correct|korrekt|richtig|¿?correcto|c'est correct|did i (?:say|write|spell) (?:that|this|it) (?:right|correctly)|"
    r"(?:is|was) my (?:\w+ )?(?:sentence|grammar|spelling|pronunciation|german|english|spanish|french|italian|portuguese|japanese|korean|chinese) (?:ok|okay|right|correct|good)|"
    r"ist (?:mein satz|der satz|die grammatik|mein deutsch) (?:so )?(?:richtig|korrekt)|stimmt (?:der satz|die grammatik)(?: so)?|está bien escrito)\W*",
    re.IGNORECASE,
)
_FOLLOWING = expression(
    r"(?:^\W*(?:is|are|does|do) (?:this|the following|these) (?:\w+ )?(?:sentences?|phrases?|text|lines?|paragraph|statements?|wording)\b(?=[^.!?\n]{0,60}\?)|\bthe following (?:is|was|comes) (?:from|by|taken from|an? \w+ (?:from|by))\b)[^.!?:\n]{0,60}[.!?:]\s+|"
    r"\b(?:(?:the|these) following (?:\w+ ){0,2}?(?:text|sentences?|statements?|story|dialogue|paragraph|passage|message|poem|quote|questions?|lines?)\b|here(?:'s| is) what (?!i\b|you\b|we\b)[\w' -]{2,60}\b(?:says?|said|writes?|wrote|thinks?|told|posted)\b)[^.!?:\n]{0,60}[.!?:]\s+",
    re.IGNORECASE,
)


def _following(text: str) -> Iterator[Span]:
    for regex in (_FOLLOWING, _ON_BEHALF, _DISH):
        found = regex.search(text)
        if found and not text.startswith(BLANK, found.end()):
            yield found.end(), _end_of_text(text, found.end(), same_line=True)


# Who writes the profile of another gives it that one's "I": "a dating profile for my friend Oleg. I'm 38 …".
_ON_BEHALF = expression(
    r"\b(?:profiles?|bios?|biograph(?:y|ies)|cvs?|r[eé]sum[eé]s?|cover letters?|(?:self-)?introductions?|intros?|about me(?: section| page)?|personal statements?|(?:dating|partner|kontakt)?-?profil\w*|lebenslauf|anschreiben|perfil|presentaci[oó]n|profilo|presentazione|apresenta[cç][aã]o)"
    r" (?:for|of|on behalf of|für|para|de|pour|per|do|da) (?:(?:my|our|mein\w*|unser\w*|mi|mon|ma|(?:il |la |o |a )?(?:mio|mia|meu|minha)) (?!own\b|application\b|job\b|work\b|school\b|new\b|company\b|business\b|website\b|blog\b|account\b|bewerbung\b|candidatur\w*)(?:[\w-]+ ){0,2}?[\w-]+|(?-i:[A-Z])\w+)(?<!\bme)(?<!['’]s)(?:,? \d+)?[.!?:;]+\s+(?=(?:i|i['’]?m|i['’]ve|my|name|hi|hey|ich|soy|tengo|vivo|mi|je|j['’]\w+|sono|ho|sou|tenho)\b)",
    re.IGNORECASE,
)
# The recipe of another, under its name: "Grandma's chili".
_DISH = expression(
    r"^[ \t]*(?:[A-Za-z]+ ){0,2}[A-Za-z]+['’]s? (?:[A-Za-z-]+ ){0,3}(?:chili|stew|pie|soup|cakes?|bread|cookies|brownies|sauce|curry|lasagn[ae]|salad|pancakes|waffles|rag[uù]|bolognese|pasta|meatballs|casserole|dumplings|chicken|roast|jam|dip|gravy|stuffing|pudding|cheesecake|muffins|scones|goulash|risotto|paella|tacos|burgers|dressing|marinade|recipe|granola|chutney|pickles)[ \t]*:?\n+(?=[^\n]*\bI\b)",
    re.IGNORECASE | re.MULTILINE,
)


_DIRECT = expression(
    r"^[ \t]*(?:bio|about|profile): (?-i:[A-Z][a-z]+ [A-Z][a-z]+)[.,][^\n]*|^[ \t]*(?:e\.g\.|z\.b\.|p\. ?ej\.) [^\n]*|"
    r"(?:^|[.!?,]\s+|\b(?:please|can you|could you|to|help me)\s+)(?:translate|how (?:do|would|can) (?:you|i|we|one) (?:say|write|spell|pronounce|sign)|conjugate|repeat(?: after me)?|type|pronounce)\s+"
    r"(?:(?:in|into|to) \w+[,:]?\s+)?(?=[\"“„«‘']?(?:the (?:sentence|phrase|words?)\b|i\b|i'|my\b|we\b|our\b))[^.!?\n]*",
    re.IGNORECASE | re.MULTILINE,
)
_BOTH_PLAY = expression(
    r"\b(?:and|,) i(?:'m| am|'ll be| will be| play)\b|\bi(?:'m| am|'ll be| will be) (?:your|the|playing)\b",
    re.IGNORECASE,
)


def _role_play(text: str) -> Iterator[Span]:
    for found in cue("role_play").finditer(text):
        order = re.split(r"[.!?\n]", text[found.start() : found.start() + 80], maxsplit=1)[0]
        if _BOTH_PLAY.search(order) or not _for_user(order):
            yield from _played(text, found.end(), _end_of_text(text, found.end()))
            return


def _for_user(order: str) -> bool:
    """Whether the assistant is given a trade ("act as my coach"), to which the user speaks for himself."""
    return bool(re.match(rf".{{0,14}}{authorship_words()['trade']}", order, re.IGNORECASE))


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
        bars = [line.end for line in text_lines(text[start:])[1:] if _SEPARATOR.match(line.head)]
        if bars and len(text) - start - bars[-1] <= _AFTERWORD_CHARS:
            return start + bars[-1]
    for number, lines in enumerate(blocks := list(_blocks(text, start))):
        at, first, last = lines[0].start, lines[0].text, number == len(blocks) - 1
        short = len(text) - at <= _AFTERWORD_CHARS
        paragraph = text[at : min(lines[-1].end, at + 400)]
        if number:
            if last and _IN_BRACKETS.fullmatch(paragraph):
                return at
            if _turns_to_assistant(paragraph, last=last and short) or (
                cue("aside").match(paragraph) and (last or closed or same_line)
            ):
                return at
            if closed and short and _is_sentence(first):
                return at
            if short and any(_SEPARATOR.match(lines[edge].head) for edge in (0, -1)):
                return at if _SEPARATOR.match(first) else lines[-1].end
        closed = closed or any(cue("signoff").match(line.head) for line in lines[-3:] if number or len(lines) > 1)
    return len(text)


# A last paragraph in brackets about oneself: "(I'm an English tutor in Krakow)".
_IN_BRACKETS = expression(
    r"\s*[(\[]\W*(?:(?:btw|fyi|note|ps|and|nb),? )?(?:i|i['’]?m|i['’]ve|my|we|we['’]re|our|ich|mein\w*|soy|yo|mi|je|j['’]\w+|moi|sono|io|ho|sou|eu)\b[^()\[\]]*[)\]][.!]?\s*",
    re.IGNORECASE,
)


def _turns_to_assistant(paragraph: str, *, last: bool) -> bool:
    ends = [span.of(paragraph) for span in split_sentences(paragraph)[-1:]] if last else []
    return any(cue("directed").match(words) for words in (paragraph, *ends))


def _is_sentence(line: str) -> bool:
    words = len(line.split())
    return (words > 3 or line.rstrip().endswith((".", "!", "?", "。", "！", "？"))) and not LABEL.match(line)


_SEARCHES: tuple[tuple[str, Callable[[str], Iterable[Span]]], ...] = (
    (CODE, _code),
    (RECALLED, _each(_HEADING)),
    (MARKUP, _elements),
    (QUOTE, _each(_RENDERED)),
    (QUOTE, _each(_QUOTED_LINE)),
    (LINK, _each(_LINK)),
    (QUOTE, _blocks_in_marks),
    (MARKUP, _tags),
    (STAGE, _stage),
    (MAIL, _mails),
    (DATA, _data),
    (LOG, _logs),
    (DOCUMENT, _between_bars),
    (DOCUMENT, _options),
    (TRANSCRIPT, _screenplay),
    (PROMPT, _each(_TEMPLATE)),
    (DOCUMENT, _documents),
    (TRANSCRIPT, find_transcripts),
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
