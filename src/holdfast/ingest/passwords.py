"""
Passwords and lock codes in whole sentences of everyday, in nine languages.  Pure.

"My safe opens with 33-12-07" names no code, and "what's my password? It's hunter2" says it a sentence later.  A form of a
code begins with a word (`_LEAD`) that is searched for only before a number; one of a password with the word for it (`_SECRET`).
A text without a digit, or without one of these words, costs next to nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from ..text import expression
from ..text.terms import find_in_steps

TRIM = ".,;:!?\"'`´’”“»«)]}>…。、」"

_PROGRAM = expression(r"[a-z]+(?:_[a-z]+)+|[a-z_]\w*=.*", re.IGNORECASE)  # user_id, nullable=False


def looks_secret(word: str) -> bool:
    """Whether a word looks like a password: letters with digits or marks among them, or capitals inside."""
    word = word.strip("*_`\"'()")
    digits, letters = any(ch.isdecimal() for ch in word), any(ch.isalpha() for ch in word)
    if (
        _PROGRAM.fullmatch(word)
        or len(word) < 4
        or "://" in word
        or re.fullmatch(r"\d+(?:[a-z]|[-.,:]\d+)*", word.casefold())
    ):
        return False
    return letters and (digits or bool(re.search(r"[!@#$%^&*_+=~?]\S", word)) or bool(re.search(r"[a-z][A-Z]", word)))


def hinted(folded: str, hints: tuple[str, ...]) -> bool:
    """Whether a word of *hints* occurs in a case-folded text at all: far cheaper than the expressions."""
    for hint in hints:  # a generator takes three times as long
        if hint in folded:
            return True
    return False


def trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """Strip the quotation marks and full stop around a value, unless it is all there is."""
    while start < end and text[start] in "\"'`´‘’“”«»「([{<":
        start += 1
    while end > start and text[end - 1] in TRIM:
        end -= 1
    return start, end


def told_spans(text: str, folded: str) -> Iterator[tuple[int, int]]:
    """Find passwords and codes whose name is not beside the value; *folded* is the text, case-folded."""
    eastern = not text.isascii() and bool(_EASTERN.search(text))
    if eastern:
        yield from _all_spans(_EASTERN_PASSWORD, text)
    if not _DIGIT.search(text):
        return
    if eastern:
        yield from _all_spans(_EASTERN_LOCK, text)
    if _CANDIDATE.search(text) and hinted(folded, _LOCK_HINTS):
        yield from _lock_spans(text)
    if hinted(folded, _PASSWORD_HINTS):
        yield from _password_spans(text)


def _all_spans(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    for found in find_in_steps(pattern, text):
        yield found.span(found.lastindex or 0)


_DIGIT = expression(r"\d")
_EASTERN = expression("[\\u3040-\\u30ff\\u4e00-\\u9fff\\uac00-\\ud7a3]")  # kana, Chinese characters, Hangul
# Words for what a code opens.  What has a keypad or wheels is named with its code alone: "key safe 9012".
_KEYPADS = (
    r"key ?pad|key ?safe|key ?box|lock ?box|strong ?box|padlock|digicode|zahlenschlo(?:ss|ß)|(?:fahrrad|koffer|vorhänge|tür|spind)schlo(?:ss|ß)"
    r"|schlüssel(?:kasten|tresor|box|safe)|candado|cadenas|boîte à clés|lucchetto|cadeado|hangslot"
    r"|(?:luggage|suitcase|bike|bicycle|locker|cable|combination|number|gym|code|door|cabin|shed|gate|smart|trunk|chain|garage|bag) lock"
)
_GATES = (
    r"gate|(?:front|back|side|main|garage|office|cellar|basement|building|lobby|entrance|house|shed) door|alarm(?: system)?"
    r"|haustür|gartentor|hoftor|garagentor|alarmanlage|portal|puerta|alarma|portail|alarme|portone|cancello|allarme|antifurto|portão"
)
_ENTERED = (  # places to which one has a code
    r"storage(?: unit)?|unit|apartment|flat|garage|building|house|cabin|gym|office|shed|lobby|entrance|entry|front|elevator|lift|pool|parking"
    r"|airbnb|hotel|villa|studio|basement|cellar|mailbox|locker|room|barn|boat|courtyard|stairwell|clubhouse|warehouse|cottage|chalet|hut|stable"
    r"|tür|eingang|wohnung|haus|büro|keller|tiefgarage|tor|gartenhaus|ferienwohnung|lager|briefkasten"
    r"|casa|piso|edificio|garaje|oficina|trastero|entrada|cochera|ascensor"
    r"|immeuble|maison|appartement|entrée|bureau|cave|hall|résidence|ascenseur|parking"
    r"|palazzo|ufficio|cantina|ingresso|appartamento|condominio|cortile"
    r"|prédio|apartamento|garagem|escritório|condomínio|elevador"
)
_LOCKED = rf"{_KEYPADS}|{_GATES}|{_ENTERED}|door|lock|safe|vault|tresor|schlo(?:ss|ß)|\w+(?:schloss|tür|tor)|caja fuerte|coffre(?:-fort)?|cassaforte|cofre|porte|porta"
_DEVICES = (
    r"(?:smart|i)?phone|tablet|ipad|laptop|notebook|computer|macbook|watch|handy|rechner|móvil|celular|ordenador|téléphone|portable|ordinateur"
    r"|telefono|cellulare|telemóvel|telefone|sim"
)
_OPENED = expression(rf"(?<!\w)(?:{_LOCKED}|{_DEVICES})s?(?!\w)", re.IGNORECASE)
_OPENED_BEFORE = expression(
    rf"(?<!\w)(?:{_LOCKED}|{_DEVICES}|atm|cash machine|debit|bank|card|ec|opener|disarm|unlock|access|security)[- ]$",
    re.IGNORECASE,
)
# A number that stands for itself: "58B21", "33-12-07", "4-9-0-2"; not "300 lines", "6:30", or "2000 euros".
_NUMBER = r"((?-i:[A-Z]?\d(?:[ -]?\d){2,9}[A-Z]?|\d{1,4}[A-Z]\d{1,5}|[A-Z]\d{2,5}[A-Z])[#*]?)"
_END = (
    r"(?![\w%°$€£]|[.,:/]\d|-\w)(?=[ \t]?(?:[.,;!?)(\"'”…\n–—]|$)|[ \t](?:and|or|but|then|if|when|now|today|again|currently|btw|please|at|for|from|to|until|after|this|these|as"
    r"|und|oder|dann|wenn|jetzt|bitte|auf|aus|ab|an|ein|rein|frei|eingestellt|gestellt|gesetzt|programmiert|y|ahora|para|et|maintenant|pour|poi|adesso|per|e|agora)(?!\w))"
)
_CANDIDATE = expression(rf"(?<![\w.,/]){_NUMBER}(?![\w%]|[.,:/]\d)")
_BEFORE_CHARS = 100
_IS = r"(?:['’]s| is| was| are| ist| war| lautet| es| era| est|,? c['’]est| è| é| ?:| ?=| -| –)(?: now| still| currently| jetzt| ahora| maintenant| adesso| agora)?"
_AT = (
    r"(?:at|in|of|for|to|on|from|by|near|behind|next to|under|outside|für|fürs|vom|von|zum|zur|zu|am|an|bei|beim|im|der|des|de|del|de la|de los|du|à|au|d['’]|para|pour"
    r"|della|dello|dell['’]|di|do|da|no|na|per|van|voor)"
)
_LEAD = expression(
    r"(?<!\w)(?P<code>(?:pass ?)?codes?|combination|combo|c[oó]digo|codice|digicode|(?:tür|haus|haustür|garagen|tor|alarm|zugangs|safe|tresor|schloss|keller|büro|eingangs|handy)-?code|kod|cijfercode)(?!\w)"
    rf"|(?<!\w)(?P<keypad>{_KEYPADS})(?!\w)|(?<!\w)(?P<gate>{_GATES}|lock|safe|tresor|caja fuerte|coffre(?:-fort)?|cassaforte|cofre)(?!\w)"
    r"|(?<!\w)(?P<unlock>lock(?:s|ed)|unlock(?:s|ed|ing)?|disarm(?:s|ed|ing)?|entsperr\w{0,4}|desbloque\w{0,4}|déverrouill\w{1,5}|sblocc\w{1,5}|ontgrendel\w{0,2})(?!\w)"
    r"|(?<!\w)(?P<open>open(?:s|ed)?|turn(?:s|ed)?|switch(?:es)?|shuts?|deactivat\w{1,3}|stops?|öffn\w{1,4}|geht|schalte\w?|mach\w{1,2}|abr[eo]\w?|abrir|apag\w{1,2}"
    r"|desactiv\w{1,2}|ouvr\w{1,4}|éteins?|éteint|désactiv\w{1,4}|apr\w{1,3}|spegn\w{1,3}|disattiv\w{1,3}|deslig\w{1,2}|desativ\w{1,2})(?!\w)"
    r"|(?<!\w)(?P<type>type|enter|punch|press|dial|key|put|tap|input|use|hit|tippe?n?|gib|gebe?n?|drücke?n?|wähle?n?|marca[rs]?|marque|teclea[rs]?|pulsa[rs]?|introduce|mete"
    r"|tapez?|taper|compose[rz]?|entre[rz]|digita|premi|componi|inserisci|digite|aperte|tecle)(?!\w)"
    r"|(?<!\w)(?P<case>suitcase|luggage|valise|koffer|maleta|valigia)(?!\w)|(?<!\w)(?P<must>muss(?:t)?|müss(?:t|en))(?!\w)"
    r"|(?<!\w)(?P<pin>pin|puk|otp|nip|geheimzahl)(?!\w)",
    re.IGNORECASE,
)
_BARE_CODES = frozenset("code codes combination combo código codigo codice kod".split())
_OTHER_CODES = frozenset(
    """
    zip postal post area country error dress promo promotion promotional discount voucher coupon product order course exit status qr bar source color colour
    tax sort branch swift airport booking tracking dial dialing dialling calling fire penal civil morse referral gift invite genetic legacy
    class subject team school hex html python java test region state city reservation confirmation flight
    """.split()
)
_THERE = rf"(?:,? {_AT}[ ]?[^.?!\n\d:=,]{{1,40}}?)"
_CODE_IS = expression(rf"(?P<where>{_THERE}?){_IS} {{0,2}}{_NUMBER}{_END}", re.IGNORECASE)
_CODE_IS_OWN = expression(
    r"(?: number| code)?(?: is| was|:| =| ist| es| est| è| é) (?:my|our|his|her|\w+['’]s|mein\w{0,2}|mi|mon|ma|notre|mio|mia|il mio|la mia|meu|minha|o meu|a minha)"
    rf" (?!(?:[^.?!\n\d]*\W)?(?:since|in|from|until|of|by|for|biggest|only|old|seit|desde|depuis|dal)\W)[^.?!\n\d]{{2,30}}?[ ,:] ?{_NUMBER}{_END}",
    re.IGNORECASE,
)
_KEYPAD_IS = expression(rf"{_THERE}?(?:{_IS})? {{0,2}}{_NUMBER}{_END}", re.IGNORECASE)
_GATE_IS = expression(r"(?: is| ist| es| est| è| é|:) {1,2}(\d{4,6}[#*]?)" + _END, re.IGNORECASE)
_SET_TO = expression(
    rf"{_THERE}?(?:(?:['’]s| is| was| got)? (?:set|reset|changed|programmed|coded) (?:to|at|as)"
    r"| (?:ist|steht|war|ist auf|steht auf)(?: auf)?| está (?:puest[oa] )?(?:en|con|a|em|no)| (?:est )?(?:réglée?|mise?) (?:sur|à)| è impostat[oa] (?:su|a))"
    rf" {_NUMBER}{_END}",
    re.IGNORECASE,
)
_WITH = expression(
    r"(?:(?! (?:with|mit|con|avec|com) )[^.?!\n\d]){0,40}? (?:with|using|by (?:typing|entering|pressing)|mit|con|avec|com|met)(?: the| der| dem| el| la| le| il| o| a)?"
    rf"(?: code| pin| number| combination| código| codice)? {_NUMBER}{_END}",
    re.IGNORECASE,
)
_TYPED = expression(
    rf"(?: in)?(?: the)?(?: code| number| pin)? {_NUMBER}(?: in| ein)?"
    r"(?:(?P<why>,? (?:to|at|on|for|when|and|into|then|an|am|um|im|beim|für|bei|para|en|pour|à|au|per|al|alla|sul|no|na) [^.?!\n]{1,50})"
    rf"|{_END})",
    re.IGNORECASE,
)
_MUST = expression(
    rf"(?: du| man| ihr| ich)?(?: nur| einfach| noch)? {_NUMBER} (?:eintippen|eingeben|drücken|wählen|tippen)",
    re.IGNORECASE,
)
_ENTRY = expression(
    r"(?<!\w)(?:(?:get|come|go|let \w+)(?: back)? in(?:to|side)?(?! (?:touch|contact|line|trouble))|disarm|unlock|key ?pad|intercom|entrance|digicode|reinkommen|hineinkommen|ins haus|zu kommen|eingang"
    r"|entrar|entrer|entrare|accéder|(?:open|turn off|switch off|shut off|stop|öffnen|abrir|ouvrir|aprire|apagar|éteindre|disattivare|desligar)"
    rf" (?:the |my |our |die |das |der |den |la |el |le |l['’]|il |o |a )?(?:\w+ )?(?:{_LOCKED})"
    rf"|(?:{_LOCKED}) (?:zu öffnen|aufzumachen|zu entsperren)|(?:at|on|an|am) (?:the |my |our |der |die )?(?:\w+ )?(?:{_KEYPADS}|{_GATES}|door|lock|safe|tür))(?!\w)",
    re.IGNORECASE,
)
_ANSWERED = expression(
    rf"(?:[^.?!\n\d]{{0,40}}?\? {{1,2}}(?:it['’]?s|it is|that['’]?s|es ist|sie ist|sie lautet|es|c['’]est|è|é)|[^.?!\n\d]{{0,30}}?{_IS}) {{0,2}}"
    r"(\d(?:[ -]\d){3,7})(?![\w%]|[.,]\d)",
    re.IGNORECASE,
)
_LISTED = expression(
    rf"[,;]? (?:and |und |y |et |e )?(?:the |my |our )?(?:\w+ )?(?:{_KEYPADS}|{_GATES}|garage|door|safe|shed|locker)(?: code)?(?: is|:)? (\d{{3,8}}[#*]?){_END}",
    re.IGNORECASE,
)
_FLIGHT = expression(r"(?<!\w)(?:flights?|boarding|airport|terminal|plane|depart\w*|seat|stadium)(?!\w)", re.IGNORECASE)
_YEAR = expression(r"(?:19|20)\d\d")
_TIME = expression(r"(?:[01]?\d|2[0-3])[ -]?[0-5]\d")
_EMERGENCY = frozenset("911 112 999 110 115 118 113 117 119 000 100".split())
# Japanese, Korean, and Chinese: the thing, its particle, the number, and how it opens.
_EASTERN_LOCK = expression(
    r"(?:スマホ|携帯|iPhone|金庫|玄関|ドア|門|アラーム|警報|ロッカー|自転車|鍵|オートロック|ロック|解除)[^。！？\n\d]{0,12}?(?:(?<!携帯)(?<!スマホ)の?番号は|の?(?:コード|ロック|暗証番号)は|コードは|ロックは) ?([0-9０-９]{3,8})(?![\d年月日時分円個人])"
    r"|(?:スマホ|携帯|金庫|玄関|ドア|門|アラーム|警報|ロッカー|鍵|オートロック)[^。！？\n\d]{0,12}?([0-9０-９]{3,8})(?:を押す|を入力する)?(?:で|と)(?:開|解除|ロック|外|止)"
    r"|(?:금고|현관|현관문|대문|자물쇠|도어락|사물함|창고|차고|휴대폰|핸드폰|폰|알람|경보)[^.?!\n\d]{0,10}?(?<!폰 )(?<!폰)(?:번호|코드|비번)(?:는|은|가)? ?(\d{3,8})(?![-\d년월일시분원개명])"
    r"|(?:금고|현관|현관문|대문|자물쇠|도어락|사물함|창고|차고|휴대폰|핸드폰|폰|알람|경보)[^.?!\n\d]{0,10}?(\d{3,8})(?:으?로|을 누르면|를 누르면) ?(?:열|해제|풀|잠금|꺼)"
    r"|(?:手机|門禁|门禁|大门|大門|门|门锁|保险箱|保險箱|保险柜|锁|报警器|行李箱|楼下|仓库|车库|解锁|解鎖|开锁|开门)[^。！？\n\d]{0,6}?(?<![号號编編条條])(?:码|碼)(?:是|为|：|:) ?(\d{3,8})(?![\d年月日点分元个号位])"
    r"|(?:手机|门禁|大门|门|门锁|保险箱|保险柜|锁|报警器|行李箱)[^。！？\n\d]{0,8}?(?:用|按|输入|按下) ?(\d{3,8}) ?(?:就?(?:可以|能)?)(?:开|解锁|打开|解除|关)"
    r"|(?:按|输入) ?(\d{3,8}) ?(?:就?(?:可以|能)?)(?:开门|进门|解锁|开锁|进楼|開門)|([0-9０-９]{3,8})を(?:押|入力)[^。\n]{0,8}?(?:開|入れ|解除)"
    r"|(\d{3,8})(?:을|를) (?:누르면|입력하면) [^.\n]{0,10}?(?:열|들어)"
)
_LOCK_HINTS = (
    *"""code código codigo codice combin lock schlo keypad padlock safe strongbox digicode candado cadenas lucchetto cadeado gate door alarm tür
    portal puerta porta porte allarme antifurto cancello portão tresor coffre cassaforte cofre entsperr desbloque déverrouill sblocc ontgrendel disarm pin puk nip geheimzahl
    phone handy laptop tablet celular móvil téléphone telefon cellulare telemóvel intercom entrance building garage office suitcase luggage valise koffer maleta valigia house apartment flat
    entrar entrer entrare ouvrir abrir aprire öffnen rein""".split(),
    "key pad", "key safe", "key box", "lock box", "strong box", "boîte à cl", "caja fuerte", "get in", "come in", "go in", "me in", " tor ",
)  # fmt: skip


def _lock_spans(text: str) -> Iterator[tuple[int, int]]:
    """Find the numbers that open a door, a safe, a phone, or turn an alarm off."""
    found, done = False, 0
    for number in find_in_steps(_CANDIDATE, text):  # there are few, and the words that begin a form stand before one
        for anchor in _LEAD.finditer(text, max(done, number.start() - _BEFORE_CHARS), number.start()):
            span = _FORMS[anchor.lastgroup or ""](text, anchor)
            if span is not None:
                found = True
                yield span
        done = number.end()
    if found:  # "gate is 5567, key safe 9012"
        for listed in find_in_steps(_LISTED, text):
            yield listed.span(1)


def _code(text: str, anchor: re.Match[str]) -> tuple[int, int] | None:
    """Read "the gate code at the office is 4455", "the code for the storage unit is 77123", "my ATM code is my birthday 1204"."""
    if is_other_code(text, anchor.start()):
        return None
    named = (
        _OPENED_BEFORE.search(text[max(0, anchor.start() - 24) : anchor.start()])
        or anchor[0].casefold() not in _BARE_CODES
    )
    told = _CODE_IS.match(text, anchor.end())
    if told and (named or _OPENED.search(told["where"])):
        return told.span(2)
    own = _CODE_IS_OWN.match(text, anchor.end()) if named else None
    return own.span(1) if own else None


def is_other_code(text: str, start: int) -> bool:
    """Whether the word before *start* makes a code there one that opens nothing: "postal code", "promo code"."""
    before = text[max(0, start - 24) : start]
    return before[-1:] in (" ", "-") and before.rstrip(" -").rpartition(" ")[2].casefold() in _OTHER_CODES


def _keypad(text: str, anchor: re.Match[str]) -> tuple[int, int] | None:
    told = _KEYPAD_IS.match(text, anchor.end())
    return told.span(1) if told else _gate(text, anchor)


def _gate(text: str, anchor: re.Match[str]) -> tuple[int, int] | None:
    """Read "back door is 8124" and "my lock is set to 417"; not "the gate is 2019", "my alarm is set to 630"."""
    alarm = anchor[0].casefold().startswith(("alarm", "allarm"))
    told = _SET_TO.match(text, anchor.end())
    if told is None and anchor[0].casefold() == "lock":  # "I lock my bike with 4519"
        told = _WITH.match(text, anchor.end())
    if told is None and anchor[0].casefold() not in ("safe", "lock", "tresor", "coffre", "cofre"):
        told = _GATE_IS.match(text, anchor.end())
        if told and (_YEAR.fullmatch(told[1]) or _FLIGHT.search(text)):
            return None
    return told.span(1) if told and not (alarm and _TIME.fullmatch(told[1])) else None


def _unlock(text: str, anchor: re.Match[str]) -> tuple[int, int] | None:
    told = _WITH.match(text, anchor.end())
    return told.span(1) if told else None


def _open(text: str, anchor: re.Match[str]) -> tuple[int, int] | None:
    """Read "my safe opens with 33-12-07" and "turn the alarm off with 6604": what opens must be named in the sentence."""
    told = _WITH.match(text, anchor.end())
    if told is None:
        return None
    return (
        told.span(1)
        if _OPENED.search(_sentence_before(text, anchor) + anchor[0] + told[0][: told.start(1) - told.start()])
        else None
    )


def _type(text: str, anchor: re.Match[str]) -> tuple[int, int] | None:
    """Read "type 4419 to get into our building"; not "dial 112 at the door"."""
    told = _TYPED.match(text, anchor.end())
    if told is None or told[1] in _EMERGENCY or (anchor[0].casefold() == "put" and " in" not in told[0]):
        return None
    clause = told["why"] or _sentence_before(text, anchor)
    return told.span(1) if _ENTRY.search(clause) else None


def _case(text: str, anchor: re.Match[str]) -> tuple[int, int] | None:
    told = _SET_TO.match(text, anchor.end())
    return told.span(1) if told else None


def _must(text: str, anchor: re.Match[str]) -> tuple[int, int] | None:
    """Read "für die Alarmanlage musst du 6604 eintippen"."""
    told = _MUST.match(text, anchor.end())
    return told.span(1) if told and _OPENED.search(_sentence_before(text, anchor)) else None


def _sentence_before(text: str, anchor: re.Match[str]) -> str:
    return re.split(r"[.?!\n]", text[max(0, anchor.start() - 60) : anchor.start()])[-1]


def _pin(text: str, anchor: re.Match[str]) -> tuple[int, int] | None:
    told = _ANSWERED.match(text, anchor.end()) or _CODE_IS_OWN.match(text, anchor.end())
    return told.span(1) if told else None


_FORMS: Mapping[str, Callable[[str, re.Match[str]], tuple[int, int] | None]] = {
    "code": _code, "keypad": _keypad, "gate": _gate, "unlock": _unlock, "open": _open, "type": _type, "pin": _pin, "case": _case, "must": _must,
}  # fmt: skip

PASSWORD = (
    "password|pass ?phrase|passcode|passwort|kennwort|contraseña|contrasena|clave|mot de passe|senha|palavra-passe"
    "|parola d'ordine|wachtwoord|hasło|haslo|пароль|lösenord|adgangskode|passord|salasana|şifre|heslo|jelszó|parolă"
)
NO_TOOL = r"(?![ -](?:manager|hash\w*|librar\w+|app|vault|generator|policy|prompt|field|tool|store|cracker|reset|plugin|page|algorithm|service)\b)"
_SECRET = expression(rf"(?<!\w)(?:{PASSWORD}|passwd|pwd|pw|mdp)(?!\w){NO_TOOL}", re.IGNORECASE)
_NEW = r"(?: (?:nuev[oa]|actual|viej[oa]|anterior|nouveau|actuel|nuova|attuale|vecchia|nova|atual|antiga|principal))?"
_OF = rf"(?:,? {_AT}[ ]?[^.?!\n:=,]{{1,40}}?)"
_STOP = r"(?=[\"'”»]?\s*(?:[.!,;]|$))"
# Several words with a number: "the password is: open sesame 12", "mi clave es tigre 88".
_WORDS = expression(
    rf"{_NEW}{_OF}?(?: is| was| ist| lautet| es| est| è| é)? ?[:：] {{0,3}}[\"“„«]?((?:[^\W_]+ ){{1,4}}[^\W_]+){_STOP}"
    rf"|{_NEW}{_OF}?(?: is| was| ist| lautet| es| est| è| é) ?[:：] {{0,3}}[\"“„«]?(\S{{4,64}}){_STOP}"
    rf"|{_NEW}{_OF}?(?: is| was| ist| lautet| es| est| è| é| to| is now| ist jetzt) ((?:[^\W\d_]{{1,14}} ){{1,3}}\d{{2,8}}){_STOP}",
    re.IGNORECASE,
)
_FIRST = frozenset(
    "de del della dal dall aus dem den des du da do dos di from of since".split()
)  # "mi contraseña es del año 2019"
_UNITS = expression(
    r"\d (?:days?|weeks?|months?|years?|hours?|minutes?|times|tage?n?|wochen|monate?n?|jahre?n?|stunden|minuten|d[ií]as?|mes[ei]s?|años?|jours?|mois|ans|giorni|anni|meses|anos|horas|heures|ore)(?!\w)",
    re.IGNORECASE,
)
_MINE = expression(r"(?<!\w)(?:mi|tu|nuestra|nueva) $", re.IGNORECASE)
_RULES = frozenset(
    """
    least most minimum maximum characters character letters digits words numbers symbols
    page line section chapter step version level option note see since due until before after about around part number no nr
    january february march april may june july august september october november december
    mindestens höchstens zeichen buchstaben ziffern stellen seite seit bis ab vor nach etwa
    mínimo mínima máximo caracteres letras dígitos días meses años página desde hasta unos unas después
    minimum caractères lettres chiffres jours mois ans depuis jusqu avant après environ
    minimo massimo caratteri lettere cifre giorni mesi anni pagina dal fino circa dias anos até cerca
    in on at by for from with of to and the not never too very in im am en le al em no na nel
    """.split()
)
# What follows within the sentence, or in the next one: "what's my password? It's hunter2", "it was x, now it's y", "…, so Mimi77".
_IT_IS = expression(
    r"(?<!\w)(?:it['’]?s|it is|it was|that['’]?s|(?:the )?(?:new|old|current) one(?:['’]s| is| was)|is now|now|so|i\.e\.|namely|es ist|es war|es lautet|war|jetzt|also|nämlich|sie ist"
    r"|c['’]est|c['’]était|donc|maintenant|es|era|ahora|así que|o sea|è|adesso|quindi|cioè|é|agora|então|ou seja)(?: now| still| jetzt| just| es| è| é| it['’]s)? [\"'“„«]?(\S{5,128})"
    r"(?=\s*$|(?<=[.,;!?\"'”»])| (?:but|and|for|now|which|because|with|if|und|aber|y|pero|et|mais|e|ma|mas)(?!\w))",
    re.IGNORECASE,
)
_ALONE = expression(r"\? {1,2}[\"'“„«]?(\S{5,64})(?=\s*$|[.!]?\s)")  # "my new password? Winterzauber9."
_WINDOW_CHARS = 120
# "I log in to the router with admin / Zx9!kk21", "you get in with limoncello55", "I use Tiger1999 everywhere as my login".
_LOG_IN = expression(
    r"(?<!\w)(?:(?:log|sign|get|logg?e|melde)(?:ged|ed|s|ging|ging)? ?(?:in(?:to)?|on(?:to)?|mich)|einloggen|me connecte|me conecto|inicio sesión|accedo|entro|acesso)(?!\w)"
    r"[^.?!\n/]{0,60}? (?:with|as|using|mit|als|con|como|avec|com) \S{2,60}? ?(?:[/|:,]| and| und| y| et| e) ?(?:(?:the )?(?:password|pw|passwort|clave|senha) )?([^\s/|]{4,64})",
    re.IGNORECASE,
)
_NETWORK = expression(
    r"wi-?fi|wlan|unlock|entsperr|desbloque|déverrouill|sblocc|(?<!\w)(?:network|netzwerk|hotspot|rete|red|réseau|rede|netflix|router)(?!\w)",
    re.IGNORECASE,
)
_CONNECT = expression(
    r"(?<!\w)(?:get|gets|log|sign|connect\w{0,4}|join\w{0,3}|komm\w{0,3}|einloggen|verbind\w{0,3}|conect\w{1,4}|entra\w{0,2}|entro|collega\w{0,2}|unlock\w{0,3}|entsperr\w{0,4}|desbloque\w{0,4}|déverrouill\w{1,5}|sblocc\w{1,5}|connett\w{1,3})(?!\w)"
    r"[^.?!\n]{0,40}? (?:with|using|mit|con|avec|com) (\S{5,64})",
    re.IGNORECASE,
)
_EVERYWHERE = expression(
    r"(?<!\w)(?:(?:re)?use[ds]?|nutze|benutze|nehme|verwende|uso|utilise|utilizzo|gebruik)(?: überall| immer| partout| siempre| sempre)? (\S{5,64})"
    r"(?=[^.?!\n]{0,60}?(?:log-?in|password|passwort|accounts?|sites?|konten|konto|clave|contraseña|mot de passe|senha|cuentas?|comptes?|conti|contas?|websites?)(?!\w))"
    r" (?:everywhere|for (?:every|all|each|any)|on (?:every|all|each)|as (?:my|our|the) (?:\w+ )?log-?in(?! \w*(?:method|cache|provider|backend|system|flow|page|service|tool))|überall|für (?:alle|jede)|als (?:mein )?login"
    r"|partout|pour tou\w+|en tod\w+|para tod\w+|ovunque|dappertutto|per (?:tutt\w+|ogni)|em tod\w+)(?!\w)",
    re.IGNORECASE,
)
_NAMED = expression(
    r"(?:sha|md|aes|rsa|utf|base|o?auth|saml|python|windows|win|iphone|ipad|ios|android|pixel|galaxy|playstation|xbox|office|http|html|css|web|covid|gpt|claude|llama|gemini|java|php|vue"
    r"|angular|bcrypt|argon|scrypt|firefox|chrome|ubuntu|debian|fedora|macos|postgres(?:ql)?|mysql|sqlite|node|room|version|chapter|page|step|level|team|channel)[-_.]?\d{1,4}(?:\.\d+)*[a-z]{0,2}"
    r"|1password|lastpass|keepass\w*|log4j|neo4j|k8s|\d+\w{0,4}[-/]\w*|v\d.*|[a-z]\d-\d+",
    re.IGNORECASE,
)
_EASTERN_PASSWORD = expression(
    r"(?:パスワード|暗証番号|パスコード|合言葉)(?:は|：|:)[\s　]{0,2}[「『\"]?(?!最[低大近後]|半角|全角|英[数字]|数字|毎|約|今|前|先|合計)([ぁ-ヿ一-鿿々]{1,8}[0-9０-９]{2,12})(?![0-9０-９文桁回年月日時分個つ字番目以人件秒])"
    r"|(?:パスワード|暗証番号|合言葉)(?:は|：|:)[\s　]{0,2}[「『](?!忘|無効|違|必須|不|間違|入力|正し|短|変更|パスワード)([^「」『』\n]{3,40})[」』]"
    r"|(?:密码|密碼|口令)(?:就?是|为|為|：|:|改成了?|换成了?|設成了?|设成了?) {0,2}[\"“「]?(?!\D{0,7}(?:设|設|改|于|於|在|有|错|忘|需|要|至少|最少|超过|大概|第|多|每|长度))"
    r"([\u4e00-\u9fff]{1,8}\d{2,12})(?![\d位个個年月次天字号點点分块元秒小人条])"
    r"|(?:密码|密碼|口令)(?:就?是|为|為|：|:|改成了?|换成了?) {0,2}[“「](?!错|忘|无效|無效|不|请|請|必|太|密)([^”」\n]{3,40})[”」]"
    r"|(?:密码|密碼|口令)(?:改成了?|换成了?|設成了?|设成了?) {0,2}((?=[\x21-\x7e]*\d)[\x21-\x7e]{4,64})"
    r"|(?:비밀번호|비번|암호|패스워드)(?:는|은|가|이|를|을)? {0,2}[:=]? {0,2}['\"‘“]?(?!최소|최대|숫자|영문|하루|매|오늘|어제|지난|작년|약|총|이상)([가-힣]{1,8}\d{2,12})(?!\d)(?!자리|글자|번|년|월|일|회|개|시|분|명|자|초)"
)
_PASSWORD_HINTS = (
    *"""password passphrase passcode passwd pwd pw mdp passwort kennwort contrase clave senha palavra-passe parola wachtwoord hasło haslo парол lösenord adgangskode passord
    salasana şifre heslo jelszó parolă wi-fi wifi wlan network netzwerk hotspot router login log-in unlock entsperr desbloque déverrouill sblocc everywhere melde accedo entro partout überall sesión""".split(),
    "pass phrase", "mot de passe", "log in", "logged in", "sign in", "signed in", "me connect",
)  # fmt: skip
# What follows "my password is" when none is told.
TALK = frozenset(
    """
    seit expire mindestens mínimo mínima minimum minimo a an the my your his her our their it its this that what which who where when why how whether one same
    not no now never always still again already also just only really very so too quite rather about almost
    wrong incorrect correct right invalid valid weak weaker strong stronger expired expiring required requested
    stored saved kept hashed encrypted salted reset changed compromised leaked stolen lost forgotten gone missing
    hidden blank empty unknown secret long longer short shorter secure safe unsafe bad good better fine okay old new
    different case-sensitive working broken needed being getting going asked supposed set in on at by for from with
    under over between impossible hard easy difficult something anything nothing everything at least must should
    protected sensitive confidential optional mandatory ok, there here case written printed taped posted shared known unique
    sent provided included handled memorable alphanumeric denied declined rotating unchanged cool see pregnant
    monday tuesday wednesday thursday friday saturday sunday
    expensive cheap enough used public private rejected accepted broken blocked locked disabled default
    falsch richtig abgelaufen nicht zu schwach sicher unsicher weg vergessen sehr mein dein das der die ein eine nur
    incorrecta incorrecto correcta correcto muy demasiado débil fuerte segura la el una un mi tu no esta está obligatoria
    incorrecte faux trop expiré expirée oublié le mon ton sûr pas très obligatoire requis
    errada incorreta muito fraca forte minha sua uma não sbagliata errata troppo debole forte molto una mia non scaduta
    verkeerd fout niet te zwak mijn jouw een verlopen zły błędne za słabe moje twoje nie
    неверный неправильный слишком не мой слабый забыл
    """.split()
)


def _password_spans(text: str) -> Iterator[tuple[int, int]]:
    """Find passwords of several words, in a script of their own, or told after the word in a clause or sentence of their own."""
    for anchor in find_in_steps(_SECRET, text):
        yield from _after(text, anchor)
    for pattern in (_LOG_IN, _EVERYWHERE):
        for found in find_in_steps(pattern, text):
            start, end = trimmed(text, *found.span(1))
            if looks_secret(text[start:end]) and (pattern is _LOG_IN or _is_password(text[start:end])):
                yield start, end
    if _NETWORK.search(text):
        for found in find_in_steps(_CONNECT, text):
            start, end = trimmed(text, *found.span(1))
            if _is_password(text[start:end]):
                yield start, end


def _after(text: str, anchor: re.Match[str]) -> Iterator[tuple[int, int]]:
    """Find the value that follows a word for a password, up to two sentences on."""
    told = _WORDS.match(text, anchor.end())
    if told and (anchor[0].casefold() != "clave" or _MINE.search(text[max(0, anchor.start() - 12) : anchor.start()])):
        value = told[told.lastindex or 0]
        words = value.casefold().split()
        mixed = any(ch.isdecimal() for ch in value) and any(ch.isalpha() for ch in value)
        if (
            (mixed or len(words) == 1)
            and not words[0].isdecimal()
            and words[0] not in _FIRST
            and not _UNITS.search(value)
            and not any(word in TALK or word in _RULES for word in words)
        ):
            yield told.span(told.lastindex or 0)
            return
    line = text[anchor.end() : anchor.end() + _WINDOW_CHARS].partition("\n")[0]
    alone = _ALONE.match(line)
    for found in (*((alone,) if alone else ()), *_IT_IS.finditer(line)):
        start, end = trimmed(line, *found.span(1))
        if _is_password(line[start:end]):
            yield anchor.end() + start, anchor.end() + end


def _is_password(word: str) -> bool:
    """Whether a word can only be a password: small letters and digits or marks, and no name such as Windows11 or SHA256."""
    marked = any(ch.isdecimal() for ch in word) or re.search(r"\w[!@#$%^&*+=~?]\w", word)
    return bool(marked and re.search(r"[^\W\d_A-Z]{2}", word) and looks_secret(word) and not _NAMED.fullmatch(word))
