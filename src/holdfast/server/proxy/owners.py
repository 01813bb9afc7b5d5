"""
References of OpenAI's responses to what the model's server keeps, and whose they are.

The model's server does not know users: whoever names the id of a response, a conversation, or an item has the model read
it.  So a user's own key may name only what is known as that user's, and a program's key nothing that is known as
another's.  Ids are kept as digests.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from ...memory import Memory
from ...text import dataclass
from ..gate import Grant
from .chat import CHAINS, ITEMS, LONGEST, RESPONSE, WITHIN, digest_of_name
from .request import MemoryOptions
from .upstream import UpstreamServer

MOST_OWNED = 50_000

Owner = tuple[str, str]
"""The org and the user."""


@dataclass(frozen=True, slots=True)
class References:
    """Digests of the ids to which a request refers: ``within`` those of conversations, ``kept`` those of all else."""

    within: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    readable: bool = True


def references(body: bytes) -> References:
    """
    Return the ids to which a request for a response refers; unless it is ``readable``, they are not known.

    A field counts however often and in whatever case it is written, as servers differ in which of them they take.
    """
    try:
        given = json.loads(body, object_pairs_hook=_Fields)
    except (ValueError, RecursionError):
        return References(readable=False)
    if not isinstance(given, _Fields):
        return References(readable=False)
    within = [name for value in given.all("conversation") for name in _ids(value)]
    kept = [name for value in given.all("previous_response_id") for name in _ids(value)]
    items = [item for listed in given.all("input") if isinstance(listed, list) for item in listed]
    kept += [name for item in items if isinstance(item, _Fields) and _is_reference(item) for name in _ids(item)]
    return References(tuple(map(digest_of_name, within)), tuple(map(digest_of_name, kept)))


class _Fields(list[tuple[str, Any]]):
    """The fields of a JSON object, in the order in which they are written."""

    def all(self, name: str) -> list[Any]:
        return [value for own, value in self if own.lower() == name]


def _ids(value: object) -> list[str]:
    """Return the id that a field gives, as itself or within an object."""
    values = value.all("id") if isinstance(value, _Fields) else [value]
    return [one for one in values if isinstance(one, str) and one]


def _is_reference(item: _Fields) -> bool:
    """Whether the model's server looks an item up by its id: one that shows nothing but the id, or thoughts in plain form."""
    kinds = item.all("type")
    if "item_reference" in kinds or ("reasoning" in kinds and not any(item.all("encrypted_content"))):
        return True
    return not any(kinds) and not item.all("role")


class Owners:
    """Whose the responses, conversations, and items are that passed here."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._known: dict[
            tuple[str, str], frozenset[Owner]
        ] = {}  # by server and digest; the latest ones of this process

    def note(self, upstream: UpstreamServer, owner: Owner, digests: Iterable[str]) -> None:
        """Note that *digests* are of what the model's server keeps for *owner*."""
        if _is_own(upstream):
            return
        for digest in digests:
            place = (_server(upstream), digest)
            self._known[place] = self._known.pop(place, frozenset()) | {owner}
        while len(self._known) > MOST_OWNED:
            self._known.pop(next(iter(self._known)), None)

    def refuses(self, upstream: UpstreamServer, grant: Grant, asked: MemoryOptions, given: References) -> bool:
        """
        Whether a request may not refer to what it refers to; it may read the store.

        Raises:
            HoldfastError: the store cannot say whose that is.
        """
        of_user = grant.key is not None and grant.key.role == "user"
        if _is_own(upstream) or not (of_user or (asked.user is not None and (asked.store or asked.recall))):
            return False
        owner, named = (grant.org, asked.user or ""), {*given.within, *given.kept}
        known = {digest: self._known.get((_server(upstream), digest), frozenset()) for digest in named}
        doubtful = {digest for digest, owners in known.items() if owner not in owners and (owners or of_user)}
        if doubtful and doubtful <= self._stored(grant, asked, doubtful):
            self.note(upstream, owner, doubtful)
            return False
        return bool(doubtful) or (of_user and not given.readable)

    def _stored(self, grant: Grant, asked: MemoryOptions, wanted: set[str]) -> set[str]:
        """Return those of *wanted* that the user's newest conversations hold."""
        whose: Mapping[str, Any] = {"org": grant.org, "bot": grant.bot, "subject": grant.subject or None}
        assert asked.user is not None
        rows = self._memory.user(asked.user, **whose).overview(limit=CHAINS)
        names = dict.fromkeys(
            [*([asked.conversation] if asked.conversation else []), *(row.conversation for row in rows)]
        )
        found: set[str] = set()
        for name in names:
            chat = self._memory.conversation(name, user=asked.user, **whose)
            for message in chat.load(last=LONGEST, abandoned=True):
                marks = (message.meta.get(RESPONSE), message.meta.get(WITHIN), *message.meta.get(ITEMS, ()))
                found.update(mark for mark in marks if mark in wanted)
            if found == wanted:
                break
        return found


def _is_own(upstream: UpstreamServer) -> bool:
    """Whether the model's server is asked with the user's own key: no other user's responses are there."""
    return upstream.own is not None and upstream.own.whose == "user"


def _server(upstream: UpstreamServer) -> str:
    """Name a model's server with its account: ids of two of them have nothing to do with each other."""
    return f"{upstream.base_url} {upstream.own.id if upstream.own is not None else ''}"
