"""
Rendering of untrusted text as lines that cannot break out of their section.  Pure.

An item is one JSON string on one line.  Everything that could end a line, close a section, open
a role, form a special token or hide from a reader is written as a ``\\uXXXX`` escape, visibly;
letters of every language stay as they are, and so do brackets and backticks that form no such token.  Nothing is stripped and nothing is folded, so `parse_line`
gives back exactly the item that `render_line` was given.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from json.encoder import encode_basestring

from . import dataclass, expression

# What JSON itself leaves as it is and we do not, by code point so that no Python's Unicode tables matter:
_ESCAPED = expression(
    "["
    "<>|"  # tags, <|special|> tokens
    "\u1fef\ufe47\ufe48\ufe60\ufe64\ufe65\uff06\uff1c\uff1e\uff3b\uff3d\uff40\uff5c"  # what compatibility folding turns into those
    "\x7f-\x9f\u2028\u2029"  # controls and line ends that are not "\n"
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"  # invisible, or turning text round
    "\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"  # tag characters, variation selectors
    "\ue000-\uf8ff\U000f0000-\U0010ffff"  # private use: nobody knows what it shows
    "\ud800-\udfff"
    "]"
    "|&(?=#|(?i:lt|gt|amp|quot)|[A-Za-z][A-Za-z0-9]{1,30};)"  # entities; "Q&A" stays as it is
    "|\\[(?=/?[A-Za-z0-9_ -]*[A-Z]{2}[A-Za-z0-9_ -]*\\])"  # [INST], [/INST], [gMASK]; other brackets open nothing
    "|`{3,}"  # a code fence; fewer open nothing that the end of the line does not close
)
_ASCII_ESCAPED = ("<", ">", "|", "&", "[", "```", "\x7f")
_NAME = expression("[a-z][a-z_]{0,40}")


def render_line(item: str) -> str:
    """
    Render *item* as one line that `parse_line` reads back exactly.

    Lone surrogates, which no store holds, become U+FFFD.
    """
    text = encode_basestring(item)
    if text.isascii() and not any(map(text.__contains__, _ASCII_ESCAPED)):
        return text  # most text; several times as fast as the pattern
    return _ESCAPED.sub(_escape, text)


def parse_line(text: str) -> str:
    """
    Return the item that *text* was rendered from.

    Raises:
        ValueError: `render_line` never writes such a line.
    """
    item = json.loads(text)
    if not isinstance(item, str) or render_line(item) != text:
        raise ValueError("not a rendered line")
    return item


def render_block(name: str, items: Sequence[str], preamble: str = "") -> str:
    """Render a section: *preamble* (our own words), an opening tag, a line an item, a closing tag."""
    return "\n".join(block_lines(name, [render_line(item) for item in items], preamble))


def block_lines(name: str, lines: Sequence[str], preamble: str = "") -> list[str]:
    """Return the lines of a section from items that are rendered already."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"a section is named with a-z and _, not {name!r}")
    return [*([preamble] if preamble else []), f"<{name}>", *lines, f"</{name}>"]


def parse_blocks(text: str) -> list[tuple[str, list[str]]]:
    """
    Return every section of *text* with its items, in order; text between sections is skipped.

    Raises:
        ValueError: a section is not closed, or holds a line that is no item.
    """
    found: list[tuple[str, list[str]]] = []
    lines = iter(text.split("\n"))
    for opening in lines:
        if not (opening.startswith("<") and opening.endswith(">") and _NAME.fullmatch(opening[1:-1])):
            continue
        name, items = opening[1:-1], []
        for item in lines:
            if item == f"</{name}>":
                break
            items.append(parse_line(item))
        else:
            raise ValueError(f"section {name} is not closed")
        found.append((name, items))
    return found


def _escape(found: re.Match[str]) -> str:
    if len(found.group()) > 1:
        return "\\u0060" * len(found.group())
    point = ord(found.group())
    if point < 0x10000:
        return "\\ufffd" if 0xD800 <= point <= 0xDFFF else f"\\u{point:04x}"
    point -= 0x10000
    return f"\\u{0xD800 + (point >> 10):04x}\\u{0xDC00 + (point & 0x3FF):04x}"


# Titles that one person holds, and what is no noun of one person, have no article.
_NO_ARTICLE = expression(
    r"(?:an?|the|my|our|head|chief|vice|president|owner|co-owner|staff|[A-Z]{2,4}|lead|part of|\w+ of)\b|.*[^s]s\.",
    re.DOTALL,
)
# A brand of car, or a contest to train for, without its article.
_BARE_NOUN = expression(
    r"(?P<before>Drives (?=(?:\d{4} )?[A-Z])|Is training for (?=(?:(?:half[- ])?marathon|ultra(?:marathon)?|(?:sprint )?triathlon|"
    r"ironman|\d+k|race|fight|match|tournament|competition)[. ]))(?P<noun>.+)",
    re.DOTALL,
)
# What one is allergic to is many, though it stands alone before "allergy".
_ONE_OF_MANY = expression(
    r"(Is allergic to )((?:pea|hazel|wal|chest|brazil |pine |tree )?nut|almond|cashew|pistachio|egg|lentil|chickpea|apple|banana|kiwi|peach|tomato|mango|"
    r"prawn|oyster|mussel|clam|cat|dog|horse|bee|wasp|bee sting|wasp sting)(\..*)",
    re.DOTALL,
)
_NO_DAY = expression(
    r"(?:[A-Z][a-z]+,? )?\d{4}\W*$|(?:January|February|March|April|May|June|July|August|September|October|November|December)\W*$"
)
_VOWEL = expression(r"(?!(?:uni|eu|one\b|use|ufo|ut[aei]))[aeiou]|(?:hour|honest|heir|8)", re.IGNORECASE)


# A particle of Korean as a template spells it: the form after a consonant, and the one after a vowel in brackets, or what stands after a consonant alone.
_PARTICLE = expression(
    r"(?<=[가-힣0-9])(?:을\(를\)|이\(가\)|와\(과\)|\((?:이|으)\)|(?<=[가-힣])[을를](?= (?:한다|배우|연주))|이(?=다\.$))"
)
_UNCOUNTED = expression(r"(?:surgery|breakfast|brunch|lunch|dinner|coffee|drinks)\b", re.IGNORECASE)
_AFTER_VOWEL = {
    "을(를)": "를",
    "이(가)": "가",
    "와(과)": "와",
    "(이)": "",
    "(으)": "",
    "을": "를",
    "를": "를",
    "이": "",
}
_AFTER_CONSONANT = {
    "을(를)": "을",
    "이(가)": "이",
    "와(과)": "과",
    "(이)": "이",
    "(으)": "으",
    "을": "을",
    "를": "을",
    "이": "이",
}


NO_LONGER, NEVER = "no longer true", "never true"


def change_note(since: str) -> str:
    """Return what is said beside a turn whose statement is not believed any more: what took its place, or that nothing did."""
    return since if since in (NO_LONGER, NEVER) else f"later replaced by: {since}"


def well_formed(text: str) -> str:
    """Return a sentence with the article or particles that its words take: "Works as a nurse.", "커피를 좋아한다."."""
    if "(" in text or text.endswith(("다.", "함.")):
        text = _PARTICLE.sub(_particle, text)
    return _with_article(text)


def _particle(found: re.Match[str]) -> str:
    """Return the form of a particle that goes with the syllable or digit before it."""
    before = found.string[found.start() - 1]
    if before.isdigit():
        consonant, liquid = before in "013678", before in "178"
    else:
        consonant, liquid = (final := (ord(before) - 0xAC00) % 28) > 0, final == 8
    if found[0] == "(으)" and liquid:  # "서울로"
        return ""
    return (_AFTER_CONSONANT if consonant else _AFTER_VOWEL)[found[0]]


def _with_article(text: str) -> str:
    """Return an English sentence with the article or plural that its noun takes: "Has an aunt.", "Drives a Corolla."."""
    if text.startswith("Was born on ") and _NO_DAY.match(text[12:]):
        return f"Was born in {text[12:]}"
    if text.startswith("Is a ") and _VOWEL.match(text[5:]):
        return f"Is an {text[5:]}"  # "Is an old labrador."
    if text.startswith("Owns a ") and _VOWEL.match(text[7:]):
        return f"Owns an {text[7:]}"
    if (bare := _BARE_NOUN.match(text)) is not None:
        return f"{bare['before']}{'an' if _VOWEL.match(bare['noun']) else 'a'} {bare['noun']}"
    if (one := _ONE_OF_MANY.match(text)) is not None:
        return f"{one[1]}{in_third(one[2])}{one[3]}"
    if not text.startswith(("Works as ", "Has a ")):
        return text
    kind, _, rest = text.partition(" as " if text.startswith("Works as ") else " a ")
    if kind == "Works" and _NO_ARTICLE.match(rest):
        return text
    if kind == "Has" and _UNCOUNTED.match(rest):
        return f"Has {rest}"
    said = f"{kind} as" if kind == "Works" else kind
    return f"{said} {'an' if _VOWEL.match(rest) else 'a'} {rest}"


THIRD = {"have": "has", "do": "does", "go": "goes", "am": "is", "are": "is", "were": "was", "dont": "does not"}
_THEM = {
    "i": "they", "me": "them", "my": "their", "mine": "theirs", "myself": "themselves", "we": "they", "us": "them", "our": "their",
    "ours": "theirs", "ourselves": "themselves", "i'm": "they are", "im": "they are", "i've": "they have", "ive": "they have",
    "we're": "they are", "we've": "they have", "am": "are", "i'd": "they would", "i'll": "they will", "we'll": "they will", "n": "and", "w": "with",
}  # fmt: skip


def in_third(verb: str) -> str:
    """Return the English *verb* in the third person: "go" gives "goes", "goes" itself."""
    if verb in THIRD:
        return THIRD[verb]
    if verb.endswith("y") and verb[-2:-1] not in tuple("aeiou"):
        return f"{verb[:-1]}ies"
    return f"{verb}es" if verb.endswith(("ss", "x", "z", "ch", "sh", "o")) else f"{verb.removesuffix('s')}s"


def in_the_text(value: str, before: str, template: str) -> str:
    """
    Return a value as its fact's English sentence says it: "a game of padel" for "game of padel", "their business" for "business".

    Args:
        value: the user's words, without what stands before them.
        before: the user's sentence up to the value.
        template: the sentence that it is put into; one that repeats a request keeps the user's own words.
    """
    if template.startswith("Asks"):
        return value
    article = _DETERMINER.search(before) if template.startswith(_TAKES_DETERMINER) else None
    whole = f"{article[1].lower()} {value}" if article else value
    return _OWN.sub(lambda found: _THEM[found[0]], whole)


_DETERMINER = expression(r"(?<!\w)(an?|the|my|our)\s+$", re.IGNORECASE)
_TAKES_DETERMINER = ("Likes {", "Dislikes {", "Is working on {", "Is training for {")
_OWN = expression(r"(?<![\w'’-])(?:my|mine|myself|our|ours|ourselves)(?![\w'’-])")  # but "My Chemical Romance"


def in_their_words(words: str) -> str:
    """Turn the user's words into the third person: "my cat" into "their cat", but not the hour of "8 am"."""
    words = re.sub(r"(?i)(?<=\d )am(?!\w)", "a.m.", re.sub(r"(?i)\bi was\b", "they were", words))
    return re.sub(
        r"(?<![\w'])[A-Za-z]+(?:'[a-z]+)?(?![\w'])",
        lambda found: _THEM.get(found[0].lower(), found[0]) if found[0] != "US" else found[0],
        words,
    )


_LISTED = expression(
    r"(?P<verb>(?:Has|Eats|Drinks|Likes|Loves|Uses|Takes|Speaks|Plays|Owns|Keeps|Grows|Is|Subscribes to|Pays for|Watches|Collects|Teaches|Studies)) (?P<items>[^.;:]+)\."
)
_BETWEEN = expression(r",?\s+(?:and|or|plus)\s+|,\s*")
_MOST_WORDS_OF_ITEM = 4


def rest_of_list(fact: str, names: Iterable[str], text: str) -> str:
    """Return a statement without what a sentence ends of it: "Eats chicken and fish." when the eggs are gone."""
    listed = _LISTED.fullmatch(fact)
    items = _BETWEEN.split(listed["items"]) if listed else []
    said = [stem for name in names if (stem := name.casefold().removesuffix("s")) in text.casefold()]
    gone = [item for item in items if any(stem in item.casefold() for stem in said)]
    left = [item for item in items if item not in gone]
    if listed is None or not gone or not left or any(len(item.split()) > _MOST_WORDS_OF_ITEM for item in items):
        return ""
    return f"{listed['verb']} {' and '.join(filter(None, (', '.join(left[:-1]), left[-1])))}."


_NAMES = expression(r"(?<=[a-z] )(?:[A-Z]|[a-z]+[A-Z])[\w'’&-]*(?: [A-Z][\w'’&-]*)*")
_NAMED = expression(
    r"(?:(?P<how>from|to|in|at|with|by) )?(?:the )?(?P<name>(?:[A-Z]|[a-z]+[A-Z])[\w'’&-]*(?: [A-Z][\w'’&-]*)*)"
)
_FEW = {"one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8", "nine": "9", "ten": "10"}  # fmt: skip
_AT = expression(r" (?=at |on )")
_ONE_OF = {"children": "child", "people": "person", "kids": "kid"}
_MOST_TIMES = 5  # that a number may grow or shrink at once


@lru_cache(maxsize=16)
def _counts(words: tuple[str, ...]) -> re.Pattern[str]:
    number = "|".join(
        (r"\d{1,3}(?:,\d{3})+", r"\d+", *(re.escape(word) for word in sorted(words, key=len, reverse=True)))
    )
    return re.compile(
        rf"(?i)(?<![\w.,:/-])(?P<number>{number})(?![\w:/]|[.,]\d)(?:[ -](?P<noun>(?!of\b)[^\W\d_]+))?(?: of us)?"
    )


def amended(
    fact: str, new: str, kinds: re.Pattern[str], numbers: Mapping[str, str], *, names: bool
) -> tuple[str, str] | None:
    """
    Return the words of a fact that are of the kind of *new*, and their replacement: "10 days" and "12 days".

    None where it says nothing of that kind, says two things, or says *new* already.

    Args:
        fact: its sentence.
        new: the words of half a sentence: "12 days", "business class", "from Munich".
        kinds: words of which one takes the place of another, each kind a group.
        numbers: those written as words, and their digits.
        names: whether a name may take the place of a name.
    """
    parts = [kinds.fullmatch(part) for part in _AT.split(new)]
    if all(parts):
        kept = [(found.lastgroup, found[found.lastgroup or 0]) for found in kinds.finditer(fact)]
        wanted = [(part.lastgroup, part[part.lastgroup or 0]) for part in parts if part]
        both = [{(old, now) for kind, old in kept if kind == new_kind} for new_kind, now in wanted]
        changed = [pairs for pairs in both if any(old.casefold() != now.casefold() for old, now in pairs)]
        pairs = changed[0] if len(changed) == 1 and all(both) else set()
    elif (said := _NAMED.fullmatch(new)) is not None:
        held = [found for found in _NAMES.finditer(fact)] if names else []
        before = f"{said['how'] or ''} "
        pairs = {(one[0], said["name"]) for one in held if fact[: one.start()].removesuffix("the ").endswith(before)}
        pairs = pairs if len(held) == 1 else set()
    else:
        pairs = _counted_otherwise(fact, new, {**_FEW, **numbers})
    (old, now), *others = pairs or {("", "")}
    return (old, now) if not others and old.casefold() != now.casefold() else None


def _counted_otherwise(fact: str, new: str, numbers: Mapping[str, str]) -> set[tuple[str, str]]:
    """Return the counts of a fact of which *new* gives another number, of the same things where it names them."""
    count = _counts(tuple(numbers))
    pairs, said = set[tuple[str, str]](), count.fullmatch(new)
    if said is None:
        return pairs
    for one in count.finditer(fact):
        noun, same = ((_ONE_OF.get(word, word.rstrip("s")) for word in (found["noun"] or "",)) for found in (said, one))
        named, thing = next(noun).casefold(), next(same).casefold()
        if named and named != thing and not {named, thing} <= {"day", "week", "night"}:
            continue
        old, now = (float(numbers.get(n.lower(), n).replace(",", "")) for n in (one["number"], said["number"]))
        if not 1 / _MOST_TIMES <= now / (old or 1) <= _MOST_TIMES:
            continue
        digits = numbers.get(said["number"].lower(), said["number"]) if one["number"][0].isdigit() else said["number"]
        pairs.add((one[0], f"{digits} {said['noun']}") if named else (one["number"], digits))
    return pairs


_NUMBER = expression(r"\d+(?:[.,]\d+)?")
_IN_THOUSANDS = expression(r"\d ?k\b", re.IGNORECASE)


def in_same_unit(new: str, old: str, kind: str) -> str:
    """Return a bare number with the unit that the old value has: "85" after "92 kilos"."""
    if kind in ("pay", "rent", "budget"):
        number = new.strip("$€£").removesuffix("k").replace(",", "")
        before = _NUMBER.search(old)
        if kind == "pay" and before and number.isdigit() and float(before[0].replace(",", "")) >= 100 * float(number):
            number += "000"  # "it's 55 now" after 50k
        thousands = new.endswith("k") and not _IN_THOUSANDS.search(old)
        return _NUMBER.sub(f"{number}000" if thousands else number, old, count=1)
    if kind in ("weight", "hours") and _NUMBER.fullmatch(new):
        return _NUMBER.sub(new, old, count=1)
    return new


@dataclass(frozen=True, slots=True)
class Slip:
    """A corrected number or name of a fact: the old and the new one, and the place of the new one in the sentence."""

    old: str
    new: str
    start: int
    end: int


_COUNT = expression(r"(?<![\w.,:-])\d+(?:[.,]\d+)?(?![\w-])")
_NOT = expression(
    r"(?P<new>\d+|[^\W\d_]+),?(?: and)? not (?:with |in |at |from |to )?(?P<old>\d+|[^\W\d_]+)(?=\W*$|[.,!;])",
    re.IGNORECASE,
)
_NOT_FIRST = expression(r"\bnot (?P<old>\d+|[^\W\d_]+),? (?:but )?(?P<new>\d+|[^\W\d_]+)\W*$", re.IGNORECASE)
_APART = expression(r" \w+ (?:before|after|ago|later|earlier|from)\b", re.IGNORECASE)
_WAS = expression(r"\bthe (?P<old>\d+) was\b", re.IGNORECASE)
_LIGHT = frozenset(
    "it it's its he's hes she's shes i'm im was is am i he she they mean meant no nope wait sorry actually make that that's thats in on at about around my not said "
    "should be have been of oh oops um uh the born number correction typo rather well just only hang hold ah haha lol bad mistake turned by from to wrong now instead today these days anymore again currently lately then here there too also yes yet".split()
)
# "A negative, sorry", of what has a word in common with the value that is known.
_PHRASE = expression(
    r"\W*(?:(?:it's|its|it is|that's|i meant|i mean|no|wait|sorry|actually|oops),? )*((?:[^\W_][\w'’-]*)(?: [^\W_][\w'’-]*){1,3}?)(?=\s*(?:[,.!;]|$| (?:actually|sorry|i mean|i meant)\b))",
    re.IGNORECASE,
)
_ON_DAY = expression(r" ?\(\d{4}-\d\d-\d\d\)")


def put_in_place(fact: str, sentence: str, value: str = "", *, put_right: bool) -> Slip | None:
    """
    Return the number or the name that a short correction puts in the place of one in *fact*.

    It says both ("tim not tom", "78, the 82 was in May"), or, where it is *put_right* by other words, a number of the
    same size with nothing else before it ("wait no it was 2020").
    """
    own = {word.casefold(): word for word in re.findall(r"[^\W_][\w'’-]*", _ON_DAY.sub("", fact))}
    for both in (_NOT, _NOT_FIRST):
        said = both.search(sentence)
        old = own.get(said["old"].casefold()) if said is not None else None
        if said is not None and old is not None and said["new"].casefold() not in own and _is_alike(old, said["new"]):
            new = said["new"].capitalize() if old[:1].isupper() else said["new"]
            return Slip(old, new, *said.span("new"))
    phrase = _PHRASE.match(sentence) if put_right and " " in value and value in fact else None
    words, old_words = (phrase[1].split() if phrase else []), value.split()
    if phrase is not None and 1 < len(words) <= len(old_words) and phrase[1] != value and not _COUNT.search(phrase[1]):
        if (
            any(new == old for new, old in zip(reversed(words), reversed(old_words), strict=False))
            or words[0] == old_words[0]
        ):
            return Slip(value, phrase[1], *phrase.span(1))
    counts, known = list(_COUNT.finditer(sentence)), {one[0] for one in _COUNT.finditer(_ON_DAY.sub("", fact))}
    new_ones = [one for one in counts if one[0] not in known]
    before = re.findall(r"[^\W\d_][\w'’-]*", sentence[: new_ones[0].start()].casefold()) if new_ones else ["?"]
    was = _WAS.search(sentence)
    if (
        not (put_right or (was is not None and was["old"] in known))
        or len(known) != 1
        or len({one[0] for one in new_ones}) != 1
    ):
        return None
    (old,), found = known, new_ones[0]
    if _APART.match(sentence, found.end()):
        return None  # "3 days before that I have an exam"
    follows = re.match(r" (?:years?|yrs?)? ?([^\W\d_]+)", sentence[found.end() :])
    light = all(word in _LIGHT or word in own for word in before)
    unit = follows is None or follows[1].casefold() in _LIGHT | own.keys() | {
        "now",
        "if",
        "so",
        "and",
        "because",
        "years",
    }
    return Slip(old, found[0], *found.span()) if light and unit and len(old) == len(found[0]) else None


def _is_alike(old: str, new: str) -> bool:
    """Whether two words can be one for another: two numbers, or two words of which the old one is a name or spelled alike."""
    if old.isdigit() or new.isdigit():
        return old.isdigit() and new.isdigit()
    alike = len(set(old.casefold()) & set(new.casefold())) * 2 >= len(set(old.casefold()))
    return new.casefold() not in _LIGHT and (old[:1].isupper() or alike)


_SIDE = expression(
    r"\b(left|right) (?=(?:eye|ear|knee|arm|leg|hand|foot|shoulder|hip|ankle|wrist|elbow|side|breast|lung|kidney|thumb|thigh|calf|heel|toe)s?\b)",
    re.IGNORECASE,
)


def on_other_side(text: str, fact: str) -> bool:
    """Whether a sentence is about the right eye and a fact about the left one."""
    said, known = ({side.casefold() for side in _SIDE.findall(words)} for words in (text, fact))
    return bool(said and known) and not said & known
