"""
One answer of the model's server, read while its bytes pass: what was said, whether it is whole, and the tokens it used.

Nothing is changed or held back here.  What cannot be read is no reply, and passes all the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ...integrations.calls.replies import StreamedReply, reply_message, reported_usage
from ...types import Message, ReplyUsage
from .shapes import CHAT, RESPONSES, Shape, response_reply

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
