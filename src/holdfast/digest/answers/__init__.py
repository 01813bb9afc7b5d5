"""
Parsing of model answers: the wrapping that all of them share, summaries, and merged statements.  Pure.

An answer may refuse, say that there is nothing, or be cut off.  `BadAnswer` is raised for nothing else than an
answer that cannot be used: a model may write anything.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from ...llm.protocol import Answer, BadAnswer
from ...text import dataclass, expression
from ...text.sentences import split_sentences
from ...text.terms import count_tokens, language_of, likely_languages
from ...text.validate import replace_unstorable
from ..chunk import TOLD
from ..summarize import SummaryDraft, without_least_items

MAX_ANSWER_CHARS = 100_000  # what is longer was not written in a thousand tokens

_THOUGHTS = expression(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_FENCE = expression(r"^[ \t]*(?:```|~~~)[^\n]*\n(.*?)(?:^[ \t]*(?:```|~~~)[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_LABEL = expression(r"^[ \t>#*_-]{0,8}([A-Za-z][A-Za-z ]{1,20}?)[ \t*_]{0,4}[:：][ \t*_]{0,4}", re.MULTILINE)
_REFUSAL = expression(
    r"""^\W*(?:
        (?:i['’]?m|i\ am|we['’]?re)\ (?:very\ |really\ |so\ )?(?:sorry|afraid|unable|not\ able)\b
      | (?:sorry|apologies|unfortunately)\b[^.\n]{0,40}\b(?:can['’]?t|cannot|can\ not|unable|not\ able|won['’]?t)\b
      | i\ (?:can['’]?t|cannot|can\ not|won['’]?t|will\ not|must\ decline)\b
      | as\ an?\ (?:ai|artificial|large\ language|language)\b
      | (?:es\ tut\ mir\ leid|tut\ mir\ leid|leider\ kann\ ich)\b | ich\ kann\ (?:das\ |dir\ |dabei\ |dies\ )?(?:leider\ )?nicht\b
      | lo\ siento\b | no\ puedo\ (?:ayudar|hacer|cumplir|procesar)\b | (?:je\ suis\ )?désolé | je\ ne\ peux\ pas\b
      | desculpe\b | sinto\ muito\b | mi\ dispiace\b | het\ spijt\ me\b | к\ сожалению | извините
      | 죄송(?:합니다|하지만) | 申し訳 | すみません | 抱歉 | 对不起 | 對不起 | 很抱歉
    )""",
    re.VERBOSE | re.IGNORECASE,
)
# The whole answer, letters only, when a model has nothing to say; compared without case and marks.
_NOTHING = expression(
    r"""(?:
        (?:or\ )?(?:there\ (?:are|is)\ )?(?:no|none|nothing)(?:\ (?:new|durable|significant|specific|relevant|notable|further|additional|lasting|user)){0,3}
            (?:\ (?:facts?|changes?|updates?|episodes?|memories|statements|information|rows?))?
            (?:\ (?:to\ (?:record|report|extract|note|add|remember|store)|(?:(?:have|has|was|were)\ (?:been\ )?)?(?:found|changed|stated)|worth\ (?:recording|noting)))?
            (?:\ (?:in|from)\ (?:this|the)\ (?:conversation|chat|exchange|messages?|excerpt))?
      | n/?a | null | empty | nil | csv | json
      | (?:es\ gibt\ )?keine?(?:\ (?:neuen?|relevanten|wichtigen|dauerhaften|erwähnenswerten|nennenswerten|besonderen|konkreten))?(?:\ (?:fakten|tatsachen|änderungen|einträge|informationen))?(?:\ (?:festzuhalten|zu\ (?:notieren|erfassen|speichern|vermerken)|gefunden))? | nichts(?:\ neues)?
      | ning[uú]n[oa]?s?(?:\ (?:hechos?|datos?)(?:\ (?:que|para)\ (?:registrar|anotar))?)? | nada(?:\ (?:que\ registrar|nuevo))?
      | no\ hay\ (?:hechos|datos|nada)(?:\ nuevos)?(?:\ (?:que|para)\ (?:registrar|anotar))?
      | aucun(?:\ (?:fait|changement))?(?:\ à\ (?:enregistrer|noter|retenir))? | rien(?:\ à\ (?:signaler|noter))?
      | nenhum(?:\ fato)?(?:\ (?:para|a)\ registrar)? | nessun(?:o|\ fatto)?(?:\ da\ registrare)? | niente | geen(?:\ feiten)?
      | brak(?:\ (?:nowych|istotnych))?(?:\ faktów)?(?:\ do\ zapisania)? | нет(?:\ (?:фактов|новых\ фактов))?(?:\ для\ записи)? | ничего
      | (?:기록할\ ?(?:만한\ )?)?(?:특별한\ )?(?:새로운\ )?(?:사실[이은]?\ )?없(?:음|습니다|어요) | なし | ありません | (?:記録(?:する|すべき))?(?:新しい)?事実は?(?:なし|ありません) | 无 | 無 | (?:没有|無|无)(?:任何)?(?:值得|需要|要|可|新的?)?(?:记录)?的?(?:事实|内容|信息)?(?:可记录|需要记录)?
    )""",
    re.VERBOSE | re.IGNORECASE,
)

_EMPTY = frozenset(("[]", "{}", "()", "-", "–", "—", '""', "''", "[{}]"))


@dataclass(frozen=True, slots=True)
class AnswerText:
    """The text of an answer without its wrapping; ``cut``: it ended in the middle."""

    text: str
    cut: bool


def answer_text(answer: Answer) -> AnswerText:
    """
    Return the text of an answer, fit to be stored.

    Raises:
        BadAnswer: it refused, or said nothing at all.
    """
    text = replace_unstorable(answer.text[:MAX_ANSWER_CHARS])
    text = _THOUGHTS.sub("", text).strip().lstrip("\ufeff")
    cut = answer.finish == "length" or len(answer.text) > MAX_ANSWER_CHARS
    if answer.finish == "refusal":
        raise BadAnswer("the model refused to answer", finish="refusal")
    if not text:
        raise BadAnswer("the model answered with nothing" + (" before it was cut off" if cut else ""))
    return AnswerText(text, cut)


def says_nothing(answer: Answer) -> bool:
    """Whether a model that was asked for a list chose to answer with an empty text."""
    return answer.finish == "stop" and not answer.text.strip()


def is_refusal(text: str) -> bool:
    """Whether *text* is an excuse rather than an answer."""
    return bool(_REFUSAL.match(text))


def is_empty_answer(text: str) -> bool:
    """Whether *text* says only that there is nothing to record."""
    if len(text) > 200:
        return False
    if re.sub(r"\s+", "", text) in _EMPTY:
        return True
    words = re.sub(r"[\s\"'`*_().\[\]{}<>#-]+", " ", text).strip(" .!。:,")
    return _NOTHING.fullmatch(words) is not None


def strip_fences(text: str) -> str:
    """Return the contents of the code fences in *text*, or *text* itself when it has none."""
    inside = [found[1].strip() for found in _FENCE.finditer(text)]
    return "\n".join(part for part in inside if part) or text


def split_labels(text: str, names: tuple[str, ...]) -> dict[str, str]:
    """
    Return the parts of *text* after labels such as ``SUMMARY:``, keyed by the label in lower case.

    Only *names* count; of a label that comes twice the longer part is kept.  The text before the first one is
    under ``""``.
    """
    found: dict[str, str] = {}
    places = [(m[1].strip().lower(), m.start(), m.end()) for m in _LABEL.finditer(text)]
    places = [place for place in places if place[0] in names]
    found[""] = text[: places[0][1] if places else len(text)].strip()
    for index, (name, _, end) in enumerate(places):
        until = places[index + 1][1] if index + 1 < len(places) else len(text)
        part = text[end:until].strip()
        if len(part) >= len(found.get(name, "")):
            found[name] = part
    return found


def keep_whole_sentences(text: str, most_chars: int, *, cut: bool) -> str:
    """Return *text* up to its last complete sentence within *most_chars*, without a last one that was cut off."""
    text = text.strip()
    shortened = len(text) > most_chars
    head = text[:most_chars]
    if not shortened and not cut:
        return head
    spans = split_sentences(head)
    last = head.rstrip()[-1:]
    if not shortened and last in ".!?。！？…\"'”」)]":
        return head.strip()
    if len(spans) < 2:
        return "" if cut and not shortened else head.strip()
    return head[: spans[-2].end].strip()


MAX_TEXT_CHARS, MAX_ROLLING_CHARS = 2_400, 4_000
MAX_ITEMS, MAX_ITEM_CHARS = 8, 200
LEAST_TEXT_CHARS = 10
MAX_SMALL_NUMBER = 31  # up to it numbers may be counts, spelled words or days, so no text needs them in digits
_TELLING_CHARS = 80  # with fewer, a text's language is a guess

PARTS = ("summary", "themes", "concerns", "actions", "progression", "connections", "episodes", "facts")
_OTHER_NAMES = {
    "progressions": "progression", "temporal progression": "progression", "temporal progressions": "progression",
    "recurring themes": "themes", "key themes": "themes", "theme": "themes", "long term concerns": "concerns",
    "concern": "concerns", "action": "actions", "connection": "connections", "recommendations": "actions",
    "actions and recommendations": "actions", "concerns and mood": "concerns", "text": "summary",
    "updated summary": "summary", "new summary": "summary", "rolling summary": "summary",
}  # fmt: skip
_SPLIT = expression(r"\s*(?:[;；\n]|(?<=[.!?])\s+[-*•])\s*")
_DIGITS = expression(r"\d+")
# A message that a model cites, with its words or without: [3], [1, 2], [1: "we ate oysters"]; a date or a year in brackets is none.
_CITATION = expression(
    r"(?:\s+|^|(?<=[^\w\s\]]))\[\s*(?!\d{4}-\d\d|(?:19|20)\d\d\s*\])(?:(?:messages?|msgs?|seq|#)\s*)*"
    r"(?P<numbers>#?\d{1,9}(?:\s*[,;–-]\s*#?\d{1,9})*)\s*(?::\s*(?:[\"“„«‘「][^\n]*?[\"”»’」]|[^\]\n]{1,300}))?\s*\](?!\()",
    re.IGNORECASE | re.MULTILINE,
)
_GROUPED = expression(r"(?<=\d)[.,'\u00a0\u202f ](?=\d)")
_MARK = expression(r"^\s*(?:[-*•‣▪–]|\d{1,2}[.)])\s*")


def parse_parts(text: str) -> dict[str, str]:
    """Return the labeled parts of an answer by name, whatever its form; ``""`` holds the text before the first."""
    inner = strip_fences(text).strip()
    if inner.startswith("{"):
        found = _from_json(inner)
        if found:
            return found
    raw = split_labels(inner, (*PARTS, *_OTHER_NAMES))
    parts: dict[str, str] = {}
    for name, part in raw.items():
        parts.setdefault(_OTHER_NAMES.get(name, name), part)
    return parts


def _from_json(text: str) -> dict[str, str]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(value, dict):
        return {}
    parts: dict[str, str] = {}
    for key, item in value.items():
        name = str(key).strip().lower().replace("_", " ")
        name = _OTHER_NAMES.get(name, name)
        if name in PARTS:
            lines = item if isinstance(item, list) else [item]
            parts[name] = (
                json.dumps(item) if any(isinstance(one, dict) for one in lines) else "\n".join(map(str, lines))
            )
    return parts


def parse_summary(
    answer: Answer,
    spoken: Sequence[str],
    *,
    exchanges: int,
    source: str,
    numbers: Collection[int] | None = None,
    most: int | None = None,
) -> SummaryDraft:
    """
    Parse a summary out of an answer.

    Args:
        answer: what the model said.
        spoken: what it was about, text by text; the summary has to be in a language of theirs.
        exchanges: how many the summary covers.
        source: who wrote it.
        numbers: those that were said, where that is to be checked.
        most: the tokens that it may have; what matters least is left out of a longer one.

    Raises:
        BadAnswer: nothing of it can be used; the message says why.
    """
    whole = answer_text(answer)
    parts = parse_parts(whole.text)
    return build_summary(parts, spoken, exchanges=exchanges, source=source, cut=whole.cut, numbers=numbers, most=most)


def build_summary(
    parts: dict[str, str],
    spoken: Sequence[str],
    *,
    exchanges: int,
    source: str,
    cut: bool = False,
    numbers: Collection[int] | None = None,
    most: int | None = None,
) -> SummaryDraft:
    """Build a summary from the parts of an answer, as `parse_summary` does."""
    named = [name for name in parts if name]
    text = parts.get("summary") or ("" if named else parts.get("", ""))
    last = not named or named[-1] == "summary"
    body = _without_invented_numbers(_checked_text(text, spoken, MAX_TEXT_CHARS, cut=cut and last), numbers)
    if not body:
        raise BadAnswer("every sentence of the summary holds a number that nobody said")
    change = keep_whole_sentences(without_citations(parts.get("progression", ""))[0], MAX_TEXT_CHARS // 4, cut=False)
    change = _without_invented_numbers(change, numbers)
    body += f"\n{change}" if change and not is_empty_answer(change) else ""

    def listed(name: str) -> tuple[str, ...]:
        found = split_items(without_citations(parts.get(name, ""))[0], cut=cut and named[-1:] == [name])
        return tuple(item for item in found if not _invented(item, numbers))

    draft = SummaryDraft(
        text=body,
        themes=listed("themes"),
        concerns=listed("concerns"),
        actions=listed("actions"),
        exchanges=exchanges,
        source=source,
    )
    return draft if most is None else _shortened(draft, most)


def _shortened(draft: SummaryDraft, most: int) -> SummaryDraft:
    """
    Return the draft within *most* tokens: without items, then without the sentences that name least, earlier ones first.

    Raises:
        BadAnswer: it is more than three times as long, as long as what it tells.
    """
    if count_tokens(draft.text) > TOLD * most:
        raise BadAnswer("the summary is as long as what it tells")
    draft = without_least_items(draft, most)
    sentences = [span.of(draft.text).strip() for span in split_sentences(draft.text)]
    left = list(sentences)
    for sentence in sorted(sentences, key=_names_and_numbers):
        if count_tokens(" ".join(left)) <= most or len(left) == 1:
            break
        left.remove(sentence)
    return draft if left == sentences else replace(draft, text=" ".join(left))


def _names_and_numbers(sentence: str) -> int:
    return len(_DIGITS.findall(sentence)) + sum(word[:1].isupper() for word in sentence.split()[1:])


def parse_rolling_summary(answer: Answer, spoken: Sequence[str], numbers: Collection[int] | None = None) -> str:
    """
    Parse the text of one summary of a whole conversation.

    Raises:
        BadAnswer: nothing of it can be used; the message says why.
    """
    whole = answer_text(answer)
    parts = parse_parts(whole.text)
    text = _checked_text(parts.get("summary") or parts.get("", ""), spoken, MAX_ROLLING_CHARS, cut=whole.cut)
    kept = _without_invented_numbers(text, numbers)
    if not kept:
        raise BadAnswer("every sentence of the summary holds a number that nobody said")
    return kept


def numbers_in(texts: Iterable[str]) -> frozenset[int]:
    """Return the numbers written in digits in *texts*, thousands such as 1,000 included."""
    return frozenset(
        int(number)
        for text in texts
        for number in (*_DIGITS.findall(text), *_DIGITS.findall(_GROUPED.sub("", text)))
        if len(number) < 19
    )


def _without_invented_numbers(text: str, numbers: Collection[int] | None) -> str:
    """Return *text* without the sentences that hold a number outside *numbers*."""
    if numbers is None or not _invented(text, numbers):
        return text
    kept = [span.of(text).strip() for span in split_sentences(text) if not _invented(span.of(text), numbers)]
    return " ".join(kept)


def _invented(text: str, numbers: Collection[int] | None) -> bool:
    return numbers is not None and any(n > MAX_SMALL_NUMBER and n not in numbers for n in numbers_in([text]))


def without_citations(text: str) -> tuple[str, str]:
    """Return a model's text without the messages that it cites in brackets, and the numbers of those."""
    return _CITATION.sub("", text).strip(), " ".join(found["numbers"] for found in _CITATION.finditer(text))


def _checked_text(text: str, spoken: Iterable[str], most_chars: int, *, cut: bool) -> str:
    text = without_citations(text)[0].strip().strip('"').strip()
    if is_refusal(text):
        raise BadAnswer("the model refused to summarize")
    kept = _without_repeated_lines(keep_whole_sentences(text, most_chars, cut=cut))
    if len(kept) < LEAST_TEXT_CHARS and (not kept or is_empty_answer(kept) or kept.isascii()):
        raise BadAnswer("the answer holds no summary" + (": it was cut off in its first sentence" if cut else ""))
    if is_empty_answer(kept):
        raise BadAnswer("the answer holds no summary")
    if is_foreign(kept, spoken):
        raise BadAnswer("the summary is in a language that nobody spoke")
    return kept


def _without_repeated_lines(text: str) -> str:
    """Remove lines that repeat the one before; a model that loops writes them."""
    lines = text.split("\n")
    return "\n".join(line for n, line in enumerate(lines) if not line or n == 0 or line != lines[n - 1])


def split_items(part: str, *, cut: bool = False) -> tuple[str, ...]:
    """Split a list written with semicolons or one item a line."""
    found = [" ".join(_MARK.sub("", item).split()).strip(" .;") for item in _SPLIT.split(part)]
    found = [item for item in found if item and not is_empty_answer(item)]
    if cut and len(found) > 1:
        found = found[:-1]
    return tuple(dict.fromkeys(item[:MAX_ITEM_CHARS] for item in found[:MAX_ITEMS]))


def is_foreign(text: str, spoken: Iterable[str]) -> bool:
    """Whether *text* is in a language of none of *spoken*; False where either is too short to decide."""
    texts = [each for each in spoken if each]
    if len(text) < _TELLING_CHARS or sum(map(len, texts)) < _TELLING_CHARS:
        return False
    known = {code for each in texts for code in (language_of(each), *likely_languages(each))}
    known |= set(likely_languages("\n".join(texts)[:4000]))
    return language_of(text) not in known


_LINE = expression(r"^[\s>*#\"'-]{0,6}(\d{1,4})[\"']?\s*[:.)|\u2013-]\s*(.*)$")
_MERGED = expression(r"^[*_\s\"]*MERGED[*_\s]*[:\uff1a]\s*", re.IGNORECASE)
_APART = expression(r"^\W*APART\b", re.IGNORECASE)


def parse_merged_statements(answer: Answer, groups: int) -> dict[int, str]:
    """
    Return the text of each merged group by its number from 1; unreadable lines are left out.

    A last line that was cut off does not count.

    Raises:
        BadAnswer: nothing can be read.
    """
    whole = answer_text(answer)
    lines = [line.strip() for line in strip_fences(whole.text).splitlines() if line.strip()]
    found: dict[int, str] = {}
    read = 0
    for line in lines[:-1] if whole.cut else lines:
        numbered = _LINE.match(line)
        number, text = (int(numbered[1]), numbered[2].strip()) if numbered else (1, line)
        if not (1 <= number <= groups) or (numbered is None and (groups > 1 or not _is_verdict(text))):
            continue
        read += 1
        if not _APART.match(text):
            found.setdefault(number, _MERGED.sub("", text).strip().strip('"'))
    if not read or (lines and is_refusal(lines[0])):
        raise BadAnswer("the model said nothing about the sentences", finish=answer.finish)
    return {number: text for number, text in found.items() if text}


def _is_verdict(text: str) -> bool:
    return bool(_MERGED.match(text) or _APART.match(text))
