"""Known values: what is believed, by the names under which a later message may end it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from ...types import Candidate, Fact, FactKind
from ..clauses import clause_reader
from ..grammar import load_language

_BARE = frozenset({"true", "false", "yes", "no"})
# What a value says beside the thing itself: "go to spin class every Wednesday", "move to Lisbon in the autumn".
_DOING = re.compile(
    r"^(?:(?:go(?:es|ing)?(?: (?:to|for))?|play(?:s|ing)?|do(?:es|ing)?|tak(?:es?|ing)|attend(?:s|ing)?|visit(?:s|ing)?|mov(?:es?|ing) to|"
    r"fly(?:ing)? to|travel(?:l?ing)? to|learn(?:s|ing)?(?: to)?|buy(?:ing)?|becom(?:e|ing)|be|gett?(?:ing)?|adopt(?:ing)?|start(?:ing)?|join(?:ing)?|open(?:ing)?|run(?:ning)?|rid(?:es?|ing)|drink(?:s|ing)?|eat(?:s|ing)?|smok(?:es?|ing)|watch(?:es|ing)?|read(?:s|ing)?|ha(?:ve|s|ving)|the|an?|my) )+",
    re.IGNORECASE,
)
_GO = re.compile(r"^go(?:es|ing)? (?=\w+ing\b)", re.IGNORECASE)
_TAIL = re.compile(
    r" (?:every|each|on|in|at|twice|once|three times|next|this|with|for|after|before|by|\() ?.*$", re.IGNORECASE
)
_DOINGS = frozenset(("schedule", "plan", "trip", "goal", "hobby", "appointment", "project"))
_BARE_DOING = re.compile(
    r"(run|jog|swim|cycle|walk|meditate|row|hike|journal|smoke|commute|fast) (?:\d|every|each|daily|twice|once|three)",
    re.IGNORECASE,
)
_BRANDS = frozenset(("possession", "tech"))
_LEAST_CHARS = 3
_LETTERS = re.compile(r"[^\W\d_]{2}")
_ARTICLE = re.compile(r"^(?:the|an?|my|our) ", re.IGNORECASE)
_STREET = re.compile(
    r"(?P<name>[A-Z][\w'-]+) (?:Street|St|Road|Rd|Avenue|Ave|Lane|Square|Park|Hill|FC|Primary|School|University|Hospital|Ltd|Inc)"
)
# The thing that a sentence in the third person is about: "inhaler" in "Uses a blue inhaler."
_OBJECT = re.compile(
    r"^(?:Is (?:on|in|doing|having|taking|reading|watching|learning|saving (?:up )?for|training for|a member of|with|expecting) |[A-Z]\w+(?:s|es) (?:(?:for|in|to|on|with|at|a lot of|regularly) )?)"
    r"(?:(?:the|an?|their|some|another|one|two|three) )*(?P<thing>[\w'-]+(?: (?!(?:in|on|at|for|to|with|of|from|every|each|called|named|and|or|that|who|which|since|because|but|when|while|by|near|after|before|during|about|is|are|was|has|as|once|twice|again|now|also|very|really|regularly)\b)[\w'-]+){0,3})",
)
_NO_THING = frozenset(
    "time times day days week weeks month months year years lot lots bit thing things people person something someone anything everything home work life way "
    "kind sort part place problem problems trouble issue issues difficulty good well much more less most fun well-being family friends child children".split()
)
# "A glass of wine" is wine.
_MEASURE = re.compile(
    r"^(?:\w+ )?(?:glass(?:es)?|cups?|cans?|bottles?|bowls?|pints?|packs?|shots?|plates?) of ", re.IGNORECASE
)
# "A low carb diet" is low carb.
_KIND_BEHIND = re.compile(
    r" (?:an?|the|their) (?P<thing>[\w'-]+(?: [\w'-]+){0,2}) (?:diet|class|classes|lessons?|course|club|team|league|membership|subscription|account|plan|program|gig|group)(?=[.,]| (?:on|at|in|every|with)\b)"
)
_LONG_NAME = re.compile(r"\b[A-Z]\w+(?: [A-Z]\w+){2,4}")
_AT_WORK = re.compile(
    r"^(?:Works?|Volunteers?|Interns?|Has a [\w ]*job|Is an? [\w ]+?)\b.*?\b(?:at|for|with) (?:the |an? |their )*(?P<place>[\w'&-]+(?: [\w'&-]+)?)(?=[.,]| in | on | since )"
)
_FIRST_VERB = re.compile(r"(?P<base>[A-Z][a-z]{2,}?)(?:(?<=[sxzho])es|s) ")
_NO_DOINGS = frozenset(
    "Live Work Like Love Hate Prefer Get Want Use Wear Own Drive Make Take Need Suffer Earn Pay Rent Share Keep Speak Know Enjoy Avoid Eat Drink Run Go Do Sleep Wake Start".split()
)


@lru_cache(maxsize=1024)
def things_named(text: str) -> tuple[str, ...]:
    """Return the words by which a later message may name what a statement is about: its names and its nouns."""
    reader = clause_reader(language) if (language := load_language("en")) is not None else None
    return reader.things(text) if reader is not None else ()


def _objects(text: str) -> tuple[str, ...]:
    """Return the object of a sentence, whole and by its last word, where that says what it is."""
    found = _OBJECT.match(text)
    whole = found["thing"] if found else ""
    last = whole.split()[-1] if whole else ""
    if named := re.search(r"\b(?:called|named) ([A-Z]\w+)", text):
        return (named[1], *([whole, last] if len(last) >= _LEAST_CHARS and last.lower() not in _NO_THING else []))
    if len(last) < _LEAST_CHARS:
        return (whole,) if whole[:1].isupper() else ()
    return () if last.lower() in _NO_THING or last.isdigit() else (whole, last)


def _other_words(text: str) -> tuple[str, ...]:
    """Return what else a message may call the thing of a sentence: its initials, its place of work, its doing."""
    found = [
        initials for name in _LONG_NAME.findall(text) if len(initials := "".join(word[0] for word in name.split())) > 2
    ]
    if doing := re.match(r"Is (?P<stem>[a-z]{2,}?)ing ", text):
        found += [
            f"{doing['stem']}ing",
            *(form for form in (doing["stem"], f"{doing['stem']}e") if len(form) > _LEAST_CHARS),
        ]
    if kind := _KIND_BEHIND.search(text):
        found.append(kind["thing"])
    if place := _AT_WORK.search(text):
        found += [place["place"], place["place"].split()[-1]]
    if (verb := _FIRST_VERB.match(text)) and verb["base"] not in _NO_DOINGS:
        found += [form for form in _doing(verb["base"]) if len(form) > _LEAST_CHARS]
    return tuple(found)


def _doing(word: str) -> tuple[str, ...]:
    """Return the forms of a doing or a trade that a message may name: "nurse", "nursing"; "meditate", "meditation"."""
    stem = word.removesuffix("e")
    return (word, f"{stem}ing", f"{stem}ion") if word.endswith("ate") else (word, f"{stem}ing")


@dataclass(frozen=True, slots=True)
class KnownValue:
    """
    A known attribute: subject, address, value, and whether its address holds one value only.

    ``text`` is its sentence, ``seq`` the last message of the conversation that stated it (0: none).
    """

    subject: str
    category: str
    key: str
    value: str
    alone: bool = False
    text: str = ""
    seq: int = 0
    kind: FactKind = "attribute"

    @property
    def words(self) -> str:
        """The name a message would use: the value, or the key where it says more (``dietary/vegan = true``)."""
        if self.kind == "statement":
            return next(iter(things_named(self.text)), "")
        own = self.value if _LETTERS.search(self.value) and self.value not in _BARE else ""
        named = self.key.replace("_", " ") if self.category in ("dietary", "medication") else own
        return _ARTICLE.sub("", named)

    @property
    def names(self) -> tuple[str, ...]:
        """All names a message may use, the fullest first: "Honda Civic", "Civic"."""
        if self.kind == "statement":
            return tuple(dict.fromkeys((*things_named(self.text), *_objects(self.text), *_other_words(self.text))))
        words, found = self.words, [self.words]
        if self.category in _DOINGS:
            short, bare = _DOING.sub("", words), _TAIL.sub("", words)
            found += [short, _TAIL.sub("", short), bare, _GO.sub("", bare)]
            found = [_ARTICLE.sub("", name) for name in found]
            found += [_MEASURE.sub("", name) for name in found]
            found += [form for name in found if name.isalpha() for form in _doing(name)]
        if self.category == "schedule" and (plain := _BARE_DOING.match(words)):
            verb = plain[1].lower()
            doubled = verb + verb[-1] if re.fullmatch(r"[^aeiou]*[aeiou][^aeiouwxy]", verb) else verb.removesuffix("e")
            found.append(f"{doubled}ing")  # "run 5 km every day" ends in "I stopped running"
        if self.category in _BRANDS and " " in words:
            first, last = words.split()[0], words.split()[-1]
            found += [last] if last.isalpha() and len(last) > _LEAST_CHARS else []
            found += [first] if first[:1].isupper() else []
        if self.category == "appointment":
            kind = self.key.replace("_", " ")
            found += [kind, re.sub(r"(?:'s)? appointment$", "", kind)]
        if place := _STREET.fullmatch(words):
            found.append(place["name"])
        least = _LEAST_CHARS if words.isascii() else 2
        return tuple(dict.fromkeys(name for name in found if len(name) >= least and _LETTERS.search(name)))

    @property
    def address(self) -> tuple[str, str, str]:
        """Its subject, category and key."""
        return self.subject, self.category, self.key


def known_values(believed: Iterable[Fact | Candidate], conversation: str = "") -> list[KnownValue]:
    """Return the attributes and the rules' statements among *believed*, each once, without those that were retracted."""
    found: dict[tuple[str, ...], KnownValue] = {}
    for one in believed:
        if (
            one.kind == "statement"
            and one.source.startswith("rules ")
            and (things_named(one.text) or _objects(one.text))
        ):
            where = (
                [one.seq]
                if isinstance(one, Candidate)
                else [e.seq for e in one.evidence if e.conversation == conversation]
            )
            said = KnownValue(
                one.subject, one.category, "", one.text, False, one.text, max(where, default=0), "statement"
            )
            found[one.subject, one.category, "", one.text] = said
        if one.kind != "attribute":
            continue
        address = (one.subject, one.category, one.key)
        if isinstance(one, Candidate):
            if one.op == "retract":
                found = {
                    place: other
                    for place, other in found.items()
                    if place[:3] != address or (one.value and other.value != one.value)
                }
                continue
            seq, alone = one.seq, False
        else:
            seq = max((e.seq for e in one.evidence if e.conversation == conversation), default=0)
            alone = one.cardinality != "multi"
        found[*address, one.value] = KnownValue(*address, one.value, alone, one.text, seq)
    return list(found.values())


def without_ended(extracted: Iterable[Candidate], endings: Iterable[Candidate]) -> list[Candidate]:
    """
    Return *extracted* without the statements that only say what *endings* say: "I gave up the gym" ends the gym.

    Such a statement shares characters with an ending, or names what it ends.
    """
    over = [one for one in endings if one.op == "retract"]
    return [one for one in extracted if one.kind != "statement" or not any(_says_end(one, end) for end in over)]


def _says_end(one: Candidate, end: Candidate) -> bool:
    """Whether a statement is the one that says an ending."""
    if one.start < end.start + len(end.quote) and end.start < one.start + len(one.quote):
        return True
    ended = f"{end.key.replace('_', ' ')} {end.value}" if end.kind == "attribute" else end.text
    names = {
        name for name in (*things_named(f"- {ended}"), *things_named(f"The {end.value}"), end.value) if len(name) > 3
    }
    return any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", one.text, re.IGNORECASE) for name in names)
