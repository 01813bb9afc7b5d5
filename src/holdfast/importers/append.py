"""
The appending of imported messages, which stores nothing twice when it is repeated.

What a conversation already begins with is not appended again: so a repeated, a resumed and a grown
file all go on where the store stands.  Past that point every block carries an idempotency key made
of its place and content, which also holds when something else was said in between.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ..clock import to_ms
from ..errors import BadInput
from ..text import dataclass, expression
from ..text.validate import replace_unstorable
from ..types import FactChange, Message
from .items import ImportedMemory, LeftOut
from .jsonl import BadLine, Block

if TYPE_CHECKING:
    from ..conversation import Conversation
    from ..user import User

_WHICH = expression(r"message (\d+)")


@dataclass(slots=True)
class ImportOutcome:
    """
    The outcome of an import so far.

    ``known`` messages had been stored before; ``changes`` were learned while storing, from blocks that
    are small enough; ``skipped`` says why nothing is stored, when the user paused memory or opted out.
    """

    stored: int = 0
    known: int = 0
    skipped: str = ""
    off: dict[str, str] = field(default_factory=dict)
    """The users of whom nothing is stored, of several, each with the reason."""
    changes: list[FactChange] = field(default_factory=list)
    refused: list[BadLine] = field(default_factory=list)
    memories: int = 0
    sentences: int = 0
    """Of the memories, those that are kept as sentences, without a category and key of their own."""
    known_memories: int = 0
    left_out: list[LeftOut] = field(default_factory=list)
    """Memories that were refused, with the reason."""

    @property
    def done(self) -> int:
        """Return the number of messages that were read."""
        return self.stored + self.known + len(self.refused)


@dataclass(slots=True)
class Appender:
    """
    A writer of blocks to conversations.

    ``open`` gives the conversation of a name.  With ``skip_bad``, messages that the store refuses
    are counted in ``outcome.refused`` and left out.
    """

    open: Callable[[str], Conversation]
    skip_bad: bool = False
    outcome: ImportOutcome = field(default_factory=ImportOutcome)
    _known: dict[str, bool] = field(default_factory=dict)

    def run(self, blocks: Iterable[Block], on_block: Callable[[ImportOutcome], None]) -> ImportOutcome:
        """
        Append every block; call *on_block* with the outcome after each, when it is on disk.

        Raises:
            RefusedLine: the store cannot hold a message, and bad ones are not to be skipped.
        """
        for block in blocks:
            self._feed(block)
            on_block(self.outcome)
        return self.outcome

    def _feed(self, block: Block) -> None:
        chat = self.open(block.conversation)
        known = self._already_there(chat, block)
        self.outcome.known += known
        rest, start = list(range(known, len(block.messages))), block.start + known
        while rest:
            key = block_key(start, [block.raws[i] for i in rest])
            try:
                receipt = chat.append([block.messages[i] for i in rest], idempotency_key=key)
            except BadInput as error:
                index = rest[_index(error, len(rest))]
                bad = BadLine(
                    block.numbers[index],
                    _WHICH.sub("it", error.message, count=1).replace("it: ", "its ", 1),
                    error.hint,
                )
                if not self.skip_bad:
                    raise RefusedLine(bad) from error
                self.outcome.refused.append(bad)
                rest.remove(index)
                continue
            self.outcome.changes += receipt.changes
            if receipt.skipped:
                self.outcome.skipped = receipt.skipped
            elif receipt.duplicate:
                self.outcome.known += len(rest)
            else:
                self.outcome.stored += len(rest)
            return

    def _already_there(self, chat: Conversation, block: Block) -> int:
        """Count the messages of the block that the conversation already has at that place."""
        if not self._known.get(block.conversation, True):
            return 0
        stored = chat.load(start_seq=block.start + 1, limit=len(block.messages))
        same = 0
        for message, given in zip(stored, block.messages, strict=False):
            if not _same(message, given):
                break
            same += 1
        self._known[block.conversation] = same == len(block.messages)
        return same


def store_memories(
    user: User, memories: Iterable[ImportedMemory], outcome: ImportOutcome, on_memory: Callable[[ImportOutcome], None]
) -> None:
    """
    Store memories as facts of *user*, each from its own time, and once however often it is repeated.

    What was stated later still holds; what a choice of the user forbids is counted with the reason.  What is believed
    already is not said once more by another program's copy of it.
    """
    facts = user.facts()
    texts, places = {fact.text for fact in facts}, {(fact.category, fact.key, fact.value) for fact in facts}
    for item in memories:
        if item.text in texts or item.address in places:
            outcome.known_memories += 1
            on_memory(outcome)
            continue
        words: dict[str, Any] = {"text": item.text or None}
        if item.address is not None:
            words |= dict(zip(("category", "key", "value"), item.address, strict=True))
        elif item.label:
            words["category"] = item.label
        which = (item.id, item.text, *(item.address or ()), str(item.at), *filter(None, (item.label,)))
        key = hashlib.sha256("\n".join(which).encode()).hexdigest()
        try:
            change = user.remember(
                **words, confidence=item.confidence, at=item.at, idempotency_key=f"import-{key[:40]}"
            )
        except BadInput as error:
            outcome.left_out.append(LeftOut(item.place, error.message))
            on_memory(outcome)
            continue
        if change.op == "rejected":
            outcome.left_out.append(LeftOut(item.place, change.reason.partition(":")[0].replace("-", " ")))
        elif change.op == "confirmed":
            outcome.known_memories += 1
        else:
            outcome.memories += 1
            outcome.sentences += change.fact is not None and change.fact.kind == "statement"
            outcome.changes.append(change)
        on_memory(outcome)


class RefusedLine(Exception):
    """An error for a line whose message the store cannot hold."""

    def __init__(self, bad: BadLine) -> None:
        super().__init__(bad.problem)
        self.bad = bad


def block_key(start: int, raws: Iterable[bytes]) -> str:
    """Return a key that only the same lines at the same place have."""
    digest = hashlib.sha256(str(start).encode())
    for raw in raws:
        digest.update(b"\n" + raw.strip())
    return "jsonl-" + digest.hexdigest()[:40]


def _same(stored: Message, given: Mapping[str, Any]) -> bool:
    content = given.get("content") or ""
    if isinstance(content, list):
        if stored.meta.get("parts") != content:
            return False
    elif replace_unstorable(content) != stored.content:
        return False
    at = given.get("at")
    return replace_unstorable(given.get("name") or "") == (stored.name or "") and (
        at is None or _ms(at) == _ms(stored.at)
    )


def _ms(at: datetime | None) -> int:
    return to_ms(at) if at is not None else 0


def _index(error: BadInput, count: int) -> int:
    found = _WHICH.search(error.message)
    index = int(found.group(1)) if found else 0
    return index if index < count else 0
