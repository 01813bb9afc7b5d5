"""
Parsing of a model's bullets about a chunk into episodes with evidence.

A bullet is in the model's words, so it cannot be located; it is compared.  Enough of its words, and all its
names and numbers, must occur in the users' messages, at best in those that it cites in brackets.  The sentence
that shares most words with it becomes its quote.  A bullet without support is dropped with the reason; "No
facts to record" is one in any language.  The lines of a story are compared with their summaries in the same way.  Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import field, replace
from datetime import datetime, timedelta
from itertools import pairwise

from ...clock import to_ms
from ...llm.protocol import Answer, BadAnswer
from ...scope import SELF
from ...text import dataclass, expression
from ...text.dates import find_times, has_guessed_year
from ...text.languages import AVERSE, NEGATES, NOT_NEGATED
from ...text.sentences import split_sentences
from ...text.terms import fold_quotes, language_of, likely_languages, terms
from ...types import Candidate, Message, StoryLine, StorySource, Summary
from ..authorship import BLANK, masked
from ..grounding import NO_QUOTE, NOT_THERE, in_other_language, locate_quote, verify_translation
from ..salience import importance_of, load_salience_words
from ..second_look import (
    OF_OTHERS,
    OTHER,
    OUR_WORDS,
    SUPPOSED,
    find_flaws,
    is_affirmation,
    is_hedged,
    neutral_terms,
    patterns_for,
)
from ..slots import numbers_said
from ..speakers import question_of
from . import answer_text, is_empty_answer, is_refusal, numbers_in, says_nothing, strip_fences, without_citations

CATEGORY = "episode"
LEAST_CHARS = 10  # of a whole answer; what is shorter says nothing
MAX_BULLETS, MAX_BULLET_CHARS = 30, 400
LEAST_SHARE, LEAST_SHARE_OF_PAIRS = 0.4, 0.4  # of a bullet's terms; terms of wide scripts are pairs of characters
CITED = 0.6  # of that share, where the bullet names its message, whose no, question, day and names are compared
ALSO_SHARE = 0.34  # of a bullet's terms that a further message must hold to be evidence as well
CONFIDENCE = 0.9

RESTS_ON_NOTHING = "not-supported: too few of its words stand in what the user said"
NAME = "name-not-said: it names somebody or something that is not in the user's own words"
NUMBER = "number-not-said: it holds a number that the user did not say"

THE_USER = frozenset(
    """user nutzer nutzerin benutzer usuario usuaria utilisateur utilisatrice utente usuário usuária gebruiker användare
    bruger bruker käyttäjä użytkownik пользователь 사용자 ユーザー 用户 用戶""".split()
)
LEAST_SHARE_OF_NOUNS = 0.5  # in German every noun has a capital, so it marks no names

_BULLET = expression(r"^\s*(?:[-*•‣▪–—·]|\(?\d{1,2}[.)])\s*")
_CITED = expression(r"\s*[\[(](?:(?:messages?|msgs?|seq|#)\s*)*([#\d][\d\s,;#–-]*)[\])]\s*[.。]?\s*$", re.IGNORECASE)
_QUOTED = expression(
    r"\s*[\[(]\s*(?:(?:messages?|msgs?|seq|#)\s*)*#?(\d{1,9})\s*(?:[\])]\s*[:,]?|[:,])\s*[\"“„«‘「]?(.+?)[\"”»’」]?\s*[\])]?\s*$"
)
_NAME = expression(r"(?<![.!?:\-–—*•\"'“„(]\s)(?<!^)\b([A-ZÀ-ÞА-ЯΑ-Ω][\w'’-]+)")
# How a bullet tells of another's words, and that the user was sent them.
_TOLD = expression(
    r"""\b(?:wrote|writes|says|said|told|sent|texted|messages?|letter|e-?mail|mail|note|escribió|dice|dijo|mandó|envió|mensaje|correo|carta|anuncio|reenvi(?:ó|aron)
    |schrieb|sagt|sagte|schickte|nachricht|brief|écrit|dit|envoyé|lettre)\b|写|寫|说|說|信|消息|썼|보냈|문자|편지""",
    re.IGNORECASE | re.VERBOSE,
)
_RECEIVED = expression(
    r"\b(?:received|got|shared|showed|forwarded|recibió|compartió|reenvi(?:ó|aron)|mandaron|enviaron|pasaron|bekam|erhielt|weitergeleitet|a reçu)\b|收到|받았",
    re.IGNORECASE,
)
# A calendar has these names, so whoever writes a date of them invents nobody.
_FEASTS = frozenset(
    "new year years eve day christmas xmas boxing easter thanksgiving halloween valentine valentines hanukkah passover ramadan eid diwali "
    "nochevieja navidad silvester weihnachten noël pâques ostern natal natale".split()
)
# The days before a line of a story.
_DAYS = expression(
    r"[\[(]?((?:19|20)\d\d-\d\d-\d\d)(?:\s*(?:to|until|bis|[-–—~])\s*((?:19|20)\d\d-\d\d-\d\d))?[\])]?\s*[:：,–—-]?\s*"
)
LEAST_SHARE_OF_STORY = 0.6  # of the words of a line of a story
_CODE = expression(r"```.*?```", re.DOTALL)
_STAMP = expression(r"\b(?:19|20)\d\d-\d\d-\d\d\b")


@dataclass(frozen=True, slots=True)
class ParsedEpisodes:
    """Episodes in order, one candidate for each supporting message, and the dropped ones with reasons."""

    candidates: list[Candidate] = field(default_factory=list)
    dropped: list[tuple[Candidate, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class SaidBefore:
    """
    Knowledge of a reader from earlier: the user's names, words that the user said (known facts), the messages before.

    ``fact_language`` is the one in which episodes are worded, where it is not the chat's.
    """

    names: tuple[str, ...] = ()
    words: str = ""
    messages: tuple[Message, ...] = ()
    fact_language: str | None = None


def parse_episodes(
    answer: Answer, messages: Sequence[Message], *, source: str, subject: str = SELF, earlier: SaidBefore | None = None
) -> ParsedEpisodes:
    """
    Parse the episodes out of an answer about *messages*.

    Raises:
        BadAnswer: a refusal; "No facts to record" and an empty text are none.
    """
    if says_nothing(answer):
        return ParsedEpisodes()
    whole = answer_text(answer)
    return parse_bullets(whole.text, messages, source=source, subject=subject, cut=whole.cut, earlier=earlier)


def parse_bullets(
    text: str,
    messages: Sequence[Message],
    *,
    source: str,
    subject: str = SELF,
    cut: bool = False,
    earlier: SaidBefore | None = None,
) -> ParsedEpisodes:
    """Parse episodes from text, as `parse_episodes` does from an answer."""
    inner = strip_fences(text).strip()
    if len(inner) < LEAST_CHARS or is_empty_answer(inner):
        return ParsedEpisodes()
    if is_refusal(inner):
        raise BadAnswer("the model refused to answer")
    found = ParsedEpisodes()
    lines = _bullets(inner)
    if cut and len(lines) > 1:
        lines = lines[:-1]
    said_by_users = _UserWords(messages, earlier or SaidBefore())
    spoken = [message.content for message in said_by_users.messages.values()]
    language = earlier.fact_language if earlier else None
    for line in lines[:MAX_BULLETS]:
        if language and in_other_language("", spoken, language):
            _weigh_translated(line, said_by_users, found, source, subject, language)
            continue
        cited = _CITED.search(line)
        seqs = _numbers(cited[1] if cited else without_citations(line)[1])
        bullet = " ".join((line[: cited.start()] if cited else line).split())[:MAX_BULLET_CHARS]
        if bullet and not is_empty_answer(bullet):
            before = len(found.candidates)
            _weigh(bullet, seqs, said_by_users, found, source, subject)  # the words that it quotes may support it
            plain = (without_citations(one.text)[0] or one.text for one in found.candidates[before:])
            found.candidates[before:] = [
                replace(one, text=text) for one, text in zip(found.candidates[before:], plain, strict=True)
            ]
    names = frozenset(word.casefold() for name in said_by_users.names for word in name.split())
    return _without_misattributed(found, {message.seq: message for message in messages}, names)


def parse_story(answer: Answer, summaries: Sequence[Summary], names: Sequence[str] = ()) -> list[StoryLine]:
    """
    Parse a story out of an answer about *summaries*, which it cites by their numbers from 1.

    A line without a valid number goes, and so does one with words, names or numbers that its summaries do not hold;
    *names* are those of the user and the subject.

    Raises:
        BadAnswer: it refused, or no line is left.
    """
    whole = answer_text(answer)
    inner = strip_fences(whole.text).strip()
    if is_refusal(inner):
        raise BadAnswer("the model refused to tell the story", finish="refusal")
    lines = [line for line in map(str.strip, inner.splitlines()) if line]
    found: dict[str, StoryLine] = {}
    for line in lines[:-1] if whole.cut and len(lines) > 1 else lines:
        cited = _CITED.search(line)
        numbers = {n for n in _numbers(cited[1]) if 1 <= n <= len(summaries)} if cited else set()
        told = [summaries[number - 1] for number in sorted(numbers)]
        text = " ".join(_BULLET.sub("", line[: cited.start()] if cited else "").split())
        made = _story_line(text, told) if text and told else None
        if made is not None and made.text and _rests_on(made.text, told, names):
            found.setdefault(made.text, made)
    if not found:
        raise BadAnswer("no line of the story rests on the summaries that it names")
    return list(found.values())


def _story_line(text: str, told: Sequence[Summary]) -> StoryLine:
    """Return a line with the days of its summaries, or with the days before it that lie within those."""
    times = [at for one in told for at in (one.first_at, one.last_at) if at]
    first, last = min(times, default=None), max(times, default=None)
    stamp = _DAYS.match(text)
    if stamp and first and last:
        days = [day for day in stamp.groups() if day]
        if first.date().isoformat() <= days[0] <= days[-1] <= last.date().isoformat():
            within = [at for at in times if days[0] <= at.date().isoformat() <= days[-1]]
            first, last = min(within, default=first), max(within, default=last)
    sources = tuple(StorySource(one.id, one.conversation, one.start_seq, one.end_seq) for one in told)
    return StoryLine(text[stamp.end() :] if stamp else text, first, last, sources)


def _rests_on(text: str, told: Sequence[Summary], names: Sequence[str]) -> bool:
    """Whether the words, names and numbers of a line are those of its summaries."""
    said = [
        Message(
            "user", "\n".join((one.days, one.text, *one.themes, *one.concerns, *one.actions)), seq=n, at=one.last_at
        )
        for n, one in enumerate(told, start=1)
    ]
    words = _UserWords(said, SaidBefore(tuple(names)), whole=True)
    mine = words.terms_of(_STAMP.sub(" ", text)) - words.speakers
    if _unsupported(text, mine, words, ""):
        return False
    numbers = words.numbers | numbers_in(message.content for message in said)
    plain = (mine - neutral_terms()) or mine
    wide = sum(1 for term in plain if ord(term[0]) >= 0x0E00) * 2 > len(plain)
    enough = wide or len(plain & words.all_terms) >= LEAST_SHARE_OF_STORY * len(plain)
    return enough and numbers_in([text]) <= numbers and not _turns(text, mine - words.all_terms, told)


_MEASURED = expression(r"(\d+(?:[.,]\d+)?) ?(kg|kilos?|lbs?|g|mg|mcg|µg|ml|iu|units?|mmol|%|°)(?!\w)", re.IGNORECASE)
_CLAUSES = expression(r"[;.!?。！？\n]|,(?!\d)|\b(?:and|but|und|aber|y|pero|et|mais)\b", re.IGNORECASE)


def _turns(text: str, new: Iterable[str], told: Sequence[Summary]) -> bool:
    """Whether a line adds an alarm, a no, or an amount in a unit, none of which its summaries have."""
    source = "\n".join(part for one in told for part in (one.text, *one.themes, *one.concerns, *one.actions))
    code = (likely_languages(text) or ["en"])[0]
    lexicon = load_salience_words(code)
    fresh = tuple(new)
    alarming = [word for word in re.findall(r"[\w'-]+", text) if "alarm" in lexicon.signs(word.casefold())]
    if any(terms(word, code) and set(terms(word, code)) <= set(fresh) for word in alarming):
        return True
    amounts = {(number, unit.casefold()) for number, unit in _MEASURED.findall(source)}
    if any((number, unit.casefold()) not in amounts for number, unit in _MEASURED.findall(text)):
        return True
    return _says_otherwise(text, source, code)


def _says_otherwise(text: str, source: str, code: str) -> bool:
    """Whether a clause says no where that of the source with its words does not, or the other way round."""
    if code not in NEGATES:
        return False
    clauses = [(one, set(terms(one, code))) for one in _CLAUSES.split(fold_quotes(source)) if one.strip()]
    for clause in _CLAUSES.split(fold_quotes(text)):
        mine = set(terms(clause, code))
        alike = [one for one, words in clauses if len(mine & words) * 2 >= len(mine)] if mine else []
        if _denies(clause, code) and alike and not any(_denies(one, code) for one in alike):
            return True
        if alike and not _denies(clause, code) and not AVERSE.search(clause):
            if all(_denies(one, code, near=mine) and not AVERSE.search(one) for one in alike):
                return True
    return False


def _denies(clause: str, code: str, near: Set[str] = frozenset()) -> bool:
    """Whether a clause says no; with *near* within three words of one of those, where words have spaces between them."""
    plain = NOT_NEGATED.sub(" ", clause)
    found = NEGATES[code].search(plain)
    if found is None or not near or code in ("zh", "ja", "ko"):
        return found is not None
    after = re.findall(r"[\w'-]+", plain[found.end() :])[:_NEAR_WORDS]
    return any(near & set(terms(word, code)) for word in after)


_NEAR_WORDS = 4
# What makes no event of what it speaks of, unless the bullet says it, too.
_UNDONE = expression(
    r"\b(?:almost|nearly|wanted to|was going to|were going to|will|going to|might|planned to|meant to|if|fast|beinahe|casi|presque|quasi)\b",
    re.IGNORECASE,
)
_TO_COME = expression(
    r"\b(?:will|'ll|going to|wants?|wanted|plans?|planned|promis\w+|agreed|intend\w*|hop(?:es?|ed|ing)|invited?|almost|nearly|might|may|would|if|next|upcoming"
    r"|is to|are to|meeting|appointment|wird|werden|will|fast|beinahe|casi|va a|presque|quasi)\b",
    re.IGNORECASE,
)
_ASKS = expression(
    r"^\W*(?:(?:and|so|but|hey),? )*(?:did|was|were|have|has|had|is|are|do(?! you (?:remember|recall|know))|does|could|can|should|would|will)\b",
    re.IGNORECASE,
)


_RELATIVE = expression(
    r"^\W*(?:(?:and|but|so|also),? )*(?:my|our) (?P<who>\w+(?: \w+)?) (?!and (?:i|me)\b)", re.IGNORECASE
)
_OWN_ACT = expression(r"\b(?:i|we|us|me|i'm|i've|we're|we've)\b", re.IGNORECASE)
_ACT = expression(r"^(?:the )?(?P<who>user|[A-ZÀ-Þ][\w-]+) (?P<verb>[a-z]{3,})\b(?P<rest>.*)")


def _by_another(text: str, told: str) -> bool:
    """Whether a bullet gives the user what a relative did, or turns around who did it to whom; written for English."""
    act = _ACT.match(text[:1].lower() + text[1:] if text.startswith("The ") else text)
    if act is None:
        return False
    relative, rules = _RELATIVE.match(told), patterns_for(told, None)
    relations = rules.lexicons.get("relation") if rules is not None else None
    kin = (
        [word for word in relative["who"].casefold().split() if relations and relations.lookup(word)]
        if relative
        else []
    )
    if kin and not _OWN_ACT.search(told):
        return act["who"].casefold() == "user" and kin[0] not in text.casefold()
    stem, name = re.escape(act["verb"][:5]), re.escape(act["who"])
    if act["who"].casefold() == "user":
        other = re.search(r"\b[A-ZÀ-Þ][\w-]+", act["rest"])
        return other is not None and bool(re.search(rf"\b{other[0]} {stem}\w* (?:to )?(?:me|us)\b", told))
    mine = re.search(rf"\b(?:I|we|We) (?:\w+ )?{stem}\w*\b.*\b{name}\b", told)
    return mine is not None and bool(re.search(r"\b(?:the )?user\b|\bthem\b", act["rest"]))


OF_USER = "about-someone-else: the words are about the user, and the claim is about the character"
# A bullet about the character; and words that its user said of himself alone, the last two without a pronoun.
_CHARACTER = expression(
    r"^\W*(?:(?:the )?(?:character|assistant|chatbot|ai|bot)\b|(?:캐릭터|어시스턴트|챗봇)(?:는|은|가|이) |(?:キャラ(?:クター)?|アシスタント)[はが]"
    r"|(?:der charakter|die figur|der assistent|die assistentin)\b|(?:al|el) (?:personaje|asistente)\b|(?:le personnage|l['’]assistante?)\b)",
    re.IGNORECASE,
)
_OF_SELF = expression(
    r"\b(?:i|i['’](?:m|ve|d|ll)|my|ich|mein\w*|mich|mir|yo|me|mi|mis|soy|tengo|je|j['’]|mon|ma|mes)\b|저는|나는|난 |제가|내가|저의|私[はがの]|[僕俺][はがの]"
    r"|^[^는은]*[을를] (?:\S+ )?(?:좋아|싫어|무서워)(?:해|해요|합니다)[.!]*$|^[^はも]*が(?:大)?(?:好き|嫌い|怖い)(?:です|だ)?[。!！]*$",
    re.IGNORECASE,
)
_OF_BOTH = expression(
    r"\b(?:you\w*|we|us|our|together|du|dich|dir|dein\w*|wir|uns\w*|zusammen|t[uú]|te|ti|tus?|usted\w*|nosotr[oa]s|nos|nuestr\w+|contigo|juntos|vous|votre|nous|notre|ensemble)\b"
    r"|\b(?:assistant|character|chatbot|bot|assistent\w*|figur|charakter|personaje|asistente|personnage)\b|캐릭터|キャラ"
    r"|너|넌|네가|니가|당신|자기|우리|함께|같이|君|あなた|きみ|お前|私たち|僕たち|一緒",
    re.IGNORECASE,
)


def _by_user(text: str, told: str) -> bool:
    """Whether a bullet gives the character what the user said of himself: "the character loves jazz" of "I love jazz"."""
    return bool(_CHARACTER.match(text) and _OF_SELF.search(told) and not _OF_BOTH.search(told))


def _days(words: str, at: datetime, code: str) -> set[int]:
    """Return the days that *words* name, whichever way from the day of the message they are meant."""
    found = [span for ahead in (False, True) for span in find_times(words, at, code, ahead=ahead)]
    return {span.from_ms for span in found if span.grain == "day" and span.relation == "at"}


def _misreads(candidate: Candidate, message: Message, told: str) -> str:
    """
    Return why a bullet is not what its sentence says: that one asks, denies, only nearly was, or has another number or day.

    Whether something is denied is asked of all messages that the bullet rests on, which *told* holds.
    """
    quote, text = fold_quotes(candidate.quote), candidate.text
    code = (likely_languages(message.content[:400]) or ["en"])[0]
    if quote.rstrip(" \"')").endswith("?") and _ASKS.search(quote):
        return SUPPOSED.format(modality="question")
    if _says_otherwise(text, told, code):
        return SUPPOSED.format(modality="negated")
    own = _CLAUSES.split(quote)
    mine = set(terms(text, code))
    clause = max(own, key=lambda one: len(mine & set(terms(one, code))), default="")
    if _by_another(text, clause):
        return OF_OTHERS
    if _by_user(text, clause):
        return OF_USER
    if _UNDONE.search(clause) and not _TO_COME.search(text):
        return SUPPOSED.format(modality="hypothetical")
    if message.at is not None and message.at.tzinfo is not None and not _STAMP.search(text):
        days, said = (_days(words, message.at, code) for words in (text, message.content))
        if days and said and not days & said:
            return NUMBER
    return ""


def _claims(bullet: str, names: frozenset[str]) -> bool:
    """Whether a bullet states plainly that the user is or does something, without "might" or "heard"."""
    first = [word.casefold().strip(",:") for word in bullet.split()[:2]]
    return bool(
        (THE_USER | names).intersection(first) or first[:1] in (["i"], ["i'm"], ["we"], ["my"])
    ) and not is_hedged(bullet)


def _without_misattributed(
    found: ParsedEpisodes, messages: Mapping[int, Message], names: frozenset[str]
) -> ParsedEpisodes:
    """Drop bullets that state as the user's what the user said of others, supposed or heard."""
    kept, dropped = [], list(found.dropped)
    for candidate in found.candidates:
        cited = {one.seq: None for one in found.candidates if one.text == candidate.text}
        told = "\n".join(messages[seq].content for seq in cited)
        if misread := _misreads(candidate, messages[candidate.seq], told):
            dropped.append((candidate, misread))
            continue
        against = set(find_flaws(candidate, messages[candidate.seq]))
        if against and against <= {"hypothetical", "reported", OTHER} and _claims(candidate.text, names):
            reason = OF_OTHERS if OTHER in against else SUPPOSED.format(modality=min(against))
            dropped.append((candidate, reason))
        else:
            kept.append(candidate)
    return ParsedEpisodes(kept, dropped)


_BOLD = expression(r"\*\*([^*\n]+)\*\*")


def _bullets(text: str) -> list[str]:
    """Return the bullets of an answer without their marks; every line when none has a mark."""
    if text.startswith(("[", "{")):
        items = list(_from_json(text))
        if items:
            return items
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    marked = [line for line in lines if _BULLET.match(line)]
    plain = (_BOLD.sub(r"\1", _BULLET.sub("", line, count=1)) for line in marked or lines)
    return [line.strip() for line in plain]


def _from_json(text: str) -> Iterator[str]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return
    if isinstance(value, dict):
        value = next((item for item in value.values() if isinstance(item, list)), [])
    for item in value if isinstance(value, list) else []:
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            words = [str(cell) for cell in item.values() if isinstance(cell, str)]
            number = next((f" [{cell}]" for cell in item.values() if type(cell) is int), "")
            if words:
                yield max(words, key=len) + number


def _numbers(cell: str) -> list[int]:
    found: list[int] = []
    for part in re.findall(r"\d{1,9}\s*[–-]\s*#?\d{1,9}|\d{1,9}", cell):
        ends = [int(number) for number in re.findall(r"\d+", part)]
        found += range(ends[0], min(ends[-1], ends[0] + 50) + 1)
    return found


class _UserWords:
    """The users' own words in a chunk and before it: terms, names and numbers; and the questions that they answer."""

    def __init__(self, messages: Sequence[Message], earlier: SaidBefore, *, whole: bool = False) -> None:
        users = [m for m in messages if m.role == "user"]
        self.messages = {message.seq: message for message in users}
        self.own = {message.seq: message.content if whole else masked(message.content) for message in users}
        plain = {seq: text.replace(BLANK, " ") for seq, text in self.own.items()}
        # one language for both sides: a short bullet alone is easily taken for another one
        self.language = language_of("\n".join(plain.values()))
        self.terms: Mapping[int, frozenset[str]] = {seq: self.terms_of(text) for seq, text in plain.items()}
        self.names = frozenset({m.name for m in users if m.name} | set(earlier.names))
        speakers = self.names | THE_USER
        self.speakers = frozenset().union(*map(self.terms_of, speakers)) | OUR_WORDS
        before = [m for m in earlier.messages if m.role == "user"]
        known = "\n".join([earlier.words, *(masked(m.content).replace(BLANK, " ") for m in before)])
        self.known = "\n".join([known, *self.names])
        self.all_terms = frozenset().union(*self.terms.values(), self.terms_of(known))
        code = (
            block for m in users for block in _CODE.findall(m.content)
        )  # what their own code names is named by them
        said = [*plain.values(), known, *speakers, *code]
        self.words = frozenset(word for text in said for word in re.findall(r"\w+", text.casefold()))
        self.numbers = numbers_in([earlier.words]).union(*(numbers_said(m) for m in (*before, *users)))
        recent = (m.at - timedelta(days=ago) for m in users if m.at for ago in (1, 2))  # "yesterday", in any language
        self.numbers |= {part for at in recent for part in (at.year, at.month, at.day)}
        self.years = {str(m.at.year + more) for m in users if m.at for more in (-1, 0, 1)}
        self._questions = {
            later.seq: question_of(one)
            for one, later in pairwise([*earlier.messages[-1:], *messages])
            if later.role == "user" and question_of(one)
        }

    def lent(self, mine: frozenset[str], seqs: Iterable[int]) -> str:
        """Return the questions that the cited messages answer, by yes or by words of the bullet."""
        asked = ((seq, self._questions[seq]) for seq in seqs if seq in self._questions)
        return " ".join(
            question
            for seq, question in asked
            if mine & self.terms[seq] or is_affirmation(self.messages[seq].content, question)
        )

    def terms_of(self, text: str) -> frozenset[str]:
        return frozenset(terms(text, self.language))


def _weigh(
    bullet: str, seqs: Sequence[int], user_words: _UserWords, found: ParsedEpisodes, source: str, subject: str
) -> None:
    mine = user_words.terms_of(_STAMP.sub(" ", bullet)) - user_words.speakers
    cited = [seq for seq in seqs if seq in user_words.messages] or list(user_words.messages)
    lent = user_words.lent(mine, seqs)
    if _tells(bullet, user_words.names):
        lent = " ".join([lent, *(user_words.messages[seq].content for seq in seqs if seq in user_words.messages)])
    reason = _unsupported(bullet, mine, user_words, lent, cited=any(seq in user_words.messages for seq in seqs))
    shares = {seq: len(mine & user_words.terms[seq]) / len(mine) if mine else 0.0 for seq in cited}
    if not reason and not any(shares.values()):
        shares = {seq: len(mine & user_words.terms[seq]) / len(mine) for seq in user_words.messages}
    if not reason and not any(shares.values()):
        reason = RESTS_ON_NOTHING
    best = max(shares, key=lambda seq: (shares[seq], -seq), default=None)
    if reason or best is None:
        seq = best if best is not None else 0
        found.dropped.append((_candidate(bullet, seq, "", 0, None, source, subject), reason or RESTS_ON_NOTHING))
        return
    rests_on = [best, *(seq for seq in shares if seq != best and shares[seq] >= ALSO_SHARE and seqs)]
    for seq in rests_on:
        start, quote = _sentence(user_words, seq, mine)
        since = day_told(bullet, quote, user_words.messages[seq])
        found.candidates.append(_candidate(bullet, seq, quote, start, since, source, subject))


def _weigh_translated(
    line: str, user_words: _UserWords, found: ParsedEpisodes, source: str, subject: str, language: str
) -> None:
    """Add a bullet in another language than the chat: it rests on the words that it quotes, or on the short message it cites."""
    quoted = _QUOTED.search(line)
    cited = None if quoted else _CITED.search(line)
    ends = quoted or cited
    bullet = " ".join((line[: ends.start()] if ends else line).split())[:MAX_BULLET_CHARS]
    if not bullet or is_empty_answer(bullet):
        return
    seqs = [seq for seq in _numbers(ends[1]) if seq in user_words.messages] if ends else []
    place: tuple[int, int, str] | None = None
    for seq in seqs:
        content = user_words.messages[seq].content
        words = quoted[2] if quoted else content
        span = locate_quote(words, content) if quoted or len(content) <= MAX_BULLET_CHARS else None
        if span:
            place = seq, span[0], content[span[0] : span[1]]
            break
    if place is None:
        reason = NOT_THERE if quoted else NO_QUOTE
        found.dropped.append((_candidate(bullet, seqs[0] if seqs else 0, "", 0, None, source, subject), reason))
        return
    seq, start, quote = place
    since = day_told(bullet, quote, user_words.messages[seq])
    candidate = _candidate(bullet, seq, quote, start, since, source, subject)
    heard = [user_words.known, *(message.content for message in user_words.messages.values())]
    reason = verify_translation(candidate, user_words.messages[seq], heard, language)
    if reason:
        found.dropped.append((candidate, reason))
    else:
        found.candidates.append(candidate)


def _tells(bullet: str, names: Iterable[str]) -> bool:
    """Whether a bullet says that another wrote or said something, so that words which are not the user's own are in place."""
    own = frozenset(word.casefold() for name in names for word in name.split())
    return bool(_TOLD.search(bullet)) and (not _claims(bullet, own) or bool(_RECEIVED.search(bullet)))


def _unsupported(bullet: str, mine: frozenset[str], user_words: _UserWords, lent: str, *, cited: bool = False) -> str:
    if not mine:
        return RESTS_ON_NOTHING
    said = user_words.all_terms | user_words.terms_of(lent)
    mine = (mine - neutral_terms()) or mine
    wide = sum(1 for term in mine if ord(term[0]) >= 0x0E00) * 2 > len(mine)
    least = LEAST_SHARE_OF_PAIRS if wide else LEAST_SHARE_OF_NOUNS if user_words.language == "de" else LEAST_SHARE
    if len(mine & said) < (least * CITED if cited else least) * len(mine):
        return RESTS_ON_NOTHING
    undated = _STAMP.sub(lambda stamp: " " if stamp.group()[:4] in user_words.years else stamp.group(), bullet)
    small = {int(n) for n in re.findall(r"\d+", undated) if len(n) < 19}
    if any(number not in user_words.numbers and number > 2 for number in small):
        return NUMBER
    if user_words.language == "de":
        return ""
    words = user_words.words.union(re.findall(r"\w+", lent.casefold()))
    for name in _NAME.findall(bullet):
        plain = name.casefold().removesuffix("'s").removesuffix("’s")
        parts = user_words.terms_of(plain)
        known = (
            words.intersection(re.findall(r"\w+", plain))
            or parts & said
            or parts <= neutral_terms()
            or plain in _FEASTS
        )
        if not known:
            return NAME
    return ""


def _sentence(user_words: _UserWords, seq: int, mine: frozenset[str]) -> tuple[int, str]:
    """Return the start and words of the sentence that shares most terms with the bullet."""
    content, own = user_words.messages[seq].content, user_words.own[seq]
    spans = [span for span in split_sentences(content) if BLANK not in span.of(own)] or split_sentences(content)
    best = max(spans, key=lambda span: (len(mine & user_words.terms_of(span.of(content))), -span.start))
    return best.start, best.of(content)


def day_told(bullet: str, quote: str, message: Message) -> int | None:
    """Return when an episode was: on the day that it names, else at the time that the quoted sentence names."""
    if message.at is None or message.at.tzinfo is None:
        return None
    for day in _STAMP.findall(bullet):
        try:
            at_ms = to_ms(datetime.fromisoformat(day).replace(tzinfo=message.at.tzinfo))
        except ValueError:
            continue
        return at_ms if at_ms <= to_ms(message.at) else None
    for code in likely_languages(message.content[:400])[:2]:
        for span in find_times(quote, message.at, code):
            past = span.relation == "at" and span.from_ms <= to_ms(message.at)
            if past and not has_guessed_year(span, message.at, code):
                return span.from_ms
    return None


def _candidate(
    bullet: str, seq: int, quote: str, start: int, since: int | None, source: str, subject: str
) -> Candidate:
    return Candidate(
        kind="episode",
        subject=subject,
        category=CATEGORY,
        key="",
        value="",
        text=bullet,
        confidence=CONFIDENCE,
        seq=seq,
        quote=quote,
        start=start,
        lifetime="event",
        valid_from_ms=since,
        source=source,
        importance=importance_of(bullet, (likely_languages(bullet) or ("en",))[0]),
    )
