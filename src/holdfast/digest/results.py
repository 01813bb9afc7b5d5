"""
Results of tests: values with the day of their sample, several in a sentence or in a pasted report, in any language.

A result belongs to whoever stands in front of it ("Luna's T4", "my ALT"), else to the subject of the conversation;
the user's own need "my", or "my results" over a report that nobody else is named before.  Who had an operation stands at
the head of the clause.  In doubt nothing is read: of another's results none may become the user's.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime
from functools import lru_cache
from importlib.resources import files
from typing import Any

from ..clock import from_ms, to_ms
from ..scope import SELF
from ..text import dataclass, expression
from ..text.dates import TimeSpan, date_words, with_date
from ..text.sentences import split_pieces
from ..types import Candidate, Fact, Message
from .authorship import masked
from .mentions import ME, UNIQUE, MentionedPerson, Mentions, is_name

MAX_PIECE = 600
CATEGORY = "health"

_UNIT = r"%|[mµμunp]?g/[dm]?l|[mµμunp]?mol/l|[mkµμ]?i?u/m?l|mm ?hg|kg|kilos?|lbs?|pounds|g\b|°\s?[cf]"
_VALUE = expression(
    rf"(?<![A-Za-zÀ-ÿ0-9_.,/])\d{{1,4}}(?:[.,]\d{{1,3}})?(?:(?:/| (?:over|zu|sobre) )\d{{2,3}})?(?:\s?(?P<unit>{_UNIT})(?!\w))?"
    r"(?![\d:/]|[.,]\d|\s?[-–]\s?\d|\s?(?:am|pm|uhr|times|points?|hours?|days?|weeks?|months?|years?|minutes?|pages?|tablets?|pills?|mg\b"
    r"|percent higher|higher|lower|more|less|stunden|tage|wochen|días|horas|jours|heures)\b)",
    re.IGNORECASE,
)
_COPULA = (
    r"\b(?:was|is|are|were|at|came|back|as|of|in|levels?|values?|results?|readings?|now|currently|only|about|around|still|measured|test|"
    r"and|but|then|to|from|it|lag|lagen|liegt|ist|war|bei|beträgt|betrug|wert|danach|und|aber|pero|mais|fue|es|era|estaba|está|en|de|del|a|al|nivel|valor|y|luego|"
    r"était|est|à|taux|le|la|el|il|puis|et|è|stato|stata|di|e|poi|foi|é|estava|do|da|um|depois|went|rose|fell|dropped|climbed|increased|decreased|improved|up|down|stieg|sank|auf|von|subió|bajó|passé)\b"
)
_GLUE = expression(
    rf"(?:{_COPULA}|[\s:=|,;()*_>~→\-–—]|로|으로|에는|에|는|은|이|가|의|수치|결과|が|は|の|で|に|値|是|为|的|了)*",
    re.IGNORECASE,
)
_CLAIMS_NOTHING = expression(
    r"\b(?:normal(?:e|er|es|ly)?|reference|target|goal|ideal|average|usual|maximum|max\.|minimum|min\.|healthy|range|should|would|zielwert|referenz\w*|"
    r"objetivo|objectif)\W+(?:\w+\W+){0,2}$|정상 ?$|正常 ?$",
    re.IGNORECASE,
)
_FIRST_PERSON = expression(
    r"(?:\b(?:my|mein\w*|mi|mis|mon|ma|mes|mio|mia|miei|mie|meu|minha|meus|minhas)\s+"
    r"(?:(?:last|latest|new|first|fasting|resting|letzter?|neuer?|letztes|neues|último|última|dernier|dernière|ultimo|ultima|nivel|niveau|taux|livello"
    r"|nível|valor|de|di|du)\s+)*|(?<![가-힣])(?:제|내|저의|나의|私の|僕の|我的)\s?)$",
    re.IGNORECASE,
)
_OWNER = expression(
    r"(?P<who>(?:\b(?:my|our|the) )?[\w]+)(?:['’]s?)\s+(?:(?:last|latest|new|first|fasting)\s+)*$", re.IGNORECASE
)
_OF_WHOM = expression(
    r"\s+(?:of|for|de|von|di|da|do|del|bei)\s+(?!(?:about|around|only|over|under|roughly|nearly|almost|etwa|ca|circa|unos?)\b)"
    r"(?P<who>(?:(?:my|our|the|mi|mein\w*|mon|ma)\s+)?[^\W\d_]+)",
    re.IGNORECASE,
)
# Words for people and animals beside whom a result need not be the user's.
_OTHERS = expression(
    r"\b(?:(?:grand|step)?-?(?:mother|father|mom|mum|dad|son|daughter|ma|pa|child|parents?)|mommy|mummy|daddy|wife|husband|partner|spouse|"
    r"(?:girl|boy)friend|fianc[eé]e?|brother|sister|sibling|sis|bro|aunt|auntie|uncle|cousin|niece|nephew|baby|kids?|children|toddler|twins?|boy|girl|in-laws?|"
    r"friends?|buddy|colleagues?|co-?worker|boss|neighbou?r\w*|roommate|flatmate|patients?|clients?|customer|student|pupil|teacher|guy|man|woman|"
    r"somebody|someone|somebod\w+|anyone|everyone|people|family|stranger|other|another|team|company|he|she|they|his|her|hers|their|him|them|your|you|"
    r"dogs?|cats?|pupp(?:y|ies)|kittens?|pets?|rabbit|hamster|parrot|horse|ferret|tortoise|"
    r"(?:groß|schwieger|stief)?(?:mutter|vater|eltern|mama|papa|oma|opa)s?|frau|mann(?:es)?|freund\w*|bruders?|schwester|sohn(?:es)?|tochter|kind\w*|onkel|tante|cousine|"
    r"nachbar\w*|kolleg\w+|chef\w*|patient\w*|kund\w+|hund\w*|katzen?|kater\w*|seine?[rsnm]?|ihre?[rsnm]?|jemand\w*|andere\w*|"
    r"madre|padre|mamá|papá|abuel[oa]s?|hij[oa]s?|herman[oa]s?|espos[oa]|marido|mujer|novi[oa]|amig[oa]s?|prim[oa]|tí[oa]|vecin[oa]|jef[ea]|pacientes?|"
    r"perr[oa]s?|gat[oa]s?|su|sus|otr[oa]s?|alguien|suegr[oa]|niet[oa]|sobrin[oa]|"
    r"mère|père|maman|fils|fille|frère|sœur|soeur|mari|femme|copain|copine|ami[es]?|voisine?|patiente?|chiens?|chienne|chatt?e?s?|sa|ses|leurs?|autre|"
    r"mamma|babbo|figli[oa]|fratello|sorella|moglie|marito|amic[oa]|nonn[oa]|zi[oa]|cugin[oa]|cane|gatt[oa]|paziente|suo[i]?|sua|sue|altr[oa]|"
    r"mãe|pai|filh[oa]|irmão|irmã|avó|avô|cachorr[oa]|seu|seus|suas|vizinh[oa]|outr[oa])\b"
    r"|엄마|아빠|아버지|어머니|남편|아내|와이프|친구|언니|오빠|누나|동생|아들|딸|할머니|할아버지|이웃|환자|동료|다른|母|父|妻|夫|友達|友人|息子|娘|兄|姉|弟|妹|隣|患者|同僚|彼|他の|別の|妈|爸|朋友|儿子|女儿|老公|老婆|哥|姐|邻居|病人|同事|他|她|另",
    re.IGNORECASE,
)
_WHOSE = expression(
    r"(?<!\w)(?P<who>(?!(?:it|let|here|that|what|there|today|yesterday|this|who|how)['’])[^\W\d_]+)['’](?:s\b|(?=\s))",
    re.I,
)
_REPORT_OF = expression(
    r"(?P<who>(?:\b(?:my|our|the) )?[^\W\d_]+)['’]s? (?:(?:latest|last|new|recent|annual|lab|blood|test|urine|vet)\s)*(?:results?|reports?|blood ?work|labs|panel|values)\b",
    re.IGNORECASE,
)
_MY_REPORT = expression(
    r"\bmy (?:(?:latest|last|new|newest|recent|annual|yearly|own|full|lab|laboratory|blood|test|urine|cholesterol|lipid|thyroid|health|medical|check-?up|routine)\s)*"
    r"(?:results?|reports?|blood ?work|bloods|labs|panel|blood tests?|blood values|lab values)\b"
    r"|\bmeine[nr]?\s(?:(?:neue|letzte|aktuelle|heutige)\w*\s)?(?:blutwerte|laborwerte|laborergebnisse|blutbild|laborbefund|befunde?)\b"
    r"|\bmis?\s(?:(?:últim|nuev)\w+\s)?(?:resultados|análisis|analítica)\b|\bmes\s(?:derni\w+\s|nouv\w+\s)?(?:résultats|analyses)\b"
    r"|\b(?:i miei|le mie)\s(?:ultim\w\s|nuov\w\s)?(?:risultati|esami|analisi)\b|\b(?:meus|minhas)\s(?:últim\w+\s)?(?:resultados|exames|análises)\b"
    r"|(?<![가-힣])(?:제|내|저의|나의)\s?(?:혈액 ?)?검사 ?결과|(?:私|僕)の(?:血液)?検査結果|我的?(?:化验|检查结果)",
    re.IGNORECASE,
)
_UNREAL = expression(
    r"\b(?:if|suppos\w+|imagin\w+|example|e\.g|hypothetical\w*|article|stor(?:y|ies)|novel|fiction\w*|sample|template|pretend|reference|"
    r"wenn|falls|beispiel|ejemplo|exemple|esempio|exemplo)\b|예를|例",
    re.IGNORECASE,
)
_AMBIGUOUS = frozenset(("alt", "ast", "psa", "t3", "t4"))  # also a key, a card, a program, a form
# Words for what is measured that mean much else, too: a result only of a patient, or right behind "my" or "her".
_EVERYDAY = frozenset(("pressure", "sugar", "temp", "pulse", "puls", "crea", "creat", "bp"))
_CUE = expression(
    r"\b(?:tests?|tested|blood|levels?|results?|labs?|thyroid|liver|prostate|blood ?work|\w*wert\w*|blut\w*|labor\w*|leber\w*|sangre|nivel|análisis|analítica|"
    r"sang|taux|sangue|livello|valor|exame)\b|수치|검사|혈액|検査|値|血",
    re.IGNORECASE,
)
_FOLLOWS = expression(
    r"[ \t]+(?!(?:and|but|on|in|at|this|last|yesterday|today|from|when|after|before|with|while|which|then|now|to|or|again|since|back|so|as|already|still|instead|though|overnight|fasting|last|a minute|per minute|bpm|"
    r"und|aber|am|im|vom|bei|war|dann|gestern|heute|seit|auf|y|pero|el|en|ayer|hoy|de|del|la|et|le|mais|hier|e|il|ieri|oggi|em|ontem|hoje|high|low|h|l|normal)\b)"
    r"[A-Za-zÀ-ÿ]{2,}",
    re.IGNORECASE,
)
_MOVED = expression(
    r"\b(?:went|rose|fell|dropped|climbed|increased|decreased|improved|up|down|stieg|sank|subió|bajó|passé)\b(?!.*\b(?:to|at|from|auf|von|a|à|de)\b)",
    re.I,
)
_FROM = expression(r"\b(?:from|von|desde)\s*$", re.IGNORECASE)
_GOES_ON = expression(r"(?:\s|,|&|\band\b|\bund\b|\by\b|\bet\b|\be\b)+", re.IGNORECASE)
_MONTH = (
    r"(?:jan(?:uar\w*|vier)?|ene(?:ro)?|feb\w*|f[eé]vrier|mar(?:ch|s|zo)?|märz|apr\w*|avril|abril|may|mai|mayo|june?|juni|junio|july?|juli|julio|"
    r"aug\w*|ago\w*|sep\w*|oct\w*|okt\w*|nov\w*|dec\w*|dez\w*|dic\w*)\b"
)
_DAY_WORDS = expression(
    rf"\b\d{{1,2}}(?:st|nd|rd|th|\.)?\s+(?:of\s+|de\s+)?(?:{_MONTH})|(?<!\d )\b(?:{_MONTH})\s+\d{{1,2}}(?:st|nd|rd|th)?\b(?![./,]?\d)",
    re.IGNORECASE,
)
MAX_RESULTS = 100  # more in a message are a table of data
_PRONOUN = expression(r"\b(?P<who>her|his|its|their)\s+(?:(?:last|latest|new|first|fasting)\s+)*$", re.IGNORECASE)
_YEAR = expression(r"\d{4}|\d{1,2}[./]\d{1,2}[./]\d{2}")
_PLACES = {"weight": (0, 999), "temperature": (30, 112)}
_NEEDS_UNIT = frozenset(("weight",))
_WEIGHT_UNITS = expression(r"kg|kilos?|lbs?|pounds|g\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TestResult:
    """One value: what was measured, as the user calls it, its place in the message, whose it is, and its day."""

    key: str
    name: str
    value: str
    start: int
    end: int
    person: MentionedPerson
    at_ms: int | None
    dated_behind: bool = False


@dataclass(frozen=True, slots=True)
class _Piece:
    text: str
    offset: int
    dates: Sequence[TimeSpan]
    used: list[TimeSpan] = field(default_factory=list)  # of what was measured before in the sentence


@lru_cache(maxsize=1)
def _table() -> tuple[re.Pattern[str], re.Pattern[str], dict[str, str]]:
    data = tomllib.loads((files(__package__) / "patterns" / "results.toml").read_text(encoding="utf-8"))
    keys: dict[str, str] = {}
    for key, names in data["names"].items():
        for name in names.split("|") if "|" in names else names.split():
            keys.setdefault(name.strip(), key)
    longest = sorted(keys, key=lambda name: -len(name))
    exact = [name for name in longest if name.isascii() and name != name.lower()]
    loose = [name for name in longest if name not in exact]
    names = re.compile(
        rf"(?<![A-Za-zÀ-ÿ0-9])(?:{'|'.join(map(re.escape, exact))})(?![A-Za-zÀ-ÿ0-9])"
        rf"|(?<![A-Za-zÀ-ÿ0-9])(?i:{'|'.join(re.escape(n) for n in loose if n[0] < '぀')})(?![a-zà-ÿ0-9])"
        rf"|(?:{'|'.join(re.escape(n) for n in loose if n[0] >= '぀')})"
    )
    return (
        names,
        re.compile(data["report"]["heading"], re.IGNORECASE),
        {name.casefold(): key for name, key in keys.items()},
    )


def may_hold_results(text: str) -> bool:
    """Whether a text names something that is measured, and a number."""
    return any(map(str.isdecimal, text)) and _table()[0].search(text) is not None


def read_results(
    text: str,
    people: Mentions,
    at: datetime | None,
    times: Callable[[str], Sequence[TimeSpan]],
) -> Iterator[TestResult]:
    """
    Yield the results that a message states.

    Args:
        text: the message, with what is not the user's own words blanked.
        people: whom it may be about.
        at: when it was sent; a day without a year is the last one before.
        times: finds the times that a sentence names.
    """
    if not may_hold_results(text):
        return
    names, heading, _ = _table()
    pieces = [_Piece(span.of(text), span.start, times(span.of(text))) for span in split_pieces(text, MAX_PIECE)]
    held: TimeSpan | None = None
    report, strange = False, False
    holder = None if people.of_user else people.patient()
    count = 0
    for piece in pieces:
        found = [one for one in names.finditer(piece.text)]
        head = piece.text[: found[0].start()] if found else piece.text
        heads = heading.search(head) is not None
        if heads:
            report = True
            holder = _holder(head, people, strange)
        elif report and not found and _strangers(piece.text, people):
            holder = None
        if (heads or (report and not found)) and piece.dates:
            before = [span for span in piece.dates if not found or span.start < found[0].start()]
            held = before[0] if before else held
        strange = strange or _strangers(head, people)
        if not found or piece.text.rstrip().endswith(("?", "？")) or (at is not None and _misdated(piece)):
            continue
        for one in _in_piece(piece, found, people, (report, holder), held, at):
            count += 1
            if count > MAX_RESULTS:
                return
            yield one


def _in_piece(
    piece: _Piece,
    found: Sequence[re.Match[str]],
    people: Mentions,
    report: tuple[bool, MentionedPerson | None],
    held: TimeSpan | None,
    at: datetime | None,
) -> list[TestResult]:
    """Return the results of a sentence; values that are counted up share the day behind the last of them."""
    read: list[TestResult] = []
    own, last = report[1], 0
    shares: list[TestResult] = []
    for at_name, name in enumerate(found):
        own = _owner(piece.text, last, *name.span(), people, own)
        end = found[at_name + 1].start() if at_name + 1 < len(found) else len(piece.text)
        here: list[TestResult] = []
        if own is not None and not _CLAIMS_NOTHING.search(piece.text[: name.start()]):
            here = list(_values(piece, name, end, own, held, at, in_report=report[0]))
        if here and shares and here[0].at_ms is not None and here[0].dated_behind:
            read = [replace(one, at_ms=here[0].at_ms) if one in shares else one for one in read]
        goes_on = here and _GOES_ON.fullmatch(piece.text, here[-1].end - piece.offset, end)
        shares = [*shares, *here] if goes_on and here[-1].at_ms is None else []
        read += here
        last = name.end()
    return read


def _misdated(piece: _Piece) -> bool:
    """Whether a sentence names a day that there is not, such as 30 February."""
    return any(
        not any(span.start <= found.start() and found.end() <= span.end for span in piece.dates)
        for found in _DAY_WORDS.finditer(piece.text)
    )


def _holder(head: str, people: Mentions, strange: bool) -> MentionedPerson | None:
    """Return whose results follow a heading; None when that is not sure."""
    if _UNREAL.search(head):
        return None
    whose = _REPORT_OF.search(head)
    if whose is not None:
        rest = head[: whose.start()] + head[whose.end() :]
        return None if _strangers(rest, people) else _whom(people, whose["who"])
    if strange or _strangers(head, people):
        return None
    if people.of_user:
        return ME if _MY_REPORT.search(head) else None
    return ME if _MY_REPORT.search(head) else people.patient()


def _whom(people: Mentions, words: str) -> MentionedPerson | None:
    """Resolve words; the name of whom the conversation is about is known without being told."""
    here, name = people.patient(), re.sub(r"['’]s?$", "", words.strip()).casefold()
    return here if here is not None and name in (here.label.casefold(), here.subject) else people.whom(words)


def _strangers(text: str, people: Mentions) -> bool:
    """Whether a text speaks of anybody but the one whom the conversation is about."""
    here = people.patient()
    for found in _OTHERS.finditer(text):
        word = found.group().casefold()
        if here is None:
            return True
        if word in _THIRD:
            continue
        meant = _whom(people, f"my {word}") or _whom(people, f"the {word}")
        if meant is None or meant.subject != here.subject:
            return True
    for found in _WHOSE.finditer(text):
        if not found["who"].islower():
            meant = _whom(people, found["who"])
            if here is None or meant is None or meant.subject != here.subject:
                return True
    return False


_THIRD = frozenset(
    "he she they his her hers their him them seine seiner seines seinen seinem sein ihr ihre ihrer ihres ihren ihrem su sus sa ses leur leurs "
    "suo suoi sua sue seu seus suas".split()
)


def _owner(
    text: str, last: int, start: int, end: int, people: Mentions, before: MentionedPerson | None
) -> MentionedPerson | None:
    """Return whose result begins at a place; None when that is not known."""
    prefix = text[:start]
    of_whom = _OF_WHOM.match(text, end)
    if of_whom is not None:
        named = _whom(people, of_whom["who"])
        if not (named is None and _FIRST_PERSON.search(prefix)):
            return None if named is None or named.is_self else named
        return None
    if _FIRST_PERSON.search(prefix):
        return ME
    whose = _OWNER.search(prefix)
    if whose is not None:
        return _whom(people, whose["who"])
    others = {person.subject: person for name in people.names if (person := _named(people, name, prefix)) is not None}
    pronoun = _PRONOUN.search(prefix)
    if _strangers(text[last:start], people):
        if pronoun is None or others or not people.of_user:
            return next(iter(others.values())) if len(others) == 1 and _only_names(prefix, people, others) else None
    if others:
        return next(iter(others.values())) if len(others) == 1 else None
    if pronoun is not None:
        return _whom(people, pronoun["who"])
    named_there = None if people.of_user else _NAMED.search(prefix)
    if named_there is not None and _may_be_named(prefix, named_there):
        return _whom(people, named_there["who"]) or _whom(people, named_there["who"].removesuffix("s"))
    if not people.of_user and re.search(
        r"\b(?:i|ich|yo|je|io|eu)\b(?:['’]\w+)? (?:had|have|hatte|habe|tuve|tengo|ai|ho|tive)",
        text[last:start],
        re.IGNORECASE,
    ):
        return None
    return before


_NAMED = expression(
    r"\b(?P<who>[A-ZÀ-Þ][a-zà-ÿ]+)(?:,? (?:had|has|got|hat|hatte|tiene|tuvo|a|avait|ha|aveva|tem|teve)(?: an?| eine?n?)?|:)? *$"
)
_NO_NAMES = frozenset(("Free", "Total", "Serum", "El", "Le", "La", "Il", "Der", "Die", "Das", "Ihr", "Sein", "Su"))


def _may_be_named(text: str, found: re.Match[str]) -> bool:
    """Whether a capitalized word is a name, and not that of a day or month: "the blood test of 1 March: …"."""
    who = found["who"]
    of_a_day = who.casefold() in days_and_months() and _OF_A_DAY.search(text[: found.start("who")])
    return is_name(who) and who not in _NO_NAMES and not of_a_day


@lru_cache
def days_and_months() -> frozenset[str]:
    """Return the names of days and months in all languages, in lower case."""
    lists = (names for words in date_words().values() for names in (*words.weekdays, *words.months))
    return frozenset(name for names in lists for name in names.split())


_OF_A_DAY = expression(
    r"(?:\d(?:st|nd|rd|th)?\.?|\b(?:tests?|results?|of|from|on|last|vom|am|letzten|del?|du|di|el))\s+$", re.IGNORECASE
)


def _only_names(text: str, people: Mentions, others: dict[str, MentionedPerson]) -> bool:
    """Whether all people in a text are the one that it names."""
    words = [*(m.group() for m in _OTHERS.finditer(text) if m.group().casefold() not in _THIRD)]
    meant = [_whom(people, f"my {word}") for word in words]
    return all(one is not None and one.subject in others for one in meant)


def _named(people: Mentions, name: str, text: str) -> MentionedPerson | None:
    if name.casefold() == SELF or not re.search(rf"(?<![^\W_]){re.escape(name)}s?(?![a-zà-ÿ])", text, re.IGNORECASE):
        return None
    person = _whom(people, name)
    return None if person is None or person.is_self else person


def _values(
    piece: _Piece,
    name: re.Match[str],
    end: int,
    person: MentionedPerson,
    held: TimeSpan | None,
    at: datetime | None,
    *,
    in_report: bool,
) -> Iterator[TestResult]:
    """Yield the values behind one name: the first, and further ones that have days of their own."""
    key = _table()[2][name.group().casefold()]
    before = piece.text[: name.start()]
    if name.group().casefold() in _EVERYDAY and person.is_self and not _FIRST_PERSON.search(before):
        return
    dates = [span for span in piece.dates if span.relation == "at" and span not in piece.used]
    of_whom = _OF_WHOM.match(piece.text, name.end())
    last, found, moved = of_whom.end() if of_whom else name.end(), list[re.Match[str]](), False
    for value in _VALUE.finditer(piece.text, last, end):
        if any(span.start <= value.start() < span.end for span in dates):
            continue
        between = piece.text[last : value.start()]
        for span in reversed([one for one in dates if last <= one.start and one.end <= value.start()]):
            between = between[: span.start - last] + between[span.end - last :]
        o_clock = between.strip().lower() == "at" and value.group().isdecimal()
        counts = value["unit"] is None and _FOLLOWS.match(piece.text, value.end())
        if counts and not any(0 <= span.start - value.end() <= 4 for span in dates):
            return
        if re.search(r"(?<!-)[<>≤≥]\s*$", between) or _MOVED.search(between):
            return
        if o_clock or not _GLUE.fullmatch(between) or not _fits(key, value):
            break
        moved = moved or (not found and _FROM.search(between) is not None)
        if not found and key in _AMBIGUOUS and not _is_measured(piece, name, between, value, person, in_report):
            return
        found.append(value)
        last = value.end()
    days = _days(piece, found, dates, name, end)
    if moved and (len(found) < 2 or None in days):
        found, days = (found[-1:], days[-1:]) if len(found) > 1 else ([], [])
    elif None in days and len(found) > 1:
        return  # which one holds?
    for value, day in zip(found, days, strict=True):
        start = piece.offset + name.start()
        stop = piece.offset + max(value.end(), day.end if day is not None and day.start >= name.start() else 0)
        if day is not None and day.start > name.start():
            piece.used.append(day)
        taken = _past(day if day is not None else held, at)
        if taken is None and at is not None and (day or held) is not None:
            continue  # no sample is of a day to come
        behind = day is not None and day.start >= value.end()
        yield TestResult(key, name.group(), _written(value), start, stop, person, taken, behind)


def _is_measured(
    piece: _Piece, name: re.Match[str], between: str, value: re.Match[str], person: MentionedPerson, in_report: bool
) -> bool:
    """Whether a name that means other things, too, is that of a test here."""
    if in_report or value["unit"] or _CUE.search(piece.text):
        return True
    others = sum(1 for one in _table()[0].finditer(piece.text) if _table()[2][one.group().casefold()] not in _AMBIGUOUS)
    if others:
        return True
    return not person.is_self and bool(piece.dates or re.search(r"[^\W\d_]", between))


def _written(value: re.Match[str]) -> str:
    return re.sub(r" (?:over|zu|sobre) ", "/", value.group(), flags=re.IGNORECASE).strip()


def _days(
    piece: _Piece, values: Sequence[re.Match[str]], dates: Sequence[TimeSpan], name: re.Match[str], end: int
) -> list[TimeSpan | None]:
    """Return the day of each value: those in front of the values when the first one has one there, else those behind."""
    if not values:
        return []
    lead = next((span for span in reversed(dates) if span.end <= values[0].start()), None)
    starts, ends = [value.start() for value in values], [value.end() for value in values]
    if lead is not None:
        begins = [lead.start, *ends[:-1]]
        slots = list(zip(begins, starts, strict=True))
        return [next((s for s in reversed(dates) if a <= s.start and s.end <= b), None) for a, b in slots]
    slots = list(zip(ends, [*starts[1:], end], strict=True))
    found = [next((span for span in dates if a <= span.start and span.end <= b), None) for a, b in slots]
    return [
        one if one and _is_near(piece.text[a : one.start]) else None for one, (a, _) in zip(found, slots, strict=True)
    ]


def _is_near(between: str) -> bool:
    return len(between) <= 20 and not re.search(r"[.;!?\d]|\b(?:and|und|y|et|e)\b", between)


def _fits(key: str, value: re.Match[str]) -> bool:
    if key == "blood_pressure":
        return "/" in _written(value) or (
            value["unit"] is None and value.group().isdecimal() and 60 <= int(value.group()) <= 260
        )
    if "/" in _written(value).split(" ")[0].split("g")[0].split("m")[0]:
        return False
    unit = value["unit"] or ""
    if key in _NEEDS_UNIT and not _WEIGHT_UNITS.fullmatch(unit):
        return False
    if key not in _NEEDS_UNIT and _WEIGHT_UNITS.fullmatch(unit):
        return False
    low, high = _PLACES.get(key, (0, 9999))
    number = re.match(r"\d+", value.group())
    return number is not None and low <= int(number.group()) <= high


def _past(span: TimeSpan | None, at: datetime | None) -> int | None:
    """Return when a sample was taken: a day without a year that is still to come is the one of the year before."""
    if span is None or at is None:
        return None
    if span.from_ms <= to_ms(at):
        return span.from_ms
    undated = span.grain == "day" and not any(map(str.isdecimal, span.words))  # "next Monday"
    if undated or _YEAR.search(span.words) or span.grain not in ("day", "month"):
        return None
    first = from_ms(span.from_ms)
    try:
        return to_ms(first.replace(year=first.year - 1))
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class CareEvent:
    """A vaccination, neutering or operation: done on a day, or due on one."""

    kind: str
    what: str
    due: bool
    start: int
    end: int
    person: MentionedPerson
    day: TimeSpan
    said_at: datetime


_DAY, _PREPOSITION = "¤", r"(?:on|in|back in|at|for|last|around|am|im|vom|el|en|le|il|nel|em|para el|da|pour le|per il)"
_CLAUSE = expression(
    r"[,;()]|\s[-–—]\s|\b(?:and|but|because|so|when|while|after|before|where|und|aber|weil|denn|als|y|pero|porque|cuando|et|mais|quand|ma|quando|mas)\b",
    re.IGNORECASE,
)
_NEVER_DONE = expression(
    r"\b(?:not|never|cancel\w*|skipp\w*|missed|refus\w*|declin\w*|offer\w*|forg[eo]t\w*|waiting|told|tells|said|says|supposed|advis\w*|consider\w*|thought|think|"
    r"postponed|wants?|would|could|should|if|maybe|perhaps|might|may(?! \d)(?= have)|must|almost|nearly|read|article|story|novel|film|movie|game|dream\w*|imagin\w*|"
    r"suppose|pretend|character|joking|wish\w*|hope[ds]?|until|unless|"
    r"nicht|kein\w*|abgesagt|soll\w*|fast|vielleicht|wenn|falls|sagt\w*|no|nunca|casi|quizás?|si|dijo|ne|pas|jamais|annul\w*|presque|non|mai(?! \d)|se|forse|quasi|não)\b"
    r"|n['’]t\b|않|안 |못|ない|没|未|不",
    re.IGNORECASE,
)
_WORD = expression(r"(?<!\?P)<(\w+)>")
_FOREIGN = expression(r"[가-힣ぁ-ヿ一-鿿]")
_I_OR_WE = expression(r"(?<![가-힣])(?:제가|저는|나는|내가|우리)|私|僕|俺|我")
_BARE_YEAR = expression(r"(?<!\d)(?<!\d[.,])(?:19|20)\d\d(?!\d|[.,]\d| ?[%€$£])")


@lru_cache(maxsize=1)
def _care() -> dict[str, tuple[re.Pattern[str], re.Pattern[str] | None, list[tuple[bool, re.Pattern[str]]]]]:
    """Return of each kind of care its words, what is vaccinated against, and whole clauses: due or not, as they are said."""
    data = tomllib.loads((files(__package__) / "patterns" / "results.toml").read_text(encoding="utf-8"))
    shared, read = data["clause"], {}
    when = rf"(?:(?:{_PREPOSITION} )?(?:the )?{_DAY})"
    for kind, one in data["care"].items():
        words = shared | {name: text for name, text in one.items() if name != "is"} | {"day": when}
        forms: list[tuple[bool, re.Pattern[str]]] = []
        for due in (False, True):
            for form in data["forms"]["due" if due else "done"]:
                if "<noun>" in form and "noun" not in one:
                    continue
                while word := _WORD.search(form):  # a word may stand for others
                    form = form.replace(word.group(), f"(?:{words[word[1]]})")
                forms.append((due, re.compile(rf"(?:{form})[\s.!]*", re.IGNORECASE)))
        against = re.compile(one["against"], re.IGNORECASE) if "against" in one else None
        read[kind] = (re.compile(one["is"], re.IGNORECASE), against, forms)
    return read


def may_hold_care(text: str) -> bool:
    """Whether a text names a vaccination, a neutering or an operation."""
    return any(words.search(text) for words, _, _ in _care().values())


def read_care(
    text: str, people: Mentions, at: datetime, times: Callable[..., Sequence[TimeSpan]]
) -> Iterator[CareEvent]:
    """Yield what was done or is due, where a clause says of whom, and names its day; see `read_results`."""
    count = 0
    for span in split_pieces(text, MAX_PIECE):
        piece = span.of(text)
        if count >= MAX_RESULTS:
            return
        if piece.rstrip().endswith(("?", "？")) or _NEVER_DONE.search(piece):
            continue
        for kind, (words, against, forms) in _care().items():
            found = words.search(piece)
            read = _read_clause(kind, piece, found, forms, people, at, times) if found else None
            if found is None or read is None:
                continue
            due, day, person, first, last = read
            start, end = min(found.start(), day.start), max(found.end(), day.end)
            named = against.search(piece, first, last) if against else None
            what = next(filter(None, named.groups()), "").lower() if named else ""
            if kind == "operation":
                what = _TRAILING.sub("", piece[found.start() : day.start]) or found.group()
            count += 1
            yield CareEvent(kind, what, due, span.start + start, span.start + end, person, day, at)
            break


def _read_clause(
    kind: str,
    piece: str,
    found: re.Match[str],
    forms: Sequence[tuple[bool, re.Pattern[str]]],
    people: Mentions,
    at: datetime,
    times: Callable[..., Sequence[TimeSpan]],
) -> tuple[bool, TimeSpan, MentionedPerson, int, int] | None:
    """Return whether it is due, the day, the person and the ends of the clause; None unless all are sure."""
    for due in (False, True):
        days = _days_of(piece, times(piece, ahead=due))
        cuts = [cut for cut in _CLAUSE.finditer(piece) if not any(d.start <= cut.start() < d.end for d in days)]
        first = max((cut.end() for cut in cuts if cut.end() <= found.start()), default=0)
        last = min((cut.start() for cut in cuts if cut.start() >= found.end()), default=len(piece))
        own = [day for day in days if first <= day.start and day.end <= last]
        if len(own) != 1:
            continue
        day = own[0]
        clause = " ".join(f"{piece[first : day.start]} {_DAY} {piece[day.end : last]}".split())
        person: MentionedPerson | None = None
        if _FOREIGN.search(clause):
            here = people.patient()
            sure = here is not None and not _I_OR_WE.search(clause) and not _strangers(clause, people)
            person, is_due = (here if sure else None), bool(re.search("예정|맞아야|予定|到期|该打", clause))
        else:
            match = next(((d, m) for d, form in forms if d == due and (m := form.fullmatch(clause))), None)
            person, is_due = (_cared_for(kind, match[1], people) if match else None), due
        held = _held_day(day, at, due=due)
        if person is not None and held is not None and is_due == due:
            return due, held, person, first, last
    return None


_TRAILING = expression(r"(?:\s+(?:on|in|at|from|back|am|im|el|en|le|il|nel|em))*\s*$", re.IGNORECASE)


def _days_of(piece: str, times: Sequence[TimeSpan]) -> list[TimeSpan]:
    """Return the days of a sentence; where it has none, its year."""
    days = [day for day in times if day.relation == "at"]
    for year in () if days else _BARE_YEAR.finditer(piece):
        first, last = datetime(int(year.group()), 1, 1, tzinfo=UTC), datetime(int(year.group()) + 1, 1, 1, tzinfo=UTC)
        days.append(TimeSpan(year.start(), year.end(), year.group(), to_ms(first), to_ms(last), "year"))
    return days


def _held_day(day: TimeSpan, at: datetime, *, due: bool) -> TimeSpan | None:
    if due:
        return day if day.to_ms > to_ms(at) else None
    past = _past(day, at)
    return None if past is None else replace(day, from_ms=past, to_ms=past + day.to_ms - day.from_ms)


def _cared_for(kind: str, clause: re.Match[str], people: Mentions) -> MentionedPerson | None:
    """Return the patient of a clause; ``None`` where none is known, or a user would be neutered."""
    groups = clause.groupdict()
    if groups.get("me"):
        return None if kind == "neutering" else ME
    who = (groups.get("who") or "").strip()
    if not who:
        return people.patient()
    person = _whom(people, who)
    kin = re.fullmatch(r"((?:my|our|meine?|mi|ma|mon) (\w+))(?: [^\W\d_]+)?", who, re.IGNORECASE)
    if kin is not None and (people.relation(kin[2]) or "") in UNIQUE:
        person = people.whom(kin[1])
    elif kin is not None and kin[0] == kin[1] and not people.knows(kin[2]):
        return None  # one may have several
    return None if person is None or person.is_self else person


def result_sentence(one: TestResult, code: str) -> str:
    """Return a sentence that says the result in the language *code*."""
    if code != "en":
        return f"{one.name}: {one.value}."
    return f"Weighs {one.value}." if one.key == "weight" else f"Has {one.name}: {one.value}."


def fields_of_care(care: CareEvent) -> dict[str, Any]:
    """Return the address, value, words and time of what was done or is due."""
    at = care.said_at
    day = with_date(care.day, at)
    if care.due:
        name = care.kind if care.kind != "vaccination" else f"{care.what} vaccination".strip()
        time = {"lifetime": "transient", "valid_to_ms": care.day.to_ms}
        return {
            "category": "appointment",
            "key": name.replace(" ", "_"),
            "value": day,
            "text": f"Has {name}: {day}.",
        } | time
    when = from_ms(care.day.from_ms).astimezone(at.tzinfo).strftime(_EXACT.get(care.day.grain, "%Y-%m-%d"))
    of_what = f" against {care.what}" if care.what else ""
    key, value, text = {
        "vaccination": ("vaccinated", f"{care.what or 'vaccination'} ({when})", f"Was vaccinated{of_what}: {when}."),
        "neutering": ("neutered", when, f"Was neutered: {when}."),
        "operation": ("operation", f"{care.what} ({when})", f"Had an operation: {care.what} ({when})."),
    }[care.kind]
    return {"key": key, "value": value, "text": text, "valid_from_ms": care.day.from_ms}


_EXACT = {"year": "%Y", "month": "%Y-%m"}


@lru_cache(maxsize=1)
def _over() -> Mapping[str, Any]:
    """Return what ails an animal or a patient, and how it is said that it is over."""
    found: Mapping[str, Any] = tomllib.loads((files(__package__) / "patterns/results.toml").read_text("utf-8"))["over"]
    return found


@lru_cache(maxsize=1)
def words_of_nobody() -> frozenset[str]:
    """Return words, in lower case, that are capitalized and no names: days, months, and what begins good news."""
    return days_and_months() | frozenset(_over()["starters"].split())


_SAID = expression(r"[^\W\d_]+")


def find_recoveries(
    message: Message, believed: Iterable[Fact], subject: str, names_other: Callable[[str], bool], source: str
) -> list[Candidate]:
    """
    Return the ends of the statements about *subject* whose trouble is over: "She hasn't vomited in two weeks."

    Args:
        message: of a conversation about the subject.
        believed: the facts that hold.
        subject: an animal, a patient; not the user.
        names_other: whether a text names anybody but the subject.
        source: of the ends.
    """
    over, fillers = _over(), frozenset(_over()["fillers"].split())
    known = [
        fact
        for fact in believed
        if fact.subject == subject and fact.kind == "statement" and not _DENIES.search(fact.text)
    ]
    ended, text = list[Candidate](), masked(message.content)
    for fact in known if message.role == "user" else ():
        words = frozenset(word.casefold() for word in _SAID.findall(fact.text))
        for stem in (stem for stem in over["troubles"].split() if any(word.startswith(stem) for word in words)):
            for piece in split_pieces(text, MAX_PIECE):
                said = piece.of(text)
                found = next(
                    (
                        m
                        for one in over["find"]
                        if (m := re.search(one.replace("{t}", rf"{stem}\w*"), said, re.IGNORECASE))
                    ),
                    None,
                )
                if found is None or re.search(over["unless"], said, re.IGNORECASE) or names_other(message.content):
                    continue
                if {word.casefold() for word in _SAID.findall(found["rest"])} <= words | fillers:
                    ended.append(_end_of(fact, message, piece.start + found.start(), found.group(), source))
    return list({one.text: one for one in ended}.values())


_DENIES = expression(r"\b(?:not|no|never|no longer|stopped|used to)\b|n['’]t\b", re.IGNORECASE)


def _end_of(fact: Fact, message: Message, start: int, quote: str, source: str) -> Candidate:
    return Candidate(
        kind="statement",
        subject=fact.subject,
        category=fact.category,
        key=fact.key,
        value="",
        text=fact.text,
        confidence=0.85,
        seq=message.seq,
        quote=quote,
        start=start,
        op="retract",
        join="",
        modality="negated",
        lifetime="state",
        valid_from_ms=None,
        valid_to_ms=None,
        source=source,
    )
