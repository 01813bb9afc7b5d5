"""A model that counts: it answers with what a model would at about that length, and keeps the requests."""

from __future__ import annotations

import re

from holdfast.digest import rules
from holdfast.llm.protocol import Answer, Request
from holdfast.text.render import parse_blocks
from holdfast.text.tokens import count_tokens
from holdfast.types import Message

_ITEM = re.compile(r"(\d+) (\w+)[^:]*?(?: \(\d{4}-\d\d-\d\d\))?: (.*)", re.DOTALL)
SUMMARY_WORDS, EPISODES = 80, 3


class CountingModel:
    """Facts as the rules read them, a summary of 80 words, up to three episodes; safe for one thread."""

    name = "counting:1"

    def __init__(self) -> None:
        self.asked: list[Request] = []

    def ask(self, request: Request) -> Answer:
        """See `LanguageModel`."""
        self.asked.append(request)
        items = dict(parse_blocks(request.text)).get("read", [])
        facts, episodes, summary = _facts(items), _episodes(items), _summary(items)
        text = {
            "facts": facts,
            "episodes": episodes,
            "combined": f"{summary}\nEPISODES:\n{episodes}\nFACTS:\n{facts}",
            "statements": "NONE",
        }.get(request.layer, summary)
        prompt = count_tokens(request.system) + count_tokens(request.text)
        return Answer(text, self.name, input_tokens=prompt, output_tokens=count_tokens(text), estimated=True)


def _users(items: list[str]) -> list[tuple[int, str]]:
    found = [match for match in map(_ITEM.fullmatch, items) if match]
    return [(int(match[1]), match[3]) for match in found if match[2] == "user"]


def _facts(items: list[str]) -> str:
    rows = []
    for seq, text in _users(items):
        for fact in rules.read(Message("user", text, seq=seq)):
            if fact.modality == "asserted" and fact.op == "assert" and fact.subject == "self":
                quote = fact.quote.replace('"', '""')
                rows.append(f'{fact.category},{fact.key},"{fact.value}",0.9,,set,asserted,state,{seq},"{quote}"')
    return "\n".join(rows) or "NONE"


def _episodes(items: list[str]) -> str:
    told = [(seq, text) for seq, text in _users(items) if len(text) > 40][:EPISODES]
    return "\n".join(f"- {text[:120]} [{seq}]" for seq, text in told) or "No facts to record"


def _summary(items: list[str]) -> str:
    words = " ".join(item.partition(": ")[2] for item in items).split()
    return f"SUMMARY: {' '.join(words[:SUMMARY_WORDS])}.\nTHEMES: {' '.join(words[:3])}\nCONCERNS: -\nACTIONS: -"
