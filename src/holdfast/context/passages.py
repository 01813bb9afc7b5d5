"""
The passages that a context recalls: the best hits that are not shown anyway, with what they answer.  Pure.

A reply is often nothing without its question ("I got it as a gift"), so the question comes with the best ones.  Hits are
chosen best first until the room is full; what is left over goes to the turns beside the best ones.  They are shown in the order in
which they were said, so that of two values the later one comes last.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime

from ..text import dataclass, expression, remembered
from ..text.render import render_line
from ..text.sentences import split_sentences
from ..text.terms import MESSAGE_OVERHEAD_TOKENS
from ..text.validate import ROLES
from ..types import Hit, TurnKey
from .material import LINE_TOKENS, MAX_RECALLED_CHARS, MISSES, Item, Material, TokenMeter, hit_item, turn_key
from .result import Reason
from .turns import MAX_NAME_CHARS, Narrative

MAX_QUESTION_CHARS = 240  # of a turn that ends in a question, its last sentences say what is asked
ANSWERS = 10  # so many of the best hits come with the question that they answer; behind them another hit is worth more
MAX_BEHIND_CHARS = 240  # of a long turn behind them the beginning is shown: the rest takes the room of another
BESIDE = 3  # so many of the best hits may be shown with the turns beside them, in the room that the hits leave,
MAX_NEIGHBOR_CHARS = 400  # unless such a turn is a long one
_QUESTION = expression(r"[?？؟][\"'”’»)\]*_\s]*\Z")
_LETTERS = expression(r"[\W_]+")
# What the summary of a message leaves out of it: a greeting, and a word or two before the first comma ("Oh well, …").
_GREETING = expression(
    r"\A\W*(?:hi|hiya|hello|hey|good (?:morning|afternoon|evening)|thanks|thank you|hallo|guten \w+|danke|hola|buen[oa]s \w+|gracias|bonjour|bonsoir"
    r"|salut|merci|ciao|buon\w+|grazie|olá|oi|bom dia|boa \w+|obrigad[oa]|hoi|goede\w+|bedankt|cześć|dzień dobry|dzięki)"
    r"(?: (?:there|again|everyone|all))?[!.,…\s]+",
    re.IGNORECASE,
)
_LEAD = expression(r"\A\W*[\w'’]+(?: [\w'’]+)?, ")
LEAST_TOLD_CHARS = (
    24  # shorter words are also said by accident: they count as told by the summary of their own message alone
)
NO_ROOM = "no room in the budget"
SAID_BY_ANOTHER = "The closest match was said by {}, not by {}."
NOTHING_FOUND = "Nothing more about this was found in earlier messages."
# A question about what was said, or about the user's own life, in the languages that the rules read.
_ASKS_MEMORY = expression(
    r"\b(?:do|did|can|don't|didn't) (?:you|i|we) (?:\w+ )?(?:remember|recall|say|said|tell|told|mention|talk|know (?:my|about my|where i|when i|what i|who my))\b"
    r"|\b(?:remember|remind me)\b|\b(?:have|had) i (?:ever )?(?:told|said|mentioned)\b"
    r"|\b(?:what|who|when|where|which|how (?:old|many|much|long|often))\b[^?]{0,40}\b(?:my|did i|do i|was i|am i|have i)\b"
    r"|\b(?:erinnerst du dich|weißt du noch|habe ich (?:dir )?(?:gesagt|erzählt)|(?:was|wer|wann|wo|welche\w*|wie)\b[^?]{0,40}\b(?:mein\w*|habe ich|bin ich))\b"
    r"|\b(?:te acuerdas|recuerdas|te (?:dije|conté)|(?:cuál|qué|quién|cuándo|dónde|cómo)\b[^?]{0,40}\b(?:mi|mis))\b"
    r"|\b(?:tu te souviens|te rappelles|t'ai (?:dit|parlé)|(?:quel\w*|qui|quand|où|comment)\b[^?]{0,40}\b(?:mon|ma|mes))\b"
    r"|\b(?:ti ricordi|ti ho detto|(?:qual\w*|chi|quando|dove|come)\b[^?]{0,40}\b(?:mio|mia|miei|mie))\b"
    r"|\b(?:você (?:se )?lembra|lembras|te disse|(?:qual|quem|quando|onde|como)\b[^?]{0,40}\b(?:meu|minha|meus|minhas))\b"
    r"|记得|记不记得|我说过|我的|覚えて|言った|私の|僕の|기억|말했|내 ",
    re.IGNORECASE,
)
_ASKS = expression(r"[?？؟]|记得|覚えて|기억|\bremember\b|\bremind me\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Recalled:
    """The recalled items in the order in which they are shown, and why other hits are not among them."""

    items: tuple[Item, ...]
    missed: int = 0
    left_out: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True)
class _Told:
    """A summary that the context shows: its words, and the messages that it covers."""

    words: str
    conversation: str
    start_seq: int
    end_seq: int

    def says(self, hit: Hit, words: str) -> bool:
        """Return whether it holds all *words* of *hit* in a row, or, as the summary of the message itself, all its sentences."""
        if f" {words} " in self.words and len(words) >= LEAST_TOLD_CHARS:
            return True
        if hit.conversation != self.conversation or not self.start_seq <= hit.seq <= self.end_seq:
            return False
        text = _GREETING.sub("", hit.text)
        return all(
            f" {_folded(sentence)} " in self.words or f" {_folded(_LEAD.sub('', sentence))} " in self.words
            for sentence in (span.of(text) for span in split_sentences(text))
        )


@dataclass
class _Choice:
    """The passages chosen so far, and what is left of the room."""

    material: Material
    beside: Mapping[TurnKey, Hit]
    meter: TokenMeter
    room: int
    hidden: Collection[TurnKey]
    told: Sequence[_Told]
    chosen: dict[TurnKey, tuple[Hit, Item]] = field(default_factory=dict)
    said: set[str] = field(default_factory=set)
    days: set[tuple[str, ...]] = field(default_factory=set)

    def fits(self, *items: Item) -> bool:
        """Whether *items* can still be paid for."""
        return sum(map(self._price, items)) <= self.room

    def _price(self, item: Item) -> int:
        """Return what a line costs: the first of a conversation's day has the date, those behind it do not."""
        return self.meter.line(item.undated if item.day in self.days else item.line)

    def add(self, hit: Hit, item: Item) -> None:
        """Choose one item and pay for it."""
        self.room -= self._price(item)
        self.said.add(_folded(hit.text))
        if item.day:
            self.days.add(item.day)
        self.chosen[turn_key(hit)] = (hit, item)

    def has(self, key: TurnKey) -> bool:
        """Whether a turn is shown, here or elsewhere in the context."""
        return key in self.chosen or key in self.hidden

    def question_of(self, hit: Hit) -> Hit | None:
        """Return the question of another speaker that *hit* follows, unless it is shown already."""
        before = self.beside.get(_neighbor(hit, -1)) if hit.kind == "message" else None
        if before is None or before.speaker == hit.speaker or not _QUESTION.search(before.text):
            return None
        return None if self.has(turn_key(before)) else before


def asks_memory(question: str) -> bool:
    """Whether a question asks for what was said before, or about the user's own life."""
    text = question[-600:]
    return bool(_ASKS.search(text) and _ASKS_MEMORY.search(text))


def said_by_another(hits: Sequence[Hit]) -> str:
    """
    Return whose the best turn is, where a question is about one participant and the best turn is another's; else nothing.

    The turns of whom a question is about are preferred by far, so nothing that they said is as close to it.
    """
    best = next(iter(hits), None)
    if best is None or best.kind != "message" or "speaker" in best.parts or best.speaker in ROLES:
        return ""
    asked = next((hit.speaker for hit in hits if hit.kind == "message" and "speaker" in hit.parts), "")
    if not asked or asked in ROLES or asked == best.speaker:
        return ""
    return SAID_BY_ANOTHER.format(*(render_line(name[:MAX_NAME_CHARS]) for name in (best.speaker, asked)))


def choose_passages(story: Narrative, shown: Sequence[Item], room: int, meter: TokenMeter, frame: int) -> Recalled:
    """
    Choose from the hits of *story* what fits into *room*.

    *shown* are the items that the context shows already; *frame* is the cost of the section's own words.
    """
    material, left = story.material, dict[TurnKey, Reason]()
    told = _told_by(shown) if material.hits else []
    verbatim = story.verbatim_seqs
    wanted = _wanted(story, shown, told, verbatim, left)
    beside = material.beside([hit for hit, _ in wanted[:ANSWERS]])
    here = (material.subject, material.conversation)
    hidden = {key for key, one in beside.items() if (one.subject or here[0], key[1]) == here and key[2] in verbatim}
    noted = {key: one.replaced_by for key, one in beside.items() if one.replaced_by}
    material = replace(material, notes={**material.notes, **noted}) if noted else material
    choice = _Choice(material, beside, meter, room - MESSAGE_OVERHEAD_TOKENS - frame, hidden, told)
    misses = 0
    for rank, (hit, item) in enumerate(wanted, 1):
        if choice.has(turn_key(hit)):  # came along with its reply
            continue
        if misses >= MISSES or choice.room < LINE_TOKENS or not choice.fits(item):
            misses += 1
            left[turn_key(hit)] = _left(hit, NO_ROOM)
            continue
        misses = 0
        question = choice.question_of(hit) if rank <= ANSWERS else None
        asked = None if question is None else _question_item(question)
        if question is not None and asked is not None and choice.fits(asked, item):
            choice.add(question, asked)
        choice.add(hit, item.because(_match(rank, hit)))
    _show_whole(choice, [hit for hit, _ in wanted[ANSWERS:]])
    _add_neighbors(choice, [hit for hit, _ in wanted[:BESIDE]])
    passed = [reason for key, reason in left.items() if key not in choice.chosen]  # not what came along with another
    return Recalled(_in_order(choice.chosen.values()), sum(one.why == NO_ROOM for one in passed), tuple(passed))


def _told_by(shown: Sequence[Item]) -> list[_Told]:
    """Return what the summaries among *shown* say, as words without marks."""
    sources = ((item, item.source) for item in shown if item.source.section in ("earlier", "summaries"))
    return [
        _Told(f" {_folded(json.loads(item.line))} ", source.conversation, source.start_seq, source.end_seq)
        for item, source in sources
    ]


def _wanted(
    story: Narrative,
    shown: Sequence[Item],
    told: Sequence[_Told],
    verbatim: Collection[int],
    left: dict[TurnKey, Reason],
) -> list[tuple[Hit, Item]]:
    """Return the hits that may be shown, best first, at most the limit; *left* takes the others with the reason."""
    material, found = story.material, list[tuple[Hit, Item]]()
    facts = {item.source.id for item in shown if item.source.kind == "fact"}
    lines, said, seen = {item.line for item in shown}, set[str](), set[TurnKey]()
    asked = _folded(material.query or "")
    for hit in material.hits:
        key = turn_key(hit)
        if key in seen:
            continue
        seen.add(key)
        reason, item = story.shown_anyway(hit, facts, verbatim), None
        if not reason:
            words = _folded(hit.text)
            reason = _repeated(hit, words, asked, facts, told, material)
            reason = reason or ("the same words are shown already" if words in said else "")
        if not reason:
            most = MAX_RECALLED_CHARS if len(found) < ANSWERS else MAX_BEHIND_CHARS
            item = hit_item(hit, material.notes.get(key) if hit.kind == "message" else None, most)
            reason = "the same words are shown already" if item.line in lines else ""
        if not reason and len(found) == material.recall_limit:
            reason = f"no more than {material.recall_limit:,} are recalled"
        if reason or item is None:
            left[key] = _left(hit, reason)
            continue
        lines.add(item.line)
        said.add(words)
        found.append((hit, item))
    return found


def _repeated(hit: Hit, words: str, asked: str, facts: set[str], told: Sequence[_Told], material: Material) -> str:
    """Return why a hit would repeat what the context says already; empty when it does not."""
    if asked and words == asked:
        return "it asks the same question"
    if hit.kind == "message" and not facts.isdisjoint(material.quoted.get(turn_key(hit), ())):
        return "a fact that is shown says all of it"
    return "a summary that is shown says all of it" if _is_told(hit, words, told, material) else ""


def _is_told(hit: Hit, words: str, told: Sequence[_Told], material: Material) -> bool:
    """Return whether a shown summary says all *words* of a turn that nothing has replaced since."""
    if hit.kind != "message" or not words or turn_key(hit) in material.notes:
        return False
    return any(one.says(hit, words) for one in told)


def _question_item(before: Hit) -> Item | None:
    """Render the question that a reply answers: of a long turn its end."""
    spans = split_sentences(before.text[-MAX_QUESTION_CHARS * 4 :])
    tail = before.text[-MAX_QUESTION_CHARS * 4 :]
    text, whole = "", len(before.text) <= MAX_QUESTION_CHARS
    for span in reversed(spans):
        longer = tail[span.start :]
        if text and len(longer) > MAX_QUESTION_CHARS:
            break
        text = longer
    if len(text) > 2 * MAX_QUESTION_CHARS:
        return None
    shown = before if whole else replace(before, text=f"[…] {text}")
    return hit_item(shown, None).because("the question that the next turn answers")


def _show_whole(choice: _Choice, behind: Sequence[Hit]) -> None:
    """Spend what is left on the rest of the turns of which the beginning is shown, best first."""
    for hit in behind:
        if len(hit.text) <= MAX_BEHIND_CHARS or turn_key(hit) not in choice.chosen:
            continue
        shown = choice.chosen[turn_key(hit)][1]
        note = choice.material.notes.get(turn_key(hit)) if hit.kind == "message" else None
        whole = hit_item(hit, note).because(shown.why)
        longer = ((whole.line, shown.line), (whole.undated or whole.line, shown.undated or shown.line))
        price = max(choice.meter.line(now) - choice.meter.line(before) for now, before in longer)
        if price <= choice.room:
            choice.room -= price
            choice.chosen[turn_key(hit)] = (hit, whole)


def _add_neighbors(choice: _Choice, best: Sequence[Hit]) -> None:
    """Spend what is left on the turns before and after the *best* hits."""
    for step in (1, -1):
        for hit in best:
            beside = choice.beside.get(_neighbor(hit, step)) if hit.kind == "message" else None
            if beside is None or len(beside.text) > MAX_NEIGHBOR_CHARS:
                continue
            if choice.has(turn_key(beside)) or turn_key(hit) not in choice.chosen:
                continue
            item = hit_item(beside, choice.material.notes.get(turn_key(beside)))
            words = _folded(beside.text)
            if (
                choice.fits(item)
                and words not in choice.said
                and not _is_told(beside, words, choice.told, choice.material)
            ):
                choice.add(beside, item.because("beside one of the best matches"))


def _in_order(chosen: Collection[tuple[Hit, Item]]) -> tuple[Item, ...]:
    """Facts first, then what was said in the order of time, each conversation in one piece."""
    start = datetime.min.replace(tzinfo=UTC)
    first: dict[tuple[str, str], datetime] = {}
    for hit, _ in chosen:
        talk = (hit.subject, hit.conversation)
        first[talk] = min(first.get(talk, hit.at or start), hit.at or start)

    def place(one: tuple[int, tuple[Hit, Item]]) -> tuple[object, ...]:
        rank, (hit, item) = one
        if hit.kind == "fact":
            return (0, start, "", "", rank)
        return (1, first[hit.subject, hit.conversation], hit.subject, hit.conversation, item.day, hit.seq)

    items, last = list[Item](), tuple[str, ...]()
    for _, (_, item) in sorted(enumerate(chosen), key=place):
        items.append(item._replace(line=item.undated) if item.day and item.day == last else item)
        last = item.day
    return tuple(items)


def _neighbor(hit: Hit, step: int) -> TurnKey:
    return (hit.subject, hit.conversation, hit.seq + step)


def _match(rank: int, hit: Hit) -> str:
    return f"match {rank}, relevance {hit.relevance:.2f}"


def _left(hit: Hit, reason: str) -> Reason:
    seq = 0 if hit.kind == "fact" else hit.seq
    return Reason("recalled", hit.kind, False, reason, hit.text[:200], hit.id, hit.conversation, seq)


@remembered(4096)  # the next context looks at most of the same turns
def _folded(text: str) -> str:
    return _LETTERS.sub(" ", text).strip().casefold()
