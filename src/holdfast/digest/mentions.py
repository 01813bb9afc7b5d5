"""
Resolution of who is meant: the writer, or a person or animal of theirs.

A fact about a third person never becomes the user's.  It goes to that person's own subject when the
words say who it is: a name already known or just given ("my dog Luna"), a relation ("my wife"), or
a pronoun right after such a mention.  Others ("my boss", "Sarah") resolve to None.

`subject_names` collects the names of all subjects of a user: those that were declared, and those that facts state.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace

from ..scope import SELF
from ..store import SubjectRow
from ..text import dataclass, expression
from ..text.languages import ENGLISH_STOP
from ..types import Candidate, Fact
from .grammar import PatternLanguage, cues

_NAME_CHARS = expression(r"[^\w' -]", re.UNICODE)


@dataclass(frozen=True, slots=True)
class MentionedPerson:
    """A subject and its name in the sentence; ``relation`` is empty when it goes by name."""

    subject: str
    label: str = ""
    relation: str = ""

    @property
    def is_self(self) -> bool:
        """Whether this is the user."""
        return self.subject == SELF


ME = MentionedPerson(SELF)

# The pronouns of a living being in English; "her" before a noun is possessive.
_WITH_THEM = expression(
    r"\b(?P<word>him|her|(?P<whose>his))\b(?=(?P<noun> (?!(?:in|on|at|to|for|with|and|or|but|every|each|once|twice|three|when|while|before|after|out"
    r"|up|by|most|daily|all|from|around|about|off|back|down|home|there|here|now|again|the|a|an|my|our|two|if|because|until|since|as|into|along)\b)[a-z]))?",
    re.IGNORECASE,
)

# Relations of which one has one: their facts stand under the relation, whatever the name.
UNIQUE = frozenset({"wife", "husband", "partner", "girlfriend", "boyfriend", "fiancé", "fiancée", "mother", "father"})
_PART = expression(r"[,;]\s*(?:and |also )?(?P<part>[^,;:.!?()–—]+)")
_TAKES = expression(r"(?:on|taking) [\w'-]+(?: \d[\w.]* ?\w*)?(?: for (?:it|that|them))?\s*$", re.IGNORECASE)
_FROM = expression(r"(?:originally )?from [A-Z]|(?:mum|mom|dad|mother|father|parent) of \w+")


def is_said(name: str, text: str) -> bool:
    """Whether *text* holds *name*, in the singular or the plural."""
    return name.casefold().removesuffix("s") in text.casefold()


def subject_name(name: str) -> str:
    """Return the subject for *name*: case-folded, words joined by a hyphen."""
    return "-".join(_NAME_CHARS.sub("", name).casefold().split())[:100]


# Relations of which one has many: without a name nobody can tell which.
MANY = frozenset("friend colleague mentor neighbor cousin aunt uncle niece nephew roommate".split())
_POSSESSIVE = expression(r"(?<=\w)['’]s\Z")  # English alone writes it so
# Beginnings of ids of what is no living being, and of children: who is named there is not at once the subject.
LATEST = 3  # messages through which a pronoun is followed
_THINGS = frozenset("project team company product case trip ticket task job order deal account app repo work".split())
_CHILDREN = frozenset("child kid son daughter baby boy girl student pupil".split())
_YOUNG = frozenset("daughter son child baby grandson granddaughter".split())
_OWN_CHILDREN = frozenset("daughter son child baby".split())
_BEINGS = frozenset("patient client resident guest customer".split())
_BODILY = frozenset("allergy medication health food preference".split())
_OF_BEINGS = _BODILY | frozenset(("", *"identity dietary home work education pets".split()))
_OWN = expression(r"(?:my|our|the)\s+", re.IGNORECASE)
_NO_NAMES = ENGLISH_STOP | frozenset(
    "everyone everybody someone somebody nobody anyone people today tomorrow yesterday please thanks hello hi also "
    "maybe mom mum dad doctor vet doc breakfast dinner lunch food update note".split()
)


@dataclass(frozen=True, slots=True)
class SubjectNames:
    """
    The names of a user's subjects, as seen from one of them.

    ``ids`` has the subject of each name, ``labels`` the name to show of each subject that has one.  A name that two
    subjects have means neither: it stands for a third, which only the user's general conversations see.
    """

    ids: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    kin: Mapping[str, str] = field(default_factory=dict)
    declared: frozenset[str] = frozenset()

    def id_of(self, words: str, shown: Collection[str] = ()) -> str | None:
        """
        Return the subject that *words* name, ``None`` when they name none.

        Of two with one name, whoever wrote *words* saw the one that is *shown* under it; the other stands under a relation.
        """
        name = words.strip(" .,'\"").casefold()
        found = self.ids.get(name) or self.ids.get(without_owner(name))
        if found is None and " " in name:  # "my sister Meera"
            found = self.ids.get(name.rsplit(" ", 1)[1])
        return found[:-1] if found and found[-1] == "?" and found[:-1] in shown else found

    def label(self, subject: str) -> str:
        """Return the name to show of a subject."""
        return self.labels.get(subject, subject)


def subject_names(rows: Iterable[SubjectRow], facts: Iterable[Fact | Candidate], *, here: str = SELF) -> SubjectNames:
    """
    Collect the names of subjects.

    Args:
        rows: the subjects that have conversations or were declared.
        facts: what is believed, oldest first; introductions ("my sister Meera") and what says a name count.
        here: the subject of the conversation; its own names mean it, whoever else has them.
    """
    facts, known = list(facts), {row.subject: row for row in rows}
    if here != SELF:
        known.setdefault(here, SubjectRow(here))
    owners: dict[str, dict[str, None]] = {}
    labels: dict[str, str] = {}

    def own(subject: str, name: str) -> None:
        owners.setdefault(name.casefold(), {})[subject] = None
        owners.setdefault(without_owner(name).casefold(), {})[subject] = None

    for row in known.values():
        label = row.name or _stated_name(row.subject, facts) or ("" if is_code(row.subject) else _label(row.subject))
        for name in filter(None, (label, row.subject, *row.aliases)):
            own(row.subject, name)
        if label:
            labels[row.subject] = label
    for fact in facts:
        if fact.subject not in (SELF, *known) and (fact.category, fact.key) == ("identity", "name"):
            own(fact.subject, fact.value)
            labels.setdefault(fact.subject, fact.value)
    declared = {name: tuple(ids) for name, ids in owners.items()}
    kin = _introduce(facts, known, declared, own, labels)
    for subject in dict.fromkeys(fact.subject for fact in facts):
        if subject != SELF and subject not in known and subject not in owners:
            own(subject, subject)
    species: dict[str, dict[str, None]] = {}
    for fact in facts:
        if fact.subject != SELF and (fact.category, fact.key) == ("identity", "species"):
            species.setdefault(fact.value, {})[fact.subject] = None
    for word, animals in species.items():
        if len(animals) == 1:
            own(next(iter(animals)), word)
    ids: dict[str, str] = {}
    for name, found in owners.items():
        if len(found) == 1 or here in found:
            ids[name] = here if here in found else next(iter(found))
        elif name not in species:
            third = subject_name(name) or name
            ids[name] = third if third not in found else f"{third}?"
    return SubjectNames(ids, labels, kin, frozenset(known))


def without_owner(name: str) -> str:
    """Return ``dog`` for ``my dog``, ``patient`` for ``the patient``."""
    return _OWN.sub("", name)


def scope_kind(subject: str) -> str:
    """Return the word with which an id begins: ``patient`` of ``patient-7``."""
    return re.split(r"[\W\d_]", subject)[0]


def is_code(subject: str) -> bool:
    """Whether an id cannot be a name: it holds a digit."""
    return any(char.isdecimal() for char in subject)


def _introduce(
    facts: Iterable[Fact | Candidate],
    known: Mapping[str, SubjectRow],
    declared: Mapping[str, tuple[str, ...]],
    own: Callable[[str, str], None],
    labels: dict[str, str],
) -> dict[str, str]:
    """Give the people and animals that the user introduced their names; return the relation of each name."""
    kin: dict[str, str] = {}
    relations: dict[str, dict[str, None]] = {}
    for fact in facts:
        pet = (fact.category, fact.key) == ("pets", "pet_named")
        if fact.subject != SELF or not (pet or fact.category == "family") or not fact.value:
            continue
        if fact.key.startswith(("how_many", "has")):
            continue
        name, relation = fact.value.casefold(), "" if pet else fact.key
        holders = declared.get(name, ())
        subject = subject_name(relation if relation in UNIQUE else fact.value)
        if relation and (kin.get(name, relation) != relation or (holders and relation in MANY)):
            subject = f"{subject}-{relation}"
        elif len(holders) == 1:
            subject = holders[0]
        elif holders and relation:
            subject = f"{subject}-{relation}"
        kin.setdefault(name, relation)
        own(subject, fact.value)
        labels.setdefault(subject, fact.value)
        if relation and relation not in MANY:
            relations.setdefault(relation, {})[subject] = None
    for relation, meant in relations.items():
        if len(meant) == 1:
            own(next(iter(meant)), relation)
    return kin


def _stated_name(subject: str, facts: Iterable[Fact | Candidate]) -> str:
    """Return the name that facts about a subject state, or with which the first sentence of the rules about it begins."""
    for fact in facts:
        if fact.subject == subject and (fact.category, fact.key) == ("identity", "name"):
            return fact.value
    for fact in facts if is_code(subject) else ():
        first = fact.text.split(" ", 1)[0]
        if fact.subject != subject or not fact.source.startswith("rules ") or not is_name(first):
            continue
        quotes = (fact.quote,) if isinstance(fact, Candidate) else tuple(e.quote for e in fact.evidence)
        if any(re.search(rf"(?<!\w){re.escape(first)}(?!\w)", quote) for quote in quotes):
            return first
    return ""


def is_name(word: str) -> bool:
    """Whether a word may be a name: capitalized, and no common word."""
    return word[:1].isupper() and word.isalpha() and len(word) > 1 and word.casefold() not in _NO_NAMES


class Mentions:
    """The people and animals mentioned so far in a message, in order."""

    def __init__(self, language: PatternLanguage, subject: str, names: SubjectNames) -> None:
        table, self._labels, self._kin, self._declared = language.people, names.labels, names.kin, names.declared
        self._relations = language.lexicons.get("relation")
        self._pets = frozenset(str(table.get("pets", "")).split())
        self._vague = frozenset(str(table.get("vague", "")).split())
        self._me = frozenset(str(table.get("me", "")).split())
        self._she = frozenset(str(table.get("she", "")).split())
        self._he = frozenset(str(table.get("he", "")).split())
        self._it = frozenset(str(table.get("it", "")).split())
        self._pronouns = {name: str(table.get(name, "")).split(" ")[0] for name in ("she", "he", "it")}
        self._female = frozenset(str(table.get("female", "")).split())
        self._male = frozenset(str(table.get("male", "")).split())
        self._bare = frozenset(str(table.get("bare", "")).split())
        self._theirs, self._with_me = (cues(language).get(cue) for cue in ("theirs", "with_me"))
        self._description = cues(language).get("description")
        kinds = (language.lexicons.get(name) for name in ("relation", "species", "breed"))
        self._described = [one for one in kinds if one is not None]
        self._other, self._writer, self._carer = (cues(language).get(cue) for cue in ("other", "writer", "carer"))
        own = str(table.get("own", ""))
        self._edge = r"\w" if language.spaced else r"[^\W\u0250-\U0003ffff]"
        self._own = re.compile(rf"(?:{own})\s{'+' if language.spaced else '*'}", re.IGNORECASE) if own else None
        label = names.labels.get(subject) or (subject if is_code(subject) else _label(subject))
        self._scope = MentionedPerson(subject, label) if subject != SELF else None
        self._nameless = subject != SELF and subject not in names.labels and is_code(subject)
        aliases = {without_owner(name) for name, known in names.ids.items() if known == subject and subject != SELF}
        self._kinds = {scope_kind(subject)} | (aliases & (_THINGS | _CHILDREN | _BEINGS))
        self._names: dict[str, MentionedPerson] = {}
        self._by_relation: dict[str, MentionedPerson] = {}
        self.last: MentionedPerson | None = self._scope
        self.animal = ""  # the kind of an animal of theirs that was mentioned without a name
        self.relative = ""  # the relation of the relative without a name whom the sentence before states
        self.newcomer = 0  # 1: a sentence before names another, whose name may follow; 2: it is about another
        self.told = ""  # what was said before, of whom a sentence without a subject may go on
        self._left_out, self._someone = (cues(language).get(cue) for cue in ("left_out", "someone"))
        self._opens, self._topics, self._new = (
            cues(language).get(cue) for cue in ("opens_oneself", "topic", "newcomer")
        )
        self._job = language.lexicons.get("job_head")
        self._words = {
            name.removeprefix("says_"): str(words) for name, words in table.items() if name.startswith("says_")
        }
        self.meant: MentionedPerson | None = None  # whom a sentence without a subject goes on about, after such a one
        self._topic: MentionedPerson | None = self._scope or ME
        for name, known in names.ids.items():
            self._know(name, known)
        groups = "|".join(str(table.get("groups", "")).split())
        names_of = r"(?-i:[A-ZÀ-Þ][\w'-]+)"
        gap = r"(?:,? (?:at|in|on|from) \w+|,? (?:who|that) [^.:;!?]{1,60}?| this \w+)?"
        self._each = re.compile(rf"({names_of})(?=(?:'s| is| has|,? who|,? \(|, \d))")
        listed = rf"(?P<names>{names_of}(?:, {names_of})*,? (?:and|&) {names_of})"
        source = rf"\b(?:{groups}){gap}(?: are| is)?(?: called| named)?[,:]? {listed}"
        self._groups = re.compile(source, re.IGNORECASE) if groups else None
        self._heading = re.compile(rf"\b(?:{groups})[:,–—-]\s(?P<rest>[^.!?]+)", re.IGNORECASE) if groups else None

    def remember(self, earlier: Sequence[str], reply: str, said: str = "") -> None:
        """
        Read the user's messages before: who was introduced in a list, and whom the *reply* to the last one asks about.

        "She" means somebody of an earlier message where the reply says so, too, or where *said*, the message at hand,
        begins with it and the message before speaks of one being alone.
        """
        for text in earlier:
            self._introduce_list(text)
        if earlier and self._scope is None:
            texts, pronouns = list(earlier[-LATEST:]), self._begins_with_pronoun(said)
            while len(texts) > 1 and pronouns and self._speaks_of_no_other(texts[-1], pronouns):
                texts.pop()  # "He carries two pens" goes on about the same one, "thanks" about nobody
            self.last = self._goes_on_about(texts[-1], reply, said)
        asked = {word.strip(".,!?").casefold() for word in reply.split()}
        if self._scope is not None or not asked & (self._she | self._he):
            return
        meant: MentionedPerson | None = None
        for text in earlier[-LATEST:]:
            self.last = None
            self.mention(re.split(r"(?<=[.!?])\s+", text.strip())[-1])
            goes_on = {word.strip(".,!?'’s").casefold() for word in text.split()} & (self._she | self._he)
            meant = self.last or (meant if goes_on else None)
        self.last = meant

    def _goes_on_about(self, before: str, reply: str, said: str) -> MentionedPerson | None:
        """Return the only one of whom the message before speaks, where the next one begins with a pronoun."""
        pronouns = self._begins_with_pronoun(said)
        if pronouns is None or self._relations is None:
            return None
        kin = self._kin_in(before)
        if (pronouns is self._she and kin & self._male) or (pronouns is self._he and kin & self._female):
            return None
        return None if _CAPITALS.search(reply) else self._only_one(before, reply)

    def _speaks_of_no_other(self, text: str, pronouns: frozenset[str]) -> bool:
        """Whether a text names no other person whom the *pronouns* of the next one could mean."""
        plain = _THING_NAMED.sub("", _IS_A.sub("", text))
        if self._kin_in(plain) or _ANOTHER.search(plain) or _CAPITALS.search(plain):
            return False
        same = self._begins_with_pronoun(text) is pronouns
        others = {word.strip(".,!?'’s") for word in text.casefold().split()} & (self._she ^ self._he) - pronouns
        return same or not (others or _NAMED_FIRST.search(text) or self.turns_to(text) or [*self._beings(plain)])

    def _begins_with_pronoun(self, text: str) -> frozenset[str] | None:
        """Return the pronouns of which a text begins with one: those for her, or for him."""
        first = re.match(
            r"\W*(?:(?:and|also|oh|btw|yes|yeah|no|so|well|ok|okay)\b\W*)*([^\W\d_]+)", text[:100].casefold()
        )
        return next((one for one in (self._she, self._he) if first and first[1] in one), None)

    def _kin_in(self, text: str) -> set[str]:
        found = self._relations.one.finditer(text) if self._relations else ()
        return {word for word in (self.relation(one[0]) for one in found) if word}

    def _only_one(self, before: str, reply: str = "") -> MentionedPerson | None:
        """Return the only one whom a text names or speaks of, and who is spoken of last from here on."""
        people = {self._names[name].subject for name in self._names if _is_word(name, f"{before} {reply}".casefold())}
        if len(self._kin_in(before)) > 1 or len(people) > 1 or _ANOTHER.search(_IS_A.sub("", before)):
            return None
        self.last = None
        self.mention(before)
        return self.last

    def only_one_of(self, sentence: str) -> MentionedPerson | None:
        """Return the only one of whom a sentence without pronouns speaks: 母は札幌に住んでいます."""
        kin = list(self._relations.one.finditer(sentence)) if self._relations else []
        return self.whom(kin[0][0]) if len(kin) == 1 else None

    def speaks_of_another(self, sentence: str) -> int:
        """
        Return 2 where *sentence* is about another, of whom the next one may go on without a subject, else 0.

        "My son Tim is ill. On amoxicillin": `meant` is that one where nobody else is spoken of, and not who treats them.
        """
        if self._scope is not None or self._other is None or self._writer is None or self._carer is None:
            return 0
        text = self._carer.sub(lambda one: " " * len(one[0]), sentence)
        starts = set(self._beings(text))
        writers = (one for one in self._writer.finditer(text) if one[0].casefold() not in ("ill", "well", "were"))
        last = max((one.start() for one in writers if one.start() not in starts), default=-1)
        others = [one.start() for one in self._other.finditer(text) if not _NOBODY.match(one[0])]
        if max((*others, *starts), default=-1) <= last:
            return 0
        pronoun = not self._kin_in(text) and not any(_is_word(name, text.casefold()) for name in self._names)
        kept, before = self.last, self.meant if pronoun and self.newcomer > 1 else None
        self.meant = before or (None if pronoun else self._only_one(sentence))
        self.last = kept
        return 2

    def turns_to(self, text: str) -> int:
        """Return 2 where *text* is about another, of whom the next sentence may go on without a subject, 1 where it names one."""
        if self._topics is not None and self._topics.search(text):
            return 0 if self.topic_of(text, self._topics) is ME else 2
        if self._new is None or not self._new.search(text):
            return self.speaks_of_another(text)
        self.meant = self.only_one_of(text)
        return 2 if self._other is not None and self._other.search(text) else 1

    def parts_of_oneself(self, text: str) -> Iterator[tuple[int, int, str]]:
        """
        Yield the parts of a sentence about oneself that go on without a subject, and what each leaves out.

        "I'm Marcus, studying economics in Leeds, from Cork": "I'm " twice.  A trade alone counts behind a name or an age.
        """
        opening = self._opens.match(text) if self._opens and self.of_user and not self.newcomer else None
        if opening is None or "?" in text or (self._someone and self._someone.search(opening[0])):
            return
        named = any(opening.groupdict().values())
        for part in _PART.finditer(text, opening.end()):
            start, words = part.start("part"), part["part"]
            left_out = self._left_out.match(words) if self._left_out else None
            trade = self._job is not None and 0 < len(words.split()) < 4 and self._job.one.fullmatch(words.split()[-1])
            if left_out is not None and left_out.lastgroup is not None:
                start += left_out.start(left_out.lastgroup)
                yield start, part.end("part"), self._words[left_out.lastgroup]
            elif _TAKES.match(words) or (named and (trade or _FROM.match(words))):
                yield start, part.end("part"), "I'm "
            elif self._someone is None or self._someone.search(words):
                return

    def _beings(self, sentence: str) -> Iterator[int]:
        """Find where animals of the user's are spoken of, and people with whom a clause begins: "mum had a fall"."""
        first = _CLAUSE_BEGINS.match(sentence)
        if first is not None and {first[1].casefold(), first[1].casefold().removesuffix("'s")} & self._bare:
            yield first.start(1)
        for own in self._own.finditer(sentence) if self._own else ():
            kin = self._kin_in(" ".join(sentence[own.end() :].split()[:3]))
            if kin & self._pets or (kin and _CLAUSE_ENDS.search(sentence[: own.start()])):
                yield own.start()
        for the in re.finditer(r"(?i)\bthe (\w+)", sentence):
            if self.relation(the[1]) and _CLAUSE_ENDS.search(sentence[: the.start()]):
                yield the.start()

    def undescribed(self, sentence: str) -> str:
        """Return a sentence with blanks for what describes a relative or an animal: "my 5 yr old son Leo" is "my son Leo"."""
        for found in self._description.finditer(sentence) if self._description else ():
            start, words = found.start("gone"), found["gone"]
            ends = [start + one.end() for one in re.finditer(r"[\s,]+", words)]
            end = next(
                (at for at in reversed(ends) if any(one.one.match(sentence, at) for one in self._described)), start
            )
            sentence = f"{sentence[:start]}{' ' * (end - start)}{sentence[end:]}"
        return sentence

    def _introduce_list(self, text: str) -> None:
        """Know the names of a list: "two friends, Chidi and Freya"."""
        found = [one["names"] for one in self._groups.finditer(text)] if self._groups else []
        listed = [name for names in found for name in re.split(r",? and |,? & |, ", names)]
        for heading in self._heading.finditer(text) if self._heading else ():
            listed += self._each.findall(heading["rest"])
        for name in listed:
            if is_name(name) and name.casefold() not in self._names:
                self._names[name.casefold()] = MentionedPerson(subject_name(name), name)

    def _know(self, name: str, subject: str) -> None:
        relation = self.relation(name)
        label = self._labels.get(subject) or (_label(name) if name.islower() else name)
        person = MentionedPerson(subject, label, relation or "")
        if relation:
            self._by_relation[relation] = (
                person
                if subject == subject_name(relation)
                else MentionedPerson(subject, self._labels.get(subject) or _label(subject))
            )
        self._names[name.casefold()] = person

    @property
    def of_user(self) -> bool:
        """Whether the conversation is about the user."""
        return self._scope is None

    def left_out(self, text: str) -> tuple[int, str] | None:
        """
        Return where a sentence of the user begins that leaves out its subject, and what it leaves out: "I'm " of "based in Oslo".

        None after words about somebody else, unless the verb can only be the writer's: "have two cats".
        """
        asks = text.rstrip().endswith(("?", "？"))
        found = self._left_out.match(text) if self._left_out and self.of_user and not asks else None
        if found is None or found.lastgroup is None:
            return None
        if self.newcomer > 1 and not text.lstrip().casefold().startswith(("have ", "am ", "i ")):
            return None  # "my dad retired. Got a dog now"
        if found.lastgroup != "i" and self._someone is not None and self._someone.search(self.told):
            return None
        return found.start(found.lastgroup), self._words[found.lastgroup]

    @property
    def names(self) -> frozenset[str]:
        """The names that are known so far, case-folded."""
        return frozenset(self._names)

    def relation(self, words: str) -> str | None:
        """Return the canonical relation of *words*: ``mum`` → ``mother``."""
        return self._relations.lookup(words) if self._relations else None

    def knows(self, relation: str) -> bool:
        """Whether it is known who "my <relation>" is, or the conversation is about them."""
        return self._scope is not None or self.relation(relation) in self._by_relation

    def name(self, name: str, relation: str) -> MentionedPerson:
        """Introduce someone by name; from here on the name and the relation mean them."""
        canonical = self.relation(relation) or relation
        known, before = self._names.get(name.casefold()), self._kin.get(name.casefold(), canonical)
        if self._nameless and self._scope and self._is_of(canonical):
            person = self._call_scope(name)
        elif canonical in UNIQUE:
            person = self._person(subject_name(canonical), name, canonical)
        elif (before != canonical and canonical not in self._pets) or (
            canonical in MANY and known is not None and known.subject in self._declared
        ):
            person = self._person(f"{subject_name(name)}-{canonical}", name, "")
        elif known is not None and not known.relation:
            person = MentionedPerson(known.subject, name)
        else:
            person = self._person(subject_name(name), name, "")
        self._names[name.casefold()] = person
        self._by_relation[canonical] = person
        self.last = self._topic = person
        return person

    def _person(self, subject: str, label: str, relation: str) -> MentionedPerson:
        """Return the person, in the spelling of the conversation's subject when it is that one."""
        if self._scope and subject_name(self._scope.subject) == subject:
            subject = self._scope.subject
        return MentionedPerson(subject, label, "" if label else relation)

    def _is_of(self, relation: str) -> bool:
        """Whether the conversation's subject, of which no name is known, may be a dog, a daughter, …"""
        if relation in self._pets:
            return self._kinds.isdisjoint(_THINGS | _CHILDREN | _BEINGS)
        return relation in _YOUNG and not self._kinds.isdisjoint(_CHILDREN)

    def _call_scope(self, name: str) -> MentionedPerson:
        """Give the conversation's subject the name that the user calls it by."""
        assert self._scope is not None
        self._nameless, self._scope = False, MentionedPerson(self._scope.subject, name)
        self._names[name.casefold()] = self.last = self._scope
        return self._scope

    def whom(self, words: str) -> MentionedPerson | None:
        """Resolve *words* (a pronoun, "my wife", "my dog Luna", "Luna", "Luna's"); None when unknown."""
        given = _POSSESSIVE.sub("", words.strip(" ,"))
        words = given.casefold()
        if not words or words in self._me:
            return ME
        if words in self._she or words in self._he or words in self._it:
            return self._by_pronoun(words)
        if words in self._names:
            return self._names[words]
        if "の" in words and words.rsplit("の", 1)[1] in self._names:
            return self._names[words.rsplit("の", 1)[1]]  # 友達の健太
        if words.startswith("the "):
            return self._by_kind(words[4:])
        if words in self._kinds and given[0].isupper():
            return self._scope  # "Patient sleeps badly"
        if words in self._bare and self._scope is None:
            return self._by_own(words)  # "dad retired": one's own
        own = self._own.match(words) if self._own else None
        if own and self.is_anothers(words):
            return None
        if own is None and self._nameless and is_name(given) and self.relation(words) is None:
            return self._call_scope(given) if self._kinds.isdisjoint(_THINGS) else None
        return self._by_own(words[own.end() :]) if own else None

    @property
    def last_is_relative(self) -> bool:
        """Whether a relative without a name was spoken of last, and no animal."""
        return self.last is not None and self.last.relation not in ("", *self._pets)

    @property
    def last_is_child(self) -> bool:
        """Whether a child of the user's was spoken of last, whose sister is the user's child, too."""
        return self.last is not None and not self._kin_of(self.last).isdisjoint(_OWN_CHILDREN)

    def is_anothers(self, words: str) -> bool:
        """Whether *words* begin with another person's relative or animal: "my neighbors dog", "my late husband"."""
        return self._theirs is not None and self._theirs.match(words) is not None

    def is_with_me(self, before: str) -> bool:
        """Whether the words *before* a mention put the user beside it: "me and my wife"."""
        return self._with_me is not None and self._with_me.search(before) is not None

    def _by_kind(self, kind: str) -> MentionedPerson | None:
        """Resolve "the dog", "the patient", "the project": the conversation's subject, or the only one of that kind."""
        relation = self.relation(kind) or kind
        if self._scope and (kind in self._kinds or relation in self._pets or self._is_of(relation)):
            return self._scope if relation not in self._pets or self._kinds.isdisjoint(_THINGS) else None
        return self._by_relation.get(relation)

    def of_work(self) -> MentionedPerson | None:
        """Return the conversation's subject where that is a project or a team: what "we" use there belongs to it."""
        return None if self._kinds.isdisjoint(_THINGS) else self._scope

    def patient(self) -> MentionedPerson | None:
        """Return the conversation's subject where it is a living being, and no other was spoken of last."""
        here = self._scope
        known = here is not None and self.last is not None and self.last.subject == here.subject
        return here if known and self._kinds.isdisjoint(_THINGS) else None

    def beside_patient(self, candidate: Candidate) -> Candidate:
        """Return what the user does with the living subject of the conversation as that one's: "I walk her every morning"."""
        here, told = self.patient(), f"{candidate.value} {candidate.text}"
        feels = candidate.text.startswith(("Is ", "Was ", "Feels ", "Has been "))  # "I'm scared of giving her pills"
        done = candidate.subject == SELF and candidate.op == "assert" and not feels
        if here is None or not done or _WITH_THEM.search(told) is None:
            return candidate

        def named(found: re.Match[str]) -> str:
            whose = found["whose"] or (found["word"].casefold() == "her" and found["noun"])
            return f"{here.label}'s" if whose else here.label

        value, text = (
            _WITH_THEM.sub(named if here.label != here.subject else r"\g<0>", told)
            for told in (candidate.value, candidate.text)
        )
        return replace(candidate, subject=here.subject, value=value, text=text)

    def without_doubles(self, found: list[Candidate]) -> list[Candidate]:
        """Drop what one sentence says of the user and of the patient of the conversation at one address: "we cut the aspirin to 50 mg"."""
        here = self.patient()
        theirs = {(one.category, one.key) for one in found if here is not None and one.subject == here.subject}
        return [one for one in found if one.subject != SELF or (one.category, one.key) not in theirs]

    def implied(self, words: str, category: str = "") -> MentionedPerson | None:
        """
        Resolve the subject that *words* leave out: "allergic to chicken".

        That is the user, unless the conversation is about another and *words* name the user nowhere ("my", "me").  There,
        what a pet has, too (*category*), is the subject's; a job or a name is the user's in the record of a pet, and
        nobody's in that of a person, who may be meant as well.
        """
        if not self._me.isdisjoint(re.findall(r"[^\W\d_]+(?:['’]\w+)?", words.casefold())):
            return ME
        if self._scope is None:
            theirs = self.newcomer > 1 and category in _OF_BEINGS and not (self._writer and self._writer.search(words))
            return self.meant if theirs else ME
        here = self._scope if self.last is not None and self.last.subject == self._scope.subject else None
        if category == "family":
            return here if self.of_person else None  # "daughter Mia feeds her" in a dog's record
        if not category or category in _BODILY:
            return here
        return None if self.of_person else ME

    def begins_with(self, sentence: str) -> MentionedPerson | None:
        """Return the person with whom *sentence* begins: "my daughter Mia", "Mia"; None where it begins otherwise."""
        start = len(sentence) - len(sentence.lstrip(" \t*-–•"))
        own = self._own.match(sentence, start) if self._own else None
        relation = self._relations.one.match(sentence, own.end()) if own and self._relations else None
        if own and relation is None:
            return None
        end = relation.end() if relation else start
        name = re.compile(r"\s?([^\W\d_][\w-]*)").match(sentence, end)
        known = self._names.get(name[1].casefold()) if name else None
        if known is not None and self.relation(name[1] if name else "") is None:
            return known
        return self.whom(sentence[start:end]) if relation else None

    def pronoun_of(self, person: MentionedPerson) -> str:
        """Return the pronoun that means *person* once they were spoken of last."""
        self.last = person
        return self._pronouns["he" if self._kin_of(person) & self._male else "she"]

    @property
    def of_person(self) -> bool:
        """Whether the conversation is about a child, a patient, or another person."""
        return not self._kinds.isdisjoint(_CHILDREN | _BEINGS)

    @property
    def pronoun(self) -> str:
        """The pronoun of the conversation's subject: "he", "she"; for a thing "it"; empty where it is the user."""
        if self._scope is None:
            return ""
        if not self._kinds.isdisjoint(_THINGS):
            return self._pronouns["it"]
        return self._pronouns["he" if self._kin_of(self._scope) & self._male else "she"]

    def _by_own(self, words: str) -> MentionedPerson | None:
        """Resolve ``wife``, ``little dog luna``, ``dog``: by the name, else by the relation."""
        parts = words.replace(",", " ").split()
        for size in (2, 1):
            name = " ".join(parts[-size:])
            if len(parts) > size and name in self._names and self.relation(name) is None:
                return self._names[name]
        relation = self.relation(" ".join(parts)) or self.relation(parts[-1]) if parts else None
        if relation is None:
            return None
        if relation in self._by_relation:
            return self._by_relation[relation]
        if relation in self._vague:
            return None  # one has many friends: without a name nobody knows which
        if self._scope and self._scope.subject != relation and (relation in self._pets or self._is_of(relation)):
            return self._scope
        return self._person(subject_name(relation), "", relation)

    def _by_pronoun(self, word: str) -> MentionedPerson | None:
        person = self.last
        if person is None or person.is_self:
            return None
        if self._scope and person.subject != self._scope.subject:
            return None  # of the two nobody can tell which
        kin = self._kin_of(person)
        if (word in self._she and kin & self._male) or (word in self._he and kin & self._female):
            return None
        return person

    def _kin_of(self, person: MentionedPerson) -> set[str]:
        """Return by what relations a person is known: "son" of Leo."""
        known = {relation for relation, one in self._by_relation.items() if one.subject == person.subject}
        return known | {person.relation or person.subject, self._kin.get(person.label.casefold(), "")}

    def topic(self, words: str, cue: re.Pattern[str] | None) -> MentionedPerson | None:
        """
        Resolve the subject of a clause that leaves it out, as some languages may.

        That is the last topic that *words*, the sentence up to there, name (*cue* finds them); else the
        one of the sentences before, at first the user.  None when it cannot be named.
        """
        for found in cue.finditer(words) if cue else ():
            self._topic = self.whom(found["who"])
        return self._topic

    def topic_of(self, words: str, cue: re.Pattern[str]) -> MentionedPerson | None:
        """Return the last topic that *words* name, without keeping it."""
        kept, found = self._topic, self.topic(words, cue)
        self._topic = kept
        return found

    def up_to_another(self, words: str) -> str:
        """Return the clauses before one that begins with a relative of the user's: ", my son Hugo is 5"."""
        own = (
            next((one for one in self._own.finditer(words) if words[: one.start()].rstrip().endswith((",", ";"))), None)
            if self._own
            else None
        )
        return words[: own.start()].rstrip(" ,;") if own else words

    def mention(self, sentence: str) -> None:
        """Remember the subjects of *sentence* for the pronouns of the next one."""
        found: list[tuple[int, MentionedPerson]] = []
        self._introduce_list(sentence)
        lowered = sentence.casefold()
        for name, person in self._names.items():
            place = re.search(rf"(?<!{self._edge}){re.escape(name)}(?!{self._edge})", lowered)
            if place:
                found.append((place.start(), person))
        if self._own and self._relations:
            for own in self._own.finditer(sentence):
                relation = self._relations.one.match(sentence, own.end())
                meant = self.whom(sentence[own.start() : relation.end()]) if relation else None
                if meant:
                    found.append((own.start(), meant))
        first = _CLAUSE_BEGINS.match(sentence)
        bare = self.whom(first[1]) if first and first[1].casefold().removesuffix("'s") in self._bare else None
        found += [(first.start(1), bare)] if first and bare else []
        if found:
            self.last = max(found, key=lambda item: item[0])[1]
            if self._names_anothers(sentence):
                self.last = None  # "Ana lives with her dog Rex. He's 5": he is not Ana

    def _names_anothers(self, sentence: str) -> bool:
        """Whether a sentence names the animal or relative of one who is spoken of: "her dog Rex"."""
        return self._relations is not None and any(
            (relation := self._relations.one.match(sentence, owner.end())) is not None
            and (name := _NAME_NEXT.match(sentence, relation.end())) is not None
            and name[1].casefold() not in self._names
            for owner in _THEIR.finditer(sentence)
        )


_THEIR = expression(
    r"\b(?:his|her|their|ihre?[mnrs]?|seine?[mnrs]?|sus?|son|sa|ses|il suo|la sua|seu|sua) ", re.IGNORECASE
)
_NAME_NEXT = expression(r",? (?:named |called |namens )?([A-ZÀ-Þ][\w-]+)")
_CLAUSE_BEGINS = expression(
    r"\W*(?:(?:so|and|but|well|oh|ok|btw|also|poor|hi|hey|new|another|one) )*([\w']+)", re.IGNORECASE
)
_CLAUSE_ENDS = expression(
    r"(?:\A\W*|[,;:–—-]\s*|\b(?:and|but|so|because|that|as|btw|also|poor|hi|hey)\s)\Z", re.IGNORECASE
)
_NOBODY = expression(r"(?:they|you|who|it)\b", re.IGNORECASE)
# Somebody without a name beside the one who has one: "she" may be either.
_ANOTHER = expression(
    r"\b(?:another|others?|someone|somebody|andere[rnsm]?|otr[oa]s?|autres?|altr[oiae]|outr[oa]s?|people|wom[ae]n|m[ae]n|girls?|boys?|lady|guys?|friends?|"
    r"flames?|ex|strangers?|guests?|patients?|students?|teachers?|doctors?|vets?|boss|nurse|neighbou?rs?|colleagues?|coach|trainer|breeder|owner|\w+sitter|walker|kids?|person|therapist|dentist|client|"
    r"lehrer\w*|arzt|ärztin|chef\w*|freund\w*|nachbar\w*|frau|mann|profesor\w*|médic[oa]|veterinari[oa]|amig[oa]s?|vecin[oa]|jef[ea]|mujer|hombre|"
    r"médecin|vétérinaire|amie?s?|voisine?|femme|homme|medico|amic[oa]|donna|uomo|vizinh[oa]|mulher|homem)\b",
    re.IGNORECASE,
)
_IS_A = expression(r"(?:\bis|['’]s|\bworks as) an? [\w-]+", re.IGNORECASE)  # what the one spoken of is
_THING_NAMED = expression(r"\b(?:an?|the|his|her|its) [A-Z][\w-]*")
_NAMED_FIRST = expression(
    r"(?:^|[.!?]\s+)(?-i:(?!(?:I|We|W\w+|How|Can|Could|D\w+|Is|Are|Thank\w*|Ok\w*|Ye\w+|No|So|And|But|T\w+|A\w*|Please|Just|My|Our|It|Good|Great)\b)[A-Z][a-z]+ [a-z])"
)
_CAPITALS = expression(r"(?<=[a-z,] )[A-Z][a-z]+")  # a name that a reply brings in


def _is_word(name: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


def _label(subject: str) -> str:
    return subject[:1].upper() + subject[1:]
