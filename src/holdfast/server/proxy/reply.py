"""
One answer of the model's server, read while its bytes pass: what was said, whether it is whole, and the tokens it used.

Nothing is changed or held back here.  What cannot be read is no reply, and passes all the same.

The model's server does not know users: whoever names the id of a response, a conversation, or an item has the model read
it.  So a user's own key may name only what is known as that user's, and a program's key nothing that is known as
another's (`Owners`).  Ids are kept as digests.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ...integrations.calls.replies import StreamedReply, reply_message, reported_usage
from ...memory import Memory
from ...text import dataclass
from ...types import Message, ReplyUsage
from ..gate import Grant
from .chat import CHAINS, ITEMS, LONGEST, RESPONSE, WITHIN, digest_of_name
from .request import MemoryOptions
from .shapes import CHAT, RESPONSES, Shape, response_reply
from .upstream import UpstreamServer

MAX_READ_BYTES = 32 * 2**20
_DONE = b"[DONE]"
_NOT_WHOLE = ("failed", "cancelled", "queued", "in_progress")  # states of a response
_LAST_EVENTS = frozenset(("response.completed", "response.incomplete", "response.failed", "message_stop"))
_FAILED = ("response.failed", "error")


class ReplyReader:
    """
    One answer: a JSON document, or a stream of events.

    ``id`` is the name by which a later request may go on from it; ``items`` are those of its parts, which it may show in
    their place.
    """

    def __init__(self, content_type: str, encoding: str = "", shape: Shape = CHAT) -> None:
        self._shape = shape
        self.id = ""
        self.items: list[str] = []
        kind = content_type.partition(";")[0].strip().lower()
        self.streams = kind == "text/event-stream"
        self.readable = encoding.lower() in ("", "identity")
        self.used: ReplyUsage | None = None
        self._rest = bytearray()
        self._spoken = StreamedReply()
        self._refusals: list[str] = []
        self._done = self._finished = self._broken = self._closing = False
        self._message: Message | None = None

    def feed(self, chunk: bytes) -> None:
        """Read the next bytes."""
        if not self.readable:
            return
        self._rest += chunk
        if len(self._rest) > MAX_READ_BYTES:
            self.readable = False
            self._rest.clear()
        elif self.streams and b"\n" in chunk:
            *lines, rest = bytes(self._rest).split(b"\n")
            self._rest = bytearray(rest)
            for line in lines:
                self._line(line)

    def end(self) -> None:
        """Finish: there are no more bytes."""
        if not self.readable:
            return
        if self.streams:
            self._line(bytes(self._rest))
            return
        given = _json(bytes(self._rest))
        if given is not None and self._shape is not CHAT:
            self._finished = True
            self._take_whole(given)
        elif given is not None:
            self._finished = True
            self._note_use(given)
            said = _of_first_choice(given, "message")
            refusal = _get(_get(_first(said.get("choices")), "message"), "refusal") if said else None
            self._message = reply_message(said) if said else None
            if self._message is None and isinstance(refusal, str):
                self._message = Message("assistant", refusal)

    @property
    def ended(self) -> bool:
        """Whether the stream has said that it is at its end, or that it failed: no more is to come."""
        return self._done or self._broken

    @property
    def closing(self) -> bool:
        """Whether the last words have passed: many clients read no further, whatever may follow."""
        return self.ended or self._finished or self._closing

    @property
    def whole(self) -> bool:
        """Whether the model came to its end."""
        return (self._done or self._finished) and not self._broken

    def message(self) -> Message | None:
        """Return the reply so far; ``None`` when there is none, or none that we can read."""
        if not self.readable or not self.streams or self._message is not None:
            return self._message
        said = self._spoken.message()
        refusal = "".join(self._refusals)
        if refusal and (said is None or not said.content):
            return replace(said or Message("assistant", ""), content=refusal)
        return said

    def _line(self, line: bytes) -> None:
        if not line.startswith(b"data:"):
            return
        payload = line[5:].strip()
        if payload == _DONE:
            self._done = True
            return
        given = _json(payload)
        if given is None:
            return
        if self._shape is not CHAT:
            self._event(given)
            return
        self._note_use(given)
        self._broken = self._broken or bool(given.get("error"))
        said = _of_first_choice(given, "delta")
        if not said:
            return
        choice = said["choices"][0]
        self._finished = self._finished or choice.get("finish_reason") is not None
        self._spoken.add(said)
        refusal = _get(choice.get("delta"), "refusal")
        if isinstance(refusal, str):
            self._refusals.append(refusal)

    def _event(self, given: Mapping[str, Any]) -> None:
        """Read an event of a response, or of Anthropic's."""
        self._spoken.add(given)
        kind, response = given.get("type"), given.get("response")
        if kind == "response.refusal.delta" and isinstance(given.get("delta"), str):
            self._refusals.append(given["delta"])
        if isinstance(response, dict) and isinstance(response.get("id"), str):
            self.id = response["id"]
        if kind == "response.output_item.done":
            self._note_items([given.get("item")])
        self._closing = self._closing or kind == "response.output_text.done"
        self._finished = self._finished or _get(given.get("delta"), "stop_reason") is not None
        self._broken = self._broken or kind in _FAILED
        if kind in _LAST_EVENTS:
            self._done = True
            if isinstance(response, dict):
                self._take_whole(response)
        used = self._spoken.usage
        if used is not None:
            self.used = replace(used, model=used.model or "unknown")

    def _take_whole(self, given: Mapping[str, Any]) -> None:
        """Read a whole response, or a whole message of Anthropic's."""
        self._message = response_reply(given) if self._shape is RESPONSES else reply_message(given)
        self.id = given["id"] if isinstance(given.get("id"), str) else self.id
        self._note_items(given.get("output"))
        self._broken = self._broken or given.get("status") in _NOT_WHOLE
        used = reported_usage(given)
        if used is not None:
            self.used = replace(used, model=used.model or "unknown")

    def _note_items(self, output: object) -> None:
        ids = [_get(item, "id") for item in output] if isinstance(output, list) else []
        self.items += [name for name in ids if isinstance(name, str) and name not in self.items]

    def _note_use(self, given: Mapping[str, Any]) -> None:
        """Keep what the model's server counted, in the shape of whichever provider it passes on."""
        model, used = given.get("model"), reported_usage(given)
        said = _count(given.get("usage"), "completion_tokens")
        if used is not None or said:
            name = model if isinstance(model, str) and model else "unknown"
            self.used = ReplyUsage(name, 0, said, 0) if used is None else replace(used, model=used.model or name)


def _of_first_choice(given: Mapping[str, Any], part: str) -> dict[str, Any]:
    """Return *given* with the choice of number 0 alone, if it holds one whose *part* is an object."""
    choices = given.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, dict) and choice.get("index", 0) == 0 and isinstance(choice.get(part), dict):
            return {"choices": [choice]}
    return {}


def _json(payload: bytes) -> Mapping[str, Any] | None:
    try:
        given = json.loads(payload)
    except (ValueError, RecursionError):
        return None
    return given if isinstance(given, dict) else None


def _get(value: object, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else None


def _first(values: object) -> Any:
    return values[0] if isinstance(values, list) and values else None


def _count(value: object, name: str) -> int:
    found = _get(value, name)
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else 0


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
    """Remember which user each response, conversation, and item that passed here belongs to."""

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
