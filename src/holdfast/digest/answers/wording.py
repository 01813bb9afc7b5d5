"""
Wording of attributes that a model notes: category, key and value as a sentence of the user's language.

The rules of a language word what they read themselves; where they have no sentence for an address, `wording.toml` has one.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources

from ...text import expression
from ...text.render import well_formed
from ..grammar import load_language

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
