"""
What every answer of a model has in common, whatever was asked: what is wrapped around it, whether it
refuses, whether it says that there is nothing, where it was cut off.  Pure.

Nothing here raises on any text: a model may say anything.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..llm.protocol import Answer, BadAnswer
from ..text.clean import storable
from ..text.sentences import split

MAX_ANSWER_CHARS = 100_000  # what is longer was not written in a thousand tokens

_THOUGHTS = re.compile(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)[^\n]*\n(.*?)(?:^[ \t]*(?:```|~~~)[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_LABEL = re.compile(r"^[ \t>#*_-]{0,8}([A-Za-z][A-Za-z ]{1,20}?)[ \t*_]{0,4}[:：][ \t*_]{0,4}", re.MULTILINE)
_REFUSAL = re.compile(
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
_NOTHING = re.compile(
    r"""(?:
        (?:there\ (?:are|is)\ )?(?:no|none|nothing)(?:\ (?:new|durable|significant|specific|relevant|notable|further|additional))?
            (?:\ (?:facts?|changes?|updates?|episodes?|memories|statements|information|rows?))?
            (?:\ (?:to\ (?:record|report|extract|note|add|remember|store)|found|changed|stated|worth\ (?:recording|noting)))?
      | n/?a | null | empty | nil
      | keine?(?:\ neuen?)?(?:\ (?:fakten|tatsachen|änderungen|einträge))?(?:\ (?:festzuhalten|zu\ notieren|gefunden))? | nichts(?:\ neues)?
      | ning[uú]n[oa]?s?(?:\ (?:hechos?|datos?)(?:\ (?:que|para)\ (?:registrar|anotar))?)? | nada(?:\ (?:que\ registrar|nuevo))?
      | no\ hay\ (?:hechos|datos|nada)(?:\ nuevos)?(?:\ (?:que|para)\ (?:registrar|anotar))?
      | aucun(?:\ (?:fait|changement))?(?:\ à\ (?:enregistrer|noter|retenir))? | rien(?:\ à\ (?:signaler|noter))?
      | nenhum(?:\ fato)?(?:\ (?:para|a)\ registrar)? | nessun(?:o|\ fatto)?(?:\ da\ registrare)? | niente | geen(?:\ feiten)?
      | нет(?:\ (?:фактов|новых\ фактов))?(?:\ для\ записи)? | ничего
      | (?:기록할\ ?(?:만한\ )?)?(?:사실이?\ )?없(?:음|습니다|어요) | なし | ありません | (?:記録する)?事実は?(?:なし|ありません) | 无 | 無 | 没有 | 没有(?:需要)?记录的?(?:事实)?
    )""",
    re.VERBOSE | re.IGNORECASE,
)

_EMPTY = frozenset(("[]", "{}", "()", "-", "–", "—", '""', "''", "[{}]"))


@dataclass(frozen=True, slots=True)
class Said:
    """An answer without what stands around it; ``cut``: it ended in the middle."""

    text: str
    cut: bool


def said(answer: Answer) -> Said:
    """
    What the model answered, as text that can be stored.

    Raises:
        BadAnswer: it refused, or said nothing at all.
    """
    text = storable(answer.text[:MAX_ANSWER_CHARS])
    text = _THOUGHTS.sub("", text).strip().lstrip("\ufeff")
    cut = answer.finish == "length" or len(answer.text) > MAX_ANSWER_CHARS
    if answer.finish == "refusal":
        raise BadAnswer("the model refused to answer", finish="refusal")
    if not text:
        raise BadAnswer("the model answered with nothing" + (" before it was cut off" if cut else ""))
    return Said(text, cut)


def refused(text: str) -> bool:
    """Whether *text* is an excuse rather than an answer."""
    return bool(_REFUSAL.match(text))


def says_nothing(text: str) -> bool:
    """Whether *text* says, and says no more, that there is nothing to tell."""
    if len(text) > 200:
        return False
    if re.sub(r"\s+", "", text) in _EMPTY:
        return True
    words = re.sub(r"[\s\"'`*_().\[\]{}<>#-]+", " ", text).strip(" .!。:,")
    return _NOTHING.fullmatch(words) is not None


def unfenced(text: str) -> str:
    """What stands inside code fences where there are any, else *text* itself."""
    inside = [found[1].strip() for found in _FENCE.finditer(text)]
    return "\n".join(part for part in inside if part) or text


def labelled(text: str, names: tuple[str, ...]) -> dict[str, str]:
    """
    The parts of *text* after labels such as ``SUMMARY:``, by the label in lower case.

    Only *names* count; of a label that comes twice the longer part is kept.  What stands before the first one is
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


def whole_sentences(text: str, most_chars: int, *, cut: bool) -> str:
    """*text* up to its last complete sentence within *most_chars*; a last one that was cut off goes."""
    text = text.strip()
    shortened = len(text) > most_chars
    head = text[:most_chars]
    if not shortened and not cut:
        return head
    spans = split(head)
    last = head.rstrip()[-1:]
    if not shortened and last in ".!?。！？…\"'”」)]":
        return head.strip()
    if len(spans) < 2:
        return "" if cut and not shortened else head.strip()
    return head[: spans[-2].end].strip()
