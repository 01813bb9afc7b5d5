"""Signs of each language: scripts, letters, and the commonest words in Latin letters."""

from __future__ import annotations

import re

from . import expression

# The stop list of the ranking recipe; the order is by kind, the words are given.
ENGLISH_STOP = frozenset(
    "a an the and or but if then so of to in on at for from by with about as into like through after over between out "
    "against during without before under around among is am are was were be been being have has had having do does did "
    "doing will would shall should can could may might must i me my mine we us our you your he him his she her hers it "
    "its it they them their theirs this that these those what which who whom whose when where why how not no nor only "
    "own same than too very just there here s t m re ve d ll".split()
)

# Snowball's name of each language that is stemmed; all stand in every PyStemmer since 2.2.
STEMMERS = {
    "ar": "arabic", "da": "danish", "de": "german", "el": "greek", "en": "english", "es": "spanish", "fi": "finnish",
    "fr": "french", "hi": "hindi", "hu": "hungarian", "id": "indonesian", "it": "italian", "nl": "dutch",
    "no": "norwegian", "pt": "portuguese", "ro": "romanian", "ru": "russian", "sv": "swedish", "ta": "tamil",
    "tr": "turkish",
}  # fmt: skip

LANGUAGE_NAMES = {code: name.title() for code, name in STEMMERS.items()} | {
    "cs": "Czech", "fa": "Persian", "he": "Hebrew", "hy": "Armenian", "ja": "Japanese", "ko": "Korean", "pl": "Polish", "th": "Thai",
    "uk": "Ukrainian", "zh": "Chinese",
}  # fmt: skip

# A letter of one of these decides at once; the first that matches wins (Japanese before Chinese).
SCRIPTS = tuple(
    (language, expression(letters))
    for language, letters in (
        ("ko", "[\uac00-\ud7ff\u1100-\u11ff\u3130-\u318f]"),
        ("ja", "[\u3041-\u30ff]"),
        ("zh", "[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f]"),
        ("uk", "[\u0404\u0406\u0407\u0454\u0456\u0457\u0490\u0491]"),
        ("ru", "[\u0400-\u04ff]"),
        ("el", "[\u0370-\u03ff]"),
        ("fa", "[\u067e\u0686\u0698\u06af]"),
        ("ar", "[\u0600-\u06ff]"),
        ("he", "[\u0590-\u05ff]"),
        ("hi", "[\u0900-\u097f]"),
        ("ta", "[\u0b80-\u0bff]"),
        ("th", "[\u0e01-\u0e7f]"),
        ("hy", "[\u0530-\u058f]"),
    )
)

# Letters that speak for a language in Latin letters as strongly as one of its own words.
MARKS_OF = tuple(
    (language, expression(letters))
    for language, letters in (
        ("de", "[\u00df\u1e9e]"),
        ("es", "[\u00f1\u00d1\u00bf\u00a1]"),
        ("pt", "[\u00e3\u00f5\u00c3\u00d5]"),
        ("pl", "[\u0105\u0119\u0142\u017c\u015b\u017a\u0107\u0144]"),
        ("tr", "[\u011f\u0131\u015f\u0130]"),
        ("hu", "[\u0151\u0171]"),
        ("ro", "[\u0219\u021b\u0103]"),
        ("cs", "[\u011b\u0159\u016f]"),
    )
)

# The commonest words of each: what decides a language is also its stop list.
STOP = {
    language: frozenset(words.split())
    for language, words in {
        "es": "el la los las un una unos unas de del al y o que dos en por para con sin es son era fue ser estar "
        "estoy está esta este esto soy eres somos yo tú él ella nosotros ellos ellas mi mis tu tus su sus me te se "
        "nos lo le les no sí muy más pero como cuando donde dónde qué quién cuándo cómo cuál hay ha he también ya "
        "porque desde hasta",
        "fr": "le la les un une des de du à au aux et ou que qui en dans pour par avec sans sur est sont était être "
        "suis es sommes je tu il elle nous vous ils elles mon ma mes ton ta tes son sa ses me te se ne pas plus très "
        "mais comme quand où quoi quel quelle ce cette ces cet ai as avons avez ont aussi parce depuis oui j c d l n "
        "qu",
        "de": "der die das den dem des ein eine einen einem einer und oder dass in im am an auf für mit ohne von vom "
        "zu zum zur bei nach aus ist sind war bin bist sein ich du er sie es wir ihr mich mir dich dir sich uns mein "
        "meine dein deine nimmt wurde wurden worden nicht kein keine sehr mehr aber wie wann wo was wer warum habe hat haben hast auch weil "
        "seit ja nein noch",
        "it": "il lo la i gli le un uno una di del della dei delle a al alla e o che in nel nella per con senza su "
        "da dal è sono era essere sei siamo io tu lui lei noi voi loro mio mia miei tuo tua suo sua mi ti si ci ne "
        "non sì molto più ma come quando dove cosa chi perché ho hai ha abbiamo hanno anche questo questa",
        "pt": "o a os as um uma uns umas de do da dos das ao à e ou que em no na nos nas por para com sem é são era "
        "foi ser estar estou está sou somos eu tu você ele ela nós eles elas meu minha meus minhas seu sua me te se "
        "lhe não sim muito mais mas como quando onde qual quem também já porque desde até isso este esta",
        "nl": "de die het een en of dat in op voor met zonder van naar bij uit aan is zijn was ben bent ik jij je "
        "hij zij ze wij we jullie mij me mijn jouw zich ons niet geen wel zeer meer maar hoe wanneer waar wat wie "
        "waarom heb heeft hebben hebt ook omdat sinds ja nee er nog",
        "sv": "en ett och eller att i på för med utan av till från är var vara jag du han hon den det vi ni de mig "
        "dig sig oss min mitt mina din ditt dina inte ingen mycket mer men hur när vad vem varför har hade också "
        "eftersom sedan ja nej om som",
        "da": "en et og eller at i på for med uden af til fra er var være jeg du han hun den det vi de mig dig sig "
        "os min mit mine din dit dine ikke ingen meget mere men hvordan hvornår hvor hvad hvem hvorfor har havde "
        "også fordi siden ja nej om som",
        "no": "en et ei og eller å i på for med uten av til fra er var være jeg du han hun den det vi dere de meg "
        "deg seg oss min mitt mine din ditt dine ikke ingen veldig mer men hvordan når hvor hva hvem hvorfor har "
        "hadde også fordi siden ja nei om som",
        "fi": "ja tai että on ovat oli olla olen olet minä sinä hän me te he minun sinun hänen ei en et eivät myös "
        "mutta kun missä mitä mikä kuka miksi miten koska kanssa hyvin tämä se ne",
        "hu": "a az egy és vagy hogy nem is van vagyok volt én te ő mi ti ők nekem neked igen de mint amikor hol mit "
        "ki miért mert nagyon ez ezt",
        "ro": "un o și sau că în pe pentru cu fără de la din este sunt era fi eu tu el ea noi voi ei ele meu mea mei "
        "tău ta său sa nu da foarte mai dar cum când unde ce cine am ai are avem au",
        "tr": "bir ve veya ki için ile ben sen o biz siz onlar benim senin onun bu şu değil evet hayır çok daha ama "
        "gibi ne zaman nerede kim neden nasıl var yok da de mi",
        "id": "yang dan atau di ke dari untuk dengan tanpa adalah saya kamu anda dia kami kita mereka ini itu tidak "
        "bukan ya sangat lebih tetapi tapi seperti kapan dimana apa siapa mengapa bagaimana ada sudah juga karena aku",
        "pl": "i lub że w na do z ze dla od przez jest są był być jestem ja ty on ona my wy oni mój moja moje twój "
        "nie tak bardzo więcej ale jak kiedy gdzie co kto dlaczego mam masz ma też bo się to ten ta",
        "cs": "a nebo že v na do z pro od je jsou byl být jsem já ty on ona my vy oni můj moje tvůj ne ano velmi "
        "více ale jak kdy kde co kdo proč mám máš má také protože se to ten ta",
    }.items()
}

# Words that give a language away and still carry meaning, so they are indexed.
_TELLING = {
    "es": "hola gracias vivo vive tengo tiene tienes quiero gusta trabajo ahora nací crecí mudé mudo mudado vivía vivimos "
    "vivir necesito hablo hablar nuestro nuestra usamos dejé fumo bebo tomo prefiero ayer hace semana año años mes hemos "
    "vegetariana vegetariano vegana vegano hijos hija hermana hermano perro perra gata gato esposa novio novia jefe jefa "
    "tenemos estamos vamos voy suben subieron bajan bajaron cambian cambiaron viajar viaje "
    "presupuesto gustaría gustan encanta encantaría odio peso dijo llamo estudio",
    "fr": "bonjour merci habite travaille voudrais appelle habitons ans prends mange manger végétarien végétarienne "
    "maintenant aime aimes aimerais adore déteste déménagé utilise utilisons parles veux chien chat fille fils mari copine "
    "frère sœur semaine dernière voyage jours viens pèse mesure patron dois fume",
    "de": "hallo danke gerne möchte wohne wohnt arbeite mag heiße esse isst trinke spreche sprichst magst spielst spiele "
    "nehme benutze nutzen jahre jetzt gern jeden frau tochter sohn kinder hund katze vegetarier vegetarierin bitte wir "
    "werden stehe gehe normalerweise",
    "it": "ciao grazie vivo abito lavoro sto vegetariana vegetariano vegana vegano mangio bevo figlia figlio figli moglie "
    "marito sorella fratello cane gatto piace piacciono adesso oggi domani ieri anni settimana mese trasferito trasferita "
    "parlo studio prendo odio preferisco allergica allergico viviamo abitiamo abbiamo vado viaggio chiamo smesso più",
    "pt": "olá obrigado obrigada tenho tem temos moro moramos gosto trabalho vegetariana vegetariano vegana vegano como "
    "bebo filha filho filhos esposa marido irmã irmão cachorro cachorra gato gata agora hoje amanhã ontem anos semana "
    "mês mudei falo estudo tomo odeio prefiro alérgica alérgico vou viajar viagem chamo parei minha quero fui jogo toco meço "
    "quilos faço corro acordo comprei vendi",
    "nl": "hallo bedankt dank graag woon werk",
    "sv": "hej tack gärna bor",
    "da": "hej tak gerne bor",
    "no": "hei takk gjerne bor",
    "fi": "kiitos hei asun",
    "hu": "szia köszönöm lakom",
    "ro": "mulțumesc salut locuiesc",
    "tr": "merhaba teşekkürler",
    "id": "terima kasih tinggal",
    "pl": "cześć dziękuję",
    "cs": "ahoj děkuji",
}


def _words_of() -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for language, words in (("en", ENGLISH_STOP), *STOP.items()):
        for word in words.union(_TELLING.get(language, "").split()):
            found.setdefault(word, []).append(language)
    return {word: tuple(languages) for word, languages in found.items()}


# In which languages each common word is common.
WORDS_OF = _words_of()


IRREGULAR = """
become became; begin began begun; bend bent; bite bit bitten; blow blew blown; break broke broken; bring brought;
build built; burn burnt; buy bought; catch caught; choose chose chosen; come came; deal dealt; dig dug; draw drew drawn;
dream dreamt; drink drank drunk; drive drove driven; eat ate eaten; fall fell fallen; feed fed; feel felt; fight fought;
find found; fly flew flown; forget forgot forgotten; forgive forgave forgiven; freeze froze frozen; get got gotten;
give gave given; go went gone; grow grew grown; hang hung; hear heard; hide hid hidden; hold held; keep kept;
know knew known; lead led; learn learnt; leave left; lend lent; lose lost; make made; mean meant; meet met; pay paid;
ride rode ridden; ring rang rung; rise rose risen; run ran; say said; see saw seen; sell sold; send sent; sew sewn;
shake shook shaken; shine shone; shoot shot; show shown; sing sang sung; sink sank sunk; sit sat; sleep slept;
speak spoke spoken; spend spent; steal stole stolen; stick stuck; strike struck; swear swore sworn; swim swam swum;
take took taken; teach taught; tear tore torn; tell told; think thought; throw threw thrown; understand understood;
wake woke woken; wear wore worn; win won; write wrote written;
child children; foot feet; tooth teeth; mouse mice; man men; woman women; person people; wife wives; life lives;
knife knives; leaf leaves; half halves; shelf shelves; goose geese
"""


# Beginnings of one name in several languages, without accents: of the land, who lives there, and what they speak.
EXONYMS = tuple(
    tuple(group.split())
    for group in (
        "germany german aleman deutsch allema duits niem tedesc germania",
        "spain spanis espan spanie spagn spaan hiszpa",
        "france french franc frankr franz frankri",
        "england english ingles engl anglais angleter ingle inghilt engel angiel",
        "britain british brit grossbrit granbret gran",
        "italy italia italie italie wlosk wloch ital",
        "portug",
        "nether dutch neerland niederl holland hollan holanda paes paises paesi pays",
        "switz swiss suiz schweiz suiss svizz zwits",
        "austria osterr autric austri oosten",
        "belg",
        "poland polish pol polen polon polsk",
        "sweden swedish suec schwed sued svez zweed szwe",
        "norway norweg norue norveg noru noorw",
        "denmark danish dinam danes dane danem danim deens dansk",
        "finland finn finl finlan finnl",
        "greece greek grec griech griek",
        "turkey turkish turq turk turch tureck",
        "russia russ rus rusk ross",
        "ukrain ucran",
        "united unido unis verein stati verenig usa eeuu estados etats",
        "americ amerik",
        "mexic mexik mexiq messic",
        "brazil brasil bresil",
        "japan japon giapp",
        "china chin kines cines",
        "korea coree corea",
        "india inde indi",
        "egypt egipt agypt egitt",
        "morocc marruec maroc marok maroc",
        "ireland irish irland irlan ierland",
        "scotl scott escoc schott ecoss scoz schot",
        "london londr lond",
        "lisbon lisboa lissab lisbonn",
        "porto oporto",
        "munich munchen monaco monac",
        "vienna wien viena vienne wenen",
        "geneva genf ginebra geneve ginevra genebra",
        "milan mailand milano",
        "rome roma rom",
        "venice venedig venez venis",
        "florence firenze floren",
        "naples napol neap",
        "seville sevil",
        "saragos zaragoz",
        "antwerp amber anvers",
        "brussels brusel brux bruss",
        "copenh kopenh kobenh",
        "warsaw warsch varsov varsav warsz",
        "prague prag praga",
        "moscow mosk mosc",
        "beijing pekin pequim",
        "athens athen atenas aten",
        "cologne koln coloni keulen",
        "nuremb nurnb",
        "hague haag haye haya",
        "newyork new nueva nova",
        "tokyo tokio",
        "andalu",
        "argentin",
        "catal katalon",
        "bayern bavar bavier bavior",
        "toscan toskan tuscan",
        "californ kalifor",
        "colomb kolumb",
        "sicil sizil",
        "canad kanad",
        "croat kroat",
        "czech tschech chec tchec cesk",
    )
)

# Words by which a sentence says no.  A script without spaces has none between words.
NEGATES = {
    language: expression(words if language in ("zh", "ja", "ko") else rf"(?<!\w)(?:{words})(?!\w)", re.IGNORECASE)
    for language, words in {
        "en": r"\w+n't|not|no|never|none|nobody|nothing|neither|cannot|without",
        "es": r"no|nunca|jamás|nadie|ning[uú]n\w*|sin|tampoco",
        "fr": r"ne|n'\w+|pas|jamais|sans|aucune?|rien",
        "de": r"nicht|kein\w*|nie|niemals|ohne|weder|nichts",
        "it": r"non|mai|senza|nessun\w*|niente",
        "pt": r"não|nunca|jamais|sem|nenhum\w*|ninguém|nem",
        "nl": r"niet|geen|nooit|zonder|niks|niets",
        "pl": r"nie|nigdy|bez|żad\w+",
        "ru": r"не|нет|никогда|без|ни",
        "zh": r"不(?![错錯过過仅僅但])|没|沒|无|無|未",
        "ja": r"ない|なかった|ません|なし",
        "ko": r"않|(?:^|\s)안 |못|없|아니",
    }.items()
}
NOT_NEGATED = expression(
    r"\b(?:can'?t wait|not (?:only|just)|no (?:problem|doubt|worries|idea|wonder)|why not|don't forget|no s[oó]lo|nicht nur"
    r"|pas seulement|não só|non solo)\b",
    re.IGNORECASE,
)
# Beginnings of words that refuse or end something without a word for no.
AVERSE = expression(
    r"\b(?:allerg|alerg|intoler|unvertr|dislik|disgust|disgus|hate|hass|odi[aoe]|odeio|détest|detest|avoid|evit|évit|vermeid|mijd|abstem|abstain|abstin"
    r"|stop|quit|gave up|given up|giving up|left|dej|aufgeh|aufgegeben|arrêt|cess|smett|smess|parou|parei|gestopt|refus|refuz|rechaz|rifiut|weiger|lehnt"
    r"|vegan|vegetar|végé|sober|teetotal|without|frei|free|libre|sans|senza|lost|lose|verlor|perd|pierd|miss|fehl|lack|falt|manc|manqu|former|ex-|used to)"
    r"|싫|그만|끊|알레르기|비건|채식|嫌|苦手|やめ|アレルギー|讨厌|討厭|过敏|過敏|戒|素食",
    re.IGNORECASE,
)
