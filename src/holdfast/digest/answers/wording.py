"""
Wording of attributes that a model notes: category, key and value as a sentence of the user's language.

The rules of a language word what they read themselves; where they have no sentence for an address, `wording.toml` has one.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from typing import Any

from ...text import dataclass, expression
from ...text.render import well_formed
from ...text.sentences import split_sentences
from ...text.terms import fold_quotes, language_of
from ...types import Candidate, Message
from ..grammar import load_language
from ..grounding import says_number
from ..second_look import OUR_WORDS, terms_of

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
        spent = _SPENT.fullmatch(key) if value.replace(",", "").replace(".", "").isdigit() else None
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
    bare = value.casefold() in ("true", "yes", "false", "no")
    claimed = terms_of(address.partition("/")[2] if bare else value) - _CLAIMS_NOTHING
    asked = [one for one in _relations() if one.of.search(address) and (bare or not one.bare)]
    said = claimed & terms_of(content)
    if said and said <= _SAYS_LITTLE and claimed - said and not bare:
        return NOT_SAID_OF_USER  # "mild food" of "spicy food makes me happy"
    if not asked or not claimed:
        return ""
    if any(one.whole for one in asked) and claimed - _OF_FIRMS - said:
        return NOT_SAID_OF_USER
    told = [_marked(fold_quotes(span.of(content)).casefold(), claimed) for span in split_sentences(content)]
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
_NAMED_BY_CAPITALS = expression(r"\b(?=\w*[A-Z]\w*[A-Z])[A-Za-z][\w+#]+")
_CAPITALS = expression(r"(?<=\s)[A-Z][\w+#]+")
_ROOT = 5  # letters of a name that was said, whatever its ending
_PREFERS = expression(r"\W*(?:(?:the )?user |i |we )?prefer(?:s|red)?\b(?P<what>.*)", re.IGNORECASE | re.DOTALL)
_OVER = expression(r"\b(?:over|rather than|instead of|more than)\b(?P<less>.*)", re.IGNORECASE | re.DOTALL)
_LIKES = expression(
    r"\b(?:prefer\w*|like[sd]?|lov(?:e|es|ed|ing)|rather|favou?r\w*|best|better|enjoy\w*|fan of|keen|always|usually|mostly|stick\w*|go(?:es)? for|instead|over|please|beats?|worst|worse"
    r"|hat(?:e|es|ed)|dislik\w*|stand|tired of|sick of|use[sd]?|using|writ(?:e|es|ing)|work(?:s|ing)? (?:in|with)|switch\w*|chos\w+|choos\w+|pick\w*|for me|happ(?:y|ier)|comfortable|default)\b",
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
