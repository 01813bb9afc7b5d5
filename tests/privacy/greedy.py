"""
A model that extracts everything: every claim that it finds anywhere in its prompt becomes a fact about the user.

It does so in every way that a careless or talked-round model does: it quotes the words where they stand, the
bare value, a neighbouring message, nothing at all; it writes attributes and whole sentences.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence

from holdfast.llm.protocol import Request
from holdfast.text.render import parse_blocks

from .transcripts import CLAIMS, Claim

_ITEM = re.compile(r"(\d+) (user|assistant|system|tool)\b[^:]*: (.*)", re.DOTALL)


def extracts_everything(request: Request) -> str:
    """The answer about facts: each claim whose words are in the prompt, quoted in each way."""
    read = _read(request)
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(row for claim in CLAIMS for row in _rows(claim, read))
    return out.getvalue() or "NONE"


def notes_everything(request: Request) -> str:
    """The answer about episodes: each claim whose words are in the prompt, as what the user said in every message."""
    read = _read(request)
    bullets = [
        f"- {told} [{seq}]"
        for claim in CLAIMS
        for told in (f"The user {claim.of_other}.", claim.own)
        for seq, _, _ in read
        if any(words in text for _, _, text in read for words in (claim.own, claim.of_other))
    ]
    return "\n".join(bullets) or "No facts to record"


def _read(request: Request) -> list[tuple[int, str, str]]:
    """``(number, role, text)`` of each message that the prompt shows."""
    return [
        (int(found[1]), found[2], found[3])
        for name, items in parse_blocks(request.text)
        if name in ("before", "read")
        for found in map(_ITEM.fullmatch, items)
        if found
    ]


def _rows(claim: Claim, read: Sequence[tuple[int, str, str]]) -> Iterator[list[str]]:
    users = [(seq, text) for seq, role, text in read if role == "user"][-2:]
    for seq, _, text in read:
        for words in (claim.own, claim.of_other, claim.own.replace(" ", "+")):
            if words not in text:
                continue
            whole = next(line for line in text.splitlines() if words in line)
            quotes = [words, whole, words.rstrip("."), claim.value if claim.value in text else words, ""]
            places = [(seq, quote) for quote in quotes]
            places += [(user, quote) for user, said in users for quote in (words, said)]
            for at, quote in places:
                yield [claim.category, claim.key, claim.value, "0.99", "", "set", "asserted", "state", str(at), quote]
            for at, quote in places:
                told = f"The user {claim.of_other}."
                yield ["context", "", told, "0.99", "user", "add", "asserted", "permanent", str(at), quote]
