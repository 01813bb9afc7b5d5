"""
Words that move something elsewhere: "the logs are in Elastic now", "we moved to GitHub Actions".  Pure.

What was believed of the old place ends only where the words leave no room for both.  Written for English.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..text import expression
from .compare import sequence, thing_stems

# Tools of one purpose: who moves to one of them has left the one that they used.
_KINDS = [
    frozenset(one.strip() for one in group.split(","))
    for group in (
        "jenkins, github actions, gitlab ci, circleci, travis ci, teamcity, buildkite, bamboo, drone, azure pipelines",
        "kubernetes, k8s, nomad, docker swarm, mesos",
        "jira, linear, asana, trello, youtrack, clickup",
        "slack, microsoft teams, mattermost, rocket.chat, zulip",
        "notion, confluence, evernote, obsidian, onenote, apple notes, google keep, logseq, roam research, joplin",
        "datadog, new relic, dynatrace, splunk",
        "bitwarden, lastpass, 1password",
        "firefox, chrome, safari",
        "sendgrid, postmark, mailgun",
        "zendesk, intercom, freshdesk",
        "terraform, pulumi, cloudformation",
        "stripe, adyen, braintree, mollie, paddle, worldpay",
        "grafana loki, elastic, splunk, graylog",
        "postgresql, postgres, mysql, mariadb, sqlite, mongodb, oracle, sql server, cockroachdb, cassandra, dynamodb",
        "aws, azure, gcp, google cloud, hetzner, digitalocean, ovh, linode, heroku, fly.io",
    )
]
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
_NAME_ENDS = r"(?=\s*(?:[.!,;]|$|now\b|last\b|this\b|in \d{4}))"
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
    kind = next((kind for kind in _KINDS if before in kind and after in kind), None)
    if before == after or kind is None or _PARTLY.search(text) or _LIMITED.search(text):
        return False
    if any(re.search(rf"(?<!\w){re.escape(one)}(?!\w)", text, re.IGNORECASE) for one in kind - {before, after}):
        return False  # another one of its kind may be the one that was left
    if re.search(rf"\bfrom (?!now on\b|(?:our |the |my )?{re.escape(old)}(?!\w))", text, re.IGNORECASE):
        return False
    name = re.escape(new).replace("Microsoft\\ ", r"(?:Microsoft |MS )?")
    if re.search(rf"\bfrom (?:our |the |my )?{re.escape(old)} (?:over )?to {name}{_NAME_ENDS}", text, re.IGNORECASE):
        return True
    moved = rf"\b(?:moved|switched|migrated|changed|went)(?! from){_OBJECT} (?:over |across )?to {name}{_NAME_ENDS}"
    return re.search(moved, text, re.IGNORECASE) is not None
