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
from collections.abc import Iterable, Sequence
from json.encoder import encode_basestring

from . import expression

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
    if before.isdecimal():
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
