"""
Sentence boundaries, as character offsets into the text.

Chat is not prose: lines and bullets end sentences too, an emoji may replace a full stop, and "Dr." or "3.5" or "e.g." must not.  The full stops of Chinese and Japanese need no space
after them.  Works in one pass over the text; nothing is changed or thrown away except white space
between sentences.  Code in fences can be shortened.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from . import dataclass, expression
from .terms import terms


@dataclass(frozen=True, slots=True)
class SentenceSpan:
    """Characters ``start`` to ``end`` (excluded) of a text."""

    start: int
    end: int

    def of(self, text: str) -> str:
        """Return the characters of the span."""
        return text[self.start : self.end]


# Words that end in a full stop without ending a sentence, lower case, without the stop itself.
ABBREVIATIONS = frozenset(
    "mr mrs ms dr prof st mt ft jr sr vs etc e.g i.e eg ie approx no nos vol fig inc ltd co corp dept est "
    "jan feb mar apr jun jul aug sep sept oct nov dec mon tue wed thu fri sat sun a.m p.m u.s u.k ph.d b.a m.a b.sc m.sc "
    "z.b d.h bzw ca usw u.a hr fr nr str "
    "sr sra srta ud uds p.ej mme mlle m av bd".split()
)

_PICTURES = "\u2600-\u27bf\u2b50\u2b55\U0001f000-\U0001faff\ufe0f\u200d"
# Each run of marks is entered at its first mark only, so a megabyte of dots costs one pass.
_END = expression(
    r"(?P<line>(?:\r\n|[\n\r\u2028\u2029])\s*+)"
    r"|(?P<wide>[。！？｡]++[」』”’）)\"']*+)"
    rf"|(?<![.!?…‽])(?P<stop>[.!?…‽]++)(?P<close>[\"'”’»)\]*_]*+)(?=\s|$|[{_PICTURES}])"
    rf"|(?<![{_PICTURES}])(?P<picture>[{_PICTURES}]++)(?=\s++[A-ZÀ-Þ\u0400-\u042f]|\s*+$)"
)
_BULLET = expression(r"[ \t]*(?:[-*•‣▪–]|\(?\d{1,3}[.)]|[a-zA-Z]\))[ \t]+")
_WORD_BEFORE = expression(r"[^\W\d_](?:[^\W\d_]|\.(?=[^\W\d_]))*\Z")
_ABBREVIATION_REACH = 12
_MONTH_AFTER = expression(
    r"(?:\s(?:bis(?: zum)?|und|oder) \d{1,2}\.)?\s(?:januar|jänner|februar|märz|april|mai|juni|juli|august|september|oktober|november|dezember)\b",
    re.IGNORECASE,
)


def split_sentences(text: str) -> list[SentenceSpan]:
    """
    Split *text* into sentences, in order, without the white space around them.

    Marks such as bullets and "1." at the start of a line belong to no sentence; a line of marks
    alone gives none.
    """
    spans: list[SentenceSpan] = []
    start = _skip_bullet(text, 0)
    for found in _END.finditer(text):
        if found.start() < start:
            continue
        if found.lastgroup == "line":
            _add(spans, text, start, found.start())
            start = _skip_bullet(text, found.end())
        elif not (found["stop"] and _runs_on(text, found)):
            _add(spans, text, start, found.end())
            start = found.end()
    _add(spans, text, start, len(text))
    return spans


def split_pieces(text: str, most_chars: int) -> Iterator[SentenceSpan]:
    """Split *text* into sentences, cutting those above *most_chars* at a space to bound the work on each."""
    for span in split_sentences(text):
        start = span.start
        while span.end - start > most_chars:
            cut = text.rfind(" ", start, start + most_chars)
            end = cut if cut > start else start + most_chars
            yield SentenceSpan(start, end)
            start = end
        yield SentenceSpan(start, span.end)


def _skip_bullet(text: str, start: int) -> int:
    found = _BULLET.match(text, start)
    return found.end() if found else start


def _runs_on(text: str, found: re.Match[str]) -> bool:
    """Whether a stop at *found* is part of an abbreviation, an initial or a trailing-off."""
    marks = found["stop"]
    if "!" in marks or "?" in marks or "‽" in marks:
        return False
    after = text[found.end() : found.end() + 2].lstrip()
    if len(marks) > 1 or "…" in marks:
        return bool(after) and after[0].islower() and "\n" not in text[found.end() : found.end() + 2]
    reach = text[max(0, found.start() - _ABBREVIATION_REACH) : found.start()]
    if reach[-1:].isdecimal() and _MONTH_AFTER.match(text, found.end()):
        return True  # a German ordinal: "am 3. März", "vom 12. bis 19. Juni"
    word = _WORD_BEFORE.search(reach)
    if word is None:
        return False
    before = word.group().lower()
    if len(before) == 1 and before != "i" and word.group().isupper():
        return bool(after) and after[0].isalpha()
    if before in ABBREVIATIONS:
        return bool(after) and (after[0].isalnum() or after[0] in "($€£\"'“")
    return False


def _add(spans: list[SentenceSpan], text: str, start: int, end: int) -> None:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if end > start and any(ch.isalnum() for ch in text[start:end]):
        spans.append(SentenceSpan(start, end))


# "The membership's been cancelled", "my landlord's now Ada": a noun with its verb, which no owner can be.
_CONTRACTED = expression(
    r"(?<![\w'’])(?!(?:it|that|this|he|she|there|here|who|what|where|how|why|when|let)['’])[^\W\d_][\w-]*+"
    r"(?P<word>['’](?:s(?= (?:been|now|no longer|not|currently|(?:already|finally|officially|since|just|also) (?:been|now|\d|gone|got|become|moved|left|died|quit|started|stopped|finished))(?![\w-]))|[vr]e(?= )))"
    r"(?= (?P<has>(?:(?:now|already|finally|officially|since|just|also) )*"
    r"(?:been|gone|got|become|begun|moved|left|died|quit|passed|started|stopped|finished|retired|turned|had|lost|taken|switched|given) )?)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class SpelledOut:
    """A text in which "the dentist's been" reads "the dentist has been"; `written` returns the characters of the original."""

    text: str
    words: tuple[tuple[int, int, int], ...]  # where each word begins, how long it is, and how long it was written

    def written(self, start: int, end: int) -> tuple[int, int]:
        """Return the first and last character, as they were written, of some of this text."""
        return self._written(start), self._written(end)

    def _written(self, place: int) -> int:
        more = 0
        for start, length, shorter in self.words:
            if place > start:
                more += min(place - start, length) - min(place - start, shorter)
        return place - more


def spell_out(text: str) -> SpelledOut | None:
    """Return *text* with "has been" and "is now" for "'s been" and "'s now" behind nouns; ``None`` where there is none."""
    words: list[tuple[int, int, int]] = []
    spelled, end = "", 0
    for found in _CONTRACTED.finditer(text) if "'" in text or "’" in text else ():
        start, letters = found.start("word"), found["word"][1:].lower()
        verb = {"ve": " have", "re": " are"}.get(letters, " has" if found["has"] else " is")
        spelled += text[end:start]
        words.append((len(spelled), len(verb), found.end("word") - start))
        spelled, end = spelled + verb, found.end("word")
    return SpelledOut(spelled + text[end:], tuple(words)) if words else None


# A sentence that begins like this tells what held once; what it is about may come first, in up to four words.
_ABOUT = r"(?:[^\W\d_][\w'’-]*\s+){0,4}?"
_ONCE = "".join(
    rf"(?<!{word}\s)" for word in ("is", "am", "are", "be", "been", "get", "got", "getting", "not", "'m", "'re", "'s")
)
_HELD_ONCE = expression(
    rf"{_ABOUT}(?:(?:previously|formerly|{_ONCE}used\s+to|in\s+the\s+past,?)\s"
    r"|(?:was|were|had\s+been)\s+(?:considering|debating|deciding|evaluating|exploring|looking\s+into|planning|thinking"
    r"|torn|trying\s+to\s+decide|undecided|weighing)\b)"
    r"|(?:früher(?!\s+oder)|vormals|ehemals|anteriormente|antiguamente|auparavant|autrefois|antigamente|in\s+passato)[\s,]",
    re.IGNORECASE,
)
# That something ended: with its subject, and without, where the sentence before names it.
_GAVE_WAY = expression(
    rf"(?P<about>{_ABOUT})(?:(?:has|have|was|were|got|been|is|later|since|then)\s+)*(?:abandoned|deprecated|discontinued"
    r"|dropped|given\s+up|replaced|retired|superseded)(?:\s+(?:by|in\s+favou?r\s+of)\s.*|\s*[.!]?)",
    re.IGNORECASE | re.DOTALL,
)
_HOLDS_NOW = expression(
    r"\b(?:now|currently|today|these\s+days|nowadays|still|jetzt|heute|ahora|maintenant|agora|adesso|ora)\b",
    re.IGNORECASE,
)
_MOST_CHARS = 2_000


def describes_only_past(text: str) -> bool:
    """
    Whether *text* says what held once and nothing that holds now: "Previously used Jira. Replaced by Linear."

    Biography stays: "was born in Porto", "worked at a bank" say nothing of an end.
    """
    if len(text) > _MOST_CHARS or _HOLDS_NOW.search(text):
        return False
    said = [span.of(text) for span in split_sentences(text)]
    if not said:
        return False
    last = _GAVE_WAY.fullmatch(said[-1])
    if len(said) > 1 and last and not last["about"]:
        return True
    return bool(_HELD_ONCE.match(said[0])) and all(
        _HELD_ONCE.match(one) or _GAVE_WAY.fullmatch(one) for one in said[1:]
    )


_LINE = expression(
    r"((?:[^\n:()\[\]]{1,30} \(\d+(?:[–/]\d+)?\): )?)(\[\d{4}-\d\d-\d\d\] )?((?:[^\n:.!?\[\]]{1,60}: )?)(.*)"
)


def without_sentences(text: str, gone: Sequence[tuple[frozenset[str], frozenset[str]]]) -> str:
    """Return *text* without its sentences that hold the first words of a pair in *gone* and not the second; dates stay."""
    kept, carried = [], ""
    for line in text.splitlines():
        head, stamp, speaker, said = _LINE.fullmatch(line).groups(default="")  # type: ignore[union-attr]
        spans = [span.of(said) for span in split_sentences(said)]
        left = [sentence for sentence in spans if not says_replaced(sentence, gone)]
        if left:
            words = said if len(left) == len(spans) else " ".join(left)
            kept.append(f"{head}{stamp or carried}{speaker}{words}")
        carried = "" if left else stamp or carried
    return "\n".join(kept)


def says_replaced(sentence: str, gone: Sequence[tuple[frozenset[str], frozenset[str]]]) -> bool:
    """Whether a sentence holds the first words of a pair in *gone* and not the second."""
    said = frozenset(terms(sentence)) if gone else frozenset[str]()
    return any(old and old <= said and not new <= said for old, new in gone)


SHORT_CODE_CHARS = 120  # of a fenced block that is shown whole: a command, a line to be explained
_EMPTY_LINES = expression(r"\n\s*\n")
_FENCED = expression(
    r"^[ \t]*(?P<mark>`{3,}|~{3,})(?P<inside>[^`\n]*\n.*?)(?:^[ \t]*(?P=mark)[`~]*[ \t]*$|\Z)", re.DOTALL | re.MULTILINE
)


def without_code(text: str) -> str:
    """
    Return *text* without empty lines, and each long fenced block as its first line and the number of those behind it.

    Code is a third of the tokens of a chat about programs, holds nothing about the user, and pushes their words over the limit.
    """
    said = _FENCED.sub(_first_of_code, text) if "```" in text or "~~~" in text else text
    return _EMPTY_LINES.sub("\n", said)


def _first_of_code(found: re.Match[str]) -> str:
    if len(found["inside"]) <= SHORT_CODE_CHARS:
        return found[0]
    head, _, body = found["inside"].partition("\n")
    lines = (body.strip() or head).split("\n")  # the head is the name of the language
    first, more = lines[0].strip()[:SHORT_CODE_CHARS], len(lines) - 1
    return f"[code: {first} …{f' {more} more lines' if more else ''}]" if first else "[code]"


NEXT_VERB = expression(
    r"(?i)\b(?:and|but|y|pero|und|aber|et|mais|e|ma|mas)\s+(?:i\s+|we\s+|ich\s+|j['’]|yo\s+|also\s+|now\s+)?"
    r"(?:have|has|am|is|was|live|lived|living|work|worked|working|play|played|playing|study|studied|studying|speak|learn|learning|been|go|went|started|moved|drive|own|"
    r"take|took|got|vivo|trabajo|estudio|tengo|soy|estoy|juego|aprendo|hablo|wohne|arbeite|lerne|studiere|habe|bin|spiele|lebe|spreche|nehme|"
    r"habite|travaille|vis|suis|ai|étudie|joue|apprends|lavoro|sono|ho|moro|trabalho|tenho|sou)\b"
)
"""A further statement in the same sentence: a time behind it is not the first one's."""
