"""
Comparison of two sentences beyond their similarity.  Pure.

"I have two cats" and "I have three cats" are nearly the same to any embedder, and so are a sentence
and its negation.  Nothing is merged unless numbers, negation, names, persons, tense, quantities,
directions, days and the order of the words agree, and no single word replaces another.
Written for English; `comparable` says where it holds, elsewhere only the same words are the same.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from itertools import pairwise

from ..text import dataclass, expression, remembered
from ..text.terms import language_of, terms
from ..types import Candidate, Evidence, Fact

_TOKEN = expression(r"\d+(?:[.,:]\d+)*|[^\W\d_]+(?:['\u2019][^\W\d_]+)*")
_PIECE = expression(rf"{_TOKEN.pattern}|[^\w\s]|_")
_ANY_MORE = expression(r"\bany (?:more|longer)\b(?=\s*[.,;!?]|\s*$)", re.IGNORECASE)
_THOUSANDS = expression(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_LATIN = expression(r"[A-Za-z\u00c0-\u024f]")
_LETTER = expression(r"[^\W\d_]")

_UNITS = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen".split()
NUMBERS = {word: str(number) for number, word in enumerate(_UNITS)} | {
    "seventeen": "17", "eighteen": "18", "nineteen": "19", "twenty": "20", "thirty": "30", "forty": "40", "fifty": "50",
    "sixty": "60", "seventy": "70", "eighty": "80", "ninety": "90", "hundred": "100", "thousand": "1000",
    "million": "1000000", "dozen": "12", "couple": "2", "once": "1x", "twice": "2x", "thrice": "3x", "half": "1/2",
    "first": "1st", "second": "2nd", "third": "3rd", "fourth": "4th",
}  # fmt: skip
NEGATIONS = frozenset(
    "not no never none neither nor nobody nothing nowhere without stop stops stopped stopping quit quits quitting cannot "
    "dont doesnt didnt isnt arent wasnt werent wont cant couldnt wouldnt havent hasnt hadnt hardly barely "
    "hate hates hated dislike dislikes disliked avoid avoids avoided refuse refuses refused lack lacks "
    "nicht kein keine keinen nie niemals nunca jamás pas jamais plus non mai ne nada".split()
)
# What a sentence says with or without: how sure, how much, since when it is as it is.
FILLERS = frozenset(
    "a an the of to at in on very really quite just simply actually also too so well please that this these those there "
    "now currently nowadays anymore longer any more still already again do does doing be being been am is are "
    "has have having it's i'm i've we're we've".split()
)
# What may stand in one of two sentences that are the same word by word.
_TRIFLES = frozenset(
    "a an the really very quite actually simply also please currently now nowadays again still already anymore longer".split()
)
_SAME_WORD = {
    "am": "be", "is": "be", "are": "be", "has": "have", "u": "you", "till": "until", "cant": "can't", "dont": "don't",
}  # fmt: skip
_BEFORE_NOT = {"ca": "can", "wo": "will", "sha": "shall", "do": "", "does": "", "is": "be", "are": "be", "ai": "be"}
_SHORTENED = {"'m": "be", "'re": "be", "'ve": "have", "'ll": "will", "'d": "'d"}
_NOT = "not"
_MARKS = {
    "person:first": "i me my mine myself we us our ours ourselves user user's users i'm i've i'll i'd we're we've we'll we'd",
    "person:second": "you your yours yourself you're",
    "person:he": "he him his himself he's he'll he'd",
    "person:she": "she her hers herself she's she'll she'd",
    "person:they": "they them their theirs themselves they're they've",
    "time:past": "was were had did used formerly previously ex former went lived worked ago",
    "time:future": "will shall tomorrow soon going next gonna i'll we'll he'll she'll they'll",
    "mood:can": "can able", "mood:could": "could", "mood:may": "may might maybe perhaps possibly", "mood:would": "would",
    "mood:should": "should ought", "mood:must": "must",
    "mood:intend": "plan plans planned planning want wants wanted hope hopes hoping wish wishes intend intends",
    "quantity:all": "all every each always", "quantity:some": "some sometimes occasionally", "quantity:most": "most mostly usually",
    "quantity:few": "few rarely seldom", "quantity:many": "many several often much", "quantity:both": "both either",
    "quantity:only": "only except", "quantity:more": "more", "quantity:less": "less fewer", "quantity:almost": "almost nearly",
}  # fmt: skip
_ALONE = (
    "from for with about before after over under above below between through during against until since than off out up "
    "down by near far into onto behind outside inside toward towards without "
    "monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays saturdays "
    "sundays january february march april june july august september october november december weekday weekdays weekend "
    "weekends today yesterday tonight morning mornings afternoon afternoons evening evenings night nights noon midnight "
    "spring summer autumn winter"
).split()
MARK_OF = {word: mark for mark, words in _MARKS.items() for word in words.split()} | {w: f"word:{w}" for w in _ALONE}

SYNONYMS = [
    frozenset(group.split())
    for group in (
        "love loves like likes enjoy enjoys adore adores", "hate hates dislike dislikes detest detests loathe loathes", "kid kids child children", "mom mum mother", "dad father",
        "job work works", "film films movie movies", "big large", "small little", "car automobile", "bike bicycle",
        "phone telephone smartphone", "begin begins start starts began started", "buy buys purchase", "bought purchased",
        "own owns have has", "train training prepare prepares preparing", "couch sofa", "home house",
        "doctor physician", "favorite favourite", "color colour", "flat apartment", "live lives reside resides",
        "neighbour neighbor", "neighbours neighbors", "harbour harbor", "grey gray", "theatre theater", "centre center", "ill sick", "tv television", "photo photos picture pictures", "holiday vacation",
    )
]  # fmt: skip
_SYNONYM_STEMS = [frozenset(stem for word in group for stem in terms(word, "en")[:1]) for group in SYNONYMS]
OPPOSITES = [
    (frozenset(left.split()), frozenset(right.split()))
    for left, right in (
        ("love loves like likes enjoy enjoys adore adores loved liked", "hate hates dislike dislikes hated disliked"),
        ("married engaged", "single divorced widowed unmarried"), ("vegetarian vegan", "meat carnivore omnivore"),
        ("brother brothers", "sister sisters"), ("mother mom mum", "father dad"), ("son sons", "daughter daughters"),
        ("husband", "wife"), ("uncle", "aunt"), ("boyfriend", "girlfriend"), ("left", "right"), ("north", "south"),
        ("east", "west"), ("hot warm", "cold cool"), ("early", "late"), ("big large tall", "small little short"),
        ("open", "closed shut"), ("start started begin began", "finish finished end ended"), ("buy bought", "sell sold"),
        ("win won", "lose lost"), ("join joined", "leave left quit"), ("cheap", "expensive"), ("easy", "hard difficult"),
        ("employed", "unemployed retired"), ("happy", "sad unhappy"), ("public", "private"), ("full", "empty part"),
    )
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Sense:
    """
    The compared parts of one sentence.

    ``words``: stems of the words that carry it, in order; ``numbers`` in order; ``negated``: an odd
    number of negations; ``names``: capitalised words; ``marks``: person, tense, quantity and the like;
    ``plain``: the words unchanged; ``sequence``: everything that was said, in order, see `sequence`.
    """

    words: tuple[str, ...]
    numbers: tuple[str, ...]
    negated: bool
    names: frozenset[str]
    marks: frozenset[str]
    plain: frozenset[str]
    sequence: tuple[str, ...]


@remembered(4096)
def sense(text: str) -> Sense:
    """Parse *text* word by word, as far as its language allows."""
    words, numbers, names, marks, plain = [], [], set(), set(), set()
    negations = 0
    for place, token in enumerate(_TOKEN.findall(text)):
        low = token.casefold().replace("\u2019", "'")
        bare = low.removesuffix("'s")
        number = to_figures(low)
        if number is not None:
            numbers.append(number)
            continue
        negative = low in NEGATIONS or low.endswith("n't")
        negations += negative
        mark = MARK_OF.get(low)
        if mark is not None:
            marks.add(mark)
        if token[0].isupper() and len(token) > 1 and mark is None and not negative and low not in FILLERS:
            if place or not _may_be_inflected(bare):
                names.add(bare)
        if mark is None and low not in FILLERS and not low.endswith("n't") and low not in ("not", "no"):
            plain.add(bare)
            words += terms(bare, "en")[:1] or [bare]
    if not any(mark.startswith("person:") for mark in marks):
        marks.add("person:first")  # "Likes tea": who it is about is the one whose memory it is
    negated = negations % 2 == 1
    return Sense(
        tuple(words), tuple(numbers), negated, frozenset(names), frozenset(marks), frozenset(plain), sequence(text)
    )


def to_figures(token: str) -> str | None:
    """Return the number in a folded token, in figures; ``None`` when it holds none."""
    if not token[0].isdecimal():
        return NUMBERS.get(token)
    return token.replace(",", "") if _THOUSANDS.fullmatch(token) else token


def sequence(text: str, *, user_is_i: bool = True) -> tuple[str, ...]:
    """
    Everything that a sentence says, in order: words in full, numbers, "not", signs that mean something.

    Left out are articles and trifles such as "really" and "now".  Words are not reduced to stems: a cat is
    not cats, and to be paid is not to pay.  With *user_is_i*, "the user likes" is "I like".
    """
    found: list[str] = []
    text = _ANY_MORE.sub(" ", text)
    pieces = list(_PIECE.finditer(text))
    about_user = False
    for place, piece in enumerate(pieces):
        low = piece.group().casefold().replace("\u2019", "'")
        after = pieces[place + 1].group().casefold() if place + 1 < len(pieces) else ""
        if not low[0].isalnum():
            found += [low] if _means_something(low, text, piece) else []
            continue
        if user_is_i and low in ("user", "user's"):
            found.append("i" if low == "user" else "my")
            about_user = low == "user"
            continue
        if low not in _TRIFLES and not (low in ("do", "does") and after == "not"):
            number = to_figures(low)
            found += [number] if number is not None else _expand(_infinitive(low) if about_user else low)
            about_user = False
    return tuple(found)


def _expand(low: str) -> list[str]:
    """A word without its contractions: "don't" is "not", "I'm" is "I be"."""
    low = _SAME_WORD.get(low, low)
    if low == "cannot":
        return ["can", _NOT]
    if low.endswith("n't"):
        verb = low.removesuffix("n't")
        return [part for part in (_BEFORE_NOT.get(verb, verb), _NOT) if part]
    for short, full in _SHORTENED.items():
        if low.endswith(short):
            return [low.removesuffix(short), full]
    if low in ("it's", "he's", "she's", "that's", "there's", "who's"):
        return [low.removesuffix("'s"), "be"]
    return [low]


def _infinitive(verb: str) -> str:
    """ "likes" as "like", after "the user"."""
    if verb in ("has", "does", "is", "was") or not verb.endswith("s") or verb.endswith("ss"):
        return _SAME_WORD.get(verb, verb)
    if verb.endswith("ies"):
        return f"{verb[:-3]}y"
    return verb[:-2] if verb.endswith(("ches", "shes", "sses", "xes", "zes", "oes")) else verb[:-1]


_OF_THE_USER = expression(
    r"^(?:(?:the )?user (?P<verb>[a-z]+)|(?P<bare>lives|works|uses|drives|plays|speaks|takes|weighs|studies|owns|has|is|prefers|likes|loves|hates|deploys|runs|rides|drinks|eats|keeps|wants|dislikes|enjoys|teaches|rents|collects|smokes|commutes|grew|moved|had|was|wears|suffers))\b",
    re.IGNORECASE,
)
_DOING = expression(r"^(?:using|running|living|working|learning|studying|driving)\b", re.IGNORECASE)
_FIRST = {"is": "am", "has": "have", "was": "was", "does": "do"}


def in_first_person(text: str) -> str:
    """Return a sentence about the user as the user would say it: "I live in Oslo" of "The user lives in Oslo"."""
    found = _OF_THE_USER.match(text)
    if found is None:
        text = _DOING.sub(lambda doing: f"I'm {doing[0].lower()}", text)
        return re.sub(r"^(?:(?:the )?user['\u2019]s|their) ", "My ", text, flags=re.IGNORECASE)
    verb = (found["verb"] or found["bare"]).casefold()
    return f"I {_FIRST.get(verb) or _infinitive(verb)}{text[found.end() :]}"


def _means_something(sign: str, text: str, piece: re.Match[str]) -> bool:
    """Whether a sign is more than punctuation: currencies, emojis, the plus of C++, the minus of -5."""
    if sign in "-\u2212\u2013":
        before, after = text[: piece.start()][-1:], text[piece.end() : piece.end() + 1]
        return after.isdecimal() and not before.isalnum()
    return sign in "#%&@*/\\_" or unicodedata.category(sign).startswith("S")


@remembered(4096)
def comparable(text: str) -> bool:
    """Whether the sentence is written in what these rules can read: letters of Latin, and no other language's words."""
    letters = len(_LETTER.findall(text))
    english = language_of(text.replace(" till ", " until ")) == "en"  # "till" speaks for Swedish
    return english and letters > 0 and 2 * len(_LATIN.findall(text)) > letters


def disagreement(one: str, other: str) -> str:
    """In what two sentences differ so that they must not be merged; empty when nothing is in the way."""
    a, b = sense(one), sense(other)
    if a.numbers != b.numbers:
        return "numbers"
    if a.negated != b.negated:
        return "negation"
    if a.names != b.names:
        return "names"
    for group in ("person", "time", "mood", "quantity", "word"):
        if marks_in_group(a.marks, group) != marks_in_group(b.marks, group):
            return group
    if _opposed(a.plain, b.plain):
        return "opposites"
    shared = set(a.words) & set(b.words)
    if [word for word in a.words if word in shared] != [word for word in b.words if word in shared]:
        return "order"
    mine, theirs = set(a.words) - shared, set(b.words) - shared
    if bool(mine) != bool(theirs):
        return "more"  # "My brother is a doctor", "My brother's wife is a doctor"
    return "" if _same_or_synonyms(a.sequence, b.sequence) else "value"


def same_words(one: str, other: str) -> bool:
    """Whether two sentences say the same in the same words, give or take articles and trifles."""
    if not (comparable(one) and comparable(other)):
        return _signs_and_words(one) == _signs_and_words(other) != []
    a, b = sense(one), sense(other)
    return a.sequence == b.sequence != () and a.names == b.names


def _signs_and_words(text: str) -> list[str]:
    """Return the words of `all_words`, and the signs that carry meaning."""
    pieces = [(piece, piece.group().casefold()) for piece in _PIECE.finditer(text)]
    return [low for piece, low in pieces if low[0].isalnum() or _means_something(low, text, piece)]


def all_words(text: str) -> list[str]:
    """Return every word, folded: for languages of which nothing else is known."""
    return [token.casefold() for token in _TOKEN.findall(text)]


def _may_be_inflected(word: str) -> bool:
    """Whether a capital at the beginning of a sentence is likely the sentence's own: the word is an inflected one."""
    return word.endswith(("ing", "ed", "ly", "s")) or len(word) <= 3


def marks_in_group(marks: Iterable[str], group: str) -> set[str]:
    """Return the marks of one group: ``person``, ``time``, ``mood``, ``quantity`` or ``word``."""
    return {mark for mark in marks if mark.startswith(f"{group}:")}


def _opposed(a: frozenset[str], b: frozenset[str]) -> bool:
    mine, theirs = a - b, b - a
    return any((mine & x and theirs & y) or (mine & y and theirs & x) for x, y in OPPOSITES)


def _same_or_synonyms(a: tuple[str, ...], b: tuple[str, ...]) -> bool:
    """Whether the words agree one by one: the same, or synonyms."""
    return len(a) == len(b) and all(x == y or _synonyms(x, y) for x, y in zip(a, b, strict=True))


# A phrase of time, which may stand at either end of a sentence.
_TIME_OPENS = frozenset(
    "every each on in at last next this during after before since until once twice usually sometimes".split()
)
_TIMES = frozenset(
    "day days week weeks weekend weekends month months year years morning mornings afternoon afternoons evening evenings night "
    "nights noon midnight spring summer autumn fall winter monday tuesday wednesday thursday friday saturday sunday mondays "
    "tuesdays wednesdays thursdays fridays saturdays sundays january february march april may june july august september "
    "october november december today yesterday tomorrow".split()
)


def reworded(one: str, other: str) -> bool:
    """
    Whether two sentences say the same in another order, in synonyms, or one says only a name more.

    A phrase of time may stand first or last, "my doctor is Anna" turned around, and "a dog" be "a dog named Otto".
    """
    if not (comparable(one) and comparable(other)):
        return False
    a, b = _one_way(one), _one_way(other)
    return bool(a and b) and (
        _same_or_synonyms(a, b) or _is_turned(a, b) or _time_first(a, b) or _time_first(b, a) or _only_names(a, b)
    )


@remembered(4096)
def _one_way(text: str) -> tuple[str, ...]:
    """Return the sequence with phrases that have one meaning in one form: "wake up" for "get up", "near" for "close to"."""
    for said, plain in _same_phrases():
        text = said.sub(plain, text)
    return sequence(text)


@cache
def _same_phrases() -> list[tuple[re.Pattern[str], str]]:
    table = tomllib.loads((resources.files(__package__) / "contrasts.toml").read_text("utf-8"))
    return [(re.compile(said, re.IGNORECASE), plain) for said, plain in table["same"]]


def _is_turned(a: tuple[str, ...], b: tuple[str, ...]) -> bool:
    """ "My doctor is Anna Berg", "Anna Berg is my doctor"."""
    if a.count("be") != 1 or b.count("be") != 1 or not ({a[0], b[0]} & {"my", "our"}) or _NOT in a:
        return False
    at, there = a.index("be"), b.index("be")
    return _same_or_synonyms(a[:at], b[there + 1 :]) and _same_or_synonyms(a[at + 1 :], b[:there])


def _time_first(a: tuple[str, ...], b: tuple[str, ...]) -> bool:
    """Whether *a* begins with the phrase of time with which *b* ends, and is the same else."""
    for size in range(2, min(5, len(a) - 1)):
        phrase = a[:size]
        if phrase[0] in _TIME_OPENS and phrase[-1] in _TIMES and b[-size:] == phrase:
            return _same_or_synonyms(a[size:], b[:-size])
    return False


def _only_names(a: tuple[str, ...], b: tuple[str, ...]) -> bool:
    """ "I have a dog", "I have a dog named Otto"."""
    short, long = sorted((a, b), key=len)
    rest = long[len(short) :]
    return (
        _NOT not in long
        and long[: len(short)] == short
        and rest[:1] in (("named",), ("called",))
        and len(rest) in (2, 3)
    )


def _synonyms(x: str, y: str) -> bool:
    return any({x, y} <= group for group in SYNONYMS)


# Words that say how something is had, and those that say when and how often: not what it is.
_HAD = frozenset(
    "a an the my his her their our some any eat eats eating drink drinks drinking have having take takes taking use uses "
    "using do doing play plays playing cup cups glass glasses bit lot of".split()
)
_WHEN = frozenset(
    "every each day daily days morning mornings evening evenings night nights noon lunch breakfast dinner weekday weekdays "
    "weekend weekends week weekly month year once twice times always usually often sometimes regularly first thing in at on "
    "for with after before the".split()
)
_OVER = expression(r"\s+(?:over|rather than|instead of|than|more than|to)\s+", re.IGNORECASE)


def name_thing(value: str) -> str:
    """Return what a habit is about, without how it is had and when: "coffee" of "a cup of coffee every morning"."""
    return " ".join(word for word in all_words(value) if word not in _HAD | _WHEN and not word[0].isdecimal())


def renews(candidate: Candidate, known: str, *, placed: bool) -> bool:
    """Whether a claim takes the place of a known value of its set: it says more of the same, or another number of a goal."""
    another = candidate.category == "goal" and _differ_in_number(candidate.value, known)
    return another or specifies(candidate.value, known, placed=placed)


def _differ_in_number(one: str, other: str) -> bool:
    """Whether two values are the same but for their one number: "lose 10 kg", "lose 8 kg by June"."""
    mine, theirs = (_ONE_NUMBER.findall(value) for value in (one, other))
    if len(mine) != 1 or len(theirs) != 1 or mine == theirs:
        return False
    alike = [_BY_WHEN.sub("", _ONE_NUMBER.sub("#", value)).casefold().strip(" .") for value in (one, other)]
    return alike[0] == alike[1] and any(word.isalpha() for word in alike[0].split())


_ONE_NUMBER = expression(r"\d+(?:[.,]\d+)?")
_BY_WHEN = expression(r"\s(?:by|until|before|this|next|in) \w[\w ]{0,20}$")


def preferred(value: str) -> tuple[str, str]:
    """Return what is preferred and over what: "tea" and "coffee" of "tea over coffee"."""
    parts = _OVER.split(value, maxsplit=1)
    return parts[0], parts[1] if len(parts) > 1 else ""


_NOT_THINGS = FILLERS | NEGATIONS | _HAD | MARK_OF.keys()


@remembered(4096)
def same_thing(one: str, other: str) -> bool:
    """Whether two values name the same thing, in whatever number and however it is had: "drinking tea", "tea"."""

    def stems(value: str) -> frozenset[str]:
        return frozenset((terms(word, "en")[:1] or [word])[0] for word in all_words(value) if word not in _HAD)

    return bool(stems(one)) and stems(one) == stems(other)


@remembered(4096)
def thing_stems(text: str) -> frozenset[str]:
    """Return the stems of the words that say what a value or sentence is about, without how it is said or denied."""
    words = [word for word in all_words(text) if word not in _NOT_THINGS]
    return frozenset((terms(word, "en")[:1] or [word])[0] for word in words)


_ASIDE = expression(r"\s*[(\uff08]([^()\uff08\uff09]*)[)\uff09]\s*")
_TRIFLING = expression(
    r"(?:again|still|now|too|also|currently|lately|wieder|noch|otra vez|de nuevo|encore|de novo|ancora|又|还)",
    re.IGNORECASE,
)
_ARTICLE = expression(
    r"^(?:an?|the|my|our|un|una|el|la|los|las|mi|ein|eine|einen|der|die|das|mein|meine|le|les|mon|ma|um|uma|o|il|lo)\s+",
    re.IGNORECASE,
)
_GOES_ON = expression(r"\s*(?:[,;\uff0c\uff1b]|\s[-\u2013\u2014]\s)|\s+v?\d+(?:\.\w+)+$")  # more, or a version
_PLACE_GOES_ON = expression(
    r"\s+(?:in|at|near|from|since|who|which|called|named|en|desde|cerca|seit|aus|bei|depuis|chez|dans|desde|da|em|que se llama|namens)\s",
    re.IGNORECASE,
)


def specifies(longer: str, shorter: str, *, placed: bool = False) -> bool:
    """
    Whether a value is the thing that another names, with more about it: "dog (chihuahua)" of "dog", "Kyoto, Japan" of
    "Kyoto", "Flask 2.3" of "Flask".

    With *placed* also by where or since when it is: "a library in Faro" of "library".
    """
    one, other = _bare_value(longer), _bare_value(shorter)
    if not other or len(one) <= len(other):
        return False
    bare = _ASIDE.sub(" ", one).strip()
    if bare == other:
        return True
    rest = one[len(other) :] if one.startswith(other) else ""
    return bool(rest and (_GOES_ON.match(rest) or (placed and _PLACE_GOES_ON.match(rest))))


def _bare_value(value: str) -> str:
    """Return a value without case, article, and asides that say only that it is still so."""
    text = _ASIDE.sub(lambda found: " " if _TRIFLING.fullmatch(found[1].strip()) else found[0], value)
    text = unicodedata.normalize("NFKC", " ".join(text.split())).casefold().strip(" .")
    return _ARTICLE.sub("", text)


# Who says something, and that it is said: nothing of what is said.
_SAID = frozenset(
    "said says mentioned mentions stated states told tells shared shares reported reports revealed revealing user".split()
)


# What using a tool is called: "Running PostgreSQL 15", "Deploys on Kubernetes".
_RUNS = frozenset(stem for word in "run use deploy host switch migrate move".split() for stem in terms(word, "en"))


def restates(text: str, value: str, sentence: str, address: str) -> bool:
    """Whether *text* says no more than an attribute does, of that value, *sentence* and address."""
    if not (comparable(text) and comparable(sentence)):
        return same_words(text, sentence)
    a, b = sense(text), sense(sentence)
    bare = value.casefold() in ("true", "false")
    if a.negated != b.negated or any(
        marks_in_group(a.marks, group) != marks_in_group(b.marks, group) for group in ("time", "mood", "quantity")
    ):
        return False
    if not set(a.numbers) <= {*b.numbers, *sense(value).numbers}:  # stems know no part behind a point: 3.3 is not 3.7
        return False
    said, own = _all_stems(text), _all_stems(sentence) if bare else _all_stems(value)
    known = own | _all_stems(f"{sentence} {address}")
    known |= {stem for group in _SYNONYM_STEMS if group & known for stem in group}
    known |= _RUNS if address.startswith("tech ") else frozenset()
    return bool(own) and own <= said <= known


def asserts_plainly(text: str) -> bool:
    """Whether a sentence neither denies nor moves what it says: no "not", no "used to", no "might", no "only"."""
    said = sense(text)
    return not said.negated and not any(marks_in_group(said.marks, group) for group in ("time", "mood", "quantity"))


def repeats_all(text: str, facts: Iterable[str], least: int = 2) -> bool:
    """Whether *facts* hold every word of *text*, at least *least* words, so that it says nothing new."""
    said, known = _all_stems(text), frozenset[str]().union(*map(_all_stems, facts))
    known |= {stem for group in _SYNONYM_STEMS if group & known for stem in group}
    return len(said) >= least and said <= known


def _all_stems(text: str) -> frozenset[str]:
    """Return the stems of a sentence without articles and whom it is about: "my", "the user"."""
    kept = (word for word in all_words(text.replace("_", " ")) if word not in FILLERS | _SAID)
    words = [word for word in kept if not MARK_OF.get(word, "").startswith("person:")]
    return frozenset((terms(word, "en")[:1] or [word])[0] for word in words)


_AMOUNT = expression(
    r"\d+(?:[.,/]\d+)?(?!\s*(?:times|x\b|hours?|days?|weeks?|h\b|veces|mal\b|fois|\u6b21|\ubc88|:))\s*(?P<unit>mg|mcg|\u00b5g|\u03bcg|grams?|g|ml|iu|units?|"
    r"tablets?|pills?|drops?|puffs?|capsules?|comprimidos?|tabletten?|comprim\u00e9s?|\u6beb\u514b|\u7247|\uc815|\ubc00\ub9ac\uadf8\ub7a8)?\b",
    re.IGNORECASE,
)
_ONLY_AMOUNT = expression(r"(?:now|a|of|the|about|only|dose|is|to|up|down|at)*\W*")
_FROM_WHEN = expression(
    r",?\s*\b(?:from|since|as of|starting|until|till?|ab|seit|bis|desde|hasta|a partir de|depuis|dal)\b[^,;]*\d[^,;]*$",
    re.I,
)
_HOLDS = expression(r"\b(?:since|now|currently|still|these days|nowadays)\b", re.IGNORECASE)


_SLIP = expression(
    r"\b(?:no|nope|not|sorry|wait|actually|i mean|rather|correction|nein|quatsch|sondern|perd[oó]n|digo|non|pardon)\b|不对|不是|아니",
    re.IGNORECASE,
)


def is_dated_result(new: Candidate, said: Evidence, old: Fact) -> bool:
    """
    Whether both values at an address are results ("2.1", "3.4 mg/dl"), and the new one says on which day it was taken.

    Results follow one another by the day of the sample, not by when they were told.  Words that still hold ("80 kg since
    January") date none, nor does a slip put right in one message: "16 kg, no, 17, we weighed him last week".
    """
    numbers = new.value[:1].isdecimal() and old.value[:1].isdecimal()
    dated = new.category == "health" and numbers and new.valid_from_ms is not None and not _HOLDS.search(said.quote)
    place = (said.home, said.conversation, said.seq)
    slip = _SLIP.search(said.quote) and any((e.home, e.conversation, e.seq) == place for e in old.evidence)
    return dated and not slip


def whole_dose(new: str, old: str) -> str:
    """
    Return a dose that was given in part, with the rest of the old one: "45 mg" after "30 mg twice a day".

    A schedule alone keeps the amount, an amount alone the schedule, a number alone the unit too.
    """
    mine, theirs = _AMOUNT.search(new), _AMOUNT.search(old)
    if mine is None and new == "takes it":
        return old
    old = _FROM_WHEN.sub("", old)  # the new dose has another first day
    if mine is None:
        return f"{theirs.group().strip()} {new}" if theirs is not None and new.strip() else new
    rest = (new[: mine.start()] + new[mine.end() :]).strip()
    if rest and not _ONLY_AMOUNT.fullmatch(rest.casefold()):
        return new
    amount = mine.group().strip()
    if theirs is None:
        return f"{amount} {old}".strip()
    unit = "" if mine["unit"] or not theirs["unit"] else old[theirs.start() : theirs.end()].lstrip("0123456789.,/")
    return f"{old[: theirs.start()]}{amount}{unit}{old[theirs.end() :]}".strip()


MAX_CHARS = 400

# Joins sentences, and says nothing of its own.
_LEFT_OUT = frozenset("be and but while who which".split())

Words = tuple[str, ...]


def content_words(text: str) -> Words:
    """Return the words that carry meaning, in order; without "is", and without what only joins sentences."""
    return tuple(word for word in sequence(text, user_is_i=False) if word not in _LEFT_OUT)


def may_join(one: str, other: str) -> bool:
    """
    Whether a model may be asked to join two sentences that are about the same thing.

    Not where either denies something, where they are about others, or another time, and not where one
    looks like a later value of the other: "I live in Berlin", "I live in Munich".
    """
    if not (comparable(one) and comparable(other)) or _is_negated(one) or _is_negated(other):
        return False
    a, b = sense(one), sense(other)
    for group in ("person", "time", "mood"):
        if marks_in_group(a.marks, group) != marks_in_group(b.marks, group):
            return False
    mine, theirs = a.plain - b.plain, b.plain - a.plain
    if any((mine & x and theirs & y) or (mine & y and theirs & x) for x, y in OPPOSITES):
        return False
    if a.numbers and b.numbers and a.numbers != b.numbers:
        return False
    return not _another_value(content_words(one), content_words(other))


def find_unfaithful(text: str, sentences: Sequence[str]) -> str:
    """
    Return why *text* must not replace *sentences*; empty when it says all of them and nothing else.
    """
    if not comparable(text):
        return "it is not written in English words"
    if len(text) > min(MAX_CHARS, sum(map(len, sentences)) + 8 * len(sentences)):
        return "it is too long"
    if _is_negated(text) != any(map(_is_negated, sentences)):
        return "it denies something, or no longer does"
    told, parts = content_words(text), [content_words(sentence) for sentence in sentences]
    missing = {word for part in parts for word in part} - set(told)
    new = set(told) - {word for part in parts for word in part}
    for some, what in ((missing, "missing"), (new, "new")):
        if any(word[0].isdecimal() for word in some):
            return f"a number is {what}"
    if not missing and not new and _is_made_of(told, parts):
        return ""
    return _lost_or_added(text, sentences) or _mixed_up(text, sentences)


# Words that join, and those that say no more than that there is something.
_JOINS = frozenset(
    "and but while who which that for as well both in of with on at to by be is are have has had named called name also plus "
    "too it its a the my our using used use uses".split()
)
_VAGUE = frozenset(
    stem
    for word in "development work thing project own living life regularly currently".split()
    for stem in terms(word, "en")
)


def _spoken(text: str) -> list[str]:
    """Return the words of a sentence that say something, as stems in order; persons and joints left out."""
    kept = (word for word in sequence(text, user_is_i=False) if word not in _JOINS and word not in ("user", "user's"))
    words = [word for word in kept if not MARK_OF.get(word, "").startswith("person:")]
    return [(terms(word, "en")[:1] or [word])[0] for word in words]


def _lost_or_added(text: str, sentences: Sequence[str]) -> str:
    """Return what a rewording lost or added of words, names, times and moods; synonyms and inflection may change."""
    told, said = set(_spoken(text)), {word for sentence in sentences for word in _spoken(sentence)}
    if _is_negated(text):
        return "one of the sentences does not stand in it"  # what is denied must keep its own words
    marks = sense(text).marks
    for group in ("time", "mood", "quantity", "word"):
        theirs = {mark for sentence in sentences for mark in marks_in_group(sense(sentence).marks, group)}
        if {mark for mark in marks_in_group(marks, group) ^ theirs if mark.partition(":")[2] not in _JOINS}:
            return "a word is missing" if theirs - marks else "a word is new"
    if any(not _has_like(word, told) for word in said):
        return "a word is missing"
    return "a word is new" if any(not _has_like(word, said) and word not in _VAGUE for word in told) else ""


def _has_like(word: str, words: set[str]) -> bool:
    return word in words or any(word in group and group & words for group in _SYNONYM_STEMS)


def _mixed_up(text: str, sentences: Sequence[str]) -> str:
    """
    Return why a rewording may say of one what was said of another; empty when each sentence's own words stay together.

    So "a dog named Tom and a cat named Rex" is not made of a cat named Tom and a dog named Rex, and "I smoke" is not
    said by "I smoke at parties".
    """
    mixed = "one of the sentences does not stand in it"
    told, parts = _spoken(text), [_spoken(sentence) for sentence in sentences]
    whose = [set(sequence(sentence)[:1]) & {"i", "we"} for sentence in sentences]
    if any(whose) and not set(sequence(text)) & {"i", "we"} and in_first_person(text) == text:
        return mixed
    places: list[tuple[int, int]] = []
    for part, sentence in zip(parts, sentences, strict=True):
        others = {word for other in parts if other is not part for word in other}
        own = [told.index(word) for word in part if word in told and word not in others]
        names = [word for word in part if word in _name_stems(sentence, text)]
        if not own and set(part) != set(names):
            return mixed
        places += [(min(own), max(own))] if own else []
        kept = names if "be" in sequence(sentence) else part
        if not _in_order(kept, told) or not _keeps_sides(part, told):
            return mixed
    places.sort()
    apart = all(before[1] < after[0] for before, after in pairwise(places))
    return "" if apart else mixed


def _name_stems(sentence: str, text: str) -> frozenset[str]:
    """Return the names of a sentence; its first word is one where *text* has it with a capital, too."""
    first = (all_words(sentence) or [""])[0]
    names = {name for name in sense(sentence).names if name != first or re.search(rf"(?<!^)\b{name.title()}\b", text)}
    return frozenset((terms(name, "en")[:1] or [name])[0] for name in names)


def _in_order(words: Sequence[str], told: Sequence[str]) -> bool:
    """Whether *told* has *words*, or synonyms of theirs, in their order."""
    left = iter(told)
    return all(any(word == one or _has_like(word, {one}) for one in left) for word in words)


def _keeps_sides(part: Sequence[str], told: Sequence[str]) -> bool:
    """Whether two words around a comparison or a direction keep their sides: "Python over JavaScript"."""
    for place, word in enumerate(part):
        if word in ("over", "from", "than", "befor", "after", "before") and 0 < place < len(part) - 1:
            sides = (part[place - 1], word, part[place + 1])
            if not any(tuple(told[at : at + 3]) == sides for at in range(len(told) - 2)):
                return False
    return True


def _is_negated(text: str) -> bool:
    return any(word in NEGATIONS for word in sequence(text))


def _another_value(a: Words, b: Words) -> bool:
    """Whether the two are the same sentence with another word or two in some place."""
    if len(a) != len(b):
        return False
    differ = sum(x != y for x, y in zip(a, b, strict=True))
    return 0 < differ and 2 * differ <= len(a)


def _is_made_of(told: Words, parts: Sequence[Words]) -> bool:
    """Whether *told* consists of the parts as wholes (or without a beginning they share), and nothing else."""
    whole = {part: [range(at, at + len(part)) for at in _find_starts(told, part)] for part in parts}
    covered = {index for places in whole.values() for place in places for index in place}
    for part, places in whole.items():
        inside = [place for place in places if _only_inside_longer(place, told, whole)]
        if places and len(inside) == len(places):
            return False
        if places:
            continue
        rests = {part[shared:] for other in parts if other != part for shared in _shared_beginning(part, other)}
        free = [
            range(start, start + len(rest))
            for rest in sorted(rests, key=len, reverse=True)
            for start in _find_starts(told, rest)
            if start and covered.isdisjoint(range(start, start + len(rest)))
        ]
        if not free:
            return False
        covered.update(free[0])
    return len(covered) == len(told)


def _only_inside_longer(place: range, told: Words, whole: Mapping[Words, Sequence[range]]) -> bool:
    """
    Whether a sentence occurs only as the beginning or a part of a longer one.

    "I eat meat" is not said by "I eat meat substitutes", but "I have a cat" is by "I have a cat named Tom".
    """
    if told[place.stop : place.stop + 1] in (("named",), ("called",)):
        return False
    longer = (other for places in whole.values() for other in places if len(other) > len(place))
    return any(other.start <= place.start and place.stop <= other.stop for other in longer)


def _find_starts(told: Words, part: Words) -> Iterator[int]:
    return (start for start in range(len(told) - len(part) + 1) if told[start : start + len(part)] == part)


def _shared_beginning(part: Words, other: Words) -> list[int]:
    """How many words the two begin alike, if any, and if something is left of *part*."""
    same = 0
    while same < min(len(part), len(other)) and part[same] == other[same]:
        same += 1
    return [same] if 0 < same < len(part) else []
