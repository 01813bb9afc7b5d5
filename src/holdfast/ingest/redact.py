"""
Secrets in text: cards, social security and account numbers, passwords, keys.  Pure.

Detectors run in a fixed order and claim spans: what one has claimed, no later one sees, so a card is
not a phone number as well.  Everything that is derived from a message is made from its *masked*
text, in which every claimed character is a ``█``: offsets stay, and no word of it can reach the
index, a vector, a fact, a quote, a summary or a prompt that makes one of these.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from importlib import import_module
from itertools import pairwise
from typing import Any, Protocol
from uuid import uuid4

from ..errors import ConfigError
from ..text import dataclass, expression
from ..text.terms import find_in_steps
from ..types import Detector, Message
from .passwords import NO_TOOL, PASSWORD, TALK, TRIM, hinted, is_other_code, looks_secret, told_spans, trimmed

MASK = "\u2588"
MOST_GROUPS = 7  # into which people cut the number of a card
MOST_CLEAN = 8192  # digests of texts without secrets that are kept

_DIGITS = expression(r"(?<!\d)\d(?:[ \u00a0.\-]?\d)+(?!\d)")
_TWO_DIGITS = expression(r"\d\d")
_GROUP = expression(r"\d+")
_SSN = expression(r"(?<![\d-])(?!000|666|9\d\d)\d{3}([- \u2013])(?!00)\d{2}\1(?!0000)\d{4}(?![\d-])")
_SSN_NAMED = expression(
    r"\b(?:ssn|soc|social(?: sec(?:urity)?| insurance)?)(?: (?:number|num|no\.?|#))?(?:'s| is| was| ends up being| =|:|,)? {0,2}"
    r"((?!000|666|9\d\d)\d{3}(?!00)\d{2}(?!0000)\d{4})(?!\d)",
    re.IGNORECASE,
)
_IBAN = expression(r"(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?:[ \u00a0-]?[A-Z0-9]){11,30}")
# Characters of an account number by country; a country that is not here has none, so nothing is claimed for it.
_IBAN_CHARS: Mapping[str, int] = {
    country: chars
    for chars, countries in {
        15: "NO", 16: "BE", 18: "DK FI FO GL NL SD FK", 19: "MK SI", 20: "AT BA EE KZ LT LU XK MN",
        21: "CH HR LI LV", 22: "BG BH CR DE GB GE IE ME RS VA", 23: "AE GI IL IQ TL OM SO",
        24: "AD CZ ES MD PK RO SA SE SK TN VG", 25: "PT LY ST", 26: "IS TR", 27: "FR GR IT MC MR SM",
        28: "AL AZ BY CY DO GT HU LB NI PL SV", 29: "BR EG PS QA UA", 30: "JO KW MU YE", 31: "MT SC", 32: "LC", 33: "RU",
    }.items()
    for country in countries.split()
}  # fmt: skip
# First digits and lengths of the cards in use.
_CARDS = expression(
    r"4(?:\d{12}|\d{15}|\d{18})|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|3[47]\d{13}"
    r"|3(?:0[0-59]|[689]\d)\d{11,16}|35\d{14,17}|6(?:011|4[4-9]\d|5\d\d|2\d\d|[0-3789]\d\d)\d{8,15}"
)


@dataclass(frozen=True, slots=True)
class SecretSpan:
    """A secret of one kind: characters ``start`` to ``end``, end excluded."""

    start: int
    end: int
    kind: str


class CleanTexts:
    """
    Remembers which texts hold no secret, as every context looks at the same ones again.

    Only digests are kept, under a key that this process alone has: nothing of a text can be read from them, so what is erased
    leaves no trace here.  What a detector of the user's own finds is not remembered; it may find more tomorrow.
    """

    def __init__(self, most: int) -> None:
        self._most, self._key = most // 2, uuid4().bytes
        self._held: tuple[set[bytes], set[bytes]] = (set(), set())  # the newer half, and the one before it

    def digest(self, text: str) -> bytes:
        """Return the keyed digest by which *text* is remembered."""
        return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16, key=self._key).digest()

    def has(self, digest: bytes) -> bool:
        """Whether the text of *digest* is known to hold no secret."""
        new, old = self._held
        return digest in new or digest in old

    def add(self, digest: bytes) -> None:
        """Remember that a text holds no secret; when there are too many, the older half is forgotten."""
        if len(self._held[0]) >= self._most:
            self._held = (set(), self._held[0])
        self._held[0].add(digest)

    def __len__(self) -> int:
        return sum(map(len, self._held))


_CLEAN = CleanTexts(MOST_CLEAN)


def find_secrets(text: str, detectors: Sequence[Detector] = ()) -> list[SecretSpan]:
    """Find the secrets in *text*, in order, no two overlapping."""
    if detectors:
        return _find_secrets(text, detectors)
    if _CLEAN.has(digest := _CLEAN.digest(text)):
        return []
    found = _find_secrets(text, ())
    if not found:
        _CLEAN.add(digest)
    return found


def _find_secrets(text: str, detectors: Sequence[Detector]) -> list[SecretSpan]:
    taken: list[SecretSpan] = []
    for kind, spans in _found_by_kind(text, detectors):
        for start, end in spans:
            place = bisect(taken, start, key=lambda span: span.start)
            free = (place == 0 or taken[place - 1].end <= start) and (place == len(taken) or end <= taken[place].start)
            if 0 <= start < end <= len(text) and free:
                taken.insert(place, SecretSpan(start, end, kind))
    return taken


def _found_by_kind(text: str, detectors: Sequence[Detector]) -> Iterator[tuple[str, Iterable[tuple[int, int]]]]:
    yield "private-key", pem_spans(text)
    yield "key", key_spans(text)
    if _TWO_DIGITS.search(text):
        yield "iban", _ibans(text)
        yield "card", _cards(text)
        yield "ssn", _ssns(text)
        yield "password", _card_code_spans(text)
    yield "password", password_spans(text)
    for detector in detectors:
        yield detector.kind, detector.find(text)


def mask_secrets(text: str, detectors: Sequence[Detector] = ()) -> str:
    """Replace every character of a secret but line ends by `MASK`; the length stays."""
    return _replace_spans(text, find_secrets(text, detectors), lambda span, found: re.sub(r"[^\n]", MASK, found))


def redact_secrets(text: str, detectors: Sequence[Detector] = ()) -> str:
    """Replace secrets for readers, and for storage when messages are redacted: ``[card removed]``."""
    return _replace_spans(text, find_secrets(text, detectors), lambda span, found: f"[{span.kind} removed]")


def count_secrets(text: str, detectors: Sequence[Detector] = ()) -> Counter[str]:
    """Count the secrets of each kind."""
    return Counter(span.kind for span in find_secrets(text, detectors))


def mask_message(message: Message, detectors: Sequence[Detector] = ()) -> Message:
    """Return the message with its secrets masked, as all derived data may read it."""
    content = mask_secrets(message.content, detectors)
    return message if content == message.content else replace(message, content=content)


def mask_messages(messages: Iterable[Message], detectors: Sequence[Detector] = ()) -> list[Message]:
    """Return messages in order with their secrets masked, also the bare answer to a question for one: "What is your PIN?", "4821"."""
    found: list[Message] = []
    before = None
    for message in messages:
        masked = mask_message(message, detectors)
        if before is not None and message.role == "user" and before.role != "user":
            masked = _mask_answer(masked, before.content)
        found.append(masked)
        before = message
    return found


def _mask_answer(message: Message, question: str) -> Message:
    """Mask the words of a short answer that look like the secret that was asked for."""
    content, last = message.content, question[-_QUESTION_CHARS:]
    if len(content) > _ANSWER_CHARS or not hinted(last.casefold(), (*_PASSWORD_HINTS, *_CODE_HINTS)) or not _asks(last):
        return message
    words = content.split()
    only = len(words) == 1 and words[0].strip(TRIM).casefold() not in _NO_ANSWER

    def hidden(found: re.Match[str]) -> str:
        word = found[0].strip(TRIM)
        secret = only or word.isdecimal() or looks_secret(word) or _CODE_PART.fullmatch(word)
        return found[0].replace(word, MASK * len(word)) if word and secret else found[0]

    told = re.sub(r"\S+", hidden, content)
    return message if told == content else replace(message, content=told)


def _asks(text: str) -> bool:
    """Whether a text ends with a question or a request for a secret; "did you change your password?" asks for none."""
    sentence = re.split(r"[.?!\n:]\s+", text.rstrip())[-1]
    return bool(_ASKS.search(sentence)) and not _ASKS_ABOUT.search(sentence)


def redact_value(value: Any, detectors: Sequence[Detector] = ()) -> Any:
    """Apply `redact_secrets` to every text inside a JSON value."""
    if isinstance(value, str):
        return redact_secrets(value, detectors)
    if isinstance(value, list):
        return [redact_value(item, detectors) for item in value]
    if isinstance(value, Mapping):
        return {key: redact_value(item, detectors) for key, item in value.items()}
    return value


def _replace_spans(text: str, spans: Sequence[SecretSpan], fill: Any) -> str:
    if not spans:
        return text
    parts, at = [], 0
    for span in spans:
        parts += [text[at : span.start], fill(span, text[span.start : span.end])]
        at = span.end
    return "".join([*parts, text[at:]])


def _cards(text: str) -> Iterator[tuple[int, int]]:
    """Find whole groups of digits that form a card number with a valid check digit."""
    for run in _DIGITS.finditer(text):
        groups = [(run.start() + g.start(), g.group()) for g in _GROUP.finditer(run.group())]
        first = 0
        while first < len(groups):
            last = _card_from(groups, first)
            if last:
                yield groups[first][0], groups[last - 1][0] + len(groups[last - 1][1])
            first = max(first + 1, last)


def _card_from(groups: Sequence[tuple[int, str]], first: int) -> int:
    """Return the end of the longest card number that begins with group *first*; 0 when none does."""
    digits, found = "", 0
    for last in range(first, min(len(groups), first + MOST_GROUPS)):
        digits += groups[last][1]
        if len(digits) > 19:
            break
        if len(digits) >= 13:
            plain = "".join(str(int(ch)) for ch in digits)
            if _CARDS.fullmatch(plain) and len(set(plain)) > 1 and luhn(plain):
                found = last + 1
    return found


def luhn(digits: str) -> bool:
    """Whether the last digit checks the others (ISO/IEC 7812-1)."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        number = int(digit) * (2 if place % 2 else 1)
        total += number - 9 if number > 9 else number
    return total % 10 == 0


def _ibans(text: str) -> Iterator[tuple[int, int]]:
    for found in _IBAN.finditer(text):
        chars = _IBAN_CHARS.get(found.group()[:2], 0)
        places = [i for i, ch in enumerate(found.group()) if ch.isalnum()][:chars]
        following = text[found.start() + places[-1] + 1 :][:1] if places else ""
        if not chars or len(places) < chars or following.isalnum():
            continue
        account = "".join(found.group()[i] for i in places)
        number = "".join(str(int(ch, 36)) for ch in account[4:] + account[:4])
        if int(number) % 97 == 1:
            yield found.start(), found.start() + places[-1] + 1


def _ssns(text: str) -> Iterator[tuple[int, int]]:
    for found in find_in_steps(_SSN, text):
        yield found.span()
    for found in find_in_steps(_SSN_NAMED, text):
        yield found.span(1)


_PEM = expression(
    r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]{0,40}-----|\Z)", re.DOTALL
)

# Tokens that say by their first letters what they are.
_KEYS = expression(
    r"""(?<![A-Za-z0-9_])(?:
        (?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])                                   # AWS
      | gh[pousr]_[A-Za-z0-9]{30,255} | github_pat_[A-Za-z0-9_]{22,255}            # GitHub
      | glpat-[A-Za-z0-9_-]{20,64}                                                 # GitLab
      | sk-(?=[A-Za-z_-]*\d)[A-Za-z0-9_-]{20,255}                                  # OpenAI, Anthropic and others
      | sk-(?:proj|ant|svcacct|admin|or(?=-[a-z_-]*[A-Z0-9]))-[A-Za-z0-9_-]{12,255} | sk-[A-Za-z0-9]{20,255}  # without digits, too
      | (?:sk|rk|pk|whsec)_(?:live_|test_)?[A-Za-z0-9]{16,255}                     # Stripe
      | xox[abeprs]-[A-Za-z0-9-]{10,255} | xapp-[A-Za-z0-9-]{10,255}               # Slack
      | AIza[A-Za-z0-9_-]{35}                                                      # Google
      | hf_[A-Za-z0-9]{30,64} | npm_[A-Za-z0-9]{36} | pypi-[A-Za-z0-9_-]{50,255}
      | SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16,64}                             # SendGrid
      | eyJ[A-Za-z0-9_-]{8,2000}\.[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]{8,1000}     # JSON web token
    )""",
    re.VERBOSE,
)
# A value that is called a key: letters and digits mixed, no blanks.
_NAMED_KEY = expression(
    r"""(?:api[ _-]?(?:key|token|secret)|(?:secret|access|auth|private|account)[ _-]?(?:access[ _-]?)?(?:key|token)
        |client[ _-]?secret|auth[ _-]?token|\btoken|\bsecret|\bbearer)["']?
        (?:[ \t]{0,3}(?:=>|[:=]|\bis\b)[ \t]{0,3}|[ \t]{1,3})["'`]?
        ((?=[A-Za-z0-9+/_.~-]*\d)(?=[A-Za-z0-9+/_.~-]*[A-Za-z])[A-Za-z0-9+/_.~-]{16,512}={0,2})""",
    re.VERBOSE | re.IGNORECASE,
)
# A value without digits that is called a key: longer than any word, or in mixed capitals.
_NAMED_LETTERS = expression(
    r"(?:api[ _-]?(?:key|token|secret)|(?:secret|access|auth|private)[ _-]?(?:key|token)|client[ _-]?secret|\bbearer)[\"']?"
    r"(?:[ \t]{0,3}(?:=>|[:=]|\bis\b)[ \t]{0,3}|[ \t]{1,3})[\"'`]?([A-Za-z]{16,512})(?![\w.(])",
    re.IGNORECASE,
)
_CAMEL_CASE = expression(r"[A-Za-z][a-z]+(?:[A-Z][a-z]{2,})+")  # a name in program text
_LETTERS_OF_A_KEY = 24  # of one case: no word that people use is as long
_IN_URL = expression(r"\b[a-z][a-z0-9+.-]{1,20}://[^\s:/@]{1,100}:([^\s/@]{1,200})@", re.IGNORECASE)

_IS = "is|was|=|:|ist|lautet|est|es|é|è|to|jest|это|—|-|är|er|on|je"
# "password: x" and "pwd=x": whatever stands there.
_LABELLED = expression(
    rf"(?<![^\W_])(?:{PASSWORD}|passwd|pwd|pass|pw)[ \t]{{0,3}}[=:：][ \t]{{0,3}}(\S{{3,128}})", re.IGNORECASE
)
# "my password for the router is x".
_SAID = expression(
    rf"(?<!\w)(?:{PASSWORD.replace('|clave', '')})(?:,? (?:for|of|to|on|at|für|vom|von|para|de|del|du|pour|per|voor|do|da) [^.?!\n:=]{{1,40}}?)?"
    rf" {{0,2}}(?<![\w])(?:{_IS}) {{1,2}}(?:now |still |jetzt |ahora )?(\S{{4,128}})",
    re.IGNORECASE,
)
# The same in short words, of something that has a password: "pw for the wifi is sommerregen"; a pass may open a museum.
_NETWORK = r"wi-?fi|wlan|network|router|hotspot|server|laptop|computer|account|e-?mail|netflix|admin|vpn|database|login"
_SAID_SHORTLY = expression(
    rf"(?<!\w)(?:(?:passwd|pwd|pw|mdp)(?:,? (?:for|of|to|on|at) [^.?!\n:=]{{1,40}}?)?|(?:{_NETWORK}) pass"
    rf"|pass (?:for|of|to|on) [^.?!\n:=]{{0,25}}?(?:{_NETWORK}))(?:'s| is| was|[ \t]?[:=]) {{1,2}}(?:now |still )?(\S{{4,128}})"
    rf"|(?<!\w)(?:{PASSWORD.replace('|clave', '')})(?:'s| used to be| will be| has to be) {{1,2}}(\S{{4,128}})"
    r"|(?<!\w)user(?:name)?:? \S{2,60},? (?:password|pass|pw|pwd):? (\S{4,128})",
    re.IGNORECASE,
)
# Several words in quotation marks: 'my password is "correct horse"'.
_QUOTED = expression(
    rf"(?<!\w)(?:{PASSWORD.replace('|clave', '')}|passwd|pwd|pw)(?:,? (?:for|of|to|on|at) [^.?!\n:=\"]{{1,40}}?)? {{0,2}}(?:is ?:|is|was|=|:) {{0,2}}"
    r"[\"“„«]([^\"“”„«»\n]{3,80})[\"”»]",
    re.IGNORECASE,
)
# What program text puts in a password's place: a call, a type, a variable.  Quoted, it would be the password itself.
_EXPRESSION = expression(
    r"\$?\{.*|\$\w+.*|[A-Za-z_][\w.]*\((?:[)\"'\[{]|[\w.]+[(=,)]|[a-z_]\w*$).*|[A-Za-z_][\w.]*\[[\"'].*|[A-Za-z_][\w.]*\["
    r"|(?:str|string|bytes|none|null|nil|undefined|char|varchar|text|optional|secretstr)(?:[\[(?|].*)?"
    r"|(?:self|this|os|env|process|request|req|data|form|settings|config|args|credentials|options)(?:\.\w+)+"
    r"|(?:password|passwd|pwd|pass)=.*",
    re.IGNORECASE,
)
_VARIABLE = expression(
    r"(?:[A-Za-z_]\w*\.)*(?:(?:\w*_)?(?:password|passwd|passphrase|pwd|PASSWORD)|[a-z]+(?:Password|Passwd|Pwd))(?:_[a-z]\w*)?"
)
_RUSSIAN = expression(r"(?<!\w)пароль (?=\S*\d)([\x21-\x7e]{4,128})", re.IGNORECASE)
# Languages that write without spaces, or attach an ending: the value is what is Latin.
_ATTACHED = expression(
    r"(?:密码|密碼|口令)(?:就?是|为|：|:)?\s{0,2}(?!\d+[年月位个次])([\x21-\x7e]{4,128})"
    r"|(?:パスワード|暗証番号)(?:は|：|:)?\s{0,2}「?(?!\d+[年月文桁回個])([\x21-\x7e]{4,128})"
    r"|(?:비밀번호|비번|암호)(?:는|은|가|이)?\s{0,2}[:=]?\s{0,2}['\"]?(?!\d+(?:년|월|자리|글자|번))([\x21-\x7e]{4,128})"
)
_PIN = expression(
    r"(?<!\w)(?:pin|pin code|pin number|geheimzahl)(?: for [^.?!\n\d]{1,40}?)?(?: is| ist| est| es|:|=) {0,2}(\d{4,12})(?!\d)",
    re.IGNORECASE,
)

_SHORT = r"password|passwd|pass(?:word)?s?|pword|pw|pwd|passcode|passwort|kennwort|contraseña|clave|mot de passe|mdp|senha|wachtwoord|hasło"
_FOR = r"(?:,? (?:for|of|to|on|at|from|für|fürs|vom|von|zum|para|di|della|de|del|du|de la|da|do|pour|per|voor|van) [^.?!\n:=]{1,40}?)"
_ARE = r"(?:'s| is| was| are| ist| war| lautet| es| era| é| è| est| c'est| jest| ?:| ?=| -| –| ->|,)"
_OF_MINE = (
    r"(?:(?:an?|the|my|our|your|its|new|old|current|wi-?fi|wlan|bank|e-?mail|login|main|master|mein\w*|unser\w*|das|neues|mi|la|el|nuestra|mon|notre|le"
    r"|minha|nossa|mia|nostra|moje|nasze) )*"
)
_SERVICES = (
    r"netflix|hulu|spotify|disney\S*|amazon|prime|google|gmail|apple|icloud|facebook|instagram|paypal|steam|github|gitlab|aws|wi-?fi|router|nas|vpn|admin"
    r"|e-?mail|account|outlook|dropbox|linkedin|twitter|reddit"
)
# Forms in which only a value that looks like a secret is one: "pw for the wifi is Sommer2024", "netflix pass hunter22".
_LOOSE = tuple(
    expression(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?<!\w)(?:{_SHORT}){_FOR}{_ARE} {{1,2}}(?:now |still |jetzt |ahora |maintenant )?(\S{{4,128}})",
        rf"(?<!\w)(?:{_SHORT}){_ARE}? {{1,2}}(?:now |still |jetzt |ahora |maintenant )?(\S{{4,128}})",
        rf"(?<!\w)(?:{_SHORT})[^.?!\n]{{0,30}} (?:to|zu|auf|in|a|por|en|au) (\S{{4,128}})",
        rf"(?<!\S)(\S{{4,128}}) (?:as|als|como|comme|come|jako) {_OF_MINE}(?:{_SHORT})(?!\w){NO_TOOL}",
        rf"(?<!\S)(\S{{4,128}}) (?:is|was|ist|war|es|est|è|é|jest) (?=\w){_OF_MINE}(?:{_SHORT})(?!\w){NO_TOOL}",
        rf"(?<!\w)(?:made|make|making) (\S{{4,128}}) (?=\w){_OF_MINE}(?:{_SHORT})(?!\w){NO_TOOL}",
        rf"(?<!\w)(?:type|enter|put|try|say)(?: in)? (\S{{4,128}}) (?:when|where|at|for|into|in) [^.?!\n]{{0,30}}?(?:{_SHORT})(?!\w)",
        r"(?<!\w)(?:wi-?fi|wlan|network|ssid|router)(?!\w)[^.?!\n]{0,40}? (?:key|schlüssel)(?:'s| is| ist|:|=) {0,2}(\S{6,63})",
        r"(?<!\w)(?:wi-?fi|wlan|ssid|router)(?!\w)[^.?!\n]{0,40}?, ?(?:and )?(?:the )?(?:key|schlüssel) (\S{6,63})",
        r"(?<!\w)use (\S{4,64}) to (?:log|sign) (?:in|on)(?!\w)(?: as (?:me|us)|[.,!]|$)",
        rf"(?<!\w)(?:{_SERVICES})(?: login| account)?(?:'s| is|:) {{0,2}}\S{{2,60}} ?[/|] ?(\S{{4,64}})",
        r"(?<!\w)(?:log-?ins?|log ?in details|log ?in with|sign in with|creds?|credentials|zugangsdaten|anmeldedaten|identifiants|credenciales|credenciais"
        r"|credenziali|inloggegevens|dane logowania)(?!\w)[^\n/:]{0,40}?[:= ]\s{0,2}\S{2,60}?(?: ?[/:|,] ?| and | und | y | e | et | en | i )(\S{4,64})",
        r"(?<!\w)(?:user(?:name)?|usuario|benutzer(?:name)?|utilisateur|utente|gebruiker)(?:'s| is| ist| es| est|:|=)? ?\S{2,60}?"
        r"(?: ?[/|,;] ?| and | und | y | e | et | en )(?:(?:the )?(?:password|pw|pass|passwort|clave|contraseña)(?: is|:)? )?(\S{4,64})",
    )
)
_LOCKS = (
    r"(?:front |back |garage |bike |phone |house |building |main )?(?:door|gate|alarm|safe|locker|lock ?box|key ?box|padlock|lock|garage"
    r"|entry|entrance|access|building|unlock|keypad|vault|suitcase|verification|sms|otp|2fa|mfa|two-factor|one-time|authentication|login|log-in"
    r"|sim|puk|screen|phone|house|elevator|lift|wi-?fi|wlan|luggage|mailbox|shed|office)"
)
_PIN_NAME = r"(?:pin|otp|puk|passcode)(?:[- ](?:code|number))?"
# Numbers that open something; "the error code is 404" is none of them.
_CODES = tuple(
    expression(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?<!\w){_LOCKS}[- ](?:pass)?(?:codes?|combination|combo|pin)(?:'s| is| was| are|:|=| -)? {{0,2}}([A-Z]?\d(?:[ -]?\d){{2,11}}[#*A-Z]?)(?![\w])",
        rf"(?<!\w)(?:codes?|combination|combo) (?:for|to|of|on) (?:the |my |our |your )?[^.?!\n\d]{{0,20}}?{_LOCKS}[^.?!\n\d]{{0,20}}?(?:'s| is| was| are|:|=) {{0,2}}"
        r"([A-Z]?\d(?:[ -]?\d){2,11}[#*A-Z]?)(?![\w])",
        r"(?<!\w)(?:otp|puk|pin|pincode|pin[- ]code|pin[- ]number|geheimzahl|nip|(?:código|code|codice|numer) pin)(?!(?: code)? (?:area|region|zone))(?:'s|(?: for| to| für| der| meiner| de| della| van)?[^.?!\n\d]{0,30}?"
        r"(?: is| was| ist| lautet| es| est| è| é| to|:|=| -| –|\?(?: it['’]?s| it is)?))? {0,2}(\d{4,8})(?![\d.,]?\d)",
        rf"(?<![\d.,:/-])(\d{{4,8}})(?:,| is| was|, that['’]?s| —| -) (?:my|the|our) (?:\w+ ){{0,2}}{_PIN_NAME}(?![\w-])",
        rf"(?<![\d.,:/-])(\d{{3,10}}[#*]?) (?:is|was|opens) (?:my|the|our) {_LOCKS}[- ](?:code|combination)(?!\w)",
        rf"(?<!\w)code(?:'s| is|:) {{0,2}}(\d{{3,10}}[#*]?) (?:for|to|of|on) (?:my|the|our) (?:\w+ ){{0,2}}?{_LOCKS}(?!\w)",
        r"(?<!\w)pass ?code(?:,? (?:for|of|to) [^.?!\n\d:]{1,30}?)?(?:'s| is| was|:|=)? {0,2}(\d(?:[ -]?\d){3,11})(?![\d%])",
        r"(?<!\w)pass ?code\?+ (?:it['’]?s |it is |that['’]?s )?(\d(?:[ -]?\d){3,11})(?![\d%])",
        r"(?<!\w)(?:tür|haus|garagen|tor|alarm|zugangs|safe|bestätigungs)[- ]?code(?: ist| lautet| war|:|=)? {0,2}(\d{3,10}[#*]?)(?!\d)",
        r"(?<!\w)(?:code|código|codigo|codice|kod|combinación|combinaison|combinazione)(?: secreto| segreto)? (?:de la |de l'|du |de |del |della |dell'|do |da |para |pour |per |van de |do drzwi |d[’'])"
        r"[^.?!\n\d]{0,25}?(?:puerta|porte|porta|portail|portão|portal|cancello|alarm[ae]?|caja fuerte|coffre|cassaforte|casa|maison|immeuble|edificio|verificación|vérification|verifica|deur|to)"
        r"[^.?!\n\d]{0,15}?(?: es| est| è| é| is|:|=) {0,2}(\d{3,10}[#*]?)(?!\d)",
        r"(?<!\w)(?:cvv2?|cvc2?|csc|kartenprüfnummer|prüfnummer|cryptogramme|security code|código de seguridad|código de segurança|codice di sicurezza)"
        r"(?: (?:on|of|for|de|auf|sur) [^.?!\n\d]{1,30}?)?(?:'s| is| ist| est| es| é| è| code(?: is|:)?| number(?: is)?|:|=)? {0,2}(\d{3,4})(?!\d)",
        r"(?<!\w)(?:(?:three|3|last three|four|4)[ -](?:digits?|numbers)(?: code| number)?|digits) (?:on|at) the (?:back|front)(?: of (?:the|my) card)?"
        r"(?: are| is| were| was| reads?|:) {0,2}(\d{3,4})(?![\d%]|[.,]\d)",
        r"(?<!\w)(?:number|code) (?:on|at) the (?:back|front) of (?:the|my) card(?: are| is| were| was| reads|:) {0,2}(\d{3,4})(?![\d%]|[.,]\d)",
        r"(?<![\w.,:/-])(\d{3,4})(?: is| was|, that['’]?s| ist| es| est| é| è| for| as)(?: (?:my|the|its|our|die|el|le|la|o|il))?(?: card['’]?s?)? "
        r"(?:cvv2?|cvc2?|csc|kartenprüfnummer|prüfnummer|cryptogramme|security code|código de seguridad|código de segurança|codice di sicurezza)(?![\w-]| (?:errors?|failures?|requests?|fields?|checks?))",
        r"(?<!\w)(?:amex|card|american express)(?:'s)? cid(?:'s| is|:|=)? {0,2}(\d{3,4})(?!\d)",
        r"(?<!\w)(?<!promo )(?<!zip )(?<!area )(?<!discount )code (?:that )?(?:they|you|the bank|google|apple|whatsapp)[^.?!\n\d]{0,12}? ?(?:sent|texted|e-?mailed)[^.?!\n\d]{0,15}?(?: is| was|:|,) {0,2}(\d{4,8})(?![\d%]|[.,]\d| percent| lines\b)",
    )
)
# A card's number on its back, where the words before it speak of a card or of paying: a shirt has one too.
_ON_BACK = expression(
    r"(?<!\w)(?:number|code|digits) (?:on|at) the back(?: of it)?(?:'s| are| is| was| were| reads?|:) {0,2}"
    r"(\d{3})(?![\w%°$€£/+-]|[.,:]\d| ?(?:km|kilometers|miles?|m|meters|kg|grams?|pages?|pieces?|people|points|euros?|dollars|emergency)\b)",
    re.IGNORECASE,
)
# The same where the message has the card's number itself, said before or after it: "it's 733 on the back", "the back says 733".
_BESIDE_CARD = expression(
    r"(?<![\w.,:/€$£#-])(\d{3,4})(?:,? (?:is|are|was|it says|printed|written))? (?:on|at) the (?:back|front|reverse)(?!\w| (?:door|gate|desk|page|garden|yard|row|seat))"
    r"|(?<!\w)(?:back|front|reverse)(?: of (?:it|the card|my card))?(?: side)? (?:says|reads|has|shows|it['’]?s|is) {0,2}(\d{3,4})(?![\w%°$€£/+-]|[.,:]\d)"
    r"|(?<!\w)(?:number|code|digits) (?:on|at) the (?:back|front)(?: of it)?(?:'s| are| is| was| were| reads?|:) {0,2}(\d{3,4})(?![\w%°$€£/+-]|[.,:]\d)",
    re.IGNORECASE,
)
# A card's code without a word for it, beside the day on which it expires.
_EXPIRES = r"[\s,;|]{1,3}(?:exp(?:iry|ires|iration)?\.?:? ?)?(?:0[1-9]|1[0-2]) ?/ ?(?:\d\d|20\d\d)(?!\d)"
_EXPIRES_AT = expression(_EXPIRES, re.IGNORECASE)
_CODE_BEHIND = expression(rf"{_EXPIRES}[\s,;|]{{1,3}}(\d{{3,4}})(?![\w%€$£]|[.,:/]\d)", re.IGNORECASE)
_CODE_BEFORE = expression(r"(?<![\w.,:/€$£#-])(\d{3,4})[\s,;|]{1,3}$")
# Several lower-case words behind "the password to my laptop is" or "password =", and the answer to a security question.
_PASSPHRASE = expression(
    rf"(?<!\w)pass ?phrase{_FOR}?(?:'s| is|:| ?=)\s{{0,2}}((?:[a-z]{{3,12}}[ -]){{2,9}}[a-z]{{3,12}})(?=[\"'”]?\s*(?:[.!,]|$))"
    rf"|(?<!\w)(?<!with my )(?<!with the )(?<!about my )(?<!about the )(?:password|passwort|contraseña|mot de passe)(?: ?=|(?: is| ist| es| est)? ?:)\s{{0,2}}((?:[a-z]{{3,12}}[ -]){{3,9}}[a-z]{{3,12}})(?=[\"'”]?\s*(?:[.!,]|$))"
    rf"|(?<!\w)(?:password|passphrase|passcode|passwort|contraseña|mot de passe){_FOR}(?:'s| is| ist| es| est|:)\s{{0,2}}[\"'“]?((?:[a-z]{{3,12}}[ -]){{3,7}}[a-z]{{3,12}})(?=[\"'”]?\s*(?:[.!,]|$))"
    r"|(?<!\w)(?:(?:secret|security) (?:question )?(?:answer|word)|answer to (?:the|my) (?:secret|security) question)(?:'s| is|:)\s{0,2}[\"'“]?(\S{3,40}(?: [A-Z]\S{2,30})?)",
    re.IGNORECASE,
)
# "root / toor is the login", whatever the two look like.
_LOGIN = expression(
    r"(?<!\S)([\w.@+-]{2,60}) ?[/:] ?([^\s/]{3,64}) (?:is|are|was) (?:the|my|our) (?:\w+ )?(?:log-?ins?|credentials|creds)(?![\w-]| (?:page|screen|url|route|path|name|form|button|flow))",
    re.IGNORECASE,
)
_NO_PASSPHRASE = expression(
    r"\b(?:the|and|not|never|too|very|still|already|was|been|has|have|must|should|your|same|written|stored|somewhere|you|with|when|but|because|among|between|by|for|from|of|to|in|on|at|only|shared|saved|people|everyone|several)\b",
    re.IGNORECASE,
)
_CARD_CHARS = 200
_CARD = expression(
    r"\b(?:(?:credit|debit|bank|visa|master)?[ -]?cards?|visa|mastercard|amex|cvv2?|cvc2?|csc|pay(?:ing|ment)?|checkout|expir(?:y|es|ation))\b",
    re.IGNORECASE,
)
_NO_CARD = expression(
    r"\b(?:shirts?|t-shirts?|jerseys?|houses?|jackets?|bibs?|kits?|(?:business|post|birthday|playing|trading|library|id|gift|score|report|baseball|pok[eé]mon|membership|loyalty)[ -]?cards?|taxi|bus|books?)\b",
    re.IGNORECASE,
)
_RECOVERS = r"(?:[\w-]*\d|(?-i:[A-Z]{4,8}(?:-[A-Z]{4,8}){2,}))"  # digits, or three groups of capitals and more
_INDIAN_POSTCODE = expression(r"[1-8]\d{5}")
_PIN_CODE = expression(r"\bpin(?P<code> ?code)?(?!\w)", re.IGNORECASE)
_PLACED = expression(
    r"\b(?:ship|deliver|post|send|address|area|city|town|locality|district|courier|zip|parcel)\w*", re.IGNORECASE
)
_UNLOCKS = expression(
    r"\b(?:bank|card|atm|phone|sim|app|unlock|locks?|account|secret|security|upi|tablet|watch)\b", re.IGNORECASE
)
_PHRASE = expression(
    r"(?<!\w)(?:recovery|seed|backup|mnemonic|secret recovery|wallet|wiederherstellungs|de recuperación|de récupération)[- ]?"
    r"(?:phrase|words?|key phrase|wörter|sätze?)(?: (?:for|of|to) [^.?!\n:]{1,30}?)?(?:'s| is| are| ist|:|=)\s{0,2}[\"'“]?((?:[a-zäöüß]{3,12}[ ,]{1,2}){5,23}[a-zäöüß]{3,12})"
    r"|(?<!\w)(?:frase|phrase) (?:semilla|de recuperación|de récupération|secrète)(?: es| est|:)\s{0,2}((?:\w{3,12}[ ,]{1,2}){5,23}\w{3,12})"
    r"|(?<!\w)(?:recovery|backup) (?:codes?|keys?)(?: (?:for|of) [^.?!\n:]{1,30}?)?(?: is| are|:|=)?\s{0,2}"
    rf"((?={_RECOVERS})[\w-]{{4,40}}(?:(?:[ ,]{{1,2}}|,? and )(?={_RECOVERS})[\w-]{{4,40}}){{0,15}})",
    re.IGNORECASE,
)
_CODE_HINTS = (
    "code", "código", "codigo", "codice", "kod", "combin", "combo", "pin", "otp", "puk", "nip", "cvv", "cvc", "csc", "prüfnummer", "cryptogramme",
    "digits", "phrase", "frase", "words", "geheimzahl", "wörter", "recovery", "backup", " cid", "the back",
)  # fmt: skip

# Words of the messages that programs show about passwords: "Enter your password", "must match".
_SHOWN = TALK | frozenset(
    "must enter name those please try match password passwords characters contain least or".split()
)
_KEY_HINTS = ("key", "token", "secret", "bearer")
_PASSWORD_HINTS = (
    *"""wifi wlan router network login log-in sign-in cred zugangsdaten anmeldedaten identifiants inloggegevens logowania user usuario benutzer utilisateur utente gebruiker
    mdp pass pwd pw pin contrase clave senha parola wachtwoord hasło haslo парол kennwort geheimzahl lösen adgangskode
    salasana şifre heslo jelszó parolă 密码 密碼 口令 パスワード 暗証番号 비밀번호 비번 암호""".split(),
    "log in",
    "sign in",
    "secret answer",
    "security answer",
    "secret word",
    "security question",
    "secret question",
    "wi-fi",
    " / ",
)
# A question for a secret at the end of what an assistant says, and the words of an answer that tells none.
_ASKS = expression(
    r"(?:\b(?:what|which|tell|give|send|enter|type|need|provide|share|confirm|repeat|and|your|wie|was|nenn\w*|gib|dime|cuál|quel\w*|donne\w*|qual|dimmi)\b|[?？]|密码|비밀번호|パスワード)"
    r"[^.?!\n]{0,60}?(?:\b(?:password|passwort|kennwort|contraseña|mot de passe|senha|passcode|passphrase|pin|cvv2?|cvc2?|otp|puk"
    r"|(?:security|verification|one-time|access|door|gate|alarm|\w+-digit|\d-digit) code|secret (?:word|answer)|code (?:we|i) (?:just )?sent(?: you)?)\b|密码|비밀번호|パスワード)"
    r"[^.?!\n]{0,40}[.?!:？]?\s*$",
    re.IGNORECASE,
)
_ASKS_ABOUT = expression(
    r"^\W*(?:did|does|do you (?:use|want|know|think)|have you|has|is|are|was|were|never|don['’]t|do not|how|when|why|who|where)\b"
    r"|\b(?:manager|chang\w+|reset|forg[eo]t\w*|city|area)\b",
    re.IGNORECASE,
)
_NO_ANSWER = frozenset(
    "yes no nope yep sure ok okay why what later never none skip pass sorry forgot idk ja nein sí si oui non não".split()
)
_CODE_PART = expression(r"\d[\d -]*[#*]?")
_QUESTION_CHARS, _ANSWER_CHARS = 200, 48


def pem_spans(text: str) -> Iterator[tuple[int, int]]:
    """Find private keys in PEM armor; one that is cut off reaches to the end."""
    if "-----BEGIN" in text:
        for found in _PEM.finditer(text):
            yield found.span()


def key_spans(text: str) -> Iterator[tuple[int, int]]:
    """Find keys and tokens of services."""
    for found in find_in_steps(_KEYS, text):
        yield found.span()
    if hinted(text.casefold(), _KEY_HINTS):
        for found in find_in_steps(_NAMED_KEY, text):
            yield found.span(1)
        for found in find_in_steps(_NAMED_LETTERS, text):
            if _CAMEL_CASE.fullmatch(found[1]):
                continue
            changes = sum(one.isupper() != other.isupper() for one, other in pairwise(found[1]))
            if changes * 7 >= 2 * len(found[1]) or (not changes and len(found[1]) >= _LETTERS_OF_A_KEY):
                yield found.span(1)


def password_spans(text: str) -> Iterator[tuple[int, int]]:
    """Find passwords that the text states; "my password is wrong" states none."""
    if "://" in text:
        for found in _IN_URL.finditer(text):
            yield found.span(1)
    folded = text.casefold()
    yield from told_spans(text, folded)  # first, as these may take several words where the forms below take one
    yield from _code_spans(text, folded)
    if not hinted(folded, _PASSWORD_HINTS):
        return
    for pattern in (_PIN, _ATTACHED):
        for found in pattern.finditer(text):
            if pattern is _PIN and _is_postcode(text, found):
                continue
            yield trimmed(text, *found.span(found.lastindex or 0))
    for found in find_in_steps(_PASSPHRASE, text):  # first, as the forms below take one word of it
        value = found[found.lastindex or 0]
        if not _NO_PASSPHRASE.search(value) and not _is_shown(value):
            yield found.span(found.lastindex or 0)
    for found in _LOGIN.finditer(text):
        yield found.span(1)
        yield found.span(2)
    shown = set()
    for found in _QUOTED.finditer(text):
        if _is_shown(found[1]):
            shown.add(found.start(1))
        elif not _is_expression(text, *found.span(1)):
            yield found.span(1)
    for pattern in (_LABELLED, _SAID, _RUSSIAN, _SAID_SHORTLY):
        for found in pattern.finditer(text):
            value = found.span(found.lastindex or 0)
            start, end = trimmed(text, *value)
            talk = text[start:end].casefold() in TALK or _is_expression(text, *value)
            if end - start >= 3 and not talk and start not in shown:
                yield start, end
    for pattern in _LOOSE:
        for found in find_in_steps(pattern, text):
            start, end = trimmed(text, *found.span(1))
            if looks_secret(text[start:end]) and not _is_expression(text, *found.span(1)):
                yield start, end


def _is_shown(words: str) -> bool:
    """Whether quoted words are what a program says of a password ("too short") rather than one: most of them are."""
    said = [word.strip(TRIM) for word in words.casefold().split()]
    return said != ["password"] and sum(word in _SHOWN for word in said) * 2 > len(said)


def _is_expression(text: str, start: int, end: int) -> bool:
    """Whether a value is program text that names no password: ``db.Column(…)``, ``str``, ``=hashed_password``."""
    value = text[start:end]
    bare = value.rstrip(")],;:")
    assigned = text[:start].rstrip(" \t").endswith("=")
    return any(_EXPRESSION.fullmatch(one) or (assigned and _VARIABLE.fullmatch(one)) for one in (value, bare))


def _code_spans(text: str, folded: str) -> Iterator[tuple[int, int]]:
    """Find numbers that open a lock, an account, or a card, and the words that restore a wallet."""
    if not hinted(folded, _CODE_HINTS):
        return
    for pattern in _CODES:
        for found in find_in_steps(pattern, text):
            other = found[0][:4].casefold() == "code" and is_other_code(text, found.start())
            if not other and not _is_postcode(text, found):
                yield found.span(1)
    for found in find_in_steps(_ON_BACK, text):
        before = text[max(0, found.start() - _CARD_CHARS) : found.start()]
        if _CARD.search(before) and not _NO_CARD.search(before):
            yield found.span(1)
    for found in find_in_steps(_PHRASE, text):
        yield found.span(found.lastindex or 0)


def _card_code_spans(text: str) -> Iterator[tuple[int, int]]:
    """Find the code of a card whose number is in the text, too, in whatever order the two come."""
    cards = list(_cards(text))
    for found in find_in_steps(_BESIDE_CARD, text) if cards else ():
        yield found.span(found.lastindex or 0)
    for start, end in cards:
        behind = _CODE_BEHIND.match(text, end)
        before = _CODE_BEFORE.search(text, max(0, start - 8), start) if _EXPIRES_AT.match(text, end) else None
        yield from (found.span(1) for found in (behind, before) if found)


def _is_postcode(text: str, found: re.Match[str]) -> bool:
    """Whether a number is a PIN code of India, where a place has one: "pin code 560001"."""
    name = _PIN_CODE.search(found[0])
    if name is None or not _INDIAN_POSTCODE.fullmatch(found[1]) or _UNLOCKS.search(text):
        return False
    return bool(name["code"] or _PLACED.search(text))


class Analyzer(Protocol):
    """The used part of ``presidio_analyzer.AnalyzerEngine``."""

    def analyze(self, text: str, language: str, entities: list[str] | None, score_threshold: float) -> Any:
        """Return results with ``start`` and ``end``, in characters."""


class PresidioDetector:
    """
    A `Detector` over presidio, from the extra ``presidio``.

        phones = PresidioDetector("PHONE_NUMBER", kind="phone", analyzer=AnalyzerEngine(...))
        memory = Memory("chat.db", config=Config(detectors=(phones,)))

    It is asked for every text that anything is derived from, so its speed becomes that of `append`.
    """

    def __init__(
        self,
        *entities: str,
        kind: str = "personal",
        analyzer: Analyzer | None = None,
        language: str = "en",
        min_score: float = 0.5,
    ) -> None:
        """
        Ask *analyzer* for *entities*.

        Args:
            entities: presidio's names, such as ``PERSON`` or ``PHONE_NUMBER``; all that it knows when none is given.
            kind: the word shown, as in ``[phone removed]``.
            analyzer: a ``presidio_analyzer.AnalyzerEngine``.  Without one presidio makes its own, for which
                it downloads a language model on first use.
            language: in which the texts are read.
            min_score: from 0 to 1; what presidio is less sure of is let through.

        Raises:
            ConfigError: presidio is not installed, or a value cannot be used.
        """
        if not kind or not 0 <= min_score <= 1:
            raise ConfigError("kind must be a word and min_score from 0 to 1")
        self.kind = kind
        self._entities = list(entities) or None
        self._analyzer = _new_analyzer() if analyzer is None else analyzer
        self._language = language
        self._min_score = min_score

    def find(self, text: str) -> list[tuple[int, int]]:
        """Return ``(start, end)`` of each entity, in characters; of two that overlap, the longer one."""
        if not text.strip():
            return []
        found = self._analyzer.analyze(
            text=text, language=self._language, entities=self._entities, score_threshold=self._min_score
        )
        return sorted(((one.start, one.end) for one in found), key=lambda span: (span[0] - span[1], span))


def _new_analyzer() -> Analyzer:
    try:
        presidio = import_module("presidio_analyzer")
    except ImportError:
        raise ConfigError("presidio is not installed", hint="pip install 'holdfast[presidio]'") from None
    made: Analyzer = presidio.AnalyzerEngine()
    return made
