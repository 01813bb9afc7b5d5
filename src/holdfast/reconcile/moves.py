"""
Words that move something elsewhere: "the logs are in Elastic now", "we moved to GitHub Actions".  Pure.

What was believed of the old place ends only where the words leave no room for both.  Written for English.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import takewhile

from ..text import expression
from ..text.terms import tool_kinds
from .compare import sequence, thing_stems

_OBJECT = r"(?: (?:our |the |my )?(?:ci|ci/cd|builds?|pipelines?|everything|it all|all of it|deployments?))?"
_PARTLY = expression(
    r"\b(?:too|also|as well|both|some|part|partly|partially|half|most|mostly|sometimes|besides|in addition|plus|and|or|not|never|n't|might|may|maybe"
    r"|could|would|should|want|plan|planning|hope|if)\b|n't\b",
    re.IGNORECASE,
)
# Words that may say where, or how far, a tool was left.
_LIMITED = expression(
    r"\b(?:only|still|back|stays?|at (?:home|my)|for (?:the|my|our|some|one|a)|in (?:one|the demo)|on (?:my|the))\b",
    re.IGNORECASE,
)
# A part of a product that is written in one language or framework: who rewrites it in another has left the first.
_REWRITTEN = r"""\b(?:rewrote|rewritten|ported|rebuilt|converted|re-?implemented|redid|redone|moved|migrated|switched) (?:the|our|my) (?:whole |entire )?
(?P<part>back-?end|front-?end|api|app|server|service|website|site|bot|pipeline|codebase|monorepo|shop|blog|cli|game)(?: over)?(?: from [\w.\#+ ]{1,20}?)?\ (?:in|to|on|with|using)\ """
_VERSION = expression(r" v?\d[\w.]*$")
_NAME_ENDS = r"(?=\s*(?:[.!,;]|$|now\b|last\b|this\b|in (?:\d{4}|jan|feb|mar|apr|may|june?|july?|aug|sep|oct|nov|dec|spring|summer|autumn|fall|winter)))"
_NOW = expression(r"[\s,]+(?:now|nowadays|these days|instead|from now on)[\s.!]*$", re.IGNORECASE)
_PLACED = expression(r"(?P<what>.{2,60}?)\s+(?P<how>in|on)\s+(?P<where>[A-Z][\w.+-]*(?: [A-Z][\w.+-]*){0,2})")
_USED_FOR = expression(
    r"(?:uses?|runs?) (?P<where>[\w.+-]+(?: [\w.+-]+){0,2}?) (?P<how>for) (?P<what>.{2,60})", re.IGNORECASE
)
_THESE_DAYS = expression(r"\b(?:now|nowadays|these days|instead)\b", re.IGNORECASE)
_NOW_FIRST = expression(r"(?:now|nowadays|these days),? (?=(?:uses?|runs?)\b)", re.IGNORECASE)
_STAYS = expression(
    r"\b(?:is|are|lives?|stays?|sits?|keeps?|stores?|tracks?|logs?|hosts?|documents?|writes?|files?|plans?|monitors?|deploys?)\b",
    re.IGNORECASE,
)
# Who can be in two places of different kinds at once: in Rome, and in a club.
_PEOPLE = expression(
    r"\b(?:mother|father|mom|mum|dad|parents?|sisters?|brothers?|sons?|daughters?|wife|husband|partner|girlfriend|boyfriend|friends?|boss|colleagues?|cousins?"
    r"|aunts?|uncles?|kids?|child|children|baby|family|team|users?|customers?|clients?|employees|people|neighbou?rs?|offices?|shops?|stores|branches|i|he|she|they)\b",
    re.IGNORECASE,
)
_DAYS = expression(
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?|january|february|march|april|may|june|july|august|september|october|november|december",
    re.IGNORECASE,
)


_MAY_MOVE = expression(
    r"\b(?:moved|migrated|switched|changed|went|ported|converted|transferred|rewrote|rewritten|rebuilt|re-?implemented|redid|redone|from|now|nowadays|these days|instead)\b",
    re.IGNORECASE,
)


def may_move(text: str) -> bool:
    """Whether a message has a word that every other question here asks for; most have none, and read nothing."""
    return _MAY_MOVE.search(text) is not None


def is_put_elsewhere(text: str, old: str) -> bool:
    """Whether a sentence gives what an older one says another place, time or number, which leaves no room for the old."""
    return placed_elsewhere(text, old) or changes_when(text, old)


def placed_elsewhere(text: str, old: str) -> bool:
    """
    "Our logs are in Elastic now" after "Our logs are in Loki": the same things, in one named place and then in another.

    So is "Uses Elastic for logs now" after "Uses Loki for logs".
    """
    now = _NOW.search(text) or _NOW_FIRST.match(text)
    if now is None or _PARTLY.search(text) or _PARTLY.search(old):
        return False
    one, other = (_NOW_FIRST.sub("", _NOW.sub("", told)).rstrip(" .!") for told in (text, old))
    here, there = _USED_FOR.fullmatch(one), _USED_FOR.fullmatch(other)
    used = here is not None and there is not None
    if not used:
        here, there = _PLACED.fullmatch(one), _PLACED.fullmatch(other)
    if here is None or there is None or here["how"] != there["how"]:
        return False
    what, where = here["what"], (here["where"], there["where"])
    if not used and (_PEOPLE.search(what) or not _STAYS.search(what) or any(_DAYS.fullmatch(place) for place in where)):
        return False
    same = sequence(what) == sequence(there["what"]) and bool(thing_stems(what))
    return same and not thing_stems(where[0]) & thing_stems(where[1])


_WHEN = expression(
    r"(?:(?:at|in|on|by|every|each|early|late|around|about|the|a|an|of|once|twice|per|o'clock|am|pm|half|past|noon|midnight|night|nights|times|first|last|every|other"
    r"|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|\d[\d:.,]*(?:am|pm)?|(?:day|week|month|year|hour|minute|morning|afternoon|evening|quarter|weekday|weekend)s?|daily|weekly|monthly|yearly) ?)+",
    re.IGNORECASE,
)
_SINCE_NOW = expression(r"[\s,]+(?:now|nowadays|these days|from now on)$", re.IGNORECASE)
_TIMES_OF_SEVERAL = expression(
    r"(?:has|have|takes|plays|likes|loves|was|wants|plans|sees|meets|visits|goes|gives|teaches)\b", re.IGNORECASE
)


def changes_when(text: str, old: str) -> bool:
    """
    Whether a sentence gives the same thing another time or number: "Starts work at 7 now" after "at 9".

    It must say that it is so now, or what is best: "Works best early in the morning" after "late at night".
    """
    one, other = _SINCE_NOW.sub("", text.rstrip(" .!")), old.rstrip(" .!")
    lately = one != text.rstrip(" .!")
    new, known = one.casefold().split(), other.casefold().split()
    shared = [word for word, _ in takewhile(lambda pair: pair[0] == pair[1], zip(new, known, strict=False))]
    while shared and _WHEN.fullmatch(shared[-1]):
        shared.pop()  # "at", before either time
    if (
        _PARTLY.search(text)
        or _PARTLY.search(old)
        or _TIMES_OF_SEVERAL.match(text)
        or not {*shared} - _GENERAL - {"is"}
    ):
        return False
    rest = [" ".join(words[len(shared) :]) for words in (new, known)]
    days = [{word for word in words.split() if _DAYS.fullmatch(word)} for words in rest]
    return (
        (lately or shared[-1] == "best")
        and days == [set(), set()]
        and rest[0] != rest[1]
        and all(map(_WHEN.fullmatch, rest))
    )


_CHANGE = expression(
    r"\b(?:now|nowadays|these days|instead|from now on|no longer|any ?more|switched|moved|migrated|upgraded|downgraded|changed|replaced|swapped|flipped"
    r"|dropped|left|(?:is|are) (?:history|out|gone|over))\b",
    re.IGNORECASE,
)
_BESIDE = expression(
    r"\b(?:too|also|as well|both|some|sometimes|partly|half|mostly|besides|in addition|plus|another|still|may|might|maybe|thinking|considering|evaluating)\b",
    re.IGNORECASE,
)
# Of these one has many, or the words around them say nothing of what they are for.
_SEVERAL = frozenset(
    "has have had owns likes loves dislikes enjoys speaks plays knows met visited bought reads takes wants plans is".split()
)
_GENERAL = frozenset(
    "a an the of to at in on for with uses runs works prefers needs lives does goes user user's".split()
)
_MOST_CHANGED = 3


def changes_part(text: str, old: str, said: str) -> bool:
    """
    Whether a memory in a model's words puts one part in place of another of a memory that is the same otherwise.

    "On the Scale plan" does after "On the Growth plan", where the message (*said*) tells of a change: "we upgraded to Scale".
    So does "No longer takes metformin" after "Takes metformin twice a day".
    """
    new, known = (told.casefold().rstrip(" .").split() for told in (text, old))
    if new[:2] == ["no", "longer"] and len(new) > 3:
        return known[: len(new) - 2] == new[2:]
    if not new or new[0] in _SEVERAL or not _CHANGE.search(said) or _BESIDE.search(said):
        return False
    if new != known and sorted(new) == sorted(known):
        return new[0] == known[0]  # "Prefers Python over JavaScript", the other way around
    shared = list(takewhile(lambda pair: pair[0] == pair[1], zip(new, known, strict=False)))
    new, known = new[len(shared) :], known[len(shared) :]
    behind = list(takewhile(lambda pair: pair[0] == pair[1], zip(reversed(new), reversed(known), strict=False)))
    new, known = new[: len(new) - len(behind)], known[: len(known) - len(behind)]
    frame = {word for word, _ in (*shared, *behind) if word not in _GENERAL}
    one_part = all(0 < len(part) <= _MOST_CHANGED for part in (new, known)) and not {*new} & {*known}
    return one_part and bool(shared and frame) and not thing_stems(" ".join(new)) & thing_stems(" ".join(known))


def is_rewritten_in(said_of_old: Iterable[str], new: str, text: str) -> bool:
    """Whether a message moves to *new* the part of a product that the old quotes name: "rewrote the backend in Go"."""
    name = re.escape({"Golang": "Go"}.get(new, new))
    found = re.search(_REWRITTEN.replace("\n", "") + name + _NAME_ENDS, text, re.IGNORECASE)
    if found is None or _PARTLY.search(text) or _LIMITED.search(text):
        return False
    part = rf"(?<!\w){found['part'].replace('-', '-?')}(?!\w)"
    return any(re.search(part, quote, re.IGNORECASE) for quote in said_of_old)


def is_moved_whole(new: str, text: str) -> bool:
    """Whether a message moves all that there is to *new*: "we've migrated everything to FastAPI"."""
    moved = rf"\b(?:moved|migrated|switched|ported|converted|rewrote|rewritten|transferred) (?:everything|it all|all of it|the whole thing|the lot)(?: over)? (?:to|in|onto|into) {re.escape(new)}{_NAME_ENDS}"
    return re.search(moved, text, re.IGNORECASE) is not None and not _PARTLY.search(text) and not _LIMITED.search(text)


def has_taken_over(said_of_old: Iterable[str], new: str, text: str) -> bool:
    """Whether *new* now does what the old messages say of another tool: "Adyen handles our payments now", after "Stripe for payments"."""
    if not _THESE_DAYS.search(text) or _PARTLY.search(text) or _LIMITED.search(text):
        return False
    name, what = re.escape(new), r"(?P<what>(?!now\b)[a-z-]+(?: (?!now\b|these\b)[a-z-]+)?)"
    served = (
        rf"\b(?:our|my|the) {what} (?:are|is|goe?s?|lives?|sits?|runs?)(?: kept| stored| sent| shipped)? (?:now )?(?:in|to|on|through|with|via) {name}(?!\w)",
        rf"(?<!\w){name} (?:for|as) (?:our |the |my |all )*{what}",
        rf"(?<!\w){name} (?:now )?(?:handles|does|powers|processes|manages|takes care of|runs) (?:all )?(?:our|my|the) {what}",
    )
    found = next(filter(None, (re.search(one, text, re.IGNORECASE) for one in served)), None)
    if found is None:
        return False
    same = rf"(?:\b(?:our|my|the|for|all|as|ship|send|track|keep|process) )+{re.escape(found['what'])}(?!\w)"
    return any(re.search(same, told, re.IGNORECASE) for told in said_of_old)


def is_left_for(old: str, new: str, text: str) -> bool:
    """Whether a whole message that moves to the tool *new* leaves *old*, one for the same purpose."""
    old, before, after = (_VERSION.sub("", name) for name in (old, old.casefold(), new.casefold()))
    kind = next((kind.tools for kind in tool_kinds() if kind.moves and {before, after} <= kind.tools), None)
    if before == after or kind is None or _PARTLY.search(text) or _LIMITED.search(text):
        return False
    if any(re.search(rf"(?<!\w){re.escape(one)}(?!\w)", text, re.IGNORECASE) for one in kind - {before, after}):
        return False  # another one of its kind may be the one that was left
    if re.search(rf"\bfrom (?!now on\b|(?:our |the |my )?{re.escape(old)}(?!\w))", text, re.IGNORECASE):
        return False
    name = re.escape(new).replace("Microsoft\\ ", r"(?:Microsoft |MS )?")
    if re.search(
        rf"\bfrom (?:our |the |my )?{re.escape(old)}(?: v?\d[\w.]*)? (?:over )?to {name}{_NAME_ENDS}",
        text,
        re.IGNORECASE,
    ):
        return True
    moved = rf"\b(?:moved|switched|migrated|changed|went)(?! from){_OBJECT} (?:over |across )?to {name}{_NAME_ENDS}"
    taken = rf"\b(?:(?:we|i)(?:['’]re|['’]m| are| am) (?:with|on|using)|(?:we|i) use|it(?:['’]s| is)) {name} (?:now|nowadays|these days|instead)(?=\s*(?:[.,!;]|$))"
    return any(re.search(one, text, re.IGNORECASE) for one in (moved, taken))


# "We moved the logs to Elastic" ends "The logs are in Loki".
_MOVED = expression(
    r"\b(?:moved|migrated|switched|transferred|ported|shifted|relocated)\s+(?P<what>[^.;!?]{2,40}?)\s+(?:over\s+|across\s+)?(?:to|onto|into)\s+"
    r"(?P<new>[^.;!?]{1,60})",
    re.IGNORECASE,
)
_LIES = expression(
    r"^(?P<what>.{2,60}?)\s+(?:in|on|at|to|into|with|via|through|using)\s+(?P<old>[^.;!?]{1,60})", re.IGNORECASE
)
_PUT = "keep keeps store stores send sends ship ships go goes live lives run runs use uses put puts stream host hosts write stay stays".split()


def says_moved(text: str, old: str) -> bool:
    """ "We moved logs to Elastic" after "Logs in Loki"."""
    if (moved := _MOVED.search(text)) is None or (placed := _LIES.search(old)) is None:
        return False
    verbs = thing_stems(" ".join(_PUT))
    what = thing_stems(moved["what"]) - verbs
    here, there = thing_stems(moved["new"]), thing_stems(placed["old"])
    return bool(what) and what == thing_stems(placed["what"]) - verbs and bool(there) and not here & there
