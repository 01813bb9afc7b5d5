"""
The words by which each language names times, as data.

``WORDS[code]`` is one `DateWords`.  A language is added by adding an entry: the vocabularies are
given as ``word word …`` strings, the phrases as expressions in which ``{n}`` stands for a number,
``{unit}``, ``{weekday}`` (``{dayname}``: only the first word of each), ``{month}``, ``{season}``, ``{year}``, ``{day}`` (1 to 31, with its ordinal
ending) and ``{clock}`` for what their names say, and a space for any white space.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class DateWords:
    """
    The time words of one language.

    ``units``: day, week, month, year, hour, minute, weekend → their words.  ``numbers``: word → number.
    ``days``: phrases for a whole day → its distance from today in days.  ``weekdays`` and ``months``:
    seven and twelve strings, from Monday and January.  ``seasons``: spring, summer, autumn, winter.
    ``phrases``: rule → expressions; the rules are those of `holdfast.text.dates`.  ``past``: an
    expression found in sentences about the past.  ``since`` and ``until`` stand before the time,
    ``since_after`` and ``until_after`` behind it.  ``day_first``: whether 3/5/2024 is 3 May.
    ``spaced``: whether words stand apart.
    """

    units: Mapping[str, str]
    numbers: Mapping[str, float]
    days: Mapping[str, int]
    weekdays: tuple[str, ...]
    months: tuple[str, ...]
    seasons: tuple[str, ...] = ("", "", "", "")
    ordinal: str = ""
    phrases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    past: str = r"(?!)"
    since: str = ""
    until: str = ""
    since_after: str = ""
    until_after: str = ""
    day_first: bool = True
    spaced: bool = True


ENGLISH = DateWords(
    units={
        "minute": "minute minutes min mins",
        "hour": "hour hours hr hrs",
        "day": "day days",
        "week": "week weeks wk wks",
        "weekend": "weekend weekends",
        "month": "month months",
        "year": "year years yr yrs",
    },
    numbers={
        "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
        "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30,
        "a couple of": 2, "a couple": 2, "couple of": 2, "a few": 3, "few": 3, "several": 4, "half a": 0.5, "half an": 0.5,
    },
    days={
        "the day before yesterday": -2, "day before yesterday": -2, "yesterday": -1, "today": 0, "this morning": 0,
        "this afternoon": 0, "this evening": 0, "tonight": 0, "tomorrow": 1, "tmrw": 1, "the day after tomorrow": 2,
        "day after tomorrow": 2,
    },
    weekdays=(
        "monday mon", "tuesday tues tue", "wednesday wed", "thursday thurs thur thu", "friday fri", "saturday", "sunday",
    ),
    months=(
        "january jan", "february feb", "march mar", "april apr", "may", "june jun", "july jul", "august aug",
        "september sept sep", "october oct", "november nov", "december dec",
    ),
    seasons=("spring", "summer", "fall autumn", "winter"),
    ordinal=r"(?:st|nd|rd|th)?",
    phrases={
        "ago": ("{n} {unit} ago", "{n} {unit} back", "{n} {unit} earlier"),
        "ahead": ("in {n} {unit}(?! of| row| time zones?)", "{n} {unit} from (?:now|today)", "within {n} {unit}"),
        "for": ("(?:for|over) (?:the (?:last|past) |about |almost |nearly |over |more than )?{n} {unit}(?: now)?",),
        "past_n": ("(?:in |over |during )?the (?:last|past) {n} {unit}", "(?:last|past) {n} {unit}"),
        "last": ("(?:last|the past|this past) {unit}",),
        "this": ("(?:this|the current|later this|earlier this) {unit}",),
        "next": ("(?:the )?(?:next|coming|following|upcoming) {unit}",),
        "last_night": ("last night|last evening",),
        "last_weekday": ("(?:last|this past) {weekday}",),
        "next_weekday": ("(?:next) {weekday}",),
        "weekday": (
            "(?:on |this |coming |this coming |by ){weekday}(?: morning| afternoon| evening| night)?",
            "{dayname}(?: morning| afternoon| evening| night)?",
        ),
        "last_season": ("last {season}",),
        "this_season": ("this {season}",),
        "next_season": ("next {season}",),
        "season": ("(?:in |during )?(?:the )?{season}(?: of|,)? {year}",),
        "day": (
            "(?:on )?(?:the )?{day}(?: of)? {month}(?:,? {year})?",
            "(?:on )?{month} (?:the )?{day}(?!\\d|:)(?:,? {year})?",
        ),
        "day_only": ("on the {day}(?= |[.,;!?]|$)(?! (?:floor|row|page|street|day|of|time|grade|anniversary))",),
        "month_year": ("(?:in |during |early |late |mid-?)?{month}(?: of|,)? {year}",),
        "month": ("(?:in|during|by|until|since|last|next|this|early|late|mid-?|end of|beginning of) {month}",),
        "year": ("(?:in|during|since|until|by|from|of|early|late|back in|year) {year}",),
        "clock": ("(?:at |around |by )?{clock}",),
    },
    past=r"\b(?:was|were|went|had|did|got|saw|met|bought|came|took|made|said|ago|last|left|began|started|moved|happened|"
    r"\w{3,}ed)\b",
    since=r"\b(?:ever )?since\s+(?:about |around |early |late |the )?$",
    until=r"\b(?:until|till|til|through|by)\s+(?:the )?$",
    day_first=False,
)  # fmt: skip

SPANISH = DateWords(
    units={
        "minute": "minuto minutos", "hour": "hora horas", "day": "día días dia dias", "week": "semana semanas",
        "weekend": "finde", "month": "mes meses", "year": "año años",
    },
    numbers={
        "un": 1, "una": 1, "dos": 2, "tres": 3, "cuatro": 4, "cinco": 5, "seis": 6, "siete": 7, "ocho": 8, "nueve": 9,
        "diez": 10, "once": 11, "doce": 12, "quince": 15, "veinte": 20, "treinta": 30, "un par de": 2, "unos": 3, "unas": 3,
    },
    days={
        "anteayer": -2, "antes de ayer": -2, "ayer": -1, "hoy": 0, "esta mañana": 0, "esta tarde": 0, "esta noche": 0,
        "mañana": 1, "pasado mañana": 2,
    },
    weekdays=("lunes", "martes", "miércoles miercoles", "jueves", "viernes", "sábado sabado", "domingo"),
    months=(
        "enero", "febrero", "marzo", "abril", "mayo", "junio", "julio", "agosto", "septiembre setiembre", "octubre",
        "noviembre", "diciembre",
    ),
    seasons=("primavera", "verano", "otoño", "invierno"),
    phrases={
        "days": (r"(?<!la\s)(?<!cada\s){words}",),
        "ago": ("hace (?:unos |unas |casi |más de )?{n} {unit}",),
        "ahead": ("(?:dentro de|en) {n} {unit}",),
        "for": ("(?:desde hace|durante) (?:unos |unas |casi |más de )?{n} {unit}", "llev(?:o|amos) {n} {unit}"),
        "last": ("(?:el|la) {unit} pasad[oa]", "(?:el|la) pasad[oa] {unit}"),
        "this": ("est[ea] {unit}",),
        "next": ("(?:el|la) {unit} que viene", "(?:el |la )?próxim[oa] {unit}"),
        "last_weekday": ("el {weekday} pasado", "el pasado {weekday}"),
        "next_weekday": ("el próximo {weekday}", "el {weekday} que viene"),
        "weekday": ("(?:el |este ){weekday}(?: por la (?:mañana|tarde|noche))?",),
        "last_season": ("(?:el|la) {season} pasad[oa]",),
        "this_season": ("est[ea] {season}",),
        "next_season": ("(?:el |la )?próxim[oa] {season}",),
        "day": ("(?:el )?{day} de {month}(?: del? {year})?",),
        "month_year": ("(?:en )?{month} del? {year}",),
        "month": ("(?:en|desde|hasta|para) {month}",),
        "year": ("(?:en|desde|hasta) {year}",),
        "clock": ("(?:a las? )?{clock}",),
    },
    past=r"\b(?:fue|fui|era|había|hizo|pasad[oa]|hace|ayer|nací|he|hemos|me mudé|nos mudamos|\w{3,}(?:é|ó|aron|ieron))\b",
    since=r"\bdesde\s+(?:el |la )?$",
    until=r"\bhasta\s+(?:el |la )?$",
)  # fmt: skip

FRENCH = DateWords(
    units={
        "minute": "minute minutes", "hour": "heure heures", "day": "jour jours", "week": "semaine semaines",
        "weekend": "week-end weekend", "month": "mois", "year": "an ans année années",
    },
    numbers={
        "un": 1, "une": 1, "deux": 2, "trois": 3, "quatre": 4, "cinq": 5, "six": 6, "sept": 7, "huit": 8, "neuf": 9,
        "dix": 10, "onze": 11, "douze": 12, "quinze": 15, "vingt": 20, "trente": 30, "quelques": 3,
    },
    days={
        "avant-hier": -2, "hier": -1, "aujourd'hui": 0, "ce matin": 0, "cet après-midi": 0, "ce soir": 0, "demain": 1,
        "après-demain": 2,
    },
    weekdays=("lundi", "mardi", "mercredi", "jeudi", "vendredi", "samedi", "dimanche"),
    months=(
        "janvier", "février fevrier", "mars", "avril", "mai", "juin", "juillet", "août aout", "septembre", "octobre",
        "novembre", "décembre decembre",
    ),
    seasons=("printemps", "été", "automne", "hiver"),
    ordinal="(?:er)?",
    phrases={
        "ago": ("il y a (?:environ |presque |plus de )?{n} {unit}",),
        "ahead": ("dans {n} {unit}",),
        "for": ("depuis (?:environ |presque |plus de )?{n} {unit}", "pendant {n} {unit}", "ça fait {n} {unit}"),
        "last": ("(?:la |le |l')?{unit} (?:derni(?:er|ère)|passée?)",),
        "this": ("(?:cette|ce) {unit}",),
        "next": ("(?:la |le |l')?{unit} prochaine?",),
        "last_weekday": ("{weekday} dernier",),
        "next_weekday": ("{weekday} prochain",),
        "weekday": (r"(?<!le\s)(?:ce )?{weekday}(?: matin| soir| après-midi)?",),
        "last_season": ("l'{season} derni(?:er|ère)", "le {season} dernier"),
        "this_season": ("(?:cet|ce) {season}",),
        "next_season": ("l'{season} prochain", "le {season} prochain"),
        "day": ("(?:le )?{day} {month}(?: {year})?",),
        "month_year": ("(?:en )?{month} {year}",),
        "month": ("(?:en|depuis|jusqu'en|dès) {month}",),
        "year": ("(?:en|depuis|jusqu'en) {year}",),
        "clock": ("(?:à |vers )?{clock}",),
    },
    past=r"\b(?:était|étais|avait|a eu|ai|avons|dernière?|passée?|hier|il y a|suis née?|me suis|\w+é[es]?)\b",
    since=r"\bdepuis\s+(?:le |la |l')?$",
    until=r"\bjusqu(?:'|e\s)?(?:au |à la |à |en )?\s*$",
)  # fmt: skip

GERMAN = DateWords(
    units={
        "minute": "minute minuten", "hour": "stunde stunden", "day": "tag tage tagen", "week": "woche wochen",
        "weekend": "wochenende", "month": "monat monate monaten monats", "year": "jahr jahre jahren",
    },
    numbers={
        "ein": 1, "eine": 1, "einem": 1, "einen": 1, "einer": 1, "zwei": 2, "drei": 3, "vier": 4, "fünf": 5, "sechs": 6,
        "sieben": 7, "acht": 8, "neun": 9, "zehn": 10, "elf": 11, "zwölf": 12, "fünfzehn": 15, "zwanzig": 20, "ein paar": 3,
    },
    days={
        "vorgestern": -2, "gestern": -1, "gestern abend": -1, "heute": 0, "heute morgen": 0, "heute abend": 0, "morgen": 1,
        "morgen früh": 1, "morgen abend": 1, "übermorgen": 2,
    },
    weekdays=("montag", "dienstag", "mittwoch", "donnerstag", "freitag", "samstag sonnabend", "sonntag"),
    months=(
        "januar jänner", "februar", "märz", "april", "mai", "juni", "juli", "august", "september", "oktober", "november",
        "dezember",
    ),
    seasons=("frühling frühjahr", "sommer", "herbst", "winter"),
    ordinal=r"\.?",
    phrases={
        "days": (r"(?<!jeden\s)(?<!guten\s)(?<!am\s){words}",),
        "ago": ("vor (?:etwa |fast |über |rund )?{n} {unit}",),
        "ahead": ("in {n} {unit}",),
        "for": ("seit (?:etwa |fast |über |rund )?{n} {unit}",),
        "last": ("(?:im )?letzte[nrms]? {unit}", "vergangene[nrms]? {unit}"),
        "this": ("diese[nrms]? {unit}",),
        "next": ("(?:im )?nächste[nrms]? {unit}", "kommende[nrms]? {unit}"),
        "last_weekday": ("(?:am )?letzte[nr]? {weekday}",),
        "next_weekday": ("(?:am )?nächste[nr]? {weekday}", "(?:am )?kommenden {weekday}"),
        "weekday": ("(?:am |diesen ){weekday}(?:morgen|abend|nachmittag)?",),
        "last_season": ("(?:im )?letzte[nrs]? {season}",),
        "this_season": ("diese[nrs]? {season}",),
        "next_season": ("(?:im )?nächste[nrs]? {season}",),
        "day": (r"(?:am |den )?{day} {month}(?: {year})?",),
        "month_year": ("(?:im )?{month} {year}",),
        "month": ("(?:im|seit|bis|ab) {month}",),
        "year": ("(?:im jahr|seit|bis|ab) {year}",),
        "clock": ("(?:um |gegen )?{clock}",),
    },
    past=r"\b(?:war|waren|hatte|hatten|wurde|habe|haben|bin|sind|gestern|vor|letzte[nrms]?|ge\w{3,}(?:t|en))\b",
    since=r"\b(?:seit|ab)\s+(?:dem |der )?$",
    until=r"\bbis\s+(?:zum |zur )?$",
)  # fmt: skip

KOREAN = DateWords(
    units={
        "minute": "분", "hour": "시간", "day": "일", "week": "주일 주", "weekend": "주말", "month": "개월 달", "year": "년 해",
    },
    numbers={
        "한": 1, "두": 2, "세": 3, "네": 4, "다섯": 5, "여섯": 6, "일곱": 7, "여덟": 8, "아홉": 9, "열": 10, "몇": 3,
    },
    days={"그저께": -2, "그제": -2, "어제": -1, "오늘": 0, "내일": 1, "모레": 2},
    weekdays=("월요일", "화요일", "수요일", "목요일", "금요일", "토요일", "일요일"),
    months=tuple(f"{month}월" for month in range(1, 13)),
    seasons=("봄", "여름", "가을", "겨울"),
    ordinal="일",
    phrases={
        "ago": (r"{n}\s?{unit}\s?전",),
        "ahead": (r"{n}\s?{unit}\s?(?:후|뒤)",),
        "for": (r"{n}\s?{unit}(?:째|\s?동안|\s?전부터)",),
        "last": (r"(?:지난|저번)\s?{unit}", "작{unit}"),
        "this": (r"이번\s?{unit}", "올{unit}"),
        "next": (r"다음\s?{unit}", "내{unit}"),
        "last_weekday": (r"(?:지난|저번)\s?주?\s?{weekday}",),
        "next_weekday": (r"다음\s?주\s?{weekday}",),
        "weekday": (r"(?:이번\s?주\s?)?{weekday}(?!마다)",),
        "last_season": (r"(?:지난|작년)\s?{season}",),
        "this_season": (r"(?:이번|올)\s?{season}",),
        "next_season": (r"(?:다음|내년)\s?{season}",),
        "day": (r"(?:{year}년\s?)?(?<!\d){month}\s?{day}",),
        "month_year": (r"{year}년\s?{month}",),
        "month": (r"(?<!\d){month}(?=에|부터|까지|\s)",),
        "year": ("(?<!\\d){year}년",),
    },
    past="[었았했갔왔났]다?|전에|지난|작년|어제",
    since_after="^(?:에?부터|\\s?이후로?)",
    until_after="^\\s?까지",
    spaced=False,
)  # fmt: skip

CHINESE = DateWords(
    units={
        "minute": "分钟", "hour": "小时 个小时", "day": "天 日", "week": "星期 周 礼拜 个星期", "weekend": "周末",
        "month": "个月 月", "year": "年",
    },
    numbers={
        "一": 1, "两": 2, "二": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9, "十": 10, "几": 3, "半": 0.5,
    },
    days={"大前天": -3, "前天": -2, "昨天": -1, "昨晚": -1, "今天": 0, "今晚": 0, "今早": 0, "明天": 1, "明晚": 1, "后天": 2},
    weekdays=(
        "星期一 周一 礼拜一", "星期二 周二 礼拜二", "星期三 周三 礼拜三", "星期四 周四 礼拜四", "星期五 周五 礼拜五",
        "星期六 周六 礼拜六", "星期天 星期日 周日 周天 礼拜天",
    ),
    months=tuple(
        f"{month}月 {name}月"
        for month, name in enumerate("一 二 三 四 五 六 七 八 九 十 十一 十二".split(), start=1)
    ),
    seasons=("春天 春季", "夏天 夏季", "秋天 秋季", "冬天 冬季"),
    ordinal="[日号號]",
    phrases={
        "ago": (r"{n}\s?{unit}(?:以)?前",),
        "ahead": (r"{n}\s?{unit}(?:以?后|之后)",),
        "for": (r"(?:已经)?{n}\s?{unit}了",),
        "last": ("上(?:一|个)?{unit}", "去{unit}"),
        "this": ("[这本](?:个)?{unit}", "今{unit}"),
        "next": ("下(?:一|个)?{unit}", "明{unit}"),
        "last_weekday": ("上(?:个)?{weekday}",),
        "next_weekday": ("下(?:个)?{weekday}",),
        "weekday": ("(?<!每)(?<!每个)(?:[这本](?:个)?)?{weekday}",),
        "last_season": ("去年{season}",),
        "this_season": ("(?:今年|这个){season}",),
        "next_season": ("明年{season}",),
        "day": (r"(?:{year}年\s?)?(?<![\d十]){month}\s?{day}",),
        "month_year": (r"{year}年\s?{month}",),
        "month": (r"(?<![\d十]){month}(?!\d)",),
        "year": ("(?<!\\d){year}年",),
    },
    past="[了过]|去年|上周|上个月|昨天|以前|出生",
    since="(?:从|自从|自)$",
    until="(?:到|直到)$",
    since_after="^(?:开始|起|以来)",
    spaced=False,
)  # fmt: skip

WORDS: dict[str, DateWords] = {
    "en": ENGLISH, "es": SPANISH, "fr": FRENCH, "de": GERMAN, "ko": KOREAN, "zh": CHINESE,
}  # fmt: skip
