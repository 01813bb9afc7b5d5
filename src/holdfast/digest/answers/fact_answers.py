"""
Parsing of a model's answer about facts into candidates, each with its quote.  Pure.

The prompt asks for CSV, one fact a row: ``category,fact_key,fact_value,confidence``, then subject, operation
(``set``, ``add``, ``remove``), message number and quote.  A row without a key is a statement: one self-contained
sentence.  Models answer with prose and fences around it, as JSON, as a Markdown table, with other delimiters or
column orders (modality and lifetime among them), with unclosed quotation marks, with a last row cut off.  Every readable
row is read (`parse_rows`), located in its message and verified (`second_look`); the rest is returned with the reason.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime, timedelta
from typing import Literal, get_args

from ...clock import to_ms
from ...llm.protocol import Answer, BadAnswer
from ...scope import SELF
from ...text import dataclass, expression
from ...text.dates import COUNTS_ON, dated, find_times, has_guessed_year
from ...text.terms import language_of, likely_languages
from ...text.validate import replace_unstorable
from ...types import LABELS, Candidate, Fact, Lifetime, Message, Modality
from ..grammar import load_language
from ..grounding import in_other_language, locate_number, locate_quote, verify_state, verify_translation, verify_use
from ..mentions import UNIQUE, SubjectNames, subject_name, without_owner
from ..second_look import OF_OTHERS, claimed_terms, patterns_for, repeats_known, terms_of, verify_claim
from ..speakers import question_of
from . import answer_text, is_empty_answer, is_refusal, parse_parts, says_nothing, strip_fences
from .wording import (
    ADDS,
    PREDICATES,
    as_said,
    attribute_sentence,
    each_of_list,
    key_words,
    names_more_than_number,
    nearest_sentence,
    said_otherwise,
    says_of_user,
    stated_unquoted,
    verify_clauses,
    verify_relation,
    verify_sentence,
    verify_tools,
)  # fmt: skip

# What holds from the day that it names.
MEASURED = frozenset(("health", "medication", "lab", "labs", "result", "measurement", "vitals"))
DATED = frozenset({"plan", "appointment", "trip", "travel", "life", "goal", "event", "schedule", "history", "context"})

# What holds for good once it is so, by category, key or both, and what is over when it has happened.
LASTING = frozenset(
    "allergy birth_date born_in comes_from native graduated_from degree_in blood_type retired_since identity/name".split()
)
HAPPENS = frozenset({"life", "event", "appointment", "trip", "travel", "plan", "history"})

COLUMNS = ("category", "fact_key", "fact_value", "confidence", "subject", "op", "message", "quote")
LONG_COLUMNS = (*COLUMNS[:6], "modality", "lifetime", *COLUMNS[6:])  # as older prompts asked for them
_LIFETIMES, _MODALITIES = get_args(Lifetime), get_args(Modality)
MAX_ROWS = 200
MAX_LINE_CHARS = 4_000
MAX_FAILURES = 500  # brackets that open nothing: each is tried once, and nobody means so many
LEAST_CELLS = 4

_ALIASES = {
    "category": "category type kind",
    "fact_key": "fact_key key factkey attribute predicate slot",
    "fact_value": "fact_value value factvalue object content fact statement memory text",
    "confidence": "confidence conf score certainty",
    "subject": "subject who about entity",
    "op": "op join operation action change",
    "modality": "modality mode",
    "lifetime": "lifetime duration validity",
    "message": "message seq msg number message_number message_id turn line n",
    "quote": "quote quotation evidence words source verbatim",
}
_NAMES = {alias: name for name, aliases in _ALIASES.items() for alias in aliases.split()}
_DELIMITERS = (",", ";", "\t", "|")
_CONFIDENCE = r"(?:[01]?[.,]\d+|[01]|\d{1,3} ?%|high|medium|low)"
BULLET_CONFIDENCE = "0.8"  # of a bullet, which gives none
_BULLET = expression(r"[-*•]\s+(\S.{8,}?)\s*(?:\[(\d{1,9})\])?")
_MARK = expression(r"^(?:[-*•]|\d{1,3}[.)])\s+")


@dataclass(frozen=True, slots=True)
class ParsedRows:
    """
    The rows of an answer by column name, and ``problems``: why a line was dropped.

    ``empty``: the form was kept and holds no row (a header alone, an empty list).
    """

    rows: list[dict[str, str]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    empty: bool = False


def parse_rows(text: str, *, cut: bool = False) -> ParsedRows:
    """
    Parse every readable row of *text*.

    Args:
        text: the answer, without code fences.
        cut: it was cut off, so that its last line is not to be trusted.
    """
    stripped = text.strip()
    if "{" in stripped or stripped.startswith("["):
        found = _from_json(stripped)
        if found.rows or found.empty:
            return found
    return _from_lines(stripped, cut=cut)


def _from_json(text: str) -> ParsedRows:
    decoder = json.JSONDecoder()
    rows: list[dict[str, str]] = []
    problems: list[str] = []
    empty = False
    place = min((at for at in (text.find("["), text.find("{")) if at >= 0), default=-1)
    failures = 0
    while 0 <= place < len(text) and len(rows) < MAX_ROWS and failures < MAX_FAILURES:
        try:
            value, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            end = place + 1
            failures += 1
        else:
            made = list(_records(value))
            rows += made
            empty = empty or (not made and _hollow(value))
        place = min((at for at in (text.find("[", end), text.find("{", end)) if at >= 0), default=-1)
    if len(rows) >= MAX_ROWS:
        problems.append(f"too-many: only the first {MAX_ROWS} rows are read")
    return ParsedRows(rows[:MAX_ROWS], problems, empty and not rows)


def _hollow(value: object, depth: int = 0) -> bool:
    """Whether a JSON value consists of empty lists and objects only."""
    inside = list(value.values()) if isinstance(value, dict) else value
    return isinstance(inside, list) and depth < 4 and all(_hollow(item, depth + 1) for item in inside)


def _records(value: object, depth: int = 0) -> Iterator[dict[str, str]]:
    if depth > 4:
        return
    if isinstance(value, list):
        if value and all(isinstance(cell, str | int | float) for cell in value) and len(value) >= LEAST_CELLS:
            cells = [_cell(cell) for cell in value]
            yield from _row(cells, _columns_of(cells))
            return
        for item in value:
            yield from _records(item, depth + 1)
    elif isinstance(value, dict):
        named = {_NAMES.get(_snake(str(key)), ""): _cell(cell) for key, cell in value.items()}
        named.pop("", None)
        if "category" in named and "fact_value" in named:
            yield named
        else:
            for item in value.values():
                if isinstance(item, list | dict):
                    yield from _records(item, depth + 1)


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else replace_unstorable(str(value)).strip()  # an escape may stand for anything


def _snake(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.strip().lower()).strip("_")


def _from_lines(text: str, *, cut: bool) -> ParsedRows:
    lines = _joined([line.strip() for line in text.splitlines() if line.strip()])
    rows: list[dict[str, str]] = []
    problems: list[str] = []
    order: Sequence[str] | None = None
    delimiter = _delimiter(lines)
    for number, line in enumerate(lines):
        if re.fullmatch(r"[\s|:+-]+", line):
            continue  # the rule under the head of a Markdown table
        cells = _cells(line, delimiter)
        header = _header(cells)
        if header:
            order = header
            continue
        last = number == len(lines) - 1
        if len(cells) < LEAST_CELLS:
            if last and cut and rows:
                problems.append("cut-off: the last row is incomplete")
            continue
        columns = order or _columns_of(cells)
        if cut and last and len(cells) < len(columns):
            problems.append("cut-off: the last row is incomplete")
            continue
        if len(rows) >= MAX_ROWS:
            problems.append(f"too-many: only the first {MAX_ROWS} rows are read")
            break
        made = list(_row(cells, columns)) or list(_mended(line, delimiter))
        rows += made
        if not made:
            problems.append("not-a-row: a line is neither a row nor left out")
    return ParsedRows(rows, problems, order is not None and not rows and not problems)


def _joined(lines: list[str]) -> list[str]:
    """Join the lines of a quoted cell that holds a line feed; an unclosed quotation mark joins nothing."""
    out: list[str] = []
    index = 0
    while index < len(lines):
        line = lines[index][:MAX_LINE_CHARS]
        if line.count('"') % 2 and index + 1 < len(lines) and lines[index + 1].count('"') % 2:
            following = lines[index + 1]
            starts_row = re.match(r'^"?[\w ]{2,40}"?\s*[,;|\t]', following) and len(following.split(",")) > LEAST_CELLS
            if not starts_row:
                line = f"{line} {following}"[:MAX_LINE_CHARS]
                index += 1
        out.append(line)
        index += 1
    return out


def _delimiter(lines: Sequence[str]) -> str:
    """Return the delimiter that makes most cells in most lines; a comma when none does."""

    def weight(mark: str) -> tuple[int, int]:
        counts = [len(_cells(line, mark)) for line in lines[:50]]
        return sum(count >= LEAST_CELLS for count in counts), -_DELIMITERS.index(mark)

    return max(_DELIMITERS, key=weight)


def _cells(line: str, delimiter: str) -> list[str]:
    if delimiter == "|":
        line = line.strip().strip("|")
    line = _MARK.sub("", line)
    try:
        cells = next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])
    except csv.Error:
        cells = line.split(delimiter)
    return [cell.strip() for cell in cells]


def _header(cells: Sequence[str]) -> list[str] | None:
    """Return the column names when the cells are a header: three known names or more, and no confidence."""
    names = [_NAMES.get(_snake(cell), "") for cell in cells]
    known = [name for name in names if name]
    return names if len(known) >= 3 and len(known) * 2 > len(names) and "category" in known else None


def _columns_of(cells: Sequence[str]) -> Sequence[str]:
    """Return the columns of a row without a header: an older prompt asked for modality and lifetime before the message."""
    told = [cell.lower() for cell in cells[6:9]] + [""] * 3
    numbered_later = not told[0] and told[2].isdecimal()
    return LONG_COLUMNS if told[0] in _MODALITIES or told[1] in _LIFETIMES or numbered_later else COLUMNS


def _row(cells: Sequence[str], order: Sequence[str]) -> Iterator[dict[str, str]]:
    """Return one row when its confidence cell is valid; the last column takes the remaining cells."""
    if len(cells) > len(order):
        cells = [*cells[: len(order) - 1], ", ".join(cells[len(order) - 1 :])]
    row = {name: cell for name, cell in zip(order, cells, strict=False) if name}
    if re.fullmatch(_CONFIDENCE, row.get("confidence", ""), re.IGNORECASE):
        yield row


def _mended(line: str, delimiter: str) -> Iterator[dict[str, str]]:
    """Repair a row whose value holds the delimiter or a lone quotation mark: the confidence marks its end."""
    mark = re.escape(delimiter)
    shape = re.compile(
        rf"\s*\"?([\w /-]{{2,40}})\"?\s*{mark}\s*\"?([\w /.-]{{0,60}})\"?\s*{mark}(.{{1,600}}?){mark}\s*\"?({_CONFIDENCE})\"?\s*"
        rf"(?:{mark}(.*))?$",
        re.IGNORECASE,
    )
    found = shape.match(_MARK.sub("", line))
    if not found:
        return
    rest = [cell.strip() for cell in (found[5] or "").split(delimiter)]
    cells = [cell.strip().strip('"').strip() for cell in (found[1], found[2], found[3], found[4], *rest)]
    columns = _columns_of(cells)
    free = len(columns) - 1
    if len(cells) > len(columns):
        cells = [*cells[:free], f"{delimiter} ".join(cells[free:])]
    yield dict(zip(columns, cells, strict=False))


def confidence_of(cell: str) -> float:
    """Parse a confidence from 0 to 1 out of ``0.9``, ``0,9``, ``90 %`` or ``high``; 0 for anything else."""
    words: Mapping[str, float] = {"high": 0.9, "medium": 0.7, "low": 0.4}
    text = cell.strip().lower()
    if text in words:
        return words[text]
    try:
        number = float(text.rstrip(" %").replace(",", "."))
    except ValueError:
        return 0.0
    number = number / 100 if number > 1 else number
    return number if 0.0 <= number <= 1.0 else 0.0


MOST_OF_QUOTE = 0.8  # of the words of a loose quote that a sentence must hold
MOST_OF_VALUE = 0.5  # the same of a value without a quote
LEAST_WORDS = 3  # of a message that may change a fact in words of its own
MIN_PREFIX = 3  # letters of a word, and one more, that may stand for a longer name
MAX_VALUE_CHARS, MAX_SENTENCE_CHARS, MAX_NAME_CHARS = 300, 400, 60

NO_MESSAGE = "no-message: the row names no message that was read"
NOT_QUOTED = "quote-not-found: the quoted words do not stand in that message"
TOO_LONG = "too-long: a value has at most {most} characters"
TRANSLATED = (
    "other-language: the value is in another writing than the words that it rests on (Config.fact_language allows one)"
)
NO_NAME = "no-address: an attribute needs a category and a key of plain words"

_TELLING_CHARS = 80  # with fewer, the language of a message is a guess
_LATIN = 0x24F  # the last of the letters that are written like Latin ones
_SELF = frozenset("self user the_user i me my myself speaker the_speaker human".split())
_WORD = expression(r"[^\W_]+(?:[_-][^\W_]+)*")
# What has not happened since yesterday, or is so right now, is not so for long, whatever a model says.
_PASSES = expression(
    r"(?:n['’]t|\bnot) \w+(?: \w+){0,3}? since (?:yesterday|this \w+|last night|\w+day|breakfast|lunch|noon)\b"
    r"|\b(?:right now|(?:at|for) the moment|for now|temporarily|for the time being|im moment|momentan|zurzeit|derzeit|ahora mismo|de momento|por ahora|en ce moment"
    r"|pour l['’]instant|in questo momento|per ora|no momento|por enquanto)\b|暂时|目前|暫時|지금은|今のところ",
    re.IGNORECASE,
)
_RECENT = expression(r"(?:recent|todays?|this_week)_")  # what a key calls recent soon is not
# A value that was measured holds from when it was taken: "on 3 March her creatinine was 2.1".
_MEASURED = expression(r"[<>~]?\d+(?:[.,/]\d+)*(?: ?(?:%|[^\W\d_]{1,6}(?:/[^\W\d_]{1,4})?))?")
_STAMP = expression(r"\b\d{4}-\d\d-\d\d\b")
_NOT_MEASURED = frozenset(("account", "appointment", "budget", "identity", "medication", "trip"))
_REMOVES = frozenset("remove retract delete end ended stop stopped forget negate unset false".split())


@dataclass(frozen=True, slots=True)
class PromptWindow:
    """
    The messages and facts that a prompt showed to the model.

    ``messages`` are to be read, by number; those ``before`` them are context.  ``subject`` is the subject of the
    conversation; ``others`` maps known names to their subjects; ``known`` holds the facts that are believed.
    ``names`` are the user's own; ``speakers`` tells the subject of messages that another than the user wrote.
    ``fact_language`` is the one in which facts are worded, where it is not the chat's; ``unquoted``: `Config.believe_unquoted`.
    """

    messages: Mapping[int, Message]
    before: Sequence[Message] = ()
    subject: str = SELF
    others: SubjectNames = field(default_factory=SubjectNames)
    known: Sequence[Fact] = ()
    language: str | None = None
    names: Sequence[str] = ()
    speakers: Mapping[int, str] = field(default_factory=dict)
    fact_language: str | None = None
    unquoted: bool = False

    def translates(self, message: Message | None) -> bool:
        """Whether facts of *message* are worded in another language than it is."""
        spoken = (one.content for one in self.messages.values() if one.role == "user")
        return message is not None and in_other_language(message.content, spoken, self.fact_language)

    def previous(self, seq: int) -> Message | None:
        """Return the message directly before message *seq*, whether it was to be read or not."""
        earlier = [m for m in (*self.before, *self.messages.values()) if m.seq < seq]
        return max(earlier, key=lambda message: message.seq, default=None)


@dataclass(frozen=True, slots=True)
class Extraction:
    """Candidates in order, dropped ones with the reason, and lines that were no row."""

    candidates: list[Candidate] = field(default_factory=list)
    dropped: list[tuple[Candidate, str]] = field(default_factory=list)
    problems: tuple[str, ...] = ()

    def since(self, seq: int) -> Extraction:
        """Return what rests on message *seq* and those after it."""
        dropped = [pair for pair in self.dropped if pair[0].seq >= seq]
        return replace(self, candidates=[one for one in self.candidates if one.seq >= seq], dropped=dropped)


def parse_facts(answer: Answer, window: PromptWindow, *, source: str) -> Extraction:
    """
    Parse every candidate out of an answer.

    Raises:
        BadAnswer: a refusal, or an answer of which nothing can be read; "nothing to record", in whatever form, or an
            empty text is no such thing.
    """
    if says_nothing(answer):
        return Extraction()
    whole = answer_text(answer)
    return parse_fact_rows(whole.text, window, source=source, cut=whole.cut)


def facts_alone(answer: Answer, *, blank: bool) -> str | None:
    """
    Return the rows of an answer that holds facts and nothing else, ``NONE`` for one that says nothing; else ``None``.

    An extractor of one's own may answer so whatever it is asked for.  Only with *blank* an empty text says nothing: a
    model that was asked for a summary as well has failed.
    """
    inner = strip_fences(answer.text).strip()
    if answer.finish != "stop" or is_refusal(inner):
        return None
    if is_empty_answer(inner) if answer.text.strip() else blank:
        return "NONE"
    listed = inner[:1] in ("{", "[") and '"summary"' not in inner.casefold()  # {"facts": […]} is no part called "facts"
    if not listed and any(parse_parts(inner)):
        return None
    return inner if parse_rows(inner).rows else None


def parse_fact_rows(text: str, window: PromptWindow, *, source: str, cut: bool = False) -> Extraction:
    """Parse candidates from text, as `parse_facts` does from an answer."""
    inner = strip_fences(text)
    if is_empty_answer(inner):
        return Extraction()
    rows = parse_rows(inner, cut=cut)
    if not rows.rows and inner != text:
        rows = parse_rows(text, cut=cut)
    if not rows.rows:
        rows = rows if rows.empty else _from_bullets(inner, cut=cut)
    if not rows.rows:
        if rows.empty or _ends_with_nothing(inner):
            return Extraction()
        raise BadAnswer(_why_bad(text, cut), finish="length" if cut else "stop")
    found: list[Candidate] = []
    dropped: list[tuple[Candidate, str]] = []
    places = Counter((row.get("category", ""), row.get("fact_key", "")) for row in rows.rows)
    for row in (one for listed in rows.rows for one in each_of_list(listed, window.messages.values())):
        if "op" not in row and row.get("fact_key") and places[row.get("category", ""), row.get("fact_key", "")] == 1:
            row = {**row, "op": "set"}  # four columns: the row is upserted
        candidate, reason = _candidate(row, window, source, only=len(rows.rows) == 1)
        if repeats_known(candidate, window.known) and (reason or not _quotes_claim(candidate)):
            continue  # no news is no mistake, and words that do not say it are no new evidence
        if reason:
            dropped.append((candidate, reason))
        else:
            found.append(candidate)
    return Extraction(_with_end_of_trip(found, window), dropped, tuple(rows.problems))


def _from_bullets(text: str, *, cut: bool) -> ParsedRows:
    """Parse an answer of bullets alone, as prompts of one's own ask for them: a statement each, its message in brackets or unsaid."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lines = lines[:-1] if cut else lines
    found = [_BULLET.fullmatch(line) for line in lines[:MAX_ROWS]]
    if not all(found):
        return ParsedRows()
    told = [(one[1], one[2] or "") for one in found if one]
    columns = ("category", "fact_value", "confidence", "message")
    return ParsedRows(
        [dict(zip(columns, ("context", says, BULLET_CONFIDENCE, number), strict=True)) for says, number in told]
    )


def _quotes_claim(candidate: Candidate) -> bool:
    return bool(claimed_terms(candidate) & terms_of(candidate.quote))


def _why_bad(text: str, cut: bool) -> str:
    if is_refusal(text):
        return "the model refused to answer"
    return "the answer was cut off before its first row" if cut else "the answer holds no row that can be read"


def _ends_with_nothing(text: str) -> bool:
    """Whether *text* is prose that opens or closes with NONE on a line."""
    lines = [line for line in text.splitlines() if line.strip()]
    return bool(lines) and len(lines) < 12 and (is_empty_answer(lines[-1]) or is_empty_answer(lines[0]))


def _candidate(row: Mapping[str, str], window: PromptWindow, source: str, *, only: bool) -> tuple[Candidate, str]:
    """Return one row as a candidate, and the reason to drop it, if any."""
    value, key = row.get("fact_value", "").strip(), _name(row.get("fact_key", ""))
    key = "" if key in ("statement", "none", "n_a", "null") else key
    kind: Literal["attribute", "statement"] = "attribute" if key else "statement"
    category = _name(row.get("category", ""))
    label = _statement_category(category)
    if category == "family" and key in _listed(value, window):
        key, value = "has", key  # "my daughter put this on my phone" names nobody
    op, join = _op(row.get("op", ""))
    message, quote, start, reason = _evidence(row, value, window, only=only)
    subject = _subject(row.get("subject", ""), window)
    happened = row.get("lifetime", "").strip().lower() in ("event", "transient") or _RECENT.match(key)
    if message is not None and op == "assert" and (category in DATED or kind == "statement" or happened):
        spoken = next(iter(likely_languages(message.content[:400])), "")
        value = dated(value, message.at, spoken, told=quote if happened else "")
    if message and message.at and COUNTS_ON.search(value) and not _STAMP.search(value):
        value = f"{value.rstrip(' .')} ({message.at.date()}){'.' if kind == 'statement' else ''}"
    value = _as_known(value, (subject, category, key), window)
    code = _language_of(window, message, value)
    code = window.fact_language or code if window.translates(message) else code
    text = value if kind == "statement" else attribute_sentence(category, key, value, code)
    modality = _choice(row.get("modality", ""), _MODALITIES, "asserted")
    lifetime = _choice(row.get("lifetime", ""), _LIFETIMES, "") or _lifetime(category, key, value)
    if (lifetime == "state" and kind == "statement" and _PASSES.search(quote)) or _RECENT.match(key):
        lifetime = "transient"
    measured = kind == "attribute" and _MEASURED.fullmatch(value.strip()) is not None and category not in _NOT_MEASURED
    passing = "event" if measured and lifetime == "state" else lifetime
    passing = "transient" if key == "training_for" else passing  # a race is over after its day
    since, until = _when(quote, message, passing, category) if message and op == "assert" else (None, None)
    ahead = (category == "plan" and lifetime == "transient") or category == "appointment"
    if until is None and ahead and message and op == "assert":
        until = _day_after(value, message)
    candidate = Candidate(
        kind=kind,
        subject=subject,
        category=category if kind == "attribute" else _statement_category(category),
        key=key,
        value=value if kind == "attribute" else "",
        text=text,
        confidence=confidence_of(row.get("confidence", "")),
        seq=message.seq if message else max(window.messages, default=0),
        quote=quote,
        start=start,
        op=op,
        join=join,
        modality=modality,  # type: ignore[arg-type]
        lifetime=lifetime,  # type: ignore[arg-type]
        valid_from_ms=since,
        valid_to_ms=until,
        source=source,
        label=label if label in LABELS else "",
    )
    reason = reason or _unfit(candidate, message, window, quoted=bool(row.get("quote", "").strip()))
    if subject == SELF and not _names_user(row.get("subject", ""), window):
        candidate = replace(candidate, subject=window.speakers.get(candidate.seq, SELF))
    return candidate, reason


def _as_known(value: str, address: tuple[str, str, str], window: PromptWindow) -> str:
    """Return the value as a fact of that address says it, where the word lists of a language know both as one: lactosa, lactose."""
    others = [
        f.value for f in window.known if (f.subject, f.category, f.key) == address and f.live and f.value != value
    ]
    meant = _listed(value, window) if others else frozenset()
    return next((other for other in others if meant & ({other.casefold()} | _listed(other, window))), value)


def _listed(value: str, window: PromptWindow) -> frozenset[str]:
    """Return what the word lists of the chat's language and of English say for a value."""
    said = "\n".join(message.content for message in window.messages.values() if message.role == "user")
    lists = [
        words
        for rules in (patterns_for(said, window.language), load_language("en"))
        if rules
        for words in rules.lexicons.values()
    ]
    plain = without_owner(value.strip()).strip(" .")
    return frozenset(found.casefold() for words in lists if (found := words.lookup(plain)))


def _language_of(window: PromptWindow, message: Message | None, value: str) -> str:
    """Return the language in which the user states a value: that of a long message, else that of all that was read."""
    wide = any(ord(ch) > _LATIN for ch in value)
    said = message.content if message is not None else ""
    if len(said) < _TELLING_CHARS and not wide:
        said = "\n".join(m.content for m in window.messages.values() if m.role == "user")
    code = window.language or language_of(said[:2000])
    if code in ("zh", "ja", "ko") and not wide:  # a name in Latin letters, in a chat in two languages
        code = language_of(message.content) if message is not None else "en"
    return code if wide or code not in ("zh", "ja", "ko") else "en"


def _names_user(cell: str, window: PromptWindow) -> bool:
    """Whether the subject is the user by name, whoever speaks."""
    return cell.strip().strip("\"'").casefold() in {name.casefold() for name in window.names}


def _unfit(candidate: Candidate, message: Message | None, window: PromptWindow, *, quoted: bool) -> str:
    attribute = candidate.kind == "attribute"
    if not (attribute or quoted):
        users = [one.content for one in window.messages.values() if one.role == "user"]
        candidate = replace(candidate, text=as_said(candidate.text, users))
    most = MAX_VALUE_CHARS if attribute else MAX_SENTENCE_CHARS
    if len(candidate.value or candidate.text) > most:
        return TOO_LONG.format(most=most)
    names = (candidate.category, candidate.key) if attribute else (candidate.category,)
    if any(not name or len(name) > MAX_NAME_CHARS or not _WORD.fullmatch(name) for name in names):
        return NO_NAME
    if message is None or message.role != "user":
        return ""  # grounding says so, with the role
    if window.fact_language and window.translates(message):
        before = question_of(window.previous(message.seq))
        heard = [before, candidate.subject, *window.names, *window.others.ids, *(f.value for f in window.known)]
        spoken = [one.content for one in window.messages.values() if one.role == "user"]
        heard += [] if attribute else spoken
        return verify_translation(candidate, message, heard, window.fact_language)
    if _translated(candidate.value or candidate.text, " ".join([message.content, *(f.value for f in window.known)])):
        return TRANSLATED
    shown = [*window.before, *window.messages.values()]
    why = verify_claim(candidate, message, window.previous(message.seq), shown, window.known, window.language)
    ours = candidate.category == "project" or (not quoted and says_of_user(candidate))  # "crowds wear me out"
    why = "" if why == OF_OTHERS and ours else why
    why = why or verify_use(candidate, message) or verify_state(candidate, message)
    if why or candidate.op == "retract" or next(iter(likely_languages(message.content[:400])), "") != "en":
        return why
    named = " ".join((*(one.content for one in shown), *(f"{fact.value} {fact.text}" for fact in window.known)))
    told = f"{candidate.key.replace('_', ' ')} {candidate.value}" if attribute else candidate.text
    here = (candidate.subject, candidate.category, candidate.key)
    known = any((f.subject, f.category, f.key) == here and f.live for f in window.known)
    asked = question_of(window.previous(message.seq))
    unsaid = not (quoted or known or asked or window.unquoted or says_of_user(candidate))
    if attribute and candidate.subject == SELF and unsaid:
        why = verify_relation(f"{candidate.category}/{candidate.key}", candidate.value, message.content)
    if not (quoted or known or asked or why):
        why = "" if attribute or candidate.subject != SELF else verify_sentence(candidate.text, message.content)
        why = why or verify_clauses(candidate, message.content)
    return why or verify_tools(candidate.category, told, message.content, named)


def _translated(value: str, content: str) -> bool:
    """Whether a value is in another script than the message: 부산 as Busan, Lisbon as 里斯本."""
    if value.lower() in ("true", "false") or value.casefold() in content.casefold():
        return False
    wide, wide_around = ([ord(ch) > _LATIN for ch in text if ch.isalpha()] for text in (value, content))
    return bool(wide and wide_around) and ((all(wide) and not any(wide_around)) or (all(wide_around) and not any(wide)))


def _evidence(
    row: Mapping[str, str], value: str, window: PromptWindow, *, only: bool
) -> tuple[Message | None, str, int, str]:
    """Return ``(message, exact quote, start, reason)``, from the named message or else the one with the words."""
    quote = row.get("quote", "").strip()
    number = re.search(r"\d+", row.get("message", ""))
    named = window.messages.get(int(number[0])) if number and len(number[0]) < 10 else None
    users = [m for m in reversed(list(window.messages.values())) if m.role == "user"]
    places = [named] if named else [] if number else users
    for message in places:
        for words in (quote, value) if not quote else (quote,):
            span = locate_quote(words, message.content) if words else None
            if span is None and not quote:
                place = (_name(row.get("category", "")), _name(row.get("fact_key", "")))
                known = any((fact.category, fact.key) == place and fact.live for fact in window.known)
                span = locate_number(words, None if known else " ".join(place), message.content)
            if span:
                return message, message.content[span[0] : span[1]], span[0], ""
    if named is not None and named.role != "user":
        return named, quote, 0, ""
    bare = value.casefold() in ("true", "false", "yes", "no") and row.get("fact_key", "")
    wanted = quote or (bare or as_said(value, (m.content for m in users)))
    found = nearest_sentence(terms_of(wanted), places, MOST_OF_QUOTE if quote else MOST_OF_VALUE)
    if found is None and not quote and names_more_than_number(row, value):
        found = nearest_sentence(key_words(wanted), places, MOST_OF_VALUE, forms=True)
    if found is None and not quote and not row.get("fact_key") and _names_are_said(value, window):
        given = PREDICATES | _known_terms(window)
        found = nearest_sentence(terms_of(wanted), places, MOST_OF_VALUE, given)
        found = found or nearest_sentence(key_words(wanted), places, MOST_OF_VALUE, given, forms=True)
    free = only and not quote and not number and len(users) == 1 and not re.search(r"\d", value)
    if found is None and free and _changes_known(row, value, window):
        # The one message that was read: "fish is back on my plate" after "vegetarian".
        found = users[0], users[0].content.rstrip(), 0, ""
    found = found or said_otherwise(row, value, places)
    if found is None and window.unquoted and not quote:
        meant = [message for message in places if message.role == "user"]
        whole = (meant[0], meant[0].content.rstrip(), 0, "") if len(meant) == 1 else None
        found = stated_unquoted(row, value, nearest_sentence(terms_of(wanted), meant, 0.01) or whole)
    if found:
        return found
    return (named, quote, -1, NOT_QUOTED if quote else "") if named else (None, quote, -1, NO_MESSAGE)


def _changes_known(row: Mapping[str, str], value: str, window: PromptWindow) -> bool:
    """Whether a row has another value for what is believed at its address, or for the one diet, and its message says something."""
    category, key = _name(row.get("category", "")), _name(row.get("fact_key", ""))
    there = [fact for fact in window.known if fact.live and fact.category == category and fact.subject == SELF]
    there = [fact for fact in there if fact.key == key or fact.cardinality == "exclusive"]
    words = sum(len(_WORD.findall(message.content)) for message in window.messages.values() if message.role == "user")
    same = any((fact.key, fact.value.casefold()) == (key, value.casefold()) for fact in there)
    return bool(key and there) and not same and words >= LEAST_WORDS


def _known_terms(window: PromptWindow) -> frozenset[str]:
    """Return the words of what is believed: "Uses Intercom for tickets" takes the tickets from "Uses Zendesk for tickets"."""
    return frozenset[str]().union(*(terms_of(fact.text) for fact in window.known if fact.live))


def _names_are_said(value: str, window: PromptWindow) -> bool:
    """Whether the users or known facts have every name of a memory, if only its beginning: "Postgres"."""
    users = (message.content for message in (*window.before, *window.messages.values()) if message.role == "user")
    said = {word.casefold() for text in (*users, *(fact.text for fact in window.known)) for word in _WORD.findall(text)}
    names = [word.casefold() for word in _WORD.findall(value)[1:] if word != word.lower()]
    long = [word for word in said if len(word) > MIN_PREFIX]
    return all(name in said or any(name.startswith(word) for word in long) for name in names)


def _subject(cell: str, window: PromptWindow) -> str:
    name = cell.strip().strip("\"'")
    plain = name.casefold().replace(" ", "_")
    if not plain or plain in _SELF:
        return SELF
    if name.casefold() in {own.casefold() for own in window.names}:
        return SELF
    shown = {fact.subject for fact in window.known}
    return window.others.id_of(name, shown) or _relation(name, window) or subject_name(name) or SELF


def _relation(name: str, window: PromptWindow) -> str:
    """Return the relation that a word such as "mum" means, where one has one such person."""
    said = " ".join(message.content for message in window.messages.values())
    for rules in filter(None, (patterns_for(said, window.language), load_language("en"))):
        words = rules.lexicons.get("relation")
        found = words.lookup(without_owner(name)) if words else None
        if found in UNIQUE or (found and any(fact.subject == found for fact in window.known)):
            return found
    return ""


def _op(cell: str) -> tuple[Literal["assert", "retract"], Literal["replace", "add", ""]]:
    word = cell.strip().lower()
    if word in _REMOVES:
        return "retract", ""
    return "assert", "add" if word in ADDS else "replace" if word in ("set", "replace", "update", "change") else ""


def _choice(cell: str, known: Sequence[str], default: str) -> str:
    word = cell.strip().lower()
    return word if word in known else default


def _lifetime(category: str, key: str, value: str) -> str:
    """Return for how long a fact holds by what it is about: for good, until it changes, or as something that happens."""
    if category in LASTING or key in LASTING or f"{category}/{key}" in LASTING:
        return "permanent"
    if category == "plan" and _STAMP.search(value):
        return "transient"
    return "event" if category in HAPPENS else "state"


def _name(cell: str) -> str:
    """Normalize a category or key: lower case, words joined by an underscore."""
    return re.sub(r"[\s/.]+", "_", cell.strip().strip("\"'").lower()).strip("_")


def _statement_category(name: str) -> str:
    known = {"behavioural": "behavioral", "behavior": "behavioral", "preferences": "preference", "tech": "technical"}
    return known.get(name, name)


def _with_end_of_trip(found: Sequence[Candidate], window: PromptWindow) -> list[Candidate]:
    """Let all that is said of a trip end with it, where the answer names its last day."""
    said = [one for one in found if (one.category, one.key, one.op) == ("trip", "ends_on", "assert")]
    days = [_day_after(one.value, window.messages[one.seq]) for one in said if one.seq in window.messages]
    if len(days) != 1 or days[0] is None:
        return list(found)
    trip = [one for one in found if one.category == "trip" and one.op == "assert" and one.valid_to_ms is None]
    return [
        replace(one, valid_to_ms=days[0]) if one in trip and one.subject == said[0].subject else one for one in found
    ]


def _day_after(value: str, message: Message) -> int | None:
    """Return the end of the last day that a plan names, unless it is past."""
    last = max(_STAMP.findall(value), default="")
    try:
        end = datetime.fromisoformat(last).replace(tzinfo=message.at.tzinfo if message.at else None) + timedelta(days=1)
    except ValueError:
        return None
    return to_ms(end) if message.at and message.at.tzinfo and end > message.at else None


def _when(quote: str, message: Message, lifetime: str, category: str) -> tuple[int | None, int | None]:
    """Return from when to when the quoted words hold; an end only for what passes."""
    if message.at is None or message.at.tzinfo is None or not quote:
        return None, None
    said_ms = to_ms(message.at)
    passes = lifetime == "transient" or category == "appointment"
    measured = lifetime == "event" or category in MEASURED
    since: int | None = None
    until: int | None = None
    for code in likely_languages(message.content[:400])[:1]:
        for span in find_times(quote, message.at, code, ahead=passes):
            if passes and span.to_ms > said_ms:
                until = span.to_ms
            elif span.relation in ("since", "for") or (measured and span.relation == "at"):
                told = span.from_ms <= said_ms and not has_guessed_year(span, message.at, code)
                since = span.from_ms if told else since
    return since, until
