"""
Wording of attributes that a model notes: category, key and value as a sentence of the user's language.

The rules of a language word what they read themselves; where they have no sentence for an address, `wording.toml` has one.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import resources
from itertools import islice
from typing import Any

from ...scope import SELF
from ...text import dataclass, expression
from ...text.dates import date_words
from ...text.render import well_formed
from ...text.sentences import split_sentences
from ...text.terms import fold_quotes, language_of, terms
from ...types import Candidate, Message
from ..authorship import masked
from ..grammar import load_language
from ..grounding import ENDED, says_number
from ..second_look import OF_OTHERS, OF_THE_USER, OUR_WORDS, SUPPOSED, WANTED, neutral_terms, terms_of

_TITLED = frozenset({"favorite", "favourite", "appointment", "medication", "account"})
_PEOPLE = frozenset({"family", "social", "friend", "contact"})
# A name of somebody is no longer than this.
MAX_NAME_CHARS = 60
_RELATION = expression(
    r"(?:wife|husband|partner|friend|spouse|fianc\S+|mother|father|mom|dad|daughter|son|child|baby|sister|brother|in_law|aunt|uncle|cousin|niece|nephew"
    r"|mate|ex|colleague|manager|mentor|neighbou?r|boss)$"
)
_OWN_VERB = expression(
    r"(?:can['’]?t|cannot|does ?n[o'’]t|is|has|had|gets?|feels?|needs?) |[a-z]{2,}s (?:an?|the|his|her|their|my|at|in|for|on|with|every|each|up|all|most)\b"
)
_HABIT_VERB = expression(
    r"(?!(?:pilates|aerobics|athletics|gymnastics|darts|tennis|weights|sports|games|crafts|classes|lessons|press-ups|push-ups|sit-ups|laps|stairs)\b)[a-z]{3,}(?<!s)s (?:[A-Z\d]|maybe|about|around|roughly|some|no)"
)
_AILING = expression(
    r"(?:(?:left|right|lower|upper) )?[a-z]+ (?:(?:a bit|a little|slightly|quite|very|really|still) |(?:playing|acting) up|hurts?|aching|sore|swollen|in pain)"
)
_STATE = expression(
    r"(?:\w+ly )?(?:deaf|blind|mute|lame|obese|bipolar|pregnant|\w+-blind|(?!colic|panic|clinic)\w+(?:ic|sick))",
    re.IGNORECASE,
)
_YEAR_NAME = expression(
    r"(?:freshman|sophomore|junior|senior|(?:first|second|third|fourth|final)[- ]year student)", re.I
)
_TO_NOUN = expression(r"(?:an?|the|my|\w+ing|[A-Z\d]\S*)\b")
_SPENT = expression(r"max_([a-z]{3})(?:_for_(\w+))?")
_COUNTED = expression(r"(?:an?|the|some|many|several|no|two|three|four|five|six|seven|eight|nine|ten|\d+)\b", re.I)


@cache
def _wordings() -> Mapping[str, Mapping[str, str]]:
    """Return how attributes are worded by language, and by address or key, where no rule reads them."""
    return tomllib.loads((resources.files(__package__) / "wording.toml").read_text("utf-8"))


@cache
def sentences_of(code: str) -> Mapping[tuple[str, str], str]:
    """Return how the rules of a language word an attribute, by its address, with ``{value}`` for its value."""
    rules = load_language(code)
    found: dict[tuple[str, str], str] = {}
    for one in rules.patterns if rules else ():
        slots = re.findall(r"\{[^}]*\}", one.text)
        if one.kind == "attribute" and one.op == "assert" and slots == [one.value] and "{" not in one.key:
            found.setdefault((one.category, one.key), one.text.replace(one.value, "{value}"))
    return found


def attribute_sentence(category: str, key: str, value: str, code: str = "en") -> str:
    """Format an attribute as a sentence in a language: ``Lives in Lisbon.``, ``Does not smoke.``, ``Hat ein Tier namens Rex.``"""
    words, value = key.replace("_", " "), value.strip().rstrip(".")
    if (said := value.lower()) in ("true", "yes", "false", "no"):
        yes = said in ("true", "yes")
        answer = "yes" if yes else "no"
        text = _wording(code, category, f"{key} {answer}") or _answered(category, words, code, yes=yes)
    else:
        text = _worded(category, key, value, code)
    text = well_formed(text[:1].upper() + text[1:])
    return text if text.endswith((".", "!", "?", "。")) else text + "."


def address_in_words(category: str, key: str, value: str) -> str:
    """Return an address and its value as a note: ``home, lives in: Svalbard``."""
    what, name = key.replace("_", " "), category.replace("_", " ")
    return f"{name}: {what}" if value == "true" else f"{name}, {what}: {value}"


def _answered(category: str, words: str, code: str, *, yes: bool) -> str:
    """Return a key that only holds or not in words: ``is vegan``, ``mood: happy``, ``works remotely``."""
    if code != "en" or words.split()[0].endswith("s"):
        return words if yes else f"{words}: no"
    if category == "dietary":
        return f"is {words}" if yes else f"is not {words}"
    return f"{category.replace('_', ' ')}: {words}" if yes else f"{words}: no"


def _wording(code: str, category: str, key: str) -> str:
    """Return the wording of an address in a language, that of its rules first; empty where there is none."""
    known = _wordings().get(code, {})
    own = sentences_of(code).get((category, key), "") if code != "en" else ""
    return own or known.get(f"{category}/{key}", "") or known.get(key, "")


def _in_other_words(category: str, key: str, value: str, code: str) -> str:
    """Return the words of an attribute in a language other than English; empty where it has none for this address."""
    known, rules = _wordings().get(code, {}), load_language(code)
    template = _wording(code, category, key)
    if not template and category == "budget":
        return f"{known.get('budget', '{value}').replace('{value}', value).rstrip('.。')} ({key.replace('_', ' ')})"
    if not template and rules and category in ("favorite", "favourite") and "favorite" in known:
        kinds = rules.lexicons["kind_of"].canonical if "kind_of" in rules.lexicons else {}
        kind = next((word for word, meant in kinds.items() if meant == key and word != key), key.replace("_", " "))
        template = known["favorite"].replace("{kind}", kind)
    label = rules.people.get("labels", {}).get(key) if rules and category in _PEOPLE else None
    if not template and label and "relation" in known:
        named = len(value) <= MAX_NAME_CHARS and not re.search(r"[\s,]\S*[\s,]\S*[\s,]", value)
        template = known["relation"].replace("{relation}", label) if named else f"{label}: {{value}}"
    return template.replace("{value}", value)


def _worded(category: str, key: str, value: str, code: str) -> str:
    """Return the words of an attribute of any value but yes and no."""
    if code != "en" and (text := _in_other_words(category, key, value, code)):
        return text
    words = key.replace("_", " ")
    known = _wording("en", category, key) or sentences_of("en").get((category, key), "")
    if category in _TITLED and not _wording("en", category, key):
        return f"{category if category.startswith('favo') else ''} {words}: {value}".strip()
    if category == "budget":
        spent = _SPENT.fullmatch(key) if value.replace(",", "").replace(".", "").isdecimal() else None
        what = f" for {spent[2].replace('_', ' ')}" if spent and spent[2] else ""
        return f"budget{what}: {value} {spent[1].upper()}" if spent else f"budget ({words}): {value}"
    if (category in _PEOPLE or key in ("manager", "mentor", "colleague")) and _RELATION.search(key):
        named = not value[:1].islower() or " " not in value
        return f"has a {words} called {value}" if named and len(value) <= MAX_NAME_CHARS else f"{words}: {value}"
    own_verb = _OWN_VERB.match(value) or (key in ("does", "works_out") and _HABIT_VERB.match(value))
    if own_verb and key not in ("has", "plays", "owns"):
        return value  # "runs a small bike shop" is a sentence already
    if key == "has_condition" and _AILING.match(value):
        return f"health: {value}"
    if key == "has_condition" and _STATE.fullmatch(value):
        return f"is {value}"
    if key == "year" and _YEAR_NAME.fullmatch(value):
        return f"is a {value}"
    if key == "does" and value.partition(" ")[0].endswith("ing"):
        return f"{'hobby' if category == 'hobby' else 'regularly'}: {value}"
    if key == "has" and category == "family":
        several = value.partition(" ")[0].endswith("s") or _COUNTED.match(value)
        return f"has {value}" if several else f"has {'an' if value[0] in 'aeiouAEIOU' else 'a'} {value}"
    if key == "has_pet" and _COUNTED.match(value):
        return f"has {value}"
    if key in ("plans_to", "wants_to") and _TO_NOUN.match(value):
        return f"{words.split()[0]}: {value}"
    spoken = frozenset(re.findall(r"\w{3,}", known.replace("{value}", "").casefold()))
    if known and not spoken & frozenset(re.findall(r"\w{3,}", value.casefold())):
        return known.replace("{value}", value)
    verb = words.split()[0].endswith("s") and not words.split()[0].endswith("ss")
    return f"{words} {value}" if verb and not known else f"{words}: {value}"


# What a claim may say beside what it is about, and a word that makes it say no.
_CLAIMS_NOTHING = OUR_WORDS | terms_of(
    "is has have gets feels follows lives works of on from condition type preference habit issue user quite very often tends easily"
)
_NO = expression(
    r"(?<!\w)(?:not|no|non|never|cannot|without|doesn['’]t|don['’]t|isn['’]t|can['’]t)(?!\w)|^(?:false|no)$",
    re.IGNORECASE,
)
_PASSING = expression(
    r"\b(?:today|yesterday|tonight|this (?:morning|week|evening|afternoon|time)|last (?:night|week|time)|right now|at the moment|currently|once|used to|when i was|as a (?:kid|child)"
    r"|almost|nearly|if|would(?!n't touch)|might|maybe|like in|kind of joking|just kidding)\b",
    re.IGNORECASE,
)


# What may stand before the words: the beginning of a sentence or clause, and no report of what somebody says, wishes or must not say.
_OPENS = expression(
    r"(?:^|[,;–—-])\W*(?:(?:and|but|so|well|also|because|since|as|honestly|btw|actually|sadly|unfortunately|sorry|no|yes|oh|hi|hello|fyi|you know|i'm afraid) ?,? ?)*$"
    r"|\b(?:because|since) $"
)


@cache
def _entries() -> Mapping[str, Any]:
    return tomllib.loads((resources.files(__package__) / "paraphrases.toml").read_text("utf-8"))


@cache
def _paraphrases() -> tuple[tuple[re.Pattern[str], frozenset[str], frozenset[str], frozenset[str]], ...]:
    """Return each phrase, or family of phrases of a topic, with its meaning, what may accompany that, and what it denies."""
    found = [
        (one["said"], one["means"], one.get("beside", ""), one.get("denies", "")) for one in _entries()["paraphrase"]
    ]
    for one in _entries()["topic"]:
        found += [
            (
                f"(?:{shape.replace('{thing}', one['things'])})",
                one[frame],
                f"{_entries()['beside'][frame]} {one.get(f'{frame}_beside', '')}",
                one.get(f"{frame}_denies", ""),
            )
            for frame, shape in _entries()["frames"].items()
            if frame in one
        ]
    return tuple((re.compile(said), *map(terms_of, words)) for said, *words in found)  # type: ignore[misc]


def says_in_other_words(category: str, claim: str, value: str, sentence: str) -> bool:
    """
    Whether a sentence says a claim in everyday words: "Boats make me queasy" that one gets motion sick.

    Only what ``paraphrases.toml`` lists; what passes is none.  Nearness in meaning would not do: it finds what words are about, and
    "I went to a wedding" is as near to being married as "We said I do" is far.
    """
    said = fold_quotes(sentence).casefold()
    if _PASSING.search(said) or said.rstrip().endswith("?"):
        return False
    claim = claim.replace("_", " ")
    claimed, no = terms_of(claim) - _CLAIMS_NOTHING, _NO.search(claim) or _NO.search(value)
    for pattern, means, beside, denies in _paraphrases():
        core, rest = (denies, denies) if no else (means, beside)
        fits = (claimed | terms_of(category)) & core and claimed and claimed <= core | rest | terms_of(said)
        if fits and any(_OPENS.search(said[: found.start()]) for found in pattern.finditer(said)):
            return True
    return False


def said_otherwise(
    row: Mapping[str, str], value: str, messages: Iterable[Message]
) -> tuple[Message, str, int, str] | None:
    """Return the sentence that says a row without a number in everyday words that share none with it."""
    if re.search(r"\d", value) or row.get("quote", "").strip():
        return None
    claim = _claim_of(row.get("fact_key", "").strip(), value)
    for message in messages:
        for span in split_sentences(message.content) if message.role == "user" else ():
            if says_in_other_words(row.get("category", ""), claim, value, span.of(message.content)):
                return message, span.of(message.content), span.start, ""
    return None


# What a memory says of anything: no message needs to say it.
PREDICATES = terms_of(
    "uses prefers takes works runs has wants likes needs called team user lives owns eats food drinks writes disease cannot tolerate maximum budget limit pays"
)


def nearest_sentence(
    wanted: frozenset[str],
    messages: Iterable[Message],
    least: float,
    given: frozenset[str] = frozenset(),
    *,
    forms: bool = False,
) -> tuple[Message, str, int, str] | None:
    """
    Return the sentence that holds most of the wanted words, where a row gives no quote or not letter by letter.

    With *forms* a number counts in other digits and a word in a derived form.  Words that are *given* need not be said,
    as long as one of the others, or a known name, is.
    """
    best: tuple[tuple[float, float], Message, str, int, str] | None = None
    for message in messages:
        if message.role != "user":
            continue
        language, own = language_of(message.content), masked(message.content)
        for span in split_sentences(message.content):
            words, said = span.of(message.content), span.of(own)
            told, mine = (wanted & (terms_of(text) | frozenset(terms(text, language))) for text in (words, said))
            told |= {one for one in wanted - told if forms and is_related(one, words)}
            share = len(told | (wanted & given)) / max(1, len(wanted)) if told - PREDICATES or not given else 0.0
            rank = (len(mine) / max(1, len(wanted)), share)  # what is quoted in a sentence counts less
            if share >= least and (best is None or rank > best[0]):
                best = rank, message, words, span.start, ""
    return best[1:] if best else None


_DATE = expression(r"\b\d{4}-(\d\d)-(\d\d)\b")
_DERIVED = expression(r"(?:e?rs?|ors?|ing|ist|ian|ment|a?tion|al|ly|ness|y|ic|ful|ish|ed|d|s|able|ance|ence)?")
_LEAST_STEM = 4  # letters that a word and its derived form share


def key_words(value: str) -> frozenset[str]:
    """Return the words of a value that a sentence must hold: its numbers whole, a date by its day, and no units."""
    dated = _DATE.sub(lambda found: f"{int(found[2])}", value)
    numbers = frozenset(re.findall(r"\d+(?:[.,]\d+)*", dated))
    words = terms_of(re.sub(r"\d+(?:[.,]\d+)*", " ", dated))
    return numbers | ((words - neutral_terms()) or (frozenset() if numbers else words))


def names_more_than_number(row: Mapping[str, str], value: str) -> bool:
    """Whether a value holds a word beside its numbers, or is a sentence that says what its number is: an age, a limit."""
    if any(not word[0].isdecimal() for word in key_words(value)):
        return True
    return not row.get("fact_key") and any(one["of"].search(value.casefold()) for one in _compiled("role"))


def is_related(term: str, words: str) -> bool:
    """Whether a sentence has a number in other digits or words, or a form of a word: "smokes" of "smoker"."""
    if term[0].isdecimal():
        return says_number(term, words, "en")
    return any(is_derived(term, one) for one in terms_of(words))


def is_derived(one: str, other: str) -> bool:
    """Whether one of two stems is derived from the other: "smoker" from "smoke", "translation" from "translate"."""
    short, long = sorted((one.rstrip("ey"), other.rstrip("ey")), key=len)
    return len(short) >= _LEAST_STEM and long.startswith(short) and bool(_DERIVED.fullmatch(long[len(short) :]))


def as_said(value: str, said: Iterable[str]) -> str:
    """Return a value with the users' own words for relatives in it: "Father has asthma" of "dad has asthma"."""
    rules = load_language("en")
    relation = rules.lexicons.get("relation") if rules else None
    if relation is None or not (named := relation.one.search(value)):
        return value
    heard = [found[0] for text in said for found in relation.one.finditer(text)]
    if named[0].casefold() in {one.casefold() for one in heard}:
        return value
    meant = relation.lookup(named[0])
    own = next((one for one in heard if relation.lookup(one) == meant), "")
    return f"{value[: named.start()]}{own}{value[named.end() :]}" if own and meant else value


ADDS = frozenset("add append join multi also insert new".split())  # what a row may call adding a value


def each_of_list(row: dict[str, str], messages: Iterable[Message]) -> list[dict[str, str]]:
    """Return a row for each value of a list that is added: "nuts, eggs" of "nuts and eggs"; "Paris, France" is one place."""
    value, added = row.get("fact_value", ""), row.get("op", "").strip().lower() in ADDS and row.get("fact_key")
    parts = [part.strip() for part in value.split(",")]
    said = "\n".join(message.content for message in messages if message.role == "user").casefold()
    apart = added and value.casefold() not in said and all(part and part.casefold() in said for part in parts)
    return [{**row, "fact_value": part} for part in parts] if apart and not re.search(r"\d", value) else [row]


# What somebody says of themselves, in English (the last are sentences that leave "I" out), and what supposes behind it.
_OF_ONESELF = expression(
    r"\b(?:i|we|me|us|my|our|mine|ours|myself|please)\b|^\W*(?:got|have|had|been|trying|living|keep|no|only|never|always|can['’]t|don['’]t)\b",
    re.IGNORECASE,
)
_SUPPOSES = expression(r"\W*(?:if|unless|suppose|imagine|wenn|falls|si|se|als)\s+", re.IGNORECASE)


def stated_unquoted(
    row: Mapping[str, str], value: str, told: tuple[Message, str, int, str] | None
) -> tuple[Message, str, int, str] | None:
    """
    Return the words on which a row without a quote rests; none where they say nothing of the user, or lack a number of it.

    They begin behind "if", so that what they suppose is seen.
    """
    if told is None:
        return None
    message, said, start, reason = told
    code = language_of(said)
    unsaid = any(not says_number(number, said, code) for number in re.findall(r"\d+(?:[.,]\d+)*", value))
    if unsaid or not (row.get("subject") or code != "en" or _OF_ONESELF.search(said)):
        return None
    supposes = _SUPPOSES.match(said)
    skipped = supposes.end() if supposes else 0
    return message, said[skipped:], start + skipped, reason


def says_of_user(candidate: Candidate) -> bool:
    """Whether the quoted words say a claim of the user in everyday words, whatever they begin with."""
    value = candidate.value or candidate.text
    return says_in_other_words(candidate.category, _claim_of(candidate.key, value), value, candidate.quote)


def _claim_of(key: str, value: str) -> str:
    return f"{key} {'' if value.casefold() in ('true', 'yes', 'false', 'no') else value}"


_HAS_CHILDREN = expression(r"has (?:[\w-]+ ){1,3}?(?:sons?|daughters?|child|children|kids?)\b", re.IGNORECASE)
_PARENT_OF = expression(r"\b(?:mother|father|mom|mum|dad|parent)s? (?:of|to) \w", re.IGNORECASE)
_CHILDREN = expression(
    r"\b(?:(?:step)?(?:sons?|daughters?)|child(?:ren)?|kids?|boys?|girls?|twins?|triplets|bab(?:y|ies)|toddlers?|newborn)\b"
)


def verify_sentence(text: str, content: str) -> str:
    """Return why no sentence of the user says what a statement does; as `verify_relation` for the attribute that it would be."""
    if _HAS_CHILDREN.match(text) and not _PARENT_OF.search(content):
        named = {found[0] for found in _CHILDREN.finditer(content.casefold())}
        return "" if any(not verify_relation("family/children", one, content) for one in named) else NOT_SAID_OF_USER
    for one in _compiled("sentence"):
        if found := one["of"].fullmatch(text):
            return verify_relation(one["at"], found["value"], content)
    return ""


NOT_SAID_OF_USER = (
    "not-asserted: the words name it and do not say that it is so of the user; a quote would show which do"
)
_GAP = r"(?:(?!(?:with|in|of|at|for|from|to|on|about|by|near|than|because|and|but|so)\b)[\w'-]+ ){0,3}?"
_MOST_OF_FRAGMENT = 3  # words of a sentence without a verb: "Two cats."
_AROUND_VALUE = 12  # characters between two words of one value
_WITH_SUBJECT = expression(r"\W*(?:i|we|he|she|they|you|it)\b(?!['’](?:m|re|ve))", re.IGNORECASE)
_VALUE = "¤"


# What is another's, and whatever stands beside it: "my neighbour's boat", "my sister's old guitar".
_OF_ANOTHER = expression(
    r"\b(?!(?:it|he|she|that|there|here|what|who|let|today|home|[\w-]*\bbeen)'s)(?:my|our|the|his|her|their|other|an?) (?:[\w-]+ )?[\w-]+(?:'s|s') (?:[\w-]+ ){0,2}¤|\b(?:his|her|their|your) (?:\w+ )?¤"
)
# What happened to be there once, or what one only speaks of: "I met a man with a husky", "a bet about asthma".
_IN_PASSING = expression(
    r"\b(?:met|saw|seen|heard|parked|ate|ordered|dated|flew|passed|visited|watch(?:ed|ing)?|read(?:ing)?|borrowed|photograph(?:ed|s|ing)?|painted|drew|sold|repair(?:ed|s|ing)?"
    r"|fix(?:ed|es|ing)?|translat(?:e|ed|ing)|petted|stroked|bumped|talk(?:ed|ing)?|spoke|listen(?:ed|ing)?|deliver(?:ed|ing)?|sat (?:next|beside)|about|next to|behind|opposite)"
    r"\b(?:(?! and )[^,;.!?]){0,25}¤|\b(?:used to|no longer)\b[^,;.!?]{0,30}¤"
)
_ONES_OWN = expression(r"\b(?:my|our) (?:[\w-]+ )?¤")
_SAYS_LITTLE = terms_of(
    "food drink music weather place thing people time style work home way kind type activity level skill"
)
_OF_FIRMS = terms_of(
    "company corp corporation inc ltd llc gmbh group co plc the hospital university school store office"
)


@dataclass(frozen=True, slots=True)
class _Relation:
    """A rule on what a sentence must say around a value, for facts of some addresses, and what it must not."""

    of: re.Pattern[str]
    said: re.Pattern[str]
    unless: re.Pattern[str] | None
    bare: bool
    whole: bool

    def says(self, sentence: str) -> bool:
        """Whether a sentence with a mark for the value says it of the user."""
        return bool(self.said.search(sentence)) and not (self.unless and self.unless.search(sentence))


@cache
def _relations() -> tuple[_Relation, ...]:
    return tuple(
        _Relation(
            re.compile(one["of"]),
            re.compile(one["said"].replace("{gap}", _GAP)),
            re.compile(one["unless"].replace("{gap}", _GAP)) if "unless" in one else None,
            bool(one.get("true")),
            bool(one.get("whole")),
        )
        for one in _entries()["relation"]
    )


def verify_relation(address: str, value: str, content: str) -> str:
    """
    Return why no sentence with the words of a value says what its address says of the user; empty when one does.

    For a row without a quote, in English: "There's a dog in my yoga class" holds `dog` and says nothing of a pet.
    """
    bare = value.casefold() in ("true", "yes", "false", "no") or (
        address.startswith("health/") and value[:1].isdecimal()
    )
    claimed = terms_of(address.partition("/")[2] if bare else value) - _CLAIMS_NOTHING
    asked = [one for one in _relations() if one.of.search(address) and (bare or not one.bare)]
    said = claimed & terms_of(content)
    if said and said <= _SAYS_LITTLE and claimed - said and not bare:
        return NOT_SAID_OF_USER  # "mild food" of "spicy food makes me happy"
    if not asked or not claimed:
        return ""
    if any(one.whole for one in asked) and claimed - _OF_FIRMS - said:
        return NOT_SAID_OF_USER
    about = address.partition("/")[2].replace("_", " ")  # "my hearing's bad" is of the user's
    plain = [
        fold_quotes(span.of(content)).casefold().replace(f"{about}'s ", f"{about} is ")
        for span in split_sentences(content)
    ]
    told = [_marked(sentence, claimed) for sentence in plain]
    told = [sentence for sentence in told if _VALUE in sentence]  # where none has them, other words say it or none does
    for sentence in told:
        if len(sentence.split()) <= _MOST_OF_FRAGMENT and not _WITH_SUBJECT.match(sentence):
            return ""
        passing = _IN_PASSING.search(sentence) and not _ONES_OWN.search(sentence)
        if not (passing or _OF_ANOTHER.search(sentence)) and all(one.says(sentence) for one in asked):
            return ""
    return NOT_SAID_OF_USER if told else ""


def _marked(sentence: str, claimed: frozenset[str]) -> str:
    """Return a sentence with a mark in the place of the words of a value."""
    places = [word.span() for word in re.finditer(r"[\w.+#'-]*[\w+#]", sentence) if terms_of(word[0]) & claimed]
    if not places:
        return sentence
    start, end = places[0]
    for at, until in places[1:]:
        end = until if at - end <= _AROUND_VALUE else end
    return sentence[:start] + _VALUE + sentence[end:]


TOOL_NOT_SAID = "name-not-said: it names a tool or a format that was not named"
NOT_PREFERRED = "not-asserted: the words name a tool and do not say that it is preferred"
_OF_TASTE = frozenset(("preference", "preferences", "tech", "technical"))
_NAMED_BY_CAPITALS = expression(r"\b(?!(?:[KMGT]i?B|RAM|CPU|GPU|SSD|TV|PC|USB)s?\b)(?=\w*[A-Z]\w*[A-Z])[A-Za-z][\w+#]+")
_CAPITALS = expression(r"(?<=\s)(?!(?:[KMGT]i?B|RAM|CPU|GPU|SSD|TV|PC|USB)s?\b)[A-Z][\w+#]+")
_ROOT = 5  # letters of a name that was said, whatever its ending
_PREFERS = expression(r"\W*(?:(?:the )?user |i |we )?prefer(?:s|red)?\b(?P<what>.*)", re.IGNORECASE | re.DOTALL)
_OVER = expression(r"\b(?:over|rather than|instead of|more than)\b(?P<less>.*)", re.IGNORECASE | re.DOTALL)
_LIKES = expression(
    r"\b(?:prefer\w*|like[sd]?|lov(?:e|es|ed|ing)|rather|favou?r\w*|best|better|enjoy\w*|fan of|keen|always|usually|mostly|stick\w*|go(?:es)? for|instead|over|please|beats?|worst|worse"
    r"|hat(?:e|es|ed)|dislik\w*|stand|tired of|sick of|use[sd]?|using|writ(?:e|es|ing)|work(?:s|ing)? (?:in|with)|switch\w*|chos\w+|choos\w+|pick\w*|for me|happ(?:y|ier)|comfortable|default|wants? (?!(?:an?|the|some|to|you|your|it|me|this|that|more|all)\b)\w+)\b",
    re.IGNORECASE,
)


def _tools_in(text: str) -> set[str]:
    """Return the tools that a text names, by the names under which the rules know them."""
    rules = load_language("en")
    lists = [words for name, words in rules.lexicons.items() if name.startswith("tech_")] if rules else []
    return {words.lookup(found[0]) or found[0].casefold() for words in lists for found in words.one.finditer(text)}


def verify_tools(category: str, text: str, message: str, heard: str) -> str:
    """
    Return why the words do not carry a claim about tools: it names one that is not in *heard*, or a taste that is not in *message*.

    "I prefer statically typed languages" prefers no TypeScript, and who asks for an example in Kotlin prefers no Kotlin.
    """
    if category not in _OF_TASTE:
        return ""
    tools, said = _tools_in(text), heard.casefold()
    spelled = {
        word[0].casefold() for word in (_CAPITALS if category.startswith("tech") else _NAMED_BY_CAPITALS).finditer(text)
    }
    if tools - _tools_in(heard) or any(
        word[:_ROOT] not in said and word not in {one.casefold() for one in tools} for word in spelled
    ):
        return TOOL_NOT_SAID
    prefers = _PREFERS.match(text)
    less = _OVER.search(prefers["what"]) if prefers else None
    if less and not terms_of(less["less"]) <= terms_of(heard):
        return TOOL_NOT_SAID if _tools_in(less["less"]) else NOT_PREFERRED
    return NOT_PREFERRED if prefers and tools and not _LIKES.search(message) else ""


NO_NOT_SAID = "negation-not-said: it says no, and no words of the user do"
JOB_NOT_SAID = "name-not-said: it names a job that the words do not say of the user"
NOT_THAT_NUMBER = "number-not-said: the words hold the number, and not as {name}"
OTHER_COUNT = "number-not-said: the words count {said} with the number, and the claim {claimed}"
_NUMERAL = expression(r"\d+(?:[.,]\d+)*(?: ?(?:k|grand|thousand|million)\b)?|[a-z]+(?: (?:grand|thousand))?", re.I)
_RATE = expression(r"\b(?:a|per|each|every) (day|night|week|month|year)\b", re.IGNORECASE)
# Where a clause ends; a list and a shared verb go on behind a comma or "and".
_APART = expression(
    r"[;:.!?()—–]\s|[,]\s|\s-\s|\b(?:but|because|since|so|although|though|while|whereas|which|and(?= (?:i|we|i'm|i've|we're|my|our|now|he|she|they|the|it)\b))\b",
    re.IGNORECASE,
)


@cache
def _compiled(table: str) -> tuple[Mapping[str, Any], ...]:
    """Return the entries of a table of ``paraphrases.toml`` with their expressions compiled."""
    found, person = _entries()[table], _entries()["stance"]["person"]
    return tuple(
        {part: said if part in ("name", "why", "at") else _expression(said, person) for part, said in one.items()}
        for one in (found if isinstance(found, list) else [found])
    )


def _expression(said: str, person: str) -> re.Pattern[str]:
    return re.compile(said.replace("\n", "").replace("{person}", person), re.IGNORECASE)


def verify_clauses(candidate: Candidate, content: str) -> str:
    """
    Return why the clauses with the words of a claim say something else than it does; empty when one clause of each does not.

    For a row without a quote, in English: past or wanted for present, what another does, a number that counts something else.  Each name
    and number must stand in a clause that carries it; of other words one must.
    """
    if candidate.op == "retract" or candidate.modality != "asserted":
        return ""
    claim, attribute = _told(candidate), candidate.kind == "attribute"
    value = candidate.value if attribute else candidate.text
    bare = value.casefold() in ("true", "yes", "false", "no")
    sentences = [fold_quotes(span.of(masked(content))) for span in split_sentences(content)]
    if _names_other_job(claim, content):
        return JOB_NOT_SAID
    if not bare and _says_other_number(value, content, sentences):
        return OTHER_NUMBER
    if _NO.search(claim) and not _compiled("denial")[0]["said"].search(" ".join(sentences)):
        return NO_NOT_SAID
    telling: list[list[str]] = []  # of each word that must stand in a clause that carries it, why its clauses do not
    others: list[str] = []
    plain: list[str] = []
    for word in re.finditer(r"[^\W_][\w.,+#'-]*[\w+#]|\w", candidate.key.replace("_", " ") if bare else value):
        stems, number = terms_of(word[0]), word[0] if word[0][0].isdecimal() else ""
        found = (place for one in sentences for place in _places_of(word[0], stems, one))
        places = list(islice(found, MOST_PLACES))
        whys = [_why_other(candidate, claim, one, at, number) for one, at in places]
        named = word.start() > 0 and word[0] != word[0].lower()
        if not number and not stems - _CLAIMS_NOTHING - PREDICATES:
            plain += whys
        elif number or named or attribute:
            telling.append(whys)
        else:
            others += whys
    flawed = [whys[0] for whys in telling if whys and all(whys)]
    rest = [why for whys in (*telling, others) for why in whys] or plain
    return flawed[0] if flawed else rest[0] if rest and all(rest) else ""


_OF_JOBS = expression(r"^(?:works as|is an?|is the|occupation:)\b", re.IGNORECASE)


def _says_other_number(value: str, content: str, sentences: Iterable[str]) -> bool:
    """Whether a claim holds a number in words that was not said, or counts a thing that a said number is not near: "two wives"."""
    table = date_words()["en"].numbers
    for found in re.finditer(
        r"(?<![\w.,])(\d{1,15}|[a-z]+)(?=(?: (?!of\b)[\w'-]+)?? ([a-z]{3,}s)\b)?", value.casefold()
    ):
        number, thing = found[1], found[2]
        amount = number if number.isdecimal() else str(int(table[number])) if number in table else ""
        if not amount or int(amount) < 2 or number in _VAGUE:
            continue
        said = any(says_number(amount, one, "en") for one in sentences)
        if not said and not number.isdecimal() and int(amount) > MOST_COUNTED:
            return True
        single = thing and thing not in content.casefold()  # "34, with my cat" counts no cats
        if single and said and terms_of(thing) & terms_of(content) and not terms_of(thing) <= neutral_terms():
            near = (_near(thing, one) for one in sentences)
            if not any(says_number(amount, words, "en") for parts in near for words in parts):
                return True
    return False


_VAGUE = frozenset("several few couple some many dozen dozens".split())
MOST_COUNTED = 3  # of what a user names one by one
OTHER_NUMBER = "number-not-said: the words do not count that many of it"


def _near(thing: str, sentence: str) -> Iterator[str]:
    """Yield the words around each place of a thing in a sentence."""
    words = re.findall(r"[\w.,'-]+", sentence)
    for at, word in enumerate(words):
        if terms_of(thing) & terms_of(word):
            yield " ".join(words[max(0, at - 3) : at + 4])


def _names_other_job(claim: str, content: str) -> bool:
    """Whether a sentence names a job in a word that the user did not use for their own."""
    rules = load_language("en")
    jobs = rules.lexicons.get("job_head") if rules else None
    if jobs is None or not _OF_JOBS.match(claim):
        return False
    named = [found[0] for found in jobs.one.finditer(claim)]
    plain = fold_quotes(content).casefold()
    places = [found for name in named[:1] for found in re.finditer(rf"\b{re.escape(name)}\b", plain)]
    if places and all(_ANOTHERS.search(plain[: found.start()]) for found in places):
        return True  # "my Spanish teacher"
    said = terms_of(content)
    roots = {found[1][:_JOB_ROOT] for found in _I_DO.finditer(content.casefold())}
    return any(
        not (terms_of(name) & said or {stem[:_JOB_ROOT] for stem in terms_of(name)} & roots) for name in named[:1]
    )


_ANOTHERS = expression(r"\b(?:my|our|his|her|their|your) (?!job\b)(?:[\w-]+ ){0,2}$")
_I_DO = expression(r"\bi(?:'ve| have|'m)?(?: (?:\w+ly|also|been|still|now))? (\w{4,})")
_JOB_ROOT = 4  # letters that "teach" and "teacher" share


def _told(candidate: Candidate) -> str:
    """Return a claim as words: category/key and value, or its sentence."""
    if candidate.kind == "attribute":
        return f"{candidate.category}/{candidate.key.replace('_', ' ')} {candidate.value}".casefold()
    return fold_quotes(candidate.text).casefold()


def _places_of(word: str, stems: frozenset[str], sentence: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the places of a word, or of a number however it is written, in a sentence."""
    for one in _NUMERAL.finditer(sentence) if word[0].isdecimal() else re.finditer(r"[\w.+#'-]*[\w+#]", sentence):
        if says_number(word, one[0], "en") if word[0].isdecimal() else _is_form(stems, one[0]):
            yield sentence, one.span()


def _is_form(stems: frozenset[str], word: str) -> bool:
    found = terms_of(word)
    return bool(stems & found) or any(is_derived(one, other) for one in stems for other in found)


def _why_other(candidate: Candidate, claim: str, sentence: str, at: tuple[int, int], number: str = "") -> str:
    """Return why the clause around a place says something else of it than a claim; empty when it does not."""
    start, end = at
    sentence, start, end = _cut(sentence, start, end)
    marked = f"{sentence[:start]}{_VALUE}{sentence[end:]}"
    clause = _clause_of(sentence, start, end)
    (stances,), (claims,) = _compiled("stance"), _compiled("claim")
    if any(ch.isdecimal() for ch in sentence[start:end]):
        clause = _ROUGHLY.sub("", clause)
    if number and (why := _other_role(claim, number, marked, sentence[end:])):
        return why
    if stances["holds"].search(clause) or stances["still"].search(marked):
        return ""
    if not claims["past"].search(claim) and not claims["denied"].search(claim):
        if stances["ended"].search(clause) or stances["over"].search(marked):
            return ENDED
    for one in _compiled("only"):
        if one["of"].search(claim) and one["said"].search(marked if one["why"] == "negated" else clause):
            why = one["why"]
            return {"ended": ENDED, "another": OF_OTHERS}.get(why) or SUPPOSED.format(modality=why)
    if not claims["wished"].search(claim) and stances["wanted"].search(clause):
        return WANTED
    if stances["supposed"].search(clause) and not claims["wished"].search(claim):
        return SUPPOSED.format(modality="hypothetical")
    if not claims["denied"].search(claim) and stances["negated"].search(clause):
        return SUPPOSED.format(modality="negated")
    refused = claims["denied"].search(claim) and stances["wanted"].search(clause)  # "she wants to move, I'd rather not"
    others = candidate.subject == SELF and candidate.category not in (*OF_THE_USER, "project") and not refused
    if others and stances["other"].search(clause) and not claims["person"].search(claim):
        return OF_OTHERS
    return ""


def _cut(sentence: str, start: int, end: int) -> tuple[str, int, int]:
    """Return what is near a place in a sentence, and the place in it; some sentences have no end."""
    first = max(0, start - MOST_AROUND)
    return sentence[first : end + MOST_AROUND], start - first, end - first


MOST_AROUND, MOST_PLACES = 400, 40


def _clause_of(sentence: str, start: int, end: int) -> str:
    """Return the clause around a place with a mark in it; one that goes on with "then" or "or" keeps the one before."""
    cuts = [0, *(found.end() for found in _APART.finditer(sentence[:start]))]
    while len(cuts) > 1 and _GOES_ON.match(sentence[cuts[-1] : start]):
        cuts.pop()
    return f"{sentence[cuts[-1] : start]}{_VALUE}{_APART.split(sentence[end:])[0]}".strip()


_ROUGHLY = expression(r"\b(?:maybe|perhaps) ", re.IGNORECASE)  # "maybe 20" is a guess, not a wish
_GOES_ON = expression(r"\W*(?:and )?(?:then|or|later|afterwards|before that)\b(?! (?:now|we|i)\b)", re.IGNORECASE)


def _other_role(claim: str, number: str, sentence: str, behind: str) -> str:
    """Return why a number that is marked in a sentence is another one than that of a claim."""
    for one in _compiled("role"):
        if one["of"].search(claim) and (one["unless"].search(sentence) or not one["said"].search(sentence)):
            return NOT_THAT_NUMBER.format(name=one["name"])
    rates = (_RATE.search(behind[:20]), _RATE.search(claim))
    if rates[0] and rates[1] and rates[0][1] != rates[1][1]:
        return OTHER_COUNT.format(said=f"a {rates[0][1]}", claimed=f"a {rates[1][1]}")
    kinds = _compiled("count")
    counted = next((one["name"] for one in kinds if one["behind"].match(behind)), "")
    itself = (one["behind"].match(claim.partition(number)[2]) for one in kinds)
    claimed = [one["name"] for one in kinds if one["claim"].search(claim)]
    if counted and claimed and counted not in claimed and not any(itself):
        return OTHER_COUNT.format(said=counted, claimed=claimed[0] or "something else")
    return ""
