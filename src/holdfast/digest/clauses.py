"""
Clauses: which of them assert something, and which state something that lasts.

`judge` looks at the words around a match within its sentence, from which `authorship` has blanked what is not the
writer's own: are they asserted, asked, supposed, reported or quoted?  Cue words: ``[modality]`` of a pattern file.

`ClauseReader` reads statements without a pattern for them.  A sentence is cut into clauses.  A clause about the user, a
relative, a pet or a known name is a statement unless a word of a deny list stands in it, and only where something
concrete does: a name, a number, a time, a habit or a noun of everyday life.  Lists: ``patterns/clauses_*.toml``.  The text
is the clause in the third person: "i restore old clocks" becomes "Restores old clocks."  Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise

from ..text import dataclass, expression
from ..text.render import THIRD, in_their_words, in_third, well_formed
from ..types import Modality
from .authorship import BLANK
from .grammar import PatternLanguage, cues, english_cue
from .mentions import ME, MentionedPerson

MOST_WORDS = 24  # of one statement
_TOKEN = expression(r"[^\W_](?:[\w'’.&/+-]*[\w+])?")
_BE = {"'m": "is", "'re": "is", "m": "is", "am": "is", "are": "is", "is": "is"}
_NOT = {
    "don't": "does not", "dont": "does not", "do not": "does not", "can't": "cannot", "cant": "cannot", "haven't": "has not",
    "havent": "has not", "aren't": "is not", "won't": "will not", "wont": "will not", "didn't": "did not", "didnt": "did not",
}  # fmt: skip
_FINITE = frozenset(
    "is are was were has have had does do can can't cannot isn't aren't wasn't weren't hasn't haven't doesn't don't won't will".split()
)
_OWNED_VERBS = _FINITE | set("look looked seem feel felt smell get got hurt itch stay kept went".split())  # "ears look"
_NO_NOUN = frozenset(
    "a an the not got been no one in on at from with of and or but who that my our his her their".split()
)
_AND_IT = expression(r"(?i)\band \w+ (?:it|them)\b")
_NAMED = expression(r"[A-ZÀ-Þ][\w-]+(?:'s| is| has| was)(?!\w)")
_PRONOUNS = frozenset("i he she they it we you who that which to".split())
_GOT, _HAD = frozenset("pets vehicle work home health education".split()), frozenset(("pets", "health"))
_NO_VERB = frozenset(
    "may might must shall should would could wasn't wasnt weren't werent isn't isnt aren't arent wouldnt couldnt shouldnt wouldve couldve shouldve id ill then thus there not and or but so to in on at of "
    "for with by from the a an my me us our".split()
)
_FRONTED = expression(
    r"(?i)((?:since|after|in|on|at|every|for|until|from|by|during|before|last|next) [\w' -]{2,40}?),? (?=(?:i|we)(?:'\w+)? |(?:my|our) )"
)
_APPOSITION = expression(r"(?i:my|our) [\w' -]{2,30}, [A-ZÀ-Þ][\w-]+(?:(?:, | and |, and )[A-ZÀ-Þ][\w-]+){0,3}, ")
_DATED = expression(r"\b(?:19|20)\d\d\b|\bago\b|\bas a (?:kid|child)\b")
_NO_SUBJECT = frozenset("you u it it's this that these those there here who what how why they his her their".split())
_NO_DOING = frozenset("being nothing anything evening king".split())
_LY = frozenset("fly reply apply rely supply comply multiply bully tally rally".split())
_NO_TAIL = expression(r"(?i)(?:i|i'm|im|we|he|she|they|it|do|does|am|are|is)\b")
_ABLE = frozenset("eat have drink drive swim see hear walk tolerate take smell digest read".split())
_PRESENT, _PAST, _BEING, _PERFECT, _FUTURE, _ABILITY = "present", "past", "being", "perfect", "future", "ability"
_SECOND_HALF = expression(r"\s*(?:btw|by the way|too|also)?,?\s+(?:and|but)\s+(?P<half>.+)", re.IGNORECASE)
_NAMED_DOES = expression(r"[A-Z][\w-]+ ([a-z]+)\b")
_I_AM = expression(r"(?:i'?m|i am|we'?re|we are)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class StatedClause:
    """A clause that states something: its characters in the sentence, its subject, and its text in the third person."""

    start: int
    end: int
    person: MentionedPerson
    text: str
    category: str
    time: str = ""  # how its times are read: "" (since when), "change" (it happened then), "plan" (it is over then)


@dataclass(frozen=True, slots=True)
class _Predicate:
    """The words behind a subject: tense, main verb, text in the third person, and the words as written."""

    tense: str
    verb: str
    text: str
    rest: str


@dataclass(frozen=True, slots=True)
class ListedValue:
    """One line of a list about oneself: its address, value and sentence, and its place in the text."""

    category: str
    key: str
    value: str
    text: str
    start: int
    end: int


Whom = Callable[[str, int], MentionedPerson | None]


@lru_cache(maxsize=8)
def clause_reader(rules: PatternLanguage) -> ClauseReader | None:
    """Return the reader of a language; None for one without lists."""
    return ClauseReader(rules) if rules.clauses else None


class ClauseReader:
    """A reader of the clauses of one language, with its lists compiled."""

    def __init__(self, rules: PatternLanguage) -> None:
        table = rules.clauses

        def words(name: str) -> frozenset[str]:
            return frozenset(str(table.get(name, "")).split())

        def expression(name: str) -> re.Pattern[str]:
            return re.compile(_spelled(str(table[name])), re.IGNORECASE)

        self._lead = expression("lead")
        self._number, self._time, self._habit = expression("number"), expression("time"), expression("habit")
        self._idle, self._deny, self._life = expression("idle"), expression("deny"), expression("life")
        self._moment, self._plan, self._asks = expression("moment"), expression("plan"), expression("asks")
        lists = table["list"]
        self._own_list, self._others_list = (
            re.compile(_spelled(lists[name]), re.IGNORECASE) for name in ("own", "others")
        )
        self._labels = {label: entry for labels, entry in lists["labels"].items() for label in labels.split("|")}
        labels = "|".join(sorted(map(re.escape, self._labels), key=len, reverse=True))
        value = rf"(?:(?![,;\n|{{}}]|\s[–—-]\s)[^\n]|,(?!\s*[\"']?(?:{labels})[\"']?\s*[:=])(?=\s))"
        self._label = re.compile(
            rf"(?:^|[\n,;|{{•*:–—-])\s*[\"']?(?P<label>{labels})[\"']?\s*[:=]\s*(?P<value>(?=\S){value}{{1,60}})",
            re.IGNORECASE,
        )
        self._changes = expression("changes")
        self._adverbs, self._empty = words("adverbs"), words("empty_adverbs")
        self._said, self._weak = words("verbs_said"), words("verbs_weak")
        self._denied = _forms(words("verbs")) - _forms(self._said)
        self._doing, self._past = words("doing"), words("past")
        self._second, self._my_deny = words("second"), words("my_deny")
        self._around = words("around")
        self._roles, self._owned = self._around | words("roles"), words("owned")
        self._participles, self._adjectives = words("participles"), words("adjectives")
        self._bare = frozenset(str(rules.people.get("bare", "")).split())
        self._nouns: dict[str, str] = {
            word: kind for kind, listed in table["nouns"].items() for word in str(listed).split()
        }
        starts = r"(?:i|we)(?:['’]?(?:m|ve|re|ll|d))?|(?:he|she|they|it)(?:['’]?s|['’]re|['’]ve|['’]ll|['’]d)?|(?:my|our|his|her|their|the|this|that|these|those)(?=\s+\w)|you|u|there|here|who|what|how|why"
        self._start = re.compile(rf"(?:{starts}|{'|'.join(sorted(self._bare))}(?:'s)?)(?!\w)", re.IGNORECASE)
        joints = "|".join(str(table["joints"]).split())
        self._joint = re.compile(
            rf"\s*(?:(?:[;()–—…!?]|[,:](?!\d))+|\.{{2,}}|\s-+\s)\s*(?:(?:{joints})\s+)?|\s+(?:{joints})\s+",
            re.IGNORECASE,
        )
        self._the = re.compile(rf"the (?:{'|'.join(str(table['the']).split())})(?!\w)", re.IGNORECASE)

    def read(
        self, sentence: str, whom: Whom, taken: Sequence[tuple[int, int]], names: frozenset[str]
    ) -> Iterator[StatedClause]:
        """
        Yield the statements of a sentence.

        Args:
            sentence: one sentence, what is not the writer's own blanked.
            whom: resolves words at a place to the one whom they mean.
            taken: characters that were read as facts; a clause counts only for what it says beside them.
            names: the known names, case-folded.
        """
        straight = sentence.replace("’", "'")
        for start, end in self._clauses(straight, names):
            found = self._statement(straight, start, end, whom, names)
            if found is not None and self._adds(straight, found, taken):
                yield self._without_read(straight, found, taken)

    def listed(self, text: str) -> Iterator[ListedValue]:
        """Yield the values of a list about oneself: "Name: Dana, age: 34 – that's me"."""
        if not self._own_list.search(text) or self._others_list.search(text):
            return
        found = list(self._label.finditer(text))
        for one in found if len(found) > 1 else ():
            category, key, sentence = self._labels[one["label"].lower()]
            many = category in ("allergy", "language", "hobby", "preference", "pets")
            for value in (
                re.finditer(r"[^,;&]+?(?=\s*(?:,|;|&|\band\b|$))", one["value"])
                if many
                else re.finditer(r".+", one["value"])
            ):
                words = re.sub(r"(?i)^\s*(?:and|&)?\s*", "", value[0]).strip(" .\"'")
                if (
                    not words
                    or words.lower() in ("none", "no", "n/a", "-", "and")
                    or (key == "age" and not words.isdecimal())
                ):
                    continue
                shown = words.lower() if category in ("dietary", "allergy") else words
                yield ListedValue(
                    category, key.replace("{}", shown.replace(" ", "_")), "true" if category == "dietary" else words,
                    well_formed(sentence.replace("{}", shown)), one.start("label"), one.start("value") + value.end(),
                )  # fmt: skip

    def is_verb(self, word: str) -> bool:
        """Whether a word is a verb of the lists."""
        return word in self._denied or word in self._second or word in self._said

    def things(self, text: str) -> tuple[str, ...]:
        """Return the names and the nouns of everyday life in a statement."""
        words = [found[0].removesuffix("'s") for found in list(_TOKEN.finditer(text))[1:]]
        found = [word for word in words if word[:1].isupper() or self._kind(word)]
        return tuple(dict.fromkeys(word for word in found if len(word) > 3))

    def _clauses(self, text: str, names: frozenset[str]) -> Iterator[tuple[int, int]]:
        """Yield the clauses: a new one begins where a joint is followed by a subject or a request."""
        start = 0
        for joint in self._joint.finditer(text):
            lead = self._lead.match(text, joint.end())
            place = lead.end() if lead else joint.end()
            if joint.end() <= start or place >= len(text):
                continue
            word = _TOKEN.match(text, place)
            begins = self._start.match(text, place) or self._asks.match(text, place)
            if begins and self._is_pair(text[start : joint.start()], joint[0], text[place:]):
                continue  # "my husband and I"
            if begins or _NAMED.match(text, place) or (word and self._is_name(word[0], names)):
                yield start, joint.start()
                start = joint.end()
        yield start, len(text)

    def _is_pair(self, before: str, joint: str, after: str) -> bool:
        """Whether "and I" joins two subjects: nothing before it is a verb."""
        if joint.strip().lower() not in ("and", "n", "&") or not re.match(r"(?i)(?:i|me)\s", after):
            return False
        lead = self._lead.match(before)
        words = [word.lower() for word in _TOKEN.findall(before[lead.end() if lead else 0 :])]
        if (
            words
            and words[0] not in ("my", "our")
            and (self._start.match(words[0]) or not before.strip()[:1].isupper())
        ):
            return False  # "I'm 36 and I run a shop"
        return 0 < len(words) < 6 and not any(word in _FINITE or self._is_verb(word) for word in words[1:])

    @staticmethod
    def _is_name(word: str, names: frozenset[str]) -> bool:
        return word.removesuffix("'s").casefold() in names

    def _statement(self, text: str, start: int, end: int, whom: Whom, names: frozenset[str]) -> StatedClause | None:
        while start < end and text[start].isspace():
            start += 1
        lead = None if _FRONTED.match(text, start, end) else self._lead.match(text, start, end)
        start = lead.end() if lead else start
        while start < end and not text[start].isalnum():
            start += 1
        if text[end : end + 1] == "?" or text[end:].lstrip().startswith("?"):
            return None
        head_end = self._head_end(text, start, end)
        head = text[start:head_end]
        opening = _TOKEN.match(head)
        word = opening[0].lower() if opening else ""
        begins = self._start.match(head) or self._the.match(head) or _FRONTED.match(head) or self._is_name(word, names)
        if not begins or word in _NO_SUBJECT:
            return None
        short = len(head.split()) < 3 and not self._kind(head)
        if self._is_denied(head) or short or self._asks.match(head):
            return None
        first = _FRONTED.match(head)
        fronted = f" {in_their_words(first[1][:1].lower() + first[1][1:])}" if first else ""
        start, head = (start + first.end(), head[first.end() :]) if first else (start, head)
        subject = self._subject(head, start, whom, names)
        if subject is None:
            return None
        person, shown, rest = subject
        predicate = self._predicate(rest, shown)
        if predicate is None or not (self._lasts(predicate) or self._introduces(predicate, shown, person)):
            return None
        said = english_cue("opened").split(f"{shown} {predicate.text}{fronted}".strip(), maxsplit=1)[0]
        if len(said.split()) > MOST_WORDS or english_cue("dangles").search(said):
            return None
        lasts = self._habit.search(said) or self._changes.search(said)
        time = "change" if predicate.tense == _PAST else "" if lasts or predicate.tense == _PERFECT else "plan"
        said = said[:1].upper() + said[1:].rstrip(" ,;:-")
        said += ")" * (said.count("(") - said.count(")"))  # the closing one stands behind the clause
        return StatedClause(
            start, head_end, person, said + ("" if said.endswith((".", "!")) else "."), self._category(predicate), time
        )

    def _head_end(self, text: str, start: int, end: int) -> int:
        """Return where the clause ends: behind the last of its parts that says something concrete."""
        named = _APPOSITION.match(text, start, end)
        inside = named.end() - start if named else 0
        parts = [found.start() for found in re.finditer(r"(?:[;()–—…!?]|[,:](?!\d))+|\.{2,}|\s-+\s", text[start:end])]
        parts = [place for place in parts if place >= inside]
        edges = [start + place for place in parts] + [end]
        last = edges[0]
        for first, after in pairwise(edges):
            part = text[first:after]
            if (
                self._is_denied(part)
                or not self._concrete(part.strip(" ,;:()–—…!?-."))
                or len(text[start:after].split()) > MOST_WORDS
            ):
                break
            last = after
        while last > start and not (text[last - 1].isalnum() or text[last - 1] in "%)\"'+#"):
            last -= 1
        return last

    def _subject(
        self, head: str, start: int, whom: Whom, names: frozenset[str]
    ) -> tuple[MentionedPerson, str, str] | None:
        """Return the subject of a clause, its words in the text, and the predicate."""
        mine = re.match(r"(?i)(?:i|we)(?='?(?:m|ve|re)?\b)", head)
        if mine and re.match(r"(?i)(?:i|we)(?:'?(?:m|ve)|'re)?\s", head):
            return ME, "", head[mine.end() :]
        pronoun = re.match(r"(?i)(he|she)(?='?s?\b)", head)
        if pronoun and re.match(r"(?i)(?:he|she)(?:'?s)?(?!['\w])", head):
            person = whom(pronoun[1], start)
            return (
                None if person is None or person.is_self else (person, _label(person), _opened(head[pronoun.end() :]))
            )
        words = _TOKEN.findall(head)
        if words and self._is_name(words[0], names):
            person = whom(words[0].removesuffix("'s"), start)
            if person is None or person.is_self:
                return None
            name = re.match(r"[^\W_][\w-]*", head)
            if name is None or (words[0].endswith("'s") and self._owns([word.lower() for word in words[1:8]])):
                return None  # "Sam's exam got moved" says nothing of Sam
            return person, _label(person), _opened(head[name.end() :])
        own = re.match(r"(?i)(?:my|our)\s+", head) or self._the.match(head)
        if own or (words and words[0].lower().removesuffix("'s") in self._bare):
            return self._by_noun(head, start, whom)
        return None

    def _owns(self, following: Sequence[str]) -> bool:
        """Whether "'s" before these words means whose: "my sister's name is", "my brother's exam got moved"."""
        if self._roles.intersection(following[:1]):
            return True  # "my wife's dentist", which is hers; a dentist herself is "a dentist"
        if self._owned.intersection(following[:2]) and following[0] not in _NO_NOUN:
            return True  # "Luna's blood test from Monday"
        dated = following[1:2] in (["on"], ["from"], ["in"])  # "Luna's creatinine on 3 March was"
        if any(word in ("is", "are", "was") for word in following[: None if dated else 4]):
            return True
        verb = next((at for at, word in enumerate(following) if word in _OWNED_VERBS or self._is_verb(word)), 0)
        return 0 < verb < 3 and not any(word in _NO_NOUN or self._is_adverb(word) for word in following[:verb])

    def _by_noun(self, head: str, start: int, whom: Whom) -> tuple[MentionedPerson, str, str] | None:
        """Return the subject of "my sister lives in Rome" and "my hip is being replaced"."""
        tokens = list(_TOKEN.finditer(head))
        for place, token in enumerate(tokens[1:7] if len(tokens) > 1 else (), 1):
            low = token[0].lower()
            contracted = low.endswith("'s") and len(tokens) > place + 1
            contracted = contracted and not self._owns([other[0].lower() for other in tokens[place + 1 : place + 8]])
            if low in ("i", "me") and tokens[place - 1][0].lower() in ("and", "n"):
                continue
            if low in _PRONOUNS or (low in self._denied and place > 1):
                return None
            if not contracted and place == 1 and low not in _FINITE:
                continue
            if not (contracted or low in _FINITE or self._is_verb(low)):
                continue
            cut = token.end() - 2 if contracted else token.start()
            noun = head[:cut].strip(" ,")
            rest = "'s " + head[token.end() :].strip() if contracted else head[cut:]
            return self._named_by(noun, rest, start, whom)
        first = tokens[0][0].lower()
        if first.endswith("'s") and first[:-2] in self._bare:
            return self._named_by(first[:-2], "'s " + head[tokens[0].end() :].strip(), start, whom)
        return None

    def _named_by(self, noun: str, rest: str, start: int, whom: Whom) -> tuple[MentionedPerson, str, str] | None:
        words = noun.lower().split()
        if any(word.strip(",") in self._my_deny for word in words[1:]) or words[-1] in self._around:
            return None
        if any(word.endswith("'s") and word[:-2] in self._around for word in words):
            return None  # "my boss's husband"
        if re.search(r"(?i)\band (?:i|me)$", noun):
            shown = in_their_words(noun)
            return ME, shown, _opened(rest)
        person = whom(noun, start) if "'s" not in noun and "," not in noun and " and " not in noun else None
        if person is not None and not person.is_self:
            return person, _label(person), _opened(rest)
        if not any(self._kind(word) for word in words):
            return None
        noun += "," if ", " in noun and "'s" not in noun else ""
        shown = in_their_words(noun) if words[0] in ("my", "our") else f"their {re.sub('(?i)^the ', '', noun)}"
        return ME, shown, _opened(rest)

    def _is_verb(self, low: str) -> bool:
        base = low[:-1] if low.endswith("s") else low
        return low in self._past or base in self._second or (low.endswith("ed") and len(low) > 4) or low in _NOT

    def _predicate(self, rest: str, shown: str) -> _Predicate | None:
        """Parse the predicate; *shown* is empty where the user speaks as "I"."""
        tokens = [
            (found[0], found.start(), found.end()) for found in re.finditer(r"'?[^\W_](?:[\w'.&/+-]*[\w+])?", rest)
        ]
        me = not shown
        adverbs: list[str] = []
        place = 0
        if tokens and tokens[0][0].lower() in ("'m", "m", "'ve", "ve", "'re", "'s"):
            following = tokens[1][0].lower() if len(tokens) > 1 else ""
            return self._contracted(tokens[0][0].lower(), following, rest[tokens[0][2] :], shown)
        while place < len(tokens) and self._is_adverb(tokens[place][0].lower()):
            if tokens[place][0].lower() in self._adverbs:
                adverbs.append(tokens[place][0].lower())
            place += 1
        if place >= len(tokens):
            return None
        word, _, after = tokens[place]
        low = word.lower()
        tail = rest[after:]
        before = " ".join(adverbs)
        if low in ("am", "are", "is", "be") or (low in ("was", "were")):
            verb = _BE.get(low, low) if me else low
            verb = "was" if me and low == "were" else verb
            return self._composed(tail, f"{before} {verb}".strip(), _PAST if low in ("was", "were") else _BEING, me)
        if low in ("have", "has", "had", "haven't", "havent", "hasn't"):
            after_have = _TOKEN.search(tail)
            perfect = after_have is not None and low != "had" and self._is_participle(after_have[0].lower())
            verb = _NOT.get(low, THIRD.get(low, low) if me else low)
            tense = _PERFECT if perfect else _PAST if low == "had" else _PRESENT
            return self._composed(tail, f"{before} {verb}".strip(), tense, me, verb="have")
        if low in ("will", "'ll", "won't", "wont"):
            return self._composed(tail, f"{before} {_NOT.get(low, 'will')}".strip(), _FUTURE, me, verb="will")
        if low in ("can", "can't", "cant", "cannot"):
            verb = "can" if low == "can" else "cannot"
            return self._composed(tail, f"{before} {verb}".strip(), _ABILITY, me, verb=verb)
        if low in ("don't", "dont", "do", "doesn't", "doesnt", "didn't", "didnt") and (
            low != "do" or re.match(r"\s+not\b", tail)
        ):
            tail = re.sub(r"^\s+not\b", "", tail)
            after_not = _TOKEN.search(tail)
            verb = after_not[0].lower() if after_not else ""
            return self._composed(
                tail,
                f"{before} {_NOT.get(low, 'does not') if me else low}".strip(),
                _PAST if low.startswith("did") else _PRESENT,
                me,
                verb=verb,
            )
        return self._by_verb(word, before, tail, shown)

    def _by_verb(self, word: str, before: str, tail: str, shown: str) -> _Predicate | None:
        """Parse a predicate whose first verb is no auxiliary."""
        me, low = not shown, word.lower()
        if low == "no" and (longer := re.match(r"(?i)\s+longer\s+", tail)):
            inner = self._predicate(tail[longer.end() :], shown)
            return inner and replace(inner, text=f"no longer {inner.text}")
        if not word.replace("-", "").replace("'", "").isalpha() or not low.isascii() or low in _NO_VERB:
            return None
        emphasis = _TOKEN.match(tail.lstrip()) if low in ("do", "does", "did") else None
        if emphasis is not None and emphasis[0].lower() in self._second:
            return self._predicate(tail if me else f"{in_third(emphasis[0])}{tail.lstrip()[emphasis.end() :]}", shown)
        if low in self._past or low.endswith("ed"):
            either = low in ("read", "put", "cut", "set", "let", "hit", "cost", "hurt", "split", "bet", "shut")
            if either and self._habit.search(tail) is None and not before:
                return None  # today or then: the form does not tell
            verb = in_third(low) if either and me else low
            return self._composed(tail, f"{before} {verb}".strip(), _PRESENT if either else _PAST, me, verb=low)
        if me and low.endswith("ing") and low not in ("sing", "bring", "ring", "swing", "cling"):
            return None
        return self._composed(tail, f"{before} {in_third(low) if me else low}".strip(), _PRESENT, me, verb=low)

    def _contracted(self, verb: str, following: str, tail: str, shown: str) -> _Predicate | None:
        """Return the predicate of "'s allergic" and "'ve got"."""
        past = following in self._participles or (following.endswith("ed") and following not in self._adjectives)
        has = verb in ("'ve", "ve") or (verb == "'s" and past)
        many = re.search(r"(?i)\band (?:they|i)$", shown) is not None
        full = ("have" if many else "has") if has else ("are" if many else "is")
        return self._composed(tail, full, _PERFECT if has else _BEING, not shown)

    def _is_adverb(self, low: str) -> bool:
        return low in self._adverbs or low in self._empty or (low.endswith("ly") and low not in _LY)

    def _is_participle(self, low: str) -> bool:
        return low in self._participles or (low.endswith("ed") and low not in self._adjectives) or low == "not"

    def _composed(self, tail: str, verb_text: str, tense: str, me: bool, verb: str = "") -> _Predicate | None:
        tail = re.sub(r"(?i)(?<!\bby) myself(?=,|$)", "", tail.strip())
        if _NO_TAIL.match(tail):
            return None
        if tense == _BEING:
            found = re.match(
                r"(?:(?:also|still|currently|now|just|actually|really|always|not) )*([\w'-]+)", tail, re.IGNORECASE
            )
            verb = found[1].lower() if found else ""
        elif tense in (_PERFECT, _FUTURE, _ABILITY):
            found = re.match(
                r"(?:(?:also|still|been|just|always|never|not|actually|really|only|be|all|both|now|recently|already) )*([\w'-]+)",
                tail,
                re.IGNORECASE,
            )
            verb = found[1].lower() if found else verb
        said = in_their_words(tail)
        said = (
            self._joined(said) if me and (tense == _PRESENT or verb == "got") else said
        )  # "I've got asthma and use …"
        said = re.sub(
            r"(?i)^(?:just|actually|really|basically|literally|honestly|like(?= (?:i|we|really|just|so)\b)) ", "", said
        )
        return _Predicate(tense, verb, f"{verb_text} {said}".strip(), tail)

    def _joined(self, tail: str) -> str:
        """Put the second verb into the third person, too: "makes soap and sells it"."""

        def third(found: re.Match[str]) -> str:
            return found[1] + in_third(found[2])

        return re.sub(
            rf"((?:\band|\bor|\bbut|,) (?:(?:also|then|sometimes|often|mostly|usually|never|always|only) )?)({'|'.join(sorted(self._second))})(?= \w)(?! (?:is|are|was|were|has|have|does|and|or)\b)",
            third,
            tail,
        )

    def _lasts(self, predicate: _Predicate) -> bool:
        """Whether a predicate states something concrete that lasts."""
        rest, verb, tense = predicate.rest, predicate.verb, predicate.tense
        whole = predicate.text
        if self._is_denied(predicate.text) or not rest:
            return False
        plain = self._idle.sub(" ", whole)
        kind, name = self._kind(plain), self._name(rest)
        timed = self._time.search(plain) is not None
        number = self._number.search(plain) is not None
        thing = bool(kind) or name
        if tense == _BEING:
            if self._moment.match(rest):
                return False
            if verb.endswith("ing") and verb not in _NO_DOING:
                if verb == "going":
                    return timed and thing and re.match(r"(?i)going (?:to|on|for)\b", rest) is not None
                enough = len(rest.split()) > 2 or kind == "health"
                return thing and ((verb in self._doing and enough) or (timed and verb not in self._denied))
            if re.match(r"(?i)(?:terrified|scared|afraid|frightened|petrified) of \w", rest):
                return True
            placed = re.match(r"(?i)(?:in|at|on) ", rest) is not None
            return bool(kind) or (name and not placed) or (number and (timed or not placed))
        if verb in self._denied:
            return False
        if tense == _PERFECT:
            if self._moment.match(re.sub(r"(?i)^been ", "", rest)):
                return False
            long = timed and re.search(r"(?i)\b(?:since|for|all my life)\b", plain) is not None
            return long or (
                not re.match(r"(?i)\W*(?:(?:also|just|already|always) )*(?:been|just) (?:\w+ly )?\w+ing\b", rest)
                and thing
            )
        if tense == _PAST:
            if verb in ("got", "had", "have"):
                return kind in (_GOT if verb == "got" else _HAD)
            return bool(kind and _DATED.search(plain)) or (
                self._life.search(whole) is not None and (thing or timed or number)
            )
        if tense in (_FUTURE, _ABILITY):
            return (timed and thing) if tense == _FUTURE else (verb in _ABLE and bool(kind))
        habit = self._habit.search(plain) is not None
        if verb.rstrip("s") == "need":
            return habit and bool(kind)  # "needs insulin twice a day", not "need coffee"
        if verb == "have" or verb in self._weak or verb.rstrip("s") in self._weak:
            return bool(kind) or (number and verb == "have") or (habit and len(rest.split()) > 2)
        return thing or number or habit or timed

    def _introduces(self, predicate: _Predicate, shown: str, person: MentionedPerson) -> bool:
        """Whether the subject is a relative, pet or colleague with a name: "my lad Kieran made the team"."""
        words = [word.strip(",") for word in shown.split()]
        if not person.is_self or len(words) < 3 or not any(word[:1].isupper() for word in words[1:]):
            return False
        plain = not self._moment.match(predicate.rest) and predicate.verb not in self._denied
        return plain and len(predicate.rest.split()) > 1 and any(self._kind(word) for word in words[1:])

    def _is_denied(self, words: str) -> bool:
        return self._deny.search(_AND_IT.sub(" ", words)) is not None

    def _kind(self, text: str) -> str:
        """Return the kind of the first noun of everyday life in *text*, empty for none."""
        for found in _TOKEN.finditer(text):
            low = found[0].lower().removesuffix("'s")
            kind = self._nouns.get(low) or self._nouns.get(low.removesuffix("s") if len(low) > 4 else "")
            if kind:
                return kind
        return ""

    @staticmethod
    def _name(text: str) -> bool:
        """Whether a word in *text* has the capital of a name."""
        if text.isupper():
            return False
        return (
            re.search(
                r"(?<!\w)(?!I\b|God\b|OK\b|TV\b|LOL\b|Mondays?\b|I'm\b|I've\b|I'll\b|I'd\b|CV\b|PM\b|AM\b|A\b)[A-ZÀ-Þ][\w'’-]*\w",
                text,
            )
            is not None
        )

    def _concrete(self, text: str) -> bool:
        plain = self._idle.sub(" ", text)
        return bool(
            self._kind(plain)
            or self._name(plain)
            or self._number.search(plain)
            or self._time.search(plain)
            or self._habit.search(plain)
        )

    def _adds(self, text: str, found: StatedClause, taken: Sequence[tuple[int, int]]) -> bool:
        """Whether a clause says something concrete beside what was read in it."""
        inside = [(max(found.start, a), min(found.end, b)) for a, b in taken if a < found.end and b > found.start]
        if not inside:
            return True
        left = list(text[found.start : found.end])
        for a, b in inside:
            left[a - found.start : b - found.start] = " " * (b - a)
        return self._concrete("".join(left))

    def _without_read(self, text: str, found: StatedClause, taken: Sequence[tuple[int, int]]) -> StatedClause:
        """Return the second half of a clause whose first half was read as a fact; other clauses as they are."""
        first = max((b for a, b in taken if a <= found.start < b < found.end), default=0)
        rest = _SECOND_HALF.match(text, first, found.end) if first else None
        if rest is None:
            return found
        named = _NAMED_DOES.match(rest["half"])
        verb = named[1].lower() if named is not None else ""
        about = verb in _FINITE or self.is_verb(verb.removesuffix("s"))
        alone = len(rest["half"].split()) < 4 and _I_AM.match(text, found.start) and not named
        if not about and not (alone and self._concrete(rest["half"])):
            return found
        said = rest["half"] if about else f"Is {rest['half']}"
        return replace(found, start=rest.start("half"), text=in_their_words(said).rstrip(" ,;:-.") + ".")

    def _category(self, predicate: _Predicate) -> str:
        if predicate.tense == _PAST:
            return "history"
        if re.match(r"(?:does not |do not )?(?:love|like|hate|prefer|enjoy)", predicate.text):
            return "preference"
        kind = self._kind(predicate.text)
        if kind == "identity":
            return "identity"
        if kind == "tech":
            return "technical"
        return "behavioral" if self._habit.search(predicate.text) else "context"


def _forms(lemmas: frozenset[str]) -> frozenset[str]:
    """Return lemmas in the forms that a clause may have."""
    found = set(lemmas)
    for word in lemmas:
        stem = word.removesuffix("e")
        found |= {in_third(word), f"{stem}ing", f"{stem}ed", f"{word}{word[-1]}ing", f"{word}{word[-1]}ed"}
        found |= {f"{word[:-1]}ied"} if word.endswith("y") else set()
    return frozenset(found)


def _opened(rest: str) -> str:
    """Return a predicate with a contracted verb set off: "s vegan" after a name is "'s vegan"."""
    return re.sub(r"^(?:'?s)\b", "'s", rest.strip(" ,")) if re.match(r"'?s\b", rest) else rest.strip(" ,")


def _label(person: MentionedPerson) -> str:
    return person.label or f"their {person.relation}"


def _spelled(source: str) -> str:
    """Return an expression of the lists: line breaks are layout, a space is any white space."""
    return re.sub(r"\s*\n\s*", "", source.strip()).replace(" ", r"\s+")


@dataclass(frozen=True, slots=True)
class Verdict:
    """The modality of a match, and how much the words around it weaken it (1: not at all)."""

    modality: Modality
    weight: float = 1.0


def judge(
    rules: PatternLanguage, sentence: str, start: int, end: int, *, lead: bool = True, asked: bool = False
) -> Verdict | None:
    """
    Judge whether *sentence* asserts the match at characters *start* to *end*.

    None: the match is embedded in words that this cannot read ("the reason I live in …"), so nothing
    is claimed.  ``lead=False`` skips that test, for patterns that bind to no subject; ``asked=True`` takes words for true even inside a question
    ("where is my order #123?").
    """
    cue = cues(rules)
    before, after = sentence[:start], sentence[end:]
    if lead and not _leads(cue, before):
        return _embedded(cue, before)
    scope_start = _last(cue, "resets", before)
    scope = before[scope_start:]
    if _search(cue, "hypothetical", scope) and not _search(cue, "courtesy", scope):
        return Verdict("hypothetical")
    told_start = max(
        _new_clause(cue, sentence, scope_start, start), scope_start + scope.rfind(BLANK) + 1
    )  # a quotation ends a report
    if _is_report(cue, sentence, told_start, start) and not _search(cue, "trusted", before[told_start:]):
        return Verdict("reported")
    if _search(cue, "undone", after):
        return Verdict("hypothetical")
    if not asked and _asked(cue, sentence, start, end):
        return Verdict("question")
    weight = 0.7 if _search(cue, "hedge_after", after) or _search(cue, "hedge_before", before) else 1.0
    return Verdict("asserted", weight)


def _is_report(cue: dict[str, re.Pattern[str]], sentence: str, start: int, end: int) -> bool:
    """Whether a report begins between two places; its cue may look beyond: 说 is none before the name of a language."""
    pattern = cue.get("reported")
    return pattern is not None and any(found.end() <= end for found in pattern.finditer(sentence, start))


def _new_clause(cue: dict[str, re.Pattern[str]], sentence: str, start: int, end: int) -> int:
    """Return where the last clause begins that opens between two places; its cue may look beyond."""
    found = cue["new_clause"].finditer(sentence, start) if "new_clause" in cue else ()
    return max((min(one.end(), end) for one in found if one.start() < end), default=start)


def _leads(cue: dict[str, re.Pattern[str]], before: str) -> bool:
    """Whether a main clause may begin after *before*."""
    opening = before[_last(cue, "delimiter", before) :].strip(" \t\"'*_~" + BLANK)
    if not opening:
        return True
    lead = cue.get("lead")
    return bool(lead and len(opening) <= 80 and lead.fullmatch(opening))


def _embedded(cue: dict[str, re.Pattern[str]], before: str) -> Verdict | None:
    scope = before[_last(cue, "resets", before) :]
    if _search(cue, "reported", scope):
        return Verdict("reported")
    if _search(cue, "hypothetical", scope):
        return Verdict("hypothetical")
    return None


def _asked(cue: dict[str, re.Pattern[str]], sentence: str, start: int, end: int) -> bool:
    """Whether the match lies in the part of the sentence that asks."""
    asks = sentence.rstrip(" \t\"')*_" + BLANK).endswith(("?", "？")) and not _search(cue, "reminder", sentence[end:])
    if (opener := cue.get("question")) is None:
        return asks
    begin = _first_word(cue, sentence)  # "guess what" asks nothing
    if opener.search(sentence, 0, begin):  # "can you remember that" asks for nothing but that
        return False
    asides = [found.span() for found in cue["aside"].finditer(sentence)] if "aside" in cue else []
    found = (one for one in opener.finditer(sentence, begin) if not any(at <= one.start() < to for at, to in asides))
    first = next(found, None)  # a relative pronoun asks nothing
    if first is None and _search(cue, "amazed", sentence[begin:]):
        return False  # "and i quite like it now??"
    if first is None or not (asks or (first.start() <= begin and not _search(cue, "when_clause", sentence[begin:]))):
        return asks and not _search(cue, "tail_question", sentence[end:])
    if start < first.start():
        return False
    stated = cue["presupposed"].finditer(sentence) if "presupposed" in cue else ()
    return max((found.end() for found in stated if found.start() < start), default=0) <= first.end()


def _first_word(cue: dict[str, re.Pattern[str]], sentence: str) -> int:
    """Return where the first clause begins after words like "so" and "hi"."""
    lead = cue.get("lead")
    found = lead.match(sentence) if lead else None
    return found.end() if found else len(sentence) - len(sentence.lstrip())


def _search(cue: dict[str, re.Pattern[str]], name: str, text: str) -> bool:
    pattern = cue.get(name)
    return bool(pattern and pattern.search(text))


def _last(cue: dict[str, re.Pattern[str]], name: str, text: str) -> int:
    """Return the end of the last occurrence of cue *name* in *text*; 0 when there is none."""
    pattern = cue.get(name)
    place = 0
    if pattern:
        for found in pattern.finditer(text):
            place = found.end()
    return place


def only_intends(rules: PatternLanguage, before: str) -> bool:
    """Whether all that supposes the words after *before* says that they are wanted or planned."""
    cue = cues(rules)
    if "intends" not in cue:
        return False
    scope = (
        before[max((found.end() for found in cue["resets"].finditer(before)), default=0) :]
        if "resets" in cue
        else before
    )
    wishes = [found.span() for found in cue["intends"].finditer(scope)]
    return all(any(a <= one.start() < b for a, b in wishes) for one in cue["hypothetical"].finditer(scope))


def hangs_on_luck(rules: PatternLanguage, sentence: str) -> bool:
    """Whether a sentence supposes nothing but that all goes well: "if all goes well we move in May"."""
    cue = cues(rules)
    luck = [found.span() for found in cue["proviso"].finditer(sentence)] if "proviso" in cue else []
    supposed = [found.start() for found in cue["hypothetical"].finditer(sentence)]
    return bool(luck) and all(any(a <= at < b for a, b in luck) for at in supposed)
