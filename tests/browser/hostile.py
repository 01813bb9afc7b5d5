"""
A memory in which every text that anybody can put in is hostile.

One user for each group of payloads; the group is their name, their assistant's, their conversation's and its subject's, what
they and the assistant say, what is believed about them, what it was before, what a model wrote about it, what they do not
want remembered, and why a job failed.
"""

from __future__ import annotations

import re
from datetime import timedelta

from holdfast import Memory
from holdfast.llm.protocol import ModelError, Request
from holdfast.testing.model import ScriptedModel

from .payloads import PAYLOADS, groups

GROUPS = groups()
DAY = (
    "On Sunday we met at the harbor, ate fried fish with lemon and olives, missed the boat to the island, walked home along "
    "the old railway in heavy rain, lost an umbrella, found a stray kitten behind the bakery and named it after the ferry"
)
_NUMBER = re.compile(r"number (\d+)\b")


def model() -> ScriptedModel:
    """A model whose every word is hostile, and whose name is."""
    return ScriptedModel(name=f"scripted:{PAYLOADS[0]}", otherwise=_hostile)


def _hostile(request: Request) -> str | Exception:
    found = _NUMBER.search(request.text)
    words = GROUPS[int(found[1])] if found else PAYLOADS[0]
    if "FAIL" in request.text:
        return ModelError(words, hint=words, transient=False)
    if request.layer == "facts":
        return "NONE"
    if request.layer == "episodes":
        return f"- {DAY}: {words} [1]"
    return f"SUMMARY: {words}\nTHEMES: {words}\nCONCERNS: {words}\nACTIONS: {words}"


def hostile(memory: Memory) -> list[dict[str, str]]:
    """Tell it; the names of each user, for the paths of pages."""
    users = []
    for number, words in enumerate(GROUPS):
        org = words if number == 0 else "default"  # one tenant is enough: its name stands in the same places
        _talk(memory, org, number, words)
        memory.admin.keys.create("app", org=org, name=words, expires_at=timedelta(days=1))
        users.append({"user": words, "conversation": words, "org": org, "bot": words})
    memory.digest()
    for names in users:
        names |= _believe(memory, names)
    return users


def _talk(memory: Memory, org: str, number: int, words: str) -> None:
    own = [payload for payload in PAYLOADS if payload in words]
    chat = memory.conversation(words, user=words, org=org, bot=words)
    messages = [{"role": "user", "content": f"This is number {number}: {DAY}. {words}", "name": words, words: words}]
    for payload in own:
        messages += [{"role": "user", "content": payload}, {"role": "assistant", "content": payload, "name": words}]
    messages += [{"role": "system", "content": words}, {"role": "tool", "content": words, "tool_call_id": words}]
    messages += [{"role": role, "content": words} for _ in range(4) for role in ("user", "assistant")]
    chat.append(messages)
    chat.end()
    pet = memory.conversation(words, user=words, org=org, bot=words, subject=words)
    pet.record(f"This is number {number}. {words}", words)
    pet.end()
    broken = memory.conversation(f"x{words}", user=words, org=org, bot=words)
    broken.record(f"This is number {number}. FAIL {words}", words)
    broken.end()


def _believe(memory: Memory, names: dict[str, str]) -> dict[str, str]:
    words = names["user"]
    user = memory.user(words, org=names["org"], bot=names["bot"])
    user.remember(category="hobby", key=words, value="before")
    change = user.remember(category="hobby", key=words, value=words)
    own = user.remember(category=words, key=words, value=words)
    user.remember(words)
    mistaken = user.remember(category="food", key="likes", value=words)
    assert change.fact is not None
    assert own.fact is not None
    if mistaken.fact is not None:
        user.never_true(mistaken.fact.id)
    user.never_remember(f"never {words}")
    user.prompts.set("chunk_summary", words)
    dead = [job.id for job in memory.jobs("dead") if (job.org, job.user, job.bot) == (names["org"], words, words)]
    assert dead, "no job failed with hostile words"
    (chunk, *_) = memory.conversation(words, user=words, org=names["org"], bot=names["bot"]).summaries(1)
    return {"chunk": chunk.id, "fact": change.fact.id, "job": dead[0], "paused": words, "gone": words, "owner": words}
