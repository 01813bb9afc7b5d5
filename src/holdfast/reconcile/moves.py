"""
Words that move something elsewhere: "the logs are in Elastic now", "we moved to GitHub Actions".  Pure.

What was believed of the old place ends only where the words leave no room for both.  Written for English.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from functools import cache
from importlib import resources
from itertools import takewhile

from ..text import expression
from ..text.terms import terms, tool_kinds
from ..types import Fact
from .compare import FILLERS, all_words, sense, sequence, specifies, thing_stems

_OBJECT = r"(?: (?:our |the |my )?(?:ci|ci/cd|builds?|pipelines?|everything|it all|all of it|deployments?))?"
_PARTLY = expression(
    r"\b(?:too|also|as well|both|some|part|partly|partially|half|most|mostly|sometimes|besides|in addition|plus|and|or|not|never|n't|might|may|maybe"
    r"|could|would|should|want|plan|planning|hope|if)\b|n't\b",
    re.IGNORECASE,
)
# Words that may say where, or how far, a tool was left.
_LIMITED = expression(
    r"\b(?:only|still|(?<!went )(?<!moved )(?<!switched )(?<!going )back|stays?|at (?:home|my)|for (?:the|my|our|some|one|a)|in (?:one|the demo)|on (?:my|the))\b",
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
    r"\b(?:moved|migrated|switched|changed|went|going|gone|ported|converted|transferred|rewrote|rewritten|rebuilt|re-?implemented|redid|redone|from|now|nowadays|these days|instead)\b",
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
    r"\b(?:now|nowadays|these days|instead|from now on|from here on|by now|at this point|no longer|any ?more|since|after all|finally|lately|switched|moved|migrated"
    r"|upgraded|downgraded|changed|replaced|swapped|flipped|traded|dropped|left|quit|stopped|gave up|cut (?:back|down)|turned|became|become|pushed|postponed|bumped"
    r"|rescheduled|raised|lowered|went (?:back|up|down)|(?:back|up|down) to|used to|new|(?:is|are) (?:history|out|gone|over|dead))\b",
    re.IGNORECASE,
)
CHANGED = "now"  # a message that tells of a change and says nothing else
_BESIDE = expression(
    r"\b(?:too|also|as well|both|some|sometimes|partly|half|mostly|besides|in addition|plus|another|still|may|might|maybe|thinking|considering|evaluating|if|want|planning|hope)\b",
    re.IGNORECASE,
)
# Of these one has many, or the words around them say nothing of what they are for: only when they are so may change.
_SEVERAL = frozenset(
    "has have had owns likes loves dislikes enjoys speaks plays knows met visited bought reads wants plans is teaches sees meets watches learns studies visits follows supports collects knows".split()
)
# Of these one has many, but one for each thing: "takes the bus to work", "takes metformin".
_EACH = frozenset(
    "takes eats drinks wears watches cooks collects studies learns visits follows supports drives".split()
)
_GENERAL = frozenset(
    "a an the of to at in on for with every each uses runs works prefers needs lives does goes user user's".split()
)
_MOST_CHANGED = 3
_AS_NOW = frozenset("now nowadays instead".split())


def changes_part(text: str, old: str, said: str) -> bool:
    """
    Whether a memory puts one part in place of another of a memory that is the same otherwise.

    "On the Scale plan" does after "On the Growth plan", where the message (*said*) tells of a change: "we upgraded to Scale".
    So does "No longer takes metformin" after "Takes metformin twice a day", and "Swims four times a week" after "twice a week".
    """
    new, known = (told.casefold().rstrip(" .").removesuffix(" these days").split() for told in (text, old))
    if new[:2] == ["no", "longer"] and len(new) > 3:
        return known[: len(new) - 2] == new[2:]
    new = [word for word in new if word not in _AS_NOW]
    if not new or not _CHANGE.search(said) or _BESIDE.search(said):
        return False
    several = new[0] in _SEVERAL and not (_BELONGS.match(text) and _BELONGS.match(old))
    if new != known and sorted(new) == sorted(known):
        return new[0] == known[0] and not several  # "Prefers Python over JavaScript", the other way around
    shared = list(takewhile(lambda pair: pair[0] == pair[1], zip(new, known, strict=False)))
    if [word for word, _ in shared] in (["their"], ["the"], ["a"], ["an"]):
        return False  # what comes next is of whom or of what: "Their baby was born" after "Their mother died"
    new, known = new[len(shared) :], known[len(shared) :]
    behind = list(takewhile(lambda pair: pair[0] == pair[1], zip(reversed(new), reversed(known), strict=False)))
    new, known = new[: len(new) - len(behind)], known[: len(known) - len(behind)]
    frame = {word for word, _ in (*shared, *behind) if word not in _GENERAL}
    one_part = all(0 < len(part) <= _MOST_CHANGED for part in (new, known)) and not {*new} & {*known}
    if not (one_part and shared and frame) or thing_stems(" ".join(new)) & thing_stems(" ".join(known)):
        return False
    when = all(_is_when(part) for part in (new, known))
    things = {word for word in frame if not _DAYS.fullmatch(word)} - _TIMES_A_WEEK
    if not (when or things):
        return False  # "goes to choir on Mondays", "goes to the gym on Mondays now"
    own = things - {shared[0][0]}
    if (
        shared[0][0] == "takes"
        and not when
        and not {word for word, _ in shared[1:2]} & {"the", "a", "their", "her", "his"}
    ):
        return False  # medicines are taken side by side
    return not (several or shared[0][0] in _EACH) or (bool(own) and (when or not several))


_BELONGS = expression(
    r"(?:the user |they |he |she )?is (?:an? (?:\w+ )?(?:member|customer|client|subscriber|student|resident) (?:of|at|with)|based in|registered (?:at|with|in)|subscribed to|insured (?:with|by|at)"
    r"|on the [\w -]{2,30} (?:plan|tier|subscription)|enrolled (?:in|at)|stationed (?:in|at)) ",
    re.IGNORECASE,
)
_TIMES_A_WEEK = frozenset("day week month year morning evening night daily weekly".split())


def _is_when(words: list[str]) -> bool:
    """Whether words say when or how often: "on fridays", "twice"."""
    bare = [word for word in words if not _DAYS.fullmatch(word)]
    return not bare or _WHEN.fullmatch(" ".join(bare)) is not None


_FOR_PLACE = expression(
    r"\b(?:at (?:home|work|the office|my (?:job|desk|office))|on my (?:\w+ )?(?:laptop|desktop|machine|pc|mac|phone|server|tablet|work \w+)|in the office|privately"
    r"|for (?:work|personal|private|my (?!whole\b|entire\b)|side|hobby|client|some|one|the other|(?:the )?(?:frontend|backend|side|scripts?|notes?|testing|quick)))\b",
    re.IGNORECASE,
)


def is_for_place(said: str) -> bool:
    """Whether a sentence says where or for what something is used, and not that it took the place of another."""
    return _FOR_PLACE.search(said) is not None and _CHANGE.search(said) is None


@cache
def _contrasts() -> tuple[tuple[bool, tuple[re.Pattern[str], ...]], ...]:
    """Return the ways of ``contrasts.toml``, and whether they need the same topic."""
    text = (resources.files(__package__) / "contrasts.toml").read_text("utf-8")
    return tuple(
        (one.get("topic", False), tuple(re.compile(rf"\b(?:{way})\b", re.IGNORECASE) for way in one["ways"]))
        for one in tomllib.loads(text)["one_of"]
    )


_PLAIN_VERBS = thing_stems(
    "prefers uses likes wants is works gives drives indents indentation gets becomes speaks books asks person player level skills answers replies"
)
_ROOT = 5  # letters that "photography" and "photographer" share


def chooses_other(text: str, old: str) -> bool:
    """
    Whether a sentence says in another way what can be so in one way only: "a morning person" after "a night owl".

    So does "Prefers calls over emails" after "Prefers emails".
    """
    people = ({word.casefold() for word in _PEOPLE.findall(told)} - {"i", "user"} for told in (text, old))
    if _DENIED.search(text) or _DENIED.search(old) or next(people) != next(people):
        return False
    for topic, ways in _contrasts():
        found, known = ([(way, hit) for way in ways if (hit := way.search(told))] for told in (text, old))
        if len(found) != 1 or len(known) != 1 or found[0][0] is known[0][0]:
            continue
        rest, kept = (
            {stem[:_ROOT] for stem in _rest_stems(told.replace(hit[0], " "))}
            for told, hit in ((text, found[0][1]), (old, known[0][1]))
        )
        if rest <= kept and (rest or not topic):  # what says more is an exception: "long answers about history"
            return True
    over = _PREFERS_OVER.match(text)
    had = _PREFERS.match(old) if over and not _PREFERS_OVER.match(old) else None
    if over is None or had is None:
        return False
    worse, better, known_things = thing_stems(over["less"]), thing_stems(over["what"]), thing_stems(had["what"])
    return bool(worse) and worse <= known_things and not better & known_things


_JOINTS = frozenset("for with from as by about than and user they their his her".split())


def _rest_stems(text: str) -> set[str]:
    """Return the stems of what a sentence says beside the one way: things, days, places."""
    words = [word for word in all_words(text) if word not in FILLERS]
    return {(terms(word, "en")[:1] or [word])[0] for word in words} - _PLAIN_VERBS - _JOINTS


def is_for_other_place(text: str, old: str) -> bool:
    """Whether two sentences are about two places or purposes: "a Mac at home", "Windows at work"."""
    here, there = (_FOR_PLACE.search(told) for told in (text, old))
    return bool(here and there) and here[0].casefold() != there[0].casefold()  # type: ignore[index]


_DENIED = expression(r"\b(?:not|never|no longer|used to|was|were|wants to|hopes to|plans to)\b|n't\b", re.IGNORECASE)
_PREFERS_OVER = expression(
    r"(?:the user )?prefers (?P<what>.+?) (?:over|to|rather than|instead of) (?P<less>[^,;.]+)", re.IGNORECASE
)
_PREFERS = expression(r"(?:the user )?prefers (?P<what>[^,;.]+)", re.IGNORECASE)


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
    moved = rf"\b(?:moved|switched|migrated|changed|went|going|gone)(?! from){_OBJECT} (?:over |across |back )?to {name}{_NAME_ENDS}"
    taken = rf"\b(?:(?:we|i)(?:['’]re|['’]m| are| am) (?:with|on|using)|(?:we|i) use|it(?:['’]s| is)) {name} (?:now|nowadays|these days|instead)(?=\s*(?:[.,!;]|$))"
    return any(re.search(one, text, re.IGNORECASE) for one in (moved, taken))


_STAMPED = expression(r"\s*\([^)]*\)")


def was_said_with(sentence: Fact, fact: Fact, new: Fact | None) -> bool:
    """
    Whether a fact that has ended was read in the words of a sentence, which ends with it.

    Of a model's sentences only where they hold the value, and the new one is not the same with more.
    """
    if fact.subject != sentence.subject:
        return False
    more = new is not None and specifies(new.value, fact.value, placed=True)
    if not sentence.source.startswith("rules ") and (more or not _holds_value(sentence, fact)):
        return False
    places = {(e.home, e.conversation, e.seq, e.start, e.end) for e in sentence.evidence}
    return any(
        (e.home, e.conversation, e.seq) == place[:3] and e.start < place[4] and place[3] < e.end
        for e in fact.evidence
        for place in places
    )


def _holds_value(sentence: Fact, fact: Fact) -> bool:
    """Whether a model's sentence about what is so has the value of a fact in it: "Works at Acme as an engineer"."""
    said, told = sense(sentence.text), sense(fact.text)
    value = fact.key if fact.value == "true" else _STAMPED.sub("", fact.value)
    number = re.findall(r"\d+", value)
    words = thing_stems(value.replace("_", " "))
    held = (
        {*number} <= {*re.findall(r"\d+", sentence.text), *said.numbers}
        if number
        else words <= thing_stems(sentence.text)
    )
    plain = sentence.lifetime == "state" and "time:past" not in said.marks and said.negated == told.negated
    return plain and held and bool(words or number)


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
