"""
Resolution of who is meant: the writer, or a person or animal of theirs.

A fact about a third person never becomes the user's.  It goes to that person's own subject when the
words say who it is: a name already known or just given ("my dog Luna"), a relation ("my wife"), or
a pronoun right after such a mention.  Others ("my boss", "Sarah") resolve to None.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ..scope import SELF
from .grammar import PatternLanguage

_NAME_CHARS = re.compile(r"[^\w' -]", re.UNICODE)


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

# Relations of which one has one: their facts stand under the relation, whatever the name.
UNIQUE = frozenset({"wife", "husband", "partner", "girlfriend", "boyfriend", "fiancé", "fiancée", "mother", "father"})


def subject_name(name: str) -> str:
    """Return the subject for *name*: case-folded, words joined by a hyphen."""
    return "-".join(_NAME_CHARS.sub("", name).casefold().split())[:100]


class Mentions:
    """The people and animals mentioned so far in a message, in order."""

    def __init__(self, language: PatternLanguage, subject: str, others: Mapping[str, str]) -> None:
        table = language.people
        self._relations = language.lexicons.get("relation")
        self._pets = frozenset(str(table.get("pets", "")).split())
        self._vague = frozenset(str(table.get("vague", "")).split())
        self._me = frozenset(str(table.get("me", "")).split())
        self._she = frozenset(str(table.get("she", "")).split())
        self._he = frozenset(str(table.get("he", "")).split())
        self._it = frozenset(str(table.get("it", "")).split())
        self._female = frozenset(str(table.get("female", "")).split())
        self._male = frozenset(str(table.get("male", "")).split())
        own = str(table.get("own", ""))
        self._edge = r"\w" if language.spaced else r"[^\W\u0250-\U0003ffff]"
        self._own = re.compile(rf"(?:{own})\s{'+' if language.spaced else '*'}", re.IGNORECASE) if own else None
        self._scope = MentionedPerson(subject, subject[:1].upper() + subject[1:]) if subject != SELF else None
        self._names: dict[str, MentionedPerson] = {}
        self._by_relation: dict[str, MentionedPerson] = {}
        self.last: MentionedPerson | None = self._scope
        self.animal = ""  # the kind of an animal of theirs that was mentioned without a name
        self._topic: MentionedPerson | None = self._scope or ME
        for name, known in others.items():
            self._know(name, known)

    def _know(self, name: str, subject: str) -> None:
        relation = self.relation(name)
        label = _label(name) if name.islower() else name
        person = MentionedPerson(subject, label, relation or "")
        if relation:
            self._by_relation[relation] = (
                person if subject == subject_name(relation) else MentionedPerson(subject, _label(subject))
            )
        self._names[name.casefold()] = person

    def relation(self, words: str) -> str | None:
        """Return the canonical relation of *words*: ``mum`` → ``mother``."""
        return self._relations.lookup(words) if self._relations else None

    def name(self, name: str, relation: str) -> MentionedPerson:
        """Introduce someone by name; from here on the name and the relation mean them."""
        canonical = self.relation(relation) or relation
        if canonical in UNIQUE:
            person = self._person(subject_name(canonical), name, canonical)
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

    def whom(self, words: str) -> MentionedPerson | None:
        """Resolve *words* (a pronoun, "my wife", "my dog Luna", "Luna"); None when unknown."""
        words = words.strip(" ,").casefold()
        if not words or words in self._me:
            return ME
        if words in self._she or words in self._he or words in self._it:
            return self._by_pronoun(words)
        if words in self._names:
            return self._names[words]
        own = self._own.match(words) if self._own else None
        return self._by_own(words[own.end() :]) if own else None

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
        if self._scope and relation in self._pets and self._scope.subject != relation:
            return self._scope
        return self._person(subject_name(relation), "", relation)

    def _by_pronoun(self, word: str) -> MentionedPerson | None:
        person = self.last
        if person is None or person.is_self:
            return None
        relation = person.relation or person.subject
        if (word in self._she and relation in self._male) or (word in self._he and relation in self._female):
            return None
        return person

    def topic(self, words: str, cue: re.Pattern[str] | None) -> MentionedPerson | None:
        """
        Resolve the subject of a clause that leaves it out, as some languages may.

        That is the last topic that *words*, the sentence up to there, name (*cue* finds them); else the
        one of the sentences before, at first the user.  None when it cannot be named.
        """
        for found in cue.finditer(words) if cue else ():
            self._topic = self.whom(found["who"])
        return self._topic

    def mention(self, sentence: str) -> None:
        """Remember the subjects of *sentence* for the pronouns of the next one."""
        found: list[tuple[int, MentionedPerson]] = []
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
        if found:
            self.last = max(found, key=lambda item: item[0])[1]


def _label(subject: str) -> str:
    return subject[:1].upper() + subject[1:]
